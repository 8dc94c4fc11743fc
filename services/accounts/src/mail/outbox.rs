//! Delivery of queued mail: at least once, with retries, by any number of nodes.
//!
//! A guarded update takes a message and sets the time when it may be taken again. If a node dies
//! with a message, another node takes it three minutes later. A message that the server refuses
//! temporarily is retried after increasing pauses, for a day.

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt, stream};
use portolan_model::Timestamp;
use portolan_site::state::AuthState;
use portolan_storage::{
    Reason, StorageError,
    platform::mails::{self, MailOutcome, Taken},
};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::mail::smtp::{SendError, Smtp};

/// Interval between polls without a notification. Polls find mail of dead nodes, and retries.
const LOOK: Duration = Duration::from_secs(2);

/// Most messages taken at once.
const BATCH: i64 = 20;

/// Most concurrent connections to the mail server.
const CONNECTIONS: usize = 4;

/// Time after which a message is dropped. Codes and links have expired long before.
const GIVE_UP: time::Duration = time::Duration::DAY;

/// Runs until `stop`. Messages that were taken are sent first.
pub async fn run(state: AuthState, smtp: Smtp, wake: Arc<Notify>, stop: CancellationToken) {
    loop {
        match deliver_due(&state, &smtp).await {
            // A full batch: there may be more.
            Ok(taken) if taken == BATCH.unsigned_abs() && !stop.is_cancelled() => continue,
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(error = %portolan_site::error_chain::chain(&error), "mail could not be looked for");
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = wake.notified() => {}
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}

/// Runs one round: takes the messages that are due, sends them, and records the results. Returns
/// the number of messages taken.
pub async fn deliver_due(state: &AuthState, smtp: &Smtp) -> Result<u64, StorageError> {
    let mut tx = state.store.system(Reason::Mail).await?;
    let taken = mails::take_due(&mut tx, BATCH, state.now()).await?;
    let (waiting, oldest) = mails::backlog(&mut tx).await?;
    tx.commit().await?;
    #[expect(clippy::cast_precision_loss, reason = "a gauge")]
    metrics::gauge!("mail_outbox_messages").set(waiting as f64);
    let age = oldest.map_or(0.0, |oldest| (state.now() - oldest).as_seconds_f64());
    metrics::gauge!("mail_outbox_oldest_seconds").set(age.max(0.0));
    let count = taken.len() as u64;
    let mut reports = stream::iter(taken)
        .map(|taken| async move {
            let outcome = attempt(state, smtp, &taken).await;
            (taken, outcome)
        })
        .buffer_unordered(CONNECTIONS);
    while let Some((taken, outcome)) = reports.next().await {
        let mut tx = state.store.system(Reason::Mail).await?;
        mails::report(&mut tx, taken.mail.id, taken.attempt, outcome, state.now()).await?;
        tx.commit().await?;
    }
    Ok(count)
}

async fn attempt(state: &AuthState, smtp: &Smtp, taken: &Taken) -> MailOutcome {
    let mail = &taken.mail;
    let now = state.now();
    if now - mail.created_at > GIVE_UP {
        tracing::warn!(mail.id = %mail.id, attempts = taken.attempt, "mail is too old to be sent");
        metrics::counter!("mail_sent_total", "outcome" => "too_old").increment(1);
        return MailOutcome::Failed;
    }
    match smtp.send(mail).await {
        Ok(()) => {
            tracing::info!(mail.id = %mail.id, attempts = taken.attempt, "mail is sent");
            metrics::counter!("mail_sent_total", "outcome" => "sent").increment(1);
            MailOutcome::Sent
        }
        Err(error @ SendError::Refused { .. }) => {
            tracing::warn!(mail.id = %mail.id, %error, "mail was refused");
            metrics::counter!("mail_sent_total", "outcome" => "refused").increment(1);
            MailOutcome::Failed
        }
        Err(error @ SendError::NotNow { .. }) => {
            let next = next_try(taken.attempt, state.now());
            tracing::warn!(mail.id = %mail.id, attempts = taken.attempt, %error, "mail has to wait");
            metrics::counter!("mail_sent_total", "outcome" => "later").increment(1);
            MailOutcome::Later(next)
        }
    }
}

/// The time of the next retry: after 5 s, 10 s, 20 s … up to half an hour.
fn next_try(attempt: i32, now: Timestamp) -> Timestamp {
    let doublings = u32::try_from(attempt - 1).unwrap_or(0).min(9);
    now + time::Duration::seconds(5 * (1 << doublings)).min(time::Duration::minutes(30))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_half_an_hour() {
        let start = Timestamp::UNIX_EPOCH;
        let pauses: Vec<i64> = (1..=12)
            .map(|attempt| (next_try(attempt, start) - start).whole_seconds())
            .collect();
        assert_eq!(
            pauses,
            [5, 10, 20, 40, 80, 160, 320, 640, 1280, 1800, 1800, 1800]
        );
    }
}
