//! Questions to all nodes at once, for people who look: a process asks through the store, and each
//! node replies with a record of short life. Nothing is written without a question.
//!
//! The store carries bytes; the asker and the nodes seal them.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::time::{Instant, sleep};

use crate::store::{NodeId, Nonce, PutRecord, RecordBounds, Result, SessionKey, Store};

/// Never the name of a real node, which is random.
const ASKER: NodeId = NodeId(*b"naskeraskerask");

/// Life of a reply.
pub(crate) const REPLY_LIFE: Duration = Duration::from_secs(30);

/// Pause between two looks for replies; each look doubles it.
const FIRST_PAUSE: Duration = Duration::from_millis(4);
const LONGEST_PAUSE: Duration = Duration::from_millis(64);

/// Bounds of the replies to one question.
const REPLIES: RecordBounds = RecordBounds {
    items: 512,
    bytes: 32 * 1024 * 1024,
};

/// The replies to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replies {
    /// Number of nodes that were asked.
    pub asked: usize,
    /// Replies, in no order.
    pub bodies: Vec<Bytes>,
}

/// Asks the nodes. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Enquiry(Arc<dyn Store>);

impl Enquiry {
    /// Asks the nodes of this store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self(store)
    }

    /// Sends `body` to the subscribers of `place` on every live node, and waits for their replies
    /// under `reply_to`, a random key. A node that does not reply in time is missing.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn ask(
        &self,
        place: SessionKey,
        reply_to: SessionKey,
        body: Bytes,
        within: Duration,
    ) -> Result<Replies> {
        let store = &self.0;
        let end = Instant::now() + within;
        // A life of zero makes no member.
        let members = store.heartbeat(ASKER, Duration::ZERO).await?;
        let nodes = members.nodes.iter().filter(|member| member.valid_ms > 0);
        let mut asked = 0;
        for member in nodes {
            store.publish(place, member.node, body.clone()).await?;
            asked += 1;
        }
        let mut pause = FIRST_PAUSE;
        let replies = loop {
            let replies = store.records(reply_to, None).await?;
            if replies.len() >= asked || Instant::now() >= end {
                break replies;
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        };
        let mut bodies = Vec::with_capacity(replies.len());
        for reply in replies {
            let whole = store.records(reply_to, Some(reply.nonce)).await?;
            bodies.extend(whole.into_iter().map(|record| record.rest));
        }
        Ok(Replies { asked, bodies })
    }
}

/// The record of a node's reply, and its name.
pub(crate) fn reply(node: NodeId, body: Bytes) -> (Nonce, PutRecord) {
    let mut nonce = [0; 8];
    nonce.copy_from_slice(&node.0[6..]);
    let record = PutRecord {
        expect: None,
        life: REPLY_LIFE,
        head: Bytes::new(),
        rest: Some(body),
        room: REPLIES,
    };
    (Nonce(nonce), record)
}
