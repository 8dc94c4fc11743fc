//! Small store operations that run in the background. A lost one only occupies memory until it
//! expires.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use futures_util::{StreamExt, stream::FuturesUnordered};
use tokio::sync::Notify;

use super::{Inner, sessions};
use crate::{
    lock,
    store::{Principal, SessionKey, StreamKey},
};

/// Maximum number of operations in flight.
const AT_ONCE: usize = 64;
/// Queue length from which operations are dropped.
const AT_MOST: usize = 100_000;

#[derive(Debug)]
pub(super) enum DeferredWrite {
    Unregister {
        session: SessionKey,
        rpc: String,
    },
    Detach {
        stream: StreamKey,
        generation: u64,
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

/// Runs the operations until the node stops.
pub(super) async fn run(inner: Arc<Inner>) {
    let mut flight = FuturesUnordered::new();
    loop {
        while flight.len() < AT_ONCE {
            let Some(write) = lock(&inner.deferred_writes.queue).pop_front() else {
                break;
            };
            flight.push(run_one(&inner, write));
        }
        tokio::select! {
            biased;
            () = inner.stop.cancelled() => return,
            Some(()) = flight.next() => {}
            () = inner.deferred_writes.wake.notified() => {}
        }
    }
}

async fn run_one(inner: &Inner, write: DeferredWrite) {
    let (guarded_store, within) = (&inner.guarded_store, inner.settings.call_within);
    match write {
        DeferredWrite::Unregister { session, rpc } => {
            let unregister = guarded_store.store.unregister(session, &rpc);
            let _ = guarded_store.call("unregister", within, unregister).await;
        }
        DeferredWrite::Detach { stream, generation } => {
            let detach = guarded_store.store.detach(stream, inner.id, generation);
            let _ = guarded_store.call("detach", within, detach).await;
        }
        DeferredWrite::Remember { session, principal } => {
            sessions::keep_few(inner, session, principal).await;
        }
        DeferredWrite::TakeAnswer { session, question } => {
            let take = guarded_store.store.take_answer(session, &question);
            if let Ok(Some(payload)) = guarded_store.call("take_answer", within, take).await {
                inner.questions.answered(session, &question, payload);
            }
        }
    }
}
