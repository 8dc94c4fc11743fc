//! Logs of request streams: append, trim, attach, read, take over.

use std::collections::VecDeque;

use super::{
    ms,
    partition::{Moment, Partition, Question, Session, Stream},
};
use crate::{
    fork,
    store::{
        Append, Appended, Attached, Bounds, Class, Create, Cursor, Epoch, Event, INLINE, MOST_SEQ,
        NodeId, NodeMessage, Principal, Read, ReadWanted, StreamKey, StreamState, TakeOver,
        TakenOver, View,
    },
};

impl Stream {
    fn new(create: &Create, append: &Append, now: u64, bounds: &Bounds) -> Self {
        let deadline = now + ms(create.deadline_in);
        let start = create.start.min(MOST_SEQ);
        let epochs = if append.epoch.term > 1 {
            vec![(start, append.epoch)]
        } else {
            Vec::new()
        };
        Self {
            owner: Some(append.owner),
            epoch: append.epoch,
            epochs,
            state: StreamState::Open,
            tail: start,
            bytes: 0,
            dropped: start,
            attached: Some(append.owner),
            generation: 1,
            deadline,
            until: deadline + ms(bounds.open_grace),
            about: create.about.clone(),
            has_final: false,
            events: VecDeque::new(),
        }
    }

    /// Drops notifications down to three quarters of the bounds. True if the other events exceed
    /// the bounds alone.
    fn trim(&mut self, bounds: &Bounds) -> bool {
        let (most, most_bytes) = (bounds.events, bounds.bytes);
        if self.bytes <= most_bytes && self.events.len() <= most {
            return false;
        }
        let (mut count, mut bytes) = (self.events.len(), self.bytes);
        let newest = self.tail;
        let mut dropped = self.dropped;
        self.events.retain(|event| {
            let over = count * 4 > most * 3 || bytes * 4 > most_bytes * 3;
            if event.class != Class::Notification || event.seq == newest || !over {
                return true;
            }
            count -= 1;
            bytes -= event.payload.len();
            dropped = dropped.max(event.seq);
            false
        });
        self.bytes = bytes;
        self.dropped = dropped;
        count > most || bytes > most_bytes
    }

    /// Retained events after a position, up to the size of one page, and whether there are more.
    fn page(&self, position: u64, bounds: &Bounds) -> (Vec<Event>, bool) {
        let from = self.events.partition_point(|event| event.seq <= position);
        let (most, most_bytes) = bounds.page;
        let (mut page, mut bytes) = (Vec::new(), 0);
        for event in self.events.range(from..) {
            if page.len() >= most || bytes > most_bytes {
                return (page, true);
            }
            bytes += event.payload.len();
            page.push(event.clone());
        }
        (page, false)
    }

    fn view(&self, position: Option<u64>, moment: &Moment<'_>) -> View {
        let (events, more) = position.map_or((Vec::new(), false), |position| {
            self.page(position, moment.bounds)
        });
        View {
            owner: self.owner,
            state: self.state,
            tail: self.tail,
            dropped: self.dropped,
            generation: self.generation,
            epoch: self.epoch,
            epochs: self.epochs.clone(),
            deadline_in: self.deadline_in(moment.now),
            events,
            more,
        }
    }

    const fn deadline_in(&self, now: u64) -> std::time::Duration {
        std::time::Duration::from_millis(self.deadline.saturating_sub(now))
    }
}

impl Partition {
    pub(super) fn append(
        &mut self,
        key: StreamKey,
        append: &Append,
        moment: &mut Moment<'_>,
    ) -> Appended {
        let (now, bounds) = (moment.now, moment.bounds);
        if self.stream(key, now).is_none() {
            let session = self.session(key.session, now);
            if session.is_some_and(|session| session.ended_until.is_some()) {
                return Appended::Closed {
                    state: StreamState::Cancelled,
                    tail: 0,
                };
            }
            let Some(create) = &append.create else {
                return Appended::Gone;
            };
            let stream = Stream::new(create, append, now, bounds);
            let session = self.session_or_new(key.session, now);
            session.ends_at(stream.until);
            session.streams.insert(key.nonce, stream);
            self.own(Some(append.owner), (key.session, key.nonce));
        }
        let Some(session) = self.sessions.get_mut(&key.session) else {
            return Appended::Gone;
        };
        let appended = session.append(key, append, moment);
        if closes(append).is_some() && matches!(appended, Appended::Done { .. }) {
            self.disown(Some(append.owner), (key.session, key.nonce));
        }
        appended
    }

    pub(super) fn attach(
        &mut self,
        key: StreamKey,
        principal: Principal,
        cursor: Cursor,
        node: NodeId,
        moment: &mut Moment<'_>,
    ) -> Attached {
        let Some(session) = self.session(key.session, moment.now) else {
            return Attached::Gone;
        };
        if session.refuses(principal) {
            return Attached::Unknown;
        }
        let Some(stream) = session.streams.get_mut(&key.nonce) else {
            return Attached::Gone;
        };
        let (position, split) = fork::place(cursor.bounded(), &stream.epochs);
        if stream.state == StreamState::Open {
            if let Some(former) = stream.attached.filter(|former| *former != node) {
                moment.notify(
                    former,
                    NodeMessage::Superseded {
                        stream: key,
                        generation: stream.generation,
                    },
                );
            }
            stream.generation += 1;
            stream.attached = Some(node);
        }
        Attached::Stream {
            view: stream.view(Some(position), moment),
            position,
            split,
            about: stream.about.clone(),
        }
    }

    pub(super) fn read(&mut self, wanted: &ReadWanted, moment: &mut Moment<'_>) -> Read {
        let Some(stream) = self.stream(wanted.stream, moment.now) else {
            return Read::Gone;
        };
        let ours = stream.generation == wanted.generation;
        if ours
            && stream.tail == wanted.position
            && stream.state == StreamState::Open
            && (stream.owner, stream.epoch) == wanted.seen
        {
            return Read::Unchanged;
        }
        let view = stream.view(ours.then_some(wanted.position), moment);
        Read::View(view, stream.attached)
    }

    pub(super) fn take_over(&mut self, take_over: &TakeOver, moment: &mut Moment<'_>) -> TakenOver {
        let (now, key, cursor) = (moment.now, take_over.stream, take_over.shown.bounded());
        let overdue = ms(moment.bounds.overdue);
        let Some(stream) = self
            .stream(key, now)
            .filter(|stream| stream.state == StreamState::Open)
        else {
            return TakenOver::Over;
        };
        let shown = cursor.epoch.map_or(0, |epoch| epoch.term);
        let former = stream.owner;
        // A repetition of this takeover, whose reply was lost.
        let again = former == take_over.to
            && stream.tail >= cursor.seq
            && (take_over.to.is_none()
                || stream.epoch.term > shown.max(1) && stream.epoch.nonce == take_over.nonce);
        if !again {
            let late = now > stream.deadline + overdue;
            if former != take_over.from && !late {
                return TakenOver::Lost;
            }
            if cursor.seq > stream.tail {
                stream.tail = cursor.seq;
                stream.dropped = stream.tail;
            }
            if take_over.to.is_some() {
                stream.epoch = Epoch {
                    term: stream.epoch.term.max(shown) + 1,
                    nonce: take_over.nonce,
                };
                stream.epochs.push((stream.tail, stream.epoch));
            }
            stream.owner = take_over.to;
            if let Some(attached) = stream.attached.filter(|node| Some(*node) != take_over.to) {
                moment.notify(
                    attached,
                    NodeMessage::Owner {
                        stream: key,
                        owner: take_over.to,
                    },
                );
            }
        }
        let done = TakenOver::Done {
            tail: stream.tail,
            epoch: stream.epoch,
            about: stream.about.clone(),
            deadline_in: stream.deadline_in(now),
            late: stream.has_final,
        };
        self.disown(former, (key.session, key.nonce));
        self.own(take_over.to, (key.session, key.nonce));
        done
    }

    pub(super) fn owned_by(
        &mut self,
        node: Option<NodeId>,
        moment: &mut Moment<'_>,
    ) -> Vec<StreamKey> {
        let owned: Vec<_> = self
            .owned
            .get(&node)
            .map(|streams| streams.iter().copied().collect())
            .unwrap_or_default();
        owned
            .into_iter()
            .map(|(session, nonce)| StreamKey { session, nonce })
            .filter(|key| self.stream(*key, moment.now).is_some())
            .collect()
    }
}

impl Session {
    /// Appends to a stream that exists.
    fn append(&mut self, key: StreamKey, append: &Append, moment: &mut Moment<'_>) -> Appended {
        let (now, bounds) = (moment.now, moment.bounds);
        let Some(stream) = self.streams.get_mut(&key.nonce) else {
            return Appended::Gone;
        };
        if stream.owner != Some(append.owner) || stream.epoch != append.epoch {
            return Appended::Fenced;
        }
        if stream.tail != append.expect {
            return Appended::Tail {
                tail: stream.tail,
                state: stream.state,
            };
        }
        if stream.state != StreamState::Open {
            return Appended::Closed {
                state: stream.state,
                tail: stream.tail,
            };
        }
        for event in &append.events {
            stream.tail += 1;
            stream.bytes += event.payload.len();
            stream.has_final |= event.class == Class::Final;
            stream.events.push_back(Event {
                seq: stream.tail,
                class: event.class,
                payload: event.payload.clone(),
            });
            if let Some(question) = &event.question {
                self.questions
                    .entry(question.clone())
                    .or_insert_with(|| Question {
                        stream: key.nonce,
                        answer: None,
                    });
            }
        }
        let overflow = stream.trim(bounds);
        if let Some(state) = closes(append) {
            stream.state = state;
            stream.until = now + ms(bounds.closed_for);
            self.running.remove(&append.rpc);
            self.questions
                .retain(|_, question| question.stream != key.nonce);
        }
        let until = stream.until;
        if let Some(attached) = stream.attached.filter(|node| *node != append.owner) {
            let event = match append.events.as_slice() {
                [event] if event.payload.len() <= INLINE => stream.events.back().cloned(),
                _ => None,
            };
            moment.notify(
                attached,
                NodeMessage::Appended {
                    stream: key,
                    generation: stream.generation,
                    epoch: stream.epoch,
                    tail: stream.tail,
                    state: stream.state,
                    event,
                },
            );
        }
        let appended = Appended::Done {
            tail: stream.tail,
            attached: stream.attached,
            generation: stream.generation,
            overflow,
        };
        self.ends_at(until);
        appended
    }
}

/// State in which an append ends its stream; `None` if it does not.
fn closes(append: &Append) -> Option<StreamState> {
    append.close.filter(|state| *state != StreamState::Open)
}
