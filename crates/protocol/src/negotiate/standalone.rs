//! Admission at a server without sessions: each POST stands alone, in both eras.
//!
//! `initialize` is answered without a session id, and the requests after it name their revision by
//! `MCP-Protocol-Version` (MCP-T-46, MCP-T-47). A session id that comes nevertheless is ignored.

use super::{ByEra, by_era, legacy_version, refuse, single_valued};
use crate::error::{ErrorKind, Refusal};
use crate::header::{self, Dialect, Headers, Mirroring};
use crate::jsonrpc::{BatchContent, Body, Message, Params, Request, RequestId};
use crate::method::Method;
use crate::negotiate::{Admitted, open_batch};
use crate::revision::{Era, Revision};

/// Kind of an admitted POST.
#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly every body is one request, which a box would allocate"
)]
pub enum Standalone {
    /// A request of either era.
    Request(StandaloneRequest),
    /// The requests of a batch, in order, at least one. Each is answered by itself (MCP-J-14).
    Batch(Vec<Result<StandaloneRequest, Refusal>>),
    /// Notifications alone: 202.
    Notification,
}

/// A request whose method its revision knows.
#[derive(Clone, Debug)]
pub struct StandaloneRequest {
    /// The revision spoken. Before `initialize` was read: the latest one with a handshake.
    pub revision: Revision,
    /// The method.
    pub method: Method,
    /// The request.
    pub request: Request,
}

/// Admits the body of a POST.
///
/// # Errors
/// The refusals of [`negotiate::admit`](super::admit), without those that only sessions have.
pub fn admit(body: Body, headers: &Headers<'_>) -> Result<Standalone, Refusal> {
    let message = match body {
        Body::Single(message) => message,
        Body::Batch(batch) => {
            single_valued(headers, false, None)?;
            let revision = named(headers, None)?;
            return match open_batch(&batch, revision)? {
                BatchContent::Calls(messages) => Ok(requests(revision, messages)),
                BatchContent::Responses(_) => Err(unwanted_response()),
            };
        }
    };
    match by_era(message, headers)? {
        ByEra::Modern(Admitted::Modern {
            revision,
            method,
            request,
            ..
        }) => Ok(Standalone::Request(StandaloneRequest {
            revision,
            method,
            request,
        })),
        ByEra::Modern(_) => Ok(Standalone::Notification),
        ByEra::Legacy(message) => legacy(message, headers),
    }
}

fn legacy(message: Message, headers: &Headers<'_>) -> Result<Standalone, Refusal> {
    let id = message.request_id().cloned();
    let revision = spoken(&message, headers)?;
    header::check_method_and_name(&message, headers, Mirroring::Optional, Dialect::Draft)
        .map_err(|kind| refuse(&kind, revision, id.as_ref()))?;
    match message {
        Message::Request(request) => known(revision, request).map(Standalone::Request),
        Message::Notification(_) => Ok(Standalone::Notification),
        Message::Response(_) => Err(unwanted_response()),
    }
}

/// The revision of a message. `initialize` carries it in its parameters, and the header beside it is
/// ignored (MCP-T-48).
fn spoken(message: &Message, headers: &Headers<'_>) -> Result<Revision, Refusal> {
    if message.method() == Some(Method::Initialize.name()) {
        return Ok(Revision::LATEST_LEGACY);
    }
    // MCP-E-6: the header, if there is one, says the same.
    let version = message.params().and_then(Params::version);
    match version.and_then(legacy_version) {
        Some(revision) => Ok(revision),
        None => named(headers, message.request_id()),
    }
}

/// The revision that the header names.
fn named(headers: &Headers<'_>, id: Option<&RequestId>) -> Result<Revision, Refusal> {
    let Some(value) = headers.protocol_version.one() else {
        return Ok(Revision::UNNAMED);
    };
    let requested = String::from_utf8_lossy(value).into_owned();
    match requested.parse::<Revision>() {
        Ok(revision) if revision.era() == Era::Legacy && revision.is_served() => Ok(revision),
        _ => Err(refuse(
            &ErrorKind::UnsupportedVersion { requested },
            Revision::FALLBACK,
            id,
        )),
    }
}

/// The requests of a batch. Its notifications have no answer.
fn requests(revision: Revision, messages: Vec<Message>) -> Standalone {
    let requests = messages.into_iter().filter_map(|message| match message {
        Message::Request(request) => Some(known(revision, request)),
        _ => None,
    });
    let requests: Vec<_> = requests.collect();
    if requests.is_empty() {
        Standalone::Notification
    } else {
        Standalone::Batch(requests)
    }
}

fn known(revision: Revision, request: Request) -> Result<StandaloneRequest, Refusal> {
    match Method::of_client(&request.method, revision) {
        Some(method) => Ok(StandaloneRequest {
            revision,
            method,
            request,
        }),
        None => {
            let kind = ErrorKind::MethodNotFound(request.method.to_string());
            Err(refuse(&kind, revision, Some(&request.id)))
        }
    }
}

/// MCP-E-13.
fn unwanted_response() -> Refusal {
    let why = "This server sends no requests, and takes no responses.";
    refuse(
        &ErrorKind::InvalidRequest(why.into()),
        Revision::FALLBACK,
        None,
    )
}
