//! Proving again who one is, before a sensitive change (S2). The session gets a new id, as at every elevation (S3).

use askama::Template;
use axum::{
    Form,
    extract::{Query, State, rejection::FormRejection},
    response::{AppendHeaders, IntoResponse, Response},
};
use http::{HeaderMap, StatusCode, header};
use portolan_keys::{Secret, password::Verification};
use portolan_storage::{Reason, audit, users};
use serde::Deserialize;

use super::{check_form, event, form_token, signed_in};
use crate::{
    browser::Browser,
    login::{
        AccountPage, Target, path_after,
        throttle::AccountKey,
        {wait_sentence, with_retry_after},
    },
    pages::{self, PageError},
    second_factor::{self, Factor},
    session::{self, BrowserSession, MaybeSession},
    state::AuthState,
    visitor::Visitor,
};

#[derive(Template)]
#[template(path = "account_confirm.html")]
struct Page<'a> {
    form_token: String,
    request: String,
    email: &'a str,
    /// Whether a code of the second factor is asked for too.
    needs_code: bool,
    fault: Option<String>,
}

/// Parameters of the page.
#[derive(Debug, Default, Deserialize)]
pub(super) struct ConfirmQuery {
    request: Option<String>,
}

/// Shows the form.
pub(super) async fn show(
    State(state): State<AuthState>,
    browser: Browser,
    MaybeSession(session): MaybeSession,
    Query(query): Query<ConfirmQuery>,
) -> Result<Response, PageError> {
    let session = signed_in(session, AccountPage::Overview)?;
    let target =
        Target::parse(query.request.as_deref().unwrap_or_default()).ok_or(PageError::StartAgain)?;
    let needs_code = second_factor::is_needed(&state, session.user).await?;
    let shown = (&target, needs_code);
    page(&state, browser, &session, shown, StatusCode::OK, None)
}

/// What the form sends.
#[derive(Deserialize)]
pub(super) struct ConfirmForm {
    #[serde(default)]
    form_token: String,
    #[serde(default)]
    request: String,
    password: Secret<String>,
    #[serde(default)]
    code: String,
}

/// Compares, and goes on with a new session.
pub(super) async fn submit(
    State(state): State<AuthState>,
    browser: Browser,
    MaybeSession(session): MaybeSession,
    visitor: Visitor,
    headers: HeaderMap,
    form: Result<Form<ConfirmForm>, FormRejection>,
) -> Result<Response, PageError> {
    let Form(form) = form?;
    let session = signed_in(session, AccountPage::Overview)?;
    check_form(&state, &browser, &session, &form.form_token)?;
    let target = Target::parse(&form.request).ok_or(PageError::StartAgain)?;
    let needs_code = second_factor::is_needed(&state, session.user).await?;
    let shown = (&target, needs_code);
    match password_is_right(&state, &visitor, &session, &form.password).await? {
        Checked::Right => {}
        Checked::Wrong(refusal) => {
            let (status, fault, early) = refusal;
            let refusal = page(&state, browser, &session, shown, status, Some(fault))?;
            return Ok(match early {
                Some(early) => with_retry_after(refusal, early),
                None => refusal,
            });
        }
    }
    let mut amr = vec!["pwd"];
    if needs_code {
        match second_factor::check(&state, &visitor, session.user, &form.code).await? {
            Factor::Right => amr.push("otp"),
            Factor::Wrong => {
                let fault = Some("The code is wrong or was used before.".to_owned());
                let status = StatusCode::UNPROCESSABLE_ENTITY;
                return page(&state, browser, &session, shown, status, fault);
            }
            Factor::TooEarly(retry_after) => return Err(PageError::Throttled { retry_after }),
        }
    }
    let now = state.now();
    let mut tx = state.store.system(Reason::SignIn).await?;
    let (_, cookie) =
        session::start(&mut tx, &state, &headers, &visitor, session.user, &amr).await?;
    let entry = event(&session, "session.confirmed", serde_json::json!({}));
    audit::record(&mut tx, &entry, &visitor.origin(), now).await?;
    tx.commit().await?;
    let path = path_after(&state, session.user, &target).await?;
    let cookies = AppendHeaders([(header::SET_COOKIE, cookie)]);
    Ok((browser, cookies, pages::see_other(&path)?).into_response())
}

/// What a comparison came to.
pub(super) enum Checked {
    /// The password is right.
    Right,
    /// It is not, or it was too early to try: status, sentence, and how long to wait.
    Wrong((StatusCode, String, Option<crate::login::throttle::TooEarly>)),
}

/// Compares a password of the signed-in person, within the budget that sign-in has.
pub(super) async fn password_is_right(
    state: &AuthState,
    visitor: &Visitor,
    session: &BrowserSession,
    password: &Secret<String>,
) -> Result<Checked, PageError> {
    let account = AccountKey::new(&state.keys, &session.user.to_string());
    // A device of its own: a stranger who tries at the sign-in page does not use this budget up, nor the other way round.
    let paid = match state
        .throttle
        .sign_in(visitor.ip, &account, Some("signed-in"), state.now())
    {
        Ok(paid) => paid,
        Err(early) => {
            return Ok(Checked::Wrong((
                StatusCode::TOO_MANY_REQUESTS,
                wait_sentence(early),
                Some(early),
            )));
        }
    };
    let stored = {
        let mut tx = state.store.system(Reason::SignIn).await?;
        users::password_of(&mut tx, session.user).await?
    };
    match state.passwords.verify(password, stored.as_deref()).await? {
        Verification::Match { .. } => {
            state.throttle.signed_in(&paid);
            Ok(Checked::Right)
        }
        Verification::NoMatch => Ok(Checked::Wrong((
            StatusCode::UNPROCESSABLE_ENTITY,
            "The password is wrong.".to_owned(),
            None,
        ))),
    }
}

fn page(
    state: &AuthState,
    browser: Browser,
    session: &BrowserSession,
    (target, needs_code): (&Target, bool),
    status: StatusCode,
    fault: Option<String>,
) -> Result<Response, PageError> {
    let page = Page {
        form_token: form_token(state, &browser, session),
        request: target.to_string(),
        email: &session.email,
        needs_code,
        fault,
    };
    Ok((browser, pages::html(status, &page)?).into_response())
}
