//! Address and options of Redis.

use std::fmt;

use crate::store::Bounds;

/// Prefix of every key and channel of nodes in service. The access rules of a Redis name it.
const PREFIX: &str = "pl1";
/// Processors of a node for each of its connections to a Redis. Fewer connections send and receive
/// more commands at a time.
const PROCESSORS: usize = 4;

/// Address and options of Redis.
#[derive(Clone)]
pub struct RedisOptions {
    /// `redis://…` or `rediss://…`, with user, password and database.
    pub url: String,
    /// Prefix of every key and channel. Tests of one Redis have different ones.
    pub prefix: String,
    /// Number of connections for commands.
    pub connections: usize,
    /// Accept a server that may evict keys when its memory is full.
    pub allow_eviction: bool,
    /// Bounds of logs and records.
    pub bounds: Bounds,
}

impl RedisOptions {
    /// Default options for a server.
    pub fn new(url: impl Into<String>) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            url: url.into(),
            prefix: PREFIX.to_owned(),
            connections: processors.div_ceil(PROCESSORS),
            allow_eviction: false,
            bounds: Bounds::default(),
        }
    }
}

/// Omits the address, which may contain a password.
impl fmt::Debug for RedisOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisOptions")
            .field("prefix", &self.prefix)
            .field("connections", &self.connections)
            .field("allow_eviction", &self.allow_eviction)
            .field("bounds", &self.bounds)
            .finish_non_exhaustive()
    }
}
