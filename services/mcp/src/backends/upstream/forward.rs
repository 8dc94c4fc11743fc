//! One request of a client through an upstream server: request, notifications and answer.
//!
//! All are in the form of the client's revision.

use std::sync::Arc;

use portolan_model::registry::CallOutcome;
use portolan_protocol::{
    ask::AskMethod,
    capability::{ClientCapabilities, TASKS_EXTENSION},
    header::ParamHeader,
    input_required::{InputRequired, MOST_ROUNDS},
    jsonrpc::{Raw, Request as PeerRequest, RequestId},
    logging::Level,
    method::Method,
    result::{self, Identity},
    revision::{Era, Revision},
    task::Task,
    translate::UrlStep,
    visible::Visible,
};

use crate::backends::upstream::{
    UpstreamSource, UpstreamTool, exchange::exchange, sessions::Who, task,
};
use crate::{
    call::client_channel::{ClientChannel, Round},
    catalog::renames::Renamed,
    error::McpError,
    features::dispatch::Context,
    http::state::McpState,
};

/// A request to be forwarded.
pub(crate) struct Forward<'a> {
    pub(crate) method: Method,
    /// The parameters for the server, without `_meta`.
    pub(crate) params: Raw,
    /// The id of the client's request.
    pub(crate) id: &'a RequestId,
    pub(crate) revision: Revision,
    pub(crate) who: &'a Who,
    /// Arguments that headers repeat.
    pub(crate) mirrored: &'a [ParamHeader],
    /// The tool, if the request is a call.
    pub(crate) tool: Option<&'a UpstreamTool>,
    /// The client wants progress.
    pub(crate) progress: bool,
    /// The lowest level of log messages that the client wants.
    pub(crate) level: Option<Level>,
    /// The channel to the client; `None` if the answer is one body.
    pub(crate) channel: Option<&'a ClientChannel>,
    pub(crate) traceparent: Option<String>,
    pub(crate) identity: &'a Identity,
    /// Resources that the client knows by other URIs than the server (MCP-RE-12).
    pub(crate) renamed: Option<&'a Renamed>,
}

impl Forward<'_> {
    /// The era in which a server of both is spoken to: that of the client, but for a tool that it
    /// has in one alone.
    pub(crate) fn era(&self) -> Era {
        let of_tool = self.tool.and_then(|tool| tool.era);
        of_tool.unwrap_or(self.revision.era())
    }
}

/// The answer to a forwarded request.
#[derive(Debug)]
pub(crate) struct Answered {
    /// The JSON-RPC response, or a refusal with an HTTP status of its own.
    pub(crate) body: Result<Vec<u8>, McpError>,
    pub(crate) outcome: CallOutcome,
}

impl Answered {
    /// The answer in the form of handlers.
    pub(crate) fn into_body(self) -> Result<Vec<u8>, McpError> {
        self.body
    }
}

/// Parts of a repeated request from before: answers, and the server's own state.
type Earlier = (Option<Raw>, Option<String>);

/// Forwards a request and writes the answer. Dropping the future cancels it at the server too.
pub(crate) async fn forward(
    state: &McpState,
    source: &Arc<UpstreamSource>,
    ask: &Forward<'_>,
) -> Answered {
    let continued = ask.channel.and_then(ClientChannel::continued);
    let mut earlier: Option<Earlier> =
        continued.map(|earlier| (earlier.responses.clone(), earlier.state.clone()));
    let mut steps_left = MOST_ROUNDS;
    let mut as_task = ask.channel.is_some_and(ClientChannel::takes_tasks);
    let mut asked = false;
    loop {
        let params = with_earlier(&ask.params, earlier.as_ref());
        let replied = exchange(state, source, ask, params, as_task).await;
        source.note(state, &replied);
        let (from, outcome) = match replied {
            Ok(reply) => reply,
            Err(error) => {
                tracing::debug!(source.id = %source.id, reason = %error, "no answer of an upstream server");
                // Asks once: a person without a connection after that gets the reason.
                if asked {
                    return ask.failed(state, &error, source);
                }
                match ask.ask_to_connect(state, source, &error).await {
                    Ok(true) => asked = true,
                    Ok(false) => return ask.failed(state, &error, source),
                    Err(visible) => return ask.said(&visible, CallOutcome::UpstreamError),
                }
                continue;
            }
        };
        match outcome {
            Ok(result) if from.era() == Era::Modern && InputRequired::is(&result) => {
                match ask.round(&result).await {
                    Ok((Round::Again(responses), state)) => earlier = Some((responses, state)),
                    Ok((Round::Answer(body), _)) => {
                        return Answered {
                            body: Ok(body),
                            outcome: CallOutcome::Ok,
                        };
                    }
                    Err(visible) => return ask.said(&visible, CallOutcome::UpstreamError),
                }
            }
            Ok(result) if ask.method == Method::ToolsCall && Task::is(&result, from) => {
                let ended = Box::pin(task::follow(state, source, ask, from, &result)).await;
                if let Some(channel) = ask.channel {
                    channel.settle().await;
                }
                return ask.ended(state, ended, source);
            }
            Ok(result) => {
                if let Some(channel) = ask.channel {
                    channel.settle().await;
                }
                return ask.complete(from, &result);
            }
            // MCP-X-52: a client without tasks waits instead.
            Err(error) if !as_task && ask.needs_task(&error, from) => as_task = true,
            Err(error) => match (ask.steps(&error, from), ask.channel) {
                (Some(steps), Some(channel)) if steps_left > 0 => {
                    steps_left -= 1;
                    if let Err(visible) = send_to_pages(channel, from, &steps).await {
                        return ask.said(&visible, CallOutcome::UpstreamError);
                    }
                    earlier = None;
                }
                _ => return ask.refused(&error, from),
            },
        }
    }
}

/// MCP-X-36: lets the person visit the server's pages; then the call is repeated.
async fn send_to_pages(
    channel: &ClientChannel,
    from: Revision,
    steps: &[UrlStep],
) -> Result<(), Visible> {
    for step in steps {
        let answer = channel.ask(from, AskMethod::Elicit, &step.params()).await?;
        let action = answer.get("action").and_then(|action| action.string());
        if action.as_deref() != Some("accept") {
            return Err(Visible::Declined);
        }
    }
    Ok(())
}

fn with_earlier(params: &Raw, earlier: Option<&Earlier>) -> Raw {
    let Some((responses, state)) = earlier else {
        return params.clone();
    };
    let mut out = params.as_bytes().to_vec();
    // `renamed` wrote it: an object that is never empty.
    out.pop();
    if let Some(responses) = responses {
        out.extend_from_slice(br#","inputResponses":"#);
        out.extend_from_slice(responses.as_bytes());
    }
    if let Some(state) = state {
        out.extend_from_slice(br#","requestState":"#);
        result::write_string(state, &mut out);
    }
    out.push(b'}');
    Raw::parse(out).unwrap_or_else(|_| params.clone())
}

/// A client's capabilities in the form for an upstream of `revision` (MCP-X-14, MCP-X-15).
///
/// Only extensions that pass through are included.
pub(crate) fn said(capabilities: &ClientCapabilities, revision: Revision, as_task: bool) -> Raw {
    let mut carried = capabilities.clone();
    carried
        .extensions
        .retain(|name, _| name == "io.modelcontextprotocol/ui");
    if as_task {
        // MCP-X-50: on each request that may be answered with a task, and on those about it
        // (MCP-TX-1).
        let extension = TASKS_EXTENSION.to_owned();
        carried.extensions.insert(extension, Raw::empty_object());
    }
    let mut out = Vec::with_capacity(96);
    carried.write(revision, &mut out);
    Raw::parse(out).unwrap_or_else(|_| Raw::empty_object())
}

/// `completion/complete` through an upstream server; `reference` is the server's own. It cannot
/// ask.
pub(crate) async fn complete(
    cx: &Context<'_>,
    request: &PeerRequest,
    source: &Arc<UpstreamSource>,
    reference: &Raw,
) -> Result<Vec<u8>, McpError> {
    cx.limit_read(&request.id).await?;
    let _room = cx.enter_call(&request.id).await?;
    let _running = cx.state.call_log.begin();
    let params = request.params.raw().cloned();
    let params = params.unwrap_or(Raw::empty_object());
    let ask = Forward {
        method: Method::Complete,
        params: renamed(&params, ("ref", reference)),
        id: &request.id,
        revision: cx.revision,
        who: &cx.who(),
        mirrored: &[],
        tool: None,
        progress: false,
        level: None,
        channel: None,
        traceparent: cx.trace.map(|trace| trace.context().traceparent()),
        identity: &cx.server.identity,
        renamed: None,
    };
    forward(cx.state, source, &ask).await.into_body()
}

/// The parameters with the server's own name of the item.
///
/// Members of our own leg (`task`, answers to questions that the server never asked) are left out.
pub(crate) fn renamed(params: &Raw, (member, own): (&str, &Raw)) -> Raw {
    let mut out = vec![b'{'];
    result::write_string(member, &mut out);
    out.push(b':');
    out.extend_from_slice(own.as_bytes());
    for (name, value) in params.members() {
        if name != member
            && matches!(
                name.as_str(),
                "arguments" | "argument" | "context" | "_meta"
            )
        {
            out.push(b',');
            result::write_string(&name, &mut out);
            out.push(b':');
            out.extend_from_slice(value.as_bytes());
        }
    }
    out.push(b'}');
    Raw::parse(out).unwrap_or_else(|_| Raw::empty_object())
}
