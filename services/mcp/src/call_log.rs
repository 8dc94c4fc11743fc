//! The log of tool calls, off the request's path: a bounded queue and one writer that batches.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use portolan_model::id::TenantId;
use portolan_storage::{
    StorageError, Store,
    calls::{self, Call},
};
use tokio::{sync::mpsc, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::instruments;

/// Entries of one statement.
const BATCH: usize = 500;
/// How long entries are collected.
const COLLECT: Duration = Duration::from_millis(250);
/// How long the writer waits for running calls after the process began to stop.
const LINGER: Duration = Duration::from_secs(30);

/// The writing end. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct CallLog {
    queue: mpsc::Sender<(TenantId, Call)>,
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
    queue: mpsc::Receiver<(TenantId, Call)>,
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
    /// Notes that a call began.
    pub(crate) fn begin(&self) -> Running {
        self.running.fetch_add(1, Ordering::AcqRel);
        Running(Arc::clone(&self.running))
    }

    /// How many calls run.
    pub(crate) fn running(&self) -> usize {
        self.running.load(Ordering::Relaxed)
    }

    /// Hands over an entry. A full queue drops it: a call never waits for its log.
    pub(crate) fn write(&self, tenant: TenantId, call: Call) {
        if self.queue.try_send((tenant, call)).is_err() {
            instruments::call_log_dropped(1);
        }
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

    fn take_waiting(&mut self, batch: &mut Vec<(TenantId, Call)>) {
        while batch.len() < 4 * BATCH
            && let Ok(entry) = self.queue.try_recv()
        {
            batch.push(entry);
        }
    }

    async fn write(&self, batch: &mut Vec<(TenantId, Call)>) {
        let mut tenants: HashMap<TenantId, Vec<Call>> = HashMap::new();
        for (tenant, call) in batch.drain(..) {
            tenants.entry(tenant).or_default().push(call);
        }
        for (tenant, calls) in tenants {
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

    async fn insert(&self, tenant: TenantId, calls: &[Call]) -> Result<(), StorageError> {
        let mut tx = self.store.node(tenant).await?;
        calls::insert_many(&mut tx, calls).await?;
        tx.commit().await
    }
}
