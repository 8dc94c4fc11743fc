//! This node of the cluster, and its messages to the other nodes.

pub(crate) mod notify;
pub(crate) mod outgoing;
