//! An MCP server of 2025-11-25 without sessions whose definitions are text: what no SDK would write. It answers every call with the text of
//! its arguments, and one of the tool `large` with as many bytes as it is asked for. Each prompt is
//! [`PROMPT`], each resource [`CONTENTS`].

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::Result;
use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::post,
};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::upstream::on_a_thread;

/// The result of every `prompts/get`.
pub const PROMPT: &str = r#"{"x-result":1.50,"messages":[{"x-message":1e2,"role":"user","content":{"type":"text","text":"a","x-block":2.50}}]}"#;
/// The result of every `resources/read`.
pub const CONTENTS: &str =
    r#"{"x-result":1.50,"contents":[{"uri":"x://a","text":"a","x-contents":{"z":1.0,"a":2}}]}"#;

/// The entries of its lists, each list the text between its brackets.
#[derive(Debug, Clone, Default)]
pub struct Lists {
    /// Of `tools/list`.
    pub tools: String,
    /// Of `prompts/list`.
    pub prompts: String,
    /// Of `resources/list`.
    pub resources: String,
    /// Of `resources/templates/list`.
    pub templates: String,
}

/// A running one. It ends with the process.
#[derive(Debug, Clone)]
pub struct WrittenUpstream {
    address: SocketAddr,
    lists: Arc<Mutex<Lists>>,
}

impl WrittenUpstream {
    /// With these entries of `tools/list`, each the text of an object.
    pub fn start(tools: &[&str]) -> Result<Self> {
        Self::start_with(Lists {
            tools: tools.join(","),
            ..Lists::default()
        })
    }

    /// With all these lists.
    pub fn start_with(lists: Lists) -> Result<Self> {
        let lists = Arc::new(Mutex::new(lists));
        let router = Router::new()
            .route("/mcp", post(answer))
            .with_state(Arc::clone(&lists));
        Ok(Self {
            address: on_a_thread(router)?,
            lists,
        })
    }

    /// The address that Portolan must be allowed to call.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its endpoint.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Offers other tools from now on.
    pub fn offer(&self, tools: &[&str]) {
        self.change(|lists| lists.tools = tools.join(","));
    }

    /// Offers something else from now on.
    pub fn change(&self, change: impl FnOnce(&mut Lists)) {
        change(&mut self.lists.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: String,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Call<'a> {
    name: String,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

async fn answer(State(lists): State<Arc<Mutex<Lists>>>, body: Bytes) -> Response {
    let Ok(message) = serde_json::from_slice::<Message<'_>>(&body) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let Some(id) = message.id else {
        return StatusCode::ACCEPTED.into_response();
    };
    let lists = lists.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let list = |member: &str, entries: &str| format!(r#"{{"{member}":[{entries}]}}"#);
    let params = message.params.map_or("{}", RawValue::get);
    let result = match message.method.as_str() {
        "initialize" => {
            r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"prompts":{},"resources":{}},"serverInfo":{"name":"written","version":"1"}}"#.to_owned()
        }
        "tools/list" => list("tools", &lists.tools),
        "prompts/list" => list("prompts", &lists.prompts),
        "resources/list" => list("resources", &lists.resources),
        "resources/templates/list" => list("resourceTemplates", &lists.templates),
        "prompts/get" => PROMPT.to_owned(),
        "resources/read" => CONTENTS.to_owned(),
        "tools/call" => called(params),
        _ => return StatusCode::NOT_FOUND.into_response(),
    };
    let answer = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, id.get());
    ([(header::CONTENT_TYPE, "application/json")], answer).into_response()
}

fn called(params: &str) -> String {
    let Ok(call) = serde_json::from_str::<Call<'_>>(params) else {
        return r#"{"content":[],"isError":true}"#.to_owned();
    };
    let arguments = call.arguments.map_or("{}", RawValue::get);
    let text = if call.name == "large" {
        let wanted = serde_json::from_str::<serde_json::Value>(arguments).ok();
        let bytes = wanted.and_then(|wanted| wanted["bytes"].as_u64());
        let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok());
        "x".repeat(bytes.unwrap_or_default())
    } else {
        arguments.to_owned()
    };
    let content = serde_json::json!([{"type": "text", "text": text}]);
    format!(r#"{{"content":{content},"structuredContent":{arguments}}}"#)
}
