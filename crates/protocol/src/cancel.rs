//! `notifications/cancelled` (MCP-CN-1…MCP-CN-6). Over HTTP it has an effect in legacy sessions
//! only (MCP-E-14).

use std::borrow::Cow;

use crate::json::Object;
use crate::jsonrpc::{self, Params, RequestId};
use crate::method::Method;

/// Parameters of `notifications/cancelled`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cancelled {
    /// A request of the same direction. Unknown and finished ones are ignored (MCP-CN-1, MCP-CN-6).
    pub request_id: RequestId,
    /// Why, for logs.
    pub reason: Option<String>,
}

impl Cancelled {
    /// Reads the parameters. `None` if they name no request: a notification is never answered, so
    /// it is dropped (MCP-J-8).
    pub fn read(params: &Params) -> Option<Self> {
        let request_id = RequestId::from_raw(&params.get("requestId")?)?;
        Some(Self {
            request_id,
            reason: params.text("reason").map(Cow::into_owned),
        })
    }
}

/// `notifications/cancelled` for a request of ours that timed out (MCP-CN-3).
pub fn notification(request_id: &RequestId, reason: Option<&str>) -> Vec<u8> {
    let mut params = Vec::with_capacity(96);
    let mut object = Object::begin(&mut params);
    object.key("requestId");
    request_id.write(object.out());
    if let Some(reason) = reason {
        object.value("reason", reason);
    }
    object.end();
    jsonrpc::notification(Method::Cancelled.name(), Some(&params))
}
