//! The store is down, slow, emptied or rolled back (STREAM-17).

use std::time::Duration;

use portolan_cluster::{node::Resumed, store::Class};
use tokio::time::Instant;

use super::world::{
    ME, NOTE, START, TENANT, World, cursor_of, first, next, quiet, rest, show, some, text,
};

#[tokio::test(start_paused = true)]
async fn while_the_store_is_down_the_local_client_gets_events_with_their_ids_and_nothing_is_lost() {
    let world = World::new();
    let (a, b) = (world.node().await, world.node().await);
    let (stream, writer, mut reader) = a.open_stream(&world).await;
    writer.push(NOTE, text("n1")).await.unwrap();
    some(&mut reader, 1).await;
    a.faults.cut_off(true);
    b.faults.cut_off(true);
    for number in 2..=4 {
        writer.push(NOTE, text(format!("n{number}"))).await.unwrap();
        let came = next(&mut reader).await.unwrap();
        assert_eq!(show(&came), format!("{number} n{number}"));
        assert_eq!(cursor_of(&came), Some(first(number)));
    }
    drop(reader);
    // The client reconnects to another node while all are cut off: held, not refused (STREAM-0.5).
    let mut reader = b.resume(stream, first(4)).await;
    quiet(&mut reader, Duration::from_secs(10)).await;
    writer.push(NOTE, text("n5")).await.unwrap();
    a.faults.cut_off(false);
    b.faults.cut_off(false);
    assert_eq!(some(&mut reader, 1).await, ["5 n5"]);
    writer.finish(text("done"));
    assert_eq!(rest(&mut reader).await, ["6 done"]);
    assert_eq!(rest(&mut b.resume(stream, START).await).await.len(), 6);
}

#[tokio::test(start_paused = true)]
async fn a_call_may_even_end_during_the_outage_and_its_log_is_made_whole_later() {
    let world = World::new();
    let (a, b) = (world.node().await, world.node().await);
    let session = world.session(&a).await;
    let new = world.new_stream(session);
    let stream = new.stream;
    a.faults.cut_off(true);
    // The store does not even know the stream.
    let (writer, mut reader) = a.node.open(new);
    writer.push(NOTE, text("n1")).await.unwrap();
    writer.finish(text("done"));
    assert_eq!(rest(&mut reader).await, ["1 n1", "2 done"]);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(!writer.committed().is_cancelled());
    a.faults.cut_off(false);
    writer.committed().cancelled().await;
    assert_eq!(
        rest(&mut b.resume(stream, START).await).await,
        ["1 n1", "2 done"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_full_ring_sends_notifications_without_ids_and_keeps_everything_else() {
    let mut world = World::new();
    world.settings.unacked = (4, 1024 * 1024);
    let a = world.node().await;
    let session = world.session(&a).await;
    let (writer, mut reader) = a.node.open(world.new_stream(session));
    a.faults.cut_off(true);
    for number in 1..=4 {
        writer.push(NOTE, text(format!("n{number}"))).await.unwrap();
    }
    assert_eq!(some(&mut reader, 4).await.last().unwrap(), "4 n4");
    writer.push(NOTE, text("over")).await.unwrap();
    assert_eq!(some(&mut reader, 1).await, ["- over"]);
    writer.push(Class::Answer, text("kept")).await.unwrap();
    assert_eq!(some(&mut reader, 1).await, ["5 kept"]);
    a.faults.cut_off(false);
    writer.finish(text("done"));
    assert_eq!(rest(&mut reader).await, ["6 done"]);
}

#[tokio::test(start_paused = true)]
async fn a_held_connection_ends_cleanly_after_a_minute() {
    let world = World::new();
    let a = world.node().await;
    let session = world.session(&a).await;
    let stream = world.new_stream(session).stream;
    a.faults.cut_off(true);
    let started = Instant::now();
    let mut reader = a.resume(stream, START).await;
    assert_eq!(next(&mut reader).await, None);
    let held = started.elapsed().as_secs();
    assert!((60..62).contains(&held), "{held}");
}

#[tokio::test(start_paused = true)]
async fn an_emptied_store_gets_the_stream_again_from_its_owner() {
    let world = World::new();
    let (a, b) = (world.node().await, world.node().await);
    let empty = world.memory.snapshot();
    let (stream, writer, mut reader) = a.open_stream(&world).await;
    for number in 1..=3 {
        writer.push(NOTE, text(format!("n{number}"))).await.unwrap();
    }
    some(&mut reader, 1).await;
    drop(reader);
    let mut reader = b.resume(stream, first(1)).await;
    assert_eq!(some(&mut reader, 2).await, ["2 n2", "3 n3"]);
    world.memory.roll_back(&empty);
    writer.push(NOTE, text("n4")).await.unwrap();
    assert_eq!(some(&mut reader, 1).await, ["4 n4"]);
    writer.finish(text("done"));
    assert_eq!(rest(&mut reader).await, ["5 done"]);
    assert_eq!(rest(&mut b.resume(stream, START).await).await.len(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_finished_stream_that_the_store_lost_is_finished_again() {
    let world = World::new();
    let (a, b) = (world.node().await, world.node().await);
    let (stream, writer, _reader) = a.open_stream(&world).await;
    writer.push(NOTE, text("n1")).await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    let old = world.memory.snapshot();
    writer.push(NOTE, text("n2")).await.unwrap();
    writer.finish(text("done"));
    writer.committed().cancelled().await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    world.memory.roll_back(&old);
    let mut reader = b.resume(stream, first(2)).await;
    assert_eq!(rest(&mut reader).await, ["3 done"]);
}

#[tokio::test(start_paused = true)]
async fn a_cursor_ahead_of_the_store_is_held_until_the_owner_has_repaired_the_log() {
    let world = World::new();
    let (a, b) = (world.node().await, world.node().await);
    let (stream, writer, reader) = a.open_stream(&world).await;
    writer.push(NOTE, text("n1")).await.unwrap();
    drop(reader);
    let mut reader = b.resume(stream, START).await;
    some(&mut reader, 1).await;
    let old = world.memory.snapshot();
    for number in 2..=4 {
        writer.push(NOTE, text(format!("n{number}"))).await.unwrap();
    }
    assert_eq!(some(&mut reader, 3).await.len(), 3);
    drop(reader);
    a.faults.cut_off(true);
    world.memory.roll_back(&old);
    let mut reader = b.resume(stream, first(4)).await;
    quiet(&mut reader, Duration::from_secs(3)).await;
    a.faults.cut_off(false);
    writer.push(NOTE, text("n5")).await.unwrap();
    assert_eq!(
        some(&mut reader, 1).await,
        ["5 n5"],
        "neither again nor lost"
    );
    writer.finish(text("done"));
    assert_eq!(rest(&mut reader).await, ["6 done"]);
}

#[tokio::test(start_paused = true)]
async fn what_the_owner_has_no_more_is_reported_as_lost() {
    let mut world = World::new();
    world.settings.unacked = (4, 1024 * 1024);
    let a = world.node().await;
    let session = world.session(&a).await;
    let (writer, mut reader) = a.node.open(world.new_stream(session));
    writer.push(NOTE, text("n1")).await.unwrap();
    some(&mut reader, 1).await;
    let old = world.memory.snapshot();
    for number in 2..=10 {
        writer.push(NOTE, text(format!("n{number}"))).await.unwrap();
        some(&mut reader, 1).await;
    }
    world.memory.roll_back(&old);
    writer.fenced().cancelled().await;
    let all = rest(&mut reader).await;
    assert_eq!(all.last().unwrap(), "11 Stream about", "{all:?}");
}

/// The owner of a stream died, and the store lost its data. The client's connection ends as soon as
/// the loss is certain. When the client reconnects, it receives an error, also with repeated short
/// outages of the store (STREAM-9, STREAM-0.4).
#[tokio::test(start_paused = true)]
async fn a_reader_of_a_stream_that_nobody_can_make_again_is_ended_in_seconds_whatever_hiccups() {
    for hiccup in [Duration::ZERO, Duration::from_secs(4)] {
        let world = World::new();
        let (a, b) = (world.node().await, world.node().await);
        let session = world.session(&a).await;
        let new = world.new_stream(session);
        let stream = new.stream;
        let (writer, local) = a.node.open(new);
        writer.push(NOTE, text("n1")).await.unwrap();
        drop(local);
        let mut reader = b.resume(stream, START).await;
        some(&mut reader, 1).await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        let empty = World::new().memory.snapshot();
        a.kill();
        world.memory.roll_back(&empty);
        b.faults.cut_off(true);
        tokio::time::sleep(hiccup).await;
        b.faults.cut_off(false);
        let began = Instant::now();
        assert_eq!(next(&mut reader).await, None);
        assert!(
            began.elapsed() < Duration::from_secs(7),
            "{:?}",
            began.elapsed()
        );
        drop(reader);
        // The client reconnects, is held while its owner could still return, and then receives the
        // error.
        let began = Instant::now();
        loop {
            match b.node.resume(TENANT, stream, ME, first(1)).await.unwrap() {
                Resumed::Gone => break,
                Resumed::Reader(mut reader) => assert_eq!(next(&mut reader).await, None),
                Resumed::Unknown | Resumed::Finished => panic!("neither ended nor answered"),
            }
        }
        assert!(
            began.elapsed() < Duration::from_secs(6),
            "{:?}",
            began.elapsed()
        );
        drop(writer);
    }
}

/// The opposite: no client may receive the error for a stream that its owner is about to write.
#[tokio::test(start_paused = true)]
async fn a_reader_waits_for_a_stream_whose_owner_comes_back_later_than_the_store() {
    let world = World::new();
    let (a, b) = (world.node().await, world.node().await);
    let session = world.session(&a).await;
    a.faults.cut_off(true);
    b.faults.cut_off(true);
    tokio::time::sleep(Duration::from_secs(3)).await;
    // The stream was created during the outage, so the store does not know it.
    let new = world.new_stream(session);
    let stream = new.stream;
    let (writer, mut local) = a.node.open(new);
    writer.push(NOTE, text("n1")).await.unwrap();
    assert_eq!(some(&mut local, 1).await, ["1 n1"]);
    drop(local);
    let mut reader = b.resume(stream, first(1)).await;
    quiet(&mut reader, Duration::from_secs(2)).await;
    b.faults.cut_off(false);
    quiet(&mut reader, Duration::from_secs(3)).await;
    a.faults.cut_off(false);
    writer.push(NOTE, text("n2")).await.unwrap();
    assert_eq!(some(&mut reader, 1).await, ["2 n2"]);
    // The store loses all data: an owner that sends beats writes again.
    world.memory.roll_back(&World::new().memory.snapshot());
    writer.finish(text("done"));
    assert_eq!(rest(&mut reader).await, ["3 done"]);
}
