//! How names become addresses, and addresses connections: the two seams of the egress client to the
//! outside.
//!
//! Both are traits so that a test can show, without a network, that a name which changes its answer
//! is never followed into a private address, and which address was dialled in the end (MCP-AB-18).
//! Nothing here decides; the connector in [`crate::egress`] checks every answer before it dials.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::sync::Semaphore;

/// A boxed future, as object-safe traits need it.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Turns a host name into all of its addresses.
pub trait Resolve: Send + Sync + 'static {
    /// Returns all addresses of the name. An empty answer means "no such name".
    ///
    /// # Errors
    /// The system's error, when it could not resolve the name.
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// Opens the connection to an address that has been checked.
pub trait Dial: Send + Sync + 'static {
    /// Connects to exactly this address.
    ///
    /// # Errors
    /// The connection error of the system.
    fn dial(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<TcpStream>>;
}

/// The outside as an egress client sees it.
#[derive(Clone)]
pub struct Network {
    /// Resolver of names.
    pub resolver: Arc<dyn Resolve>,
    /// Opens connections.
    pub dialer: Arc<dyn Dial>,
}

impl Network {
    /// The system's resolver and plain TCP.
    pub fn system() -> Self {
        Self {
            resolver: Arc::new(SystemResolver::new()),
            dialer: Arc::new(TcpDialer),
        }
    }
}

impl std::fmt::Debug for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Network").finish_non_exhaustive()
    }
}

/// How many look-ups may occupy a blocking thread at once: a sick name server must not take the
/// pool that file reads and password hashing need.
const LOOKUPS_AT_ONCE: usize = 64;

/// The resolver of the operating system (`getaddrinfo`), off the async threads.
#[derive(Debug)]
pub struct SystemResolver {
    slots: Semaphore,
}

impl SystemResolver {
    /// A resolver with its own bound of parallel look-ups.
    pub fn new() -> Self {
        Self {
            slots: Semaphore::new(LOOKUPS_AT_ONCE),
        }
    }
}

impl Default for SystemResolver {
    fn default() -> Self {
        Self::new()
    }
}

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let _slot = self.slots.acquire().await.map_err(io::Error::other)?;
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// Plain TCP with `TCP_NODELAY` and keep-alive probes.
#[derive(Debug, Clone, Copy)]
pub struct TcpDialer;

impl Dial for TcpDialer {
    fn dial(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<TcpStream>> {
        Box::pin(async move {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            let keepalive = socket2::TcpKeepalive::new().with_time(Duration::from_secs(60));
            socket2::SockRef::from(&stream).set_tcp_keepalive(&keepalive)?;
            Ok(stream)
        })
    }
}
