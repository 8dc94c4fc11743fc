//! Sign-in with a passkey: alone, or as the second step after a password (AUTH-L13).
//!
//! The page's script requests options, has the authenticator sign, and posts an ordinary form.
//! Without script the pages work as without passkeys.

use axum::{
    Form, Json,
    extract::{State, rejection::FormRejection},
    response::{IntoResponse, Response},
};
use http::{HeaderMap, StatusCode, header};
use portolan_model::{email::EmailAddress, id::UserId};
use portolan_site::{
    browser::Browser,
    pages::{self, fault::PageError},
    request_context::RequestContext,
    session,
    state::AuthState,
    throttle::AccountKey,
};
use portolan_storage::{
    Reason,
    accounts::{browser_sessions, passkeys::PasskeyPurpose, users, ways_in::WayIn},
};
use serde::Deserialize;

use crate::{
    login::{
        code,
        continuation::{self, Continuation, path_after},
        device,
        form::check_form,
        password,
    },
    passkeys::{self, OptionsForm, Proof, Signed},
};

/// The options that the authenticator signs for a sign-in. They do not depend on the account
/// (AUTH-L5).
pub(crate) async fn options(
    State(state): State<AuthState>,
    browser: Browser,
    context: RequestContext,
    form: Result<Form<OptionsForm>, FormRejection>,
) -> Result<Response, PageError> {
    let Form(form) = form?;
    check_form(&state.keys, &browser, &form.form_token)?;
    passkeys::slow(&state, &context).await?;
    let options = passkeys::request_options(&state, &browser, PasskeyPurpose::SignIn, None).await?;
    Ok(Json(options).into_response())
}

/// The options that the authenticator signs as the second step.
pub(crate) async fn code_options(
    State(state): State<AuthState>,
    browser: Browser,
    context: RequestContext,
    form: Result<Form<OptionsForm>, FormRejection>,
) -> Result<Response, PageError> {
    let Form(form) = form?;
    check_form(&state.keys, &browser, &form.form_token)?;
    passkeys::slow(&state, &context).await?;
    let ticket = code::read(&state, &browser, &form.ticket).ok_or(PageError::StartAgain)?;
    let purpose = PasskeyPurpose::SecondFactor;
    let options = passkeys::request_options(&state, &browser, purpose, Some(ticket.user)).await?;
    Ok(Json(options).into_response())
}

/// Fields of the form.
#[derive(Deserialize)]
pub(crate) struct PasskeyForm {
    #[serde(default)]
    form_token: String,
    #[serde(default)]
    request: String,
    #[serde(default)]
    ticket: String,
    #[serde(flatten)]
    signed: Signed,
}

/// The first checks of both forms: the form belongs to this browser, and its address is within the
/// budget.
async fn begun(
    state: &AuthState,
    browser: &Browser,
    context: &RequestContext,
    form: Result<Form<PasskeyForm>, FormRejection>,
) -> Result<(PasskeyForm, Continuation), PageError> {
    let Form(form) = form?;
    check_form(&state.keys, browser, &form.form_token)?;
    let continuation = Continuation::load(state, browser, Some(&form.request)).await?;
    passkeys::slow(state, context).await?;
    Ok((form, continuation))
}

/// Signs in the owner of the passkey. The authenticator verified its person, so no other factor is
/// needed.
pub(crate) async fn submit(
    State(state): State<AuthState>,
    browser: Browser,
    context: RequestContext,
    headers: HeaderMap,
    form: Result<Form<PasskeyForm>, FormRejection>,
) -> Result<Response, PageError> {
    let (form, continuation) = begun(&state, &browser, &context, form).await?;
    let purpose = PasskeyPurpose::SignIn;
    let proof = passkeys::check(&state, &context, &browser, purpose, None, &form.signed).await?;
    let fault = match proof {
        Proof::Good(user, passkey, amr) => {
            let amr: Vec<String> = amr.into_iter().map(str::to_owned).collect();
            let way = Some(WayIn::Passkey(passkey));
            return signed_in(
                &state,
                browser,
                &context,
                &headers,
                &continuation,
                (user, way, &amr, false),
            )
            .await;
        }
        Proof::Bad => passkeys::BAD,
        Proof::Copied => passkeys::COPIED,
    };
    password::refused(&state, browser, &continuation, fault)
}

/// The second step with a passkey instead of a code.
pub(crate) async fn submit_code(
    State(state): State<AuthState>,
    browser: Browser,
    context: RequestContext,
    headers: HeaderMap,
    form: Result<Form<PasskeyForm>, FormRejection>,
) -> Result<Response, PageError> {
    let (form, continuation) = begun(&state, &browser, &context, form).await?;
    let Some(ticket) = code::read(&state, &browser, &form.ticket) else {
        let path = continuation.target.on("/login");
        return Ok((browser, pages::see_other(&path)?).into_response());
    };
    let (user, purpose) = (Some(ticket.user), PasskeyPurpose::SecondFactor);
    let proof = passkeys::check(&state, &context, &browser, purpose, user, &form.signed).await?;
    let fault = match proof {
        Proof::Good(user, _, amr) => {
            let way = ticket.identity.map(WayIn::Identity);
            let mut all = ticket.amr;
            for word in amr
                .into_iter()
                .chain([portolan_model::factor::amr::MULTIPLE])
            {
                if !all.iter().any(|known| known == word) {
                    all.push(word.to_owned());
                }
            }
            return signed_in(
                &state,
                browser,
                &context,
                &headers,
                &continuation,
                (user, way, &all, ticket.is_stolen),
            )
            .await;
        }
        Proof::Bad => passkeys::BAD,
        Proof::Copied => passkeys::COPIED,
    };
    let status = StatusCode::UNPROCESSABLE_ENTITY;
    code::page(
        &state,
        browser,
        &continuation,
        status,
        (form.ticket, true),
        Some(fault.to_owned()),
    )
}

/// Starts the session and redirects to the target.
async fn signed_in(
    state: &AuthState,
    browser: Browser,
    context: &RequestContext,
    headers: &HeaderMap,
    continuation: &Continuation,
    (user, way, amr, is_stolen): (UserId, Option<WayIn>, &[String], bool),
) -> Result<Response, PageError> {
    let mut tx = state.store.system(Reason::SignIn).await?;
    // The person was locked or deactivated meanwhile.
    let Some(person) = users::find(&mut tx, user).await? else {
        return Ok((browser, pages::see_other("/login")?).into_response());
    };
    let amr: Vec<&str> = amr.iter().map(String::as_str).collect();
    let (id, cookie) = session::start(&mut tx, state, headers, context, user, &amr).await?;
    if let Some(way) = way {
        browser_sessions::began_by(&mut tx, id, way).await?;
    }
    tx.commit().await?;
    let path = if is_stolen {
        continuation::stolen_path(&continuation.target)
    } else {
        path_after(state, user, &continuation.target).await?
    };
    let mut cookies = vec![(header::SET_COOKIE, cookie)];
    if let Ok(address) = EmailAddress::parse(&person.email) {
        let account = AccountKey::new(&state.keys, address.normalised());
        let known = device::known(state, headers, &account);
        cookies.push((header::SET_COOKIE, device::mark(state, &account, known)?));
    }
    let mut response = (browser, pages::see_other(&path)?).into_response();
    for (name, value) in cookies {
        response.headers_mut().append(name, value);
    }
    Ok(response)
}
