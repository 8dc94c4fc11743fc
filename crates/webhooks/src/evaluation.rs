//! Rules over counts of calls and over ends of credentials (HOOK-24 to HOOK-26). Each writes events in
//! the transaction that notes its state; alerts follow from the events ([`crate::alerts`]).

use portolan_model::{
    Timestamp,
    event::EventType,
    limits::{LimitName, PlatformLimits},
};
use portolan_storage::{
    StorageError, SystemTx, events,
    oauth::api_keys,
    webhooks::{
        alerts::{CREDENTIAL_EXPIRING, ERROR_RATE, QUOTA_NEAR},
        call_rates::{self, RateThresholds},
        expiring_credentials,
    },
};
use serde_json::json;
use time::format_description::well_known::Rfc3339;

use crate::alerts::{AlertRule, ThresholdName};

/// The value of a threshold for workspaces that set none.
fn default_of(rule: &str, name: ThresholdName) -> i32 {
    AlertRule::find(rule).map_or(0, |rule| rule.default_of(name))
}

/// The thresholds of the rule over failed calls for workspaces that set none.
fn error_rate_defaults() -> RateThresholds {
    RateThresholds {
        percent: default_of(ERROR_RATE, ThresholdName::Percent),
        minutes: default_of(ERROR_RATE, ThresholdName::Minutes),
        min_calls: default_of(ERROR_RATE, ThresholdName::MinCalls),
    }
}

/// Writes the events of API keys and other credentials that end soon, once for each end.
pub(crate) async fn expiring(tx: &mut SystemTx, now: Timestamp) -> Result<(), StorageError> {
    for key in api_keys::expiring(tx, now).await? {
        let data = json!({
            "key": key.id, "name": key.name, "days": key.days,
            "expires_at": key.expires_at.format(&Rfc3339).unwrap_or_default(),
        });
        let once = format!("key.expiring {} {}", key.id, key.days);
        let kind = EventType::KeyExpiring;
        events::write_once(tx, key.tenant, kind, data, &once, now).await?;
    }
    let days = default_of(CREDENTIAL_EXPIRING, ThresholdName::Days);
    for found in expiring_credentials::expiring(tx, days, now).await? {
        let left = (found.expires_at - now).whole_seconds().max(0);
        let data = json!({
            "credential": found.subject, "kind": found.kind, "name": found.name,
            "expires_at": found.expires_at.format(&Rfc3339).unwrap_or_default(),
            "days": (left + 86_399) / 86_400,
        });
        let once = format!(
            "credential.expiring {} {}",
            found.subject, found.expires_epoch
        );
        let kind = EventType::CredentialExpiring;
        events::write_once(tx, found.tenant, kind, data, &once, now).await?;
    }
    Ok(())
}

/// Writes the events of servers whose share of failed calls rose to the threshold, or was below it
/// for all of the rule's minutes. Does nothing if another process did so within the minute.
pub(crate) async fn error_rates(tx: &mut SystemTx, now: Timestamp) -> Result<(), StorageError> {
    if !call_rates::take_turn(tx, ERROR_RATE, now).await? {
        return Ok(());
    }
    let defaults = error_rate_defaults();
    for above in call_rates::rising(tx, defaults, now).await? {
        let data = json!({
            "server": above.server, "name": above.name, "slug": above.slug, "calls": above.calls,
            "failed": above.failed, "percent": above.percent, "minutes": above.minutes,
        });
        let kind = EventType::ErrorRateExceeded;
        events::write(tx, above.tenant, kind, data, now).await?;
    }
    for below in call_rates::falling(tx, defaults.minutes, now).await? {
        let data = json!({
            "server": below.server, "name": below.name,
            "since": below.since.format(&Rfc3339).unwrap_or_default(),
        });
        let kind = EventType::ErrorRateRecovered;
        events::write(tx, below.tenant, kind, data, now).await?;
    }
    Ok(())
}

/// Writes the events of workspaces that came near their limit of calls a minute, once an hour. Does
/// nothing if another process did so within the minute.
pub(crate) async fn near_limits(
    tx: &mut SystemTx,
    platform: &PlatformLimits,
    now: Timestamp,
) -> Result<(), StorageError> {
    if !call_rates::take_turn(tx, QUOTA_NEAR, now).await? {
        return Ok(());
    }
    let percent = default_of(QUOTA_NEAR, ThresholdName::Percent);
    let limit = LimitName::TenantCalls.as_str();
    let hour = now.unix_timestamp() / 3600;
    for near in call_rates::near_limits(tx, platform, percent, now).await? {
        let data = json!({
            "limit": limit, "used": near.used, "allowed": near.limit, "percent": near.percent,
        });
        let once = format!("quota.80 {limit} {hour}");
        events::write_once(tx, near.tenant, EventType::QuotaNear, data, &once, now).await?;
    }
    Ok(())
}
