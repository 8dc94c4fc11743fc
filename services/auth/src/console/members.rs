//! Who belongs to a workspace.

use axum::{Json, extract::State};
use portolan_model::{
    id::UserId,
    member::{Action, Role},
};
use portolan_storage::{Reason, members};
use serde::Serialize;
use time::OffsetDateTime;
use utoipa::ToSchema;

use super::{Listing, error::ConsoleError, workspace::Workspace, workspaces::RoleName};
use crate::state::AuthState;

/// A member.
#[derive(Debug, Serialize, ToSchema)]
pub struct Member {
    /// Who.
    #[schema(value_type = String, example = "usr_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a")]
    user_id: UserId,
    /// As they call themselves.
    display_name: String,
    /// Primary address.
    email: String,
    /// Role.
    #[schema(value_type = RoleName)]
    role: Role,
    /// Since when.
    #[serde(with = "time::serde::rfc3339")]
    since: OffsetDateTime,
}

/// The members of a workspace, strongest role first.
#[utoipa::path(get, path = "/workspaces/{ws}/members", tag = "workspaces", params(("ws" = String, Path, description = "Slug")),
    responses((status = 200, description = "The members.", body = Listing<Member>)))]
pub(crate) async fn list_members(
    State(state): State<AuthState>,
    workspace: Workspace,
) -> Result<Json<Listing<Member>>, ConsoleError> {
    workspace.require(Action::Read)?;
    let mut tx = state.store.system(Reason::Workspaces).await?;
    let items = members::list(&mut tx, workspace.id).await?;
    let items = items.into_iter().map(|member| Member {
        user_id: member.user,
        display_name: member.display_name,
        email: member.email,
        role: member.role,
        since: member.since,
    });
    Ok(Json(Listing::whole(items.collect())))
}
