//! Deliveries of events to endpoints: made of the outbox, claimed by workers, reported, replayed.
//!
//! A claim is one guarded `update` with `for update skip locked`. A worker that dies with a claim
//! loses it after [`HOLD`]: the event goes out at least once, always under the same id (HOOK-7).

use portolan_model::{
    Timestamp,
    event::EventType,
    id::{EventId, TenantId, WebhookId},
};
use serde_json::{Value, json};
use time::Duration;
use uuid::Uuid;

use crate::{
    StorageError, SystemTx, TenantTx, events,
    registry::credentials::WrappedKey,
    webhooks::endpoints::{SealedEndpoint, WebhookForm},
};

/// How long a worker may hold a delivery before another one takes it.
pub const HOLD: Duration = Duration::minutes(2);

/// An endpoint that fails for so long is disabled (HOOK-9).
pub const GIVE_UP: Duration = Duration::days(5);

/// An event of the outbox.
#[derive(Debug, Clone)]
pub struct OutboxEvent {
    /// Its workspace.
    pub tenant: TenantId,
    /// Its id.
    pub id: EventId,
    /// Name of its type.
    pub kind: String,
    /// When it happened.
    pub at: Timestamp,
    /// Its data.
    pub data: Value,
}

/// Takes events that have no deliveries yet, at most `limit`, numbers them, and makes a delivery for
/// each endpoint that subscribes to them. One worker does so at a time, until its commit: an alert
/// begins before it ends, and numbers become visible in their order (HOOK-27).
pub async fn spread(
    tx: &mut SystemTx,
    limit: i64,
    now: Timestamp,
) -> Result<Vec<OutboxEvent>, StorageError> {
    // A number of our own among advisory locks: "hook" in ASCII.
    let is_free = sqlx::query_scalar!(r#"select pg_try_advisory_xact_lock(1752133483) as "free!""#)
        .fetch_one(tx.connection())
        .await?;
    if !is_free {
        return Ok(Vec::new());
    }
    let rows = sqlx::query!(
        r#"with due as (
             select tenant_id, id, type, at from events where spread_at is null order by at limit $2 for update skip locked),
           numbered as materialized (
             select o.tenant_id, o.id, nextval('event_numbers') as number from (select tenant_id, id from due order by at, id) o),
           made as (
             insert into webhook_deliveries (tenant_id, event_id, endpoint_id, next_at, created_at)
             select d.tenant_id, d.id, p.id, $1, $1 from due d
               join webhook_endpoints p on p.tenant_id = d.tenant_id and p.state <> 'disabled' and d.type = any(p.event_types)
             on conflict do nothing)
           update events e set spread_at = $1, number = n.number from numbered n where e.tenant_id = n.tenant_id and e.id = n.id
           returning e.tenant_id, e.id, e.type as kind, e.at, e.data"#,
        now,
        limit,
    )
    .fetch_all(tx.connection())
    .await?;
    let mut events: Vec<OutboxEvent> = rows
        .into_iter()
        .map(|row| OutboxEvent {
            tenant: TenantId::from_uuid(row.tenant_id),
            id: EventId::from_uuid(row.id),
            kind: row.kind,
            at: row.at,
            data: row.data,
        })
        .collect();
    events.sort_by_key(|event| event.id);
    Ok(events)
}

/// A delivery in the hands of a worker.
#[derive(Debug, Clone)]
pub struct ClaimedDelivery {
    /// The event.
    pub event: OutboxEvent,
    /// The endpoint.
    pub endpoint: WebhookId,
    /// The form of its messages.
    pub form: WebhookForm,
    /// Where it is, as shown.
    pub url: String,
    /// Its secrets.
    pub secrets: SealedEndpoint,
    /// Until then the previous secret signs too.
    pub previous_secret_until: Option<Timestamp>,
    /// Number of this attempt, from 1. A result is reported for it.
    pub attempt: i32,
    /// Number of this attempt in its round, from 1: the schedule counts it.
    pub tries: i32,
}

/// Whether events wait for their deliveries, or deliveries of active endpoints are due. Postgres
/// plans [`spread`] and [`claim`] anew each time; this is for the many times when neither has work.
pub async fn is_work_due(tx: &mut SystemTx, now: Timestamp) -> Result<bool, StorageError> {
    let is_due = sqlx::query_scalar!(
        r#"select exists (select 1 from events where spread_at is null)
               or exists (select 1 from webhook_endpoints q where q.state = 'active' and exists
                           (select 1 from webhook_deliveries w
                             where w.tenant_id = q.tenant_id and w.endpoint_id = q.id and w.state = 'pending'
                               and w.next_at <= $1)) as "is_due!""#,
        now,
    )
    .fetch_one(tx.connection())
    .await?;
    Ok(is_due)
}

/// Claims deliveries that are due, at most `room`, and at most `per_endpoint` of an endpoint together
/// with those that other workers hold. Commit before sending. Of each active endpoint the next ones
/// are read by an index, and no more of what waits (HOOK-14).
pub async fn claim(
    tx: &mut SystemTx,
    room: i64,
    per_endpoint: i64,
    now: Timestamp,
) -> Result<Vec<ClaimedDelivery>, StorageError> {
    // The rows are locked last and asked again: of two workers that choose the same, one takes it.
    let rows = sqlx::query!(
        r#"with free as (
             select q.tenant_id, q.id,
                    $4 - (select count(*) from
                            (select 1 from webhook_deliveries h
                              where h.tenant_id = q.tenant_id and h.endpoint_id = q.id and h.held_until > $1 limit $4) held) as places
               from webhook_endpoints q
               join tenants t on t.id = q.tenant_id and t.status = 'active'
              where q.state = 'active'),
           chosen as materialized (
             select c.tenant_id, c.endpoint_id, c.event_id from free f cross join lateral
               (select w.tenant_id, w.endpoint_id, w.event_id, w.next_at from webhook_deliveries w
                 where w.tenant_id = f.tenant_id and w.endpoint_id = f.id and w.state = 'pending' and w.next_at <= $1
                 order by w.next_at, w.event_id limit f.places) c
              order by c.next_at limit $3),
           taken as materialized (
             select l.tenant_id, l.endpoint_id, l.event_id from chosen c cross join lateral
               (select w.tenant_id, w.endpoint_id, w.event_id from webhook_deliveries w
                 where w.tenant_id = c.tenant_id and w.endpoint_id = c.endpoint_id and w.event_id = c.event_id
                   and w.state = 'pending' and w.next_at <= $1
                   for update skip locked) l)
           update webhook_deliveries d set held_until = $2, next_at = $2, attempts = d.attempts + 1, tries = d.tries + 1
             from taken l, events e, webhook_endpoints p, tenant_deks k
            where d.tenant_id = l.tenant_id and d.endpoint_id = l.endpoint_id and d.event_id = l.event_id
              and e.tenant_id = d.tenant_id and e.id = d.event_id
              and p.tenant_id = d.tenant_id and p.id = d.endpoint_id
              and k.tenant_id = p.tenant_id and k.id = p.dek_id
           returning d.tenant_id, d.endpoint_id, d.event_id, d.attempts, d.tries, e.type as event_type, e.at, e.data,
                     p.kind, p.url, p.sealed, p.version, p.previous_secret_until, k.id as key_id, k.wrapped"#,
        now,
        now + HOLD,
        room,
        per_endpoint,
    )
    .fetch_all(tx.connection())
    .await?;
    rows.into_iter()
        .map(|row| {
            Ok(ClaimedDelivery {
                event: OutboxEvent {
                    tenant: TenantId::from_uuid(row.tenant_id),
                    id: EventId::from_uuid(row.event_id),
                    kind: row.event_type,
                    at: row.at,
                    data: row.data,
                },
                endpoint: WebhookId::from_uuid(row.endpoint_id),
                form: WebhookForm::read(&row.kind)?,
                url: row.url,
                secrets: SealedEndpoint {
                    sealed: row.sealed,
                    key: WrappedKey {
                        id: row.key_id,
                        wrapped: row.wrapped,
                    },
                    version: row.version,
                },
                previous_secret_until: row.previous_secret_until,
                attempt: row.attempts,
                tries: row.tries,
            })
        })
        .collect()
}

/// One HTTP exchange.
#[derive(Debug, Clone)]
pub struct AttemptResult {
    /// When it began.
    pub at: Timestamp,
    /// How long it took.
    pub millis: i32,
    /// HTTP status, if there was an answer.
    pub status: Option<u16>,
    /// Why there was none.
    pub fault: Option<String>,
    /// The beginning of the answer's body.
    pub response_head: Option<String>,
}

/// What follows from an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterAttempt {
    /// The receiver has it.
    Delivered,
    /// To be tried again, not before this time.
    Again(Timestamp),
    /// The schedule is at its end.
    Exhausted,
    /// The receiver is gone (410): the endpoint is disabled.
    Gone,
}

/// Records an attempt, and what follows. Disables the endpoint when it is gone or failed for
/// [`GIVE_UP`], and writes the event of that. A result that comes after the hold was lost is kept as
/// an attempt, and decides nothing.
pub async fn report(
    tx: &mut SystemTx,
    claimed: &ClaimedDelivery,
    result: &AttemptResult,
    after: AfterAttempt,
    now: Timestamp,
) -> Result<(), StorageError> {
    let (tenant, endpoint, event) = (
        claimed.event.tenant.uuid(),
        claimed.endpoint.uuid(),
        claimed.event.id.uuid(),
    );
    // An endpoint that was deleted meanwhile took its deliveries along.
    sqlx::query!(
        "insert into webhook_attempts (tenant_id, endpoint_id, event_id, number, at, millis, status, fault, response_head)
         select tenant_id, endpoint_id, event_id, $4, $5, $6, $7, $8, $9 from webhook_deliveries
          where tenant_id = $1 and endpoint_id = $2 and event_id = $3
         on conflict do nothing",
        tenant,
        endpoint,
        event,
        claimed.attempt,
        result.at,
        result.millis,
        result.status.map(i32::from),
        result.fault,
        result.response_head,
    )
    .execute(tx.connection())
    .await?;
    let (state, next) = match after {
        AfterAttempt::Delivered => ("delivered", None),
        AfterAttempt::Again(at) => ("pending", Some(at)),
        AfterAttempt::Exhausted | AfterAttempt::Gone => ("failed", None),
    };
    let counted = sqlx::query!(
        "update webhook_deliveries set state = $5, next_at = coalesce($6, next_at), held_until = null,
                done_at = case when $5 = 'pending' then null else $7::timestamptz end
          where tenant_id = $1 and endpoint_id = $2 and event_id = $3 and attempts = $4 and state = 'pending'",
        tenant,
        endpoint,
        event,
        claimed.attempt,
        state,
        next,
        now,
    )
    .execute(tx.connection())
    .await?;
    if counted.rows_affected() == 0 {
        return Ok(());
    }
    judge_endpoint(tx, claimed, after, now).await
}

async fn judge_endpoint(
    tx: &mut SystemTx,
    claimed: &ClaimedDelivery,
    after: AfterAttempt,
    now: Timestamp,
) -> Result<(), StorageError> {
    let (tenant, endpoint) = (claimed.event.tenant.uuid(), claimed.endpoint.uuid());
    if after == AfterAttempt::Delivered {
        sqlx::query!(
            "update webhook_endpoints set failing_since = null where tenant_id = $1 and id = $2 and failing_since is not null",
            tenant,
            endpoint,
        )
        .execute(tx.connection())
        .await?;
        return Ok(());
    }
    sqlx::query!(
        "update webhook_endpoints set failing_since = $3 where tenant_id = $1 and id = $2 and failing_since is null",
        tenant,
        endpoint,
        now,
    )
    .execute(tx.connection())
    .await?;
    let reason = if after == AfterAttempt::Gone {
        "gone"
    } else {
        "failing"
    };
    let disabled = sqlx::query!(
        "update webhook_endpoints set state = 'disabled', disabled_reason = $3, updated_at = $4
          where tenant_id = $1 and id = $2 and state <> 'disabled' and ($3 = 'gone' or failing_since <= $5)",
        tenant,
        endpoint,
        reason,
        now,
        now - GIVE_UP,
    )
    .execute(tx.connection())
    .await?;
    if disabled.rows_affected() == 1 {
        let data = json!({ "endpoint": claimed.endpoint, "reason": reason });
        events::write(
            tx,
            claimed.event.tenant,
            EventType::EndpointDisabled,
            data,
            now,
        )
        .await?;
    }
    Ok(())
}

/// A delivery as the console shows it.
#[derive(Debug, Clone)]
pub struct DeliveryView {
    /// The event.
    pub event: EventId,
    /// Name of its type.
    pub kind: String,
    /// When it happened.
    pub at: Timestamp,
    /// Its data.
    pub data: Value,
    /// `pending`, `delivered` or `failed`.
    pub state: String,
    /// Attempts so far.
    pub attempts: i32,
    /// The next attempt, if one is due.
    pub next_at: Option<Timestamp>,
    /// HTTP status of the last attempt.
    pub status: Option<i32>,
}

/// A choice of deliveries of an endpoint.
#[derive(Debug, Clone, Copy, Default)]
pub struct DeliveryFilter<'a> {
    /// In this state.
    pub state: Option<&'a str>,
    /// Of this event alone.
    pub event: Option<EventId>,
    /// Of older events.
    pub before: Option<EventId>,
}

/// Deliveries of an endpoint, the newest event first.
pub async fn list(
    tx: &mut TenantTx,
    endpoint: WebhookId,
    filter: DeliveryFilter<'_>,
    limit: i64,
) -> Result<Vec<DeliveryView>, StorageError> {
    let tenant = tx.tenant().uuid();
    let rows = sqlx::query!(
        r#"select d.event_id, e.type as kind, e.at, e.data, d.state, d.attempts,
                  case when d.state = 'pending' then d.next_at end as next_at,
                  (select a.status from webhook_attempts a
                    where a.tenant_id = d.tenant_id and a.endpoint_id = d.endpoint_id and a.event_id = d.event_id
                    order by a.number desc limit 1) as status
             from webhook_deliveries d join events e on e.tenant_id = d.tenant_id and e.id = d.event_id
            where d.tenant_id = $1 and d.endpoint_id = $2 and ($3::text is null or d.state = $3)
              and ($4::uuid is null or d.event_id < $4) and ($5::uuid is null or d.event_id = $5)
            order by d.event_id desc limit $6"#,
        tenant,
        endpoint.uuid(),
        filter.state,
        filter.before.map(EventId::uuid),
        filter.event.map(EventId::uuid),
        limit,
    )
    .fetch_all(tx.connection())
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| DeliveryView {
            event: EventId::from_uuid(row.event_id),
            kind: row.kind,
            at: row.at,
            data: row.data,
            state: row.state,
            attempts: row.attempts,
            next_at: row.next_at,
            status: row.status,
        })
        .collect())
}

/// The attempts of a delivery, the first first.
pub async fn attempts(
    tx: &mut TenantTx,
    endpoint: WebhookId,
    event: EventId,
) -> Result<Vec<(i32, AttemptResult)>, StorageError> {
    let tenant = tx.tenant().uuid();
    let rows = sqlx::query!(
        "select number, at, millis, status, fault, response_head from webhook_attempts
          where tenant_id = $1 and endpoint_id = $2 and event_id = $3 order by number limit 200",
        tenant,
        endpoint.uuid(),
        event.uuid(),
    )
    .fetch_all(tx.connection())
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| {
            let result = AttemptResult {
                at: row.at,
                millis: row.millis,
                status: row.status.and_then(|status| u16::try_from(status).ok()),
                fault: row.fault,
                response_head: row.response_head,
            };
            (row.number, result)
        })
        .collect())
}

/// Sends an event to an endpoint again, at once and with a whole schedule. False if the workspace
/// has no such event, or a worker sends it now.
pub async fn replay(
    tx: &mut TenantTx,
    endpoint: WebhookId,
    event: EventId,
    now: Timestamp,
) -> Result<bool, StorageError> {
    let tenant = tx.tenant().uuid();
    let done = sqlx::query!(
        "insert into webhook_deliveries (tenant_id, event_id, endpoint_id, next_at, created_at)
         select e.tenant_id, e.id, $2, $4, $4 from events e where e.tenant_id = $1 and e.id = $3
         on conflict (tenant_id, endpoint_id, event_id) do update set state = 'pending', tries = 0, next_at = $4, done_at = null
          where webhook_deliveries.held_until is null or webhook_deliveries.held_until <= $4",
        tenant,
        endpoint.uuid(),
        event.uuid(),
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Sends again what an endpoint missed since a time: failed deliveries, and events of its types that
/// have none. Returns their number.
pub async fn replay_since(
    tx: &mut TenantTx,
    endpoint: WebhookId,
    since: Timestamp,
    now: Timestamp,
) -> Result<u64, StorageError> {
    let tenant = tx.tenant().uuid();
    let done = sqlx::query!(
        "insert into webhook_deliveries (tenant_id, event_id, endpoint_id, next_at, created_at)
         select e.tenant_id, e.id, p.id, $4, $4 from webhook_endpoints p
           join events e on e.tenant_id = p.tenant_id and e.at >= $3 and e.spread_at is not null and e.type = any(p.event_types)
          where p.tenant_id = $1 and p.id = $2
         on conflict (tenant_id, endpoint_id, event_id) do update set state = 'pending', tries = 0, next_at = $4, done_at = null
          where webhook_deliveries.state = 'failed'",
        tenant,
        endpoint.uuid(),
        since,
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected())
}

/// Queues a message for one endpoint alone, such as a test. Returns its event.
pub async fn queue_for(
    tx: &mut TenantTx,
    endpoint: WebhookId,
    kind: &str,
    data: &Value,
    now: Timestamp,
) -> Result<EventId, StorageError> {
    let tenant = tx.tenant().uuid();
    let event = EventId::generate();
    let id: Uuid = event.uuid();
    sqlx::query!(
        "insert into events (tenant_id, id, at, type, data, spread_at) values ($1, $2, $3, $4, $5, $3)",
        tenant,
        id,
        now,
        kind,
        data,
    )
    .execute(tx.connection())
    .await?;
    sqlx::query!(
        "insert into webhook_deliveries (tenant_id, event_id, endpoint_id, next_at, created_at) values ($1, $2, $3, $4, $4)",
        tenant,
        id,
        endpoint.uuid(),
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(event)
}

/// Deliveries that are due or held, and the age of the oldest in seconds: for metrics.
pub async fn backlog(
    tx: &mut SystemTx,
    now: Timestamp,
) -> Result<(i64, Option<Timestamp>), StorageError> {
    let row = sqlx::query!(
        r#"select count(*) as "waiting!", min(d.next_at) as oldest from webhook_deliveries d
             join webhook_endpoints p on p.tenant_id = d.tenant_id and p.id = d.endpoint_id and p.state = 'active'
            where d.state = 'pending' and d.next_at <= $1"#,
        now
    )
    .fetch_one(tx.connection())
    .await?;
    Ok((row.waiting, row.oldest))
}
