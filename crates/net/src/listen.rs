//! The listening side: bind, accept, serve, drain.
//!
//! Our own accept loop instead of `axum::serve`, because buffers must be bounded (hyper's read buffer otherwise grows to
//! about 400 KiB a connection and never shrinks), slow heads must be cut, and the router must not be rebuilt for each
//! connection (streams.md §19.4).

mod watched;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use socket2::{Domain, Protocol, Socket, TcpKeepalive, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::Service as _;

use self::watched::{Activity, Watched};

/// Connections that wait in the kernel while all slots are taken.
const BACKLOG: i32 = 1024;
/// Pause after the system refused a connection for want of descriptors or memory.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The other end of the connection, as an extension of each request. The client may be behind it: see
/// [`crate::client_ip`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer(pub SocketAddr);

/// Bounds of one listener.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Connections served at once; more wait unaccepted.
    pub connections: usize,
    /// Largest read buffer of a connection, and so the largest head of a request (431 beyond).
    pub buffer_bytes: usize,
    /// Header lines of a request (431 beyond).
    pub headers: usize,
    /// Longest time from the first byte of a head to its last.
    pub head_within: Duration,
    /// A connection without a byte in either direction and without a running request is closed after this.
    pub idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 20_000,
            buffer_bytes: 32 * 1024,
            headers: 100,
            head_within: Duration::from_secs(10),
            idle: Duration::from_secs(75),
        }
    }
}

/// How a listener is asked to stop.
#[derive(Debug, Clone)]
pub struct Shutdown {
    /// Cancelled to begin: no new connections, no new requests on kept ones.
    pub stop: CancellationToken,
    /// Connections become tasks here, so that whoever stops the process can wait for them.
    pub tasks: TaskTracker,
    /// How long running requests may go on before their connections are cut.
    pub grace: Duration,
}

/// Why an address could not be bound, in words for the operator.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Somebody else has it.
    #[error(
        "address {address} is in use; stop the other program or set {setting} to another address"
    )]
    InUse {
        /// The address.
        address: SocketAddr,
        /// Name of the setting.
        setting: &'static str,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The process may not, usually a port below 1024.
    #[error(
        "no permission to listen on {address}; use a port above 1023 or set {setting} to another address"
    )]
    Forbidden {
        /// The address.
        address: SocketAddr,
        /// Name of the setting.
        setting: &'static str,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// This machine has no such address.
    #[error(
        "this machine has no address {address}; set {setting} to one that it has, for instance 127.0.0.1:8080"
    )]
    NoSuchAddress {
        /// The address.
        address: SocketAddr,
        /// Name of the setting.
        setting: &'static str,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// Anything else.
    #[error("could not listen on {address} (setting {setting})")]
    Other {
        /// The address.
        address: SocketAddr,
        /// Name of the setting.
        setting: &'static str,
        /// The system's error.
        #[source]
        source: io::Error,
    },
}

/// Binds an address. `setting` is what the operator would change, for instance `PORTOLAN_LISTEN`.
///
/// # Errors
/// See [`BindError`].
pub fn bind(address: SocketAddr, setting: &'static str) -> Result<TcpListener, BindError> {
    try_bind(address).map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => BindError::InUse {
            address,
            setting,
            source,
        },
        io::ErrorKind::PermissionDenied => BindError::Forbidden {
            address,
            setting,
            source,
        },
        io::ErrorKind::AddrNotAvailable => BindError::NoSuchAddress {
            address,
            setting,
            source,
        },
        _ => BindError::Other {
            address,
            setting,
            source,
        },
    })
}

fn try_bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    // A restart must not wait for connections of the previous process in TIME_WAIT.
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

/// Serves the router until `shutdown.stop` is cancelled and the connections have ended or were cut after the grace period.
/// Returns the number of connections that had to be cut.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    limits: Limits,
    shutdown: Shutdown,
) -> usize {
    let mut http = http1::Builder::new();
    http.max_buf_size(limits.buffer_bytes)
        .max_headers(limits.headers)
        .header_read_timeout(None);
    let server = Server {
        // Once for all connections: turns every route into its final form.
        router: router.with_state(()),
        http,
        limits,
        stop: shutdown.stop.clone(),
        cut: CancellationToken::new(),
    };
    let slots = Arc::new(Semaphore::new(limits.connections));
    // Ours, beside the tracker of the process: here we wait for connections alone.
    let connections = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            biased;
            () = shutdown.stop.cancelled() => break,
            accepted = accept(&listener, &slots) => accepted,
        };
        let Some((stream, peer, slot)) = accepted else {
            continue;
        };
        let serving = server.clone().connection(stream, peer);
        shutdown.tasks.spawn(connections.track_future(async move {
            serving.await;
            drop(slot);
        }));
    }
    drop(listener);
    connections.close();
    if tokio::time::timeout(shutdown.grace, connections.wait())
        .await
        .is_ok()
    {
        return 0;
    }
    let cut = connections.len();
    tracing::warn!(
        connections = cut,
        "connections are cut: the grace period is over"
    );
    server.cut.cancel();
    connections.wait().await;
    cut
}

async fn accept(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
) -> Option<(TcpStream, SocketAddr, tokio::sync::OwnedSemaphorePermit)> {
    let slot = Arc::clone(slots).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, peer)) => {
            // A connection whose options cannot be set is dead already; serving it will tell.
            let _ = stream.set_nodelay(true);
            let keepalive = TcpKeepalive::new().with_time(Duration::from_secs(60));
            let _ = socket2::SockRef::from(&stream).set_tcp_keepalive(&keepalive);
            Some((stream, peer, slot))
        }
        Err(error) => {
            let theirs = matches!(
                error.kind(),
                io::ErrorKind::ConnectionRefused
                    | io::ErrorKind::ConnectionAborted
                    | io::ErrorKind::ConnectionReset
            );
            if !theirs {
                tracing::error!(%error, "no connection can be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
            None
        }
    }
}

#[derive(Clone)]
struct Server {
    router: Router,
    http: http1::Builder,
    limits: Limits,
    stop: CancellationToken,
    cut: CancellationToken,
}

impl Server {
    async fn connection(self, stream: TcpStream, peer: SocketAddr) {
        let activity = Arc::new(Activity::default());
        let stream = Watched::new(
            stream,
            Arc::clone(&activity),
            self.limits.head_within,
            self.limits.idle,
        );
        let service = ToRouter {
            router: self.router,
            peer,
            activity,
        };
        let mut connection = pin!(self.http.serve_connection(TokioIo::new(stream), service));
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = self.stop.cancelled() => {
                connection.as_mut().graceful_shutdown();
                tokio::select! {
                    ended = connection.as_mut() => ended,
                    () = self.cut.cancelled() => return,
                }
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection ended early");
        }
    }
}

/// From hyper to axum, without a copy of the router.
struct ToRouter {
    router: Router,
    peer: SocketAddr,
    activity: Arc<Activity>,
}

impl hyper::service::Service<Request<Incoming>> for ToRouter {
    type Response = axum::response::Response;
    type Error = std::convert::Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let running = self.activity.begin();
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(Peer(self.peer));
        let answering = self.router.clone().call(request);
        Box::pin(async move {
            let answer = answering.await;
            drop(running);
            answer
        })
    }
}
