//! A choice of tools before it is published: estimated tokens, descriptions and names that models
//! handle badly, and limits of AI clients.

use std::collections::HashMap;

use axum::{Json, extract::State};
use portolan_http_tools::naming;
use portolan_model::{id::ToolId, member::Action, registry::ToolState};
use portolan_site::{console_error::ConsoleError, state::AuthState};
use portolan_storage::registry::tool_weights::{self, ToolWeight};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    choices::{ChosenTool, MOST as MOST_TOOLS},
    client_limits::{self, ClientWarning, Listed},
    input::JsonBody,
    workspace::Workspace,
};

/// Bytes of a definition or an answer that make one token. Tokenisers of current models need 3 to 5 bytes for
/// English text and JSON.
pub(crate) const BYTES_OF_A_TOKEN: i64 = 4;

/// Bytes of the member names of a definition, which stand in every list.
const MEMBER_NAMES: i64 = 60;

/// Tokens of one tool that are much: a model reads them in each conversation.
const HEAVY_TOOL: i64 = 2_000;

/// Tokens of a list that are much: 5 % of a context of 200,000 tokens.
const HEAVY_LIST: i64 = 10_000;

/// The context to which a list is compared, in tokens.
const CONTEXT: i64 = 200_000;

/// Fewest words of a description by which a model can choose a tool.
const FEWEST_WORDS: usize = 4;

const WEAK: &str =
    "The description says too little. Describe what the tool does and when to use it.";
const SAME_NAME: &str =
    "Another selected tool has nearly the same name. Give names that differ in a word.";
const SAME_DESCRIPTION: &str =
    "Another selected tool has the same description. Say how they differ.";
const SHORTENED: &str =
    "The name was shortened and ends with a code. Give it a short name of words.";
const LARGE: &str = "The definition is large. Shorten its description, or choose a simpler tool.";

/// A choice of tools to check.
#[derive(Debug, Deserialize, ToSchema)]
pub struct ToolBudgetRequest {
    /// The server's segment of the URL. Some clients put it before names.
    slug: String,
    tools: Vec<ChosenTool>,
}

/// A checked choice. Nothing is stored.
#[derive(Debug, Serialize, ToSchema)]
pub struct ToolBudget {
    /// Estimated tokens of the list of tools, one for four bytes. Clients send the list to the
    /// model in each conversation.
    tokens: i64,
    /// In the order of the request; tools that do not exist are absent.
    tools: Vec<ToolTokens>,
    /// Problems that some AI clients would have.
    warnings: Vec<ClientWarning>,
}

/// A tool of the choice.
#[derive(Debug, Serialize, ToSchema)]
pub struct ToolTokens {
    #[schema(value_type = String)]
    tool_id: ToolId,
    /// Estimated tokens of its definition.
    tokens: i64,
    /// What makes it hard to choose for a model, and the remedy.
    notes: Vec<String>,
}

/// Checks a choice of tools before it is saved.
#[utoipa::path(post, path = "/workspaces/{ws}/servers/check", tag = "servers", params(("ws" = String, Path, description = "Slug")),
    request_body = ToolBudgetRequest, responses((status = 200, description = "Tokens and problems.", body = ToolBudget)))]
pub(crate) async fn check_tools(
    State(state): State<AuthState>,
    workspace: Workspace,
    JsonBody(request): JsonBody<ToolBudgetRequest>,
) -> Result<Json<ToolBudget>, ConsoleError> {
    workspace.require(Action::Read)?;
    if request.tools.len() > MOST_TOOLS {
        let text = format!("A server offers up to {MOST_TOOLS} tools. Split it.");
        return Err(ConsoleError::invalid("too_many", text).field("tools"));
    }
    let ids: Vec<ToolId> = request.tools.iter().map(|tool| tool.tool_id).collect();
    let mut tx = state.store.tenant(workspace.id).await?;
    let weights = tool_weights::weigh(&mut tx, &ids).await?;
    Ok(Json(budget(&request, weights)))
}

fn budget(request: &ToolBudgetRequest, weights: Vec<ToolWeight>) -> ToolBudget {
    let mut weights: HashMap<ToolId, ToolWeight> = weights
        .into_iter()
        .map(|weight| (weight.id, weight))
        .collect();
    let chosen: Vec<(String, ToolWeight)> = request
        .tools
        .iter()
        .filter_map(|tool| {
            let weight = weights.remove(&tool.tool_id)?;
            let name = tool.published_name.as_deref().map(str::trim);
            Some((name.unwrap_or(&weight.name).to_owned(), weight))
        })
        .collect();
    let names = counted(chosen.iter().map(|(name, _)| folded(name)));
    let descriptions = counted(chosen.iter().map(|(_, tool)| plain(&tool.description)));
    let tools: Vec<ToolTokens> = chosen
        .iter()
        .map(|(name, tool)| {
            let tokens = (tool.bytes + MEMBER_NAMES) / BYTES_OF_A_TOKEN;
            let description = plain(&tool.description);
            let suffix = naming::stable_suffix(&tool.operation_key);
            let stem = name.strip_suffix(&suffix);
            let notes = [
                (is_weak(name, tool), WEAK),
                (names[&folded(name)] > 1, SAME_NAME),
                (
                    !description.is_empty() && descriptions[&description] > 1,
                    SAME_DESCRIPTION,
                ),
                (stem.is_some_and(|stem| stem.ends_with('_')), SHORTENED),
                (tokens > HEAVY_TOOL, LARGE),
            ];
            ToolTokens {
                tool_id: tool.id,
                tokens,
                notes: notes
                    .into_iter()
                    .filter(|(applies, _)| *applies)
                    .map(|(_, note)| note.to_owned())
                    .collect(),
            }
        })
        .collect();
    let offered = |tool: &ToolWeight| tool.enabled && tool.state == ToolState::Active;
    let tokens = tools
        .iter()
        .zip(&chosen)
        .filter(|(_, (_, tool))| offered(tool))
        .map(|(tool, _)| tool.tokens)
        .sum();
    let listed: Vec<Listed<'_>> = chosen
        .iter()
        .map(|(name, tool)| Listed {
            name,
            enabled: tool.enabled,
            state: tool.state,
        })
        .collect();
    let mut warnings = client_limits::warnings(&request.slug, &listed);
    if tokens > HEAVY_LIST {
        warnings.push(ClientWarning::for_all(format!(
            "The list takes about {tokens} tokens of each conversation, {} % of a context of {CONTEXT}. \
             Choose fewer tools, or publish several smaller servers.",
            tokens * 100 / CONTEXT
        )));
    }
    ToolBudget {
        tokens,
        tools,
        warnings,
    }
}

fn counted(keys: impl Iterator<Item = String>) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    for key in keys {
        *counts.entry(key).or_default() += 1;
    }
    counts
}

/// A name without case, separators and a number at its end: `getUser_2` and `get_user` are equal.
fn folded(name: &str) -> String {
    name.chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect::<String>()
        .trim_end_matches(|c: char| c.is_ascii_digit())
        .to_owned()
}

/// A text as lower-case words.
fn plain(text: &str) -> String {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect::<Vec<_>>()
        .join(" ")
}

fn is_weak(name: &str, tool: &ToolWeight) -> bool {
    let description = plain(&tool.description);
    description.split(' ').count() < FEWEST_WORDS || description == plain(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "Lists the berths of a port that are free at a given time.";

    fn tool(name: &str, description: &str, bytes: i64) -> ToolWeight {
        ToolWeight {
            id: ToolId::generate(),
            name: name.to_owned(),
            title: String::new(),
            description: description.to_owned(),
            operation_key: "GET /berths".to_owned(),
            enabled: true,
            state: ToolState::Active,
            bytes,
        }
    }

    fn checked(tools: Vec<ToolWeight>) -> ToolBudget {
        let request = ToolBudgetRequest {
            slug: "harbour".to_owned(),
            tools: tools
                .iter()
                .map(|tool| ChosenTool {
                    tool_id: tool.id,
                    published_name: None,
                })
                .collect(),
        };
        budget(&request, tools)
    }

    #[test]
    fn tokens_are_a_quarter_of_the_bytes_of_offered_tools() {
        let mut off = tool("b", "Moves a ship to another berth.", 4_000);
        off.enabled = false;
        let budget = checked(vec![tool("a", GOOD, 340), off]);
        assert_eq!(budget.tools[0].tokens, 100);
        assert_eq!(budget.tools[1].tokens, 1_015);
        assert_eq!(budget.tokens, 100, "a disabled tool is not in the list");
        assert!(budget.tools[0].notes.is_empty(), "{budget:?}");
    }

    #[test]
    fn each_kind_of_weak_tool_gets_its_note() {
        let code = naming::stable_suffix("GET /berths");
        for (tools, word) in [
            (vec![tool("list_berths", "x", 100)], "too little"),
            (
                vec![tool("list_all_the_berths", "List all the berths", 100)],
                "too little",
            ),
            (
                vec![
                    tool("list_berths", GOOD, 100),
                    tool("listBerths2", "Shows a plan of all berths.", 100),
                ],
                "nearly the same name",
            ),
            (
                vec![tool("list", GOOD, 100), tool("show", GOOD, 100)],
                "same description",
            ),
            (
                vec![tool(&format!("list_{code}"), GOOD, 100)],
                "was shortened",
            ),
            (vec![tool("list", GOOD, 9_000)], "is large"),
        ] {
            for one in checked(tools).tools {
                assert_eq!(one.notes.len(), 1, "{word}: {one:?}");
                assert!(one.notes[0].contains(word), "{word}: {one:?}");
            }
        }
    }

    #[test]
    fn a_heavy_list_is_a_warning_for_all_clients() {
        let light = checked(vec![tool("a", GOOD, 39_000)]);
        assert!(light.warnings.is_empty(), "{light:?}");
        let heavy = checked(vec![tool("a", GOOD, 80_000)]);
        let text = serde_json::to_string(&heavy.warnings).unwrap();
        assert!(
            text.contains("20015 tokens of each conversation, 10 %"),
            "{text}"
        );
    }
}
