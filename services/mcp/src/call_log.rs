//! The log of tool calls, of the last use of apps and of the state of credentials: a bounded queue and
//! one batching writer.
//!
//! Requests do not wait for it.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use portolan_model::{
    Timestamp,
    id::{GrantId, SourceId, TenantId},
};
use portolan_storage::{
    StorageError, Store,
    oauth::grant_uses,
    platform::calls::{self, Call},
    registry::credential_states::{self, Seen},
};
use tokio::{sync::mpsc, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::instruments;

/// Most entries of one statement.
const BATCH: usize = 500;

/// How long entries are collected.
const COLLECT: Duration = Duration::from_millis(250);

/// How long the writer waits for running calls after the process began to stop.
const LINGER: Duration = Duration::from_secs(30);

/// The entries of one tenant in a batch.
#[derive(Default)]
struct OfTenant {
    calls: Vec<Call>,
    /// The times at which tokens of these grants were used.
    uses: Vec<(GrantId, Timestamp)>,
    /// What requests showed of credentials: the last of each source.
    seen: HashMap<SourceId, Seen>,
}

/// An entry of the log.
#[derive(Debug)]
enum Entry {
    Call(Call),
    Use(GrantId, Timestamp),
    Seen(Seen),
}

/// The writing end. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct CallLog {
    queue: mpsc::Sender<(TenantId, Entry)>,
    running: Arc<AtomicUsize>,
}

/// Counts a running call; the writer waits for it at the end.
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
    queue: mpsc::Receiver<(TenantId, Entry)>,
    running: Arc<AtomicUsize>,
    store: Store,
}

/// A log whose queue holds `capacity` entries.
pub(crate) fn call_log(store: Store, capacity: usize) -> (CallLog, Writer) {
    let (sender, receiver) = mpsc::channel(capacity.max(1));
    let running = Arc::new(AtomicUsize::new(0));
    (
        CallLog {
            queue: sender,
            running: Arc::clone(&running),
        },
        Writer {
            queue: receiver,
            running,
            store,
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

    /// Queues an entry. A full queue drops it: a call never waits for its log.
    pub(crate) fn write(&self, tenant: TenantId, call: Call) {
        let entry = Entry::Call(call);
        if self.queue.try_send((tenant, entry)).is_err() {
            instruments::call_log_dropped(1);
        }
    }

    /// Queues the use of an app. A full queue drops it: the next minute writes it again.
    pub(crate) fn note_use(&self, tenant: TenantId, grant: GrantId, now: Timestamp) {
        let _full = self.queue.try_send((tenant, Entry::Use(grant, now)));
    }
}

impl CallLog {
    /// Notes what a request showed of a credential. A full queue drops it: the next minute notes it again.
    pub(crate) fn note_credential(&self, tenant: TenantId, seen: Seen) {
        let _full = self.queue.try_send((tenant, Entry::Seen(seen)));
    }
}

impl Writer {
    /// Writes until the process stops and no call runs.
    pub(crate) async fn run(mut self, stopping: CancellationToken) {
        let mut batch = Vec::with_capacity(BATCH);
        while !stopping.is_cancelled() {
            tokio::select! {
                taken = self.queue.recv_many(&mut batch, BATCH) => if taken == 0 { return },
                () = stopping.cancelled() => break,
            }
            if batch.len() < BATCH {
                tokio::select! {
                    () = tokio::time::sleep(COLLECT) => {}
                    () = stopping.cancelled() => {}
                }
                self.take_waiting(&mut batch);
            }
            self.write(&mut batch).await;
        }
        let end = Instant::now() + LINGER;
        loop {
            let idle = self.running.load(Ordering::Acquire) == 0;
            self.take_waiting(&mut batch);
            self.write(&mut batch).await;
            if (idle && self.queue.is_empty()) || Instant::now() > end {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    fn take_waiting(&mut self, batch: &mut Vec<(TenantId, Entry)>) {
        while batch.len() < 4 * BATCH
            && let Ok(entry) = self.queue.try_recv()
        {
            batch.push(entry);
        }
    }

    async fn write(&self, batch: &mut Vec<(TenantId, Entry)>) {
        let mut tenants: HashMap<TenantId, OfTenant> = HashMap::new();
        for (tenant, entry) in batch.drain(..) {
            let of = tenants.entry(tenant).or_default();
            match entry {
                Entry::Call(call) => of.calls.push(call),
                Entry::Use(grant, at) => of.uses.push((grant, at)),
                Entry::Seen(seen) => {
                    of.seen.insert(seen.source, seen);
                }
            }
        }
        for (tenant, OfTenant { calls, uses, seen }) in tenants {
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
            if let Err(error) = self.insert(tenant, &calls).await {
                instruments::call_log_dropped(calls.len() as u64);
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    tenant.id = %tenant,
                    entries = calls.len(),
                    "cannot write the log of calls"
                );
            }
        }
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

    async fn insert(&self, tenant: TenantId, calls: &[Call]) -> Result<(), StorageError> {
        if calls.is_empty() {
            return Ok(());
        }
        let mut tx = self.store.node(tenant).await?;
        calls::insert_many(&mut tx, calls).await?;
        tx.commit().await
    }
}
