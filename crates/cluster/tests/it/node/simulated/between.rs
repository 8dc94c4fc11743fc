//! Proxy between a node and the store. When the store has lost writes, the proxy reports that to
//! each node before the next reply, like a new connection (STREAM-17.3). The order is
//! reproducible. The proxy also injects defects, to test that the checker finds them.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use crate::fixture::fault::FaultStore;
use async_trait::async_trait;
use bytes::Bytes;
use portolan_cluster::{
    memory::MemoryStore,
    store::{
        Append, Appended, Attached, Begin, Cursor, Fresh, Health, HeldSlots, HoldSlots, Members,
        NodeId, NodeMessage, Nonce, Partition, Principal, PutRecord, Read, ReadWanted, Record,
        RecordPut, Registered, Remove, Result, Routed, SessionKey, Store, StreamKey, TakeOver,
        TakeTokens, TakenOver, TakenTokens, Update, Version,
    },
};
use tokio::sync::{mpsc, watch};

/// Injected defect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wrong {
    /// Messages are lost, and anti-entropy does not run.
    DeafAndBlind,
    /// A reconnecting client misses one event.
    OneTooLate,
    /// A reconnecting client receives its last event again.
    OneAgain,
    /// An answer goes to another open question of the session.
    AnswerOfAnother,
    /// The end of a session is lost.
    EndForgotten,
    /// A cancellation is reported as delivered, but is lost.
    CancelForgotten,
    /// A read returns the log of another session's stream.
    OtherStream,
    /// No node is ever suspected.
    NobodyDies,
    /// The gateway repeats a request after its connection broke.
    SentAgain,
    /// A client that was away receives no notice of a changed list.
    ChangeForgotten,
}

/// Proxy between a node and the store, see the module.
#[derive(Debug)]
pub(super) struct Between {
    inner: Arc<FaultStore>,
    store: MemoryStore,
    truth: watch::Receiver<u64>,
    incarnation: watch::Sender<u64>,
    wrong: Option<Wrong>,
    /// Questions that passed, with their sessions. For [`Wrong::AnswerOfAnother`].
    asked: Arc<Mutex<Vec<(SessionKey, String)>>>,
    /// The previous stream. For [`Wrong::OtherStream`].
    attached: Arc<Mutex<Vec<StreamKey>>>,
}

/// State that the proxies of all nodes share.
#[derive(Debug, Clone, Default)]
pub(super) struct Gossip {
    asked: Arc<Mutex<Vec<(SessionKey, String)>>>,
    attached: Arc<Mutex<Vec<StreamKey>>>,
}

impl Between {
    pub(super) fn new(
        inner: Arc<FaultStore>,
        store: MemoryStore,
        wrong: Option<Wrong>,
        gossip: &Gossip,
    ) -> Self {
        let truth = store.health().incarnation;
        let now = *truth.borrow();
        Self {
            inner,
            store,
            truth,
            incarnation: watch::Sender::new(now),
            wrong,
            asked: Arc::clone(&gossip.asked),
            attached: Arc::clone(&gossip.attached),
        }
    }

    fn is(&self, wrong: Wrong) -> bool {
        self.wrong == Some(wrong)
    }

    /// Passes a reply of the store on. The node first learns of a lost write.
    fn told<T>(&self, reply: Result<T>) -> Result<T> {
        let truth = *self.truth.borrow();
        if reply.is_ok() {
            self.incarnation.send_if_modified(|known| {
                let is_news = *known != truth;
                *known = truth;
                is_news
            });
        }
        reply
    }
}

#[async_trait]
impl Store for Between {
    async fn begin(
        &self,
        session: SessionKey,
        principal: Principal,
        known: Option<Version>,
        fresh: &Fresh,
    ) -> Result<Begin> {
        self.told(self.inner.begin(session, principal, known, fresh).await)
    }

    async fn update(
        &self,
        session: SessionKey,
        principal: Principal,
        expect: Version,
        body: Bytes,
    ) -> Result<Update> {
        self.told(self.inner.update(session, principal, expect, body).await)
    }

    async fn remember(
        &self,
        session: SessionKey,
        principal: Principal,
        most: usize,
        gone: &[SessionKey],
    ) -> Result<Vec<SessionKey>> {
        self.told(self.inner.remember(session, principal, most, gone).await)
    }

    async fn remove(
        &self,
        session: SessionKey,
        principal: Principal,
        remove: Remove,
    ) -> Result<bool> {
        if self.is(Wrong::EndForgotten) && matches!(remove, Remove::Ended(_)) {
            return Ok(true);
        }
        self.told(self.inner.remove(session, principal, remove).await)
    }

    async fn append(&self, stream: StreamKey, append: &Append) -> Result<Appended> {
        for event in &append.events {
            if let Some(question) = &event.question {
                let asked = (stream.session, question.clone());
                self.asked.lock().expect("whole").push(asked);
            }
        }
        self.told(self.inner.append(stream, append).await)
    }

    async fn attach(
        &self,
        stream: StreamKey,
        principal: Principal,
        cursor: Cursor,
        node: NodeId,
    ) -> Result<Attached> {
        let mut cursor = cursor;
        match self.wrong {
            Some(Wrong::OneTooLate) if cursor.seq > 0 => cursor.seq += 1,
            Some(Wrong::OneAgain) => cursor.seq = cursor.seq.saturating_sub(1),
            _ => {}
        }
        let mut reply = self.told(self.inner.attach(stream, principal, cursor, node).await)?;
        if self.is(Wrong::OtherStream) {
            let other = {
                let mut attached = self.attached.lock().expect("whole");
                attached.push(stream);
                attached
                    .iter()
                    .rev()
                    .find(|other| **other != stream)
                    .copied()
            };
            if let (Some(other), Attached::Stream { view, .. }) = (other, &mut reply)
                && let Attached::Stream { view: of_other, .. } =
                    self.store.attach(other, principal, cursor, node).await?
            {
                view.events = of_other.events;
            }
        }
        Ok(reply)
    }

    async fn read(&self, partition: Partition, wanted: &[ReadWanted]) -> Result<Vec<Read>> {
        self.told(self.inner.read(partition, wanted).await)
    }

    async fn take_over(&self, take_over: &TakeOver) -> Result<TakenOver> {
        self.told(self.inner.take_over(take_over).await)
    }

    async fn owned_by(&self, partition: Partition, node: Option<NodeId>) -> Result<Vec<StreamKey>> {
        self.told(self.inner.owned_by(partition, node).await)
    }

    async fn register(
        &self,
        session: SessionKey,
        rpc: &str,
        node: NodeId,
        stream: Option<Nonce>,
        deadline_in: Duration,
    ) -> Result<Registered> {
        let register = self
            .inner
            .register(session, rpc, node, stream, deadline_in)
            .await;
        self.told(register)
    }

    async fn unregister(&self, session: SessionKey, rpc: &str) -> Result<()> {
        self.told(self.inner.unregister(session, rpc).await)
    }

    async fn cancel(&self, session: SessionKey, principal: Principal, rpc: &str) -> Result<Routed> {
        if self.is(Wrong::CancelForgotten) {
            return Ok(Routed::Notified);
        }
        self.told(self.inner.cancel(session, principal, rpc).await)
    }

    async fn answer(
        &self,
        session: SessionKey,
        principal: Principal,
        question: &str,
        payload: Bytes,
    ) -> Result<Routed> {
        let other = {
            let asked = self.asked.lock().expect("whole");
            let mut others = asked.iter().rev();
            let other = others.find(|(of, other)| *of == session && other != question);
            other.map(|(_, other)| other.clone())
        };
        if let (true, Some(other)) = (self.is(Wrong::AnswerOfAnother), other) {
            let given = self
                .inner
                .answer(session, principal, &other, payload.clone());
            self.told(given.await)?;
        }
        self.told(
            self.inner
                .answer(session, principal, question, payload)
                .await,
        )
    }

    async fn take_answer(&self, session: SessionKey, question: &str) -> Result<Option<Bytes>> {
        self.told(self.inner.take_answer(session, question).await)
    }

    async fn put_record(&self, item: StreamKey, put_record: &PutRecord) -> Result<RecordPut> {
        self.told(self.inner.put_record(item, put_record).await)
    }

    async fn records(&self, list: SessionKey, name: Option<Nonce>) -> Result<Vec<Record>> {
        self.told(self.inner.records(list, name).await)
    }

    async fn publish(&self, session: SessionKey, node: NodeId, body: Bytes) -> Result<()> {
        self.told(self.inner.publish(session, node, body).await)
    }

    async fn heartbeat(&self, node: NodeId, ttl: Duration) -> Result<Members> {
        let mut reply = self.told(self.inner.heartbeat(node, ttl).await);
        if let (true, Ok(members)) = (self.is(Wrong::NobodyDies), &mut reply) {
            for member in &mut members.nodes {
                member.valid_ms = member.valid_ms.max(1_000);
            }
        }
        reply
    }

    async fn take_tokens(&self, wanted: &[TakeTokens]) -> Result<Vec<TakenTokens>> {
        self.told(self.inner.take_tokens(wanted).await)
    }

    async fn hold_slots(
        &self,
        node: NodeId,
        life: Duration,
        wanted: &HoldSlots,
    ) -> Result<HeldSlots> {
        self.told(self.inner.hold_slots(node, life, wanted).await)
    }

    async fn subscribe(&self, node: NodeId) -> Result<mpsc::Receiver<NodeMessage>> {
        self.told(self.inner.subscribe(node).await)
    }

    fn health(&self) -> Health {
        Health {
            incarnation: self.incarnation.subscribe(),
            ..self.inner.health()
        }
    }
}
