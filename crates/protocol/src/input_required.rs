//! Multi round-trip requests of 2026-07-28 (MCP-MR-1…MCP-MR-15): a result that contains questions,
//! and the retry that contains the answers.

use crate::ask::AskMethod;
use crate::json::Object;
use crate::jsonrpc::{Kind, Misfit, Params, Raw};
use crate::method::Method;
use crate::result::{Identity, ResultObject};
use crate::revision::Revision;
use crate::shaped::Violation;

/// Most rounds of questions in one call (MCP-MR-10, MCP-X-24, MCP-V-3).
pub const MOST_ROUNDS: u8 = 10;
/// Longest `requestState` that we make, in bytes (MCP-MR-7).
pub const LONGEST_STATE: usize = 8 * 1024;

/// A result that is no result yet: what the server has to know first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InputRequired {
    /// Questions under their keys, in order.
    pub requests: Vec<(String, InputRequest)>,
    /// To be given back with the answers, byte for byte.
    pub state: Option<String>,
}

/// One question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputRequest {
    /// Method of the question.
    pub method: AskMethod,
    /// Its parameters, an object.
    pub params: Raw,
}

/// True if `method` may be answered so (MCP-MR-1).
pub const fn may_ask(method: Method) -> bool {
    matches!(
        method,
        Method::ToolsCall | Method::PromptsGet | Method::ResourcesRead
    )
}

impl InputRequired {
    /// True if a result is of this sort.
    pub fn is(result: &Raw) -> bool {
        result
            .get("resultType")
            .and_then(|sort| sort.string())
            .as_deref()
            == Some("input_required")
    }

    /// Reads the result of an upstream (MCP-MR-2, MCP-MR-3).
    pub fn read(result: &Raw) -> Result<Self, Violation> {
        let state = match result.get("requestState") {
            None => None,
            Some(state) => Some(state.string().ok_or(Violation::InputRequired)?),
        };
        let requests = match result.get("inputRequests") {
            None => Vec::new(),
            Some(map) => Self::requests(&map)?,
        };
        if requests.is_empty() && state.is_none() {
            return Err(Violation::InputRequired);
        }
        Ok(Self { requests, state })
    }

    /// Reads a map of questions, as tasks of the extension have it too (MCP-TX-6).
    pub fn requests(map: &Raw) -> Result<Vec<(String, InputRequest)>, Violation> {
        if map.kind() != Kind::Object {
            return Err(Violation::InputRequired);
        }
        let mut requests: Vec<(String, InputRequest)> = Vec::new();
        for (key, entry) in map.members() {
            let method = entry
                .get("method")
                .and_then(|name| name.string())
                .and_then(|name| AskMethod::from_name(&name))
                .ok_or(Violation::InputRequired)?;
            let params = match entry.get("params") {
                None if method == AskMethod::ListRoots => Raw::empty_object(),
                Some(params) if params.kind() == Kind::Object => params,
                _ => return Err(Violation::InputRequired),
            };
            // A key names one question. Two different questions with one key are ambiguous.
            if requests.iter().any(|(known, _)| *known == key) {
                return Err(Violation::InputRequired);
            }
            requests.push((key, InputRequest { method, params }));
        }
        Ok(requests)
    }

    /// The result as 2026-07-28 has it. Without caching hints (MCP-MR-14).
    pub fn write(&self, identity: &Identity, out: &mut Vec<u8>) {
        let mut result = ResultObject::begin_as(out, Revision::V2026_07_28, "input_required");
        if !self.requests.is_empty() {
            result.object.key("inputRequests");
            write_requests(&self.requests, result.object.out());
        }
        if let Some(state) = &self.state {
            result.object.value("requestState", state);
        }
        result.end(identity, None);
    }

    /// The same as JSON.
    pub fn to_json(&self, identity: &Identity) -> Vec<u8> {
        let mut out = Vec::with_capacity(512);
        self.write(identity, &mut out);
        out
    }
}

/// Appends a map of questions.
pub fn write_requests(requests: &[(String, InputRequest)], out: &mut Vec<u8>) {
    let mut map = Object::begin(out);
    for (key, request) in requests {
        map.key(key);
        let mut entry = Object::begin(map.out());
        entry.value("method", request.method.name());
        entry.raw("params", request.params.as_bytes());
        entry.end();
    }
    map.end();
}

/// Answers and state that a retry carries (MCP-MR-5). Both are attacker-controlled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Brought {
    /// Answers by key, an object of objects.
    pub responses: Option<Raw>,
    /// The state of an earlier round.
    pub state: Option<String>,
}

impl Brought {
    /// Reads the retry members of a request whose result may contain questions (MCP-MR-1).
    pub fn read(params: &Params) -> Result<Self, Misfit> {
        let responses = params.get("inputResponses");
        if let Some(responses) = &responses {
            read_responses(responses)?;
        }
        let state = match params.get("requestState") {
            None => None,
            Some(state) => match state.string() {
                Some(state) => Some(state),
                None => return Err(Misfit::new("params.requestState", "expected a string")),
            },
        };
        Ok(Self { responses, state })
    }
}

/// Reads a client's answers by key (MCP-MR-5, MCP-MR-12): an object of objects, else `-32602`.
pub fn read_responses(responses: &Raw) -> Result<Vec<(String, Raw)>, Misfit> {
    if responses.kind() != Kind::Object {
        return Err(Misfit::new("params.inputResponses", "expected an object"));
    }
    let mut read: Vec<(String, Raw)> = Vec::new();
    for (key, response) in responses.members() {
        if response.kind() != Kind::Object {
            return Err(Misfit::new(
                format!("params.inputResponses.{key}"),
                "expected an object",
            ));
        }
        read.retain(|(known, _)| *known != key);
        read.push((key, response));
    }
    Ok(read)
}

/// Answers as an upstream of 2026-07-28 gets them back.
pub fn write_responses<'r>(responses: impl IntoIterator<Item = (&'r str, &'r Raw)>) -> Raw {
    let mut out = Vec::with_capacity(256);
    let mut map = Object::begin(&mut out);
    for (key, response) in responses {
        map.raw(key, response.as_bytes());
    }
    map.end();
    Raw::trusted(out.into())
}
