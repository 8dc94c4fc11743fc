//! Checks that input is text and arrives in time: the path and query before a handler reads them,
//! the body while it does (TEST-B1, REVIEW-S-2, REVIEW-S-6).
//!
//! Nothing is read ahead: handlers read bodies when they are ready to, and within their own limit.
//! The layer checks the bytes as they pass. If it stops them, the handler sees a body that broke
//! off. Its answer is replaced by a refusal in the format of the route.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode, header};
use http_body::{Frame, SizeHint};
use tokio::time::{Instant, Sleep};

use super::rule::{Hook, Rule};
use super::text::{TextReader, Writing};

/// How long a body may take, before what arrived gives it more: a slow phone fits, a client that
/// sends a byte a second does not.
const BODY_WITHIN: Duration = Duration::from_secs(20);
/// Bytes that give a body another second: slower is too slow, however large the body is.
pub const BODY_RATE: u32 = 16 * 1024;

/// Fault of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntranceFault {
    /// The body came too slowly: 408.
    Slow,
    /// Control characters in the path, the query or the body: 400.
    Characters,
}

impl EntranceFault {
    /// 408 or 400.
    pub const fn status(self) -> StatusCode {
        match self {
            Self::Slow => StatusCode::REQUEST_TIMEOUT,
            Self::Characters => StatusCode::BAD_REQUEST,
        }
    }

    /// For people: what is wrong and what to do. ASCII, without quotes.
    pub const fn message(self) -> &'static str {
        match self {
            Self::Slow => "The request did not arrive in time. Send it again.",
            Self::Characters => {
                "The request holds control characters. Only tabs and line breaks may stand in texts: remove the others."
            }
        }
    }
}

/// The layer. It gives the words of its routes to what it refuses.
#[derive(Debug, Clone, Copy)]
pub struct Entrance {
    refuse: fn(EntranceFault) -> Response,
    within: Duration,
}

impl Entrance {
    /// `refuse` makes the answer, in the form of these routes.
    pub const fn new(refuse: fn(EntranceFault) -> Response) -> Self {
        Self {
            refuse,
            within: BODY_WITHIN,
        }
    }

    /// The same with another time for bodies.
    #[must_use]
    pub const fn within(self, within: Duration) -> Self {
        Self { within, ..self }
    }

    /// As a layer.
    pub fn layer(self) -> Rule<Self> {
        Rule::new(self)
    }
}

impl Hook for Entrance {
    type Kept = Option<BodyFault>;

    fn before(&self, request: &mut Request<Body>) -> Result<Self::Kept, Box<Response>> {
        let query = request.uri().query().unwrap_or_default();
        if !TextReader::new(Writing::Path).admits(request.uri().path().as_bytes())
            || !TextReader::new(Writing::Form).admits(query.as_bytes())
        {
            return Err(Box::new((self.refuse)(EntranceFault::Characters)));
        }
        if http_body::Body::is_end_stream(request.body()) {
            return Ok(None);
        }
        let found = BodyFault::default();
        let reader = writing(request.headers()).map(TextReader::new);
        let body = std::mem::take(request.body_mut());
        *request.body_mut() = Body::new(Watched {
            body,
            reader,
            within: self.within,
            arrived: 0,
            timer: None,
            found: found.clone(),
        });
        Ok(Some(found))
    }

    fn after(&self, found: Self::Kept, response: &mut Response) {
        if let Some(fault) = found.and_then(|found| found.get()) {
            *response = (self.refuse)(fault);
        }
    }
}

/// How the characters of a body are written, if its type is one of those that are read as text.
fn writing(headers: &HeaderMap) -> Option<Writing> {
    let media_type = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    let media_type = media_type.split(';').next().unwrap_or_default().trim();
    if media_type.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
        Some(Writing::Form)
    } else if media_type.eq_ignore_ascii_case("application/json") {
        Some(Writing::Json)
    } else {
        None
    }
}

/// Fault that the body found, for the layer.
#[derive(Debug, Clone, Default)]
pub struct BodyFault(Arc<AtomicU8>);

impl BodyFault {
    fn set(&self, fault: EntranceFault) -> axum::Error {
        let number = match fault {
            EntranceFault::Slow => 1,
            EntranceFault::Characters => 2,
        };
        self.0.store(number, Ordering::Release);
        axum::Error::new(Stopped(fault))
    }

    fn get(&self) -> Option<EntranceFault> {
        match self.0.load(Ordering::Acquire) {
            1 => Some(EntranceFault::Slow),
            2 => Some(EntranceFault::Characters),
            _ => None,
        }
    }
}

/// Error that the handler sees.
#[derive(Debug, thiserror::Error)]
#[error("the body was stopped: {0:?}")]
struct Stopped(EntranceFault);

/// A body under watch. Its time begins when a handler begins to read.
struct Watched {
    body: Body,
    reader: Option<TextReader>,
    within: Duration,
    arrived: u64,
    /// When the reading began, and what wakes it. Most bodies came with their head and need none.
    timer: Option<(Instant, Pin<Box<Sleep>>)>,
    found: BodyFault,
}

impl Watched {
    /// True when the time is over; else the reading is woken then.
    fn is_late(&mut self, cx: &mut Context<'_>) -> bool {
        let more = Duration::from_millis(self.arrived * 1000 / u64::from(BODY_RATE));
        let allowed = self.within + more;
        let (began, timer) = self.timer.get_or_insert_with(|| {
            let now = Instant::now();
            (now, Box::pin(tokio::time::sleep_until(now + allowed)))
        });
        let deadline = *began + allowed;
        while timer.as_mut().poll(cx).is_ready() {
            if Instant::now() >= deadline {
                return true;
            }
            timer.as_mut().reset(deadline);
        }
        false
    }
}

impl http_body::Body for Watched {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        match Pin::new(&mut this.body).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(data) = frame.data_ref() {
                    this.arrived += data.len() as u64;
                    if let Some(reader) = &mut this.reader
                        && !reader.admits(data)
                    {
                        return Poll::Ready(Some(Err(this.found.set(EntranceFault::Characters))));
                    }
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Pending if this.is_late(cx) => {
                Poll::Ready(Some(Err(this.found.set(EntranceFault::Slow))))
            }
            other => other,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
