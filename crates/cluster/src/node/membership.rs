//! Who lives, and who is thought to be dead (`streams.md` §12.1). Being wrong costs an epoch that is fenced, never safety.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{Notify, watch},
    time::Instant,
};

use super::{Inner, settings::NodeSettings};
use crate::{
    lock,
    store::{Members, NodeId, PARTITIONS, Partition},
};

/// Own beats that did not show a node, after which it is thought not to write to this store. The node itself beats as often, and may
/// need one try to notice that its connection is dead.
const MISSED: usize = 3;
/// Own beats on which an entry must be over before its node is suspected.
const STRIKES: u8 = 2;

/// The nodes, as of the last beat.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Membership {
    /// Those whose entry is good, this node included; sorted.
    pub live: Vec<NodeId>,
    /// Those thought to be dead.
    pub suspected: Vec<NodeId>,
}

impl Membership {
    /// How many nodes share a limit; at least one.
    pub fn count(&self) -> u64 {
        (self.live.len() as u64).max(1)
    }

    /// The node that looks after a partition: the live one with the highest hash for it (rendezvous).
    pub fn janitor(&self, partition: Partition) -> Option<NodeId> {
        self.live
            .iter()
            .copied()
            .max_by_key(|node| (weight(*node, partition), *node))
    }

    /// The partitions that `node` looks after.
    pub fn partitions_of(&self, node: NodeId) -> Vec<Partition> {
        (0..PARTITIONS)
            .filter_map(|partition| u8::try_from(partition).ok().map(Partition))
            .filter(|partition| self.janitor(*partition) == Some(node))
            .collect()
    }
}

/// FNV-1a with a final mix: the same on every node and in every release.
fn weight(node: NodeId, partition: Partition) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in node.0.iter().chain([&partition.0]) {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash ^= hash >> 32;
    hash = hash.wrapping_mul(0xd6e8_feb8_6659_fd93);
    hash ^ (hash >> 32)
}

/// The state machine behind it. Time is handed in.
#[derive(Debug)]
pub(super) struct Suspicion {
    me: NodeId,
    beat: Duration,
    after: Duration,
    quarantine: Duration,
    absent_for: Duration,
    last_good: Option<Instant>,
    quiet_until: Option<Instant>,
    strikes: HashMap<NodeId, u8>,
    /// Owners that the list does not name, and since when they have been asked for.
    absent: HashMap<NodeId, Instant>,
    known: HashSet<NodeId>,
    /// Who lived on the last few beats, newest last.
    lived: VecDeque<HashSet<NodeId>>,
}

impl Suspicion {
    pub(super) fn new(me: NodeId, settings: &NodeSettings) -> Self {
        Self {
            me,
            beat: settings.beat,
            after: settings.suspect_after,
            quarantine: settings.suspect_quarantine,
            absent_for: settings.ttl,
            last_good: None,
            quiet_until: None,
            strikes: HashMap::new(),
            absent: HashMap::new(),
            known: HashSet::new(),
            lived: VecDeque::new(),
        }
    }

    /// A beat succeeded. Returns the nodes, and whether this node had lost touch.
    pub(super) fn beat(&mut self, now: Instant, members: &Members) -> (Membership, bool) {
        let has_lapsed = self
            .last_good
            .is_some_and(|last| now.duration_since(last) > self.beat * 5 / 2);
        if has_lapsed {
            self.quiet_until = Some(now + self.quarantine);
            self.strikes.clear();
            self.absent.clear();
        }
        self.last_good = Some(now);
        let limit = -i64::try_from(self.after.as_millis()).unwrap_or(i64::MAX);
        self.known = members.nodes.iter().map(|member| member.node).collect();
        self.strikes.retain(|node, _| self.known.contains(node));
        let mut live = vec![self.me];
        for member in &members.nodes {
            let strikes = self.strikes.entry(member.node).or_default();
            if member.valid_ms < limit && member.node != self.me {
                *strikes = strikes.saturating_add(1);
            } else {
                *strikes = 0;
            }
            if member.valid_ms > 0 && member.node != self.me {
                live.push(member.node);
            }
        }
        if self.lived.len() == MISSED {
            self.lived.pop_front();
        }
        self.lived.push_back(live.iter().copied().collect());
        live.sort_unstable();
        let mut suspected: Vec<_> = self
            .strikes
            .iter()
            .filter(|(_, strikes)| **strikes >= STRIKES && !self.is_quiet(now))
            .map(|(node, _)| *node)
            .collect();
        suspected.sort_unstable();
        (Membership { live, suspected }, has_lapsed)
    }

    /// Whether a node was not among the living on the last few beats. Weaker than a suspicion: also said in quarantine, and no reason to
    /// take over anything.
    fn is_missing(&self, now: Instant, node: NodeId) -> bool {
        let has_touch = self
            .last_good
            .is_some_and(|last| now.duration_since(last) <= self.beat * 5 / 2);
        has_touch
            && self.lived.len() == MISSED
            && !self.lived.iter().any(|lived| lived.contains(&node))
    }

    fn is_quiet(&self, now: Instant) -> bool {
        self.quiet_until.is_some_and(|until| now < until)
    }

    /// Whether the owner of a stream is thought to be dead. One that the list does not name at all is given the life of a beat
    /// to come back, because a store that lost its memory names nobody.
    pub(super) fn is_suspected(&mut self, now: Instant, node: NodeId) -> bool {
        let has_touch = self
            .last_good
            .is_some_and(|last| now.duration_since(last) <= self.beat * 5 / 2);
        if node == self.me || !has_touch || self.is_quiet(now) {
            return false;
        }
        if self.known.contains(&node) {
            self.absent.remove(&node);
            return self
                .strikes
                .get(&node)
                .is_some_and(|strikes| *strikes >= STRIKES);
        }
        let since = *self.absent.entry(node).or_insert(now);
        now.duration_since(since) >= self.absent_for
    }
}

/// Rung for everybody who listens; who is busy hears it afterwards. A `watch` would do, but wakes its receivers in an order that it draws:
/// these wake in the order in which they came, so that a simulation can be repeated.
#[derive(Debug, Default)]
pub(super) struct Alarm {
    notified: AtomicU64,
    message: Notify,
}

impl Alarm {
    pub(super) fn notify(&self) {
        self.notified.fetch_add(1, Ordering::AcqRel);
        self.message.notify_waiters();
    }

    /// How often it was notified.
    pub(super) fn count(&self) -> u64 {
        self.notified.load(Ordering::Acquire)
    }

    /// Waits until it was notified more often than that. Cancel safe.
    pub(super) async fn heard(&self, before: &mut u64) {
        loop {
            // Before the look, so that no ring falls between.
            let message = self.message.notified();
            let count = self.count();
            if count != *before {
                *before = count;
                return;
            }
            message.await;
        }
    }
}

/// A node's view of the others.
#[derive(Debug)]
pub(super) struct Watcher {
    suspicion: Mutex<Suspicion>,
    pub(super) members: watch::Sender<Arc<Membership>>,
    /// Raised when the writers should look whether their streams are still theirs.
    pub(super) audits: Alarm,
}

impl Watcher {
    pub(super) fn new(me: NodeId, settings: &NodeSettings) -> Self {
        Self {
            suspicion: Mutex::new(Suspicion::new(me, settings)),
            members: watch::Sender::new(Arc::new(Membership {
                live: vec![me],
                suspected: Vec::new(),
            })),
            audits: Alarm::default(),
        }
    }

    pub(super) fn heard(&self, members: &Members) {
        let (now_known, has_lapsed) = lock(&self.suspicion).beat(Instant::now(), members);
        #[expect(clippy::cast_precision_loss, reason = "a gauge")]
        metrics::gauge!("members").set(now_known.live.len() as f64);
        self.members.send_if_modified(|known| {
            let is_news = **known != now_known;
            if is_news {
                *known = Arc::new(now_known);
            }
            is_news
        });
        if has_lapsed {
            self.audits.notify();
        }
    }

    /// When a beat last succeeded.
    pub(super) fn last_beat(&self) -> Option<Instant> {
        lock(&self.suspicion).last_good
    }

    pub(super) fn is_suspected(&self, node: NodeId) -> bool {
        lock(&self.suspicion).is_suspected(Instant::now(), node)
    }

    /// Whether a node has not been heard of for three beats, quarantine or not.
    pub(super) fn is_missing(&self, node: NodeId) -> bool {
        lock(&self.suspicion).is_missing(Instant::now(), node)
    }
}

/// Says that this node lives, until it stops.
pub(super) async fn beat(inner: Arc<Inner>) {
    let settings = &inner.settings;
    let mut ticks = tokio::time::interval(settings.beat);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    ticks.tick().await;
    loop {
        tokio::select! {
            biased;
            () = inner.stop.cancelled() => return,
            () = inner.left.cancelled() => return,
            _ = ticks.tick() => {}
        }
        let beat = inner.guarded_store.store.beat(inner.id, settings.ttl);
        let members = inner
            .guarded_store
            .call_always("beat", settings.call_within, beat);
        let members = tokio::select! {
            biased;
            () = inner.stop.cancelled() => return,
            members = members => members,
        };
        if let Ok(members) = members {
            inner.watcher.heard(&members);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Member;

    const ME: NodeId = NodeId(*b"nmemememememem");
    const OTHER: NodeId = NodeId(*b"notherotheroth");

    fn members(other_ms: Option<i64>) -> Members {
        let mut nodes = vec![Member {
            node: ME,
            valid_ms: 6000,
        }];
        nodes.extend(other_ms.map(|valid_ms| Member {
            node: OTHER,
            valid_ms,
        }));
        Members { nodes }
    }

    fn suspicion() -> (Suspicion, Instant) {
        (Suspicion::new(ME, &NodeSettings::default()), Instant::now())
    }

    const BEAT: Duration = Duration::from_millis(1500);

    #[test]
    fn an_entry_over_by_a_second_on_two_beats_in_a_row_is_suspected() {
        let (mut suspicion, now) = suspicion();
        suspicion.beat(now, &members(Some(-1200)));
        assert!(!suspicion.is_suspected(now, OTHER));
        suspicion.beat(now + BEAT, &members(Some(100)));
        let (seen, _) = suspicion.beat(now + 2 * BEAT, &members(Some(-1100)));
        assert!(seen.suspected.is_empty() && !suspicion.is_suspected(now + 2 * BEAT, OTHER));
        let (seen, _) = suspicion.beat(now + 3 * BEAT, &members(Some(-2600)));
        assert_eq!(seen.suspected, [OTHER]);
        assert!(suspicion.is_suspected(now + 3 * BEAT, OTHER));
        assert_eq!(seen.live, [ME]);
    }

    #[test]
    fn a_node_that_lost_touch_suspects_nobody_for_twelve_seconds() {
        let (mut suspicion, start) = suspicion();
        suspicion.beat(start, &members(Some(6000)));
        let back = start + Duration::from_secs(20);
        assert!(!suspicion.is_suspected(back, OTHER), "no touch, no opinion");
        let (_, has_lapsed) = suspicion.beat(back, &members(Some(-15_000)));
        assert!(has_lapsed);
        let mut now = back;
        while now < back + Duration::from_secs(10) {
            now += BEAT;
            suspicion.beat(now, &members(Some(-15_000)));
            assert!(!suspicion.is_suspected(now, OTHER));
        }
        for _ in 0..3 {
            now += BEAT;
            suspicion.beat(now, &members(Some(-15_000)));
        }
        assert!(suspicion.is_suspected(now, OTHER));
    }

    #[test]
    fn who_is_not_seen_on_three_beats_is_missing_also_in_quarantine() {
        let (mut suspicion, start) = suspicion();
        suspicion.beat(start, &members(Some(6000)));
        // An outage, and a store that came back empty.
        let mut now = start + Duration::from_secs(20);
        for beats in 1..=3 {
            assert!(!suspicion.is_missing(now, OTHER), "after {beats} beats");
            suspicion.beat(now, &members(None));
            now += BEAT;
        }
        assert!(suspicion.is_missing(now, OTHER) && !suspicion.is_suspected(now, OTHER));
        assert!(!suspicion.is_missing(now, ME));
        assert!(
            !suspicion.is_missing(now + 3 * BEAT, OTHER),
            "no touch, no opinion"
        );
        suspicion.beat(now, &members(Some(6000)));
        assert!(!suspicion.is_missing(now, OTHER), "it came back");
    }

    #[test]
    fn an_owner_that_nobody_knows_is_given_the_life_of_a_beat() {
        let (mut suspicion, mut now) = suspicion();
        suspicion.beat(now, &members(None));
        assert!(!suspicion.is_suspected(now, OTHER));
        for _ in 0..5 {
            now += BEAT;
            suspicion.beat(now, &members(None));
        }
        assert!(suspicion.is_suspected(now, OTHER));
        suspicion.beat(now, &members(Some(6000)));
        assert!(!suspicion.is_suspected(now, OTHER), "it came back");
    }

    #[test]
    fn every_lane_has_one_janitor_and_each_node_its_share() {
        let live = vec![ME, OTHER, NodeId(*b"nthirdthirdthi")];
        let members = Membership {
            live: live.clone(),
            suspected: Vec::new(),
        };
        let shares: Vec<_> = live
            .iter()
            .map(|node| members.partitions_of(*node).len())
            .collect();
        assert_eq!(shares.iter().sum::<usize>(), usize::from(PARTITIONS));
        assert!(shares.iter().all(|share| *share > 40), "{shares:?}");
    }
}
