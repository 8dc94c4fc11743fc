//! The sessions of all nodes, seen by a process that may be no node.

use std::{sync::Arc, time::Duration};

use portolan_cluster::{SessionKey, enquiry::Enquiry, store::Store};
use portolan_keys::{Keys, random};
use portolan_model::{
    Clock,
    id::TenantId,
    live_session::{FromNodes, LiveSession, SessionMoment, joined},
};

use crate::live_sessions::enquiry::{PLACE, SessionEnquiry, SessionReply, Wanted, open, seal};

/// How long a person waits for a node that does not reply.
const PATIENCE: Duration = Duration::from_millis(1_500);

/// Asks the nodes about sessions. Cheap to clone.
#[derive(Debug, Clone)]
pub struct SessionDirectory {
    enquiry: Enquiry,
    keys: Keys,
    clock: Clock,
}

impl SessionDirectory {
    /// Asks the nodes that share this store and the master secret of `keys`.
    pub fn new(store: Arc<dyn Store>, keys: Keys, clock: Clock) -> Self {
        Self {
            enquiry: Enquiry::new(store),
            keys,
            clock,
        }
    }

    /// The last used sessions of a tenant, the last one first. `None`: the nodes cannot be asked.
    pub async fn list(&self, tenant: TenantId) -> Option<FromNodes<Vec<LiveSession>>> {
        let FromNodes { found, silent } = self.ask(tenant, Wanted::List).await?;
        let found = joined(found.into_iter().flat_map(|reply| reply.sessions));
        Some(FromNodes { found, silent })
    }

    /// One session of a tenant, also beyond those of the list. `None` inside: no node knows it, or
    /// it has ended.
    pub async fn one(&self, tenant: TenantId, id: &str) -> Option<FromNodes<Option<LiveSession>>> {
        let FromNodes { found, silent } = self.ask(tenant, Wanted::One(id.to_owned())).await?;
        let found = joined(found.into_iter().flat_map(|reply| reply.sessions));
        let found = found.into_iter().find(|session| session.id == id);
        Some(FromNodes { found, silent })
    }

    /// The moments of a session, the oldest first.
    pub async fn moments(
        &self,
        tenant: TenantId,
        id: &str,
    ) -> Option<FromNodes<Vec<SessionMoment>>> {
        let wanted = Wanted::Moments(id.to_owned());
        let FromNodes { found, silent } = self.ask(tenant, wanted).await?;
        let mut found: Vec<SessionMoment> =
            found.into_iter().flat_map(|reply| reply.moments).collect();
        found.sort_by_key(|moment| moment.at);
        Some(FromNodes { found, silent })
    }

    /// Ends a session on every node. False: no node knows it.
    pub async fn end(&self, tenant: TenantId, id: &str) -> Option<FromNodes<bool>> {
        let FromNodes { found, silent } = self.ask(tenant, Wanted::End(id.to_owned())).await?;
        let found = found.iter().any(|reply| reply.ended);
        Some(FromNodes { found, silent })
    }

    async fn ask(&self, tenant: TenantId, wanted: Wanted) -> Option<FromNodes<Vec<SessionReply>>> {
        let reply_to = random::bytes::<16>().ok()?;
        let now = self.clock.now();
        let enquiry = SessionEnquiry {
            tenant,
            reply_to,
            at: now.unix_timestamp(),
            wanted,
        };
        let reply_to = SessionKey(reply_to);
        let body = seal(&self.keys, PLACE, &enquiry)?;
        let replies = self.enquiry.ask(PLACE, reply_to, body, PATIENCE).await;
        let replies = replies
            .map_err(|error| tracing::debug!(%error, "the nodes cannot be asked for sessions"))
            .ok()?;
        let found: Vec<SessionReply> = replies
            .bodies
            .iter()
            .filter_map(|body| open(&self.keys, reply_to, body, self.clock.now()))
            .collect();
        let silent = replies.asked.saturating_sub(found.len());
        Some(FromNodes { found, silent })
    }
}
