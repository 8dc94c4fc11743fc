//! Resources and resource templates: written or uploaded here, or answered by an HTTP source;
//! offered by servers.

pub(crate) mod form;

use axum::{Json, extract::State};
use http::StatusCode;
use portolan_model::{
    id::{ResourceId, ResourceKind, SourceId},
    member::Action,
    registry::{ResourceBody, ResourceShape, ToolState},
};
use portolan_site::{
    console_error::ConsoleError, request_context::RequestContext, state::AuthState,
};
use portolan_storage::{
    StorageError, TenantTx,
    registry::resources::{self, Resource},
};
use serde::Serialize;
use serde_json::json;
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::{
    arguments::ArgumentForm,
    change::{self, Deleted},
    input::{JsonBody, PathId},
    listing::Listing,
    prompts::EnabledChange,
    resources::form::{Checked, ResourceForm, invalid},
    workspace::Workspace,
};

/// Most resources of one workspace.
const MOST_RESOURCES: usize = 1_000;

/// A resource or template in a list.
#[derive(Debug, Serialize, ToSchema)]
pub struct ResourceSummary {
    #[schema(value_type = String, example = "rsc_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a")]
    id: ResourceId,
    #[schema(value_type = ShapeName)]
    shape: ResourceShape,
    /// URI, or URI template, for AI clients, unless a server publishes it under another.
    uri: String,
    name: String,
    title: String,
    description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    mime_type: Option<String>,
    /// Variables of a template.
    variables: Vec<ArgumentForm>,
    #[schema(value_type = BodyName)]
    body: ResourceBody,
    /// Bytes of a text or file.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    size: Option<i32>,
    /// The HTTP source that answers, or the upstream server that has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    source_name: Option<String>,
    enabled: bool,
    #[schema(value_type = crate::tools::ToolStateName)]
    state: ToolState,
    /// Slugs of the servers that offer it.
    used_by_servers: Vec<String>,
    #[serde(with = "time::serde::rfc3339")]
    updated_at: OffsetDateTime,
}

/// One resource, or many by a template.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ResourceShape)]
#[expect(
    dead_code,
    reason = "only its schema is used: the value is model::registry::ResourceShape"
)]
pub(crate) enum ShapeName {
    Resource,
    Template,
}

/// The origin of a resource's content.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ResourceBody)]
#[expect(
    dead_code,
    reason = "only its schema is used: the value is model::registry::ResourceBody"
)]
pub(crate) enum BodyName {
    Text,
    File,
    Http,
    Upstream,
}

/// A resource with its content, except the bytes of files.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Resource)]
pub struct ResourceView {
    #[serde(flatten)]
    summary: ResourceSummary,
    /// The text, for a text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    text: Option<String>,
    /// The source that answers reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, nullable = false)]
    http_source_id: Option<SourceId>,
    /// Path below that source's base URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    http_path: Option<String>,
}

fn summary(resource: Resource) -> ResourceSummary {
    ResourceSummary {
        id: resource.id,
        shape: resource.shape,
        uri: resource.uri,
        name: resource.name,
        title: resource.title,
        description: resource.description,
        mime_type: resource.mime_type,
        variables: resource.variables.into_iter().map(Into::into).collect(),
        body: resource.body,
        size: resource.size,
        source_name: resource.source_name,
        enabled: resource.enabled,
        state: resource.state,
        used_by_servers: resource.used_by,
        updated_at: resource.updated_at,
    }
}

async fn view(tx: &mut TenantTx, resource: Resource) -> Result<ResourceView, ConsoleError> {
    let text = match resource.body {
        ResourceBody::Text => resources::content(tx, resource.id)
            .await?
            .map(|(_, bytes)| String::from_utf8_lossy(&bytes).into_owned()),
        _ => None,
    };
    Ok(ResourceView {
        text,
        http_source_id: resource.http_source_id,
        http_path: resource.http_path.clone(),
        summary: summary(resource),
    })
}

async fn found(tx: &mut TenantTx, id: ResourceId) -> Result<Resource, ConsoleError> {
    resources::find(tx, id)
        .await?
        .ok_or_else(|| ConsoleError::not_found("this resource"))
}

fn taken(error: StorageError, uri: &str) -> ConsoleError {
    if error.is_conflict_on(resources::URI_TAKEN) {
        ConsoleError::conflict(
            "uri_taken",
            format!("This workspace has a resource at `{uri}` already."),
        )
        .field("uri")
    } else if error.is_conflict_on(resources::URI_CLASH) {
        ConsoleError::conflict(
            "uri_clash",
            format!("A server that offers this resource has another one at `{uri}`."),
        )
        .field("uri")
    } else if matches!(error, StorageError::Refused { .. }) {
        invalid("holds.data", "Choose a file.").caused_by(error)
    } else {
        error.into()
    }
}

/// All resources and templates of a workspace, by name.
#[utoipa::path(get, path = "/workspaces/{ws}/resources", tag = "resources", params(("ws" = String, Path, description = "Slug")),
    responses((status = 200, description = "The resources.", body = Listing<ResourceSummary>)))]
pub(crate) async fn list_resources(
    State(state): State<AuthState>,
    workspace: Workspace,
) -> Result<Json<Listing<ResourceSummary>>, ConsoleError> {
    workspace.require(Action::Read)?;
    let mut tx = state.store.tenant(workspace.id).await?;
    let resources = resources::list(&mut tx).await?.into_iter();
    Ok(Json(Listing::whole(resources.map(summary).collect())))
}

/// One resource.
#[utoipa::path(get, path = "/workspaces/{ws}/resources/{id}", tag = "resources",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Resource")),
    responses((status = 200, description = "The resource.", body = ResourceView)))]
pub(crate) async fn show_resource(
    State(state): State<AuthState>,
    workspace: Workspace,
    PathId(id): PathId<ResourceKind>,
) -> Result<Json<ResourceView>, ConsoleError> {
    workspace.require(Action::Read)?;
    let mut tx = state.store.tenant(workspace.id).await?;
    let resource = found(&mut tx, id).await?;
    Ok(Json(view(&mut tx, resource).await?))
}

/// Creates a resource or template.
#[utoipa::path(post, path = "/workspaces/{ws}/resources", tag = "resources", params(("ws" = String, Path, description = "Slug")),
    request_body = ResourceForm, responses((status = 201, description = "Made.", body = ResourceView)))]
pub(crate) async fn create_resource(
    State(state): State<AuthState>,
    workspace: Workspace,
    context: RequestContext,
    JsonBody(form): JsonBody<ResourceForm>,
) -> Result<(StatusCode, Json<ResourceView>), ConsoleError> {
    workspace.require(Action::EditRegistry)?;
    let checked = Checked::of(form)?;
    let (now, id) = (state.now(), ResourceId::generate());
    let mut tx = state.store.tenant(workspace.id).await?;
    if resources::list(&mut tx).await?.len() >= MOST_RESOURCES {
        return Err(ConsoleError::conflict(
            "too_many_resources",
            format!("A workspace has up to {MOST_RESOURCES} resources. Delete one first."),
        ));
    }
    checked.check_surroundings(&mut tx).await?;
    let none = json!({});
    let definition = checked.definition(&none, checked.enabled.unwrap_or(true));
    resources::insert(&mut tx, id, &definition, now)
        .await
        .map_err(|error| taken(error, &checked.uri))?;
    let made = found(&mut tx, id).await?;
    let made = view(&mut tx, made).await?;
    let entry = (
        "resource.created",
        "resource",
        id.to_string(),
        checked.entry(),
    );
    change::commit(tx, &workspace, &context, now, entry).await?;
    Ok((StatusCode::CREATED, Json(made)))
}

/// Refuses resources of an upstream server, which only that server can change.
fn written_here(resource: &Resource) -> Result<(), ConsoleError> {
    if resource.source_id.is_some() {
        return Err(ConsoleError::conflict(
            "not_written_here",
            "This resource comes from an upstream server. Enable or disable it instead.",
        ));
    }
    Ok(())
}

/// Replaces a resource. Servers that offer it under its old URI follow, and subscribed clients are
/// notified.
#[utoipa::path(put, path = "/workspaces/{ws}/resources/{id}", tag = "resources",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Resource")),
    request_body = ResourceForm, responses((status = 200, description = "Changed.", body = ResourceView)))]
pub(crate) async fn rewrite_resource(
    State(state): State<AuthState>,
    workspace: Workspace,
    context: RequestContext,
    PathId(id): PathId<ResourceKind>,
    JsonBody(form): JsonBody<ResourceForm>,
) -> Result<Json<ResourceView>, ConsoleError> {
    workspace.require(Action::EditRegistry)?;
    let now = state.now();
    let mut tx = state.store.tenant(workspace.id).await?;
    let before = found(&mut tx, id).await?;
    written_here(&before)?;
    let checked = Checked::of(form)?;
    checked.check_surroundings(&mut tx).await?;
    let enabled = checked.enabled.unwrap_or(before.enabled);
    let definition = checked.definition(&before.annotations, enabled);
    resources::replace(&mut tx, id, &definition, now)
        .await
        .map_err(|error| taken(error, &checked.uri))?;
    if before.uri != checked.uri {
        resources::move_to(&mut tx, id, &before.uri, &checked.uri)
            .await
            .map_err(|error| taken(error, &checked.uri))?;
    }
    let after = found(&mut tx, id).await?;
    let after = view(&mut tx, after).await?;
    let entry = (
        "resource.changed",
        "resource",
        id.to_string(),
        checked.entry(),
    );
    change::commit(tx, &workspace, &context, now, entry).await?;
    Ok(Json(after))
}

/// Enables or disables a resource.
#[utoipa::path(patch, path = "/workspaces/{ws}/resources/{id}", tag = "resources",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Resource")),
    request_body = EnabledChange, responses((status = 200, description = "Changed.", body = ResourceView)))]
pub(crate) async fn switch_resource(
    State(state): State<AuthState>,
    workspace: Workspace,
    context: RequestContext,
    PathId(id): PathId<ResourceKind>,
    JsonBody(request): JsonBody<EnabledChange>,
) -> Result<Json<ResourceView>, ConsoleError> {
    workspace.require(Action::EditRegistry)?;
    let now = state.now();
    let mut tx = state.store.tenant(workspace.id).await?;
    if !resources::set_enabled(&mut tx, id, request.enabled, now).await? {
        return Err(ConsoleError::not_found("this resource"));
    }
    let after = found(&mut tx, id).await?;
    let action = if request.enabled {
        "resource.enabled"
    } else {
        "resource.disabled"
    };
    let detail = json!({ "uri": after.uri });
    let after = view(&mut tx, after).await?;
    let entry = (action, "resource", id.to_string(), detail);
    change::commit(tx, &workspace, &context, now, entry).await?;
    Ok(Json(after))
}

/// Deletes a resource. It can be restored for 30 days.
#[utoipa::path(delete, path = "/workspaces/{ws}/resources/{id}", tag = "resources",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Resource")),
    responses((status = 200, description = "Deleted.", body = Deleted)))]
pub(crate) async fn delete_resource(
    State(state): State<AuthState>,
    workspace: Workspace,
    context: RequestContext,
    PathId(id): PathId<ResourceKind>,
) -> Result<Json<Deleted>, ConsoleError> {
    workspace.require(Action::EditRegistry)?;
    let now = state.now();
    let mut tx = state.store.tenant(workspace.id).await?;
    let before = found(&mut tx, id).await?;
    written_here(&before)?;
    resources::delete(&mut tx, id, now).await?;
    let detail = json!({ "uri": before.uri });
    let entry = ("resource.deleted", "resource", id.to_string(), detail);
    change::commit(tx, &workspace, &context, now, entry).await?;
    Ok(Json(Deleted::at(now)))
}

/// Restores a deleted resource.
#[utoipa::path(post, path = "/workspaces/{ws}/resources/{id}/restore", tag = "resources",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Resource")),
    responses((status = 200, description = "Restored.", body = ResourceView)))]
pub(crate) async fn restore_resource(
    State(state): State<AuthState>,
    workspace: Workspace,
    context: RequestContext,
    PathId(id): PathId<ResourceKind>,
) -> Result<Json<ResourceView>, ConsoleError> {
    workspace.require(Action::EditRegistry)?;
    let now = state.now();
    let mut tx = state.store.tenant(workspace.id).await?;
    let restored = resources::restore(&mut tx, id, now).await;
    if !restored.map_err(|error| taken(error, "that URI"))? {
        return Err(ConsoleError::not_restorable("resource"));
    }
    let after = found(&mut tx, id).await?;
    let detail = json!({ "uri": after.uri });
    let after = view(&mut tx, after).await?;
    let entry = ("resource.restored", "resource", id.to_string(), detail);
    change::commit(tx, &workspace, &context, now, entry).await?;
    Ok(Json(after))
}
