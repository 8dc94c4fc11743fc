//! One request that a node sends over a tunnel.

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, combinators::BoxBody};
use hyper::body::Incoming;
use portolan_net::tunnel::{CONTROL, NodeState, OfferState};

use crate::{forward::Forward, stdio::Stdio};

/// Body of an answer.
pub type AnswerBody = BoxBody<Bytes, hyper::Error>;

/// The server behind this program.
#[derive(Debug)]
pub enum Offer {
    /// A command.
    Stdio(Stdio),
    /// A server with an address.
    Forward(Forward),
}

impl Offer {
    /// Answers a request. Requests of the tunnel itself have an authority that no server has.
    pub async fn answer(
        &self,
        request: Request<Incoming>,
        learn: impl FnOnce(NodeState),
    ) -> Response<AnswerBody> {
        if request.uri().authority().map(http::uri::Authority::as_str) == Some(CONTROL) {
            return self.report(request, learn).await;
        }
        match self {
            Self::Stdio(stdio) => stdio.answer(request).await,
            Self::Forward(forward) => forward.answer(request).await,
        }
    }

    async fn report(
        &self,
        request: Request<Incoming>,
        learn: impl FnOnce(NodeState),
    ) -> Response<AnswerBody> {
        let Ok(body) = request.into_body().collect().await else {
            return text(StatusCode::BAD_REQUEST, "no body");
        };
        let Ok(state) = serde_json::from_slice(&body.to_bytes()) else {
            return text(StatusCode::BAD_REQUEST, "no state");
        };
        learn(state);
        let state = match self {
            Self::Stdio(stdio) => stdio.state(),
            Self::Forward(forward) => forward.state(),
        };
        json(StatusCode::OK, encoded(&state))
    }

    /// Ends what was started.
    pub async fn end(&self) {
        if let Self::Stdio(stdio) = self {
            stdio.end().await;
        }
    }
}

fn encoded(state: &OfferState) -> Vec<u8> {
    serde_json::to_vec(state).unwrap_or_default()
}

/// A whole body.
pub(crate) fn full(body: impl Into<Bytes>) -> AnswerBody {
    Full::new(body.into())
        .map_err(|never| match never {})
        .boxed()
}

fn with_type(status: StatusCode, kind: &'static str, body: AnswerBody) -> Response<AnswerBody> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// An answer in JSON.
pub(crate) fn json(status: StatusCode, body: impl Into<Bytes>) -> Response<AnswerBody> {
    with_type(status, "application/json", full(body))
}

/// An answer for a person.
pub(crate) fn text(status: StatusCode, words: impl Into<String>) -> Response<AnswerBody> {
    with_type(status, "text/plain; charset=utf-8", full(words.into()))
}

/// An answer without a body.
pub(crate) fn empty(status: StatusCode) -> Response<AnswerBody> {
    let mut response = Response::new(full(Bytes::new()));
    *response.status_mut() = status;
    response
}

/// An event stream.
pub(crate) fn events(body: AnswerBody) -> Response<AnswerBody> {
    let mut response = with_type(StatusCode::OK, "text/event-stream", body);
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
