//! Resources and resource templates: written or uploaded here, or answered by an HTTP source;
//! offered by servers.

pub(crate) mod form;

use axum::{Json, extract::State};
use http::StatusCode;
use portolan_model::{
    Timestamp,
    id::{ResourceId, ResourceKind, SourceId},
    member::Action,
    registry::{ResourceBody, ResourceShape, ToolState},
};
use portolan_site::{console_error::ConsoleError, state::AuthState};
use portolan_storage::{
    StorageError, TenantTx,
    registry::{
        published_items::PublishedItem as _,
        resources::{self, RegistryResource},
    },
};
use serde::Serialize;
use serde_json::{Value, json};
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::{
    arguments::ArgumentForm,
    change::{Deleted, Editor},
    input::{JsonBody, PathId},
    listing::Listing,
    resources::form::{Checked, ResourceForm, invalid},
    workspace::Workspace,
    written_items::{self, EnabledChange, ItemWords, WrittenItem},
};

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
    /// Name of the file that owns it, by configuration as code: the next application of that file
    /// overwrites other changes. Absent if none does.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    managed_by: Option<String>,
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

fn summary(resource: RegistryResource) -> ResourceSummary {
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
        managed_by: resource.managed_by,
        updated_at: resource.updated_at,
    }
}

impl WrittenItem for RegistryResource {
    type Kind = ResourceKind;
    type Checked = Checked;
    type View = ResourceView;
    const WORDS: ItemWords = ItemWords {
        noun: "resource",
        address: "uri",
        too_many: "too_many_resources",
        unknown_address: "that URI",
        created: "resource.created",
        changed: "resource.changed",
        enabled: "resource.enabled",
        disabled: "resource.disabled",
        deleted: "resource.deleted",
        restored: "resource.restored",
    };

    fn address(&self) -> &str {
        &self.uri
    }

    fn source(&self) -> Option<SourceId> {
        self.source_id
    }

    async fn view(self, tx: &mut TenantTx) -> Result<ResourceView, ConsoleError> {
        let text = match self.body {
            ResourceBody::Text => resources::content(tx, self.id)
                .await?
                .map(|(_, bytes)| String::from_utf8_lossy(&bytes).into_owned()),
            _ => None,
        };
        Ok(ResourceView {
            text,
            http_source_id: self.http_source_id,
            http_path: self.http_path.clone(),
            summary: summary(self),
        })
    }

    async fn find(tx: &mut TenantTx, id: ResourceId) -> Result<Option<Self>, StorageError> {
        resources::find(tx, id).await
    }

    async fn count(tx: &mut TenantTx) -> Result<usize, StorageError> {
        Ok(resources::list(tx).await?.len())
    }

    async fn write(
        tx: &mut TenantTx,
        id: ResourceId,
        new: &Checked,
        before: Option<&Self>,
        now: Timestamp,
    ) -> Result<(), ConsoleError> {
        new.check_surroundings(tx).await?;
        let enabled = before.is_none_or(|before| before.enabled);
        let annotations = before.map_or_else(|| json!({}), |before| before.annotations.clone());
        let definition = new.definition(&annotations, new.enabled.unwrap_or(enabled));
        let written = match before {
            None => resources::insert(tx, id, &definition, now).await,
            Some(_) => resources::replace(tx, id, &definition, now).await.map(drop),
        };
        written.map_err(|error| Self::taken(error, &new.uri))
    }

    fn new_address(new: &Checked) -> &str {
        &new.uri
    }

    fn detail(new: &Checked) -> Value {
        json!({ "uri": new.uri, "name": new.name })
    }

    fn taken(error: StorageError, uri: &str) -> ConsoleError {
        if error.is_conflict_on(resources::URI_TAKEN) {
            ConsoleError::conflict(
                "uri_taken",
                format!("This workspace has a resource at `{uri}` already."),
            )
            .field("uri")
        } else if error.is_conflict_on(ResourceKind::CLASH) {
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
    let found: RegistryResource = written_items::found(&mut tx, id).await?;
    found.view(&mut tx).await.map(Json)
}

/// Creates a resource or template.
#[utoipa::path(post, path = "/workspaces/{ws}/resources", tag = "resources", params(("ws" = String, Path, description = "Slug")),
    request_body = ResourceForm, responses((status = 201, description = "Made.", body = ResourceView)))]
pub(crate) async fn create_resource(
    editor: Editor,
    JsonBody(form): JsonBody<ResourceForm>,
) -> Result<(StatusCode, Json<ResourceView>), ConsoleError> {
    written_items::create::<RegistryResource>(&editor, Checked::of(form)?).await
}

/// Replaces a resource. Servers that offer it under its old URI follow, and subscribed clients are
/// notified.
#[utoipa::path(put, path = "/workspaces/{ws}/resources/{id}", tag = "resources",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Resource")),
    request_body = ResourceForm, responses((status = 200, description = "Changed.", body = ResourceView)))]
pub(crate) async fn rewrite_resource(
    editor: Editor,
    PathId(id): PathId<ResourceKind>,
    JsonBody(form): JsonBody<ResourceForm>,
) -> Result<Json<ResourceView>, ConsoleError> {
    written_items::replace::<RegistryResource>(&editor, id, || Checked::of(form)).await
}

/// Enables or disables a resource.
#[utoipa::path(patch, path = "/workspaces/{ws}/resources/{id}", tag = "resources",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Resource")),
    request_body = EnabledChange, responses((status = 200, description = "Changed.", body = ResourceView)))]
pub(crate) async fn switch_resource(
    editor: Editor,
    PathId(id): PathId<ResourceKind>,
    JsonBody(change): JsonBody<EnabledChange>,
) -> Result<Json<ResourceView>, ConsoleError> {
    written_items::switch::<RegistryResource>(&editor, id, &change).await
}

/// Deletes a resource. It can be restored for 30 days.
#[utoipa::path(delete, path = "/workspaces/{ws}/resources/{id}", tag = "resources",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Resource")),
    responses((status = 200, description = "Deleted.", body = Deleted)))]
pub(crate) async fn delete_resource(
    editor: Editor,
    PathId(id): PathId<ResourceKind>,
) -> Result<Json<Deleted>, ConsoleError> {
    written_items::delete::<RegistryResource>(&editor, id).await
}

/// Restores a deleted resource.
#[utoipa::path(post, path = "/workspaces/{ws}/resources/{id}/restore", tag = "resources",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Resource")),
    responses((status = 200, description = "Restored.", body = ResourceView)))]
pub(crate) async fn restore_resource(
    editor: Editor,
    PathId(id): PathId<ResourceKind>,
) -> Result<Json<ResourceView>, ConsoleError> {
    written_items::restore::<RegistryResource>(&editor, id).await
}
