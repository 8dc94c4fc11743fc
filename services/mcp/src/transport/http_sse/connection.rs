//! The stream of a client, on the node that holds its connection.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use axum::{
    body::{Body, BodyDataStream},
    response::Response,
};
use bytes::Bytes;
use futures_util::{StreamExt, stream::SelectAll};
use portolan_cluster::{
    SessionKey,
    node::{Delivery, Resumed, SessionMessages, StreamReader},
    store::{Cursor, Nonce, Principal, StreamKey},
};
use portolan_net::sse_body::{self, SseSender};
use portolan_protocol::sse;
use tokio::sync::mpsc;

use crate::{
    caller::Caller,
    session::written::SessionId,
    transport::{
        RequestContext,
        http_sse::{Card, Note, connections::Arrival},
        services::TransportServices,
        streamable_http::call,
    },
};

/// Most frames that wait for the connection, and most answers that wait for a frame.
const FRAMES: usize = 16;

const INBOX: usize = 64;

/// Stream names that are remembered, so that a repeated message is not followed twice.
const REMEMBERED: usize = 256;

/// One connection, as its task sees it.
pub(crate) struct SseConnection {
    state: TransportServices,
    session: SessionKey,
    caller: Arc<Caller>,
    principal: Principal,
    life: Duration,
    frames: SseSender,
    inbox: mpsc::Receiver<Arrival>,
    notes: SessionMessages,
    news: BodyDataStream,
    answers: SelectAll<StreamReader>,
    followed: VecDeque<Nonce>,
}

impl SseConnection {
    /// Answers the GET. The first event is the address for POSTs (MCP-O-2).
    pub(crate) fn open(
        context: &RequestContext<'_>,
        id: SessionId,
        news: Body,
        address: &str,
    ) -> Response {
        let state = context.state.clone();
        let (frames, body) = sse_body::channel(FRAMES);
        let (sender, inbox) = mpsc::channel(INBOX);
        state.connections.all().insert(id.key, sender);
        let connection = Self {
            notes: state.node.subscribe(id.key),
            session: id.key,
            caller: Arc::clone(&context.caller),
            principal: context.caller.session_principal(),
            life: id.life(context.now),
            frames,
            inbox,
            news: news.into_data_stream(),
            answers: SelectAll::new(),
            followed: VecDeque::new(),
            state,
        };
        let first = Bytes::from(format!("event: endpoint\ndata: {address}\n\n"));
        context.state.tracker.spawn(connection.run(first));
        body.into_response()
    }

    async fn run(mut self, first: Bytes) {
        if self.frames.send(first).await.is_ok() {
            self.feed().await;
        }
        self.close().await;
    }

    /// Sends messages until the connection ends (MCP-O-6).
    ///
    /// It ends with the client. It also ends with the session, the token or the process, once no
    /// answer is outstanding.
    async fn feed(&mut self) {
        let mut is_ending = false;
        let revoked = Arc::clone(&self.caller).over();
        tokio::pin!(revoked);
        loop {
            if is_ending && self.answers.is_empty() {
                return;
            }
            let frame = tokio::select! {
                () = self.frames.gone() => return,
                () = &mut revoked => return,
                arrival = self.inbox.recv() => match arrival {
                    Some(Arrival::Whole(body)) => Bytes::from(sse::message(None, &body)),
                    Some(Arrival::Stream(reader)) => {
                        self.answers.push(reader);
                        continue;
                    }
                    None => return,
                },
                note = self.notes.next() => {
                    self.follow(&note).await;
                    continue;
                }
                Some(delivery) = self.answers.next(), if !self.answers.is_empty() => frame(&delivery),
                news = self.news.next(), if !is_ending => match news {
                    Some(Ok(news)) => without_id(&news),
                    _ => {
                        is_ending = true;
                        continue;
                    }
                },
            };
            if self.frames.send(frame).await.is_err() {
                return;
            }
        }
    }

    /// Reads the stream that another node writes, and acknowledges this.
    async fn follow(&mut self, note: &[u8]) {
        let Some(note) = Note::read(note) else { return };
        let stream = StreamKey {
            session: self.session,
            nonce: note.nonce,
        };
        if !self.followed.contains(&note.nonce) {
            let start = Cursor {
                seq: 0,
                epoch: None,
            };
            match self
                .state
                .node
                .resume(self.caller.claims.tid, stream, self.principal, start)
                .await
            {
                Ok(Resumed::Reader(reader)) => self.answers.push(reader),
                Ok(Resumed::Finished) => {}
                // The other node sends the message again.
                Ok(Resumed::Unknown | Resumed::Gone) | Err(_) => return,
            }
            self.followed.push_back(note.nonce);
            if self.followed.len() > REMEMBERED {
                self.followed.pop_front();
            }
        }
        let heard = note.heard_key(self.session);
        // If this message is lost, the other node sends its message again.
        let _ = self.state.node.notify(heard, note.from, Bytes::new()).await;
    }

    /// Ends the session with its connection, and cancels its calls on every node (MCP-O-6).
    async fn close(self) {
        let Self {
            state,
            session,
            principal,
            life,
            ..
        } = self;
        state.connections.all().remove(&session);
        state.sessions.ended(session, state.clock.now());
        for key in [session, Card::key(session)] {
            if state.node.end(key, principal, life).await.is_err() {
                tracing::warn!("a session ended, and the store does not know yet");
            }
        }
    }
}

fn frame(delivery: &Delivery) -> Bytes {
    let frame = match delivery {
        Delivery::Event { payload, .. } | Delivery::Unlogged { payload } => {
            sse::message(None, payload)
        }
        Delivery::Gap { after, before } => sse::message(None, &call::gap(*after, *before)),
    };
    Bytes::from(frame)
}

/// A frame of a session's stream for a client that cannot resume (MCP-O-6).
fn without_id(frame: &Bytes) -> Bytes {
    let id = |line: &&[u8]| line.starts_with(b"id:");
    if !frame
        .split_inclusive(|byte| *byte == b'\n')
        .any(|line| id(&line))
    {
        return frame.clone();
    }
    let lines = frame.split_inclusive(|byte| *byte == b'\n');
    lines
        .filter(|line| !id(line))
        .collect::<Vec<_>>()
        .concat()
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn o_6_events_have_no_ids() {
        let with = Bytes::from(sse::message(Some("abc-1"), br#"{"id: ":1}"#));
        let without = Bytes::from(sse::message(None, br#"{"id: ":1}"#));
        assert_eq!(without_id(&with), without);
        assert_eq!(without_id(&without), without);
        let comment = Bytes::from_static(sse::KEEP_ALIVE);
        assert_eq!(without_id(&comment), comment);
    }
}
