//! `initialize`: the handshake of the legacy revisions (MCP-L-1…MCP-L-3).

use serde::{Deserialize, Serialize};

use crate::capability::{ClientCapabilities, ServerCapabilities};
use crate::error::ErrorKind;
use crate::jsonrpc::{Kind, Misfit, Params};
use crate::result::{Identity, Object};
use crate::revision::{Era, Revision};

/// A name card: of a client or of this server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Implementation {
    /// Programmatic name.
    pub name: String,
    /// Version, free text.
    pub version: String,
    /// Display name (R3+).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Description (R4+).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Home page (R4+).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub website_url: Option<String>,
    /// Pictures (R4+).
    #[serde(
        default,
        deserialize_with = "null_as_empty",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub icons: Vec<Icon>,
}

/// A picture of a tool, server, … (MCP-IC-1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Icon {
    /// `https:` or `data:` URI.
    pub src: String,
    /// Media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// `48x48`, `any`, …
    #[serde(
        default,
        deserialize_with = "null_as_empty",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub sizes: Vec<String>,
    /// `light` or `dark`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theme: Option<String>,
}

/// Careless clients write `null` for a list that they do not have.
fn null_as_empty<'de, D: serde::Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    Option::<Vec<T>>::deserialize(deserializer).map(Option::unwrap_or_default)
}

impl Implementation {
    /// A card with only a name and a version.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            version: version.into(),
            title: None,
            description: None,
            website_url: None,
            icons: Vec::new(),
        }
    }

    /// Only what `revision` knows (MCP-FA-5).
    #[must_use]
    pub fn shaped(&self, revision: Revision) -> Self {
        let facts = revision.facts();
        let mut card = self.clone();
        if !facts.titles {
            card.title = None;
        }
        if !facts.icons {
            card.description = None;
            card.website_url = None;
            card.icons = Vec::new();
        }
        card
    }
}

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

/// The version that answers a request for `requested`: the same if it is a served legacy one, else the latest legacy
/// one; never a modern one (MCP-L-2).
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
        let requested = params.text("protocolVersion");
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
