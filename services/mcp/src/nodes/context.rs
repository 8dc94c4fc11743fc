//! What every service of this node needs: configuration, cluster, storage, metrics and clock.
//!
//! The services of the layers above hold a clone, and reach its fields by `Deref`.

use std::{ops::Deref, sync::Arc};

use portolan_cluster::{Revocations, node::Node};
use portolan_keys::Keys;
use portolan_model::{Clock, resource::Site};
use portolan_net::egress::Egress;
use portolan_storage::Store;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    call_log::CallLog,
    config::McpConfig,
    instruments::Instruments,
    limits::{AdmissionControl, session_quota::SessionQuota, suspended_calls::SuspendedCalls},
    live_sessions::board::SessionBoard,
    nodes::{awaited::Awaited, events::Events, outgoing::Outgoing},
    shutdown::Shutdown,
};

/// The node as its services see it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct NodeContext(Arc<NodeParts>);

/// The contents of [`NodeContext`].
#[derive(Debug)]
pub struct NodeParts {
    pub(crate) site: Site,
    pub(crate) store: Store,
    pub(crate) keys: Keys,
    pub(crate) revocations: Revocations,
    pub(crate) egress: Egress,
    /// The node in the cluster: records, logs of streams, messages, limits.
    pub(crate) node: Node,
    pub(crate) clock: Clock,
    pub(crate) tracker: TaskTracker,
    /// Cancelled when the process begins to stop.
    pub(crate) stopping: CancellationToken,
    pub(crate) shutdown: Shutdown,
    pub(crate) config: McpConfig,
    pub(crate) admission: Arc<AdmissionControl>,
    pub(crate) session_quota: SessionQuota,
    /// The suspended calls of this node.
    pub(crate) suspended_calls: Arc<SuspendedCalls>,
    pub(crate) instruments: Instruments,
    pub(crate) call_log: CallLog,
    /// Questions whose senders await their client's progress.
    pub(crate) awaited: Awaited,
    /// The queue of messages to other nodes about tasks.
    pub(crate) outgoing: Outgoing,
    /// Events of this process, for the open streams.
    pub(crate) events: Events,
    /// Sessions as this node saw them.
    pub(crate) sessions: SessionBoard,
}

impl NodeContext {
    pub(crate) fn new(parts: NodeParts) -> Self {
        Self(Arc::new(parts))
    }

    pub(crate) fn site(&self) -> &Site {
        &self.site
    }
}

impl Deref for NodeContext {
    type Target = NodeParts;
    fn deref(&self) -> &NodeParts {
        &self.0
    }
}
