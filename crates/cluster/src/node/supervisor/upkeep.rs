//! Work of a node at intervals, and after a loss of the store. No part of it waits for the store,
//! so one task serves all of it.
//!
//! Anti-entropy reads all connections, which bounds the effect of a lost message (STREAM-8,
//! STREAM-9).

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, Interval, MissedTickBehavior};

use crate::node::{
    inner::Inner,
    reader::{Connection, Phase},
    settings::{SLOW_CLIENT, SUPERSEDED, VALIDATED_WITHIN},
    slowness,
    stream_metrics::measure::Gauges,
};

/// Runs until the node stops.
pub(crate) async fn upkeep(inner: Arc<Inner>) {
    let mut incarnation = inner.guarded_store.store.health().incarnation;
    let mut recoveries = inner.guarded_store.recoveries();
    let mut poll = every(inner.settings.poll_answers);
    let mut second = every(slowness::TICK);
    let mut forget = every(VALIDATED_WITHIN / 4);
    let mut anti_entropy = Instant::now() + inner.rng.spread(inner.anti_entropy());
    let mut streak = 0;
    let mut store_lives = true;
    let mut gauges = Gauges::default();
    loop {
        tokio::select! {
            biased;
            () = inner.stop.cancelled() => return,
            changed = incarnation.changed(), if store_lives => {
                store_lives = changed.is_ok();
                if !store_lives {
                    continue;
                }
                tracing::warn!("the store may have lost writes: every stream is looked at");
                inner.rolled_back();
                inner.watcher.audits.notify();
                for connection in inner.connections.all() {
                    inner.partitions.mark(&connection);
                }
            }
            _ = recoveries.changed() => {
                recoveries.mark_unchanged();
                inner.running.resync();
                anti_entropy = read_all(&inner);
            }
            _ = second.tick() => {
                inner.guarded_store.slowness.judge(&mut streak);
                if !inner.left.is_cancelled() {
                    gauges.measure(&inner);
                }
            }
            _ = poll.tick() => inner.poll_answers(inner.settings.poll_answers),
            _ = forget.tick() => inner.sessions.forget_idle(),
            () = tokio::time::sleep_until(anti_entropy) => anti_entropy = read_all(&inner),
        }
    }
}

fn every(period: Duration) -> Interval {
    let mut ticks = tokio::time::interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// Reads every connection whose events come from other nodes. Returns the time of the next round.
fn read_all(inner: &Arc<Inner>) -> Instant {
    for connection in inner.connections.all() {
        look_at(inner, &connection);
    }
    Instant::now() + inner.rng.spread(inner.anti_entropy())
}

fn look_at(inner: &Arc<Inner>, connection: &Arc<Connection>) {
    let standing = connection.standing();
    let is_stuck = standing
        .stuck_since
        .is_some_and(|since| since.elapsed() >= SLOW_CLIENT);
    match standing.phase {
        Phase::Ended | Phase::Holding => {}
        Phase::Demoted if standing.since.elapsed() >= SUPERSEDED => connection.end(),
        Phase::Attached if is_stuck => connection.end(),
        Phase::Attached => {
            // A local writer feeds its connection directly. The exception are events for which the
            // client's queue was full: they must be read. An idle writer would not notice that the
            // store did not reply.
            let is_own =
                standing.owner == Some(Some(inner.id)) && inner.has_writer(connection.stream);
            if !is_own || standing.is_unread || standing.gone_since.is_some() {
                inner.partitions.look(connection);
            }
            inner.tend(connection);
        }
        Phase::Demoted => {}
    }
}
