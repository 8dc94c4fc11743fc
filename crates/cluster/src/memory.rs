//! The store in one process: for `portolan dev` and a single node, and for tests with several
//! nodes.
//!
//! Each partition has one mutex, held for one operation and never across an await. Expiry is lazy;
//! [`MemoryStore::purge`] frees expired data that is not read any more. Bounds, trimming and all
//! replies are those of the Redis store: the contract suite runs the same cases on both.

mod holds;
mod log;
mod partition;
mod principals;
mod records;
mod routing;

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use portolan_model::Clock;
use tokio::sync::{mpsc, watch};

use self::{
    holds::Holds,
    partition::{Moment, Partition as Shelf},
    principals::OfPrincipals,
};
use crate::{
    lock,
    store::{
        Append, Appended, Attached, Begin, Bounds, Cursor, Fresh, Health, HeldSlots, HoldSlots,
        Member, Members, NodeId, NodeMessage, Nonce, PARTITIONS, Partition, Principal, PutRecord,
        Read, ReadWanted, Record, RecordPut, Registered, Remove, Result, Routed, SessionKey, Store,
        StreamKey, TakeOver, TakeTokens, TakenOver, TakenTokens, Update, Version,
    },
    subscribers::Subscribers,
};

/// Number of locks over which buckets are spread.
const BUCKET_SHARDS: usize = 64;

type Buckets = HashMap<(String, String), u64>;

/// The store in one process. Cheap to clone; clones share the data.
#[derive(Clone)]
pub struct MemoryStore(Arc<MemoryState>);

struct MemoryState {
    clock: Clock,
    bounds: Bounds,
    partitions: Vec<Mutex<Shelf>>,
    /// Theoretical arrival time of each bucket, µs.
    buckets: Vec<Mutex<Buckets>>,
    /// End of each node's membership, ms.
    members: Mutex<HashMap<NodeId, u64>>,
    holds: Mutex<Holds>,
    of_principals: Mutex<OfPrincipals>,
    subscribers: Subscribers,
    incarnation: watch::Sender<u64>,
}

/// Copy of the data of a store. A roll-back to it has the effect of a failover.
#[derive(Clone)]
pub struct Snapshot {
    partitions: Vec<Shelf>,
    buckets: Vec<Buckets>,
    members: HashMap<NodeId, u64>,
    holds: Holds,
    of_principals: OfPrincipals,
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore")
            .field("bounds", &self.0.bounds)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").finish_non_exhaustive()
    }
}

impl MemoryStore {
    /// An empty store.
    pub fn new(bounds: Bounds, clock: Clock) -> Self {
        Self(Arc::new(MemoryState {
            clock,
            bounds,
            partitions: (0..PARTITIONS).map(|_| Mutex::default()).collect(),
            buckets: (0..BUCKET_SHARDS).map(|_| Mutex::default()).collect(),
            members: Mutex::default(),
            holds: Mutex::default(),
            of_principals: Mutex::default(),
            subscribers: Subscribers::default(),
            incarnation: watch::Sender::new(0),
        }))
    }

    /// Frees expired data. Call it at intervals; it affects only memory.
    pub fn purge(&self) {
        let now = self.now_ms();
        for partition in &self.0.partitions {
            lock(partition).purge(now);
        }
        let now_us = self.now_us();
        for buckets in &self.0.buckets {
            lock(buckets).retain(|_, due| *due > now_us);
        }
        lock(&self.0.members).retain(|_, until| *until + ms(self.0.bounds.dead_for) > now);
        lock(&self.0.holds).purge(now);
        lock(&self.0.of_principals).purge(now);
    }

    /// Number of sessions with any data, including tombstones.
    pub fn len(&self) -> usize {
        self.0
            .partitions
            .iter()
            .map(|partition| lock(partition).len())
            .sum()
    }

    /// True if the store has no data of any session.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies all data.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            partitions: self
                .0
                .partitions
                .iter()
                .map(|partition| lock(partition).clone())
                .collect(),
            buckets: self
                .0
                .buckets
                .iter()
                .map(|buckets| lock(buckets).clone())
                .collect(),
            members: lock(&self.0.members).clone(),
            holds: lock(&self.0.holds).clone(),
            of_principals: lock(&self.0.of_principals).clone(),
        }
    }

    /// Rolls all data back, like a failover to a replica with a lag. Later writes are lost, the
    /// incarnation rises, and nodes receive `Resync` (STREAM-17.3).
    pub fn roll_back(&self, to: &Snapshot) {
        for (partition, old) in self.0.partitions.iter().zip(&to.partitions) {
            *lock(partition) = old.clone();
        }
        for (buckets, old) in self.0.buckets.iter().zip(&to.buckets) {
            *lock(buckets) = old.clone();
        }
        *lock(&self.0.members) = to.members.clone();
        *lock(&self.0.holds) = to.holds.clone();
        *lock(&self.0.of_principals) = to.of_principals.clone();
        self.0.incarnation.send_modify(|number| *number += 1);
        self.0.subscribers.resync();
    }

    /// Bounds of this store.
    pub fn bounds(&self) -> &Bounds {
        &self.0.bounds
    }

    fn now_us(&self) -> u64 {
        u64::try_from(self.0.clock.unix_micros()).unwrap_or(0)
    }

    fn now_ms(&self) -> u64 {
        self.now_us() / 1000
    }

    /// Runs one operation on a partition. Messages are sent before its lock is released, so that
    /// they arrive in the order of the writes.
    fn within<T>(
        &self,
        partition: Partition,
        work: impl FnOnce(&mut Shelf, &mut Moment<'_>) -> T,
    ) -> T {
        let mut shelf = lock(&self.0.partitions[usize::from(partition.0)]);
        let mut moment = Moment {
            now: self.now_ms(),
            bounds: &self.0.bounds,
            notified: Vec::new(),
        };
        let outcome = work(&mut shelf, &mut moment);
        for (node, message) in moment.notified {
            self.0.subscribers.notify(node, message);
        }
        outcome
    }
}

/// Whole milliseconds, as in Redis.
fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX / 4)
}

#[async_trait]
impl Store for MemoryStore {
    async fn begin(
        &self,
        session: SessionKey,
        principal: Principal,
        known: Option<Version>,
        fresh: &Fresh,
    ) -> Result<Begin> {
        Ok(self.within(session.partition(), |partition, moment| {
            partition.begin(session, principal, known, fresh, moment)
        }))
    }

    async fn update(
        &self,
        session: SessionKey,
        principal: Principal,
        expect: Version,
        body: Bytes,
    ) -> Result<Update> {
        Ok(self.within(session.partition(), |partition, moment| {
            partition.update(session, principal, expect, body, moment)
        }))
    }

    async fn remember(
        &self,
        session: SessionKey,
        principal: Principal,
        most: usize,
        gone: &[SessionKey],
    ) -> Result<Vec<SessionKey>> {
        let mut of_principals = lock(&self.0.of_principals);
        let until = self.now_ms() + ms(self.0.bounds.idle);
        Ok(of_principals.remember(session, principal, most, gone, until))
    }

    async fn remove(
        &self,
        session: SessionKey,
        principal: Principal,
        remove: Remove,
    ) -> Result<bool> {
        Ok(self.within(session.partition(), |partition, moment| {
            partition.remove(session, principal, remove, moment)
        }))
    }

    async fn append(&self, stream: StreamKey, append: &Append) -> Result<Appended> {
        Ok(
            self.within(stream.session.partition(), |partition, moment| {
                partition.append(stream, append, moment)
            }),
        )
    }

    async fn attach(
        &self,
        stream: StreamKey,
        principal: Principal,
        cursor: Cursor,
        node: NodeId,
    ) -> Result<Attached> {
        Ok(
            self.within(stream.session.partition(), |partition, moment| {
                partition.attach(stream, principal, cursor, node, moment)
            }),
        )
    }

    async fn read(&self, partition: Partition, wanted: &[ReadWanted]) -> Result<Vec<Read>> {
        Ok(self.within(partition, |partition, moment| {
            wanted
                .iter()
                .map(|wanted| partition.read(wanted, moment))
                .collect()
        }))
    }

    async fn take_over(&self, take_over: &TakeOver) -> Result<TakenOver> {
        Ok(
            self.within(take_over.stream.session.partition(), |partition, moment| {
                partition.take_over(take_over, moment)
            }),
        )
    }

    async fn owned_by(&self, partition: Partition, node: Option<NodeId>) -> Result<Vec<StreamKey>> {
        Ok(self.within(partition, |partition, moment| {
            partition.owned_by(node, moment)
        }))
    }

    async fn register(
        &self,
        session: SessionKey,
        rpc: &str,
        node: NodeId,
        stream: Option<Nonce>,
        deadline_in: Duration,
    ) -> Result<Registered> {
        Ok(self.within(session.partition(), |partition, moment| {
            partition.register(session, rpc, node, stream, deadline_in, moment)
        }))
    }

    async fn unregister(&self, session: SessionKey, rpc: &str) -> Result<()> {
        self.within(session.partition(), |partition, moment| {
            partition.unregister(session, rpc, moment);
        });
        Ok(())
    }

    async fn cancel(&self, session: SessionKey, principal: Principal, rpc: &str) -> Result<Routed> {
        Ok(self.within(session.partition(), |partition, moment| {
            partition.cancel(session, principal, rpc, moment)
        }))
    }

    async fn answer(
        &self,
        session: SessionKey,
        principal: Principal,
        question: &str,
        payload: Bytes,
    ) -> Result<Routed> {
        Ok(self.within(session.partition(), |partition, moment| {
            partition.answer(session, principal, question, payload, moment)
        }))
    }

    async fn take_answer(&self, session: SessionKey, question: &str) -> Result<Option<Bytes>> {
        Ok(self.within(session.partition(), |partition, moment| {
            partition.take_answer(session, question, moment)
        }))
    }

    async fn put_record(&self, item: StreamKey, put_record: &PutRecord) -> Result<RecordPut> {
        Ok(self.within(item.session.partition(), |partition, moment| {
            partition.records.put_record(item, put_record, moment.now)
        }))
    }

    async fn records(&self, list: SessionKey, name: Option<Nonce>) -> Result<Vec<Record>> {
        Ok(self.within(list.partition(), |partition, moment| {
            partition.records.list(list, name, moment.now)
        }))
    }

    async fn publish(&self, session: SessionKey, node: NodeId, body: Bytes) -> Result<()> {
        self.within(session.partition(), |_, moment| {
            moment.notify(node, NodeMessage::Session { session, body });
        });
        Ok(())
    }

    async fn heartbeat(&self, node: NodeId, ttl: Duration) -> Result<Members> {
        let now = self.now_ms();
        let mut members = lock(&self.0.members);
        if ttl.is_zero() {
            members.remove(&node);
        } else {
            members.insert(node, now + ms(ttl));
        }
        members.retain(|_, until| *until + ms(self.0.bounds.dead_for) > now);
        let mut nodes: Vec<Member> = members
            .iter()
            .map(|(node, until)| Member {
                node: *node,
                valid_ms: until.cast_signed() - now.cast_signed(),
            })
            .collect();
        nodes.sort_by_key(|member| (member.valid_ms, member.node));
        Ok(Members { nodes })
    }

    async fn take_tokens(&self, wanted: &[TakeTokens]) -> Result<Vec<TakenTokens>> {
        let now = self.now_us();
        Ok(wanted
            .iter()
            .map(|wanted| {
                let mut buckets = lock(&self.0.buckets[bucket_shard(&wanted.shard)]);
                let key = (wanted.shard.clone(), wanted.bucket.clone());
                let arrival = buckets.get(&key).copied();
                let taken = wanted.rate().take(arrival, now, wanted.request());
                if let Some(arrival) = taken.arrival {
                    buckets.insert(key, arrival);
                }
                TakenTokens {
                    granted: taken.granted,
                    wait: Duration::from_millis(taken.wait_us.div_ceil(1000)),
                }
            })
            .collect())
    }

    async fn hold_slots(
        &self,
        node: NodeId,
        life: Duration,
        wanted: &HoldSlots,
    ) -> Result<HeldSlots> {
        let now = self.now_ms();
        Ok(lock(&self.0.holds).hold(node, ms(life), wanted, now))
    }

    async fn subscribe(&self, node: NodeId) -> Result<mpsc::Receiver<NodeMessage>> {
        Ok(self.0.subscribers.listen(node))
    }

    fn health(&self) -> Health {
        Health {
            incarnation: self.0.incarnation.subscribe(),
            used_memory: None,
            in_flight: 0,
            is_in_doubt: false,
        }
    }
}

fn bucket_shard(shard: &str) -> usize {
    // FNV: only to spread locks.
    let hash = shard.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    usize::try_from(hash % BUCKET_SHARDS as u64).unwrap_or(0)
}
