//! Sessions of clients as the nodes see them, for people (PLAY-8).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::id::ServerId;

/// A session, or a client of the era without sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveSession {
    /// A digest of the session's key. It opens nothing.
    pub id: String,
    /// False for a client of 2026-07-28, which has no session to end.
    pub is_session: bool,
    /// The revision of MCP that it speaks.
    pub revision: String,
    /// The server that it uses.
    pub server: ServerId,
    /// The person or the service account, as tokens name it.
    pub subject: String,
    /// The OAuth client.
    pub client_id: String,
    /// The client's own name, if a node saw it.
    pub client_name: Option<String>,
    /// Its own version.
    pub client_version: Option<String>,
    /// When it began, in milliseconds since 1970; of a client without session, since the nodes know it.
    pub began_at: i64,
    /// Its last request.
    pub last_at: i64,
    /// Requests, as far as the nodes remember.
    pub requests: u64,
    /// Tool calls among them.
    pub calls: u64,
    /// Open event streams, without the answers of running calls.
    pub streams: u32,
    /// Nodes that know it, the one of the last request first.
    pub nodes: Vec<String>,
    /// The node saw its end. Other nodes may not have.
    pub has_ended: bool,
}

/// What happened in a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MomentKind {
    /// `initialize`.
    Opened,
    /// A request of the client.
    Request,
    /// A notification of the client.
    Notification,
    /// A question of the server: elicitation, sampling, roots.
    Question,
    /// The client's answer to a question.
    Answer,
    /// The client opened an event stream.
    Stream,
    /// The client resumed a broken one.
    Resumed,
    /// The client, or an administrator, ended the session.
    Ended,
}

/// A moment of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionMoment {
    /// Milliseconds since 1970.
    pub at: i64,
    /// The node that saw it.
    pub node: String,
    /// What happened.
    pub kind: MomentKind,
    /// The method, if there is one.
    pub method: Option<String>,
}

/// The replies of the nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FromNodes<T> {
    /// Their content.
    pub found: T,
    /// Nodes that were asked and did not reply.
    pub silent: usize,
}

/// Joins what several nodes know of the same sessions, the last used first. A session that ended on
/// one node has ended.
pub fn joined(seen: impl IntoIterator<Item = LiveSession>) -> Vec<LiveSession> {
    let mut all: BTreeMap<String, LiveSession> = BTreeMap::new();
    for one in seen {
        match all.get_mut(&one.id) {
            Some(known) => join(known, one),
            None => {
                all.insert(one.id.clone(), one);
            }
        }
    }
    let mut sessions: Vec<LiveSession> = all
        .into_values()
        .filter(|session| !session.has_ended)
        .collect();
    sessions.sort_by(|left, right| (right.last_at, &left.id).cmp(&(left.last_at, &right.id)));
    sessions
}

fn join(known: &mut LiveSession, other: LiveSession) {
    let is_later = other.last_at > known.last_at;
    known.client_name = known.client_name.take().or(other.client_name);
    known.client_version = known.client_version.take().or(other.client_version);
    known.began_at = known.began_at.min(other.began_at);
    known.last_at = known.last_at.max(other.last_at);
    known.requests += other.requests;
    known.calls += other.calls;
    known.streams += other.streams;
    known.has_ended |= other.has_ended;
    if is_later {
        known.nodes.splice(0..0, other.nodes);
    } else {
        known.nodes.extend(other.nodes);
    }
}
