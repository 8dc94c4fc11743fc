//! The session era, 2025-03-26 to 2025-11-25: POST, GET and DELETE of a session.
//!
//! A lost connection is not a cancellation (MCP-T-29): a call continues as a task of the process.
//! Only `notifications/cancelled` or the end of the session stops it.

pub(crate) mod call;
pub(crate) mod messages;

use axum::response::Response as Answer;
use http::{HeaderName, HeaderValue};
use portolan_model::live_session::MomentKind;
use portolan_protocol::{
    cancel::Cancelled,
    error::ErrorKind,
    header::{Headers, Mirroring},
    initialize::InitializeParams,
    jsonrpc::{self, Batch, BatchContent, Message, Notification, Request, Response},
    method::Method,
    negotiate,
    revision::{Era, Revision},
};

use crate::{
    backends::{
        services::Backends,
        upstream::sessions::{end_sessions, roots_changed},
    },
    caller::ClientName,
    error::{self, McpError},
    features::{dispatch, tasks, work::Work},
    instruments,
    limits::openings::StreamStart,
    nodes::notify,
    session::{LiveSession, event_id::EventId, written::SessionId},
    streams::open,
    transport::{RequestContext, streamable_http::call::Reply, trace_message},
};

const SESSION_HEADER: HeaderName = HeaderName::from_static("mcp-session-id");

/// Verifies a session id without the store, or returns the 404 for it (MCP-T-43, MCP-T-44).
pub(crate) fn read_id(context: &RequestContext<'_>, text: &str) -> Result<SessionId, McpError> {
    let (state, caller) = (context.state, &context.caller);
    SessionId::read(text, &state.keys, caller, context.server.id, context.now)
        .filter(|id| !state.revocations.is_grant_revoked(id.grant))
        .ok_or_else(McpError::session_not_found)
}

/// The session of an authentic id, unless it was ended.
pub(crate) async fn live(
    context: &RequestContext<'_>,
    id: SessionId,
) -> Result<LiveSession, McpError> {
    let marks = context.server.marks;
    let _begin = context.trace.get().and_then(|trace| trace.part("begin"));
    let session = LiveSession::find(context.state, id, &context.caller, marks, context.now)
        .await?
        .ok_or_else(McpError::session_not_found)?;
    let facts = || context.session_facts(id.revision, Some(id.created_at));
    context.state.sessions.used(id.key, context.now, facts);
    Ok(session)
}

async fn find(context: &RequestContext<'_>, text: &str) -> Result<LiveSession, McpError> {
    live(context, read_id(context, text)?).await
}

/// `initialize`: no query, no upstream, no record; the id holds everything (CLIENT-3).
pub(crate) async fn initialize(
    context: &RequestContext<'_>,
    request: &Request,
    draft: bool,
) -> Result<Answer, McpError> {
    let state = context.state;
    let outcome = async {
        let params = InitializeParams::read(&request.params)
            .map_err(|kind| McpError::of(&kind, Revision::LATEST_LEGACY, Some(&request.id)))?;
        let call = context.initialize_call(params.revision, request);
        call.limit_request().await?;
        // Its next request would fail (REVIEW-F4).
        if !state.node.is_store_there().await {
            return Err(McpError::Unavailable);
        }
        // STREAM-17.2: a nearly full store accepts new sessions only from tenants with few of them.
        if state.node.is_store_full()
            && state.session_quota.is_over_its_share(context.server.tenant)
        {
            state.admission.session_refused();
            let kind = ErrorKind::TooMany("sessions");
            return Err(McpError::of(&kind, params.revision, Some(&request.id)));
        }
        let session = SessionId::new(
            &context.caller,
            params.revision,
            &params.capabilities,
            context.now,
        );
        let session = SessionId {
            draft,
            ..session.map_err(|_| McpError::Unavailable)?
        };
        note_opened(context, &session, &params);
        let id = session.to_wire(&state.keys, &context.caller, context.server.id);
        let body = jsonrpc::response(
            &request.id,
            &context.server.fixed(params.revision).initialize,
        );
        let mut answer = context.answer(body);
        answer.headers_mut().insert(
            SESSION_HEADER,
            HeaderValue::from_str(&id).map_err(|_| McpError::Unavailable)?,
        );
        Ok(answer)
    }
    .await;
    context.count(Era::Legacy, Some(Method::Initialize), &outcome);
    outcome.map_err(|error| error.answering(Revision::LATEST_LEGACY, Some(&request.id)))
}

/// Notes a new session for people, and the name of its client.
pub(crate) fn note_opened(
    context: &RequestContext<'_>,
    session: &SessionId,
    params: &InitializeParams,
) {
    let board = &context.state.sessions;
    let facts = || context.session_facts(params.revision, Some(session.created_at));
    board.used(session.key, context.now, facts);
    board.note(session.key, context.now, MomentKind::Opened, None);
    let (names, principal) = (&context.state.client_names, context.caller.principal);
    if let Some(name) = ClientName::again(&params.client_info, names.get(&principal).as_ref()) {
        names.insert(principal, name.clone());
        board.introduced(session.key, name);
    }
}

/// Handles one message of a session.
pub(crate) async fn message(
    context: &RequestContext<'_>,
    session_id: &str,
    message: Message,
    headers: &Headers<'_>,
) -> Result<Answer, McpError> {
    let id = read_id(context, session_id)?;
    if portolan_traces::is_on() {
        trace_message(context, &message, id.revision);
    }
    let session = live(context, id)
        .await
        .map_err(|error| error.answering(id.revision, message.request_id()))?;
    let SessionId {
        revision, draft, ..
    } = session.id;
    negotiate::check_session_version(headers, revision, message.request_id())?;
    let mirroring = if draft {
        Mirroring::Draft
    } else {
        Mirroring::Optional
    };
    negotiate::check_session_headers(&message, headers, revision, mirroring)?;
    match message {
        Message::Request(request) => {
            match answer(context, session, request, context.accepted.events).await? {
                Reply::Body(body) => Ok(context.answer(body)),
                Reply::Stream(stream) => Ok(stream),
            }
        }
        Message::Notification(notification) => {
            notified(context, &session, &notification).await?;
            Ok(error::accepted())
        }
        Message::Response(response) => {
            answered(context, &session, &response).await?;
            Ok(error::accepted())
        }
    }
}

/// Handles a batch of 2025-03-26 (MCP-J-12…MCP-J-16).
pub(crate) async fn batch(
    context: &RequestContext<'_>,
    session_id: &str,
    batch: &Batch,
    headers: &Headers<'_>,
) -> Result<Answer, McpError> {
    let session = find(context, session_id).await?;
    let revision = session.id.revision;
    negotiate::check_session_version(headers, revision, None)?;
    let messages = match negotiate::open_batch(batch, revision)? {
        BatchContent::Calls(messages) => messages,
        BatchContent::Responses(responses) => {
            for response in &responses {
                answered(context, &session, response).await?;
            }
            return Ok(error::accepted());
        }
    };
    if portolan_traces::is_on() {
        // All calls of a batch have one trace, which its first call names.
        for message in &messages {
            trace_message(context, message, revision);
        }
    }
    let mut requests = Vec::new();
    let mut asked = false;
    for message in messages {
        match message {
            Message::Request(request) => {
                asked = true;
                requests.push(answer(context, session.clone(), request, false));
            }
            Message::Notification(notification) => {
                notified(context, &session, &notification).await?;
            }
            Message::Response(_) => {}
        }
    }
    if !asked {
        return Ok(error::accepted());
    }
    let outcomes = futures_util::future::join_all(requests).await;
    let bodies: Vec<Vec<u8>> = outcomes
        .into_iter()
        .filter_map(|outcome| match outcome {
            Ok(Reply::Body(body)) => Some(body),
            Ok(Reply::Stream(_)) => None,
            Err(error) => error.into_message(),
        })
        .collect();
    // Every request of the batch was cancelled.
    if bodies.is_empty() {
        return Ok(error::no_events());
    }
    Ok(context.answer(jsonrpc::batch_response(&bodies)))
}

async fn answer(
    context: &RequestContext<'_>,
    session: LiveSession,
    request: Request,
    may_stream: bool,
) -> Result<Reply, McpError> {
    let (id, revision, key) = (request.id.clone(), session.id.revision, session.id.key);
    let method = Method::of_client(&request.method, revision);
    let outcome = match method {
        Some(method) => {
            context.note_method(method);
            let call = context.session_call(session, method, request);
            match dispatch(context.state, call, context.headers).await {
                Ok(Work::Done(body)) => Ok(Reply::Body(body)),
                Ok(Work::Run(run)) => match run.call.task {
                    Some(wish) => Box::pin(tasks::begin(context.state, key, run, wish))
                        .await
                        .map(Reply::Body),
                    None => call::run(context, run, may_stream).await,
                },
                Err(error) => Err(error),
            }
        }
        None => {
            let kind = ErrorKind::MethodNotFound(request.method.to_string());
            Err(McpError::of(&kind, revision, Some(&id)))
        }
    };
    context.count(Era::Legacy, method, &outcome);
    outcome.map_err(|error| error.answering(revision, Some(&id)))
}

/// Sends the client's answer to the node that waits for it (MCP-N-3, STREAM-14).
///
/// An answer without a waiting question, or a second one, is accepted and ignored (MCP-CN-6).
pub(crate) async fn answered(
    context: &RequestContext<'_>,
    session: &LiveSession,
    response: &Response,
) -> Result<(), McpError> {
    let Some((question, payload)) = messages::to_payload(response) else {
        return Ok(());
    };
    let (key, principal) = (session.id.key, context.caller.session_principal());
    let board = &context.state.sessions;
    board.note(key, context.now, MomentKind::Answer, None);
    let routed = context
        .state
        .node
        .answer(
            context.server.tenant,
            key,
            principal,
            &question,
            payload.into(),
        )
        .await;
    routed.map(|_| ()).map_err(|_| McpError::Unavailable)
}

/// Accepts every notification, and handles the known ones (MCP-J-8, MCP-J-9).
pub(crate) async fn notified(
    context: &RequestContext<'_>,
    session: &LiveSession,
    notification: &Notification,
) -> Result<(), McpError> {
    let (state, caller) = (context.state, &context.caller);
    let method = Method::from_name(&notification.method)
        .filter(|method| method.from_client_in(session.id.revision));
    let (board, kind) = (&state.sessions, MomentKind::Notification);
    board.note(session.id.key, context.now, kind, method);
    let outcome = match method {
        Some(Method::Initialized) => {
            session
                .change(state, caller, context.now, |body| body.initialized = true)
                .await
        }
        Some(Method::Cancelled) => match Cancelled::read(&notification.params) {
            Some(cancelled) => {
                let rpc = call::rpc_key(&cancelled.request_id);
                let (key, principal) = (session.id.key, caller.session_principal());
                let routed = state.node.cancel(key, principal, &rpc).await;
                // Unknown and finished requests are ignored (MCP-CN-6).
                routed.map(|_| ()).map_err(|_| McpError::Unavailable)
            }
            None => Ok(()),
        },
        // MCP-X-7J: progress for a question of a call.
        Some(Method::Progress) => {
            let token = notification.params.text("progressToken");
            let (server, params) = (&context.server, notification.params.raw());
            // Ignore progress for unknown tokens; it does not count against the rate limit.
            let asked = token.and_then(|token| notify::asked(state, session.id.key, &token));
            if let (Some(asked), Some(params)) = (asked, params) {
                // Progress above the rate is dropped (MCP-PP-3); no request fails because of it.
                if state.admission.take_progress(&caller.progress).await {
                    notify::progress(state, server.tenant, asked, params).await;
                }
            }
            Ok(())
        }
        // MCP-X-3G: the upstream servers receive it too.
        Some(Method::RootsListChanged) => {
            let sources = context.server.upstreams();
            if !sources.is_empty() {
                let state: &Backends = state;
                let state = state.clone();
                let of_session = session.of(&context.caller, context.now);
                let tracker = state.tracker.clone();
                tracker.spawn(roots_changed(state, sources, of_session));
            }
            Ok(())
        }
        _ => Ok(()),
    };
    context.count(Era::Legacy, method, &outcome);
    outcome
}

/// GET: the stream of a session (MCP-T-30), or the rest of an answer whose stream broke (MCP-T-36).
///
/// `Last-Event-ID` must be one of ours.
pub(crate) async fn get(
    context: &RequestContext<'_>,
    headers: &Headers<'_>,
) -> Result<Answer, McpError> {
    let state = context.state;
    let id = read_id(context, &negotiate::admit_bodyless(headers)?)?;
    let SessionId { key, revision, .. } = id;
    negotiate::check_session_version(headers, revision, None)?;
    // TEST-B8: forged ids cause no access to the store.
    let resumed = match headers.last_event_id.one() {
        None | Some(b"") => None,
        Some(_) => {
            let known = headers
                .event_id()
                .and_then(|text| EventId::read(text.trim(), &state.keys, key));
            let unknown = || {
                instruments::forged_event_id();
                let kind = "Last-Event-ID is not an event of this session".into();
                McpError::of(&ErrorKind::InvalidRequest(kind), revision, None)
            };
            Some(known.ok_or_else(unknown)?)
        }
    };
    let start = match resumed {
        Some(_) => StreamStart::Resumed,
        None => StreamStart::New,
    };
    let pass = open::let_in(&context.opening(), revision, start).await?;
    let session = match live(context, id).await {
        // The store is away, and this node does not know the session. A client that is refused
        // twice gives up, so its connection is held (STREAM-9). It gets no event before the
        // store confirms that the session exists and is its own.
        Err(McpError::Unavailable) if matches!(resumed, Some(EventId::Answer { .. })) => None,
        session => Some(session?),
    };
    let kind = match resumed {
        Some(_) => MomentKind::Resumed,
        None => MomentKind::Stream,
    };
    state.sessions.note(key, context.now, kind, None);
    match (resumed, session) {
        (
            Some(EventId::Answer {
                nonce,
                cursor,
                request,
                ..
            }),
            _,
        ) => call::resume(context, id, nonce, cursor, request, pass).await,
        (Some(EventId::News { stream, marks, .. }), Some(session)) => {
            open::open_for_session(&context.opening(), &session, Some((stream, marks)), pass)
        }
        (None, Some(session)) => open::open_for_session(&context.opening(), &session, None, pass),
        (_, None) => Err(McpError::Unavailable),
    }
}

/// DELETE: ends the session on every node (MCP-T-45).
pub(crate) async fn delete(
    context: &RequestContext<'_>,
    headers: &Headers<'_>,
) -> Result<Answer, McpError> {
    let session = find(context, &negotiate::admit_bodyless(headers)?).await?;
    negotiate::check_session_version(headers, session.id.revision, None)?;
    let (key, life) = (session.id.key, session.id.life(context.now));
    context
        .state
        .node
        .end(key, context.caller.session_principal(), life)
        .await
        .map_err(|_| McpError::Unavailable)?;
    context.state.sessions.ended(key, context.now);
    let sources = context.server.upstreams();
    if !sources.is_empty() {
        let over = session.of(&context.caller, context.now);
        let state: &Backends = context.state;
        let state = state.clone();
        let tracker = state.tracker.clone();
        tracker.spawn(end_sessions(state, sources, over));
    }
    Ok(error::ended())
}
