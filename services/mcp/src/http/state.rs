//! The state of the endpoint: the services of all layers, composed once.

use std::{num::NonZero, ops::Deref, sync::Arc};

use portolan_cluster::{Revocations, node::Node};
use portolan_keys::{Keys, Verifier};
use portolan_metering::{Meter, MeteringConfig};
use portolan_model::{Clock, id::TenantId, resource::Site};
use portolan_net::egress::Egress;
use portolan_storage::{Store, platform::recorder::Recorder};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    backends::services::Backends,
    call_counts::CountWriter,
    call_log::{self, LogParts, Writer},
    config::{CALL_LOG_QUEUE, McpConfig, VERIFIED_TOKENS},
    http::{
        AllowedOrigins, api_key::ApiKeys, bearer::Bearer,
        connection_diagnostics::ConnectionDiagnostics,
    },
    instruments::Instruments,
    limits::{AdmissionControl, session_quota::SessionQuota, suspended_calls::SuspendedCalls},
    live_sessions::board::SessionBoard,
    nodes::{
        awaited::Awaited,
        context::{NodeContext, NodeParts},
        events::Events,
        outgoing::Outgoing,
    },
    shutdown::Shutdown,
    streams::{self, services::StreamServices},
    tasks::services::TaskServices,
    transport::services::TransportServices,
};

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
    /// Cancelled when no call runs any more: the last counts and entries of the log are written.
    pub drained: CancellationToken,
    /// The tracker of what runs until then.
    pub last: TaskTracker,
    /// The settings of counts and of the log of calls.
    pub metering: MeteringConfig,
    /// The settings.
    pub config: McpConfig,
}

/// The shared state. Cheap to clone.
#[derive(Debug, Clone)]
pub struct McpState(Arc<Shared>);

/// The contents of the state. Its fields are private to this crate.
#[derive(Debug)]
pub struct Shared {
    transports: TransportServices,
    pub(crate) origins: AllowedOrigins,
    pub(crate) bearer: Bearer,
    /// The diagnostics of connecting clients.
    pub(crate) connection_diagnostics: ConnectionDiagnostics,
    /// The writers of the call log and of counts, until the background tasks begin.
    pub(crate) writers: std::sync::Mutex<Option<(Writer, CountWriter)>>,
    /// Cancelled when no call runs any more.
    pub(crate) drained: CancellationToken,
    /// The tracker of what runs until then.
    pub(crate) last: TaskTracker,
}

impl Deref for McpState {
    type Target = Shared;
    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl Deref for Shared {
    type Target = TransportServices;
    fn deref(&self) -> &TransportServices {
        &self.transports
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
            drained,
            last,
            metering,
            config,
        } = parts;
        let origins = AllowedOrigins::new(&site, &config.allowed_origins);
        let bearer = Bearer::new(
            site.clone(),
            verifier,
            revocations.clone(),
            ApiKeys::new(store.clone(), site.clone()),
            VERIFIED_TOKENS,
        );
        let connection_diagnostics = ConnectionDiagnostics::new(recorder, VERIFIED_TOKENS);
        let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
        let meter = Arc::new(Meter::new(threads));
        let counts = CountWriter::new(Arc::clone(&meter), store.clone(), clock.clone());
        let (call_log, writer) = call_log::call_log(LogParts {
            store: store.clone(),
            meter,
            node: node.id().to_string().into(),
            capacity: CALL_LOG_QUEUE,
            rows_a_day: metering.call_log_rows_per_day,
        });
        let node = NodeContext::new(NodeParts {
            admission: Arc::new(AdmissionControl::new(node.limits(), &config)),
            suspended_calls: Arc::new(SuspendedCalls::new(config.parked_per_node)),
            session_quota: SessionQuota::default(),
            instruments: Instruments::default(),
            call_log,
            awaited: Awaited::default(),
            outgoing: Outgoing::default(),
            events: Events::default(),
            sessions: SessionBoard::default(),
            shutdown: Shutdown::new(telling),
            site,
            store,
            keys,
            revocations,
            egress,
            node,
            clock,
            tracker,
            stopping,
            config,
        });
        let streams = StreamServices::new(Backends::new(TaskServices::new(node)));
        streams::events::subscribe(&streams);
        Self(Arc::new(Shared {
            transports: TransportServices::new(streams),
            origins,
            bearer,
            connection_diagnostics,
            writers: std::sync::Mutex::new(Some((writer, counts))),
            drained,
            last,
        }))
    }

    /// Running calls and open streams of a tenant in the cluster. `None` if unknown.
    pub async fn in_use(&self, tenant: TenantId) -> [Option<u64>; 2] {
        self.admission.in_use(tenant).await
    }
}
