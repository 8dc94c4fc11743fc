//! The server of 2026-07-28: each request stands alone.

use std::sync::Arc;

use axum::{
    Json, Router,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{
        IntoResponse, Response,
        sse::{Event, Sse},
    },
    routing::post,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{
    World, content, error, events, locked, notice, response, tasks,
    tools::{self, Call},
};
use crate::mcp::MODERN;

const META: &str = "io.modelcontextprotocol";

/// Its one endpoint.
pub(super) fn endpoint() -> Router<Arc<World>> {
    Router::new().route("/mcp", post(message))
}

fn refused(id: &Value, error: Value) -> Response {
    let body = response(id, Err(error));
    (StatusCode::BAD_REQUEST, Json(body)).into_response()
}

/// A result with the envelope of the revision.
fn complete(mut result: Value) -> Value {
    if result.get("resultType").is_none() {
        result["resultType"] = json!("complete");
    }
    let info = json!({(format!("{META}/serverInfo")): content::info()});
    result["_meta"] = info;
    result
}

async fn message(
    State(world): State<Arc<World>>,
    headers: HeaderMap,
    Json(message): Json<Value>,
) -> Response {
    let (id, params) = (message["id"].clone(), &message["params"]);
    let method = message["method"].as_str().unwrap_or_default();
    let meta = &params["_meta"];
    let of = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let is_its_own = of("mcp-protocol-version") == Some(MODERN)
        && of("mcp-method") == Some(method)
        && meta[format!("{META}/protocolVersion")] == MODERN;
    if !is_its_own {
        let data = json!({"supported": [MODERN]});
        return refused(&id, error(-32022, "Unsupported protocol version", data));
    }
    if id.is_null() {
        return StatusCode::ACCEPTED.into_response();
    }
    let can = &meta[format!("{META}/clientCapabilities")];
    match method {
        "subscriptions/listen" => listen(&world, id, &params["notifications"]),
        "tools/call" => call(&world, id, params, can).await,
        _ => {
            let outcome = at_once(&world, method, params).map(complete);
            let status = match &outcome {
                Err(error) if error["code"] == -32601 => StatusCode::NOT_FOUND,
                _ => StatusCode::OK,
            };
            (status, Json(response(&id, outcome))).into_response()
        }
    }
}

fn at_once(world: &World, method: &str, params: &Value) -> Result<Value, Value> {
    if method == "server/discover" {
        return Ok(
            json!({"supportedVersions": [MODERN], "ttlMs": 0, "cacheScope": "private",
            "capabilities": content::capabilities(world),
            "instructions": content::INSTRUCTIONS}),
        );
    }
    let answer = content::answer(world, method, params)
        .or_else(|| tasks::answer(world, method, params))
        .unwrap_or_else(|| Err(error(-32601, "Method not found", Value::Null)));
    let has_hints = method.ends_with("/list") || method == "resources/read";
    answer.map(|mut result| {
        if has_hints {
            (result["ttlMs"], result["cacheScope"]) = (json!(0), json!("private"));
        }
        result
    })
}

fn listen(world: &World, id: Value, wanted: &Value) -> Response {
    let (out, messages) = mpsc::unbounded_channel();
    let params = json!({"notifications": wanted,
        "_meta": {(format!("{META}/subscriptionId")): id}});
    let _ = out.send(notice("notifications/subscriptions/acknowledged", params));
    locked(&world.listens).push((id, wanted.clone(), out));
    events(messages, None)
}

#[expect(
    clippy::disallowed_methods,
    reason = "it ends with the server's thread"
)]
async fn call(world: &Arc<World>, id: Value, params: &Value, can: &Value) -> Response {
    let tool = params["name"].as_str().unwrap_or_default();
    if tool == "hang_up" {
        // One event without a message, and the end of the stream.
        let only = Event::default().comment("gone");
        let only = futures_util::stream::iter([Ok::<_, std::convert::Infallible>(only)]);
        return Sse::new(only).into_response();
    }
    let asked = content::question(world, tool);
    let needs = content::needed(world, tool);
    if (asked.is_some() || tool == "task") && !content::can(can, &needs) {
        let data = json!({ "requiredCapabilities": needs });
        return refused(
            &id,
            error(-32021, "Missing required client capability", data),
        );
    }
    let at_once = match asked {
        Some((method, question)) => match params["inputResponses"].get("question") {
            Some(answer) => Some(tools::answered(answer)),
            None => Some(
                json!({"resultType": "input_required", "requestState": world.id("state"),
                "inputRequests": {"question": {"method": method, "params": question}}}),
            ),
        },
        None => (tool == "task").then(|| tasks::create(world)),
    };
    if let Some(result) = at_once {
        return Json(response(&id, Ok(complete(result)))).into_response();
    }
    let (out, mut messages) = mpsc::unbounded_channel();
    let call = Call {
        world: Arc::clone(world),
        params: params.clone(),
        out: out.clone(),
        wants_logs: params["_meta"].get(format!("{META}/logLevel")).is_some(),
    };
    tokio::spawn(async move {
        tokio::select! {
            result = call.run() => {
                let _ = out.send(response(&id, Ok(complete(result))));
            }
            () = out.closed() => call.cancelled(),
        }
    });
    if tool == "wait_silently" {
        // Dropped with the connection.
        return Json(messages.recv().await.unwrap_or_default()).into_response();
    }
    events(messages, None)
}
