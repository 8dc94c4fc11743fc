//! Counts of new sessions by workspace, for the time when the store's memory is nearly full.
//!
//! Then a workspace above its share begins no new session (STREAM-17.2); existing sessions
//! are served as before.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use portolan_model::id::TenantId;
use tokio::time::Instant;

/// How long a session counts.
const PERIOD: Duration = Duration::from_secs(3600);

/// Workspaces with at most this many sessions are never refused.
const FEW: u64 = 50;

/// The sessions whose record this node made, in this period and the one before.
#[derive(Debug)]
struct Counts {
    since: Instant,
    now: HashMap<TenantId, u64>,
    before: HashMap<TenantId, u64>,
}

impl Counts {
    fn turn(&mut self) {
        let age = self.since.elapsed();
        if age < PERIOD {
            return;
        }
        let now = std::mem::take(&mut self.now);
        self.before = if age < 2 * PERIOD {
            now
        } else {
            HashMap::new()
        };
        self.since = Instant::now();
    }

    fn of(&self, tenant: TenantId) -> u64 {
        let count = |counts: &HashMap<_, u64>| counts.get(&tenant).copied().unwrap_or(0);
        count(&self.now) + count(&self.before)
    }
}

/// The new sessions of all workspaces on this node.
///
/// A load balancer spreads sessions, so the shares here are those of the cluster.
#[derive(Debug)]
pub(crate) struct SessionQuota(Mutex<Counts>);

impl Default for SessionQuota {
    fn default() -> Self {
        Self(Mutex::new(Counts {
            since: Instant::now(),
            now: HashMap::new(),
            before: HashMap::new(),
        }))
    }
}

impl SessionQuota {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.turn();
        counts
    }

    /// Counts a new record.
    pub(crate) fn came(&self, tenant: TenantId) {
        *self.counts().now.entry(tenant).or_default() += 1;
    }

    /// Whether the workspace is above its share: the mean of all workspaces with new sessions.
    pub(crate) fn is_over_its_share(&self, tenant: TenantId) -> bool {
        let counts = self.counts();
        let own = counts.of(tenant);
        let all: u64 = counts.now.values().chain(counts.before.values()).sum();
        let tenants = counts
            .before
            .keys()
            .filter(|known| !counts.now.contains_key(known))
            .count()
            + counts.now.len();
        let tenants = u64::try_from(tenants).unwrap_or(u64::MAX);
        // A single workspace may use everything.
        own > FEW && (tenants <= 1 || own.saturating_mul(tenants) > all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn streams_17_2_who_began_more_sessions_than_the_mean_is_over_its_share() {
        let session_quota = SessionQuota::default();
        let (many, few) = (TenantId::generate(), TenantId::generate());
        for _ in 0..FEW {
            session_quota.came(many);
        }
        session_quota.came(few);
        assert!(!session_quota.is_over_its_share(many), "so few harm nobody");
        for _ in 0..FEW {
            session_quota.came(many);
        }
        assert!(session_quota.is_over_its_share(many));
        assert!(!session_quota.is_over_its_share(few));
        assert!(!session_quota.is_over_its_share(TenantId::generate()));
        tokio::time::advance(PERIOD).await;
        assert!(session_quota.is_over_its_share(many), "they still count");
        tokio::time::advance(PERIOD).await;
        assert!(!session_quota.is_over_its_share(many));
    }
}
