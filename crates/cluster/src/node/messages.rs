//! Messages from other nodes for sessions whose connections are on this node (MCP-O-6). A message
//! may be lost, repeated or late.

use std::{collections::HashMap, fmt, sync::Arc, sync::Mutex};

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::{lock, store::SessionKey};

/// Maximum number of messages that wait for a connection. Further messages are dropped; their
/// senders send them again.
pub(super) const QUEUE: usize = 64;

/// Receivers of messages on this node, by session.
#[derive(Debug, Default)]
pub(super) struct SessionSubscribers(Mutex<HashMap<SessionKey, mpsc::Sender<Bytes>>>);

impl SessionSubscribers {
    /// Passes a message to the session's receiver. Drops it if there is none or its queue is full.
    pub(super) fn deliver(&self, session: SessionKey, message: Bytes) {
        if let Some(receiver) = lock(&self.0).get(&session) {
            let _ = receiver.try_send(message);
        }
    }
}

/// Receiver of the messages for one session. Dropping it unsubscribes.
pub struct SessionMessages {
    session: SessionKey,
    messages: mpsc::Receiver<Bytes>,
    subscribers: Arc<SessionSubscribers>,
}

impl fmt::Debug for SessionMessages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SessionMessages")
            .field(&self.session)
            .finish()
    }
}

impl SessionMessages {
    /// Returns the next message. Waits forever if there is none; cancel-safe.
    pub async fn next(&mut self) -> Bytes {
        match self.messages.recv().await {
            Some(message) => message,
            // Another receiver replaced this one.
            None => std::future::pending().await,
        }
    }
}

impl Drop for SessionMessages {
    fn drop(&mut self) {
        self.messages.close();
        let mut receivers = lock(&self.subscribers.0);
        if receivers
            .get(&self.session)
            .is_some_and(mpsc::Sender::is_closed)
        {
            receivers.remove(&self.session);
        }
    }
}

pub(super) fn subscribe(
    subscribers: &Arc<SessionSubscribers>,
    session: SessionKey,
    capacity: usize,
) -> SessionMessages {
    let (sender, messages) = mpsc::channel(capacity);
    lock(&subscribers.0).insert(session, sender);
    SessionMessages {
        session,
        messages,
        subscribers: Arc::clone(subscribers),
    }
}
