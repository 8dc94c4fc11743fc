//! Streams that this node is about to take over.

use std::{
    collections::{HashSet, VecDeque},
    sync::{Mutex, atomic::AtomicBool},
};

use tokio::sync::Notify;

use crate::{
    lock,
    node::payload::Lost,
    store::{Cursor, NodeId, StreamKey},
};

/// Stream to be taken over.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Claim {
    pub(crate) stream: StreamKey,
    /// Owner that is thought to be gone. If it is not the owner, the takeover succeeds only for an
    /// overdue stream.
    pub(crate) from: Option<NodeId>,
    /// The highest cursor that a client showed.
    pub(crate) shown: Cursor,
    /// Reason for the error that the client receives.
    pub(crate) why: Lost,
}

#[derive(Debug, Default)]
pub(super) struct Claims {
    pub(super) waiting: VecDeque<Claim>,
    /// Streams whose takeover waits or is in flight.
    pub(super) streams: HashSet<StreamKey>,
}

/// Takeovers of this node.
#[derive(Debug, Default)]
pub(crate) struct Takeovers {
    pub(super) claims: Mutex<Claims>,
    pub(super) wake: Notify,
    /// A takeover may have been applied although its reply was lost.
    pub(super) is_in_doubt: AtomicBool,
}

impl Takeovers {
    pub(crate) fn claim(&self, claim: Claim) {
        let mut claims = lock(&self.claims);
        if claims.streams.insert(claim.stream) {
            claims.waiting.push_back(claim);
            self.wake.notify_one();
        }
    }
}
