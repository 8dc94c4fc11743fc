//! The rights of a token of the management API: its scopes, and the role of one that acts as the
//! workspace (API-3, API-5). Tokens, trusted pipelines and service accounts share their checks.

use portolan_model::{api_scope::ApiScope, member::Role};
use portolan_site::console_error::ConsoleError;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{members::may_govern, workspace::Workspace};

/// A scope of a token.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ApiScope)]
#[expect(
    dead_code,
    reason = "only its schema is used: the value is model::ApiScope"
)]
pub(crate) enum ScopeName {
    #[serde(rename = "workspace:read")]
    WorkspaceRead,
    #[serde(rename = "workspace:write")]
    WorkspaceWrite,
    #[serde(rename = "webhooks:write")]
    WebhooksWrite,
    #[serde(rename = "registry:read")]
    RegistryRead,
    #[serde(rename = "registry:write")]
    RegistryWrite,
    #[serde(rename = "credentials:write")]
    CredentialsWrite,
    #[serde(rename = "access:read")]
    AccessRead,
    #[serde(rename = "access:write")]
    AccessWrite,
    #[serde(rename = "calls:read")]
    CallsRead,
    #[serde(rename = "tools:call")]
    ToolsCall,
    #[serde(rename = "audit:read")]
    AuditRead,
}

/// The chosen scopes, in the order of documents: at least one.
pub(crate) fn checked_scopes(chosen: &[ApiScope]) -> Result<Vec<ApiScope>, ConsoleError> {
    let all = ApiScope::ALL.into_iter();
    let scopes: Vec<_> = all.filter(|scope| chosen.contains(scope)).collect();
    if scopes.is_empty() {
        let message = "Choose at least one scope.";
        return Err(ConsoleError::invalid("scopes_invalid", message).field("scopes"));
    }
    Ok(scopes)
}

/// Refuses a role that is stronger than the person's own, and that of owners.
pub(crate) fn may_give_role(workspace: &Workspace, role: Role) -> Result<(), ConsoleError> {
    may_govern(workspace, role)?;
    if role == Role::Owner {
        let message = "A token is admin at most: owners are people.";
        return Err(ConsoleError::invalid("role_invalid", message).field("role"));
    }
    Ok(())
}
