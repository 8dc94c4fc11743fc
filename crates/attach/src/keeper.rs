//! A connection to each node of the service.
//!
//! A balancer chooses the node of each connection. The keeper dials until each node has one: a node
//! that has one refuses the second, and the keeper tries again a little later.

use std::{
    collections::BTreeMap,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use portolan_net::{egress::EgressSetupError, listen::BindError, tunnel::NodeState};
use tokio::{sync::Notify, time::sleep};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    api::ApiError,
    figures::Figures,
    link::{Dialler, JoinError, NodeConnection},
    offer::OfferedServer,
};

/// Pauses between attempts after a failure; each is twice the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// The same while the balancer leads to nodes that are connected.
const FIRST_SEARCH: Duration = Duration::from_millis(50);
const LONGEST_SEARCH: Duration = Duration::from_secs(15);
/// Attempts without a new node after which the person is informed.
const SEARCHES: u32 = 20;

/// Why the program ends.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// The TLS stack refuses its own defaults.
    #[error("{0}")]
    Tls(#[from] EgressSetupError),
    /// The first connection was refused for good.
    #[error("not attached: {0}")]
    Refused(String),
    /// The API cannot be offered.
    #[error("not attached: {0}")]
    Api(#[from] ApiError),
    /// The listener of the metrics.
    #[error("{0}")]
    Metrics(#[from] BindError),
}

#[derive(Debug, Default)]
struct KeeperState {
    /// Connections by node. The number tells two connections to one node apart.
    held: BTreeMap<String, u64>,
    wanted: Vec<String>,
    count: u64,
}

impl KeeperState {
    fn is_complete(&self) -> bool {
        !self.held.is_empty() && self.wanted.iter().all(|node| self.held.contains_key(node))
    }
}

/// Keeps the connections.
pub struct Keeper {
    dialler: Dialler,
    offer: Arc<OfferedServer>,
    figures: Arc<Figures>,
    state: Mutex<KeeperState>,
    changed: Notify,
    links: TaskTracker,
    /// Path of nodes of another kind, as the first answer names it.
    also: OnceLock<Option<String>>,
    /// A refusal ends the program.
    is_first: bool,
}

impl Keeper {
    /// Nothing is opened yet.
    pub(crate) fn new(
        dialler: Dialler,
        offer: Arc<OfferedServer>,
        figures: Arc<Figures>,
    ) -> Arc<Self> {
        Self::of(dialler, offer, figures, true)
    }

    fn of(
        dialler: Dialler,
        offer: Arc<OfferedServer>,
        figures: Arc<Figures>,
        is_first: bool,
    ) -> Arc<Self> {
        Arc::new(Self {
            also: OnceLock::new(),
            is_first,
            dialler,
            offer,
            figures,
            state: Mutex::default(),
            changed: Notify::new(),
            links: TaskTracker::new(),
        })
    }

    fn state(&self) -> MutexGuard<'_, KeeperState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens connections, and replaces lost ones, until `stop` is cancelled.
    ///
    /// # Errors
    /// [`AttachError::Refused`] if the first connection is refused for good.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) -> Result<(), AttachError> {
        let outcome = tokio::select! {
            () = stop.cancelled() => Ok(()),
            error = self.keep(&stop) => Err(error),
        };
        stop.cancel();
        self.links.close();
        self.links.wait().await;
        outcome
    }

    async fn keep(self: &Arc<Self>, stop: &CancellationToken) -> AttachError {
        let mut was_attached = false;
        let (mut pause, mut search, mut searches) = (FIRST_PAUSE, FIRST_SEARCH, 0_u32);
        loop {
            let changed = self.changed.notified();
            let (is_complete, held) = {
                let state = self.state();
                let held: Vec<String> = state.held.keys().cloned().collect();
                (state.is_complete(), held)
            };
            if is_complete {
                (pause, search, searches) = (FIRST_PAUSE, FIRST_SEARCH, 0);
                changed.await;
                continue;
            }
            match self.dialler.join(&held).await {
                Ok(link) => {
                    was_attached = true;
                    (pause, search, searches) = (FIRST_PAUSE, FIRST_SEARCH, 0);
                    self.hold(link, stop);
                    continue;
                }
                Err(JoinError::Held) => {
                    searches += 1;
                    if searches == SEARCHES {
                        let (have, of) = {
                            let state = self.state();
                            (state.held.len(), state.wanted.len())
                        };
                        tracing::warn!(
                            connected = have,
                            nodes = of,
                            "the balancer leads to the same nodes again and again: calls that \
                             reach another node fail (docs/attach.md, several nodes)"
                        );
                    }
                    tokio::select! {
                        () = sleep(search) => {}
                        () = changed => {}
                    }
                    search = (search * 2).min(LONGEST_SEARCH);
                    continue;
                }
                Err(JoinError::Refused { message, .. }) if self.is_first && !was_attached => {
                    return AttachError::Refused(message);
                }
                Err(JoinError::Refused { status, message }) => {
                    pause = LONGEST_PAUSE;
                    tracing::error!(status = status.as_u16(), "refused: {message}");
                }
                Err(error) => tracing::warn!(
                    retry_after_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX),
                    connected = held.len(),
                    "no connection to {}: {error}",
                    self.dialler.address.authority()
                ),
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    fn note(&self, state: &KeeperState) {
        let is_missing = |node: &&String| !state.held.contains_key(*node);
        let missing = state.wanted.iter().filter(is_missing).count();
        self.figures.nodes(self.is_first, state.held.len(), missing);
    }

    /// Keeps connections to the nodes of the other kind too.
    fn keep_others(self: &Arc<Self>, also: Option<&str>, stop: &CancellationToken) {
        let Some(path) = also.filter(|_| self.is_first) else {
            return;
        };
        if self.also.set(Some(path.to_owned())).is_err() {
            return;
        }
        let Some(address) = self.dialler.address.beside(path) else {
            return;
        };
        let dialler = Dialler {
            address,
            ..self.dialler.clone()
        };
        let others = Self::of(
            dialler,
            Arc::clone(&self.offer),
            Arc::clone(&self.figures),
            false,
        );
        let stop = stop.clone();
        // Boxed: the type of the future would contain itself.
        let keeping: Pin<Box<dyn Future<Output = _> + Send>> = Box::pin(others.run(stop));
        self.links.spawn(async move {
            let _ = keeping.await;
        });
    }

    fn hold(self: &Arc<Self>, link: NodeConnection, stop: &CancellationToken) {
        self.keep_others(link.also.as_deref(), stop);
        let (node, number, have) = {
            let mut state = self.state();
            state.count += 1;
            let number = state.count;
            state.held.insert(link.node.clone(), number);
            state.wanted.clone_from(&link.nodes);
            self.note(&state);
            (link.node.clone(), number, state.held.len())
        };
        tracing::info!(
            name = link.name,
            node,
            connected = have,
            nodes = link.nodes.len(),
            "attached"
        );
        let (this, stop) = (Arc::clone(self), stop.clone());
        let learning = Arc::clone(self);
        let learn = move |state: NodeState| learning.learn(state);
        self.links.spawn(async move {
            let ended = link
                .serve(
                    Arc::clone(&this.offer),
                    Arc::clone(&this.figures),
                    learn,
                    stop.clone(),
                )
                .await;
            let have = {
                let mut state = this.state();
                if state.held.get(&node) == Some(&number) {
                    state.held.remove(&node);
                }
                this.note(&state);
                state.held.len()
            };
            if !stop.is_cancelled() {
                this.figures.lost();
                let reason = match ended {
                    Ok(()) => "the node closed it".to_owned(),
                    Err(error) => error.to_string(),
                };
                tracing::warn!(node, reason, connected = have, "a connection is lost");
            }
            this.changed.notify_one();
        });
    }

    /// A node reports the nodes of the service.
    fn learn(&self, news: NodeState) {
        let is_news = {
            let mut state = self.state();
            let is_news = state.wanted != news.nodes;
            state.wanted = news.nodes;
            self.note(&state);
            is_news
        };
        if is_news {
            self.changed.notify_one();
        }
    }
}
