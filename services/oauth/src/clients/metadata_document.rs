//! Client ID metadata documents: the `client_id` is the URL of a document that describes the client
//! (AUTH-C1 to AUTH-C5).
//!
//! The URL comes from a stranger and this service fetches it, so three guards apply.
//! [`super::described`] checks the text of the URL and the document, the egress client checks the
//! address, and every size and time has a limit. Valid documents are stored, errors never. A stored
//! document serves until it is a day old while its host cannot be reached.

use std::time::Duration as StdDuration;

use http::{HeaderMap, HeaderValue, StatusCode, header};
use portolan_keys::digest;
use portolan_model::{
    audit::{Actor, Event, Outcome},
    client::ClientKind,
    id::ClientId,
};
use portolan_net::egress::{EgressError, EgressRequest, EgressResponse};
use portolan_site::{request_context::RequestContext, state::AuthState};
use portolan_storage::{
    Reason, StorageError,
    oauth::{
        client_documents::{self, Document},
        clients::{self, Client, NewClient},
    },
    platform::audit,
};
use serde_json::{Value, json};
use time::Duration;
use url::Url;

use crate::clients::{
    alone::{self, Turn},
    described::{Described, Unacceptable, check_url},
};

/// Largest document (AUTH-C2).
const MAX_BYTES: usize = 5 * 1024;

/// Deadline of a whole fetch (AUTH-C2).
const TIMEOUT: StdDuration = StdDuration::from_secs(5);

/// Freshness in seconds when the response does not state it.
const DEFAULT_FRESH: i64 = 3600;

/// Bounds of the stated freshness, in seconds (AUTH-C4).
const FRESH_BOUNDS: (i64, i64) = (300, 86_400);

/// Why a client of this kind cannot be used. The text is for the page that its user sees.
#[derive(Debug, thiserror::Error)]
pub enum DocumentFault {
    /// The `client_id` cannot be the URL of a document.
    #[error("the client id is not an acceptable URL: {0}")]
    Url(&'static str),
    /// Too many fetches for this requester.
    #[error("too many new apps were tried from your network, wait a minute")]
    TooMany,
    /// The document could not be fetched.
    #[error("the app's description could not be loaded from its address")]
    Fetch(#[source] EgressError),
    /// The response is not a document.
    #[error("the app's address did not answer with its description: {0}")]
    Answer(&'static str),
    /// The document breaks a rule.
    #[error("the app's description is not acceptable: {0}")]
    Content(&'static str),
    /// The database failed.
    #[error("storage failed")]
    Storage(#[from] StorageError),
}

impl From<Unacceptable> for DocumentFault {
    fn from(fault: Unacceptable) -> Self {
        match fault {
            Unacceptable::Url(why) => Self::Url(why),
            Unacceptable::Content(why) => Self::Content(why),
        }
    }
}

impl DocumentFault {
    /// The id of the broken rule.
    pub const fn rule(&self) -> &'static str {
        match self {
            Self::Url(_) => "C1",
            Self::Content(_) => "C3",
            Self::TooMany | Self::Fetch(_) | Self::Answer(_) | Self::Storage(_) => "C2",
        }
    }
}

/// The client that `client_id` describes, from the cache or freshly fetched.
pub async fn resolve(
    state: &AuthState,
    client_id: &str,
    context: &RequestContext,
) -> Result<Client, DocumentFault> {
    let url = check_url(client_id)?;
    if let Some((client, document)) = cached(state, client_id).await?
        && state.now() < document.fresh_until
    {
        return Ok(client);
    }
    // A task of its own continues when the first request is cancelled, because other requests wait
    // for the same fetch.
    let (task_state, task_visitor) = (state.clone(), context.clone());
    let text = client_id.to_owned();
    let task = async move { in_turn(&task_state, &text, url, &task_visitor).await };
    let done = state.oauth.fetches.tasks.spawn(task).await;
    done.unwrap_or(Err(DocumentFault::Answer("it could not be read")))
}

/// Fetches and stores the document when the turn is ours, in this process and in the cluster.
async fn in_turn(
    state: &AuthState,
    client_id: &str,
    url: Url,
    context: &RequestContext,
) -> Result<Client, DocumentFault> {
    let flight = state.oauth.fetches.flight(client_id);
    let _turn = flight.lock().await;
    // A request that waited finds the document that the first one stored.
    let known = cached(state, client_id).await?;
    if let Some((client, document)) = &known
        && state.now() < document.fresh_until
    {
        return Ok(client.clone());
    }
    let stale = |fault| match &known {
        Some((client, document)) if state.now() < document.stale_until => Ok(client.clone()),
        _ => Err(fault),
    };
    // Waiting for another node takes as long as a fetch, and counts as one.
    if take_fetch(state, context).is_err() {
        return stale(DocumentFault::TooMany);
    }
    let holder = match alone::wait(state, client_id).await? {
        Turn::Fetch(holder) => holder,
        // Another node fetched it meanwhile.
        Turn::Found(client) => {
            state.oauth.fetches.by_source.give_back(&context.ip_block());
            return Ok(*client);
        }
        Turn::Busy => return stale(DocumentFault::Answer("it took too long")),
    };
    let fetched = fetch_and_store(state, client_id, url, known.as_ref(), context).await;
    alone::give_back(state, client_id, holder).await;
    match fetched {
        Ok(client) => Ok(client),
        Err(fault @ DocumentFault::Storage(_)) => Err(fault),
        Err(fault) => {
            tracing::warn!(client.digest = ?digest(client_id.as_bytes()), error = %portolan_site::error_chain::chain(&fault), "client document not loaded");
            stale(fault)
        }
    }
}

/// The client as the token endpoint uses it. Its document is read again when it is old, or when a
/// key is missing in `stored`, once a minute at most (AUTH-C13). While the document cannot be read,
/// the stored one serves, whatever its age: an outage of its host ends no session (AUTH-C4).
pub(crate) async fn renewed(
    state: &AuthState,
    stored: Client,
    context: &RequestContext,
    is_key_missing: bool,
) -> Result<Client, DocumentFault> {
    let good = |client: &Client, document: &Document| {
        if is_key_missing {
            client.metadata_digest != stored.metadata_digest
        } else {
            state.now() < document.fresh_until
        }
    };
    let client_id = stored.client_id.as_str();
    let url = check_url(client_id)?;
    if let Some((client, document)) = cached(state, client_id).await?
        && good(&client, &document)
    {
        return Ok(client);
    }
    let flight = state.oauth.fetches.flight(client_id);
    let _turn = flight.lock().await;
    let Some(known) = cached(state, client_id).await? else {
        return Ok(stored);
    };
    let (client, document) = &known;
    let by_client = &state.oauth.fetches.by_client;
    if good(client, document) || by_client.take(client_id, state.now()).is_err() {
        return Ok(client.clone());
    }
    let Some(holder) = alone::at_once(state, client_id).await? else {
        return Ok(client.clone());
    };
    let fetched = match take_fetch(state, context) {
        Ok(()) => fetch_and_store(state, client_id, url, Some(&known), context).await,
        Err(_) => Err(DocumentFault::TooMany),
    };
    alone::give_back(state, client_id, holder).await;
    match fetched {
        Ok(client) => Ok(client),
        Err(fault @ DocumentFault::Storage(_)) => Err(fault),
        Err(fault) => {
            tracing::warn!(client.id = %client.id, error = %portolan_site::error_chain::chain(&fault), "client document not loaded");
            let is_bad = matches!(fault, DocumentFault::Content(_));
            if is_bad && state.now() >= document.stale_until {
                Err(fault)
            } else {
                Ok(client.clone())
            }
        }
    }
}

/// Takes a fetch from the budget of the requesting address (AUTH-C2), or returns how long to wait.
pub(crate) fn take_fetch(state: &AuthState, context: &RequestContext) -> Result<(), Duration> {
    if context.ip.is_loopback() && state.config.loopback_is_unthrottled {
        return Ok(());
    }
    let source = context.ip_block();
    state.oauth.fetches.by_source.take(&source, state.now())
}

pub(crate) async fn cached(
    state: &AuthState,
    url: &str,
) -> Result<Option<(Client, Document)>, StorageError> {
    let mut tx = state.store.system(Reason::OAuth).await?;
    match client_documents::find(&mut tx, url).await? {
        Some(document) => Ok(Some((
            clients::get(&mut tx, document.client).await?,
            document,
        ))),
        None => Ok(None),
    }
}

/// Fetches a document: plain JSON with status 200, within the bounds of AUTH-C2.
async fn fetch(state: &AuthState, url: Url) -> Result<EgressResponse, DocumentFault> {
    let mut request = EgressRequest::get(url);
    request.timeout = TIMEOUT;
    request.max_response_bytes = MAX_BYTES;
    request
        .headers
        .insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    let answer = state
        .egress
        .send(request)
        .await
        .map_err(DocumentFault::Fetch)?;
    if answer.status != StatusCode::OK {
        return Err(DocumentFault::Answer("its status is not 200"));
    }
    if !is_json(&answer.headers) || answer.headers.contains_key(header::CONTENT_ENCODING) {
        return Err(DocumentFault::Answer("it is not plain JSON"));
    }
    Ok(answer)
}

async fn fetch_and_store(
    state: &AuthState,
    client_id: &str,
    url: Url,
    known: Option<&(Client, Document)>,
    context: &RequestContext,
) -> Result<Client, DocumentFault> {
    let host = state.oauth.fetches.host(url.host_str().unwrap_or_default());
    let _permit = host.try_acquire().map_err(|_| DocumentFault::TooMany)?;
    let answer = fetch(state, url).await?;
    let described = Described::read(client_id, &answer.body)?;
    let now = state.now();
    let document = |client| Document {
        client,
        digest: digest(&answer.body),
        fresh_until: now + Duration::seconds(fresh_seconds(&answer.headers)),
        stale_until: now + Duration::DAY,
    };

    let metadata = Value::Object(described.metadata);
    let new = NewClient {
        id: known.map_or_else(ClientId::generate, |(client, _)| client.id),
        client_id,
        kind: ClientKind::Cimd,
        tenant: None,
        name: &described.name,
        metadata: &metadata,
        metadata_digest: digest(metadata.to_string().as_bytes()),
        auth_method: described.auth_method,
        application_type: described.application_type,
        grant_types: &described.grant_types,
        redirect_uris: &described.redirect_uris,
        secret: None,
        ip_block: Some(&context.ip_block()),
    };
    let mut tx = state.store.system(Reason::OAuth).await?;
    let client = match known {
        None => match clients::register(&mut tx, &new, now).await {
            // Another node was first: the document that it stored is as good.
            Err(error) if error.is_conflict_on("oauth_clients_client_id_key") => {
                drop(tx);
                return cached(state, client_id)
                    .await?
                    .map(|(client, _)| client)
                    .ok_or(DocumentFault::Answer("it changed while it was read"));
            }
            other => other?,
        },
        Some((client, _)) if client.metadata_digest == new.metadata_digest => client.clone(),
        Some((client, _)) => {
            let event = Event {
                tenant: None,
                actor: Actor::Anonymous,
                action: "client.document_changed",
                target_kind: "client",
                target_id: client.client_id.clone(),
                outcome: Outcome::Ok,
                detail: json!({"redirect_uris_changed": client.redirect_uris != described.redirect_uris, "name_changed": client.name != described.name}),
            };
            audit::record(&mut tx, &event, &context.origin(), now).await?;
            clients::replace_metadata(&mut tx, client.id, &new).await?
        }
    };
    client_documents::store(&mut tx, client_id, &document(client.id), now).await?;
    tx.commit().await?;
    Ok(client)
}

pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| {
            let media_type = value
                .split(';')
                .next()
                .unwrap_or_default()
                .trim()
                .to_ascii_lowercase();
            media_type == "application/json"
                || (media_type.starts_with("application/") && media_type.ends_with("+json"))
        })
}

/// Freshness in seconds (AUTH-C4): `max-age` between 5 minutes and a day; `no-store` and `no-cache`
/// are 5 minutes.
fn fresh_seconds(headers: &HeaderMap) -> i64 {
    let directives: Vec<String> = headers
        .get_all(header::CACHE_CONTROL)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|directive| directive.trim().to_ascii_lowercase())
        .collect();
    if directives
        .iter()
        .any(|directive| directive == "no-store" || directive == "no-cache")
    {
        return FRESH_BOUNDS.0;
    }
    let max_age = directives
        .iter()
        .find_map(|directive| directive.strip_prefix("max-age=")?.parse::<i64>().ok());
    max_age
        .unwrap_or(DEFAULT_FRESH)
        .clamp(FRESH_BOUNDS.0, FRESH_BOUNDS.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c4_freshness_is_clamped() {
        let of = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(value));
            fresh_seconds(&headers)
        };
        assert_eq!(of("max-age=1"), 300);
        assert_eq!(of("public, max-age=7200"), 7200);
        assert_eq!(of("max-age=99999999"), 86_400);
        assert_eq!(of("no-store, max-age=7200"), 300);
        assert_eq!(fresh_seconds(&HeaderMap::new()), 3600);
    }
}
