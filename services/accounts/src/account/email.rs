//! Change of address (AUTH-L10): a code proves the new one; the old one gets a message with a link
//! to undo.

use askama::Template;
use axum::{
    Form,
    extract::{State, rejection::FormRejection},
    response::{IntoResponse, Response},
};
use http::StatusCode;
use portolan_keys::{Purpose as KeyPurpose, SecretToken, TokenForm, random};
use portolan_model::{Timestamp, email::EmailAddress, id::EmailChangeId};
use portolan_site::{
    browser::Browser,
    mail,
    pages::{self, fault::PageError},
    request_context::RequestContext,
    session::{BrowserSession, MaybeSession},
    state::AuthState,
    target::AccountPage,
    throttle::AccountKey,
};
use portolan_storage::{
    Reason, SystemTx,
    accounts::{
        account_links::{self, LinkPurpose},
        email_changes::{self, EmailChange},
        users,
        verifications::MAX_ATTEMPTS,
    },
    platform::{audit, mails::Mail},
};
use serde::Deserialize;

use crate::{
    account::guard::{check_form, event, form_token, recent, signed_in},
    login::{
        verify::digits,
        waiting::{wait_sentence, with_retry_after},
    },
};

#[derive(Template)]
#[template(path = "account_email.html")]
struct EmailPage<'a> {
    form_token: String,
    email: &'a str,
    asked: &'a str,
    waiting: Option<&'a str>,
    fault: Option<String>,
}

/// Shows the form, and the field for the code when one was sent.
pub(crate) async fn show(
    State(state): State<AuthState>,
    browser: Browser,
    MaybeSession(session): MaybeSession,
) -> Result<Response, PageError> {
    let session = signed_in(session, AccountPage::Email)?;
    recent(&state, &session, AccountPage::Email)?;
    let open = find(&state, &session).await?;
    page(
        &state,
        browser,
        &session,
        open.as_ref(),
        StatusCode::OK,
        "",
        None,
    )
}

/// Fields of the first form.
#[derive(Debug, Deserialize)]
pub(crate) struct EmailForm {
    #[serde(default)]
    form_token: String,
    #[serde(default)]
    email: String,
}

/// Sends a code to the new address. Only the message shows whether another account has it
/// (AUTH-L5).
pub(crate) async fn submit(
    State(state): State<AuthState>,
    browser: Browser,
    MaybeSession(session): MaybeSession,
    context: RequestContext,
    form: Result<Form<EmailForm>, FormRejection>,
) -> Result<Response, PageError> {
    let Form(form) = form?;
    let session = signed_in(session, AccountPage::Email)?;
    check_form(&state, &browser, &session, &form.form_token)?;
    recent(&state, &session, AccountPage::Email)?;
    let refuse = |browser, status, fault: String| {
        page(
            &state,
            browser,
            &session,
            None,
            status,
            &form.email,
            Some(fault),
        )
    };
    let now = state.now();
    let Ok(address) = EmailAddress::parse(&form.email) else {
        let fault = "Enter an e-mail address, such as name@example.com.".to_owned();
        return refuse(browser, StatusCode::UNPROCESSABLE_ENTITY, fault);
    };
    let account = AccountKey::new(&state.keys, address.normalised());
    if let Err(early) = state.throttle.message(context.ip, &account, now).await {
        let refusal = refuse(browser, StatusCode::TOO_MANY_REQUESTS, wait_sentence(early))?;
        return Ok(with_retry_after(refusal, early));
    }
    let id = EmailChangeId::generate();
    let code = random::digits(8)?;
    let mac = state.keys.mac(KeyPurpose::MailCode, &message(id, &code));
    let mut tx = state.store.system(Reason::SignIn).await?;
    email_changes::open(&mut tx, id, session.user, session.id, &address, &mac, now).await?;
    let letter = if users::is_address_verified(&mut tx, address.normalised()).await? {
        mail::texts::new_address_taken()
    } else {
        mail::texts::new_address(&session.display_name, &code)
    };
    let mail = mail::queue(&mut tx, address.as_typed(), &letter, now).await?;
    tx.commit().await?;
    state.mailer.deliver(&mail);
    Ok((browser, pages::see_other("/account/email")?).into_response())
}

/// Fields of the second form.
#[derive(Debug, Deserialize)]
pub(crate) struct CodeForm {
    #[serde(default)]
    form_token: String,
    #[serde(default)]
    code: String,
}

/// Checks a code: five attempts, one success.
pub(crate) async fn confirm(
    State(state): State<AuthState>,
    browser: Browser,
    MaybeSession(session): MaybeSession,
    context: RequestContext,
    form: Result<Form<CodeForm>, FormRejection>,
) -> Result<Response, PageError> {
    let Form(form) = form?;
    let session = signed_in(session, AccountPage::Email)?;
    check_form(&state, &browser, &session, &form.form_token)?;
    recent(&state, &session, AccountPage::Email)?;
    let Some(change) = find(&state, &session).await? else {
        return Ok((browser, pages::see_other("/account/email")?).into_response());
    };
    let refuse = |browser, fault: &str| {
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        page(
            &state,
            browser,
            &session,
            Some(&change),
            status,
            "",
            Some(fault.to_owned()),
        )
    };
    let Some(code) = digits(&form.code) else {
        return refuse(browser, "Enter the 8 digits from our message.");
    };
    let now = state.now();
    let mut tx = state.store.system(Reason::SignIn).await?;
    let Some(expected) = email_changes::count_attempt(&mut tx, change.id, now).await? else {
        return refuse(browser, "This code no longer works. Send a new one.");
    };
    if !state
        .keys
        .verify_mac(KeyPurpose::MailCode, &message(change.id, &code), &expected)
    {
        tx.commit().await?;
        let is_last = change.attempts + 1 >= MAX_ATTEMPTS;
        return refuse(
            browser,
            if is_last {
                "This code is wrong, and this was the last attempt. Send a new one."
            } else {
                "This code is wrong. Try again."
            },
        );
    }
    if !email_changes::consume(&mut tx, change.id).await? {
        return refuse(browser, "This code no longer works. Send a new one.");
    }
    let new = (change.address.as_str(), change.address_norm.as_str());
    let old = match users::replace_address(&mut tx, session.user, new, now).await {
        Ok(old) => old,
        // The requester has the code from that mailbox, so the response reveals nothing to a
        // stranger.
        Err(error) if error.is_conflict_on("user_emails_verified") => {
            drop(tx);
            return refuse(browser, "Another account now uses this address.");
        }
        Err(error) => return Err(error.into()),
    };
    account_links::consume_all(&mut tx, LinkPurpose::Reset, session.user, now).await?;
    let mut mails = Vec::new();
    if let Some((old, old_norm)) = old.filter(|(_, norm)| *norm != change.address_norm) {
        let former = (old.as_str(), old_norm.as_str());
        mails.push(offer_undo(&state, &mut tx, &session, &change, former, now).await?);
    }
    let entry = event(&session, "email.changed", serde_json::json!({}));
    audit::record(&mut tx, &entry, &context.origin(), now).await?;
    tx.commit().await?;
    mails.iter().for_each(|mail| state.mailer.deliver(mail));
    Ok((browser, pages::see_other("/account?done=email")?).into_response())
}

/// Queues the message to the former address, given as typed and normalised, with the link to undo
/// the change.
async fn offer_undo(
    state: &AuthState,
    tx: &mut SystemTx,
    session: &BrowserSession,
    change: &EmailChange,
    former: (&str, &str),
    now: Timestamp,
) -> Result<Mail, PageError> {
    let token = SecretToken::generate(TokenForm::Link)?;
    let (purpose, digest) = (LinkPurpose::Undo, token.digest());
    account_links::open(tx, purpose, session.user, former, &digest, now).await?;
    let undo = state
        .site
        .url(&format!("/account/undo?token={}", token.expose()));
    let letter = mail::texts::address_changed(&session.display_name, &change.address, &undo);
    Ok(mail::queue(tx, former.0, &letter, now).await?)
}

/// The input of a code's MAC.
fn message(id: EmailChangeId, code: &str) -> Vec<u8> {
    format!("{id} {code}").into_bytes()
}

async fn find(
    state: &AuthState,
    session: &BrowserSession,
) -> Result<Option<EmailChange>, PageError> {
    let mut tx = state.store.system(Reason::SignIn).await?;
    Ok(email_changes::find_open(&mut tx, session.user, session.id, state.now()).await?)
}

fn page(
    state: &AuthState,
    browser: Browser,
    session: &BrowserSession,
    open: Option<&EmailChange>,
    status: StatusCode,
    asked: &str,
    fault: Option<String>,
) -> Result<Response, PageError> {
    let page = EmailPage {
        form_token: form_token(state, &browser, session),
        email: &session.email,
        asked,
        waiting: open.map(|change| change.address.as_str()),
        fault,
    };
    Ok((browser, pages::html(status, &page)?).into_response())
}
