//! What runs beside the requests: the registry's news become `list_changed`, revocations end streams, and what is over is
//! thrown out.

use std::{collections::HashSet, time::Duration};

use portolan_cluster::End;
use portolan_model::id::TenantId;
use portolan_storage::registry_news::{News, NewsListener};
use tokio::time::Instant;

use crate::{instruments, state::McpState, stream};

/// Changes come in bursts: one import touches hundreds of rows in several transactions.
const DEBOUNCE: Duration = Duration::from_millis(200);
const HOUSEKEEPING: Duration = Duration::from_secs(15);

/// Listens to the registry until the process stops.
pub(crate) async fn registry(state: McpState) {
    let listening = async {
        let mut listener = NewsListener::new(&state.store);
        loop {
            let mut changed = Changed::default();
            changed.add(listener.next().await, &state);
            let heard = Instant::now();
            let pause = tokio::time::sleep(DEBOUNCE);
            tokio::pin!(pause);
            loop {
                tokio::select! {
                    () = &mut pause => break,
                    news = listener.next() => changed.add(news, &state),
                }
            }
            changed.tell(&state).await;
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
    /// Entries are old at once; only telling the streams waits for the burst to end.
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

    async fn tell(self, state: &McpState) {
        let open = state.streams.tenants();
        for tenant in open
            .into_iter()
            .filter(|tenant| self.everything || self.tenants.contains(tenant))
        {
            stream::tell_tenant(state, tenant).await;
        }
        for tenant in &self.tenants {
            if let Err(error) = state.catalog.drop_ended(*tenant).await {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    tenant.id = %tenant,
                    "cannot look whether a tenant has ended"
                );
            }
        }
    }
}

/// Between two looks of a node that stops for calls that still run.
const STILL_RUNS: Duration = Duration::from_millis(250);

/// Stops the calls and ends the streams of tokens and grants that were revoked (AR-17, SB-10), for as long as any may be there: a node
/// that stops lets calls run on.
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

/// Throws out what is over, and measures what is open.
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
