//! Connections of a program that runs on a person's machine with that person's rights.
//!
//! Such a program may call any address that its person names, private ones too. A node never uses
//! this module: its requests go through [`egress`](crate::egress).

use std::{sync::Arc, time::Duration};

use http::Uri;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::{client::legacy::connect::HttpConnector, rt::TokioIo};
use tokio::net::TcpStream;
use tower::Service as _;

use crate::{
    egress::{Authorities, EgressSetupError},
    proxies::{Proxied, Proxies},
};

/// The longest time of a name look-up, TCP connection and TLS handshake together.
const CONNECT: Duration = Duration::from_secs(15);

/// A connection, with TLS for an `https` address.
pub type OutwardStream = MaybeHttpsStream<TokioIo<TcpStream>>;

/// Why there is no connection. The text is for the person who runs the program.
#[derive(Debug, thiserror::Error)]
pub enum OutwardError {
    /// No connection in time.
    #[error("no connection within {} s", CONNECT.as_secs())]
    Timeout,
    /// No connection.
    #[error("{}", chain(.0.as_ref()))]
    Connect(Box<dyn std::error::Error + Send + Sync>),
}

fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        next = cause.source();
    }
    text
}

/// Opens connections.
#[derive(Debug, Clone)]
pub struct Outward(HttpsConnector<Proxied<HttpConnector>>);

impl Outward {
    /// Trusts the certificate authorities of the machine and these, and goes through these proxies.
    ///
    /// # Errors
    /// The TLS stack refuses its own defaults.
    pub fn new(authorities: &Authorities, proxies: &Proxies) -> Result<Self, EgressSetupError> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(EgressSetupError::Tls)?
            .with_root_certificates(authorities.with_the_machines())
            .with_no_client_auth();
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_nodelay(true);
        http.set_keepalive(Some(Duration::from_secs(60)));
        let https = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .wrap_connector(proxies.around(http));
        Ok(Self(https))
    }

    /// Opens one connection to the host of an `http` or `https` address.
    ///
    /// # Errors
    /// [`OutwardError`].
    pub async fn connect(&self, uri: Uri) -> Result<OutwardStream, OutwardError> {
        match tokio::time::timeout(CONNECT, self.0.clone().call(uri)).await {
            Ok(connected) => connected.map_err(OutwardError::Connect),
            Err(_elapsed) => Err(OutwardError::Timeout),
        }
    }
}
