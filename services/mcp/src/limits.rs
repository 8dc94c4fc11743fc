//! The limits of the endpoint (STREAM-16): their kinds, a tenant's values, and the refusals.
//!
//! | Limit | Subject | Where |
//! |---|---|---|
//! | rates | tenant, person with client, tool, address | leased tokens, shared by all nodes |
//! | running calls, open streams | tenant | leased permits, shared by all nodes |
//! | node limits | this node, with a share for each tenant ([`quota`]) | [`AdmissionControl`] |
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
pub(crate) mod quota;
pub(crate) mod refusals;
pub(crate) mod session_quota;
pub(crate) mod suspended_calls;

use std::{
    net::IpAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use portolan_cluster::node::{ClusterPermit, ClusterPermits, Limit, LimitKey, Limits, Rate};
use portolan_model::{
    id::TenantId,
    limits::{LimitName, LimitSet, PlatformLimits},
};
use tokio::time::Instant;

pub use crate::limits::ledger::TenantLedger;
use crate::{
    config::McpConfig,
    limits::{
        quota::{NodeQuota, QuotaUnit, TenantQuota},
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
    pub(crate) async fn wait_turn(&self, tenant: TenantId, comes_back: bool) -> bool {
        let has_turn = self.openings.turn(comes_back).await;
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

/// Spreads clients that open streams: a rate a second, and a limit on waiting clients.
#[derive(Debug)]
struct RateLimiter {
    apart: Duration,
    most_waiting: usize,
    waiting: AtomicUsize,
    next: Mutex<Option<Instant>>,
}

impl RateLimiter {
    fn new(a_second: u32, most_waiting: usize) -> Self {
        Self {
            apart: Duration::from_secs(1) / a_second.max(1),
            most_waiting,
            waiting: AtomicUsize::new(0),
            next: Mutex::default(),
        }
    }

    async fn turn(&self, comes_back: bool) -> bool {
        let now = Instant::now();
        let at = {
            let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
            // No client waits for more than 5 s, so no turn is later than that.
            let at = next.unwrap_or(now).clamp(now, now + PACED_FOR);
            let is_full = self.waiting.load(Ordering::Acquire) >= self.most_waiting;
            if at > now && is_full && !comes_back {
                return false;
            }
            *next = Some(at + self.apart);
            at
        };
        if at > now {
            self.waiting.fetch_add(1, Ordering::AcqRel);
            let _waits = Waits(&self.waiting);
            tokio::time::sleep_until(at).await;
        }
        true
    }
}

struct Waits<'a>(&'a AtomicUsize);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{StreamExt, stream::FuturesUnordered};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn streams_16_3_who_comes_for_a_stream_is_spread_over_five_seconds_and_then_refused() {
        let openings = RateLimiter::new(100, 700);
        let start = Instant::now();
        let mut turns: FuturesUnordered<_> = (0..900)
            .map(|_| async { (openings.turn(false).await, start.elapsed()) })
            .collect();
        let mut admitted = Vec::new();
        let mut refused = 0;
        while let Some((is_admitted, at)) = turns.next().await {
            if is_admitted {
                admitted.push(at);
            } else {
                refused += 1;
            }
        }
        assert_eq!((admitted.len(), refused), (701, 199), "one had not to wait");
        for second in 0..5 {
            let from = Duration::from_secs(second);
            let until = from + Duration::from_secs(1);
            let count = admitted
                .iter()
                .filter(|at| **at >= from && **at < until)
                .count();
            assert!((99..=101).contains(&count), "second {second}: {count}");
        }
        assert!(
            admitted
                .iter()
                .all(|at| *at <= Duration::from_millis(5_010))
        );
        assert_eq!(openings.waiting.load(Ordering::Relaxed), 0);
    }

    /// REVIEW-F1: a client that comes back for a stream waits, however many wait already.
    #[tokio::test(start_paused = true)]
    async fn f1_who_comes_back_for_a_stream_waits_and_is_never_refused() {
        let openings = RateLimiter::new(100, 0);
        let start = Instant::now();
        assert!(
            openings.turn(false).await,
            "the first one waits for nothing"
        );
        assert!(!openings.turn(false).await, "there is no place to wait");
        let mut turns: FuturesUnordered<_> = (0..900).map(|_| openings.turn(true)).collect();
        while let Some(has_turn) = turns.next().await {
            assert!(has_turn);
        }
        assert!(start.elapsed() <= Duration::from_millis(5_010));
    }

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
}
