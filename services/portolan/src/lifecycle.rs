//! From start to stop: the runtime, signals, drain.

use std::process;

use anyhow::{Context, Result};
use tokio::{
    runtime::Runtime,
    signal::unix::{SignalKind, signal},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// The one runtime of a process.
pub fn runtime() -> Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name("portolan")
        .build()
        .context("cannot start the runtime")
}

/// What stops a process, and what it waits for.
#[derive(Debug, Clone, Default)]
pub struct Lifecycle {
    /// Cancelled when the process should drain: listeners stop accepting, streams end, idle tasks return.
    pub stopping: CancellationToken,
    /// Cancelled when the drain is over: what serves the drain itself ends now.
    pub stopped: CancellationToken,
    /// Every task that must have ended before the process does.
    pub tasks: TaskTracker,
}

impl Lifecycle {
    /// Returns at the first SIGTERM, SIGINT or SIGHUP. A second one ends the process at once.
    pub async fn wait_for_signal(&self) -> Result<()> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut hangup = signal(SignalKind::hangup())?;
        let name = tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
            _ = hangup.recv() => "SIGHUP",
        };
        tracing::info!(signal = name, "stopping: running requests are finished");
        self.stopping.cancel();
        let stopped = self.stopped.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
                () = stopped.cancelled() => return,
            }
            tracing::warn!("second signal: ending now");
            process::exit(130);
        });
        Ok(())
    }
}
