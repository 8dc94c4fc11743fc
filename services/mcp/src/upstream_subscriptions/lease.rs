//! The election of the leader among the nodes with subscriptions at a server.
//!
//! A record that all nodes share names the leader, and changes while the leader lives. A node that
//! sees it unchanged for too long becomes the leader. Clocks of different nodes are never compared.
//! Two leaders for a moment are harmless (STREAM-15.3).

use std::time::Duration;

use bytes::Bytes;
use portolan_cluster::{
    SessionKey,
    store::{Fresh, NodeId, Principal, Update, Version},
};
use tokio::time::Instant;

use crate::backends::services::Backends;

/// The interval at which nodes read the record.
///
/// With [`SILENT`] another node takes over 4 s after the leader's death, so that clients are
/// notified of a change within 5 s (REVIEW-Q14).
pub(crate) const BEAT: Duration = Duration::from_secs(1);

/// The time without a heartbeat after which the leader counts as dead.
const SILENT: Duration = Duration::from_millis(2_500);

/// The lifetime of the record, after which it is created again.
const LIFE: Duration = Duration::from_secs(24 * 3600);

/// The body of a record without a leader.
const FREE: Bytes = Bytes::from_static(b"-");

/// The record as this node last read it.
#[derive(Debug)]
pub(crate) struct Lease {
    key: SessionKey,
    principal: Principal,
    leader: Option<NodeId>,
    seen: Option<(Version, Instant)>,
    beats: u32,
}

fn read(body: &Bytes) -> Option<NodeId> {
    let node = body.get(..14)?;
    Some(NodeId(node.try_into().ok()?))
}

impl Lease {
    pub(crate) fn new(key: SessionKey) -> Self {
        Self {
            key,
            // The record is not a session's.
            principal: Principal(key.0),
            leader: None,
            seen: None,
            beats: 0,
        }
    }

    /// The leader, if it is known.
    pub(crate) fn leader(&self) -> Option<NodeId> {
        self.leader
    }

    fn mine(&mut self, me: NodeId) -> Bytes {
        self.beats = self.beats.wrapping_add(1);
        [&me.0[..], &self.beats.to_be_bytes()].concat().into()
    }

    /// Reads the record, and writes a heartbeat or takes the lease if due.
    ///
    /// While the store does not answer, nothing changes.
    pub(crate) async fn beat(&mut self, state: &Backends) {
        let me = state.node.id();
        let fresh = Fresh {
            body: FREE,
            life: LIFE,
        };
        let Ok(begun) = state.node.begin(self.key, self.principal, &fresh).await else {
            // A leader that could not write either does not count as silent.
            self.seen = None;
            return;
        };
        let leader = read(&begun.body);
        let now = Instant::now();
        let stands_still = match self.seen {
            Some((version, since)) if version == begun.version => since.elapsed() > SILENT,
            _ => {
                self.seen = Some((begun.version, now));
                false
            }
        };
        if leader.is_some_and(|leader| leader != me) && !stands_still {
            self.leader = leader;
            return;
        }
        let mine = self.mine(me);
        let updated = state
            .node
            .update(self.key, self.principal, begun.version, mine)
            .await;
        match updated {
            Ok(Update::Done(version)) => {
                self.leader = Some(me);
                self.seen = Some((version, now));
            }
            Ok(Update::Conflict { version, body }) => {
                self.leader = read(&body);
                self.seen = Some((version, now));
            }
            Ok(Update::Unknown) | Err(_) => {}
        }
    }

    /// Releases the lease, if it is this node's.
    pub(crate) async fn release(&mut self, state: &Backends) {
        if self.leader != Some(state.node.id()) {
            return;
        }
        if let Some((version, _)) = self.seen {
            // If this is lost, another node takes the lease after the silence.
            let _ = state
                .node
                .update(self.key, self.principal, version, FREE)
                .await;
        }
        self.leader = None;
    }
}
