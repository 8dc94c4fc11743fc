//! The question of a console to the nodes, and a node's reply, with their seals.

use bytes::Bytes;
use portolan_cluster::SessionKey;
use portolan_keys::{Keys, Purpose};
use portolan_model::{
    Timestamp,
    id::TenantId,
    live_session::{LiveSession, SessionMoment},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// The key that all nodes subscribe to. It is not a session's.
pub(crate) const PLACE: SessionKey = SessionKey(*b"who is connected");

/// The content of a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Wanted {
    /// The last used sessions.
    List,
    /// One of them.
    One(String),
    /// The moments of one.
    Moments(String),
    /// End one.
    End(String),
}

/// A question about a tenant's sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SessionEnquiry {
    pub(crate) tenant: TenantId,
    /// The random key under which the replies are expected.
    pub(crate) reply_to: [u8; 16],
    /// When it was asked, in seconds since 1970: an old one that is sent again is dropped.
    pub(crate) at: i64,
    pub(crate) wanted: Wanted,
}

/// The reply of one node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SessionReply {
    pub(crate) sessions: Vec<LiveSession>,
    pub(crate) moments: Vec<SessionMoment>,
    /// The node knew the session, and ended it.
    pub(crate) ended: bool,
}

/// Seals a question or a reply for `place`.
pub(crate) fn seal(keys: &Keys, place: SessionKey, value: &impl Serialize) -> Option<Bytes> {
    let text = serde_json::to_vec(value).ok()?;
    let sealed = keys.seal(Purpose::StreamPayload, &text, &place.0).ok()?;
    Some(Bytes::from(sealed))
}

/// Opens what [`seal`] made for the same place.
pub(crate) fn open<T: DeserializeOwned>(
    keys: &Keys,
    place: SessionKey,
    sealed: &[u8],
    now: Timestamp,
) -> Option<T> {
    let opened = keys
        .open(Purpose::StreamPayload, sealed, &place.0, now)
        .ok()?;
    serde_json::from_slice(opened.expose()).ok()
}
