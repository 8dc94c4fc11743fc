//! An MCP server with the official Rust SDK, in the tests' own process: both eras on one URL, sessions for clients that initialize.

use std::{sync::Arc, time::Duration};

use axum::Router;
use rmcp::{
    ErrorData, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
        InputRequest, InputRequests, InputRequiredResult, JsonObject, ListToolsResult,
        PaginatedRequestParams, ProgressNotificationParam, ProtocolVersion, ServerCapabilities,
        ServerConfig, Tool,
    },
    service::{RequestContext, RoleServer},
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};
use serde_json::{Value, json};

/// Its router, with the endpoint at `/mcp`.
pub(crate) fn router() -> Router {
    let service = StreamableHttpService::new(
        || Ok(Fixture),
        Arc::new(LocalSessionManager::default()),
        StreamableHttpServerConfig::default(),
    );
    Router::new().nest_service("/mcp", service)
}

#[derive(Debug, Clone)]
struct Fixture;

fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(object) => object,
        _ => JsonObject::new(),
    }
}

fn tool(name: &'static str, description: &'static str, properties: Value) -> Tool {
    let required: Vec<&String> = properties
        .as_object()
        .into_iter()
        .flat_map(|all| all.keys())
        .collect();
    let schema = json!({ "type": "object", "properties": properties, "required": required });
    Tool::new(name, description, Arc::new(object(schema)))
}

fn text(text: impl Into<String>) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(text.into())]).into()
}

impl Fixture {
    async fn ask_name(
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let form = json!({ "method": "elicitation/create", "params": {
            "mode": "form",
            "message": "What is your name?",
            "requestedSchema": { "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"] },
        }});
        let question: InputRequest = serde_json::from_value(form)
            .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        let answer = if context.protocol_version() == Some(ProtocolVersion::V_2026_07_28) {
            let given = request
                .input_responses
                .as_ref()
                .and_then(|all| all.get("user_name"));
            let Some(given) = given else {
                let questions = InputRequests::from_iter([("user_name".to_owned(), question)]);
                return Ok(InputRequiredResult::new(Some(questions), None).into());
            };
            serde_json::to_value(given)
        } else {
            let InputRequest::Elicitation(question) = question else {
                return Err(ErrorData::internal_error("no form", None));
            };
            let asked = context.peer.create_elicitation(question.params).await;
            serde_json::to_value(
                asked.map_err(|error| ErrorData::internal_error(error.to_string(), None))?,
            )
        };
        let answer = answer.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        let name = answer
            .pointer("/content/name")
            .and_then(Value::as_str)
            .unwrap_or("stranger");
        Ok(text(format!("Hello, {name}!")))
    }
}

impl ServerHandler for Fixture {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("fixture-upstream-rmcp", "1.4.2"))
            .with_protocol_version(ProtocolVersion::V_2026_07_28)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(vec![
            tool("test_simple_text", "Answers with a text.", json!({})),
            tool("test_error_handling", "Fails.", json!({})),
            tool(
                "test_tool_with_progress",
                "Reports progress three times.",
                json!({}),
            ),
            tool(
                "test_slow",
                "Takes its time, and can be cancelled.",
                json!({ "milliseconds": { "type": "integer" } }),
            ),
            tool("test_ask_name", "Asks for a name and greets.", json!({})),
        ]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        match request.name.as_ref() {
            "test_simple_text" => Ok(text("This is a simple text response for testing.")),
            "test_error_handling" => Ok(CallToolResult::error(vec![ContentBlock::text(
                "This tool intentionally returns an error for testing",
            )])
            .into()),
            "test_tool_with_progress" => {
                if let Some(token) = context.meta.get_progress_token() {
                    for progress in [0.0, 50.0, 100.0] {
                        let notice = ProgressNotificationParam::new(token.clone(), progress)
                            .with_total(100.0);
                        // A client that has gone needs no news.
                        let _ = context.peer.notify_progress(notice).await;
                    }
                }
                Ok(text("Reported progress."))
            }
            "test_slow" => {
                let given = request
                    .arguments
                    .as_ref()
                    .and_then(|all| all.get("milliseconds"));
                let milliseconds = given.and_then(Value::as_u64).unwrap_or_default();
                tokio::select! {
                    () = tokio::time::sleep(Duration::from_millis(milliseconds)) => {}
                    () = context.ct.cancelled() => return Err(ErrorData::internal_error("cancelled", None)),
                }
                Ok(text(format!("Waited {milliseconds} ms.")))
            }
            "test_ask_name" => Self::ask_name(&request, &context).await,
            other => Err(ErrorData::invalid_params(
                format!("Unknown tool: {other}"),
                None,
            )),
        }
    }
}
