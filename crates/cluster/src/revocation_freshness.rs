//! Who is notified of revocations, and when a node may have missed too many (`auth.md` §4.3 point 6, `streams.md` §17.4, ADR 25; case 136).
//!
//! While Postgres is away, nobody hears and nobody can revoke: calls go on. A node that alone hears nothing must not judge tokens that others revoke
//! meanwhile. So every process that hears says so in the store that all share, and one that has heard nothing for long goes on only as
//! long as it knows that nobody hears. Without an answer of the store it knows nothing.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

use crate::{
    Revocations,
    node::rng,
    store::{HoldWanted, NodeId, Store},
};

/// Between two looks, each of which says whether this process hears.
const LOOK: Duration = Duration::from_secs(1);
/// How long that is believed.
const BELIEVED: Duration = Duration::from_secs(3);
/// A feed that has been silent for no longer is heard.
const HEARS: Duration = Duration::from_secs(2);
/// How long what the others said counts while the store does not answer.
const FRESH: Duration = Duration::from_secs(5);
/// How long nobody must have said that they hear: when the store comes back, the others need a moment for that.
const SETTLES: Duration = Duration::from_secs(5);
/// All of these after each other, when Postgres goes away for all: below that, a node would take it for its own trouble.
pub const LEAST_STALENESS: Duration = Duration::from_secs(15);

/// Where hearing is counted: each process that hears uses one place of it.
const SHARD: &str = "feed";
const BUCKET: &str = "heard";

/// One process among those that hear of revocations.
#[derive(Debug)]
pub struct RevocationFreshness {
    revocations: Revocations,
    store: Arc<dyn Store>,
    me: NodeId,
}

impl RevocationFreshness {
    /// What is heard, and the store that the nodes share.
    pub fn new(revocations: Revocations, store: Arc<dyn Store>) -> Self {
        Self {
            revocations,
            store,
            me: rng::node_id(),
        }
    }

    /// Tells the others, until `stop`: for a process that judges no tokens.
    pub async fn tell(self, stop: CancellationToken) {
        self.run(stop, |_, _| {}).await;
    }

    /// Tells the others, and decides whether this node may judge tokens, until `stop`. `most` is how long its feed may be silent; at
    /// least [`LEAST_STALENESS`].
    pub async fn judge(self, most: Duration, stop: CancellationToken) {
        let mut judge = Judge::new(most.max(LEAST_STALENESS));
        let revocations = self.revocations.clone();
        self.run(stop, |silent_for, others_hear| {
            let was_cut_off = revocations.is_cut_off();
            let is_cut_off = judge.look(Instant::now(), silent_for, others_hear);
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
            // As of now: the question may have taken its time.
            let silent_for = self.revocations.silent_for();
            metrics::gauge!("revocations_stale_seconds").set(silent_for.as_secs_f64());
            look(silent_for, others_hear);
        }
    }

    /// Says whether this process hears, and asks whether any other said so lately. `None`: the store does not answer.
    async fn ask(&self, messages: bool) -> Option<bool> {
        let places = u64::from(messages);
        let wanted = HoldWanted {
            shard: SHARD.to_owned(),
            bucket: BUCKET.to_owned(),
            limit: places,
            used: places,
            want: places,
        };
        let held = timeout(LOOK, self.store.hold(self.me, BELIEVED, &wanted)).await;
        Some(held.ok()?.ok()?.used_elsewhere > 0)
    }
}

/// What decides. Time is handed in.
#[derive(Debug)]
struct Judge {
    most: Duration,
    /// What the others said last, and when.
    word: Option<(Instant, bool)>,
    /// Since when it has been known without a break that nobody hears, beside this node.
    nobody_since: Option<Instant>,
}

impl Judge {
    const fn new(most: Duration) -> Self {
        Self {
            most,
            word: None,
            nobody_since: None,
        }
    }

    /// Whether the node is cut off. `others_hear` is what the store says, if it says anything.
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

    /// A judge to whom the store said so for a minute.
    fn judge(others_hear: Option<bool>) -> (Judge, Instant) {
        let mut judge = Judge::new(MOST);
        let mut now = Instant::now();
        for _ in 0..60 {
            judge.look(now, SECOND, others_hear);
            now += SECOND;
        }
        (judge, now)
    }

    #[test]
    fn a_silent_node_goes_on_only_if_it_knows_that_nobody_hears() {
        for (silent_for, others_hear, is_cut_off) in [
            (SECOND, Some(true), false),
            (SECOND, None, false),
            (MOST, Some(true), false),
            (MOST, None, false),
            // Postgres is away, for all.
            (LONG, Some(false), false),
            // For this one alone.
            (LONG, Some(true), true),
            // Redis too.
            (LONG, None, true),
        ] {
            let (mut judge, now) = judge(others_hear);
            assert_eq!(
                judge.look(now, silent_for, others_hear),
                is_cut_off,
                "{silent_for:?} {others_hear:?}"
            );
        }
    }

    #[test]
    fn a_feed_that_is_heard_again_ends_it_at_once() {
        for others_hear in [None, Some(true)] {
            let (mut judge, now) = judge(others_hear);
            assert!(judge.look(now, LONG, others_hear));
            assert!(!judge.look(now + SECOND, SECOND, others_hear));
        }
    }

    #[test]
    fn a_store_that_is_back_is_asked_for_a_while_before_nobody_is_believed_to_hear() {
        let (mut judge, start) = judge(None);
        let mut cut_off = Vec::new();
        for second in 0..10_u32 {
            let now = start + second * SECOND;
            cut_off.push(judge.look(now, LONG, Some(false)));
        }
        let settles = usize::try_from(SETTLES.as_secs()).unwrap();
        assert!(cut_off[..settles].iter().all(|is| *is), "{cut_off:?}");
        assert!(cut_off[settles..].iter().all(|is| !is), "{cut_off:?}");
        assert!(
            judge.look(start + 10 * SECOND, LONG, Some(true)),
            "somebody hears now"
        );
    }

    #[test]
    fn a_store_that_does_not_answer_for_a_moment_changes_nothing_and_for_longer_does() {
        let (mut judge, start) = judge(Some(false));
        // The last word is a second old.
        for second in 0..4_u32 {
            assert!(!judge.look(start + second * SECOND, LONG, None));
        }
        assert!(judge.look(start + FRESH, LONG, None));
    }

    #[test]
    fn the_least_staleness_outlasts_what_the_others_said_before_postgres_went_away() {
        assert!(HEARS + LOOK + BELIEVED + SETTLES + LOOK < LEAST_STALENESS);
    }
}
