//! What runs beside the requests: the registry's news become `list_changed`, revocations end streams, and what is over is
//! thrown out.

use std::{
    collections::HashSet,
    mem,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use portolan_cluster::End;
use portolan_model::id::TenantId;
use portolan_storage::registry_news::{News, NewsListener};
use tokio::{sync::Notify, time::Instant};

use crate::{instruments, state::McpState, stream};

/// Changes come in bursts: one import touches hundreds of rows in several transactions.
const DEBOUNCE: Duration = Duration::from_millis(200);
/// Until what could not be told is tried again: the database did not answer.
const AGAIN: Duration = Duration::from_secs(1);
const HOUSEKEEPING: Duration = Duration::from_secs(15);

/// Tenants with a stream that was not there, perhaps, when the others were told.
#[derive(Debug, Default)]
pub(crate) struct Untold {
    tenants: Mutex<HashSet<TenantId>>,
    bell: Notify,
}

impl Untold {
    /// The streams of this tenant are to be told once more.
    pub(crate) fn add(&self, tenant: TenantId) {
        self.tenants().insert(tenant);
        self.bell.notify_one();
    }

    pub(crate) fn take(&self) -> HashSet<TenantId> {
        mem::take(&mut self.tenants())
    }

    fn tenants(&self) -> MutexGuard<'_, HashSet<TenantId>> {
        self.tenants.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Listens to the registry until the process stops.
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

    /// Tells the open streams. Returns what could not be looked at.
    async fn tell(self, state: &McpState) -> Self {
        let mut untold = Self::default();
        let open = state.streams.tenants();
        for tenant in open
            .into_iter()
            .filter(|tenant| self.everything || self.tenants.contains(tenant))
        {
            if !stream::tell_tenant(state, tenant).await {
                untold.tenants.insert(tenant);
            }
        }
        // What cannot be looked at is looked at again.
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
