//! Several nodes, one service: any node serves any request and resumes any stream, and each may die (STREAM-1).
//!
//! Most tests speak to the nodes one by one, under the public name, so that they know who does what; those about rolling and chaos
//! go through HAProxy.

mod attached;
mod bad_input;
mod cancel;
mod clock;
mod counts;
mod death;
mod default_server;
mod feed;
mod forged;
mod hearing;
mod hostile;
mod limits;
mod load;
mod neighbours;
mod news;
mod operators;
mod price;
mod privileges;
mod resume;
mod revocation;
mod rolling;
mod sessions;
mod sick;
mod slugs;
mod smuggling;
mod strangers;
mod traces;
mod tries;
mod unsaid;
mod watch;

use std::time::Duration;

use anyhow::{Context, Result};
use portolan_tests::{
    fleet::{Fleet, call},
    mcp::{Answer, McpClient},
    sse::{Event, SseStream},
};
use serde_json::{Value, json};

/// Longest time until a lost owner is replaced (STREAM-1).
const ADOPTION: Duration = Duration::from_secs(12);

/// A call that runs on one node and that the test holds.
#[derive(Debug)]
struct Order {
    /// Its key at the API.
    key: String,
    /// Its events up to the first notice of progress.
    events: Vec<Event>,
    /// The open answer.
    stream: SseStream,
}

impl Order {
    /// Starts it on `client`'s node and waits until it is under way and has sent progress.
    async fn start(fleet: &Fleet, client: &McpClient, id: i64) -> Result<Self> {
        let key = format!("order-{id}");
        let message = call(id, "held_order", json!({"key": key}), Some("token"));
        let mut stream = client.start(&message).await?.stream()?;
        fleet.fixture.held.arrived(&key, 1).await?;
        let events = stream.until(is_progress).await?;
        Ok(Self {
            key,
            events,
            stream,
        })
    }

    /// Lets the API answer.
    fn release(&self, fleet: &Fleet) {
        fleet.fixture.held.release(&self.key);
    }

    /// The id of the very first event.
    fn first_id(&self) -> Result<&str> {
        self.events
            .first()
            .and_then(|event| event.id.as_deref())
            .context("the first event has an id")
    }
}

fn is_progress(event: &Event) -> bool {
    event.message()["method"] == "notifications/progress"
}

/// The one response among these events.
fn response(events: &[Event]) -> Result<Value> {
    let responses: Vec<_> = events.iter().filter(|event| event.is_response()).collect();
    anyhow::ensure!(responses.len() == 1, "one response in {events:?}");
    Ok(responses[0].message())
}

/// Says something through the tool that repeats it.
async fn echo(client: &McpClient, text: &str) -> Result<()> {
    let answer = client
        .request(
            "tools/call",
            json!({"name": "echo_message", "arguments": {"message": text}}),
        )
        .await?;
    repeats(&answer, text)
}

/// The answer of that tool.
fn repeats(answer: &Answer, text: &str) -> Result<()> {
    anyhow::ensure!(
        answer.json["result"]["structuredContent"]["message"] == text,
        "{} {}",
        answer.status,
        answer.text
    );
    Ok(())
}
