//! A suspended call: it has asked a modern client a question, and waits for the retry
//! (MCP-X-22…MCP-X-27).
//!
//! The call stays on the node where it runs, as a task with a deadline. Its messages go into a
//! stream of its own, in the log that all nodes share. A retry on another node reads the stream
//! there, and sends the answers like those of any question. Other nodes end the streams of a dead
//! node, so that no client waits for ever (MCP-V-5).

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use portolan_cluster::{
    SessionKey,
    node::{NewStream, Over, Running as RunningEntry, StreamWriter},
    store::{Class, Fresh, Nonce, StreamKey},
};
use portolan_keys::random;
use portolan_model::limits::LimitName;
use portolan_protocol::{
    ask::{self, AskMethod},
    error::ErrorKind,
    input_required::{InputRequest, InputRequired, MOST_ROUNDS, read_responses, write_requests},
    jsonrpc::{Body, Message, Raw},
    pace::Queue,
    progress::Progress,
    visible::{Awaited, Visible},
};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until},
};

use crate::{
    call::{
        Call, Running,
        client_channel::{ChannelMessage, Question, Unanswered},
        notices::{self, Paced},
        retry::Follow,
    },
    error::McpError,
    limits::suspended_calls,
};

/// MCP-X-22: questions within this time are one round.
const TOGETHER: Duration = Duration::from_millis(100);

/// The longest time in all of a call that asks (MCP-X-24).
pub(crate) const AT_MOST: Duration = Duration::from_secs(3600);

/// MCP-X-25: how often a question is repeated that has no fitting answer.
const TRIES: u8 = 3;

/// The time for a call to end by itself after its client did not come back (MCP-X-26).
const GRACE: Duration = Duration::from_secs(2);

/// The key of the suspended call among the running requests of its session.
pub(crate) const RPC: &str = "parked";

/// Most questions of one round (STREAM-7).
const AT_ONCE: usize = 8;

/// An event in the stream of a suspended call.
#[derive(Debug)]
pub(crate) enum Frame {
    /// Questions of a round.
    Asked(u8, Vec<(String, InputRequest)>),
    /// Progress.
    Progress(Progress),
    /// A whole notification.
    Message(Bytes),
    /// `{"result":…}` or `{"error":…}`.
    Final(Raw),
}

impl Frame {
    fn asked(round: u8, waiting: &[Waiting]) -> Bytes {
        let requests: Vec<(String, InputRequest)> = waiting
            .iter()
            .map(|waiting| {
                let request = InputRequest {
                    method: waiting.question.method,
                    params: waiting.question.shown.clone(),
                };
                (waiting.key.clone(), request)
            })
            .collect();
        let mut out = vec![b'Q', round];
        write_requests(&requests, &mut out);
        out.into()
    }

    /// The payload that goes into the stream now, if any.
    fn notice(paced: &mut Paced, said: ChannelMessage) -> Option<Bytes> {
        match said {
            ChannelMessage::Progress(progress) => {
                let parts = (progress.progress, progress.total, &progress.message);
                let mut out = vec![b'P'];
                serde_json::to_writer(&mut out, &parts).ok()?;
                paced.take(Queue::Progress, out.into())
            }
            ChannelMessage::Message(message) => {
                let frame = Bytes::from([b"M", &message[..]].concat());
                match notices::queue(&message) {
                    Some(queue) => paced.take(queue, frame),
                    None => Some(frame),
                }
            }
            ChannelMessage::Question(_) | ChannelMessage::Task => None,
        }
    }

    /// Reads an event. `None` for the event that replaces the answer of a lost call.
    pub(crate) fn read(payload: &Bytes) -> Option<Self> {
        let (tag, rest) = (payload.first()?, payload.slice(1..));
        match tag {
            b'Q' => {
                let map = Raw::parse(rest.slice(1..)).ok()?;
                Some(Self::Asked(
                    *rest.first()?,
                    InputRequired::requests(&map).ok()?,
                ))
            }
            b'P' => {
                let (progress, total, message) = serde_json::from_slice(&rest).ok()?;
                Some(Self::Progress(Progress {
                    progress,
                    total,
                    message,
                }))
            }
            b'M' => Some(Self::Message(rest)),
            b'F' => Some(Self::Final(Raw::parse(rest).ok()?)),
            _ => None,
        }
    }
}

/// The body of the record: the last answered round. The update that raises it may answer
/// (MCP-X-27).
pub(crate) fn answered(round: u8) -> Bytes {
    Bytes::copy_from_slice(&[b'R', round])
}

/// The body of a record that was created again: the suspended call is unknown.
pub(crate) const UNKNOWN: Bytes = Bytes::from_static(b"-");

/// The lifetime of the record of a suspended call.
pub(crate) fn record(body: Bytes) -> Fresh {
    Fresh {
        body,
        life: AT_MOST,
    }
}

#[derive(Debug)]
struct Waiting {
    key: String,
    question: Question,
    tries: u8,
}

struct SuspendedCall {
    call: Arc<Call>,
    work: Running,
    said: mpsc::Receiver<ChannelMessage>,
    /// Its notifications, at the rate of a client (MCP-PP-3).
    paced: Paced,
    writer: StreamWriter,
    place: RunningEntry,
    /// The permit, held until the call ends.
    _parking: suspended_calls::SuspendedPermit,
    waiting: Vec<Waiting>,
    keys: u32,
    round: u8,
    until: Instant,
}

/// Why a suspended call ended.
enum SuspendedEnd {
    /// It finished by itself.
    Done(Result<Vec<u8>, McpError>),
    /// Its client did not come back.
    Forgotten,
    /// It asked too often (MCP-V-3).
    TooOften,
    /// It was cancelled, or another node has taken it over.
    Stopped,
}

/// Suspends a call that asked `first`, and returns the answer that asks the client.
pub(crate) async fn suspend(
    call: Arc<Call>,
    mut work: Running,
    mut said: mpsc::Receiver<ChannelMessage>,
    first: Question,
) -> Result<Vec<u8>, McpError> {
    let state = &call.state;
    let (tenant, name) = (call.server.tenant, LimitName::ParkedCalls);
    let at_most = call.server.limits.at_most(name);
    let suspended_calls = match state.suspended_calls.enter(call.caller.principal, at_most) {
        Ok(place) => place,
        Err(why) => {
            match why {
                suspended_calls::NoSuspendedPermit::Own => state.admission.refused(tenant, name),
                suspended_calls::NoSuspendedPermit::Node => {
                    state.admission.refused_by_node(tenant, name)
                }
            }
            let kind = ErrorKind::TooMany("parked_calls");
            return Err(call.fail(&kind));
        }
    };
    let unavailable = |_| McpError::Unavailable;
    let stream = StreamKey {
        session: SessionKey(random::bytes().map_err(unavailable)?),
        nonce: Nonce(random::bytes().map_err(unavailable)?),
    };
    let mut waiting = vec![Waiting {
        key: "q1".to_owned(),
        question: first,
        tries: 0,
    }];
    let mut keys = 1;
    if let Some(outcome) = gather(&mut work, &mut said, &mut waiting, &mut keys).await {
        return outcome;
    }
    let principal = call.caller.session_principal();
    state
        .node
        .begin(stream.session, principal, &record(answered(0)))
        .await
        .map_err(|_| McpError::Unavailable)?;
    let place = state.node.run(stream.session, RPC, AT_MOST);
    let place = place.ok_or(McpError::Unavailable)?;
    let (writer, reader) = state.node.open(NewStream {
        stream,
        principal,
        rpc: RPC.to_owned(),
        deadline: AT_MOST,
        about: call.about().to_bytes(),
        tenant: call.server.tenant,
        trace: None,
    });
    let suspended = SuspendedCall {
        call: Arc::clone(&call),
        work,
        said,
        paced: Paced::of_client(),
        writer,
        place,
        _parking: suspended_calls,
        waiting,
        keys,
        round: 0,
        until: Instant::now() + AT_MOST,
    };
    state.tracker.spawn(suspended.run());
    // The reader returns a question only once it is in the log, so every node can take its answer.
    Follow::new(call, stream, reader, None).outcome().await
}

/// Collects the questions of one round. Returns the outcome if the call ended meanwhile.
async fn gather(
    work: &mut Running,
    said: &mut mpsc::Receiver<ChannelMessage>,
    waiting: &mut Vec<Waiting>,
    keys: &mut u32,
) -> Option<Result<Vec<u8>, McpError>> {
    let enough = Instant::now() + TOGETHER;
    while waiting.len() < AT_ONCE {
        tokio::select! {
            biased;
            outcome = &mut *work => return Some(outcome),
            Some(more) = said.recv() => {
                if let ChannelMessage::Question(question) = more {
                    *keys += 1;
                    waiting.push(Waiting { key: format!("q{keys}"), question, tries: 0 });
                }
            }
            () = sleep_until(enough) => break,
        }
    }
    None
}

impl SuspendedCall {
    async fn run(mut self) {
        let over = loop {
            if let Err(over) = self.ask().await {
                break over;
            }
            if self.waiting.is_empty()
                && let Err(over) = self.go_on().await
            {
                break over;
            }
        };
        let visible = match over {
            SuspendedEnd::Done(outcome) => {
                let mut rest = Vec::new();
                while let Ok(said) = self.said.try_recv() {
                    rest.extend(Frame::notice(&mut self.paced, said));
                }
                rest.extend(std::iter::from_fn(|| self.paced.last()));
                for notice in rest {
                    // A failure is ignored: a client that misses the notification misses the answer
                    // too.
                    let _ = self.writer.push(Class::Notification, notice).await;
                }
                let body = outcome.map_or_else(McpError::into_message, Some);
                match body.and_then(|body| final_frame(&body)) {
                    Some(frame) => self.writer.finish(frame),
                    None => self.writer.cancel(),
                }
                return;
            }
            SuspendedEnd::Stopped => return self.writer.cancel(),
            SuspendedEnd::Forgotten => {
                for waiting in self.waiting.drain(..) {
                    waiting.question.give(Err(Unanswered::TimedOut));
                }
                // MCP-X-26: gives the upstream time to receive the refusal before the call is
                // dropped.
                let _ended = tokio::time::timeout(GRACE, &mut self.work).await;
                Visible::TimedOut(Awaited::Client)
            }
            SuspendedEnd::TooOften => Visible::TooManyRounds,
        };
        match final_frame(&self.call.visible(&visible)) {
            Some(frame) => self.writer.finish(frame),
            None => self.writer.cancel(),
        }
    }

    /// One round: asks, and gives the answers to the askers. Questions without an answer stay.
    async fn ask(&mut self) -> Result<(), SuspendedEnd> {
        if self.round >= MOST_ROUNDS {
            return Err(SuspendedEnd::TooOften);
        }
        self.round += 1;
        let question = format!("r{}", self.round);
        let payload = Frame::asked(self.round, &self.waiting);
        let writer = self.writer.clone();
        let asking = writer.ask(&question, payload);
        tokio::pin!(asking);
        let patience = Duration::from_secs(self.call.state.config.park_secs);
        let patience = (Instant::now() + patience).min(self.until);
        let fenced = self.writer.fenced();
        let answer = loop {
            tokio::select! {
                biased;
                outcome = &mut self.work => return Err(SuspendedEnd::Done(outcome)),
                () = self.place.cancelled.cancelled() => return Err(SuspendedEnd::Stopped),
                () = self.call.caller.revoked.cancelled() => return Err(SuspendedEnd::Stopped),
                () = fenced.cancelled() => return Err(SuspendedEnd::Stopped),
                answer = &mut asking => break answer,
                // MCP-X-76: notifications have no reader now. A question waits for the next round.
                Some(said) = self.said.recv(), if self.waiting.len() < 2 * AT_ONCE => {
                    if let ChannelMessage::Question(question) = said {
                        self.keys += 1;
                        self.waiting.push(Waiting { key: format!("q{}", self.keys), question, tries: 0 });
                    }
                }
                () = sleep_until(patience) => return Err(SuspendedEnd::Forgotten),
            }
        };
        match answer {
            Ok(responses) => {
                self.take(&responses);
                Ok(())
            }
            Err(Over::Over | Over::TooManyQuestions) => Err(SuspendedEnd::Stopped),
        }
    }

    /// MCP-MR-11, MCP-MR-12, MCP-X-25: ignores unknown keys, and repeats questions without a
    /// fitting answer.
    fn take(&mut self, responses: &Bytes) {
        let responses = Raw::parse(responses.clone()).ok();
        let responses = responses.and_then(|responses| read_responses(&responses).ok());
        let responses = responses.unwrap_or_default();
        for mut waiting in std::mem::take(&mut self.waiting) {
            // MCP-X-7B: the upstream has cancelled the question.
            if waiting.question.answer.is_closed() {
                continue;
            }
            let response = responses.iter().find(|(key, _)| *key == waiting.key);
            if let Some(answer) =
                response.and_then(|(_, response)| waiting.question.check(response))
            {
                waiting.question.give(Ok(answer));
                continue;
            }
            waiting.tries += 1;
            if waiting.tries < TRIES {
                self.waiting.push(waiting);
                continue;
            }
            let refused = match waiting.question.method {
                AskMethod::Elicit => ask::refusal(AskMethod::Elicit).ok_or(Unanswered::TimedOut),
                _ => Err(Unanswered::Unfit),
            };
            waiting.question.give(refused);
        }
    }

    /// Runs the call until it asks again.
    async fn go_on(&mut self) -> Result<(), SuspendedEnd> {
        let fenced = self.writer.fenced();
        loop {
            tokio::select! {
                biased;
                outcome = &mut self.work => return Err(SuspendedEnd::Done(outcome)),
                () = self.place.cancelled.cancelled() => return Err(SuspendedEnd::Stopped),
                () = self.call.caller.revoked.cancelled() => return Err(SuspendedEnd::Stopped),
                () = fenced.cancelled() => return Err(SuspendedEnd::Stopped),
                () = sleep_until(self.until) => return Err(SuspendedEnd::Forgotten),
                notice = self.paced.due() => {
                    if self.writer.push(Class::Notification, notice).await.is_err() {
                        return Err(SuspendedEnd::Stopped);
                    }
                }
                Some(said) = self.said.recv() => {
                    let notice = match said {
                        ChannelMessage::Question(question) => {
                            self.keys += 1;
                            self.waiting.push(Waiting { key: format!("q{}", self.keys), question, tries: 0 });
                            let ended = gather(&mut self.work, &mut self.said, &mut self.waiting, &mut self.keys).await;
                            return ended.map_or(Ok(()), |outcome| Err(SuspendedEnd::Done(outcome)));
                        }
                        said => Frame::notice(&mut self.paced, said),
                    };
                    if let Some(notice) = notice
                        && self.writer.push(Class::Notification, notice).await.is_err()
                    {
                        return Err(SuspendedEnd::Stopped);
                    }
                }
            }
        }
    }
}

/// The last event: the outcome without the id, which is another one in each retry.
fn final_frame(body: &[u8]) -> Option<Bytes> {
    let Ok(Body::Single(Message::Response(response))) = Body::parse(Bytes::copy_from_slice(body))
    else {
        return None;
    };
    let (name, value) = match &response.outcome {
        Ok(result) => ("result", result),
        Err(error) => ("error", error),
    };
    let head = format!(r#"F{{"{name}":"#);
    Some([head.as_bytes(), value.as_bytes(), b"}"].concat().into())
}
