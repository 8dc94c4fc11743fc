//! Signed-in browsers (AUTH-S1 to AUTH-S4).

use portolan_model::{
    Digest, Timestamp,
    id::{SessionId, TenantId, UserId},
};
use time::Duration;

use crate::{
    StorageError, SystemTx,
    accounts::{
        access_tokens::{self, EndedToken},
        ways_in::WayIn,
    },
};

/// A session ends after this long without a request (AUTH-S2).
pub const IDLE_LIFE: Duration = Duration::days(14);
/// A session ends this long after sign-in, whatever happens (AUTH-S2).
pub const ABSOLUTE_LIFE: Duration = Duration::days(30);
/// How exact `last_seen_at` is: one write per session and minute, not one per request.
pub const SEEN_STEP: Duration = Duration::seconds(60);

/// A live session, with its person.
#[derive(Debug, Clone)]
pub struct Session {
    /// Its id. Names the row; the cookie is something else.
    pub id: SessionId,
    /// Digest of the cookie.
    pub token: Digest,
    /// Whose.
    pub user: UserId,
    /// As they call themselves.
    pub display_name: String,
    /// Primary address, as typed.
    pub email: String,
    /// When the person last proved who they are.
    pub auth_time: Timestamp,
    /// How (RFC 8176 words).
    pub amr: Vec<String>,
    /// Begin.
    pub created_at: Timestamp,
    /// Last request, to the minute.
    pub last_seen_at: Timestamp,
    /// The one tenant that it opens, if it was begun on the word of that tenant's provider.
    pub only_tenant: Option<TenantId>,
}

/// The columns of a new session.
#[derive(Debug, Clone)]
pub struct NewSession<'a> {
    /// Whose.
    pub user: UserId,
    /// Digest of the cookie.
    pub token: &'a Digest,
    /// How the person proved who they are: `pwd`, `otp` …
    pub amr: &'a [String],
    /// Network block of the browser.
    pub ip_block: Option<&'a str>,
    /// Browser in words.
    pub ua_label: Option<&'a str>,
}

/// Why a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndReason {
    /// The person signed out.
    SignedOut,
    /// The same browser signed in again (AUTH-S3).
    Replaced,
    /// The person ended it from another browser.
    EndedElsewhere,
    /// The password changed (AUTH-S4).
    PasswordChanged,
    /// A second factor was added (AUTH-S4).
    FactorAdded,
    /// A second factor was replaced or removed (AUTH-S4).
    FactorChanged,
    /// This way to sign in was removed (AUTH-F6).
    WayInRemoved(WayIn),
    /// The address changed, or went back.
    AddressChanged,
    /// The account was deleted.
    AccountDeleted,
    /// An operator ended it.
    Operator,
}

impl EndReason {
    const fn as_str(self) -> &'static str {
        match self {
            Self::SignedOut => "signed_out",
            Self::Replaced => "replaced",
            Self::EndedElsewhere => "ended_elsewhere",
            Self::PasswordChanged => "password_changed",
            Self::FactorAdded => "factor_added",
            Self::FactorChanged | Self::WayInRemoved(_) => "factor_changed",
            Self::AddressChanged => "address_changed",
            Self::AccountDeleted => "account_deleted",
            Self::Operator => "operator",
        }
    }

    /// Returns true if tokens do not prove a second factor any more (AUTH-L14).
    const fn ends_proofs(self) -> bool {
        matches!(
            self,
            Self::FactorChanged | Self::WayInRemoved(WayIn::Passkey(_))
        )
    }

    /// Returns true if all personal tokens end too.
    const fn ends_tokens(self) -> bool {
        matches!(
            self,
            Self::PasswordChanged | Self::AddressChanged | Self::AccountDeleted | Self::Operator
        )
    }
}

/// Starts a session.
pub async fn start(
    tx: &mut SystemTx,
    new: &NewSession<'_>,
    now: Timestamp,
) -> Result<SessionId, StorageError> {
    let id = SessionId::generate();
    sqlx::query!(
        "insert into browser_sessions
           (id, user_id, token_digest, created_at, last_seen_at, expires_at, auth_time, amr, ip_block, ua_label)
         values ($1, $2, $3, $4, $4, $5, $4, $6, $7, $8)",
        id.uuid(),
        new.user.uuid(),
        new.token.as_bytes(),
        now,
        now + IDLE_LIFE,
        new.amr,
        new.ip_block,
        new.ua_label,
    )
    .execute(tx.connection())
    .await?;
    Ok(id)
}

/// The live session of a cookie, of a person who may still sign in.
pub async fn find_live(
    tx: &mut SystemTx,
    token: &Digest,
    now: Timestamp,
) -> Result<Option<Session>, StorageError> {
    let row = sqlx::query!(
        "select s.id, s.user_id, u.display_name, e.address, s.auth_time, s.amr, s.created_at, s.last_seen_at, s.only_tenant
         from browser_sessions s
         join users u on u.id = s.user_id and u.status = 'active'
         join user_emails e on e.user_id = u.id and e.is_primary
         where s.token_digest = $1 and s.ended_at is null and s.expires_at > $2",
        token.as_bytes(),
        now,
    )
    .fetch_optional(tx.connection())
    .await?;
    Ok(row.map(|row| Session {
        id: SessionId::from_uuid(row.id),
        token: *token,
        user: UserId::from_uuid(row.user_id),
        display_name: row.display_name,
        email: row.address,
        auth_time: row.auth_time,
        amr: row.amr,
        created_at: row.created_at,
        last_seen_at: row.last_seen_at,
        only_tenant: row.only_tenant.map(TenantId::from_uuid),
    }))
}

/// Slides the session's end after a request: [`IDLE_LIFE`] from now, never beyond [`ABSOLUTE_LIFE`]
/// (AUTH-S2).
pub async fn seen(
    tx: &mut SystemTx,
    session: &Session,
    now: Timestamp,
) -> Result<(), StorageError> {
    let expires_at = (now + IDLE_LIFE).min(session.created_at + ABSOLUTE_LIFE);
    sqlx::query!(
        "update browser_sessions set last_seen_at = $2, expires_at = $3 where id = $1 and ended_at is null and last_seen_at < $2",
        session.id.uuid(),
        now,
        expires_at,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Records that the person of a session authenticated before it began, as an external provider
/// reported.
pub async fn proved_at(
    tx: &mut SystemTx,
    id: SessionId,
    at: Timestamp,
) -> Result<(), StorageError> {
    sqlx::query!(
        "update browser_sessions set auth_time = least(auth_time, $2) where id = $1",
        id.uuid(),
        at,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Records the way in that a session began with.
pub async fn began_by(tx: &mut SystemTx, id: SessionId, way: WayIn) -> Result<(), StorageError> {
    sqlx::query!(
        "update browser_sessions set way_in = $2 where id = $1",
        id.uuid(),
        way.uuid(),
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Records that a session continues another one of its person, which it proves no better: it has
/// the time of the sign-in and the way in of that one.
pub async fn continues(
    tx: &mut SystemTx,
    id: SessionId,
    before: SessionId,
) -> Result<(), StorageError> {
    sqlx::query!(
        "update browser_sessions s set auth_time = least(s.auth_time, b.auth_time), way_in = b.way_in
           from browser_sessions b where s.id = $1 and b.id = $2 and b.user_id = s.user_id",
        id.uuid(),
        before.uuid(),
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Ends the session of a cookie. Returns whose it was; `None` if it was not live.
pub async fn end(
    tx: &mut SystemTx,
    token: &Digest,
    reason: EndReason,
    now: Timestamp,
) -> Result<Option<(SessionId, UserId)>, StorageError> {
    let row = sqlx::query!(
        "update browser_sessions set ended_at = $2, end_reason = $3 where token_digest = $1 and ended_at is null
         returning id, user_id",
        token.as_bytes(),
        now,
        reason.as_str(),
    )
    .fetch_optional(tx.connection())
    .await?;
    Ok(row.map(|row| (SessionId::from_uuid(row.id), UserId::from_uuid(row.user_id))))
}

/// A live session as its person sees it in a list.
#[derive(Debug, Clone)]
pub struct ListedSession {
    /// Its id.
    pub id: SessionId,
    /// Begin.
    pub created_at: Timestamp,
    /// Last request, to the minute.
    pub last_seen_at: Timestamp,
    /// Network block of the browser.
    pub ip_block: Option<String>,
    /// Browser in words.
    pub ua_label: Option<String>,
}

/// The live sessions of a person, last used first.
pub async fn list(
    tx: &mut SystemTx,
    user: UserId,
    now: Timestamp,
) -> Result<Vec<ListedSession>, StorageError> {
    let rows = sqlx::query!(
        "select id, created_at, last_seen_at, ip_block, ua_label from browser_sessions
         where user_id = $1 and ended_at is null and expires_at > $2 order by last_seen_at desc, id desc limit 100",
        user.uuid(),
        now,
    )
    .fetch_all(tx.connection())
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| ListedSession {
            id: row.id.into(),
            created_at: row.created_at,
            last_seen_at: row.last_seen_at,
            ip_block: row.ip_block,
            ua_label: row.ua_label,
        })
        .collect())
}

/// Ends one session of a person. False if it is not theirs or was over.
pub async fn end_one(
    tx: &mut SystemTx,
    user: UserId,
    id: SessionId,
    reason: EndReason,
    now: Timestamp,
) -> Result<bool, StorageError> {
    let done = sqlx::query!(
        "update browser_sessions set ended_at = $3, end_reason = $4 where id = $1 and user_id = $2 and ended_at is null",
        id.uuid(),
        user.uuid(),
        now,
        reason.as_str(),
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// The result of [`end_all`].
#[derive(Debug, Default)]
pub struct EndedSessions {
    /// The number of sessions.
    pub sessions: u64,
    /// Personal tokens that ended with them. Each one is an audit entry (API-9).
    pub tokens: Vec<EndedToken>,
}

/// Ends every session of a person, but for `keep`. The personal tokens of the management API end
/// with them where the reason may be a stolen account. Of a way in that was removed, those end that
/// were made with it (API-4).
pub async fn end_all(
    tx: &mut SystemTx,
    user: UserId,
    keep: Option<SessionId>,
    reason: EndReason,
    now: Timestamp,
) -> Result<EndedSessions, StorageError> {
    let done = sqlx::query!(
        "update browser_sessions set ended_at = $3, end_reason = $4
         where user_id = $1 and ended_at is null and ($2::uuid is null or id <> $2)",
        user.uuid(),
        keep.map(SessionId::uuid),
        now,
        reason.as_str(),
    )
    .execute(tx.connection())
    .await?;
    if reason.ends_proofs() {
        access_tokens::end_proofs(tx, user).await?;
    }
    let tokens = if reason.ends_tokens() {
        access_tokens::end_all(tx, user, None, now).await?
    } else if let EndReason::WayInRemoved(way) = reason {
        access_tokens::end_all(tx, user, Some(way), now).await?
    } else {
        Vec::new()
    };
    Ok(EndedSessions {
        sessions: done.rows_affected(),
        tokens,
    })
}
