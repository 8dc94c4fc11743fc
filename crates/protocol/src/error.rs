//! Error kinds, and the JSON-RPC code and HTTP status that each has in each revision
//! (MCP-ER-1…MCP-ER-15).

use std::borrow::Cow;

use serde_json::json;

use crate::json::{Misfit, Object, Raw, write_string};
use crate::request_id::RequestId;
use crate::revision::{Era, Revision, SERVED};

/// Error, in the terms of the protocol.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ErrorKind {
    /// Not JSON (MCP-J-1): 400.
    #[error("Parse error: the body is not JSON.")]
    Parse,
    /// Wrong envelope, wrong place, bad batch: 400.
    #[error("{0}")]
    InvalidRequest(Cow<'static, str>),
    /// A legacy message without a session (MCP-E-5, MCP-T-42): 400.
    #[error("Mcp-Session-Id header is required")]
    SessionRequired,
    /// Terminated, unknown or foreign session (MCP-T-43, MCP-T-44): 404. Send it without an id.
    #[error("Session not found")]
    SessionNotFound,
    /// Method unknown, removed, or of a capability that is not offered: modern 404, legacy 200.
    #[error("Method not found: {0}")]
    MethodNotFound(String),
    /// `initialize` of a modern client (MCP-E-10): 404 with the versions that are served.
    #[error(
        "Method not found: initialize. This revision has no handshake: send requests with _meta."
    )]
    NoHandshake,
    /// Parameters that do not fit: 200.
    #[error("Invalid params: {0}")]
    InvalidParams(#[from] Misfit),
    /// Parameters of `initialize` that do not fit (MCP-L-3): 400.
    #[error("Invalid params: {misfit}")]
    InvalidInitialize {
        /// Parameter that does not fit, and why.
        misfit: Misfit,
        /// Requested version, if any.
        requested: Option<String>,
    },
    /// Required `_meta` of a modern request missing or malformed (MCP-E-4, MCP-E-7, MCP-L-14): 400.
    #[error("Invalid params: {0}")]
    InvalidMeta(Misfit),
    /// The tool does not exist, or the caller may not see it (MCP-TL-16): 200.
    #[error("Unknown tool: {0}")]
    UnknownTool(String),
    /// The prompt does not exist (MCP-PR-4): 200.
    #[error("Unknown prompt: {0}")]
    UnknownPrompt(String),
    /// The resource does not exist (MCP-RE-4, MCP-RE-5): 200.
    #[error("Resource not found")]
    ResourceNotFound {
        /// Requested URI.
        uri: String,
    },
    /// A cursor that we did not make, or not for this list and caller (MCP-PG-2): 200.
    #[error("Invalid cursor")]
    InvalidCursor,
    /// A `requestState` that is not ours, not this caller's, not of this request, over or used
    /// (MCP-MR-6…MCP-MR-8, MCP-X-27): 200.
    #[error("{0}")]
    RequestState(&'static str),
    /// A header that does not repeat the body (MCP-H-5): 400.
    #[error("Header mismatch: {0}")]
    HeaderMismatch(Cow<'static, str>),
    /// A protocol version that is not served (MCP-L-16, MCP-T-46): 400.
    #[error("Unsupported protocol version")]
    UnsupportedVersion {
        /// Requested version.
        requested: String,
    },
    /// The client did not declare what the work needs (MCP-L-19): modern 400.
    #[error("The client lacks a capability that this request needs")]
    MissingCapability {
        /// A ClientCapabilities object with only what is missing.
        required: Raw,
    },
    /// Our bug or our sick dependency: 200. Says nothing of the cause.
    #[error("Internal error")]
    Internal,
    /// Too many calls (MCP-T-14): 429; the caller adds `Retry-After`.
    #[error("Rate limit exceeded, try again later")]
    RateLimited {
        /// Scope of the limit: `tenant`, `principal`, `tool`, `address`.
        reason: &'static str,
        /// Milliseconds until one more is admitted.
        retry_after_ms: u64,
    },
    /// Too many at once: `running_requests`, `streams`. 429; the caller adds `Retry-After`.
    #[error("Too many at once, try again when one has ended")]
    TooMany(&'static str),
    /// The quota of the plan is used up: 200.
    #[error("Quota exceeded")]
    QuotaExceeded,
    /// The upstream could not be reached: 200.
    #[error("Upstream unreachable")]
    UpstreamUnreachable,
    /// The upstream did not answer in time: 200.
    #[error("Upstream timeout")]
    UpstreamTimeout,
    /// The upstream broke its protocol: 200.
    #[error("Upstream protocol violation")]
    UpstreamViolation,
    /// The person must first authorise the upstream: 200.
    #[error("Upstream authorization required")]
    UpstreamAuthorization,
    /// A dependency is unavailable before dispatch (MCP-E-15), or the node is overloaded: 503. The
    /// caller adds `Retry-After`. The reason is a word of STREAM-B: `redis`, `registry`,
    /// `overload`.
    #[error("Temporarily unavailable, try again")]
    Unavailable(&'static str),
}

/// A JSON-RPC error object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RpcError {
    /// The code.
    pub code: i32,
    /// One sentence for people.
    pub message: String,
    /// Machine-readable detail.
    pub data: Option<Raw>,
}

/// An error with its HTTP status and the id of the request it answers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} ({})", error.message, error.code)]
pub struct Refusal {
    /// HTTP status.
    pub status: u16,
    /// The error object. Boxed: refusals are the rare branch of every `Result` here.
    pub error: Box<RpcError>,
    /// Absent for notifications, responses, and what could not be read (MCP-J-7, MCP-J-8).
    pub id: Option<RequestId>,
}

impl Refusal {
    /// The JSON-RPC code.
    pub fn code(&self) -> i32 {
        self.error.code
    }
}

impl RpcError {
    /// Appends the error object as JSON.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut object = Object::begin(out);
        object.value("code", &self.code);
        object.key("message");
        write_string(&self.message, object.out());
        if let Some(data) = &self.data {
            object.raw("data", data.as_bytes());
        }
        object.end();
    }
}

/// Names from the outside are cut before they are repeated in a message.
fn cut(text: &str) -> String {
    match text.char_indices().nth(128) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn served() -> Vec<&'static str> {
    SERVED.iter().map(|revision| revision.as_str()).collect()
}

impl ErrorKind {
    /// Code and HTTP status in `revision`.
    pub fn face(&self, revision: Revision) -> (i32, u16) {
        let facts = revision.facts();
        match self {
            Self::Parse => (-32700, 400),
            Self::InvalidRequest(_) | Self::SessionRequired => (-32600, 400),
            Self::SessionNotFound => (-32600, 404),
            Self::MethodNotFound(_) => (-32601, facts.unknown_method_status),
            Self::NoHandshake => (-32601, 404),
            Self::InvalidParams(_)
            | Self::UnknownTool(_)
            | Self::UnknownPrompt(_)
            | Self::InvalidCursor
            | Self::RequestState(_) => (-32602, 200),
            Self::InvalidInitialize { .. } | Self::InvalidMeta(_) => (-32602, 400),
            Self::ResourceNotFound { .. } => (facts.resource_not_found, 200),
            Self::HeaderMismatch(_) => (facts.header_mismatch, 400),
            Self::UnsupportedVersion { .. } => (-32022, 400),
            Self::MissingCapability { .. } => {
                (facts.missing_capability, facts.missing_capability_status)
            }
            Self::Internal => (-32603, 200),
            // STREAM-B; 2026-07-28 keeps those numbers for itself (MCP-ER-13), so that MCP-ER-15
            // holds there.
            Self::RateLimited { .. } | Self::TooMany(_) if facts.era == Era::Modern => {
                (-31002, 429)
            }
            Self::RateLimited { .. } => (-32014, 429),
            Self::TooMany(_) => (-32013, 429),
            Self::QuotaExceeded => (-31003, 200),
            Self::UpstreamUnreachable => (-31000, 200),
            Self::UpstreamTimeout => (-31001, 200),
            Self::UpstreamViolation => (-31005, 200),
            Self::UpstreamAuthorization => (-31007, 200),
            // The same.
            Self::Unavailable(_) if facts.era == Era::Modern => (-32603, 503),
            Self::Unavailable(_) => (-32017, 503),
        }
    }

    /// The error object in `revision`.
    pub fn error(&self, revision: Revision) -> RpcError {
        let data = match self {
            Self::NoHandshake => Some(json!({ "supported": served() })),
            Self::InvalidInitialize { requested, .. } => Some(match requested {
                Some(requested) => json!({ "supported": served(), "requested": cut(requested) }),
                None => json!({ "supported": served() }),
            }),
            Self::UnsupportedVersion { requested } => {
                Some(json!({ "supported": served(), "requested": cut(requested) }))
            }
            Self::ResourceNotFound { uri } => Some(json!({ "uri": uri })),
            Self::RateLimited {
                reason,
                retry_after_ms,
            } => Some(json!({ "reason": reason, "retryAfterMs": retry_after_ms })),
            Self::TooMany(reason) | Self::Unavailable(reason) => Some(json!({ "reason": reason })),
            _ => None,
        };
        let data = match self {
            Self::MissingCapability { required } => {
                let mut text = br#"{"requiredCapabilities":"#.to_vec();
                text.extend_from_slice(required.as_bytes());
                text.push(b'}');
                Raw::parse(text).ok()
            }
            _ => data.and_then(|data| Raw::of(&data).ok()),
        };
        let message = match self {
            Self::MethodNotFound(name) => Self::MethodNotFound(cut(name)).to_string(),
            Self::UnknownTool(name) => Self::UnknownTool(cut(name)).to_string(),
            Self::UnknownPrompt(name) => Self::UnknownPrompt(cut(name)).to_string(),
            other => other.to_string(),
        };
        RpcError {
            code: self.face(revision).0,
            message,
            data,
        }
    }

    /// The error with status and id.
    pub fn refuse(&self, revision: Revision, id: Option<RequestId>) -> Refusal {
        Refusal {
            status: self.face(revision).1,
            error: Box::new(self.error(revision)),
            id,
        }
    }
}
