//! Texts that clients see for failed operations, in fixed words (MCP-V-1…MCP-V-11 of the
//! translation rules).

use serde_json::json;

use crate::ask::{Need, Unaskable};
use crate::error::{ErrorKind, RpcError};
use crate::jsonrpc::{self, Raw, RequestId};
use crate::method::Method;
use crate::result::Identity;
use crate::revision::{Era, Revision};
use crate::tool::CallResult;

/// Party for which a call waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// The client's answer to a question.
    Client,
    /// The upstream's answer to a call.
    Upstream,
}

/// One of the outcomes whose words are stable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Visible {
    /// MCP-V-1 (legacy) or MCP-V-2 (2026-07-28): the client lacks a capability.
    Needs(Need),
    /// MCP-V-1 for what is no capability: a form of content that its revision does not have, an
    /// extension.
    NeedsFeature(String),
    /// MCP-V-3.
    TooManyRounds,
    /// MCP-V-4.
    TimedOut(Awaited),
    /// MCP-V-5.
    Lost,
    /// MCP-V-6. Without a URL where the tenant forbids to show it.
    BrowserStep {
        /// The upstream's words.
        message: String,
        /// Address of the step.
        url: Option<String>,
    },
    /// MCP-V-8: no connection.
    Unreachable,
    /// MCP-V-8: the server is an attached one, and no program offers it (ADR 39).
    Away {
        /// Its name.
        name: String,
    },
    /// MCP-V-8: the connection to an attached server was lost while the request ran.
    Detached {
        /// Its name.
        name: String,
    },
    /// MCP-V-8: an answer against the protocol.
    Invalid,
    /// MCP-V-8: an answer of more bytes than are taken.
    TooLarge {
        /// So many are taken.
        limit: usize,
    },
    /// MCP-V-9.
    Declined,
    /// MCP-EL-8: an answer that does not fit the question.
    Unfit,
    /// MCP-V-10.
    NotLinked {
        /// The platform's page.
        url: String,
    },
    /// MCP-V-10 for a client that is not a person and cannot use a page.
    PeopleOnly,
    /// MCP-V-11.
    MultipleChoice,
}

impl From<Unaskable> for Visible {
    fn from(why: Unaskable) -> Self {
        match why {
            Unaskable::Needs(need) => Self::Needs(need),
            Unaskable::MultipleChoice => Self::MultipleChoice,
            Unaskable::Content(what) => Self::NeedsFeature(format!("{what} in sampling")),
            Unaskable::Malformed(_) => Self::Invalid,
        }
    }
}

impl Visible {
    /// The words of a tool's result.
    pub fn text(&self) -> String {
        match self {
            Self::Needs(need) => needs(need.feature()),
            Self::NeedsFeature(feature) => needs(feature),
            Self::TooManyRounds => "The upstream server asked for input too many times.".to_owned(),
            Self::TimedOut(Awaited::Client) => "Timed out waiting for client input.".to_owned(),
            Self::TimedOut(Awaited::Upstream) => {
                "Timed out waiting for the upstream server.".to_owned()
            }
            Self::Lost => "The pending operation was lost. Call the tool again.".to_owned(),
            Self::BrowserStep { message, url } => {
                let parts = [Some(message.as_str()), url.as_deref()];
                let said: String = parts
                    .into_iter()
                    .flatten()
                    .filter(|part| !part.is_empty())
                    .flat_map(|part| [part, " "])
                    .collect();
                format!("This tool needs a step in the browser: {said}Then call the tool again.")
            }
            Self::Unreachable => "The upstream server could not be reached.".to_owned(),
            Self::Away { name } => format!(
                "{name} is not attached: no `portolan attach` is connected for it at the moment. Nothing was sent."
            ),
            Self::Detached { name } => format!(
                "The connection to {name} was lost while this request ran. The request may or may not have taken effect."
            ),
            Self::Invalid => "The upstream server answered in an invalid way.".to_owned(),
            Self::TooLarge { limit } => {
                const MIB: usize = 1024 * 1024;
                let limit = if limit % MIB == 0 {
                    format!("{} MiB", limit / MIB)
                } else {
                    format!("{limit} bytes")
                };
                format!("The answer of the upstream server is too large: the limit is {limit}.")
            }
            Self::Declined => "The client declined the request of the upstream server.".to_owned(),
            Self::Unfit => {
                "The client's answer does not fit what the upstream server asked for.".to_owned()
            }
            Self::NotLinked { url } => format!("Connect your account first: {url}"),
            Self::PeopleOnly => {
                "This uses the own account of the person who calls it, and no person is behind this call.".to_owned()
            }
            Self::MultipleChoice => {
                "This tool needs a multiple-choice form, which this client cannot show.".to_owned()
            }
        }
    }

    /// Error for a call whose result cannot carry the text.
    pub fn error(&self) -> RpcError {
        let (code, data) = match self {
            Self::Needs(need) => {
                let required = need.required();
                let text = [br#"{"requiredCapabilities":"#, required.as_bytes(), b"}"].concat();
                (-31006, Some(Raw::trusted(text.into())))
            }
            Self::NeedsFeature(_) | Self::Declined | Self::Unfit | Self::MultipleChoice => {
                (-31006, None)
            }
            Self::BrowserStep { url, .. } => (
                -31006,
                url.as_ref()
                    .and_then(|url| Raw::of(&json!({ "url": url })).ok()),
            ),
            Self::TooManyRounds | Self::Invalid | Self::TooLarge { .. } => (-31005, None),
            Self::TimedOut(_) => (-31001, None),
            Self::Lost => (-31004, None),
            Self::Unreachable | Self::Away { .. } | Self::Detached { .. } => (-31000, None),
            Self::PeopleOnly => (-31007, None),
            Self::NotLinked { url } => (-31007, Raw::of(&json!({ "url": url })).ok()),
        };
        let message = match self {
            Self::Needs(need) => format!("Client capability required: {}", need.feature()),
            Self::NeedsFeature(feature) => format!("Client capability required: {feature}"),
            other => other.text(),
        };
        RpcError {
            code,
            message,
            data,
        }
    }

    /// The whole answer to a request of `method`, as `revision` knows it, with its HTTP status: a
    /// result of a tool, else an error; for a missing capability of a modern client always the
    /// error `-32021` with 400 (MCP-V-2).
    pub fn answer(
        &self,
        method: Method,
        id: &RequestId,
        revision: Revision,
        identity: &Identity,
    ) -> (u16, Vec<u8>) {
        if let Self::Needs(need) = self
            && revision.era() == Era::Modern
        {
            let required = need.required();
            let refusal =
                ErrorKind::MissingCapability { required }.refuse(revision, Some(id.clone()));
            return (refusal.status, refusal.body());
        }
        if method == Method::ToolsCall {
            let result = CallResult::failure(self.text());
            let body = jsonrpc::response_with(id, 256, |out| result.write(revision, identity, out));
            return (200, body);
        }
        (200, jsonrpc::error_response(Some(id), &self.error()))
    }
}

fn needs(feature: &str) -> String {
    format!("This tool needs the client feature \"{feature}\", which this client does not offer.")
}
