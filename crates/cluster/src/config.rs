//! Settings of what nodes share.

use std::{error::Error, fmt};

use portolan_config::{Form, Value};

use crate::redis::{RedisOptions, address};

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
        /// Seconds for which a node goes on to judge access tokens when it receives no revocations
        /// from Postgres. Afterwards it answers them 503 with Retry-After until it receives them
        /// again, unless Redis shows that no other node receives any: then Postgres is away for
        /// all, and calls go on. Without redis_url they always do.
        revocation_max_staleness_secs: u64 = 60, in 15..=3_600;
    }
}

impl ClusterConfig {
    /// Address and options of Redis, if the nodes share one.
    pub fn redis(&self) -> Option<RedisOptions> {
        let url = self.redis_url.as_ref()?;
        Some(RedisOptions {
            allow_eviction: self.redis_allow_eviction,
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
