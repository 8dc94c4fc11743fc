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

use portolan_keys::digest;
use portolan_protocol::{jsonrpc::Raw, logging::Level, method::Method, revision::Era};
use portolan_upstream::{Client, Connection, Legacy, Link, Modern, Speaker, UpstreamError};
use tokio::time::Instant;

use crate::{
    backends::{
        services::Backends,
        upstream::{
            client::SignedIn,
            conversation::{NoConversation, Speaks, Spoken, is_same, say_level},
            pool::{Eras, Kept, Known, OrphanedSession, Owner, Sessions, Speaking, Upstreams},
            tickets::{of_session, peek, place},
        },
    },
    call::Call,
    catalog::upstream::UpstreamSource,
    session::OfSession,
};

/// Most sessions of one server that a node keeps for clients without sessions, and links of old
/// ones.
const POOLED: usize = 1_000;

/// The time without use after which they are ended.
const IDLE: Duration = Duration::from_secs(600);

/// The time until a server of 2026-07-28 is asked again for sessions, after an unclear answer
/// (MCP-X-4).
const ASK_AGAIN: Duration = Duration::from_secs(60);

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
        state: &Backends,
        source: &Arc<UpstreamSource>,
        (call, can, era): Speaks<'_>,
        signed_in: &SignedIn,
        gone: Option<&Connection>,
    ) -> Result<Connection, NoConversation> {
        let known = self.known(source);
        let client = &signed_in.client;
        let spoken = known.spoken(state, client, era).await?;
        let owner = Owner {
            speaker: Speaking::of(call),
            account: signed_in.account(),
        };
        let modern = || {
            let modern = Modern::new(client.clone(), call.speaker_of_request(can));
            Connection::Modern(modern)
        };
        let begun = match (spoken, call.of_session()) {
            (Spoken::Modern, _) => return Ok(modern()),
            (Spoken::Sessions, Some(session)) => {
                let place = place(session.key, source.id, owner.account);
                let begun = of_session(state, place, client, session, call, gone).await;
                if let Ok(Connection::Legacy(legacy)) = &begun
                    && legacy.ticket().has_session()
                {
                    let ticket = legacy.ticket();
                    let now = state.clock.now();
                    self.left.note(place, ticket, now, || OrphanedSession {
                        source: Arc::clone(source),
                        principal: session.principal,
                        person: session.person,
                        account: owner.account,
                        ticket: ticket.clone(),
                        due: now,
                    });
                }
                begun
            }
            (Spoken::Sessions, None) => {
                Box::pin(known.pooled(state, client, call, owner, gone)).await
            }
            (Spoken::Links, _) => Box::pin(known.link(state, client, call, owner, gone)).await,
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
        call: &Call,
        connection: &Connection,
        level: Level,
    ) {
        let is_new = {
            let known = self.known(source);
            let mut all = lock(&known.kept);
            let Some((_, kept)) = shared(&mut all, call, connection) else {
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
        call: &Call,
        connection: &Connection,
        roots: &Raw,
    ) {
        let roots = digest(roots.as_bytes());
        let known = self.known(source);
        let mut all = lock(&known.kept);
        let Some((owner, kept)) = shared(&mut all, call, connection) else {
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
    pub(crate) fn give_back(&self, state: &Backends) {
        self.left.look(state);
        for (_, known) in self.known.iter() {
            known.give_back(state);
        }
    }

    /// The newest era of a server, for callers with a conversation of their own.
    pub(crate) async fn spoken(
        &self,
        state: &Backends,
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
        state: &Backends,
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
    async fn probed(state: &Backends, client: &Client) -> Result<Eras, UpstreamError> {
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

    fn give_back(&self, state: &Backends) {
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
        state: &Backends,
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
    fn keep(&self, state: &Backends, owner: Owner, connection: Connection) -> Connection {
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
        state: &Backends,
        client: &Client,
        call: &Call,
        owner: Owner,
        gone: Option<&Connection>,
    ) -> Result<Connection, NoConversation> {
        if let Some(Connection::Legacy(kept)) = self.take(state, owner, gone) {
            // The current credential may differ from that at the begin of the session.
            let ticket = kept.ticket().clone();
            return Ok(Connection::Legacy(Legacy::resume(client.clone(), ticket)));
        }
        let (legacy, _) = Legacy::open(client, &call.speaker()).await?;
        Ok(self.keep(state, owner, Connection::Legacy(legacy)))
    }

    async fn link(
        &self,
        state: &Backends,
        client: &Client,
        call: &Call,
        owner: Owner,
        gone: Option<&Connection>,
    ) -> Result<Connection, NoConversation> {
        if let Some(kept) = self.take(state, owner, gone) {
            return Ok(kept);
        }
        let (link, _) = Link::open(client, &call.speaker(), &state.tracker).await?;
        Ok(self.keep(state, owner, Connection::Link(link)))
    }
}

/// The session that a principal's requests share, if `connection` is that one.
fn shared<'a>(
    kept: &'a mut HashMap<Owner, Kept>,
    call: &Call,
    connection: &Connection,
) -> Option<(Owner, &'a mut Kept)> {
    if call.session.is_some() {
        return None;
    }
    let speaker = Speaking::of(call);
    kept.iter_mut()
        .find(|(owner, kept)| owner.speaker == speaker && is_same(&kept.connection, connection))
        .map(|(owner, kept)| (*owner, kept))
}

impl UpstreamSource {
    /// MCP-X-72: sends a session's new log level to the server, if they have a conversation.
    pub(crate) async fn level_changed(&self, state: &Backends, session: OfSession) {
        if let Some(connection) = self.conversation_of(state, session).await {
            say_level(&connection, session.level).await;
        }
    }

    /// The conversation of a client's session with the server, if there is one.
    async fn conversation_of(&self, state: &Backends, session: OfSession) -> Option<Connection> {
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
    state: Backends,
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
    state: Backends,
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
