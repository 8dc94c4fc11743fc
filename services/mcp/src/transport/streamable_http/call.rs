//! A call of a session: answered by one JSON body if it is quick, else by a stream that any node
//! can resume (STREAM-6, STREAM-9).

use std::{
    panic::AssertUnwindSafe,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::response::Response;
use bytes::Bytes;
use futures_util::{FutureExt, StreamExt, stream};
use portolan_cluster::{
    node::{Delivery, Lost, NewStream, Resumed, Running, StreamReader, StreamWriter},
    store::{Class, Cursor, Nonce, StreamKey},
};
use portolan_keys::{Keys, random};
use portolan_net::sse_body::SseBody;
use portolan_protocol::{
    error::ErrorKind,
    jsonrpc::{Raw, RequestId},
    logging::{self, Level},
    sse,
};
use tokio::{
    runtime::Handle,
    time::{Instant, sleep},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    call::{self, Call, progress::ProgressReporter, stream_permit::StreamPermit},
    caller::Caller,
    error::{self, McpError},
    features::work::Run,
    payloads::About,
    session::{event_id::EventId, written::SessionId},
    streams::tag::reconnect_after,
    transport::{RequestContext, streamable_http::messages::CallMessages},
};

/// How long a call may take before its answer becomes a stream that is resumable from its first
/// byte.
pub(crate) const QUICK: Duration = Duration::from_secs(1);

/// The same for a stream whose first event has no id (MCP-T-24).
///
/// A break before that event loses the answer. JSON is preferred for as long as no middlebox cuts a
/// silent connection.
const QUICK_UNPRIMED: Duration = Duration::from_secs(10);

/// Longest id of a running request, in bytes (STREAM-4).
const LONGEST_ID: usize = 256;

/// The reply to a request.
#[derive(Debug)]
pub(crate) enum Reply {
    /// One JSON-RPC response.
    Body(Vec<u8>),
    /// Events; the last one is the response.
    Stream(Response),
}

/// The key of a request in its session; `1` and `"1"` differ (STREAM-4).
pub(crate) fn rpc_key(id: &RequestId) -> String {
    match id.as_text() {
        Some(text) => format!("s:{text}"),
        None => format!("i:{id}"),
    }
}

type Outcome = Result<Vec<u8>, McpError>;

/// A call that has ended, or continues as the writer of a stream.
#[derive(Debug)]
pub(crate) enum Begun {
    Whole(Vec<u8>),
    Stream(Nonce, StreamReader),
}

/// Runs a call. A disconnect of the client does not end it (MCP-T-29).
pub(crate) async fn run(
    context: &RequestContext<'_>,
    run: Run,
    may_stream: bool,
) -> Result<Reply, McpError> {
    let call = Arc::clone(&run.call);
    let session = session_of(&call)?;
    let primed = is_primed(&session);
    let patience = may_stream.then_some(if primed { QUICK } else { QUICK_UNPRIMED });
    let (nonce, reader) = match begin(context, run, patience).await? {
        Begun::Whole(body) => return Ok(Reply::Body(body)),
        Begun::Stream(nonce, reader) => (nonce, reader),
    };
    let answer = Answer {
        keys: context.state.keys.clone(),
        caller: Arc::clone(&context.caller),
        session,
        nonce,
        request: Some(call.id.clone()),
        pass: None,
    };
    let start = Cursor {
        seq: 0,
        epoch: None,
    };
    let place = primed.then_some(start);
    Ok(Reply::Stream(answer.respond(context, reader, place)))
}

/// The session of a call. Requests that stand alone do not come here.
fn session_of(call: &Call) -> Result<SessionId, McpError> {
    let session = call.session.as_ref().map(|session| session.id);
    session.ok_or_else(|| call.fail(&ErrorKind::Internal))
}

/// Runs a call for at most `patience` to get a whole answer; without `patience`, to its end.
///
/// An answer that is not ready by then comes as a stream. It may go to another connection than the
/// request's (MCP-O-3).
pub(crate) async fn begin(
    context: &RequestContext<'_>,
    run: Run,
    patience: Option<Duration>,
) -> Result<Begun, McpError> {
    let call = Arc::clone(&run.call);
    let (state, session) = (context.state, session_of(&call)?);
    let SessionId { key, revision, .. } = session;
    let (deadline, about, talks) = (run.deadline(), run.about(), run.talks(state));
    let id = &call.id;
    let refuse = |text: &'static str| call.fail(&ErrorKind::InvalidRequest(text.into()));
    if id.as_text().is_some_and(|text| text.len() > LONGEST_ID) {
        return Err(refuse("The id of a request has at most 256 bytes."));
    }
    let Some(running) = state.node.run(key, rpc_key(id), deadline) else {
        return Err(refuse(
            "A request with this id is still running in this session.",
        ));
    };
    let begun = Instant::now();
    let (channel, mut messages) = if talks {
        let (channel, messages) = CallMessages::new(state, &call, &session, patience.is_some());
        // Boxed: a call without messages has a smaller future.
        (Some(channel), Some(Box::new(messages)))
    } else {
        (None, None)
    };
    let work = until_stopped(run.start(state, channel), running, Arc::clone(&call));
    let mut work = Unbroken::new(&state.tracker, work);
    let Some(patience) = patience else {
        let (outcome, _running) = tokio::select! {
            biased;
            done = &mut work => done,
            why = call.stopped() => {
                drop(work.into_work());
                return Err(McpError::lost(why, &about, revision));
            }
        };
        return outcome.map(Begun::Whole);
    };
    let done = tokio::select! {
        biased;
        done = &mut work => Some(done),
        () = has_message(messages.as_deref_mut()) => None,
        () = sleep(patience) => None,
    };
    let done = match done {
        Some((outcome, _running))
            if !messages.as_deref_mut().is_some_and(CallMessages::has_more) =>
        {
            return outcome.map(Begun::Whole);
        }
        done => done,
    };
    let nonce = Nonce(random::bytes().map_err(|_| McpError::Unavailable)?);
    let (writer, reader) = state.node.open(NewStream {
        stream: StreamKey {
            session: key,
            nonce,
        },
        principal: context.caller.session_principal(),
        rpc: rpc_key(id),
        deadline: deadline.saturating_sub(begun.elapsed()),
        about: about.to_bytes(),
        tenant: context.server.tenant,
        trace: call.trace.clone(),
    });
    let revoked = context.caller.revoked.clone();
    if let Some(done) = done {
        let work = Box::pin(std::future::ready(done));
        state
            .tracker
            .spawn(write(writer, work, revoked, None, messages));
    } else if let Some(work) = work.into_work() {
        // A call with messages sends its own progress.
        let token = call.progress.clone().filter(|_| !talks);
        let reporter = token.map(|token| ProgressReporter::new(token, revision, begun));
        state
            .tracker
            .spawn(write(writer, work, revoked, reporter, messages));
    }
    Ok(Begun::Stream(nonce, reader))
}

/// The work of a call until its end, its cancellation or its panic.
///
/// With a result comes the entry of the running request, which ends when it is dropped.
fn until_stopped(
    mut calling: call::Running,
    running: Running,
    call: Arc<Call>,
) -> impl Future<Output = (Outcome, Option<Running>)> + Send + 'static {
    let work = async move {
        let cancelled = running.cancelled.clone();
        let outcome = tokio::select! {
            biased;
            outcome = &mut calling => outcome,
            () = cancelled.cancelled() => Err(stopped(&running)),
        };
        (outcome, running)
    };
    AssertUnwindSafe(work).catch_unwind().map(move |ended| {
        let panicked = |_| {
            tracing::error!("a tool call panicked");
            (Err(call.fail(&ErrorKind::Internal)), None)
        };
        ended.map_or_else(panicked, |(outcome, running)| (outcome, Some(running)))
    })
}

/// The end of a cancelled call, which has no answer (MCP-CN-4).
///
/// If its session has ended, the error is "session not found" (MCP-T-45).
fn stopped(running: &Running) -> McpError {
    if running.is_session_over() {
        McpError::session_not_found()
    } else {
        McpError::Cancelled
    }
}

/// Whether streams of the session begin with an event that has only an id (MCP-T-24).
fn is_primed(session: &SessionId) -> bool {
    session.revision.facts().priming_event || session.draft
}

/// The next progress notification. Without a reporter: never.
pub(crate) async fn progress(reporter: Option<&mut ProgressReporter>) -> Bytes {
    match reporter {
        Some(reporter) => reporter.next().await,
        None => std::future::pending().await,
    }
}

/// Completes when a call has a message for its client. Without a channel: never.
async fn has_message(messages: Option<&mut CallMessages>) {
    match messages {
        Some(messages) => messages.received().await,
        None => std::future::pending().await,
    }
}

/// The next message of a call; its questions are sent meanwhile.
async fn next_message(messages: Option<&mut CallMessages>, writer: &StreamWriter) -> Bytes {
    match messages {
        Some(messages) => messages.next(writer).await,
        None => std::future::pending().await,
    }
}

/// Writes the stream of a call until it ends. Its client may disconnect and come back meanwhile.
async fn write(
    writer: StreamWriter,
    mut work: Pin<Box<impl Future<Output = (Outcome, Option<Running>)>>>,
    revoked: CancellationToken,
    mut reporter: Option<ProgressReporter>,
    mut messages: Option<Box<CallMessages>>,
) {
    let fenced = writer.fenced();
    loop {
        let notice = tokio::select! {
            biased;
            notice = next_message(messages.as_deref_mut(), &writer) => notice,
            (outcome, _running) = &mut work => {
                for notice in messages.as_deref_mut().map(CallMessages::rest).unwrap_or_default() {
                    // A failure is ignored: a client that misses the notification misses the answer
                    // too.
                    let _ = writer.push(Class::Notification, notice).await;
                }
                match outcome.map_or_else(McpError::into_message, Some) {
                    Some(body) => writer.finish(body.into()),
                    // A cancelled request has no response (MCP-CN-4).
                    None => writer.cancel(),
                }
                writer.committed().cancelled().await;
                return;
            }
            // Another node owns the stream, or this node may not continue: the work stops
            // (STREAM-0.4).
            () = fenced.cancelled() => return,
            // The caller has lost its access. A client that returns with a good token gets the
            // final error.
            () = revoked.cancelled() => {
                drop(work);
                writer.lose(Lost::Revoked);
                writer.committed().cancelled().await;
                return;
            }
            notice = progress(reporter.as_mut()) => notice,
        };
        if writer.push(Class::Notification, notice).await.is_err() {
            return;
        }
    }
}

/// The stream of an answer, as its client sees it.
struct Answer {
    keys: Keys,
    /// The reader of the stream: not beyond a revocation.
    caller: Arc<Caller>,
    session: SessionId,
    nonce: Nonce,
    request: Option<RequestId>,
    /// Set for a client that came back; the first connection has the permit of its call.
    pass: Option<StreamPermit>,
}

impl Answer {
    fn event_id(&self, cursor: Cursor, again: Option<[u8; 4]>) -> String {
        let id = EventId::Answer {
            nonce: self.nonce,
            cursor,
            request: self.request.clone(),
            again,
        };
        id.to_wire(&self.keys, self.session.key)
    }

    fn frame(&self, delivery: &Delivery) -> Bytes {
        let frame = match delivery {
            Delivery::Event {
                seq,
                epoch,
                payload,
                ..
            } => {
                let cursor = Cursor {
                    seq: *seq,
                    epoch: Some(*epoch),
                };
                sse::message(Some(&self.event_id(cursor, None)), payload)
            }
            Delivery::Unlogged { payload } => sse::message(None, payload),
            Delivery::Gap { after, before } => sse::message(None, &gap(*after, *before)),
        };
        Bytes::from(frame)
    }

    /// Sends the events of `reader` to the client.
    ///
    /// `place` is the client's position, sent as an event that only has an id. Each resumption
    /// gives it another id, since ids are unique in a session.
    fn respond(
        mut self,
        context: &RequestContext<'_>,
        reader: StreamReader,
        place: Option<Cursor>,
    ) -> Response {
        let first = if let Some(place) = place {
            let again = self.pass.as_ref().and_then(|_| random::bytes().ok());
            vec![
                Bytes::from(sse::retry(reconnect_after())),
                Bytes::from(sse::priming(&self.event_id(place, again))),
            ]
        } else {
            // Proxies forward the response head only with a first byte.
            vec![Bytes::from_static(sse::KEEP_ALIVE)]
        };
        let stopping = context.state.stopping.clone();
        let resumable = is_primed(&self.session);
        let over = Arc::clone(&self.caller).over();
        let mut pass = self.pass.take();
        let events = async move {
            // A client that comes back is not refused for lack of a permit, but waits for one
            // (REVIEW-F1).
            let is_in = match &mut pass {
                Some(pass) => pass.wait().await,
                None => true,
            };
            let frames = reader.map(move |delivery| {
                let _held = &pass;
                self.frame(&delivery)
            });
            stream::iter(is_in.then_some(frames)).flatten()
        };
        let events = events.flatten_stream().take_until(over);
        let first = stream::iter(first);
        if !resumable {
            return SseBody::new(first.chain(events)).into_response();
        }
        // A stopping node sends its clients to other nodes, which read the answer from the log
        // (STREAM-16.4). The clients have an id by then, or they could not come back.
        let events = events.take_until(stopping.clone().cancelled_owned());
        let farewell = stream::once(std::future::ready(())).filter_map(move |()| {
            let retry = || Bytes::from(sse::retry(reconnect_after()));
            std::future::ready(stopping.is_cancelled().then(retry))
        });
        SseBody::new(first.chain(events).chain(farewell)).into_response()
    }
}

/// The message for a client that has missed removed events (STREAM-9).
pub(crate) fn gap(after: u64, before: u64) -> Vec<u8> {
    let data = format!(r#"{{"kind":"gap","after":{after},"before":{before}}}"#);
    let data = Raw::parse(data).unwrap_or_else(|_| Raw::empty_object());
    logging::message(Level::Warning, Some("stream"), &data)
}

/// Resumes the stream of an answer on any node (STREAM-9).
pub(crate) async fn resume(
    context: &RequestContext<'_>,
    session: SessionId,
    nonce: Nonce,
    cursor: Cursor,
    request: Option<RequestId>,
    pass: StreamPermit,
) -> Result<Response, McpError> {
    let stream = StreamKey {
        session: session.key,
        nonce,
    };
    let principal = context.caller.session_principal();
    let (node, tenant) = (&context.state.node, context.server.tenant);
    let resumed = node.resume(tenant, stream, principal, cursor).await;
    match resumed.map_err(|_| McpError::Unavailable)? {
        Resumed::Unknown => Err(McpError::session_not_found()),
        // MCP-T-30: a GET is answered by a stream or by 405, and this stream is finished. Clients
        // take an empty stream for a broken one: official clients would open the session's own
        // stream in its place, once for each call that failed.
        Resumed::Finished => Err(McpError::NoStream),
        // Clients take an empty answer for a success, and retry after an HTTP error.
        Resumed::Gone => {
            if request.is_none() {
                let kind = ErrorKind::InvalidRequest("The stream is no longer available".into());
                return Err(McpError::of(&kind, session.revision, None));
            }
            let about = About {
                id: request,
                retryable: false,
            };
            Ok(error::one_event(&about.lost(Lost::Stream)))
        }
        Resumed::Reader(reader) => {
            let answer = Answer {
                keys: context.state.keys.clone(),
                caller: Arc::clone(&context.caller),
                session,
                nonce,
                request,
                pass: Some(pass),
            };
            // Clients forget their position if a resumed stream breaks before its first id, so it
            // is repeated.
            let place = is_primed(&session).then_some(cursor);
            Ok(answer.respond(context, reader, place))
        }
    }
}

/// Work that runs where it is awaited, and as a task of the process once the awaiter drops it.
///
/// A task from the start would wake another thread twice for every call.
struct Unbroken<F>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    work: Option<Pin<Box<F>>>,
    tracker: TaskTracker,
}

impl<F> Unbroken<F>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    /// Wraps `work`. If dropped before its end, it continues as a task.
    fn new(tracker: &TaskTracker, work: F) -> Self {
        Self {
            work: Some(Box::pin(work)),
            tracker: tracker.clone(),
        }
    }

    /// The work, for the caller to continue.
    fn into_work(mut self) -> Option<Pin<Box<F>>> {
        self.work.take()
    }
}

impl<F> Future for Unbroken<F>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let Some(work) = &mut self.work else {
            return Poll::Pending;
        };
        let outcome = std::task::ready!(work.as_mut().poll(cx));
        self.work = None;
        Poll::Ready(outcome)
    }
}

impl<F> Drop for Unbroken<F>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    fn drop(&mut self) {
        // At the end of the process there is no runtime for the task.
        if let (Some(work), Ok(runtime)) = (self.work.take(), Handle::try_current()) {
            self.tracker.spawn_on(work, &runtime);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    };

    use tokio::sync::Notify;

    use super::*;

    #[test]
    fn lg_6_the_only_log_message_of_ours_holds_two_numbers() {
        let said: serde_json::Value = serde_json::from_slice(&gap(3, 9)).unwrap();
        let params = serde_json::json!({"level": "warning", "logger": "stream", "data": {"kind": "gap", "after": 3, "before": 9}});
        assert_eq!(said["params"], params);
    }

    #[tokio::test]
    async fn t_29_work_that_nobody_awaits_any_more_goes_on() {
        let (tracker, gate) = (TaskTracker::new(), Arc::new(Notify::new()));
        let done = Arc::new(AtomicBool::new(false));
        let (opened, told) = (Arc::clone(&gate), Arc::clone(&done));
        let mut work = Unbroken::new(&tracker, async move {
            opened.notified().await;
            told.store(true, Ordering::Release);
        });
        assert!(futures_util::poll!(&mut work).is_pending());
        drop(work);
        gate.notify_one();
        tracker.close();
        tracker.wait().await;
        assert!(done.load(Ordering::Acquire));
    }
}
