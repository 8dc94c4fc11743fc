//! Drains the meter of the node every ten seconds, and writes the counts (METER-1, METER-6).

use std::{sync::Arc, time::Duration};

use portolan_metering::{Meter, Pending};
use portolan_model::{Clock, Timestamp};
use portolan_storage::{Reason, StorageError, Store, platform::usage};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::instruments;

/// Time between drains, in seconds. Drains begin at whole multiples of it, so that no drain has
/// calls of two minutes.
const EVERY: i64 = 10;

/// Latest begin of a write after its drain: the nodes of a cluster do not write at once.
const SPREAD: Duration = Duration::from_millis(1_500);

/// Pause before the last counts of a stopping node are tried again.
const AGAIN: Duration = Duration::from_millis(100);

/// The writer of counts.
#[derive(Debug)]
pub(crate) struct CountWriter {
    meter: Arc<Meter>,
    store: Store,
    clock: Clock,
    /// Names this process for ever.
    process: Uuid,
    pending: Pending,
    /// The minute of the calls that are counted now.
    minute: i64,
}

impl CountWriter {
    pub(crate) fn new(meter: Arc<Meter>, store: Store, clock: Clock) -> Self {
        Self {
            minute: minute(clock.now()),
            process: Uuid::new_v4(),
            pending: Pending::default(),
            meter,
            store,
            clock,
        }
    }

    /// Drains and writes until no call runs any more, and then what is left.
    pub(crate) async fn run(mut self, drained: CancellationToken) {
        let spread = SPREAD.mul_f64(f64::from(self.process.as_bytes()[0]) / 255.0);
        let drains = async {
            loop {
                tokio::time::sleep(until_next(self.clock.now())).await;
                self.drain();
                tokio::time::sleep(spread).await;
                if let Err(error) = self.write().await {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        calls = self.pending.calls(),
                        "cannot write counts of calls; they are kept"
                    );
                }
            }
        };
        tokio::select! {
            () = drains => {}
            () = drained.cancelled() => {}
        }
        self.drain();
        // The process ends this when its time is over.
        while let Err(error) = self.write().await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                calls = self.pending.calls(),
                "cannot write the last counts of calls"
            );
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// Takes the counts since the last drain.
    fn drain(&mut self) {
        self.pending.add(self.minute, self.meter.drain());
        self.minute = minute(self.clock.now());
    }

    /// Writes all that waits, oldest first.
    async fn write(&mut self) -> Result<(), StorageError> {
        let written = self.write_all().await;
        instruments::counts_wait(self.pending.rows());
        if written.is_err() {
            instruments::counts_not_written();
        }
        written
    }

    async fn write_all(&mut self) -> Result<(), StorageError> {
        while let Some(batch) = self.pending.next_batch() {
            let mut tx = self.store.edge(Reason::Metering).await?;
            usage::flush(&mut tx, self.process, batch, self.clock.now()).await?;
            tx.commit().await?;
            self.pending.written();
        }
        Ok(())
    }
}

/// Minutes since the epoch.
fn minute(at: Timestamp) -> i64 {
    at.unix_timestamp().div_euclid(60)
}

/// From a time to the next drain.
fn until_next(now: Timestamp) -> Duration {
    let seconds = now.unix_timestamp().rem_euclid(EVERY);
    let into = Duration::new(u64::try_from(seconds).unwrap_or(0), now.nanosecond());
    Duration::from_secs(EVERY.unsigned_abs()).saturating_sub(into)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drain_begins_at_a_multiple_of_ten_seconds() {
        let at = |nanos| Timestamp::from_unix_timestamp_nanos(nanos).unwrap();
        let base = 1_795_500_000 * 1_000_000_000;
        assert_eq!(until_next(at(base)), Duration::from_secs(10));
        assert_eq!(
            until_next(at(base + 9_750_000_000)),
            Duration::from_millis(250)
        );
        assert_eq!(
            minute(at(base + 59_999_999_999)) + 1,
            minute(at(base + 60_000_000_000))
        );
    }
}
