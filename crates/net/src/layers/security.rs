//! Headers that restrict an answer in browsers (AUTH-S6, AUTH-S7, AUTH-S9, AUTH-N7, AUTH-N8).

use axum::body::Body;
use axum::response::Response;
use http::Request;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};

use super::rule::{Hook, Rule};
use crate::unrendered::UNRENDERED_CSP;

/// AUTH-S6: what pages of ours may load, nothing inline. With `form-action`, so not for pages whose
/// form ends at a client.
pub const CONSOLE_CSP: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; \
     connect-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'";

/// The same without `form-action`: browsers apply it to the whole chain of redirects, custom
/// schemes included (AUTH-N7).
const REDIRECTING_CSP: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; \
     connect-src 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Sets the minimal headers of every answer, from a handler or not (REVIEW-S-12). Headers that the
/// answer already has are kept.
pub(crate) fn set_least(headers: &mut HeaderMap) {
    headers
        .entry(header::X_CONTENT_TYPE_OPTIONS)
        .or_insert(HeaderValue::from_static("nosniff"));
    headers
        .entry(header::CONTENT_SECURITY_POLICY)
        .or_insert(HeaderValue::from_static(UNRENDERED_CSP));
}

const PERMISSIONS: &str = "accelerometer=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), \
     magnetometer=(), microphone=(), midi=(), payment=(), usb=()";

/// Kind of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageKind {
    /// The console and its API: opener isolation, forms go to us.
    Console,
    /// Sign-up, sign-in and other pages around accounts, outside an authorization: forms go to us.
    Account,
    /// Pages of the authorization flow, whose form ends in a redirect to a client (AUTH-N7) that
    /// may be a popup (AUTH-N8).
    Authorization,
    /// Answers for machines: the MCP endpoint, tokens, metadata. Never rendered (AUTH-S9).
    Machine,
}

/// Sets the headers of one kind of answer where the handler has not set its own.
#[derive(Debug, Clone)]
pub struct SecurityHeaders {
    set: Vec<(HeaderName, HeaderValue)>,
}

impl SecurityHeaders {
    /// `https`: whether the public URL is, which decides about HSTS.
    pub fn new(page: PageKind, https: bool) -> Self {
        let fixed = HeaderValue::from_static;
        let mut set = vec![(header::X_CONTENT_TYPE_OPTIONS, fixed("nosniff"))];
        if https {
            set.push((
                header::STRICT_TRANSPORT_SECURITY,
                fixed("max-age=31536000; includeSubDomains"),
            ));
        }
        if page == PageKind::Machine {
            set.push((header::CONTENT_SECURITY_POLICY, fixed(UNRENDERED_CSP)));
            return Self { set };
        }
        let (csp, opener, referrer) = match page {
            PageKind::Console => (CONSOLE_CSP, "same-origin", "same-origin"),
            PageKind::Account => (CONSOLE_CSP, "same-origin", "no-referrer"),
            PageKind::Authorization | PageKind::Machine => {
                (REDIRECTING_CSP, "unsafe-none", "no-referrer")
            }
        };
        set.push((header::CONTENT_SECURITY_POLICY, fixed(csp)));
        set.push((
            HeaderName::from_static("cross-origin-opener-policy"),
            fixed(opener),
        ));
        set.push((
            HeaderName::from_static("cross-origin-resource-policy"),
            fixed("same-origin"),
        ));
        set.push((header::REFERRER_POLICY, fixed(referrer)));
        set.push((
            HeaderName::from_static("permissions-policy"),
            fixed(PERMISSIONS),
        ));
        set.push((header::X_FRAME_OPTIONS, fixed("DENY")));
        Self { set }
    }

    /// Adds `Cache-Control: no-store`, for everything personal (AUTH-S7).
    #[must_use]
    pub fn no_store(mut self) -> Self {
        self.set
            .push((header::CACHE_CONTROL, HeaderValue::from_static("no-store")));
        self
    }

    /// Replaces the content security policy, for a page that needs a hash or a nonce.
    #[must_use]
    pub fn with_csp(mut self, csp: &HeaderValue) -> Self {
        for (name, value) in &mut self.set {
            if *name == header::CONTENT_SECURITY_POLICY {
                value.clone_from(csp);
            }
        }
        self
    }

    /// Sets what is not set yet: for a handler whose answers are of several kinds.
    pub fn apply(&self, headers: &mut HeaderMap) {
        for (name, value) in &self.set {
            headers.entry(name).or_insert_with(|| value.clone());
        }
    }

    /// As a layer.
    pub fn layer(self) -> Rule<Self> {
        Rule::new(self)
    }
}

impl Hook for SecurityHeaders {
    type Kept = ();

    fn before(&self, _: &mut Request<Body>) -> Result<(), Box<Response>> {
        Ok(())
    }

    fn after(&self, (): (), response: &mut Response) {
        self.apply(response.headers_mut());
    }
}
