//! The plaintext of a `requestState`.
//!
//! This module depends on no other one, because the fuzz target `request_state` reads it too.

const VERSION: u8 = 1;

const PARKED: u8 = 1;

const HANDED_ON: u8 = 2;

/// The plaintext.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plain {
    /// The method of the request (MCP-MR-1).
    pub(crate) method: u8,
    /// Rounds so far.
    pub(crate) round: u8,
    /// Digest over the parameters of the request.
    pub(crate) digest: [u8; 32],
    pub(crate) about: About,
}

/// The work that the request continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum About {
    /// A suspended call of this cluster (MCP-X-22).
    Suspended {
        session: [u8; 16],
        nonce: [u8; 8],
        seq: u64,
        /// Term and nonce.
        epoch: Option<(u32, u16)>,
    },
    /// An upstream server, with its own state (MCP-X-29).
    HandedOn(Option<String>),
}

impl Plain {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let kind = match self.about {
            About::Suspended { .. } => PARKED,
            About::HandedOn(_) => HANDED_ON,
        };
        let mut out = vec![VERSION, kind, self.method, self.round];
        out.extend_from_slice(&self.digest);
        match &self.about {
            About::Suspended {
                session,
                nonce,
                seq,
                epoch,
            } => {
                let (number, mark) = epoch.unwrap_or((0, 0));
                out.extend_from_slice(session);
                out.extend_from_slice(nonce);
                out.extend_from_slice(&seq.to_be_bytes());
                out.extend_from_slice(&number.to_be_bytes());
                out.extend_from_slice(&mark.to_be_bytes());
            }
            About::HandedOn(None) => out.push(0),
            About::HandedOn(Some(state)) => {
                out.push(1);
                out.extend_from_slice(state.as_bytes());
            }
        }
        out
    }

    /// Reads [`Plain::to_bytes`], and nothing else.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let (head, rest) = bytes.split_first_chunk::<4>()?;
        let (digest, rest) = rest.split_first_chunk::<32>()?;
        let &[VERSION, kind, method, round] = head else {
            return None;
        };
        let about = match kind {
            PARKED => suspended(rest)?,
            HANDED_ON => match rest.split_first()? {
                (0, []) => About::HandedOn(None),
                (1, state) => About::HandedOn(Some(String::from_utf8(state.to_vec()).ok()?)),
                _ => return None,
            },
            _ => return None,
        };
        Some(Self {
            method,
            round,
            digest: *digest,
            about,
        })
    }
}

fn suspended(rest: &[u8]) -> Option<About> {
    let (session, rest) = rest.split_first_chunk::<16>()?;
    let (nonce, rest) = rest.split_first_chunk::<8>()?;
    let (seq, rest) = rest.split_first_chunk::<8>()?;
    let (number, mark) = rest.split_first_chunk::<4>()?;
    let number = u32::from_be_bytes(*number);
    let mark = u16::from_be_bytes(mark.try_into().ok()?);
    let epoch = match (number, mark) {
        (0, 0) => None,
        (0, _) => return None,
        epoch => Some(epoch),
    };
    Some(About::Suspended {
        session: *session,
        nonce: *nonce,
        seq: u64::from_be_bytes(*seq),
        epoch,
    })
}
