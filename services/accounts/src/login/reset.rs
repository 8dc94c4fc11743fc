//! Setting a new password for a person who forgot the old one (AUTH-L9).
//!
//! The link only proves access to the mailbox. It starts no session, and the next sign-in still
//! requires a second factor (CASE-153). Opening the link does not use it up, so a mail scanner does
//! no harm (CASE-150).

use askama::Template;
use axum::{
    Form,
    extract::{Query, State, rejection::FormRejection},
    response::{IntoResponse, Response},
};
use http::StatusCode;
use portolan_keys::{Secret, SecretToken, TokenForm};
use portolan_model::{
    audit::{Actor, Event, Outcome},
    email::EmailAddress,
};
use portolan_site::{
    browser::Browser,
    mail::{self, MAILBOX_PATH},
    pages::{self, Message, fault::PageError},
    request_context::RequestContext,
    revocation,
    state::AuthState,
    target::Target,
    throttle::AccountKey,
};
use portolan_storage::{
    Reason,
    accounts::{
        account_links::{self, Link, LinkPurpose},
        browser_sessions::{self, EndReason},
        users,
        ways_in::{self, WaysIn},
    },
    oauth::connected_apps::{self, Ended, Which},
    platform::audit,
};
use serde::Deserialize;

use crate::login::{
    continuation::Continuation,
    form::{check_form, form_token},
    signup::sentence,
    waiting::{wait_sentence, with_retry_after},
};

#[derive(Template)]
#[template(path = "reset.html")]
struct ResetPage<'a> {
    form_token: String,
    request: String,
    email: &'a str,
    fault: Option<String>,
    login_path: String,
}

#[derive(Template)]
#[template(path = "reset_choose.html")]
struct ChoosePage<'a> {
    form_token: String,
    /// The target of the sign-in that follows.
    request: String,
    token: &'a str,
    /// Lets password managers match the account.
    email: &'a str,
    fault: Option<String>,
}

/// Parameters of the first page.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct ResetQuery {
    request: Option<String>,
}

/// Shows the form for the address.
pub(crate) async fn show(
    State(state): State<AuthState>,
    browser: Browser,
    Query(query): Query<ResetQuery>,
) -> Result<Response, PageError> {
    let continuation = Continuation::load(&state, &browser, query.request.as_deref()).await?;
    let email = continuation.login_hint().to_owned();
    page(&state, browser, &continuation, StatusCode::OK, &email, None)
}

/// Fields of the form.
#[derive(Debug, Deserialize)]
pub(crate) struct ResetForm {
    #[serde(default)]
    form_token: String,
    #[serde(default)]
    request: String,
    #[serde(default)]
    email: String,
}

/// Mails the link. Only the message shows whether the address has an account (AUTH-L5, CASE-149).
pub(crate) async fn submit(
    State(state): State<AuthState>,
    browser: Browser,
    context: RequestContext,
    form: Result<Form<ResetForm>, FormRejection>,
) -> Result<Response, PageError> {
    let Form(form) = form?;
    check_form(&state.keys, &browser, &form.form_token)?;
    let continuation = Continuation::load(&state, &browser, Some(&form.request)).await?;
    let refuse = |browser, status, fault| {
        page(
            &state,
            browser,
            &continuation,
            status,
            &form.email,
            Some(fault),
        )
    };
    let now = state.now();
    let Ok(address) = EmailAddress::parse(&form.email) else {
        let fault =
            "Enter the e-mail address of your account, such as name@example.com.".to_owned();
        return refuse(browser, StatusCode::UNPROCESSABLE_ENTITY, fault);
    };
    let account = AccountKey::new(&state.keys, address.normalised());
    if let Err(early) = state.throttle.message(context.ip, &account, now).await {
        let refusal = refuse(browser, StatusCode::TOO_MANY_REQUESTS, wait_sentence(early))?;
        return Ok(with_retry_after(refusal, early));
    }

    // The response is sent before the lookup, so that its time reveals no more than its text
    // (REVIEW-S-7).
    let (work, target) = (state.clone(), continuation.target.clone());
    let is_begun = state.later(async move {
        if let Err(error) = send_link(&work, &context, &address, &target).await {
            tracing::error!(error = %portolan_site::error_chain::chain(&error), "a link for a new password was not sent");
        }
    });
    if !is_begun {
        return Err(PageError::Throttled { retry_after: 5 });
    }
    let page = Message {
        status: None,
        title: "Check your mail",
        text: "If there is an account with this address, a message with a link is on its way. The link works for 30 minutes.",
        link: state
            .mailer
            .is_page()
            .then_some(("Open the mailbox of this development server", MAILBOX_PATH)),
        request_id: None,
    };
    Ok((browser, pages::html(StatusCode::OK, &page)?).into_response())
}

/// Mails the link, or a message that there is no account. `target` is the target of the sign-in
/// that follows.
async fn send_link(
    state: &AuthState,
    context: &RequestContext,
    address: &EmailAddress,
    target: &Target,
) -> Result<(), PageError> {
    let now = state.now();
    let token = SecretToken::generate(TokenForm::Link)?;
    let mut tx = state.store.system(Reason::SignIn).await?;
    let login = users::find_login(&mut tx, address.normalised()).await?;
    let person = match &login {
        Some(login) => users::find(&mut tx, login.user).await?,
        None => None,
    };
    let letter = match &person {
        Some(person) => {
            account_links::open(
                &mut tx,
                LinkPurpose::Reset,
                person.id,
                (address.as_typed(), address.normalised()),
                &token.digest(),
                now,
            )
            .await?;
            let path = target.on_with("/reset/choose", &format!("token={}", token.expose()));
            let link = state.site.url(&path);
            mail::texts::reset(&person.display_name, &link)
        }
        None => mail::texts::reset_unknown(&state.site.url("/signup")),
    };
    let event = Event {
        tenant: None,
        actor: Actor::Anonymous,
        action: "password.reset_asked",
        target_kind: "user",
        target_id: person
            .as_ref()
            .map_or_else(|| "unknown".to_owned(), |person| person.id.to_string()),
        outcome: Outcome::Ok,
        detail: serde_json::json!({}),
    };
    audit::record(&mut tx, &event, &context.origin(), now).await?;
    let mail = mail::queue(&mut tx, address.as_typed(), &letter, now).await?;
    tx.commit().await?;
    state.mailer.deliver(&mail);
    Ok(())
}

/// Parameters of the page behind the link.
#[derive(Deserialize)]
pub(crate) struct ChoiceQuery {
    token: Option<Secret<String>>,
    #[serde(default)]
    request: String,
}

/// The target of the sign-in that follows. A request of an app cannot continue if the link is
/// opened in another browser.
async fn target(state: &AuthState, browser: &Browser, word: &str) -> Result<Target, PageError> {
    match Continuation::load(state, browser, Some(word)).await {
        Ok(continuation) => Ok(continuation.target),
        Err(PageError::StartAgain) => Ok(Target::Console),
        Err(other) => Err(other),
    }
}

/// Shows the form for the new password.
pub(crate) async fn show_choice(
    State(state): State<AuthState>,
    browser: Browser,
    Query(query): Query<ChoiceQuery>,
) -> Result<Response, PageError> {
    let presented = query.token.unwrap_or_else(|| Secret::new(String::new()));
    match find(&state, presented.expose()).await? {
        Some(link) => choice_page(
            &state,
            browser,
            StatusCode::OK,
            (presented.expose().as_str(), query.request),
            &link,
            None,
        ),
        None => dead_link(browser),
    }
}

/// Fields of the second form.
#[derive(Deserialize)]
pub(crate) struct ChoiceForm {
    #[serde(default)]
    form_token: String,
    token: Secret<String>,
    #[serde(default)]
    request: String,
    password: Secret<String>,
    /// A checkbox: sent or not.
    #[serde(default)]
    keep_apps: Option<String>,
}

/// Sets the password, once. It signs out every browser, and disconnects every app unless the person
/// keeps them.
pub(crate) async fn choose(
    State(state): State<AuthState>,
    browser: Browser,
    context: RequestContext,
    form: Result<Form<ChoiceForm>, FormRejection>,
) -> Result<Response, PageError> {
    const WHY: &str = "password_reset";
    let Form(form) = form?;
    check_form(&state.keys, &browser, &form.form_token)?;
    let now = state.now();
    state.throttle.request(context.ip, now).await?;
    let Some(link) = find(&state, form.token.expose()).await? else {
        return dead_link(browser);
    };
    let person = {
        let mut tx = state.store.system(Reason::SignIn).await?;
        users::find(&mut tx, link.user).await?
    };
    let Some(person) = person else {
        return dead_link(browser);
    };
    let inputs = [link.address.as_str(), person.display_name.as_str()];
    if let Err(rule) = crate::login::form::check_password(&state, &form.password, &inputs).await {
        let fault = Some(sentence(&rule.to_string()));
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        let asked = (form.token.expose().as_str(), form.request);
        return choice_page(&state, browser, status, asked, &link, fault);
    }
    let phc = state.passwords.hash(&form.password).await?;

    let mut tx = state.store.system(Reason::SignIn).await?;
    // The second of two concurrent submissions finds the link used up.
    if !account_links::consume(&mut tx, link.id, now).await?
        || !users::has_address(&mut tx, link.user, &link.address_norm).await?
    {
        return dead_link(browser);
    }
    users::set_password(&mut tx, link.user, &phc, now).await?;
    let reason = EndReason::PasswordChanged;
    let signed_out = browser_sessions::end_all(&mut tx, link.user, None, reason, now).await?;
    let mut ended = Ended::default();
    if form.keep_apps.is_none() {
        let which = Which {
            user: Some(link.user),
            ..Which::default()
        };
        ended = connected_apps::end(&mut tx, which, WHY, now).await?;
    }
    let tokens = &signed_out.tokens;
    revocation::record_ended(&mut tx, &context, link.user, WHY, &ended, tokens, now).await?;
    let event = Event {
        tenant: None,
        actor: Actor::User(link.user),
        action: "password.reset",
        target_kind: "user",
        target_id: link.user.to_string(),
        outcome: Outcome::Ok,
        detail: serde_json::json!({ "apps_disconnected": ended.apps() }),
    };
    audit::record(&mut tx, &event, &context.origin(), now).await?;
    let letter = mail::texts::password_changed(&person.display_name, &state.site.url("/reset"));
    let mut mails = Vec::new();
    for address in users::verified_addresses(&mut tx, link.user).await? {
        mails.push(mail::queue(&mut tx, &address, &letter, now).await?);
    }
    let ways = ways_in::of(&mut tx, link.user, state.site.passkey_host()).await?;
    tx.commit().await?;
    revocation::notify_nodes(&state, &ended);
    mails.iter().for_each(|mail| state.mailer.deliver(mail));
    let login_path = target(&state, &browser, &form.request).await?.on("/login");
    changed(browser, &ways, &login_path)
}

/// The page after the password was set. It names sign-in methods that still work beside it.
fn changed(browser: Browser, ways: &WaysIn, login_path: &str) -> Result<Response, PageError> {
    let page = Message {
        status: None,
        title: "Your password was changed",
        text: if ways.passkeys == 0 && ways.providers.is_empty() {
            "All browsers were signed out. Sign in with the new password."
        } else {
            "All browsers were signed out. Sign in with the new password. Passkeys and connected accounts still sign in: check them under Account, Sign-in methods, and remove those you don't know."
        },
        link: Some(("Sign in", login_path)),
        request_id: None,
    };
    Ok((browser, pages::html(StatusCode::OK, &page)?).into_response())
}

async fn find(state: &AuthState, presented: &str) -> Result<Option<Link>, PageError> {
    let Some(token) = SecretToken::parse(TokenForm::Link, presented) else {
        return Ok(None);
    };
    let mut tx = state.store.system(Reason::SignIn).await?;
    Ok(account_links::find(&mut tx, LinkPurpose::Reset, &token.digest(), state.now()).await?)
}

fn page(
    state: &AuthState,
    browser: Browser,
    continuation: &Continuation,
    status: StatusCode,
    email: &str,
    fault: Option<String>,
) -> Result<Response, PageError> {
    let page = ResetPage {
        form_token: form_token(&state.keys, &browser),
        request: continuation.parameter(),
        email,
        fault,
        login_path: continuation.target.on("/login"),
    };
    Ok((browser, pages::html(status, &page)?).into_response())
}

fn choice_page(
    state: &AuthState,
    browser: Browser,
    status: StatusCode,
    (token, request): (&str, String),
    link: &Link,
    fault: Option<String>,
) -> Result<Response, PageError> {
    let page = ChoosePage {
        form_token: form_token(&state.keys, &browser),
        request,
        token,
        email: &link.address,
        fault,
    };
    Ok((browser, pages::html(status, &page)?).into_response())
}

/// The one response to a link that is used, replaced, expired or forged.
fn dead_link(browser: Browser) -> Result<Response, PageError> {
    let page = Message {
        status: None,
        title: "This link no longer works",
        text: "It was already used, replaced by a newer one, or is older than 30 minutes. Request a new one.",
        link: Some(("Request a new link", "/reset")),
        request_id: None,
    };
    Ok((browser, pages::html(StatusCode::NOT_FOUND, &page)?).into_response())
}
