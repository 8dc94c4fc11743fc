//! Answers that are read while they arrive, such as event streams.

use std::{
    pin::Pin,
    sync::atomic::AtomicU8,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use url::Url;

use super::{
    Answered, Egress, EgressError, EgressRequest, EgressResponse, Phase,
    wire::{Wire, WireBody},
};

/// An answer whose head has arrived, and the body of it. Dropping it before its end closes the
/// connection, so that the peer can stop sending.
#[derive(Debug)]
pub struct EgressStream {
    /// Status.
    pub status: StatusCode,
    /// Headers as received.
    pub headers: HeaderMap,
    /// The URL that answered, after redirects.
    pub final_url: Url,
    body: WireBody,
    limit: usize,
    /// Until the body is at its end; then others use it.
    wire: Option<Wire>,
    egress: Egress,
}

impl Egress {
    /// Sends one request and returns the answer as soon as its head is there. The request's
    /// `timeout` ends there too. The reader limits the time and the size of the body.
    ///
    /// # Errors
    /// See [`EgressError`].
    pub async fn open(&self, mut request: EgressRequest) -> Result<EgressStream, EgressError> {
        let (after, limit) = (request.timeout, request.max_response_bytes);
        let phase = AtomicU8::new(Phase::Answer as u8);
        match tokio::time::timeout(after, self.head(&mut request)).await {
            Ok(answered) => {
                let Answered { answer, wire } = answered?;
                let (parts, body) = answer.into_parts();
                Ok(EgressStream {
                    status: parts.status,
                    headers: parts.headers,
                    final_url: request.url,
                    body,
                    limit,
                    wire: Some(wire),
                    egress: self.clone(),
                })
            }
            Err(_elapsed) => Err(EgressError::Timeout {
                phase: Phase::from_u8(phase.into_inner()),
                after,
            }),
        }
    }
}

impl EgressStream {
    /// Reads the next piece of the body; `None` at its proper end. The future may be dropped and
    /// the call repeated without loss.
    ///
    /// # Errors
    /// [`EgressError::Protocol`] if the connection broke.
    pub async fn piece(&mut self) -> Result<Option<Bytes>, EgressError> {
        while let Some(frame) = self.frame().await {
            if let Ok(data) = frame?.into_data() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }

    /// Reads what is left as one body, within the limit of the request.
    ///
    /// # Errors
    /// [`EgressError::TooLarge`], or [`EgressError::Protocol`] if the connection broke.
    pub async fn whole(self) -> Result<EgressResponse, EgressError> {
        let mut body = Bytes::new();
        if let Some(mut wire) = self.wire {
            body = super::read_bounded(&mut wire, self.body, self.limit).await?;
            self.egress.inner.pool.put(&self.final_url, wire);
        }
        Ok(EgressResponse {
            status: self.status,
            headers: self.headers,
            body,
            final_url: self.final_url,
        })
    }

    /// The body is at its end: others may use the connection.
    fn give_back(&mut self) {
        if let Some(wire) = self.wire.take() {
            self.egress.inner.pool.put(&self.final_url, wire);
        }
    }
}

impl Body for EgressStream {
    type Data = Bytes;
    type Error = EgressError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, EgressError>>> {
        let this = self.get_mut();
        let Some(wire) = &mut this.wire else {
            return Poll::Ready(None);
        };
        let frame = ready!(wire.poll_frame(&mut this.body, cx));
        // A reader that sees the end with the last frame does not ask again.
        if frame.is_none() || this.body.is_end_stream() {
            this.give_back();
        }
        Poll::Ready(frame.map(|frame| frame.map_err(EgressError::broken)))
    }

    fn is_end_stream(&self) -> bool {
        self.wire.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
