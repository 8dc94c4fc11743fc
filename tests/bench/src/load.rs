//! The load: the same bytes again and again on kept connections, as cheaply as can be, every answer looked at.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use futures_util::future::try_join_all;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A load on one server. Connections are opened with the first run and kept.
pub(crate) struct Load {
    address: SocketAddr,
    requests: Vec<Vec<u8>>,
    connections: Vec<Connection>,
    /// What every answer must contain.
    expected: &'static str,
}

impl Load {
    /// One connection for each request.
    pub(crate) fn new(address: SocketAddr, requests: Vec<Vec<u8>>, expected: &'static str) -> Self {
        Self {
            address,
            requests,
            connections: Vec::new(),
            expected,
        }
    }

    /// Makes `calls` calls, shared among the connections, one at a time on each. Answers how long each took.
    pub(crate) async fn run(&mut self, calls: usize) -> Result<Vec<Duration>> {
        if self.connections.is_empty() {
            for _ in &self.requests {
                self.connections.push(Connection::open(self.address).await?);
            }
        }
        let share = calls / self.requests.len();
        let expected = self.expected;
        let running = self.connections.iter_mut().zip(&self.requests).map(
            |(connection, request)| async move {
                let mut times = Vec::with_capacity(share);
                for _ in 0..share {
                    let begun = Instant::now();
                    let answer = connection.call(request).await?;
                    times.push(begun.elapsed());
                    answer.check(expected)?;
                }
                anyhow::Ok(times)
            },
        );
        Ok(try_join_all(running).await?.concat())
    }
}

/// The value below which so many of 1,000 lie, exactly. The order of `times` is changed.
pub(crate) fn permille(times: &mut [Duration], rank: usize) -> Result<Duration> {
    times.sort_unstable();
    let place = (times.len() * rank).div_ceil(1000).saturating_sub(1);
    times.get(place).copied().context("nothing was measured")
}

/// A kept connection.
pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// One answer, where it was read.
pub(crate) struct Answer<'a> {
    /// Status line and headers.
    pub(crate) head: &'a str,
    body: &'a [u8],
}

impl Answer<'_> {
    /// A header, if it is there.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(self.head, name)
    }

    /// Fails unless it is a success that contains `expected`.
    pub(crate) fn check(&self, expected: &str) -> Result<()> {
        let good = self.head.starts_with("HTTP/1.1 2")
            && (expected.is_empty() || find(self.body, expected.as_bytes()).is_some())
            && find(self.body, b"\"isError\":true").is_none();
        if !good {
            bail!(
                "an answer is not what was expected: {}{}",
                self.head,
                String::from_utf8_lossy(self.body)
            );
        }
        Ok(())
    }
}

impl Connection {
    /// Connects.
    pub(crate) async fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            buffer: Vec::with_capacity(64 * 1024),
        })
    }

    /// Sends a request and reads the whole answer.
    pub(crate) async fn call(&mut self, request: &[u8]) -> Result<Answer<'_>> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        let end = loop {
            if let Some(end) = find(&self.buffer, b"\r\n\r\n") {
                break end + 4;
            }
            self.more().await?;
        };
        let head = std::str::from_utf8(&self.buffer[..end])?;
        let length: usize = header(head, "content-length")
            .with_context(|| format!("no length in {head}"))?
            .parse()?;
        while self.buffer.len() < end + length {
            self.more().await?;
        }
        let (head, rest) = self.buffer.split_at(end);
        Ok(Answer {
            head: std::str::from_utf8(head)?,
            body: &rest[..length],
        })
    }

    async fn more(&mut self) -> Result<()> {
        ensure!(
            self.stream.read_buf(&mut self.buffer).await? > 0,
            "the server closed the connection after {:?}",
            String::from_utf8_lossy(&self.buffer)
        );
        Ok(())
    }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(other, _)| other.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.trim())
}

/// Where `part` begins in `text`.
pub(crate) fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}
