//! The HTTP/2 connection of a tunnel, as the client sees it.
//!
//! A request wakes the task of the connection once, which writes its head and its body together.
//! The answer wakes the task that waits for it. hyper's client is not used: it has a task more on
//! each way, and writes the head before the body (ADR 62).

use std::{
    fmt,
    future::{pending, poll_fn},
    pin::Pin,
    task::{Context, Poll, Waker, ready},
    time::Duration,
};

use bytes::Bytes;
use futures_util::FutureExt as _;
use h2::{
    Ping, PingPong, Reason, RecvStream,
    client::{Builder, SendRequest},
};
use http::{HeaderMap, HeaderValue, Request, Response, header};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt as _, Full};
use hyper::rt::{Executor as _, Read, Write};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{
    sync::oneshot,
    time::{sleep, timeout},
};

/// Interval of HTTP/2 pings, and the time for their answer.
const PING: Duration = Duration::from_secs(10);
const PONG: Duration = Duration::from_secs(10);
/// Receive windows: a large answer of one request does not stop the others.
const STREAM_WINDOW: u32 = 512 * 1024;
const CONNECTION_WINDOW: u32 = 4 * 1024 * 1024;
/// Largest head of an answer.
const HEAD_BYTES: u32 = 16 * 1024;

/// Why a tunnel, or a request on it, ended.
#[derive(Debug, thiserror::Error)]
pub enum TunnelError {
    /// The connection or the stream broke, or the peer does not speak HTTP/2.
    #[error(transparent)]
    Http2(#[from] h2::Error),
    /// The peer answered no ping.
    #[error("no answer to a ping within {} s", PONG.as_secs())]
    Silent,
}

/// A request without an answer, and why.
pub(crate) struct Unanswered<E = TunnelError> {
    pub(crate) error: E,
    /// The request, if no byte of it was sent.
    pub(crate) unsent: Option<Request<Full<Bytes>>>,
}

/// Sends requests. Cloning shares the connection.
#[derive(Clone)]
pub(super) struct Requests(SendRequest<Bytes>);

impl fmt::Debug for Requests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Requests").finish_non_exhaustive()
    }
}

/// Begins HTTP/2 and starts the task of the connection. Also returns a future that waits for the
/// connection's end. The connection ends with its last request once all [`Requests`] are dropped.
pub(super) async fn open<I>(
    io: I,
) -> Result<
    (
        Requests,
        impl Future<Output = Result<(), TunnelError>> + Send + use<I>,
    ),
    TunnelError,
>
where
    I: Read + Write + Unpin + Send + 'static,
{
    let (requests, mut connection) = Builder::new()
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_header_list_size(HEAD_BYTES)
        .enable_push(false)
        .handshake(TokioIo::new(io))
        .await?;
    let pings = connection.ping_pong();
    let (ended, end) = oneshot::channel();
    TokioExecutor::new().execute(async move {
        let outcome = tokio::select! {
            biased;
            outcome = connection => outcome.map_err(TunnelError::from),
            () = silence(pings) => Err(TunnelError::Silent),
        };
        let _ = ended.send(outcome);
    });
    // The sender is dropped without a word only when the runtime ends.
    let end = async { end.await.unwrap_or(Ok(())) };
    Ok((Requests(requests), end))
}

/// Ends when a ping has no answer.
async fn silence(pings: Option<PingPong>) {
    let Some(mut pings) = pings else {
        return pending().await;
    };
    loop {
        sleep(PING).await;
        match timeout(PONG, pings.ping(Ping::opaque())).await {
            Ok(Ok(_)) => {}
            // The connection broke, and says why.
            Ok(Err(_)) => return pending().await,
            Err(_elapsed) => return,
        }
    }
}

impl Requests {
    /// True if the peer takes no more requests.
    pub(super) fn is_closed(&self) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        let ready = self.0.clone().poll_ready(&mut context);
        matches!(ready, Poll::Ready(Err(_)))
    }

    /// Sends a request and waits for the head of its answer. Dropping the future cancels the
    /// request.
    pub(super) async fn ask(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<TunnelBody>, Unanswered> {
        if let Err(error) = poll_fn(|cx| self.0.poll_ready(cx)).await {
            return Err(Unanswered {
                error: error.into(),
                unsent: Some(request),
            });
        }
        self.exchange(request).await.map_err(|error| Unanswered {
            error: error.into(),
            unsent: None,
        })
    }

    async fn exchange(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<TunnelBody>, h2::Error> {
        let (mut head, body) = request.into_parts();
        let body = bytes_of(body);
        if !body.is_empty() {
            let length = HeaderValue::from(body.len());
            head.headers.insert(header::CONTENT_LENGTH, length);
        }
        let head = Request::from_parts(head, ());
        let (answer, mut stream) = self.0.send_request(head, body.is_empty())?;
        if !body.is_empty() {
            stream.send_data(body, true)?;
        }
        drop(stream);
        let (head, stream) = answer.await?.into_parts();
        let left = announced(&head.headers);
        Ok(Response::from_parts(head, TunnelBody { stream, left }))
    }
}

/// The bytes of a body that has them all.
fn bytes_of(mut body: Full<Bytes>) -> Bytes {
    let frame = body.frame().now_or_never().flatten();
    let data = frame.and_then(|frame| match frame {
        Ok(frame) => frame.into_data().ok(),
        Err(never) => match never {},
    });
    data.unwrap_or_default()
}

fn announced(headers: &HeaderMap) -> Option<u64> {
    let length = headers.get(header::CONTENT_LENGTH)?;
    length.to_str().ok()?.parse().ok()
}

/// Body of an answer. Dropping it before its end cancels the request.
pub struct TunnelBody {
    stream: RecvStream,
    /// Bytes that are to come, if their number was announced.
    left: Option<u64>,
}

impl fmt::Debug for TunnelBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TunnelBody")
            .field("left", &self.left)
            .finish_non_exhaustive()
    }
}

impl Body for TunnelBody {
    type Data = Bytes;
    type Error = TunnelError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, TunnelError>>> {
        let this = self.get_mut();
        let Some(data) = ready!(this.stream.poll_data(cx)) else {
            return Poll::Ready(None);
        };
        Poll::Ready(match data {
            Ok(data) => {
                let length = data.len();
                if let Some(left) = &mut this.left {
                    *left = left.saturating_sub(length as u64);
                }
                // A stream that has ended has no window to open again.
                let _ = this.stream.flow_control().release_capacity(length);
                Some(Ok(Frame::data(data)))
            }
            // The answer is whole, and the peer reads no more of the request (RFC 9113 §8.1).
            Err(error) if error.reason() == Some(Reason::NO_ERROR) => None,
            Err(error) => Some(Err(error.into())),
        })
    }

    fn is_end_stream(&self) -> bool {
        self.stream.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        if self.stream.is_end_stream() {
            return SizeHint::with_exact(0);
        }
        self.left
            .map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
