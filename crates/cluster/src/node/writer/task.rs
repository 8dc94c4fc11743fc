//! Task of a writer: numbers events, commits them, then sends them
//! (STREAM-7, outage mode STREAM-17.1).

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use bytes::Bytes;
use portolan_traces::Span;
use tokio::time::Instant;

use super::state::{Ending, WriterState};
use crate::{
    lock,
    node::{
        envelope::{self, Envelope},
        inner::Inner,
        payload::{Lost, PayloadPlace},
        reader::{Connection, OfferedEvent, Phase},
        settings::{APPEND_WITHIN, LATE, UNACKED_KEEP},
        stream_metrics::Since,
        takeover::claims::Claim,
        unacked_buffer::{self, AppendVerdict, UnackedBuffer},
    },
    store::{Appended, Class, Cursor, Epoch, StoreError, StreamState},
};

/// Pause between two attempts while the store is down.
const RETRY: Duration = Duration::from_millis(250);

struct Task {
    inner: Arc<Inner>,
    shared: Arc<WriterState>,
    unacked: UnackedBuffer,
    rpc: String,
    about: Bytes,
    envelope: Bytes,
    /// Span of the call, until the end is in the log.
    trace: Option<Arc<Span>>,
    deadline: Instant,
    is_overdue: bool,
    /// Set in outage mode: events go to the local connection before the log has them.
    next_try: Option<Instant>,
    must_audit: bool,
    /// Number of audit notifications that were handled.
    audits: u64,
    closed_at: Option<Instant>,
}

/// Starts the task.
pub(super) fn start(
    inner: &Arc<Inner>,
    shared: &Arc<WriterState>,
    epoch: Epoch,
    tail: u64,
    envelope: Bytes,
    trace: Option<Arc<Span>>,
    deadline: Instant,
) {
    let Envelope { rpc, about, .. } = envelope::open(&envelope);
    inner
        .writers
        .insert(shared.stream.session, Arc::clone(shared));
    let task = Task {
        unacked: UnackedBuffer::new(inner.id, epoch, tail, rpc.clone(), inner.settings.unacked),
        rpc,
        about,
        envelope,
        trace,
        deadline,
        is_overdue: false,
        next_try: None,
        must_audit: false,
        audits: inner.watcher.audits.count(),
        closed_at: None,
        shared: Arc::clone(shared),
        inner: Arc::clone(inner),
    };
    inner.spawn(task.run());
}

/// Whether the task continues.
#[derive(PartialEq, Eq)]
enum Go {
    On,
    Stop,
}

impl Task {
    async fn run(mut self) {
        while self.step().await == Go::On {}
        self.answered();
        self.shared.abandon();
        self.shared.done.cancel();
        self.inner
            .stream_metrics
            .closed(&self.shared, self.closed_at);
        self.inner
            .writers
            .remove(self.shared.stream.session, |other| {
                Arc::ptr_eq(other, &self.shared)
            });
    }

    async fn step(&mut self) -> Go {
        {
            let mut queue = lock(&self.shared.queue);
            if self.inner.stop.is_cancelled() || queue.is_abandoned {
                return Go::Stop;
            }
            self.must_audit |= std::mem::take(&mut queue.must_audit);
        }
        self.take();
        let now = Instant::now();
        let is_waiting = self.next_try.is_some_and(|at| now < at);
        if self.next_try.is_some() {
            self.feed_unlogged();
        }
        let has_news = self.unacked.has_news() || self.must_audit;
        if has_news && !is_waiting {
            return self.append().await;
        }
        if self.unacked.is_closed() {
            self.shared.done.cancel();
        }
        let wake_at = if has_news {
            self.next_try.unwrap_or(now)
        } else if let Some(closed_at) = self.closed_at {
            closed_at + UNACKED_KEEP
        } else {
            self.deadline + LATE
        };
        let shared = Arc::clone(&self.shared);
        let inner = Arc::clone(&self.inner);
        tokio::select! {
            biased;
            () = inner.stop.cancelled() => return Go::Stop,
            () = inner.watcher.audits.heard(&mut self.audits) => self.must_audit = true,
            () = shared.work.notified() => {}
            () = tokio::time::sleep_until(wake_at) => {
                if !has_news && self.closed_at.is_some() {
                    return Go::Stop;
                }
            }
        }
        if !self.is_overdue && self.closed_at.is_none() && Instant::now() >= self.deadline + LATE {
            self.is_overdue = true;
            self.shared.cut(Lost::Deadline);
        }
        Go::On
    }

    /// Moves events from the queue to the buffer, as far as they may be numbered now.
    fn take(&mut self) {
        let shared = Arc::clone(&self.shared);
        let mut has_taken = false;
        while !self.unacked.is_closing() && (self.next_try.is_some() || !self.unacked.has_batch()) {
            let is_full = self.unacked.is_full();
            let is_shedding = is_full || self.inner.guarded_store.slowness.sheds();
            let mut queue = lock(&shared.queue);
            let Some(item) = queue.items.front() else {
                if let Some(ending) = queue.ending.take() {
                    drop(queue);
                    self.close(ending);
                }
                break;
            };
            let is_unlogged = is_shedding
                && item.class == Class::Notification
                && self.send_unlogged(&item.payload);
            // Without an up-to-date local connection, a full buffer waits, and a slow store still
            // logs the event.
            if is_full && item.class == Class::Notification {
                if !is_unlogged {
                    break;
                }
                metrics::counter!("mcp_ring_overflow_total").increment(1);
            }
            let Some(item) = queue.items.pop_front() else {
                break;
            };
            queue.bytes -= item.payload.len();
            drop(queue);
            has_taken = true;
            if !is_unlogged {
                self.number(item.class, item.question, item.payload);
            }
        }
        if has_taken {
            self.shared
                .held
                .store(self.unacked.bytes(), Ordering::Relaxed);
            shared.room.notify_waiters();
        }
    }

    fn number(&mut self, class: Class, question: Option<String>, payload: Bytes) {
        let WriterState { stream, tenant, .. } = *self.shared;
        let place = PayloadPlace::event(tenant, stream, self.unacked.last() + 1, class);
        let sealed = self.inner.payloads.seal(&place, payload.clone());
        self.unacked
            .add(unacked_buffer::event(class, question, sealed), payload);
    }

    fn close(&mut self, ending: Ending) {
        self.inner
            .running
            .closes(self.shared.stream.session, &self.rpc);
        let payload = match ending {
            Ending::Cancelled => {
                self.unacked.close(StreamState::Cancelled);
                return;
            }
            Ending::Logged => {
                self.unacked.close(StreamState::Closed);
                return;
            }
            Ending::Final(payload) => payload,
            Ending::Lost(lost) => {
                metrics::counter!("mcp_calls_interrupted_total", "why" => lost.name(), "executed" => lost.executed())
                    .increment(1);
                self.inner.payloads.lost(&self.about, lost)
            }
        };
        self.number(Class::Final, None, payload);
        self.unacked.close(StreamState::Closed);
    }

    async fn append(&mut self) -> Go {
        let began = Since::appended();
        let deadline_in = self.deadline.saturating_duration_since(began.at);
        let span = self.trace.as_ref().and_then(|call| call.part("append"));
        let sent = self.unacked.next_append(deadline_in, &self.envelope);
        let inner = Arc::clone(&self.inner);
        let append = inner
            .guarded_store
            .store
            .append(self.shared.stream, &sent.append);
        let reply = inner
            .guarded_store
            .call("append", APPEND_WITHIN, append)
            .await;
        let reply = match reply {
            Ok(reply) => reply,
            Err(error) => {
                self.unanswered(&error, span);
                return Go::On;
            }
        };
        self.answered();
        self.must_audit = false;
        let verdict = self.unacked.answered(&sent, &reply);
        let outcome = match verdict {
            AppendVerdict::Acked { healed: false } => "ok",
            // Only a reply was lost.
            AppendVerdict::Acked { healed: true } => "retry",
            AppendVerdict::Rewound if reply == Appended::Gone => "gone",
            AppendVerdict::Rewound => "repair",
            AppendVerdict::Fenced => "fenced",
            AppendVerdict::Ended => "ended",
            AppendVerdict::Broken => "broken",
        };
        metrics::counter!("mcp_append_total", "outcome" => outcome).increment(1);
        if let Some(span) = span {
            span.set("portolan.node.owner", self.inner.id.to_string());
            span.set("portolan.nonce", self.shared.stream.nonce.to_string());
            span.set("portolan.seq", self.unacked.acked());
            span.set("portolan.outcome", outcome);
        }
        match verdict {
            AppendVerdict::Acked { .. } => {
                let bytes: usize = sent
                    .append
                    .events
                    .iter()
                    .map(|event| event.payload.len())
                    .sum();
                self.shared
                    .logged
                    .fetch_add(bytes as u64, Ordering::Relaxed);
                self.committed(&reply, began);
                Go::On
            }
            AppendVerdict::Rewound => {
                self.closed_at = None;
                Go::On
            }
            AppendVerdict::Fenced | AppendVerdict::Ended => {
                self.read_locally();
                Go::Stop
            }
            AppendVerdict::Broken => {
                tracing::error!("a log lost events that its owner has no more");
                self.inner.takeovers.claim(Claim {
                    stream: self.shared.stream,
                    from: Some(self.inner.id),
                    shown: Cursor {
                        seq: self.unacked.last(),
                        epoch: Some(self.unacked.epoch()),
                    },
                    why: Lost::Stream,
                });
                Go::Stop
            }
        }
    }

    /// Enters outage mode, or stays in it.
    fn unanswered(&mut self, error: &StoreError, span: Option<Span>) {
        let outcome = match error {
            StoreError::Refused(_) => "oom",
            StoreError::Down(_) | StoreError::Corrupt(_) => "retry",
        };
        metrics::counter!("mcp_append_total", "outcome" => outcome).increment(1);
        if let Some(span) = span {
            span.failed(outcome);
        }
        if self.next_try.is_none() {
            metrics::gauge!("mcp_outage_mode_streams").increment(1.0);
        }
        self.next_try = Some(Instant::now() + RETRY);
    }

    /// Leaves outage mode.
    fn answered(&mut self) {
        if self.next_try.take().is_some() {
            metrics::gauge!("mcp_outage_mode_streams").decrement(1.0);
        }
    }

    /// Delivers events to the client after the log has them.
    fn committed(&mut self, reply: &Appended, began: Since) {
        let plain = self.unacked.take_plain();
        let state = self.unacked.state();
        if let Appended::Done {
            attached,
            generation,
            overflow,
            ..
        } = reply
        {
            if *attached == Some(self.inner.id) {
                self.deliver(*generation, state, began, plain);
            }
            if *overflow && !self.unacked.is_closing() {
                self.shared.cut(Lost::Overflow);
            }
        } else {
            self.read_locally();
        }
        if self.unacked.is_closed() && self.closed_at.is_none() {
            self.closed_at = Some(Instant::now());
            self.trace = None;
            self.shared.done.cancel();
        }
    }

    fn deliver(
        &self,
        generation: u64,
        state: StreamState,
        began: Since,
        plain: Vec<(u64, Class, Bytes)>,
    ) {
        let stream = self.shared.stream;
        for connection in self.inner.connections.of(stream.session) {
            if connection.stream != stream {
                continue;
            }
            let offers = plain.iter().map(|(seq, class, payload)| OfferedEvent {
                seq: *seq,
                class: *class,
                payload: payload.clone(),
            });
            let next = connection.offer(
                generation,
                self.unacked.epoch(),
                self.unacked.acked(),
                state,
                began,
                offers,
            );
            self.inner.follow(&connection, next);
        }
    }

    /// Marks the local connections of the stream for a read.
    fn read_locally(&self) {
        let stream = self.shared.stream;
        for connection in self.inner.connections.of(stream.session) {
            if connection.stream == stream {
                self.inner.partitions.mark(&connection);
            }
        }
    }

    /// Outage mode: sends events with their ids to the local connection before the log has them.
    /// `expect` repairs the log later.
    fn feed_unlogged(&self) {
        let Some((connection, generation)) = self.local_connection() else {
            return;
        };
        let offers = self.unacked.unacked().filter_map(|entry| {
            Some(OfferedEvent {
                seq: entry.seq,
                class: entry.event.class,
                payload: entry.plain.clone()?,
            })
        });
        let state = self.unacked.ending();
        // The connection reads later what it cannot take now.
        connection.offer(
            generation,
            self.unacked.epoch(),
            self.unacked.last(),
            state,
            Since::appended(),
            offers,
        );
    }

    /// Sends a notification without an id, because the buffer is full or the store is slow. Never
    /// before an older event.
    fn send_unlogged(&self, payload: &Bytes) -> bool {
        let Some((connection, _)) = self.local_connection() else {
            return false;
        };
        connection.standing().shown.seq == self.unacked.last()
            && connection.offer_unlogged(payload.clone())
    }

    /// The newest local connection that holds the stream.
    fn local_connection(&self) -> Option<(Arc<Connection>, u64)> {
        let stream = self.shared.stream;
        self.inner
            .connections
            .of(stream.session)
            .into_iter()
            .filter(|connection| connection.stream == stream)
            .filter_map(|connection| {
                let standing = connection.standing();
                (standing.phase == Phase::Attached).then_some((connection, standing.generation))
            })
            .max_by_key(|(_, generation)| *generation)
    }
}
