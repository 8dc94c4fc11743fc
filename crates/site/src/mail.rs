//! Mail: the messages and their delivery.
//!
//! A message is a row, written in the transaction that causes it ([`portolan_storage::platform::mails`]). A
//! request therefore never waits for a mail server, and no message is lost. The outbox in
//! `accounts::mail` sends it afterwards, with retries. `portolan dev` has no mail server: there a
//! page and the log show the messages.

pub mod letter;
pub mod passkeys;
pub mod texts;

use std::sync::Arc;

use portolan_model::Timestamp;
use portolan_storage::{
    StorageError, SystemTx,
    platform::mails::{self, Mail},
};
use tokio::sync::Notify;

use crate::mail::letter::Letter;

/// Path of the page with the messages.
pub const MAILBOX_PATH: &str = "/dev/mail";

/// The delivery of messages after their commit.
#[derive(Debug, Clone)]
pub enum Mailer {
    /// Shown on [`MAILBOX_PATH`], and in the log with the subject, which contains the code.
    /// Development only.
    Page,
    /// In the log, including address and subject: for a trial on one's own machine without a mail
    /// server.
    Log,
    /// Left in the queue for another process; the log records the message without address and text.
    Queue,
    /// Sent to a mail server by the outbox, which is notified.
    Smtp(Arc<Notify>),
}

impl Mailer {
    /// Returns true if a page shows the mail.
    pub const fn is_page(&self) -> bool {
        matches!(self, Self::Page)
    }

    /// Starts the delivery of a committed message.
    pub fn deliver(&self, mail: &Mail) {
        match self {
            Self::Page | Self::Log => {
                tracing::info!(mail.id = %mail.id, to = mail.to, "mail: {}", mail.subject)
            }
            Self::Queue => tracing::info!(mail.id = %mail.id, "mail is queued"),
            Self::Smtp(wake) => wake.notify_one(),
        }
    }
}

/// Queues a letter in the transaction that causes it.
pub async fn queue(
    tx: &mut SystemTx,
    to: &str,
    letter: &Letter,
    now: Timestamp,
) -> Result<Mail, StorageError> {
    mails::queue(
        tx,
        to,
        letter.subject(),
        &letter.text(),
        &letter.html(),
        now,
    )
    .await
}
