//! Faults of nodes, store and network, chosen by the seed. Letters and numbers are those of the
//! chaos test (TEST-X).

use std::{sync::Arc, time::Duration};

use tokio::time::{sleep, sleep_until};

use super::scene::{NODES, Scene, Way, Weather};
use crate::{
    fixture::{fault::Rates, rng::NodeRng},
    history::FaultKind,
};

/// Time after a fault until everything works as before: a node that lost the store suspects no node
/// for 12 s (STREAM-12.1).
pub(super) const RECOVERS: Duration = Duration::from_secs(14);

/// Kinds of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// TEST-F1: a node dies and is started again.
    Kill,
    /// TEST-F2: a node drains and is started again.
    Drain,
    /// TEST-F3: a node is suspended for a while.
    Hold,
    /// TEST-F4: between a node and the store.
    Cut,
    /// TEST-F4: between all nodes and the store.
    CutAll,
    /// TEST-F4: messages to one node only.
    Deafen,
    /// TEST-F5, TEST-F6: a failover to a store that does not have the last writes.
    RollBack,
    /// TEST-F7: the store refuses large writes.
    Fill,
    /// TEST-F8: operations and replies take up to two seconds.
    Slow,
    /// Operations and replies are lost, and messages are late, repeated or lost.
    Lossy,
    /// The same for messages only.
    LossyMessages,
    /// TEST-F10: between clients and a node; connections are reset and refused.
    CutClients,
    /// TEST-F10: no data passes for a while; then connections are reset.
    Silence,
}

const KINDS: &[Kind] = &[
    Kind::Kill,
    Kind::Kill,
    Kind::Kill,
    Kind::Drain,
    Kind::Hold,
    Kind::Hold,
    Kind::Cut,
    Kind::Cut,
    Kind::CutAll,
    Kind::Deafen,
    Kind::RollBack,
    Kind::RollBack,
    Kind::Fill,
    Kind::Slow,
    Kind::Lossy,
    Kind::LossyMessages,
    Kind::CutClients,
    Kind::Silence,
];

/// One fault.
#[derive(Debug, Clone)]
pub(super) struct Harm {
    kind: Kind,
    slot: usize,
    from: Duration,
    lasts: Duration,
}

impl Harm {
    fn drawn(rng: &mut NodeRng, from: Duration) -> Self {
        let kind = *rng.pick(KINDS);
        let (least, most) = match kind {
            Kind::Kill | Kind::Drain => (100, 3_000),
            Kind::Hold => (500, 10_000),
            Kind::Cut | Kind::CutAll | Kind::Fill => (300, 9_000),
            Kind::Deafen | Kind::LossyMessages => (1_000, 9_000),
            Kind::RollBack => (100, 3_000),
            Kind::Slow | Kind::Lossy => (1_000, 6_000),
            Kind::CutClients => (100, 8_000),
            Kind::Silence => (200, 5_000),
        };
        Self {
            kind,
            slot: usize::try_from(rng.below(NODES as u64)).expect("small"),
            from,
            lasts: Duration::from_millis(least + rng.below(most - least)),
        }
    }

    pub(super) fn ends(&self) -> Duration {
        self.from + self.lasts
    }
}

/// Plans the faults of a run. Half of the runs have one fault and must recover from it. The others
/// have none, two that overlap, or several.
pub(super) fn plan(rng: &mut NodeRng) -> Vec<Harm> {
    let mut at = Duration::from_millis(1_500 + rng.below(6_000));
    let (count, overlap) = match rng.below(20) {
        0 => (0, false),
        1..=9 => (1, false),
        10..=15 => (2, true),
        16..=17 => (2, false),
        _ => (3, rng.below(2) == 0),
    };
    let mut plan = Vec::new();
    for _ in 0..count {
        let harm = Harm::drawn(rng, at);
        at = if overlap {
            harm.from + rng.ms(super::calls::millis(harm.lasts) + 4_000)
        } else {
            harm.ends() + RECOVERS + rng.ms(3_000)
        };
        plan.push(harm);
    }
    plan
}

/// Injects a fault, and ends it.
pub(super) async fn befall(scene: Arc<Scene>, harm: Harm, start: tokio::time::Instant) {
    sleep_until(start + harm.from).await;
    let mut rng = scene.rng();
    let process = scene.process(harm.slot);
    let needs_life = !matches!(
        harm.kind,
        Kind::CutAll | Kind::RollBack | Kind::Fill | Kind::Slow | Kind::Lossy | Kind::LossyMessages
    );
    if needs_life && process.is_dead() {
        return;
    }
    let fault = match harm.kind {
        Kind::Kill | Kind::Drain | Kind::Hold => FaultKind::Node,
        Kind::Cut | Kind::CutAll | Kind::Slow | Kind::Lossy => FaultKind::StoreAway,
        Kind::RollBack => FaultKind::StoreForgets,
        Kind::Fill => FaultKind::StoreFull,
        Kind::Deafen | Kind::LossyMessages | Kind::CutClients | Kind::Silence => FaultKind::Other,
    };
    let name = format!("{:?} {}", harm.kind, harm.slot);
    let number = scene.record.harm(name, fault);
    match harm.kind {
        Kind::Kill => {
            process.kill();
            sleep(harm.lasts).await;
            scene.restart(harm.slot).await;
        }
        Kind::Drain => {
            process.drain(harm.lasts).await;
            scene.restart(harm.slot).await;
        }
        Kind::Hold => {
            process.still.stop();
            sleep(harm.lasts).await;
            process.still.go_on();
        }
        Kind::Cut => {
            scene.cut(&process, |cuts| cuts.is_off = true);
            sleep(harm.lasts).await;
            scene.cut(&process, |cuts| cuts.is_off = false);
        }
        Kind::Deafen => {
            scene.cut(&process, |cuts| cuts.is_deaf = true);
            sleep(harm.lasts).await;
            scene.cut(&process, |cuts| cuts.is_deaf = false);
        }
        Kind::CutClients => {
            process.set_way(Way::Closed);
            sleep(harm.lasts).await;
            process.set_way(Way::Open);
        }
        Kind::Silence => {
            process.set_way(Way::Silent);
            sleep(harm.lasts).await;
            process.set_way(Way::Open);
        }
        Kind::CutAll | Kind::Fill | Kind::Slow | Kind::Lossy | Kind::LossyMessages => {
            scene.add_weather(number, weather(harm.kind, &mut rng));
            sleep(harm.lasts).await;
            scene.end_weather(number);
        }
        Kind::RollBack => {
            let old = scene.store.snapshot();
            sleep(harm.lasts).await;
            scene.store.roll_back(&old);
            scene
                .record
                .goes_on("another store", FaultKind::StoreRolledBack);
        }
    }
    scene.record.healed(number, fault);
}

/// Additional behaviour of the store.
fn weather(kind: Kind, rng: &mut NodeRng) -> Weather {
    let mut often = |most: u32| 20 + u32::try_from(rng.below(u64::from(most))).expect("small");
    let rates = match kind {
        Kind::Slow => Rates {
            delay: Duration::from_secs(2),
            reply_delay: Duration::from_millis(500),
            ..Rates::default()
        },
        Kind::Lossy => Rates {
            before: often(200),
            lost: often(200),
            message_lost: often(400),
            message_twice: often(200),
            message_late: often(200),
            ..Rates::default()
        },
        Kind::LossyMessages => Rates {
            message_lost: often(800),
            message_twice: often(200),
            message_late: often(200),
            ..Rates::default()
        },
        _ => Rates::default(),
    };
    Weather {
        is_away: kind == Kind::CutAll,
        is_full: kind == Kind::Fill,
        rates,
    }
}
