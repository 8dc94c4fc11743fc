//! Hints of a document about the credential that its API needs. The tenant sets the credential.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{document::Document, effort, plan::Location, refs};

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
    /// OAuth 2 authorization code: a person signs in.
    OauthAuthorizationCode,
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
    /// Authorization endpoint (OAuth authorization code).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authorization_url: Option<String>,
    /// Issuer (OpenID Connect), taken from the address of its metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    /// Scopes that the document knows, at most [`MOST_SCOPES`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// The document's own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// Most scopes of one hint: a person cannot choose from a longer list.
pub const MOST_SCOPES: usize = 100;
/// Hints of one document.
const MOST_HINTS: usize = 50;
/// Longest scope that is shown.
const LONGEST_SCOPE: usize = 200;
/// Where an OpenID provider's metadata is, behind its issuer (Discovery §4).
const OPENID_METADATA: &str = "/.well-known/openid-configuration";

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
        if hints.len() >= MOST_HINTS {
            break;
        }
        effort::spend(64);
        let Ok(scheme) = refs::resolve(&document.root, scheme) else {
            continue;
        };
        for hint in of_scheme(scheme) {
            if !hints.contains(&hint) {
                hints.push(hint);
            }
        }
    }
    hints
}

/// Credentials that a scheme accepts. An OAuth scheme may have several flows; flows in which a
/// person signs in come first.
fn of_scheme(scheme: &Value) -> Vec<SecurityHint> {
    let Some(first) = hint(scheme) else {
        return Vec::new();
    };
    let mut hints: Vec<SecurityHint> = [
        ("authorizationCode", SecurityKind::OauthAuthorizationCode),
        ("clientCredentials", SecurityKind::OauthClientCredentials),
    ]
    .into_iter()
    .filter_map(|(name, kind)| {
        let flow = scheme.get("flows")?.get(name)?;
        (first.kind == SecurityKind::Bearer).then(|| of_flow(&first, kind, flow))
    })
    .collect();
    if hints.is_empty() {
        hints.push(first);
    }
    hints
}

fn of_flow(scheme: &SecurityHint, kind: SecurityKind, flow: &Value) -> SecurityHint {
    let address = |key: &str| {
        let address = flow.get(key).and_then(Value::as_str)?;
        effort::spend_text(address);
        Some(address.to_owned())
    };
    let scopes = flow.get("scopes").and_then(Value::as_object);
    effort::spend(scopes.map_or(0, serde_json::Map::len));
    let is_code = kind == SecurityKind::OauthAuthorizationCode;
    SecurityHint {
        kind,
        token_url: address("tokenUrl"),
        authorization_url: address("authorizationUrl").filter(|_| is_code),
        scopes: scopes
            .into_iter()
            .flat_map(|scopes| scopes.keys())
            .filter(|scope| !scope.is_empty() && scope.len() <= LONGEST_SCOPE)
            .take(MOST_SCOPES)
            .cloned()
            .collect(),
        ..scheme.clone()
    }
}

fn hint(scheme: &Value) -> Option<SecurityHint> {
    let text = |key: &str| {
        let text = scheme.get(key).and_then(Value::as_str)?;
        effort::spend_text(text);
        Some(text.to_owned())
    };
    let mut hint = SecurityHint {
        kind: SecurityKind::Bearer,
        name: None,
        location: None,
        token_url: None,
        authorization_url: None,
        issuer: None,
        scopes: Vec::new(),
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
            // Many documents describe a bearer token as a key in `Authorization`; the person writes
            // the whole value.
            hint.kind = SecurityKind::ApiKey;
            hint.name = Some(name);
            hint.location = Some(location);
        }
        "http" => match text("scheme")?.to_ascii_lowercase().as_str() {
            "basic" => hint.kind = SecurityKind::Basic,
            "bearer" => {}
            _ => return None,
        },
        // Its flows say more.
        "oauth2" => {}
        "openidconnect" => {
            let issuer = text("openIdConnectUrl");
            hint.issuer =
                issuer.and_then(|url| Some(url.strip_suffix(OPENID_METADATA)?.to_owned()));
            if hint.issuer.is_some() {
                hint.kind = SecurityKind::OauthAuthorizationCode;
            }
        }
        _ => return None,
    }
    Some(hint)
}

/// Whether a parameter is the API key of one of the document's schemes: the credential supplies it,
/// not the model.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_scheme_of_oauth_is_a_hint_for_each_way_to_a_token_that_it_has() {
        let both = json!({"type": "oauth2", "description": "Theirs", "flows": {
            "clientCredentials": {"tokenUrl": "https://as.example/t", "scopes": {}},
            "authorizationCode": {
                "authorizationUrl": "https://as.example/a", "tokenUrl": "https://as.example/t", "scopes": {"read": "Reads", "": "Nothing"},
            },
        }});
        let found = of_scheme(&both);
        let kinds: Vec<SecurityKind> = found.iter().map(|hint| hint.kind).collect();
        assert_eq!(
            kinds,
            [
                SecurityKind::OauthAuthorizationCode,
                SecurityKind::OauthClientCredentials
            ]
        );
        assert_eq!(
            found[0].authorization_url.as_deref(),
            Some("https://as.example/a")
        );
        assert_eq!(found[0].scopes, ["read"]);
        assert_eq!(found[1].authorization_url, None);
        for hint in &found {
            assert_eq!(hint.token_url.as_deref(), Some("https://as.example/t"));
            assert_eq!(hint.description.as_deref(), Some("Theirs"));
        }
        let implicit = json!({"type": "oauth2", "flows": {"implicit": {"authorizationUrl": "https://as.example/a"}}});
        assert_eq!(of_scheme(&implicit)[0].kind, SecurityKind::Bearer);
        let openid = json!({"type": "openIdConnect", "openIdConnectUrl": "https://as.example/x/.well-known/openid-configuration"});
        let openid = of_scheme(&openid);
        assert_eq!(openid[0].kind, SecurityKind::OauthAuthorizationCode);
        assert_eq!(openid[0].issuer.as_deref(), Some("https://as.example/x"));
        assert!(of_scheme(&json!({"type": "mutualTLS"})).is_empty());
    }

    #[test]
    fn a_hint_of_another_release_reads() {
        let old = json!({"kind": "oauth_client_credentials", "token_url": "https://as.example/t"});
        let hint: SecurityHint = serde_json::from_value(old.clone()).unwrap();
        assert_eq!(serde_json::to_value(&hint).unwrap(), old);
    }

    #[test]
    fn scopes_of_a_hint_have_an_end() {
        let scopes: serde_json::Map<String, Value> =
            (0..500).map(|n| (format!("s{n}"), json!("x"))).collect();
        let flow = json!({"tokenUrl": "https://as.example/t", "scopes": scopes});
        let scheme = json!({"type": "oauth2", "flows": {"authorizationCode": flow}});
        assert_eq!(of_scheme(&scheme)[0].scopes.len(), MOST_SCOPES);
    }
}
