//! The database is lost in the middle of a request (AUTH-T3, AUTH-T7, AUTH-4.7; CASE-63, CASE-128):
//! no response calls a valid code or token invalid, and a retry succeeds.

use std::{
    collections::BTreeSet,
    net::SocketAddr,
    sync::atomic::{AtomicBool, Ordering},
};

use http::{StatusCode, header};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};

use crate::{
    database::Database,
    harness::{Node, Reply, Scene, request},
};

/// The fate of the connections to the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Whole,
    /// The next commit does not arrive, and from then on the state is [`Fate::Gone`].
    GoneBeforeCommit,
    /// The next commit is carried out, and its connection breaks before the response. New
    /// connections are [`Fate::Whole`].
    CutAfterCommit,
    /// Every connection is broken, and each new one breaks.
    Gone,
}

/// A proxy to the database, which the test can interrupt.
struct Wire {
    address: SocketAddr,
    fate: watch::Sender<Fate>,
    _carriers: JoinSet<()>,
}

impl Wire {
    async fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let fate = watch::Sender::new(Fate::Whole);
        let mut carriers = JoinSet::new();
        let fates = fate.clone();
        carriers.spawn(async move {
            let mut lines = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                if *fates.borrow() != Fate::Gone {
                    lines.spawn(carry(client, target, fates.clone()));
                }
                while lines.try_join_next().is_some() {}
            }
        });
        Self {
            address,
            fate,
            _carriers: carriers,
        }
    }

    fn set(&self, fate: Fate) {
        self.fate.send_replace(fate);
    }

    /// Asserts that the proxy itself reached this state.
    fn assert_came_to(&self, fate: Fate) {
        assert_eq!(*self.fate.borrow(), fate);
    }
}

/// The messages of a node to the database on one connection.
#[derive(Default)]
struct Said {
    /// The bytes of an incomplete message.
    rest: Vec<u8>,
    /// Names of prepared statements that write and are a transaction each.
    writing: BTreeSet<Vec<u8>>,
}

impl Said {
    /// Returns true if these bytes contain a commit, or a rotation, which commits by itself.
    fn commits(&mut self, bytes: &[u8]) -> bool {
        self.rest.extend_from_slice(bytes);
        let mut commits = false;
        while let Some((kind, body)) = self.message() {
            let mut parts = body.split(|byte| *byte == 0);
            let (first, second) = (parts.next().unwrap(), parts.next().unwrap_or_default());
            match kind {
                b'Q' => commits |= first == b"COMMIT",
                // Prepare has a name and a text. Bind has a portal and the name.
                b'P' if second
                    .windows(20)
                    .any(|word| word == b"rotate_refresh_token") =>
                {
                    self.writing.insert(first.to_vec());
                }
                b'B' => commits |= self.writing.contains(second),
                _ => {}
            }
        }
        commits
    }

    /// The next message: its kind, 0 for those before the session begins, and its body.
    fn message(&mut self) -> Option<(u8, Vec<u8>)> {
        // No kind is 0, and every message without a kind is short enough that its length begins
        // with 0.
        let head = usize::from(*self.rest.first()? != 0);
        let length = self.rest.get(head..head + 4)?.try_into().unwrap();
        let end = head + usize::try_from(u32::from_be_bytes(length)).unwrap();
        if self.rest.len() < end {
            return None;
        }
        let message: Vec<u8> = self.rest.drain(..end).collect();
        let kind = if head == 0 { 0 } else { message[0] };
        Some((kind, message[head + 4..].to_vec()))
    }
}

/// Forwards one connection until it breaks.
async fn carry(client: TcpStream, target: SocketAddr, fates: watch::Sender<Fate>) {
    let server = TcpStream::connect(target).await.unwrap();
    client.set_nodelay(true).unwrap();
    server.set_nodelay(true).unwrap();
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let commits = AtomicBool::new(false);
    let there = async {
        let mut buffer = vec![0; 64 * 1024];
        let mut said = Said::default();
        while let Ok(count @ 1..) = from_client.read(&mut buffer).await {
            let bytes = &buffer[..count];
            if said.commits(bytes) {
                let fate = *fates.borrow();
                if fate == Fate::GoneBeforeCommit {
                    fates.send_replace(Fate::Gone);
                    return;
                }
                commits.store(fate == Fate::CutAfterCommit, Ordering::Relaxed);
            }
            if to_server.write_all(bytes).await.is_err() {
                return;
            }
        }
    };
    let back = async {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(count @ 1..) = from_server.read(&mut buffer).await {
            if commits.load(Ordering::Relaxed) {
                fates.send_replace(Fate::Whole);
                return;
            }
            if to_client.write_all(&buffer[..count]).await.is_err() {
                return;
            }
        }
    };
    let mut fate = fates.subscribe();
    tokio::select! {
        () = there => {}
        () = back => {}
        _ = fate.wait_for(|fate| *fate == Fate::Gone) => {}
    }
}

/// A node that reaches the scene's database by a proxy of its own.
async fn on_a_wire(scene: &Scene) -> (Node, Wire) {
    let mut url: url::Url = scene.database.owner_url().parse().unwrap();
    let target = url.socket_addrs(|| Some(5432)).unwrap()[0];
    let wire = Wire::to(target).await;
    url.set_host(Some("127.0.0.1")).unwrap();
    url.set_port(Some(wire.address.port())).unwrap();
    let database = Database {
        owner_url: url.into(),
    };
    (Node::new(&database, &scene.node.clock).await, wire)
}

/// Asserts 503 with `Retry-After` and an OAuth error code.
fn assert_come_again(reply: &Reply, what: &str) {
    assert_eq!(
        reply.refusal(),
        (503, "temporarily_unavailable".to_owned()),
        "AUTH-T7, {what}"
    );
    assert!(
        reply.header(header::RETRY_AFTER).parse::<u32>().is_ok(),
        "{what}"
    );
}

fn good(reply: &Reply, what: &str) -> Value {
    assert_eq!(reply.status, StatusCode::OK, "{what}: {}", reply.text);
    reply.json()
}

fn refresh_token(tokens: &Value) -> String {
    tokens["refresh_token"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn cases_63_and_128_a_database_lost_between_update_and_commit_is_503_and_the_retry_works() {
    let mut scene = Scene::new().await;
    let (node, wire) = on_a_wire(&scene).await;
    let client = scene.client.clone();

    let code = scene.ann.code(&request(&client)).await;
    wire.set(Fate::GoneBeforeCommit);
    assert_come_again(&node.redeem(&client, &code).await, "a code");
    wire.assert_came_to(Fate::Gone);
    assert_come_again(&node.redeem(&client, &code).await, "a code, still gone");
    wire.set(Fate::Whole);
    let tokens = good(&node.redeem(&client, &code).await, "the code again");

    let refresh = refresh_token(&tokens);
    wire.set(Fate::GoneBeforeCommit);
    assert_come_again(&node.refresh(&client, &refresh).await, "a refresh token");
    wire.assert_came_to(Fate::Gone);
    assert_come_again(
        &node.refresh(&client, &refresh).await,
        "a refresh token, still gone",
    );
    wire.set(Fate::Whole);
    let tokens = good(&node.refresh(&client, &refresh).await, "the token again");
    let head = refresh_token(&tokens);
    assert_ne!(head, refresh, "it was turned over once");
    good(&node.refresh(&client, &head).await, "and goes on");
}

#[tokio::test]
async fn t7_a_commit_whose_answer_was_lost_costs_nobody_a_code_or_a_token() {
    let mut scene = Scene::new().await;
    let (node, wire) = on_a_wire(&scene).await;
    let client = scene.client.clone();

    let code = scene.ann.code(&request(&client)).await;
    wire.set(Fate::CutAfterCommit);
    let tokens = good(
        &node.redeem(&client, &code).await,
        "the row says that this attempt went through",
    );
    wire.assert_came_to(Fate::Whole);

    let refresh = refresh_token(&tokens);
    wire.set(Fate::CutAfterCommit);
    assert_come_again(&node.refresh(&client, &refresh).await, "a refresh token");
    wire.assert_came_to(Fate::Whole);
    let tokens = good(
        &node.refresh(&client, &refresh).await,
        "K9: the lost answer is given again",
    );
    good(
        &node.refresh(&client, &refresh_token(&tokens)).await,
        "and goes on",
    );
}
