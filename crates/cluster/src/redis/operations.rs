//! The operations of the store: each is one script and one round trip.

use std::{collections::BTreeMap, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::try_join_all;
use redis::Value;
use tokio::sync::{mpsc, oneshot};

use super::{
    RedisStore, SUBSCRIBE,
    answers::{ScriptReply, corrupt},
    connection::RedisConnection,
    keys::{KeySlot, hex, member, owner, parse_member, unhex},
    messages::text::{attempt_text, session_message},
    server_metrics::Sent,
};
use crate::store::{
    Append, Appended, Attached, Begin, Class, Cursor, FORGET_AT_ONCE, Fresh, Health, HeldSlots,
    HoldSlots, INLINE, MOST_SEQ, Member, Members, NodeId, NodeMessage, Nonce, PARTITIONS,
    Partition, Principal, PutRecord, Read, ReadWanted, Record, RecordPut, Registered, Remove,
    Result, Routed, SessionKey, Store, StoreError, StreamKey, StreamState, TakeOver, TakeTokens,
    TakenOver, TakenTokens, Update, Version,
};

/// Whole milliseconds, limited to the longest expiry that a server accepts.
fn ms(duration: Duration) -> u64 {
    const CENTURY: u64 = 100 * 365 * 24 * 3600 * 1000;
    u64::try_from(duration.as_millis())
        .unwrap_or(CENTURY)
        .min(CENTURY)
}

/// Bytes before the payload of an answered question: its kind and the nonce of its stream.
const ANSWER: usize = 1 + 16;

const fn class_text(class: Class) -> &'static str {
    match class {
        Class::Notification => "N",
        Class::Question => "R",
        Class::Answer => "A",
        Class::Final => "F",
    }
}

const fn close_text(close: Option<StreamState>) -> &'static str {
    match close {
        None | Some(StreamState::Open) => "-",
        Some(StreamState::Closed) => "C",
        Some(StreamState::Cancelled) => "X",
    }
}

impl RedisStore {
    /// Takes tokens from buckets at one location.
    async fn take_tokens_at(
        &self,
        place: KeySlot,
        wanted: &[&TakeTokens],
    ) -> Result<Vec<TakenTokens>> {
        let mut answer = self
            .run_list(place, &self.scripts().take_tokens, |call| {
                call.arg(wanted.len());
                for wanted in wanted {
                    call.arg(self.keys().bucket(&wanted.shard, &wanted.bucket));
                }
                for wanted in wanted {
                    let rate = wanted.rate();
                    let request = rate.within(wanted.request());
                    call.arg(rate.interval_us())
                        .arg(rate.burst())
                        .arg(request.want)
                        .arg(request.debt)
                        .arg(request.back);
                }
            })
            .await?;
        let mut leases = Vec::with_capacity(wanted.len());
        for _ in wanted {
            leases.push(TakenTokens {
                granted: answer.number()?,
                wait: answer.millis()?,
            });
        }
        Ok(leases)
    }
}

#[async_trait]
impl Store for RedisStore {
    async fn begin(
        &self,
        session: SessionKey,
        principal: Principal,
        known: Option<Version>,
        fresh: &Fresh,
    ) -> Result<Begin> {
        let life = ms(fresh.life);
        if life == 0 {
            return Ok(Begin::Unknown);
        }
        let known = known.map_or_else(String::new, |version| hex(&version.0.to_be_bytes()));
        let mut answer = self
            .run_list(session.partition(), &self.scripts().begin, |call| {
                call.arg(1)
                    .arg(self.keys().session(session))
                    .arg(&principal.0[..])
                    .arg(&known)
                    .arg(life.min(ms(self.bounds.idle)))
                    .arg(ms(self.bounds.touch()))
                    .arg(&fresh.body[..]);
            })
            .await?;
        match answer.int()? {
            0 => Ok(Begin::Unknown),
            1 => Ok(Begin::Alive {
                version: answer.version()?,
                body: match answer.left() {
                    0 => None,
                    _ => Some(answer.bytes()?),
                },
            }),
            2 => Ok(Begin::Rebuilt {
                version: answer.version()?,
            }),
            _ => Err(corrupt("begin")),
        }
    }

    async fn update(
        &self,
        session: SessionKey,
        principal: Principal,
        expect: Version,
        body: Bytes,
    ) -> Result<Update> {
        let mut answer = self
            .run_list(session.partition(), &self.scripts().update, |call| {
                call.arg(1)
                    .arg(self.keys().session(session))
                    .arg(&principal.0[..])
                    .arg(hex(&expect.0.to_be_bytes()))
                    .arg(&body[..]);
            })
            .await?;
        match answer.int()? {
            0 => Ok(Update::Unknown),
            1 => Ok(Update::Done(answer.version()?)),
            2 => Ok(Update::Conflict {
                version: answer.version()?,
                body: answer.bytes()?,
            }),
            _ => Err(corrupt("update")),
        }
    }

    async fn remember(
        &self,
        session: SessionKey,
        principal: Principal,
        most: usize,
        gone: &[SessionKey],
    ) -> Result<Vec<SessionKey>> {
        let place = KeySlot::of_shard(&hex(&principal.0));
        let mut answer = self
            .run_list(place, &self.scripts().remember, |call| {
                call.arg(1)
                    .arg(self.keys().sessions(principal))
                    .arg(&session.0[..])
                    .arg(most)
                    .arg(FORGET_AT_ONCE)
                    .arg(ms(self.bounds.idle));
                for session in gone {
                    call.arg(&session.0[..]);
                }
            })
            .await?;
        let mut over = Vec::with_capacity(answer.left());
        while answer.left() > 0 {
            let key = <[u8; 16]>::try_from(&answer.bytes()?[..]);
            over.push(SessionKey(key.map_err(|_| corrupt("remember"))?));
        }
        Ok(over)
    }

    async fn remove(
        &self,
        session: SessionKey,
        principal: Principal,
        remove: Remove,
    ) -> Result<bool> {
        let keys = self.keys();
        let (used_since, life) = match remove {
            Remove::Unused(time) => (ms(self.bounds.idle.saturating_sub(time)).to_string(), 0),
            Remove::Ended(life) => (String::new(), ms(life)),
        };
        let answer = self
            .run_int(session.partition(), &self.scripts().remove, |call| {
                call.arg(4)
                    .arg(keys.session(session))
                    .arg(keys.index(session))
                    .arg(keys.running(session))
                    .arg(keys.questions(session))
                    .arg(&principal.0[..])
                    .arg(&used_since)
                    .arg(life)
                    .arg(hex(&session.0))
                    .arg(keys.partition(session.partition()))
                    .arg(keys.channels());
            })
            .await?;
        Ok(answer == 1)
    }

    async fn append(&self, stream: StreamKey, append: &Append) -> Result<Appended> {
        let (keys, session, partition) = (self.keys(), stream.session, stream.session.partition());
        let (deadline, start, about) = append.create.as_ref().map_or((0, 0, &[][..]), |create| {
            (
                ms(create.deadline_in),
                create.start.min(MOST_SEQ),
                &create.about[..],
            )
        });
        let mut answer = self
            .run_list(partition, &self.scripts().append, |call| {
                call.arg(7)
                    .arg(keys.meta(stream))
                    .arg(keys.events(stream))
                    .arg(keys.questions(session))
                    .arg(keys.running(session))
                    .arg(keys.index(session))
                    .arg(keys.session(session))
                    .arg(keys.owned(partition, Some(append.owner)))
                    .arg(&append.owner.0[..])
                    .arg(attempt_text(append.epoch))
                    .arg(append.expect)
                    .arg(self.bounds.events)
                    .arg(self.bounds.bytes)
                    .arg(ms(self.closed_for()))
                    .arg(ms(self.bounds.open_grace))
                    .arg(INLINE)
                    .arg(keys.channels())
                    .arg(hex(&session.0))
                    .arg(hex(&stream.nonce.0))
                    .arg(close_text(append.close))
                    .arg(&append.rpc)
                    .arg(if append.create.is_some() { "1" } else { "" })
                    .arg(deadline)
                    .arg(start)
                    .arg(about);
                for event in &append.events {
                    call.arg(class_text(event.class));
                    match &event.question {
                        Some(question) => call.arg(format!("={question}")),
                        None => call.arg("-"),
                    };
                    call.arg(&event.payload[..]);
                }
            })
            .await?;
        match answer.int()? {
            1 => Ok(Appended::Done {
                tail: answer.number()?,
                attached: answer.owner()?,
                generation: answer.number()?,
                overflow: answer.flag()?,
            }),
            2 => Ok(Appended::Fenced),
            3 => Ok(Appended::Tail {
                tail: answer.number()?,
                state: answer.state()?,
            }),
            4 => Ok(Appended::Closed {
                state: answer.state()?,
                tail: answer.number()?,
            }),
            5 => Ok(Appended::Gone),
            _ => Err(corrupt("append")),
        }
    }

    async fn attach(
        &self,
        stream: StreamKey,
        principal: Principal,
        cursor: Cursor,
        node: NodeId,
    ) -> Result<Attached> {
        let (keys, session) = (self.keys(), stream.session);
        let cursor = cursor.bounded();
        let mut answer = self
            .run_list(session.partition(), &self.scripts().attach, |call| {
                call.arg(3)
                    .arg(keys.session(session))
                    .arg(keys.meta(stream))
                    .arg(keys.events(stream))
                    .arg(&principal.0[..])
                    .arg(cursor.seq)
                    .arg(cursor.epoch.map_or(0, |epoch| epoch.term))
                    .arg(format!(
                        "{:04x}",
                        cursor.epoch.map_or(0, |epoch| epoch.nonce)
                    ))
                    .arg(&node.0[..])
                    .arg(keys.channels())
                    .arg(hex(&session.0))
                    .arg(hex(&stream.nonce.0))
                    .arg(self.bounds.page.0)
                    .arg(self.bounds.page.1);
            })
            .await?;
        match answer.int()? {
            0 => Ok(Attached::Unknown),
            1 => Ok(Attached::Gone),
            2 => Ok(Attached::Stream {
                view: answer.view()?,
                position: answer.number()?,
                split: answer.flag()?,
                about: answer.bytes()?,
            }),
            _ => Err(corrupt("attach")),
        }
    }

    async fn read(&self, partition: Partition, wanted: &[ReadWanted]) -> Result<Vec<Read>> {
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let keys = self.keys();
        let mut answers = self
            .run_list(partition, &self.scripts().read, |call| {
                call.arg(wanted.len() * 2);
                for wanted in wanted {
                    call.arg(keys.meta(wanted.stream))
                        .arg(keys.events(wanted.stream));
                }
                call.arg(self.bounds.page.0).arg(self.bounds.page.1);
                for wanted in wanted {
                    call.arg(wanted.generation)
                        .arg(wanted.position)
                        .arg(owner(wanted.seen.0.as_ref()))
                        .arg(attempt_text(wanted.seen.1));
                }
            })
            .await?;
        let mut reads = Vec::with_capacity(wanted.len());
        for _ in wanted {
            reads.push(match answers.value()? {
                Value::Int(0) => Read::Gone,
                Value::Int(1) => Read::Unchanged,
                value => {
                    let mut answer = ScriptReply::list("read", value)?;
                    let view = answer.view()?;
                    Read::View(view, answer.owner()?)
                }
            });
        }
        Ok(reads)
    }

    async fn take_over(&self, take_over: &TakeOver) -> Result<TakenOver> {
        let (keys, stream, partition) = (
            self.keys(),
            take_over.stream,
            take_over.stream.session.partition(),
        );
        let shown = take_over.shown.bounded();
        let mut answer = self
            .run_list(partition, &self.scripts().take_over, |call| {
                call.arg(3)
                    .arg(keys.meta(stream))
                    .arg(keys.owned(partition, take_over.from))
                    .arg(keys.owned(partition, take_over.to))
                    .arg(owner(take_over.from.as_ref()))
                    .arg(owner(take_over.to.as_ref()))
                    .arg(ms(self.bounds.overdue))
                    .arg(shown.seq)
                    .arg(shown.epoch.map_or(0, |epoch| epoch.term))
                    .arg(format!("{:04x}", take_over.nonce))
                    .arg(member(stream))
                    .arg(keys.partition(partition))
                    .arg(keys.channels())
                    .arg(hex(&stream.session.0))
                    .arg(hex(&stream.nonce.0));
            })
            .await?;
        match answer.int()? {
            0 => Ok(TakenOver::Over),
            1 => Ok(TakenOver::Lost),
            2 => Ok(TakenOver::Done {
                tail: answer.number()?,
                epoch: answer.epoch()?,
                about: answer.bytes()?,
                deadline_in: answer.millis()?,
                late: answer.flag()?,
            }),
            _ => Err(corrupt("take_over")),
        }
    }

    async fn owned_by(&self, partition: Partition, node: Option<NodeId>) -> Result<Vec<StreamKey>> {
        let mut command = redis::cmd("SMEMBERS");
        command.arg(self.keys().owned(partition, node));
        let members = self.send(partition, &command).await?;
        let mut answer = ScriptReply::list("owned_by", members)?;
        let mut streams = Vec::with_capacity(answer.left());
        while answer.left() > 0 {
            let text = answer.bytes()?;
            streams.push(parse_member(&text).ok_or_else(|| corrupt("owned_by"))?);
        }
        Ok(streams)
    }

    async fn register(
        &self,
        session: SessionKey,
        rpc: &str,
        node: NodeId,
        stream: Option<Nonce>,
        deadline_in: Duration,
    ) -> Result<Registered> {
        let nonce = stream.map_or_else(|| "-".to_owned(), |nonce| hex(&nonce.0));
        let answer = self
            .run_int(session.partition(), &self.scripts().register, |call| {
                call.arg(2)
                    .arg(self.keys().session(session))
                    .arg(self.keys().running(session))
                    .arg(rpc)
                    .arg(&node.0[..])
                    .arg(&nonce)
                    .arg(ms(deadline_in))
                    .arg(self.bounds.running);
            })
            .await?;
        match answer {
            0 => Ok(Registered::Done),
            1 => Ok(Registered::Cancelled),
            2 => Ok(Registered::Full),
            3 => Ok(Registered::Ended),
            _ => Err(corrupt("register")),
        }
    }

    async fn unregister(&self, session: SessionKey, rpc: &str) -> Result<()> {
        let mut command = redis::cmd("HDEL");
        command.arg(self.keys().running(session)).arg(rpc);
        self.send(session.partition(), &command).await.map(|_| ())
    }

    async fn cancel(&self, session: SessionKey, principal: Principal, rpc: &str) -> Result<Routed> {
        let keys = self.keys();
        let answer = self
            .run_int(session.partition(), &self.scripts().cancel, |call| {
                call.arg(2)
                    .arg(keys.session(session))
                    .arg(keys.running(session))
                    .arg(&principal.0[..])
                    .arg(rpc)
                    .arg(keys.channels())
                    .arg(hex(&session.0))
                    .arg(ms(self.bounds.tombstone))
                    .arg(self.bounds.tombstones)
                    .arg(keys.metas(session));
            })
            .await?;
        routed("cancel", answer)
    }

    async fn answer(
        &self,
        session: SessionKey,
        principal: Principal,
        question: &str,
        payload: Bytes,
    ) -> Result<Routed> {
        let keys = self.keys();
        let answer = self
            .run_int(session.partition(), &self.scripts().answer, |call| {
                call.arg(2)
                    .arg(keys.session(session))
                    .arg(keys.questions(session))
                    .arg(&principal.0[..])
                    .arg(question)
                    .arg(&payload[..])
                    .arg(keys.channels())
                    .arg(hex(&session.0))
                    .arg(INLINE)
                    .arg(keys.metas(session));
            })
            .await?;
        routed("answer", answer)
    }

    async fn take_answer(&self, session: SessionKey, question: &str) -> Result<Option<Bytes>> {
        let mut command = redis::cmd("HGET");
        command.arg(self.keys().questions(session)).arg(question);
        // See answer.lua for the entries.
        match self.send(session.partition(), &command).await? {
            Value::Nil => Ok(None),
            Value::BulkString(entry) if entry.starts_with(b"P") => Ok(None),
            Value::BulkString(entry) if entry.len() >= ANSWER && entry.starts_with(b"A") => {
                Ok(Some(Bytes::from(entry).split_off(ANSWER)))
            }
            _ => Err(corrupt("take_answer")),
        }
    }

    async fn put_record(&self, item: StreamKey, put_record: &PutRecord) -> Result<RecordPut> {
        let expect = put_record
            .expect
            .map_or_else(String::new, |version| hex(&version.0.to_be_bytes()));
        let mut answer = self
            .run_list(
                item.session.partition(),
                &self.scripts().put_record,
                |call| {
                    call.arg(2)
                        .arg(self.keys().records(item.session))
                        .arg(self.keys().rest(item))
                        .arg(hex(&item.nonce.0))
                        .arg(&expect)
                        .arg(ms(put_record.life))
                        .arg(put_record.room.items)
                        .arg(put_record.room.bytes)
                        .arg(&put_record.head[..])
                        .arg(if put_record.rest.is_some() { "1" } else { "" })
                        .arg(put_record.rest.as_deref().unwrap_or_default());
                },
            )
            .await?;
        match answer.int()? {
            0 => Ok(RecordPut::Unknown),
            1 => Ok(RecordPut::Done(answer.version()?)),
            2 => Ok(RecordPut::Conflict(record(&mut answer)?)),
            3 => Ok(RecordPut::Full),
            _ => Err(corrupt("put_record")),
        }
    }

    async fn records(&self, list: SessionKey, name: Option<Nonce>) -> Result<Vec<Record>> {
        let rest = name.map_or_else(String::new, |nonce| {
            self.keys().rest(StreamKey {
                session: list,
                nonce,
            })
        });
        let name = name.map_or_else(String::new, |nonce| hex(&nonce.0));
        let mut answer = self
            .run_list(list.partition(), &self.scripts().records, |call| {
                call.arg(if rest.is_empty() { 1 } else { 2 })
                    .arg(self.keys().records(list));
                if !rest.is_empty() {
                    call.arg(&rest);
                }
                call.arg(&name);
            })
            .await?;
        let mut records = Vec::with_capacity(answer.left() / 5);
        while answer.left() > 0 {
            records.push(record(&mut answer)?);
        }
        Ok(records)
    }

    async fn publish(&self, session: SessionKey, node: NodeId, body: Bytes) -> Result<()> {
        let mut command = redis::cmd("PUBLISH");
        command
            .arg(self.keys().channel(node))
            .arg(session_message(session, &body));
        self.send(session.partition(), &command).await.map(|_| ())
    }

    async fn heartbeat(&self, node: NodeId, ttl: Duration) -> Result<Members> {
        let sent = Sent::now();
        let mut answer = self
            .run_list(KeySlot::of_nodes(), &self.scripts().heartbeat, |call| {
                call.arg(1)
                    .arg(self.keys().members())
                    .arg(&node.0[..])
                    .arg(ms(ttl))
                    .arg(ms(self.bounds.dead_for));
            })
            .await?;
        let now = answer.int()?;
        sent.answered(now);
        let mut list = ScriptReply::list("heartbeat", answer.value()?)?;
        let mut nodes = Vec::with_capacity(list.left() / 2);
        while list.left() > 0 {
            let name = list.bytes()?;
            let until = list.bytes()?;
            let until: Option<i64> = std::str::from_utf8(&until)
                .ok()
                .and_then(|text| text.parse().ok());
            nodes.push(Member {
                node: NodeId(name[..].try_into().map_err(|_| corrupt("heartbeat"))?),
                valid_ms: until.ok_or_else(|| corrupt("heartbeat"))? - now,
            });
        }
        Ok(Members { nodes })
    }

    async fn take_tokens(&self, wanted: &[TakeTokens]) -> Result<Vec<TakenTokens>> {
        let place = |wanted: &TakeTokens| KeySlot::of_shard(&wanted.shard);
        let Some(first) = wanted.first().map(place) else {
            return Ok(Vec::new());
        };
        if !self.shards.is_cluster() {
            let all: Vec<_> = wanted.iter().collect();
            return self.take_tokens_at(first, &all).await;
        }
        // All buckets of one script are in one slot.
        let mut by_slot: BTreeMap<u16, (KeySlot, Vec<usize>)> = BTreeMap::new();
        for (index, wanted) in wanted.iter().enumerate() {
            let place = place(wanted);
            let (_, indexes) = by_slot.entry(place.slot).or_insert((place, Vec::new()));
            indexes.push(index);
        }
        let asked = by_slot.into_values().map(|(place, indexes)| async move {
            let some: Vec<_> = indexes.iter().map(|index| &wanted[*index]).collect();
            let leases = self.take_tokens_at(place, &some).await?;
            Ok(indexes.into_iter().zip(leases).collect::<Vec<_>>())
        });
        let mut leases: Vec<_> = try_join_all(asked).await?.into_iter().flatten().collect();
        leases.sort_unstable_by_key(|(index, _)| *index);
        Ok(leases.into_iter().map(|(_, lease)| lease).collect())
    }

    async fn hold_slots(
        &self,
        node: NodeId,
        life: Duration,
        wanted: &HoldSlots,
    ) -> Result<HeldSlots> {
        let wanted = wanted.bounded();
        let mut answer = self
            .run_list(
                KeySlot::of_shard(&wanted.shard),
                &self.scripts().hold_slots,
                |call| {
                    call.arg(1)
                        .arg(self.keys().bucket(&wanted.shard, &wanted.bucket))
                        .arg(&node.0[..])
                        .arg(ms(life))
                        .arg(wanted.limit)
                        .arg(wanted.used)
                        .arg(wanted.want);
                },
            )
            .await?;
        Ok(HeldSlots {
            held: answer.number()?,
            held_elsewhere: answer.number()?,
            used_elsewhere: answer.number()?,
        })
    }

    async fn subscribe(&self, node: NodeId) -> Result<mpsc::Receiver<NodeMessage>> {
        // Subscribed from now on, even if the subscriber connection has to be made first.
        let messages = self.subscribers.listen(node);
        let (done, opened) = oneshot::channel();
        let work = async {
            self.wishes
                .send((node, done))
                .await
                .map_err(|_| StoreError::Down("the subscriber was stopped".to_owned()))?;
            opened
                .await
                .map_err(|_| StoreError::Down("the subscriber was stopped".to_owned()))?
        };
        tokio::time::timeout(SUBSCRIBE, work)
            .await
            .map_err(|_| StoreError::Down("no subscription in time".to_owned()))??;
        Ok(messages)
    }

    fn health(&self) -> Health {
        let shards = self.shards.all();
        let links = shards.iter().flat_map(|shard| &shard.links);
        Health {
            incarnation: self.common.incarnation(),
            used_memory: self.shards.used_memory(),
            in_flight: links.map(RedisConnection::in_flight).sum(),
            is_in_doubt: self.subscribers.is_deaf(),
        }
    }
}

fn record(answer: &mut ScriptReply) -> Result<Record> {
    let name = answer.bytes()?;
    Ok(Record {
        nonce: unhex(&name).map(Nonce).ok_or_else(|| corrupt("records"))?,
        version: answer.version()?,
        left: answer.millis()?,
        head: answer.bytes()?,
        rest: answer.bytes()?,
    })
}

fn routed(script: &'static str, answer: i64) -> Result<Routed> {
    match answer {
        0 => Ok(Routed::Unknown),
        1 => Ok(Routed::Notified),
        2 => Ok(Routed::Nobody),
        3 => Ok(Routed::Unasked),
        _ => Err(corrupt(script)),
    }
}

/// A byte numbers the partitions.
const _: () = assert!(PARTITIONS == 256);
