//! Connections for commands: a few, multiplexed, and made again when they break.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::future;
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ConnectionInfo, ErrorKind, RedisError,
    RedisResult, Value, aio::MultiplexedConnection, io::tcp::socket2::SockRef,
};
use tokio::{
    net::{TcpStream, lookup_host},
    sync::{Semaphore, watch},
};
use tokio_util::task::AbortOnDropHandle;

use super::{
    keys::Keys,
    scripts::{ScriptSource, Scripts},
    turn_stream::TurnStream,
};
use crate::{
    lock,
    store::{Result, StoreError},
};

/// Deadline of a connect, including the greeting.
pub(super) const CONNECT: Duration = Duration::from_secs(1);
/// Deadline of a command's reply.
pub(super) const RESPONSE: Duration = Duration::from_secs(1);
/// Pause after a failed connect. Operations fail at once meanwhile.
const PAUSE: Duration = Duration::from_millis(100);
/// Maximum number of commands in flight on one connection (STREAM-17.1 *Slow Redis*).
const IN_FLIGHT: usize = 4096;

/// State that the connections to all servers share.
#[derive(Debug)]
pub(super) struct Common {
    pub(super) keys: Keys,
    pub(super) scripts: Scripts,
    evicting: bool,
    incarnation: watch::Sender<u64>,
}

impl Common {
    pub(super) fn new(keys: Keys, evicting: bool) -> Self {
        Self {
            keys,
            scripts: Scripts::new(),
            evicting,
            incarnation: watch::Sender::new(0),
        }
    }

    pub(super) fn incarnation(&self) -> watch::Receiver<u64> {
        self.incarnation.subscribe()
    }

    /// Raises the incarnation, so that owners check whether their streams still exist
    /// (STREAM-17.3).
    pub(super) fn writes_may_be_lost(&self) {
        self.incarnation
            .send_modify(|incarnation| *incarnation += 1);
    }
}

/// Server, with the state that every connection to it needs.
#[derive(Debug)]
pub(super) struct RedisServer {
    client: Client,
    pub(super) common: Arc<Common>,
    is_cluster: AtomicBool,
    /// Run id of the last server, and the number of servers so far.
    seen: Mutex<Option<(String, i64)>>,
}

/// Parts of a server's `INFO`.
#[derive(Debug, Default)]
struct Greeting {
    run_id: String,
    mode: String,
    version: String,
    role: String,
    maxmemory: u64,
    policy: String,
}

impl RedisServer {
    pub(super) fn new(client: Client, common: Arc<Common>) -> Self {
        Self {
            client,
            common,
            is_cluster: AtomicBool::new(false),
            seen: Mutex::default(),
        }
    }

    /// Whether the server belongs to a cluster. Known after the first connect.
    pub(super) fn is_cluster(&self) -> bool {
        self.is_cluster.load(Ordering::Relaxed)
    }

    /// Opens a connection and identifies the server before any other command (STREAM-17.3). The
    /// caller sets the deadline of a reply.
    pub(super) async fn connect(&self, config: AsyncConnectionConfig) -> Result<Connected> {
        let config = config
            .set_connection_timeout(Some(CONNECT))
            .set_pipeline_buffer_size(512);
        let work = async {
            let connected = Connected::open(&self.client, config).await;
            let mut connected = connected.map_err(|error| classify(&error))?;
            self.greet(&mut connected.connection).await?;
            Ok(connected)
        };
        tokio::time::timeout(CONNECT * 2, work)
            .await
            .unwrap_or_else(|_| Err(StoreError::Down("connecting took too long".to_owned())))
    }

    /// Identifies the server. Raises the incarnation if it differs from the last one.
    async fn greet(&self, connection: &mut MultiplexedConnection) -> Result<()> {
        let mut info = redis::cmd("INFO");
        info.arg("server").arg("replication").arg("memory");
        let answer = reply(connection, &info).await?;
        let greeting = Greeting::parse(&text_of(answer)?);
        greeting.check(self.common.evicting)?;
        let is_cluster = greeting.mode == "cluster";
        self.is_cluster.store(is_cluster, Ordering::Relaxed);
        let number = if is_cluster {
            // In a cluster, the key of the count may be on any server. The count detects a server
            // that returned after another one took its place. The map of slots shows that in a
            // cluster.
            0
        } else {
            self.count(connection, &greeting.run_id).await?
        };
        let now = Some((greeting.run_id, number));
        let mut seen = lock(&self.seen);
        if *seen != now {
            if seen.is_some() {
                tracing::warn!(number, "another server: writes may have been lost");
                self.common.writes_may_be_lost();
            }
            *seen = now;
        }
        Ok(())
    }

    /// Number of servers so far.
    async fn count(&self, connection: &mut MultiplexedConnection, run_id: &str) -> Result<i64> {
        let mut count = redis::cmd("EVAL");
        count
            .arg(self.common.scripts.inc.text)
            .arg(1)
            .arg(self.common.keys.incarnation())
            .arg(run_id);
        let answer = reply(connection, &count).await?;
        let Value::Int(number) = answer else {
            return Err(StoreError::Corrupt("inc".to_owned()));
        };
        #[expect(clippy::cast_precision_loss, reason = "a gauge")]
        metrics::gauge!("redis_incarnation").set(number as f64);
        Ok(number)
    }
}

impl Greeting {
    fn parse(info: &str) -> Self {
        let mut greeting = Self::default();
        for (name, value) in info.lines().filter_map(|line| line.trim().split_once(':')) {
            match name {
                "run_id" => value.clone_into(&mut greeting.run_id),
                "redis_mode" => value.clone_into(&mut greeting.mode),
                "redis_version" => value.clone_into(&mut greeting.version),
                "role" => value.clone_into(&mut greeting.role),
                "maxmemory" => greeting.maxmemory = value.parse().unwrap_or(0),
                "maxmemory_policy" => value.clone_into(&mut greeting.policy),
                _ => {}
            }
        }
        greeting
    }

    /// Checks whether this server meets the requirements.
    fn check(&self, evicting: bool) -> Result<()> {
        let major: u32 = self
            .version
            .split('.')
            .next()
            .and_then(|major| major.parse().ok())
            .unwrap_or(0);
        if major < 7 {
            return Err(StoreError::Refused(format!(
                "Redis {} is too old: 7.0 is needed",
                self.version
            )));
        }
        if self.maxmemory > 0 && self.policy != "noeviction" && !evicting {
            return Err(StoreError::Refused(format!(
                "maxmemory-policy is {}: sessions and streams would vanish; set it to noeviction",
                self.policy
            )));
        }
        if self.role != "master" {
            return Err(StoreError::Down(format!("the server is a {}", self.role)));
        }
        Ok(())
    }
}

/// An open connection.
#[derive(Clone)]
pub(super) struct Connected {
    pub(super) connection: MultiplexedConnection,
    /// The task that reads and writes. The client drives connections with TLS by itself.
    _driver: Option<Arc<AbortOnDropHandle<()>>>,
}

impl Connected {
    /// Connects. Without TLS, commands of one turn of a thread are written together.
    async fn open(client: &Client, config: AsyncConnectionConfig) -> RedisResult<Self> {
        let info = client.get_connection_info();
        let ConnectionAddr::Tcp(host, port) = info.addr() else {
            let connecting = client.get_multiplexed_async_connection_with_config(&config);
            return Ok(Self {
                connection: connecting.await?,
                _driver: None,
            });
        };
        let opening = async {
            let stream = TurnStream::new(tcp(info, host, *port).await?);
            MultiplexedConnection::new_with_config(info.redis_settings(), stream, config).await
        };
        let opened = tokio::time::timeout(CONNECT, opening).await;
        let (connection, driver) =
            opened.map_err(|_| std::io::Error::from(std::io::ErrorKind::TimedOut))??;
        #[expect(
            clippy::disallowed_methods,
            reason = "it ends with the last user of the connection"
        )]
        let driver = AbortOnDropHandle::new(tokio::spawn(driver));
        Ok(Self {
            connection,
            _driver: Some(Arc::new(driver)),
        })
    }
}

/// Connects to the address of the host that answers first.
async fn tcp(info: &ConnectionInfo, host: &str, port: u16) -> std::io::Result<TcpStream> {
    let addresses: Vec<_> = lookup_host((host, port)).await?.collect();
    if addresses.is_empty() {
        return Err(std::io::Error::other("the host has no address"));
    }
    let attempts = addresses
        .into_iter()
        .map(|address| Box::pin(TcpStream::connect(address)));
    let (stream, _) = future::select_ok(attempts).await?;
    let settings = info.tcp_settings();
    stream.set_nodelay(settings.nodelay())?;
    if let Some(keepalive) = settings.keepalive() {
        SockRef::from(&stream).set_tcp_keepalive(keepalive)?;
    }
    Ok(stream)
}

/// One connection for commands.
#[derive(Debug)]
pub(super) struct RedisConnection {
    server: Arc<RedisServer>,
    live: Mutex<Option<Live>>,
    /// Time and error of the last failed connect. Locked during a connect, so that a thousand
    /// callers make one attempt.
    connecting: tokio::sync::Mutex<Option<(Instant, StoreError)>>,
    permits: Semaphore,
    made: AtomicU64,
}

#[derive(Clone)]
struct Live {
    number: u64,
    connected: Connected,
}

impl std::fmt::Debug for Live {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Live({})", self.number)
    }
}

impl RedisConnection {
    pub(super) fn new(server: Arc<RedisServer>) -> Self {
        Self {
            server,
            live: Mutex::default(),
            connecting: tokio::sync::Mutex::default(),
            permits: Semaphore::new(IN_FLIGHT),
            made: AtomicU64::new(0),
        }
    }

    /// Number of commands that wait for a reply.
    pub(super) fn in_flight(&self) -> usize {
        IN_FLIGHT - self.permits.available_permits()
    }

    /// Connects if necessary.
    pub(super) async fn ready(&self) -> Result<()> {
        self.live().await.map(|_| ())
    }

    async fn live(&self) -> Result<Live> {
        if let Some(live) = lock(&self.live).clone() {
            return Ok(live);
        }
        let mut failed = self.connecting.lock().await;
        if let Some(live) = lock(&self.live).clone() {
            return Ok(live);
        }
        if let Some((at, error)) = failed.as_ref()
            && at.elapsed() < PAUSE
        {
            return Err(error.clone());
        }
        // Each command has a deadline in `try_send`, so the client needs no timer of its own.
        let config = AsyncConnectionConfig::new().set_response_timeout(None);
        // Boxed: commands on an open connection have small futures.
        match Box::pin(self.server.connect(config)).await {
            Ok(connected) => {
                let live = Live {
                    number: self.made.fetch_add(1, Ordering::Relaxed),
                    connected,
                };
                *failed = None;
                *lock(&self.live) = Some(live.clone());
                Ok(live)
            }
            Err(error) => {
                *failed = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }

    /// Runs a command in one round trip. `count` rises by one when the command is sent.
    pub(super) async fn send(&self, command: &Cmd, count: &AtomicU64) -> Result<Value> {
        self.try_send(command, count)
            .await
            .map_err(|failure| failure.error)
    }

    /// Runs a script in one round trip. If the server does not know it, a second one sends its
    /// text.
    pub(super) async fn script(
        &self,
        script: &ScriptSource,
        command: &Cmd,
        by_text: &(dyn Fn() -> Cmd + Sync),
        count: &AtomicU64,
    ) -> std::result::Result<Value, Failure> {
        match self.try_send(command, count).await {
            Err(failure) if failure.no_script => {
                tracing::info!(script = script.name, "the server forgot a script");
                Box::pin(self.try_send(&by_text(), count)).await
            }
            answer => answer,
        }
    }

    pub(super) async fn try_send(
        &self,
        command: &Cmd,
        count: &AtomicU64,
    ) -> std::result::Result<Value, Failure> {
        let Ok(_permit) = self.permits.try_acquire() else {
            // This refusal comes from the node, not from the server, so it does not open the
            // breaker.
            return Err(StoreError::Refused("too many commands under way".to_owned()).into());
        };
        let mut live = self.live().await?;
        count.fetch_add(1, Ordering::Relaxed);
        let error = match sent(&mut live.connected.connection, command).await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        if error.is_io_error() || error.is_unrecoverable_error() || retire(&error) {
            // A connection without a reply may never recover: the next command connects again.
            let mut current = lock(&self.live);
            if current
                .as_ref()
                .is_some_and(|other| other.number == live.number)
            {
                *current = None;
            }
        }
        Err(Failure {
            no_script: error.kind() == ErrorKind::Server(redis::ServerErrorKind::NoScript),
            is_misplaced: matches!(error.code(), Some("MOVED" | "ASK" | "TRYAGAIN")),
            error: classify(&error),
        })
    }
}

/// Sends a command, and waits for its reply until the deadline. The client's own timeout would
/// cover only the wait for the reply, not the wait for its queue.
async fn sent(
    connection: &mut MultiplexedConnection,
    command: &Cmd,
) -> std::result::Result<Value, RedisError> {
    match tokio::time::timeout(RESPONSE, connection.send_packed_command(command)).await {
        // An error of the server is returned as a value.
        Ok(answer) => answer.and_then(Value::extract_error),
        Err(_) => Err(std::io::Error::from(std::io::ErrorKind::TimedOut).into()),
    }
}

async fn reply(connection: &mut MultiplexedConnection, command: &Cmd) -> Result<Value> {
    sent(connection, command)
        .await
        .map_err(|error| classify(&error))
}

/// Reason why a command has no reply.
pub(super) struct Failure {
    pub(super) error: StoreError,
    no_script: bool,
    /// The slot is on another server or moves. The command was not applied.
    pub(super) is_misplaced: bool,
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self {
            error,
            no_script: false,
            is_misplaced: false,
        }
    }
}

/// Whether the server is no longer the right one, although its connection works.
fn retire(error: &RedisError) -> bool {
    matches!(error.code(), Some("READONLY" | "MASTERDOWN"))
}

/// Maps a failure to *down* or *write refused* (STREAM-17.1).
pub(super) fn classify(error: &RedisError) -> StoreError {
    let text = || {
        error
            .detail()
            .filter(|detail| !detail.is_empty())
            .map_or_else(|| error.to_string(), str::to_owned)
    };
    match error.code() {
        Some(code @ ("OOM" | "MISCONF" | "NOREPLICAS")) => {
            StoreError::Refused(format!("{code}: {}", text()))
        }
        Some(
            code @ ("LOADING" | "MASTERDOWN" | "CLUSTERDOWN" | "READONLY" | "BUSY" | "TRYAGAIN"
            | "MOVED" | "ASK" | "UNKILLABLE"),
        ) => StoreError::Down(format!("{code}: {}", text())),
        Some(_) => StoreError::Corrupt(error.to_string()),
        None => match error.kind() {
            ErrorKind::Io | ErrorKind::Client => StoreError::Down(error.to_string()),
            ErrorKind::AuthenticationFailed | ErrorKind::InvalidClientConfig => {
                StoreError::Refused(error.to_string())
            }
            ErrorKind::Parse | ErrorKind::UnexpectedReturnType => {
                StoreError::Corrupt(error.to_string())
            }
            _ => StoreError::Down(error.to_string()),
        },
    }
}

pub(super) fn text_of(value: Value) -> Result<String> {
    match value {
        Value::BulkString(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => Ok(text),
        _ => Err(StoreError::Corrupt("INFO".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(info: &str, evicting: bool) -> Result<()> {
        Greeting::parse(info).check(evicting)
    }

    #[test]
    fn a_server_that_may_throw_keys_away_is_refused_unless_told() {
        // STREAM-17.2.
        let server = |version: &str, maxmemory: u64, policy: &str, role: &str| {
            format!(
                "# Server\r\nredis_version:{version}\r\nrun_id:abc\r\nmaxmemory:{maxmemory}\r\nmaxmemory_policy:{policy}\r\nrole:{role}\r\n"
            )
        };
        let evicts = server("7.0.15", 1000, "allkeys-lru", "master");
        assert!(matches!(check(&evicts, false), Err(StoreError::Refused(_))));
        assert_eq!(check(&evicts, true), Ok(()));
        for good in [
            server("7.0.15", 1000, "noeviction", "master"),
            server("8.2.1", 0, "allkeys-lru", "master"),
        ] {
            assert_eq!(check(&good, false), Ok(()));
        }
        assert!(matches!(
            check(&server("6.2.0", 0, "noeviction", "master"), false),
            Err(StoreError::Refused(_))
        ));
        assert!(matches!(
            check(&server("7.0.15", 0, "noeviction", "slave"), false),
            Err(StoreError::Down(_))
        ));
    }
}
