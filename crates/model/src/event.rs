//! Events that a workspace can subscribe to: their types, the fields of their data, and the audit
//! entries that they reports (HOOK-1, HOOK-2).

use serde_json::{Map, Value, json};

use crate::audit::{Actor, Event};

/// The form of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventFieldForm {
    /// An id with this prefix.
    Id(&'static str),
    /// Plain text.
    Text,
    /// A whole number, 0 or more.
    Count,
    /// RFC 3339.
    Time,
    /// One of these words.
    OneOf(&'static [&'static str]),
}

/// A field of an event's data.
#[derive(Debug, Clone, Copy)]
pub struct EventField {
    /// Its name.
    pub name: &'static str,
    /// Its form.
    pub form: EventFieldForm,
    /// False if it can be absent.
    pub required: bool,
    /// Its meaning, as a sentence.
    pub meaning: &'static str,
}

const fn field(name: &'static str, form: EventFieldForm, meaning: &'static str) -> EventField {
    EventField {
        name,
        form,
        required: true,
        meaning,
    }
}

const fn maybe(name: &'static str, form: EventFieldForm, meaning: &'static str) -> EventField {
    EventField {
        name,
        form,
        required: false,
        meaning,
    }
}

use EventFieldForm::{Count, Id, OneOf, Text, Time};

/// In the data of every event.
pub const WORKSPACE: EventField = field("workspace", Id("ten"), "The workspace.");
const ACTOR: EventField = field(
    "actor",
    Text,
    "The person who acted (`usr_…`), or `system`, `operator` or `anonymous`.",
);
const SOURCE: EventField = field("source", Id("src"), "The source.");
const SOURCE_NAME: EventField = field("name", Text, "Name of the source.");
const SERVER: EventField = field("server", Id("srv"), "The server.");
const SERVER_NAME: EventField = field("name", Text, "Name of the server.");
const SLUG: EventField = maybe("slug", Text, "The server's name in its URL.");
const REASON: EventField = maybe("reason", Text, "Why it ended, as a code.");
const GRANT: EventField = field("grant", Id("gr"), "The connection of the app.");
const CLIENT_NAME: EventField = maybe("client_name", Text, "Name of the client, as it gives it.");
const CLIENT_ID: EventField = maybe("client_id", Text, "The client's `client_id`.");
const USER: EventField = field("user", Id("usr"), "The member.");
const ROLES: &[&str] = &["viewer", "member", "developer", "admin", "owner"];
const ROLE: EventField = maybe("role", OneOf(ROLES), "The role of the member.");
const KEY: EventField = field("key", Id("key"), "The API key.");
const KEY_NAME: EventField = maybe("name", Text, "Name of the key.");
const HOOK: EventField = field("endpoint", Id("whk"), "The webhook endpoint.");
const ALERT: EventField = field("alert", Id("alr"), "The alert.");
const RULE: EventField = field("rule", Text, "The rule that fired.");
const TEXT: EventField = field("text", Text, "The alert as a sentence.");
const SUBJECT: EventField = field("subject", Text, "Id of the item that the alert concerns.");

macro_rules! event_types {
    ($($(#[$doc:meta])* $kind:ident $name:literal $summary:literal [$($field:expr),* $(,)?];)*) => {
        /// The type of an event.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum EventType {$(
            #[doc = $summary]
            $kind,
        )*}

        impl EventType {
            /// Every type, in the order of the catalogue.
            pub const ALL: &[Self] = &[$(Self::$kind,)*];

            /// Its name on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$kind => $name,)* }
            }

            /// Its occasion, as a sentence.
            pub const fn summary(self) -> &'static str {
                match self { $(Self::$kind => $summary,)* }
            }

            /// The fields of its data beside [`WORKSPACE`].
            pub const fn fields(self) -> &'static [EventField] {
                match self { $(Self::$kind => { const FIELDS: &[EventField] = &[$($field),*]; FIELDS })* }
            }
        }
    };
}

event_types! {
    CredentialRefused "credential.refused" "An API refused the credential of a source that worked before." [
        SOURCE, SOURCE_NAME, field("status", Count, "HTTP status of the answer.")];
    CredentialRestored "credential.restored" "An API accepts the credential of a source again." [SOURCE, SOURCE_NAME];
    UpstreamFailed "upstream.failed" "An upstream MCP server could not be read twice in a row." [
        SOURCE, SOURCE_NAME, field("reason", Text, "The fault, as a sentence.")];
    UpstreamRestored "upstream.restored" "An upstream MCP server that had failed answers again." [SOURCE, SOURCE_NAME];
    UpstreamChanged "upstream.changed" "An upstream MCP server offers other tools, prompts or resources." [
        SOURCE, SOURCE_NAME, field("changes", Count, "Number of changes."),
        field("state", OneOf(&["applied", "held"]), "Whether the changes apply, or wait for approval.")];
    ClientRequested "client.requested" "A person requested an AI client that an administrator has to allow." [
        field("client", Id("cli"), "The client."), CLIENT_NAME, CLIENT_ID, ACTOR];
    ClientDecided "client.decided" "An administrator decided about an AI client." [
        field("client", Id("cli"), "The client."), CLIENT_NAME, CLIENT_ID,
        field("decision", OneOf(&["allowed", "blocked", "dismissed"]), "The decision."), ACTOR];
    ErrorRateExceeded "error_rate.exceeded" "The share of failed calls of a server reached the threshold." [
        SERVER, SERVER_NAME, field("slug", Text, "The server's name in its URL."),
        field("calls", Count, "Calls of the last `minutes`."), field("failed", Count, "Failed ones of them."),
        field("percent", Count, "The threshold: percent of failed calls."),
        field("minutes", Count, "The minutes that the rule counts.")];
    ErrorRateRecovered "error_rate.recovered" "The share of failed calls of a server was below the threshold for all of the rule's minutes." [
        SERVER, SERVER_NAME, field("since", Time, "When the share reached the threshold.")];
    QuotaNear "quota.80" "Calls of a minute reached 80 % of the limit of the workspace, or the share that it set, for the first time in this hour." [
        field("limit", Text, "Name of the limit."), field("used", Count, "Calls of the busiest minute."),
        field("allowed", Count, "The limit: calls a minute."), field("percent", Count, "The threshold: percent of the limit.")];
    QuotaReached "quota.100" "A limit of the workspace refused requests, for the first time in this hour." [
        field("limit", Text, "Name of the limit."), field("refused", Count, "Requests refused so far.")];
    ServerPublished "server.published" "A server was published." [SERVER, SLUG, ACTOR];
    ServerPaused "server.paused" "A server was paused." [SERVER, SLUG, ACTOR];
    GrantCreated "grant.created" "A person connected an app." [GRANT, CLIENT_NAME, CLIENT_ID, ACTOR];
    GrantRevoked "grant.revoked" "The connection of an app ended." [GRANT, CLIENT_NAME, CLIENT_ID, REASON, ACTOR];
    MemberJoined "member.joined" "A person joined the workspace." [USER, ROLE, ACTOR];
    MemberLeft "member.left" "A member left the workspace." [USER, ROLE, ACTOR];
    MemberRemoved "member.removed" "A member was removed from the workspace." [USER, ROLE, ACTOR];
    MemberRoleChanged "member.role_changed" "The role of a member changed." [USER, ROLE,
        maybe("role_before", OneOf(ROLES), "The role before."), ACTOR];
    KeyCreated "key.created" "An API key was created." [KEY, KEY_NAME, ACTOR];
    KeyRevoked "key.revoked" "An API key was revoked." [KEY, REASON, ACTOR];
    KeyExpiring "key.expiring" "An API key expires in 14, 3 or 1 days." [
        KEY, KEY_NAME, field("expires_at", Time, "When it expires."), field("days", Count, "Days until then: 14, 3 or 1.")];
    CredentialExpiring "credential.expiring" "A credential expires within 7 days, or the days that the workspace set." [
        field("credential", Text, "Id of the access token (`tok_…`), or of the source whose account it is (`src_…`)."),
        field("kind", OneOf(&["access_token", "account"]),
            "`access_token`: of the management API. `account`: of the workspace at an API or MCP server."),
        field("name", Text, "Name of the token or of the source."), field("expires_at", Time, "When it expires."),
        field("days", Count, "Days until then, rounded up.")];
    EndpointDisabled "endpoint.disabled" "A webhook endpoint was disabled, because deliveries failed for five days or it answered 410." [
        HOOK, field("reason", OneOf(&["failing", "gone"]), "`failing`: five days of failures. `gone`: the answer 410.")];
    EndpointEnabled "endpoint.enabled" "A webhook endpoint was enabled again." [HOOK, ACTOR];
    AlertFired "alert.fired" "An alert began, or still stands after four hours." [ALERT, RULE, SUBJECT, TEXT,
        field("severity", OneOf(&["info", "warning", "critical"]), "Its severity.")];
    AlertResolved "alert.resolved" "The reason of an alert is gone." [ALERT, RULE, SUBJECT, TEXT];
}

/// Type of the message that a new endpoint must answer. It is no event, and has no catalogue entry.
pub const VERIFY: &str = "endpoint.verify";

/// Type of the message that a person sends to try an endpoint.
pub const TEST: &str = "endpoint.test";

impl EventType {
    /// Reads the name on the wire.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|one| one.as_str() == name)
    }

    /// The JSON Schema (2020-12) of the whole message, at `id`. Consumers ignore fields that they do
    /// not know: a new field is no new version (HOOK-2).
    pub fn schema(self, id: &str) -> Value {
        let mut properties = Map::new();
        let mut required = Vec::new();
        for one in std::iter::once(&WORKSPACE).chain(self.fields()) {
            properties.insert(one.name.to_owned(), one.schema());
            if one.required {
                required.push(one.name);
            }
        }
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$id": id,
            "title": self.as_str(),
            "description": self.summary(),
            "type": "object",
            "required": ["type", "timestamp", "data"],
            "properties": {
                "type": { "const": self.as_str() },
                "timestamp": { "type": "string", "format": "date-time", "description": "Time of the change." },
                "data": { "type": "object", "required": required, "properties": properties },
            },
        })
    }
}

impl EventField {
    fn schema(&self) -> Value {
        let mut schema = match self.form {
            Id(prefix) => {
                json!({ "type": "string", "pattern": format!("^{prefix}_[0-9a-f]{{32}}$") })
            }
            Text => json!({ "type": "string" }),
            Count => json!({ "type": "integer", "minimum": 0 }),
            Time => json!({ "type": "string", "format": "date-time" }),
            OneOf(words) => json!({ "type": "string", "enum": words }),
        };
        if let Some(members) = schema.as_object_mut() {
            members.insert("description".to_owned(), self.meaning.into());
        }
        schema
    }
}

/// The event that an audit entry reports, with its data but the workspace. `None` for entries that
/// no subscription covers.
pub fn of_audit(entry: &Event) -> Option<(EventType, Value)> {
    let (kind, target) = match entry.action {
        "server.published" => (EventType::ServerPublished, "server"),
        "server.paused" => (EventType::ServerPaused, "server"),
        "grant.created" => (EventType::GrantCreated, "grant"),
        "grant.revoked" | "grant.ended" | "refresh.reuse" => (EventType::GrantRevoked, "grant"),
        "member.joined" | "member.joined_by_sso" => (EventType::MemberJoined, "user"),
        "member.left" => (EventType::MemberLeft, "user"),
        "member.removed" => (EventType::MemberRemoved, "user"),
        "member.role_changed" => (EventType::MemberRoleChanged, "user"),
        "client.requested" => (EventType::ClientRequested, "client"),
        "client.allowed" | "client.blocked" | "client.request_dismissed" => {
            (EventType::ClientDecided, "client")
        }
        "api_key.created" => (EventType::KeyCreated, "key"),
        "api_key.revoked" => (EventType::KeyRevoked, "key"),
        "webhook.enabled" => (EventType::EndpointEnabled, "endpoint"),
        _ => return None,
    };
    let detail = &entry.detail;
    let mut data = Map::new();
    data.insert(target.to_owned(), entry.target_id.as_str().into());
    let mut take = |name: &str, value: Option<&str>| {
        if let Some(value) = value {
            data.insert(name.to_owned(), value.into());
        }
    };
    take("client_name", detail["client"].as_str());
    take("client_id", detail["client_id"].as_str());
    match kind {
        EventType::GrantRevoked => {
            let reason = match entry.action {
                "refresh.reuse" => Some("refresh_reuse"),
                _ => detail["reason"].as_str(),
            };
            take("reason", reason);
        }
        EventType::MemberRoleChanged => {
            take("role", detail["role"]["to"].as_str());
            take("role_before", detail["role"]["from"].as_str());
        }
        EventType::MemberJoined | EventType::MemberLeft | EventType::MemberRemoved => {
            take("role", detail["role"].as_str());
        }
        EventType::ClientDecided => take(
            "decision",
            Some(match entry.action {
                "client.allowed" => "allowed",
                "client.blocked" => "blocked",
                _ => "dismissed",
            }),
        ),
        EventType::KeyCreated => take("name", detail["name"].as_str()),
        EventType::KeyRevoked => take("reason", detail["why"].as_str()),
        EventType::ServerPublished | EventType::ServerPaused => {
            take("slug", detail["slug"].as_str());
        }
        _ => {}
    }
    take("actor", Some(&actor_word(entry.actor)));
    Some((kind, Value::Object(data)))
}

fn actor_word(actor: Actor) -> String {
    match actor {
        Actor::User(user) => user.to_string(),
        Actor::Token(token) => token.to_string(),
        Actor::ServiceAccount(account) => account.to_string(),
        Actor::Anonymous => "anonymous".to_owned(),
        Actor::System => "system".to_owned(),
        Actor::Operator => "operator".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{
        audit::Outcome,
        id::{ServerId, TenantId, UserId},
    };

    fn entry(action: &'static str, target: String, detail: Value) -> Event {
        Event {
            tenant: Some(TenantId::generate()),
            actor: Actor::User(UserId::generate()),
            action,
            target_kind: "x",
            target_id: target,
            outcome: Outcome::Ok,
            detail,
        }
    }

    /// Rule: HOOK-2
    #[test]
    fn names_of_event_types_are_unique_and_read_back() {
        let names: BTreeSet<_> = EventType::ALL.iter().map(|one| one.as_str()).collect();
        assert_eq!(names.len(), EventType::ALL.len());
        for one in EventType::ALL {
            assert_eq!(EventType::parse(one.as_str()), Some(*one));
            assert_eq!(
                one.schema("https://x/")["properties"]["type"]["const"],
                one.as_str()
            );
        }
        assert_eq!(EventType::parse(VERIFY), None);
    }

    /// Rule: HOOK-1
    #[test]
    fn data_of_an_audit_entry_has_the_fields_of_its_type() {
        let user = UserId::generate().to_string();
        let cases = [
            entry(
                "server.published",
                ServerId::generate().to_string(),
                json!({}),
            ),
            entry(
                "member.role_changed",
                user.clone(),
                json!({"role": {"from": "member", "to": "admin"}}),
            ),
            entry(
                "member.joined",
                user,
                json!({"role": "member", "inviter": "x"}),
            ),
            entry(
                "grant.created",
                "gr_1".to_owned(),
                json!({"client": "C", "client_id": "c", "scope": "mcp"}),
            ),
            entry(
                "refresh.reuse",
                "gr_1".to_owned(),
                json!({"client_id": "c"}),
            ),
            entry("client.blocked", "cli_1".to_owned(), json!({})),
            entry(
                "api_key.created",
                "key_1".to_owned(),
                json!({"name": "CI", "holder": "x"}),
            ),
        ];
        for case in cases {
            let (kind, data) = of_audit(&case).unwrap();
            let known: BTreeSet<_> = kind.fields().iter().map(|one| one.name).collect();
            let data = data.as_object().unwrap();
            for name in data.keys() {
                assert!(known.contains(name.as_str()), "{} {name}", case.action);
            }
            for one in kind.fields().iter().filter(|one| one.required) {
                assert!(data.contains_key(one.name), "{} {}", case.action, one.name);
            }
        }
        assert!(of_audit(&entry("source.created", String::new(), json!({}))).is_none());
    }
}
