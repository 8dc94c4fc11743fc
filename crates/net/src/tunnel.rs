//! Tunnels: connections that a program outside (`portolan attach`) opened to this node.
//!
//! On such a connection the roles are exchanged: this node is the HTTP/2 client, and the program is
//! the server. A server behind the program has the address `https://NAME.attached.invalid`. The
//! name `invalid` never resolves (RFC 6761), so no other client can call it.
//!
//! A name belongs to a scope, a number that the caller chooses for each of its tenants. Only an
//! [`Egress`](crate::egress::Egress) of that scope reaches the name (ADR 39).

mod connection;

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::{
    rt::{Read, Write},
    upgrade::{OnUpgrade, Upgraded},
};
use serde::{Deserialize, Serialize};
use tokio::{sync::watch, time::Instant};
use url::Url;

pub(crate) use self::connection::Unanswered;
pub use self::connection::{TunnelBody, TunnelError};

/// Protocol of the HTTP/1.1 `Upgrade` that opens a tunnel.
pub const PROTOCOL: &str = "portolan-attach/1";
/// Header of the request: the id of the program.
pub const INSTANCE: &str = "portolan-attach-instance";
/// Header of the request: the nodes to which the program is connected, with commas.
pub const HELD: &str = "portolan-attach-held";
/// Header of the answer: the node that took the connection.
pub const NODE: &str = "portolan-attach-node";
/// Header of the answer: all nodes, with commas.
pub const NODES: &str = "portolan-attach-nodes";
/// Header of the answer: the name of the attached server.
pub const NAME: &str = "portolan-attach-name";
/// Header of the answer: path at which nodes of another kind take connections too.
pub const ALSO: &str = "portolan-attach-also";
/// Authority of the requests of a tunnel itself. No attached server has it.
pub const CONTROL: &str = "attach.invalid";
/// Path of the MCP endpoint in the address of each attached server.
pub const ENDPOINT_PATH: &str = "/mcp";

/// Report of a node to the program at the other end, every few seconds.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NodeState {
    /// Ids of all live nodes.
    pub nodes: Vec<String>,
}

/// The answer of the program.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfferState {
    /// The server takes requests.
    pub is_ready: bool,
    /// Why it does not, or the last failure, as a sentence for the console.
    pub error: Option<String>,
}

/// End of the host of every attached server.
const SUFFIX: &str = ".attached.invalid";
/// Header with the session of a Streamable HTTP server.
const SESSION: &str = "mcp-session-id";
/// How long a lost tunnel is expected back.
const EXPECTED: Duration = Duration::from_secs(30);
/// How long a new process expects the tunnels of others.
const BEGINNING: Duration = Duration::from_secs(20);
/// How long a request waits for an expected tunnel.
const PATIENCE: Duration = Duration::from_secs(3);
/// Longest name.
const LONGEST_NAME: usize = 40;

/// The address of an attached server, with the path of its MCP endpoint.
///
/// `None` if the name is not 1 to 40 lower-case letters, digits and inner hyphens.
pub fn url_of(name: &str) -> Option<Url> {
    if !is_name(name) {
        return None;
    }
    Url::parse(&format!("https://{name}{SUFFIX}{ENDPOINT_PATH}")).ok()
}

/// The name in the address of an attached server.
pub fn name_of(url: &Url) -> Option<&str> {
    let name = url.host_str()?.strip_suffix(SUFFIX)?;
    is_name(name).then_some(name)
}

/// True for each host that is reserved for attached servers, also with an invalid name.
pub(crate) fn is_reserved(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let host = host.strip_suffix('.').unwrap_or(host);
    host.ends_with(SUFFIX) || host == &SUFFIX[1..]
}

fn is_name(name: &str) -> bool {
    (1..=LONGEST_NAME).contains(&name.len())
        && !name.starts_with('-')
        && !name.ends_with('-')
        // Two hyphens in third place are an encoded Unicode name.
        && name.get(2..4) != Some("--")
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

/// A connection that is about to become one of another protocol.
#[derive(Debug)]
pub struct Upgrade(OnUpgrade);

/// Takes the connection of a request whose answer is 101.
pub fn upgrade_of<B>(request: &mut Request<B>) -> Upgrade {
    Upgrade(hyper::upgrade::on(request))
}

impl Upgrade {
    /// Waits until the answer was written.
    ///
    /// # Errors
    /// The connection broke, or the listener does not upgrade.
    pub async fn ready(self) -> hyper::Result<Upgraded> {
        self.0.await
    }
}

type TunnelKey = (u128, Box<str>);

/// All tunnels that this process holds. Cloning shares them.
#[derive(Clone)]
pub struct Tunnels(Arc<SharedTunnels>);

struct SharedTunnels {
    began: Instant,
    state: Mutex<TunnelTable>,
    /// Raised by each opened tunnel.
    opened: watch::Sender<u64>,
}

#[derive(Default)]
struct TunnelTable {
    held: HashMap<TunnelKey, Vec<Arc<HeldTunnel>>>,
    /// Instances that were lost, and when.
    lost: HashMap<TunnelKey, Vec<(Box<str>, Instant)>>,
    /// Turns among equals.
    turn: usize,
}

struct HeldTunnel {
    instance: Box<str>,
    requests: connection::Requests,
    running: AtomicUsize,
}

impl fmt::Debug for Tunnels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tunnels")
            .field("names", &self.state().held.len())
            .finish_non_exhaustive()
    }
}

impl Default for Tunnels {
    fn default() -> Self {
        Self(Arc::new(SharedTunnels {
            began: Instant::now(),
            state: Mutex::default(),
            opened: watch::Sender::new(0),
        }))
    }
}

/// No tunnel for a name.
#[derive(Debug)]
pub(crate) struct Away;

impl Tunnels {
    fn state(&self) -> MutexGuard<'_, TunnelTable> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of tunnels in all.
    pub fn count(&self) -> usize {
        self.state().held.values().map(Vec::len).sum()
    }

    /// Number of tunnels of a name.
    pub fn count_of(&self, scope: u128, name: &str) -> usize {
        let place = (scope, name.into());
        self.state().held.get(&place).map_or(0, Vec::len)
    }

    /// Begins HTTP/2 on a connection and makes it a tunnel for `name`. `instance` names the program
    /// at its other end: it begins the ids of the program's sessions, followed by a dot.
    ///
    /// Returns the tunnel, which exists until it is dropped, and a future that waits for the end of
    /// the connection. When the tunnel is dropped, the connection ends with its last request.
    ///
    /// # Errors
    /// The peer does not speak HTTP/2.
    pub async fn open<I>(
        &self,
        scope: u128,
        name: &str,
        instance: &str,
        io: I,
    ) -> Result<
        (
            Tunnel,
            impl Future<Output = Result<(), TunnelError>> + Send + use<I>,
        ),
        TunnelError,
    >
    where
        I: Read + Write + Unpin + Send + 'static,
    {
        let (requests, end) = connection::open(io).await?;
        let held = Arc::new(HeldTunnel {
            instance: instance.into(),
            requests,
            running: AtomicUsize::new(0),
        });
        let place: TunnelKey = (scope, name.into());
        {
            let mut state = self.state();
            if let Some(lost) = state.lost.get_mut(&place) {
                lost.retain(|(lost, _)| **lost != *instance);
            }
            let all = state.held.entry(place.clone()).or_default();
            all.push(Arc::clone(&held));
        }
        self.0.opened.send_modify(|opened| *opened += 1);
        let tunnel = Tunnel {
            tunnels: self.clone(),
            place,
            held,
        };
        Ok((tunnel, end))
    }

    /// Chooses a tunnel for a request. One of a session goes to the program that has the session.
    pub(crate) async fn passage(
        &self,
        scope: u128,
        name: &str,
        request: &Request<Full<Bytes>>,
    ) -> Result<Passage, Away> {
        let place: TunnelKey = (scope, name.into());
        let session = request.headers().get(SESSION);
        let session = session.and_then(|value| value.to_str().ok());
        let instance = session.and_then(|id| id.split_once('.')).map(|(id, _)| id);
        let mut opened = self.0.opened.subscribe();
        let until = Instant::now() + PATIENCE;
        loop {
            opened.mark_unchanged();
            let (found, is_expected) = self.choose(&place, instance);
            match found {
                Some((held, is_right)) if is_right || !is_expected => {
                    return Ok(Passage::new(held));
                }
                None if !is_expected => return Err(Away),
                found => {
                    let waited = tokio::time::timeout_at(until, opened.changed()).await;
                    if !matches!(waited, Ok(Ok(()))) {
                        // The program without the session refuses it by the rules of MCP.
                        return found.map(|(held, _)| Passage::new(held)).ok_or(Away);
                    }
                }
            }
        }
    }

    /// The tunnel that fits best, whether it is the right one, and whether a better one is
    /// expected.
    fn choose(
        &self,
        place: &TunnelKey,
        instance: Option<&str>,
    ) -> (Option<(Arc<HeldTunnel>, bool)>, bool) {
        let now = Instant::now();
        let mut state = self.state();
        state.turn = state.turn.wrapping_add(1);
        let turn = state.turn;
        let is_young = now.duration_since(self.0.began) < BEGINNING;
        let mut is_expected = is_young;
        if let Some(lost) = state.lost.get_mut(place) {
            lost.retain(|(_, since)| now.duration_since(*since) < EXPECTED);
            is_expected |= match instance {
                Some(instance) => lost.iter().any(|(lost, _)| **lost == *instance),
                None => !lost.is_empty(),
            };
            if lost.is_empty() {
                state.lost.remove(place);
            }
        }
        let open = state.held.get(place).into_iter().flatten();
        let open: Vec<&Arc<HeldTunnel>> = open.filter(|held| !held.requests.is_closed()).collect();
        let of_session = instance.and_then(|id| open.iter().find(|held| *held.instance == *id));
        if let Some(held) = of_session {
            return (Some((Arc::clone(held), true)), is_expected);
        }
        let count = open.len();
        let chosen = (0..count)
            .map(|step| open[(turn + step) % count])
            .min_by_key(|held| held.running.load(Ordering::Relaxed));
        let is_right = instance.is_none();
        (chosen.map(|held| (Arc::clone(held), is_right)), is_expected)
    }
}

/// One tunnel. Dropping it takes it out of use; requests that run on it go on as long as its
/// connection does.
#[derive(Debug)]
pub struct Tunnel {
    tunnels: Tunnels,
    place: TunnelKey,
    held: Arc<HeldTunnel>,
}

impl fmt::Debug for HeldTunnel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held")
            .field("instance", &self.instance)
            .finish_non_exhaustive()
    }
}

impl Tunnel {
    /// Sends a request of the tunnel itself to the program at its other end.
    ///
    /// # Errors
    /// The tunnel is lost.
    pub async fn send(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<TunnelBody>, TunnelError> {
        let answered = self.held.requests.clone().ask(request).await;
        answered.map_err(|unanswered| unanswered.error)
    }

    /// Number of requests that run on it.
    pub fn running(&self) -> usize {
        self.held.running.load(Ordering::Relaxed)
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        let mut state = self.tunnels.state();
        if let Some(all) = state.held.get_mut(&self.place) {
            all.retain(|held| !Arc::ptr_eq(held, &self.held));
            if all.is_empty() {
                state.held.remove(&self.place);
            }
        }
        let lost = state.lost.entry(self.place.clone()).or_default();
        lost.push((self.held.instance.clone(), Instant::now()));
    }
}

/// The place of one request on a tunnel.
pub(crate) struct Passage {
    held: Arc<HeldTunnel>,
    requests: connection::Requests,
}

impl Passage {
    fn new(held: Arc<HeldTunnel>) -> Self {
        held.running.fetch_add(1, Ordering::Relaxed);
        let requests = held.requests.clone();
        Self { held, requests }
    }

    /// Sends the request and waits for the head of its answer.
    pub(crate) async fn ask(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<TunnelBody>, Unanswered> {
        self.requests.ask(request).await
    }
}

impl Drop for Passage {
    fn drop(&mut self) {
        self.held.running.fetch_sub(1, Ordering::Relaxed);
    }
}
