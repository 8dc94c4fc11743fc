//! Signed-in browsers, and signing them out.

use askama::Template;
use axum::{
    Form,
    extract::{Query, State, rejection::FormRejection},
    response::{IntoResponse, Response},
};
use http::StatusCode;
use portolan_site::{
    browser::Browser,
    pages::{self, fault::PageError, moment::Moment},
    request_context::RequestContext,
    session::MaybeSession,
    state::AuthState,
    target::AccountPage,
};
use portolan_storage::{
    Reason,
    accounts::browser_sessions::{self, EndReason},
    platform::audit,
};
use serde::Deserialize;

use crate::account::guard::{Done, check_form, event, form_token, signed_in};

#[derive(Template)]
#[template(path = "account_sessions.html")]
struct SessionsPage {
    form_token: String,
    sessions: Vec<ShownSession>,
    notice: Option<&'static str>,
}

struct ShownSession {
    id: String,
    browser: String,
    since: Moment,
    seen: Moment,
    place: Option<String>,
    is_this: bool,
}

/// Shows the list.
pub(crate) async fn show(
    State(state): State<AuthState>,
    browser: Browser,
    MaybeSession(session): MaybeSession,
    Query(done): Query<Done>,
) -> Result<Response, PageError> {
    let session = signed_in(session, AccountPage::Sessions)?;
    let mut tx = state.store.system(Reason::SignIn).await?;
    let sessions = browser_sessions::list(&mut tx, session.user, state.now())
        .await?
        .into_iter()
        .map(|one| ShownSession {
            id: one.id.to_string(),
            browser: one.ua_label.unwrap_or_else(|| "Unknown browser".to_owned()),
            since: Moment::new(one.created_at),
            seen: Moment::new(one.last_seen_at),
            place: one.ip_block,
            is_this: one.id == session.id,
        })
        .collect();
    let page = SessionsPage {
        form_token: form_token(&state, &browser, &session),
        sessions,
        notice: done.notice("Signed out."),
    };
    Ok((browser, pages::html(StatusCode::OK, &page)?).into_response())
}

/// Fields that a button sends: an id, or `others`.
#[derive(Debug, Deserialize)]
pub(crate) struct SessionsForm {
    #[serde(default)]
    form_token: String,
    #[serde(default)]
    session: String,
}

/// Signs one browser out, or all others. Another person's id changes nothing and reveals nothing.
pub(crate) async fn submit(
    State(state): State<AuthState>,
    browser: Browser,
    MaybeSession(session): MaybeSession,
    context: RequestContext,
    form: Result<Form<SessionsForm>, FormRejection>,
) -> Result<Response, PageError> {
    let Form(form) = form?;
    let session = signed_in(session, AccountPage::Sessions)?;
    check_form(&state, &browser, &session, &form.form_token)?;
    let now = state.now();
    let reason = EndReason::EndedElsewhere;
    let mut tx = state.store.system(Reason::SignIn).await?;
    let ended = if form.session == "others" {
        let kept = Some(session.id);
        let ended = browser_sessions::end_all(&mut tx, session.user, kept, reason, now).await?;
        ended.sessions
    } else if let Ok(id) = form.session.parse() {
        u64::from(browser_sessions::end_one(&mut tx, session.user, id, reason, now).await?)
    } else {
        0
    };
    if ended > 0 {
        let detail = serde_json::json!({ "browsers_signed_out": ended });
        let entry = event(&session, "session.ended_elsewhere", detail);
        audit::record(&mut tx, &entry, &context.origin(), now).await?;
    }
    tx.commit().await?;
    Ok((browser, pages::see_other("/account/sessions?done=1")?).into_response())
}
