//! Budgets per key, in this process: registrations, metadata fetches, refreshes, authorization
//! requests.
//!
//! The generic cell rate algorithm: one timestamp per key, no background work. Each node has its
//! own budgets. These limits protect the node and decide nothing about security.
//! [`crate::throttle::tries`] counts security limits over all nodes, and uses this module for
//! the count in the process.

use portolan_model::Timestamp;
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
    budget: Budget,
    /// Theoretical arrival time of the next request.
    next: Cache<String, Timestamp>,
}

impl Rates {
    /// Creates full budgets.
    pub fn new(budget: Budget) -> Self {
        Self {
            budget,
            next: Cache::new(KEYS),
        }
    }

    /// Takes one from the key's budget. If it is empty, returns how long to wait.
    pub fn take(&self, key: &str, now: Timestamp) -> Result<(), Duration> {
        let step = self.budget.per / self.budget.burst.max(1);
        let next = self.next.get(key).map_or(now, |next| next.max(now));
        let earliest = next + step - self.budget.per;
        if earliest > now {
            return Err(earliest - now);
        }
        self.next.insert(key.to_owned(), next + step);
        Ok(())
    }

    /// Counts one that another budget admitted, down to an empty budget.
    pub fn note(&self, key: &str, now: Timestamp) {
        let step = self.budget.per / self.budget.burst.max(1);
        let next = self.next.get(key).map_or(now, |next| next.max(now));
        let used_up = now + self.budget.per;
        self.next.insert(key.to_owned(), (next + step).min(used_up));
    }

    /// Gives one back.
    pub fn give_back(&self, key: &str) {
        if let Some(next) = self.next.get(key) {
            self.next.insert(
                key.to_owned(),
                next - self.budget.per / self.budget.burst.max(1),
            );
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
        for _ in 0..3 {
            assert_eq!(rates.take("a", start), Ok(()));
        }
        assert_eq!(rates.take("a", start), Err(Duration::seconds(10)));
        assert_eq!(rates.take("b", start), Ok(()), "another key has its own");
        assert_eq!(rates.take("a", start + Duration::seconds(10)), Ok(()));
        assert!(rates.take("a", start + Duration::seconds(10)).is_err());
    }
}
