//! Input of the console's API: bodies, queries, ids and cursors, each with refusals in the API's
//! form.

use axum::{
    RequestPartsExt,
    body::Bytes,
    extract::{FromRequest, FromRequestParts, RawPathParams, Request, rejection::BytesRejection},
};
use http::{HeaderMap, StatusCode, header, request::Parts};
use portolan_keys::{Keys, Purpose};
use portolan_model::id::{Id, Kind, TenantId};
use portolan_site::console_error::ConsoleError;
use serde::de::DeserializeOwned;

/// A JSON body.
///
/// 415 for another content type, 413 if it is too large, 400 if it is no JSON. 422 with the path of
/// the fault if a member is missing or of the wrong type.
#[derive(Debug)]
pub struct JsonBody<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for JsonBody<T> {
    type Rejection = ConsoleError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ConsoleError> {
        // Other sites can send forms and text/plain without a preflight, but not JSON (AUTH-S5).
        if !is_json(request.headers()) {
            return Err(ConsoleError::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "unsupported_media_type",
                "Send JSON, with content-type application/json.",
            ));
        }
        let bytes = Bytes::from_request(request, state)
            .await
            .map_err(unreadable)?;
        let mut reader = serde_json::Deserializer::from_slice(&bytes);
        let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
            let path = error.path().to_string();
            let fault = error.into_inner();
            if fault.is_data() {
                let error = ConsoleError::invalid("invalid_body", sentence(&fault.to_string()));
                if path == "." {
                    error
                } else {
                    error.field(path)
                }
            } else {
                no_json(&fault)
            }
        })?;
        reader.end().map_err(|fault| no_json(&fault))?;
        Ok(Self(value))
    }
}

/// The refusal of a body that did not arrive.
pub(crate) fn unreadable(rejection: BytesRejection) -> ConsoleError {
    if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
        ConsoleError::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "too_large",
            "The request is larger than this address takes.",
        )
    } else {
        ConsoleError::new(
            StatusCode::BAD_REQUEST,
            "unreadable_body",
            "The request ended early. Please send it again.",
        )
        .caused_by(rejection)
    }
}

fn no_json(fault: &serde_json::Error) -> ConsoleError {
    ConsoleError::new(
        StatusCode::BAD_REQUEST,
        "invalid_json",
        format!(
            "The body is not JSON: fault at line {}, column {}.",
            fault.line(),
            fault.column()
        ),
    )
}

fn is_json(headers: &HeaderMap) -> bool {
    let Some(value) = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
    else {
        return false;
    };
    value
        .split(';')
        .next()
        .is_some_and(|media_type| media_type.trim().eq_ignore_ascii_case("application/json"))
}

fn sentence(text: &str) -> String {
    // serde_json adds the fault's position in the text; the path is clearer.
    let text = text.split(" at line ").next().unwrap_or(text);
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| {
        format!("{}{}.", first.to_uppercase(), chars.as_str())
    })
}

/// A query string. 422 with the parameter's name if a value is not readable.
#[derive(Debug)]
pub struct QueryParameters<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for QueryParameters<T> {
    type Rejection = ConsoleError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ConsoleError> {
        axum::extract::Query::<T>::try_from_uri(&parts.uri)
            .map(|axum::extract::Query(value)| Self(value))
            .map_err(|rejection| {
                ConsoleError::invalid("invalid_query", sentence(&rejection.body_text()))
            })
    }
}

/// The id in a path. A malformed id or one of another kind gets the answer for an unknown id: 404
/// (CASE-106).
#[derive(Debug)]
pub struct PathId<K: Kind>(pub Id<K>);

impl<S: Send + Sync, K: Kind> FromRequestParts<S> for PathId<K> {
    type Rejection = ConsoleError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ConsoleError> {
        path_parameter(parts, "id")
            .await?
            .parse()
            .map(Self)
            .map_err(|_| ConsoleError::not_found("this item"))
    }
}

/// A further id in a path, with its name there.
pub trait Part {
    /// Name in the path.
    const NAME: &'static str;
    /// Kind of the id.
    type Kind: Kind;
}

/// The id in the part of a path that `P` names. 404 for a malformed id, as with [`PathId`].
#[derive(Debug)]
pub struct PathPart<P: Part> {
    /// The id.
    pub id: Id<P::Kind>,
}

impl<S: Send + Sync, P: Part> FromRequestParts<S> for PathPart<P> {
    type Rejection = ConsoleError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ConsoleError> {
        path_parameter(parts, P::NAME)
            .await?
            .parse()
            .map(|id| Self { id })
            .map_err(|_| ConsoleError::not_found("this item"))
    }
}

/// Reads a named part of the path.
pub(crate) async fn path_parameter(
    parts: &mut Parts,
    name: &'static str,
) -> Result<String, ConsoleError> {
    let parameters = parts
        .extract::<RawPathParams>()
        .await
        .map_err(|_| ConsoleError::not_found("this address"))?;
    let found = parameters
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, value)| value.to_owned());
    found.ok_or_else(|| ConsoleError::internal("path parameter", name))
}

/// A longer text of a person, trimmed. An empty text becomes `None`.
pub(crate) fn plain_text<'t>(
    field: &'static str,
    text: &'t str,
    most: usize,
) -> Result<Option<&'t str>, ConsoleError> {
    let text = text.trim();
    if text.chars().count() > most
        || text
            .chars()
            .any(|c| c.is_control() && !matches!(c, '\n' | '\t'))
    {
        return Err(ConsoleError::invalid(
            "text_invalid",
            format!("Use up to {most} characters of plain text."),
        )
        .field(field));
    }
    Ok((!text.is_empty()).then_some(text))
}

/// Makes a cursor for the next page of `list` in a workspace. Only this service can read it, and
/// only for that list.
pub fn cursor(keys: &Keys, list: &'static str, workspace: TenantId, position: &[u8]) -> String {
    keys.stamp(Purpose::Cursor, &cursor_scope(list, workspace), position)
}

/// Reads a cursor of [`cursor`]. 422 for anything else.
pub fn read_cursor(
    keys: &Keys,
    list: &'static str,
    workspace: TenantId,
    text: &str,
) -> Result<Vec<u8>, ConsoleError> {
    keys.read_stamp(Purpose::Cursor, &cursor_scope(list, workspace), text)
        .ok_or_else(|| {
            ConsoleError::invalid(
                "invalid_cursor",
                "This cursor is not of this list. Start from the first page.",
            )
            .field("cursor")
        })
}

fn cursor_scope(list: &str, workspace: TenantId) -> Vec<u8> {
    format!("console {list} {workspace}").into_bytes()
}

/// For members of a change where an absent value and null differ: absent leaves the value, null
/// resets it.
pub(crate) fn given<'de, D, T>(deserializer: D) -> Result<Option<Option<T>>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: serde::Deserialize<'de>,
{
    serde::Deserialize::deserialize(deserializer).map(Some)
}
