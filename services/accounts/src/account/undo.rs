//! Undoes a change of address (AUTH-L10). The link works for every reader of the old mailbox,
//! signed in or not. It serves a person whose account another person took over. It therefore ends
//! every session and every app's access, and removes the password.

use askama::Template;
use axum::{
    Form,
    extract::{Query, State, rejection::FormRejection},
    response::{IntoResponse, Response},
};
use http::StatusCode;
use portolan_keys::{Secret, SecretToken, TokenForm};
use portolan_model::{
    Timestamp,
    audit::{Actor, Event, Outcome},
};
use portolan_site::{
    browser::Browser,
    mail,
    pages::{self, Message, fault::PageError},
    request_context::RequestContext,
    revocation,
    state::AuthState,
};
use portolan_storage::{
    Reason, SystemTx,
    accounts::{
        account_links::{self, Link, LinkPurpose},
        browser_sessions::{self, EndReason},
        identities, passkeys, second_factors, users,
    },
    oauth::connected_apps::{self, Ended, Which},
    platform::audit,
};
use serde::Deserialize;

use crate::login::form::{check_form, form_token};

/// How long before the change of address an intruder may already have had access.
const LOOK_BACK: time::Duration = time::Duration::days(3);

#[derive(Template)]
#[template(path = "account_undo.html")]
struct UndoPage<'a> {
    form_token: String,
    token: &'a str,
    address: &'a str,
}

/// Parameters of the page.
#[derive(Deserialize)]
pub(crate) struct UndoQuery {
    token: Option<Secret<String>>,
}

/// Shows the form to confirm. Reading changes nothing.
pub(crate) async fn show(
    State(state): State<AuthState>,
    browser: Browser,
    Query(query): Query<UndoQuery>,
) -> Result<Response, PageError> {
    let presented = query.token.unwrap_or_else(|| Secret::new(String::new()));
    let Some(link) = find(&state, presented.expose()).await? else {
        return dead_link(browser);
    };
    let page = UndoPage {
        form_token: form_token(&state.keys, &browser),
        token: presented.expose(),
        address: &link.address,
    };
    Ok((browser, pages::html(StatusCode::OK, &page)?).into_response())
}

/// Fields of the form.
#[derive(Deserialize)]
pub(crate) struct UndoForm {
    #[serde(default)]
    form_token: String,
    token: Secret<String>,
}

/// Restores the address, once.
pub(crate) async fn submit(
    State(state): State<AuthState>,
    browser: Browser,
    context: RequestContext,
    form: Result<Form<UndoForm>, FormRejection>,
) -> Result<Response, PageError> {
    let Form(form) = form?;
    check_form(&state.keys, &browser, &form.form_token)?;
    let now = state.now();
    state.throttle.request(context.ip, now).await?;
    let Some(link) = find(&state, form.token.expose()).await? else {
        return dead_link(browser);
    };
    let mut tx = state.store.system(Reason::SignIn).await?;
    if !account_links::consume(&mut tx, link.id, now).await? {
        return dead_link(browser);
    }
    let former = (link.address.as_str(), link.address_norm.as_str());
    if let Err(error) = users::replace_address(&mut tx, link.user, former, now).await {
        if error.is_conflict_on("user_emails_verified") {
            return taken(browser);
        }
        return Err(error.into());
    }
    // This mailbox was just proved, so its owner need not wait for another message.
    let token = SecretToken::generate(TokenForm::Link)?;
    let ended = lock_out(&mut tx, &context, &link, &token, now).await?;
    let name = users::find(&mut tx, link.user)
        .await?
        .map(|user| user.display_name)
        .unwrap_or_default();
    let letter = mail::texts::address_restored(&name, &state.site.url("/reset"));
    let mail = mail::queue(&mut tx, &link.address, &letter, now).await?;
    tx.commit().await?;
    state.mailer.deliver(&mail);
    revocation::notify_nodes(&state, &ended);
    restored(browser, &token)
}

/// Ends every session, every app's access and the sign-in methods of an intruder. Opens the link of
/// `token`, which leads to a new password, and writes the audit entries.
async fn lock_out(
    tx: &mut SystemTx,
    context: &RequestContext,
    link: &Link,
    token: &SecretToken,
    now: Timestamp,
) -> Result<Ended, PageError> {
    const WHY: &str = "address_restored";
    let reason = EndReason::AddressChanged;
    let signed_out = browser_sessions::end_all(tx, link.user, None, reason, now).await?;
    // The intruder may have added sign-in methods, before or after the change. Accounts at
    // providers are quickly connected again. The person's own passkeys and authenticator app are
    // older.
    identities::unlink_all(tx, link.user).await?;
    let since = link.created_at - LOOK_BACK;
    let passkeys = passkeys::remove_since(tx, link.user, since).await?;
    let app = second_factors::remove_since(tx, link.user, since).await?;
    // The intruder proved the password first (REVIEW-S-4). Without a password the account opens by
    // a mailed link only, or by a passkey from before all this.
    users::forget_password(tx, link.user).await?;
    account_links::consume_all(tx, LinkPurpose::Reset, link.user, now).await?;
    let former = (link.address.as_str(), link.address_norm.as_str());
    let (purpose, digest) = (LinkPurpose::Reset, token.digest());
    account_links::open(tx, purpose, link.user, former, &digest, now).await?;
    let which = Which {
        user: Some(link.user),
        ..Which::default()
    };
    let ended = connected_apps::end(tx, which, WHY, now).await?;
    let tokens = &signed_out.tokens;
    revocation::record_ended(tx, context, link.user, WHY, &ended, tokens, now).await?;
    let event = Event {
        tenant: None,
        actor: Actor::User(link.user),
        action: "email.restored",
        target_kind: "user",
        target_id: link.user.to_string(),
        outcome: Outcome::Ok,
        detail: serde_json::json!({ "apps_disconnected": ended.apps(), "passkeys_removed": passkeys, "authenticator_removed": app }),
    };
    audit::record(tx, &event, &context.origin(), now).await?;
    Ok(ended)
}

/// The page after the change was undone, with the link to a new password.
fn restored(browser: Browser, token: &SecretToken) -> Result<Response, PageError> {
    let choose = format!("/reset/choose?token={}", token.expose());
    let page = Message {
        status: None,
        title: "Your account is back at this address",
        text: "Every browser was signed out, every app and every account elsewhere was disconnected, recovery codes are void, and passkeys and authenticator apps of the last days are removed. The old password does not work any more: somebody else knew it. Choose a new one within 30 minutes.",
        link: Some(("Choose a new password", &choose)),
        request_id: None,
    };
    Ok((browser, pages::html(StatusCode::OK, &page)?).into_response())
}

async fn find(state: &AuthState, presented: &str) -> Result<Option<Link>, PageError> {
    let Some(token) = SecretToken::parse(TokenForm::Link, presented) else {
        return Ok(None);
    };
    let mut tx = state.store.system(Reason::SignIn).await?;
    Ok(account_links::find(&mut tx, LinkPurpose::Undo, &token.digest(), state.now()).await?)
}

fn dead_link(browser: Browser) -> Result<Response, PageError> {
    let page = Message {
        status: None,
        title: "This link no longer works",
        text: "It was already used, the address was changed again, or it is older than 72 hours.",
        link: Some(("Sign in", "/login")),
        request_id: None,
    };
    Ok((browser, pages::html(StatusCode::NOT_FOUND, &page)?).into_response())
}

fn taken(browser: Browser) -> Result<Response, PageError> {
    let page = Message {
        status: None,
        title: "Another account uses this address",
        text: "Someone confirmed this address for another account in the meantime. Sign in to that account, or contact support.",
        link: Some(("Sign in", "/login")),
        request_id: None,
    };
    Ok((browser, pages::html(StatusCode::CONFLICT, &page)?).into_response())
}
