//! Messages over publish and subscribe: one connection per process, one channel per node
//! (STREAM-8).

pub(super) mod text;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use redis::{AsyncConnectionConfig, PushInfo, PushKind, Value, aio::MultiplexedConnection};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use self::text::parse;
use super::{
    connection::{RESPONSE, RedisServer, classify},
    shards::Shards,
};
use crate::{
    store::{NodeId, NodeMessage, Result, StoreError},
    subscribers::Subscribers,
};

/// Interval at which a silent connection is checked with `PING`.
const PING: Duration = Duration::from_secs(5);
/// Maximum pause between attempts to connect.
const PAUSE: Duration = Duration::from_millis(500);

/// Request to subscribe for a node, with the channel for its result.
pub(super) type Wish = (NodeId, oneshot::Sender<Result<()>>);

/// Keeps the subscriptions of the nodes in `subscribers` until `stop`.
pub(super) async fn subscribe(
    shards: Arc<Shards>,
    subscribers: Arc<Subscribers>,
    mut wishes: mpsc::Receiver<Wish>,
    stop: CancellationToken,
) {
    let mut pause = Duration::from_millis(10);
    let mut state = Hearing::default();
    loop {
        let listen = async {
            // In a cluster, every server delivers messages that were published on any of them.
            match shards.next() {
                Some(server) => listen(&server, &subscribers, &mut wishes, &mut state).await,
                None => Err(StoreError::Down("no server is known".to_owned())),
            }
        };
        let lived = tokio::select! {
            () = stop.cancelled() => return,
            lived = listen => lived,
        };
        match lived {
            Ok(()) => return,
            Err(error) => {
                subscribers.messages(false);
                if state.lost(&error) {
                    pause = Duration::from_millis(10);
                }
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
        pause = (pause * 2).min(PAUSE);
    }
}

/// State of the subscriber. Only a change is logged, because it retries twice a second during an
/// outage.
#[derive(Debug, Default)]
struct Hearing {
    /// Start of the outage; `None` before the first connection.
    deaf_since: Option<Instant>,
    messages: bool,
}

impl Hearing {
    fn connected(&mut self) {
        self.messages = true;
        if let Some(since) = self.deaf_since.take() {
            let seconds = since.elapsed().as_secs_f64();
            tracing::info!(seconds, "doorbells are heard again");
        }
    }

    /// Records a lost connection. Returns whether it worked until now.
    fn lost(&mut self, error: &StoreError) -> bool {
        let did_hear = std::mem::take(&mut self.messages);
        if self.deaf_since.is_none() {
            self.deaf_since = Some(Instant::now());
            tracing::warn!(%error, "the subscriber of doorbells lost its connection");
        } else {
            tracing::debug!(%error, "still no doorbells");
        }
        did_hear
    }
}

/// Runs one connection. Returns without an error if no further request can come.
async fn listen(
    server: &RedisServer,
    subscribers: &Arc<Subscribers>,
    wishes: &mut mpsc::Receiver<Wish>,
    state: &mut Hearing,
) -> Result<()> {
    let lost = Arc::new(Notify::new());
    let config = AsyncConnectionConfig::new().set_response_timeout(Some(RESPONSE));
    let config = config.set_push_sender({
        let (subscribers, lost) = (Arc::clone(subscribers), Arc::clone(&lost));
        let channels = server.common.keys.channels().into_bytes();
        move |push: PushInfo| {
            match push.kind {
                PushKind::Message => hear(&subscribers, &channels, &push.data),
                PushKind::Disconnection => lost.notify_one(),
                _ => {}
            }
            Ok::<(), std::convert::Infallible>(())
        }
    });
    let mut connected = server.connect(config).await?;
    let connection = &mut connected.connection;
    for node in subscribers.nodes() {
        open(server, connection, node).await?;
    }
    state.connected();
    subscribers.messages(true);
    // Messages that were published without a subscription are lost.
    subscribers.resync();
    loop {
        tokio::select! {
            () = lost.notified() => {
                return Err(StoreError::Down("connection closed".to_owned()));
            }
            wish = wishes.recv() => {
                let Some((node, done)) = wish else { return Ok(()) };
                let opened = open(server, connection, node).await;
                let failed = opened.clone().err();
                let _ = done.send(opened);
                if let Some(error) = failed {
                    return Err(error);
                }
            }
            () = tokio::time::sleep(PING) => {
                within(connection.send_packed_command(&redis::cmd("PING"))).await?;
            }
        }
    }
}

async fn open(
    server: &RedisServer,
    connection: &mut MultiplexedConnection,
    node: NodeId,
) -> Result<()> {
    within(connection.subscribe(server.common.keys.channel(node))).await
}

async fn within<T>(work: impl Future<Output = redis::RedisResult<T>>) -> Result<T> {
    match tokio::time::timeout(RESPONSE, work).await {
        Ok(done) => done.map_err(|error| classify(&error)),
        Err(_) => Err(StoreError::Down("no answer in time".to_owned())),
    }
}

/// Passes a message to its node. Never waits.
fn hear(subscribers: &Subscribers, channels: &[u8], message: &[Value]) {
    let [Value::BulkString(channel), Value::BulkString(payload)] = message else {
        return;
    };
    let node = channel
        .strip_prefix(channels)
        .and_then(|name| name.try_into().ok().map(NodeId));
    match (node, parse(payload)) {
        (Some(node), Some(message)) => subscribers.notify(node, message),
        (Some(node), None) => {
            tracing::warn!("a doorbell that cannot be read");
            subscribers.notify(node, NodeMessage::Resync);
        }
        (None, _) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts log lines above `DEBUG`.
    #[derive(Default)]
    struct Lines(Arc<std::sync::atomic::AtomicUsize>);

    impl tracing::Subscriber for Lines {
        fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
            *metadata.level() <= tracing::Level::INFO
        }
        fn event(&self, _: &tracing::Event<'_>) {
            self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
        fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
            tracing::span::Id::from_u64(1)
        }
        fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
        fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
        fn enter(&self, _: &tracing::span::Id) {}
        fn exit(&self, _: &tracing::span::Id) {}
    }

    #[test]
    fn a_store_that_stays_away_is_one_line_of_the_log_and_its_return_another() {
        let lines = Lines::default();
        let count = Arc::clone(&lines.0);
        let count = || count.load(std::sync::atomic::Ordering::Relaxed);
        tracing::subscriber::with_default(lines, || {
            let error = StoreError::Down("away".to_owned());
            let mut revocation_freshness = Hearing::default();
            revocation_freshness.connected();
            assert_eq!(count(), 0, "the first connection is no news");
            for round in 1..=3 {
                assert!(revocation_freshness.lost(&error));
                for _ in 0..20 {
                    assert!(!revocation_freshness.lost(&error));
                }
                assert_eq!(count(), 2 * round - 1);
                revocation_freshness.connected();
                assert_eq!(count(), 2 * round);
            }
        });
    }
}
