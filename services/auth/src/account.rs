//! A person's own pages: password, address, signed-in browsers, connected apps (R5). The pages are
//! plain forms; script serves passkeys and comfort only.
//!
//! A change of sign-in methods requires a recent sign-in ([`confirm`], AUTH-S2). Forms are bound to
//! the browser and its session.

mod apps;
mod confirm;
mod confirm_passkey;
mod delete;
mod email;
mod factor;
mod linked;
mod overview;
mod passkeys;
mod password;
mod sessions;
mod sign_in;
mod two_factor;
mod undo;

use axum::{
    Router,
    routing::{get, post},
};
use http::StatusCode;
use portolan_model::{
    audit::{Actor, Event, Outcome},
    factor::SecondFactor,
};
use portolan_storage::{Reason, oauth::factor_rules};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    browser::Browser,
    forms,
    login::{AccountPage, Target},
    pages::{self, FormTarget, PageError},
    session::BrowserSession,
    state::AuthState,
};

/// Routes of the pages.
pub(crate) fn router(state: &AuthState) -> Router<AuthState> {
    // Links that redirect a browser; a HEAD request must not follow them.
    let not_allowed = || async { StatusCode::METHOD_NOT_ALLOWED };
    let router = Router::new()
        .route("/account", get(overview::show).post(overview::rename))
        .route("/account/theme", post(overview::choose_theme))
        .route("/account/delete", get(delete::show).post(delete::submit))
        .route(
            "/account/password",
            get(password::show).post(password::submit),
        )
        .route("/account/email", get(email::show).post(email::submit))
        .route("/account/email/confirm", post(email::confirm))
        .route("/account/undo", get(undo::show).post(undo::submit))
        .route(
            "/account/sessions",
            get(sessions::show).post(sessions::submit),
        )
        .route(
            "/account/two-factor",
            get(two_factor::show).post(two_factor::submit),
        )
        .route("/account/sign-in", get(sign_in::show).post(sign_in::submit))
        .route(
            "/account/sign-in/add/{provider}",
            get(sign_in::add).head(not_allowed),
        )
        .route(
            "/account/confirm/with/{provider}",
            get(sign_in::confirm).head(not_allowed),
        )
        .route("/account/apps", get(apps::show).post(apps::submit))
        .route("/account/linked", get(linked::show).post(linked::submit))
        .route("/account/factor", get(factor::show))
        .route(
            "/account/passkeys",
            get(passkeys::show).post(passkeys::submit),
        )
        .route("/account/passkeys/options", post(passkeys::options))
        .route("/account/confirm", get(confirm::show).post(confirm::submit))
        .route("/account/confirm/passkey", post(confirm_passkey::submit))
        .route("/account/confirm/options", post(confirm_passkey::options));
    pages::protect(router, &state.site, FormTarget::HereWithScript)
}

/// The parameter of a page that reports the action just done: a word of a fixed set, or any.
#[derive(Debug, Default, Deserialize)]
struct Done {
    done: Option<String>,
}

impl Done {
    /// The action, as a word.
    fn what(&self) -> Option<&str> {
        self.done.as_deref()
    }

    /// The notice of a page that has only one action.
    fn notice(&self, text: &'static str) -> Option<&'static str> {
        self.done.is_some().then_some(text)
    }
}

/// The session, or a redirect to the sign-in page and back to `page`.
fn signed_in(
    session: Option<BrowserSession>,
    page: AccountPage,
) -> Result<BrowserSession, PageError> {
    session.ok_or_else(|| PageError::Elsewhere(Target::Account(page).on("/login")))
}

/// Redirects to [`confirm`] and back, unless the session has a recent sign-in (CASE-157).
fn recent(state: &AuthState, session: &BrowserSession, page: AccountPage) -> Result<(), PageError> {
    if session.is_recent(state.now()) {
        return Ok(());
    }
    Err(PageError::Elsewhere(
        Target::Account(page).on("/account/confirm"),
    ))
}

/// Does the same as [`recent`] before a change of factors.
///
/// A person with a factor has to prove it. Otherwise a password alone could add another factor, and
/// so meet a rule that requires more than a password (AUTH-L14). The first factor needs no such
/// proof. The redirect leads on to `request`, which leads back here if it still requires a factor.
async fn may_change_factors(
    state: &AuthState,
    session: &BrowserSession,
    page: AccountPage,
    request: &str,
) -> Result<(), PageError> {
    match proof_first(state, session, page, request).await? {
        None => Ok(()),
        Some(path) => Err(PageError::Elsewhere(path)),
    }
}

/// The path of the proof that a change of factors requires; `None` if the session has it. Viewing
/// the factors requires none.
async fn proof_first(
    state: &AuthState,
    session: &BrowserSession,
    page: AccountPage,
    request: &str,
) -> Result<Option<String>, PageError> {
    let mut tx = state.store.system(Reason::SignIn).await?;
    let host = state.site.passkey_host();
    let rule = SecondFactor::Required;
    let has_one = factor_rules::can_meet(&mut tx, session.user, rule, host).await?;
    drop(tx);
    let is_proved = !has_one || rule.is_met_by(&session.amr);
    if is_proved && session.is_recent(state.now()) {
        return Ok(None);
    }
    let target = match Target::parse(request) {
        Some(target) if !request.is_empty() => target,
        _ => Target::Account(page),
    };
    Ok(Some(if has_one {
        target.on_with("/account/confirm", "for=required")
    } else {
        target.on("/account/confirm")
    }))
}

/// The form token of a signed-in person. A new session makes older forms stale.
fn form_token(state: &AuthState, browser: &Browser, session: &BrowserSession) -> String {
    forms::token(&state.keys, &binding(browser, session))
}

/// Refuses a form of another browser or session (CASE-27).
fn check_form(
    state: &AuthState,
    browser: &Browser,
    session: &BrowserSession,
    presented: &str,
) -> Result<(), PageError> {
    if !browser.is_new() && forms::is_valid(&state.keys, &binding(browser, session), presented) {
        Ok(())
    } else {
        Err(PageError::ForeignForm)
    }
}

fn binding<'a>(browser: &'a Browser, session: &'a BrowserSession) -> [&'a [u8]; 3] {
    [
        b"account",
        browser.digest().as_bytes(),
        session.id.uuid_bytes(),
    ]
}

/// An audit entry for a person's action on their own account.
fn event(session: &BrowserSession, action: &'static str, detail: Value) -> Event {
    Event {
        tenant: None,
        actor: Actor::User(session.user),
        action,
        target_kind: "user",
        target_id: session.user.to_string(),
        outcome: Outcome::Ok,
        detail,
    }
}
