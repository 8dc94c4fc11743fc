//! `tools/call` (`docs/revisions.md`, section 9).

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use portolan_http_tools::{Caller as Calling, ToolAnswer, execute};
use portolan_model::{Timestamp, registry::CallOutcome};
use portolan_protocol::{
    error::ErrorKind,
    header::{self, Dialect},
    input_required::Brought,
    jsonrpc::{self, Misfit, ProgressToken, Raw, Request, RequestId},
    logging::Level,
    meta::{self, RequestMeta},
    method::Method,
    revision::{ArgumentFaults, Facts, Revision, StructuredOutput, Tasks},
    task,
    tool::{CallParams, CallResult, TaskSupport},
    visible::Visible,
};
use portolan_storage::platform::calls::Call;
use portolan_traces::Span;
use serde_json::Value;

use crate::{
    backends::{
        account::Linking,
        http::{Called, Opened},
        said,
        upstream::{
            conversation::{LONGEST_CALL, Who},
            forward::{forward, renamed},
            request::Forward,
        },
    },
    call::{Running, client_channel::ClientChannel, end_trace, request_state::Continued},
    caller::Caller,
    catalog::{
        accounts::Accounts,
        backend::{Access, Backend, HttpTool},
        server::{Server, Tool},
        upstream::UpstreamTool,
    },
    error::McpError,
    features::{Earlier, Work, context::Context, earlier},
    limits::Permit,
    payloads::About,
    streams::services::StreamServices,
};

#[cfg(test)]
use crate::call::Script;

/// A call with a known tool and valid parameters; its arguments are not yet checked. Owns its data.
#[derive(Debug)]
pub(crate) struct PreparedCall {
    state: StreamServices,
    server: Arc<Server>,
    tool: usize,
    arguments: Value,
    /// The unchanged parameters, for an upstream server.
    params: Raw,
    /// The client's identity, for an upstream server or an account at an API.
    who: Option<Box<Who>>,
    /// The lowest level of log messages from an upstream server.
    pub(crate) level: Option<Level>,
    pub(crate) id: RequestId,
    revision: Revision,
    caller: Arc<Caller>,
    client_name: Option<Arc<str>>,
    /// The token under which the client wants progress (MCP-PP-1).
    pub(crate) progress: Option<ProgressToken>,
    /// The state from an earlier round (MCP-X-29).
    pub(crate) continued: Option<Box<Continued>>,
    /// The client's request for a task (MCP-TK-3).
    pub(crate) task: Option<Box<AsTask>>,
    /// Its trace, if it has one.
    pub(crate) trace: Option<Arc<Span>>,
    /// The time of the request.
    at: Timestamp,
    /// Its permit among the tenant's running calls.
    _room: Permit,
}

/// A call that its client wants as a task.
#[derive(Debug)]
pub(crate) struct AsTask {
    /// The lifetime that the client wants, in milliseconds.
    pub(crate) ttl: Option<u64>,
}

/// The time of a call beyond its source's deadline, before another node may end its stream.
const BEYOND: Duration = Duration::from_secs(15);

/// Steps 7 to 10 of the ladder MCP-E-7, in every revision: tool, mirrored arguments, parameters.
pub(crate) async fn prepare(cx: &Context<'_>, request: &Request) -> Result<Work, McpError> {
    let fail = |kind: &ErrorKind| cx.fail(kind, &request.id);
    let name = request.params.text("name");
    let found = name.as_deref().map(|name| cx.server.find(name));
    if let (Some(name), Some(None)) = (&name, found) {
        return Err(fail(&ErrorKind::UnknownTool(name.clone())));
    }
    if let Some(Some(index)) = found {
        let tool = &cx.server.tools[index];
        let mirrored = cx.revision.facts().mirrored_headers || cx.draft;
        if mirrored && !tool.headers.is_empty() {
            let dialect = if cx.draft {
                Dialect::Draft
            } else {
                Dialect::Modern
            };
            let arguments = request.params.get("arguments");
            header::check_params(&tool.headers, arguments.as_ref(), cx.headers, dialect)
                .map_err(|kind| fail(&kind))?;
        }
    }
    let params = CallParams::read(&request.params).map_err(|misfit| fail(&misfit.into()))?;
    let Some(Some(index)) = found else {
        return Err(fail(&ErrorKind::UnknownTool(params.name)));
    };
    let task = as_task(cx, &cx.server.tools[index], &params).map_err(|kind| fail(&kind))?;
    cx.limit_call(&cx.server.tools[index], &request.id).await?;
    let progress = RequestMeta::legacy(&request.params)
        .map_err(|misfit| fail(&misfit.into()))?
        .progress_token;
    let brought = Brought {
        responses: params.input_responses,
        state: params.request_state,
    };
    let continued = match earlier(cx, Method::ToolsCall, request, brought, progress.as_ref())? {
        Earlier::Suspended(retry) => return Ok(Work::Suspended(retry)),
        Earlier::Continued(continued) => Some(continued),
        Earlier::Nothing => None,
    };
    let (is_upstream, is_personal) = match &cx.server.tools[index].backend {
        Backend::Upstream(_) => (true, true),
        Backend::Http(http) => (false, http.has_accounts()),
    };
    let arguments = match &params.arguments {
        // The arguments are forwarded unchanged, and the upstream server checks them.
        _ if is_upstream => Value::Null,
        Some(raw) => raw
            .read("params.arguments")
            .map_err(|misfit: Misfit| fail(&misfit.into()))?,
        None => Value::Object(serde_json::Map::new()),
    };
    // Last: a call that is refused for another reason takes no permit.
    let permit = cx.enter_call(&request.id).await?;
    Ok(Work::Call(Box::new(PreparedCall {
        state: cx.state.clone(),
        server: Arc::clone(cx.server),
        tool: index,
        arguments,
        params: if is_upstream {
            request.params.raw().cloned().unwrap_or(Raw::empty_object())
        } else {
            Raw::empty_object()
        },
        who: is_personal.then(|| Box::new(cx.who())),
        level: if is_upstream { cx.level() } else { None },
        id: request.id.clone(),
        revision: cx.revision,
        caller: Arc::clone(cx.caller),
        client_name: cx.client_name.clone(),
        progress,
        continued,
        task,
        trace: cx.trace.cloned(),
        at: cx.now,
        _room: permit,
    })))
}

/// MCP-TK-2, MCP-X-51: whether a call is to be a task. The parameter is ignored without task
/// support (MCP-TK-1, MCP-TX-2).
fn as_task(
    cx: &Context<'_>,
    tool: &Tool,
    params: &CallParams,
) -> Result<Option<Box<AsTask>>, ErrorKind> {
    let support = tool.listed.task_support.unwrap_or(TaskSupport::Forbidden);
    if params.task.is_none() && support != TaskSupport::Required {
        return Ok(None);
    }
    if cx.revision.facts().tasks != Tasks::Core {
        return Ok(None);
    }
    match (&params.task, support) {
        (Some(_), TaskSupport::Forbidden) | (None, TaskSupport::Required) => Err(
            ErrorKind::MethodNotFound(Method::ToolsCall.name().to_owned()),
        ),
        (Some(task), _) => Ok(Some(Box::new(AsTask {
            ttl: task::wished_ttl(task),
        }))),
        (None, _) => Ok(None),
    }
}

impl PreparedCall {
    /// True if the call may become a task when it takes long (MCP-X-54, MCP-TX-1).
    ///
    /// This requires the tenant's setting and a client that accepts tasks.
    pub(crate) fn may_become_task(&self, meta: &RequestMeta) -> bool {
        self.server.tools[self.tool].becomes_task && task::is_declared(&meta.client_capabilities)
    }

    /// The longest time of the call in all.
    pub(crate) fn deadline(&self) -> Duration {
        match &self.server.tools[self.tool].backend {
            Backend::Http(tool) if !tool.has_accounts() => tool.target.timeout + BEYOND,
            // The time for a person's answer or the renewal of a token is unknown.
            Backend::Http(_) | Backend::Upstream(_) => LONGEST_CALL + BEYOND,
        }
    }

    /// The facts about the call for another node.
    pub(crate) fn about(&self) -> About {
        let hints = self.server.tools[self.tool].listed.annotations.as_ref();
        let retryable = hints.is_some_and(|hints| {
            hints.read_only_hint == Some(true) || hints.idempotent_hint == Some(true)
        });
        About {
            id: Some(self.id.clone()),
            retryable,
        }
    }

    /// True if the call may send messages to its client before its answer: it then gets an
    /// [`ClientChannel`].
    ///
    /// An API sends none, but its call may have to ask a person to connect an account.
    pub(crate) fn talks(&self) -> bool {
        #[cfg(test)]
        if self.script().is_some() {
            return true;
        }
        match &self.server.tools[self.tool].backend {
            Backend::Upstream(_) => true,
            Backend::Http(http) => http.asks(),
        }
    }

    #[cfg(test)]
    fn script(&self) -> Option<Script> {
        let name = &self.server.tools[self.tool].name;
        self.state.scripts.lock().unwrap().get(name).cloned()
    }

    /// A call of an upstream server.
    async fn forward(
        &self,
        upstream: &UpstreamTool,
        channel: Option<&ClientChannel>,
    ) -> Result<Vec<u8>, McpError> {
        let _running = self.state.call_log.begin();
        let started = Instant::now();
        let tool = &self.server.tools[self.tool];
        let Some(who) = &self.who else {
            return Err(McpError::of(
                &ErrorKind::Internal,
                self.revision,
                Some(&self.id),
            ));
        };
        // The upstream server would not list the tool to this client, and would not know it
        // (MCP-X-30).
        if let Some(need) = tool.lacks(self.revision.era(), &who.declared) {
            self.log(tool, started, CallOutcome::ToolError, None);
            let (visible, identity) = (Visible::Needs(need), &self.server.identity);
            return said(
                &visible,
                Method::ToolsCall,
                &self.id,
                self.revision,
                identity,
            );
        }
        let run = self.trace.as_ref().and_then(|trace| trace.part("run"));
        let ask = Forward {
            method: Method::ToolsCall,
            params: renamed(&self.params, ("name", &upstream.name)),
            id: &self.id,
            revision: self.revision,
            who,
            mirrored: &tool.headers,
            tool: Some(upstream),
            progress: self.progress.is_some(),
            level: self.level,
            channel,
            traceparent: run
                .as_ref()
                .or(self.trace.as_deref())
                .map(|span| span.context().traceparent()),
            identity: &self.server.identity,
            renamed: self.server.renames.of(upstream.source.id).map(|all| &**all),
        };
        let answered = forward(&self.state, &upstream.source, &ask).await;
        self.log(tool, started, answered.outcome, None);
        if let Some(run) = &run {
            end_trace(run, answered.outcome);
        }
        answered.into_body()
    }

    /// Makes the call and writes its answer. Dropping the future cancels the request to the API.
    ///
    /// Boxed here: the exchange with an API is a large future, which awaiting code would move
    /// often.
    pub(crate) fn run(self: Box<Self>, channel: Option<ClientChannel>) -> Running {
        #[cfg(test)]
        if let (Some(script), Some(channel)) = (self.script(), channel.clone()) {
            return script(self.id, channel);
        }
        Box::pin(self.make(channel))
    }

    async fn make(self: Box<Self>, channel: Option<ClientChannel>) -> Result<Vec<u8>, McpError> {
        let http = match &self.server.tools[self.tool].backend {
            Backend::Http(http) => http,
            // Boxed: the futures of other calls stay smaller.
            Backend::Upstream(upstream) => {
                return Box::pin(self.forward(upstream, channel.as_ref())).await;
            }
        };
        let _running = self.state.call_log.begin();
        let started = Instant::now();
        let tool = &self.server.tools[self.tool];
        let credential = match &http.access {
            Access::Open => None,
            Access::With(known) => Some(&known.slot),
            // Boxed for the same reason.
            Access::Account(accounts) => {
                let opened_by = (&**accounts, channel.as_ref());
                return Box::pin(self.with_account(http, opened_by, started)).await;
            }
            Access::Broken => {
                self.log(tool, started, CallOutcome::Internal, None);
                let text = "The credential of this tool's API cannot be used. Somebody has to set it again in the console.";
                let result = CallResult::failure(text);
                return Ok(jsonrpc::response_with(&self.id, 256, |out| {
                    result.write(self.revision, &self.server.identity, out);
                }));
            }
        };
        // This span lasts until the answer is written.
        let run = self.trace.as_ref().and_then(|trace| trace.part("run"));
        let calling = Calling {
            egress: &self.state.egress,
            target: &http.target,
            credential,
            account: None,
            tokens: &self.state.tokens,
            trace: run.as_ref().or(self.trace.as_deref()),
            shows_exchange: false,
        };
        let answer = execute(&calling, &http.compiled, &self.arguments).await;
        self.log(tool, started, answer.outcome, answer.status);
        http.access.note(&self.state, answer.proof);
        if let Some(run) = &run {
            end_trace(run, answer.outcome);
        }
        self.write(answer)
    }

    /// A call of an API with a connected account.
    async fn with_account(
        &self,
        http: &HttpTool,
        (accounts, channel): (&Accounts, Option<&ClientChannel>),
        started: Instant,
    ) -> Result<Vec<u8>, McpError> {
        let tool = &self.server.tools[self.tool];
        let Some(who) = &self.who else {
            let kind = ErrorKind::Internal;
            return Err(McpError::of(&kind, self.revision, Some(&self.id)));
        };
        let run = self.trace.as_ref().and_then(|trace| trace.part("run"));
        let opened = Opened {
            state: &self.state,
            linking: Linking {
                accounts,
                person: who.person,
                channel,
                revision: self.revision,
                opens_pages: who.declared.elicitation_url,
            },
            calling: Calling {
                egress: &self.state.egress,
                target: &http.target,
                credential: None,
                account: None,
                tokens: &self.state.tokens,
                trace: run.as_ref().or(self.trace.as_deref()),
                shows_exchange: false,
            },
            tenant_slug: &who.tenant_slug,
            progress: self.progress.is_some(),
        };
        let called = opened.call(&http.compiled, &self.arguments).await;
        let (outcome, status) = called.outcome();
        self.log(tool, started, outcome, status);
        if let Some(run) = &run {
            end_trace(run, outcome);
        }
        match called {
            Called::Answer(answer) => self.write(answer),
            Called::ChannelMessage(visible) => {
                let (id, identity) = (&self.id, &self.server.identity);
                said(&visible, Method::ToolsCall, id, self.revision, identity)
            }
            Called::Refused(error) => Ok(jsonrpc::error_response(Some(&self.id), &error)),
        }
    }

    fn write(&self, answer: ToolAnswer) -> Result<Vec<u8>, McpError> {
        let facts = self.revision.facts();
        if answer.outcome == CallOutcome::InvalidArguments
            && facts.argument_faults == ArgumentFaults::ProtocolError
        {
            // MCP-TL-17: one misfit for each fault, in one message.
            let text: Vec<String> = answer
                .faults
                .iter()
                .map(|fault| format!("{}: {}", fault.path, fault.message))
                .collect();
            let misfit = Misfit::new("params.arguments", text.join("; "));
            return Err(McpError::of(&misfit.into(), self.revision, Some(&self.id)));
        }
        let answer = shaped(answer, facts);
        let identity = facts
            .result_envelope
            .then(|| self.server.identity.json(self.revision).as_bytes());
        Ok(jsonrpc::response_with(
            &self.id,
            answer.size_hint() + 256,
            |out| {
                write_result(&answer, identity, out);
            },
        ))
    }

    fn log(&self, tool: &Tool, started: Instant, outcome: CallOutcome, status: Option<u16>) {
        let elapsed = started.elapsed();
        self.state.instruments.call(tool.kind, outcome, elapsed);
        let call = Call {
            at: self.at,
            server: Some((self.server.id, self.server.slug.clone())),
            tool_name: tool.name.clone(),
            client_name: self.client_name.as_deref().map(str::to_owned),
            user: self.caller.claims.sub.user(),
            outcome,
            status,
            duration_ms: u32::try_from(elapsed.as_millis()).unwrap_or(u32::MAX),
        };
        self.state.call_log.write(self.server.tenant, call);
    }
}

/// Drops, or writes as text, the parts that a revision does not have (MCP-FA-2, MCP-FA-3).
fn shaped(mut answer: ToolAnswer, facts: &Facts) -> ToolAnswer {
    if facts.structured_output == StructuredOutput::Absent {
        answer = answer.without_structured();
    }
    if !facts.audio {
        answer = answer.without_audio();
    }
    answer
}

/// Appends the result.
///
/// With an `identity` it has the envelope of 2026-07-28: `resultType` first, `_meta` last
/// (MCP-J-17, MCP-J-18).
fn write_result(answer: &ToolAnswer, identity: Option<&[u8]>, out: &mut Vec<u8>) {
    let Some(identity) = identity else {
        out.push(b'{');
        answer.write_members(out);
        out.push(b'}');
        return;
    };
    out.extend_from_slice(br#"{"resultType":"complete","#);
    answer.write_members(out);
    out.extend_from_slice(br#","_meta":{""#);
    out.extend_from_slice(meta::SERVER_INFO.as_bytes());
    out.extend_from_slice(br#"":"#);
    out.extend_from_slice(identity);
    out.extend_from_slice(b"}}");
}

#[cfg(test)]
mod tests {
    use portolan_http_tools::{Content, Structured};
    use serde_json::json;

    use super::*;

    fn answer() -> ToolAnswer {
        ToolAnswer {
            content: vec![Content::Text("{\"a\":1}".into())],
            structured: Structured::Text,
            is_error: false,
            outcome: CallOutcome::Ok,
            faults: Vec::new(),
            status: Some(200),
            challenge: None,
            sent: None,
            proof: None,
            received: None,
        }
    }

    #[test]
    fn j_17_and_j_18_the_modern_result_has_its_envelope_around_the_same_parts() {
        let mut out = Vec::new();
        write_result(
            &answer(),
            Some(br#"{"name":"pets","version":"1"}"#),
            &mut out,
        );
        let value: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(
            value,
            json!({
                "resultType": "complete",
                "content": [{"type": "text", "text": "{\"a\":1}"}],
                "structuredContent": {"a": 1},
                "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "pets", "version": "1"}}
            })
        );
    }

    #[test]
    fn fa_3_and_x_61_sound_is_a_text_for_2024_11_05_and_sound_for_all_others() {
        for revision in Revision::ALL {
            let mut sound = answer();
            sound.structured = Structured::None;
            sound.content = vec![Content::Audio {
                mime: "audio/mpeg".into(),
                data: "SUQzBA==".into(),
            }];
            let mut out = Vec::new();
            write_result(&shaped(sound, revision.facts()), None, &mut out);
            let value: Value = serde_json::from_slice(&out).unwrap();
            let block = &value["content"][0];
            if revision == Revision::V2024_11_05 {
                let text = "[audio, audio/mpeg, 4 bytes: not supported by this protocol revision]";
                assert_eq!(*block, json!({"type": "text", "text": text}));
            } else {
                assert_eq!(block["type"], "audio", "{revision:?}");
            }
        }
    }

    #[test]
    fn fa_2_a_legacy_result_has_no_envelope() {
        let mut out = Vec::new();
        write_result(&answer().without_structured(), None, &mut out);
        let value: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(
            value,
            json!({"content": [{"type": "text", "text": "{\"a\":1}"}]})
        );
    }
}
