//! The name card of a client or a server, with its icons (MCP-L-10, MCP-IC-1).

use serde::{Deserialize, Serialize};

use crate::revision::Revision;

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
