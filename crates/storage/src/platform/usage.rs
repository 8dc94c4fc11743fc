//! Counts of calls: what nodes flush, and what readers see of it (METER-1 to METER-6).
//!
//! A call is in one place of each level: in `usage_flush` until that is folded, then in
//! `usage_minute`, and in `usage_hour` and `usage_day` once its hour and its day are folded. A
//! reader takes days, then the hours after the last folded day, then the minutes after the last
//! folded hour, then what is not folded. One statement has one snapshot, so that a fold in between
//! neither hides a call nor shows it twice.

pub mod folds;

use futures_util::TryStreamExt;
use portolan_metering::{Batch, Histogram, Key, Measures, Totals};
use portolan_model::{Timestamp, id::ServerId};
use time::Duration;
use uuid::Uuid;

use crate::{EdgeTx, StorageError, TenantTx};

/// Rows of one statement.
const ROWS: usize = 5_000;

/// Rows of counts as columns, for `unnest`.
#[derive(Debug, Default)]
struct Columns {
    minutes: Vec<Timestamp>,
    tenants: Vec<Uuid>,
    servers: Vec<Option<Uuid>>,
    items: Vec<String>,
    clients: Vec<Option<String>>,
    callers: Vec<i16>,
    outcomes: Vec<i16>,
    eras: Vec<i16>,
    calls: Vec<i64>,
    bytes_in: Vec<i64>,
    bytes_out: Vec<i64>,
    took_us: Vec<i64>,
    backend_us: Vec<i64>,
    durations: Vec<Vec<u8>>,
}

impl Columns {
    fn push(&mut self, minute: Timestamp, key: &Key, totals: &Totals) {
        let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        let mut durations = Vec::with_capacity(64);
        totals.durations.encode(&mut durations);
        self.minutes.push(minute);
        self.tenants.push(key.tenant.uuid());
        self.servers.push(key.server.map(ServerId::uuid));
        self.items.push(key.item.to_string());
        self.clients.push(key.client.as_deref().map(str::to_owned));
        self.callers.push(key.caller);
        self.outcomes.push(key.outcome);
        self.eras.push(key.era);
        self.calls.push(number(totals.calls));
        self.bytes_in.push(number(totals.bytes_in));
        self.bytes_out.push(number(totals.bytes_out));
        self.took_us.push(number(totals.took_us));
        self.backend_us.push(number(totals.backend_us));
        self.durations.push(durations);
    }

    /// In parts of at most [`ROWS`] rows.
    fn parts<'r>(rows: impl Iterator<Item = (Timestamp, &'r Key, &'r Totals)>) -> Vec<Self> {
        let mut parts: Vec<Self> = Vec::new();
        for (minute, key, totals) in rows {
            if parts.last().is_none_or(|part| part.calls.len() >= ROWS) {
                parts.push(Self::default());
            }
            if let Some(part) = parts.last_mut() {
                part.push(minute, key, totals);
            }
        }
        parts
    }
}

/// Adds rows to a table of counts. `$more` is one column before the others, with its value.
macro_rules! insert_rows {
    ($table:literal, $columns:expr, $connection:expr $(, $more:literal, $value:literal, $given:expr)?) => {
        sqlx::query!(
            "insert into " + $table + " (minute, tenant_id, server_id, item, client, caller, outcome, era,
               calls, bytes_in, bytes_out, took_us, backend_us, durations" $(+ $more)? + ")
             select u.*" $(+ $value)? + " from unnest($1::timestamptz[], $2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::smallint[],
               $7::smallint[], $8::smallint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bytea[]) u",
            &$columns.minutes,
            &$columns.tenants,
            &$columns.servers as &[Option<uuid::Uuid>],
            &$columns.items,
            &$columns.clients as &[Option<String>],
            &$columns.callers,
            &$columns.outcomes,
            &$columns.eras,
            &$columns.calls,
            &$columns.bytes_in,
            &$columns.bytes_out,
            &$columns.took_us,
            &$columns.backend_us,
            &$columns.durations
            $(, $given)?
        )
        .execute($connection)
        .await?
    };
}
use insert_rows;

/// The minute of a batch.
fn minute(since_epoch: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + Duration::minutes(since_epoch)
}

/// Writes a batch of a process that began as `node`. False if it was written before (METER-6).
pub async fn flush(
    tx: &mut EdgeTx,
    node: Uuid,
    batch: &Batch,
    now: Timestamp,
) -> Result<bool, StorageError> {
    let is_new = sqlx::query!(
        "insert into flush_seq as f (node_boot, seq, at) values ($1, $2, $3)
         on conflict (node_boot) do update set seq = excluded.seq, at = excluded.at where f.seq < excluded.seq",
        node,
        batch.seq,
        now,
    )
    .execute(tx.connection())
    .await?;
    if is_new.rows_affected() == 0 {
        return Ok(false);
    }
    let minute = minute(batch.minute);
    let rows = batch.rollup.iter();
    for part in Columns::parts(rows.map(|(key, totals)| (minute, key, totals))) {
        insert_rows!(
            "usage_flush",
            part,
            tx.connection(),
            ", at",
            ", $15::timestamptz",
            now
        );
    }
    Ok(true)
}

/// Counts one call of the console.
pub async fn add(
    tx: &mut TenantTx,
    key: &Key,
    call: Measures,
    now: Timestamp,
) -> Result<(), StorageError> {
    let mut totals = Totals::default();
    totals.add(call);
    let minute = minute(now.unix_timestamp().div_euclid(60));
    for part in Columns::parts(std::iter::once((minute, key, &totals))) {
        insert_rows!(
            "usage_flush",
            part,
            tx.connection(),
            ", at",
            ", $15::timestamptz",
            now
        );
    }
    Ok(())
}

/// Calls of one hour.
#[derive(Debug, Clone)]
pub struct Hour {
    /// Its beginning.
    pub hour: Timestamp,
    /// Calls.
    pub calls: i64,
    /// Calls that failed: at the API, on the way to it, or here.
    pub errors: i64,
    /// Calls that were rejected for their arguments: nothing was sent.
    pub rejected: i64,
}

/// The last 24 hours, the present one included, empty hours too.
pub async fn by_hour(tx: &mut TenantTx, now: Timestamp) -> Result<Vec<Hour>, StorageError> {
    let tenant = tx.tenant().uuid();
    Ok(sqlx::query_as!(
        Hour,
        r#"with counted as (
             select minute, outcome, calls from usage_hour
              where tenant_id = $1 and minute >= date_trunc('hour', $2::timestamptz) - interval '23 hours'
                and minute < (select upto from usage_folds where level = 'hour')
             union all
             select minute, outcome, calls from usage_minute
              where tenant_id = $1 and minute >= date_trunc('hour', $2::timestamptz) - interval '23 hours'
                and minute >= (select upto from usage_folds where level = 'hour')
             union all
             select minute, outcome, calls from usage_flush
              where tenant_id = $1 and minute >= date_trunc('hour', $2::timestamptz) - interval '23 hours'
             union all
             select at, case outcome when 'ok' then 0 when 'invalid_arguments' then 2 else 4 end, 1 from tool_calls
              where tenant_id = $1 and at >= date_trunc('hour', $2::timestamptz) - interval '23 hours'
                and id > (select upto from tool_calls_carried))
           select h as "hour!", coalesce(sum(c.calls), 0)::bigint as "calls!",
                  coalesce(sum(c.calls) filter (where c.outcome not in (0, 2)), 0)::bigint as "errors!",
                  coalesce(sum(c.calls) filter (where c.outcome = 2), 0)::bigint as "rejected!"
           from generate_series(date_trunc('hour', $2::timestamptz) - interval '23 hours', date_trunc('hour', $2::timestamptz), interval '1 hour') h
             left join counted c on c.minute >= h and c.minute < h + interval '1 hour'
           group by h order by h"#,
        tenant,
        now
    )
    .fetch_all(tx.connection())
    .await?)
}

/// How fine counts are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Minutes, for hours of time.
    Minute,
    /// Hours, for days.
    Hour,
    /// Days (UTC), for months.
    Day,
}

/// Sums of one key in one minute, hour or day.
#[derive(Debug, Clone)]
pub struct Sum {
    /// The beginning of the minute, hour or day.
    pub at: Timestamp,
    /// The server; `None` in the console.
    pub server: Option<ServerId>,
    /// The tool.
    pub item: String,
    /// The client.
    pub client: Option<String>,
    /// Number of the kind of caller.
    pub caller: i16,
    /// Number of the outcome.
    pub outcome: i16,
    /// Number of the era.
    pub era: i16,
    /// The sums.
    pub totals: Totals,
}

/// Gives counts from `from` to `to` to `each`, one at a time and in no order: a reader of a long
/// period holds its own sums and not the rows. Where a level is not folded yet, rows of the finer
/// level stand for it. Calls that nodes of the previous release wrote are rows of one call, without
/// a histogram (METER-12).
pub async fn read(
    tx: &mut TenantTx,
    level: Level,
    from: Timestamp,
    to: Timestamp,
    mut each: impl FnMut(Sum),
) -> Result<(), StorageError> {
    let tenant = tx.tenant().uuid();
    let mut rows = sqlx::query!(
        r#"select minute as "at!", server_id, item as "item!", client, caller as "caller!", outcome as "outcome!", era as "era!", calls as "calls!",
                  bytes_in as "bytes_in!", bytes_out as "bytes_out!", took_us as "took_us!", backend_us as "backend_us!", durations as "durations!"
           from (
             select minute, server_id, item, client, caller, outcome, era, calls, bytes_in, bytes_out, took_us, backend_us, durations from usage_day
              where tenant_id = $1 and $4::int = 2 and minute >= $2 and minute < $3
                and minute < (select upto from usage_folds where level = 'day')
             union all
             select minute, server_id, item, client, caller, outcome, era, calls, bytes_in, bytes_out, took_us, backend_us, durations from usage_hour
              where tenant_id = $1 and $4::int >= 1 and minute >= $2 and minute < $3
                and minute < (select upto from usage_folds where level = 'hour')
                and ($4::int = 1 or minute >= (select upto from usage_folds where level = 'day'))
             union all
             select minute, server_id, item, client, caller, outcome, era, calls, bytes_in, bytes_out, took_us, backend_us, durations from usage_minute
              where tenant_id = $1 and minute >= $2 and minute < $3
                and ($4::int = 0 or minute >= (select upto from usage_folds where level = 'hour'))
             union all
             select minute, server_id, item, client, caller, outcome, era, calls, bytes_in, bytes_out, took_us, backend_us, durations from usage_flush
              where tenant_id = $1 and minute >= $2 and minute < $3
             union all
             select date_trunc('minute', at, 'UTC'), server_id, tool_name, client_name, case when server_id is null then 3 else 4 end::smallint,
                    case outcome when 'ok' then 0 when 'tool_error' then 1 when 'invalid_arguments' then 2 when 'upstream_error' then 3
                      else 4 end::smallint,
                    case when server_id is null then 2 else 4 end::smallint, 1, 0, 0, duration_ms::bigint * 1000, 0, ''
               from tool_calls where tenant_id = $1 and at >= $2 and at < $3 and id > (select upto from tool_calls_carried)) counted"#,
        tenant,
        from,
        to,
        level as i32,
    )
    .fetch(tx.connection());
    while let Some(row) = rows.try_next().await? {
        each(Sum {
            at: row.at,
            server: row.server_id.map(ServerId::from_uuid),
            item: row.item,
            client: row.client,
            caller: row.caller,
            outcome: row.outcome,
            era: row.era,
            totals: Totals {
                calls: count(row.calls),
                bytes_in: count(row.bytes_in),
                bytes_out: count(row.bytes_out),
                took_us: count(row.took_us),
                backend_us: count(row.backend_us),
                durations: histogram(&row.durations),
            },
        });
    }
    Ok(())
}

fn count(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

/// A histogram of a row. Bytes that no release wrote are logged and counted as none: one row must not
/// keep all others from being folded or read.
fn histogram(bytes: &[u8]) -> Histogram {
    Histogram::decode(bytes).unwrap_or_else(|error| {
        tracing::warn!(
            error = &error as &dyn std::error::Error,
            "a row of counts holds no histogram"
        );
        Histogram::default()
    })
}
