//! The workspace's rule for the sign-in of its members (AUTH-L14). It is checked wherever a
//! person acts in the workspace.

use portolan_model::{factor::SecondFactor, id::TenantId};
use portolan_storage::{StorageError, SystemTx, oauth::factor_rules};

use crate::{session::BrowserSession, target::Target};

/// The rule that this session does not meet, if there is one.
pub async fn unmet(
    tx: &mut SystemTx,
    tenant: TenantId,
    session: &BrowserSession,
) -> Result<Option<SecondFactor>, StorageError> {
    // For a sign-in with the workspace's own provider, that provider is responsible for further
    // factors.
    if session.only_tenant == Some(tenant) {
        return Ok(None);
    }
    let rule = factor_rules::of(tx, tenant).await?;
    Ok((!rule.is_met_by(&session.amr)).then_some(rule))
}

/// The path of the page that provides the factor, and leads back to `target`.
pub fn path(slug: &str, target: &Target) -> String {
    format!("/account/factor?workspace={slug}&request={target}")
}
