//! State of one bucket on a node: leased tokens, debt, demand, and the local share for outages of
//! the store. No I/O.

use std::{collections::VecDeque, time::Duration};

use tokio::{sync::oneshot, time::Instant};

use super::{Rate, RetryAfter};

/// Minimum ratio of tokens to nodes at which the first request of a cold key is admitted at once.
const COLD: u64 = 10;

/// A request that waits for tokens.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) weight: u64,
    pub(super) reply: oneshot::Sender<Result<(), RetryAfter>>,
}

/// Request to the store for this bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ask {
    pub(super) want: u64,
    pub(super) debt: u64,
    /// Number of waiters that the request covers.
    pub(super) waiters: usize,
}

/// Requested tokens of the current and the previous interval.
#[derive(Debug, Clone, Copy)]
struct Demand {
    since: Instant,
    now: u64,
    before: u64,
}

impl Demand {
    fn note(&mut self, now: Instant, life: Duration, weight: u64) {
        let age = now.duration_since(self.since);
        if age >= life {
            self.before = if age < 2 * life { self.now } else { 0 };
            self.now = 0;
            self.since = now;
        }
        self.now += weight;
    }
}

/// A bucket on a node.
#[derive(Debug)]
pub(super) struct Bucket {
    pub(super) rate: Rate,
    lots: VecDeque<(u64, Instant)>,
    /// Tokens that were admitted and are not charged yet.
    debt: u64,
    /// Debt that the refill in flight pays.
    in_question: u64,
    demand: Demand,
    refused_until: Option<Instant>,
    pub(super) waiters: VecDeque<Waiter>,
    /// The bucket is listed for the next refill, or a refill is in flight.
    pub(super) is_listed: bool,
    used: Instant,
    /// Time at which the local share would be full again. Every admission on this node counts, so
    /// that an outage cannot grant a second burst.
    local: Option<Instant>,
}

/// Immediate decision of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TakeOutcome {
    Yes,
    No(RetryAfter),
    /// Only the store can decide.
    Ask,
}

impl Bucket {
    pub(super) fn new(now: Instant, rate: Rate) -> Self {
        Self {
            rate,
            lots: VecDeque::new(),
            debt: 0,
            in_question: 0,
            demand: Demand {
                since: now,
                now: 0,
                before: 0,
            },
            refused_until: None,
            waiters: VecDeque::new(),
            is_listed: false,
            used: now,
            local: None,
        }
    }

    fn in_hand(&mut self, now: Instant) -> u64 {
        while self.lots.front().is_some_and(|(_, until)| *until <= now) {
            self.lots.pop_front();
        }
        self.lots.iter().map(|(tokens, _)| tokens).sum()
    }

    fn spend(&mut self, now: Instant, weight: u64) -> bool {
        if self.in_hand(now) < weight {
            return false;
        }
        let mut left = weight;
        while left > 0 {
            let Some((tokens, _)) = self.lots.front_mut() else {
                break;
            };
            let part = left.min(*tokens);
            *tokens -= part;
            left -= part;
            if *tokens == 0 {
                self.lots.pop_front();
            }
        }
        true
    }

    /// Tries to take tokens without a store operation. `is_cold`: the key was unknown on this node
    /// until now.
    pub(super) fn take(
        &mut self,
        now: Instant,
        life: Duration,
        weight: u64,
        nodes: u64,
        is_cold: bool,
    ) -> TakeOutcome {
        self.used = now;
        self.demand.note(now, life, weight);
        if self.waiters.is_empty() && self.spend(now, weight) {
            self.note_share(now, nodes, weight);
            return TakeOutcome::Yes;
        }
        if weight > self.rate.burst {
            return TakeOutcome::No(self.rate.wait(weight));
        }
        if let Some(until) = self.refused_until {
            if now < until {
                return TakeOutcome::No(RetryAfter(until - now));
            }
            self.refused_until = None;
        }
        if is_cold && self.take_on_credit(now, nodes, weight) {
            return TakeOutcome::Yes;
        }
        TakeOutcome::Ask
    }

    /// Admits a request before it is charged, if the bucket has no debt. The bound includes one
    /// such token per node (STREAM-16.1).
    pub(super) fn take_on_credit(&mut self, now: Instant, nodes: u64, weight: u64) -> bool {
        let may = weight == 1
            && self.debt + self.in_question == 0
            && nodes.saturating_mul(COLD) <= self.rate.burst;
        if may {
            self.debt = 1;
            self.note_share(now, nodes, weight);
        }
        may
    }

    /// This node's share of the bucket.
    fn share(&self, nodes: u64) -> Rate {
        Rate {
            interval_us: self.rate.interval_us.saturating_mul(nodes),
            burst: (self.rate.burst / nodes).max(1),
            ..self.rate
        }
    }

    /// Counts every admission against the local share, which never falls below empty.
    fn note_share(&mut self, now: Instant, nodes: u64, weight: u64) {
        let share = self.share(nodes);
        let empty_at = self.local.unwrap_or(now).max(now) + share.wait(weight).0;
        self.local = Some(empty_at.min(now + share.wait(share.burst).0));
    }

    /// Number of tokens to prefetch: the recent demand, but a limited share, so that idle nodes do
    /// not hold tokens that others need. Small buckets are not prefetched.
    fn ahead(&self, nodes: u64) -> u64 {
        if self.rate.burst < 4 * nodes {
            return 0;
        }
        let demand = self.demand.now.max(self.demand.before);
        // One request predicts no further request.
        if demand <= 1 {
            return 0;
        }
        demand.min(self.rate.burst / (4 * nodes))
    }

    /// Whether the bucket needs a refill.
    pub(super) fn is_due(&mut self, now: Instant, nodes: u64) -> bool {
        let is_refused = self.refused_until.is_some_and(|until| now < until);
        self.debt > 0
            || !self.waiters.is_empty()
            || (!is_refused && self.in_hand(now) * 2 < self.ahead(nodes))
    }

    /// Builds the request for the next refill, which carries the debt. A node whose debt exceeds
    /// one token asks for nothing more. All nodes thus pay before one of them is granted the tokens
    /// that the others owe.
    pub(super) fn ask(&mut self, now: Instant, nodes: u64) -> Ask {
        self.waiters.retain(|waiter| !waiter.reply.is_closed());
        let waiting: u64 = self.waiters.iter().map(|waiter| waiter.weight).sum();
        let ahead = self.ahead(nodes).saturating_sub(self.in_hand(now));
        self.in_question = std::mem::take(&mut self.debt);
        let pays_first = self.in_question > 1;
        Ask {
            want: if pays_first { 0 } else { waiting + ahead },
            debt: self.in_question,
            waiters: self.waiters.len(),
        }
    }

    /// Applies the reply of the store. `sent` is the time of the request, from which the life of
    /// the tokens counts.
    pub(super) fn granted(
        &mut self,
        (sent, now): (Instant, Instant),
        life: Duration,
        nodes: u64,
        ask: Ask,
        tokens: u64,
        wait: Duration,
    ) {
        self.in_question = 0;
        if tokens > 0 {
            self.lots.push_back((tokens, sent + life));
        }
        // A request that was admitted meanwhile pays with the token that it did not wait for.
        let paid = self.debt.min(self.in_hand(now));
        if self.spend(now, paid) {
            self.debt -= paid;
        }
        if tokens == 0 && ask.want > 0 {
            self.refused_until = Some(now + wait.max(Duration::from_millis(1)));
            // The bucket is empty, and therefore also this node's share.
            self.note_share(now, nodes, self.share(nodes).burst);
        }
        // A refill that only pays serves no waiters.
        let served = if ask.want > 0 { ask.waiters } else { 0 };
        for _ in 0..served {
            let Some(waiter) = self.waiters.pop_front() else {
                break;
            };
            if waiter.reply.is_closed() {
                continue;
            }
            let verdict = if self.spend(now, waiter.weight) {
                self.note_share(now, nodes, waiter.weight);
                Ok(())
            } else {
                Err(RetryAfter(wait.max(self.rate.wait(waiter.weight).0)))
            };
            let _ = waiter.reply.send(verdict);
        }
    }

    /// Handles a missing reply of the store. The debt remains, and the local share decides.
    pub(super) fn unanswered(&mut self, now: Instant, nodes: u64, ask: Ask) {
        self.debt += std::mem::take(&mut self.in_question);
        for _ in 0..ask.waiters {
            let Some(waiter) = self.waiters.pop_front() else {
                break;
            };
            let verdict = self.take_local(now, nodes, waiter.weight);
            let _ = waiter.reply.send(verdict);
        }
    }

    /// Applies GCRA with this node's share of rate and burst. Admissions become debt, because the
    /// store may only be late or full. The debt is at most the share, because a store that was down
    /// has refilled its buckets meanwhile.
    pub(super) fn take_local(
        &mut self,
        now: Instant,
        nodes: u64,
        weight: u64,
    ) -> Result<(), RetryAfter> {
        self.used = now;
        if self.spend(now, weight) {
            self.note_share(now, nodes, weight);
            return Ok(());
        }
        let share = self.share(nodes);
        let empty_at = self.local.unwrap_or(now).max(now) + share.wait(weight).0;
        let latest = now + share.wait(share.burst).0;
        if empty_at <= latest {
            self.local = Some(empty_at);
            self.debt = (self.debt + weight).min(share.burst.max(self.debt));
            return Ok(());
        }
        Err(RetryAfter(empty_at - latest))
    }

    /// Whether the bucket is unused for long enough to be full again. It may be removed if it has
    /// no debt.
    pub(super) fn is_idle(&self, now: Instant, life: Duration) -> bool {
        !self.is_listed
            && self.waiters.is_empty()
            && now.duration_since(self.used) > self.rate.wait(self.rate.burst).0 + life
    }

    pub(super) const fn owes(&self) -> bool {
        self.debt > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFE: Duration = Duration::from_secs(1);
    /// 10 tokens a second, burst of 20.
    const RATE: Rate = Rate {
        limit: crate::node::Limit::TenantCalls,
        interval_us: 100_000,
        burst: 20,
    };

    fn bucket() -> (Bucket, Instant) {
        let now = Instant::now();
        (Bucket::new(now, RATE), now)
    }

    fn lease(bucket: &mut Bucket, now: Instant, tokens: u64) {
        let ask = bucket.ask(now, 1);
        bucket.granted((now, now), LIFE, 1, ask, tokens, Duration::ZERO);
    }

    #[test]
    fn leased_tokens_live_one_second_from_the_question() {
        let (mut bucket, now) = bucket();
        lease(&mut bucket, now, 3);
        assert_eq!(bucket.take(now, LIFE, 1, 1, false), TakeOutcome::Yes);
        let late = now + LIFE;
        assert_eq!(bucket.take(late, LIFE, 1, 1, false), TakeOutcome::Ask);
    }

    #[test]
    fn a_cold_key_is_admitted_once_and_pays_with_the_next_refill() {
        let (mut bucket, now) = bucket();
        assert_eq!(bucket.take(now, LIFE, 1, 2, true), TakeOutcome::Yes);
        assert!(bucket.is_due(now, 2));
        let ask = bucket.ask(now, 2);
        assert_eq!((ask.debt, ask.want), (1, 0));
        bucket.unanswered(now, 2, ask);
        assert_eq!(bucket.ask(now, 2).debt, 1, "still owed");
        // The bucket is too small for this number of nodes.
        let (mut small, now) = self::bucket();
        assert_eq!(small.take(now, LIFE, 1, 3, true), TakeOutcome::Ask);
    }

    #[test]
    fn steady_demand_is_fetched_ahead_up_to_a_share_and_small_buckets_are_not() {
        let (mut bucket, now) = bucket();
        lease(&mut bucket, now, 20);
        for _ in 0..18 {
            bucket.take(now, LIFE, 1, 1, false);
        }
        assert!(bucket.is_due(now, 1));
        // A quarter of the bucket, minus the tokens that the node has.
        assert_eq!(bucket.ask(now, 1).want, 3);
        assert!(
            !bucket.is_due(now, 6),
            "20 tokens among 6 nodes: nothing ahead"
        );
        assert_eq!(bucket.ask(now, 6).want, 0);
    }

    #[test]
    fn a_refusal_is_remembered_until_the_next_token() {
        let (mut bucket, now) = bucket();
        let (reply, mut told) = oneshot::channel();
        bucket.waiters.push_back(Waiter { weight: 1, reply });
        let ask = bucket.ask(now, 1);
        bucket.granted((now, now), LIFE, 1, ask, 0, Duration::from_millis(70));
        assert_eq!(
            told.try_recv(),
            Ok(Err(RetryAfter(Duration::from_millis(100))))
        );
        let soon = now + Duration::from_millis(30);
        assert_eq!(
            bucket.take(soon, LIFE, 1, 1, false),
            TakeOutcome::No(RetryAfter(Duration::from_millis(40)))
        );
        let later = now + Duration::from_millis(70);
        assert_eq!(bucket.take(later, LIFE, 1, 1, false), TakeOutcome::Ask);
        assert_eq!(
            bucket.take(later, LIFE, 21, 1, false),
            TakeOutcome::No(RetryAfter(Duration::from_millis(2100))),
            "more than the bucket ever holds"
        );
    }

    #[test]
    fn without_the_store_each_node_has_its_share() {
        let (mut bucket, now) = bucket();
        let admitted = (0..50)
            .filter(|_| bucket.take_local(now, 4, 1).is_ok())
            .count();
        assert_eq!(admitted, 5, "a quarter of 20");
        let later = now + Duration::from_secs(2);
        let admitted = (0..50)
            .filter(|_| bucket.take_local(later, 4, 1).is_ok())
            .count();
        assert_eq!(admitted, 5, "a quarter of 10 a second");
    }

    #[test]
    fn a_waiter_that_gave_up_costs_no_token() {
        let (mut bucket, now) = bucket();
        let (reply, told) = oneshot::channel();
        bucket.waiters.push_back(Waiter { weight: 1, reply });
        let ask = bucket.ask(now, 1);
        drop(told);
        bucket.granted((now, now), LIFE, 1, ask, 1, Duration::ZERO);
        assert_eq!(bucket.take(now, LIFE, 1, 1, false), TakeOutcome::Yes);
    }
}
