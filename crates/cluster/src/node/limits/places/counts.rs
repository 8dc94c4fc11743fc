//! How many places are held and used, and whether somebody has to be told of a change. Atomics and nothing else: `tests/it/orders.rs` runs
//! this very file through every order of events that the memory model allows.

use super::atomic::{AtomicBool, AtomicU64, Ordering};

/// Places held and used, in one number so that they are never seen apart: the upper and the lower half.
#[derive(Debug)]
pub(super) struct Counts {
    packed: AtomicU64,
    /// The store had none left when it was asked last: somebody may wait for what is given back here.
    is_full: AtomicBool,
}

impl Counts {
    pub(super) fn new() -> Self {
        Self {
            packed: AtomicU64::new(0),
            is_full: AtomicBool::new(false),
        }
    }

    pub(super) fn get(&self) -> (u64, u64) {
        split(self.packed.load(Ordering::Acquire))
    }

    /// Whether the store had none left when it was asked last.
    pub(super) fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Relaxed)
    }

    /// Uses one more if fewer than `bound` are used; `None`: than are held. Says how many are held and used then.
    pub(super) fn enter(&self, bound: Option<u64>) -> Option<(u64, u64)> {
        let mut packed = self.packed.load(Ordering::Relaxed);
        loop {
            let (held, used) = split(packed);
            if used >= bound.unwrap_or(held) {
                return None;
            }
            match self.packed.compare_exchange_weak(
                packed,
                packed + 1,
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Some((held, used + 1)),
                Err(now) => packed = now,
            }
        }
    }

    /// Uses one less. True: the store has no more of them, and whoever waits is to be told.
    #[must_use]
    pub(super) fn leave(&self) -> bool {
        self.packed.fetch_sub(1, Ordering::AcqRel);
        self.is_full.load(Ordering::Relaxed)
    }

    /// Changes what is held. Says how many are used.
    pub(super) fn hold(&self, change: impl Fn(u64, u64) -> u64) -> u64 {
        let mut packed = self.packed.load(Ordering::Acquire);
        loop {
            let (held, used) = split(packed);
            let next = (change(held, used).min(u64::from(u32::MAX)) << 32) | used;
            match self.packed.compare_exchange_weak(
                packed,
                next,
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => return used,
                Err(now) => packed = now,
            }
        }
    }

    /// The store's answer: so many are held, and whether there are no more. Whoever finds no place after this is told of the next one
    /// that is given back.
    pub(super) fn granted(&self, held: u64, is_full: bool) {
        // Before the number. Who leaves after the change of the number sees this; who left before it made room for the next `enter`. The
        // other way round both could look past each other, also on x86.
        self.is_full.store(is_full, Ordering::Relaxed);
        self.hold(|_, _| held);
    }
}

const fn split(packed: u64) -> (u64, u64) {
    (packed >> 32, packed & 0xffff_ffff)
}

/// Whether something stands on a list, or is being looked after.
#[derive(Debug)]
pub(super) struct Listed(AtomicBool);

impl Listed {
    pub(super) fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// True: it did not, and the caller puts it there.
    #[must_use]
    pub(super) fn set(&self) -> bool {
        !self.0.swap(true, Ordering::AcqRel)
    }

    /// It was looked after. What those changed who found it listed is seen from here on; later ones find it free.
    pub(super) fn clear(&self) {
        // A swap and no store, which would let the next look read what stood there before.
        self.0.swap(false, Ordering::AcqRel);
    }
}
