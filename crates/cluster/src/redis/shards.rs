//! Map from slots to servers: one server for all slots, or the masters of a Redis Cluster
//! (STREAM-3, STREAM-17.1).
//!
//! All keys of an operation share a slot, so an operation goes to one server. The cluster reports
//! the server of a slot in the map of slots and by refusing misplaced commands. One task reads the
//! map. Refused operations wait briefly for it and try again.

use std::{
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::future::try_join_all;
use redis::{Client, Cmd, ConnectionAddr, ConnectionInfo, Value};
use tokio::{
    sync::Notify,
    time::{Instant, MissedTickBehavior, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    connection::{Common, Failure, RedisConnection, RedisServer, classify},
    keys::{KeySlot, SLOTS},
    scripts::ScriptSource,
    server_metrics,
};
use crate::store::{Result, StoreError};

/// Maximum time for which an operation is retried while its slot moves (STREAM-3). After that the
/// store counts as slow.
const PATIENCE: Duration = Duration::from_millis(500);
/// First and longest pause before such a retry.
const PAUSE: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(50));
/// Interval of reads of the map without refusals, and minimum interval with many refusals.
const ASK: (Duration, Duration) = (Duration::from_secs(10), Duration::from_millis(100));

/// Interval of the reads of the servers' memory, and the deadline of one.
const MEASURE: (Duration, Duration) = (Duration::from_secs(15), Duration::from_secs(1));

/// Server and the connections to it.
#[derive(Debug)]
pub(super) struct Shard {
    address: ConnectionAddr,
    pub(super) server: Arc<RedisServer>,
    pub(super) links: Vec<RedisConnection>,
}

impl Shard {
    /// Connection for a location. Operations of a partition share one and so keep their order.
    fn link(&self, place: KeySlot) -> &RedisConnection {
        &self.links[usize::from(place.turn) % self.links.len()]
    }
}

/// Map of slots.
#[derive(Debug, Default)]
struct Map {
    shards: Vec<Arc<Shard>>,
    /// First and last slot of each range with its shard, in order.
    ranges: Vec<(u16, u16, usize)>,
}

impl Map {
    fn of(&self, slot: u16) -> Option<&Arc<Shard>> {
        let after = self.ranges.partition_point(|(first, ..)| *first <= slot);
        let (_, last, shard) = self.ranges.get(after.checked_sub(1)?)?;
        (slot <= *last).then(|| self.shards.get(*shard))?
    }

    /// Whether a slot moved from one server to another. Writes may have been lost then
    /// (STREAM-17.3).
    fn moved(&self, new: &Self) -> bool {
        (0..SLOTS).any(|slot| {
            let old = self.of(slot).map(|shard| &shard.address);
            old.is_some() && old != new.of(slot).map(|shard| &shard.address)
        })
    }
}

/// One round trip on any connection.
#[derive(Clone, Copy)]
pub(super) enum Job<'a> {
    Command(&'a Cmd),
    Script {
        script: &'a ScriptSource,
        by_name: &'a Cmd,
        by_text: &'a (dyn Fn() -> Cmd + Sync),
    },
}

impl Job<'_> {
    async fn on(
        self,
        link: &RedisConnection,
        count: &AtomicU64,
    ) -> std::result::Result<Value, Failure> {
        match self {
            Self::Command(command) => link.try_send(command, count).await,
            Self::Script {
                script,
                by_name,
                by_text,
            } => link.script(script, by_name, by_text, count).await,
        }
    }
}

/// The servers.
#[derive(Debug)]
pub(super) struct Shards {
    common: Arc<Common>,
    seeds: Vec<ConnectionInfo>,
    connections: usize,
    /// The only server, if there is no cluster. No map is needed then.
    only: Option<Arc<Shard>>,
    map: RwLock<Arc<Map>>,
    is_stale: Notify,
    turn: AtomicUsize,
    /// Used share of the memory of the fullest server, as bits; not a number if it has no limit.
    used_memory: AtomicU64,
}

impl Shards {
    /// Used share of the servers' memory, as of the last read.
    pub(super) fn used_memory(&self) -> Option<f64> {
        let used = f64::from_bits(self.used_memory.load(Ordering::Relaxed));
        Some(used).filter(|used| !used.is_nan())
    }

    /// Reads the memory of the servers. The fullest one decides, because it refuses writes first.
    pub(super) async fn measure_memory(&self) -> Result<Option<f64>> {
        let shards = self.all();
        let reads = shards
            .iter()
            .map(|shard| server_metrics::used_memory(&shard.links[0]));
        let used = try_join_all(reads).await?.into_iter().flatten();
        let used = used.max_by(f64::total_cmp);
        self.used_memory
            .store(used.unwrap_or(f64::NAN).to_bits(), Ordering::Relaxed);
        Ok(used)
    }

    /// Connects to the first seed that replies. If it belongs to a cluster, connects to the masters
    /// that it names.
    pub(super) async fn connect(
        common: Arc<Common>,
        seeds: Vec<ConnectionInfo>,
        connections: usize,
    ) -> Result<Self> {
        let mut this = Self {
            common,
            connections: connections.max(1),
            only: None,
            map: RwLock::default(),
            is_stale: Notify::new(),
            turn: AtomicUsize::new(0),
            used_memory: AtomicU64::new(f64::NAN.to_bits()),
            seeds,
        };
        let mut found = Err(StoreError::Refused("no address of Redis".to_owned()));
        for seed in &this.seeds {
            let shard = this.shard(seed.clone())?;
            let ready = shard.links[0].ready().await;
            found = ready.map(|()| shard);
            if found.is_ok() {
                break;
            }
        }
        let shard = found?;
        if shard.server.is_cluster() {
            let map = this.ask(&shard).await?;
            if map.of(0).is_none() || map.of(SLOTS - 1).is_none() {
                return Err(StoreError::Down("the cluster is not complete".to_owned()));
            }
            this.map = RwLock::new(Arc::new(map));
        } else if this.seeds.len() > 1 {
            return Err(StoreError::Refused(
                "several addresses, but the server belongs to no cluster".to_owned(),
            ));
        } else {
            this.only = Some(shard);
        }
        for shard in this.all() {
            for link in &shard.links {
                link.ready().await?;
            }
        }
        Ok(this)
    }

    fn shard(&self, info: ConnectionInfo) -> Result<Arc<Shard>> {
        let address = info.addr().clone();
        let client = Client::open(info).map_err(|error| classify(&error))?;
        let server = Arc::new(RedisServer::new(client, Arc::clone(&self.common)));
        let links = (0..self.connections)
            .map(|_| RedisConnection::new(Arc::clone(&server)))
            .collect();
        Ok(Arc::new(Shard {
            address,
            server,
            links,
        }))
    }

    fn map(&self) -> Arc<Map> {
        Arc::clone(&self.map.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// All servers.
    pub(super) fn all(&self) -> Vec<Arc<Shard>> {
        match &self.only {
            Some(only) => vec![Arc::clone(only)],
            None => self.map().shards.clone(),
        }
    }

    /// A server for the subscriber: another one each time, so that a dead server is not used
    /// forever.
    pub(super) fn next(&self) -> Option<Arc<RedisServer>> {
        let all = self.all();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        all.get(turn % all.len().max(1))
            .map(|shard| Arc::clone(&shard.server))
    }

    /// Whether operations on several slots have to be split.
    pub(super) const fn is_cluster(&self) -> bool {
        self.only.is_none()
    }

    /// Runs a job on the server of its slot.
    pub(super) async fn run(
        &self,
        place: KeySlot,
        job: Job<'_>,
        count: &AtomicU64,
    ) -> Result<Value> {
        match &self.only {
            Some(only) => job
                .on(only.link(place), count)
                .await
                .map_err(|failure| failure.error),
            // Boxed: a single server's futures stay small.
            None => Box::pin(self.find(place, job, count)).await,
        }
    }

    async fn find(&self, place: KeySlot, job: Job<'_>, count: &AtomicU64) -> Result<Value> {
        let until = Instant::now() + PATIENCE;
        let mut pause = PAUSE.0;
        loop {
            let failure = match self.map().of(place.slot) {
                Some(shard) => match job.on(shard.link(place), count).await {
                    Ok(value) => return Ok(value),
                    Err(failure) => failure,
                },
                None => StoreError::Down("nobody has this slot".to_owned()).into(),
            };
            if matches!(failure.error, StoreError::Down(_)) {
                self.is_stale.notify_one();
            }
            // A misplaced operation was not applied. An operation without a reply may have been
            // applied.
            if !failure.is_misplaced || Instant::now() + pause > until {
                return Err(failure.error);
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE.1);
        }
    }

    /// Reads the map of slots from a server.
    async fn ask(&self, shard: &Shard) -> Result<Map> {
        let mut command = redis::cmd("CLUSTER");
        command.arg("SLOTS");
        let answer = shard.links[0]
            .try_send(&command, &AtomicU64::new(0))
            .await
            .map_err(|failure| failure.error)?;
        let known = self.map();
        let mut map = Map::default();
        for (first, last, host, port) in slots(answer)? {
            let address = beside(&shard.address, host, port);
            let index = map.shards.iter().position(|shard| shard.address == address);
            let index = match index {
                Some(index) => index,
                None => {
                    let old = known.shards.iter().chain(self.only.as_ref());
                    let old = old.into_iter().find(|shard| shard.address == address);
                    let shard = match old {
                        Some(shard) => Arc::clone(shard),
                        None => {
                            let seed = self.seeds.first().cloned();
                            let seed = seed.ok_or_else(|| StoreError::Refused(String::new()))?;
                            self.shard(seed.set_addr(address))?
                        }
                    };
                    map.shards.push(shard);
                    map.shards.len() - 1
                }
            };
            map.ranges.push((first, last, index));
        }
        map.ranges.sort_unstable();
        Ok(map)
    }

    /// Reads the map from one server after the other until one replies.
    async fn refresh(&self) {
        let known = self.map();
        let seeds = self.seeds.iter().filter_map(|seed| {
            let is_known = known
                .shards
                .iter()
                .any(|shard| shard.address == *seed.addr());
            (!is_known).then(|| self.shard(seed.clone()).ok())?
        });
        for shard in known.shards.iter().cloned().chain(seeds) {
            let asked = timeout(PATIENCE, self.ask(&shard)).await;
            let Ok(Ok(map)) = asked else { continue };
            let has_moved = known.moved(&map);
            if map.ranges != known.ranges || has_moved {
                tracing::info!(masters = map.shards.len(), "the slots of the cluster moved");
            }
            *self.map.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(map);
            if has_moved {
                self.common.writes_may_be_lost();
            }
            return;
        }
        tracing::debug!("no server of the cluster says where the slots are");
    }
}

/// Reads the memory of the servers at intervals.
pub(super) async fn measure(shards: Arc<Shards>, over: CancellationToken) {
    let mut ticks = tokio::time::interval(MEASURE.0);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = over.cancelled() => return,
            _ = ticks.tick() => {}
        }
        // A server that does not reply leaves the last figure.
        let _ = timeout(MEASURE.1, shards.measure_memory()).await;
    }
}

/// Keeps the map of a cluster current until `over`.
pub(super) async fn follow(shards: Arc<Shards>, over: CancellationToken) {
    loop {
        tokio::select! {
            () = over.cancelled() => return,
            () = shards.is_stale.notified() => {}
            () = tokio::time::sleep(ASK.0) => {}
        }
        tokio::select! {
            () = over.cancelled() => return,
            () = shards.refresh() => {}
        }
        tokio::select! {
            () = over.cancelled() => return,
            () = tokio::time::sleep(ASK.1) => {}
        }
    }
}

/// Parses `CLUSTER SLOTS`: first and last slot, host and port of the master. An empty host means
/// the server that replied.
fn slots(answer: Value) -> Result<Vec<(u16, u16, String, u16)>> {
    let corrupt = || StoreError::Corrupt("CLUSTER SLOTS".to_owned());
    let number = |value: Option<&Value>| match value {
        Some(Value::Int(number)) => u16::try_from(*number).map_err(|_| corrupt()),
        _ => Err(corrupt()),
    };
    let Value::Array(ranges) = answer else {
        return Err(corrupt());
    };
    let mut slots = Vec::with_capacity(ranges.len());
    for range in &ranges {
        let Value::Array(range) = range else {
            return Err(corrupt());
        };
        let Some(Value::Array(master)) = range.get(2) else {
            return Err(corrupt());
        };
        let host = match master.first() {
            Some(Value::BulkString(host)) => String::from_utf8_lossy(host).into_owned(),
            Some(Value::SimpleString(host)) => host.clone(),
            Some(Value::Nil) => String::new(),
            _ => return Err(corrupt()),
        };
        let (first, last) = (number(range.first())?, number(range.get(1))?);
        if first > last || last >= SLOTS {
            return Err(corrupt());
        }
        slots.push((first, last, host, number(master.get(1))?));
    }
    Ok(slots)
}

/// Address of a server of the same cluster, with the same scheme.
fn beside(known: &ConnectionAddr, host: String, port: u16) -> ConnectionAddr {
    match known {
        ConnectionAddr::TcpTls {
            host: old,
            insecure,
            tls_params,
            ..
        } => ConnectionAddr::TcpTls {
            host: if host.is_empty() { old.clone() } else { host },
            port,
            insecure: *insecure,
            tls_params: tls_params.clone(),
        },
        ConnectionAddr::Tcp(old, _) if host.is_empty() => ConnectionAddr::Tcp(old.clone(), port),
        _ => ConnectionAddr::Tcp(host, port),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(first: i64, last: i64, host: &str, port: i64) -> Value {
        let master = vec![Value::BulkString(host.into()), Value::Int(port)];
        Value::Array(vec![
            Value::Int(first),
            Value::Int(last),
            Value::Array(master),
        ])
    }

    #[test]
    fn what_a_cluster_says_of_its_slots_is_read_or_refused() {
        let answer = Value::Array(vec![range(0, 99, "a", 1), range(100, 16383, "", 2)]);
        assert_eq!(
            slots(answer),
            Ok(vec![(0, 99, "a".into(), 1), (100, 16383, String::new(), 2)])
        );
        for wrong in [
            Value::Nil,
            Value::Array(vec![Value::Nil]),
            Value::Array(vec![range(5, 4, "a", 1)]),
            Value::Array(vec![range(0, 16384, "a", 1)]),
            Value::Array(vec![range(0, 1, "a", 70_000)]),
        ] {
            assert!(matches!(slots(wrong), Err(StoreError::Corrupt(_))));
        }
        let known = ConnectionAddr::Tcp("a".into(), 1);
        assert_eq!(
            beside(&known, String::new(), 2),
            ConnectionAddr::Tcp("a".into(), 2)
        );
        assert_eq!(
            beside(&known, "b".into(), 2),
            ConnectionAddr::Tcp("b".into(), 2)
        );
    }
}
