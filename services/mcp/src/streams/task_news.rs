//! The waiting notifications of tasks on one stream, and the last ones that were sent.

use std::collections::VecDeque;

use bytes::Bytes;
use portolan_cluster::store::StreamKey;
use portolan_protocol::{logging::Level, progress::Gate, task::Status};

use crate::{nodes::message::MessageKind, tasks::caller_tasks::MOST_NAMED};

/// Most messages of tasks that wait for one stream; newer ones replace the oldest.
pub(crate) const MOST_WORDS: usize = 32;

/// Most tasks whose last notification one stream remembers.
pub(crate) const MOST_KNOWN: usize = 2 * MOST_NAMED;

/// The waiting notifications of tasks, and the last ones that were sent.
#[derive(Debug, Default)]
pub(crate) struct TaskNews {
    pub(crate) changed: VecDeque<StreamKey>,
    pub(crate) said: VecDeque<(StreamKey, MessageKind, Bytes)>,
    pub(crate) known: VecDeque<Known>,
    /// The session's log level, while messages are sent.
    pub(crate) level: Option<Level>,
}

/// The last notification of a task.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) item: StreamKey,
    /// Named by the listen request: it is polled, with or without a message between nodes.
    pub(crate) is_named: bool,
    pub(crate) standing: Option<[u8; 16]>,
    pub(crate) is_over: bool,
    pub(crate) progress: Gate,
}

/// The next notification.
pub(crate) enum Next {
    MessageKind(StreamKey, MessageKind, Bytes),
    Changed(StreamKey),
}

impl TaskNews {
    pub(crate) fn note(&mut self, item: StreamKey) {
        if self.changed.contains(&item) {
            return;
        }
        if self.changed.len() == MOST_NAMED {
            self.changed.pop_front();
        }
        self.changed.push_back(item);
    }

    pub(crate) fn say(&mut self, item: StreamKey, what: MessageKind, notice: Bytes) {
        if self.said.len() == MOST_WORDS {
            self.said.pop_front();
        }
        self.said.push_back((item, what, notice));
    }

    pub(crate) fn next(&mut self) -> Option<Next> {
        let word = self.said.pop_front();
        let word = word.map(|(item, what, notice)| Next::MessageKind(item, what, notice));
        word.or_else(|| self.changed.pop_front().map(Next::Changed))
    }

    /// Notes a task that the stream names.
    pub(crate) fn name(&mut self, item: StreamKey) {
        self.known(item, true);
    }

    fn known(&mut self, item: StreamKey, is_named: bool) -> &mut Known {
        let at = self.known.iter().position(|known| known.item == item);
        let at = at.unwrap_or_else(|| {
            if self.known.len() == MOST_KNOWN {
                self.known.pop_front();
            }
            self.known.push_back(Known {
                item,
                is_named,
                standing: None,
                is_over: false,
                progress: Gate::default(),
            });
            self.known.len() - 1
        });
        &mut self.known[at]
    }

    /// MCP-PP-1, MCP-PP-2: whether this progress is greater than the last one of a task that still
    /// runs.
    ///
    /// Messages from other nodes have no order.
    pub(crate) fn goes_on(&mut self, item: StreamKey, progress: f64) -> bool {
        let known = self.known(item, false);
        !known.is_over && known.progress.passes(progress)
    }

    /// Whether a status is a change. A stream that names a working task is not notified of that.
    pub(crate) fn is_news(&mut self, item: StreamKey, standing: [u8; 16], status: Status) -> bool {
        let known = self.known(item, false);
        known.is_over = status.is_terminal();
        match known.standing.replace(standing) {
            Some(told) => told != standing,
            None => !(known.is_named && status == Status::Working),
        }
    }

    /// Forgets a task that does not exist any more.
    pub(crate) fn is_gone(&mut self, item: StreamKey) {
        self.known.retain(|known| known.item != item);
    }

    /// Notes all named tasks that are not over. True if there are any.
    pub(crate) fn look_again(&mut self) -> bool {
        let open = self
            .known
            .iter()
            .filter(|known| known.is_named && !known.is_over);
        let open: Vec<StreamKey> = open.map(|known| known.item).collect();
        for item in &open {
            self.note(*item);
        }
        !open.is_empty()
    }
}
