//! Reads the logs of a node's connections.

use std::{collections::HashSet, sync::Arc};

use futures_util::{StreamExt, stream::FuturesUnordered};
use tokio::time::Instant;

use crate::{
    node::{
        inner::Inner,
        payload::Lost,
        reader::{Connection, Next},
        settings::{CALL_WITHIN, READ_BATCH},
        takeover::claims::Claim,
    },
    store::{Partition, Read, ReadWanted},
};

/// Runs the reads of the node until it stops. Each partition has at most one `read` in flight.
pub(crate) async fn read(inner: Arc<Inner>) {
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
                for (partition, batch) in inner.partitions.take(&mut busy, READ_BATCH) {
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
    let replies = inner.guarded_store.call("read", CALL_WITHIN, read).await;
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
    pub(crate) fn follow(&self, connection: &Arc<Connection>, next: Next) {
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
                self.takeovers.claim(Claim {
                    stream: connection.stream,
                    from: standing.owner.flatten(),
                    shown: standing.shown,
                    why: Lost::Node,
                });
            }
        }
    }
}
