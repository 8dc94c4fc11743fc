//! Bodies of requests: read whole, up to a size and within a time (TEST-B1, TEST-B2), by handlers
//! that answer in their own words. Others stand behind the [`Entrance`](super::Entrance).

use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http::StatusCode;
use http_body::Body as _;
use http_body_util::BodyExt;

/// How long a body may take in all: a slow phone fits, a client that sends one byte a second does
/// not.
pub const BODY_WITHIN: Duration = Duration::from_secs(30);

/// Why a body could not be read.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// Announced or found to be larger than allowed.
    #[error("the body is larger than {limit} bytes")]
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// Not complete in time.
    #[error("the body was not complete within {} s", within.as_secs())]
    TooSlow {
        /// The time allowed.
        within: Duration,
    },
    /// The connection broke, or the framing was wrong.
    #[error("the body could not be read")]
    Broken(#[source] axum::Error),
}

impl BodyError {
    /// 413, 408 or 400.
    pub const fn status(&self) -> StatusCode {
        match self {
            Self::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow { .. } => StatusCode::REQUEST_TIMEOUT,
            Self::Broken(_) => StatusCode::BAD_REQUEST,
        }
    }
}

/// Reads a body whole. An announced length beyond the limit is refused before a byte is read; a
/// body in one frame is not copied.
///
/// # Errors
/// See [`BodyError`].
pub async fn read(body: Body, limit: usize, within: Duration) -> Result<Bytes, BodyError> {
    if body.size_hint().lower() > limit as u64 {
        return Err(BodyError::TooLarge { limit });
    }
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    let mut reading = pin!(read_on(body, limit));
    // Most bodies came with their head and need no timer.
    if let Poll::Ready(outcome) = futures_util::poll!(reading.as_mut()) {
        return outcome;
    }
    match tokio::time::timeout(within, reading).await {
        Ok(outcome) => outcome,
        Err(_elapsed) => Err(BodyError::TooSlow { within }),
    }
}

async fn read_on(mut body: Body, limit: usize) -> Result<Bytes, BodyError> {
    let mut first = Bytes::new();
    let mut rest: Option<BytesMut> = None;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(BodyError::Broken)?.into_data() else {
            continue;
        };
        let have = rest.as_ref().map_or(first.len(), BytesMut::len);
        if data.len() > limit - have {
            return Err(BodyError::TooLarge { limit });
        }
        match &mut rest {
            Some(all) => all.extend_from_slice(&data),
            None if first.is_empty() => first = data,
            None => {
                let more = usize::try_from(body.size_hint().lower())
                    .unwrap_or(limit)
                    .min(limit);
                let mut all = BytesMut::with_capacity(first.len() + data.len() + more);
                all.extend_from_slice(&first);
                all.extend_from_slice(&data);
                rest = Some(all);
            }
        }
    }
    Ok(rest.map_or(first, BytesMut::freeze))
}
