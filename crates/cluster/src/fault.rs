//! A store with faults in front of any other store, for tests (STREAM-18 *Fault store*).
//!
//! A network or a dying server can cause each of its faults. A seed decides about them: the same
//! seed and the same calls fail in the same way.

mod standstill;

use std::{
    collections::VecDeque,
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::{mpsc, watch};
use tokio_util::task::TaskTracker;

pub use self::standstill::Standstill;
use crate::{
    lock, rng, spawn,
    store::{
        Append, Appended, Attached, Begin, Cursor, Fresh, Held, HoldWanted, Lease, LeaseWanted,
        Members, NodeId, NodeMessage, Nonce, Partition, Principal, PutRecord, Read, ReadWanted,
        Record, RecordPut, RecordSummary, Registered, Result, Routed, SessionKey, Store,
        StoreError, StreamKey, TakeOver, TakenOver, Update, Version,
    },
};

/// Fault of one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// No fault.
    None,
    /// The operation did not reach the store.
    Before,
    /// The operation was applied, but its reply was lost.
    Lost,
    /// The store refused the operation, like a store without memory.
    Refused,
}

/// Frequencies of faults, in thousandths.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rates {
    /// Operations that never reach the store.
    pub before: u32,
    /// Operations whose reply is lost.
    pub lost: u32,
    /// Messages that are lost.
    pub message_lost: u32,
    /// Messages that are delivered twice.
    pub message_twice: u32,
    /// Messages that are delivered after the next one.
    pub message_late: u32,
    /// Maximum delay of an operation on its way to the store; zero for none.
    pub delay: Duration,
    /// Maximum delay of its reply. A caller that does not wait treats the reply as lost.
    pub reply_delay: Duration,
}

/// A store with faults, as one node sees it. Give each node its own.
pub struct FaultStore {
    inner: Arc<dyn Store>,
    shared: Arc<FaultState>,
    tracker: TaskTracker,
}

struct FaultState {
    rates: Mutex<Rates>,
    /// Faults of the next operations, before random ones.
    next: Mutex<VecDeque<Fault>>,
    rng: AtomicU64,
    cut: AtomicBool,
    cut_messages: watch::Sender<bool>,
    refuses_writes: AtomicBool,
    operations: AtomicU64,
    fill: AtomicU8,
}

impl fmt::Debug for FaultStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultStore")
            .field("inner", &self.inner)
            .field("cut", &self.shared.cut)
            .finish_non_exhaustive()
    }
}

impl FaultStore {
    /// Puts faults in front of a store. No operation fails until a fault is set. Messages pass
    /// through tasks on `tracker`.
    pub fn new(inner: Arc<dyn Store>, seed: u64, tracker: TaskTracker) -> Self {
        Self {
            inner,
            shared: Arc::new(FaultState {
                rates: Mutex::default(),
                next: Mutex::default(),
                rng: AtomicU64::new(seed),
                cut: AtomicBool::new(false),
                cut_messages: watch::Sender::new(false),
                refuses_writes: AtomicBool::new(false),
                operations: AtomicU64::new(0),
                fill: AtomicU8::new(0),
            }),
            tracker,
        }
    }

    /// Sets the frequencies of faults.
    pub fn set_rates(&self, rates: Rates) {
        *lock(&self.shared.rates) = rates;
    }

    /// Sets the faults of the next operations, in order.
    pub fn next(&self, faults: impl IntoIterator<Item = Fault>) {
        lock(&self.shared.next).extend(faults);
    }

    /// Disconnects the node from the store, or connects it again. Messages in between are lost.
    pub fn cut_off(&self, cut: bool) {
        self.shared.cut.store(cut, Ordering::SeqCst);
        self.cut_off_messages(cut);
    }

    /// Disconnects only the messages.
    pub fn cut_off_messages(&self, cut: bool) {
        self.shared.cut_messages.send_replace(cut);
    }

    /// Makes the store refuse large writes, like a store that is out of memory (STREAM-17.2), or
    /// accept them again.
    pub fn refuse_writes(&self, refuses: bool) {
        self.shared.refuses_writes.store(refuses, Ordering::SeqCst);
    }

    /// Reports this used share of the store's memory, in percent; 0 reports the true one.
    pub fn set_fill(&self, percent: u8) {
        self.shared.fill.store(percent, Ordering::Relaxed);
    }

    /// Number of operations that reached the store.
    pub fn operations(&self) -> u64 {
        self.shared.operations.load(Ordering::Relaxed)
    }

    /// Runs one operation with its faults.
    async fn through<T>(&self, work: impl Future<Output = Result<T>> + Send) -> Result<T> {
        let down = || Err(StoreError::Down("fault".to_owned()));
        if self.shared.cut.load(Ordering::SeqCst) {
            return down();
        }
        let rates = *lock(&self.shared.rates);
        self.shared.wait(rates.delay).await;
        match self.shared.fault() {
            Fault::Before => down(),
            Fault::Refused => Err(StoreError::Refused("fault".to_owned())),
            Fault::None => {
                self.shared.operations.fetch_add(1, Ordering::Relaxed);
                let reply = work.await;
                self.shared.wait(rates.reply_delay).await;
                // The connection may have been cut while the reply was on its way.
                if self.shared.cut.load(Ordering::SeqCst) {
                    return down();
                }
                reply
            }
            Fault::Lost => {
                self.shared.operations.fetch_add(1, Ordering::Relaxed);
                let _ = work.await;
                down()
            }
        }
    }

    /// The same for an operation that a full store refuses.
    async fn through_room<T>(&self, work: impl Future<Output = Result<T>> + Send) -> Result<T> {
        let full = async {
            if self.shared.refuses_writes.load(Ordering::SeqCst) {
                return Err(StoreError::Refused("out of memory".to_owned()));
            }
            work.await
        };
        self.through(full).await
    }
}

impl FaultState {
    fn draw(&self) -> u64 {
        rng::next(&self.rng)
    }

    fn happens(&self, thousandths: u32) -> bool {
        thousandths > 0 && self.draw() % 1000 < u64::from(thousandths)
    }

    fn fault(&self) -> Fault {
        if let Some(fault) = lock(&self.next).pop_front() {
            return fault;
        }
        let rates = *lock(&self.rates);
        if self.happens(rates.before) {
            Fault::Before
        } else if self.happens(rates.lost) {
            Fault::Lost
        } else {
            Fault::None
        }
    }

    async fn wait(&self, most: Duration) {
        if most.is_zero() {
            return;
        }
        let most = u64::try_from(most.as_micros()).unwrap_or(u64::MAX);
        let time = Duration::from_micros(self.draw() % most.max(1));
        if !time.is_zero() {
            tokio::time::sleep(time).await;
        }
    }
}

/// Passes messages on, with the faults of a bad connection.
async fn pass_on(
    mut from: mpsc::Receiver<NodeMessage>,
    to: mpsc::Sender<NodeMessage>,
    shared: Arc<FaultState>,
) {
    let mut late: Option<NodeMessage> = None;
    let mut cut = shared.cut_messages.subscribe();
    loop {
        let message = tokio::select! {
            biased;
            changed = cut.changed() => {
                late = None;
                // Like a subscriber that connected again.
                if changed.is_err() || *cut.borrow_and_update() {
                    continue;
                }
                NodeMessage::Resync
            }
            message = from.recv() => match message {
                Some(message) => message,
                None => return,
            },
        };
        if *cut.borrow() {
            continue;
        }
        let rates = *lock(&shared.rates);
        let mut out = Vec::new();
        if message != NodeMessage::Resync && shared.happens(rates.message_lost) {
            // Lost: anti-entropy has to find its change.
        } else if late.is_none() && shared.happens(rates.message_late) {
            late = Some(message);
            continue;
        } else {
            if shared.happens(rates.message_twice) {
                out.push(message.clone());
            }
            out.push(message);
        }
        out.extend(late.take());
        for message in out {
            if to.send(message).await.is_err() {
                return;
            }
        }
    }
}

#[async_trait]
impl Store for FaultStore {
    async fn begin(
        &self,
        session: SessionKey,
        principal: Principal,
        known: Option<Version>,
        fresh: &Fresh,
    ) -> Result<Begin> {
        self.through(self.inner.begin(session, principal, known, fresh))
            .await
    }

    async fn update(
        &self,
        session: SessionKey,
        principal: Principal,
        expect: Version,
        body: Bytes,
    ) -> Result<Update> {
        self.through_room(self.inner.update(session, principal, expect, body))
            .await
    }

    async fn remember(
        &self,
        session: SessionKey,
        principal: Principal,
        most: usize,
        gone: &[SessionKey],
    ) -> Result<Vec<SessionKey>> {
        self.through_room(self.inner.remember(session, principal, most, gone))
            .await
    }

    async fn forget(
        &self,
        session: SessionKey,
        principal: Principal,
        unused_for: Duration,
    ) -> Result<bool> {
        self.through(self.inner.forget(session, principal, unused_for))
            .await
    }

    async fn end(&self, session: SessionKey, principal: Principal, life: Duration) -> Result<()> {
        self.through(self.inner.end(session, principal, life)).await
    }

    async fn append(&self, stream: StreamKey, append: &Append) -> Result<Appended> {
        self.through_room(self.inner.append(stream, append)).await
    }

    async fn attach(
        &self,
        stream: StreamKey,
        principal: Principal,
        cursor: Cursor,
        node: NodeId,
    ) -> Result<Attached> {
        self.through(self.inner.attach(stream, principal, cursor, node))
            .await
    }

    async fn read(&self, partition: Partition, wanted: &[ReadWanted]) -> Result<Vec<Read>> {
        self.through(self.inner.read(partition, wanted)).await
    }

    async fn detach(&self, stream: StreamKey, node: NodeId, generation: u64) -> Result<()> {
        self.through(self.inner.detach(stream, node, generation))
            .await
    }

    async fn take_over(&self, take_over: &TakeOver) -> Result<TakenOver> {
        self.through(self.inner.take_over(take_over)).await
    }

    async fn owned_by(&self, partition: Partition, node: Option<NodeId>) -> Result<Vec<StreamKey>> {
        self.through(self.inner.owned_by(partition, node)).await
    }

    async fn register(
        &self,
        session: SessionKey,
        rpc: &str,
        node: NodeId,
        stream: Option<Nonce>,
        deadline_in: Duration,
    ) -> Result<Registered> {
        self.through_room(self.inner.register(session, rpc, node, stream, deadline_in))
            .await
    }

    async fn unregister(&self, session: SessionKey, rpc: &str) -> Result<()> {
        self.through(self.inner.unregister(session, rpc)).await
    }

    async fn cancel(&self, session: SessionKey, principal: Principal, rpc: &str) -> Result<Routed> {
        self.through(self.inner.cancel(session, principal, rpc))
            .await
    }

    async fn answer(
        &self,
        session: SessionKey,
        principal: Principal,
        question: &str,
        payload: Bytes,
    ) -> Result<Routed> {
        self.through_room(self.inner.answer(session, principal, question, payload))
            .await
    }

    async fn take_answer(&self, session: SessionKey, question: &str) -> Result<Option<Bytes>> {
        self.through(self.inner.take_answer(session, question))
            .await
    }

    async fn put_record(&self, item: StreamKey, put_record: &PutRecord) -> Result<RecordPut> {
        self.through_room(self.inner.put_record(item, put_record))
            .await
    }

    async fn record(&self, item: StreamKey) -> Result<Option<Record>> {
        self.through(self.inner.record(item)).await
    }

    async fn records(&self, shelf: SessionKey) -> Result<Vec<RecordSummary>> {
        self.through(self.inner.records(shelf)).await
    }

    async fn notify(&self, session: SessionKey, node: NodeId, body: Bytes) -> Result<()> {
        self.through(self.inner.notify(session, node, body)).await
    }

    async fn beat(&self, node: NodeId, ttl: Duration) -> Result<Members> {
        self.through(self.inner.beat(node, ttl)).await
    }

    async fn leave(&self, node: NodeId) -> Result<()> {
        self.through(self.inner.leave(node)).await
    }

    async fn lease(&self, wanted: &[LeaseWanted]) -> Result<Vec<Lease>> {
        self.through_room(self.inner.lease(wanted)).await
    }

    async fn hold(&self, node: NodeId, life: Duration, wanted: &HoldWanted) -> Result<Held> {
        self.through(self.inner.hold(node, life, wanted)).await
    }

    async fn subscribe(&self, node: NodeId) -> Result<mpsc::Receiver<NodeMessage>> {
        let from = self.through(self.inner.subscribe(node)).await?;
        let (to, messages) = mpsc::channel(crate::subscribers::QUEUE);
        spawn(&self.tracker, pass_on(from, to, Arc::clone(&self.shared)));
        Ok(messages)
    }

    fn in_flight(&self) -> usize {
        self.inner.in_flight()
    }

    fn is_in_doubt(&self) -> bool {
        self.inner.is_in_doubt()
    }

    async fn used_memory(&self) -> Result<Option<f64>> {
        let percent = self.shared.fill.load(Ordering::Relaxed);
        if percent > 0 {
            return Ok(Some(f64::from(percent) / 100.0));
        }
        self.through(self.inner.used_memory()).await
    }

    fn incarnation(&self) -> watch::Receiver<u64> {
        self.inner.incarnation()
    }
}
