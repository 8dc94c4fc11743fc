//! Authenticator apps and recovery codes (AUTH-L11, AUTH-L12). Every code is valid once: one
//! guarded update decides.

use portolan_model::{Timestamp, id::UserId};

use crate::{StorageError, SystemTx};

/// An authenticator app.
#[derive(Debug, Clone)]
pub struct Totp {
    /// The shared secret, sealed with the person's id as associated data.
    pub secret_sealed: Vec<u8>,
    /// Whether one of its codes was right once. Until then it does not count.
    pub is_confirmed: bool,
}

/// The app of a person.
pub async fn totp_of(tx: &mut SystemTx, user: UserId) -> Result<Option<Totp>, StorageError> {
    let row = sqlx::query!(
        "select secret_sealed, confirmed_at from totp_credentials where user_id = $1",
        user.uuid()
    )
    .fetch_optional(tx.connection())
    .await?;
    Ok(row.map(|row| Totp {
        secret_sealed: row.secret_sealed,
        is_confirmed: row.confirmed_at.is_some(),
    }))
}

/// Whether the person has to give a code at sign-in.
pub async fn is_enrolled(tx: &mut SystemTx, user: UserId) -> Result<bool, StorageError> {
    Ok(sqlx::query_scalar!(
        r#"select exists (select 1 from totp_credentials where user_id = $1 and confirmed_at is not null) as "is!""#,
        user.uuid(),
    )
    .fetch_one(tx.connection())
    .await?)
}

/// Adds an unconfirmed app, in place of an earlier unconfirmed one. False if a confirmed app
/// exists: it must be removed first.
pub async fn begin(
    tx: &mut SystemTx,
    user: UserId,
    secret_sealed: &[u8],
    now: Timestamp,
) -> Result<bool, StorageError> {
    let done = sqlx::query!(
        "insert into totp_credentials (user_id, secret_sealed, created_at) values ($1, $2, $3)
         on conflict (user_id) do update set secret_sealed = excluded.secret_sealed, created_at = excluded.created_at, last_step = 0
           where totp_credentials.confirmed_at is null",
        user.uuid(),
        secret_sealed,
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Confirms an app with its first correct code. False if it was confirmed already, or its secret is
/// not the one that was compared.
pub async fn confirm(
    tx: &mut SystemTx,
    user: UserId,
    secret_sealed: &[u8],
    step: i64,
    now: Timestamp,
) -> Result<bool, StorageError> {
    let done = sqlx::query!(
        "update totp_credentials set confirmed_at = $4, last_step = $3
         where user_id = $1 and secret_sealed = $2 and confirmed_at is null and last_step < $3",
        user.uuid(),
        secret_sealed,
        step,
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Uses the code of a step up, once on all nodes (CASE-155).
pub async fn use_step(tx: &mut SystemTx, user: UserId, step: i64) -> Result<bool, StorageError> {
    let done = sqlx::query!(
        "update totp_credentials set last_step = $2 where user_id = $1 and confirmed_at is not null and last_step < $2",
        user.uuid(),
        step,
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Removes app and recovery codes. False if there was no app.
pub async fn remove(tx: &mut SystemTx, user: UserId) -> Result<bool, StorageError> {
    sqlx::query!("delete from recovery_codes where user_id = $1", user.uuid())
        .execute(tx.connection())
        .await?;
    let done = sqlx::query!(
        "delete from totp_credentials where user_id = $1",
        user.uuid()
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Removes an app that was confirmed or created since `since`, and every recovery code, because
/// another person may have made them. True if there was such an app.
pub async fn remove_since(
    tx: &mut SystemTx,
    user: UserId,
    since: Timestamp,
) -> Result<bool, StorageError> {
    sqlx::query!("delete from recovery_codes where user_id = $1", user.uuid())
        .execute(tx.connection())
        .await?;
    let done = sqlx::query!(
        "delete from totp_credentials where user_id = $1 and coalesce(confirmed_at, created_at) >= $2",
        user.uuid(),
        since,
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Puts a new set of recovery codes in the place of the old one.
pub async fn replace_recovery_codes(
    tx: &mut SystemTx,
    user: UserId,
    macs: &[Vec<u8>],
) -> Result<(), StorageError> {
    sqlx::query!("delete from recovery_codes where user_id = $1", user.uuid())
        .execute(tx.connection())
        .await?;
    sqlx::query!(
        "insert into recovery_codes (user_id, code_mac) select $1, mac from unnest($2::bytea[]) as mac",
        user.uuid(),
        macs,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Uses a recovery code up, once. `macs` are those of one code, under each master secret that is
/// known.
pub async fn use_recovery_code(
    tx: &mut SystemTx,
    user: UserId,
    macs: &[Vec<u8>],
    now: Timestamp,
) -> Result<bool, StorageError> {
    let done = sqlx::query!(
        "update recovery_codes set used_at = $3 where user_id = $1 and code_mac = any($2) and used_at is null",
        user.uuid(),
        macs,
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// How many recovery codes are left.
pub async fn recovery_codes_left(tx: &mut SystemTx, user: UserId) -> Result<i64, StorageError> {
    Ok(sqlx::query_scalar!(
        r#"select count(*) as "count!" from recovery_codes where user_id = $1 and used_at is null"#,
        user.uuid(),
    )
    .fetch_one(tx.connection())
    .await?)
}
