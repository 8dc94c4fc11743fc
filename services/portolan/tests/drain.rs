//! The order and the budget of a stop (STREAM-16.4), on paused time.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{
    future::pending,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{Router, routing::get};
use portolan::lifecycle::{DrainTimes, Drained, Lifecycle};
use portolan_net::listen::{self, ListenLimits};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::Notify,
    time::Instant,
};

const TIMES: DrainTimes = DrainTimes {
    accept: Duration::from_secs(5),
    calls: Duration::from_secs(25),
};

/// What happened, and at which second of the drain.
#[derive(Clone)]
struct Diary {
    began: Instant,
    lines: Arc<Mutex<Vec<(&'static str, u64)>>>,
}

impl Diary {
    fn of(life: &Lifecycle) -> Self {
        let diary = Self {
            began: Instant::now(),
            lines: Arc::default(),
        };
        for (name, token) in [
            ("stopping", &life.stopping),
            ("closing", &life.closing),
            ("drained", &life.drained),
            ("stopped", &life.stopped),
        ] {
            let (diary, token) = (diary.clone(), token.clone());
            life.tasks.spawn(async move {
                token.cancelled().await;
                diary.note(name);
            });
        }
        diary
    }

    fn note(&self, what: &'static str) {
        let second = self.began.elapsed().as_secs();
        self.lines.lock().unwrap().push((what, second));
    }

    fn lines(&self) -> Vec<(&'static str, u64)> {
        self.lines.lock().unwrap().clone()
    }
}

async fn drain(life: &Lifecycle, diary: &Diary) -> Drained {
    let listener = listener(life);
    let drained = life
        .drain(TIMES, || life.calls.len(), async {
            diary.note("last words")
        })
        .await;
    listener.await.unwrap();
    drained
}

/// Does with the connections what `listen::serve` does.
fn listener(life: &Lifecycle) -> tokio::task::JoinHandle<()> {
    let life = life.clone();
    life.tasks.clone().spawn(async move {
        life.closing.cancelled().await;
        life.connections.close();
        life.connections.wait().await;
    })
}

#[tokio::test(start_paused = true)]
async fn s16_4_an_idle_node_still_accepts_for_five_seconds_and_then_ends_at_once() {
    let life = Lifecycle::default();
    let diary = Diary::of(&life);
    let drained = drain(&life, &diary).await;
    assert_eq!((drained.cut, drained.took.as_secs()), (0, 5));
    let mut lines = diary.lines();
    assert_eq!(lines.remove(0), ("stopping", 0));
    assert_eq!(lines.remove(0), ("closing", 5));
    assert_eq!(lines.remove(0), ("last words", 5));
    lines.sort_unstable();
    assert_eq!(lines, [("drained", 5), ("stopped", 5)]);
    assert_eq!(diary.began.elapsed().as_secs(), 5);
}

#[tokio::test(start_paused = true)]
async fn s16_4_a_call_that_nobody_is_connected_to_runs_on_and_is_waited_for() {
    let life = Lifecycle::default();
    let diary = Diary::of(&life);
    let detached = diary.clone();
    life.calls.spawn(async move {
        tokio::time::sleep(Duration::from_secs(12)).await;
        detached.note("call");
    });
    let drained = drain(&life, &diary).await;
    assert_eq!((drained.cut, drained.took.as_secs()), (0, 12));
    let lines = diary.lines();
    assert_eq!(
        lines[..4],
        [
            ("stopping", 0),
            ("closing", 5),
            ("call", 12),
            ("last words", 12)
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn s16_4_calls_and_tasks_that_never_end_share_one_budget_of_thirty_seconds() {
    let life = Lifecycle::default();
    let diary = Diary::of(&life);
    // A request whose connection can only be cut.
    let cut = life.drained.clone();
    life.connections.spawn(async move { cut.cancelled().await });
    life.calls.spawn(pending::<()>());
    life.tasks.spawn(pending::<()>());
    let drained = drain(&life, &diary).await;
    assert_eq!((drained.cut, drained.took.as_secs()), (1, 25));
    let lines = diary.lines();
    assert_eq!(
        lines[..3],
        [("stopping", 0), ("closing", 5), ("last words", 25)],
        "what calls need goes on while they run"
    );
    assert!(
        diary.began.elapsed() < Duration::from_millis(29_500),
        "{:?}",
        diary.began.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn s16_4_last_words_that_never_end_do_not_keep_the_process() {
    let life = Lifecycle::default();
    let began = Instant::now();
    let listener = listener(&life);
    let drained = life.drain(TIMES, || 0, pending()).await;
    listener.await.unwrap();
    assert_eq!(drained.cut, 0);
    assert!(
        began.elapsed() < Duration::from_secs(10),
        "{:?}",
        began.elapsed()
    );
}

/// The honest end of a call that took too long reaches its client before the connection is cut.
#[tokio::test]
async fn s16_4_last_words_are_heard() {
    let (started, told) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (signal, words) = (Arc::clone(&started), Arc::clone(&told));
    let router = Router::new().route(
        "/",
        get(move || async move {
            signal.notify_one();
            words.notified().await;
            "draining"
        }),
    );
    let life = Lifecycle::default();
    let bound = listen::bind("127.0.0.1:0".parse().unwrap(), "PORTOLAN_LISTEN").unwrap();
    let listener = bound.listen().unwrap();
    let address = listener.local_addr().unwrap();
    life.tasks.spawn(listen::serve(
        listener,
        router,
        ListenLimits::default(),
        life.public(),
    ));
    let mut client = TcpStream::connect(address).await.unwrap();
    client
        .write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        .await
        .unwrap();
    started.notified().await;
    let times = DrainTimes {
        accept: Duration::ZERO,
        calls: Duration::from_millis(100),
    };
    let mut answer = String::new();
    let (drained, read) = tokio::join!(
        life.drain(times, || 0, async { told.notify_one() }),
        client.read_to_string(&mut answer),
    );
    assert_eq!(drained.cut, 1);
    read.unwrap();
    assert!(
        answer.contains("connection: close") && answer.ends_with("draining"),
        "{answer}"
    );
    assert!(TcpStream::connect(address).await.is_err());
}
