//! POST, GET and DELETE of an MCP server's URL: the guards in the order of MCP-E-1, then the era.
//!
//! ```text
//! path ▸ Origin 403 ▸ verb 405 ▸ cut off 503 ▸ token 401
//!   ▸ not yours or not there 404 ▸ aud 401, scope 403
//!   ▸ Content-Type 415 ▸ Accept 406 ▸ size 413 ▸ parse -32700 ▸ envelope -32600
//!   ▸ era (protocol::negotiate)
//! ```
//!
//! The server is looked up only after the token is verified. Without a good token, a path without a
//! server gets exactly the same answer as a path with one.

pub(crate) mod api_key;
pub(crate) mod bearer;
pub(crate) mod connection_diagnostics;
pub(crate) mod install;
pub(crate) mod metadata;
pub(crate) mod state;

use std::{
    convert::Infallible,
    sync::{Arc, OnceLock},
    task::{self, Poll},
    time::Duration,
};

use axum::{
    body::Body,
    extract::Request,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http::{HeaderMap, Method as Verb, header, request::Parts};
use http_body_util::BodyExt;
use portolan_model::{Timestamp, resource::Site};
use portolan_net::{
    layers::{
        Arrival,
        body::{self, BODY_WITHIN, BodyError},
    },
    shortcut::Answering,
};
use portolan_protocol::{
    header::Headers,
    jsonrpc::{Body as RpcBody, MAX_BODY_BYTES},
    media::Accepted,
    method::Method,
    negotiate::{self, Admitted},
    revision::{Era, Revision},
};
use tokio::time::{Instant, sleep};
use tower::Service;

use crate::{
    caller::Caller,
    error::{self, McpError},
    http::state::McpState,
    instruments::{self, Outcome},
    limits::PACED_FOR,
    session::{event_id::EventId, written::SessionId},
    target::{Target, Transport},
    transport::{RequestContext, check_body, http_sse, lines, stateless, streamable_http},
};

/// Bounds on an unwanted body that is read and discarded: bytes, and time.
///
/// A client that still sends when the connection closes sees a broken connection, not the refusal.
const DRAIN_BYTES: usize = 2 * MAX_BODY_BYTES;

const DRAIN_WITHIN: Duration = Duration::from_secs(2);

/// The route template for logs and metrics. Addresses of default servers have the same template.
fn route(path: &str) -> &'static str {
    let path = path.strip_suffix('/').unwrap_or(path);
    if path.ends_with("/mcp") {
        "/t/{tenant}/{server}/mcp"
    } else if path.ends_with("/sse") {
        "/t/{tenant}/{server}/sse"
    } else {
        "/t/{tenant}/{server}/messages"
    }
}

/// The endpoints of all servers.
#[derive(Debug, Clone)]
pub(crate) struct Endpoint(pub(crate) McpState);

impl Service<Request> for Endpoint {
    type Response = Response;
    type Error = Infallible;
    type Future = Answering;

    fn poll_ready(&mut self, _: &mut task::Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Answering {
        let state = self.0.clone();
        Box::pin(handle(state, request))
    }
}

/// Serves a request of any verb.
async fn handle(state: McpState, request: Request) -> Result<Response, Infallible> {
    let (parts, mut body) = request.into_parts();
    if let Some(arrival) = parts.extensions.get::<Arrival>() {
        arrival.note_route(route(parts.uri.path()));
    }
    let error = match serve(&state, &parts, &mut body).await {
        Ok(answer) => return Ok(answer),
        Err(error) => error,
    };
    // The refusal does not wait for the unwanted body (REVIEW-Q16). A client that sends
    // `Expect` has not sent it yet.
    let is_sent = !http_body::Body::is_end_stream(&body);
    if is_sent && !parts.headers.contains_key(header::EXPECT) {
        state.tracker.spawn(drain(body));
    }
    if let (McpError::Unauthorized(challenge), Some(target)) =
        (&error, Target::parse(parts.uri.path()))
        && install::is_wanted(&parts, &target)
    {
        return Ok(install::page(state.site(), &target, challenge.value()));
    }
    let refusal = error.answering(spoken(&parts.headers), None);
    Ok(refusal.into_response())
}

/// The revision whose error codes a refusal uses before the message is read (MCP-ER-13).
fn spoken(head: &HeaderMap) -> Revision {
    let version = head.get("mcp-protocol-version");
    version
        .and_then(|version| version.to_str().ok()?.trim().parse().ok())
        .unwrap_or(Revision::LATEST_LEGACY)
}

async fn drain(mut body: Body) {
    let reading = async {
        let mut left = DRAIN_BYTES;
        while let Some(Ok(frame)) = body.frame().await {
            left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
            if left == 0 {
                return;
            }
        }
    };
    // If the client sends more, or more slowly, the connection breaks.
    let _elapsed = tokio::time::timeout(DRAIN_WITHIN, reading).await;
}

async fn serve(state: &McpState, parts: &Parts, body: &mut Body) -> Result<Response, McpError> {
    let target = Target::parse(parts.uri.path()).ok_or(McpError::NoSuchServer)?;
    if !state.origins.admit(&parts.headers) {
        return Err(McpError::Origin);
    }
    if let Some(options) = check_verb(target.transport, &parts.method)? {
        return Ok(options);
    }
    // This check precedes the token check. A client with an expired or revoked token gets no answer
    // that makes it discard the token.
    if state.revocations.is_cut_off() && bearer::is_shown(&parts.headers) {
        instruments::token_unjudged();
        return Err(McpError::RegistryAway);
    }
    let now = state.clock.now();
    let arrival = parts.extensions.get::<Arrival>();
    let caller = match state.bearer.remembered(&parts.headers, now) {
        Some(caller) => caller,
        // Boxed: an API key may need a lookup, and the future of a remembered token stays small.
        None => Box::pin(authenticate(state, parts, &target, arrival, now)).await?,
    };
    state
        .bearer
        .check_address(&caller, &target, arrival.map(Arrival::client_ip))?;
    let entry = state.catalog.resolve(caller.claims.tid, &target).await?;
    if !entry.is_own_tenant() {
        return Err(McpError::NoSuchServer);
    }
    let authorized = state.bearer.authorize(&caller, &target, &entry);
    if let Some(arrival) = arrival {
        let diagnostics = &state.connection_diagnostics;
        let outcome = authorized.as_ref().err();
        diagnostics.came(&target, &caller, outcome, parts, arrival, now);
    }
    authorized?;
    let server = entry.server.clone().ok_or(if entry.is_paused {
        McpError::Paused
    } else {
        McpError::NoSuchServer
    })?;
    if caller.begins_a_minute(now) {
        let claims = &caller.claims;
        state.call_log.note_use(claims.tid, claims.gid, now);
    }
    if target.transport != Transport::Mcp && !entry.reach.http_sse {
        return Err(McpError::TurnedOff);
    }
    let tenant_slug = target.tenant.unwrap_or_else(|| entry.tenant_slug());
    let tenant_slug: Arc<str> = tenant_slug.into();
    if let Some(arrival) = arrival {
        arrival.note_tenant(Arc::clone(&tenant_slug));
        arrival.note_authorised();
    }
    let headers = collect_headers(&parts.headers);
    let accepted = Accepted::read(lines(&parts.headers, header::ACCEPT));
    let context = RequestContext {
        state,
        target,
        tenant_slug,
        caller,
        server,
        accepted,
        now,
        headers: &headers,
        arrival,
        head: &parts.headers,
        trace: OnceLock::new(),
    };
    match parts.method {
        // Boxed: these requests are rare, and their futures are larger than all others.
        Verb::POST if target.transport == Transport::Messages => {
            Box::pin(http_sse::post(&context, parts, &headers, body)).await
        }
        _ if target.transport == Transport::Events => {
            Box::pin(http_sse::open(&context, parts)).await
        }
        Verb::POST => post(&context, parts, &headers, body).await,
        Verb::GET if !accepted.events => Err(McpError::NotAcceptable),
        Verb::GET => streamable_http::get(&context, &headers).await,
        _ => streamable_http::delete(&context, &headers).await,
    }
}

/// The sites whose scripts may use the endpoint: our own origin and the configured ones, compared
/// exactly (MCP-T-1, MCP-T-2).
#[derive(Debug, Clone)]
pub(crate) struct AllowedOrigins(Arc<[String]>);

impl AllowedOrigins {
    pub(crate) fn new(site: &Site, configured: &[String]) -> Self {
        let mut all = vec![site.issuer().to_owned()];
        if site.is_plain_loopback() {
            // On a loopback site the three names of loopback are the same origin.
            let port = site
                .authority()
                .rsplit_once(':')
                .map(|(_, port)| port)
                .filter(|port| port.bytes().all(|b| b.is_ascii_digit()));
            let port = port.map(|port| format!(":{port}")).unwrap_or_default();
            all.extend(
                ["127.0.0.1", "localhost", "[::1]"].map(|host| format!("http://{host}{port}")),
            );
        }
        all.extend(configured.iter().cloned());
        Self(all.into())
    }

    /// The list, for the CORS layer.
    pub(crate) fn listed(&self) -> Arc<[String]> {
        Arc::clone(&self.0)
    }

    /// Whether the `Origin` headers are allowed. A request without one does not come from a
    /// browser.
    ///
    /// Each value must be in the list; `null` never is.
    pub(crate) fn admit(&self, headers: &HeaderMap) -> bool {
        headers
            .get_all(header::ORIGIN)
            .iter()
            .all(|origin| self.0.iter().any(|own| origin == own.as_str()))
    }
}

/// Refuses a verb that the address does not support (MCP-T-5); `OPTIONS` is answered here.
fn check_verb(transport: Transport, verb: &Verb) -> Result<Option<Response>, McpError> {
    match (transport, verb) {
        (Transport::Mcp, &(Verb::POST | Verb::GET | Verb::DELETE))
        | (Transport::Events, &Verb::GET)
        | (Transport::Messages, &Verb::POST) => Ok(None),
        (transport, &Verb::OPTIONS) => Ok(Some(error::options(transport))),
        (transport, _) => Err(McpError::Verb(transport)),
    }
}

/// Verifies a token that this node has not verified before; a refusal is kept for the diagnostics
/// of connections.
async fn authenticate(
    state: &McpState,
    parts: &Parts,
    target: &Target<'_>,
    arrival: Option<&Arrival>,
    now: Timestamp,
) -> Result<Arc<Caller>, McpError> {
    limit_address(state, parts, arrival).await?;
    let known = state.bearer.authenticate(&parts.headers, target, now).await;
    if let (Err(error), Some(arrival)) = (&known, arrival) {
        state
            .connection_diagnostics
            .challenged(target, error, parts, arrival, now);
    }
    known
}

/// The head of a request, as the protocol reads it.
fn collect_headers(head: &HeaderMap) -> Headers<'_> {
    let pairs = head.iter();
    Headers::collect(pairs.map(|(name, value)| (name.as_str(), value.as_bytes())))
}

/// The rate limit of an address without a known token, before any signature check
/// (STREAM-16.1).
async fn limit_address(
    state: &McpState,
    parts: &Parts,
    arrival: Option<&Arrival>,
) -> Result<(), McpError> {
    let Some(arrival) = arrival else {
        return Ok(());
    };
    let until = Instant::now() + PACED_FOR;
    loop {
        let Err(over) = state.admission.take_address(arrival.client_ip()).await else {
            return Ok(());
        };
        if !comes_back(state, parts) {
            state.admission.address_refused();
            return Err(McpError::over(over, Revision::LATEST_LEGACY, None));
        }
        // REVIEW-F1: the request waits, and then its token is checked all the same.
        if Instant::now() >= until {
            return Ok(());
        }
        sleep(Duration::from_secs(1)).await;
    }
}

/// Whether a client without a known token shows an event id that was issued to its session.
///
/// The check takes microseconds.
fn comes_back(state: &McpState, parts: &Parts) -> bool {
    let text = |name| parts.headers.get(name)?.to_str().ok();
    let (Some(session), Some(event)) = (text("mcp-session-id"), text("last-event-id")) else {
        return false;
    };
    let key = SessionId::unchecked_key(session.trim());
    let event = key.and_then(|key| EventId::read(event.trim(), &state.keys, key));
    parts.method == Verb::GET && event.is_some()
}

async fn post(
    context: &RequestContext<'_>,
    parts: &Parts,
    headers: &Headers<'_>,
    body: &mut Body,
) -> Result<Response, McpError> {
    check_body(&parts.headers)?;
    if context.accepted.nothing() {
        return Err(McpError::NotAcceptable);
    }
    if http_body::Body::size_hint(body).lower() > MAX_BODY_BYTES as u64 {
        return Err(McpError::Body(BodyError::TooLarge {
            limit: MAX_BODY_BYTES,
        }));
    }
    let bytes = body::read(std::mem::take(body), MAX_BODY_BYTES, BODY_WITHIN).await?;
    match negotiate::admit(RpcBody::parse(bytes)?, headers)? {
        Admitted::Initialize { request, draft } => {
            context.note_method(Method::Initialize);
            // Boxed, like batches: requests in a session have small futures.
            Box::pin(streamable_http::initialize(context, &request, draft)).await
        }
        Admitted::Session {
            session_id,
            message,
        } => streamable_http::message(context, &session_id, message, headers).await,
        Admitted::SessionBatch { session_id, batch } => {
            Box::pin(streamable_http::batch(
                context,
                &session_id,
                &batch,
                headers,
            ))
            .await
        }
        Admitted::Modern {
            revision,
            method,
            request,
            meta,
        } => stateless::request(context, revision, method, request, *meta).await,
        // MCP-E-14: over HTTP a cancellation is a disconnect, and no other notification is
        // expected.
        Admitted::ModernNotification(notification) => {
            context.state.instruments.message(
                Era::Modern,
                Method::from_name(&notification.method),
                Outcome::Ok,
            );
            Ok(error::accepted())
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn with(origins: &[&'static str]) -> HeaderMap {
        origins
            .iter()
            .map(|origin| (header::ORIGIN, HeaderValue::from_static(origin)))
            .collect()
    }

    #[test]
    fn t_2_only_our_origin_and_the_configured_ones_pass() {
        let site = Site::new("https://mcp.example.com").unwrap();
        let allowed = AllowedOrigins::new(&site, &["https://app.example.com".to_owned()]);
        for good in [
            &[][..],
            &["https://mcp.example.com"],
            &["https://app.example.com"],
        ] {
            assert!(allowed.admit(&with(good)), "{good:?}");
        }
        for bad in [
            &["null"][..],
            &["http://mcp.example.com"],
            &["https://mcp.example.com:8443"],
            &["https://mcp.example.com.evil.example"],
            &["https://mcp.example.com", "https://evil.example"],
            &["http://localhost"],
        ] {
            assert!(!allowed.admit(&with(bad)), "{bad:?}");
        }
    }

    #[test]
    fn t_2_in_development_the_names_of_loopback_are_one_place() {
        let site = Site::new("http://127.0.0.1:8080").unwrap();
        let allowed = AllowedOrigins::new(&site, &[]);
        assert!(allowed.admit(&with(&["http://localhost:8080"])));
        assert!(!allowed.admit(&with(&["http://localhost:3000"])));
    }
}
