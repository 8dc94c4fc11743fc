//! Groups of the log of calls: failures by cause, calls by person (METER-13).
//!
//! Each reads a bounded number of the newest entries, so that its time does not grow with the log.

use portolan_model::{Timestamp, id::UserId};

use crate::{StorageError, TenantTx};

/// Most failures that are read. Each is on a page of its own where one call of twenty fails.
pub const MOST_FAILURES: i64 = 20_000;

/// Most calls that are read for people.
pub const MOST_CALLS: i64 = 50_000;

/// Most groups of an answer.
pub const MOST_GROUPS: i64 = 100;

/// Which calls are grouped. `None` is every one.
#[derive(Debug, Clone, Default)]
pub struct Grouped {
    /// Of this tool.
    pub item: Option<String>,
    /// Through servers with this slug at that time.
    pub slug: Option<String>,
    /// Of the client with this name.
    pub client: Option<String>,
    /// With this outcome.
    pub outcome: Option<i16>,
}

/// Groups, most calls first.
#[derive(Debug, Clone)]
pub struct Groups<T> {
    /// The groups.
    pub rows: Vec<T>,
    /// The time of the oldest entry that was read, if older ones were not: the log has more than
    /// the bound.
    pub since: Option<Timestamp>,
}

/// Failures of a tool for one reason.
#[derive(Debug, Clone)]
pub struct Cause {
    /// The tool.
    pub item: String,
    /// Slug of the server at that time; `None` for the try page.
    pub server_slug: Option<String>,
    /// Outcome.
    pub outcome: i16,
    /// HTTP status of the API.
    pub status: Option<i32>,
    /// The reason, in words of this service.
    pub error: Option<String>,
    /// Calls in the period, by the weights of the entries (METER-7).
    pub calls: i64,
    /// The first of them that the log has, also before the period.
    pub first_at: Timestamp,
    /// The last of them in the period.
    pub last_at: Timestamp,
}

/// Failures between two times, by cause. Entries of `tool_calls` have no reason and are left out.
pub async fn causes(
    tx: &mut TenantTx,
    grouped: &Grouped,
    (from, to): (Timestamp, Timestamp),
) -> Result<Groups<Cause>, StorageError> {
    let tenant = tx.tenant().uuid();
    let rows = sqlx::query!(
        r#"with failed as materialized (
             select at, item, server_slug, client, outcome, status, error, weight from call_log
              where tenant_id = $1 and outcome <> 0 and at < $3
              order by at desc limit $8)
           select item as "item!", server_slug, outcome as "outcome!", status, error,
                  sum(weight) filter (where at >= $2)::bigint as "calls!", min(at) as "first_at!", max(at) as "last_at!",
                  (select case when count(*) = $8 then min(at) end from failed) as since
             from failed
            where ($4::text is null or item = $4) and ($5::text is null or server_slug = $5) and ($6::text is null or client = $6)
              and ($7::smallint is null or outcome = $7)
            group by item, server_slug, outcome, status, error
           having max(at) >= $2
            order by 6 desc, 8 desc limit $9"#,
        tenant,
        from,
        to,
        grouped.item,
        grouped.slug,
        grouped.client,
        grouped.outcome,
        MOST_FAILURES,
        MOST_GROUPS,
    )
    .fetch_all(tx.connection())
    .await?;
    Ok(Groups {
        since: rows.first().and_then(|row| row.since),
        rows: rows
            .into_iter()
            .map(|row| Cause {
                item: row.item,
                server_slug: row.server_slug,
                outcome: row.outcome,
                status: row.status,
                error: row.error,
                calls: row.calls,
                first_at: row.first_at,
                last_at: row.last_at,
            })
            .collect(),
    })
}

/// Calls of one person, or of all callers of a kind that are no people.
#[derive(Debug, Clone)]
pub struct PersonCalls {
    /// The person; `None` for service accounts and for keys that act as one.
    pub user: Option<UserId>,
    /// Number of the kind of caller, of callers without a person.
    pub caller: Option<i16>,
    /// Calls, by the weights of the entries (METER-7).
    pub calls: i64,
    /// Calls that failed: at the API, on the way to it, or here.
    pub errors: i64,
    /// Calls that were rejected for their arguments: nothing was sent.
    pub rejected: i64,
    /// Bytes of answers.
    pub bytes_out: i64,
    /// The last call.
    pub last_at: Timestamp,
}

/// Calls between two times, by person.
pub async fn people(
    tx: &mut TenantTx,
    grouped: &Grouped,
    (from, to): (Timestamp, Timestamp),
) -> Result<Groups<PersonCalls>, StorageError> {
    let tenant = tx.tenant().uuid();
    let rows = sqlx::query!(
        r#"with called as materialized (
             select at, item, server_slug, client, caller, user_id, outcome, bytes_out, weight from call_log
              where tenant_id = $1 and at >= $2 and at < $3
              order by at desc limit $8)
           select user_id, case when user_id is null then caller end as caller, sum(weight)::bigint as "calls!",
                  coalesce(sum(weight) filter (where outcome not in (0, 2)), 0)::bigint as "errors!",
                  coalesce(sum(weight) filter (where outcome = 2), 0)::bigint as "rejected!",
                  sum(bytes_out * weight)::bigint as "bytes_out!", max(at) as "last_at!",
                  (select case when count(*) = $8 then min(at) end from called) as since
             from called
            where ($4::text is null or item = $4) and ($5::text is null or server_slug = $5) and ($6::text is null or client = $6)
              and ($7::smallint is null or outcome = $7)
            group by 1, 2
            order by 3 desc, 7 desc limit $9"#,
        tenant,
        from,
        to,
        grouped.item,
        grouped.slug,
        grouped.client,
        grouped.outcome,
        MOST_CALLS,
        MOST_GROUPS,
    )
    .fetch_all(tx.connection())
    .await?;
    Ok(Groups {
        since: rows.first().and_then(|row| row.since),
        rows: rows
            .into_iter()
            .map(|row| PersonCalls {
                user: row.user_id.map(UserId::from_uuid),
                caller: row.caller,
                calls: row.calls,
                errors: row.errors,
                rejected: row.rejected,
                bytes_out: row.bytes_out,
                last_at: row.last_at,
            })
            .collect(),
    })
}
