//! Prompts and resources of a server, as the API shows them.

use portolan_model::{
    id::{PromptId, ResourceId},
    registry::{ResourceShape, ToolState},
};
use portolan_site::console_error::ConsoleError;
use portolan_storage::{
    TenantTx,
    registry::{prompts, resources},
};
use serde::Serialize;
use utoipa::ToSchema;

/// A prompt as a server offers it.
#[derive(Debug, Serialize, ToSchema)]
pub struct ServerPrompt {
    #[schema(value_type = String)]
    prompt_id: PromptId,
    /// Its name for clients.
    published_name: String,
    name: String,
    title: String,
    /// The upstream server that has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    source_name: Option<String>,
    enabled: bool,
    #[schema(value_type = crate::tools::ToolStateName)]
    state: ToolState,
}

/// A resource as a server offers it.
#[derive(Debug, Serialize, ToSchema)]
pub struct ServerResource {
    #[schema(value_type = String)]
    resource_id: ResourceId,
    /// Its URI or template for clients.
    published_uri: String,
    #[schema(value_type = crate::resources::ShapeName)]
    shape: ResourceShape,
    name: String,
    title: String,
    /// The HTTP source that answers, or the upstream server that has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    source_name: Option<String>,
    enabled: bool,
    #[schema(value_type = crate::tools::ToolStateName)]
    state: ToolState,
}

impl From<prompts::Offered> for ServerPrompt {
    fn from(one: prompts::Offered) -> Self {
        Self {
            prompt_id: one.id,
            published_name: one.published_name,
            name: one.name,
            title: one.title,
            source_name: one.source_name,
            enabled: one.enabled,
            state: one.state,
        }
    }
}

impl From<resources::Offered> for ServerResource {
    fn from(one: resources::Offered) -> Self {
        Self {
            resource_id: one.id,
            published_uri: one.published_uri,
            shape: one.shape,
            name: one.name,
            title: one.title,
            source_name: one.source_name,
            enabled: one.enabled,
            state: one.state,
        }
    }
}

/// The prompts and resources of a server.
pub(crate) async fn of_server(
    tx: &mut TenantTx,
    id: portolan_model::id::ServerId,
) -> Result<(Vec<ServerPrompt>, Vec<ServerResource>), ConsoleError> {
    let prompts = prompts::of_server(tx, id).await?.into_iter();
    let prompts = prompts.map(Into::into).collect();
    let resources = resources::of_server(tx, id).await?.into_iter();
    Ok((prompts, resources.map(Into::into).collect()))
}
