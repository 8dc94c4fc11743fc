//! Sign-up: name, address, password; then a code by mail.

use askama::Template;
use axum::{
    Form,
    extract::{Query, State, rejection::FormRejection},
    response::{IntoResponse, Response},
};
use http::StatusCode;
use portolan_keys::{Purpose, Secret, password, random};
use portolan_model::{
    Timestamp,
    audit::{Actor, Event, Outcome},
    email::EmailAddress,
    id::{UserId, VerificationId},
};
use portolan_site::{
    browser::Browser,
    mail,
    pages::{self, fault::PageError},
    request_context::RequestContext,
    state::AuthState,
    throttle::{AccountKey, TooEarly},
    workspaces::display_name,
};
use portolan_storage::{
    Reason, StorageError, SystemTx,
    accounts::{
        users,
        verifications::{self, NewVerification},
    },
    platform::{audit, mails::Mail},
};
use serde::Deserialize;

use crate::login::{
    continuation::Continuation,
    federation::links::{self, ProviderLink},
    form::{check_form, form_token},
    waiting::{wait_sentence, with_retry_after},
};

#[derive(Template)]
#[template(path = "signup.html")]
struct SignupPage<'a> {
    form_token: String,
    request: String,
    client_name: Option<&'a str>,
    name: &'a str,
    email: &'a str,
    faults: Faults,
    login_path: String,
    providers: Vec<ProviderLink>,
}

/// The faults by field.
#[derive(Debug, Default)]
struct Faults {
    form: Option<String>,
    name: Option<String>,
    email: Option<String>,
    password: Option<String>,
}

impl Faults {
    fn is_empty(&self) -> bool {
        self.form.is_none()
            && self.name.is_none()
            && self.email.is_none()
            && self.password.is_none()
    }

    /// The name of the focused element: the first field at fault, or the notice of the form.
    fn focus(&self) -> &'static str {
        if self.form.is_some() {
            return "form";
        }
        match (&self.name, &self.email, &self.password) {
            (Some(_), _, _) | (None, None, None) => "name",
            (None, Some(_), _) => "email",
            (None, None, Some(_)) => "password",
        }
    }
}

/// Parameters of the page.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct SignupQuery {
    request: Option<String>,
}

/// Shows the form.
pub(crate) async fn show(
    State(state): State<AuthState>,
    browser: Browser,
    Query(query): Query<SignupQuery>,
) -> Result<Response, PageError> {
    let continuation = Continuation::load(&state, &browser, query.request.as_deref()).await?;
    page(
        &state,
        browser,
        &continuation,
        StatusCode::OK,
        "",
        continuation.login_hint(),
        Faults::default(),
    )
}

/// Fields of the form.
#[derive(Deserialize)]
pub(crate) struct SignupForm {
    #[serde(default)]
    form_token: String,
    #[serde(default)]
    request: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    email: String,
    password: Secret<String>,
}

impl SignupForm {
    /// Name and address, if they and the password have good forms.
    fn read(&self) -> Result<(&str, EmailAddress), Faults> {
        let mut faults = Faults::default();
        let name = display_name(&self.name);
        if name.is_none() {
            faults.name = Some("Enter your name: 1 to 80 characters.".to_owned());
        }
        let address = EmailAddress::parse(&self.email);
        if address.is_err() {
            faults.email = Some("Enter an e-mail address, such as name@example.com.".to_owned());
        }
        if let Err(rule) = password::check_new(&self.password, &[&self.email, &self.name]) {
            faults.password = Some(sentence(&rule.to_string()));
        }
        match (name, address) {
            (Some(name), Ok(address)) if faults.is_empty() => Ok((name, address)),
            _ => Err(faults),
        }
    }
}

/// Opens a verification. Only the message shows whether the address has an account already
/// (AUTH-L5, CASE-149).
pub(crate) async fn submit(
    State(state): State<AuthState>,
    browser: Browser,
    context: RequestContext,
    form: Result<Form<SignupForm>, FormRejection>,
) -> Result<Response, PageError> {
    let Form(form) = form?;
    check_form(&state.keys, &browser, &form.form_token)?;
    let continuation = Continuation::load(&state, &browser, Some(&form.request)).await?;
    let refuse = |browser: Browser, status, faults| {
        page(
            &state,
            browser,
            &continuation,
            status,
            &form.name,
            &form.email,
            faults,
        )
    };
    let too_early = |browser: Browser, early: TooEarly| {
        let faults = Faults {
            form: Some(wait_sentence(early)),
            ..Faults::default()
        };
        refuse(browser, StatusCode::TOO_MANY_REQUESTS, faults)
            .map(|response| with_retry_after(response, early))
    };
    let now = state.now();
    if let Err(early) = state.throttle.request(context.ip, now).await {
        return too_early(browser, early);
    }

    let (name, address) = match form.read() {
        Ok(read) => read,
        Err(faults) => return refuse(browser, StatusCode::UNPROCESSABLE_ENTITY, faults),
    };
    let account = AccountKey::new(&state.keys, address.normalised());
    if let Err(early) = state.throttle.new_account(context.ip, &account, now).await {
        return too_early(browser, early);
    }

    // Checked behind the throttle, so that a flood of this page does not reach the breach service.
    if let Err(rule) =
        crate::login::form::check_password(&state, &form.password, &[&form.email, &form.name]).await
    {
        let faults = Faults {
            password: Some(sentence(&rule.to_string())),
            ..Faults::default()
        };
        return refuse(browser, StatusCode::UNPROCESSABLE_ENTITY, faults);
    }
    let phc = state.passwords.hash(&form.password).await?;
    let mut tx = state.store.system(Reason::SignIn).await?;
    // An address with an account gets the same rows: an unverified user, whose code is never sent.
    let user = users::create_unverified(&mut tx, name, &address, &phc, now).await?;
    let code = open(
        &state,
        &mut tx,
        &browser,
        &continuation,
        user,
        &address,
        now,
    )
    .await?;
    let mail = queue_message(&mut tx, &state, &address, name, &code).await?;
    let event = Event {
        tenant: None,
        actor: Actor::Anonymous,
        action: "user.signed_up",
        target_kind: "user",
        target_id: user.to_string(),
        outcome: Outcome::Ok,
        detail: serde_json::json!({}),
    };
    audit::record(&mut tx, &event, &context.origin(), now).await?;
    tx.commit().await?;
    state.mailer.deliver(&mail);
    Ok((browser, pages::see_other("/verify")?).into_response())
}

/// Opens the verification of the address in this browser and returns its code.
async fn open(
    state: &AuthState,
    tx: &mut SystemTx,
    browser: &Browser,
    continuation: &Continuation,
    user: UserId,
    address: &EmailAddress,
    now: Timestamp,
) -> Result<String, PageError> {
    let id = VerificationId::generate();
    let code = random::digits(8)?;
    let word = continuation.parameter();
    let verification = NewVerification {
        id,
        user,
        address_norm: address.normalised(),
        code_mac: &state.keys.mac(Purpose::MailCode, &code_message(id, &code)),
        browser: browser.digest(),
        continue_request: continuation.target.request(),
        continue_invitation: continuation.target.invitation(),
        continue_target: Some(&word),
    };
    verifications::open(tx, &verification, now).await?;
    Ok(code)
}

/// The input of a code's MAC. It binds the code to one verification.
pub(crate) fn code_message(id: VerificationId, code: &str) -> Vec<u8> {
    format!("{id} {code}").into_bytes()
}

/// Queues the code. For an address with an account it queues a message that says so.
pub(crate) async fn queue_message(
    tx: &mut SystemTx,
    state: &AuthState,
    address: &EmailAddress,
    name: &str,
    code: &str,
) -> Result<Mail, StorageError> {
    let letter = if users::is_address_verified(tx, address.normalised()).await? {
        mail::texts::known_address(&state.site.url("/login"))
    } else {
        mail::texts::verification(name, code, &state.site.url(&format!("/verify?code={code}")))
    };
    mail::queue(tx, address.as_typed(), &letter, state.now()).await
}

fn page(
    state: &AuthState,
    browser: Browser,
    continuation: &Continuation,
    status: StatusCode,
    name: &str,
    email: &str,
    faults: Faults,
) -> Result<Response, PageError> {
    let page = SignupPage {
        form_token: form_token(&state.keys, &browser),
        request: continuation.parameter(),
        client_name: continuation.client_name(),
        name,
        email,
        faults,
        login_path: continuation.target.on("/login"),
        providers: links::links(state, &browser, &continuation.target),
    };
    Ok((browser, pages::html(status, &page)?).into_response())
}

/// Formats a rule's text as a sentence.
pub(crate) fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| {
        format!("{}{}.", first.to_uppercase(), chars.as_str())
    })
}
