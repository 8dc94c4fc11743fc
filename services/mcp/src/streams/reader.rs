//! The reader of an open stream: waits for notifications, sends them at the allowed rate, and ends.

use std::{collections::VecDeque, time::Duration};

use axum::response::Response;
use bytes::Bytes;
use portolan_cluster::{End, OpenStream, node::Running};
use portolan_net::sse_body::SseBody;
use portolan_protocol::sse;
use tokio::time::Instant;

use crate::{
    call::stream_permit::StreamPermit,
    streams::{
        services::StreamServices,
        tag::{APART, Tag, reconnect_after},
        tasks::{Attendance, attend},
    },
};

/// The last frame of a stream.
#[derive(Debug, Clone)]
pub(crate) enum Farewell {
    /// None: the stream is closed.
    Nothing,
    /// The time until the client should come back.
    Retry,
    /// With the result of the request that opened it (MCP-SB-8).
    Completed(Bytes),
}

struct Reader {
    open: OpenStream<Tag>,
    state: StreamServices,
    first: VecDeque<Bytes>,
    /// Notifications of tasks may wait.
    tells_tasks: bool,
    last_notice: Option<Instant>,
    until: Instant,
    farewell: Farewell,
    held: Holding,
    over: bool,
    /// The subscription to tasks.
    attendance: Option<Attendance>,
}

/// The resources that a stream holds while it is open.
pub(crate) struct Holding {
    /// The entry among the running requests of its session.
    pub(crate) running: Option<Running>,
    /// The permit, held until the stream ends.
    pub(crate) pass: StreamPermit,
}

pub(crate) fn respond(
    state: &StreamServices,
    open: OpenStream<Tag>,
    first: VecDeque<Bytes>,
    life: time::Duration,
    farewell: Farewell,
    held: Holding,
) -> Response {
    let life = Duration::try_from(life).unwrap_or(Duration::ZERO);
    // From here on changes of tasks arrive; the state of the named tasks is sent first.
    let attendance = attend(state, &open);
    let reader = Reader {
        tells_tasks: attendance.is_some(),
        attendance,
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
        loop {
            if self.over {
                return None;
            }
            // Checked before each frame: no frame goes out after the end of the token or the
            // session.
            if self.is_revoked() {
                return self.goodbye(End::Revoked);
            }
            if let Some(frame) = self.first.pop_front() {
                return Some((frame, self));
            }
            if !self.held.pass.is_here() {
                let stopping = self.state.stopping.clone();
                let is_in = tokio::select! {
                    biased;
                    () = stopping.cancelled() => false,
                    is_in = self.held.pass.wait() => is_in,
                    () = ended(self.held.running.as_ref()) => return self.goodbye(End::Revoked),
                };
                if is_in {
                    continue;
                }
                return self.goodbye(End::Drain);
            }
            if self.tells_tasks {
                match Box::pin(self.open.tag.next_of_tasks(&self.state)).await {
                    Some(_) if self.is_revoked() => {}
                    Some(frame) => return Some((frame, self)),
                    None => self.tells_tasks = false,
                }
                continue;
            }
            let stopping = self.state.stopping.clone();
            let end = tokio::select! {
                biased;
                () = stopping.cancelled() => End::Drain,
                next = self.open.next() => match next {
                    Ok(_) => {
                        self.pace().await;
                        continue;
                    }
                    Err(end) => end,
                },
                () = ended(self.held.running.as_ref()) => End::Revoked,
                () = tokio::time::sleep_until(self.until) => End::Drain,
            };
            return self.goodbye(end);
        }
    }

    fn is_revoked(&self) -> bool {
        let running = self.held.running.as_ref();
        self.open.is_revoked() || running.is_some_and(|running| running.cancelled.is_cancelled())
    }

    /// Waits so that changes close together are sent at once, and each only once (MCP-SB-11).
    async fn pace(&mut self) {
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
        self.open.tag.begin_to_tell();
        self.tells_tasks = self.attendance.is_some();
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
