//! Sessions: one store operation per request, a cache of bodies, and a grace while the store is
//! down (STREAM-17.1).

pub(super) mod operations;

use std::sync::{
    Arc,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

use bytes::Bytes;
use quick_cache::sync::Cache;
use tokio::time::Instant;

use super::settings::{NodeSettings, VALIDATED_WITHIN};
use crate::store::{Principal, SessionKey, Version};

/// Session of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionState {
    /// Version of the record; pass it to `update` as `expect`.
    pub version: Version,
    /// Body of the record.
    pub body: Bytes,
    /// The record was made again from the session's id. All other data of the old body is lost.
    pub rebuilt: bool,
}

/// Reason why a request has no session.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// The session was ended, or belongs to another principal: 404.
    #[error("there is no such session")]
    Unknown,
    /// The store does not reply, and the session was not checked recently enough to continue
    /// without it: 503.
    #[error("the store of sessions does not answer")]
    Unavailable,
}

/// The store does not reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the store does not answer")]
pub struct Unavailable;

#[derive(Debug)]
struct Cached {
    principal: Principal,
    version: Version,
    body: Bytes,
    /// Time of the last check, in milliseconds since the node's start.
    validated: AtomicU64,
}

/// Cache of the sessions that this node knows.
#[derive(Debug)]
pub(super) struct KnownSessions {
    cache: Cache<SessionKey, Arc<Cached>>,
    started: Instant,
    waiting: AtomicUsize,
}

impl KnownSessions {
    pub(super) fn new(settings: &NodeSettings) -> Self {
        Self {
            cache: Cache::new(settings.sessions_cached),
            started: Instant::now(),
            waiting: AtomicUsize::new(0),
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn keep(&self, session: SessionKey, principal: Principal, version: Version, body: Bytes) {
        let validated = AtomicU64::new(self.now());
        self.cache.insert(
            session,
            Arc::new(Cached {
                principal,
                version,
                body,
                validated,
            }),
        );
    }

    pub(super) fn forget(&self, session: SessionKey) {
        self.cache.remove(&session);
    }

    /// Removes idle sessions from the cache. Their last check is too old for the grace of an
    /// outage. The next request reads the body with the round trip that it makes anyway.
    pub(super) fn forget_idle(&self) {
        let age = u64::try_from(VALIDATED_WITHIN.as_millis()).unwrap_or(u64::MAX);
        let now = self.now();
        self.cache
            .retain(|_, known| now.saturating_sub(known.validated.load(Ordering::Relaxed)) <= age);
    }
}

/// Permit of a request that waits for the store.
pub(super) struct WaitingPermit<'a>(&'a AtomicUsize);

impl<'a> WaitingPermit<'a> {
    /// Takes a permit; `None` if `most` requests already wait.
    pub(super) fn take(waiting: &'a AtomicUsize, most: usize) -> Option<Self> {
        let permit = Self(waiting);
        (waiting.fetch_add(1, Ordering::AcqRel) < most).then_some(permit)
    }
}

impl Drop for WaitingPermit<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
