//! All reads of logs on a node. Connections with unread events are collected by partition and read
//! together (STREAM-8).

use std::{
    collections::{BTreeMap, HashSet},
    sync::{Arc, Mutex},
};

use futures_util::{StreamExt, stream::FuturesUnordered};
use tokio::{sync::Notify, time::Instant};

use super::{Inner, reader::Connection, reader::Next};
use crate::{
    lock,
    store::{Partition, Read, ReadWanted},
};

/// Maximum number of partitions that are read at once (STREAM-17.6).
const AT_ONCE: usize = 64;

/// Connections whose logs have to be read.
#[derive(Debug, Default)]
pub(super) struct Partitions {
    dirty: Mutex<BTreeMap<Partition, Vec<Arc<Connection>>>>,
    wake: Notify,
    at_once: Notify,
}

impl Partitions {
    /// Adds a connection to its partition's list, unless it is listed already. Never waits.
    pub(super) fn mark(&self, connection: &Arc<Connection>) {
        self.list(connection, false, &self.wake);
    }

    /// The same for a connection without a message, for anti-entropy.
    pub(super) fn look(&self, connection: &Arc<Connection>) {
        self.list(connection, true, &self.wake);
    }

    /// The same for a connection whose client has read its queue. The next page is read without the
    /// wait for other streams. Otherwise a client that missed many pages would wait for each one.
    pub(super) fn go_on(&self, connection: &Arc<Connection>) {
        self.list(connection, false, &self.at_once);
    }

    fn list(&self, connection: &Arc<Connection>, is_look: bool, wake: &Notify) {
        if connection.queue(is_look) {
            lock(&self.dirty)
                .entry(connection.stream.session.partition())
                .or_default()
                .push(Arc::clone(connection));
            wake.notify_one();
        }
    }

    /// Takes up to `count` connections of each partition that has no read in flight.
    fn take(
        &self,
        busy: &mut HashSet<Partition>,
        count: usize,
    ) -> Vec<(Partition, Vec<Arc<Connection>>)> {
        let mut dirty = lock(&self.dirty);
        let partitions: Vec<_> = dirty
            .keys()
            .copied()
            .filter(|partition| !busy.contains(partition))
            .take(AT_ONCE.saturating_sub(busy.len()))
            .collect();
        let mut batches = Vec::with_capacity(partitions.len());
        for partition in partitions {
            let Some(connections) = dirty.get_mut(&partition) else {
                continue;
            };
            let rest = connections.split_off(count.min(connections.len()));
            let batch = std::mem::replace(connections, rest);
            if connections.is_empty() {
                dirty.remove(&partition);
            }
            busy.insert(partition);
            batches.push((partition, batch));
        }
        batches
    }

    fn has(&self, partition: Partition) -> bool {
        lock(&self.dirty).contains_key(&partition)
    }

    fn has_any(&self, busy: &HashSet<Partition>) -> bool {
        busy.len() < AT_ONCE
            && lock(&self.dirty)
                .keys()
                .any(|partition| !busy.contains(partition))
    }
}

/// Runs the reads of the node until it stops. Each partition has at most one `read` in flight.
pub(super) async fn read(inner: Arc<Inner>) {
    let mut busy = HashSet::new();
    let mut flight = FuturesUnordered::new();
    let mut start_at = None;
    loop {
        let gather = async {
            match start_at {
                // A timer is up to a millisecond late.
                Some(at) if at <= Instant::now() => {}
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = inner.stop.cancelled() => return,
            () = gather => {
                start_at = None;
                for (partition, batch) in inner.partitions.take(&mut busy, inner.settings.read_batch) {
                    flight.push(read_partition(Arc::clone(&inner), partition, batch));
                }
            }
            Some(partition) = flight.next() => {
                busy.remove(&partition);
                // More connections were marked during the read, or too many partitions were busy.
                // Every page but the last marks its connection again.
                if inner.partitions.has(partition) || start_at.is_none() && inner.partitions.has_any(&busy) {
                    start_at = Some(Instant::now());
                }
            }
            () = inner.partitions.at_once.notified() => start_at = Some(Instant::now()),
            () = inner.partitions.wake.notified(), if start_at.is_none() => {
                start_at = Some(Instant::now() + inner.settings.gather);
            }
        }
    }
}

async fn read_partition(
    inner: Arc<Inner>,
    partition: Partition,
    batch: Vec<Arc<Connection>>,
) -> Partition {
    let (mut asked, mut wanted) = (Vec::new(), Vec::new());
    for connection in batch {
        if let Some((generation, position, owner, epoch)) = connection.taken() {
            wanted.push(ReadWanted {
                stream: connection.stream,
                generation,
                position,
                seen: (owner, epoch),
            });
            asked.push(connection);
        }
    }
    if wanted.is_empty() {
        return partition;
    }
    let read = inner.guarded_store.store.read(partition, &wanted);
    let replies = inner
        .guarded_store
        .call("read", inner.settings.call_within, read)
        .await;
    // After a failure, all connections are read again when the store returns, and by anti-entropy.
    let Ok(replies) = replies else {
        return partition;
    };
    for ((connection, wanted), reply) in asked.iter().zip(&wanted).zip(replies) {
        connection.answered();
        match reply {
            Read::Unchanged => {}
            Read::Gone => {
                connection.is_gone();
                // A local writer makes the stream again, or learns that its session has ended. For
                // a remote writer, the connection attaches again until the stream exists or cannot
                // come back.
                match inner.writer(connection.stream) {
                    Some(writer) => writer.audit(),
                    None => inner.follow(connection, Next::Attach),
                }
            }
            Read::View(view, _) => {
                let open = |event: &_| inner.opened(connection, event);
                let next = connection.read(wanted.generation, view, open);
                inner.follow(connection, next);
            }
        }
        inner.tend(connection);
    }
    partition
}

impl Inner {
    /// Starts the next step of a connection. Never waits.
    pub(super) fn follow(&self, connection: &Arc<Connection>, next: Next) {
        match next {
            Next::Rest => {}
            Next::Read => self.partitions.mark(connection),
            Next::Attach => {
                connection.hold();
                self.supervisor.hold(Arc::clone(connection));
            }
            Next::LastWord => self.supervisor.hold(Arc::clone(connection)),
            Next::TakeOver => {
                let standing = connection.standing();
                self.takeovers.claim(super::takeover::Claim {
                    stream: connection.stream,
                    from: standing.owner.flatten(),
                    shown: standing.shown,
                    why: super::Lost::Node,
                });
            }
        }
    }
}
