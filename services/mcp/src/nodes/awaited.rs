//! Questions whose senders await the progress of their client.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use portolan_protocol::jsonrpc::Raw;
use tokio::sync::mpsc;

/// Questions whose askers want their client's progress.
#[derive(Debug, Default)]
pub(crate) struct Awaited(pub(crate) Mutex<HashMap<[u8; 8], mpsc::Sender<Raw>>>);

impl Awaited {
    pub(crate) fn lock(&self) -> MutexGuard<'_, HashMap<[u8; 8], mpsc::Sender<Raw>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn deliver(&self, nonce: [u8; 8], params: Raw) {
        if let Some(channel) = self.lock().get(&nonce) {
            // If the channel is full, the asker has progress to read already.
            let _ = channel.try_send(params);
        }
    }
}
