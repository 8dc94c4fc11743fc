//! Errors of an outgoing request, in words that a tenant may read.

use std::time::Duration;

use super::redirect::RedirectFault;
use crate::address::UrlFault;

type Source = Box<dyn std::error::Error + Send + Sync>;

/// Why an egress client could not be made.
#[derive(Debug, thiserror::Error)]
pub enum EgressSetupError {
    /// The TLS stack refused its own defaults.
    #[error("the TLS client could not be set up")]
    Tls(#[source] rustls::Error),
}

/// Which part of an exchange was under way when the time was over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// Looking up the name, connecting, TLS handshake.
    Connect = 0,
    /// Sending the request and waiting for the head of the answer.
    Answer = 1,
    /// Reading the body.
    Body = 2,
}

impl Phase {
    pub(super) const fn from_u8(number: u8) -> Self {
        match number {
            0 => Self::Connect,
            2 => Self::Body,
            _ => Self::Answer,
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Connect => "no connection",
            Self::Answer => "no answer",
            Self::Body => "no complete answer",
        }
    }
}

/// Why an outgoing request has no answer. `Display` names the host that the caller gave, never the
/// address behind it, no header and no byte of a body; the source is for the log.
#[derive(Debug, thiserror::Error)]
pub enum EgressError {
    /// The host is, or resolves to, an address that is not public. Nothing was sent.
    #[error(
        "{host} is not a public internet address, so it is not called. The operator of this \
         installation can allow it with the setting egress_allow (PORTOLAN_EGRESS_ALLOW)"
    )]
    BlockedAddress {
        /// Host as in the URL.
        host: String,
    },
    /// The URL is of a kind that is never called. Nothing was sent.
    #[error("this URL is not called: {fault}")]
    BlockedUrl {
        /// Fault of the URL.
        fault: UrlFault,
    },
    /// The name could not be resolved.
    #[error("the name {host} could not be resolved")]
    Dns {
        /// Host as in the URL.
        host: String,
        /// The resolver's error.
        #[source]
        source: Source,
    },
    /// No connection.
    #[error("could not connect to {host}")]
    Connect {
        /// Host as in the URL.
        host: String,
        /// The system's error.
        #[source]
        source: Source,
    },
    /// The TLS handshake failed, for instance because of the certificate.
    #[error("no secure connection to {host}: its TLS handshake or certificate was not acceptable")]
    Tls {
        /// Host as in the URL.
        host: String,
        /// The handshake's error.
        #[source]
        source: Source,
    },
    /// The deadline passed.
    #[error("{} within {} ms", phase.words(), after.as_millis())]
    Timeout {
        /// Phase of the exchange that ran.
        phase: Phase,
        /// The deadline that passed.
        after: Duration,
    },
    /// The answer is longer than the caller takes.
    #[error("the answer is larger than {limit} bytes")]
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// The answer was a redirect that is not followed.
    #[error("the answer was a redirect that is not followed: {fault}")]
    Redirect {
        /// Why not.
        fault: RedirectFault,
    },
    /// The server is an attached one, and no program offers it at the moment. Nothing was sent.
    #[error("{name} is not attached: no `portolan attach` is connected for it at the moment")]
    Away {
        /// Name of the attached server.
        name: String,
    },
    /// The peer did not send valid HTTP, or closed the connection in the middle.
    #[error("the connection broke or the answer was not valid HTTP")]
    Protocol {
        /// hyper's error.
        #[source]
        source: Source,
    },
}

impl EgressError {
    /// True if the request was refused by rule, before a byte was sent: trying again will not help.
    pub const fn is_refusal(&self) -> bool {
        matches!(self, Self::BlockedAddress { .. } | Self::BlockedUrl { .. })
    }

    /// A bounded word for metrics and logs.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::BlockedAddress { .. } => "blocked_address",
            Self::BlockedUrl { .. } => "blocked_url",
            Self::Dns { .. } => "dns",
            Self::Connect { .. } => "connect",
            Self::Tls { .. } => "tls",
            Self::Timeout { .. } => "timeout",
            Self::TooLarge { .. } => "too_large",
            Self::Redirect { .. } => "redirect",
            Self::Away { .. } => "away",
            Self::Protocol { .. } => "protocol",
        }
    }
}
