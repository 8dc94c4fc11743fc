//! Event streams that stay open: the GET stream of a session and `subscriptions/listen`.
//!
//! Both eras get the same notifications.

pub(crate) mod reader;
pub(crate) mod tasks;

use std::{
    collections::{BTreeSet, HashSet, VecDeque},
    mem,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use axum::response::Response;
use bytes::Bytes;
use futures_util::StreamExt;
use portolan_cluster::{End, OpenStream, SessionKey, node::Limit, store::StreamKey};
use portolan_keys::random;
use portolan_model::{
    Digest,
    id::{ServerId, TenantId},
    limits::LimitName,
};
use portolan_protocol::{
    jsonrpc::RequestId,
    revision::Revision,
    sse,
    subscription::{self, Filter, List},
};

use crate::streams::{
    reader::{Farewell, Holding, respond},
    tasks::TaskNews,
};
use crate::{
    backends::upstream::UpstreamSource,
    call::stream_permit::StreamPermit,
    catalog::{Place, marks::Marks, offers::Versions, server::Server},
    error::McpError,
    http::{RequestContext, bearer::Caller, state::McpState},
    limits::Permit,
    session::{LiveSession, SessionId, event_id::EventId},
    target::Transport,
    tasks::{CallerTasks, NoTask},
    upstream_subscriptions::{self, NotSubscribed, Subscription},
};

/// Streams that are compared concurrently after a change of the registry.
const AT_ONCE: usize = 64;
/// MCP-SB-11: the shortest time between two batches of notifications on a stream.
const APART: Duration = Duration::from_secs(1);
/// MCP-AR-17: the longest time that a session's stream outlives its token.
const AFTER_EXPIRY: time::Duration = time::Duration::SECOND.saturating_mul(60);
/// MCP-SB-10: the longest lifetime of a listen stream.
const LONGEST_LISTEN: time::Duration = time::Duration::HOUR;

/// The state of an open stream.
#[derive(Debug)]
pub(crate) struct Tag {
    /// The caller that opened it.
    pub(crate) caller: Arc<Caller>,
    place: Place,
    server: ServerId,
    seen: Mutex<Seen>,
    /// The subscriptions at upstream servers (MCP-X-41, MCP-X-42).
    subscriptions: Mutex<StreamSubscriptions>,
    kind: Kind,
}

/// The subscriptions, one for each server, and the number of their changes.
#[derive(Debug)]
struct StreamSubscriptions {
    of: Vec<Subscription>,
    changes: u64,
}

#[derive(Debug)]
enum Kind {
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
struct Seen {
    /// The lists as of the last sent frame.
    told: Marks,
    /// The lists as of the last waiting notification.
    current: Marks,
    /// The versions of `current`; `None` if the client saw them on an earlier stream.
    versions: Option<Arc<Versions>>,
    /// Waiting notifications.
    lists: Vec<List>,
    updated: BTreeSet<String>,
    /// Few streams subscribe to tasks, so the others do not hold this.
    tasks: Option<Box<TaskNews>>,
}

/// A frame in a slot that only wakes the reader; the tag holds the notifications.
const DOORBELL: Bytes = Bytes::from_static(b".");

impl Seen {
    fn new(known: Marks, versions: Option<Arc<Versions>>) -> Mutex<Self> {
        Mutex::new(Self {
            told: known,
            current: known,
            versions,
            lists: Vec::new(),
            updated: BTreeSet::new(),
            tasks: None,
        })
    }

    fn tasks(&mut self) -> &mut TaskNews {
        self.tasks.get_or_insert_default()
    }

    /// True if a notification waits.
    fn waits(&self) -> bool {
        !self.lists.is_empty() || !self.updated.is_empty()
    }

    /// Notes the differences between the current state and the reader's knowledge.
    fn note(
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
    fn is_stream(&self, named: [u8; 8]) -> bool {
        matches!(self.kind, Kind::Session { stream, .. } if stream == named)
    }

    fn is_of_http_sse(&self) -> bool {
        matches!(self.kind, Kind::Session { http_sse: true, .. })
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn subscriptions(&self) -> MutexGuard<'_, StreamSubscriptions> {
        self.subscriptions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Updates the subscriptions if the upstream servers behind `server` have changed.
    fn update_subscriptions(
        &self,
        state: &McpState,
        server: &Server,
        sources: &[Arc<UpstreamSource>],
    ) {
        let mut subscriptions = self.subscriptions();
        let is_same = subscriptions.of.len() == sources.len()
            && sources.iter().all(|source| {
                subscriptions
                    .of
                    .iter()
                    .any(|subscription| subscription.is_of(source))
            });
        if is_same {
            return;
        }
        let uris: Vec<String> = match &self.kind {
            Kind::Listen { filter, .. } => filter.uris.clone(),
            Kind::Session { .. } => subscriptions
                .of
                .iter()
                .flat_map(Subscription::all_names)
                .map(str::to_owned)
                .collect(),
        };
        let uris = uris.iter().map(String::as_str);
        subscriptions.of = state.upstream_subscriptions.want(state, server, uris);
        subscriptions.changes += 1;
    }

    /// Subscribes at each server as the session's record says (MCP-RE-7).
    ///
    /// Any node may change the record. A change that this node receives meanwhile is newer than the
    /// record.
    async fn follow(&self, state: &McpState) {
        let Kind::Session { session, .. } = &self.kind else {
            return;
        };
        loop {
            let before = self.subscriptions().changes;
            let (marks, now) = (self.seen().current, state.clock.now());
            let found = LiveSession::find(state, *session, &self.caller, marks, now).await;
            let Ok(Some(found)) = found else { return };
            let Ok(entry) = state.catalog.resolve_again(&self.place).await else {
                return;
            };
            let Some(server) = &entry.server else { return };
            let uris = found.body.subscriptions.iter().map(|(uri, _)| uri);
            let wanted: Vec<_> = uris
                .filter_map(|uri| {
                    let (source, own) = upstream_subscriptions::own_uri(server, uri)?;
                    Some((source, own, uri.as_str()))
                })
                .collect();
            let mut subscriptions = self.subscriptions();
            if subscriptions.changes != before {
                continue;
            }
            let mut new = Vec::new();
            for subscription in &mut subscriptions.of {
                let of_server = wanted
                    .iter()
                    .filter(|(source, ..)| subscription.is_of(source));
                let uris: Vec<(&str, &str)> = of_server
                    .map(|(_, own, uri)| (own.as_str(), *uri))
                    .collect();
                new.extend(subscription.set(&uris));
            }
            drop(subscriptions);
            if !new.is_empty() {
                // It may have changed between: a repeated notification is better than a lost one.
                self.seen().updated.extend(new);
                state.streams.send(server.tenant, |tag| {
                    std::ptr::eq(tag, self).then_some(DOORBELL)
                });
            }
            return;
        }
    }

    /// Notes that a resource of an upstream has changed. False if the stream has no subscription to
    /// it.
    fn note_update(&self, source: &UpstreamSource, own: &str) -> bool {
        let subscriptions = self.subscriptions();
        let names = subscriptions
            .of
            .iter()
            .filter(|subscription| subscription.is_of(source))
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
    async fn compare(&self, state: &McpState, server: &Server) {
        match &self.kind {
            Kind::Listen { filter, .. } => {
                let uris = filter.uris.iter().map(|uri| (uri.clone(), None));
                let subscribed: Vec<_> = uris.collect();
                let mut seen = self.seen();
                seen.note(server, |list| filter.wants(list), &subscribed);
            }
            Kind::Session {
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
    async fn is_ready(&self, state: &McpState) -> bool {
        let Kind::Session {
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
    fn frames(&self, state: &McpState) -> VecDeque<Bytes> {
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

    fn frame(
        &self,
        state: &McpState,
        marks: Marks,
        notice: impl Fn(Option<&RequestId>) -> Vec<u8>,
    ) -> Bytes {
        let frame = match &self.kind {
            Kind::Listen { id, .. } => sse::message(None, &notice(Some(id))),
            Kind::Session {
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

fn since(subscriptions: &[(String, i64)]) -> Vec<(String, Option<i64>)> {
    subscriptions
        .iter()
        .map(|(uri, version)| (uri.clone(), Some(*version)))
        .collect()
}

/// Admits a GET for a stream, after its turn.
///
/// A new stream is refused if the client opens too many a minute, or too many are open. A resume
/// waits (REVIEW-F1).
pub(crate) async fn let_in(
    context: &RequestContext<'_>,
    revision: Revision,
    comes_back: bool,
) -> Result<StreamPermit, McpError> {
    let (admission, server) = (&context.state.admission, &context.server);
    let (tenant, limits) = (server.tenant, &server.limits);
    if !comes_back {
        // A refused stream takes no turn of the clients that wait below.
        let opens = &context.caller.stream_opens;
        let opening = admission.take(tenant, opens, limits.stream_opens).await;
        opening.map_err(|over| McpError::over(over, revision, None))?;
    }
    // After a node's death its clients come together.
    if !admission.wait_turn(tenant, comes_back).await {
        return Err(McpError::Overloaded);
    }
    if comes_back {
        return Ok(StreamPermit::again(admission, tenant, server).await);
    }
    pass(context, revision, None).await.map(StreamPermit::from)
}

/// Takes the permit for one more stream: of the tenant in the cluster, and of this node
/// (STREAM-16.2, STREAM-16.3).
pub(crate) async fn pass(
    context: &RequestContext<'_>,
    revision: Revision,
    id: Option<&RequestId>,
) -> Result<Permit, McpError> {
    let server = &context.server;
    let permit = context
        .state
        .admission
        .open_stream(server.tenant, &server.limits);
    permit
        .await
        .map_err(|no| McpError::no_permit(no, revision, id))
}

/// Opens the GET stream of a session (MCP-T-30…MCP-T-36).
///
/// It has no log, because its contents depend on the lists alone. `known` holds the lists that the
/// client saw last on a broken stream. If they have changed, the client gets one notification.
pub(crate) fn open_for_session(
    context: &RequestContext<'_>,
    session: &LiveSession,
    known: Option<([u8; 8], Marks)>,
    pass: StreamPermit,
) -> Result<Response, McpError> {
    let (state, caller, now) = (context.state, &context.caller, context.now);
    let LiveSession {
        id: session, body, ..
    } = session;
    let session = *session;
    let broken = known.map(|(stream, _)| stream);
    let has_come_back = known.is_some();
    let known = known.map_or(body.marks, |(_, marks)| marks);
    let stream = random::bytes::<8>().map_err(|_| McpError::Unavailable)?;
    let kind = Kind::Session {
        session,
        stream,
        sequence: AtomicU32::new(0),
        initialized: AtomicBool::new(body.initialized),
        http_sse: context.target.transport == Transport::Events,
    };
    let mut group = [0; 32];
    group[..16].copy_from_slice(&session.key.0);
    let (group, tenant) = (Digest::from_bytes(group), context.server.tenant);
    let limit = context.server.limits.at_most(LimitName::SessionStreams);
    if let Some(broken) = broken {
        // The client left that connection, whether this node has noticed or not. If the client has
        // reached its limit of others, the oldest ends: a client that comes back is not refused
        // (REVIEW-F1).
        let is_broken = |tag: &Tag| tag.is_stream(broken);
        state.streams.make_room(tenant, group, limit, is_broken);
    }
    let seen = Seen::new(known, None);
    let uris = body.subscriptions.iter().map(|(uri, _)| uri.as_str());
    let subscriptions = state
        .upstream_subscriptions
        .want(state, &context.server, uris);
    let open = open(context, group, limit, seen, subscriptions, kind).ok_or_else(|| {
        state.admission.refused(tenant, LimitName::SessionStreams);
        McpError::TooManyStreams
    })?;
    // Changes of its subscriptions since the read of its record went to the streams of that time.
    if !open.tag.subscriptions().of.is_empty() {
        let (looking, tag) = (state.clone(), Arc::clone(&open.tag));
        state
            .tracker
            .spawn(async move { tag.follow(&looking).await });
    }
    // Entered as a running request, so that the end of the session reaches it from any node.
    let life = caller.expires_at() + AFTER_EXPIRY - now;
    let name = format!("g:{:016x}", u64::from_be_bytes(stream));
    let running = state
        .node
        .run(session.key, &name, life.try_into().unwrap_or_default());

    let primed = session.revision.facts().priming_event || session.draft;
    let mut first = VecDeque::with_capacity(3);
    if primed {
        let id = EventId::News {
            stream,
            sequence: 0,
            marks: known,
        }
        .to_wire(&state.keys, session.key);
        first.push_back(Bytes::from(sse::retry(reconnect_after())));
        first.push_back(Bytes::from(sse::priming(&id)));
    } else {
        // Older clients cannot read empty data (MCP-T-24), but proxies forward the head only with a
        // first byte.
        first.push_back(Bytes::from_static(sse::KEEP_ALIVE));
    }
    // The changes since the client's last stream. Without a record of the versions at that time,
    // all changes since the subscription count: a repeated notification is better than a lost one.
    if body.initialized {
        let subscribed = since(&body.subscriptions);
        open.tag.seen().note(&context.server, |_| true, &subscribed);
        if has_come_back {
            // Notifications of upstream servers are not stored: a repeated one is better than a
            // lost one.
            let subscriptions = open.tag.subscriptions();
            let names = subscriptions.of.iter().flat_map(Subscription::all_names);
            open.tag.seen().updated.extend(names.map(str::to_owned));
        }
        first.extend(open.tag.frames(state));
    }
    let farewell = if primed {
        Farewell::Retry
    } else {
        Farewell::Nothing
    };
    let held = Holding { running, pass };
    Ok(respond(state, open, first, life, farewell, held))
}

/// Most URIs of one listen stream (STREAM-15.4); more are left out of the acknowledgement.
const MOST_URIS: usize = 256;

/// How long the acknowledgement waits for the answers of upstream servers to subscriptions.
///
/// A server without an answer may still send notifications later.
const PATIENCE: Duration = Duration::from_secs(2);

/// Opens a listen stream (MCP-SB-1…MCP-SB-11).
///
/// Its first event acknowledges the accepted subscriptions. These are the three lists, and the
/// existing resources (MCP-SB-6), except those that their server refuses (MCP-X-42, MCP-X-43).
pub(crate) async fn open_for_listen(
    context: &RequestContext<'_>,
    id: &RequestId,
    revision: Revision,
    asked: &Filter,
    pass: Permit,
) -> Result<Response, McpError> {
    let (state, caller, server) = (context.state, &context.caller, &context.server);
    let mut uris: Vec<String> = Vec::new();
    for uri in &asked.uris {
        let honoured = uris.len() < MOST_URIS && server.offers.versions.of(uri).is_some();
        if honoured && !uris.contains(uri) {
            uris.push(uri.clone());
        }
    }
    let wanted = uris.iter().map(String::as_str);
    let mut subscriptions = state.upstream_subscriptions.want(state, server, wanted);
    for uri in refused(&subscriptions).await {
        uris.retain(|known| *known != uri);
        for subscription in &mut subscriptions {
            subscription.remove(&uri);
        }
    }
    let named = asked.task_ids.as_deref().unwrap_or_default();
    let named = CallerTasks::new(state, caller, server).named(named).await;
    let named = named.map_err(|why: NoTask| why.refuse(revision, id))?;
    let (task_ids, tasks): (Vec<String>, Vec<StreamKey>) = named.into_iter().unzip();
    let honoured = Filter {
        tools: asked.tools,
        prompts: asked.prompts,
        resources: asked.resources,
        uris,
        task_ids: (!task_ids.is_empty()).then_some(task_ids),
    };
    let kind = Kind::Listen {
        id: id.clone(),
        filter: honoured.clone(),
        tasks: tasks.into(),
    };
    let limit = server.limits.at_most(LimitName::Listens);
    let seen = Seen::new(server.marks, Some(Arc::clone(&server.offers.versions)));
    let open =
        open(context, caller.principal, limit, seen, subscriptions, kind).ok_or_else(|| {
            state.admission.refused(server.tenant, LimitName::Listens);
            McpError::Limited {
                id: Some(id.clone()),
                revision,
                limit: Limit::OpenStreams,
                retry_after: 60,
            }
        })?;
    let first = VecDeque::from([Bytes::from(sse::message(
        None,
        &subscription::acknowledged(id, &honoured),
    ))]);
    let life = (caller.expires_at() - context.now).min(LONGEST_LISTEN);
    let completed = subscription::completed(id, revision, &server.identity);
    let farewell = Farewell::Completed(Bytes::from(sse::message(None, &completed)));
    let held = Holding {
        running: None,
        pass: pass.into(),
    };
    Ok(respond(state, open, first, life, farewell, held))
}

/// The client's URIs of the resources whose servers refuse a subscription.
async fn refused(subscriptions: &[Subscription]) -> Vec<String> {
    let asked = subscriptions.iter().flat_map(|subscription| {
        let own = subscription.own_uris();
        own.map(move |(own, uri)| async move {
            let said = tokio::time::timeout(PATIENCE, subscription.acknowledged(own)).await;
            matches!(said, Ok(Err(NotSubscribed::Refused))).then(|| uri.to_owned())
        })
    });
    let said = futures_util::future::join_all(asked).await;
    said.into_iter().flatten().collect()
}

fn open(
    context: &RequestContext<'_>,
    group: Digest,
    limit: usize,
    seen: Mutex<Seen>,
    subscriptions: Vec<Subscription>,
    kind: Kind,
) -> Option<OpenStream<Tag>> {
    let server = &context.server;
    let tag = Tag {
        caller: Arc::clone(&context.caller),
        place: Place::new(server.tenant, &context.target),
        server: server.id,
        seen,
        subscriptions: Mutex::new(StreamSubscriptions {
            of: subscriptions,
            changes: 0,
        }),
        kind,
    };
    let state = context.state;
    let tag = Arc::new(tag);
    let open = state
        .streams
        .open(server.tenant, group, limit, Arc::clone(&tag));
    // A notification since the lookup of the server did not reach this stream.
    if open.is_ok() && !state.catalog.is_still(&tag.place, server) {
        state.untold.add(server.tenant);
    }
    open.ok()
}

/// Milliseconds until a client should come back: random, so that clients do not come together
/// (MCP-T-25).
pub(crate) fn reconnect_after() -> u64 {
    random::bytes::<2>().map_or(1_000, |bytes| {
        500 + u64::from(u16::from_be_bytes(bytes)) % 3_500
    })
}

/// Notifies the open streams of a tenant after a change of its registry.
///
/// Reloads the catalogue of each stream, and notifies those whose lists have changed. A server that
/// is no longer published ends its streams. False if an entry could not be read: the caller
/// retries.
pub(crate) async fn tell_tenant(state: &McpState, tenant: TenantId) -> bool {
    let mut is_told = true;
    let places: HashSet<Place> = state
        .streams
        .tags(tenant)
        .iter()
        .map(|tag| tag.place.clone())
        .collect();
    for place in places {
        let Ok(entry) = state.catalog.resolve_again(&place).await else {
            is_told = false;
            continue;
        };
        // While the database does not answer, the former entry is served, without notifications.
        is_told &= state.catalog.is_current(&place, &entry);
        let server = entry.server.as_deref();
        state.streams.end(End::Revoked, |tag| {
            tag.place == place
                // MCP-DP-6: a disabled transport ends its open streams, too.
                && (server.is_none_or(|server| server.id != tag.server)
                    || (!entry.reach.http_sse && tag.is_of_http_sse())
                    || !entry.admits(&tag.caller))
        });
        if let Some(server) = server {
            let sources = server.upstreams();
            let tags = state.streams.tags(tenant).into_iter();
            let of_server = tags.filter(|tag| tag.place == place);
            // Some read their session's record from the store, so they run concurrently.
            futures_util::stream::iter(of_server)
                .for_each_concurrent(AT_ONCE, async |tag| {
                    tag.update_subscriptions(state, server, &sources);
                    tag.compare(state, server).await;
                })
                .await;
            let sent = state.streams.send(tenant, |tag| {
                let waits = tag.place == place && tag.seen().waits();
                waits.then_some(DOORBELL)
            });
            crate::instruments::news_sent(sent);
        }
    }
    is_told
}

/// Notifies the streams of this node that subscribe to a changed resource of an upstream.
pub(crate) fn tell_updated(state: &McpState, source: &UpstreamSource, own: &str) {
    let sent = state.streams.send(source.tenant, |tag| {
        tag.note_update(source, own).then_some(DOORBELL)
    });
    crate::instruments::news_sent(sent);
}

/// Updates a session's streams on this node after it subscribed to a resource of an upstream.
///
/// `own` is `None` after it unsubscribed.
pub(crate) fn subscribed(
    state: &McpState,
    source: &UpstreamSource,
    session: SessionKey,
    own: Option<&str>,
    uri: &str,
) {
    for tag in of_session(state, source, session) {
        let mut subscriptions = tag.subscriptions();
        subscriptions.changes += 1;
        for subscription in subscriptions.of.iter_mut().filter(|one| one.is_of(source)) {
            match own {
                Some(own) => subscription.add(own.to_owned(), uri.to_owned()),
                None => subscription.remove(uri),
            }
        }
    }
}

/// Lets a session's streams on this node read its record, as its subscriptions may have changed.
pub(crate) fn read_record(state: &McpState, source: &UpstreamSource, session: SessionKey) {
    for tag in of_session(state, source, session) {
        let looking = state.clone();
        state
            .tracker
            .spawn(async move { tag.follow(&looking).await });
    }
}

fn of_session(
    state: &McpState,
    source: &UpstreamSource,
    session: SessionKey,
) -> impl Iterator<Item = Arc<Tag>> {
    let tags = state.streams.tags(source.tenant).into_iter();
    tags.filter(
        move |tag| matches!(&tag.kind, Kind::Session { session: id, .. } if id.key == session),
    )
}
