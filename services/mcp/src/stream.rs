//! Event streams that stay open: the GET stream of a session (legacy) and `subscriptions/listen` (modern), fed by the same
//! news.

mod reader;
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

use self::{
    reader::{Farewell, Holding, respond},
    tasks::TaskNews,
};
use crate::{
    backends::upstream::UpstreamSource,
    catalog::{Place, marks::Marks, offers::Versions, server::Server},
    endpoint::{Visit, bearer::Caller, target::Door},
    error::McpError,
    legacy::{
        event_id::EventId,
        session::{LiveSession, SessionId},
    },
    limits::{Room, entry::Entry},
    state::McpState,
    tasks::{NoTask, Shelf},
    watch::{self, Interest, NotSubscribed},
};

/// Streams that are looked at together when a registry changed.
const AT_ONCE: usize = 64;
/// SB-11: at most one notice per stream in this time.
const APART: Duration = Duration::from_secs(1);
/// AR-17: a session's stream outlives its token by no more than this.
const AFTER_EXPIRY: time::Duration = time::Duration::SECOND.saturating_mul(60);
/// SB-10.
const LONGEST_LISTEN: time::Duration = time::Duration::HOUR;

/// What is known of an open stream.
#[derive(Debug)]
pub(crate) struct Tag {
    /// Whose it is.
    pub(crate) caller: Arc<Caller>,
    place: Place,
    server: ServerId,
    seen: Mutex<Seen>,
    /// What upstream servers are to tell.
    interests: Mutex<Interests>,
    kind: Kind,
}

/// One a server, and how often what is wanted of them has changed.
#[derive(Debug)]
struct Interests {
    of: Vec<Interest>,
    changes: u64,
}

#[derive(Debug)]
enum Kind {
    Session {
        session: SessionId,
        stream: [u8; 8],
        sequence: AtomicU32,
        /// The client said that it is ready (L-6).
        initialized: AtomicBool,
        /// It is one of HTTP+SSE.
        http_sse: bool,
    },
    Listen {
        id: RequestId,
        /// What is honoured.
        filter: Filter,
        /// The tasks of it.
        tasks: Box<[StreamKey]>,
    },
}

/// What the reader of a stream was told, and what it is to be told next.
#[derive(Debug)]
struct Seen {
    /// What its frames have told of.
    told: Marks,
    /// What they will have told of when all that waits is sent.
    current: Marks,
    /// The versions of `current`; none if the client saw them on an earlier stream.
    versions: Option<Arc<Versions>>,
    /// Notices that wait.
    lists: Vec<List>,
    updated: BTreeSet<String>,
    /// Few streams hear of tasks: what the others do not need, they do not carry.
    tasks: Option<Box<TaskNews>>,
}

/// A frame in a slot only says that there is something to tell: what, is told by the tag.
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

    /// True if something waits to be told.
    fn waits(&self) -> bool {
        !self.lists.is_empty() || !self.updated.is_empty()
    }

    /// Notes what is different now from what the reader knows.
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
    /// Whether it is that stream of a session.
    fn is_stream(&self, named: [u8; 8]) -> bool {
        matches!(self.kind, Kind::Session { stream, .. } if stream == named)
    }

    fn is_of_http_sse(&self) -> bool {
        matches!(self.kind, Kind::Session { http_sse: true, .. })
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn interests(&self) -> MutexGuard<'_, Interests> {
        self.interests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The servers behind may be others than before: they are watched from now on.
    fn attend(&self, state: &McpState, server: &Server, sources: &[Arc<UpstreamSource>]) {
        let mut interests = self.interests();
        let is_same = interests.of.len() == sources.len()
            && sources
                .iter()
                .all(|source| interests.of.iter().any(|interest| interest.is_of(source)));
        if is_same {
            return;
        }
        let uris: Vec<String> = match &self.kind {
            Kind::Listen { filter, .. } => filter.uris.clone(),
            Kind::Session { .. } => interests
                .of
                .iter()
                .flat_map(Interest::all_names)
                .map(str::to_owned)
                .collect(),
        };
        let uris = uris.iter().map(String::as_str);
        interests.of = state.watches.want(state, server, uris);
        interests.changes += 1;
    }

    /// Wants of each server what the session's record says (RE-7): it may be subscribed to, or not any more, through any node. What this
    /// one hears of meanwhile is newer than what was read.
    async fn follow(&self, state: &McpState) {
        let Kind::Session { session, .. } = &self.kind else {
            return;
        };
        loop {
            let before = self.interests().changes;
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
                    let (source, own) = watch::own_uri(server, uri)?;
                    Some((source, own, uri.as_str()))
                })
                .collect();
            let mut interests = self.interests();
            if interests.changes != before {
                continue;
            }
            let mut new = Vec::new();
            for interest in &mut interests.of {
                let of_server = wanted.iter().filter(|(source, ..)| interest.is_of(source));
                let uris: Vec<(&str, &str)> = of_server
                    .map(|(_, own, uri)| (own.as_str(), *uri))
                    .collect();
                new.extend(interest.set(&uris));
            }
            drop(interests);
            if !new.is_empty() {
                // It may have changed between: rather told once too often than never.
                self.seen().updated.extend(new);
                state.streams.send(server.tenant, |tag| {
                    std::ptr::eq(tag, self).then_some(DOORBELL)
                });
            }
            return;
        }
    }

    /// Notes that a resource of an upstream is not what it was. False if the reader does not want to hear of it.
    fn hears(&self, source: &UpstreamSource, own: &str) -> bool {
        let interests = self.interests();
        let names = interests
            .of
            .iter()
            .filter(|interest| interest.is_of(source))
            .flat_map(|interest| interest.names(own));
        let mut seen = self.seen();
        let mut hears = false;
        for name in names {
            seen.updated.insert(name.to_owned());
            hears = true;
        }
        hears
    }

    /// Compares what the reader knows with what is now, and notes what it is to be told. A session whose client is not ready is told
    /// later; one that subscribed is asked for what, since it may have done so through any node.
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

    /// Whether what is not an answer may be told (L-6).
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

    /// The frames of all that waits to be told. Each id says what was told up to it and no more.
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

/// Admits a GET for a stream, after its turn. A new stream may be refused: the client opens too many
/// a minute, or too many are open. A resume waits (F-1).
pub(crate) async fn let_in(
    visit: &Visit<'_>,
    revision: Revision,
    comes_back: bool,
) -> Result<Entry, McpError> {
    let (gate, server) = (&visit.state.gate, &visit.server);
    let (tenant, limits) = (server.tenant, &server.limits);
    if !comes_back {
        // It takes no turn of those who wait below.
        let opens = &visit.caller.stream_opens;
        let opening = gate.take(tenant, opens, limits.stream_opens).await;
        opening.map_err(|over| McpError::over(over, revision, None))?;
    }
    // After a node's death its clients come together.
    if !gate.pace(tenant, comes_back).await {
        return Err(McpError::Overloaded);
    }
    if comes_back {
        return Ok(Entry::again(gate, tenant, server).await);
    }
    pass(visit, revision, None).await.map(Entry::from)
}

/// The permission for one more stream: of the tenant on all nodes, and of this node (§16.2, §16.3).
pub(crate) async fn pass(
    visit: &Visit<'_>,
    revision: Revision,
    id: Option<&RequestId>,
) -> Result<Room, McpError> {
    let server = &visit.server;
    let room = visit.state.gate.open_stream(server.tenant, &server.limits);
    room.await.map_err(|no| McpError::no_room(no, revision, id))
}

/// Opens the GET stream of a session (T-30…T-36). It has no log, because what it tells hangs on the list alone: `known` is the list
/// that the client saw last on a stream that broke, and it gets one notice if that is another one now.
pub(crate) fn open_for_session(
    visit: &Visit<'_>,
    session: &LiveSession,
    known: Option<([u8; 8], Marks)>,
    pass: Entry,
) -> Result<Response, McpError> {
    let (state, caller, now) = (visit.state, &visit.caller, visit.now);
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
        http_sse: visit.target.door == Door::Events,
    };
    let mut group = [0; 32];
    group[..16].copy_from_slice(&session.key.0);
    let (group, tenant) = (Digest::from_bytes(group), visit.server.tenant);
    let limit = visit.server.limits.at_most(LimitName::SessionStreams);
    if let Some(broken) = broken {
        // The client left that connection, whether this node has noticed or not; where it has as many others as it may, the oldest
        // goes instead: who comes back is not refused (F-1).
        let is_broken = |tag: &Tag| tag.is_stream(broken);
        state.streams.make_room(tenant, group, limit, is_broken);
    }
    let seen = Seen::new(known, None);
    let uris = body.subscriptions.iter().map(|(uri, _)| uri.as_str());
    let interests = state.watches.want(state, &visit.server, uris);
    let open = open(visit, group, limit, seen, interests, kind).ok_or_else(|| {
        state.gate.refused(tenant, LimitName::SessionStreams);
        McpError::TooManyStreams
    })?;
    // What it subscribed to since its record was read was told to the streams that were there.
    if !open.tag.interests().of.is_empty() {
        let (looking, tag) = (state.clone(), Arc::clone(&open.tag));
        state
            .tracker
            .spawn(async move { tag.follow(&looking).await });
    }
    // Among the running requests, so that the end of the session reaches it from any node.
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
        // Older clients cannot read empty data (T-24), but proxies pass the head on only with a first byte.
        first.push_back(Bytes::from_static(sse::KEEP_ALIVE));
    }
    // What changed since the client looked last. A session without a record of what its subscriptions were then hears of all
    // that are not what they were when it subscribed: rather once too often than never.
    if body.initialized {
        let subscribed = since(&body.subscriptions);
        open.tag.seen().note(&visit.server, |_| true, &subscribed);
        if has_come_back {
            // What upstream servers told meanwhile is kept nowhere: rather told once too often than never.
            let interests = open.tag.interests();
            let names = interests.of.iter().flat_map(Interest::all_names);
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

/// URIs of one listen stream (`streams.md` §15.4); more are left out of the acknowledgement.
const MOST_URIS: usize = 256;

/// How long the acknowledgement waits for upstream servers to say whether they tell of a resource. One that says nothing may do later.
const PATIENCE: Duration = Duration::from_secs(2);

/// Opens a listen stream (SB-1…SB-11). Acknowledged first, with what is honoured: news of the three lists, and of the resources that
/// there are (SB-6), but for those of which their server does not tell.
pub(crate) async fn open_for_listen(
    visit: &Visit<'_>,
    id: &RequestId,
    revision: Revision,
    asked: &Filter,
    pass: Room,
) -> Result<Response, McpError> {
    let (state, caller, server) = (visit.state, &visit.caller, &visit.server);
    let mut uris: Vec<String> = Vec::new();
    for uri in &asked.uris {
        let honoured = uris.len() < MOST_URIS && server.offers.versions.of(uri).is_some();
        if honoured && !uris.contains(uri) {
            uris.push(uri.clone());
        }
    }
    let wanted = uris.iter().map(String::as_str);
    let mut interests = state.watches.want(state, server, wanted);
    for uri in refused(&interests).await {
        uris.retain(|known| *known != uri);
        for interest in &mut interests {
            interest.remove(&uri);
        }
    }
    let named = asked.task_ids.as_deref().unwrap_or_default();
    let named = Shelf::new(state, caller, server).named(named).await;
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
    let open = open(visit, caller.principal, limit, seen, interests, kind).ok_or_else(|| {
        state.gate.refused(server.tenant, LimitName::Listens);
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
    let life = (caller.expires_at() - visit.now).min(LONGEST_LISTEN);
    let completed = subscription::completed(id, revision, &server.identity);
    let farewell = Farewell::Completed(Bytes::from(sse::message(None, &completed)));
    let held = Holding {
        running: None,
        pass: pass.into(),
    };
    Ok(respond(state, open, first, life, farewell, held))
}

/// What clients call the resources of which their servers do not tell.
async fn refused(interests: &[Interest]) -> Vec<String> {
    let asked = interests.iter().flat_map(|interest| {
        let own = interest.own_uris();
        own.map(move |(own, uri)| async move {
            let said = tokio::time::timeout(PATIENCE, interest.acknowledged(own)).await;
            matches!(said, Ok(Err(NotSubscribed::Refused))).then(|| uri.to_owned())
        })
    });
    let said = futures_util::future::join_all(asked).await;
    said.into_iter().flatten().collect()
}

fn open(
    visit: &Visit<'_>,
    group: Digest,
    limit: usize,
    seen: Mutex<Seen>,
    interests: Vec<Interest>,
    kind: Kind,
) -> Option<OpenStream<Tag>> {
    let server = &visit.server;
    let tag = Tag {
        caller: Arc::clone(&visit.caller),
        place: Place::new(server.tenant, &visit.target),
        server: server.id,
        seen,
        interests: Mutex::new(Interests {
            of: interests,
            changes: 0,
        }),
        kind,
    };
    let state = visit.state;
    let tag = Arc::new(tag);
    let open = state
        .streams
        .open(server.tenant, group, limit, Arc::clone(&tag));
    // Whoever told of a change since the server was looked up did not find this stream.
    if open.is_ok() && !state.catalog.is_still(&tag.place, server) {
        state.untold.add(server.tenant);
    }
    open.ok()
}

/// Milliseconds after which a client should come back: spread, so that they do not come together (T-25).
pub(crate) fn reconnect_after() -> u64 {
    random::bytes::<2>().map_or(1_000, |bytes| {
        500 + u64::from(u16::from_be_bytes(bytes)) % 3_500
    })
}

/// The tenant's registry changed: reloads what its open streams look at, and tells those whose list is another one now. A server
/// that is no longer published ends its streams. False if something could not be looked at: it is to be told again.
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
        // What was there before serves while the database does not answer, and tells nothing new.
        is_told &= state.catalog.is_current(&place, &entry);
        let server = entry.server.as_deref();
        state.streams.end(End::Revoked, |tag| {
            tag.place == place
                // DP-6: what is turned off is turned off for those who are there, too.
                && (server.is_none_or(|server| server.id != tag.server)
                    || (!entry.reach.http_sse && tag.is_of_http_sse())
                    || !entry.admits(&tag.caller))
        });
        if let Some(server) = server {
            let sources = server.upstreams();
            let tags = state.streams.tags(tenant).into_iter();
            let of_server = tags.filter(|tag| tag.place == place);
            // Some ask the store what their session wants to know: not one after the other.
            futures_util::stream::iter(of_server)
                .for_each_concurrent(AT_ONCE, async |tag| {
                    tag.attend(state, server, &sources);
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

/// A resource of an upstream is not what it was: tells the streams of this node that want to hear of it.
pub(crate) fn tell_updated(state: &McpState, source: &UpstreamSource, own: &str) {
    let sent = state.streams.send(source.tenant, |tag| {
        tag.hears(source, own).then_some(DOORBELL)
    });
    crate::instruments::news_sent(sent);
}

/// A session subscribed to a resource of an upstream, or no longer does (`own` is none): its streams on this node hear of it from now on.
pub(crate) fn subscribed(
    state: &McpState,
    source: &UpstreamSource,
    session: SessionKey,
    own: Option<&str>,
    uri: &str,
) {
    for tag in of_session(state, source, session) {
        let mut interests = tag.interests();
        interests.changes += 1;
        for interest in interests.of.iter_mut().filter(|one| one.is_of(source)) {
            match own {
                Some(own) => interest.add(own.to_owned(), uri.to_owned()),
                None => interest.remove(uri),
            }
        }
    }
}

/// A session may have subscribed to other resources of an upstream than its streams on this node know: they look.
pub(crate) fn look(state: &McpState, source: &UpstreamSource, session: SessionKey) {
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
