//! Checks that the account pages share: the session, its age, and the form token.

use portolan_model::{
    audit::{Actor, Event, Outcome},
    factor::SecondFactor,
};
use portolan_site::{
    browser::Browser,
    forms,
    pages::fault::PageError,
    session::BrowserSession,
    state::AuthState,
    target::{AccountPage, Target},
};
use portolan_storage::{Reason, oauth::factor_rules};
use serde::Deserialize;
use serde_json::Value;

/// The parameter of a page that reports the action just done: a word of a fixed set, or any.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Done {
    pub(crate) done: Option<String>,
}

impl Done {
    /// The action, as a word.
    pub(crate) fn what(&self) -> Option<&str> {
        self.done.as_deref()
    }

    /// The notice of a page that has only one action.
    pub(crate) fn notice(&self, text: &'static str) -> Option<&'static str> {
        self.done.is_some().then_some(text)
    }
}

/// The session, or a redirect to the sign-in page and back to `page`.
pub(crate) fn signed_in(
    session: Option<BrowserSession>,
    page: AccountPage,
) -> Result<BrowserSession, PageError> {
    session.ok_or_else(|| PageError::Elsewhere(Target::Account(page).on("/login")))
}

/// Redirects to the page `confirm` and back, unless the session has a recent sign-in (CASE-157).
pub(crate) fn recent(
    state: &AuthState,
    session: &BrowserSession,
    page: AccountPage,
) -> Result<(), PageError> {
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
pub(crate) async fn may_change_factors(
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
pub(crate) async fn proof_first(
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
pub(crate) fn form_token(state: &AuthState, browser: &Browser, session: &BrowserSession) -> String {
    forms::token(&state.keys, &binding(browser, session))
}

/// Refuses a form of another browser or session (CASE-27).
pub(crate) fn check_form(
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

pub(crate) fn binding<'a>(browser: &'a Browser, session: &'a BrowserSession) -> [&'a [u8]; 3] {
    [
        b"account",
        browser.digest().as_bytes(),
        session.id.uuid_bytes(),
    ]
}

/// An audit entry for a person's action on their own account.
pub(crate) fn event(session: &BrowserSession, action: &'static str, detail: Value) -> Event {
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
