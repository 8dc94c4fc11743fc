//! Alerts of a workspace: what stands, what a person has read, and the settings of each rule
//! (HOOK-20 to HOOK-22).

use axum::{Json, extract::State};
use http::StatusCode;
use portolan_model::{
    id::{AlertId, AlertKind},
    member::Action,
};
use portolan_site::{
    console_error::ConsoleError, request_context::RequestContext, state::AuthState,
};
use portolan_storage::{
    TenantTx,
    platform::audit,
    webhooks::alerts::{self as stored, AlertSetting, AlertView},
};
use portolan_webhooks::alerts::{AlertRule, RULES};
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
}

impl AlertRuleView {
    fn of(rule: &AlertRule, setting: AlertSetting, now: OffsetDateTime) -> Self {
        Self {
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

async fn rules(tx: &mut TenantTx, now: OffsetDateTime) -> Result<AlertRules, ConsoleError> {
    let tenant = tx.tenant();
    let written = stored::settings(tx, tenant).await?;
    let items = RULES
        .iter()
        .map(|rule| AlertRuleView::of(rule, rule.setting(&written), now));
    Ok(AlertRules {
        items: items.collect(),
    })
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
    Ok(Json(rules(&mut tx, state.now()).await?))
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

/// Switches a rule, its mail, or mutes it for a time.
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
    let mut setting = rule.setting(&stored::settings(&mut tx, workspace.id).await?);
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
    let detail = json!({ "enabled": setting.enabled, "mail": setting.mail, "muted": setting.muted_until.is_some() });
    let event = workspace.event("alert_rule.changed", "alert_rule", rule.name, detail);
    audit::record(&mut tx, &event, &context.origin(), now).await?;
    let answer = rules(&mut tx, now).await?;
    tx.commit().await?;
    Ok(Json(answer))
}
