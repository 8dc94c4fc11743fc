//! MCP servers of other people as sources: looked at before they are added, and what changes at them.

use std::time::Duration;

use axum::{Json, extract::State};
use http::StatusCode;
use portolan_http_tools::{Credential, CredentialSlot};
use portolan_model::{
    id::{SourceId, SourceKind as SourceIdKind},
    member::Action,
    registry::{SourceKind, SourceSettings},
};
use portolan_site::{
    console_error::ConsoleError, request_context::RequestContext, state::AuthState, turns::Turn,
};
use portolan_storage::{
    StorageError, TenantTx,
    registry::{
        credential_states::{self, Seen},
        sources::{self, NewSource},
        upstream_oauth, upstreams as stored,
    },
};
use portolan_upstream::{Offer, OfferedPrompt, OfferedResource, OfferedTool, UpstreamError};
use portolan_upstream_sync::{
    look::{self, LookError, LookTarget},
    sync::{
        self, LONGEST_NAME, PendingChanges, SyncError, Synced, UpstreamChange, Why, longest_name,
    },
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use time::OffsetDateTime;
use url::Url;
use utoipa::ToSchema;

use crate::{
    change::Editor,
    credentials::{self, CredentialForm},
    input::{JsonBody, PathId},
    sign_in::{Sharing, SignInMethod},
    source_rows::{found, source_name},
    source_view::{SourceView, view},
    workspace::Workspace,
};

/// How long a look waits for a turn of its workspace.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Longest prefix of names.
const LONGEST_PREFIX: usize = 32;

/// A server to be looked at.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UpstreamLook {
    /// Address of its MCP endpoint.
    url: String,
    /// What opens it.
    #[serde(default)]
    #[schema(value_type = Option<CredentialForm>)]
    credential: Option<Credential>,
}

/// A server's own description, and its tools, prompts and resources.
#[derive(Debug, Serialize, ToSchema)]
pub struct UpstreamPreview {
    /// The revision of MCP that is spoken with it.
    revision: String,
    server_name: Option<String>,
    server_version: Option<String>,
    instructions: Option<String>,
    tools: Vec<UpstreamTool>,
    prompts: Vec<UpstreamPrompt>,
    resources: Vec<UpstreamResource>,
    /// Definitions that cannot be used, as sentences.
    skipped: Vec<String>,
}

/// A tool of a server.
#[derive(Debug, Serialize, ToSchema)]
pub struct UpstreamTool {
    name: String,
    title: String,
    description: String,
    warnings: Vec<String>,
}

/// A prompt of a server.
#[derive(Debug, Serialize, ToSchema)]
pub struct UpstreamPrompt {
    name: String,
    title: String,
    description: String,
}

/// A resource of a server, or a template of many.
#[derive(Debug, Serialize, ToSchema)]
pub struct UpstreamResource {
    /// `resource` or `template`.
    kind: &'static str,
    uri: String,
    name: String,
}

impl From<OfferedTool> for UpstreamTool {
    fn from(tool: OfferedTool) -> Self {
        Self {
            name: tool.name,
            title: tool.title,
            description: tool.description,
            warnings: tool.warnings,
        }
    }
}

impl From<OfferedPrompt> for UpstreamPrompt {
    fn from(prompt: OfferedPrompt) -> Self {
        Self {
            name: prompt.name,
            title: prompt.title,
            description: prompt.description,
        }
    }
}

impl From<OfferedResource> for UpstreamResource {
    fn from(resource: OfferedResource) -> Self {
        Self {
            kind: if resource.is_template {
                "template"
            } else {
                "resource"
            },
            uri: resource.uri,
            name: resource.name,
        }
    }
}

/// The address of an MCP endpoint. Unlike a base URL it is kept to the letter: a slash at its end may matter.
pub(crate) fn endpoint_url(state: &AuthState, text: &str) -> Result<Url, ConsoleError> {
    let invalid = |message: String| ConsoleError::invalid("url_invalid", message).field("url");
    let url = Url::parse(text.trim()).map_err(|_| {
        invalid(
            "Give the complete address of the server, such as https://mcp.example.com/mcp."
                .to_owned(),
        )
    })?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(invalid(
            "The address holds a user name or password. Set them as the credential.".to_owned(),
        ));
    }
    if url.fragment().is_some() {
        return Err(invalid("The address has no part after `#`.".to_owned()));
    }
    state
        .egress
        .check(&url)
        .map_err(|error| invalid(format!("Calls cannot go there: {error}.")))?;
    Ok(url)
}

pub(crate) fn checked_prefix(text: &str) -> Result<&str, ConsoleError> {
    let text = text.trim();
    let fits = text.len() <= LONGEST_PREFIX
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'));
    if fits {
        return Ok(text);
    }
    Err(ConsoleError::invalid(
        "prefix_invalid",
        format!("A prefix has up to {LONGEST_PREFIX} letters, digits, `_`, `-` or `.`."),
    )
    .field("prefix"))
}

/// AUTH-F5: names of a prefix and what follows it, which may be too long (MCP-TL-6).
fn too_long(prefix: &str, what: &str, name: &str, length: usize) -> ConsoleError {
    let most = LONGEST_NAME.saturating_sub(length);
    let shown: String = name.chars().take(40).collect();
    let how = if most == 0 {
        "Leave the prefix empty.".to_owned()
    } else {
        format!("Choose a prefix of up to {most} characters.")
    };
    ConsoleError::invalid(
        "name_too_long",
        format!(
            "With this prefix the {what} `{shown}` would have a name of {} characters, and a name has up to {LONGEST_NAME}. {how}",
            length + prefix.len()
        ),
    )
    .field("prefix")
}

fn not_looked_at(error: &LookError) -> ConsoleError {
    if matches!(
        error,
        LookError::Upstream(UpstreamError::Unauthorized { .. })
    ) {
        let message = "This server opens only with a credential or after signing in to it.";
        return ConsoleError::invalid("upstream_wants_sign_in", message).field("url");
    }
    if let LookError::Account(error) = error {
        let message = format!(
            "The server cannot be signed in to: {error}. Connect the account on this page first."
        );
        return ConsoleError::conflict("upstream_not_connected", message);
    }
    ConsoleError::invalid(
        "upstream_unusable",
        format!("This address could not be used as an MCP server: {error}."),
    )
    .field("url")
}

fn slot(credential: Option<Credential>) -> Result<Option<CredentialSlot>, ConsoleError> {
    let Some(credential) = credential else {
        return Ok(None);
    };
    let credential = credential.checked().map_err(|error| {
        ConsoleError::invalid("credential_invalid", error.message).field(error.field)
    })?;
    Ok(Some(CredentialSlot::new("look".to_owned(), credential)))
}

/// Looks at an MCP server: what it is and what it offers. Keeps nothing.
#[utoipa::path(post, path = "/workspaces/{ws}/upstreams/preview", tag = "upstreams", params(("ws" = String, Path, description = "Slug")),
    request_body = UpstreamLook, responses((status = 200, description = "What it offers.", body = UpstreamPreview)))]
pub(crate) async fn preview_upstream(
    State(state): State<AuthState>,
    workspace: Workspace,
    JsonBody(request): JsonBody<UpstreamLook>,
) -> Result<Json<UpstreamPreview>, ConsoleError> {
    workspace.require(Action::EditRegistry)?;
    let url = endpoint_url(&state, &request.url)?;
    let slot = slot(request.credential)?;
    let offer = look_at(&state, &workspace, &url, slot.as_ref()).await?;
    Ok(Json(preview(offer)))
}

/// Looks at a server that is to be added.
pub(crate) async fn look_at(
    state: &AuthState,
    workspace: &Workspace,
    url: &Url,
    slot: Option<&CredentialSlot>,
) -> Result<Offer, ConsoleError> {
    let target = LookTarget {
        tenant: workspace.id,
        url: url.clone(),
        settings: SourceSettings::default(),
        opened_by: slot.into(),
    };
    let _turn = turn(state, workspace).await?;
    let looked = look::look(state, target).await;
    looked.map_err(|error| not_looked_at(&error))
}

/// Refuses a prefix with which a name of the offer is too long.
pub(crate) fn fits(prefix: &str, offer: &Offer) -> Result<(), ConsoleError> {
    match longest_name(offer) {
        Some((what, name, length)) if length + prefix.len() > LONGEST_NAME => {
            Err(too_long(prefix, what, name, length))
        }
        _ => Ok(()),
    }
}

/// A turn at looking at a server. A member who asks for many looks at once waits for their own
/// (REVIEW-S-1).
pub(crate) async fn turn(state: &AuthState, workspace: &Workspace) -> Result<Turn, ConsoleError> {
    let turn = state.looks().take(workspace.id, LONGEST_WAIT).await;
    turn.ok_or_else(|| {
        ConsoleError::busy(
            5,
            "This workspace looks at as many servers as it may at a time. Try again in a moment.",
        )
    })
}

fn preview(offer: Offer) -> UpstreamPreview {
    UpstreamPreview {
        revision: offer.facts.version_string().to_owned(),
        server_name: offer.facts.name(),
        server_version: offer.facts.version(),
        instructions: offer.facts.instructions.clone(),
        tools: offer.tools.into_iter().map(UpstreamTool::from).collect(),
        prompts: offer
            .prompts
            .into_iter()
            .map(UpstreamPrompt::from)
            .collect(),
        resources: offer
            .resources
            .into_iter()
            .map(UpstreamResource::from)
            .collect(),
        skipped: offer.skipped,
    }
}

/// A server to be added.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewUpstream {
    /// What people call it; what it calls itself if empty.
    #[serde(default)]
    name: String,
    /// Address of its MCP endpoint.
    url: String,
    /// What opens it.
    #[serde(default)]
    #[schema(value_type = Option<CredentialForm>)]
    credential: Option<Credential>,
    /// Stands before the names of its tools and prompts; mostly empty.
    #[serde(default)]
    prefix: String,
    /// Changes at the server wait until a person agrees. It does if this is absent: what a server says of a tool is read by
    /// models, and was agreed to as it was.
    #[serde(default = "held")]
    #[schema(default = true)]
    hold_changes: bool,
    /// Names of the tools that are enabled; all if absent. The others are kept disabled.
    #[serde(default)]
    tools: Option<Vec<String>>,
    /// The server is signed in to by OAuth, with these accounts. Its tools are read once the account is connected.
    #[serde(default)]
    #[schema(nullable = false)]
    sign_in: Option<Sharing>,
}

const fn held() -> bool {
    true
}

/// Adds an MCP server, with its tools, prompts and resources.
#[utoipa::path(post, path = "/workspaces/{ws}/upstreams", tag = "upstreams", params(("ws" = String, Path, description = "Slug")),
    request_body = NewUpstream, responses((status = 201, description = "Added.", body = SourceView)))]
pub(crate) async fn add_upstream(
    editor: Editor,
    JsonBody(request): JsonBody<NewUpstream>,
) -> Result<(StatusCode, Json<SourceView>), ConsoleError> {
    let url = endpoint_url(&editor.state, &request.url)?;
    let prefix = checked_prefix(&request.prefix)?;
    let slot = slot(request.credential)?;
    if slot.is_some() && request.sign_in.is_some() {
        let message = "A server is opened by a credential or by signing in, not by both.";
        return Err(ConsoleError::invalid("credential_invalid", message).field("credential"));
    }
    let offer = if request.sign_in.is_some() {
        None
    } else {
        Some(look_at(&editor.state, &editor.workspace, &url, slot.as_ref()).await?)
    };
    if let Some(offer) = &offer {
        fits(prefix, offer)?;
    }
    let name = chosen_name(&request.name, offer.as_ref(), &url);
    let new = NewSource {
        id: SourceId::generate(),
        kind: SourceKind::Mcp,
        name: source_name(&name)?,
        base_url: url.as_str(),
        document: None,
        security: &json!([]),
    };
    let mut tx = editor.begin().await?;
    crate::source_rows::has_room(&mut tx).await?;
    sources::insert(&mut tx, &new, editor.now).await?;
    stored::insert(&mut tx, new.id, prefix, request.hold_changes, editor.now).await?;
    if let Some(slot) = &slot {
        let (state, tenant) = (&editor.state, editor.workspace.id);
        let credential = slot.credential();
        let version =
            credentials::store(state, &mut tx, tenant, new.id, credential, editor.now).await?;
        // The server was looked at with it.
        if offer.is_some() {
            let seen = Seen {
                source: new.id,
                version,
                state: credential_states::CredentialState::Works,
                at: editor.now,
            };
            credential_states::note(&mut tx, &[seen], credential_states::Repeat::Always).await?;
        }
    }
    if let Some(sharing) = request.sign_in {
        let method = SignInMethod::default().word();
        upstream_oauth::set_sign_in(
            &mut tx,
            new.id,
            sharing.word(),
            method,
            None,
            None,
            editor.now,
        )
        .await?;
    }
    if let Some(offer) = &offer {
        let chosen = request.tools.as_deref();
        sync::take_first(&mut tx, new.id, offer, prefix, chosen, editor.now).await?;
    }
    let tools = offer.as_ref().map_or(0, |offer| offer.tools.len());
    let detail = json!({ "name": new.name, "kind": new.kind, "tools": tools });
    let source = view(found(&mut tx, new.id).await?);
    editor
        .commit(tx, "source.created", "source", new.id, detail)
        .await?;
    Ok((StatusCode::CREATED, Json(source)))
}

/// The state of a source's server.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Upstream)]
pub struct UpstreamView {
    /// Stands before the names of its tools and prompts.
    prefix: String,
    /// Changes at the server wait until a person agrees.
    hold_changes: bool,
    /// The revision of MCP that is spoken with it.
    revision: Option<String>,
    server_name: Option<String>,
    server_version: Option<String>,
    instructions: Option<String>,
    /// Names of its capabilities.
    capabilities: Vec<String>,
    prompts: Vec<String>,
    /// URIs, templates included.
    resources: Vec<String>,
    /// What of its lists cannot be used, as sentences.
    skipped: Vec<String>,
    /// Changes that wait.
    pending: Option<PendingChanges>,
    /// Why it could not be looked at the last time.
    last_error: Option<String>,
    #[serde(with = "time::serde::rfc3339::option")]
    checked_at: Option<OffsetDateTime>,
    #[serde(with = "time::serde::rfc3339::option")]
    synced_at: Option<OffsetDateTime>,
}

/// The name of a new source: the entered one, else that of the server, else its host.
fn chosen_name(entered: &str, offer: Option<&Offer>, url: &Url) -> String {
    let entered = entered.trim();
    if !entered.is_empty() {
        return entered.to_owned();
    }
    match offer.and_then(|offer| offer.facts.name()) {
        Some(own) => own.chars().take(80).collect(),
        None => url.host_str().unwrap_or_default().to_owned(),
    }
}

async fn known(tx: &mut TenantTx, id: SourceId) -> Result<UpstreamView, ConsoleError> {
    found(tx, id).await?;
    let upstream = stored::find(tx, id)
        .await?
        .ok_or_else(|| ConsoleError::conflict("not_mcp", "This source is no MCP server."))?;
    let (mut prompts, mut resources) = (Vec::new(), Vec::new());
    for known in stored::known(tx, id).await? {
        if known.kind == "prompt" {
            prompts.push(known.name);
        } else {
            resources.push(known.name);
        }
    }
    prompts.sort();
    resources.sort();
    let capabilities = upstream.capabilities.as_object();
    Ok(UpstreamView {
        prefix: upstream.prefix,
        hold_changes: upstream.hold_changes,
        revision: upstream.revision,
        server_name: upstream.server_name,
        server_version: upstream.server_version,
        instructions: upstream.instructions,
        capabilities: capabilities
            .map(|all| all.keys().cloned().collect())
            .unwrap_or_default(),
        prompts,
        resources,
        skipped: serde_json::from_value(upstream.skipped).unwrap_or_default(),
        pending: upstream
            .pending
            .and_then(|pending| serde_json::from_value(pending).ok()),
        last_error: upstream.last_error,
        checked_at: upstream.checked_at,
        synced_at: upstream.synced_at,
    })
}

/// The state of a source's server, and the changes that wait to be agreed to.
#[utoipa::path(get, path = "/workspaces/{ws}/sources/{id}/upstream", tag = "upstreams",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Source")),
    responses((status = 200, description = "What is known.", body = UpstreamView)))]
pub(crate) async fn show_upstream(
    State(state): State<AuthState>,
    workspace: Workspace,
    PathId(id): PathId<SourceIdKind>,
) -> Result<Json<UpstreamView>, ConsoleError> {
    workspace.require(Action::Read)?;
    let mut tx = state.store.tenant(workspace.id).await?;
    Ok(Json(known(&mut tx, id).await?))
}

/// Members to change; an absent member stays.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UpstreamSettings {
    #[schema(nullable = false)]
    prefix: Option<String>,
    #[schema(nullable = false)]
    hold_changes: Option<bool>,
}

/// Changes the prefix of an upstream's names, or whether its changes wait.
#[utoipa::path(patch, path = "/workspaces/{ws}/sources/{id}/upstream", tag = "upstreams",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Source")),
    request_body = UpstreamSettings, responses((status = 200, description = "Changed.", body = UpstreamView)))]
pub(crate) async fn change_upstream(
    editor: Editor,
    PathId(id): PathId<SourceIdKind>,
    JsonBody(request): JsonBody<UpstreamSettings>,
) -> Result<Json<UpstreamView>, ConsoleError> {
    let prefix = request.prefix.as_deref().map(checked_prefix).transpose()?;
    let mut tx = editor.begin().await?;
    let before = known(&mut tx, id).await?;
    configure(&mut tx, id, &before.prefix, (prefix, request.hold_changes)).await?;
    let answer = known(&mut tx, id).await?;
    let detail = json!({ "prefix": prefix, "hold_changes": request.hold_changes });
    editor
        .commit(tx, "upstream.changed", "source", id, detail)
        .await?;
    Ok(Json(answer))
}

/// Changes the checked prefix of a server's names, and whether its changes wait. `None` stays.
pub(crate) async fn configure(
    tx: &mut TenantTx,
    id: SourceId,
    before: &str,
    (prefix, hold_changes): (Option<&str>, Option<bool>),
) -> Result<(), ConsoleError> {
    if let Some(prefix) = prefix
        && prefix != before
    {
        if let Some((what, name)) = stored::longest_name(tx, id).await?
            && name.chars().count() + prefix.len() > LONGEST_NAME
        {
            return Err(too_long(prefix, &what, &name, name.chars().count()));
        }
        let changed = stored::change_prefix(tx, id, before, prefix).await;
        changed.map_err(|error| match error {
            StorageError::Refused { .. } => ConsoleError::conflict(
                "name_clash",
                "With this prefix two tools or prompts of a server would have the same name. Choose another one.",
            )
            .field("prefix")
            .caused_by(error),
            error => error.into(),
        })?;
    }
    stored::configure(tx, id, prefix, hold_changes).await?;
    Ok(())
}

/// Whether to look, or to agree to what was found.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SyncRequest {
    /// `digest` of the pending changes that are agreed to.
    #[serde(default)]
    #[schema(nullable = false)]
    agreed: Option<String>,
}

/// The result of a look.
#[derive(Debug, Serialize, ToSchema)]
pub struct SyncResult {
    /// They wait until a person agrees; else they hold already.
    held: bool,
    changes: Vec<UpstreamChange>,
    /// The present state.
    upstream: UpstreamView,
}

/// Looks at an upstream server now, or takes over changes that waited.
#[utoipa::path(post, path = "/workspaces/{ws}/sources/{id}/sync", tag = "upstreams",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Source")),
    request_body = SyncRequest, responses((status = 200, description = "What was found.", body = SyncResult)))]
pub(crate) async fn sync_upstream(
    State(state): State<AuthState>,
    workspace: Workspace,
    context: RequestContext,
    PathId(id): PathId<SourceIdKind>,
    JsonBody(request): JsonBody<SyncRequest>,
) -> Result<Json<SyncResult>, ConsoleError> {
    workspace.require(Action::EditRegistry)?;
    let why = request.agreed.as_deref().map_or(Why::Look, Why::Agreed);
    let origin = context.origin();
    let by = (workspace.caller.actor(), &origin);
    let _turn = turn(&state, &workspace).await?;
    let synced = sync::sync(&state, workspace.id, id, why, by)
        .await
        .map_err(|error| match error {
            SyncError::Unknown => ConsoleError::not_found("this source"),
            SyncError::Look(error) => not_looked_at(&error),
            SyncError::Credential(error) => error,
            SyncError::Moved => ConsoleError::conflict(
                "upstream_moved",
                "The server offers something else by now. Look at the changes again.",
            ),
            SyncError::Storage(error) => error.into(),
        })?;
    let (held, changes) = match synced {
        Synced::Same => (false, Vec::new()),
        Synced::Applied(changes) => (false, changes),
        Synced::Held(pending) => (true, pending.changes),
    };
    let mut tx = state.store.tenant(workspace.id).await?;
    let upstream = known(&mut tx, id).await?;
    Ok(Json(SyncResult {
        held,
        changes,
        upstream,
    }))
}
