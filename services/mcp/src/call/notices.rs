//! Rate-limited notifications of a running call: [`portolan_protocol::pace`] decides, with the time
//! from here.

use bytes::Bytes;
use portolan_protocol::{
    jsonrpc::{ProgressToken, Raw},
    method::Method,
    pace::{self, Pace, Queue},
    progress::{self, Gate, Progress},
    revision::Revision,
};
use tokio::time::{Instant, sleep_until};

use crate::instruments;

/// Notifications of one sender.
#[derive(Debug)]
pub(crate) struct Paced(Pace<Bytes>);

impl Paced {
    /// Allows `most` notifications a second in each queue.
    pub(crate) fn new(most: usize) -> Self {
        Self(Pace::new(most))
    }

    /// The rate for a client that waits for its answer (MCP-PP-3).
    pub(crate) fn of_client() -> Self {
        Self::new(pace::MOST)
    }

    /// Takes a notification and returns the one to send now, if any.
    pub(crate) fn take(&mut self, queue: Queue, notice: Bytes) -> Option<Bytes> {
        let told = self.0.take(queue, notice, Instant::now().into_std());
        let dropped = self.0.dropped();
        if dropped > 0 {
            instruments::notices_dropped(dropped);
        }
        told
    }

    /// A delayed notification, as soon as the rate allows it. Without one: never. Cancel safe.
    pub(crate) async fn due(&mut self) -> Bytes {
        loop {
            let Some(due) = self.0.due() else {
                return std::future::pending().await;
            };
            sleep_until(Instant::from_std(due)).await;
            if let Some(notice) = self.0.next(Instant::now().into_std()) {
                return notice;
            }
        }
    }

    /// A delayed notification, to be sent before the answer.
    pub(crate) fn last(&mut self) -> Option<Bytes> {
        self.0.last()
    }
}

/// The queue in which a notification is counted. `None`: it is always sent.
pub(crate) fn queue(notice: &Bytes) -> Option<Queue> {
    let notice = Raw::parse(notice.clone()).ok()?;
    let method = notice.get("method")?.string()?;
    if method != Method::LogMessage.name() {
        return None;
    }
    let logger = notice.get("params")?.get("logger");
    Some(Queue::Log(logger.and_then(|logger| logger.string())))
}

/// The notifications of a call, in the form of its client.
#[derive(Debug)]
pub(crate) struct Notices {
    reporting: Option<(ProgressToken, Gate)>,
    revision: Revision,
    paced: Paced,
}

impl Notices {
    /// `token` is the token under which the client wants progress, if it does.
    pub(crate) fn new(revision: Revision, token: Option<ProgressToken>) -> Self {
        Self {
            reporting: token.map(|token| (token, Gate::default())),
            revision,
            paced: Paced::of_client(),
        }
    }

    /// Whether the client wants progress (MCP-PP-1).
    pub(crate) const fn wants_progress(&self) -> bool {
        self.reporting.is_some()
    }

    /// Takes progress and returns the notification to send now, if any.
    pub(crate) fn progress(&mut self, progress: &Progress) -> Option<Bytes> {
        let (token, gate) = self.reporting.as_mut()?;
        if !gate.passes(progress.progress) {
            return None;
        }
        let notice = progress::notification(self.revision, token, progress);
        self.paced.take(Queue::Progress, notice.into())
    }

    /// Takes a whole notification and returns the one to send now, if any.
    pub(crate) fn message(&mut self, notice: Bytes) -> Option<Bytes> {
        match queue(&notice) {
            Some(queue) => self.paced.take(queue, notice),
            None => Some(notice),
        }
    }

    /// A delayed notification, as soon as the rate allows it. Without one: never. Cancel safe.
    pub(crate) async fn due(&mut self) -> Bytes {
        self.paced.due().await
    }

    /// A delayed notification, to be sent before the answer.
    pub(crate) fn last(&mut self) -> Option<Bytes> {
        self.paced.last()
    }
}
