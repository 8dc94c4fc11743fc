//! Attached servers: takes the connections that `portolan attach` opens, and keeps each until it
//! ends (ADR 39).
//!
//! Every node needs a connection of its own: MCP nodes for calls, nodes with the console for the
//! lists of the server. A balancer chooses between the two by path: [`MCP_PATH`] and
//! [`AUTH_PATH`].
//!
//! The key of an attached server opens these paths alone, for one server. The tenant comes from the
//! key's row, never from the request: the slug of the path must be one of that tenant.

use std::{
    fmt,
    sync::{Arc, LazyLock},
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    extract::{Path, Request, State},
    response::Response,
    routing::any,
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited};
use portolan_keys::{SecretToken, TokenForm};
use portolan_model::{Clock, Digest, id::TenantId};
use portolan_net::{
    egress::Egress,
    tunnel::{self, NodeState, OfferState, Tunnel, Upgrade},
};
use portolan_storage::{
    Reason, StorageError, Store,
    registry::{
        attachments::{self, OpenedAttachment, Report},
        upstreams,
    },
};
use serde_json::json;
use tokio::{
    sync::Semaphore,
    time::{Instant, MissedTickBehavior, interval, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Where MCP nodes take connections.
pub const MCP_PATH: &str = "/t/{tenant}/attach";
/// Where nodes with the console alone take connections.
pub const AUTH_PATH: &str = "/attach/t/{tenant}";
/// Interval of looks whether the other nodes have changed.
const LOOK: Duration = Duration::from_secs(1);
/// Interval of the reports between node and program, and into the database.
const REPORT: Duration = Duration::from_secs(10);
/// The same while the server takes no requests.
const REPORT_UNREADY: Duration = Duration::from_secs(2);
/// The longest time of such a report.
const REPORT_WITHIN: Duration = Duration::from_secs(8);
/// Most bytes of the program's report.
const REPORT_BYTES: usize = 16 * 1024;
/// Most connections of a node, and of one attached server among them.
const MOST: usize = 2_000;
const MOST_OF_ONE: usize = 16;
/// Keys that are looked up at once.
const LOOK_UPS: usize = 8;
/// Longest stored version of a program, in characters.
const LONGEST_VERSION: usize = 80;

/// The parts of a node that are needed to take connections.
#[derive(Clone)]
pub struct Taking {
    /// The database.
    pub store: Store,
    /// The client whose requests go through the connections.
    pub egress: Egress,
    /// The clock.
    pub clock: Clock,
    /// Id of this node.
    pub node: String,
    /// Ids of all live nodes of its kind.
    pub nodes: Arc<dyn Fn() -> Vec<String> + Send + Sync>,
    /// A program needs connections at [`AUTH_PATH`] too: the console runs on other nodes.
    pub has_other_kind: bool,
    /// The node is about to stop.
    pub stopping: CancellationToken,
    /// The running calls of the node have ended, or their time is over.
    pub drained: CancellationToken,
    /// Tasks that the process waits for before it ends.
    pub tasks: TaskTracker,
}

impl fmt::Debug for Taking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Taking")
            .field("node", &self.node)
            .finish_non_exhaustive()
    }
}

/// The route at [`MCP_PATH`] or [`AUTH_PATH`].
pub fn router(path: &str, taking: Taking) -> Router {
    Router::new().route(path, any(attach)).with_state(taking)
}

/// Takes a connection, or says why not.
async fn attach(
    State(state): State<Taking>,
    Path(slug): Path<String>,
    mut request: Request,
) -> Response {
    match admit(&state, &slug, request.method(), request.headers()).await {
        Ok(admitted) => {
            let answer = switching(&state, &admitted);
            let upgrade = tunnel::upgrade_of(&mut request);
            let tasks = state.tasks.clone();
            tasks.spawn(hold(state, admitted, upgrade));
            answer
        }
        Err(refusal) => {
            metrics::counter!("attach_refused_total", "reason" => refusal.code).increment(1);
            refusal.answer()
        }
    }
}

/// Why a connection is not taken.
#[derive(Debug, Clone, Copy)]
struct Refusal {
    status: StatusCode,
    code: &'static str,
    message: &'static str,
}

const NO_UPGRADE: Refusal = Refusal {
    status: StatusCode::UPGRADE_REQUIRED,
    code: "upgrade_required",
    message: "This address is for `portolan attach`. A proxy in front must pass `Upgrade` on.",
};
/// The same answer for an unknown key, workspace and server, so that none of them is revealed.
const BAD_KEY: Refusal = Refusal {
    status: StatusCode::UNAUTHORIZED,
    code: "key_refused",
    message: "The key is not one of an attached server of this workspace. Make a new key on the \
              page of the server in the console.",
};
const BAD_INSTANCE: Refusal = Refusal {
    status: StatusCode::BAD_REQUEST,
    code: "instance_invalid",
    message: "The id of the program is not valid.",
};
const HELD: Refusal = Refusal {
    status: StatusCode::CONFLICT,
    code: "node_held",
    message: "This node is connected already.",
};
const FULL: Refusal = Refusal {
    status: StatusCode::SERVICE_UNAVAILABLE,
    code: "too_many",
    message: "This node takes no more connections of attached servers.",
};
const AWAY: Refusal = Refusal {
    status: StatusCode::SERVICE_UNAVAILABLE,
    code: "unavailable",
    message: "The database does not answer. Try again in a moment.",
};
const STOPPING: Refusal = Refusal {
    status: StatusCode::SERVICE_UNAVAILABLE,
    code: "stopping",
    message: "This node stops.",
};

impl Refusal {
    fn answer(self) -> Response {
        let body = json!({ "error": { "code": self.code, "message": self.message } });
        let mut answer = Response::new(Body::from(body.to_string()));
        *answer.status_mut() = self.status;
        let headers = answer.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        );
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if self.status == StatusCode::UPGRADE_REQUIRED {
            headers.insert(header::UPGRADE, HeaderValue::from_static(tunnel::PROTOCOL));
        }
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("2"));
        }
        answer
    }
}

/// A connection that may be taken.
#[derive(Debug)]
struct Admitted {
    tenant: TenantId,
    slug: String,
    digest: Digest,
    server: OpenedAttachment,
    instance: String,
    version: String,
}

impl Admitted {
    fn scope(&self) -> u128 {
        self.tenant.uuid().as_u128()
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().trim()
}

async fn admit(
    state: &Taking,
    slug: &str,
    method: &Method,
    headers: &HeaderMap,
) -> Result<Admitted, Refusal> {
    static TURNS: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(LOOK_UPS));
    let is_upgrade =
        method == Method::GET && text(headers, "upgrade").eq_ignore_ascii_case(tunnel::PROTOCOL);
    if !is_upgrade {
        return Err(NO_UPGRADE);
    }
    if state.stopping.is_cancelled() {
        return Err(STOPPING);
    }
    let key = text(headers, "authorization");
    let key = key.split_once(' ').map_or("", |(scheme, key)| {
        if scheme.eq_ignore_ascii_case("bearer") {
            key.trim()
        } else {
            ""
        }
    });
    // Garbage needs no database query.
    let digest = SecretToken::parse(TokenForm::Attach, key)
        .ok_or(BAD_KEY)?
        .digest();
    let instance = text(headers, tunnel::INSTANCE);
    let is_id = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    if !(8..=40).contains(&instance.len()) || !instance.bytes().all(is_id) {
        return Err(BAD_INSTANCE);
    }
    let _turn = TURNS.try_acquire().map_err(|_| FULL)?;
    let found = find(state, &digest, slug).await.map_err(|error| {
        tracing::warn!(
            error = &error as &dyn std::error::Error,
            "cannot look up the key of an attached server"
        );
        AWAY
    })?;
    let (tenant, server) = found.ok_or(BAD_KEY)?;
    let version: String = text(headers, "user-agent")
        .chars()
        .take(LONGEST_VERSION)
        .collect();
    let admitted = Admitted {
        tenant,
        slug: slug.to_owned(),
        digest,
        server,
        instance: instance.to_owned(),
        version,
    };
    let is_held = text(headers, tunnel::HELD)
        .split(',')
        .any(|node| node == state.node);
    if is_held {
        return Err(HELD);
    }
    let tunnels = state.egress.tunnels();
    let of_one = tunnels.count_of(admitted.scope(), &admitted.server.name);
    if tunnels.count() >= MOST || of_one >= MOST_OF_ONE {
        return Err(FULL);
    }
    Ok(admitted)
}

async fn find(
    state: &Taking,
    digest: &Digest,
    slug: &str,
) -> Result<Option<(TenantId, OpenedAttachment)>, StorageError> {
    let mut tx = state.store.edge(Reason::ApiKeys).await?;
    let Some(tenant) = attachments::tenant_of(&mut tx, digest).await? else {
        return Ok(None);
    };
    drop(tx);
    let mut tx = state.store.node(tenant).await?;
    let server = attachments::open(&mut tx, digest, slug).await?;
    Ok(server.map(|server| (tenant, server)))
}

fn switching(state: &Taking, admitted: &Admitted) -> Response {
    let mut answer = Response::new(Body::empty());
    *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = answer.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static(tunnel::PROTOCOL));
    for (name, value) in [
        (tunnel::NODE, state.node.clone()),
        (tunnel::NODES, (state.nodes)().join(",")),
        (tunnel::NAME, admitted.server.name.clone()),
    ] {
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(name, value);
        }
    }
    if state.has_other_kind
        && let Ok(path) = HeaderValue::try_from(AUTH_PATH.replace("{tenant}", &admitted.slug))
    {
        headers.insert(tunnel::ALSO, path);
    }
    answer
}

/// Keeps a connection until it ends, or until its key is replaced.
async fn hold(state: Taking, admitted: Admitted, upgrade: Upgrade) {
    let Ok(Ok(io)) = timeout(REPORT_WITHIN, upgrade.ready()).await else {
        return;
    };
    let Admitted {
        server, instance, ..
    } = &admitted;
    let opened = state
        .egress
        .tunnels()
        .open(admitted.scope(), &server.name, instance, io)
        .await;
    let Ok((tunnel, connection)) = opened else {
        return;
    };
    let begun = Instant::now();
    tracing::info!(
        tenant.id = %admitted.tenant,
        source.id = %server.source,
        instance,
        "a server is attached"
    );
    metrics::gauge!("attach_tunnels").increment(1.0);
    let mut connection = Box::pin(connection);
    let reason = tokio::select! {
        ended = &mut connection => match ended {
            Ok(()) => "closed",
            Err(_) => "lost",
        },
        reason = report(&state, &admitted, &tunnel) => reason,
        () = state.drained.cancelled() => "stopping",
    };
    // Out of use first, so that no new request takes it.
    drop(tunnel);
    drop(connection);
    metrics::gauge!("attach_tunnels").decrement(1.0);
    metrics::counter!("attach_ended_total", "reason" => reason).increment(1);
    tracing::info!(
        tenant.id = %admitted.tenant,
        source.id = %server.source,
        instance,
        reason,
        seconds = begun.elapsed().as_secs(),
        "a server is detached"
    );
    let forgotten = async {
        let mut tx = state.store.node(admitted.tenant).await?;
        attachments::ended(&mut tx, server.source, &state.node, instance).await?;
        tx.commit().await
    };
    if let Err(error) = forgotten.await {
        // The row becomes old by itself.
        tracing::debug!(
            error = &error as &dyn std::error::Error,
            "the end of a connection is not stored"
        );
    }
}

/// Reports to the program and into the database, until the connection must end. Returns the reason.
async fn report(state: &Taking, admitted: &Admitted, tunnel: &Tunnel) -> &'static str {
    let mut ticks = interval(LOOK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last: Option<OfferState> = None;
    let mut reported: Option<(Instant, Vec<String>)> = None;
    loop {
        ticks.tick().await;
        let nodes = (state.nodes)();
        // A server that is not ready is polled more often, so that its lists are read soon.
        let is_ready = last.as_ref().is_some_and(|last| last.is_ready);
        let pause = if is_ready { REPORT } else { REPORT_UNREADY };
        let is_due = reported
            .as_ref()
            .is_none_or(|(at, known)| at.elapsed() >= pause || *known != nodes);
        if !is_due {
            continue;
        }
        reported = Some((Instant::now(), nodes.clone()));
        let exchanged = timeout(REPORT_WITHIN, exchange(nodes, tunnel)).await;
        let Ok(Some(offer)) = exchanged else {
            return "silent";
        };
        // A server that begins to answer, or does so again, may offer something else.
        let is_new = offer.is_ready && !last.as_ref().is_some_and(|last| last.is_ready);
        match store(state, admitted, &offer, is_new).await {
            Ok(true) => {}
            Ok(false) => return "key_replaced",
            Err(error) => tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the state of an attached server is not stored"
            ),
        }
        last = Some(offer);
    }
}

async fn exchange(nodes: Vec<String>, tunnel: &Tunnel) -> Option<OfferState> {
    let news = NodeState { nodes };
    let request = http::Request::post(format!("https://{}/state", tunnel::CONTROL))
        .header(header::CONTENT_TYPE, "application/json")
        .body(Full::new(Bytes::from(serde_json::to_vec(&news).ok()?)))
        .ok()?;
    let answer = tunnel.send(request).await.ok()?;
    let body = Limited::new(answer.into_body(), REPORT_BYTES);
    let body = body.collect().await.ok()?.to_bytes();
    serde_json::from_slice(&body).ok()
}

/// False if the key may not be used any more.
async fn store(
    state: &Taking,
    admitted: &Admitted,
    offer: &OfferState,
    is_new: bool,
) -> Result<bool, StorageError> {
    let source = admitted.server.source;
    let now = state.clock.now();
    let mut tx = state.store.node(admitted.tenant).await?;
    let opened = attachments::open(&mut tx, &admitted.digest, &admitted.slug).await?;
    if opened.as_ref() != Some(&admitted.server) {
        return Ok(false);
    }
    let report = Report {
        source,
        node: &state.node,
        instance: &admitted.instance,
        version: &admitted.version,
        is_ready: offer.is_ready,
        error: offer.error.as_deref(),
    };
    attachments::report(&mut tx, &report, now).await?;
    if is_new {
        upstreams::ask_for_a_look(&mut tx, source, now).await?;
    }
    tx.commit().await?;
    Ok(true)
}
