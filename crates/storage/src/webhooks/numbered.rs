//! Events in the order of their numbers, for streams that can be continued (HOOK-27).
//!
//! A number is given when deliveries are made of an event, by one process at a time, whose lock
//! ends after its commit ([`super::deliveries::spread`]). So every number up to the largest one that
//! is visible is visible, whatever order the changes committed in.

use portolan_model::{Timestamp, id::EventId};

use crate::{StorageError, TenantTx, webhooks::deliveries::OutboxEvent};

/// An event with its number.
#[derive(Debug, Clone)]
pub struct NumberedEvent {
    /// Its number, unique in the installation.
    pub number: i64,
    /// The event.
    pub event: OutboxEvent,
}

/// The numbers of a look: after `after`, up to `upto`.
#[derive(Debug, Clone, Copy)]
pub struct NumberRange {
    /// The last number of before.
    pub after: i64,
    /// The largest one, of [`newest`].
    pub upto: i64,
}

/// The largest number of the workspace; 0 without events.
pub async fn newest(tx: &mut TenantTx) -> Result<i64, StorageError> {
    let tenant = tx.tenant().uuid();
    let newest = sqlx::query_scalar!(
        r#"select coalesce(max(number), 0) as "newest!" from events where tenant_id = $1 and number is not null"#,
        tenant,
    )
    .fetch_one(tx.connection())
    .await?;
    Ok(newest)
}

/// The number after which every event since a time comes; `None` if there is no such event.
pub async fn before(tx: &mut TenantTx, since: Timestamp) -> Result<Option<i64>, StorageError> {
    let tenant = tx.tenant().uuid();
    let first = sqlx::query_scalar!(
        "select min(number) from events where tenant_id = $1 and number is not null and at >= $2",
        tenant,
        since,
    )
    .fetch_one(tx.connection())
    .await?;
    Ok(first.map(|first| first - 1))
}

/// Events of a range, at most `limit`, in the order of their numbers: of these types, or of all if
/// there are none.
pub async fn list(
    tx: &mut TenantTx,
    range: NumberRange,
    types: &[String],
    limit: i64,
) -> Result<Vec<NumberedEvent>, StorageError> {
    let tenant = tx.tenant();
    let rows = sqlx::query!(
        r#"select number as "number!", id, type as kind, at, data from events
            where tenant_id = $1 and number > $2 and number <= $3 and (cardinality($4::text[]) = 0 or type = any($4))
            order by number limit $5"#,
        tenant.uuid(),
        range.after,
        range.upto,
        types,
        limit,
    )
    .fetch_all(tx.connection())
    .await?;
    let events = rows.into_iter().map(|row| NumberedEvent {
        number: row.number,
        event: OutboxEvent {
            tenant,
            id: EventId::from_uuid(row.id),
            kind: row.kind,
            at: row.at,
            data: row.data,
        },
    });
    Ok(events.collect())
}
