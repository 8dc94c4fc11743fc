//! Facts that a server declares about itself: in its handshake, or in `server/discover`.

use std::str::FromStr;

use portolan_protocol::{
    jsonrpc::{Kind, Raw},
    revision::{Era, Revision},
};

use crate::{error::UpstreamError, written::cleaned};

/// Facts that a server declares about itself.
#[derive(Debug, Clone)]
pub struct ServerFacts {
    /// The revision that is spoken with it.
    pub revision: Revision,
    /// Its capabilities, an object.
    pub capabilities: Raw,
    /// Its name card, an object.
    pub info: Raw,
    /// For models.
    pub instructions: Option<String>,
}

impl ServerFacts {
    /// From the result of `initialize`.
    pub(crate) fn of_handshake(result: &Raw) -> Result<Self, UpstreamError> {
        let version = result.get("protocolVersion").and_then(|raw| raw.string());
        let version = version
            .ok_or_else(|| UpstreamError::violation("its handshake names no protocol version"))?;
        Ok(Self {
            revision: chosen(&version)?,
            capabilities: object(result.get("capabilities")),
            info: object(result.get("serverInfo")),
            instructions: words(result),
        })
    }

    /// From the result of `server/discover`. MCP-X-8: an earlier draft had the name card in the
    /// body.
    pub(crate) fn of_discovery(result: &Raw) -> Self {
        let signed = result
            .get("_meta")
            .and_then(|meta| meta.get(portolan_protocol::meta::SERVER_INFO));
        Self {
            revision: Revision::V2026_07_28,
            capabilities: object(result.get("capabilities")),
            info: object(signed.or_else(|| result.get("serverInfo"))),
            instructions: words(result),
        }
    }

    /// True if a capability of this name is declared.
    pub fn has(&self, capability: &str) -> bool {
        let declared = self.capabilities.get(capability);
        declared.is_some_and(|raw| raw.kind() == Kind::Object)
    }

    /// True if the capability is declared with this flag, such as `resources` with `subscribe`.
    pub fn has_flag(&self, capability: &str, flag: &str) -> bool {
        let declared = self.capabilities.get(capability);
        declared.and_then(|raw| raw.get(flag)?.boolean()) == Some(true)
    }

    /// Display name, else the name.
    pub fn name(&self) -> Option<String> {
        let text = |member| self.info.get(member).and_then(|raw: Raw| raw.string());
        text("title")
            .or_else(|| text("name"))
            .filter(|name| !name.is_empty())
    }

    /// The version that it gives itself.
    pub fn version(&self) -> Option<String> {
        self.info.get("version").and_then(|raw| raw.string())
    }
}

/// Reads an object that the server declares about itself. It is shown and stored, so invisible
/// characters are removed (REVIEW-S-6).
fn object(raw: Option<Raw>) -> Raw {
    raw.filter(|raw| raw.kind() == Kind::Object)
        .map_or(Raw::empty_object(), |raw| cleaned(&raw).unwrap_or(raw))
}

fn words(result: &Raw) -> Option<String> {
    let text = result.get("instructions")?.string()?;
    Some(portolan_model::text::shown(&text).into_owned())
}

/// Parses the revision that a server chose. MCP-X-5: a revision that is unknown here, or has no
/// handshake, is a fault of the server.
fn chosen(version: &str) -> Result<Revision, UpstreamError> {
    Revision::from_str(version)
        .ok()
        .filter(|revision| revision.era() == Era::Legacy)
        .ok_or_else(|| {
            let shown: String = version.chars().take(40).collect();
            UpstreamError::Version(shown)
        })
}
