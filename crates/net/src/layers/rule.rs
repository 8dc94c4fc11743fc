//! A rule that every request and every answer passes, as a tower layer.

use std::convert::Infallible;
use std::future::{Future, Ready, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::Body;
use axum::response::Response;
use http::Request;
use tower::{Layer, Service};

/// A rule that checks requests before they pass and answers afterwards, without waiting.
pub trait Hook: Send + Sync + 'static {
    /// Data of the request that is kept for the answer.
    type Kept: Send + Unpin + 'static;

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
    S::Future: Unpin,
{
    type Response = Response;
    type Error = Infallible;
    type Future = RuledFuture<H, S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        RuledFuture(match self.hook.before(&mut request) {
            Err(answer) => RuledAnswer::Refused(ready(answer)),
            Ok(kept) => RuledAnswer::Passed {
                answering: self.inner.call(request),
                after: Some((Arc::clone(&self.hook), kept)),
            },
        })
    }
}

/// Future of an answer under a [`Rule`]. It has no box of its own: each request passes several
/// rules.
pub struct RuledFuture<H: Hook, F>(RuledAnswer<H, F>);

enum RuledAnswer<H: Hook, F> {
    Refused(Ready<Box<Response>>),
    Passed {
        answering: F,
        /// What amends the answer, until it has.
        after: Option<(Arc<H>, H::Kept)>,
    },
}

impl<H: Hook, F> std::fmt::Debug for RuledFuture<H, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RuledFuture").finish_non_exhaustive()
    }
}

impl<H, F> Future for RuledFuture<H, F>
where
    H: Hook,
    F: Future<Output = Result<Response, Infallible>> + Unpin,
{
    type Output = Result<Response, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            RuledAnswer::Refused(answer) => Pin::new(answer).poll(cx).map(|answer| Ok(*answer)),
            RuledAnswer::Passed { answering, after } => {
                let mut answer = ready!(Pin::new(answering).poll(cx))?;
                if let Some((hook, kept)) = after.take() {
                    hook.after(kept, &mut answer);
                }
                Poll::Ready(Ok(answer))
            }
        }
    }
}
