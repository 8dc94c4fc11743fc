//! The events of one stream, kept until a client has had the time to resume it.

use std::{
    collections::VecDeque,
    convert::Infallible,
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use http_body::{Body, Frame};
use portolan_protocol::sse;
use tokio::time::Instant;

/// Most bytes of notifications that a stream keeps. Requests and answers are kept longer.
const NOTICE_BYTES: usize = 4 * 1024 * 1024;
/// Most events that a stream keeps.
const EVENTS: usize = 4096;

/// A message of the command, as far as its stream needs to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// May be dropped when too many wait.
    Notice,
    /// A request or an answer.
    Kept,
}

#[derive(Default)]
struct State {
    events: VecDeque<(u64, Class, Bytes)>,
    next: u64,
    notice_bytes: usize,
    over: Option<Instant>,
    /// The last event that a reader has taken.
    delivered: u64,
    /// Raised by each reader: the newest alone reads on.
    reader: u64,
    waker: Option<Waker>,
}

impl State {
    /// Drops the oldest notification; false if there is none.
    fn drop_a_notice(&mut self) -> bool {
        let mut events = self.events.iter();
        let oldest = events.position(|(_, class, _)| *class == Class::Notice);
        let dropped = oldest.and_then(|at| self.events.remove(at));
        if let Some((_, _, frame)) = &dropped {
            self.notice_bytes = self.notice_bytes.saturating_sub(frame.len());
        }
        dropped.is_some()
    }
}

/// The log of a stream.
pub(crate) struct Events {
    /// First part of the ids of its events.
    name: String,
    state: Mutex<State>,
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Events {
    pub(crate) fn new(name: String) -> Arc<Self> {
        Arc::new(Self {
            name,
            state: Mutex::default(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, class: Class, frame: impl FnOnce(&str) -> Vec<u8>) {
        let mut state = self.state();
        if state.over.is_some() {
            return;
        }
        state.next += 1;
        let seq = state.next;
        let frame = Bytes::from(frame(&format!("{}.{seq}", self.name)));
        if class == Class::Notice {
            state.notice_bytes += frame.len();
        }
        state.events.push_back((seq, class, frame));
        while state.notice_bytes > NOTICE_BYTES && state.drop_a_notice() {}
        if state.events.len() > EVENTS && !state.drop_a_notice() {
            // A command that sends nothing but requests: the memory stays bounded all the same.
            state.events.pop_front();
        }
        let waker = state.waker.take();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }

    /// The first event of a stream where the revision has it: an id alone.
    pub(crate) fn prime(&self) {
        self.add(Class::Kept, sse::priming);
    }

    /// Adds a message, one JSON text.
    pub(crate) fn push(&self, class: Class, json: &[u8]) {
        self.add(class, |id| sse::message(Some(id), json));
    }

    /// Nothing follows.
    pub(crate) fn finish(&self) {
        let waker = {
            let mut state = self.state();
            state.over.get_or_insert_with(Instant::now);
            state.waker.take()
        };
        waker.into_iter().for_each(Waker::wake);
    }

    /// When it was finished.
    pub(crate) fn over_since(&self) -> Option<Instant> {
        self.state().over
    }

    /// Reads the events that no reader has taken yet.
    pub(crate) fn read_on(self: &Arc<Self>) -> Reader {
        let delivered = self.state().delivered;
        self.read(delivered)
    }

    /// Reads the events after `seq`. An earlier reader ends.
    pub(crate) fn read(self: &Arc<Self>, seq: u64) -> Reader {
        let (reader, waker) = {
            let mut state = self.state();
            state.reader += 1;
            (state.reader, state.waker.take())
        };
        waker.into_iter().for_each(Waker::wake);
        Reader {
            events: Arc::clone(self),
            reader,
            seq,
            dropped: None,
        }
    }
}

/// Called when a reader is dropped before the end of its stream.
pub(crate) type OnDrop = Box<dyn FnOnce() + Send + Sync>;

/// A body with the events of a stream.
pub(crate) struct Reader {
    events: Arc<Events>,
    reader: u64,
    seq: u64,
    dropped: Option<OnDrop>,
}

impl Reader {
    /// The stream is closed early: the request is cancelled.
    pub(crate) fn or_else(mut self, dropped: OnDrop) -> Self {
        self.dropped = Some(dropped);
        self
    }
}

impl Body for Reader {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = &mut *self;
        let mut state = this.events.state();
        if state.reader != this.reader {
            return Poll::Ready(None);
        }
        let next = state.events.iter().find(|(seq, _, _)| *seq > this.seq);
        if let Some((seq, _, frame)) = next {
            let (seq, frame) = (*seq, frame.clone());
            this.seq = seq;
            state.delivered = state.delivered.max(seq);
            return Poll::Ready(Some(Ok(Frame::data(frame))));
        }
        if state.over.is_some() {
            this.dropped = None;
            return Poll::Ready(None);
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        if self.events.over_since().is_none()
            && let Some(dropped) = self.dropped.take()
        {
            dropped();
        }
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    async fn texts(reader: Reader) -> String {
        let body = reader.collect().await.unwrap().to_bytes();
        String::from_utf8(body.to_vec()).unwrap()
    }

    #[tokio::test]
    async fn a_reader_gets_the_events_after_its_cursor_and_replaces_the_one_before() {
        let events = Events::new("s".to_owned());
        events.prime();
        events.push(Class::Notice, b"{\"a\":1}");
        let mut first = events.read(0);
        assert!(first.frame().await.is_some());
        let second = events.read(1);
        assert!(first.frame().await.is_none(), "one reader at a time");
        events.push(Class::Kept, b"{\"b\":2}");
        events.finish();
        events.push(Class::Kept, b"{\"c\":3}");
        let text = texts(second).await;
        assert_eq!(
            text,
            "event: message\nid: s.2\ndata: {\"a\":1}\n\nevent: message\nid: s.3\ndata: {\"b\":2}\n\n"
        );
        assert_eq!(texts(events.read(3)).await, "", "nothing is left");
    }

    #[tokio::test]
    async fn notices_are_dropped_before_answers() {
        let events = Events::new("s".to_owned());
        events.push(Class::Kept, b"{\"answer\":1}");
        let large = vec![b'1'; 1024 * 1024];
        for _ in 0..6 {
            events.push(Class::Notice, &large);
        }
        events.finish();
        let text = texts(events.read(0)).await;
        assert!(text.contains("answer"));
        assert!(text.len() < 5 * 1024 * 1024, "{}", text.len());
        assert!(text.contains("id: s.7"), "the newest stays");
    }

    #[tokio::test]
    async fn a_question_before_many_notices_is_kept() {
        let events = Events::new("s".to_owned());
        events.push(Class::Kept, b"{\"question\":1}");
        for _ in 0..EVENTS + 8 {
            events.push(Class::Notice, b"{}");
        }
        events.finish();
        let text = texts(events.read(0)).await;
        assert!(text.contains("question"));
        assert_eq!(text.matches("id: s.").count(), EVENTS);
    }

    #[tokio::test]
    async fn a_stream_that_is_closed_early_cancels_its_request() {
        let cancelled = Arc::new(Mutex::new(0));
        for finished in [false, true] {
            let events = Events::new("s".to_owned());
            let seen = Arc::clone(&cancelled);
            let reader = events
                .read(0)
                .or_else(Box::new(move || *seen.lock().unwrap() += 1));
            if finished {
                events.finish();
            }
            drop(reader);
        }
        assert_eq!(*cancelled.lock().unwrap(), 1);
    }
}
