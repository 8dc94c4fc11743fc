//! A server with TLS, whose certificate an authority of its own has signed: for addresses that the
//! service calls over https alone. It answers as a test sets it, and records its requests.

use std::{
    fs, io,
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    process::{Command, Stdio},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::JoinSet,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        crypto::aws_lc_rs,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    },
};

/// Largest head of a request.
const LARGEST_HEAD: usize = 64 * 1024;

/// The answer to a request. The connection ends with it.
#[derive(Debug, Clone)]
pub enum Answer {
    /// These bytes, from the status line on.
    Whole(Vec<u8>),
    /// `head`, and then `piece` again and again, for as long as it is taken.
    Endless {
        /// Status line and headers.
        head: Vec<u8>,
        /// The repeated bytes.
        piece: Vec<u8>,
        /// Between two pieces.
        pause: Duration,
    },
}

impl Answer {
    /// Status line, more headers, and a body with its length.
    pub fn with(status: &str, headers: &str, body: &[u8]) -> Self {
        let mut whole = format!(
            "HTTP/1.1 {status}\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n",
            body.len()
        )
        .into_bytes();
        whole.extend_from_slice(body);
        Self::Whole(whole)
    }

    /// 200 and JSON.
    pub fn json(body: &str) -> Self {
        let headers = "content-type: application/json\r\n";
        Self::with("200 OK", headers, body.as_bytes())
    }
}

/// A running server. Stops when dropped.
#[derive(Debug)]
pub struct HttpsServer {
    address: SocketAddr,
    authority: Vec<u8>,
    seen: Arc<Mutex<Vec<String>>>,
    sent: Arc<AtomicU64>,
    _stop: oneshot::Sender<()>,
}

impl HttpsServer {
    /// Starts it on a free loopback port. `names` are what its certificate is good for, such as `DNS:app.example,IP:127.0.0.1`; `script`
    /// gets the head of each request and how many had the same first line before.
    pub fn start(
        names: &str,
        script: impl Fn(&str, usize) -> Answer + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let folder = tempfile::TempDir::with_prefix("portolan-https-")?;
        let config = certificate(folder.path(), names)?;
        let authority = fs::read(folder.path().join("authority.pem"))?;
        let seen = Arc::<Mutex<Vec<String>>>::default();
        let sent = Arc::<AtomicU64>::default();
        let shared = Arc::new(Shared {
            acceptor: TlsAcceptor::from(Arc::new(config)),
            script: Box::new(script),
            seen: Arc::clone(&seen),
            sent: Arc::clone(&sent),
        });
        let (stop, stopped) = oneshot::channel::<()>();
        let (sender, started) = mpsc::channel();
        // A thread with a runtime of its own: it lives as long as the value, whichever test runtime made it.
        thread::spawn(move || -> io::Result<()> {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            runtime.block_on(async {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
                let _ = sender.send(listener.local_addr()?);
                tokio::select! {
                    outcome = serve(listener, shared) => outcome,
                    _ = stopped => Ok(()),
                }
            })
        });
        let address = started
            .recv_timeout(Duration::from_secs(10))
            .map_err(io::Error::other)?;
        Ok(Self {
            address,
            authority,
            seen,
            sent,
            _stop: stop,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The certificate of its authority, in PEM.
    pub fn authority(&self) -> &[u8] {
        &self.authority
    }

    /// The heads of all requests so far. A connection whose certificate was not believed brings none.
    pub fn seen(&self) -> Vec<String> {
        locked(&self.seen).clone()
    }

    /// How often a path was asked for.
    pub fn count(&self, path: &str) -> usize {
        let line = format!("GET {path} HTTP/1.1\r\n");
        let seen = locked(&self.seen);
        seen.iter().filter(|head| head.starts_with(&line)).count()
    }

    /// Bytes of endless answers that were taken from it.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }
}

type Script = dyn Fn(&str, usize) -> Answer + Send + Sync;

struct Shared {
    acceptor: TlsAcceptor,
    script: Box<Script>,
    seen: Arc<Mutex<Vec<String>>>,
    sent: Arc<AtomicU64>,
}

async fn serve(listener: TcpListener, shared: Arc<Shared>) -> io::Result<()> {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await?;
        let shared = Arc::clone(&shared);
        // How one ends is the other side's affair: it may have refused the certificate, or have had enough.
        connections.spawn(async move { converse(stream, &shared).await });
        while connections.try_join_next().is_some() {}
    }
}

async fn converse(stream: TcpStream, shared: &Shared) -> io::Result<()> {
    let mut stream = shared.acceptor.accept(stream).await?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
        if head.len() > LARGEST_HEAD {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let before = {
        let mut seen = locked(&shared.seen);
        let line = head.lines().next();
        let before = seen
            .iter()
            .filter(|other| other.lines().next() == line)
            .count();
        seen.push(head.clone());
        before
    };
    match (shared.script)(&head, before) {
        Answer::Whole(bytes) => stream.write_all(&bytes).await?,
        Answer::Endless { head, piece, pause } => {
            stream.write_all(&head).await?;
            loop {
                stream.write_all(&piece).await?;
                stream.flush().await?;
                shared.sent.fetch_add(piece.len() as u64, Ordering::Relaxed);
                if !pause.is_zero() {
                    tokio::time::sleep(pause).await;
                }
            }
        }
    }
    stream.shutdown().await
}

/// Makes an authority, and a certificate by it.
fn certificate(folder: &Path, names: &str) -> io::Result<ServerConfig> {
    let new = |name: &str, more: &[&str]| {
        let done = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "ec", "-nodes", "-days", "2"])
            .args(["-pkeyopt", "ec_paramgen_curve:P-256"])
            .arg("-keyout")
            .arg(folder.join(format!("{name}.key")))
            .arg("-out")
            .arg(folder.join(format!("{name}.pem")))
            .args(more)
            .current_dir(folder)
            .stderr(Stdio::null())
            .status()?;
        if done.success() {
            Ok(())
        } else {
            Err(io::Error::other(format!("openssl cannot make {name}.pem")))
        }
    };
    new(
        "authority",
        &[
            "-subj",
            "/CN=Authority of a test",
            "-addext",
            "basicConstraints=critical,CA:TRUE",
        ],
    )?;
    new(
        "server",
        &[
            "-CA",
            "authority.pem",
            "-CAkey",
            "authority.key",
            "-subj",
            "/CN=Server of a test",
            "-addext",
            &format!("subjectAltName={names}"),
            "-addext",
            "basicConstraints=critical,CA:FALSE",
        ],
    )?;
    let chain = CertificateDer::pem_file_iter(folder.join("server.pem"))
        .map_err(io::Error::other)?
        .collect::<Result<Vec<_>, _>>()
        .map_err(io::Error::other)?;
    let key = PrivateKeyDer::from_pem_file(folder.join("server.key")).map_err(io::Error::other)?;
    ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(io::Error::other)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
