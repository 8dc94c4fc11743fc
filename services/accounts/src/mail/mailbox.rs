//! The mailbox page of `portolan dev`, which shows queued messages.

use askama::Template;
use axum::{Router, extract::State, response::Response, routing::get};
use http::StatusCode;
use portolan_site::{
    mail::MAILBOX_PATH,
    pages::{self, FormTarget, fault::PageError, moment::Moment},
    state::AuthState,
};
use portolan_storage::{
    Reason,
    platform::mails::{self, Mail},
};

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
pub(crate) struct Mailbox {
    mails: Vec<ShownMail>,
}

pub(crate) struct ShownMail {
    to: String,
    subject: String,
    at: Moment,
    code: Option<String>,
    parts: Vec<Part>,
}

/// A piece of a message's text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Text(String),
    /// An address of this service, which the page shows as a link.
    Link(String),
}

pub(crate) async fn mailbox(State(state): State<AuthState>) -> Result<Response, PageError> {
    let mut tx = state.store.system(Reason::SignIn).await?;
    let mails = mails::newest(&mut tx, 20)
        .await?
        .into_iter()
        .map(|mail| show(mail, state.site.origin()))
        .collect();
    pages::html(StatusCode::OK, &Mailbox { mails })
}

pub(crate) fn show(mail: Mail, origin: &str) -> ShownMail {
    ShownMail {
        at: Moment::new(mail.created_at),
        code: code_in(&mail.body),
        parts: parts_of(&mail.body, origin),
        to: mail.to,
        subject: mail.subject,
    }
}

/// Splits the text into plain parts and links. Only addresses of this service become links, so a
/// stranger's text does not.
pub(crate) fn parts_of(body: &str, origin: &str) -> Vec<Part> {
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
pub(crate) fn code_in(body: &str) -> Option<String> {
    body.split(|c: char| !c.is_ascii_digit())
        .find(|run| run.len() == 8)
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use portolan_site::mail::texts;

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
