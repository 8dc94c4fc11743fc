//! Proof of an address: the code from the mail, in the browser that signed up (AUTH-L7).

use askama::Template;
use axum::{
    Form,
    extract::{Query, State, rejection::FormRejection},
    response::{IntoResponse, Response},
};
use http::{HeaderMap, StatusCode, header};
use portolan_keys::{Purpose, random};
use portolan_model::{
    Timestamp,
    audit::{Actor, Event, Outcome},
    email::EmailAddress,
    id::UserId,
};
use portolan_site::{
    browser::Browser,
    mail::MAILBOX_PATH,
    pages::{self, Message, fault::PageError},
    request_context::RequestContext,
    session,
    state::AuthState,
    target::Target,
    throttle::AccountKey,
};
use portolan_storage::{
    Reason, SystemTx,
    accounts::{
        browser_sessions, identities, identity_offers, users,
        verifications::{self, MAX_ATTEMPTS, MAX_SENDS, RESEND_PAUSE, Verification},
        ways_in::WayIn,
    },
    platform::audit,
};
use serde::Deserialize;

use crate::login::{
    continuation::path_after,
    form::{check_form, form_token},
    signup::{code_message, queue_message},
    waiting::{wait_sentence, with_retry_after},
};

#[derive(Template)]
#[template(path = "verify.html")]
struct VerifyPage<'a> {
    form_token: String,
    address: &'a str,
    /// The code from the link in the mail. Opening the link does not use it up.
    code: &'a str,
    fault: Option<String>,
    notice: Option<&'static str>,
    signup_path: String,
    /// The path of the development server's page that shows mail.
    mailbox: Option<&'static str>,
}

/// Parameters of the page.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct VerifyQuery {
    code: Option<String>,
}

/// Shows the form. Reading changes nothing, so a mail scanner that follows the link does no harm
/// (CASE-150).
pub(crate) async fn show(
    State(state): State<AuthState>,
    browser: Browser,
    Query(query): Query<VerifyQuery>,
) -> Result<Response, PageError> {
    let Some(verification) = find(&state, &browser).await? else {
        return nothing_open(browser);
    };
    let code = query.code.as_deref().and_then(digits).unwrap_or_default();
    page(
        &state,
        browser,
        &verification,
        StatusCode::OK,
        &code,
        None,
        None,
    )
}

/// Fields of the form.
#[derive(Deserialize)]
pub(crate) struct VerifyForm {
    #[serde(default)]
    form_token: String,
    #[serde(default)]
    code: String,
}

/// Checks a code: five attempts, one success, also for concurrent requests.
pub(crate) async fn submit(
    State(state): State<AuthState>,
    browser: Browser,
    context: RequestContext,
    headers: HeaderMap,
    form: Result<Form<VerifyForm>, FormRejection>,
) -> Result<Response, PageError> {
    let Form(form) = form?;
    check_form(&state.keys, &browser, &form.form_token)?;
    let Some(verification) = find(&state, &browser).await? else {
        return nothing_open(browser);
    };
    let refuse = |browser, status, fault| refused(&state, browser, &verification, status, fault);
    let now = state.now();
    if let Err(early) = state.throttle.request(context.ip, now).await {
        return Ok(with_retry_after(
            refuse(browser, StatusCode::TOO_MANY_REQUESTS, wait_sentence(early))?,
            early,
        ));
    }
    let Some(code) = digits(&form.code) else {
        let fault = "Enter the 8 digits from our message.".to_owned();
        return refuse(browser, StatusCode::UNPROCESSABLE_ENTITY, fault);
    };

    let mut tx = state.store.system(Reason::SignIn).await?;
    let Some(expected) =
        verifications::count_attempt(&mut tx, verification.id, browser.digest(), now).await?
    else {
        let fault = "This code no longer works. Send a new one.".to_owned();
        return refuse(browser, StatusCode::UNPROCESSABLE_ENTITY, fault);
    };
    if !state.keys.verify_mac(
        Purpose::MailCode,
        &code_message(verification.id, &code),
        &expected,
    ) {
        tx.commit().await?;
        let left = MAX_ATTEMPTS - verification.attempts - 1;
        return refuse(browser, StatusCode::UNPROCESSABLE_ENTITY, wrong_code(left));
    }
    if !verifications::consume(&mut tx, verification.id, now).await? {
        return nothing_open(browser);
    }
    if let Err(error) =
        users::verify_address(&mut tx, verification.user, &verification.address_norm, now).await
    {
        if error.is_conflict_on("user_emails_verified") {
            return already_there(browser, &verification);
        }
        return Err(error.into());
    }
    // Sign-ups that others began with this address end (AUTH-F5, CASE-160).
    users::forget_unverified(&mut tx, &verification.address_norm, verification.user).await?;
    let amr = proved(&mut tx, &browser, &context, verification.user, now).await?;
    let user = verification.user;
    let (id, cookie) = session::start(&mut tx, &state, &headers, &context, user, &[amr]).await?;
    if amr == "fed"
        && let [identity] = &identities::of_user(&mut tx, user).await?[..]
    {
        browser_sessions::began_by(&mut tx, id, WayIn::Identity(identity.id)).await?;
    }
    tx.commit().await?;
    let path = path_after(&state, verification.user, &target(&verification)).await?;
    Ok((
        browser,
        [(header::SET_COOKIE, cookie)],
        pages::see_other(&path)?,
    )
        .into_response())
}

/// The words for a wrong code, with the number of attempts that are left.
fn wrong_code(left: i32) -> String {
    match left {
        ..=0 => "This code is wrong, and this was the last attempt. Send a new one.".to_owned(),
        1 => "This code is wrong. You have 1 more attempt.".to_owned(),
        _ => format!("This code is wrong. You have {left} more attempts."),
    }
}

/// Keeps the identity that a provider promised for this browser, and writes the audit entry.
/// Returns the factor that the person proved.
async fn proved(
    tx: &mut SystemTx,
    browser: &Browser,
    context: &RequestContext,
    user: UserId,
    now: Timestamp,
) -> Result<&'static str, PageError> {
    // A person whose provider vouched for no address has no password.
    let provider = identity_offers::keep_promise(tx, user, browser.digest(), now).await?;
    let has_password = users::password_of(tx, user).await?.is_some();
    let amr = match (&provider, has_password) {
        (Some(_), _) => "fed",
        (None, true) => "pwd",
        // Another account got the identity meanwhile, so only the mailbox is proved.
        (None, false) => "mail",
    };
    let event = Event {
        tenant: None,
        actor: Actor::User(user),
        action: "user.verified",
        target_kind: "user",
        target_id: user.to_string(),
        outcome: Outcome::Ok,
        detail: provider.map_or_else(
            || serde_json::json!({}),
            |provider| serde_json::json!({ "provider": provider }),
        ),
    };
    audit::record(tx, &event, &context.origin(), now).await?;
    Ok(amr)
}

/// Fields of the second form.
#[derive(Deserialize)]
pub(crate) struct ResendForm {
    #[serde(default)]
    form_token: String,
}

/// Sends a new code: one a minute, five in all.
pub(crate) async fn resend(
    State(state): State<AuthState>,
    browser: Browser,
    context: RequestContext,
    form: Result<Form<ResendForm>, FormRejection>,
) -> Result<Response, PageError> {
    let Form(form) = form?;
    check_form(&state.keys, &browser, &form.form_token)?;
    let Some(verification) = find(&state, &browser).await? else {
        return nothing_open(browser);
    };
    let refuse = |browser, status, fault| refused(&state, browser, &verification, status, fault);
    let now = state.now();
    let account = AccountKey::new(&state.keys, &verification.address_norm);
    let pause = verification.sent_at + RESEND_PAUSE - now;
    let budget = if pause.is_positive() {
        Err(portolan_site::throttle::TooEarly { wait: pause })
    } else {
        state.throttle.message(context.ip, &account, now).await
    };
    if let Err(early) = budget {
        return Ok(with_retry_after(
            refuse(browser, StatusCode::TOO_MANY_REQUESTS, wait_sentence(early))?,
            early,
        ));
    }
    // It was valid when it was stored.
    let address = EmailAddress::parse(&verification.address)
        .map_err(|_| PageError::Internal("stored address"))?;
    let code = random::digits(8)?;
    let mac = state
        .keys
        .mac(Purpose::MailCode, &code_message(verification.id, &code));
    let mut tx = state.store.system(Reason::SignIn).await?;
    if !verifications::renew(&mut tx, verification.id, browser.digest(), &mac, now).await? {
        let fault = if verification.sends >= MAX_SENDS {
            "No more codes can be sent for this sign-up. Sign up again later.".to_owned()
        } else {
            "We sent a code a moment ago. Wait a minute, then try again.".to_owned()
        };
        return refuse(browser, StatusCode::TOO_MANY_REQUESTS, fault);
    }
    let name = users::find(&mut tx, verification.user)
        .await?
        .map(|user| user.display_name)
        .unwrap_or_default();
    let mail = queue_message(&mut tx, &state, &address, &name, &code).await?;
    tx.commit().await?;
    state.mailer.deliver(&mail);
    page(
        &state,
        browser,
        &verification,
        StatusCode::OK,
        "",
        None,
        Some("We sent a new code. Earlier codes no longer work."),
    )
}

async fn find(state: &AuthState, browser: &Browser) -> Result<Option<Verification>, PageError> {
    let mut tx = state.store.system(Reason::SignIn).await?;
    Ok(verifications::find_open(&mut tx, browser.digest(), state.now()).await?)
}

fn target(verification: &Verification) -> Target {
    Target::stored(
        verification.continue_target.as_deref(),
        verification.continue_request,
        verification.continue_invitation,
    )
}

/// Reads eight digits in any grouping.
pub(crate) fn digits(text: &str) -> Option<String> {
    let code: String = text
        .chars()
        .filter(|c| !c.is_whitespace() && *c != '-')
        .collect();
    (code.len() == 8 && code.bytes().all(|b| b.is_ascii_digit())).then_some(code)
}

fn page(
    state: &AuthState,
    browser: Browser,
    verification: &Verification,
    status: StatusCode,
    code: &str,
    fault: Option<String>,
    notice: Option<&'static str>,
) -> Result<Response, PageError> {
    let page = VerifyPage {
        form_token: form_token(&state.keys, &browser),
        address: &verification.address,
        code,
        fault,
        notice,
        signup_path: target(verification).on("/signup"),
        mailbox: state.mailer.is_page().then_some(MAILBOX_PATH),
    };
    Ok((browser, pages::html(status, &page)?).into_response())
}

/// The form again, with the reason why a code was not accepted or not sent.
fn refused(
    state: &AuthState,
    browser: Browser,
    verification: &Verification,
    status: StatusCode,
    fault: String,
) -> Result<Response, PageError> {
    page(state, browser, verification, status, "", Some(fault), None)
}

fn nothing_open(browser: Browser) -> Result<Response, PageError> {
    let page = Message {
        status: None,
        title: "Nothing to confirm",
        text: "No sign-up in this browser is waiting for a code. Open this page in the browser where you signed up, or sign up again.",
        link: Some(("Create account", "/signup")),
        request_id: None,
    };
    Ok((browser, pages::html(StatusCode::NOT_FOUND, &page)?).into_response())
}

/// The response if another browser proved the same address first. The requester has the code, so
/// the response reveals nothing to a stranger.
fn already_there(browser: Browser, verification: &Verification) -> Result<Response, PageError> {
    let page = Message {
        status: None,
        title: "You already have an account",
        text: "This address was confirmed in another browser. Sign in with the password chosen there.",
        link: Some(("Sign in", &target(verification).on("/login"))),
        request_id: None,
    };
    Ok((browser, pages::html(StatusCode::CONFLICT, &page)?).into_response())
}
