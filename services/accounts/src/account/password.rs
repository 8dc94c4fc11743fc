//! Change of password. It requires the current password, which is as good as a recent sign-in.

use askama::Template;
use axum::{
    Form,
    extract::{Query, State, rejection::FormRejection},
    response::{IntoResponse, Response},
};
use http::StatusCode;
use portolan_keys::Secret;
use portolan_site::{
    browser::Browser,
    mail,
    pages::{self, fault::PageError},
    request_context::RequestContext,
    revocation,
    session::{BrowserSession, MaybeSession},
    state::AuthState,
    target::{AccountPage, Target},
};
use portolan_storage::{
    Reason,
    accounts::{
        account_links::{self, LinkPurpose},
        browser_sessions::{self, EndReason},
        users,
    },
    oauth::connected_apps::{self, Ended, Which},
    platform::audit,
};
use serde::Deserialize;

use crate::{
    account::{
        confirm::{Checked, password_is_right},
        guard::{check_form, event, form_token, signed_in},
    },
    login::{
        continuation::path_after, form::check_password, signup::sentence, waiting::with_retry_after,
    },
};

#[derive(Template)]
#[template(path = "account_password.html")]
struct PasswordPage<'a> {
    form_token: String,
    /// The target of the redirect afterwards.
    request: &'a str,
    email: &'a str,
    /// True if the page is shown because the password is stolen (AUTH-L4). It then explains the
    /// reason and links to the target.
    is_stolen: bool,
    onward: String,
    fault: Option<String>,
    password_fault: Option<String>,
}

/// Parameters of the page, which its form returns.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct PasswordQuery {
    #[serde(default)]
    request: String,
    #[serde(default)]
    why: String,
}

impl PasswordQuery {
    /// The path of the target.
    async fn onward(
        &self,
        state: &AuthState,
        session: &BrowserSession,
        otherwise: &str,
    ) -> Result<String, PageError> {
        match Target::parse(&self.request) {
            Some(target) if !self.request.is_empty() || self.why == "stolen" => {
                path_after(state, session.user, &target).await
            }
            _ => Ok(otherwise.to_owned()),
        }
    }
}

/// Shows the form.
pub(crate) async fn show(
    State(state): State<AuthState>,
    browser: Browser,
    MaybeSession(session): MaybeSession,
    Query(asked): Query<PasswordQuery>,
) -> Result<Response, PageError> {
    let session = signed_in(session, AccountPage::Password)?;
    let has_password = {
        let mut tx = state.store.system(Reason::SignIn).await?;
        users::password_of(&mut tx, session.user).await?.is_some()
    };
    if !has_password {
        // There is no current password to compare with: the first one is set through a mailed link.
        return Err(PageError::Elsewhere("/reset".to_owned()));
    }
    let faults = (None, None);
    page(&state, browser, &session, &asked, StatusCode::OK, faults).await
}

/// Fields of the form.
#[derive(Deserialize)]
pub(crate) struct PasswordForm {
    #[serde(default)]
    form_token: String,
    #[serde(default)]
    request: String,
    #[serde(default)]
    why: String,
    current: Secret<String>,
    password: Secret<String>,
    /// A checkbox: sent or not.
    #[serde(default)]
    end_apps: Option<String>,
}

/// Changes the password; every other browser is signed out (AUTH-S4).
pub(crate) async fn submit(
    State(state): State<AuthState>,
    browser: Browser,
    MaybeSession(session): MaybeSession,
    context: RequestContext,
    form: Result<Form<PasswordForm>, FormRejection>,
) -> Result<Response, PageError> {
    const WHY: &str = "password_changed";
    let Form(form) = form?;
    let session = signed_in(session, AccountPage::Password)?;
    check_form(&state, &browser, &session, &form.form_token)?;
    let asked = PasswordQuery {
        request: form.request.clone(),
        why: form.why.clone(),
    };
    let stored = {
        let mut tx = state.store.system(Reason::SignIn).await?;
        users::password_of(&mut tx, session.user).await?
    };
    if let Checked::Wrong((status, fault, early)) =
        password_is_right(&state, &context, &session, &form.current).await?
    {
        let faults = (Some(fault), None);
        let refusal = page(&state, browser, &session, &asked, status, faults).await?;
        return Ok(match early {
            Some(early) => with_retry_after(refusal, early),
            None => refusal,
        });
    }
    let inputs = [session.email.as_str(), session.display_name.as_str()];
    if let Err(rule) = check_password(&state, &form.password, &inputs).await {
        let fault = Some(sentence(&rule.to_string()));
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        return page(&state, browser, &session, &asked, status, (None, fault)).await;
    }
    let phc = state.passwords.hash(&form.password).await?;
    let now = state.now();
    let mut tx = state.store.system(Reason::SignIn).await?;
    let old = stored.unwrap_or_default();
    if !users::change_password(&mut tx, session.user, &old, &phc, now).await? {
        let fault =
            "The password was changed in another browser a moment ago. Try again with the new one."
                .to_owned();
        let (status, faults) = (StatusCode::CONFLICT, (Some(fault), None));
        return page(&state, browser, &session, &asked, status, faults).await;
    }
    let signed_out = browser_sessions::end_all(
        &mut tx,
        session.user,
        Some(session.id),
        EndReason::PasswordChanged,
        now,
    )
    .await?;
    account_links::consume_all(&mut tx, LinkPurpose::Reset, session.user, now).await?;
    let mut ended = Ended::default();
    if form.end_apps.is_some() {
        let which = Which {
            user: Some(session.user),
            ..Which::default()
        };
        ended = connected_apps::end(&mut tx, which, WHY, now).await?;
    }
    let (by, tokens) = (session.user, &signed_out.tokens);
    revocation::record_ended(&mut tx, &context, by, WHY, &ended, tokens, now).await?;
    let detail = serde_json::json!({ "browsers_signed_out": signed_out.sessions, "apps_disconnected": ended.apps() });
    let entry = event(&session, "password.changed", detail);
    audit::record(&mut tx, &entry, &context.origin(), now).await?;
    let letter = mail::texts::password_changed(&session.display_name, &state.site.url("/reset"));
    let mail = mail::queue(&mut tx, &session.email, &letter, now).await?;
    tx.commit().await?;
    state.mailer.deliver(&mail);
    revocation::notify_nodes(&state, &ended);
    let path = asked
        .onward(&state, &session, "/account?done=password")
        .await?;
    Ok((browser, pages::see_other(&path)?).into_response())
}

async fn page(
    state: &AuthState,
    browser: Browser,
    session: &BrowserSession,
    asked: &PasswordQuery,
    status: StatusCode,
    (fault, password_fault): (Option<String>, Option<String>),
) -> Result<Response, PageError> {
    let page = PasswordPage {
        form_token: form_token(state, &browser, session),
        request: &asked.request,
        email: &session.email,
        is_stolen: asked.why == "stolen",
        onward: asked
            .onward(state, session, AccountPage::Overview.path())
            .await?,
        fault,
        password_fault,
    };
    Ok((browser, pages::html(status, &page)?).into_response())
}
