//! Reference model of the store, written from STREAM-3–STREAM-14 and not from an implementation:
//! simple lists with the whole history. Random walks compare its replies and messages with the
//! memory store (layer TEST-M).

use std::{
    collections::{BTreeMap, btree_map::Entry as Slot},
    time::Duration,
};

use bytes::Bytes;
use portolan_cluster::store::{
    Append, Appended, Attached, Begin, Bounds, Class, Create, Cursor, Epoch, Event, INLINE, NodeId,
    NodeMessage, Nonce, Principal, Read, ReadWanted, Registered, Routed, SessionKey, StreamKey,
    StreamState, TakeOver, TakeTokens, TakenOver, TakenTokens, Update, Version, View,
};

use crate::{
    fixture::names::{LIFE, MINUTE},
    walk::{Draw, Facts, Op, Outcome, coarse},
};

/// Small bounds, so that walks reach all of them.
pub(crate) fn bounds() -> Bounds {
    Bounds {
        events: 12,
        bytes: 9000,
        page: (5, 6000),
        running: 2,
        tombstones: 1,
        ..Bounds::default()
    }
}

pub(crate) struct Model {
    bounds: Bounds,
    /// Time since the walk began.
    pub(crate) now: Duration,
    sessions: BTreeMap<SessionKey, Session>,
    buckets: BTreeMap<String, u64>,
    pub(crate) notified: Vec<(NodeId, NodeMessage)>,
}

#[derive(Default)]
struct Session {
    record: Option<Record>,
    /// End of the tombstone.
    ended: Option<Duration>,
    streams: BTreeMap<Nonce, Stream>,
    running: BTreeMap<String, Entry>,
    questions: BTreeMap<String, (Nonce, Option<Bytes>)>,
}

struct Record {
    principal: Principal,
    version: u32,
    body: Bytes,
    until: Duration,
}

struct Entry {
    /// `None`: a cancellation that came first.
    node: Option<NodeId>,
    stream: Option<Nonce>,
    cancelled: bool,
    until: Duration,
}

struct Stream {
    owner: Option<NodeId>,
    /// Epochs above 1 with their starts. The last one is current.
    epochs: Vec<(u64, Epoch)>,
    state: StreamState,
    tail: u64,
    dropped: u64,
    attached: Option<NodeId>,
    generation: u64,
    deadline: Duration,
    until: Duration,
    about: Bytes,
    /// All events ever written, and whether each one is still there.
    history: Vec<(Event, bool)>,
}

impl Stream {
    fn new(create: &Create, append: &Append, now: Duration, bounds: &Bounds) -> Self {
        let deadline = now + create.deadline_in;
        let mut epochs = Vec::new();
        if append.epoch.term > 1 {
            epochs.push((create.start, append.epoch));
        }
        Self {
            owner: Some(append.owner),
            epochs,
            state: StreamState::Open,
            tail: create.start,
            dropped: create.start,
            attached: Some(append.owner),
            generation: 1,
            deadline,
            until: deadline + bounds.open_grace,
            about: create.about.clone(),
            history: Vec::new(),
        }
    }

    fn epoch(&self) -> Epoch {
        self.epochs.last().map_or(Epoch::FIRST, |(_, epoch)| *epoch)
    }

    fn retained(&self) -> impl Iterator<Item = &Event> {
        self.history
            .iter()
            .filter(|(_, there)| *there)
            .map(|(event, _)| event)
    }

    fn size(&self) -> (usize, usize) {
        self.retained().fold((0, 0), |(count, bytes), event| {
            (count + 1, bytes + event.payload.len())
        })
    }

    /// STREAM-8.3: the common part ends where either history leaves the other.
    fn place(&self, cursor: Cursor) -> (u64, bool) {
        let Some(shown) = cursor.epoch else {
            return (cursor.seq, false);
        };
        let mut ranges = vec![(Epoch::FIRST, 0)];
        ranges.extend(self.epochs.iter().map(|(start, epoch)| (*epoch, *start)));
        let end = ranges
            .iter()
            .find(|(epoch, _)| epoch.term > shown.term)
            .map(|(_, start)| *start);
        let mine = ranges.iter().find(|(epoch, _)| epoch.term == shown.term);
        let bound = match mine {
            Some((epoch, start)) if epoch.nonce != shown.nonce && epoch.term > 1 => {
                return (cursor.seq.min(*start), true);
            }
            Some((_, start)) => cursor.seq.max(*start).min(end.unwrap_or(u64::MAX)),
            None => match end {
                Some(end) => return (cursor.seq.min(end), true),
                None => cursor.seq,
            },
        };
        (bound, bound != cursor.seq)
    }

    fn view(&self, from: Option<u64>, bounds: &Bounds, now: Duration) -> View {
        let (mut events, mut more, mut bytes) = (Vec::new(), false, 0);
        if let Some(from) = from {
            for event in self.retained().filter(|event| event.seq > from) {
                if events.len() >= bounds.page.0 || bytes > bounds.page.1 {
                    more = true;
                    break;
                }
                bytes += event.payload.len();
                events.push(event.clone());
            }
        }
        View {
            owner: self.owner,
            state: self.state,
            tail: self.tail,
            dropped: self.dropped,
            generation: self.generation,
            epoch: self.epoch(),
            epochs: self.epochs.clone(),
            deadline_in: coarse(self.deadline.saturating_sub(now)),
            events,
            more,
        }
    }
}

impl Session {
    fn refuses(&self, principal: Principal) -> bool {
        self.ended.is_some()
            || self
                .record
                .as_ref()
                .is_some_and(|record| record.principal != principal)
    }

    fn forget(&mut self, now: Duration) {
        self.ended = self.ended.filter(|until| *until > now);
        self.record = self.record.take().filter(|record| record.until > now);
        self.running.retain(|_, entry| entry.until > now);
        self.streams.retain(|_, stream| stream.until > now);
        let streams = &self.streams;
        self.questions
            .retain(|_, (stream, _)| streams.contains_key(stream));
    }
}

impl Model {
    pub(crate) fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            now: Duration::ZERO,
            sessions: BTreeMap::new(),
            buckets: BTreeMap::new(),
            notified: Vec::new(),
        }
    }

    /// Facts that a step needs to fit the state.
    pub(crate) fn facts(&mut self, draw: &Draw) -> Facts {
        let key = draw.stream();
        let session = self.session(key.session);
        let version = session.record.as_ref().map_or(0, |record| record.version);
        let Some(stream) = session.streams.get(&key.nonce) else {
            return Facts {
                version,
                ..Facts::default()
            };
        };
        Facts {
            version,
            owner: stream.owner,
            epoch: Some(stream.epoch()),
            epochs: stream.epochs.clone(),
            tail: stream.tail,
            generation: stream.generation,
        }
    }

    fn session(&mut self, key: SessionKey) -> &mut Session {
        let session = self.sessions.entry(key).or_default();
        session.forget(self.now);
        session
    }

    fn notify(&mut self, node: Option<NodeId>, message: NodeMessage) {
        self.notified.extend(node.map(|node| (node, message)));
    }

    pub(crate) fn perform(&mut self, op: &Op) -> Outcome {
        let (now, bounds) = (self.now, self.bounds.clone());
        match op {
            Op::Begin(key, principal, known, body) => {
                let session = self.session(*key);
                Outcome::Begin(if session.refuses(*principal) {
                    Begin::Unknown
                } else if let Some(record) = &mut session.record {
                    let until = now + bounds.idle.min(LIFE);
                    // The life is written at most once per interval.
                    if until.saturating_sub(record.until) >= MINUTE {
                        record.until = until;
                    }
                    Begin::Alive {
                        version: Version(record.version),
                        body: (*known != Some(record.version)).then(|| record.body.clone()),
                    }
                } else {
                    session.record = Some(Record {
                        principal: *principal,
                        version: 0,
                        body: body.clone(),
                        until: now + bounds.idle.min(LIFE),
                    });
                    Begin::Rebuilt {
                        version: Version(0),
                    }
                })
            }
            Op::Update(key, principal, expect, body) => {
                let session = self.session(*key);
                let refused = session.refuses(*principal);
                Outcome::Update(match &mut session.record {
                    Some(record) if !refused => {
                        if record.version == *expect {
                            record.version += 1;
                            record.body = body.clone();
                            Update::Done(Version(record.version))
                        } else {
                            Update::Conflict {
                                version: Version(record.version),
                                body: record.body.clone(),
                            }
                        }
                    }
                    _ => Update::Unknown,
                })
            }
            Op::End(key, principal) => {
                let session = self.session(*key);
                if session.refuses(*principal) {
                    return Outcome::Nothing;
                }
                let mut nodes: Vec<NodeId> = session
                    .streams
                    .values()
                    .flat_map(|stream| [stream.owner, stream.attached])
                    .chain(session.running.values().map(|entry| entry.node))
                    .flatten()
                    .collect();
                nodes.sort();
                nodes.dedup();
                *session = Session {
                    ended: Some(now + LIFE),
                    ..Session::default()
                };
                for node in nodes {
                    self.notify(Some(node), NodeMessage::Ended { session: *key });
                }
                Outcome::Nothing
            }
            Op::Append(key, append) => Outcome::Append(self.append(*key, append)),
            Op::Attach(key, principal, cursor, node) => {
                Outcome::Attach(self.attach(*key, *principal, *cursor, *node))
            }
            Op::Read(wanted) => {
                Outcome::Read(wanted.iter().map(|wanted| self.read(wanted)).collect())
            }
            Op::TakeOver(take_over) => Outcome::TakeOver(self.take_over(take_over)),
            Op::OwnedBy(session, node) => {
                let partition = session.partition();
                let mut owned = Vec::new();
                for key in self.sessions.keys().copied().collect::<Vec<_>>() {
                    for (nonce, stream) in &self.session(key).streams {
                        if key.partition() == partition
                            && stream.owner == *node
                            && stream.state == StreamState::Open
                        {
                            owned.push(StreamKey {
                                session: key,
                                nonce: *nonce,
                            });
                        }
                    }
                }
                Outcome::OwnedBy(owned)
            }
            Op::Register(key, rpc, node, stream) => {
                let session = self.session(*key);
                let requests = |session: &Session| {
                    let all = session.running.values();
                    all.filter(|entry| entry.node.is_some()).count()
                };
                Outcome::Register(match session.running.get(rpc) {
                    _ if session.ended.is_some() => Registered::Ended,
                    Some(entry) if entry.cancelled => Registered::Cancelled,
                    None if requests(session) >= bounds.running => Registered::Full,
                    _ => {
                        session.running.insert(
                            rpc.clone(),
                            Entry {
                                node: Some(*node),
                                stream: *stream,
                                cancelled: false,
                                until: now + MINUTE,
                            },
                        );
                        Registered::Done
                    }
                })
            }
            Op::Unregister(key, rpc) => {
                self.session(*key).running.remove(rpc);
                Outcome::Nothing
            }
            Op::Cancel(key, principal, rpc) => Outcome::Routed(self.cancel(*key, *principal, rpc)),
            Op::Answer(key, principal, question, payload) => {
                Outcome::Routed(self.answer(*key, *principal, question, payload))
            }
            Op::TakeAnswer(key, question) => Outcome::Answer(
                self.session(*key)
                    .questions
                    .get(question)
                    .and_then(|(_, answer)| answer.clone()),
            ),
            Op::TakenTokens(wanted) => {
                Outcome::TakenTokens(wanted.iter().map(|wanted| self.lease(wanted)).collect())
            }
            Op::Pass(time) => {
                self.now += *time;
                Outcome::Nothing
            }
        }
    }

    fn append(&mut self, key: StreamKey, append: &Append) -> Appended {
        let (now, bounds) = (self.now, self.bounds.clone());
        let session = self.session(key.session);
        if session.ended.is_some() {
            return Appended::Closed {
                state: StreamState::Cancelled,
                tail: 0,
            };
        }
        let made = append
            .create
            .as_ref()
            .map(|create| Stream::new(create, append, now, &bounds));
        let stream = match (session.streams.entry(key.nonce), made) {
            (Slot::Occupied(slot), _) => slot.into_mut(),
            (Slot::Vacant(slot), Some(made)) => slot.insert(made),
            (Slot::Vacant(_), None) => return Appended::Gone,
        };
        // The first epoch has no nonce that could differ. A writer that sends one is still another
        // writer.
        if stream.owner != Some(append.owner) || stream.epoch() != append.epoch {
            return Appended::Fenced;
        }
        if append.expect != stream.tail {
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
            let event_there = Event {
                seq: stream.tail,
                class: event.class,
                payload: event.payload.clone(),
            };
            stream.history.push((event_there, true));
            if let Some(question) = &event.question {
                let asked = session.questions.entry(question.clone());
                asked.or_insert((key.nonce, None));
            }
        }
        // STREAM-10: down to three quarters, oldest notifications first, never the newest event.
        let full = |(count, bytes): (usize, usize)| count > bounds.events || bytes > bounds.bytes;
        if full(stream.size()) {
            for n in 0..stream.history.len() {
                let (count, bytes) = stream.size();
                let enough = count * 4 <= bounds.events * 3 && bytes * 4 <= bounds.bytes * 3;
                let (event, there) = &mut stream.history[n];
                if *there
                    && !enough
                    && event.class == Class::Notification
                    && event.seq < stream.tail
                {
                    *there = false;
                    stream.dropped = stream.dropped.max(event.seq);
                }
            }
        }
        let overflow = full(stream.size());
        if let Some(state) = append.close {
            stream.state = state;
            stream.until = now + bounds.closed_for;
            session.running.remove(&append.rpc);
            session
                .questions
                .retain(|_, (nonce, _)| *nonce != key.nonce);
        }
        let stream = &session.streams[&key.nonce];
        let (attached, generation, tail) = (stream.attached, stream.generation, stream.tail);
        let inline = match append.events.as_slice() {
            [only] if only.payload.len() <= INLINE => {
                stream.history.last().map(|(event, _)| event.clone())
            }
            _ => None,
        };
        let message = NodeMessage::Appended {
            stream: key,
            generation,
            epoch: append.epoch,
            tail,
            state: stream.state,
            event: inline,
        };
        self.notify(attached.filter(|node| *node != append.owner), message);
        Appended::Done {
            tail,
            attached,
            generation,
            overflow,
        }
    }

    fn attach(
        &mut self,
        key: StreamKey,
        principal: Principal,
        cursor: Cursor,
        node: NodeId,
    ) -> Attached {
        let (now, bounds) = (self.now, self.bounds.clone());
        let session = self.session(key.session);
        if session.refuses(principal) {
            return Attached::Unknown;
        }
        let Some(stream) = session.streams.get_mut(&key.nonce) else {
            return Attached::Gone;
        };
        let cursor = Cursor {
            seq: cursor.seq.min(1 << 48),
            ..cursor
        };
        let (position, split) = stream.place(cursor);
        let mut superseded = (None, stream.generation);
        if stream.state == StreamState::Open {
            superseded.0 = stream.attached.filter(|former| *former != node);
            stream.attached = Some(node);
            stream.generation += 1;
        }
        let view = stream.view(Some(position), &bounds, now);
        let about = stream.about.clone();
        let message = NodeMessage::Superseded {
            stream: key,
            generation: superseded.1,
        };
        self.notify(superseded.0, message);
        Attached::Stream {
            view,
            position,
            split,
            about,
        }
    }

    fn read(&mut self, wanted: &ReadWanted) -> Read {
        let (now, bounds) = (self.now, self.bounds.clone());
        let session = self.session(wanted.stream.session);
        let Some(stream) = session.streams.get(&wanted.stream.nonce) else {
            return Read::Gone;
        };
        let holder = stream.generation == wanted.generation;
        let same = (stream.owner, stream.epoch()) == wanted.seen;
        if holder && same && stream.tail == wanted.position && stream.state == StreamState::Open {
            return Read::Unchanged;
        }
        let from = holder.then_some(wanted.position);
        Read::View(stream.view(from, &bounds, now), stream.attached)
    }

    fn take_over(&mut self, take_over: &TakeOver) -> TakenOver {
        let (now, bounds) = (self.now, self.bounds.clone());
        let session = self.session(take_over.stream.session);
        let Some(stream) = session
            .streams
            .get_mut(&take_over.stream.nonce)
            .filter(|stream| stream.state == StreamState::Open)
        else {
            return TakenOver::Over;
        };
        let seen = take_over.shown.epoch.map_or(0, |epoch| epoch.term);
        let seq = take_over.shown.seq.min(1 << 48);
        let running = stream.epoch();
        let mine = stream.owner == take_over.to
            && seq <= stream.tail
            && (take_over.to.is_none()
                || (running.term > 1 && running.term > seen && running.nonce == take_over.nonce));
        let mut message = None;
        if !mine {
            if stream.owner != take_over.from && now <= stream.deadline + bounds.overdue {
                return TakenOver::Lost;
            }
            if seq > stream.tail {
                (stream.tail, stream.dropped) = (seq, seq);
            }
            if take_over.to.is_some() {
                let term = running.term.max(seen) + 1;
                let epoch = Epoch {
                    term,
                    nonce: take_over.nonce,
                };
                stream.epochs.push((stream.tail, epoch));
            }
            stream.owner = take_over.to;
            message = stream.attached.filter(|node| Some(*node) != take_over.to);
        }
        let taken_over = TakenOver::Done {
            tail: stream.tail,
            epoch: stream.epoch(),
            about: stream.about.clone(),
            deadline_in: coarse(stream.deadline.saturating_sub(now)),
            late: stream
                .history
                .iter()
                .any(|(event, _)| event.class == Class::Final),
        };
        let owner = NodeMessage::Owner {
            stream: take_over.stream,
            owner: take_over.to,
        };
        self.notify(message, owner);
        taken_over
    }

    fn cancel(&mut self, key: SessionKey, principal: Principal, rpc: &str) -> Routed {
        let (now, bounds) = (self.now, self.bounds.clone());
        let session = self.session(key);
        if session.refuses(principal) {
            return Routed::Unknown;
        }
        if let Some(entry) = session.running.get_mut(rpc)
            && let Some(node) = entry.node
        {
            entry.cancelled = true;
            let stream = entry.stream.and_then(|nonce| session.streams.get(&nonce));
            let owner = stream.map_or(Some(node), |stream| stream.owner);
            let message = NodeMessage::Cancel {
                session: key,
                rpc: rpc.to_owned(),
            };
            self.notify(owner, message);
            return owner.map_or(Routed::Nobody, |_| Routed::Notified);
        }
        let others = session
            .running
            .iter()
            .filter(|(name, entry)| entry.node.is_none() && name.as_str() != rpc)
            .count();
        if others < bounds.tombstones {
            session.running.insert(
                rpc.to_owned(),
                Entry {
                    node: None,
                    stream: None,
                    cancelled: true,
                    until: now + bounds.tombstone,
                },
            );
        }
        Routed::Nobody
    }

    fn answer(
        &mut self,
        key: SessionKey,
        principal: Principal,
        question: &str,
        payload: &Bytes,
    ) -> Routed {
        let session = self.session(key);
        if session.refuses(principal) {
            return Routed::Unknown;
        }
        let Some((nonce, answer)) = session.questions.get_mut(question) else {
            return Routed::Unasked;
        };
        if answer.get_or_insert_with(|| payload.clone()) != payload {
            return Routed::Nobody;
        }
        let stream = StreamKey {
            session: key,
            nonce: *nonce,
        };
        let owner = session.streams[nonce].owner;
        let message = NodeMessage::Answered {
            stream,
            question: question.to_owned(),
            payload: (payload.len() <= INLINE).then(|| payload.clone()),
        };
        self.notify(owner, message);
        Routed::Notified
    }

    /// In whole tokens: no token is refilled during a walk, because its clock moves less than one
    /// token's time.
    fn lease(&mut self, wanted: &TakeTokens) -> TakenTokens {
        let spent = self.buckets.entry(wanted.bucket.clone()).or_default();
        *spent = (*spent + wanted.debt).saturating_sub(wanted.back);
        let granted = wanted.want.min(wanted.burst.saturating_sub(*spent));
        *spent += granted;
        let missing = if granted == 0 {
            (*spent + 1).saturating_sub(wanted.burst)
        } else {
            0
        };
        TakenTokens {
            granted,
            wait: Duration::from_secs((missing * 1_000_000).div_ceil(10_000)),
        }
    }
}
