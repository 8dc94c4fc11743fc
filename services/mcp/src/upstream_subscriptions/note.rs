//! Messages between nodes about upstream subscriptions: short, sealed, and lossy
//! (STREAM-15.3).

use std::collections::BTreeSet;

use bytes::Bytes;
use portolan_cluster::{SessionKey, store::NodeId};
use portolan_keys::Purpose;

use crate::backends::services::Backends;

/// Most bytes of URIs in one message; the rest goes in further ones.
const PART: usize = 8 * 1024;

/// A message. URIs are the upstream server's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Note {
    /// To the leader: this node subscribes to these for a while.
    Wanted(NodeId, Vec<String>),
    /// To the leader: this node no longer subscribes to these.
    Unwanted(NodeId, Vec<String>),
    /// From the leader: the server accepts these.
    Acknowledged(Vec<String>),
    /// From the leader: the server refuses these.
    Refused(Vec<String>),
    /// From the leader: these have changed.
    Updated(Vec<String>),
    /// To all: this session subscribed to the first URI, which its client knows as the second.
    Subscribed(SessionKey, String, String),
    /// To all: this session unsubscribed from the client's URI.
    Unsubscribed(SessionKey, String),
    /// To all: the subscriptions of this session may differ from the messages.
    ReadRecord(SessionKey),
}

impl Note {
    fn to_bytes(&self) -> Vec<u8> {
        let with = |tag: u8, head: &[u8], uris: &[&str]| {
            let mut out = vec![tag];
            out.extend_from_slice(head);
            // Writing to a vector always succeeds.
            let _ = serde_json::to_writer(&mut out, uris);
            out
        };
        let all = |uris: &'_ [String]| -> Vec<String> { uris.to_vec() };
        let of = |tag: u8, head: &[u8], uris: &[String]| {
            let uris = all(uris);
            let uris: Vec<&str> = uris.iter().map(String::as_str).collect();
            with(tag, head, &uris)
        };
        match self {
            Self::Wanted(node, uris) => of(b'W', &node.0, uris),
            Self::Unwanted(node, uris) => of(b'R', &node.0, uris),
            Self::Acknowledged(uris) => of(b'K', &[], uris),
            Self::Refused(uris) => of(b'N', &[], uris),
            Self::Updated(uris) => of(b'U', &[], uris),
            Self::Subscribed(session, own, uri) => with(b'S', &session.0, &[own, uri]),
            Self::Unsubscribed(session, uri) => with(b'X', &session.0, &[uri]),
            Self::ReadRecord(session) => with(b'L', &session.0, &[]),
        }
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (tag, rest) = bytes.split_first()?;
        let uris = |rest: &[u8]| serde_json::from_slice::<Vec<String>>(rest).ok();
        Some(match tag {
            b'W' | b'R' => {
                let (node, rest) = rest.split_first_chunk::<14>()?;
                let (node, uris) = (NodeId(*node), uris(rest)?);
                if *tag == b'W' {
                    Self::Wanted(node, uris)
                } else {
                    Self::Unwanted(node, uris)
                }
            }
            b'K' => Self::Acknowledged(uris(rest)?),
            b'N' => Self::Refused(uris(rest)?),
            b'U' => Self::Updated(uris(rest)?),
            b'S' | b'X' | b'L' => {
                let (session, rest) = rest.split_first_chunk::<16>()?;
                let (session, mut uris) = (SessionKey(*session), uris(rest)?.into_iter());
                match tag {
                    b'S' => Self::Subscribed(session, uris.next()?, uris.next()?),
                    b'X' => Self::Unsubscribed(session, uris.next()?),
                    _ => Self::ReadRecord(session),
                }
            }
            _ => return None,
        })
    }

    /// The sealed form for other nodes; `None` if it cannot be sealed.
    pub(crate) fn seal(&self, state: &Backends, key: SessionKey) -> Option<Bytes> {
        let text = self.to_bytes();
        let sealed = state.keys.seal(Purpose::StreamPayload, &text, &key.0);
        sealed.ok().map(Bytes::from)
    }

    /// Reads the output of [`Note::seal`] for the same watch.
    pub(crate) fn open(state: &Backends, key: SessionKey, sealed: &[u8]) -> Option<Self> {
        let now = state.clock.now();
        let opened = state
            .keys
            .open(Purpose::StreamPayload, sealed, &key.0, now)
            .ok()?;
        Self::from_bytes(opened.expose())
    }
}

/// Splits URIs into parts that fit into messages.
pub(crate) fn parts<'u>(uris: impl IntoIterator<Item = &'u String>) -> Vec<Vec<String>> {
    let mut parts: Vec<Vec<String>> = Vec::new();
    let mut room = 0_usize;
    for uri in uris {
        match parts.last_mut() {
            Some(part) if uri.len() <= room => part.push(uri.clone()),
            _ => {
                parts.push(vec![uri.clone()]);
                room = PART;
            }
        }
        room = room.saturating_sub(uri.len() + 3);
    }
    parts
}

/// The elements of the first set that are not in the second.
pub(crate) fn without(all: &BTreeSet<String>, gone: &BTreeSet<String>) -> Vec<String> {
    all.difference(gone).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_note_reads_back_and_others_are_nothing() {
        let uris = vec!["x://a".to_owned(), "x://ü\"".to_owned()];
        let (node, session) = (NodeId(*b"n0123456789abc"), SessionKey([7; 16]));
        for note in [
            Note::Wanted(node, uris.clone()),
            Note::Unwanted(node, Vec::new()),
            Note::Acknowledged(uris.clone()),
            Note::Refused(uris.clone()),
            Note::Updated(uris.clone()),
            Note::Subscribed(session, uris[0].clone(), uris[1].clone()),
            Note::Unsubscribed(session, uris[1].clone()),
            Note::ReadRecord(session),
        ] {
            assert_eq!(Note::from_bytes(&note.to_bytes()), Some(note));
        }
        for other in [&b""[..], b"W", b"S0123", b"?[]", b"U{}"] {
            assert_eq!(Note::from_bytes(other), None);
        }
    }

    #[test]
    fn many_uris_go_in_parts_and_none_is_lost() {
        let uris: Vec<String> = (0..1_000).map(|n| format!("x://{n:0100}")).collect();
        let parts = parts(&uris);
        assert!(parts.len() > 10);
        assert!(
            parts
                .iter()
                .all(|part| Note::Updated(part.clone()).to_bytes().len() < 2 * PART)
        );
        assert_eq!(parts.concat(), uris);
    }
}
