//! Which calls the log keeps (METER-7).
//!
//! A tenant has a bucket of rows on each node: it fills by its rows a day, and holds an hour's
//! worth. While it is more than half full, every call is kept. Below, errors and slow calls are
//! kept, and of the others each `weight`-th, by its id. A row stands for `weight` calls. When even
//! errors are too many, they are sampled too.

use std::{collections::HashMap, sync::Arc};

use portolan_model::id::TenantId;
use uuid::Uuid;

use crate::Histogram;

/// Seconds of rows that a bucket holds.
const HOLDS: f64 = 3_600.0;

/// Most tools whose durations are known at once; beyond, none is slow.
const TOOLS: usize = 20_000;

/// Calls of a tool after which it is known what is slow.
const KNOWN_AFTER: u64 = 256;

/// How many calls later the bound of a tool is taken anew.
const AGAIN_AFTER: u64 = 256;

/// Calls after which those before them are forgotten.
const FADES_AFTER: u64 = 16_384;

/// A call, as the budget judges it.
#[derive(Debug, Clone)]
pub struct Judged<'a> {
    /// The tenant.
    pub tenant: TenantId,
    /// The id of the call: whether it is in a sample depends on it alone.
    pub id: Uuid,
    /// The tool.
    pub item: &'a Arc<str>,
    /// It did not end well.
    pub is_error: bool,
    /// How long it took, in microseconds.
    pub took_us: u64,
}

/// The budgets of all tenants on a node.
#[derive(Debug)]
pub struct Budget {
    rows_a_second: f64,
    tenants: HashMap<TenantId, RowBucket, foldhash::fast::RandomState>,
    tools: HashMap<(TenantId, Arc<str>), Durations, foldhash::fast::RandomState>,
}

#[derive(Debug)]
struct RowBucket {
    /// Rows that may be written; below 0 down to as much again for errors and slow calls.
    level: f64,
    /// When it was filled, in seconds.
    filled: f64,
    /// Plain calls of the present second and of the last one.
    plain: [u32; 2],
    second: i64,
    /// Plain calls are sampled: from half of a bucket until three quarters of one.
    is_sampled: bool,
    /// Errors and slow calls are sampled too: below a whole bucket of debt, until half of one.
    is_flooded: bool,
}

#[derive(Debug, Default)]
struct Durations {
    seen: Histogram,
    /// Those before, until as many were seen again: a tool may change.
    before: Histogram,
    /// Slower than this is slow.
    bound_us: Option<f64>,
    /// Calls until the bound is taken anew.
    until_next: u64,
}

impl Durations {
    /// True for a call above the 99th percentile of the calls before it.
    #[expect(clippy::cast_precision_loss, reason = "microseconds of a call")]
    fn is_slow(&mut self, took_us: u64) -> bool {
        let is_slow = self.bound_us.is_some_and(|bound| took_us as f64 > bound);
        self.seen.record(took_us);
        self.until_next = self.until_next.saturating_sub(1);
        if self.until_next == 0 {
            self.until_next = AGAIN_AFTER;
            let mut all = self.before.clone();
            all.merge(&self.seen);
            if all.count() >= KNOWN_AFTER {
                // Twice the percentile's error away, so that equal calls are not slow.
                self.bound_us = all.quantile(0.99).map(|bound| bound * 1.09);
            }
            if self.seen.count() >= FADES_AFTER {
                self.before = std::mem::take(&mut self.seen);
            }
        }
        is_slow
    }
}

impl Budget {
    /// Budgets of so many rows a day.
    pub fn new(rows_a_day: u32) -> Self {
        Self {
            rows_a_second: f64::from(rows_a_day) / 86_400.0,
            tenants: HashMap::default(),
            tools: HashMap::default(),
        }
    }

    /// The weight with which a call is kept, or `None`. `now`: Unix time in seconds.
    pub fn weigh(&mut self, call: &Judged<'_>, now: f64) -> Option<u32> {
        let is_slow = self.is_slow(call);
        let (rate, holds) = (self.rows_a_second, self.rows_a_second * HOLDS);
        let bucket = self.tenants.entry(call.tenant).or_insert(RowBucket {
            level: holds,
            filled: now,
            plain: [0, 0],
            second: 0,
            is_sampled: false,
            is_flooded: false,
        });
        bucket.fill(now, rate, holds);
        let weight = if (call.is_error || is_slow) && !bucket.is_flooded {
            1
        } else {
            bucket.plain[0] = bucket.plain[0].saturating_add(1);
            if bucket.is_sampled {
                bucket.weight(rate)
            } else {
                1
            }
        };
        if !is_in_sample(call.id, weight) {
            return None;
        }
        bucket.level = (bucket.level - 1.0).max(-holds - 1.0);
        Some(weight)
    }

    /// Forgets tenants whose bucket is full again, and the durations of all tools if they are too
    /// many. For the end of a batch.
    pub fn tidy(&mut self, now: f64) {
        let (rate, holds) = (self.rows_a_second, self.rows_a_second * HOLDS);
        self.tenants.retain(|_, bucket| {
            bucket.fill(now, rate, holds);
            bucket.level < holds
        });
        if self.tools.len() >= TOOLS {
            self.tools.clear();
        }
    }

    fn is_slow(&mut self, call: &Judged<'_>) -> bool {
        let place = (call.tenant, Arc::clone(call.item));
        if self.tools.len() >= TOOLS && !self.tools.contains_key(&place) {
            return false;
        }
        let known = self.tools.entry(place).or_default();
        known.is_slow(call.took_us)
    }
}

impl RowBucket {
    #[expect(clippy::cast_possible_truncation, reason = "Unix time in seconds")]
    fn fill(&mut self, now: f64, rate: f64, holds: f64) {
        let since = (now - self.filled).max(0.0);
        self.level = (self.level + since * rate).min(holds);
        self.filled = self.filled.max(now);
        // Two bounds each, so that a bucket at a bound does not change its mind at every call.
        self.is_sampled = self.level < holds * if self.is_sampled { 0.75 } else { 0.5 };
        self.is_flooded = self.level < -holds * if self.is_flooded { 0.5 } else { 1.0 };
        let second = now as i64;
        if second != self.second {
            let last = if second == self.second + 1 {
                self.plain[0]
            } else {
                0
            };
            self.plain = [0, last];
            self.second = second;
        }
    }

    /// The weight at which the present rate fits into the budget: a power of two, so that a sample
    /// of a higher weight is a part of that of a lower one.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to the range of the type"
    )]
    fn weight(&self, rate: f64) -> u32 {
        let plain = f64::from(self.plain[0].max(self.plain[1]));
        let wanted = (plain / rate).clamp(1.0, f64::from(1 << 30));
        (wanted.ceil() as u32).next_power_of_two()
    }
}

/// Whether a call is in the sample of a weight. The last eight bytes of a UUIDv7 are random.
fn is_in_sample(id: Uuid, weight: u32) -> bool {
    let (_, random) = id.as_u64_pair();
    random & u64::from(weight - 1) == 0
}
