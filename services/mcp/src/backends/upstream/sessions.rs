//! Conversations with upstream servers. A session of a client has its own (X-12): the id lies sealed in a record beside that of the
//! client's session, so that any node goes on with it (`streams.md` §13). A client without sessions shares one with itself, on each
//! node (X-10). What belongs to a connection (2024-11-05) belongs to the node that holds it.

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

use super::{
    NoClient, SignedIn, UpstreamSource,
    forward::said,
    leftovers::{Leftover, Leftovers},
    tickets::{Opened, of_session, peek, place},
};
use crate::state::McpState;

/// Servers that a node remembers. Forgetting one costs a probe.
const SERVERS: usize = 10_000;
/// Opened tickets that a node remembers.
const OPENED: usize = 4_096;
/// Sessions of one server that a node keeps for clients without sessions, and connections of old ones.
const POOLED: usize = 1_000;
/// After so long without use they are given back.
const IDLE: Duration = Duration::from_secs(600);

/// Before a server of 2026-07-28 is asked again whether it holds sessions, where it did not say (X-4).
const ASK_AGAIN: Duration = Duration::from_secs(60);

/// How a server is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spoken {
    /// Every request stands alone.
    Modern,
    /// In sessions of Streamable HTTP.
    Sessions,
    /// In sessions of HTTP+SSE.
    Links,
}

/// The eras that a server speaks.
#[derive(Debug, Clone, Copy)]
struct Eras {
    /// The newest that both know.
    newest: Spoken,
    /// Whether a server of 2026-07-28 holds sessions too.
    sessions: Sessions,
}

/// Whether a server of 2026-07-28 holds sessions too.
#[derive(Debug, Clone, Copy)]
enum Sessions {
    /// No client of the session era has called.
    Unasked,
    /// The server did not say (X-4): it is asked again after this.
    Unsaid(Instant),
    /// It does.
    Held,
    /// It does not.
    Absent,
}

/// Whose conversation it is, among those that a node keeps itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Owner {
    speaker: Speaking,
    /// The account at the server that opened it: what one began, no other goes on with.
    account: Option<Uuid>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Speaking {
    Session([u8; 16]),
    /// With what it can do (X-10).
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
    /// What the server was told to log (X-74).
    level: Option<Level>,
    /// The roots that the server was told (X-3I).
    roots: Option<Digest>,
}

/// What a node remembers of a server.
#[derive(Debug, Default)]
struct Known {
    /// One question at a time.
    eras: tokio::sync::Mutex<Option<Eras>>,
    kept: Mutex<HashMap<Owner, Kept>>,
    /// Sessions that no new call gets, with the time when they were left.
    left: Mutex<Vec<(Connection, Instant)>>,
}

/// What a node remembers of all servers.
#[derive(Debug)]
pub(crate) struct Upstreams {
    known: Cache<String, Arc<Known>>,
    /// Tickets that were opened last: whoever calls again and again asks the store for the record from time to time.
    pub(super) opened: Cache<[u8; 16], Opened>,
    /// The sessions of sessions.
    pub(crate) left: Leftovers,
}

impl Default for Upstreams {
    fn default() -> Self {
        Self {
            known: Cache::new(SERVERS),
            opened: Cache::new(OPENED),
            left: Leftovers::default(),
        }
    }
}

/// The session of a client.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OfSession {
    pub(crate) key: SessionKey,
    pub(crate) principal: Principal,
    /// The person whose it is, if one's.
    pub(crate) person: Option<UserId>,
    /// What is left of its life.
    pub(crate) life: Duration,
    /// What it wants to hear of logs.
    pub(crate) level: Level,
}

/// Who speaks through us.
#[derive(Debug, Clone)]
pub(crate) struct Who {
    /// Its session, if it has one.
    pub(crate) session: Option<OfSession>,
    /// The person behind it, if one is, for accounts of their own.
    pub(crate) person: Option<UserId>,
    /// Tenant, person and client.
    pub(crate) principal: Digest,
    /// For the address of the console's page that mends a credential.
    pub(crate) tenant_slug: Box<str>,
    /// What it calls itself.
    pub(crate) client_name: Option<Arc<str>>,
    /// What it said that it can do.
    pub(crate) declared: ClientCapabilities,
    /// What it can do, in short: who can do more does not share a session with who can do less (X-10).
    pub(crate) fingerprint: u8,
}

/// What a client can do on one request, for servers that ask nothing of earlier ones (X-14, X-15), and whether it takes a task. `None` is nothing.
pub(super) type OnRequest<'a> = Option<(&'a ClientCapabilities, bool)>;

/// Who speaks, with what it can do on this request, and the era in which a server that knows both is
/// spoken to: that of the client (X-5).
pub(super) type Speaks<'a> = (&'a Who, OnRequest<'a>, Era);

impl Who {
    /// What servers of the session era are told of it when a session begins.
    pub(super) fn speaker(&self) -> Speaker {
        let name = self.client_name.as_deref().unwrap_or("portolan");
        let card = Implementation::new(name, env!("CARGO_PKG_VERSION"));
        Speaker {
            info: Raw::of(&card).unwrap_or_else(|_| Speaker::ourselves().info),
            capabilities: said(&self.declared, Revision::LATEST_LEGACY, false),
        }
    }

    /// What servers of 2026-07-28 are told of it on a request.
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
    /// The server.
    #[error("{0}")]
    Upstream(#[from] UpstreamError),
    /// The credential.
    #[error("{0}")]
    Client(#[from] NoClient),
    /// What nodes share does not answer.
    #[error("the store does not answer")]
    Store,
    /// The client's session is over.
    #[error("the session is over")]
    Over,
    /// The server asked its client too often in one call (X-24).
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

    /// The conversation of `who` with a server, begun if there is none. `gone` is one that the server has forgotten (X-7).
    pub(super) async fn connect(
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
                    self.left.note(place, ticket, now, || Leftover {
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
            // It does not hold sessions now, and is spoken to as it can be.
            return Ok(modern());
        }
        begun
    }

    /// X-74: a session that requests share logs as much as the most talkative of them wants. What others do not want to hear is kept from
    /// them on their own streams.
    pub(super) async fn wants_logs(
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

    /// X-3I: a session whose server was told other roots before gets no more calls.
    pub(super) fn told_roots(
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

    /// Gives back what nobody has used for a while (X-10), and takes leave for clients that are gone (`streams.md` §13).
    pub(crate) fn give_back(&self, state: &McpState) {
        self.left.look(state);
        for (_, known) in self.known.iter() {
            known.give_back(state);
        }
    }

    /// The newest era of a server, for who speaks to it in a conversation of its own.
    pub(crate) async fn spoken(
        &self,
        state: &McpState,
        source: &UpstreamSource,
        client: &Client,
    ) -> Result<Spoken, UpstreamError> {
        self.known(source).spoken(state, client, Era::Modern).await
    }

    /// What was remembered of the server is wrong: it is probed again (X-1).
    pub(crate) async fn forget(&self, source: &UpstreamSource) {
        *self.known(source).eras.lock().await = None;
    }
}

impl Known {
    /// How the server is spoken to for a client of `era`: in that era if it knows it, else in the one that
    /// it has (X-5). Each question is put once (X-1); an answer that says nothing (X-4) is not remembered.
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

    /// Notes that the server holds no sessions for now; it is asked again. False if it speaks nothing else.
    async fn gives_up_sessions(&self) -> bool {
        match &mut *self.eras.lock().await {
            Some(known) if known.newest == Spoken::Modern => {
                known.sessions = Sessions::Unsaid(Instant::now() + ASK_AGAIN);
                true
            }
            _ => false,
        }
    }

    /// The newest era of the server.
    async fn probed(state: &McpState, client: &Client) -> Result<Eras, UpstreamError> {
        // What happens once is boxed, here and below: it would make the future of every call as large as itself.
        let ourselves = Speaker::ourselves();
        let probed = Box::pin(client.probe(&ourselves, &state.tracker));
        let probed = probed.await?.connection;
        let newest = match &probed {
            Connection::Modern(_) => Spoken::Modern,
            Connection::Legacy(_) => Spoken::Sessions,
            Connection::Link(_) => Spoken::Links,
        };
        // The session of the question was nobody's.
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

    /// A kept conversation that is not `gone`; old ones are given back meanwhile.
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

    /// Keeps a new conversation, unless another one was faster: then that one holds, and ours is given back.
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
            // The credential of today, which may be another than that of the day it was opened.
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

/// The session that a principal shares with itself, if `connection` is that one.
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

pub(super) fn is_same(a: &Connection, b: &Connection) -> bool {
    match (a, b) {
        (Connection::Legacy(a), Connection::Legacy(b)) => a.ticket() == b.ticket(),
        (Connection::Link(a), Connection::Link(b)) => Arc::ptr_eq(a, b),
        _ => false,
    }
}

/// X-72: a new session of the server hears what its client wants to hear.
pub(super) async fn set_level(connection: &Connection, facts: &ServerFacts, level: Level) {
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
    /// X-72: tells the server of a session, if it has been spoken to, what its client wants to hear from now on.
    pub(crate) async fn level_changed(&self, state: &McpState, session: OfSession) {
        if let Some(connection) = self.conversation_of(state, session).await {
            say_level(&connection, session.level).await;
        }
    }

    /// The conversation that a client's session has had with the server, if it has.
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

/// X-3G: the servers of a client's session hear that its roots are others now.
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

/// The session of a client is over: so are those that it had with servers (X-12).
pub(crate) async fn end_sessions(
    state: McpState,
    sources: Vec<Arc<UpstreamSource>>,
    session: OfSession,
) {
    for source in sources {
        let speaker = Speaking::Session(session.key.0);
        lock(&state.upstreams.known(&source).kept).retain(|owner, _| owner.speaker != speaker);
        // What an account began that is not there any more ends by itself, some time.
        let Ok(account) = source.account_of(&state, session.person).await else {
            continue;
        };
        let place = place(session.key, source.id, account);
        state.upstreams.left.forget(place);
        // A server that was never spoken to is not asked for a token either.
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
        // What is left of the record goes with its life; a tombstone keeps the session from being begun again.
        let _ = state.node.end(place, session.principal, session.life).await;
    }
}
