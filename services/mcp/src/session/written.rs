//! The bytes of a session id and of a session's record.
//!
//! This module depends on no other one, because the fuzz target `session` reads both too.

use bytes::Bytes;
use portolan_cluster::SessionKey;
use portolan_model::{Timestamp, id::GrantId};
use portolan_protocol::revision::Revision;
use uuid::Uuid;

use crate::catalog::marks::Marks;

const VERSION: u8 = 1;

/// The partition byte of sessions of this process; other values will name shards.
const LANE: u8 = 0;

pub(crate) const PAYLOAD_LEN: usize = 40;

/// Set beside the six bits of the capabilities when the session uses the draft profile (MCP-D-1).
const DRAFT: u8 = 1 << 6;

/// The contents of a valid id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SessionId {
    /// The random part.
    pub(crate) key: SessionKey,
    /// The revision negotiated at `initialize`; it governs for ever (MCP-T-47).
    pub(crate) revision: Revision,
    /// The client's capabilities, as bits.
    pub(crate) capability_bits: u8,
    /// Mirrored headers are required (MCP-D-2).
    pub(crate) draft: bool,
    /// When the session was made.
    pub(crate) created_at: Timestamp,
    /// The grant of the session: when it is revoked, the session is gone (404).
    pub(crate) grant: GrantId,
}

impl SessionId {
    /// The payload under the MAC of an id.
    pub(crate) fn to_bytes(self) -> [u8; PAYLOAD_LEN] {
        let mut payload = [0; PAYLOAD_LEN];
        payload[0] = VERSION;
        payload[1] = LANE;
        payload[2] = self.revision.ordinal();
        payload[3] = self.capability_bits | if self.draft { DRAFT } else { 0 };
        // Valid until 2106.
        let made = u32::try_from(self.created_at.unix_timestamp()).unwrap_or(0);
        payload[4..8].copy_from_slice(&made.to_be_bytes());
        payload[8..24].copy_from_slice(self.grant.uuid().as_bytes());
        payload[24..].copy_from_slice(&self.key.0);
        payload
    }

    /// Reads a payload; `None` if its form or revision is not served any more.
    pub(crate) fn from_bytes(payload: &[u8]) -> Option<Self> {
        let payload: [u8; PAYLOAD_LEN] = payload.try_into().ok()?;
        let [VERSION, LANE, ordinal, bits, ..] = payload else {
            return None;
        };
        let seconds = u32::from_be_bytes([payload[4], payload[5], payload[6], payload[7]]);
        let part = |from: usize| {
            let mut bytes = [0; 16];
            bytes.copy_from_slice(&payload[from..from + 16]);
            bytes
        };
        Some(Self {
            key: SessionKey(part(24)),
            revision: Revision::from_ordinal(ordinal).filter(|revision| revision.is_served())?,
            capability_bits: bits & !DRAFT,
            draft: bits & DRAFT != 0,
            created_at: Timestamp::from_unix_timestamp(seconds.into()).ok()?,
            grant: GrantId::from_uuid(Uuid::from_bytes(part(8))),
        })
    }
}

/// The record of a session: everything that its id does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SessionBody {
    /// `notifications/initialized` was received, so notifications may be sent (MCP-L-6).
    pub(crate) initialized: bool,
    /// The lowest level of log messages, as an index of `Level::ALL`.
    pub(crate) level: u8,
    /// The lists that the client began with.
    pub(crate) marks: Marks,
    /// The resources that the client subscribed to, each with its version at that time (MCP-RE-7).
    pub(crate) subscriptions: Vec<(String, i64)>,
}

impl SessionBody {
    /// The record's body.
    pub(crate) fn to_bytes(&self) -> Bytes {
        let mut bytes = Vec::with_capacity(2 + Marks::LEN);
        bytes.push(u8::from(self.initialized));
        bytes.push(self.level);
        bytes.extend_from_slice(&self.marks.to_bytes());
        for (uri, version) in &self.subscriptions {
            let Ok(length) = u16::try_from(uri.len()) else {
                continue;
            };
            bytes.extend_from_slice(&version.to_be_bytes());
            bytes.extend_from_slice(&length.to_be_bytes());
            bytes.extend_from_slice(uri.as_bytes());
        }
        Bytes::from(bytes)
    }

    /// Reads a record's body; `None` if it is not of this form.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let (head, rest) = bytes.split_first_chunk::<2>()?;
        // A release with marks for tools only wrote eight bytes.
        let (marks, mut rest) = rest.split_at(rest.len().min(Marks::LEN));
        let mut subscriptions = Vec::new();
        while !rest.is_empty() {
            let (version, after) = rest.split_first_chunk::<8>()?;
            let (length, after) = after.split_first_chunk::<2>()?;
            let (uri, after) = after.split_at_checked(u16::from_be_bytes(*length).into())?;
            let uri = std::str::from_utf8(uri).ok()?.to_owned();
            subscriptions.push((uri, i64::from_be_bytes(*version)));
            rest = after;
        }
        Some(Self {
            initialized: head[0] == 1,
            level: head[1],
            marks: Marks::read(marks)?,
            subscriptions,
        })
    }
}
