//! Names of keys and channels (STREAM-3).

use std::sync::OnceLock;

use crate::store::{NodeId, Nonce, PARTITIONS, Partition, Principal, SessionKey, StreamKey};

/// Slots of a Redis Cluster.
pub(super) const SLOTS: u16 = 16384;

/// Location of an operation's keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KeySlot {
    /// Slot of the keys.
    pub(super) slot: u16,
    /// Operations of the same turn keep their order.
    pub(super) turn: u8,
}

impl KeySlot {
    /// Location of the list of nodes.
    pub(super) fn of_nodes() -> Self {
        Self {
            slot: slot(NODES.as_bytes()),
            turn: 0,
        }
    }

    /// Location of a tenant's buckets.
    pub(super) fn of_shard(shard: &str) -> Self {
        Self {
            slot: slot(shard_tag(shard).as_bytes()),
            turn: 0,
        }
    }
}

impl From<Partition> for KeySlot {
    fn from(partition: Partition) -> Self {
        Self {
            slot: partition_slots()[usize::from(partition.0)],
            turn: partition.0,
        }
    }
}

/// Hash tag of the keys that all nodes share.
const NODES: &str = "nodes";

/// Hash tag of a tenant's buckets.
fn shard_tag(shard: &str) -> String {
    let shard = shard
        .replace('%', "%25")
        .replace('{', "%7b")
        .replace('}', "%7d");
    format!("q:{shard}")
}

fn partition_slots() -> &'static [u16] {
    static SLOTS_OF_LANES: OnceLock<Vec<u16>> = OnceLock::new();
    SLOTS_OF_LANES.get_or_init(|| tags().iter().map(|tag| slot(tag.as_bytes())).collect())
}

/// Builds the names of keys under one prefix.
#[derive(Debug, Clone)]
pub(super) struct Keys {
    prefix: String,
}

impl Keys {
    pub(super) fn new(prefix: &str) -> Self {
        Self {
            prefix: prefix.to_owned(),
        }
    }

    /// Prefix `pl1:{<n>}:` of every key of a partition.
    pub(super) fn partition(&self, partition: Partition) -> String {
        format!("{}:{{{}}}:", self.prefix, tags()[usize::from(partition.0)])
    }

    /// The key of this kind of a session, in one buffer: every request of a session needs one.
    fn of_session(&self, kind: &str, session: SessionKey) -> String {
        let tag = &tags()[usize::from(session.partition().0)];
        let length = self.prefix.len() + tag.len() + kind.len() + 2 * session.0.len() + 5;
        let mut key = String::with_capacity(length);
        for part in [&*self.prefix, ":{", tag, "}:", kind, ":"] {
            key.push_str(part);
        }
        push_hex(&session.0, &mut key);
        key
    }

    pub(super) fn session(&self, session: SessionKey) -> String {
        self.of_session("s", session)
    }

    pub(super) fn meta(&self, stream: StreamKey) -> String {
        format!("{}{}", self.metas(stream.session), hex(&stream.nonce.0))
    }

    pub(super) fn events(&self, stream: StreamKey) -> String {
        format!(
            "{}e:{}",
            self.partition(stream.session.partition()),
            member(stream)
        )
    }

    /// Prefix before the nonce in the meta keys of a session.
    pub(super) fn metas(&self, session: SessionKey) -> String {
        format!(
            "{}m:{}:",
            self.partition(session.partition()),
            hex(&session.0)
        )
    }

    /// Index of a session's streams.
    pub(super) fn index(&self, session: SessionKey) -> String {
        self.of_session("x", session)
    }

    /// Running requests of a session.
    pub(super) fn running(&self, session: SessionKey) -> String {
        self.of_session("f", session)
    }

    /// Questions to the client of a session.
    pub(super) fn questions(&self, session: SessionKey) -> String {
        self.of_session("q", session)
    }

    /// Records of one list.
    pub(super) fn records(&self, shelf: SessionKey) -> String {
        self.of_session("k", shelf)
    }

    /// Rest of a record.
    pub(super) fn rest(&self, item: StreamKey) -> String {
        format!(
            "{}r:{}",
            self.partition(item.session.partition()),
            member(item)
        )
    }

    /// Open streams of a node in a partition; `None`: streams without an owner.
    pub(super) fn owned(&self, partition: Partition, node: Option<NodeId>) -> Vec<u8> {
        let mut key = format!("{}o:", self.partition(partition)).into_bytes();
        key.extend_from_slice(owner(node.as_ref()));
        key
    }

    pub(super) fn members(&self) -> String {
        format!("{}:{{{NODES}}}:z", self.prefix)
    }

    pub(super) fn incarnation(&self) -> String {
        format!("{}:{{{NODES}}}:i", self.prefix)
    }

    /// Bucket of a limit. All buckets of one shard are in one slot.
    pub(super) fn bucket(&self, shard: &str, bucket: &str) -> String {
        format!("{}:{{{}}}:{bucket}", self.prefix, shard_tag(shard))
    }

    /// Sessions of a principal, in all partitions.
    pub(super) fn sessions(&self, principal: Principal) -> String {
        self.bucket(&hex(&principal.0), "s")
    }

    /// Prefix before the node in the name of its channel.
    pub(super) fn channels(&self) -> String {
        format!("{}:d:", self.prefix)
    }

    pub(super) fn channel(&self, node: NodeId) -> Vec<u8> {
        let mut name = self.channels().into_bytes();
        name.extend_from_slice(&node.0);
        name
    }
}

/// Text of an owner, or `-`.
pub(super) fn owner(node: Option<&NodeId>) -> &[u8] {
    node.map_or(b"-", |node| &node.0)
}

/// Name of a stream within its partition.
pub(super) fn member(stream: StreamKey) -> String {
    format!("{}:{}", hex(&stream.session.0), hex(&stream.nonce.0))
}

pub(super) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    push_hex(bytes, &mut text);
    text
}

fn push_hex(bytes: &[u8], text: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        for digit in [byte >> 4, byte & 0xf] {
            text.push(char::from(DIGITS[usize::from(digit)]));
        }
    }
}

pub(super) fn unhex<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    if text.len() != N * 2 {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = u8::try_from(digit(pair[0])? * 16 + digit(pair[1])?).ok()?;
    }
    Some(bytes)
}

/// Parses `session:nonce`.
pub(super) fn parse_member(text: &[u8]) -> Option<StreamKey> {
    let (session, nonce) = text.split_at_checked(32)?;
    Some(StreamKey {
        session: SessionKey(unhex(session)?),
        nonce: Nonce(unhex(nonce.strip_prefix(b":")?)?),
    })
}

/// Hash tag of each partition: the smallest number, in base 36, whose slot is in the partition's
/// range. Partitions are thus spread evenly over the shards of a cluster.
fn tags() -> &'static [String] {
    static TAGS: OnceLock<Vec<String>> = OnceLock::new();
    TAGS.get_or_init(|| {
        let mut tags = vec![String::new(); usize::from(PARTITIONS)];
        let mut missing = tags.len();
        for number in 0_u32.. {
            let tag = base36(number);
            let partition = usize::from(slot(tag.as_bytes()) / (SLOTS / PARTITIONS));
            if tags[partition].is_empty() {
                tags[partition] = tag;
                missing -= 1;
                if missing == 0 {
                    break;
                }
            }
        }
        tags
    })
}

fn base36(mut number: u32) -> String {
    let mut digits = Vec::new();
    loop {
        digits.push(char::from_digit(number % 36, 36).unwrap_or('0'));
        number /= 36;
        if number == 0 {
            return digits.iter().rev().collect();
        }
    }
}

/// Slot of a key: CRC-16/XMODEM modulo the number of slots, as in Redis Cluster.
fn slot(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0_u16, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc, _| {
            if crc & 0x8000 == 0 {
                crc << 1
            } else {
                (crc << 1) ^ 0x1021
            }
        })
    }) % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tags_of_lanes_never_change() {
        // STREAM-3: another table would lead to other keys, and lose every session.
        assert_eq!(slot(b"123456789"), 0x31c3);
        assert_eq!(slot(b"foo"), 12182, "from the Cluster specification");
        let tags = tags();
        let all = tags.join(" ");
        assert_eq!(
            (&tags[0][..], &tags[1][..], &tags[127][..], &tags[255][..]),
            PINNED
        );
        assert_eq!(slot(all.as_bytes()), PINNED_SUM, "of all tags, joined");
        for (partition, tag) in tags.iter().enumerate() {
            let place = KeySlot::from(Partition(u8::try_from(partition).expect("256")));
            assert_eq!(place.slot, slot(tag.as_bytes()));
            assert_eq!(usize::from(slot(tag.as_bytes()) / 64), partition);
            assert!(tag.len() <= 3);
        }
    }

    const PINNED: (&str, &str, &str, &str) = ("cv", "14", "z", "fv");
    const PINNED_SUM: u16 = 7815;

    /// STREAM-3: every script names keys of one slot, so that the same names work in a cluster.
    #[test]
    fn all_keys_of_a_session_are_in_the_slot_of_its_lane() {
        let keys = Keys::new("pl1");
        for first in 0..=255 {
            let mut session = SessionKey([0x7b; 16]);
            session.0[0] = first;
            let stream = StreamKey {
                session,
                nonce: Nonce([0x7d; 8]),
            };
            let partition = session.partition();
            let node = NodeId([b'}'; 14]);
            let owned = String::from_utf8(keys.owned(partition, Some(node))).expect("text");
            let names = [
                keys.session(session),
                keys.meta(stream),
                keys.events(stream),
                keys.index(session),
                keys.running(session),
                keys.questions(session),
                keys.records(session),
                keys.rest(stream),
                owned,
                format!("{}{}", keys.metas(session), hex(&stream.nonce.0)),
                format!("{}m:{}", keys.partition(partition), member(stream)),
            ];
            for name in names {
                let tag = name
                    .split_once('{')
                    .and_then(|(_, rest)| rest.split_once('}'))
                    .map(|(tag, _)| tag)
                    .expect("a tag");
                assert_eq!(slot(tag.as_bytes()) / 64, u16::from(first), "{name}");
            }
        }
    }

    #[test]
    fn names_are_read_back_as_written() {
        let stream = StreamKey {
            session: SessionKey([0xa5; 16]),
            nonce: Nonce([0x0f; 8]),
        };
        assert_eq!(parse_member(member(stream).as_bytes()), Some(stream));
        for wrong in ["", ":", "a5", &"é".repeat(20), &"z".repeat(49)] {
            assert_eq!(parse_member(wrong.as_bytes()), None, "{wrong}");
        }
        let keys = Keys::new("pl1");
        assert_eq!(
            keys.bucket("a}b{c%", "x"),
            "pl1:{q:a%7db%7bc%25}:x",
            "no tenant reaches another slot"
        );
        assert_eq!(
            KeySlot::of_shard("a}b{c%").slot,
            slot(b"q:a%7db%7bc%25"),
            "sent where it is"
        );
    }
}
