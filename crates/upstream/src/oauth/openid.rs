//! OpenID providers, at which people sign in to us: their metadata, their keys, and their claims
//! about a person (OpenID Connect Discovery 1.0).

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use portolan_net::egress::{Egress, EgressRequest};
use serde::Deserialize;
use serde_json::Value;

use super::{
    OauthError,
    discovery::{at, read},
    fetch::{LARGEST, TIMEOUT, checked, get},
    metadata::AuthorizationServer,
};

/// The provider of an issuer. Its metadata names the issuer byte for byte, or it is another's
/// (Discovery §4.3).
///
/// # Errors
/// [`OauthError`].
pub async fn openid_provider(
    egress: &Egress,
    issuer: &str,
) -> Result<AuthorizationServer, OauthError> {
    let server = read(egress, &openid_configuration(egress, issuer).await?)?;
    if server.issuer != issuer {
        return Err(OauthError::OtherIssuer);
    }
    if server.authorization_endpoint.is_none() || server.jwks_uri.is_none() {
        return Err(OauthError::Unusable("metadata"));
    }
    Ok(server)
}

/// The document of an issuer at its well-known address.
async fn openid_configuration(egress: &Egress, issuer: &str) -> Result<Bytes, OauthError> {
    let url = checked(egress, issuer)?;
    let path = url.path().trim_end_matches('/');
    let place = at(&url, &format!("{path}/.well-known/openid-configuration"));
    let answer = get(egress, place).await?;
    match answer.status {
        StatusCode::OK => Ok(answer.body),
        StatusCode::NOT_FOUND => Err(OauthError::NotFound),
        status => Err(OauthError::Status {
            what: "the request for its metadata",
            status,
        }),
    }
}

/// The metadata of an issuer, as far as it is about its tokens. Issuers of CI systems have no other
/// endpoint.
#[derive(Debug, Clone, Deserialize)]
pub struct TokenIssuer {
    /// Compared byte for byte.
    issuer: String,
    /// Address of its public keys.
    pub jwks_uri: String,
    /// Algorithms with which it signs; `None` is RS256.
    pub id_token_signing_alg_values_supported: Option<Vec<String>>,
}

/// The metadata of an issuer of tokens. It names the issuer byte for byte, or it is another's.
///
/// # Errors
/// [`OauthError`].
pub async fn token_issuer(egress: &Egress, issuer: &str) -> Result<TokenIssuer, OauthError> {
    let body = openid_configuration(egress, issuer).await?;
    let found: TokenIssuer =
        serde_json::from_slice(&body).map_err(|_| OauthError::Unusable("metadata"))?;
    if found.issuer != issuer {
        return Err(OauthError::OtherIssuer);
    }
    Ok(found)
}

/// The keys at an address.
///
/// # Errors
/// [`OauthError`].
pub async fn key_set(egress: &Egress, address: &str) -> Result<Value, OauthError> {
    let answer = get(egress, checked(egress, address)?).await?;
    if answer.status != StatusCode::OK {
        return Err(OauthError::Status {
            what: "the request for its keys",
            status: answer.status,
        });
    }
    serde_json::from_slice(&answer.body).map_err(|_| OauthError::Unusable("key set"))
}

/// A document about the person to whom an access token belongs.
///
/// # Errors
/// [`OauthError`].
pub async fn bearer(egress: &Egress, address: &str, access: &str) -> Result<Value, OauthError> {
    let mut headers = HeaderMap::with_capacity(2);
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    let mut authorization = HeaderValue::try_from(format!("Bearer {access}"))
        .map_err(|_| OauthError::Unusable("token answer"))?;
    authorization.set_sensitive(true);
    headers.insert(header::AUTHORIZATION, authorization);
    let request = EgressRequest {
        headers,
        timeout: TIMEOUT,
        max_response_bytes: LARGEST,
        ..EgressRequest::new(Method::GET, checked(egress, address)?)
    };
    let answer = egress.send(request).await?;
    if answer.status != StatusCode::OK {
        return Err(OauthError::Status {
            what: "the request for the person",
            status: answer.status,
        });
    }
    serde_json::from_slice(&answer.body).map_err(|_| OauthError::Unusable("word on the person"))
}
