//! 2026-07-28: every request stands alone, and a lost connection is a cancellation (MCP-T-63).
//!
//! The request's own future polls the work, and hyper drops it when the client disconnects.

pub(crate) mod call;

use std::{pin::pin, sync::Arc};

use axum::response::Response;
use bytes::Bytes;
use portolan_cluster::node::Lost;
use portolan_net::sse_body::SseBody;
use portolan_protocol::{
    error::ErrorKind,
    jsonrpc::Request,
    meta::RequestMeta,
    method::Method,
    revision::{Era, Revision},
    sse,
    subscription::Filter,
};
use tokio::time::{Instant, sleep};

use crate::{
    call::{Call, Running, progress::ProgressReporter},
    error::McpError,
    features::{
        dispatch,
        work::{Job, Run, Work},
    },
    payloads::About,
    shutdown::{in_time, in_time_under},
    streams::open::{self, open_for_listen},
    transport::{RequestContext, streamable_http::call::QUICK, trace_call},
};

/// Answers a request that passed the ladder MCP-E-7 up to step 6.
pub(crate) async fn request(
    context: &RequestContext<'_>,
    revision: Revision,
    method: Method,
    request: Request,
    meta: RequestMeta,
) -> Result<Response, McpError> {
    context.note_method(method);
    if method == Method::ToolsCall && portolan_traces::is_on() {
        trace_call(context, &meta, revision);
    }
    let id = request.id.clone();
    let call = context.stateless_call(revision, method, request, meta);
    let outcome = answer(context, call).await;
    context.count(Era::Modern, Some(method), &outcome);
    outcome.map_err(|error| error.answering(revision, Some(&id)))
}

async fn answer(context: &RequestContext<'_>, call: Box<Call>) -> Result<Response, McpError> {
    if call.method == Method::SubscriptionsListen {
        return listen(context, &call).await;
    }
    // A call has sent nothing yet, and writes its own error.
    let about = About {
        retryable: true,
        ..call.about()
    };
    let revision = call.revision;
    let work = {
        // Pinned here: `in_time` would hold it twice.
        let dispatched = pin!(dispatch(context.state, call, context.headers));
        in_time(&context.state.shutdown, dispatched).await
    };
    match work.unwrap_or_else(|| Err(McpError::lost(Lost::Draining, &about, revision)))? {
        Work::Done(body) => Ok(context.answer(body)),
        Work::Run(Run {
            call,
            job: Job::Retry(retry),
        }) => Box::pin(call::go_on(context, call, retry)).await,
        Work::Run(run) if run.talks(context.state) || run.may_become_task() => {
            call::run(context, run).await
        }
        Work::Run(run) => run_silent(context, run).await,
    }
}

/// Runs a call that sends no messages. A long one with progress is answered by a stream without
/// ids.
///
/// That stream cannot be resumed, and its end is the end of the call.
async fn run_silent(context: &RequestContext<'_>, run: Run) -> Result<Response, McpError> {
    let (call, about, revision) = (Arc::clone(&run.call), run.about(), run.call.revision);
    let token = call.progress.clone();
    let token = token.filter(|_| context.accepted.events);
    let Some(token) = token else {
        let words = &context.state.shutdown;
        let work = run.start(context.state, None);
        let done = in_time_under(words, &call.caller, work).await;
        let outcome = done.unwrap_or_else(|why| Err(McpError::lost(why, &about, revision)));
        return outcome.map(|body| context.answer(body));
    };
    let begun = Instant::now();
    let mut work = run.start(context.state, None);
    tokio::select! {
        biased;
        outcome = &mut work => return outcome.map(|body| context.answer(body)),
        () = sleep(QUICK) => {}
    }
    let slow = SlowCall {
        work,
        call,
        about,
        reporter: ProgressReporter::new(token, revision, begun),
    };
    let frames = futures_util::stream::unfold(Some(slow), |slow| async {
        match slow {
            Some(slow) => slow.next().await,
            None => None,
        }
    });
    Ok(SseBody::new(frames).into_response())
}

/// A call whose client receives progress.
struct SlowCall {
    work: Running,
    call: Arc<Call>,
    about: About,
    reporter: ProgressReporter,
}

impl SlowCall {
    async fn next(mut self) -> Option<(Bytes, Option<Self>)> {
        tokio::select! {
            biased;
            outcome = &mut self.work => {
                let body = outcome.map_or_else(McpError::into_message, Some)?;
                Some((sse::message(None, &body).into(), None))
            }
            why = self.call.stopped() => {
                let body = self.about.lost_in(Era::Modern, why);
                Some((sse::message(None, &body).into(), None))
            }
            notice = self.reporter.next() => {
                Some((sse::message(None, &notice).into(), Some(self)))
            }
        }
    }
}

/// `subscriptions/listen` (MCP-SB-1…MCP-SB-10).
async fn listen(context: &RequestContext<'_>, call: &Call) -> Result<Response, McpError> {
    call.limit_request().await?;
    if !context.accepted.events {
        return Err(McpError::NotAcceptable);
    }
    let filter = Filter::read(&call.params, &call.client.capabilities)
        .map_err(|kind: ErrorKind| call.fail(&kind))?;
    let pass = open::pass(&context.opening(), call.revision, Some(&call.id)).await?;
    open_for_listen(&context.opening(), &call.id, call.revision, &filter, pass).await
}
