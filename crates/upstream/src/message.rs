//! Messages from a server: a single one, or the batch that a 2025-03-26 server may answer with
//! (MCP-X-7C). They are parsed with the tolerance of MCP-X-8, and no more.

use portolan_protocol::{
    error::RpcError,
    jsonrpc::{Kind, Raw, RequestId},
};

use crate::error::UpstreamError;

/// A message of a server.
#[derive(Debug, Clone)]
pub(crate) enum Incoming {
    /// It wants something of the client.
    Request {
        id: RequestId,
        method: String,
        params: Raw,
    },
    /// A notification.
    Notification { method: String, params: Raw },
    /// It answers. Without an id (or with `null`) only an error (MCP-X-8).
    Response {
        id: Option<RequestId>,
        outcome: Result<Raw, RpcError>,
        /// Parts of the result may be unsound: it can be used only where they are checked one by
        /// one (REVIEW-F6).
        is_odd: bool,
    },
}

/// Most messages of one batch.
const MOST: usize = 1_000;

/// Reads a body or the data of an event.
pub(crate) fn read(text: impl Into<bytes::Bytes>) -> Result<Vec<Incoming>, UpstreamError> {
    let text = text.into();
    let (raw, is_odd) = match Raw::parse(text.clone()) {
        Ok(raw) => (raw, false),
        Err(_) => match Raw::parse_list(text) {
            Ok(raw) => (raw, true),
            Err(_) => return Err(UpstreamError::violation("what it sent is not JSON")),
        },
    };
    let one = |raw: &Raw| one(raw, is_odd && raw.soundness().is_err());
    match raw.kind() {
        Kind::Object => one(&raw).map(|message| vec![message]),
        Kind::Array => raw.elements().take(MOST).map(|raw| one(&raw)).collect(),
        _ => Err(UpstreamError::violation("a message is a JSON object")),
    }
}

/// Error for an invalid message.
pub(crate) fn unsound() -> UpstreamError {
    UpstreamError::violation(
        "what it sent is nested deeper than 64, or holds half of a surrogate pair",
    )
}

fn one(raw: &Raw, is_odd: bool) -> Result<Incoming, UpstreamError> {
    let violation = |what: &str| Err(UpstreamError::violation(what));
    let (mut version, mut id, mut method, mut params, mut result, mut error) =
        (None, None, None, None, None, None);
    for (name, value) in raw.members() {
        let slot = match name.as_str() {
            "jsonrpc" => &mut version,
            "id" => &mut id,
            "method" => &mut method,
            "params" => &mut params,
            "result" => &mut result,
            "error" => &mut error,
            _ => continue,
        };
        *slot = Some(value);
    }
    if is_odd && (method.is_some() || error.is_some()) {
        return Err(unsound());
    }
    if version.and_then(|raw| raw.string()).as_deref() != Some("2.0") {
        return violation("a message says that it is JSON-RPC 2.0");
    }
    let id = match id {
        None => None,
        Some(raw) if raw.is_null() => None,
        Some(raw) => match RequestId::from_raw(&raw) {
            Some(id) => Some(id),
            None => return violation("an id is a string or an integer"),
        },
    };
    if let Some(method) = method {
        let Some(method) = method.string() else {
            return violation("a method is a string");
        };
        let params = match params {
            None => Raw::empty_object(),
            Some(raw) if raw.kind() == Kind::Object => raw,
            Some(raw) if raw.is_null() => Raw::empty_object(),
            Some(_) => return violation("parameters are an object"),
        };
        return Ok(match id {
            Some(id) => Incoming::Request { id, method, params },
            None => Incoming::Notification { method, params },
        });
    }
    let outcome = match (result, error) {
        (Some(result), None) if id.is_some() => {
            if result.kind() != Kind::Object {
                return violation("a result is an object");
            }
            Ok(result)
        }
        (None, Some(error)) => Err(rpc_error(&error)?),
        _ => return violation("an answer has an id, and either a result or an error"),
    };
    Ok(Incoming::Response {
        id,
        outcome,
        is_odd,
    })
}

fn rpc_error(raw: &Raw) -> Result<RpcError, UpstreamError> {
    let code: Option<i32> = raw
        .get("code")
        .and_then(|code| serde_json::from_slice(code.as_bytes()).ok());
    let message = raw.get("message").and_then(|text| text.string());
    match (code, message) {
        (Some(code), message) => Ok(RpcError {
            code,
            message: message.unwrap_or_default(),
            data: raw.get("data").filter(|data| !data.is_null()),
        }),
        (None, _) => Err(UpstreamError::violation("an error has a code")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x_8_an_error_without_id_or_with_null_is_taken_and_a_result_is_not() {
        let read = |text: &'static str| read(text.as_bytes());
        for text in [
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}}"#,
            r#"{"jsonrpc":"2.0","error":{"code":-32600}}"#,
        ] {
            let messages = read(text).unwrap();
            assert!(matches!(
                &messages[..],
                [Incoming::Response { id: None, outcome: Err(error), .. }] if error.code == -32600
            ));
        }
        for text in [
            r#"{"jsonrpc":"2.0","id":null,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":[]}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}"#,
            r#"{"jsonrpc":"1.0","id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1.5,"result":{}}"#,
            r#"{"jsonrpc":"2.0","method":7}"#,
            "7",
            "{",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn x_7c_a_batch_of_a_2025_03_26_server_is_taken_apart() {
        let text = r#"[{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info"}},
            {"jsonrpc":"2.0","id":7,"result":{"a":1}}]"#;
        let messages = read(text.as_bytes()).unwrap();
        assert!(matches!(
            &messages[..],
            [
                Incoming::Notification { method, .. },
                Incoming::Response { outcome: Ok(_), .. }
            ] if method == "notifications/message"
        ));
    }
}
