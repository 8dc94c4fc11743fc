//! Failures that only a real server can have: full memory, restarts, forgotten scripts, keys
//! without expiry, cut connections.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use portolan_cluster::{
    redis::RedisStore,
    store::{
        Append, Appended, Attached, Begin, Bounds, Class, Epoch, HoldSlots, NodeId, NodeMessage,
        Nonce, Read, ReadWanted, Registered, Routed, SessionKey, Store, StoreError, StreamKey,
        TakeTokens, TakenOver, Version,
    },
};
use redis::Value;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::fixture::{connect, connect_with, names::*, options, retry::Retry, server::RedisServer};

fn wanted(position: u64) -> ReadWanted {
    ReadWanted {
        stream: stream(1),
        generation: 1,
        position,
        seen: (Some(A), Epoch::FIRST),
    }
}

fn tokens() -> TakeTokens {
    TakeTokens {
        shard: "t".to_owned(),
        bucket: "b".to_owned(),
        interval_us: 1000,
        burst: 10,
        want: 1,
        debt: 0,
        back: 0,
    }
}

fn permits() -> HoldSlots {
    HoldSlots {
        shard: "t".to_owned(),
        bucket: "c".to_owned(),
        limit: 5,
        used: 0,
        want: 2,
    }
}

/// STREAM-5: counts the commands of each operation.
#[tokio::test]
async fn every_operation_is_one_round_trip() {
    let server = RedisServer::start();
    let store = connect(&server, Bounds::default()).await;
    let key = stream(1);
    let mut before = store.redis_commands();
    let mut spent = |name: &str| {
        let now = store.redis_commands();
        assert_eq!(now - before, 1, "{name}");
        before = now;
    };
    let version = begun(&store).await;
    spent("begin that makes the record");
    begun(&store).await;
    spent("begin");
    store
        .update(S, ME, version, Bytes::new())
        .await
        .expect("ok");
    spent("update");
    store
        .append(key, &opening(vec![question("q1"), note("2")]))
        .await
        .expect("ok");
    spent("append that makes the stream");
    store
        .append(key, &append(2, vec![note("3")]))
        .await
        .expect("ok");
    spent("append");
    attach(&store, key, START, B).await;
    spent("attach");
    let many: Vec<_> = (0..128).map(wanted).collect();
    store.read(S.partition(), &many).await.expect("ok");
    spent("read of 128 streams");
    store.owned_by(S.partition(), Some(A)).await.expect("ok");
    spent("owned_by");
    store
        .register(S, "i:1", A, Some(key.nonce), MINUTE)
        .await
        .expect("ok");
    spent("register");
    store.cancel(S, ME, "i:1").await.expect("ok");
    spent("cancel");
    store.unregister(S, "i:1").await.expect("ok");
    spent("unregister");
    store.answer(S, ME, "q1", Bytes::new()).await.expect("ok");
    spent("answer");
    store.take_answer(S, "q1").await.expect("ok");
    spent("take_answer");
    store
        .take_over(&take_over(key, Some(A), Some(B), 1))
        .await
        .expect("ok");
    spent("take_over");
    store.heartbeat(A, MINUTE).await.expect("ok");
    spent("heartbeat");
    store.heartbeat(A, Duration::ZERO).await.expect("ok");
    spent("leave");
    store.take_tokens(&[tokens(), tokens()]).await.expect("ok");
    spent("take_tokens");
    store.hold_slots(A, MINUTE, &permits()).await.expect("ok");
    spent("hold_slots");
    store.remove(S, ME, Remove::Ended(LIFE)).await.expect("ok");
    spent("remove");
}

/// STREAM-17.2, and found in an earlier draft (7): if a full store refused `beat`, all nodes would
/// look dead at once.
#[tokio::test]
async fn out_of_memory_only_what_stores_much_is_refused_and_as_a_whole() {
    let server = RedisServer::start();
    let store = connect(&server, Bounds::default()).await;
    let key = stream(1);
    let version = begun(&store).await;
    store
        .append(key, &opening(vec![note("1"), question("q1")]))
        .await
        .expect("made");
    store.heartbeat(A, MINUTE).await.expect("beat");
    let dump = server.command(&["DEBUG", "DIGEST"]).await;
    server.command(&["CONFIG", "SET", "maxmemory", "1"]).await;

    let yes = Bytes::from_static(b"yes");
    let refused = [
        (
            "append",
            is_refused(&store.append(key, &append(2, vec![note("3")])).await),
        ),
        (
            "append that makes",
            is_refused(&store.append(stream(2), &opening(vec![])).await),
        ),
        (
            "update",
            is_refused(&store.update(S, ME, version, yes.clone()).await),
        ),
        (
            "answer",
            is_refused(&store.answer(S, ME, "q1", yes.clone()).await),
        ),
        (
            "register",
            is_refused(&store.register(S, "i:1", A, None, MINUTE).await),
        ),
        ("lease", is_refused(&store.take_tokens(&[tokens()]).await)),
    ];
    for (name, refused) in refused {
        assert!(refused, "{name}");
    }
    assert_eq!(
        server.command(&["DEBUG", "DIGEST"]).await,
        dump,
        "nothing of them was applied"
    );

    assert_eq!(
        store.begin(S, ME, Some(version), &fresh("x")).await,
        Ok(Begin::Alive {
            version,
            body: None
        })
    );
    let (view, ..) = attach(&store, key, START, B).await;
    assert_eq!(seqs(&view.events), [1, 2]);
    let read = store.read(S.partition(), &[wanted(0)]).await.expect("read");
    assert!(matches!(&read[..], [Read::View(view, Some(B))] if view.tail == 2));
    assert_eq!(store.owned_by(S.partition(), Some(A)).await, Ok(vec![key]));
    taken_over(&store, &take_over(key, Some(A), Some(B), 1)).await;
    assert_eq!(store.cancel(S, ME, "i:1").await, Ok(Routed::Nobody));
    assert_eq!(store.take_answer(S, "q1").await, Ok(None));
    let members = store.heartbeat(B, MINUTE).await.expect("beat");
    assert_eq!(members.nodes.len(), 2, "nobody looks dead");
    store.heartbeat(B, Duration::ZERO).await.expect("left");
    let held = store.hold_slots(A, MINUTE, &permits()).await.expect("held");
    assert_eq!(held.held, 2, "and it can be given back");
    store.unregister(S, "i:1").await.expect("gone");
    connect(&server, Bounds::default()).await;
    store
        .remove(S, ME, Remove::Ended(LIFE))
        .await
        .expect("ended");
    assert_eq!(
        store.begin(S, ME, None, &fresh("x")).await,
        Ok(Begin::Unknown)
    );

    server.command(&["CONFIG", "SET", "maxmemory", "0"]).await;
    assert_eq!(
        store.register(S, "i:2", A, None, MINUTE).await,
        Ok(Registered::Ended),
        "the cancellation and the end were kept"
    );
}

#[tokio::test]
async fn a_server_that_forgot_the_scripts_is_told_them_again() {
    let server = RedisServer::start();
    let store = connect(&server, Bounds::default()).await;
    let version = begun(&store).await;
    server.command(&["SCRIPT", "FLUSH", "SYNC"]).await;
    let before = store.redis_commands();
    for expected in [2, 3] {
        assert_eq!(
            store.begin(S, ME, Some(version), &fresh("x")).await,
            Ok(Begin::Alive {
                version,
                body: None
            })
        );
        assert_eq!(
            store.redis_commands() - before,
            expected,
            "once the text, then the name"
        );
    }
    open(&store, stream(1), 1).await;
    let nul = event(Class::Notification, Bytes::from_static(b"\0"));
    server.command(&["SCRIPT", "FLUSH", "SYNC"]).await;
    assert_eq!(
        store.append(stream(1), &append(1, vec![nul])).await,
        Ok(done(2, Some(A), 1)),
        "applied once"
    );
}

/// M: "no key without TTL". The only exception is the key that counts servers.
#[tokio::test]
async fn every_key_ends_by_itself() {
    let server = RedisServer::start();
    let store = connect(&server, Bounds::default()).await;
    begun(&store).await;
    for n in 1..=3 {
        let first = opening(vec![question(&format!("q{n}")), note("2")]);
        store.append(stream(n), &first).await.expect("made");
        store
            .register(S, &format!("i:{n}"), A, Some(stream(n).nonce), MINUTE)
            .await
            .expect("registered");
        store.cancel(S, ME, &format!("c:{n}")).await.expect("kept");
    }
    taken_over(&store, &take_over(stream(1), Some(A), Some(B), 1)).await;
    taken_over(&store, &take_over(stream(2), Some(A), None, 1)).await;
    store
        .append(stream(3), &closing(2, vec![event(Class::Final, "f")]))
        .await
        .expect("closed");
    store
        .answer(S, ME, "q1", Bytes::from_static(b"yes"))
        .await
        .expect("answered");
    store.heartbeat(A, MINUTE).await.expect("beat");
    store.take_tokens(&[tokens()]).await.expect("leased");
    let ended = SessionKey([9; 16]);
    store
        .remove(ended, ME, Remove::Ended(MINUTE))
        .await
        .expect("ended");

    let keys = keys(&server).await;
    assert!(keys.len() > 12, "{keys:?}");
    for key in &keys {
        let Value::Int(ttl) = server.command(&["PTTL", key]).await else {
            panic!("{key}")
        };
        assert_eq!(ttl > 0, !key.ends_with(":i"), "{key}: {ttl}");
    }
    // After its end, a session leaves only its tombstone (found in an earlier draft, 8).
    store
        .remove(S, ME, Remove::Ended(MINUTE))
        .await
        .expect("ended");
    let left: Vec<_> = self::keys(&server)
        .await
        .into_iter()
        .filter(|key| !key.contains("{nodes}") && !key.contains("{q:"))
        .collect();
    assert_eq!(left.len(), 2, "two tombstones: {left:?}");
    assert!(left.iter().all(|key| key.contains(":s:")));
}

async fn keys(server: &RedisServer) -> Vec<String> {
    let Value::Array(keys) = server.command(&["KEYS", "*"]).await else {
        panic!("no list")
    };
    keys.into_iter()
        .map(|key| match key {
            Value::BulkString(key) => String::from_utf8(key).expect("text"),
            other => panic!("{other:?}"),
        })
        .collect()
}

/// Whether tests have the full size of `docs/design/testing.md` (`make full`).
fn is_full() -> bool {
    std::env::var_os("PORTOLAN_TEST_FULL").is_some()
}

/// STREAM-21, TEST-L11: 675 bytes for a session of 400 bytes; the limit is 750. Other kinds stay
/// within 25 %. `make full` uses 100,000 of each kind.
#[tokio::test]
async fn memory_per_session_stays_within_the_plan() {
    let many: u64 = if is_full() { 100_000 } else { 4_000 };
    let server = RedisServer::start();
    let store = connect(&server, Bounds::default()).await;
    let body = "x".repeat(400);
    let session = |n: u64| {
        let mut key = [0; 16];
        key[..8].copy_from_slice(&n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
        key[8..].copy_from_slice(&n.to_be_bytes());
        SessionKey(key)
    };
    let mut figures = BTreeMap::new();
    let empty = used(&server).await;
    for n in 0..many {
        store
            .begin(session(n), ME, None, &fresh(&body))
            .await
            .expect("made");
    }
    let sessions = used(&server).await;
    figures.insert("session, body of 400 bytes", (sessions - empty) / many);
    let first = Append {
        create: Some(portolan_cluster::store::Create {
            about: Bytes::from_static(b"i:12345678"),
            ..create()
        }),
        ..append(0, Vec::new())
    };
    let of = |n: u64| StreamKey {
        session: session(n),
        ..stream(1)
    };
    for n in 0..many {
        store.append(of(n), &first).await.expect("made");
    }
    let streams = used(&server).await;
    figures.insert("open stream without events", (streams - sessions) / many);
    for n in 0..many {
        let event = vec![note(&"x".repeat(300))];
        store.append(of(n), &append(0, event)).await.expect("ok");
    }
    let events = used(&server).await;
    figures.insert("first event, 300 bytes", (events - streams) / many);
    for n in 0..many {
        store
            .register(session(n), "i:1", A, Some(stream(1).nonce), MINUTE)
            .await
            .expect("ok");
    }
    let running = used(&server).await;
    figures.insert("running request", (running - events) / many);
    for n in 0..many {
        store
            .remove(session(n), ME, Remove::Ended(LIFE))
            .await
            .expect("ok");
    }
    let tombstones = used(&server).await.saturating_sub(empty);
    figures.insert("tombstone", tombstones / many);
    for (what, bytes) in &figures {
        println!("{what}: {bytes} bytes of Redis");
    }
    assert!(figures["session, body of 400 bytes"] <= 750);
    assert!(figures["open stream without events"] <= 800);
    assert!(figures["first event, 300 bytes"] <= 700);
    assert!(figures["running request"] <= 300);
    assert!(
        figures["tombstone"] <= 400,
        "with the tables that grew before"
    );
}

/// A session whose calls are answered by streams has an entry for each stream of the last five
/// minutes. A new stream does not check all of them.
#[tokio::test]
async fn a_new_stream_costs_the_same_in_a_session_that_had_many() {
    const MANY: u64 = 400;
    let server = RedisServer::start();
    let store = connect(&server, Bounds::default()).await;
    begun(&store).await;
    let of = |n: u64| {
        let nonce = Nonce(n.to_be_bytes());
        StreamKey { nonce, ..stream(1) }
    };
    let first = Append {
        create: Some(create()),
        ..append(0, Vec::new())
    };
    for n in 0..MANY {
        store.append(of(n), &first).await.expect("made");
    }
    let before = asked_after(&server).await;
    for n in MANY..2 * MANY {
        store.append(of(n), &first).await.expect("made");
    }
    let each = (asked_after(&server).await - before) / MANY;
    println!("a new stream looks at {each} others");
    assert!(each <= 8, "{each}");
    // Entries of removed streams leave the list, although each script checks only a few.
    let all = keys(&server).await;
    for key in all.iter().filter(|key| key.contains("}:m:")) {
        server.command(&["DEL", key]).await;
    }
    for n in 2 * MANY..3 * MANY {
        store.append(of(n), &first).await.expect("made");
    }
    let list = all.iter().find(|key| key.contains("}:x:")).expect("a list");
    let Value::Int(listed) = server.command(&["HLEN", list]).await else {
        panic!("HLEN")
    };
    println!("{listed} listed, {MANY} of them there");
    assert!(
        u64::try_from(listed).is_ok_and(|listed| listed <= MANY + 100),
        "{listed}"
    );
}

/// Number of `EXISTS` calls by scripts.
async fn asked_after(server: &RedisServer) -> u64 {
    let info = info(server, "commandstats").await;
    let line = info
        .lines()
        .find_map(|line| line.strip_prefix("cmdstat_exists:calls="));
    let number = line.and_then(|rest| rest.split(',').next()?.parse().ok());
    number.unwrap_or_default()
}

async fn info(server: &RedisServer, section: &str) -> String {
    let Value::BulkString(info) = server.command(&["INFO", section]).await else {
        panic!("INFO")
    };
    String::from_utf8_lossy(&info).into_owned()
}

async fn used(server: &RedisServer) -> u64 {
    info(server, "memory")
        .await
        .lines()
        .find_map(|line| line.strip_prefix("used_memory:"))
        .and_then(|number| number.trim().parse().ok())
        .expect("a number")
}

/// STREAM-17.3: the incarnation rises before any other command.
#[tokio::test]
async fn another_server_is_noticed_before_anything_goes_to_it() {
    let mut server = RedisServer::start();
    let options = options(&server, Bounds::default());
    let store = connect_with(options.clone()).await;
    let mut incarnation = store.health().incarnation;
    let mut messages = store.subscribe(A).await.expect("heard");
    begun(&store).await;
    connect_with(options.clone()).await;
    assert!(
        !incarnation.has_changed().expect("there"),
        "the same server"
    );

    server.stop();
    let began = Instant::now();
    for _ in 0..20 {
        assert!(is_down(&store.begin(S, ME, None, &fresh("x")).await));
    }
    assert!(
        began.elapsed() < Duration::from_secs(3),
        "{:?}",
        began.elapsed()
    );
    server.replace();
    let found = until_up(async || store.begin(S, ME, None, &fresh("x")).await).await;
    assert!(
        matches!(found, Begin::Rebuilt { .. }),
        "the record was lost"
    );
    incarnation.changed().await.expect("there");
    assert!(*incarnation.borrow() >= 1);

    // The node receives messages again, and `Resync` made it read everything.
    assert_eq!(within(messages.recv()).await, Some(NodeMessage::Resync));
    nothing_else(&store, &mut messages, A).await;
}

/// Repeats the call until the store replies.
async fn until_up<T>(call: impl AsyncFn() -> Result<T, StoreError>) -> T {
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        match call().await {
            Ok(answer) => return answer,
            Err(StoreError::Down(_)) if Instant::now() < until => {
                tokio::time::sleep(ms(20)).await;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(5), work)
        .await
        .expect("in time")
}

/// STREAM-8: connections are cut. After a reconnect the node receives `Resync`.
#[tokio::test]
async fn cut_connections_come_back_without_a_changed_incarnation() {
    let server = RedisServer::start();
    let store = connect(&server, Bounds::default()).await;
    let incarnation = store.health().incarnation;
    let mut messages = store.subscribe(A).await.expect("heard");
    let store = Retry(Arc::new(store));
    for _ in 0..3 {
        // The first connection may have been made after the node subscribed.
        while messages.try_recv().is_ok() {}
        server.command(&["CLIENT", "KILL", "TYPE", "pubsub"]).await;
        assert_eq!(within(messages.recv()).await, Some(NodeMessage::Resync));
        nothing_else(&store, &mut messages, A).await;
        server
            .command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"])
            .await;
        nothing_else(&store, &mut messages, A).await;
    }
    assert!(
        !incarnation.has_changed().expect("there"),
        "it is the same server"
    );
}

/// STREAM-5, STREAM-17.1: no operation waits longer than its deadline, and no one waits again for
/// an operation that timed out.
#[tokio::test]
async fn a_server_that_does_not_answer_is_down_after_a_second() {
    let server = RedisServer::start();
    let store = connect(&server, Bounds::default()).await;
    server.command(&["CLIENT", "PAUSE", "2500", "ALL"]).await;
    let began = Instant::now();
    let call = || async { is_down(&store.begin(S, ME, None, &fresh("x")).await) };
    let down = tokio::join!(call(), call(), call());
    assert_eq!(down, (true, true, true));
    let took = began.elapsed();
    assert!(took >= ms(900) && took < ms(1600), "{took:?}");
    until_up(async || store.begin(S, ME, None, &fresh("x")).await).await;
    assert!(
        began.elapsed() < Duration::from_secs(6),
        "{:?}",
        began.elapsed()
    );
}

/// STREAM-17.1: failures that mean *down*, and failures that mean *write refused*.
#[tokio::test]
async fn a_replica_is_down_and_a_lonely_primary_refuses_writes() {
    let server = RedisServer::start();
    let store = connect(&server, Bounds::default()).await;
    open(&store, stream(1), 1).await;
    server
        .command(&["CONFIG", "SET", "min-replicas-to-write", "1"])
        .await;
    let more = append(1, vec![note("2")]);
    let refused = store.append(stream(1), &more).await;
    assert!(
        matches!(&refused, Err(StoreError::Refused(why)) if why.starts_with("NOREPLICAS")),
        "{refused:?}"
    );
    assert_eq!(look(&store, stream(1)).await.tail, 1, "reading goes on");
    server
        .command(&["CONFIG", "SET", "min-replicas-to-write", "0"])
        .await;

    server.command(&["REPLICAOF", "127.0.0.1", "1"]).await;
    for _ in 0..3 {
        assert!(is_down(&store.append(stream(1), &more).await));
    }
    server.command(&["REPLICAOF", "NO", "ONE"]).await;
    let written = until_up(async || store.append(stream(1), &more).await).await;
    assert_eq!(written, done(2, Some(A), 1));
}

/// STREAM-17.2: eviction could remove sessions in use.
#[tokio::test]
async fn a_server_that_evicts_keys_is_refused_unless_told() {
    let server =
        RedisServer::start_with(&["--maxmemory", "50mb", "--maxmemory-policy", "allkeys-lru"]);
    let mut options = options(&server, Bounds::default());
    let refused = RedisStore::connect(
        options.clone(),
        &TaskTracker::new(),
        CancellationToken::new(),
    )
    .await;
    assert!(
        matches!(&refused, Err(StoreError::Refused(why)) if why.contains("noeviction")),
        "{refused:?}"
    );
    options.allow_eviction = true;
    begun(&connect_with(options).await).await;
}

#[tokio::test]
async fn nobody_answers_where_nobody_listens() {
    let mut server = RedisServer::start();
    let options = options(&server, Bounds::default());
    server.stop();
    let connect = async |options| {
        RedisStore::connect(options, &TaskTracker::new(), CancellationToken::new()).await
    };
    assert!(is_down(&connect(options.clone()).await));
    let mut wrong = options;
    "what:secret@?".clone_into(&mut wrong.url);
    let refused = connect(wrong.clone()).await;
    assert!(is_refused(&refused));
    assert!(
        !format!("{refused:?}{wrong:?}").contains("secret"),
        "AUTH-X1: no log shows a password"
    );
}

/// STREAM-0.6: connections and subscriptions grow with nodes only; tasks end with the store.
#[tokio::test]
async fn a_store_holds_few_connections_and_lets_them_go() {
    let server = RedisServer::start();
    let (tracker, stop) = (TaskTracker::new(), CancellationToken::new());
    let options = options(&server, Bounds::default());
    let for_commands = options.connections;
    let store = RedisStore::connect(options, &tracker, stop.clone())
        .await
        .expect("connected");
    let mut messages = Vec::new();
    for n in 0..20 {
        let node = NodeId([b'a' + n; 14]);
        messages.push((node, store.subscribe(node).await.expect("heard")));
    }
    for (node, messages) in &mut messages {
        nothing_else(&store, messages, *node).await;
    }
    let clients = async || {
        let Value::BulkString(clients) = server.command(&["CLIENT", "LIST"]).await else {
            panic!("CLIENT LIST")
        };
        String::from_utf8_lossy(&clients).lines().count()
    };
    assert_eq!(
        clients().await,
        for_commands + 2,
        "those for commands, one for messages, and the one that asks"
    );
    stop.cancel();
    tracker.close();
    within(tracker.wait()).await;
    drop((store, messages));
    within(async { while clients().await > 1 {} }).await;
}

/// TEST-S7: a program that writes into the store can destroy data, but cannot crash a node or make
/// it accept false data.
#[tokio::test]
async fn garbage_in_the_store_is_an_error_and_nothing_worse() {
    let server = RedisServer::start();
    let options = options(&server, Bounds::default());
    let prefix = options.prefix.clone();
    let store = connect_with(options).await;
    let mut messages = store.subscribe(A).await.expect("heard");
    begun(&store).await;
    open(&store, stream(1), 2).await;
    let channel = format!("{prefix}:d:{}", std::str::from_utf8(&A.0).expect("text"));
    for message in ["", "Q", "E1:x", "X32:zz", "C5:ab", "A1:a1:b1:c"] {
        server.command(&["PUBLISH", &channel, message]).await;
        assert_eq!(
            within(messages.recv()).await,
            Some(NodeMessage::Resync),
            "{message}"
        );
    }
    let keys = keys(&server).await;
    let of = |kind: &str| keys.iter().find(|key| key.contains(kind)).expect("there");
    server.command(&["HSET", of(":m:"), "st", "Z"]).await;
    assert!(matches!(
        store.attach(stream(1), ME, START, A).await,
        Err(StoreError::Corrupt(_))
    ));
    server
        .command(&["HSET", of(":m:"), "st", "O", "tail", "9"])
        .await;
    server.command(&["RPUSH", of(":e:"), "9|Z|x"]).await;
    assert!(matches!(
        store.attach(stream(1), ME, START, A).await,
        Err(StoreError::Corrupt(_))
    ));
    server.command(&["DEL", of(":e:")]).await;
    server.command(&["SET", of(":e:"), "a string"]).await;
    assert!(matches!(
        store.attach(stream(1), ME, START, A).await,
        Err(StoreError::Corrupt(_))
    ));
    server.command(&["SET", of(":s:"), "A"]).await;
    assert_eq!(
        store.begin(S, ME, None, &fresh("x")).await,
        Ok(Begin::Unknown),
        "half a record is nobody's"
    );
    assert_eq!(
        store.update(S, ME, Version(0), Bytes::new()).await,
        Ok(portolan_cluster::store::Update::Unknown)
    );
    assert_eq!(
        store.attach(stream(2), ME, START, A).await,
        Ok(Attached::Unknown)
    );
    assert_eq!(
        store
            .take_over(&take_over(stream(2), Some(A), Some(B), 1))
            .await,
        Ok(TakenOver::Over)
    );
    assert_eq!(
        store.append(stream(2), &append(0, vec![])).await,
        Ok(Appended::Gone)
    );
}
