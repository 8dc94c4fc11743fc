//! Outgoing mail, queued in the transaction that causes it: what is rolled back sends nothing, and sending takes no time from
//! the answer, whoever the receiver is (`auth.md` L5).

use portolan_model::{Timestamp, id::MailId};

use crate::{StorageError, SystemTx};

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
    /// When it was queued.
    pub created_at: Timestamp,
}

/// Queues a message.
pub async fn queue(
    tx: &mut SystemTx,
    to: &str,
    subject: &str,
    body: &str,
    now: Timestamp,
) -> Result<Mail, StorageError> {
    let mail = Mail {
        id: MailId::generate(),
        to: to.to_owned(),
        subject: subject.to_owned(),
        body: body.to_owned(),
        created_at: now,
    };
    sqlx::query!(
        "insert into mails (id, to_address, subject, body_text, created_at) values ($1, $2, $3, $4, $5)",
        mail.id.uuid(),
        mail.to,
        mail.subject,
        mail.body,
        mail.created_at,
    )
    .execute(tx.connection())
    .await?;
    Ok(mail)
}

/// The newest messages, newest first.
pub async fn newest(tx: &mut SystemTx, limit: i64) -> Result<Vec<Mail>, StorageError> {
    let rows = sqlx::query!(
        "select id, to_address, subject, body_text, created_at from mails order by created_at desc, id desc limit $1",
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
            created_at: row.created_at,
        })
        .collect())
}
