//! The leader's conversation with an upstream server: notifications of lists and resources, in each
//! era (MCP-X-40…MCP-X-45).

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use portolan_connections::Token;
use portolan_protocol::{
    jsonrpc::{Raw, RequestId},
    method::Method,
    result::write_string,
};
use portolan_upstream::{
    Connection, ExchangeEvent, Legacy, Link, Modern, Request, ServerFacts, Speaker, Standing,
    UpstreamError,
};
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{
    backends::{
        services::Backends,
        upstream::{
            conversation::{NoClient, NoConversation, Spoken},
            refresh::request_refresh,
        },
    },
    catalog::upstream::UpstreamSource,
    upstream_subscriptions::note::without,
};

/// The silence after which the stream is opened anew: the connection may be dead unnoticed.
const SILENCE: Duration = Duration::from_secs(900);

/// The lifetime of a stream, after which it is opened anew.
const TOTAL: Duration = Duration::from_secs(3600);

/// The first and the longest pause before a broken stream is opened again.
const PAUSE: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(60));

/// The interval of attempts at a server without streams. Its lists are polled meanwhile (MCP-X-43).
const ASK_AGAIN: Duration = Duration::from_secs(300);

/// The duration after which a conversation counts as successful.
const GOOD: Duration = Duration::from_secs(60);

/// How long the end of a session at a server may take.
const FAREWELL: Duration = Duration::from_secs(5);

/// MCP-X-40: how long a modern server may take to acknowledge.
const ACKNOWLEDGE: Duration = Duration::from_secs(5);

/// The interval of checks that the account of the conversation is still connected.
const ASK_ACCOUNT: Duration = Duration::from_secs(30);

/// A message of the server.
#[derive(Debug)]
pub(crate) enum LeaderEvent {
    /// The server notifies of these URIs from now on, and of no others.
    Subscribed {
        acknowledged: BTreeSet<String>,
        refused: BTreeSet<String>,
    },
    /// The resource with this URI has changed.
    Updated(String),
    /// Notifications were lost: anything may have changed (MCP-X-40, MCP-X-45).
    Again,
}

/// The inputs and outputs of a conversation.
pub(crate) struct LeaderConversation {
    pub(crate) state: Backends,
    pub(crate) source: Arc<UpstreamSource>,
    /// The token that opened the conversation, if the server requires one.
    pub(crate) token: Option<Token>,
    /// Another node was the leader before this one.
    pub(crate) again: bool,
    pub(crate) wanted: watch::Receiver<BTreeSet<String>>,
    pub(crate) events: mpsc::Sender<LeaderEvent>,
    pub(crate) stop: CancellationToken,
}

/// Why a conversation ended.
enum ConversationEnd {
    /// No stream has a subscription any more.
    Stopped,
    /// The server sends no notifications (MCP-X-43).
    Mute,
    Failed(NoConversation),
}

impl From<UpstreamError> for ConversationEnd {
    fn from(error: UpstreamError) -> Self {
        Self::Failed(error.into())
    }
}

impl LeaderConversation {
    /// Keeps a conversation open until `stop` is cancelled, and reconnects after failures.
    pub(crate) async fn run(mut self) {
        let mut failures = 0_u32;
        let mut was_there = self.again;
        loop {
            let begun = Instant::now();
            let mut is_there = false;
            let end = self.converse(was_there, &mut is_there).await;
            was_there |= is_there;
            let pause = match end {
                ConversationEnd::Stopped => return,
                ConversationEnd::Mute => {
                    let refused = self.wanted.borrow_and_update().clone();
                    let acknowledged = BTreeSet::new();
                    self.send(LeaderEvent::Subscribed {
                        acknowledged,
                        refused,
                    })
                    .await;
                    ASK_AGAIN
                }
                ConversationEnd::Failed(error) => {
                    tracing::debug!(source.id = %self.source.id, reason = %error, "an upstream server is not heard");
                    self.renew(&error).await;
                    failures = if begun.elapsed() > GOOD {
                        0
                    } else {
                        failures.saturating_add(1)
                    };
                    PAUSE.0.saturating_mul(1 << failures.min(10)).min(PAUSE.1)
                }
            };
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = sleep(pause) => {}
            }
        }
    }

    /// MCP-X-86: gets a token for the next conversation that the server has not refused.
    async fn renew(&mut self, error: &NoConversation) {
        let (NoConversation::Upstream(UpstreamError::Unauthorized { .. }), Some(refused)) =
            (error, self.token.take())
        else {
            return;
        };
        if let Err(error) = self.source.renew_listening(&self.state, &refused).await {
            tracing::debug!(source.id = %self.source.id, reason = %error, "no other token for an upstream server");
        }
    }

    async fn send(&self, event: LeaderEvent) {
        // The receiver may be gone: then this task ends soon.
        let _ = self.events.send(event).await;
    }

    /// Runs one conversation. `again`: notifications of an earlier one may be lost.
    async fn converse(&mut self, again: bool, is_there: &mut bool) -> ConversationEnd {
        let outcome = async {
            let account = self.source.listening_account();
            let signed_in = self
                .source
                .sign_in_for(&self.state, account, SILENCE, TOTAL)
                .await?;
            self.token = signed_in.token;
            let client = signed_in.client;
            let spoken = self
                .state
                .upstreams
                .spoken(&self.state, &self.source, &client)
                .await?;
            let ourselves = Speaker::ourselves();
            Ok::<_, NoConversation>(match spoken {
                Spoken::Modern => (Connection::Modern(Modern::new(client, ourselves)), None),
                Spoken::Sessions => {
                    let (legacy, facts) = Legacy::open(&client, &ourselves).await?;
                    (Connection::Legacy(legacy), Some(facts))
                }
                Spoken::Links => {
                    let tracker = &self.state.tracker;
                    let (link, facts) = Link::open(&client, &ourselves, tracker).await?;
                    (Connection::Link(link), Some(facts))
                }
            })
        };
        let stop = self.stop.clone();
        let (connection, facts) = tokio::select! {
            () = stop.cancelled() => return ConversationEnd::Stopped,
            outcome = outcome => match outcome {
                Ok(outcome) => outcome,
                Err(error) => return ConversationEnd::Failed(error),
            },
        };
        let (state, source) = (self.state.clone(), Arc::clone(&self.source));
        let opened_by = self.token.as_ref().map(Token::connection);
        let end = tokio::select! {
            () = stop.cancelled() => ConversationEnd::Stopped,
            () = is_disconnected(&state, &source, opened_by) => ConversationEnd::Failed(NoConversation::Over),
            end = self.listen(&connection, facts.as_ref(), again, is_there) => end,
        };
        // The session was ours alone. If it cannot be ended now, it expires.
        let _ended = timeout(FAREWELL, connection.end()).await;
        end
    }

    async fn listen(
        &mut self,
        connection: &Connection,
        facts: Option<&ServerFacts>,
        again: bool,
        is_there: &mut bool,
    ) -> ConversationEnd {
        let outcome = match facts {
            None => self.listen_modern(connection, again, is_there).await,
            Some(facts) => self.listen_legacy(connection, facts, again, is_there).await,
        };
        match outcome {
            Ok(end) | Err(end) => end,
        }
    }

    /// The stream is open: earlier changes are found by one refresh (MCP-X-45).
    async fn opened(&self, again: bool, is_there: &mut bool) {
        *is_there = true;
        request_refresh(&self.state, &self.source);
        if again {
            self.send(LeaderEvent::Again).await;
        }
    }

    /// MCP-X-41, MCP-X-44: one listen request for all URIs.
    ///
    /// Another set of URIs is another request, opened before the old one is closed.
    async fn listen_modern(
        &mut self,
        connection: &Connection,
        again: bool,
        is_there: &mut bool,
    ) -> Result<ConversationEnd, ConversationEnd> {
        let mut wanted = self.wanted.borrow_and_update().clone();
        let mut standing = self.open_modern(connection, &wanted).await?;
        self.opened(again, is_there).await;
        loop {
            tokio::select! {
                changed = self.wanted.changed() => {
                    if changed.is_err() {
                        return Ok(ConversationEnd::Stopped);
                    }
                    let now = self.wanted.borrow_and_update().clone();
                    if now == wanted {
                        continue;
                    }
                    wanted = now;
                    let next = self.open_modern(connection, &wanted).await?;
                    let mut old = std::mem::replace(&mut standing, next);
                    // The last notifications of the old stream; the new one has all later ones.
                    let mut updated = BTreeSet::new();
                    while let Ok(Ok(event)) = timeout(Duration::ZERO, old.next()).await {
                        updated.extend(self.received(connection, event).await?);
                    }
                    drop(old);
                    while let Ok(event) = timeout(Duration::ZERO, standing.next()).await {
                        self.received_once(connection, event?, &updated).await?;
                    }
                }
                event = standing.next() => {
                    self.received(connection, event?).await?;
                }
            }
        }
    }

    async fn open_modern(
        &self,
        connection: &Connection,
        wanted: &BTreeSet<String>,
    ) -> Result<Standing, ConversationEnd> {
        let uris: Vec<String> = wanted.iter().cloned().collect();
        let Some(mut standing) = connection.stand(&uris).await? else {
            return Err(ConversationEnd::Mute);
        };
        let acknowledged = async {
            loop {
                if let ExchangeEvent::Notification { method, params } = standing.next().await?
                    && method == Method::SubscriptionsAcknowledged.name()
                {
                    return Ok::<_, UpstreamError>(params);
                }
            }
        };
        let params = match timeout(ACKNOWLEDGE, acknowledged).await {
            Ok(Ok(params)) => params,
            // The server answers that it does not have the method.
            Ok(Err(UpstreamError::Refused(_))) => return Err(ConversationEnd::Mute),
            Ok(Err(error)) => return Err(error.into()),
            Err(_elapsed) => return Err(UpstreamError::Timeout(ACKNOWLEDGE).into()),
        };
        let acknowledged: BTreeSet<String> = params
            .get("notifications")
            .and_then(|honoured| honoured.get("resourceSubscriptions"))
            .map(|uris| uris.elements().filter_map(|uri| uri.string()).collect())
            .unwrap_or_default();
        let refused = without(wanted, &acknowledged).into_iter().collect();
        self.send(LeaderEvent::Subscribed {
            acknowledged,
            refused,
        })
        .await;
        Ok(standing)
    }

    /// MCP-X-42: the stream of a session of our own, with a subscription for each URI.
    async fn listen_legacy(
        &mut self,
        connection: &Connection,
        facts: &ServerFacts,
        again: bool,
        is_there: &mut bool,
    ) -> Result<ConversationEnd, ConversationEnd> {
        let Some(mut standing) = connection.stand(&[]).await? else {
            return Err(ConversationEnd::Mute);
        };
        self.opened(again, is_there).await;
        let can_subscribe = facts.has_flag("resources", "subscribe");
        let (mut subscribed, mut refused) = (BTreeSet::new(), BTreeSet::new());
        let mut is_first = true;
        loop {
            if is_first
                || self
                    .wanted
                    .has_changed()
                    .map_err(|_| ConversationEnd::Stopped)?
            {
                is_first = false;
                let wanted = self.wanted.borrow_and_update().clone();
                for uri in without(&subscribed, &wanted) {
                    let method = Method::ResourcesUnsubscribe;
                    // Its answer does not matter.
                    let _ = of_uri(connection, method, &uri).await;
                    subscribed.remove(&uri);
                }
                refused.retain(|uri| wanted.contains(uri));
                for uri in without(&wanted, &subscribed) {
                    let outcome = if can_subscribe {
                        of_uri(connection, Method::ResourcesSubscribe, &uri).await
                    } else {
                        Ok(false)
                    };
                    if outcome? {
                        refused.remove(&uri);
                        subscribed.insert(uri);
                    } else {
                        refused.insert(uri);
                    }
                }
                self.send(LeaderEvent::Subscribed {
                    acknowledged: subscribed.clone(),
                    refused: refused.clone(),
                })
                .await;
            }
            tokio::select! {
                changed = self.wanted.changed() => {
                    if changed.is_err() {
                        return Ok(ConversationEnd::Stopped);
                    }
                    self.wanted.mark_changed();
                }
                event = standing.next() => {
                    self.received(connection, event?).await?;
                }
            }
        }
    }

    async fn received_once(
        &self,
        connection: &Connection,
        event: ExchangeEvent,
        updated: &BTreeSet<String>,
    ) -> Result<(), ConversationEnd> {
        let is_known = match &event {
            ExchangeEvent::Notification { method, params }
                if *method == Method::ResourceUpdated.name() =>
            {
                params
                    .get("uri")
                    .and_then(|uri| uri.string())
                    .is_some_and(|uri| updated.contains(&uri))
            }
            _ => false,
        };
        if !is_known {
            self.received(connection, event).await?;
        }
        Ok(())
    }

    /// Forwards a message of the server. Returns the URI if it names a changed resource.
    async fn received(
        &self,
        connection: &Connection,
        event: ExchangeEvent,
    ) -> Result<Option<String>, ConversationEnd> {
        match event {
            ExchangeEvent::Notification { method, params } => match Method::from_name(&method) {
                Some(
                    Method::ToolsListChanged
                    | Method::PromptsListChanged
                    | Method::ResourcesListChanged,
                ) => request_refresh(&self.state, &self.source),
                Some(Method::TaskStatus | Method::TaskNotification) => {
                    self.state.hints.moved(self.source.id, &params);
                }
                Some(Method::ResourceUpdated) => {
                    if let Some(uri) = params.get("uri").and_then(|uri| uri.string()) {
                        self.send(LeaderEvent::Updated(uri.clone())).await;
                        return Ok(Some(uri));
                    }
                }
                _ => {}
            },
            // MCP-X-23: there is no open call for the question.
            ExchangeEvent::Request { id, method, .. } => refuse(connection, &id, &method).await?,
            ExchangeEvent::Log(_) | ExchangeEvent::Progress(_) | ExchangeEvent::Answer(_) => {}
        }
        Ok(None)
    }
}

/// Waits until the account of the conversation is disconnected or replaced.
async fn is_disconnected(state: &Backends, source: &UpstreamSource, opened_by: Option<Uuid>) {
    if opened_by.is_none() {
        return std::future::pending().await;
    }
    loop {
        sleep(ASK_ACCOUNT).await;
        match source.opened_by(state, source.listening_account()).await {
            Ok(now) if now == opened_by => {}
            Ok(_) => return,
            Err(NoClient::Account(error)) if error.is_for_a_person() => return,
            Err(_) => {}
        }
    }
}

async fn refuse(
    connection: &Connection,
    id: &RequestId,
    method: &str,
) -> Result<(), UpstreamError> {
    connection
        .answer(id, &Err(portolan_upstream::unavailable(method)))
        .await
}

/// Sends a request about one resource. False if the server refuses it.
async fn of_uri(connection: &Connection, method: Method, uri: &str) -> Result<bool, UpstreamError> {
    let mut params = br#"{"uri":"#.to_vec();
    write_string(uri, &mut params);
    params.push(b'}');
    let params = Raw::parse(params).unwrap_or_else(|_| Raw::empty_object());
    match connection.ask(&Request::new(method.name(), params)).await {
        Ok(_) => Ok(true),
        Err(UpstreamError::Refused(_)) => Ok(false),
        Err(error) => Err(error),
    }
}
