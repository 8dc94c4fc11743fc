//! The outermost layer: everything that each request needs, in one step.

use std::convert::Infallible;
use std::future::{Future, Ready, ready};
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::{FromRequestParts, MatchedPath};
use axum::response::Response;
use futures_util::FutureExt;
use futures_util::future::CatchUnwind;
use http::header::{self, HeaderName, HeaderValue};
use http::request::Parts;
use http::{Method, Request, StatusCode};
use tower::{Layer, Service};

use super::refusal::refusal;
use super::security;
use crate::client_ip::TrustedProxies;
use crate::listen::{AuthorisationReport, Peer};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The hosts that we answer to, as they stand in `Host`: name and, unless it is the scheme's own,
/// port.
#[derive(Debug, Clone, Default)]
pub struct AllowedHosts {
    hosts: Arc<[String]>,
    also: Option<Arc<Also>>,
}

/// Other names of the same place.
#[derive(Debug)]
struct Also {
    hosts: Vec<String>,
    /// Origin to which browsers are redirected, without a slash at the end.
    origin: String,
}

impl AllowedHosts {
    /// A list of `host` or `host:port`.
    pub fn new(hosts: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        Self {
            hosts: hosts
                .into_iter()
                .map(|host| host.as_ref().to_ascii_lowercase())
                .collect(),
            also: None,
        }
    }

    /// Also serves `hosts`. A browser that requests a page there is redirected to `origin`, where
    /// its cookies and passkeys are; all other requests are served.
    #[must_use]
    pub fn also(
        self,
        hosts: impl IntoIterator<Item = impl Into<String>>,
        origin: impl Into<String>,
    ) -> Self {
        Self {
            also: Some(Arc::new(Also {
                hosts: hosts.into_iter().map(Into::into).collect(),
                origin: origin.into(),
            })),
            ..self
        }
    }

    fn admit(&self, host: &[u8]) -> bool {
        self.hosts
            .iter()
            .any(|own| own.as_bytes().eq_ignore_ascii_case(host))
            || self.is_another(host).is_some()
    }

    /// The origin to which pages are sent on, if it is another name.
    fn is_another(&self, host: &[u8]) -> Option<&str> {
        let also = self.also.as_deref()?;
        let is_one = also
            .hosts
            .iter()
            .any(|other| other.as_bytes().eq_ignore_ascii_case(host));
        is_one.then_some(also.origin.as_str())
    }
}

/// Facts about a request since it arrived. Handlers take it as an extractor; their notes appear in
/// the request's log line.
#[derive(Debug, Clone)]
pub struct Arrival(Arc<RequestFacts>);

#[derive(Debug)]
struct RequestFacts {
    /// Hexadecimal digits.
    request_id: [u8; 24],
    client_ip: IpAddr,
    standing: Option<Arc<AuthorisationReport>>,
    route: OnceLock<&'static str>,
    tenant: OnceLock<Arc<str>>,
    mcp_method: OnceLock<&'static str>,
}

impl Arrival {
    /// The id of the request, ours alone: 24 hexadecimal digits.
    pub fn request_id(&self) -> &str {
        std::str::from_utf8(&self.0.request_id).unwrap_or_default()
    }

    /// Address of the client, without our own proxies.
    pub fn client_ip(&self) -> IpAddr {
        self.0.client_ip
    }

    /// Notes that the client is authorised: its address may connect when only the listener's
    /// reserve is left (REVIEW-S-2).
    pub fn note_authorised(&self) {
        if let Some(standing) = &self.0.standing {
            standing.authorised();
        }
    }

    /// Notes whose request it turned out to be. The first note stays.
    pub fn note_tenant(&self, tenant: impl Into<Arc<str>>) {
        self.0.tenant.get_or_init(|| tenant.into());
    }

    /// Notes the method of the MCP message, by its name in the protocol. The first note stays.
    pub fn note_mcp_method(&self, method: &'static str) {
        self.0.mcp_method.get_or_init(|| method);
    }

    /// Notes the template of the route, where no router found it. The first note stays.
    pub fn note_route(&self, template: &'static str) {
        self.0.route.get_or_init(|| template);
    }

    /// The tenant, if noted.
    pub fn tenant(&self) -> Option<&str> {
        self.0.tenant.get().map(|tenant| &**tenant)
    }

    /// The MCP method, if noted.
    pub fn mcp_method(&self) -> Option<&str> {
        self.0.mcp_method.get().copied()
    }
}

impl<S: Sync> FromRequestParts<S> for Arrival {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Response> {
        parts.extensions.get::<Self>().cloned().ok_or_else(|| {
            tracing::error!("a router is served without the front layer");
            internal_error()
        })
    }
}

/// One request, answered: what the log line and the metrics are made of.
#[derive(Debug)]
pub struct RequestLine<'a> {
    /// Method.
    pub method: &'a Method,
    /// Template of the route (`/t/{tenant}/{server}/mcp`), never the path.
    pub route: &'a str,
    /// Status; none if the client disconnected before there was one.
    pub status: Option<StatusCode>,
    /// Time from the head of the request to the head of the answer.
    pub duration: Duration,
    /// The rest.
    pub arrival: &'a Arrival,
}

/// Observer of answered requests.
pub trait Observe: Send + Sync + 'static {
    /// Called once a request, off no lock, on the connection's task: keep it short.
    fn answered(&self, line: &RequestLine<'_>);
}

/// Whether nothing is served for now. Cloning shares it.
#[derive(Debug, Clone, Default)]
pub struct Pause(Arc<AtomicBool>);

impl Pause {
    /// Begins it, or ends it. Says whether that is a change.
    pub fn set(&self, pauses: bool) -> bool {
        self.0.swap(pauses, Ordering::AcqRel) != pauses
    }

    /// Whether it lasts.
    pub fn holds(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// The layer. Apply it last, with `Router::layer`, so that the template of the route is known to
/// it; a service without a router below it notes the template on the [`Arrival`].
#[derive(Clone)]
pub struct Front {
    shared: Arc<FrontState>,
}

struct FrontState {
    hosts: AllowedHosts,
    proxies: TrustedProxies,
    observer: Option<Arc<dyn Observe>>,
    pause: Pause,
}

impl std::fmt::Debug for Front {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Front")
            .field("hosts", &self.shared.hosts)
            .finish_non_exhaustive()
    }
}

impl Front {
    /// Without hosts every host is refused.
    pub fn new(
        hosts: AllowedHosts,
        proxies: TrustedProxies,
        observer: Option<Arc<dyn Observe>>,
    ) -> Self {
        Self {
            shared: Arc::new(FrontState {
                hosts,
                proxies,
                observer,
                pause: Pause::default(),
            }),
        }
    }

    /// Answers every request with 503 and `Retry-After` while `pause` lasts.
    #[must_use]
    pub fn paused_by(self, pause: Pause) -> Self {
        let FrontState {
            hosts,
            proxies,
            observer,
            ..
        } = &*self.shared;
        Self {
            shared: Arc::new(FrontState {
                hosts: hosts.clone(),
                proxies: proxies.clone(),
                observer: observer.clone(),
                pause,
            }),
        }
    }
}

impl<S> Layer<S> for Front {
    type Service = FrontService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        FrontService {
            shared: Arc::clone(&self.shared),
            inner,
        }
    }
}

/// A service behind the [`Front`].
#[derive(Clone)]
pub struct FrontService<S> {
    shared: Arc<FrontState>,
    inner: S,
}

impl<S: std::fmt::Debug> std::fmt::Debug for FrontService<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FrontService")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}

impl<S> Service<Request<Body>> for FrontService<S>
where
    S: Service<Request<Body>, Response = Response, Error = Infallible> + Clone + Send + 'static,
    S::Future: Unpin,
{
    type Response = Response;
    type Error = Infallible;
    type Future = FrontFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let begun = Instant::now();
        let peer = request.extensions().get::<Peer>();
        let standing = peer.and_then(|peer| peer.standing.clone());
        let peer = peer.map_or(NOWHERE, |peer| peer.address);
        let arrival = Arrival(Arc::new(RequestFacts {
            request_id: fresh_request_id(),
            client_ip: self.shared.proxies.client_ip(peer, request.headers()),
            standing,
            route: OnceLock::new(),
            tenant: OnceLock::new(),
            mcp_method: OnceLock::new(),
        }));
        let report = Report {
            shared: Arc::clone(&self.shared),
            arrival,
            begun,
            method: request.method().clone(),
            route: request.extensions().get::<MatchedPath>().cloned(),
            status: None,
        };
        let answer = match self.shared.admit(&request) {
            Err(answer) => FrontAnswer::Ready(ready(answer)),
            Ok(()) => {
                request.extensions_mut().insert(report.arrival.clone());
                let calling = AssertUnwindSafe(|| self.inner.call(request));
                match catch_unwind(calling) {
                    Ok(answering) => {
                        FrontAnswer::Handled(AssertUnwindSafe(answering).catch_unwind())
                    }
                    Err(_panic) => FrontAnswer::Ready(ready(Box::new(panicked(&report)))),
                }
            }
        };
        FrontFuture {
            answer,
            report: Some(report),
        }
    }
}

/// Future of an answer behind the [`Front`].
pub struct FrontFuture<F> {
    answer: FrontAnswer<F>,
    /// Until there is an answer. If there is none, it is dropped after the handler.
    report: Option<Report>,
}

enum FrontAnswer<F> {
    Ready(Ready<Box<Response>>),
    Handled(CatchUnwind<AssertUnwindSafe<F>>),
}

impl<F> std::fmt::Debug for FrontFuture<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FrontFuture").finish_non_exhaustive()
    }
}

impl<F> Future for FrontFuture<F>
where
    F: Future<Output = Result<Response, Infallible>> + Unpin,
{
    type Output = Result<Response, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let answered = match &mut self.answer {
            FrontAnswer::Ready(answer) => Ok(Ok(*ready!(Pin::new(answer).poll(cx)))),
            FrontAnswer::Handled(answering) => ready!(Pin::new(answering).poll(cx)),
        };
        let report = self.report.take();
        let answer = match (answered, &report) {
            (Ok(Ok(answer)), _) => answer,
            (Ok(Err(never)), _) => match never {},
            (Err(_panic), Some(report)) => panicked(report),
            (Err(_panic), None) => internal_error(),
        };
        Poll::Ready(Ok(match report {
            Some(mut report) => report.finish(answer),
            None => answer,
        }))
    }
}

fn panicked(report: &Report) -> Response {
    tracing::error!(
        request.id = report.arrival.request_id(),
        "a handler panicked"
    );
    internal_error()
}

const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

impl FrontState {
    fn admit(&self, request: &Request<Body>) -> Result<(), Box<Response>> {
        self.host(request)?;
        if self.pause.holds() {
            return Err(Box::new(paused()));
        }
        Ok(())
    }

    /// AUTH-S10, RFC 9112 §3.2: exactly one `Host`, and one of ours; an absolute target must name
    /// one of ours too.
    fn host(&self, request: &Request<Body>) -> Result<(), Box<Response>> {
        let target = request.uri().authority().map(http::uri::Authority::as_str);
        let mut hosts = request.headers().get_all(header::HOST).iter();
        let named = match (hosts.next(), hosts.next()) {
            (Some(host), None) => host.as_bytes(),
            _ => {
                return Err(Box::new(refusal(
                    StatusCode::BAD_REQUEST,
                    "host_missing",
                    "The request must carry exactly one Host header.",
                )));
            }
        };
        if self.hosts.admit(named)
            && target.is_none_or(|target| self.hosts.admit(target.as_bytes()))
        {
            match self.hosts.is_another(named) {
                Some(origin) if asks_for_page(request) => {
                    Err(Box::new(sent_on(origin, request.uri())))
                }
                _ => Ok(()),
            }
        } else {
            Err(Box::new(refusal(
                StatusCode::MISDIRECTED_REQUEST,
                "host_unknown",
                "This server does not answer to that host name. Check the URL, or add the name to the allowed hosts.",
            )))
        }
    }
}

/// True if a browser sends this request when a person follows a link or enters an address.
fn asks_for_page(request: &Request<Body>) -> bool {
    matches!(*request.method(), Method::GET | Method::HEAD)
        && request
            .headers()
            .get(header::ACCEPT)
            .and_then(|accept| accept.to_str().ok())
            .is_some_and(|accept| accept.contains("text/html"))
}

fn sent_on(origin: &str, target: &http::Uri) -> Response {
    let path = target
        .path_and_query()
        .map_or("/", http::uri::PathAndQuery::as_str);
    let mut answer = Response::new(Body::empty());
    *answer.status_mut() = StatusCode::TEMPORARY_REDIRECT;
    let headers = answer.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Ok(location) = HeaderValue::try_from(format!("{origin}{path}")) {
        headers.insert(header::LOCATION, location);
    }
    answer
}

/// Notifies the observer, also when the request's future is dropped because the client
/// disconnected.
struct Report {
    shared: Arc<FrontState>,
    arrival: Arrival,
    begun: Instant,
    method: Method,
    route: Option<MatchedPath>,
    status: Option<StatusCode>,
}

impl Report {
    fn finish(&mut self, mut answer: Response) -> Response {
        self.status = Some(answer.status());
        if let Ok(id) = HeaderValue::from_bytes(&self.arrival.0.request_id) {
            answer.headers_mut().insert(REQUEST_ID, id);
        }
        security::set_least(answer.headers_mut());
        answer
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        if let Some(observer) = &self.shared.observer {
            observer.answered(&RequestLine {
                method: &self.method,
                route: match &self.route {
                    Some(route) => route.as_str(),
                    None => self.arrival.0.route.get().copied().unwrap_or("unmatched"),
                },
                status: self.status,
                duration: self.begun.elapsed(),
                arrival: &self.arrival,
            });
        }
    }
}

/// Others may serve it meanwhile, and this node in a moment.
fn paused() -> Response {
    let mut answer = refusal(
        StatusCode::SERVICE_UNAVAILABLE,
        "unavailable",
        "This server cannot answer for a moment. Try again.",
    );
    let seconds = HeaderValue::from_static("2");
    answer.headers_mut().insert(header::RETRY_AFTER, seconds);
    answer
}

fn internal_error() -> Response {
    refusal(
        StatusCode::INTERNAL_SERVER_ERROR,
        "internal",
        "Something went wrong on our side. The X-Request-Id of this answer helps us to find it.",
    )
}

/// Ids name, they never open: unique is enough, and neither the number of requests nor that of
/// processes shows.
fn fresh_request_id() -> [u8; 24] {
    static PROCESS: LazyLock<(u64, u64)> = LazyLock::new(|| {
        (
            RandomState::new().hash_one(1_u8),
            RandomState::new().hash_one(2_u8),
        )
    });
    static COUNT: AtomicU64 = AtomicU64::new(0);
    const HEX: &[u8; 16] = b"0123456789abcdef";

    let (process, offset) = *PROCESS;
    let number = mixed(offset.wrapping_add(COUNT.fetch_add(1, Ordering::Relaxed)));
    let mut text = [0_u8; 24];
    for (n, digit) in text.iter_mut().enumerate() {
        let (word, place) = if n < 8 { (process, n) } else { (number, n - 8) };
        let nibble = (word >> (60 - 4 * place)) & 15;
        *digit = HEX[usize::try_from(nibble).unwrap_or_default()];
    }
    text
}

/// The finaliser of `SplitMix64`: a bijection, so that different numbers stay different.
const fn mixed(number: u64) -> u64 {
    let z = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
