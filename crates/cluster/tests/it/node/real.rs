//! The same over a real Redis, in real time: nodes with their own connections, and a server that
//! dies.

use std::{sync::Arc, time::Duration};

use portolan_cluster::{
    node::{NodeSettings, SessionError},
    redis::RedisStore,
    store::{Bounds, Routed},
};

use super::world::{
    LIFE, ME, Member, NOTE, START, TENANT, World, first, fresh, next, rest, some, text,
};
use crate::fixture::{connect_with, options, server::RedisServer};

/// Shorter intervals than the default. Beats stay slow, so that a busy machine does not look dead.
fn watchful() -> NodeSettings {
    NodeSettings {
        anti_entropy: Duration::from_millis(500),
        janitor: Duration::from_millis(500),
        poll_answers: Duration::from_millis(200),
        ..NodeSettings::default()
    }
}

/// Settings with which a node is suspected quickly.
fn frail() -> NodeSettings {
    NodeSettings {
        beat: Duration::from_millis(150),
        ttl: Duration::from_millis(600),
        suspect_after: Duration::from_millis(100),
        ..watchful()
    }
}

async fn two_nodes(server: &RedisServer, settings: NodeSettings) -> (World, Member, Member) {
    let mut world = World::new();
    world.settings = settings;
    let options = options(server, Bounds::default());
    let (a, b) = (
        connect_with(options.clone()).await,
        connect_with(options).await,
    );
    let (a, b) = (
        world.node_on(Arc::new(a)).await,
        world.node_on(Arc::new(b)).await,
    );
    (world, a, b)
}

/// Nodes without background work, so that every command is the result of an operation, with stores
/// that count commands.
async fn two_quiet_nodes(server: &RedisServer) -> (World, [Member; 2], [Arc<RedisStore>; 2]) {
    let hour = Duration::from_secs(3600);
    let mut world = World::new();
    world.settings = NodeSettings {
        beat: hour,
        ttl: 2 * hour,
        suspect_after: hour,
        anti_entropy: hour,
        janitor: hour,
        register_after: hour,
        ..NodeSettings::default()
    };
    let options = options(server, Bounds::default());
    let stores = [
        Arc::new(connect_with(options.clone()).await),
        Arc::new(connect_with(options).await),
    ];
    let nodes = [
        world.node_on(Arc::clone(&stores[0]) as _).await,
        world.node_on(Arc::clone(&stores[1]) as _).await,
    ];
    (world, nodes, stores)
}

/// TEST-L8, as a count: a small event for a client of another node travels inside its
/// message.
#[tokio::test]
async fn l8_an_event_for_another_node_costs_one_append_and_no_read() {
    const EVENTS: u64 = 50;
    let server = RedisServer::start();
    let (world, [a, b], stores) = two_quiet_nodes(&server).await;
    let (stream, writer, mut here) = a.open_stream(&world).await;
    writer.push(NOTE, text("n1")).await.unwrap();
    some(&mut here, 1).await;
    let mut there = b.resume(stream, START).await;
    some(&mut there, 1).await;
    let before = stores.each_ref().map(|store| store.redis_commands());
    for number in 2..=EVENTS + 1 {
        writer.push(NOTE, text(format!("n{number}"))).await.unwrap();
        let got = some(&mut there, 1).await;
        assert_eq!(got, [format!("{number} n{number}")]);
    }
    let after = stores.each_ref().map(|store| store.redis_commands());
    let spent = [after[0] - before[0], after[1] - before[1]];
    println!(
        "{EVENTS} events for another node: {spent:?} commands of their owner and of the reader"
    );
    assert_eq!(spent, [EVENTS, 0]);
}

/// TEST-L9, as a count: a whole log of 256 events and 1 MiB. At most 16 events or 64
/// KiB wait for a client (TEST-B11). The next page is read when half of them are taken.
#[tokio::test]
async fn l9_a_resume_of_256_events_is_a_command_for_every_eight_of_them_at_most() {
    const EVENTS: usize = 256;
    const HALF: usize = 8;
    let bounds = Bounds::default();
    let server = RedisServer::start();
    let (world, [a, b], stores) = two_quiet_nodes(&server).await;
    let (stream, writer, mut here) = a.open_stream(&world).await;
    // With the overhead and the seal of each event, just below the bound of a log.
    let payload = "x".repeat(3_800);
    for _ in 0..EVENTS {
        writer.push(NOTE, text(payload.as_str())).await.unwrap();
        some(&mut here, 1).await;
    }
    let before = stores[1].redis_commands();
    let began = std::time::Instant::now();
    let mut there = b.resume(stream, START).await;
    let got = some(&mut there, EVENTS).await;
    let (spent, took) = (stores[1].redis_commands() - before, began.elapsed());
    let bytes: usize = got.iter().map(String::len).sum();
    println!("{EVENTS} events, {bytes} bytes: {spent} commands, {took:?}");
    assert!(got[0].starts_with("1 x") && got[EVENTS - 1].starts_with("256 x"));
    assert!(bytes > bounds.bytes * 9 / 10, "{bytes} bytes");
    assert!(spent <= 1 + (EVENTS / HALF) as u64, "{spent} commands");
}

#[tokio::test]
async fn over_redis_a_client_that_hops_gets_each_event_once_and_in_order() {
    let server = RedisServer::start();
    let (world, a, b) = two_nodes(&server, watchful()).await;
    let session = world.session(&a).await;
    let new = world.new_stream(session);
    let stream = new.stream;
    let (writer, mut reader) = a.node.open(new);
    let work = world.tracker.spawn(async move {
        for number in 1..=200 {
            // Some are too large for a message.
            let size = if number % 10 == 0 { 20_000 } else { 1 };
            let payload = format!("n{number}{}", " ".repeat(size));
            writer.push(NOTE, text(payload)).await.unwrap();
            tokio::task::yield_now().await;
        }
        writer.finish(text("done"));
        writer.committed().cancelled().await;
    });
    let (mut got, mut on) = (Vec::new(), 0);
    'all: loop {
        for _ in 0..30 {
            let Some(came) = next(&mut reader).await else {
                break 'all;
            };
            got.push(super::world::show(&came).trim().to_owned());
        }
        on += 1;
        let member = if on % 2 == 0 { &a } else { &b };
        reader = member.resume(stream, first(got.len() as u64)).await;
    }
    work.await.unwrap();
    let expected: Vec<_> = (1..=200)
        .map(|number| format!("{number} n{number}"))
        .chain(["201 done".to_owned()])
        .collect();
    assert_eq!(got, expected);
}

#[tokio::test]
async fn over_redis_a_dead_owners_stream_is_ended_honestly() {
    let server = RedisServer::start();
    let (world, a, b) = two_nodes(&server, frail()).await;
    let (stream, writer, mut reader) = a.open_stream(&world).await;
    writer.push(NOTE, text("n1")).await.unwrap();
    some(&mut reader, 1).await;
    drop(reader);
    let mut reader = b.resume(stream, first(1)).await;
    a.kill();
    assert_eq!(rest(&mut reader).await, ["2 Node about"]);
    assert_eq!(rest(&mut b.resume(stream, START).await).await.len(), 2);
}

#[tokio::test]
async fn over_redis_cancellations_answers_and_ends_find_their_node() {
    let server = RedisServer::start();
    let (world, a, b) = two_nodes(&server, watchful()).await;
    let session = world.session(&a).await;
    let running = a.node.run(session, "i:1", Duration::from_secs(60)).unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(
        b.node.cancel(session, ME, "i:1").await,
        Ok(Routed::Notified)
    );
    running.cancelled.cancelled().await;

    let (writer, mut reader) = a.node.open(world.new_stream(session));
    for size in [10, 20_000] {
        let (question, answer) = (format!("q{size}"), text("x".repeat(size)));
        let (got, ()) = tokio::join!(writer.ask(&question, text("how?")), async {
            next(&mut reader).await;
            let routed = b
                .node
                .answer(TENANT, session, ME, &question, answer.clone())
                .await;
            assert_eq!(routed, Ok(Routed::Notified));
        });
        assert_eq!(got, Ok(answer));
    }
    b.node.end(session, ME, LIFE).await.unwrap();
    writer.fenced().cancelled().await;
    assert_eq!(next(&mut reader).await, None);
    let ended = a.node.begin(session, ME, &fresh("body")).await;
    assert_eq!(ended, Err(SessionError::Unknown));
}

#[tokio::test]
async fn over_redis_a_server_that_lost_everything_gets_the_stream_again() {
    let mut server = RedisServer::start();
    let (world, a, b) = two_nodes(&server, watchful()).await;
    let (stream, writer, mut reader) = a.open_stream(&world).await;
    for number in 1..=3 {
        writer.push(NOTE, text(format!("n{number}"))).await.unwrap();
    }
    some(&mut reader, 3).await;
    drop(reader);
    let mut reader = b.resume(stream, first(2)).await;
    some(&mut reader, 1).await;
    server.stop();
    writer.push(NOTE, text("n4")).await.unwrap();
    // The breakers open meanwhile.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    server.replace();
    assert_eq!(some(&mut reader, 1).await, ["4 n4"]);
    writer.push(NOTE, text("n5")).await.unwrap();
    writer.finish(text("done"));
    assert_eq!(rest(&mut reader).await, ["5 n5", "6 done"]);
    assert_eq!(rest(&mut a.resume(stream, START).await).await.len(), 6);
}
