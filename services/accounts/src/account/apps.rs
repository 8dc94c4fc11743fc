//! A person's connected apps: their access, when they were connected and last used; and
//! disconnecting them (R5).

use std::collections::HashMap;

use askama::Template;
use axum::{
    Form,
    extract::{Query, State, rejection::FormRejection},
    response::{IntoResponse, Response},
};
use http::StatusCode;
use portolan_model::{
    audit::{Actor, Event, Outcome},
    id::GrantId,
};
use portolan_site::{
    browser::Browser,
    pages::{self, fault::PageError, moment::Moment},
    request_context::RequestContext,
    revocation,
    session::MaybeSession,
    state::AuthState,
    target::AccountPage,
};
use portolan_storage::{
    Reason,
    oauth::connected_apps::{self, ConnectedApp, Which},
    platform::audit,
};
use serde::Deserialize;
use time::Duration;

use crate::account::guard::{Done, check_form, form_token, signed_in};

/// How long a connection that was revoked for safety is shown.
const ENDED_FOR: Duration = Duration::days(30);

#[derive(Template)]
#[template(path = "account_apps.html")]
struct AppsPage {
    form_token: String,
    apps: Vec<ShownApp>,
    /// Connections that were revoked for safety within [`ENDED_FOR`].
    ended: Vec<Ended>,
    notice: Option<&'static str>,
}

struct Ended {
    name: String,
    workspace: String,
    at: Moment,
}

struct ShownApp {
    id: String,
    name: String,
    host: String,
    workspace: String,
    what: String,
    since: Moment,
    used: Option<Moment>,
    /// Time when another network repeated a refresh (REVIEW-S-10).
    elsewhere: Option<Moment>,
    ends: Moment,
    place: Option<String>,
}

/// Shows the list.
pub(crate) async fn show(
    State(state): State<AuthState>,
    browser: Browser,
    MaybeSession(session): MaybeSession,
    Query(done): Query<Done>,
) -> Result<Response, PageError> {
    let session = signed_in(session, AccountPage::Apps)?;
    let which = Which {
        user: Some(session.user),
        ..Which::default()
    };
    let mut tx = state.store.system(Reason::OAuth).await?;
    let apps = connected_apps::list(&mut tx, which, state.now())
        .await?
        .into_iter()
        .map(shown)
        .collect();
    let since = state.now() - ENDED_FOR;
    let ended = connected_apps::ended_by_reuse(&mut tx, session.user, since)
        .await?
        .into_iter()
        .map(|one| Ended {
            name: one.client_name,
            workspace: one.tenant_name,
            at: Moment::new(one.ended_at),
        })
        .collect();
    let page = AppsPage {
        form_token: form_token(&state, &browser, &session),
        apps,
        ended,
        notice: done.notice("Disconnected."),
    };
    Ok((browser, pages::html(StatusCode::OK, &page)?).into_response())
}

fn shown(app: ConnectedApp) -> ShownApp {
    let host = url::Url::parse(&app.client_id)
        .ok()
        .and_then(|url| url.host_str().map(str::to_owned));
    ShownApp {
        id: app.grant.to_string(),
        name: app.client_name,
        host: host.unwrap_or_else(|| "Self-registered".to_owned()),
        workspace: app.tenant_name,
        what: app.resource,
        since: Moment::new(app.created_at),
        used: app.last_used_at.map(Moment::new),
        elsewhere: app.elsewhere_at.map(Moment::new),
        ends: Moment::day(app.expires_at),
        place: app.ua_label.or(app.ip_block),
    }
}

/// Fields that a button sends: an id, or `all`.
#[derive(Debug, Deserialize)]
pub(crate) struct AppsForm {
    #[serde(default)]
    form_token: String,
    #[serde(default)]
    grant: String,
}

/// Disconnects one app, or all. Another person's id changes nothing and reveals nothing.
pub(crate) async fn submit(
    State(state): State<AuthState>,
    browser: Browser,
    MaybeSession(session): MaybeSession,
    context: RequestContext,
    form: Result<Form<AppsForm>, FormRejection>,
) -> Result<Response, PageError> {
    let Form(form) = form?;
    let session = signed_in(session, AccountPage::Apps)?;
    check_form(&state, &browser, &session, &form.form_token)?;
    let mut which = Which {
        user: Some(session.user),
        ..Which::default()
    };
    if form.grant != "all" {
        let Ok(id) = form.grant.parse() else {
            return Ok((browser, pages::see_other("/account/apps")?).into_response());
        };
        which.grant = Some(id);
    }
    let now = state.now();
    let mut tx = state.store.system(Reason::OAuth).await?;
    let named = connected_apps::list(&mut tx, which, now).await?;
    let ended = connected_apps::end(&mut tx, which, "revoked_by_person", now).await?;
    let names: HashMap<GrantId, String> = named
        .into_iter()
        .map(|app| (app.grant, app.client_id))
        .collect();
    let mut events = revocation::keys_ended(&ended, session.user, "revoked_by_person");
    events.extend(ended.grants.iter().map(|(grant, tenant)| Event {
        tenant: Some(*tenant),
        actor: Actor::User(session.user),
        action: "grant.revoked",
        target_kind: "grant",
        target_id: grant.to_string(),
        outcome: Outcome::Ok,
        detail: serde_json::json!({ "client_id": names.get(grant) }),
    }));
    events.sort_by_key(|event| event.tenant);
    for event in &events {
        audit::record(&mut tx, event, &context.origin(), now).await?;
    }
    tx.commit().await?;
    revocation::notify_nodes(&state, &ended);
    Ok((browser, pages::see_other("/account/apps?done=1")?).into_response())
}
