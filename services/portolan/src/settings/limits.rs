//! Settings of limits: what the platform gives every tenant, and what one node bears.

use anyhow::Result;
use portolan_model::limits::{LimitName, LimitSet, PlatformLimits};

use super::Raw;

/// The limits of an installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitSettings {
    /// What every tenant has, and may set.
    pub platform: PlatformLimits,
    /// Requests of one address without a known token, a minute; 0: no limit.
    pub address_requests_per_minute: u32,
    /// Calls that run on one node.
    pub node_calls: usize,
    /// Streams that are open on one node.
    pub node_streams: usize,
    /// Calls that wait for their client's answer on one node.
    pub node_parked_calls: usize,
    /// Clients that one node serves in a second when they come for a stream.
    pub node_resumes_per_second: u32,
    /// Clients that wait for that on one node, before those that open a new stream are refused.
    pub node_resumes_waiting: usize,
}

impl LimitSettings {
    pub(super) fn read(raw: &Raw) -> Result<Self> {
        let number = |name: &str, range| -> Result<u32> {
            Ok(u32::try_from(raw.within(name, range)?).unwrap_or(u32::MAX))
        };
        let of_a_client = number("calls_per_minute", 1..=1_000_000)?;
        let of_a_tenant = match raw.text("tenant_calls_per_minute") {
            Some(_) => number("tenant_calls_per_minute", 1..=10_000_000)?,
            None => of_a_client.saturating_mul(10),
        };
        let mut defaults = LimitSet::default();
        for (name, value) in [
            (LimitName::TenantCalls, of_a_tenant),
            (LimitName::ClientRequests, of_a_client),
            (
                LimitName::ToolCalls,
                number("tool_calls_per_minute", 0..=10_000_000)?,
            ),
            (
                LimitName::RunningCalls,
                number("tenant_running_calls", 1..=1_000_000)?,
            ),
            (
                LimitName::OpenStreams,
                number("tenant_open_streams", 1..=1_000_000)?,
            ),
            (
                LimitName::StreamOpens,
                number("stream_opens_per_minute", 0..=1_000_000)?,
            ),
            (
                LimitName::SessionStreams,
                number("session_open_streams", 1..=1_000)?,
            ),
            (LimitName::Listens, number("client_listens", 1..=10_000)?),
            (
                LimitName::ParkedCalls,
                number("client_parked_calls", 1..=10_000)?,
            ),
            (LimitName::Tasks, number("client_tasks", 1..=1_000)?),
        ] {
            defaults.set(name, Some(value));
        }
        Ok(Self {
            platform: PlatformLimits {
                defaults,
                headroom: number("tenant_limits_headroom", 1..=1_000)?,
            },
            address_requests_per_minute: number("address_requests_per_minute", 0..=1_000_000)?,
            node_calls: usize::try_from(raw.within("node_running_calls", 1..=1_000_000)?)?,
            node_streams: usize::try_from(raw.within("node_open_streams", 1..=1_000_000)?)?,
            node_parked_calls: usize::try_from(raw.within("node_parked_calls", 1..=100_000)?)?,
            node_resumes_per_second: number("node_resumes_per_second", 1..=100_000)?,
            node_resumes_waiting: usize::try_from(
                raw.within("node_resumes_waiting", 0..=1_000_000)?,
            )?,
        })
    }

    /// A default as the endpoint's settings have it: 0 = no limit.
    pub fn default_of(&self, name: LimitName) -> u32 {
        self.platform.defaults.get(name).unwrap_or(0)
    }
}
