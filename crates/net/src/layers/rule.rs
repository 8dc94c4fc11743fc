//! A rule that every request and every answer passes, as a tower layer.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::response::Response;
use http::Request;
use tower::{Layer, Service};

use crate::shortcut::Answering;

/// A rule that checks requests before they pass and answers afterwards, without waiting.
pub trait Hook: Send + Sync + 'static {
    /// Data of the request that is kept for the answer.
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
    pub(super) fn new(hook: H) -> Self {
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
