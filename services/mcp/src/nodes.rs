//! This node of the cluster, and its messages to the other nodes.

pub(crate) mod awaited;
pub(crate) mod context;
pub(crate) mod events;
pub(crate) mod message;
pub(crate) mod notify;
pub(crate) mod outgoing;
pub(crate) mod refusals;
