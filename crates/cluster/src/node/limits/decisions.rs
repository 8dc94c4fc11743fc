//! `limit_decisions_total`: every decision of a limit by limit, result and source (STREAM-20). Each
//! counter is looked up once, so that counting is one addition.

use std::{fmt, sync::OnceLock};

use metrics::Counter;

/// Limit, as metrics name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Limit {
    /// Calls of a tenant.
    TenantCalls,
    /// Requests of one person with one client.
    ClientRequests,
    /// Calls of one tool.
    ToolCalls,
    /// Streams that one person opens with one client.
    StreamOpens,
    /// Requests of one address before authentication.
    Address,
    /// Calls of a tenant that run simultaneously.
    RunningCalls,
    /// Streams of a tenant that are open simultaneously.
    OpenStreams,
}

impl Limit {
    const COUNT: usize = 7;

    /// Value of the label `limit`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TenantCalls => "tenant_calls",
            Self::ClientRequests => "client_requests",
            Self::ToolCalls => "tool_calls",
            Self::StreamOpens => "stream_opens",
            Self::Address => "address",
            Self::RunningCalls => "running_calls",
            Self::OpenStreams => "open_streams",
        }
    }
}

/// Source of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DecisionSource {
    /// Leased tokens or permits, or a refusal that is still valid.
    Token,
    /// A reply of the store.
    Refill,
    /// Credit: the first request of a key, or a late reply of the store.
    Cold,
    /// This node's local share, while the store does not reply.
    Local,
}

impl DecisionSource {
    const COUNT: usize = 4;

    const fn as_str(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::Refill => "refill",
            Self::Cold => "cold",
            Self::Local => "local",
        }
    }
}

/// Counters of all decisions.
#[derive(Default)]
pub(super) struct Decisions([[[OnceLock<Counter>; 2]; DecisionSource::COUNT]; Limit::COUNT]);

impl Decisions {
    pub(super) fn admitted(&self, limit: Limit, source: DecisionSource) {
        self.count(limit, source, true);
    }

    pub(super) fn refused(&self, limit: Limit, source: DecisionSource) {
        self.count(limit, source, false);
    }

    pub(super) fn count(&self, limit: Limit, source: DecisionSource, is_admitted: bool) {
        self.0[limit as usize][source as usize][usize::from(is_admitted)]
            .get_or_init(|| {
                let result = if is_admitted { "admitted" } else { "refused" };
                metrics::counter!(
                    "limit_decisions_total",
                    "limit" => limit.as_str(), "result" => result, "source" => source.as_str()
                )
            })
            .increment(1);
    }
}

impl fmt::Debug for Decisions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decisions").finish_non_exhaustive()
    }
}
