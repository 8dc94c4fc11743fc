//! Members of a workspace and their roles (AUTH-M1, AUTH-R7).

use axum::{Json, extract::State};
use http::StatusCode;
use portolan_cluster::revocations::Revocation;
use portolan_model::{
    Timestamp,
    id::{TenantId, UserId},
    member::{Action, Role},
};
use portolan_site::{
    console_error::ConsoleError,
    mail::{self, texts::Stronger},
    request_context::RequestContext,
    revocation,
    state::AuthState,
    target::ConsolePage,
};
use portolan_storage::{
    Reason, StorageError, SystemTx,
    accounts::members::{self, LAST_OWNER},
    oauth::{
        connected_apps::{self, Ended, Which},
        grants::REVOCATION_MEMORY,
        revocations::{self, RevocationKind},
    },
    platform::{audit, mails::Mail},
    registry::upstream_oauth,
};
use portolan_upstream_sync::connect::flow;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::{
    input::{JsonBody, PathId},
    listing::Listing,
    workspace::Workspace,
    workspaces::RoleName,
};

/// A member.
#[derive(Debug, Serialize, ToSchema)]
pub struct Member {
    /// The person.
    #[schema(value_type = String, example = "usr_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a")]
    user_id: UserId,
    /// The person's own display name.
    display_name: String,
    /// Primary address.
    email: String,
    /// Role.
    #[schema(value_type = RoleName)]
    role: Role,
    /// Beginning of the membership.
    #[serde(with = "time::serde::rfc3339")]
    since: OffsetDateTime,
}

impl From<members::Member> for Member {
    fn from(member: members::Member) -> Self {
        Self {
            user_id: member.user,
            display_name: member.display_name,
            email: member.email,
            role: member.role,
            since: member.since,
        }
    }
}

/// The members of a workspace, strongest role first.
#[utoipa::path(get, path = "/workspaces/{ws}/members", tag = "workspaces", params(("ws" = String, Path, description = "Slug")),
    responses((status = 200, description = "The members.", body = Listing<Member>)))]
pub(crate) async fn list_members(
    State(state): State<AuthState>,
    workspace: Workspace,
) -> Result<Json<Listing<Member>>, ConsoleError> {
    workspace.require(Action::Read)?;
    let mut tx = state.store.system(Reason::Workspaces).await?;
    let items = members::list(&mut tx, workspace.id).await?;
    Ok(Json(Listing::whole(
        items.into_iter().map(Member::from).collect(),
    )))
}

/// A change of a member.
#[derive(Debug, Deserialize, ToSchema)]
pub struct MemberChange {
    /// Role.
    #[schema(value_type = RoleName)]
    role: Role,
}

/// Changes a member's role. A person cannot give a role above their own, and only owners change
/// owners. Tokens of the member's AI apps are refused within a second. The apps get new ones by
/// themselves, unless the new role may not call tools.
#[utoipa::path(patch, path = "/workspaces/{ws}/members/{id}", tag = "workspaces",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Person")),
    request_body = MemberChange, responses((status = 200, description = "Changed.", body = Member)))]
pub(crate) async fn change_member(
    State(state): State<AuthState>,
    workspace: Workspace,
    PathId(user): PathId<portolan_model::id::UserKind>,
    context: RequestContext,
    JsonBody(change): JsonBody<MemberChange>,
) -> Result<Json<Member>, ConsoleError> {
    workspace.require(Action::Administer)?;
    let now = state.now();
    let mut tx = state.store.system(Reason::Workspaces).await?;
    let member = find(&mut tx, workspace.id, user).await?;
    may_govern(&workspace, member.role)?;
    may_govern(&workspace, change.role)?;
    workspace.require_recent(now, ConsolePage::Members)?;
    if member.role == change.role {
        return Ok(Json(member));
    }
    let epoch = members::set_role(&mut tx, workspace.id, user, change.role)
        .await?
        .ok_or_else(|| ConsoleError::not_found("this member"))?;
    let mut ended = Ended::default();
    if !change.role.may(Action::CallTools) {
        ended = disconnect(&mut tx, workspace.id, user, "role_changed", now).await?;
    }
    let by = workspace.caller.browser()?.user;
    for event in revocation::keys_ended(&ended, by, "role_changed") {
        audit::record(&mut tx, &event, &context.origin(), now).await?;
    }
    publish(&mut tx, workspace.id, user, epoch, now).await?;
    let detail = serde_json::json!({ "role": { "from": member.role, "to": change.role } });
    let event = workspace.event("member.role_changed", "user", user, detail);
    audit::record(&mut tx, &event, &context.origin(), now).await?;
    let notices = if change.role > member.role && change.role.may(Action::Administer) {
        let whom = member.email.as_str();
        tell_owners(
            &state,
            &mut tx,
            &workspace,
            Stronger::Raised,
            whom,
            change.role,
        )
        .await?
    } else {
        Vec::new()
    };
    tx.commit().await.map_err(needs_owner)?;
    tell(&state, workspace.id, user, epoch, &ended);
    for notice in &notices {
        state.mailer.deliver(notice);
    }
    Ok(Json(Member {
        role: change.role,
        ..member
    }))
}

/// Removes a member, or leaves the workspace. The person's AI apps lose access to it within a
/// second.
#[utoipa::path(delete, path = "/workspaces/{ws}/members/{id}", tag = "workspaces",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Person")),
    responses((status = 204, description = "Removed.")))]
pub(crate) async fn remove_member(
    State(state): State<AuthState>,
    workspace: Workspace,
    PathId(user): PathId<portolan_model::id::UserKind>,
    context: RequestContext,
) -> Result<StatusCode, ConsoleError> {
    let now = state.now();
    let by = workspace.caller.browser()?.user;
    let leaves = user == by;
    if !leaves {
        workspace.require(Action::Administer)?;
    }
    let mut tx = state.store.system(Reason::Workspaces).await?;
    let member = find(&mut tx, workspace.id, user).await?;
    if !leaves {
        may_govern(&workspace, member.role)?;
    }
    workspace.require_recent(now, ConsolePage::Members)?;
    let linked = upstream_oauth::leaving(&mut tx, workspace.id, None, Some(user)).await?;
    let epoch = members::end(&mut tx, workspace.id, user, now)
        .await?
        .ok_or_else(|| ConsoleError::not_found("this member"))?;
    let ended = disconnect(&mut tx, workspace.id, user, "member_removed", now).await?;
    for event in revocation::keys_ended(&ended, by, "member_removed") {
        audit::record(&mut tx, &event, &context.origin(), now).await?;
    }
    publish(&mut tx, workspace.id, user, epoch, now).await?;
    let action = if leaves {
        "member.left"
    } else {
        "member.removed"
    };
    let detail = serde_json::json!({ "role": member.role, "apps_disconnected": ended.apps() });
    let event = workspace.event(action, "user", user, detail);
    audit::record(&mut tx, &event, &context.origin(), now).await?;
    tx.commit().await.map_err(needs_owner)?;
    tell(&state, workspace.id, user, epoch, &ended);
    flow::give_back_later(&state, workspace.id, linked);
    Ok(StatusCode::NO_CONTENT)
}

/// 404 for a stranger and for a former member.
async fn find(tx: &mut SystemTx, tenant: TenantId, user: UserId) -> Result<Member, ConsoleError> {
    members::list(tx, tenant)
        .await?
        .into_iter()
        .find(|member| member.user == user)
        .map(Member::from)
        .ok_or_else(|| ConsoleError::not_found("this member"))
}

/// Refuses to let a person change a stronger role than their own, or give one.
pub(crate) fn may_govern(workspace: &Workspace, role: Role) -> Result<(), ConsoleError> {
    if role <= workspace.role {
        return Ok(());
    }
    Err(ConsoleError::new(
        StatusCode::FORBIDDEN,
        "role_too_strong",
        format!(
            "Your role is {}. This needs the role {role} or a higher one.",
            workspace.role
        ),
    ))
}

/// Queues a message to each owner except the acting person, because a person gets a role that gives
/// roles (REVIEW-S-3).
pub(crate) async fn tell_owners(
    state: &AuthState,
    tx: &mut SystemTx,
    workspace: &Workspace,
    how: Stronger,
    whom: &str,
    role: Role,
) -> Result<Vec<Mail>, ConsoleError> {
    let session = workspace.caller.browser()?;
    let owners = members::list(tx, workspace.id).await?;
    let link = state.site.url(&format!("/w/{}/members", workspace.slug));
    let mut notices = Vec::new();
    for owner in owners {
        if owner.role != Role::Owner || owner.user == session.user {
            continue;
        }
        let by = &session.display_name;
        let letter = mail::texts::stronger_role(
            &owner.display_name,
            &workspace.name,
            by,
            (how, whom, role),
            &link,
        );
        notices.push(mail::queue(tx, &owner.email, &letter, state.now()).await?);
    }
    Ok(notices)
}

/// AUTH-M1, CASE-162: decided at commit, so that of two owners who leave at once one remains.
fn needs_owner(error: StorageError) -> ConsoleError {
    if error.is_refused_by(LAST_OWNER) {
        ConsoleError::conflict(
            "last_owner",
            "A workspace needs an owner. Make another member an owner first.",
        )
    } else {
        error.into()
    }
}

async fn disconnect(
    tx: &mut SystemTx,
    tenant: TenantId,
    user: UserId,
    reason: &str,
    now: Timestamp,
) -> Result<Ended, StorageError> {
    let which = Which {
        tenant: Some(tenant),
        user: Some(user),
        ..Which::default()
    };
    connected_apps::end(tx, which, reason, now).await
}

/// Writes to the feed that tokens of this membership from before `epoch` are revoked.
async fn publish(
    tx: &mut SystemTx,
    tenant: TenantId,
    user: UserId,
    epoch: i32,
    now: Timestamp,
) -> Result<(), StorageError> {
    let revocation = revocations::New {
        kind: RevocationKind::Member,
        reference: &format!("{tenant}/{user}"),
        tenant: Some(tenant),
        epoch: Some(epoch),
        expires_at: now + REVOCATION_MEMORY,
    };
    revocations::insert(tx, &revocation).await
}

/// Notifies the nodes of this process of the same, at once.
fn tell(state: &AuthState, tenant: TenantId, user: UserId, epoch: i32, ended: &Ended) {
    let event = Revocation::Member {
        tenant,
        user,
        epoch,
    };
    state
        .oauth
        .revocations
        .insert(event, state.now() + REVOCATION_MEMORY);
    revocation::notify_nodes(state, ended);
}
