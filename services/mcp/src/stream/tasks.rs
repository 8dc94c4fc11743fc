//! News of tasks on open streams: how a task stands now (TK-14, TX-13, X-5D), and what it says meanwhile (TK-18).
//!
//! A session hears of the tasks that it made, on the newest of its streams here (T-33); a listen stream of those that it named. What is told is what the task is
//! when it is told: of two changes in a second only the second is seen.

use std::collections::VecDeque;

use bytes::Bytes;
use portolan_cluster::{SessionKey, store::StreamKey};
use portolan_model::id::TenantId;
use portolan_protocol::{
    jsonrpc::RequestId,
    revision::{Revision, Tasks},
    task::Status,
};

use super::{DOORBELL, Kind, Tag};
use crate::{
    catalog::server::Server,
    endpoint::target::{Door, Target},
    state::McpState,
    tasks::Shelf,
};

/// Words of tasks that wait for one stream; the oldest make room.
const MOST_WORDS: usize = 32;

/// What waits to be told of tasks.
#[derive(Debug, Default)]
pub(super) struct TaskNews {
    changed: Vec<StreamKey>,
    said: VecDeque<Bytes>,
}

impl TaskNews {
    fn note(&mut self, item: StreamKey) {
        if !self.changed.contains(&item) {
            self.changed.push(item);
        }
    }

    fn say(&mut self, notice: Bytes) {
        if self.said.len() == MOST_WORDS {
            self.said.pop_front();
        }
        self.said.push_back(notice);
    }
}

/// The newest stream on this node of a session whose revision has tasks.
fn newest(state: &McpState, tenant: TenantId, session: SessionKey) -> Option<[u8; 8]> {
    let tags = state.streams.tags(tenant);
    let streams = tags.iter().filter_map(|tag| match &tag.kind {
        Kind::Session {
            session: id,
            stream,
            opened,
            ..
        } if id.key == session && id.revision.facts().tasks == Tasks::Core => {
            Some((*opened, *stream))
        }
        _ => None,
    });
    streams
        .max_by_key(|(opened, _)| *opened)
        .map(|(_, stream)| stream)
}

/// A task is not what it was: tells the streams of this node that want to hear of it.
pub(crate) fn changed(
    state: &McpState,
    tenant: TenantId,
    item: StreamKey,
    session: Option<SessionKey>,
) {
    let newest = session.and_then(|session| newest(state, tenant, session));
    let sent = state.streams.send(tenant, |tag| {
        let hears = match &tag.kind {
            Kind::Listen { tasks, .. } => tasks.contains(&item),
            Kind::Session { stream, .. } => Some(*stream) == newest,
        };
        hears.then(|| {
            tag.seen().tasks().note(item);
            DOORBELL
        })
    });
    crate::instruments::news_sent(sent);
}

/// A task says something to the session that made it.
pub(crate) fn said(state: &McpState, tenant: TenantId, session: SessionKey, notice: &Bytes) {
    let Some(newest) = newest(state, tenant, session) else {
        return;
    };
    let sent = state.streams.send(tenant, |tag| match &tag.kind {
        Kind::Session { stream, .. } if *stream == newest => {
            tag.seen().tasks().say(notice.clone());
            Some(DOORBELL)
        }
        _ => None,
    });
    crate::instruments::news_sent(sent);
}

impl Tag {
    /// The frames of what waits to be told of tasks.
    pub(super) async fn task_frames(&self, state: &McpState) -> Vec<Bytes> {
        let Some(news) = self.seen().tasks.take() else {
            return Vec::new();
        };
        // L-6. What is not told now is not told: whoever wants to know can look.
        if !self.is_ready(state).await {
            return Vec::new();
        }
        let target = Target {
            tenant: &self.tenant_slug,
            server: Some(&self.server_slug),
            path: "",
            door: Door::Mcp,
        };
        let tenant = self.caller.claims.tid;
        let entry = state.catalog.resolve(tenant, &target).await.ok();
        let server = entry.and_then(|entry| entry.server.clone());
        let Some(server) = server.filter(|server| server.id == self.server) else {
            return Vec::new();
        };
        let shelf = Shelf::new(state, &self.caller, &server);
        let mut frames: Vec<Bytes> = Vec::with_capacity(news.said.len() + news.changed.len());
        let told = self.seen().told;
        for notice in news.said {
            frames.push(self.frame(state, told, |_| notice.to_vec()));
        }
        for item in news.changed {
            frames.extend(self.task_frame(state, &shelf, item, |_| true).await);
        }
        frames
    }

    /// What became of the named tasks before the stream was there (TX-13): who begins to listen while one runs hears nothing.
    pub(super) async fn tasks_so_far(
        &self,
        state: &McpState,
        server: &std::sync::Arc<Server>,
    ) -> Vec<Bytes> {
        let Kind::Listen { tasks, .. } = &self.kind else {
            return Vec::new();
        };
        let shelf = Shelf::new(state, &self.caller, server);
        let mut frames = Vec::new();
        for item in tasks {
            let moved = |status: Status| status != Status::Working;
            frames.extend(self.task_frame(state, &shelf, *item, moved).await);
        }
        frames
    }

    async fn task_frame(
        &self,
        state: &McpState,
        shelf: &Shelf,
        item: StreamKey,
        which: impl Fn(Status) -> bool,
    ) -> Option<Bytes> {
        let revision = match &self.kind {
            Kind::Session { session, .. } => session.revision,
            Kind::Listen { .. } => Revision::V2026_07_28,
        };
        let (task, detail) = shelf.shown(item, revision).await?;
        if !which(task.status) {
            return None;
        }
        let told = self.seen().told;
        let notice = |listen: Option<&RequestId>| task.notice(&detail, revision, listen);
        Some(self.frame(state, told, notice))
    }
}
