//! Calls, and the work of a node for one of them: as in `mcp`
//! (`services/mcp/src/transport/streamable_http/call.rs`), without HTTP.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use portolan_cluster::{
    node::{NewStream, Resumed, SessionError, StreamReader, StreamWriter},
    store::{Class, Cursor, Nonce, StreamKey},
};
use tokio::{
    sync::oneshot,
    time::{Instant, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    super::world::{ME, NOTE, TENANT, fresh},
    record::{Fact, Halt},
    scene::{Process, Scene, Session, WAY},
    words::{self, Word, cancelled, error, padding, say},
};
use crate::fixture::rng::NodeRng;
use crate::{
    checker::STREAM_LOST,
    history::{Outcome, What},
};

/// Time after which a call is answered by a stream (STREAM-6).
const QUICK: Duration = Duration::from_secs(1);
/// Time for which a call waits for an answer.
const PATIENCE: Duration = Duration::from_secs(20);
/// Deadline of a request.
const DEADLINE: Duration = Duration::from_secs(60);

/// Step of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    Think(Duration),
    Say(u64),
    Ask,
}

/// A call with the behaviour of its client.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) name: String,
    number: u64,
    pub(super) session: Session,
    pub(super) steps: Vec<Step>,
    /// The stream begins with an event that only has an id (revisions from 2025-11-25 on).
    pub(super) is_primed: bool,
    /// Pause of the client between two events.
    pub(super) pace: Duration,
    /// Time after which the client cancels the call.
    pub(super) cancel_after: Option<Duration>,
    /// Time that a person needs to answer a question.
    pub(super) answer_after: Duration,
    /// The client has sent a cancellation, and treats the end of the stream as the reply.
    is_unwanted: AtomicBool,
    /// The cancellation was accepted: the client does not reconnect.
    is_cancelled: AtomicBool,
}

impl Call {
    /// Draws a random call.
    pub(super) fn drawn(rng: &mut NodeRng, number: u64, session: Session) -> Self {
        let mut steps = Vec::new();
        let kind = rng.below(100);
        let mut said = 0;
        let mut say = |steps: &mut Vec<Step>| {
            said += 1;
            steps.push(Step::Say(said));
        };
        if kind < 30 {
            steps.push(Step::Think(rng.ms(900)));
        } else if kind < 40 {
            steps.push(Step::Think(Duration::from_millis(1_000 + rng.below(9_000))));
        } else if kind < 50 {
            // More events than one batch or one client's queue holds.
            for _ in 0..20 + rng.below(30) {
                say(&mut steps);
            }
        } else {
            let asks_at = (kind >= 78).then(|| rng.below(4));
            for round in 0..=rng.below(8) {
                steps.push(Step::Think(rng.ms(1_500)));
                say(&mut steps);
                if Some(round) == asks_at {
                    steps.push(Step::Ask);
                }
            }
            steps.push(Step::Think(rng.ms(700)));
        }
        let is_slow = rng.below(5) == 0;
        Self {
            name: format!("sim-{number}"),
            number,
            session,
            steps,
            is_primed: rng.below(4) > 0,
            pace: if is_slow { rng.ms(300) } else { Duration::ZERO },
            cancel_after: (rng.below(8) == 0).then(|| rng.ms(3_000)),
            answer_after: rng.ms(1_200),
            is_unwanted: AtomicBool::new(false),
            is_cancelled: AtomicBool::new(false),
        }
    }

    /// Maximum duration without faults, in milliseconds.
    pub(super) fn takes(&self) -> u64 {
        let way = 2 * WAY;
        let steps: u64 = self
            .steps
            .iter()
            .map(|step| match step {
                Step::Think(time) => millis(*time),
                Step::Say(_) => 0,
                Step::Ask => millis(self.answer_after) + 3 * way,
            })
            .sum();
        let events = self.steps.len() as u64 + 1;
        steps + events * (millis(self.pace) + WAY) + 3 * way
    }

    pub(super) fn rpc(&self) -> String {
        format!("i:{}", self.number)
    }

    pub(super) fn nonce(&self) -> Nonce {
        Nonce(self.number.to_be_bytes())
    }

    fn stream(&self) -> StreamKey {
        StreamKey {
            session: self.session.key,
            nonce: self.nonce(),
        }
    }

    pub(super) fn question(&self) -> String {
        format!("q{}", self.number)
    }

    pub(super) fn is_unwanted(&self) -> bool {
        self.is_unwanted.load(Ordering::Relaxed)
    }

    pub(super) fn set_unwanted(&self) {
        self.is_unwanted.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Relaxed)
    }

    pub(super) fn set_cancelled(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
    }
}

pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).expect("short")
}

/// Reply to a client.
#[derive(Debug)]
pub(super) enum Reply {
    /// One body, or an HTTP error.
    Whole(Outcome),
    /// An event stream.
    Stream(StreamReader),
    /// A resumed stream that has only an error left.
    Gone(Outcome),
    /// 204: there are no further events.
    Nothing,
}

/// Runs a call. Its client may disconnect meanwhile.
pub(super) async fn serve(
    scene: Arc<Scene>,
    process: Arc<Process>,
    call: Arc<Call>,
    reply: oneshot::Sender<Reply>,
) {
    let begun = process
        .node
        .begin(call.session.key, ME, &fresh("body"))
        .await;
    let refusal = match begun {
        Ok(_) => None,
        Err(SessionError::Unknown) => Some(404),
        Err(SessionError::Unavailable) => Some(503),
    };
    if let Some(status) = refusal {
        let _ = reply.send(Reply::Whole(Outcome::Http(status)));
        return;
    }
    let Some(running) = process.node.run(call.session.key, call.rpc(), DEADLINE) else {
        let _ = reply.send(Reply::Whole(Outcome::Http(400)));
        return;
    };
    scene.record.line(What::Executed {
        call: call.name.clone(),
        times: 1,
        broken: 0,
    });
    scene.record.fact(Fact::WorkBegan {
        call: call.name.clone(),
    });
    let mut work = Work {
        scene: &scene,
        process: &process,
        call: &call,
        begun: Instant::now(),
        cancelled: running.cancelled.clone(),
        reply: Some(reply),
        writer: None,
    };
    let why = work.run().await;
    scene.record.fact(Fact::WorkEnded {
        call: call.name.clone(),
        why,
    });
    let Work { reply, writer, .. } = work;
    let last = match why {
        Halt::Done => say(&call.name, &Word::Result(padding(&call.name))),
        Halt::Unanswered => say(&call.name, &Word::Failure),
        Halt::Cancelled | Halt::Fenced => bytes::Bytes::new(),
    };
    if let Some(writer) = writer {
        match why {
            Halt::Done | Halt::Unanswered => writer.finish(last),
            Halt::Cancelled => writer.cancel(),
            // Another node answers now, or no reply is allowed any more.
            Halt::Fenced => return,
        }
        writer.committed().cancelled().await;
    } else if let Some(reply) = reply {
        let outcome = match (why, words::body(&call.name, &last)) {
            (Halt::Cancelled, _) if running.is_session_over() => Outcome::Http(404),
            (Halt::Cancelled, _) => cancelled(),
            (_, crate::history::Body::Response(outcome)) => outcome,
            _ => Outcome::Http(500),
        };
        let _ = reply.send(Reply::Whole(outcome));
    }
}

struct Work<'a> {
    scene: &'a Scene,
    process: &'a Process,
    call: &'a Call,
    begun: Instant,
    cancelled: CancellationToken,
    reply: Option<oneshot::Sender<Reply>>,
    writer: Option<StreamWriter>,
}

impl Work<'_> {
    /// Upgrades the reply to a stream.
    fn open(&mut self) -> StreamWriter {
        if let Some(writer) = &self.writer {
            return writer.clone();
        }
        let (writer, reader) = self.process.node.open(NewStream {
            stream: self.call.stream(),
            principal: ME,
            rpc: self.call.rpc(),
            deadline: DEADLINE,
            about: self.call.name.clone().into(),
            tenant: TENANT,
            trace: None,
        });
        self.writer = Some(writer.clone());
        if let Some(reply) = self.reply.take() {
            let _ = reply.send(Reply::Stream(reader));
        }
        writer
    }

    async fn run(&mut self) -> Halt {
        for step in &self.call.steps {
            let halt = match step {
                Step::Think(time) => self.think(*time).await,
                Step::Say(n) => {
                    let (writer, cancelled) = (self.open(), self.cancelled.clone());
                    let word = say(&self.call.name, &Word::Progress(*n));
                    tokio::select! {
                        biased;
                        () = cancelled.cancelled() => Some(Halt::Cancelled),
                        pushed = writer.push(NOTE, word) => pushed.is_err().then_some(Halt::Fenced),
                    }
                }
                Step::Ask => self.ask().await,
            };
            if let Some(halt) = halt {
                return halt;
            }
        }
        Halt::Done
    }

    async fn think(&mut self, time: Duration) -> Option<Halt> {
        let (until, upgrade_at) = (Instant::now() + time, self.begun + QUICK);
        let cancelled = self.cancelled.clone();
        loop {
            let fenced = self.writer.as_ref().map(StreamWriter::fenced);
            let fenced = async {
                match fenced {
                    Some(fenced) => fenced.cancelled_owned().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = cancelled.cancelled() => return Some(Halt::Cancelled),
                () = fenced => return Some(Halt::Fenced),
                () = sleep_until(until) => return None,
                () = sleep_until(upgrade_at), if self.writer.is_none() => {
                    self.open();
                }
            }
        }
    }

    async fn ask(&mut self) -> Option<Halt> {
        let (writer, question) = (self.open(), self.call.question());
        let cancelled = self.cancelled.clone();
        let word = say(&self.call.name, &Word::Question(question.clone()));
        let asked = timeout(PATIENCE, writer.ask(&question, word));
        let answer = tokio::select! {
            biased;
            () = cancelled.cancelled() => return Some(Halt::Cancelled),
            answer = asked => answer,
        };
        match answer {
            Ok(Ok(answer)) => {
                self.scene.record.fact(Fact::Heard {
                    question,
                    answer: String::from_utf8_lossy(&answer).into_owned(),
                });
                None
            }
            Ok(Err(_)) => Some(Halt::Fenced),
            Err(_) => Some(Halt::Unanswered),
        }
    }
}

/// Resumes a call for a returning client. A node that cannot check the session still holds the
/// client.
pub(super) async fn resume(process: &Process, call: &Call, cursor: Cursor) -> Reply {
    let node = &process.node;
    let begun = node.begin(call.session.key, ME, &fresh("body")).await;
    if begun == Err(SessionError::Unknown) {
        return Reply::Whole(Outcome::Http(404));
    }
    match node.resume(TENANT, call.stream(), ME, cursor).await {
        Err(_) => Reply::Whole(Outcome::Http(503)),
        Ok(Resumed::Unknown) => Reply::Whole(Outcome::Http(404)),
        Ok(Resumed::Gone) => Reply::Gone(error(STREAM_LOST)),
        Ok(Resumed::Finished) => Reply::Nothing,
        Ok(Resumed::Reader(reader)) => Reply::Stream(reader),
    }
}

/// Whether an event is a question.
pub(super) fn is_question(class: Class) -> bool {
    class == Class::Question
}
