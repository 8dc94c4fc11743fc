//! Open event streams, as many as a descriptor table holds, each read by a small task.

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::{Semaphore, mpsc},
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::load::find;

/// Streams that are being opened at once.
const AT_ONCE: usize = 64;
/// Longest time anything may take before the run is given up.
const PATIENCE: Duration = Duration::from_secs(60);

/// Open streams. Dropping them cuts the connections.
pub(crate) struct Streams {
    open: usize,
    readers: JoinSet<()>,
    heard: mpsc::UnboundedReceiver<Told>,
}

/// Reports of a reader.
enum Told {
    Open,
    Heard(Instant),
    Over(String),
}

impl Streams {
    /// Opens one stream for each request, and waits until each has sent its first event. They listen for `word` from then on.
    pub(crate) async fn open(
        address: SocketAddr,
        requests: Vec<Vec<u8>>,
        word: &'static str,
    ) -> Result<Self> {
        let (tell, heard) = mpsc::unbounded_channel();
        let places = Arc::new(Semaphore::new(AT_ONCE));
        let mut readers = JoinSet::new();
        let open = requests.len();
        for request in requests {
            let (tell, places) = (tell.clone(), Arc::clone(&places));
            readers.spawn(async move {
                let place = places.acquire_owned().await;
                let outcome = async {
                    let stream = loop {
                        match begin(address, &request).await? {
                            Begun::Open(stream, _) => break stream,
                            Begun::Later(wait) => sleep(wait).await,
                        }
                    };
                    drop(place);
                    let _ = tell.send(Told::Open);
                    listen(stream, word, &tell).await
                };
                if let Err(error) = outcome.await {
                    let _ = tell.send(Told::Over(format!("{error:#}")));
                }
            });
        }
        let mut streams = Self {
            open,
            readers,
            heard,
        };
        for _ in 0..open {
            match streams.next().await? {
                Told::Open | Told::Heard(_) => {}
                Told::Over(error) => bail!("a stream could not be opened: {error}"),
            }
        }
        Ok(streams)
    }

    async fn next(&mut self) -> Result<Told> {
        timeout(PATIENCE, self.heard.recv())
            .await
            .context("the streams are silent")?
            .context("every reader ended")
    }

    /// Waits until every stream has received the word once more. Returns the moment of the last
    /// one.
    pub(crate) async fn all_heard(&mut self) -> Result<Instant> {
        let mut last = None;
        for _ in 0..self.open {
            match self.next().await? {
                Told::Heard(at) => last = last.max(Some(at)),
                Told::Open => {}
                Told::Over(error) => bail!("a stream ended: {error}"),
            }
        }
        last.context("no stream")
    }

    /// Fails if one of them ended meanwhile.
    pub(crate) fn check(&mut self) -> Result<()> {
        while let Ok(told) = self.heard.try_recv() {
            if let Told::Over(error) = told {
                bail!("a stream ended: {error}");
            }
        }
        ensure!(self.readers.len() == self.open, "a reader ended");
        Ok(())
    }

    /// Cuts all connections, and waits until that is done.
    pub(crate) async fn close(mut self) {
        self.readers.shutdown().await;
    }
}

/// The outcome of a request for a stream.
pub(crate) enum Begun {
    /// It is open, and began with these bytes.
    Open(TcpStream, Vec<u8>),
    /// The client has opened too many lately: after this time it may.
    Later(Duration),
}

/// Sends the request and reads up to the end of the first event.
pub(crate) async fn begin(address: SocketAddr, request: &[u8]) -> Result<Begun> {
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    stream.write_all(request).await?;
    let mut bytes = Vec::with_capacity(1024);
    loop {
        let read = timeout(PATIENCE, stream.read_buf(&mut bytes))
            .await
            .context("no first event")??;
        let text = String::from_utf8_lossy(&bytes);
        ensure!(read > 0, "the connection was closed after {text:?}");
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            if let Some(wait) = later(head) {
                return Ok(Begun::Later(wait));
            }
            ensure!(head.starts_with("HTTP/1.1 200"), "refused: {text}");
            // Either the event that has the first id, or a whole one without.
            if body.contains("\ndata:") && body.contains("\n\n") {
                return Ok(Begun::Open(stream, bytes));
            }
        }
    }
}

/// How long a client is asked to wait.
fn later(head: &str) -> Option<Duration> {
    let wait = head
        .strip_prefix("HTTP/1.1 429")?
        .lines()
        .find_map(|line| line.strip_prefix("retry-after: "))?;
    wait.trim().parse().ok().map(Duration::from_secs)
}

/// Reads until the end, and reports each time that `word` was there.
async fn listen(
    mut stream: TcpStream,
    word: &str,
    tell: &mpsc::UnboundedSender<Told>,
) -> Result<()> {
    let mut bytes = Vec::with_capacity(512);
    loop {
        ensure!(
            stream.read_buf(&mut bytes).await? > 0,
            "the server closed it"
        );
        let now = Instant::now();
        while let Some(at) = find(&bytes, word.as_bytes()) {
            bytes.drain(..at + word.len());
            let _ = tell.send(Told::Heard(now));
        }
        // A word may be cut in two.
        let done = bytes.len().saturating_sub(word.len());
        bytes.drain(..done);
    }
}

/// Opens a stream for as long as it takes to be given an id, and breaks off. Answers the id.
pub(crate) async fn break_off(address: SocketAddr, request: &[u8]) -> Result<String> {
    let Begun::Open(_stream, bytes) = begin(address, request).await? else {
        bail!("too many streams");
    };
    let text = String::from_utf8_lossy(&bytes);
    text.lines()
        .find_map(|line| line.strip_prefix("id: "))
        .map(str::to_owned)
        .with_context(|| format!("no id in {text}"))
}

/// Comes back, reads until so many events with `word` were there, and breaks off. Answers how long that took, connecting included.
pub(crate) async fn come_back(
    address: SocketAddr,
    request: &[u8],
    word: &str,
    events: usize,
) -> Result<Duration> {
    loop {
        match come_back_once(address, request, word, events).await? {
            Ok(took) => return Ok(took),
            Err(wait) => sleep(wait).await,
        }
    }
}

/// The error is the time that the client is asked to wait first.
async fn come_back_once(
    address: SocketAddr,
    request: &[u8],
    word: &str,
    events: usize,
) -> Result<Result<Duration, Duration>> {
    let begun = Instant::now();
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    stream.write_all(request).await?;
    let mut bytes = Vec::with_capacity(64 * 1024);
    let (mut seen, mut looked_at) = (0, 0);
    loop {
        let read = timeout(PATIENCE, stream.read_buf(&mut bytes))
            .await
            .with_context(|| format!("{events} missed events do not come, after {seen}"))??;
        let elapsed = begun.elapsed();
        let text = || String::from_utf8_lossy(&bytes[..bytes.len().min(2_048)]);
        ensure!(read > 0, "the connection was closed after {}", text());
        if looked_at == 0 {
            if let Some(wait) = later(&text()) {
                return Ok(Err(wait));
            }
            ensure!(text().starts_with("HTTP/1.1 200"), "refused: {}", text());
        }
        // Events count when they are whole.
        let new = &bytes[looked_at..];
        if let Some(end) = new.windows(2).rposition(|two| two == b"\n\n") {
            seen += new[..end]
                .windows(word.len())
                .filter(|window| *window == word.as_bytes())
                .count();
            looked_at += end + 2;
        }
        if seen >= events {
            return Ok(Ok(elapsed));
        }
    }
}
