//! Messages on their way to the nodes of this process.

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

/// Maximum number of messages that wait for one node. Beyond it, the node receives
/// [`NodeMessage::Resync`].
pub(crate) const QUEUE: usize = 4096;

/// Subscribed nodes of this process.
#[derive(Default)]
pub(crate) struct Subscribers {
    /// Locked during a notification, so that the last slot of a queue always holds the notice of a
    /// loss.
    nodes: Mutex<BTreeMap<NodeId, mpsc::Sender<NodeMessage>>>,
    /// The connection that receives the messages is down.
    is_deaf: AtomicBool,
}

impl fmt::Debug for Subscribers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bells").finish_non_exhaustive()
    }
}

impl Subscribers {
    /// Subscribes a node to its messages, from now on.
    pub(crate) fn listen(&self, node: NodeId) -> mpsc::Receiver<NodeMessage> {
        let (message, messages) = mpsc::channel(QUEUE);
        lock(&self.nodes).insert(node, message);
        messages
    }

    /// Sends a message to a node, if it is subscribed here. Never waits.
    pub(crate) fn notify(&self, node: NodeId, message: NodeMessage) {
        let mut nodes = lock(&self.nodes);
        if let Some(queue) = nodes.get(&node)
            && !send(queue, message)
        {
            nodes.remove(&node);
        }
    }

    /// Sends [`NodeMessage::Resync`] to every node here.
    pub(crate) fn resync(&self) {
        lock(&self.nodes).retain(|_, queue| send(queue, NodeMessage::Resync));
    }

    /// Sets whether messages arrive.
    pub(crate) fn messages(&self, does: bool) {
        self.is_deaf.store(!does, Ordering::Release);
    }

    /// Whether messages do not arrive.
    pub(crate) fn is_deaf(&self) -> bool {
        self.is_deaf.load(Ordering::Acquire)
    }

    /// Subscribed nodes.
    pub(crate) fn nodes(&self) -> Vec<NodeId> {
        lock(&self.nodes).keys().copied().collect()
    }
}

/// Queues a message. Returns false if the node no longer receives. The last slot of a queue takes
/// [`NodeMessage::Resync`] instead of the message. A full queue ends with such a notice already.
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
            "STREAM-18: overflow"
        );
        assert!(messages.try_recv().is_err());
        subscribers.notify(node, message.clone());
        assert_eq!(messages.try_recv(), Ok(message));
        drop(messages);
        subscribers.notify(node, NodeMessage::Resync);
        assert!(subscribers.nodes().is_empty(), "who went away is forgotten");
    }
}
