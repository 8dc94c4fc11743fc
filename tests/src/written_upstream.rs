//! An MCP server of 2025-11-25 without sessions whose definitions are text: what no SDK would write. It answers every call with the text of
//! its arguments, and one of the tool `large` with as many bytes as it is asked for.

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

/// A running one. It ends with the process.
#[derive(Debug, Clone)]
pub struct WrittenUpstream {
    address: SocketAddr,
    tools: Arc<Mutex<String>>,
}

impl WrittenUpstream {
    /// With these entries of `tools/list`, each the text of an object.
    pub fn start(tools: &[&str]) -> Result<Self> {
        let tools = Arc::new(Mutex::new(tools.join(",")));
        let router = Router::new()
            .route("/mcp", post(answer))
            .with_state(Arc::clone(&tools));
        Ok(Self {
            address: on_a_thread(router)?,
            tools,
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
        *self.tools.lock().unwrap_or_else(PoisonError::into_inner) = tools.join(",");
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

async fn answer(State(tools): State<Arc<Mutex<String>>>, body: Bytes) -> Response {
    let Ok(message) = serde_json::from_slice::<Message<'_>>(&body) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let Some(id) = message.id else {
        return StatusCode::ACCEPTED.into_response();
    };
    let params = message.params.map_or("{}", RawValue::get);
    let result = match message.method.as_str() {
        "initialize" => {
            r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"written","version":"1"}}"#.to_owned()
        }
        "tools/list" => {
            let tools = tools.lock().unwrap_or_else(PoisonError::into_inner);
            format!(r#"{{"tools":[{tools}]}}"#)
        }
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
