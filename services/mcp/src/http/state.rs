//! The state that all handlers share.

use std::{sync::Arc, time::Duration};

use portolan_cluster::{Revocations, Streams, node::Node};
use portolan_http_tools::TokenSource;
use portolan_keys::{Keys, Verifier};
use portolan_model::{Clock, Digest, id::TenantId, resource::Site};
use portolan_net::egress::Egress;
use portolan_storage::{Store, platform::recorder::Recorder};
use quick_cache::sync::Cache;
use tokio::time::timeout;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    backends::upstream::{Hints, RefreshRequests, TaskListeners, UpstreamGetStreams, Upstreams},
    call::client_channel::SuspendedCalls,
    call_log::{self, CallLog, Writer},
    catalog::{Catalog, bodies::Bodies},
    changes::{self, Untold},
    config::McpConfig,
    http::{
        api_key::ApiKeys, bearer::Bearer, connection_diagnostics::ConnectionDiagnostics,
        origin::AllowedOrigins,
    },
    instruments::Instruments,
    limits::{self, AdmissionControl, session_quota::SessionQuota},
    nodes::notify::{self, Awaited, Outgoing},
    shutdown::Shutdown,
    streams::{Tag, tasks::Audience},
    tasks::Tasks,
    transport::http_sse::Connections,
    upstream_subscriptions::UpstreamSubscriptions,
};

/// How long a stopping node waits until the store records its tasks as lost.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// Most client names that are cached, for the log of calls.
const CLIENT_NAMES: usize = 10_000;

/// The parts of the service.
#[derive(Debug)]
pub struct McpParts {
    /// The public origin.
    pub site: Site,
    /// The database.
    pub store: Store,
    /// Keys for session ids, cursors and sealed credentials.
    pub keys: Keys,
    /// The verifier of access tokens.
    pub verifier: Verifier,
    /// The revoked tokens that have not expired; the caller's feed updates them.
    pub revocations: Revocations,
    /// The only outgoing HTTP client.
    pub egress: Egress,
    /// This node of the cluster: sessions, logs of streams, running calls, limits.
    pub node: Node,
    /// The clock.
    pub clock: Clock,
    /// The recorder of connection diagnostics (AUTH-X2).
    pub recorder: Recorder,
    /// The tracker of all background tasks.
    pub tracker: TaskTracker,
    /// Cancelled when the process begins to stop: event streams end.
    pub stopping: CancellationToken,
    /// Cancelled by [`McpState::drain`]: wakes connections whose requests still wait.
    pub telling: CancellationToken,
    /// The settings.
    pub config: McpConfig,
}

/// The shared state. Cheap to clone.
#[derive(Debug, Clone)]
pub struct McpState(Arc<Shared>);

/// The contents of the state. Its fields are private to this crate.
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
    pub(crate) shutdown: Shutdown,
    pub(crate) config: McpConfig,
    pub(crate) origins: AllowedOrigins,
    pub(crate) bearer: Bearer,
    pub(crate) catalog: Catalog,
    pub(crate) bodies: Bodies,
    pub(crate) node: Node,
    pub(crate) streams: Streams<Tag>,
    pub(crate) session_quota: SessionQuota,
    /// The HTTP+SSE connections that this node holds.
    pub(crate) connections: Connections,
    pub(crate) tokens: TokenSource,
    /// Connected accounts at upstream servers.
    pub(crate) accounts: portolan_connections::Connections,
    pub(crate) upstreams: Upstreams,
    /// Notifications of upstream servers beside the streams of calls.
    pub(crate) get_streams: UpstreamGetStreams,
    /// Requests for a refresh of upstream servers.
    pub(crate) refresh_requests: RefreshRequests,
    /// Tenants whose open streams must be notified once more.
    pub(crate) untold: Untold,
    /// The upstream subscriptions of this node's clients.
    pub(crate) upstream_subscriptions: UpstreamSubscriptions,
    pub(crate) admission: Arc<AdmissionControl>,
    pub(crate) instruments: Instruments,
    pub(crate) call_log: CallLog,
    /// The diagnostics of connecting clients.
    pub(crate) connection_diagnostics: ConnectionDiagnostics,
    /// The suspended calls of this node.
    pub(crate) suspended_calls: Arc<SuspendedCalls>,
    /// The tasks that run here.
    pub(crate) tasks: Tasks,
    /// Questions whose askers want their client's progress.
    pub(crate) awaited: Awaited,
    /// The queue of messages to other nodes about tasks.
    pub(crate) outgoing: Outgoing,
    /// The streams that subscribe to tasks.
    pub(crate) audience: Audience,
    /// Tasks of upstream servers that this node awaits.
    pub(crate) hints: Hints,
    /// `subscriptions/listen` requests for them.
    pub(crate) task_listeners: TaskListeners,
    /// Client names by principal; losing one does no harm.
    pub(crate) client_names: Cache<Digest, Arc<str>>,
    writer: std::sync::Mutex<Option<Writer>>,
    #[cfg(test)]
    pub(crate) scripts: Scripts,
}

/// Backends of tests, by the name of their tool.
#[cfg(test)]
#[derive(Default)]
pub(crate) struct Scripts(
    std::sync::Mutex<std::collections::HashMap<String, crate::features::tools::Script>>,
);

#[cfg(test)]
impl std::fmt::Debug for Scripts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Scripts")
    }
}

#[cfg(test)]
impl std::ops::Deref for Scripts {
    type Target =
        std::sync::Mutex<std::collections::HashMap<String, crate::features::tools::Script>>;
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
    /// Builds the state. Background tasks begin with [`McpState::start`].
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
        let admission = Arc::new(AdmissionControl::new(node.limits(), &config));
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
                Arc::clone(&admission),
                config.list_page_size,
                config.max_stale(),
                config.catalogues,
            ),
            bodies: Bodies::new(store.clone()),
            streams: Streams::default(),
            session_quota: SessionQuota::default(),
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
            get_streams: UpstreamGetStreams::default(),
            refresh_requests: RefreshRequests::default(),
            untold: Untold::default(),
            upstream_subscriptions: UpstreamSubscriptions::default(),
            admission,
            node,
            instruments: Instruments::default(),
            call_log,
            connection_diagnostics: ConnectionDiagnostics::new(recorder, config.verified_tokens),
            suspended_calls: Arc::new(SuspendedCalls::new(config.parked_per_node)),
            tasks: Tasks::default(),
            awaited: Awaited::default(),
            outgoing: Outgoing::default(),
            audience: Audience::default(),
            hints: Hints::default(),
            task_listeners: TaskListeners::default(),
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
            shutdown: Shutdown::new(telling),
            config,
        }))
    }

    /// Starts the background tasks; later calls do nothing.
    ///
    /// These are the registry's changes, messages of other nodes, revocations, housekeeping, and
    /// the writer of the call log.
    pub fn start(&self) {
        let writer = self.writer.lock().ok().and_then(|mut writer| writer.take());
        let Some(writer) = writer else { return };
        self.tracker.spawn(writer.run(self.stopping.clone()));
        self.tracker.spawn(changes::registry(self.clone()));
        self.tracker.spawn(notify::listen(self.clone()));
        self.tracker.spawn(changes::revocations(self.clone()));
        self.tracker.spawn(changes::housekeeping(self.clone()));
        self.tracker.spawn(limits::keep_refusals(self.clone()));
    }

    /// Ends running calls with an error, once they may no longer continue (STREAM-16.4).
    pub async fn drain(&self) {
        self.shutdown.ask();
        if timeout(LAST_WORDS, self.tasks.drain()).await.is_err() {
            tracing::warn!("some tasks could not be ended in the store");
        }
        self.node.drain().await;
    }

    /// Running calls and open streams of a tenant in the cluster. `None` if unknown.
    pub async fn in_use(&self, tenant: TenantId) -> [Option<u64>; 2] {
        self.admission.in_use(tenant).await
    }

    pub(crate) fn site(&self) -> &Site {
        &self.site
    }
}
