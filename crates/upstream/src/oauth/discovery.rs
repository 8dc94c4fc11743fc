//! From a server that answered 401 to the authorization server that can help (MCP-AU-2…MCP-AU-5).

use http::StatusCode;
use portolan_net::egress::Egress;
use url::Url;

use super::{
    Challenge, OauthError,
    fetch::{checked, get},
    metadata::{AuthorizationServer, ProtectedResource},
};

/// Result of discovery.
#[derive(Debug, Clone)]
pub struct Discovered {
    /// `resource` of every request for a token (MCP-AU-8); none for a server from before resource
    /// metadata (2025-03-26).
    pub resource: Option<String>,
    /// Scopes that the resource knows.
    pub scopes: Option<Vec<String>>,
    /// Issuer of its tokens.
    pub server: AuthorizationServer,
}

/// Finds the authorization server of an MCP server.
///
/// # Errors
/// [`OauthError`].
pub async fn discover(
    egress: &Egress,
    endpoint: &Url,
    challenge: &Challenge,
) -> Result<Discovered, OauthError> {
    let Some(document) = protected_resource(egress, endpoint, challenge).await? else {
        return Ok(Discovered {
            resource: None,
            scopes: None,
            server: beside(egress, endpoint).await?,
        });
    };
    if !covers(&document.resource, endpoint) {
        return Err(OauthError::OtherResource);
    }
    let issuer = document
        .authorization_servers
        .first()
        .ok_or(OauthError::NotFound)?;
    let server = of_issuer(egress, issuer).await?;
    // MCP-AU-5: a server of this age must declare that it supports PKCE.
    if !knows_s256(&server).unwrap_or(false) {
        return Err(OauthError::NoPkce);
    }
    Ok(Discovered {
        resource: Some(document.resource),
        scopes: document.scopes_supported,
        server,
    })
}

/// The authorization server of an issuer that a person named, for what names none itself: an API
/// (MCP-AU-4).
///
/// # Errors
/// [`OauthError`]; [`OauthError::NoPkce`] for one that speaks of PKCE and not of S256 (MCP-AU-5, as
/// for servers of any age).
pub async fn discover_issuer(
    egress: &Egress,
    issuer: &str,
) -> Result<AuthorizationServer, OauthError> {
    let server = of_issuer(egress, issuer).await?;
    if server.authorization_endpoint.is_none() {
        return Err(OauthError::Unusable("metadata"));
    }
    if knows_s256(&server) == Some(false) {
        return Err(OauthError::NoPkce);
    }
    Ok(server)
}

fn knows_s256(server: &AuthorizationServer) -> Option<bool> {
    let methods = server.code_challenge_methods_supported.as_ref()?;
    Some(methods.iter().any(|method| method == "S256"))
}

/// MCP-AU-2: where the challenge says; else beside the endpoint's path, then at the root.
async fn protected_resource(
    egress: &Egress,
    endpoint: &Url,
    challenge: &Challenge,
) -> Result<Option<ProtectedResource>, OauthError> {
    if let Some(named) = &challenge.resource_metadata {
        let url = checked(egress, named.as_str())?;
        let answer = get(egress, url).await?;
        if answer.status != StatusCode::OK {
            return Err(OauthError::Status {
                what: "the resource metadata",
                status: answer.status,
            });
        }
        let read = serde_json::from_slice(&answer.body);
        return read
            .map(Some)
            .map_err(|_| OauthError::Unusable("resource metadata"));
    }
    let path = endpoint.path().trim_end_matches('/');
    let mut places = vec![format!("/.well-known/oauth-protected-resource{path}")];
    if !path.is_empty() {
        places.push("/.well-known/oauth-protected-resource".to_owned());
    }
    for place in places {
        let answer = get(egress, at(endpoint, &place)).await?;
        if answer.status == StatusCode::OK
            && let Ok(document) = serde_json::from_slice(&answer.body)
        {
            return Ok(Some(document));
        }
    }
    Ok(None)
}

/// The address with another path and nothing behind it.
pub(super) fn at(url: &Url, path: &str) -> Url {
    let mut url = url.clone();
    url.set_path(path);
    url.set_query(None);
    url.set_fragment(None);
    url
}

/// MCP-AU-2: same origin, and a prefix of the path by whole segments.
fn covers(resource: &str, endpoint: &Url) -> bool {
    let Ok(resource) = Url::parse(resource) else {
        return false;
    };
    let with_slash = |url: &Url| format!("{}/", url.path().trim_end_matches('/'));
    resource.fragment().is_none()
        && resource.origin() == endpoint.origin()
        && with_slash(endpoint).starts_with(&with_slash(&resource))
}

/// MCP-AU-4: the metadata of a named issuer, in the order of RFC 8414 and OpenID discovery.
async fn of_issuer(egress: &Egress, issuer: &str) -> Result<AuthorizationServer, OauthError> {
    let url = checked(egress, issuer)?;
    let path = url.path().trim_end_matches('/');
    let mut places = vec![
        format!("/.well-known/oauth-authorization-server{path}"),
        format!("/.well-known/openid-configuration{path}"),
    ];
    if !path.is_empty() {
        places.push(format!("{path}/.well-known/openid-configuration"));
    }
    for place in places {
        let answer = get(egress, at(&url, &place)).await?;
        if answer.status == StatusCode::OK {
            let server = read(egress, &answer.body)?;
            if server.issuer != issuer {
                return Err(OauthError::OtherIssuer);
            }
            return Ok(server);
        }
        if answer.status.is_server_error() {
            return Err(OauthError::Status {
                what: "its metadata",
                status: answer.status,
            });
        }
    }
    Err(OauthError::NotFound)
}

/// MCP-AU-3: a server of 2025-03-26 is its own authorization server; without metadata its endpoints
/// are where that revision says.
async fn beside(egress: &Egress, endpoint: &Url) -> Result<AuthorizationServer, OauthError> {
    let origin = endpoint.origin().ascii_serialization();
    let place = at(endpoint, "/.well-known/oauth-authorization-server");
    let answer = get(egress, place).await?;
    if answer.status == StatusCode::OK {
        let server = read(egress, &answer.body)?;
        let same = Url::parse(&server.issuer).is_ok_and(|url| url.origin() == endpoint.origin());
        if !same {
            return Err(OauthError::OtherIssuer);
        }
        // MCP-AU-5: absent is allowed there; present without S256 is not.
        if knows_s256(&server) == Some(false) {
            return Err(OauthError::NoPkce);
        }
        return Ok(server);
    }
    if answer.status.is_server_error() {
        return Err(OauthError::NotFound);
    }
    let here = |path: &str| format!("{origin}{path}");
    Ok(AuthorizationServer {
        authorization_endpoint: Some(here("/authorize")),
        registration_endpoint: Some(here("/register")),
        ..AuthorizationServer::bare(origin.as_str(), here("/token"))
    })
}

pub(super) fn read(egress: &Egress, body: &[u8]) -> Result<AuthorizationServer, OauthError> {
    let mut server: AuthorizationServer =
        serde_json::from_slice(body).map_err(|_| OauthError::Unusable("metadata"))?;
    // A server that names its issuer must use that name (MCP-AU-9).
    server.is_nameless = false;
    checked(egress, &server.token_endpoint)?;
    let others = [
        &server.authorization_endpoint,
        &server.registration_endpoint,
        &server.revocation_endpoint,
        &server.jwks_uri,
        &server.userinfo_endpoint,
    ];
    for address in others.into_iter().flatten() {
        checked(egress, address)?;
    }
    Ok(server)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn au_2_a_resource_covers_its_own_origin_and_paths_below_it() {
        let endpoint = Url::parse("https://a.example/team/mcp").unwrap();
        for good in [
            "https://a.example",
            "https://a.example/",
            "https://a.example/team",
            "https://a.example/team/mcp/",
            "https://a.example:443/team/mcp",
        ] {
            assert!(covers(good, &endpoint), "{good}");
        }
        for bad in [
            "https://b.example/team/mcp",
            "http://a.example/team/mcp",
            "https://a.example/tea",
            "https://a.example/team/mcp/more",
            "https://a.example:8443/team/mcp",
            "not an address",
        ] {
            assert!(!covers(bad, &endpoint), "{bad}");
        }
    }
}
