//! Running requests and questions to clients, and the node that is notified of a cancellation or an
//! answer.

use std::time::Duration;

use bytes::Bytes;

use super::{
    ms,
    partition::{Moment, Partition, RegisteredCall},
};
use crate::store::{
    INLINE, NodeId, NodeMessage, Nonce, Principal, Registered, Routed, SessionKey, StreamKey,
};

impl Partition {
    pub(super) fn register(
        &mut self,
        key: SessionKey,
        rpc: &str,
        node: NodeId,
        stream: Option<Nonce>,
        deadline_in: Duration,
        moment: &mut Moment<'_>,
    ) -> Registered {
        let session = self.session_or_new(key, moment.now);
        if session.ended_until.is_some() {
            return Registered::Ended;
        }
        match session.running.get(rpc) {
            Some(
                RegisteredCall::Tombstone { .. }
                | RegisteredCall::Request {
                    cancelled: true, ..
                },
            ) => return Registered::Cancelled,
            Some(RegisteredCall::Request { .. }) => {}
            None => {
                let requests = session
                    .running
                    .values()
                    .filter(|entry| matches!(entry, RegisteredCall::Request { .. }))
                    .count();
                if requests >= moment.bounds.running {
                    return Registered::Full;
                }
            }
        }
        let until = moment.now + ms(deadline_in);
        session.running.insert(
            rpc.to_owned(),
            RegisteredCall::Request {
                node,
                stream,
                until,
                cancelled: false,
            },
        );
        session.ends_at(until);
        Registered::Done
    }

    pub(super) fn unregister(&mut self, key: SessionKey, rpc: &str, moment: &mut Moment<'_>) {
        if let Some(session) = self.session(key, moment.now) {
            session.running.remove(rpc);
        }
    }

    pub(super) fn cancel(
        &mut self,
        key: SessionKey,
        principal: Principal,
        rpc: &str,
        moment: &mut Moment<'_>,
    ) -> Routed {
        let session = self.session_or_new(key, moment.now);
        if session.refuses(principal) {
            return Routed::Unknown;
        }
        if let Some(RegisteredCall::Request {
            node,
            stream,
            cancelled,
            ..
        }) = session.running.get_mut(rpc)
        {
            *cancelled = true;
            // After a takeover the request runs on the owner of its stream.
            let owner = match stream.and_then(|nonce| session.streams.get(&nonce)) {
                Some(stream) => stream.owner,
                None => Some(*node),
            };
            let Some(owner) = owner else {
                return Routed::Nobody;
            };
            moment.notify(
                owner,
                NodeMessage::Cancel {
                    session: key,
                    rpc: rpc.to_owned(),
                },
            );
            return Routed::Notified;
        }
        let tombstones = session
            .running
            .iter()
            .filter(|(known, entry)| {
                matches!(entry, RegisteredCall::Tombstone { .. }) && known.as_str() != rpc
            })
            .count();
        if tombstones < moment.bounds.tombstones {
            let until = moment.now + ms(moment.bounds.tombstone);
            session
                .running
                .insert(rpc.to_owned(), RegisteredCall::Tombstone { until });
            session.ends_at(until);
        }
        Routed::Nobody
    }

    pub(super) fn answer(
        &mut self,
        key: SessionKey,
        principal: Principal,
        question: &str,
        payload: Bytes,
        moment: &mut Moment<'_>,
    ) -> Routed {
        let Some(session) = self.session(key, moment.now) else {
            return Routed::Unasked;
        };
        if session.refuses(principal) {
            return Routed::Unknown;
        }
        let Some(asked) = session.questions.get_mut(question) else {
            return Routed::Unasked;
        };
        let Some(stream) = session.streams.get(&asked.stream) else {
            return Routed::Unasked;
        };
        match &asked.answer {
            None => asked.answer = Some(payload.clone()),
            Some(first) if *first == payload => {}
            Some(_) => return Routed::Nobody,
        }
        if let Some(owner) = stream.owner {
            moment.notify(
                owner,
                NodeMessage::Answered {
                    stream: StreamKey {
                        session: key,
                        nonce: asked.stream,
                    },
                    question: question.to_owned(),
                    payload: (payload.len() <= INLINE).then_some(payload),
                },
            );
        }
        Routed::Notified
    }

    pub(super) fn take_answer(
        &mut self,
        key: SessionKey,
        question: &str,
        moment: &mut Moment<'_>,
    ) -> Option<Bytes> {
        self.session(key, moment.now)?
            .questions
            .get(question)?
            .answer
            .clone()
    }
}
