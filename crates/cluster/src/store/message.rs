//! Messages that nodes send to each other through the store (STREAM-8).

use bytes::Bytes;

use super::{Epoch, Event, NodeId, SessionKey, StreamKey, StreamState};

/// Message to a node. A lost, repeated or reordered message only delays work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeMessage {
    /// Events were appended to a stream whose connection is on this node.
    Appended {
        /// The stream.
        stream: StreamKey,
        /// Generation of the connection that the message addresses.
        generation: u64,
        /// Epoch of the writer.
        epoch: Epoch,
        /// Number of the last event.
        tail: u64,
        /// State of the stream.
        state: StreamState,
        /// The event, if there was only one and it is small.
        event: Option<Event>,
    },
    /// A newer connection replaced the one of this generation.
    Superseded {
        /// The stream.
        stream: StreamKey,
        /// Generation of the replaced connection.
        generation: u64,
    },
    /// The owner of the stream changed; `None` if its owner gave it up.
    Owner {
        /// The stream.
        stream: StreamKey,
        /// The new owner.
        owner: Option<NodeId>,
    },
    /// A client answered a question of a request that runs on this node.
    Answered {
        /// The stream that carried the question.
        stream: StreamKey,
        /// The question's id.
        question: String,
        /// The answer, if it is small. Otherwise the node reads it with `take_answer`.
        payload: Option<Bytes>,
    },
    /// A request that runs on this node is cancelled.
    Cancel {
        /// Session of the request.
        session: SessionKey,
        /// Key of the request.
        rpc: String,
    },
    /// The session was ended.
    Ended {
        /// The session.
        session: SessionKey,
    },
    /// Another node sends bytes for the connection of a session on this node (MCP-O-6).
    Session {
        /// The session.
        session: SessionKey,
        /// Bytes of the message, in a format of the sender.
        body: Bytes,
    },
    /// Messages may have been lost. The node reads everything again.
    Resync,
}
