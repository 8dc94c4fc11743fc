//! Records of sessions. Made lazily, bounded for each owner, and not missed when they are gone: the id of a session can
//! rebuild it. Only a tombstone cannot be lost within this process, because it is what makes an ended session stay ended.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use portolan_model::{Digest, Timestamp};
use time::Duration;

use crate::{SessionKey, lock};

/// How long records live, and how many.
#[derive(Debug, Clone, Copy)]
pub struct SessionLimits {
    /// A record that nobody used for so long is dropped.
    pub idle: Duration,
    /// Tombstones are kept for so long after the session was made: an older id is refused anyway.
    pub absolute: Duration,
    /// Most records of one owner; the one that was used longest ago makes room.
    pub per_owner: usize,
    /// Most tombstones; beyond it the oldest is forgotten, and with it only that its session had ended.
    pub tombstones: usize,
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self {
            idle: Duration::hours(24),
            absolute: Duration::days(30),
            per_owner: 64,
            tombstones: 200_000,
        }
    }
}

/// A session as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRecord {
    /// Whose it is. Anybody else is told that there is none.
    pub owner: Digest,
    /// What its service wrote.
    pub body: Bytes,
    /// When the session was made.
    pub created_at: Timestamp,
    /// When it was last used.
    pub last_used_at: Timestamp,
}

/// What is known of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// A record.
    Record(SessionRecord),
    /// Nothing: never kept here, dropped, or evicted. Whoever can prove the id may rebuild it.
    Nothing,
    /// It was ended.
    Ended,
}

#[derive(Debug, Default)]
struct Table {
    records: HashMap<SessionKey, SessionRecord>,
    /// Keys of each owner, the longest unused first. Short lists: `per_owner` bounds them.
    owners: HashMap<Digest, VecDeque<SessionKey>>,
    /// Until when each ended session is remembered.
    ended: HashMap<SessionKey, Timestamp>,
    ended_order: VecDeque<SessionKey>,
}

/// The sessions of this process. Cheap to clone; clones share.
#[derive(Debug, Clone)]
pub struct Sessions {
    table: Arc<Mutex<Table>>,
    limits: SessionLimits,
}

impl Sessions {
    /// An empty store.
    pub fn new(limits: SessionLimits) -> Self {
        Self {
            table: Arc::default(),
            limits,
        }
    }

    /// Looks a session up and counts that as use.
    pub fn touch(&self, key: SessionKey, now: Timestamp) -> Found {
        let mut table = lock(&self.table);
        if table.ended.get(&key).is_some_and(|until| *until > now) {
            return Found::Ended;
        }
        let Some(record) = table.records.get_mut(&key) else {
            return Found::Nothing;
        };
        if now - record.last_used_at >= self.limits.idle {
            table.drop_record(key);
            return Found::Nothing;
        }
        record.last_used_at = now;
        let record = record.clone();
        if let Some(keys) = table.owners.get_mut(&record.owner)
            && keys.back() != Some(&key)
        {
            keys.retain(|known| *known != key);
            keys.push_back(key);
        }
        Found::Record(record)
    }

    /// True if the session was ended: the one look-up that every request of a session costs.
    pub fn is_ended(&self, key: SessionKey, now: Timestamp) -> bool {
        lock(&self.table)
            .ended
            .get(&key)
            .is_some_and(|until| *until > now)
    }

    /// Keeps a session, new or changed. Refused (false) if it was ended meanwhile or is another owner's.
    pub fn put(
        &self,
        key: SessionKey,
        owner: Digest,
        body: Bytes,
        created_at: Timestamp,
        now: Timestamp,
    ) -> bool {
        let mut table = lock(&self.table);
        if table.ended.contains_key(&key) {
            return false;
        }
        if let Some(record) = table.records.get_mut(&key) {
            if record.owner != owner {
                return false;
            }
            record.body = body;
            record.last_used_at = now;
            return true;
        }
        table.records.insert(
            key,
            SessionRecord {
                owner,
                body,
                created_at,
                last_used_at: now,
            },
        );
        let keys = table.owners.entry(owner).or_default();
        keys.push_back(key);
        let evicted = if keys.len() > self.limits.per_owner {
            keys.pop_front()
        } else {
            None
        };
        if let Some(evicted) = evicted {
            table.records.remove(&evicted);
        }
        true
    }

    /// Ends a session for good. `created_at` decides how long that must be remembered.
    pub fn end(&self, key: SessionKey, created_at: Timestamp, now: Timestamp) {
        let mut table = lock(&self.table);
        table.drop_record(key);
        let until = (created_at + self.limits.absolute).max(now);
        if table.ended.insert(key, until).is_none() {
            table.ended_order.push_back(key);
        }
        while table.ended.len() > self.limits.tombstones
            && let Some(oldest) = table.ended_order.pop_front()
        {
            table.ended.remove(&oldest);
        }
    }

    /// Drops idle records and tombstones that are no longer needed. Returns the number of records left.
    pub fn purge(&self, now: Timestamp) -> usize {
        let mut table = lock(&self.table);
        let idle: Vec<SessionKey> = table
            .records
            .iter()
            .filter(|(_, record)| now - record.last_used_at >= self.limits.idle)
            .map(|(key, _)| *key)
            .collect();
        for key in idle {
            table.drop_record(key);
        }
        let Table {
            ended, ended_order, ..
        } = &mut *table;
        ended.retain(|_, until| *until > now);
        ended_order.retain(|key| ended.contains_key(key));
        table.records.len()
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        lock(&self.table).records.len()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Table {
    fn drop_record(&mut self, key: SessionKey) {
        let Some(record) = self.records.remove(&key) else {
            return;
        };
        if let Some(keys) = self.owners.get_mut(&record.owner) {
            keys.retain(|known| *known != key);
            if keys.is_empty() {
                self.owners.remove(&record.owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;
    const OWNER: Digest = Digest::from_bytes([1; 32]);
    const OTHER: Digest = Digest::from_bytes([2; 32]);

    fn sessions() -> Sessions {
        Sessions::new(SessionLimits {
            per_owner: 2,
            tombstones: 2,
            ..SessionLimits::default()
        })
    }

    fn key(n: u8) -> SessionKey {
        SessionKey([n; 16])
    }

    #[test]
    fn a_record_is_found_until_it_was_idle_for_a_day() {
        let sessions = sessions();
        assert!(sessions.put(key(1), OWNER, Bytes::from_static(b"x"), NOW, NOW));
        let Found::Record(record) = sessions.touch(key(1), NOW + Duration::hours(23)) else {
            panic!("gone")
        };
        assert_eq!(record.body, "x");
        assert!(
            matches!(
                sessions.touch(key(1), NOW + Duration::hours(46)),
                Found::Record(_)
            ),
            "use prolongs it"
        );
        assert_eq!(
            sessions.touch(key(1), NOW + Duration::hours(70)),
            Found::Nothing
        );
        assert!(sessions.is_empty());
    }

    #[test]
    fn an_ended_session_stays_ended_for_its_absolute_life() {
        let sessions = sessions();
        sessions.put(key(1), OWNER, Bytes::new(), NOW, NOW);
        sessions.end(key(1), NOW, NOW);
        assert_eq!(
            sessions.touch(key(1), NOW + Duration::days(29)),
            Found::Ended
        );
        assert!(sessions.is_ended(key(1), NOW));
        assert!(
            !sessions.put(key(1), OWNER, Bytes::new(), NOW, NOW),
            "it cannot be brought back"
        );
        sessions.purge(NOW + Duration::days(30));
        assert_eq!(
            sessions.touch(key(1), NOW + Duration::days(30)),
            Found::Nothing
        );
    }

    #[test]
    fn the_session_used_longest_ago_makes_room_and_no_other_owner_pays() {
        let sessions = sessions();
        sessions.put(key(9), OTHER, Bytes::new(), NOW, NOW);
        sessions.put(key(1), OWNER, Bytes::new(), NOW, NOW);
        sessions.put(key(2), OWNER, Bytes::new(), NOW, NOW);
        sessions.touch(key(1), NOW);
        sessions.put(key(3), OWNER, Bytes::new(), NOW, NOW);
        assert_eq!(
            sessions.touch(key(2), NOW),
            Found::Nothing,
            "clients.md 3: evicted, to be rebuilt on demand"
        );
        for kept in [key(1), key(3), key(9)] {
            assert!(matches!(sessions.touch(kept, NOW), Found::Record(_)));
        }
    }

    #[test]
    fn a_record_cannot_be_taken_over_by_another_owner() {
        let sessions = sessions();
        sessions.put(key(1), OWNER, Bytes::from_static(b"mine"), NOW, NOW);
        assert!(!sessions.put(key(1), OTHER, Bytes::from_static(b"theirs"), NOW, NOW));
        let Found::Record(record) = sessions.touch(key(1), NOW) else {
            panic!("gone")
        };
        assert_eq!((record.owner, &record.body[..]), (OWNER, &b"mine"[..]));
    }

    #[test]
    fn tombstones_are_bounded() {
        let sessions = sessions();
        for n in 1..=3 {
            sessions.end(key(n), NOW, NOW);
        }
        assert!(!sessions.is_ended(key(1), NOW), "the oldest made room");
        assert!(sessions.is_ended(key(2), NOW) && sessions.is_ended(key(3), NOW));
    }
}
