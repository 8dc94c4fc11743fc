//! Progress of calls whose backend reports none.

use std::time::Duration;

use bytes::Bytes;
use portolan_protocol::{
    jsonrpc::ProgressToken,
    progress::{self, Gate, Progress},
    revision::Revision,
};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

/// The interval of progress notifications.
pub(crate) const PROGRESS_EVERY: Duration = Duration::from_secs(2);

/// Progress of a call of an API: the seconds since its begin, as an API reports none.
pub(crate) struct Working {
    begun: Instant,
    ticks: Interval,
}

impl Working {
    /// Starts the interval. `begun` is the begin of the call.
    pub(crate) fn new(begun: Instant) -> Self {
        let mut ticks = interval_at(Instant::now(), PROGRESS_EVERY);
        // A suspended process does not catch up on missed ticks.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { begun, ticks }
    }

    /// The next progress, when it is due.
    pub(crate) async fn next(&mut self) -> Progress {
        self.ticks.tick().await;
        let seconds = self.begun.elapsed().as_secs_f64();
        Progress {
            progress: (seconds * 10.0).round() / 10.0,
            total: None,
            message: Some(format!("The API has been working for {seconds:.0} s")),
        }
    }
}

/// Sends the progress of a call to its client.
pub(crate) struct ProgressReporter {
    token: ProgressToken,
    revision: Revision,
    gate: Gate,
    working: Working,
}

impl ProgressReporter {
    /// Starts the interval. `begun` is the begin of the call.
    pub(crate) fn new(token: ProgressToken, revision: Revision, begun: Instant) -> Self {
        Self {
            token,
            revision,
            gate: Gate::default(),
            working: Working::new(begun),
        }
    }

    /// The next notification, when it is due.
    pub(crate) async fn next(&mut self) -> Bytes {
        loop {
            let progress = self.working.next().await;
            if self.gate.passes(progress.progress) {
                return progress::notification(self.revision, &self.token, &progress).into();
            }
        }
    }
}
