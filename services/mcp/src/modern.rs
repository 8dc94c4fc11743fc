//! 2026-07-28: every request stands alone, and a lost connection is a cancellation (T-63): the work is polled by the request's own
//! future, which hyper drops when the client goes away.

use std::time::Duration;

use axum::response::Response;
use bytes::Bytes;
use portolan_net::sse_body::SseBody;
use portolan_protocol::{
    error::ErrorKind,
    header::Headers,
    jsonrpc::Request,
    meta::RequestMeta,
    method::Method,
    revision::{Era, Revision},
    sse,
    subscription::Filter,
};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep},
};

use crate::{
    dispatch::{Context, Work, dispatch},
    endpoint::Visit,
    error::McpError,
    legacy::{
        call::{QUICK, Telling, hear, progress},
        shown_name,
    },
    stream::{self, open_for_listen},
    tools::{PreparedCall, Running},
    trace,
};

/// Answers a request that passed the ladder E-7 up to step 6.
pub(crate) async fn request(
    visit: &Visit<'_>,
    revision: Revision,
    method: Method,
    request: &Request,
    meta: &RequestMeta,
    headers: &Headers<'_>,
) -> Result<Response, McpError> {
    visit.note_method(method);
    if method == Method::ToolsCall && portolan_traces::is_on() {
        trace::call(visit, meta, revision);
    }
    let mut cx = visit.context(revision, None, false, Some(headers));
    if let Some(info) = &meta.client_info {
        cx.client_name = shown_name(&info.name);
    }
    let outcome = match method {
        Method::SubscriptionsListen => listen(visit, &cx, request, meta).await,
        _ => match dispatch(&cx, method, request).await {
            Ok(Work::Done(body)) => Ok(visit.answer(body)),
            Ok(Work::Call(mut call)) => {
                call.level = meta.log_level;
                run(visit, revision, call).await
            }
            Err(error) => Err(error),
        },
    };
    visit.count(Era::Modern, Some(method), &outcome);
    outcome
}

/// How long the head of an answer waits for what an upstream server has to say.
const HELD_BACK: Duration = Duration::from_secs(5);

/// Runs a call. One that takes long and whose progress is wanted is answered by a stream without ids: it cannot be resumed, and
/// its end is the end of the call.
async fn run(
    visit: &Visit<'_>,
    revision: Revision,
    mut call: Box<PreparedCall>,
) -> Result<Response, McpError> {
    let mut told = if visit.accepted.events {
        call.told()
    } else {
        None
    };
    let mut token = None;
    if told.is_none() {
        token = call.progress.take().filter(|_| visit.accepted.events);
        if token.is_none() {
            return call.run().await.map(|body| visit.answer(body));
        }
    }
    let begun = Instant::now();
    let mut work = call.run();
    let (mut first, mut outcome) = (None, None);
    // An upstream server may yet answer with an error that has an HTTP status of its own.
    let patience = if told.is_some() { HELD_BACK } else { QUICK };
    tokio::select! {
        biased;
        notice = hear(told.as_mut()) => first = Some(notice),
        answer = &mut work => {
            // What was told in the same moment makes a stream of it, too.
            first = told.as_mut().and_then(|told| told.try_recv().ok());
            if first.is_none() {
                return answer.map(|body| visit.answer(body));
            }
            outcome = Some(answer);
        }
        () = sleep(patience) => {}
    }
    let slow = SlowCall {
        work,
        outcome,
        first,
        told,
        telling: token.map(|token| Telling::new(token, revision, begun)),
    };
    let frames = futures_util::stream::unfold(Some(slow), |slow| async {
        match slow {
            Some(slow) => slow.next().await,
            None => None,
        }
    });
    Ok(SseBody::new(frames).into_response())
}

/// A call whose client is told how far it has come.
struct SlowCall {
    work: Running,
    /// It is over already.
    outcome: Option<Result<Vec<u8>, McpError>>,
    first: Option<Bytes>,
    /// By an upstream server.
    told: Option<mpsc::Receiver<Bytes>>,
    /// By ourselves.
    telling: Option<Telling>,
}

impl SlowCall {
    async fn next(mut self) -> Option<(Bytes, Option<Self>)> {
        let waiting = self.told.as_mut().and_then(|told| told.try_recv().ok());
        if let Some(notice) = self.first.take().or(waiting) {
            return Some((sse::message(None, &notice).into(), Some(self)));
        }
        if let Some(outcome) = self.outcome.take() {
            return Self::end(outcome);
        }
        tokio::select! {
            biased;
            notice = hear(self.told.as_mut()) => {
                Some((sse::message(None, &notice).into(), Some(self)))
            }
            outcome = &mut self.work => {
                self.outcome = Some(outcome);
                let last = self.told.as_mut().and_then(|told| told.try_recv().ok());
                match (last, self.outcome.take()) {
                    (Some(notice), outcome) => {
                        self.outcome = outcome;
                        Some((sse::message(None, &notice).into(), Some(self)))
                    }
                    (None, Some(outcome)) => Self::end(outcome),
                    (None, None) => None,
                }
            }
            notice = progress(self.telling.as_mut()) => {
                Some((sse::message(None, &notice).into(), Some(self)))
            }
        }
    }

    fn end(outcome: Result<Vec<u8>, McpError>) -> Option<(Bytes, Option<Self>)> {
        let body = outcome.map_or_else(McpError::into_message, Some)?;
        Some((sse::message(None, &body).into(), None))
    }
}

/// `subscriptions/listen` (SB-1…SB-10).
async fn listen(
    visit: &Visit<'_>,
    cx: &Context<'_>,
    request: &Request,
    meta: &RequestMeta,
) -> Result<Response, McpError> {
    cx.limit_request(&request.id).await?;
    if !visit.accepted.events {
        return Err(McpError::NotAcceptable);
    }
    let filter = Filter::read(&request.params, &meta.client_capabilities)
        .map_err(|kind: ErrorKind| cx.fail(&kind, &request.id))?;
    let pass = stream::pass(visit, cx.revision, Some(&request.id)).await?;
    open_for_listen(visit, &request.id, cx.revision, &filter, pass)
}
