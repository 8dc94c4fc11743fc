//! The identity provider that members of a workspace must use (AUTH-F7). It is checked
//! wherever a person acts in the workspace.

use portolan_model::{id::TenantId, member::Role};
use portolan_storage::{StorageError, SystemTx, accounts::single_sign_on as stored};

use crate::{session::BrowserSession, target::Target};

/// Returns true if the workspace requires its provider, and this session did not use it. An owner
/// with a passkey is exempt, because the provider may be broken.
pub async fn unmet(
    tx: &mut SystemTx,
    tenant: TenantId,
    role: Role,
    session: &BrowserSession,
) -> Result<bool, StorageError> {
    let Some(required) = stored::required(tx, tenant).await? else {
        return Ok(false);
    };
    if role == Role::Owner && has_passkey(session) {
        return Ok(false);
    }
    Ok(!stored::has_step(tx, session.id, tenant, required).await?)
}

/// Returns true if the person signed in with a passkey.
pub fn has_passkey(session: &BrowserSession) -> bool {
    session
        .amr
        .iter()
        .any(|word| word == "hwk" || word == "swk")
}

/// The path to a workspace's provider, and back to `target`.
pub fn path(slug: &str, target: &Target) -> String {
    target.on(&format!("/login/company/{slug}"))
}
