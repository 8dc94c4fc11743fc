//! Limits and membership (STREAM-12.1, STREAM-16.1).

use std::time::Duration;

use portolan_cluster::store::{Bounds, TakeTokens, TakenTokens};

use crate::fixture::{Ground, names::*};

super::cases![
    a_bucket_gives_its_burst_and_then_its_rate,
    buckets_are_counted_apart_and_answered_in_order,
    debt_is_always_taken,
    what_is_given_back_can_be_taken_again,
    absurd_wishes_do_no_harm,
    no_more_is_admitted_than_the_rate_and_the_burst,
    members_see_each_other_and_the_dead with short_memory,
    who_leaves_is_forgotten,
];

fn short_memory() -> Bounds {
    Bounds {
        dead_for: ms(1500),
        ..Bounds::default()
    }
}

fn wanted(bucket: &str, want: u64, debt: u64) -> TakeTokens {
    TakeTokens {
        shard: "tenant".to_owned(),
        bucket: bucket.to_owned(),
        interval_us: 10_000_000,
        burst: 5,
        want,
        debt,
        back: 0,
    }
}

async fn take(ground: &Ground, wanted: TakeTokens) -> TakenTokens {
    let leases = ground.store.take_tokens(&[wanted]).await.expect("leased");
    assert_eq!(leases.len(), 1);
    leases[0]
}

async fn a_bucket_gives_its_burst_and_then_its_rate(ground: &Ground) {
    let lease = take(ground, wanted("x", 3, 0)).await;
    assert_eq!((lease.granted, lease.wait), (3, Duration::ZERO));
    let lease = take(ground, wanted("x", 9, 0)).await;
    assert_eq!(lease.granted, 2, "what there is");
    let lease = take(ground, wanted("x", 1, 0)).await;
    assert_eq!(lease.granted, 0);
    assert!(
        lease.wait > Duration::from_secs(8) && lease.wait <= Duration::from_secs(10),
        "{lease:?}"
    );
    let quick = |want| TakeTokens {
        interval_us: 100_000,
        ..wanted("quick", want, 0)
    };
    assert_eq!(take(ground, quick(5)).await.granted, 5);
    ground.pass(ms(210)).await;
    let granted = take(ground, quick(5)).await.granted;
    assert!((2..=5).contains(&granted), "{granted}");
}

async fn buckets_are_counted_apart_and_answered_in_order(ground: &Ground) {
    let other = TakeTokens {
        shard: "an}ot{her".to_owned(),
        ..wanted("x", 4, 0)
    };
    let batch = [
        wanted("x", 1, 0),
        wanted("y|\0", 2, 0),
        wanted("x", 3, 0),
        other,
        wanted("x", 9, 0),
    ];
    let leases = ground.store.take_tokens(&batch).await.expect("leased");
    let granted: Vec<_> = leases.iter().map(|lease| lease.granted).collect();
    assert_eq!(granted, [1, 2, 3, 4, 1]);
    assert_eq!(ground.store.take_tokens(&[]).await, Ok(Vec::new()));
}

async fn debt_is_always_taken(ground: &Ground) {
    assert_eq!(take(ground, wanted("x", 1, 2)).await.granted, 1);
    assert_eq!(take(ground, wanted("x", 9, 0)).await.granted, 2);
    let lease = take(ground, wanted("x", 0, 3)).await;
    assert_eq!(lease.granted, 0);
    assert!(lease.wait > Duration::from_secs(38), "{lease:?}");
}

async fn what_is_given_back_can_be_taken_again(ground: &Ground) {
    let back = |back| TakeTokens {
        back,
        ..wanted("x", 0, 0)
    };
    assert_eq!(take(ground, wanted("x", 5, 0)).await.granted, 5);
    assert_eq!(take(ground, wanted("x", 1, 0)).await.granted, 0);
    assert_eq!(take(ground, back(2)).await.granted, 0);
    assert_eq!(take(ground, wanted("x", 9, 0)).await.granted, 2);
    // Never more than the capacity of the bucket, also not for the next request.
    take(ground, back(1_000)).await;
    assert_eq!(take(ground, wanted("x", 9, 0)).await.granted, 5);
    // In one request, tokens are given back before others are taken.
    let exchange = TakeTokens {
        back: 3,
        ..wanted("x", 9, 0)
    };
    assert_eq!(take(ground, exchange).await.granted, 3);
}

async fn absurd_wishes_do_no_harm(ground: &Ground) {
    let absurd = |want, debt| TakeTokens {
        interval_us: 0,
        burst: u64::MAX,
        ..wanted("x", want, debt)
    };
    assert!(take(ground, absurd(u64::MAX, 0)).await.granted > 0);
    for _ in 0..4 {
        assert_eq!(take(ground, absurd(u64::MAX, u64::MAX)).await.granted, 0);
    }
    let none = TakeTokens {
        burst: 0,
        ..wanted("none", 1, 0)
    };
    assert_eq!(take(ground, none).await.granted, 0);
}

/// TEST-C11, for the part of the store.
async fn no_more_is_admitted_than_the_rate_and_the_burst(ground: &Ground) {
    let one = TakeTokens {
        interval_us: 5_000,
        burst: 10,
        ..wanted("x", 3, 0)
    };
    let begin = std::time::Instant::now();
    let mut admitted = 0;
    for _ in 0..60 {
        admitted += take(ground, one.clone()).await.granted;
        ground.pass(ms(2)).await;
    }
    let passed = begin.elapsed().max(ms(120));
    let most = 10 + passed.as_micros() / 5_000 + 1;
    assert!(u128::from(admitted) <= most, "{admitted} of {most}");
    assert!(admitted >= 30, "{admitted}");
}

async fn members_see_each_other_and_the_dead(ground: &Ground) {
    let store = &*ground.store;
    let members = store.heartbeat(A, ms(1000)).await.expect("beat");
    assert_eq!(members.nodes.len(), 1);
    let members = store.heartbeat(B, MINUTE).await.expect("beat");
    let nodes: Vec<_> = members.nodes.iter().map(|member| member.node).collect();
    assert_eq!(nodes, [A, B]);
    assert!((1..=1000).contains(&members.nodes[0].valid_ms));
    assert!((59_000..=60_000).contains(&members.nodes[1].valid_ms));
    ground.pass(ms(1200)).await;
    let members = store.heartbeat(B, MINUTE).await.expect("beat");
    assert!(
        matches!(&members.nodes[..], [dead, _] if dead.node == A && dead.valid_ms <= -50),
        "{members:?}"
    );
    ground.pass(ms(1500)).await;
    let members = store.heartbeat(B, MINUTE).await.expect("beat");
    assert_eq!(members.nodes.len(), 1);
    let members = store.heartbeat(A, MINUTE).await.expect("beat");
    assert_eq!(members.nodes.len(), 2, "back again");
}

async fn who_leaves_is_forgotten(ground: &Ground) {
    let store = &*ground.store;
    store.heartbeat(A, MINUTE).await.expect("beat");
    store.heartbeat(A, Duration::ZERO).await.expect("left");
    store
        .heartbeat(C, Duration::ZERO)
        .await
        .expect("never there");
    let members = store.heartbeat(B, MINUTE).await.expect("beat");
    assert_eq!(members.nodes.len(), 1);
}
