//! Notes from other nodes for sessions whose connections are on this node (MCP-O-6). A
//! note is a message: it may be lost, repeated or late.

use std::{collections::HashMap, fmt, sync::Arc, sync::Mutex};

use bytes::Bytes;
use tokio::sync::mpsc;

use super::Inner;
use crate::{lock, store::SessionKey};

/// Maximum number of notes that wait for a connection. Further notes are dropped; their senders
/// send them again.
pub(super) const QUEUE: usize = 64;

/// Receivers of notes on this node, by session.
#[derive(Debug, Default)]
pub(super) struct Notes(Mutex<HashMap<SessionKey, mpsc::Sender<Bytes>>>);

impl Notes {
    /// Passes a note to the session's receiver. Drops it if there is none or its queue is full.
    pub(super) fn heard(&self, session: SessionKey, note: Bytes) {
        if let Some(listener) = lock(&self.0).get(&session) {
            let _ = listener.try_send(note);
        }
    }
}

/// Receiver of the notes for one session. Dropping it unsubscribes.
pub struct Listening {
    session: SessionKey,
    notes: mpsc::Receiver<Bytes>,
    inner: Arc<Inner>,
}

impl fmt::Debug for Listening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Listening").field(&self.session).finish()
    }
}

impl Listening {
    /// Returns the next note. Waits forever if there is none; cancel-safe.
    pub async fn next(&mut self) -> Bytes {
        match self.notes.recv().await {
            Some(note) => note,
            // Another receiver replaced this one.
            None => std::future::pending().await,
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.notes.close();
        let mut listeners = lock(&self.inner.notes.0);
        if listeners
            .get(&self.session)
            .is_some_and(mpsc::Sender::is_closed)
        {
            listeners.remove(&self.session);
        }
    }
}

pub(super) fn listen(inner: &Arc<Inner>, session: SessionKey, room: usize) -> Listening {
    let (sender, notes) = mpsc::channel(room);
    lock(&inner.notes.0).insert(session, sender);
    Listening {
        session,
        notes,
        inner: Arc::clone(inner),
    }
}
