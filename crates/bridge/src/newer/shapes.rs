//! Results and errors of a server with sessions, as 2026-07-28 has them.

use bytes::Bytes;
use portolan_protocol::{
    capability::ServerCapabilities,
    discover,
    error::RpcError,
    input_required::MOST_ROUNDS,
    jsonrpc::{self, Raw, RequestId},
    meta,
    method::Method,
    result::{CacheHint, CacheScope, write_string},
    task,
    tool::CallResult,
    translate::{self, Failed, Listed, Shape, UrlStep},
    visible::Visible,
};
use serde_json::json;

use super::{Served, SessionCall, tasks};
use crate::{message, relay::NEWEST};

/// The bridge does not know how long anything holds.
const NO_CACHE: CacheHint = CacheHint {
    ttl_ms: 0,
    scope: CacheScope::Private,
};

impl Served {
    /// The answer to `server/discover` (MCP-X-17).
    pub(super) fn discovered(&self, id: &RequestId) -> Bytes {
        let capabilities = ServerCapabilities {
            tools: self.declares("tools", None),
            resources: self.declares("resources", None),
            prompts: self.declares("prompts", None),
            announcements: true,
            logging: self.declares("logging", None),
            completions: self.declares("completions", None),
            ..ServerCapabilities::default()
        };
        let instructions = self
            .facts
            .get("instructions")
            .and_then(|text| text.string());
        let instructions = instructions.as_deref();
        let result = discover::result(
            NEWEST,
            &self.identity,
            &capabilities,
            instructions,
            NO_CACHE,
        );
        message::result(id, &result)
    }
}

/// What follows the answer of the server.
pub(super) enum Answer {
    /// The client's answer.
    Text(Bytes),
    /// Pages that the person has to visit first (MCP-X-36).
    Steps(Vec<UrlStep>),
}

/// The answer to a call.
pub(super) fn answer(call: &SessionCall, id: &RequestId, raw: &Raw) -> Answer {
    match raw.get("result") {
        Some(result) => Answer::Text(result_of(call, id, &task::unrelated(&result))),
        None => error_of(call, id, &raw.get("error").unwrap_or(Raw::empty_object())),
    }
}

fn result_of(call: &SessionCall, id: &RequestId, result: &Raw) -> Bytes {
    let listed = match call.method {
        Method::ToolsList => Some(("tools", Listed::Tool)),
        Method::PromptsList => Some(("prompts", Listed::Prompt)),
        Method::ResourcesList => Some(("resources", Listed::Resource)),
        Method::ResourceTemplatesList => Some(("resourceTemplates", Listed::Template)),
        _ => None,
    };
    if let Some((member, listed)) = listed {
        return message::result(id, &list(call, result, member, listed));
    }
    let shape = Shape {
        from: call.served.revision,
        to: NEWEST,
        identity: &call.served.identity,
        uniform: false,
    };
    match translate::result(call.method, result, &shape) {
        Ok(shaped) => message::result(id, &shaped.json),
        Err(_) => visible(call, id, &Visible::Invalid),
    }
}

pub(super) fn visible(call: &SessionCall, id: &RequestId, visible: &Visible) -> Bytes {
    let (_, text) = visible.answer(call.method, id, NEWEST, &call.served.identity);
    text.into()
}

fn list(call: &SessionCall, result: &Raw, member: &str, listed: Listed) -> Vec<u8> {
    let mut out = br#"{"resultType":"complete","#.to_vec();
    write_string(member, &mut out);
    out.extend_from_slice(b":[");
    let entries = result.get(member);
    let mut is_first = true;
    for entry in entries.iter().flat_map(Raw::elements) {
        let shaped = translate::definition(listed, &entry, call.served.revision, NEWEST);
        let Ok(shaped) = shaped else { continue };
        if !std::mem::take(&mut is_first) {
            out.push(b',');
        }
        out.extend_from_slice(&shaped.json);
    }
    out.push(b']');
    if let Some(cursor) = result.get("nextCursor").filter(|raw| !raw.is_null()) {
        out.extend_from_slice(br#","nextCursor":"#);
        out.extend_from_slice(cursor.as_bytes());
    }
    out.extend_from_slice(br#","ttlMs":0,"cacheScope":"private","_meta":{"#);
    write_string(meta::SERVER_INFO, &mut out);
    out.push(b':');
    out.extend_from_slice(call.served.identity.json(NEWEST).as_bytes());
    out.extend_from_slice(b"}}");
    out
}

fn error_of(call: &SessionCall, id: &RequestId, error: &Raw) -> Answer {
    let code = error
        .get("code")
        .and_then(|code| code.as_str().parse().ok());
    let error = RpcError {
        code: code.unwrap_or(-32603),
        message: error
            .get("message")
            .and_then(|text| text.string())
            .unwrap_or_default(),
        data: error.get("data").filter(|data| !data.is_null()),
    };
    if tasks::is_lost(call, &error) {
        return Answer::Text(visible(call, id, &Visible::Lost));
    }
    let (from, can) = (call.served.revision, &call.can);
    Answer::Text(
        match translate::error(&error, call.method, from, NEWEST, can) {
            Failed::Error(error, _) | Failed::Degraded(error) => message::error(Some(id), &error),
            Failed::ToolFailure(text) => {
                let failure = CallResult::failure(text);
                let write = |out: &mut Vec<u8>| failure.write(NEWEST, &call.served.identity, out);
                jsonrpc::response_with(id, 256, write).into()
            }
            Failed::Missing(required) => {
                let data = json!({ "requiredCapabilities": required });
                let error = RpcError {
                    code: -32021,
                    message: "Missing required client capability".to_owned(),
                    data: Raw::of(&data).ok(),
                };
                message::error(Some(id), &error)
            }
            Failed::Visible(shown) => visible(call, id, &shown),
            Failed::Steps(steps) if call.rounds < MOST_ROUNDS => return Answer::Steps(steps),
            Failed::Steps(_) => visible(call, id, &Visible::TooManyRounds),
            Failed::Renegotiate | Failed::Headers => visible(call, id, &Visible::Invalid),
        },
    )
}
