//! Every metric of the product, with its meaning.
//!
//! `tests/metrics.rs` compares this list with the code that measures, and with the dashboard and
//! the alarms that query it.

use metrics::{counter, describe_counter, describe_gauge, describe_histogram, gauge};

/// Kinds of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// Only grows.
    Counter,
    /// A counter that is exported as 0 from the start. Alarms check whether it grew, and a series
    /// that first appears as 1 has not grown.
    CounterFromZero,
    /// Goes up and down.
    Gauge,
    /// A gauge that is exported as 0 from the start, for the same reason.
    GaugeFromZero,
    /// Counts in buckets.
    Histogram,
}

/// A metric of the product.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// As Prometheus sees it.
    pub name: &'static str,
    /// Its kind.
    pub kind: MetricKind,
    /// Meaning of the metric, with its labels.
    pub meaning: &'static str,
}

const fn metric(name: &'static str, kind: MetricKind, meaning: &'static str) -> Metric {
    Metric {
        name,
        kind,
        meaning,
    }
}

/// Every metric that the product measures.
pub const METRICS: &[Metric] = &[
    metric(
        "http_requests_total",
        MetricKind::Counter,
        "Requests answered, by route template, method and outcome",
    ),
    metric(
        "http_request_duration_seconds",
        MetricKind::Histogram,
        "Time from the head of a request to the head of its answer, by route template",
    ),
    metric(
        "connections_refused_total",
        MetricKind::CounterFromZero,
        "Connections refused by the public listener, by reason: address (it holds as many as it may), reserve (only places for \
         established clients were left)",
    ),
    metric(
        "dependency_up",
        MetricKind::Gauge,
        "1 while the database or Redis answers, 0 while it is away",
    ),
    metric(
        "drain_seconds",
        MetricKind::Histogram,
        "Time from the signal to stop to the end of the last request",
    ),
    metric(
        "drain_calls_cut_total",
        MetricKind::CounterFromZero,
        "Requests that still ran when the time of the drain was over",
    ),
    // The authorization service.
    metric(
        "oauth_authorize_total",
        MetricKind::Counter,
        "Authorization requests by outcome",
    ),
    metric(
        "oauth_consent_total",
        MetricKind::Counter,
        "Decisions of people about a client, by outcome",
    ),
    metric(
        "oauth_token_total",
        MetricKind::Counter,
        "Token requests by grant and outcome",
    ),
    metric(
        "oauth_refresh_replay_total",
        MetricKind::Counter,
        "Refresh tokens seen again: within the window, answer lost, or reuse",
    ),
    metric(
        "oauth_resource_absent_total",
        MetricKind::Counter,
        "Authorization requests without a resource parameter, by form",
    ),
    metric(
        "oauth_client_requests_total",
        MetricKind::Counter,
        "People who asked an administrator to allow a client",
    ),
    metric(
        "connect_events_dropped_total",
        MetricKind::CounterFromZero,
        "Steps of connecting clients that were not written down, because there were too many",
    ),
    metric(
        "verification_keys_read_total",
        MetricKind::Counter,
        "Times at which this node read the keys that verify access tokens",
    ),
    metric(
        "webhook_attempts_total",
        MetricKind::Counter,
        "Attempts to deliver an event to a webhook, by outcome: delivered, failed",
    ),
    metric(
        "webhook_deliveries_waiting",
        MetricKind::Gauge,
        "Deliveries to webhooks that are due, as of the last minute",
    ),
    metric(
        "webhook_deliveries_oldest_seconds",
        MetricKind::Gauge,
        "Age of the oldest of them",
    ),
    metric(
        "mail_outbox_messages",
        MetricKind::Gauge,
        "Mails that wait to be sent",
    ),
    metric(
        "mail_outbox_oldest_seconds",
        MetricKind::Gauge,
        "Age of the oldest mail that waits to be sent",
    ),
    metric(
        "mail_sent_total",
        MetricKind::Counter,
        "Attempts to send a mail, by outcome",
    ),
    // The MCP endpoint.
    metric(
        "mcp_requests_total",
        MetricKind::Counter,
        "MCP messages by era, method and outcome",
    ),
    metric(
        "mcp_call_duration_seconds",
        MetricKind::Histogram,
        "Duration of tool calls by kind of backend and outcome",
    ),
    metric(
        "attach_tunnels",
        MetricKind::GaugeFromZero,
        "Connections of attached servers that this node holds",
    ),
    metric(
        "attach_ended_total",
        MetricKind::Counter,
        "Connections of attached servers that ended, by reason",
    ),
    metric(
        "attach_refused_total",
        MetricKind::Counter,
        "Connections of attached servers that were refused, by reason",
    ),
    metric(
        "mcp_tokens_unjudged_total",
        MetricKind::CounterFromZero,
        "Requests with a token that were answered 503, because this node has not heard for long what is revoked, and others may have",
    ),
    metric(
        "mcp_call_log_dropped_total",
        MetricKind::CounterFromZero,
        "Entries of the call log that were dropped",
    ),
    metric(
        "mcp_call_content_dropped_total",
        MetricKind::CounterFromZero,
        "Calls whose arguments and answer were not kept although the policy of their server wants them",
    ),
    metric(
        "mcp_counts_waiting",
        MetricKind::GaugeFromZero,
        "Rows of counts of calls that this node has not written yet",
    ),
    metric(
        "mcp_counts_retried_total",
        MetricKind::CounterFromZero,
        "Writes of counts of calls that failed; the counts are kept and written later",
    ),
    metric(
        "mcp_list_changed_total",
        MetricKind::Counter,
        "Streams that were told of a changed list",
    ),
    metric(
        "mcp_streams_open",
        MetricKind::Gauge,
        "Open streams by kind: answers that can be resumed, and news",
    ),
    metric(
        "mcp_stream_memory_bytes",
        MetricKind::GaugeFromZero,
        "Bytes of events that wait in this node: for the log, for clients, and for the case that the log loses them",
    ),
    metric(
        "mcp_stream_delivery_seconds",
        MetricKind::Histogram,
        "From the write of an event, or from the message of the node that wrote it, to its client's connection",
    ),
    metric(
        "mcp_resume_total",
        MetricKind::Counter,
        "Streams that clients came back for, by outcome",
    ),
    metric(
        "mcp_parked_calls",
        MetricKind::Gauge,
        "Calls that asked their client something and wait for its retry",
    ),
    metric(
        "mcp_tasks",
        MetricKind::Gauge,
        "Tasks that run on this node",
    ),
    metric(
        "mcp_tasks_ended_total",
        MetricKind::Counter,
        "Tasks that ended, by status",
    ),
    metric(
        "mcp_bells_dropped_total",
        MetricKind::Counter,
        "Words and bells of tasks that were not told: too many for the other nodes (full)",
    ),
    metric(
        "mcp_request_state_refused_total",
        MetricKind::Counter,
        "States of such calls that were refused: forged, expired, used, or of another request",
    ),
    metric(
        "mcp_translation_losses_total",
        MetricKind::Counter,
        "What questions lost between two revisions, by rule",
    ),
    // What nodes share.
    metric(
        "mcp_append_total",
        MetricKind::Counter,
        "Writes to the logs of streams, by outcome",
    ),
    metric(
        "mcp_adoptions_total",
        MetricKind::Counter,
        "Streams of lost nodes that this node took over, by outcome",
    ),
    metric(
        "mcp_calls_interrupted_total",
        MetricKind::Counter,
        "Streamed calls that ended without their own answer, by why, and by whether they took effect",
    ),
    metric(
        "mcp_doorbells_total",
        MetricKind::Counter,
        "Messages from other nodes, by type",
    ),
    metric(
        "mcp_doorbell_gaps_total",
        MetricKind::Counter,
        "Messages from other nodes that told of events before which some were missing",
    ),
    metric(
        "mcp_antientropy_repairs_total",
        MetricKind::CounterFromZero,
        "Events that were found by the regular look and of which no message had told",
    ),
    metric(
        "mcp_outage_mode_streams",
        MetricKind::GaugeFromZero,
        "Streams that run without their log, because Redis takes no writes",
    ),
    metric(
        "mcp_ring_overflow_total",
        MetricKind::CounterFromZero,
        "Streams that had more to keep during an outage than fits",
    ),
    metric(
        "mcp_stream_seal_failures_total",
        MetricKind::CounterFromZero,
        "Events that could not be opened",
    ),
    metric(
        "mcp_session_grace_total",
        MetricKind::Counter,
        "Requests of known sessions that were served while Redis was away",
    ),
    metric(
        "mcp_sessions_forgotten_total",
        MetricKind::Counter,
        "Records of idle sessions that were dropped because their principal had too many",
    ),
    metric(
        "mcp_register_total",
        MetricKind::Counter,
        "Running calls that could not be made known to other nodes, by outcome",
    ),
    metric(
        "answers_total",
        MetricKind::Counter,
        "Answers of clients to questions, by outcome",
    ),
    metric(
        "cancels_total",
        MetricKind::Counter,
        "Cancellations of clients, by outcome",
    ),
    metric(
        "limit_decisions_total",
        MetricKind::Counter,
        "Decisions of rate limits by limit, by result, and by where the tokens came from",
    ),
    metric(
        "limit_refusals_total",
        MetricKind::Counter,
        "What limits of workspaces, addresses and nodes refused, by limit",
    ),
    metric(
        "mcp_notices_dropped_total",
        MetricKind::Counter,
        "Words of calls on progress and logs that made room for newer ones, because a client is told ten times a second at most",
    ),
    metric(
        "limit_wait_seconds",
        MetricKind::Histogram,
        "Time that requests waited for a rate limit to be decided",
    ),
    metric(
        "server_requests_open",
        MetricKind::GaugeFromZero,
        "Questions to clients that wait for their answer",
    ),
    metric(
        "members",
        MetricKind::Gauge,
        "Nodes that this node knows to live",
    ),
    metric(
        "beat_age_seconds",
        MetricKind::Gauge,
        "Time since this node last said that it lives",
    ),
    metric(
        "clock_skew_seconds",
        MetricKind::Gauge,
        "Time by which the clock of this node is ahead of that of Redis",
    ),
    metric(
        "redis_rtt_seconds",
        MetricKind::Histogram,
        "Operations of the store that nodes share, by operation",
    ),
    metric(
        "redis_inflight",
        MetricKind::GaugeFromZero,
        "Commands that wait for an answer of Redis",
    ),
    metric(
        "redis_slow",
        MetricKind::GaugeFromZero,
        "1 while Redis answers so slowly that this node asks it for less",
    ),
    metric(
        "redis_used_memory_ratio",
        MetricKind::Gauge,
        "Memory that Redis uses of what it may, or of what its machine has where no limit is set",
    ),
    metric(
        "redis_incarnation",
        MetricKind::Gauge,
        "Number of the server that was met last: it grows with each restart and fail-over",
    ),
    metric(
        "tenant_log_bytes",
        MetricKind::Gauge,
        "Bytes that the logs of streams of this node hold, for the twenty largest tenants",
    ),
    // What nodes know of revocations and of the registry.
    metric(
        "revocations_stale_seconds",
        MetricKind::Gauge,
        "Time since it was last known that no revocation was missed",
    ),
    metric(
        "listen_connected",
        MetricKind::Gauge,
        "1 while Postgres tells this node of changes",
    ),
    metric(
        "registry_stale_seconds",
        MetricKind::Gauge,
        "Time since it was last known that no change was missed; 0 while changes are heard",
    ),
    metric(
        "registry_reload_seconds",
        MetricKind::Histogram,
        "Time to read what is published from Postgres",
    ),
    metric(
        "notice_fanout_seconds",
        MetricKind::Histogram,
        "From the news of a change to the last stream here that was told",
    ),
    metric(
        "redis_breaker_state",
        MetricKind::GaugeFromZero,
        "0 while the store that nodes share is used, 1 while it is left alone and tried now and then",
    ),
];

/// Registers the descriptions of all metrics with the recorder of this thread or process.
pub(crate) fn describe() {
    for Metric {
        name,
        kind,
        meaning,
    } in METRICS.iter().copied()
    {
        match kind {
            MetricKind::Counter => describe_counter!(name, meaning),
            MetricKind::CounterFromZero => {
                describe_counter!(name, meaning);
                counter!(name).absolute(0);
            }
            MetricKind::Gauge => describe_gauge!(name, meaning),
            MetricKind::GaugeFromZero => {
                describe_gauge!(name, meaning);
                gauge!(name).set(0.0);
            }
            MetricKind::Histogram => describe_histogram!(name, meaning),
        }
    }
}
