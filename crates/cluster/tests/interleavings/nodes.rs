//! Tests of writers, messages, readers and limits in thousands of orders of events
//! (TEST-I; `crate::interleaved`).
//! Time stands still, so only wake-ups deliver. An event that only anti-entropy would find is a
//! failure.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::StreamExt;
use portolan_model::{Clock, Timestamp, id::TenantId};
use shuttle::future::spawn;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    Delivery, Limit, LimitKey, Lost, NewStream, Node, NodeSettings, PayloadPlace, Payloads,
    Resumed, StreamReader,
};
use crate::{
    interleaved::explore,
    memory::MemoryStore,
    store::{Bounds, Class, Cursor, Fresh, Nonce, Principal, Routed, SessionKey, StreamKey},
};

const ME: Principal = Principal([7; 16]);
const SESSION: SessionKey = SessionKey([5; 16]);
const NOTE: Class = Class::Notification;
const LIFE: Duration = Duration::from_secs(3600);

/// Payloads without seals.
#[derive(Debug)]
struct Plain;

impl Payloads for Plain {
    fn seal(&self, _: &PayloadPlace<'_>, payload: Bytes) -> Bytes {
        payload
    }

    fn open(&self, _: &PayloadPlace<'_>, payload: Bytes) -> Option<Bytes> {
        Some(payload)
    }

    fn lost(&self, _: &Bytes, why: Lost) -> Bytes {
        Bytes::from_static(why.name().as_bytes())
    }
}

/// Two nodes over one store.
struct Pair {
    tenant: TenantId,
    here: Node,
    there: Node,
    tracker: TaskTracker,
    stop: CancellationToken,
}

impl Pair {
    async fn start() -> Self {
        let clock = Clock::test(Timestamp::UNIX_EPOCH + Duration::from_secs(1_000_000_000));
        let store = Arc::new(MemoryStore::new(Bounds::default(), clock));
        let (tracker, stop) = (TaskTracker::new(), CancellationToken::new());
        let node = async |seed| {
            let settings = NodeSettings {
                // Timers that are due soon fire now, because no time passes.
                gather: Duration::ZERO,
                takeover_pace: Duration::ZERO,
                sessions_cached: 16,
                seed: Some(seed),
                ..NodeSettings::default()
            };
            Node::start(
                Arc::clone(&store) as _,
                settings,
                Arc::new(Plain),
                &tracker,
                stop.clone(),
            )
            .await
            .expect("a node")
        };
        let (here, there) = (node(1).await, node(2).await);
        let fresh = Fresh {
            body: Bytes::new(),
            life: LIFE,
        };
        here.begin(SESSION, ME, &fresh).await.expect("a session");
        Self {
            tenant: TenantId::generate(),
            here,
            there,
            tracker,
            stop,
        }
    }

    fn stream(&self, number: u8) -> NewStream {
        NewStream {
            stream: StreamKey {
                session: SESSION,
                nonce: Nonce([number; 8]),
            },
            principal: ME,
            rpc: format!("i:{number}"),
            deadline: LIFE,
            about: Bytes::new(),
            tenant: self.tenant,
            trace: None,
        }
    }

    async fn resume(&self, on: &Node, stream: StreamKey, cursor: Cursor) -> StreamReader {
        let resumed = on.resume(self.tenant, stream, ME, cursor).await;
        match resumed.expect("few are held") {
            Resumed::Reader(reader) => reader,
            other => panic!("{other:?}"),
        }
    }

    /// Waits for the end of every task.
    async fn stop(self) {
        self.stop.cancel();
        self.tracker.close();
        self.tracker.wait().await;
    }
}

fn text(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

/// Next event: its text, and the client's position after it.
async fn next(reader: &mut StreamReader) -> Option<(String, Cursor)> {
    match reader.next().await? {
        Delivery::Event {
            seq,
            epoch,
            payload,
            ..
        } => {
            let epoch = Some(epoch);
            let text = String::from_utf8_lossy(&payload).into_owned();
            Some((text, Cursor { seq, epoch }))
        }
        other => panic!("{other:?}"),
    }
}

async fn rest(reader: &mut StreamReader) -> Vec<String> {
    let mut all = Vec::new();
    while let Some((text, _)) = next(reader).await {
        all.push(text);
    }
    all
}

/// Kills two mutants. One forgets a message that arrives while its connection receives its
/// generation. The other lists a connection without waking its reader.
#[test]
fn what_is_written_while_a_client_moves_to_another_node_is_brought_by_doorbells_alone() {
    explore(1_500, || async {
        let pair = Pair::start().await;
        let new = pair.stream(1);
        let stream = new.stream;
        let (writer, mut first) = pair.here.open(new);
        writer.push(NOTE, text("1")).await.expect("open");
        let (_, cursor) = next(&mut first).await.expect("the first event");
        let work = spawn(async move {
            for number in ["2", "3"] {
                writer.push(NOTE, text(number)).await.expect("open");
            }
            writer.finish(text("done"));
            writer.committed().cancelled().await;
        });
        let mut moved = pair.resume(&pair.there, stream, cursor).await;
        assert_eq!(rest(&mut moved).await, ["2", "3", "done"]);
        work.await.expect("written");
        drop((first, moved));
        pair.stop().await;
    });
}

/// Two streams share a partition. Its reader is busy with one of them when a message for the other
/// arrives.
#[test]
fn two_streams_of_a_lane_are_both_read_to_their_end() {
    explore(1_000, || async {
        let pair = Pair::start().await;
        let mut work = Vec::new();
        let mut moved = Vec::new();
        for number in [1, 2] {
            let new = pair.stream(number);
            let stream = new.stream;
            let (writer, mut first) = pair.here.open(new);
            writer.push(NOTE, text("1")).await.expect("open");
            let (_, cursor) = next(&mut first).await.expect("the first event");
            moved.push(pair.resume(&pair.there, stream, cursor).await);
            work.push(spawn(async move {
                writer.push(NOTE, text("2")).await.expect("open");
                writer.finish(text("done"));
                writer.committed().cancelled().await;
            }));
        }
        for reader in &mut moved {
            assert_eq!(rest(reader).await, ["2", "done"]);
        }
        for work in work {
            work.await.expect("written");
        }
        drop(moved);
        pair.stop().await;
    });
}

/// The owner's node feeds the connection directly; the store sends no message.
#[test]
fn what_is_written_while_a_client_comes_back_to_the_owner_is_brought_by_its_writer() {
    explore(1_500, || async {
        let pair = Pair::start().await;
        let new = pair.stream(1);
        let stream = new.stream;
        let (writer, mut first) = pair.here.open(new);
        writer.push(NOTE, text("1")).await.expect("open");
        let (_, cursor) = next(&mut first).await.expect("the first event");
        let work = spawn(async move {
            for number in ["2", "3"] {
                writer.push(NOTE, text(number)).await.expect("open");
            }
            writer.finish(text("done"));
            writer.committed().cancelled().await;
        });
        let mut again = pair.resume(&pair.here, stream, cursor).await;
        assert_eq!(rest(&mut again).await, ["2", "3", "done"]);
        work.await.expect("written");
        drop((first, again));
        pair.stop().await;
    });
}

/// Two events fill the writer's queue, and one fills the connection. `push` waits for the writer,
/// and the writer's reader for the client.
static LARGE: [u8; 200 * 1024] = [b'x'; 200 * 1024];

#[test]
fn whoever_waits_for_room_in_a_full_queue_gets_it() {
    explore(500, || async {
        let pair = Pair::start().await;
        let (writer, mut reader) = pair.here.open(pair.stream(1));
        let pushing = [writer.clone(), writer.clone()].map(|writer| {
            spawn(async move {
                for _ in 0..2 {
                    let large = Bytes::from_static(&LARGE);
                    writer.push(NOTE, large).await.expect("open");
                }
            })
        });
        let work = spawn(async move {
            for pushing in pushing {
                pushing.await.expect("pushed");
            }
            writer.finish(text("done"));
            writer.committed().cancelled().await;
        });
        for seq in 1..=4 {
            let (large, cursor) = next(&mut reader).await.expect("an event");
            assert_eq!((large.len(), cursor.seq), (LARGE.len(), seq));
        }
        assert_eq!(rest(&mut reader).await, ["done"]);
        work.await.expect("written");
        drop(reader);
        pair.stop().await;
    });
}

#[test]
fn a_cancellation_on_another_node_reaches_the_request_before_while_and_after_it_is_registered() {
    explore(1_500, || async {
        let pair = Pair::start().await;
        let new = pair.stream(1);
        let running = pair.here.run(SESSION, &new.rpc, LIFE).expect("the first");
        let there = pair.there.clone();
        let cancelling = spawn(async move {
            let routed = there.cancel(SESSION, ME, "i:1").await.expect("answered");
            assert_ne!(routed, Routed::Unknown);
        });
        let (writer, mut reader) = pair.here.open(new);
        running.cancelled.cancelled().await;
        writer.cancel();
        assert_eq!(rest(&mut reader).await, [""; 0]);
        writer.committed().cancelled().await;
        cancelling.await.expect("cancelled");
        drop((running, writer, reader));
        pair.stop().await;
    });
}

#[test]
fn an_answer_on_another_node_reaches_the_call_that_asked() {
    explore(1_500, || async {
        let pair = Pair::start().await;
        let (tenant, there) = (pair.tenant, pair.there.clone());
        let (writer, mut reader) = pair.here.open(pair.stream(1));
        let asking = writer.clone();
        let asking = spawn(async move { asking.ask("q1", text("what?")).await });
        let (question, _) = next(&mut reader).await.expect("the question");
        assert_eq!(question, "what?");
        let routed = there.answer(tenant, SESSION, ME, "q1", text("that")).await;
        assert_eq!(routed, Ok(Routed::Notified));
        let answer = asking.await.expect("no panic");
        assert_eq!(answer, Ok(text("that")));
        writer.finish(text("done"));
        assert_eq!(rest(&mut reader).await, ["done"]);
        writer.committed().cancelled().await;
        drop((there, writer, reader));
        pair.stop().await;
    });
}

/// TEST-C9: after the end of a session, a request that begins to stream has no client to answer.
#[test]
fn the_end_of_a_session_reaches_a_request_that_is_about_to_stream() {
    explore(1_500, || async {
        let pair = Pair::start().await;
        let new = pair.stream(1);
        let running = pair.here.run(SESSION, &new.rpc, LIFE).expect("the first");
        let there = pair.there.clone();
        let ending = spawn(async move { there.end(SESSION, ME, LIFE).await });
        let (writer, mut reader) = pair.here.open(new);
        running.cancelled.cancelled().await;
        assert!(running.is_session_over());
        writer.fenced().cancelled().await;
        assert_eq!(rest(&mut reader).await, [""; 0]);
        assert_eq!(ending.await.expect("no panic"), Ok(()));
        drop((running, writer, reader));
        pair.stop().await;
    });
}

#[test]
fn whoever_waits_for_a_place_gets_the_one_that_is_given_back() {
    explore(1_500, || async {
        let pair = Pair::start().await;
        let limits = pair.here.limits();
        let key = LimitKey {
            shard: "tenant".to_owned(),
            bucket: "running".to_owned(),
        };
        let permits = limits.permits(key, Limit::RunningCalls, 1);
        let entering = [1, 2].map(|_| {
            let (limits, permits) = (limits.clone(), Arc::clone(&permits));
            spawn(async move {
                let permit = limits.enter(&permits).await.expect("a permit");
                assert_eq!(permits.used(), 1, "one at a time");
                drop(permit);
            })
        });
        for entering in entering {
            entering.await.expect("no panic");
        }
        drop((limits, permits));
        pair.stop().await;
    });
}
