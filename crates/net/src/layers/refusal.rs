//! The JSON answer with which a layer refuses a request.

use axum::body::Body;
use axum::response::Response;
use http::StatusCode;
use http::header::{self, HeaderValue};

/// The refusal in the form that all JSON interfaces share (RFC 9457). `code` and `message` are fixed
/// texts without quotes.
pub(super) fn refusal(status: StatusCode, code: &'static str, message: &'static str) -> Response {
    let (title, number) = (
        status.canonical_reason().unwrap_or_default(),
        status.as_u16(),
    );
    let body = format!(
        r#"{{"type":"urn:portolan:problem:{code}","title":"{title}","status":{number},"detail":"{message}","error":{{"code":"{code}","message":"{message}"}}}}"#
    );
    let mut answer = Response::new(Body::from(body));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/problem+json"),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    answer
}
