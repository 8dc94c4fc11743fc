//! Configuration as code (CONF-1 to CONF-14): a workspace as a file, plans, and their application.
//!
//! A plan is the application itself in a transaction that is rolled back: the same code checks and
//! writes, and the changes are the difference of two reads of the workspace (CONF-5). The code is
//! that of the console's edits.

mod apply_items;
mod apply_sources;
mod apply_webhooks;
mod current;
mod declared_webhooks;
mod forms;
mod prepared;

use std::collections::{BTreeMap, HashMap};

use axum::{
    Json, Router,
    extract::State,
    response::{IntoResponse, Response},
    routing::get,
};
use http::{HeaderMap, StatusCode, header};
use portolan_bundle::{
    Bundle, Fault, MOST_BYTES, Parsed,
    changes::{Change, FieldChange, ObjectKey, ObjectKind, Operation, changes, objects},
    json_schema,
    written::yaml,
};
use portolan_keys::{Purpose, digest};
use portolan_model::{
    Digest,
    id::{PlanId, PlanKind, SourceId},
    member::Action,
};
use portolan_net::layers::{Cors, PageKind, SecurityHeaders};
use portolan_site::{console_error::ConsoleError, state::AuthState};
use portolan_storage::{
    Reason, TenantTx,
    accounts::members,
    platform::audit::{self, AuditEntry},
    registry::configuration::{self as stored, NewPlan, Plan, VALID},
    webhooks::endpoints,
};
use portolan_upstream_sync::connect::flow;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use time::OffsetDateTime;
use utoipa::{IntoParams, ToSchema};

use crate::{
    change::{self, Editor},
    configuration::{
        apply_sources::Run,
        current::{Contents, Current},
        declared_webhooks::Stage,
        prepared::{Prepared, SentFile, check_owners},
    },
    input::{JsonBody, PathId, QueryParameters},
    workspace::Workspace,
};

pub use prepared::Prune;

/// Where the JSON Schema of the format is served.
pub const SCHEMA_PATH: &str = "/schemas/portolan-v1.json";

/// Most facts about an application.
const MOST_FACTS: usize = 20;

/// Most characters of a fact.
const LONGEST_FACT: usize = 200;

/// Entries of the audit log that a refusal lists.
const SHOWN_ENTRIES: usize = 20;

/// The JSON Schema of the format, for editors of any origin.
pub fn schema_router(state: &AuthState) -> Router<AuthState> {
    Router::new()
        .route(SCHEMA_PATH, get(show_schema))
        .layer(Cors::authorization_server().layer())
        .layer(SecurityHeaders::new(PageKind::Machine, state.site.is_secure()).layer())
}

async fn show_schema() -> Response {
    (
        [
            (header::CONTENT_TYPE, "application/schema+json"),
            (header::CACHE_CONTROL, "public, max-age=3600"),
        ],
        json_schema().to_string(),
    )
        .into_response()
}

/// A refusal of an object as a fault of the file.
fn faulty(parsed: &Parsed, (kind, index): (ObjectKind, usize), error: &ConsoleError) -> Fault {
    let mut fault = Fault::new(error.message().trim_end_matches('.'));
    fault.place = parsed.place(kind.section(), index, error.at_field());
    fault.path = match error.at_field() {
        Some(field) => format!("{}[{index}].{field}", kind.section()),
        None => format!("{}[{index}]", kind.section()),
    };
    fault
}

/// Checks a file without a workspace: its form, and the content of its prompts, resources, defined
/// tools and webhooks.
///
/// # Errors
/// The first fault, with its place.
pub fn validate(text: &str) -> Result<Bundle, Fault> {
    let mut parsed = portolan_bundle::parse(text)?;
    let normalised = declared_webhooks::normalise(&mut parsed.bundle);
    normalised.map_err(|(index, error)| faulty(&parsed, (ObjectKind::Webhook, index), &error))?;
    let faulty = |kind: ObjectKind, index: usize, error: &ConsoleError| {
        faulty(&parsed, (kind, index), error)
    };
    for (index, source) in parsed.bundle.sources.iter().enumerate() {
        for (name, tool) in &source.tools {
            let Some(define) = &tool.define else {
                continue;
            };
            crate::hand_made_tools::drafted(&forms::hand_made(name, define)).map_err(|error| {
                let error = error.field(format!("tools.{name}"));
                faulty(ObjectKind::Source, index, &error)
            })?;
        }
    }
    for (index, prompt) in parsed.bundle.prompts.iter().enumerate() {
        forms::prompt_form(prompt)
            .and_then(crate::prompts::Checked::of)
            .map_err(|error| faulty(ObjectKind::Prompt, index, &error))?;
    }
    for (index, resource) in parsed.bundle.resources.iter().enumerate() {
        let any = portolan_model::id::SourceId::generate();
        forms::resource_form(resource, Some(any))
            .and_then(crate::resources::form::Checked::of)
            .map_err(|error| faulty(ObjectKind::Resource, index, &error))?;
    }
    for (index, server) in parsed.bundle.servers.iter().enumerate() {
        crate::servers::checked_slug(&server.slug)
            .map_err(|error| faulty(ObjectKind::Server, index, &error))?;
    }
    for (index, webhook) in parsed.bundle.webhooks.iter().enumerate() {
        declared_webhooks::check(webhook)
            .map_err(|error| faulty(ObjectKind::Webhook, index, &error))?;
    }
    Ok(parsed.bundle)
}

/// The form of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ConfigurationFormat {
    /// YAML 1.2.
    Yaml,
    /// JSON.
    Json,
}

/// The wanted export.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ConfigurationQuery {
    /// `yaml` or `json`; by `Accept` if absent, and JSON then by default.
    #[param(inline)]
    format: Option<ConfigurationFormat>,
    /// The name of the file. If absent: of the file that owns most objects, else the workspace's
    /// slug.
    name: Option<String>,
    /// Only the object of this kind with this `key`. The answer is a part of the file, and no file:
    /// it has neither `format` nor `name`.
    #[param(inline)]
    kind: Option<ObjectKind>,
    /// Key of the object: the name of a source or prompt, the URI of a resource, the slug of a
    /// server, the URL of an endpoint of webhooks.
    key: Option<String>,
}

impl ConfigurationQuery {
    /// The one object that is wanted; `None` for the whole workspace.
    fn object(&self) -> Result<Option<ObjectKey>, ConsoleError> {
        match (self.kind, &self.key) {
            (Some(kind), Some(key)) => Ok(Some((kind, key.clone()))),
            (None, None) => Ok(None),
            (kind, _) => {
                let missing = if kind.is_some() { "key" } else { "kind" };
                let message = "Give `kind` and `key` of an object together, or none of them.";
                Err(ConsoleError::invalid("object_incomplete", message).field(missing))
            }
        }
    }

    /// Whether the answer is YAML.
    fn is_yaml(&self, headers: &HeaderMap) -> bool {
        let accepted = || {
            let accept = headers.get(header::ACCEPT)?.to_str().ok()?;
            Some(accept.contains("yaml"))
        };
        match self.format {
            Some(format) => format == ConfigurationFormat::Yaml,
            None => accepted().unwrap_or(false),
        }
    }
}

/// The workspace as a file, in canonical form, or the part of it that is one object. Secrets are
/// references to the workspace. For developers: it has documents and files. Endpoints of webhooks are
/// in it for admins and owners, and for their tokens with `workspace:read` or `webhooks:write`.
#[utoipa::path(get, path = "/workspaces/{ws}/configuration", tag = "configuration",
    params(("ws" = String, Path, description = "Slug"), ConfigurationQuery),
    responses((status = 200, description = "The file, of the format portolan/v1.", content(
        (Value = "application/json"), (Value = "application/yaml")))))]
pub(crate) async fn export_configuration(
    State(state): State<AuthState>,
    workspace: Workspace,
    headers: HeaderMap,
    QueryParameters(query): QueryParameters<ConfigurationQuery>,
) -> Result<Response, ConsoleError> {
    let file = exported(&state, &workspace, &query).await?;
    if query.is_yaml(&headers) {
        return Ok(([(header::CONTENT_TYPE, "application/yaml")], file.yaml).into_response());
    }
    Ok(Json(file.contents).into_response())
}

/// A workspace as a file, or one of its objects, in both forms.
pub(crate) struct ExportedFile {
    pub(crate) contents: ExportedContents,
    /// A whole file has the line that names the schema to editors.
    pub(crate) yaml: String,
}

/// The exported contents.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum ExportedContents {
    /// The whole workspace.
    Whole(Bundle),
    /// The part of the file that is one object.
    Part(Value),
}

/// Exports the workspace, or one of its objects.
pub(crate) async fn exported(
    state: &AuthState,
    workspace: &Workspace,
    query: &ConfigurationQuery,
) -> Result<ExportedFile, ConsoleError> {
    workspace.require(Action::EditRegistry)?;
    let object = query.object()?;
    let mut tx = state.store.tenant(workspace.id).await?;
    let current = current::read(state, &mut tx, (workspace, Contents::Whole)).await?;
    drop(tx);
    let unwritable = |error| ConsoleError::internal("configuration", error);
    if let Some(key) = object {
        let found = objects(&current.bundle).remove(&key);
        let found = found.ok_or_else(|| ConsoleError::not_found("this object"))?;
        let part = json!({ (key.0.section()): [found] });
        return Ok(ExportedFile {
            yaml: yaml(&part).map_err(unwritable)?,
            contents: ExportedContents::Part(part),
        });
    }
    let own = || current.main_owner().unwrap_or(workspace.slug.as_str());
    let name = query.name.clone().unwrap_or_else(|| own().to_owned());
    let bundle = Bundle {
        name,
        ..current.bundle
    };
    let text = yaml(&bundle).map_err(unwritable)?;
    if text.len() > MOST_BYTES {
        return Err(ConsoleError::conflict(
            "configuration_too_large",
            "This workspace is larger than a file may be: 5 MiB. Give large documents an address, and remove large resources.",
        ));
    }
    // A wrong name, and what no reader could read again, is refused here and not at the next plan.
    prepared::parsed(&text)?;
    let schema = state.site.url(SCHEMA_PATH);
    Ok(ExportedFile {
        yaml: format!("# yaml-language-server: $schema={schema}\n{text}"),
        contents: ExportedContents::Whole(bundle),
    })
}

/// A file to be planned.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlanRequest {
    /// The file: YAML or JSON of the format portolan/v1, up to 5 MiB.
    bundle: String,
    /// Texts of `file:` locations, by path as the file writes it.
    #[serde(default)]
    files: BTreeMap<String, String>,
    /// Values of secrets, by reference as the file writes it. They are never shown again.
    #[serde(default)]
    secrets: BTreeMap<String, String>,
    /// Which objects that the file does not have are deleted; `owned` if absent.
    #[serde(default)]
    prune: Prune,
    /// Take over objects that another file manages.
    #[serde(default)]
    claim: bool,
    /// Only these objects of the file are planned, and only such are deleted: `servers/sales`,
    /// `sources/*`. All if absent. Up to 100.
    #[serde(default)]
    select: Vec<String>,
}

/// Changes of a workspace that can be applied once.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ConfigurationPlan)]
pub struct PlanView {
    #[schema(value_type = String, example = "pln_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a")]
    id: PlanId,
    /// Revision of the workspace that the changes hold for.
    base_revision: i64,
    /// The plan can be applied until then.
    #[serde(with = "time::serde::rfc3339")]
    expires_at: OffsetDateTime,
    /// By kind and key. Empty if the workspace is as the file says.
    changes: Vec<Change>,
    /// Number of objects without a change that the file begins to own.
    claimed: usize,
}

/// Computes the changes that lead from the workspace to the file, and keeps them for 30 minutes.
/// Changes nothing.
#[utoipa::path(post, path = "/workspaces/{ws}/configuration/plans", tag = "configuration",
    params(("ws" = String, Path, description = "Slug")), request_body = PlanRequest,
    responses((status = 201, description = "The changes.", body = PlanView)))]
pub(crate) async fn plan_configuration(
    editor: Editor,
    JsonBody(request): JsonBody<PlanRequest>,
) -> Result<(StatusCode, Json<PlanView>), ConsoleError> {
    let sent = SentFile::new(
        request.bundle,
        (request.files, request.secrets),
        (request.prune, request.claim),
        request.select,
    );
    let prepared = Prepared::of(&editor, sent, Stage::Plan).await?;
    let mut tx = editor.begin().await?;
    let base_revision = stored::revision(&mut tx).await?;
    let outcome = realise(&editor, &mut tx, &prepared).await?;
    // The rehearsal is over: nothing of it stays.
    drop(tx);
    let id = PlanId::generate();
    let sealed = seal(&editor, id, &prepared.sent)?;
    let new = NewPlan {
        id,
        owner: &prepared.parsed.bundle.name,
        base_revision,
        changes_digest: outcome.digest()?,
        sealed: &sealed,
    };
    let mut tx = editor.begin().await?;
    stored::insert_plan(&mut tx, &new, editor.now).await?;
    tx.commit().await?;
    let view = PlanView {
        id,
        base_revision,
        expires_at: editor.now + VALID,
        changes: outcome.changes,
        claimed: outcome.claimed,
    };
    Ok((StatusCode::CREATED, Json(view)))
}

/// Facts about an application.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApplyRequest {
    /// Facts for the audit log, such as `commit` and `run`: up to 20, each of up to 200 characters.
    #[serde(default)]
    meta: BTreeMap<String, String>,
}

/// The result of an application.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AppliedConfiguration)]
pub struct AppliedView {
    /// The changes of the plan.
    changes: Vec<Change>,
    /// Number of objects without a change that the file begins to own.
    claimed: usize,
}

/// Applies a plan in one transaction, once. 409 with what changed if the workspace changed since
/// the plan was made. New endpoints of webhooks, and those with other headers, must answer a signed
/// `endpoint.verify` with 2xx before.
#[utoipa::path(post, path = "/workspaces/{ws}/configuration/plans/{id}/apply", tag = "configuration",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Plan")),
    request_body = ApplyRequest,
    responses((status = 200, description = "Applied.", body = AppliedView)))]
pub(crate) async fn apply_configuration(
    editor: Editor,
    PathId(id): PathId<PlanKind>,
    JsonBody(request): JsonBody<ApplyRequest>,
) -> Result<Json<AppliedView>, ConsoleError> {
    check_facts(&request.meta)?;
    let mut tx = editor.begin().await?;
    let plan = found_plan(&mut tx, id, editor.now).await?;
    let revision = stored::revision(&mut tx).await?;
    drop(tx);
    if revision != plan.base_revision {
        return Err(moved(&editor, &plan, revision).await?);
    }
    let sent = open(&editor, id, &plan)?;
    let prepared = Prepared::of(&editor, sent, Stage::Apply).await?;
    let mut tx = editor.begin().await?;
    let revision = stored::lock_revision(&mut tx).await?;
    if revision != plan.base_revision {
        drop(tx);
        return Err(moved(&editor, &plan, revision).await?);
    }
    if current::sees_webhooks(&editor.workspace) {
        endpoints::lock_all(&mut tx).await?;
    }
    if !stored::take_plan(&mut tx, id, editor.now).await? {
        return Err(over());
    }
    let outcome = realise(&editor, &mut tx, &prepared).await?;
    let same = outcome.digest()?.as_bytes().as_slice() == plan.changes_digest.as_slice();
    if !same {
        return Err(ConsoleError::conflict(
            "plan_differs",
            "What the file names outside, or a webhook endpoint, changed since the plan. Plan again.",
        ));
    }
    let view = AppliedView {
        claimed: outcome.claimed,
        changes: outcome.changes,
    };
    if view.changes.is_empty() && view.claimed == 0 {
        tx.commit().await?;
        return Ok(Json(view));
    }
    let detail = json!({ "name": plan.owner, "changes": view.changes, "claimed": view.claimed,
        "prune": prepared.sent.prune, "select": prepared.sent.select, "meta": request.meta });
    let (workspace, context) = (&editor.workspace, &editor.context);
    let event = workspace.event("configuration.applied", "tenant", workspace.id, detail);
    change::commit(tx, context, editor.now, &event).await?;
    let mut leaving = prepared.leaving;
    leaving.retain(|account| outcome.disconnected.contains(&account.source));
    flow::give_back_later(&editor.state, workspace.id, leaving);
    Ok(Json(view))
}

fn check_facts(facts: &BTreeMap<String, String>) -> Result<(), ConsoleError> {
    let is_short =
        |text: &str| text.chars().count() <= LONGEST_FACT && !text.chars().any(char::is_control);
    let is_sound = facts.len() <= MOST_FACTS
        && facts
            .iter()
            .all(|(name, value)| is_short(name) && is_short(value));
    if is_sound {
        return Ok(());
    }
    Err(ConsoleError::invalid(
        "meta_invalid",
        format!(
            "Give up to {MOST_FACTS} facts in one line of up to {LONGEST_FACT} characters each."
        ),
    )
    .field("meta"))
}

/// The effect of a file on a workspace.
struct Outcome {
    changes: Vec<Change>,
    claimed: usize,
    /// Sources whose connected accounts were removed.
    disconnected: Vec<SourceId>,
}

impl Outcome {
    /// Names these very changes.
    fn digest(&self) -> Result<Digest, ConsoleError> {
        let text = serde_json::to_vec(&(&self.changes, self.claimed))
            .map_err(|error| ConsoleError::internal("configuration changes", error))?;
        Ok(digest(&text))
    }
}

/// Makes the workspace of a transaction that of the file, and returns the changes.
async fn realise(
    editor: &Editor,
    tx: &mut TenantTx,
    prepared: &Prepared,
) -> Result<Outcome, ConsoleError> {
    let wanted = (&editor.workspace, Contents::Digests);
    let before = current::read(&editor.state, tx, wanted).await?;
    let claimed = check_owners(prepared, &before)?;
    let run = Run {
        editor,
        prepared,
        before: &before,
    };
    let disconnected = apply_sources::put_sources(run, tx).await?;
    apply_items::put_items(run, tx).await?;
    apply_items::put_servers(run, tx).await?;
    apply_webhooks::put_webhooks(run, tx).await?;
    apply_items::prune(run, tx).await?;
    apply_webhooks::check_count(run, tx).await?;
    // The read serves for both: owners are no part of a file.
    let after = current::read(&editor.state, tx, wanted).await?;
    apply_items::own(run, tx, &after).await?;
    let mut changes = changes(&before.bundle, &after.bundle);
    add_secrets(&before, &after, &mut changes);
    Ok(Outcome {
        changes,
        claimed,
        disconnected,
    })
}

/// Adds changed secrets, which no field shows (CONF-7).
fn add_secrets(before: &Current, after: &Current, changes: &mut Vec<Change>) {
    for (name, source) in &after.sources {
        let old = before.sources.get(name).and_then(|source| source.mark);
        let key = (ObjectKind::Source, name.as_str(), "credential.secret");
        add_secret(key, (old, source.mark), changes);
    }
    for (url, webhook) in &after.webhooks {
        let old = before.webhooks.get(url).and_then(|webhook| webhook.mark);
        let key = (ObjectKind::Webhook, url.as_str(), "headers.secret");
        add_secret(key, (old, webhook.mark), changes);
    }
    changes.sort_by(|a, b| (a.kind, &a.key).cmp(&(b.kind, &b.key)));
}

type Mark = Option<[u8; 32]>;

fn add_secret(
    (kind, key, path): (ObjectKind, &str, &str),
    (old, new): (Mark, Mark),
    changes: &mut Vec<Change>,
) {
    if old.is_none() || new.is_none() || old == new {
        return;
    }
    let changed = FieldChange {
        path: path.to_owned(),
        before: Some(Value::from("(stored)")),
        after: Some(Value::from("(changed)")),
    };
    let mut all = changes.iter_mut();
    match all.find(|one| one.kind == kind && one.key == key) {
        Some(own) => own.fields.push(changed),
        None => changes.push(Change {
            op: Operation::Update,
            kind,
            key: key.to_owned(),
            fields: vec![changed],
        }),
    }
}

fn over() -> ConsoleError {
    ConsoleError::conflict(
        "plan_over",
        "This plan was applied, or its 30 minutes are over. Plan again.",
    )
}

async fn found_plan(
    tx: &mut TenantTx,
    id: PlanId,
    now: OffsetDateTime,
) -> Result<Plan, ConsoleError> {
    if let Some(plan) = stored::find_plan(tx, id, now).await? {
        return Ok(plan);
    }
    if stored::is_over(tx, id).await? {
        return Err(over());
    }
    Err(ConsoleError::not_found("this plan"))
}

/// The refusal of a plan whose workspace changed: by whom, and what.
async fn moved(editor: &Editor, plan: &Plan, revision: i64) -> Result<ConsoleError, ConsoleError> {
    let mut tx = editor.begin().await?;
    let entries = audit::list(&mut tx, None, 200).await?;
    drop(tx);
    let mut tx = editor.state.store.system(Reason::Workspaces).await?;
    let people = members::list(&mut tx, editor.workspace.id).await?;
    drop(tx);
    let people: HashMap<_, _> = people
        .into_iter()
        .map(|member| (member.user, member.email))
        .collect();
    let changed: Vec<Value> = entries
        .into_iter()
        .filter(|entry| entry.at >= plan.created_at && is_of_registry(entry))
        .take(SHOWN_ENTRIES)
        .map(|entry| {
            let person = entry.actor.and_then(|user| people.get(&user)).cloned();
            let token = entry.detail["access_token"]["name"]
                .as_str()
                .map(str::to_owned);
            let by = token.or(person).unwrap_or_else(|| entry.actor_kind.clone());
            let named = ["name", "slug", "uri"]
                .into_iter()
                .find_map(|name| entry.detail[name].as_str());
            let what = named.map_or_else(|| entry.target_id.clone(), str::to_owned);
            json!({ "action": entry.action, "what": what, "by": by })
        })
        .collect();
    let first = changed.first().map(|first| {
        let text = |name: &str| first[name].as_str().unwrap_or_default().to_owned();
        format!(": {} of {} by {}", text("action"), text("what"), text("by"))
    });
    let message = format!(
        "The workspace changed since the plan{}. Plan again.",
        first.unwrap_or_default()
    );
    let base = plan.base_revision;
    Ok(ConsoleError::conflict("workspace_moved", message)
        .details(json!({ "base_revision": base, "revision": revision, "changed": changed })))
}

/// Whether an entry of the audit log is a change of the registry.
fn is_of_registry(entry: &AuditEntry) -> bool {
    const NOUNS: [&str; 10] = [
        "configuration",
        "credential",
        "prompt",
        "resource",
        "server",
        "sign_in",
        "source",
        "tool",
        "tools",
        "upstream",
    ];
    let noun = entry.action.split('.').next().unwrap_or_default();
    NOUNS.contains(&noun)
}

fn seal(editor: &Editor, id: PlanId, sent: &SentFile) -> Result<Vec<u8>, ConsoleError> {
    let text = serde_json::to_vec(sent)
        .map_err(|error| ConsoleError::internal("configuration plan", error))?;
    let tenant = editor.workspace.id;
    let keys = &editor.state.keys;
    let key = keys.of_owner(Purpose::ConfigurationPlan, tenant.uuid_bytes())?;
    Ok(key.seal(&text, id.uuid_bytes())?)
}

fn open(editor: &Editor, id: PlanId, plan: &Plan) -> Result<SentFile, ConsoleError> {
    let tenant = editor.workspace.id;
    let keys = &editor.state.keys;
    let key = keys.of_owner(Purpose::ConfigurationPlan, tenant.uuid_bytes())?;
    let text = key
        .open(&plan.sealed, id.uuid_bytes())
        .map_err(|error| ConsoleError::internal("configuration plan", error))?;
    serde_json::from_slice(&text)
        .map_err(|_unreadable| ConsoleError::internal("configuration plan", "it does not read"))
}
