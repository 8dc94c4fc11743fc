//! Metrics: messages by era, method and outcome; calls by kind of source and outcome; open streams.

use std::{sync::OnceLock, time::Duration};

use metrics::{Counter, Histogram};
use portolan_model::registry::{CallOutcome, SourceKind};
use portolan_protocol::{method::Method, revision::Era, translate::Loss};

const OUTCOMES: [&str; 3] = ["ok", "error", "refused"];

/// The outcome of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Answered with a result, or accepted.
    Ok,
    /// Answered with a JSON-RPC error.
    Error,
    /// Refused before it was dispatched.
    Refused,
}

impl Outcome {
    /// The name in metrics and traces.
    pub(crate) const fn name(self) -> &'static str {
        OUTCOMES[self as usize]
    }
}

const CALL_OUTCOMES: [CallOutcome; 5] = [
    CallOutcome::Ok,
    CallOutcome::ToolError,
    CallOutcome::InvalidArguments,
    CallOutcome::UpstreamError,
    CallOutcome::Internal,
];

/// Instruments, each created on first use: a lookup in the recorder takes longer than counting.
#[derive(Default)]
pub(crate) struct Instruments {
    requests: OnceLock<Vec<OnceLock<Counter>>>,
    calls: [[OnceLock<Histogram>; CALL_OUTCOMES.len()]; 3],
}

impl std::fmt::Debug for Instruments {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Instruments").finish_non_exhaustive()
    }
}

impl Instruments {
    /// Counts one message. An unknown method is `other`, so that labels are bounded.
    pub(crate) fn message(&self, era: Era, method: Option<Method>, outcome: Outcome) {
        let methods = Method::ALL.len() + 1;
        let method_index = method
            .and_then(|method| Method::ALL.iter().position(|known| *known == method))
            .unwrap_or(methods - 1);
        let index = (usize::from(era == Era::Modern) * methods + method_index) * OUTCOMES.len()
            + outcome as usize;
        let all = self.requests.get_or_init(|| {
            (0..2 * methods * OUTCOMES.len())
                .map(|_| OnceLock::new())
                .collect()
        });
        let Some(slot) = all.get(index) else { return };
        slot.get_or_init(|| {
            metrics::counter!(
                "mcp_requests_total",
                "era" => if era == Era::Modern { "modern" } else { "legacy" },
                "method" => method.map_or("other", Method::name),
                "outcome" => outcome.name()
            )
        })
        .increment(1);
    }

    /// Counts one tool call.
    pub(crate) fn call(&self, kind: SourceKind, outcome: CallOutcome, took: Duration) {
        let slot = &self.calls[kind_slot(kind)][outcome as usize];
        slot.get_or_init(
            || metrics::histogram!("mcp_call_duration_seconds", "kind" => kind.as_str(), "outcome" => outcome.as_str()),
        )
        .record(took.as_secs_f64());
    }
}

const fn kind_slot(kind: SourceKind) -> usize {
    match kind {
        SourceKind::Openapi => 0,
        SourceKind::Http => 1,
        SourceKind::Mcp => 2,
    }
}

/// Sets the number of open notification streams: GET of sessions, and `subscriptions/listen`.
pub(crate) fn open_streams(streams: usize) {
    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
    metrics::gauge!("mcp_streams_open", "kind" => "news").set(streams as f64);
}

/// Counts an event id that is not of the client's session. The cluster's node counts other
/// resumptions.
pub(crate) fn forged_event_id() {
    metrics::counter!("mcp_resume_total", "outcome" => "forged").increment(1);
}

/// Counts dropped entries of the call log: the writer is behind, or the database refused them.
pub(crate) fn call_log_dropped(count: u64) {
    metrics::counter!("mcp_call_log_dropped_total").increment(count);
}

/// Counts calls whose content was not kept: too much waits, or the database refused it.
pub(crate) fn content_dropped(count: u64) {
    metrics::counter!("mcp_call_content_dropped_total").increment(count);
}

/// Sets the number of rows of counts that wait to be written.
pub(crate) fn counts_wait(rows: usize) {
    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
    metrics::gauge!("mcp_counts_waiting").set(rows as f64);
}

/// Counts a write of counts that failed and will be tried again.
pub(crate) fn counts_not_written() {
    metrics::counter!("mcp_counts_retried_total").increment(1);
}

/// Records the time of reading a catalogue from the database, successful or not.
pub(crate) fn catalogue_loaded(took: Duration) {
    metrics::histogram!("registry_reload_seconds").record(took.as_secs_f64());
}

/// Records the time from a change to the notification of every stream of this node.
pub(crate) fn news_told(took: Duration) {
    metrics::histogram!("notice_fanout_seconds").record(took.as_secs_f64());
}

/// Counts requests with a token whose validity cannot be decided now.
pub(crate) fn token_unjudged() {
    metrics::counter!("mcp_tokens_unjudged_total").increment(1);
}

/// Counts the streams that a registry change reached.
pub(crate) fn news_sent(count: usize) {
    metrics::counter!("mcp_list_changed_total").increment(count as u64);
}

/// Counts dropped messages to other nodes: too many were waiting (`full`).
pub(crate) fn bell_dropped(reason: &'static str) {
    metrics::counter!("mcp_bells_dropped_total", "reason" => reason).increment(1);
}

/// Counts notifications that newer ones replaced, because of the client's rate (MCP-PP-3).
pub(crate) fn notices_dropped(count: u64) {
    metrics::counter!("mcp_notices_dropped_total").increment(count);
}

/// Counts a loss of the translation between two revisions, by its rule.
pub(crate) fn lost_in_translation(loss: Loss) {
    metrics::counter!("mcp_translation_losses_total", "rule" => loss.rule()).increment(1);
}
