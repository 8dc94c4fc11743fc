//! `tools/call` (`docs/revisions.md`, section 9).

use std::{
    io::Write,
    sync::Arc,
    time::{Duration, Instant},
};

use portolan_http_tools::{Caller as Calling, ToolAnswer, execute};
use portolan_metering::Measures;
use portolan_model::{id::CallId, registry::CallOutcome};
use portolan_protocol::{
    error::ErrorKind,
    header::{self, Dialect, Headers},
    input_required::Brought,
    jsonrpc::{self, Misfit, Raw},
    meta,
    method::Method,
    revision::{ArgumentFaults, Facts, StructuredOutput, Tasks},
    task,
    tool::{CallParams, CallResult, TaskSupport},
    visible::Visible,
};
use portolan_traces::Span;
use serde_json::Value;

use crate::{
    backends::{
        account::Linking,
        http::{AccountCall, Called},
        services::Backends,
        upstream::{conversation::LONGEST_CALL, forward::forward, request::Forward},
    },
    call::{AsTask, Call, Running, client_channel::ClientChannel, end_trace},
    call_log::Logged,
    capture::TakenContent,
    catalog::{
        backend::{Access, Backend, HttpTool},
        server::Tool,
        upstream::UpstreamTool,
    },
    error::McpError,
    features::work::{Job, Run, earlier},
    limits::Permit,
};

#[cfg(test)]
use crate::call::Script;

/// The work of a call with a known tool and valid parameters; its arguments are not yet checked.
#[derive(Debug)]
pub(crate) struct ToolCall {
    /// The id of the call (METER-10).
    id: CallId,
    /// The index of the tool.
    tool: usize,
    arguments: Value,
    /// Its permit among the tenant's running calls.
    _permit: Permit,
}

/// The time of a call beyond its source's deadline, before another node may end its stream.
const BEYOND: Duration = Duration::from_secs(15);

/// Steps 7 to 10 of the ladder MCP-E-7, in every revision: tool, mirrored arguments, parameters.
pub(crate) async fn prepare(mut call: Box<Call>, headers: &Headers<'_>) -> Result<Run, McpError> {
    let name = call.params.text("name");
    let found = name.as_deref().map(|name| call.server.find(name));
    if let (Some(name), Some(None)) = (&name, found) {
        return Err(call.fail(&ErrorKind::UnknownTool(name.to_string())));
    }
    if let Some(Some(index)) = found {
        check_mirrored(&call, &call.server.tools[index], headers)?;
    }
    let params = CallParams::read(&call.params).map_err(|misfit| call.misfit(misfit))?;
    let Some(Some(index)) = found else {
        return Err(call.fail(&ErrorKind::UnknownTool(params.name)));
    };
    call.task = as_task(&call, &call.server.tools[index], &params)?;
    call.limit_call(Some(&call.server.tools[index])).await?;
    call.read_progress()?;
    let brought = Brought {
        responses: params.input_responses,
        state: params.request_state,
    };
    if let Some(retry) = earlier(&mut call, brought)? {
        return Ok(Run {
            call: Arc::from(call),
            job: Job::Retry(retry),
        });
    }
    let arguments = match (&call.server.tools[index].backend, &params.arguments) {
        // The arguments are forwarded unchanged, and the upstream server checks them.
        (Backend::Upstream(_), _) => Value::Null,
        (Backend::Http(_), Some(raw)) => raw
            .read("params.arguments")
            .map_err(|misfit| call.misfit(misfit))?,
        (Backend::Http(_), None) => Value::Object(serde_json::Map::new()),
    };
    // Last: a call that is refused for another reason takes no permit.
    let permit = call.enter().await?;
    let job = Job::Tool(ToolCall {
        id: CallId::at(call.now),
        tool: index,
        arguments,
        _permit: permit,
    });
    Ok(Run {
        call: Arc::from(call),
        job,
    })
}

/// Compares the arguments that headers repeat with these headers.
fn check_mirrored(call: &Call, tool: &Tool, headers: &Headers<'_>) -> Result<(), McpError> {
    let is_draft = call.session.as_ref().is_some_and(|own| own.id.draft);
    let is_mirrored = call.revision.facts().mirrored_headers || is_draft;
    if !is_mirrored || tool.headers.is_empty() {
        return Ok(());
    }
    let dialect = if is_draft {
        Dialect::Draft
    } else {
        Dialect::Modern
    };
    let arguments = call.params.get("arguments");
    header::check_params(&tool.headers, arguments.as_ref(), headers, dialect)
        .map_err(|kind| call.fail(&kind))
}

/// MCP-TK-2, MCP-X-51: whether a call is to be a task. The parameter is ignored without task
/// support (MCP-TK-1, MCP-TX-2).
fn as_task(call: &Call, tool: &Tool, params: &CallParams) -> Result<Option<AsTask>, McpError> {
    let support = tool.listed.task_support.unwrap_or(TaskSupport::Forbidden);
    if params.task.is_none() && support != TaskSupport::Required {
        return Ok(None);
    }
    if call.revision.facts().tasks != Tasks::Core {
        return Ok(None);
    }
    match (&params.task, support) {
        (Some(_), TaskSupport::Forbidden) | (None, TaskSupport::Required) => {
            let name = Method::ToolsCall.name().to_owned();
            Err(call.fail(&ErrorKind::MethodNotFound(name)))
        }
        (Some(task), _) => Ok(Some(AsTask {
            ttl: task::wished_ttl(task),
        })),
        (None, _) => Ok(None),
    }
}

impl ToolCall {
    fn tool<'c>(&self, call: &'c Call) -> &'c Tool {
        &call.server.tools[self.tool]
    }

    /// True if the call may become a task when it takes long (MCP-X-54, MCP-TX-1).
    ///
    /// This requires the tenant's setting and a client that accepts tasks.
    pub(crate) fn may_become_task(&self, call: &Call) -> bool {
        self.tool(call).becomes_task && task::is_declared(&call.client.capabilities)
    }

    /// The longest time of the call in all.
    pub(crate) fn deadline(&self, call: &Call) -> Duration {
        match &self.tool(call).backend {
            Backend::Http(tool) if !tool.has_accounts() => tool.target.timeout + BEYOND,
            // The time for a person's answer or the renewal of a token is unknown.
            Backend::Http(_) | Backend::Upstream(_) => LONGEST_CALL + BEYOND,
        }
    }

    /// True if the tool declares that a second call does no harm.
    pub(crate) fn is_retryable(&self, call: &Call) -> bool {
        let hints = self.tool(call).listed.annotations.as_ref();
        hints.is_some_and(|hints| {
            hints.read_only_hint == Some(true) || hints.idempotent_hint == Some(true)
        })
    }

    /// True if the call may send messages to its client before its answer.
    ///
    /// An API sends none, but its call may have to ask a person to connect an account.
    #[cfg_attr(not(test), expect(unused_variables, reason = "scripts of tests"))]
    pub(crate) fn talks(&self, state: &Backends, call: &Call) -> bool {
        #[cfg(test)]
        if self.script(state, call).is_some() {
            return true;
        }
        match &self.tool(call).backend {
            Backend::Upstream(_) => true,
            Backend::Http(http) => http.asks(),
        }
    }

    #[cfg(test)]
    fn script(&self, state: &Backends, call: &Call) -> Option<Script> {
        let name = &self.tool(call).name;
        state.scripts.lock().unwrap().get(&**name).cloned()
    }

    /// Begins the call.
    pub(crate) fn start(
        self,
        state: Backends,
        call: Arc<Call>,
        channel: Option<ClientChannel>,
    ) -> Running {
        #[cfg(test)]
        if let (Some(script), Some(channel)) = (self.script(&state, &call), channel.clone()) {
            return script(call.id.clone(), channel);
        }
        Box::pin(async move { self.run(&state, &call, channel.as_ref()).await })
    }

    /// Makes the call, writes its answer, and counts it.
    async fn run(
        &self,
        state: &Backends,
        call: &Arc<Call>,
        channel: Option<&ClientChannel>,
    ) -> Result<Vec<u8>, McpError> {
        let _running = state.call_log.begin();
        let started = Instant::now();
        let tool = self.tool(call);
        if let Some(trace) = &call.trace {
            trace.set("portolan.call", self.id.to_string());
        }
        let (body, ended) = match &tool.backend {
            Backend::Http(http) => self.call_api(state, call, http, channel).await,
            // Boxed: the futures of other calls stay smaller.
            Backend::Upstream(upstream) => {
                Box::pin(self.forward_call(state, call, (tool, upstream), channel)).await
            }
        };
        self.log(state, call, (started, &body), ended);
        body
    }

    /// A call of an API.
    async fn call_api(
        &self,
        state: &Backends,
        call: &Arc<Call>,
        http: &HttpTool,
        channel: Option<&ClientChannel>,
    ) -> (Result<Vec<u8>, McpError>, CallEnd) {
        let credential = match &http.access {
            Access::Open => None,
            Access::With(known) => Some(&known.slot),
            // Boxed for the same reason.
            Access::Account(accounts) => {
                let linking = Linking {
                    accounts,
                    call,
                    channel,
                };
                return Box::pin(self.with_account(state, http, linking)).await;
            }
            Access::Broken => {
                let text = "The credential of this tool's API cannot be used. Somebody has to set it again in the console.";
                let result = CallResult::failure(text);
                let mut body = jsonrpc::response_with(&call.id, 256, |out| {
                    result.write(call.revision, &call.server.identity, out);
                });
                jsonrpc::add_meta(&mut body, meta::CALL_ID, &self.id.to_string());
                let ended = CallEnd {
                    error: Some(text.to_owned()),
                    ..CallEnd::of(CallOutcome::Internal)
                };
                return (Ok(body), ended);
            }
        };
        // This span lasts until the answer is written.
        let span = run_span(call);
        let calling = Calling {
            egress: &state.egress,
            target: &http.target,
            credential,
            account: None,
            tokens: &state.tokens,
            trace: span.as_ref().or(call.trace.as_deref()),
            shows_exchange: false,
        };
        let begun = Instant::now();
        let answer = execute(&calling, &http.compiled, &self.arguments).await;
        let ended = CallEnd::answered(&answer, begun);
        http.access.note(state, answer.proof);
        if let Some(span) = &span {
            end_trace(span, answer.outcome);
        }
        (self.write(call, answer), ended)
    }

    /// A call of an API with a connected account.
    async fn with_account(
        &self,
        state: &Backends,
        http: &HttpTool,
        linking: Linking<'_>,
    ) -> (Result<Vec<u8>, McpError>, CallEnd) {
        let call = linking.call;
        let span = run_span(call);
        let opened = AccountCall {
            state,
            linking,
            calling: Calling {
                egress: &state.egress,
                target: &http.target,
                credential: None,
                account: None,
                tokens: &state.tokens,
                trace: span.as_ref().or(call.trace.as_deref()),
                shows_exchange: false,
            },
        };
        let begun = Instant::now();
        let called = opened.call(&http.compiled, &self.arguments).await;
        let (outcome, status) = called.outcome();
        if let Some(span) = &span {
            end_trace(span, outcome);
        }
        let ended = CallEnd {
            status,
            backend: begun.elapsed(),
            ..CallEnd::of(outcome)
        };
        match called {
            Called::Answer(answer) => {
                let ended = CallEnd::answered(&answer, begun);
                (self.write(call, answer), ended)
            }
            Called::ChannelMessage(visible) => {
                let body = call.said(&visible).map(|body| self.stamped(body));
                (body, ended.because(visible.text()))
            }
            Called::Refused(error) => {
                let body = jsonrpc::error_response(Some(&call.id), &error);
                (Ok(body), ended.because("An account has to be connected."))
            }
        }
    }

    /// A call of an upstream server.
    async fn forward_call(
        &self,
        state: &Backends,
        call: &Arc<Call>,
        (tool, upstream): (&Tool, &UpstreamTool),
        channel: Option<&ClientChannel>,
    ) -> (Result<Vec<u8>, McpError>, CallEnd) {
        // The upstream server would not list the tool to this client, and would not know it
        // (MCP-X-30).
        if let Some(need) = tool.lacks(call.revision.era(), &call.client.capabilities) {
            let visible = Visible::Needs(need);
            let body = call.said(&visible).map(|body| self.stamped(body));
            let ended = CallEnd::of(CallOutcome::ToolError).because(visible.text());
            return (body, ended);
        }
        let span = run_span(call);
        let mut ask = Forward {
            mirrored: &tool.headers,
            tool: Some(upstream),
            renamed: call.server.renames.of(upstream.source.id).map(|all| &**all),
            ..Forward::new(call, ("name", &upstream.name), channel)
        };
        if let Some(span) = &span {
            ask.traceparent = Some(span.context().traceparent());
        }
        let begun = Instant::now();
        let answered = forward(state, &upstream.source, &ask).await;
        if let Some(span) = &span {
            end_trace(span, answered.outcome);
        }
        let ended = CallEnd {
            backend: begun.elapsed(),
            error: answered.reason.clone(),
            ..CallEnd::of(answered.outcome)
        };
        let body = answered.into_body().map(|body| self.stamped(body));
        (body, ended)
    }

    /// An answer with the id of the call (METER-10).
    fn stamped(&self, mut body: Vec<u8>) -> Vec<u8> {
        jsonrpc::add_meta(&mut body, meta::CALL_ID, &self.id.to_string());
        body
    }

    /// Writes the answer in the shape of the revision.
    fn write(&self, call: &Call, answer: ToolAnswer) -> Result<Vec<u8>, McpError> {
        let facts = call.revision.facts();
        if answer.outcome == CallOutcome::InvalidArguments
            && facts.argument_faults == ArgumentFaults::ProtocolError
        {
            // MCP-TL-17: one misfit for each fault, in one message.
            let text: Vec<String> = answer
                .faults
                .iter()
                .map(|fault| format!("{}: {}", fault.path, fault.message))
                .collect();
            return Err(call.misfit(Misfit::new("params.arguments", text.join("; "))));
        }
        let answer = shaped(answer, facts);
        let identity = &call.server.identity;
        let identity = facts
            .result_envelope
            .then(|| identity.json(call.revision).as_bytes());
        Ok(jsonrpc::response_with(
            &call.id,
            answer.size_hint() + 320,
            |out| {
                write_result(&answer, self.id, identity, out);
            },
        ))
    }

    /// Counts the call, and writes its entry of the log of calls.
    fn log(
        &self,
        state: &Backends,
        call: &Call,
        (started, answer): (Instant, &Result<Vec<u8>, McpError>),
        ended: CallEnd,
    ) {
        let tool = self.tool(call);
        let took = started.elapsed();
        state.instruments.call(tool.kind, ended.outcome, took);
        let bytes = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let measures = Measures {
            took_us: micros(took),
            backend_us: micros(ended.backend.min(took)),
            bytes_in: bytes(
                call.params
                    .raw()
                    .map_or(0, |params| params.as_bytes().len()),
            ),
            bytes_out: bytes(answer.as_ref().map_or(0, Vec::len)),
        };
        // By the clock of the request, which tests set: from its arrival to its end, less the work.
        let waited = (state.clock.now() - call.now).unsigned_abs();
        state.call_log.write(Logged {
            id: self.id,
            at: call.now,
            server: (call.server.id, Arc::clone(&call.server.slug)),
            item: Arc::clone(&tool.name),
            client: call.client.name.clone(),
            client_version: call.client.version.clone(),
            caller: Arc::clone(&call.caller),
            session: call.session.as_ref().map(|session| session.id.key),
            revision: call.revision,
            trace: call.trace.as_ref().map(|trace| trace.context().trace_id()),
            outcome: ended.outcome,
            status: ended.status,
            measures,
            wait_us: micros(waited.saturating_sub(took)),
            error: ended.error,
            content: self.content(state, call, ended.outcome, answer),
        });
    }

    /// Copies of the arguments and the answer, if the policy of the server keeps them (CAPTURE-1).
    fn content(
        &self,
        state: &Backends,
        call: &Call,
        outcome: CallOutcome,
        answer: &Result<Vec<u8>, McpError>,
    ) -> Option<TakenContent> {
        let capture = call.server.capture.as_ref()?;
        if !capture.wants(self.id, outcome) {
            return None;
        }
        let arguments = call.params.get("arguments");
        let arguments = arguments.as_ref().map(Raw::as_bytes);
        let captures = &state.call_log.captures;
        match answer {
            Ok(body) => captures.take(capture, arguments, Some(body.as_slice())),
            Err(McpError::Protocol(refusal)) => {
                let body = refusal.body();
                captures.take(capture, arguments, Some(body.as_slice()))
            }
            Err(_) => captures.take(capture, arguments, None),
        }
    }
}

/// How a call ended.
#[derive(Debug)]
struct CallEnd {
    outcome: CallOutcome,
    /// The API's status.
    status: Option<u16>,
    /// The part of the time at the API or upstream server.
    backend: Duration,
    /// Why it failed, in words of ours.
    error: Option<String>,
}

impl CallEnd {
    fn of(outcome: CallOutcome) -> Self {
        Self {
            outcome,
            status: None,
            backend: Duration::ZERO,
            error: None,
        }
    }

    fn because(self, error: impl Into<String>) -> Self {
        Self {
            error: Some(error.into()),
            ..self
        }
    }

    /// The end of a call of an API that began then. Words of the API and values of arguments are
    /// not for the log.
    fn answered(answer: &ToolAnswer, begun: Instant) -> Self {
        let error = match answer.outcome {
            CallOutcome::Ok => None,
            CallOutcome::ToolError => answer
                .status
                .map(|status| format!("The API answered {status}.")),
            CallOutcome::InvalidArguments => {
                let paths: Vec<&str> = answer.faults.iter().map(|fault| &*fault.path).collect();
                Some(format!("Arguments that do not fit: {}", paths.join(", ")))
            }
            CallOutcome::UpstreamError | CallOutcome::Internal => answer.first_text(),
        };
        Self {
            status: answer.status,
            backend: begun.elapsed(),
            error,
            ..Self::of(answer.outcome)
        }
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// The span of the work of a call, if it has a trace.
fn run_span(call: &Call) -> Option<Span> {
    call.trace.as_ref().and_then(|trace| trace.part("run"))
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

/// Appends the result, with the id of the call in `_meta` (METER-10).
///
/// With an `identity` it has the envelope of 2026-07-28: `resultType` first, `_meta` last
/// (MCP-J-17, MCP-J-18).
fn write_result(answer: &ToolAnswer, id: CallId, identity: Option<&[u8]>, out: &mut Vec<u8>) {
    out.push(b'{');
    if identity.is_some() {
        out.extend_from_slice(br#""resultType":"complete","#);
    }
    answer.write_members(out);
    out.extend_from_slice(br#","_meta":{""#);
    if let Some(identity) = identity {
        out.extend_from_slice(meta::SERVER_INFO.as_bytes());
        out.extend_from_slice(br#"":"#);
        out.extend_from_slice(identity);
        out.extend_from_slice(br#",""#);
    }
    out.extend_from_slice(meta::CALL_ID.as_bytes());
    out.extend_from_slice(br#"":""#);
    // Writing into memory cannot fail.
    let _ = write!(out, "{id}");
    out.extend_from_slice(br#""}}"#);
}

#[cfg(test)]
mod tests {
    use portolan_http_tools::{Content, Structured};
    use portolan_protocol::revision::Revision;
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
        let (id, mut out) = (CallId::generate(), Vec::new());
        write_result(
            &answer(),
            id,
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
                "_meta": {
                    "io.modelcontextprotocol/serverInfo": {"name": "pets", "version": "1"},
                    "io.github.portolan/callId": id.to_string()
                }
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
            write_result(
                &shaped(sound, revision.facts()),
                CallId::generate(),
                None,
                &mut out,
            );
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
        let (id, mut out) = (CallId::generate(), Vec::new());
        write_result(&answer().without_structured(), id, None, &mut out);
        let value: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(
            value,
            json!({
                "content": [{"type": "text", "text": "{\"a\":1}"}],
                "_meta": {"io.github.portolan/callId": id.to_string()}
            })
        );
    }
}
