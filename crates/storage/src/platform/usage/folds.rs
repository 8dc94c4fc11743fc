//! Folds: flushed counts become minutes, minutes hours, hours days (METER-8).
//!
//! One process folds at a time, by an advisory lock. Each fold is one transaction that adds rows
//! and drops the partition that it read, or moves the mark up to which a level is folded. A flush
//! that comes late for its hour or day is added to that hour or day by the fold that finds it.

use std::{collections::BTreeMap, sync::Arc};

use portolan_metering::{Key, MeteringConfig, Rollup, Totals, rollup::MOST_KEYS};
use portolan_model::{
    Timestamp,
    id::{ServerId, TenantId},
};
use sqlx::PgConnection;
use time::{Duration, Month, UtcOffset};

use super::{Columns, count, histogram, insert_rows};
use crate::{KeeperTx, StorageError, Store};

/// Width of a partition of flushes.
const SLOT: Duration = Duration::minutes(5);

/// How far ahead partitions of flushes are made: nodes go on to flush while no process folds.
const SLOTS_AHEAD: Duration = Duration::hours(2);

/// How long after its end a partition of flushes is folded. Nodes write with the present time.
const SETTLED: Duration = Duration::seconds(15);

/// How long after its end an hour or a day is folded.
const HOUR_SETTLED: Duration = Duration::minutes(10);

/// Days for which partitions of the call log are made ahead.
const DAYS_AHEAD: i64 = 7;

/// Days for which partitions of contents are made ahead: they are partitioned by the day on which
/// they end, at most 30 days after the call.
const CONTENT_DAYS_AHEAD: i64 = 33;

/// How long the last flush of a process that is gone is remembered.
const PROCESS_REMEMBERED: Duration = Duration::days(7);

/// The result of one call of [`step`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// It folded this many calls; more may wait.
    Folded {
        /// Calls of the fold.
        calls: u64,
    },
    /// Everything is folded that can be.
    Idle,
    /// Another process folds.
    Elsewhere,
}

/// The widths of partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Width {
    Slot,
    Hour,
    Day,
    Month,
}

impl Width {
    /// The beginning of the partition of a time.
    fn begin(self, at: Timestamp) -> Timestamp {
        let at = at.to_offset(UtcOffset::UTC);
        let seconds = match self {
            Self::Slot => SLOT.whole_seconds(),
            Self::Hour => 3_600,
            Self::Day | Self::Month => 86_400,
        };
        let begin = at.unix_timestamp().div_euclid(seconds) * seconds;
        let begin = Timestamp::from_unix_timestamp(begin).unwrap_or(at);
        if self == Self::Month {
            begin.replace_day(1).unwrap_or(begin)
        } else {
            begin
        }
    }

    /// The beginning of the next one.
    fn after(self, begin: Timestamp) -> Timestamp {
        match self {
            Self::Slot => begin + SLOT,
            Self::Hour => begin + Duration::HOUR,
            Self::Day => begin + Duration::DAY,
            Self::Month => self.begin(begin + Duration::days(32)),
        }
    }

    /// The name of the partition that begins then.
    fn part(self, parent: &str, begin: Timestamp) -> String {
        let (year, month) = (begin.year(), u8::from(begin.month()));
        let (day, hour, minute) = (begin.day(), begin.hour(), begin.minute());
        match self {
            Self::Slot => {
                format!("{parent}_{year:04}{month:02}{day:02}_{hour:02}{minute:02}")
            }
            Self::Hour => format!("{parent}_{year:04}{month:02}{day:02}_{hour:02}"),
            Self::Day => format!("{parent}_{year:04}{month:02}{day:02}"),
            Self::Month => format!("{parent}_{year:04}{month:02}"),
        }
    }
}

/// Makes the partition of a time, unless it is there.
async fn make(
    connection: &mut PgConnection,
    parent: &str,
    width: Width,
    at: Timestamp,
) -> Result<(), StorageError> {
    let lower = width.begin(at);
    sqlx::query!(
        "select make_partition($1, $2, $3, $4)",
        parent,
        width.part(parent, lower),
        lower,
        width.after(lower),
    )
    .fetch_one(connection)
    .await?;
    Ok(())
}

/// Makes the partitions of the days up to [`CONTENT_DAYS_AHEAD`], in one statement.
async fn make_days(
    connection: &mut PgConnection,
    parent: &str,
    now: Timestamp,
) -> Result<(), StorageError> {
    let days = (-1..=CONTENT_DAYS_AHEAD).map(|day| Width::Day.begin(now + Duration::days(day)));
    let lowers: Vec<Timestamp> = days.collect();
    let parts = lowers.iter().map(|lower| Width::Day.part(parent, *lower));
    let parts: Vec<String> = parts.collect();
    sqlx::query!(
        "select make_partition($1, part, lower, lower + interval '24 hours')
           from unnest($2::text[], $3::timestamptz[]) days (part, lower)",
        parent,
        &parts,
        &lowers,
    )
    .fetch_all(connection)
    .await?;
    Ok(())
}

/// A partition.
struct TimePart {
    name: String,
    lower: Timestamp,
    upper: Timestamp,
}

/// The partitions of a table, oldest first.
async fn parts(connection: &mut PgConnection, parent: &str) -> Result<Vec<TimePart>, StorageError> {
    Ok(sqlx::query_as!(
        TimePart,
        r#"select part as "name!", lower as "lower!", upper as "upper!" from partitions_of($1)"#,
        parent
    )
    .fetch_all(connection)
    .await?)
}

async fn drop_part(connection: &mut PgConnection, part: &str) -> Result<(), StorageError> {
    sqlx::query!("select drop_partition($1)", part)
        .fetch_one(connection)
        .await?;
    Ok(())
}

/// Begins a transaction of the one process that folds; `None` if another one does.
async fn begin(store: &Store) -> Result<Option<KeeperTx>, StorageError> {
    /// Any number that nothing else uses.
    const LOCK: i64 = 0x706f_7274_666f_6c64;
    let mut tx = store.keeper().await?;
    let is_ours = sqlx::query_scalar!(r#"select pg_try_advisory_xact_lock($1) as "locked!""#, LOCK)
        .fetch_one(tx.connection())
        .await?;
    if !is_ours {
        return Ok(None);
    }
    sqlx::query!("select set_config('statement_timeout', '5min', true)")
        .fetch_one(tx.connection())
        .await?;
    Ok(Some(tx))
}

/// Makes the partitions that nodes write into in the next hours and days. False if another process
/// keeps them.
pub async fn prepare(store: &Store, now: Timestamp) -> Result<bool, StorageError> {
    let Some(mut tx) = begin(store).await? else {
        return Ok(false);
    };
    let mut slot = Width::Slot.begin(now - SLOT);
    while slot < now + SLOTS_AHEAD {
        make(tx.connection(), "usage_flush", Width::Slot, slot).await?;
        slot += SLOT;
    }
    for day in -1..=DAYS_AHEAD {
        let at = now + Duration::days(day);
        make(tx.connection(), "call_log", Width::Day, at).await?;
    }
    make_days(tx.connection(), "call_log_contents", now).await?;
    tx.commit().await?;
    Ok(true)
}

/// Folds the next part that can be folded.
pub async fn step(store: &Store, now: Timestamp) -> Result<Step, StorageError> {
    let Some(mut tx) = begin(store).await? else {
        return Ok(Step::Elsewhere);
    };
    let oldest = parts(tx.connection(), "usage_flush").await?;
    let oldest = oldest.into_iter().find(|part| part.upper + SETTLED <= now);
    let upto = folded_upto(tx.connection()).await?;
    let calls = if let Some(part) = oldest {
        fold_flushes(tx.connection(), &part, upto).await?
    } else if upto.hour + Duration::HOUR + HOUR_SETTLED <= now {
        fold_hour(tx.connection(), upto.hour).await?
    } else if upto.day + Duration::DAY <= upto.hour {
        fold_day(tx.connection(), upto.day).await?
    } else {
        // A transaction that is dropped gives its lock back a moment later.
        tx.commit().await?;
        return Ok(Step::Idle);
    };
    tx.commit().await?;
    Ok(Step::Folded { calls })
}

/// Up to when levels are folded.
#[derive(Debug, Clone, Copy)]
struct Upto {
    hour: Timestamp,
    day: Timestamp,
}

async fn folded_upto(connection: &mut PgConnection) -> Result<Upto, StorageError> {
    Ok(sqlx::query_as!(
        Upto,
        r#"select max(upto) filter (where level = 'hour') as "hour!", max(upto) filter (where level = 'day') as "day!" from usage_folds"#
    )
    .fetch_one(connection)
    .await?)
}

async fn set_folded(
    connection: &mut PgConnection,
    level: &str,
    upto: Timestamp,
) -> Result<(), StorageError> {
    sqlx::query!(
        "update usage_folds set upto = $2 where level = $1",
        level,
        upto
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Counts by time and key.
type Sums = BTreeMap<Timestamp, Rollup>;

/// A row of any table of counts.
struct Row {
    minute: Timestamp,
    tenant_id: uuid::Uuid,
    server_id: Option<uuid::Uuid>,
    item: String,
    client: Option<String>,
    caller: i16,
    outcome: i16,
    era: i16,
    calls: i64,
    bytes_in: i64,
    bytes_out: i64,
    took_us: i64,
    backend_us: i64,
    durations: Vec<u8>,
}

impl Row {
    fn split(self) -> (Timestamp, Key, Totals) {
        let key = Key {
            tenant: TenantId::from_uuid(self.tenant_id),
            server: self.server_id.map(ServerId::from_uuid),
            item: self.item.into(),
            client: self.client.map(Arc::from),
            caller: self.caller,
            outcome: self.outcome,
            era: self.era,
        };
        let totals = Totals {
            calls: count(self.calls),
            bytes_in: count(self.bytes_in),
            bytes_out: count(self.bytes_out),
            took_us: count(self.took_us),
            backend_us: count(self.backend_us),
            durations: histogram(&self.durations),
        };
        (self.minute, key, totals)
    }
}

/// Sums the rows of a table between two times of a column, by `$into` of their minute.
macro_rules! sums {
    ($table:literal, $column:literal, $connection:expr, $from:expr, $to:expr, $into:expr) => {{
        let mut rows = sqlx::query_as!(
            Row,
            "select minute, tenant_id, server_id, item, client, caller, outcome, era, calls, bytes_in, bytes_out, took_us, backend_us, durations
             from " + $table + " where " + $column + " >= $1 and " + $column + " < $2",
            $from,
            $to
        )
        .fetch($connection);
        let mut sums = Sums::new();
        while let Some(row) = next(&mut rows).await? {
            let (minute, key, totals) = row.split();
            sums.entry($into(minute)).or_default().add(key, &totals);
        }
        sums
    }};
}

async fn next(
    rows: &mut (impl futures_util::Stream<Item = Result<Row, sqlx::Error>> + Unpin),
) -> Result<Option<Row>, StorageError> {
    use futures_util::TryStreamExt;
    Ok(rows.try_next().await?)
}

fn as_rows(sums: &Sums) -> impl Iterator<Item = (Timestamp, &Key, &Totals)> {
    sums.iter()
        .flat_map(|(at, rollup)| rollup.iter().map(move |(key, totals)| (*at, key, totals)))
}

/// The sums at a coarser width, of those before `upto`.
fn coarser(sums: &Sums, width: Width, upto: Timestamp) -> Sums {
    let mut coarse = Sums::new();
    for (at, key, totals) in as_rows(sums) {
        let at = width.begin(at);
        if at < upto {
            coarse.entry(at).or_default().add(key.clone(), totals);
        }
    }
    coarse
}

fn calls(sums: &Sums) -> u64 {
    sums.values().map(Rollup::calls).sum()
}

async fn fold_flushes(
    connection: &mut PgConnection,
    part: &TimePart,
    upto: Upto,
) -> Result<u64, StorageError> {
    // A write that waits for this finds no partition then, and is tried again.
    sqlx::query!("select close_partition($1)", part.name)
        .fetch_one(&mut *connection)
        .await?;
    let sums = sums!(
        "usage_flush",
        "at",
        &mut *connection,
        part.lower,
        part.upper,
        |minute| minute
    );
    let sums: Sums = sums
        .into_iter()
        .map(|(minute, rollup)| (minute, rollup.capped(MOST_KEYS)))
        .collect();
    add_minutes(connection, &sums).await?;
    add_hours(connection, &coarser(&sums, Width::Hour, upto.hour)).await?;
    add_days(connection, &coarser(&sums, Width::Day, upto.day)).await?;
    drop_part(connection, &part.name).await?;
    Ok(calls(&sums))
}

async fn fold_hour(connection: &mut PgConnection, hour: Timestamp) -> Result<u64, StorageError> {
    let end = hour + Duration::HOUR;
    let sums = sums!(
        "usage_minute",
        "minute",
        &mut *connection,
        hour,
        end,
        |_| hour
    );
    add_hours(connection, &sums).await?;
    set_folded(connection, "hour", end).await?;
    Ok(calls(&sums))
}

async fn fold_day(connection: &mut PgConnection, day: Timestamp) -> Result<u64, StorageError> {
    let end = day + Duration::DAY;
    let sums = sums!("usage_hour", "minute", &mut *connection, day, end, |_| day);
    add_days(connection, &sums).await?;
    set_folded(connection, "day", end).await?;
    Ok(calls(&sums))
}

async fn add_minutes(connection: &mut PgConnection, sums: &Sums) -> Result<(), StorageError> {
    for at in sums.keys() {
        make(connection, "usage_minute", Width::Hour, *at).await?;
    }
    for part in Columns::parts(as_rows(sums)) {
        insert_rows!("usage_minute", part, &mut *connection);
    }
    Ok(())
}

async fn add_hours(connection: &mut PgConnection, sums: &Sums) -> Result<(), StorageError> {
    for at in sums.keys() {
        make(connection, "usage_hour", Width::Day, *at).await?;
    }
    for part in Columns::parts(as_rows(sums)) {
        insert_rows!("usage_hour", part, &mut *connection);
    }
    Ok(())
}

async fn add_days(connection: &mut PgConnection, sums: &Sums) -> Result<(), StorageError> {
    for at in sums.keys() {
        make(connection, "usage_day", Width::Month, *at).await?;
    }
    for part in Columns::parts(as_rows(sums)) {
        insert_rows!("usage_day", part, &mut *connection);
    }
    Ok(())
}

/// Drops the partitions whose time is over (METER-9). Counts that are not folded into the next
/// level stay. Returns the number of dropped partitions.
pub async fn retire(
    store: &Store,
    config: &MeteringConfig,
    now: Timestamp,
) -> Result<usize, StorageError> {
    let Some(mut tx) = begin(store).await? else {
        return Ok(0);
    };
    let upto = folded_upto(tx.connection()).await?;
    let minutes = now - Duration::hours(i64::from(config.usage_minute_hours));
    let hours = now - Duration::days(i64::from(config.usage_hour_days));
    let days = months_before(now, config.usage_day_months);
    let log = now - Duration::days(i64::from(config.call_log_days));
    let mut dropped = 0;
    for (parent, until) in [
        ("usage_minute", minutes.min(upto.hour)),
        ("usage_hour", hours.min(upto.day)),
        ("usage_day", days),
        ("call_log", log),
        // Each row of such a partition has ended.
        ("call_log_contents", now),
    ] {
        for part in parts(tx.connection(), parent).await? {
            if part.upper <= until {
                drop_part(tx.connection(), &part.name).await?;
                dropped += 1;
            }
        }
    }
    sqlx::query!(
        "delete from flush_seq where at < $1",
        now - PROCESS_REMEMBERED
    )
    .execute(tx.connection())
    .await?;
    tx.commit().await?;
    Ok(dropped)
}

/// The beginning of the month so many months before.
fn months_before(now: Timestamp, months: u32) -> Timestamp {
    let now = Width::Month.begin(now);
    let since = i64::from(now.year()) * 12 + i64::from(u8::from(now.month())) - 1;
    let then = since - i64::from(months);
    let year = i32::try_from(then.div_euclid(12)).unwrap_or(now.year());
    let month = u8::try_from(then.rem_euclid(12) + 1).unwrap_or(1);
    let month = Month::try_from(month).unwrap_or(Month::January);
    now.replace_month(month)
        .and_then(|at| at.replace_year(year))
        .unwrap_or(now)
}
