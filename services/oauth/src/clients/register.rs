//! Dynamic client registration (RFC 7591; AUTH-C8 to AUTH-C10, AUTH-C14).
//!
//! Any program may register, so a registration proves nothing: the person decides on the consent
//! page. Clients register again in each process and at each connect, so equal registrations of
//! public clients get the same id.

use axum::{
    body::Bytes,
    extract::{State, rejection::BytesRejection},
    response::{IntoResponse, Response},
};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use portolan_keys::{SecretToken, TokenForm, digest};
use portolan_model::{
    Timestamp,
    client::{AuthMethod, ClientKind},
    id::ClientId,
    redirect,
    scope::ScopeSet,
};
use portolan_site::{names, request_context::RequestContext, state::AuthState};
use portolan_storage::{
    Reason,
    oauth::clients::{self, Client, NewClient},
    platform::{
        connect_events::{NewEvent, Step},
        recorder::kept,
    },
};
use serde_json::{Map, Value, json};
use time::Duration;

use crate::{
    clients::{
        members::{about, redirect_uris, string, strings},
        strict_json,
    },
    connection_diagnostics::{self, DescribeStep},
    error::{ErrorCode, OAuthError},
    parameters,
};

/// Longest body, in bytes.
pub(crate) const MAX_BODY: usize = 16 * 1024;

/// The requested client metadata, with defaults applied (AUTH-C9).
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Registration {
    pub(crate) name: String,
    pub(crate) redirect_uris: Vec<String>,
    pub(crate) auth_method: AuthMethod,
    pub(crate) grant_types: Vec<String>,
    pub(crate) application_type: &'static str,
    pub(crate) scope: String,
    /// `client_uri`, `policy_uri`, `tos_uri`, `software_id`, `software_version`: stored unchanged
    /// if they are short strings.
    pub(crate) links: Map<String, Value>,
}

impl Registration {
    /// Reads RFC 7591 metadata. Unknown members are ignored.
    pub(crate) fn read(metadata: &Map<String, Value>) -> Result<Self, OAuthError> {
        let invalid =
            |description| OAuthError::refused(ErrorCode::InvalidClientMetadata, description);
        if metadata.contains_key("jwks_uri") || metadata.contains_key("jwks") {
            return Err(invalid(
                "jwks is not accepted here, use a client ID metadata document",
            ));
        }
        let auth_method = match string(metadata, "token_endpoint_auth_method") {
            // The default of RFC 7591 is Basic, which breaks clients that omit the member.
            None => AuthMethod::None,
            // Proof by key needs keys. Keys of strangers are read from metadata documents only
            // (AUTH-C9).
            Some(word) => AuthMethod::parse(word)
                .filter(|method| *method != AuthMethod::PrivateKeyJwt)
                .ok_or_else(|| invalid("token_endpoint_auth_method is not supported"))?,
        };
        if let Some(types) = strings(metadata, "response_types")
            && !types.contains(&"code")
        {
            return Err(invalid("response_types must contain code"));
        }
        let redirect_uris = redirect_uris(metadata).map_err(|description| {
            OAuthError::refused(ErrorCode::InvalidRedirectUri, description)
        })?;
        let native = redirect_uris.iter().any(|uri| !uri.starts_with("https:"));
        let application_type = match string(metadata, "application_type") {
            Some("web") => "web",
            Some("native") => "native",
            _ if native => "native",
            _ => "web",
        };
        let scope = string(metadata, "scope")
            .map(ScopeSet::from_request)
            .transpose();
        let scope = scope
            .map_err(|_| invalid("scope is malformed"))?
            .filter(|scope| !scope.is_empty());
        let links = about(metadata);
        Ok(Self {
            name: string(metadata, "client_name")
                .and_then(names::clean)
                .unwrap_or_else(|| "Unnamed client".to_owned()),
            redirect_uris,
            auth_method,
            // Without a list, or without refresh in it, a client gets both. Unsupported grant types
            // are dropped.
            grant_types: vec!["authorization_code".to_owned(), "refresh_token".to_owned()],
            application_type,
            scope: scope
                .unwrap_or_else(|| {
                    ScopeSet::default_grant().with(portolan_model::scope::OFFLINE_ACCESS)
                })
                .to_string(),
            links,
        })
    }

    /// The members that are stored and echoed.
    pub(crate) fn to_metadata(&self) -> Map<String, Value> {
        let mut out = Map::new();
        out.insert("client_name".to_owned(), json!(self.name));
        out.insert("redirect_uris".to_owned(), json!(self.redirect_uris));
        out.insert(
            "token_endpoint_auth_method".to_owned(),
            json!(self.auth_method.as_str()),
        );
        out.insert("grant_types".to_owned(), json!(self.grant_types));
        out.insert("response_types".to_owned(), json!(["code"]));
        out.insert("application_type".to_owned(), json!(self.application_type));
        out.insert("scope".to_owned(), json!(self.scope));
        out.extend(self.links.clone());
        out
    }

    /// Digest of the members that make two registrations the same client (AUTH-C10).
    fn fingerprint(&self) -> portolan_model::Digest {
        let mut uris: Vec<_> = self
            .redirect_uris
            .iter()
            .map(|uri| redirect::without_loopback_port(uri))
            .collect();
        uris.sort_unstable();
        uris.dedup();
        let link = |member: &str| self.links.get(member).cloned().unwrap_or_default();
        let canonical = json!([
            uris,
            self.name,
            link("client_uri"),
            link("software_id"),
            self.grant_types,
            self.scope,
            self.auth_method.as_str(),
            self.application_type,
        ]);
        digest(canonical.to_string().as_bytes())
    }
}

/// `POST /oauth/register`
pub(crate) async fn register(
    State(state): State<AuthState>,
    context: RequestContext,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, OAuthError> {
    let mut step = connection_diagnostics::step(&state, &context, Step::Register);
    let answer = answer(&state, &context, &headers, body, &mut step).await;
    state.oauth.recorder.record(match &answer {
        Ok(_) => step,
        Err(error) => connection_diagnostics::refused_with(step, error),
    });
    answer
}

async fn answer(
    state: &AuthState,
    context: &RequestContext,
    headers: &HeaderMap,
    body: Result<Bytes, BytesRejection>,
    step: &mut NewEvent,
) -> Result<Response, OAuthError> {
    if !state.oauth.config.dynamic_registration {
        return Err(OAuthError::refused(
            ErrorCode::InvalidRequest,
            "registration is switched off here",
        ));
    }
    let body = body.map_err(|rejection| match rejection.into_response().status() {
        StatusCode::PAYLOAD_TOO_LARGE => OAuthError::TooLarge,
        _ => OAuthError::invalid_request("the body could not be read"),
    })?;
    let invalid = |description| OAuthError::refused(ErrorCode::InvalidClientMetadata, description);
    if !parameters::is_json(headers) {
        return Err(invalid("send the metadata as application/json"));
    }
    let metadata = strict_json::object(&body).ok_or(invalid(
        "the metadata is not a JSON object, repeats a name or is nested too deeply",
    ))?;
    note(step, &metadata);
    let registration = Registration::read(&metadata)?;
    let now = state.now();

    let mut tx = state.store.system(Reason::OAuth).await?;
    let id = ClientId::generate();
    let client_id = id.to_string();
    let secret = if registration.auth_method.has_secret() {
        Some(SecretToken::generate(TokenForm::ClientSecret)?)
    } else {
        None
    };
    let stored = Value::Object(registration.to_metadata());
    let client = clients::register(
        &mut tx,
        &NewClient {
            id,
            client_id: &client_id,
            kind: ClientKind::Dynamic,
            tenant: None,
            name: &registration.name,
            metadata: &stored,
            metadata_digest: registration.fingerprint(),
            auth_method: registration.auth_method,
            application_type: registration.application_type,
            grant_types: &registration.grant_types,
            redirect_uris: &registration.redirect_uris,
            secret: secret
                .as_ref()
                .map(|secret| (secret.digest(), secret.hint())),
            ip_block: Some(&context.ip_block()),
        },
        now,
    )
    .await?;
    if client.id == id {
        throttle(state, &mut tx, context, now).await?;
    }
    tx.commit().await?;
    *step = step.clone().client(&client.client_id, Some(&client.name));
    Ok(registered(&registration, &client, secret.as_ref(), now))
}

/// The client information response of RFC 7591 §3.2.1.
fn registered(
    registration: &Registration,
    client: &Client,
    secret: Option<&SecretToken>,
    now: Timestamp,
) -> Response {
    // Echoes the URIs of this request; the client has all of them now. A known client differs in
    // loopback ports only, which may vary.
    let mut answer = registration.to_metadata();
    answer.insert("client_id".to_owned(), json!(client.client_id));
    answer.insert(
        "client_id_issued_at".to_owned(),
        json!(now.unix_timestamp()),
    );
    if let Some(secret) = secret {
        answer.insert("client_secret".to_owned(), json!(secret.expose()));
        answer.insert("client_secret_expires_at".to_owned(), json!(0));
    }
    let mut response = (StatusCode::CREATED, axum::Json(Value::Object(answer))).into_response();
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Adds the contents of a registration to a diagnostics step, valid or not.
fn note(step: &mut NewEvent, metadata: &Map<String, Value>) {
    let uris: Vec<String> = strings(metadata, "redirect_uris")
        .unwrap_or_default()
        .into_iter()
        .take(5)
        .filter_map(connection_diagnostics::kept_uri)
        .collect();
    step.client_name = string(metadata, "client_name").and_then(names::clean);
    let mut sent = step.clone().sent("redirect_uris", uris);
    for member in ["token_endpoint_auth_method", "scope"] {
        if let Some(text) = string(metadata, member).and_then(kept) {
            sent = sent.sent(member, text);
        }
    }
    *step = sent;
}

/// Limits new rows per network block to 20 an hour and 200 a day. The row just written counts, and
/// is rolled back if it is one too many. Registrations that match an existing row are not limited.
async fn throttle(
    state: &AuthState,
    tx: &mut portolan_storage::SystemTx,
    context: &RequestContext,
    now: Timestamp,
) -> Result<(), OAuthError> {
    let block = context.ip_block();
    if context.ip.is_loopback() && state.config.loopback_is_unthrottled {
        return Ok(());
    }
    for (window, most) in [
        (Duration::HOUR, state.oauth.config.registrations_per_hour),
        (Duration::DAY, state.oauth.config.registrations_per_day),
    ] {
        if clients::count_registered_since(tx, &block, now - window).await? > most {
            return Err(OAuthError::TooMany {
                retry_after: window.whole_seconds() / 4,
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(metadata: Value) -> Result<Registration, OAuthError> {
        Registration::read(metadata.as_object().unwrap())
    }

    fn code(metadata: Value) -> ErrorCode {
        match read(metadata) {
            Err(OAuthError::Refused { code, .. }) => code,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn c9_defaults_are_what_clients_need() {
        let read = read(
            json!({"redirect_uris": ["http://127.0.0.1:1/cb"], "scope": "claudeai admin", "logo_uri": "https://x.example/l.png"}),
        );
        let registration = read.unwrap();
        assert_eq!(registration.auth_method, AuthMethod::None);
        assert_eq!(
            registration.grant_types,
            ["authorization_code", "refresh_token"]
        );
        assert_eq!(registration.application_type, "native");
        assert_eq!(
            registration.scope, "mcp offline_access",
            "CASE-93: unknown scopes are dropped"
        );
        assert_eq!(registration.name, "Unnamed client");
        assert!(
            !registration.to_metadata().values().any(Value::is_null),
            "AUTH-C8: no nulls"
        );
    }

    #[test]
    fn case_89_redirect_uris_are_checked() {
        let many: Vec<String> = (0..21).map(|n| format!("https://a.example/{n}")).collect();
        for uris in [
            json!([]),
            json!(many),
            json!(["https://*.example/"]),
            json!(["https://a.example/#x"]),
            json!("x"),
            json!([1]),
        ] {
            assert_eq!(
                code(json!({ "redirect_uris": uris })),
                ErrorCode::InvalidRedirectUri,
                "{uris}"
            );
        }
        assert_eq!(code(json!({})), ErrorCode::InvalidRedirectUri);
        assert_eq!(
            code(json!({"redirect_uris": ["javascript:alert(1)"]})),
            ErrorCode::InvalidRedirectUri,
            "CASE-88"
        );
    }

    #[test]
    fn case_90_keys_are_not_registered_here() {
        let with = |member: &str, value: Value| json!({"redirect_uris": ["https://a.example/"], member: value});
        for metadata in [
            with("jwks_uri", json!("https://evil.example/jwks")),
            with("jwks", json!({"keys": []})),
            with("token_endpoint_auth_method", json!("private_key_jwt")),
            with("response_types", json!(["token"])),
        ] {
            assert_eq!(code(metadata), ErrorCode::InvalidClientMetadata);
        }
    }

    #[test]
    fn case_91_loopback_ports_do_not_make_another_client() {
        let of = |name: &str, uri: &str| {
            read(json!({"client_name": name, "redirect_uris": [uri]}))
                .unwrap()
                .fingerprint()
        };
        assert_eq!(
            of("A", "http://127.0.0.1:1/cb"),
            of("A", "http://127.0.0.1:2/cb")
        );
        assert_ne!(
            of("A", "http://127.0.0.1:1/cb"),
            of("B", "http://127.0.0.1:1/cb")
        );
        assert_ne!(
            of("A", "http://127.0.0.1:1/cb"),
            of("A", "http://127.0.0.1:1/other")
        );
    }
}
