//! The era of a command, as it shows at the start.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use portolan_protocol::meta;
use serde_json::{Value, json, value::RawValue};
use tokio::time::timeout;

use super::{
    Inner, PRIMED,
    events::Events,
    session::{Envelope, Priming, Session},
};
use crate::answers::LARGEST_MESSAGE;

/// How long the command may take for its first answer: `npx` may have to fetch it.
const FIRST_ANSWER: Duration = Duration::from_secs(120);
/// The revision without sessions.
pub(super) const MODERN: &str = "2026-07-28";

/// The era of the command, as it shows at the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Era {
    Sessions,
    Modern,
}

impl Inner {
    /// `initialize` first; a command that refuses it is asked by `server/discover`.
    pub(super) async fn find_era(self: &Arc<Self>) -> Result<Era, String> {
        let process = self.line.start();
        let process = process.map_err(|error| self.not_started(&error))?;
        let session = self.session(process);
        let found = self.ask_era(&session).await;
        let failure = session.failure();
        session.dismiss();
        match (found, failure) {
            (Ok(era), _) => {
                self.state().error = None;
                Ok(era)
            }
            (Err(_), Some(words)) => Err(format!(
                "The command ended before its first answer ({words})."
            )),
            (Err(error), None) => {
                session.end().await;
                self.failed(&mut self.state(), session.started);
                Err(error)
            }
        }
    }

    async fn ask_era(&self, session: &Arc<Session>) -> Result<Era, String> {
        let ourselves = json!({"name": "portolan-attach", "version": env!("CARGO_PKG_VERSION")});
        let initialize = json!({
            "jsonrpc": "2.0", "id": "attach-1", "method": "initialize",
            "params": {"protocolVersion": PRIMED, "capabilities": {}, "clientInfo": &ourselves},
        });
        let answer = exchange(session, "\"attach-1\"", initialize).await?;
        let answer = Envelope::read(&answer).ok_or("The command answered with no message.")?;
        if let Some(result) = answer.result {
            tracing::info!(pid = session.pid, "the command speaks MCP: {}", of(result));
            return Ok(Era::Sessions);
        }
        let refusal = answer.error.map_or("", RawValue::get).to_owned();
        let discover = json!({
            "jsonrpc": "2.0", "id": "attach-2", "method": "server/discover",
            "params": {"_meta": {
                meta::PROTOCOL_VERSION: MODERN,
                meta::CLIENT_INFO: ourselves,
                meta::CLIENT_CAPABILITIES: {},
            }},
        });
        let answer = exchange(session, "\"attach-2\"", discover).await?;
        let answer = Envelope::read(&answer).ok_or("The command answered with no message.")?;
        match answer.result {
            Some(result) => {
                tracing::info!(pid = session.pid, "the command speaks MCP: {}", of(result));
                Ok(Era::Modern)
            }
            None => Err(format!(
                "The command speaks no revision of MCP that is known here: {}",
                refusal.chars().take(300).collect::<String>()
            )),
        }
    }
}

/// Name, version and revision of a server, for the log.
fn of(result: &RawValue) -> String {
    let result: Value = serde_json::from_str(result.get()).unwrap_or_default();
    let info = result
        .get("serverInfo")
        .or_else(|| result.pointer("/_meta/io.modelcontextprotocol~1serverInfo"));
    let text = |name: &str| -> String {
        let value = info.and_then(|info| info.get(name));
        let value = value.and_then(Value::as_str).unwrap_or("?");
        value.chars().filter(|c| !c.is_control()).take(80).collect()
    };
    let revision = result.get("protocolVersion");
    let revision = revision.and_then(Value::as_str);
    format!(
        "{} {}, {}",
        text("name"),
        text("version"),
        revision.unwrap_or(MODERN)
    )
}

async fn exchange(session: &Arc<Session>, id: &str, message: Value) -> Result<Bytes, String> {
    let line = Bytes::from(message.to_string());
    let message = Envelope::read(&line).ok_or("no message")?;
    let events = session
        .request(&message, id, line.clone(), Priming::Absent)
        .await
        .map_err(|_| "The command ended before its first answer.")?;
    let answer = first_answer(&events).await;
    answer.ok_or_else(|| "The command did not answer in time.".to_owned())
}

/// The answer on a stream, without what comes before it.
pub(super) async fn first_answer(events: &Arc<Events>) -> Option<Bytes> {
    let mut reader = events.read(0);
    let mut decoder = portolan_protocol::sse::Decoder::new(LARGEST_MESSAGE);
    let answered = async {
        while let Some(Ok(frame)) = reader.frame().await {
            let data = frame.into_data().unwrap_or_default();
            for event in decoder.push(&data).ok()? {
                let text = Bytes::from(event.data);
                let is_answer = Envelope::read(&text)
                    .is_some_and(|message| message.method.is_none() && message.id.is_some());
                if is_answer {
                    return Some(text);
                }
            }
        }
        None
    };
    timeout(FIRST_ANSWER, answered).await.ok().flatten()
}
