//! The limits of the endpoint (`streams.md` §16): which there are, what holds for a tenant, and what is refused.
//!
//! | Limit | Of | Where |
//! |---|---|---|
//! | rates | tenant, person with client, tool, address | leased tokens, shared by all nodes |
//! | calls that run, streams that are open | tenant | leased places, shared by all nodes |
//! | ceilings | this node, with a share for each tenant ([`share`]) | here: [`Gate::run_call`], [`Gate::open_stream`], [`Gate::pace`] |
//! | streams, waiting calls and tasks of one client | this node, the shelf of a task | where they are kept; [`TenantLimits::at_most`] |
//!
//! A client that comes back for a stream of ours is never refused: [`entry`] lets it wait.
//! Whatever a limit refuses is counted for the workspace's owner ([`refusals`]) and for operators
//! (`limit_refusals_total`): [`Gate::refused`].
//!
//! What holds for a tenant is computed when its catalogue is loaded; a request reads it there.

pub(crate) mod entry;
mod ledger;
mod refusals;
mod share;

use std::{
    net::IpAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use portolan_cluster::node::{Limit, LimitKey, Limits, Place, Places, Rate};
use portolan_model::{
    id::TenantId,
    limits::{LimitName, LimitSet, PlatformLimits},
};
use tokio::time::Instant;

pub use self::ledger::TenantLedger;
pub(crate) use self::ledger::calls_of;
pub(crate) use self::refusals::keep as keep_refusals;
use self::{
    refusals::Refusals,
    share::{Ceiling, Share, Taken},
};
use crate::config::McpConfig;

/// Longest wait of a client that comes back for a stream.
pub(crate) const PACED_FOR: Duration = Duration::from_secs(5);

/// Ten words a second on the progress of questions, in a bucket of their own.
const PROGRESS: Rate = Rate {
    limit: Limit::ClientRequests,
    interval_us: 100_000,
    burst: 50,
};

/// What holds for one tenant. `None` = no limit.
#[derive(Debug, Clone)]
pub(crate) struct TenantLimits {
    /// Requests of one person with one client.
    pub(crate) requests: Option<Rate>,
    /// All its calls.
    pub(crate) calls: Option<Rate>,
    /// Calls of one tool.
    pub(crate) tool_calls: Option<Rate>,
    /// New streams of one person with one client.
    pub(crate) stream_opens: Option<Rate>,
    /// Calls that run.
    pub(crate) running: Option<Arc<Places>>,
    /// Streams that are open.
    pub(crate) streams: Option<Arc<Places>>,
    /// Its part of the calls and of the streams that this node bears.
    calls_here: Arc<Share>,
    streams_here: Arc<Share>,
    holds: LimitSet,
}

impl TenantLimits {
    /// The most of something that may be there at once.
    pub(crate) fn at_most(&self, name: LimitName) -> usize {
        self.holds.at_most(name)
    }
}

/// Over a limit: which, and whole seconds until it is worth coming again, at least 1 (T-14).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OverLimit {
    pub(crate) limit: Limit,
    pub(crate) retry_after: u64,
}

/// Why there is no room for a call or a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoRoom {
    /// The tenant has as many as it may.
    Over(OverLimit),
    /// This node has as many as it bears, or the tenant its share of them.
    NodeIsFull,
}

/// Room for an open stream or a running call, for as long as it is there.
#[derive(Debug)]
pub(crate) struct Room {
    _place: Option<Place>,
    _taken: Taken,
}

/// Where requests are let through or refused.
#[derive(Debug)]
pub(crate) struct Gate {
    limits: Limits,
    platform: PlatformLimits,
    address: Option<Rate>,
    calls: Arc<Ceiling>,
    streams: Arc<Ceiling>,
    pace: Pace,
    refusals: Refusals,
}

impl Gate {
    pub(crate) fn new(limits: Limits, config: &McpConfig) -> Self {
        Self {
            limits,
            platform: config.platform_limits(),
            address: a_minute(Limit::Address, Some(config.address_requests_per_minute)),
            calls: Ceiling::new(config.node_calls),
            streams: Ceiling::new(config.node_streams),
            pace: Pace::new(config.attaches_per_second, config.attaches_waiting),
            refusals: Refusals::default(),
        }
    }

    /// What holds for a tenant that has set `own`.
    pub(crate) fn of(&self, tenant: TenantId, own: &LimitSet) -> TenantLimits {
        let holds = self.platform.effective(own);
        let places = |name, limit| {
            let most = holds.get(name)?;
            Some(
                self.limits
                    .places(places_key(tenant, name), limit, most.into()),
            )
        };
        TenantLimits {
            requests: a_minute(Limit::ClientRequests, holds.get(LimitName::ClientRequests)),
            calls: a_minute(Limit::TenantCalls, holds.get(LimitName::TenantCalls)),
            tool_calls: a_minute(Limit::ToolCalls, holds.get(LimitName::ToolCalls)),
            stream_opens: a_minute(Limit::StreamOpens, holds.get(LimitName::StreamOpens)),
            running: places(LimitName::RunningCalls, Limit::RunningCalls),
            streams: places(LimitName::OpenStreams, Limit::OpenStreams),
            calls_here: self.calls.of(tenant),
            streams_here: self.streams.of(tenant),
            holds,
        }
    }

    /// Takes one from a bucket.
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

    /// Takes a place among what is there at once.
    async fn enter(
        &self,
        places: Option<&Arc<Places>>,
        limit: Limit,
    ) -> Result<Option<Place>, OverLimit> {
        let Some(places) = places else {
            return Ok(None);
        };
        let entered = match self.limits.try_enter(places) {
            Some(said) => said,
            None => self.limits.enter(places).await,
        };
        entered.map(Some).map_err(|wait| OverLimit {
            limit,
            retry_after: seconds(wait.0),
        })
    }

    /// Takes one of an address that shows no token known here. Who holds a known one never comes by.
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

    /// Counts that an address was refused.
    pub(crate) fn address_refused(&self) {
        count_refusal("address");
    }

    /// Counts a session that was not begun, because the memory of the store is nearly full.
    pub(crate) fn session_refused(&self) {
        count_refusal("sessions");
    }

    /// A word of one person with one client on how far it is with a question. False: it says too much, which is no refusal of anything.
    pub(crate) async fn take_progress(&self, key: &LimitKey) -> bool {
        let taken = match self.limits.try_take(key, PROGRESS, 1) {
            Some(said) => said,
            None => self.limits.take(key, PROGRESS, 1).await,
        };
        taken.is_ok()
    }

    /// Room for a call: on this node, and among those of the tenant on all nodes (`streams.md` §16.2, §16.3).
    pub(crate) async fn run_call(
        &self,
        tenant: TenantId,
        limits: &TenantLimits,
    ) -> Result<Room, NoRoom> {
        let (here, everywhere) = (&limits.calls_here, limits.running.as_ref());
        let found = self.find_room(here, everywhere, Limit::RunningCalls).await;
        found.inspect_err(|no| self.no_room(tenant, LimitName::RunningCalls, *no))
    }

    /// The same for a stream that a client opens.
    pub(crate) async fn open_stream(
        &self,
        tenant: TenantId,
        limits: &TenantLimits,
    ) -> Result<Room, NoRoom> {
        let found = self.find_stream(limits).await;
        found.inspect_err(|no| self.no_room(tenant, LimitName::OpenStreams, *no))
    }

    async fn find_stream(&self, limits: &TenantLimits) -> Result<Room, NoRoom> {
        let (here, everywhere) = (&limits.streams_here, limits.streams.as_ref());
        self.find_room(here, everywhere, Limit::OpenStreams).await
    }

    async fn find_room(
        &self,
        here: &Arc<Share>,
        everywhere: Option<&Arc<Places>>,
        limit: Limit,
    ) -> Result<Room, NoRoom> {
        let taken = here.take().ok_or(NoRoom::NodeIsFull)?;
        let place = self.enter(everywhere, limit).await;
        Ok(Room {
            _place: place.map_err(NoRoom::Over)?,
            _taken: taken,
        })
    }

    /// Waits for the turn of a client that comes for a stream, because many come together after a node's death (§17.6). `false`: too
    /// many wait already. Who comes back for a stream of ours waits in any case, for 5 s at most.
    pub(crate) async fn pace(&self, tenant: TenantId, comes_back: bool) -> bool {
        let has_turn = self.pace.turn(comes_back).await;
        if !has_turn {
            self.refusals.add(tenant, LimitName::StreamOpens);
            count_refusal("node_resumes_waiting");
        }
        has_turn
    }

    /// Counts what a limit of a tenant refused.
    pub(crate) fn refused(&self, tenant: TenantId, name: LimitName) {
        self.refusals.add(tenant, name);
        count_refusal(name.as_str());
    }

    /// The same where the node has no room left: its owner sees it beside what its own limit refused.
    pub(crate) fn refused_by_node(&self, tenant: TenantId, name: LimitName) {
        self.refusals.add(tenant, name);
        count_refusal(match name {
            LimitName::RunningCalls => "node_running_calls",
            LimitName::ParkedCalls => "node_parked_calls",
            _ => "node_open_streams",
        });
    }

    /// What was counted of a tenant, by limit, since it was written last.
    #[cfg(test)]
    pub(crate) fn refused_so_far(&self, tenant: TenantId) -> [u64; LimitName::ALL.len()] {
        self.refusals.of(tenant)
    }

    fn no_room(&self, tenant: TenantId, name: LimitName, no: NoRoom) {
        match no {
            NoRoom::Over(_) => self.refused(tenant, name),
            NoRoom::NodeIsFull => self.refused_by_node(tenant, name),
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

    /// How many calls run and streams are open of a tenant, over all nodes. `None` where that is not known.
    pub(crate) async fn in_use(&self, tenant: TenantId) -> [Option<u64>; 2] {
        let count = |name| async move { self.limits.in_use(&places_key(tenant, name)).await };
        let (calls, streams) = tokio::join!(
            count(LimitName::RunningCalls),
            count(LimitName::OpenStreams)
        );
        [calls, streams]
    }
}

/// Where the nodes count what is there at once.
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

/// What operators see: a label for each limit there is, whether of a workspace, an address or this node.
fn count_refusal(limit: &'static str) {
    metrics::counter!("limit_refusals_total", "limit" => limit).increment(1);
}

/// So many a minute in the long run, and a minute's worth at once.
fn a_minute(limit: Limit, count: Option<u32>) -> Option<Rate> {
    let count = u64::from(count?);
    Some(Rate {
        limit,
        interval_us: 60_000_000_u64.checked_div(count)?.max(1),
        burst: count,
    })
}

/// Whole seconds, at least one.
fn seconds(wait: Duration) -> u64 {
    let up = u64::from(wait.subsec_nanos() > 0);
    wait.as_secs().saturating_add(up).max(1)
}

/// An IPv6 customer has a whole /64: one bucket for all of it.
fn block(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            format!("{a:x}-{b:x}-{c:x}-{d:x}")
        }
    }
}

/// Spreads clients that come for a stream: so many a second, so many waiting.
#[derive(Debug)]
struct Pace {
    apart: Duration,
    most_waiting: usize,
    waiting: AtomicUsize,
    next: Mutex<Option<Instant>>,
}

impl Pace {
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
            // Nobody is asked to wait for more than 5 s, so that nobody takes a place behind that.
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
        let pace = Pace::new(100, 700);
        let start = Instant::now();
        let mut turns: FuturesUnordered<_> = (0..900)
            .map(|_| async { (pace.turn(false).await, start.elapsed()) })
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
        assert_eq!(pace.waiting.load(Ordering::Relaxed), 0);
    }

    /// F-1: who comes back for a stream waits, however many wait already.
    #[tokio::test(start_paused = true)]
    async fn f1_who_comes_back_for_a_stream_waits_and_is_never_refused() {
        let pace = Pace::new(100, 0);
        let start = Instant::now();
        assert!(pace.turn(false).await, "the first one waits for nothing");
        assert!(!pace.turn(false).await, "there is no place to wait");
        let mut turns: FuturesUnordered<_> = (0..900).map(|_| pace.turn(true)).collect();
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
