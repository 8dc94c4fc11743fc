//! Numbers of held and used permits, and whether a change must be reported. Contains only atomics:
//! `tests/it/orders.rs` runs this file through every order of events that the memory model allows.

use super::atomic::{AtomicBool, AtomicU64, Ordering};

/// Held and used permits in one number, so that they are always read together: the upper and the
/// lower half.
#[derive(Debug)]
pub(super) struct Counts {
    packed: AtomicU64,
    /// The last reply of the store had no free permits. Calls may wait for permits that are
    /// returned here.
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

    /// Whether the last reply of the store had no free permits.
    pub(super) fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Relaxed)
    }

    /// Takes a permit if fewer than `bound` are used; `None` means fewer than are held. Returns the
    /// numbers of held and used permits after it.
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

    /// Returns a permit. True if the store has no free permits, so the caller must wake a waiting
    /// call.
    #[must_use]
    pub(super) fn leave(&self) -> bool {
        self.packed.fetch_sub(1, Ordering::AcqRel);
        self.is_full.load(Ordering::Relaxed)
    }

    /// Changes the number of held permits. Returns the number of used permits.
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

    /// Applies a reply of the store: the number of held permits, and whether none is free. A call
    /// that finds no permit after this is woken by the next return.
    pub(super) fn granted(&self, held: u64, is_full: bool) {
        // Stored before the number. A call that leaves after the change of the number sees this
        // flag. A call that left before it freed a permit for the next `enter`. In the other order
        // both could miss each other, also on x86.
        self.is_full.store(is_full, Ordering::Relaxed);
        self.hold(|_, _| held);
    }
}

const fn split(packed: u64) -> (u64, u64) {
    (packed >> 32, packed & 0xffff_ffff)
}

/// Whether an entry is on a list, or is being processed.
#[derive(Debug)]
pub(super) struct ListedFlag(AtomicBool);

impl ListedFlag {
    pub(super) fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Lists the entry. True if it was not listed, so the caller adds it to the list.
    #[must_use]
    pub(super) fn set(&self) -> bool {
        !self.0.swap(true, Ordering::AcqRel)
    }

    /// Ends the processing. It sees all changes of callers that found the entry listed; later
    /// callers can list it again.
    pub(super) fn clear(&self) {
        // A swap, because after a store the next read could return the older value.
        self.0.swap(false, Ordering::AcqRel);
    }
}
