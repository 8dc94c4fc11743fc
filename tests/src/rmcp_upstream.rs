//! An MCP server with the official Rust SDK, in the tests' own process: both eras on one URL, sessions for clients that initialize.

use std::{sync::Arc, time::Duration};

use axum::Router;
use rmcp::{
    ErrorData, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams,
        CompleteResult, CompletionInfo, ContentBlock, GetPromptRequestParams, GetPromptResponse,
        GetPromptResult, Implementation, InputRequest, InputRequests, InputRequiredResult,
        JsonObject, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
        ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, Prompt, PromptArgument,
        PromptMessage, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse,
        ReadResourceResult, Resource, ResourceContents, ResourceTemplate, Role, ServerCapabilities,
        ServerConfig, Tool, ToolAnnotations,
    },
    service::{RequestContext, RoleServer},
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};
use serde_json::{Value, json};

use crate::native::PNG;

const STATIC_TEXT: &str = "test://static-text";
const STATIC_BINARY: &str = "test://static-binary";

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

/// The client's answer, or the result that asks it.
type Round = Result<Value, InputRequiredResult>;

impl Fixture {
    /// Asks in the way of the client's era: by the result of the request, or by a request of its session.
    #[expect(
        deprecated,
        reason = "sampling is on its way out of the protocol, and still asked for"
    )]
    async fn ask(
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
        key: &str,
        question: Value,
    ) -> Result<Round, ErrorData> {
        let question: InputRequest = serde_json::from_value(question).map_err(broken)?;
        if context.protocol_version() == Some(ProtocolVersion::V_2026_07_28) {
            let given = request
                .input_responses
                .as_ref()
                .and_then(|all| all.get(key));
            return Ok(given.cloned().ok_or_else(|| {
                let questions = InputRequests::from_iter([(key.to_owned(), question)]);
                InputRequiredResult::new(Some(questions), None)
            }));
        }
        let answer = match question {
            InputRequest::Elicitation(question) => {
                let asked = context.peer.create_elicitation(question.params).await;
                serde_json::to_value(asked.map_err(broken)?)
            }
            InputRequest::CreateMessage(question) => {
                let asked = context.peer.create_message(question.params).await;
                serde_json::to_value(asked.map_err(broken)?)
            }
            _ => return Err(ErrorData::internal_error("no such question", None)),
        };
        answer.map(Ok).map_err(broken)
    }

    async fn ask_name(
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let form = json!({ "method": "elicitation/create", "params": {
            "mode": "form",
            "message": "What is your name?",
            "requestedSchema": { "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"] },
        }});
        Ok(
            match Self::ask(request, context, "user_name", form).await? {
                Ok(answer) => {
                    let name = answer.pointer("/content/name").and_then(Value::as_str);
                    text(format!("Hello, {}!", name.unwrap_or("stranger")))
                }
                Err(asks) => asks.into(),
            },
        )
    }

    async fn sample(
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let prompt = argument(request.arguments.as_ref(), "prompt");
        let question = json!({ "method": "sampling/createMessage", "params": {
            "messages": [{ "role": "user", "content": { "type": "text", "text": prompt } }],
            "maxTokens": 100,
        }});
        Ok(
            match Self::ask(request, context, "answer", question).await? {
                Ok(answer) => {
                    let said = answer.pointer("/content/text").and_then(Value::as_str);
                    text(format!("LLM response: {}", said.unwrap_or("nothing")))
                }
                Err(asks) => asks.into(),
            },
        )
    }
}

fn broken(error: impl std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

/// The text of an argument, empty if there is none.
fn argument<'a>(arguments: Option<&'a JsonObject>, name: &str) -> &'a str {
    arguments
        .and_then(|all| all.get(name))
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn listed() -> Vec<Tool> {
    let weather = json!({
        "type": "object",
        "properties": { "city": { "type": "string" }, "degrees": { "type": "number" } },
        "required": ["city", "degrees"],
    });
    let text = json!({ "type": "string" });
    vec![
        tool("test_simple_text", "Answers with a text.", json!({}))
            .annotate(ToolAnnotations::new().read_only(true)),
        tool("test_error_handling", "Fails.", json!({})),
        tool(
            "test_structured_content",
            "Answers with a link and structured content.",
            json!({ "city": text }),
        )
        .with_raw_output_schema(Arc::new(object(weather))),
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
        tool(
            "test_sampling",
            "Asks the client for a completion.",
            json!({ "prompt": text }),
        ),
        tool(
            "test_input_required_result_elicitation",
            "Asks for a name and greets.",
            json!({}),
        ),
    ]
}

impl ServerHandler for Fixture {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_completions()
            .enable_prompts()
            .enable_resources()
            .enable_tools()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("fixture-upstream-rmcp", "1.4.2"))
            .with_protocol_version(ProtocolVersion::V_2026_07_28)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(listed()))
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let arguments = ["arg1", "arg2"].map(|name| PromptArgument::new(name).with_required(true));
        let prompt = Prompt::new(
            "test_prompt_with_arguments",
            Some("A prompt with arguments."),
            Some(arguments.to_vec()),
        );
        Ok(ListPromptsResult::with_all_items(vec![prompt]))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let given = ["arg1", "arg2"].map(|name| argument(request.arguments.as_ref(), name));
        if request.name != "test_prompt_with_arguments" || given.contains(&"") {
            let message = format!("Unknown prompt or missing argument: {}", request.name);
            return Err(ErrorData::invalid_params(message, None));
        }
        let [one, two] = given;
        let said = format!("Prompt with arguments: arg1='{one}', arg2='{two}'");
        let said = PromptMessage::new_text(Role::User, said);
        let result = GetPromptResult::new(vec![said]).with_description("A prompt with arguments.");
        Ok(result.into())
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(vec![
            Resource::new(STATIC_TEXT, "static-text").with_mime_type("text/plain"),
            Resource::new(STATIC_BINARY, "static-binary").with_mime_type("image/png"),
        ]))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let template = ResourceTemplate::new("test://template/{id}/data", "template")
            .with_mime_type("application/json");
        Ok(ListResourceTemplatesResult::with_all_items(vec![template]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri;
        let id = uri
            .strip_prefix("test://template/")
            .and_then(|rest| rest.strip_suffix("/data"));
        let contents = match (uri.as_str(), id) {
            (STATIC_TEXT, _) => {
                ResourceContents::text("This is the content of the static text resource.", &uri)
            }
            (STATIC_BINARY, _) => ResourceContents::blob(PNG, &uri).with_mime_type("image/png"),
            (_, Some(id)) => {
                let data =
                    json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
                ResourceContents::text(data.to_string(), &uri).with_mime_type("application/json")
            }
            _ => {
                let data = json!({ "uri": uri });
                return Err(ErrorData::resource_not_found(
                    "Resource not found",
                    Some(data),
                ));
            }
        };
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let typed = request.argument.value;
        let words = ["paris", "park", "party"].map(str::to_owned);
        let fitting = words.into_iter().filter(|word| word.starts_with(&typed));
        let completion = CompletionInfo::with_all_values(fitting.collect()).map_err(broken)?;
        Ok(CompleteResult::new(completion))
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
            "test_structured_content" => {
                let city = argument(request.arguments.as_ref(), "city");
                let mut result =
                    CallToolResult::structured(json!({ "city": city, "degrees": 21.5 }));
                let link = Resource::new(STATIC_TEXT, "static-text").with_mime_type("text/plain");
                result.content.push(ContentBlock::resource_link(link));
                Ok(result.into())
            }
            "test_tool_with_progress" => {
                if let Some(token) = context.meta.get_progress_token() {
                    for (progress, message) in [(0.0, "begun"), (50.0, "half"), (100.0, "done")] {
                        let notice = ProgressNotificationParam::new(token.clone(), progress)
                            .with_total(100.0)
                            .with_message(message);
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
            "test_sampling" => Self::sample(&request, &context).await,
            "test_input_required_result_elicitation" => Self::ask_name(&request, &context).await,
            other => Err(ErrorData::invalid_params(
                format!("Unknown tool: {other}"),
                None,
            )),
        }
    }
}
