//! Tasks of 2025-11-25, and of the extension of 2026-07-28. A task ends at the second look.

use std::{collections::BTreeMap, sync::Mutex};

use serde_json::{Value, json};

use super::{World, error, locked, text};
use crate::mcp::MODERN;

/// Looks at each task so far.
#[derive(Debug, Default)]
pub(super) struct Tasks(Mutex<BTreeMap<String, u32>>);

const AT: &str = "2026-11-24T00:00:00Z";

/// A new task, as the response to its call.
pub(super) fn create(world: &World) -> Value {
    let id = world.id("task");
    locked(&world.tasks.0).insert(id.clone(), 0);
    let task = shown(world, &id, "working");
    if world.revision == MODERN {
        let mut task = task;
        task["resultType"] = json!("task");
        return task;
    }
    json!({ "task": task })
}

fn shown(world: &World, id: &str, status: &str) -> Value {
    let mut task = json!({"taskId": id, "status": status, "createdAt": AT, "lastUpdatedAt": AT});
    let (ttl, pause) = if world.revision == MODERN {
        ("ttlMs", "pollIntervalMs")
    } else {
        ("ttl", "pollInterval")
    };
    (task[ttl], task[pause]) = (json!(60_000), json!(20));
    task
}

/// The methods of tasks; `None` for others.
pub(super) fn answer(world: &World, method: &str, params: &Value) -> Option<Result<Value, Value>> {
    if !method.starts_with("tasks/") || !world.is_from("2025-11-25") {
        return None;
    }
    let id = params["taskId"].as_str().unwrap_or_default();
    let mut all = locked(&world.tasks.0);
    let Some(looks) = all.get_mut(id) else {
        return Some(Err(error(-32602, "Unknown task", Value::Null)));
    };
    *looks += 1;
    let is_done = *looks > 1;
    let result = text("The task is done.");
    Some(Ok(match method {
        "tasks/get" => {
            let mut task = shown(world, id, if is_done { "completed" } else { "working" });
            if is_done && world.revision == MODERN {
                task["result"] = result;
            }
            task
        }
        "tasks/result" if world.revision != MODERN => {
            *looks = 2;
            let mut result = result;
            result["_meta"] = json!({"io.modelcontextprotocol/related-task": {"taskId": id}});
            result
        }
        _ => return None,
    }))
}
