//! Alerts of a workspace: what stands, what a person has read, and the settings of each rule
//! (HOOK-20 to HOOK-23).

use axum::{Json, extract::State};
use http::StatusCode;
use portolan_model::{
    id::{AlertId, AlertKind},
    limits::LimitName,
    member::Action,
};
use portolan_site::{
    console_error::ConsoleError, request_context::RequestContext, state::AuthState,
};
use portolan_storage::{
    TenantTx,
    platform::{audit, limits},
    webhooks::{
        alerts::{self as stored, AlertSetting, AlertView, ERROR_RATE, QUOTA_NEAR},
        call_rates,
    },
};
use portolan_webhooks::alerts::{AlertRule, RULES, Threshold, ThresholdName, failed_calls_page};
use serde::{Deserialize, Serialize};
use serde_json::json;
use time::{Duration, OffsetDateTime};
use utoipa::{IntoParams, ToSchema};

use crate::{
    input::{JsonBody, PathId, QueryParameters, given, path_parameter},
    listing::Pages,
    workspace::Workspace,
};

/// Alerts of one page.
const PAGE: usize = 30;

/// Name of the list in its cursors.
const LIST: &str = "alerts";

/// Longest time for which a rule is muted.
const LONGEST_MUTE: Duration = Duration::days(90);

/// How much an alert matters.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AlertSeverity {
    /// Good to know.
    Info,
    /// Soon to be dealt with.
    Warning,
    /// Calls fail.
    Critical,
}

impl AlertSeverity {
    fn read(word: &str) -> Self {
        match word {
            "critical" => Self::Critical,
            "warning" => Self::Warning,
            _ => Self::Info,
        }
    }
}

/// Whether an alert stands.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AlertState {
    /// It stands.
    Firing,
    /// Its reason is gone.
    Resolved,
}

/// An alert.
#[derive(Debug, Serialize, ToSchema)]
pub struct Alert {
    #[schema(value_type = String)]
    id: AlertId,
    /// Name of the rule.
    rule: String,
    /// Id of the item that it concerns.
    subject: String,
    severity: AlertSeverity,
    /// The alert as a sentence.
    text: String,
    /// Path of the console below the workspace.
    page: String,
    state: AlertState,
    /// Events of it.
    count: i32,
    #[serde(with = "time::serde::rfc3339")]
    fired_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339")]
    last_at: OffsetDateTime,
    #[serde(
        with = "time::serde::rfc3339::option",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(nullable = false)]
    resolved_at: Option<OffsetDateTime>,
    /// Whether the person has not read it since it notified.
    unread: bool,
}

impl From<AlertView> for Alert {
    fn from(view: AlertView) -> Self {
        Self {
            id: view.id,
            rule: view.rule,
            subject: view.subject,
            severity: AlertSeverity::read(&view.severity),
            text: view.text,
            page: view.page,
            state: if view.state == "firing" {
                AlertState::Firing
            } else {
                AlertState::Resolved
            },
            count: view.count,
            fired_at: view.fired_at,
            last_at: view.last_at,
            resolved_at: view.resolved_at,
            unread: view.unread,
        }
    }
}

/// A page of alerts.
#[derive(Debug, Serialize, ToSchema)]
pub struct AlertPage {
    /// The alerts, the newest first.
    items: Vec<Alert>,
    /// Alerts that the person has not read, on all pages.
    unread: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    next_cursor: Option<String>,
}

/// The wanted page.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct AlertQuery {
    /// `next_cursor` of the page before.
    #[serde(default)]
    cursor: Option<String>,
}

/// The alerts of the workspace, the newest first, with the number of those that the person has not
/// read. For admins and owners.
#[utoipa::path(get, path = "/workspaces/{ws}/alerts", tag = "alerts",
    params(("ws" = String, Path, description = "Slug"), AlertQuery),
    responses((status = 200, description = "A page of alerts.", body = AlertPage)))]
pub(crate) async fn list_alerts(
    State(state): State<AuthState>,
    workspace: Workspace,
    QueryParameters(query): QueryParameters<AlertQuery>,
) -> Result<Json<AlertPage>, ConsoleError> {
    workspace.require(Action::Administer)?;
    let pages = Pages {
        keys: &state.keys,
        list: LIST,
        workspace: workspace.id,
        size: PAGE,
    };
    let before = pages.position(query.cursor.as_deref(), |bytes| {
        let bytes: [u8; 16] = bytes.try_into().ok()?;
        Some(AlertId::from_uuid(uuid::Uuid::from_bytes(bytes)))
    })?;
    let user = workspace.caller.browser()?.user;
    let mut tx = state.store.tenant(workspace.id).await?;
    let mut rows = stored::list(&mut tx, user, before, pages.limit()).await?;
    let next_cursor = pages.cut(&mut rows, |last| last.id.uuid_bytes().to_vec());
    Ok(Json(AlertPage {
        items: rows.into_iter().map(Alert::from).collect(),
        unread: stored::unread(&mut tx, user).await?,
        next_cursor,
    }))
}

/// Marks every alert as read by the person.
#[utoipa::path(post, path = "/workspaces/{ws}/alerts/read", tag = "alerts", params(("ws" = String, Path, description = "Slug")),
    responses((status = 204, description = "Read.")))]
pub(crate) async fn read_all_alerts(
    State(state): State<AuthState>,
    workspace: Workspace,
) -> Result<StatusCode, ConsoleError> {
    mark(&state, &workspace, None).await
}

/// Marks one alert as read by the person.
#[utoipa::path(post, path = "/workspaces/{ws}/alerts/{id}/read", tag = "alerts",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Alert")),
    responses((status = 204, description = "Read, or there is none.")))]
pub(crate) async fn read_alert(
    State(state): State<AuthState>,
    workspace: Workspace,
    PathId(id): PathId<AlertKind>,
) -> Result<StatusCode, ConsoleError> {
    mark(&state, &workspace, Some(id)).await
}

async fn mark(
    state: &AuthState,
    workspace: &Workspace,
    id: Option<AlertId>,
) -> Result<StatusCode, ConsoleError> {
    workspace.require(Action::Administer)?;
    let mut tx = state.store.tenant(workspace.id).await?;
    stored::mark_read(&mut tx, workspace.caller.browser()?.user, id, state.now()).await?;
    tx.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The name of a threshold.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AlertThresholdName {
    /// Percent: of failed calls, or of a limit.
    Percent,
    /// The last minutes whose calls count.
    Minutes,
    /// Fewer calls fire nothing.
    MinCalls,
    /// Days before the end of a credential.
    Days,
}

impl From<ThresholdName> for AlertThresholdName {
    fn from(name: ThresholdName) -> Self {
        match name {
            ThresholdName::Percent => Self::Percent,
            ThresholdName::Minutes => Self::Minutes,
            ThresholdName::MinCalls => Self::MinCalls,
            ThresholdName::Days => Self::Days,
        }
    }
}

/// A number of a rule that the workspace may set.
#[derive(Debug, Serialize, ToSchema)]
pub struct AlertThreshold {
    name: AlertThresholdName,
    /// The effective value.
    value: i32,
    /// The value of a workspace that set none.
    default: i32,
    /// The workspace's own value; null = the default applies.
    #[schema(required)]
    own: Option<i32>,
    /// The least value that can be set.
    minimum: i32,
    /// The greatest value that can be set.
    maximum: i32,
}

impl AlertThreshold {
    fn of(one: &Threshold, setting: &AlertSetting) -> Self {
        let own = one.name.own(setting);
        Self {
            name: one.name.into(),
            value: own.unwrap_or(one.default),
            default: one.default,
            own,
            minimum: one.least,
            maximum: one.most,
        }
    }
}

/// The present count of a rule over calls: `part` of `whole`.
#[derive(Debug, Serialize, ToSchema)]
pub struct AlertRuleCount {
    /// Name of the server, or `Calls in a minute`.
    name: String,
    /// Path of the console below the workspace, for what was counted.
    page: String,
    /// Failed calls, or calls of the busiest one of the last minutes.
    part: i64,
    /// Calls of the minutes of the rule, or the limit.
    whole: i64,
}

/// A built-in rule with its settings.
#[derive(Debug, Serialize, ToSchema)]
pub struct AlertRuleView {
    /// Its name.
    name: String,
    /// For people.
    title: String,
    /// Its occasion, as a sentence.
    description: String,
    severity: AlertSeverity,
    /// Whether it makes alerts.
    enabled: bool,
    /// Whether admins and owners get mail.
    mail: bool,
    /// No mail and no messages until then.
    #[serde(
        with = "time::serde::rfc3339::option",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(nullable = false)]
    muted_until: Option<OffsetDateTime>,
    /// The numbers of the rule that the workspace may set.
    thresholds: Vec<AlertThreshold>,
    /// The present counts of a rule over calls: at most five servers with the greatest shares of
    /// failed calls, or the use of the limit. Empty for other rules.
    counts: Vec<AlertRuleCount>,
}

impl AlertRuleView {
    fn of(
        rule: &AlertRule,
        setting: AlertSetting,
        counts: Vec<AlertRuleCount>,
        now: OffsetDateTime,
    ) -> Self {
        let thresholds = rule.thresholds.iter();
        Self {
            thresholds: thresholds
                .map(|one| AlertThreshold::of(one, &setting))
                .collect(),
            counts,
            name: rule.name.to_owned(),
            title: rule.title.to_owned(),
            description: rule.description.to_owned(),
            severity: AlertSeverity::read(rule.severity),
            enabled: setting.enabled,
            mail: setting.mail,
            muted_until: setting.muted_until.filter(|until| now < *until),
        }
    }
}

/// The rules.
#[derive(Debug, Serialize, ToSchema)]
pub struct AlertRules {
    items: Vec<AlertRuleView>,
}

async fn rules(
    state: &AuthState,
    tx: &mut TenantTx,
    now: OffsetDateTime,
) -> Result<AlertRules, ConsoleError> {
    let tenant = tx.tenant();
    let written = stored::settings(tx, tenant).await?;
    let mut items = Vec::with_capacity(RULES.len());
    for rule in RULES {
        let setting = rule.setting(&written);
        let counts = match rule.name {
            ERROR_RATE => failures(tx, rule, &setting, now).await?,
            QUOTA_NEAR => use_of_limit(state, tx, now).await?,
            _ => Vec::new(),
        };
        items.push(AlertRuleView::of(rule, setting, counts, now));
    }
    Ok(AlertRules { items })
}

/// The servers with the greatest shares of failed calls now.
async fn failures(
    tx: &mut TenantTx,
    rule: &AlertRule,
    setting: &AlertSetting,
    now: OffsetDateTime,
) -> Result<Vec<AlertRuleCount>, ConsoleError> {
    let minutes = rule.value_of(ThresholdName::Minutes, setting);
    let servers = call_rates::present(tx, minutes, now).await?;
    let counts = servers.into_iter().map(|server| AlertRuleCount {
        page: failed_calls_page(&server.slug, i64::from(minutes), now),
        name: server.name,
        part: server.failed,
        whole: server.calls,
    });
    Ok(counts.collect())
}

/// The use of the limit on calls of the workspace now; none without a limit.
async fn use_of_limit(
    state: &AuthState,
    tx: &mut TenantTx,
    now: OffsetDateTime,
) -> Result<Vec<AlertRuleCount>, ConsoleError> {
    let own = limits::own(tx).await?;
    let platform = &state.config.limits.platform;
    let Some(limit) = platform.effective(&own).get(LimitName::TenantCalls) else {
        return Ok(Vec::new());
    };
    Ok(vec![AlertRuleCount {
        name: "Calls in a minute".to_owned(),
        page: "/limits".to_owned(),
        part: call_rates::busiest_minute(tx, now).await?,
        whole: i64::from(limit),
    }])
}

/// The built-in rules with the settings of the workspace.
#[utoipa::path(get, path = "/workspaces/{ws}/alert-rules", tag = "alerts", params(("ws" = String, Path, description = "Slug")),
    responses((status = 200, description = "The rules.", body = AlertRules)))]
pub(crate) async fn list_alert_rules(
    State(state): State<AuthState>,
    workspace: Workspace,
) -> Result<Json<AlertRules>, ConsoleError> {
    workspace.require(Action::Administer)?;
    let mut tx = state.store.tenant(workspace.id).await?;
    Ok(Json(rules(&state, &mut tx, state.now()).await?))
}

/// A change of a rule; absent members stay.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AlertRuleChange {
    /// Whether it makes alerts. Standing alerts of a rule that is switched off end.
    #[serde(default)]
    #[schema(nullable = false)]
    enabled: Option<bool>,
    /// Whether admins and owners get mail.
    #[serde(default)]
    #[schema(nullable = false)]
    mail: Option<bool>,
    /// No mail and no messages for so many hours, 1 to 2160; `null` ends it.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<i64>)]
    mute_hours: Option<Option<i64>>,
    /// Percent of failed calls, or of a limit, from which on the rule fires; `null` = the default, as
    /// for the other thresholds. Each rule has its own thresholds and their bounds.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<i32>)]
    percent: Option<Option<i32>>,
    /// The last minutes whose calls count.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<i32>)]
    minutes: Option<Option<i32>>,
    /// Fewer calls fire nothing.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<i32>)]
    min_calls: Option<Option<i32>>,
    /// Days before the end of a credential.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<i32>)]
    days: Option<Option<i32>>,
}

impl AlertRuleChange {
    const fn of(&self, name: ThresholdName) -> Option<Option<i32>> {
        match name {
            ThresholdName::Percent => self.percent,
            ThresholdName::Minutes => self.minutes,
            ThresholdName::MinCalls => self.min_calls,
            ThresholdName::Days => self.days,
        }
    }

    /// Sets the given thresholds. A threshold that the rule does not have, or a value outside its
    /// bounds, is refused with the name of the member.
    fn set_thresholds(
        &self,
        rule: &AlertRule,
        setting: &mut AlertSetting,
    ) -> Result<(), ConsoleError> {
        for name in ThresholdName::ALL {
            let Some(value) = self.of(name) else { continue };
            let Some(threshold) = rule.threshold(name) else {
                let message = "This rule has no such threshold.";
                return Err(
                    ConsoleError::invalid("threshold_unknown", message).field(name.as_str())
                );
            };
            let (least, most) = (threshold.least, threshold.most);
            if value.is_some_and(|value| !(least..=most).contains(&value)) {
                return Err(ConsoleError::invalid(
                    "threshold_out_of_range",
                    format!("Choose a number between {least} and {most}, or the default."),
                )
                .field(name.as_str())
                .details(json!({ "minimum": least, "maximum": most })));
            }
            name.set(setting, value);
        }
        Ok(())
    }
}

/// The rule that `{rule}` names.
#[derive(Debug)]
pub(crate) struct RulePart(&'static AlertRule);

impl<S: Send + Sync> axum::extract::FromRequestParts<S> for RulePart {
    type Rejection = ConsoleError;

    async fn from_request_parts(
        parts: &mut http::request::Parts,
        _: &S,
    ) -> Result<Self, ConsoleError> {
        let name = path_parameter(parts, "rule").await?;
        AlertRule::find(&name)
            .map(Self)
            .ok_or_else(|| ConsoleError::not_found("this rule"))
    }
}

/// Switches a rule, its mail, mutes it for a time, or sets its thresholds.
#[utoipa::path(patch, path = "/workspaces/{ws}/alert-rules/{rule}", tag = "alerts",
    params(("ws" = String, Path, description = "Slug"), ("rule" = String, Path, description = "Name of the rule")),
    request_body = AlertRuleChange, responses((status = 200, description = "The rules after the change.", body = AlertRules)))]
pub(crate) async fn change_alert_rule(
    State(state): State<AuthState>,
    workspace: Workspace,
    RulePart(rule): RulePart,
    context: RequestContext,
    JsonBody(change): JsonBody<AlertRuleChange>,
) -> Result<Json<AlertRules>, ConsoleError> {
    workspace.require(Action::Administer)?;
    let now = state.now();
    let mut tx = state.store.tenant(workspace.id).await?;
    stored::hold_settings(&mut tx).await?;
    let mut setting = rule.setting(&stored::settings(&mut tx, workspace.id).await?);
    change.set_thresholds(rule, &mut setting)?;
    setting.enabled = change.enabled.unwrap_or(setting.enabled);
    setting.mail = change.mail.unwrap_or(setting.mail);
    match change.mute_hours {
        None => {}
        Some(None) => setting.muted_until = None,
        Some(Some(hours)) if (1..=LONGEST_MUTE.whole_hours()).contains(&hours) => {
            setting.muted_until = Some(now + Duration::hours(hours));
        }
        Some(Some(_)) => {
            return Err(ConsoleError::invalid(
                "mute_invalid",
                "A rule is muted for 1 to 2160 hours.",
            )
            .field("mute_hours"));
        }
    }
    stored::set(&mut tx, &setting, now).await?;
    let mut detail = json!({ "enabled": setting.enabled, "mail": setting.mail, "muted": setting.muted_until.is_some() });
    for one in rule.thresholds {
        detail[one.name.as_str()] = rule.value_of(one.name, &setting).into();
    }
    let event = workspace.event("alert_rule.changed", "alert_rule", rule.name, detail);
    audit::record(&mut tx, &event, &context.origin(), now).await?;
    let answer = rules(&state, &mut tx, now).await?;
    tx.commit().await?;
    Ok(Json(answer))
}
