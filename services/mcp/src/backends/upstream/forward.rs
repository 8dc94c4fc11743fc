//! One request of a client through an upstream server: there, what is told meanwhile, and back, in the words of the client's revision.

use std::sync::Arc;

use futures_util::{
    StreamExt,
    future::{AbortHandle, abortable},
    stream::FuturesUnordered,
};
use portolan_keys::random;
use portolan_model::registry::CallOutcome;
use portolan_protocol::{
    ask::AskMethod,
    capability::{ClientCapabilities, TASKS_EXTENSION},
    completion,
    error::{ErrorKind, RpcError},
    header::ParamHeader,
    input_required::{InputRequired, MOST_ROUNDS},
    jsonrpc::{self, Raw, Request as PeerRequest, RequestId},
    logging::Level,
    method::Method,
    result::{self, Identity},
    revision::{Era, Revision, StructuredOutput},
    task::Task,
    tool::CallResult,
    translate::{self, Failed, Shape, UrlStep},
    visible::{Awaited, Visible},
};
use portolan_upstream::{Connection, Event, Exchange, Request, UpstreamError};

use super::{
    NoClient, UpstreamSource, UpstreamTool,
    beside::Seat,
    looks::ask_for_a_look,
    questions::answer,
    sessions::{NoConversation, Who},
    task,
};
use crate::{
    ask::{Asker, Round},
    dispatch::Context,
    error::McpError,
    state::McpState,
};

/// A request to be forwarded.
pub(crate) struct Forward<'a> {
    pub(crate) method: Method,
    /// As the server is to get them, but for `_meta`.
    pub(crate) params: Raw,
    /// The request of the client.
    pub(crate) id: &'a RequestId,
    pub(crate) revision: Revision,
    pub(crate) who: &'a Who,
    /// Arguments that headers repeat.
    pub(crate) mirrored: &'a [ParamHeader],
    /// The tool, of a call.
    pub(crate) tool: Option<&'a UpstreamTool>,
    /// Progress is wanted.
    pub(crate) progress: bool,
    /// Log messages are wanted from this level on.
    pub(crate) level: Option<Level>,
    /// The way to the client meanwhile; none, where the answer is one body.
    pub(crate) asker: Option<&'a Asker>,
    pub(crate) traceparent: Option<String>,
    pub(crate) identity: &'a Identity,
}

/// What it came to.
#[derive(Debug)]
pub(crate) struct Answered {
    /// The JSON-RPC response, or a refusal with an HTTP status of its own.
    pub(super) body: Result<Vec<u8>, McpError>,
    pub(crate) outcome: CallOutcome,
}

impl Answered {
    /// As handlers answer.
    pub(crate) fn into_body(self) -> Result<Vec<u8>, McpError> {
        self.body
    }
}

/// Tells a legacy server that its answer is not wanted any more, if the exchange is dropped before it (X-77, X-79).
struct Cancelling<'a> {
    state: &'a McpState,
    running: Option<(Connection, RequestId)>,
}

impl Drop for Cancelling<'_> {
    fn drop(&mut self) {
        let Some((connection, id)) = self.running.take() else {
            return;
        };
        if connection.revision().era() == Era::Legacy {
            self.state.tracker.spawn(async move {
                let _ = connection
                    .cancel(&id, "The client does not want it any more")
                    .await;
            });
        }
    }
}

/// What was asked before goes with a request that is made again: answers, and the server's own state.
type Earlier = (Option<Raw>, Option<String>);

/// Forwards a request and writes the answer. Dropping the future cancels it at the server too.
pub(crate) async fn forward(
    state: &McpState,
    source: &Arc<UpstreamSource>,
    ask: &Forward<'_>,
) -> Answered {
    let continued = ask.asker.and_then(Asker::continued);
    let mut earlier: Option<Earlier> =
        continued.map(|earlier| (earlier.responses.clone(), earlier.state.clone()));
    let mut steps_left = MOST_ROUNDS;
    let mut as_task = ask.asker.is_some_and(Asker::takes_tasks);
    let mut asked = false;
    loop {
        let params = with_earlier(&ask.params, earlier.as_ref());
        let (from, outcome) = match exchange(state, source, ask, params, as_task).await {
            Ok(reply) => reply,
            Err(error) => {
                tracing::debug!(source.id = %source.id, reason = %error, "no answer of an upstream server");
                // Once: who was there and is not connected all the same hears why.
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
                if let Some(asker) = ask.asker {
                    asker.settle().await;
                }
                return ask.ended(state, ended, source);
            }
            Ok(result) => {
                if let Some(asker) = ask.asker {
                    asker.settle().await;
                }
                return ask.complete(from, &result);
            }
            // X-52: a client that knows of no tasks waits instead.
            Err(error) if !as_task && ask.needs_task(&error, from) => as_task = true,
            Err(error) => match (ask.steps(&error, from), ask.asker) {
                (Some(steps), Some(asker)) if steps_left > 0 => {
                    steps_left -= 1;
                    if let Err(visible) = visit(asker, from, &steps).await {
                        return ask.said(&visible, CallOutcome::UpstreamError);
                    }
                    earlier = None;
                }
                _ => return ask.refused(&error, from),
            },
        }
    }
}

/// X-36: the person visits what the server wants visited; then the call is made again.
async fn visit(asker: &Asker, from: Revision, steps: &[UrlStep]) -> Result<(), Visible> {
    for step in steps {
        let answer = asker.ask(from, AskMethod::Elicit, &step.params()).await?;
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
    // `renamed` made it: an object that is never empty.
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

/// What a client can do, as an upstream of `revision` is told (X-14, X-15): of its extensions only those that pass through.
pub(crate) fn said(capabilities: &ClientCapabilities, revision: Revision, as_task: bool) -> Raw {
    let mut carried = capabilities.clone();
    carried
        .extensions
        .retain(|name, _| name == "io.modelcontextprotocol/ui");
    if as_task {
        // X-50: on each request that may be answered with a task, and on those about it (TX-1).
        let extension = TASKS_EXTENSION.to_owned();
        carried.extensions.insert(extension, Raw::empty_object());
    }
    let mut out = Vec::with_capacity(96);
    carried.write(revision, &mut out);
    Raw::parse(out).unwrap_or_else(|_| Raw::empty_object())
}

/// `completion/complete` through the server that has what is completed: `reference` is how that is called there. It cannot ask anything.
pub(crate) async fn complete(
    cx: &Context<'_>,
    request: &PeerRequest,
    source: &Arc<UpstreamSource>,
    reference: &Raw,
) -> Result<Vec<u8>, McpError> {
    cx.limit_read(&request.id).await?;
    let _place = cx.enter_call(&request.id).await?;
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
        asker: None,
        traceparent: cx.trace.map(|trace| trace.context().traceparent()),
        identity: &cx.server.identity,
    };
    forward(cx.state, source, &ask).await.into_body()
}

/// The parameters with the server's own name for what is asked. What belongs to our own leg (`task`, answers to questions that the
/// server never asked) does not go on.
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

pub(super) type Reply = (Revision, Result<Raw, RpcError>);

/// One request to the server. `as_task`: it may answer with a task.
pub(super) async fn exchange(
    state: &McpState,
    source: &Arc<UpstreamSource>,
    ask: &Forward<'_>,
    params: Raw,
    as_task: bool,
) -> Result<Reply, NoConversation> {
    let who = Who {
        on_request: ask
            .asker
            .map(|asker| (asker.capabilities().clone(), as_task)),
        ..ask.who.clone()
    };
    let mut gone = None;
    let (mut again, mut renewed) = (true, false);
    loop {
        let signed_in = source.sign_in(state, who.person).await?;
        let connected = state
            .upstreams
            .connect(state, source, &who, &signed_in, gone.as_ref())
            .await;
        let account = signed_in.account();
        let token = signed_in.token;
        let connection = match (connected, &token) {
            (Ok(connection), _) => connection,
            // X-86: tokens that the server does not take any more are renewed, once.
            (
                Err(NoConversation::Upstream(error @ UpstreamError::Unauthorized { .. })),
                Some(token),
            ) => {
                if !source.renew(state, who.person, token, renewed).await? {
                    return Err(error.into());
                }
                renewed = true;
                continue;
            }
            (Err(error), _) => {
                if let NoConversation::Upstream(error) = &error {
                    let person = who.person;
                    source
                        .note_scope(state, person, token.as_ref(), error)
                        .await;
                }
                return Err(error);
            }
        };
        let is_modern = connection.revision().era() == Era::Modern;
        let request = Request {
            method: ask.method.name(),
            // A server of the session era asks by requests, and takes answers in no other way.
            params: ask.for_era(
                if is_modern { &params } else { &ask.params },
                connection.revision(),
            ),
            progress: ask.progress && ask.asker.is_some(),
            log_level: ask.level.filter(|_| is_modern && ask.asker.is_some()),
            traceparent: ask.traceparent.clone(),
            mirrored: ask.mirrored,
        };
        if let (Some(level), Connection::Legacy(_), Some(_)) = (ask.level, &connection, ask.asker) {
            let upstreams = &state.upstreams;
            upstreams.wants_logs(source, &who, &connection, level).await;
        }
        // X-23: before the server can say anything.
        let seat = match (&connection, ask.asker) {
            (Connection::Legacy(legacy), Some(asker)) if asker.capabilities().bits() != 0 => {
                let whose = (who.person, account);
                state.beside.sit(state, source, whose, legacy).await
            }
            _ => None,
        };
        match connection.call(&request).await {
            Ok(exchange) => {
                let from = connection.revision();
                let outcome = follow(state, source, ask, (connection, exchange), seat).await?;
                return Ok((from, outcome));
            }
            // It was not processed: once more, in a new session (X-7), or in the era that the server is of now (X-81).
            Err(UpstreamError::SessionGone) if again => gone = Some(connection),
            Err(UpstreamError::Version(_)) if again => state.upstreams.forget(source).await,
            Err(error @ UpstreamError::Unauthorized { .. }) if token.is_some() => {
                let Some(token) = &token else {
                    return Err(error.into());
                };
                if !source.renew(state, who.person, token, renewed).await? {
                    return Err(error.into());
                }
                renewed = true;
                // What is open keeps the token that it was opened with.
                gone = matches!(connection, Connection::Link(_)).then_some(connection);
                continue;
            }
            Err(error) => {
                let person = who.person;
                source
                    .note_scope(state, person, token.as_ref(), &error)
                    .await;
                return Err(error.into());
            }
        }
        again = false;
    }
}

async fn follow(
    state: &McpState,
    source: &Arc<UpstreamSource>,
    ask: &Forward<'_>,
    (connection, mut exchange): (Connection, Exchange),
    mut seat: Option<Seat>,
) -> Result<Result<Raw, RpcError>, UpstreamError> {
    let mut cancelling = Cancelling {
        state,
        running: Some((connection.clone(), exchange.id().clone())),
    };
    // Questions of the server that its client is asked now.
    let mut asking = FuturesUnordered::new();
    let mut questions: Vec<(RequestId, AbortHandle)> = Vec::new();
    loop {
        let event = tokio::select! {
            biased;
            Some(answered) = asking.next(), if !asking.is_empty() => {
                if let Ok(Err(error)) = answered {
                    return Err(error);
                }
                continue;
            }
            Some(event) = beside(seat.as_mut()) => event,
            event = exchange.next() => match event {
                Ok(event) => event,
                // It is silent because it waits for the client.
                Err(UpstreamError::Timeout(_)) if !asking.is_empty() => continue,
                Err(error) => {
                    // Who took too long is told that nobody waits any more (L-12); who broke off has heard.
                    if !matches!(error, UpstreamError::Timeout(_)) {
                        cancelling.running = None;
                    }
                    return Err(error);
                }
            },
        };
        match event {
            Event::Answer(outcome) => {
                cancelling.running = None;
                return Ok(outcome);
            }
            // X-76: under which token, and whether it grows, is the matter of who carries it.
            Event::Progress(progress) => {
                if let Some(asker) = ask.asker.filter(|_| ask.progress) {
                    asker.progress(progress).await;
                }
            }
            Event::Log(params) => {
                if let Some(asker) = ask.asker
                    && ask.wants(&params)
                {
                    let method = Method::LogMessage.name();
                    let notice = jsonrpc::notification(method, Some(params.as_bytes()));
                    asker.tell(notice.into()).await;
                }
            }
            Event::Request { id, method, params } => {
                let answered = answer(
                    state,
                    source,
                    ask,
                    &connection,
                    (id.clone(), method, params),
                );
                let (answering, handle) = abortable(answered);
                questions.push((id, handle));
                asking.push(answering);
            }
            Event::Notification { method, params } => match Method::from_name(&method) {
                Some(
                    Method::ToolsListChanged
                    | Method::PromptsListChanged
                    | Method::ResourcesListChanged,
                ) => ask_for_a_look(state, source),
                // X-7B.
                Some(Method::Cancelled) => {
                    let cancelled = params.get("requestId");
                    let cancelled = cancelled.as_ref().and_then(RequestId::from_raw);
                    for (_, handle) in questions
                        .iter()
                        .filter(|(id, _)| Some(id) == cancelled.as_ref())
                    {
                        handle.abort();
                    }
                }
                // EL-14, X-32: where the client knows it.
                Some(Method::ElicitationComplete) => {
                    if let Some(asker) = ask.asker
                        && asker.revision().facts().elicitation_ids
                    {
                        let notice = jsonrpc::notification(&method, Some(params.as_bytes()));
                        asker.tell(notice.into()).await;
                    }
                }
                _ => {}
            },
        }
    }
}

/// What the server says beside the stream of the call.
async fn beside(seat: Option<&mut Seat>) -> Option<Event> {
    match seat {
        Some(seat) => seat.next().await,
        None => std::future::pending().await,
    }
}

impl Forward<'_> {
    /// X-72…X-74: whether the client wants to hear a log message.
    fn wants(&self, params: &Raw) -> bool {
        let level = params.get("level").and_then(|level| level.string());
        let level = level.and_then(|level| level.parse::<Level>().ok());
        matches!((level, self.level), (Some(level), Some(least)) if level >= least)
    }

    /// X-20, X-29: what becomes of a result that asks, with the server's own state.
    async fn round(&self, result: &Raw) -> Result<(Round, Option<String>), Visible> {
        let asked = InputRequired::read(result).map_err(|_| Visible::Invalid)?;
        let Some(asker) = self.asker else {
            // It was told that nobody can be asked.
            return Err(Visible::Invalid);
        };
        let state = asked.state.clone();
        let round = asker.round(asked).await?;
        Ok((round, state))
    }

    /// X-36: steps in the browser that the client can be shown.
    fn steps(&self, error: &RpcError, from: Revision) -> Option<Vec<UrlStep>> {
        let asker = self.asker?;
        match translate::error(
            error,
            self.method,
            from,
            self.revision,
            asker.capabilities(),
        ) {
            Failed::Steps(steps) => Some(steps),
            _ => None,
        }
    }

    pub(super) fn said(&self, visible: &Visible, outcome: CallOutcome) -> Answered {
        if let Visible::Needs(need) = visible
            && self.revision.era() == Era::Modern
        {
            // V-2, with its HTTP status.
            let required = need.required();
            let kind = ErrorKind::MissingCapability { required };
            return Answered {
                body: Err(McpError::of(&kind, self.revision, Some(self.id))),
                outcome,
            };
        }
        let (_, body) = visible.answer(self.method, self.id, self.revision, self.identity);
        Answered {
            body: Ok(body),
            outcome,
        }
    }

    fn tool_failure(&self, text: String, outcome: CallOutcome) -> Answered {
        let result = CallResult::failure(text);
        Answered {
            body: Ok(jsonrpc::response_with(self.id, 256, |out| {
                result.write(self.revision, self.identity, out);
            })),
            outcome,
        }
    }

    pub(super) fn error(&self, error: &RpcError, outcome: CallOutcome) -> Answered {
        Answered {
            body: Ok(jsonrpc::error_response(Some(self.id), error)),
            outcome,
        }
    }

    /// A result, in the words of the client's revision (§7).
    pub(super) fn complete(&self, from: Revision, result: &Raw) -> Answered {
        if self.method == Method::ToolsCall && self.breaks_its_word(result) {
            let text = "Upstream result does not match its output schema.";
            return self.tool_failure(text.to_owned(), CallOutcome::UpstreamError);
        }
        let shape = Shape {
            from,
            to: self.revision,
            identity: self.identity,
            uniform: false,
        };
        match translate::result(self.method, result, &shape) {
            Ok(shaped) => {
                let is_error = result.get("isError").and_then(|raw| raw.boolean());
                Answered {
                    body: Ok(jsonrpc::response(self.id, &shaped.json)),
                    outcome: if is_error == Some(true) {
                        CallOutcome::ToolError
                    } else {
                        CallOutcome::Ok
                    },
                }
            }
            Err(violation) => {
                tracing::debug!(reason = %violation, "a result of an upstream server cannot be used");
                self.said(&Visible::Invalid, CallOutcome::UpstreamError)
            }
        }
    }

    /// X-6G, for clients that know of output schemas.
    fn breaks_its_word(&self, result: &Raw) -> bool {
        if self.revision.facts().structured_output == StructuredOutput::Absent {
            return false;
        }
        let Some(check) = self.tool.and_then(|tool| tool.output.as_ref()) else {
            return false;
        };
        if result.get("isError").and_then(|raw| raw.boolean()) == Some(true) {
            return false;
        }
        let Some(structured) = result.get("structuredContent") else {
            return true;
        };
        serde_json::from_slice(structured.as_bytes()).is_ok_and(|value| !check.fits(&value))
    }

    /// An error of the protocol, as the client's revision has it (§9).
    pub(super) fn refused(&self, error: &RpcError, from: Revision) -> Answered {
        if self.method == Method::Complete && error.code == -32601 {
            // X-18: it has no completion, so it has no suggestions.
            let result = completion::result(self.revision, self.identity, &[], None, false);
            return Answered {
                body: Ok(jsonrpc::response(self.id, &result)),
                outcome: CallOutcome::Ok,
            };
        }
        let nothing = ClientCapabilities::default();
        let capabilities = self.asker.map_or(&nothing, Asker::capabilities);
        match translate::error(error, self.method, from, self.revision, capabilities) {
            Failed::Error(error, _) | Failed::Degraded(error) => {
                self.error(&error, CallOutcome::UpstreamError)
            }
            Failed::ToolFailure(text) => self.tool_failure(text, CallOutcome::ToolError),
            Failed::Visible(visible) => self.said(&visible, CallOutcome::UpstreamError),
            Failed::Missing(required) => {
                let kind = ErrorKind::MissingCapability { required };
                Answered {
                    body: Err(McpError::of(&kind, self.revision, Some(self.id))),
                    outcome: CallOutcome::UpstreamError,
                }
            }
            // Asked often enough: the first step is shown as what there is to do (V-6).
            Failed::Steps(steps) => {
                let step = steps.into_iter().next();
                let visible = step.map_or(Visible::Invalid, |step| Visible::BrowserStep {
                    message: step.message,
                    url: Some(step.url),
                });
                self.said(&visible, CallOutcome::UpstreamError)
            }
            Failed::Renegotiate | Failed::Headers => {
                self.said(&Visible::Invalid, CallOutcome::UpstreamError)
            }
        }
    }

    /// No answer (§10).
    pub(super) fn failed(
        &self,
        state: &McpState,
        error: &NoConversation,
        source: &UpstreamSource,
    ) -> Answered {
        let outcome = CallOutcome::UpstreamError;
        if let Some((_, url)) = self.connect_page(state, source, error) {
            return match self.connect_error(source, &url) {
                Some(error) => self.error(&error, outcome),
                None => self.said(&Visible::NotLinked { url }, outcome),
            };
        }
        let site = state.site();
        let page = || Visible::NotLinked {
            url: format!(
                "{}/w/{}/sources/{}?tab=credential",
                site.issuer(),
                self.who.tenant_slug,
                source.id
            ),
        };
        let error = match error {
            NoConversation::Upstream(error) => error,
            NoConversation::Client(NoClient::Account(error)) if !error.is_for_a_person() => {
                return self.said(&Visible::Unreachable, outcome);
            }
            NoConversation::Client(NoClient::NoPerson) => {
                return self.said(&Visible::PeopleOnly, outcome);
            }
            NoConversation::Client(_) => return self.said(&page(), outcome),
            NoConversation::Store => {
                return self.said(&Visible::Unreachable, CallOutcome::Internal);
            }
            NoConversation::Over => return self.said(&Visible::Lost, outcome),
        };
        let visible = match error {
            UpstreamError::Egress(_) | UpstreamError::Status(_) | UpstreamError::Interrupted => {
                Visible::Unreachable
            }
            UpstreamError::Limited { retry_after } => {
                if self.method == Method::ToolsCall {
                    Visible::Unreachable
                } else {
                    return self.error(&busy(*retry_after), outcome);
                }
            }
            UpstreamError::Unauthorized { .. } | UpstreamError::Forbidden { .. } => page(),
            UpstreamError::SessionGone => Visible::Lost,
            UpstreamError::Timeout(_) => Visible::TimedOut(Awaited::Upstream),
            UpstreamError::Violation(_) | UpstreamError::TooMuch(_) | UpstreamError::Version(_) => {
                Visible::Invalid
            }
            UpstreamError::Refused(error) => {
                return self.refused(error, Revision::LATEST_LEGACY);
            }
        };
        self.said(&visible, outcome)
    }
}

/// X-85.
fn busy(retry_after: Option<std::time::Duration>) -> RpcError {
    let spread = random::bytes::<1>().map_or(0, |[byte]| u64::from(byte));
    let millis = retry_after.map_or(5_000, |wait| {
        u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)
    });
    let data = format!(r#"{{"retryAfterMs":{}}}"#, millis.saturating_add(spread));
    RpcError {
        code: -31002,
        message: "The upstream server takes no more requests for now.".to_owned(),
        data: Raw::parse(data).ok(),
    }
}
