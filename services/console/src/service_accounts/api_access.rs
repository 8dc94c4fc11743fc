//! Access of service accounts to the management API (API-23). The token endpoint gives the tokens.

use axum::{Json, extract::State};
use http::StatusCode;
use portolan_model::{
    api_scope::ApiScope,
    id::ServiceAccountKind,
    member::{Action, Role},
};
use portolan_site::{
    console_error::ConsoleError, request_context::RequestContext, state::AuthState,
    target::ConsolePage,
};
use portolan_storage::{Reason, accounts::api_access as stored, platform::audit};
use serde::{Deserialize, Serialize};
use serde_json::json;
use time::OffsetDateTime;
use utoipa::ToSchema;

use super::{ServiceAccount, found, unknown, view};
use crate::{
    input::{JsonBody, PathId},
    token_rights::{ScopeName, checked_scopes, may_give_role},
    workspace::Workspace,
    workspaces::RoleName,
};

/// The tokens of the management API that a service account gets.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ApiAccess {
    /// The role of a token.
    #[schema(value_type = RoleName)]
    role: Role,
    /// The permissions of a token.
    #[schema(value_type = Vec<ScopeName>)]
    scopes: Vec<ApiScope>,
    /// Time of the last change.
    #[serde(with = "time::serde::rfc3339")]
    changed_at: OffsetDateTime,
    /// Time of the last token since then.
    #[serde(
        with = "time::serde::rfc3339::option",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(nullable = false)]
    last_used_at: Option<OffsetDateTime>,
}

impl From<stored::ApiAccess> for ApiAccess {
    fn from(access: stored::ApiAccess) -> Self {
        Self {
            role: access.role,
            scopes: access.scopes,
            changed_at: access.changed_at,
            last_used_at: access.last_used_at,
        }
    }
}

/// Access to the management API to give.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewApiAccess {
    /// The role of a token: `admin` at most, and no stronger one than the person's own.
    #[schema(value_type = RoleName)]
    role: Role,
    /// The permissions of a token: at least one.
    #[schema(value_type = Vec<ScopeName>, min_items = 1)]
    scopes: Vec<ApiScope>,
}

/// Gives a service account access to the management API, or changes it: the token endpoint gives
/// the account a token of the workspace for 15 minutes. Tokens that it has for this API are refused
/// from their next request on.
#[utoipa::path(put, path = "/workspaces/{ws}/service-accounts/{id}/api-access", tag = "keys",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Account")),
    request_body = NewApiAccess, responses((status = 200, description = "Given.", body = ServiceAccount)))]
pub(crate) async fn give_api_access(
    State(state): State<AuthState>,
    workspace: Workspace,
    PathId(id): PathId<ServiceAccountKind>,
    context: RequestContext,
    JsonBody(new): JsonBody<NewApiAccess>,
) -> Result<Json<ServiceAccount>, ConsoleError> {
    workspace.require(Action::Administer)?;
    may_give_role(&workspace, new.role)?;
    let scopes = checked_scopes(&new.scopes)?;
    let now = state.now();
    workspace.require_recent(now, ConsolePage::Keys)?;
    let mut tx = state.store.system(Reason::Workspaces).await?;
    let rights = (new.role, scopes.as_slice());
    if !stored::give(&mut tx, workspace.id, id, rights, now).await? {
        return Err(unknown());
    }
    let account = view(&mut tx, &workspace, id).await?;
    let detail = json!({ "name": account.name, "role": new.role, "scopes": scopes });
    let action = "service_account.api_access_given";
    let event = workspace.event(action, "service_account", id, detail);
    audit::record(&mut tx, &event, &context.origin(), now).await?;
    tx.commit().await?;
    Ok(Json(account))
}

/// Takes the access to the management API away from a service account. Tokens that it has for this
/// API are refused from their next request on; those for MCP stay.
#[utoipa::path(delete, path = "/workspaces/{ws}/service-accounts/{id}/api-access", tag = "keys",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Account")),
    responses((status = 204, description = "Taken away.")))]
pub(crate) async fn take_api_access(
    State(state): State<AuthState>,
    workspace: Workspace,
    PathId(id): PathId<ServiceAccountKind>,
    context: RequestContext,
) -> Result<StatusCode, ConsoleError> {
    workspace.require(Action::Administer)?;
    let mut tx = state.store.system(Reason::Workspaces).await?;
    let account = found(&mut tx, &workspace, id).await?;
    if !stored::take_away(&mut tx, workspace.id, id).await? {
        return Err(ConsoleError::not_found(
            "the access of this service account",
        ));
    }
    let detail = json!({ "name": account.name });
    let action = "service_account.api_access_taken";
    let event = workspace.event(action, "service_account", id, detail);
    audit::record(&mut tx, &event, &context.origin(), state.now()).await?;
    tx.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}
