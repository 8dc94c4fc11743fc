//! Conversations with upstream servers.
//!
//! A session of a client has its own (MCP-X-12). The id is sealed in a record beside that of the
//! client's session, so any node can continue it (STREAM-13). A client without sessions
//! shares one among its requests on each node (MCP-X-10). A connection of 2024-11-05 belongs to the
//! node that holds it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use portolan_cluster::{SessionKey, store::Principal};
use portolan_keys::digest;
use portolan_model::{Digest, id::UserId};
use portolan_protocol::{
    capability::ClientCapabilities,
    initialize::Implementation,
    jsonrpc::Raw,
    logging::Level,
    method::Method,
    result::write_string,
    revision::{Era, Revision},
};
use portolan_upstream::{
    Client, Connection, Legacy, Link, Modern, Request, ServerFacts, Speaker, UpstreamError,
};
use quick_cache::sync::Cache;
use tokio::time::Instant;
use uuid::Uuid;

use crate::backends::upstream::{
    NoClient, SignedIn, UpstreamSource,
    forward::said,
    orphaned_sessions::{OrphanedSession, OrphanedSessions},
    tickets::{Opened, of_session, peek, place},
};
use crate::http::state::McpState;

/// Most servers in the cache of a node. A removed one is probed again.
const SERVERS: usize = 10_000;
/// Most opened tickets in the cache of a node.
const OPENED: usize = 4_096;
/// Most sessions of one server that a node keeps for clients without sessions, and links of old
/// ones.
const POOLED: usize = 1_000;
/// The time without use after which they are ended.
const IDLE: Duration = Duration::from_secs(600);

/// The time until a server of 2026-07-28 is asked again for sessions, after an unclear answer
/// (MCP-X-4).
const ASK_AGAIN: Duration = Duration::from_secs(60);

/// The transport of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spoken {
    /// Every request stands alone.
    Modern,
    /// In sessions of Streamable HTTP.
    Sessions,
    /// In sessions of HTTP+SSE.
    Links,
}

/// The eras that a server supports.
#[derive(Debug, Clone, Copy)]
struct Eras {
    /// The newest one that both sides support.
    newest: Spoken,
    /// Whether a server of 2026-07-28 supports sessions too.
    sessions: Sessions,
}

/// Whether a server of 2026-07-28 supports sessions too.
#[derive(Debug, Clone, Copy)]
enum Sessions {
    /// No client of the session era has called.
    Unasked,
    /// The answer was unclear (MCP-X-4): the server is asked again at this time.
    Unsaid(Instant),
    /// It supports them.
    Held,
    /// It does not support them.
    Absent,
}

/// The owner of a conversation that a node keeps itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Owner {
    speaker: Speaking,
    /// The account at the server that opened it. No other account continues it.
    account: Option<Uuid>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Speaking {
    Session([u8; 16]),
    /// A principal with its capabilities (MCP-X-10).
    Principal(Digest, u8),
}

impl Speaking {
    fn of(who: &Who) -> Self {
        match who.session {
            Some(session) => Self::Session(session.key.0),
            None => Self::Principal(who.principal, who.fingerprint),
        }
    }
}

#[derive(Debug)]
struct Kept {
    connection: Connection,
    used: Instant,
    /// The log level that was sent to the server (MCP-X-74).
    level: Option<Level>,
    /// The roots that were sent to the server (MCP-X-3I).
    roots: Option<Digest>,
}

/// The state of a server on this node.
#[derive(Debug, Default)]
struct Known {
    /// The lock allows one probe at a time.
    eras: tokio::sync::Mutex<Option<Eras>>,
    kept: Mutex<HashMap<Owner, Kept>>,
    /// Sessions that get no new calls, with the time of their last use.
    left: Mutex<Vec<(Connection, Instant)>>,
}

/// The state of all servers on this node.
#[derive(Debug)]
pub(crate) struct Upstreams {
    known: Cache<String, Arc<Known>>,
    /// Recently opened tickets. A frequent caller reads the record only from time to time.
    pub(crate) opened: Cache<[u8; 16], Opened>,
    /// The upstream sessions of client sessions.
    pub(crate) left: OrphanedSessions,
}

impl Default for Upstreams {
    fn default() -> Self {
        Self {
            known: Cache::new(SERVERS),
            opened: Cache::new(OPENED),
            left: OrphanedSessions::default(),
        }
    }
}

/// The session of a client.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OfSession {
    pub(crate) key: SessionKey,
    pub(crate) principal: Principal,
    /// The person that owns it, if one does.
    pub(crate) person: Option<UserId>,
    /// The rest of its lifetime.
    pub(crate) life: Duration,
    /// Its log level.
    pub(crate) level: Level,
}

/// The identity of a caller for upstream servers.
#[derive(Debug, Clone)]
pub(crate) struct Who {
    /// Its session, if it has one.
    pub(crate) session: Option<OfSession>,
    /// The person behind it, if there is one, for accounts of their own.
    pub(crate) person: Option<UserId>,
    /// The digest of tenant, person and client.
    pub(crate) principal: Digest,
    /// For the address of the console's page for a credential.
    pub(crate) tenant_slug: Box<str>,
    /// The client's name.
    pub(crate) client_name: Option<Arc<str>>,
    /// The declared capabilities.
    pub(crate) declared: ClientCapabilities,
    /// The capabilities as bits: clients that differ in them do not share a session (MCP-X-10).
    pub(crate) fingerprint: u8,
}

/// A client's capabilities on one request, and whether it accepts a task; `None` is no
/// capabilities.
///
/// For servers that keep nothing of earlier requests (MCP-X-14, MCP-X-15).
pub(crate) type OnRequest<'a> = Option<(&'a ClientCapabilities, bool)>;

/// The caller, its capabilities on this request, and the client's era.
///
/// A server that supports both eras is used in that of the client (MCP-X-5).
pub(crate) type Speaks<'a> = (&'a Who, OnRequest<'a>, Era);

impl Who {
    /// The identity for servers of the session era at the begin of a session.
    pub(crate) fn speaker(&self) -> Speaker {
        let name = self.client_name.as_deref().unwrap_or("portolan");
        let card = Implementation::new(name, env!("CARGO_PKG_VERSION"));
        Speaker {
            info: Raw::of(&card).unwrap_or_else(|_| Speaker::ourselves().info),
            capabilities: said(&self.declared, Revision::LATEST_LEGACY, false),
        }
    }

    /// The identity for servers of 2026-07-28 on a request.
    fn speaker_of_request(&self, can: OnRequest<'_>) -> Speaker {
        let capabilities = match can {
            Some((capabilities, as_task)) => said(capabilities, Revision::V2026_07_28, as_task),
            None => Raw::empty_object(),
        };
        Speaker {
            capabilities,
            ..self.speaker()
        }
    }
}

/// Why there is no conversation.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoConversation {
    /// An error of the server.
    #[error("{0}")]
    Upstream(#[from] UpstreamError),
    /// An error of the credential.
    #[error("{0}")]
    Client(#[from] NoClient),
    /// The store does not answer.
    #[error("the store does not answer")]
    Store,
    /// The client's session is over.
    #[error("the session is over")]
    Over,
    /// The server asked its client too often in one call (MCP-X-24).
    #[error("the server asked too many times")]
    TooManyRounds,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Upstreams {
    fn known(&self, source: &UpstreamSource) -> Arc<Known> {
        let made = || Ok::<_, std::convert::Infallible>(Arc::default());
        let Ok(known) = self.known.get_or_insert_with(source.place.as_str(), made);
        known
    }

    /// The conversation of `who` with a server, begun if there is none.
    ///
    /// `gone` is one that the server has forgotten (MCP-X-7).
    pub(crate) async fn connect(
        &self,
        state: &McpState,
        source: &Arc<UpstreamSource>,
        (who, can, era): Speaks<'_>,
        signed_in: &SignedIn,
        gone: Option<&Connection>,
    ) -> Result<Connection, NoConversation> {
        let known = self.known(source);
        let client = &signed_in.client;
        let spoken = known.spoken(state, client, era).await?;
        let owner = Owner {
            speaker: Speaking::of(who),
            account: signed_in.account(),
        };
        let modern = || {
            let modern = Modern::new(client.clone(), who.speaker_of_request(can));
            Connection::Modern(modern)
        };
        let begun = match (spoken, who.session) {
            (Spoken::Modern, _) => return Ok(modern()),
            (Spoken::Sessions, Some(session)) => {
                let place = place(session.key, source.id, owner.account);
                let begun = of_session(state, place, client, session, who, gone).await;
                if let Ok(Connection::Legacy(legacy)) = &begun
                    && legacy.ticket().has_session()
                {
                    let ticket = legacy.ticket();
                    let now = state.clock.now();
                    self.left.note(place, ticket, now, || OrphanedSession {
                        source: Arc::clone(source),
                        principal: session.principal,
                        person: who.person,
                        account: owner.account,
                        ticket: ticket.clone(),
                        due: now,
                    });
                }
                begun
            }
            (Spoken::Sessions, None) => {
                Box::pin(known.pooled(state, client, who, owner, gone)).await
            }
            (Spoken::Links, _) => Box::pin(known.link(state, client, who, owner, gone)).await,
        };
        let holds_none = match &begun {
            Err(NoConversation::Upstream(error)) => error.is_no_handshake(),
            _ => false,
        };
        if holds_none && known.gives_up_sessions().await {
            // The server supports no sessions now, and is used in its other era.
            return Ok(modern());
        }
        begun
    }

    /// MCP-X-74: a shared session has the lowest log level of its clients.
    ///
    /// Each client's own stream leaves out the messages below its level.
    pub(crate) async fn wants_logs(
        &self,
        source: &UpstreamSource,
        who: &Who,
        connection: &Connection,
        level: Level,
    ) {
        let is_new = {
            let known = self.known(source);
            let mut all = lock(&known.kept);
            let Some((_, kept)) = shared(&mut all, who, connection) else {
                return;
            };
            let is_new = kept.level.is_none_or(|said| said > level);
            if is_new {
                kept.level = Some(level);
            }
            is_new
        };
        if is_new {
            say_level(connection, level).await;
        }
    }

    /// MCP-X-3I: a session whose server has other roots gets no more calls.
    pub(crate) fn told_roots(
        &self,
        source: &UpstreamSource,
        who: &Who,
        connection: &Connection,
        roots: &Raw,
    ) {
        let roots = digest(roots.as_bytes());
        let known = self.known(source);
        let mut all = lock(&known.kept);
        let Some((owner, kept)) = shared(&mut all, who, connection) else {
            return;
        };
        if *kept.roots.get_or_insert(roots) == roots {
            return;
        }
        let kept = all.remove(&owner);
        drop(all);
        if let Some(kept) = kept {
            lock(&known.left).push((kept.connection, Instant::now()));
        }
    }

    /// Ends unused conversations (MCP-X-10), and sessions of clients that are gone (STREAM-13).
    pub(crate) fn give_back(&self, state: &McpState) {
        self.left.look(state);
        for (_, known) in self.known.iter() {
            known.give_back(state);
        }
    }

    /// The newest era of a server, for callers with a conversation of their own.
    pub(crate) async fn spoken(
        &self,
        state: &McpState,
        source: &UpstreamSource,
        client: &Client,
    ) -> Result<Spoken, UpstreamError> {
        self.known(source).spoken(state, client, Era::Modern).await
    }

    /// Forgets the eras of a server after a mismatch: it is probed again (MCP-X-1).
    pub(crate) async fn forget(&self, source: &UpstreamSource) {
        *self.known(source).eras.lock().await = None;
    }
}

impl Known {
    /// The transport of the server for a client of `era`: in that era if it is supported, else in
    /// the other (MCP-X-5).
    ///
    /// Each probe is sent once (MCP-X-1); an unclear answer (MCP-X-4) is not cached.
    async fn spoken(
        &self,
        state: &McpState,
        client: &Client,
        era: Era,
    ) -> Result<Spoken, UpstreamError> {
        let mut eras = self.eras.lock().await;
        let known = match &mut *eras {
            Some(known) => known,
            unknown => unknown.insert(Self::probed(state, client).await?),
        };
        if era == Era::Modern || known.newest != Spoken::Modern {
            return Ok(known.newest);
        }
        let is_due = match known.sessions {
            Sessions::Held => return Ok(Spoken::Sessions),
            Sessions::Absent => return Ok(Spoken::Modern),
            Sessions::Unasked => true,
            Sessions::Unsaid(again) => again <= Instant::now(),
        };
        if is_due {
            let ourselves = Speaker::ourselves();
            known.sessions = match Box::pin(client.holds_sessions(&ourselves)).await {
                Ok(Some(session)) => {
                    state
                        .tracker
                        .spawn(async move { session.connection.end().await });
                    Sessions::Held
                }
                Ok(None) => Sessions::Absent,
                Err(error) => {
                    tracing::debug!(reason = %error, "an upstream server does not say whether it holds sessions");
                    Sessions::Unsaid(Instant::now() + ASK_AGAIN)
                }
            };
        }
        Ok(match known.sessions {
            Sessions::Held => Spoken::Sessions,
            _ => Spoken::Modern,
        })
    }

    /// Notes that the server supports no sessions for now; it is asked again.
    ///
    /// False if it supports nothing else.
    async fn gives_up_sessions(&self) -> bool {
        match &mut *self.eras.lock().await {
            Some(known) if known.newest == Spoken::Modern => {
                known.sessions = Sessions::Unsaid(Instant::now() + ASK_AGAIN);
                true
            }
            _ => false,
        }
    }

    /// Probes the newest era of the server.
    async fn probed(state: &McpState, client: &Client) -> Result<Eras, UpstreamError> {
        // Rare work is boxed, here and below: else the future of every call would be as large.
        let ourselves = Speaker::ourselves();
        let probed = Box::pin(client.probe(&ourselves, &state.tracker));
        let probed = probed.await?.connection;
        let newest = match &probed {
            Connection::Modern(_) => Spoken::Modern,
            Connection::Legacy(_) => Spoken::Sessions,
            Connection::Link(_) => Spoken::Links,
        };
        // The session of the probe has no other use.
        state.tracker.spawn(async move { probed.end().await });
        Ok(Eras {
            newest,
            sessions: Sessions::Unasked,
        })
    }

    fn give_back(&self, state: &McpState) {
        let mut idle = Vec::new();
        lock(&self.kept).retain(|_, kept| {
            let is_used = kept.used.elapsed() <= IDLE;
            if !is_used {
                idle.push(kept.connection.clone());
            }
            is_used
        });
        lock(&self.left).retain(|(connection, since)| {
            // Calls may still run in it.
            let is_used = since.elapsed() <= IDLE;
            if !is_used {
                idle.push(connection.clone());
            }
            is_used
        });
        for idle in idle {
            state.tracker.spawn(async move { idle.end().await });
        }
    }

    /// A kept conversation that is not `gone`; unused ones are ended meanwhile.
    fn take(
        &self,
        state: &McpState,
        owner: Owner,
        gone: Option<&Connection>,
    ) -> Option<Connection> {
        self.give_back(state);
        let mut kept = lock(&self.kept);
        let found = kept.get_mut(&owner)?;
        if gone.is_some_and(|gone| is_same(gone, &found.connection))
            || matches!(&found.connection, Connection::Link(link) if link.is_over())
        {
            kept.remove(&owner);
            return None;
        }
        found.used = Instant::now();
        Some(found.connection.clone())
    }

    /// Keeps a new conversation. If another one was faster, that one stays, and this one is ended.
    fn keep(&self, state: &McpState, owner: Owner, connection: Connection) -> Connection {
        let mut kept = lock(&self.kept);
        if let Some(first) = kept.get_mut(&owner) {
            first.used = Instant::now();
            let first = first.connection.clone();
            state.tracker.spawn(async move { connection.end().await });
            return first;
        }
        if kept.len() < POOLED {
            let kept_now = Kept {
                connection: connection.clone(),
                used: Instant::now(),
                level: None,
                roots: None,
            };
            kept.insert(owner, kept_now);
        }
        connection
    }

    async fn pooled(
        &self,
        state: &McpState,
        client: &Client,
        who: &Who,
        owner: Owner,
        gone: Option<&Connection>,
    ) -> Result<Connection, NoConversation> {
        if let Some(Connection::Legacy(kept)) = self.take(state, owner, gone) {
            // The current credential may differ from that at the begin of the session.
            let ticket = kept.ticket().clone();
            return Ok(Connection::Legacy(Legacy::resume(client.clone(), ticket)));
        }
        let (legacy, _) = Legacy::open(client, &who.speaker()).await?;
        Ok(self.keep(state, owner, Connection::Legacy(legacy)))
    }

    async fn link(
        &self,
        state: &McpState,
        client: &Client,
        who: &Who,
        owner: Owner,
        gone: Option<&Connection>,
    ) -> Result<Connection, NoConversation> {
        if let Some(kept) = self.take(state, owner, gone) {
            return Ok(kept);
        }
        let (link, _) = Link::open(client, &who.speaker(), &state.tracker).await?;
        Ok(self.keep(state, owner, Connection::Link(link)))
    }
}

/// The session that a principal's requests share, if `connection` is that one.
fn shared<'a>(
    kept: &'a mut HashMap<Owner, Kept>,
    who: &Who,
    connection: &Connection,
) -> Option<(Owner, &'a mut Kept)> {
    if who.session.is_some() {
        return None;
    }
    let speaker = Speaking::of(who);
    kept.iter_mut()
        .find(|(owner, kept)| owner.speaker == speaker && is_same(&kept.connection, connection))
        .map(|(owner, kept)| (*owner, kept))
}

pub(crate) fn is_same(a: &Connection, b: &Connection) -> bool {
    match (a, b) {
        (Connection::Legacy(a), Connection::Legacy(b)) => a.ticket() == b.ticket(),
        (Connection::Link(a), Connection::Link(b)) => Arc::ptr_eq(a, b),
        _ => false,
    }
}

/// MCP-X-72: sends the client's log level to a new session of the server.
pub(crate) async fn set_level(connection: &Connection, facts: &ServerFacts, level: Level) {
    if level != Level::SESSION_DEFAULT && facts.has("logging") {
        say_level(connection, level).await;
    }
}

async fn say_level(connection: &Connection, level: Level) {
    let mut params = br#"{"level":"#.to_vec();
    write_string(level.as_str(), &mut params);
    params.push(b'}');
    let params = Raw::parse(params).unwrap_or_else(|_| Raw::empty_object());
    let request = Request::new(Method::SetLevel.name(), params);
    if let Err(error) = connection.ask(&request).await {
        tracing::debug!(reason = %error, "an upstream server takes no log level");
    }
}

impl UpstreamSource {
    /// MCP-X-72: sends a session's new log level to the server, if they have a conversation.
    pub(crate) async fn level_changed(&self, state: &McpState, session: OfSession) {
        if let Some(connection) = self.conversation_of(state, session).await {
            say_level(&connection, session.level).await;
        }
    }

    /// The conversation of a client's session with the server, if there is one.
    async fn conversation_of(&self, state: &McpState, session: OfSession) -> Option<Connection> {
        let account = self.account_of(state, session.person).await.ok()?;
        let place = place(session.key, self.id, account);
        let ticket = peek(state, place, session.principal).await.ok()??;
        let signed_in = self.sign_in(state, session.person).await.ok()?;
        if signed_in.account() != account {
            return None;
        }
        Some(Connection::Legacy(Legacy::resume(signed_in.client, ticket)))
    }
}

/// MCP-X-3G: notifies the servers of a client's session that its roots have changed.
pub(crate) async fn roots_changed(
    state: McpState,
    sources: Vec<Arc<UpstreamSource>>,
    session: OfSession,
) {
    for source in sources {
        let speaker = Speaking::Session(session.key.0);
        let mut connections: Vec<Connection> = lock(&state.upstreams.known(&source).kept)
            .iter()
            .filter(|(owner, _)| owner.speaker == speaker)
            .map(|(_, kept)| kept.connection.clone())
            .collect();
        if connections.is_empty() {
            connections.extend(source.conversation_of(&state, session).await);
        }
        for connection in connections {
            let told = connection.notify(Method::RootsListChanged.name(), None);
            if let Err(error) = told.await {
                tracing::debug!(source.id = %source.id, reason = %error, "an upstream server does not hear of other roots");
            }
        }
    }
}

/// Ends a client session's sessions with servers, after its own end (MCP-X-12).
pub(crate) async fn end_sessions(
    state: McpState,
    sources: Vec<Arc<UpstreamSource>>,
    session: OfSession,
) {
    for source in sources {
        let speaker = Speaking::Session(session.key.0);
        lock(&state.upstreams.known(&source).kept).retain(|owner, _| owner.speaker != speaker);
        // A session of a disconnected account expires at the server.
        let Ok(account) = source.account_of(&state, session.person).await else {
            continue;
        };
        let place = place(session.key, source.id, account);
        state.upstreams.left.forget(place);
        // Without a conversation there is no need for a token.
        let Ok(Some(ticket)) = peek(&state, place, session.principal).await else {
            continue;
        };
        if let Ok(signed_in) = source.sign_in(&state, session.person).await
            && signed_in.account() == account
        {
            Connection::Legacy(Legacy::resume(signed_in.client, ticket))
                .end()
                .await;
        }
        state.upstreams.opened.remove(&place.0);
        // The rest of the record expires; a tombstone prevents a new begin of the session.
        let _ = state.node.end(place, session.principal, session.life).await;
    }
}
