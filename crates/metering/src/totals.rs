//! The sums of the calls of one key.

use crate::Histogram;

/// Times and sizes of one call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Measures {
    /// From the begin of the work to its answer, in microseconds.
    pub took_us: u64,
    /// The part of it at the API or upstream server, in microseconds.
    pub backend_us: u64,
    /// Bytes of the parameters.
    pub bytes_in: u64,
    /// Bytes of the answer.
    pub bytes_out: u64,
}

/// The sums of many calls.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Totals {
    /// Calls.
    pub calls: u64,
    /// Sum of [`Measures::bytes_in`].
    pub bytes_in: u64,
    /// Sum of [`Measures::bytes_out`].
    pub bytes_out: u64,
    /// Sum of [`Measures::took_us`].
    pub took_us: u64,
    /// Sum of [`Measures::backend_us`].
    pub backend_us: u64,
    /// The durations.
    pub durations: Histogram,
}

impl Totals {
    /// Adds a call.
    pub fn add(&mut self, call: Measures) {
        self.calls = self.calls.saturating_add(1);
        self.bytes_in = self.bytes_in.saturating_add(call.bytes_in);
        self.bytes_out = self.bytes_out.saturating_add(call.bytes_out);
        self.took_us = self.took_us.saturating_add(call.took_us);
        self.backend_us = self.backend_us.saturating_add(call.backend_us);
        self.durations.record(call.took_us);
    }

    /// Adds other sums.
    pub fn merge(&mut self, other: &Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.bytes_in = self.bytes_in.saturating_add(other.bytes_in);
        self.bytes_out = self.bytes_out.saturating_add(other.bytes_out);
        self.took_us = self.took_us.saturating_add(other.took_us);
        self.backend_us = self.backend_us.saturating_add(other.backend_us);
        self.durations.merge(&other.durations);
    }

    /// Sets all sums to 0, and keeps the capacity of the histogram.
    pub fn clear(&mut self) {
        (self.calls, self.bytes_in, self.bytes_out) = (0, 0, 0);
        (self.took_us, self.backend_us) = (0, 0);
        self.durations.clear();
    }
}
