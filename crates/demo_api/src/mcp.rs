//! The same desk as an MCP server, at `/mcp`: what a newcomer adds first as an upstream server.
//!
//! It speaks the session era (2025-03-26 to 2025-11-25) over Streamable HTTP without sessions: one POST
//! with one message, one JSON answer. It needs no credential and offers two tools, one prompt and one
//! resource.

use axum::Json;
use axum::body::Bytes;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, post};
use serde_json::{Value, json};

use crate::harbours::{NOTICES, PORTS, SHIPS, port};

/// Revisions that are served, newest first.
const REVISIONS: [&str; 3] = ["2025-11-25", "2025-06-18", "2025-03-26"];
const NOTICES_URI: &str = "harbour://notices";

const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;
const RESOURCE_NOT_FOUND: i64 = -32002;

/// A JSON-RPC error: its code and its message.
type RpcRefusal = (i64, String);

/// The route: POST takes one message; there is no stream to GET and no session to DELETE.
pub(crate) fn route<S: Clone + Send + Sync + 'static>() -> MethodRouter<S> {
    post(receive)
}

async fn receive(body: Bytes) -> Response {
    let Ok(message) = serde_json::from_slice::<Value>(&body) else {
        return refused(&Value::Null, PARSE_ERROR, "The body is not JSON.");
    };
    let Some(method) = message["method"].as_str() else {
        return refused(&message["id"], INVALID_REQUEST, "One request at a time.");
    };
    let Some(id) = message.get("id") else {
        return StatusCode::ACCEPTED.into_response();
    };
    match answer(method, &message["params"]) {
        Ok(result) => Json(json!({ "jsonrpc": "2.0", "id": id, "result": result })).into_response(),
        Err((code, text)) => refused(id, code, &text),
    }
}

/// An unknown method is HTTP 404 for probes of other revisions; every other error is a result of HTTP.
fn refused(id: &Value, code: i64, message: &str) -> Response {
    let status = match code {
        PARSE_ERROR | INVALID_REQUEST => StatusCode::BAD_REQUEST,
        METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        _ => StatusCode::OK,
    };
    let error = json!({ "code": code, "message": message });
    let body = json!({ "jsonrpc": "2.0", "id": id, "error": error });
    (status, Json(body)).into_response()
}

fn answer(method: &str, params: &Value) -> Result<Value, RpcRefusal> {
    match method {
        "initialize" => Ok(initialized(params["protocolVersion"].as_str())),
        "ping" => Ok(json!({})),
        "tools/list" => Ok(json!({ "tools": tools() })),
        "tools/call" => called(&params["name"], &params["arguments"]),
        "prompts/list" => Ok(json!({ "prompts": [briefing()] })),
        "prompts/get" => brief(&params["name"], &params["arguments"]),
        "resources/list" => Ok(json!({ "resources": [notices()] })),
        "resources/templates/list" => Ok(json!({ "resourceTemplates": [] })),
        "resources/read" => read(&params["uri"]),
        _ => Err((METHOD_NOT_FOUND, format!("There is no method {method}."))),
    }
}

fn initialized(asked: Option<&str>) -> Value {
    let revision = asked.filter(|asked| REVISIONS.contains(asked));
    json!({
        "protocolVersion": revision.unwrap_or(REVISIONS[0]),
        "capabilities": { "tools": {}, "prompts": {}, "resources": {} },
        "serverInfo": { "name": "harbour", "title": "Harbour", "version": env!("CARGO_PKG_VERSION") },
        "instructions": "Ports are named by UN/LOCODE, like DEHAM. All data is invented.",
    })
}

fn tools() -> Value {
    let read_only = json!({ "readOnlyHint": true, "openWorldHint": false });
    json!([
        {
            "name": "find_port",
            "title": "Find a port",
            "description": "Finds ports by a part of their name, or by country.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "name": { "type": "string", "description": "A part of the name, like ham." },
                    "country": { "type": "string", "description": "ISO 3166 code, like DE." }
                }
            },
            "annotations": read_only
        },
        {
            "name": "ships_that_fit",
            "title": "Ships that fit a port",
            "description": "Lists the ships whose draught is less than a port admits.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "port_id": { "type": "string", "description": "UN/LOCODE of the port." },
                    "limit": { "type": "integer", "minimum": 1, "maximum": 50, "default": 10 }
                },
                "required": ["port_id"]
            },
            "annotations": read_only
        }
    ])
}

fn called(name: &Value, arguments: &Value) -> Result<Value, RpcRefusal> {
    match name.as_str() {
        Some("find_port") => Ok(find_port(arguments)),
        Some("ships_that_fit") => Ok(ships_that_fit(arguments)),
        _ => Err((INVALID_PARAMS, format!("There is no tool {name}."))),
    }
}

/// The result of a tool: its text is what models read.
fn said(text: String, is_error: bool) -> Value {
    json!({ "content": [{ "type": "text", "text": text }], "isError": is_error })
}

fn find_port(arguments: &Value) -> Value {
    let part = arguments["name"]
        .as_str()
        .unwrap_or_default()
        .to_lowercase();
    let country = arguments["country"].as_str();
    let found: Vec<String> = PORTS
        .iter()
        .filter(|port| port.name.to_lowercase().contains(&part))
        .filter(|port| country.is_none_or(|country| port.country.eq_ignore_ascii_case(country)))
        .map(|port| format!("{} {} ({})", port.id, port.name, port.country))
        .collect();
    if found.is_empty() {
        return said("No port matches.".to_owned(), false);
    }
    said(found.join("\n"), false)
}

fn ships_that_fit(arguments: &Value) -> Value {
    let id = arguments["port_id"].as_str().unwrap_or_default();
    let Some(port) = port(id) else {
        let text = format!("There is no port {id:?}. Ports are named by UN/LOCODE, like DEHAM.");
        return said(text, true);
    };
    let limit = arguments["limit"].as_u64().unwrap_or(10).clamp(1, 50);
    let fit = SHIPS
        .iter()
        .filter(|ship| ship.draught_m < port.max_draught_m)
        .take(usize::try_from(limit).unwrap_or(usize::MAX))
        .map(|ship| format!("{} {} ({} m)", ship.imo, ship.name, ship.draught_m));
    said(fit.collect::<Vec<_>>().join("\n"), false)
}

fn briefing() -> Value {
    json!({
        "name": "port_briefing",
        "title": "Port briefing",
        "description": "Asks for a short briefing before a ship enters a port.",
        "arguments": [{ "name": "port_id", "description": "UN/LOCODE", "required": true }]
    })
}

fn brief(name: &Value, arguments: &Value) -> Result<Value, RpcRefusal> {
    if name != "port_briefing" {
        return Err((INVALID_PARAMS, format!("There is no prompt {name}.")));
    }
    let id = arguments["port_id"].as_str().unwrap_or_default();
    let Some(port) = port(id) else {
        return Err((INVALID_PARAMS, format!("There is no port {id:?}.")));
    };
    let text = format!(
        "Brief the captain on {} ({}): depth {} m, notices, and ships that fit. Use the tools.",
        port.name, port.id, port.max_draught_m
    );
    let message = json!({ "role": "user", "content": { "type": "text", "text": text } });
    Ok(json!({ "description": "Port briefing", "messages": [message] }))
}

fn notices() -> Value {
    json!({
        "uri": NOTICES_URI,
        "name": "notices",
        "title": "Notices to mariners",
        "mimeType": "text/plain"
    })
}

fn read(uri: &Value) -> Result<Value, RpcRefusal> {
    if uri != NOTICES_URI {
        return Err((RESOURCE_NOT_FOUND, "Resource not found".to_owned()));
    }
    let contents = json!([{ "uri": NOTICES_URI, "mimeType": "text/plain", "text": NOTICES }]);
    Ok(json!({ "contents": contents }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_revision_that_is_named_is_answered_with_itself_and_any_other_with_the_newest() {
        for revision in REVISIONS {
            assert_eq!(initialized(Some(revision))["protocolVersion"], revision);
        }
        let answer = initialized(Some("2024-11-05"));
        assert_eq!(answer["protocolVersion"], REVISIONS[0]);
    }

    #[test]
    fn every_listed_tool_prompt_and_resource_answers() {
        let listed = answer("tools/list", &json!({})).unwrap_or_default();
        for tool in listed["tools"].as_array().into_iter().flatten() {
            let call = json!({ "name": tool["name"], "arguments": { "port_id": "DEHAM" } });
            let result = answer("tools/call", &call).unwrap_or_default();
            assert_eq!(result["isError"], false, "{tool}");
            assert_ne!(result["content"][0]["text"], "", "{tool}");
        }
        let prompt = json!({ "name": "port_briefing", "arguments": { "port_id": "DEHAM" } });
        assert!(answer("prompts/get", &prompt).is_ok());
        assert!(answer("resources/read", &json!({ "uri": NOTICES_URI })).is_ok());
    }

    #[test]
    fn what_is_not_there_is_refused_with_its_code() {
        let code = |method: &str, params: Value| answer(method, &params).map_err(|(code, _)| code);
        assert_eq!(
            code("tools/call", json!({ "name": "x" })),
            Err(INVALID_PARAMS)
        );
        assert_eq!(
            code("prompts/get", json!({ "name": "x" })),
            Err(INVALID_PARAMS)
        );
        assert_eq!(
            code("resources/read", json!({ "uri": "x://y" })),
            Err(RESOURCE_NOT_FOUND)
        );
        assert_eq!(code("server/discover", json!({})), Err(METHOD_NOT_FOUND));
    }
}
