//! Deliveries to a client's connection, one after the other.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{self, Poll},
};

use futures_util::Stream;
use tokio::time::{Instant, Sleep, sleep_until};

use super::{Connection, Delivery, Phase};
use crate::{
    lock,
    node::{inner::Inner, settings::SUPERSEDED},
};

/// Deliveries of one stream to a client, in order. Ends when the stream ends, or when the client
/// should reconnect. Drop it when the client is gone.
pub struct StreamReader {
    connection: Arc<Connection>,
    inner: Arc<Inner>,
    /// Timer for the end of a superseded connection.
    ends: Option<Pin<Box<Sleep>>>,
}

impl fmt::Debug for StreamReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.connection.fmt(f)
    }
}

impl StreamReader {
    pub(crate) fn new(connection: Arc<Connection>, inner: &Arc<Inner>) -> Self {
        metrics::gauge!("mcp_streams_open", "kind" => "P").increment(1.0);
        Self {
            connection,
            inner: Arc::clone(inner),
            ends: None,
        }
    }

    /// Whether a newer connection of the client replaced this one. This one then receives nothing
    /// more and ends within seconds.
    pub fn is_superseded(&self) -> bool {
        self.connection.standing().phase == Phase::Demoted
    }
}

impl Stream for StreamReader {
    type Item = Delivery;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<Option<Delivery>> {
        let this = &mut *self;
        let mut inside = lock(&this.connection.state);
        let Some((since, delivery)) = inside.out.pop_front() else {
            if inside.phase == Phase::Ended {
                return Poll::Ready(None);
            }
            if inside.phase == Phase::Demoted {
                // REVIEW-Q10: the client has another connection. Only a superseded connection has
                // its own timer.
                let until = inside.since + SUPERSEDED;
                let ends = this
                    .ends
                    .get_or_insert_with(|| Box::pin(sleep_until(until)));
                if ends.as_mut().poll(cx).is_ready() {
                    inside.enter(Phase::Ended);
                    return Poll::Ready(None);
                }
            } else {
                this.ends = None;
            }
            if !inside
                .waker
                .as_ref()
                .is_some_and(|waker| waker.will_wake(cx.waker()))
            {
                inside.waker = Some(cx.waker().clone());
            }
            return Poll::Pending;
        };
        let now = Instant::now();
        inside.bytes -= delivery.size();
        inside.drained = now;
        let wants_more = inside.is_starving
            && inside.out.len() * 2 <= inside.bounds.0
            && inside.bytes * 2 <= inside.bounds.1;
        inside.is_starving &= !wants_more;
        drop(inside);
        if let Some(since) = since {
            this.inner.stream_metrics.delivered(since, now);
        }
        if wants_more {
            this.inner.partitions.go_on(&this.connection);
        }
        Poll::Ready(Some(delivery))
    }
}

impl Drop for StreamReader {
    fn drop(&mut self) {
        metrics::gauge!("mcp_streams_open", "kind" => "P").decrement(1.0);
        let connection = &self.connection;
        connection.end();
        self.inner
            .connections
            .remove(connection.stream.session, |other| {
                Arc::ptr_eq(other, connection)
            });
    }
}
