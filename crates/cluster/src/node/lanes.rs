//! All reading of logs on a node: connections that have something to fetch are collected by lane and read together
//! (`streams.md` §8 *Lane reader*).

use std::{
    collections::{BTreeMap, HashSet},
    sync::{Arc, Mutex},
};

use futures_util::{StreamExt, stream::FuturesUnordered};
use tokio::{sync::Notify, time::Instant};

use super::{Inner, reader::Connection, reader::Next};
use crate::{
    lock,
    store::{Lane, Read, ReadWanted},
};

/// Lanes that are read at once (§17.6).
const AT_ONCE: usize = 64;

/// Connections that have to look into their logs.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    dirty: Mutex<BTreeMap<Lane, Vec<Arc<Connection>>>>,
    wake: Notify,
    at_once: Notify,
}

impl Lanes {
    /// Puts a connection on its lane's list, unless it is there. Never waits.
    pub(super) fn mark(&self, connection: &Arc<Connection>) {
        self.list(connection, false, &self.wake);
    }

    /// The same for one of which nothing was heard.
    pub(super) fn look(&self, connection: &Arc<Connection>) {
        self.list(connection, true, &self.wake);
    }

    /// The same for one whose client has taken what waited for it: its next page gathers nobody else, because a client that missed much
    /// would wait so for each of many pages.
    pub(super) fn go_on(&self, connection: &Arc<Connection>) {
        self.list(connection, false, &self.at_once);
    }

    fn list(&self, connection: &Arc<Connection>, is_look: bool, wake: &Notify) {
        if connection.queue(is_look) {
            lock(&self.dirty)
                .entry(connection.stream.session.lane())
                .or_default()
                .push(Arc::clone(connection));
            wake.notify_one();
        }
    }

    /// Up to `count` connections of each lane that is not busy.
    fn take(&self, busy: &mut HashSet<Lane>, count: usize) -> Vec<(Lane, Vec<Arc<Connection>>)> {
        let mut dirty = lock(&self.dirty);
        let lanes: Vec<_> = dirty
            .keys()
            .copied()
            .filter(|lane| !busy.contains(lane))
            .take(AT_ONCE.saturating_sub(busy.len()))
            .collect();
        let mut batches = Vec::with_capacity(lanes.len());
        for lane in lanes {
            let Some(connections) = dirty.get_mut(&lane) else {
                continue;
            };
            let rest = connections.split_off(count.min(connections.len()));
            let batch = std::mem::replace(connections, rest);
            if connections.is_empty() {
                dirty.remove(&lane);
            }
            busy.insert(lane);
            batches.push((lane, batch));
        }
        batches
    }

    fn has(&self, lane: Lane) -> bool {
        lock(&self.dirty).contains_key(&lane)
    }

    fn has_any(&self, busy: &HashSet<Lane>) -> bool {
        busy.len() < AT_ONCE && lock(&self.dirty).keys().any(|lane| !busy.contains(lane))
    }
}

/// Reads for the node until it stops. One `read` at a time in each lane.
pub(super) async fn read(inner: Arc<Inner>) {
    let mut busy = HashSet::new();
    let mut flight = FuturesUnordered::new();
    let mut start_at = None;
    loop {
        let gather = async {
            match start_at {
                // A timer is a millisecond late.
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
                for (lane, batch) in inner.lanes.take(&mut busy, inner.settings.read_batch) {
                    flight.push(read_lane(Arc::clone(&inner), lane, batch));
                }
            }
            Some(lane) = flight.next() => {
                busy.remove(&lane);
                // More came for it while it was busy, as every page but the last brings the next one; or there were too many lanes.
                if inner.lanes.has(lane) || start_at.is_none() && inner.lanes.has_any(&busy) {
                    start_at = Some(Instant::now());
                }
            }
            () = inner.lanes.at_once.notified() => start_at = Some(Instant::now()),
            () = inner.lanes.wake.notified(), if start_at.is_none() => {
                start_at = Some(Instant::now() + inner.settings.gather);
            }
        }
    }
}

async fn read_lane(inner: Arc<Inner>, lane: Lane, batch: Vec<Arc<Connection>>) -> Lane {
    let (mut asked, mut wanted) = (Vec::new(), Vec::new());
    for connection in batch {
        if let Some((generation, position, owner, attempt)) = connection.taken() {
            wanted.push(ReadWanted {
                stream: connection.stream,
                generation,
                position,
                seen: (owner, attempt),
            });
            asked.push(connection);
        }
    }
    if wanted.is_empty() {
        return lane;
    }
    let read = inner.link.store.read(lane, &wanted);
    let replies = inner
        .link
        .call("read", inner.settings.call_within, read)
        .await;
    // After a failure all of them are read again when the store is back, and by the next look at all.
    let Ok(replies) = replies else {
        return lane;
    };
    for ((connection, wanted), reply) in asked.iter().zip(&wanted).zip(replies) {
        connection.answered();
        match reply {
            Read::Unchanged => {}
            Read::Gone => {
                connection.is_gone();
                // Its own writer makes it again, or learns that its session is over. For what others write, ask until it is there or
                // cannot come any more.
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
    lane
}

impl Inner {
    /// Does what a connection needs next. Never waits.
    pub(super) fn follow(&self, connection: &Arc<Connection>, next: Next) {
        match next {
            Next::Rest => {}
            Next::Read => self.lanes.mark(connection),
            Next::Attach => {
                connection.hold();
                self.care.hold(Arc::clone(connection));
            }
            Next::LastWord => self.care.hold(Arc::clone(connection)),
            Next::Adopt => {
                let standing = connection.standing();
                self.adoptions.claim(super::adoption::Claim {
                    stream: connection.stream,
                    from: standing.owner.flatten(),
                    shown: standing.shown,
                    why: super::Lost::Node,
                });
            }
        }
    }
}
