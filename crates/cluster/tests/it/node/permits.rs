//! Limits on simultaneous use, over several nodes (STREAM-16.2).

use std::{sync::Arc, time::Duration};

use portolan_cluster::node::{ClusterPermit, ClusterPermits, Limit, LimitKey};
use tokio::time::{Instant, sleep};

use super::world::{Member, World};

fn permits(member: &Member, most: u64) -> Arc<ClusterPermits> {
    let key = LimitKey {
        shard: "ten_1".into(),
        bucket: "running".into(),
    };
    member.node.limits().permits(key, Limit::RunningCalls, most)
}

async fn enter(member: &Member, permits: &Arc<ClusterPermits>) -> Option<ClusterPermit> {
    member.node.limits().enter(permits).await.ok()
}

/// Enters as often as possible.
async fn fill(member: &Member, permits: &Arc<ClusterPermits>, tries: usize) -> Vec<ClusterPermit> {
    let mut inside = Vec::new();
    for _ in 0..tries {
        inside.extend(enter(member, permits).await);
    }
    inside
}

/// Waits until every node knows every other.
async fn acquaint() {
    sleep(Duration::from_secs(4)).await;
}

#[tokio::test(start_paused = true)]
async fn all_nodes_together_never_admit_more_than_the_limit() {
    for most in [1, 2, 5, 16, 40, 300] {
        let world = World::new();
        let nodes = [world.node().await, world.node().await, world.node().await];
        acquaint().await;
        let permits: Vec<_> = nodes.iter().map(|node| permits(node, most)).collect();
        let mut inside: Vec<ClusterPermit> = Vec::new();
        let mut highest = 0;
        for turn in 0..3 * usize::try_from(most).unwrap() + 60 {
            let on = turn * 7 % 3;
            inside.extend(enter(&nodes[on], &permits[on]).await);
            if turn % 5 == 4 && !inside.is_empty() {
                inside.swap_remove(turn % inside.len());
            }
            highest = highest.max(inside.len());
            assert!(inside.len() as u64 <= most, "{} of {most}", inside.len());
        }
        // Unused blocks of other nodes cost at most an eighth and one permit per node.
        let worst = most - most / 8 - most.min(3);
        assert!(highest as u64 >= worst.max(1), "{highest} of {most}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_small_limit_is_used_up_wherever_the_calls_come() {
    let world = World::new();
    let (a, b) = (world.node().await, world.node().await);
    acquaint().await;
    let (on_a, on_b) = (permits(&a, 3), permits(&b, 3));
    let first = fill(&a, &on_a, 2).await;
    let second = fill(&b, &on_b, 5).await;
    assert_eq!((first.len(), second.len()), (2, 1));
    assert!(enter(&a, &on_a).await.is_none());
    // A permit that is free on one node is available to the others at once.
    drop(first);
    sleep(Duration::from_millis(60)).await;
    assert_eq!(fill(&b, &on_b, 5).await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_call_over_the_limit_waits_a_moment_for_a_place_that_becomes_free_here_or_elsewhere() {
    for most in [3, 300] {
        let world = World::new();
        let (a, b) = (world.node().await, world.node().await);
        acquaint().await;
        let (on_a, on_b) = (permits(&a, most), permits(&b, most));
        let mut inside = fill(&a, &on_a, usize::try_from(most).unwrap()).await;
        assert_eq!(inside.len() as u64, most);
        let one = async {
            sleep(Duration::from_millis(100)).await;
            drop(inside.pop());
        };
        let (permit, ()) = tokio::join!(enter(&a, &on_a), one);
        assert!(permit.is_some(), "{most}: passed on on the same node");
        // The other node refuses, but only after a wait.
        let began = Instant::now();
        assert!(enter(&b, &on_b).await.is_none());
        let waited = began.elapsed();
        assert!(
            (Duration::from_millis(200)..Duration::from_millis(400)).contains(&waited),
            "{most}: {waited:?}"
        );
        if most == 3 {
            let one = async {
                sleep(Duration::from_millis(100)).await;
                drop(permit);
            };
            let (permit, ()) = tokio::join!(enter(&b, &on_b), one);
            assert!(permit.is_some(), "given back at once, and taken");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn places_in_hand_are_entered_without_asking_and_idle_ones_are_given_back() {
    let world = World::new();
    let (a, b) = (world.node().await, world.node().await);
    acquaint().await;
    let (on_a, on_b) = (permits(&a, 160), permits(&b, 160));
    let most = fill(&a, &on_a, 160).await;
    assert_eq!(most.len(), 160);
    drop(most);
    let limits = a.node.limits();
    let calls = a.faults.operations();
    for _ in 0..1_000 {
        assert!(limits.try_enter(&on_a).is_some_and(|permit| permit.is_ok()));
    }
    assert_eq!(a.faults.operations(), calls);
    assert!(
        enter(&b, &on_b).await.is_none(),
        "all lie on the other node"
    );
    sleep(Duration::from_secs(12)).await;
    assert_eq!(fill(&b, &on_b, 160).await.len(), 160);
}

#[tokio::test(start_paused = true)]
async fn the_places_of_a_dead_node_are_free_after_the_life_of_a_beat() {
    let world = World::new();
    let (a, b) = (world.node().await, world.node().await);
    acquaint().await;
    let (on_a, on_b) = (permits(&a, 8), permits(&b, 8));
    let lost = fill(&a, &on_a, 8).await;
    assert_eq!(lost.len(), 8);
    sleep(Duration::from_secs(20)).await;
    assert!(
        enter(&b, &on_b).await.is_none(),
        "held for as long as the node lives"
    );
    a.kill();
    let killed = Instant::now();
    let permit = loop {
        if let Some(permit) = enter(&b, &on_b).await {
            break permit;
        }
        sleep(Duration::from_millis(100)).await;
    };
    let took = killed.elapsed();
    assert!(
        took > Duration::from_secs(3) && took < Duration::from_secs(8),
        "{took:?}"
    );
    drop((permit, lost));
}

#[tokio::test(start_paused = true)]
async fn while_the_store_is_down_each_node_has_its_part() {
    let world = World::new();
    let (a, b) = (world.node().await, world.node().await);
    acquaint().await;
    let (on_a, on_b) = (permits(&a, 40), permits(&b, 40));
    let before = fill(&a, &on_a, 30).await;
    assert_eq!(before.len(), 30);
    a.faults.cut_off(true);
    b.faults.cut_off(true);
    // Until the breakers open.
    sleep(Duration::from_secs(8)).await;
    assert!(
        enter(&a, &on_a).await.is_none(),
        "what runs counts: 30 are more than a half of 40"
    );
    assert_eq!(fill(&b, &on_b, 40).await.len(), 20);
    drop(before);
    assert_eq!(fill(&a, &on_a, 40).await.len(), 20);
    a.faults.cut_off(false);
    b.faults.cut_off(false);
    sleep(Duration::from_secs(10)).await;
    assert_eq!(fill(&a, &on_a, 40).await.len(), 40);
}

#[tokio::test(start_paused = true)]
async fn a_lower_limit_ends_nothing_and_admits_nobody_until_there_is_room() {
    let world = World::new();
    let a = world.node().await;
    let on_a = permits(&a, 16);
    let mut inside = fill(&a, &on_a, 10).await;
    assert_eq!(inside.len(), 10);
    let on_a = permits(&a, 4);
    sleep(Duration::from_secs(12)).await;
    assert!(enter(&a, &on_a).await.is_none());
    inside.truncate(3);
    sleep(Duration::from_millis(60)).await;
    assert!(enter(&a, &on_a).await.is_some());
    assert_eq!(on_a.used(), 3);
    let b = world.node().await;
    acquaint().await;
    let key = LimitKey {
        shard: "ten_1".into(),
        bucket: "running".into(),
    };
    for member in [&a, &b] {
        assert_eq!(member.node.limits().in_use(&key).await, Some(3));
    }
}
