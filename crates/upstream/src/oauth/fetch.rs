//! Requests to authorization servers: short, small, unredirected, by guarded egress (MCP-AU-16,
//! MCP-AB-17…MCP-AB-21).

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};
use portolan_net::egress::{Egress, EgressRequest, EgressResponse, Redirects};
use url::Url;

use super::OauthError;

/// Of a whole exchange.
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);
/// Of a document or an answer.
pub(super) const LARGEST: usize = 64 * 1024;

/// The addresses that this process talks to and sends browsers to: https, or plain http where
/// egress allows it (development).
///
/// # Errors
/// [`OauthError::UnsafeAddress`], or [`OauthError::Egress`] for a place that nothing is sent to
/// (MCP-AU-15, MCP-AU-16).
pub fn checked(egress: &Egress, text: &str) -> Result<Url, OauthError> {
    let url = Url::parse(text).map_err(|_| OauthError::UnsafeAddress)?;
    let is_plain = url.scheme() == "http";
    let is_web = is_plain || url.scheme() == "https";
    if !is_web
        || url.host_str().is_none()
        || !url.username().is_empty()
        || url.password().is_some()
        || url.fragment().is_some()
    {
        return Err(OauthError::UnsafeAddress);
    }
    match egress.check(&url) {
        Ok(()) => Ok(url),
        Err(_) if is_plain => Err(OauthError::UnsafeAddress),
        Err(error) => Err(error.into()),
    }
}

fn request(method: Method, url: Url) -> EgressRequest {
    let mut headers = HeaderMap::with_capacity(4);
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    EgressRequest {
        headers,
        timeout: TIMEOUT,
        max_response_bytes: LARGEST,
        redirects: Redirects::None,
        ..EgressRequest::new(method, url)
    }
}

/// A document, followed within its origin: some servers move theirs by a slash.
pub(super) async fn get(egress: &Egress, url: Url) -> Result<EgressResponse, OauthError> {
    let mut request = request(Method::GET, url);
    request.redirects = Redirects::SameOrigin;
    Ok(egress.send(request).await?)
}

pub(super) async fn post_json(
    egress: &Egress,
    url: Url,
    body: Vec<u8>,
) -> Result<EgressResponse, OauthError> {
    let mut request = request(Method::POST, url);
    request.headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    request.body = Bytes::from(body);
    Ok(egress.send(request).await?)
}

pub(super) async fn post_form(
    egress: &Egress,
    url: Url,
    form: String,
    authorization: Option<HeaderValue>,
) -> Result<EgressResponse, OauthError> {
    let mut request = request(Method::POST, url);
    request.headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/x-www-form-urlencoded"),
    );
    if let Some(authorization) = authorization {
        request.headers.insert(header::AUTHORIZATION, authorization);
    }
    request.body = Bytes::from(form);
    Ok(egress.send(request).await?)
}
