//! Records. The scripts `put_record.lua` and `records.lua` have the same rules.

use std::{collections::HashMap, time::Duration};

use bytes::Bytes;

use super::ms;
use crate::store::{Nonce, PutRecord, Record, RecordPut, SessionKey, StreamKey, Version};

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

    fn record(&self, nonce: Nonce, now: u64) -> Record {
        Record {
            nonce,
            version: self.version,
            left: Duration::from_millis(self.until.saturating_sub(now)),
            head: self.head.clone(),
            rest: self.rest.clone(),
        }
    }
}

/// Records of one partition, by list.
#[derive(Debug, Clone, Default)]
pub(super) struct Records(HashMap<SessionKey, HashMap<Nonce, Item>>);

impl Records {
    pub(super) fn put_record(
        &mut self,
        item: StreamKey,
        put_record: &PutRecord,
        now: u64,
    ) -> RecordPut {
        let shelf = self.0.entry(item.session).or_default();
        shelf.retain(|_, item| item.until > now);
        let others = || shelf.iter().filter(|(nonce, _)| **nonce != item.nonce);
        let (items, bytes) = others().fold((0, 0), |(items, bytes), (_, other)| {
            (items + 1, bytes + other.len())
        });
        let old = shelf.get(&item.nonce);
        let new = match (old, put_record.expect) {
            (None, Some(_)) => {
                self.tidy(item.session);
                return RecordPut::Unknown;
            }
            (None, None) => Item {
                version: Version(u32::try_from((now / 1000) & 0xffff_ffff).unwrap_or(0)),
                until: now + ms(put_record.life),
                head: put_record.head.clone(),
                rest: put_record.rest.clone().unwrap_or_default(),
            },
            (Some(old), expect) => {
                let next = expect.map(|version| Version(version.0.wrapping_add(1)));
                // A repetition after a lost reply.
                let is_same =
                    old.head == put_record.head && next.is_none_or(|next| next == old.version);
                if is_same {
                    return RecordPut::Done(old.version);
                }
                match next.filter(|_| expect == Some(old.version)) {
                    None => return RecordPut::Conflict(old.record(item.nonce, now)),
                    Some(version) => Item {
                        version,
                        until: old.until,
                        head: put_record.head.clone(),
                        rest: put_record.rest.clone().unwrap_or_else(|| old.rest.clone()),
                    },
                }
            }
        };
        let before = old.map(Item::len);
        let grows = before.is_none_or(|before| new.len() > before);
        if (before.is_none() && items >= put_record.room.items)
            || (grows && bytes + new.len() > put_record.room.bytes)
        {
            self.tidy(item.session);
            return RecordPut::Full;
        }
        let version = new.version;
        if new.until > now {
            shelf.insert(item.nonce, new);
        }
        self.tidy(item.session);
        RecordPut::Done(version)
    }

    fn tidy(&mut self, shelf: SessionKey) {
        if self.0.get(&shelf).is_some_and(HashMap::is_empty) {
            self.0.remove(&shelf);
        }
    }

    pub(super) fn list(&self, list: SessionKey, name: Option<Nonce>, now: u64) -> Vec<Record> {
        let items = self.0.get(&list).into_iter().flatten();
        items
            .filter(|(nonce, item)| name.is_none_or(|name| name == **nonce) && item.until > now)
            .map(|(nonce, item)| {
                let mut record = item.record(*nonce, now);
                if name.is_none() {
                    record.rest.clear();
                }
                record
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
