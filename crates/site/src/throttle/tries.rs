//! Security budgets, counted over all nodes (AUTH-L6): sign-in attempts, codes, sign-ups, messages.
//!
//! A single process counts in its memory. Nodes with a shared store keep each budget there as a
//! bucket, and each attempt is one request to the store. The process counts too, so that a key that
//! is used up here needs no request.
//!
//! While the store does not answer, each process has half of every budget. Attempts from before the
//! outage count against that half, so that an outage cannot grant a second burst.

use std::{
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::{Duration as StdDuration, Instant},
};

use portolan_cluster::{
    ledger::{Ledger, Size},
    node::LimitKey,
};
use portolan_model::Timestamp;
use time::Duration;

use crate::{
    rate::{Budget, Rates},
    throttle::TooEarly,
};

/// Time without requests after the store did not answer; otherwise each attempt would wait for it.
const SILENCE: StdDuration = StdDuration::from_secs(1);

/// The place where attempts are counted. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Tries(Option<Arc<Shared>>);

#[derive(Debug, Default)]
struct Shared {
    ledger: OnceLock<Ledger>,
    /// Time of the next request to the store.
    silent_until: Mutex<Option<Instant>>,
}

impl Tries {
    /// Counts in this process alone.
    pub fn alone() -> Self {
        Self(None)
    }

    /// Counts in a store that other processes share. Before [`Tries::set`] it behaves like a store
    /// that does not answer.
    pub fn shared() -> Self {
        Self(Some(Arc::default()))
    }

    /// Sets the store once it is known. Only the first call has an effect.
    pub fn set(&self, ledger: Ledger) {
        if let Some(shared) = &self.0 {
            let _ = shared.ledger.set(ledger);
        }
    }
}

impl Shared {
    /// The store, unless it recently failed to answer.
    fn awake(&self) -> Option<&Ledger> {
        let until = *self.silence();
        let is_silent = until.is_some_and(|until| Instant::now() < until);
        self.ledger.get().filter(|_| !is_silent)
    }

    fn silence(&self) -> std::sync::MutexGuard<'_, Option<Instant>> {
        self.silent_until
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// `None` if the store does not answer.
    async fn count(&self, key: &LimitKey, size: Size) -> Option<Result<(), Duration>> {
        let verdict = self.awake()?.count(key, size).await;
        if verdict.is_none() {
            *self.silence() = Some(Instant::now() + SILENCE);
        }
        let refused = |wait: StdDuration| Duration::try_from(wait).unwrap_or(Duration::MAX);
        Some(verdict?.map_err(|wait| refused(wait.0)))
    }
}

/// The budgets of one kind.
#[derive(Debug)]
pub struct Counted {
    /// The prefix of bucket names.
    name: &'static str,
    size: Size,
    /// The attempts that this process admitted.
    here: Rates,
    /// This process's half, for a store that does not answer.
    half: Rates,
    tries: Tries,
}

impl Counted {
    /// A budget with this name in the metrics.
    pub fn new(name: &'static str, budget: Budget, tries: &Tries) -> Self {
        let step = budget.per / budget.burst.max(1);
        let half = Budget {
            burst: (budget.burst / 2).max(1),
            ..budget
        };
        Self {
            name,
            size: Size {
                interval_us: u64::try_from(step.whole_microseconds()).unwrap_or(1),
                burst: u64::try_from(budget.burst).unwrap_or(1),
            },
            here: Rates::new(budget),
            half: Rates::new(half),
            tries: tries.clone(),
        }
    }

    /// Takes one from the key's budget. If it is empty, returns how long to wait.
    pub async fn take(&self, key: &str, now: Timestamp) -> Result<(), TooEarly> {
        let early = |wait| TooEarly { wait };
        self.here.take(key, now).map_err(early)?;
        let Some(shared) = &self.tries.0 else {
            return Ok(());
        };
        let verdict = match shared.count(&self.bucket(key), self.size).await {
            Some(Ok(())) => {
                self.half.note(key, now);
                Ok(())
            }
            Some(refused) => refused,
            None => self.half.take(key, now),
        };
        verdict.map_err(|wait| {
            self.here.give_back(key);
            early(wait)
        })
    }

    /// The number that the key's budget still admits at once, as far as this process knows.
    pub fn left(&self, key: &str, now: Timestamp) -> u64 {
        self.here.left(key, now)
    }

    /// Gives one back.
    pub async fn give_back(&self, key: &str) {
        self.here.give_back(key);
        let Some(shared) = &self.tries.0 else { return };
        self.half.give_back(key);
        if let Some(ledger) = shared.awake() {
            ledger.give_back(&self.bucket(key), self.size).await;
        }
    }

    fn bucket(&self, key: &str) -> LimitKey {
        LimitKey {
            shard: key.to_owned(),
            bucket: self.name.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use portolan_cluster::{memory::MemoryStore, store::Bounds};
    use portolan_model::Clock;

    use super::*;

    const BUDGET: Budget = Budget {
        burst: 10,
        per: Duration::minutes(10),
    };
    const START: Timestamp = Timestamp::UNIX_EPOCH;

    fn node(ledger: Option<&Ledger>) -> Counted {
        let tries = Tries::shared();
        if let Some(ledger) = ledger {
            tries.set(ledger.clone());
        }
        Counted::new("auth:test", BUDGET, &tries)
    }

    async fn passed(node: &Counted, tries: usize) -> usize {
        let mut passed = 0;
        for _ in 0..tries {
            passed += usize::from(node.take("ann", START).await.is_ok());
        }
        passed
    }

    #[tokio::test]
    async fn l6_two_nodes_have_one_budget_and_what_is_given_back_is_for_both() {
        let store = MemoryStore::new(Bounds::default(), Clock::test(START));
        let ledger = Ledger::new(Arc::new(store));
        let (one, other) = (node(Some(&ledger)), node(Some(&ledger)));
        assert_eq!(passed(&one, 7).await, 7);
        assert_eq!(passed(&other, 7).await, 3);
        let early = one.take("ann", START).await.unwrap_err();
        assert_eq!(early.wait, Duration::minutes(1));
        assert!(other.take("bob", START).await.is_ok());
        for _ in 0..4 {
            one.give_back("ann").await;
        }
        assert_eq!(passed(&other, 7).await, 4);
        assert_eq!(passed(&one, 7).await, 0);
    }

    #[tokio::test]
    async fn l6_without_the_store_a_node_has_half_a_budget_less_what_it_let_in() {
        let away = node(None);
        assert_eq!(passed(&away, 20).await, 5);
        let store = MemoryStore::new(Bounds::default(), Clock::test(START));
        let ledger = Ledger::new(Arc::new(store));
        let known = node(Some(&ledger));
        assert_eq!(passed(&known, 3).await, 3);
        let silent = known.tries.0.as_ref().unwrap();
        *silent.silence() = Some(Instant::now() + StdDuration::from_secs(3600));
        assert_eq!(passed(&known, 20).await, 2);
        *silent.silence() = None;
        assert_eq!(
            passed(&known, 20).await,
            5,
            "what the store did not hear of"
        );
    }
}
