//! Proofs of e-mail addresses: an 8-digit code, bound to the browser that asked for it (AUTH-L7).

use portolan_model::{
    Digest, Timestamp,
    id::{InvitationId, RequestId, UserId, VerificationId},
};
use time::Duration;

use crate::{StorageError, SystemTx};

/// How long a code works.
pub const CODE_LIFE: Duration = Duration::minutes(10);
/// How many tries a code has.
pub const MAX_ATTEMPTS: i32 = 5;
/// Shortest time between two messages.
pub const RESEND_PAUSE: Duration = Duration::minutes(1);
/// Most messages of one verification.
pub const MAX_SENDS: i32 = 5;
/// How long a verification can be gone on with. Afterwards the person signs up again.
pub const LIFE: Duration = Duration::hours(1);

/// An open verification.
#[derive(Debug, Clone)]
pub struct Verification {
    /// Its id.
    pub id: VerificationId,
    /// Whose address.
    pub user: UserId,
    /// The address, as typed.
    pub address: String,
    /// The address in the form that is compared.
    pub address_norm: String,
    /// Authorization request to go on with.
    pub continue_request: Option<RequestId>,
    /// Invitation to go on with.
    pub continue_invitation: Option<InvitationId>,
    /// Where to go on, as a word of the caller's. It says more than the two before it, which a node
    /// of the release before wrote alone.
    pub continue_target: Option<String>,
    /// Tries so far.
    pub attempts: i32,
    /// Messages so far.
    pub sends: i32,
    /// When the last message was queued.
    pub sent_at: Timestamp,
    /// When the code stops working.
    pub expires_at: Timestamp,
}

/// The columns of a new verification.
#[derive(Debug, Clone)]
pub struct NewVerification<'a> {
    /// Its id, chosen by the caller, because the code's MAC covers it.
    pub id: VerificationId,
    /// Whose address.
    pub user: UserId,
    /// The address in the form that is compared.
    pub address_norm: &'a str,
    /// MAC of id and code.
    pub code_mac: &'a [u8; 32],
    /// Digest of the browser's cookie.
    pub browser: &'a Digest,
    /// Authorization request to go on with.
    pub continue_request: Option<RequestId>,
    /// Invitation to go on with.
    pub continue_invitation: Option<InvitationId>,
    /// Where to go on, as a word of the caller's: at most 2000 characters.
    pub continue_target: Option<&'a str>,
}

/// Opens a verification; an open one of the same browser goes, so that a browser has one at a time.
pub async fn open(
    tx: &mut SystemTx,
    new: &NewVerification<'_>,
    now: Timestamp,
) -> Result<(), StorageError> {
    sqlx::query!(
        "delete from verifications where browser_digest = $1 and used_at is null",
        new.browser.as_bytes()
    )
    .execute(tx.connection())
    .await?;
    sqlx::query!(
        "insert into verifications
           (id, purpose, user_id, address_norm, code_mac, browser_digest, continue_request, continue_invitation, continue_target, sent_at, expires_at, created_at)
         values ($1, 'email', $2, $3, $4, $5, $6, $9, $10, $7, $8, $7)",
        new.id.uuid(),
        new.user.uuid(),
        new.address_norm,
        new.code_mac,
        new.browser.as_bytes(),
        new.continue_request.map(RequestId::uuid),
        now,
        now + CODE_LIFE,
        new.continue_invitation.map(InvitationId::uuid),
        new.continue_target,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Finds the verification that this browser can continue with. Reading changes nothing: a mail
/// scanner that follows a link does no harm.
pub async fn find_open(
    tx: &mut SystemTx,
    browser: &Digest,
    now: Timestamp,
) -> Result<Option<Verification>, StorageError> {
    let row = sqlx::query!(
        "select v.id, v.user_id, e.address, v.address_norm, v.continue_request, v.continue_invitation, v.continue_target, v.attempts, v.sends, v.sent_at, v.expires_at
         from verifications v join user_emails e on e.user_id = v.user_id and e.address_norm = v.address_norm
         where v.browser_digest = $1 and v.used_at is null and v.created_at > $2
         order by v.created_at desc limit 1",
        browser.as_bytes(),
        now - LIFE,
    )
    .fetch_optional(tx.connection())
    .await?;
    Ok(row.map(|row| Verification {
        id: VerificationId::from_uuid(row.id),
        user: UserId::from_uuid(row.user_id),
        address: row.address,
        address_norm: row.address_norm,
        continue_request: row.continue_request.map(RequestId::from_uuid),
        continue_invitation: row.continue_invitation.map(InvitationId::from_uuid),
        continue_target: row.continue_target,
        attempts: row.attempts,
        sends: row.sends,
        sent_at: row.sent_at,
        expires_at: row.expires_at,
    }))
}

/// Counts one try and returns the values to compare with. `None` if it is used, expired, or out of
/// tries. The row stays locked until the transaction ends, so two tries at once take turns. Commit
/// also after a wrong code, or the try is not counted.
pub async fn count_attempt(
    tx: &mut SystemTx,
    id: VerificationId,
    browser: &Digest,
    now: Timestamp,
) -> Result<Option<[u8; 32]>, StorageError> {
    let mac = sqlx::query_scalar!(
        "update verifications set attempts = attempts + 1
         where id = $1 and browser_digest = $2 and used_at is null and expires_at > $3 and attempts < $4
         returning code_mac",
        id.uuid(),
        browser.as_bytes(),
        now,
        MAX_ATTEMPTS,
    )
    .fetch_optional(tx.connection())
    .await?;
    mac.map(|bytes| {
        <[u8; 32]>::try_from(bytes.as_slice()).map_err(|_| StorageError::Inconsistent {
            table: "verifications",
            column: "code_mac",
        })
    })
    .transpose()
}

/// Uses the verification up, once. False if it was used already.
pub async fn consume(
    tx: &mut SystemTx,
    id: VerificationId,
    now: Timestamp,
) -> Result<bool, StorageError> {
    let done = sqlx::query!(
        "update verifications set used_at = $2 where id = $1 and used_at is null",
        id.uuid(),
        now
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Replaces the code by a new one, with new tries. False when the pause or the number of messages
/// forbids it.
pub async fn renew(
    tx: &mut SystemTx,
    id: VerificationId,
    browser: &Digest,
    code_mac: &[u8; 32],
    now: Timestamp,
) -> Result<bool, StorageError> {
    let done = sqlx::query!(
        "update verifications set code_mac = $3, attempts = 0, sends = sends + 1, sent_at = $4, expires_at = $5
         where id = $1 and browser_digest = $2 and used_at is null and sent_at <= $6 and sends < $7",
        id.uuid(),
        browser.as_bytes(),
        code_mac,
        now,
        now + CODE_LIFE,
        now - RESEND_PAUSE,
        MAX_SENDS,
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}
