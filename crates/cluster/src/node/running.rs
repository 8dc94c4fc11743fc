//! Requests that run on this node, and their cancellation (STREAM-6.3, STREAM-14).

pub(super) mod call;
mod known;

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex,
        atomic::{self, AtomicBool, Ordering},
    },
};

use tokio::{sync::Notify, time::Instant};
use tokio_util::sync::CancellationToken;

use self::known::StoreKnowledge;
use super::by_session::BySession;
use crate::{
    lock,
    rng::NodeRng,
    store::{Nonce, SessionKey},
};

#[derive(Debug)]
struct RunningEntry {
    session: SessionKey,
    rpc: String,
    token: CancellationToken,
    ends_at: Instant,
    stream: Mutex<Option<Nonce>>,
    known: StoreKnowledge,
    /// Set before the token is cancelled.
    is_session_over: AtomicBool,
}

impl RunningEntry {
    fn end(&self) {
        self.is_session_over.store(true, Ordering::Release);
        self.token.cancel();
    }
}

/// The requests of a node.
#[derive(Debug)]
pub(super) struct RunningCalls {
    entries: BySession<Arc<RunningEntry>>,
    /// Requests to be registered, in order of time.
    due: Mutex<VecDeque<(Instant, Arc<RunningEntry>)>>,
    /// Requests to be registered at once, because they have a stream now.
    at_once: Mutex<Vec<Arc<RunningEntry>>>,
    wake: Notify,
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

    /// Records the stream of a request, so that a cancellation finds the owner of the stream.
    pub(super) fn streams(&self, session: SessionKey, rpc: &str, nonce: Nonce) {
        if let Some(entry) = self.entries.find(session, |entry| entry.rpc == rpc) {
            *lock(&entry.stream) = Some(nonce);
            lock(&self.at_once).push(entry);
            self.wake.notify_one();
        }
    }

    /// Records that the stream is about to be closed, which also removes the entry from the store.
    /// The request is not registered any more, because an entry that is written after the close
    /// would never be removed.
    pub(super) fn closes(&self, session: SessionKey, rpc: &str) {
        if let Some(entry) = self.entries.find(session, |entry| entry.rpc == rpc) {
            entry.known.end();
        }
    }

    /// Cancels a request. True if it runs on this node.
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

    /// Registers every known request again, because messages may have been lost. The replies report
    /// cancellations.
    pub(super) fn resync(&self) {
        let known = self.entries.all();
        lock(&self.at_once).extend(known.into_iter().filter(|entry| entry.known.is_told()));
        self.wake.notify_one();
    }

    /// Returns the requests to be registered now, and the time of the next check.
    fn take_due(&self, now: Instant) -> (Vec<Arc<RunningEntry>>, Option<Instant>) {
        let mut ready = std::mem::take(&mut *lock(&self.at_once));
        let mut due = lock(&self.due);
        while let Some((at, entry)) = due.front() {
            // Requests that have ended are skipped. Nearly all calls end this early.
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
