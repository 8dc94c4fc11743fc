//! The settings of the MCP endpoint.

use std::time::Duration;

use portolan_model::limits::{LimitName, LimitSet, PlatformLimits};
use serde::Deserialize;

/// Settings of the endpoint. The defaults suit a node of two cores and some hundred clients.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct McpConfig {
    /// Origins besides our own whose scripts may use the endpoint (MCP-T-2).
    ///
    /// They have the form of the `Origin` header: `https://app.example.com`.
    pub allowed_origins: Vec<String>,
    /// Tools on one page of `tools/list`.
    pub list_page_size: usize,
    /// Requests of one person with one client, a minute, unless the tenant has set a limit.
    ///
    /// 0 = no limit; likewise below.
    pub client_requests_per_minute: u32,
    /// Tool calls of one tenant, a minute.
    pub tenant_calls_per_minute: u32,
    /// Calls of one tool of a tenant, a minute.
    pub tool_calls_per_minute: u32,
    /// Running calls of one tenant at one time, in the cluster.
    pub running_calls: u32,
    /// Open event streams of one tenant at one time, in the cluster.
    pub open_streams: u32,
    /// The highest multiple of the above that a tenant may set for itself.
    pub limit_headroom: u32,
    /// Requests of one client address without a token that this node knows, a minute. 0 = no limit.
    pub address_requests_per_minute: u32,
    /// Running calls on this node at one time.
    pub node_calls: usize,
    /// Open event streams on this node at one time.
    pub node_streams: usize,
    /// Clients that open streams and are served in a second.
    pub attaches_per_second: u32,
    /// Clients that wait for that; a further client that opens a new stream is refused.
    pub attaches_waiting: usize,
    /// Event streams that one person with one client may open per minute. 0 = no limit. A resume
    /// with an authentic `Last-Event-ID` is never refused (REVIEW-F1).
    pub stream_opens_per_minute: u32,
    /// Event streams of one session at once, on one node.
    pub streams_per_session: u32,
    /// `subscriptions/listen` streams of one person with one client at once, on one node.
    pub listens_per_principal: u32,
    /// Verified tokens that are cached.
    pub verified_tokens: usize,
    /// Servers whose catalogue is cached.
    pub catalogues: usize,
    /// Seconds for which a catalogue is served while the database is away.
    pub registry_max_stale_secs: u64,
    /// Seconds to wait for a person's answer to a question (MCP-X-24).
    pub ask_person_secs: u64,
    /// Seconds to wait for a program's answer: sampling and roots.
    pub ask_program_secs: u64,
    /// Seconds for which a suspended call of 2026-07-28 waits for the retry of its client
    /// (MCP-X-22).
    pub park_secs: u64,
    /// Suspended calls of this node at one time.
    pub parked_per_node: usize,
    /// Suspended calls of one person with one client at one time, on this node.
    pub parked_per_principal: u32,
    /// Seconds after which a call becomes a task (MCP-X-54).
    ///
    /// This requires a source with that setting, and a client that accepts tasks.
    pub task_after_secs: u64,
    /// Tasks of one person with one client on one server at one time (MCP-TK-16).
    pub tasks_per_principal: u32,
    /// Entries of the call log that wait for the writer; more are dropped and counted.
    pub call_log_queue: usize,
}

impl Default for McpConfig {
    fn default() -> Self {
        Self {
            allowed_origins: Vec::new(),
            list_page_size: 100,
            client_requests_per_minute: 600,
            tenant_calls_per_minute: 6_000,
            tool_calls_per_minute: 0,
            running_calls: 500,
            open_streams: 20_000,
            limit_headroom: 10,
            address_requests_per_minute: 600,
            node_calls: 2_000,
            node_streams: 40_000,
            attaches_per_second: 2_000,
            attaches_waiting: 20_000,
            stream_opens_per_minute: 600,
            streams_per_session: 4,
            listens_per_principal: 50,
            verified_tokens: 10_000,
            catalogues: 10_000,
            registry_max_stale_secs: 3_600,
            ask_person_secs: 600,
            ask_program_secs: 120,
            park_secs: 900,
            parked_per_node: 1_000,
            parked_per_principal: 16,
            task_after_secs: 2,
            tasks_per_principal: 64,
            call_log_queue: 10_000,
        }
    }
}

impl McpConfig {
    /// The limits that the platform gives every tenant.
    pub(crate) fn platform_limits(&self) -> PlatformLimits {
        let mut defaults = LimitSet::default();
        for (name, value) in [
            (LimitName::TenantCalls, self.tenant_calls_per_minute),
            (LimitName::ClientRequests, self.client_requests_per_minute),
            (LimitName::ToolCalls, self.tool_calls_per_minute),
            (LimitName::RunningCalls, self.running_calls),
            (LimitName::OpenStreams, self.open_streams),
            (LimitName::StreamOpens, self.stream_opens_per_minute),
            (LimitName::SessionStreams, self.streams_per_session),
            (LimitName::Listens, self.listens_per_principal),
            (LimitName::ParkedCalls, self.parked_per_principal),
            (LimitName::Tasks, self.tasks_per_principal),
        ] {
            defaults.set(name, Some(value));
        }
        PlatformLimits {
            defaults,
            headroom: self.limit_headroom,
        }
    }

    pub(crate) fn max_stale(&self) -> Duration {
        Duration::from_secs(self.registry_max_stale_secs)
    }
}
