//! Confirms the person's identity by a passkey (AUTH-S2, AUTH-L13). The authenticator must verify
//! its person, because it is the only proof here.

use axum::{
    Form, Json,
    extract::{State, rejection::FormRejection},
    response::{IntoResponse, Response},
};
use http::{HeaderMap, StatusCode};
use portolan_site::{
    browser::Browser, pages::fault::PageError, request_context::RequestContext,
    session::MaybeSession, state::AuthState, target::AccountPage,
};
use portolan_storage::accounts::{passkeys::PasskeyPurpose, ways_in::WayIn};
use serde::Deserialize;

use crate::{
    account::{
        confirm::{About, Why, confirmed, page},
        guard::{check_form, signed_in},
    },
    passkeys::{self, OptionsForm, Proof, Signed},
};

/// The options that the authenticator signs.
pub(crate) async fn options(
    State(state): State<AuthState>,
    browser: Browser,
    MaybeSession(session): MaybeSession,
    context: RequestContext,
    form: Result<Form<OptionsForm>, FormRejection>,
) -> Result<Response, PageError> {
    let Form(form) = form?;
    let session = signed_in(session, AccountPage::Overview)?;
    check_form(&state, &browser, &session, &form.form_token)?;
    passkeys::slow(&state, &context).await?;
    let user = Some(session.user);
    let options =
        passkeys::request_options(&state, &browser, PasskeyPurpose::Confirm, user).await?;
    Ok(Json(options).into_response())
}

/// Fields of the form.
#[derive(Deserialize)]
pub(crate) struct PasskeyForm {
    #[serde(default)]
    form_token: String,
    #[serde(default)]
    request: String,
    #[serde(default, rename = "for")]
    why: Why,
    #[serde(flatten)]
    signed: Signed,
}

/// Checks the signature, and continues with a new session.
pub(crate) async fn submit(
    State(state): State<AuthState>,
    browser: Browser,
    MaybeSession(session): MaybeSession,
    context: RequestContext,
    headers: HeaderMap,
    form: Result<Form<PasskeyForm>, FormRejection>,
) -> Result<Response, PageError> {
    let Form(form) = form?;
    let session = signed_in(session, AccountPage::Overview)?;
    check_form(&state, &browser, &session, &form.form_token)?;
    let about = About::find(&state, &session, &form.request, form.why).await?;
    let (user, purpose) = (Some(session.user), PasskeyPurpose::Confirm);
    let fault =
        match passkeys::check(&state, &context, &browser, purpose, user, &form.signed).await? {
            Proof::Good(_, passkey, amr) => {
                let proved = (Some(WayIn::Passkey(passkey)), &amr[..]);
                let target = &about.target;
                return confirmed(
                    &state, browser, &context, &headers, &session, target, proved,
                )
                .await;
            }
            Proof::Bad => passkeys::BAD,
            Proof::Copied => passkeys::COPIED,
        };
    let status = StatusCode::UNPROCESSABLE_ENTITY;
    page(
        &state,
        browser,
        &session,
        &about,
        status,
        Some(fault.to_owned()),
    )
}
