//! Budgets per key, in this process: registrations, metadata fetches, refreshes, authorization
//! requests.
//!
//! One number per key ([`Gcra`]), no background work. Each node has its own budgets. These limits protect the node and decide nothing about security.
//! [`crate::throttle::tries`] counts security limits over all nodes, and uses this module for the
//! count in the process.

use portolan_model::{Gcra, Timestamp};
use quick_cache::sync::Cache;
use time::Duration;

/// Most keys in memory. The least used are dropped, which gives them a full budget.
const KEYS: usize = 50_000;

/// A budget: `burst` at once, and as many again in each `per`.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// Most at once.
    pub burst: i32,
    /// The time in which a used-up budget is full again.
    pub per: Duration,
}

/// The budgets of one kind.
#[derive(Debug)]
pub struct Rates {
    rate: Gcra,
    /// The buckets' numbers, in microseconds since 1970.
    arrivals: Cache<String, u64>,
}

fn micros(now: Timestamp) -> u64 {
    u64::try_from(now.unix_timestamp_nanos() / 1_000).unwrap_or_default()
}

impl Rates {
    /// Creates full budgets.
    pub fn new(budget: Budget) -> Self {
        let burst = u32::try_from(budget.burst).unwrap_or_default();
        Self {
            rate: Gcra::per(burst, budget.per.unsigned_abs()),
            arrivals: Cache::new(KEYS),
        }
    }

    /// Takes one from the key's budget. If it is empty, returns how long to wait.
    pub fn take(&self, key: &str, now: Timestamp) -> Result<(), Duration> {
        match self.rate.take_one(self.arrivals.get(key), micros(now)) {
            Ok(arrival) => {
                self.arrivals.insert(key.to_owned(), arrival);
                Ok(())
            }
            Err(wait) => Err(Duration::try_from(wait).unwrap_or(Duration::MAX)),
        }
    }

    /// The number of requests that the key's budget still admits at once.
    pub fn left(&self, key: &str, now: Timestamp) -> u64 {
        let now = micros(now);
        let arrival = self.arrivals.get(key).map_or(now, |known| known.max(now));
        let full = now + self.rate.burst() * self.rate.interval_us();
        full.saturating_sub(arrival) / self.rate.interval_us()
    }

    /// Counts one that another budget admitted, down to an empty budget.
    pub fn note(&self, key: &str, now: Timestamp) {
        let now = micros(now);
        let arrival = self.arrivals.get(key).map_or(now, |known| known.max(now));
        let empty = now + self.rate.burst() * self.rate.interval_us();
        let arrival = (arrival + self.rate.interval_us()).min(empty);
        self.arrivals.insert(key.to_owned(), arrival);
    }

    /// Gives one back.
    pub fn give_back(&self, key: &str) {
        if let Some(arrival) = self.arrivals.get(key) {
            let arrival = arrival.saturating_sub(self.rate.interval_us());
            self.arrivals.insert(key.to_owned(), arrival);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_spent_and_fills_again() {
        let rates = Rates::new(Budget {
            burst: 3,
            per: Duration::seconds(30),
        });
        let start = Timestamp::UNIX_EPOCH;
        for left in [2, 1, 0] {
            assert_eq!(rates.take("a", start), Ok(()));
            assert_eq!(rates.left("a", start), left);
        }
        assert_eq!(rates.take("a", start), Err(Duration::seconds(10)));
        assert_eq!(rates.take("b", start), Ok(()), "another key has its own");
        assert_eq!(rates.take("a", start + Duration::seconds(10)), Ok(()));
        assert!(rates.take("a", start + Duration::seconds(10)).is_err());
    }
}
