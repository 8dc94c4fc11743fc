//! Name, address, password and appearance.

use askama::Template;
use axum::{
    Form,
    extract::{Query, State, rejection::FormRejection},
    response::{AppendHeaders, IntoResponse, Response},
};
use http::{StatusCode, header};
use portolan_site::{
    browser::Browser,
    pages::{self, fault::PageError, theme::Theme},
    request_context::RequestContext,
    session::{BrowserSession, MaybeSession},
    state::AuthState,
    target::AccountPage,
    workspaces::display_name,
};
use portolan_storage::{Reason, accounts::users, platform::audit};
use serde::Deserialize;

use crate::account::guard::{Done, check_form, event, form_token, signed_in};

#[derive(Template)]
#[template(path = "account.html")]
struct OverviewPage<'a> {
    form_token: String,
    name: &'a str,
    name_fault: Option<&'static str>,
    email: &'a str,
    notice: Option<&'static str>,
}

/// Shows the page. `done` is a word of a fixed set.
pub(crate) async fn show(
    State(state): State<AuthState>,
    browser: Browser,
    MaybeSession(session): MaybeSession,
    Query(done): Query<Done>,
) -> Result<Response, PageError> {
    let session = signed_in(session, AccountPage::Overview)?;
    let notice = match done.what() {
        Some("password") => Some("Your password was changed. Your other browsers were signed out."),
        Some("email") => {
            Some("Your e-mail was changed. We notified the old address, which can undo it.")
        }
        Some("name") => Some("Your name was saved."),
        Some("theme") => Some("The appearance was saved. It applies to the console too."),
        _ => None,
    };
    let page = OverviewPage {
        form_token: form_token(&state, &browser, &session),
        name: &session.display_name,
        name_fault: None,
        email: &session.email,
        notice,
    };
    Ok((browser, pages::html(StatusCode::OK, &page)?).into_response())
}

/// Fields of the name form.
#[derive(Debug, Deserialize)]
pub(crate) struct NameForm {
    #[serde(default)]
    form_token: String,
    #[serde(default)]
    name: String,
}

/// Changes the name that others see. The name authorizes nothing, so this requires no recent
/// sign-in.
pub(crate) async fn rename(
    State(state): State<AuthState>,
    browser: Browser,
    MaybeSession(session): MaybeSession,
    context: RequestContext,
    form: Result<Form<NameForm>, FormRejection>,
) -> Result<Response, PageError> {
    let Form(form) = form?;
    let session = signed_in(session, AccountPage::Overview)?;
    check_form(&state, &browser, &session, &form.form_token)?;
    let Some(name) = display_name(&form.name) else {
        return unnamed(&state, browser, &session, &form.name);
    };
    let mut tx = state.store.system(Reason::SignIn).await?;
    if users::rename(&mut tx, session.user, name).await? {
        let entry = event(&session, "user.renamed", serde_json::json!({}));
        audit::record(&mut tx, &entry, &context.origin(), state.now()).await?;
    }
    tx.commit().await?;
    Ok((browser, pages::see_other("/account?done=name")?).into_response())
}

fn unnamed(
    state: &AuthState,
    browser: Browser,
    session: &BrowserSession,
    typed: &str,
) -> Result<Response, PageError> {
    let page = OverviewPage {
        form_token: form_token(state, &browser, session),
        name: typed,
        name_fault: Some("Enter your name: 1 to 80 characters."),
        email: &session.email,
        notice: None,
    };
    let status = StatusCode::UNPROCESSABLE_ENTITY;
    Ok((browser, pages::html(status, &page)?).into_response())
}

/// Fields of the appearance form.
#[derive(Debug, Deserialize)]
pub(crate) struct ThemeForm {
    #[serde(default)]
    form_token: String,
    theme: Theme,
}

/// Stores the appearance in this browser, for these pages and the console.
pub(crate) async fn choose_theme(
    State(state): State<AuthState>,
    browser: Browser,
    MaybeSession(session): MaybeSession,
    form: Result<Form<ThemeForm>, FormRejection>,
) -> Result<Response, PageError> {
    let Form(form) = form?;
    let session = signed_in(session, AccountPage::Overview)?;
    check_form(&state, &browser, &session, &form.form_token)?;
    let cookie = AppendHeaders([(header::SET_COOKIE, form.theme.cookie(&state.site)?)]);
    let answer = pages::see_other("/account?done=theme")?;
    Ok((browser, cookie, answer).into_response())
}
