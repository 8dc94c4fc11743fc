//! The transports: they make calls of HTTP requests, and write the replies.

pub(crate) mod accept;
pub(crate) mod http_sse;
pub(crate) mod request;
pub(crate) mod services;
pub(crate) mod stateless;
pub(crate) mod streamable_http;
pub(crate) mod trace;
