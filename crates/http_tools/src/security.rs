//! What a document says about the credential its API wants. Hints only: the tenant sets the credential.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{document::Document, plan::Location, refs};

/// Which kind of credential an API seems to want.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SecurityKind {
    /// A key in a header, the query or a cookie.
    ApiKey,
    /// `Authorization: Bearer …`.
    Bearer,
    /// `Authorization: Basic …`.
    Basic,
    /// OAuth 2 client credentials.
    OauthClientCredentials,
}

/// A credential that a document asks for, prefilled in the console.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecurityHint {
    /// Which kind.
    pub kind: SecurityKind,
    /// Name of the header, query parameter or cookie (API keys).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Where the key travels: `header`, `query` or `cookie`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<Location>,
    /// Token endpoint (OAuth).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_url: Option<String>,
    /// The document's own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// The hints of a document, in its order, without doubles.
pub fn hints(document: &Document) -> Vec<SecurityHint> {
    let Some(schemes) = document
        .root
        .pointer("/components/securitySchemes")
        .and_then(Value::as_object)
    else {
        return Vec::new();
    };
    let mut hints: Vec<SecurityHint> = Vec::new();
    for scheme in schemes.values() {
        let Ok(scheme) = refs::resolve(&document.root, scheme) else {
            continue;
        };
        if let Some(hint) = hint(scheme)
            && !hints.contains(&hint)
        {
            hints.push(hint);
        }
    }
    hints
}

fn hint(scheme: &Value) -> Option<SecurityHint> {
    let text = |key: &str| scheme.get(key).and_then(Value::as_str).map(str::to_owned);
    let mut hint = SecurityHint {
        kind: SecurityKind::Bearer,
        name: None,
        location: None,
        token_url: None,
        description: text("description").map(|text| text.chars().take(500).collect()),
    };
    match scheme
        .get("type")
        .and_then(Value::as_str)?
        .to_ascii_lowercase()
        .as_str()
    {
        "apikey" => {
            let name = text("name")?;
            let location = text("in")
                .as_deref()
                .and_then(Location::parse)
                .unwrap_or(Location::Header);
            if location == Location::Path {
                return None;
            }
            // Many documents describe a bearer token as a key in `Authorization`; the person writes the whole value.
            hint.kind = SecurityKind::ApiKey;
            hint.name = Some(name);
            hint.location = Some(location);
        }
        "http" => match text("scheme")?.to_ascii_lowercase().as_str() {
            "basic" => hint.kind = SecurityKind::Basic,
            "bearer" => {}
            _ => return None,
        },
        "oauth2" => {
            if let Some(flow) = scheme.pointer("/flows/clientCredentials") {
                hint.kind = SecurityKind::OauthClientCredentials;
                hint.token_url = flow
                    .get("tokenUrl")
                    .and_then(Value::as_str)
                    .map(str::to_owned);
            }
        }
        "openidconnect" => {}
        _ => return None,
    }
    Some(hint)
}

/// Whether a parameter is the API key of one of the document's schemes: the credential supplies it, not the model.
pub fn is_credential(hints: &[SecurityHint], location: Location, name: &str) -> bool {
    let same = |hint: &SecurityHint| {
        hint.location == Some(location)
            && hint.name.as_deref().is_some_and(|other| match location {
                Location::Header => other.eq_ignore_ascii_case(name),
                _ => other == name,
            })
    };
    (location == Location::Header && name.eq_ignore_ascii_case("authorization"))
        || hints.iter().any(same)
}
