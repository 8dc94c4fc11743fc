//! One request to a server, with all messages until its answer.
//!
//! This module selects the conversation, and handles expired sessions and refused tokens.

use std::sync::Arc;

use futures_util::{
    StreamExt,
    future::{AbortHandle, abortable},
    stream::FuturesUnordered,
};
use portolan_connections::Token;
use portolan_net::egress::EgressError;
use portolan_protocol::{
    error::RpcError,
    input_required::MOST_ROUNDS,
    jsonrpc::{self, Raw, RequestId},
    method::Method,
    revision::{Era, Revision},
};
use portolan_upstream::{Connection, Exchange, ExchangeEvent, Request, UpstreamError};
use uuid::Uuid;

use crate::{
    backends::{
        services::Backends,
        upstream::{
            conversation::{NoConversation, OnRequest, TasksExtension},
            get_streams::Subscriber,
            questions::{OpenQuestions, answer},
            refresh::request_refresh,
            request::Forward,
        },
    },
    catalog::upstream::UpstreamSource,
};

pub(crate) type Reply = (Revision, Result<Raw, RpcError>);

/// Cancels the request at a legacy server, if it is dropped before its answer (MCP-X-77, MCP-X-79).
///
/// It is made before the request is sent: a server may run the call for long before the head of its
/// answer, and one that answers by a JSON body sends no head before the end.
struct Cancelling<'a> {
    state: &'a Backends,
    running: Option<(Connection, RequestId)>,
}

impl<'a> Cancelling<'a> {
    fn new(state: &'a Backends, connection: &Connection, id: RequestId) -> Self {
        let running = Some((connection.clone(), id));
        Self { state, running }
    }

    /// The server needs no cancellation after this error: it sent the error, or did not receive the
    /// request. After a timeout the request is cancelled (MCP-L-12).
    fn failed(&mut self, error: &UpstreamError) {
        let is_timeout = match error {
            UpstreamError::Timeout(_) => true,
            UpstreamError::Egress(error) => matches!(error, EgressError::Timeout { .. }),
            _ => false,
        };
        if !is_timeout {
            self.running = None;
        }
    }
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

/// A conversation, and what opened it.
struct Opened {
    connection: Connection,
    account: Option<Uuid>,
    token: Option<Token>,
}

/// Opens a conversation. Tokens that the server refuses are renewed, once (MCP-X-86); `renewed`
/// tells whether they are.
async fn open(
    state: &Backends,
    source: &Arc<UpstreamSource>,
    ask: &Forward<'_>,
    (can, gone): (OnRequest<'_>, Option<&Connection>),
    renewed: &mut bool,
) -> Result<Opened, NoConversation> {
    let (call, person) = (ask.call, ask.call.caller.person());
    loop {
        let signed_in = source.sign_in(state, person).await?;
        let speaks = (&**call, can, ask.era());
        let connected = state
            .upstreams
            .connect(state, source, speaks, &signed_in, gone)
            .await;
        let (account, token) = (signed_in.account(), signed_in.token);
        let error = match connected {
            Ok(connection) => {
                return Ok(Opened {
                    connection,
                    account,
                    token,
                });
            }
            Err(error) => error,
        };
        match (error, &token) {
            (NoConversation::Upstream(error @ UpstreamError::Unauthorized { .. }), Some(token)) => {
                if !source.renew(state, person, token, *renewed).await? {
                    return Err(error.into());
                }
                *renewed = true;
            }
            (error, token) => {
                if let NoConversation::Upstream(error) = &error {
                    source
                        .note_scope(state, person, token.as_ref(), error)
                        .await;
                }
                return Err(error);
            }
        }
    }
}

/// The request in the form of the server's revision. `params` are for a server of 2026-07-28: one
/// of the session era asks by requests, and accepts answers only as responses.
fn request_of<'a>(ask: &Forward<'a>, params: &Raw, connection: &Connection) -> Request<'a> {
    let is_modern = connection.revision().era() == Era::Modern;
    let params = if is_modern { params } else { &ask.params };
    Request {
        method: ask.method.name(),
        params: ask.for_era(params, connection.revision()),
        progress: ask.wants_progress() && ask.channel.is_some(),
        log_level: ask.level().filter(|_| is_modern && ask.channel.is_some()),
        traceparent: ask.traceparent.clone(),
        mirrored: ask.mirrored,
    }
}

/// Makes ready for what a server of the session era sends beside the answer: its log level, and
/// its GET stream (MCP-X-23). This comes before the server can send any message.
async fn listen(
    state: &Backends,
    source: &Arc<UpstreamSource>,
    ask: &Forward<'_>,
    connection: &Connection,
    account: Option<Uuid>,
) -> Option<Subscriber> {
    let (Connection::Legacy(legacy), Some(channel)) = (connection, ask.channel) else {
        return None;
    };
    if let Some(level) = ask.level() {
        let upstreams = &state.upstreams;
        upstreams
            .wants_logs(source, ask.call, connection, level)
            .await;
    }
    if channel.capabilities().bits() == 0 {
        return None;
    }
    let whose = (ask.call.caller.person(), account);
    state
        .get_streams
        .subscribe(state, source, whose, legacy)
        .await
}

/// Sends one request to the server.
pub(crate) async fn exchange(
    state: &Backends,
    source: &Arc<UpstreamSource>,
    ask: &Forward<'_>,
    params: Raw,
    tasks: TasksExtension,
) -> Result<Reply, NoConversation> {
    let person = ask.call.caller.person();
    // For servers that keep nothing of earlier requests (MCP-X-14, MCP-X-15).
    let can = ask.channel.map(|channel| (channel.capabilities(), tasks));
    let mut gone = None;
    let (mut again, mut renewed) = (true, false);
    loop {
        let opened = open(state, source, ask, (can, gone.as_ref()), &mut renewed);
        let Opened {
            connection,
            account,
            token,
        } = opened.await?;
        let request = request_of(ask, &params, &connection);
        let subscriber = listen(state, source, ask, &connection, account).await;
        let id = portolan_upstream::new_id();
        let mut cancelling = Cancelling::new(state, &connection, id.clone());
        let called = connection.call_as(&id, &request).await;
        if let Err(error) = &called {
            cancelling.failed(error);
        }
        match called {
            Ok(exchange) => {
                let from = connection.revision();
                let running = (connection, exchange, cancelling);
                let outcome = follow(state, source, ask, running, subscriber).await?;
                return Ok((from, outcome));
            }
            // The request was not processed: repeated once, in a new session (MCP-X-7) or in the
            // server's current era (MCP-X-81).
            Err(UpstreamError::SessionGone) if again => gone = Some(connection),
            Err(UpstreamError::Version(_)) if again => state.upstreams.forget(source).await,
            Err(error @ UpstreamError::Unauthorized { .. }) if token.is_some() => {
                let Some(token) = &token else {
                    return Err(error.into());
                };
                if !source.renew(state, person, token, renewed).await? {
                    return Err(error.into());
                }
                renewed = true;
                // An open link keeps the token that opened it.
                gone = matches!(connection, Connection::Link(_)).then_some(connection);
                continue;
            }
            Err(error) => {
                source
                    .note_scope(state, person, token.as_ref(), &error)
                    .await;
                return Err(error.into());
            }
        }
        again = false;
    }
}

/// The number of questions of the server in one call (MCP-X-24).
#[derive(Debug, Default)]
struct Rounds {
    rounds: u8,
    questions: u32,
}

impl Rounds {
    /// The average number of questions in a round: a server that asks without waiting is limited
    /// too.
    const QUESTIONS: u32 = 16;

    /// Counts a question. False if it exceeds the limit.
    fn go_on(&mut self, open: &OpenQuestions) -> bool {
        self.rounds = self.rounds.saturating_add(u8::from(open.is_none()));
        self.questions = self.questions.saturating_add(1);
        self.rounds <= MOST_ROUNDS && self.questions <= u32::from(MOST_ROUNDS) * Self::QUESTIONS
    }
}

async fn follow(
    state: &Backends,
    source: &Arc<UpstreamSource>,
    ask: &Forward<'_>,
    (connection, mut exchange, mut cancelling): (Connection, Exchange, Cancelling<'_>),
    mut subscriber: Option<Subscriber>,
) -> Result<Result<Raw, RpcError>, NoConversation> {
    // MCP-X-24: a question while none is open begins a round. Those of modern clients are counted
    // where their call is suspended.
    let mut rounds = Rounds::default();
    let open = OpenQuestions::default();
    // Questions of the server, until the server confirms their answers.
    let mut asking = FuturesUnordered::new();
    let mut questions: Vec<(RequestId, AbortHandle)> = Vec::new();
    loop {
        let event = tokio::select! {
            biased;
            Some(answered) = asking.next(), if !asking.is_empty() => {
                if let Ok(Err(error)) = answered {
                    let error: UpstreamError = error;
                    return Err(error.into());
                }
                continue;
            }
            Some(event) = next_of_get_stream(subscriber.as_mut()) => event,
            event = exchange.next() => match event {
                Ok(event) => event,
                // The server is silent because it waits for the client.
                Err(UpstreamError::Timeout(_)) if !asking.is_empty() => continue,
                Err(error) => {
                    cancelling.failed(&error);
                    return Err(error.into());
                }
            },
        };
        match event {
            ExchangeEvent::Answer(outcome) => {
                cancelling.running = None;
                return Ok(outcome);
            }
            // MCP-X-76: the carrier checks token and growth.
            ExchangeEvent::Progress(progress) => {
                if let Some(channel) = ask.channel.filter(|_| ask.wants_progress()) {
                    channel.progress(progress).await;
                }
            }
            ExchangeEvent::Log(params) => {
                if let Some(channel) = ask.channel
                    && ask.wants(&params)
                {
                    let method = Method::LogMessage.name();
                    let notice = jsonrpc::notification(method, Some(params.as_bytes()));
                    channel.notify(notice.into()).await;
                }
            }
            ExchangeEvent::Request { id, method, params } => {
                if ask.call.revision.era() == Era::Legacy && !rounds.go_on(&open) {
                    return Err(NoConversation::TooManyRounds);
                }
                let answered = answer(
                    state,
                    source,
                    ask,
                    &connection,
                    (id.clone(), method, params, open.begin()),
                );
                let (answering, handle) = abortable(answered);
                questions.push((id, handle));
                asking.push(answering);
            }
            ExchangeEvent::Notification { method, params } => {
                notified(state, source, ask, (&method, &params), &questions).await;
            }
        }
    }
}

/// Handles a notification of the server. `questions` are those that the client has open.
async fn notified(
    state: &Backends,
    source: &UpstreamSource,
    ask: &Forward<'_>,
    (method, params): (&str, &Raw),
    questions: &[(RequestId, AbortHandle)],
) {
    match Method::from_name(method) {
        Some(
            Method::ToolsListChanged | Method::PromptsListChanged | Method::ResourcesListChanged,
        ) => request_refresh(state, source),
        Some(Method::TaskStatus | Method::TaskNotification) => {
            state.hints.moved(source.id, params);
        }
        // MCP-X-7B: the server cancels its question.
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
        // MCP-EL-14, MCP-X-32: forwarded if the client's revision has it.
        Some(Method::ElicitationComplete) => {
            if let Some(channel) = ask.channel
                && channel.revision().facts().elicitation_ids
            {
                let notice = jsonrpc::notification(method, Some(params.as_bytes()));
                channel.notify(notice.into()).await;
            }
        }
        _ => {}
    }
}

/// The next message on the GET stream.
async fn next_of_get_stream(subscriber: Option<&mut Subscriber>) -> Option<ExchangeEvent> {
    match subscriber {
        Some(subscriber) => subscriber.next().await,
        None => std::future::pending().await,
    }
}
