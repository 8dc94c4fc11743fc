//! Doorbells on their way to the nodes of this process.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::sync::mpsc;

use crate::{
    lock,
    store::{Doorbell, NodeId},
};

/// Doorbells that may wait for one node. Beyond it the node is told to look at everything.
pub(crate) const QUEUE: usize = 4096;

/// The nodes of this process that listen.
#[derive(Default)]
pub(crate) struct Bells {
    /// The lock is held while one is rung, so that the last place of a queue is always the notice of a loss.
    nodes: Mutex<BTreeMap<NodeId, mpsc::Sender<Doorbell>>>,
    /// The connection on which they are rung is down.
    is_deaf: AtomicBool,
}

impl fmt::Debug for Bells {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bells").finish_non_exhaustive()
    }
}

impl Bells {
    /// From now on a node hears its doorbells.
    pub(crate) fn listen(&self, node: NodeId) -> mpsc::Receiver<Doorbell> {
        let (bell, hears) = mpsc::channel(QUEUE);
        lock(&self.nodes).insert(node, bell);
        hears
    }

    /// Rings if the node listens here. Never waits.
    pub(crate) fn ring(&self, node: NodeId, bell: Doorbell) {
        let mut nodes = lock(&self.nodes);
        if let Some(queue) = nodes.get(&node)
            && !send(queue, bell)
        {
            nodes.remove(&node);
        }
    }

    /// Tells every node here that doorbells may have been lost.
    pub(crate) fn resync(&self) {
        lock(&self.nodes).retain(|_, queue| send(queue, Doorbell::Resync));
    }

    /// Whether doorbells arrive from now on.
    pub(crate) fn hears(&self, does: bool) {
        self.is_deaf.store(!does, Ordering::Release);
    }

    /// Whether none arrive.
    pub(crate) fn is_deaf(&self) -> bool {
        self.is_deaf.load(Ordering::Acquire)
    }

    /// The nodes that listen here.
    pub(crate) fn nodes(&self) -> Vec<NodeId> {
        lock(&self.nodes).keys().copied().collect()
    }
}

/// False if nobody listens any more. What finds only one place left becomes the notice that something was lost; what finds none
/// stands behind such a notice already.
fn send(queue: &mpsc::Sender<Doorbell>, bell: Doorbell) -> bool {
    let bell = if queue.capacity() > 1 {
        bell
    } else {
        Doorbell::Resync
    };
    !matches!(
        queue.try_send(bell),
        Err(mpsc::error::TrySendError::Closed(_))
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::SessionKey;

    #[test]
    fn what_does_not_fit_becomes_the_order_to_look_at_everything() {
        let bells = Bells::default();
        let node = NodeId(*b"n0000000000000");
        let mut hears = bells.listen(node);
        let bell = Doorbell::Ended {
            session: SessionKey([1; 16]),
        };
        for _ in 0..QUEUE + 10 {
            bells.ring(node, bell.clone());
        }
        for _ in 0..QUEUE - 1 {
            assert_eq!(hears.try_recv(), Ok(bell.clone()));
        }
        assert_eq!(hears.try_recv(), Ok(Doorbell::Resync), "§18: overflow");
        assert!(hears.try_recv().is_err());
        bells.ring(node, bell.clone());
        assert_eq!(hears.try_recv(), Ok(bell));
        drop(hears);
        bells.ring(node, Doorbell::Resync);
        assert!(bells.nodes().is_empty(), "who went away is forgotten");
    }
}
