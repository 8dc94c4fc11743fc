//! Tests of the router with a seeded catalogue and a real upstream on loopback.
//!
//! There is no database: a seeded server is served, and any other is unavailable. A node behaves
//! like this while Postgres is away.

pub(crate) mod admission;
pub(crate) mod answers_wire;
pub(crate) mod asking_wire;
pub(crate) mod bridge_wire;
pub(crate) mod default_wire;
pub(crate) mod endings_wire;
pub(crate) mod legacy_wire;
pub(crate) mod limits_wire;
pub(crate) mod modern_wire;
pub(crate) mod offers_wire;
pub(crate) mod pace_wire;
pub(crate) mod parked_wire;
pub(crate) mod renames_wire;
pub(crate) mod rules_wire;
pub(crate) mod sessions_wire;
pub(crate) mod streams_wire;
pub(crate) mod task_news_wire;
pub(crate) mod tasks_wire;
pub(crate) mod two_endpoints_wire;
pub(crate) mod upstream_tasks_wire;

use std::{sync::Arc, time::Duration};

use axum::{Json, Router, body::Body, extract::Path, response::Response, routing::get};
use http::{HeaderMap, HeaderName, Request, StatusCode, header};
use http_body_util::BodyExt;
use portolan_cluster::{Revocations, memory::MemoryStore, node::NodeSettings, store::Bounds};
use portolan_keys::{
    AccessClaims, Epochs, Keys, MasterSecret, SigningKeys, Verifier,
    ring::{NewKeyPair, SigningKey, plan},
};
use portolan_metering::MeteringConfig;
use portolan_model::{
    Clock, Id, Timestamp,
    id::{GrantId, ServerId, SourceId, TenantId, UserId},
    limits::{LimitName, LimitSet},
    registry::{SourceKind, SourceSettings},
    resource::Site,
};
use portolan_net::{
    address::AllowedDestination,
    egress::{Egress, EgressPolicy},
    shortcut::Shortcut,
};
use portolan_storage::{
    StorageConfig, Store,
    registry::catalog::{PublishedServer, PublishedSource, PublishedTool},
};
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::Notify};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower::ServiceExt;

use crate::{
    catalog::server::Server,
    config::McpConfig,
    http::state::{McpParts, McpState},
    target::Target,
};

const ISSUER: &str = "https://mcp.example.com";
const PATH: &str = "/t/acme/pets/mcp";
const NOW: Timestamp = time::macros::datetime!(2026-11-21 12:00 UTC);

/// A node, and the parts that its tests control.
struct Node {
    state: McpState,
    router: Router,
    clock: Clock,
    revocations: Revocations,
    stopping: CancellationToken,
    shared: MemoryStore,
    keys: Keys,
    signing: SigningKeys,
    tenant: TenantId,
    user: UserId,
    grant: GrantId,
    server: ServerId,
    upstream: std::net::SocketAddr,
    /// A call of `slow` reached the API, which never answers it.
    arrived: Arc<Notify>,
    /// Lets one call of `held` continue.
    release: Arc<Notify>,
    /// The requests that the upstream servers received.
    heard: upstream_tasks_wire::Heard,
}

/// The upstream: an API that echoes, fails, and can be slow.
async fn upstream(
    arrived: Arc<Notify>,
    release: Arc<Notify>,
    heard: &upstream_tasks_wire::Heard,
) -> std::net::SocketAddr {
    let slow = move || {
        arrived.notify_one();
        std::future::pending::<()>()
    };
    let held = move || {
        let release = Arc::clone(&release);
        async move {
            release.notified().await;
            Json(json!({"released": true}))
        }
    };
    let api = Router::new()
        .route("/held", get(held))
        .route(
            "/pets/{id}",
            get(|Path(id): Path<String>| async move { Json(json!({"id": id, "name": "Rex"})) }),
        )
        .route(
            "/broken",
            get(|| async { (StatusCode::BAD_GATEWAY, "out of order") }),
        )
        .route("/slow", get(slow))
        .merge(upstream_tasks_wire::servers(heard))
        .merge(task_news_wire::servers(heard))
        .merge(renames_wire::servers(heard));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    TaskTracker::new().spawn(async move { axum::serve(listener, api).await });
    address
}

fn tool(source: SourceId, name: &str, path: &str, input_schema: Value) -> PublishedTool {
    let parameters = if path.contains('{') {
        json!([{"argument": "id", "name": "id", "in": "path", "encoding": {"by": "style", "style": "simple", "explode": false}}])
    } else {
        json!([])
    };
    PublishedTool {
        id: Id::generate(),
        source,
        name: name.to_owned(),
        title: format!("Tool {name}"),
        description: "A tool".to_owned(),
        input_schema,
        output_schema: None,
        annotations: json!({"readOnlyHint": true}),
        plan: json!({"method": "GET", "path": path, "parameters": parameters}),
        written: None,
    }
}

impl Node {
    async fn start() -> Self {
        Self::with(McpConfig {
            list_page_size: 2,
            ..McpConfig::default()
        })
        .await
    }

    async fn with(config: McpConfig) -> Self {
        let clock = Clock::test(NOW);
        let keys = Keys::new(&MasterSecret::from_bytes([7; 32]), &[]).unwrap();
        let signing = SigningKeys::default();
        let rows = plan(&[], NOW).into_iter().map(|times| {
            let pair = NewKeyPair::generate().unwrap();
            let sealed = pair.sealed_private(&keys).unwrap();
            SigningKey::open(&keys, pair.public, &sealed, times, NOW).unwrap()
        });
        signing.replace(rows.collect());
        let release = Arc::new(Notify::new());
        let arrived = Arc::new(Notify::new());
        let heard = upstream_tasks_wire::Heard::default();
        let upstream = upstream(Arc::clone(&arrived), Arc::clone(&release), &heard).await;
        let shared = MemoryStore::new(Bounds::default(), clock.clone());
        let mut node = Self::around(config, clock, keys, signing, upstream, shared).await;
        (node.arrived, node.release, node.heard) = (arrived, release, heard);
        node.publish(&["broken", "get_pet", "slow", "with_header", "zebra"]);
        node.router = node.routes();
        node
    }

    async fn around(
        config: McpConfig,
        clock: Clock,
        keys: Keys,
        signing: SigningKeys,
        upstream: std::net::SocketAddr,
        shared: MemoryStore,
    ) -> Self {
        let verifier = Verifier::new(ISSUER);
        verifier.set_keys(&signing.jwks(NOW)).unwrap();
        let store = Store::connect_later(&StorageConfig {
            // The discard port has no listener: the database is away.
            url: "postgres://absent@127.0.0.1:9/none".to_owned().into(),
            max_connections: 1,
            acquire_timeout_ms: 2_000,
        });
        let allow = vec![AllowedDestination::address(upstream.ip(), upstream.port())];
        let (revocations, stopping) = (Revocations::default(), CancellationToken::new());
        let tracker = TaskTracker::new();
        let payloads = crate::payloads(keys.clone(), true);
        let among_tasks = TaskTracker::new();
        let among = portolan_cluster::node::Node::start(
            Arc::new(shared.clone()),
            NodeSettings::default(),
            payloads,
            // A tracker of its own, so that `tracker` counts the background work of requests.
            &among_tasks,
            CancellationToken::new(),
        );
        let state = McpState::new(McpParts {
            site: Site::new(ISSUER).unwrap(),
            store: store.unwrap(),
            keys: keys.clone(),
            verifier,
            revocations: revocations.clone(),
            egress: Egress::new(EgressPolicy {
                allow,
                ..EgressPolicy::default()
            })
            .unwrap(),
            node: among.await.unwrap(),
            clock: clock.clone(),
            recorder: portolan_storage::platform::recorder::Recorder::off(),
            tracker,
            stopping: stopping.clone(),
            telling: CancellationToken::new(),
            drained: CancellationToken::new(),
            last: TaskTracker::new(),
            metering: MeteringConfig::default(),
            config,
        });
        Self {
            router: Router::new(),
            state,
            clock,
            revocations,
            stopping,
            shared,
            keys,
            signing,
            tenant: Id::generate(),
            user: Id::generate(),
            grant: Id::generate(),
            server: Id::generate(),
            upstream,
            arrived: Arc::default(),
            release: Arc::default(),
            heard: Arc::default(),
        }
    }

    fn routes(&self) -> Router {
        let endpoint = crate::endpoint(self.state.clone());
        let rest = crate::router(self.state.clone());
        Router::new().fallback_service(Shortcut::new(crate::target::is_endpoint, endpoint, rest))
    }

    /// Another node of the same installation.
    async fn twin(&self) -> Self {
        self.twin_over(self.shared.clone()).await
    }

    /// Another node, after the store lost all its data.
    async fn twin_after_a_loss(&self) -> Self {
        let empty = MemoryStore::new(Bounds::default(), self.clock.clone());
        self.twin_over(empty).await
    }

    async fn twin_over(&self, shared: MemoryStore) -> Self {
        let config = McpConfig {
            list_page_size: 2,
            ..McpConfig::default()
        };
        let mut twin = Self::around(
            config,
            self.clock.clone(),
            self.keys.clone(),
            self.signing.clone(),
            self.upstream,
            shared,
        )
        .await;
        (twin.tenant, twin.user, twin.grant, twin.server) =
            (self.tenant, self.user, self.grant, self.server);
        twin.publish(&["get_pet"]);
        twin.router = twin.routes();
        twin
    }

    /// Publishes a server with these tools in the catalogue.
    fn publish(&self, names: &[&str]) {
        self.publish_with(names, &LimitSet::default());
    }

    /// The same for a tenant that has set limits.
    fn publish_with(&self, names: &[&str], own: &LimitSet) {
        let source = SourceId::generate();
        let tools = names.iter().map(|&name| match name {
            "get_pet" => {
                let schema = json!({"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"], "additionalProperties": false});
                tool(source, name, "/pets/{id}", schema)
            }
            "with_header" => {
                let schema = json!({"type": "object", "properties": {"id": {"type": "string", "x-mcp-header": "Pet"}}, "required": ["id"]});
                tool(source, name, "/pets/{id}", schema)
            }
            "broken" | "slow" | "held" => tool(source, name, &format!("/{name}"), json!({"type": "object"})),
            _ => tool(source, name, "/pets/1", json!({"type": "object"})),
        });
        let row = PublishedServer {
            sources: [(source, self.source())].into(),
            ..self.row(tools.collect())
        };
        self.serve(row, own);
    }

    /// A server with these tools and nothing else.
    fn row(&self, tools: Vec<PublishedTool>) -> PublishedServer {
        PublishedServer {
            id: self.server,
            slug: "pets".to_owned(),
            name: "Pets".to_owned(),
            description: None,
            instructions: Some("Ask before you adopt.".to_owned()),
            tools,
            prompts: Vec::new(),
            resources: Vec::new(),
            sources: std::collections::BTreeMap::new(),
            capture: None,
        }
    }

    fn serve(&self, row: PublishedServer, own: &LimitSet) {
        self.seed(PATH, Some(self.built(row, own)));
    }

    /// Builds the server as the catalogue does.
    fn built(&self, row: PublishedServer, own: &LimitSet) -> Arc<Server> {
        Arc::new(Server::build(
            self.tenant,
            row,
            self.state.admission.of(self.tenant, own),
            &self.keys,
            NOW,
            self.state.config.list_page_size,
        ))
    }

    fn source(&self) -> PublishedSource {
        PublishedSource {
            kind: SourceKind::Http,
            base_url: format!("http://{}", self.upstream),
            settings: SourceSettings {
                timeout_ms: 20_000,
                ..SourceSettings::default()
            },
            credential: None,
            sharing: None,
        }
    }

    fn seed(&self, path: &str, server: Option<Arc<Server>>) {
        self.state.catalog.seed(
            self.tenant,
            &Target::parse(path).unwrap(),
            &["acme", "acme-old"],
            server,
        );
    }

    fn claims(&self) -> AccessClaims {
        AccessClaims {
            iss: ISSUER.to_owned(),
            aud: format!("{ISSUER}{PATH}"),
            sub: self.user.into(),
            client_id: "client-a".to_owned(),
            tid: self.tenant,
            gid: self.grant,
            ep: Epochs {
                user: 1,
                tenant: 1,
                member: 1,
            },
            scope: "mcp".to_owned(),
            jti: Id::generate(),
            iat: NOW.unix_timestamp(),
            exp: NOW.unix_timestamp() + 3_600,
            auth_time: None,
        }
    }

    fn sign(&self, claims: &AccessClaims) -> String {
        format!(
            "Bearer {}",
            self.signing.sign(claims, NOW).unwrap().expose()
        )
    }

    fn token(&self) -> String {
        self.sign(&self.claims())
    }

    async fn send(&self, request: Request<Body>) -> Answer {
        let response = self.router.clone().oneshot(request).await.unwrap();
        Answer::read(response).await
    }

    /// A POST with a good token.
    async fn post(&self, headers: &[(&str, &str)], body: &Value) -> Answer {
        self.send(self.request("POST", headers, body.to_string()))
            .await
    }

    fn request(&self, verb: &str, headers: &[(&str, &str)], body: String) -> Request<Body> {
        let mut request = Request::builder().method(verb).uri(PATH);
        let given = |name: &str| {
            headers
                .iter()
                .any(|(known, _)| known.eq_ignore_ascii_case(name))
        };
        if !given("authorization") {
            request = request.header("authorization", self.token());
        }
        if verb == "POST" && !given("content-type") {
            request = request.header("content-type", "application/json");
        }
        for (name, value) in headers.iter().filter(|(_, value)| !value.is_empty()) {
            request = request.header(*name, *value);
        }
        request.body(Body::from(body)).unwrap()
    }

    /// Opens a session and returns its id.
    async fn initialize(&self, revision: &str) -> String {
        let answer = self.post(&[], &initialize(revision)).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.header("mcp-session-id").to_owned()
    }

    /// Sends a request within a session.
    async fn call(&self, session: &str, method: &str, params: Value) -> Answer {
        self.post(&[("mcp-session-id", session)], &rpc(method, params))
            .await
    }

    /// The tenant's refusals by limits, as its owner will see them.
    fn counted(&self) -> Vec<(LimitName, u64)> {
        let counts = self.state.admission.refused_so_far(self.tenant);
        let all = LimitName::ALL.into_iter().zip(counts);
        all.filter(|(_, count)| *count > 0).collect()
    }

    /// The head of an event stream, and its body.
    async fn open(&self, headers: &[(&str, &str)]) -> (StatusCode, HeaderMap, Body) {
        let response = self
            .router
            .clone()
            .oneshot(self.request("GET", headers, String::new()))
            .await
            .unwrap();
        let (parts, body) = response.into_parts();
        (parts.status, parts.headers, body)
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "written as json!(…) at each call"
)]
fn rpc(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

fn initialize(revision: &str) -> Value {
    rpc(
        "initialize",
        json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}),
    )
}

/// An answer, read to its end.
#[derive(Debug)]
struct Answer {
    status: u16,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Answer {
    async fn read(response: Response) -> Self {
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes().to_vec();
        Self {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body,
        }
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|_| panic!("not JSON: {}", String::from_utf8_lossy(&self.body)))
    }

    fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .unwrap_or_else(|| panic!("no {name}: {self:?}"))
            .to_str()
            .unwrap()
    }

    fn code(&self) -> i64 {
        self.json()["error"]["code"]
            .as_i64()
            .unwrap_or_else(|| panic!("no error: {}", self.json()))
    }

    fn has(&self, name: HeaderName) -> bool {
        self.headers.contains_key(name)
    }
}

/// The next frame of a body that stays open.
async fn frame(body: &mut Body) -> Option<String> {
    let frame = tokio::time::timeout(Duration::from_secs(5), body.frame())
        .await
        .expect("a frame within 5 s")?;
    Some(String::from_utf8(frame.unwrap().into_data().unwrap().to_vec()).unwrap())
}

/// True if no event comes within a second, the interval of MCP-SB-11.
///
/// The clock stands still meanwhile, and then jumps to the next timer.
async fn is_quiet(body: &mut Body) -> bool {
    tokio::time::pause();
    let came = tokio::time::timeout(Duration::from_secs(2), body.frame()).await;
    tokio::time::resume();
    came.is_err()
}

/// The JSON of the `data:` line of an event.
fn data(event: &str) -> Value {
    let line = event
        .lines()
        .find_map(|line| line.strip_prefix("data: "))
        .unwrap_or_else(|| panic!("no data: {event:?}"));
    serde_json::from_str(line).unwrap()
}

/// The `id:` line of an event.
fn event_id(event: &str) -> Option<&str> {
    event.lines().find_map(|line| line.strip_prefix("id: "))
}

const AUTHENTICATE: HeaderName = header::WWW_AUTHENTICATE;
