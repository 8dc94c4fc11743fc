//! Random walks: operations on a store, drawn by proptest, and the comparison of the replies of two
//! stores.

use std::{collections::HashMap, time::Duration};

use bytes::Bytes;
use portolan_cluster::store::{
    Append, Appended, Attached, Begin, Class, Create, Cursor, Epoch, Fresh, NewEvent, NodeId,
    Nonce, Principal, Read, ReadWanted, Registered, Result, Routed, SessionKey, Store, StreamKey,
    StreamState, TakeOver, TakeTokens, TakenOver, TakenTokens, Update, Version,
};
use proptest::prelude::*;

use crate::fixture::names::{A, B, C, LIFE, ME, MINUTE, OTHER, Remove, S};

/// Operation of a walk. Versions count from 0 for each record.
#[derive(Debug, Clone)]
pub(crate) enum Op {
    Begin(SessionKey, Principal, Option<u32>, Bytes),
    Update(SessionKey, Principal, u32, Bytes),
    End(SessionKey, Principal),
    Append(StreamKey, Append),
    Attach(StreamKey, Principal, Cursor, NodeId),
    Read(Vec<ReadWanted>),
    TakeOver(TakeOver),
    OwnedBy(SessionKey, Option<NodeId>),
    Register(SessionKey, String, NodeId, Option<Nonce>),
    Unregister(SessionKey, String),
    Cancel(SessionKey, Principal, String),
    Answer(SessionKey, Principal, String, Bytes),
    TakeAnswer(SessionKey, String),
    TakenTokens(Vec<TakeTokens>),
    /// Time passes. Only for stores with a test clock.
    Pass(Duration),
}

/// Result of an operation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Outcome {
    Begin(Begin),
    Update(Update),
    Append(Appended),
    Attach(Attached),
    Read(Vec<Read>),
    TakeOver(TakenOver),
    OwnedBy(Vec<StreamKey>),
    Register(Registered),
    Routed(Routed),
    Answer(Option<Bytes>),
    TakenTokens(Vec<TakenTokens>),
    Nothing,
}

/// Random values of a step. [`Draw::op`] makes an operation of them that fits the state, or nearly.
#[derive(Debug, Clone)]
pub(crate) struct Draw {
    kind: u8,
    session: u8,
    nonce: u8,
    node: u8,
    other_node: u8,
    /// Usually 0, which means correct arguments.
    wrong: u8,
    size: u8,
    classes: Vec<u8>,
    name: u8,
    epoch_nonce: u16,
    seq: i8,
}

/// Known facts about a stream.
#[derive(Debug, Clone, Default)]
pub(crate) struct Facts {
    pub(crate) version: u32,
    pub(crate) owner: Option<NodeId>,
    pub(crate) epoch: Option<Epoch>,
    pub(crate) epochs: Vec<(u64, Epoch)>,
    pub(crate) tail: u64,
    pub(crate) generation: u64,
}

pub(crate) fn draws(most: usize) -> impl Strategy<Value = Vec<Draw>> {
    prop::collection::vec(draw(), 1..most)
}

fn draw() -> impl Strategy<Value = Draw> {
    (
        (0..120_u8, 0..2_u8, 0..2_u8, 0..3_u8, 0..4_u8),
        (0..12_u8, any::<u8>()),
        prop::collection::vec(0..10_u8, 0..5),
        (0..3_u8, 0..4_u16, -3..3_i8),
    )
        .prop_map(
            |(
                (kind, session, nonce, node, other_node),
                (wrong, size),
                classes,
                (name, epoch_nonce, seq),
            )| Draw {
                kind,
                session,
                nonce,
                node,
                other_node,
                wrong,
                size,
                classes,
                name,
                epoch_nonce,
                seq,
            },
        )
}

const NODES: [NodeId; 3] = [A, B, C];

impl Draw {
    fn session(&self) -> SessionKey {
        let mut key = S;
        key.0[15] ^= self.session;
        key
    }

    pub(crate) fn stream(&self) -> StreamKey {
        StreamKey {
            session: self.session(),
            nonce: Nonce([self.nonce; 8]),
        }
    }

    fn principal(&self) -> Principal {
        if self.wrong == 1 { OTHER } else { ME }
    }

    fn node(&self) -> NodeId {
        NODES[usize::from(self.node)]
    }

    fn payload(&self, salt: u8) -> Bytes {
        let size = match self.size {
            0..=20 => 0,
            21..=200 => usize::from(self.size),
            201..=240 => 4 * 1024 - 100 + usize::from(self.size) / 2,
            _ => 60_000,
        };
        // The block is copied: without optimisation, a step for each byte takes most of a walk.
        let block: Vec<u8> = (0..=u8::MAX)
            .map(|n| n.wrapping_mul(7).wrapping_add(salt))
            .collect();
        let mut bytes = block.repeat(size.div_ceil(block.len()));
        bytes.truncate(size);
        bytes.into()
    }

    fn question(&self) -> String {
        format!("q{}|\0{}", self.name, self.nonce)
    }

    fn epoch(&self, facts: &Facts) -> Epoch {
        let known = facts.epoch.unwrap_or(Epoch::FIRST);
        match self.wrong {
            2 => Epoch {
                term: known.term + 1,
                nonce: self.epoch_nonce,
            },
            3 if facts.epoch.is_some() => Epoch {
                nonce: known.nonce ^ 1,
                ..known
            },
            4 => facts
                .epochs
                .first()
                .map_or(Epoch::FIRST, |(_, epoch)| *epoch),
            5 => Epoch::FIRST,
            _ => known,
        }
    }

    fn seq(&self, facts: &Facts) -> u64 {
        facts
            .tail
            .saturating_add_signed(i64::from(self.seq))
            .min(facts.tail + 2)
    }

    fn cursor(&self, facts: &Facts) -> Cursor {
        match self.wrong {
            6 => Cursor {
                seq: 0,
                epoch: None,
            },
            7 => Cursor {
                seq: u64::MAX,
                epoch: Some(Epoch {
                    term: 2,
                    nonce: self.epoch_nonce,
                }),
            },
            _ => Cursor {
                seq: self.seq(facts),
                epoch: Some(self.epoch(facts)),
            },
        }
    }

    fn append(&self, facts: &Facts) -> Append {
        let events = self
            .classes
            .iter()
            .zip(0_u8..)
            .map(|(class, n)| {
                let class = match class {
                    0..=5 => Class::Notification,
                    6 | 7 => Class::Question,
                    8 => Class::Answer,
                    _ => Class::Final,
                };
                NewEvent {
                    class,
                    question: (class == Class::Question).then(|| self.question()),
                    payload: self.payload(n),
                }
            })
            .collect();
        let start = if self.wrong == 8 { 5 } else { 0 };
        let fresh = facts.epoch.is_none();
        let owner = match self.wrong {
            9 => self.node(),
            _ => facts.owner.unwrap_or(self.node()),
        };
        Append {
            owner,
            epoch: self.epoch(facts),
            expect: match self.wrong {
                10 => self.seq(facts),
                _ if fresh => start,
                _ => facts.tail,
            },
            create: (fresh || self.epoch_nonce == 0).then(|| Create {
                deadline_in: MINUTE,
                start,
                about: self.payload(3),
            }),
            events,
            close: match self.kind {
                0..=2 => Some(StreamState::Closed),
                3 => Some(StreamState::Cancelled),
                _ => None,
            },
            rpc: format!("i:{}", self.name),
        }
    }

    /// Approximately the weights of the test plan.
    pub(crate) fn op(&self, facts: &Facts) -> Op {
        let (session, stream) = (self.session(), self.stream());
        let rpc = format!("i:{}", self.name);
        let version = facts.version.saturating_sub(u32::from(self.wrong == 11));
        match self.kind {
            0..=39 => Op::Append(stream, self.append(facts)),
            40..=51 => Op::Attach(stream, self.principal(), self.cursor(facts), self.node()),
            52..=65 => Op::Read(
                [
                    stream,
                    StreamKey {
                        nonce: Nonce([1 - self.nonce; 8]),
                        ..stream
                    },
                ]
                .into_iter()
                .map(|stream| ReadWanted {
                    stream,
                    generation: facts.generation.saturating_sub(u64::from(self.wrong == 2)),
                    position: self.seq(facts),
                    seen: (facts.owner, self.epoch(facts)),
                })
                .collect(),
            ),
            66..=73 => Op::TakeOver(TakeOver {
                stream,
                from: if self.wrong == 9 {
                    Some(self.node())
                } else {
                    facts.owner
                },
                to: NODES.get(usize::from(self.other_node)).copied(),
                shown: self.cursor(facts),
                nonce: self.epoch_nonce,
            }),
            74..=77 => Op::OwnedBy(session, NODES.get(usize::from(self.other_node)).copied()),
            78..=83 => Op::Register(
                session,
                rpc,
                self.node(),
                (self.wrong > 3).then_some(stream.nonce),
            ),
            84 => Op::Unregister(session, rpc),
            85..=89 => Op::Cancel(session, self.principal(), rpc),
            90..=95 => Op::Answer(session, self.principal(), self.question(), self.payload(9)),
            96..=98 => Op::TakeAnswer(session, self.question()),
            99..=106 => Op::Begin(
                session,
                self.principal(),
                (self.wrong > 3).then_some(version),
                self.payload(1),
            ),
            107..=109 => Op::Update(session, self.principal(), version, self.payload(2)),
            110 if self.size < 100 => Op::End(session, self.principal()),
            110..=113 => Op::TakenTokens(
                (0..self.other_node)
                    .map(|n| TakeTokens {
                        shard: "t".to_owned(),
                        bucket: (n % 2).to_string(),
                        // Slow enough that no token is refilled during a test.
                        interval_us: 1_000_000_000_000,
                        burst: 20,
                        want: u64::from(self.name),
                        debt: u64::from(self.wrong / 6),
                        back: u64::from(self.wrong % 3),
                    })
                    .collect(),
            ),
            _ => Op::Pass(match self.wrong {
                0..=3 => Duration::from_millis(u64::from(self.size)),
                4..=6 => Duration::from_secs(25),
                7..=9 => Duration::from_secs(300),
                _ => Duration::from_secs(3600 * u64::from(self.size)),
            }),
        }
    }
}

/// Makes versions count from 0 for each record.
#[derive(Debug, Default)]
pub(crate) struct Bases(HashMap<SessionKey, u32>);

/// Runs one operation on a store.
pub(crate) async fn perform(store: &dyn Store, op: &Op, bases: &mut Bases) -> Outcome {
    perform_once(store, op, bases)
        .await
        .unwrap_or_else(|error| panic!("{op:?}: {error}"))
}

async fn perform_once(store: &dyn Store, op: &Op, bases: &mut Bases) -> Result<Outcome> {
    let base = |session: &SessionKey, bases: &Bases| bases.0.get(session).copied().unwrap_or(0);
    Ok(match op {
        Op::Begin(session, principal, known, body) => {
            let first = base(session, bases);
            let known = known.map(|known| Version(known.wrapping_add(first)));
            let fresh = Fresh {
                body: body.clone(),
                life: LIFE,
            };
            Outcome::Begin(
                match store.begin(*session, *principal, known, &fresh).await? {
                    Begin::Alive { version, body } => Begin::Alive {
                        version: Version(version.0.wrapping_sub(first)),
                        body,
                    },
                    Begin::Rebuilt { version } => {
                        bases.0.insert(*session, version.0);
                        Begin::Rebuilt {
                            version: Version(0),
                        }
                    }
                    Begin::Unknown => Begin::Unknown,
                },
            )
        }
        Op::Update(session, principal, expect, body) => {
            let first = base(session, bases);
            let expect = Version(expect.wrapping_add(first));
            let updated = store
                .update(*session, *principal, expect, body.clone())
                .await?;
            let counted = |version: Version| Version(version.0.wrapping_sub(first));
            Outcome::Update(match updated {
                Update::Done(version) => Update::Done(counted(version)),
                Update::Conflict { version, body } => Update::Conflict {
                    version: counted(version),
                    body,
                },
                Update::Unknown => Update::Unknown,
            })
        }
        Op::End(session, principal) => {
            store
                .remove(*session, *principal, Remove::Ended(LIFE))
                .await?;
            Outcome::Nothing
        }
        Op::Append(stream, append) => Outcome::Append(store.append(*stream, append).await?),
        Op::Attach(stream, principal, cursor, node) => {
            let mut attached = store.attach(*stream, *principal, *cursor, *node).await?;
            if let Attached::Stream { view, .. } = &mut attached {
                view.deadline_in = coarse(view.deadline_in);
            }
            Outcome::Attach(attached)
        }
        Op::Read(wanted) => {
            let mut reads = store
                .read(wanted[0].stream.session.partition(), wanted)
                .await?;
            for read in &mut reads {
                if let Read::View(view, _) = read {
                    view.deadline_in = coarse(view.deadline_in);
                }
            }
            Outcome::Read(reads)
        }
        Op::TakeOver(take_over) => {
            let mut taken_over = store.take_over(take_over).await?;
            if let TakenOver::Done { deadline_in, .. } = &mut taken_over {
                *deadline_in = coarse(*deadline_in);
            }
            Outcome::TakeOver(taken_over)
        }
        Op::OwnedBy(session, node) => {
            let mut owned = store.owned_by(session.partition(), *node).await?;
            owned.sort();
            Outcome::OwnedBy(owned)
        }
        Op::Register(session, rpc, node, stream) => {
            let registered = store
                .register(*session, rpc, *node, *stream, MINUTE)
                .await?;
            Outcome::Register(registered)
        }
        Op::Unregister(session, rpc) => {
            store.unregister(*session, rpc).await?;
            Outcome::Nothing
        }
        Op::Cancel(session, principal, rpc) => {
            Outcome::Routed(store.cancel(*session, *principal, rpc).await?)
        }
        Op::Answer(session, principal, question, payload) => Outcome::Routed(
            store
                .answer(*session, *principal, question, payload.clone())
                .await?,
        ),
        Op::TakeAnswer(session, question) => {
            Outcome::Answer(store.take_answer(*session, question).await?)
        }
        Op::TakenTokens(wanted) => {
            let mut leases = store.take_tokens(wanted).await?;
            for lease in &mut leases {
                lease.wait = Duration::from_secs(lease.wait.as_secs().div_ceil(10_000));
            }
            Outcome::TakenTokens(leases)
        }
        Op::Pass(_) => Outcome::Nothing,
    })
}

/// Real time passes between two stores, so only an expired deadline is compared.
pub(crate) const fn coarse(deadline_in: Duration) -> Duration {
    if deadline_in.is_zero() {
        deadline_in
    } else {
        MINUTE
    }
}
