//! Buffer of a stream's writer: the events that the log may still need, and the meaning of the
//! store's replies (STREAM-7). No I/O.

use std::{collections::VecDeque, time::Duration};

use bytes::Bytes;

use super::settings::BATCH;
use crate::store::{Append, Appended, Class, Create, Epoch, NewEvent, NodeId, StreamState};

/// Event with its number.
#[derive(Debug, Clone)]
pub(super) struct UnackedEvent {
    pub(super) seq: u64,
    /// Sealed form, as in the log.
    pub(super) event: NewEvent,
    /// Plain form for the client, until the log has the event.
    pub(super) plain: Option<Bytes>,
}

/// The writer's view of a log.
#[derive(Debug)]
pub(super) struct UnackedBuffer {
    owner: NodeId,
    epoch: Epoch,
    rpc: String,
    bounds: (usize, usize),
    batch: (usize, usize),
    /// The log is known to exist.
    is_created: bool,
    /// Number of the last acknowledged event. Later events may be missing in the log.
    acked: u64,
    /// Number of the next event.
    next: u64,
    /// Events with dense numbers up to `next`.
    entries: VecDeque<UnackedEvent>,
    bytes: usize,
    close: Option<StreamState>,
    is_closed: bool,
}

/// An `append` in flight, for comparison with its reply.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) append: Append,
}

/// Meaning of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AppendVerdict {
    /// The log has the sent events, or more. `healed`: an earlier reply was lost or partly applied.
    Acked {
        /// An earlier reply was lost, but the log has the events.
        healed: bool,
    },
    /// The log lost events: they are sent again.
    Rewound,
    /// Another node owns the stream.
    Fenced,
    /// Another node ended the stream.
    Ended,
    /// The log lost events that this buffer no longer has, or has numbers that were never given.
    Broken,
}

impl UnackedBuffer {
    /// Creates a buffer. The node that opens a stream passes `tail` 0 and the first epoch; a
    /// takeover passes its own.
    pub(super) fn new(
        owner: NodeId,
        epoch: Epoch,
        tail: u64,
        rpc: String,
        bounds: (usize, usize),
    ) -> Self {
        Self {
            owner,
            epoch,
            rpc,
            bounds,
            batch: BATCH,
            is_created: epoch != Epoch::FIRST,
            acked: tail,
            next: tail + 1,
            entries: VecDeque::new(),
            bytes: 0,
            close: None,
            is_closed: false,
        }
    }

    pub(super) const fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Number of the last event.
    pub(super) const fn last(&self) -> u64 {
        self.next - 1
    }

    /// Number of the last acknowledged event.
    pub(super) const fn acked(&self) -> u64 {
        self.acked
    }

    /// Bytes of the buffered events.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) const fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// State of the stream in the log.
    pub(super) fn state(&self) -> StreamState {
        self.close
            .filter(|_| self.is_closed)
            .unwrap_or(StreamState::Open)
    }

    /// State of the stream after all events are in the log.
    pub(super) fn ending(&self) -> StreamState {
        self.close.unwrap_or(StreamState::Open)
    }

    pub(super) const fn is_closing(&self) -> bool {
        self.close.is_some()
    }

    /// Whether unacknowledged events fill the buffer. Further notifications are then not numbered.
    pub(super) fn is_full(&self) -> bool {
        let (mut count, mut bytes) = (0, 0);
        for entry in self.unacked() {
            count += 1;
            bytes += entry.event.payload.len();
        }
        count >= self.bounds.0 || bytes >= self.bounds.1
    }

    /// Whether a full batch waits.
    pub(super) fn has_batch(&self) -> bool {
        self.last() - self.acked >= self.batch.0 as u64
    }

    /// Numbers an event and adds it.
    pub(super) fn add(&mut self, event: NewEvent, plain: Bytes) -> u64 {
        let seq = self.next;
        self.next += 1;
        self.bytes += event.payload.len();
        self.entries.push_back(UnackedEvent {
            seq,
            event,
            plain: Some(plain),
        });
        self.trim();
        seq
    }

    /// Marks the stream as complete: no event follows.
    pub(super) const fn close(&mut self, state: StreamState) {
        self.close = Some(state);
    }

    /// Unacknowledged events in order.
    pub(super) fn unacked(&self) -> impl Iterator<Item = &UnackedEvent> {
        let skip = self
            .entries
            .front()
            .map_or(0, |first| (self.acked + 1).saturating_sub(first.seq));
        self.entries
            .iter()
            .skip(usize::try_from(skip).unwrap_or(usize::MAX))
    }

    /// Whether an `append` is needed.
    pub(super) const fn has_news(&self) -> bool {
        !self.is_created || self.acked < self.last() || (self.close.is_some() && !self.is_closed)
    }

    /// Builds the next `append`. Without new events it is empty, as an audit.
    pub(super) fn next_append(&self, deadline_in: Duration, about: &Bytes) -> Sent {
        let (mut events, mut bytes) = (Vec::new(), 0);
        for entry in self.unacked() {
            bytes += entry.event.payload.len();
            if !events.is_empty() && (events.len() >= self.batch.0 || bytes > self.batch.1) {
                break;
            }
            events.push(entry.event.clone());
        }
        let reaches_end = self.acked + events.len() as u64 == self.last();
        Sent {
            append: Append {
                owner: self.owner,
                epoch: self.epoch,
                expect: self.acked,
                create: (!self.is_created).then(|| Create {
                    deadline_in,
                    start: self.acked,
                    about: about.clone(),
                }),
                events,
                close: if reaches_end && !self.is_closed {
                    self.close
                } else {
                    None
                },
                rpc: self.rpc.clone(),
            },
        }
    }

    /// Applies a reply to the sent `append`.
    pub(super) fn answered(&mut self, sent: &Sent, reply: &Appended) -> AppendVerdict {
        match reply {
            Appended::Done { tail, .. } => {
                if *tail != sent.append.expect + sent.append.events.len() as u64 {
                    return AppendVerdict::Broken;
                }
                self.ack(*tail);
                self.is_closed |= sent.append.close.is_some();
                AppendVerdict::Acked { healed: false }
            }
            Appended::Fenced => AppendVerdict::Fenced,
            Appended::Tail {
                tail,
                state: StreamState::Open,
            } => self.found_open(*tail),
            Appended::Tail { tail, state } | Appended::Closed { state, tail } => {
                if Some(*state) == self.close && *tail == self.last() {
                    let healed = !self.is_closed;
                    self.ack(*tail);
                    self.is_closed = true;
                    AppendVerdict::Acked { healed }
                } else {
                    AppendVerdict::Ended
                }
            }
            Appended::Gone => {
                self.is_created = false;
                self.is_closed = false;
                self.acked = self.first() - 1;
                AppendVerdict::Rewound
            }
        }
    }

    fn found_open(&mut self, tail: u64) -> AppendVerdict {
        if tail > self.last() {
            return AppendVerdict::Broken;
        }
        if tail >= self.acked {
            self.ack(tail);
            return AppendVerdict::Acked { healed: true };
        }
        if tail + 1 < self.first() {
            return AppendVerdict::Broken;
        }
        self.acked = tail;
        self.is_closed = false;
        AppendVerdict::Rewound
    }

    fn ack(&mut self, tail: u64) {
        self.is_created = true;
        self.acked = tail;
    }

    /// Takes the plain form of acknowledged events, once: numbers, kinds, payloads.
    pub(super) fn take_plain(&mut self) -> Vec<(u64, Class, Bytes)> {
        let mut taken = Vec::new();
        for entry in self.entries.iter_mut().rev() {
            if entry.seq > self.acked {
                continue;
            }
            match entry.plain.take() {
                Some(plain) => taken.push((entry.seq, entry.event.class, plain)),
                None => break,
            }
        }
        taken.reverse();
        self.trim();
        taken
    }

    /// Number of the oldest buffered event, or of the next one.
    fn first(&self) -> u64 {
        self.entries.front().map_or(self.next, |entry| entry.seq)
    }

    /// Removes acknowledged events from the front only: the buffer has no holes, because `append`
    /// numbers densely.
    fn trim(&mut self) {
        while self.entries.len() > self.bounds.0 || self.bytes > self.bounds.1 {
            match self.entries.front() {
                Some(first) if first.seq <= self.acked => {
                    self.bytes -= first.event.payload.len();
                    self.entries.pop_front();
                }
                _ => break,
            }
        }
    }
}

/// Builds an event of the log.
pub(super) const fn event(class: Class, question: Option<String>, payload: Bytes) -> NewEvent {
    NewEvent {
        class,
        question,
        payload,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABOUT: Bytes = Bytes::new();
    const BOUNDS: (usize, usize) = (256, 1024 * 1024);

    fn unacked(bounds: (usize, usize)) -> UnackedBuffer {
        UnackedBuffer::new(
            NodeId(*b"naaaaaaaaaaaaa"),
            Epoch::FIRST,
            0,
            "i:1".into(),
            bounds,
        )
    }

    fn add(unacked: &mut UnackedBuffer, count: usize) {
        for _ in 0..count {
            let payload = Bytes::from_static(b"x");
            unacked.add(event(Class::Notification, None, payload.clone()), payload);
        }
    }

    const fn done(tail: u64) -> Appended {
        Appended::Done {
            tail,
            attached: None,
            generation: 1,
            overflow: false,
        }
    }

    fn send(unacked: &UnackedBuffer) -> Sent {
        unacked.next_append(Duration::from_secs(1), &ABOUT)
    }

    #[test]
    fn the_first_append_makes_the_stream_and_a_batch_is_bounded() {
        let mut unacked = unacked(BOUNDS);
        assert!(unacked.has_news(), "the stream itself");
        add(&mut unacked, 40);
        let sent = send(&unacked);
        assert_eq!(sent.append.create.as_ref().map(|c| c.start), Some(0));
        assert_eq!(sent.append.events.len(), 32);
        assert_eq!(
            unacked.answered(&sent, &done(32)),
            AppendVerdict::Acked { healed: false }
        );
        unacked.close(StreamState::Closed);
        let sent = send(&unacked);
        assert!(sent.append.create.is_none() && sent.append.close == Some(StreamState::Closed));
        assert_eq!(
            unacked.answered(&sent, &done(40)),
            AppendVerdict::Acked { healed: false }
        );
        assert!(unacked.is_closed() && !unacked.has_news());
    }

    #[test]
    fn a_lost_reply_is_recognised_by_the_tail() {
        let mut unacked = unacked(BOUNDS);
        add(&mut unacked, 3);
        let sent = send(&unacked);
        // The append was applied but its reply was lost. More events came meanwhile.
        add(&mut unacked, 2);
        let again = send(&unacked);
        assert_eq!(sent.append.expect, again.append.expect);
        let reply = Appended::Tail {
            tail: 3,
            state: StreamState::Open,
        };
        assert_eq!(
            unacked.answered(&again, &reply),
            AppendVerdict::Acked { healed: true }
        );
        assert_eq!(send(&unacked).append.events.len(), 2);
    }

    #[test]
    fn a_lost_reply_of_the_close_is_recognised_too() {
        let mut unacked = unacked(BOUNDS);
        add(&mut unacked, 1);
        unacked.close(StreamState::Closed);
        let sent = send(&unacked);
        let reply = Appended::Tail {
            tail: 1,
            state: StreamState::Closed,
        };
        assert_eq!(
            unacked.answered(&sent, &reply),
            AppendVerdict::Acked { healed: true }
        );
        assert!(unacked.is_closed());
        let audit = send(&unacked);
        assert!(audit.append.events.is_empty() && audit.append.close.is_none());
        let reply = Appended::Closed {
            tail: 1,
            state: StreamState::Closed,
        };
        assert_eq!(
            unacked.answered(&audit, &reply),
            AppendVerdict::Acked { healed: false }
        );
    }

    #[test]
    fn a_log_that_lost_events_gets_them_again_with_their_numbers() {
        let mut unacked = unacked(BOUNDS);
        add(&mut unacked, 5);
        let sent = send(&unacked);
        unacked.answered(&sent, &done(5));
        unacked.close(StreamState::Closed);
        let sent = send(&unacked);
        unacked.answered(&sent, &done(5));
        assert!(unacked.is_closed());
        let audit = send(&unacked);
        let reply = Appended::Tail {
            tail: 2,
            state: StreamState::Open,
        };
        assert_eq!(unacked.answered(&audit, &reply), AppendVerdict::Rewound);
        let sent = send(&unacked);
        assert_eq!((sent.append.expect, sent.append.events.len()), (2, 3));
        assert_eq!(sent.append.close, Some(StreamState::Closed));
    }

    #[test]
    fn a_stream_that_is_gone_is_made_again_from_the_oldest_event_in_the_ring() {
        let mut unacked = unacked((4, 1000));
        add(&mut unacked, 10);
        let sent = send(&unacked);
        unacked.answered(&sent, &done(10));
        unacked.take_plain();
        let audit = send(&unacked);
        assert_eq!(
            unacked.answered(&audit, &Appended::Gone),
            AppendVerdict::Rewound
        );
        let sent = send(&unacked);
        assert_eq!(sent.append.create.as_ref().map(|c| c.start), Some(6));
        assert_eq!((sent.append.expect, sent.append.events.len()), (6, 4));
        // A tail before the oldest buffered event cannot be repaired.
        let reply = Appended::Tail {
            tail: 3,
            state: StreamState::Open,
        };
        assert_eq!(unacked.answered(&sent, &reply), AppendVerdict::Broken);
    }

    #[test]
    fn what_the_log_lacks_is_never_trimmed_and_fills_the_ring() {
        let mut unacked = unacked((4, 1000));
        add(&mut unacked, 6);
        assert!(unacked.is_full());
        assert_eq!(unacked.unacked().count(), 6);
        let sent = send(&unacked);
        unacked.answered(&sent, &done(6));
        assert_eq!(unacked.take_plain().len(), 6);
        assert!(!unacked.is_full() && unacked.unacked().count() == 0);
        assert_eq!(unacked.entries.len(), 4);
    }

    #[test]
    fn another_owner_and_another_end_stop_the_writer() {
        let mut unacked = unacked(BOUNDS);
        add(&mut unacked, 1);
        let sent = send(&unacked);
        assert_eq!(
            unacked.answered(&sent, &Appended::Fenced),
            AppendVerdict::Fenced
        );
        let reply = Appended::Closed {
            state: StreamState::Cancelled,
            tail: 0,
        };
        assert_eq!(unacked.answered(&sent, &reply), AppendVerdict::Ended);
        let reply = Appended::Tail {
            tail: 9,
            state: StreamState::Open,
        };
        assert_eq!(unacked.answered(&sent, &reply), AppendVerdict::Broken);
    }
}
