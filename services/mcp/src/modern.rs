//! 2026-07-28: every request stands alone, and a lost connection is a cancellation (MCP-T-63).
//!
//! The request's own future polls the work, and hyper drops it when the client disconnects.

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
    ask::{
        Standing,
        talk::{self, Talk},
    },
    dispatch::{Context, Work, dispatch},
    endpoint::{Visit, bearer::Caller},
    error::McpError,
    last_word::{in_time, in_time_under, stopped},
    legacy::{
        call::{QUICK, Telling},
        shown_name,
    },
    payloads::About,
    state::McpState,
    stream::{self, open_for_listen},
    tools::{PreparedCall, Running},
    trace,
};

/// Answers a request that passed the ladder MCP-E-7 up to step 6.
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
    cx.capabilities = Some(&meta.client_capabilities);
    if let Some(info) = &meta.client_info {
        cx.client_name = shown_name(&info.name);
    }
    let outcome = match method {
        Method::SubscriptionsListen => listen(visit, &cx, request, meta).await,
        // A call has sent nothing yet, and writes its own error.
        _ => match in_time(&visit.state.last_words, dispatch(&cx, method, request))
            .await
            .unwrap_or_else(|| {
                let about = About::of_read(&request.id);
                Err(McpError::lost(Lost::Draining, &about, revision))
            }) {
            Ok(Work::Done(body)) => Ok(visit.answer(body)),
            Ok(Work::Call(mut call)) if call.talks() || call.may_become_task(meta) => {
                call.level = meta.log_level;
                let patience = call.may_become_task(meta).then(|| {
                    // MCP-X-54: a longer call becomes a task.
                    Duration::from_secs(visit.state.config.task_after_secs)
                });
                let talk = Talk {
                    standing: Standing::new(&cx, method, &request.id, &request.params),
                    capabilities: meta.client_capabilities.clone(),
                    continued: call.continued.take(),
                    progress: call.progress.clone(),
                    patience,
                };
                talk.run(visit, |asker| call.run(Some(asker))).await
            }
            Ok(Work::Call(call)) => run(visit, revision, call).await,
            Ok(Work::Pass(mut pass)) => {
                pass.level = meta.log_level;
                let talk = Talk {
                    standing: Standing::new(&cx, method, &request.id, &request.params),
                    capabilities: meta.client_capabilities.clone(),
                    continued: pass.continued.take(),
                    progress: pass.progress.clone(),
                    patience: None,
                };
                talk.run(visit, |asker| pass.run(Some(asker))).await
            }
            Ok(Work::Parked(retry)) => talk::go_on(visit, *retry).await,
            // `tasks/result` is unknown here (MCP-TX-12).
            Ok(Work::Wait(_)) => Err(cx.fail(&ErrorKind::Internal, &request.id)),
            Err(error) => Err(error),
        },
    };
    visit.count(Era::Modern, Some(method), &outcome);
    outcome.map_err(|error| error.answering(revision, Some(&request.id)))
}

/// Runs a call. A long one with progress is answered by a stream without ids.
///
/// That stream cannot be resumed, and its end is the end of the call.
async fn run(
    visit: &Visit<'_>,
    revision: Revision,
    mut call: Box<PreparedCall>,
) -> Result<Response, McpError> {
    let token = call.progress.take().filter(|_| visit.accepted.events);
    let Some(token) = token else {
        let about = call.about();
        let words = &visit.state.last_words;
        let done = in_time_under(words, &visit.caller, call.run(None)).await;
        let outcome = done.unwrap_or_else(|why| Err(McpError::lost(why, &about, revision)));
        return outcome.map(|body| visit.answer(body));
    };
    let begun = Instant::now();
    let about = call.about();
    let mut work = call.run(None);
    tokio::select! {
        biased;
        outcome = &mut work => return outcome.map(|body| visit.answer(body)),
        () = sleep(QUICK) => {}
    }
    let slow = SlowCall {
        work,
        state: visit.state.clone(),
        caller: Arc::clone(&visit.caller),
        about,
        telling: Telling::new(token, revision, begun),
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
    state: McpState,
    caller: Arc<Caller>,
    about: About,
    telling: Telling,
}

impl SlowCall {
    async fn next(mut self) -> Option<(Bytes, Option<Self>)> {
        tokio::select! {
            biased;
            outcome = &mut self.work => {
                let body = outcome.map_or_else(McpError::into_message, Some)?;
                Some((sse::message(None, &body).into(), None))
            }
            why = stopped(&self.state, &self.caller) => {
                let body = self.about.lost_in(Era::Modern, why);
                Some((sse::message(None, &body).into(), None))
            }
            notice = self.telling.next() => {
                Some((sse::message(None, &notice).into(), Some(self)))
            }
        }
    }
}

/// `subscriptions/listen` (MCP-SB-1…MCP-SB-10).
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
    open_for_listen(visit, &request.id, cx.revision, &filter, pass).await
}
