//! Traces: the steps of a call, with node and duration (STREAM-20).
//!
//! Every crate makes spans with this one and does not know where they are sent: the binary sets
//! that once, with [`start`]. Before that, or without it, no span is made, and a call costs one
//! read of an atomic. A call that is not sampled makes no span either, but the next service
//! receives the decision.
//!
//! A span holds names, numbers and ids that operators know: never arguments, results, tokens, or
//! ids of sessions (AUTH-X1).

mod context;
mod pace;
mod span;

use std::sync::OnceLock;

use portolan_model::{Clock, Timestamp};

pub use self::{
    context::Context,
    span::{Finished, Span, SpanKind, Value},
};
use self::{pace::Pace, span::ParentPlace};

/// Takes spans that are over. It must not wait.
pub trait Sink: Send + Sync + 'static {
    /// One more.
    fn take(&self, span: Finished);
}

/// State of tracing in this process.
struct Tracer {
    sink: Box<dyn Sink>,
    ratio: f64,
    /// Limit of the traces that clients request.
    asked: Pace,
}

static TRACER: OnceLock<Tracer> = OnceLock::new();

/// Traces were started twice in this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Twice;

/// Starts tracing: spans are sent to `sink`. `ratio`, from 0 to 1, is the traced share of the calls
/// whose client does not decide. A client that requests a trace gets one, up to `asked_per_second`
/// for all clients of this process. Beyond that, `ratio` applies.
///
/// # Errors
/// [`Twice`].
pub fn start(sink: Box<dyn Sink>, ratio: f64, asked_per_second: u32) -> Result<(), Twice> {
    let tracer = Tracer {
        sink,
        ratio,
        asked: Pace::new(asked_per_second),
    };
    TRACER.set(tracer).map_err(|_| Twice)
}

/// True if spans are made. Costs one read of an atomic.
#[inline]
pub fn is_on() -> bool {
    TRACER.get().is_some()
}

/// Starts the first span of a call on this node. `client` is the trace context that the client
/// sent. Its sampling flag counts, within the bound of [`start`]; without a context the configured
/// share decides. `None`: no trace context is sent on.
pub fn call(name: &'static str, client: Option<Context>) -> Option<Span> {
    let tracer = TRACER.get()?;
    match client {
        Some(client) => {
            // By a number of our own: that of the trace is the client's choice, and could be one
            // that every share has.
            let stays = !client.is_sampled()
                || tracer.asked.admits()
                || Context::root().is_among(tracer.ratio);
            let client = if stays { client } else { client.unsampled() };
            Some(Span::under(
                &client,
                ParentPlace::Remote,
                name,
                SpanKind::Server,
            ))
        }
        None => {
            let context = Context::root();
            context
                .is_among(tracer.ratio)
                .then(|| Span::root(context, name, SpanKind::Server))
        }
    }
}

/// The time for [`Span::since`], if spans are made.
pub fn now() -> Option<Timestamp> {
    is_on().then(|| Clock::system().now())
}

fn finished(span: Finished) {
    if let Some(tracer) = TRACER.get() {
        tracer.sink.take(span);
    }
}
