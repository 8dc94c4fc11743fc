//! Credentials of workspaces that end soon (HOOK-26): access tokens of a workspace, and connected
//! accounts that cannot be renewed.

use portolan_model::{Timestamp, id::TenantId};

use crate::{
    StorageError, SystemTx,
    webhooks::alerts::{AlertToTell, CREDENTIAL_EXPIRING},
};

/// A credential that ends within the days of its workspace.
#[derive(Debug, Clone)]
pub struct ExpiringCredential {
    /// Its workspace.
    pub tenant: TenantId,
    /// Its id: of the access token (`tok_…`), or of the source of the account (`src_…`).
    pub subject: String,
    /// `access_token` or `account`.
    pub kind: String,
    /// Name of the token or of the source.
    pub name: String,
    /// Its end.
    pub expires_at: Timestamp,
    /// Whole seconds since the epoch of its end: names the fact, with the subject.
    pub expires_epoch: i64,
}

/// The credentials that end soon and have no event yet, the next ends first, at most 500. `days` are
/// those of workspaces that set none. A credential that never had a longer life is left out: the
/// person who made it knows its end.
pub async fn expiring(
    tx: &mut SystemTx,
    days: i32,
    now: Timestamp,
) -> Result<Vec<ExpiringCredential>, StorageError> {
    let rows = sqlx::query!(
        r#"with ends as (
             select t.tenant_id, 'tok_' || replace(t.id::text, '-', '') as subject, 'access_token' as kind, t.name, t.expires_at,
                    t.created_at as began_at
               from access_tokens t
              where t.user_id is null and t.revoked_at is null and t.expires_at > $1 and t.expires_at <= $1::timestamptz + interval '28 days'
             union all
             select c.tenant_id, 'src_' || replace(c.source_id::text, '-', ''), 'account', s.name, c.expires_at,
                    coalesce(c.refreshed_at, c.connected_at)
               from upstream_connections c
               join sources s on s.tenant_id = c.tenant_id and s.id = c.source_id and s.deleted_at is null
              where c.owner_id is null and not c.renewable and c.status = 'ok'
                and c.expires_at > $1 and c.expires_at <= $1::timestamptz + interval '28 days'),
           due as (
             select e.*, extract(epoch from e.expires_at)::bigint as epoch, make_interval(days => coalesce(a.days, $2::int)) as before
               from ends e left join alert_settings a on a.tenant_id = e.tenant_id and a.rule = $3)
           select d.tenant_id as "tenant_id!", d.subject as "subject!", d.kind as "kind!", d.name as "name!", d.expires_at as "expires_at!",
                  d.epoch as "epoch!"
             from due d
            where d.expires_at <= $1::timestamptz + d.before and d.expires_at - d.began_at > d.before
              and not exists (select 1 from events v where v.tenant_id = d.tenant_id
                                and v.once = 'credential.expiring ' || d.subject || ' ' || d.epoch)
            order by d.expires_at limit 500"#,
        now,
        days,
        CREDENTIAL_EXPIRING,
    )
    .fetch_all(tx.connection())
    .await?;
    let found = rows.into_iter().map(|row| ExpiringCredential {
        tenant: row.tenant_id.into(),
        subject: row.subject,
        kind: row.kind,
        name: row.name,
        expires_at: row.expires_at,
        expires_epoch: row.epoch,
    });
    Ok(found.collect())
}

/// Ends the standing alerts whose credential was revoked, replaced or removed. An alert ends by
/// itself when its credential ends.
pub async fn settle(tx: &mut SystemTx, now: Timestamp) -> Result<Vec<AlertToTell>, StorageError> {
    let rows = sqlx::query!(
        "update alerts a set state = 'resolved', resolved_at = $1
          where a.state = 'firing' and a.rule = $2
            and not exists (select 1 from access_tokens t
                             where t.tenant_id = a.tenant_id and t.user_id is null and t.revoked_at is null
                               and a.subject = 'tok_' || replace(t.id::text, '-', ''))
            and not exists (select 1 from upstream_connections c
                             where c.tenant_id = a.tenant_id and c.owner_id is null and not c.renewable and c.status = 'ok'
                               and c.expires_at = a.quiet_at and a.subject = 'src_' || replace(c.source_id::text, '-', ''))
         returning a.tenant_id, a.id, a.rule, a.subject, a.severity, a.text, a.page",
        now,
        CREDENTIAL_EXPIRING,
    )
    .fetch_all(tx.connection())
    .await?;
    let ended = rows.into_iter().map(|row| AlertToTell {
        tenant: row.tenant_id.into(),
        id: row.id.into(),
        rule: row.rule,
        subject: row.subject,
        severity: row.severity,
        text: row.text,
        page: row.page,
    });
    Ok(ended.collect())
}
