//! Deleted items that can be restored.

use axum::{Json, extract::State};
use portolan_model::{
    id::{PromptId, ResourceId, ServerId, SourceId},
    member::Action,
};
use portolan_site::{console_error::ConsoleError, state::AuthState};
use portolan_storage::registry::trash::{self, DeletedItem, KEPT};
use serde::Serialize;
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::{listing::Listing, workspace::Workspace};

/// A deleted item. `POST …/{kind}s/{id}/restore` restores it.
#[derive(Debug, Serialize, ToSchema)]
pub struct DeletedThing {
    kind: DeletedKind,
    id: String,
    name: String,
    #[serde(with = "time::serde::rfc3339")]
    deleted_at: OffsetDateTime,
    /// Time when it is removed permanently.
    #[serde(with = "time::serde::rfc3339")]
    restorable_until: OffsetDateTime,
}

/// The kind of a deleted item.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeletedKind {
    /// A source of tools.
    Source,
    /// A server.
    Server,
    /// A prompt.
    Prompt,
    /// A resource.
    Resource,
}

fn view(entry: DeletedItem) -> DeletedThing {
    use trash::DeletedKind as Kind;
    let (kind, id) = match entry.kind {
        Kind::Source => (DeletedKind::Source, SourceId::from(entry.id).to_string()),
        Kind::Server => (DeletedKind::Server, ServerId::from(entry.id).to_string()),
        Kind::Prompt => (DeletedKind::Prompt, PromptId::from(entry.id).to_string()),
        Kind::Resource => (
            DeletedKind::Resource,
            ResourceId::from(entry.id).to_string(),
        ),
    };
    DeletedThing {
        kind,
        id,
        name: entry.name,
        deleted_at: entry.deleted_at,
        restorable_until: entry.deleted_at + KEPT,
    }
}

/// Deleted sources, servers, prompts and resources that can be restored, newest deletion first.
#[utoipa::path(get, path = "/workspaces/{ws}/trash", tag = "workspaces",
    params(("ws" = String, Path, description = "Slug")),
    responses((status = 200, description = "What can be restored.", body = Listing<DeletedThing>)))]
pub(crate) async fn list_trash(
    State(state): State<AuthState>,
    workspace: Workspace,
) -> Result<Json<Listing<DeletedThing>>, ConsoleError> {
    workspace.require(Action::Read)?;
    let mut tx = state.store.tenant(workspace.id).await?;
    let entries = trash::list(&mut tx, state.now()).await?;
    Ok(Json(Listing::whole(
        entries.into_iter().map(view).collect(),
    )))
}
