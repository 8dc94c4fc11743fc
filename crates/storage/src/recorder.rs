//! The writing end of the flight recorder (`auth.md` X2): steps are handed over on the way of a request, which never waits, and written
//! in batches by one task. What is too much is dropped and counted: strangers cause most of these steps.

use std::{
    collections::HashMap,
    future::Future,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use portolan_model::{Digest, Timestamp};
use tokio::{sync::mpsc, time::Instant};

use crate::{
    Reason, StorageError, Store,
    connect_events::{self, NewEvent, Step},
};

/// Steps that wait to be written.
const QUEUE: usize = 2_000;
/// Steps of one statement.
const BATCH: usize = 200;
/// How long steps are collected.
const COLLECT: Duration = Duration::from_millis(200);
/// Steps that cost a stranger nothing: so many at once, and so many a second after that.
const DISCOVERY: Budget = Budget {
    burst: 200.0,
    per_second: 2.0,
};
/// All others together.
const FLOW: Budget = Budget {
    burst: 500.0,
    per_second: 20.0,
};
/// First requests, which nobody can cause without a token: networks of hosted clients send them for everybody.
const REQUESTS: Budget = Budget {
    burst: 500.0,
    per_second: 50.0,
};
/// One network block.
const BLOCK: Budget = Budget {
    burst: 120.0,
    per_second: 1.0,
};
/// Blocks that are remembered; after that all are forgotten.
const BLOCKS: usize = 20_000;
/// A step of discovery that is repeated within this time tells nothing new.
const SAME: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy)]
struct Budget {
    burst: f64,
    per_second: f64,
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    left: f64,
    at: Instant,
}

impl Bucket {
    fn full(budget: Budget, now: Instant) -> Self {
        Self {
            left: budget.burst,
            at: now,
        }
    }

    fn take(&mut self, budget: Budget, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.left = (self.left + passed * budget.per_second).min(budget.burst);
        self.at = now;
        let has = self.left >= 1.0;
        if has {
            self.left -= 1.0;
        }
        has
    }
}

#[derive(Debug)]
struct Gate {
    discovery: Bucket,
    flow: Bucket,
    requests: Bucket,
    blocks: HashMap<String, Bucket>,
    seen: HashMap<(Step, String, Option<String>, String), Instant>,
}

impl Gate {
    /// `Some(false)`: too much. `None`: nothing new.
    fn admit(&mut self, event: &NewEvent, now: Instant) -> Option<bool> {
        if event.step == Step::Request {
            return Some(self.requests.take(REQUESTS, now));
        }
        if event.step.is_discovery() {
            let key = (
                event.step,
                event.ip_block.clone(),
                event.agent.clone(),
                format!("{:?} {:?} {:?}", event.place, event.server, event.fault),
            );
            let last = self.seen.get(&key).copied();
            if last.is_some_and(|last| now.saturating_duration_since(last) < SAME) {
                return None;
            }
            if self.seen.len() >= BLOCKS {
                self.seen.clear();
            }
            self.seen.insert(key, now);
        }
        if self.blocks.len() >= BLOCKS {
            self.blocks.clear();
        }
        let block = self
            .blocks
            .entry(event.ip_block.clone())
            .or_insert_with(|| Bucket::full(BLOCK, now));
        let (all, budget) = if event.step.is_discovery() {
            (&mut self.discovery, DISCOVERY)
        } else {
            (&mut self.flow, FLOW)
        };
        Some(block.take(BLOCK, now) && all.take(budget, now))
    }
}

/// Takes steps. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Recorder(Option<Arc<Shared>>);

#[derive(Debug)]
struct Shared {
    queue: mpsc::Sender<NewEvent>,
    gate: Mutex<Gate>,
}

/// The reading end.
#[derive(Debug)]
pub struct RecordWriter {
    queue: mpsc::Receiver<NewEvent>,
    store: Store,
}

impl Recorder {
    /// A recorder, and what writes: to be run by a tracked task.
    pub fn new(store: Store) -> (Self, RecordWriter) {
        let (sender, receiver) = mpsc::channel(QUEUE);
        let now = Instant::now();
        let recorder = Self(Some(Arc::new(Shared {
            queue: sender,
            gate: Mutex::new(Gate {
                discovery: Bucket::full(DISCOVERY, now),
                flow: Bucket::full(FLOW, now),
                requests: Bucket::full(REQUESTS, now),
                blocks: HashMap::new(),
                seen: HashMap::new(),
            }),
        })));
        let writer = RecordWriter {
            queue: receiver,
            store,
        };
        (recorder, writer)
    }

    /// One that forgets everything.
    pub const fn off() -> Self {
        Self(None)
    }

    /// Hands a step over. Never waits; what is too much is dropped: false. What is nothing new counts as kept.
    pub fn record(&self, event: NewEvent) -> bool {
        let Some(shared) = &self.0 else { return true };
        let admitted = shared
            .gate
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .admit(&event, Instant::now());
        match admitted {
            None => true,
            Some(true) if shared.queue.try_send(event).is_ok() => true,
            Some(_) => {
                metrics::counter!("connect_events_dropped_total").increment(1);
                false
            }
        }
    }
}

impl RecordWriter {
    /// Writes until `stopping` completes, and then what is still waiting.
    pub async fn run(mut self, stopping: impl Future<Output = ()> + Send) {
        tokio::pin!(stopping);
        let mut batch = Vec::with_capacity(BATCH);
        let mut goes_on = true;
        while goes_on {
            tokio::select! {
                taken = self.queue.recv_many(&mut batch, BATCH) => if taken == 0 { return },
                () = &mut stopping => goes_on = false,
            }
            if goes_on && batch.len() < BATCH {
                tokio::select! {
                    () = tokio::time::sleep(COLLECT) => {}
                    () = &mut stopping => goes_on = false,
                }
            }
            while batch.len() < 4 * BATCH
                && let Ok(event) = self.queue.try_recv()
            {
                batch.push(event);
            }
            self.write(&mut batch).await;
        }
    }

    async fn write(&self, batch: &mut Vec<NewEvent>) {
        if batch.is_empty() {
            return;
        }
        if let Err(error) = self.insert(batch).await {
            metrics::counter!("connect_events_dropped_total").increment(batch.len() as u64);
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                events = batch.len(),
                "cannot write the flight recorder"
            );
        }
        batch.clear();
    }

    async fn insert(&self, events: &[NewEvent]) -> Result<(), StorageError> {
        let mut tx = self.store.system(Reason::Recorder).await?;
        connect_events::insert_many(&mut tx, events).await?;
        tx.commit().await
    }
}

/// Text of a stranger, as it may be kept: printable ASCII, not long.
pub fn kept(text: &str) -> Option<String> {
    const MOST: usize = 200;
    let text: String = text
        .chars()
        .filter(|c| c.is_ascii_graphic() || *c == ' ')
        .take(MOST)
        .collect();
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// A step about which nothing more is known than who took it.
pub fn bare(
    at: Timestamp,
    step: Step,
    request_id: &str,
    ip_block: String,
    agent: Option<&str>,
) -> NewEvent {
    NewEvent {
        at,
        step,
        outcome: connect_events::StepOutcome::Ok,
        place: connect_events::Place::Unknown,
        server: None,
        request_id: request_id.to_owned(),
        authorization: None,
        grant: None,
        user: None,
        client: None,
        client_name: None,
        ip_block,
        agent: agent.and_then(kept),
        rule: None,
        fault: None,
        detail: serde_json::Value::Object(serde_json::Map::new()),
    }
}

impl NewEvent {
    /// Of this client, with the digest of its id; an id that is too long to be one is left out.
    #[must_use]
    pub fn of_client(mut self, client_id: &str, digest: Digest) -> Self {
        if client_id.len() <= 512 {
            // The address of a document has no query; what has one is no client of anybody's, and may be anything.
            let shown = client_id.split(['?', '#']).next().unwrap_or_default();
            self.client = kept(shown).map(|text| (text, digest));
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(step: Step, block: &str) -> NewEvent {
        bare(
            Timestamp::UNIX_EPOCH,
            step,
            "1",
            block.to_owned(),
            Some("x/1"),
        )
    }

    fn gate(now: Instant) -> Gate {
        Gate {
            discovery: Bucket::full(DISCOVERY, now),
            flow: Bucket::full(FLOW, now),
            requests: Bucket::full(REQUESTS, now),
            blocks: HashMap::new(),
            seen: HashMap::new(),
        }
    }

    #[test]
    fn x2_a_flood_of_strangers_writes_little() {
        let now = Instant::now();
        let mut gate = gate(now);
        let admitted = (0..100_000)
            .filter(|n| {
                let mut event = event(Step::Challenge, &format!("10.{}.{}.0/24", n / 250, n % 250));
                event.place = connect_events::Place::Slug("acme".to_owned());
                gate.admit(&event, now) == Some(true)
            })
            .count();
        assert_eq!(admitted, 200);
        let flow = event(Step::Authorize, "192.0.2.0/24");
        assert_eq!(
            gate.admit(&flow, now),
            Some(true),
            "others have their own budget"
        );
        let of_one = (0..1000)
            .filter(|_| gate.admit(&flow, now) == Some(true))
            .count();
        assert_eq!(of_one, 119, "one network cannot use it up");
        let later = now + Duration::from_secs(10);
        let again = (0..100)
            .filter(|n| {
                let event = event(Step::ServerMetadata, &format!("11.0.{n}.0/24"));
                gate.admit(&event, later) == Some(true)
            })
            .count();
        assert_eq!(again, 20);
    }

    #[test]
    fn x2_first_requests_of_a_hosted_client_are_not_bounded_by_its_network() {
        let now = Instant::now();
        let mut gate = gate(now);
        let request = event(Step::Request, "192.0.2.0/24");
        let admitted = (0..400)
            .filter(|_| gate.admit(&request, now) == Some(true))
            .count();
        assert_eq!(admitted, 400);
        let flow = event(Step::Authorize, "192.0.2.0/24");
        assert_eq!(gate.admit(&flow, now), Some(true), "nor do they use it up");
    }

    #[test]
    fn the_same_look_within_a_minute_is_nothing_new() {
        let now = Instant::now();
        let mut gate = gate(now);
        let look = event(Step::ServerMetadata, "192.0.2.0/24");
        assert_eq!(gate.admit(&look, now), Some(true));
        assert_eq!(gate.admit(&look, now + SAME / 2), None);
        assert_eq!(gate.admit(&look, now + SAME), Some(true));
        let register = event(Step::Register, "192.0.2.0/24");
        assert_eq!(gate.admit(&register, now), Some(true));
        assert_eq!(gate.admit(&register, now), Some(true), "#19: twice is news");
    }

    #[test]
    fn x1_what_is_kept_of_a_text_is_short_and_printable() {
        assert_eq!(kept("a\u{202e}b\n\x1b[31mc").as_deref(), Some("ab[31mc"));
        assert_eq!(kept(&"x".repeat(1000)).map(|text| text.len()), Some(200));
        assert_eq!(kept(" \n"), None);
    }
}
