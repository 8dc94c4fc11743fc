//! Rate limits over several nodes (STREAM-16.1).
#![expect(clippy::unwrap_used, reason = "a test stops where it goes wrong")]

use std::time::Duration;

use portolan_cluster::node::{Limit, LimitKey, Rate};
use tokio::time::Instant;

use super::world::{Member, World};
use crate::fixture::fault::Rates;

fn key(bucket: &str) -> LimitKey {
    LimitKey {
        shard: "ten_1".into(),
        bucket: bucket.into(),
    }
}

/// A small generator, so that the schedules are the same in every run.
struct NodeRng(u64);

impl NodeRng {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % limit
    }
}

#[tokio::test(start_paused = true)]
async fn no_window_admits_more_than_burst_and_rate_and_the_leases_and_one_for_each_node() {
    for seed in 1..=12 {
        let world = World::new();
        let mut rng = NodeRng(seed);
        let count = 1 + rng.below(4);
        let rate = Rate {
            limit: Limit::TenantCalls,
            interval_us: 2_000 + rng.below(60_000),
            burst: 1 + rng.below(80),
        };
        let mut nodes = Vec::new();
        for _ in 0..count {
            nodes.push(world.node().await);
        }
        // All nodes know each other.
        tokio::time::sleep(Duration::from_secs(4)).await;
        let start = Instant::now();
        let mut admitted: Vec<Duration> = Vec::new();
        let (mut asked, mut pause) = (0_u64, 1);
        while start.elapsed() < Duration::from_secs(8) {
            // Bursts, steady traffic and pauses in turn.
            if rng.below(200) == 0 {
                pause = [0, 1, 5, 40][usize::try_from(rng.below(4)).unwrap()];
            }
            let on = usize::try_from(rng.below(count)).unwrap();
            asked += 1;
            if nodes[on]
                .node
                .limits()
                .take(&key("all"), rate, 1)
                .await
                .is_ok()
            {
                admitted.push(start.elapsed());
            }
            tokio::time::sleep(Duration::from_millis(pause + u64::from(asked % 7 == 0))).await;
        }
        let interval = f64::from(u32::try_from(rate.interval_us).unwrap()) / 1e6;
        for (index, from) in admitted.iter().enumerate() {
            for (more, to) in admitted[index..].iter().enumerate() {
                let window = to.saturating_sub(*from).as_secs_f64();
                // The store's clock moves in steps of 5 ms.
                let bound = f64::from(u32::try_from(rate.burst + count).unwrap())
                    + (window + 1.0 + 0.01) / interval;
                let got = f64::from(u32::try_from(more + 1).unwrap());
                assert!(
                    got <= bound,
                    "seed {seed}: {got} in {window} s with {count} nodes, {rate:?}: above {bound}"
                );
            }
        }
        assert!(!admitted.is_empty());
        for member in nodes {
            member.stop.cancel();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_limit_admits_what_it_promises_and_tells_when_to_come_back() {
    let world = World::new();
    let a = world.node().await;
    let rate = Rate {
        limit: Limit::TenantCalls,
        interval_us: 100_000,
        burst: 5,
    };
    let limits = a.node.limits();
    let mut admitted = 0;
    let refused = loop {
        match limits.take(&key("small"), rate, 1).await {
            Ok(()) => admitted += 1,
            Err(after) => break after,
        }
    };
    assert_eq!(admitted, 5);
    assert!(refused.0 <= Duration::from_millis(110), "{refused:?}");
    tokio::time::sleep(refused.0 + Duration::from_millis(10)).await;
    assert!(limits.take(&key("small"), rate, 1).await.is_ok());
    // Other buckets are not affected. A request above the capacity is refused at once.
    assert!(limits.take(&key("other"), rate, 5).await.is_ok());
    assert!(limits.try_take(&key("other"), rate, 6).unwrap().is_err());
}

#[tokio::test(start_paused = true)]
async fn steady_traffic_of_a_big_bucket_neither_waits_nor_asks_each_time() {
    let world = World::new();
    let (a, _b) = (world.node().await, world.node().await);
    let rate = Rate {
        limit: Limit::TenantCalls,
        interval_us: 1_000,
        burst: 1_000,
    };
    let limits = a.node.limits();
    for _ in 0..200 {
        limits.take(&key("big"), rate, 1).await.unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let before = a.faults.operations();
    let mut waited = 0;
    for _ in 0..400 {
        match limits.try_take(&key("big"), rate, 1) {
            Some(verdict) => verdict.unwrap(),
            None => {
                waited += 1;
                limits.take(&key("big"), rate, 1).await.unwrap();
            }
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let asked = a.faults.operations() - before;
    assert_eq!(waited, 0);
    assert!(asked < 40, "{asked}");
}

#[tokio::test(start_paused = true)]
async fn without_the_store_the_nodes_together_admit_the_configured_limit() {
    let world = World::new();
    let (a, b) = (world.node().await, world.node().await);
    let rate = Rate {
        limit: Limit::TenantCalls,
        interval_us: 100_000,
        burst: 20,
    };
    tokio::time::sleep(Duration::from_secs(4)).await;
    for member in [&a, &b] {
        member.faults.cut_off(true);
    }
    tokio::time::sleep(Duration::from_secs(10)).await;
    let mut admitted = 0;
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(5) {
        for member in [&a, &b] {
            let verdict = member.node.limits().take(&key("down"), rate, 1).await;
            admitted += u32::from(verdict.is_ok());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // 20 at once and 10 a second, plus or minus one per node.
    assert!((66..=72).contains(&admitted), "{admitted}");
}

/// Takes from all nodes as fast as possible for the time `long`. Returns the times of the
/// admissions.
async fn admissions(world: &World, nodes: &[Member], rate: Rate, long: Duration) -> Vec<Duration> {
    let start = Instant::now();
    let mut tasks = Vec::new();
    for member in nodes {
        for _ in 0..4 {
            let limits = member.node.limits();
            tasks.push(world.tracker.spawn(async move {
                let mut admitted = Vec::new();
                while start.elapsed() < long {
                    if limits.take(&key("all"), rate, 1).await.is_ok() {
                        admitted.push(start.elapsed());
                    }
                    tokio::time::sleep(Duration::from_millis(7)).await;
                }
                admitted
            }));
        }
    }
    let mut all = Vec::new();
    for task in tasks {
        all.extend(task.await.unwrap());
    }
    all.sort_unstable();
    all
}

/// At no time more than burst, rate, leases and one per node (STREAM-16.1).
fn is_within(admitted: &[Duration], rate: Rate, nodes: usize) -> Result<(), String> {
    let interval = Duration::from_micros(rate.interval_us).as_secs_f64();
    for (index, from) in admitted.iter().enumerate() {
        for (to, got) in admitted[index..].iter().zip(1_u32..) {
            let window = to.saturating_sub(*from).as_secs_f64();
            // The store's clock moves in steps of 5 ms.
            let most =
                f64::from(u32::try_from(rate.burst).unwrap() + u32::try_from(nodes).unwrap())
                    + (window + 1.0 + 0.01) / interval;
            if f64::from(got) > most {
                return Err(format!("{got} from {from:?} to {to:?}, above {most}"));
            }
        }
    }
    Ok(())
}

/// TEST-C11: a late reply of the store still counts, and requests that were admitted meanwhile are
/// charged.
#[tokio::test(start_paused = true)]
async fn a_store_that_answers_late_admits_no_more_than_a_fast_one() {
    for (interval_us, burst) in [(2_000_000, 30), (100_000, 40), (50_000, 10), (200_000, 3)] {
        let world = World::new();
        let nodes = [world.node().await, world.node().await, world.node().await];
        tokio::time::sleep(Duration::from_secs(4)).await;
        for member in &nodes {
            member.faults.set_rates(Rates {
                delay: Duration::from_millis(240),
                reply_delay: Duration::from_millis(240),
                ..Rates::default()
            });
        }
        let rate = Rate {
            limit: Limit::TenantCalls,
            interval_us,
            burst,
        };
        let long = Duration::from_secs(20);
        let admitted = admissions(&world, &nodes, rate, long).await;
        assert_eq!(is_within(&admitted, rate, 3), Ok(()), "{rate:?}");
        // Nor much less: tokens that are leased and not used are lost.
        let ideal = burst + 20_000_000 / interval_us;
        let got = admitted.len() as u64;
        assert!(got * 4 >= ideal * 3, "{got} of {ideal}");
        for member in nodes {
            member.stop.cancel();
        }
    }
}

/// TEST-C11, TEST-F7: nodes that decide alone grant no second burst to a caller that has used the
/// first. Their admissions are charged when the store accepts writes again.
#[tokio::test(start_paused = true)]
async fn a_full_store_is_no_second_burst() {
    for (interval_us, burst) in [(100_000, 30), (50_000, 12), (300_000, 60), (20_000, 200)] {
        let world = World::new();
        let nodes = [world.node().await, world.node().await, world.node().await];
        tokio::time::sleep(Duration::from_secs(4)).await;
        let rate = Rate {
            limit: Limit::TenantCalls,
            interval_us,
            burst,
        };
        let fill = async {
            for _ in 0..3 {
                tokio::time::sleep(Duration::from_secs(4)).await;
                for member in &nodes {
                    member.faults.refuse_writes(true);
                }
                tokio::time::sleep(Duration::from_secs(4)).await;
                for member in &nodes {
                    member.faults.refuse_writes(false);
                }
            }
        };
        let long = Duration::from_secs(26);
        let (admitted, ()) = tokio::join!(admissions(&world, &nodes, rate, long), fill);
        assert_eq!(is_within(&admitted, rate, 3), Ok(()), "{rate:?}");
        let ideal = burst + 26_000_000 / interval_us;
        let got = admitted.len() as u64;
        assert!(got * 4 >= ideal * 3, "{got} of {ideal}");
        for member in nodes {
            member.stop.cancel();
        }
    }
}

/// Idle buckets are removed, and pay their debt before: the long-run rate holds exactly.
#[tokio::test(start_paused = true)]
async fn who_owes_pays_also_if_nobody_asks_again() {
    let world = World::new();
    let begun = Instant::now();
    let (a, b) = (world.node().await, world.node().await);
    tokio::time::sleep(Duration::from_secs(15)).await;
    let rate = Rate {
        limit: Limit::TenantCalls,
        interval_us: 1_000_000,
        burst: 10,
    };
    let admitted = async |member: &Member| {
        let mut admitted = 0;
        while member
            .node
            .limits()
            .take(&key("all"), rate, 1)
            .await
            .is_ok()
        {
            admitted += 1;
        }
        admitted
    };
    a.faults.refuse_writes(true);
    assert_eq!(admitted(&a).await, 5, "its half");
    a.faults.refuse_writes(false);
    // Idle buckets are removed every 10 s, and this one would be full after 11.
    tokio::time::sleep_until(begun + Duration::from_millis(30_200)).await;
    assert_eq!(admitted(&b).await, 5, "the other half");
}
