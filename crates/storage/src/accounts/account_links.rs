//! Links that were mailed to a person: for a new password, and to undo a change of address
//! (AUTH-L9, AUTH-L10).

use portolan_model::{
    Digest, Timestamp,
    id::{LinkId, UserId},
};
use time::Duration;

use crate::{StorageError, SystemTx};

/// The action that a link allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkPurpose {
    /// Choosing a new password without the old one.
    Reset,
    /// Going back to the former address.
    Undo,
}

impl LinkPurpose {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Reset => "reset",
            Self::Undo => "undo",
        }
    }

    /// How long it works: half an hour for a password, three days for an address.
    pub const fn life(self) -> Duration {
        match self {
            Self::Reset => Duration::minutes(30),
            Self::Undo => Duration::hours(72),
        }
    }
}

/// A link that works.
#[derive(Debug, Clone)]
pub struct Link {
    /// Its id.
    pub id: LinkId,
    /// Whose.
    pub user: UserId,
    /// The address that it is about, as typed.
    pub address: String,
    /// The same in the form that is compared.
    pub address_norm: String,
    /// When it was opened.
    pub created_at: Timestamp,
}

/// Creates a link. An open link of the same person and purpose is used up, so that only the newest
/// is valid (CASE-152).
pub async fn open(
    tx: &mut SystemTx,
    purpose: LinkPurpose,
    user: UserId,
    address: (&str, &str),
    digest: &Digest,
    now: Timestamp,
) -> Result<(), StorageError> {
    // Two at once take turns, or one of them would meet the unique index.
    sqlx::query!("select id from users where id = $1 for update", user.uuid())
        .fetch_optional(tx.connection())
        .await?;
    sqlx::query!(
        "update account_links set used_at = $3 where user_id = $1 and purpose = $2 and used_at is null",
        user.uuid(),
        purpose.as_str(),
        now,
    )
    .execute(tx.connection())
    .await?;
    sqlx::query!(
        "insert into account_links (id, purpose, user_id, address, address_norm, digest, created_at, expires_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8)",
        LinkId::generate().uuid(),
        purpose.as_str(),
        user.uuid(),
        address.0,
        address.1,
        digest.as_bytes(),
        now,
        now + purpose.life(),
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// A plain read: a mail scanner that follows a link does no harm (CASE-150).
pub async fn find(
    tx: &mut SystemTx,
    purpose: LinkPurpose,
    digest: &Digest,
    now: Timestamp,
) -> Result<Option<Link>, StorageError> {
    let row = sqlx::query!(
        "select l.id, l.user_id, l.address, l.address_norm, l.created_at from account_links l join users u on u.id = l.user_id and u.status = 'active'
         where l.digest = $1 and l.purpose = $2 and l.used_at is null and l.expires_at > $3",
        digest.as_bytes(),
        purpose.as_str(),
        now,
    )
    .fetch_optional(tx.connection())
    .await?;
    Ok(row.map(|row| Link {
        id: row.id.into(),
        user: row.user_id.into(),
        address: row.address,
        address_norm: row.address_norm,
        created_at: row.created_at,
    }))
}

/// Uses a link up, once. False if it was used, replaced or is too old.
pub async fn consume(tx: &mut SystemTx, id: LinkId, now: Timestamp) -> Result<bool, StorageError> {
    let done = sqlx::query!(
        "update account_links set used_at = $2 where id = $1 and used_at is null and expires_at > $2",
        id.uuid(),
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Uses up every open link of a person, for example after they changed the password by other means.
pub async fn consume_all(
    tx: &mut SystemTx,
    purpose: LinkPurpose,
    user: UserId,
    now: Timestamp,
) -> Result<(), StorageError> {
    sqlx::query!(
        "update account_links set used_at = $3 where user_id = $1 and purpose = $2 and used_at is null",
        user.uuid(),
        purpose.as_str(),
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}
