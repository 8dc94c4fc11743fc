//! The worker: makes deliveries and alerts of the outbox, sends what is due, and evaluates the rules
//! over counts of calls and ends of credentials. Any number of nodes run it; rows are the locks (HOOK-7).

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt, stream::FuturesUnordered};
use portolan_model::Timestamp;
use portolan_site::state::AuthState;
use portolan_storage::{
    Reason, StorageError,
    platform::mails::Mail,
    webhooks::deliveries::{self, AttemptResult, ClaimedDelivery},
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{
    alerts, evaluation,
    message::WebhookMessage,
    secrets::{EndpointPlace, SecretsError},
    send::{TIMEOUT, WebhookExchange, WebhookSender},
};

/// Interval between looks at the outbox.
const LOOK: Duration = Duration::from_secs(1);

/// Interval between rounds over standing alerts, ends of credentials, and counts of calls.
const ROUND: Duration = Duration::from_secs(60);

/// Deliveries that a node sends at once (HOOK-11).
const AT_ONCE: usize = 32;

/// Deliveries to one endpoint at once, over all nodes (HOOK-11).
const PER_ENDPOINT: i64 = 4;

/// Events of one transaction.
const BATCH: i64 = 100;

/// A stopping process waits so long for answers of receivers.
const LAST_ANSWERS: Duration = Duration::from_secs(3);

/// Sends the deliveries of all workspaces.
#[derive(Debug, Clone)]
pub struct WebhookWorker {
    state: AuthState,
    sender: Arc<WebhookSender>,
}

impl WebhookWorker {
    /// A worker with the timeout of production.
    pub fn new(state: AuthState) -> Self {
        Self::with_timeout(state, TIMEOUT)
    }

    /// A worker that waits so long for an answer.
    pub fn with_timeout(state: AuthState, timeout: Duration) -> Self {
        let sender = Arc::new(WebhookSender {
            egress: state.egress.clone(),
            clock: state.clock.clone(),
            timeout,
        });
        Self { state, sender }
    }

    /// Runs until `stop`. Answers that are near are waited for; what is cut off goes out again after
    /// its hold, under the same id.
    pub async fn run(self, stop: CancellationToken) {
        let mut looks = tokio::time::interval(LOOK);
        looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut rounds = tokio::time::interval(ROUND);
        rounds.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        // Tasks of their own: a delivery goes on while the worker waits for the database.
        let mut sends = JoinSet::new();
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                Some(_) = sends.join_next(), if !sends.is_empty() => {}
                _ = rounds.tick() => {
                    note("webhook_round", self.round().await);
                    continue;
                }
                _ = looks.tick() => match self.is_work_due().await {
                    Ok(true) => note("webhook_spread", self.spread().await),
                    Ok(false) => continue,
                    Err(error) => {
                        note::<()>("webhook_look", Err(error));
                        continue;
                    }
                },
            }
            let room = AT_ONCE.saturating_sub(sends.len());
            if room == 0 {
                continue;
            }
            match self.claim(room).await {
                Ok(claimed) => {
                    for one in claimed {
                        let worker = self.clone();
                        sends.spawn(async move { worker.deliver(one).await });
                    }
                }
                Err(error) => note::<()>("webhook_claim", Err(error)),
            }
        }
        let last = async { while sends.join_next().await.is_some() {} };
        if tokio::time::timeout(LAST_ANSWERS, last).await.is_err() {
            tracing::info!("deliveries of webhooks were cut off; they go out again");
        }
    }

    async fn is_work_due(&self) -> Result<bool, StorageError> {
        let mut tx = self.state.store.system(Reason::Webhooks).await?;
        deliveries::is_work_due(&mut tx, self.state.now()).await
    }

    /// Makes deliveries and alerts of all waiting events. Returns how many.
    pub async fn spread(&self) -> Result<usize, StorageError> {
        let mut spread = 0;
        loop {
            let now = self.state.now();
            let mut tx = self.state.store.system(Reason::Webhooks).await?;
            let events = deliveries::spread(&mut tx, BATCH, now).await?;
            let mut letters = Vec::new();
            for event in &events {
                letters.extend(alerts::evaluate(&self.state, &mut tx, event, now).await?);
            }
            tx.commit().await?;
            self.deliver_mail(&letters);
            spread += events.len();
            if events.is_empty() {
                return Ok(spread);
            }
        }
    }

    fn deliver_mail(&self, letters: &[Mail]) {
        for letter in letters {
            self.state.mailer.deliver(letter);
        }
    }

    /// One round over standing alerts, ends of credentials, and counts of calls.
    pub async fn round(&self) -> Result<(), StorageError> {
        let now = self.state.now();
        let mut tx = self.state.store.system(Reason::Webhooks).await?;
        evaluation::expiring(&mut tx, now).await?;
        let letters = alerts::remind(&self.state, &mut tx, now).await?;
        let (waiting, oldest) = deliveries::backlog(&mut tx, now).await?;
        tx.commit().await?;
        self.deliver_mail(&letters);
        #[expect(clippy::cast_precision_loss, reason = "a gauge")]
        metrics::gauge!("webhook_deliveries_waiting").set(waiting as f64);
        let age = oldest.map_or(0.0, |oldest| (now - oldest).as_seconds_f64());
        metrics::gauge!("webhook_deliveries_oldest_seconds").set(age.max(0.0));
        self.count_calls(now).await
    }

    /// Evaluates the rules over counts of calls, each in a transaction of its own.
    async fn count_calls(&self, now: Timestamp) -> Result<(), StorageError> {
        let mut tx = self.state.store.system(Reason::Webhooks).await?;
        evaluation::error_rates(&mut tx, now).await?;
        tx.commit().await?;
        let platform = &self.state.config.limits.platform;
        let mut tx = self.state.store.system(Reason::Webhooks).await?;
        evaluation::near_limits(&mut tx, platform, now).await?;
        tx.commit().await
    }

    /// Claims what is due, sends it, and waits for the answers. Returns how many.
    pub async fn deliver_due(&self) -> Result<usize, StorageError> {
        let claimed = self.claim(AT_ONCE).await?;
        let count = claimed.len();
        let mut sends: FuturesUnordered<_> =
            claimed.into_iter().map(|one| self.deliver(one)).collect();
        while sends.next().await.is_some() {}
        Ok(count)
    }

    async fn claim(&self, room: usize) -> Result<Vec<ClaimedDelivery>, StorageError> {
        let room = i64::try_from(room).unwrap_or(i64::MAX);
        let mut tx = self.state.store.system(Reason::Webhooks).await?;
        let claimed = deliveries::claim(&mut tx, room, PER_ENDPOINT, self.state.now()).await?;
        tx.commit().await?;
        Ok(claimed)
    }

    async fn deliver(&self, claimed: ClaimedDelivery) {
        let exchange = match self.exchange(&claimed).await {
            Ok(exchange) => exchange,
            Err(error) => self.unsent(&error),
        };
        let now = self.state.now();
        let after = exchange.after(claimed.tries, now);
        let outcome = if exchange.is_accepted() {
            "delivered"
        } else {
            "failed"
        };
        metrics::counter!("webhook_attempts_total", "outcome" => outcome).increment(1);
        let reported = async {
            let mut tx = self.state.store.system(Reason::Webhooks).await?;
            deliveries::report(&mut tx, &claimed, &exchange.result, after, now).await?;
            tx.commit().await
        };
        if let Err(error) = reported.await {
            // The hold ends, and the delivery goes out again.
            tracing::warn!(
                event.id = %claimed.event.id,
                error = &error as &dyn std::error::Error,
                "the result of a delivery could not be recorded"
            );
        }
    }

    async fn exchange(&self, claimed: &ClaimedDelivery) -> Result<WebhookExchange, SecretsError> {
        let now = self.state.now();
        let place = EndpointPlace {
            tenant: claimed.event.tenant,
            endpoint: claimed.endpoint,
        };
        let secrets = place.open(&self.state.keys, &claimed.secrets, now)?;
        let message = WebhookMessage::of(&claimed.event, claimed.form);
        let signing = secrets.signing(claimed.previous_secret_until, now);
        let headers = message.headers(&secrets.headers, &signing, now);
        Ok(self.sender.post(&secrets.url, headers, message.body).await)
    }

    fn unsent(&self, error: &SecretsError) -> WebhookExchange {
        tracing::error!(
            error = error as &dyn std::error::Error,
            "a webhook could not be sent"
        );
        WebhookExchange {
            result: AttemptResult {
                at: self.state.now(),
                millis: 0,
                status: None,
                fault: Some("The secrets of this endpoint do not open.".to_owned()),
                response_head: None,
            },
            retry_after: None,
        }
    }
}

/// The readiness probe reports a database that is away: the log needs no line a second.
fn note<T>(what: &'static str, outcome: Result<T, StorageError>) {
    let Err(error) = outcome else { return };
    let cause = &error as &dyn std::error::Error;
    if matches!(error, StorageError::Unavailable(_)) {
        tracing::debug!(what, error = cause, "webhooks wait for the database");
    } else {
        tracing::warn!(what, error = cause, "a step of webhooks failed");
    }
}

/// The time from which a rotated secret signs no longer (HOOK-6).
pub fn previous_secret_until(now: Timestamp) -> Timestamp {
    now + time::Duration::DAY
}
