//! What a workspace asks of how its members sign in (`auth.md` L14): looked at wherever a person acts in it.

use portolan_model::{factor::SecondFactor, id::TenantId};
use portolan_storage::{StorageError, SystemTx, factor_rules};

use crate::{login::Target, session::BrowserSession};

/// The rule that this session does not meet, if there is one.
pub(crate) async fn lacking(
    tx: &mut SystemTx,
    tenant: TenantId,
    session: &BrowserSession,
) -> Result<Option<SecondFactor>, StorageError> {
    // Whoever comes by the workspace's own provider was asked there what the workspace wants asked.
    if session.only_tenant == Some(tenant) {
        return Ok(None);
    }
    let rule = factor_rules::of(tx, tenant).await?;
    Ok((!rule.is_met_by(&session.amr)).then_some(rule))
}

/// The way to what is lacking, and back to `target`.
pub(crate) fn path(slug: &str, target: &Target) -> String {
    format!("/account/factor?workspace={slug}&request={target}")
}
