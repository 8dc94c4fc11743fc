//! Answers to requests of a node.

use std::convert::Infallible;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body::Body;
use http_body_util::{BodyExt as _, Full, combinators::UnsyncBoxBody};
use portolan_net::egress::EgressError;

/// Most bytes of a message for the server, and of the first answer of a command.
pub(crate) const LARGEST_MESSAGE: usize = 16 * 1024 * 1024;

/// Body of an answer. Only one that a server sends can break.
pub type AnswerBody = UnsyncBoxBody<Bytes, EgressError>;

/// A whole body.
fn full(body: impl Into<Bytes>) -> AnswerBody {
    Full::new(body.into())
        .map_err(|never| match never {})
        .boxed_unsync()
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
pub(crate) fn events<B>(body: B) -> Response<AnswerBody>
where
    B: Body<Data = Bytes, Error = Infallible> + Send + 'static,
{
    let body = body.map_err(|never| match never {}).boxed_unsync();
    let mut response = with_type(StatusCode::OK, "text/event-stream", body);
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
