//! Body × headers → era and revision, or the exact refusal (MCP-E-2…MCP-E-14; MCP-T-13, MCP-T-42,
//! MCP-T-46, MCP-L-9).
//!
//! Pure: what needs the session record (does it live, which revision was negotiated) comes after,
//! see [`check_session_version`] and [`open_batch`]. A server without sessions uses
//! [`standalone`].

pub mod standalone;

use crate::error::{ErrorKind, Refusal};
use crate::header::{self, Dialect, Field, Headers, Mirroring};
use crate::jsonrpc::{
    Batch, BatchContent, Body, Message, Notification, Params, Raw, Request, RequestId,
};
use crate::meta::{self, RequestMeta};
use crate::method::Method;
use crate::revision::{Era, Revision, VersionHeader};

/// Kind of an admitted POST.
#[derive(Clone, Debug)]
pub enum Admitted {
    /// `initialize`: opens a legacy session (MCP-E-3). Next:
    /// [`crate::initialize::InitializeParams::read`].
    Initialize {
        /// The request.
        request: Request,
        /// The session will speak the draft profile, because `Mcp-Method` was sent (MCP-D-1).
        draft: bool,
    },
    /// A message of a legacy session, which must still be found: no record is 404 (MCP-T-43).
    Session {
        /// The id presented; visible ASCII.
        session_id: String,
        /// The message.
        message: Message,
    },
    /// A batch of a legacy session; acceptable only if its revision has batches: [`open_batch`].
    SessionBatch {
        /// The id presented; visible ASCII.
        session_id: String,
        /// The array.
        batch: Batch,
    },
    /// A modern request; the ladder MCP-E-7 is passed up to step 6, except for capabilities that
    /// the server did not declare.
    Modern {
        /// The revision spoken.
        revision: Revision,
        /// The method, known to that revision.
        method: Method,
        /// The request.
        request: Request,
        /// Its metadata.
        meta: Box<RequestMeta>,
    },
    /// A modern notification: 202 (MCP-E-14).
    ModernNotification(Notification),
}

fn refuse(kind: &ErrorKind, revision: Revision, id: Option<&RequestId>) -> Refusal {
    kind.refuse(revision, id.cloned())
}

/// Admits the body of a POST.
pub fn admit(body: Body, headers: &Headers<'_>) -> Result<Admitted, Refusal> {
    match body {
        Body::Single(message) => single(message, headers),
        Body::Batch(batch) => {
            single_valued(headers, false, None)?;
            if names_modern(&headers.protocol_version) {
                return Err(Batch::refusal());
            }
            let session_id = session_id(headers, None)?;
            Ok(Admitted::SessionBatch { session_id, batch })
        }
    }
}

/// Opens a batch for a session that speaks `revision` (MCP-J-12…MCP-J-16).
pub fn open_batch(batch: &Batch, revision: Revision) -> Result<BatchContent, Refusal> {
    if revision.facts().batches {
        batch.open()
    } else {
        Err(Batch::refusal())
    }
}

/// Admits a GET or DELETE: the session id presented (MCP-T-42, MCP-T-65).
pub fn admit_bodyless(headers: &Headers<'_>) -> Result<String, Refusal> {
    single_valued(headers, false, None)?;
    session_id(headers, None)
}

/// The version header of a request within a session that speaks `revision`: absent is fine, another
/// served legacy version is ignored, everything else is refused (MCP-T-46, MCP-T-47).
pub fn check_session_version(
    headers: &Headers<'_>,
    revision: Revision,
    id: Option<&RequestId>,
) -> Result<(), Refusal> {
    if revision.facts().version_header == VersionHeader::Ignored {
        return Ok(());
    }
    let Some(value) = headers.protocol_version.one() else {
        return Ok(());
    };
    let requested = String::from_utf8_lossy(value);
    match requested.parse::<Revision>() {
        Ok(named) if named.era() == Era::Legacy => Ok(()),
        _ => Err(refuse(
            &ErrorKind::UnsupportedVersion {
                requested: requested.into_owned(),
            },
            revision,
            id,
        )),
    }
}

/// The mirrored headers of a message within a legacy session: required in the draft profile unless
/// the tenant is lenient (MCP-D-2), else only compared (MCP-D-3).
pub fn check_session_headers(
    message: &Message,
    headers: &Headers<'_>,
    revision: Revision,
    mirroring: Mirroring,
) -> Result<(), Refusal> {
    header::check_method_and_name(message, headers, mirroring, Dialect::Draft)
        .map_err(|kind| refuse(&kind, revision, message.request_id()))
}

fn single(message: Message, headers: &Headers<'_>) -> Result<Admitted, Refusal> {
    match by_era(message, headers)? {
        ByEra::Modern(admitted) => Ok(admitted),
        ByEra::Legacy(message) => legacy(message, headers),
    }
}

/// A message by its era.
enum ByEra {
    /// Admitted: a request or a notification.
    Modern(Admitted),
    /// Admitted by the rules of sessions, or by those of a server without them.
    Legacy(Message),
}

fn by_era(message: Message, headers: &Headers<'_>) -> Result<ByEra, Refusal> {
    let key = message.params().and_then(Params::version);
    let has_key = key.is_some();
    let named_modern = names_modern(&headers.protocol_version);
    let legacy_key = key.and_then(legacy_version);
    let modern = legacy_key.is_none() && (has_key || (named_modern && message.params().is_some()));
    single_valued(headers, modern, message.request_id())?;

    if let Some(named) = legacy_key {
        // MCP-E-6: a legacy version under the modern key is a legacy message; a header may not
        // contradict it.
        if headers
            .protocol_version
            .one()
            .is_some_and(|value| value != named.as_str().as_bytes())
        {
            let kind = ErrorKind::HeaderMismatch(
                "MCP-Protocol-Version differs from the version in _meta".into(),
            );
            let id = message.request_id();
            return Err(refuse(&kind, Revision::V2026_07_28, id));
        }
        return Ok(ByEra::Legacy(message));
    }
    match message {
        Message::Request(request) if has_key => modern_request(request, headers).map(ByEra::Modern),
        Message::Notification(notification) if has_key || named_modern => {
            modern_notification(notification, headers).map(ByEra::Modern)
        }
        Message::Request(request) if named_modern => {
            let kind = if Method::from_name(&request.method) == Some(Method::Initialize) {
                // MCP-E-3: the handshake belongs to the other era.
                ErrorKind::HeaderMismatch(
                    "MCP-Protocol-Version names a revision without initialize".into(),
                )
            } else {
                let path = format!("params._meta[\"{}\"]", meta::PROTOCOL_VERSION);
                ErrorKind::InvalidMeta(crate::jsonrpc::Misfit::new(path, "required"))
            };
            Err(refuse(&kind, Revision::V2026_07_28, Some(&request.id)))
        }
        message => Ok(ByEra::Legacy(message)),
    }
}

fn legacy(message: Message, headers: &Headers<'_>) -> Result<Admitted, Refusal> {
    if let Message::Request(request) = &message
        && request.method.as_ref() == Method::Initialize.name()
    {
        if headers.session_id != Field::Absent {
            let kind = ErrorKind::InvalidRequest(
                "initialize opens a session: send it without Mcp-Session-Id".into(),
            );
            return Err(refuse(&kind, Revision::FALLBACK, Some(&request.id)));
        }
        let draft = headers.method != Field::Absent;
        let Message::Request(request) = message else {
            return Err(refuse(
                &ErrorKind::SessionRequired,
                Revision::FALLBACK,
                None,
            ));
        };
        if draft {
            header::check(
                &request.method,
                &request.params,
                headers,
                Mirroring::Draft,
                Dialect::Draft,
            )
            .map_err(|kind| refuse(&kind, Revision::FALLBACK, Some(&request.id)))?;
        }
        return Ok(Admitted::Initialize { request, draft });
    }
    if matches!(message, Message::Response(_)) && headers.session_id == Field::Absent {
        // MCP-E-13: a response without a session answers no request of this server.
        let kind = ErrorKind::InvalidRequest(
            "A response belongs to a session: Mcp-Session-Id header is required".into(),
        );
        return Err(refuse(&kind, Revision::FALLBACK, None));
    }
    let session_id = session_id(headers, message.request_id())?;
    Ok(Admitted::Session {
        session_id,
        message,
    })
}

/// The ladder MCP-E-7, steps 1 to 6.
fn modern_request(request: Request, headers: &Headers<'_>) -> Result<Admitted, Refusal> {
    let newest = Revision::V2026_07_28;
    let fail = |kind: &ErrorKind| Err(refuse(kind, newest, Some(&request.id)));
    // (1)
    let Some(requested) = request.params.version().and_then(Raw::text) else {
        return fail(&ErrorKind::InvalidMeta(version_misfit()));
    };
    // (2)
    match headers.protocol_version.one() {
        Some(value) if value == requested.as_bytes() => {}
        Some(_) => {
            return fail(&ErrorKind::HeaderMismatch(
                "MCP-Protocol-Version differs from the version in _meta".into(),
            ));
        }
        None => {
            return fail(&ErrorKind::HeaderMismatch(
                "MCP-Protocol-Version is required".into(),
            ));
        }
    }
    // (3)
    if let Err(kind) = header::check(
        &request.method,
        &request.params,
        headers,
        Mirroring::Required,
        Dialect::Modern,
    ) {
        return fail(&kind);
    }
    // (4)
    let Some(revision) = served_modern(&requested) else {
        let requested = requested.into_owned();
        return fail(&ErrorKind::UnsupportedVersion { requested });
    };
    // (5)
    let empty = Raw::empty_object();
    let meta = match RequestMeta::modern(request.params.meta().unwrap_or(&empty)) {
        Ok(meta) => Box::new(meta),
        Err(misfit) => return fail(&ErrorKind::InvalidMeta(misfit)),
    };
    // (6)
    match Method::of_client(&request.method, revision) {
        Some(method) => Ok(Admitted::Modern {
            revision,
            method,
            request,
            meta,
        }),
        None if request.method.as_ref() == Method::Initialize.name() => {
            fail(&ErrorKind::NoHandshake)
        }
        None => fail(&ErrorKind::MethodNotFound(request.method.to_string())),
    }
}

/// MCP-E-14: headers are not required, but those that are there must match.
fn modern_notification(
    notification: Notification,
    headers: &Headers<'_>,
) -> Result<Admitted, Refusal> {
    let fail = |kind: &ErrorKind| Err(refuse(kind, Revision::V2026_07_28, None));
    if let Some(version) = notification.params.version() {
        let Some(requested) = version.text() else {
            return fail(&ErrorKind::InvalidMeta(version_misfit()));
        };
        if headers
            .protocol_version
            .one()
            .is_some_and(|value| value != requested.as_bytes())
        {
            return fail(&ErrorKind::HeaderMismatch(
                "MCP-Protocol-Version differs from the version in _meta".into(),
            ));
        }
        if served_modern(&requested).is_none() {
            let requested = requested.into_owned();
            return fail(&ErrorKind::UnsupportedVersion { requested });
        }
    }
    let Notification { method, params } = &notification;
    match header::check(
        method,
        params,
        headers,
        Mirroring::Optional,
        Dialect::Modern,
    ) {
        Ok(()) => Ok(Admitted::ModernNotification(notification)),
        Err(kind) => fail(&kind),
    }
}

fn version_misfit() -> crate::jsonrpc::Misfit {
    crate::jsonrpc::Misfit::new(
        format!("params._meta[\"{}\"]", meta::PROTOCOL_VERSION),
        "expected a string",
    )
}

fn served_modern(version: &str) -> Option<Revision> {
    version
        .parse::<Revision>()
        .ok()
        .filter(|revision| revision.era() == Era::Modern && revision.is_served())
}

fn legacy_version(value: &Raw) -> Option<Revision> {
    value
        .text()?
        .parse::<Revision>()
        .ok()
        .filter(|revision| revision.era() == Era::Legacy)
}

/// True if the header, or one of several, names a modern revision.
fn names_modern(field: &Field<'_>) -> bool {
    field.all().iter().any(|value| {
        std::str::from_utf8(header::trim(value))
            .ok()
            .and_then(|text| text.parse::<Revision>().ok())
            .is_some_and(|revision| revision.era() == Era::Modern)
    })
}

/// MCP-T-13.
fn single_valued(
    headers: &Headers<'_>,
    modern: bool,
    id: Option<&RequestId>,
) -> Result<(), Refusal> {
    let Some(name) = headers.repeated() else {
        return Ok(());
    };
    let text = format!("{name} was sent more than once");
    Err(if modern {
        refuse(
            &ErrorKind::HeaderMismatch(text.into()),
            Revision::V2026_07_28,
            id,
        )
    } else {
        refuse(
            &ErrorKind::InvalidRequest(text.into()),
            Revision::FALLBACK,
            id,
        )
    })
}

/// MCP-E-5, MCP-T-42: the session id, which must be there. One that we cannot have made is answered
/// like a dead one (MCP-T-41, MCP-T-43).
fn session_id(headers: &Headers<'_>, id: Option<&RequestId>) -> Result<String, Refusal> {
    match headers.session_id.one() {
        None | Some(b"") => Err(refuse(&ErrorKind::SessionRequired, Revision::FALLBACK, id)),
        Some(value) if value.iter().all(|byte| (0x21..=0x7e).contains(byte)) => {
            Ok(String::from_utf8_lossy(value).into_owned())
        }
        Some(_) => Err(refuse(
            &ErrorKind::SessionNotFound,
            Revision::FALLBACK,
            None,
        )),
    }
}
