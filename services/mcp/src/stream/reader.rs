//! The reader of an open stream: waits for what there is to tell, tells it no more often than it may, and says goodbye.

use std::{collections::VecDeque, time::Duration};

use axum::response::Response;
use bytes::Bytes;
use portolan_cluster::{End, OpenStream, node::Running};
use portolan_net::sse_body::SseBody;
use portolan_protocol::sse;
use tokio::time::Instant;

use super::{APART, Tag, reconnect_after};
use crate::{limits::StreamPass, state::McpState};

/// How a stream says goodbye.
#[derive(Debug, Clone)]
pub(super) enum Farewell {
    /// By closing.
    Nothing,
    /// With the time after which to come back.
    Retry,
    /// With the result of the request that opened it (SB-8).
    Completed(Bytes),
}

struct Reader {
    open: OpenStream<Tag>,
    state: McpState,
    first: VecDeque<Bytes>,
    last_notice: Option<Instant>,
    until: Instant,
    farewell: Farewell,
    held: Holding,
    over: bool,
}

/// What a stream holds while it is open.
pub(super) struct Holding {
    /// The place among the running requests of its session.
    pub(super) running: Option<Running>,
    #[expect(dead_code, reason = "held, and given back when the stream ends")]
    pub(super) pass: StreamPass,
}

pub(super) fn respond(
    state: &McpState,
    open: OpenStream<Tag>,
    first: VecDeque<Bytes>,
    life: time::Duration,
    farewell: Farewell,
    held: Holding,
) -> Response {
    let life = Duration::try_from(life).unwrap_or(Duration::ZERO);
    let reader = Reader {
        open,
        state: state.clone(),
        first,
        last_notice: None,
        until: Instant::now() + life,
        farewell,
        held,
        over: false,
    };
    SseBody::new(futures_util::stream::unfold(reader, Reader::next)).into_response()
}

/// Completes when the session of a stream is over.
async fn ended(running: Option<&Running>) {
    match running {
        Some(running) => running.cancelled.cancelled().await,
        None => std::future::pending().await,
    }
}

impl Reader {
    async fn next(mut self) -> Option<(Bytes, Self)> {
        if let Some(frame) = self.first.pop_front() {
            return Some((frame, self));
        }
        if self.over {
            return None;
        }
        let stopping = self.state.stopping.clone();
        let end = tokio::select! {
            biased;
            () = stopping.cancelled() => End::Drain,
            next = self.open.next() => match next {
                Ok(_) => return Box::pin(self.pace()).await,
                Err(end) => end,
            },
            () = ended(self.held.running.as_ref()) => End::Revoked,
            () = tokio::time::sleep_until(self.until) => End::Drain,
        };
        self.goodbye(end)
    }

    /// What comes too close together is told at once, and each thing once (SB-11).
    async fn pace(mut self) -> Option<(Bytes, Self)> {
        if let Some(last) = self.last_notice {
            let stopping = self.state.stopping.clone();
            tokio::select! {
                () = tokio::time::sleep_until(last + APART) => {}
                () = stopping.cancelled() => {}
            }
        }
        while self.open.take_waiting().is_some() {}
        self.last_notice = Some(Instant::now());
        self.first.extend(self.open.tag.frames(&self.state));
        let of_tasks = self.open.tag.task_frames(&self.state).await;
        self.first.extend(of_tasks);
        // A comment, if another doorbell told it already.
        let frame = self.first.pop_front();
        Some((frame.unwrap_or(Bytes::from_static(sse::KEEP_ALIVE)), self))
    }

    fn goodbye(mut self, end: End) -> Option<(Bytes, Self)> {
        self.over = true;
        let frame = match (self.farewell.clone(), end) {
            (Farewell::Nothing, _) | (Farewell::Retry, End::Revoked) => return None,
            (Farewell::Retry, End::Drain) => Bytes::from(sse::retry(reconnect_after())),
            (Farewell::Completed(frame), _) => frame,
        };
        Some((frame, self))
    }
}
