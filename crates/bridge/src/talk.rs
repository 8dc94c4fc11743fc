//! The first messages decide the era of the client and of the server.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use portolan_protocol::{
    error::RpcError,
    jsonrpc::{Raw, RequestId},
    method::Method,
};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until},
};

use crate::{
    fault::BridgeFault,
    lines::{Line, Out},
    message::{self, LineMessage, MessageBody, Sort},
    newer::Newer,
    note::Notes,
    older::{self, Older},
    relay::{Era, Relay},
    session::{self, RemoteSession, SessionOpening},
    wire::Wire,
};

/// After the end of the input: time for answers that are on their way.
pub(crate) const GRACE: Duration = Duration::from_secs(5);
/// Nothing at the address answers as a server of the protocol does.
const NO_MCP: BridgeFault = BridgeFault::Invalid("its address does not speak MCP");

/// A conversation of one client with one server.
#[derive(Debug)]
pub(crate) struct Talk {
    wire: Arc<Wire>,
    out: Out,
    notes: Notes,
    kind: TalkState,
    /// The last fault before the server was reached.
    pub(crate) fault: Option<BridgeFault>,
}

#[derive(Debug)]
enum TalkState {
    /// Nothing was agreed on.
    Fresh,
    RemoteSession(RemoteSession),
    Relay(Relay),
    Older(Older),
    Newer(Newer),
}

impl Talk {
    pub(crate) fn new(wire: Arc<Wire>, out: Out, notes: Notes) -> Self {
        Self {
            wire,
            out,
            notes,
            kind: TalkState::Fresh,
            fault: None,
        }
    }

    /// Takes lines until the end of the input.
    pub(crate) async fn run(&mut self, lines: &mut mpsc::Receiver<Line>) {
        let mut early = VecDeque::new();
        loop {
            let line = match early.pop_front() {
                Some(line) => line,
                None => match lines.recv().await {
                    Some(line) => line,
                    None => return,
                },
            };
            let Some(body) = self.read(line).await else {
                continue;
            };
            if !self.decides(&body) {
                self.pass(body).await;
                continue;
            }
            // Lines go on to be read meanwhile: the end of the input ends the wait.
            let deciding = self.decide(body);
            tokio::pin!(deciding);
            let mut until = None;
            loop {
                let is_over = until.is_some();
                let late = sleep_until(until.unwrap_or_else(Instant::now));
                tokio::select! {
                    () = &mut deciding => break,
                    line = lines.recv(), if !is_over => match line {
                        Some(line) => early.push_back(line),
                        None => until = Some(Instant::now() + GRACE),
                    },
                    // A client that left does not wait for a sign-in.
                    () = late, if is_over => return,
                }
            }
        }
    }

    async fn read(&self, line: Line) -> Option<MessageBody> {
        let fault = match line {
            Line::Text(text) => match MessageBody::read(text) {
                Ok(body) => return Some(body),
                Err(fault) => (fault.id, message::own_error(fault.code, fault.why)),
            },
            Line::TooLong => (None, message::own_error(-32600, "The message is too long")),
        };
        let (id, error) = fault;
        self.out.write(message::error(id.as_ref(), &error)).await;
        None
    }

    /// True if the message decides how both sides speak.
    fn decides(&self, body: &MessageBody) -> bool {
        let MessageBody::One(message) = body else {
            return false;
        };
        if !matches!(message.sort, Sort::Request { .. }) {
            return false;
        }
        match self.kind {
            TalkState::RemoteSession(_) | TalkState::Older(_) => false,
            TalkState::Fresh => message.is(Method::Initialize) || message.version().is_some(),
            // A client that tried the new era first comes back with the handshake.
            TalkState::Relay(_) | TalkState::Newer(_) => message.is(Method::Initialize),
        }
    }

    async fn pass(&self, body: MessageBody) {
        match (&self.kind, body) {
            (TalkState::RemoteSession(session), body) => session.take(body),
            (TalkState::Older(older), body) => older.take(body).await,
            (TalkState::Relay(relay), MessageBody::One(message)) => relay.take(message),
            (TalkState::Newer(newer), MessageBody::One(message)) => newer.take(message),
            (TalkState::Relay(_) | TalkState::Newer(_), MessageBody::Batch(_)) => {
                let error = message::own_error(-32600, "This revision has no batches");
                self.out.write(message::error(None, &error)).await;
            }
            (TalkState::Fresh, body) => {
                for message in body.into_messages() {
                    let Sort::Request { id, method } = &message.sort else {
                        continue;
                    };
                    let answer = if method == Method::Ping.name() {
                        message::result(id, b"{}")
                    } else {
                        let error = message::own_error(-32600, "Send `initialize` first");
                        message::error(Some(id), &error)
                    };
                    self.out.write(answer).await;
                }
            }
        }
    }

    async fn decide(&mut self, body: MessageBody) {
        let MessageBody::One(message) = body else {
            return;
        };
        let Sort::Request { id, .. } = message.sort.clone() else {
            return;
        };
        let outcome = if message.is(Method::Initialize) {
            self.open(&id, message).await
        } else {
            self.first(&id, message).await
        };
        match outcome {
            Ok(true) => self.fault = None,
            Ok(false) => self.fault = Some(NO_MCP),
            Err(fault) => {
                self.notes.say(&fault.to_string());
                let answer = message::error(Some(&id), &fault.to_rpc());
                self.out.write(answer).await;
                self.fault = Some(fault);
            }
        }
    }

    /// A client with sessions: Streamable HTTP first, then HTTP+SSE (MCP-X-1). `false` if the
    /// server refused, and the client knows it.
    async fn open(&mut self, id: &RequestId, hello: LineMessage) -> Result<bool, BridgeFault> {
        let refusal = match session::open(&self.wire, &self.out, self.notes, &hello).await? {
            SessionOpening::RemoteSession(session, answer) => {
                self.out.write(answer.bytes().clone()).await;
                self.kind = TalkState::RemoteSession(session);
                return Ok(true);
            }
            SessionOpening::Refused(refusal) => refusal,
        };
        // A server of 2026-07-28 alone.
        match older::open(&self.wire, &self.out, self.notes, &hello).await {
            Ok(Some((older, result))) => {
                self.out.write(message::result(id, &result)).await;
                self.kind = TalkState::Older(older);
                return Ok(true);
            }
            Err(fault) if fault.is_about_sign_in() => return Err(fault),
            // A server of 2024-11-05 may answer a POST in any way.
            Ok(None) | Err(_) => {}
        }
        let opened = session::open_one_stream(&self.wire, &self.out, self.notes, &hello).await;
        match opened {
            Ok(Some((session, answer))) => {
                self.out.write(answer.bytes().clone()).await;
                self.kind = TalkState::RemoteSession(session);
                Ok(true)
            }
            Ok(None) => {
                let Some(refusal) = refusal else {
                    return Err(NO_MCP);
                };
                let error = refusal.get("error").unwrap_or(Raw::empty_object());
                self.out.write(refused(id, &error)).await;
                Ok(false)
            }
            Err(fault) => Err(fault),
        }
    }

    /// A client of 2026-07-28.
    async fn first(&mut self, id: &RequestId, message: LineMessage) -> Result<bool, BridgeFault> {
        let relay = Relay::new(Arc::clone(&self.wire), self.out.clone(), self.notes);
        let is_probe = message.is(Method::Discover);
        let era = if is_probe {
            relay.first(message.clone()).await?
        } else {
            relay.probe(&message).await?
        };
        match era {
            Era::Modern => {
                if !is_probe {
                    relay.take(message);
                }
                self.kind = TalkState::Relay(relay);
                Ok(true)
            }
            Era::Earlier if is_probe => {
                self.out.write(message::error(Some(id), &earlier())).await;
                Ok(false)
            }
            // A client of this era alone does not come back with the handshake.
            Era::Earlier => {
                let newer = Newer::new(Arc::clone(&self.wire), self.out.clone(), self.notes);
                newer.take(message);
                self.kind = TalkState::Newer(newer);
                Ok(true)
            }
        }
    }

    /// How many requests of the client wait.
    pub(crate) fn count_open(&self) -> usize {
        match &self.kind {
            TalkState::Fresh => 0,
            TalkState::RemoteSession(session) => session.count_open(),
            TalkState::Relay(relay) => relay.count_open(),
            TalkState::Older(older) => older.count_open(),
            TalkState::Newer(newer) => newer.count_open(),
        }
    }

    /// How many messages without an answer, cancellations for example, are on their way to the
    /// server. Where a cancellation is the end of a stream, the end of the program is one too.
    pub(crate) fn count_unsent(&self) -> usize {
        match &self.kind {
            TalkState::RemoteSession(session) => session.count_unsent(),
            TalkState::Newer(newer) => newer.count_unsent(),
            TalkState::Fresh | TalkState::Relay(_) | TalkState::Older(_) => 0,
        }
    }

    /// Ends the session at the server.
    pub(crate) async fn end(&self) {
        match &self.kind {
            TalkState::RemoteSession(session) => session.end().await,
            TalkState::Newer(newer) => newer.end().await,
            TalkState::Fresh | TalkState::Relay(_) | TalkState::Older(_) => {}
        }
    }
}

/// The answer of a server with sessions to a probe: a client of both eras goes on with
/// `initialize`, and then everything passes unchanged.
fn earlier() -> RpcError {
    message::own_error(-32601, "Method not found: the server has sessions")
}

fn refused(id: &RequestId, error: &Raw) -> bytes::Bytes {
    let mut out = br#"{"jsonrpc":"2.0","id":"#.to_vec();
    id.write(&mut out);
    out.extend_from_slice(br#","error":"#);
    out.extend_from_slice(error.as_bytes());
    out.push(b'}');
    out.into()
}
