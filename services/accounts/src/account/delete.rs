//! Deletion of an account: the person's data is erased, all access is revoked, and its workspaces
//! continue without it. The account cannot be deleted while it is the only owner of a workspace
//! that is not deleted (AUTH-M1).

use askama::Template;
use axum::{
    Form,
    extract::{State, rejection::FormRejection},
    response::{AppendHeaders, IntoResponse, Response},
};
use http::{HeaderMap, StatusCode, header};
use portolan_cluster::revocations::Revocation;
use portolan_model::{
    Timestamp,
    audit::{Actor, Event, Outcome},
    email::EmailAddress,
    id::TenantId,
    member::Role,
};
use portolan_site::{
    browser::Browser,
    mail,
    pages::{self, Message, fault::PageError},
    request_context::RequestContext,
    revocation,
    session::{self, BrowserSession, MaybeSession},
    state::AuthState,
    target::AccountPage,
};
use portolan_storage::{
    Reason, SystemTx,
    accounts::{
        browser_sessions::{self, EndReason},
        members::{self, LAST_OWNER},
        users,
    },
    oauth::{
        connected_apps::{self, Which},
        grants::REVOCATION_MEMORY,
        revocations::{self, RevocationKind},
    },
    platform::audit,
    registry::upstream_oauth,
};
use portolan_upstream_sync::connect::flow::give_back_later;
use serde::Deserialize;
use serde_json::json;

use crate::account::guard::{check_form, form_token, recent, signed_in};

#[derive(Template)]
#[template(path = "account_delete.html")]
struct DeletePage<'a> {
    form_token: String,
    email: &'a str,
    /// Workspaces that would have no owner: name, and the path of their members page.
    orphans: Vec<(String, String)>,
    fault: Option<&'static str>,
}

/// A workspace of the person.
struct Mine {
    tenant: TenantId,
    name: String,
    slug: String,
    /// True if there is no other owner.
    is_orphan: bool,
    /// True if the workspace is deleted already, and will be removed.
    is_going: bool,
}

/// Shows the effects of the deletion, or the reason that prevents it.
pub(crate) async fn show(
    State(state): State<AuthState>,
    browser: Browser,
    MaybeSession(session): MaybeSession,
) -> Result<Response, PageError> {
    let session = signed_in(session, AccountPage::Delete)?;
    recent(&state, &session, AccountPage::Delete)?;
    page(&state, browser, &session, StatusCode::OK, None).await
}

/// Fields of the form.
#[derive(Debug, Deserialize)]
pub(crate) struct DeleteForm {
    #[serde(default)]
    form_token: String,
    /// The person's address, as typed.
    #[serde(default)]
    email: String,
}

/// Deletes the account in one transaction.
pub(crate) async fn submit(
    State(state): State<AuthState>,
    browser: Browser,
    MaybeSession(session): MaybeSession,
    context: RequestContext,
    headers: HeaderMap,
    form: Result<Form<DeleteForm>, FormRejection>,
) -> Result<Response, PageError> {
    let Form(form) = form?;
    let session = signed_in(session, AccountPage::Delete)?;
    check_form(&state, &browser, &session, &form.form_token)?;
    recent(&state, &session, AccountPage::Delete)?;
    if !is_same_address(&form.email, &session.email) {
        let fault = Some("Enter your e-mail address exactly as shown.");
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        return page(&state, browser, &session, status, fault).await;
    }
    if !end(&state, &context, &session).await? {
        return page(&state, browser, &session, StatusCode::CONFLICT, None).await;
    }
    // The session ended with the account; this clears its cookie.
    let cookie = session::end(&state, &headers, &context).await?;
    let page = Message {
        status: None,
        title: "Your account was deleted",
        text: "All browsers were signed out, and all apps were disconnected.",
        link: None,
        request_id: None,
    };
    let cookies = AppendHeaders([(header::SET_COOKIE, cookie)]);
    Ok((browser, cookies, pages::html(StatusCode::OK, &page)?).into_response())
}

fn is_same_address(typed: &str, known: &str) -> bool {
    match (EmailAddress::parse(typed), EmailAddress::parse(known)) {
        (Ok(typed), Ok(known)) => typed.normalised() == known.normalised(),
        _ => false,
    }
}

/// Returns false if a workspace would have no owner.
async fn end(
    state: &AuthState,
    context: &RequestContext,
    session: &BrowserSession,
) -> Result<bool, PageError> {
    const WHY: &str = "account_deleted";
    let (user, now) = (session.user, state.now());
    let mut tx = state.store.system(Reason::Workspaces).await?;
    let mine = workspaces(&mut tx, session).await?;
    if mine.iter().any(|one| one.is_orphan && !one.is_going) {
        return Ok(false);
    }
    let which = Which {
        user: Some(user),
        ..Which::default()
    };
    let ended = connected_apps::end(&mut tx, which, WHY, now).await?;
    let mut events = revocation::keys_ended(&ended, user, WHY);
    let mut linked = Vec::new();
    for one in mine.iter().filter(|one| !one.is_orphan) {
        let leaving = upstream_oauth::leaving(&mut tx, one.tenant, None, Some(user)).await?;
        linked.push((one.tenant, leaving));
        events.extend(leave(&mut tx, session, one.tenant, now).await?);
    }
    let reason = EndReason::AccountDeleted;
    let signed_out = browser_sessions::end_all(&mut tx, user, None, reason, now).await?;
    events.extend(revocation::tokens_ended(&signed_out.tokens, user, WHY));
    let letter = mail::texts::account_deleted(&session.display_name);
    let mail = mail::queue(&mut tx, &session.email, &letter, now).await?;
    let Some(epoch) = users::erase(&mut tx, user).await? else {
        return Err(PageError::Internal("no such person"));
    };
    revocations::insert(
        &mut tx,
        &revocations::New {
            kind: RevocationKind::User,
            reference: &user.to_string(),
            tenant: None,
            epoch: Some(epoch),
            expires_at: now + REVOCATION_MEMORY,
        },
    )
    .await?;
    events.push(event(session, "user.erased", None));
    // The log of the platform is written last.
    events.sort_by_key(|event| (event.tenant.is_none(), event.tenant));
    for event in &events {
        audit::record(&mut tx, event, &context.origin(), now).await?;
    }
    // Decided at commit: of two owners who delete their accounts at once, one remains (CASE-162).
    if let Err(error) = tx.commit().await {
        return if error.is_refused_by(LAST_OWNER) {
            Ok(false)
        } else {
            Err(error.into())
        };
    }
    state.mailer.deliver(&mail);
    let until = now + REVOCATION_MEMORY;
    state
        .oauth
        .revocations
        .insert(Revocation::User { user, epoch }, until);
    revocation::notify_nodes(state, &ended);
    for (tenant, leaving) in linked {
        give_back_later(state, tenant, leaving);
    }
    Ok(true)
}

/// Ends the membership in a workspace. Returns its audit entry; `None` if it had ended before.
async fn leave(
    tx: &mut SystemTx,
    session: &BrowserSession,
    tenant: TenantId,
    now: Timestamp,
) -> Result<Option<Event>, PageError> {
    let user = session.user;
    let Some(epoch) = members::end(tx, tenant, user, now).await? else {
        return Ok(None);
    };
    revocations::insert(
        tx,
        &revocations::New {
            kind: RevocationKind::Member,
            reference: &format!("{tenant}/{user}"),
            tenant: Some(tenant),
            epoch: Some(epoch),
            expires_at: now + REVOCATION_MEMORY,
        },
    )
    .await?;
    Ok(Some(event(session, "member.left", Some(tenant))))
}

fn event(session: &BrowserSession, action: &'static str, tenant: Option<TenantId>) -> Event {
    Event {
        tenant,
        actor: Actor::User(session.user),
        action,
        target_kind: "user",
        target_id: session.user.to_string(),
        outcome: Outcome::Ok,
        detail: json!({}),
    }
}

/// The person's workspaces, suspended ones included.
async fn workspaces(tx: &mut SystemTx, session: &BrowserSession) -> Result<Vec<Mine>, PageError> {
    let active = members::workspaces_of(tx, session.user).await?;
    let stopped = members::stopped_of(tx, session.user).await?;
    let all = active
        .into_iter()
        .map(|one| (one.tenant, one.role, false))
        .chain(
            stopped
                .into_iter()
                .map(|one| (one.tenant, one.role, one.delete_after.is_some())),
        );
    let mut mine = Vec::new();
    for (tenant, role, is_going) in all {
        let is_orphan = role == Role::Owner
            && !members::list(tx, tenant.id)
                .await?
                .iter()
                .any(|other| other.role == Role::Owner && other.user != session.user);
        mine.push(Mine {
            tenant: tenant.id,
            name: tenant.name,
            slug: tenant.slug.to_string(),
            is_orphan,
            is_going,
        });
    }
    Ok(mine)
}

async fn page(
    state: &AuthState,
    browser: Browser,
    session: &BrowserSession,
    status: StatusCode,
    fault: Option<&'static str>,
) -> Result<Response, PageError> {
    let mut tx = state.store.system(Reason::Workspaces).await?;
    let mine = workspaces(&mut tx, session).await?;
    drop(tx);
    let page = DeletePage {
        form_token: form_token(state, &browser, session),
        email: &session.email,
        orphans: mine
            .into_iter()
            .filter(|one| one.is_orphan && !one.is_going)
            .map(|one| (one.name, format!("/w/{}/members", one.slug)))
            .collect(),
        fault,
    };
    Ok((browser, pages::html(status, &page)?).into_response())
}
