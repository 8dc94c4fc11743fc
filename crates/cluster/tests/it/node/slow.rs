//! The store is slow, or nearly full: nodes send it less (STREAM-17.1 *Slow Redis*, STREAM-17.2).
#![expect(clippy::unwrap_used, reason = "a test stops where it goes wrong")]

use std::time::Duration;

use portolan_cluster::{
    node::{Limit, LimitKey, Rate},
    store::{Class, Routed},
};

use super::world::{ME, Member, NOTE, START, World, first, fresh, next, rest, show, some, text};
use crate::fixture::fault::Rates;

/// Calls `begin` often, for the given time.
async fn begin_for(member: &Member, world: &World, long: Duration) {
    let session = world.session(member).await;
    let until = tokio::time::Instant::now() + long;
    while tokio::time::Instant::now() < until {
        member
            .node
            .begin(session, ME, &fresh("body"))
            .await
            .unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn slow() -> Rates {
    Rates {
        delay: Duration::from_millis(150),
        ..Rates::default()
    }
}

/// Whether tokens are prefetched.
async fn fetches_ahead(member: &Member, bucket: &str) -> bool {
    let key = LimitKey {
        shard: "ten_1".into(),
        bucket: bucket.into(),
    };
    let rate = Rate {
        limit: Limit::TenantCalls,
        interval_us: 1000,
        burst: 1000,
    };
    for _ in 0..20 {
        member.node.limits().take(&key, rate, 1).await.unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    tokio::time::sleep(Duration::from_millis(40)).await;
    member.node.limits().try_take(&key, rate, 1).is_some()
}

/// Whether another node's cancellation reaches a request after the given time.
async fn is_known_after(world: &World, on: &Member, other: &Member, long: Duration) -> bool {
    let session = world.session(other).await;
    let _running = on
        .node
        .run(session, "i:1", Duration::from_secs(60))
        .unwrap();
    tokio::time::sleep(long).await;
    other.node.cancel(session, ME, "i:1").await.unwrap() == Routed::Notified
}

#[tokio::test(start_paused = true)]
async fn a_slow_store_is_asked_for_less_until_it_is_fast_again() {
    let world = World::new();
    let (a, b) = (world.node().await, world.node().await);
    assert!(fetches_ahead(&a, "fast").await);
    let soon = Duration::from_millis(60);
    assert!(is_known_after(&world, &a, &b, soon).await);

    a.faults.set_rates(slow());
    begin_for(&a, &world, Duration::from_secs(4)).await;
    a.faults.set_rates(Rates::default());
    assert!(
        is_known_after(&world, &a, &b, soon).await,
        "four seconds are not slow yet"
    );
    a.faults.set_rates(slow());
    begin_for(&a, &world, Duration::from_secs(8)).await;
    a.faults.set_rates(Rates::default());
    assert!(!is_known_after(&world, &a, &b, soon).await);
    assert!(is_known_after(&world, &a, &b, Duration::from_millis(300)).await);
    assert!(!fetches_ahead(&a, "slow").await);

    begin_for(&a, &world, Duration::from_secs(7)).await;
    assert!(is_known_after(&world, &a, &b, soon).await);
    assert!(fetches_ahead(&a, "again").await);
}

/// STREAM-17.2: events of class `N` are not logged. A notification that cannot be sent at once is
/// still logged, so that none is lost.
#[tokio::test(start_paused = true)]
async fn when_memory_is_nearly_full_notifications_go_to_the_client_here_and_into_no_log() {
    let world = World::new();
    let (a, b) = (world.node().await, world.node().await);
    let (stream, writer, mut reader) = a.open_stream(&world).await;
    writer.push(NOTE, text("n1")).await.unwrap();
    assert_eq!(some(&mut reader, 1).await, ["1 n1"]);
    a.faults.set_fill(85);
    // The memory is checked every fifteen seconds.
    tokio::time::sleep(Duration::from_secs(20)).await;
    writer.push(NOTE, text("n2")).await.unwrap();
    assert_eq!(show(&next(&mut reader).await.unwrap()), "- n2");
    writer.push(Class::Answer, text("kept")).await.unwrap();
    assert_eq!(some(&mut reader, 1).await, ["2 kept"]);
    // The client is on another node, so events reach it only through the log.
    drop(reader);
    let mut reader = b.resume(stream, first(2)).await;
    writer.push(NOTE, text("n3")).await.unwrap();
    assert_eq!(some(&mut reader, 1).await, ["3 n3"]);
    a.faults.set_fill(1);
    tokio::time::sleep(Duration::from_secs(20)).await;
    writer.finish(text("done"));
    assert_eq!(rest(&mut reader).await, ["4 done"]);
    assert_eq!(
        rest(&mut b.resume(stream, START).await).await,
        ["1 n1", "2 kept", "3 n3", "4 done"]
    );
}
