//! Notifications of a running task to the session that made it: progress and logs.
//!
//! Progress has the token of the call (MCP-TK-18). Notifications go to the session's own stream on
//! its node (MCP-LG-4), and name their task (MCP-TK-12).

use bytes::Bytes;
use portolan_cluster::{SessionKey, store::StreamKey};
use portolan_model::id::TenantId;
use portolan_protocol::{
    jsonrpc::{self, ProgressToken, Raw},
    method::Method,
    pace::Queue,
    progress::{self, Gate, Progress},
    revision::Revision,
    task,
};
use tokio::time::Instant;

use crate::{
    call::{notices::Paced, progress::ProgressReporter},
    nodes::{
        message::{MessageKind, NodeMessage},
        notify,
    },
    tasks::services::TaskServices,
};

/// MCP-PP-3: most progress notifications in a second. A stream sends no more.
const PROGRESS: usize = 1;

/// Most other notifications of a task in a second: each goes to every node.
const WORDS: usize = 10;

/// The owner and key of a task.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TaskOrigin {
    pub(crate) tenant: TenantId,
    pub(crate) session: SessionKey,
    pub(crate) item: StreamKey,
}

/// The channel of a running task to its session.
pub(crate) struct SessionNotifications {
    state: TaskServices,
    origin: TaskOrigin,
    /// The client's id of the task.
    id: String,
    revision: Revision,
    reporter: Option<(ProgressToken, Gate)>,
    progress: Paced,
    /// The rate of all notifications except progress.
    words: Paced,
    /// Sends progress for an API, which reports none.
    ticks: Option<ProgressReporter>,
}

impl std::fmt::Debug for SessionNotifications {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Voice").finish_non_exhaustive()
    }
}

impl SessionNotifications {
    pub(crate) fn new(
        state: &TaskServices,
        origin: TaskOrigin,
        id: String,
        (revision, token): (Revision, Option<ProgressToken>),
        talks: bool,
    ) -> Self {
        let ticking = token.clone().filter(|_| !talks);
        Self {
            state: state.clone(),
            origin,
            id,
            revision,
            reporter: token.map(|token| (token, Gate::default())),
            progress: Paced::new(PROGRESS),
            words: Paced::new(WORDS),
            ticks: ticking.map(|token| ProgressReporter::new(token, revision, Instant::now())),
        }
    }

    pub(crate) fn progress(&mut self, progress: &Progress) {
        let Some((token, gate)) = &mut self.reporter else {
            return;
        };
        if !gate.passes(progress.progress) {
            return;
        }
        let notice = progress::notification(self.revision, token, progress);
        let told = self.progress.take(Queue::Progress, notice.into());
        self.send(told);
    }

    /// Sends a whole notification with the id of the task.
    ///
    /// Above the rate only the newest is sent, whatever its logger, because every node receives it.
    pub(crate) fn message(&mut self, notice: Bytes) {
        let told = self.words.take(Queue::Log(None), notice);
        self.send(told);
    }

    /// Sends the delayed notifications, before the task ends.
    pub(crate) fn remaining(&mut self) {
        for notice in [self.progress.last(), self.words.last()] {
            self.send(notice);
        }
    }

    fn send(&self, notice: Option<Bytes>) {
        if let Some(notice) = notice {
            self.origin.send(&self.state, of_task(&notice, &self.id));
        }
    }
}

impl TaskOrigin {
    fn send(self, state: &TaskServices, said: Option<(MessageKind, Bytes)>) {
        let Some((what, notice)) = said else { return };
        let Self {
            tenant,
            session,
            item,
        } = self;
        let bell = NodeMessage::ChannelMessage {
            session,
            item,
            what,
            notice,
        };
        notify::publish(state, tenant, bell);
    }
}

/// Sends delayed notifications and the progress of an API when they are due. Cancel safe.
pub(crate) async fn due(voice: Option<&mut SessionNotifications>) {
    let Some(voice) = voice else {
        return std::future::pending().await;
    };
    let notice = tokio::select! {
        notice = voice.progress.due() => notice,
        notice = voice.words.due() => notice,
        notice = tick(voice.ticks.as_mut()) => notice,
    };
    voice.send(Some(notice));
}

async fn tick(ticks: Option<&mut ProgressReporter>) -> Bytes {
    match ticks {
        Some(ticks) => ticks.next().await,
        None => std::future::pending().await,
    }
}

/// MCP-TK-12: the notification with the id of the task, and its kind.
fn of_task(notice: &[u8], id: &str) -> Option<(MessageKind, Bytes)> {
    let notice = Raw::parse(Bytes::copy_from_slice(notice)).ok()?;
    let method = notice.get("method")?.string()?;
    let params = notice.get("params").unwrap_or(Raw::empty_object());
    let what = match Method::from_name(&method) {
        Some(Method::Progress) => {
            MessageKind::Progress(params.get("progress")?.as_str().parse().ok()?)
        }
        Some(Method::LogMessage) => MessageKind::Log(params.get("level")?.string()?.parse().ok()?),
        _ => MessageKind::Other,
    };
    let params = task::related(&params, id);
    let notice = jsonrpc::notification(&method, Some(params.as_bytes()));
    Some((what, notice.into()))
}

#[cfg(test)]
mod tests {
    use portolan_protocol::logging::Level;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn tk_12_what_a_task_says_names_the_task_beside_what_it_had() {
        let said = br#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1,"_meta":{"x":1}}}"#;
        let (what, told) = of_task(said, "t").unwrap();
        assert_eq!(what, MessageKind::Log(Level::Info));
        let told: Value = serde_json::from_slice(&told).unwrap();
        let meta = json!({"x": 1, "io.modelcontextprotocol/related-task": {"taskId": "t"}});
        assert_eq!(told["method"], "notifications/message");
        assert_eq!(
            told["params"],
            json!({"level": "info", "data": 1, "_meta": meta})
        );
        let said = br#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":2.5}}"#;
        assert_eq!(of_task(said, "t").unwrap().0, MessageKind::Progress(2.5));
    }
}
