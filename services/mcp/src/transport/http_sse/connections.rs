//! The HTTP+SSE connections that this node holds.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use portolan_cluster::{SessionKey, node::StreamReader};
use tokio::sync::mpsc;

/// A message of this node for the client.
#[derive(Debug)]
pub(crate) enum Arrival {
    /// One message.
    Whole(Bytes),
    /// The messages of a call.
    Stream(StreamReader),
}

/// The connections of this node.
#[derive(Debug, Default)]
pub(crate) struct Connections(Mutex<HashMap<SessionKey, mpsc::Sender<Arrival>>>);

impl Connections {
    pub(crate) fn all(&self) -> MutexGuard<'_, HashMap<SessionKey, mpsc::Sender<Arrival>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The channel to the connection of a session.
    pub(crate) fn sender(&self, session: SessionKey) -> Option<mpsc::Sender<Arrival>> {
        self.all().get(&session).cloned()
    }
}
