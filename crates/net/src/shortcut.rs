//! One service beside a router, for the most frequent paths: routing and boxing can cost as much as
//! a small answer.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use axum::routing::future::RouteFuture;
use futures_util::future::Either;
use http::Request;
use tower::Service;

/// Future of an answer, where its type has no name.
pub type Answering = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

/// Asks the one service for the paths that are its own, and the router for all others.
#[derive(Debug, Clone)]
pub struct Shortcut<S> {
    is_its_own: fn(&str) -> bool,
    service: S,
    router: Router,
}

impl<S> Shortcut<S> {
    /// `is_its_own` gets the path of each request.
    pub fn new(is_its_own: fn(&str) -> bool, service: S, router: Router) -> Self {
        Self {
            is_its_own,
            service,
            router: router.with_state(()),
        }
    }
}

impl<S> Service<Request<Body>> for Shortcut<S>
where
    S: Service<Request<Body>, Response = Response, Error = Infallible>,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Either<S::Future, RouteFuture<Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        // Neither a router nor any other service here needs to wait until it is ready.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        if (self.is_its_own)(request.uri().path()) {
            Either::Left(self.service.call(request))
        } else {
            Either::Right(self.router.call(request))
        }
    }
}
