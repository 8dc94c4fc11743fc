//! The `WWW-Authenticate` challenge (MCP-AR-1, AUTH-E3).

use http::HeaderValue;
use portolan_model::{resource::Site, scope};

use crate::target::Target;

/// The contents of a `WWW-Authenticate` header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Challenge {
    metadata: String,
    error: Option<(&'static str, &'static str)>,
}

impl Challenge {
    /// The challenge without credentials, and therefore without `error` (MCP-AR-4).
    ///
    /// It links to the metadata of the path as the client wrote it (AUTH-E3).
    pub(crate) fn bare(site: &Site, target: &Target<'_>) -> Self {
        Self {
            metadata: format!(
                "{}/.well-known/oauth-protected-resource{}",
                site.issuer(),
                target.described()
            ),
            error: None,
        }
    }

    /// The challenge for a token that is not valid here.
    pub(crate) fn invalid(site: &Site, target: &Target<'_>, description: &'static str) -> Self {
        Self {
            error: Some(("invalid_token", description)),
            ..Self::bare(site, target)
        }
    }

    /// The challenge for a token that lacks the scope. It names all required scopes (MCP-AR-6).
    pub(crate) fn insufficient(site: &Site, target: &Target<'_>) -> Self {
        Self {
            error: Some(("insufficient_scope", "")),
            ..Self::bare(site, target)
        }
    }

    /// The sentence in the body, for human readers.
    pub(crate) fn sentence(&self) -> &'static str {
        match self.error {
            None => "Authorization required",
            Some(("insufficient_scope", _)) => "The token lacks the scope mcp",
            Some((_, description)) => description,
        }
    }

    /// The header value. All parts are our own, or were checked to need no escape.
    pub(crate) fn value(&self) -> HeaderValue {
        let (metadata, scope) = (&self.metadata, scope::MCP);
        let text = match self.error {
            None => format!("Bearer resource_metadata=\"{metadata}\", scope=\"{scope}\""),
            Some((error, "")) => format!(
                "Bearer error=\"{error}\", scope=\"{scope}\", resource_metadata=\"{metadata}\""
            ),
            Some((error, description)) => format!(
                "Bearer error=\"{error}\", error_description=\"{description}\", resource_metadata=\"{metadata}\", scope=\"{scope}\""
            ),
        };
        HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("Bearer"))
    }
}
