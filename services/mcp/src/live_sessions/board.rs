//! The memory of a node: who used which session, and its last moments. Bounded; the least used go
//! first.

use std::{
    collections::{HashMap, VecDeque, hash_map::Entry},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use portolan_cluster::{SessionKey, store::Principal};
use portolan_keys::digest;
use portolan_model::{
    Timestamp,
    id::{ServerId, TenantId},
    live_session::{LiveSession, MomentKind, SessionMoment},
};
use portolan_protocol::{initialize::Implementation, method::Method, revision::Revision};

use crate::{
    caller::{ClientName, SessionOwner},
    hex::hex,
};

/// Parts of the memory, each with a lock of its own: requests of different sessions do not wait for
/// each other.
const PARTS: usize = 64;

/// Most sessions of a part; 25,600 in all.
const MOST: usize = 400;

/// Most moments of a session.
const MOMENTS: usize = 48;

/// A session that was not used for so long is not shown: its record has ended, too.
const IDLE_MS: i64 = 24 * 60 * 60 * 1000;

/// The facts of a session, from its first request on this node.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    pub(crate) tenant: TenantId,
    pub(crate) server: ServerId,
    pub(crate) owner: Arc<SessionOwner>,
    pub(crate) revision: Revision,
    /// When the session was made; none without a session.
    pub(crate) created_at: Option<Timestamp>,
}

#[derive(Debug)]
struct RememberedSession {
    facts: Facts,
    card: Option<ClientName>,
    began_at: i64,
    last_at: i64,
    requests: u64,
    calls: u64,
    has_ended: bool,
    moments: VecDeque<(i64, MomentKind, Option<Method>)>,
}

/// Boxed, so that the empty places of a table are small.
type Part = HashMap<SessionKey, Box<RememberedSession>>;

/// The sessions that this node saw.
#[derive(Debug)]
pub(crate) struct SessionBoard(Box<[Mutex<Part>]>);

impl Default for SessionBoard {
    fn default() -> Self {
        Self((0..PARTS).map(|_| Mutex::default()).collect())
    }
}

impl SessionBoard {
    fn part(&self, key: SessionKey) -> MutexGuard<'_, Part> {
        // The key is random; its last byte is no partition of the store.
        let part = &self.0[usize::from(key.0[15]) % PARTS];
        part.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a use of a session. `facts` is called for a session that is new here.
    pub(crate) fn used(&self, key: SessionKey, now: Timestamp, facts: impl FnOnce() -> Facts) {
        remembered(&mut self.part(key), key, millis(now), facts);
    }

    /// Notes a request of the era without sessions: its use, its moment and its client.
    ///
    /// Returns the name of the client, if it has one.
    pub(crate) fn requested(
        &self,
        key: SessionKey,
        now: Timestamp,
        facts: impl FnOnce() -> Facts,
        method: Method,
        card: Option<&Implementation>,
    ) -> Option<ClientName> {
        let at = millis(now);
        let mut part = self.part(key);
        let seen = remembered(&mut part, key, at, facts);
        seen.note(at, MomentKind::Request, Some(method));
        let name = ClientName::again(card?, seen.card.as_ref())?;
        seen.card = Some(name.clone());
        Some(name)
    }

    /// Notes how a client introduced itself.
    pub(crate) fn introduced(&self, key: SessionKey, card: ClientName) {
        if let Some(seen) = self.part(key).get_mut(&key) {
            seen.card = Some(card);
        }
    }

    /// Notes a moment of a session that is known here.
    pub(crate) fn note(
        &self,
        key: SessionKey,
        now: Timestamp,
        kind: MomentKind,
        method: Option<Method>,
    ) {
        if let Some(seen) = self.part(key).get_mut(&key) {
            seen.note(millis(now), kind, method);
        }
    }

    /// Notes the end of a session. It stays for its timeline, and because other nodes may know it.
    pub(crate) fn ended(&self, key: SessionKey, now: Timestamp) {
        self.note(key, now, MomentKind::Ended, None);
        if let Some(seen) = self.part(key).get_mut(&key) {
            seen.has_ended = true;
        }
    }

    /// The sessions of a tenant, at most `most`, the last used first.
    pub(crate) fn list(
        &self,
        tenant: TenantId,
        now: Timestamp,
        node: &str,
        streams: &HashMap<SessionKey, u32>,
        most: usize,
    ) -> Vec<LiveSession> {
        let since = millis(now) - IDLE_MS;
        let mut sessions = Vec::new();
        for part in &self.0 {
            let part = part.lock().unwrap_or_else(PoisonError::into_inner);
            let own = part
                .iter()
                .filter(|(_, seen)| seen.facts.tenant == tenant && seen.last_at > since);
            sessions.extend(own.map(|(key, seen)| {
                let streams = streams.get(key).copied().unwrap_or(0);
                seen.shown(*key, node, streams)
            }));
        }
        sessions.sort_by_key(|session| std::cmp::Reverse(session.last_at));
        sessions.truncate(most);
        sessions
    }

    /// A tenant's session, however long ago it was used.
    pub(crate) fn one(
        &self,
        tenant: TenantId,
        id: &str,
        node: &str,
        streams: &HashMap<SessionKey, u32>,
    ) -> Option<LiveSession> {
        self.find(tenant, id, |key, seen| {
            let streams = streams.get(&key).copied().unwrap_or(0);
            seen.shown(key, node, streams)
        })
    }

    /// The moments of a tenant's session, the oldest first.
    pub(crate) fn moments(&self, tenant: TenantId, id: &str, node: &str) -> Vec<SessionMoment> {
        self.find(tenant, id, |_, seen| {
            let moments = seen.moments.iter();
            moments
                .map(|(at, kind, method)| SessionMoment {
                    at: *at,
                    node: node.to_owned(),
                    kind: *kind,
                    method: method.map(|method| method.name().to_owned()),
                })
                .collect()
        })
        .unwrap_or_default()
    }

    /// Key, owner and time of birth of a tenant's session; none for a client without one.
    pub(crate) fn session(
        &self,
        tenant: TenantId,
        id: &str,
    ) -> Option<(SessionKey, Principal, Timestamp)> {
        self.find(tenant, id, |key, seen| {
            let created_at = seen.facts.created_at.filter(|_| !seen.has_ended)?;
            Some((key, seen.facts.owner.principal, created_at))
        })?
    }

    fn find<T>(
        &self,
        tenant: TenantId,
        id: &str,
        read: impl FnOnce(SessionKey, &RememberedSession) -> T,
    ) -> Option<T> {
        for part in &self.0 {
            let part = part.lock().unwrap_or_else(PoisonError::into_inner);
            let found = part
                .iter()
                .find(|(key, seen)| seen.facts.tenant == tenant && shown_id(**key) == id);
            if let Some((key, seen)) = found {
                return Some(read(*key, seen));
            }
        }
        None
    }
}

/// The memory of a session, made if it is new.
fn remembered(
    part: &mut Part,
    key: SessionKey,
    at: i64,
    facts: impl FnOnce() -> Facts,
) -> &mut RememberedSession {
    if part.len() >= MOST && !part.contains_key(&key) {
        let oldest = part.iter().min_by_key(|(_, seen)| seen.last_at);
        if let Some(oldest) = oldest.map(|(key, _)| *key) {
            part.remove(&oldest);
        }
    }
    match part.entry(key) {
        Entry::Occupied(seen) => {
            let seen = seen.into_mut();
            seen.last_at = at;
            seen
        }
        Entry::Vacant(place) => {
            let facts = facts();
            place.insert(Box::new(RememberedSession {
                began_at: facts.created_at.map_or(at, millis),
                facts,
                card: None,
                last_at: at,
                requests: 0,
                calls: 0,
                has_ended: false,
                // Most sessions are opened, and not used.
                moments: VecDeque::with_capacity(1),
            }))
        }
    }
}

impl RememberedSession {
    fn note(&mut self, at: i64, kind: MomentKind, method: Option<Method>) {
        if kind == MomentKind::Request {
            self.requests += 1;
            self.calls += u64::from(method == Some(Method::ToolsCall));
        }
        if self.moments.len() == MOMENTS {
            self.moments.pop_front();
        }
        self.moments.push_back((at, kind, method));
    }

    fn shown(&self, key: SessionKey, node: &str, streams: u32) -> LiveSession {
        let facts = &self.facts;
        let card = self.card.as_ref();
        LiveSession {
            id: shown_id(key),
            is_session: facts.created_at.is_some(),
            revision: facts.revision.as_str().to_owned(),
            server: facts.server,
            subject: facts.owner.subject.to_string(),
            client_id: facts.owner.client_id.to_string(),
            client_name: card.map(|card| card.name.to_string()),
            client_version: card.and_then(|card| card.version.as_deref().map(str::to_owned)),
            began_at: self.began_at,
            last_at: self.last_at,
            requests: self.requests,
            calls: self.calls,
            streams,
            nodes: vec![node.to_owned()],
            has_ended: self.has_ended,
        }
    }
}

/// Stands for a client of the era without sessions on one server.
pub(crate) fn without_session(principal: Principal, server: ServerId) -> SessionKey {
    let mut key = principal.0;
    for (byte, other) in key.iter_mut().zip(server.uuid().as_bytes()) {
        *byte ^= other;
    }
    SessionKey(key)
}

/// The name of a session for people. The key itself is shown nowhere (AUTH-X1).
fn shown_id(key: SessionKey) -> String {
    hex(&digest(&key.0).as_bytes()[..16])
}

fn millis(at: Timestamp) -> i64 {
    i64::try_from(at.unix_timestamp_nanos() / 1_000_000).unwrap_or(i64::MAX)
}
