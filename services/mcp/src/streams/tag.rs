//! An open stream: its caller, its kind, and the notifications that it has sent.

use std::{
    collections::{BTreeSet, VecDeque},
    mem,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use portolan_cluster::store::StreamKey;
use portolan_keys::random;
use portolan_model::id::ServerId;
use portolan_protocol::{
    jsonrpc::RequestId,
    sse,
    subscription::{self, Filter, List},
};

use crate::{
    caller::Caller,
    catalog::{Place, marks::Marks, offers::Versions, server::Server},
    nodes::context::NodeContext,
    session::{LiveSession, event_id::EventId, written::SessionId},
    streams::task_news::TaskNews,
    upstream_subscriptions::Subscription,
};

/// MCP-SB-11: the shortest time between two batches of notifications on a stream.
pub(crate) const APART: Duration = Duration::from_secs(1);

/// The state of an open stream.
#[derive(Debug)]
pub(crate) struct Tag {
    /// The caller that opened it.
    pub(crate) caller: Arc<Caller>,
    pub(crate) place: Place,
    pub(crate) server: ServerId,
    pub(crate) seen: Mutex<Seen>,
    /// The subscriptions at upstream servers (MCP-X-41, MCP-X-42).
    pub(crate) subscriptions: Mutex<StreamSubscriptions>,
    pub(crate) kind: StreamKind,
}

/// The subscriptions, one for each server, and the number of their changes.
#[derive(Debug)]
pub(crate) struct StreamSubscriptions {
    pub(crate) of: Vec<Subscription>,
    pub(crate) changes: u64,
}

#[derive(Debug)]
pub(crate) enum StreamKind {
    Session {
        session: SessionId,
        stream: [u8; 8],
        sequence: AtomicU32,
        /// The client has sent `notifications/initialized` (MCP-L-6).
        initialized: AtomicBool,
        /// The stream is one of HTTP+SSE.
        http_sse: bool,
    },
    Listen {
        id: RequestId,
        /// The accepted subscriptions.
        filter: Filter,
        /// The tasks that it subscribes to.
        tasks: Box<[StreamKey]>,
    },
}

/// The notifications that a stream has sent, and those that it will send.
#[derive(Debug)]
pub(crate) struct Seen {
    /// The lists as of the last sent frame.
    pub(crate) told: Marks,
    /// The lists as of the last waiting notification.
    pub(crate) current: Marks,
    /// The versions of `current`; `None` if the client saw them on an earlier stream.
    pub(crate) versions: Option<Arc<Versions>>,
    /// Waiting notifications.
    pub(crate) lists: Vec<List>,
    pub(crate) updated: BTreeSet<String>,
    /// Few streams subscribe to tasks, so the others do not hold this.
    pub(crate) tasks: Option<Box<TaskNews>>,
}

/// A frame in a slot that only wakes the reader; the tag holds the notifications.
pub(crate) const DOORBELL: Bytes = Bytes::from_static(b".");

impl Seen {
    pub(crate) fn new(known: Marks, versions: Option<Arc<Versions>>) -> Mutex<Self> {
        Mutex::new(Self {
            told: known,
            current: known,
            versions,
            lists: Vec::new(),
            updated: BTreeSet::new(),
            tasks: None,
        })
    }

    pub(crate) fn tasks(&mut self) -> &mut TaskNews {
        self.tasks.get_or_insert_default()
    }

    /// True if a notification waits.
    pub(crate) fn waits(&self) -> bool {
        !self.lists.is_empty() || !self.updated.is_empty()
    }

    /// Notes the differences between the current state and the reader's knowledge.
    pub(crate) fn note(
        &mut self,
        server: &Server,
        wants: impl Fn(List) -> bool,
        subscribed: &[(String, Option<i64>)],
    ) {
        let (before, now) = (self.current, server.marks);
        let lists = [
            (List::Tools, before.tools != now.tools),
            (List::Prompts, before.prompts != now.prompts),
            (List::Resources, before.resources != now.resources),
        ];
        for (list, differs) in lists {
            if differs && wants(list) && !self.lists.contains(&list) {
                self.lists.push(list);
            }
        }
        if before.updates != now.updates {
            for (uri, since) in subscribed {
                let version = server.offers.versions.of(uri);
                let known = self.versions.as_ref().map(|versions| versions.of(uri));
                if known != Some(version) && (since.is_none() || *since != version) {
                    self.updated.insert(uri.clone());
                }
            }
        }
        self.current = now;
        self.versions = Some(Arc::clone(&server.offers.versions));
    }
}

impl Tag {
    /// Whether it is the named stream of a session.
    pub(crate) fn is_stream(&self, named: [u8; 8]) -> bool {
        matches!(self.kind, StreamKind::Session { stream, .. } if stream == named)
    }

    pub(crate) fn is_of_http_sse(&self) -> bool {
        matches!(self.kind, StreamKind::Session { http_sse: true, .. })
    }

    pub(crate) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn subscriptions(&self) -> MutexGuard<'_, StreamSubscriptions> {
        self.subscriptions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a resource of an upstream has changed. False if the stream has no subscription to
    /// it.
    pub(crate) fn note_update(&self, place: &str, own: &str) -> bool {
        let subscriptions = self.subscriptions();
        let names = subscriptions
            .of
            .iter()
            .filter(|subscription| subscription.is_at(place))
            .flat_map(|subscription| subscription.names(own));
        let mut seen = self.seen();
        let mut note_update = false;
        for name in names {
            seen.updated.insert(name.to_owned());
            note_update = true;
        }
        note_update
    }

    /// Compares the current state with the reader's knowledge, and notes the notifications.
    ///
    /// A session whose client is not ready is notified later. The subscriptions of a session are
    /// read from its record, since any node may have changed them.
    pub(crate) async fn compare(&self, state: &NodeContext, server: &Server) {
        match &self.kind {
            StreamKind::Listen { filter, .. } => {
                let uris = filter.uris.iter().map(|uri| (uri.clone(), None));
                let subscribed: Vec<_> = uris.collect();
                let mut seen = self.seen();
                seen.note(server, |list| filter.wants(list), &subscribed);
            }
            StreamKind::Session {
                session,
                initialized,
                ..
            } => {
                let updates = self.seen().current.updates != server.marks.updates;
                let mut subscribed = Vec::new();
                if updates || !initialized.load(Ordering::Acquire) {
                    let (marks, now) = (self.seen().current, state.clock.now());
                    let found = LiveSession::find(state, *session, &self.caller, marks, now).await;
                    let Ok(Some(found)) = found else {
                        return;
                    };
                    initialized.store(found.body.initialized, Ordering::Release);
                    subscribed = since(&found.body.subscriptions);
                }
                if initialized.load(Ordering::Acquire) {
                    self.seen().note(server, |_| true, &subscribed);
                }
            }
        }
    }

    /// Whether notifications may be sent (MCP-L-6).
    pub(crate) async fn is_ready(&self, state: &NodeContext) -> bool {
        let StreamKind::Session {
            session,
            initialized,
            ..
        } = &self.kind
        else {
            return true;
        };
        if !initialized.load(Ordering::Acquire) {
            let (marks, now) = (self.seen().current, state.clock.now());
            let found = LiveSession::find(state, *session, &self.caller, marks, now).await;
            if let Ok(Some(found)) = found {
                initialized.store(found.body.initialized, Ordering::Release);
            }
        }
        initialized.load(Ordering::Acquire)
    }

    /// The frames of all waiting notifications. Each id covers only the notifications up to it.
    pub(crate) fn frames(&self, state: &NodeContext) -> VecDeque<Bytes> {
        let mut seen = self.seen();
        let (lists, updated) = (mem::take(&mut seen.lists), mem::take(&mut seen.updated));
        let mut frames = VecDeque::with_capacity(lists.len() + updated.len());
        for list in lists {
            match list {
                List::Tools => seen.told.tools = seen.current.tools,
                List::Prompts => seen.told.prompts = seen.current.prompts,
                List::Resources => seen.told.resources = seen.current.resources,
            }
            let notice = |listen: Option<&RequestId>| subscription::list_changed(list, listen);
            frames.push_back(self.frame(state, seen.told, notice));
        }
        let last = updated.len();
        for (index, uri) in updated.iter().enumerate() {
            if index + 1 == last {
                seen.told.updates = seen.current.updates;
            }
            let notice = |listen: Option<&RequestId>| subscription::resource_updated(uri, listen);
            frames.push_back(self.frame(state, seen.told, notice));
        }
        frames
    }

    pub(crate) fn frame(
        &self,
        state: &NodeContext,
        marks: Marks,
        notice: impl Fn(Option<&RequestId>) -> Vec<u8>,
    ) -> Bytes {
        let frame = match &self.kind {
            StreamKind::Listen { id, .. } => sse::message(None, &notice(Some(id))),
            StreamKind::Session {
                session,
                stream,
                sequence,
                ..
            } => {
                let sequence = sequence.fetch_add(1, Ordering::Relaxed) + 1;
                let id = EventId::News {
                    stream: *stream,
                    sequence,
                    marks,
                }
                .to_wire(&state.keys, session.key);
                sse::message(Some(&id), &notice(None))
            }
        };
        Bytes::from(frame)
    }
}

pub(crate) fn since(subscriptions: &[(String, i64)]) -> Vec<(String, Option<i64>)> {
    subscriptions
        .iter()
        .map(|(uri, version)| (uri.clone(), Some(*version)))
        .collect()
}

/// Milliseconds until a client should come back: random, so that clients do not come together
/// (MCP-T-25).
pub(crate) fn reconnect_after() -> u64 {
    random::bytes::<2>().map_or(1_000, |bytes| {
        500 + u64::from(u16::from_be_bytes(bytes)) % 3_500
    })
}
