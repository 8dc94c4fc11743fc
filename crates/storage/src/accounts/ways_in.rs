//! How a person can sign in: what may be taken away depends on what is left (AUTH-F6).

use portolan_model::id::{IdentityLinkId, PasskeyId, UserId};
use uuid::Uuid;

use crate::{StorageError, SystemTx};

/// The ways in that a person has.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WaysIn {
    /// There is a password.
    pub has_password: bool,
    /// Providers of the platform with whom the person has an account that is connected, one for
    /// each such account.
    pub providers: Vec<String>,
    /// How many passkeys there are that are bound to the host of today.
    pub passkeys: i64,
}

/// A way to sign in that its person can remove, other than a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WayIn {
    /// An account at another service.
    Identity(IdentityLinkId),
    /// A passkey.
    Passkey(PasskeyId),
}

impl WayIn {
    pub(crate) const fn uuid(self) -> Uuid {
        match self {
            Self::Identity(id) => id.uuid(),
            Self::Passkey(id) => id.uuid(),
        }
    }
}

/// Counts them. The person's row stays locked until the transaction ends, so the later of two
/// removals sees the result of the earlier one.
pub async fn of(tx: &mut SystemTx, user: UserId, host: &str) -> Result<WaysIn, StorageError> {
    sqlx::query!(
        "select id from users where id = $1 for no key update",
        user.uuid()
    )
    .fetch_optional(tx.connection())
    .await?;
    let row = sqlx::query!(
        r#"select exists (select 1 from user_passwords where user_id = $1 and retired_at is null) as "has_password!",
             array(select provider from identity_links where user_id = $1 and tenant_id is null) as "providers!",
             (select count(*) from webauthn_credentials where user_id = $1 and rp_id = $2) as "passkeys!""#,
        user.uuid(),
        host,
    )
    .fetch_one(tx.connection())
    .await?;
    Ok(WaysIn {
        has_password: row.has_password,
        providers: row.providers,
        passkeys: row.passkeys,
    })
}
