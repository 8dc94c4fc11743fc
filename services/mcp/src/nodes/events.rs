//! Events of this process: lower modules publish them, and open streams subscribe.
//!
//! Delivery is direct, in the order of the calls, and loses nothing.

use std::{
    fmt,
    sync::{Arc, PoisonError, RwLock, Weak},
};

use bytes::Bytes;
use portolan_cluster::{SessionKey, store::StreamKey};
use portolan_model::id::TenantId;

use crate::nodes::message::MessageKind;

/// An event.
#[derive(Debug)]
pub(crate) enum Event {
    /// A task has changed. `session` is the session that made it, if one did.
    TaskChanged {
        tenant: TenantId,
        item: StreamKey,
        session: Option<SessionKey>,
    },
    /// A task sends a notification to the session that made it.
    TaskNotice {
        tenant: TenantId,
        session: SessionKey,
        item: StreamKey,
        kind: MessageKind,
        notice: Bytes,
    },
    /// Messages about tasks may be lost: named tasks are read again.
    ///
    /// The value is one group of streams; `None` is all.
    PollTasks(Option<u64>),
    /// A notification of an upstream server, or about subscriptions there.
    Upstream {
        tenant: TenantId,
        /// The server, as [`UpstreamSource::place`](crate::catalog::upstream::UpstreamSource).
        place: String,
        change: UpstreamChange,
    },
}

/// A change at an upstream server.
#[derive(Debug)]
pub(crate) enum UpstreamChange {
    /// The resource with the server's own URI has changed.
    Updated(String),
    /// A session subscribed to the client's `uri`, which is `own` at the server.
    ///
    /// `own` is `None` after it unsubscribed.
    Subscribed {
        session: SessionKey,
        own: Option<String>,
        uri: String,
    },
    /// The subscriptions of a session may have changed: its record is read.
    ReadRecord(SessionKey),
}

/// A receiver of events.
pub(crate) trait EventSubscriber: fmt::Debug + Send + Sync {
    /// Receives an event. It must not wait.
    fn receive(self: Arc<Self>, event: &Event);
}

/// The subscribers of a node.
#[derive(Debug, Default)]
pub(crate) struct Events(RwLock<Vec<Weak<dyn EventSubscriber>>>);

impl Events {
    /// Adds a subscriber, for as long as it exists.
    pub(crate) fn subscribe(&self, subscriber: Weak<dyn EventSubscriber>) {
        self.0
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .push(subscriber);
    }

    /// Sends an event to all subscribers.
    pub(crate) fn publish(&self, event: &Event) {
        let subscribers = self
            .0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        for subscriber in subscribers.iter().filter_map(Weak::upgrade) {
            subscriber.receive(event);
        }
    }
}

/// The number of groups in which open streams poll their tasks, one after the other.
pub(crate) const ROUNDS: u64 = 30;
