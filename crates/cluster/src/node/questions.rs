//! Questions to clients that wait on this node for their answers (STREAM-14).

use std::{collections::BTreeMap, sync::Mutex};

use bytes::Bytes;
use tokio::{
    sync::oneshot,
    time::{Duration, Instant},
};

use crate::{
    lock,
    store::{SessionKey, StreamKey},
};

/// Maximum number of open questions per request.
pub(super) const OPEN_AT_MOST: usize = 8;

#[derive(Debug)]
struct Open {
    stream: StreamKey,
    since: Instant,
    answer: oneshot::Sender<Bytes>,
}

/// Open questions by session and question id, because an answer contains both.
#[derive(Debug, Default)]
pub(super) struct Questions {
    open: Mutex<BTreeMap<(SessionKey, String), Open>>,
}

impl Questions {
    /// Opens a question. `None` if the stream has too many open questions, or this question is
    /// already open.
    pub(super) fn ask(
        &self,
        stream: StreamKey,
        question: &str,
    ) -> Option<oneshot::Receiver<Bytes>> {
        let mut open = lock(&self.open);
        let key = (stream.session, question.to_owned());
        let of_stream = open.values().filter(|open| open.stream == stream).count();
        if of_stream >= OPEN_AT_MOST || open.contains_key(&key) {
            return None;
        }
        let (answer, receiver) = oneshot::channel();
        open.insert(
            key,
            Open {
                stream,
                since: Instant::now(),
                answer,
            },
        );
        Some(receiver)
    }

    /// Passes a sealed answer to its question. Returns false if the question is not open on this
    /// node.
    pub(super) fn answered(&self, session: SessionKey, question: &str, payload: Bytes) -> bool {
        let open = lock(&self.open).remove(&(session, question.to_owned()));
        open.is_some_and(|open| open.answer.send(payload).is_ok())
    }

    /// Closes a question without an answer.
    pub(super) fn forget(&self, session: SessionKey, question: &str) {
        lock(&self.open).remove(&(session, question.to_owned()));
    }

    pub(super) fn is_open(&self, session: SessionKey, question: &str) -> bool {
        lock(&self.open).contains_key(&(session, question.to_owned()))
    }

    /// Number of open questions.
    pub(super) fn len(&self) -> usize {
        lock(&self.open).len()
    }

    /// Questions that have been open for at least `age`.
    pub(super) fn waiting(&self, age: Duration) -> Vec<(SessionKey, String)> {
        lock(&self.open)
            .iter()
            .filter(|(_, open)| open.since.elapsed() >= age)
            .map(|(key, _)| key.clone())
            .collect()
    }
}
