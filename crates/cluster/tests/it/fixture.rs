//! Stores to test, and the Redis server that some of them need.

pub(crate) mod cluster;
pub(crate) mod fault;
pub(crate) mod go_between;
pub(crate) mod names;
pub(crate) mod retry;
pub(crate) mod rng;
pub(crate) mod server;
pub(crate) mod standstill;

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use portolan_cluster::{
    memory::MemoryStore,
    redis::{RedisOptions, RedisStore},
    store::{Bounds, Store},
};
use portolan_model::{Clock, Timestamp};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::{
    cluster::RedisCluster,
    fault::{FaultStore, Rates},
    retry::Retry,
    server::RedisServer,
};

/// Locks a mutex and ignores poisoning.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Kind of a store.
pub(crate) enum Kind {
    Memory,
    /// Memory behind operations that are slow or fail before they arrive. The caller repeats them.
    Fault,
    Redis(RedisServer),
    /// Three masters.
    Cluster(RedisCluster),
    /// The server at this address.
    At(String),
}

/// An empty store, with the control of its time.
pub(crate) struct Ground {
    pub(crate) store: Arc<dyn Store>,
    clock: Option<Clock>,
}

impl Kind {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Fault => "fault(memory)",
            Self::Redis(_) => "redis",
            Self::Cluster(_) => "cluster",
            Self::At(_) => "elsewhere",
        }
    }

    pub(crate) async fn ground(&self, bounds: Bounds) -> Ground {
        let clock = Clock::test(Timestamp::UNIX_EPOCH + time::Duration::days(20_000));
        match self {
            Self::Memory => Ground {
                store: Arc::new(MemoryStore::new(bounds, clock.clone())),
                clock: Some(clock),
            },
            Self::Fault => {
                let memory = MemoryStore::new(bounds, clock.clone());
                let fault = FaultStore::new(Arc::new(memory), 7, TaskTracker::new());
                fault.set_rates(Rates {
                    before: 250,
                    delay: Duration::from_micros(200),
                    ..Rates::default()
                });
                Ground {
                    store: Arc::new(Retry(Arc::new(fault))),
                    clock: Some(clock),
                }
            }
            Self::Redis(server) => Ground {
                store: Arc::new(connect(server, bounds).await),
                clock: None,
            },
            Self::At(url) => Ground {
                store: Arc::new(connect_with(options_at(url.clone(), bounds)).await),
                clock: None,
            },
            Self::Cluster(cluster) => Ground {
                store: Arc::new(connect_with(options_at(cluster.url(), bounds)).await),
                clock: None,
            },
        }
    }
}

impl Ground {
    /// Lets time pass: moves a test clock, or waits for a real server.
    pub(crate) async fn pass(&self, time: Duration) {
        match &self.clock {
            Some(clock) => clock.advance(time.try_into().expect("short")),
            None => tokio::time::sleep(time).await,
        }
    }
}

/// Options with their own prefix.
pub(crate) fn options(server: &RedisServer, bounds: Bounds) -> RedisOptions {
    options_at(server.url(), bounds)
}

pub(crate) fn options_at(url: String, bounds: Bounds) -> RedisOptions {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    RedisOptions {
        prefix: format!("t{}", NEXT.fetch_add(1, Ordering::Relaxed)),
        bounds,
        ..RedisOptions::new(url)
    }
}

/// Connects to an empty part of the server.
pub(crate) async fn connect(server: &RedisServer, bounds: Bounds) -> RedisStore {
    connect_with(options(server, bounds)).await
}

pub(crate) async fn connect_with(options: RedisOptions) -> RedisStore {
    RedisStore::connect(options, &TaskTracker::new(), CancellationToken::new())
        .await
        .expect("redis-server answers")
}
