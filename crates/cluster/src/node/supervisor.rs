//! Supervision of connections: attaches them, and holds them while the store is down
//! (STREAM-8, STREAM-9).

pub(super) mod held;
pub(super) mod upkeep;

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt, stream};

use super::{
    envelope,
    inner::Inner,
    reader::{Connection, Next, Phase},
    settings::{CALL_WITHIN, HOLD},
    stream_metrics::Since,
};
use crate::{
    fork, lock,
    store::{Attached, Class, Cursor, Epoch, NodeMessage, SessionKey, StreamState},
};

/// Pause between two attempts to attach held connections.
const RETRY: Duration = Duration::from_millis(250);
/// Maximum number of `attach` operations in flight.
const AT_ONCE: usize = 64;
/// Maximum number of pages of a finished log.
const PAGES: usize = 64;

/// Result of an `attach`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attachment {
    /// The session has ended, or belongs to another principal.
    Unknown,
    /// The stream does not exist.
    Gone,
    /// The connection is attached.
    Attached,
    /// The store did not reply.
    Unanswered,
}

/// Attaches a connection. If the stream has ended on another branch, delivers only its final
/// response.
pub(super) async fn attach(inner: &Arc<Inner>, connection: &Arc<Connection>) -> Attachment {
    let cursor = connection.standing().shown;
    let attach =
        inner
            .guarded_store
            .store
            .attach(connection.stream, connection.principal, cursor, inner.id);
    let reply = inner
        .guarded_store
        .call("attach", CALL_WITHIN, attach)
        .await;
    match reply {
        Err(_) => Attachment::Unanswered,
        Ok(Attached::Unknown) => Attachment::Unknown,
        Ok(Attached::Gone) => Attachment::Gone,
        Ok(Attached::Stream {
            view,
            position,
            split,
            about,
        }) => {
            let stream = connection.stream;
            if portolan_traces::is_on()
                && let Some(trace) = envelope::open(&about).trace
            {
                let _ = connection.trace.set(trace);
            }
            let generation = view.generation;
            let next = connection.attached(position, split, view, |event| {
                inner.opened(connection, event)
            });
            // The store sends no message for connections of the same node.
            for other in inner.connections.of(stream.session) {
                if other.stream == stream && !Arc::ptr_eq(&other, connection) {
                    other.demote(generation);
                }
            }
            if next == Next::LastWord {
                return last_word(inner, connection).await;
            }
            inner.follow(connection, next);
            inner.tend(connection);
            Attachment::Attached
        }
    }
}

/// Delivers the final response of a stream whose last owner was behind the client. Positions are
/// not comparable then, and only the final response counts (STREAM-9).
async fn last_word(inner: &Arc<Inner>, connection: &Arc<Connection>) -> Attachment {
    let mut cursor = Cursor {
        seq: 0,
        epoch: None,
    };
    for _ in 0..PAGES {
        let attach = inner.guarded_store.store.attach(
            connection.stream,
            connection.principal,
            cursor,
            inner.id,
        );
        let reply = inner
            .guarded_store
            .call("attach", CALL_WITHIN, attach)
            .await;
        let view = match reply {
            Err(_) => return Attachment::Unanswered,
            Ok(Attached::Unknown) => return Attachment::Unknown,
            Ok(Attached::Gone) => return Attachment::Gone,
            Ok(Attached::Stream { view, .. }) => view,
        };
        if view.state == StreamState::Open {
            // The stream came back meanwhile.
            return Attachment::Unanswered;
        }
        let attempt_of = |seq| fork::attempt_of(seq, &view.epochs);
        let end = view
            .events
            .iter()
            .find(|event| event.class == Class::Final)
            .and_then(|event| {
                let payload = inner.opened(connection, event)?;
                Some((event.seq, attempt_of(event.seq), payload))
            });
        if end.is_some() {
            connection.last_word(end);
            return Attachment::Attached;
        }
        let Some(last) = view.events.last().filter(|_| view.more) else {
            break;
        };
        cursor = Cursor {
            seq: last.seq,
            epoch: Some::<Epoch>(attempt_of(last.seq)),
        };
    }
    connection.last_word(None);
    Attachment::Gone
}

/// Attaches held connections until the node stops.
pub(super) async fn attach_waiting(inner: Arc<Inner>) {
    loop {
        let is_empty = lock(&inner.supervisor.held).is_empty();
        tokio::select! {
            biased;
            () = inner.stop.cancelled() => return,
            () = inner.supervisor.wake.notified() => {}
            () = tokio::time::sleep(RETRY), if !is_empty => {}
        }
        let held = std::mem::take(&mut *lock(&inner.supervisor.held));
        let work = stream::iter(held)
            .for_each_concurrent(AT_ONCE, |connection| attach_again(&inner, connection));
        tokio::select! {
            biased;
            () = inner.stop.cancelled() => return,
            () = work => {}
        }
    }
}

async fn attach_again(inner: &Arc<Inner>, connection: Arc<Connection>) {
    let standing = connection.standing();
    if standing.phase == Phase::Ended {
        return;
    }
    if inner.guarded_store.is_open() {
        connection.is_unanswered();
    } else {
        match attach(inner, &connection).await {
            Attachment::Attached => return,
            Attachment::Unknown => {
                connection.end();
                return;
            }
            Attachment::Gone => {
                connection.is_gone();
                if !inner.is_missed(connection.stream) && !inner.may_come_back(&connection) {
                    connection.end();
                    return;
                }
            }
            Attachment::Unanswered => connection.is_unanswered(),
        }
    }
    // The client reconnects, without losing one of its attempts (STREAM-0.5).
    if standing.phase == Phase::Holding && standing.since.elapsed() >= HOLD {
        connection.end();
        return;
    }
    lock(&inner.supervisor.held).push(connection);
}

/// Handles messages until the node stops. Waits for nothing else (STREAM-0.1, STREAM-14).
pub(super) async fn listen(
    inner: Arc<Inner>,
    mut messages: tokio::sync::mpsc::Receiver<NodeMessage>,
) {
    loop {
        let message = tokio::select! {
            biased;
            () = inner.stop.cancelled() => return,
            message = messages.recv() => message,
        };
        match message {
            Some(message) => hear(&inner, message),
            None => {
                // The store ended the subscription: subscribe again, and read everything.
                tokio::select! {
                    biased;
                    () = inner.stop.cancelled() => return,
                    () = tokio::time::sleep(CALL_WITHIN) => {}
                }
                if let Ok(again) = inner.guarded_store.store.subscribe(inner.id).await {
                    messages = again;
                    hear(&inner, NodeMessage::Resync);
                }
            }
        }
    }
}

fn hear(inner: &Arc<Inner>, message: NodeMessage) {
    metrics::counter!("mcp_doorbells_total", "type" => name(&message)).increment(1);
    match message {
        NodeMessage::Appended { .. } => appended(inner, message),
        NodeMessage::Superseded { stream, generation } => {
            for connection in inner.connections.of(stream.session) {
                if connection.stream == stream {
                    connection.demote(generation + 1);
                }
            }
        }
        NodeMessage::Owner { stream, owner } => {
            for connection in inner.connections.of(stream.session) {
                if connection.stream == stream {
                    connection.owned_by(owner);
                    inner.tend(&connection);
                    inner.partitions.mark(&connection);
                }
            }
        }
        NodeMessage::Answered {
            stream,
            question,
            payload,
        } => match payload {
            Some(payload) => {
                inner.questions.answered(stream.session, &question, payload);
            }
            None => inner
                .deferred_writes
                .add(super::deferred_writes::DeferredWrite::TakeAnswer {
                    session: stream.session,
                    question,
                }),
        },
        NodeMessage::Cancel { session, rpc } => {
            inner.running.cancel(session, &rpc);
        }
        NodeMessage::Ended { session } => inner.session_ended(session),
        NodeMessage::Session { session, body } => inner.session_subscribers.deliver(session, body),
        NodeMessage::Resync => {
            for connection in inner.connections.all() {
                inner.partitions.mark(&connection);
            }
            inner.running.resync();
            inner.poll_answers(Duration::ZERO);
        }
    }
}

/// Offers an appended event to the connections of its stream.
fn appended(inner: &Arc<Inner>, message: NodeMessage) {
    let NodeMessage::Appended {
        stream,
        generation,
        epoch,
        tail,
        state,
        event,
    } = message
    else {
        return;
    };
    let since = Since::heard();
    let mut event = event;
    for connection in inner.connections.of(stream.session) {
        if connection.stream == stream && connection.standing().generation == generation {
            // The event is sealed as in the log. If it cannot be opened, the reader ends
            // the stream.
            let offers = event.take().and_then(|event| {
                Some(super::reader::OfferedEvent {
                    payload: inner.opened(&connection, &event)?,
                    seq: event.seq,
                    class: event.class,
                })
            });
            let next = connection.offer(generation, epoch, tail, state, since, offers);
            if next == Next::Read {
                metrics::counter!("mcp_doorbell_gaps_total").increment(1);
            }
            inner.follow(&connection, next);
        } else if connection.stream == stream {
            // The connection may be about to receive its generation, or has just received
            // it.
            let next = connection.missed(generation);
            inner.follow(&connection, next);
        }
    }
}

const fn name(message: &NodeMessage) -> &'static str {
    match message {
        NodeMessage::Appended { .. } => "appended",
        NodeMessage::Superseded { .. } => "superseded",
        NodeMessage::Owner { .. } => "owner",
        NodeMessage::Answered { .. } => "answered",
        NodeMessage::Cancel { .. } => "cancel",
        NodeMessage::Ended { .. } => "ended",
        NodeMessage::Session { .. } => "note",
        NodeMessage::Resync => "resync",
    }
}

impl Inner {
    /// Reads answers of questions whose message may be lost.
    pub(super) fn poll_answers(&self, age: Duration) {
        for (session, question) in self.questions.waiting(age) {
            self.deferred_writes
                .add(super::deferred_writes::DeferredWrite::TakeAnswer { session, question });
        }
    }

    /// Ends all streams, connections and calls of a session.
    pub(super) fn session_ended(&self, session: SessionKey) {
        self.sessions.forget(session);
        for writer in self.writers.of(session) {
            writer.abandon();
        }
        for connection in self.connections.of(session) {
            connection.end();
        }
        // Last, so that the cancelled work finds no open stream.
        self.running.end(session);
    }
}
