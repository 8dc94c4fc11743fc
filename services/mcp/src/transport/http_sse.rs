//! HTTP+SSE, the transport of 2024-11-05 (MCP-O-1…MCP-O-7): a GET opens a stream, and POSTs send
//! messages.
//!
//! The first event gives the address for POSTs. All messages of the server, answers included, come
//! on the stream.
//!
//! The session is the stream: it ends with it, and its running calls are cancelled. It has no log
//! and no event ids. A POST may reach any node, which does the work. The answer of a call is a
//! stream of the cluster as in the session era ([`call::begin`]). The node with the connection
//! receives the name of that stream and reads it, so only the name passes between the nodes.

pub(crate) mod connection;
pub(crate) mod connections;

use std::time::Duration;

use axum::{body::Body, response::Response};
use bytes::Bytes;
use http::{HeaderMap, request::Parts};
use portolan_cluster::{
    SessionKey,
    node::{NewStream, SessionError, StreamReader},
    store::{Fresh, NodeId, Nonce, StreamKey, Update, Version},
};
use portolan_keys::random;
use portolan_net::layers::body::{self, BODY_WITHIN, BodyError};
use portolan_protocol::{
    capability::ClientCapabilities,
    error::ErrorKind,
    header::Headers,
    initialize::InitializeParams,
    jsonrpc::{self, BatchContent, Body as RpcBody, MAX_BODY_BYTES, Message, Request, RequestId},
    method::Method,
    negotiate,
    revision::{Era, Revision},
};

use crate::{
    error::{self, McpError},
    features::{dispatch, work::Work},
    limits::openings::StreamStart,
    payloads::About,
    session::{LiveSession, written::SessionId},
    streams::open,
    transport::{
        RequestContext, check_body,
        http_sse::{connection::SseConnection, connections::Arrival},
        streamable_http::{
            self,
            call::{self, Begun},
        },
    },
};

/// How long a connection may take to accept an answer.
const ROOM_WITHIN: Duration = Duration::from_secs(10);

/// How often the node with the connection is notified, and how long each acknowledgement may take.
const RINGS: usize = 5;

const HEARD_WITHIN: Duration = Duration::from_secs(1);

/// How long an answer that is ready may wait for its reader.
const FETCHED_WITHIN: Duration = Duration::from_secs(30);

/// The record of a connection beside its session: its node, and the negotiated revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Card {
    node: NodeId,
    /// `None` before `initialize`.
    negotiated: Option<(Revision, u8)>,
}

impl Card {
    /// The key of the record, which differs from that of the session's own record.
    fn key(session: SessionKey) -> SessionKey {
        let mut key = session.0;
        // The first byte is the partition: both records are in the same one.
        for byte in &mut key[8..] {
            *byte ^= 0xff;
        }
        SessionKey(key)
    }

    fn to_bytes(self) -> Bytes {
        let (revision, bits) = self
            .negotiated
            .map_or((0, 0), |(revision, bits)| (revision.ordinal(), bits));
        [&self.node.0[..], &[revision, bits]].concat().into()
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (node, rest) = bytes.split_first_chunk::<14>()?;
        let &[revision, bits] = rest else { return None };
        Some(Self {
            node: NodeId(*node),
            negotiated: Revision::from_ordinal(revision).map(|revision| (revision, bits)),
        })
    }
}

/// GET: opens the stream (MCP-O-2).
pub(crate) async fn open(
    context: &RequestContext<'_>,
    parts: &Parts,
) -> Result<Response, McpError> {
    let (state, caller, revision) = (context.state, &context.caller, Revision::V2024_11_05);
    if !context.accepted.events {
        return Err(McpError::NotAcceptable);
    }
    let pass = open::let_in(&context.opening(), revision, StreamStart::New).await?;
    let id = SessionId::new(
        caller,
        revision,
        &ClientCapabilities::default(),
        context.now,
    )
    .map_err(|_| McpError::Unavailable)?;
    let session = streamable_http::live(context, id).await?;
    let card = Card {
        node: state.node.id(),
        negotiated: None,
    };
    let record = Fresh {
        body: card.to_bytes(),
        life: id.life(context.now),
    };
    let begun = state
        .node
        .begin(Card::key(id.key), caller.session_principal(), &record)
        .await;
    begun.map_err(|_| McpError::Unavailable)?;
    // Notifications, and the end of session, token and grant: as on every stream of a session.
    let news = open::open_for_session(&context.opening(), &session, None, pass)?;
    let wire = id.to_wire(&state.keys, caller, context.server.id);
    Ok(SseConnection::open(
        context,
        id,
        news.into_body(),
        &address(parts, &wire),
    ))
}

/// The address for POSTs: a reference on the same origin (MCP-O-2).
fn address(parts: &Parts, session_id: &str) -> String {
    let path = parts.uri.path();
    let path = path.strip_suffix('/').unwrap_or(path);
    let base = path.strip_suffix("sse").unwrap_or(path);
    format!("{base}messages?sessionId={session_id}")
}

/// The connection that a POST names, as this node knows it.
struct Named {
    session: LiveSession,
    card: Card,
    version: Version,
}

/// POST: a message of the client (MCP-O-3, MCP-O-4).
pub(crate) async fn post(
    context: &RequestContext<'_>,
    parts: &Parts,
    headers: &Headers<'_>,
    body: &mut Body,
) -> Result<Response, McpError> {
    let bytes = read(&parts.headers, body).await?;
    let body = RpcBody::parse(bytes)?;
    let text = session_id(parts.uri.query()).ok_or_else(|| {
        let kind = ErrorKind::InvalidRequest("The sessionId parameter is required".into());
        McpError::of(&kind, Revision::V2024_11_05, None)
    })?;
    let named = find(context, text).await?;
    let revision = named.session.id.revision;
    match body {
        RpcBody::Single(message) => {
            if message
                .params()
                .is_some_and(|params| params.version().is_some())
            {
                let kind = ErrorKind::InvalidRequest(
                    "A request that stands alone has another address".into(),
                );
                return Err(McpError::of(&kind, revision, message.request_id()));
            }
            take(context, &named, message, headers).await?;
        }
        // MCP-J-12…MCP-J-16; each answer is sent on its own.
        RpcBody::Batch(batch) => {
            if let BatchContent::Calls(messages) = negotiate::open_batch(&batch, revision)? {
                for message in messages {
                    take(context, &named, message, headers).await?;
                }
            }
        }
    }
    Ok(error::accepted())
}

async fn read(head: &HeaderMap, body: &mut Body) -> Result<Bytes, McpError> {
    check_body(head)?;
    if http_body::Body::size_hint(body).lower() > MAX_BODY_BYTES as u64 {
        return Err(McpError::Body(BodyError::TooLarge {
            limit: MAX_BODY_BYTES,
        }));
    }
    Ok(body::read(std::mem::take(body), MAX_BODY_BYTES, BODY_WITHIN).await?)
}

/// The single value of the parameter. Ids need no escape in a query.
fn session_id(query: Option<&str>) -> Option<&str> {
    let mut values = query?
        .split('&')
        .filter_map(|pair| pair.strip_prefix("sessionId="));
    let value = values.next().filter(|value| !value.is_empty())?;
    values.next().is_none().then_some(value)
}

/// Finds the connection. 404 if it is unknown, closed, or another caller's (MCP-O-4).
async fn find(context: &RequestContext<'_>, text: &str) -> Result<Named, McpError> {
    let id = streamable_http::read_id(context, text)?;
    let mut session = streamable_http::live(context, id).await?;
    let record = Fresh {
        // The session is of the other transport, or its record is lost: it has no connection.
        body: Bytes::new(),
        life: id.life(context.now),
    };
    let principal = context.caller.session_principal();
    let begun = context
        .state
        .node
        .begin(Card::key(id.key), principal, &record)
        .await;
    let begun = begun.map_err(|error| match error {
        SessionError::Unknown => McpError::session_not_found(),
        SessionError::Unavailable => McpError::Unavailable,
    })?;
    let card = Card::read(&begun.body).ok_or_else(McpError::session_not_found)?;
    if let Some((revision, bits)) = card.negotiated {
        session.id = session.id.negotiated(revision, bits);
    }
    Ok(Named {
        session,
        card,
        version: begun.version,
    })
}

/// Handles one message.
async fn take(
    context: &RequestContext<'_>,
    named: &Named,
    message: Message,
    headers: &Headers<'_>,
) -> Result<(), McpError> {
    match message {
        Message::Request(request) if request.method.as_ref() == Method::Initialize.name() => {
            initialize(context, named, &request).await
        }
        Message::Request(request) => answer(context, named, request, headers).await,
        Message::Notification(notification) => {
            streamable_http::notified(context, &named.session, &notification).await
        }
        Message::Response(response) => {
            streamable_http::answered(context, &named.session, &response).await
        }
    }
}

/// `initialize`: any legacy version (MCP-O-5), once.
async fn initialize(
    context: &RequestContext<'_>,
    named: &Named,
    request: &Request,
) -> Result<(), McpError> {
    context.note_method(Method::Initialize);
    let (state, caller) = (context.state, &context.caller);
    let outcome = async {
        let refuse =
            |kind: ErrorKind| McpError::of(&kind, Revision::V2024_11_05, Some(&request.id));
        if named.card.negotiated.is_some() {
            return Err(refuse(ErrorKind::InvalidRequest(
                "This connection is initialized already".into(),
            )));
        }
        let params = InitializeParams::read(&request.params).map_err(refuse)?;
        let call = context.initialize_call(params.revision, request);
        call.limit_request().await?;
        streamable_http::note_opened(context, &named.session.id, &params);
        let card = Card {
            negotiated: Some((params.revision, params.capabilities.bits())),
            ..named.card
        };
        let updated = state
            .node
            .update(
                Card::key(named.session.id.key),
                caller.session_principal(),
                named.version,
                card.to_bytes(),
            )
            .await;
        match updated.map_err(|_| McpError::Unavailable)? {
            Update::Done(_) => {}
            Update::Conflict { .. } => {
                return Err(refuse(ErrorKind::InvalidRequest(
                    "This connection is being initialized already".into(),
                )));
            }
            Update::Unknown => return Err(McpError::session_not_found()),
        }
        Ok(context.server.fixed(params.revision).initialize.clone())
    }
    .await;
    context.count(Era::Legacy, Some(Method::Initialize), &outcome);
    let body = match outcome {
        Ok(result) => jsonrpc::response(&request.id, &result),
        Err(error) => said(error)?,
    };
    deliver(context, named, &request.id, Delivered::Whole(body)).await
}

/// The message on the stream in place of an answer. Refusals of the POST stay HTTP errors
/// (MCP-T-14, MCP-E-15).
fn said(error: McpError) -> Result<Vec<u8>, McpError> {
    match error {
        McpError::Protocol(_) => error.into_message().ok_or(McpError::Cancelled),
        other => Err(other),
    }
}

async fn answer(
    context: &RequestContext<'_>,
    named: &Named,
    request: Request,
    headers: &Headers<'_>,
) -> Result<(), McpError> {
    let session = &named.session;
    let (id, revision) = (request.id.clone(), session.id.revision);
    let fail = |kind: &ErrorKind| McpError::of(kind, revision, Some(&id));
    let method = Method::of_client(&request.method, revision);
    if let Some(method) = method {
        context.note_method(method);
    }
    let outcome = match method {
        // MCP-PI-1: a ping is answered in any state; other methods need the revision of
        // `initialize`.
        Some(other) if named.card.negotiated.is_none() && other != Method::Ping => Err(fail(
            &ErrorKind::InvalidRequest("Send initialize first".into()),
        )),
        Some(method) => {
            let call = context.session_call(session.clone(), method, request);
            dispatch(context.state, call, headers).await
        }
        None => Err(fail(&ErrorKind::MethodNotFound(request.method.to_string()))),
    };
    context.count(Era::Legacy, method, &outcome);
    let begun = match outcome {
        Ok(Work::Done(body)) => Ok(Begun::Whole(body)),
        // This transport has no tasks.
        Ok(Work::Run(_)) if method == Some(Method::TasksResult) => Err(fail(&ErrorKind::Internal)),
        Ok(Work::Run(run)) => call::begin(context, run, Some(Duration::ZERO)).await,
        Err(error) => Err(error),
    };
    let delivered = match begun {
        Ok(Begun::Whole(body)) => Delivered::Whole(body),
        Ok(Begun::Stream(nonce, reader)) => Delivered::Stream(nonce, reader),
        // MCP-CN-4: a cancelled request has no answer.
        Err(McpError::Cancelled) => return Ok(()),
        Err(error) => Delivered::Whole(said(error)?),
    };
    let sent = deliver(context, named, &id, delivered).await;
    if sent.is_err() {
        // The answer has no reader, so the work is cancelled.
        let (key, principal) = (session.id.key, context.caller.session_principal());
        let rpc = call::rpc_key(&id);
        let _gone = context.state.node.cancel(key, principal, &rpc).await;
    }
    sent
}

/// An answer on its way to the connection.
enum Delivered {
    Whole(Vec<u8>),
    Stream(Nonce, StreamReader),
}

/// Delivers an answer to the node that holds the connection.
async fn deliver(
    context: &RequestContext<'_>,
    named: &Named,
    id: &RequestId,
    answer: Delivered,
) -> Result<(), McpError> {
    let (state, key) = (context.state, named.session.id.key);
    if named.card.node == state.node.id() {
        let arrival = match answer {
            Delivered::Whole(body) => Arrival::Whole(body.into()),
            Delivered::Stream(_, reader) => Arrival::Stream(reader),
        };
        return match state.connections.sender(key) {
            Some(inbox) => inbox
                .send_timeout(arrival, ROOM_WITHIN)
                .await
                .map_err(|_| McpError::session_not_found()),
            None => Err(McpError::session_not_found()),
        };
    }
    // Held until the other node has taken the stream over.
    let (nonce, _reader) = match answer {
        Delivered::Stream(nonce, reader) => (nonce, reader),
        Delivered::Whole(body) => {
            let nonce = Nonce(random::bytes().map_err(|_| McpError::Unavailable)?);
            let about = About {
                id: Some(id.clone()),
                retryable: false,
            };
            let (writer, reader) = state.node.open(NewStream {
                stream: StreamKey {
                    session: key,
                    nonce,
                },
                principal: context.caller.session_principal(),
                rpc: call::rpc_key(id),
                deadline: FETCHED_WITHIN,
                about: about.to_bytes(),
                tenant: context.server.tenant,
                trace: None,
            });
            writer.finish(body.into());
            let _ = tokio::time::timeout(HEARD_WITHIN, writer.committed().cancelled_owned()).await;
            (nonce, reader)
        }
    };
    let note = Note {
        nonce,
        from: state.node.id(),
    };
    let mut heard = state.node.subscribe(note.heard_key(key));
    for _ in 0..RINGS {
        let rung = state
            .node
            .notify(key, named.card.node, note.to_bytes())
            .await;
        rung.map_err(|_| McpError::Unavailable)?;
        if tokio::time::timeout(HEARD_WITHIN, heard.next())
            .await
            .is_ok()
        {
            return Ok(());
        }
    }
    // The node of the connection is gone, and the connection with it.
    Err(McpError::session_not_found())
}

/// A message between nodes: the name of a stream to read, and the node that awaits the
/// acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Note {
    nonce: Nonce,
    from: NodeId,
}

impl Note {
    fn to_bytes(self) -> Bytes {
        [&self.nonce.0[..], &self.from.0[..]].concat().into()
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (nonce, rest) = bytes.split_first_chunk::<8>()?;
        Some(Self {
            nonce: Nonce(*nonce),
            from: NodeId(rest.try_into().ok()?),
        })
    }

    /// The key of the acknowledgement, which is not a session's.
    fn heard_key(self, session: SessionKey) -> SessionKey {
        let mut key = session.0;
        key[8..].copy_from_slice(&self.nonce.0);
        SessionKey(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: NodeId = NodeId(*b"n0123456789abc");

    #[test]
    fn o_5_a_card_keeps_what_was_negotiated() {
        let fresh = Card {
            node: NODE,
            negotiated: None,
        };
        assert_eq!(Card::read(&fresh.to_bytes()), Some(fresh));
        let later = Card {
            negotiated: Some((Revision::V2025_03_26, 5)),
            ..fresh
        };
        assert_eq!(Card::read(&later.to_bytes()), Some(later));
        assert_eq!(Card::read(b""), None, "a record that was made for a POST");
        let session = SessionKey([7; 16]);
        assert_ne!(Card::key(session), session);
        assert_eq!(Card::key(session).partition(), session.partition());
    }

    #[test]
    fn o_6_a_note_names_a_stream_and_who_asks() {
        let note = Note {
            nonce: Nonce([3; 8]),
            from: NODE,
        };
        assert_eq!(Note::read(&note.to_bytes()), Some(note));
        assert_eq!(Note::read(b"short"), None);
        assert_eq!(Note::read(&[0; 64]), None);
    }

    #[test]
    fn o_2_the_address_is_a_reference_beside_the_stream() {
        let parts = |path: &str| http::Request::get(path).body(()).unwrap().into_parts().0;
        for path in ["/t/acme/pets/sse", "/t/acme/pets/sse/"] {
            assert_eq!(
                address(&parts(path), "x"),
                "/t/acme/pets/messages?sessionId=x"
            );
        }
        assert_eq!(session_id(Some("a=b&sessionId=x")), Some("x"));
        for bad in [
            None,
            Some(""),
            Some("sessionId="),
            Some("sessionId=x&sessionId=y"),
        ] {
            assert_eq!(session_id(bad), None);
        }
    }
}
