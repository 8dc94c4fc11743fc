//! Sign-in with address and password.

use askama::Template;
use axum::{
    Form,
    extract::{Query, State, rejection::FormRejection},
    response::{AppendHeaders, IntoResponse, Response},
};
use http::{HeaderMap, StatusCode, header};
use portolan_keys::{Secret, password::Verification};
use portolan_model::{
    audit::{Actor, Event, Outcome},
    email::EmailAddress,
};
use portolan_site::{
    browser::Browser,
    mail,
    pages::{self, fault::PageError, theme::Theme},
    request_context::RequestContext,
    session::{self, MaybeAnySession, MaybeSession},
    state::AuthState,
    target::Target,
    throttle::AccountKey,
};
use portolan_storage::{
    Reason,
    accounts::{
        second_factors,
        users::{self, Login},
    },
    platform::audit,
};
use serde::Deserialize;

use crate::login::{
    code,
    continuation::{Continuation, path_after, stolen_path},
    device,
    federation::links::{self, ProviderLink},
    form::{check_form, form_token},
    waiting::{wait_sentence, with_retry_after},
};

#[derive(Template)]
#[template(path = "login.html")]
struct LoginPage<'a> {
    form_token: String,
    request: String,
    client_name: Option<&'a str>,
    email: &'a str,
    /// A notice about the session before, such as a sign-out.
    notice: Option<&'static str>,
    /// The reason why the last attempt failed.
    fault: Option<String>,
    signup_path: String,
    reset_path: String,
    /// The signed-in account, if the form is shown to switch accounts.
    signed_in_as: Option<&'a str>,
    /// True if passkeys can be used here.
    has_passkeys: bool,
    providers: Vec<ProviderLink>,
    company_path: String,
}

/// Parameters of the page.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct LoginQuery {
    request: Option<String>,
    /// Shows the form to a signed-in person too.
    again: Option<String>,
    /// The console's address at the moment when it found no session.
    from: Option<String>,
    /// The action that was just done: a word of a fixed set.
    done: Option<String>,
    /// The theme, because sign-out clears it with all cookies.
    theme: Option<String>,
}

impl LoginQuery {
    /// The target: the one in a page's link, or the console's address.
    fn target(&self) -> Option<String> {
        let of_console = || Some(Target::of_console(self.from.as_deref()?).to_string());
        self.request.clone().or_else(of_console)
    }
}

/// The page for a browser without an earlier sign-in: a description of the service, and links to
/// sign in and sign up.
#[derive(Template)]
#[template(path = "welcome.html")]
struct WelcomePage;

/// Shows the welcome page.
pub(crate) async fn welcome(
    browser: Browser,
    MaybeAnySession(session): MaybeAnySession,
) -> Result<Response, PageError> {
    let answer = match session {
        Some(_) => pages::see_other("/")?,
        None => pages::html(StatusCode::OK, &WelcomePage)?,
    };
    Ok((browser, answer).into_response())
}

/// Shows the form, or redirects to the target if the browser is signed in.
pub(crate) async fn show(
    State(state): State<AuthState>,
    browser: Browser,
    MaybeSession(session): MaybeSession,
    MaybeAnySession(any): MaybeAnySession,
    headers: HeaderMap,
    Query(query): Query<LoginQuery>,
) -> Result<Response, PageError> {
    let continuation = Continuation::load(&state, &browser, query.target().as_deref()).await?;
    if let Some(session) = session.as_ref().filter(|_| query.again.is_none()) {
        let path = path_after(&state, session.user, &continuation.target).await?;
        return Ok((browser, pages::see_other(&path)?).into_response());
    }
    let has_ended = any.is_none() && session::has_cookie(&headers, &state);
    if query.from.as_deref() == Some("/") && !has_ended && !device::was_here(&state, &headers) {
        return Ok((browser, pages::see_other("/welcome")?).into_response());
    }
    let notice = match query.done.as_deref() {
        Some("signed-out") => Some("You are signed out."),
        _ if has_ended => Some("You were signed out. Sign in to continue."),
        _ => None,
    };
    let signed_in_as = session.as_ref().map(|session| session.email.as_str());
    let shown = (continuation.login_hint(), notice, None, signed_in_as);
    let form = page(&state, browser, &continuation, StatusCode::OK, shown)?;
    let theme = query.theme.as_deref().and_then(Theme::parse);
    Ok(match theme.filter(|_| Theme::of(&headers).is_none()) {
        Some(theme) => {
            let cookie = AppendHeaders([(header::SET_COOKIE, theme.cookie(&state.site)?)]);
            (cookie, form).into_response()
        }
        None => form,
    })
}

/// Fields of the form.
#[derive(Deserialize)]
pub(crate) struct LoginForm {
    #[serde(default)]
    form_token: String,
    #[serde(default)]
    request: String,
    #[serde(default)]
    email: String,
    password: Secret<String>,
}

/// Checks the password, and starts a session.
pub(crate) async fn submit(
    State(state): State<AuthState>,
    browser: Browser,
    context: RequestContext,
    headers: HeaderMap,
    form: Result<Form<LoginForm>, FormRejection>,
) -> Result<Response, PageError> {
    let Form(form) = form?;
    check_form(&state.keys, &browser, &form.form_token)?;
    let continuation = Continuation::load(&state, &browser, Some(&form.request)).await?;
    let refuse = |browser: Browser, status, fault: String| {
        let shown = (form.email.as_str(), None, Some(fault), None);
        page(&state, browser, &continuation, status, shown)
    };

    let Ok(address) = EmailAddress::parse(&form.email) else {
        let fault =
            "Enter the e-mail address of your account, such as name@example.com.".to_owned();
        return refuse(browser, StatusCode::UNPROCESSABLE_ENTITY, fault);
    };
    let account = AccountKey::new(&state.keys, address.normalised());
    let known_device = device::known(&state, &headers, &account);
    // Taken before hashing, so that a flood does not use 64 MiB for each attempt (AUTH-L2).
    let paid = match state
        .throttle
        .sign_in(context.ip, &account, known_device.as_deref(), state.now())
        .await
    {
        Ok(paid) => paid,
        Err(early) => {
            return Ok(with_retry_after(
                refuse(browser, StatusCode::TOO_MANY_REQUESTS, wait_sentence(early))?,
                early,
            ));
        }
    };

    let compared = compare(&state, &context, &form.password, &address, &account).await?;
    let Some((login, rehash)) = compared else {
        let fault =
            "Wrong e-mail or password. If you didn’t finish signing up, sign up again.".to_owned();
        return refuse(browser, StatusCode::UNPROCESSABLE_ENTITY, fault);
    };

    state.throttle.signed_in(&paid).await;
    let rehashed = if rehash {
        Some(state.passwords.hash(&form.password).await?)
    } else {
        None
    };
    // AUTH-L4: a person with a stolen password may sign in, and then sees the page to change it.
    let is_stolen = state
        .config
        .breached
        .know(&state.egress, &form.password)
        .await;
    let mut tx = state.store.system(Reason::SignIn).await?;
    if let (Some(new), Some(old)) = (rehashed, &login.phc) {
        users::rehash(&mut tx, login.user, old, &new).await?;
    }
    if second_factors::is_enrolled(&mut tx, login.user).await? {
        tx.commit().await?;
        let proved = (&["pwd"] as &[&str], None, is_stolen);
        return code::ask(&state, browser, &continuation, login.user, &account, proved).await;
    }
    let (_, session_cookie) =
        session::start(&mut tx, &state, &headers, &context, login.user, &["pwd"]).await?;
    tx.commit().await?;
    let device_cookie = device::mark(&state, &account, known_device)?;
    let path = if is_stolen {
        stolen_path(&continuation.target)
    } else {
        path_after(&state, login.user, &continuation.target).await?
    };
    let cookies = AppendHeaders([
        (header::SET_COOKIE, session_cookie),
        (header::SET_COOKIE, device_cookie),
    ]);
    Ok((browser, cookies, pages::see_other(&path)?).into_response())
}

/// The account of the address if the password is right, and whether its hash is to be made anew.
/// Writes a failed attempt down.
async fn compare(
    state: &AuthState,
    context: &RequestContext,
    password: &Secret<String>,
    address: &EmailAddress,
    account: &AccountKey,
) -> Result<Option<(Login, bool)>, PageError> {
    let login = find(state, address).await?;
    let stored = login.as_ref().and_then(|login| login.phc.as_deref());
    // An unknown address is compared with a decoy hash, which takes as long (AUTH-L5, CASE-143).
    let verification = state.passwords.verify(password, stored).await?;
    match (login, verification) {
        (Some(login), Verification::Match { rehash }) => Ok(Some((login, rehash))),
        (login, _) => {
            missed(state, context, login.as_ref(), address, account).await?;
            Ok(None)
        }
    }
}

async fn find(state: &AuthState, address: &EmailAddress) -> Result<Option<Login>, PageError> {
    let mut tx = state.store.system(Reason::SignIn).await?;
    Ok(users::find_login(&mut tx, address.normalised()).await?)
}

/// Writes the audit entry of a failed attempt, for known and unknown addresses alike. Queues the
/// message to the owner when it is due.
async fn missed(
    state: &AuthState,
    context: &RequestContext,
    login: Option<&Login>,
    address: &EmailAddress,
    account: &AccountKey,
) -> Result<(), PageError> {
    let user = login.map(|login| login.user);
    let now = state.now();
    let hint_is_due = state.throttle.missed(account, now).await;
    let mut tx = state.store.system(Reason::SignIn).await?;
    let event = Event {
        tenant: None,
        actor: Actor::Anonymous,
        action: "session.refused",
        target_kind: "user",
        target_id: user.map_or_else(|| "unknown".to_owned(), |user| user.to_string()),
        outcome: Outcome::Refused,
        detail: serde_json::json!({}),
    };
    audit::record(&mut tx, &event, &context.origin(), now).await?;
    let mut queued = None;
    if hint_is_due && user.is_some() {
        let letter = mail::texts::misses(&state.site.url("/login"));
        queued = Some(mail::queue(&mut tx, address.as_typed(), &letter, now).await?);
    }
    tx.commit().await?;
    if let Some(mail) = queued {
        state.mailer.deliver(&mail);
    }
    Ok(())
}

fn page(
    state: &AuthState,
    browser: Browser,
    continuation: &Continuation,
    status: StatusCode,
    (email, notice, fault, signed_in_as): (
        &str,
        Option<&'static str>,
        Option<String>,
        Option<&str>,
    ),
) -> Result<Response, PageError> {
    let page = LoginPage {
        form_token: form_token(&state.keys, &browser),
        request: continuation.parameter(),
        client_name: continuation.client_name(),
        email,
        notice,
        fault,
        signup_path: continuation.target.on("/signup"),
        reset_path: continuation.target.on("/reset"),
        signed_in_as,
        has_passkeys: state.site.passkeys().is_some(),
        providers: links::links(state, &browser, &continuation.target),
        company_path: continuation.target.on("/login/company"),
    };
    Ok((browser, pages::html(status, &page)?).into_response())
}

/// Shows the form again after another method failed.
pub(crate) fn refused(
    state: &AuthState,
    browser: Browser,
    continuation: &Continuation,
    fault: &str,
) -> Result<Response, PageError> {
    let (status, fault) = (StatusCode::UNPROCESSABLE_ENTITY, Some(fault.to_owned()));
    page(
        state,
        browser,
        continuation,
        status,
        ("", None, fault, None),
    )
}
