//! Compares this machine's clock with that of the database (AUTH-4.7).
//!
//! Tokens hold their issue and end times, rows hold end times, and every process compares them with
//! its own clock. A process whose clock is behind accepts expired tokens. One whose clock is ahead
//! refuses valid tokens by a 401, which makes clients discard them and open browsers. It also
//! deletes rows too early.
//!
//! A process with a wrong clock is therefore not ready. If it has only just started, it accepts no
//! connection. It answers requests with 503, and runs no work that depends on the clock until the
//! clock is right again. Work that depends on durations continues: open streams, and its membership
//! in the cluster.

use std::{sync::Arc, time::Duration};

use portolan_model::Clock;
use portolan_net::{health::Dependency, layers::Pause};
use portolan_storage::Store;
use tokio::time::{Instant, sleep, timeout};

use crate::doctor::LONGEST_SKEW_SECONDS;

/// An answer that takes longer says too little about the moment at which it was given.
const WITHIN: Duration = Duration::from_secs(1);

/// Between two looks of a node that waits for it.
const AGAIN: Duration = Duration::from_millis(500);

/// Looks at the clock. Cloning shares what was seen.
#[derive(Debug, Clone)]
pub(crate) struct ClockWatch {
    store: Store,
    clock: Clock,
    pause: Pause,
}

impl ClockWatch {
    pub(crate) fn new(store: Store, clock: Clock) -> Self {
        Self {
            store,
            clock,
            pause: Pause::default(),
        }
    }

    /// Lasts as long as the clock is wrong.
    pub(crate) fn pause(&self) -> Pause {
        self.pause.clone()
    }

    /// Compares the clocks. While the database does not say what time it is, what was seen last
    /// holds: that it is away is no reason not to serve (STREAM-17.4).
    pub(crate) async fn look(&self) -> Result<(), String> {
        let (asked, now) = (Instant::now(), self.clock.now());
        let told = timeout(WITHIN, self.store.clock_skew_seconds(now)).await;
        // A process that was held meanwhile saw its own clock at another time than the other one.
        if let Ok(Ok(skew)) = told
            && asked.elapsed() <= WITHIN
        {
            self.note(skew);
        }
        if self.pause.holds() {
            Err(format!(
                "more than {LONGEST_SKEW_SECONDS} s from the database's: synchronise both machines"
            ))
        } else {
            Ok(())
        }
    }

    /// Waits until the clock is right. A node that starts with a wrong one takes no connection
    /// before: balancers that ask no readiness probe then leave it alone, too.
    pub(crate) async fn is_right(&self) {
        while self.look().await.is_err() {
            sleep(AGAIN).await;
        }
    }

    /// The database's clock is so many seconds ahead.
    fn note(&self, skew: f64) {
        let is_wrong = skew.abs() > LONGEST_SKEW_SECONDS;
        if !self.pause.set(is_wrong) {
            return;
        }
        if is_wrong {
            tracing::error!(
                seconds = -skew,
                "this machine's clock is ahead of the database's by so much (behind, if below zero): nothing is served until both are synchronised"
            );
        } else {
            tracing::info!("this machine's clock is right again");
        }
    }

    /// For the readiness probe.
    pub(crate) fn dependency(&self) -> Dependency {
        let watch = self.clone();
        Dependency {
            name: "clock",
            needed: true,
            check: Arc::new(move || {
                let watch = watch.clone();
                Box::pin(async move { watch.look().await })
            }),
        }
    }
}
