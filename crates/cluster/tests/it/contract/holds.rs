//! Limits on simultaneous use (STREAM-16.2).

use std::time::Duration;

use portolan_cluster::store::{HeldSlots, HoldSlots, NodeId};

use crate::fixture::{Ground, names::*};

super::cases![
    together_nodes_hold_no_more_than_the_limit,
    what_is_given_back_is_there_for_others,
    the_share_of_a_node_that_died_is_free_again,
    what_is_used_is_held_whatever_the_limit,
    saying_it_again_changes_nothing,
    limits_are_counted_apart,
    absurd_numbers_do_no_harm,
];

const LIFE: Duration = Duration::from_secs(60);

fn wanted(used: u64, want: u64) -> HoldSlots {
    HoldSlots {
        shard: "tenant".to_owned(),
        bucket: "calls".to_owned(),
        limit: 10,
        used,
        want,
    }
}

async fn hold(ground: &Ground, node: NodeId, wanted: HoldSlots) -> HeldSlots {
    ground
        .store
        .hold_slots(node, LIFE, &wanted)
        .await
        .expect("answered")
}

const fn held(held: u64, held_elsewhere: u64, used_elsewhere: u64) -> HeldSlots {
    HeldSlots {
        held,
        held_elsewhere,
        used_elsewhere,
    }
}

async fn together_nodes_hold_no_more_than_the_limit(ground: &Ground) {
    assert_eq!(hold(ground, A, wanted(2, 6)).await, held(6, 0, 0));
    assert_eq!(hold(ground, B, wanted(1, 6)).await, held(4, 6, 2));
    assert_eq!(hold(ground, C, wanted(0, 1)).await, held(0, 10, 3));
    assert_eq!(hold(ground, A, wanted(6, 9)).await, held(6, 4, 1));
}

async fn what_is_given_back_is_there_for_others(ground: &Ground) {
    hold(ground, A, wanted(0, 10)).await;
    assert_eq!(hold(ground, B, wanted(0, 3)).await.held, 0);
    assert_eq!(hold(ground, A, wanted(1, 4)).await.held, 4);
    assert_eq!(hold(ground, B, wanted(0, 9)).await, held(6, 4, 1));
    assert_eq!(hold(ground, A, wanted(0, 0)).await, held(0, 6, 0));
    assert_eq!(hold(ground, B, wanted(0, 10)).await, held(10, 0, 0));
}

async fn the_share_of_a_node_that_died_is_free_again(ground: &Ground) {
    let store = &*ground.store;
    store
        .hold_slots(A, ms(400), &wanted(7, 7))
        .await
        .expect("held");
    assert_eq!(hold(ground, B, wanted(0, 9)).await, held(3, 7, 7));
    // A node that renews its share keeps it.
    ground.pass(ms(250)).await;
    store
        .hold_slots(A, ms(400), &wanted(7, 7))
        .await
        .expect("held");
    ground.pass(ms(250)).await;
    assert_eq!(hold(ground, B, wanted(0, 9)).await.held, 3);
    ground.pass(ms(300)).await;
    assert_eq!(hold(ground, B, wanted(0, 9)).await, held(9, 0, 0));
    // The node was only late. It keeps what it uses, and gets no more until permits are free.
    let back = store
        .hold_slots(A, ms(400), &wanted(7, 9))
        .await
        .expect("held");
    assert_eq!(back, held(7, 9, 0));
}

async fn what_is_used_is_held_whatever_the_limit(ground: &Ground) {
    hold(ground, A, wanted(8, 8)).await;
    // The limit was lowered.
    let lower = |used, want| HoldSlots {
        limit: 3,
        ..wanted(used, want)
    };
    assert_eq!(hold(ground, A, lower(8, 9)).await, held(8, 0, 0));
    assert_eq!(hold(ground, B, lower(0, 1)).await, held(0, 8, 8));
    assert_eq!(hold(ground, A, lower(2, 2)).await.held, 2);
    assert_eq!(hold(ground, B, lower(0, 9)).await.held, 1);
}

/// The reply may be lost: the numbers are absolute.
async fn saying_it_again_changes_nothing(ground: &Ground) {
    for _ in 0..3 {
        assert_eq!(hold(ground, A, wanted(1, 4)).await, held(4, 0, 0));
    }
    for _ in 0..3 {
        assert_eq!(hold(ground, B, wanted(0, 9)).await, held(6, 4, 1));
    }
}

async fn limits_are_counted_apart(ground: &Ground) {
    hold(ground, A, wanted(0, 10)).await;
    let streams = HoldSlots {
        bucket: "streams".to_owned(),
        ..wanted(0, 5)
    };
    assert_eq!(hold(ground, B, streams).await, held(5, 0, 0));
    let other = HoldSlots {
        shard: "an}other{".to_owned(),
        ..wanted(0, 5)
    };
    assert_eq!(hold(ground, B, other).await, held(5, 0, 0));
}

async fn absurd_numbers_do_no_harm(ground: &Ground) {
    let absurd = HoldSlots {
        limit: u64::MAX,
        ..wanted(u64::MAX, u64::MAX)
    };
    let answer = hold(ground, A, absurd.clone()).await;
    assert!(answer.held > 1 << 30);
    assert_eq!(hold(ground, B, absurd).await.held_elsewhere, answer.held);
    assert_eq!(hold(ground, C, wanted(0, 1)).await.held, 0);
}
