//! The end of the trace of a call (STREAM-20).

use portolan_model::registry::CallOutcome;
use portolan_traces::Span;

/// Ends the trace of a call.
pub(crate) fn ran(span: &Span, outcome: CallOutcome) {
    span.set("portolan.outcome", outcome.as_str());
    if outcome != CallOutcome::Ok {
        span.failed(outcome.as_str());
    }
}
