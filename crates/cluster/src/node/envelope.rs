//! What the store keeps about a stream: the key of its request, its place in a trace, and what `mcp` says of it.

use bytes::{BufMut, Bytes, BytesMut};
use portolan_traces::Context;

/// In the length of the key: a place in a trace follows.
const TRACED: u32 = 1 << 31;

/// The parts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Envelope {
    /// Key of the request among the running ones.
    pub(super) rpc: String,
    /// The span of the call, if it is recorded.
    pub(super) trace: Option<Context>,
    /// What `mcp` says of it.
    pub(super) about: Bytes,
}

/// The parts as the store has them.
pub(super) fn seal(rpc: &str, trace: Option<&Context>, about: &Bytes) -> Bytes {
    let mut out = BytesMut::with_capacity(4 + rpc.len() + Context::BYTES + about.len());
    let length = u32::try_from(rpc.len()).unwrap_or(0);
    out.put_u32(length | if trace.is_some() { TRACED } else { 0 });
    out.put_slice(rpc.as_bytes());
    if let Some(trace) = trace {
        out.put_slice(&trace.to_bytes());
    }
    out.put_slice(about);
    out.freeze()
}

/// The inverse; nonsense is a request without a key.
pub(super) fn open(envelope: &Bytes) -> Envelope {
    let parts = || {
        let length = u32::from_be_bytes(envelope.get(..4)?.try_into().ok()?);
        let mut end = 4 + usize::try_from(length & !TRACED).ok()?;
        let rpc = std::str::from_utf8(envelope.get(4..end)?).ok()?.to_owned();
        let mut trace = None;
        if length & TRACED != 0 {
            trace = Context::from_bytes(envelope.get(end..end + Context::BYTES)?.try_into().ok()?);
            end += Context::BYTES;
        }
        Some(Envelope {
            rpc,
            trace,
            about: envelope.slice(end..),
        })
    };
    parts().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_adopter_finds_the_requests_key_its_trace_and_what_is_known_of_it() {
        let trace = Context::read(
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            None,
        );
        assert!(trace.is_some());
        for trace in [None, trace] {
            let whole = Envelope {
                rpc: "s:abc".into(),
                trace,
                about: Bytes::from_static(b"about"),
            };
            let sealed = seal(&whole.rpc, whole.trace.as_ref(), &whole.about);
            assert_eq!(open(&sealed), whole);
            for end in 0..sealed.len() - whole.about.len() {
                assert_eq!(open(&sealed.slice(..end)), Envelope::default(), "{end}");
            }
        }
    }
}
