//! Owners that die, continue after a pause, or are suspected (STREAM-12).

use std::time::Duration;

use portolan_cluster::{
    node::{PayloadPart, PayloadPlace, Payloads as _, Resumed},
    store::{Append, Cursor, Epoch, NewEvent, NodeId, Store as _, TakeOver, TakenOver},
};
use tokio::time::Instant;

use super::world::{ME, NOTE, Named, START, TENANT, World, first, next, quiet, rest, some, text};
use crate::fixture::fault::Rates;

#[tokio::test(start_paused = true)]
async fn the_client_of_a_dead_owner_gets_an_honest_error_within_twelve_seconds() {
    let world = World::new();
    let (a, b) = (world.node().await, world.node().await);
    let (stream, writer, reader) = a.open_stream(&world).await;
    writer.push(NOTE, text("n1")).await.unwrap();
    drop(reader);
    let mut reader = b.resume(stream, START).await;
    assert_eq!(some(&mut reader, 1).await, ["1 n1"]);
    let died = Instant::now();
    a.kill();
    assert_eq!(rest(&mut reader).await, ["2 Node about"]);
    assert!(
        died.elapsed() < Duration::from_secs(12),
        "{:?}",
        died.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn the_janitor_ends_streams_of_the_dead_before_their_clients_return() {
    let world = World::new();
    let (a, b, c) = (world.node().await, world.node().await, world.node().await);
    let (mut streams, mut writers) = (Vec::new(), Vec::new());
    for _ in 0..20 {
        let session = world.session(&a).await;
        let new = world.new_stream(session);
        streams.push(new.stream);
        let (writer, reader) = a.node.open(new);
        writer.push(NOTE, text("n1")).await.unwrap();
        drop(reader);
        // The work continues without its client.
        writers.push(writer);
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    a.kill();
    tokio::time::sleep(Duration::from_secs(20)).await;
    for (index, stream) in streams.into_iter().enumerate() {
        let on = if index % 2 == 0 { &b } else { &c };
        let started = Instant::now();
        let mut reader = on.resume(stream, first(1)).await;
        assert_eq!(rest(&mut reader).await, ["2 Node about"]);
        assert!(
            started.elapsed() < Duration::from_secs(1),
            "it was there already"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_wakes_up_after_an_adoption_is_fenced_and_its_client_sees_one_history() {
    let world = World::new();
    let (a, b) = (world.node().await, world.node().await);
    let (stream, writer, mut local) = a.open_stream(&world).await;
    writer.push(NOTE, text("n1")).await.unwrap();
    assert_eq!(some(&mut local, 1).await, ["1 n1"]);
    a.faults.cut_off(true);
    tokio::time::sleep(Duration::from_secs(20)).await;
    let mut reader = b.resume(stream, first(1)).await;
    assert_eq!(rest(&mut reader).await, ["2 Node about"]);
    assert!(!writer.fenced().is_cancelled());
    a.faults.cut_off(false);
    writer.fenced().cancelled().await;
    assert!(writer.push(NOTE, text("n2")).await.is_err());
    let mut again = b.resume(stream, START).await;
    assert_eq!(rest(&mut again).await, ["1 n1", "2 Node about"]);
    // The connection of the old owner was superseded meanwhile, or receives the same end.
    assert!(rest(&mut local).await.len() <= 1);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_saw_events_which_the_log_never_got_is_told_of_the_gap() {
    let world = World::new();
    let (a, b) = (world.node().await, world.node().await);
    let (stream, writer, mut local) = a.open_stream(&world).await;
    writer.push(NOTE, text("n1")).await.unwrap();
    assert_eq!(some(&mut local, 1).await, ["1 n1"]);
    // Cut off: outage mode, STREAM-17.1. Another node's janitor ends the stream after event 1.
    a.faults.cut_off(true);
    writer.push(NOTE, text("n2")).await.unwrap();
    writer.push(NOTE, text("n3")).await.unwrap();
    assert_eq!(some(&mut local, 2).await, ["2 n2", "3 n3"]);
    tokio::time::sleep(Duration::from_secs(20)).await;
    let mut reader = b.resume(stream, first(3)).await;
    assert_eq!(rest(&mut reader).await, ["gap 3..2", "2 Node about"]);
    // The same for the owner's own connection when the owner is back.
    a.faults.cut_off(false);
    writer.fenced().cancelled().await;
}

#[tokio::test(start_paused = true)]
async fn an_adoption_begins_after_the_highest_cursor_that_a_client_showed() {
    let world = World::new();
    let (a, b) = (world.node().await, world.node().await);
    let (stream, writer, mut local) = a.open_stream(&world).await;
    writer.push(NOTE, text("n1")).await.unwrap();
    some(&mut local, 1).await;
    a.faults.cut_off(true);
    for number in 2..=5 {
        writer.push(NOTE, text(format!("n{number}"))).await.unwrap();
    }
    assert_eq!(some(&mut local, 4).await.last().unwrap(), "5 n5");
    // The client reconnects to another node before the owner is suspected. It is held, and then its
    // stream ends after the events that it saw.
    let mut reader = b.resume(stream, first(5)).await;
    a.stop.cancel();
    assert_eq!(rest(&mut reader).await, ["6 Node about"]);
}

#[tokio::test(start_paused = true)]
async fn nobody_is_declared_dead_when_the_store_was_away_for_all() {
    let world = World::new();
    let (a, b) = (world.node().await, world.node().await);
    let (stream, writer, reader) = a.open_stream(&world).await;
    writer.push(NOTE, text("n1")).await.unwrap();
    drop(reader);
    let mut reader = b.resume(stream, START).await;
    some(&mut reader, 1).await;
    a.faults.cut_off(true);
    b.faults.cut_off(true);
    tokio::time::sleep(Duration::from_secs(40)).await;
    b.faults.cut_off(false);
    // One node returns earlier than the other.
    tokio::time::sleep(Duration::from_secs(5)).await;
    a.faults.cut_off(false);
    writer.push(NOTE, text("n2")).await.unwrap();
    assert_eq!(some(&mut reader, 1).await, ["2 n2"]);
    writer.finish(text("done"));
    assert_eq!(rest(&mut reader).await, ["3 done"]);
    assert!(writer.committed().is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn a_lost_adoption_is_made_again_after_what_the_client_saw() {
    let world = World::new();
    let (a, b) = (world.node().await, world.node().await);
    let (stream, writer, mut reader) = a.open_stream(&world).await;
    writer.push(NOTE, text("n1")).await.unwrap();
    some(&mut reader, 1).await;
    drop(reader);
    // The client shows an event of a second epoch, which this store does not know.
    let shown = Cursor {
        seq: 4,
        epoch: Some(Epoch { term: 2, nonce: 9 }),
    };
    let mut reader = b.resume(stream, shown).await;
    let all = rest(&mut reader).await;
    assert_eq!(all.last().unwrap(), "5 Node about", "{all:?}");
    // This fences the owner that the store names.
    let _ = writer.push(NOTE, text("n2")).await;
    writer.fenced().cancelled().await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_an_older_owner_finished_has_only_its_last_word_for_a_client_ahead_of_it() {
    let world = World::new();
    let (a, b) = (world.node().await, world.node().await);
    let session = world.session(&a).await;
    let new = world.new_stream(session);
    let stream = new.stream;
    let (writer, _reader) = a.node.open(new);
    writer.push(NOTE, text("n1")).await.unwrap();
    writer.finish(text("done"));
    writer.committed().cancelled().await;
    let shown = Cursor {
        seq: 7,
        epoch: Some(Epoch { term: 2, nonce: 9 }),
    };
    let mut reader = b.resume(stream, shown).await;
    assert_eq!(rest(&mut reader).await, ["gap 7..2", "2 done"]);

    let new = world.new_stream(session);
    let stream = new.stream;
    let (writer, _reader) = a.node.open(new);
    writer.cancel();
    writer.committed().cancelled().await;
    let resumed = b.node.resume(TENANT, stream, ME, shown).await.unwrap();
    assert!(matches!(resumed, Resumed::Gone), "no last word at all");
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_is_alive_but_stuck_is_overruled_when_its_time_is_long_over() {
    let world = World::new();
    let (a, b) = (world.node().await, world.node().await);
    let session = world.session(&a).await;
    let mut new = world.new_stream(session);
    new.deadline = Duration::from_secs(20);
    let stream = new.stream;
    let (writer, reader) = a.node.open(new);
    writer.push(NOTE, text("n1")).await.unwrap();
    drop(reader);
    let mut reader = b.resume(stream, START).await;
    some(&mut reader, 1).await;
    // Only beats reach the store, so the writer cannot write but is not suspected.
    a.stop.cancel();
    let beats = world.tracker.spawn({
        let (faults, id) = (a.faults.clone(), a.node.id());
        async move {
            loop {
                use portolan_cluster::store::Store;
                faults.heartbeat(id, Duration::from_secs(6)).await.unwrap();
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
    });
    quiet(&mut reader, Duration::from_secs(45)).await;
    assert_eq!(
        super::world::show(&next(&mut reader).await.unwrap()),
        "2 Deadline about"
    );
    beats.abort();
}

/// STREAM-8: an event inside a message is taken only in the epoch of the connection. Here the store
/// lost event 2 of the first epoch, and the second epoch wrote another event with its number.
#[tokio::test(start_paused = true)]
async fn an_event_of_another_attempt_is_never_taken_from_a_doorbell() {
    let world = World::new();
    let (a, b) = (world.node().await, world.node().await);
    let (stream, writer, local) = a.open_stream(&world).await;
    writer.push(NOTE, text("n1")).await.unwrap();
    drop(local);
    let mut reader = b.resume(stream, START).await;
    some(&mut reader, 1).await;
    let old = world.memory.snapshot();
    writer.push(NOTE, text("n2")).await.unwrap();
    assert_eq!(some(&mut reader, 1).await, ["2 n2"]);
    a.kill();
    world.memory.roll_back(&old);
    quiet(&mut reader, Duration::from_millis(100)).await;
    // Another node takes over and writes. All messages but the last are lost.
    let lost = |thousandths| Rates {
        message_lost: thousandths,
        ..Rates::default()
    };
    b.faults.set_rates(lost(1000));
    let other = NodeId(*b"nothernodeothe");
    let take_over = TakeOver {
        stream,
        from: Some(a.node.id()),
        to: Some(other),
        shown: START,
        nonce: 9,
    };
    let TakenOver::Done { tail, epoch, .. } = world.memory.take_over(&take_over).await.unwrap()
    else {
        panic!("not adopted")
    };
    assert_eq!((tail, epoch.term), (1, 2));
    for number in [2, 3] {
        tokio::time::sleep(Duration::from_millis(20)).await;
        b.faults.set_rates(lost(if number == 2 { 1000 } else { 0 }));
        let place = PayloadPlace {
            tenant: TENANT,
            session: stream.session,
            part: PayloadPart::Event {
                nonce: stream.nonce,
                seq: number,
                class: NOTE,
            },
        };
        let payload = Named.seal(&place, text(format!("x{number}")));
        let append = Append {
            owner: other,
            epoch,
            expect: number - 1,
            create: None,
            events: vec![NewEvent {
                class: NOTE,
                question: None,
                payload,
            }],
            close: None,
            rpc: "i:1".to_owned(),
        };
        world.memory.append(stream, &append).await.unwrap();
    }
    let next = some(&mut reader, 3).await;
    assert_eq!(next, ["gap 2..2", "2 x2", "3 x3"], "no silent hole");
}
