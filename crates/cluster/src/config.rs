//! Settings of what nodes share.

use std::{error::Error, fmt, time::Duration};

use portolan_config::{Form, Value};

use crate::{
    redis::{RedisOptions, address},
    store::{Bounds, SESSION_IDLE_SECS},
};

portolan_config::config! {
    /// Redis
    pub struct ClusterConfig {
        /// Redis (7.0 or newer, or Valkey 7.2) in which nodes share sessions, streams and limits:
        /// `redis://user:password@host:6379/0`, or rediss:// with TLS. Of a Redis Cluster: one of
        /// its masters, or several with commas between. Without it a process keeps them in its own
        /// memory, and only one process may serve MCP endpoints.
        redis_url: Option<RedisUrl> = None;
        /// Whether events of streams are sealed before they are written to Redis, each bound to its
        /// session and stream. The key is derived from master_secret.
        redis_seal: bool = true;
        /// Whether to start although Redis throws keys away when its memory is full
        /// (maxmemory-policy other than noeviction). Sessions and streams then vanish without
        /// notice.
        redis_allow_eviction: bool = false;
        /// Seconds after its last request for which the record of a session is kept. A later
        /// request makes it again from the session's id, and loses only what the client set in the
        /// session.
        session_idle_secs: u64 = SESSION_IDLE_SECS, in 3_600..=604_800;
        /// Sessions of one caller whose records are kept. Beyond it, records that were idle for ten
        /// minutes are removed. A tenth applies while the memory of Redis is nearly full.
        sessions_per_caller: usize = 200, in 20..=10_000;
        /// Seconds for which calls of known sessions go on while Redis does not answer. A session
        /// that another node ended in that time is served meanwhile. 0: such calls get 503 at once.
        session_grace_secs: u64 = 30, in 0..=60;
        /// Seconds for which a node goes on to judge access tokens when it receives no revocations
        /// from Postgres. Afterwards it answers them 503 with Retry-After until it receives them
        /// again, unless Redis shows that no other node receives any: then Postgres is away for
        /// all, and calls go on. Without redis_url they always do.
        revocation_max_staleness_secs: u64 = 60, in 15..=3_600;
    }
}

impl ClusterConfig {
    /// Bounds of the store that nodes share.
    pub fn bounds(&self) -> Bounds {
        Bounds::new(Duration::from_secs(self.session_idle_secs))
    }

    /// Address and options of Redis, if the nodes share one.
    pub fn redis(&self) -> Option<RedisOptions> {
        let url = self.redis_url.as_ref()?;
        Some(RedisOptions {
            allow_eviction: self.redis_allow_eviction,
            bounds: self.bounds(),
            ..RedisOptions::new(url.0.clone())
        })
    }
}

/// Addresses of Redis, which may hold a password.
#[derive(Clone)]
pub struct RedisUrl(String);

impl fmt::Debug for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

impl Value for RedisUrl {
    const FORM: Form = Form::Text(
        "redis://host:6379/0, or rediss:// for TLS; user and password stand before the host (user:password@)",
    );
    const SECRET: bool = true;
    fn parse(text: &str) -> Result<Self, Box<dyn Error + Send + Sync>> {
        for part in text.split(',') {
            address(part).map_err(|_| "is not an address of Redis")?;
        }
        Ok(Self(text.to_owned()))
    }
    fn text(&self) -> String {
        String::new()
    }
}
