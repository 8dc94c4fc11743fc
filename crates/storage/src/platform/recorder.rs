//! The writer of connection diagnostics (AUTH-X2). Requests queue steps without waiting, and one
//! task writes them in batches. Excess steps are dropped and counted, because strangers cause most
//! of them. `gate` defines the limits.

mod gate;

use std::{
    collections::HashSet,
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use portolan_model::{Digest, Timestamp};
use tokio::{
    sync::mpsc,
    time::{Instant, MissedTickBehavior, interval},
};

use self::gate::Gate;
use crate::{
    Reason, StorageError, Store,
    platform::connect_events::{self, NewEvent, Repeat, Step},
};

/// Steps that wait to be written.
const QUEUE: usize = 2_000;
/// Steps of one statement.
const BATCH: usize = 200;
/// How long steps are collected.
const COLLECT: Duration = Duration::from_millis(200);
/// Between two looks for what was only counted.
const COUNTS: Duration = Duration::from_secs(5);

/// Takes steps. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Recorder(Option<Arc<RecorderState>>);

#[derive(Debug)]
struct RecorderState {
    queue: mpsc::Sender<NewEvent>,
    gate: Arc<Mutex<Gate>>,
}

/// The reading end.
#[derive(Debug)]
pub struct RecordWriter {
    queue: mpsc::Receiver<NewEvent>,
    gate: Arc<Mutex<Gate>>,
    store: Store,
}

fn lock(gate: &Mutex<Gate>) -> MutexGuard<'_, Gate> {
    gate.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Recorder {
    /// A recorder, and what writes: to be run by a tracked task.
    pub fn new(store: Store) -> (Self, RecordWriter) {
        let (sender, receiver) = mpsc::channel(QUEUE);
        let gate = Arc::new(Mutex::new(Gate::new(Instant::now())));
        let recorder = Self(Some(Arc::new(RecorderState {
            queue: sender,
            gate: Arc::clone(&gate),
        })));
        let writer = RecordWriter {
            queue: receiver,
            gate,
            store,
        };
        (recorder, writer)
    }

    /// One that forgets everything.
    pub const fn off() -> Self {
        Self(None)
    }

    /// Queues a step. Never waits. False if the step is dropped because a limit is exceeded. A
    /// repeated step counts as accepted.
    pub fn record(&self, event: NewEvent) -> bool {
        let Some(shared) = &self.0 else { return true };
        let admitted = lock(&shared.gate).admit(&event, Instant::now());
        match admitted {
            None => true,
            Some(true) if shared.queue.try_send(event).is_ok() => true,
            Some(_) => {
                metrics::counter!("connect_events_dropped_total").increment(1);
                false
            }
        }
    }

    /// Registers that a valid token for a workspace of this name was presented. From now on,
    /// metadata requests for it have their own budget.
    pub fn knows(&self, slug: &str) {
        if let Some(shared) = &self.0 {
            lock(&shared.gate).knows(slug, Instant::now());
        }
    }
}

impl RecordWriter {
    /// Writes until `stopping` completes, and then what is still waiting.
    pub async fn run(mut self, stopping: impl Future<Output = ()> + Send) {
        tokio::pin!(stopping);
        let mut batch = Vec::with_capacity(BATCH);
        let mut counts = interval(COUNTS);
        counts.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut goes_on = true;
        while goes_on {
            tokio::select! {
                taken = self.queue.recv_many(&mut batch, BATCH) => goes_on = taken > 0,
                _ = counts.tick() => {
                    self.count().await;
                    continue;
                }
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
        self.count().await;
    }

    async fn write(&self, batch: &mut Vec<NewEvent>) {
        if batch.is_empty() {
            return;
        }
        match self.insert(batch).await {
            Ok(somebodys) => lock(&self.gate).learn(batch, &somebodys, Instant::now()),
            Err(error) => {
                metrics::counter!("connect_events_dropped_total").increment(batch.len() as u64);
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    events = batch.len(),
                    "cannot write the flight recorder"
                );
            }
        }
        batch.clear();
    }

    async fn insert(&self, events: &[NewEvent]) -> Result<HashSet<String>, StorageError> {
        let mut tx = self.store.edge(Reason::Recorder).await?;
        let somebodys = connect_events::insert_many(&mut tx, events).await?;
        tx.commit().await?;
        Ok(somebodys)
    }

    /// Writes down how often loops have gone round.
    async fn count(&self) {
        let repeats = lock(&self.gate).repeats(Instant::now());
        if repeats.is_empty() {
            return;
        }
        match self.add(&repeats).await {
            Ok(gone) => {
                let mut gate = lock(&self.gate);
                for repeat in gone {
                    gate.forget(&repeat.which);
                }
            }
            Err(error) => tracing::warn!(
                error = &error as &dyn std::error::Error,
                "cannot count in the flight recorder"
            ),
        }
    }

    async fn add(&self, repeats: &[Repeat]) -> Result<Vec<Repeat>, StorageError> {
        let mut tx = self.store.edge(Reason::Recorder).await?;
        let gone = connect_events::repeated(&mut tx, repeats).await?;
        tx.commit().await?;
        Ok(gone)
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
        place: connect_events::StepTenant::Unknown,
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
            // The address of a metadata document has no query. A value with a query belongs to no
            // client and may hold anything.
            let shown = client_id.split(['?', '#']).next().unwrap_or_default();
            self.client = kept(shown).map(|text| (text, digest));
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x1_what_is_kept_of_a_text_is_short_and_printable() {
        assert_eq!(kept("a\u{202e}b\n\x1b[31mc").as_deref(), Some("ab[31mc"));
        assert_eq!(kept(&"x".repeat(1000)).map(|text| text.len()), Some(200));
        assert_eq!(kept(" \n"), None);
    }
}
