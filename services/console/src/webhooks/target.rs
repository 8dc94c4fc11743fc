//! The target of an endpoint: its URL and headers, and the challenge that it must answer (HOOK-3).

use std::time::Duration;

use http::{HeaderName, HeaderValue};
use portolan_model::{
    Timestamp, event,
    id::{EventId, WebhookId},
};
use portolan_site::{console_error::ConsoleError, state::AuthState};
use portolan_storage::webhooks::{deliveries::OutboxEvent, endpoints::WebhookForm};
use portolan_webhooks::{
    message::WebhookMessage,
    secrets::EndpointSecrets,
    send::{TIMEOUT, WebhookSender},
};
use serde::Deserialize;
use serde_json::json;
use url::Url;
use utoipa::ToSchema;

use crate::workspace::Workspace;

/// Most headers of an endpoint.
const MOST_HEADERS: usize = 10;

/// Most characters of a header's value.
const LONGEST_VALUE: usize = 1000;

/// Longest wait for the turn of the workspace.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// A header of an endpoint.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WebhookHeader {
    /// Name.
    name: String,
    /// Secret value.
    value: String,
}

impl WebhookHeader {
    pub(crate) fn new(name: String, value: String) -> Self {
        Self { name, value }
    }
}

fn invalid(message: String) -> ConsoleError {
    ConsoleError::invalid("url_invalid", message).field("url")
}

/// Reads the URL of an endpoint: absolute and without a password.
pub(crate) fn read_url(text: &str) -> Result<Url, ConsoleError> {
    let absolute = Url::parse(text.trim()).ok().filter(Url::has_host);
    let url = absolute
        .ok_or_else(|| invalid("Give an absolute URL, beginning with https://.".to_owned()))?;
    if url.as_str().len() > 2000 {
        return Err(invalid("Give a URL of at most 2000 characters.".to_owned()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(invalid(
            "Leave user name and password out of the URL. Use a header for secrets.".to_owned(),
        ));
    }
    Ok(url)
}

/// Does the same, and refuses an address that may not be called. Names are resolved and checked again
/// by each delivery.
pub(crate) fn checked_url(state: &AuthState, text: &str) -> Result<Url, ConsoleError> {
    let url = read_url(text)?;
    state
        .egress
        .check(&url)
        .map_err(|error| invalid(format!("This address cannot be called: {error}.")))?;
    Ok(url)
}

/// The URL as it may be shown: of a Slack endpoint the path is a secret.
pub(super) fn shown_url(form: WebhookForm, url: &Url) -> String {
    match form {
        WebhookForm::Standard => url.to_string(),
        WebhookForm::Slack => format!("{}/…", url.origin().ascii_serialization()),
    }
}

/// Reads the headers of an endpoint. Those that frame the message, or that are ours, are refused.
pub(crate) fn checked_headers(
    headers: &[WebhookHeader],
) -> Result<Vec<(String, String)>, ConsoleError> {
    if headers.len() > MOST_HEADERS {
        return Err(ConsoleError::invalid(
            "headers_invalid",
            format!("Give at most {MOST_HEADERS} headers."),
        )
        .field("headers"));
    }
    let mut kept: Vec<(String, String)> = Vec::new();
    for (place, header) in headers.iter().enumerate() {
        let refused = |message: &'static str, part: &str| {
            ConsoleError::invalid("headers_invalid", message)
                .field(format!("headers[{place}].{part}"))
        };
        let name = HeaderName::try_from(header.name.trim())
            .map_err(|_| refused("This is no name of an HTTP header.", "name"))?;
        if is_reserved(&name) {
            return Err(refused(
                "This header is set by the delivery itself.",
                "name",
            ));
        }
        if kept.iter().any(|(known, _)| known == name.as_str()) {
            return Err(refused("This header stands here twice.", "name"));
        }
        let value = header.value.trim();
        let readable = value.len() <= LONGEST_VALUE
            && value.bytes().all(|byte| (b' '..=b'~').contains(&byte))
            && HeaderValue::try_from(value).is_ok();
        if value.is_empty() || !readable {
            return Err(refused(
                "Give up to 1000 printable ASCII characters.",
                "value",
            ));
        }
        kept.push((name.as_str().to_owned(), value.to_owned()));
    }
    Ok(kept)
}

fn is_reserved(name: &HeaderName) -> bool {
    let name = name.as_str();
    name.starts_with("webhook-")
        || name.starts_with("proxy-")
        || matches!(
            name,
            "host"
                | "connection"
                | "content-length"
                | "content-type"
                | "content-encoding"
                | "transfer-encoding"
                | "accept-encoding"
                | "expect"
                | "keep-alive"
                | "te"
                | "trailer"
                | "upgrade"
                | "user-agent"
        )
}

/// The message that a new target must answer with 2xx.
pub(crate) struct Challenge<'a> {
    pub(crate) endpoint: WebhookId,
    pub(crate) form: WebhookForm,
    pub(crate) secrets: &'a EndpointSecrets,
}

impl Challenge<'_> {
    /// Sends it; 422 unless the answer is a success.
    pub(crate) async fn pass(
        &self,
        state: &AuthState,
        workspace: &Workspace,
        now: Timestamp,
    ) -> Result<(), ConsoleError> {
        let Some(_turn) = state.looks().take(workspace.id, LONGEST_WAIT).await else {
            return Err(ConsoleError::busy(
                5,
                "Other requests of this workspace are running. Try again in a moment.",
            ));
        };
        let event = OutboxEvent {
            tenant: workspace.id,
            id: EventId::generate(),
            kind: event::VERIFY.to_owned(),
            at: now,
            data: json!({
                "workspace": workspace.id,
                "endpoint": self.endpoint,
                "text": format!("Alerts of the workspace {} arrive here.", workspace.name),
            }),
        };
        let message = WebhookMessage::of(&event, self.form);
        let signing = self.secrets.signing(None, now);
        let headers = message.headers(&self.secrets.headers, &signing, now);
        let sender = WebhookSender {
            egress: state.egress.clone(),
            clock: state.clock.clone(),
            timeout: TIMEOUT,
        };
        let exchange = sender.post(&self.secrets.url, headers, message.body).await;
        if exchange.is_accepted() {
            return Ok(());
        }
        let fault = match (exchange.result.status, exchange.result.fault) {
            (Some(status), _) => format!("it answered {status}"),
            (None, Some(fault)) => fault,
            (None, None) => "there was no answer".to_owned(),
        };
        Err(ConsoleError::invalid(
            "not_verified",
            format!("The address must answer a signed endpoint.verify with 2xx: {fault}."),
        )
        .field("url"))
    }
}
