//! Messages as they go out: bodies and signatures (HOOK-6, HOOK-12).

use http::{HeaderMap, HeaderName, HeaderValue, header};
use portolan_keys::WebhookSecret;
use portolan_model::{Timestamp, event::EventType};
use portolan_storage::webhooks::{deliveries::OutboxEvent, endpoints::WebhookForm};
use serde_json::{Value, json};
use time::format_description::well_known::Rfc3339;

/// A message.
#[derive(Debug, Clone)]
pub struct WebhookMessage {
    /// The `webhook-id`, the same in every attempt.
    pub id: String,
    /// The body, the same in every attempt.
    pub body: Vec<u8>,
}

impl WebhookMessage {
    /// The message of an event in the form of its endpoint.
    pub fn of(event: &OutboxEvent, form: WebhookForm) -> Self {
        Self {
            id: event.id.to_string(),
            body: match form {
                WebhookForm::Standard => standard(event),
                WebhookForm::Slack => json!({ "text": slack_text(event) }),
            }
            .to_string()
            .into_bytes(),
        }
    }

    /// The headers of one attempt: those of the endpoint, those of the specification over them, and a
    /// signature of each secret.
    pub fn headers(
        &self,
        own: &[(String, String)],
        secrets: &[WebhookSecret],
        now: Timestamp,
    ) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in own {
            if let (Ok(name), Ok(mut value)) = (
                HeaderName::try_from(name.as_str()),
                HeaderValue::try_from(value.as_str()),
            ) {
                value.set_sensitive(true);
                headers.insert(name, value);
            }
        }
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        );
        let timestamp = now.unix_timestamp();
        let signatures: Vec<String> = secrets
            .iter()
            .map(|secret| secret.sign(&self.id, timestamp, &self.body))
            .collect();
        let mut set = |name: &'static str, value: String| {
            if let Ok(value) = HeaderValue::try_from(value) {
                headers.insert(HeaderName::from_static(name), value);
            }
        };
        set("webhook-id", self.id.clone());
        set("webhook-timestamp", timestamp.to_string());
        if !signatures.is_empty() {
            set("webhook-signature", signatures.join(" "));
        }
        headers
    }
}

fn standard(event: &OutboxEvent) -> Value {
    json!({
        "type": event.kind,
        "timestamp": event.at.format(&Rfc3339).unwrap_or_default(),
        "data": event.data,
    })
}

/// One line for a channel of people. Characters that Slack reads as markup are escaped, so that a
/// name cannot mention a channel or hide a link.
fn slack_text(event: &OutboxEvent) -> String {
    let data = &event.data;
    let text = match EventType::parse(&event.kind) {
        Some(EventType::AlertFired) => text_of(data, "text").to_owned(),
        Some(EventType::AlertResolved) => format!("Resolved: {}", text_of(data, "text")),
        Some(kind) => {
            let facts: Vec<String> = kind
                .fields()
                .iter()
                .filter_map(|field| match &data[field.name] {
                    Value::Null => None,
                    Value::String(text) => Some(format!("{}: {text}", field.name)),
                    other => Some(format!("{}: {other}", field.name)),
                })
                .collect();
            format!("{} ({})", kind.summary(), facts.join(", "))
        }
        None => text_of(data, "text").to_owned(),
    };
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

fn text_of<'a>(data: &'a Value, name: &str) -> &'a str {
    data[name].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use portolan_model::id::{EventId, TenantId};

    use super::*;

    fn event(kind: &str, data: Value) -> OutboxEvent {
        OutboxEvent {
            tenant: TenantId::generate(),
            id: EventId::generate(),
            kind: kind.to_owned(),
            at: Timestamp::UNIX_EPOCH,
            data,
        }
    }

    /// Rule: HOOK-6
    #[test]
    fn own_headers_never_replace_those_of_the_specification() {
        let message = WebhookMessage::of(&event("server.paused", json!({})), WebhookForm::Standard);
        let secret = WebhookSecret::generate().unwrap();
        let own = [
            ("webhook-id".to_owned(), "forged".to_owned()),
            ("Authorization".to_owned(), "Bearer x".to_owned()),
        ];
        let headers = message.headers(&own, &[secret.clone(), secret], Timestamp::UNIX_EPOCH);
        assert_eq!(headers["webhook-id"], message.id);
        assert_eq!(headers["authorization"], "Bearer x");
        let signatures = headers["webhook-signature"].to_str().unwrap();
        assert_eq!(signatures.split(' ').count(), 2);
        assert!(signatures.split(' ').all(|one| one.starts_with("v1,")));
    }

    /// Rule: HOOK-12
    #[test]
    fn names_in_slack_messages_are_no_markup() {
        let data = json!({ "text": "The credential of <!channel> & co was refused." });
        let message = WebhookMessage::of(&event("alert.fired", data), WebhookForm::Slack);
        let body: Value = serde_json::from_slice(&message.body).unwrap();
        assert_eq!(
            body,
            json!({ "text": "The credential of &lt;!channel&gt; &amp; co was refused." })
        );
    }
}
