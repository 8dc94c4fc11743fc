//! Which node watches: one of those whose clients want to hear. A record that all nodes share names it, and moves while it lives;
//! who sees it stand still for too long takes its place. Clocks of different nodes are never compared. That two watch for a moment is
//! harmless (`streams.md` §15.3).

use std::time::Duration;

use bytes::Bytes;
use portolan_cluster::{
    SessionKey,
    store::{Fresh, NodeId, Principal, Update, Version},
};
use tokio::time::Instant;

use crate::state::McpState;

/// Between two looks at the record. With [`SILENT`] it lets another node listen 4 s after the death of the one that did, so that
/// clients hear of a change within 5 s.
pub(super) const BEAT: Duration = Duration::from_secs(1);
/// After so long without a beat a node is thought to be gone.
const SILENT: Duration = Duration::from_millis(2_500);
/// The record is made again after this.
const LIFE: Duration = Duration::from_secs(24 * 3600);

/// The body of a record that names nobody.
const FREE: Bytes = Bytes::from_static(b"-");

/// The record, as this node saw it last.
#[derive(Debug)]
pub(super) struct Lease {
    key: SessionKey,
    principal: Principal,
    holder: Option<NodeId>,
    seen: Option<(Version, Instant)>,
    beats: u32,
}

fn read(body: &Bytes) -> Option<NodeId> {
    let node = body.get(..14)?;
    Some(NodeId(node.try_into().ok()?))
}

impl Lease {
    pub(super) fn new(key: SessionKey) -> Self {
        Self {
            key,
            // It is nobody's session.
            principal: Principal(key.0),
            holder: None,
            seen: None,
            beats: 0,
        }
    }

    /// Who watches, as far as is known.
    pub(super) fn holder(&self) -> Option<NodeId> {
        self.holder
    }

    fn mine(&mut self, me: NodeId) -> Bytes {
        self.beats = self.beats.wrapping_add(1);
        [&me.0[..], &self.beats.to_be_bytes()].concat().into()
    }

    /// Looks at the record, and moves it on or takes it where that is due. While the store does not answer everything stays as it is.
    pub(super) async fn beat(&mut self, state: &McpState) {
        let me = state.node.id();
        let fresh = Fresh {
            body: FREE,
            life: LIFE,
        };
        let Ok(begun) = state.node.begin(self.key, self.principal, &fresh).await else {
            // A node that could not write either is not silent for that.
            self.seen = None;
            return;
        };
        let holder = read(&begun.body);
        let now = Instant::now();
        let stands_still = match self.seen {
            Some((version, since)) if version == begun.version => since.elapsed() > SILENT,
            _ => {
                self.seen = Some((begun.version, now));
                false
            }
        };
        if holder.is_some_and(|holder| holder != me) && !stands_still {
            self.holder = holder;
            return;
        }
        let mine = self.mine(me);
        let updated = state
            .node
            .update(self.key, self.principal, begun.version, mine)
            .await;
        match updated {
            Ok(Update::Done(version)) => {
                self.holder = Some(me);
                self.seen = Some((version, now));
            }
            Ok(Update::Conflict { version, body }) => {
                self.holder = read(&body);
                self.seen = Some((version, now));
            }
            Ok(Update::Unknown) | Err(_) => {}
        }
    }

    /// Gives the record back, if it is this node's.
    pub(super) async fn release(&mut self, state: &McpState) {
        if self.holder != Some(state.node.id()) {
            return;
        }
        if let Some((version, _)) = self.seen {
            // If that is lost, somebody takes it when it has stood still for long enough.
            let _ = state
                .node
                .update(self.key, self.principal, version, FREE)
                .await;
        }
        self.holder = None;
    }
}
