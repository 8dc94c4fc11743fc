//! The connector below the client: the place where the guard stands.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower::Service;

use crate::address::{AddressRefusal, AddressRules, Destination};
use crate::proxies::{Proxied, Proxies, ProxyFailure};
use crate::resolve::Network;

use super::authorities::Authorities;

/// Of many addresses only the first few are tried; all of them are checked.
const MOST_ATTEMPTS: usize = 4;

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type Connecting<T> = Pin<Box<dyn Future<Output = Result<T, ConnectFailure>> + Send>>;

/// Why there is no connection. Found again in the chain of the client's error.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectFailure {
    #[error("refused by the address guard")]
    Refused(AddressRefusal),
    #[error("name look-up failed")]
    Dns(#[source] io::Error),
    #[error("TCP connection failed")]
    Tcp(#[source] io::Error),
    #[error("TLS handshake failed")]
    Tls(#[source] BoxError),
    #[error("no connection in time")]
    Timeout(Duration),
}

/// [`ConnectFailure`] without its source.
#[derive(Debug, Clone, Copy)]
pub(super) enum FailureKind {
    Refused(AddressRefusal),
    Dns,
    Tcp,
    Tls,
    Timeout(Duration),
}

impl ConnectFailure {
    pub(super) const fn kind(&self) -> FailureKind {
        match self {
            Self::Refused(refusal) => FailureKind::Refused(*refusal),
            Self::Dns(_) => FailureKind::Dns,
            Self::Tcp(_) => FailureKind::Tcp,
            Self::Tls(_) => FailureKind::Tls,
            Self::Timeout(after) => FailureKind::Timeout(*after),
        }
    }
}

/// Rules and network: what decides, and what acts.
#[derive(Clone)]
pub(super) struct Guard {
    pub(super) rules: Arc<AddressRules>,
    pub(super) network: Network,
}

impl Guard {
    async fn connect(self, uri: Uri) -> Result<GuardedStream, ConnectFailure> {
        let plain = uri.scheme_str() != Some("https");
        let port = uri.port_u16().unwrap_or(if plain { 80 } else { 443 });
        let host = uri.host().unwrap_or_default();
        let host = host
            .strip_prefix('[')
            .and_then(|h| h.strip_suffix(']'))
            .unwrap_or(host);
        let destination = match host.parse() {
            Ok(address) => Destination::Address(address),
            Err(_) => Destination::Name(host),
        };
        self.rules
            .check_destination(destination, port, plain)
            .map_err(ConnectFailure::Refused)?;
        let addresses = match destination {
            Destination::Address(address) => vec![address],
            Destination::Name(name) => self.resolve(name, port).await?,
        };
        self.dial(&addresses, port).await
    }

    /// Resolves all addresses of the name once, and checks each of them.
    async fn resolve(&self, name: &str, port: u16) -> Result<Vec<IpAddr>, ConnectFailure> {
        let mut addresses = self
            .network
            .resolver
            .resolve(name)
            .await
            .map_err(ConnectFailure::Dns)?;
        if addresses.is_empty() {
            let nothing = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
            return Err(ConnectFailure::Dns(nothing));
        }
        self.rules
            .check_resolved(name, port, &addresses)
            .map_err(|refusal| {
                tracing::warn!(
                    host = name,
                    "egress refused: the name resolves to an address that is not public"
                );
                ConnectFailure::Refused(refusal)
            })?;
        // Kept in the resolver's order (RFC 6724), without doubles.
        let mut seen = Vec::with_capacity(addresses.len());
        addresses.retain(|address| {
            let fresh = !seen.contains(address);
            seen.push(*address);
            fresh
        });
        Ok(addresses)
    }

    /// Dials the checked addresses one after the other; the name is not resolved again (MCP-AB-18).
    async fn dial(&self, addresses: &[IpAddr], port: u16) -> Result<GuardedStream, ConnectFailure> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "no address");
        for address in addresses.iter().take(MOST_ATTEMPTS) {
            match self
                .network
                .dialer
                .dial(SocketAddr::new(*address, port))
                .await
            {
                Ok(stream) => return Ok(GuardedStream(TokioIo::new(stream))),
                Err(error) => last = error,
            }
        }
        Err(ConnectFailure::Tcp(last))
    }
}

impl Service<Uri> for Guard {
    type Response = GuardedStream;
    type Error = ConnectFailure;
    type Future = Connecting<GuardedStream>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        Box::pin(self.clone().connect(uri))
    }
}

/// TLS on top of the guard, and one deadline over both.
#[derive(Clone)]
pub(super) struct Connector {
    https: HttpsConnector<Proxied<Guard>>,
    within: Duration,
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector")
            .field("within", &self.within)
            .finish_non_exhaustive()
    }
}

/// Builds the connector. It believes the certificate authorities of the machine and these.
pub(super) fn connector(
    guard: Guard,
    proxies: &Proxies,
    authorities: &Authorities,
    within: Duration,
) -> Result<Connector, rustls::Error> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(authorities.with_the_machines())
        .with_no_client_auth();
    let https = HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_or_http()
        .enable_http1()
        .wrap_connector(proxies.around(guard));
    Ok(Connector { https, within })
}

impl Service<Uri> for Connector {
    type Response = MaybeHttpsStream<GuardedStream>;
    type Error = ConnectFailure;
    type Future = Connecting<MaybeHttpsStream<GuardedStream>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let within = self.within;
        let connecting = self.https.call(uri);
        Box::pin(async move {
            match tokio::time::timeout(within, connecting).await {
                Ok(Ok(stream)) => Ok(stream),
                Ok(Err(error)) => Err(failure_of(error)),
                Err(_elapsed) => Err(ConnectFailure::Timeout(within)),
            }
        })
    }
}

/// An error that is neither from the guard nor from a proxy is from TLS.
fn failure_of(error: BoxError) -> ConnectFailure {
    match error.downcast::<ConnectFailure>() {
        Ok(own) => *own,
        Err(error) if error.is::<ProxyFailure>() => ConnectFailure::Tcp(io::Error::other(error)),
        Err(error) => ConnectFailure::Tls(error),
    }
}

/// A TCP connection to a checked address.
#[derive(Debug)]
pub(super) struct GuardedStream(TokioIo<TcpStream>);

impl Connection for GuardedStream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl hyper::rt::Read for GuardedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: hyper::rt::ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl hyper::rt::Write for GuardedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(cx, bufs)
    }
}
