//! What a running call tells its client, no more often than it may: [`portolan_protocol::pace`]
//! decides, and time is told here.

use bytes::Bytes;
use portolan_protocol::{
    jsonrpc::{ProgressToken, Raw},
    method::Method,
    pace::{self, Lane, Pace},
    progress::{self, Gate, Progress},
    revision::Revision,
};
use tokio::time::{Instant, sleep_until};

use crate::instruments;

/// Notifications of one speaker.
#[derive(Debug)]
pub(crate) struct Paced(Pace<Bytes>);

impl Paced {
    /// So many a second of each lane.
    pub(crate) fn new(most: usize) -> Self {
        Self(Pace::new(most))
    }

    /// As often as a client is told that waits for its answer (PP-3).
    pub(crate) fn of_client() -> Self {
        Self::new(pace::MOST)
    }

    /// What is told now: this, or nothing yet.
    pub(crate) fn take(&mut self, lane: Lane, notice: Bytes) -> Option<Bytes> {
        let told = self.0.take(lane, notice, Instant::now().into_std());
        let dropped = self.0.dropped();
        if dropped > 0 {
            instruments::notices_dropped(dropped);
        }
        told
    }

    /// One that waited, as soon as it may be told. Without one: never. Cancel safe.
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

    /// One that waits, before the answer.
    pub(crate) fn last(&mut self) -> Option<Bytes> {
        self.0.last()
    }
}

/// With which others a notification is counted. `None`: it is told in any case.
pub(crate) fn lane(notice: &Bytes) -> Option<Lane> {
    let notice = Raw::parse(notice.clone()).ok()?;
    let method = notice.get("method")?.string()?;
    if method != Method::LogMessage.name() {
        return None;
    }
    let logger = notice.get("params")?.get("logger");
    Some(Lane::Log(logger.and_then(|logger| logger.string())))
}

/// What a call tells, in the words of its client.
#[derive(Debug)]
pub(crate) struct Notices {
    telling: Option<(ProgressToken, Gate)>,
    revision: Revision,
    paced: Paced,
}

impl Notices {
    /// Progress is wanted under `token`, if at all.
    pub(crate) fn new(revision: Revision, token: Option<ProgressToken>) -> Self {
        Self {
            telling: token.map(|token| (token, Gate::default())),
            revision,
            paced: Paced::of_client(),
        }
    }

    /// Progress that is not asked for is not told (PP-1).
    pub(crate) const fn wants_progress(&self) -> bool {
        self.telling.is_some()
    }

    /// How far the call is: what is told of that now.
    pub(crate) fn progress(&mut self, progress: &Progress) -> Option<Bytes> {
        let (token, gate) = self.telling.as_mut()?;
        if !gate.passes(progress.progress) {
            return None;
        }
        let notice = progress::notification(self.revision, token, progress);
        self.paced.take(Lane::Progress, notice.into())
    }

    /// A whole notification: what is told now.
    pub(crate) fn message(&mut self, notice: Bytes) -> Option<Bytes> {
        match lane(&notice) {
            Some(lane) => self.paced.take(lane, notice),
            None => Some(notice),
        }
    }

    /// One that waited, as soon as it may be told. Without one: never. Cancel safe.
    pub(crate) async fn due(&mut self) -> Bytes {
        self.paced.due().await
    }

    /// One that waits, before the answer.
    pub(crate) fn last(&mut self) -> Option<Bytes> {
        self.paced.last()
    }
}
