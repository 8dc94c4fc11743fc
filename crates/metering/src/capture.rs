//! The kept part of arguments and answers of calls (`docs/design/capture.md`).

use portolan_model::registry::CallOutcome;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    detectors::boundary,
    masking::{End, without_secrets},
};

/// Bytes that are kept of the arguments, and of the answer (CAPTURE-3).
pub const KEPT: usize = 64 * 1024;

/// Bytes that are taken from a call for that: masking sees more than is kept.
pub const TAKEN: usize = KEPT + 32 * 1024;

/// Days for which content may be kept.
pub const DAYS: std::ops::RangeInclusive<i16> = 1..=30;

/// The calls of a server whose arguments and answers are kept (CAPTURE-1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CapturePolicy {
    /// Of none.
    Metadata,
    /// Of those that do not end well.
    Errors,
    /// Of so many in a hundred.
    Sample(u8),
    /// Of each.
    All,
}

impl CapturePolicy {
    /// The policy with this word; `None` for another word, and for a sample without a share of 1
    /// to 99.
    pub fn of_word(word: &str, percent: Option<i16>) -> Option<Self> {
        match (word, percent) {
            ("metadata", None) => Some(Self::Metadata),
            ("errors", None) => Some(Self::Errors),
            ("all", None) => Some(Self::All),
            ("sample", Some(share @ 1..=99)) => u8::try_from(share).ok().map(Self::Sample),
            _ => None,
        }
    }

    /// The word in the database and the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Metadata => "metadata",
            Self::Errors => "errors",
            Self::Sample(_) => "sample",
            Self::All => "all",
        }
    }

    /// The share of a sample.
    pub const fn percent(self) -> Option<u8> {
        match self {
            Self::Sample(share) => Some(share),
            _ => None,
        }
    }

    /// Whether the content of a call is kept. A sample depends on the id alone, and on other bits
    /// of it than the sample of the log (METER-7).
    pub fn wants(self, id: Uuid, outcome: CallOutcome) -> bool {
        match self {
            Self::Metadata => false,
            Self::Errors => outcome != CallOutcome::Ok,
            Self::Sample(share) => {
                let (_, random) = id.as_u64_pair();
                ((random >> 32) & 0x3fff_ffff) % 100 < u64::from(share)
            }
            Self::All => true,
        }
    }
}

/// The arguments or the answer of a call, masked and bounded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Captured {
    /// The kept text.
    pub text: String,
    /// Bytes on the wire.
    pub bytes: u64,
    /// The text is a part.
    pub is_cut: bool,
    /// Places that were masked.
    pub masked: u32,
}

impl Captured {
    /// Masks and cuts. `taken`: the first [`TAKEN`] bytes at most, of `whole` bytes.
    pub fn of(taken: &[u8], whole: usize) -> Self {
        let end = if taken.len() < whole {
            End::Cut
        } else {
            End::Whole
        };
        let text = String::from_utf8_lossy(taken);
        let (mut text, masked) = without_secrets(&text, end);
        let is_cut = end == End::Cut || text.len() > KEPT;
        text.truncate(boundary(&text, KEPT));
        Self {
            text,
            bytes: u64::try_from(whole).unwrap_or(u64::MAX),
            is_cut,
            masked,
        }
    }
}

/// The content of a call, as it is sealed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallContent {
    /// The member `arguments` of the parameters, if the call had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Captured>,
    /// The answer in JSON-RPC, as the client got it; absent if the call got none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Captured>,
}
