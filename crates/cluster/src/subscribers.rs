//! messages on their way to the nodes of this process.

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
    store::{NodeId, NodeMessage},
};

/// messages that may wait for one node. Beyond it the node is told to look at everything.
pub(crate) const QUEUE: usize = 4096;

/// The nodes of this process that listen.
#[derive(Default)]
pub(crate) struct Subscribers {
    /// The lock is held while one is notified, so that the last place of a queue is always the notice of a loss.
    nodes: Mutex<BTreeMap<NodeId, mpsc::Sender<NodeMessage>>>,
    /// The connection on which they are notified is down.
    is_deaf: AtomicBool,
}

impl fmt::Debug for Subscribers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bells").finish_non_exhaustive()
    }
}

impl Subscribers {
    /// From now on a node hears its messages.
    pub(crate) fn listen(&self, node: NodeId) -> mpsc::Receiver<NodeMessage> {
        let (message, messages) = mpsc::channel(QUEUE);
        lock(&self.nodes).insert(node, message);
        messages
    }

    /// Notifies if the node listens here. Never waits.
    pub(crate) fn notify(&self, node: NodeId, message: NodeMessage) {
        let mut nodes = lock(&self.nodes);
        if let Some(queue) = nodes.get(&node)
            && !send(queue, message)
        {
            nodes.remove(&node);
        }
    }

    /// Tells every node here that messages may have been lost.
    pub(crate) fn resync(&self) {
        lock(&self.nodes).retain(|_, queue| send(queue, NodeMessage::Resync));
    }

    /// Whether messages arrive from now on.
    pub(crate) fn messages(&self, does: bool) {
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
fn send(queue: &mpsc::Sender<NodeMessage>, message: NodeMessage) -> bool {
    let message = if queue.capacity() > 1 {
        message
    } else {
        NodeMessage::Resync
    };
    !matches!(
        queue.try_send(message),
        Err(mpsc::error::TrySendError::Closed(_))
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::SessionKey;

    #[test]
    fn what_does_not_fit_becomes_the_order_to_look_at_everything() {
        let subscribers = Subscribers::default();
        let node = NodeId(*b"n0000000000000");
        let mut messages = subscribers.listen(node);
        let message = NodeMessage::Ended {
            session: SessionKey([1; 16]),
        };
        for _ in 0..QUEUE + 10 {
            subscribers.notify(node, message.clone());
        }
        for _ in 0..QUEUE - 1 {
            assert_eq!(messages.try_recv(), Ok(message.clone()));
        }
        assert_eq!(
            messages.try_recv(),
            Ok(NodeMessage::Resync),
            "§18: overflow"
        );
        assert!(messages.try_recv().is_err());
        subscribers.notify(node, message.clone());
        assert_eq!(messages.try_recv(), Ok(message));
        drop(messages);
        subscribers.notify(node, NodeMessage::Resync);
        assert!(subscribers.nodes().is_empty(), "who went away is forgotten");
    }
}
