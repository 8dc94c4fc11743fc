//! Pending sign-ins at an identity provider (AUTH-F1). Each is used once, in the browser that began
//! it.

use portolan_model::{
    Digest, Timestamp,
    id::{SessionId, TenantId, UserId},
};
use serde_json::Value;
use time::Duration;

use crate::{StorageError, SystemTx};

/// How long a browser may be on its way.
pub const LIFE: Duration = Duration::minutes(10);

/// The purpose of a sign-in at a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginPurpose {
    /// To sign in.
    SignIn,
    /// To prove again who is signed in (AUTH-S2).
    Confirm,
    /// To connect the account there with the one that is signed in here.
    Link,
}

impl LoginPurpose {
    const fn as_str(self) -> &'static str {
        match self {
            Self::SignIn => "sign_in",
            Self::Confirm => "confirm",
            Self::Link => "link",
        }
    }

    fn read(text: &str) -> Result<Self, StorageError> {
        [Self::SignIn, Self::Confirm, Self::Link]
            .into_iter()
            .find(|one| one.as_str() == text)
            .ok_or(StorageError::Inconsistent {
                table: "login_attempts",
                column: "purpose",
            })
    }
}

/// The signed-in person when a browser left for the provider, where that matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signed {
    /// Whose session.
    pub user: UserId,
    /// Which.
    pub session: SessionId,
}

/// A way to be begun.
#[derive(Debug)]
pub struct NewAttempt<'a> {
    /// Digest of `state`.
    pub state: &'a Digest,
    /// Name or id of the provider.
    pub provider: &'a str,
    /// Whose provider, if it is one of a tenant.
    pub tenant: Option<TenantId>,
    /// What for.
    pub purpose: LoginPurpose,
    /// Which browser.
    pub browser: &'a Digest,
    /// The signed-in person; given unless the purpose is to sign in.
    pub signed: Option<Signed>,
    /// Where to go on, in words of ours.
    pub target: &'a str,
    /// The provider's addresses, as they were found.
    pub server: &'a Value,
    /// Verifier and nonce, sealed under `state`.
    pub sealed: &'a [u8],
}

/// A way that was come back from.
#[derive(Debug, Clone)]
pub struct LoginAttempt {
    /// Whose provider, if it is one of a tenant.
    pub tenant: Option<TenantId>,
    /// What for.
    pub purpose: LoginPurpose,
    /// The signed-in person, if any.
    pub signed: Option<Signed>,
    /// Where to go on.
    pub target: String,
    /// The provider's addresses.
    pub server: Value,
    /// Verifier and nonce, sealed under `state`.
    pub sealed: Vec<u8>,
}

/// Notes that a browser is on its way.
pub async fn begin(
    tx: &mut SystemTx,
    new: &NewAttempt<'_>,
    now: Timestamp,
) -> Result<(), StorageError> {
    sqlx::query!(
        "insert into login_attempts
           (state_digest, provider, tenant_id, purpose, browser_digest, user_id, session_id, target, server, sealed, created_at, expires_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
        new.state.as_bytes(),
        new.provider,
        new.tenant.map(TenantId::uuid),
        new.purpose.as_str(),
        new.browser.as_bytes(),
        new.signed.map(|signed| signed.user.uuid()),
        new.signed.map(|signed| signed.session.uuid()),
        new.target,
        new.server,
        new.sealed,
        now,
        now + LIFE,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Uses up the attempt with this state, provider and browser, once, before it expires (CASE-158).
/// `None` if there is none.
pub async fn take(
    tx: &mut SystemTx,
    state: &Digest,
    provider: &str,
    browser: &Digest,
    now: Timestamp,
) -> Result<Option<LoginAttempt>, StorageError> {
    let row = sqlx::query!(
        "update login_attempts set used_at = $4
         where state_digest = $1 and provider = $2 and browser_digest = $3 and used_at is null and expires_at > $4
         returning tenant_id, purpose, user_id, session_id, target, server, sealed",
        state.as_bytes(),
        provider,
        browser.as_bytes(),
        now,
    )
    .fetch_optional(tx.connection())
    .await?;
    row.map(|row| {
        Ok(LoginAttempt {
            tenant: row.tenant_id.map(TenantId::from_uuid),
            purpose: LoginPurpose::read(&row.purpose)?,
            signed: row
                .user_id
                .zip(row.session_id)
                .map(|(user, session)| Signed {
                    user: user.into(),
                    session: session.into(),
                }),
            target: row.target,
            server: row.server,
            sealed: row.sealed,
        })
    })
    .transpose()
}
