//! `initialize`: the handshake of the legacy revisions (MCP-L-1…MCP-L-3).

use std::borrow::Cow;

use crate::capability::{ClientCapabilities, ServerCapabilities};
use crate::error::ErrorKind;
use crate::json::Object;
use crate::jsonrpc::{Kind, Misfit, Params};
use crate::result::Identity;
use crate::revision::{Era, Revision};

pub use crate::implementation::{Icon, Implementation};

/// Parameters of `initialize`.
#[derive(Clone, Debug)]
pub struct InitializeParams {
    /// Version that the client requests; any string.
    pub requested: String,
    /// The version that the session will speak (MCP-L-2).
    pub revision: Revision,
    /// Capabilities of the client.
    pub capabilities: ClientCapabilities,
    /// Name and version that the client claims; for logs and the console only.
    pub client_info: Implementation,
}

/// The version that answers a request for `requested`: the same if it is a served legacy one, else
/// the latest legacy one; never a modern one (MCP-L-2).
pub fn negotiate(requested: &str) -> Revision {
    requested
        .parse::<Revision>()
        .ok()
        .filter(|revision| revision.era() == Era::Legacy && revision.is_served())
        .unwrap_or(Revision::LATEST_LEGACY)
}

impl InitializeParams {
    /// Reads the parameters. Structural faults are `-32602` with HTTP 400 and the versions served
    /// (MCP-L-3).
    pub fn read(params: &Params) -> Result<Self, ErrorKind> {
        let requested = params.text("protocolVersion").map(Cow::into_owned);
        let fault = |path: &str, expected: &str| ErrorKind::InvalidInitialize {
            misfit: Misfit::new(path, expected),
            requested: requested.clone(),
        };
        let Some(version) = requested.clone() else {
            return Err(fault("params.protocolVersion", "expected a string"));
        };
        let capabilities = match params.get("capabilities") {
            Some(raw) if raw.kind() == Kind::Object => ClientCapabilities::read(&raw),
            _ => return Err(fault("params.capabilities", "expected an object")),
        };
        let Some(card) = params.get("clientInfo") else {
            return Err(fault("params.clientInfo", "expected an object"));
        };
        let client_info = card.read("params.clientInfo").map_err(|misfit: Misfit| {
            ErrorKind::InvalidInitialize {
                misfit,
                requested: requested.clone(),
            }
        })?;
        Ok(Self {
            revision: negotiate(&version),
            requested: version,
            capabilities,
            client_info,
        })
    }
}

/// The result of `initialize` for a session that speaks `revision`.
pub fn result(
    revision: Revision,
    identity: &Identity,
    capabilities: &ServerCapabilities,
    instructions: Option<&str>,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    let mut object = Object::begin(&mut out);
    object.value("protocolVersion", revision.as_str());
    object.key("capabilities");
    capabilities.write(revision, object.out());
    object.raw("serverInfo", identity.json(revision).as_bytes());
    if let Some(instructions) = instructions {
        object.value("instructions", instructions);
    }
    object.end();
    out
}
