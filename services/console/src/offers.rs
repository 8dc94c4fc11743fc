//! The choice of tools, prompts and resources that a server offers.

use std::collections::{BTreeSet, HashMap};

use axum::Json;
use portolan_http_tools::naming;
use portolan_model::{
    id::{Id, PromptId, ResourceId, ServerId, ServerKind},
    registry::ResourceShape,
    uri_template::{UriTemplate, is_uri},
};
use portolan_site::console_error::ConsoleError;
use portolan_storage::{
    TenantTx,
    registry::{prompts, published_items::PublishedItem, resources},
};
use serde::Deserialize;
use serde_json::json;
use utoipa::ToSchema;

use crate::{
    change::Editor,
    choices::{ChoiceWords, ChosenTool, PROMPTS, RESOURCES, TOOLS, named, put, tool_rows},
    input::{JsonBody, PathId},
    servers::{ServerDetail, detail, found_server},
};

/// The tools of a server.
#[derive(Debug, Deserialize, ToSchema)]
pub struct ToolChoice {
    tools: Vec<ChosenTool>,
}

/// The prompts of a server.
#[derive(Debug, Deserialize, ToSchema)]
pub struct PromptChoice {
    prompts: Vec<ChosenPrompt>,
}

/// A prompt of a server.
#[derive(Debug, Deserialize, ToSchema)]
pub struct ChosenPrompt {
    #[schema(value_type = String)]
    prompt_id: PromptId,
    /// Its name for clients; the prompt's own name if absent.
    #[schema(nullable = false)]
    published_name: Option<String>,
}

/// The resources of a server.
#[derive(Debug, Deserialize, ToSchema)]
pub struct ResourceChoice {
    resources: Vec<ChosenResource>,
}

/// A resource of a server.
#[derive(Debug, Deserialize, ToSchema)]
pub struct ChosenResource {
    #[schema(value_type = String)]
    resource_id: ResourceId,
    /// Its URI or template for clients; the resource's own if absent. A template keeps its
    /// variables.
    #[schema(nullable = false)]
    published_uri: Option<String>,
}

/// Stores the choice, commits, and returns the server.
async fn store<K: PublishedItem>(
    editor: &Editor,
    mut tx: TenantTx,
    id: ServerId,
    rows: &[(Id<K>, String)],
    words: &ChoiceWords,
) -> Result<Json<ServerDetail>, ConsoleError> {
    put(&mut tx, id, rows, words, editor.now).await?;
    let answer = detail(&editor.state, &editor.workspace, &mut tx, id).await?;
    let count = json!({ words.items: rows.len() });
    editor.commit(tx, words.chosen, "server", id, count).await?;
    Ok(Json(answer))
}

/// Replaces a server's choice of tools.
#[utoipa::path(put, path = "/workspaces/{ws}/servers/{id}/tools", tag = "servers",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Server")),
    request_body = ToolChoice, responses((status = 200, description = "Replaced.", body = ServerDetail)))]
pub(crate) async fn choose_tools(
    editor: Editor,
    PathId(id): PathId<ServerKind>,
    JsonBody(request): JsonBody<ToolChoice>,
) -> Result<Json<ServerDetail>, ConsoleError> {
    let mut tx = editor.begin().await?;
    found_server(&mut tx, id).await?;
    let rows = tool_rows(&mut tx, request.tools).await?;
    store(&editor, tx, id, &rows, &TOOLS).await
}

/// Replaces a server's choice of prompts.
#[utoipa::path(put, path = "/workspaces/{ws}/servers/{id}/prompts", tag = "servers",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Server")),
    request_body = PromptChoice, responses((status = 200, description = "Replaced.", body = ServerDetail)))]
pub(crate) async fn choose_prompts(
    editor: Editor,
    PathId(id): PathId<ServerKind>,
    JsonBody(request): JsonBody<PromptChoice>,
) -> Result<Json<ServerDetail>, ConsoleError> {
    let mut tx = editor.begin().await?;
    found_server(&mut tx, id).await?;
    let chosen = request.prompts.into_iter();
    let chosen = chosen.map(|one| (one.prompt_id, one.published_name));
    let rows = prompt_rows(&mut tx, chosen.collect()).await?;
    store(&editor, tx, id, &rows, &PROMPTS).await
}

/// The rows of chosen prompts, checked.
pub(crate) async fn prompt_rows(
    tx: &mut TenantTx,
    chosen: Vec<(PromptId, Option<String>)>,
) -> Result<Vec<(PromptId, String)>, ConsoleError> {
    let all = prompts::list(tx).await?.into_iter();
    let own = all.map(|one| (one.id, one.name)).collect();
    let rows = named(chosen, &own, &PROMPTS)?;
    for (id, name) in &rows {
        if own.get(id) != Some(name) && !naming::is_valid(name) {
            let text = format!(
                "`{name}` is not a prompt's name: use 1 to 64 letters, digits, `_` or `-`."
            );
            return Err(PROMPTS.invalid("name_invalid", text));
        }
    }
    Ok(rows)
}

/// Returns true if both templates have the same variables. With others, the resource could not be
/// filled.
fn same_variables(own: &str, published: &str) -> bool {
    let names = |text: &str| -> Option<BTreeSet<String>> {
        let template = UriTemplate::parse(text).ok()?;
        Some(template.variables().map(str::to_owned).collect())
    };
    names(own).is_some_and(|own| names(published) == Some(own))
}

/// Replaces a server's choice of resources.
#[utoipa::path(put, path = "/workspaces/{ws}/servers/{id}/resources", tag = "servers",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Server")),
    request_body = ResourceChoice, responses((status = 200, description = "Replaced.", body = ServerDetail)))]
pub(crate) async fn choose_resources(
    editor: Editor,
    PathId(id): PathId<ServerKind>,
    JsonBody(request): JsonBody<ResourceChoice>,
) -> Result<Json<ServerDetail>, ConsoleError> {
    let mut tx = editor.begin().await?;
    found_server(&mut tx, id).await?;
    let chosen = request.resources.into_iter();
    let chosen = chosen.map(|one| (one.resource_id, one.published_uri));
    let rows = resource_rows(&mut tx, chosen.collect()).await?;
    store(&editor, tx, id, &rows, &RESOURCES).await
}

/// The rows of chosen resources, checked.
pub(crate) async fn resource_rows(
    tx: &mut TenantTx,
    chosen: Vec<(ResourceId, Option<String>)>,
) -> Result<Vec<(ResourceId, String)>, ConsoleError> {
    let all = resources::list(tx).await?;
    let shapes: HashMap<ResourceId, ResourceShape> =
        all.iter().map(|one| (one.id, one.shape)).collect();
    let own = all.into_iter().map(|one| (one.id, one.uri)).collect();
    let rows = named(chosen, &own, &RESOURCES)?;
    for (id, uri) in &rows {
        let own = &own[id];
        let fits = match shapes[id] {
            ResourceShape::Resource => is_uri(uri),
            ResourceShape::Template => same_variables(own, uri),
        };
        if own != uri && !fits {
            let text =
                format!("`{uri}` cannot stand for `{own}`: it is no URI, or has other variables.");
            return Err(RESOURCES.invalid("uri_invalid", text));
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_published_under_another_uri_with_its_variables_only() {
        assert!(same_variables("a://{x}/{y}", "b://{y}/z/{x}"));
        assert!(!same_variables("a://{x}/{y}", "b://{x}"));
        assert!(!same_variables("a://{x}", "b://x"));
    }
}
