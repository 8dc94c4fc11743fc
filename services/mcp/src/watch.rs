//! Subscriptions to upstream servers, for the clients whose streams are open on this node
//! (MCP-X-40…MCP-X-45, STREAM-15.3).
//!
//! The servers notify of changed lists and of changed resources.
//!
//! ```text
//! stream of a client ─► Interest ─► Watch, one a server and node
//!   Watch ─┬─ one node has the lease: `holder` subscribes at the server
//!          └─ the others send it the URIs that they want (`note`)
//! list changed ─► refresh of the server ─► registry change ─► every stream
//! resource updated ─► the nodes that subscribe ─► their streams
//! ```
//!
//! Without an open stream there is no subscription, and no task runs.

mod holder;
mod lease;
mod note;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use portolan_cluster::{SessionKey, node::SessionMessages, store::NodeId};
use portolan_keys::digest;
use tokio::{
    sync::{Notify, mpsc, watch},
    time::{Instant, MissedTickBehavior, interval, timeout},
};
use tokio_util::sync::{CancellationToken, DropGuard};

use self::{
    holder::{Told, Watching},
    lease::{BEAT, Lease},
    note::{Note, parts, without},
};
use crate::{
    backends::upstream::UpstreamSource,
    catalog::{offers::ResourceBackend, server::Server},
    state::McpState,
    stream,
};

/// The interval at which a node repeats its URIs to the leader, and how long they are valid there.
const REFRESH: Duration = Duration::from_secs(20);
const HOLDS: Duration = Duration::from_secs(60);
/// How long a watch continues after its last stream, because clients come back.
const LINGER: Duration = Duration::from_secs(15);
/// Most URIs that a node subscribes to at one server.
const MOST_URIS: usize = 1024;
/// MCP-X-40: how long a subscribing client waits for the server.
const ACKNOWLEDGE: Duration = Duration::from_secs(5);
/// Most notifications of the server that wait.
const WORDS: usize = 256;

/// The watched servers of this node.
#[derive(Debug, Default)]
pub(crate) struct Watches {
    by_place: Mutex<HashMap<String, Arc<Watch>>>,
}

/// The subscriptions of this node at one server.
#[derive(Debug)]
pub(crate) struct Watch {
    source: Arc<UpstreamSource>,
    key: SessionKey,
    wanted: Mutex<Wanted>,
    changed: Notify,
    standing: watch::Sender<Subscribed>,
}

#[derive(Debug, Default)]
struct Wanted {
    streams: usize,
    uris: BTreeMap<String, usize>,
}

/// The server's answers to the subscribed URIs.
#[derive(Debug, Clone, Default)]
struct Subscribed {
    acknowledged: BTreeSet<String>,
    refused: BTreeSet<String>,
}

/// Why a subscription to a resource failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotSubscribed {
    /// The server refuses it (MCP-X-18).
    Refused,
    /// The server did not answer in time (MCP-X-40).
    Late,
}

/// The subscriptions of one stream at one server, until it is dropped.
#[derive(Debug)]
pub(crate) struct Interest {
    watch: Arc<Watch>,
    /// The URI at the upstream server, and the one that the client knows.
    uris: Vec<(String, String)>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The key that the nodes with subscriptions at a server share.
///
/// Another address or credential is another server.
fn key_of(place: &str) -> SessionKey {
    let mut key = [0; 16];
    let name = digest(&[&b"upstream watch"[..], place.as_bytes()].concat());
    key.copy_from_slice(&name.as_bytes()[..16]);
    SessionKey(key)
}

/// The upstream server of a resource, and its URI there; `None` if it has no upstream server.
pub(crate) fn own_uri(server: &Server, uri: &str) -> Option<(Arc<UpstreamSource>, String)> {
    let (resource, _) = server.offers.resource(uri)?;
    let ResourceBackend::Upstream(place) = &resource.backend else {
        return None;
    };
    let own = resource.own_uri(uri)?;
    Some((Arc::clone(&place.source), own))
}

impl Watches {
    /// Subscribes a stream at the upstream servers behind `server`. `uris` are the client's
    /// resources.
    pub(crate) fn want<'u>(
        &self,
        state: &McpState,
        server: &Server,
        uris: impl Iterator<Item = &'u str>,
    ) -> Vec<Interest> {
        let sources = server.upstreams();
        if sources.is_empty() {
            return Vec::new();
        }
        let mut interests: Vec<Interest> = sources
            .iter()
            .map(|source| self.interest(state, source))
            .collect();
        for uri in uris {
            if let Some((source, own)) = own_uri(server, uri)
                && let Some(interest) = interests.iter_mut().find(|one| one.is_of(&source))
            {
                interest.add(own, uri.to_owned());
            }
        }
        interests
    }

    /// A subscription at a server, without resources yet.
    pub(crate) fn interest(&self, state: &McpState, source: &Arc<UpstreamSource>) -> Interest {
        let mut by_place = lock(&self.by_place);
        let watch = by_place.get(&source.place).map(Arc::clone);
        let watch = watch.unwrap_or_else(|| {
            let watch = Arc::new(Watch {
                source: Arc::clone(source),
                key: key_of(&source.place),
                wanted: Mutex::default(),
                changed: Notify::new(),
                standing: watch::Sender::new(Subscribed::default()),
            });
            by_place.insert(source.place.clone(), Arc::clone(&watch));
            // Subscribed here, and not in the task, so that no early message is lost.
            let notes = state.node.subscribe(watch.key);
            let running = Running::new(state.clone(), Arc::clone(&watch));
            state.tracker.spawn(running.run(notes));
            watch
        });
        lock(&watch.wanted).streams += 1;
        Interest {
            watch,
            uris: Vec::new(),
        }
    }

    /// Subscribes a session to a resource of an upstream, and waits for the server's consent.
    ///
    /// The caller sends the result with [`Interest::tell`] once the session's record holds it.
    pub(crate) async fn subscribe(
        &self,
        state: &McpState,
        (source, own): (&Arc<UpstreamSource>, String),
        uri: &str,
    ) -> Result<Interest, NotSubscribed> {
        let mut interest = self.interest(state, source);
        interest.add(own.clone(), uri.to_owned());
        interest.acknowledged(&own).await?;
        Ok(interest)
    }
}

impl Interest {
    /// True if it is at this very server.
    pub(crate) fn is_of(&self, source: &UpstreamSource) -> bool {
        self.watch.source.place == source.place
    }

    /// Adds one resource.
    pub(crate) fn add(&mut self, own: String, uri: String) {
        if self.uris.iter().any(|(_, known)| *known == uri) {
            return;
        }
        {
            let mut wanted = lock(&self.watch.wanted);
            if wanted.uris.len() >= MOST_URIS && !wanted.uris.contains_key(&own) {
                return;
            }
            *wanted.uris.entry(own.clone()).or_default() += 1;
        }
        self.uris.push((own, uri));
        self.watch.changed.notify_one();
    }

    /// Removes the resource with the client's URI `uri`.
    pub(crate) fn remove(&mut self, uri: &str) {
        let (gone, kept) = std::mem::take(&mut self.uris)
            .into_iter()
            .partition(|(_, known)| known == uri);
        self.uris = kept;
        self.watch.forget(&gone);
    }

    /// The client's URIs for a changed resource `own`. A part of a subscribed resource counts as
    /// it.
    pub(crate) fn names(&self, own: &str) -> impl Iterator<Item = &str> {
        let fits = move |wanted: &str| {
            own.strip_prefix(wanted)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.uris
            .iter()
            .filter(move |(wanted, _)| fits(wanted))
            .map(|(_, uri)| uri.as_str())
    }

    /// All client URIs of the subscription.
    pub(crate) fn all_names(&self) -> impl Iterator<Item = &str> {
        self.uris.iter().map(|(_, uri)| uri.as_str())
    }

    /// Waits until the server has accepted or refused the subscription to a resource.
    pub(crate) async fn acknowledged(&self, own: &str) -> Result<(), NotSubscribed> {
        let mut standing = self.watch.standing.subscribe();
        let said = standing.wait_for(|standing| {
            standing.acknowledged.contains(own) || standing.refused.contains(own)
        });
        match timeout(ACKNOWLEDGE, said).await {
            Ok(Ok(standing)) if standing.acknowledged.contains(own) => Ok(()),
            Ok(Ok(_)) => Err(NotSubscribed::Refused),
            Ok(Err(_)) | Err(_) => Err(NotSubscribed::Late),
        }
    }

    /// Notifies all nodes that a session's record has changed for `uri` (MCP-RE-7).
    ///
    /// The session's stream may be on any node.
    pub(crate) async fn tell(self, state: &McpState, session: SessionKey, uri: &str) {
        let own = self.uris.iter().find(|(_, known)| known == uri);
        let note = match own {
            Some((own, _)) => Note::Subscribed(session, own.clone(), uri.to_owned()),
            None => Note::Unsubscribed(session, uri.to_owned()),
        };
        self.watch.tell_all(state, &note).await;
        // The subscription stays until the node with the stream has its own. Then all nodes read
        // the session's record, because a message may be lost and a node may have begun a moment
        // ago.
        let (telling, stopping) = (state.clone(), state.stopping.clone());
        state.tracker.spawn(async move {
            if timeout(LINGER, stopping.cancelled()).await.is_err() {
                self.watch.tell_all(&telling, &Note::Look(session)).await;
            }
        });
    }

    /// Replaces the subscribed resources by `wanted`: own URI and the client's.
    ///
    /// Returns the client's URIs of the new ones.
    pub(crate) fn set(&mut self, wanted: &[(&str, &str)]) -> Vec<String> {
        let gone = self.uris.iter().map(|(_, uri)| uri.clone());
        let gone = gone.filter(|uri| !wanted.iter().any(|(_, kept)| kept == uri));
        for uri in gone.collect::<Vec<_>>() {
            self.remove(&uri);
        }
        let mut new = Vec::new();
        for (own, uri) in wanted {
            let known = self.uris.len();
            self.add((*own).to_owned(), (*uri).to_owned());
            if self.uris.len() > known {
                new.push((*uri).to_owned());
            }
        }
        new
    }

    /// The server's own URIs of the subscription, with the client's.
    pub(crate) fn own_uris(&self) -> impl Iterator<Item = (&str, &str)> {
        self.uris
            .iter()
            .map(|(own, uri)| (own.as_str(), uri.as_str()))
    }
}

impl Drop for Interest {
    fn drop(&mut self) {
        self.watch.forget(&std::mem::take(&mut self.uris));
        lock(&self.watch.wanted).streams -= 1;
        self.watch.changed.notify_one();
    }
}

impl Watch {
    fn forget(&self, uris: &[(String, String)]) {
        if uris.is_empty() {
            return;
        }
        let mut wanted = lock(&self.wanted);
        for (own, _) in uris {
            if let Some(count) = wanted.uris.get_mut(own) {
                *count -= 1;
                if *count == 0 {
                    wanted.uris.remove(own);
                }
            }
        }
        drop(wanted);
        self.changed.notify_one();
    }

    fn uris(&self) -> BTreeSet<String> {
        lock(&self.wanted).uris.keys().cloned().collect()
    }

    fn is_wanted(&self) -> bool {
        lock(&self.wanted).streams > 0
    }

    async fn tell(&self, state: &McpState, node: NodeId, note: &Note) {
        if let Some(sealed) = note.seal(state, self.key) {
            // A failure is ignored: important messages are repeated.
            let _ = state.node.notify(self.key, node, sealed).await;
        }
    }

    /// Sends a message to all live nodes.
    ///
    /// It is rare, so it reads the live nodes from the store: a new node may have a stream already.
    async fn tell_all(&self, state: &McpState, note: &Note) {
        for node in state.node.live_now().await {
            self.tell(state, node, note).await;
        }
    }
}

/// The task of a [`Watch`].
struct Running {
    state: McpState,
    watch: Arc<Watch>,
    lease: Lease,
    /// Set if this node has the lease.
    holding: Option<Holding>,
    /// The last URIs that this node sent to the leader, and when.
    rung: Option<(NodeId, BTreeSet<String>, Instant)>,
    /// URIs that may have changed between two leaders: their streams are notified once the new one
    /// subscribes.
    missed: BTreeSet<String>,
    idle_since: Option<Instant>,
}

/// The additional state of the leader.
struct Holding {
    wanted: watch::Sender<BTreeSet<String>>,
    told: mpsc::Receiver<Told>,
    /// The URIs of other nodes, and when they were last received.
    others: HashMap<NodeId, BTreeMap<String, Instant>>,
    /// New subscriptions of sessions, with their time: the nodes of their streams are not known
    /// yet.
    fresh: BTreeMap<String, Instant>,
    _stop: DropGuard,
}

async fn next_told(holding: Option<&mut Holding>) -> Option<Told> {
    match holding {
        Some(holding) => holding.told.recv().await,
        None => std::future::pending().await,
    }
}

impl Running {
    fn new(state: McpState, watch: Arc<Watch>) -> Self {
        Self {
            lease: Lease::new(watch.key),
            state,
            watch,
            holding: None,
            rung: None,
            missed: BTreeSet::new(),
            idle_since: None,
        }
    }

    async fn run(mut self, mut notes: SessionMessages) {
        let mut beats = interval(BEAT);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let stopping = self.state.stopping.clone();
        loop {
            tokio::select! {
                () = stopping.cancelled() => break,
                _ = beats.tick() => {
                    self.lease.beat(&self.state).await;
                    if self.is_over() {
                        break;
                    }
                    self.hold_or_ring().await;
                }
                () = self.watch.changed.notified() => self.hold_or_ring().await,
                note = notes.next() => {
                    if let Some(note) = Note::open(&self.state, self.watch.key, &note) {
                        self.heard(note).await;
                    }
                }
                told = next_told(self.holding.as_mut()) => match told {
                    Some(told) => self.told(told).await,
                    // The task ended unexpectedly: it is started again.
                    None => self.holding = None,
                },
            }
        }
        self.holding = None;
        self.lease.release(&self.state).await;
    }

    /// True when there was no subscription for a while: the watch is then removed.
    fn is_over(&mut self) -> bool {
        if self.watch.is_wanted() {
            self.idle_since = None;
            return false;
        }
        let since = *self.idle_since.get_or_insert_with(Instant::now);
        if since.elapsed() < LINGER {
            return false;
        }
        let mut by_place = lock(&self.state.watches.by_place);
        // Checked again under the lock that every new subscription takes.
        if self.watch.is_wanted() {
            return false;
        }
        by_place.remove(&self.watch.source.place);
        true
    }

    async fn hold_or_ring(&mut self) {
        let me = self.state.node.id();
        match self.lease.holder() {
            Some(holder) if holder == me => {
                // Another node was the leader: its last notifications may be lost.
                let again = self.rung.take().is_some();
                self.hold(again);
            }
            Some(holder) => {
                self.holding = None;
                self.ring(holder).await;
            }
            None => {}
        }
    }

    /// Becomes or stays the leader, with the URIs of all nodes.
    ///
    /// `again`: notifications may have been lost before.
    fn hold(&mut self, again: bool) {
        let own = self.watch.uris();
        let holding = self.holding.get_or_insert_with(|| {
            let (wanted, watched) = watch::channel(own.clone());
            let (telling, told) = mpsc::channel(WORDS);
            let stop = CancellationToken::new();
            let watching = Watching {
                state: self.state.clone(),
                source: Arc::clone(&self.watch.source),
                token: None,
                again,
                wanted: watched,
                told: telling,
                stop: stop.clone(),
            };
            self.state.tracker.spawn(watching.run());
            Holding {
                wanted,
                told,
                others: HashMap::new(),
                fresh: BTreeMap::new(),
                _stop: stop.drop_guard(),
            }
        });
        let mut all = own;
        for uris in holding.others.values_mut() {
            uris.retain(|_, heard| heard.elapsed() < HOLDS);
            all.extend(uris.keys().cloned());
        }
        holding.others.retain(|_, uris| !uris.is_empty());
        holding.wanted.send_if_modified(|known| {
            let differs = *known != all;
            if differs {
                *known = all;
            }
            differs
        });
    }

    /// Sends this node's URIs to the leader.
    async fn ring(&mut self, holder: NodeId) {
        let own = self.watch.uris();
        let me = self.state.node.id();
        let (mut new, mut gone) = (own.iter().cloned().collect::<Vec<_>>(), Vec::new());
        if let Some((node, ..)) = &self.rung
            && *node != holder
        {
            self.missed.extend(own.iter().cloned());
        }
        if let Some((node, known, at)) = &self.rung
            && *node == holder
        {
            gone = without(known, &own);
            if at.elapsed() < REFRESH {
                new = without(&own, known);
                if new.is_empty() && gone.is_empty() {
                    return;
                }
            }
        }
        for part in parts(&new) {
            self.watch
                .tell(&self.state, holder, &Note::Wanted(me, part))
                .await;
        }
        for part in parts(&gone) {
            self.watch
                .tell(&self.state, holder, &Note::Unwanted(me, part))
                .await;
        }
        // Answers for URIs without a subscription are removed, so that they do not accumulate.
        self.watch.standing.send_modify(|standing| {
            standing.acknowledged.retain(|uri| own.contains(uri));
            standing.refused.retain(|uri| own.contains(uri));
        });
        self.rung = Some((holder, own, Instant::now()));
    }

    async fn heard(&mut self, note: Note) {
        match note {
            Note::Wanted(node, uris) => {
                let Some(holding) = &mut self.holding else {
                    return;
                };
                let known = holding.others.entry(node).or_default();
                let standing = self.watch.standing.borrow().clone();
                let (mut acknowledged, mut refused) = (Vec::new(), Vec::new());
                for uri in uris {
                    if standing.acknowledged.contains(&uri) {
                        acknowledged.push(uri.clone());
                    } else if standing.refused.contains(&uri) {
                        refused.push(uri.clone());
                    }
                    if known.len() < MOST_URIS {
                        known.insert(uri, Instant::now());
                    }
                }
                self.answer(node, acknowledged, refused).await;
                self.hold(false);
            }
            Note::Unwanted(node, uris) => {
                if let Some(holding) = &mut self.holding {
                    if let Some(known) = holding.others.get_mut(&node) {
                        known.retain(|uri, _| !uris.contains(uri));
                    }
                    self.hold(false);
                }
            }
            Note::Acknowledged(uris) => {
                for uri in &uris {
                    if self.missed.remove(uri) {
                        stream::tell_updated(&self.state, &self.watch.source, uri);
                    }
                }
                self.watch.standing.send_modify(|standing| {
                    for uri in uris {
                        standing.refused.remove(&uri);
                        standing.acknowledged.insert(uri);
                    }
                });
            }
            Note::Refused(uris) => self.watch.standing.send_modify(|standing| {
                for uri in uris {
                    standing.acknowledged.remove(&uri);
                    standing.refused.insert(uri);
                }
            }),
            Note::Updated(uris) => {
                for uri in uris {
                    stream::tell_updated(&self.state, &self.watch.source, &uri);
                }
            }
            Note::Subscribed(session, own, uri) => {
                if let Some(holding) = &mut self.holding {
                    holding.fresh.retain(|_, since| since.elapsed() < LINGER);
                    if holding.fresh.len() < MOST_URIS {
                        holding.fresh.insert(own.clone(), Instant::now());
                    }
                }
                let source = &self.watch.source;
                stream::subscribed(&self.state, source, session, Some(&own), &uri);
            }
            Note::Unsubscribed(session, uri) => {
                stream::subscribed(&self.state, &self.watch.source, session, None, &uri);
            }
            Note::Look(session) => stream::look(&self.state, &self.watch.source, session),
        }
    }

    async fn answer(&self, node: NodeId, acknowledged: Vec<String>, refused: Vec<String>) {
        for part in parts(&acknowledged) {
            self.watch
                .tell(&self.state, node, &Note::Acknowledged(part))
                .await;
        }
        for part in parts(&refused) {
            self.watch
                .tell(&self.state, node, &Note::Refused(part))
                .await;
        }
    }

    /// Forwards a message of the server to the nodes that subscribe, this one among them.
    async fn told(&mut self, told: Told) {
        match told {
            Told::Subscribed {
                acknowledged,
                refused,
            } => {
                let before = self.watch.standing.send_replace(Subscribed {
                    acknowledged: acknowledged.clone(),
                    refused: refused.clone(),
                });
                let new = (
                    without(&acknowledged, &before.acknowledged),
                    without(&refused, &before.refused),
                );
                for node in self.others() {
                    self.answer(node, new.0.clone(), new.1.clone()).await;
                }
            }
            Told::Updated(uri) => {
                stream::tell_updated(&self.state, &self.watch.source, &uri);
                let mut nodes: BTreeSet<NodeId> = self.others().into_iter().collect();
                let fresh = self.holding.as_ref().map(|holding| &holding.fresh);
                let since = fresh.and_then(|fresh| fresh.get(&uri));
                if since.is_some_and(|since| since.elapsed() < LINGER) {
                    nodes.extend(self.state.node.live_now().await);
                }
                // The streams of this node are notified already.
                nodes.remove(&self.state.node.id());
                let note = Note::Updated(vec![uri]);
                for node in nodes {
                    self.watch.tell(&self.state, node, &note).await;
                }
            }
            Told::Again => {
                let uris = self.watch.standing.borrow().acknowledged.clone();
                for uri in &uris {
                    stream::tell_updated(&self.state, &self.watch.source, uri);
                }
                for node in self.others() {
                    for part in parts(&uris) {
                        self.watch
                            .tell(&self.state, node, &Note::Updated(part))
                            .await;
                    }
                }
            }
        }
    }

    fn others(&self) -> Vec<NodeId> {
        let holding = self.holding.as_ref();
        holding.map_or_else(Vec::new, |holding| holding.others.keys().copied().collect())
    }
}
