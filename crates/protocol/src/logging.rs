//! Log messages to the client (`docs/revisions.md`, section 13).

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::json::Object;
use crate::jsonrpc::{self, Raw};
use crate::method::Method;

/// How grave a message is, least first (MCP-LG-2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(
    missing_docs,
    reason = "the names are those of RFC 5424 §6.2.1 and say all there is"
)]
pub enum Level {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

/// The text is no log level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown log level")]
pub struct UnknownLevel;

impl Level {
    /// Every level, least first.
    pub const ALL: [Self; 8] = [
        Self::Debug,
        Self::Info,
        Self::Notice,
        Self::Warning,
        Self::Error,
        Self::Critical,
        Self::Alert,
        Self::Emergency,
    ];
    /// The level of a session before its first `logging/setLevel` (MCP-LG-3).
    pub const SESSION_DEFAULT: Self = Self::Warning;

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }
}

impl FromStr for Level {
    type Err = UnknownLevel;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|level| level.as_str() == text)
            .ok_or(UnknownLevel)
    }
}

/// Parameters of `logging/setLevel`; an unknown level is a misfit, `-32602` (MCP-LG-3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct SetLevelParams {
    /// From this level on.
    pub level: Level,
}

/// `notifications/message`. Nothing secret, personal or internal goes in here (MCP-LG-6).
pub fn message(level: Level, logger: Option<&str>, data: &Raw) -> Vec<u8> {
    let mut params = Vec::with_capacity(128);
    let mut object = Object::begin(&mut params);
    object.value("level", level.as_str());
    if let Some(logger) = logger {
        object.value("logger", logger);
    }
    object.raw("data", data.as_bytes());
    object.end();
    jsonrpc::notification(Method::LogMessage.name(), Some(&params))
}
