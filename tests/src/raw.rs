//! HTTP by hand: requests that no client would make, byte by byte, and every answer that comes back.

use std::{convert::Infallible, net::SocketAddr, time::Duration};

use anyhow::{Context, Result, bail};
use reqwest::StatusCode;
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    time::{sleep, timeout},
};
use url::{Position, Url};

use crate::mcp::McpClient;

/// Longest time that a test waits for an answer, or for the end of the connection.
const PATIENCE: Duration = Duration::from_secs(60);

/// Headers of a client that its requests by hand have too.
const OWN: [&str; 5] = [
    "authorization",
    "mcp-session-id",
    "mcp-protocol-version",
    "mcp-method",
    "mcp-name",
];

/// A connection on which the test writes every byte. Dropping it cuts it.
#[derive(Debug)]
pub struct RawHttp {
    from: BufReader<OwnedReadHalf>,
    to: OwnedWriteHalf,
}

/// An answer that came whole.
#[derive(Debug, Clone)]
pub struct RawAnswer {
    /// Its status.
    pub status: StatusCode,
    /// Status line and headers, as they came.
    pub head: String,
    /// The body, without its framing.
    pub body: Vec<u8>,
}

impl RawAnswer {
    /// A header, if it is there.
    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }

    /// The body as JSON, `null` if it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The JSON-RPC error code, or 0.
    pub fn code(&self) -> i64 {
        self.json()["error"]["code"].as_i64().unwrap_or(0)
    }
}

/// How much of a request was sent, and the answer.
#[derive(Debug, Clone)]
pub struct Said {
    /// Bytes that the other end, or the kernel for it, has taken.
    pub bytes: usize,
    /// The answer; `None` if the connection ended without one.
    pub answer: Option<RawAnswer>,
}

impl RawHttp {
    /// To where `client` sends its requests.
    pub async fn to(client: &McpClient) -> Result<Self> {
        Self::open(address(client)?).await
    }

    /// To this address.
    pub async fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (from, to) = stream.into_split();
        Ok(Self {
            from: BufReader::new(from),
            to,
        })
    }

    /// Says this.
    pub async fn say(&mut self, bytes: impl AsRef<[u8]>) -> Result<()> {
        Ok(self.to.write_all(bytes.as_ref()).await?)
    }

    /// The next answer; `None` if the connection ends without one.
    pub async fn answer(&mut self) -> Result<Option<RawAnswer>> {
        timeout(PATIENCE, read(&mut self.from))
            .await
            .context("neither an answer nor the end of the connection")?
    }

    /// Every answer up to the end of the connection.
    pub async fn answers(&mut self) -> Result<Vec<RawAnswer>> {
        let mut answers = Vec::new();
        while let Some(answer) = self.answer().await? {
            answers.push(answer);
        }
        Ok(answers)
    }

    /// Says `piece` again and again, `pause` apart, up to `most` bytes, until there is an answer or the connection ends.
    pub async fn go_on(&mut self, piece: &[u8], pause: Duration, most: usize) -> Result<Said> {
        let Self { from, to } = self;
        let mut bytes = 0;
        let answer = tokio::select! {
            answer = timeout(PATIENCE, read(from)) => answer.context("neither an answer nor the end of the connection")??,
            never = repeat(to, piece, pause, most, &mut bytes) => match never {},
        };
        Ok(Said { bytes, answer })
    }
}

async fn repeat(
    to: &mut OwnedWriteHalf,
    piece: &[u8],
    pause: Duration,
    most: usize,
    bytes: &mut usize,
) -> Infallible {
    // An error here is the end of the connection, which the reader notices too.
    while *bytes < most && to.write_all(piece).await.is_ok() {
        *bytes += piece.len();
        sleep(pause).await;
    }
    std::future::pending().await
}

/// A connection that breaks before an answer is whole has given none.
async fn read(from: &mut BufReader<OwnedReadHalf>) -> Result<Option<RawAnswer>> {
    let mut head = String::new();
    loop {
        let before = head.len();
        match from.read_line(&mut head).await {
            Ok(0) | Err(_) => return Ok(None),
            Ok(_) if head[before..].trim_end().is_empty() => break,
            Ok(_) => {}
        }
    }
    let status: StatusCode = head
        .split_whitespace()
        .nth(1)
        .with_context(|| format!("no status in {head:?}"))?
        .parse()?;
    let mut body = Vec::new();
    let whole = if let Some(length) = header(&head, "content-length") {
        let length: u64 = length.parse()?;
        let got = (&mut *from).take(length).read_to_end(&mut body).await;
        got.is_ok_and(|got| got as u64 == length)
    } else if header(&head, "transfer-encoding").is_some() {
        read_chunks(from, &mut body).await?
    } else if status == StatusCode::NO_CONTENT || status.is_informational() {
        true
    } else {
        from.read_to_end(&mut body).await.is_ok()
    };
    Ok(whole.then_some(RawAnswer { status, head, body }))
}

/// RFC 9112 §7.1. False if the connection broke in it.
async fn read_chunks(from: &mut BufReader<OwnedReadHalf>, body: &mut Vec<u8>) -> Result<bool> {
    loop {
        let mut line = String::new();
        if !matches!(from.read_line(&mut line).await, Ok(1..)) {
            return Ok(false);
        }
        let size = line.split(';').next().unwrap_or_default().trim();
        let Ok(size) = u64::from_str_radix(size, 16) else {
            bail!("{line:?} is not the size of a chunk");
        };
        let got = (&mut *from).take(size).read_to_end(body).await;
        let mut end = String::new();
        let ended = from.read_line(&mut end).await;
        if !got.is_ok_and(|got| got as u64 == size) || !matches!(ended, Ok(1..)) {
            return Ok(false);
        }
        if size == 0 {
            return Ok(true);
        }
    }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().skip(1).find_map(|line| {
        let (own, value) = line.split_once(':')?;
        own.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

/// Where `client` sends its requests.
pub fn address(client: &McpClient) -> Result<SocketAddr> {
    let url: Url = client.url.parse()?;
    let mut addresses = url.socket_addrs(|| None)?.into_iter();
    addresses.next().context("an address")
}

/// The host that `client` asks for.
pub fn host(client: &McpClient) -> Result<String> {
    let url: Url = client.url.parse()?;
    let own = &url[Position::BeforeHost..Position::AfterPort];
    Ok(client.header("host").unwrap_or(own).to_owned())
}

/// The head of a request of `client` without its end, and without the lines that frame a body.
pub fn head(client: &McpClient, verb: &str) -> Result<String> {
    let url: Url = client.url.parse()?;
    let (path, host) = (url.path(), host(client)?);
    let mut head = format!(
        "{verb} {path} HTTP/1.1\r\nhost: {host}\r\naccept: application/json, text/event-stream\r\ncontent-type: application/json\r\n"
    );
    for name in OWN {
        if let Some(value) = client.header(name) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
    }
    Ok(head)
}

/// A whole POST of `client`.
pub fn post(client: &McpClient, message: &Value) -> Result<String> {
    let body = message.to_string();
    let head = head(client, "POST")?;
    Ok(format!(
        "{head}content-length: {}\r\n\r\n{body}",
        body.len()
    ))
}

/// Sends this on a connection of its own. The first answer, if there is one.
pub async fn ask(client: &McpClient, request: impl AsRef<[u8]>) -> Result<Option<RawAnswer>> {
    let mut connection = RawHttp::to(client).await?;
    // A request beyond a bound may be cut while it is sent, and is answered all the same.
    let _cut = connection.say(request).await;
    connection.answer().await
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn every_framing_of_an_answer_is_read_and_a_broken_one_is_none() -> Result<()> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let mut raw = RawHttp::open(listener.local_addr()?).await?;
        let (mut other, _) = listener.accept().await?;
        other
            .write_all(
                b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab\
                  HTTP/1.1 204 No Content\r\n\r\n\
                  HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\nabc\r\n1\r\nd\r\n0\r\n\r\n\
                  HTTP/1.1 400 Bad Request\r\ncontent-length: 9\r\n\r\nbroken",
            )
            .await?;
        drop(other);
        let got: Vec<_> = raw
            .answers()
            .await?
            .into_iter()
            .map(|answer| (answer.status.as_u16(), answer.body))
            .collect();
        assert_eq!(
            got,
            [
                (200, b"ab".to_vec()),
                (204, Vec::new()),
                (200, b"abcd".to_vec())
            ]
        );
        Ok(())
    }
}
