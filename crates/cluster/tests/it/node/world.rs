//! A store, its nodes, and a client. Time is tokio's, paused: a task moves the store's clock along
//! with it.
#![expect(clippy::unwrap_used, reason = "a test stops where it goes wrong")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use crate::fixture::fault::FaultStore;
use bytes::Bytes;
use futures_util::StreamExt;
use portolan_cluster::{
    memory::MemoryStore,
    node::{
        Delivery, Lost, NewStream, Node, NodeSettings, PayloadPlace, Payloads, Resumed,
        StreamReader, StreamWriter,
    },
    store::{Bounds, Class, Cursor, Epoch, Fresh, Nonce, Principal, SessionKey, Store, StreamKey},
};
use portolan_model::{
    clock::{Clock, Timestamp},
    id::TenantId,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use uuid::Uuid;

pub(super) const ME: Principal = Principal([7; 16]);
pub(super) const STRANGER: Principal = Principal([8; 16]);
pub(super) const LIFE: Duration = Duration::from_secs(30 * 24 * 3600);
const STEP: Duration = Duration::from_millis(5);

/// Tenant of all data.
pub(super) const TENANT: TenantId = TenantId::from_uuid(Uuid::from_u128(7));

/// Seals by adding the location's name, so a moved payload does not open.
#[derive(Debug)]
pub(super) struct Named;

impl Payloads for Named {
    fn seal(&self, place: &PayloadPlace<'_>, payload: Bytes) -> Bytes {
        [&payload[..], format!("{place:?}").as_bytes()]
            .concat()
            .into()
    }

    fn open(&self, place: &PayloadPlace<'_>, payload: Bytes) -> Option<Bytes> {
        let name = format!("{place:?}");
        Some(payload.slice(..payload.strip_suffix(name.as_bytes())?.len()))
    }

    fn lost(&self, about: &Bytes, why: Lost) -> Bytes {
        [format!("{why:?} ").as_bytes(), about].concat().into()
    }
}

pub(super) struct World {
    pub(super) memory: MemoryStore,
    pub(super) tracker: TaskTracker,
    pub(super) settings: NodeSettings,
    keys: AtomicU64,
    over: CancellationToken,
}

impl Drop for World {
    fn drop(&mut self) {
        self.over.cancel();
    }
}

pub(super) struct Member {
    pub(super) node: Node,
    pub(super) faults: Arc<FaultStore>,
    pub(super) stop: CancellationToken,
}

impl World {
    pub(super) fn new() -> Self {
        Self::with(Bounds::default())
    }

    pub(super) fn with(bounds: Bounds) -> Self {
        let clock = Clock::test(Timestamp::UNIX_EPOCH + Duration::from_secs(1_000_000_000));
        let tracker = TaskTracker::new();
        let (pumped, over) = (clock.clone(), CancellationToken::new());
        let is_over = over.clone();
        tracker.spawn(async move {
            while !is_over.is_cancelled() {
                tokio::time::sleep(STEP).await;
                pumped.advance(time::Duration::milliseconds(5));
            }
        });
        Self {
            memory: MemoryStore::new(bounds, clock),
            tracker,
            settings: NodeSettings::default(),
            keys: AtomicU64::new(1),
            over,
        }
    }

    pub(super) async fn node(&self) -> Member {
        self.node_on(Arc::new(self.memory.clone())).await
    }

    pub(super) async fn node_on(&self, store: Arc<dyn Store>) -> Member {
        let seed = self.keys.fetch_add(1, Ordering::Relaxed);
        let faults = Arc::new(FaultStore::new(store, seed, self.tracker.clone()));
        let stop = self.over.child_token();
        let node = Node::start(
            Arc::clone(&faults) as _,
            self.settings.clone(),
            Arc::new(Named),
            &self.tracker,
            stop.clone(),
        )
        .await
        .unwrap();
        Member { node, faults, stop }
    }

    /// Creates a session that the store knows.
    pub(super) async fn session(&self, on: &Member) -> SessionKey {
        let session = self.unknown_session();
        on.node.begin(session, ME, &fresh("body")).await.unwrap();
        session
    }

    pub(super) fn unknown_session(&self) -> SessionKey {
        let number = self.keys.fetch_add(1, Ordering::Relaxed);
        SessionKey(
            u128::from(number)
                .wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)
                .to_be_bytes(),
        )
    }

    pub(super) fn new_stream(&self, session: SessionKey) -> NewStream {
        let number = self.keys.fetch_add(1, Ordering::Relaxed);
        NewStream {
            stream: StreamKey {
                session,
                nonce: Nonce(number.to_be_bytes()),
            },
            principal: ME,
            rpc: format!("i:{number}"),
            deadline: Duration::from_secs(300),
            about: Bytes::from_static(b"about"),
            tenant: TENANT,
            trace: None,
        }
    }
}

impl Member {
    /// Kills the process: none of its operations reaches the store any more.
    pub(super) fn kill(&self) {
        self.faults.cut_off(true);
        self.stop.cancel();
    }

    /// Opens a stream of a new session on this node.
    pub(super) async fn open_stream(
        &self,
        world: &World,
    ) -> (StreamKey, StreamWriter, StreamReader) {
        let new = world.new_stream(world.session(self).await);
        let stream = new.stream;
        let (writer, reader) = self.node.open(new);
        (stream, writer, reader)
    }

    pub(super) async fn resume(&self, stream: StreamKey, cursor: Cursor) -> StreamReader {
        match self.node.resume(TENANT, stream, ME, cursor).await.unwrap() {
            Resumed::Reader(reader) => reader,
            other => panic!("{other:?}"),
        }
    }
}

pub(super) fn fresh(body: &'static str) -> Fresh {
    Fresh {
        body: Bytes::from_static(body.as_bytes()),
        life: LIFE,
    }
}

pub(super) const START: Cursor = Cursor {
    seq: 0,
    epoch: None,
};

pub(super) const fn first(seq: u64) -> Cursor {
    Cursor {
        seq,
        epoch: Some(Epoch::FIRST),
    }
}

pub(super) fn text(text: impl Into<String>) -> Bytes {
    Bytes::from(text.into())
}

/// The next delivery, within two minutes of paused time.
pub(super) async fn next(reader: &mut StreamReader) -> Option<Delivery> {
    tokio::time::timeout(Duration::from_secs(120), reader.next())
        .await
        .expect("nothing came")
}

/// Checks that no delivery comes for the given time.
pub(super) async fn quiet(reader: &mut StreamReader, long: Duration) {
    if let Ok(came) = tokio::time::timeout(long, reader.next()).await {
        panic!("{came:?}");
    }
}

/// All deliveries until the end, as `number text`, `gap after..before` or `- text`.
pub(super) async fn rest(reader: &mut StreamReader) -> Vec<String> {
    let mut all = Vec::new();
    while let Some(delivery) = next(reader).await {
        all.push(show(&delivery));
    }
    all
}

/// The next `count` deliveries.
pub(super) async fn some(reader: &mut StreamReader, count: usize) -> Vec<String> {
    let mut all = Vec::new();
    for _ in 0..count {
        all.push(show(&next(reader).await.expect("the stream ended")));
    }
    all
}

pub(super) fn show(delivery: &Delivery) -> String {
    match delivery {
        Delivery::Event { seq, payload, .. } => {
            format!("{seq} {}", String::from_utf8_lossy(payload))
        }
        Delivery::Unlogged { payload } => format!("- {}", String::from_utf8_lossy(payload)),
        Delivery::Gap { after, before } => format!("gap {after}..{before}"),
    }
}

pub(super) fn cursor_of(delivery: &Delivery) -> Option<Cursor> {
    match delivery {
        Delivery::Event { seq, epoch, .. } => Some(Cursor {
            seq: *seq,
            epoch: Some(*epoch),
        }),
        _ => None,
    }
}

pub(super) const NOTE: Class = Class::Notification;
