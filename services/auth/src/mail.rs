//! What becomes of queued messages.
//!
//! A message is a row, written in the transaction that causes it ([`portolan_storage::mails`]). `portolan dev` has nobody to send it: there it
//! is shown on a page and in the log.

use askama::Template;
use axum::{Router, extract::State, response::Response, routing::get};
use http::StatusCode;
use portolan_storage::{
    Reason,
    mails::{self, Mail},
};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use crate::{
    pages::{self, FormTarget, PageError},
    state::AuthState,
};

/// Path of the page with the messages.
pub const MAILBOX_PATH: &str = "/dev/mail";

/// Who takes messages after they were committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mailer {
    /// Shown on [`MAILBOX_PATH`] and, with the subject, which has the code, in the log. Development only.
    Page,
    /// In the log, address and subject included: a trial on one's own machine without a mail server.
    Log,
    /// Kept in the queue for whoever delivers it; the log says that there is one, without address and text.
    Queue,
}

impl Mailer {
    /// Tells of a message that is committed.
    pub fn deliver(self, mail: &Mail) {
        match self {
            Self::Page | Self::Log => {
                tracing::info!(mail.id = %mail.id, to = mail.to, "mail: {}", mail.subject)
            }
            Self::Queue => tracing::info!(mail.id = %mail.id, "mail is queued"),
        }
    }
}

/// The mailbox, where it exists.
pub(crate) fn router(state: &AuthState) -> Router<AuthState> {
    if state.mailer != Mailer::Page {
        return Router::new();
    }
    pages::protect(
        Router::new().route(MAILBOX_PATH, get(mailbox)),
        &state.site,
        FormTarget::Here,
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
    at: String,
    code: Option<String>,
    body: String,
}

async fn mailbox(State(state): State<AuthState>) -> Result<Response, PageError> {
    let mut tx = state.store.system(Reason::SignIn).await?;
    let mails = mails::newest(&mut tx, 20)
        .await?
        .into_iter()
        .map(show)
        .collect();
    pages::html(StatusCode::OK, &Mailbox { mails })
}

fn show(mail: Mail) -> Shown {
    Shown {
        at: written(mail.created_at),
        code: code_in(&mail.body),
        to: mail.to,
        subject: mail.subject,
        body: mail.body,
    }
}

fn written(at: OffsetDateTime) -> String {
    at.replace_nanosecond(0)
        .unwrap_or(at)
        .format(&Rfc3339)
        .unwrap_or_default()
}

/// The first run of exactly eight digits.
fn code_in(body: &str) -> Option<String> {
    body.split(|c: char| !c.is_ascii_digit())
        .find(|run| run.len() == 8)
        .map(str::to_owned)
}

/// The message with a verification code (L7).
pub(crate) fn verification_text(name: &str, code: &str, link: &str) -> (String, String) {
    (
        format!("{code} is your Portolan code"),
        format!(
            "Hello {name},\n\nyour code is {code}. It works for 10 minutes, in the browser where you signed up.\n\n\
             You can also open {link} there, which fills the code in.\n\nIf you did not sign up at Portolan, ignore this message: \
             nothing happens without the code.\n"
        ),
    )
}

/// The message to somebody whose address was used for a second sign-up (L5).
pub(crate) fn known_address_text(login_url: &str) -> (String, String) {
    (
        "You already have a Portolan account".to_owned(),
        format!(
            "Hello,\n\nsomebody, probably you, tried to sign up at Portolan with this address. It has an account already.\n\n\
             To sign in, go to {login_url}\n\nIf it was not you, ignore this message: nothing was changed.\n"
        ),
    )
}

/// A hint after several wrong passwords, at most one a day (L6).
pub(crate) fn misses_text(login_url: &str) -> (String, String) {
    (
        "Several failed sign-ins at Portolan".to_owned(),
        format!(
            "Hello,\n\nsomebody entered a wrong password for your Portolan account several times. Further tries are slowed down, and your \
             account is not locked.\n\nIf it was you, go to {login_url} and take your time. If not, nothing needs to be done, as long as \
             your password is not used anywhere else.\n"
        ),
    )
}

/// A token of an app was used again when it should be long forgotten (K11). `client` is the app's name, cleaned.
pub(crate) fn reuse_text(client: &str) -> (String, String) {
    (
        "An app was disconnected from Portolan".to_owned(),
        format!(
            "Hello,\n\nan old key of the app {client} was used again. That happens when a copy of it got into other hands, or when the app \
             was restored from a backup. To be safe, we ended its connection.\n\nIf you still use the app, connect it again. If you do not \
             know it, nothing needs to be done.\n"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mailbox_finds_the_code() {
        let (_, body) = verification_text(
            "Ann 123456789",
            "04711123",
            "https://portolan.example/verify?code=04711123",
        );
        assert_eq!(code_in(&body).as_deref(), Some("04711123"));
        assert_eq!(
            code_in(&known_address_text("https://portolan.example:12345678901/login").1),
            None
        );
    }
}
