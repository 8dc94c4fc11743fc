//! Small store operations that run in the background. A lost one only occupies memory until it
//! expires.

pub(super) mod run;

use std::{collections::VecDeque, sync::Mutex};

use tokio::sync::Notify;

use crate::{
    lock,
    store::{Principal, SessionKey},
};

/// Queue length from which operations are dropped.
const AT_MOST: usize = 100_000;

#[derive(Debug)]
pub(super) enum DeferredWrite {
    Unregister {
        session: SessionKey,
        rpc: String,
    },
    /// A session got a record. The oldest idle records of its principal may have to be removed.
    Remember {
        session: SessionKey,
        principal: Principal,
    },
    /// Read an answer whose payload was too large for its message, or whose message may be lost.
    TakeAnswer {
        session: SessionKey,
        question: String,
    },
}

#[derive(Debug, Default)]
pub(super) struct DeferredWrites {
    queue: Mutex<VecDeque<DeferredWrite>>,
    wake: Notify,
}

impl DeferredWrites {
    pub(super) fn add(&self, write: DeferredWrite) {
        let mut queue = lock(&self.queue);
        if queue.len() < AT_MOST {
            queue.push_back(write);
            self.wake.notify_one();
        }
    }
}
