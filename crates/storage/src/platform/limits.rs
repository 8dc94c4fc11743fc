//! A tenant's own limits, and the refusals that they caused.

use portolan_model::{
    Timestamp,
    event::EventType,
    limits::{LimitName, LimitSet},
};
use serde_json::json;

use crate::{StorageError, TenantTx, events};

/// Reads the limits that the transaction's tenant has set. An unknown name, written by a newer
/// release, is ignored.
pub async fn own(tx: &mut TenantTx) -> Result<LimitSet, StorageError> {
    let tenant = tx.tenant().uuid();
    let rows = sqlx::query!(
        "select name, value from tenant_limits where tenant_id = $1",
        tenant
    )
    .fetch_all(tx.connection())
    .await?;
    let mut own = LimitSet::default();
    for row in rows {
        if let Ok(name) = row.name.parse() {
            own.set(name, u32::try_from(row.value).ok());
        }
    }
    Ok(own)
}

/// Sets a limit; `None` gives the platform's default back.
pub async fn set(
    tx: &mut TenantTx,
    name: LimitName,
    value: Option<u32>,
    now: Timestamp,
) -> Result<(), StorageError> {
    let tenant = tx.tenant().uuid();
    let Some(value) = value else {
        sqlx::query!(
            "delete from tenant_limits where tenant_id = $1 and name = $2",
            tenant,
            name.as_str()
        )
        .execute(tx.connection())
        .await?;
        return Ok(());
    };
    sqlx::query!(
        "insert into tenant_limits (tenant_id, name, value, updated_at) values ($1, $2, $3, $4)
         on conflict (tenant_id, name) do update set value = excluded.value, updated_at = excluded.updated_at",
        tenant,
        name.as_str(),
        i32::try_from(value).unwrap_or(i32::MAX),
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Adds what limits refused in the minute of `now`. The first refusals of a limit in an hour are an
/// event (HOOK-1).
pub async fn add_refusals(
    tx: &mut TenantTx,
    refused: &[(LimitName, u64)],
    now: Timestamp,
) -> Result<(), StorageError> {
    let tenant = tx.tenant().uuid();
    let rows: Vec<_> = refused
        .iter()
        .map(|(name, count)| json!({"name": name.as_str(), "refused": i64::try_from(*count).unwrap_or(i64::MAX)}))
        .collect();
    sqlx::query!(
        "insert into limit_refusals (tenant_id, minute, name, refused)
         select $1, date_trunc('minute', $2::timestamptz), r.name, r.refused
           from jsonb_to_recordset($3) as r(name text, refused bigint)
         on conflict (tenant_id, minute, name) do update set refused = limit_refusals.refused + excluded.refused",
        tenant,
        now,
        serde_json::Value::Array(rows),
    )
    .execute(tx.connection())
    .await?;
    let (tenant, hour) = (tx.tenant(), now.unix_timestamp() / 3600);
    for (name, count) in refused {
        let data = json!({ "limit": name.as_str(), "refused": count });
        let once = format!("quota.100 {} {hour}", name.as_str());
        events::write_once(tx, tenant, EventType::QuotaReached, data, &once, now).await?;
    }
    Ok(())
}

/// What happened in five minutes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bucket {
    /// Their beginning.
    pub at: Timestamp,
    /// Calls that began.
    pub calls: i64,
    /// Most calls that began in one minute.
    pub busiest_minute: i64,
    /// Requests that limits refused.
    pub refused: i64,
}

/// The time from `from` to `until` in steps of five minutes, empty ones too. `from` is the
/// beginning of a minute.
pub async fn usage(
    tx: &mut TenantTx,
    from: Timestamp,
    until: Timestamp,
) -> Result<Vec<Bucket>, StorageError> {
    let tenant = tx.tenant().uuid();
    Ok(sqlx::query_as!(
        Bucket,
        r#"with called as (
             select minute, sum(calls)::bigint as calls from (
               select minute, calls from usage_minute
                where tenant_id = $1 and minute >= $2 and minute < $3 and server_id is not null
               union all
               select minute, calls from usage_flush
                where tenant_id = $1 and minute >= $2 and minute < $3 and server_id is not null
               union all
               select date_trunc('minute', at), 1 from tool_calls
                where tenant_id = $1 and at >= $2 and at < $3 and server_id is not null and id > (select upto from tool_calls_carried)) every
              group by 1),
           refused as (
             select minute, sum(refused)::bigint as refused from limit_refusals
              where tenant_id = $1 and minute >= $2 and minute < $3 group by 1),
           minutes as (
             select coalesce(c.minute, r.minute) as minute, coalesce(c.calls, 0) as calls, coalesce(r.refused, 0) as refused
               from called c full join refused r on r.minute = c.minute)
           select b as "at!", coalesce(sum(m.calls), 0)::bigint as "calls!", coalesce(max(m.calls), 0) as "busiest_minute!",
                  coalesce(sum(m.refused), 0)::bigint as "refused!"
             from generate_series($2::timestamptz, $3::timestamptz - interval '1 minute', interval '5 minutes') b
             left join minutes m on m.minute >= b and m.minute < b + interval '5 minutes'
            group by b order by b"#,
        tenant,
        from,
        until
    )
    .fetch_all(tx.connection())
    .await?)
}

/// How many requests each limit refused since `from`.
pub async fn refused_since(
    tx: &mut TenantTx,
    from: Timestamp,
) -> Result<Vec<(LimitName, i64)>, StorageError> {
    let tenant = tx.tenant().uuid();
    let rows = sqlx::query!(
        r#"select name, sum(refused)::bigint as "refused!" from limit_refusals
            where tenant_id = $1 and minute >= $2 group by name"#,
        tenant,
        from
    )
    .fetch_all(tx.connection())
    .await?;
    Ok(rows
        .into_iter()
        .filter_map(|row| Some((row.name.parse().ok()?, row.refused)))
        .collect())
}
