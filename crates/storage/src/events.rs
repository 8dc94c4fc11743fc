//! The outbox of events. An event is written in the transaction of the change that it reports: a
//! rollback sends nothing, a commit sends it at least once (HOOK-1). A worker makes deliveries of it later
//! ([`crate::webhooks::deliveries`]).

use portolan_model::{
    Timestamp,
    audit::Event,
    event::{EventType, WORKSPACE, of_audit},
    id::{EventId, TenantId},
};
use serde_json::Value;

use crate::{StorageError, Tx};

/// Longest text of one field, in characters. Names and reasons come from others.
const LONGEST: usize = 500;

/// Writes an event. `data` is an object of the type's fields, without the workspace.
pub async fn write(
    tx: &mut impl Tx,
    tenant: TenantId,
    kind: EventType,
    data: Value,
    now: Timestamp,
) -> Result<(), StorageError> {
    insert(tx, tenant, kind, data, None, now).await
}

/// Writes an event unless the workspace has one with the same `once`, which names the fact.
pub async fn write_once(
    tx: &mut impl Tx,
    tenant: TenantId,
    kind: EventType,
    data: Value,
    once: &str,
    now: Timestamp,
) -> Result<(), StorageError> {
    insert(tx, tenant, kind, data, Some(once), now).await
}

/// Writes the event that an audit entry reports, if there is one. An action that is a part of a
/// larger entry has its event too.
pub async fn write_of_entry(
    tx: &mut impl Tx,
    entry: &Event,
    now: Timestamp,
) -> Result<(), StorageError> {
    let Some((tenant, (kind, data))) = entry.tenant.zip(of_audit(entry)) else {
        return Ok(());
    };
    insert(tx, tenant, kind, data, None, now).await
}

async fn insert(
    tx: &mut impl Tx,
    tenant: TenantId,
    kind: EventType,
    data: Value,
    once: Option<&str>,
    now: Timestamp,
) -> Result<(), StorageError> {
    // No conflict target: a node may write events and not read them.
    sqlx::query!(
        "insert into events (tenant_id, id, at, type, data, once) values ($1, $2, $3, $4, $5, $6) on conflict do nothing",
        tenant.uuid(),
        EventId::generate().uuid(),
        now,
        kind.as_str(),
        bounded(tenant, data),
        once,
    )
    .execute(tx.raw())
    .await?;
    Ok(())
}

/// The data with the workspace, each text cut to [`LONGEST`].
fn bounded(tenant: TenantId, data: Value) -> Value {
    let mut members = match data {
        Value::Object(members) => members,
        _ => serde_json::Map::new(),
    };
    for value in members.values_mut() {
        if let Value::String(text) = value
            && let Some((end, _)) = text.char_indices().nth(LONGEST)
        {
            text.truncate(end);
        }
    }
    members.insert(WORKSPACE.name.to_owned(), tenant.to_string().into());
    Value::Object(members)
}
