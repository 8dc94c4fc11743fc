//! The catalogue of events: JSON Schemas at `/schemas/events/<type>.v1.json`, and the page of the
//! documents (HOOK-2).

use std::fmt::Write as _;

use axum::{
    Router,
    extract::{Path, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use portolan_model::event::{EventField, EventFieldForm, EventType, WORKSPACE};
use portolan_net::layers::{Cors, PageKind, SecurityHeaders};
use portolan_site::state::AuthState;

/// Path of a type's schema.
pub fn schema_path(kind: EventType) -> String {
    format!("/schemas/events/{}.v1.json", kind.as_str())
}

/// The schemas, for programs of any origin.
pub fn router(state: &AuthState) -> Router<AuthState> {
    Router::new()
        .route("/schemas/events/{file}", get(schema))
        .layer(Cors::authorization_server().layer())
        .layer(SecurityHeaders::new(PageKind::Machine, state.site.is_secure()).layer())
}

async fn schema(State(state): State<AuthState>, Path(file): Path<String>) -> Response {
    let kind = file.strip_suffix(".v1.json").and_then(EventType::parse);
    let Some(kind) = kind else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let schema = kind.schema(&state.site.url(&schema_path(kind)));
    (
        [
            (header::CONTENT_TYPE, "application/schema+json"),
            (header::CACHE_CONTROL, "public, max-age=3600"),
        ],
        schema.to_string(),
    )
        .into_response()
}

/// The page `docs/events.md`.
pub fn page() -> String {
    let mut page = String::from(
        "# Events\n\n\
         The events that a webhook endpoint can subscribe to ([webhooks](webhooks.md)).\n\
         Made by `portolan emit events`; do not edit.\n\n\
         Each message is a JSON object with `type`, `timestamp` (RFC 3339) and `data`. Its schema is served at\n\
         `/schemas/events/<type>.v1.json`. A release can add fields; a changed meaning is a new version.\n\n\
         | Type | Occasion |\n|---|---|\n",
    );
    for kind in EventType::ALL {
        let name = kind.as_str();
        let _ = writeln!(
            page,
            "| [`{name}`](#{}) | {} |",
            anchor(name),
            kind.summary()
        );
    }
    for kind in EventType::ALL {
        let _ = write!(
            page,
            "\n## {}\n\n{}\n\n| Field of `data` | Form | Meaning |\n|---|---|---|\n",
            kind.as_str(),
            kind.summary()
        );
        for field in std::iter::once(&WORKSPACE).chain(kind.fields()) {
            let optional = if field.required { "" } else { ", optional" };
            let _ = writeln!(
                page,
                "| `{}` | {}{optional} | {} |",
                field.name,
                form(field),
                field.meaning
            );
        }
    }
    page
}

/// The anchor of a heading: dots go.
fn anchor(name: &str) -> String {
    name.replace('.', "")
}

fn form(field: &EventField) -> String {
    match field.form {
        EventFieldForm::Id(prefix) => format!("id `{prefix}_…`"),
        EventFieldForm::Text => "text".to_owned(),
        EventFieldForm::Count => "whole number".to_owned(),
        EventFieldForm::Time => "time, RFC 3339".to_owned(),
        EventFieldForm::OneOf(words) => words
            .iter()
            .map(|word| format!("`{word}`"))
            .collect::<Vec<_>>()
            .join(", "),
    }
}
