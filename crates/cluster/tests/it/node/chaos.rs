//! Random schedules of failures. A client sees each event once and in order, or receives a gap
//! notice, and every stream ends (STREAM-1, STREAM-11).
#![expect(clippy::unwrap_used, reason = "a test stops where it goes wrong")]

use std::{collections::BTreeSet, ops::RangeInclusive, sync::Arc, time::Duration};

use futures_util::StreamExt;
use portolan_cluster::{
    memory::Snapshot,
    node::{Delivery, Resumed, StreamReader, StreamWriter},
    store::{Bounds, Class, Cursor, StreamKey},
};
use tokio::time::Instant;

use super::world::{ME, Member, NOTE, START, TENANT, World, cursor_of, text};
use crate::fixture::{fault::Rates, rng::NodeRng};

/// Failures that may occur in a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Weather {
    /// Calls and messages are lost.
    Lossy,
    /// Nodes are cut off for long, or die.
    Cuts,
    /// The store is rolled back once.
    RollBack,
}

#[derive(Default)]
struct Client {
    cursor: Option<Cursor>,
    log: Vec<String>,
    seen: BTreeSet<u64>,
    last: u64,
    was_told: bool,
    /// Numbers that a gap notice covered.
    told: Vec<RangeInclusive<u64>>,
    gaps: usize,
    end: Option<String>,
}

impl Client {
    fn take(&mut self, delivery: &Delivery) {
        self.log.push(super::world::show(delivery));
        if let Some(cursor) = cursor_of(delivery) {
            self.cursor = Some(cursor);
        }
        match delivery {
            Delivery::Gap { .. } => {
                self.was_told = true;
                self.gaps += 1;
            }
            Delivery::Unlogged { .. } => panic!("the ring is never full here"),
            Delivery::Event { class, payload, .. } => {
                assert!(self.end.is_none(), "after the end: {:?}", self.log);
                let payload = String::from_utf8_lossy(payload).into_owned();
                if *class == Class::Final {
                    self.end = Some(payload);
                    if self.was_told {
                        self.told.push(self.last + 1..=u64::MAX);
                    }
                    return;
                }
                let number: u64 = payload.strip_prefix('n').unwrap().parse().unwrap();
                assert!(number > self.last, "again or out of order: {:?}", self.log);
                assert!(
                    number == self.last + 1 || self.was_told,
                    "a silent gap: {:?}",
                    self.log
                );
                if self.was_told {
                    self.told.push(self.last + 1..=number);
                }
                self.last = number;
                self.seen.insert(number);
                self.was_told = false;
            }
        }
    }
}

async fn work(writer: StreamWriter, mut rng: NodeRng, count: u64) {
    for number in 1..=count {
        tokio::time::sleep(rng.ms(if rng.0.is_multiple_of(3) { 3000 } else { 100 })).await;
        if writer.push(NOTE, text(format!("n{number}"))).await.is_err() {
            return;
        }
    }
    tokio::time::sleep(rng.ms(2000)).await;
    writer.finish(text("done"));
    // A crashed process drops no value.
    writer.committed().cancelled().await;
}

async fn trouble(nodes: Arc<Vec<Member>>, weather: Weather, mut rng: NodeRng) {
    loop {
        tokio::time::sleep(rng.ms(8000)).await;
        let member = rng.pick(&nodes);
        match weather {
            Weather::Lossy => {}
            Weather::Cuts | Weather::RollBack => {
                member.faults.cut_off(true);
                let long = [300, 3_000, 30_000][usize::try_from(rng.below(3)).unwrap()];
                tokio::time::sleep(rng.ms(long)).await;
                member.faults.cut_off(false);
            }
        }
    }
}

async fn roll_back(world: &World, mut rng: NodeRng) {
    tokio::time::sleep(rng.ms(25_000)).await;
    let old: Snapshot = world.memory.snapshot();
    tokio::time::sleep(rng.ms(15_000)).await;
    world.memory.roll_back(&old);
    std::future::pending().await
}

/// Moves from node to node until it has the final response. `None`: the stream is gone.
async fn client(
    nodes: &[Member],
    stream: StreamKey,
    mut reader: Option<StreamReader>,
    mut rng: NodeRng,
) -> (Client, bool) {
    let mut client = Client::default();
    let mut abandoned = Vec::new();
    loop {
        let mut current = match reader.take() {
            Some(reader) => reader,
            None => {
                let on = rng.pick(nodes);
                let cursor = client.cursor.unwrap_or(START);
                match on.node.resume(TENANT, stream, ME, cursor).await.unwrap() {
                    Resumed::Reader(reader) => reader,
                    Resumed::Gone => return (client, false),
                    Resumed::Unknown => panic!("the session lives"),
                    Resumed::Finished => panic!("it has no end yet: {:?}", client.log),
                }
            }
        };
        let mut patience = 1 + rng.below(30);
        let until = Instant::now() + rng.ms(20_000);
        while patience > 0 {
            match tokio::time::timeout_at(until, current.next()).await {
                Ok(Some(delivery)) => client.take(&delivery),
                Ok(None) | Err(_) => break,
            }
            if client.end.is_some() {
                return (client, true);
            }
            patience -= 1;
        }
        // Some connections stay open, as behind middleboxes.
        if rng.below(3) == 0 {
            abandoned.push(current);
        }
        tokio::time::sleep(rng.ms(2000)).await;
    }
}

async fn run(seed: u64, weather: Weather) -> Client {
    let world = World::with(Bounds {
        events: if seed.is_multiple_of(2) { 256 } else { 10 },
        ..Bounds::default()
    });
    let mut rng = NodeRng(seed);
    let mut nodes = Vec::new();
    for _ in 0..3 {
        nodes.push(world.node().await);
    }
    let nodes = Arc::new(nodes);
    let session = world.session(&nodes[0]).await;
    let new = world.new_stream(session);
    let stream = new.stream;
    let (writer, reader) = nodes[0].node.open(new);
    tokio::time::sleep(Duration::from_millis(5)).await;
    for member in nodes.iter() {
        member.faults.set_rates(Rates {
            before: 30,
            lost: 30,
            message_lost: 200,
            message_twice: 100,
            message_late: 100,
            delay: Duration::from_millis(rng.below(20)),
            ..Rates::default()
        });
    }
    let count = 20 + rng.below(60);
    let worker = world
        .tracker
        .spawn(work(writer, NodeRng(rng.below(u64::MAX)), count));
    let troubled = world.tracker.spawn(trouble(
        Arc::clone(&nodes),
        weather,
        NodeRng(rng.below(u64::MAX)),
    ));
    let hops = client(&nodes, stream, Some(reader), NodeRng(rng.below(u64::MAX)));
    let hops = tokio::time::timeout(Duration::from_secs(600), hops);
    let (seen, has_end) = if weather == Weather::RollBack {
        let mishap = roll_back(&world, NodeRng(rng.below(u64::MAX)));
        tokio::select! {
            seen = hops => seen,
            () = mishap => unreachable!(),
        }
    } else {
        hops.await
    }
    .unwrap_or_else(|_| panic!("seed {seed}, {weather:?}: no end"));
    troubled.abort();

    for member in nodes.iter() {
        member.faults.cut_off(false);
        member.faults.set_rates(Rates::default());
    }
    if weather == Weather::Lossy {
        assert_eq!(
            seen.end.as_deref(),
            Some("done"),
            "seed {seed}: {:?}",
            seen.log
        );
        if seed.is_multiple_of(2) {
            assert_eq!(
                (seen.last, seen.gaps),
                (count, 0),
                "seed {seed}: {:?}",
                seen.log
            );
        }
    }
    assert!(
        has_end || weather == Weather::RollBack,
        "seed {seed}: gone after {:?}",
        seen.log
    );
    if has_end {
        retained_was_seen_or_told(&nodes[1], stream, &seen, seed).await;
    }
    worker.abort();
    for member in nodes.iter() {
        member.stop.cancel();
    }
    seen
}

/// The client saw every event that the log has before the final response, or received a gap notice
/// (TEST-C4).
async fn retained_was_seen_or_told(on: &Member, stream: StreamKey, seen: &Client, seed: u64) {
    tokio::time::sleep(Duration::from_secs(30)).await;
    let Resumed::Reader(mut reader) = on.node.resume(TENANT, stream, ME, START).await.unwrap()
    else {
        return;
    };
    while let Ok(Some(delivery)) =
        tokio::time::timeout(Duration::from_secs(60), reader.next()).await
    {
        if let Delivery::Event {
            class: Class::Notification,
            payload,
            ..
        } = &delivery
        {
            let number: u64 = String::from_utf8_lossy(payload)[1..].parse().unwrap();
            assert!(
                seen.seen.contains(&number) || seen.told.iter().any(|told| told.contains(&number)),
                "seed {seed}: {number} was never seen: {:?}",
                seen.log
            );
        }
    }
}

const SEEDS: u64 = 40;

/// Runs with one kind of failures. Returns the number of errors by a new owner, and of clients with
/// gap notices.
async fn runs(weather: Weather) -> (usize, usize) {
    let (mut taken_over, mut gaps) = (0, 0);
    for seed in 0..SEEDS {
        let seen = run(seed, weather).await;
        taken_over += usize::from(seen.end.as_deref() == Some("Node about"));
        gaps += usize::from(seen.gaps > 0);
    }
    (taken_over, gaps)
}

#[tokio::test(start_paused = true)]
async fn lost_calls_and_doorbells_change_nothing_that_a_client_sees() {
    let (taken_over, _) = runs(Weather::Lossy).await;
    assert_eq!(taken_over, 0, "nobody died");
}

#[tokio::test(start_paused = true)]
async fn nodes_that_are_cut_off_for_long_leave_one_history_or_a_gap_notice_and_an_honest_end() {
    let (taken_over, gaps) = runs(Weather::Cuts).await;
    assert!(taken_over > 3 && gaps > 1, "too calm: {taken_over}, {gaps}");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_rolled_back_leaves_one_history_or_a_gap_notice() {
    let (taken_over, gaps) = runs(Weather::RollBack).await;
    assert!(taken_over > 3 && gaps > 1, "too calm: {taken_over}, {gaps}");
}
