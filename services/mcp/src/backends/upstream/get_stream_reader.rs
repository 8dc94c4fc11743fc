//! The reader of the GET stream of a session with an upstream server (MCP-X-23).

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use portolan_keys::digest;
use portolan_model::{Digest, id::UserId};
use portolan_protocol::method::Method;
use portolan_upstream::{Connection, ExchangeEvent, Legacy, Standing, UpstreamError, unavailable};
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, MissedTickBehavior, interval, sleep, timeout},
};
use uuid::Uuid;

use crate::{
    backends::{
        services::Backends,
        upstream::{
            conversation::LONGEST_CALL,
            get_streams::{Reader, Subscriber, UpstreamGetStreams, lock},
            refresh::request_refresh,
        },
    },
    catalog::upstream::UpstreamSource,
};

/// How long a call waits for the stream before it begins without it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);

/// The longest silence of a stream.
pub(crate) const SILENCE: Duration = Duration::from_secs(900);

/// A stream without calls is closed after `LINGER`. A server without streams is tried again after
/// `ASK_AGAIN`.
pub(crate) const LINGER: Duration = Duration::from_secs(30);

pub(crate) const ASK_AGAIN: Duration = Duration::from_secs(300);

pub(crate) const TICK: Duration = Duration::from_secs(5);

/// The pause before a broken stream is opened again.
pub(crate) const PAUSE: Duration = Duration::from_secs(1);

impl UpstreamGetStreams {
    /// Subscribes a call that is about to be made in this session.
    pub(crate) async fn subscribe(
        &self,
        state: &Backends,
        source: &Arc<UpstreamSource>,
        (person, account): (Option<UserId>, Option<Uuid>),
        legacy: &Legacy,
    ) -> Option<Subscriber> {
        let ticket = legacy.ticket();
        if !ticket.has_session() {
            return None;
        }
        let name = digest(format!("{} {}", source.place, ticket.to_text()).as_bytes());
        let (subscriber, is_new) = {
            let mut by_session = lock(&self.by_session);
            let known = by_session.get(&name).map(Arc::clone);
            let is_new = known.is_none();
            let reader = known.unwrap_or_else(|| {
                let reader = Arc::new(Reader {
                    calls: Mutex::default(),
                    known: watch::Sender::new(false),
                });
                by_session.insert(name, Arc::clone(&reader));
                reader
            });
            (reader.subscribe(), is_new)
        };
        if is_new {
            let reading = Reading {
                state: state.clone(),
                source: Arc::clone(source),
                person,
                account,
                legacy: legacy.clone(),
                reader: Arc::clone(&subscriber.reader),
                name,
            };
            state.tracker.spawn(reading.run());
        }
        let mut known = subscriber.reader.known.subscribe();
        let waited = timeout(PATIENCE, known.wait_for(|known| *known))
            .await
            .is_ok();
        if !waited {
            // Some servers send no response head before the first message: the next call does not
            // wait for it.
            subscriber.reader.known.send_replace(true);
        }
        Some(subscriber)
    }
}

pub(crate) struct Reading {
    state: Backends,
    source: Arc<UpstreamSource>,
    /// The person of the session.
    person: Option<UserId>,
    /// The account that began the session. The stream is not read with another one.
    account: Option<Uuid>,
    legacy: Legacy,
    reader: Arc<Reader>,
    name: Digest,
}

impl Reading {
    async fn run(self) {
        let stopping = self.state.stopping.clone();
        loop {
            let opened = tokio::select! {
                () = stopping.cancelled() => return,
                opened = self.open() => opened,
            };
            self.reader.known.send_replace(true);
            let left = match opened {
                Ok(Some((connection, standing))) => {
                    let linger = self.read(&connection, standing);
                    tokio::select! {
                        () = stopping.cancelled() => return,
                        () = linger => PAUSE,
                    }
                }
                Ok(None) => ASK_AGAIN,
                Err(error) => {
                    tracing::debug!(source.id = %self.source.id, reason = %error, "the stream beside a call is not there");
                    if matches!(error, UpstreamError::SessionGone) {
                        // The next call has another session.
                        lock(&self.state.get_streams.by_session).remove(&self.name);
                        return;
                    }
                    PAUSE
                }
            };
            if self.leave(left).await {
                return;
            }
        }
    }

    async fn open(&self) -> Result<Option<(Connection, Standing)>, UpstreamError> {
        let signed_in = async {
            let account = self.source.account(self.person)?;
            self.source
                .sign_in_for(&self.state, account, SILENCE, LONGEST_CALL)
                .await
        };
        // The call itself reports an unusable credential.
        let Ok(signed_in) = signed_in.await else {
            return Ok(None);
        };
        if signed_in.account() != self.account {
            return Err(UpstreamError::SessionGone);
        }
        let client = signed_in.client;
        let ticket = self.legacy.ticket().clone();
        let connection = Connection::Legacy(Legacy::resume(client, ticket));
        let standing = connection.stand(&[]).await?;
        Ok(standing.map(|standing| (connection, standing)))
    }

    /// Waits before the stream is opened again. True if no call needs it by then: it is removed.
    async fn leave(&self, pause: Duration) -> bool {
        let stopping = self.state.stopping.clone();
        let begun = Instant::now();
        while begun.elapsed() < pause {
            tokio::select! {
                () = stopping.cancelled() => return true,
                () = sleep(pause.min(TICK)) => {}
            }
        }
        let mut by_session = lock(&self.state.get_streams.by_session);
        // Checked under the lock that every new call takes.
        let is_over = self.reader.is_idle_for(Duration::ZERO);
        if is_over {
            by_session.remove(&self.name);
        }
        is_over
    }

    /// Reads until the stream breaks, or no call has needed it for a while.
    async fn read(&self, connection: &Connection, mut standing: Standing) {
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let event = tokio::select! {
                event = standing.next() => event,
                _ = ticks.tick() => {
                    if self.reader.is_idle_for(LINGER) {
                        return;
                    }
                    continue;
                }
            };
            match event {
                Ok(event) => self.hand(connection, event).await,
                Err(_broken) => return,
            }
        }
    }

    async fn hand(&self, connection: &Connection, event: ExchangeEvent) {
        if let ExchangeEvent::Notification { method, params } = &event {
            match Method::from_name(method) {
                Some(
                    Method::ToolsListChanged
                    | Method::PromptsListChanged
                    | Method::ResourcesListChanged,
                ) => return request_refresh(&self.state, &self.source),
                Some(Method::TaskStatus) => {
                    return self.state.hints.moved(self.source.id, params);
                }
                _ => {}
            }
        }
        let refused = match (self.reader.newest(), event) {
            (Some(call), event) => match call.send(event).await {
                Ok(()) => return,
                // The call ended meanwhile.
                Err(mpsc::error::SendError(event)) => event,
            },
            (None, event) => event,
        };
        if let ExchangeEvent::Request { id, method, .. } = refused {
            // If this fails, the next message of the server shows it.
            let _ = connection.answer(&id, &Err(unavailable(&method))).await;
        }
    }
}
