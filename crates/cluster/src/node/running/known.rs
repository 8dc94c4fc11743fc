//! Whether the store knows a request that runs on this node. Contains only atomics:
//! `tests/it/orders.rs` runs this file through every order of events that the memory model allows.

use super::atomic::{AtomicU8, Ordering};

/// Only this node knows the request.
const LOCAL: u8 = 0;
/// The store knows the request, or the registration is in flight.
const TOLD: u8 = 1;
/// The request has ended, or its stream is about to be closed, which removes the store's entry.
const OVER: u8 = 2;

/// Registration state of a request.
#[derive(Debug)]
pub(super) struct StoreKnowledge(AtomicU8);

impl StoreKnowledge {
    pub(super) fn new() -> Self {
        Self(AtomicU8::new(LOCAL))
    }

    /// Call before the registration. False if the request has ended and must not be registered.
    /// After the registration, the caller checks [`StoreKnowledge::is_over`] and removes the entry
    /// if it is true.
    #[must_use]
    pub(super) fn tell(&self) -> bool {
        let tell = |was| (was != OVER).then_some(TOLD);
        self.0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, tell)
            .is_ok()
    }

    /// Whether a running request is registered, or its registration is in flight.
    pub(super) fn is_told(&self) -> bool {
        self.0.load(Ordering::Acquire) == TOLD
    }

    pub(super) fn is_over(&self) -> bool {
        self.0.load(Ordering::Acquire) == OVER
    }

    /// Records the end of the request. True if the store may have an entry of it.
    pub(super) fn end(&self) -> bool {
        self.0.swap(OVER, Ordering::AcqRel) == TOLD
    }
}
