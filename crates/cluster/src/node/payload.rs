//! Payloads, as the node carries them: where a seal is valid, and what stands for a lost response.

use std::fmt;

use bytes::Bytes;
use portolan_model::id::TenantId;

use crate::store::{Class, Nonce, SessionKey, StreamKey};

/// Reason why a request has no proper result. Each reason becomes a JSON-RPC error
/// (STREAM-B).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lost {
    /// The node that ran it was lost: -32010 `node_lost`.
    Node,
    /// The node that ran it had to stop: -32010 `draining`.
    Draining,
    /// The work ended without an answer: a defect, or a panic. -32603.
    Stopped,
    /// The log lost events that cannot be made again: -32011 `stream_lost`.
    Stream,
    /// Events that may not be dropped fill the log: -32015.
    Overflow,
    /// The deadline of the request has passed: -32016.
    Deadline,
    /// The token under which it ran was revoked: -32010 `revoked`.
    Revoked,
}

impl Lost {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Node => "node_lost",
            Self::Draining => "draining",
            Self::Stopped => "stopped",
            Self::Stream => "stream_lost",
            Self::Overflow => "overflow",
            Self::Deadline => "deadline",
            Self::Revoked => "revoked",
        }
    }

    /// Whether the call took effect at the API: `no`, `yes` or `unknown` (STREAM-B).
    /// A stream is opened only for a call that was sent. When the stream is lost, the outcome of
    /// the call is unknown.
    pub const fn executed(self) -> &'static str {
        match self {
            Self::Node
            | Self::Draining
            | Self::Stopped
            | Self::Stream
            | Self::Overflow
            | Self::Deadline
            | Self::Revoked => "unknown",
        }
    }
}

/// Location to which the seal of a payload is bound. An attacker with write access to the store can
/// move a payload, so the payload must not open anywhere else (STREAM-3.1, STREAM-11).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PayloadPlace<'a> {
    /// Tenant of the payload.
    pub tenant: TenantId,
    /// Session of the payload.
    pub session: SessionKey,
    /// Role of the payload in its session.
    pub part: PayloadPart<'a>,
}

/// Role of a payload in its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PayloadPart<'a> {
    /// An event of a stream. Its number is bound too, because takeovers and repairs keep it.
    Event {
        /// The stream.
        nonce: Nonce,
        /// Number of the event.
        seq: u64,
        /// Kind of the event.
        class: Class,
    },
    /// The client's answer to a question.
    Answer {
        /// The question's id.
        question: &'a str,
    },
    /// A record. Its list takes the place of the session.
    RecordPut {
        /// Name of the record.
        nonce: Nonce,
        /// True for the head, which is listed; false for the rest.
        is_head: bool,
    },
}

impl PayloadPlace<'_> {
    pub(crate) const fn event(tenant: TenantId, stream: StreamKey, seq: u64, class: Class) -> Self {
        Self {
            tenant,
            session: stream.session,
            part: PayloadPart::Event {
                nonce: stream.nonce,
                seq,
                class,
            },
        }
    }

    pub(crate) const fn record_put(tenant: TenantId, item: StreamKey, is_head: bool) -> Self {
        Self {
            tenant,
            session: item.session,
            part: PayloadPart::RecordPut {
                nonce: item.nonce,
                is_head,
            },
        }
    }
}

impl<'a> PayloadPlace<'a> {
    pub(crate) const fn answer(tenant: TenantId, session: SessionKey, question: &'a str) -> Self {
        Self {
            tenant,
            session,
            part: PayloadPart::Answer { question },
        }
    }
}

/// Operations on payloads, which the node carries and never reads.
pub trait Payloads: Send + Sync + fmt::Debug + 'static {
    /// Seals a payload for its location.
    fn seal(&self, place: &PayloadPlace<'_>, payload: Bytes) -> Bytes;
    /// Opens a sealed payload; `None` if it was sealed for another location or with another key.
    fn open(&self, place: &PayloadPlace<'_>, payload: Bytes) -> Option<Bytes>;
    /// Builds the final response of a request that has none, from [`super::NewStream::about`].
    fn lost(&self, about: &Bytes, why: Lost) -> Bytes;
}
