//! Progress notifications (spec §14, PP-1…PP-3, FA-6).

use crate::jsonrpc::{self, ProgressToken};
use crate::method::Method;
use crate::result::Object;
use crate::revision::Revision;

/// How far a request has come.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// Grows with every notification; may be fractional.
    pub progress: f64,
    /// What `progress` will be at the end, if known.
    pub total: Option<f64>,
    /// Words for people (R2+).
    pub message: Option<String>,
}

/// Lets only growing values through (PP-1): a value that does not grow, or is no number, is dropped.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gate {
    last: Option<f64>,
}

impl Gate {
    /// True if `progress` may be sent now.
    pub fn passes(&mut self, progress: f64) -> bool {
        let grows = progress.is_finite() && self.last.is_none_or(|last| progress > last);
        if grows {
            self.last = Some(progress);
        }
        grows
    }
}

/// `notifications/progress` as `revision` knows it.
pub fn notification(revision: Revision, token: &ProgressToken, progress: &Progress) -> Vec<u8> {
    let mut params = Vec::with_capacity(96);
    let mut object = Object::begin(&mut params);
    object.key("progressToken");
    token.write(object.out());
    object.value("progress", &progress.progress);
    object.optional(
        "total",
        progress.total.as_ref().filter(|total| total.is_finite()),
    );
    if revision.facts().progress_message {
        object.optional("message", progress.message.as_ref());
    }
    object.end();
    jsonrpc::notification(Method::Progress.name(), Some(&params))
}
