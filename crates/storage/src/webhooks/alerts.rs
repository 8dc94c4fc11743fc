//! Alerts of a workspace: one row from the first event to the end (HOOK-20).

use portolan_model::{
    Timestamp,
    event::EventType,
    id::{AlertId, TenantId, UserId},
};
use serde_json::json;
use time::Duration;

use crate::{StorageError, SystemTx, TenantTx, Tx, events};

/// The rule about a credential that an API refuses.
pub const CREDENTIAL_REFUSED: &str = "credential_refused";

/// The rule about a credential that ends soon.
pub const CREDENTIAL_EXPIRING: &str = "credential_expiring";

/// The rule about the share of failed calls of a server.
pub const ERROR_RATE: &str = "error_rate";

/// The rule about the share of a limit that is used.
pub const QUOTA_NEAR: &str = "quota_near";

/// An alert that still stands notifies again after this time (HOOK-21).
pub const AGAIN: Duration = Duration::hours(4);

/// The finding of a rule.
#[derive(Debug)]
pub struct AlertFound<'a> {
    /// Name of the rule.
    pub rule: &'a str,
    /// Id of the item that it concerns.
    pub subject: &'a str,
    /// `info`, `warning` or `critical`.
    pub severity: &'a str,
    /// The alert as a sentence.
    pub text: &'a str,
    /// Path below the workspace.
    pub page: &'a str,
    /// Resolved by itself then.
    pub quiet_at: Option<Timestamp>,
}

/// A standing alert that was noted.
#[derive(Debug, Clone, Copy)]
pub struct AlertNoted {
    /// Its id.
    pub id: AlertId,
    /// True if it is new, or notified for the last time more than [`AGAIN`] ago.
    pub notifies: bool,
}

/// Notes what a rule found: a new alert, or one more event of a standing one. The row is the lock:
/// of two workers one notifies.
pub async fn fire(
    tx: &mut SystemTx,
    tenant: TenantId,
    found: &AlertFound<'_>,
    now: Timestamp,
) -> Result<AlertNoted, StorageError> {
    let before = sqlx::query_scalar!(
        "select notified_at from alerts where tenant_id = $1 and rule = $2 and subject = $3 and state = 'firing' for update",
        tenant.uuid(),
        found.rule,
        found.subject,
    )
    .fetch_optional(tx.connection())
    .await?;
    let again = before.is_some_and(|notified_at| notified_at <= now - AGAIN);
    let row = sqlx::query!(
        "insert into alerts (tenant_id, id, rule, subject, severity, text, page, fired_at, last_at, notified_at, quiet_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $8, $8, $9)
         on conflict (tenant_id, rule, subject) where state = 'firing' do update
           set count = alerts.count + 1, last_at = excluded.last_at, text = excluded.text, quiet_at = excluded.quiet_at,
               notified_at = case when $10::bool then excluded.notified_at else alerts.notified_at end
         returning id, count",
        tenant.uuid(),
        AlertId::generate().uuid(),
        found.rule,
        found.subject,
        found.severity,
        found.text,
        found.page,
        now,
        found.quiet_at,
        again,
    )
    .fetch_one(tx.connection())
    .await?;
    Ok(AlertNoted {
        id: AlertId::from_uuid(row.id),
        // Of two that found no alert, the one that wrote first counts 1.
        notifies: again || (before.is_none() && row.count == 1),
    })
}

/// An alert whose end, or repetition, is to be sent.
#[derive(Debug, Clone)]
pub struct AlertToTell {
    /// Its workspace.
    pub tenant: TenantId,
    /// Its id.
    pub id: AlertId,
    /// Name of the rule.
    pub rule: String,
    /// Id of the item that it concerns.
    pub subject: String,
    /// `info`, `warning` or `critical`.
    pub severity: String,
    /// The alert as a sentence.
    pub text: String,
    /// Path below the workspace.
    pub page: String,
}

/// Ends the standing alerts of an item that is gone. No event follows: what was deleted is known.
pub async fn end_of(tx: &mut TenantTx, subject: &str, now: Timestamp) -> Result<(), StorageError> {
    let tenant = tx.tenant().uuid();
    sqlx::query!(
        "update alerts set state = 'resolved', resolved_at = $3 where tenant_id = $1 and subject = $2 and state = 'firing'",
        tenant,
        subject,
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Ends the standing alert of a rule about an item that a person changed, so that its cause may be
/// gone. Endpoints get the event of its end. There is no mail about a change on purpose (HOOK-21).
pub async fn settle(
    tx: &mut TenantTx,
    rule: &str,
    subject: &str,
    now: Timestamp,
) -> Result<(), StorageError> {
    let tenant = tx.tenant();
    let ended = sqlx::query!(
        "update alerts set state = 'resolved', resolved_at = $4 where tenant_id = $1 and rule = $2 and subject = $3 and state = 'firing'
         returning id, text",
        tenant.uuid(),
        rule,
        subject,
        now,
    )
    .fetch_optional(tx.connection())
    .await?;
    let Some(ended) = ended else { return Ok(()) };
    let settings = settings(tx, tenant).await?;
    let is_muted =
        |one: &AlertSetting| one.rule == rule && one.muted_until.is_some_and(|until| now < until);
    if settings.iter().any(is_muted) {
        return Ok(());
    }
    let id = AlertId::from_uuid(ended.id);
    let data = json!({ "alert": id, "rule": rule, "subject": subject, "text": ended.text });
    events::write(tx, tenant, EventType::AlertResolved, data, now).await
}

/// Ends the standing alert of a rule and subject. `None` if none stands.
pub async fn resolve(
    tx: &mut SystemTx,
    tenant: TenantId,
    rule: &str,
    subject: &str,
    now: Timestamp,
) -> Result<Option<AlertToTell>, StorageError> {
    let row = sqlx::query!(
        "update alerts set state = 'resolved', resolved_at = $4 where tenant_id = $1 and rule = $2 and subject = $3 and state = 'firing'
         returning id, severity, text, page",
        tenant.uuid(),
        rule,
        subject,
        now,
    )
    .fetch_optional(tx.connection())
    .await?;
    Ok(row.map(|row| AlertToTell {
        tenant,
        id: AlertId::from_uuid(row.id),
        rule: rule.to_owned(),
        subject: subject.to_owned(),
        severity: row.severity,
        text: row.text,
        page: row.page,
    }))
}

/// Ends alerts whose quiet time came.
pub async fn end_quiet(tx: &mut SystemTx, now: Timestamp) -> Result<u64, StorageError> {
    let done = sqlx::query!(
        "update alerts set state = 'resolved', resolved_at = $1 where state = 'firing' and quiet_at <= $1",
        now
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected())
}

/// Takes alerts of these rules that stand and notified for the last time more than [`AGAIN`] ago.
/// They are marked as notified now: of two workers one tells.
pub async fn take_again(
    tx: &mut SystemTx,
    rules: &[String],
    now: Timestamp,
) -> Result<Vec<AlertToTell>, StorageError> {
    let rows = sqlx::query!(
        "update alerts a set notified_at = $2 where (a.tenant_id, a.id) in
           (select l.tenant_id, l.id from alerts l
             where l.state = 'firing' and l.rule = any($1) and l.notified_at <= $3 order by l.notified_at limit 100 for update skip locked)
         returning a.tenant_id, a.id, a.rule, a.subject, a.severity, a.text, a.page",
        rules,
        now,
        now - AGAIN,
    )
    .fetch_all(tx.connection())
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| AlertToTell {
            tenant: TenantId::from_uuid(row.tenant_id),
            id: AlertId::from_uuid(row.id),
            rule: row.rule,
            subject: row.subject,
            severity: row.severity,
            text: row.text,
            page: row.page,
        })
        .collect())
}

/// The settings of a rule that differ from the defaults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlertSetting {
    /// Name of the rule.
    pub rule: String,
    /// Whether the rule makes alerts.
    pub enabled: bool,
    /// Whether admins and owners get mail.
    pub mail: bool,
    /// No mail and no messages until then.
    pub muted_until: Option<Timestamp>,
    /// Share from which on the rule fires, in percent; `None`, as for the other thresholds, is the
    /// default of the rule.
    pub percent: Option<i32>,
    /// The last minutes whose calls count.
    pub minutes: Option<i32>,
    /// Fewer calls fire nothing.
    pub min_calls: Option<i32>,
    /// Days before the end of a credential.
    pub days: Option<i32>,
}

/// The settings that a workspace has written.
pub async fn settings(
    tx: &mut impl Tx,
    tenant: TenantId,
) -> Result<Vec<AlertSetting>, StorageError> {
    Ok(sqlx::query_as!(
        AlertSetting,
        "select rule, enabled, mail, muted_until, percent, minutes, min_calls, days from alert_settings where tenant_id = $1",
        tenant.uuid(),
    )
    .fetch_all(tx.raw())
    .await?)
}

/// Waits for other changes of settings of the workspace, until the transaction ends: a change writes
/// the whole row.
pub async fn hold_settings(tx: &mut TenantTx) -> Result<(), StorageError> {
    let name = format!("alert_settings {}", tx.tenant());
    sqlx::query!(
        "select pg_advisory_xact_lock(hashtextextended($1, 0))",
        name
    )
    .fetch_one(tx.connection())
    .await?;
    Ok(())
}

/// Writes the settings of a rule. Standing alerts of a rule that is off end.
pub async fn set(
    tx: &mut TenantTx,
    setting: &AlertSetting,
    now: Timestamp,
) -> Result<(), StorageError> {
    let tenant = tx.tenant().uuid();
    sqlx::query!(
        "insert into alert_settings (tenant_id, rule, enabled, mail, muted_until, percent, minutes, min_calls, days, updated_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
         on conflict (tenant_id, rule) do update set enabled = excluded.enabled, mail = excluded.mail,
           muted_until = excluded.muted_until, percent = excluded.percent, minutes = excluded.minutes,
           min_calls = excluded.min_calls, days = excluded.days, updated_at = excluded.updated_at",
        tenant,
        setting.rule,
        setting.enabled,
        setting.mail,
        setting.muted_until,
        setting.percent,
        setting.minutes,
        setting.min_calls,
        setting.days,
        now,
    )
    .execute(tx.connection())
    .await?;
    if !setting.enabled {
        sqlx::query!(
            "update alerts set state = 'resolved', resolved_at = $3 where tenant_id = $1 and rule = $2 and state = 'firing'",
            tenant,
            setting.rule,
            now,
        )
        .execute(tx.connection())
        .await?;
        if setting.rule == ERROR_RATE {
            // Switched on again, the rule begins anew (HOOK-24).
            sqlx::query!("delete from error_rates where tenant_id = $1", tenant)
                .execute(tx.connection())
                .await?;
        }
    }
    Ok(())
}

/// An alert as a person sees it.
#[derive(Debug, Clone)]
pub struct AlertView {
    /// Its id.
    pub id: AlertId,
    /// Name of the rule.
    pub rule: String,
    /// Id of the item that it concerns.
    pub subject: String,
    /// `info`, `warning` or `critical`.
    pub severity: String,
    /// The alert as a sentence.
    pub text: String,
    /// Path below the workspace.
    pub page: String,
    /// `firing` or `resolved`.
    pub state: String,
    /// Events of it.
    pub count: i32,
    /// The first event.
    pub fired_at: Timestamp,
    /// The last event.
    pub last_at: Timestamp,
    /// Its end.
    pub resolved_at: Option<Timestamp>,
    /// Whether the person has not read it since it notified.
    pub unread: bool,
}

/// The alerts of the workspace, the newest first. Only older ones than `before`.
pub async fn list(
    tx: &mut TenantTx,
    user: UserId,
    before: Option<AlertId>,
    limit: i64,
) -> Result<Vec<AlertView>, StorageError> {
    let tenant = tx.tenant().uuid();
    Ok(sqlx::query_as!(
        AlertView,
        r#"select a.id, a.rule, a.subject, a.severity, a.text, a.page, a.state, a.count, a.fired_at, a.last_at, a.resolved_at,
                  coalesce(r.read_at < a.notified_at, true) as "unread!"
             from alerts a
             left join alert_reads r on r.tenant_id = a.tenant_id and r.user_id = $2 and r.alert_id = a.id
            where a.tenant_id = $1 and ($3::uuid is null or a.id < $3) order by a.id desc limit $4"#,
        tenant,
        user.uuid(),
        before.map(AlertId::uuid),
        limit,
    )
    .fetch_all(tx.connection())
    .await?)
}

/// The number of alerts that a person has not read.
pub async fn unread(tx: &mut TenantTx, user: UserId) -> Result<i64, StorageError> {
    let tenant = tx.tenant().uuid();
    Ok(sqlx::query_scalar!(
        r#"select count(*) as "count!" from alerts a
             left join alert_reads r on r.tenant_id = a.tenant_id and r.user_id = $2 and r.alert_id = a.id
            where a.tenant_id = $1 and coalesce(r.read_at < a.notified_at, true)"#,
        tenant,
        user.uuid(),
    )
    .fetch_one(tx.connection())
    .await?)
}

/// Marks alerts as read by a person: one, or all.
pub async fn mark_read(
    tx: &mut TenantTx,
    user: UserId,
    id: Option<AlertId>,
    now: Timestamp,
) -> Result<(), StorageError> {
    let tenant = tx.tenant().uuid();
    sqlx::query!(
        "insert into alert_reads (tenant_id, user_id, alert_id, read_at)
         select a.tenant_id, $2, a.id, $4 from alerts a where a.tenant_id = $1 and ($3::uuid is null or a.id = $3)
         on conflict (tenant_id, user_id, alert_id) do update set read_at = excluded.read_at",
        tenant,
        user.uuid(),
        id.map(AlertId::uuid),
        now,
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}
