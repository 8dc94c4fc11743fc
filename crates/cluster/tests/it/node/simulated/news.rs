//! Lists that change, and the long-lived streams of their subscribers (STREAM-15.1, STREAM-15.2).
//! The registry is a number that all processes read directly, like Postgres. A notification
//! announces its change.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use portolan_cluster::OpenStream;
use portolan_model::Digest;
use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};

use super::{
    super::world::{ME, TENANT, fresh},
    between::Wrong,
    record::Fact,
    scene::{Line, Process, Scene, Session, way},
};
use crate::fixture::rng::NodeRng;

/// Several changes become one notice.
const DEBOUNCE: Duration = Duration::from_millis(200);
/// Time after which a lost notification is repaired.
const LOOK: Duration = Duration::from_secs(5);
/// Maximum number of streams of one session.
const STREAMS: usize = 4;

/// Current state of a list.
#[derive(Debug, Default)]
pub(super) struct Registry {
    revision: AtomicU64,
    message: Notify,
}

impl Registry {
    fn revision(&self) -> u64 {
        self.revision.load(Ordering::Relaxed)
    }

    /// Changes the list.
    pub(super) fn change(&self) -> u64 {
        let revision = self.revision.fetch_add(1, Ordering::Relaxed) + 1;
        self.message.notify_waiters();
        revision
    }
}

/// Last revision that a stream was notified of.
#[derive(Debug)]
pub(super) struct Subscriber(AtomicU64);

/// Notifies the streams of a process of changes.
pub(super) async fn feed(scene: Arc<Scene>, process: Arc<Process>) {
    let mut known = scene.registry.revision();
    loop {
        let message = scene.registry.message.notified();
        let now = scene.registry.revision();
        if now == known {
            tokio::select! {
                biased;
                () = message => sleep(DEBOUNCE).await,
                () = sleep(LOOK) => {}
            }
            continue;
        }
        known = now;
        process.streams.send(TENANT, |stream| {
            (stream.0.fetch_max(known, Ordering::Relaxed) < known)
                .then(|| Bytes::copy_from_slice(&known.to_be_bytes()))
        });
    }
}

/// Opens the stream of a subscriber that knows a revision. It receives a notice if it missed a
/// change.
async fn open(
    scene: &Scene,
    process: &Process,
    session: &Session,
    knows: u64,
) -> Option<OpenStream<Subscriber>> {
    process
        .node
        .begin(session.key, ME, &fresh("body"))
        .await
        .ok()?;
    let group = Digest::from_bytes([session.key.0[0]; 32]);
    let tag = Arc::new(Subscriber(AtomicU64::new(knows)));
    let stream = process
        .streams
        .open(TENANT, group, STREAMS, Arc::clone(&tag))
        .ok()?;
    let revision = scene.registry.revision();
    if revision > knows && scene.wrong != Some(Wrong::ChangeForgotten) {
        tag.0.store(revision, Ordering::Relaxed);
        let door = stream.doorway();
        door.put(Bytes::copy_from_slice(&revision.to_be_bytes()));
    }
    Some(stream)
}

/// A subscriber that reconnects whenever its stream breaks.
pub(super) async fn subscribe(
    scene: Arc<Scene>,
    session: Session,
    who: usize,
    over: Arc<Mutex<Option<Instant>>>,
) {
    let mut rng = scene.rng();
    let mut knows = scene.registry.revision();
    let is_over = || {
        over.lock()
            .expect("whole")
            .is_some_and(|at| Instant::now() >= at)
    };
    while !is_over() {
        if let Some((process, line)) = scene.reach(&mut rng).await {
            let ways = way(&mut rng);
            let opened = process.request(&line, ways, open(&scene, &process, &session, knows));
            if let Ok(Some(stream)) = opened.await {
                scene.record.fact(Fact::Subscribed { who });
                let listening =
                    listen(&scene, (&process, &line), stream, who, &mut knows, &mut rng);
                tokio::select! {
                    biased;
                    () = listening => {}
                    () = async { while !is_over() { sleep(Duration::from_secs(1)).await } } => {}
                }
                scene.record.fact(Fact::Unsubscribed { who });
            }
        }
        sleep(Duration::from_millis(1_000 + rng.below(3_000))).await;
    }
}

async fn listen(
    scene: &Scene,
    (process, line): (&Process, &Line),
    mut stream: OpenStream<Subscriber>,
    who: usize,
    knows: &mut u64,
    rng: &mut NodeRng,
) {
    loop {
        let ways = (Duration::ZERO, rng.ms(super::scene::WAY));
        let Ok(Ok(frame)) = process.request(line, ways, stream.next()).await else {
            return;
        };
        let revision = u64::from_be_bytes(frame[..].try_into().expect("eight bytes"));
        *knows = revision;
        scene.record.fact(Fact::Told { who, revision });
    }
}
