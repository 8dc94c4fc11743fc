//! Connections that wait to be attached.

use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use crate::{lock, node::reader::Connection};

/// Connections to be attached.
#[derive(Debug, Default)]
pub(crate) struct Supervisor {
    pub(super) held: Mutex<Vec<Arc<Connection>>>,
    pub(super) wake: Notify,
}

impl Supervisor {
    /// Attaches the connection as soon as possible.
    pub(crate) fn hold(&self, connection: Arc<Connection>) {
        let mut held = lock(&self.held);
        if !held.iter().any(|other| Arc::ptr_eq(other, &connection)) {
            held.push(connection);
        }
        drop(held);
        self.wake.notify_one();
    }

    pub(crate) fn count(&self) -> usize {
        lock(&self.held).len()
    }
}
