//! Passkeys and the challenges that authenticators sign (AUTH-L13). A challenge is valid once and a
//! signature count only grows. Guarded updates ensure both on every node.

use portolan_model::{
    Digest, Timestamp,
    id::{PasskeyId, UserId},
};
use time::Duration;
use uuid::Uuid;

use crate::{StorageError, SystemTx};

/// How long an authenticator may take.
pub const CHALLENGE_LIFE: Duration = Duration::minutes(5);
/// Open challenges of a browser for one purpose: that of each of its tabs, and no more.
const OPEN: i64 = 8;
/// Least time between two notices to a person about a suspected copy.
const HINT: Duration = Duration::DAY;
/// The constraint that [`add`] violates when the authenticator's credential is known already.
pub const KNOWN: &str = "webauthn_credentials_credential_id_key";

/// The purpose of a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PasskeyPurpose {
    /// A new passkey.
    Register,
    /// A sign-in by passkey alone.
    SignIn,
    /// The second step of a sign-in.
    SecondFactor,
    /// A proof before a sensitive change.
    Confirm,
}

impl PasskeyPurpose {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Register => "register",
            Self::SignIn => "sign_in",
            Self::SecondFactor => "second_factor",
            Self::Confirm => "confirm",
        }
    }
}

/// The recipient and purpose of a challenge.
#[derive(Debug, Clone, Copy)]
pub struct ChallengeOf<'a> {
    /// For what.
    pub purpose: PasskeyPurpose,
    /// In which browser.
    pub browser: &'a Digest,
    /// The person; `None` at a sign-in.
    pub user: Option<UserId>,
}

/// Remembers a challenge. The oldest of a browser that asks for many are forgotten.
pub async fn ask(
    tx: &mut SystemTx,
    challenge: &Digest,
    asked: ChallengeOf<'_>,
    now: Timestamp,
) -> Result<(), StorageError> {
    sqlx::query!(
        "insert into webauthn_challenges (digest, purpose, browser_digest, user_id, expires_at) values ($1, $2, $3, $4, $5)",
        challenge.as_bytes(),
        asked.purpose.as_str(),
        asked.browser.as_bytes(),
        asked.user.map(UserId::uuid),
        now + CHALLENGE_LIFE,
    )
    .execute(tx.connection())
    .await?;
    sqlx::query!(
        "delete from webauthn_challenges where digest in
           (select digest from webauthn_challenges where browser_digest = $1 and purpose = $2 and used_at is null
            order by expires_at desc, digest offset $3)",
        asked.browser.as_bytes(),
        asked.purpose.as_str(),
        OPEN,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Uses up a challenge, whether or not its answer is valid. False if it was never issued for this,
/// was used, or is too old (CASE-156).
pub async fn use_challenge(
    tx: &mut SystemTx,
    challenge: &Digest,
    asked: ChallengeOf<'_>,
    now: Timestamp,
) -> Result<bool, StorageError> {
    let done = sqlx::query!(
        "update webauthn_challenges set used_at = $5
         where digest = $1 and purpose = $2 and browser_digest = $3 and user_id is not distinct from $4 and used_at is null and expires_at > $5",
        challenge.as_bytes(),
        asked.purpose.as_str(),
        asked.browser.as_bytes(),
        asked.user.map(UserId::uuid),
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// A passkey.
#[derive(Debug, Clone)]
pub struct Passkey {
    /// Its id here.
    pub id: PasskeyId,
    /// Whose.
    pub user: UserId,
    /// Its id at the authenticator.
    pub credential_id: Vec<u8>,
    /// In COSE form.
    pub public_key: Vec<u8>,
    /// Name that the person gave it.
    pub name: String,
    /// Whether it may be copied among the person's devices.
    pub is_backup_eligible: bool,
    /// Since when.
    pub created_at: Timestamp,
    /// When it was last used.
    pub last_used_at: Option<Timestamp>,
    /// When a copy of the passkey was suspected.
    pub suspected_at: Option<Timestamp>,
}

/// A passkey to be written.
#[derive(Debug)]
pub struct New<'a> {
    /// Whose.
    pub user: UserId,
    /// Its id at the authenticator.
    pub credential_id: &'a [u8],
    /// In COSE form.
    pub public_key: &'a [u8],
    /// The host that it is bound to.
    pub host: &'a str,
    /// Name that the person gave it.
    pub name: &'a str,
    /// Model of the authenticator.
    pub aaguid: [u8; 16],
    /// Whether it may be copied.
    pub is_backup_eligible: bool,
    /// Whether it has been.
    pub is_backed_up: bool,
    /// How often it has signed.
    pub sign_count: u32,
}

/// Adds a passkey. [`StorageError::is_conflict_on`] [`KNOWN`] when it is registered already.
pub async fn add(
    tx: &mut SystemTx,
    new: &New<'_>,
    now: Timestamp,
) -> Result<PasskeyId, StorageError> {
    let id = PasskeyId::generate();
    sqlx::query!(
        "insert into webauthn_credentials
           (id, user_id, credential_id, public_key, name, aaguid, backup_eligible, backup_state, sign_count, created_at, rp_id)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
        id.uuid(),
        new.user.uuid(),
        new.credential_id,
        new.public_key,
        new.name,
        Uuid::from_bytes(new.aaguid),
        new.is_backup_eligible,
        new.is_backed_up,
        i64::from(new.sign_count),
        now,
        new.host,
    )
    .execute(tx.connection())
    .await?;
    Ok(id)
}

/// The passkeys of a person that are bound to this host, oldest first.
pub async fn of(tx: &mut SystemTx, user: UserId, host: &str) -> Result<Vec<Passkey>, StorageError> {
    let rows = sqlx::query!(
        "select id, user_id, credential_id, public_key, name, backup_eligible, created_at, last_used_at, suspected_at
         from webauthn_credentials where user_id = $1 and rp_id = $2 order by created_at, id",
        user.uuid(),
        host,
    )
    .fetch_all(tx.connection())
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| Passkey {
            id: row.id.into(),
            user: row.user_id.into(),
            credential_id: row.credential_id,
            public_key: row.public_key,
            name: row.name,
            is_backup_eligible: row.backup_eligible,
            created_at: row.created_at,
            last_used_at: row.last_used_at,
            suspected_at: row.suspected_at,
        })
        .collect())
}

/// How many passkeys a person has: those that are bound to this host, or all.
pub async fn count(
    tx: &mut SystemTx,
    user: UserId,
    host: Option<&str>,
) -> Result<i64, StorageError> {
    Ok(sqlx::query_scalar!(
        r#"select count(*) as "count!" from webauthn_credentials where user_id = $1 and ($2::text is null or rp_id = $2)"#,
        user.uuid(),
        host,
    )
    .fetch_one(tx.connection())
    .await?)
}

/// The passkey with this id at its authenticator, bound to this host, of a person who may still
/// sign in.
pub async fn find(
    tx: &mut SystemTx,
    credential_id: &[u8],
    host: &str,
) -> Result<Option<Passkey>, StorageError> {
    let row = sqlx::query!(
        "select c.id, c.user_id, c.credential_id, c.public_key, c.name, c.backup_eligible, c.created_at, c.last_used_at, c.suspected_at
         from webauthn_credentials c join users u on u.id = c.user_id and u.status = 'active'
         where c.credential_id = $1 and c.rp_id = $2",
        credential_id,
        host,
    )
    .fetch_optional(tx.connection())
    .await?;
    Ok(row.map(|row| Passkey {
        id: row.id.into(),
        user: row.user_id.into(),
        credential_id: row.credential_id,
        public_key: row.public_key,
        name: row.name,
        is_backup_eligible: row.backup_eligible,
        created_at: row.created_at,
        last_used_at: row.last_used_at,
        suspected_at: row.suspected_at,
    }))
}

/// Records a use. False if the signature count did not grow, which suggests a copy. An
/// authenticator that does not count always sends 0.
pub async fn used(
    tx: &mut SystemTx,
    id: PasskeyId,
    sign_count: u32,
    is_backed_up: bool,
    now: Timestamp,
) -> Result<bool, StorageError> {
    let done = sqlx::query!(
        "update webauthn_credentials set sign_count = $2, backup_state = $3, last_used_at = $4
         where id = $1 and (sign_count < $2 or (sign_count = 0 and $2 = 0))",
        id.uuid(),
        i64::from(sign_count),
        is_backed_up,
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Marks a passkey as possibly copied. True if the person should be notified, which is once a day.
pub async fn suspect(
    tx: &mut SystemTx,
    id: PasskeyId,
    now: Timestamp,
) -> Result<bool, StorageError> {
    let done = sqlx::query!(
        "update webauthn_credentials set suspected_at = $2 where id = $1 and (suspected_at is null or suspected_at <= $3)",
        id.uuid(),
        now,
        now - HINT,
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Gives one of a person's passkeys another name. False if it is not theirs.
pub async fn rename(
    tx: &mut SystemTx,
    user: UserId,
    id: PasskeyId,
    name: &str,
) -> Result<bool, StorageError> {
    let done = sqlx::query!(
        "update webauthn_credentials set name = $3 where id = $1 and user_id = $2",
        id.uuid(),
        user.uuid(),
        name,
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Removes every passkey of a person. Returns how many.
pub async fn remove_all(tx: &mut SystemTx, user: UserId) -> Result<u64, StorageError> {
    let done = sqlx::query!(
        "delete from webauthn_credentials where user_id = $1",
        user.uuid()
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected())
}

/// Removes the passkeys of a person that were added since. Returns how many.
pub async fn remove_since(
    tx: &mut SystemTx,
    user: UserId,
    since: Timestamp,
) -> Result<u64, StorageError> {
    let done = sqlx::query!(
        "delete from webauthn_credentials where user_id = $1 and created_at >= $2",
        user.uuid(),
        since,
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected())
}

/// Removes one of a person's passkeys, and returns what it was called. `None` if it is not theirs.
pub async fn remove(
    tx: &mut SystemTx,
    user: UserId,
    id: PasskeyId,
) -> Result<Option<String>, StorageError> {
    Ok(sqlx::query_scalar!(
        "delete from webauthn_credentials where id = $1 and user_id = $2 returning name",
        id.uuid(),
        user.uuid(),
    )
    .fetch_optional(tx.connection())
    .await?)
}
