//! Folds counts of calls, and makes and drops partitions, on one node at a time (METER-8, METER-9).

use std::time::Duration;

use portolan_metering::MeteringConfig;
use portolan_model::Clock;
use portolan_storage::{
    StorageError, Store,
    platform::usage::folds::{self, Step},
};
use tokio_util::sync::CancellationToken;

use crate::clock_watch::ClockWatch;

/// Time between rounds. The first one is at once: nodes need partitions to write into.
const PERIOD: Duration = Duration::from_secs(30);

/// Runs until `stop`. While the clock is wrong nothing is folded and nothing dropped.
pub(crate) async fn run(
    store: Store,
    clock: Clock,
    watch: ClockWatch,
    config: MeteringConfig,
    stop: CancellationToken,
) {
    let mut ticks = tokio::time::interval(PERIOD);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = ticks.tick() => {}
        }
        if watch.look().await.is_err() {
            continue;
        }
        let round = round(&store, &clock, &config, &stop);
        if let Err(error) = round.await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "cannot fold counts of calls"
            );
        }
    }
}

async fn round(
    store: &Store,
    clock: &Clock,
    config: &MeteringConfig,
    stop: &CancellationToken,
) -> Result<(), StorageError> {
    if !folds::prepare(store, clock.now()).await? {
        return Ok(());
    }
    while !stop.is_cancelled() {
        match folds::step(store, clock.now()).await? {
            Step::Folded { calls } => tracing::debug!(calls, "counts of calls folded"),
            Step::Idle => break,
            Step::Elsewhere => return Ok(()),
        }
    }
    let dropped = folds::retire(store, config, clock.now()).await?;
    if dropped > 0 {
        tracing::info!(partitions = dropped, "old counts and calls dropped");
    }
    Ok(())
}
