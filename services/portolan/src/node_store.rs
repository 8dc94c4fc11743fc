//! Where the nodes keep what they share: Redis, or the memory of the only process.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, Result};
use portolan_cluster::{
    memory::MemoryStore,
    redis::{RedisOptions, RedisStore},
    store::{NodeId, Store, StoreError},
};
use portolan_model::Clock;
use portolan_net::health::Check;
use tokio::time::Instant;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    lifecycle::Lifecycle,
    settings::{Role, Settings},
};

/// Between two rounds that free what is over.
const PURGE: Duration = Duration::from_secs(30);
/// A node that starts waits so long for a Redis that starts too.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(500);

/// The opened store.
#[derive(Debug)]
pub(crate) struct NodeStore {
    pub(crate) store: Arc<dyn Store>,
    /// Does it leave this process, so that other nodes see it?
    pub(crate) is_redis: bool,
}

/// Opens what the settings name.
pub(crate) async fn open(
    settings: &Settings,
    role: Role,
    clock: &Clock,
    life: &Lifecycle,
) -> Result<NodeStore> {
    let Some(options) = settings.cluster.redis() else {
        if role == Role::Mcp {
            tracing::warn!(
                "redis_url is not set: sessions, streams and limits stay in the memory of this process. With a second process that \
                 serves MCP endpoints, clients would lose their sessions and limits would not hold: set redis_url, or run only one"
            );
        } else {
            tracing::info!(
                "redis_url is not set: what nodes share stays in this process, so run only one"
            );
        }
        let store = MemoryStore::new(settings.cluster.bounds(), clock.clone());
        life.tasks.spawn(purge(store.clone(), life.drained.clone()));
        return Ok(NodeStore {
            store: Arc::new(store),
            is_redis: false,
        });
    };
    let store = connect(options, &life.tasks, &life.drained)
        .await
        .map_err(|error| anyhow::anyhow!(explain(&error)))
        .context("cannot use Redis (redis_url)")?;
    Ok(NodeStore {
        store: Arc::new(store),
        is_redis: true,
    })
}

/// The same for a process that only looks on: waits for Redis as long as it takes, in the
/// background. `None`: there is no Redis, or it cannot be used, or the process stops first.
pub(crate) fn onlooker(
    settings: &Settings,
    life: &Lifecycle,
) -> impl Future<Output = Option<Arc<dyn Store>>> + Send + use<> {
    let options = settings.cluster.redis();
    let (tasks, stop) = (life.tasks.clone(), life.drained.clone());
    async move {
        let options = options?;
        loop {
            let connecting = connect(options.clone(), &tasks, &stop);
            let connected = tokio::select! {
                connected = connecting => connected,
                () = stop.cancelled() => return None,
            };
            match connected {
                Ok(store) => {
                    let store: Arc<dyn Store> = Arc::new(store);
                    return Some(store);
                }
                Err(StoreError::Down(_)) => {}
                Err(error) => {
                    tracing::warn!("the console cannot look at limits: {}", explain(&error));
                    return None;
                }
            }
        }
    }
}

/// A Redis that does not answer yet is waited for: after a power cut everything starts at once. One
/// that refuses is not.
async fn connect(
    options: RedisOptions,
    tasks: &TaskTracker,
    stop: &CancellationToken,
) -> Result<RedisStore, StoreError> {
    let end = Instant::now() + PATIENCE;
    let mut has_told = false;
    loop {
        match RedisStore::connect(options.clone(), tasks, stop.clone()).await {
            Err(StoreError::Down(fault)) if Instant::now() < end => {
                if !has_told {
                    tracing::warn!(fault, "waiting for Redis");
                    has_told = true;
                }
                tokio::time::sleep(PAUSE).await;
            }
            outcome => return outcome,
        }
    }
}

async fn purge(store: MemoryStore, stop: CancellationToken) {
    let mut ticks = tokio::time::interval(PURGE);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = ticks.tick() => store.purge(),
        }
    }
}

/// Whether the store answers and takes writes, for the readiness page: a node leaves that is no
/// member.
pub(crate) fn check(store: Arc<dyn Store>) -> Check {
    /// Never the name of a real one, which is random.
    const PROBE: NodeId = NodeId(*b"nprobeprobepro");
    Arc::new(move || {
        let store = Arc::clone(&store);
        Box::pin(async move {
            match store.heartbeat(PROBE, Duration::ZERO).await {
                Ok(_) => Ok(()),
                Err(error) => Err(error.to_string()),
            }
        })
    })
}

/// Tries a node's first steps: connect, authenticate, load the scripts, receive from other nodes.
/// `None` if there is no Redis.
pub(crate) async fn examine(settings: &Settings) -> Option<Result<(), String>> {
    /// Never the name of a real one, which is random.
    const DOCTOR: NodeId = NodeId(*b"ndoctordoctord");
    let options = settings.cluster.redis()?;
    let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
    let _stop_at_the_end = stop.clone().drop_guard();
    let outcome = async {
        let store = RedisStore::connect(options, &tasks, stop).await?;
        store.subscribe(DOCTOR).await.map(drop)
    };
    Some(outcome.await.map_err(|error| explain(&error)))
}

/// Describes the fault and its remedy.
fn explain(error: &StoreError) -> String {
    let (StoreError::Down(fault) | StoreError::Refused(fault) | StoreError::Corrupt(fault)) = error;
    let advice = match error {
        StoreError::Refused(_) if fault.contains("maxmemory-policy") => {
            "run `config set maxmemory-policy noeviction` and write it to Redis' own configuration; with redis_allow_eviction = true \
             the service starts all the same"
        }
        StoreError::Refused(_) if fault.contains("too old") => {
            "upgrade it, or use Valkey 7.2 or newer"
        }
        StoreError::Refused(_) if fault.contains("no cluster") => {
            "name one address, or masters of one Redis Cluster with commas between them"
        }
        StoreError::Refused(_) => "check user and password in redis_url, and the server's log",
        StoreError::Down(_) if fault.contains("is a slave") => "redis_url must name the primary",
        StoreError::Down(_) if fault.contains("certificate") => {
            "the server's certificate must be from a public authority and for the host in redis_url"
        }
        StoreError::Down(_) => {
            "is it running, and do host, port and redis:// or rediss:// (TLS) in redis_url agree with it?"
        }
        StoreError::Corrupt(_) => {
            "is it Redis, and may its user run what docs/operating.md lists under Redis?"
        }
    };
    format!("{fault}: {advice}")
}
