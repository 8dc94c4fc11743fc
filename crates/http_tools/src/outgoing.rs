//! The trace of a request to an API: a span here, and a header there (W3C Trace Context).

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use portolan_net::egress::{EgressError, EgressResponse};
use portolan_traces::Span;
use url::Url;

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// Starts the span of a request that is about to be sent. Trace headers that the tool itself sets
/// are kept.
pub(crate) fn begin(call: &Span, method: &Method, url: &Url, headers: &mut HeaderMap) -> Span {
    let span = call.request("upstream request");
    if !headers.contains_key(TRACEPARENT) {
        let context = span.context();
        if let Ok(value) = HeaderValue::try_from(context.traceparent()) {
            headers.insert(TRACEPARENT, value);
            let state = context.tracestate().map(HeaderValue::from_str);
            if let Some(Ok(state)) = state {
                headers.insert(TRACESTATE, state);
            }
        }
    }
    span.set("http.request.method", method.as_str());
    span.set("server.address", url.host_str().unwrap_or_default());
    span
}

/// It was answered, or not.
pub(crate) fn end(span: Span, answer: &Result<EgressResponse, EgressError>) {
    match answer {
        Ok(answer) => {
            let status = answer.status;
            span.set("http.response.status_code", u64::from(status.as_u16()));
            if status.is_client_error() || status.is_server_error() {
                span.failed("status");
            }
        }
        Err(error) => span.failed(error.kind()),
    }
}
