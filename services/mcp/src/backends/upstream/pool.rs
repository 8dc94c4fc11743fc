//! The state of upstream servers on a node: eras, kept conversations, tickets and sessions.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use portolan_cluster::{SessionKey, store::Principal};
use portolan_model::{Digest, Timestamp, id::UserId};
use portolan_protocol::logging::Level;
use portolan_upstream::{Connection, Ticket};
use quick_cache::sync::Cache;
use tokio::time::Instant;
use uuid::Uuid;

use crate::{
    backends::upstream::conversation::Spoken, call::Call, catalog::upstream::UpstreamSource,
};

/// Most servers in the cache of a node. A removed one is probed again.
pub(crate) const SERVERS: usize = 10_000;

/// Most opened tickets in the cache of a node.
pub(crate) const OPENED: usize = 4_096;

/// The eras that a server supports.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Eras {
    /// The newest one that both sides support.
    pub(crate) newest: Spoken,
    /// Whether a server of 2026-07-28 supports sessions too.
    pub(crate) sessions: Sessions,
}

/// Whether a server of 2026-07-28 supports sessions too.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Sessions {
    /// No client of the session era has called.
    Unasked,
    /// The answer was unclear (MCP-X-4): the server is asked again at this time.
    Unsaid(Instant),
    /// It supports them.
    Held,
    /// It does not support them.
    Absent,
}

/// The owner of a conversation that a node keeps itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Owner {
    pub(crate) speaker: Speaking,
    /// The account at the server that opened it. No other account continues it.
    pub(crate) account: Option<Uuid>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Speaking {
    Session([u8; 16]),
    /// A principal with its capabilities (MCP-X-10).
    Principal(Digest, u8),
}

impl Speaking {
    pub(crate) fn of(call: &Call) -> Self {
        match &call.session {
            Some(session) => Self::Session(session.id.key.0),
            None => {
                let capabilities = &call.client.capabilities;
                Self::Principal(call.caller.principal, capabilities.bits())
            }
        }
    }
}

#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) connection: Connection,
    pub(crate) used: Instant,
    /// The log level that was sent to the server (MCP-X-74).
    pub(crate) level: Option<Level>,
    /// The roots that were sent to the server (MCP-X-3I).
    pub(crate) roots: Option<Digest>,
}

/// The state of a server on this node.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// The lock allows one probe at a time.
    pub(crate) eras: tokio::sync::Mutex<Option<Eras>>,
    pub(crate) kept: Mutex<HashMap<Owner, Kept>>,
    /// Sessions that get no new calls, with the time of their last use.
    pub(crate) left: Mutex<Vec<(Connection, Instant)>>,
}

/// The state of all servers on this node.
#[derive(Debug)]
pub(crate) struct Upstreams {
    pub(crate) known: Cache<String, Arc<Known>>,
    /// Recently opened tickets. A frequent caller reads the record only from time to time.
    pub(crate) opened: Cache<[u8; 16], OpenedTicket>,
    /// The upstream sessions of client sessions.
    pub(crate) left: OrphanedSessions,
}

impl Default for Upstreams {
    fn default() -> Self {
        Self {
            known: Cache::new(SERVERS),
            opened: Cache::new(OPENED),
            left: OrphanedSessions::default(),
        }
    }
}

/// A ticket in the cache of a node.
#[derive(Debug, Clone)]
pub(crate) struct OpenedTicket {
    pub(crate) sealed: Bytes,
    pub(crate) ticket: Ticket,
    /// The time of the last read of its record.
    pub(crate) looked: Instant,
}

/// The remembered sessions of a node.
#[derive(Debug, Default)]
pub(crate) struct OrphanedSessions(pub(crate) Mutex<HashMap<SessionKey, OrphanedSession>>);

#[derive(Debug, Clone)]
pub(crate) struct OrphanedSession {
    pub(crate) source: Arc<UpstreamSource>,
    pub(crate) principal: Principal,
    pub(crate) person: Option<UserId>,
    /// The account that began it.
    pub(crate) account: Option<Uuid>,
    pub(crate) ticket: Ticket,
    pub(crate) due: Timestamp,
}
