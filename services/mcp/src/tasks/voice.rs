//! What a task tells meanwhile to the session that made it: how far it is, under the token of the call (TK-18), and what its server logs. It goes on the session's own
//! stream, on whatever node that is (LG-4), and says which task it is of (TK-12).

use std::time::Duration;

use bytes::Bytes;
use portolan_cluster::SessionKey;
use portolan_model::id::TenantId;
use portolan_protocol::{
    jsonrpc::{self, ProgressToken, Raw},
    progress::{self, Gate, Progress},
    revision::Revision,
    task,
};
use tokio::time::Instant;

use crate::{
    bells::{self, Bell},
    legacy::call::Telling,
    state::McpState,
};

/// PP-3: between two words on progress. A stream tells no more often.
const APART: Duration = Duration::from_secs(1);

/// The way of a running task to its session.
pub(crate) struct Voice {
    state: McpState,
    tenant: TenantId,
    session: SessionKey,
    /// What the client calls the task.
    id: String,
    revision: Revision,
    telling: Option<(ProgressToken, Gate)>,
    last: Option<Instant>,
    /// An API says nothing of its progress: that it still works is said for it.
    ticks: Option<Telling>,
}

impl std::fmt::Debug for Voice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Voice").finish_non_exhaustive()
    }
}

impl Voice {
    pub(super) fn new(
        state: &McpState,
        tenant: TenantId,
        session: SessionKey,
        id: String,
        (revision, token): (Revision, Option<ProgressToken>),
        talks: bool,
    ) -> Self {
        let ticking = token.clone().filter(|_| !talks);
        Self {
            state: state.clone(),
            tenant,
            session,
            id,
            revision,
            telling: token.map(|token| (token, Gate::default())),
            last: None,
            ticks: ticking.map(|token| Telling::new(token, revision, Instant::now())),
        }
    }

    pub(super) fn progress(&mut self, progress: &Progress) {
        let Some((token, gate)) = &mut self.telling else {
            return;
        };
        let is_soon = self.last.is_some_and(|last| last.elapsed() < APART);
        if is_soon || !gate.passes(progress.progress) {
            return;
        }
        self.last = Some(Instant::now());
        let notice = progress::notification(self.revision, token, progress);
        self.say(&notice);
    }

    /// Passes a whole notification on, as one of the task.
    pub(super) fn say(&self, notice: &[u8]) {
        if let Some(notice) = of_task(notice, &self.id) {
            let session = self.session;
            bells::ring(&self.state, self.tenant, Bell::Said { session, notice });
        }
    }
}

/// Tells that an API still works, whenever that is due. Never ends; cancel safe.
pub(super) async fn ticks(voice: Option<&mut Voice>) {
    match voice {
        Some(Voice {
            state,
            tenant,
            session,
            id,
            ticks: Some(ticks),
            ..
        }) => {
            let notice = ticks.next().await;
            if let Some(notice) = of_task(&notice, id) {
                let session = *session;
                bells::ring(state, *tenant, Bell::Said { session, notice });
            }
        }
        _ => std::future::pending().await,
    }
}

/// TK-12.
fn of_task(notice: &[u8], id: &str) -> Option<Bytes> {
    let notice = Raw::parse(Bytes::copy_from_slice(notice)).ok()?;
    let method = notice.get("method")?.string()?;
    let params = notice.get("params").unwrap_or(Raw::empty_object());
    let params = task::related(&params, id);
    Some(jsonrpc::notification(&method, Some(params.as_bytes())).into())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn tk_12_what_a_task_says_names_the_task_beside_what_it_had() {
        let said = br#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1,"_meta":{"x":1}}}"#;
        let told: Value = serde_json::from_slice(&of_task(said, "t").unwrap()).unwrap();
        let meta = json!({"x": 1, "io.modelcontextprotocol/related-task": {"taskId": "t"}});
        assert_eq!(told["method"], "notifications/message");
        assert_eq!(
            told["params"],
            json!({"level": "info", "data": 1, "_meta": meta})
        );
    }
}
