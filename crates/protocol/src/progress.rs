//! Progress notifications (MCP-PP-1…MCP-PP-3, MCP-FA-6), in both directions (MCP-X-7J).

use crate::json::Object;
use crate::jsonrpc::{self, Kind, ProgressToken, Raw};
use crate::method::Method;
use crate::revision::Revision;

/// How far a request has come.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// Grows with every notification; may be fractional.
    pub progress: f64,
    /// Value of `progress` at the end, if known.
    pub total: Option<f64>,
    /// Words for people (R2+).
    pub message: Option<String>,
}

/// Lets only growing values through (MCP-PP-1): a value that does not grow, or is no number, is
/// dropped.
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
    object.key("progress");
    write_number(progress.progress, object.out());
    if let Some(total) = progress.total.filter(|total| total.is_finite()) {
        object.key("total");
        write_number(total, object.out());
    }
    if revision.facts().progress_message {
        object.optional("message", progress.message.as_ref());
    }
    object.end();
    jsonrpc::notification(Method::Progress.name(), Some(&params))
}

/// Writes a number in its shortest form: `1`, not `1.0`. A value that JSON cannot express is
/// written as `null`.
fn write_number(number: f64, out: &mut Vec<u8>) {
    /// All integers up to here are numbers of their own: 2⁵³.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let text = if number.fract() == 0.0 && number.abs() <= EXACT {
        format!("{number:.0}")
    } else {
        serde_json::Number::from_f64(number).map_or("null".to_owned(), |number| number.to_string())
    };
    out.extend_from_slice(text.as_bytes());
}

/// Returns the token under which the server expects progress of its question; `params` are those of
/// the question (MCP-X-7J).
pub fn wanted(params: &Raw) -> Option<Raw> {
    let token = params.get("_meta")?.get("progressToken")?;
    matches!(token.kind(), Kind::String | Kind::Number).then_some(token)
}

/// A question under a token of our own.
pub fn want(params: &Raw, token: &str) -> Raw {
    let mut out = Vec::with_capacity(params.as_bytes().len() + token.len() + 32);
    let mut object = Object::begin(&mut out);
    let mut own = None;
    for (name, value) in params.members() {
        if name == "_meta" {
            own = Some(value);
        } else {
            object.raw(&name, value.as_bytes());
        }
    }
    object.key("_meta");
    let mut meta = Object::begin(object.out());
    for (name, value) in own.iter().flat_map(|own| own.members().collect::<Vec<_>>()) {
        if name != "progressToken" {
            meta.raw(&name, value.as_bytes());
        }
    }
    meta.value("progressToken", token);
    meta.end();
    object.end();
    Raw::trusted(out.into())
}

/// Translates a client's progress notification for the server that receives it, under that server's
/// token. Returns the progress and the parameters; `None` if the parameters contain no progress.
pub fn passed_on(params: &Raw, token: &Raw) -> Option<(f64, Raw)> {
    let progress: f64 = serde_json::from_slice(params.get("progress")?.as_bytes()).ok()?;
    let mut out = Vec::with_capacity(params.as_bytes().len() + token.as_bytes().len());
    let mut object = Object::begin(&mut out);
    object.raw("progressToken", token.as_bytes());
    for (name, value) in params.members() {
        if name != "progressToken" && name != "_meta" {
            object.raw(&name, value.as_bytes());
        }
    }
    object.end();
    Some((progress, Raw::trusted(out.into())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn q13_a_whole_number_is_written_without_a_fraction() {
        let written = |number: f64| {
            let mut out = Vec::new();
            write_number(number, &mut out);
            String::from_utf8(out).unwrap()
        };
        for (number, text) in [
            (1.0, "1"),
            (0.0, "0"),
            (-3.0, "-3"),
            (0.5, "0.5"),
            (9_007_199_254_740_992.0, "9007199254740992"),
            (1e300, "1e+300"),
            (f64::NAN, "null"),
        ] {
            assert_eq!(written(number), text);
        }
    }
}
