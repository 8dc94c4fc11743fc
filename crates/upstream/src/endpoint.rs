//! Address of an upstream server, its credential, and the limits of its answers.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use portolan_net::{
    egress::{Egress, EgressRequest, EgressStream, Redirects},
    secrets::Secrets,
};
use portolan_protocol::jsonrpc::Raw;
use url::Url;

use crate::{
    error::UpstreamError,
    message::{self, Incoming},
};

/// Longest answer of a server whose source sets no other; the default of a source.
const ANSWER_BYTES: usize = 8 * 1024 * 1024;
/// Longest silence of a server whose source sets no other; the default of a source.
const SILENCE: Duration = Duration::from_secs(30);
/// Longest exchange: clients of AI models give up long before.
const TOTAL: Duration = Duration::from_secs(600);
/// Pages of one list. A server that sends more repeats a cursor.
const PAGES: usize = 100;
/// Entries of one list: more tools than a model can choose from.
const ENTRIES: usize = 5_000;

/// Bounds on what an upstream server may send and how long it may take.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes of one JSON answer, or of one event of a stream.
    pub answer_bytes: usize,
    /// Silence after which an exchange is given up; every event starts it again (MCP-L-12).
    pub silence: Duration,
    /// Hard maximum of an exchange, independent of its progress.
    pub total: Duration,
    /// Pages of one list (MCP-X-7F).
    pub pages: usize,
    /// Entries of one list.
    pub entries: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            answer_bytes: ANSWER_BYTES,
            silence: SILENCE,
            total: TOTAL,
            pages: PAGES,
            entries: ENTRIES,
        }
    }
}

/// Client identity towards the server: our own, or that of one of our clients.
#[derive(Debug, Clone)]
pub struct Speaker {
    /// `clientInfo`, an object.
    pub info: Raw,
    /// `capabilities`, an object, in the form of the era that it is used in.
    pub capabilities: Raw,
}

impl Speaker {
    /// Ourselves, who can do nothing for the server.
    pub fn ourselves() -> Self {
        let info = format!(
            r#"{{"name":"portolan","version":"{}"}}"#,
            env!("CARGO_PKG_VERSION")
        );
        Self {
            info: Raw::parse(info).unwrap_or_else(|_| Raw::empty_object()),
            capabilities: Raw::empty_object(),
        }
    }
}

/// A server of another operator.
#[derive(Clone)]
pub struct Endpoint {
    /// Its MCP endpoint, for a 2024-11-05 server that of its event stream. May carry an API key:
    /// never log it.
    pub url: Url,
    /// Credential: complete headers, marked sensitive.
    pub headers: HeaderMap,
    /// Secrets that must not appear in its answers (REVIEW-S-5), besides those of `headers` that
    /// are marked sensitive.
    pub secrets: Secrets,
    /// Bounds.
    pub limits: Limits,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint")
            .field("host", &self.url.host_str())
            .finish_non_exhaustive()
    }
}

/// A way to an [`Endpoint`]. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Client {
    egress: Egress,
    endpoint: Arc<Endpoint>,
}

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
/// MCP-X-85: longer waits are the caller's to make.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

impl Client {
    /// A way to `endpoint`. Nothing is sent yet.
    pub fn new(egress: Egress, mut endpoint: Endpoint) -> Self {
        endpoint
            .secrets
            .extend(Secrets::of_headers(&endpoint.headers));
        Self {
            egress,
            endpoint: Arc::new(endpoint),
        }
    }

    /// Bounds.
    pub fn limits(&self) -> &Limits {
        &self.endpoint.limits
    }

    /// Parses a body or the data of an event. All messages of the server pass here. The credential
    /// is removed first, because the server may echo it (REVIEW-S-5).
    pub(crate) fn read(&self, text: impl Into<Bytes>) -> Result<Vec<Incoming>, UpstreamError> {
        let text = text.into();
        let masked = self.endpoint.secrets.masked_body(&text);
        message::read(masked.unwrap_or(text))
    }

    pub(crate) fn url(&self) -> &Url {
        &self.endpoint.url
    }

    fn request(
        &self,
        method: Method,
        url: Url,
        own: &[(HeaderName, HeaderValue)],
    ) -> EgressRequest {
        let mut headers = HeaderMap::with_capacity(8);
        for (name, value) in own {
            headers.append(name, value.clone());
        }
        // The credential last: nothing of ours takes its place.
        for (name, value) in &self.endpoint.headers {
            headers.insert(name, value.clone());
        }
        EgressRequest {
            headers,
            timeout: self.endpoint.limits.silence,
            max_response_bytes: self.endpoint.limits.answer_bytes,
            redirects: Redirects::None,
            ..EgressRequest::new(method, url)
        }
    }

    /// POSTs one message to `url`; waits once for a server that is too busy (MCP-X-85).
    pub(crate) async fn post(
        &self,
        url: &Url,
        own: &[(HeaderName, HeaderValue)],
        body: Bytes,
    ) -> Result<EgressStream, UpstreamError> {
        let mut waited = false;
        loop {
            let mut request = self.request(Method::POST, url.clone(), own);
            request.headers.insert(header::CONTENT_TYPE, JSON);
            request.headers.insert(header::ACCEPT, BOTH);
            request.body = body.clone();
            let answer = self.egress.open(request).await?;
            if answer.status != StatusCode::TOO_MANY_REQUESTS {
                return Ok(answer);
            }
            let retry_after = retry_after(&answer.headers);
            match retry_after.filter(|wait| *wait <= LONGEST_WAIT) {
                Some(wait) if !waited => {
                    waited = true;
                    tokio::time::sleep(wait).await;
                }
                _ => return Err(UpstreamError::Limited { retry_after }),
            }
        }
    }

    /// Opens an event stream.
    pub(crate) async fn get(
        &self,
        url: &Url,
        own: &[(HeaderName, HeaderValue)],
    ) -> Result<EgressStream, UpstreamError> {
        let mut request = self.request(Method::GET, url.clone(), own);
        request.headers.insert(header::ACCEPT, EVENTS);
        Ok(self.egress.open(request).await?)
    }

    /// Ends a session.
    pub(crate) async fn delete(
        &self,
        own: &[(HeaderName, HeaderValue)],
    ) -> Result<(), UpstreamError> {
        let request = self.request(Method::DELETE, self.url().clone(), own);
        self.egress.open(request).await?;
        Ok(())
    }
}

/// `Retry-After` in seconds; dates are not read, since clocks differ.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(header::RETRY_AFTER)?.to_str().ok()?;
    seconds.trim().parse().ok().map(Duration::from_secs)
}

/// Error for an unsuccessful status whose body explains nothing (MCP-X-84…MCP-X-87).
pub(crate) fn refusal(status: StatusCode, headers: &HeaderMap) -> UpstreamError {
    let challenge = || {
        let all = headers.get_all(header::WWW_AUTHENTICATE).iter();
        let all: Vec<&str> = all.filter_map(|value| value.to_str().ok()).collect();
        (!all.is_empty()).then(|| all.join(", "))
    };
    match status {
        StatusCode::UNAUTHORIZED => UpstreamError::Unauthorized {
            challenge: challenge(),
        },
        StatusCode::FORBIDDEN => UpstreamError::Forbidden {
            challenge: challenge(),
        },
        StatusCode::TOO_MANY_REQUESTS => UpstreamError::Limited {
            retry_after: retry_after(headers),
        },
        status => UpstreamError::Status(status),
    }
}

/// True if the answer is an event stream.
pub(crate) fn is_events(headers: &HeaderMap) -> bool {
    media_type(headers).is_some_and(|name| name.eq_ignore_ascii_case("text/event-stream"))
}

/// True if the answer is JSON, with any declared charset (MCP-X-8).
pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    media_type(headers).is_some_and(|name| name.eq_ignore_ascii_case("application/json"))
}

fn media_type(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    value.split(';').next().map(str::trim)
}
