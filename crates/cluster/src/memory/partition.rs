//! Sessions of one partition and their data.

use std::collections::{BTreeSet, HashMap, VecDeque};

use bytes::Bytes;

use super::{ms, records::Records};
use crate::{
    Map,
    store::{
        Begin, Bounds, Epoch, Event, Fresh, NodeId, NodeMessage, Nonce, Principal, Remove,
        SessionKey, StreamKey, StreamState, Update, Version,
    },
};

/// Input of an operation, and the messages that it sends.
pub(super) struct Moment<'a> {
    /// Unix time, ms.
    pub(super) now: u64,
    pub(super) bounds: &'a Bounds,
    pub(super) notified: Vec<(NodeId, NodeMessage)>,
}

impl Moment<'_> {
    pub(super) fn notify(&mut self, node: NodeId, message: NodeMessage) {
        self.notified.push((node, message));
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct Partition {
    pub(super) sessions: Map<SessionKey, Session>,
    /// Open streams by owner.
    pub(super) owned: HashMap<Option<NodeId>, BTreeSet<(SessionKey, Nonce)>>,
    pub(super) records: Records,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Session {
    pub(super) record: Option<SessionRecord>,
    /// End of the tombstone.
    pub(super) ended_until: Option<u64>,
    pub(super) streams: Map<Nonce, Stream>,
    pub(super) running: Map<String, RegisteredCall>,
    pub(super) questions: Map<String, Question>,
    /// No entry expires before this time.
    earliest: u64,
}

#[derive(Debug, Clone)]
pub(super) struct SessionRecord {
    pub(super) principal: Principal,
    pub(super) version: Version,
    pub(super) body: Bytes,
    pub(super) until: u64,
}

#[derive(Debug, Clone)]
pub(super) struct Stream {
    pub(super) owner: Option<NodeId>,
    pub(super) epoch: Epoch,
    pub(super) epochs: Vec<(u64, Epoch)>,
    pub(super) state: StreamState,
    pub(super) tail: u64,
    pub(super) bytes: usize,
    pub(super) dropped: u64,
    pub(super) attached: Option<NodeId>,
    pub(super) generation: u64,
    pub(super) deadline: u64,
    pub(super) until: u64,
    pub(super) about: Bytes,
    pub(super) has_final: bool,
    pub(super) events: VecDeque<Event>,
}

/// Entry of the running requests.
#[derive(Debug, Clone)]
pub(super) enum RegisteredCall {
    Request {
        node: NodeId,
        stream: Option<Nonce>,
        until: u64,
        cancelled: bool,
    },
    /// Cancellation of an unknown request.
    Tombstone { until: u64 },
}

impl RegisteredCall {
    pub(super) const fn until(&self) -> u64 {
        match self {
            Self::Request { until, .. } | Self::Tombstone { until } => *until,
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Question {
    pub(super) stream: Nonce,
    pub(super) answer: Option<Bytes>,
}

impl Session {
    /// Schedules the next sweep at `until` at the latest.
    pub(super) fn ends_at(&mut self, until: u64) {
        self.earliest = self.earliest.min(until);
    }

    fn is_empty(&self) -> bool {
        self.record.is_none()
            && self.ended_until.is_none()
            && self.streams.is_empty()
            && self.running.is_empty()
    }

    /// Removes expired data. Returns the open streams among it.
    fn sweep(&mut self, now: u64) -> Vec<(Option<NodeId>, Nonce)> {
        if now < self.earliest {
            return Vec::new();
        }
        self.ended_until = self.ended_until.filter(|until| *until > now);
        self.record = self.record.take().filter(|record| record.until > now);
        self.running.retain(|_, entry| entry.until() > now);
        let mut over = Vec::new();
        self.streams.retain(|nonce, stream| {
            let lives = stream.until > now;
            if !lives {
                over.push((stream.owner, *nonce));
            }
            lives
        });
        if !over.is_empty() {
            let streams = &self.streams;
            self.questions
                .retain(|_, question| streams.contains_key(&question.stream));
        }
        self.earliest = self
            .streams
            .values()
            .map(|stream| stream.until)
            .chain(self.running.values().map(RegisteredCall::until))
            .chain(self.ended_until)
            .chain(self.record.as_ref().map(|record| record.until))
            .min()
            .unwrap_or(u64::MAX);
        over
    }

    /// Whether the session has ended or belongs to another principal. A session without a record is
    /// not refused, because its authentic id names the principal.
    pub(super) fn refuses(&self, principal: Principal) -> bool {
        self.ended_until.is_some()
            || self
                .record
                .as_ref()
                .is_some_and(|record| record.principal != principal)
    }
}

impl Partition {
    /// Number of sessions with any data.
    pub(super) fn len(&self) -> usize {
        self.sessions.len()
    }

    /// The session as of now; `None` if it has no data.
    pub(super) fn session(&mut self, key: SessionKey, now: u64) -> Option<&mut Session> {
        let session = self.sessions.get_mut(&key)?;
        let over = session.sweep(now);
        if session.is_empty() {
            self.sessions.remove(&key);
        }
        for (owner, nonce) in over {
            self.disown(owner, (key, nonce));
        }
        self.sessions.get_mut(&key)
    }

    /// The session as of now; created if it has no data.
    pub(super) fn session_or_new(&mut self, key: SessionKey, now: u64) -> &mut Session {
        self.session(key, now);
        self.sessions.entry(key).or_insert_with(|| Session {
            earliest: u64::MAX,
            ..Session::default()
        })
    }

    pub(super) fn own(&mut self, owner: Option<NodeId>, stream: (SessionKey, Nonce)) {
        self.owned.entry(owner).or_default().insert(stream);
    }

    pub(super) fn disown(&mut self, owner: Option<NodeId>, stream: (SessionKey, Nonce)) {
        if let Some(streams) = self.owned.get_mut(&owner) {
            streams.remove(&stream);
            if streams.is_empty() {
                self.owned.remove(&owner);
            }
        }
    }

    pub(super) fn purge(&mut self, now: u64) {
        self.records.purge(now);
        let keys: Vec<SessionKey> = self.sessions.keys().copied().collect();
        for key in keys {
            self.session(key, now);
        }
    }

    pub(super) fn begin(
        &mut self,
        key: SessionKey,
        principal: Principal,
        known: Option<Version>,
        fresh: &Fresh,
        moment: &mut Moment<'_>,
    ) -> Begin {
        let (now, idle, life) = (moment.now, ms(moment.bounds.idle), ms(fresh.life));
        if life == 0 {
            return Begin::Unknown;
        }
        let until = now + idle.min(life);
        let session = self.session_or_new(key, now);
        if session.refuses(principal) {
            return Begin::Unknown;
        }
        let Some(record) = &mut session.record else {
            // Seconds, so that no later record of this session has the version of another body.
            let version = Version(u32::try_from((now / 1000) & 0xffff_ffff).unwrap_or(0));
            session.record = Some(SessionRecord {
                principal,
                version,
                body: fresh.body.clone(),
                until,
            });
            session.ends_at(until);
            return Begin::Rebuilt { version };
        };
        if until.saturating_sub(record.until) >= ms(moment.bounds.touch()) {
            record.until = until;
        }
        let version = record.version;
        let body = (known != Some(version)).then(|| record.body.clone());
        Begin::Alive { version, body }
    }

    pub(super) fn update(
        &mut self,
        key: SessionKey,
        principal: Principal,
        expect: Version,
        body: Bytes,
        moment: &mut Moment<'_>,
    ) -> Update {
        let record = self
            .session(key, moment.now)
            .filter(|session| !session.refuses(principal))
            .and_then(|session| session.record.as_mut());
        let Some(record) = record else {
            return Update::Unknown;
        };
        if record.version != expect {
            return Update::Conflict {
                version: record.version,
                body: record.body.clone(),
            };
        }
        record.version = Version(expect.0.wrapping_add(1));
        record.body = body;
        Update::Done(record.version)
    }

    pub(super) fn remove(
        &mut self,
        key: SessionKey,
        principal: Principal,
        remove: Remove,
        moment: &mut Moment<'_>,
    ) -> bool {
        let (now, idle) = (moment.now, ms(moment.bounds.idle));
        let session = self.session_or_new(key, now);
        if session.refuses(principal) {
            return false;
        }
        let life = match remove {
            Remove::Unused(time) => {
                let used_since = now + idle.saturating_sub(ms(time));
                let record = session.record.take();
                session.record = record.filter(|record| record.until > used_since);
                let is_removed = session.record.is_none();
                self.session(key, now);
                return is_removed;
            }
            Remove::Ended(life) => life,
        };
        let mut nodes = BTreeSet::new();
        for stream in session.streams.values() {
            nodes.extend(stream.owner);
            nodes.extend(stream.attached);
        }
        for entry in session.running.values() {
            if let RegisteredCall::Request { node, .. } = entry {
                nodes.insert(*node);
            }
        }
        let owned: Vec<_> = session
            .streams
            .iter()
            .map(|(nonce, stream)| (stream.owner, *nonce))
            .collect();
        for (owner, nonce) in owned {
            self.disown(owner, (key, nonce));
        }
        let until = now + ms(life);
        self.sessions.insert(
            key,
            Session {
                ended_until: Some(until),
                earliest: until,
                ..Session::default()
            },
        );
        self.session(key, now);
        for node in nodes {
            moment.notify(node, NodeMessage::Ended { session: key });
        }
        true
    }

    pub(super) fn stream(&mut self, key: StreamKey, now: u64) -> Option<&mut Stream> {
        self.session(key.session, now)?.streams.get_mut(&key.nonce)
    }
}
