//! Takeover of streams whose owner is gone. They end with an error for the client
//! (STREAM-12.2, STREAM-12.3).

pub(super) mod claims;

use std::{
    collections::HashMap,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use futures_util::{StreamExt, stream};
use portolan_traces::Span;
use tokio::time::Instant;

use self::claims::Claim;
use super::{
    envelope,
    inner::Inner,
    payload::Lost,
    reader::{Connection, Phase},
    settings::{CALL_WITHIN, LATE},
    writer::{
        self,
        state::{Ending, WriterState},
    },
};
use crate::{
    lock,
    store::{Cursor, NodeId, PARTITIONS, Partition, StoreError, StreamKey, TakeOver, TakenOver},
};

/// Maximum number of partitions that are read at once.
const AT_ONCE: usize = 8;
/// Number of attempts for a takeover whose reply was lost.
const TRIES: usize = 3;
/// Number of empty reads after which a partition has no streams of a dead node.
const EMPTY: u8 = 2;
/// Interval of the reads of streams without an owner, and of own streams without a writer.
const SWEEP: Duration = Duration::from_secs(60);

/// Cursor for the janitor, which knows no cursor of a client.
const NOTHING_SHOWN: Cursor = Cursor {
    seq: 0,
    epoch: None,
};

impl Inner {
    /// Checks whether the stream of a connection needs a new owner.
    pub(super) fn tend(&self, connection: &Connection) {
        let standing = connection.standing();
        if standing.phase != Phase::Attached {
            return;
        }
        let Some(owner) = standing.owner else {
            return;
        };
        let stream = connection.stream;
        let is_overdue = standing
            .deadline
            .is_some_and(|deadline| Instant::now() > deadline + LATE);
        let (from, why) = match owner {
            None => (None, Lost::Node),
            Some(owner) if owner == self.id && self.has_writer(stream) => return,
            Some(owner) if owner == self.id || self.watcher.is_suspected(owner) => {
                (Some(owner), Lost::Node)
            }
            Some(_) if is_overdue => (None, Lost::Deadline),
            Some(_) => return,
        };
        self.takeovers.claim(Claim {
            stream,
            from,
            shown: standing.shown,
            why,
        });
    }

    /// Whether a writer of the stream runs on this node.
    pub(super) fn has_writer(&self, stream: StreamKey) -> bool {
        self.writer(stream).is_some()
    }

    /// Records that the store does not know a stream. A writer on this node checks that and writes
    /// the stream again from its `UnackedBuffer`. False if the writer is not on this node.
    pub(super) fn is_missed(&self, stream: StreamKey) -> bool {
        let writer = self.writer(stream);
        if let Some(writer) = &writer {
            writer.audit();
        }
        writer.is_some()
    }

    /// The writer of a stream on this node.
    pub(super) fn writer(&self, stream: StreamKey) -> Option<Arc<WriterState>> {
        self.writers
            .find(stream.session, |writer| writer.stream == stream)
    }
}

/// Runs the claimed takeovers at a limited rate, until the node stops.
pub(super) async fn take_over(inner: Arc<Inner>) {
    loop {
        let claim = lock(&inner.takeovers.claims).waiting.pop_front();
        let Some(claim) = claim else {
            tokio::select! {
                biased;
                () = inner.stop.cancelled() => return,
                () = inner.takeovers.wake.notified() => continue,
            }
        };
        // Each takeover is a task, so that a slow one does not delay the others. The rate bounds
        // their number.
        let task = {
            let inner = Arc::clone(&inner);
            async move {
                tokio::select! {
                    biased;
                    () = inner.stop.cancelled() => {}
                    () = take_over_one(&inner, claim) => {}
                }
            }
        };
        inner.spawn(task);
        tokio::time::sleep(inner.settings.takeover_pace).await;
    }
}

async fn take_over_one(inner: &Arc<Inner>, claim: Claim) {
    let take_over = TakeOver {
        stream: claim.stream,
        from: claim.from,
        to: Some(inner.id),
        shown: claim.shown,
        // The nonce is the same for each attempt, so the store recognises a takeover whose reply
        // was lost.
        nonce: inner.rng.nonce(),
    };
    let began = portolan_traces::now();
    let mut reply = Err(StoreError::Down(String::new()));
    for _ in 0..TRIES {
        let operation = inner.guarded_store.store.take_over(&take_over);
        reply = inner
            .guarded_store
            .call("adopt", CALL_WITHIN, operation)
            .await;
        if reply.is_ok() {
            break;
        }
    }
    let outcome = match reply {
        Ok(TakenOver::Done {
            tail,
            epoch,
            about,
            late,
            ..
        }) => {
            let (ending, outcome) = if late {
                (Ending::Logged, "late")
            } else {
                (Ending::Lost(claim.why), "error")
            };
            let trace = began.and_then(|began| {
                let span = Span::of_another_node(&envelope::open(&about).trace?, "adopt")?;
                span.since(began);
                span.set("portolan.node.owner", inner.id.to_string());
                if let Some(from) = claim.from {
                    span.set("portolan.node.lost", from.to_string());
                }
                span.set("portolan.nonce", claim.stream.nonce.to_string());
                span.set("portolan.seq", tail);
                span.set("portolan.outcome", outcome);
                Some(Arc::new(span))
            });
            writer::finish_taken_over(inner, claim.stream, epoch, tail, about, trace, ending);
            outcome
        }
        Ok(TakenOver::Lost) => "lost",
        Ok(TakenOver::Over) => "over",
        Err(_) => {
            inner.takeovers.is_in_doubt.store(true, Ordering::Release);
            "unknown"
        }
    };
    metrics::counter!("mcp_adoptions_total", "outcome" => outcome).increment(1);
    lock(&inner.takeovers.claims).streams.remove(&claim.stream);
    for connection in inner.connections.of(claim.stream.session) {
        if connection.stream == claim.stream {
            inner.partitions.mark(&connection);
        }
    }
}

/// Janitor: takes over the streams of dead nodes in this node's partitions, until the node stops or
/// leaves.
pub(super) async fn janitor(inner: Arc<Inner>) {
    let mut found_empty: HashMap<(Partition, NodeId), u8> = HashMap::new();
    let mut members = inner.watcher.members.subscribe();
    let mut swept = Instant::now();
    loop {
        let pause = inner.rng.spread(inner.settings.janitor);
        tokio::select! {
            biased;
            () = inner.stop.cancelled() => return,
            () = inner.left.cancelled() => return,
            _ = members.changed() => {}
            () = tokio::time::sleep(pause) => {}
        }
        let known = members.borrow_and_update().clone();
        found_empty.retain(|(_, node), _| known.suspected.contains(node));
        // Connections on this node must not wait for the next interval.
        if !known.suspected.is_empty() {
            for connection in inner.connections.all() {
                inner.tend(&connection);
            }
        }
        let is_sweep = swept.elapsed() >= SWEEP && !inner.guarded_store.is_open();
        if !known.suspected.is_empty() || is_sweep {
            let mut looks = Vec::new();
            for partition in known.partitions_of(inner.id) {
                looks.extend(known.suspected.iter().map(|node| (partition, Some(*node))));
                looks.extend(is_sweep.then_some((partition, None)));
            }
            looks.retain(|(partition, node)| {
                node.is_none_or(|node| {
                    found_empty
                        .get(&(*partition, node))
                        .is_none_or(|times| *times < EMPTY)
                })
            });
            look(&inner, &mut found_empty, looks).await;
        }
        let is_in_doubt = !inner.guarded_store.is_open()
            && inner.takeovers.is_in_doubt.swap(false, Ordering::AcqRel);
        if is_sweep || is_in_doubt {
            swept = Instant::now();
            let partitions = (0..PARTITIONS).filter_map(|partition| u8::try_from(partition).ok());
            let looks = partitions
                .map(|partition| (Partition(partition), Some(inner.id)))
                .collect();
            look(&inner, &mut found_empty, looks).await;
        }
    }
}

async fn look(
    inner: &Arc<Inner>,
    found_empty: &mut HashMap<(Partition, NodeId), u8>,
    looks: Vec<(Partition, Option<NodeId>)>,
) {
    let mut found = stream::iter(looks)
        .map(|(partition, node)| async move {
            let owned = inner.guarded_store.store.owned_by(partition, node);
            let owned = inner
                .guarded_store
                .call("owned_by", CALL_WITHIN, owned)
                .await;
            (partition, node, owned)
        })
        .buffer_unordered(AT_ONCE);
    while let Some((partition, node, owned)) = found.next().await {
        if inner.stop.is_cancelled() {
            return;
        }
        let Ok(streams) = owned else {
            if node == Some(inner.id) {
                inner.takeovers.is_in_doubt.store(true, Ordering::Release);
            }
            continue;
        };
        if let (true, Some(node)) = (streams.is_empty(), node) {
            *found_empty.entry((partition, node)).or_default() += 1;
        }
        for stream in streams {
            if node == Some(inner.id) && inner.has_writer(stream) {
                continue;
            }
            inner.takeovers.claim(Claim {
                stream,
                from: node,
                shown: NOTHING_SHOWN,
                why: Lost::Node,
            });
        }
    }
}
