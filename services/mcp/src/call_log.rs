//! The records of calls: their counts, their log, the last use of apps and the state of
//! credentials. One batching writer behind a bounded queue.
//!
//! Requests do not wait for it. Counts do not pass the queue: they are exact (METER-1). The log
//! keeps what the budget of the tenant allows (METER-7).

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use portolan_cluster::store::SessionKey;
use portolan_keys::digest;
use portolan_metering::{Budget, CallEra, Key, Measures, Meter, budget::Judged, key::outcome_code};
use portolan_model::{
    Timestamp,
    id::{CallId, GrantId, ServerId, SourceId, TenantId},
    registry::CallOutcome,
};
use portolan_protocol::revision::{Era, Revision};
use portolan_storage::{
    Reason, StorageError, Store,
    oauth::grant_uses,
    platform::{
        call_contents,
        calls::{self, Call},
    },
    registry::credential_states::{self, Seen},
};
use tokio::{sync::mpsc, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::{
    caller::Caller,
    capture::{CaptureQuota, ContentOfCall, TakenContent},
    hex::hex,
    instruments,
};

/// Most entries of one statement.
const BATCH: usize = 500;

/// How long entries are collected after a pause: a person who makes a call sees it soon.
const COLLECT: Duration = Duration::from_millis(250);

/// From one statement to the next while calls go on. A statement costs Postgres the same with few
/// rows and with many.
const APART: Duration = Duration::from_secs(1);

/// Digits of a session's name: it names a session for people, and opens none.
const SESSION_DIGITS: usize = 16;

/// A call that ended.
#[derive(Debug)]
pub(crate) struct Logged {
    pub(crate) id: CallId,
    /// When it came.
    pub(crate) at: Timestamp,
    /// The server, and its slug.
    pub(crate) server: (ServerId, Arc<str>),
    /// The name of the tool.
    pub(crate) item: Arc<str>,
    pub(crate) client: Option<Arc<str>>,
    pub(crate) client_version: Option<Arc<str>>,
    pub(crate) caller: Arc<Caller>,
    pub(crate) session: Option<SessionKey>,
    pub(crate) revision: Revision,
    pub(crate) trace: Option<[u8; 16]>,
    pub(crate) outcome: CallOutcome,
    /// The API's status.
    pub(crate) status: Option<u16>,
    pub(crate) measures: Measures,
    /// From its arrival to the begin of its work, in microseconds.
    pub(crate) wait_us: u64,
    /// Why it failed, in words of ours.
    pub(crate) error: Option<String>,
    /// Arguments and answer, if the policy of the server keeps them.
    pub(crate) content: Option<TakenContent>,
}

impl Logged {
    fn tenant(&self) -> TenantId {
        self.caller.claims.tid
    }

    fn era(&self) -> CallEra {
        match self.revision.era() {
            Era::Legacy => CallEra::Session,
            Era::Modern => CallEra::Stateless,
        }
    }

    fn key(&self) -> Key {
        Key {
            tenant: self.tenant(),
            server: Some(self.server.0),
            item: Arc::clone(&self.item),
            client: self.client.clone(),
            caller: self.caller.kind.code(),
            outcome: outcome_code(self.outcome),
            era: self.era().code(),
        }
    }

    /// Its row, which stands for so many calls.
    fn row(&self, node: &Arc<str>, weight: u32) -> Call<'_> {
        let claims = &self.caller.claims;
        let named = |key: SessionKey| hex(&digest(&key.0).as_bytes()[..SESSION_DIGITS / 2]);
        Call {
            id: self.id,
            tenant: self.tenant(),
            at: self.at,
            client_id: Some(claims.client_id.as_str()),
            caller: self.caller.kind,
            user: self.caller.person(),
            grant: Some(claims.gid),
            revision: Some(self.revision.as_str()),
            era: self.era(),
            session: self.session.map(named),
            error: self
                .error
                .as_ref()
                .map(|text| text.chars().take(calls::ERROR_CHARS).collect()),
            server: Some(self.server.clone()),
            item: Arc::clone(&self.item),
            client: self.client.clone(),
            client_version: self.client_version.clone(),
            outcome: self.outcome,
            status: self.status,
            measures: self.measures,
            wait_us: self.wait_us,
            trace: self.trace,
            node: Some(Arc::clone(node)),
            weight,
        }
    }
}

/// The entries of one tenant in a batch.
#[derive(Default)]
struct OfTenant {
    /// The times at which tokens of these grants were used.
    uses: Vec<(GrantId, Timestamp)>,
    /// What requests showed of credentials: the last of each source.
    seen: HashMap<SourceId, Seen>,
}

/// An entry of the log.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "almost every entry is a call: a box is freed on another thread than its own"
)]
enum Entry {
    Call(Logged),
    Use(TenantId, GrantId, Timestamp),
    Seen(TenantId, Seen),
}

/// The writing end. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct CallLog {
    queue: mpsc::Sender<Entry>,
    /// How much content may wait.
    pub(crate) captures: CaptureQuota,
    meter: Arc<Meter>,
    running: Arc<AtomicUsize>,
}

/// Counts a running call; a stopping node waits for it.
#[derive(Debug)]
pub(crate) struct Running(Arc<AtomicUsize>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The reading end.
#[derive(Debug)]
pub(crate) struct Writer {
    queue: mpsc::Receiver<Entry>,
    budget: Budget,
    store: Store,
    node: Arc<str>,
}

/// Where a log writes, and how much.
#[derive(Debug)]
pub(crate) struct LogParts {
    pub(crate) store: Store,
    pub(crate) meter: Arc<Meter>,
    /// The name of the node.
    pub(crate) node: Arc<str>,
    /// Entries of the queue.
    pub(crate) capacity: usize,
    /// Rows of a tenant in a day.
    pub(crate) rows_a_day: u32,
}

/// Both ends of a log.
pub(crate) fn call_log(parts: LogParts) -> (CallLog, Writer) {
    let (sender, receiver) = mpsc::channel(parts.capacity.max(1));
    (
        CallLog {
            queue: sender,
            captures: CaptureQuota::default(),
            meter: parts.meter,
            running: Arc::new(AtomicUsize::new(0)),
        },
        Writer {
            queue: receiver,
            budget: Budget::new(parts.rows_a_day),
            store: parts.store,
            node: parts.node,
        },
    )
}

impl CallLog {
    /// Counts a call that begins.
    pub(crate) fn begin(&self) -> Running {
        self.running.fetch_add(1, Ordering::AcqRel);
        Running(Arc::clone(&self.running))
    }

    /// The number of running calls.
    pub(crate) fn running(&self) -> usize {
        self.running.load(Ordering::Relaxed)
    }

    /// Counts a call and queues its entry. A full queue drops the entry: a call never waits.
    pub(crate) fn write(&self, call: Logged) {
        self.meter.record(call.key(), call.measures);
        if self.queue.try_send(Entry::Call(call)).is_err() {
            instruments::call_log_dropped(1);
        }
    }

    /// Queues the use of an app. A full queue drops it: the next minute writes it again.
    pub(crate) fn note_use(&self, tenant: TenantId, grant: GrantId, now: Timestamp) {
        let _full = self.queue.try_send(Entry::Use(tenant, grant, now));
    }

    /// Notes what a request showed of a credential. A full queue drops it: the next minute notes it
    /// again.
    pub(crate) fn note_credential(&self, tenant: TenantId, seen: Seen) {
        let _full = self.queue.try_send(Entry::Seen(tenant, seen));
    }
}

impl Writer {
    /// Writes until no call runs any more.
    pub(crate) async fn run(mut self, drained: CancellationToken) {
        let mut batch = Vec::with_capacity(BATCH);
        let mut earliest = Instant::now();
        while !drained.is_cancelled() {
            tokio::select! {
                taken = self.queue.recv_many(&mut batch, BATCH) => if taken == 0 { return },
                () = drained.cancelled() => break,
            }
            if batch.len() < BATCH {
                let collected = earliest.max(Instant::now() + COLLECT);
                tokio::select! {
                    () = tokio::time::sleep_until(collected) => {}
                    () = drained.cancelled() => {}
                }
                self.take_waiting(&mut batch);
            }
            self.write(&mut batch).await;
            earliest = Instant::now() + APART;
        }
        loop {
            self.take_waiting(&mut batch);
            if batch.is_empty() {
                return;
            }
            self.write(&mut batch).await;
        }
    }

    fn take_waiting(&mut self, batch: &mut Vec<Entry>) {
        while batch.len() < 4 * BATCH
            && let Ok(entry) = self.queue.try_recv()
        {
            batch.push(entry);
        }
    }

    async fn write(&mut self, batch: &mut Vec<Entry>) {
        let mut tenants: HashMap<TenantId, OfTenant> = HashMap::new();
        let (mut kept, mut contents) = (Vec::with_capacity(batch.len()), Vec::new());
        for entry in batch.drain(..) {
            match entry {
                // A call without a row has no content either.
                Entry::Call(mut call) => {
                    if let Some(weight) = self.weight(&call) {
                        contents.extend(call.content.take().map(|taken| ContentOfCall {
                            tenant: call.tenant(),
                            call: call.id,
                            at: call.at,
                            server: call.server.0,
                            taken,
                        }));
                        kept.push((call, weight));
                    }
                }
                Entry::Use(tenant, grant, at) => {
                    tenants.entry(tenant).or_default().uses.push((grant, at));
                }
                Entry::Seen(tenant, seen) => {
                    let of = tenants.entry(tenant).or_default();
                    of.seen.insert(seen.source, seen);
                }
            }
        }
        if let Err(error) = self.insert(&kept).await {
            instruments::call_log_dropped(kept.len() as u64);
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                entries = kept.len(),
                "cannot write the log of calls"
            );
        }
        self.keep(contents).await;
        for (tenant, OfTenant { uses, seen }) in tenants {
            let seen: Vec<Seen> = seen.into_values().collect();
            if let Err(error) = self.note_credentials(tenant, &seen).await {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    tenant.id = %tenant,
                    "cannot write whether credentials work"
                );
            }
            if let Err(error) = self.note(tenant, &uses).await {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    tenant.id = %tenant,
                    "cannot write when apps were last used"
                );
            }
        }
    }

    /// How many calls the row of a call stands for; `None` if the budget does not keep it.
    fn weight(&mut self, call: &Logged) -> Option<u32> {
        let judged = Judged {
            tenant: call.tenant(),
            id: call.id.uuid(),
            item: &call.item,
            is_error: call.outcome != CallOutcome::Ok,
            took_us: call.measures.took_us,
        };
        self.budget.weigh(&judged, seconds(call.at))
    }

    async fn note(
        &self,
        tenant: TenantId,
        uses: &[(GrantId, Timestamp)],
    ) -> Result<(), StorageError> {
        if uses.is_empty() {
            return Ok(());
        }
        let mut tx = self.store.node(tenant).await?;
        grant_uses::note(&mut tx, uses).await?;
        tx.commit().await
    }

    async fn note_credentials(&self, tenant: TenantId, seen: &[Seen]) -> Result<(), StorageError> {
        if seen.is_empty() {
            return Ok(());
        }
        let mut tx = self.store.node(tenant).await?;
        credential_states::note(&mut tx, seen, credential_states::Repeat::Seldom).await?;
        tx.commit().await
    }

    /// Seals and writes contents of all tenants in one statement; none if there are none.
    async fn keep(&self, contents: Vec<ContentOfCall>) {
        if contents.is_empty() {
            return;
        }
        let count = contents.len() as u64;
        // Masking takes about a millisecond for each call, which the threads of requests must not
        // wait for.
        let sealed = tokio::task::spawn_blocking(move || {
            contents
                .iter()
                .filter_map(ContentOfCall::sealed)
                .collect::<Vec<_>>()
        });
        let Ok(sealed) = sealed.await else {
            instruments::content_dropped(count);
            return;
        };
        instruments::content_dropped(count - sealed.len() as u64);
        let written = async {
            let mut tx = self.store.edge(Reason::Metering).await?;
            call_contents::insert_many(&mut tx, &sealed).await?;
            tx.commit().await
        };
        if let Err(error) = written.await {
            instruments::content_dropped(sealed.len() as u64);
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                contents = sealed.len(),
                "cannot write the content of calls"
            );
        }
    }

    /// Writes calls of all tenants, with the weights of their rows, in one statement.
    async fn insert(&mut self, kept: &[(Logged, u32)]) -> Result<(), StorageError> {
        let Some((last, _)) = kept.last() else {
            return Ok(());
        };
        self.budget.tidy(seconds(last.at));
        let rows: Vec<Call<'_>> = kept
            .iter()
            .map(|(call, weight)| call.row(&self.node, *weight))
            .collect();
        let mut tx = self.store.edge(Reason::Metering).await?;
        calls::insert_many(&mut tx, &rows).await?;
        tx.commit().await
    }
}

/// Unix time in seconds.
#[expect(clippy::cast_precision_loss, reason = "a time of this century")]
fn seconds(at: Timestamp) -> f64 {
    at.unix_timestamp_nanos() as f64 / 1e9
}
