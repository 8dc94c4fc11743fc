//! Sends the beats of a node.

use std::sync::Arc;

use crate::node::{inner::Inner, settings::CALL_WITHIN};

/// Renews this node's membership until the node stops or leaves.
pub(crate) async fn beat(inner: Arc<Inner>) {
    let settings = &inner.settings;
    let mut ticks = tokio::time::interval(settings.beat);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    ticks.tick().await;
    loop {
        tokio::select! {
            biased;
            () = inner.stop.cancelled() => return,
            () = inner.left.cancelled() => return,
            _ = ticks.tick() => {}
        }
        let beat = inner.guarded_store.store.heartbeat(inner.id, settings.ttl);
        let members = inner.guarded_store.call_always("beat", CALL_WITHIN, beat);
        let members = tokio::select! {
            biased;
            () = inner.stop.cancelled() => return,
            members = members => members,
        };
        if let Ok(members) = members {
            inner.watcher.heard(&members);
        }
    }
}
