//! Delivery: exactly the events of one stream, in order, on any node (STREAM-1, STREAM-8,
//! STREAM-9).

use std::time::Duration;

use portolan_cluster::{
    node::{Delivery, Over, Resumed},
    store::{Bounds, Class},
};
use tokio::time::Instant;

use super::world::{
    LIFE, ME, NOTE, START, STRANGER, TENANT, World, cursor_of, first, next, quiet, rest, show,
    some, text,
};
use crate::fixture::fault::Fault;

#[tokio::test(start_paused = true)]
async fn the_opening_connection_gets_every_event_in_order_and_then_the_end() {
    let world = World::new();
    let a = world.node().await;
    let session = world.session(&a).await;
    let (writer, mut reader) = a.node.open(world.new_stream(session));
    for number in 1..=3 {
        writer.push(NOTE, text(format!("n{number}"))).await.unwrap();
    }
    writer.finish(text("done"));
    assert_eq!(rest(&mut reader).await, ["1 n1", "2 n2", "3 n3", "4 done"]);
    assert_eq!(writer.push(NOTE, text("late")).await, Err(Over::Over));
    writer.committed().cancelled().await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_owned_and_attached_here_costs_one_append_an_event_and_no_read() {
    let world = World::new();
    let a = world.node().await;
    let session = world.session(&a).await;
    let new = world.new_stream(session);
    let (writer, mut reader) = a.node.open(new);
    writer.push(NOTE, text("n")).await.unwrap();
    assert_eq!(some(&mut reader, 1).await, ["1 n"]);
    let before = a.faults.operations();
    for number in 0..20 {
        writer.push(NOTE, text(format!("{number}"))).await.unwrap();
        some(&mut reader, 1).await;
    }
    assert_eq!(a.faults.operations() - before, 20);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_resumes_on_another_node_gets_exactly_what_it_missed_and_then_live_events() {
    let world = World::new();
    let (a, b) = (world.node().await, world.node().await);
    let (stream, writer, mut reader) = a.open_stream(&world).await;
    for number in 1..=5 {
        writer.push(NOTE, text(format!("n{number}"))).await.unwrap();
    }
    assert_eq!(some(&mut reader, 2).await, ["1 n1", "2 n2"]);
    drop(reader);
    let mut reader = b.resume(stream, first(2)).await;
    assert_eq!(some(&mut reader, 3).await, ["3 n3", "4 n4", "5 n5"]);
    writer.push(NOTE, text("live")).await.unwrap();
    writer
        .push(Class::Final, text("not yet the end"))
        .await
        .unwrap();
    writer.finish(text("done"));
    assert_eq!(
        rest(&mut reader).await,
        ["6 live", "7 not yet the end", "8 done"]
    );
    // The log of a finished stream is kept. Read it again from the start, on the first node.
    let mut again = a.resume(stream, START).await;
    assert_eq!(rest(&mut again).await.len(), 8);
}

#[tokio::test(start_paused = true)]
async fn q10_a_take_over_silences_the_older_connection_and_ends_it_within_five_seconds() {
    let world = World::new();
    let (a, b) = (world.node().await, world.node().await);
    let (stream, writer, mut oldest) = a.open_stream(&world).await;
    writer.push(NOTE, text("n1")).await.unwrap();
    assert_eq!(some(&mut oldest, 1).await, ["1 n1"]);
    let mut older = b.resume(stream, first(1)).await;
    quiet(&mut oldest, Duration::from_millis(50)).await;
    assert!(oldest.is_superseded(), "told by doorbell");
    let mut newest = b.resume(stream, first(1)).await;
    assert!(older.is_superseded(), "on the same node");
    writer.push(NOTE, text("n2")).await.unwrap();
    assert_eq!(some(&mut newest, 1).await, ["2 n2"]);
    // Not at once: two connections that both reconnect would otherwise replace each other forever.
    let taken_over = Instant::now();
    let both = async { tokio::join!(next(&mut oldest), next(&mut older)) };
    assert_eq!(
        both.await,
        (None, None),
        "in the end they are let go, cleanly"
    );
    let took = taken_over.elapsed().as_secs_f64();
    assert!((3.0..5.0).contains(&took), "{took}");
    writer.finish(text("done"));
    assert_eq!(rest(&mut newest).await, ["3 done"]);
}

#[tokio::test(start_paused = true)]
async fn the_lost_reply_of_an_append_is_repaired_without_loss_or_repetition() {
    let world = World::new();
    let (a, b) = (world.node().await, world.node().await);
    let (stream, writer, mut reader) = a.open_stream(&world).await;
    for number in 1..=9 {
        let fault = [Fault::Lost, Fault::Before, Fault::Refused][number % 3];
        // The next operation of this node is the append.
        a.faults.next([fault]);
        writer.push(NOTE, text(format!("n{number}"))).await.unwrap();
        assert_eq!(some(&mut reader, 1).await, [format!("{number} n{number}")]);
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    a.faults.next([Fault::Lost]);
    writer.finish(text("done"));
    assert_eq!(rest(&mut reader).await, ["10 done"]);
    writer.committed().cancelled().await;
    let all = rest(&mut b.resume(stream, START).await).await;
    assert_eq!(all.len(), 10, "{all:?}");
}

#[tokio::test(start_paused = true)]
async fn lost_doorbells_cost_at_most_the_time_to_the_next_look() {
    let world = World::new();
    let (a, b) = (world.node().await, world.node().await);
    let (stream, writer, reader) = a.open_stream(&world).await;
    drop(reader);
    let mut reader = b.resume(stream, START).await;
    b.faults.cut_off_messages(true);
    for number in 1..=3 {
        let started = Instant::now();
        writer.push(NOTE, text(format!("n{number}"))).await.unwrap();
        assert_eq!(some(&mut reader, 1).await, [format!("{number} n{number}")]);
        assert!(started.elapsed() <= Duration::from_millis(5100));
    }
    writer.finish(text("done"));
    assert_eq!(rest(&mut reader).await, ["4 done"]);
}

#[tokio::test(start_paused = true)]
async fn a_slow_client_costs_its_bound_and_the_log_is_its_buffer() {
    let world = World::new();
    let (a, b) = (world.node().await, world.node().await);
    let session = world.session(&a).await;
    for on in [&a, &b] {
        let new = world.new_stream(session);
        let stream = new.stream;
        let (writer, reader) = a.node.open(new);
        let mut reader = if on.node.id() == a.node.id() {
            reader
        } else {
            on.resume(stream, START).await
        };
        for number in 1..=200 {
            writer.push(NOTE, text(format!("n{number}"))).await.unwrap();
        }
        writer.finish(text("done"));
        writer.committed().cancelled().await;
        tokio::time::sleep(Duration::from_secs(10)).await;
        let all = rest(&mut reader).await;
        let expected: Vec<_> = (1..=200)
            .map(|number| format!("{number} n{number}"))
            .chain(["201 done".to_owned()])
            .collect();
        assert_eq!(all, expected);
    }
}

/// STREAM-8 *Anti-entropy*, of a stream whose owner and client are on the same node. Its writer is
/// idle, so only anti-entropy notices that the store did not reply.
#[tokio::test(start_paused = true)]
async fn what_a_slow_client_has_missed_is_read_again_if_the_store_did_not_answer() {
    let world = World::new();
    let a = world.node().await;
    let session = world.session(&a).await;
    let (writer, mut reader) = a.node.open(world.new_stream(session));
    for number in 1..=40 {
        writer.push(NOTE, text(format!("n{number}"))).await.unwrap();
    }
    writer.finish(text("done"));
    writer.committed().cancelled().await;
    // Too short for the node to treat the store as down.
    a.faults.cut_off(true);
    assert_eq!(some(&mut reader, 16).await.last().unwrap(), "16 n16");
    tokio::time::sleep(Duration::from_millis(300)).await;
    a.faults.cut_off(false);
    let back = Instant::now();
    assert_eq!(rest(&mut reader).await.last().unwrap(), "41 done");
    assert!(
        back.elapsed() < Duration::from_secs(6),
        "{:?}",
        back.elapsed()
    );
}

/// The same for a stream that is gone: its session was ended, and the message of that was lost.
#[tokio::test(start_paused = true)]
async fn a_slow_client_learns_of_the_end_of_its_session_although_no_doorbell_rang() {
    let world = World::new();
    let (a, b) = (world.node().await, world.node().await);
    let session = world.session(&a).await;
    let (writer, mut reader) = a.node.open(world.new_stream(session));
    for number in 1..=40 {
        writer.push(NOTE, text(format!("n{number}"))).await.unwrap();
    }
    writer.finish(text("done"));
    writer.committed().cancelled().await;
    a.faults.cut_off_messages(true);
    b.node.end(session, ME, LIFE).await.unwrap();
    let ended = Instant::now();
    assert_eq!(rest(&mut reader).await.last().unwrap(), "16 n16");
    assert!(
        ended.elapsed() < Duration::from_secs(6),
        "{:?}",
        ended.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_nothing_for_a_minute_is_let_go_and_can_resume() {
    let world = World::new();
    let (a, b) = (world.node().await, world.node().await);
    let (stream, writer, _reader) = a.open_stream(&world).await;
    let mut reader = b.resume(stream, START).await;
    for number in 1..=40 {
        writer.push(NOTE, text(format!("n{number}"))).await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(70)).await;
    let got = rest(&mut reader).await;
    assert_eq!(got.len(), 16, "what waited, then a clean end");
    let mut again = b.resume(stream, first(16)).await;
    assert_eq!(some(&mut again, 1).await, ["17 n17"]);
}

#[tokio::test(start_paused = true)]
async fn a_trimmed_cursor_gets_a_gap_notice_once_and_then_what_is_kept() {
    let world = World::with(Bounds {
        events: 8,
        ..Bounds::default()
    });
    let (a, b) = (world.node().await, world.node().await);
    let (stream, writer, mut reader) = a.open_stream(&world).await;
    writer.push(NOTE, text("n1")).await.unwrap();
    writer.push(Class::Question, text("pinned")).await.unwrap();
    for number in 3..=20 {
        writer.push(NOTE, text(format!("n{number}"))).await.unwrap();
        some(&mut reader, 1).await;
    }
    let mut resumed = b.resume(stream, first(1)).await;
    let got = some(&mut resumed, 3).await;
    assert_eq!(got[..2], ["gap 1..2", "2 pinned"]);
    writer.finish(text("done"));
    let rest = rest(&mut resumed).await;
    assert!(!rest.iter().any(|line| line.starts_with("gap")), "{rest:?}");
    assert_eq!(rest.last().map(String::as_str), Some("21 done"));
}

#[tokio::test(start_paused = true)]
async fn strangers_ended_sessions_and_unknown_streams_are_told_apart() {
    let world = World::new();
    let (a, b) = (world.node().await, world.node().await);
    let session = world.session(&a).await;
    let new = world.new_stream(session);
    let stream = new.stream;
    let other = world.new_stream(session).stream;
    let (writer, mut reader) = a.node.open(new);
    writer.push(NOTE, text("n1")).await.unwrap();
    some(&mut reader, 1).await;
    let resumed = b
        .node
        .resume(TENANT, stream, STRANGER, START)
        .await
        .unwrap();
    assert!(matches!(resumed, Resumed::Unknown));
    let resumed = b.node.resume(TENANT, other, ME, START).await.unwrap();
    assert!(matches!(resumed, Resumed::Gone));
    // E: ended on another node. The work stops and the connection ends.
    b.node.end(session, ME, LIFE).await.unwrap();
    writer.fenced().cancelled().await;
    assert_eq!(next(&mut reader).await, None);
    let resumed = b.node.resume(TENANT, stream, ME, START).await.unwrap();
    assert!(matches!(resumed, Resumed::Unknown));
}

#[tokio::test(start_paused = true)]
async fn work_that_ends_without_an_answer_or_never_ends_leaves_no_client_waiting() {
    let world = World::new();
    let a = world.node().await;
    let session = world.session(&a).await;
    let (writer, mut reader) = a.node.open(world.new_stream(session));
    drop(writer);
    assert_eq!(rest(&mut reader).await, ["1 Stopped about"]);

    let mut new = world.new_stream(session);
    new.deadline = Duration::from_secs(10);
    let (writer, mut reader) = a.node.open(new);
    assert_eq!(rest(&mut reader).await, ["1 Deadline about"]);
    assert!(writer.fenced().is_cancelled());

    let (writer, mut reader) = a.node.open(world.new_stream(session));
    writer.push(NOTE, text("n1")).await.unwrap();
    writer.cancel();
    assert_eq!(rest(&mut reader).await, ["1 n1"], "cancelled: no response");
}

#[tokio::test(start_paused = true)]
async fn a_log_that_overflows_with_what_may_not_be_dropped_is_ended() {
    let world = World::with(Bounds {
        events: 8,
        ..Bounds::default()
    });
    let a = world.node().await;
    let session = world.session(&a).await;
    let (writer, mut reader) = a.node.open(world.new_stream(session));
    let fenced = writer.fenced();
    for number in 0..20 {
        if writer
            .push(Class::Answer, text(format!("{number}")))
            .await
            .is_err()
        {
            break;
        }
        tokio::task::yield_now().await;
    }
    fenced.cancelled().await;
    let all = rest(&mut reader).await;
    assert!(all.last().unwrap().ends_with("Overflow about"), "{all:?}");
}

#[tokio::test(start_paused = true)]
async fn draining_ends_streams_honestly_and_leaves_the_membership() {
    let world = World::new();
    let (a, b) = (world.node().await, world.node().await);
    let (stream, writer, mut reader) = a.open_stream(&world).await;
    let mut foreign = b.node.members();
    foreign
        .wait_for(|members| members.live.len() == 2)
        .await
        .unwrap();
    a.node.drain().await;
    assert_eq!(rest(&mut reader).await, ["1 Draining about"]);
    assert!(writer.fenced().is_cancelled());
    foreign
        .wait_for(|members| members.live.len() == 1)
        .await
        .unwrap();
    let mut resumed = b.resume(stream, START).await;
    let came = next(&mut resumed).await.unwrap();
    assert_eq!(show(&came), "1 Draining about");
    assert_eq!(cursor_of(&came), Some(first(1)));
    assert!(matches!(
        came,
        Delivery::Event {
            class: Class::Final,
            ..
        }
    ));
}
