//! The GET stream of a session with a server of the session era (MCP-X-23).
//!
//! It is read while calls are open whose clients can be asked, and a moment longer, because the
//! next call may come soon.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use portolan_model::Digest;
use portolan_upstream::ExchangeEvent;
use tokio::{
    sync::{mpsc, watch},
    time::Instant,
};

/// Most messages that wait for one call.
const WORDS: usize = 64;

/// The GET streams that this node reads.
#[derive(Debug, Default)]
pub(crate) struct UpstreamGetStreams {
    pub(crate) by_session: Mutex<HashMap<Digest, Arc<Reader>>>,
}

#[derive(Debug)]
pub(crate) struct Reader {
    pub(crate) calls: Mutex<Calls>,
    /// True once it is known whether the server has a stream.
    pub(crate) known: watch::Sender<bool>,
}

#[derive(Debug, Default)]
pub(crate) struct Calls {
    /// The open calls, the newest last.
    open: Vec<(u64, mpsc::Sender<ExchangeEvent>)>,
    made: u64,
    idle_since: Option<Instant>,
}

/// The subscription of a call to the stream, until it is dropped.
#[derive(Debug)]
pub(crate) struct Subscriber {
    pub(crate) heard: mpsc::Receiver<ExchangeEvent>,
    pub(crate) number: u64,
    pub(crate) reader: Arc<Reader>,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Subscriber {
    /// The next message of the server for this call. Cancel safe.
    pub(crate) async fn next(&mut self) -> Option<ExchangeEvent> {
        self.heard.recv().await
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        let mut calls = lock(&self.reader.calls);
        calls.open.retain(|(number, _)| *number != self.number);
        if calls.open.is_empty() {
            calls.idle_since = Some(Instant::now());
        }
    }
}

impl Reader {
    pub(crate) fn subscribe(self: &Arc<Self>) -> Subscriber {
        let (sender, heard) = mpsc::channel(WORDS);
        let mut calls = lock(&self.calls);
        calls.made += 1;
        let number = calls.made;
        calls.open.push((number, sender));
        calls.idle_since = None;
        Subscriber {
            heard,
            number,
            reader: Arc::clone(self),
        }
    }

    /// MCP-X-23: the only open call, else the newest.
    pub(crate) fn newest(&self) -> Option<mpsc::Sender<ExchangeEvent>> {
        lock(&self.calls)
            .open
            .last()
            .map(|(_, sender)| sender.clone())
    }

    pub(crate) fn is_idle_for(&self, time: Duration) -> bool {
        let calls = lock(&self.calls);
        calls.open.is_empty() && calls.idle_since.is_some_and(|since| since.elapsed() > time)
    }
}
