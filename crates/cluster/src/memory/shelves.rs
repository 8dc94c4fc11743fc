//! Things that are kept on shelves. The scripts `shelve.lua`, `kept.lua` and `shelf.lua` do the same.

use std::{collections::HashMap, time::Duration};

use bytes::Bytes;

use super::ms;
use crate::store::{Kept, Nonce, OnShelf, SessionKey, Shelve, Shelved, StreamKey, Version};

#[derive(Debug, Clone)]
struct Item {
    version: Version,
    until: u64,
    head: Bytes,
    rest: Bytes,
}

impl Item {
    fn len(&self) -> usize {
        self.head.len() + self.rest.len()
    }

    fn kept(&self, now: u64) -> Kept {
        Kept {
            version: self.version,
            left: Duration::from_millis(self.until.saturating_sub(now)),
            head: self.head.clone(),
            rest: self.rest.clone(),
        }
    }
}

/// The shelves of one lane.
#[derive(Debug, Clone, Default)]
pub(super) struct Shelves(HashMap<SessionKey, HashMap<Nonce, Item>>);

impl Shelves {
    pub(super) fn shelve(&mut self, item: StreamKey, shelve: &Shelve, now: u64) -> Shelved {
        let shelf = self.0.entry(item.session).or_default();
        shelf.retain(|_, item| item.until > now);
        let others = || shelf.iter().filter(|(nonce, _)| **nonce != item.nonce);
        let (items, bytes) = others().fold((0, 0), |(items, bytes), (_, other)| {
            (items + 1, bytes + other.len())
        });
        let old = shelf.get(&item.nonce);
        let new = match (old, shelve.expect) {
            (None, Some(_)) => {
                self.tidy(item.session);
                return Shelved::Unknown;
            }
            (None, None) => Item {
                version: Version(u32::try_from((now / 1000) & 0xffff_ffff).unwrap_or(0)),
                until: now + ms(shelve.life),
                head: shelve.head.clone(),
                rest: shelve.rest.clone().unwrap_or_default(),
            },
            (Some(old), expect) => {
                let next = expect.map(|version| Version(version.0.wrapping_add(1)));
                // A reply was lost.
                let is_same =
                    old.head == shelve.head && next.is_none_or(|next| next == old.version);
                if is_same {
                    return Shelved::Done(old.version);
                }
                match next.filter(|_| expect == Some(old.version)) {
                    None => return Shelved::Conflict(old.kept(now)),
                    Some(version) => Item {
                        version,
                        until: old.until,
                        head: shelve.head.clone(),
                        rest: shelve.rest.clone().unwrap_or_else(|| old.rest.clone()),
                    },
                }
            }
        };
        let before = old.map(Item::len);
        let grows = before.is_none_or(|before| new.len() > before);
        if (before.is_none() && items >= shelve.room.items)
            || (grows && bytes + new.len() > shelve.room.bytes)
        {
            self.tidy(item.session);
            return Shelved::Full;
        }
        let version = new.version;
        if new.until > now {
            shelf.insert(item.nonce, new);
        }
        self.tidy(item.session);
        Shelved::Done(version)
    }

    fn tidy(&mut self, shelf: SessionKey) {
        if self.0.get(&shelf).is_some_and(HashMap::is_empty) {
            self.0.remove(&shelf);
        }
    }

    pub(super) fn kept(&self, item: StreamKey, now: u64) -> Option<Kept> {
        let found = self.0.get(&item.session)?.get(&item.nonce)?;
        (found.until > now).then(|| found.kept(now))
    }

    pub(super) fn list(&self, shelf: SessionKey, now: u64) -> Vec<OnShelf> {
        let items = self.0.get(&shelf).into_iter().flatten();
        items
            .filter(|(_, item)| item.until > now)
            .map(|(nonce, item)| OnShelf {
                nonce: *nonce,
                left: Duration::from_millis(item.until - now),
                head: item.head.clone(),
            })
            .collect()
    }

    pub(super) fn purge(&mut self, now: u64) {
        self.0.retain(|_, items| {
            items.retain(|_, item| item.until > now);
            !items.is_empty()
        });
    }
}
