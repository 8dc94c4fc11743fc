//! MCP servers of other people as sources: their offers are read, compared with the registry,
//! and taken over or held. A client's request never leads here: lists are served from
//! the registry (`docs/translation-rules.md`, *Errors and authorization across legs*).

mod eras;

use std::{collections::BTreeMap, time::Duration};

use futures_util::{StreamExt, stream::FuturesUnordered};
use portolan_http_tools::Proof;
use portolan_keys::{digest, random};
use portolan_model::{
    Timestamp,
    audit::{Actor, Event, Outcome},
    event::EventType,
    id::{SourceId, TenantId},
    registry::ToolState,
};
use portolan_site::state::AuthState;
use portolan_storage::{
    Reason, StorageError, TenantTx, events,
    platform::audit,
    registry::{
        credential_states::{self, Seen},
        registry_news, sources,
        tools::{self, Filter, Imported, Tool, Wording},
        upstreams::{self, KnownItem, Said, SyncedPrompt, SyncedResource, Upstream},
    },
};
use portolan_upstream::{Offer, Raw};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use url::Url;
use utoipa::ToSchema;

use crate::{
    credentials::state_of,
    look::{LookError, LookTarget, Opener, look},
    sync::eras::{is_gone, keep_unsaid},
};

/// Between two looks at a server (MCP-X-43), give or take a fifth.
const PERIOD: Duration = Duration::from_secs(300);

/// Between two questions whether a server's time has come.
const TICK: Duration = Duration::from_secs(5);

/// Servers that a node looks at at once, and those of one tenant among them.
const AT_ONCE: usize = 16;

const AT_ONCE_OF_A_TENANT: usize = 2;

/// Tools written by one statement: their schemas can be large.
const CHUNK: usize = 100;

/// A change of what a server offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UpstreamChange {
    /// `tool`, `prompt`, `resource` or `template`.
    pub kind: String,
    /// The server's own name or URI.
    pub name: String,
    /// `added`, `changed` or `removed`.
    pub change: String,
    /// What of it changed.
    pub what: Vec<String>,
    /// Slugs of the servers that publish it.
    pub used_by_servers: Vec<String>,
}

/// Changes that wait for approval.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct PendingChanges {
    /// Send it back to agree to these very changes.
    pub digest: String,
    /// When they were found.
    #[serde(with = "time::serde::rfc3339")]
    pub found_at: time::OffsetDateTime,
    /// The changes.
    pub changes: Vec<UpstreamChange>,
}

/// Names an offer: two looks that find the same have the same.
pub fn name_of(offer: &Offer) -> String {
    let digest = digest(&offer.canonical());
    digest.as_bytes()[..16]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// MCP-TL-6: the most characters of a name that is published.
pub const LONGEST_NAME: usize = 128;

/// The longest name of an offer, in characters, with what it names (`tool`, `prompt`).
pub fn longest_name(offer: &Offer) -> Option<(&'static str, &str, usize)> {
    let tools = offer.tools.iter().map(|tool| ("tool", tool.name.as_str()));
    let prompts = offer
        .prompts
        .iter()
        .map(|prompt| ("prompt", prompt.name.as_str()));
    tools
        .chain(prompts)
        .map(|(what, name)| (what, name, name.chars().count()))
        .max_by_key(|(_, _, length)| *length)
}

/// What of an offer can be named under a prefix; the rest is skipped, with a sentence (MCP-TL-6). A
/// server may bring longer names at any time.
fn fitting(mut offer: Offer, prefix: &str) -> Offer {
    let fits = |name: &str| prefix.len() + name.chars().count() <= LONGEST_NAME;
    let Offer {
        tools,
        prompts,
        skipped,
        ..
    } = &mut offer;
    let mut skip = |what: &str, name: &str| {
        let fits = fits(name);
        if !fits {
            skipped.push(format!(
                "The {what} `{name}` has a name of more than {LONGEST_NAME} characters with the prefix `{prefix}`."
            ));
        }
        fits
    };
    tools.retain(|tool| skip("tool", &tool.name));
    prompts.retain(|prompt| skip("prompt", &prompt.name));
    offer
}

/// A server's tools as they are stored.
pub fn imported(offer: &Offer, prefix: &str) -> Vec<Imported> {
    let tools = offer.tools.iter().map(|tool| Imported {
        operation_key: tool.name.clone(),
        wording: Wording {
            name: format!("{prefix}{}", tool.name),
            title: tool.title.clone(),
            description: tool.description.clone(),
        },
        input_schema: tool.input_schema.clone(),
        output_schema: tool.output_schema.clone(),
        annotations: tool.annotations.clone(),
        plan: tool.plan.clone(),
        definition: None,
        written: Some(tool.written.as_str().to_owned()),
        warnings: tool.warnings.clone(),
    });
    tools.collect()
}

async fn tools_of(tx: &mut TenantTx, source: SourceId) -> Result<Vec<Tool>, StorageError> {
    let filter = Filter {
        source: Some(source),
        ..Filter::default()
    };
    tools::list(tx, &filter, i64::from(i32::MAX)).await
}

/// What differs between a tool that is known and the same tool as the server has it now.
fn differences(known: &Tool, new: &Imported) -> Vec<String> {
    let checks = [
        (known.original.title != new.wording.title, "title"),
        (
            known.original.description != new.wording.description,
            "description",
        ),
        (known.input_schema != new.input_schema, "arguments"),
        (known.output_schema != new.output_schema, "result"),
        (known.annotations != new.annotations, "hints"),
        (known.plan != new.plan, "metadata"),
    ];
    let mut differences: Vec<String> = checks
        .into_iter()
        .filter(|(differs, _)| *differs)
        .map(|(_, what)| what.to_owned())
        .collect();
    // What no column holds, and digits that no number of ours has.
    if differences.is_empty() && says_else(known.written.as_deref(), new.written.as_deref()) {
        differences.push("metadata".to_owned());
    }
    differences
}

/// Whether two definitions say different things, however they are written. What no release has
/// kept, says nothing.
fn says_else(known: Option<&str>, new: Option<&str>) -> bool {
    let (Some(known), Some(new)) = (known, new) else {
        return false;
    };
    let canonical = |text: &str| {
        let mut out = Vec::with_capacity(text.len());
        if let Ok(raw) = Raw::parse(text.to_owned()) {
            portolan_upstream::canonical(&raw, &mut out);
        }
        out
    };
    known != new && canonical(known) != canonical(new)
}

struct Compared {
    changes: Vec<UpstreamChange>,
    tools: Vec<Tool>,
    /// An earlier release has written some of it, in an order and with numbers of its own.
    is_dated: bool,
}

/// Computes the changes that an offer would make.
async fn compare(
    tx: &mut TenantTx,
    source: SourceId,
    offer: &Offer,
    new: &[Imported],
) -> Result<Compared, StorageError> {
    let tools = tools_of(tx, source).await?;
    let mut changes = Vec::new();
    let mut change = |kind: &str, name: &str, change: &str, what, used: &[String]| {
        changes.push(UpstreamChange {
            kind: kind.to_owned(),
            name: name.to_owned(),
            change: change.to_owned(),
            what,
            used_by_servers: used.to_vec(),
        });
    };
    let by_key: BTreeMap<&str, &Tool> = tools
        .iter()
        .map(|tool| (tool.operation_key.as_str(), tool))
        .collect();
    for tool in new {
        match by_key.get(tool.operation_key.as_str()) {
            Some(known) if known.state == ToolState::Active => {
                let what = differences(known, tool);
                if !what.is_empty() {
                    change("tool", &tool.operation_key, "changed", what, &known.used_by);
                }
            }
            _ => change("tool", &tool.operation_key, "added", Vec::new(), &[]),
        }
    }
    for tool in &tools {
        if is_gone(tool, offer, new) {
            change(
                "tool",
                &tool.operation_key,
                "removed",
                Vec::new(),
                &tool.used_by,
            );
        }
    }
    let known = upstreams::known(tx, source).await?;
    let offered = offered_items(offer);
    let known: BTreeMap<(&str, &str), &KnownItem> = known
        .iter()
        .map(|known| ((known.kind.as_str(), known.name.as_str()), known))
        .collect();
    for (&(kind, name), (definition, written)) in &offered {
        match known.get(&(kind, name)) {
            None => change(kind, name, "added", Vec::new(), &[]),
            Some(before)
                if before.definition != **definition
                    || says_else(before.written.as_deref(), Some(written.as_str())) =>
            {
                change(kind, name, "changed", Vec::new(), &[]);
            }
            Some(_) => {}
        }
    }
    for &(kind, name) in known.keys() {
        if !offered.contains_key(&(kind, name)) {
            change(kind, name, "removed", Vec::new(), &[]);
        }
    }
    let is_active = |tool: &&Tool| tool.state == ToolState::Active;
    let is_dated = tools
        .iter()
        .filter(is_active)
        .any(|tool| tool.written.is_none())
        || known.values().any(|known| known.written.is_none());
    Ok(Compared {
        changes,
        tools,
        is_dated,
    })
}

/// Prompts and resources of an offer, by kind and name: parsed, and as the server wrote them.
fn offered_items(offer: &Offer) -> BTreeMap<(&str, &str), (&Value, &Raw)> {
    let prompts = offer.prompts.iter().map(|prompt| {
        (
            ("prompt", prompt.name.as_str()),
            (&prompt.definition, &prompt.written),
        )
    });
    let resources = offer.resources.iter().map(|resource| {
        let kind = if resource.is_template {
            "template"
        } else {
            "resource"
        };
        (
            (kind, resource.uri.as_str()),
            (&resource.definition, &resource.written),
        )
    });
    prompts.chain(resources).collect()
}

/// Tools that a source has, and their prefix.
struct Had<'a> {
    tools: &'a [Tool],
    prefix: &'a str,
}

/// Takes an offer over. New tools are enabled if `enabled` says so; what the workspace wrote or
/// switched stays.
async fn apply(
    tx: &mut TenantTx,
    source: SourceId,
    offer: &Offer,
    had: Had<'_>,
    new: Vec<Imported>,
    enabled: impl Fn(&str) -> bool,
    now: Timestamp,
) -> Result<(), StorageError> {
    let Had {
        tools: known,
        prefix,
    } = had;
    let by_key: BTreeMap<&str, &Tool> = known
        .iter()
        .map(|tool| (tool.operation_key.as_str(), tool))
        .collect();
    let gone: Vec<String> = known
        .iter()
        .filter(|tool| is_gone(tool, offer, &new))
        .map(|tool| tool.operation_key.clone())
        .collect();
    let mut added = Vec::new();
    for tool in new {
        match by_key.get(tool.operation_key.as_str()) {
            None => {
                let enabled = enabled(&tool.operation_key);
                added.push((tool, enabled));
            }
            Some(present) => {
                let differs = present.state != ToolState::Active
                    || present.original.name != tool.wording.name
                    || present.warnings != tool.warnings
                    || present.written.is_none()
                    || !differences(present, &tool).is_empty();
                if differs {
                    tools::replace(tx, source, &tool, now).await?;
                }
            }
        }
    }
    for chunk in added.chunks(CHUNK) {
        tools::insert_many(tx, source, chunk, now).await?;
    }
    tools::mark_removed(tx, source, &gone, now).await?;
    let prompts: Vec<SyncedPrompt> = offer
        .prompts
        .iter()
        .map(|prompt| SyncedPrompt {
            upstream_name: prompt.name.clone(),
            name: format!("{prefix}{}", prompt.name),
            title: prompt.title.clone(),
            description: prompt.description.clone(),
            arguments: prompt.arguments.clone(),
            upstream: prompt.definition.clone(),
            written: prompt.written.as_str().to_owned(),
        })
        .collect();
    upstreams::sync_prompts(tx, source, &prompts, now).await?;
    let resources: Vec<SyncedResource> = offer
        .resources
        .iter()
        .map(|resource| SyncedResource {
            kind: if resource.is_template {
                "template"
            } else {
                "resource"
            },
            uri: resource.uri.clone(),
            name: resource.name.clone(),
            title: resource.title.clone(),
            description: resource.description.clone(),
            mime_type: resource.mime_type.clone(),
            upstream: resource.definition.clone(),
            written: resource.written.as_str().to_owned(),
        })
        .collect();
    upstreams::sync_resources(tx, source, &resources, now).await
}

async fn note(
    tx: &mut TenantTx,
    source: SourceId,
    offer: &Offer,
    pending: Option<&PendingChanges>,
    (begun, now): (Timestamp, Timestamp),
) -> Result<(), StorageError> {
    let (name, version) = (offer.facts.name(), offer.facts.version());
    let said = Said {
        revision: offer.facts.version_string(),
        name: name.as_deref(),
        version: version.as_deref(),
        instructions: offer.facts.instructions.as_deref(),
        capabilities: &offer.facts.capabilities_value(),
        skipped: &json!(offer.skipped),
    };
    let pending = pending.map(|pending| json!(pending));
    let next = now + spread();
    upstreams::looked(tx, source, &said, pending.as_ref(), begun, now, next).await
}

/// Keeps the first offer of a new source. `chosen` are the tools that are enabled; all if absent.
pub async fn take_first(
    tx: &mut TenantTx,
    source: SourceId,
    offer: &Offer,
    prefix: &str,
    chosen: Option<&[String]>,
    now: Timestamp,
) -> Result<(), StorageError> {
    let enabled = |name: &str| chosen.is_none_or(|chosen| chosen.iter().any(|own| own == name));
    let new = imported(offer, prefix);
    let had = Had { tools: &[], prefix };
    apply(tx, source, offer, had, new, enabled, now).await?;
    note(tx, source, offer, None, (now, now)).await
}

/// Why a source is synced.
pub enum Why<'a> {
    /// Its time came, or a person asked to look: what changed is held if the source says so.
    Look,
    /// A person approved the changes of this name.
    Agreed(&'a str),
}

/// Result of a sync.
#[derive(Debug)]
pub enum Synced {
    /// Nothing is another than before.
    Same,
    /// These were taken over.
    Applied(Vec<UpstreamChange>),
    /// These wait.
    Held(PendingChanges),
}

/// Why a sync came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum SyncError {
    /// There is no such source.
    #[error("there is no such upstream")]
    Unknown,
    /// The server could not be looked at; that is noted.
    #[error("{0}")]
    Look(#[from] LookError),
    /// The credential does not open.
    #[error("its credential cannot be used")]
    Credential(portolan_site::console_error::ConsoleError),
    /// The approved offer is not what the server offers now.
    #[error("the server offers something else by now")]
    Moved,
    /// The database.
    #[error("storage")]
    Storage(#[from] StorageError),
}

/// Looks at a source's server and takes over, or holds, what changed. `by` is who asked, if a
/// person did.
pub async fn sync(
    state: &AuthState,
    tenant: TenantId,
    source: SourceId,
    why: Why<'_>,
    (by, origin): (Actor, &audit::Origin),
) -> Result<Synced, SyncError> {
    let mut tx = state.store.tenant(tenant).await?;
    let (Some(row), Some(_)) = (
        sources::find(&mut tx, source).await?,
        upstreams::find(&mut tx, source).await?,
    ) else {
        return Err(SyncError::Unknown);
    };
    let opener = Opener::of(state, &mut tx, tenant, source, None)
        .await
        .map_err(SyncError::Credential)?;
    // A slow upstream server must not hold a database connection.
    drop(tx);
    let url = Url::parse(&row.base_url).map_err(|_| SyncError::Unknown)?;
    let target = LookTarget {
        tenant,
        url,
        settings: row.settings,
        opened_by: opener.as_opened_by(),
    };
    let begun = state.now();
    let looked = look(state, target).await;
    let now = state.now();
    let mut tx = state.store.tenant(tenant).await?;
    let proof = match &looked {
        Ok(_) => Some(Proof::Works),
        Err(error) => error.proof(),
    };
    if let (Some(proof), Some(credential), Opener::Credential(Some(_))) =
        (proof, &row.credential, &opener)
    {
        let seen = Seen {
            source,
            version: credential.version,
            state: state_of(proof),
            at: now,
        };
        credential_states::note(&mut tx, &[seen], credential_states::Repeat::Seldom).await?;
    }
    match looked {
        Ok(offer) => take_or_hold(tx, &row, offer, why, (by, origin), (begun, now)).await,
        Err(error) => {
            upstreams::failed(&mut tx, source, &error.to_string(), now).await?;
            tx.commit().await?;
            Err(error.into())
        }
    }
}

/// Compares an offer with what is stored, and takes over, or holds, what changed. `by` asked for
/// the look, which began at the first of `times` and ended at the second.
async fn take_or_hold(
    mut tx: TenantTx,
    row: &sources::Source,
    offer: Offer,
    why: Why<'_>,
    (by, origin): (Actor, &audit::Origin),
    times: (Timestamp, Timestamp),
) -> Result<Synced, SyncError> {
    let (source, (_, now)) = (row.id, times);
    // Read again: the fetch took time, and a change of the source meanwhile takes precedence.
    let Upstream {
        prefix,
        hold_changes,
        synced_at,
        ..
    } = upstreams::find(&mut tx, source)
        .await?
        .ok_or(SyncError::Unknown)?;
    let mut offer = fitting(offer, &prefix);
    if offer.sessions_unsaid {
        keep_unsaid(&mut offer, &tools_of(&mut tx, source).await?);
    }
    let new = imported(&offer, &prefix);
    let Compared {
        changes,
        tools,
        is_dated,
    } = compare(&mut tx, source, &offer, &new).await?;
    let had = Had {
        tools: &tools,
        prefix: &prefix,
    };
    if changes.is_empty() {
        if is_dated {
            // The same, as the server writes it: nothing to agree to.
            apply(&mut tx, source, &offer, had, new, |_| true, now).await?;
            registry_news::changed(&mut tx).await?;
        }
        note(&mut tx, source, &offer, None, times).await?;
        tx.commit().await?;
        return Ok(Synced::Same);
    }
    let name = name_of(&offer);
    let moved = matches!(why, Why::Agreed(agreed) if agreed != name);
    let holds = matches!(why, Why::Look) && hold_changes && synced_at.is_some();
    if moved || holds {
        let pending = PendingChanges {
            digest: name,
            found_at: now,
            changes,
        };
        note(&mut tx, source, &offer, Some(&pending), times).await?;
        let once = format!("upstream.changed {source} {}", pending.digest);
        tell_of_changes(&mut tx, row, &pending.changes, "held", &once, now).await?;
        tx.commit().await?;
        return if moved {
            Err(SyncError::Moved)
        } else {
            Ok(Synced::Held(pending))
        };
    }
    apply(&mut tx, source, &offer, had, new, |_| true, now).await?;
    note(&mut tx, source, &offer, None, times).await?;
    registry_news::changed(&mut tx).await?;
    // A person who approves knows; a server that changes by itself is news.
    if by == Actor::System {
        let once = format!("upstream.changed {source} {name} {}", now.unix_timestamp());
        tell_of_changes(&mut tx, row, &changes, "applied", &once, now).await?;
    }
    let event = synced(&tx, by, source, &changes);
    audit::record(&mut tx, &event, origin, now).await?;
    tx.commit().await?;
    Ok(Synced::Applied(changes))
}

/// The audit entry of changes that were taken over.
fn synced(tx: &TenantTx, by: Actor, source: SourceId, changes: &[UpstreamChange]) -> Event {
    Event {
        tenant: Some(tx.tenant()),
        actor: by,
        action: "source.synced",
        target_kind: "source",
        target_id: source.to_string(),
        outcome: Outcome::Ok,
        detail: json!({ "changes": changes.len() }),
    }
}

/// Writes the event of a server's changes. Held changes are found again by each look: `once` names
/// them.
async fn tell_of_changes(
    tx: &mut TenantTx,
    source: &sources::Source,
    changes: &[UpstreamChange],
    state: &'static str,
    once: &str,
    now: Timestamp,
) -> Result<(), StorageError> {
    let data = json!({
        "source": source.id, "name": source.name, "changes": changes.len(), "state": state,
    });
    let tenant = tx.tenant();
    events::write_once(tx, tenant, EventType::UpstreamChanged, data, once, now).await
}

/// Spread, so that servers added together are not asked together.
fn spread() -> Duration {
    let part = random::bytes::<1>().map_or(128, |[byte]| u32::from(byte));
    PERIOD * 4 / 5 + PERIOD * 2 / 5 * part / 255
}

/// Reads the offers of every upstream server when its time has come, until `stop`. One node reads
/// each: the row is the lease. A server that takes its time takes it from its own tenant only.
pub async fn keep_in_sync(state: AuthState, stop: CancellationToken) {
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut listener = upstreams::listener(&state.store);
    let mut looks = FuturesUnordered::new();
    let mut running: Vec<(TenantId, SourceId)> = Vec::new();
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            Some(done) = looks.next(), if !looks.is_empty() => running.retain(|one| *one != done),
            _ = ticks.tick() => {}
            _ = listener.notified() => {}
        }
        let room = AT_ONCE.saturating_sub(running.len());
        if room == 0 {
            continue;
        }
        match take_due(&state, room, &running).await {
            Ok(due) => {
                for one in due {
                    running.push(one);
                    looks.push(look_after(&state, one));
                }
            }
            Err(error) => {
                tracing::debug!(
                    error = &error as &dyn std::error::Error,
                    "cannot ask which upstream servers are due"
                );
            }
        }
    }
}

/// One look, and what came of it.
async fn look_after(
    state: &AuthState,
    (tenant, source): (TenantId, SourceId),
) -> (TenantId, SourceId) {
    let by = (Actor::System, &audit::Origin::default());
    match sync(state, tenant, source, Why::Look, by).await {
        Ok(Synced::Same) | Err(SyncError::Unknown) => {}
        Ok(Synced::Applied(changes)) => {
            tracing::info!(tenant.id = %tenant, source.id = %source, changes = changes.len(), "an upstream server changed");
        }
        Ok(Synced::Held(_)) => {
            tracing::info!(tenant.id = %tenant, source.id = %source, "changes of an upstream server wait");
        }
        Err(error) => {
            tracing::debug!(tenant.id = %tenant, source.id = %source, reason = %error, "an upstream server could not be looked at");
        }
    }
    (tenant, source)
}

async fn take_due(
    state: &AuthState,
    room: usize,
    running: &[(TenantId, SourceId)],
) -> Result<Vec<(TenantId, SourceId)>, StorageError> {
    let sources: Vec<SourceId> = running.iter().map(|(_, source)| *source).collect();
    let has_enough = |tenant: &TenantId| {
        let own = running.iter().filter(|(of, _)| of == tenant).count();
        own >= AT_ONCE_OF_A_TENANT
    };
    let mut tenants: Vec<TenantId> = running.iter().map(|(tenant, _)| *tenant).collect();
    tenants.retain(has_enough);
    let mut tx = state.store.system(Reason::Upstreams).await?;
    let now = state.now();
    let room = i64::try_from(room).unwrap_or(i64::MAX);
    let due = upstreams::take_due(&mut tx, now, now + spread(), room, &tenants, &sources).await?;
    tx.commit().await?;
    Ok(due)
}
