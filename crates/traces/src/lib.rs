//! Traces: which call did what, on which node, and for how long (`streams.md` §20).
//!
//! Every room makes spans by this crate and knows nothing of where they go: the binary says so once, by [`start`]. Before that, or
//! without it, nothing is made: a call pays one look at an atomic. Of a call that is not sampled nothing is made either, but who
//! comes after it is told that it is not.
//!
//! A span holds names, numbers and ids that operators know: never arguments, results, tokens, or ids of sessions (X1).

mod context;
mod span;

use std::sync::OnceLock;

use portolan_model::{Clock, Timestamp};

pub use self::{
    context::Context,
    span::{Finished, Kind, Span, Value},
};

/// Takes spans that are over. It must not wait.
pub trait Sink: Send + Sync + 'static {
    /// One more.
    fn take(&self, span: Finished);
}

/// What makes spans in this process.
struct Tracer {
    sink: Box<dyn Sink>,
    ratio: f64,
}

static TRACER: OnceLock<Tracer> = OnceLock::new();

/// Traces were started twice in this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Twice;

/// From now on spans are made, and go to `sink`. Of calls whose client says nothing about it, this share is traced, from 0 to 1.
///
/// # Errors
/// [`Twice`].
pub fn start(sink: Box<dyn Sink>, ratio: f64) -> Result<(), Twice> {
    TRACER.set(Tracer { sink, ratio }).map_err(|_| Twice)
}

/// Whether spans are made at all. One look at an atomic.
#[inline]
pub fn is_on() -> bool {
    TRACER.get().is_some()
}

/// The first span of a call on this node. `client` is what its client said of a trace: then its word on sampling counts, else the share
/// of [`start`]. `None`: nothing is to be told to anybody.
pub fn call(name: &'static str, client: Option<Context>) -> Option<Span> {
    let tracer = TRACER.get()?;
    match client {
        Some(client) => Some(Span::under(&client, true, name, Kind::Server)),
        None => {
            let context = Context::root();
            context
                .is_among(tracer.ratio)
                .then(|| Span::root(context, name, Kind::Server))
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
