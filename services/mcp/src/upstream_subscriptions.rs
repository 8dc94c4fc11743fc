//! Subscriptions to upstream servers, for the clients whose streams are open on this node
//! (MCP-X-40…MCP-X-45, STREAM-15.3).
//!
//! The servers notify of changed lists and of changed resources.
//!
//! ```text
//! stream of a client ─► Subscription ─► ServerSubscriptions, one a server and node
//!   ServerSubscriptions ─┬─ one node has the lease: `leader` subscribes at the server
//!                        └─ the others send it the URIs that they want (`note`)
//! list changed ─► refresh of the server ─► registry change ─► every stream
//! resource updated ─► the nodes that subscribe ─► their streams
//! ```
//!
//! Without an open stream there is no subscription, and no task runs.

pub(crate) mod leader;
pub(crate) mod lease;
pub(crate) mod note;

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

use crate::{
    backends::services::Backends,
    catalog::{offers::ResourceBackend, server::Server, upstream::UpstreamSource},
    nodes::events::{Event, UpstreamChange},
    upstream_subscriptions::{
        leader::{LeaderConversation, LeaderEvent},
        lease::{BEAT, Lease},
        note::{Note, parts, without},
    },
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
#[derive(Debug, Clone, Default)]
pub(crate) struct UpstreamSubscriptions {
    by_place: Arc<Mutex<HashMap<String, Arc<ServerSubscriptions>>>>,
}

/// The subscriptions of this node at one server.
#[derive(Debug)]
pub(crate) struct ServerSubscriptions {
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
pub(crate) struct Subscription {
    server: Arc<ServerSubscriptions>,
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

impl UpstreamSubscriptions {
    /// Subscribes a stream at the upstream servers behind `server`. `uris` are the client's
    /// resources.
    pub(crate) fn want<'u>(
        &self,
        state: &Backends,
        server: &Server,
        uris: impl Iterator<Item = &'u str>,
    ) -> Vec<Subscription> {
        let sources = server.upstreams();
        if sources.is_empty() {
            return Vec::new();
        }
        let mut subscriptions: Vec<Subscription> = sources
            .iter()
            .map(|source| self.subscription(state, source))
            .collect();
        for uri in uris {
            if let Some((source, own)) = own_uri(server, uri)
                && let Some(subscription) = subscriptions.iter_mut().find(|one| one.is_of(&source))
            {
                subscription.add(own, uri.to_owned());
            }
        }
        subscriptions
    }

    /// A subscription at a server, without resources yet.
    pub(crate) fn subscription(
        &self,
        state: &Backends,
        source: &Arc<UpstreamSource>,
    ) -> Subscription {
        let mut by_place = lock(&self.by_place);
        let server = by_place.get(&source.place).map(Arc::clone);
        let server = server.unwrap_or_else(|| {
            let server = Arc::new(ServerSubscriptions {
                source: Arc::clone(source),
                key: key_of(&source.place),
                wanted: Mutex::default(),
                changed: Notify::new(),
                standing: watch::Sender::new(Subscribed::default()),
            });
            by_place.insert(source.place.clone(), Arc::clone(&server));
            // Subscribed here, and not in the task, so that no early message is lost.
            let notes = state.node.subscribe(server.key);
            let running = SubscriptionTask::new(self.clone(), state.clone(), Arc::clone(&server));
            state.tracker.spawn(running.run(notes));
            server
        });
        lock(&server.wanted).streams += 1;
        Subscription {
            server,
            uris: Vec::new(),
        }
    }

    /// Subscribes a session to a resource of an upstream, and waits for the server's consent.
    ///
    /// The caller sends the result with [`Subscription::send`] once the session's record holds it.
    pub(crate) async fn subscribe(
        &self,
        state: &Backends,
        (source, own): (&Arc<UpstreamSource>, String),
        uri: &str,
    ) -> Result<Subscription, NotSubscribed> {
        let mut subscription = self.subscription(state, source);
        subscription.add(own.clone(), uri.to_owned());
        subscription.acknowledged(&own).await?;
        Ok(subscription)
    }
}

impl Subscription {
    /// True if it is at this very server.
    pub(crate) fn is_of(&self, source: &UpstreamSource) -> bool {
        self.is_at(&source.place)
    }

    /// True if it is at the server with this place.
    pub(crate) fn is_at(&self, place: &str) -> bool {
        self.server.source.place == place
    }

    /// Adds one resource.
    pub(crate) fn add(&mut self, own: String, uri: String) {
        if self.uris.iter().any(|(_, known)| *known == uri) {
            return;
        }
        {
            let mut wanted = lock(&self.server.wanted);
            if wanted.uris.len() >= MOST_URIS && !wanted.uris.contains_key(&own) {
                return;
            }
            *wanted.uris.entry(own.clone()).or_default() += 1;
        }
        self.uris.push((own, uri));
        self.server.changed.notify_one();
    }

    /// Removes the resource with the client's URI `uri`.
    pub(crate) fn remove(&mut self, uri: &str) {
        let (gone, kept) = std::mem::take(&mut self.uris)
            .into_iter()
            .partition(|(_, known)| known == uri);
        self.uris = kept;
        self.server.forget(&gone);
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
        let mut standing = self.server.standing.subscribe();
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
    pub(crate) async fn send(self, state: &Backends, session: SessionKey, uri: &str) {
        let own = self.uris.iter().find(|(_, known)| known == uri);
        let note = match own {
            Some((own, _)) => Note::Subscribed(session, own.clone(), uri.to_owned()),
            None => Note::Unsubscribed(session, uri.to_owned()),
        };
        self.server.send_all(state, &note).await;
        // The subscription stays until the node with the stream has its own. Then all nodes read
        // the session's record, because a message may be lost and a node may have begun a moment
        // ago.
        let (telling, stopping) = (state.clone(), state.stopping.clone());
        state.tracker.spawn(async move {
            if timeout(LINGER, stopping.cancelled()).await.is_err() {
                self.server
                    .send_all(&telling, &Note::ReadRecord(session))
                    .await;
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

impl Drop for Subscription {
    fn drop(&mut self) {
        self.server.forget(&std::mem::take(&mut self.uris));
        lock(&self.server.wanted).streams -= 1;
        self.server.changed.notify_one();
    }
}

impl ServerSubscriptions {
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

    async fn send(&self, state: &Backends, node: NodeId, note: &Note) {
        if let Some(sealed) = note.seal(state, self.key) {
            // A failure is ignored: important messages are repeated.
            let _ = state.node.notify(self.key, node, sealed).await;
        }
    }

    /// Sends a message to all live nodes.
    ///
    /// It is rare, so it reads the live nodes from the store: a new node may have a stream already.
    async fn send_all(&self, state: &Backends, note: &Note) {
        for node in state.node.live_now().await {
            self.send(state, node, note).await;
        }
    }
}

/// The task of a [`ServerSubscriptions`].
struct SubscriptionTask {
    /// The subscriptions of the node, where it is entered.
    all: UpstreamSubscriptions,
    state: Backends,
    server: Arc<ServerSubscriptions>,
    lease: Lease,
    /// Set if this node has the lease.
    leading: Option<Leading>,
    /// The last URIs that this node sent to the leader, and when.
    sent: Option<(NodeId, BTreeSet<String>, Instant)>,
    /// URIs that may have changed between two leaders: their streams are notified once the new one
    /// subscribes.
    missed: BTreeSet<String>,
    idle_since: Option<Instant>,
}

/// The additional state of the leader.
struct Leading {
    wanted: watch::Sender<BTreeSet<String>>,
    events: mpsc::Receiver<LeaderEvent>,
    /// The URIs of other nodes, and when they were last received.
    others: HashMap<NodeId, BTreeMap<String, Instant>>,
    /// New subscriptions of sessions, with their time: the nodes of their streams are not known
    /// yet.
    fresh: BTreeMap<String, Instant>,
    _stop: DropGuard,
}

async fn next_event(leading: Option<&mut Leading>) -> Option<LeaderEvent> {
    match leading {
        Some(leading) => leading.events.recv().await,
        None => std::future::pending().await,
    }
}

impl SubscriptionTask {
    fn new(all: UpstreamSubscriptions, state: Backends, server: Arc<ServerSubscriptions>) -> Self {
        Self {
            all,
            lease: Lease::new(server.key),
            state,
            server,
            leading: None,
            sent: None,
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
                    self.lead_or_notify().await;
                }
                () = self.server.changed.notified() => self.lead_or_notify().await,
                note = notes.next() => {
                    if let Some(note) = Note::open(&self.state, self.server.key, &note) {
                        self.received(note).await;
                    }
                }
                event = next_event(self.leading.as_mut()) => match event {
                    Some(event) => self.handle_event(event).await,
                    // The task ended unexpectedly: it is started again.
                    None => self.leading = None,
                },
            }
        }
        self.leading = None;
        self.lease.release(&self.state).await;
    }

    /// True when there was no subscription for a while: the watch is then removed.
    fn is_over(&mut self) -> bool {
        if self.server.is_wanted() {
            self.idle_since = None;
            return false;
        }
        let since = *self.idle_since.get_or_insert_with(Instant::now);
        if since.elapsed() < LINGER {
            return false;
        }
        let mut by_place = lock(&self.all.by_place);
        // Checked again under the lock that every new subscription takes.
        if self.server.is_wanted() {
            return false;
        }
        by_place.remove(&self.server.source.place);
        true
    }

    async fn lead_or_notify(&mut self) {
        let me = self.state.node.id();
        match self.lease.leader() {
            Some(leader) if leader == me => {
                // Another node was the leader: its last notifications may be lost.
                let again = self.sent.take().is_some();
                self.lead(again);
            }
            Some(leader) => {
                self.leading = None;
                self.notify_leader(leader).await;
            }
            None => {}
        }
    }

    /// Becomes or stays the leader, with the URIs of all nodes.
    ///
    /// `again`: notifications may have been lost before.
    fn lead(&mut self, again: bool) {
        let own = self.server.uris();
        let leading = self.leading.get_or_insert_with(|| {
            let (wanted, watched) = watch::channel(own.clone());
            let (sender, events) = mpsc::channel(WORDS);
            let stop = CancellationToken::new();
            let watching = LeaderConversation {
                state: self.state.clone(),
                source: Arc::clone(&self.server.source),
                token: None,
                again,
                wanted: watched,
                events: sender,
                stop: stop.clone(),
            };
            self.state.tracker.spawn(watching.run());
            Leading {
                wanted,
                events,
                others: HashMap::new(),
                fresh: BTreeMap::new(),
                _stop: stop.drop_guard(),
            }
        });
        let mut all = own;
        for uris in leading.others.values_mut() {
            uris.retain(|_, received| received.elapsed() < HOLDS);
            all.extend(uris.keys().cloned());
        }
        leading.others.retain(|_, uris| !uris.is_empty());
        leading.wanted.send_if_modified(|known| {
            let differs = *known != all;
            if differs {
                *known = all;
            }
            differs
        });
    }

    /// Sends this node's URIs to the leader.
    async fn notify_leader(&mut self, leader: NodeId) {
        let own = self.server.uris();
        let me = self.state.node.id();
        let (mut new, mut gone) = (own.iter().cloned().collect::<Vec<_>>(), Vec::new());
        if let Some((node, ..)) = &self.sent
            && *node != leader
        {
            self.missed.extend(own.iter().cloned());
        }
        if let Some((node, known, at)) = &self.sent
            && *node == leader
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
            self.server
                .send(&self.state, leader, &Note::Wanted(me, part))
                .await;
        }
        for part in parts(&gone) {
            self.server
                .send(&self.state, leader, &Note::Unwanted(me, part))
                .await;
        }
        // Answers for URIs without a subscription are removed, so that they do not accumulate.
        self.server.standing.send_modify(|standing| {
            standing.acknowledged.retain(|uri| own.contains(uri));
            standing.refused.retain(|uri| own.contains(uri));
        });
        self.sent = Some((leader, own, Instant::now()));
    }

    async fn received(&mut self, note: Note) {
        match note {
            Note::Wanted(node, uris) => {
                let Some(leading) = &mut self.leading else {
                    return;
                };
                let known = leading.others.entry(node).or_default();
                let standing = self.server.standing.borrow().clone();
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
                self.lead(false);
            }
            Note::Unwanted(node, uris) => {
                if let Some(leading) = &mut self.leading {
                    if let Some(known) = leading.others.get_mut(&node) {
                        known.retain(|uri, _| !uris.contains(uri));
                    }
                    self.lead(false);
                }
            }
            Note::Acknowledged(uris) => {
                for uri in &uris {
                    if self.missed.remove(uri) {
                        self.publish(UpstreamChange::Updated(uri.clone()));
                    }
                }
                self.server.standing.send_modify(|standing| {
                    for uri in uris {
                        standing.refused.remove(&uri);
                        standing.acknowledged.insert(uri);
                    }
                });
            }
            Note::Refused(uris) => self.server.standing.send_modify(|standing| {
                for uri in uris {
                    standing.acknowledged.remove(&uri);
                    standing.refused.insert(uri);
                }
            }),
            Note::Updated(uris) => {
                for uri in uris {
                    self.publish(UpstreamChange::Updated(uri.clone()));
                }
            }
            Note::Subscribed(session, own, uri) => {
                if let Some(leading) = &mut self.leading {
                    leading.fresh.retain(|_, since| since.elapsed() < LINGER);
                    if leading.fresh.len() < MOST_URIS {
                        leading.fresh.insert(own.clone(), Instant::now());
                    }
                }
                self.publish(UpstreamChange::Subscribed {
                    session,
                    own: Some(own),
                    uri,
                });
            }
            Note::Unsubscribed(session, uri) => {
                self.publish(UpstreamChange::Subscribed {
                    session,
                    own: None,
                    uri,
                });
            }
            Note::ReadRecord(session) => self.publish(UpstreamChange::ReadRecord(session)),
        }
    }

    async fn answer(&self, node: NodeId, acknowledged: Vec<String>, refused: Vec<String>) {
        for part in parts(&acknowledged) {
            self.server
                .send(&self.state, node, &Note::Acknowledged(part))
                .await;
        }
        for part in parts(&refused) {
            self.server
                .send(&self.state, node, &Note::Refused(part))
                .await;
        }
    }

    /// Forwards a message of the server to the nodes that subscribe, this one among them.
    async fn handle_event(&mut self, event: LeaderEvent) {
        match event {
            LeaderEvent::Subscribed {
                acknowledged,
                refused,
            } => {
                let before = self.server.standing.send_replace(Subscribed {
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
            LeaderEvent::Updated(uri) => {
                self.publish(UpstreamChange::Updated(uri.clone()));
                let mut nodes: BTreeSet<NodeId> = self.others().into_iter().collect();
                let fresh = self.leading.as_ref().map(|leading| &leading.fresh);
                let since = fresh.and_then(|fresh| fresh.get(&uri));
                if since.is_some_and(|since| since.elapsed() < LINGER) {
                    nodes.extend(self.state.node.live_now().await);
                }
                // The streams of this node are notified already.
                nodes.remove(&self.state.node.id());
                let note = Note::Updated(vec![uri]);
                for node in nodes {
                    self.server.send(&self.state, node, &note).await;
                }
            }
            LeaderEvent::Again => {
                let uris = self.server.standing.borrow().acknowledged.clone();
                for uri in &uris {
                    self.publish(UpstreamChange::Updated(uri.clone()));
                }
                for node in self.others() {
                    for part in parts(&uris) {
                        self.server
                            .send(&self.state, node, &Note::Updated(part))
                            .await;
                    }
                }
            }
        }
    }

    /// Publishes a change to the open streams of this node.
    fn publish(&self, change: UpstreamChange) {
        let source = &self.server.source;
        self.state.events.publish(&Event::Upstream {
            tenant: source.tenant,
            place: source.place.clone(),
            change,
        });
    }

    fn others(&self) -> Vec<NodeId> {
        let leading = self.leading.as_ref();
        leading.map_or_else(Vec::new, |leading| leading.others.keys().copied().collect())
    }
}
