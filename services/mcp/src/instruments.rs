//! What is counted: messages by era, method and outcome; calls by kind of source and outcome; open streams.

use std::{sync::OnceLock, time::Duration};

use metrics::{Counter, Histogram};
use portolan_model::registry::{CallOutcome, SourceKind};
use portolan_protocol::translate::Loss;
use portolan_protocol::{method::Method, revision::Era};

const OUTCOMES: [&str; 3] = ["ok", "error", "refused"];

/// How a message ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Answered with a result, or taken.
    Ok,
    /// Answered with a JSON-RPC error.
    Error,
    /// Refused before it was dispatched.
    Refused,
}

impl Outcome {
    /// As metrics and traces say it.
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

/// Instruments, each made on first use and kept: a look-up in the recorder costs more than counting.
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
    /// Counts one message. A method that the protocol does not know is `other`: labels are bounded.
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

/// Streams of news that are open now: GET of sessions, and `subscriptions/listen`.
pub(crate) fn open_streams(streams: usize) {
    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
    metrics::gauge!("mcp_streams_open", "kind" => "news").set(streams as f64);
}

/// A client showed an event id that is not of its session. (What else comes of coming back is counted by the cluster's node.)
pub(crate) fn forged_event_id() {
    metrics::counter!("mcp_resume_total", "outcome" => "forged").increment(1);
}

/// An entry of the call log was dropped: the writer is behind, or the database refused it.
pub(crate) fn call_log_dropped(count: u64) {
    metrics::counter!("mcp_call_log_dropped_total").increment(count);
}

/// A catalogue was read from the database, or could not be.
pub(crate) fn catalogue_loaded(took: Duration) {
    metrics::histogram!("registry_reload_seconds").record(took.as_secs_f64());
}

/// Every stream here was told of a change of which this node heard so long ago.
pub(crate) fn news_told(took: Duration) {
    metrics::histogram!("notice_fanout_seconds").record(took.as_secs_f64());
}

/// A request with a token was answered that nobody can judge it now.
pub(crate) fn token_unjudged() {
    metrics::counter!("mcp_tokens_unjudged_total").increment(1);
}

/// News of the registry reached so many streams.
pub(crate) fn news_sent(count: usize) {
    metrics::counter!("mcp_list_changed_total").increment(count as u64);
}

/// A bell or a word of a task was not told: too many waited for the other nodes (`full`).
pub(crate) fn bell_dropped(reason: &'static str) {
    metrics::counter!("mcp_bells_dropped_total", "reason" => reason).increment(1);
}

/// Words of calls made room for newer ones, because their client is told no more often (PP-3).
pub(crate) fn notices_dropped(count: u64) {
    metrics::counter!("mcp_notices_dropped_total").increment(count);
}

/// Something was lost between two revisions, by its name.
pub(crate) fn lost_in_translation(loss: Loss) {
    metrics::counter!("mcp_translation_losses_total", "rule" => loss.rule()).increment(1);
}
