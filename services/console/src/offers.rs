//! The prompts and resources that a server offers beside its tools.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    hash::Hash,
};

use axum::{Json, extract::State};
use portolan_model::{
    id::{PromptId, ResourceId, ServerKind},
    member::Action,
    registry::ResourceShape,
    uri_template::{UriTemplate, is_uri},
};
use portolan_site::{
    console_error::ConsoleError, request_context::RequestContext, state::AuthState,
};
use portolan_storage::{
    StorageError,
    registry::{prompts, resources},
};
use serde::Deserialize;
use serde_json::json;
use utoipa::ToSchema;

use crate::{
    change,
    input::{JsonBody, PathId},
    servers::{ServerDetail, detail, found_server},
    workspace::Workspace,
};

/// Most prompts, and most resources, of one server.
const MOST: usize = 1_000;

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

/// The chosen items by their names. Two items with one name are refused with an error that lists
/// the names.
fn named<Id: Eq + Hash + Copy>(
    chosen: Vec<(Id, Option<String>)>,
    own: &HashMap<Id, String>,
    field: &'static str,
    word: &str,
) -> Result<Vec<(Id, String)>, ConsoleError> {
    if chosen.len() > MOST {
        return Err(ConsoleError::invalid(
            "too_many",
            format!("A server offers up to {MOST} {field}. Split it."),
        )
        .field(field));
    }
    let mut ids = HashSet::new();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut rows = Vec::with_capacity(chosen.len());
    for (id, name) in chosen {
        let Some(own) = own.get(&id) else {
            return Err(ConsoleError::invalid(
                "unknown",
                format!("One of the {field} does not exist any more. Load the page again."),
            )
            .field(field));
        };
        if !ids.insert(id) {
            return Err(
                ConsoleError::invalid("twice", "One of them stands twice in the list.")
                    .field(field),
            );
        }
        let name = name
            .map(|name| name.trim().to_owned())
            .filter(|name| !name.is_empty())
            .unwrap_or_else(|| own.clone());
        *counts.entry(name.clone()).or_default() += 1;
        rows.push((id, name));
    }
    let clashes: BTreeSet<String> = counts
        .into_iter()
        .filter(|(_, count)| *count > 1)
        .map(|(name, _)| name)
        .collect();
    if clashes.is_empty() {
        return Ok(rows);
    }
    let shown: Vec<String> = clashes.iter().take(5).cloned().collect();
    Err(ConsoleError::conflict(
        "name_clash",
        format!(
            "Two {field} would have the same {word}: {}. Give one of them another one on this server.",
            shown.join(", ")
        ),
    )
    .field(field)
    .details(json!({ "names": clashes })))
}

fn refused(error: StorageError, field: &'static str) -> ConsoleError {
    match error {
        StorageError::Refused { .. } => ConsoleError::invalid(
            "unknown",
            format!("One of the {field} does not exist any more. Load the page again."),
        )
        .field(field)
        .caused_by(error),
        error => error.into(),
    }
}

/// Replaces a server's choice of prompts.
#[utoipa::path(put, path = "/workspaces/{ws}/servers/{id}/prompts", tag = "servers",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Server")),
    request_body = PromptChoice, responses((status = 200, description = "Replaced.", body = ServerDetail)))]
pub(crate) async fn choose_prompts(
    State(state): State<AuthState>,
    workspace: Workspace,
    context: RequestContext,
    PathId(id): PathId<ServerKind>,
    JsonBody(request): JsonBody<PromptChoice>,
) -> Result<Json<ServerDetail>, ConsoleError> {
    workspace.require(Action::EditRegistry)?;
    let now = state.now();
    let mut tx = state.store.tenant(workspace.id).await?;
    found_server(&mut tx, id).await?;
    let all = prompts::list(&mut tx).await?.into_iter();
    let own = all.map(|one| (one.id, one.name)).collect();
    let chosen = request.prompts.into_iter();
    let chosen = chosen.map(|one| (one.prompt_id, one.published_name));
    let rows = named(chosen.collect(), &own, "prompts", "name")?;
    for (id, name) in &rows {
        let is_own = own.get(id) == Some(name);
        if !is_own && !portolan_http_tools::naming::is_valid(name) {
            return Err(ConsoleError::invalid(
                "name_invalid",
                format!(
                    "`{name}` is not a prompt's name: use 1 to 64 letters, digits, `_` or `-`."
                ),
            )
            .field("prompts"));
        }
    }
    let count = rows.len();
    prompts::choose(&mut tx, id, &rows, now)
        .await
        .map_err(|error| refused(error, "prompts"))?;
    let answer = detail(&state, &workspace, &mut tx, id).await?;
    let entry = json!({ "prompts": count });
    let entry = ("server.prompts_chosen", "server", id.to_string(), entry);
    change::commit(tx, &workspace, &context, now, entry).await?;
    Ok(Json(answer))
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
    State(state): State<AuthState>,
    workspace: Workspace,
    context: RequestContext,
    PathId(id): PathId<ServerKind>,
    JsonBody(request): JsonBody<ResourceChoice>,
) -> Result<Json<ServerDetail>, ConsoleError> {
    workspace.require(Action::EditRegistry)?;
    let now = state.now();
    let mut tx = state.store.tenant(workspace.id).await?;
    found_server(&mut tx, id).await?;
    let all = resources::list(&mut tx).await?;
    let shapes: HashMap<ResourceId, ResourceShape> =
        all.iter().map(|one| (one.id, one.shape)).collect();
    let own = all.into_iter().map(|one| (one.id, one.uri)).collect();
    let chosen = request.resources.into_iter();
    let chosen = chosen.map(|one| (one.resource_id, one.published_uri));
    let rows = named(chosen.collect(), &own, "resources", "URI")?;
    for (id, uri) in &rows {
        let own = &own[id];
        let fits = match shapes[id] {
            ResourceShape::Resource => is_uri(uri),
            ResourceShape::Template => same_variables(own, uri),
        };
        if own != uri && !fits {
            return Err(ConsoleError::invalid(
                "uri_invalid",
                format!("`{uri}` cannot stand for `{own}`: it is no URI, or has other variables."),
            )
            .field("resources"));
        }
    }
    let count = rows.len();
    resources::choose(&mut tx, id, &rows, now)
        .await
        .map_err(|error| refused(error, "resources"))?;
    let answer = detail(&state, &workspace, &mut tx, id).await?;
    let entry = json!({ "resources": count });
    let entry = ("server.resources_chosen", "server", id.to_string(), entry);
    change::commit(tx, &workspace, &context, now, entry).await?;
    Ok(Json(answer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_of_one_name_are_refused_with_the_names() {
        let own = HashMap::from([(1, "a".to_owned()), (2, "b".to_owned())]);
        let rows = named(
            vec![(1, None), (2, Some(" c ".into()))],
            &own,
            "prompts",
            "name",
        )
        .unwrap();
        assert_eq!(rows, [(1, "a".to_owned()), (2, "c".to_owned())]);
        for chosen in [
            vec![(1, None), (2, Some("a".into()))],
            vec![(1, None), (1, None)],
            vec![(3, None)],
        ] {
            assert!(named(chosen, &own, "prompts", "name").is_err());
        }
    }

    #[test]
    fn a_template_is_published_under_another_uri_with_its_variables_only() {
        assert!(same_variables("a://{x}/{y}", "b://{y}/z/{x}"));
        assert!(!same_variables("a://{x}/{y}", "b://{x}"));
        assert!(!same_variables("a://{x}", "b://x"));
    }
}
