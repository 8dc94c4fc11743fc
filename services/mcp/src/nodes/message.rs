//! The messages between nodes about tasks and questions, and their codec.

use bytes::Bytes;
use portolan_cluster::{
    SessionKey,
    store::{Nonce, StreamKey},
};
use portolan_model::{Id, id::TenantId};
use portolan_protocol::logging::Level;

/// A message between nodes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum NodeMessage {
    /// A task has changed. `session` is the session that made it, if one did.
    Task {
        item: StreamKey,
        session: Option<SessionKey>,
    },
    /// A whole notification of a task to the session that made it.
    ChannelMessage {
        session: SessionKey,
        item: StreamKey,
        what: MessageKind,
        notice: Bytes,
    },
    /// A client's progress with a question: the nonce of the question, and the parameters.
    Progress { nonce: [u8; 8], params: Bytes },
}

/// The kind of a task's notification.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum MessageKind {
    /// Progress.
    Progress(f64),
    /// A log message.
    Log(Level),
    Other,
}

impl MessageKind {
    pub(crate) fn to_bytes(self) -> [u8; 9] {
        let (tag, value) = match self {
            Self::Progress(progress) => (b'p', progress.to_be_bytes()),
            Self::Log(level) => {
                let place = Level::ALL.iter().position(|known| *known == level);
                (b'l', (place.unwrap_or(0) as u64).to_be_bytes())
            }
            Self::Other => (b'o', [0; 8]),
        };
        let mut bytes = [tag; 9];
        bytes[1..].copy_from_slice(&value);
        bytes
    }

    pub(crate) fn from_bytes([tag, value @ ..]: [u8; 9]) -> Option<Self> {
        match tag {
            b'p' => Some(Self::Progress(f64::from_be_bytes(value))),
            b'l' => {
                let place = usize::try_from(u64::from_be_bytes(value)).ok()?;
                Level::ALL.get(place).copied().map(Self::Log)
            }
            b'o' => Some(Self::Other),
            _ => None,
        }
    }
}

impl NodeMessage {
    pub(crate) fn to_bytes(&self, tenant: TenantId) -> Vec<u8> {
        let with = |tag: u8, parts: &[&[u8]]| {
            [&[tag], &tenant.uuid().as_bytes()[..], &parts.concat()].concat()
        };
        match self {
            Self::Task { item, session } => {
                let session = session.map(|session| session.0);
                let session = session.as_ref().map_or(&[][..], |session| &session[..]);
                with(b'T', &[&item.session.0, &item.nonce.0, session])
            }
            Self::ChannelMessage {
                session,
                item,
                what,
                notice,
            } => with(
                b'S',
                &[
                    &session.0,
                    &item.session.0,
                    &item.nonce.0,
                    &what.to_bytes(),
                    notice,
                ],
            ),
            Self::Progress { nonce, params } => with(b'P', &[nonce, params]),
        }
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<(TenantId, Self)> {
        let (tag, rest) = bytes.split_first()?;
        let (tenant, rest) = rest.split_first_chunk::<16>()?;
        let tenant = Id::from_uuid(uuid::Uuid::from_bytes(*tenant));
        let message = match tag {
            b'T' => {
                let (caller_tasks, rest) = rest.split_first_chunk::<16>()?;
                let (nonce, rest) = rest.split_first_chunk::<8>()?;
                let session = match rest {
                    [] => None,
                    rest => Some(SessionKey(rest.try_into().ok()?)),
                };
                Self::Task {
                    item: StreamKey {
                        session: SessionKey(*caller_tasks),
                        nonce: Nonce(*nonce),
                    },
                    session,
                }
            }
            b'S' => {
                let (session, rest) = rest.split_first_chunk::<16>()?;
                let (caller_tasks, rest) = rest.split_first_chunk::<16>()?;
                let (nonce, rest) = rest.split_first_chunk::<8>()?;
                let (what, notice) = rest.split_first_chunk::<9>()?;
                Self::ChannelMessage {
                    session: SessionKey(*session),
                    item: StreamKey {
                        session: SessionKey(*caller_tasks),
                        nonce: Nonce(*nonce),
                    },
                    what: MessageKind::from_bytes(*what)?,
                    notice: Bytes::copy_from_slice(notice),
                }
            }
            b'P' => {
                let (nonce, params) = rest.split_first_chunk::<8>()?;
                Self::Progress {
                    nonce: *nonce,
                    params: Bytes::copy_from_slice(params),
                }
            }
            _ => return None,
        };
        Some((tenant, message))
    }
}
