//! A real server with too much work, or too little memory (STREAM-17.1 *Slow Redis*, STREAM-17.2).

use std::{sync::Arc, time::Instant};

use portolan_cluster::store::{Begin, Bounds, Class, NEARLY_FULL, Store};
use redis::Value;

use crate::fixture::{connect_with, names::*, options, server::RedisServer};

/// STREAM-17.1: at most 4,096 commands in flight on one connection. Further commands are refused at
/// once and never queued.
#[tokio::test]
async fn what_exceeds_the_commands_under_way_is_refused_at_once() {
    let server = RedisServer::start();
    let mut options = options(&server, Bounds::default());
    options.connections = 1;
    let store = Arc::new(connect_with(options).await);
    begun(&*store).await;
    server.command(&["CLIENT", "PAUSE", "700", "ALL"]).await;
    let began = Instant::now();
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..4196 {
        let store = Arc::clone(&store);
        calls.spawn(async move {
            let answer = store.begin(S, ME, None, &fresh("x")).await;
            (answer, began.elapsed())
        });
    }
    let (mut answered, mut refused) = (0, 0);
    while let Some(call) = calls.join_next().await {
        match call.expect("no panic") {
            (Ok(Begin::Alive { .. }), _) => answered += 1,
            (answer, took) if is_refused(&answer) => {
                refused += 1;
                assert!(took < ms(600), "it waited: {took:?}");
            }
            (other, _) => panic!("{other:?}"),
        }
    }
    assert_eq!((answered, refused), (4096, 100));
    assert_eq!(store.health().in_flight, 0);
}

/// STREAM-17.2: closed logs are kept for a shorter time first.
#[tokio::test]
async fn when_memory_is_nearly_full_closed_logs_are_kept_for_a_minute() {
    let server = RedisServer::start();
    let options = options(&server, Bounds::default());
    let prefix = options.prefix.clone();
    let store = connect_with(options).await;
    let close = async |n: u8| {
        open(&store, stream(n), 1).await;
        let last = closing(1, vec![event(Class::Final, "f")]);
        store.append(stream(n), &last).await.expect("closed");
        let Value::Array(keys) = server
            .command(&["KEYS", &format!("{prefix}:*:m:*{n:02x}")])
            .await
        else {
            panic!("KEYS")
        };
        let [Value::BulkString(key)] = &keys[..] else {
            panic!("{keys:?}")
        };
        let key = String::from_utf8_lossy(key).into_owned();
        match server.command(&["TTL", &key]).await {
            Value::Int(seconds) => seconds,
            other => panic!("{other:?}"),
        }
    };
    let fill = async |percent: u64| {
        let used = match server.command(&["INFO", "memory"]).await {
            Value::BulkString(info) => String::from_utf8_lossy(&info).into_owned(),
            Value::VerbatimString { text, .. } => text,
            other => panic!("{other:?}"),
        };
        let used: u64 = used
            .lines()
            .find_map(|line| line.strip_prefix("used_memory:"))
            .and_then(|number| number.trim().parse().ok())
            .expect("a number");
        let most = (used * 100 / percent).to_string();
        server.command(&["CONFIG", "SET", "maxmemory", &most]).await;
        store
            .measure_memory()
            .await
            .expect("told")
            .expect("bounded")
    };
    assert!(fill(50).await < NEARLY_FULL);
    assert!((290..=300).contains(&close(1).await));
    assert!(fill(90).await >= NEARLY_FULL);
    assert!((50..=60).contains(&close(2).await));
    assert!(fill(50).await < NEARLY_FULL);
    assert!((290..=300).contains(&close(3).await));
}
