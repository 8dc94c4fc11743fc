//! What nodes tell each other through the store (`streams.md` §8).

use bytes::Bytes;

use super::{Epoch, Event, NodeId, SessionKey, State, StreamKey};

/// A message between nodes. Losing, repeating or reordering one costs time and nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeMessage {
    /// Something was appended to a stream that this node's connection holds.
    Appended {
        /// The stream.
        stream: StreamKey,
        /// Generation of the connection that it is for.
        generation: u64,
        /// Attempt of the writer.
        epoch: Epoch,
        /// Number of the last event.
        tail: u64,
        /// Of the stream.
        state: State,
        /// The one event, if there was just one and it is small.
        event: Option<Event>,
    },
    /// A connection of this generation was superseded.
    Superseded {
        /// The stream.
        stream: StreamKey,
        /// Its generation.
        generation: u64,
    },
    /// The stream has another owner; `None`: its owner gave it up.
    Owner {
        /// The stream.
        stream: StreamKey,
        /// The new one.
        owner: Option<NodeId>,
    },
    /// A client answered a question of a request that runs here.
    Answered {
        /// The stream that carried the question.
        stream: StreamKey,
        /// The question's id.
        question: String,
        /// The answer if it is small; else it is to be taken.
        payload: Option<Bytes>,
    },
    /// A request that runs here is cancelled.
    Cancel {
        /// Its session.
        session: SessionKey,
        /// Its key.
        rpc: String,
    },
    /// The session was ended.
    Ended {
        /// Which.
        session: SessionKey,
    },
    /// Another node has something for the connection of a session that this node holds (`protocol.md` O-6).
    Note {
        /// Which.
        session: SessionKey,
        /// What, in the words of whoever rang.
        note: Bytes,
    },
    /// messages may have been lost: look at everything.
    Resync,
}
