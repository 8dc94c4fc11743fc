//! Client ID metadata documents: the `client_id` is the URL of a document that describes the client (`auth.md` C1–C5).
//!
//! The URL comes from a stranger and is fetched by us, so the guard is the point: the text of the URL is checked here, the
//! address behind it by the egress client, and the document is read with limits in every direction. Only good documents are
//! kept, errors never; a good one serves until it is a day old when its host is away.

use std::{collections::HashMap, fmt, sync::Arc, time::Duration as StdDuration};

use http::{HeaderMap, HeaderValue, StatusCode, header};
use portolan_keys::{ClientKeys, InvalidKeys, digest};
use portolan_model::{
    audit::{Actor, Event, Outcome},
    client::{AuthMethod, ClientKind},
    id::ClientId,
};
use portolan_net::egress::{EgressError, EgressRequest};
use portolan_storage::{
    Reason, StorageError, audit,
    client_documents::{self, Document},
    clients::{self, Client, NewClient},
};
use serde_json::{Map, Value, json};
use time::Duration;
use tokio::sync::{Mutex, Semaphore};
use tokio_util::task::TaskTracker;
use url::{Host, Url};

use super::{
    alone::{self, Turn},
    name,
    register::{redirect_uris, string, strings},
    strict_json,
};
use crate::{
    error::OAuthError,
    rate::{Budget, Rates},
    state::AuthState,
    visitor::Visitor,
};

/// Largest document (C2).
const MAX_BYTES: usize = 5 * 1024;
/// Whole fetch (C2).
const TIMEOUT: StdDuration = StdDuration::from_secs(5);
/// Fetches of one host at once (C2).
const PER_HOST: usize = 4;
/// Freshness when the answer says nothing.
const DEFAULT_FRESH: i64 = 3600;
/// Bounds of what it says (C4).
const FRESH_BOUNDS: (i64, i64) = (300, 86_400);

/// Why a client of this kind cannot be used. The text is for the page that its user sees.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DocumentFault {
    /// The `client_id` cannot be the URL of a document.
    #[error("the client id is not an acceptable URL: {0}")]
    Url(&'static str),
    /// Too many fetches for this requester.
    #[error("too many new apps were tried from your network, wait a minute")]
    TooMany,
    /// It could not be fetched.
    #[error("the app's description could not be loaded from its address")]
    Fetch(#[source] EgressError),
    /// The answer was not a document.
    #[error("the app's address did not answer with its description: {0}")]
    Answer(&'static str),
    /// The document breaks a rule.
    #[error("the app's description is not acceptable: {0}")]
    Content(&'static str),
    /// Our database.
    #[error("storage failed")]
    Storage(#[from] StorageError),
}

impl DocumentFault {
    /// The rule that is broken.
    pub(crate) const fn rule(&self) -> &'static str {
        match self {
            Self::Url(_) => "C1",
            Self::Content(_) => "C3",
            Self::TooMany | Self::Fetch(_) | Self::Answer(_) | Self::Storage(_) => "C2",
        }
    }
}

/// Fetches in progress, and budgets.
pub(crate) struct Fetches {
    by_url: std::sync::Mutex<HashMap<String, Arc<Mutex<()>>>>,
    by_host: std::sync::Mutex<HashMap<String, Arc<Semaphore>>>,
    by_source: Rates,
    by_client: Rates,
    /// Fetches that go on when nobody waits for them any more; each ends within seconds.
    tasks: TaskTracker,
}

impl fmt::Debug for Fetches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fetches")
    }
}

impl Default for Fetches {
    fn default() -> Self {
        Self {
            by_url: std::sync::Mutex::default(),
            by_host: std::sync::Mutex::default(),
            by_source: Rates::new(Budget {
                burst: 20,
                per: Duration::MINUTE,
            }),
            by_client: Rates::new(Budget {
                burst: 1,
                per: Duration::MINUTE,
            }),
            tasks: TaskTracker::new(),
        }
    }
}

impl Fetches {
    /// The lock of this URL: of a hundred requests for one document one fetches (case 85).
    pub(super) fn flight(&self, url: &str) -> Arc<Mutex<()>> {
        let mut map = self
            .by_url
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        map.retain(|_, lock| Arc::strong_count(lock) > 1);
        Arc::clone(map.entry(url.to_owned()).or_default())
    }

    pub(super) fn host(&self, host: &str) -> Arc<Semaphore> {
        let mut map = self
            .by_host
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        map.retain(|_, permits| Arc::strong_count(permits) > 1);
        Arc::clone(
            map.entry(host.to_owned())
                .or_insert_with(|| Arc::new(Semaphore::new(PER_HOST))),
        )
    }
}

/// The client that `client_id` describes, from the cache or freshly fetched.
pub(crate) async fn resolve(
    state: &AuthState,
    client_id: &str,
    visitor: &Visitor,
) -> Result<Client, DocumentFault> {
    let url = check_url(client_id)?;
    if let Some((client, document)) = cached(state, client_id).await?
        && state.now() < document.fresh_until
    {
        return Ok(client);
    }
    // In a task of its own: whoever asked may go away, and the others who wait must not wait for what nobody does any more.
    let (task_state, task_visitor) = (state.clone(), visitor.clone());
    let text = client_id.to_owned();
    let task = async move { in_turn(&task_state, &text, url, &task_visitor).await };
    let done = state.oauth.fetches.tasks.spawn(task).await;
    done.unwrap_or(Err(DocumentFault::Answer("it could not be read")))
}

/// Fetches and stores the document when it is our turn, in this process and in the cluster.
async fn in_turn(
    state: &AuthState,
    client_id: &str,
    url: Url,
    visitor: &Visitor,
) -> Result<Client, DocumentFault> {
    let flight = state.oauth.fetches.flight(client_id);
    let _turn = flight.lock().await;
    // Whoever waited finds what the first one stored.
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
    // Waiting for another node costs as much as fetching, and is paid for alike.
    if take_fetch(state, visitor).is_err() {
        return stale(DocumentFault::TooMany);
    }
    let holder = match alone::wait(state, client_id).await? {
        Turn::Fetch(holder) => holder,
        // Another node fetched it meanwhile.
        Turn::Found(client) => {
            state.oauth.fetches.by_source.give_back(&visitor.ip_block());
            return Ok(*client);
        }
        Turn::Busy => return stale(DocumentFault::Answer("it took too long")),
    };
    let fetched = fetch_and_store(state, client_id, url, known.as_ref(), visitor).await;
    alone::give_back(state, client_id, holder).await;
    match fetched {
        Ok(client) => Ok(client),
        Err(fault @ DocumentFault::Storage(_)) => Err(fault),
        Err(fault) => {
            tracing::warn!(client.digest = ?digest(client_id.as_bytes()), error = %crate::error::chain(&fault), "client document not loaded");
            stale(fault)
        }
    }
}

/// The client as it is at the token endpoint: its document is read again when it is old, or when a key is missing in `stored`; once a
/// minute at most (C13). While it cannot be read what is stored serves, whatever its age: nobody is logged out because a host is
/// away (C4).
pub(super) async fn renewed(
    state: &AuthState,
    stored: Client,
    visitor: &Visitor,
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
    let fetched = match take_fetch(state, visitor) {
        Ok(()) => fetch_and_store(state, client_id, url, Some(&known), visitor).await,
        Err(_) => Err(DocumentFault::TooMany),
    };
    alone::give_back(state, client_id, holder).await;
    match fetched {
        Ok(client) => Ok(client),
        Err(fault @ DocumentFault::Storage(_)) => Err(fault),
        Err(fault) => {
            tracing::warn!(client.id = %client.id, error = %crate::error::chain(&fault), "client document not loaded");
            let is_bad = matches!(fault, DocumentFault::Content(_));
            if is_bad && state.now() >= document.stale_until {
                Err(fault)
            } else {
                Ok(client.clone())
            }
        }
    }
}

/// Takes a fetch from the budget of whoever causes it (C2), or says how long to wait.
pub(super) fn take_fetch(state: &AuthState, visitor: &Visitor) -> Result<(), Duration> {
    if visitor.ip.is_loopback() && state.config.loopback_is_unthrottled {
        return Ok(());
    }
    let source = visitor.ip_block();
    state.oauth.fetches.by_source.take(&source, state.now())
}

pub(super) async fn cached(
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

async fn fetch_and_store(
    state: &AuthState,
    client_id: &str,
    url: Url,
    known: Option<&(Client, Document)>,
    visitor: &Visitor,
) -> Result<Client, DocumentFault> {
    let host = state.oauth.fetches.host(url.host_str().unwrap_or_default());
    let _permit = host.try_acquire().map_err(|_| DocumentFault::TooMany)?;
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
        ip_block: Some(&visitor.ip_block()),
    };
    let mut tx = state.store.system(Reason::OAuth).await?;
    let client = match known {
        None => match clients::register(&mut tx, &new, now).await {
            // Another node was first: what it stored is as good.
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
            audit::record(&mut tx, &event, &visitor.origin(), now).await?;
            clients::replace_metadata(&mut tx, client.id, &new).await?
        }
    };
    client_documents::store(&mut tx, client_id, &document(client.id), now).await?;
    tx.commit().await?;
    Ok(client)
}

/// C1. The text is used as it is; what a parser would repair is refused.
pub(crate) fn check_url(text: &str) -> Result<Url, DocumentFault> {
    let fault = |why| Err(DocumentFault::Url(why));
    let Some(rest) = text.strip_prefix("https://") else {
        return fault("it does not begin with https");
    };
    if text.len() > 512 {
        return fault("it is longer than 512 characters");
    }
    if !text.bytes().all(|b| matches!(b, 0x21..=0x7e)) || text.contains('\\') {
        return fault("it has characters that do not belong in a URL");
    }
    if text.contains('#') {
        return fault("it has a fragment");
    }
    if text.contains('?') {
        return fault("it has a query");
    }
    let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    if authority.contains('@') {
        return fault("it has user information");
    }
    if path.is_empty() || path == "/" {
        return fault("it has no path");
    }
    let lower = path.to_ascii_lowercase().replace("%2e", ".");
    if lower
        .split('/')
        .any(|segment| segment == "." || segment == "..")
    {
        return fault("its path has dot segments");
    }
    let Ok(url) = Url::parse(text) else {
        return fault("it is not a URL");
    };
    let Some(Host::Domain(host)) = url.host() else {
        return fault("its host is an address");
    };
    if url.port().is_some() {
        return fault("it names a port");
    }
    let written = authority.strip_suffix(":443").unwrap_or(authority);
    if !written.eq_ignore_ascii_case(host) {
        return fault("its host is not written plainly");
    }
    Ok(url)
}

/// What a good document says.
#[derive(Debug)]
struct Described {
    name: String,
    redirect_uris: Vec<String>,
    grant_types: Vec<String>,
    application_type: &'static str,
    auth_method: AuthMethod,
    metadata: Map<String, Value>,
}

impl Described {
    /// C3.
    fn read(client_id: &str, body: &[u8]) -> Result<Self, DocumentFault> {
        let document = strict_json::object(body).ok_or(DocumentFault::Content(
            "it is not a JSON object, repeats a name or is nested too deeply",
        ))?;
        let fault = DocumentFault::Content;
        if string(&document, "client_id") != Some(client_id) {
            return Err(fault("its client_id is not its address"));
        }
        if document.contains_key("client_secret")
            || document.contains_key("client_secret_expires_at")
        {
            return Err(fault("it contains a secret"));
        }
        let keys = keys_of(&document)?;
        let offers = strings(&document, "token_endpoint_auth_methods_supported");
        let offers = |word: &str| offers.as_ref().is_some_and(|list| list.contains(&word));
        let is_silent = !document.contains_key("token_endpoint_auth_methods_supported");
        let auth_method = match string(&document, "token_endpoint_auth_method") {
            Some("none") => AuthMethod::None,
            Some("private_key_jwt") if keys.is_some() => AuthMethod::PrivateKeyJwt,
            Some("private_key_jwt") if offers("none") => AuthMethod::None,
            Some("private_key_jwt") => {
                return Err(fault(
                    "it authenticates by private_key_jwt, but has neither jwks nor jwks_uri",
                ));
            }
            // Negotiated, the stronger one first (C3).
            None if offers("private_key_jwt") && keys.is_some() => AuthMethod::PrivateKeyJwt,
            None if is_silent || offers("none") => AuthMethod::None,
            _ => {
                return Err(fault(
                    "its token_endpoint_auth_method cannot be used with a public document",
                ));
            }
        };
        let grant_types = match strings(&document, "grant_types") {
            None => vec!["authorization_code", "refresh_token"],
            Some(types) if types.contains(&"authorization_code") => types,
            Some(_) => return Err(fault("its grant_types lack authorization_code")),
        };
        let grant_types: Vec<String> = grant_types
            .into_iter()
            .filter(|word| ["authorization_code", "refresh_token"].contains(word))
            .map(str::to_owned)
            .collect();
        let redirect_uris = redirect_uris(&document).map_err(|error| match error {
            OAuthError::Refused { description, .. } => fault(description),
            _ => fault("its redirect_uris are not acceptable"),
        })?;
        let native = redirect_uris.iter().any(|uri| !uri.starts_with("https:"));
        let name = string(&document, "client_name")
            .and_then(name::clean)
            .unwrap_or_else(|| "Unnamed client".to_owned());
        let mut metadata = Map::new();
        for member in [
            "client_uri",
            "policy_uri",
            "tos_uri",
            "software_id",
            "software_version",
        ] {
            if let Some(value) = string(&document, member).filter(|value| value.len() <= 512) {
                metadata.insert(member.to_owned(), json!(value));
            }
        }
        metadata.insert("client_name".to_owned(), json!(name));
        metadata.insert("redirect_uris".to_owned(), json!(redirect_uris));
        metadata.insert("grant_types".to_owned(), json!(grant_types));
        metadata.insert(
            "token_endpoint_auth_method".to_owned(),
            json!(auth_method.as_str()),
        );
        if auth_method == AuthMethod::PrivateKeyJwt
            && let Some((member, value)) = keys
        {
            metadata.insert(member.to_owned(), value);
        }
        Ok(Self {
            name,
            redirect_uris,
            grant_types,
            application_type: if native { "native" } else { "web" },
            auth_method,
            metadata,
        })
    }
}

/// The member that names the document's keys, checked: `jwks`, else `jwks_uri`, which may be on another host (C3). Keys that nobody
/// may know spoil a document, whether it means to use them or not; keys that are of no use here are no harm.
fn keys_of(document: &Map<String, Value>) -> Result<Option<(&'static str, Value)>, DocumentFault> {
    let uri = match document.get("jwks_uri") {
        None => None,
        Some(uri) => {
            let text = uri
                .as_str()
                .ok_or(DocumentFault::Content("its jwks_uri is not a URL"))?;
            check_url(text)?;
            Some(("jwks_uri", uri.clone()))
        }
    };
    match document.get("jwks") {
        None => Ok(uri),
        Some(jwks) => match ClientKeys::read(jwks) {
            Ok(_) => Ok(Some(("jwks", jwks.clone()))),
            Err(InvalidKeys::Secret) => Err(DocumentFault::Content(
                "it contains a key that is not public",
            )),
            Err(InvalidKeys::Form | InvalidKeys::NoneUsable) => Ok(uri),
        },
    }
}

pub(super) fn is_json(headers: &HeaderMap) -> bool {
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

/// C4: `max-age` between 5 minutes and a day; `no-store` and `no-cache` are 5 minutes.
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

    const URL: &str = "https://app.example/oauth/client.json";

    fn read(change: impl FnOnce(&mut Map<String, Value>)) -> Result<Described, DocumentFault> {
        let mut document = json!({
            "client_id": URL, "client_name": "App", "redirect_uris": ["http://localhost/callback"],
            "grant_types": ["authorization_code", "refresh_token"], "token_endpoint_auth_method": "none"
        });
        change(document.as_object_mut().unwrap());
        Described::read(URL, document.to_string().as_bytes())
    }

    #[test]
    fn cases_77_and_83_only_plain_https_urls_are_client_ids() {
        for good in [
            URL,
            "https://vscode.dev/oauth/client-metadata.json",
            "https://app.example:443/x",
        ] {
            assert!(check_url(good).is_ok(), "{good}");
        }
        for bad in [
            "http://app.example/x",
            "https://app.example:8443/x",
            "https://u@app.example/x",
            "https://app.example/x#y",
            "https://app.example/a/../x",
            "https://app.example/a/%2e%2E/x",
            "https://app.example/./x",
            "https://app.example/x?y",
            "https://app.example",
            "https://app.example/",
            "https://127.0.0.1/x",
            "https://2130706433/x",
            "https://0x7f.1/x",
            "https://[::1]/x",
            "https://0x7f000001/x",
            "https://0177.0.0.1/x",
            "https://[::ffff:10.0.0.1]/x",
            "https://93.184.216.34/x",
            "https://app.example\\x/y",
            "https://app%2eexample/x",
            "https:///x",
        ] {
            assert!(
                matches!(check_url(bad), Err(DocumentFault::Url(_))),
                "{bad}"
            );
        }
        assert!(check_url(&format!("https://app.example/{}", "x".repeat(512))).is_err());
    }

    #[test]
    fn c3_a_good_document_describes_a_public_client() {
        let described = read(|_| {}).unwrap();
        assert_eq!(described.name, "App");
        assert_eq!(described.application_type, "native");
        let defaults = read(|document| drop(document.remove("grant_types"))).unwrap();
        assert_eq!(
            defaults.grant_types,
            ["authorization_code", "refresh_token"]
        );
    }

    #[test]
    fn cases_81_and_82_bad_documents_are_refused() {
        type Change = fn(&mut Map<String, Value>);
        let changes: [(&str, Change); 9] = [
            ("slash", |d| {
                drop(d.insert("client_id".into(), json!(format!("{URL}/"))))
            }),
            ("case", |d| {
                drop(d.insert("client_id".into(), json!(URL.to_uppercase())))
            }),
            ("secret", |d| {
                drop(d.insert("client_secret".into(), json!("x")))
            }),
            ("symmetric", |d| {
                drop(d.insert("jwks".into(), json!({"keys": [{"kty": "oct", "k": "x"}]})))
            }),
            ("private", |d| {
                drop(d.insert("jwks".into(), json!({"keys": [{"kty": "EC", "d": "x"}]})))
            }),
            ("basic", |d| {
                drop(d.insert(
                    "token_endpoint_auth_method".into(),
                    json!("client_secret_basic"),
                ))
            }),
            ("key only", |d| {
                drop(d.insert(
                    "token_endpoint_auth_method".into(),
                    json!("private_key_jwt"),
                ))
            }),
            ("grant", |d| {
                drop(d.insert("grant_types".into(), json!(["refresh_token"])))
            }),
            ("redirect", |d| {
                drop(d.insert("redirect_uris".into(), json!(["javascript:alert(1)"])))
            }),
        ];
        for (name, change) in changes {
            assert!(
                matches!(read(change), Err(DocumentFault::Content(_))),
                "{name}"
            );
        }
    }

    #[test]
    fn c3_a_client_that_can_do_without_a_key_is_taken_at_its_word() {
        let both = json!(["none", "private_key_jwt"]);
        assert!(
            read(|d| {
                d.insert(
                    "token_endpoint_auth_method".into(),
                    json!("private_key_jwt"),
                );
                d.insert("token_endpoint_auth_methods_supported".into(), both.clone());
            })
            .is_ok()
        );
        assert!(
            read(|d| {
                d.remove("token_endpoint_auth_method");
                d.insert(
                    "token_endpoint_auth_methods_supported".into(),
                    json!(["private_key_jwt"]),
                );
            })
            .is_err()
        );
    }

    #[test]
    fn c3_keys_of_no_use_do_not_spoil_the_document_of_a_public_client() {
        for jwks in [
            json!({"keys": []}),
            json!({"keys": [{"kty": "RSA", "n": "AQ", "e": "AQAB"}]}),
            json!({}),
        ] {
            let described = read(|d| drop(d.insert("jwks".into(), jwks.clone()))).unwrap();
            assert_eq!(described.auth_method, AuthMethod::None, "{jwks}");
            assert!(described.metadata.get("jwks").is_none());
            assert!(
                read(|d| {
                    let method = json!("private_key_jwt");
                    d.insert("jwks".into(), jwks.clone());
                    d.insert("token_endpoint_auth_method".into(), method);
                })
                .is_err(),
                "{jwks}"
            );
        }
        let secret = json!({"kty": "EC", "d": "x"});
        assert!(read(|d| drop(d.insert("jwks".into(), secret))).is_err());
    }

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
