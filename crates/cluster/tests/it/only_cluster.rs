//! Failures that only a cluster can have: wrong servers of slots, moving slots, and a missing part
//! (STREAM-3, STREAM-17.1).

use std::{sync::Arc, time::Duration};

use portolan_cluster::{
    redis::RedisStore,
    store::{
        Begin, Bounds, NodeId, NodeMessage, Routed, SessionKey, Store, StoreError, TakeTokens,
        TakenTokens,
    },
};
use redis::Value;

use crate::fixture::{
    cluster::{RedisCluster, text},
    connect_with,
    names::*,
    options_at,
};

fn session(partition: u8) -> SessionKey {
    SessionKey([partition; 16])
}

async fn connect(cluster: &RedisCluster) -> RedisStore {
    connect_with(options_at(cluster.url(), Bounds::default())).await
}

/// Slot of a partition, computed by the cluster for a key of one of its sessions.
async fn slot_of(cluster: &RedisCluster, session: SessionKey) -> (u16, String) {
    for master in &cluster.masters {
        let Value::Array(keys) = master.command(&["KEYS", "*:s:*"]).await else {
            panic!("KEYS")
        };
        let mine: String = session.0.iter().map(|byte| format!("{byte:02x}")).collect();
        for key in keys.into_iter().map(text) {
            if key.ends_with(&mine) {
                let Value::Int(slot) = master.command(&["CLUSTER", "KEYSLOT", &key]).await else {
                    panic!("KEYSLOT")
                };
                return (u16::try_from(slot).expect("a slot"), key);
            }
        }
    }
    panic!("no record")
}

/// Sessions of all partitions, nodes and tenants. Messages of every master reach the one
/// subscriber.
#[tokio::test]
async fn every_lane_is_served_by_its_master_and_rings_everybody() {
    let cluster = RedisCluster::start().await;
    let store = connect(&cluster).await;
    let mut messages = store.subscribe(A).await.expect("heard");
    for partition in 0..=255 {
        let session = session(partition);
        store
            .begin(session, ME, None, &fresh("x"))
            .await
            .expect("made");
        store
            .register(session, "i:1", A, None, MINUTE)
            .await
            .expect("registered");
        let routed = store.cancel(session, ME, "i:1").await;
        assert_eq!(routed, Ok(Routed::Notified));
        let rpc = "i:1".to_owned();
        assert_eq!(
            heard(&mut messages).await,
            NodeMessage::Cancel { session, rpc }
        );
    }
    let mut of_masters = Vec::new();
    for master in &cluster.masters {
        let Value::Int(keys) = master.command(&["DBSIZE"]).await else {
            panic!("DBSIZE")
        };
        of_masters.push(keys);
    }
    // A record and a running request for each partition.
    assert_eq!(of_masters.iter().sum::<i64>(), 512);
    assert!(of_masters.iter().all(|keys| *keys > 150), "{of_masters:?}");

    let before = store.redis_commands();
    let wanted: Vec<_> = (0..60)
        .map(|n| TakeTokens {
            shard: format!("ten_{}", n / 2),
            bucket: (n % 2).to_string(),
            interval_us: 1_000_000,
            burst: 100,
            want: n,
            debt: 0,
            back: 0,
        })
        .collect();
    let granted: Vec<_> = store
        .take_tokens(&wanted)
        .await
        .expect("leased")
        .iter()
        .map(|TakenTokens { granted, .. }| *granted)
        .collect();
    assert_eq!(granted, (0..60).collect::<Vec<_>>(), "in order");
    assert!(
        store.redis_commands() - before <= 30,
        "buckets of a tenant go together"
    );
    assert!(store.measure_memory().await.expect("told").is_some());
}

/// An operator moves a slot. No data is lost, and owners audit their streams.
#[tokio::test]
async fn a_slot_that_moves_is_followed() {
    let cluster = RedisCluster::start().await;
    let store = connect(&cluster).await;
    let mut incarnation = store.health().incarnation;
    let version = begun(&store).await;
    open(&store, stream(1), 2).await;
    let (slot, _) = slot_of(&cluster, S).await;
    let from = &cluster.masters[cluster.of(slot)];
    let to = &cluster.masters[(cluster.of(slot) + 1) % 3];
    let id = async |master: &crate::fixture::server::RedisServer| {
        text(master.command(&["CLUSTER", "MYID"]).await)
    };
    let (from_id, to_id) = (id(from).await, id(to).await);
    let number = slot.to_string();
    to.command(&["CLUSTER", "SETSLOT", &number, "IMPORTING", &from_id])
        .await;
    from.command(&["CLUSTER", "SETSLOT", &number, "MIGRATING", &to_id])
        .await;
    let Value::Array(keys) = from
        .command(&["CLUSTER", "GETKEYSINSLOT", &number, "100"])
        .await
    else {
        panic!("GETKEYSINSLOT")
    };
    let port = to.port().to_string();
    for key in keys.into_iter().map(text) {
        from.command(&["MIGRATE", "127.0.0.1", &port, &key, "0", "1000"])
            .await;
    }
    // During the move, the store refuses after half a second and does not apply the append twice.
    let on_the_way = store.append(stream(1), &append(2, vec![note("3")])).await;
    assert!(is_down(&on_the_way), "{on_the_way:?}");
    for master in &cluster.masters {
        master
            .command(&["CLUSTER", "SETSLOT", &number, "NODE", &to_id])
            .await;
    }
    let appended = store.append(stream(1), &append(2, vec![note("3")])).await;
    assert_eq!(appended, Ok(done(3, Some(A), 1)));
    let alive = store.begin(S, ME, Some(version), &fresh("x")).await;
    let body = None;
    assert_eq!(alive, Ok(Begin::Alive { version, body }));
    tokio::time::timeout(Duration::from_secs(5), incarnation.changed())
        .await
        .expect("told")
        .expect("there");
}

/// One master dies: its sessions wait, and others are unaffected. It returns empty: all nodes read
/// everything.
#[tokio::test]
async fn a_master_that_dies_takes_only_its_own_lanes_along() {
    let mut cluster = RedisCluster::start().await;
    let store = Arc::new(connect(&cluster).await);
    let mut incarnation = store.health().incarnation;
    let mut messages = store.subscribe(A).await.expect("heard");
    let mut of_master: [Vec<SessionKey>; 3] = Default::default();
    for partition in [0, 30, 60, 90, 120, 150, 180, 210, 240] {
        store
            .begin(session(partition), ME, None, &fresh("x"))
            .await
            .expect("made");
        let (slot, _) = slot_of(&cluster, session(partition)).await;
        of_master[cluster.of(slot)].push(session(partition));
    }
    cluster.masters[2].stop();
    for session in &of_master[2] {
        assert!(is_down(&store.begin(*session, ME, None, &fresh("x")).await));
    }
    for session in of_master[..2].iter().flatten() {
        let begun = store.begin(*session, ME, None, &fresh("x")).await;
        assert!(matches!(begun, Ok(Begin::Alive { .. })), "{begun:?}");
    }
    cluster.masters[2].again();
    cluster.wait().await;
    let until = std::time::Instant::now() + Duration::from_secs(20);
    let back = loop {
        match store.begin(of_master[2][0], ME, None, &fresh("x")).await {
            Ok(begun) => break begun,
            Err(StoreError::Down(_)) if std::time::Instant::now() < until => {
                tokio::time::sleep(ms(50)).await;
            }
            Err(error) => panic!("{error}"),
        }
    };
    assert!(matches!(back, Begin::Rebuilt { .. }), "it was emptied");
    assert!(incarnation.has_changed().expect("there"));
    incarnation.mark_unchanged();

    // The subscriber's own master dies: the subscriber uses another one.
    for master in 0..2 {
        cluster.masters[master].stop();
        let there = of_master[2][0];
        let node = NodeId(*b"naaaaaaaaaaaaa");
        assert_eq!(node, A);
        let until = std::time::Instant::now() + Duration::from_secs(10);
        loop {
            // Until the subscriber has moved, messages are lost, and all nodes receive `Resync`.
            store
                .register(there, "i:1", A, None, MINUTE)
                .await
                .expect("registered");
            store.cancel(there, ME, "i:1").await.expect("rung");
            store.unregister(there, "i:1").await.expect("gone");
            let message = tokio::time::timeout(ms(200), messages.recv()).await;
            if matches!(message, Ok(Some(NodeMessage::Cancel { .. }))) {
                break;
            }
            assert!(std::time::Instant::now() < until, "nothing rings");
        }
        while messages.try_recv().is_ok() {}
        cluster.masters[master].again();
        cluster.wait().await;
    }
}

#[tokio::test]
async fn several_addresses_are_a_cluster_or_a_mistake() {
    let server = crate::fixture::server::RedisServer::start();
    let url = format!("{0},{0}", server.url());
    let refused = RedisStore::connect(
        options_at(url, Bounds::default()),
        &tokio_util::task::TaskTracker::new(),
        tokio_util::sync::CancellationToken::new(),
    )
    .await;
    assert!(
        matches!(&refused, Err(StoreError::Refused(why)) if why.contains("no cluster")),
        "{refused:?}"
    );
    // Any of the masters leads to the others.
    let cluster = RedisCluster::start().await;
    let store = connect_with(options_at(cluster.masters[1].url(), Bounds::default())).await;
    for partition in [0, 100, 200] {
        store
            .begin(session(partition), ME, None, &fresh("x"))
            .await
            .expect("made");
    }
}
