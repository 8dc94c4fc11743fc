//! Compression of answers (RFC 9110 §8.4).
//!
//! An answer that holds a secret must not be compressed together with text that an attacker chose.
//! Its size would show how alike the two are (BREACH). Pages with form tokens are therefore never
//! compressed. Answers to methods other than GET are not either, among them every answer that shows
//! a secret once. Lists of the API are compressed only where the request came from our own pages.
//! Event streams are never compressed: a compressor holds back data for which the reader waits.

use std::io::Write;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, Request};
use http_body::Frame;

use super::fetch_site::SEC_FETCH_SITE;
use super::rule::{Hook, Rule};

/// Smaller answers fit into one packet anyway.
const LEAST: u64 = 1024;
/// Beyond this, more time makes texts hardly smaller.
const LEVEL: u32 = 4;

/// The first of `offered` codings that the sender of `headers` accepts (RFC 9110 §12.5.3).
pub fn accepted(headers: &HeaderMap, offered: &[&'static str]) -> Option<&'static str> {
    offered
        .iter()
        .find(|coding| accepts(headers, coding))
        .copied()
}

fn accepts(headers: &HeaderMap, coding: &str) -> bool {
    let mut by_star = false;
    for line in headers.get_all(header::ACCEPT_ENCODING) {
        for part in line.to_str().unwrap_or_default().split(',') {
            let (name, weight) = part.split_once(';').unwrap_or((part, ""));
            let is_refused = weight
                .trim()
                .strip_prefix("q=")
                .is_some_and(|weight| weight.trim().parse::<f32>().unwrap_or(0.0) <= 0.0);
            if name.trim().eq_ignore_ascii_case(coding) {
                return !is_refused;
            }
            by_star |= name.trim() == "*" && !is_refused;
        }
    }
    by_star
}

/// Compresses the texts of an API as they go out: JSON, style sheets and scripts, with gzip.
#[derive(Debug, Clone, Copy, Default)]
pub struct Compress;

impl Compress {
    /// As a layer.
    pub fn layer(self) -> Rule<Self> {
        Rule::new(self)
    }
}

impl Hook for Compress {
    /// Whether the answer may be compressed and the client accepts it.
    type Kept = Option<bool>;

    fn before(&self, request: &mut Request<Body>) -> Result<Self::Kept, Box<Response>> {
        let headers = request.headers();
        let is_ours = headers
            .get(SEC_FETCH_SITE)
            .is_none_or(|site| site == "same-origin" || site == "none");
        let may_be = *request.method() == Method::GET && is_ours;
        Ok(may_be.then(|| accepts(headers, "gzip")))
    }

    fn after(&self, asked: Self::Kept, response: &mut Response) {
        let Some(is_accepted) = asked else { return };
        if !is_worth_it(response) {
            return;
        }
        let headers = response.headers_mut();
        headers.append(header::VARY, HeaderValue::from_static("accept-encoding"));
        if !is_accepted {
            return;
        }
        headers.remove(header::CONTENT_LENGTH);
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        let body = std::mem::take(response.body_mut());
        *response.body_mut() = Body::new(Compressed {
            body,
            encoder: Some(GzEncoder::new(Vec::new(), Compression::new(LEVEL))),
        });
    }
}

fn is_worth_it(response: &Response) -> bool {
    let headers = response.headers();
    let kind = headers
        .get(header::CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok())
        .and_then(|kind| kind.split(';').next())
        .unwrap_or_default();
    let is_text = matches!(
        kind.trim(),
        "application/json" | "text/css" | "text/javascript"
    );
    is_text
        && !headers.contains_key(header::CONTENT_ENCODING)
        && !headers.contains_key(header::ETAG)
        && http_body::Body::size_hint(response.body()).lower() >= LEAST
}

/// A body on its way through a compressor.
struct Compressed {
    body: Body,
    /// `None` after the last byte.
    encoder: Option<GzEncoder<Vec<u8>>>,
}

impl http_body::Body for Compressed {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        loop {
            let Some(encoder) = &mut this.encoder else {
                return Poll::Ready(None);
            };
            let step = match ready!(Pin::new(&mut this.body).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => encoder
                        .write_all(&data)
                        .map(|()| std::mem::take(encoder.get_mut())),
                    // Trailers: none of ours has any.
                    Err(_) => continue,
                },
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => match this.encoder.take() {
                    Some(encoder) => encoder.finish(),
                    None => return Poll::Ready(None),
                },
            };
            match step {
                Ok(bytes) if bytes.is_empty() => {}
                Ok(bytes) => return Poll::Ready(Some(Ok(Frame::data(bytes.into())))),
                Err(error) => return Poll::Ready(Some(Err(axum::Error::new(error)))),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_coding_that_is_accepted_is_chosen() {
        for (line, expected) in [
            ("gzip, deflate, br, zstd", Some("br")),
            ("gzip", Some("gzip")),
            ("GZIP;q=0.5", Some("gzip")),
            ("br;q=0, gzip", Some("gzip")),
            ("br; q=0.0, gzip;q=0", None),
            ("*", Some("br")),
            ("br;q=0, *", Some("gzip")),
            ("identity", None),
            ("", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_ENCODING, line.parse().unwrap());
            assert_eq!(accepted(&headers, &["br", "gzip"]), expected, "{line}");
        }
        assert_eq!(accepted(&HeaderMap::new(), &["br", "gzip"]), None);
    }
}
