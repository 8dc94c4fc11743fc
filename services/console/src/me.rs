//! The signed-in person and their workspaces.

use axum::{Json, extract::State};
use portolan_model::{
    id::{TenantId, UserId},
    member::Role,
    slug::Slug,
};
use portolan_site::{
    config::DemoApi, console_error::ConsoleError, mail::MAILBOX_PATH, session::AnySession,
    state::AuthState,
};
use portolan_storage::{Reason, accounts::members};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{deletion::StoppedWorkspace, workspaces::RoleName};

/// The signed-in person.
#[derive(Debug, Serialize, ToSchema)]
pub struct Me {
    user: Person,
    /// Workspaces of the person, by name.
    workspaces: Vec<MyWorkspace>,
    /// Workspaces of the person that are stopped now: suspended, or deleted less than 30 days ago.
    /// Absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    stopped_workspaces: Vec<StoppedWorkspace>,
    /// The page of a development server that shows mail.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    dev_mailbox_url: Option<String>,
    /// The API that runs beside a development server, for a first import.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    demo_api: Option<DemoApi>,
}

/// A person.
#[derive(Debug, Serialize, ToSchema)]
pub struct Person {
    #[schema(value_type = String, example = "usr_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a")]
    id: UserId,
    email: String,
    display_name: String,
}

/// A workspace in the person's own list.
#[derive(Debug, Serialize, ToSchema)]
pub struct MyWorkspace {
    #[schema(value_type = String, example = "ten_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a")]
    id: TenantId,
    #[schema(value_type = String, example = "acme")]
    slug: Slug,
    name: String,
    #[schema(value_type = RoleName)]
    role: Role,
}

/// The signed-in person and their workspaces.
#[utoipa::path(get, path = "/me", tag = "me", responses((status = 200, description = "The person of the session.", body = Me)))]
pub(crate) async fn show_me(
    State(state): State<AuthState>,
    AnySession(session): AnySession,
) -> Result<Json<Me>, ConsoleError> {
    let mut tx = state.store.system(Reason::Workspaces).await?;
    let workspaces = members::workspaces_of(&mut tx, session.user).await?;
    let stopped = members::stopped_of(&mut tx, session.user).await?;
    Ok(Json(Me {
        user: Person {
            id: session.user,
            email: session.email.clone(),
            display_name: session.display_name.clone(),
        },
        workspaces: workspaces
            .into_iter()
            .filter(|workspace| session.opens(workspace.tenant.id))
            .map(|workspace| MyWorkspace {
                id: workspace.tenant.id,
                slug: workspace.tenant.slug,
                name: workspace.tenant.name,
                role: workspace.role,
            })
            .collect(),
        stopped_workspaces: stopped
            .into_iter()
            .filter(|stopped| session.opens(stopped.tenant.id))
            .map(StoppedWorkspace::from)
            .collect(),
        dev_mailbox_url: state.mailer.is_page().then(|| state.site.url(MAILBOX_PATH)),
        demo_api: state.config.demo_api.clone(),
    }))
}
