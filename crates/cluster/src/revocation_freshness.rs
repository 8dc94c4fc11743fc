//! Decides whether a node may have missed too many revocations (AUTH-4.3.6,
//! STREAM-17.4, ADR 25; CASE-136).
//!
//! While Postgres is down, no process receives revocations and no user can revoke: calls go on. A
//! node that alone receives none must not check tokens that others may revoke meanwhile. So every
//! process that receives the feed reports that in the shared store. A node without the feed
//! continues only while it knows that no other process receives it either. Without a reply of the
//! store it does not know.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

use crate::{
    Revocations, rng,
    store::{HoldSlots, NodeId, Store},
};

/// Interval of the checks. Each check reports whether this process receives the feed.
const LOOK: Duration = Duration::from_secs(1);
/// Time for which a report is valid.
const BELIEVED: Duration = Duration::from_secs(3);
/// Maximum silence of a feed that counts as received.
const HEARS: Duration = Duration::from_secs(2);
/// Time for which the last reply of the store is valid while the store does not reply.
const FRESH: Duration = Duration::from_secs(5);
/// Time for which no process may have reported the feed. After an outage of the store, other
/// processes need some time to report.
const SETTLES: Duration = Duration::from_secs(5);
/// Sum of the times above, in the order of an outage of Postgres for all processes. With a shorter
/// limit, a node would treat it as its own failure.
pub const LEAST_STALENESS: Duration = Duration::from_secs(15);

/// Key of the limit on which receiving processes are counted: each uses one permit.
const SHARD: &str = "feed";
const BUCKET: &str = "heard";

/// Reporter of one process.
#[derive(Debug)]
pub struct RevocationFreshness {
    revocations: Revocations,
    store: Arc<dyn Store>,
    me: NodeId,
}

impl RevocationFreshness {
    /// Creates a reporter for a feed and the shared store.
    pub fn new(revocations: Revocations, store: Arc<dyn Store>) -> Self {
        Self {
            revocations,
            store,
            me: rng::node_id(),
        }
    }

    /// Reports the state of the feed until `stop`, for a process that checks no tokens.
    pub async fn report(self, stop: CancellationToken) {
        self.run(stop, |_, _| {}).await;
    }

    /// Reports the state of the feed, and decides whether this node may check tokens, until `stop`.
    /// `most` is the maximum silence of the feed, at least [`LEAST_STALENESS`].
    pub async fn enforce(self, most: Duration, stop: CancellationToken) {
        let mut rule = StalenessRule::new(most.max(LEAST_STALENESS));
        let revocations = self.revocations.clone();
        self.run(stop, |silent_for, others_hear| {
            let was_cut_off = revocations.is_cut_off();
            let is_cut_off = rule.look(Instant::now(), silent_for, others_hear);
            if is_cut_off == was_cut_off {
                return;
            }
            revocations.cut_off(is_cut_off);
            if is_cut_off {
                tracing::error!(
                    silent_seconds = silent_for.as_secs(),
                    "what is revoked has not been heard for too long, and may be heard elsewhere: tokens are answered 503"
                );
            } else {
                tracing::info!("tokens are judged again");
            }
        })
        .await;
    }

    async fn run(&self, stop: CancellationToken, mut look: impl FnMut(Duration, Option<bool>)) {
        let mut ticks = interval(LOOK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = ticks.tick() => {}
            }
            let messages = self.revocations.silent_for() <= HEARS;
            let others_hear = tokio::select! {
                () = stop.cancelled() => return,
                others_hear = self.ask(messages) => others_hear,
            };
            // Measured again, because the operation takes time.
            let silent_for = self.revocations.silent_for();
            metrics::gauge!("revocations_stale_seconds").set(silent_for.as_secs_f64());
            look(silent_for, others_hear);
        }
    }

    /// Reports whether this process receives the feed. Returns whether any other process does;
    /// `None` if the store does not reply.
    async fn ask(&self, messages: bool) -> Option<bool> {
        let permits = u64::from(messages);
        let wanted = HoldSlots {
            shard: SHARD.to_owned(),
            bucket: BUCKET.to_owned(),
            limit: permits,
            used: permits,
            want: permits,
        };
        let held = timeout(LOOK, self.store.hold_slots(self.me, BELIEVED, &wanted)).await;
        Some(held.ok()?.ok()?.used_elsewhere > 0)
    }
}

/// State machine of the decision. The caller passes the time in.
#[derive(Debug)]
struct StalenessRule {
    most: Duration,
    /// Last reply of the store, with its time.
    word: Option<(Instant, bool)>,
    /// Time since which it is known without a break that no other process receives the feed.
    nobody_since: Option<Instant>,
}

impl StalenessRule {
    const fn new(most: Duration) -> Self {
        Self {
            most,
            word: None,
            nobody_since: None,
        }
    }

    /// Whether the node is cut off. `others_hear` is the reply of the store, if there is one.
    fn look(&mut self, now: Instant, silent_for: Duration, others_hear: Option<bool>) -> bool {
        if let Some(others_hear) = others_hear {
            self.word = Some((now, others_hear));
        }
        let nobody_hears = self
            .word
            .is_some_and(|(at, others_hear)| !others_hear && now.duration_since(at) < FRESH);
        if nobody_hears {
            self.nobody_since.get_or_insert(now);
        } else {
            self.nobody_since = None;
        }
        let is_known_for_all = self
            .nobody_since
            .is_some_and(|since| now.duration_since(since) >= SETTLES);
        silent_for > self.most && !is_known_for_all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: Duration = Duration::from_secs(60);
    const LONG: Duration = Duration::from_secs(61);
    const SECOND: Duration = Duration::from_secs(1);

    /// State machine after a minute of this reply of the store.
    fn rule(others_hear: Option<bool>) -> (StalenessRule, Instant) {
        let mut rule = StalenessRule::new(MOST);
        let mut now = Instant::now();
        for _ in 0..60 {
            rule.look(now, SECOND, others_hear);
            now += SECOND;
        }
        (rule, now)
    }

    #[test]
    fn a_silent_node_goes_on_only_if_it_knows_that_nobody_hears() {
        for (silent_for, others_hear, is_cut_off) in [
            (SECOND, Some(true), false),
            (SECOND, None, false),
            (MOST, Some(true), false),
            (MOST, None, false),
            // Postgres is down for all processes.
            (LONG, Some(false), false),
            // Postgres is down for this process alone.
            (LONG, Some(true), true),
            // Redis is down, too.
            (LONG, None, true),
        ] {
            let (mut rule, now) = rule(others_hear);
            assert_eq!(
                rule.look(now, silent_for, others_hear),
                is_cut_off,
                "{silent_for:?} {others_hear:?}"
            );
        }
    }

    #[test]
    fn a_feed_that_is_heard_again_ends_it_at_once() {
        for others_hear in [None, Some(true)] {
            let (mut rule, now) = rule(others_hear);
            assert!(rule.look(now, LONG, others_hear));
            assert!(!rule.look(now + SECOND, SECOND, others_hear));
        }
    }

    #[test]
    fn a_store_that_is_back_is_asked_for_a_while_before_nobody_is_believed_to_hear() {
        let (mut rule, start) = rule(None);
        let mut cut_off = Vec::new();
        for second in 0..10_u32 {
            let now = start + second * SECOND;
            cut_off.push(rule.look(now, LONG, Some(false)));
        }
        let settles = usize::try_from(SETTLES.as_secs()).unwrap();
        assert!(cut_off[..settles].iter().all(|is| *is), "{cut_off:?}");
        assert!(cut_off[settles..].iter().all(|is| !is), "{cut_off:?}");
        assert!(
            rule.look(start + 10 * SECOND, LONG, Some(true)),
            "somebody hears now"
        );
    }

    #[test]
    fn a_store_that_does_not_answer_for_a_moment_changes_nothing_and_for_longer_does() {
        let (mut rule, start) = rule(Some(false));
        // The last reply is a second old.
        for second in 0..4_u32 {
            assert!(!rule.look(start + second * SECOND, LONG, None));
        }
        assert!(rule.look(start + FRESH, LONG, None));
    }

    #[test]
    fn the_least_staleness_outlasts_what_the_others_said_before_postgres_went_away() {
        assert!(HEARS + LOOK + BELIEVED + SETTLES + LOOK < LEAST_STALENESS);
    }
}
