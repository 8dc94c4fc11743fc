//! Events of a workspace as server-sent events, for programs without a public address (HOOK-27 to
//! HOOK-29, HOOK-31).

use std::time::Duration;

use axum::{extract::State, response::Response};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::HeaderMap;
use portolan_keys::{KeysError, Purpose};
use portolan_model::{event::EventType, id::TenantId, member::Action};
use portolan_net::sse_body::SseBody;
use portolan_protocol::sse;
use portolan_site::{console_error::ConsoleError, state::AuthState, watchers::Watching};
use portolan_storage::webhooks::{
    endpoints::WebhookForm,
    numbered::{self, NumberRange, NumberedEvent},
};
use portolan_webhooks::message::WebhookMessage;
use serde::Deserialize;
use time::{OffsetDateTime, format_description::well_known::Rfc3339};
use utoipa::IntoParams;

use super::deliveries::KEPT;
use crate::{caller::Caller, input::QueryParameters, workspace::Workspace};

/// Time between two looks.
const LOOK: Duration = Duration::from_secs(1);

/// Most events of one look, and so of a second (HOOK-29).
const MOST: i64 = 100;

/// After so many looks the stream ends, and the client opens another one: a stopping process does
/// not wait for long.
const LOOKS: u32 = 20;

/// Most characters of a type in a refusal.
const SHOWN: usize = 60;

const CROWDED: &str = "Too many programs listen to events. End one, or try again in a moment.";

/// The wanted events.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct LiveEvents {
    /// Types, separated by commas. `server.*` stands for all that begin so. All, if absent.
    #[serde(default)]
    events: Option<String>,
    /// Also retained events from this time on (RFC 3339). `Last-Event-ID` wins over it.
    #[serde(default)]
    since: Option<String>,
}

/// The state of a stream.
struct Listening {
    state: AuthState,
    workspace: Workspace,
    /// Types; all if there are none.
    types: Vec<String>,
    /// Number of the last event that was read.
    position: i64,
    /// The position that the client knows.
    told: i64,
    looks: u32,
    _place: Watching,
}

/// Events of one look.
struct ReadEvents {
    events: Vec<NumberedEvent>,
    /// Number up to which the log is read.
    position: i64,
}

/// Events of the workspace as they happen, as server-sent events. For admins and owners.
///
/// The data of each is `{"id": "evt_…", "message": {…}}`: the `webhook-id` and the body of a
/// delivery. The first event has an id and no data. A client that connects again with
/// `Last-Event-ID` gets every retained event after it, once. Without it and without `since` the
/// stream begins now. It ends after some 20 s, and when the caller may read it no longer; clients
/// open it again. It carries at most 100 events a second. A person or token has 8 at once; beyond
/// that the answer is 429 `too_many_listeners`.
#[utoipa::path(get, path = "/workspaces/{ws}/events/live", tag = "webhooks",
    params(("ws" = String, Path, description = "Slug"), LiveEvents,
        ("Last-Event-ID" = Option<String>, Header, description = "Id of the last event that the client read.")),
    responses((status = 200, description = "Events.", body = serde_json::Value, content_type = "text/event-stream")))]
pub(crate) async fn listen_to_events(
    State(state): State<AuthState>,
    workspace: Workspace,
    QueryParameters(wanted): QueryParameters<LiveEvents>,
    headers: HeaderMap,
) -> Result<Response, ConsoleError> {
    workspace.require(Action::Administer)?;
    let types = wanted.types()?;
    let since = wanted.since(state.now())?;
    let last = last_event(&state, &workspace, &headers)?;
    let caller = match &workspace.caller {
        Caller::Browser(session) => session.user.to_string(),
        Caller::Token(token) => token.id.to_string(),
    };
    let place = state.listeners().take(workspace.id, &caller);
    let crowded = || ConsoleError::too_much("too_many_listeners", CROWDED, 20);
    let place = place.ok_or_else(crowded)?;
    let mut tx = state.store.tenant(workspace.id).await?;
    let newest = numbered::newest(&mut tx).await?;
    let position = match (last, since) {
        // A restored database has smaller numbers than before.
        (Some(last), _) => last.min(newest),
        (None, Some(since)) => numbered::before(&mut tx, since).await?.unwrap_or(newest),
        (None, None) => newest,
    };
    drop(tx);
    let listening = Listening {
        types,
        position,
        told: position,
        looks: 0,
        _place: place,
        state,
        workspace,
    };
    let first = Bytes::from(sse::priming(&listening.cursor(position)?));
    let rest = stream::unfold(listening, |mut listening| async move {
        let frames = listening.next().await?;
        Some((frames, listening))
    });
    // A client has its place in the stream before anything can be cut off.
    let frames = stream::once(async { first }).chain(rest);
    Ok(SseBody::new(frames).into_response())
}

impl LiveEvents {
    /// The types, in the order of the catalogue, each once; none if all are wanted.
    fn types(&self) -> Result<Vec<String>, ConsoleError> {
        let Some(text) = &self.events else {
            return Ok(Vec::new());
        };
        let patterns: Vec<&str> = text.split(',').map(str::trim).collect();
        for pattern in &patterns {
            if !EventType::ALL.iter().any(|kind| fits(*kind, pattern)) {
                let shown: String = pattern.chars().take(SHOWN).collect();
                return Err(ConsoleError::invalid(
                    "events_invalid",
                    format!("There is no event of the type {shown:?}."),
                )
                .field("events"));
            }
        }
        let chosen = EventType::ALL
            .iter()
            .filter(|kind| patterns.iter().any(|pattern| fits(**kind, pattern)));
        Ok(chosen.map(|kind| kind.as_str().to_owned()).collect())
    }

    /// The time from which retained events are wanted.
    fn since(&self, now: OffsetDateTime) -> Result<Option<OffsetDateTime>, ConsoleError> {
        let Some(text) = &self.since else {
            return Ok(None);
        };
        let since = OffsetDateTime::parse(text, &Rfc3339).ok();
        let since = since.filter(|since| *since <= now && now - *since <= KEPT);
        since.map(Some).ok_or_else(|| {
            ConsoleError::invalid(
                "since_invalid",
                "Events are kept for 30 days. Give a time within them, such as 2026-11-26T08:00:00Z.",
            )
            .field("since")
        })
    }
}

/// Returns true if a type is meant: by its name, by `server.*`, or by `*`.
fn fits(kind: EventType, pattern: &str) -> bool {
    let name = kind.as_str();
    match pattern.strip_suffix('*') {
        Some("") => true,
        Some(beginning) => beginning.ends_with('.') && name.starts_with(beginning),
        None => name == pattern,
    }
}

/// The binding of a position: the stream of this workspace.
fn scope(workspace: TenantId) -> Vec<u8> {
    format!("events {workspace}").into_bytes()
}

/// The number behind `Last-Event-ID`. 422 if it is not of this stream.
fn last_event(
    state: &AuthState,
    workspace: &Workspace,
    headers: &HeaderMap,
) -> Result<Option<i64>, ConsoleError> {
    let Some(value) = headers.get("last-event-id") else {
        return Ok(None);
    };
    let number = URL_SAFE_NO_PAD.decode(value).ok().and_then(|sealed| {
        let scope = scope(workspace.id);
        let opened = state
            .keys
            .open(Purpose::Cursor, &sealed, &scope, state.now());
        let bytes = opened.ok()?.expose().as_slice().try_into().ok()?;
        Some(i64::from_be_bytes(bytes))
    });
    number.map(Some).ok_or_else(|| {
        ConsoleError::invalid(
            "invalid_cursor",
            "This Last-Event-ID is not of this stream. Begin without it.",
        )
    })
}

impl Listening {
    /// A position as the client keeps it. Sealed: numbers count the events of all workspaces.
    fn cursor(&self, position: i64) -> Result<String, KeysError> {
        let (position, scope) = (position.to_be_bytes(), scope(self.workspace.id));
        let sealed = self.state.keys.seal(Purpose::Cursor, &position, &scope)?;
        Ok(URL_SAFE_NO_PAD.encode(sealed))
    }

    /// The next frames; `None` at the end of the stream.
    async fn next(&mut self) -> Option<Bytes> {
        while self.looks < LOOKS {
            if self.looks > 0 {
                tokio::time::sleep(LOOK).await;
            }
            self.looks += 1;
            match self.look().await {
                Ok(frames) if !frames.is_empty() => return Some(frames),
                Ok(_) => {}
                // A database that is away for a moment: the next look sends what this one missed.
                Err(error) if error.status().is_server_error() => {}
                Err(_) => return None,
            }
        }
        // Events that are not wanted are behind: a client need not begin before them.
        if self.position == self.told {
            return None;
        }
        self.told = self.position;
        let cursor = self.cursor(self.position).ok()?;
        Some(Bytes::from(sse::priming(&cursor)))
    }

    /// The frames of events that were not read yet. A refusal if the caller may read no longer, with
    /// or without an event (HOOK-31).
    async fn look(&mut self) -> Result<Bytes, ConsoleError> {
        let read = self.read().await?;
        // After the events were read: none is sent that is younger than the caller's rights.
        self.workspace = self.workspace.again(&self.state).await?;
        self.workspace.require(Action::Administer)?;
        let mut frames = Vec::new();
        for event in &read.events {
            frames.extend_from_slice(&self.frame(event)?);
        }
        if let Some(last) = read.events.last() {
            self.told = last.number;
        }
        self.position = read.position;
        Ok(Bytes::from(frames))
    }

    /// The wanted events after the position, [`MOST`] of them.
    async fn read(&self) -> Result<ReadEvents, ConsoleError> {
        let mut tx = self.state.store.tenant(self.workspace.id).await?;
        // First the end of the range, and then its events: all of them are visible.
        let upto = numbered::newest(&mut tx).await?;
        // Also where it is smaller: retention took the newest, or the database is restored.
        if upto <= self.position {
            return Ok(ReadEvents {
                events: Vec::new(),
                position: upto,
            });
        }
        let range = NumberRange {
            after: self.position,
            upto,
        };
        let events = numbered::list(&mut tx, range, &self.types, MOST).await?;
        let is_whole = i64::try_from(events.len()).is_ok_and(|count| count < MOST);
        let position = match events.last() {
            Some(last) if !is_whole => last.number,
            _ => upto,
        };
        Ok(ReadEvents { events, position })
    }

    fn frame(&self, event: &NumberedEvent) -> Result<Vec<u8>, KeysError> {
        let message = WebhookMessage::of(&event.event, WebhookForm::Standard);
        // The body stays byte for byte what a delivery has.
        let mut data = format!(r#"{{"id":"{}","message":"#, message.id).into_bytes();
        data.extend_from_slice(&message.body);
        data.push(b'}');
        Ok(sse::message(Some(&self.cursor(event.number)?), &data))
    }
}
