//! The only outgoing HTTP client of the product.
//!
//! Every request that leaves a node, for a URL from any source, goes through [`Egress::send`]. It
//! guarantees:
//! - only public addresses are dialled. They are checked after resolution, at connect time, and the
//!   checked address is the one that is dialled (MCP-AB-15…MCP-AB-18, AUTH-C2). Pooled connections
//!   were checked when they were made;
//! - one deadline over the whole exchange, and a byte limit on the answer, read as it arrives
//!   (MCP-AB-20);
//! - redirects are off, or followed by our own loop within the origin (MCP-AB-19). A request is
//!   never sent twice because of a broken connection, except a `GET` or `HEAD` on a kept-alive
//!   connection that the peer had just closed;
//! - no proxy variables (but for programs on a person's machine), no cookies, no `Accept-Encoding`,
//!   no header that could change the framing.

mod authorities;
mod connect;
mod error;
mod pool;
mod redirect;
mod spare;
mod streaming;
mod wire;

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::uri::PathAndQuery;
use http::{Method, Request, StatusCode, Uri};
use http_body_util::Full;
use url::{Position, Url};

pub use self::authorities::{Authorities, AuthoritiesError};
pub use self::error::{EgressError, EgressSetupError, Phase};
pub use self::redirect::RedirectFault;
pub use self::streaming::EgressStream;
pub use crate::address::{AllowedDestination, UrlFault};
pub use crate::resolve::Network;

use self::connect::Guard;
use self::pool::{NoConnection, Pool, Tries};
use self::spare::Spare;
use self::wire::{Outgoing, Wire, WireBody, WireError};
use crate::address::{AddressRefusal, AddressRules};
use crate::proxies::Proxies;
use crate::tunnel::{self, Away, Tunnels};

/// Time within which a kept connection breaks if the peer had already closed it. If it breaks
/// later, the peer may have received and executed the request: to send it again could execute it
/// twice without notice.
const STALE_WITHIN: Duration = Duration::from_millis(250);

/// `User-Agent` of the service. Operators do not change it, so that servers know its releases.
const USER_AGENT: &str = concat!("Portolan/", env!("CARGO_PKG_VERSION"));

portolan_config::config! {
    /// Outgoing calls
    pub struct EgressPolicy {
        /// host:port pairs in private or loopback networks that tools may call all the same.
        /// Everything else private is refused.
        allow: Vec<AllowedDestination> as "egress_allow" = Vec::new();
        /// Whether tools may call public APIs over http without TLS.
        allow_plain_http: bool as "egress_allow_plain_http" = false;
        /// File with certificate authorities (PEM) to trust beside those of the machine for the
        /// APIs, MCP servers and documents of clients that are called: a company's own. Read at
        /// the start. Private addresses have to stand in egress_allow all the same.
        authorities: Authorities as "egress_ca_file" = Authorities::default();
        /// Longest time for the name look-up, the connection and the TLS handshake of one call
        /// together, in milliseconds.
        connect_timeout_ms: u64 as "egress_connect_timeout_ms" = 5_000, in 100..=60_000;
    }
}

/// Which redirects are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Redirects {
    /// None: a 3xx answer is handed back as it is.
    #[default]
    None,
    /// Up to five within scheme, host and port of the request; any other is an error.
    SameOrigin,
}

/// An exchange that takes longer is a slow one.
pub const MOMENT: Duration = Duration::from_secs(1);

/// One request.
#[derive(Debug, Clone)]
pub struct EgressRequest {
    /// Method.
    pub method: Method,
    /// Absolute URL; see [`parse_url`] for text.
    pub url: Url,
    /// Headers. Those that frame the message or belong to one hop are ignored, so is
    /// `Accept-Encoding`.
    pub headers: HeaderMap,
    /// Body, empty for none.
    pub body: Bytes,
    /// Deadline of the whole exchange, redirects and body included.
    pub timeout: Duration,
    /// Largest answer body that is read.
    pub max_response_bytes: usize,
    /// Handling of 3xx.
    pub redirects: Redirects,
}

impl EgressRequest {
    /// A request without headers and body: 10 s, 1 MiB, no redirects.
    pub fn new(method: Method, url: Url) -> Self {
        Self {
            method,
            url,
            headers: HeaderMap::new(),
            body: Bytes::new(),
            timeout: Duration::from_secs(10),
            max_response_bytes: 1024 * 1024,
            redirects: Redirects::None,
        }
    }

    /// A `GET` with the defaults of [`EgressRequest::new`].
    pub fn get(url: Url) -> Self {
        Self::new(Method::GET, url)
    }
}

/// The answer, fully read.
#[derive(Debug, Clone)]
pub struct EgressResponse {
    /// Status.
    pub status: StatusCode,
    /// Headers as received.
    pub headers: HeaderMap,
    /// Body as received: never decompressed.
    pub body: Bytes,
    /// The URL that answered, after redirects.
    pub final_url: Url,
}

/// Reads text as an absolute URL, as browsers do: `http://0x7f.1/` is an address and not a name
/// afterwards.
///
/// # Errors
/// [`EgressError::BlockedUrl`] with [`UrlFault::Unreadable`].
pub fn parse_url(text: &str) -> Result<Url, EgressError> {
    Url::parse(text).map_err(|_| EgressError::BlockedUrl {
        fault: UrlFault::Unreadable,
    })
}

/// The guarded client. Cloning shares connections.
#[derive(Clone)]
pub struct Egress {
    inner: Arc<EgressState>,
    /// The scope whose attached servers are reachable; none by default.
    scope: Option<u128>,
}

struct EgressState {
    tunnels: Tunnels,
    rules: Arc<AddressRules>,
    pool: Pool,
    user_agent: HeaderValue,
}

impl std::fmt::Debug for Egress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Egress")
            .field("rules", &self.inner.rules)
            .finish_non_exhaustive()
    }
}

impl Egress {
    /// A client on the system's network.
    ///
    /// # Errors
    /// [`EgressSetupError`], at start only.
    pub fn new(policy: EgressPolicy) -> Result<Self, EgressSetupError> {
        Self::with_network(policy, Network::system())
    }

    /// The client of a program on a person's own machine, which calls what that person names:
    /// every address, name and port is admitted, and `http://` within private networks. `proxies`
    /// are the way to `https` addresses: a proxy resolves names by itself, so no address is checked
    /// here.
    ///
    /// # Errors
    /// [`EgressSetupError`], at start only.
    pub fn on_own_machine(
        policy: EgressPolicy,
        proxies: &Proxies,
        user_agent: &'static str,
    ) -> Result<Self, EgressSetupError> {
        let mut allow = policy.allow.clone();
        allow.extend(proxies.destination());
        let rules = AddressRules {
            allow,
            allow_plain_http: policy.allow_plain_http,
            any_destination: true,
        };
        Self::build(rules, Network::system(), &policy, proxies, user_agent)
    }

    /// A client on another network: tests, or a way out that the operator prescribes (MCP-AB-21).
    ///
    /// # Errors
    /// [`EgressSetupError`], at start only.
    pub fn with_network(policy: EgressPolicy, network: Network) -> Result<Self, EgressSetupError> {
        let rules = AddressRules {
            allow: policy.allow.clone(),
            allow_plain_http: policy.allow_plain_http,
            any_destination: false,
        };
        Self::build(rules, network, &policy, &Proxies::default(), USER_AGENT)
    }

    fn build(
        rules: AddressRules,
        network: Network,
        policy: &EgressPolicy,
        proxies: &Proxies,
        user_agent: &'static str,
    ) -> Result<Self, EgressSetupError> {
        let rules = Arc::new(rules);
        let connector = connect::connector(
            Guard {
                rules: Arc::clone(&rules),
                network,
            },
            proxies,
            &policy.authorities,
            Duration::from_millis(policy.connect_timeout_ms),
        )
        .map_err(EgressSetupError::Tls)?;
        Ok(Self {
            scope: None,
            inner: Arc::new(EgressState {
                tunnels: Tunnels::default(),
                rules,
                pool: Pool::new(connector),
                user_agent: HeaderValue::from_static(user_agent),
            }),
        })
    }

    /// The tunnels of this process, through which attached servers are called.
    pub fn tunnels(&self) -> &Tunnels {
        &self.inner.tunnels
    }

    /// The same client, which also reaches the attached servers of a scope
    /// ([`tunnel`]). Use it only for requests to an address that is stored in that
    /// scope, never for an address that an answer names.
    #[must_use]
    pub fn within(&self, scope: u128) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
            scope: Some(scope),
        }
    }

    /// Checks the text of the URL; names are not resolved. For forms, so that a person sees the
    /// error early. [`Egress::send`] checks again, on the address.
    ///
    /// # Errors
    /// [`EgressError::BlockedUrl`] or [`EgressError::BlockedAddress`].
    pub fn check(&self, url: &Url) -> Result<(), EgressError> {
        if tunnel::is_reserved(url) {
            let is_ours = self.scope.is_some() && tunnel::name_of(url).is_some();
            return if is_ours {
                Ok(())
            } else {
                Err(EgressError::refused(
                    AddressRefusal::Url(UrlFault::LocalName),
                    url,
                ))
            };
        }
        self.inner
            .rules
            .check_url(url)
            .map_err(|refusal| EgressError::refused(refusal, url))
    }

    /// Sends one request and reads the whole answer. Any status is an answer, not an error. A
    /// future that is not done after [`MOMENT`] is woken then.
    ///
    /// # Errors
    /// See [`EgressError`]; its text may be shown to the tenant, its source belongs into the log.
    pub async fn send(&self, mut request: EgressRequest) -> Result<EgressResponse, EgressError> {
        let after = request.timeout;
        let phase = AtomicU8::new(Phase::Answer as u8);
        let outcome = {
            // Pinned here: a timeout would move the exchange, which is large, several times.
            let mut exchange = pin!(self.exchange(&mut request, &phase));
            // The wait has two steps: a long wait is woken once meanwhile, to check whether the
            // answer is still wanted. It needs no second timer.
            let first = after.min(MOMENT);
            match tokio::time::timeout(first, exchange.as_mut()).await {
                Err(_) if first < after => {
                    tokio::time::timeout(after.saturating_sub(first), exchange).await
                }
                outcome => outcome,
            }
        };
        match outcome {
            Ok(outcome) => outcome.map(|(parts, body)| EgressResponse {
                status: parts.status,
                headers: parts.headers,
                body,
                final_url: request.url,
            }),
            Err(_elapsed) => Err(EgressError::Timeout {
                phase: Phase::from_u8(phase.load(Ordering::Relaxed)),
                after,
            }),
        }
    }

    async fn exchange(
        &self,
        request: &mut EgressRequest,
        phase: &AtomicU8,
    ) -> Result<(http::response::Parts, Bytes), EgressError> {
        let Answered { answer, mut wire } = self.head(request).await?;
        phase.store(Phase::Body as u8, Ordering::Relaxed);
        let (parts, body) = answer.into_parts();
        let body = read_bounded(&mut wire, body, request.max_response_bytes).await?;
        self.inner.pool.put(&request.url, wire);
        Ok((parts, body))
    }

    /// The headers that [`Egress::send`] sends for a request, `Content-Length` left out.
    pub fn headers_to_send(&self, request: &EgressRequest) -> HeaderMap {
        let mut headers = self.prepared(request.headers.clone());
        if let Some(host) = host_of(&request.url) {
            headers.insert(header::HOST, host);
        }
        headers
    }

    /// Sends a request and follows what redirects it may: the head of the last answer, its body
    /// unread. Leaves in the request the URL that answered; its headers and its body are taken.
    ///
    /// The request is borrowed, because moves into nested futures would copy it each time.
    async fn head(&self, request: &mut EgressRequest) -> Result<Answered, EgressError> {
        let mut headers = self.prepared(std::mem::take(&mut request.headers));
        let mut body = std::mem::take(&mut request.body);
        let mut hops = 0;
        loop {
            self.check(&request.url)?;
            let last_try = request.redirects == Redirects::None;
            // Only where a second request could follow.
            let spare =
                (!last_try || is_repeatable(&request.method)).then(|| Spare::of(&headers, &body));
            let hop = self.one_hop(&request.method, &request.url, headers, body, spare.as_ref());
            let (answer, wire) = hop.await?;
            hops += 1;
            let next = if last_try || !redirect::is_redirect(answer.status()) {
                None
            } else {
                redirect::next_hop(&request.url, answer.headers(), hops)
            };
            let (Some(next), Some(spare)) = (next, spare) else {
                return Ok(Answered { answer, wire });
            };
            request.url = next.map_err(|fault| EgressError::Redirect { fault })?;
            headers = spare.headers();
            body = spare.body;
            if redirect::becomes_get(answer.status(), &request.method) {
                request.method = Method::GET;
                body = Bytes::new();
                headers.remove(header::CONTENT_TYPE);
            }
        }
    }

    /// One request and the head of its answer, with the connection that is still to bring the body.
    /// A repeatable request is sent again from `spare`.
    async fn one_hop(
        &self,
        method: &Method,
        url: &Url,
        headers: HeaderMap,
        body: Bytes,
        spare: Option<&Spare>,
    ) -> Result<(http::Response<WireBody>, Wire), EgressError> {
        let pool = &self.inner.pool;
        let (spare, tries) = match spare {
            Some(spare) if is_repeatable(method) => (Some(spare), Tries::Two),
            _ => (None, Tries::One),
        };
        let mut request = assembled(method.clone(), url, headers, body)?;
        if let Some(name) = tunnel::name_of(url) {
            // Boxed, like a connect: calls on a kept connection have small futures.
            return Box::pin(self.through_tunnel(name, url, request)).await;
        }
        let mut sent = Instant::now();
        while let Some(mut wire) = pool.take(url, sent, tries) {
            let failed = match wire.ask(request).await {
                Ok(answer) => return Ok((answer, wire)),
                Err(failed) => failed,
            };
            if let Some(unsent) = failed.unsent {
                request = unsent;
                sent = Instant::now();
                continue;
            }
            match spare {
                Some(spare)
                    if sent.elapsed() < STALE_WITHIN && closed_before_answer(&failed.error) =>
                {
                    let (headers, body) = (spare.headers(), spare.body.clone());
                    request = assembled(method.clone(), url, headers, body)?;
                    // Once: what breaks on a new connection was not closed for its age.
                    break;
                }
                _ => return Err(EgressError::broken(failed.error)),
            }
        }
        let connected = Box::pin(pool.connect(url, uri_of(url)?)).await;
        let mut wire = connected.map_err(|failure| not_connected(failure, url))?;
        match wire.ask(request).await {
            Ok(answer) => Ok((answer, wire)),
            Err(failed) => Err(EgressError::broken(failed.error)),
        }
    }

    /// One request to an attached server. It is sent on another tunnel only if no byte of it was
    /// sent before.
    async fn through_tunnel(
        &self,
        name: &str,
        url: &Url,
        mut request: Outgoing,
    ) -> Result<(http::Response<WireBody>, Wire), EgressError> {
        let away = |_: Away| EgressError::Away {
            name: name.to_owned(),
        };
        // `check` refused the address without a scope.
        let scope = self.scope.ok_or(Away).map_err(away)?;
        request.headers_mut().remove(header::HOST);
        *request.uri_mut() = uri_of(url)?;
        loop {
            let passage = self.inner.tunnels.passage(scope, name, &request).await;
            let mut wire = Wire::on(passage.map_err(away)?);
            let failed = match wire.ask(request).await {
                Ok(answer) => return Ok((answer, wire)),
                Err(failed) => failed,
            };
            match failed.unsent {
                Some(unsent) => request = unsent,
                None => return Err(EgressError::broken(failed.error)),
            }
        }
    }

    /// The headers that really go out.
    fn prepared(&self, mut headers: HeaderMap) -> HeaderMap {
        if headers.keys().any(is_ours_to_set) {
            let ours: Vec<HeaderName> = headers
                .keys()
                .filter(|name| is_ours_to_set(name))
                .cloned()
                .collect();
            for name in ours {
                headers.remove(name);
            }
        }
        headers
            .entry(header::USER_AGENT)
            .or_insert_with(|| self.inner.user_agent.clone());
        headers
    }
}

/// The head of an answer.
struct Answered {
    answer: http::Response<WireBody>,
    /// The connection that brings the body.
    wire: Wire,
}

/// True for a request that may reach its server twice.
fn is_repeatable(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

/// Headers that belong to one connection or frame the message (RFC 9110 §7.6.1), or that would
/// invite compression.
fn is_ours_to_set(name: &HeaderName) -> bool {
    matches!(
        *name,
        header::HOST
            | header::CONTENT_LENGTH
            | header::TRANSFER_ENCODING
            | header::CONNECTION
            | header::UPGRADE
            | header::TE
            | header::TRAILER
            | header::EXPECT
            | header::ACCEPT_ENCODING
            | header::PROXY_AUTHORIZATION
    ) || matches!(name.as_str(), "keep-alive" | "proxy-connection")
}

const fn unreadable() -> EgressError {
    EgressError::BlockedUrl {
        fault: UrlFault::Unreadable,
    }
}

fn uri_of(url: &Url) -> Result<Uri, EgressError> {
    Uri::try_from(&url[..Position::AfterQuery]).map_err(|_| unreadable())
}

fn host_of(url: &Url) -> Option<HeaderValue> {
    HeaderValue::from_str(&url[Position::BeforeHost..Position::AfterPort]).ok()
}

/// A request as it goes to an origin: path and query in the request line, the rest in `Host`
/// (RFC 9112 §3.2.1).
fn assembled(
    method: Method,
    url: &Url,
    mut headers: HeaderMap,
    body: Bytes,
) -> Result<Outgoing, EgressError> {
    let path = PathAndQuery::try_from(&url[Position::BeforePath..Position::AfterQuery]);
    let (Ok(path), Some(host)) = (path, host_of(url)) else {
        return Err(unreadable());
    };
    headers.insert(header::HOST, host);
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = method;
    *request.uri_mut() = Uri::from(path);
    *request.headers_mut() = headers;
    Ok(request)
}

/// Reads at most `limit` bytes; an announced length beyond it ends the exchange before a byte of
/// body is read.
async fn read_bounded(
    wire: &mut Wire,
    mut body: WireBody,
    limit: usize,
) -> Result<Bytes, EgressError> {
    if body.size_hint().lower() > limit as u64 {
        return Err(EgressError::TooLarge { limit });
    }
    let mut first = Bytes::new();
    let mut rest: Option<BytesMut> = None;
    while let Some(frame) = wire.frame(&mut body).await {
        let frame = frame.map_err(EgressError::broken)?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        let have = rest.as_ref().map_or(first.len(), BytesMut::len);
        if data.len() > limit - have {
            return Err(EgressError::TooLarge { limit });
        }
        match &mut rest {
            Some(all) => all.extend_from_slice(&data),
            None if first.is_empty() => first = data,
            None => {
                let more = usize::try_from(body.size_hint().lower())
                    .unwrap_or(limit)
                    .min(limit);
                let mut all = BytesMut::with_capacity(first.len() + data.len() + more);
                all.extend_from_slice(&first);
                all.extend_from_slice(&data);
                rest = Some(all);
            }
        }
    }
    Ok(rest.map_or(first, BytesMut::freeze))
}

/// True if the peer closed a connection without having sent a byte of an answer: what a kept-alive
/// connection looks like whose idle time was over at the other end.
fn closed_before_answer(error: &WireError) -> bool {
    match error {
        WireError::Own(error) => error.is_incomplete_message() || error.is_canceled(),
        WireError::Tunnel(_) => false,
    }
}

fn not_connected(failure: NoConnection, url: &Url) -> EgressError {
    let host = || url.host_str().unwrap_or_default().to_owned();
    let failure = match failure {
        NoConnection::Connect(failure) => failure,
        NoConnection::Handshake(error) => return EgressError::broken(error),
    };
    match failure.kind() {
        connect::FailureKind::Refused(refusal) => EgressError::refused(refusal, url),
        connect::FailureKind::Dns => EgressError::Dns {
            host: host(),
            source: Box::new(failure),
        },
        connect::FailureKind::Tcp => EgressError::Connect {
            host: host(),
            source: Box::new(failure),
        },
        connect::FailureKind::Tls => EgressError::Tls {
            host: host(),
            source: Box::new(failure),
        },
        connect::FailureKind::Timeout(after) => EgressError::Timeout {
            phase: Phase::Connect,
            after,
        },
    }
}

impl EgressError {
    fn broken(error: impl Into<WireError>) -> Self {
        Self::Protocol {
            source: Box::new(error.into()),
        }
    }

    fn refused(refusal: AddressRefusal, url: &Url) -> Self {
        match refusal {
            AddressRefusal::Url(fault) => Self::BlockedUrl { fault },
            AddressRefusal::Address => Self::BlockedAddress {
                host: url.host_str().unwrap_or_default().to_owned(),
            },
        }
    }
}
