//! The listening side: bind, accept, serve, drain.
//!
//! Our own accept loop instead of `axum::serve`, because buffers must be bounded (hyper's read
//! buffer otherwise grows to about 400 KiB a connection and never shrinks), slow heads must be cut,
//! and the router must not be rebuilt for each connection (STREAM-19.4).

mod config;
mod permits;
mod watched;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use futures_util::FutureExt as _;
use http::header::{CONNECTION, HeaderValue};
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use socket2::{Domain, Protocol, Socket, TcpKeepalive, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::Service;

pub use self::config::ListenConfig;
pub(crate) use self::permits::AuthorisationReport;
pub use self::permits::Sharing;
use self::permits::{ConnectionPermit, ConnectionPermits, ConnectionRefused};
use self::watched::{Activity, RunningConnection, Watched};
use crate::unrendered::UNRENDERED_CSP;

/// Connections that wait in the kernel while all slots are taken.
const BACKLOG: i32 = 1024;
/// Header lines of a request that hyper takes by itself (431 beyond).
const HYPER_HEADERS: usize = 100;
/// Read buffer of a connection. Browsers and clients send heads of up to 16 KiB.
const BUFFER_BYTES: usize = 32 * 1024;
/// Time for a head. A client that needs longer holds a connection on purpose.
const HEAD_WITHIN: Duration = Duration::from_secs(10);
/// Pause after the system refused a connection for want of descriptors or memory.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The other end of the connection, as an extension of each request. The client may be behind it:
/// see [`crate::client_ip`].
#[derive(Debug, Clone)]
pub struct Peer {
    /// Its address.
    pub address: SocketAddr,
    /// The connection's permit at the listener.
    pub(crate) standing: Option<Arc<AuthorisationReport>>,
}

impl From<SocketAddr> for Peer {
    /// For requests that arrived over no listener of this crate.
    fn from(address: SocketAddr) -> Self {
        Self {
            address,
            standing: None,
        }
    }
}

/// Bounds of one listener.
#[derive(Debug, Clone)]
pub struct ListenLimits {
    /// Connections served at once; more wait unaccepted.
    pub connections: usize,
    /// How they are shared out among addresses. By default they are not.
    pub sharing: Sharing,
    /// Largest read buffer of a connection, and so the largest head of a request (431 beyond).
    pub buffer_bytes: usize,
    /// Header lines of a request (431 beyond).
    pub headers: usize,
    /// Longest time from the first byte of a head to its last.
    pub head_within: Duration,
    /// A connection without a byte in either direction and without a running request is closed
    /// after this.
    pub idle: Duration,
}

impl Default for ListenLimits {
    /// Those of the public listener by default, but not shared out among addresses.
    fn default() -> Self {
        Self {
            sharing: Sharing::default(),
            ..ListenConfig::default().limits()
        }
    }
}

/// Shutdown of a listener in four steps (STREAM-16.4). The process cancels one token after the
/// other, and so gives all listeners one budget of time.
#[derive(Debug, Clone, Default)]
pub struct Shutdown {
    /// First: answers carry `Connection: close`. Connections and requests are still accepted,
    /// because balancers need a while to notice that the node is not ready any more.
    pub stop: CancellationToken,
    /// Then: no new connections, and no new requests on kept ones. Running requests continue.
    pub close: CancellationToken,
    /// Shortly before the cut: every connection is woken, so that requests that still wait can
    /// answer that they stop.
    pub tell: CancellationToken,
    /// At last: what is still open is cut.
    pub cut: CancellationToken,
    /// The connections of this one listener, to be counted and waited for. [`serve`] closes it
    /// after `close`.
    pub connections: TaskTracker,
}

/// Why an address could not be bound, in words for the operator.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// The address is in use by another program.
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

impl BindError {
    fn new(address: SocketAddr, setting: &'static str, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::AddrInUse => Self::InUse {
                address,
                setting,
                source,
            },
            io::ErrorKind::PermissionDenied => Self::Forbidden {
                address,
                setting,
                source,
            },
            io::ErrorKind::AddrNotAvailable => Self::NoSuchAddress {
                address,
                setting,
                source,
            },
            _ => Self::Other {
                address,
                setting,
                source,
            },
        }
    }
}

/// A bound address that this process does not serve yet. The system refuses connections, so that a
/// balancer passes a request on to another node before it is sent. If connections were accepted,
/// requests would wait for a start, or get 503.
#[derive(Debug)]
pub struct Bound {
    socket: Socket,
    address: SocketAddr,
    setting: &'static str,
}

impl Bound {
    /// Returns the address, with the chosen port if the configured port was 0.
    ///
    /// # Errors
    /// The system's.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        let address = self.socket.local_addr()?;
        Ok(address.as_socket().unwrap_or(self.address))
    }

    /// Begins to take connections. Call inside a runtime.
    ///
    /// # Errors
    /// See [`BindError`]: another process that had the address too, and served it first.
    pub fn listen(self) -> Result<TcpListener, BindError> {
        let Self {
            socket,
            address,
            setting,
        } = self;
        socket
            .listen(BACKLOG)
            .and_then(|()| TcpListener::from_std(socket.into()))
            .map_err(|source| BindError::new(address, setting, source))
    }
}

/// Takes an address. `setting` is what the operator would change, for instance `PORTOLAN_LISTEN`.
///
/// # Errors
/// See [`BindError`].
pub fn bind(address: SocketAddr, setting: &'static str) -> Result<Bound, BindError> {
    let begin = || {
        let socket = Socket::new(
            Domain::for_address(address),
            Type::STREAM,
            Some(Protocol::TCP),
        )?;
        // A restart must not wait for connections of the previous process in TIME_WAIT.
        socket.set_reuse_address(true)?;
        socket.set_nonblocking(true)?;
        socket.bind(&address.into())?;
        Ok(socket)
    };
    let socket = begin().map_err(|source| BindError::new(address, setting, source))?;
    Ok(Bound {
        socket,
        address,
        setting,
    })
}

/// Serves until `shutdown.close` is cancelled and the connections have ended or were cut. Returns
/// the number of connections that had to be cut. The service is cloned for each request and never
/// asked whether it is ready. Give a router `with_state(())`, which turns every route into its
/// final form once and not for each connection.
pub async fn serve<S>(
    listener: TcpListener,
    service: S,
    limits: ListenLimits,
    shutdown: Shutdown,
) -> usize
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>
        + Clone
        + Send
        + Sync
        + 'static,
    S::Future: Send + Unpin,
{
    let mut http = http1::Builder::new();
    http.max_buf_size(limits.buffer_bytes)
        .header_read_timeout(None);
    // Its own limit costs hyper nothing; another is allocated and filled for each request.
    if limits.headers != HYPER_HEADERS {
        http.max_headers(limits.headers);
    }
    let server = Server {
        service,
        http,
        head_within: limits.head_within,
        idle: limits.idle,
        says_close: Arc::new(AtomicBool::new(false)),
        close: shutdown.close.clone(),
        tell: shutdown.tell.clone(),
        cut: shutdown.cut.clone(),
    };
    let slots = Arc::new(Semaphore::new(limits.connections));
    let permits = ConnectionPermits::new(limits.sharing);
    let connections = shutdown.connections;
    let take = |(stream, peer, slot): (TcpStream, SocketAddr, OwnedSemaphorePermit)| {
        let permit: ConnectionPermit = match permits.take(peer.ip(), slots.available_permits()) {
            Ok(permit) => permit,
            Err(refused) => return refuse(&stream, peer, refused),
        };
        let peer = Peer {
            address: peer,
            standing: permits.standing(peer.ip()),
        };
        let serving = server.clone().connection(stream, peer);
        connections.spawn(async move {
            serving.await;
            drop((permit, slot));
        });
    };
    loop {
        tokio::select! {
            biased;
            () = shutdown.close.cancelled() => break,
            () = shutdown.stop.cancelled(), if !server.says_close.load(Ordering::Relaxed) => {
                server.says_close.store(true, Ordering::Relaxed);
            }
            accepted = accept(&listener, &slots) => if let Some(accepted) = accepted {
                take(accepted);
            },
        }
    }
    server.says_close.store(true, Ordering::Relaxed);
    // The system has accepted connections whose handshake is complete. They may hold a request,
    // which closing the socket would lose.
    while let Some(Some(accepted)) = accept(&listener, &slots).now_or_never() {
        take(accepted);
    }
    drop(listener);
    connections.close();
    tokio::select! {
        () = connections.wait() => return 0,
        () = shutdown.cut.cancelled() => {}
    }
    let cut = connections.len();
    if cut > 0 {
        tracing::warn!(connections = cut, "connections are cut: the time is over");
    }
    connections.wait().await;
    cut
}

/// Sends the reason, as far as the fresh connection takes it at once, and closes: a client that
/// opens too many connections must not cause work.
fn refuse(stream: &TcpStream, peer: SocketAddr, refused: ConnectionRefused) {
    static ANSWER: LazyLock<String> = LazyLock::new(|| {
        let body = r#"{"error":{"code":"too_many_connections","message":"There are too many connections. Close some, or try again in a moment."}}"#;
        format!(
            "HTTP/1.1 503 Service Unavailable\r\n\
             content-type: application/json\r\n\
             cache-control: no-store\r\n\
             x-content-type-options: nosniff\r\n\
             content-security-policy: {UNRENDERED_CSP}\r\n\
             retry-after: 5\r\n\
             connection: close\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        )
    });
    let reason = refused.reason();
    metrics::counter!("connections_refused_total", "reason" => reason).increment(1);
    tracing::debug!(%peer, reason, "a connection is refused");
    let _ = stream.try_write(ANSWER.as_bytes());
}

async fn accept(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
) -> Option<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let slot = Arc::clone(slots).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, peer)) => {
            // A connection whose options cannot be set is already dead; serving it fails.
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
struct Server<S> {
    service: S,
    http: http1::Builder,
    head_within: Duration,
    idle: Duration,
    /// A flag instead of the token: each answer reads it, and a token has a lock.
    says_close: Arc<AtomicBool>,
    close: CancellationToken,
    tell: CancellationToken,
    cut: CancellationToken,
}

impl<S> Server<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>
        + Clone
        + Send
        + Sync
        + 'static,
    S::Future: Send + Unpin,
{
    async fn connection(self, stream: TcpStream, peer: Peer) {
        let activity = Arc::new(Activity::default());
        let stream = Watched::new(stream, Arc::clone(&activity), self.head_within, self.idle);
        let service = FromHyper {
            service: self.service,
            peer,
            activity,
            says_close: self.says_close,
        };
        let mut connection = pin!(
            self.http
                .serve_connection(TokioIo::new(stream), service)
                .with_upgrades()
        );
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = self.close.cancelled() => {
                connection.as_mut().graceful_shutdown();
                let mut is_told = false;
                loop {
                    tokio::select! {
                        ended = connection.as_mut() => break ended,
                        // The connection is polled again, and with it the request that it waits
                        // for.
                        () = self.tell.cancelled(), if !is_told => is_told = true,
                        () = self.cut.cancelled() => return,
                    }
                }
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection ended early");
        }
    }
}

fn is_upgrade(answer: &Response<Body>) -> bool {
    answer.status() == StatusCode::SWITCHING_PROTOCOLS
}

/// Adapts hyper requests to the services of this workspace.
struct FromHyper<S> {
    service: S,
    peer: Peer,
    activity: Arc<Activity>,
    says_close: Arc<AtomicBool>,
}

impl<S> hyper::service::Service<Request<Incoming>> for FromHyper<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Clone,
    S::Future: Unpin,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Exchange<S::Future>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let running = self.activity.begin();
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(self.peer.clone());
        Exchange {
            answering: self.service.clone().call(request),
            running: Some(running),
            says_close: Arc::clone(&self.says_close),
        }
    }
}

/// Future of one answer.
struct Exchange<F> {
    answering: F,
    /// Until there is an answer.
    running: Option<RunningConnection>,
    says_close: Arc<AtomicBool>,
}

impl<F> Future for Exchange<F>
where
    F: Future<Output = Result<Response<Body>, Infallible>> + Unpin,
{
    type Output = Result<Response<Body>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut answer = ready!(Pin::new(&mut self.answering).poll(cx))?;
        if self.says_close.load(Ordering::Relaxed) {
            answer
                .headers_mut()
                .insert(CONNECTION, HeaderValue::from_static("close"));
        }
        if let Some(running) = self.running.take()
            && is_upgrade(&answer)
        {
            // Another protocol keeps the connection alive from now on, and has no heads.
            running.keep();
        }
        Poll::Ready(Ok(answer))
    }
}
