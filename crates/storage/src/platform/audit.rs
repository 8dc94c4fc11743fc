//! The audit log: append only.

use portolan_model::{
    Timestamp,
    audit::{Actor, Event},
    id::{AccessTokenId, AuditId, TenantId, UserId},
};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{StorageError, TenantTx, Tx, events};

/// Where a request came from, as far as the log keeps it.
#[derive(Debug, Clone, Default)]
pub struct Origin {
    /// Request id, found in the logs too.
    pub request_id: Option<String>,
    /// Network block of the client: /24 of IPv4, /48 of IPv6.
    pub ip_block: Option<String>,
    /// The token of the management API, if the request had one (API-9).
    pub token: Option<OriginToken>,
}

/// The token of a request, as its audit entries name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OriginToken {
    /// Its id.
    pub id: AccessTokenId,
    /// Its display name.
    pub name: String,
}

/// The detail of an entry, with the token of its request.
fn detail(event: &Event, origin: &Origin) -> Value {
    let mut detail = event.detail.clone();
    if let (Some(token), Value::Object(members)) = (&origin.token, &mut detail) {
        let named = json!({ "id": token.id, "name": token.name });
        members.insert("access_token".to_owned(), named);
    }
    detail
}

/// Writes one entry in the caller's transaction, so that an action and its entry commit or roll
/// back together. The event that reports the action to subscribers is written with it (HOOK-1).
///
/// The commit locks the chain of each log with a new entry, in the order of writing. A transaction
/// that writes to several logs therefore writes in the order of tenants, and to the platform's log
/// last. Two transactions in different orders would deadlock.
pub async fn record(
    tx: &mut impl Tx,
    event: &Event,
    origin: &Origin,
    now: Timestamp,
) -> Result<(), StorageError> {
    let (kind, actor) = match event.actor {
        Actor::User(user) => ("user", Some(user.uuid())),
        Actor::Token(token) => ("access_token", Some(token.uuid())),
        Actor::ServiceAccount(account) => ("service_account", Some(account.uuid())),
        Actor::Anonymous => ("anonymous", None),
        Actor::System => ("system", None),
        Actor::Operator => ("operator", None),
    };
    sqlx::query!(
        "insert into audit_events (id, at, tenant_id, actor_kind, actor_id, action, target_kind, target_id, outcome, request_id, ip_block, detail)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
        AuditId::generate().uuid(),
        now,
        event.tenant.map(TenantId::uuid),
        kind,
        actor,
        event.action,
        event.target_kind,
        event.target_id,
        event.outcome.as_str(),
        origin.request_id,
        origin.ip_block,
        detail(event, origin),
    )
    .execute(tx.raw())
    .await?;
    events::write_of_entry(tx, event, now).await
}

/// An entry as the console shows it.
#[derive(Debug, Clone)]
pub struct AuditEntry {
    /// Its id.
    pub id: AuditId,
    /// When.
    pub at: Timestamp,
    /// `user`, `access_token`, `anonymous`, `system`, `operator` …
    pub actor_kind: String,
    /// The person, for `user`.
    pub actor: Option<UserId>,
    /// What.
    pub action: String,
    /// Kind of thing.
    pub target_kind: String,
    /// Which thing.
    pub target_id: String,
    /// `ok` or `refused`.
    pub outcome: String,
    /// More.
    pub detail: Value,
    /// Its place in the chain of the log.
    pub place: Option<ChainLink>,
}

/// A place in the chain of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainLink {
    /// Counts from 1.
    pub seq: i64,
    /// Hash of the place before.
    pub previous: Vec<u8>,
    /// SHA-256 of `previous` and `entry`.
    pub hash: Vec<u8>,
    /// The entry as the text that is hashed.
    pub entry: String,
}

/// The tenant's entries, newest first, at most `limit`, older than `before`.
pub async fn list(
    tx: &mut TenantTx,
    before: Option<AuditId>,
    limit: i64,
) -> Result<Vec<AuditEntry>, StorageError> {
    let tenant = tx.tenant().uuid();
    let before: Option<Uuid> = before.map(AuditId::uuid);
    let rows = sqlx::query!(
        r#"select e.id, e.at, e.actor_kind, e.actor_id, e.action, e.target_kind, e.target_id, e.outcome, e.detail,
             c.seq as "seq?", c.previous as "previous?", c.hash as "hash?", audit_entry_text(e, c.seq) as entry
           from audit_events e left join audit_chain c on c.event_id = e.id
           where e.tenant_id = $1 and ($2::uuid is null or e.id < $2) order by e.id desc limit $3"#,
        tenant,
        before,
        limit,
    )
    .fetch_all(tx.connection())
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| AuditEntry {
            id: AuditId::from_uuid(row.id),
            at: row.at,
            actor: row
                .actor_id
                .filter(|_| row.actor_kind == "user")
                .map(UserId::from_uuid),
            actor_kind: row.actor_kind,
            action: row.action,
            target_kind: row.target_kind,
            target_id: row.target_id,
            outcome: row.outcome,
            detail: row.detail,
            place: match (row.seq, row.previous, row.hash, row.entry) {
                (Some(seq), Some(previous), Some(hash), Some(entry)) => Some(ChainLink {
                    seq,
                    previous,
                    hash,
                    entry,
                }),
                _ => None,
            },
        })
        .collect())
}
