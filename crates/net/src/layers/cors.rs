//! Which answers scripts of other origins may read (AUTH-E10, MCP-T-11). Never with credentials.

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, StatusCode};

use super::rule::{Hook, Rule};

/// Origins whose scripts may read answers.
#[derive(Debug, Clone)]
pub enum Origins {
    /// Every origin: `*`.
    Any,
    /// Those listed, exactly as browsers write them.
    Listed(Arc<[String]>),
}

/// One row of the CORS table.
#[derive(Debug, Clone)]
pub struct Cors {
    origins: Origins,
    methods: HeaderValue,
    /// Lower case; a trailing `*` stands for any ending.
    allowed: &'static [&'static str],
    exposed: HeaderValue,
}

impl Cors {
    /// Metadata, JWKS, token, registration and revocation: every origin, three request headers,
    /// `WWW-Authenticate` readable (AUTH-E10).
    pub fn authorization_server() -> Self {
        Self {
            origins: Origins::Any,
            methods: HeaderValue::from_static("GET, POST"),
            allowed: &["authorization", "content-type", "mcp-protocol-version"],
            exposed: HeaderValue::from_static("WWW-Authenticate"),
        }
    }

    /// The MCP endpoint and its metadata documents (MCP-T-11). The endpoint's own Origin rule
    /// (MCP-T-2) decides before this.
    pub fn mcp(origins: Origins) -> Self {
        Self {
            origins,
            methods: HeaderValue::from_static("GET, POST, DELETE"),
            allowed: &[
                "authorization",
                "content-type",
                "accept",
                "mcp-protocol-version",
                "mcp-session-id",
                "last-event-id",
                "mcp-method",
                "mcp-name",
                "mcp-param-*",
            ],
            exposed: HeaderValue::from_static("Mcp-Session-Id, WWW-Authenticate, Retry-After"),
        }
    }

    /// As a layer.
    pub fn layer(self) -> Rule<Self> {
        Rule::new(self)
    }

    fn allow_origin(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        match &self.origins {
            // Also for a request without `Origin`: metadata are cached in public, and the copy must
            // serve browsers too.
            Origins::Any => Some(HeaderValue::from_static("*")),
            Origins::Listed(list) => {
                let origin = headers.get(header::ORIGIN)?;
                list.iter()
                    .any(|own| origin == own.as_str())
                    .then(|| origin.clone())
            }
        }
    }

    fn allows_header(&self, name: &str) -> bool {
        self.allowed
            .iter()
            .any(|allowed| match allowed.strip_suffix('*') {
                Some(start) => name
                    .get(..start.len())
                    .is_some_and(|head| head.eq_ignore_ascii_case(start)),
                None => name.eq_ignore_ascii_case(allowed),
            })
    }

    fn preflight(&self, origin: HeaderValue, asked: &HeaderMap) -> Response {
        let mut answer = Response::new(Body::empty());
        *answer.status_mut() = StatusCode::NO_CONTENT;
        let headers = answer.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, self.methods.clone());
        // The allowed ones of the requested names, echoed; only valid header names are returned.
        let names: Vec<String> = asked
            .get_all(header::ACCESS_CONTROL_REQUEST_HEADERS)
            .iter()
            .filter_map(|line| line.to_str().ok())
            .flat_map(|line| line.split(','))
            .filter_map(|name| HeaderName::try_from(name.trim()).ok())
            .filter(|name| self.allows_header(name.as_str()))
            .map(|name| name.as_str().to_owned())
            .collect();
        if let Ok(names) = HeaderValue::try_from(names.join(", "))
            && !names.is_empty()
        {
            headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, names);
        }
        headers.insert(
            header::ACCESS_CONTROL_MAX_AGE,
            HeaderValue::from_static("7200"),
        );
        self.amend(origin, headers);
        headers.append(
            header::VARY,
            HeaderValue::from_static("access-control-request-headers"),
        );
        answer
    }

    fn amend(&self, origin: HeaderValue, headers: &mut HeaderMap) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, self.exposed.clone());
    }
}

impl Hook for Cors {
    type Kept = Option<HeaderValue>;

    fn before(&self, request: &mut Request<Body>) -> Result<Self::Kept, Box<Response>> {
        let headers = request.headers();
        let origin = self.allow_origin(headers);
        let preflight = *request.method() == Method::OPTIONS
            && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
        match (preflight, origin) {
            (true, Some(origin)) => Err(Box::new(self.preflight(origin, headers))),
            (_, origin) => Ok(origin),
        }
    }

    fn after(&self, origin: Self::Kept, response: &mut Response) {
        let headers = response.headers_mut();
        if matches!(self.origins, Origins::Listed(_)) {
            headers.append(header::VARY, HeaderValue::from_static("origin"));
        }
        if let Some(origin) = origin {
            self.amend(origin, headers);
        }
    }
}
