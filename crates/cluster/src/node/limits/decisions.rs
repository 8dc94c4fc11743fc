//! `limit_decisions_total`: every decision of a limit, by limit, result and source (§20). Counting is one addition: each
//! counter is looked up once.

use std::{fmt, sync::OnceLock};

use metrics::Counter;

/// Which limit it is, for whoever watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Limit {
    /// Calls of a tenant.
    TenantCalls,
    /// Requests of one person with one client.
    ClientRequests,
    /// Calls of one tool.
    ToolCalls,
    /// Streams that one person with one client opens.
    StreamOpens,
    /// Requests of one address before anybody is known.
    Address,
    /// Calls of a tenant that run at once.
    RunningCalls,
    /// Streams of a tenant that are open at once.
    OpenStreams,
}

impl Limit {
    const COUNT: usize = 7;

    /// The value of the label `limit`.
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

/// What decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// What was in hand, or a refusal that still holds.
    Token,
    /// The store, just now.
    Refill,
    /// Nothing: on credit, as the first of its key or because the store's answer is late.
    Cold,
    /// This node's share, while the store is silent.
    Local,
}

impl Source {
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

/// The counters.
#[derive(Default)]
pub(super) struct Decisions([[[OnceLock<Counter>; 2]; Source::COUNT]; Limit::COUNT]);

impl Decisions {
    pub(super) fn count(&self, limit: Limit, source: Source, is_admitted: bool) {
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
