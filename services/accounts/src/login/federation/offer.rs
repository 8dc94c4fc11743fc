//! Pages for an identity without an account: connect it with the account that is signed in to
//! (AUTH-F4), or enter an address for a new one.

use askama::Template;
use axum::{
    Form,
    extract::{Path, State, rejection::FormRejection},
    response::{IntoResponse, Response},
};
use http::StatusCode;
use portolan_keys::{Purpose, random};
use portolan_model::{
    audit::{Actor, Event, Outcome},
    email::EmailAddress,
    id::VerificationId,
};
use portolan_site::{
    browser::Browser,
    pages::{self, Message, fault::PageError},
    request_context::RequestContext,
    session::MaybeSession,
    state::AuthState,
    target::Target,
    throttle::AccountKey,
    workspaces::display_name,
};
use portolan_storage::{
    Reason,
    accounts::{
        identity_offers::{self, Offer},
        users,
        verifications::{self, NewVerification},
    },
    platform::audit,
};
use serde::Deserialize;
use serde_json::json;

use crate::login::{
    continuation::path_after,
    federation::{
        account_resolution::{self, Linked},
        tenant,
    },
    form::{check_form, form_token},
    signup::{code_message, queue_message},
    waiting::{wait_sentence, with_retry_after},
};

#[derive(Template)]
#[template(path = "login_connect.html")]
struct ConnectPage<'a> {
    form_token: String,
    action: String,
    provider: &'a str,
    label: &'a str,
    /// The provider's address of the person, which has an account here.
    email: Option<&'a str>,
    /// The signed-in account.
    signed_in_as: Option<&'a str>,
    login_path: String,
    fault: Option<String>,
}

#[derive(Template)]
#[template(path = "login_address.html")]
struct AddressPage<'a> {
    form_token: String,
    action: String,
    provider: &'a str,
    name: &'a str,
    email: &'a str,
    fault: Option<String>,
}

/// Requests a sign-in to the account with this address. A signed-in person confirms the connection
/// instead.
pub(crate) async fn show(
    State(state): State<AuthState>,
    browser: Browser,
    MaybeSession(session): MaybeSession,
    Path(offer): Path<String>,
) -> Result<Response, PageError> {
    let Some(offer) = find(&state, &browser, &offer).await? else {
        return gone(browser);
    };
    let signed_in_as = session.as_ref().map(|session| session.email.as_str());
    connect_page(&state, browser, &offer, signed_in_as, StatusCode::OK, None).await
}

/// Fields that the button sends.
#[derive(Debug, Deserialize)]
pub(crate) struct ConnectForm {
    #[serde(default)]
    form_token: String,
}

/// Connects after a recent sign-in (AUTH-S2), and redirects to the target.
pub(crate) async fn connect(
    State(state): State<AuthState>,
    browser: Browser,
    MaybeSession(session): MaybeSession,
    context: RequestContext,
    Path(offer): Path<String>,
    form: Result<Form<ConnectForm>, FormRejection>,
) -> Result<Response, PageError> {
    let Form(form) = form?;
    check_form(&state.keys, &browser, &form.form_token)?;
    let Some(offer) = find(&state, &browser, &offer).await? else {
        return gone(browser);
    };
    let here = Target::Identity(offer.id);
    let Some(session) = session else {
        return Err(PageError::Elsewhere(here.on("/login")));
    };
    if !session.is_recent(state.now()) {
        return Err(PageError::Elsewhere(here.on("/account/confirm")));
    }
    let provider = provider_name(&state, &offer).await?;
    let said = (offer.label.as_str(), offer.email.as_deref());
    let linked = account_resolution::connect(
        &state,
        &context,
        &session,
        &offer.identity(),
        (&provider, said),
        Some((&offer, &browser)),
    )
    .await?;
    match linked {
        Linked::Now | Linked::Before => {
            let target = Target::parse(&offer.target).unwrap_or(Target::Console);
            let path = path_after(&state, session.user, &target).await?;
            Ok((browser, pages::see_other(&path)?).into_response())
        }
        Linked::Gone => gone(browser),
        Linked::Stranger => {
            let fault = "You are not a member of the workspace that this sign-in is for. Ask one of its admins for an invitation.".to_owned();
            let email = Some(session.email.as_str());
            let status = StatusCode::FORBIDDEN;
            connect_page(&state, browser, &offer, email, status, Some(fault)).await
        }
        Linked::Elsewhere => {
            let fault = format!(
                "This {provider} account is connected to another Portolan account. Disconnect it there first, or use another {provider} account."
            );
            let email = Some(session.email.as_str());
            connect_page(
                &state,
                browser,
                &offer,
                email,
                StatusCode::CONFLICT,
                Some(fault),
            )
            .await
        }
    }
}

/// Requests name and address, because no provider vouched for an address.
pub(crate) async fn show_address(
    State(state): State<AuthState>,
    browser: Browser,
    Path(offer): Path<String>,
) -> Result<Response, PageError> {
    let Some(offer) = own(find(&state, &browser, &offer).await?) else {
        return gone(browser);
    };
    let email = offer.email.clone().unwrap_or_default();
    let name = offer.display_name.clone();
    address_page(
        &state,
        browser,
        &offer,
        (&name, &email),
        StatusCode::OK,
        None,
    )
    .await
}

/// Fields of the form.
#[derive(Debug, Deserialize)]
pub(crate) struct AddressForm {
    #[serde(default)]
    form_token: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    email: String,
}

/// Opens a verification, as sign-up does. Only the message shows whether the address has an account
/// already (AUTH-L5).
pub(crate) async fn take_address(
    State(state): State<AuthState>,
    browser: Browser,
    context: RequestContext,
    Path(offer): Path<String>,
    form: Result<Form<AddressForm>, FormRejection>,
) -> Result<Response, PageError> {
    let Form(form) = form?;
    check_form(&state.keys, &browser, &form.form_token)?;
    let Some(offer) = own(find(&state, &browser, &offer).await?) else {
        return gone(browser);
    };
    let refuse = |browser, status, fault: String| {
        let typed = (form.name.as_str(), form.email.as_str());
        address_page(&state, browser, &offer, typed, status, Some(fault))
    };
    let (Some(name), Ok(address)) = (display_name(&form.name), EmailAddress::parse(&form.email))
    else {
        let fault = "Enter your name and an e-mail address, such as name@example.com.".to_owned();
        return refuse(browser, StatusCode::UNPROCESSABLE_ENTITY, fault).await;
    };
    let now = state.now();
    let account = AccountKey::new(&state.keys, address.normalised());
    if let Err(early) = state.throttle.request(context.ip, now).await {
        let refusal = refuse(browser, StatusCode::TOO_MANY_REQUESTS, wait_sentence(early)).await?;
        return Ok(with_retry_after(refusal, early));
    }
    if let Err(early) = state.throttle.new_account(context.ip, &account, now).await {
        let refusal = refuse(browser, StatusCode::TOO_MANY_REQUESTS, wait_sentence(early)).await?;
        return Ok(with_retry_after(refusal, early));
    }
    let target = Target::parse(&offer.target).unwrap_or(Target::Console);
    let mut tx = state.store.system(Reason::SignIn).await?;
    let user = users::create_unverified_without_password(&mut tx, name, &address, now).await?;
    if !identity_offers::promise(&mut tx, offer.id, browser.digest(), user, now).await? {
        return gone(browser);
    }
    let id = VerificationId::generate();
    let code = random::digits(8)?;
    let word = target.to_string();
    let verification = NewVerification {
        id,
        user,
        address_norm: address.normalised(),
        code_mac: &state.keys.mac(Purpose::MailCode, &code_message(id, &code)),
        browser: browser.digest(),
        continue_request: target.request(),
        continue_invitation: target.invitation(),
        continue_target: Some(&word),
    };
    verifications::open(&mut tx, &verification, now).await?;
    let mail = queue_message(&mut tx, &state, &address, name, &code).await?;
    let event = Event {
        tenant: None,
        actor: Actor::Anonymous,
        action: "user.signed_up",
        target_kind: "user",
        target_id: user.to_string(),
        outcome: Outcome::Ok,
        detail: json!({ "provider": offer.provider }),
    };
    audit::record(&mut tx, &event, &context.origin(), now).await?;
    tx.commit().await?;
    state.mailer.deliver(&mail);
    Ok((browser, pages::see_other("/verify")?).into_response())
}

/// Keeps an offer of a platform's provider. A workspace's provider creates accounts only for
/// addresses of its proved domain.
fn own(offer: Option<Offer>) -> Option<Offer> {
    offer.filter(|offer| offer.tenant.is_none())
}

/// The offer, if it belongs to this browser and its provider still exists.
async fn find(state: &AuthState, browser: &Browser, id: &str) -> Result<Option<Offer>, PageError> {
    let Ok(id) = id.parse() else {
        return Ok(None);
    };
    let mut tx = state.store.system(Reason::SignIn).await?;
    let offer = identity_offers::find(&mut tx, id, browser.digest(), state.now()).await?;
    drop(tx);
    match offer {
        Some(offer) if tenant::find(state, &offer.provider).await?.is_some() => Ok(Some(offer)),
        _ => Ok(None),
    }
}

async fn provider_name(state: &AuthState, offer: &Offer) -> Result<String, PageError> {
    let provider = tenant::find(state, &offer.provider).await?;
    Ok(provider.map_or_else(|| "former".to_owned(), |provider| provider.name))
}

async fn connect_page(
    state: &AuthState,
    browser: Browser,
    offer: &Offer,
    signed_in_as: Option<&str>,
    status: StatusCode,
    fault: Option<String>,
) -> Result<Response, PageError> {
    let provider = provider_name(state, offer).await?;
    let login_path = Target::Identity(offer.id).on("/login");
    let page = ConnectPage {
        form_token: form_token(&state.keys, &browser),
        action: format!("/login/connect/{}", offer.id),
        provider: &provider,
        label: &offer.label,
        // A workspace's provider can claim any address, so the page does not reveal whether it has
        // an account (AUTH-L5).
        email: offer.email.as_deref().filter(|_| offer.tenant.is_none()),
        signed_in_as,
        login_path: format!("{login_path}&again=1"),
        fault,
    };
    Ok((browser, pages::html(status, &page)?).into_response())
}

async fn address_page(
    state: &AuthState,
    browser: Browser,
    offer: &Offer,
    (name, email): (&str, &str),
    status: StatusCode,
    fault: Option<String>,
) -> Result<Response, PageError> {
    let provider = provider_name(state, offer).await?;
    let page = AddressPage {
        form_token: form_token(&state.keys, &browser),
        action: format!("/login/address/{}", offer.id),
        provider: &provider,
        name,
        email,
        fault,
    };
    Ok((browser, pages::html(status, &page)?).into_response())
}

/// The one response to an offer that is used, expired, forged, or of another browser.
fn gone(browser: Browser) -> Result<Response, PageError> {
    let page = Message {
        status: None,
        title: "This sign-in has expired",
        text: "It was started in another browser, too long ago, or is already finished. Sign in again.",
        link: Some(("Sign in", "/login")),
        request_id: None,
    };
    Ok((browser, pages::html(StatusCode::NOT_FOUND, &page)?).into_response())
}
