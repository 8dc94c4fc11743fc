//! Body of server-sent events. It sends frames as they come, a comment after a while without
//! frames, and ends at shutdown.
//!
//! Frames are finished bytes (`event: …\ndata: …\n\n`); this module does not parse them. The
//! channel in front is bounded, so that a client that does not read slows the writer instead of
//! filling memory (TEST-B11).

use std::convert::Infallible;
use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::Stream;
use http::header::{self, HeaderName, HeaderValue};
use http_body::Frame;
use tokio::sync::mpsc;
use tokio::time::{Instant, Sleep};

/// MCP-T-9: a comment on idle streams every 15 s. Each stream is up to 2 s off, so that ten
/// thousand of them do not speak at once.
pub const KEEP_ALIVE: Duration = Duration::from_secs(15);
const SPREAD_MS: u64 = 4_000;

/// How long [`SseSender::send`] waits for a client that does not read.
pub const STALLED_AFTER: Duration = Duration::from_secs(60);

const COMMENT: Bytes = Bytes::from_static(b":\n\n");

/// Why a frame could not be handed over. Either way the stream is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The client disconnected.
    #[error("the client went away")]
    Gone,
    /// The client has not read for [`STALLED_AFTER`].
    #[error("the client does not read")]
    Stalled,
}

/// The writing end. Dropping the last sender ends the stream.
#[derive(Debug, Clone)]
pub struct SseSender {
    frames: mpsc::Sender<Bytes>,
}

impl SseSender {
    /// Sends one frame, and waits while the channel is full.
    ///
    /// # Errors
    /// See [`SendError`].
    pub async fn send(&self, frame: Bytes) -> Result<(), SendError> {
        match self.frames.send_timeout(frame, STALLED_AFTER).await {
            Ok(()) => Ok(()),
            Err(mpsc::error::SendTimeoutError::Timeout(_)) => Err(SendError::Stalled),
            Err(mpsc::error::SendTimeoutError::Closed(_)) => Err(SendError::Gone),
        }
    }

    /// Completes when the client disconnects.
    pub async fn gone(&self) {
        self.frames.closed().await;
    }
}

/// A body fed through a channel of `frames` frames.
pub fn channel(frames: usize) -> (SseSender, SseBody<Receiver>) {
    let (sender, receiver) = mpsc::channel(frames.max(1));
    (
        SseSender { frames: sender },
        SseBody::new(Receiver(receiver)),
    )
}

/// The reading end of [`channel`] as a stream.
#[derive(Debug)]
pub struct Receiver(mpsc::Receiver<Bytes>);

impl Stream for Receiver {
    type Item = Bytes;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.0.poll_recv(cx)
    }
}

/// A body over a stream of frames. The stream is polled for the next frame only when the connection
/// can take one.
pub struct SseBody<S> {
    frames: Pin<Box<S>>,
    every: Duration,
    /// When the next comment is due; the timer is armed only when the stream has nothing.
    quiet_until: Instant,
    timer: Pin<Box<Sleep>>,
    ended: bool,
}

impl<S> std::fmt::Debug for SseBody<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SseBody")
            .field("every", &self.every)
            .finish_non_exhaustive()
    }
}

impl<S: Stream<Item = Bytes> + Send + 'static> SseBody<S> {
    /// A body with the keep-alive of MCP-T-9.
    pub fn new(frames: S) -> Self {
        let offset = RandomState::new().hash_one(0_u8) % SPREAD_MS;
        let earliest = KEEP_ALIVE.saturating_sub(Duration::from_millis(SPREAD_MS / 2));
        Self::with_keep_alive(frames, earliest + Duration::from_millis(offset))
    }

    /// A body with another keep-alive.
    pub fn with_keep_alive(frames: S, every: Duration) -> Self {
        let quiet_until = Instant::now() + every;
        Self {
            frames: Box::pin(frames),
            every,
            quiet_until,
            timer: Box::pin(tokio::time::sleep_until(quiet_until)),
            ended: false,
        }
    }

    /// The whole answer, with the headers of MCP-T-8.
    pub fn into_response(self) -> Response {
        let mut answer = Response::new(Body::new(self));
        let headers = answer.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("text/event-stream"),
        );
        headers.insert(
            header::CACHE_CONTROL,
            HeaderValue::from_static("no-cache, no-transform"),
        );
        headers.insert(
            HeaderName::from_static("x-accel-buffering"),
            HeaderValue::from_static("no"),
        );
        answer
    }

    fn poll_quiet(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.timer.as_mut().poll(cx).is_ready() {
            if Instant::now() >= self.quiet_until {
                return Poll::Ready(());
            }
            let due = self.quiet_until;
            self.timer.as_mut().reset(due);
        }
        Poll::Pending
    }
}

impl<S: Stream<Item = Bytes> + Send + 'static> http_body::Body for SseBody<S> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = &mut *self;
        if this.ended {
            return Poll::Ready(None);
        }
        match this.frames.as_mut().poll_next(cx) {
            Poll::Ready(Some(frame)) => {
                this.quiet_until = Instant::now() + this.every;
                Poll::Ready(Some(Ok(Frame::data(frame))))
            }
            Poll::Ready(None) => {
                this.ended = true;
                Poll::Ready(None)
            }
            Poll::Pending => match this.poll_quiet(cx) {
                Poll::Ready(()) => {
                    this.quiet_until = Instant::now() + this.every;
                    Poll::Ready(Some(Ok(Frame::data(COMMENT))))
                }
                Poll::Pending => Poll::Pending,
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ended
    }
}
