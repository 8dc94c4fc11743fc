//! Messages of both sides, read as far as the bridge needs it. Their text stays as it is.

use bytes::Bytes;
use portolan_protocol::{
    error::RpcError,
    jsonrpc::{self, Kind, Raw, RequestId},
    meta,
    method::Method,
    result::write_string,
};

/// A message, or the batch of 2025-03-26.
#[derive(Debug, Clone)]
pub(crate) enum MessageBody {
    One(LineMessage),
    Batch(Vec<LineMessage>),
}

/// One message.
#[derive(Debug, Clone)]
pub(crate) struct LineMessage {
    /// Its text.
    pub(crate) raw: Raw,
    pub(crate) sort: Sort,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Sort {
    Request { id: RequestId, method: String },
    Notification { method: String },
    Response { id: Option<RequestId> },
}

/// Fault of a text that is no message.
#[derive(Debug, Clone)]
pub(crate) struct NoMessage {
    pub(crate) code: i32,
    pub(crate) why: &'static str,
    pub(crate) id: Option<RequestId>,
}

/// Most messages of a batch.
const MOST: usize = 1_000;

impl MessageBody {
    /// Reads a line, a body or the data of an event.
    pub(crate) fn read(text: impl Into<Bytes>) -> Result<Self, NoMessage> {
        let text = text.into();
        // A list with a part that is not sound passes like any other text.
        let raw = Raw::parse(text.clone()).or_else(|_| Raw::parse_list(text));
        let Ok(raw) = raw else {
            return Err(NoMessage {
                code: -32700,
                why: "Parse error",
                id: None,
            });
        };
        match raw.kind() {
            Kind::Array => {
                let all = raw.elements().take(MOST).map(LineMessage::of);
                let messages = all.collect::<Result<Vec<_>, _>>()?;
                if messages.is_empty() {
                    return Err(invalid("a batch holds messages", None));
                }
                Ok(Self::Batch(messages))
            }
            _ => LineMessage::of(raw).map(Self::One),
        }
    }

    /// The messages in it.
    pub(crate) fn into_messages(self) -> Vec<LineMessage> {
        match self {
            Self::One(message) => vec![message],
            Self::Batch(messages) => messages,
        }
    }
}

const fn invalid(why: &'static str, id: Option<RequestId>) -> NoMessage {
    NoMessage {
        code: -32600,
        why,
        id,
    }
}

impl LineMessage {
    fn of(raw: Raw) -> Result<Self, NoMessage> {
        if raw.kind() != Kind::Object {
            return Err(invalid("a message is an object", None));
        }
        let (mut id, mut method, mut is_answer) = (None, None, false);
        for (name, value) in raw.members() {
            match name.as_str() {
                "id" if !value.is_null() => id = Some(value),
                "method" => method = Some(value),
                "result" | "error" => is_answer = true,
                _ => {}
            }
        }
        let id = match id {
            None => None,
            Some(raw) => match RequestId::from_raw(&raw) {
                Some(id) => Some(id),
                None => return Err(invalid("an id is a string or an integer", None)),
            },
        };
        let sort = match (method, id) {
            (Some(method), id) => {
                let Some(method) = method.string() else {
                    return Err(invalid("a method is a string", id));
                };
                match id {
                    Some(id) => Sort::Request { id, method },
                    None => Sort::Notification { method },
                }
            }
            (None, id) if is_answer => Sort::Response { id },
            (None, id) => {
                return Err(invalid("a message has a method, a result or an error", id));
            }
        };
        Ok(Self { raw, sort })
    }

    pub(crate) fn method(&self) -> Option<&str> {
        match &self.sort {
            Sort::Request { method, .. } | Sort::Notification { method } => Some(method),
            Sort::Response { .. } => None,
        }
    }

    pub(crate) fn is(&self, method: Method) -> bool {
        self.method() == Some(method.name())
    }

    /// The parameters, an object.
    pub(crate) fn params(&self) -> Raw {
        let params = self.raw.get("params");
        params
            .filter(|raw| raw.kind() == Kind::Object)
            .unwrap_or(Raw::empty_object())
    }

    /// The version that a request of 2026-07-28 names.
    pub(crate) fn version(&self) -> Option<String> {
        let meta = self.params().get("_meta")?;
        meta.get(meta::PROTOCOL_VERSION)?.string()
    }

    /// True for the response to this request.
    pub(crate) fn answers(&self, request: &RequestId) -> bool {
        matches!(&self.sort, Sort::Response { id: Some(id) } if id == request)
    }

    /// The request that `notifications/cancelled` names.
    pub(crate) fn cancels(&self) -> Option<RequestId> {
        if !self.is(Method::Cancelled) {
            return None;
        }
        RequestId::from_raw(&self.params().get("requestId")?)
    }
}

/// A request.
pub(crate) fn request(id: &RequestId, method: &str, params: &Raw) -> Bytes {
    let mut out = br#"{"jsonrpc":"2.0","id":"#.to_vec();
    id.write(&mut out);
    out.extend_from_slice(br#","method":"#);
    write_string(method, &mut out);
    out.extend_from_slice(br#","params":"#);
    out.extend_from_slice(params.as_bytes());
    out.push(b'}');
    out.into()
}

/// A notification.
pub(crate) fn notification(method: &str, params: Option<&Raw>) -> Bytes {
    jsonrpc::notification(method, params.map(Raw::as_bytes)).into()
}

/// An answer with a result.
pub(crate) fn result(id: &RequestId, result: &[u8]) -> Bytes {
    jsonrpc::response(id, result).into()
}

/// An answer with an error.
pub(crate) fn error(id: Option<&RequestId>, error: &RpcError) -> Bytes {
    jsonrpc::error_response(id, error).into()
}

/// An error of the bridge itself.
pub(crate) fn own_error(code: i32, message: impl Into<String>) -> RpcError {
    RpcError {
        code,
        message: message.into(),
        data: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sort(text: &'static str) -> Result<Sort, i32> {
        match MessageBody::read(text.as_bytes()) {
            Ok(MessageBody::One(message)) => Ok(message.sort),
            Ok(MessageBody::Batch(_)) => Err(0),
            Err(fault) => Err(fault.code),
        }
    }

    #[test]
    fn messages_are_told_apart_by_method_and_id() {
        let id = RequestId::from(1);
        let method = || "ping".to_owned();
        assert_eq!(
            sort(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#),
            Ok(Sort::Request {
                id: id.clone(),
                method: method()
            })
        );
        assert_eq!(
            sort(r#"{"jsonrpc":"2.0","method":"ping"}"#),
            Ok(Sort::Notification { method: method() })
        );
        assert_eq!(
            sort(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#),
            Ok(Sort::Response { id: Some(id) })
        );
        assert_eq!(
            sort(r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":""}}"#),
            Ok(Sort::Response { id: None })
        );
        assert_eq!(sort("{"), Err(-32700));
        assert_eq!(sort("7"), Err(-32600));
        assert_eq!(sort("[]"), Err(-32600));
        assert_eq!(sort(r#"{"id":1.5,"method":"ping"}"#), Err(-32600));
        assert_eq!(sort(r#"{"jsonrpc":"2.0","id":1}"#), Err(-32600));
    }
}
