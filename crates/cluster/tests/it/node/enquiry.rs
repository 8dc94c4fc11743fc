//! Questions to all nodes, and their replies.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use portolan_cluster::{enquiry::Enquiry, store::SessionKey};

use super::world::{Member, World};

const PLACE: SessionKey = SessionKey(*b"a place of a tst");
const WITHIN: Duration = Duration::from_millis(1_500);

/// Replies with the question and a word of its own.
fn replies(world: &World, member: &Member, word: &'static str, to: SessionKey) {
    let mut asked = member.node.subscribe_with_capacity(PLACE, 8);
    let node = member.node.clone();
    world.tracker.spawn(async move {
        let question = asked.next().await;
        let reply = [&question[..], word.as_bytes()].concat();
        node.reply(to, Bytes::from(reply))
            .await
            .expect("the store takes replies");
    });
}

#[tokio::test(start_paused = true)]
async fn every_live_node_is_asked_and_its_reply_is_read() {
    let world = World::new();
    let (a, b) = (world.node().await, world.node().await);
    let to = SessionKey([3; 16]);
    replies(&world, &a, "a", to);
    replies(&world, &b, "b", to);
    let enquiry = Enquiry::new(Arc::new(world.memory.clone()));
    let replies = enquiry
        .ask(PLACE, to, Bytes::from("who "), WITHIN)
        .await
        .unwrap();
    let mut bodies = replies.bodies;
    bodies.sort();
    assert_eq!(replies.asked, 2);
    assert_eq!(bodies, ["who a", "who b"].map(Bytes::from));
}

#[tokio::test(start_paused = true)]
async fn a_node_that_does_not_reply_is_missed_in_time() {
    let world = World::new();
    let (a, _silent) = (world.node().await, world.node().await);
    let to = SessionKey([4; 16]);
    replies(&world, &a, "a", to);
    let enquiry = Enquiry::new(Arc::new(world.memory.clone()));
    let begun = tokio::time::Instant::now();
    let replies = enquiry
        .ask(PLACE, to, Bytes::from("who "), WITHIN)
        .await
        .unwrap();
    assert_eq!((replies.asked, replies.bodies.len()), (2, 1));
    assert!(begun.elapsed() < WITHIN + Duration::from_millis(100));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_left_of_replies_after_their_life() {
    let world = World::new();
    let a = world.node().await;
    let to = SessionKey([5; 16]);
    replies(&world, &a, "a", to);
    let enquiry = Enquiry::new(Arc::new(world.memory.clone()));
    enquiry
        .ask(PLACE, to, Bytes::from("who "), WITHIN)
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_secs(31)).await;
    let again = enquiry
        .ask(PLACE, to, Bytes::from("who "), Duration::ZERO)
        .await
        .unwrap();
    assert_eq!(again.bodies, Vec::<Bytes>::new());
}
