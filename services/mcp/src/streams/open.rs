//! Opens event streams: the GET stream of a session, and `subscriptions/listen`.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32},
    },
    time::Duration,
};

use axum::response::Response;
use bytes::Bytes;
use portolan_cluster::{OpenStream, node::Limit, store::StreamKey};
use portolan_keys::random;
use portolan_model::{Digest, Timestamp, limits::LimitName};
use portolan_protocol::{
    jsonrpc::RequestId,
    revision::Revision,
    sse,
    subscription::{self, Filter},
};

use crate::{
    call::stream_permit::StreamPermit,
    caller::Caller,
    catalog::{Place, marks::Marks, server::Server},
    error::McpError,
    limits::{Permit, openings::StreamStart},
    session::{LiveSession, event_id::EventId},
    streams::{
        reader::{Farewell, Holding, respond},
        services::StreamServices,
        tag::{Seen, StreamKind, StreamSubscriptions, Tag, reconnect_after, since},
    },
    target::{Target, Transport},
    tasks::caller_tasks::{CallerTasks, NoTask},
    upstream_subscriptions::{NotSubscribed, Subscription},
};

/// The request that opens a stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Opening<'a> {
    pub(crate) state: &'a StreamServices,
    pub(crate) target: Target<'a>,
    pub(crate) caller: &'a Arc<Caller>,
    pub(crate) server: &'a Arc<Server>,
    pub(crate) now: Timestamp,
}

/// MCP-AR-17: the longest time that a session's stream outlives its token.
pub(crate) const AFTER_EXPIRY: time::Duration = time::Duration::SECOND.saturating_mul(60);

/// MCP-SB-10: the longest lifetime of a listen stream.
pub(crate) const LONGEST_LISTEN: time::Duration = time::Duration::HOUR;

/// Admits a GET for a stream, after its turn.
///
/// A new stream is refused if the client opens too many a minute, or too many are open. A resume
/// waits (REVIEW-F1).
pub(crate) async fn let_in(
    context: &Opening<'_>,
    revision: Revision,
    start: StreamStart,
) -> Result<StreamPermit, McpError> {
    let (admission, server) = (&context.state.admission, context.server);
    let (tenant, limits) = (server.tenant, &server.limits);
    if start == StreamStart::New {
        // A refused stream takes no turn of the clients that wait below.
        let opens = &context.caller.stream_opens;
        let opening = admission.take(tenant, opens, limits.stream_opens).await;
        opening.map_err(|over| McpError::over(over, revision, None))?;
    }
    // After a node's death its clients come together.
    if !admission.wait_turn(tenant, start).await {
        return Err(McpError::Overloaded);
    }
    if start == StreamStart::Resumed {
        return Ok(StreamPermit::again(admission, tenant, server).await);
    }
    pass(context, revision, None).await.map(StreamPermit::from)
}

/// Takes the permit for one more stream: of the tenant in the cluster, and of this node
/// (STREAM-16.2, STREAM-16.3).
pub(crate) async fn pass(
    context: &Opening<'_>,
    revision: Revision,
    id: Option<&RequestId>,
) -> Result<Permit, McpError> {
    let server = context.server;
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
    context: &Opening<'_>,
    session: &LiveSession,
    known: Option<([u8; 8], Marks)>,
    pass: StreamPermit,
) -> Result<Response, McpError> {
    let (state, caller, now) = (context.state, context.caller, context.now);
    let LiveSession {
        id: session, body, ..
    } = session;
    let session = *session;
    let broken = known.map(|(stream, _)| stream);
    let has_come_back = known.is_some();
    let known = known.map_or(body.marks, |(_, marks)| marks);
    let stream = random::bytes::<8>().map_err(|_| McpError::Unavailable)?;
    let kind = StreamKind::Session {
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
        .want(state, context.server, uris);
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
    let id = EventId::News {
        stream,
        sequence: 0,
        marks: known,
    };
    let mut first = first_bytes(primed.then(|| id.to_wire(&state.keys, session.key)));
    if body.initialized {
        note_missed(&open.tag, context.server, &body.subscriptions);
        if has_come_back {
            repeat_updates(&open.tag);
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

/// The first bytes of a stream: the priming event with this id, if the revision has one.
fn first_bytes(priming: Option<String>) -> VecDeque<Bytes> {
    let mut first = VecDeque::with_capacity(3);
    if let Some(id) = priming {
        first.push_back(Bytes::from(sse::retry(reconnect_after())));
        first.push_back(Bytes::from(sse::priming(&id)));
    } else {
        // Older clients cannot read empty data (MCP-T-24), but proxies forward the head only with a
        // first byte.
        first.push_back(Bytes::from_static(sse::KEEP_ALIVE));
    }
    first
}

/// Notes the changes since the client's last stream. Without a record of the versions at that time,
/// all changes since the subscription count: a repeated notification is better than a lost one.
fn note_missed(tag: &Tag, server: &Server, subscriptions: &[(String, i64)]) {
    let subscribed = since(subscriptions);
    tag.seen().note(server, |_| true, &subscribed);
}

/// Notes every resource of upstream servers that the stream is subscribed to as updated. Their
/// notifications are not stored: a repeated one is better than a lost one.
fn repeat_updates(tag: &Tag) {
    let subscriptions = tag.subscriptions();
    let names = subscriptions.of.iter().flat_map(Subscription::all_names);
    tag.seen().updated.extend(names.map(str::to_owned));
}

/// Most URIs of one listen stream (STREAM-15.4); more are left out of the acknowledgement.
pub(crate) const MOST_URIS: usize = 256;

/// How long the acknowledgement waits for the answers of upstream servers to subscriptions.
///
/// A server without an answer may still send notifications later.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);

/// Opens a listen stream (MCP-SB-1…MCP-SB-11).
///
/// Its first event acknowledges the accepted subscriptions. These are the three lists, and the
/// existing resources (MCP-SB-6), except those that their server refuses (MCP-X-42, MCP-X-43).
pub(crate) async fn open_for_listen(
    context: &Opening<'_>,
    id: &RequestId,
    revision: Revision,
    asked: &Filter,
    pass: Permit,
) -> Result<Response, McpError> {
    let (state, caller, server) = (context.state, context.caller, context.server);
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
    let kind = StreamKind::Listen {
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
pub(crate) async fn refused(subscriptions: &[Subscription]) -> Vec<String> {
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

pub(crate) fn open(
    context: &Opening<'_>,
    group: Digest,
    limit: usize,
    seen: Mutex<Seen>,
    subscriptions: Vec<Subscription>,
    kind: StreamKind,
) -> Option<OpenStream<Tag>> {
    let server = context.server;
    let tag = Tag {
        caller: Arc::clone(context.caller),
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
