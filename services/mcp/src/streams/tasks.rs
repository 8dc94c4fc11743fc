//! Notifications of tasks on open streams: status (MCP-TK-14, MCP-TX-13, MCP-X-5D), progress and
//! logs (MCP-TK-18).
//!
//! A session is notified of the tasks that it made, on the newest of its streams on this node. A
//! listen stream is notified of the tasks that it named. A notification holds the status at the
//! time of sending: of two changes in a second only the second is seen. No contents of a task wait
//! here; they are read when they are sent.

use std::sync::Arc;

use bytes::Bytes;
use portolan_cluster::{Doorway, OpenStream, SessionKey, store::StreamKey};
use portolan_model::id::TenantId;
use portolan_protocol::{
    jsonrpc::RequestId,
    logging::Level,
    revision::{Revision, Tasks},
};

use crate::{
    nodes::{events::ROUNDS, message::MessageKind},
    session::LiveSession,
    streams::{
        audience::leave,
        services::StreamServices,
        tag::{DOORBELL, StreamKind, Tag},
        task_news::{Next, TaskNews},
    },
    tasks::caller_tasks::{CallerTasks, Shown},
};

/// The subscription of a stream to tasks, until it is dropped.
pub(crate) struct Attendance {
    pub(crate) state: StreamServices,
    pub(crate) number: u64,
    pub(crate) tag: Arc<Tag>,
}

/// Subscribes a stream to tasks, if its kind has them. The named tasks are read first.
pub(crate) fn attend(state: &StreamServices, open: &OpenStream<Tag>) -> Option<Attendance> {
    let mut index = state.audience.lock();
    let number = index.next;
    match &open.tag.kind {
        StreamKind::Session { session, .. } if session.revision.facts().tasks == Tasks::Core => {
            let streams = index.sessions.entry(session.key).or_default();
            streams.push((number, open.doorway()));
        }
        StreamKind::Listen { tasks, .. } if !tasks.is_empty() => {
            for item in tasks {
                let streams = index.items.entry(*item).or_default();
                streams.push((number, open.doorway()));
            }
            let mut seen = open.tag.seen();
            for item in tasks {
                seen.tasks().name(*item);
            }
            seen.tasks().look_again();
        }
        StreamKind::Session { .. } | StreamKind::Listen { .. } => return None,
    }
    index.next += 1;
    Some(Attendance {
        state: state.clone(),
        number,
        tag: Arc::clone(&open.tag),
    })
}

impl Drop for Attendance {
    fn drop(&mut self) {
        let mut index = self.state.audience.lock();
        match &self.tag.kind {
            StreamKind::Session { session, .. } => {
                leave(&mut index.sessions, &session.key, self.number)
            }
            StreamKind::Listen { tasks, .. } => {
                for item in tasks {
                    leave(&mut index.items, item, self.number);
                }
            }
        }
    }
}

/// Wakes these streams of a tenant, after `note` has added the notification.
fn tell(
    tenant: TenantId,
    doors: impl IntoIterator<Item = Doorway<Tag>>,
    note: impl Fn(&mut TaskNews),
) {
    let mut sent = 0;
    for door in doors {
        if door.tag.caller.claims.tid == tenant {
            note(door.tag.seen().tasks());
            door.put(DOORBELL);
            sent += 1;
        }
    }
    crate::instruments::news_sent(sent);
}

/// Notifies the streams of this node that subscribe to a changed task.
pub(crate) fn changed(
    state: &StreamServices,
    tenant: TenantId,
    item: StreamKey,
    session: Option<SessionKey>,
) {
    let newest = session.and_then(|session| state.audience.newest(session));
    let doors = state.audience.of_task(item).into_iter().chain(newest);
    tell(tenant, doors, |news| news.note(item));
}

/// Forwards a task's message to the session that made it.
pub(crate) fn said(
    state: &StreamServices,
    tenant: TenantId,
    session: SessionKey,
    (item, what): (StreamKey, MessageKind),
    notice: &Bytes,
) {
    let newest = state.audience.newest(session);
    tell(tenant, newest, |news| news.say(item, what, notice.clone()));
}

/// Notes the named tasks that are not over for a new read, as messages between nodes may be lost.
///
/// `round` is one group of streams; `None` is all.
pub(crate) fn look_again(state: &StreamServices, round: Option<u64>) {
    let which = |number: u64| round.is_none_or(|round| number % ROUNDS == round);
    for door in state.audience.of_any(which).into_values() {
        if door.tag.seen().tasks().look_again() {
            door.put(DOORBELL);
        }
    }
}

impl Tag {
    /// Forgets the session's log level, since any node may have changed it (MCP-LG-4).
    pub(crate) fn begin_to_tell(&self) {
        if let Some(news) = &mut self.seen().tasks {
            news.level = None;
        }
    }

    /// The next frame with a notification of a task. Its contents are read now.
    pub(crate) async fn next_of_tasks(&self, state: &StreamServices) -> Option<Bytes> {
        loop {
            let next = self.seen().tasks.as_mut().and_then(|news| news.next());
            let next = next?;
            // MCP-L-6: a message before that is dropped, because clients can poll.
            if !self.is_ready(state).await {
                continue;
            }
            let frame = match next {
                Next::MessageKind(item, what, notice) => {
                    self.word(state, (item, what), &notice).await
                }
                Next::Changed(item) => self.change(state, item).await,
            };
            if frame.is_some() {
                return frame;
            }
        }
    }

    async fn word(
        &self,
        state: &StreamServices,
        (item, what): (StreamKey, MessageKind),
        notice: &Bytes,
    ) -> Option<Bytes> {
        let is_told = match what {
            MessageKind::Progress(progress) => self.seen().tasks().goes_on(item, progress),
            MessageKind::Log(level) => level >= self.level(state).await?,
            MessageKind::Other => true,
        };
        let told = self.seen().told;
        is_told.then(|| self.frame(state, told, |_| notice.to_vec()))
    }

    /// MCP-LG-4: the session's current log level, not that at the begin of the task.
    async fn level(&self, state: &StreamServices) -> Option<Level> {
        let known = self.seen().tasks().level;
        if known.is_some() {
            return known;
        }
        let StreamKind::Session { session, .. } = &self.kind else {
            return None;
        };
        let (marks, now) = (self.seen().current, state.clock.now());
        let found = LiveSession::find(state, *session, &self.caller, marks, now).await;
        let level = found.ok().flatten()?.level();
        self.seen().tasks().level = Some(level);
        Some(level)
    }

    async fn change(&self, state: &StreamServices, item: StreamKey) -> Option<Bytes> {
        let entry = state.catalog.resolve_again(&self.place).await.ok();
        let server = entry.and_then(|entry| entry.server.clone());
        let server = server.filter(|server| server.id == self.server)?;
        let revision = match &self.kind {
            StreamKind::Session { session, .. } => session.revision,
            StreamKind::Listen { .. } => Revision::V2026_07_28,
        };
        let caller_tasks = CallerTasks::new(state, &self.caller, &server);
        // While the store is away no notification is sent; named tasks are polled later.
        let shown = caller_tasks.shown(item, revision).await.ok()?;
        let mut seen = self.seen();
        let Some(Shown {
            task,
            detail,
            standing,
        }) = shown
        else {
            seen.tasks().is_gone(item);
            return None;
        };
        let is_news = seen.tasks().is_news(item, standing, task.status);
        let told = seen.told;
        drop(seen);
        let notice = |listen: Option<&RequestId>| task.notice(&detail, revision, listen);
        is_news.then(|| self.frame(state, told, notice))
    }
}

#[cfg(test)]
mod tests {
    use portolan_cluster::store::Nonce;
    use portolan_protocol::task::Status;

    use super::*;
    use crate::{
        streams::task_news::{MOST_KNOWN, MOST_WORDS},
        tasks::caller_tasks::MOST_NAMED,
    };

    fn item(number: u8) -> StreamKey {
        StreamKey {
            session: SessionKey([7; 16]),
            nonce: Nonce([number; 8]),
        }
    }

    #[test]
    fn tx_13_what_stands_as_it_was_told_is_not_told_again() {
        let mut news = TaskNews::default();
        let (one, two) = (item(1), item(2));
        news.name(one);
        assert!(
            !news.is_news(one, [1; 16], Status::Working),
            "named, and works"
        );
        assert!(news.is_news(one, [2; 16], Status::InputRequired));
        assert!(!news.is_news(one, [2; 16], Status::InputRequired), "twice");
        assert!(news.is_news(one, [1; 16], Status::Working));
        assert!(news.look_again(), "it is not over");
        assert!(news.is_news(one, [3; 16], Status::Completed));
        assert!(!news.look_again(), "it is over");
        assert!(
            news.is_news(two, [1; 16], Status::Working),
            "MCP-TK-14: of a task that a session made, every change is news"
        );
    }

    #[test]
    fn pp_1_and_pp_2_words_that_come_late_or_twice_are_not_told() {
        let mut news = TaskNews::default();
        let one = item(1);
        assert!(news.goes_on(one, 1.0) && news.goes_on(one, 3.0));
        assert!(
            !news.goes_on(one, 2.0) && !news.goes_on(one, 3.0),
            "MCP-PP-1"
        );
        news.is_news(one, [1; 16], Status::Completed);
        assert!(!news.goes_on(one, 4.0), "MCP-PP-2");
        assert!(news.goes_on(item(2), 1.0), "each by itself");
    }

    #[test]
    fn what_waits_and_what_is_known_is_bounded() {
        let mut news = TaskNews::default();
        for number in 0..=u8::MAX {
            news.note(item(number));
            news.say(item(number), MessageKind::Other, Bytes::new());
            news.goes_on(item(number), 1.0);
        }
        assert_eq!(news.changed.len(), MOST_NAMED);
        assert_eq!(news.said.len(), MOST_WORDS);
        assert_eq!(news.known.len(), MOST_KNOWN);
        assert_eq!(news.changed.back(), Some(&item(u8::MAX)));
    }
}
