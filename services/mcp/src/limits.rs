//! The limits of the endpoint (STREAM-16): their kinds, a tenant's values, and the refusals.
//!
//! | Limit | Subject | Where |
//! |---|---|---|
//! | rates | tenant, person with client, tool, address | leased tokens, shared by all nodes |
//! | running calls, open streams | tenant | leased permits, shared by all nodes |
//! | node limits | this node, with a share for each tenant ([`NodeQuota`]) | [`AdmissionControl`] |
//! | streams, suspended calls and tasks of one client | node, store | [`TenantLimits::at_most`] |
//!
//! The methods of node limits are [`AdmissionControl::run_call`], [`AdmissionControl::open_stream`] and [`AdmissionControl::openings`].
//! Code that holds streams, suspended calls and tasks applies their limits itself.
//!
//! A client that comes back for its stream is never refused: [`entry`] lets it wait. Each refusal
//! is counted for the workspace's owner ([`refusals`]) and for operators (`limit_refusals_total`):
//! [`AdmissionControl::refused`].
//!
//! The limits of a tenant are computed when its catalogue is loaded; a request reads them there.

pub(crate) mod ledger;
pub(crate) mod openings;
pub(crate) mod refusals;
pub(crate) mod session_quota;
pub(crate) mod suspended_calls;

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use portolan_cluster::node::{ClusterPermit, ClusterPermits, Limit, LimitKey, Limits, Rate};
use portolan_model::{
    id::TenantId,
    limits::{LimitName, LimitSet, PlatformLimits},
};

pub use crate::limits::ledger::TenantLedger;
use crate::{
    config::McpConfig,
    limits::{
        openings::{RateLimiter, StreamStart},
        refusals::Refusals,
    },
};

/// Longest wait of a client that comes back for a stream.
pub(crate) const PACED_FOR: Duration = Duration::from_secs(5);

/// The rate of progress notifications about questions: ten a second, in a bucket of their own.
const PROGRESS: Rate = Rate {
    limit: Limit::ClientRequests,
    interval_us: 100_000,
    burst: 50,
};

/// The limits of one tenant. `None` = no limit.
#[derive(Debug, Clone)]
pub(crate) struct TenantLimits {
    /// Requests of one person with one client.
    pub(crate) requests: Option<Rate>,
    /// All calls of the tenant.
    pub(crate) calls: Option<Rate>,
    /// Calls of one tool.
    pub(crate) tool_calls: Option<Rate>,
    /// New streams of one person with one client.
    pub(crate) stream_opens: Option<Rate>,
    /// Running calls.
    pub(crate) running: Option<Arc<ClusterPermits>>,
    /// Open streams.
    pub(crate) streams: Option<Arc<ClusterPermits>>,
    /// The tenant's share of this node's calls and streams.
    calls_here: Arc<TenantQuota>,
    streams_here: Arc<TenantQuota>,
    holds: LimitSet,
}

impl TenantLimits {
    /// The highest number at one time.
    pub(crate) fn at_most(&self, name: LimitName) -> usize {
        self.holds.at_most(name)
    }
}

/// A refusal: the limit, and whole seconds until a retry makes sense, at least 1 (MCP-T-14).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OverLimit {
    pub(crate) limit: Limit,
    pub(crate) retry_after: u64,
}

/// Why a call or a stream gets no permit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoPermit {
    /// The tenant has reached its limit.
    Over(OverLimit),
    /// This node has reached its limit, or the tenant its share of it.
    NodeIsFull,
}

/// A permit for an open stream or a running call, held until it is dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    _cluster: Option<ClusterPermit>,
    _here: QuotaUnit,
}

/// Admits or refuses requests.
#[derive(Debug)]
pub(crate) struct AdmissionControl {
    limits: Limits,
    platform: PlatformLimits,
    address: Option<Rate>,
    calls: Arc<NodeQuota>,
    streams: Arc<NodeQuota>,
    openings: RateLimiter,
    pub(crate) refusals: Refusals,
}

impl AdmissionControl {
    pub(crate) fn new(limits: Limits, config: &McpConfig) -> Self {
        Self {
            limits,
            platform: config.platform_limits(),
            address: a_minute(Limit::Address, Some(config.address_requests_per_minute)),
            calls: NodeQuota::new(config.node_calls),
            streams: NodeQuota::new(config.node_streams),
            openings: RateLimiter::new(config.attaches_per_second, config.attaches_waiting),
            refusals: Refusals::default(),
        }
    }

    /// The limits of a tenant with the settings `own`.
    pub(crate) fn of(&self, tenant: TenantId, own: &LimitSet) -> TenantLimits {
        let holds = self.platform.effective(own);
        let permits = |name, limit| {
            let most = holds.get(name)?;
            Some(
                self.limits
                    .permits(places_key(tenant, name), limit, most.into()),
            )
        };
        TenantLimits {
            requests: a_minute(Limit::ClientRequests, holds.get(LimitName::ClientRequests)),
            calls: a_minute(Limit::TenantCalls, holds.get(LimitName::TenantCalls)),
            tool_calls: a_minute(Limit::ToolCalls, holds.get(LimitName::ToolCalls)),
            stream_opens: a_minute(Limit::StreamOpens, holds.get(LimitName::StreamOpens)),
            running: permits(LimitName::RunningCalls, Limit::RunningCalls),
            streams: permits(LimitName::OpenStreams, Limit::OpenStreams),
            calls_here: self.calls.of(tenant),
            streams_here: self.streams.of(tenant),
            holds,
        }
    }

    /// Takes one token from a bucket.
    pub(crate) async fn take(
        &self,
        tenant: TenantId,
        key: &LimitKey,
        rate: Option<Rate>,
    ) -> Result<(), OverLimit> {
        let Some(rate) = rate else { return Ok(()) };
        let taken = match self.limits.try_take(key, rate, 1) {
            Some(said) => said,
            None => self.limits.take(key, rate, 1).await,
        };
        taken.map_err(|wait| self.over(tenant, rate.limit, wait.0))
    }

    /// Takes a permit from a pool.
    async fn enter(
        &self,
        permits: Option<&Arc<ClusterPermits>>,
        limit: Limit,
    ) -> Result<Option<ClusterPermit>, OverLimit> {
        let Some(permits) = permits else {
            return Ok(None);
        };
        let entered = match self.limits.try_enter(permits) {
            Some(said) => said,
            None => self.limits.enter(permits).await,
        };
        entered.map(Some).map_err(|wait| OverLimit {
            limit,
            retry_after: seconds(wait.0),
        })
    }

    /// Takes one token of an address. Requests with a known token do not come here.
    pub(crate) async fn take_address(&self, address: IpAddr) -> Result<(), OverLimit> {
        let Some(rate) = self.address else {
            return Ok(());
        };
        let key = LimitKey {
            shard: block(address),
            bucket: "a".to_owned(),
        };
        let taken = match self.limits.try_take(&key, rate, 1) {
            Some(said) => said,
            None => self.limits.take(&key, rate, 1).await,
        };
        taken.map_err(|wait| OverLimit {
            limit: rate.limit,
            retry_after: seconds(wait.0),
        })
    }

    /// Counts the refusal of an address.
    pub(crate) fn address_refused(&self) {
        count_refusal("address");
    }

    /// Counts a refused session, when the memory of the store is nearly full.
    pub(crate) fn session_refused(&self) {
        count_refusal("sessions");
    }

    /// Takes one token for progress of a question. False means that the progress is dropped.
    pub(crate) async fn take_progress(&self, key: &LimitKey) -> bool {
        let taken = match self.limits.try_take(key, PROGRESS, 1) {
            Some(said) => said,
            None => self.limits.take(key, PROGRESS, 1).await,
        };
        taken.is_ok()
    }

    /// Takes a permit for a call: on this node, and of the tenant in the cluster
    /// (STREAM-16.2, STREAM-16.3).
    pub(crate) async fn run_call(
        &self,
        tenant: TenantId,
        limits: &TenantLimits,
    ) -> Result<Permit, NoPermit> {
        let (here, everywhere) = (&limits.calls_here, limits.running.as_ref());
        let found = self
            .find_permit(here, everywhere, Limit::RunningCalls)
            .await;
        found.inspect_err(|no| self.no_permit(tenant, LimitName::RunningCalls, *no))
    }

    /// Takes a permit for a new stream of a client.
    pub(crate) async fn open_stream(
        &self,
        tenant: TenantId,
        limits: &TenantLimits,
    ) -> Result<Permit, NoPermit> {
        let found = self.find_stream(limits).await;
        found.inspect_err(|no| self.no_permit(tenant, LimitName::OpenStreams, *no))
    }

    pub(crate) async fn find_stream(&self, limits: &TenantLimits) -> Result<Permit, NoPermit> {
        let (here, everywhere) = (&limits.streams_here, limits.streams.as_ref());
        self.find_permit(here, everywhere, Limit::OpenStreams).await
    }

    async fn find_permit(
        &self,
        here: &Arc<TenantQuota>,
        everywhere: Option<&Arc<ClusterPermits>>,
        limit: Limit,
    ) -> Result<Permit, NoPermit> {
        let taken = here.take().ok_or(NoPermit::NodeIsFull)?;
        let place = self.enter(everywhere, limit).await;
        Ok(Permit {
            _cluster: place.map_err(NoPermit::Over)?,
            _here: taken,
        })
    }

    /// Waits for the turn of a client that opens a stream, as many come together after a node's
    /// death (STREAM-17.6).
    ///
    /// `false` if too many wait already. A client that comes back for its stream waits in any case,
    /// for at most 5 s.
    pub(crate) async fn wait_turn(&self, tenant: TenantId, start: StreamStart) -> bool {
        let has_turn = self.openings.turn(start).await;
        if !has_turn {
            self.refusals.add(tenant, LimitName::StreamOpens);
            count_refusal("node_resumes_waiting");
        }
        has_turn
    }

    /// Counts a refusal by a limit of a tenant.
    pub(crate) fn refused(&self, tenant: TenantId, name: LimitName) {
        self.refusals.add(tenant, name);
        count_refusal(name.as_str());
    }

    /// Counts a refusal by this node's limit. The tenant's owner sees it among its own refusals.
    pub(crate) fn refused_by_node(&self, tenant: TenantId, name: LimitName) {
        self.refusals.add(tenant, name);
        count_refusal(match name {
            LimitName::RunningCalls => "node_running_calls",
            LimitName::ParkedCalls => "node_parked_calls",
            _ => "node_open_streams",
        });
    }

    /// The refusals of a tenant since the last write, by limit.
    #[cfg(test)]
    pub(crate) fn refused_so_far(&self, tenant: TenantId) -> [u64; LimitName::ALL.len()] {
        self.refusals.of(tenant)
    }

    fn no_permit(&self, tenant: TenantId, name: LimitName, no: NoPermit) {
        match no {
            NoPermit::Over(_) => self.refused(tenant, name),
            NoPermit::NodeIsFull => self.refused_by_node(tenant, name),
        }
    }

    fn over(&self, tenant: TenantId, limit: Limit, wait: Duration) -> OverLimit {
        if let Some(name) = editable(limit) {
            self.refused(tenant, name);
        }
        OverLimit {
            limit,
            retry_after: seconds(wait),
        }
    }

    /// Running calls and open streams of a tenant in the cluster. `None` if unknown.
    pub(crate) async fn in_use(&self, tenant: TenantId) -> [Option<u64>; 2] {
        let count = |name| async move { self.limits.in_use(&places_key(tenant, name)).await };
        let (calls, streams) = tokio::join!(
            count(LimitName::RunningCalls),
            count(LimitName::OpenStreams)
        );
        [calls, streams]
    }
}

/// The key of a pool of permits in the cluster.
fn places_key(tenant: TenantId, name: LimitName) -> LimitKey {
    LimitKey {
        shard: tenant.uuid().simple().to_string(),
        bucket: format!("n:{}", name.as_str()),
    }
}

const fn editable(limit: Limit) -> Option<LimitName> {
    match limit {
        Limit::TenantCalls => Some(LimitName::TenantCalls),
        Limit::ClientRequests => Some(LimitName::ClientRequests),
        Limit::ToolCalls => Some(LimitName::ToolCalls),
        Limit::RunningCalls => Some(LimitName::RunningCalls),
        Limit::OpenStreams => Some(LimitName::OpenStreams),
        Limit::StreamOpens => Some(LimitName::StreamOpens),
        Limit::Address => None,
    }
}

/// Counts for operators: one label for each limit of a workspace, an address or this node.
fn count_refusal(limit: &'static str) {
    metrics::counter!("limit_refusals_total", "limit" => limit).increment(1);
}

/// A rate of `count` a minute, with a burst of one minute.
fn a_minute(limit: Limit, count: Option<u32>) -> Option<Rate> {
    let count = u64::from(count?);
    Some(Rate {
        limit,
        interval_us: 60_000_000_u64.checked_div(count)?.max(1),
        burst: count,
    })
}

/// Whole seconds, rounded up, at least one.
fn seconds(wait: Duration) -> u64 {
    let up = u64::from(wait.subsec_nanos() > 0);
    wait.as_secs().saturating_add(up).max(1)
}

/// The bucket of an address. An IPv6 customer has a whole /64: one bucket for all of it.
fn block(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            format!("{a:x}-{b:x}-{c:x}-{d:x}")
        }
    }
}

/// A workspace may have at most this multiple of the free capacity.
const TIMES: usize = 3;

/// The capacity of this node, and its use by workspace: each has less than three times the free
/// part.
///
/// Alone it can take three quarters of the node. Two that want everything take three sevenths each.
/// With *n* of them each takes 3 / (3n + 1), and 1 / (3n + 1) stays free for the next one. So a
/// workspace never finds a node full because of another one (test plan, TEST-S12). The width of the
/// limits and the number of nodes do not matter.
///
/// Switches share a buffer among their queues by this rule (Choudhury and Hahne, dynamic
/// thresholds). It needs no number of workspaces, and reserves nothing for idle ones.
#[derive(Debug)]
pub(crate) struct NodeQuota {
    most: usize,
    used: AtomicUsize,
    quotas: Mutex<HashMap<TenantId, Weak<TenantQuota>>>,
}

/// The share of one workspace.
#[derive(Debug)]
pub(crate) struct TenantQuota {
    node: Arc<NodeQuota>,
    used: AtomicUsize,
}

/// One unit, until it is dropped.
#[derive(Debug)]
pub(crate) struct QuotaUnit(Arc<TenantQuota>);

impl Drop for QuotaUnit {
    fn drop(&mut self) {
        self.0.used.fetch_sub(1, Ordering::AcqRel);
        self.0.node.used.fetch_sub(1, Ordering::AcqRel);
    }
}

impl NodeQuota {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            most,
            used: AtomicUsize::new(0),
            quotas: Mutex::default(),
        })
    }

    /// The share of a workspace: the same one as long as it or a unit of it is held.
    pub(crate) fn of(self: &Arc<Self>, tenant: TenantId) -> Arc<TenantQuota> {
        let mut quotas = self.quotas.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(quota) = quotas.get(&tenant).and_then(Weak::upgrade) {
            return quota;
        }
        if quotas.len() == quotas.capacity() {
            // Before the map grows, unused shares are removed.
            quotas.retain(|_, quota| quota.strong_count() > 0);
        }
        let quota = Arc::new(TenantQuota {
            node: Arc::clone(self),
            used: AtomicUsize::new(0),
        });
        quotas.insert(tenant, Arc::downgrade(&quota));
        quota
    }
}

impl TenantQuota {
    /// Takes one more. `None`: the node is full, or the workspace has reached its share.
    pub(crate) fn take(self: &Arc<Self>) -> Option<QuotaUnit> {
        let used = self.node.used.fetch_add(1, Ordering::AcqRel);
        let own = self.used.fetch_add(1, Ordering::AcqRel);
        let taken = QuotaUnit(Arc::clone(self));
        let free = self.node.most.saturating_sub(used);
        (own < free.saturating_mul(TIMES)).then_some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_a_minute_is_exact_and_zero_is_none() {
        let rate = a_minute(Limit::TenantCalls, Some(100)).unwrap();
        assert_eq!((rate.interval_us, rate.burst), (600_000, 100));
        assert_eq!(a_minute(Limit::ToolCalls, Some(0)), None);
        assert_eq!(a_minute(Limit::ToolCalls, None), None);
    }

    #[test]
    fn addresses_share_a_bucket_where_one_customer_has_them_all() {
        let block = |text: &str| block(text.parse().unwrap());
        assert_eq!(block("2001:db8:1:2::1"), block("2001:db8:1:2:ffff::9"));
        assert_ne!(block("2001:db8:1:2::1"), block("2001:db8:1:3::1"));
        assert_eq!(block("::ffff:192.0.2.1"), block("192.0.2.1"));
        assert_ne!(block("192.0.2.1"), block("192.0.2.2"));
    }

    fn fill(quota: &Arc<TenantQuota>) -> Vec<QuotaUnit> {
        std::iter::from_fn(|| quota.take()).collect()
    }

    #[test]
    fn s12_who_wants_everything_leaves_a_quarter_and_the_next_one_gets_its_part() {
        let node = NodeQuota::new(2_000);
        let [noisy, other, third] = [(); 3].map(|()| node.of(TenantId::generate()));
        let all = fill(&noisy);
        assert_eq!(all.len(), 1_500);
        // Others get units, each less than the one before, and never none.
        let others = fill(&other);
        assert_eq!(others.len(), 375);
        assert!(fill(&third).len() > 90);
        assert!(noisy.take().is_none() && other.take().is_none());
        // Returned units are free for all workspaces again.
        drop((all, others));
        assert_eq!(node.used.load(Ordering::Relaxed), 0);
        assert_eq!(fill(&other).len(), 1_500);
    }

    #[test]
    fn a_node_that_bears_one_bears_one() {
        let node = NodeQuota::new(1);
        let [one, other] = [(); 2].map(|()| node.of(TenantId::generate()));
        let taken = one.take();
        assert!(taken.is_some() && one.take().is_none() && other.take().is_none());
        drop(taken);
        assert!(other.take().is_some());
        assert!(NodeQuota::new(0).of(TenantId::generate()).take().is_none());
    }

    #[test]
    fn a_share_is_one_however_often_it_is_asked_for_and_is_forgotten_when_nobody_holds_it() {
        let node = NodeQuota::new(8);
        let tenant = TenantId::generate();
        let taken = node.of(tenant).take();
        assert_eq!(node.of(tenant).used.load(Ordering::Relaxed), 1);
        drop(taken);
        for _ in 0..10_000 {
            node.of(TenantId::generate());
        }
        let known = node.quotas.lock().unwrap().len();
        assert!(known < 100, "{known}");
    }
}
