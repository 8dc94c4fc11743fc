//! Sessions of clients at the nodes, for the console (PLAY-8, PLAY-9). The process that knows both
//! says how to ask.

use std::{
    fmt,
    pin::Pin,
    sync::{Arc, OnceLock},
};

use portolan_model::{
    id::TenantId,
    live_session::{FromNodes, LiveSession, SessionMoment},
};

/// A reply that is awaited; `None`: the nodes cannot be asked.
pub type Asking<T> = Pin<Box<dyn Future<Output = Option<FromNodes<T>>> + Send>>;

/// Asks the nodes about the sessions of a tenant.
pub trait AskNodes: fmt::Debug + Send + Sync {
    /// The last used sessions, the last one first.
    fn list(&self, tenant: TenantId) -> Asking<Vec<LiveSession>>;
    /// One session, also beyond those of the list; `None` inside if no node knows it.
    fn one(&self, tenant: TenantId, id: &str) -> Asking<Option<LiveSession>>;
    /// What happened in one, the oldest first.
    fn moments(&self, tenant: TenantId, id: &str) -> Asking<Vec<SessionMoment>>;
    /// Ends one on every node; false if no node knows it.
    fn end(&self, tenant: TenantId, id: &str) -> Asking<bool>;
}

/// How to ask, once that is known. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct LiveSessions(Arc<OnceLock<Box<dyn AskNodes>>>);

impl LiveSessions {
    /// Says how to ask. The first word counts.
    pub fn set(&self, ask: Box<dyn AskNodes>) {
        let _ = self.0.set(ask);
    }

    /// The way to the nodes; `None` while they are not connected.
    pub fn get(&self) -> Option<&dyn AskNodes> {
        self.0.get().map(AsRef::as_ref)
    }
}
