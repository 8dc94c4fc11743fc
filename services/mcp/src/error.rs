//! The refusals of requests: the only place of this service with HTTP statuses and error responses.

pub(crate) mod challenge;

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use portolan_cluster::node::{Limit, Lost};
use portolan_net::layers::body::BodyError;
use portolan_protocol::{
    error::{ErrorKind, Refusal},
    jsonrpc::RequestId,
    revision::Revision,
};

use crate::{
    error::challenge::Challenge,
    limits::{NoPermit, OverLimit},
    payloads::About,
    target::Transport,
};

/// Default number of seconds until a retry.
const WORTH_A_TRY: u64 = 30;

/// The reasons of STREAM-B: the store is away.
const REDIS: &str = "redis";

/// The registry is away.
const REGISTRY: &str = "registry";

/// This node has no capacity left.
const OVERLOAD: &str = "overload";

/// The verbs of an endpoint (MCP-T-5, MCP-D-6).
const fn allow(transport: Transport) -> &'static str {
    match transport {
        Transport::Mcp => "POST, GET, DELETE, OPTIONS",
        Transport::Events => "GET, OPTIONS",
        Transport::Messages => "POST, OPTIONS",
    }
}

/// The sentence of the same.
const fn use_verbs(transport: Transport) -> &'static str {
    match transport {
        Transport::Mcp => "Use POST, GET or DELETE",
        Transport::Events => "Use GET",
        Transport::Messages => "Use POST",
    }
}

/// A refusal. Each variant is one row of the admission order (MCP-E-1) or one later error.
#[derive(Debug, thiserror::Error)]
pub(crate) enum McpError {
    /// The `Origin` is not ours and not allowed (MCP-T-2).
    #[error("origin not allowed")]
    Origin,
    /// A verb that the address does not support (MCP-T-5).
    #[error("method not allowed")]
    Verb(Transport),
    /// More than one `Authorization` header (MCP-AR-11).
    #[error("several credentials")]
    SeveralCredentials,
    /// No token, or an invalid one (MCP-AR-1).
    #[error("not authenticated")]
    Unauthorized(Challenge),
    /// The token lacks a scope (MCP-AR-5).
    #[error("insufficient scope")]
    Scope(Challenge),
    /// No such server, or one of another tenant: both look the same.
    #[error("no such server")]
    NoSuchServer,
    /// The server is paused until it is published again. Only a holder of a token for it learns
    /// this.
    #[error("the server is paused")]
    Paused,
    /// HTTP+SSE, which the tenant has turned off (MCP-DP-6).
    #[error("HTTP+SSE is turned off")]
    TurnedOff,
    /// `Content-Type` is not JSON (MCP-T-6).
    #[error("unsupported media type")]
    MediaType,
    /// The body has a content coding (RFC 9110 §8.4).
    #[error("content coding not supported")]
    Packed,
    /// The client accepts neither JSON nor an event stream (MCP-T-7).
    #[error("not acceptable")]
    NotAcceptable,
    /// The body is too large, too slow or broken.
    #[error("body not readable")]
    Body(#[from] BodyError),
    /// A refusal of the protocol, with code, status and id.
    #[error("refused by the protocol")]
    Protocol(#[from] Refusal),
    /// Over a limit (MCP-T-14).
    #[error("rate limit")]
    Limited {
        /// The id of the request, if it has one.
        id: Option<RequestId>,
        /// The revision of the request.
        revision: Revision,
        /// The limit.
        limit: Limit,
        /// Seconds until a retry is admitted.
        retry_after: u64,
    },
    /// The session has reached its limit of streams.
    #[error("too many streams")]
    TooManyStreams,
    /// The store does not answer (MCP-E-15).
    #[error("the store is away")]
    Unavailable,
    /// The registry cannot be read (MCP-E-15).
    #[error("the registry is away")]
    RegistryAway,
    /// This node has reached its capacity (STREAM-16.3).
    #[error("this node is full")]
    Overloaded,
    /// One of these three, as the answer to a request that was read.
    #[error("temporarily unavailable")]
    Away {
        /// A reason of STREAM-B.
        reason: &'static str,
        /// The revision of the request.
        revision: Revision,
        /// Its id, if it has one.
        id: Option<RequestId>,
    },
    /// A cancelled call has no answer (MCP-CN-4).
    #[error("cancelled")]
    Cancelled,
    /// The stream that a client comes back for is over, and the client has all of it.
    #[error("the stream is over")]
    NoStream,
    /// A call was stopped, and its outcome is unknown: the whole JSON-RPC answer.
    #[error("stopped")]
    Lost(Bytes),
}

impl McpError {
    /// A refusal of the protocol.
    pub(crate) fn of(kind: &ErrorKind, revision: Revision, id: Option<&RequestId>) -> Self {
        Self::Protocol(kind.refuse(revision, id.cloned()))
    }

    /// A refusal by a limit.
    pub(crate) fn over(over: OverLimit, revision: Revision, id: Option<&RequestId>) -> Self {
        Self::Limited {
            id: id.cloned(),
            revision,
            limit: over.limit,
            retry_after: over.retry_after,
        }
    }

    /// A refusal because there is no permit.
    pub(crate) fn no_permit(no: NoPermit, revision: Revision, id: Option<&RequestId>) -> Self {
        match no {
            NoPermit::Over(over) => Self::over(over, revision, id),
            NoPermit::NodeIsFull => Self::Overloaded,
        }
    }

    /// The error for a call that was stopped (STREAM-B).
    pub(crate) fn lost(why: Lost, about: &About, revision: Revision) -> Self {
        Self::Lost(about.lost_in(revision.era(), why))
    }

    /// The 404 of a session that is over, or was never the caller's (MCP-T-43, MCP-T-44).
    pub(crate) fn session_not_found() -> Self {
        Self::of(&ErrorKind::SessionNotFound, Revision::LATEST_LEGACY, None)
    }

    /// The same as an answer to a request that was read.
    ///
    /// Unavailability gets the code of the request's revision, and its id. Other errors stay
    /// unchanged.
    pub(crate) fn answering(self, revision: Revision, id: Option<&RequestId>) -> Self {
        let reason = match self {
            Self::Unavailable => REDIS,
            Self::RegistryAway => REGISTRY,
            Self::Overloaded => OVERLOAD,
            other => return other,
        };
        Self::Away {
            reason,
            revision,
            id: id.cloned(),
        }
    }

    /// The JSON-RPC answer, for a refusal that is one part of a larger answer (a batch).
    pub(crate) fn into_message(self) -> Option<Vec<u8>> {
        match self.answering(Revision::LATEST_LEGACY, None) {
            Self::Away {
                reason,
                revision,
                id,
            } => Some(ErrorKind::Unavailable(reason).refuse(revision, id).body()),
            Self::Protocol(refusal) => Some(refusal.body()),
            Self::Limited {
                id,
                revision,
                limit,
                retry_after,
            } => Some(limited(limit, retry_after).refuse(revision, id).body()),
            Self::Cancelled => None,
            Self::Lost(body) => Some(body.into()),
            _ => Some(
                ErrorKind::Internal
                    .refuse(Revision::LATEST_LEGACY, None)
                    .body(),
            ),
        }
    }
}

/// The error for a limit (STREAM-B).
fn limited(limit: Limit, retry_after: u64) -> ErrorKind {
    let reason = match limit {
        Limit::TenantCalls => "tenant",
        Limit::ClientRequests | Limit::StreamOpens => "principal",
        Limit::ToolCalls => "tool",
        Limit::Address => "address",
        Limit::RunningCalls => return ErrorKind::TooMany("running_requests"),
        Limit::OpenStreams => return ErrorKind::TooMany("streams"),
    };
    ErrorKind::RateLimited {
        reason,
        retry_after_ms: retry_after.saturating_mul(1000),
    }
}

/// Seconds until a retry when a part is away: random, so that clients do not retry together.
fn spread() -> u64 {
    portolan_keys::random::bytes::<1>().map_or(2, |[byte]| 1 + u64::from(byte) % 5)
}

impl IntoResponse for McpError {
    fn into_response(self) -> Response {
        match self {
            Self::Origin => said(StatusCode::FORBIDDEN, "Origin not allowed"),
            Self::Verb(transport) => not_allowed(transport, use_verbs(transport)),
            Self::SeveralCredentials => {
                said(StatusCode::BAD_REQUEST, "Send one Authorization header")
            }
            Self::Unauthorized(challenge) => {
                let answer = said(StatusCode::UNAUTHORIZED, challenge.sentence());
                with(answer, header::WWW_AUTHENTICATE, challenge.value())
            }
            Self::Scope(challenge) => {
                let answer = said(StatusCode::FORBIDDEN, challenge.sentence());
                with(answer, header::WWW_AUTHENTICATE, challenge.value())
            }
            Self::NoSuchServer => said(
                StatusCode::NOT_FOUND,
                "There is no such MCP server, or it is not yours",
            ),
            Self::Paused => said(StatusCode::NOT_FOUND, "This server is paused."),
            Self::TurnedOff => said(
                StatusCode::NOT_FOUND,
                "This workspace does not serve HTTP+SSE. Connect to the address that ends in /mcp",
            ),
            Self::MediaType => said(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "Content-Type must be application/json",
            ),
            Self::Packed => {
                let sentence = "Send the body as it is, without Content-Encoding";
                let answer = said(StatusCode::UNSUPPORTED_MEDIA_TYPE, sentence);
                let none = HeaderValue::from_static("identity");
                with(answer, header::ACCEPT_ENCODING, none)
            }
            Self::NotAcceptable => said(
                StatusCode::NOT_ACCEPTABLE,
                "Accept must admit application/json or text/event-stream",
            ),
            Self::Body(error) => no_body(error.status()),
            Self::Protocol(refusal) => refused(&refusal),
            Self::Limited {
                id,
                revision,
                limit,
                retry_after,
            } => {
                let refusal = limited(limit, retry_after).refuse(revision, id);
                with(
                    json(StatusCode::TOO_MANY_REQUESTS, refusal.body()),
                    header::RETRY_AFTER,
                    retry_after.into(),
                )
            }
            Self::TooManyStreams => said(
                StatusCode::CONFLICT,
                "The session has too many open streams: close one first",
            ),
            Self::Unavailable => away(REDIS, Revision::LATEST_LEGACY, None),
            Self::RegistryAway => away(REGISTRY, Revision::LATEST_LEGACY, None),
            Self::Overloaded => away(OVERLOAD, Revision::LATEST_LEGACY, None),
            Self::Away {
                reason,
                revision,
                id,
            } => away(reason, revision, id),
            // A request is answered by JSON or by a stream (MCP-T-22), and this answer is empty.
            Self::Cancelled => no_events(),
            Self::NoStream => {
                let sentence = "This stream is over, and you have all of it";
                not_allowed(Transport::Mcp, sentence)
            }
            Self::Lost(body) => ok(body.into()),
        }
    }
}

/// 503: a part is away, or the node is full (MCP-E-15, STREAM-B).
fn away(reason: &'static str, revision: Revision, id: Option<RequestId>) -> Response {
    let refusal = ErrorKind::Unavailable(reason).refuse(revision, id);
    with(
        json(StatusCode::SERVICE_UNAVAILABLE, refusal.body()),
        header::RETRY_AFTER,
        spread().into(),
    )
}

/// The refusal of a verb, with those that the address supports.
fn not_allowed(transport: Transport, sentence: &'static str) -> Response {
    let answer = said(StatusCode::METHOD_NOT_ALLOWED, sentence);
    with(
        answer,
        header::ALLOW,
        HeaderValue::from_static(allow(transport)),
    )
}

/// The refusal of a request whose body cannot be read.
fn no_body(status: StatusCode) -> Response {
    match status {
        StatusCode::PAYLOAD_TOO_LARGE => said(
            StatusCode::PAYLOAD_TOO_LARGE,
            "The body is larger than 4 MiB",
        ),
        status => said(status, "The body did not arrive"),
    }
}

/// A refusal of the protocol, with the wait if there is one.
fn refused(refusal: &Refusal) -> Response {
    let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let answer = json(status, refusal.body());
    if status == StatusCode::TOO_MANY_REQUESTS {
        return with(answer, header::RETRY_AFTER, HeaderValue::from(WORTH_A_TRY));
    }
    answer
}

/// A JSON-RPC error without id, code -32600 (MCP-AR-9).
fn said(status: StatusCode, sentence: &'static str) -> Response {
    let refusal = ErrorKind::InvalidRequest(sentence.into()).refuse(Revision::LATEST_LEGACY, None);
    json(status, refusal.body())
}

pub(crate) fn with(mut answer: Response, name: http::HeaderName, value: HeaderValue) -> Response {
    answer.headers_mut().insert(name, value);
    answer
}

/// An answer without a body.
pub(crate) fn empty(status: StatusCode) -> Response {
    let mut answer = Response::new(Body::empty());
    *answer.status_mut() = status;
    answer
}

/// 202: a notification or response was accepted (MCP-T-21).
pub(crate) fn accepted() -> Response {
    empty(StatusCode::ACCEPTED)
}

/// 200 without a body: a session was ended (MCP-T-45).
pub(crate) fn ended() -> Response {
    empty(StatusCode::OK)
}

/// 204 to an `OPTIONS` request that is not a preflight.
pub(crate) fn options(transport: Transport) -> Response {
    with(
        empty(StatusCode::NO_CONTENT),
        header::ALLOW,
        HeaderValue::from_static(allow(transport)),
    )
}

/// A JSON answer (MCP-T-8).
pub(crate) fn json(status: StatusCode, body: Vec<u8>) -> Response {
    let mut answer = Response::new(Body::from(body));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

/// A JSON-RPC answer with 200.
pub(crate) fn ok(body: Vec<u8>) -> Response {
    json(StatusCode::OK, body)
}

/// The same as an event stream of one message, for clients that accept nothing else (MCP-T-7).
pub(crate) fn one_event(body: &[u8]) -> Response {
    events(portolan_protocol::sse::message(None, body).into())
}

/// An empty event stream: the answer to a request that was cancelled before its answer (MCP-CN-4,
/// REVIEW-F3).
pub(crate) fn no_events() -> Response {
    events(Body::empty())
}

fn events(body: Body) -> Response {
    let mut answer = Response::new(body);
    let headers = answer.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/event-stream"),
    );
    headers.insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("no-cache, no-transform"),
    );
    headers.insert(
        http::HeaderName::from_static("x-accel-buffering"),
        HeaderValue::from_static("no"),
    );
    answer
}

/// A protected resource metadata document (AUTH-E3).
pub(crate) fn document(body: Vec<u8>) -> Response {
    let mut answer = json(StatusCode::OK, body);
    answer.headers_mut().insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("public, max-age=300"),
    );
    answer
}

/// 404 for an unknown path under the well-known prefix (AUTH-E4).
pub(crate) fn no_document() -> Response {
    json(StatusCode::NOT_FOUND, br#"{"error":"not_found"}"#.to_vec())
}

/// 405 on a metadata document.
pub(crate) fn only_get() -> Response {
    with(
        json(
            StatusCode::METHOD_NOT_ALLOWED,
            br#"{"error":"method_not_allowed"}"#.to_vec(),
        ),
        header::ALLOW,
        HeaderValue::from_static("GET, HEAD, OPTIONS"),
    )
}
