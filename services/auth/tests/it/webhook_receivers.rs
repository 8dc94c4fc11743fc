//! Receivers of webhooks that behave badly, on this machine.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use portolan_net::egress::{AllowedDestination, EgressPolicy};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// How a receiver answers.
#[derive(Debug, Clone)]
pub(crate) enum Manner {
    /// With this status and these header lines.
    Status(u16, &'static str),
    /// Not at all.
    Hangs,
    /// With a head that never ends, byte by byte.
    DripsHead,
    /// With 200 and a body that never ends, byte by byte.
    DripsBody,
    /// With 200 and more than is kept.
    Floods,
}

/// A message that came.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

impl Received {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    pub(crate) fn id(&self) -> &str {
        &self.headers["webhook-id"]
    }
}

/// A receiver. Its tasks end with the runtime of the test.
#[derive(Debug, Clone)]
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    manner: Arc<Mutex<Manner>>,
    received: Arc<Mutex<Vec<Received>>>,
}

impl Receiver {
    /// One that answers 204.
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let receiver = Self {
            address: listener.local_addr().unwrap(),
            manner: Arc::new(Mutex::new(Manner::Status(204, ""))),
            received: Arc::default(),
        };
        let own = receiver.clone();
        #[expect(clippy::disallowed_methods, reason = "it ends with the test's runtime")]
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let own = own.clone();
                #[expect(clippy::disallowed_methods, reason = "it ends with the test's runtime")]
                tokio::spawn(async move { own.serve(stream).await });
            }
        });
        receiver
    }

    /// A policy that lets the service call these.
    pub(crate) fn policy(receivers: &[&Self]) -> EgressPolicy {
        let allow = receivers
            .iter()
            .map(|one| AllowedDestination::address(one.address.ip(), one.address.port()));
        EgressPolicy {
            allow: allow.collect(),
            ..EgressPolicy::default()
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    pub(crate) fn now(&self, manner: Manner) {
        *self.manner.lock().unwrap() = manner;
    }

    /// Everything that came since the last call.
    pub(crate) fn take(&self) -> Vec<Received> {
        std::mem::take(&mut self.received.lock().unwrap())
    }

    /// The only message that came since the last call.
    pub(crate) fn one(&self) -> Received {
        let mut all = self.take();
        assert_eq!(all.len(), 1, "{all:?}");
        all.remove(0)
    }

    async fn serve(&self, mut stream: TcpStream) {
        let Some(received) = read(&mut stream).await else {
            return;
        };
        self.received.lock().unwrap().push(received);
        let manner = self.manner.lock().unwrap().clone();
        match manner {
            Manner::Status(status, lines) => {
                let head = format!(
                    "HTTP/1.1 {status} x\r\n{lines}content-length: 2\r\nconnection: close\r\n\r\nok"
                );
                let head = if status == 204 {
                    "HTTP/1.1 204 x\r\nconnection: close\r\n\r\n".to_owned()
                } else {
                    head
                };
                let _ = stream.write_all(head.as_bytes()).await;
            }
            Manner::Hangs => {
                let mut rest = [0; 1];
                // Until the service gives up and closes.
                let _ = stream.read(&mut rest).await;
            }
            Manner::DripsHead => drip(&mut stream, "HTTP/1.1 200 OK\r\nx-slow: ").await,
            Manner::DripsBody => {
                let head = "HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\nbegins";
                drip(&mut stream, head).await;
            }
            Manner::Floods => {
                let body = "x".repeat(100_000);
                let head = "HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n";
                let _ = stream.write_all(head.as_bytes()).await;
                let _ = stream.write_all(body.as_bytes()).await;
            }
        }
    }
}

/// Sends a beginning, then a byte now and then until the peer closes.
async fn drip(stream: &mut TcpStream, beginning: &str) {
    if stream.write_all(beginning.as_bytes()).await.is_err() {
        return;
    }
    let mut pace = tokio::time::interval(Duration::from_millis(20));
    loop {
        pace.tick().await;
        if stream.write_all(b"a").await.is_err() {
            return;
        }
    }
}

async fn read(stream: &mut TcpStream) -> Option<Received> {
    let mut bytes = Vec::new();
    loop {
        let mut part = [0; 4096];
        let count = stream.read(&mut part).await.ok()?;
        if count == 0 {
            return None;
        }
        bytes.extend_from_slice(&part[..count]);
        let text = String::from_utf8(bytes.clone()).ok()?;
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let headers: BTreeMap<String, String> = head
            .lines()
            .skip(1)
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let length: usize = headers.get("content-length")?.parse().ok()?;
        if body.len() == length {
            return Some(Received {
                headers,
                body: body.to_owned(),
            });
        }
    }
}
