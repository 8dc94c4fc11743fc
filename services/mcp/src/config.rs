//! What can be set about the MCP endpoint.

use std::time::Duration;

use serde::Deserialize;

/// Settings of the endpoint. The defaults suit a node of two cores and some hundred clients.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct McpConfig {
    /// Origins besides our own whose scripts may talk to the endpoint, as browsers write them: `https://app.example.com` (T-2).
    pub allowed_origins: Vec<String>,
    /// Tools on one page of `tools/list`.
    pub list_page_size: usize,
    /// Requests of one person with one client, per second in the long run. 0 = no limit.
    pub principal_per_second: u32,
    /// How many of them may come at once.
    pub principal_burst: u32,
    /// Tool calls of one tenant, per second in the long run. 0 = no limit.
    pub tenant_calls_per_second: u32,
    /// How many of them may come at once.
    pub tenant_calls_burst: u32,
    /// Calls of one tool of a tenant, per second in the long run. 0 = no limit.
    pub tool_calls_per_second: u32,
    /// How many of them may come at once.
    pub tool_calls_burst: u32,
    /// Event streams that one person with one client may open per minute (`clients.md` #7). 0 = no limit.
    pub stream_opens_per_minute: u32,
    /// Event streams of one session at once.
    pub streams_per_session: usize,
    /// `subscriptions/listen` streams of one person with one client at once.
    pub listens_per_principal: usize,
    /// Verified tokens that are remembered.
    pub verified_tokens: usize,
    /// Servers whose catalogue is kept in memory.
    pub catalogues: usize,
    /// Seconds for which a catalogue is served while the database is away.
    pub registry_max_stale_secs: u64,
    /// Entries of the call log that wait to be written; more are dropped and counted.
    pub call_log_queue: usize,
}

impl Default for McpConfig {
    fn default() -> Self {
        Self {
            allowed_origins: Vec::new(),
            list_page_size: 100,
            principal_per_second: 100,
            principal_burst: 500,
            tenant_calls_per_second: 1_000,
            tenant_calls_burst: 4_000,
            tool_calls_per_second: 0,
            tool_calls_burst: 0,
            stream_opens_per_minute: 60,
            streams_per_session: 4,
            listens_per_principal: 50,
            verified_tokens: 10_000,
            catalogues: 10_000,
            registry_max_stale_secs: 3_600,
            call_log_queue: 10_000,
        }
    }
}

impl McpConfig {
    pub(crate) fn max_stale(&self) -> Duration {
        Duration::from_secs(self.registry_max_stale_secs)
    }
}
