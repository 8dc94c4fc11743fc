//! Requirements of a workspace on a session, apart from the person's role. The session must open
//! the workspace, come from its required provider (AUTH-F7), and include its required factor
//! (AUTH-L14). The console, consent and all other uses share this check.

pub mod second_factor;
pub mod single_sign_on;

use portolan_model::{factor::SecondFactor, id::TenantId, member::Role};
use portolan_storage::{StorageError, SystemTx};

use crate::{session::BrowserSession, target::Target};

/// A requirement that a session does not meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessRequirement {
    /// The session belongs to another workspace's provider, so this workspace does not exist for it
    /// (CASE-107).
    Everything,
    /// The sign-in with the workspace's provider.
    SingleSignOn,
    /// A second factor.
    Factor(SecondFactor),
}

impl AccessRequirement {
    /// The path of the page that meets the requirement, and leads back to `target`.
    pub fn path(self, slug: &str, target: &Target) -> String {
        match self {
            Self::Everything => target.on("/login"),
            Self::SingleSignOn => single_sign_on::path(slug, target),
            Self::Factor(_) => second_factor::path(slug, target),
        }
    }
}

/// The first requirement that this session does not meet in this workspace, if any.
pub async fn unmet(
    tx: &mut SystemTx,
    tenant: TenantId,
    role: Role,
    session: &BrowserSession,
) -> Result<Option<AccessRequirement>, StorageError> {
    if !session.opens(tenant) {
        return Ok(Some(AccessRequirement::Everything));
    }
    // The provider is checked before the factor.
    if single_sign_on::unmet(tx, tenant, role, session).await? {
        return Ok(Some(AccessRequirement::SingleSignOn));
    }
    let rule = second_factor::unmet(tx, tenant, session).await?;
    Ok(rule.map(AccessRequirement::Factor))
}
