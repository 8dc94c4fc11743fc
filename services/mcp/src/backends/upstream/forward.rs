//! One request of a client through an upstream server: there, what is told meanwhile, and back, in the words of the client's revision.

use portolan_keys::random;
use portolan_model::{registry::CallOutcome, resource::Site};
use portolan_protocol::{
    capability::ClientCapabilities,
    completion,
    error::{ErrorKind, Refusal, RpcError},
    header::ParamHeader,
    jsonrpc::{self, ProgressToken, Raw, Request as PeerRequest, RequestId},
    logging::Level,
    method::Method,
    progress::{self, Gate},
    result::{self, Identity},
    revision::{Era, Revision, StructuredOutput},
    tool::CallResult,
    translate::{self, Failed, Shape},
    visible::{Awaited, Visible},
};
use portolan_upstream::{Connection, Event, Exchange, Request, UpstreamError};
use tokio::sync::mpsc;

use super::{
    NoClient, UpstreamSource, UpstreamTool,
    sessions::{NoConversation, Who},
};
use crate::{dispatch::Context, error::McpError, state::McpState};

/// Takes what a running request tells its client: whole notifications.
pub(crate) type Teller = mpsc::Sender<bytes::Bytes>;

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
    /// Progress is wanted under this token.
    pub(crate) progress: Option<&'a ProgressToken>,
    /// Log messages are wanted from this level on.
    pub(crate) level: Option<Level>,
    /// Who takes what is told meanwhile; nobody, where the answer is one body.
    pub(crate) teller: Option<&'a Teller>,
    pub(crate) traceparent: Option<String>,
    pub(crate) identity: &'a Identity,
}

/// What it came to.
#[derive(Debug)]
pub(crate) struct Answered {
    /// The JSON-RPC response, or a refusal with an HTTP status of its own.
    body: Result<Vec<u8>, Refusal>,
    pub(crate) outcome: CallOutcome,
}

impl Answered {
    /// As handlers answer.
    pub(crate) fn into_body(self) -> Result<Vec<u8>, McpError> {
        Ok(self.body?)
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

/// Forwards a request and writes the answer. Dropping the future cancels it at the server too.
pub(crate) async fn forward(
    state: &McpState,
    source: &UpstreamSource,
    ask: &Forward<'_>,
) -> Answered {
    match exchange(state, source, ask).await {
        Ok((from, Ok(result))) => ask.complete(from, &result),
        Ok((from, Err(error))) => ask.refused(&error, from),
        Err(error) => {
            tracing::debug!(source.id = %source.id, reason = %error, "no answer of an upstream server");
            ask.failed(&error, source, state.site())
        }
    }
}

/// A request that is no tool's call, through the server that has the prompt or resource: `named` is how the server calls it, as a member
/// of the parameters; the others pass as they are.
pub(crate) async fn pass(
    cx: &Context<'_>,
    request: &PeerRequest,
    method: Method,
    source: &UpstreamSource,
    named: (&str, &Raw),
) -> Result<Vec<u8>, McpError> {
    cx.limit_read(&request.id).await?;
    let _place = cx.enter_call(&request.id).await?;
    let _running = cx.state.call_log.begin();
    let params = request.params.raw().cloned();
    let params = params.unwrap_or(Raw::empty_object());
    let ask = Forward {
        method,
        params: renamed(&params, named),
        id: &request.id,
        revision: cx.revision,
        who: &cx.who(),
        mirrored: &[],
        tool: None,
        progress: None,
        level: None,
        teller: None,
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

type Reply = (Revision, Result<Raw, RpcError>);

async fn exchange(
    state: &McpState,
    source: &UpstreamSource,
    ask: &Forward<'_>,
) -> Result<Reply, NoConversation> {
    let mut gone = None;
    let mut again = true;
    loop {
        let connection = state
            .upstreams
            .connect(state, source, ask.who, gone.as_ref())
            .await?;
        let is_modern = connection.revision().era() == Era::Modern;
        let request = Request {
            method: ask.method.name(),
            params: ask.params.clone(),
            progress: ask.progress.is_some() && ask.teller.is_some(),
            log_level: ask.level.filter(|_| is_modern && ask.teller.is_some()),
            traceparent: ask.traceparent.clone(),
            mirrored: ask.mirrored,
        };
        match connection.call(&request).await {
            Ok(exchange) => {
                let from = connection.revision();
                return Ok((
                    from,
                    follow(state, source, ask, connection, exchange).await?,
                ));
            }
            // It was not processed: once more, in a new session (X-7), or in the era that the server is of now (X-81).
            Err(UpstreamError::SessionGone) if again => gone = Some(connection),
            Err(UpstreamError::Version(_)) if again => state.upstreams.forget(source).await,
            Err(error) => return Err(error.into()),
        }
        again = false;
    }
}

async fn follow(
    state: &McpState,
    source: &UpstreamSource,
    ask: &Forward<'_>,
    connection: Connection,
    mut exchange: Exchange,
) -> Result<Result<Raw, RpcError>, UpstreamError> {
    let mut cancelling = Cancelling {
        state,
        running: Some((connection.clone(), exchange.id().clone())),
    };
    let mut gate = Gate::default();
    loop {
        let event = match exchange.next().await {
            Ok(event) => event,
            Err(error) => {
                // Who took too long is told that nobody waits any more (L-12); who broke off has heard.
                if !matches!(error, UpstreamError::Timeout(_)) {
                    cancelling.running = None;
                }
                return Err(error);
            }
        };
        match event {
            Event::Answer(outcome) => {
                cancelling.running = None;
                return Ok(outcome);
            }
            Event::Progress(progress) => {
                // X-76: the token is the client's, and only what grows passes.
                if let (Some(token), Some(teller)) = (ask.progress, ask.teller)
                    && gate.passes(progress.progress)
                {
                    let notice = progress::notification(ask.revision, token, &progress);
                    let _ = teller.send(notice.into()).await;
                }
            }
            Event::Log(params) => {
                if let Some(teller) = ask.teller
                    && ask.wants(&params)
                {
                    let method = Method::LogMessage.name();
                    let notice = jsonrpc::notification(method, Some(params.as_bytes()));
                    let _ = teller.send(notice.into()).await;
                }
            }
            Event::Request { id, method, .. } => {
                // X-30, X-3A, X-3F: it was not declared, and is refused.
                let refusal = RpcError {
                    code: -32601,
                    message: format!("Method not found: {method}"),
                    data: None,
                };
                connection.answer(&id, &Err(refusal)).await?;
            }
            Event::Notification { method, .. } => {
                if matches!(
                    Method::from_name(&method),
                    Some(
                        Method::ToolsListChanged
                            | Method::PromptsListChanged
                            | Method::ResourcesListChanged
                    )
                ) {
                    ask_for_a_look(state, source);
                }
            }
        }
    }
}

/// X-41, X-43: a server said that a list changed. Whoever keeps the registry looks at it soon.
fn ask_for_a_look(state: &McpState, source: &UpstreamSource) {
    let (state, tenant, id) = (state.clone(), source.tenant, source.id);
    let tracker = state.tracker.clone();
    tracker.spawn(async move {
        let now = state.clock.now();
        let asked = async {
            let mut tx = state.store.node(tenant).await?;
            portolan_storage::upstreams::ask_for_a_look(&mut tx, id, now).await?;
            tx.commit().await
        };
        if let Err(error) = asked.await {
            tracing::debug!(
                error = &error as &dyn std::error::Error,
                "cannot ask for a look at an upstream server"
            );
        }
    });
}

impl Forward<'_> {
    /// X-72…X-74: whether the client wants to hear a log message.
    fn wants(&self, params: &Raw) -> bool {
        let level = params.get("level").and_then(|level| level.string());
        let level = level.and_then(|level| level.parse::<Level>().ok());
        matches!((level, self.level), (Some(level), Some(least)) if level >= least)
    }

    fn said(&self, visible: &Visible, outcome: CallOutcome) -> Answered {
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

    fn error(&self, error: &RpcError, outcome: CallOutcome) -> Answered {
        Answered {
            body: Ok(jsonrpc::error_response(Some(self.id), error)),
            outcome,
        }
    }

    /// A result, in the words of the client's revision (§7).
    fn complete(&self, from: Revision, result: &Raw) -> Answered {
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
    fn refused(&self, error: &RpcError, from: Revision) -> Answered {
        if self.method == Method::Complete && error.code == -32601 {
            // X-18: it has no completion, so it has no suggestions.
            let result = completion::result(self.revision, self.identity, &[], None, false);
            return Answered {
                body: Ok(jsonrpc::response(self.id, &result)),
                outcome: CallOutcome::Ok,
            };
        }
        let nothing = ClientCapabilities::default();
        match translate::error(error, self.method, from, self.revision, &nothing) {
            Failed::Error(error, _) | Failed::Degraded(error) => {
                self.error(&error, CallOutcome::UpstreamError)
            }
            Failed::ToolFailure(text) => self.tool_failure(text, CallOutcome::ToolError),
            Failed::Visible(visible) => self.said(&visible, CallOutcome::UpstreamError),
            Failed::Missing(required) => {
                let kind = ErrorKind::MissingCapability { required };
                Answered {
                    body: Err(kind.refuse(self.revision, Some(self.id.clone()))),
                    outcome: CallOutcome::UpstreamError,
                }
            }
            // No client of ours is asked yet: the first step is shown as what there is to do (V-6).
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
    fn failed(&self, error: &NoConversation, source: &UpstreamSource, site: &Site) -> Answered {
        let outcome = CallOutcome::UpstreamError;
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
            NoConversation::Client(NoClient::Broken | NoClient::SignIn(_)) => {
                return self.said(&page(), outcome);
            }
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
