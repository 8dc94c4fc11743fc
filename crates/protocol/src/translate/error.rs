//! Errors across the two legs (MCP-X-66…MCP-X-6A, MCP-X-80…MCP-X-83; MCP-X-36, MCP-X-37 for
//! `-32042`).

use serde_json::json;

use crate::ask::Need;
use crate::capability::ClientCapabilities;
use crate::error::RpcError;
use crate::jsonrpc::{Kind, Raw};
use crate::method::Method;
use crate::revision::{ArgumentFaults, Era, Revision};
use crate::shaped::{Loss, Losses};
use crate::visible::Visible;

/// A URL that the person has to visit before the call can go on (MCP-EL-15).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlStep {
    /// Why, in the upstream's words.
    pub message: String,
    /// Where.
    pub url: String,
    /// The upstream's name for it.
    pub elicitation_id: Option<String>,
}

impl UrlStep {
    /// Parameters of the question for it, as 2025-11-25 has them.
    pub fn params(&self) -> Raw {
        let mut params = json!({ "mode": "url", "message": self.message, "url": self.url });
        if let Some(id) = &self.elicitation_id {
            params["elicitationId"] = json!(id);
        }
        Raw::of(&params).unwrap_or(Raw::empty_object())
    }
}

/// Meaning of an upstream's error for the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failed {
    /// This error, and what it lost.
    Error(RpcError, Losses),
    /// The same, and the upstream does not serve what it should (MCP-X-83).
    Degraded(RpcError),
    /// A result with `isError: true` that contains the message (MCP-X-68).
    ToolFailure(String),
    /// The client lacks these: `-32021` with HTTP 400 (MCP-X-80).
    Missing(Raw),
    /// One of the answers with fixed words (MCP-X-33, MCP-X-80).
    Visible(Visible),
    /// To be visited, then to be called again (MCP-X-36).
    Steps(Vec<UrlStep>),
    /// Our own leg went wrong: the version has to be negotiated again (MCP-X-81).
    Renegotiate,
    /// Our own leg went wrong: headers did not fit what the upstream expects (MCP-X-82).
    Headers,
}

/// Translates an upstream's error. `capabilities` are the client's; `method` is the one that the
/// client called.
pub fn error(
    error: &RpcError,
    method: Method,
    from: Revision,
    to: Revision,
    capabilities: &ClientCapabilities,
) -> Failed {
    let modern_upstream = from.era() == Era::Modern;
    let modern_client = to.era() == Era::Modern;
    let data = |name: &str| error.data.as_ref().and_then(|data| data.get(name));
    match error.code {
        // Servers of both eras use it in sessions too; the draft's number has other meanings there.
        -32021 | -32003
            if (modern_upstream || error.code == -32021)
                && data("requiredCapabilities").is_some() =>
        {
            let required = data("requiredCapabilities").unwrap_or(Raw::empty_object());
            missing(&required, to)
        }
        -32022 if modern_upstream => Failed::Renegotiate,
        -32020 if modern_upstream => Failed::Headers,
        -32042 if from.facts().elicitation_ids => url_required(error, to, capabilities),
        -32601 if modern_client => Failed::Degraded(RpcError {
            code: -32603,
            message: "Internal error".to_owned(),
            data: moved(error),
        }),
        -32601 => Failed::Degraded(error.clone()),
        code if code == from.facts().resource_not_found
            && method == Method::ResourcesRead
            && (code == -32002 || data("uri").is_some()) =>
        {
            Failed::Error(
                RpcError {
                    code: to.facts().resource_not_found,
                    ..error.clone()
                },
                Losses::NONE,
            )
        }
        -32602
            if method == Method::ToolsCall
                && from.facts().argument_faults == ArgumentFaults::ProtocolError
                && to.facts().argument_faults == ArgumentFaults::ToolResult =>
        {
            Failed::ToolFailure(error.message.clone())
        }
        -32099..=-32000 if modern_client => {
            let mut losses = Losses::NONE;
            losses.add(Loss::ErrorCode);
            Failed::Error(
                RpcError {
                    code: -32603,
                    message: "Internal error".to_owned(),
                    data: moved(error),
                },
                losses,
            )
        }
        // MCP-ER-10, MCP-ER-11: numbers that legacy clients do not know in this sense.
        -32022..=-32020 => Failed::Visible(Visible::Invalid),
        _ => Failed::Error(error.clone(), Losses::NONE),
    }
}

/// MCP-X-6A: what an error was before its number had to change.
fn moved(error: &RpcError) -> Option<Raw> {
    let data = json!({ "upstreamCode": error.code, "upstreamMessage": error.message });
    Raw::of(&data).ok()
}

/// MCP-X-80.
fn missing(required: &Raw, to: Revision) -> Failed {
    if to.era() == Era::Modern && required.kind() == Kind::Object {
        return Failed::Missing(required.clone());
    }
    match Need::first_required(required) {
        Some(Need::Url) if to.facts().elicitation_ids => Failed::Visible(Visible::BrowserStep {
            message: String::new(),
            url: None,
        }),
        Some(need) => Failed::Visible(Visible::Needs(need)),
        None => Failed::Visible(Visible::NeedsFeature(feature(required))),
    }
}

/// The name of what an upstream needs and this platform does not know.
fn feature(required: &Raw) -> String {
    let name = required.members().next().map(|(name, value)| {
        let inner = value.members().next().map(|(inner, _)| inner);
        match inner {
            Some(inner) if name == "extensions" => inner,
            Some(inner) => format!("{name}.{inner}"),
            None => name,
        }
    });
    name.unwrap_or_default().chars().take(128).collect()
}

/// MCP-X-33, MCP-X-36, MCP-X-37.
fn url_required(error: &RpcError, to: Revision, capabilities: &ClientCapabilities) -> Failed {
    let text = |of: &Raw, name: &str| of.get(name).and_then(|text| text.string());
    let listed = error
        .data
        .as_ref()
        .and_then(|data| data.get("elicitations"));
    let steps: Vec<UrlStep> = listed
        .iter()
        .flat_map(|listed| listed.elements().collect::<Vec<_>>())
        .filter_map(|entry| {
            Some(UrlStep {
                message: text(&entry, "message")?,
                url: text(&entry, "url")?,
                elicitation_id: text(&entry, "elicitationId"),
            })
        })
        .collect();
    let Some(first) = steps.first() else {
        return Failed::Visible(Visible::Invalid);
    };
    if !capabilities.elicitation_url || !Need::Url.exists_in(to) {
        return Failed::Visible(Visible::BrowserStep {
            message: first.message.clone(),
            url: Some(first.url.clone()),
        });
    }
    if to.facts().elicitation_ids {
        return Failed::Error(error.clone(), Losses::NONE);
    }
    Failed::Steps(steps)
}
