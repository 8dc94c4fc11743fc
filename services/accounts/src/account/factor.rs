//! The second factor that a workspace requires and the person lacks (AUTH-L14): leads to it, and
//! back to the target.

use askama::Template;
use axum::{
    extract::{Query, State},
    response::{IntoResponse, Response},
};
use http::StatusCode;
use portolan_model::factor::SecondFactor;
use portolan_site::{
    browser::Browser,
    pages::{self, fault::PageError},
    session::MaybeSession,
    state::AuthState,
    target::{AccountPage, Target},
};
use portolan_storage::{Reason, accounts::members, oauth::factor_rules};
use serde::Deserialize;

use crate::login::continuation::path_after;

#[derive(Template)]
#[template(path = "account_factor.html")]
struct FactorPage<'a> {
    title: &'static str,
    workspace: &'a str,
    passkey_only: bool,
    is_possible: bool,
    passkey_path: String,
    app_path: String,
}

/// Parameters of the page.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct FactorQuery {
    #[serde(default)]
    workspace: String,
    #[serde(default)]
    request: String,
}

/// Redirects to the target if the rule is met, or to the proof if the person has the factor.
/// Otherwise shows how to add one.
pub(crate) async fn show(
    State(state): State<AuthState>,
    browser: Browser,
    MaybeSession(session): MaybeSession,
    Query(query): Query<FactorQuery>,
) -> Result<Response, PageError> {
    let target = Target::parse(&query.request).ok_or(PageError::StartAgain)?;
    let Some(session) = session else {
        return Ok((browser, pages::see_other(&target.on("/login"))?).into_response());
    };
    let elsewhere =
        |browser: Browser, path: &str| Ok((browser, pages::see_other(path)?).into_response());
    let mut tx = state.store.system(Reason::SignIn).await?;
    // A workspace of strangers is not described: the target itself answers (AUTH-M2).
    let workspace = members::workspace_of(&mut tx, session.user, &query.workspace).await?;
    let rule = match &workspace {
        Some(workspace) => factor_rules::of(&mut tx, workspace.tenant.id).await?,
        None => SecondFactor::Off,
    };
    let Some(workspace) = workspace.filter(|_| !rule.is_met_by(&session.amr)) else {
        drop(tx);
        let path = path_after(&state, session.user, &target).await?;
        return elsewhere(browser, &path);
    };
    let host = state.site.passkey_host();
    let can_meet = factor_rules::can_meet(&mut tx, session.user, rule, host).await?;
    drop(tx);
    if can_meet {
        let confirm = target.on_with("/account/confirm", &format!("for={rule}"));
        return elsewhere(browser, &confirm);
    }
    // A new factor requires a recent sign-in. That page leads to the target, and the target leads
    // back here.
    if !session.is_recent(state.now()) {
        return elsewhere(browser, &target.on("/account/confirm"));
    }
    let passkey_only = rule == SecondFactor::Passkey;
    let page = FactorPage {
        title: if passkey_only {
            "Add a passkey"
        } else {
            "Set up two-step verification"
        },
        workspace: &workspace.tenant.name,
        passkey_only,
        is_possible: state.site.passkeys().is_some(),
        passkey_path: target.on(AccountPage::Passkeys.path()),
        app_path: target.on(AccountPage::TwoFactor.path()),
    };
    Ok((browser, pages::html(StatusCode::OK, &page)?).into_response())
}
