//! The tools, each over a route: the function of the route runs, with the checks, bounds and audit
//! entries that it has (OWN-3).

use axum::{Json, extract::State};
use portolan_model::id::CallId;
use portolan_protocol::{Raw, content::ContentBlock, tool::CallResult};
use portolan_site::{console_error::ConsoleError, state::AuthState};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    calls,
    configuration::{self, ConfigurationQuery, SCHEMA_PATH},
    input::{PathId, QueryParameters},
    insights,
    workspace::Workspace,
};

/// A tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OwnTool {
    /// One call of the log.
    GetCall,
    /// The workspace as a file.
    GetConfiguration,
    /// Sums of a period.
    GetInsights,
    /// Failures by cause.
    ListErrorCauses,
    /// Calls of the log.
    SearchCalls,
}

impl OwnTool {
    /// Every tool, by name (MCP-TL-3).
    pub(super) const ALL: [Self; 5] = [
        Self::GetCall,
        Self::GetConfiguration,
        Self::GetInsights,
        Self::ListErrorCauses,
        Self::SearchCalls,
    ];

    /// The name to call it by.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::GetCall => "get_call",
            Self::GetConfiguration => "get_configuration",
            Self::GetInsights => "get_insights",
            Self::ListErrorCauses => "list_error_causes",
            Self::SearchCalls => "search_calls",
        }
    }

    /// Display name.
    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::GetCall => "Get a call",
            Self::GetConfiguration => "Get the configuration",
            Self::GetInsights => "Get insights",
            Self::ListErrorCauses => "List causes of errors",
            Self::SearchCalls => "Search calls",
        }
    }

    /// Description for the model.
    pub(super) const fn description(self) -> &'static str {
        match self {
            Self::GetCall => {
                "Shows one tool call of the log: its caller and client, outcome and error text, \
                 the time that was spent waiting, at the API and here, sizes, session and trace. \
                 Arguments and answers are not shown."
            }
            Self::GetConfiguration => {
                "Shows the whole workspace as one portolan/v1 file, the document of `portolan \
                 export`: sources with their tools, prompts, resources and servers. Secrets are \
                 references. Needs the role developer. The file of a large workspace is long: up \
                 to 5 MiB."
            }
            Self::GetInsights => {
                "Sums the tool calls of a period: calls, errors (errors ÷ calls is the error \
                 share), rejected calls, bytes, estimated tokens, and the durations p50, p95 and \
                 p99; in total, by step of time, and by tool, server, client and outcome, with \
                 the period before. Sums are exact. A new call is counted within about twelve \
                 seconds."
            }
            Self::ListErrorCauses => {
                "Groups failed and rejected tool calls of a period by tool, server, outcome, HTTP \
                 status and reason, most calls first, with the first and the last failure. Use \
                 search_calls with the tool and the reason to find the calls behind a cause."
            }
            Self::SearchCalls => {
                "Lists tool calls of the last 30 days, newest first, 50 a page, optionally \
                 narrowed by tool, server, client, user, outcome, error, era, duration and time. \
                 A filtered page searches 200,000 calls and may be empty: go on while there is a \
                 next_cursor. get_call shows more of a call."
            }
        }
    }

    /// The route, by the name of its operation in the API's document.
    pub(super) const fn operation(self) -> &'static str {
        match self {
            Self::GetCall => "show_call",
            Self::GetConfiguration => "export_configuration",
            Self::GetInsights => "show_insights",
            Self::ListErrorCauses => "list_error_causes",
            Self::SearchCalls => "list_calls",
        }
    }

    /// Parameters of the route that are no arguments.
    pub(super) const fn without(self) -> &'static [&'static str] {
        match self {
            // The result has both forms.
            Self::GetConfiguration => &["ws", "format"],
            _ => &["ws"],
        }
    }

    /// The schema of the result, where the document has none.
    pub(super) fn output_schema(self) -> Option<Value> {
        let list = json!({"type": "array", "items": {"type": "object"}});
        (self == Self::GetConfiguration).then(|| {
            json!({
                "type": "object",
                "description": format!("The file. {SCHEMA_PATH} here is its whole schema."),
                "properties": {
                    "format": {"const": "portolan/v1"},
                    "name": {"type": "string"},
                    "sources": list,
                    "prompts": list,
                    "resources": list,
                    "servers": list,
                },
                "required": ["format", "name"],
            })
        })
    }

    /// Runs the function of the route. The arguments fit the schema.
    pub(super) async fn run(
        self,
        state: AuthState,
        workspace: Workspace,
        arguments: &Value,
    ) -> Result<CallResult, ConsoleError> {
        match self {
            Self::SearchCalls => {
                let (query, filter) = (read(arguments)?, read(arguments)?);
                let found = calls::list_calls(State(state), workspace, query, filter).await?;
                structured(&found)
            }
            Self::GetCall => {
                let id = arguments["id"].as_str().unwrap_or_default();
                let id = id.parse::<CallId>();
                let id = id.map_err(|_| ConsoleError::not_found("this call"))?;
                structured(&calls::show_call(State(state), workspace, PathId(id)).await?)
            }
            Self::GetInsights => {
                let query = read(arguments)?;
                structured(&insights::show_insights(State(state), workspace, query).await?)
            }
            Self::ListErrorCauses => {
                let query = read(arguments)?;
                let causes = insights::groups::list_error_causes(State(state), workspace, query);
                structured(&causes.await?)
            }
            Self::GetConfiguration => {
                let QueryParameters(query) = read::<ConfigurationQuery>(arguments)?;
                let file = configuration::exported(&state, &workspace, query.name).await?;
                let answer = structured(&Json(file.bundle))?;
                Ok(CallResult {
                    content: vec![ContentBlock::text(file.yaml)],
                    ..answer
                })
            }
        }
    }
}

/// Arguments as the query of the route.
fn read<'a, T: Deserialize<'a>>(arguments: &'a Value) -> Result<QueryParameters<T>, ConsoleError> {
    let query = T::deserialize(arguments);
    query.map(QueryParameters).map_err(|fault| {
        let text = "An argument is not readable.";
        ConsoleError::invalid("invalid_query", text).caused_by(fault)
    })
}

/// The answer of a route as the result of a tool. The protocol adds it as text.
fn structured<T: Serialize>(Json(answer): &Json<T>) -> Result<CallResult, ConsoleError> {
    let written = Raw::of(answer);
    let written = written.map_err(|fault| ConsoleError::internal("result of a tool", fault))?;
    Ok(CallResult {
        structured_content: Some(written),
        ..CallResult::default()
    })
}
