//! Whether the store knows of a request that runs here. Atomics and nothing else: `tests/it/orders.rs` runs this very file through every
//! order of events that the memory model allows.

use super::atomic::{AtomicU8, Ordering};

/// Nobody else knows of it.
const LOCAL: u8 = 0;
/// The store knows it, or is being told.
const TOLD: u8 = 1;
/// It is over, or its stream is about to be, which takes the store's entry along.
const OVER: u8 = 2;

/// What the store knows of a request.
#[derive(Debug)]
pub(super) struct Known(AtomicU8);

impl Known {
    pub(super) fn new() -> Self {
        Self(AtomicU8::new(LOCAL))
    }

    /// Before the store is told. False: it is over, and nothing is to be told of it any more. Whoever told the store looks at
    /// [`Known::is_over`] afterwards, and takes the entry away again if it is.
    #[must_use]
    pub(super) fn tell(&self) -> bool {
        let tell = |was| (was != OVER).then_some(TOLD);
        self.0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, tell)
            .is_ok()
    }

    /// Whether the store was told, or is being told, of something that goes on.
    pub(super) fn is_told(&self) -> bool {
        self.0.load(Ordering::Acquire) == TOLD
    }

    pub(super) fn is_over(&self) -> bool {
        self.0.load(Ordering::Acquire) == OVER
    }

    /// It is over. True: the store may have an entry of it.
    pub(super) fn end(&self) -> bool {
        self.0.swap(OVER, Ordering::AcqRel) == TOLD
    }
}
