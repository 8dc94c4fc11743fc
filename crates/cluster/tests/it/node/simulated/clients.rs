//! Clients with the strictest known retry policy: two attempts to reconnect, a second after the
//! break unless the server sent `retry`. Only a clean end resets the count (TEST-N).

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::StreamExt;
use portolan_cluster::{
    node::{Delivery, StreamReader},
    store::{Class, Cursor, Routed},
};
use tokio::{
    sync::oneshot,
    time::{Instant, sleep, timeout},
};

use super::{
    super::world::{LIFE, ME, START, TENANT},
    between::Wrong,
    calls::{self, Call, Reply, millis},
    record::Fact,
    scene::{Broken, Line, Process, Scene, Session, WAY, way},
    words::{self, cancelled},
};
use crate::fixture::rng::NodeRng;
use crate::history::{Body, Outcome, What};

/// Pause if the server sent no `retry`.
const DEFAULT_RETRY: Duration = Duration::from_secs(1);
/// Number of attempts without a clean end between them.
const TRIES: usize = 2;
/// Longer than any call may take.
const HUNG: Duration = Duration::from_secs(150);
/// Maximum time for which a middlebox keeps an abandoned connection open, in milliseconds.
const LEFT_OPEN: u64 = 20_000;
/// Pause between two attempts to end a session, or to answer.
const AGAIN: Duration = Duration::from_secs(1);
/// Time for which a person tries to answer: longer than any call waits.
const ANSWERS: Duration = Duration::from_secs(30);

/// Runs one call, from its request to its outcome.
pub(super) async fn call(scene: Arc<Scene>, call: Arc<Call>, rng: NodeRng) {
    let takes = call.takes();
    scene.record.fact(Fact::Planned {
        call: call.name.clone(),
        takes,
    });
    scene.record.line(What::Began {
        call: call.name.clone(),
        session: Some(call.session.name.clone()),
        safe: false,
        deadline: takes,
    });
    if let Some(after) = call.cancel_after {
        scene
            .tracker
            .spawn(cancel(Arc::clone(&scene), Arc::clone(&call), after));
    }
    let mut client = Client {
        scene: Arc::clone(&scene),
        call: Arc::clone(&call),
        rng,
        cursor: None,
        has_answered: false,
        tries: 0,
        resumes: 0,
    };
    let outcome = timeout(HUNG, client.follow()).await;
    scene.record.line(What::Ended {
        call: call.name.clone(),
        outcome: outcome.unwrap_or(Outcome::Hung),
    });
}

/// End of a connection.
enum End {
    /// The response arrived.
    Response(Outcome),
    /// A proper end of HTTP.
    Clean,
    Broken,
}

struct Client {
    scene: Arc<Scene>,
    call: Arc<Call>,
    rng: NodeRng,
    /// Cursor that the client will show.
    cursor: Option<Cursor>,
    has_answered: bool,
    tries: usize,
    /// Number of resumed streams.
    resumes: u32,
}

impl Client {
    fn got(&self, cursor: Option<Cursor>, body: Body) {
        let id = cursor.map(|cursor| words::id(self.call.nonce(), cursor));
        self.scene.record.line(What::Got {
            call: self.call.name.clone(),
            id,
            body,
        });
    }

    /// Records the position at which a stream begins.
    fn is_at(&mut self, place: Cursor) {
        let nonce = self.call.nonce();
        let id = match self.resumes {
            0 => words::id(nonce, place),
            time => words::place(nonce, place, time),
        };
        self.resumes += 1;
        self.scene.record.line(What::Got {
            call: self.call.name.clone(),
            id: Some(id),
            body: Body::Priming,
        });
    }

    fn resumed(&self, status: u16) {
        self.scene.record.line(What::Resumed {
            call: self.call.name.clone(),
            status,
        });
    }

    async fn follow(&mut self) -> Outcome {
        let refused = |why: &str| Outcome::Refused(why.to_owned());
        let (mut process, mut line, mut reader) = match self.send().await {
            Err(Broken) => return refused("before the first byte"),
            Ok((process, line, Reply::Stream(reader))) => (process, line, reader),
            Ok((_, _, Reply::Whole(outcome) | Reply::Gone(outcome))) => return outcome,
            Ok((_, _, Reply::Nothing)) => return Outcome::Http(204),
        };
        let mut place = START;
        loop {
            if self.call.is_primed {
                self.is_at(place);
                self.cursor = Some(place);
            }
            match self.read(&process, &line, reader).await {
                End::Response(outcome) => return outcome,
                End::Clean if self.call.is_unwanted() => return cancelled(),
                End::Clean => self.tries = 0,
                End::Broken if self.call.is_cancelled() => return cancelled(),
                End::Broken => {}
            }
            let Some(cursor) = self.cursor else {
                return refused("before an id");
            };
            place = cursor;
            (process, line, reader) = match self.come_back(cursor).await {
                Ok(again) => again,
                Err(outcome) => return outcome,
            };
        }
    }

    /// Sends the call. The gateway does not send it again, unless that is the injected defect.
    async fn send(&mut self) -> Result<(Arc<Process>, Line, Reply), Broken> {
        let tries = 1 + usize::from(self.scene.wrong == Some(Wrong::SentAgain));
        for _ in 0..tries {
            let (process, line) = self.scene.reach(&mut self.rng).await.ok_or(Broken)?;
            let serve = async {
                let (reply, replied) = oneshot::channel();
                let (scene, call) = (Arc::clone(&self.scene), Arc::clone(&self.call));
                let work = calls::serve(scene, Arc::clone(&process), call, reply);
                self.scene.tracker.spawn(Arc::clone(&process).host(work));
                replied.await
            };
            let ways = way(&mut self.rng);
            if let Ok(Ok(reply)) = process.request(&line, ways, serve).await {
                return Ok((process, line, reply));
            }
        }
        Err(Broken)
    }

    /// Resumes after the last event.
    async fn come_back(
        &mut self,
        cursor: Cursor,
    ) -> Result<(Arc<Process>, Line, StreamReader), Outcome> {
        loop {
            if self.tries == TRIES {
                return Err(Outcome::GaveUp("two tries".to_owned()));
            }
            self.tries += 1;
            // The server sends `retry` with the first event, drawn for each stream.
            let retry = if self.call.is_primed {
                Duration::from_millis(2_000 + self.rng.below(2_000))
            } else {
                DEFAULT_RETRY
            };
            sleep(retry).await;
            let Some((process, line)) = self.scene.reach(&mut self.rng).await else {
                self.resumed(0);
                continue;
            };
            let resume = calls::resume(&process, &self.call, cursor);
            let reply = process.request(&line, way(&mut self.rng), resume).await;
            match reply {
                Err(Broken) => self.resumed(0),
                Ok(Reply::Stream(reader)) => {
                    self.resumed(200);
                    return Ok((process, line, reader));
                }
                Ok(Reply::Gone(outcome)) => {
                    self.resumed(200);
                    self.got(None, Body::Response(outcome.clone()));
                    return Err(outcome);
                }
                Ok(Reply::Nothing) => {
                    self.resumed(204);
                    let is_unwanted = self.call.is_unwanted();
                    return Err(if is_unwanted {
                        cancelled()
                    } else {
                        Outcome::Http(204)
                    });
                }
                Ok(Reply::Whole(Outcome::Http(status))) if status != 404 => self.resumed(status),
                Ok(Reply::Whole(outcome)) => {
                    self.resumed(404);
                    return Err(outcome);
                }
            }
        }
    }

    /// Reads the events of one connection.
    async fn read(&mut self, process: &Arc<Process>, line: &Line, mut reader: StreamReader) -> End {
        loop {
            let ways = (self.call.pace, self.rng.ms(WAY));
            let next = process.request(line, ways, reader.next()).await;
            let Ok(delivery) = next else {
                self.leave(process, reader);
                return End::Broken;
            };
            let Some(delivery) = delivery else {
                return End::Clean;
            };
            if let Some(outcome) = self.take(&delivery) {
                return End::Response(outcome);
            }
        }
    }

    /// Abandons a broken connection. Its node may notice that much later.
    fn leave(&mut self, process: &Arc<Process>, reader: StreamReader) {
        let time = self.rng.ms(LEFT_OPEN);
        if process.is_dead() || self.rng.below(2) == 0 {
            return;
        }
        let keep = async move {
            sleep(time).await;
            drop(reader);
        };
        self.scene.tracker.spawn(Arc::clone(process).host(keep));
    }

    fn take(&mut self, delivery: &Delivery) -> Option<Outcome> {
        let name = &self.call.name;
        let (cursor, class, body) = match delivery {
            Delivery::Event {
                seq,
                epoch,
                class,
                payload,
            } => {
                let cursor = Cursor {
                    seq: *seq,
                    epoch: Some(*epoch),
                };
                (Some(cursor), *class, words::body(name, payload))
            }
            Delivery::Unlogged { payload } => {
                (None, Class::Notification, words::body(name, payload))
            }
            Delivery::Gap { .. } => (None, Class::Notification, Body::Gap),
        };
        self.cursor = cursor.or(self.cursor);
        self.got(cursor, body.clone());
        if calls::is_question(class) && !self.has_answered {
            self.has_answered = true;
            let answering = answer(Arc::clone(&self.scene), Arc::clone(&self.call));
            self.scene.tracker.spawn(answering);
        }
        match body {
            Body::Response(outcome) => Some(outcome),
            _ => None,
        }
    }
}

/// A person answers a question over a separate connection, until the answer is accepted. Some
/// clients send it twice.
async fn answer(scene: Arc<Scene>, call: Arc<Call>) {
    let mut rng = scene.rng();
    sleep(call.answer_after).await;
    let (question, times) = (call.question(), 1 + rng.below(5) / 4);
    let answer = format!("{} says so", call.name);
    let (mut taken, until) = (0, Instant::now() + ANSWERS);
    while taken < times && Instant::now() < until {
        let Some((process, line)) = scene.reach(&mut rng).await else {
            sleep(AGAIN).await;
            continue;
        };
        let payload = Bytes::from(answer.clone());
        let given = process
            .node
            .answer(TENANT, call.session.key, ME, &question, payload);
        let reply = process.request(&line, way(&mut rng), given).await;
        match reply {
            Ok(Ok(routed)) => {
                taken += 1;
                if routed == Routed::Notified {
                    scene.record.fact(Fact::Answered {
                        question: question.clone(),
                        answer: answer.clone(),
                    });
                }
            }
            Ok(Err(_)) | Err(_) => sleep(AGAIN).await,
        }
    }
}

/// A client cancels a call, on any node.
async fn cancel(scene: Arc<Scene>, call: Arc<Call>, after: Duration) {
    let mut rng = scene.rng();
    sleep(after).await;
    let Some((process, line)) = scene.reach(&mut rng).await else {
        return;
    };
    call.set_unwanted();
    scene.record.fact(Fact::Cancelling {
        call: call.name.clone(),
    });
    let rpc = call.rpc();
    let said = process.node.cancel(call.session.key, ME, &rpc);
    let reply = process.request(&line, way(&mut rng), said).await;
    if let Ok(Ok(_)) = reply {
        call.set_cancelled();
        scene.record.fact(Fact::CancelAccepted {
            call: call.name.clone(),
        });
    }
}

/// Ends a session, and repeats that until it is confirmed.
pub(super) async fn end(scene: Arc<Scene>, session: Session) {
    let mut rng = scene.rng();
    let asked = Instant::now();
    scene.record.fact(Fact::Deleting {
        session: session.name.clone(),
    });
    loop {
        if let Some((process, line)) = scene.reach(&mut rng).await {
            let end = process.node.end(session.key, ME, LIFE);
            let reply = process.request(&line, way(&mut rng), end).await;
            if let Ok(Ok(())) = reply {
                scene.record.line(What::Deleted {
                    session: session.name,
                    took: millis(asked.elapsed()),
                });
                return;
            }
        }
        sleep(AGAIN).await;
    }
}
