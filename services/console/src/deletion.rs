//! Deletion of a workspace by its owner (AUTH-M6). Everything stops at once and is destroyed
//! after a month; until then an owner can restore it.

use axum::{Json, extract::State};
use portolan_model::{
    audit::{Actor, Event, Outcome},
    id::TenantId,
    member::Role,
    slug::Slug,
};
use portolan_site::{
    access_policy::second_factor,
    console_error::ConsoleError,
    mail,
    request_context::RequestContext,
    session::BrowserSession,
    state::AuthState,
    target::{ConsolePage, Target},
};
use portolan_storage::{
    Reason, SystemTx,
    accounts::{
        endings::{self, Ending, GRACE},
        members::{self, Stopped},
    },
    platform::audit,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::{
    input::{JsonBody, path_parameter},
    workspace::{Workspace, require_recent},
    workspaces::RoleName,
};

/// A workspace of the person that is stopped now.
#[derive(Debug, Serialize, ToSchema)]
pub struct StoppedWorkspace {
    #[schema(value_type = String, example = "ten_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a")]
    id: TenantId,
    #[schema(value_type = String, example = "acme")]
    slug: Slug,
    name: String,
    #[schema(value_type = RoleName)]
    role: Role,
    /// The operator's reason. Present only if the operator stopped the workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    message: Option<String>,
    /// Time of its destruction, if it was deleted. Until then an owner can restore it.
    #[serde(
        skip_serializing_if = "Option::is_none",
        with = "time::serde::rfc3339::option"
    )]
    #[schema(nullable = false)]
    delete_after: Option<OffsetDateTime>,
}

impl From<Stopped> for StoppedWorkspace {
    fn from(stopped: Stopped) -> Self {
        Self {
            id: stopped.tenant.id,
            slug: stopped.tenant.slug,
            name: stopped.tenant.name,
            role: stopped.role,
            message: stopped.message,
            delete_after: stopped.delete_after,
        }
    }
}

/// The confirmation of a deletion.
#[derive(Debug, Deserialize, ToSchema)]
pub struct WorkspaceDeletion {
    /// The slug of the workspace, typed, which prevents the deletion of a wrong one.
    slug: String,
}

/// The result of a deletion.
#[derive(Debug, Serialize, ToSchema)]
pub struct WorkspaceDeleted {
    /// End of the time in which an owner can restore it.
    #[serde(with = "time::serde::rfc3339")]
    delete_after: OffsetDateTime,
}

/// Deletes a workspace: its servers, tokens and console stop at once, and after 30 days all its
/// data is destroyed. For owners, with a sign-in of the last ten minutes; every owner gets a
/// message.
#[utoipa::path(delete, path = "/workspaces/{ws}", tag = "workspaces", params(("ws" = String, Path, description = "Slug")),
    request_body = WorkspaceDeletion, responses((status = 200, description = "It stopped.", body = WorkspaceDeleted)))]
pub(crate) async fn delete_workspace(
    State(state): State<AuthState>,
    workspace: Workspace,
    context: RequestContext,
    JsonBody(typed): JsonBody<WorkspaceDeletion>,
) -> Result<Json<WorkspaceDeleted>, ConsoleError> {
    let now = state.now();
    if workspace.role != Role::Owner {
        return Err(ConsoleError::owners_only());
    }
    workspace.require_recent(now, ConsolePage::Settings)?;
    let session = workspace.caller.browser()?;
    if typed.slug.trim() != workspace.slug.as_str() {
        let message = format!("Type {} to delete it.", workspace.slug);
        return Err(ConsoleError::invalid("slug_differs", message).field("slug"));
    }
    let mut tx = state.store.system(Reason::Workspaces).await?;
    // Read before the deletion, because a deleted workspace has no members.
    let owners = members::list(&mut tx, workspace.id).await?;
    if !endings::apply(&mut tx, workspace.id, Ending::Delete, now).await? {
        return Err(ConsoleError::not_found("this workspace"));
    }
    let delete_after = now + GRACE;
    let event = workspace.event(
        "tenant.deletion_began",
        "tenant",
        workspace.id,
        json!({ "slug": workspace.slug }),
    );
    audit::record(&mut tx, &event, &context.origin(), now).await?;
    let mut letters = Vec::new();
    for owner in owners.iter().filter(|member| member.role == Role::Owner) {
        let letter = mail::texts::workspace_deleted(
            &owner.display_name,
            &workspace.name,
            &session.display_name,
            &delete_after.date().to_string(),
            &state.site.url("/?create=true"),
        );
        letters.push(mail::queue(&mut tx, &owner.email, &letter, now).await?);
    }
    tx.commit().await?;
    for letter in &letters {
        state.mailer.deliver(letter);
    }
    Ok(Json(WorkspaceDeleted { delete_after }))
}

/// Restores a deleted workspace within its 30 days. For owners. Apps renew their tokens by
/// themselves, unless they tried meanwhile.
#[utoipa::path(post, path = "/workspaces/{ws}/restore", tag = "workspaces", params(("ws" = String, Path, description = "Slug")),
    responses((status = 204, description = "It works again.")))]
pub(crate) async fn restore_workspace(
    State(state): State<AuthState>,
    session: BrowserSession,
    context: RequestContext,
    StoppedSlug(slug): StoppedSlug,
) -> Result<http::StatusCode, ConsoleError> {
    let now = state.now();
    let mut tx = state.store.system(Reason::Workspaces).await?;
    let stopped = find(&mut tx, &session, &slug)
        .await?
        .ok_or_else(|| ConsoleError::not_found("this workspace"))?;
    if stopped.role != Role::Owner {
        return Err(ConsoleError::owners_only());
    }
    let tenant = stopped.tenant.id;
    // The deletion may have been meant to stop access, so restoring requires a recent sign-in.
    require_recent(&session, now, || Target::Console)?;
    if let Some(rule) = second_factor::unmet(&mut tx, tenant, &session).await? {
        let path = second_factor::path(stopped.tenant.slug.as_str(), &Target::Console);
        return Err(ConsoleError::factor_first(rule, &path));
    }
    if stopped.is_by_operator
        || stopped.delete_after.is_none()
        || !endings::apply(&mut tx, tenant, Ending::TakeBack, now).await?
    {
        let message = "This workspace was not deleted by its owners, or its 30 days are over.";
        return Err(ConsoleError::conflict("not_restorable", message));
    }
    let event = Event {
        tenant: Some(tenant),
        actor: Actor::User(session.user),
        action: "tenant.restored",
        target_kind: "tenant",
        target_id: tenant.to_string(),
        outcome: Outcome::Ok,
        detail: json!({ "slug": stopped.tenant.slug }),
    };
    audit::record(&mut tx, &event, &context.origin(), now).await?;
    tx.commit().await?;
    Ok(http::StatusCode::NO_CONTENT)
}

async fn find(
    tx: &mut SystemTx,
    session: &BrowserSession,
    slug: &str,
) -> Result<Option<Stopped>, ConsoleError> {
    let all = members::stopped_of(tx, session.user).await?;
    Ok(all
        .into_iter()
        .find(|stopped| stopped.tenant.slug.as_str() == slug))
}

/// The slug in the path of a workspace that the extractor [`Workspace`] does not find.
#[derive(Debug)]
pub(crate) struct StoppedSlug(String);

impl axum::extract::FromRequestParts<AuthState> for StoppedSlug {
    type Rejection = ConsoleError;

    async fn from_request_parts(
        parts: &mut http::request::Parts,
        _: &AuthState,
    ) -> Result<Self, ConsoleError> {
        Ok(Self(path_parameter(parts, "ws").await?))
    }
}
