//! A client that follows the protocol through all faults: it resumes where it may, waits as the
//! server requests, and records what it saw.

use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::{Duration, Instant},
};

use anyhow::Result;
use reqwest::StatusCode;
use serde_json::{Map, Value, json};
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};

use crate::{
    asker,
    fleet::call,
    held::Work,
    history::{Body, History, Outcome, What},
    mcp::{Answer, McpClient, Reply, modern_message},
    sse::SseStream,
};

/// The wait of a client before it reconnects, if the server gave no `retry`.
const RETRY: Duration = Duration::from_secs(1);
/// Rounds of questions after which it answers no more.
const ROUNDS: usize = 5;
/// How long it looks whether there is an answer after all to what it has cancelled.
const LOOKS: Duration = Duration::from_secs(5);
/// The harness gives a call this much more than its deadline before it counts as hung.
const PATIENCE: Duration = Duration::from_secs(60);

/// Where calls go.
#[derive(Debug)]
pub struct Caller {
    client: McpClient,
    /// The session's id, or none: the stateless era.
    pub session: Option<String>,
    history: History,
    next: AtomicI64,
}

/// One call to make.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The work that the call requests.
    pub work: Work,
    /// With a tool that only reads?
    pub safe: bool,
    /// Ask for progress?
    pub progress: bool,
    /// The client itself loses its connection after so many events.
    pub cut_after: Option<usize>,
    /// The client loses the connection without noticing: it closes nothing, and reads no more.
    pub half_open: bool,
    /// Time between two events that it reads.
    pub rest: Duration,
    /// The client wants no answer any more after so long.
    pub cancel_after: Option<Duration>,
    /// A tool that asks before it answers ([`asker`]).
    pub asks: bool,
    /// When there must be an outcome.
    pub deadline: Duration,
}

impl Plan {
    /// A call with this name that takes so long, of a tool that changes something, with progress.
    pub fn new(name: impl Into<String>, millis: u64) -> Self {
        Self {
            work: Work {
                call: name.into(),
                millis,
                size: 0,
            },
            safe: false,
            progress: true,
            cut_after: None,
            half_open: false,
            rest: Duration::ZERO,
            cancel_after: None,
            asks: false,
            deadline: Duration::from_millis(millis) + Duration::from_secs(15),
        }
    }
}

/// State of the cancellation of a call in a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cancel {
    /// There is none, or it was not accepted.
    No,
    /// It is on its way.
    Sent,
    /// The service has accepted it.
    Taken,
    /// The service did not say whether it accepted it.
    Unsaid,
}

/// How a stream went on.
enum Step {
    Done(Outcome),
    /// Its response has a question first.
    Asks(Value),
    /// It ended or broke before the response.
    Broken,
}

impl Caller {
    /// In a session.
    pub fn in_session(client: McpClient, session: &str, history: &History) -> Self {
        Self {
            client,
            session: Some(session.to_owned()),
            history: history.clone(),
            next: AtomicI64::new(1),
        }
    }

    /// Without one.
    pub fn stateless(client: McpClient, history: &History) -> Self {
        Self {
            client,
            session: None,
            history: history.clone(),
            next: AtomicI64::new(1),
        }
    }

    /// With another token.
    pub fn with_token(mut self, token: &str) -> Result<Self> {
        self.client = self.client.with_token(token)?;
        Ok(self)
    }

    /// The client that it speaks through.
    pub fn client(&self) -> &McpClient {
        &self.client
    }

    /// Makes the call and sees it through to its outcome.
    pub async fn call(&self, plan: &Plan) -> Outcome {
        let name = plan.work.call.clone();
        self.history.add(What::Began {
            call: name.clone(),
            session: self.session.clone(),
            safe: plan.safe,
            deadline: millis(plan.deadline),
        });
        let outcome = timeout(plan.deadline + PATIENCE, self.stop_or_see_through(plan))
            .await
            .unwrap_or(Outcome::Hung);
        self.history.add(What::Ended {
            call: name,
            outcome: outcome.clone(),
        });
        outcome
    }

    /// Without a session, closing the connection cancels the call (MCP-T-63). In a session it does
    /// not (MCP-T-29).
    async fn stop_or_see_through(&self, plan: &Plan) -> Outcome {
        let cancel = watch::Sender::new(Cancel::No);
        let Some(after) = plan.cancel_after else {
            return self.see_through(plan, &cancel).await;
        };
        if self.session.is_none() {
            let cut = timeout(after, self.see_through(plan, &cancel)).await;
            return cut.unwrap_or_else(|_| {
                self.history.add(What::Cancelled {
                    call: plan.work.call.clone(),
                });
                Outcome::Cancelled
            });
        }
        let stopping = async {
            sleep(after).await;
            self.cancel(plan, &cancel).await;
            std::future::pending::<Outcome>().await
        };
        tokio::select! {
            outcome = self.see_through(plan, &cancel) => outcome,
            outcome = stopping => outcome,
        }
    }

    /// On another connection, and so by chance on another node.
    async fn cancel(&self, plan: &Plan, cancel: &watch::Sender<Cancel>) {
        cancel.send_replace(Cancel::Sent);
        let notice = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": {"requestId": plan.work.call, "reason": "enough"}});
        let said = match self.client.message(&notice).await {
            Ok(answer) if answer.status == StatusCode::ACCEPTED => {
                self.history.add(What::Cancelled {
                    call: plan.work.call.clone(),
                });
                Cancel::Taken
            }
            Ok(answer) if answer.status.is_client_error() => Cancel::No,
            _ => Cancel::Unsaid,
        };
        cancel.send_replace(said);
    }

    /// Whether the call was cancelled, as soon as that is known.
    async fn is_cancelled(cancel: &watch::Sender<Cancel>) -> bool {
        Self::verdict(cancel).await == Cancel::Taken
    }

    async fn verdict(cancel: &watch::Sender<Cancel>) -> Cancel {
        let mut seen = cancel.subscribe();
        let known = seen.wait_for(|cancel| *cancel != Cancel::Sent).await;
        known.map_or(Cancel::No, |cancel| *cancel)
    }

    /// Handles an answer that is no stream. Only a cancelled call ends with success and without a
    /// response.
    async fn settle(
        &self,
        plan: &Plan,
        answer: &Answer,
        cancel: &watch::Sender<Cancel>,
    ) -> Outcome {
        let is_empty = answer.status.is_success() && answer.json.is_null();
        if is_empty && Self::verdict(cancel).await != Cancel::No {
            return Outcome::Cancelled;
        }
        whole(answer, &plan.work)
    }

    async fn see_through(&self, plan: &Plan, cancel: &watch::Sender<Cancel>) -> Outcome {
        let mut brought = Map::new();
        for _ in 0..ROUNDS {
            let first = match self.send(plan, &brought).await {
                Ok(reply) => reply,
                Err(error) => return Outcome::Refused(format!("{error:#}")),
            };
            self.note_taken(plan, &brought, &first);
            let last = match first {
                Reply::Whole(answer) if is_asking(&answer.json) => answer.json,
                Reply::Whole(answer) => return self.settle(plan, &answer, cancel).await,
                Reply::Stream(stream) => match self.follow(plan, stream, cancel).await {
                    Ok(outcome) => return outcome,
                    Err(asks) => asks,
                },
            };
            brought = self.answer_all(plan, &last["result"]);
        }
        Outcome::Refused(format!("asked {ROUNDS} times"))
    }

    /// Reads a stream to the response, over as many connections as it takes. An error is a result that asks.
    async fn follow(
        &self,
        plan: &Plan,
        mut stream: SseStream,
        cancel: &watch::Sender<Cancel>,
    ) -> Result<Outcome, Value> {
        let mut events_left = plan.cut_after;
        let mut last_id: Option<String> = None;
        let mut left_open = Vec::new();
        loop {
            match self.read(&mut stream, plan, &mut events_left).await {
                Step::Done(outcome) => return Ok(outcome),
                Step::Asks(message) => return Err(message),
                Step::Broken => {}
            }
            if let Some(id) = stream.last_id() {
                last_id = Some(id.to_owned());
            }
            let mut wait = stream.retry().unwrap_or(RETRY);
            if plan.half_open {
                left_open.push(stream);
            } else {
                drop(stream);
            }
            let is_cancelled = Self::is_cancelled(cancel).await;
            let Some(last_id) = &last_id else {
                return Ok(if is_cancelled {
                    Outcome::Cancelled
                } else {
                    Outcome::Refused("the stream broke before its first id".to_owned())
                });
            };
            if is_cancelled {
                return Ok(self.look_again(plan, last_id).await);
            }
            stream = loop {
                sleep(wait).await;
                wait = RETRY;
                match self.resume(plan, last_id).await {
                    Ok(Reply::Stream(stream)) => break stream,
                    Ok(Reply::Whole(answer)) if is_passing(answer.status) => {
                        wait = retry_after(&answer).unwrap_or(RETRY);
                    }
                    Ok(Reply::Whole(answer)) => {
                        return Ok(self.settle(plan, &answer, cancel).await);
                    }
                    Err(_) => {}
                }
            };
        }
    }

    async fn resume(&self, plan: &Plan, last_id: &str) -> Result<Reply> {
        let reply = self.client.resume(last_id).await;
        let status = match &reply {
            Ok(Reply::Stream(_)) => 200,
            Ok(Reply::Whole(answer)) => answer.status.as_u16(),
            Err(_) => 0,
        };
        self.history.add(What::Resumed {
            call: plan.work.call.clone(),
            status,
        });
        reply
    }

    /// There must be no answer to a cancelled call, not even on resume.
    async fn look_again(&self, plan: &Plan, last_id: &str) -> Outcome {
        if let Ok(Reply::Stream(mut stream)) = self.resume(plan, last_id).await {
            let mut goes_on = None;
            let rest = self.read(&mut stream, plan, &mut goes_on);
            if let Ok(Step::Done(outcome)) = timeout(LOOKS, rest).await {
                return outcome;
            }
        }
        Outcome::Cancelled
    }

    /// Sends the call, with what an earlier round brought.
    async fn send(&self, plan: &Plan, brought: &Map<String, Value>) -> Result<Reply> {
        let (tool, arguments) = match plan {
            Plan { asks: true, .. } => (asker::TOOL, json!({"call": plan.work.call})),
            Plan { safe: true, .. } => ("look_up", serde_json::to_value(&plan.work)?),
            _ => ("do_work", serde_json::to_value(&plan.work)?),
        };
        let token = plan.progress.then_some(plan.work.call.as_str());
        if self.session.is_some() {
            // A name is easier to cancel than a number.
            let id: Value = match plan.cancel_after {
                Some(_) => plan.work.call.as_str().into(),
                None => self.next.fetch_add(1, Ordering::Relaxed).into(),
            };
            return self.client.start(&call(id, tool, arguments, token)).await;
        }
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let mut params = json!({"name": tool, "arguments": arguments});
        for (name, value) in brought {
            params[name] = value.clone();
        }
        let client = self.client.modern_client("tools/call", &params)?;
        let mut message = modern_message("tools/call", params);
        message["id"] = id.into();
        if plan.asks {
            message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = able();
        }
        if let Some(token) = token {
            message["params"]["_meta"]["progressToken"] = token.into();
        }
        client.start(&message).await
    }

    async fn read(
        &self,
        stream: &mut SseStream,
        plan: &Plan,
        events_left: &mut Option<usize>,
    ) -> Step {
        loop {
            if *events_left == Some(0) {
                *events_left = None;
                return Step::Broken;
            }
            let Ok(Some(event)) = stream.next().await else {
                return Step::Broken;
            };
            sleep(plan.rest).await;
            let message = event.message();
            if is_asking(&message) {
                return Step::Asks(message);
            }
            let body = Body::of(&event, &plan.work);
            self.history.add(What::Got {
                call: plan.work.call.clone(),
                id: event.id.clone(),
                body: body.clone(),
            });
            if let Body::Response(outcome) = body {
                return Step::Done(outcome);
            }
            if message["method"] == "elicitation/create" {
                self.answer(plan, &message).await;
            }
            if let (Some(left), true) = (events_left.as_mut(), event.id.is_some()) {
                *left -= 1;
            }
        }
    }

    /// Answers a question of a session on another connection, until the service has taken the answer or refuses it.
    async fn answer(&self, plan: &Plan, question: &Value) {
        let id = question["id"].as_str().unwrap_or_default();
        let (content, answer) = self.word(plan, &question["params"], id);
        let response = json!({"jsonrpc": "2.0", "id": id, "result": content});
        loop {
            self.history.add(What::Answers {
                call: plan.work.call.clone(),
                answer: answer.clone(),
            });
            match self.client.message(&response).await {
                Ok(said) if said.status.is_success() => break,
                Ok(said) if !is_passing(said.status) => return,
                _ => sleep(RETRY).await,
            }
        }
        self.history.add(What::Taken {
            call: plan.work.call.clone(),
            answer,
        });
    }

    /// Answers the questions of a result: the parameters of the next request.
    fn answer_all(&self, plan: &Plan, result: &Value) -> Map<String, Value> {
        let state = result["requestState"].as_str().unwrap_or_default();
        let requests = result["inputRequests"].as_object();
        let responses: Map<String, Value> = requests
            .into_iter()
            .flatten()
            .map(|(key, question)| {
                let place = format!("{key} {}", state.len());
                let (content, answer) = self.word(plan, &question["params"], &place);
                self.history.add(What::Answers {
                    call: plan.work.call.clone(),
                    answer,
                });
                (key.clone(), content)
            })
            .collect();
        Map::from_iter([
            ("inputResponses".to_owned(), Value::Object(responses)),
            ("requestState".to_owned(), result["requestState"].clone()),
        ])
    }

    /// The result of a retry confirms that its answers were accepted.
    fn note_taken(&self, plan: &Plan, brought: &Map<String, Value>, reply: &Reply) {
        let is_taken = match reply {
            Reply::Whole(answer) => answer.json.get("result").is_some(),
            Reply::Stream(_) => false,
        };
        let responses = brought.get("inputResponses").and_then(Value::as_object);
        for response in responses.into_iter().flat_map(Map::values) {
            if let (true, Some(answer)) = (is_taken, response["content"][asker::FIELD].as_str()) {
                self.history.add(What::Taken {
                    call: plan.work.call.clone(),
                    answer: answer.to_owned(),
                });
            }
        }
    }

    /// Its answer to a question, as a result and as a text that is unique in the run.
    fn word(&self, plan: &Plan, question: &Value, place: &str) -> (Value, String) {
        let call = &plan.work.call;
        self.history.add(What::Asked {
            call: call.clone(),
            about: question["message"].as_str().unwrap_or_default().to_owned(),
        });
        let answer = format!("{call} says so to {place}");
        let content = json!({"action": "accept", "content": {asker::FIELD: answer}});
        (content, answer)
    }

    /// Ends the session. Answers the status, if there was one.
    pub async fn end(&self) -> Option<StatusCode> {
        let session = self.session.clone()?;
        let asked = Instant::now();
        let answer = self.client.send(reqwest::Method::DELETE).await.ok()?;
        if answer.status.is_success() {
            let took = millis(asked.elapsed());
            self.history.add(What::Deleted { session, took });
        }
        Some(answer.status)
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The capabilities of a client that answers questions.
pub fn able() -> Value {
    json!({"elicitation": {"form": {}}})
}

/// A result of 2026-07-28 that asks.
fn is_asking(message: &Value) -> bool {
    message["result"]["resultType"] == "input_required"
}

/// Worth another try of the same GET, and of an answer.
fn is_passing(status: StatusCode) -> bool {
    matches!(status.as_u16(), 429 | 500 | 502 | 503 | 504)
}

fn retry_after(answer: &Answer) -> Option<Duration> {
    answer
        .header("retry-after")
        .parse()
        .ok()
        .map(Duration::from_secs)
}

fn whole(answer: &Answer, work: &Work) -> Outcome {
    let is_response = answer.json.get("result").is_some() || answer.json["error"] != Value::Null;
    if answer.status.is_success() && is_response {
        Outcome::of(&answer.json, work)
    } else {
        Outcome::Http(answer.status.as_u16())
    }
}
