//! What a client's connection takes from the node, one delivery after the other.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{self, Poll},
};

use futures_util::Stream;
use tokio::time::Instant;

use super::{Connection, Delivery, Phase};
use crate::{
    lock,
    node::{Inner, chores::Chore},
};

/// What a client gets of one stream, in order. Ends when the stream is over, or when the client had better come back. To drop it
/// is to say that the client is gone.
pub struct StreamReader {
    connection: Arc<Connection>,
    inner: Arc<Inner>,
}

impl fmt::Debug for StreamReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.connection.fmt(f)
    }
}

impl StreamReader {
    pub(in crate::node) fn new(connection: Arc<Connection>, inner: &Arc<Inner>) -> Self {
        metrics::gauge!("mcp_streams_open", "kind" => "P").increment(1.0);
        Self {
            connection,
            inner: Arc::clone(inner),
        }
    }

    /// Whether another connection of the client took the stream over: this one stays open but gets nothing more.
    pub fn is_superseded(&self) -> bool {
        self.connection.standing().phase == Phase::Demoted
    }
}

impl Stream for StreamReader {
    type Item = Delivery;

    fn poll_next(self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<Option<Delivery>> {
        let mut inside = lock(&self.connection.state);
        let Some((since, delivery)) = inside.out.pop_front() else {
            if inside.phase == Phase::Ended {
                return Poll::Ready(None);
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
            self.inner.vitals.delivered(since, now);
        }
        if wants_more {
            self.inner.lanes.go_on(&self.connection);
        }
        Poll::Ready(Some(delivery))
    }
}

impl Drop for StreamReader {
    fn drop(&mut self) {
        metrics::gauge!("mcp_streams_open", "kind" => "P").decrement(1.0);
        let connection = &self.connection;
        let standing = connection.standing();
        connection.end();
        self.inner
            .connections
            .remove(connection.stream.session, |other| {
                Arc::ptr_eq(other, connection)
            });
        if standing.phase == Phase::Attached {
            self.inner.chores.add(Chore::Detach {
                stream: connection.stream,
                generation: standing.generation,
            });
        }
    }
}
