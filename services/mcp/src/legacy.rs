//! The session era, 2025-03-26 to 2025-11-25: what a session's POST, GET and DELETE do.
//!
//! A lost connection is not a cancellation (T-29): a call goes on as a task of the process, and only `notifications/cancelled` or the
//! end of the session stops it.

pub(crate) mod running;
pub(crate) mod session;

use std::{panic::AssertUnwindSafe, sync::Arc};

use axum::response::Response;
use futures_util::FutureExt;
use http::{HeaderName, HeaderValue};
use portolan_protocol::{
    cancel::Cancelled,
    error::ErrorKind,
    header::{Headers, Mirroring},
    initialize::InitializeParams,
    jsonrpc::{self, Batch, BatchContent, Message, Notification, Request},
    method::Method,
    negotiate,
    revision::{Era, Revision},
};

use crate::{
    dispatch::{Context, Work, dispatch},
    endpoint::Visit,
    error::{self, McpError},
    instruments::Outcome,
    legacy::{
        running::Unbroken,
        session::{EventId, SessionId},
    },
    stream,
    tools::PreparedCall,
};

const SESSION_HEADER: HeaderName = HeaderName::from_static("mcp-session-id");

/// Longest name of a client that is kept for the log of calls.
const CLIENT_NAME_CHARS: usize = 64;

fn not_found() -> McpError {
    McpError::of(&ErrorKind::SessionNotFound, Revision::LATEST_LEGACY, None)
}

/// A client's name as the log shows it: printable and short, or nothing.
pub(crate) fn shown_name(name: &str) -> Option<Arc<str>> {
    let shown: String = name
        .chars()
        .filter(|c| !c.is_control())
        .take(CLIENT_NAME_CHARS)
        .collect();
    let shown = shown.trim();
    (!shown.is_empty()).then(|| shown.into())
}

/// Finds the session of an id, or the 404 that it has become (T-43, T-44).
fn find(visit: &Visit<'_>, text: &str) -> Result<SessionId, McpError> {
    let state = visit.state;
    let session = SessionId::read(text, &state.keys, &visit.caller, visit.server.id, visit.now)
        .ok_or_else(not_found)?;
    if state.sessions.is_ended(session.key, visit.now)
        || state.revocations.is_grant_revoked(session.grant)
    {
        return Err(not_found());
    }
    Ok(session)
}

/// `initialize`: no query, no upstream, no record; the id says it all (`clients.md` #3).
pub(crate) fn initialize(
    visit: &Visit<'_>,
    request: &Request,
    draft: bool,
) -> Result<Response, McpError> {
    let state = visit.state;
    let outcome = (|| {
        let params = InitializeParams::read(&request.params)
            .map_err(|kind| McpError::of(&kind, Revision::LATEST_LEGACY, Some(&request.id)))?;
        let cx = visit.context(params.revision, None, draft, None);
        cx.limit_request(&request.id)?;
        let session = SessionId::new(
            &visit.caller,
            params.revision,
            &params.capabilities,
            draft,
            visit.now,
        );
        let session = session.map_err(|_| McpError::Unavailable)?;
        if let Some(name) = shown_name(&params.client_info.name) {
            state.client_names.insert(visit.caller.principal, name);
        }
        let id = session.to_wire(&state.keys, &visit.caller, visit.server.id);
        let body = jsonrpc::response(&request.id, &visit.server.fixed(params.revision).initialize);
        let mut answer = visit.answer(body);
        answer.headers_mut().insert(
            SESSION_HEADER,
            HeaderValue::from_str(&id).map_err(|_| McpError::Unavailable)?,
        );
        Ok(answer)
    })();
    visit.count(Era::Legacy, Some(Method::Initialize), &outcome);
    outcome
}

/// One message of a session.
pub(crate) async fn message(
    visit: &Visit<'_>,
    session_id: &str,
    message: Message,
    headers: &Headers<'_>,
) -> Result<Response, McpError> {
    let session = find(visit, session_id)?;
    negotiate::check_session_version(headers, session.revision, message.request_id())?;
    let mirroring = if session.draft {
        Mirroring::Draft
    } else {
        Mirroring::Optional
    };
    negotiate::check_session_headers(&message, headers, session.revision, mirroring)?;
    match message {
        Message::Request(request) => {
            let cx = visit.context(
                session.revision,
                Some(&session),
                session.draft,
                Some(headers),
            );
            answer(visit, &cx, &session, request)
                .await
                .map(|body| visit.answer(body))
        }
        Message::Notification(notification) => {
            notified(visit, &session, &notification);
            Ok(error::accepted())
        }
        // Nobody asked anything yet: a late or mistaken answer is taken and forgotten (CN-6).
        Message::Response(_) => Ok(error::accepted()),
    }
}

/// A batch of 2025-03-26 (J-12…J-16).
pub(crate) async fn batch(
    visit: &Visit<'_>,
    session_id: &str,
    batch: &Batch,
    headers: &Headers<'_>,
) -> Result<Response, McpError> {
    let session = find(visit, session_id)?;
    negotiate::check_session_version(headers, session.revision, None)?;
    let BatchContent::Calls(messages) = negotiate::open_batch(batch, session.revision)? else {
        return Ok(error::accepted());
    };
    let cx = visit.context(
        session.revision,
        Some(&session),
        session.draft,
        Some(headers),
    );
    let mut requests = Vec::new();
    let mut asked = false;
    for message in messages {
        match message {
            Message::Request(request) => {
                asked = true;
                requests.push(answer(visit, &cx, &session, request));
            }
            Message::Notification(notification) => notified(visit, &session, &notification),
            Message::Response(_) => {}
        }
    }
    if !asked {
        return Ok(error::accepted());
    }
    let outcomes = futures_util::future::join_all(requests).await;
    let bodies: Vec<Vec<u8>> = outcomes
        .into_iter()
        .filter_map(|outcome| outcome.map_or_else(McpError::into_message, Some))
        .collect();
    // Every request of it was cancelled.
    if bodies.is_empty() {
        return Ok(error::accepted());
    }
    Ok(visit.answer(jsonrpc::batch_response(&bodies)))
}

async fn answer(
    visit: &Visit<'_>,
    cx: &Context<'_>,
    session: &SessionId,
    request: Request,
) -> Result<Vec<u8>, McpError> {
    let method = Method::of_client(&request.method, session.revision);
    if let Some(method) = method {
        visit.note_method(method);
    }
    let outcome = match method {
        Some(method) => match dispatch(cx, method, &request) {
            Ok(Work::Done(body)) => Ok(body),
            Ok(Work::Call(call)) => run(visit, session, *call).await,
            Err(error) => Err(error),
        },
        None => Err(cx.fail(
            &ErrorKind::MethodNotFound(request.method.to_string()),
            &request.id,
        )),
    };
    visit.count(Era::Legacy, method, &outcome);
    outcome
}

/// Runs a call that goes on when the client's connection breaks (T-29).
async fn run(
    visit: &Visit<'_>,
    session: &SessionId,
    call: PreparedCall,
) -> Result<Vec<u8>, McpError> {
    let state = visit.state;
    let id = call.id.clone();
    let Some(running) = state.running.begin(session.key, &id) else {
        let kind = ErrorKind::InvalidRequest(
            "A request with this id is still running in this session.".into(),
        );
        return Err(McpError::of(&kind, session.revision, Some(&id)));
    };
    let work = async move {
        let cancelled = running.cancelled.clone();
        tokio::select! {
            biased;
            outcome = call.run() => outcome,
            () = cancelled.cancelled() => Err(McpError::Cancelled),
        }
    };
    let internal = || {
        tracing::error!("a tool call panicked");
        McpError::of(&ErrorKind::Internal, session.revision, Some(&id))
    };
    let work = AssertUnwindSafe(work).catch_unwind();
    let outcome = Unbroken::new(&state.tracker, work).await;
    outcome.unwrap_or_else(|_panic| Err(internal()))
}

/// A notification: taken, whatever it is (J-8, J-9).
fn notified(visit: &Visit<'_>, session: &SessionId, notification: &Notification) {
    let method = Method::from_name(&notification.method)
        .filter(|method| method.from_client_in(session.revision));
    match method {
        Some(Method::Initialized) => {
            let (state, caller, now) = (visit.state, &visit.caller, visit.now);
            let mut body =
                stream::session_body(state, session, caller, visit.server.list_hash, now);
            body.initialized = true;
            stream::keep(state, session, caller, body, now);
        }
        Some(Method::Cancelled) => {
            if let Some(cancelled) = Cancelled::read(&notification.params) {
                visit
                    .state
                    .running
                    .cancel(session.key, &cancelled.request_id);
            }
        }
        _ => {}
    }
    visit
        .state
        .instruments
        .message(Era::Legacy, method, Outcome::Ok);
}

/// GET: the stream of a session (T-30). `Last-Event-ID` must be one of ours; as there is no log of events yet, a stream that is
/// resumed begins now, with a notice if the client missed one.
pub(crate) fn get(visit: &Visit<'_>, headers: &Headers<'_>) -> Result<Response, McpError> {
    let state = visit.state;
    let session = find(visit, &negotiate::admit_bodyless(headers)?)?;
    negotiate::check_session_version(headers, session.revision, None)?;
    let resumed = match headers.last_event_id.one() {
        None | Some(b"") => None,
        Some(_) => {
            let known = headers
                .event_id()
                .and_then(|text| EventId::read(text.trim(), &state.keys, session.key));
            let unknown = || {
                ErrorKind::InvalidRequest("Last-Event-ID is not an event of this session".into())
            };
            Some(known.ok_or_else(|| McpError::of(&unknown(), session.revision, None))?)
        }
    };
    // clients.md 7: a client that reconnects in a loop.
    let rate = state.rates.streams;
    state
        .buckets
        .take((b's', visit.caller.principal), rate, 1, visit.now)
        .map_err(|retry_after| McpError::Limited {
            id: None,
            revision: session.revision,
            retry_after,
        })?;
    stream::open_for_session(visit, session, resumed)
}

/// DELETE: the session is over (T-45).
pub(crate) fn delete(visit: &Visit<'_>, headers: &Headers<'_>) -> Result<Response, McpError> {
    let state = visit.state;
    let session = find(visit, &negotiate::admit_bodyless(headers)?)?;
    negotiate::check_session_version(headers, session.revision, None)?;
    state
        .sessions
        .end(session.key, session.created_at, visit.now);
    state.running.cancel_all(session.key);
    state.streams.end(portolan_cluster::End::Revoked, |tag| {
        tag.is_of_session(session.key)
    });
    Ok(error::ended())
}
