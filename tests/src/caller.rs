//! A client that follows the protocol through everything: it resumes where it may, waits as it is told, and writes down what it saw.

use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::Duration,
};

use anyhow::Result;
use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::{
    fleet::call,
    held::Work,
    history::{Body, History, Outcome, What},
    mcp::{Answer, McpClient, Reply, modern_message},
    sse::SseStream,
};

/// What a client waits before it connects again if the server asked for nothing.
const RETRY: Duration = Duration::from_secs(1);
/// The harness gives a call this much more than its deadline before it says that it hangs.
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
    /// What to ask for.
    pub work: Work,
    /// With a tool that only reads?
    pub safe: bool,
    /// Ask for progress?
    pub progress: bool,
    /// The client itself loses its connection after so many events.
    pub cut_after: Option<usize>,
    /// It loses it without knowing: nothing is closed, and nobody reads it any more.
    pub half_open: bool,
    /// What it does with one event before it reads the next.
    pub rest: Duration,
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
            deadline: Duration::from_millis(millis) + Duration::from_secs(15),
        }
    }
}

/// How a stream went on.
enum Step {
    Done(Outcome),
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
            deadline: u64::try_from(plan.deadline.as_millis()).unwrap_or(u64::MAX),
        });
        let outcome = timeout(plan.deadline + PATIENCE, self.see_through(plan))
            .await
            .unwrap_or(Outcome::Hung);
        self.history.add(What::Ended {
            call: name,
            outcome: outcome.clone(),
        });
        outcome
    }

    async fn see_through(&self, plan: &Plan) -> Outcome {
        let first = match self.send(plan).await {
            Ok(reply) => reply,
            Err(error) => return Outcome::Refused(format!("{error:#}")),
        };
        let mut stream = match first {
            Reply::Whole(answer) => return whole(&answer, &plan.work),
            Reply::Stream(stream) => stream,
        };
        let mut events_left = plan.cut_after;
        let mut last_id: Option<String> = None;
        let mut left_open = Vec::new();
        loop {
            let step = self.read(&mut stream, plan, &mut events_left).await;
            if let Step::Done(outcome) = step {
                return outcome;
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
            let Some(last_id) = &last_id else {
                return Outcome::Refused("the stream broke before its first id".to_owned());
            };
            stream = loop {
                sleep(wait).await;
                wait = RETRY;
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
                match reply {
                    Ok(Reply::Stream(stream)) => break stream,
                    Ok(Reply::Whole(answer)) if is_passing(answer.status) => {
                        wait = retry_after(&answer).unwrap_or(RETRY);
                    }
                    Ok(Reply::Whole(answer)) => return whole(&answer, &plan.work),
                    Err(_) => {}
                }
            };
        }
    }

    async fn send(&self, plan: &Plan) -> Result<Reply> {
        let (tool, arguments) = (
            if plan.safe { "look_up" } else { "do_work" },
            serde_json::to_value(&plan.work)?,
        );
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let token = plan.progress.then_some(plan.work.call.as_str());
        if self.session.is_some() {
            return self.client.start(&call(id, tool, arguments, token)).await;
        }
        let params = json!({"name": tool, "arguments": arguments});
        let client = self.client.modern_client("tools/call", &params)?;
        let mut message = modern_message("tools/call", params);
        message["id"] = id.into();
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
            let body = Body::of(&event, &plan.work);
            self.history.add(What::Got {
                call: plan.work.call.clone(),
                id: event.id.clone(),
                body: body.clone(),
            });
            if let Body::Response(outcome) = body {
                return Step::Done(outcome);
            }
            if let (Some(left), true) = (events_left.as_mut(), event.id.is_some()) {
                *left -= 1;
            }
        }
    }

    /// Ends the session. Answers the status, if there was one.
    pub async fn end(&self) -> Option<StatusCode> {
        let session = self.session.clone()?;
        let answer = self.client.send(reqwest::Method::DELETE).await.ok()?;
        if answer.status.is_success() {
            self.history.add(What::Deleted { session });
        }
        Some(answer.status)
    }
}

/// Worth another try of the same GET.
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
