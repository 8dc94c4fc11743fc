//! What holds for every request before a handler sees it, and for every answer on its way out.
//!
//! - [`Front`]: request id, host, client address, panics, the one line. Once, outermost, on the whole router.
//! - [`FetchSite`]: refuses unsafe requests that another site caused (S5).
//! - [`Cors`]: who may read answers from a browser (E10, T-11).
//! - [`SecurityHeaders`]: the headers of pages and of machine answers (S6, S7, S9, N7, N8).
//! - [`Entrance`]: what comes in is text without control characters, and comes in time (B1, S-2, S-6).
//! - [`Compress`]: what is worth it goes out compressed, and what an attacker could measure does not.
//! - [`body`]: bounded reading of bodies (B1, B2).
//!
//! All but `Front` are [`Rule`]s: `router.layer(FetchSite::new(origins).layer())`.

pub mod body;
mod coding;
mod cors;
mod entrance;
mod fetch_site;
mod front;
mod security;
mod text;

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::response::Response;
use http::header::{self, HeaderValue};
use http::{Request, StatusCode};
use tower::{Layer, Service};

use crate::shortcut::Answering;

pub use self::coding::{Compress, accepted};
pub use self::cors::{Cors, Origins};
pub use self::entrance::{BODY_RATE, Entrance, Fault};
pub use self::fetch_site::FetchSite;
pub use self::front::{AllowedHosts, Arrival, Front, Observe, Pause, RequestLine};
pub(crate) use self::security::UNRENDERED_CSP;
pub use self::security::{CONSOLE_CSP, Page, SecurityHeaders};

/// A rule that looks at requests before they pass and at answers afterwards, without waiting for anything.
pub trait Hook: Send + Sync + 'static {
    /// What is remembered of the request for the answer.
    type Kept: Send + 'static;

    /// Lets the request pass, or answers it.
    ///
    /// # Errors
    /// The answer that takes the place of the handler's.
    fn before(&self, request: &mut Request<Body>) -> Result<Self::Kept, Box<Response>>;

    /// Amends the answer of the handler.
    fn after(&self, kept: Self::Kept, response: &mut Response);
}

/// A [`Hook`] as a tower layer.
#[derive(Debug)]
pub struct Rule<H> {
    hook: Arc<H>,
}

impl<H> Rule<H> {
    fn new(hook: H) -> Self {
        Self {
            hook: Arc::new(hook),
        }
    }
}

impl<H> Clone for Rule<H> {
    fn clone(&self) -> Self {
        Self {
            hook: Arc::clone(&self.hook),
        }
    }
}

impl<H, S> Layer<S> for Rule<H> {
    type Service = Ruled<H, S>;

    fn layer(&self, inner: S) -> Self::Service {
        Ruled {
            hook: Arc::clone(&self.hook),
            inner,
        }
    }
}

/// A service under a [`Rule`].
#[derive(Debug)]
pub struct Ruled<H, S> {
    hook: Arc<H>,
    inner: S,
}

impl<H, S: Clone> Clone for Ruled<H, S> {
    fn clone(&self) -> Self {
        Self {
            hook: Arc::clone(&self.hook),
            inner: self.inner.clone(),
        }
    }
}

impl<H, S> Service<Request<Body>> for Ruled<H, S>
where
    H: Hook,
    S: Service<Request<Body>, Response = Response, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Answering;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        match self.hook.before(&mut request) {
            Err(answer) => Box::pin(std::future::ready(Ok(*answer))),
            Ok(kept) => {
                let hook = Arc::clone(&self.hook);
                let answering = self.inner.call(request);
                Box::pin(async move {
                    let mut answer = answering.await?;
                    hook.after(kept, &mut answer);
                    Ok(answer)
                })
            }
        }
    }
}

/// A refusal of this room in the form that all JSON faces share. Code and message are fixed texts without quotes.
pub(crate) fn refusal(status: StatusCode, code: &'static str, message: &'static str) -> Response {
    let body = format!(r#"{{"error":{{"code":"{code}","message":"{message}"}}}}"#);
    let mut answer = Response::new(Body::from(body));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    answer
}
