//! All reads of logs on a node. Connections with unread events are collected by partition and read
//! together (STREAM-8).

pub(super) mod read;

use std::{
    collections::{BTreeMap, HashSet},
    sync::{Arc, Mutex},
};

use tokio::sync::Notify;

use super::reader::Connection;
use crate::{lock, store::Partition};

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
