//! Sends the deferred operations.

use std::sync::Arc;

use futures_util::{StreamExt, stream::FuturesUnordered};

use super::DeferredWrite;
use crate::{
    lock,
    node::{inner::Inner, sessions::operations, settings::CALL_WITHIN},
};

/// Maximum number of operations in flight.
const AT_ONCE: usize = 64;

/// Runs the operations until the node stops.
pub(crate) async fn run(inner: Arc<Inner>) {
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
    let (guarded_store, within) = (&inner.guarded_store, CALL_WITHIN);
    match write {
        DeferredWrite::Unregister { session, rpc } => {
            let unregister = guarded_store.store.unregister(session, &rpc);
            let _ = guarded_store.call("unregister", within, unregister).await;
        }
        DeferredWrite::Remember { session, principal } => {
            operations::keep_few(inner, session, principal).await;
        }
        DeferredWrite::TakeAnswer { session, question } => {
            let take = guarded_store.store.take_answer(session, &question);
            if let Ok(Some(payload)) = guarded_store.call("take_answer", within, take).await {
                inner.questions.answered(session, &question, payload);
            }
        }
    }
}
