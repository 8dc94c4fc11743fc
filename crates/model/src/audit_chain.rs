//! The hash chain over an audit log, which makes a later change visible (AUTH-3.4 `audit_events`).
//!
//! Every entry has a place in the chain of its tenant, or of the platform. The place is a number
//! that counts from 1, the hash of the entry before it, and its own hash, `SHA-256(previous ||
//! text)`. The text of an entry names its place and its tenant, so that a moved entry is as visible
//! as an edited one. An attacker who can rewrite the whole database can make a new chain. The
//! numbers and hashes of its ends, stored elsewhere, show that too ([`Walk::head`]).

use crate::id::AuditId;

/// The hash before the first entry.
pub const BEGIN: [u8; 32] = [0; 32];

/// One place of a chain, as read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Counts from 1.
    pub seq: i64,
    /// The entry that stands there.
    pub event: AuditId,
    /// Hash of the place before.
    pub previous: Vec<u8>,
    /// Hash of this place.
    pub hash: Vec<u8>,
    /// The entry as a text; `None` if it is gone.
    pub entry: Option<String>,
}

impl Link {
    /// What [`Link::hash`] is the SHA-256 of; `None` if the entry is gone.
    pub fn preimage(&self) -> Option<Vec<u8>> {
        let entry = self.entry.as_ref()?;
        Some([&self.previous, entry.as_bytes()].concat())
    }
}

/// A fault of a chain.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChainFault {
    /// The entry is not the one whose hash stands here.
    #[error("entry {seq} ({event}) is not what was written there: it was edited or moved")]
    Changed {
        /// Where.
        seq: i64,
        /// What.
        event: AuditId,
    },
    /// The place is there, the entry is not.
    #[error("entry {seq} ({event}) is gone")]
    Gone {
        /// Where.
        seq: i64,
        /// What stood there.
        event: AuditId,
    },
    /// Places are gone with their entries.
    #[error("entries {from} to {to} were removed")]
    Removed {
        /// The first one.
        from: i64,
        /// The last one.
        to: i64,
    },
    /// The place does not follow the one before it.
    #[error(
        "entry {seq} ({event}) does not follow the entry before it: the order was changed, or the chain was made anew"
    )]
    Unlinked {
        /// Where.
        seq: i64,
        /// What.
        event: AuditId,
    },
    /// A chain that was longer, or another one, at an earlier look.
    #[error("entry {seq} had another hash, or was there, when its hash was written down")]
    Forked {
        /// Where.
        seq: i64,
    },
    /// Entries that stand in no chain.
    #[error("{count} entries stand in no chain: they were written around it")]
    Unchained {
        /// How many.
        count: i64,
    },
}

/// Walks along a chain from its begin.
#[derive(Debug, Clone)]
pub struct Walk {
    next: i64,
    head: Vec<u8>,
    known: Option<(i64, Vec<u8>)>,
}

impl Walk {
    /// At the begin of a chain. `known` is a place and its hash from an earlier look, through which
    /// the chain must still lead.
    pub fn new(known: Option<(i64, Vec<u8>)>) -> Self {
        Self {
            next: 1,
            head: BEGIN.to_vec(),
            known,
        }
    }

    /// The last place walked and its hash: (0, [`BEGIN`]) before the first.
    pub fn head(&self) -> (i64, &[u8]) {
        (self.next - 1, &self.head)
    }

    /// Takes the next place and says what is wrong with it. `sha256` hashes [`Link::preimage`].
    pub fn step(&mut self, link: &Link, sha256: impl FnOnce(&[u8]) -> [u8; 32]) -> Vec<ChainFault> {
        let (seq, event) = (link.seq, link.event);
        let mut faults = Vec::new();
        if seq > self.next {
            faults.push(ChainFault::Removed {
                from: self.next,
                to: seq - 1,
            });
        }
        if link.previous != self.head {
            faults.push(ChainFault::Unlinked { seq, event });
        }
        match link.preimage() {
            None => faults.push(ChainFault::Gone { seq, event }),
            Some(bytes) if sha256(&bytes)[..] != link.hash[..] => {
                faults.push(ChainFault::Changed { seq, event });
            }
            Some(_) => {}
        }
        if self
            .known
            .take_if(|known| known.0 <= seq)
            .is_some_and(|known| known != (seq, link.hash.clone()))
        {
            faults.push(ChainFault::Forked { seq });
        }
        self.next = seq + 1;
        self.head.clone_from(&link.hash);
        faults
    }

    /// Returns a fault if the chain ends before the known end.
    pub fn end(self) -> Option<ChainFault> {
        self.known.map(|(seq, _)| ChainFault::Forked { seq })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Not SHA-256, but as good for the walk: tells different inputs apart.
    fn hash(bytes: &[u8]) -> [u8; 32] {
        let mut out = [0_u8; 32];
        for (at, byte) in bytes.iter().enumerate() {
            let place = (at * 7 + 3) % 32;
            out[place] = out[place]
                .wrapping_mul(31)
                .wrapping_add(*byte)
                .rotate_left(3)
                ^ u8::try_from(at % 251).unwrap_or(0);
        }
        out
    }

    fn chain(length: i64) -> Vec<Link> {
        let mut previous = BEGIN.to_vec();
        (1..=length)
            .map(|seq| {
                let mut link = Link {
                    seq,
                    event: AuditId::generate(),
                    previous: previous.clone(),
                    hash: Vec::new(),
                    entry: Some(format!("[\"{seq}\",\"what happened\"]")),
                };
                link.hash = hash(&link.preimage().unwrap()).to_vec();
                previous.clone_from(&link.hash);
                link
            })
            .collect()
    }

    fn faults(links: &[Link], known: Option<(i64, Vec<u8>)>) -> Vec<ChainFault> {
        let mut walk = Walk::new(known);
        let mut all: Vec<ChainFault> = links
            .iter()
            .flat_map(|link| walk.step(link, hash))
            .collect();
        all.extend(walk.end());
        all
    }

    #[test]
    fn a_chain_that_nobody_touched_has_no_faults() {
        let links = chain(5);
        assert_eq!(faults(&links, None), []);
        assert_eq!(faults(&links, Some((3, links[2].hash.clone()))), []);
        assert_eq!(faults(&[], None), []);
    }

    #[test]
    fn what_was_edited_removed_moved_or_cut_off_is_found() {
        let links = chain(5);
        let event = |at: usize| links[at].event;
        let known = Some((5, links[4].hash.clone()));

        let mut edited = links.clone();
        edited[1].entry = Some("[\"2\",\"something else\"]".to_owned());
        assert_eq!(
            faults(&edited, None),
            [ChainFault::Changed {
                seq: 2,
                event: event(1)
            }]
        );

        let mut gone = links.clone();
        gone[2].entry = None;
        assert_eq!(
            faults(&gone, None),
            [ChainFault::Gone {
                seq: 3,
                event: event(2)
            }]
        );

        let mut removed = links.clone();
        removed.remove(2);
        assert_eq!(
            faults(&removed, None),
            [
                ChainFault::Removed { from: 3, to: 3 },
                ChainFault::Unlinked {
                    seq: 4,
                    event: event(3)
                }
            ]
        );

        let mut moved = links.clone();
        let entry = moved[1].entry.clone();
        moved[1].entry = moved[3].entry.clone();
        moved[3].entry = entry;
        assert_eq!(faults(&moved, None).len(), 2);

        // Made anew from the second entry on: only who kept a hash sees it.
        let mut anew = links.clone();
        anew[1].entry = Some("[\"2\",\"something else\"]".to_owned());
        for at in 1..5 {
            anew[at].previous = anew[at - 1].hash.clone();
            anew[at].hash = hash(&anew[at].preimage().unwrap()).to_vec();
        }
        assert_eq!(faults(&anew, None), []);
        assert_eq!(
            faults(&anew, known.clone()),
            [ChainFault::Forked { seq: 5 }]
        );
        assert_eq!(faults(&links[..4], known), [ChainFault::Forked { seq: 5 }]);
    }
}
