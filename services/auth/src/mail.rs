//! Mail: the messages and their delivery.
//!
//! A message is a row, written in the transaction that causes it ([`portolan_storage::platform::mails`]). A
//! request therefore never waits for a mail server, and no message is lost. [`outbox`] sends it to
//! the mail server afterwards, with retries. `portolan dev` has no mail server: there a page and
//! the log show the messages.

mod letter;
pub mod outbox;
pub(crate) mod passkeys;
pub mod smtp;
pub(crate) mod texts;

use std::sync::Arc;

use askama::Template;
use axum::{Router, extract::State, response::Response, routing::get};
use http::StatusCode;
use portolan_model::Timestamp;
use portolan_storage::{
    Reason, StorageError, SystemTx,
    platform::mails::{self, Mail},
};
use tokio::sync::Notify;

pub(crate) use letter::Letter;

use crate::{
    pages::{self, FormTarget, Moment, PageError},
    state::AuthState,
};

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
    /// Sent to a mail server by [`outbox::run`], which is notified.
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
pub(crate) async fn queue(
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

/// The route of the mailbox page, where it exists.
pub(crate) fn router(state: &AuthState) -> Router<AuthState> {
    if !state.mailer.is_page() {
        return Router::new();
    }
    pages::protect(
        Router::new().route(MAILBOX_PATH, get(mailbox)),
        &state.site,
        FormTarget::HereWithScript,
    )
}

#[derive(Template)]
#[template(path = "mailbox.html")]
struct Mailbox {
    mails: Vec<Shown>,
}

struct Shown {
    to: String,
    subject: String,
    at: Moment,
    code: Option<String>,
    parts: Vec<Part>,
}

/// A piece of a message's text.
#[derive(Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    /// An address of this service, which the page shows as a link.
    Link(String),
}

async fn mailbox(State(state): State<AuthState>) -> Result<Response, PageError> {
    let mut tx = state.store.system(Reason::SignIn).await?;
    let mails = mails::newest(&mut tx, 20)
        .await?
        .into_iter()
        .map(|mail| show(mail, state.site.origin()))
        .collect();
    pages::html(StatusCode::OK, &Mailbox { mails })
}

fn show(mail: Mail, origin: &str) -> Shown {
    Shown {
        at: Moment::new(mail.created_at),
        code: code_in(&mail.body),
        parts: parts_of(&mail.body, origin),
        to: mail.to,
        subject: mail.subject,
    }
}

/// Splits the text into plain parts and links. Only addresses of this service become links, so a
/// stranger's text does not.
fn parts_of(body: &str, origin: &str) -> Vec<Part> {
    let mark = format!("{origin}/");
    let mut parts = Vec::new();
    let mut rest = body;
    while let Some(at) = rest.find(&mark) {
        let (text, from) = rest.split_at(at);
        let end = from.find(char::is_whitespace).unwrap_or(from.len());
        let (link, after) = from.split_at(end);
        parts.push(Part::Text(text.to_owned()));
        parts.push(Part::Link(link.to_owned()));
        rest = after;
    }
    parts.push(Part::Text(rest.to_owned()));
    parts
}

/// The first run of exactly eight digits.
fn code_in(body: &str) -> Option<String> {
    body.split(|c: char| !c.is_ascii_digit())
        .find(|run| run.len() == 8)
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mailbox_finds_the_code() {
        let letter = texts::verification(
            "Ann 123456789",
            "04711123",
            "https://portolan.example/verify?code=04711123",
        );
        assert_eq!(code_in(&letter.text()).as_deref(), Some("04711123"));
        let known = texts::known_address("https://portolan.example:12345678901/login");
        assert_eq!(code_in(&known.text()), None);
    }

    #[test]
    fn addresses_of_ours_are_links_and_no_others() {
        let body = "Hello https://evil.example/x,\n\nSign in:\nhttps://portolan.example/login?a=b\n\nBye\n";
        let parts = parts_of(body, "https://portolan.example");
        assert_eq!(
            parts,
            [
                Part::Text("Hello https://evil.example/x,\n\nSign in:\n".to_owned()),
                Part::Link("https://portolan.example/login?a=b".to_owned()),
                Part::Text("\n\nBye\n".to_owned()),
            ]
        );
    }
}
