//! 2026-07-28: every request stands alone, and a lost connection is a cancellation (MCP-T-63).
//!
//! The request's own future polls the work, and hyper drops it when the client disconnects.

pub(crate) mod call;

use std::{sync::Arc, time::Duration};

use axum::response::Response;
use bytes::Bytes;
use portolan_cluster::node::Lost;
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
use tokio::time::{Instant, sleep};

use crate::{
    call::{Running, progress::ProgressReporter},
    caller::Caller,
    error::McpError,
    features::{Work, context::Context, dispatch, tools::PreparedCall},
    payloads::About,
    shutdown::{in_time, in_time_under, stopped},
    streams::open::{self, open_for_listen},
    transport::{
        RequestContext, services::TransportServices, shown_name, stateless::call::StatelessCall,
        streamable_http::call::QUICK, trace_call,
    },
};

/// Answers a request that passed the ladder MCP-E-7 up to step 6.
pub(crate) async fn request(
    context: &RequestContext<'_>,
    revision: Revision,
    method: Method,
    request: &Request,
    meta: &RequestMeta,
    headers: &Headers<'_>,
) -> Result<Response, McpError> {
    context.note_method(method);
    if method == Method::ToolsCall && portolan_traces::is_on() {
        trace_call(context, meta, revision);
    }
    let mut cx = context.call_context(revision, None, false, Some(headers));
    cx.capabilities = Some(&meta.client_capabilities);
    if let Some(info) = &meta.client_info {
        cx.client_name = shown_name(&info.name);
    }
    let outcome = match method {
        Method::SubscriptionsListen => listen(context, &cx, request, meta).await,
        // A call has sent nothing yet, and writes its own error.
        _ => match in_time(&context.state.shutdown, dispatch(&cx, method, request))
            .await
            .unwrap_or_else(|| {
                let about = About::of_read(&request.id);
                Err(McpError::lost(Lost::Draining, &about, revision))
            }) {
            Ok(Work::Done(body)) => Ok(context.answer(body)),
            Ok(Work::Call(mut call)) if call.talks() || call.may_become_task(meta) => {
                call.level = meta.log_level;
                let patience = call.may_become_task(meta).then(|| {
                    // MCP-X-54: a longer call becomes a task.
                    Duration::from_secs(context.state.config.task_after_secs)
                });
                let client_call = StatelessCall {
                    scope: cx.scope(method, &request.id, &request.params),
                    capabilities: meta.client_capabilities.clone(),
                    continued: call.continued.take(),
                    progress: call.progress.clone(),
                    patience,
                };
                client_call
                    .run(context, |channel| call.run(Some(channel)))
                    .await
            }
            Ok(Work::Call(call)) => run(context, revision, call).await,
            Ok(Work::Pass(mut pass)) => {
                pass.level = meta.log_level;
                let client_call = StatelessCall {
                    scope: cx.scope(method, &request.id, &request.params),
                    capabilities: meta.client_capabilities.clone(),
                    continued: pass.continued.take(),
                    progress: pass.progress.clone(),
                    patience: None,
                };
                client_call
                    .run(context, |channel| pass.run(Some(channel)))
                    .await
            }
            Ok(Work::Suspended(retry)) => call::go_on(context, *retry).await,
            // `tasks/result` is unknown here (MCP-TX-12).
            Ok(Work::Wait(_)) => Err(cx.fail(&ErrorKind::Internal, &request.id)),
            Err(error) => Err(error),
        },
    };
    context.count(Era::Modern, Some(method), &outcome);
    outcome.map_err(|error| error.answering(revision, Some(&request.id)))
}

/// Runs a call. A long one with progress is answered by a stream without ids.
///
/// That stream cannot be resumed, and its end is the end of the call.
async fn run(
    context: &RequestContext<'_>,
    revision: Revision,
    mut call: Box<PreparedCall>,
) -> Result<Response, McpError> {
    let token = call.progress.take().filter(|_| context.accepted.events);
    let Some(token) = token else {
        let about = call.about();
        let words = &context.state.shutdown;
        let done = in_time_under(words, &context.caller, call.run(None)).await;
        let outcome = done.unwrap_or_else(|why| Err(McpError::lost(why, &about, revision)));
        return outcome.map(|body| context.answer(body));
    };
    let begun = Instant::now();
    let about = call.about();
    let mut work = call.run(None);
    tokio::select! {
        biased;
        outcome = &mut work => return outcome.map(|body| context.answer(body)),
        () = sleep(QUICK) => {}
    }
    let slow = SlowCall {
        work,
        state: context.state.clone(),
        caller: Arc::clone(&context.caller),
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
    state: TransportServices,
    caller: Arc<Caller>,
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
            why = stopped(&self.state.shutdown, &self.caller) => {
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
async fn listen(
    context: &RequestContext<'_>,
    cx: &Context<'_>,
    request: &Request,
    meta: &RequestMeta,
) -> Result<Response, McpError> {
    cx.limit_request(&request.id).await?;
    if !context.accepted.events {
        return Err(McpError::NotAcceptable);
    }
    let filter = Filter::read(&request.params, &meta.client_capabilities)
        .map_err(|kind: ErrorKind| cx.fail(&kind, &request.id))?;
    let pass = open::pass(&context.opening(), cx.revision, Some(&request.id)).await?;
    open_for_listen(&context.opening(), &request.id, cx.revision, &filter, pass).await
}
