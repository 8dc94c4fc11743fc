//! A client's connection to a stream: its position, its queue, and whether it still holds the
//! stream (STREAM-8). No I/O.

pub(super) mod deliveries;

use std::{
    collections::VecDeque,
    fmt,
    sync::{Mutex, OnceLock},
    task::Waker,
};

use bytes::Bytes;
use portolan_model::{Timestamp, id::TenantId};
use portolan_traces::{Context, Span};
use tokio::time::Instant;

use super::{
    position::{Judgement, Position},
    stream_metrics::Since,
};
use crate::{
    fork, lock,
    store::{Class, Cursor, Epoch, Event, NodeId, Principal, StreamKey, StreamState, View},
};

/// Item that a client's connection receives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivery {
    /// An event of the log, with the parts of its id.
    Event {
        /// Number of the event.
        seq: u64,
        /// Epoch in which the event was written.
        epoch: Epoch,
        /// Kind of the event.
        class: Class,
        /// Bytes that the client receives.
        payload: Bytes,
    },
    /// A notification without an id that is in no log, because the store is down and the
    /// `UnackedBuffer` is full.
    Unlogged {
        /// Bytes that the client receives.
        payload: Bytes,
    },
    /// Events between the two numbers are missing; both numbers are exclusive. Sent without an id.
    Gap {
        /// The last event that the client received.
        after: u64,
        /// The next event that it receives.
        before: u64,
    },
}

impl Delivery {
    fn size(&self) -> usize {
        match self {
            Self::Event { payload, .. } | Self::Unlogged { payload } => payload.len(),
            Self::Gap { .. } => 64,
        }
    }
}

/// Phase of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Not attached yet, or to be attached again.
    Holding,
    /// Attached: the store feeds this connection.
    Attached,
    /// Superseded by a newer connection: open, but without further events.
    Demoted,
    /// Ended, as soon as its queue is empty.
    Ended,
}

/// Next step for a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// No step.
    Rest,
    /// Read the log.
    Read,
    /// Attach to the stream again.
    Attach,
    /// The store lost a takeover: take over from the owner that the store names.
    TakeOver,
    /// The same, but the stream has ended: deliver only its final response.
    LastWord,
}

/// An event from a local writer or a message.
#[derive(Debug)]
pub(super) struct OfferedEvent {
    pub(super) seq: u64,
    pub(super) class: Class,
    pub(super) payload: Bytes,
}

/// A client's connection.
pub(crate) struct Connection {
    /// Tenant of the stream. Payloads are sealed with its key.
    pub(super) tenant: TenantId,
    pub(super) stream: StreamKey,
    pub(super) principal: Principal,
    /// Trace context of the call that writes the stream, if it is recorded.
    pub(super) trace: OnceLock<Context>,
    state: Mutex<Inside>,
}

/// Reason why a client receives nothing more.
pub(super) enum Over {
    /// The client has received the end.
    Finished,
    /// The next event cannot be opened.
    Unreadable,
}

struct Inside {
    phase: Phase,
    since: Instant,
    generation: u64,
    position: Position,
    /// The epoch of the latest reply.
    view: Option<Epoch>,
    owner: Option<NodeId>,
    has_view: bool,
    deadline: Option<Instant>,
    out: VecDeque<(Option<Since>, Delivery)>,
    bytes: usize,
    bounds: (usize, usize),
    /// Listed for a read.
    is_queued: bool,
    /// A read is in flight, or failed.
    is_unread: bool,
    /// Read for anti-entropy only. Events found this way had no message.
    is_looked_at: bool,
    /// The message that caused the read.
    notified: Option<Since>,
    /// The client received a gap notice.
    has_gap: bool,
    /// A message came while the connection was not attached.
    has_missed: bool,
    /// The log has more events than the queue could take.
    is_starving: bool,
    drained: Instant,
    gone_since: Option<Instant>,
    /// An event of the log could not be opened.
    is_unreadable: bool,
    waker: Option<Waker>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("stream", &self.stream)
            .finish_non_exhaustive()
    }
}

impl Inside {
    fn has_room(&self, size: usize) -> bool {
        self.out.is_empty()
            || (self.out.len() < self.bounds.0 && self.bytes + size <= self.bounds.1)
    }

    fn put(&mut self, since: Option<Since>, delivery: Delivery) {
        if self.out.is_empty() {
            self.drained = Instant::now();
        }
        self.bytes += delivery.size();
        self.out.push_back((since, delivery));
    }

    fn put_gap(&mut self, after: u64, before: u64) {
        self.has_gap = true;
        self.put(None, Delivery::Gap { after, before });
    }

    fn put_event(
        &mut self,
        since: Option<Since>,
        (seq, epoch): (u64, Epoch),
        class: Class,
        payload: Bytes,
    ) {
        self.position.wrote(seq, epoch);
        self.put(
            since,
            Delivery::Event {
                seq,
                epoch,
                class,
                payload,
            },
        );
    }

    fn enter(&mut self, phase: Phase) {
        if self.phase != Phase::Ended && self.phase != phase {
            self.phase = phase;
            self.since = Instant::now();
        }
    }

    fn note(&mut self, view: &View) {
        let now = Instant::now();
        self.view = Some(view.epoch);
        self.owner = view.owner;
        self.has_view = true;
        self.gone_since = None;
        self.deadline = if view.deadline_in.is_zero() {
            self.deadline.or(Some(now))
        } else {
            Some(now + view.deadline_in)
        };
    }
}

/// State of a connection, as the node needs it to supervise the stream.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConnectionStatus {
    pub(super) phase: Phase,
    pub(super) since: Instant,
    pub(super) generation: u64,
    pub(super) shown: Cursor,
    /// `None` until the stream was read.
    pub(super) owner: Option<Option<NodeId>>,
    pub(super) deadline: Option<Instant>,
    pub(super) gone_since: Option<Instant>,
    /// A read is in flight, or failed.
    pub(super) is_unread: bool,
    /// Time since which the client has read nothing although its queue is not empty.
    pub(super) stuck_since: Option<Instant>,
}

impl Connection {
    pub(super) fn new(
        bounds: (usize, usize),
        tenant: TenantId,
        stream: StreamKey,
        principal: Principal,
        position: Position,
    ) -> Self {
        let now = Instant::now();
        Self {
            tenant,
            stream,
            principal,
            trace: OnceLock::new(),
            state: Mutex::new(Inside {
                phase: Phase::Holding,
                since: now,
                generation: 0,
                position,
                view: None,
                owner: None,
                has_view: false,
                deadline: None,
                out: VecDeque::new(),
                bytes: 0,
                bounds,
                is_queued: false,
                is_unread: false,
                is_looked_at: false,
                notified: None,
                has_gap: false,
                has_missed: false,
                is_starving: false,
                drained: now,
                gone_since: None,
                is_unreadable: false,
                waker: None,
            }),
        }
    }

    /// Attaches the connection of the request that opens the stream, without a store operation.
    pub(super) fn opens(&self, owner: NodeId, deadline: Instant) {
        let mut inside = lock(&self.state);
        inside.phase = Phase::Attached;
        inside.generation = 1;
        inside.view = Some(Epoch::FIRST);
        inside.owner = Some(owner);
        inside.has_view = true;
        inside.deadline = Some(deadline);
    }

    pub(super) fn standing(&self) -> ConnectionStatus {
        let inside = lock(&self.state);
        ConnectionStatus {
            phase: inside.phase,
            since: inside.since,
            generation: inside.generation,
            shown: inside.position.cursor,
            owner: inside.has_view.then_some(inside.owner),
            deadline: inside.deadline,
            gone_since: inside.gone_since,
            is_unread: inside.is_unread,
            stuck_since: (!inside.out.is_empty()).then_some(inside.drained),
        }
    }

    /// Lists the connection for a read. Returns true once until [`Connection::taken`]. `is_look`:
    /// for anti-entropy, without a message.
    pub(super) fn queue(&self, is_look: bool) -> bool {
        let mut inside = lock(&self.state);
        if inside.phase == Phase::Holding {
            inside.has_missed = true;
        }
        let is_new = inside.phase == Phase::Attached && !inside.is_starving && !inside.is_queued;
        inside.is_looked_at = is_look && (is_new || inside.is_looked_at);
        inside.is_queued |= is_new;
        is_new
    }

    /// Removes the connection from the list. Returns the arguments of the `read`: generation,
    /// position, owner and epoch as last seen.
    pub(super) fn taken(&self) -> Option<(u64, u64, Option<NodeId>, Epoch)> {
        let mut inside = lock(&self.state);
        inside.is_queued = false;
        inside.is_unread = inside.phase == Phase::Attached;
        inside.is_unread.then(|| {
            (
                inside.generation,
                inside.position.at.seq,
                inside.owner,
                inside.view.unwrap_or(Epoch { term: 0, nonce: 0 }),
            )
        })
    }

    /// Records that the store replied to the `read` of this connection.
    pub(super) fn answered(&self) {
        lock(&self.state).is_unread = false;
    }

    fn wake(inside: &mut Inside) {
        if let Some(waker) = inside.waker.take() {
            waker.wake();
        }
    }

    /// Offers events from a message or from the writer on this node. They are taken only if they
    /// are the next ones of the same generation and epoch.
    pub(super) fn offer(
        &self,
        generation: u64,
        epoch: Epoch,
        tail: u64,
        state: StreamState,
        since: Since,
        events: impl IntoIterator<Item = OfferedEvent>,
    ) -> Next {
        let mut inside = lock(&self.state);
        match inside.phase {
            Phase::Holding => {
                inside.has_missed = true;
                return Next::Rest;
            }
            Phase::Demoted | Phase::Ended => return Next::Rest,
            Phase::Attached => {}
        }
        if generation > inside.generation {
            return Next::Rest;
        }
        if generation < inside.generation || inside.view != Some(epoch) {
            // The message is late, or the store lost our attachment. The log decides.
            inside.notified.get_or_insert(since);
            return Next::Read;
        }
        for event in events {
            if inside.is_starving
                || !inside.position.is_next(event.seq)
                || !inside.has_room(event.payload.len())
            {
                continue;
            }
            inside.put_event(Some(since), (event.seq, epoch), event.class, event.payload);
        }
        let has_all = inside.position.at.seq >= tail;
        if has_all && state != StreamState::Open {
            inside.enter(Phase::Ended);
        }
        Self::wake(&mut inside);
        if has_all {
            return Next::Rest;
        }
        inside.notified.get_or_insert(since);
        Next::Read
    }

    /// Offers a notification that is in no log.
    pub(super) fn offer_unlogged(&self, payload: Bytes) -> bool {
        let mut inside = lock(&self.state);
        let takes = inside.phase == Phase::Attached && inside.has_room(payload.len());
        if takes {
            inside.put(None, Delivery::Unlogged { payload });
            Self::wake(&mut inside);
        }
        takes
    }

    /// Applies a reply of `attach`.
    pub(super) fn attached(
        &self,
        position: u64,
        split: bool,
        view: View,
        open: impl Fn(&Event) -> Option<Bytes>,
    ) -> Next {
        let mut inside = lock(&self.state);
        if matches!(inside.phase, Phase::Ended) {
            return Next::Rest;
        }
        inside.generation = view.generation;
        inside.enter(Phase::Attached);
        let shown = inside.position.cursor;
        inside.position.attached(position, &view);
        if split {
            let before = view.events.first().map_or(position + 1, |event| event.seq);
            inside.put_gap(shown.seq, before);
        }
        inside.is_looked_at = false;
        let has_missed = std::mem::take(&mut inside.has_missed);
        let next = Self::receive(&mut inside, view, open);
        if has_missed && next == Next::Rest {
            return Next::Read;
        }
        next
    }

    /// Applies a reply to a `read` of this generation.
    pub(super) fn read(
        &self,
        generation: u64,
        view: View,
        open: impl Fn(&Event) -> Option<Bytes>,
    ) -> Next {
        let mut inside = lock(&self.state);
        if inside.phase != Phase::Attached || inside.generation != generation {
            return Next::Rest;
        }
        Self::receive(&mut inside, view, open)
    }

    fn receive(inside: &mut Inside, view: View, open: impl Fn(&Event) -> Option<Bytes>) -> Next {
        let generation = inside.generation;
        let mut after = inside.position.at.seq;
        match inside.position.judge(generation, &view) {
            Judgement::Superseded => {
                inside.enter(Phase::Demoted);
                Self::wake(inside);
                return Next::Rest;
            }
            Judgement::Forgotten => {
                inside.enter(Phase::Holding);
                return Next::Attach;
            }
            Judgement::LostTakeover => {
                inside.note(&view);
                return if view.state == StreamState::Open {
                    Next::TakeOver
                } else {
                    Next::LastWord
                };
            }
            Judgement::Moved { to } => {
                inside.note(&view);
                after = inside.position.cursor.seq;
                inside.put_gap(after, to + 1);
                Self::wake(inside);
                return Next::Read;
            }
            Judgement::Dropped => {
                let before = view
                    .events
                    .iter()
                    .find(|event| event.seq > after)
                    .map_or(view.dropped + 1, |event| event.seq);
                inside.put_gap(after, before);
            }
            Judgement::Follows => {}
        }
        inside.note(&view);
        let before = inside.out.len();
        let is_complete = Self::take(inside, &view, open);
        if inside.is_looked_at && inside.out.len() > before {
            metrics::counter!("mcp_antientropy_repairs_total")
                .increment((inside.out.len() - before) as u64);
        }
        Self::wake(inside);
        if !is_complete {
            return Next::Rest;
        }
        if view.more {
            return Next::Read;
        }
        inside.notified = None;
        inside.position.reached(view.tail, &view);
        if view.state != StreamState::Open {
            inside.enter(Phase::Ended);
            Self::wake(inside);
        }
        Next::Rest
    }

    /// Queues the next events of a reply. Returns false if the queue is full or an event cannot be
    /// opened.
    fn take(inside: &mut Inside, view: &View, open: impl Fn(&Event) -> Option<Bytes>) -> bool {
        for event in &view.events {
            let Event {
                seq,
                class,
                payload,
            } = event;
            if *seq <= inside.position.at.seq {
                continue;
            }
            if !inside.has_room(payload.len()) {
                inside.is_starving = true;
                return false;
            }
            let Some(payload) = open(event) else {
                metrics::counter!("mcp_stream_seal_failures_total").increment(1);
                tracing::error!("an event of a log could not be opened; its stream is ended");
                inside.enter(Phase::Ended);
                inside.is_unreadable = true;
                return false;
            };
            let epoch = fork::attempt_of(*seq, &view.epochs);
            inside.put_event(inside.notified, (*seq, epoch), *class, payload);
        }
        true
    }

    /// Records that the store does not know the stream.
    pub(super) fn is_gone(&self) {
        let mut inside = lock(&self.state);
        inside.gone_since.get_or_insert_with(Instant::now);
    }

    /// Records that the store does not reply, so it is unknown whether the stream exists.
    pub(super) fn is_unanswered(&self) {
        lock(&self.state).gone_since = None;
    }

    /// Queues the end of a finished stream: a gap notice and the final response.
    pub(super) fn last_word(&self, word: Option<(u64, Epoch, Bytes)>) {
        let mut inside = lock(&self.state);
        if inside.phase == Phase::Ended {
            return;
        }
        if let Some((seq, epoch, payload)) = word {
            let after = inside.position.cursor.seq;
            inside.put_gap(after, seq);
            inside.put_event(None, (seq, epoch), Class::Final, payload);
        }
        inside.enter(Phase::Ended);
        Self::wake(&mut inside);
    }

    /// Continues the trace of the call on this node.
    pub(super) fn resumed(
        &self,
        node: NodeId,
        trace: &Context,
        began: Timestamp,
        outcome: &'static str,
    ) {
        let Some(span) = Span::of_another_node(trace, "resume") else {
            return;
        };
        span.since(began);
        let standing = self.standing();
        if let Some(owner) = standing.owner.flatten() {
            span.set("portolan.node.owner", owner.to_string());
        }
        span.set("portolan.node.attached", node.to_string());
        span.set("portolan.nonce", self.stream.nonce.to_string());
        span.set("portolan.seq", standing.shown.seq);
        span.set("portolan.outcome", outcome);
    }

    /// Returns why the connection has ended, if it has and its queue is empty.
    pub(super) fn over(&self) -> Option<Over> {
        let inside = lock(&self.state);
        let is_over = inside.phase == Phase::Ended && inside.out.is_empty();
        is_over.then_some(if inside.is_unreadable {
            Over::Unreadable
        } else {
            Over::Finished
        })
    }

    /// Whether the client received a gap notice.
    pub(super) fn has_gap(&self) -> bool {
        lock(&self.state).has_gap
    }

    /// Bytes in the queue to the client.
    pub(super) fn held(&self) -> usize {
        lock(&self.state).bytes
    }

    /// Records the new owner of the stream.
    pub(super) fn owned_by(&self, owner: Option<NodeId>) {
        lock(&self.state).owner = owner;
    }

    /// Records a message for a generation that the connection did not have a moment ago. The
    /// connection may not have that generation yet, or may have got it meanwhile.
    pub(super) fn missed(&self, generation: u64) -> Next {
        let mut inside = lock(&self.state);
        match inside.phase {
            Phase::Holding => {
                inside.has_missed = true;
                Next::Rest
            }
            Phase::Attached if inside.generation == generation => Next::Read,
            Phase::Attached | Phase::Demoted | Phase::Ended => Next::Rest,
        }
    }

    /// Marks the connection to be attached again.
    pub(super) fn hold(&self) {
        lock(&self.state).enter(Phase::Holding);
    }

    /// Marks the connection as superseded by a newer one.
    pub(super) fn demote(&self, below: u64) {
        let mut inside = lock(&self.state);
        if inside.phase == Phase::Attached && inside.generation < below {
            inside.enter(Phase::Demoted);
            Self::wake(&mut inside);
        }
    }

    /// Ends the connection as soon as its queue is empty.
    pub(super) fn end(&self) {
        let mut inside = lock(&self.state);
        inside.enter(Phase::Ended);
        Self::wake(&mut inside);
    }
}
