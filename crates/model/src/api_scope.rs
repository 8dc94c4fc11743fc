//! Scopes of tokens of the management API (API-5). Scopes of MCP are [`crate::scope`].

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// One permission of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ApiScope {
    /// Read the workspace, limits, overview, webhooks and alert rules.
    #[serde(rename = "workspace:read")]
    WorkspaceRead,
    /// Change the name, limits, the default server, webhooks and alert rules.
    #[serde(rename = "workspace:write")]
    WorkspaceWrite,
    /// Create, change and delete endpoints of webhooks by a file of configuration.
    #[serde(rename = "webhooks:write")]
    WebhooksWrite,
    /// Read sources, tools, prompts, resources and servers.
    #[serde(rename = "registry:read")]
    RegistryRead,
    /// Change sources, tools, prompts, resources and servers.
    #[serde(rename = "registry:write")]
    RegistryWrite,
    /// Set and remove credentials, sign-ins and addresses of sources.
    #[serde(rename = "credentials:write")]
    CredentialsWrite,
    /// Read members, invitations, keys, accounts of programs, AI clients and sessions.
    #[serde(rename = "access:read")]
    AccessRead,
    /// Take access away: revoke keys, end apps, block clients, end sessions.
    #[serde(rename = "access:write")]
    AccessWrite,
    /// Read the call log, insights and connection diagnostics.
    #[serde(rename = "calls:read")]
    CallsRead,
    /// Call tools.
    #[serde(rename = "tools:call")]
    ToolsCall,
    /// Read the audit log.
    #[serde(rename = "audit:read")]
    AuditRead,
}

impl ApiScope {
    /// Every scope, in the order of pages and documents.
    pub const ALL: [Self; 11] = [
        Self::WorkspaceRead,
        Self::WorkspaceWrite,
        Self::WebhooksWrite,
        Self::RegistryRead,
        Self::RegistryWrite,
        Self::CredentialsWrite,
        Self::AccessRead,
        Self::AccessWrite,
        Self::CallsRead,
        Self::ToolsCall,
        Self::AuditRead,
    ];

    /// The word in the database, the API and the pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::WorkspaceRead => "workspace:read",
            Self::WorkspaceWrite => "workspace:write",
            Self::WebhooksWrite => "webhooks:write",
            Self::RegistryRead => "registry:read",
            Self::RegistryWrite => "registry:write",
            Self::CredentialsWrite => "credentials:write",
            Self::AccessRead => "access:read",
            Self::AccessWrite => "access:write",
            Self::CallsRead => "calls:read",
            Self::ToolsCall => "tools:call",
            Self::AuditRead => "audit:read",
        }
    }

    /// The permission as one sentence.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::WorkspaceRead => {
                "Read the workspace, limits, overview, webhooks and alert rules."
            }
            Self::WorkspaceWrite => {
                "Change the name, limits, the default server, webhooks and alert rules."
            }
            Self::WebhooksWrite => {
                "Create, change and delete endpoints of webhooks by a file of configuration."
            }
            Self::RegistryRead => "Read sources, tools, prompts, resources and servers.",
            Self::RegistryWrite => "Change sources, tools, prompts, resources and servers.",
            Self::CredentialsWrite => {
                "Set and remove credentials, sign-ins and addresses of sources."
            }
            Self::AccessRead => {
                "Read members, invitations, keys, accounts of programs, AI clients and sessions."
            }
            Self::AccessWrite => {
                "Take access away: revoke keys, disconnect apps, block clients, end sessions."
            }
            Self::CallsRead => "Read the call log, insights and connection diagnostics.",
            Self::ToolsCall => "Call tools.",
            Self::AuditRead => "Read the audit log.",
        }
    }

    /// Returns true if a token with this scope has the permission `wanted`. Writing includes
    /// reading the same nouns.
    pub const fn includes(self, wanted: Self) -> bool {
        matches!(
            (self, wanted),
            (Self::WorkspaceWrite, Self::WorkspaceRead)
                | (Self::RegistryWrite, Self::RegistryRead)
                | (Self::AccessWrite, Self::AccessRead)
        ) || self as u8 == wanted as u8
    }
}

impl fmt::Display for ApiScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The word is no scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a scope of the management API")]
pub struct InvalidApiScope;

impl FromStr for ApiScope {
    type Err = InvalidApiScope;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|scope| scope.as_str() == text)
            .ok_or(InvalidApiScope)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule: API-5.
    #[test]
    fn writing_includes_reading_of_the_same_nouns() {
        for scope in ApiScope::ALL {
            assert_eq!(scope.as_str().parse(), Ok(scope));
            for wanted in ApiScope::ALL {
                let (noun, verb) = scope.as_str().split_once(':').unwrap();
                let (other, read) = wanted.as_str().split_once(':').unwrap();
                let is_same = scope == wanted;
                let is_read = noun == other && verb == "write" && read == "read";
                assert_eq!(
                    scope.includes(wanted),
                    is_same || is_read,
                    "{scope} {wanted}"
                );
            }
        }
        assert_eq!("mcp:tools".parse::<ApiScope>(), Err(InvalidApiScope));
    }
}
