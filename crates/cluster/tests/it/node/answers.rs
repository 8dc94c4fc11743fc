//! Answers to questions that the store does not know, because it is down, full, or another one
//! (STREAM-14, STREAM-17.1, STREAM-17.2).
#![expect(clippy::unwrap_used, reason = "a test stops where it goes wrong")]

use std::time::Duration;

use bytes::Bytes;
use portolan_cluster::{
    node::{Over, StreamReader, StreamWriter, Unavailable},
    store::{Routed, SessionKey, Store},
};
use tokio::time::{Instant, sleep, timeout};

use super::world::{ME, Member, TENANT, World, some, text};

/// Longer than any message takes, and shorter than a person may think.
const SOON: Duration = Duration::from_secs(30);

/// A node with a question, another node, and the session.
async fn two(world: &World) -> (Member, Member, SessionKey) {
    let (a, b) = (world.node().await, world.node().await);
    let session = world.session(&a).await;
    b.node
        .begin(session, ME, &super::world::fresh("body"))
        .await
        .unwrap();
    (a, b, session)
}

/// Sends a question, and runs `then` when the client has received it.
async fn asked<T>(
    (writer, reader): (&StreamWriter, &mut StreamReader),
    question: &str,
    then: impl Future<Output = T>,
) -> (Result<Bytes, Over>, Duration, T) {
    let asking = async {
        let got = timeout(SOON, writer.ask(question, text("how?"))).await;
        (got.expect("an answer"), Instant::now())
    };
    let then = async {
        some(reader, 1).await;
        (Instant::now(), then.await)
    };
    let ((got, at), (told, then)) = tokio::join!(asking, then);
    (got, at.duration_since(told), then)
}

async fn answer(
    on: &Member,
    session: SessionKey,
    question: &str,
    said: &'static str,
) -> Result<Routed, Unavailable> {
    on.node
        .answer(TENANT, session, ME, question, text(said))
        .await
}

/// TEST-F4 of one node: no other node can know the question.
#[tokio::test(start_paused = true)]
async fn an_answer_overtakes_the_question_of_a_node_that_is_cut_off() {
    let world = World::new();
    let (a, b, session) = two(&world).await;
    let (writer, mut reader) = a.node.open(world.new_stream(session));
    sleep(Duration::from_millis(100)).await;
    a.faults.cut_off(true);
    let (got, took, taken) = asked((&writer, &mut reader), "q1", async {
        let began = Instant::now();
        let taken = answer(&b, session, "q1", "so").await;
        assert!(began.elapsed() < Duration::from_millis(50), "taken at once");
        // A later answer is not the first.
        let other = answer(&b, session, "q1", "otherwise").await;
        sleep(Duration::from_secs(4)).await;
        a.faults.cut_off(false);
        (taken, other)
    })
    .await;
    assert_eq!(taken, (Ok(Routed::Unasked), Ok(Routed::Unasked)));
    assert_eq!(got, Ok(text("so")));
    assert!(took < Duration::from_secs(9), "{took:?}");
}

/// TEST-F7. The store refuses the question and the answer, and accepts both when it has memory
/// again.
#[tokio::test(start_paused = true)]
async fn an_answer_waits_for_a_full_store_and_needs_none_where_the_call_runs() {
    let world = World::new();
    let (a, b, session) = two(&world).await;
    let (writer, mut reader) = a.node.open(world.new_stream(session));
    sleep(Duration::from_millis(100)).await;
    for member in [&a, &b] {
        member.faults.refuse_writes(true);
    }
    let here = answer(&a, session, "q1", "so");
    let (got, took, taken) = asked((&writer, &mut reader), "q1", here).await;
    assert_eq!((got, taken), (Ok(text("so")), Ok(Routed::Notified)));
    assert!(took < Duration::from_millis(50), "{took:?}");

    let (got, took, taken) = asked((&writer, &mut reader), "q2", async {
        let make_room = async {
            sleep(Duration::from_secs(10)).await;
            for member in [&a, &b] {
                member.faults.refuse_writes(false);
            }
        };
        tokio::join!(answer(&b, session, "q2", "yes"), make_room).0
    })
    .await;
    assert_eq!(got, Ok(text("yes")));
    assert!(taken.is_ok(), "{taken:?}");
    assert!(took < Duration::from_secs(13), "{took:?}");
}

/// STREAM-17.1: an answer waits for 20 s. Only then the client receives an error and retries.
#[tokio::test(start_paused = true)]
async fn an_answer_waits_for_a_store_that_is_away() {
    let world = World::new();
    let (a, b, session) = two(&world).await;
    let (writer, mut reader) = a.node.open(world.new_stream(session));
    sleep(Duration::from_millis(100)).await;
    let cut = |is_off| {
        for member in [&a, &b] {
            member.faults.cut_off(is_off);
        }
    };
    cut(true);
    let (got, took, taken) = asked((&writer, &mut reader), "q1", async {
        let back = async {
            sleep(Duration::from_secs(8)).await;
            cut(false);
        };
        tokio::join!(answer(&b, session, "q1", "so"), back).0
    })
    .await;
    assert_eq!(got, Ok(text("so")));
    assert!(taken.is_ok(), "{taken:?}");
    assert!(took < Duration::from_secs(12), "{took:?}");

    cut(true);
    let began = Instant::now();
    assert_eq!(answer(&b, session, "q2", "so").await, Err(Unavailable));
    let waited = began.elapsed();
    let (least, most) = (Duration::from_secs(20), Duration::from_millis(22_500));
    assert!(least <= waited && waited < most, "{waited:?}");
}

/// TEST-F5, TEST-F6: the store after a failover does not know the question, and its owner has not
/// noticed yet.
#[tokio::test(start_paused = true)]
async fn an_answer_waits_for_a_question_that_the_store_lost() {
    let world = World::new();
    let (a, b, session) = two(&world).await;
    let (writer, mut reader) = a.node.open(world.new_stream(session));
    sleep(Duration::from_millis(100)).await;
    let old = world.memory.snapshot();
    let (got, took, taken) = asked((&writer, &mut reader), "q1", async {
        a.faults.cut_off(true);
        world.memory.roll_back(&old);
        let taken = answer(&b, session, "q1", "so").await;
        sleep(Duration::from_secs(2)).await;
        a.faults.cut_off(false);
        taken
    })
    .await;
    assert_eq!((got, taken), (Ok(text("so")), Ok(Routed::Unasked)));
    assert!(took < Duration::from_secs(7), "{took:?}");
}

/// STREAM-14: an answer without a question is accepted at once, is not stored, and does not appear
/// after its time.
#[tokio::test(start_paused = true)]
async fn an_answer_to_nothing_is_taken_at_once_and_forgotten() {
    let world = World::new();
    let (a, b, session) = two(&world).await;
    let (kept, began) = (world.memory.len(), Instant::now());
    assert_eq!(
        answer(&b, session, "q1", "so").await,
        Ok(Routed::Unasked),
        "nobody asked"
    );
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert_eq!(world.memory.take_answer(session, "q1").await, Ok(None));
    assert_eq!(world.memory.len(), kept);
    sleep(Duration::from_secs(21)).await;
    let (writer, mut reader) = a.node.open(world.new_stream(session));
    let asking = timeout(SOON, writer.ask("q1", text("how?")));
    let (got, _) = tokio::join!(asking, some(&mut reader, 1));
    assert!(got.is_err(), "{got:?}");
}

/// A client that repeats answers without questions causes little load on the store.
#[tokio::test(start_paused = true)]
async fn few_answers_to_nothing_are_tried_again() {
    let mut world = World::new();
    // No other operation may be counted.
    world.settings.janitor = Duration::from_secs(3600);
    world.settings.beat = Duration::from_secs(3600);
    world.settings.ttl = Duration::from_secs(7200);
    let (_a, b, session) = two(&world).await;
    b.faults.set_fill(1);
    let operations = async |answers: u32| {
        let before = b.faults.operations();
        for number in 0..answers {
            let question = format!("q{number}");
            answer(&b, session, &question, "so").await.unwrap();
        }
        sleep(Duration::from_secs(30)).await;
        b.faults.operations() - before - u64::from(answers)
    };
    assert_eq!(operations(0).await, 0);
    assert_eq!(operations(0).await, 0);
    let one = operations(1).await;
    assert!((5..=10).contains(&one), "{one}");
    let many = operations(500).await;
    assert!((16 * 5..=16 * 10).contains(&many), "{many}");
    // There is space again.
    let one = operations(1).await;
    assert!((5..=10).contains(&one), "{one}");
}
