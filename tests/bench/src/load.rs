//! The load: the same bytes again and again on kept connections, as cheaply as possible, with every
//! answer checked. A long call is answered with an event stream: it is read to its end, and
//! counted.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use futures_util::future::try_join_all;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A load on one server. Connections are opened with the first run and kept.
pub(crate) struct Load {
    address: SocketAddr,
    requests: Vec<Vec<u8>>,
    connections: Vec<Connection>,
    /// The text that every answer must contain.
    expected: &'static str,
    streamed: usize,
}

impl Load {
    /// One connection for each request.
    pub(crate) fn new(address: SocketAddr, requests: Vec<Vec<u8>>, expected: &'static str) -> Self {
        Self {
            address,
            requests,
            connections: Vec::new(),
            expected,
            streamed: 0,
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
                let mut streamed = 0;
                for _ in 0..share {
                    let begun = Instant::now();
                    let answer = connection.call(request).await?;
                    times.push(begun.elapsed());
                    answer.check(expected)?;
                    streamed += usize::from(answer.is_stream());
                }
                anyhow::Ok((times, streamed))
            },
        );
        let mut all = Vec::with_capacity(calls);
        for (times, streamed) in try_join_all(running).await? {
            all.extend(times);
            self.streamed += streamed;
        }
        Ok(all)
    }

    /// How many of all answers so far came as an event stream.
    pub(crate) fn streamed(&self) -> usize {
        self.streamed
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
    /// A body that came in chunks, put together.
    whole: Vec<u8>,
}

/// One answer, where it was read.
pub(crate) struct Answer<'a> {
    /// Status line and headers.
    pub(crate) head: &'a str,
    /// All of it, put together if it came in chunks.
    pub(crate) body: &'a [u8],
}

impl Answer<'_> {
    /// A header, if it is there.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(self.head, name)
    }

    /// Was it answered with an event stream?
    pub(crate) fn is_stream(&self) -> bool {
        self.header("content-type")
            .is_some_and(|kind| kind.starts_with("text/event-stream"))
    }

    /// Fails unless it is a success that contains `expected`.
    pub(crate) fn check(&self, expected: &str) -> Result<()> {
        let message = if self.is_stream() {
            response_among(self.body)?
        } else {
            self.body
        };
        let good = self.head.starts_with("HTTP/1.1 2")
            && (expected.is_empty() || find(message, expected.as_bytes()).is_some())
            && find(message, b"\"isError\":true").is_none();
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

/// The members that identify a JSON-RPC response.
#[derive(Deserialize)]
struct Response<'a> {
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// The event of a stream that is the answer; the others are progress, or only keep the stream
/// alive.
fn response_among(events: &[u8]) -> Result<&[u8]> {
    events
        .split(|byte| *byte == b'\n')
        .filter_map(|line| line.strip_prefix(b"data:"))
        .find(|data| {
            serde_json::from_slice::<Response<'_>>(data)
                .is_ok_and(|response| response.result.is_some() || response.error.is_some())
        })
        .with_context(|| format!("no answer among {}", String::from_utf8_lossy(events)))
}

impl Connection {
    /// Connects.
    pub(crate) async fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            buffer: Vec::with_capacity(64 * 1024),
            whole: Vec::new(),
        })
    }

    /// Sends a request and reads the whole answer.
    pub(crate) async fn call(&mut self, request: &[u8]) -> Result<Answer<'_>> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        let end = self.line_end(0, b"\r\n\r\n").await?;
        let head = std::str::from_utf8(&self.buffer[..end])?;
        if let Some(length) = header(head, "content-length") {
            let length: usize = length.parse()?;
            self.until(end + length).await?;
            let (head, rest) = self.buffer.split_at(end);
            return Ok(Answer {
                head: std::str::from_utf8(head)?,
                body: &rest[..length],
            });
        }
        ensure!(
            header(head, "transfer-encoding") == Some("chunked"),
            "no length in {head}"
        );
        self.read_chunks(end).await?;
        Ok(Answer {
            head: std::str::from_utf8(&self.buffer[..end])?,
            body: &self.whole,
        })
    }

    /// Reads chunks from this place of the buffer to the last one.
    async fn read_chunks(&mut self, mut at: usize) -> Result<()> {
        self.whole.clear();
        loop {
            let begin = self.line_end(at, b"\r\n").await?;
            let line = std::str::from_utf8(&self.buffer[at..begin])?;
            let digits = line.split(';').next().unwrap_or_default().trim();
            let length = usize::from_str_radix(digits, 16)
                .with_context(|| format!("{line:?} is not the length of a chunk"))?;
            // No server sends trailers here: an empty line follows the last chunk as it does any
            // other.
            at = begin + length + 2;
            self.until(at).await?;
            if length == 0 {
                return Ok(());
            }
            self.whole
                .extend_from_slice(&self.buffer[begin..begin + length]);
        }
    }

    /// Where what ends with `mark` and begins at this place of the buffer is over.
    async fn line_end(&mut self, from: usize, mark: &[u8]) -> Result<usize> {
        loop {
            if let Some(end) = find(&self.buffer[from..], mark) {
                return Ok(from + end + mark.len());
            }
            self.more().await?;
        }
    }

    /// Reads until the buffer is filled up to this place.
    async fn until(&mut self, place: usize) -> Result<()> {
        while self.buffer.len() < place {
            self.more().await?;
        }
        Ok(())
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

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    async fn answered(pieces: &'static [&'static str]) -> Result<Connection> {
        let socket = TcpListener::bind("127.0.0.1:0").await?;
        let connection = Connection::open(socket.local_addr()?).await?;
        let (mut server, _) = socket.accept().await?;
        server.set_nodelay(true)?;
        for piece in pieces {
            server.write_all(piece.as_bytes()).await?;
        }
        Ok(connection)
    }

    #[tokio::test]
    async fn an_answer_that_comes_as_a_stream_is_its_response_event() -> Result<()> {
        let mut connection = answered(&[
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
            "6\r\nid: 1\n\r\n7;x=y\r\ndata: \n\r\n1\r\n\n\r\n",
            "50\r\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"text\":\"NO\"}}\r\n",
            "2\r\n\n\n\r\n2b\r\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\"\r\n7\r\n:\"BY\"}}\r\n2\r\n\n\n\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nOK",
        ])
        .await?;
        let answer = connection.call(b"?").await?;
        assert!(answer.is_stream());
        answer.check("BY")?;
        assert!(answer.check("NO").is_err(), "only the answer counts");
        Ok(())
    }

    #[tokio::test]
    async fn an_answer_that_is_one_message_is_no_stream() -> Result<()> {
        let mut connection =
            answered(&["HTTP/1.1 200 OK\r\ncontent-le", "ngth: 4\r\n\r\nNO", "BY"]).await?;
        let answer = connection.call(b"?").await?;
        assert!(!answer.is_stream());
        answer.check("BY")?;
        assert!(answer.check("NOT").is_err());
        Ok(())
    }

    #[test]
    fn a_stream_without_a_response_is_no_answer() -> Result<()> {
        let events = b"data: {\"method\":\"notifications/progress\"}\n\n: alive\n\n";
        assert!(response_among(events).is_err());
        let failed = b"data:{\"id\":1,\"error\":{\"code\":1}}\n\n";
        assert_eq!(response_among(failed)?, &failed[5..failed.len() - 2]);
        Ok(())
    }
}
