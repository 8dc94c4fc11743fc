//! A running request: its begin, its registration in the store, and its end.

use std::{
    collections::VecDeque,
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::{StreamExt, stream::FuturesUnordered};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{RunningEntry, known::StoreKnowledge};
use crate::{
    lock,
    node::{deferred_writes::DeferredWrite, inner::Inner, settings::CALL_WITHIN},
    store::{Registered, SessionKey},
};

/// Maximum number of registrations in flight.
const AT_ONCE: usize = 64;
/// Interval at which long requests are registered again, to learn of a cancellation whose message
/// was lost.
const AGAIN: Duration = Duration::from_secs(15);

/// A running request. Dropping it reports its end.
pub struct Running {
    /// Cancelled when the request has to stop: its client cancelled it, or its session ended.
    pub cancelled: CancellationToken,
    entry: Arc<RunningEntry>,
    inner: Arc<Inner>,
}

impl Running {
    /// Whether the request was stopped because its session was ended, on any node. This is not a
    /// cancellation: the waiting client receives the error for an unknown session.
    pub fn is_session_over(&self) -> bool {
        self.entry.is_session_over.load(Ordering::Acquire)
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running")
            .field("session", &self.entry.session)
            .field("rpc", &self.entry.rpc)
            .finish_non_exhaustive()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let was_told = self.entry.known.end();
        self.inner
            .running
            .entries
            .remove(self.entry.session, |other| Arc::ptr_eq(other, &self.entry));
        // The end of a stream also removes the entry.
        if was_told && lock(&self.entry.stream).is_none() {
            self.inner.deferred_writes.add(DeferredWrite::Unregister {
                session: self.entry.session,
                rpc: self.entry.rpc.clone(),
            });
        }
    }
}

/// Starts a request. `None` if a request with this key already runs here.
pub(crate) fn run(
    inner: &Arc<Inner>,
    session: SessionKey,
    rpc: String,
    deadline: Duration,
) -> Option<Running> {
    let now = Instant::now();
    let entry = Arc::new(RunningEntry {
        session,
        rpc,
        token: CancellationToken::new(),
        ends_at: now + deadline,
        stream: Mutex::default(),
        known: StoreKnowledge::new(),
        is_session_over: AtomicBool::new(false),
    });
    let this = &inner.running;
    let is_new = this
        .entries
        .insert_unless(session, Arc::clone(&entry), |other| other.rpc == entry.rpc);
    if !is_new {
        return None;
    }
    let was_empty = {
        let mut due = lock(&this.due);
        due.push_back((now + inner.register_after(), Arc::clone(&entry)));
        due.len() == 1
    };
    if was_empty {
        this.wake.notify_one();
    }
    Some(Running {
        cancelled: entry.token.clone(),
        entry,
        inner: Arc::clone(inner),
    })
}

/// Registers requests that run for long, until the node stops.
pub(crate) async fn register(inner: Arc<Inner>) {
    let mut flight = FuturesUnordered::new();
    let mut waiting: VecDeque<Arc<RunningEntry>> = VecDeque::new();
    let mut refresh = tokio::time::interval(AGAIN);
    refresh.tick().await;
    loop {
        let (ready, next) = inner.running.take_due(Instant::now());
        waiting.extend(ready);
        while flight.len() < AT_ONCE {
            let Some(entry) = waiting.pop_front() else {
                break;
            };
            flight.push(register_one(Arc::clone(&inner), entry));
        }
        let sleep = async {
            match next {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = inner.stop.cancelled() => return,
            _ = refresh.tick() => inner.running.resync(),
            () = sleep => {}
            Some(()) = flight.next() => {}
            () = inner.running.wake.notified() => {}
        }
    }
}

async fn register_one(inner: Arc<Inner>, entry: Arc<RunningEntry>) {
    // From here on, the end of the request removes the entry from the store.
    if !entry.known.tell() {
        return;
    }
    let nonce = *lock(&entry.stream);
    let deadline_in = entry.ends_at.saturating_duration_since(Instant::now());
    let register =
        inner
            .guarded_store
            .store
            .register(entry.session, &entry.rpc, inner.id, nonce, deadline_in);
    let reply = inner
        .guarded_store
        .call("register", CALL_WITHIN, register)
        .await;
    match reply {
        Ok(Registered::Cancelled) => {
            metrics::counter!("cancels_total", "outcome" => "early").increment(1);
            entry.token.cancel();
        }
        Ok(Registered::Ended) => {
            metrics::counter!("cancels_total", "outcome" => "ended").increment(1);
            entry.end();
            // The message `Ended` was lost, or is on its way.
            inner.session_ended(entry.session);
        }
        Ok(Registered::Full) => {
            metrics::counter!("mcp_register_total", "outcome" => "full").increment(1);
        }
        Ok(Registered::Done) | Err(_) => {}
    }
    // The request or its stream ended meanwhile. The removal of the entry may have been applied
    // before the entry was written.
    if entry.known.is_over() {
        inner.deferred_writes.add(DeferredWrite::Unregister {
            session: entry.session,
            rpc: entry.rpc.clone(),
        });
    }
}
