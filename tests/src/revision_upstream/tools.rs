//! The tools of the servers.

use std::sync::{Arc, atomic::Ordering};

use serde_json::{Value, json};

use super::{
    Outbox, World,
    content::{self, CHANGED, WATCHED},
    failure, notice, text,
};

/// A call that runs.
pub(super) struct Call {
    pub(super) world: Arc<World>,
    pub(super) params: Value,
    /// The stream of the call.
    pub(super) out: Outbox,
    /// Level of logs that the client wants; R1 to R4: any.
    pub(super) wants_logs: bool,
}

impl Call {
    pub(super) fn tool(&self) -> &str {
        self.params["name"].as_str().unwrap_or_default()
    }

    fn key(&self) -> &str {
        self.params["arguments"]["key"].as_str().unwrap_or_default()
    }

    /// Waits until the key is released.
    async fn released(&self) {
        let mut released = self.world.released.subscribe();
        let _ = released
            .wait_for(|keys| keys.iter().any(|one| one == self.key()))
            .await;
    }

    fn say(&self, method: &str, params: Value) {
        let _ = self.out.send(notice(method, params));
    }

    fn progress(&self, steps: u32) {
        let Some(token) = self.params["_meta"].get("progressToken") else {
            return;
        };
        for step in 1..=steps {
            let mut params = json!({"progressToken": token, "progress": step, "total": steps});
            if self.world.is_from("2025-03-26") {
                params["message"] = json!(format!("step {step}"));
            }
            self.say("notifications/progress", params);
        }
    }

    /// The result of a tool that asks nothing. Ends early, without one, when the call is cancelled.
    pub(super) async fn run(&self) -> Value {
        let world = &self.world;
        match self.tool() {
            "plain" => text("plain"),
            "rich" => content::rich(world),
            "progress" => {
                self.progress(3);
                if !self.key().is_empty() {
                    self.released().await;
                }
                text("done")
            }
            "release" => {
                world.release(self.key());
                text("released")
            }
            "log" => {
                if self.wants_logs {
                    let params = json!({"level": "info", "logger": "harbour", "data": "A line."});
                    self.say("notifications/message", params);
                }
                text("logged")
            }
            "touch" => {
                world.announce("notifications/resources/updated", &json!({"uri": WATCHED}));
                text("touched")
            }
            "change" => {
                world.changes.fetch_add(1, Ordering::Relaxed);
                world.announce(CHANGED, &json!({}));
                text("changed")
            }
            // The second sends nothing before its answer, not even the head of the answer.
            "wait" | "wait_silently" => {
                if self.tool() == "wait" {
                    self.progress(1);
                }
                world.happens(format!("waiting {}", self.key()));
                self.released().await;
                text(format!("waited {}", self.key()))
            }
            other => failure(format!("Unknown tool: {other}")),
        }
    }

    /// The key under which the end of a cancelled call is noted.
    pub(super) fn cancelled(&self) {
        self.world.happens(format!("cancelled {}", self.key()));
    }
}

/// The text of a tool that asked: the client's answer.
pub(super) fn answered(answer: &Value) -> Value {
    text(format!("answered {answer}"))
}

/// The result of a tool that cannot ask.
pub(super) fn cannot_ask(tool: &str) -> Value {
    failure(format!("The client cannot do what {tool} asks for."))
}
