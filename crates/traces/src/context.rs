//! A place in a trace, as it travels between processes (W3C Trace Context).

use std::{fmt, sync::Arc};

use uuid::Uuid;

/// Longest trace state that is passed on (W3C Trace Context §3.3.1.5).
const LONGEST_STATE: usize = 512;

/// A span of a trace, and whether that is recorded.
#[derive(Clone, PartialEq, Eq)]
pub struct Context {
    pub(crate) trace: u128,
    pub(crate) span: u64,
    sampled: bool,
    state: Option<Arc<str>>,
}

/// As in the header.
impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.traceparent())
    }
}

impl Context {
    /// Length of [`Context::to_bytes`].
    pub const BYTES: usize = 25;

    /// Reads `traceparent` and, if it is there and fits, `tracestate`. `None` if the first is not
    /// well formed: then both are ignored.
    pub fn read(traceparent: &str, tracestate: Option<&str>) -> Option<Self> {
        let mut parts = traceparent.split('-');
        let version = hex(parts.next()?, 2)?;
        let trace = hex(parts.next()?, 32)?;
        let span = u64::try_from(hex(parts.next()?, 16)?).ok()?;
        let flags = hex(parts.next()?, 2)?;
        // Later versions may say more at the end; 255 is none.
        let is_known = version == 0 && parts.next().is_none() || (1..255).contains(&version);
        let state = tracestate.filter(|state| {
            !state.is_empty()
                && state.len() <= LONGEST_STATE
                && state.bytes().all(|byte| (0x20..0x7f).contains(&byte))
        });
        (is_known && trace != 0 && span != 0).then(|| Self {
            trace,
            span,
            sampled: flags & 1 == 1,
            state: state.map(Into::into),
        })
    }

    /// Its trace id, as bytes.
    pub const fn trace_id(&self) -> [u8; 16] {
        self.trace.to_be_bytes()
    }

    /// As in the header `traceparent`.
    pub fn traceparent(&self) -> String {
        let flags = u8::from(self.sampled);
        format!("00-{:032x}-{:016x}-{flags:02x}", self.trace, self.span)
    }

    /// As in the header `tracestate`: what the client's had.
    pub fn tracestate(&self) -> Option<&str> {
        self.state.as_deref()
    }

    /// Whether it is recorded.
    pub const fn is_sampled(&self) -> bool {
        self.sampled
    }

    /// The same place in the same trace, which is not recorded from here on.
    #[must_use]
    pub(crate) fn unsampled(self) -> Self {
        Self {
            sampled: false,
            ..self
        }
    }

    /// For what other nodes are to know. The state stays behind.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..16].copy_from_slice(&self.trace.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.span.to_be_bytes());
        bytes[24] = u8::from(self.sampled);
        bytes
    }

    /// The inverse.
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let (trace, rest) = bytes.split_first_chunk()?;
        let (span, flags) = rest.split_first_chunk()?;
        let (trace, span) = (u128::from_be_bytes(*trace), u64::from_be_bytes(*span));
        (trace != 0 && span != 0).then(|| Self {
            trace,
            span,
            sampled: flags == [1],
            state: None,
        })
    }

    /// A new trace.
    pub(crate) fn root() -> Self {
        Self {
            trace: random(),
            span: 0,
            sampled: true,
            state: None,
        }
    }

    /// Another span of the same trace.
    pub(crate) fn next(&self) -> Self {
        // Half of a random number is as random.
        let span = halves(random()).1.max(1);
        Self {
            span,
            ..self.clone()
        }
    }

    /// True if the trace belongs to this share of all: every node computes the same result.
    pub(crate) fn is_among(&self, ratio: f64) -> bool {
        #[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
        let place = (halves(self.trace).1 >> 11) as f64 / (1_u64 << 53) as f64;
        place < ratio
    }
}

/// The upper and the lower half.
const fn halves(number: u128) -> (u64, u64) {
    Uuid::from_u128(number).as_u64_pair()
}

/// UUIDs have bits that never change, in different places once one is turned.
fn random() -> u128 {
    let (one, other) = (Uuid::new_v4().as_u128(), Uuid::new_v4().as_u128());
    (one ^ other.rotate_left(64)).max(1)
}

/// Lower-case digits only, as the specification has it.
fn hex(text: &str, digits: usize) -> Option<u128> {
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    (text.len() == digits && text.bytes().all(is_hex))
        .then(|| u128::from_str_radix(text, 16).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_context_is_read_and_written_as_the_specification_has_it() {
        let context = Context::read(GOOD, Some("vendor=a")).unwrap();
        assert_eq!(context.traceparent(), GOOD);
        assert_eq!(context.tracestate(), Some("vendor=a"));
        assert!(context.is_sampled());
        let other = Context::from_bytes(&context.to_bytes()).unwrap();
        assert_eq!(other.traceparent(), GOOD);
        let unsampled = GOOD.replace("-01", "-00");
        assert!(!Context::read(&unsampled, None).unwrap().is_sampled());
        let later =
            "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-what-the-future-will-be-like";
        assert!(Context::read(later, None).is_some());
    }

    #[test]
    fn what_is_not_well_formed_is_as_if_it_were_not_there() {
        for wrong in [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473é-00f067aa0ba902b7-01",
        ] {
            assert_eq!(Context::read(wrong, None), None, "{wrong}");
        }
        let long = "a=".repeat(300);
        assert_eq!(Context::read(GOOD, Some(&long)).unwrap().tracestate(), None);
        assert_eq!(
            Context::read(GOOD, Some("a=\n")).unwrap().tracestate(),
            None
        );
        assert_eq!(Context::from_bytes(&[0; Context::BYTES]), None);
    }

    #[test]
    fn the_share_of_new_traces_is_kept_and_a_larger_one_holds_a_smaller_one() {
        let all: Vec<_> = (0..4000).map(|_| Context::root()).collect();
        let count = |ratio| all.iter().filter(|context| context.is_among(ratio)).count();
        assert_eq!((count(0.0), count(1.0)), (0, 4000));
        let tenth = count(0.1);
        assert!((250..600).contains(&tenth), "{tenth}");
        assert!(
            all.iter()
                .filter(|context| context.is_among(0.1))
                .all(|context| context.is_among(0.2))
        );
        // No bit of an id stands still.
        let ones = all.iter().fold(0, |ones, context| ones | context.trace);
        let zeros = all.iter().fold(0, |zeros, context| zeros | !context.trace);
        assert_eq!((ones, zeros), (u128::MAX, u128::MAX));
    }
}
