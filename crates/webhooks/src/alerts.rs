//! Built-in alert rules over events (HOOK-20): what fires them, what ends them, and the channels.
//!
//! Rules over counts of calls and over ends of credentials are events first: `evaluation`
//! writes them.

use portolan_model::{
    Timestamp,
    event::EventType,
    id::{AlertId, TenantId},
};
use portolan_site::{
    mail::{self, letter::Letter},
    state::AuthState,
};
use portolan_storage::{
    StorageError, SystemTx, events,
    oauth::client_admission,
    platform::{mails::Mail, tenants},
    registry::credential_states,
    webhooks::{
        alerts::{self, AlertFound, AlertSetting, AlertToTell},
        deliveries::OutboxEvent,
        expiring_credentials,
    },
};
use serde_json::{Value, json};
use time::{Duration, OffsetDateTime, format_description::well_known::Rfc3339};

/// The name of a threshold, in the API and in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThresholdName {
    /// Percent: of failed calls, or of a limit.
    Percent,
    /// The last minutes whose calls count.
    Minutes,
    /// Fewer calls fire nothing.
    MinCalls,
    /// Days before the end of a credential.
    Days,
}

impl ThresholdName {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 4] = [Self::Percent, Self::Minutes, Self::MinCalls, Self::Days];

    /// The word in the API and in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Percent => "percent",
            Self::Minutes => "minutes",
            Self::MinCalls => "min_calls",
            Self::Days => "days",
        }
    }

    /// The workspace's own value, if it set one.
    pub const fn own(self, setting: &AlertSetting) -> Option<i32> {
        match self {
            Self::Percent => setting.percent,
            Self::Minutes => setting.minutes,
            Self::MinCalls => setting.min_calls,
            Self::Days => setting.days,
        }
    }

    /// Sets the workspace's own value; `None` is the default of the rule.
    pub const fn set(self, setting: &mut AlertSetting, value: Option<i32>) {
        match self {
            Self::Percent => setting.percent = value,
            Self::Minutes => setting.minutes = value,
            Self::MinCalls => setting.min_calls = value,
            Self::Days => setting.days = value,
        }
    }
}

/// A number of a rule that a workspace may set (HOOK-23).
#[derive(Debug, Clone, Copy)]
pub struct Threshold {
    /// Its name.
    pub name: ThresholdName,
    /// The value of workspaces that set none.
    pub default: i32,
    /// The least value that can be set.
    pub least: i32,
    /// The greatest value that can be set.
    pub most: i32,
}

const fn threshold(name: ThresholdName, default: i32, least: i32, most: i32) -> Threshold {
    Threshold {
        name,
        default,
        least,
        most,
    }
}

/// A built-in rule.
#[derive(Debug, Clone, Copy)]
pub struct AlertRule {
    /// Its name in the API.
    pub name: &'static str,
    /// For people.
    pub title: &'static str,
    /// Its occasion, as a sentence.
    pub description: &'static str,
    /// `info`, `warning` or `critical`.
    pub severity: &'static str,
    /// Whether admins and owners get mail unless the workspace says otherwise.
    pub mails: bool,
    /// The event that fires it.
    pub fires_on: EventType,
    /// The event that ends it.
    pub ends_on: Option<EventType>,
    /// The field of both events that names the item.
    pub subject: &'static str,
    /// It ends by itself so long after its last event.
    pub quiet_after: Option<Duration>,
    /// The field of the event with the time at which it ends by itself.
    pub ends_at: Option<&'static str>,
    /// Whether it notifies again while it stands.
    pub repeats: bool,
    /// The numbers that a workspace may set.
    pub thresholds: &'static [Threshold],
}

/// Every rule.
pub const RULES: &[AlertRule] = &[
    AlertRule {
        name: alerts::CREDENTIAL_REFUSED,
        title: "Credential refused",
        description: "An API refuses the credential of a source.",
        severity: "critical",
        mails: true,
        fires_on: EventType::CredentialRefused,
        ends_on: Some(EventType::CredentialRestored),
        subject: "source",
        quiet_after: None,
        ends_at: None,
        repeats: true,
        thresholds: &[],
    },
    AlertRule {
        name: "upstream_down",
        title: "Upstream server down",
        description: "An upstream MCP server does not answer.",
        severity: "critical",
        mails: true,
        fires_on: EventType::UpstreamFailed,
        ends_on: Some(EventType::UpstreamRestored),
        subject: "source",
        quiet_after: None,
        ends_at: None,
        repeats: true,
        thresholds: &[],
    },
    AlertRule {
        name: "upstream_changed",
        title: "Upstream server changed",
        description: "An upstream MCP server offers other tools, prompts or resources.",
        severity: "info",
        mails: true,
        fires_on: EventType::UpstreamChanged,
        ends_on: None,
        subject: "source",
        quiet_after: Some(Duration::DAY),
        ends_at: None,
        repeats: false,
        thresholds: &[],
    },
    AlertRule {
        name: "client_requested",
        title: "AI client requested",
        description: "A person requests an AI client that an administrator has to allow.",
        severity: "info",
        // The request itself sends a mail with the person's name.
        mails: false,
        fires_on: EventType::ClientRequested,
        ends_on: Some(EventType::ClientDecided),
        subject: "client",
        quiet_after: None,
        ends_at: None,
        repeats: false,
        thresholds: &[],
    },
    AlertRule {
        name: alerts::ERROR_RATE,
        title: "Calls fail",
        description: "Many calls of a server fail.",
        severity: "critical",
        mails: true,
        fires_on: EventType::ErrorRateExceeded,
        ends_on: Some(EventType::ErrorRateRecovered),
        subject: "server",
        quiet_after: None,
        ends_at: None,
        repeats: true,
        thresholds: &[
            threshold(ThresholdName::Percent, 5, 1, 100),
            threshold(ThresholdName::Minutes, 15, 5, 60),
            threshold(ThresholdName::MinCalls, 50, 1, 1_000_000),
        ],
    },
    AlertRule {
        name: alerts::QUOTA_NEAR,
        title: "Limit nearly reached",
        description: "Calls of a minute come near the limit of the workspace.",
        severity: "info",
        mails: true,
        fires_on: EventType::QuotaNear,
        ends_on: None,
        subject: "limit",
        quiet_after: Some(Duration::hours(2)),
        ends_at: None,
        repeats: false,
        thresholds: &[threshold(ThresholdName::Percent, 80, 10, 99)],
    },
    AlertRule {
        name: "quota_reached",
        title: "Limit reached",
        description: "A limit of the workspace refuses requests.",
        severity: "warning",
        mails: true,
        fires_on: EventType::QuotaReached,
        ends_on: None,
        subject: "limit",
        quiet_after: Some(Duration::hours(2)),
        ends_at: None,
        repeats: false,
        thresholds: &[],
    },
    AlertRule {
        name: "key_expiring",
        title: "API key expires",
        description: "An API key expires in 14, 3 or 1 days.",
        severity: "warning",
        mails: true,
        fires_on: EventType::KeyExpiring,
        ends_on: Some(EventType::KeyRevoked),
        subject: "key",
        quiet_after: Some(Duration::days(15)),
        ends_at: None,
        repeats: false,
        thresholds: &[],
    },
    AlertRule {
        name: alerts::CREDENTIAL_EXPIRING,
        title: "Credential expires",
        description: "An access token of the workspace, or an account at an API, expires soon.",
        severity: "warning",
        mails: true,
        fires_on: EventType::CredentialExpiring,
        ends_on: None,
        subject: "credential",
        quiet_after: None,
        ends_at: Some("expires_at"),
        repeats: false,
        thresholds: &[threshold(ThresholdName::Days, 7, 1, 28)],
    },
    AlertRule {
        name: "endpoint_disabled",
        title: "Webhook endpoint disabled",
        description: "A webhook endpoint failed for five days, or answered 410.",
        severity: "warning",
        mails: true,
        fires_on: EventType::EndpointDisabled,
        ends_on: Some(EventType::EndpointEnabled),
        subject: "endpoint",
        quiet_after: None,
        ends_at: None,
        repeats: false,
        thresholds: &[],
    },
];

impl AlertRule {
    /// The rule of a name.
    pub fn find(name: &str) -> Option<&'static Self> {
        RULES.iter().find(|rule| rule.name == name)
    }

    /// The settings of the rule: what the workspace wrote, or the defaults.
    pub fn setting(&self, written: &[AlertSetting]) -> AlertSetting {
        let own = written.iter().find(|one| one.rule == self.name);
        own.cloned().unwrap_or_else(|| AlertSetting {
            rule: self.name.to_owned(),
            enabled: true,
            mail: self.mails,
            muted_until: None,
            percent: None,
            minutes: None,
            min_calls: None,
            days: None,
        })
    }

    /// The threshold of a name, if the rule has it.
    pub fn threshold(&self, name: ThresholdName) -> Option<&'static Threshold> {
        self.thresholds.iter().find(|one| one.name == name)
    }

    /// The value of a threshold for workspaces that set none; 0 if the rule does not have it.
    pub fn default_of(&self, name: ThresholdName) -> i32 {
        self.threshold(name).map_or(0, |one| one.default)
    }

    /// The value of a threshold in a workspace; 0 if the rule does not have it.
    pub fn value_of(&self, name: ThresholdName, setting: &AlertSetting) -> i32 {
        name.own(setting).unwrap_or_else(|| self.default_of(name))
    }

    fn text(&self, data: &Value) -> String {
        let name = data["name"].as_str().unwrap_or("without a name");
        match self.fires_on {
            EventType::CredentialRefused => format!(
                "The API of {name} refuses its credential: HTTP status {}.",
                data["status"]
            ),
            EventType::UpstreamFailed => format!(
                "The upstream server {name} does not answer: {}",
                data["reason"].as_str().unwrap_or_default()
            ),
            EventType::UpstreamChanged if data["state"] == "held" => format!(
                "Changes of the upstream server {name} wait for approval: {}.",
                data["changes"]
            ),
            EventType::UpstreamChanged => format!(
                "The upstream server {name} changed what it offers: {} changes.",
                data["changes"]
            ),
            EventType::ClientRequested => format!(
                "A person requests the AI client {}.",
                data["client_name"].as_str().unwrap_or("without a name")
            ),
            EventType::ErrorRateExceeded => format!(
                "{} of {} calls of the server {name} failed in {} minutes.",
                data["failed"], data["calls"], data["minutes"]
            ),
            EventType::QuotaNear => format!(
                "Calls come near the limit of the workspace: {} of {} in a minute.",
                data["used"], data["allowed"]
            ),
            EventType::QuotaReached => format!(
                "The limit {} refuses requests.",
                data["limit"].as_str().unwrap_or_default().replace('_', " ")
            ),
            EventType::KeyExpiring if data["days"] == 1 => {
                format!("The API key {name} expires within a day.")
            }
            EventType::KeyExpiring => {
                format!("The API key {name} expires within {} days.", data["days"])
            }
            EventType::CredentialExpiring => credential_expires(data, name),
            EventType::EndpointDisabled if data["reason"] == "gone" => {
                "A webhook endpoint answered 410 Gone and was disabled.".to_owned()
            }
            EventType::EndpointDisabled => {
                "A webhook endpoint failed for five days and was disabled.".to_owned()
            }
            _ => self.description.to_owned(),
        }
    }

    fn page(&self, subject: &str, event: &OutboxEvent) -> String {
        match self.subject {
            "source" => format!("/sources/{subject}"),
            "server" => failed_calls_page(
                event.data["slug"].as_str().unwrap_or_default(),
                event.data["minutes"].as_i64().unwrap_or_default(),
                event.at,
            ),
            "client" => "/clients".to_owned(),
            "limit" => "/limits".to_owned(),
            "credential" if event.data["kind"] == "account" => format!("/sources/{subject}"),
            "key" | "credential" => "/keys".to_owned(),
            _ => format!("/webhooks/{subject}"),
        }
    }
}

fn credential_expires(data: &Value, name: &str) -> String {
    let within = match data["days"].as_i64() {
        Some(days) if days > 1 => format!("{days} days"),
        _ => "a day".to_owned(),
    };
    if data["kind"] == "account" {
        format!("The account at {name} expires within {within}. Sign in again.")
    } else {
        format!("The access token {name} expires within {within}.")
    }
}

/// The console's page of the failed calls of a server in the minutes before a time: its path below
/// the workspace.
pub fn failed_calls_page(slug: &str, minutes: i64, until: Timestamp) -> String {
    let time = |at: Timestamp| {
        let whole = at.replace_nanosecond(0).unwrap_or(at);
        whole.format(&Rfc3339).unwrap_or_default()
    };
    let (from, to) = (time(until - Duration::minutes(minutes)), time(until));
    format!("/calls?server={slug}&outcome=error&from={from}&to={to}")
}

/// Evaluates the rules over an event, in the transaction that makes its deliveries. Returns mails to
/// deliver after the commit.
pub(crate) async fn evaluate(
    state: &AuthState,
    tx: &mut SystemTx,
    event: &OutboxEvent,
    now: Timestamp,
) -> Result<Vec<Mail>, StorageError> {
    let Some(kind) = EventType::parse(&event.kind) else {
        return Ok(Vec::new());
    };
    let mut letters = Vec::new();
    for rule in RULES {
        let Some(subject) = event.data[rule.subject].as_str() else {
            continue;
        };
        if rule.fires_on == kind {
            if rule.name == alerts::CREDENTIAL_REFUSED
                && !is_refused(tx, event.tenant, subject).await?
            {
                continue;
            }
            letters.extend(fire(state, tx, rule, event, subject, now).await?);
        } else if rule.ends_on == Some(kind)
            && let Some(ended) = alerts::resolve(tx, event.tenant, rule.name, subject, now).await?
        {
            letters.extend(tell_resolved(state, tx, rule, &ended, now).await?);
        }
    }
    Ok(letters)
}

/// Returns false if the credential of a source was replaced or removed, or works again, since the
/// event was written: its alert would have no end.
async fn is_refused(
    tx: &mut SystemTx,
    tenant: TenantId,
    source: &str,
) -> Result<bool, StorageError> {
    match source.parse() {
        Ok(source) => credential_states::is_refused(tx, tenant, source).await,
        Err(_) => Ok(false),
    }
}

async fn fire(
    state: &AuthState,
    tx: &mut SystemTx,
    rule: &AlertRule,
    event: &OutboxEvent,
    subject: &str,
    now: Timestamp,
) -> Result<Vec<Mail>, StorageError> {
    let setting = rule.setting(&alerts::settings(tx, event.tenant).await?);
    if !setting.enabled {
        return Ok(Vec::new());
    }
    let (text, page) = (rule.text(&event.data), rule.page(subject, event));
    let end = rule.ends_at.and_then(|field| event.data[field].as_str());
    let end = end.and_then(|end| OffsetDateTime::parse(end, &Rfc3339).ok());
    let found = AlertFound {
        rule: rule.name,
        subject,
        severity: rule.severity,
        text: &text,
        page: &page,
        quiet_at: rule.quiet_after.map(|after| now + after).or(end),
    };
    let noted = alerts::fire(tx, event.tenant, &found, now).await?;
    if !noted.notifies {
        return Ok(Vec::new());
    }
    let told = AlertToTell {
        tenant: event.tenant,
        id: noted.id,
        rule: rule.name.to_owned(),
        subject: subject.to_owned(),
        severity: rule.severity.to_owned(),
        text,
        page,
    };
    tell_fired(state, tx, &setting, &told, now).await
}

/// Reports an alert that began or still stands: an event for endpoints, and mail. While the rule is
/// muted nothing is sent.
pub(crate) async fn tell_fired(
    state: &AuthState,
    tx: &mut SystemTx,
    setting: &AlertSetting,
    alert: &AlertToTell,
    now: Timestamp,
) -> Result<Vec<Mail>, StorageError> {
    if !setting.enabled || setting.muted_until.is_some_and(|until| now < until) {
        return Ok(Vec::new());
    }
    let mut data = data_of(alert.id, alert);
    data["severity"] = alert.severity.as_str().into();
    events::write(tx, alert.tenant, EventType::AlertFired, data, now).await?;
    mail_admins(state, tx, setting, alert, &alert.text, now).await
}

/// Reports the end of an alert: an event for endpoints, and mail if the rule repeats.
pub(crate) async fn tell_resolved(
    state: &AuthState,
    tx: &mut SystemTx,
    rule: &AlertRule,
    alert: &AlertToTell,
    now: Timestamp,
) -> Result<Vec<Mail>, StorageError> {
    let setting = rule.setting(&alerts::settings(tx, alert.tenant).await?);
    if setting.muted_until.is_some_and(|until| now < until) {
        return Ok(Vec::new());
    }
    let data = data_of(alert.id, alert);
    events::write(tx, alert.tenant, EventType::AlertResolved, data, now).await?;
    if !rule.repeats {
        return Ok(Vec::new());
    }
    let text = format!("Resolved: {}", alert.text);
    mail_admins(state, tx, &setting, alert, &text, now).await
}

fn data_of(id: AlertId, alert: &AlertToTell) -> Value {
    json!({ "alert": id, "rule": alert.rule, "subject": alert.subject, "text": alert.text })
}

async fn mail_admins(
    state: &AuthState,
    tx: &mut SystemTx,
    setting: &AlertSetting,
    alert: &AlertToTell,
    text: &str,
    now: Timestamp,
) -> Result<Vec<Mail>, StorageError> {
    if !setting.mail {
        return Ok(Vec::new());
    }
    let Some(workspace) = tenants::find(tx, alert.tenant).await? else {
        return Ok(Vec::new());
    };
    let link = |page: &str| state.site.url(&format!("/w/{}{page}", workspace.slug));
    let mut queued = Vec::new();
    for (name, address) in administrators(tx, alert.tenant).await? {
        let letter = Letter::to(&name, format!("{}: {text}", workspace.name))
            .say(format!(
                "An alert of the workspace {}: {text}",
                workspace.name
            ))
            .link("Open in the console", link(&alert.page))
            .link("Change or mute alerts", link("/alerts"));
        queued.push(mail::queue(tx, &address, &letter, now).await?);
    }
    Ok(queued)
}

async fn administrators(
    tx: &mut SystemTx,
    tenant: TenantId,
) -> Result<Vec<(String, String)>, StorageError> {
    client_admission::administrators(tx, tenant).await
}

/// One round over what stands: ends quiet alerts, and tells again of those that repeat. Returns mails
/// to deliver after the commit.
pub(crate) async fn remind(
    state: &AuthState,
    tx: &mut SystemTx,
    now: Timestamp,
) -> Result<Vec<Mail>, StorageError> {
    alerts::end_quiet(tx, now).await?;
    let mut letters = Vec::new();
    for ended in expiring_credentials::settle(tx, now).await? {
        if let Some(rule) = AlertRule::find(&ended.rule) {
            letters.extend(tell_resolved(state, tx, rule, &ended, now).await?);
        }
    }
    let repeating: Vec<String> = RULES
        .iter()
        .filter(|rule| rule.repeats)
        .map(|rule| rule.name.to_owned())
        .collect();
    for alert in alerts::take_again(tx, &repeating, now).await? {
        let Some(rule) = AlertRule::find(&alert.rule) else {
            continue;
        };
        let setting = rule.setting(&alerts::settings(tx, alert.tenant).await?);
        letters.extend(tell_fired(state, tx, &setting, &alert, now).await?);
    }
    Ok(letters)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Rule: HOOK-20
    #[test]
    fn rules_name_fields_that_their_events_have() {
        let names: BTreeSet<_> = RULES.iter().map(|rule| rule.name).collect();
        assert_eq!(names.len(), RULES.len());
        for rule in RULES {
            for kind in std::iter::once(rule.fires_on).chain(rule.ends_on) {
                assert!(
                    kind.fields()
                        .iter()
                        .any(|field| field.name == rule.subject && field.required),
                    "{} {}",
                    rule.name,
                    kind.as_str()
                );
            }
            assert!(
                rule.ends_on.is_some() || rule.quiet_after.is_some() || rule.ends_at.is_some(),
                "{} would stand for ever",
                rule.name
            );
            for one in rule.thresholds {
                let may = one.least..=one.most;
                assert!(may.contains(&one.default), "{} {:?}", rule.name, one.name);
            }
        }
    }
}
