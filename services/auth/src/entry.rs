//! Whether a session may act in a workspace, beside its person's role: it opens it, its person came from where the workspace wants (F7), and
//! proved themselves as it wants (L14). One question for the console, consent and whatever else is done there.

use portolan_model::{factor::SecondFactor, id::TenantId, member::Role};
use portolan_storage::{StorageError, SystemTx};

use crate::{factor, login::Target, session::BrowserSession, sso};

/// What a session lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lacking {
    /// It is one of another workspace's provider: to it this one is not there (case 107).
    Everything,
    /// The proof of the workspace's provider.
    Company,
    /// A factor.
    Factor(SecondFactor),
}

impl Lacking {
    /// The way to it, and back to `target`.
    pub(crate) fn path(self, slug: &str, target: &Target) -> String {
        match self {
            Self::Everything => target.on("/login"),
            Self::Company => sso::path(slug, target),
            Self::Factor(_) => factor::path(slug, target),
        }
    }
}

/// What this session lacks in this workspace, if anything.
pub(crate) async fn lacking(
    tx: &mut SystemTx,
    tenant: TenantId,
    role: Role,
    session: &BrowserSession,
) -> Result<Option<Lacking>, StorageError> {
    if !session.opens(tenant) {
        return Ok(Some(Lacking::Everything));
    }
    // Where the person has to come from, before how.
    if sso::lacking(tx, tenant, role, session).await? {
        return Ok(Some(Lacking::Company));
    }
    let rule = factor::lacking(tx, tenant, session).await?;
    Ok(rule.map(Lacking::Factor))
}
