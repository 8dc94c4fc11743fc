//! Definitions and contents of the servers, with all that the server's revision has.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use super::{World, error};
use crate::mcp::MODERN;

/// Its instructions.
pub const INSTRUCTIONS: &str = "Ask the harbour master.";
/// The resource that `touch` changes.
pub const WATCHED: &str = "sea://tide";
/// Its text.
pub const CONTENTS: &str = "High at noon.";
/// The text of its prompt, before its argument.
pub const PROMPT: &str = "Describe ";
/// The notification of `change`.
pub const CHANGED: &str = "notifications/tools/list_changed";
/// The completion with the context that the client gave.
pub const COMPLETED: &str = "north of the pier";

const WAV: &str = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";

/// The capabilities of the server's revision.
pub(super) fn capabilities(world: &World) -> Value {
    let mut all = json!({
        "tools": {"listChanged": true}, "prompts": {}, "logging": {},
        "resources": {"subscribe": true},
    });
    if world.is_from("2025-03-26") {
        all["completions"] = json!({});
    }
    if world.revision == "2025-11-25" {
        all["tasks"] = json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}});
    }
    if world.revision == MODERN {
        all["extensions"] = json!({"io.modelcontextprotocol/tasks": {}});
    }
    all
}

pub(super) fn info() -> Value {
    json!({"name": "harbour", "version": "1.0.0"})
}

/// The definitions of its tools.
fn tools(world: &World) -> Vec<Value> {
    let revision = |name: &str| match name {
        "elicit" => "2025-06-18",
        "choose" | "fee" | "link" | "task" | "sample_tools" => "2025-11-25",
        _ => "2024-11-05",
    };
    let names = [
        "ask_on",
        "change",
        "choose",
        "elicit",
        "fee",
        "hang_up",
        "link",
        "log",
        "plain",
        "progress",
        "release",
        "rich",
        "roots",
        "sample",
        "sample_tools",
        "task",
        "touch",
        "wait",
        "wait_silently",
    ];
    let names = names
        .into_iter()
        .filter(|name| world.is_from(revision(name)))
        .filter(|name| *name != "ask_on" || world.revision != MODERN);
    names
        .map(|name| {
            let mut tool = json!({"name": name, "description": format!("The tool {name}."),
                "inputSchema": {"type": "object"}});
            if name == "change" {
                let changes = world.changes.load(Ordering::Relaxed);
                tool["description"] = json!(format!("Changed {changes} times."));
            }
            if name == "task" && world.revision == "2025-11-25" {
                tool["execution"] = json!({"taskSupport": "required"});
            }
            if name == "rich" {
                decorate(world, &mut tool);
            }
            tool
        })
        .collect()
}

/// All that a definition can have.
fn decorate(world: &World, tool: &mut Value) {
    if world.is_from("2025-03-26") {
        tool["annotations"] = json!({"readOnlyHint": true});
    }
    if world.is_from("2025-06-18") {
        tool["title"] = json!("Rich");
        tool["outputSchema"] =
            json!({"type": "object", "properties": {"depth": {"type": "number"}}});
    }
    if world.is_from("2025-11-25") {
        tool["icons"] = json!([{"src": "https://example.com/rich.png"}]);
    }
    if world.revision == MODERN {
        tool["outputSchema"] = json!({"type": "array", "items": {"type": "number"}});
    }
}

/// A result with every kind of content of the revision.
pub(super) fn rich(world: &World) -> Value {
    let mut result = json!({"content": [{"type": "text", "text": "rich"}]});
    let mut blocks = Vec::new();
    if world.is_from("2025-03-26") {
        blocks.push(json!({"type": "audio", "data": WAV, "mimeType": "audio/wav"}));
    }
    if world.is_from("2025-06-18") {
        blocks.push(json!({"type": "resource_link", "uri": WATCHED, "name": "tide"}));
        result["structuredContent"] = json!({"depth": 1});
    }
    if world.revision == MODERN {
        result["structuredContent"] = json!([1, 2]);
    }
    if let Some(content) = result["content"].as_array_mut() {
        content.extend(blocks);
    }
    result
}

/// The result of what every server answers at once; `None` for other methods.
pub(super) fn answer(world: &World, method: &str, params: &Value) -> Option<Result<Value, Value>> {
    Some(Ok(match method {
        "tools/list" => json!({"tools": tools(world)}),
        "prompts/list" => json!({"prompts": [{"name": "describe",
            "arguments": [{"name": "what", "required": true}, {"name": "where"}]}]}),
        "resources/list" => json!({"resources": [
            {"uri": WATCHED, "name": "tide", "mimeType": "text/plain"}]}),
        "resources/templates/list" => json!({"resourceTemplates": [
            {"uriTemplate": "sea://depth/{place}", "name": "depth"}]}),
        "prompts/get" => {
            let said = format!("{PROMPT}{}", params["arguments"]["what"].as_str()?);
            json!({"messages": [{"role": "user", "content": {"type": "text", "text": said}}]})
        }
        "resources/read" if params["uri"] == WATCHED => json!({"contents": [
            {"uri": WATCHED, "mimeType": "text/plain", "text": CONTENTS}]}),
        "resources/read" => {
            let code = if world.revision == MODERN {
                -32602
            } else {
                -32002
            };
            let data = json!({"uri": params["uri"]});
            return Some(Err(error(code, "Resource not found", data)));
        }
        "completion/complete" => {
            let context = params["context"]["arguments"]["where"].as_str();
            let value = context.map_or_else(|| "north".to_owned(), |at| format!("north of {at}"));
            json!({"completion": {"values": [value], "total": 1, "hasMore": false}})
        }
        "ping" if world.revision != MODERN => json!({}),
        _ => return None,
    }))
}

/// A question to the client: its method and its parameters.
pub(super) fn question(world: &World, tool: &str) -> Option<(&'static str, Value)> {
    let is_late = world.is_from("2025-11-25");
    let words = json!([{"role": "user", "content": {"type": "text", "text": "Say hello"}}]);
    Some(match tool {
        "elicit" => {
            let color = if is_late {
                json!({"type": "string", "oneOf": [
                    {"const": "blue", "title": "Blue"}, {"const": "red", "title": "Red"}]})
            } else {
                json!({"type": "string", "enum": ["blue", "red"], "enumNames": ["Blue", "Red"]})
            };
            let mut name = json!({"type": "string"});
            if is_late {
                name["default"] = json!("Grace");
            }
            let mut params = form(json!({"name": name, "color": color}));
            if is_late {
                params["mode"] = json!("form");
            }
            ("elicitation/create", params)
        }
        "choose" => {
            let items = json!({"type": "string", "enum": ["harbours", "ships"]});
            let mut params = form(json!({"many": {"type": "array", "items": items}}));
            params["mode"] = json!("form");
            ("elicitation/create", params)
        }
        "link" => {
            let mut params = json!({"mode": "url", "message": "Pay the fee.",
                "url": "https://example.com/fee"});
            if world.revision != MODERN {
                params["elicitationId"] = json!(world.id("elicitation"));
            }
            ("elicitation/create", params)
        }
        "sample" => (
            "sampling/createMessage",
            json!({"messages": words, "maxTokens": 10}),
        ),
        "sample_tools" => {
            let tool = json!({"name": "look", "inputSchema": {"type": "object"}});
            let params = json!({"messages": words, "maxTokens": 10, "tools": [tool]});
            ("sampling/createMessage", params)
        }
        "roots" => ("roots/list", json!({})),
        _ => return None,
    })
}

fn form(properties: Value) -> Value {
    json!({"message": "Who are you?",
        "requestedSchema": {"type": "object", "properties": properties}})
}

/// The capability without which the client cannot be asked.
pub(super) fn needed(world: &World, tool: &str) -> Value {
    match tool {
        "elicit" | "choose" if world.is_from("2025-11-25") => json!({"elicitation": {"form": {}}}),
        "elicit" | "choose" => json!({"elicitation": {}}),
        "link" => json!({"elicitation": {"url": {}}}),
        "sample" => json!({"sampling": {}}),
        "sample_tools" => json!({"sampling": {"tools": {}}}),
        "task" => json!({"extensions": {"io.modelcontextprotocol/tasks": {}}}),
        _ => json!({"roots": {}}),
    }
}

/// Has the client all that is needed? An empty `elicitation` means forms.
pub(super) fn can(has: &Value, needs: &Value) -> bool {
    let Some(needs) = needs.as_object() else {
        return true;
    };
    needs.iter().all(|(name, inner)| {
        let is_empty = has.as_object().is_some_and(serde_json::Map::is_empty);
        (is_empty && name == "form") || has.get(name).is_some_and(|has| can(has, inner))
    })
}
