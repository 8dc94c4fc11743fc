//! Background work of the endpoint: registry changes, revocations and housekeeping.
//!
//! Registry changes become `list_changed`, revocations end streams, and expired entries are
//! removed.

use std::{collections::HashSet, time::Duration};

use portolan_cluster::End;
use portolan_model::id::TenantId;
use portolan_storage::registry::registry_news::{News, NewsListener};
use tokio::time::Instant;

use crate::{http::state::McpState, instruments, streams::list_changes};

/// The time to collect changes: one import touches hundreds of rows in several transactions.
const DEBOUNCE: Duration = Duration::from_millis(200);

/// The retry interval for notifications, after the database did not answer.
const AGAIN: Duration = Duration::from_secs(1);

const HOUSEKEEPING: Duration = Duration::from_secs(15);

/// Receives registry changes until the process stops.
pub(crate) async fn registry(state: McpState) {
    let listening = async {
        let mut listener = NewsListener::new(&state.store);
        let mut changed = Changed::default();
        loop {
            tokio::select! {
                news = listener.next() => changed.add(news, &state),
                () = state.untold.bell.notified() => {}
                () = tokio::time::sleep(AGAIN), if !changed.tenants.is_empty() => {}
            }
            let heard = Instant::now();
            let pause = tokio::time::sleep(DEBOUNCE);
            tokio::pin!(pause);
            loop {
                tokio::select! {
                    () = &mut pause => break,
                    news = listener.next() => changed.add(news, &state),
                }
            }
            changed.tenants.extend(state.untold.take());
            changed = changed.tell(&state).await;
            instruments::news_told(heard.elapsed());
        }
    };
    tokio::select! {
        () = listening => {}
        () = state.stopping.cancelled() => {}
    }
}

#[derive(Default)]
struct Changed {
    tenants: HashSet<TenantId>,
    everything: bool,
}

impl Changed {
    /// Records a change. Entries become stale at once; the streams are notified after the burst.
    fn add(&mut self, news: News, state: &McpState) {
        match news {
            News::Changed(tenant) => {
                state.catalog.outdate(Some(tenant));
                self.tenants.insert(tenant);
            }
            News::Everything => {
                state.catalog.outdate(None);
                self.everything = true;
            }
        }
    }

    /// Notifies the open streams. Returns the tenants whose entries could not be read.
    async fn tell(self, state: &McpState) -> Self {
        let mut untold = Self::default();
        let open = state.streams.tenants();
        for tenant in open
            .into_iter()
            .filter(|tenant| self.everything || self.tenants.contains(tenant))
        {
            if !list_changes::tell_tenant(state, tenant).await {
                untold.tenants.insert(tenant);
            }
        }
        // Tenants that could not be read are retried later.
        for tenant in self.tenants.difference(&untold.tenants) {
            if let Err(error) = state.catalog.drop_ended(*tenant).await {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    tenant.id = %tenant,
                    "cannot look whether a tenant has ended"
                );
            }
        }
        untold
    }
}

/// The interval at which a stopping node checks for running calls.
const STILL_RUNS: Duration = Duration::from_millis(250);

/// Stops calls and ends streams of revoked tokens and grants (MCP-AR-17, MCP-SB-10).
///
/// This continues while a stopping node still has running calls.
pub(crate) async fn revocations(state: McpState) {
    let mut watch = state.revocations.watch();
    let last_call = async {
        state.stopping.cancelled().await;
        while state.call_log.running() > 0 {
            tokio::time::sleep(STILL_RUNS).await;
        }
    };
    tokio::pin!(last_call);
    loop {
        tokio::select! {
            changed = watch.changed() => if changed.is_err() { return },
            () = &mut last_call => return,
        }
        let tokens = state.bearer.tell_revoked();
        if tokens > 0 {
            tracing::info!(tokens, "tokens revoked whose holders are known here");
        }
        let ended = state.streams.end(End::Revoked, |tag| {
            state.revocations.is_revoked(&tag.caller.facts())
        });
        if ended > 0 {
            tracing::info!(streams = ended, "streams ended by a revocation");
        }
    }
}

/// Removes expired entries, and measures open streams.
pub(crate) async fn housekeeping(state: McpState) {
    let mut ticks = tokio::time::interval(HOUSEKEEPING);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = state.stopping.cancelled() => return,
        }
        let now = state.clock.now();
        state.revocations.purge(now);
        state.upstreams.give_back(&state);
        instruments::open_streams(state.streams.len());
    }
}
