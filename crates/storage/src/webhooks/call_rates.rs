//! Alert rules over counts of calls (HOOK-24, HOOK-25): the share of failed calls of a server, and
//! the share of a limit that is used.
//!
//! Each rule is evaluated for all workspaces by one statement over the minutes that a rule counts,
//! and not by a look at each workspace.

use std::collections::HashSet;

use portolan_metering::key::outcome_code;
use portolan_model::{
    Timestamp,
    id::{ServerId, TenantId},
    limits::{LimitName, PlatformLimits},
    registry::CallOutcome,
};
use time::Duration;

use crate::{
    StorageError, SystemTx, TenantTx,
    webhooks::alerts::{ERROR_RATE, QUOTA_NEAR},
};

/// A rule is evaluated this long after the last time or later: a little less than the minute
/// between two rounds of one process, so that no round finds it too early.
const PAUSE: Duration = Duration::seconds(50);

/// The last minutes in which the busiest one counts for [`near_limits`]. Nodes flush ten seconds
/// late, and a round comes each minute.
pub const LIMIT_MINUTES: i64 = 5;

/// Outcomes that are no failure: done, and refused for its arguments before anything was sent.
const NO_FAILURES: &[i16] = &[
    outcome_code(CallOutcome::Ok),
    outcome_code(CallOutcome::InvalidArguments),
];

/// Thresholds of workspaces that set none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateThresholds {
    /// Percent of failed calls from which on the rule fires.
    pub percent: i32,
    /// The last minutes that count.
    pub minutes: i32,
    /// Fewer calls fire nothing.
    pub min_calls: i32,
}

/// Takes the evaluation of a rule. Of any number of processes one gets true each minute; the others
/// do not wait. The row is held until the transaction ends.
pub async fn take_turn(
    tx: &mut SystemTx,
    rule: &str,
    now: Timestamp,
) -> Result<bool, StorageError> {
    // More time than a request has: the counts are those of all workspaces.
    sqlx::query!("select set_config('statement_timeout', '30s', true)")
        .fetch_one(tx.connection())
        .await?;
    let taken = sqlx::query!(
        "update alert_evaluations set evaluated_at = $2 where rule =
           (select e.rule from alert_evaluations e where e.rule = $1 and e.evaluated_at <= $3 for update skip locked)",
        rule,
        now,
        now - PAUSE,
    )
    .execute(tx.connection())
    .await?;
    Ok(taken.rows_affected() == 1)
}

/// A server whose share of failed calls reached the threshold.
#[derive(Debug, Clone)]
pub struct ServerAbove {
    /// Its workspace.
    pub tenant: TenantId,
    /// The server.
    pub server: ServerId,
    /// Its name.
    pub name: String,
    /// Its name in its URL.
    pub slug: String,
    /// Calls of the minutes.
    pub calls: i64,
    /// Failed ones of them.
    pub failed: i64,
    /// The threshold of the workspace.
    pub percent: i32,
    /// The minutes of the workspace.
    pub minutes: i32,
}

/// Notes the servers whose share of failed calls is at or above the threshold now. Returns those
/// that were below it.
pub async fn rising(
    tx: &mut SystemTx,
    defaults: RateThresholds,
    now: Timestamp,
) -> Result<Vec<ServerAbove>, StorageError> {
    let above = above(tx, defaults, now).await?;
    let tenants: Vec<_> = above.iter().map(|one| one.tenant.uuid()).collect();
    let servers: Vec<_> = above.iter().map(|one| one.server.uuid()).collect();
    // `since` is the present time of new rows alone: of two evaluations one has the turn.
    let begun: HashSet<ServerId> = sqlx::query!(
        r#"insert into error_rates as r (tenant_id, server_id, since, above_at)
           select a.tenant, a.server, $3, $3 from unnest($1::uuid[], $2::uuid[]) a (tenant, server)
           on conflict (tenant_id, server_id) do update set above_at = excluded.above_at
           returning server_id, r.since = $3 as "is_new!""#,
        &tenants,
        &servers,
        now,
    )
    .fetch_all(tx.connection())
    .await?
    .into_iter()
    .filter(|row| row.is_new)
    .map(|row| row.server_id.into())
    .collect();
    let begun = above.into_iter().filter(|one| begun.contains(&one.server));
    Ok(begun.collect())
}

async fn above(
    tx: &mut SystemTx,
    defaults: RateThresholds,
    now: Timestamp,
) -> Result<Vec<ServerAbove>, StorageError> {
    let longest = sqlx::query_scalar!(
        r#"select greatest(max(minutes), $2::int) as "minutes!" from alert_settings where rule = $1"#,
        ERROR_RATE,
        defaults.minutes,
    )
    .fetch_one(tx.connection())
    .await?;
    let rows = sqlx::query!(
        r#"with recent as (
             select tenant_id, server_id, minute, outcome, calls from usage_minute where minute > $2 and server_id is not null
             union all
             select tenant_id, server_id, minute, outcome, calls from usage_flush where at > $2 and minute > $2 and server_id is not null),
           counted as (
             select r.tenant_id, r.server_id, coalesce(s.percent, $3::int) as percent, coalesce(s.minutes, $4::int) as minutes,
                    coalesce(s.min_calls, $5::int) as min_calls, sum(r.calls)::bigint as calls,
                    coalesce(sum(r.calls) filter (where r.outcome <> all($6::smallint[])), 0)::bigint as failed
               from recent r left join alert_settings s on s.tenant_id = r.tenant_id and s.rule = $7
              where coalesce(s.enabled, true) and r.minute > $1::timestamptz - make_interval(mins => coalesce(s.minutes, $4::int))
              group by r.tenant_id, r.server_id, s.percent, s.minutes, s.min_calls)
           select c.tenant_id as "tenant_id!", c.server_id as "server_id!", v.name as "name!", v.slug as "slug!", c.calls as "calls!",
                  c.failed as "failed!", c.percent as "percent!", c.minutes as "minutes!"
             from counted c join servers v on v.tenant_id = c.tenant_id and v.id = c.server_id and v.deleted_at is null
            where c.calls >= c.min_calls and c.failed * 100 >= c.percent * c.calls"#,
        now,
        now - Duration::minutes(i64::from(longest)),
        defaults.percent,
        defaults.minutes,
        defaults.min_calls,
        NO_FAILURES,
        ERROR_RATE,
    )
    .fetch_all(tx.connection())
    .await?;
    let found = rows.into_iter().map(|row| ServerAbove {
        tenant: row.tenant_id.into(),
        server: row.server_id.into(),
        name: row.name,
        slug: row.slug,
        calls: row.calls,
        failed: row.failed,
        percent: row.percent,
        minutes: row.minutes,
    });
    Ok(found.collect())
}

/// A server that is below the threshold again.
#[derive(Debug, Clone)]
pub struct ServerBelow {
    /// Its workspace.
    pub tenant: TenantId,
    /// The server.
    pub server: ServerId,
    /// Its name.
    pub name: String,
    /// When its share was first seen above the threshold.
    pub since: Timestamp,
}

/// Takes the servers that were below the threshold for the whole of the rule's minutes. A later
/// rise begins anew. `minutes` are those of workspaces that set none.
pub async fn falling(
    tx: &mut SystemTx,
    minutes: i32,
    now: Timestamp,
) -> Result<Vec<ServerBelow>, StorageError> {
    let rows = sqlx::query!(
        r#"delete from error_rates r using servers v
          where v.tenant_id = r.tenant_id and v.id = r.server_id
            and r.above_at <= $1::timestamptz - make_interval(mins => coalesce(
              (select s.minutes from alert_settings s where s.tenant_id = r.tenant_id and s.rule = $3), $2::int))
         returning r.tenant_id as "tenant_id!", r.server_id as "server_id!", r.since as "since!", v.name as "name!""#,
        now,
        minutes,
        ERROR_RATE,
    )
    .fetch_all(tx.connection())
    .await?;
    let found = rows.into_iter().map(|row| ServerBelow {
        tenant: row.tenant_id.into(),
        server: row.server_id.into(),
        name: row.name,
        since: row.since,
    });
    Ok(found.collect())
}

/// Calls of a server.
#[derive(Debug, Clone)]
pub struct ServerRate {
    /// Its name.
    pub name: String,
    /// Its name in its URL.
    pub slug: String,
    /// Calls of the minutes.
    pub calls: i64,
    /// Failed ones of them.
    pub failed: i64,
}

/// The five servers of the workspace with the greatest shares of failed calls in the last minutes.
pub async fn present(
    tx: &mut TenantTx,
    minutes: i32,
    now: Timestamp,
) -> Result<Vec<ServerRate>, StorageError> {
    let tenant = tx.tenant().uuid();
    Ok(sqlx::query_as!(
        ServerRate,
        r#"with recent as (
             select server_id, outcome, calls from usage_minute where tenant_id = $1 and minute > $2
             union all
             select server_id, outcome, calls from usage_flush where tenant_id = $1 and at > $2 and minute > $2),
           counted as (
             select server_id, sum(calls)::bigint as calls,
                    coalesce(sum(calls) filter (where outcome <> all($3::smallint[])), 0)::bigint as failed
               from recent where server_id is not null group by server_id)
           select v.name as "name!", v.slug as "slug!", c.calls as "calls!", c.failed as "failed!"
             from counted c join servers v on v.tenant_id = $1 and v.id = c.server_id and v.deleted_at is null
            where c.calls > 0 order by c.failed::float8 / c.calls desc, c.calls desc, v.slug limit 5"#,
        tenant,
        now - Duration::minutes(i64::from(minutes)),
        NO_FAILURES,
    )
    .fetch_all(tx.connection())
    .await?)
}

/// A workspace that came near its limit of calls a minute.
#[derive(Debug, Clone)]
pub struct LimitNear {
    /// The workspace.
    pub tenant: TenantId,
    /// Calls of its busiest minute.
    pub used: i64,
    /// Its limit.
    pub limit: i64,
    /// The threshold of the workspace.
    pub percent: i32,
}

/// The workspaces whose busiest one of the last minutes had at least a share of the limit on calls
/// ([`LimitName::TenantCalls`]). `percent` is that of workspaces that set none. A workspace without a
/// limit is never near it.
pub async fn near_limits(
    tx: &mut SystemTx,
    platform: &PlatformLimits,
    percent: i32,
    now: Timestamp,
) -> Result<Vec<LimitNear>, StorageError> {
    let name = LimitName::TenantCalls;
    let rows = sqlx::query!(
        r#"with recent as (
             select tenant_id, minute, calls from usage_minute where minute > $1 and server_id is not null
             union all
             select tenant_id, minute, calls from usage_flush where at > $1 and minute > $1 and server_id is not null),
           busiest as (
             select tenant_id, max(calls) as used from (
               select tenant_id, sum(calls)::bigint as calls from recent group by tenant_id, minute) minutes
              group by tenant_id),
           limited as (
             select b.tenant_id, b.used, case when l.value is null then $2::bigint else least(l.value, $3::bigint) end as most,
                    coalesce(s.percent, $4::int) as percent
               from busiest b
               left join tenant_limits l on l.tenant_id = b.tenant_id and l.name = $5
               left join alert_settings s on s.tenant_id = b.tenant_id and s.rule = $6
              where coalesce(s.enabled, true))
           select tenant_id as "tenant_id!", used as "used!", most as "most!", percent as "percent!"
             from limited where used * 100 >= percent * most"#,
        now - Duration::minutes(LIMIT_MINUTES),
        platform.defaults.get(name).map(i64::from),
        i64::from(platform.maximum(name)),
        percent,
        name.as_str(),
        QUOTA_NEAR,
    )
    .fetch_all(tx.connection())
    .await?;
    let found = rows.into_iter().map(|row| LimitNear {
        tenant: row.tenant_id.into(),
        used: row.used,
        limit: row.most,
        percent: row.percent,
    });
    Ok(found.collect())
}

/// Calls of the busiest one of the last minutes of the workspace.
pub async fn busiest_minute(tx: &mut TenantTx, now: Timestamp) -> Result<i64, StorageError> {
    let tenant = tx.tenant().uuid();
    Ok(sqlx::query_scalar!(
        r#"select coalesce(max(calls), 0)::bigint as "calls!" from (
             select sum(calls) as calls from (
               select minute, calls from usage_minute where tenant_id = $1 and minute > $2 and server_id is not null
               union all
               select minute, calls from usage_flush where tenant_id = $1 and at > $2 and minute > $2 and server_id is not null) recent
              group by minute) minutes"#,
        tenant,
        now - Duration::minutes(LIMIT_MINUTES),
    )
    .fetch_one(tx.connection())
    .await?)
}
