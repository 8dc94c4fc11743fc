//! The registry of a tenant: sources give tools, and servers choose among tools.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($(#[$vdoc])* $variant,)* }
        impl $name {
            /// Every variant, in the order of the declaration.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];
            /// The word in the database, the API and the pages.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }
        impl FromStr for $name {
            type Err = UnknownWord;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text { $($word => Ok(Self::$variant),)* _ => Err(UnknownWord) }
            }
        }
    };
}

/// The word is none of the known ones: a row that a newer release wrote, or a bug.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("unknown word")]
pub struct UnknownWord;

words! {
    /// Where a source's tools come from.
    SourceKind {
        /// An OpenAPI document.
        Openapi = "openapi",
        /// Written by hand in the console.
        Http = "http",
        /// An external MCP server.
        Mcp = "mcp",
    }
}

words! {
    /// Whether a server answers.
    ServerStatus {
        /// Never published.
        Draft = "draft",
        /// Answers AI clients.
        Published = "published",
        /// Was published; answers like an unknown server until published again.
        Paused = "paused",
    }
}

words! {
    /// Whether a tool's operation is still in the document it came from.
    ToolState {
        /// There.
        Active = "active",
        /// Gone from the document at a re-import; kept so that nothing a tenant wrote is lost.
        Removed = "removed",
    }
}

words! {
    /// One resource, or many by a template.
    ResourceShape {
        /// At one URI.
        Resource = "resource",
        /// At every URI that fits a template.
        Template = "template",
    }
}

words! {
    /// Where what a resource holds comes from.
    ResourceBody {
        /// A text that was written here.
        Text = "text",
        /// A file that was uploaded.
        File = "file",
        /// An HTTP source, asked at each read.
        Http = "http",
        /// The upstream MCP server that it was found at.
        Upstream = "upstream",
    }
}

words! {
    /// How a tool call ended, as counted and shown.
    CallOutcome {
        /// The API answered with success.
        Ok = "ok",
        /// The API answered with an error, or its answer could not be used.
        ToolError = "tool_error",
        /// The arguments did not fit the tool's schema; nothing was sent.
        InvalidArguments = "invalid_arguments",
        /// The API could not be reached in time.
        UpstreamError = "upstream_error",
        /// Our fault.
        Internal = "internal",
    }
}

/// Bounds on calls to a source's API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SourceSettings {
    /// Milliseconds for the whole exchange, 100–120 000.
    pub timeout_ms: u32,
    /// Bytes of answer body that are read, 1 KiB–8 MiB.
    pub max_response_bytes: u32,
    /// Which redirects are followed.
    pub follow_redirects: FollowRedirects,
    /// Calls of its tools may go on as tasks, where the client takes them. Rows of before say
    /// nothing of it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub tasks: bool,
}

words! {
    /// Which redirects of an API are followed.
    FollowRedirects {
        /// None: a redirect is an error that names its target.
        None = "none",
        /// To the same scheme, host and port.
        SameOrigin = "same_origin",
    }
}

impl Default for SourceSettings {
    fn default() -> Self {
        Self {
            timeout_ms: 30_000,
            max_response_bytes: 2 * 1024 * 1024,
            follow_redirects: FollowRedirects::SameOrigin,
            tasks: false,
        }
    }
}

impl SourceSettings {
    /// Refuses values out of range, with the name of the field and a sentence for a person.
    pub fn check(&self) -> Result<(), (&'static str, &'static str)> {
        if !(100..=120_000).contains(&self.timeout_ms) {
            return Err(("timeout_ms", "choose between 100 and 120000 milliseconds"));
        }
        if !(1024..=8 * 1024 * 1024).contains(&self.max_response_bytes) {
            return Err(("max_response_bytes", "choose between 1024 bytes and 8 MiB"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_settings_have_bounds() {
        assert_eq!(SourceSettings::default().check(), Ok(()));
        assert_eq!(
            SourceSettings {
                timeout_ms: 50,
                ..Default::default()
            }
            .check()
            .unwrap_err()
            .0,
            "timeout_ms"
        );
    }
}
