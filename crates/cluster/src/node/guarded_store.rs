//! Access to the store with deadlines and a circuit breaker, and the state that replies reveal.

use std::{
    future::Future,
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
    time::Duration,
};

use futures_util::poll;
use tokio::{
    sync::watch,
    time::{Instant, timeout_at},
};

use super::{breaker::Breaker, instruments::RoundTrips, slowness::Slowness};
use crate::{
    lock,
    store::{self, Store, StoreError},
};

/// A `begin` that takes longer is slow (STREAM-17.1 *Slow Redis*).
const SLOW: Duration = Duration::from_millis(50);

/// A store behind a circuit breaker.
#[derive(Debug)]
pub(super) struct GuardedStore {
    pub(super) store: Arc<dyn Store>,
    breaker: Mutex<Breaker>,
    /// False while no operation failed recently. A success then needs no lock.
    troubled: AtomicBool,
    /// Raised when the store returns after an outage.
    recovered: watch::Sender<u64>,
    recovered_at: Mutex<Option<Instant>>,
    pub(super) slowness: Slowness,
    round_trips: RoundTrips,
}

impl GuardedStore {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            breaker: Mutex::default(),
            troubled: AtomicBool::new(false),
            recovered: watch::Sender::new(0),
            recovered_at: Mutex::default(),
            slowness: Slowness::default(),
            round_trips: RoundTrips::default(),
        }
    }

    /// Runs an operation unless the breaker is open.
    pub(super) async fn call<T>(
        &self,
        op: &'static str,
        within: Duration,
        operation: impl Future<Output = store::Result<T>>,
    ) -> store::Result<T> {
        if self.troubled.load(Ordering::Acquire) && !lock(&self.breaker).admit(Instant::now()) {
            return Err(StoreError::Down("the breaker is open".to_owned()));
        }
        self.call_always(op, within, operation).await
    }

    /// Runs an operation even while the breaker is open. For beats, which are few and regular.
    pub(super) async fn call_always<T>(
        &self,
        op: &'static str,
        within: Duration,
        operation: impl Future<Output = store::Result<T>>,
    ) -> store::Result<T> {
        let started = Instant::now();
        let mut operation = pin!(operation);
        // The memory store completes at once and needs no timer.
        let result = match poll!(operation.as_mut()) {
            Poll::Ready(result) => result,
            Poll::Pending => timeout_at(started + within, operation)
                .await
                .unwrap_or_else(|_| Err(StoreError::Down(format!("{op}: no answer in time")))),
        };
        let now = Instant::now();
        let took = now.duration_since(started);
        self.round_trips.record(op, took.as_secs_f64());
        if op == "begin" {
            self.slowness.note(took, SLOW);
        }
        match &result {
            // A refusal is a reply, too.
            Ok(_) | Err(StoreError::Refused(_)) => {
                if self.troubled.load(Ordering::Acquire) {
                    self.succeeded(now);
                }
            }
            Err(StoreError::Down(_)) => self.failed(op, now),
            Err(error @ StoreError::Corrupt(_)) => {
                tracing::error!(op, %error, "the store answered what it never should");
            }
        }
        result
    }

    fn succeeded(&self, now: Instant) {
        let was_away = {
            let mut breaker = lock(&self.breaker);
            let was_away = breaker.success(now);
            self.troubled.store(!breaker.is_quiet(), Ordering::Release);
            was_away
        };
        if was_away {
            metrics::gauge!("redis_breaker_state").set(0.0);
            tracing::info!("the store is back");
            *lock(&self.recovered_at) = Some(now);
            self.recovered.send_modify(|count| *count += 1);
        }
    }

    fn failed(&self, op: &'static str, now: Instant) {
        let mut breaker = lock(&self.breaker);
        let was_open = breaker.is_open();
        breaker.failure(now);
        self.troubled.store(true, Ordering::Release);
        if breaker.is_open() && !was_open {
            metrics::gauge!("redis_breaker_state").set(1.0);
            tracing::warn!(op, "the store does not answer");
        }
    }

    /// Whether the breaker is open.
    pub(super) fn is_open(&self) -> bool {
        self.troubled.load(Ordering::Acquire) && lock(&self.breaker).is_open()
    }

    /// Time of the first failure since the last success.
    pub(super) fn failing_since(&self) -> Option<Instant> {
        if !self.troubled.load(Ordering::Acquire) {
            return None;
        }
        lock(&self.breaker).failing_since()
    }

    /// Time at which the store last returned after an outage.
    pub(super) fn recovered_at(&self) -> Option<Instant> {
        *lock(&self.recovered_at)
    }

    /// Counter that changes whenever the store returns after an outage.
    pub(super) fn recoveries(&self) -> watch::Receiver<u64> {
        self.recovered.subscribe()
    }
}
