//! Outgoing mail, queued in the transaction that causes it. A rollback sends nothing. Queueing
//! takes the same time for every receiver, known or not (AUTH-L5).

use portolan_model::{Timestamp, id::MailId};
use time::Duration;

use crate::{StorageError, SystemTx};

/// How long a sender may hold a message before another one takes it.
pub const HOLD: Duration = Duration::minutes(3);

/// A message.
#[derive(Debug, Clone)]
pub struct Mail {
    /// Its id.
    pub id: MailId,
    /// One address, as typed by its owner.
    pub to: String,
    /// Subject.
    pub subject: String,
    /// Plain text.
    pub body: String,
    /// The same for programs that show HTML; empty if there is none.
    pub html: String,
    /// When it was queued.
    pub created_at: Timestamp,
}

/// A message in the hands of a sender.
#[derive(Debug, Clone)]
pub struct Taken {
    /// The message.
    pub mail: Mail,
    /// Which attempt this is, from 1. An outcome is reported for it.
    pub attempt: i32,
}

/// What became of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MailOutcome {
    /// The mail server has it.
    Sent,
    /// To be tried again, not before this time.
    Later(Timestamp),
    /// Refused for good, or too old.
    Failed,
}

/// Queues a message.
pub async fn queue(
    tx: &mut SystemTx,
    to: &str,
    subject: &str,
    body: &str,
    html: &str,
    now: Timestamp,
) -> Result<Mail, StorageError> {
    let mail = Mail {
        id: MailId::generate(),
        to: to.to_owned(),
        subject: subject.to_owned(),
        body: body.to_owned(),
        html: html.to_owned(),
        created_at: now,
    };
    sqlx::query!(
        "insert into mails (id, to_address, subject, body_text, body_html, created_at, next_at) values ($1, $2, $3, $4, $5, $6, $6)",
        mail.id.uuid(),
        mail.to,
        mail.subject,
        mail.body,
        mail.html,
        mail.created_at,
    )
    .execute(tx.connection())
    .await?;
    Ok(mail)
}

/// Takes messages that are due, oldest first. Commit before sending: from then on no other sender
/// takes them until [`HOLD`] is over.
pub async fn take_due(
    tx: &mut SystemTx,
    limit: i64,
    now: Timestamp,
) -> Result<Vec<Taken>, StorageError> {
    let rows = sqlx::query!(
        "update mails set attempts = attempts + 1, next_at = $2
         where id in (select id from mails where sent_at is null and failed_at is null and next_at <= $1
                      order by next_at limit $3 for update skip locked)
         returning id, to_address, subject, body_text, body_html, created_at, attempts",
        now,
        now + HOLD,
        limit,
    )
    .fetch_all(tx.connection())
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| Taken {
            mail: Mail {
                id: MailId::from_uuid(row.id),
                to: row.to_address,
                subject: row.subject,
                body: row.body_text,
                html: row.body_html,
                created_at: row.created_at,
            },
            attempt: row.attempts,
        })
        .collect())
}

/// Records the result of an attempt. False if another sender has taken the message meanwhile; then
/// that sender's result counts. Texts contain codes and links, so they are deleted as soon as they
/// are not needed.
pub async fn report(
    tx: &mut SystemTx,
    id: MailId,
    attempt: i32,
    outcome: MailOutcome,
    now: Timestamp,
) -> Result<bool, StorageError> {
    let (sent, failed, next) = match outcome {
        MailOutcome::Sent => (Some(now), None, None),
        MailOutcome::Failed => (None, Some(now), None),
        MailOutcome::Later(at) => (None, None, Some(at)),
    };
    let done = sqlx::query!(
        "update mails set sent_at = $3, failed_at = $4, next_at = coalesce($5, next_at),
           subject = case when $5::timestamptz is null then '' else subject end,
           body_text = case when $5::timestamptz is null then '' else body_text end,
           body_html = case when $5::timestamptz is null then '' else body_html end
         where id = $1 and attempts = $2 and sent_at is null and failed_at is null",
        id.uuid(),
        attempt,
        sent,
        failed,
        next,
    )
    .execute(tx.connection())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// How many messages wait, and since when the oldest does.
pub async fn backlog(tx: &mut SystemTx) -> Result<(i64, Option<Timestamp>), StorageError> {
    let row = sqlx::query!(
        r#"select count(*) as "count!", min(created_at) as oldest from mails where sent_at is null and failed_at is null"#
    )
    .fetch_one(tx.connection())
    .await?;
    Ok((row.count, row.oldest))
}

/// The newest messages, newest first.
pub async fn newest(tx: &mut SystemTx, limit: i64) -> Result<Vec<Mail>, StorageError> {
    let rows = sqlx::query!(
        "select id, to_address, subject, body_text, body_html, created_at from mails order by created_at desc, id desc limit $1",
        limit
    )
    .fetch_all(tx.connection())
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| Mail {
            id: MailId::from_uuid(row.id),
            to: row.to_address,
            subject: row.subject,
            body: row.body_text,
            html: row.body_html,
            created_at: row.created_at,
        })
        .collect())
}
