//! Metric instruments that are created on first use and kept, because a lookup in the recorder is
//! slower than the update.

use std::{fmt, sync::OnceLock};

use metrics::Histogram;

/// Instruments of one metric by label value. Start the metrics recorder first; earlier instruments
/// record nothing.
pub(super) struct InstrumentCache<K, I, const N: usize>([OnceLock<(K, I)>; N]);

impl<K: Copy + PartialEq, I, const N: usize> InstrumentCache<K, I, N> {
    /// Applies `act` to the instrument of `key`. Beyond `N` keys, the instrument is created on each
    /// use.
    fn with(&self, key: K, make: impl Fn() -> I, act: impl Fn(&I)) {
        for slot in &self.0 {
            // Another thread may have filled this slot with another key.
            let (known, instrument) = slot.get_or_init(|| (key, make()));
            if *known == key {
                return act(instrument);
            }
        }
        act(&make());
    }
}

impl<K, I, const N: usize> Default for InstrumentCache<K, I, N> {
    fn default() -> Self {
        Self(std::array::from_fn(|_| OnceLock::new()))
    }
}

impl<K, I, const N: usize> fmt::Debug for InstrumentCache<K, I, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kept").finish_non_exhaustive()
    }
}

/// `redis_rtt_seconds` by operation.
pub(super) type RoundTrips = InstrumentCache<&'static str, Histogram, 24>;

impl RoundTrips {
    pub(super) fn record(&self, op: &'static str, seconds: f64) {
        self.with(
            op,
            || metrics::histogram!("redis_rtt_seconds", "op" => op),
            |histogram| histogram.record(seconds),
        );
    }
}
