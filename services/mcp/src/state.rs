//! What the handlers share.

use std::{sync::Arc, time::Duration};

use portolan_cluster::{Revocations, Streams, node::Node};
use portolan_http_tools::TokenSource;
use portolan_keys::{Keys, Verifier};
use portolan_model::{Clock, Digest, id::TenantId, resource::Site};
use portolan_net::egress::Egress;
use portolan_storage::{Store, recorder::Recorder};
use quick_cache::sync::Cache;
use tokio::time::timeout;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    ask::Parking,
    backends::upstream::{Beside, Ears, Hints, Looks, Upstreams},
    bells::{self, Awaited, Outgoing},
    bodies::Bodies,
    call_log::{self, CallLog, Writer},
    catalog::Catalog,
    config::McpConfig,
    crowd::Crowd,
    endpoint::{api_key::ApiKeys, bearer::Bearer, newcomers::Newcomers, origin::AllowedOrigins},
    instruments::Instruments,
    last_word::LastWords,
    limits::{self, Gate},
    news::{self, Untold},
    stream::{Tag, tasks::Audience},
    tasks::Tasks,
    two_endpoints::Connections,
    watch::Watches,
};

/// How long a node that stops waits until the store knows that its tasks are lost.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// Names of clients that are remembered, for the log of calls.
const CLIENT_NAMES: usize = 10_000;

/// What the service is made of.
#[derive(Debug)]
pub struct McpParts {
    /// The public origin.
    pub site: Site,
    /// The database.
    pub store: Store,
    /// Session ids, cursors, sealed credentials.
    pub keys: Keys,
    /// Access tokens.
    pub verifier: Verifier,
    /// What is refused before it expires; fed by whoever reads the feed.
    pub revocations: Revocations,
    /// The one outgoing client.
    pub egress: Egress,
    /// This process among its like: sessions, logs of streams, running calls, limits.
    pub node: Node,
    /// The time.
    pub clock: Clock,
    /// Where steps of connecting clients are handed over (X2).
    pub recorder: Recorder,
    /// Every task of ours.
    pub tracker: TaskTracker,
    /// Cancelled when the process begins to stop: event streams end.
    pub stopping: CancellationToken,
    /// Cancelled by [`McpState::drain`]: wakes connections whose requests still wait.
    pub telling: CancellationToken,
    /// Settings.
    pub config: McpConfig,
}

/// The shared state. Cheap to clone.
#[derive(Debug, Clone)]
pub struct McpState(Arc<Shared>);

/// What a state points at. Its fields are this crate's.
#[derive(Debug)]
pub struct Shared {
    pub(crate) site: Site,
    pub(crate) store: Store,
    pub(crate) keys: Keys,
    pub(crate) revocations: Revocations,
    pub(crate) egress: Egress,
    pub(crate) clock: Clock,
    pub(crate) tracker: TaskTracker,
    pub(crate) stopping: CancellationToken,
    pub(crate) last_words: LastWords,
    pub(crate) config: McpConfig,
    pub(crate) origins: AllowedOrigins,
    pub(crate) bearer: Bearer,
    pub(crate) catalog: Catalog,
    pub(crate) bodies: Bodies,
    pub(crate) node: Node,
    pub(crate) streams: Streams<Tag>,
    pub(crate) crowd: Crowd,
    /// The connections of the transport with two endpoints that this node holds.
    pub(crate) connections: Connections,
    pub(crate) tokens: TokenSource,
    /// Accounts at upstream servers.
    pub(crate) accounts: portolan_connections::Connections,
    pub(crate) upstreams: Upstreams,
    /// What they say beside the streams of calls.
    pub(crate) beside: Beside,
    /// Who asks for looks at them.
    pub(crate) looks: Looks,
    /// Tenants whose open streams are to be told once more.
    pub(crate) untold: Untold,
    /// The upstream servers that this node's clients want to hear.
    pub(crate) watches: Watches,
    pub(crate) gate: Arc<Gate>,
    pub(crate) instruments: Instruments,
    pub(crate) call_log: CallLog,
    /// Steps of connecting clients.
    pub(crate) newcomers: Newcomers,
    /// Calls that wait for the retry of their client.
    pub(crate) parking: Arc<Parking>,
    /// The tasks that run here.
    pub(crate) tasks: Tasks,
    /// Questions whose askers want to know how far their client is.
    pub(crate) awaited: Awaited,
    /// What other nodes are to be told of tasks.
    pub(crate) outgoing: Outgoing,
    /// The streams that want to hear of tasks.
    pub(crate) audience: Audience,
    /// Tasks of upstream servers that are awaited here.
    pub(crate) hints: Hints,
    /// Listen requests for them.
    pub(crate) ears: Ears,
    /// What the clients of a principal call themselves; lost without harm.
    pub(crate) client_names: Cache<Digest, Arc<str>>,
    writer: std::sync::Mutex<Option<Writer>>,
    #[cfg(test)]
    pub(crate) scripts: Scripts,
}

/// Backends that a test wrote, by the name of their tool.
#[cfg(test)]
#[derive(Default)]
pub(crate) struct Scripts(
    std::sync::Mutex<std::collections::HashMap<String, crate::tools::Script>>,
);

#[cfg(test)]
impl std::fmt::Debug for Scripts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Scripts")
    }
}

#[cfg(test)]
impl std::ops::Deref for Scripts {
    type Target = std::sync::Mutex<std::collections::HashMap<String, crate::tools::Script>>;
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl std::ops::Deref for McpState {
    type Target = Shared;
    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl McpState {
    /// Puts the parts together. Nothing runs yet: see [`McpState::start`].
    pub fn new(parts: McpParts) -> Self {
        let McpParts {
            site,
            store,
            keys,
            verifier,
            revocations,
            egress,
            node,
            clock,
            recorder,
            tracker,
            stopping,
            telling,
            config,
        } = parts;
        let gate = Arc::new(Gate::new(node.limits(), &config));
        let (call_log, writer) = call_log::call_log(store.clone(), config.call_log_queue);
        Self(Arc::new(Shared {
            origins: AllowedOrigins::new(&site, &config.allowed_origins),
            bearer: Bearer::new(
                site.clone(),
                verifier,
                revocations.clone(),
                ApiKeys::new(store.clone(), site.clone()),
                config.verified_tokens,
            ),
            catalog: Catalog::new(
                store.clone(),
                keys.clone(),
                clock.clone(),
                Arc::clone(&gate),
                config.list_page_size,
                config.max_stale(),
                config.catalogues,
            ),
            bodies: Bodies::new(store.clone()),
            streams: Streams::default(),
            crowd: Crowd::default(),
            connections: Connections::default(),
            tokens: TokenSource::new(clock.clone()),
            accounts: portolan_connections::Connections::new(
                store.clone(),
                keys.clone(),
                egress.clone(),
                clock.clone(),
                tracker.clone(),
            ),
            upstreams: Upstreams::default(),
            beside: Beside::default(),
            looks: Looks::default(),
            untold: Untold::default(),
            watches: Watches::default(),
            gate,
            node,
            instruments: Instruments::default(),
            call_log,
            newcomers: Newcomers::new(recorder, config.verified_tokens),
            parking: Arc::new(Parking::new(config.parked_per_node)),
            tasks: Tasks::default(),
            awaited: Awaited::default(),
            outgoing: Outgoing::default(),
            audience: Audience::default(),
            hints: Hints::default(),
            ears: Ears::default(),
            client_names: Cache::new(CLIENT_NAMES),
            writer: std::sync::Mutex::new(Some(writer)),
            #[cfg(test)]
            scripts: Scripts::default(),
            site,
            store,
            keys,
            revocations,
            egress,
            clock,
            tracker,
            stopping,
            last_words: LastWords::new(telling),
            config,
        }))
    }

    /// Starts what runs beside the requests: news of the registry, what other nodes tell, the watch over revocations, housekeeping, the writer of the call
    /// log. Further calls do nothing.
    pub fn start(&self) {
        let writer = self.writer.lock().ok().and_then(|mut writer| writer.take());
        let Some(writer) = writer else { return };
        self.tracker.spawn(writer.run(self.stopping.clone()));
        self.tracker.spawn(news::registry(self.clone()));
        self.tracker.spawn(bells::listen(self.clone()));
        self.tracker.spawn(news::revocations(self.clone()));
        self.tracker.spawn(news::housekeeping(self.clone()));
        self.tracker.spawn(limits::keep_refusals(self.clone()));
    }

    /// Ends what still runs, with honest errors, once calls may no longer go on (`streams.md` §16.4).
    pub async fn drain(&self) {
        self.last_words.ask();
        if timeout(LAST_WORDS, self.tasks.drain()).await.is_err() {
            tracing::warn!("some tasks could not be ended in the store");
        }
        self.node.drain().await;
    }

    /// How many calls of a tenant run and how many of its streams are open, over all nodes. `None` where that is not known.
    pub async fn in_use(&self, tenant: TenantId) -> [Option<u64>; 2] {
        self.gate.in_use(tenant).await
    }

    pub(crate) fn site(&self) -> &Site {
        &self.site
    }
}
