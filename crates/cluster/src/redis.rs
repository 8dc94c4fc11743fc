//! The store in Redis: each operation is one script and one round trip.
//!
//! Each server has a few multiplexed connections for commands and one for messages. Their number
//! does not grow with sessions or streams (STREAM-0.6). Keys of a session share a hash tag,
//! and every script names keys of one slot only. The servers may thus be a single one, a primary
//! with replicas behind one address, or the masters of a Redis Cluster.

mod answers;
mod connection;
mod keys;
mod messages;
mod operations;
mod options;
mod scripts;
mod server_metrics;
mod shards;
mod turn_stream;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use redis::{
    Cmd, ConnectionInfo, IntoConnectionInfo as _, ProtocolVersion, Value,
    io::tcp::{TcpSettings, socket2::TcpKeepalive},
};
use tokio::sync::mpsc;
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};

pub use self::options::RedisOptions;
use self::{
    answers::{ScriptReply, int},
    connection::Common,
    keys::{KeySlot, Keys},
    messages::{Wish, subscribe},
    scripts::{ScriptSource, Scripts},
    shards::{Job, Shards},
};
use crate::{
    store::{Bounds, CLOSED_FOR_IF_FULL, NEARLY_FULL, Result, StoreError},
    subscribers::Subscribers,
};

/// Capacity for the arguments of most scripts, so that a command is written into one buffer.
const USUAL_ARGUMENTS: usize = 16;
/// Capacity for the text of these arguments, in bytes.
const USUAL_BYTES: usize = 384;
/// Maximum time for which a subscription waits for the subscriber connection.
const SUBSCRIBE: Duration = Duration::from_secs(2);

/// The store in Redis.
#[derive(Debug)]
pub struct RedisStore {
    common: Arc<Common>,
    shards: Arc<Shards>,
    bounds: Bounds,
    subscribers: Arc<Subscribers>,
    wishes: mpsc::Sender<Wish>,
    commands: AtomicU64,
    /// Ends the tasks that read the memory of the servers and the slots of a cluster.
    _following: DropGuard,
}

impl RedisStore {
    /// Connects, checks the servers (version, no eviction), and loads the scripts.
    ///
    /// Tasks on `tracker` subscribe to messages, read the servers' memory, and follow the slots of
    /// a cluster. They run until `stop`, or until the store is dropped.
    pub async fn connect(
        options: RedisOptions,
        tracker: &TaskTracker,
        stop: CancellationToken,
    ) -> Result<Self> {
        let seeds = options.url.split(',').map(address);
        let common = Arc::new(Common::new(
            Keys::new(&options.prefix),
            options.allow_eviction,
        ));
        let shards = Shards::connect(
            Arc::clone(&common),
            seeds.collect::<Result<_>>()?,
            options.connections,
        );
        let shards = Arc::new(shards.await?);
        let subscribers = Arc::new(Subscribers::default());
        let (wishes, wished) = mpsc::channel(64);
        let following = stop.child_token();
        tracker.spawn(subscribe(
            Arc::clone(&shards),
            Arc::clone(&subscribers),
            wished,
            stop,
        ));
        tracker.spawn(shards::measure(Arc::clone(&shards), following.clone()));
        if shards.is_cluster() {
            tracker.spawn(shards::follow(Arc::clone(&shards), following.clone()));
        }
        for shard in shards.all() {
            for script in common.scripts.all() {
                let mut load = redis::cmd("SCRIPT");
                load.arg("LOAD").arg(script.text);
                shard.links[0].send(&load, &AtomicU64::new(0)).await?;
            }
        }
        Ok(Self {
            common,
            shards,
            bounds: options.bounds,
            subscribers,
            wishes,
            commands: AtomicU64::new(0),
            _following: following.drop_guard(),
        })
    }

    /// Number of commands sent for operations so far; each was one round trip (STREAM-5).
    pub fn redis_commands(&self) -> u64 {
        self.commands.load(Ordering::Relaxed)
    }

    /// Reads the memory of the servers, which happens at intervals by itself, and returns the used
    /// share of the fullest one.
    pub async fn measure_memory(&self) -> Result<Option<f64>> {
        self.shards.measure_memory().await
    }

    /// Time for which a log that is closed now is kept.
    fn closed_for(&self) -> Duration {
        if self
            .shards
            .used_memory()
            .is_some_and(|used| used >= NEARLY_FULL)
        {
            CLOSED_FOR_IF_FULL.min(self.bounds.closed_for)
        } else {
            self.bounds.closed_for
        }
    }

    fn keys(&self) -> &Keys {
        &self.common.keys
    }

    fn scripts(&self) -> &Scripts {
        &self.common.scripts
    }

    /// Sends a plain command.
    async fn send(&self, place: impl Into<KeySlot>, command: &Cmd) -> Result<Value> {
        self.shards
            .run(place.into(), Job::Command(command), &self.commands)
            .await
    }

    /// Runs a script. `fill` writes the number of keys, the keys and the arguments.
    async fn run(
        &self,
        place: impl Into<KeySlot>,
        script: &ScriptSource,
        fill: impl Fn(&mut Cmd) + Send + Sync,
    ) -> Result<Value> {
        let mut by_name = Cmd::with_capacity(USUAL_ARGUMENTS, USUAL_BYTES);
        by_name.arg("EVALSHA").arg(&script.sha1);
        fill(&mut by_name);
        let by_text = || {
            let mut by_text = redis::cmd("EVAL");
            by_text.arg(script.text);
            fill(&mut by_text);
            by_text
        };
        let job = Job::Script {
            script,
            by_name: &by_name,
            by_text: &by_text,
        };
        self.shards.run(place.into(), job, &self.commands).await
    }

    async fn run_list(
        &self,
        place: impl Into<KeySlot>,
        script: &ScriptSource,
        fill: impl Fn(&mut Cmd) + Send + Sync,
    ) -> Result<ScriptReply> {
        ScriptReply::list(script.name, self.run(place, script, fill).await?)
    }

    async fn run_int(
        &self,
        place: impl Into<KeySlot>,
        script: &ScriptSource,
        fill: impl Fn(&mut Cmd) + Send + Sync,
    ) -> Result<i64> {
        int(script.name, &self.run(place, script, fill).await?)
    }
}

/// Parses the address of a server.
pub(crate) fn address(url: &str) -> Result<ConnectionInfo> {
    let info = url.trim().into_connection_info().map_err(|error| {
        StoreError::Refused(format!("the address of Redis: {}", error.category()))
    })?;
    let settings = info
        .redis_settings()
        .clone()
        .set_protocol(ProtocolVersion::RESP3);
    let tcp = TcpSettings::default()
        .set_nodelay(true)
        .set_keepalive(TcpKeepalive::new().with_time(Duration::from_secs(30)));
    Ok(info.set_redis_settings(settings).set_tcp_settings(tcp))
}
