//! Live nodes, and nodes that are suspected to be dead (STREAM-12.1). A wrong suspicion
//! wastes an epoch, which is fenced; it never breaks safety.

pub(super) mod beat;

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

use super::settings::{NodeSettings, SUSPECT_QUARANTINE};
use crate::{
    lock,
    store::{Members, NodeId, PARTITIONS, Partition},
};

/// Number of own beats without a node, after which that node is assumed not to write to this store.
/// The node beats as often as this one. It may need one attempt to notice a dead connection.
const MISSED: usize = 3;
/// Number of own beats on which an entry must have expired before its node is suspected.
const STRIKES: u8 = 2;

/// The members of the cluster, as of the last beat.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Membership {
    /// Nodes with a valid entry, including this node; sorted.
    pub live: Vec<NodeId>,
    /// Nodes that are suspected to be dead.
    pub suspected: Vec<NodeId>,
}

impl Membership {
    /// Number of nodes that share a limit; at least one.
    pub fn count(&self) -> u64 {
        (self.live.len() as u64).max(1)
    }

    /// The janitor of a partition: the live node with the highest hash for it (rendezvous).
    pub fn janitor(&self, partition: Partition) -> Option<NodeId> {
        self.live
            .iter()
            .copied()
            .max_by_key(|node| (weight(*node, partition), *node))
    }

    /// Partitions whose janitor is `node`.
    pub fn partitions_of(&self, node: NodeId) -> Vec<Partition> {
        (0..PARTITIONS)
            .filter_map(|partition| u8::try_from(partition).ok().map(Partition))
            .filter(|partition| self.janitor(*partition) == Some(node))
            .collect()
    }
}

/// FNV-1a with a final mix. It is the same on every node and in every release.
fn weight(node: NodeId, partition: Partition) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in node.0.iter().chain([&partition.0]) {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash ^= hash >> 32;
    hash = hash.wrapping_mul(0xd6e8_feb8_6659_fd93);
    hash ^ (hash >> 32)
}

/// State machine of suspicions. The caller passes the time in.
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
    /// Owners that are not in the list of members, with the time of the first query for each.
    absent: HashMap<NodeId, Instant>,
    known: HashSet<NodeId>,
    /// Nodes that were alive on the last few beats, newest last.
    lived: VecDeque<HashSet<NodeId>>,
}

impl Suspicion {
    pub(super) fn new(me: NodeId, settings: &NodeSettings) -> Self {
        Self {
            me,
            beat: settings.beat,
            after: settings.suspect_after,
            quarantine: SUSPECT_QUARANTINE,
            absent_for: settings.ttl,
            last_good: None,
            quiet_until: None,
            strikes: HashMap::new(),
            absent: HashMap::new(),
            known: HashSet::new(),
            lived: VecDeque::new(),
        }
    }

    /// Records a successful beat. Returns the members, and whether this node had lost the store.
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

    /// Whether a node was not alive on any of the last few beats. This is weaker than a suspicion:
    /// it also applies in quarantine, and it is no reason for a takeover.
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

    /// Whether the owner of a stream is suspected to be dead. An owner that is not in the list has
    /// the life of one beat to return. A store that lost its data has an empty list.
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

/// Notification for all waiting tasks; a busy task receives it later. A `watch` wakes its receivers
/// in a random order. This type wakes them in order of arrival, so that a simulation is
/// reproducible.
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

    /// Number of notifications so far.
    pub(super) fn count(&self) -> u64 {
        self.notified.load(Ordering::Acquire)
    }

    /// Waits until the number of notifications differs from `before`. Cancel safe.
    pub(super) async fn heard(&self, before: &mut u64) {
        loop {
            // Registered before the count is read, so that no notification is missed.
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

/// A node's view of the other nodes.
#[derive(Debug)]
pub(super) struct Watcher {
    suspicion: Mutex<Suspicion>,
    pub(super) members: watch::Sender<Arc<Membership>>,
    /// Notified when the writers should check whether they still own their streams.
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

    /// Time of the last successful beat.
    pub(super) fn last_beat(&self) -> Option<Instant> {
        lock(&self.suspicion).last_good
    }

    pub(super) fn is_suspected(&self, node: NodeId) -> bool {
        lock(&self.suspicion).is_suspected(Instant::now(), node)
    }

    /// Whether a node was not alive on the last three beats, also during quarantine.
    pub(super) fn is_missing(&self, node: NodeId) -> bool {
        lock(&self.suspicion).is_missing(Instant::now(), node)
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
