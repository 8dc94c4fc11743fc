//! From start to stop: the runtime, signals, drain.

use std::{future::Future, process, time::Duration};

use anyhow::{Context, Result};
use portolan_net::listen::Shutdown;
use tokio::{
    runtime::Runtime,
    signal::unix::{Signal, SignalKind, signal},
    time::{Instant, sleep_until, timeout, timeout_at},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Total time for the steps after the running calls (STREAM-16.4: 25 s, and gone after 30 s).
const AFTERWARDS: Duration = Duration::from_secs(4);
/// The part of it for notifying the clients of unfinished calls and leaving the cluster.
const LAST_WORDS: Duration = Duration::from_millis(2500);
/// For the last bytes of connections whose answer is complete.
const FLUSH: Duration = Duration::from_millis(500);

/// The one runtime of a process.
pub fn runtime() -> Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name("portolan")
        .build()
        .context("cannot start the runtime")
}

/// Ends the runtime. Work that cannot be interrupted, such as the check of a password, does not
/// keep the process.
pub fn end(runtime: Runtime) {
    runtime.shutdown_timeout(Duration::from_millis(500));
}

/// What ends a process in good order: SIGTERM, SIGINT, SIGHUP. From the moment on that this is made
/// none is missed, and none kills.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    /// Begins to listen.
    pub fn listen() -> Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for the next one, and returns its name.
    pub async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.hangup.recv() => "SIGHUP",
        }
    }
}

/// What stops a process, step by step, and what it waits for.
#[derive(Debug, Clone, Default)]
pub struct Lifecycle {
    /// The process was asked to stop: streams that wait for news end, chores that can wait or that
    /// others can do end. Requests are still taken.
    pub stopping: CancellationToken,
    /// No new connections and requests. Running calls go on, and what they need does.
    pub closing: CancellationToken,
    /// The time of running calls is over: they are asked for their last words.
    pub telling: CancellationToken,
    /// No call runs any more, and the node left the others: what calls needed ends.
    pub drained: CancellationToken,
    /// What serves the drain itself ends: the second listener.
    pub stopped: CancellationToken,
    /// Nothing is waited for any more.
    pub over: CancellationToken,
    /// Running calls, connected or not, and the writer of their log, which ends after the last of
    /// them.
    pub calls: TaskTracker,
    /// Every other task that must have ended before the process does.
    pub tasks: TaskTracker,
    /// The connections of people and clients.
    pub connections: TaskTracker,
}

/// How long a drain may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DrainTimes {
    /// From the signal to the last new connection.
    pub accept: Duration,
    /// From the signal to the end of calls that still run.
    pub calls: Duration,
}

/// The result of a drain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drained {
    /// Requests that still ran when their time was over.
    pub cut: usize,
    /// From the signal to the end of the last request.
    pub took: Duration,
}

impl Lifecycle {
    /// How the public listener stops.
    pub fn public(&self) -> Shutdown {
        Shutdown {
            stop: self.stopping.clone(),
            close: self.closing.clone(),
            tell: self.telling.clone(),
            cut: self.drained.clone(),
            connections: self.connections.clone(),
        }
    }

    /// How a listener stops that running calls need.
    pub fn beside(&self) -> Shutdown {
        Shutdown {
            stop: self.drained.clone(),
            close: self.drained.clone(),
            tell: CancellationToken::new(),
            cut: self.stopped.clone(),
            connections: TaskTracker::new(),
        }
    }

    /// Returns the stop of the second listener: it is last, because a draining node still reports
    /// that it drains.
    pub fn admin(&self) -> Shutdown {
        Shutdown {
            stop: self.stopped.clone(),
            close: self.stopped.clone(),
            tell: CancellationToken::new(),
            cut: self.over.clone(),
            connections: TaskTracker::new(),
        }
    }

    /// Returns at the first signal. A second SIGTERM or SIGINT ends the process at once.
    pub async fn wait_for(&self, signals: Signals) {
        let mut signals = signals;
        let name = signals.next().await;
        tracing::info!(signal = name, "stopping: running requests are finished");
        let stopped = self.stopped.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                _ = signals.terminate.recv() => {}
                _ = signals.interrupt.recv() => {}
                () = stopped.cancelled() => return,
            }
            tracing::warn!("second signal: ending now");
            process::exit(130);
        });
    }

    /// Runs the steps of a stop in order (STREAM-16.4). All steps share one time budget. `detached`
    /// counts the calls that run without a connection here. `last_words` notifies the clients of
    /// calls that still run, and leaves the cluster.
    pub async fn drain(
        &self,
        times: DrainTimes,
        detached: impl Fn() -> usize,
        last_words: impl Future<Output = ()>,
    ) -> Drained {
        let began = Instant::now();
        let calls_end = began + times.calls;
        let end = calls_end + AFTERWARDS;
        self.stopping.cancel();
        sleep_until(began + times.accept).await;
        self.closing.cancel();
        self.calls.close();
        let all_over = async {
            self.connections.wait().await;
            self.calls.wait().await;
        };
        let cut = match timeout_at(calls_end, all_over).await {
            Ok(()) => 0,
            // Each remaining connection has a running request: idle ones were closed.
            Err(_elapsed) => self.connections.len().max(detached()),
        };
        let took = began.elapsed();
        if cut > 0 {
            tracing::warn!(requests = cut, "the time of running requests is over");
        }
        metrics::histogram!("drain_seconds").record(took.as_secs_f64());
        metrics::counter!("drain_calls_cut_total").increment(cut as u64);
        if timeout(LAST_WORDS, last_words).await.is_err() {
            tracing::warn!("not every client could be told");
        }
        let _ = timeout(FLUSH, self.connections.wait()).await;
        self.drained.cancel();
        self.stopped.cancel();
        self.tasks.close();
        let all_ended = async {
            self.calls.wait().await;
            self.tasks.wait().await;
        };
        tokio::pin!(all_ended);
        if timeout(FLUSH, all_ended.as_mut()).await.is_err() {
            self.over.cancel();
            if timeout_at(end, all_ended).await.is_err() {
                tracing::warn!(
                    tasks = self.tasks.len() + self.calls.len(),
                    "some tasks did not end in time"
                );
            }
        }
        Drained { cut, took }
    }
}
