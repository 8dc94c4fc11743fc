//! The second step of a sign-in with an authenticator app (AUTH-L11, AUTH-L14). A passkey can
//! replace it ([`super::passkey`]).
//!
//! There is no session between the steps (AUTH-S3). The proof that the password was right is a
//! sealed ticket in the form. It is valid for five minutes in the browser that sent the password.

use askama::Template;
use axum::{
    Form,
    extract::{State, rejection::FormRejection},
    response::{AppendHeaders, IntoResponse, Response},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use portolan_keys::Purpose;
use portolan_model::{
    factor::amr,
    id::{IdentityLinkId, UserId},
};
use portolan_site::{
    browser::Browser,
    pages::{self, fault::PageError},
    request_context::RequestContext,
    session,
    state::AuthState,
    throttle::{AccountKey, TooEarly},
};
use portolan_storage::{
    Reason,
    accounts::{browser_sessions, users, ways_in::WayIn},
};
use serde::{Deserialize, Serialize};
use time::Duration;

use crate::{
    login::{
        continuation::{self, Continuation, path_after},
        device,
        form::{check_form, form_token},
        waiting::with_retry_after,
    },
    passkeys,
    second_factor::{self, Factor},
};

/// How long the second step may take.
const LIFE: Duration = Duration::minutes(5);

#[derive(Template)]
#[template(path = "login_code.html")]
struct CodePage {
    form_token: String,
    request: String,
    ticket: String,
    /// True if the person has passkeys, which can replace the code.
    has_passkeys: bool,
    fault: Option<String>,
}

/// The result of the first step.
#[derive(Serialize, Deserialize)]
pub(crate) struct Ticket {
    pub(crate) user: UserId,
    /// The account key, for the cookie of a known device.
    account: String,
    /// The methods that proved the first step.
    pub(crate) amr: Vec<String>,
    /// The identity that proved it; none for a password.
    #[serde(default)]
    pub(crate) identity: Option<IdentityLinkId>,
    has_passkeys: bool,
    /// True if a list of stolen passwords has the password.
    pub(crate) is_stolen: bool,
}

/// Shows the page after the first step, which `amr` describes.
pub(crate) async fn ask(
    state: &AuthState,
    browser: Browser,
    continuation: &Continuation,
    user: UserId,
    account: &AccountKey,
    (amr, identity, is_stolen): (&[&str], Option<IdentityLinkId>, bool),
) -> Result<Response, PageError> {
    let has_passkeys = passkeys::has_any(state, user).await?;
    let ticket = Ticket {
        user,
        account: account.to_text(),
        amr: amr.iter().map(|&word| word.to_owned()).collect(),
        identity,
        has_passkeys,
        is_stolen,
    };
    let plain = serde_json::to_vec(&ticket).map_err(|_| PageError::Internal("ticket"))?;
    let sealed = state.keys.seal_until(
        Purpose::SignInStep,
        &plain,
        browser.digest().as_bytes(),
        state.now() + LIFE,
    )?;
    let shown = (URL_SAFE_NO_PAD.encode(sealed), has_passkeys);
    page(state, browser, continuation, StatusCode::OK, shown, None)
}

/// Fields of the form.
#[derive(Deserialize)]
pub(crate) struct CodeForm {
    #[serde(default)]
    form_token: String,
    #[serde(default)]
    request: String,
    #[serde(default)]
    ticket: String,
    #[serde(default)]
    code: String,
}

/// Checks the code, and starts the session.
pub(crate) async fn submit(
    State(state): State<AuthState>,
    browser: Browser,
    context: RequestContext,
    headers: HeaderMap,
    form: Result<Form<CodeForm>, FormRejection>,
) -> Result<Response, PageError> {
    let Form(form) = form?;
    check_form(&state.keys, &browser, &form.form_token)?;
    let continuation = Continuation::load(&state, &browser, Some(&form.request)).await?;
    let now = state.now();
    state.throttle.request(context.ip, now).await?;
    let Some(ticket) = read(&state, &browser, &form.ticket) else {
        // The ticket has expired or belongs to another browser: the person enters the password
        // again.
        let path = continuation.target.on("/login");
        return Ok((browser, pages::see_other(&path)?).into_response());
    };
    let refuse = |browser, status, fault: &str| {
        let fault = Some(fault.to_owned());
        page(
            &state,
            browser,
            &continuation,
            status,
            (form.ticket.clone(), ticket.has_passkeys),
            fault,
        )
    };
    match second_factor::check(&state, &context, ticket.user, &form.code).await? {
        Factor::Right => {}
        Factor::Wrong => {
            let fault = "This code is wrong or was already used. Wait for the next one, or use a recovery code.";
            return refuse(browser, StatusCode::UNPROCESSABLE_ENTITY, fault);
        }
        Factor::TooEarly(seconds) => {
            let fault = "Too many attempts. Wait a few minutes, then try again.";
            let refusal = refuse(browser, StatusCode::TOO_MANY_REQUESTS, fault)?;
            let wait = Duration::seconds(seconds);
            return Ok(with_retry_after(refusal, TooEarly { wait }));
        }
    }
    let mut tx = state.store.system(Reason::SignIn).await?;
    // The person was locked or deactivated within the last five minutes.
    if users::find(&mut tx, ticket.user).await?.is_none() {
        return Ok((browser, pages::see_other("/login")?).into_response());
    }
    let mut amr: Vec<&str> = ticket.amr.iter().map(String::as_str).collect();
    amr.extend(
        [amr::ONE_TIME_CODE, amr::MULTIPLE]
            .into_iter()
            .filter(|word| !ticket.amr.iter().any(|known| known == word)),
    );
    let (id, session_cookie) =
        session::start(&mut tx, &state, &headers, &context, ticket.user, &amr).await?;
    if let Some(identity) = ticket.identity {
        browser_sessions::began_by(&mut tx, id, WayIn::Identity(identity)).await?;
    }
    tx.commit().await?;
    let account = AccountKey::from_text(ticket.account);
    let known = device::known(&state, &headers, &account);
    let device_cookie: HeaderValue = device::mark(&state, &account, known)?;
    let path = if ticket.is_stolen {
        continuation::stolen_path(&continuation.target)
    } else {
        path_after(&state, ticket.user, &continuation.target).await?
    };
    let cookies = AppendHeaders([
        (header::SET_COOKIE, session_cookie),
        (header::SET_COOKIE, device_cookie),
    ]);
    Ok((browser, cookies, pages::see_other(&path)?).into_response())
}

pub(crate) fn read(state: &AuthState, browser: &Browser, text: &str) -> Option<Ticket> {
    let sealed = URL_SAFE_NO_PAD.decode(text).ok()?;
    let plain = state
        .keys
        .open(
            Purpose::SignInStep,
            &sealed,
            browser.digest().as_bytes(),
            state.now(),
        )
        .ok()?;
    serde_json::from_slice(plain.expose()).ok()
}

pub(crate) fn page(
    state: &AuthState,
    browser: Browser,
    continuation: &Continuation,
    status: StatusCode,
    (ticket, has_passkeys): (String, bool),
    fault: Option<String>,
) -> Result<Response, PageError> {
    let page = CodePage {
        form_token: form_token(&state.keys, &browser),
        request: continuation.parameter(),
        ticket,
        has_passkeys,
        fault,
    };
    Ok((browser, pages::html(status, &page)?).into_response())
}
