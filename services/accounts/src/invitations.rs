//! Pages of an invitation (AUTH-M5).
//!
//! The link in the mail shows the workspace and the inviter. Accepting requires an account with the
//! invited address, proved. An invitation in other hands is therefore worthless (CASE-161).

use askama::Template;
use axum::{
    Form, Router,
    extract::{Path, Query, State, rejection::FormRejection},
    response::{IntoResponse, Response},
    routing::get,
};
use http::StatusCode;
use portolan_keys::{Secret, SecretToken, TokenForm};
use portolan_model::{
    audit::{Actor, Event, Outcome},
    id::InvitationId,
    member::{Action, Role},
};
use portolan_site::{
    browser::Browser,
    forms,
    mail::texts::in_words,
    pages::{self, FormTarget, Message, fault::PageError},
    request_context::RequestContext,
    session::{BrowserSession, MaybeSession},
    state::AuthState,
    target::Target,
};
use portolan_storage::{
    Reason, SystemTx,
    accounts::{
        invitations::{self, Invitation},
        members, users,
    },
    platform::audit,
};
use serde::Deserialize;

/// Routes of the pages.
pub(crate) fn router(state: &AuthState) -> Router<AuthState> {
    let router = Router::new()
        .route("/invitations", get(open_link))
        .route("/invitations/{id}", get(show).post(accept));
    pages::protect(router, &state.site, FormTarget::Here)
}

#[derive(Template)]
#[template(path = "invitation.html")]
struct InvitationPage<'a> {
    invitation: &'a Invitation,
    /// `as a member`.
    as_role: String,
    /// `Member`.
    role: String,
    /// The fields of the form to accept, for an account with this address.
    form: Option<(String, String)>,
    /// The signed-in address, if it is another one.
    other: Option<&'a str>,
    login_path: String,
    signup_path: String,
}

/// Parameters of the link.
#[derive(Deserialize)]
struct LinkQuery {
    token: Option<Secret<String>>,
}

/// Shows the workspace and the inviter. Reading changes nothing (CASE-150).
async fn open_link(
    State(state): State<AuthState>,
    browser: Browser,
    MaybeSession(session): MaybeSession,
    Query(query): Query<LinkQuery>,
) -> Result<Response, PageError> {
    let presented = query.token.unwrap_or_else(|| Secret::new(String::new()));
    let Some(token) = SecretToken::parse(TokenForm::Link, presented.expose()) else {
        return dead(browser);
    };
    let mut tx = state.store.system(Reason::Workspaces).await?;
    let found = invitations::find_by_link(&mut tx, &token.digest(), state.now()).await?;
    let Some(invitation) = found else {
        return dead(browser);
    };
    if let Some(session) = &session
        && users::has_address(&mut tx, session.user, &invitation.address_norm).await?
    {
        let path = format!("/invitations/{}", invitation.id);
        return Ok((browser, pages::see_other(&path)?).into_response());
    }
    let target = Target::Invitation(invitation.id);
    let again = if session.is_some() { "&again=1" } else { "" };
    let page = InvitationPage {
        as_role: in_words(invitation.role),
        role: capitalised(invitation.role),
        form: None,
        other: session.as_ref().map(|session| session.email.as_str()),
        login_path: format!("{}{again}", target.on("/login")),
        signup_path: target.on("/signup"),
        invitation: &invitation,
    };
    Ok((browser, pages::html(StatusCode::OK, &page)?).into_response())
}

/// Shows the question whether to accept. For every other person the page does not exist.
async fn show(
    State(state): State<AuthState>,
    browser: Browser,
    MaybeSession(session): MaybeSession,
    Path(id): Path<String>,
) -> Result<Response, PageError> {
    let Ok(id) = id.parse::<InvitationId>() else {
        return dead(browser);
    };
    let session = signed_in(session, id)?;
    let mut tx = state.store.system(Reason::Workspaces).await?;
    let Some(invitation) = find_mine(&mut tx, &state, &session, id).await? else {
        return dead(browser);
    };
    let token = forms::token(&state.keys, &binding(&browser, &session, &id));
    let page = InvitationPage {
        as_role: in_words(invitation.role),
        role: capitalised(invitation.role),
        form: Some((format!("/invitations/{id}"), token)),
        other: None,
        login_path: String::new(),
        signup_path: String::new(),
        invitation: &invitation,
    };
    Ok((browser, pages::html(StatusCode::OK, &page)?).into_response())
}

/// The name of a role with a capital letter, for use on its own.
fn capitalised(role: Role) -> String {
    let word = role.to_string();
    let (first, rest) = word.split_at(1);
    format!("{}{rest}", first.to_uppercase())
}

/// Fields of the form.
#[derive(Debug, Deserialize)]
struct AcceptForm {
    #[serde(default)]
    form_token: String,
}

/// Makes a member, once. The role is at most the inviter's present one. An invitation is void if
/// its sender may no longer invite (CASE-161).
async fn accept(
    State(state): State<AuthState>,
    browser: Browser,
    MaybeSession(session): MaybeSession,
    context: RequestContext,
    Path(id): Path<String>,
    form: Result<Form<AcceptForm>, FormRejection>,
) -> Result<Response, PageError> {
    let Form(form) = form?;
    let Ok(id) = id.parse::<InvitationId>() else {
        return dead(browser);
    };
    let session = signed_in(session, id)?;
    if browser.is_new()
        || !forms::is_valid(
            &state.keys,
            &binding(&browser, &session, &id),
            &form.form_token,
        )
    {
        return Err(PageError::ForeignForm);
    }
    let now = state.now();
    let mut tx = state.store.system(Reason::Workspaces).await?;
    let Some(invitation) = find_mine(&mut tx, &state, &session, id).await? else {
        return dead(browser);
    };
    if !invitations::accept(&mut tx, id, session.user, now).await? {
        return dead(browser);
    }
    let inviter = members::role_of(&mut tx, invitation.tenant, invitation.inviter).await?;
    let Some(inviter) = inviter.filter(|role| role.may(Action::Administer)) else {
        return dead(browser);
    };
    let role = invitation.role.min(inviter);
    // A person who became a member by another path keeps that role.
    if members::role_of(&mut tx, invitation.tenant, session.user)
        .await?
        .is_none()
    {
        members::add(&mut tx, invitation.tenant, session.user, role, now).await?;
        let event = Event {
            tenant: Some(invitation.tenant),
            actor: Actor::User(session.user),
            action: "member.joined",
            target_kind: "user",
            target_id: session.user.to_string(),
            outcome: Outcome::Ok,
            detail: serde_json::json!({ "role": role, "invitation": id, "inviter": invitation.inviter }),
        };
        audit::record(&mut tx, &event, &context.origin(), now).await?;
    }
    tx.commit().await?;
    let path = format!("/w/{}", invitation.slug);
    Ok((browser, pages::see_other(&path)?).into_response())
}

fn signed_in(
    session: Option<BrowserSession>,
    id: InvitationId,
) -> Result<BrowserSession, PageError> {
    session.ok_or_else(|| PageError::Elsewhere(Target::Invitation(id).on("/login")))
}

fn binding<'a>(
    browser: &'a Browser,
    session: &'a BrowserSession,
    id: &'a InvitationId,
) -> [&'a [u8]; 4] {
    [
        b"invitation",
        browser.digest().as_bytes(),
        session.id.uuid_bytes(),
        id.uuid_bytes(),
    ]
}

/// The open invitation, if it was sent to an address of this person.
async fn find_mine(
    tx: &mut SystemTx,
    state: &AuthState,
    session: &BrowserSession,
    id: InvitationId,
) -> Result<Option<Invitation>, PageError> {
    let Some(invitation) = invitations::find(tx, id, state.now()).await? else {
        return Ok(None);
    };
    Ok(
        users::has_address(tx, session.user, &invitation.address_norm)
            .await?
            .then_some(invitation),
    )
}

/// The one response to an invitation that is accepted, withdrawn, replaced, expired, forged, or for
/// another person.
fn dead(browser: Browser) -> Result<Response, PageError> {
    let page = Message {
        status: None,
        title: "This invitation no longer works",
        text: "It was accepted, revoked, replaced by a newer one, has expired, or is for another address. Ask for a new one.",
        link: Some(("Go to Portolan", "/")),
        request_id: None,
    };
    Ok((browser, pages::html(StatusCode::NOT_FOUND, &page)?).into_response())
}
