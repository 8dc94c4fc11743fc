//! Revocations that must still be enforced: the source of truth and outbox of the feed (AUTH-4.2,
//! AUTH-4.3).

use portolan_model::{Timestamp, id::TenantId};

use crate::{StorageError, Store, SystemTx, Tx, notification_listener::NotificationListener};

/// The kind of thing that an entry revokes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RevocationKind {
    /// One access token, by `jti`.
    Jti,
    /// A grant, by id.
    Grant,
    /// Tokens of a user below an epoch.
    User,
    /// Tokens of a tenant below an epoch.
    Tenant,
    /// Tokens of a member below an epoch; the reference is `<tenant id>/<user id>`.
    Member,
    /// A blocked client, by wire id; an API key, by its id.
    Client,
    /// A signing key.
    Kid,
    /// Tokens of a service account below an epoch.
    Service,
}

impl RevocationKind {
    /// The word in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Jti => "jti",
            Self::Grant => "grant",
            Self::User => "user",
            Self::Tenant => "tenant",
            Self::Member => "member",
            Self::Client => "client",
            Self::Kid => "kid",
            Self::Service => "service",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        [
            Self::Jti,
            Self::Grant,
            Self::User,
            Self::Tenant,
            Self::Member,
            Self::Client,
            Self::Kid,
            Self::Service,
        ]
        .into_iter()
        .find(|kind| kind.as_str() == text)
    }
}

/// An entry to be written.
#[derive(Debug)]
pub struct New<'a> {
    /// Kind of the revoked thing.
    pub kind: RevocationKind,
    /// Which one.
    pub reference: &'a str,
    /// The tenant, if it belongs to one.
    pub tenant: Option<TenantId>,
    /// For epoch kinds: tokens with a smaller number are refused.
    pub epoch: Option<i32>,
    /// From then on no token lives that it concerns.
    pub expires_at: Timestamp,
}

/// An entry as read by a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revocation {
    /// Order of writing, not of committing.
    pub seq: i64,
    /// Kind of the revoked thing.
    pub kind: RevocationKind,
    /// Which one.
    pub reference: String,
    /// For epoch kinds.
    pub epoch: Option<i32>,
    /// When it can be forgotten.
    pub expires_at: Timestamp,
    /// When it was written, by the database's clock.
    pub created_at: Timestamp,
}

/// Writes an entry in the transaction that revokes. The database sets its time, because writers'
/// clocks differ. Readers would miss an entry that is dated in the past.
pub async fn insert(tx: &mut SystemTx, new: &New<'_>) -> Result<(), StorageError> {
    sqlx::query!(
        "insert into revocations (kind, ref, tenant_id, epoch, expires_at, created_at) values ($1, $2, $3, $4, $5, clock_timestamp())",
        new.kind.as_str(),
        new.reference,
        new.tenant.map(TenantId::uuid),
        new.epoch,
        new.expires_at,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Entries, and the time of the read.
#[derive(Debug, Clone)]
pub struct LiveRevocations {
    /// The database's time of the read, by which entries are dated. A reader continues from here,
    /// and looks back for entries that were committed out of order.
    pub read_at: Timestamp,
    /// The entries in their order of writing.
    pub entries: Vec<Revocation>,
}

/// Reads entries that still matter at `now` and were written after `since`; all of them for `None`.
/// An entry of an unknown kind, written by a newer release, is left out, so that it does not block
/// the rest.
///
/// Sequence numbers commit out of order, so a reader reads the last seconds again each time.
/// Applying an entry twice does no harm.
pub async fn live(
    tx: &mut impl Tx,
    since: Option<Timestamp>,
    now: Timestamp,
) -> Result<LiveRevocations, StorageError> {
    // One row at least, which has the time: every process reads twice a second.
    let rows = sqlx::query!(
        r#"select statement_timestamp() as "read_at!", r.seq as "seq?", r.kind as "kind?", r.ref as "ref?", r.epoch as "epoch?",
             r.expires_at as "expires_at?", r.created_at as "created_at?"
           from (select) always left join revocations r
             on r.expires_at > $1 and ($2::timestamptz is null or r.created_at > $2)
           order by r.seq"#,
        now,
        since,
    )
    .fetch_all(tx.raw())
    .await?;
    let read_at = rows.first().ok_or(sqlx::Error::RowNotFound)?.read_at;
    let entries = rows.into_iter().filter_map(|row| {
        let (seq, kind) = (row.seq?, row.kind?);
        let Some(kind) = RevocationKind::parse(&kind) else {
            tracing::error!(seq, kind, "a revocation of an unknown kind");
            return None;
        };
        Some(Revocation {
            seq,
            kind,
            reference: row.r#ref?,
            epoch: row.epoch,
            expires_at: row.expires_at?,
            created_at: row.created_at?,
        })
    });
    Ok(LiveRevocations {
        read_at,
        entries: entries.collect(),
    })
}

/// Whether one of these is revoked at `now`: for a process that checks one token and keeps no set
/// of revocations.
pub async fn names_any(
    tx: &mut SystemTx,
    entries: &[(RevocationKind, String)],
    now: Timestamp,
) -> Result<bool, StorageError> {
    let kinds: Vec<String> = entries
        .iter()
        .map(|(kind, _)| kind.as_str().to_owned())
        .collect();
    let references: Vec<String> = entries
        .iter()
        .map(|(_, reference)| reference.clone())
        .collect();
    Ok(sqlx::query_scalar!(
        r#"select exists (
             select 1 from revocations r join unnest($1::text[], $2::text[]) as e(kind, ref) on r.kind = e.kind and r.ref = e.ref
             where r.expires_at > $3) as "found!""#,
        &kinds,
        &references,
        now,
    )
    .fetch_one(tx.connection())
    .await?)
}

/// The channel of revocations.
pub const REVOKED: &str = "portolan_revocations";
/// The channel of signing keys.
pub const SIGNING_KEYS: &str = "portolan_signing_keys";

/// Notifies when a revocation was committed on any node, or a signing key was made, moved or
/// removed. A reader that misses a notification finds the row at the next poll.
pub fn listener(store: &Store) -> NotificationListener {
    NotificationListener::new(store, &[REVOKED, SIGNING_KEYS])
}
