//! The limits of the endpoint: which bucket, how fast it fills. The buckets are shared by all nodes (`streams.md` §16.1).

use portolan_cluster::node::{LimitKey, Limits, Rate};

use crate::config::McpConfig;

/// The rates that are set; `None` = no limit.
#[derive(Debug)]
pub(crate) struct Rates {
    /// Requests of one person with one client.
    pub(crate) requests: Option<Rate>,
    /// Calls of one tenant.
    pub(crate) tenant_calls: Option<Rate>,
    /// Calls of one tool of a tenant.
    pub(crate) tool_calls: Option<Rate>,
    /// Event streams that one person with one client opens.
    pub(crate) stream_opens: Option<Rate>,
}

impl Rates {
    pub(crate) fn new(config: &McpConfig) -> Self {
        Self {
            requests: rate(config.principal_per_second, 1, config.principal_burst),
            tenant_calls: rate(config.tenant_calls_per_second, 1, config.tenant_calls_burst),
            tool_calls: rate(config.tool_calls_per_second, 1, config.tool_calls_burst),
            stream_opens: rate(
                config.stream_opens_per_minute,
                60,
                config.stream_opens_per_minute,
            ),
        }
    }
}

/// `count` per `period_secs` in the long run, `burst` at once.
fn rate(count: u32, period_secs: u32, burst: u32) -> Option<Rate> {
    let interval_us = (u64::from(period_secs) * 1_000_000).checked_div(count.into())?;
    Some(Rate {
        interval_us: interval_us.max(1),
        burst: burst.max(1).into(),
    })
}

/// Takes one from a bucket. The error is the number of whole seconds to wait, at least 1 (T-14).
pub(crate) async fn take(limits: &Limits, key: &LimitKey, rate: Option<Rate>) -> Result<(), u64> {
    let Some(rate) = rate else { return Ok(()) };
    let taken = match limits.try_take(key, rate, 1) {
        Some(said) => said,
        None => limits.take(key, rate, 1).await,
    };
    taken.map_err(|wait| {
        let up = u64::from(wait.0.subsec_nanos() > 0);
        wait.0.as_secs().saturating_add(up).max(1)
    })
}
