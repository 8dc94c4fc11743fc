//! State that the handles of a writer and its task share.

use std::{
    collections::VecDeque,
    sync::{
        Mutex,
        atomic::{AtomicU64, AtomicUsize},
    },
};

use bytes::Bytes;
use portolan_model::id::TenantId;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::{
    lock,
    node::payload::Lost,
    store::{Class, StreamKey},
};

/// End of a stream.
#[derive(Debug)]
pub(crate) enum Ending {
    Final(Bytes),
    Cancelled,
    Lost(Lost),
    /// The log already has the final response.
    Logged,
}

#[derive(Debug)]
pub(super) struct Item {
    pub(super) class: Class,
    pub(super) question: Option<String>,
    pub(super) payload: Bytes,
}

#[derive(Debug, Default)]
pub(super) struct WriterQueue {
    pub(super) items: VecDeque<Item>,
    pub(super) bytes: usize,
    pub(super) ending: Option<Ending>,
    /// The queue takes no more items.
    pub(super) is_over: bool,
    /// The task stops without a final response.
    pub(super) is_abandoned: bool,
    /// A reader did not find the stream in the store.
    pub(super) must_audit: bool,
}

/// State that the handle and the task share.
#[derive(Debug)]
pub(crate) struct WriterState {
    pub(crate) stream: StreamKey,
    /// Tenant of the stream.
    pub(crate) tenant: TenantId,
    /// Bytes in the buffer and the queue.
    pub(crate) held: AtomicUsize,
    /// Bytes that were appended to the log.
    pub(crate) logged: AtomicU64,
    pub(super) queue: Mutex<WriterQueue>,
    pub(super) work: Notify,
    pub(super) room: Notify,
    /// Cancelled when the work has to stop.
    pub(super) fenced: CancellationToken,
    /// Cancelled when the end is in the log, or another node writes it.
    pub(crate) done: CancellationToken,
}

impl WriterState {
    pub(super) fn new(stream: StreamKey, tenant: TenantId) -> Self {
        Self {
            stream,
            tenant,
            held: AtomicUsize::new(0),
            logged: AtomicU64::new(0),
            queue: Mutex::default(),
            work: Notify::new(),
            room: Notify::new(),
            fenced: CancellationToken::new(),
            done: CancellationToken::new(),
        }
    }

    /// Ends the stream after the queued events. The first ending counts.
    pub(crate) fn finish(&self, ending: Ending) {
        let mut queue = lock(&self.queue);
        if !queue.is_over {
            queue.is_over = true;
            queue.ending = Some(ending);
        }
        drop(queue);
        self.work.notify_one();
        self.room.notify_waiters();
    }

    /// Ends the stream and stops the work.
    pub(crate) fn cut(&self, lost: Lost) {
        self.finish(Ending::Lost(lost));
        self.fenced.cancel();
    }

    /// Requests an audit: whether the stream exists and still belongs to this writer.
    pub(crate) fn audit(&self) {
        lock(&self.queue).must_audit = true;
        self.work.notify_one();
    }

    /// Stops the writer without a final response.
    pub(crate) fn abandon(&self) {
        {
            let mut queue = lock(&self.queue);
            queue.is_over = true;
            queue.is_abandoned = true;
        }
        self.fenced.cancel();
        self.work.notify_one();
        self.room.notify_waiters();
    }
}
