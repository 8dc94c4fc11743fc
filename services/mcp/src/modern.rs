//! 2026-07-28: every request stands alone, and a lost connection is a cancellation (T-63): the work is polled by the request's own
//! future, which hyper drops when the client goes away.

use axum::response::Response;
use portolan_protocol::{
    error::ErrorKind,
    header::Headers,
    jsonrpc::Request,
    meta::RequestMeta,
    method::Method,
    revision::{Era, Revision},
    subscription::Filter,
};

use crate::{
    dispatch::{Context, Work, dispatch},
    endpoint::Visit,
    error::McpError,
    legacy::shown_name,
    stream,
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
    let mut cx = visit.context(revision, None, false, Some(headers));
    if let Some(info) = &meta.client_info {
        cx.client_name = shown_name(&info.name);
    }
    let outcome = match method {
        Method::SubscriptionsListen => listen(visit, &cx, request, meta),
        _ => match dispatch(&cx, method, request) {
            Ok(Work::Done(body)) => Ok(visit.answer(body)),
            Ok(Work::Call(call)) => call.run().await.map(|body| visit.answer(body)),
            Err(error) => Err(error),
        },
    };
    visit.count(Era::Modern, Some(method), &outcome);
    outcome
}

/// `subscriptions/listen` (SB-1…SB-10).
fn listen(
    visit: &Visit<'_>,
    cx: &Context<'_>,
    request: &Request,
    meta: &RequestMeta,
) -> Result<Response, McpError> {
    cx.limit_request(&request.id)?;
    if !visit.accepted.events {
        return Err(McpError::NotAcceptable);
    }
    let filter = Filter::read(&request.params, &meta.client_capabilities)
        .map_err(|kind: ErrorKind| cx.fail(&kind, &request.id))?;
    stream::open_for_listen(visit, &request.id, cx.revision, &filter)
}
