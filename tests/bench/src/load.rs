//! The load: the same bytes again and again on kept connections, as cheaply as can be, every answer looked at.

use std::net::SocketAddr;

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
    expected: Option<&'static str>,
}

impl Load {
    /// One connection for each request.
    pub(crate) fn new(
        address: SocketAddr,
        requests: Vec<Vec<u8>>,
        expected: Option<&'static str>,
    ) -> Self {
        Self {
            address,
            requests,
            connections: Vec::new(),
            expected,
        }
    }

    /// Makes `calls` calls, shared among the connections, one at a time on each.
    pub(crate) async fn run(&mut self, calls: usize) -> Result<()> {
        if self.connections.is_empty() {
            for _ in &self.requests {
                self.connections.push(Connection::open(self.address).await?);
            }
        }
        let share = calls / self.requests.len();
        let expected = self.expected;
        let running = self.connections.iter_mut().zip(&self.requests).map(
            |(connection, request)| async move {
                for _ in 0..share {
                    connection.call(request, expected).await?;
                }
                anyhow::Ok(())
            },
        );
        try_join_all(running).await?;
        Ok(())
    }
}

struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    async fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            buffer: Vec::with_capacity(64 * 1024),
        })
    }

    async fn call(&mut self, request: &[u8], expected: Option<&str>) -> Result<()> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        let end = loop {
            if let Some(end) = find(&self.buffer, b"\r\n\r\n") {
                break end + 4;
            }
            ensure!(
                self.stream.read_buf(&mut self.buffer).await? > 0,
                "the server closed the connection"
            );
        };
        let head = std::str::from_utf8(&self.buffer[..end])?;
        let length: usize = head
            .lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
            .with_context(|| format!("no length in {head}"))?
            .1
            .trim()
            .parse()?;
        let good = head.starts_with("HTTP/1.1 200");
        while self.buffer.len() < end + length {
            ensure!(
                self.stream.read_buf(&mut self.buffer).await? > 0,
                "the server closed the connection"
            );
        }
        let body = &self.buffer[end..end + length];
        let as_expected = expected.is_none_or(|text| find(body, text.as_bytes()).is_some());
        if !good || !as_expected || find(body, b"\"isError\":true").is_some() {
            bail!(
                "an answer is not what was expected: {}",
                String::from_utf8_lossy(&self.buffer)
            );
        }
        Ok(())
    }
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}
