//! Tokens of rates and slots of simultaneous use, which nodes share (STREAM-16).

use std::time::Duration;

use portolan_model::{Gcra, gcra::Request};

/// Request for tokens of one bucket of a rate limit (STREAM-16.1). All buckets of one tenant are on
/// one shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakeTokens {
    /// Shard part of the key: the tenant, or the address block.
    pub shard: String,
    /// Name of the bucket within the shard.
    pub bucket: String,
    /// Time that one token stands for, in microseconds.
    pub interval_us: u64,
    /// Capacity of the bucket in tokens.
    pub burst: u64,
    /// Tokens wanted.
    pub want: u64,
    /// Tokens that were spent without a grant. They are always taken.
    pub debt: u64,
    /// Tokens that were granted earlier and not used. They are returned first, up to the capacity
    /// of the bucket.
    pub back: u64,
}

impl TakeTokens {
    /// Rate of the bucket, within exact arithmetic.
    pub(crate) const fn rate(&self) -> Gcra {
        Gcra::new(self.interval_us, self.burst)
    }

    /// The tokens, for [`Gcra::take`].
    pub(crate) const fn request(&self) -> Request {
        Request {
            want: self.want,
            debt: self.debt,
            back: self.back,
        }
    }
}

/// Reply for one bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TakenTokens {
    /// Tokens granted.
    pub granted: u64,
    /// Time until one token, if none was granted.
    pub wait: Duration,
}

/// Request for a limit on simultaneous use (STREAM-16.2): the node's use and its wish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoldSlots {
    /// Shard part of the key: the tenant.
    pub shard: String,
    /// Name of the limit within the shard.
    pub bucket: String,
    /// Number that all nodes together may hold.
    pub limit: u64,
    /// Number that the node uses now. It is always granted, because the use exists already.
    pub used: u64,
    /// Number that the node wants to hold in total.
    pub want: u64,
}

impl HoldSlots {
    /// Returns the request with numbers whose sums a script represents exactly.
    pub(crate) fn bounded(&self) -> Self {
        /// Above any number of simultaneous uses.
        const MOST: u64 = 1 << 40;
        Self {
            limit: self.limit.min(MOST),
            used: self.used.min(MOST),
            want: self.want.min(MOST),
            ..self.clone()
        }
    }
}

/// Reply of `hold_slots`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldSlots {
    /// Number that this node holds from now on.
    pub held: u64,
    /// Number that the other nodes hold together.
    pub held_elsewhere: u64,
    /// Number that the other nodes reported as used.
    pub used_elsewhere: u64,
}
