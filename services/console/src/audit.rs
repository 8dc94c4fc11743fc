//! The audit log of a workspace.

use axum::{
    Json,
    body::Body,
    extract::State,
    response::{IntoResponse, Response},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use futures_util::stream;
use http::header;
use portolan_model::{
    id::{AuditId, UserId},
    member::Action,
};
use portolan_site::{
    console_error::ConsoleError, request_context::RequestContext, state::AuthState,
};
use portolan_storage::{StorageError, platform::audit};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use time::OffsetDateTime;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::{
    input::QueryParameters,
    listing::{Listing, Pages},
    workspace::Workspace,
};

/// Entries of one page.
const PAGE: usize = 50;

/// Entries of one read of an export.
const EXPORT_PAGE: i64 = 500;

/// Name of the list in its cursors.
const LIST: &str = "audit";

/// An entry of the audit log.
#[derive(Debug, Serialize, ToSchema)]
pub struct AuditEvent {
    #[schema(value_type = String)]
    id: AuditId,
    #[serde(with = "time::serde::rfc3339")]
    at: OffsetDateTime,
    actor: AuditActor,
    /// The action, as `noun.verb`: `source.created`.
    #[schema(example = "source.created")]
    action: String,
    target_kind: String,
    target_id: String,
    /// `ok` or `refused`.
    outcome: String,
    /// Details, which depend on the action.
    #[schema(value_type = Object)]
    detail: Value,
}

impl From<audit::AuditEntry> for AuditEvent {
    fn from(entry: audit::AuditEntry) -> Self {
        Self {
            id: entry.id,
            at: entry.at,
            actor: AuditActor {
                kind: entry.actor_kind,
                user_id: entry.actor,
            },
            action: entry.action,
            target_kind: entry.target_kind,
            target_id: entry.target_id,
            outcome: entry.outcome,
            detail: entry.detail,
        }
    }
}

/// A line of the export: the entry, and its position in the hash chain of the log.
#[derive(Serialize)]
struct ExportedEvent {
    #[serde(flatten)]
    event: AuditEvent,
    #[serde(skip_serializing_if = "Option::is_none")]
    chain: Option<ExportedPlace>,
}

/// `hash` is the SHA-256 of the bytes of `previous` followed by `entry`. The first entry follows 32
/// zero bytes.
#[derive(Serialize)]
struct ExportedPlace {
    seq: i64,
    /// Base64.
    previous: String,
    /// Base64.
    hash: String,
    entry: String,
}

impl From<audit::AuditEntry> for ExportedEvent {
    fn from(mut entry: audit::AuditEntry) -> Self {
        let chain = entry.place.take().map(|place| ExportedPlace {
            seq: place.seq,
            previous: STANDARD.encode(place.previous),
            hash: STANDARD.encode(place.hash),
            entry: place.entry,
        });
        Self {
            event: entry.into(),
            chain,
        }
    }
}

/// The actor of an entry.
#[derive(Debug, Serialize, ToSchema)]
pub struct AuditActor {
    /// `user`, `access_token` of the workspace, which `detail.access_token` names,
    /// `service_account`, which `detail.service_account` names, `anonymous`, `system`, or `operator`
    /// of the installation, whom `detail.operator` names.
    kind: String,
    /// The person, for `user`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, nullable = false)]
    user_id: Option<UserId>,
}

/// The wanted page.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct AuditQuery {
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

/// The audit log of a workspace, newest first. For admins and owners.
#[utoipa::path(get, path = "/workspaces/{ws}/audit", tag = "workspaces",
    params(("ws" = String, Path, description = "Slug"), AuditQuery),
    responses((status = 200, description = "A page of entries.", body = Listing<AuditEvent>)))]
pub(crate) async fn list_audit_events(
    State(state): State<AuthState>,
    workspace: Workspace,
    QueryParameters(query): QueryParameters<AuditQuery>,
) -> Result<Json<Listing<AuditEvent>>, ConsoleError> {
    workspace.require(Action::Administer)?;
    let pages = Pages {
        keys: &state.keys,
        list: LIST,
        workspace: workspace.id,
        size: PAGE,
    };
    let before = pages.position(query.cursor.as_deref(), |bytes| {
        Uuid::from_slice(bytes).map(AuditId::from_uuid).ok()
    })?;
    let mut tx = state.store.tenant(workspace.id).await?;
    let mut entries = audit::list(&mut tx, before, pages.limit()).await?;
    let next_cursor = pages.cut(&mut entries, |last| last.id.uuid().as_bytes().to_vec());
    let items = entries.into_iter().map(AuditEvent::from);
    Ok(Json(Listing {
        items: items.collect(),
        next_cursor,
    }))
}

/// The whole audit log as JSON Lines, newest first, one entry a line as in the list. Each line has
/// the entry's position in the hash chain that reveals later changes (`chain`: `seq`, `previous`,
/// `hash`, `entry`). For admins and owners.
#[utoipa::path(get, path = "/workspaces/{ws}/audit/export", tag = "workspaces", params(("ws" = String, Path, description = "Slug")),
    responses((status = 200, description = "One entry a line.", body = String, content_type = "application/jsonl")))]
pub(crate) async fn export_audit_events(
    State(state): State<AuthState>,
    workspace: Workspace,
    context: RequestContext,
) -> Result<Response, ConsoleError> {
    workspace.require(Action::Administer)?;
    let mut tx = state.store.tenant(workspace.id).await?;
    let event = workspace.event(
        "audit.exported",
        "tenant",
        workspace.id,
        serde_json::json!({}),
    );
    audit::record(&mut tx, &event, &context.origin(), state.now()).await?;
    tx.commit().await?;
    let name = format!("attachment; filename=\"{}-audit.jsonl\"", workspace.slug);
    let headers = [
        (header::CONTENT_TYPE, "application/jsonl".to_owned()),
        (header::CONTENT_DISPOSITION, name),
    ];
    let tenant = workspace.id;
    // Read page by page, so that a log of years is never in memory as a whole. If the database
    // fails, the response ends early.
    let pages = stream::try_unfold(
        (state, None, false),
        move |(state, before, is_over)| async move {
            if is_over {
                return Ok::<_, StorageError>(None);
            }
            let mut tx = state.store.tenant(tenant).await?;
            let entries = audit::list(&mut tx, before, EXPORT_PAGE).await?;
            drop(tx);
            let before = entries.last().map(|entry| entry.id);
            let is_over = i64::try_from(entries.len()).is_ok_and(|count| count < EXPORT_PAGE);
            let mut lines = Vec::new();
            for entry in entries {
                // The entry was read as JSON, so it can be written as JSON.
                if serde_json::to_writer(&mut lines, &ExportedEvent::from(entry)).is_ok() {
                    lines.push(b'\n');
                }
            }
            Ok(Some((Bytes::from(lines), (state, before, is_over))))
        },
    );
    Ok((headers, Body::from_stream(pages)).into_response())
}
