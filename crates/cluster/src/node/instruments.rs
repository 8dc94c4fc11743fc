//! Instruments that are made on first use and kept: a look-up in the recorder costs more than counting.

use std::{fmt, sync::OnceLock};

use metrics::Histogram;

/// Instruments of one metric by the values of its labels. Start the metrics before the first use, or they go nowhere.
pub(super) struct Kept<K, I, const N: usize>([OnceLock<(K, I)>; N]);

impl<K: Copy + PartialEq, I, const N: usize> Kept<K, I, N> {
    /// Uses the instrument of `key`. Beyond `N` keys it is made anew each time.
    fn with(&self, key: K, make: impl Fn() -> I, act: impl Fn(&I)) {
        for slot in &self.0 {
            // Somebody else may have taken the empty place for another key meanwhile.
            let (known, instrument) = slot.get_or_init(|| (key, make()));
            if *known == key {
                return act(instrument);
            }
        }
        act(&make());
    }
}

impl<K, I, const N: usize> Default for Kept<K, I, N> {
    fn default() -> Self {
        Self(std::array::from_fn(|_| OnceLock::new()))
    }
}

impl<K, I, const N: usize> fmt::Debug for Kept<K, I, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kept").finish_non_exhaustive()
    }
}

/// `redis_rtt_seconds` by operation.
pub(super) type RoundTrips = Kept<&'static str, Histogram, 24>;

impl RoundTrips {
    pub(super) fn record(&self, op: &'static str, seconds: f64) {
        self.with(
            op,
            || metrics::histogram!("redis_rtt_seconds", "op" => op),
            |histogram| histogram.record(seconds),
        );
    }
}
