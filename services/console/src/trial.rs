//! The try page: one real call of a tool by a member, with the source's credential, or with the
//! account that the member's calls use.

use std::{sync::Arc, time::Instant};

use axum::{Json, extract::State};
use http::StatusCode;
use portolan_connections::{Account, NoToken, write_link};
use portolan_http_tools::{
    CallTarget, Caller, CompiledTool, Content, Proof, Received, Sent, ShownBody, TokenSource,
    ToolAnswer, execute::execute,
};
use portolan_metering::{CallEra, CallerKind, Key, Measures, key::outcome_code};
use portolan_model::{
    Timestamp,
    id::{CallId, TenantId, ToolKind},
    limits::LimitName,
    member::Action,
    registry::{CallOutcome, SourceKind},
};
use portolan_site::{console_error::ConsoleError, state::AuthState};
use portolan_storage::{
    platform::{
        calls::{self, Call},
        limits, usage,
    },
    registry::{
        credential_states::{self, Seen},
        sources::Source,
        tools::Tool,
    },
};
use portolan_upstream::{OfferedIn, oauth::Challenge};
use portolan_upstream_sync::{
    credentials::state_of,
    look::{self, LookError, LookTarget, Opener},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use time::OffsetDateTime;
use url::Url;
use utoipa::ToSchema;

use crate::{
    input::{JsonBody, PathId},
    source_rows::found,
    tools::found_tool,
    workspace::Workspace,
};

/// Arguments to try.
#[derive(Debug, Deserialize, ToSchema)]
pub struct TrialRequest {
    /// An object, as a model would send it.
    #[schema(value_type = Object)]
    #[serde(default)]
    arguments: serde_json::Map<String, Value>,
}

/// The result of a trial: the same as an AI client would receive, and the request that was sent.
#[derive(Debug, Serialize, ToSchema)]
pub struct Trial {
    /// True if the API answered with success.
    ok: bool,
    /// True if the AI client would receive an error.
    is_error: bool,
    /// Milliseconds.
    duration_ms: u32,
    /// The request without the credential; absent if none was sent, and for tools of an MCP server.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    request: Option<SentRequest>,
    /// The response without the credential; absent if none arrived, and for tools of an MCP server.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    response: Option<ReceivedResponse>,
    /// HTTP status of the API.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    status: Option<u16>,
    content: Vec<ContentBlock>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object, nullable = false)]
    structured_content: Option<Box<serde_json::value::RawValue>>,
    /// Faults of the arguments; no request was sent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<ArgumentFaultView>,
}

/// The request as it was sent.
#[derive(Debug, Serialize, ToSchema)]
pub struct SentRequest {
    method: String,
    /// The value of a key in the query is masked.
    url: String,
    /// In the order of the request. Values of the credential are masked.
    headers: Vec<HeaderLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    body: Option<BodyView>,
}

/// The response of the API as it was received.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReceivedResponse {
    /// HTTP status.
    status: u16,
    /// In the order of the response. Cookies, and values that repeat the credential, are masked.
    headers: Vec<HeaderLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    body: Option<BodyView>,
}

/// A header.
#[derive(Debug, Serialize, ToSchema)]
pub struct HeaderLine {
    name: String,
    value: String,
}

/// A body that is not empty.
#[derive(Debug, Serialize, ToSchema)]
pub struct BodyView {
    /// The first 64 KiB; absent if the body is no text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    text: Option<String>,
    /// Size of the whole body in bytes.
    bytes: usize,
}

impl From<Sent> for SentRequest {
    fn from(sent: Sent) -> Self {
        Self {
            method: sent.method.to_string(),
            url: sent.url,
            headers: header_lines(sent.headers),
            body: sent.body.map(BodyView::from),
        }
    }
}

impl From<Received> for ReceivedResponse {
    fn from(received: Received) -> Self {
        Self {
            status: received.status.as_u16(),
            headers: header_lines(received.headers),
            body: received.body.map(BodyView::from),
        }
    }
}

impl From<ShownBody> for BodyView {
    fn from(body: ShownBody) -> Self {
        Self {
            text: body.text,
            bytes: body.bytes,
        }
    }
}

fn header_lines(headers: Vec<(String, String)>) -> Vec<HeaderLine> {
    headers
        .into_iter()
        .map(|(name, value)| HeaderLine { name, value })
        .collect()
}

/// A fault of the arguments.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ArgumentFault)]
pub struct ArgumentFaultView {
    /// JSON pointer into the arguments; empty for the whole.
    path: String,
    message: String,
}

/// A content block of MCP.
#[derive(Debug, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ContentBlock {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// An image.
    Image {
        /// Base64.
        data: String,
        /// Media type.
        #[serde(rename = "mimeType")]
        mime_type: String,
    },
    /// Audio.
    Audio {
        /// Base64.
        data: String,
        /// Media type.
        #[serde(rename = "mimeType")]
        mime_type: String,
    },
    /// Other bytes.
    Resource {
        /// The resource.
        resource: EmbeddedResource,
    },
}

/// Bytes in a result.
#[derive(Debug, Serialize, ToSchema)]
pub struct EmbeddedResource {
    uri: String,
    #[serde(rename = "mimeType")]
    mime_type: String,
    /// Base64.
    blob: String,
}

impl From<Content> for ContentBlock {
    fn from(content: Content) -> Self {
        match content {
            Content::Text(text) => Self::Text { text },
            Content::Image { mime, data } => Self::Image {
                data,
                mime_type: mime,
            },
            Content::Audio { mime, data } => Self::Audio {
                data,
                mime_type: mime,
            },
            Content::Blob { uri, mime, data } => Self::Resource {
                resource: EmbeddedResource {
                    uri,
                    mime_type: mime,
                    blob: data,
                },
            },
        }
    }
}

/// Calls a tool once, enabled or not. The call log records the call, without arguments and result.
#[utoipa::path(post, path = "/workspaces/{ws}/tools/{id}/try", tag = "tools",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Tool")),
    request_body = TrialRequest, responses((status = 200, description = "What it gave.", body = Trial)))]
pub(crate) async fn try_tool(
    State(state): State<AuthState>,
    workspace: Workspace,
    PathId(id): PathId<ToolKind>,
    JsonBody(request): JsonBody<TrialRequest>,
) -> Result<Json<Trial>, ConsoleError> {
    workspace.require(Action::CallTools)?;
    let at = state.now();
    let mut tx = state.store.tenant(workspace.id).await?;
    let tool = found_tool(&mut tx, id).await?;
    let source = found(&mut tx, tool.source_id).await?;
    let caller = workspace.caller.user();
    let opener = Opener::of(&state, &mut tx, workspace.id, tool.source_id, caller).await?;
    let own = limits::own(&mut tx).await?;
    // Released before the call: another operator's API must not hold a database connection.
    drop(tx);
    let console = &state.config.limits;
    let most = console.platform.effective(&own).get(LimitName::TenantCalls);
    if let Some(seconds) = console.calls.count(workspace.id, most).await {
        return Err(ConsoleError::over_limit(seconds));
    }
    let begun = Instant::now();
    let tried = match source.kind {
        SourceKind::Mcp => {
            try_upstream(&state, workspace.id, &source, &opener, &tool, &request).await?
        }
        SourceKind::Openapi | SourceKind::Http => {
            try_api(&state, &source, &opener, &tool, request).await?
        }
    };
    measure(source.kind, tried.outcome, begun);
    let call = entry(&workspace, at, tool.name(), &tried);
    let key = Key {
        tenant: workspace.id,
        server: None,
        item: Arc::clone(&call.item),
        client: call.client.clone(),
        caller: call.caller.code(),
        outcome: outcome_code(call.outcome),
        era: call.era.code(),
    };
    let seen = seen(&source, &opener, tried.proof, state.now());
    let mut tx = state.store.tenant(workspace.id).await?;
    usage::add(&mut tx, &key, call.measures, state.now()).await?;
    calls::insert_many(&mut tx, &[call]).await?;
    credential_states::note(&mut tx, seen.as_slice(), credential_states::Repeat::Seldom).await?;
    tx.commit().await?;
    Ok(Json(tried.trial))
}

/// The entry of a trial in the log of calls.
fn entry(workspace: &Workspace, at: Timestamp, tool: &str, tried: &Tried) -> Call<'static> {
    let took_us = u64::from(tried.trial.duration_ms) * 1000;
    Call {
        id: CallId::at(at),
        tenant: workspace.id,
        at,
        server: None,
        item: tool.into(),
        client: Some("Portolan console".into()),
        client_version: None,
        client_id: None,
        caller: CallerKind::Console,
        user: workspace.caller.user(),
        grant: None,
        revision: None,
        era: CallEra::Console,
        outcome: tried.outcome,
        status: tried.status,
        measures: Measures {
            took_us,
            backend_us: took_us,
            bytes_in: 0,
            bytes_out: 0,
        },
        wait_us: 0,
        error: None,
        session: None,
        trace: None,
        node: None,
        weight: 1,
    }
}

/// A trial, with what the call log and the credential's state take from it.
struct Tried {
    trial: Trial,
    outcome: CallOutcome,
    status: Option<u16>,
    proof: Option<Proof>,
}

fn milliseconds(begun: Instant) -> u32 {
    u32::try_from(begun.elapsed().as_millis()).unwrap_or(u32::MAX)
}

/// Calls a tool of an MCP server.
async fn try_upstream(
    state: &AuthState,
    tenant: TenantId,
    source: &Source,
    opener: &Opener,
    tool: &Tool,
    request: &TrialRequest,
) -> Result<Tried, ConsoleError> {
    let target = LookTarget {
        tenant,
        url: Url::parse(&source.base_url)
            .map_err(|error| ConsoleError::internal("stored address", error))?,
        settings: source.settings,
        opened_by: opener.as_opened_by(),
    };
    let place = tool.plan.get("upstream").and_then(OfferedIn::of);
    let call = look::Call {
        name: &tool.operation_key,
        arguments: &request.arguments,
        input_schema: &tool.input_schema,
        in_a_session: place == Some(OfferedIn::Sessions),
    };
    let begun = Instant::now();
    let tried = look::try_tool(state, target, call).await;
    let duration_ms = milliseconds(begun);
    let proof = match &tried {
        Ok(_) => Some(Proof::Works),
        Err(error) => error.proof(),
    };
    let (trial, outcome) = of_upstream(tried, duration_ms, || connect_page(state, opener));
    Ok(Tried {
        trial,
        outcome,
        status: None,
        proof,
    })
}

/// Calls an API.
async fn try_api(
    state: &AuthState,
    source: &Source,
    opener: &Opener,
    tool: &Tool,
    request: TrialRequest,
) -> Result<Tried, ConsoleError> {
    let plan = serde_json::from_value(tool.plan.clone())
        .map_err(|error| ConsoleError::internal("stored plan", error))?;
    let input = tool.input_schema.clone();
    let compiled = CompiledTool::new(input, tool.output_schema.clone(), plan);
    let base_url = Url::parse(&source.base_url)
        .map_err(|error| ConsoleError::internal("stored base URL", error))?;
    let target = CallTarget::new(base_url, &source.settings);
    // A fresh token source, so that a trial also tests the client credentials now.
    let tokens = TokenSource::new(state.clock.clone());
    let caller = Caller {
        egress: &state.egress,
        target: &target,
        credential: None,
        account: None,
        tokens: &tokens,
        trace: None,
        shows_exchange: true,
    };
    let arguments = Value::Object(request.arguments);
    let begun = Instant::now();
    let answer = match opener {
        Opener::Credential(slot) => {
            let caller = Caller {
                credential: slot.as_ref(),
                ..caller
            };
            execute(&caller, &compiled, &arguments).await
        }
        Opener::Account(account) => {
            let place = (*account, source.base_url.as_str());
            match with_account(state, &caller, place, &compiled, &arguments).await {
                Ok(answer) => answer,
                Err(error) => not_opened(&error, || connect_page(state, opener)),
            }
        }
    };
    Ok(Tried {
        outcome: answer.outcome,
        status: answer.status,
        proof: answer.proof,
        trial: trial(answer, milliseconds(begun)),
    })
}

/// The result of a call as a test of its source's credential, if it used one.
fn seen(
    source: &Source,
    opener: &Opener,
    proof: Option<Proof>,
    at: OffsetDateTime,
) -> Option<Seen> {
    if !matches!(opener, Opener::Credential(Some(_))) {
        return None;
    }
    Some(Seen {
        source: source.id,
        version: source.credential.as_ref()?.version,
        state: state_of(proof?),
        at,
    })
}

/// Calls an API once with the token of an account. If the API refuses the token, the call is
/// retried with another one.
async fn with_account(
    state: &AuthState,
    caller: &Caller<'_>,
    (account, at): (Account, &str),
    tool: &CompiledTool,
    arguments: &Value,
) -> Result<ToolAnswer, NoToken> {
    let connections = state.connections();
    let mut token = connections.token(account, at).await?;
    let mut is_renewed = false;
    loop {
        let caller = Caller {
            account: Some(&token.access),
            ..*caller
        };
        let answer = execute(&caller, tool, arguments).await;
        if answer.status != Some(StatusCode::UNAUTHORIZED.as_u16()) {
            return Ok(answer);
        }
        let challenge = Challenge::read(answer.challenge.as_deref());
        let next = connections.after_refusal(account, at, &token, &challenge, is_renewed);
        match next.await? {
            Some(next) => token = next,
            None => return Ok(answer),
        }
        is_renewed = true;
    }
}

/// The answer when no account opens an API: the reason and the remedy.
fn not_opened(error: &NoToken, connect: impl FnOnce() -> Option<String>) -> ToolAnswer {
    let page = error.is_for_a_person().then(connect).flatten();
    let text = page.map_or_else(
        || format!("Nothing was sent: {error}."),
        |page| format!("Connect your account first: {page}"),
    );
    ToolAnswer::error(CallOutcome::UpstreamError, text)
}

/// Counts the call in the metrics of calls.
fn measure(kind: SourceKind, outcome: CallOutcome, begun: Instant) {
    metrics::histogram!("mcp_call_duration_seconds", "kind" => kind.as_str(), "outcome" => outcome.as_str())
        .record(begun.elapsed().as_secs_f64());
}

/// The page where the member connects an account of their own (MCP-V-10), if the tool is tried with
/// one.
fn connect_page(state: &AuthState, opener: &Opener) -> Option<String> {
    let Opener::Account(account) = opener else {
        return None;
    };
    let whose = (account.tenant, account.source, account.owner?);
    let link = write_link(&state.keys, whose, state.now()).ok()?;
    Some(state.site.url(&format!("/connect/accounts/{link}")))
}

/// The answer of an MCP server. Content blocks without a form on this page are shown unchanged.
fn of_upstream(
    tried: Result<Value, LookError>,
    duration_ms: u32,
    connect: impl FnOnce() -> Option<String>,
) -> (Trial, CallOutcome) {
    let (mut content, mut structured_content, mut is_error) = (Vec::new(), None, true);
    let outcome = match tried {
        Ok(result) => {
            is_error = result["isError"].as_bool().unwrap_or(false);
            let text = |block: &Value, member: &str| {
                block[member]
                    .as_str()
                    .map(str::to_owned)
                    .unwrap_or_default()
            };
            for block in result["content"].as_array().into_iter().flatten() {
                let (data, mime_type) = (text(block, "data"), text(block, "mimeType"));
                content.push(match block["type"].as_str() {
                    Some("text") => ContentBlock::Text {
                        text: text(block, "text"),
                    },
                    Some("image") => ContentBlock::Image { data, mime_type },
                    Some("audio") => ContentBlock::Audio { data, mime_type },
                    _ => ContentBlock::Text {
                        text: format!("{block:#}"),
                    },
                });
            }
            structured_content = result
                .get("structuredContent")
                .and_then(|value| serde_json::value::to_raw_value(value).ok());
            if is_error {
                CallOutcome::ToolError
            } else {
                CallOutcome::Ok
            }
        }
        Err(error) => {
            let page = match &error {
                LookError::Account(error) if error.is_for_a_person() => connect(),
                _ => None,
            };
            content.push(ContentBlock::Text {
                text: page.map_or_else(
                    || format!("The server gave no answer: {error}."),
                    |page| format!("Connect your account first: {page}"),
                ),
            });
            CallOutcome::UpstreamError
        }
    };
    let trial = Trial {
        ok: !is_error,
        is_error,
        duration_ms,
        request: None,
        response: None,
        status: None,
        content,
        structured_content,
        errors: Vec::new(),
    };
    (trial, outcome)
}

fn trial(answer: ToolAnswer, duration_ms: u32) -> Trial {
    let structured = answer.structured();
    Trial {
        ok: !answer.is_error,
        is_error: answer.is_error,
        duration_ms,
        request: answer.sent.map(SentRequest::from),
        response: answer.received.map(ReceivedResponse::from),
        status: answer.status,
        structured_content: structured,
        content: answer.content.into_iter().map(ContentBlock::from).collect(),
        errors: answer
            .faults
            .into_iter()
            .map(|fault| ArgumentFaultView {
                path: fault.path,
                message: fault.message,
            })
            .collect(),
    }
}
