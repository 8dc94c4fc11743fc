//! The settings of the MCP endpoint.

use std::time::Duration;

use portolan_model::limits::{LimitName, LimitSet, PlatformLimits};

/// Verified tokens that are cached. A token costs some 300 bytes; beyond, it is verified again.
pub(crate) const VERIFIED_TOKENS: usize = 10_000;
/// Servers whose catalogue is cached; beyond, the database is read again.
pub(crate) const CATALOGUES: usize = 10_000;
/// Entries of the call log that wait for the writer: some seconds of a node's calls. More are
/// dropped and counted.
pub(crate) const CALL_LOG_QUEUE: usize = 10_000;

portolan_config::config! {
    /// MCP endpoints
    pub struct McpConfig {
        /// Web origins besides the own one that may call MCP endpoints from a browser, as their
        /// `Origin` header has them: `https://app.example.com`.
        allowed_origins: Vec<String> = Vec::new();
        /// Tools per page of tools/list.
        list_page_size: usize as "page_size" = 100, in 1..=1_000;
        /// Requests a minute that one person may make through one client, where the workspace has
        /// set nothing else.
        client_requests_per_minute: u32 as "calls_per_minute" = 600, in 1..=1_000_000;
        /// Tool calls a minute of one workspace, where it has set nothing else. Without it: ten
        /// times calls_per_minute.
        tenant_calls_per_minute: Option<u32> = None, in 1..=10_000_000;
        /// Calls a minute of any one tool, where the workspace has set nothing else; 0: no limit of
        /// its own.
        tool_calls_per_minute: u32 = 0, in 0..=10_000_000;
        /// Calls of one workspace that run at once, over all nodes, where it has set nothing else.
        running_calls: u32 as "tenant_running_calls" = 500, in 1..=1_000_000;
        /// Event streams of one workspace that are open at once, over all nodes, where it has set
        /// nothing else.
        open_streams: u32 as "tenant_open_streams" = 20_000, in 1..=1_000_000;
        /// New event streams a minute that one person may open through one client, where the
        /// workspace has set nothing else; 0: no limit. A client that comes back for a stream that
        /// broke, with the id of the last event it got (Last-Event-ID), opens no new one: it may
        /// have to wait, and is never refused.
        stream_opens_per_minute: u32 = 600, in 0..=1_000_000;
        /// GET streams of one session that are open at once on one node, where the workspace has
        /// set nothing else. More are answered 409; a client that comes back for one takes the
        /// place of the oldest.
        streams_per_session: u32 as "session_open_streams" = 4, in 1..=1_000;
        /// subscriptions/listen streams (2026-07-28) of one person with one client that are open at
        /// once on one node, where the workspace has set nothing else.
        listens_per_principal: u32 as "client_listens" = 50, in 1..=10_000;
        /// Calls of one person with one client (2026-07-28) that wait for an answer to what they
        /// asked, at once on one node, where the workspace has set nothing else.
        parked_per_principal: u32 as "client_parked_calls" = 16, in 1..=10_000;
        /// Tasks of one person with one client on one server that are kept at once, over all nodes,
        /// where the workspace has set nothing else.
        tasks_per_principal: u32 as "client_tasks" = 64, in 1..=1_000;
        /// How many times these defaults owners and admins of a workspace may set in the console.
        /// 1: they may only lower them.
        limit_headroom: u32 as "tenant_limits_headroom" = 10, in 1..=1_000;
        /// Requests a minute of one client address (IPv6: one /64) that show no access token known
        /// to the node; 0: no limit. Behind proxies, set trusted_proxies first: without it all
        /// clients have the proxy's address.
        address_requests_per_minute: u32 = 600, in 0..=1_000_000;
        /// Calls that one node runs at once; more are answered 503 with Retry-After. One workspace
        /// gets three quarters of them at most, two that want everything three sevenths each, and
        /// so on, so that another workspace always finds capacity.
        node_calls: usize as "node_running_calls" = 2_000, in 1..=1_000_000;
        /// Event streams that clients hold open on one node, shared out among workspaces as
        /// node_running_calls; more are answered 503 with Retry-After. Keep it below
        /// listen_max_connections.
        node_streams: usize as "node_open_streams" = 40_000, in 1..=1_000_000;
        /// Calls (2026-07-28) that wait on one node for an answer to what they asked their clients.
        parked_per_node: usize as "node_parked_calls" = 1_000, in 1..=100_000;
        /// Clients that one node serves in a second when they come for an event stream, new or
        /// broken: after a node's death they come together. The others wait for their turn, for 5 s
        /// at most.
        attaches_per_second: u32 as "node_resumes_per_second" = 2_000, in 1..=100_000;
        /// Clients that may wait on one node for node_resumes_per_second; beyond, those that open a
        /// new stream are answered 503 with Retry-After. Those that come back for one wait in any
        /// case.
        attaches_waiting: usize as "node_resumes_waiting" = 20_000, in 0..=1_000_000;
        /// Seconds for which a call waits for a person's answer to a question (elicitation).
        ask_person_secs: u64 as "elicitation_secs" = 600, in 5..=3_600;
        /// Seconds for which a call waits for a client program's answer (sampling and roots).
        ask_program_secs: u64 as "client_answer_secs" = 120, in 5..=3_600;
        /// Seconds for which a call (2026-07-28) waits for the retry of its client, and for which
        /// its requestState is valid.
        park_secs: u64 as "parked_call_secs" = 900, in 10..=3_600;
        /// Seconds after which a call becomes a task, where the source allows tasks and the client
        /// accepts them.
        task_after_secs: u64 = 2, in 0..=60;
        /// Seconds for which a node serves the tools that it knows while the database is away.
        registry_max_stale_secs: u64 as "registry_max_staleness_secs" = 3_600, in 0..=86_400;
    }
}

impl McpConfig {
    /// The limits that the platform gives every tenant.
    pub fn platform_limits(&self) -> PlatformLimits {
        let of_a_client = self.client_requests_per_minute;
        let of_a_tenant = self
            .tenant_calls_per_minute
            .unwrap_or_else(|| of_a_client.saturating_mul(10));
        let mut defaults = LimitSet::default();
        for (name, value) in [
            (LimitName::TenantCalls, of_a_tenant),
            (LimitName::ClientRequests, of_a_client),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_has_ten_times_what_a_client_has_unless_set() {
        let name = LimitName::TenantCalls;
        let of = |config: McpConfig| config.platform_limits();
        assert_eq!(of(McpConfig::default()).defaults.get(name), Some(6_000));
        let fewer = McpConfig {
            client_requests_per_minute: 60,
            ..McpConfig::default()
        };
        assert_eq!(of(fewer).defaults.get(name), Some(600));
        let set = of(McpConfig {
            tenant_calls_per_minute: Some(61),
            ..McpConfig::default()
        });
        assert_eq!(set.defaults.get(name), Some(61));
        assert_eq!(set.maximum(name), 610);
        assert_eq!(set.defaults.get(LimitName::ToolCalls), None, "no limit");
    }
}
