//! JSON-RPC framing (MCP-J-1…MCP-J-19): the first parse keeps `params` as text, so that "unknown
//! method" and "invalid params" cannot blur, and writing an answer needs no second parse.

use std::{borrow::Cow, collections::HashSet, ops::Range};

use bytes::Bytes;

pub use crate::json::{Kind, Misfit, NotJson, Raw, Unsound};
pub use crate::request_id::{ProgressToken, RequestId};

use crate::error::{ErrorKind, Refusal, RpcError};
use crate::json::scan::{self, ScanError};
use crate::json::write_string;
use crate::meta_key;
use crate::method::Method;
use crate::revision::Revision;

/// The largest body of a POST, in bytes (MCP-J-19).
pub const MAX_BODY_BYTES: usize = 4 * 1024 * 1024;
/// The most elements of a batch (MCP-J-15).
pub const MAX_BATCH: usize = 100;

/// The body of a POST after the first parse.
#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly every body is one message, which a box would allocate"
)]
pub enum Body {
    /// One message.
    Single(Message),
    /// An array. [`Batch::open`] checks whether it is acceptable.
    Batch(Batch),
}

/// One JSON-RPC message.
#[derive(Clone, Debug)]
pub enum Message {
    /// `id` and `method`.
    Request(Request),
    /// `method` without `id`: never answered (MCP-J-8).
    Notification(Notification),
    /// `result` or `error`.
    Response(Response),
}

/// A request of the client.
#[derive(Clone, Debug)]
pub struct Request {
    /// Repeated exactly in the answer (MCP-J-5).
    pub id: RequestId,
    /// The method as sent; see [`crate::method::Method::of_client`].
    pub method: Cow<'static, str>,
    /// The parameters, unread.
    pub params: Params,
}

/// A notification of the client.
#[derive(Clone, Debug)]
pub struct Notification {
    /// The method as sent. Unknown ones are accepted and dropped (MCP-J-9).
    pub method: Cow<'static, str>,
    /// The parameters, unread.
    pub params: Params,
}

/// The client's answer to a request of the server.
#[derive(Clone, Debug)]
pub struct Response {
    /// The id of our request; absent in an error to something that the client could not read.
    pub id: Option<RequestId>,
    /// The `result`, or the `error` object, as text.
    pub outcome: Result<Raw, Raw>,
}

/// The parameters of a message: an object, or absent. Read by the types of the method's module.
#[derive(Clone, Debug, Default)]
pub struct Params {
    object: Option<Raw>,
    /// The places of the members [`KNOWN`] within the object; empty for an absent one.
    places: [Range<usize>; KNOWN.len()],
    meta: Option<Raw>,
    version: Option<Raw>,
}

/// The members of parameters that are read most. Their places are noted in one walk, because the
/// arguments may be megabytes long.
const KNOWN: [&str; 8] = [
    "name",
    "uri",
    "taskId",
    "arguments",
    "_meta",
    "task",
    "inputResponses",
    "requestState",
];
/// Number of the members [`KNOWN`] that a header mirrors, or that select the era; they come first.
const MIRRORED: usize = 5;
/// The index of `_meta` in [`KNOWN`].
const META: usize = 4;

impl Params {
    /// The whole object, if there is one.
    pub fn raw(&self) -> Option<&Raw> {
        self.object.as_ref()
    }

    /// The member `name`; the last one if there are several.
    pub fn get(&self, name: &str) -> Option<Raw> {
        let place = self.place(name)?;
        Some(self.object.as_ref()?.part(place))
    }

    /// The member `name` if it is a string; without a copy if it has no escapes.
    pub fn text(&self, name: &str) -> Option<Cow<'_, str>> {
        let place = self.place(name)?;
        scan::string(self.object.as_ref()?.as_bytes().get(place)?)
    }

    fn place(&self, name: &str) -> Option<Range<usize>> {
        match KNOWN.iter().position(|known| *known == name) {
            Some(slot) => Some(self.places[slot].clone()).filter(|place| !place.is_empty()),
            None => scan::members(self.object.as_ref()?.as_bytes())
                .filter(|(key, _)| key.is(name))
                .last()
                .map(|(_, place)| place),
        }
    }

    /// `_meta`, of any type.
    pub fn meta(&self) -> Option<&Raw> {
        self.meta.as_ref()
    }

    /// The value of `_meta["io.modelcontextprotocol/protocolVersion"]`, which selects the era
    /// (MCP-E-2).
    pub fn version(&self) -> Option<&Raw> {
        self.version.as_ref()
    }

    /// Reads all parameters as `T`; absent parameters read as `{}`.
    pub fn read<T: serde::de::DeserializeOwned>(&self) -> Result<T, Misfit> {
        match &self.object {
            Some(raw) => raw.read("params"),
            None => Raw::empty_object().read("params"),
        }
    }
}

impl From<Raw> for Params {
    /// Parameters from an object text; any other kind gives absent parameters.
    fn from(raw: Raw) -> Self {
        if raw.kind() == Kind::Object {
            walked(raw).0
        } else {
            Self::default()
        }
    }
}

impl Message {
    /// The id of a request.
    pub fn request_id(&self) -> Option<&RequestId> {
        match self {
            Self::Request(request) => Some(&request.id),
            _ => None,
        }
    }

    /// The parameters of a request or notification.
    pub fn params(&self) -> Option<&Params> {
        match self {
            Self::Request(request) => Some(&request.params),
            Self::Notification(notification) => Some(&notification.params),
            Self::Response(_) => None,
        }
    }

    /// The method of a request or notification.
    pub fn method(&self) -> Option<&str> {
        match self {
            Self::Request(request) => Some(&request.method),
            Self::Notification(notification) => Some(&notification.method),
            Self::Response(_) => None,
        }
    }
}

impl Body {
    /// The first parse. Refusals: `-32700` for what is not JSON (MCP-J-1), `-32600` for a wrong
    /// envelope (MCP-J-2, MCP-J-10, MCP-J-11, MCP-J-19), with the id if it could be read (MCP-J-7).
    pub fn parse(body: Bytes) -> Result<Self, Refusal> {
        match scan::validate(&body) {
            Ok(()) => {}
            Err(ScanError::Syntax | ScanError::LoneSurrogate) => {
                return Err(ErrorKind::Parse.refuse(Revision::FALLBACK, None));
            }
            Err(ScanError::TooDeep) => return Err(invalid("Nested deeper than 64 levels.", None)),
        }
        let raw = Raw::trusted(body);
        match raw.kind() {
            Kind::Object => message(&raw).map(Self::Single),
            Kind::Array => Ok(Self::Batch(Batch { array: raw })),
            _ => Err(invalid("A message is a JSON object.", None)),
        }
    }
}

fn invalid(why: impl Into<Cow<'static, str>>, id: Option<RequestId>) -> Refusal {
    ErrorKind::InvalidRequest(why.into()).refuse(Revision::FALLBACK, id)
}

fn message(raw: &Raw) -> Result<Message, Refusal> {
    const NAMES: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];
    let text = raw.as_bytes();
    let mut slots: [Option<Range<usize>>; 6] = [const { None }; 6];
    let mut duplicate = None;
    for (key, range) in scan::members(text) {
        if let Some(slot) = NAMES.iter().position(|name| key.is(name))
            && slots[slot].replace(range).is_some()
        {
            duplicate = Some(slot);
        }
    }
    let [version, id, method, params, result, error] = slots;
    let known_id = if duplicate == Some(1) {
        None
    } else {
        id.clone().and_then(|id| RequestId::from_json(&text[id]))
    };
    let refuse = |why| Err(invalid(why, known_id.clone()));
    if duplicate.is_some() {
        return refuse("A member of the message appears twice.");
    }
    let version = version.and_then(|version| scan::string(&text[version]));
    if version.as_deref() != Some("2.0") {
        return refuse("\"jsonrpc\" must be \"2.0\".");
    }
    if id.is_some() && known_id.is_none() {
        return refuse("\"id\" must be a string or an integer.");
    }
    let Some(method) = method else {
        let [result, error] = [result, error].map(|part| part.map(|part| raw.part(part)));
        return response_message(result, error, known_id);
    };
    if result.is_some() || error.is_some() {
        return refuse("A message with a \"method\" has neither \"result\" nor \"error\".");
    }
    let Some(method) = scan::string(&text[method]).map(named) else {
        return refuse("\"method\" must be a string.");
    };
    let params = match params.map(|params| raw.part(params)) {
        None => Params::default(),
        Some(object) if object.kind() == Kind::Object => match walked(object) {
            (params, None) => params,
            (_, Some(why)) => return refuse(why),
        },
        Some(_) => return refuse("\"params\" must be an object."),
    };
    Ok(match known_id {
        Some(id) => Message::Request(Request { id, method, params }),
        None => Message::Notification(Notification { method, params }),
    })
}

/// A method as sent, without a copy if some revision knows it.
fn named(method: Cow<'_, str>) -> Cow<'static, str> {
    match Method::from_name(&method).map(Method::name) {
        Some(name) if name == method => Cow::Borrowed(name),
        _ => Cow::Owned(method.into_owned()),
    }
}

/// A message without a method: a result or an error.
fn response_message(
    result: Option<Raw>,
    error: Option<Raw>,
    id: Option<RequestId>,
) -> Result<Message, Refusal> {
    match (result, error, id) {
        (Some(result), None, Some(id)) => Ok(Message::Response(Response {
            id: Some(id),
            outcome: Ok(result),
        })),
        (None, Some(error), id) => {
            let sound = error
                .get("code")
                .and_then(|code| RequestId::from_raw(&code))
                .is_some_and(|c| c.as_text().is_none())
                && error
                    .get("message")
                    .and_then(|text| text.string())
                    .is_some();
            if sound {
                Ok(Message::Response(Response {
                    id,
                    outcome: Err(error),
                }))
            } else {
                Err(invalid(
                    "\"error\" needs an integer \"code\" and a string \"message\".",
                    None,
                ))
            }
        }
        (_, _, id) => Err(invalid(
            "A message has a \"method\", or exactly one of \"result\" and \"error\".",
            id,
        )),
    }
}

/// Parameters of an object, and their fault if they have one.
///
/// MCP-J-11: a member that a header mirrors, or that selects the era, must appear once. Otherwise
/// the check could read one value and the handler another.
fn walked(object: Raw) -> (Params, Option<&'static str>) {
    let mut fault = None;
    let mut places: [Range<usize>; KNOWN.len()] = Default::default();
    for (key, range) in scan::members(object.as_bytes()) {
        let Some(slot) = KNOWN.iter().position(|name| key.is(name)) else {
            continue;
        };
        if slot < MIRRORED && !places[slot].is_empty() {
            fault = Some("A member of \"params\" appears twice.");
        }
        places[slot] = range;
    }
    let meta = Some(places[META].clone()).filter(|place| !place.is_empty());
    let meta = meta.map(|place| object.part(place));
    let version = meta.as_ref().and_then(|meta| {
        let (version, is_sound) = version_of(meta);
        if !is_sound {
            fault = fault.or(Some("A member of \"_meta\" appears twice."));
        }
        version
    });
    let params = Params {
        object: Some(object),
        places,
        meta,
        version,
    };
    (params, fault)
}

/// The version in `_meta`; false if a reserved key stands there twice (MCP-J-11).
fn version_of(meta: &Raw) -> (Option<Raw>, bool) {
    // These stand in most requests. A set of other keys allocates only when there is one.
    const USUAL: [&str; 4] = [
        meta_key::PROTOCOL_VERSION,
        meta_key::CLIENT_INFO,
        meta_key::CLIENT_CAPABILITIES,
        meta_key::LOG_LEVEL,
    ];
    let mut usual: [Option<Range<usize>>; 4] = [const { None }; 4];
    let mut others = HashSet::new();
    let mut is_sound = true;
    for (key, range) in scan::members(meta.as_bytes()) {
        let key = key.text();
        if !key.starts_with(meta_key::RESERVED_PREFIX) {
            continue;
        }
        is_sound &= match USUAL.iter().position(|name| *name == key) {
            Some(slot) => usual[slot].replace(range).is_none(),
            None => others.insert(key),
        };
    }
    let [version, ..] = usual;
    (version.map(|place| meta.part(place)), is_sound)
}

/// An array body, not yet accepted.
#[derive(Clone, Debug)]
pub struct Batch {
    array: Raw,
}

/// Messages of an accepted batch (MCP-J-14).
#[derive(Clone, Debug)]
pub enum BatchContent {
    /// Requests and notifications, in order. Answered if there is at least one request, else 202.
    Calls(Vec<Message>),
    /// Responses only: 202.
    Responses(Vec<Response>),
}

impl Batch {
    /// Reads the batch; every fault refuses the whole of it (MCP-J-13, MCP-J-15). Does not check
    /// whether the revision has batches, because only the session knows that; see
    /// [`crate::revision::Facts::batches`] and [`Batch::refusal`].
    pub fn open(&self) -> Result<BatchContent, Refusal> {
        let refuse = |why| Err(invalid(why, None));
        let mut calls = Vec::new();
        let mut responses = Vec::new();
        let mut ids = HashSet::new();
        for (count, range) in scan::elements(self.array.as_bytes()).enumerate() {
            if count == MAX_BATCH {
                let why = format!("A batch holds at most {MAX_BATCH} messages.");
                return Err(invalid(why, None));
            }
            let element = self.array.part(range);
            if element.kind() != Kind::Object {
                return refuse("Every element of a batch is a JSON object.");
            }
            let message = match message(&element) {
                Ok(message) => message,
                Err(mut refusal) => {
                    refusal.id = None;
                    return Err(refusal);
                }
            };
            if message.method() == Some("initialize") {
                return refuse("\"initialize\" is never part of a batch.");
            }
            if message.params().and_then(Params::version).is_some() {
                return refuse(
                    "A request with a protocol version in \"_meta\" is never part of a batch.",
                );
            }
            if let Some(id) = message.request_id()
                && !ids.insert(id.clone())
            {
                return refuse("Two requests of the batch have the same id.");
            }
            match message {
                Message::Response(response) => responses.push(response),
                call => calls.push(call),
            }
        }
        match (calls.is_empty(), responses.is_empty()) {
            (true, true) => refuse("The batch is empty."),
            (false, false) => refuse("A batch holds either calls or responses."),
            (false, true) => Ok(BatchContent::Calls(calls)),
            (true, false) => Ok(BatchContent::Responses(responses)),
        }
    }

    /// The refusal of an array where the revision has none (MCP-J-16).
    pub fn refusal() -> Refusal {
        invalid(
            "This protocol revision has no batches: send one message per request.",
            None,
        )
    }
}

/// A response with an already serialised result: `{"jsonrpc":"2.0","id":…,"result":…}`.
pub fn response(id: &RequestId, result: &[u8]) -> Vec<u8> {
    response_with(id, result.len(), |out| out.extend_from_slice(result))
}

/// A response whose result is written in place; `capacity` is a guess at its size in bytes.
pub fn response_with(
    id: &RequestId,
    capacity: usize,
    result: impl FnOnce(&mut Vec<u8>),
) -> Vec<u8> {
    let mut out = Vec::with_capacity(capacity + 64);
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    id.write(&mut out);
    out.extend_from_slice(br#","result":"#);
    result(&mut out);
    out.push(b'}');
    out
}

/// Adds a text to `_meta` of the result of a response, after what stands there: of a member that
/// stands twice, the last counts. An error response, and a result whose `_meta` is no object, stay
/// as they are.
pub fn add_meta(response: &mut Vec<u8>, key: &str, text: &str) {
    let result = scan::members(response).find(|(name, _)| name.is("result"));
    let Some((_, result)) = result else { return };
    let object = &response[result.clone()];
    if !object.starts_with(b"{") {
        return;
    }
    let meta = scan::members(object).find(|(name, _)| name.is("_meta"));
    let is_new = meta.is_none();
    let place = meta.map_or(result.clone(), |(_, meta)| {
        result.start + meta.start..result.start + meta.end
    });
    if response[place.start] != b'{' {
        return;
    }
    let is_empty = scan::members(&response[place.clone()]).next().is_none();
    let mut member = Vec::with_capacity(key.len() + text.len() + 16);
    if !is_empty {
        member.push(b',');
    }
    if is_new {
        member.extend_from_slice(br#""_meta":{"#);
    }
    write_string(key, &mut member);
    member.push(b':');
    write_string(text, &mut member);
    if is_new {
        member.push(b'}');
    }
    let end = place.end - 1;
    response.splice(end..end, member);
}

impl Refusal {
    /// The response body.
    pub fn body(&self) -> Vec<u8> {
        error_response(self.id.as_ref(), &self.error)
    }
}

/// An error response. Without an id the member is left out, never null (MCP-J-7).
pub fn error_response(id: Option<&RequestId>, error: &RpcError) -> Vec<u8> {
    let mut out = Vec::with_capacity(160);
    out.extend_from_slice(br#"{"jsonrpc":"2.0""#);
    if let Some(id) = id {
        out.extend_from_slice(br#","id":"#);
        id.write(&mut out);
    }
    out.extend_from_slice(br#","error":"#);
    error.write(&mut out);
    out.push(b'}');
    out
}

/// A notification of the server with already serialised params.
pub fn notification(method: &str, params: Option<&[u8]>) -> Vec<u8> {
    let mut out = Vec::with_capacity(64 + method.len() + params.map_or(0, <[u8]>::len));
    out.extend_from_slice(br#"{"jsonrpc":"2.0","method":"#);
    write_string(method, &mut out);
    if let Some(params) = params {
        out.extend_from_slice(br#","params":"#);
        out.extend_from_slice(params);
    }
    out.push(b'}');
    out
}

/// Several responses as the JSON answer to a batch (MCP-J-14, 2025-03-26 only).
pub fn batch_response(responses: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::with_capacity(
        responses
            .iter()
            .map(|response| response.len() + 1)
            .sum::<usize>()
            + 2,
    );
    out.push(b'[');
    for (index, response) in responses.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(response);
    }
    out.push(b']');
    out
}
