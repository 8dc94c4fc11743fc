//! Messages between nodes about tasks and questions. They are sealed and short.
//!
//! They report that a task has changed (MCP-TK-14, MCP-TX-13), notifications of a task (MCP-TK-18),
//! and a client's progress with a question (MCP-X-7J). A lost message does no harm, because nodes
//! also poll.

use std::time::Duration;

use bytes::Bytes;
use portolan_cluster::{SessionKey, node::Membership, store::NodeId};
use portolan_keys::{Purpose, random};
use portolan_model::id::TenantId;
use portolan_protocol::jsonrpc::Raw;
use tokio::{
    sync::mpsc,
    time::{MissedTickBehavior, interval},
};

use crate::{
    hex::{hex, unhex},
    nodes::{
        context::NodeContext,
        events::{Event, ROUNDS},
        message::NodeMessage,
    },
};

/// The key that all nodes subscribe to. It is not a session's.
const CHANGES: SessionKey = SessionKey(*b"bells of a node.");

/// The key for notifications of tasks. Its queue is its own, so that they displace no other
/// message.
const NOTICES: SessionKey = SessionKey(*b"words of a task.");

/// Most messages that wait to be processed: short ones, and notifications of up to 16 KiB.
const MOST_MESSAGES: usize = 4_096;

const MOST_TASK_NOTICES: usize = 256;

/// The interval between two groups of streams that poll their named tasks.
const STEP: Duration = Duration::from_secs(1);

/// Longest message to other nodes, in bytes; longer ones are delivered on this node only.
const LONGEST: usize = 16 * 1024;

/// Most progress notifications of a client that wait for one question.
const MOST_WAITING: usize = 8;

/// Longest progress token that is verified, in bytes.
const LONGEST_TOKEN: usize = 256;

/// A question with a progress token of ours, until it is dropped.
#[derive(Debug)]
pub(crate) struct AwaitedProgress {
    state: NodeContext,
    nonce: [u8; 8],
    /// The progress token for the client.
    pub(crate) token: String,
    said: mpsc::Receiver<Raw>,
}

impl AwaitedProgress {
    /// Makes a token for a question to the client of a session.
    ///
    /// Nodes read this node's id from the token; the client reads nothing.
    pub(crate) fn new(state: &NodeContext, session: SessionKey) -> Option<Self> {
        let nonce: [u8; 8] = random::bytes().ok()?;
        let place = [&state.node.id().0[..], &nonce].concat();
        let sealed = state.keys.seal(Purpose::StreamPayload, &place, &session.0);
        let token = hex(&sealed.ok()?);
        let (sender, said) = mpsc::channel(MOST_WAITING);
        state.awaited.lock().insert(nonce, sender);
        Some(Self {
            state: state.clone(),
            nonce,
            token,
            said,
        })
    }

    /// The parameters of the client's next notification. Cancel safe.
    pub(crate) async fn next(&mut self) -> Raw {
        match self.said.recv().await {
            Some(params) => params,
            None => std::future::pending().await,
        }
    }
}

impl Drop for AwaitedProgress {
    fn drop(&mut self) {
        self.state.awaited.lock().remove(&self.nonce);
    }
}

/// An opened token: the waiting node, and the question.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    node: NodeId,
    nonce: [u8; 8],
}

/// Opens a token that a client sends in its session. `None` for tokens that are not ours.
pub(crate) fn asked(state: &NodeContext, session: SessionKey, token: &str) -> Option<Asked> {
    if token.len() > LONGEST_TOKEN {
        return None;
    }
    let sealed = unhex(token)?;
    let now = state.clock.now();
    let opened = state
        .keys
        .open(Purpose::StreamPayload, &sealed, &session.0, now)
        .ok()?;
    let (node, nonce) = opened.expose().split_first_chunk::<14>()?;
    Some(Asked {
        node: NodeId(*node),
        nonce: nonce.try_into().ok()?,
    })
}

/// Forwards a client's progress with a question to the asker, on any node.
pub(crate) async fn progress(state: &NodeContext, tenant: TenantId, asked: Asked, params: &Raw) {
    let Asked { node, nonce } = asked;
    if node == state.node.id() {
        return state.awaited.deliver(nonce, params.clone());
    }
    let params = Bytes::copy_from_slice(params.as_bytes());
    send(
        state,
        &[node],
        tenant,
        &NodeMessage::Progress { nonce, params },
    )
    .await;
}

/// Delivers a message on this node at once, and sends it to the others in order.
pub(crate) fn publish(state: &NodeContext, tenant: TenantId, message: NodeMessage) {
    received(state, tenant, message.clone());
    if others(state).is_empty() || !state.outgoing.push(tenant, message) {
        return;
    }
    let state = state.clone();
    let tracker = state.tracker.clone();
    tracker.spawn(async move {
        while let Some((tenant, message)) = state.outgoing.next() {
            let were_sent = send(&state, &others(&state), tenant, &message).await;
            if !were_sent && state.stopping.is_cancelled() {
                // A stopping process does not wait for a store that is away.
                state.outgoing.clear();
            }
        }
    });
}

fn others(state: &NodeContext) -> Vec<NodeId> {
    let me = state.node.id();
    let members = state.node.members();
    let members = members.borrow();
    let others = members.live.iter().filter(|node| **node != me);
    others.copied().collect()
}

/// Sends a message to `nodes`. False if a node did not get it.
async fn send(
    state: &NodeContext,
    nodes: &[NodeId],
    tenant: TenantId,
    message: &NodeMessage,
) -> bool {
    let text = message.to_bytes(tenant);
    if text.len() > LONGEST {
        return true;
    }
    let place = match message {
        NodeMessage::ChannelMessage { .. } => NOTICES,
        NodeMessage::Task { .. } | NodeMessage::Progress { .. } => CHANGES,
    };
    let Ok(sealed) = state.keys.seal(Purpose::StreamPayload, &text, &place.0) else {
        return true;
    };
    let sealed = Bytes::from(sealed);
    let sends = nodes
        .iter()
        .map(|node| state.node.notify(place, *node, sealed.clone()));
    let sent = futures_util::future::join_all(sends).await;
    let were_sent = sent.iter().all(Result::is_ok);
    if !were_sent {
        tracing::debug!("a node could not be told of a task or a question");
    }
    were_sent
}

/// Receives messages until the process stops, and polls where one may have been lost.
pub(crate) async fn listen(state: NodeContext) {
    let mut notes = state.node.subscribe_with_capacity(CHANGES, MOST_MESSAGES);
    let mut notices = state
        .node
        .subscribe_with_capacity(NOTICES, MOST_TASK_NOTICES);
    let mut members = state.node.members();
    let mut known = members.borrow_and_update().clone();
    let mut steps = interval(STEP);
    steps.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // Nodes that began together do not poll together.
    let mut round = random::bytes().map_or(0, u64::from_be_bytes);
    loop {
        let (place, note) = tokio::select! {
            () = state.stopping.cancelled() => return,
            note = notes.next() => (CHANGES, note),
            note = notices.next() => (NOTICES, note),
            changed = members.changed() => {
                if changed.is_err() {
                    return;
                }
                let now = members.borrow_and_update().clone();
                if has_lost_one(&known, &now) {
                    // The lost node's tasks are lost, and so are its messages.
                    state.events.publish(&Event::PollTasks(None));
                }
                known = now;
                continue;
            }
            _ = steps.tick() => {
                round = round.wrapping_add(1);
                state.events.publish(&Event::PollTasks(Some(round % ROUNDS)));
                continue;
            }
        };
        let now = state.clock.now();
        let opened = state
            .keys
            .open(Purpose::StreamPayload, &note, &place.0, now);
        let Ok(opened) = opened else { continue };
        if let Some((tenant, message)) = NodeMessage::from_bytes(opened.expose()) {
            received(&state, tenant, message);
        }
    }
}

fn has_lost_one(before: &Membership, now: &Membership) -> bool {
    before.live.iter().any(|node| !now.live.contains(node))
        || now
            .suspected
            .iter()
            .any(|node| !before.suspected.contains(node))
}

fn received(state: &NodeContext, tenant: TenantId, message: NodeMessage) {
    match message {
        NodeMessage::Task { item, session } => {
            state.events.publish(&Event::TaskChanged {
                tenant,
                item,
                session,
            });
        }
        NodeMessage::ChannelMessage {
            session,
            item,
            what,
            notice,
        } => state.events.publish(&Event::TaskNotice {
            tenant,
            session,
            item,
            kind: what,
            notice,
        }),
        NodeMessage::Progress { nonce, params } => {
            if let Ok(params) = Raw::parse(params) {
                state.awaited.deliver(nonce, params);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::message::MessageKind;
    use portolan_cluster::store::{Nonce, StreamKey};
    use portolan_model::Id;
    use portolan_protocol::logging::Level;

    #[test]
    fn every_bell_reads_back_and_others_are_nothing() {
        let tenant: TenantId = Id::generate();
        let item = StreamKey {
            session: SessionKey([7; 16]),
            nonce: Nonce([9; 8]),
        };
        let session = SessionKey([3; 16]);
        let said = |what| NodeMessage::ChannelMessage {
            session,
            item,
            what,
            notice: Bytes::from_static(b"{}"),
        };
        for message in [
            NodeMessage::Task {
                item,
                session: None,
            },
            NodeMessage::Task {
                item,
                session: Some(session),
            },
            said(MessageKind::Other),
            said(MessageKind::Log(Level::Critical)),
            said(MessageKind::Progress(0.25)),
            NodeMessage::Progress {
                nonce: [1; 8],
                params: Bytes::from_static(b"{\"progress\":1}"),
            },
        ] {
            let read = NodeMessage::from_bytes(&message.to_bytes(tenant));
            assert_eq!(read, Some((tenant, message)));
        }
        let whole = NodeMessage::Task {
            item,
            session: Some(session),
        }
        .to_bytes(tenant);
        assert_eq!(NodeMessage::from_bytes(&whole[..whole.len() - 1]), None);
        let mut unknown = said(MessageKind::Other).to_bytes(tenant);
        unknown[1 + 16 + 16 + 24] = b'?';
        assert_eq!(NodeMessage::from_bytes(&unknown), None);
        for other in [&b""[..], b"T", b"?0123456789abcdef"] {
            assert_eq!(NodeMessage::from_bytes(other), None);
        }
    }
}
