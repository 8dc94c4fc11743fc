//! Changes of address that wait for the code that went to the new one (AUTH-L10).

use portolan_model::{
    Timestamp,
    email::EmailAddress,
    id::{EmailChangeId, SessionId, UserId},
};

use crate::{StorageError, SystemTx, accounts::verifications};

/// A change that waits.
#[derive(Debug, Clone)]
pub struct EmailChange {
    /// Its id.
    pub id: EmailChangeId,
    /// The new address, as typed.
    pub address: String,
    /// The same in the form that is compared.
    pub address_norm: String,
    /// Wrong codes so far.
    pub attempts: i32,
}

/// Opens a change in place of the one that the person had.
pub async fn open(
    tx: &mut SystemTx,
    id: EmailChangeId,
    user: UserId,
    session: SessionId,
    address: &EmailAddress,
    code_mac: &[u8; 32],
    now: Timestamp,
) -> Result<(), StorageError> {
    sqlx::query!(
        "insert into email_changes (id, user_id, address, address_norm, code_mac, session_id, created_at, expires_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8)
         on conflict (user_id) do update set id = excluded.id, address = excluded.address, address_norm = excluded.address_norm,
           code_mac = excluded.code_mac, session_id = excluded.session_id, attempts = 0, created_at = excluded.created_at,
           expires_at = excluded.expires_at",
        id.uuid(),
        user.uuid(),
        address.as_typed(),
        address.normalised(),
        code_mac,
        session.uuid(),
        now,
        now + verifications::CODE_LIFE,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// The change that waits in this session.
pub async fn find_open(
    tx: &mut SystemTx,
    user: UserId,
    session: SessionId,
    now: Timestamp,
) -> Result<Option<EmailChange>, StorageError> {
    let row = sqlx::query!(
        "select id, address, address_norm, attempts from email_changes where user_id = $1 and session_id = $2 and expires_at > $3",
        user.uuid(),
        session.uuid(),
        now,
    )
    .fetch_optional(tx.connection())
    .await?;
    Ok(row.map(|row| EmailChange {
        id: row.id.into(),
        address: row.address,
        address_norm: row.address_norm,
        attempts: row.attempts,
    }))
}

/// Counts one try and returns the values to compare with; `None` when no try is left. The row stays
/// locked until the transaction ends. Commit also after a wrong code.
pub async fn count_attempt(
    tx: &mut SystemTx,
    id: EmailChangeId,
    now: Timestamp,
) -> Result<Option<[u8; 32]>, StorageError> {
    let mac = sqlx::query_scalar!(
        "update email_changes set attempts = attempts + 1 where id = $1 and expires_at > $2 and attempts < $3 returning code_mac",
        id.uuid(),
        now,
        verifications::MAX_ATTEMPTS,
    )
    .fetch_optional(tx.connection())
    .await?;
    mac.map(|bytes| {
        <[u8; 32]>::try_from(bytes.as_slice()).map_err(|_| StorageError::Inconsistent {
            table: "email_changes",
            column: "code_mac",
        })
    })
    .transpose()
}

/// Uses a change up, once.
pub async fn consume(tx: &mut SystemTx, id: EmailChangeId) -> Result<bool, StorageError> {
    let done = sqlx::query!("delete from email_changes where id = $1", id.uuid())
        .execute(tx.connection())
        .await?;
    Ok(done.rows_affected() == 1)
}
