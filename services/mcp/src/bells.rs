//! What nodes tell each other in the middle of tasks and questions: that a task is not what it was (TK-14, TX-13), what a task says (TK-18), how far
//! a client is with what it was asked (X-7J). Doorbells: sealed, short, and lost without harm, because whoever wants to know can look.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use portolan_cluster::{
    SessionKey,
    store::{NodeId, Nonce, StreamKey},
};
use portolan_keys::{Purpose, random};
use portolan_model::{Id, id::TenantId};
use portolan_protocol::jsonrpc::Raw;
use tokio::sync::mpsc;

use crate::{state::McpState, stream};

/// Where all nodes listen. It is no session's.
const PLACE: SessionKey = SessionKey(*b"bells of a node.");
/// Bytes of a word that goes to other nodes; longer ones are told on this node only.
const LONGEST: usize = 16 * 1024;
/// Words of a client that wait for one question.
const WORDS: usize = 8;
/// Longest progress token that is looked at.
const LONGEST_TOKEN: usize = 256;

/// What a node tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Bell {
    /// A task is not what it was. The session is that which made it, if one did.
    Task {
        item: StreamKey,
        session: Option<SessionKey>,
    },
    /// A task says this, a whole notification, to the session that made it.
    Said { session: SessionKey, notice: Bytes },
    /// A client says how far it is with a question: the parameters of its notification. The nonce is the question's.
    Progress { nonce: [u8; 8], params: Bytes },
}

/// Questions whose askers want to know how far their client is.
#[derive(Debug, Default)]
pub(crate) struct Awaited(Mutex<HashMap<[u8; 8], mpsc::Sender<Raw>>>);

impl Awaited {
    fn lock(&self) -> MutexGuard<'_, HashMap<[u8; 8], mpsc::Sender<Raw>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hear(&self, nonce: [u8; 8], params: Raw) {
        if let Some(asker) = self.lock().get(&nonce) {
            // Progress that nobody has taken yet is as good as this.
            let _ = asker.try_send(params);
        }
    }
}

/// A question under a progress token of ours, until it is dropped.
#[derive(Debug)]
pub(crate) struct Told {
    state: McpState,
    nonce: [u8; 8],
    /// What the client is to call it.
    pub(crate) token: String,
    said: mpsc::Receiver<Raw>,
}

impl Told {
    /// For a question to the client of a session. The token names this node to every other, and nothing to the client.
    pub(crate) fn new(state: &McpState, session: SessionKey) -> Option<Self> {
        let nonce: [u8; 8] = random::bytes().ok()?;
        let place = [&state.node.id().0[..], &nonce].concat();
        let sealed = state.keys.seal(Purpose::StreamPayload, &place, &session.0);
        let token = hex(&sealed.ok()?);
        let (sender, said) = mpsc::channel(WORDS);
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

impl Drop for Told {
    fn drop(&mut self) {
        self.state.awaited.lock().remove(&self.nonce);
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    if text.len() > LONGEST_TOKEN || !text.len().is_multiple_of(2) || !text.is_ascii() {
        return None;
    }
    let digits = (0..text.len()).step_by(2);
    digits
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok())
        .collect()
}

/// A client says how far it is with a question under a token of ours: whoever asked hears it, on whatever node. Other tokens are nothing.
pub(crate) async fn progress(
    state: &McpState,
    tenant: TenantId,
    session: SessionKey,
    token: &str,
    params: &Raw,
) {
    let Some(sealed) = unhex(token) else { return };
    let now = state.clock.now();
    let opened = state
        .keys
        .open(Purpose::StreamPayload, &sealed, &session.0, now);
    let Ok(opened) = opened else { return };
    let Some((node, nonce)) = opened.expose().split_first_chunk::<14>() else {
        return;
    };
    let Ok(nonce) = <[u8; 8]>::try_from(nonce) else {
        return;
    };
    let node = NodeId(*node);
    if node == state.node.id() {
        return state.awaited.hear(nonce, params.clone());
    }
    let params = Bytes::copy_from_slice(params.as_bytes());
    tell(state, &[node], tenant, &Bell::Progress { nonce, params }).await;
}

/// Tells this node at once, and the others as soon as they can be rung.
pub(crate) fn ring(state: &McpState, tenant: TenantId, bell: Bell) {
    heard(state, tenant, bell.clone());
    let me = state.node.id();
    let others: Vec<NodeId> = {
        let members = state.node.members();
        let members = members.borrow();
        let others = members.live.iter().filter(|node| **node != me);
        others.copied().collect()
    };
    if others.is_empty() {
        return;
    }
    let state = state.clone();
    let tracker = state.tracker.clone();
    tracker.spawn(async move { tell(&state, &others, tenant, &bell).await });
}

async fn tell(state: &McpState, nodes: &[NodeId], tenant: TenantId, bell: &Bell) {
    let text = bell.to_bytes(tenant);
    if text.len() > LONGEST {
        return;
    }
    let Ok(sealed) = state.keys.seal(Purpose::StreamPayload, &text, &PLACE.0) else {
        return;
    };
    let sealed = Bytes::from(sealed);
    for node in nodes {
        if state.node.ring(PLACE, *node, sealed.clone()).await.is_err() {
            tracing::debug!("a node could not be told of a task or a question");
        }
    }
}

/// Listens until the process stops.
pub(crate) async fn listen(state: McpState) {
    let mut notes = state.node.listen(PLACE);
    loop {
        let note = tokio::select! {
            () = state.stopping.cancelled() => return,
            note = notes.next() => note,
        };
        let now = state.clock.now();
        let opened = state
            .keys
            .open(Purpose::StreamPayload, &note, &PLACE.0, now);
        let Ok(opened) = opened else { continue };
        if let Some((tenant, bell)) = Bell::from_bytes(opened.expose()) {
            heard(&state, tenant, bell);
        }
    }
}

fn heard(state: &McpState, tenant: TenantId, bell: Bell) {
    match bell {
        Bell::Task { item, session } => stream::tasks::changed(state, tenant, item, session),
        Bell::Said { session, notice } => stream::tasks::said(state, tenant, session, &notice),
        Bell::Progress { nonce, params } => {
            if let Ok(params) = Raw::parse(params) {
                state.awaited.hear(nonce, params);
            }
        }
    }
}

impl Bell {
    fn to_bytes(&self, tenant: TenantId) -> Vec<u8> {
        let with = |tag: u8, parts: &[&[u8]]| {
            [&[tag], &tenant.uuid().as_bytes()[..], &parts.concat()].concat()
        };
        match self {
            Self::Task { item, session } => {
                let session = session.map(|session| session.0);
                let session = session.as_ref().map_or(&[][..], |session| &session[..]);
                with(b'T', &[&item.session.0, &item.nonce.0, session])
            }
            Self::Said { session, notice } => with(b'S', &[&session.0, notice]),
            Self::Progress { nonce, params } => with(b'P', &[nonce, params]),
        }
    }

    fn from_bytes(bytes: &[u8]) -> Option<(TenantId, Self)> {
        let (tag, rest) = bytes.split_first()?;
        let (tenant, rest) = rest.split_first_chunk::<16>()?;
        let tenant = Id::from_uuid(uuid::Uuid::from_bytes(*tenant));
        let bell = match tag {
            b'T' => {
                let (shelf, rest) = rest.split_first_chunk::<16>()?;
                let (nonce, rest) = rest.split_first_chunk::<8>()?;
                let session = match rest {
                    [] => None,
                    rest => Some(SessionKey(rest.try_into().ok()?)),
                };
                Self::Task {
                    item: StreamKey {
                        session: SessionKey(*shelf),
                        nonce: Nonce(*nonce),
                    },
                    session,
                }
            }
            b'S' => {
                let (session, notice) = rest.split_first_chunk::<16>()?;
                Self::Said {
                    session: SessionKey(*session),
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
        Some((tenant, bell))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bell_reads_back_and_others_are_nothing() {
        let tenant: TenantId = Id::generate();
        let item = StreamKey {
            session: SessionKey([7; 16]),
            nonce: Nonce([9; 8]),
        };
        let session = SessionKey([3; 16]);
        for bell in [
            Bell::Task {
                item,
                session: None,
            },
            Bell::Task {
                item,
                session: Some(session),
            },
            Bell::Said {
                session,
                notice: Bytes::from_static(b"{}"),
            },
            Bell::Progress {
                nonce: [1; 8],
                params: Bytes::from_static(b"{\"progress\":1}"),
            },
        ] {
            let read = Bell::from_bytes(&bell.to_bytes(tenant));
            assert_eq!(read, Some((tenant, bell)));
        }
        let whole = Bell::Task {
            item,
            session: Some(session),
        }
        .to_bytes(tenant);
        assert_eq!(Bell::from_bytes(&whole[..whole.len() - 1]), None);
        for other in [&b""[..], b"T", b"?0123456789abcdef"] {
            assert_eq!(Bell::from_bytes(other), None);
        }
    }

    #[test]
    fn a_token_is_read_back_and_any_other_text_is_none() {
        assert_eq!(unhex(&hex(&[0, 1, 254])), Some(vec![0, 1, 254]));
        for other in ["0", "zz", "ü0", &"0".repeat(400)] {
            assert_eq!(unhex(other), None);
        }
    }
}
