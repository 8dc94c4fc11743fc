//! Requests that run here, and how a cancellation finds them (`streams.md` §6 step 3, §14).

mod known;

use std::{
    collections::VecDeque,
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{self, AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::{StreamExt, stream::FuturesUnordered};
use tokio::{sync::Notify, time::Instant};
use tokio_util::sync::CancellationToken;

use self::known::Known;
use super::{Inner, by_session::BySession, deferred_writes::DeferredWrite, rng::NodeRng};
use crate::{
    lock,
    store::{Nonce, Registered, SessionKey},
};

/// Registrations under way at once.
const AT_ONCE: usize = 64;
/// Requests that run so long are registered again: a cancellation whose message was lost is found then.
const AGAIN: Duration = Duration::from_secs(15);

#[derive(Debug)]
struct Entry {
    session: SessionKey,
    rpc: String,
    token: CancellationToken,
    ends_at: Instant,
    stream: Mutex<Option<Nonce>>,
    known: Known,
    /// Set before the token is cancelled.
    is_session_over: AtomicBool,
}

impl Entry {
    fn end(&self) {
        self.is_session_over.store(true, Ordering::Release);
        self.token.cancel();
    }
}

/// The requests of a node.
#[derive(Debug)]
pub(super) struct RunningCalls {
    entries: BySession<Arc<Entry>>,
    /// To be registered, in order of time.
    due: Mutex<VecDeque<(Instant, Arc<Entry>)>>,
    /// To be registered at once: they have a stream now.
    at_once: Mutex<Vec<Arc<Entry>>>,
    wake: Notify,
}

/// A request that runs. Dropping it says that it is over.
pub struct Running {
    /// The request is to stop: its client, or the end of its session, said so.
    pub cancelled: CancellationToken,
    entry: Arc<Entry>,
    inner: Arc<Inner>,
}

impl Running {
    /// Whether the request was stopped because its session was ended, by whatever node. That is no cancellation: whoever waits is told
    /// that there is no such session.
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
        // The end of a stream takes the entry with it.
        if was_told && lock(&self.entry.stream).is_none() {
            self.inner.deferred_writes.add(DeferredWrite::Unregister {
                session: self.entry.session,
                rpc: self.entry.rpc.clone(),
            });
        }
    }
}

impl RunningCalls {
    pub(super) fn new(rng: &NodeRng) -> Self {
        Self {
            entries: BySession::new(rng),
            due: Mutex::default(),
            at_once: Mutex::default(),
            wake: Notify::new(),
        }
    }

    /// `None` if a request of this key runs here already.
    pub(super) fn run(
        inner: &Arc<Inner>,
        session: SessionKey,
        rpc: &str,
        deadline: Duration,
    ) -> Option<Running> {
        let now = Instant::now();
        let entry = Arc::new(Entry {
            session,
            rpc: rpc.to_owned(),
            token: CancellationToken::new(),
            ends_at: now + deadline,
            stream: Mutex::default(),
            known: Known::new(),
            is_session_over: AtomicBool::new(false),
        });
        let this = &inner.running;
        let is_new = this
            .entries
            .insert_unless(session, Arc::clone(&entry), |other| other.rpc == rpc);
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

    /// The request answers on a stream: a cancellation has to find that stream's owner.
    pub(super) fn streams(&self, session: SessionKey, rpc: &str, nonce: Nonce) {
        if let Some(entry) = self.entries.find(session, |entry| entry.rpc == rpc) {
            *lock(&entry.stream) = Some(nonce);
            lock(&self.at_once).push(entry);
            self.wake.notify_one();
        }
    }

    /// The stream is about to be closed, which takes the entry in the store along. From here on nobody is told of the request: an entry
    /// that came after the end would be taken away by nothing.
    pub(super) fn closes(&self, session: SessionKey, rpc: &str) {
        if let Some(entry) = self.entries.find(session, |entry| entry.rpc == rpc) {
            entry.known.end();
        }
    }

    /// True if the request runs here.
    pub(super) fn cancel(&self, session: SessionKey, rpc: &str) -> bool {
        let entry = self.entries.find(session, |entry| entry.rpc == rpc);
        if let Some(entry) = &entry {
            entry.token.cancel();
        }
        entry.is_some()
    }

    pub(super) fn end(&self, session: SessionKey) {
        for entry in self.entries.of(session) {
            entry.end();
        }
    }

    /// messages may have been lost: every known request is registered again, which tells of its cancellation.
    pub(super) fn resync(&self) {
        let known = self.entries.all();
        lock(&self.at_once).extend(known.into_iter().filter(|entry| entry.known.is_told()));
        self.wake.notify_one();
    }

    /// What is to be registered now, and when to look again.
    fn take_due(&self, now: Instant) -> (Vec<Arc<Entry>>, Option<Instant>) {
        let mut ready = std::mem::take(&mut *lock(&self.at_once));
        let mut due = lock(&self.due);
        while let Some((at, entry)) = due.front() {
            // What is over already costs nothing: that is nearly every call.
            let is_over = entry.known.is_over();
            if !is_over && *at > now {
                break;
            }
            if let Some((_, entry)) = due.pop_front()
                && !is_over
            {
                ready.push(entry);
            }
        }
        let next = due.front().map(|(at, _)| *at);
        drop(due);
        ready.retain(|entry| !entry.known.is_over());
        (ready, next)
    }
}

/// Makes requests known that run for long, until the node stops.
pub(super) async fn register(inner: Arc<Inner>) {
    let mut flight = FuturesUnordered::new();
    let mut waiting: VecDeque<Arc<Entry>> = VecDeque::new();
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

async fn register_one(inner: Arc<Inner>, entry: Arc<Entry>) {
    // From here on the end of the request takes the store's entry away.
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
        .call("register", inner.settings.call_within, register)
        .await;
    match reply {
        Ok(Registered::Cancelled) => {
            metrics::counter!("cancels_total", "outcome" => "early").increment(1);
            entry.token.cancel();
        }
        Ok(Registered::Ended) => {
            metrics::counter!("cancels_total", "outcome" => "ended").increment(1);
            entry.end();
            // Its message did not come here, or is on its way.
            inner.session_ended(entry.session);
        }
        Ok(Registered::Full) => {
            metrics::counter!("mcp_register_total", "outcome" => "full").increment(1);
        }
        Ok(Registered::Done) | Err(_) => {}
    }
    // It ended meanwhile, or its stream did: what takes the entry away may have come before the entry.
    if entry.known.is_over() {
        inner.deferred_writes.add(DeferredWrite::Unregister {
            session: entry.session,
            rpc: entry.rpc.clone(),
        });
    }
}
