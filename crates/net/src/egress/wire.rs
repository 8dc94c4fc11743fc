//! A connection that is driven by the task that waits for its answer. It has no task of its own, so
//! an exchange wakes only that task. An idle connection is not driven. If the peer closes it, the
//! next check notices, or at the latest the next request, which reads before it writes.

use std::{
    fmt,
    future::{Future as _, poll_fn},
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use hyper::{
    body::Incoming,
    client::conn::http1::{Builder, Connection, SendRequest},
    rt::Write as _,
};
use hyper_rustls::MaybeHttpsStream;
use tokio::task::coop::unconstrained;

use super::connect::GuardedStream;
use crate::tunnel::{Passage, TunnelBody, TunnelError, Unanswered};

type Stream = MaybeHttpsStream<GuardedStream>;

/// Outgoing request.
pub(super) type Outgoing = Request<Full<Bytes>>;

/// Body of an answer, to be read with [`Wire::frame`].
#[derive(Debug)]
pub(super) enum WireBody {
    Own(Incoming),
    Tunnel(TunnelBody),
}

/// Why an exchange broke.
#[derive(Debug, thiserror::Error)]
pub(super) enum WireError {
    #[error(transparent)]
    Own(#[from] hyper::Error),
    #[error(transparent)]
    Tunnel(#[from] TunnelError),
}

impl WireBody {
    pub(super) fn is_end_stream(&self) -> bool {
        match self {
            Self::Own(body) => body.is_end_stream(),
            Self::Tunnel(body) => body.is_end_stream(),
        }
    }

    pub(super) fn size_hint(&self) -> SizeHint {
        match self {
            Self::Own(body) => body.size_hint(),
            Self::Tunnel(body) => body.size_hint(),
        }
    }
}

/// A connection. Dropping it closes it, even while an exchange runs.
pub(super) struct Wire(WireKind);

enum WireKind {
    /// A connection that this task drives.
    Own(Box<Ends>),
    /// A tunnel, which has a task of its own and carries other exchanges too.
    Tunnel(Passage),
}

struct Ends {
    sender: SendRequest<Full<Bytes>>,
    /// `None` once it is at its end.
    connection: Option<Connection<Stream, Full<Bytes>>>,
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wire").finish_non_exhaustive()
    }
}

impl Wire {
    pub(super) async fn new(http: &Builder, stream: Stream) -> hyper::Result<Self> {
        let (sender, connection) = http.handshake(stream).await?;
        let connection = Some(connection);
        Ok(Self(WireKind::Own(Box::new(Ends { sender, connection }))))
    }

    /// A place on a tunnel, for one exchange.
    pub(super) const fn on(passage: Passage) -> Self {
        Self(WireKind::Tunnel(passage))
    }

    /// Sends a request and waits for the head of its answer. A caller that drops the future must
    /// drop the wire.
    pub(super) async fn ask(
        &mut self,
        request: Outgoing,
    ) -> Result<Response<WireBody>, Unanswered<WireError>> {
        let ends = match &mut self.0 {
            WireKind::Own(ends) => &mut **ends,
            WireKind::Tunnel(passage) => {
                return match Box::pin(passage.ask(request)).await {
                    Ok(answer) => Ok(answer.map(WireBody::Tunnel)),
                    Err(failed) => Err(Unanswered {
                        error: failed.error.into(),
                        unsent: failed.unsent,
                    }),
                };
            }
        };
        // Nothing makes it ready but the connection, which is moved right before each look: it
        // needs no waker, and no part in what a task may do at a stretch, because only a waker
        // would tell that there is more.
        let mut answer = pin!(unconstrained(ends.sender.try_send_request(request)));
        let answered = poll_fn(|cx| {
            ends.advance(cx);
            answer.as_mut().poll(&mut unheard())
        });
        match answered.await {
            Ok(answer) => Ok(answer.map(WireBody::Own)),
            Err(mut failed) => Err(Unanswered {
                unsent: failed.take_message(),
                error: failed.into_error().into(),
            }),
        }
    }

    /// Reads the next frame of the body. The future may be dropped and the call repeated without
    /// loss.
    pub(super) async fn frame(
        &mut self,
        body: &mut WireBody,
    ) -> Option<Result<Frame<Bytes>, WireError>> {
        poll_fn(|cx| self.poll_frame(body, cx)).await
    }

    /// Polls for the next frame of the body.
    pub(super) fn poll_frame(
        &mut self,
        body: &mut WireBody,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, WireError>>> {
        let body = match body {
            WireBody::Own(body) => body,
            WireBody::Tunnel(body) => {
                let frame = Pin::new(body).poll_frame(cx);
                return frame.map(|frame| frame.map(|frame| frame.map_err(WireError::from)));
            }
        };
        let mut frame = Pin::new(&mut *body).poll_frame(&mut unheard());
        if frame.is_pending()
            && let WireKind::Own(ends) = &mut self.0
        {
            ends.advance(cx);
            frame = Pin::new(body).poll_frame(&mut unheard());
        }
        frame.map(|frame| frame.map(|frame| frame.map_err(WireError::from)))
    }

    /// Checks a connection before it is kept, and now and then while it is: true if it can take a
    /// request. It wakes no task from then on.
    pub(super) fn is_at_rest(&mut self) -> bool {
        let WireKind::Own(ends) = &mut self.0 else {
            return false;
        };
        ends.advance(&mut unheard());
        ends.connection.is_some() && ends.sender.is_ready()
    }
}

/// Context without a waker, for futures that are polled again anyway.
fn unheard() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

impl Ends {
    /// Reads and writes as far as possible without waiting. When the connection ends it is dropped,
    /// and pending requests get an error.
    fn advance(&mut self, cx: &mut Context<'_>) {
        let Some(connection) = &mut self.connection else {
            return;
        };
        if let Poll::Ready(ended) = Pin::new(connection).poll(cx) {
            self.connection = None;
            if let Err(error) = ended {
                tracing::debug!(%error, "an outgoing connection ended early");
            }
        }
    }
}

impl Drop for Ends {
    /// Sends the TLS close message, unless that would have to wait.
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            let mut stream = connection.into_parts().io;
            let _ = Pin::new(&mut stream).poll_shutdown(&mut unheard());
        }
    }
}
