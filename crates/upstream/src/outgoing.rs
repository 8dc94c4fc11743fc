//! Outgoing messages and headers, built from scratch (MCP-X-9).

use std::{
    hash::{BuildHasher, RandomState},
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
};

use http::{HeaderName, HeaderValue};
use portolan_protocol::{
    error::RpcError,
    header::{self, ParamHeader},
    jsonrpc::{self, Raw, RequestId},
    logging::Level,
    meta,
    method::Method,
    result::write_string,
    revision::Revision,
};

use crate::endpoint::Speaker;

pub(crate) const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub(crate) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
pub(crate) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// A request, as far as it is the caller's. Ids, tokens and headers are made here.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// The method.
    pub method: &'a str,
    /// The parameters, an object. Its `_meta` is passed on but for what is reserved or belongs to
    /// the other leg.
    pub params: Raw,
    /// Progress is wanted.
    pub progress: bool,
    /// Log messages from this level on are wanted (modern servers only; MCP-X-73).
    pub log_level: Option<Level>,
    /// W3C `traceparent`, which is continued in `_meta`.
    pub traceparent: Option<String>,
    /// Arguments that headers repeat, by the upstream's own schema (`tools/call` on modern servers;
    /// MCP-H-12).
    pub mirrored: &'a [ParamHeader],
}

impl<'a> Request<'a> {
    /// Creates a request that needs only its answer.
    pub fn new(method: &'a str, params: Raw) -> Self {
        Self {
            method,
            params,
            progress: false,
            log_level: None,
            traceparent: None,
            mirrored: &[],
        }
    }
}

/// Creates an id: a positive integer that every language holds exactly, unique in its session on
/// all nodes (MCP-X-19). The count is hashed with a key of this process, so that a server cannot
/// infer how many requests other servers receive.
pub fn new_id() -> RequestId {
    static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let hashed = KEY.hash_one(COUNT.fetch_add(1, Ordering::Relaxed));
    RequestId::from(((hashed >> 12) | 1).cast_signed())
}

/// Keys of `_meta` that are made anew on each leg.
fn is_ours(key: &str) -> bool {
    key.starts_with(meta::RESERVED_PREFIX)
        || matches!(
            key,
            "progressToken" | "traceparent" | "tracestate" | "baggage"
        )
}

/// The body of a request. A `speaker` makes it one that stands alone (2026-07-28).
pub(crate) fn request(id: &RequestId, request: &Request<'_>, speaker: Option<&Speaker>) -> Vec<u8> {
    let mut out = Vec::with_capacity(request.params.as_bytes().len() + 512);
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    id.write(&mut out);
    out.extend_from_slice(br#","method":"#);
    write_string(request.method, &mut out);
    out.extend_from_slice(br#","params":{"#);
    let mut passed = None;
    for (name, value) in request.params.members() {
        if name == "_meta" {
            passed = Some(value);
            continue;
        }
        member(&name, value.as_bytes(), &mut out);
    }
    let mut own = Vec::with_capacity(256);
    for (name, value) in passed.iter().flat_map(Raw::members) {
        if !is_ours(&name) {
            member(&name, value.as_bytes(), &mut own);
        }
    }
    if let Some(speaker) = speaker {
        let version = format!("\"{}\"", Revision::V2026_07_28);
        member(meta::PROTOCOL_VERSION, version.as_bytes(), &mut own);
        member(meta::CLIENT_INFO, speaker.info.as_bytes(), &mut own);
        member(
            meta::CLIENT_CAPABILITIES,
            speaker.capabilities.as_bytes(),
            &mut own,
        );
        if let Some(level) = request.log_level
            && let Ok(level) = serde_json::to_vec(&level)
        {
            member(meta::LOG_LEVEL, &level, &mut own);
        }
    }
    if request.progress {
        // The token is the id: unique in the session as well, and nothing more to remember.
        member("progressToken", id.to_json().as_bytes(), &mut own);
    }
    if let Some(trace) = &request.traceparent {
        let mut text = Vec::with_capacity(64);
        write_string(trace, &mut text);
        member("traceparent", &text, &mut own);
    }
    if !own.is_empty() {
        own.push(b'}');
        let mut object = vec![b'{'];
        object.append(&mut own);
        member("_meta", &object, &mut out);
    }
    out.extend_from_slice(b"}}");
    out
}

/// Appends a member; the comma is left out behind an opening brace and at the very beginning.
fn member(name: &str, value: &[u8], out: &mut Vec<u8>) {
    if !matches!(out.last(), None | Some(b'{')) {
        out.push(b',');
    }
    write_string(name, out);
    out.push(b':');
    out.extend_from_slice(value);
}

/// The answer to a request of the server.
pub(crate) fn answer(id: &RequestId, outcome: &Result<Raw, RpcError>) -> Vec<u8> {
    match outcome {
        Ok(result) => jsonrpc::response(id, result.as_bytes()),
        Err(error) => jsonrpc::error_response(Some(id), error),
    }
}

/// `notifications/cancelled` for a request of ours.
pub(crate) fn cancelled(id: &RequestId, reason: &str) -> Vec<u8> {
    let mut params = br#"{"requestId":"#.to_vec();
    id.write(&mut params);
    params.extend_from_slice(br#","reason":"#);
    write_string(reason, &mut params);
    params.push(b'}');
    jsonrpc::notification(Method::Cancelled.name(), Some(&params))
}

/// The headers that repeat a request (MCP-H-1, MCP-H-2, MCP-H-12). Values that no header could
/// carry come in their Base64 form.
pub fn mirrored(request: &Request<'_>) -> Vec<(HeaderName, HeaderValue)> {
    let revision = HeaderValue::from_static(Revision::V2026_07_28.as_str());
    let mut headers = vec![(PROTOCOL_VERSION, revision)];
    headers.extend(HeaderValue::from_str(request.method).map(|method| (METHOD, method)));
    let named = Method::from_name(request.method)
        .and_then(Method::mirrored_param)
        .and_then(|param| request.params.get(param))
        .and_then(|raw| raw.string());
    if let Some(name) = named {
        let name = HeaderValue::from_str(&header::encode(&name));
        headers.extend(name.map(|name| (NAME, name)));
    }
    if !request.mirrored.is_empty()
        && let Some(arguments) = request.params.get("arguments")
    {
        for (name, value) in header::mirrored_params(request.mirrored, &arguments) {
            let name = HeaderName::try_from(format!("mcp-param-{name}"));
            if let (Ok(name), Ok(value)) = (name, HeaderValue::try_from(value)) {
                headers.push((name, value));
            }
        }
    }
    headers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Raw {
        Raw::parse(text.to_owned()).unwrap()
    }

    #[test]
    fn x_9_and_x_19_a_request_is_built_anew_and_keeps_only_what_may_pass() {
        let mut call = Request::new(
            "tools/call",
            raw(
                r#"{"name":"a","arguments":{"x":1e2},"_meta":{"progressToken":"theirs","io.modelcontextprotocol/clientInfo":{},
                "traceparent":"x","com.example/note":[1]}}"#,
            ),
        );
        call.progress = true;
        let id = new_id();
        let body = request(&id, &call, None);
        let text = String::from_utf8(body).unwrap();
        let expected = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"a","arguments":{{"x":1e2}},"_meta":{{"com.example/note":[1],"progressToken":{id}}}}}}}"#
        );
        assert_eq!(text, expected);
    }

    #[test]
    fn l_14_a_modern_request_says_who_speaks_and_h_1_to_h_12_its_headers_repeat_it() {
        let schema = serde_json::json!({"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "count": {"type": "integer", "x-mcp-header": "Count"},
            "gone": {"type": "boolean", "x-mcp-header": "Gone"}}});
        let (mirrors, _) = header::annotations(&schema);
        let mut call = Request::new(
            "tools/call",
            raw(r#"{"name":"größer","arguments":{"region":"eu","count":3,"gone":null}}"#),
        );
        call.mirrored = &mirrors;
        let headers: Vec<(String, String)> = mirrored(&call)
            .into_iter()
            .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
            .collect();
        let has = |name: &str, value: &str| headers.contains(&(name.to_owned(), value.to_owned()));
        assert!(has("mcp-protocol-version", "2026-07-28") && has("mcp-method", "tools/call"));
        assert!(has("mcp-name", "=?base64?Z3LDtsOfZXI=?="));
        assert!(has("mcp-param-region", "eu") && has("mcp-param-count", "3"));
        assert_eq!(headers.len(), 5, "null has no header: {headers:?}");
        let body = request(&new_id(), &call, Some(&Speaker::ourselves()));
        let body = Raw::parse(body).unwrap();
        let meta = body
            .get("params")
            .and_then(|params| params.get("_meta"))
            .unwrap();
        assert!(meta.get(meta::CLIENT_CAPABILITIES).is_some());
        assert_eq!(
            meta.get(meta::PROTOCOL_VERSION).unwrap().string().unwrap(),
            "2026-07-28"
        );
    }
}
