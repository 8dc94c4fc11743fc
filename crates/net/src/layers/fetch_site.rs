//! Cross-site request forgery, first half (AUTH-S5): unsafe requests must come from our own pages.

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use http::header::{self, HeaderName};
use http::{Method, Request, StatusCode};

use super::refusal::refusal;
use super::rule::{Hook, Rule};

pub(super) const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Marks a request that is authenticated by a header of its own and whose cookies were removed. A
/// browser adds no such header for another site, so [`FetchSite`] admits the request.
#[derive(Debug, Clone, Copy)]
pub struct HeaderCredential;

/// Refuses unsafe requests from other sites. On every method but `GET`, `HEAD` and `OPTIONS`,
/// `Sec-Fetch-Site` must be `same-origin`. A browser too old to send it must send our `Origin`. A
/// request with neither is refused. `same-site` is refused like `cross-site`, because tenants
/// may have subdomains. `none` is refused too: a person cannot send a POST from the address bar.
#[derive(Debug, Clone)]
pub struct FetchSite {
    origins: Arc<[String]>,
}

impl FetchSite {
    /// `origins`: our own, as browsers write them (`https://portolan.example`).
    pub fn new(origins: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            origins: origins.into_iter().map(Into::into).collect(),
        }
    }

    /// As a layer.
    pub fn layer(self) -> Rule<Self> {
        Rule::new(self)
    }

    fn admits(&self, request: &Request<Body>) -> bool {
        if matches!(
            *request.method(),
            Method::GET | Method::HEAD | Method::OPTIONS
        ) || request.extensions().get::<HeaderCredential>().is_some()
        {
            return true;
        }
        let mut sites = request.headers().get_all(SEC_FETCH_SITE).iter();
        match (sites.next(), sites.next()) {
            (Some(site), None) => site == "same-origin",
            (Some(_), Some(_)) => false,
            (None, _) => {
                let mut origins = request.headers().get_all(header::ORIGIN).iter();
                match (origins.next(), origins.next()) {
                    (Some(origin), None) => self.origins.iter().any(|own| origin == own.as_str()),
                    _ => false,
                }
            }
        }
    }
}

impl Hook for FetchSite {
    type Kept = ();

    fn before(&self, request: &mut Request<Body>) -> Result<(), Box<Response>> {
        if self.admits(request) {
            return Ok(());
        }
        Err(Box::new(refusal(
            StatusCode::FORBIDDEN,
            "cross_site",
            "This request did not come from a page of this site. Open the page again and repeat it there.",
        )))
    }

    fn after(&self, (): (), _: &mut Response) {}
}
