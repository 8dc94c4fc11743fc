//! Access tokens by OAuth 2.0 client credentials (RFC 6749 §4.4): fetched once, kept until shortly
//! before they expire.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{HeaderValue, Method, header};
use portolan_model::{Clock, Timestamp};
use portolan_net::egress::{Egress, EgressError, EgressRequest, EgressResponse, Redirects};
use serde::Deserialize;
use url::Url;

use crate::{
    credential::{ClientAuth, Credential, CredentialSlot},
    parameter_style,
    proof::Proof,
};

/// Slots kept. A token costs one request to get back.
const MAX_SLOTS: usize = 10_000;
/// How long a failure is remembered, so that a burst of calls does not become a burst of token
/// requests.
const FAILURE_LIFE: Duration = Duration::from_secs(5);
/// Taken off a token's life for clocks and for the call itself.
const MARGIN: Duration = Duration::from_secs(30);
/// Life of a token that does not tell.
const DEFAULT_LIFE: Duration = Duration::from_secs(300);
const MAX_LIFE: Duration = Duration::from_secs(24 * 3600);
const TIMEOUT: Duration = Duration::from_secs(10);
const MAX_ANSWER_BYTES: usize = 64 * 1024;

/// Why there is no access token.
#[derive(Debug, Clone, thiserror::Error)]
pub enum TokenError {
    /// The token endpoint could not be reached.
    #[error("its token endpoint could not be reached ({0})")]
    Unreachable(String),
    /// The token endpoint said no.
    #[error("its token endpoint refused the client credentials ({status}{})", code.as_deref().map(|c| format!(", {c}")).unwrap_or_default())]
    Refused {
        /// HTTP status.
        status: u16,
        /// `error` of RFC 6749 §5.2.
        code: Option<String>,
    },
    /// The answer is not a token.
    #[error("its token endpoint answered without a usable bearer token")]
    Unusable,
}

impl TokenError {
    /// Evidence of this failure about the credential. RFC 6749 §5.2 refuses with 400 or 401; a
    /// status that means that the endpoint is broken or busy proves nothing.
    pub fn proof(&self) -> Option<Proof> {
        match self {
            Self::Refused { status, .. } if (400..500).contains(status) && *status != 429 => {
                Some(Proof::Refused(*status))
            }
            _ => None,
        }
    }
}

enum TokenState {
    Token { token: Arc<str>, until: Timestamp },
    Failure { error: TokenError, until: Timestamp },
}

type TokenSlot = Arc<tokio::sync::Mutex<Option<TokenState>>>;

/// Fetches and keeps access tokens. One request at a time for one credential; the others wait for
/// its result. Share one for the whole process: cloning shares.
#[derive(Clone)]
pub struct TokenSource {
    clock: Clock,
    slots: Arc<Mutex<HashMap<String, TokenSlot>>>,
}

impl std::fmt::Debug for TokenSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenSource").finish_non_exhaustive()
    }
}

impl TokenSource {
    /// An empty cache. The clock decides when a token has expired.
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            slots: Arc::default(),
        }
    }

    fn slot(&self, key: &str) -> TokenSlot {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        if slots.len() >= MAX_SLOTS && !slots.contains_key(key) {
            // Slots without waiters and without a live token are evicted first.
            let now = self.clock.now();
            slots.retain(|_, slot| {
                slot.try_lock().map_or(
                    true,
                    |state| matches!(&*state, Some(TokenState::Token { until, .. }) if *until > now),
                )
            });
            if slots.len() >= MAX_SLOTS {
                slots.clear();
            }
        }
        Arc::clone(slots.entry(key.to_owned()).or_default())
    }

    /// The access token for a credential of kind `oauth_client_credentials`; nothing for other
    /// kinds.
    pub async fn token(
        &self,
        egress: &Egress,
        slot: &CredentialSlot,
    ) -> Result<Option<Arc<str>>, TokenError> {
        let Credential::OauthClientCredentials {
            token_url,
            client_id,
            client_secret,
            scope,
            auth,
        } = &slot.credential
        else {
            return Ok(None);
        };
        let shared = self.slot(&slot.key);
        let mut state = shared.lock().await;
        let now = self.clock.now();
        match &*state {
            Some(TokenState::Token { token, until }) if *until > now => {
                return Ok(Some(Arc::clone(token)));
            }
            Some(TokenState::Failure { error, until }) if *until > now => return Err(error.clone()),
            _ => {}
        }
        // Boxed: a call with a kept token has a small future.
        let fetching = Box::pin(fetch(
            egress,
            token_url,
            client_id,
            client_secret,
            scope.as_deref(),
            *auth,
        ));
        match fetching.await {
            Ok((token, life)) => {
                *state = Some(TokenState::Token {
                    token: Arc::clone(&token),
                    until: self.clock.now() + life,
                });
                Ok(Some(token))
            }
            Err(error) => {
                *state = Some(TokenState::Failure {
                    error: error.clone(),
                    until: self.clock.now() + FAILURE_LIFE,
                });
                Err(error)
            }
        }
    }

    /// Forgets a token that the API refused, unless it was replaced meanwhile.
    pub async fn forget(&self, slot: &CredentialSlot, refused: &str) {
        let shared = self.slot(&slot.key);
        let mut state = shared.lock().await;
        if matches!(&*state, Some(TokenState::Token { token, .. }) if &**token == refused) {
            *state = None;
        }
    }
}

#[derive(Deserialize)]
struct TokenAnswer {
    access_token: String,
    #[serde(default)]
    token_type: Option<String>,
    #[serde(default)]
    expires_in: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct ErrorAnswer {
    error: String,
}

async fn fetch(
    egress: &Egress,
    token_url: &str,
    client_id: &str,
    client_secret: &str,
    scope: Option<&str>,
    auth: ClientAuth,
) -> Result<(Arc<str>, Duration), TokenError> {
    let url = Url::parse(token_url)
        .map_err(|_| TokenError::Unreachable("its address is not a URL".to_owned()))?;
    let mut form = "grant_type=client_credentials".to_owned();
    if let Some(scope) = scope {
        parameter_style::push(&mut form, "scope", &parameter_style::encode(scope));
    }
    let mut request = EgressRequest::new(Method::POST, url);
    match auth {
        ClientAuth::Basic => {
            // RFC 6749 §2.3.1: form-encoded first, then Basic.
            let pair = format!(
                "{}:{}",
                parameter_style::encode(client_id),
                parameter_style::encode(client_secret)
            );
            let mut value = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(pair)))
                .map_err(|_| TokenError::Unusable)?;
            value.set_sensitive(true);
            request.headers.insert(header::AUTHORIZATION, value);
        }
        ClientAuth::Post => {
            parameter_style::push(&mut form, "client_id", &parameter_style::encode(client_id));
            parameter_style::push(
                &mut form,
                "client_secret",
                &parameter_style::encode(client_secret),
            );
        }
    }
    request
        .headers
        .insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    request.headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/x-www-form-urlencoded"),
    );
    request.body = Bytes::from(form);
    request.timeout = TIMEOUT;
    request.max_response_bytes = MAX_ANSWER_BYTES;
    request.redirects = Redirects::None;
    let response = egress
        .send(request)
        .await
        .map_err(|error: EgressError| TokenError::Unreachable(error.to_string()))?;
    usable(&response)
}

/// The token of an answer, and the time for which it is used.
fn usable(response: &EgressResponse) -> Result<(Arc<str>, Duration), TokenError> {
    if !response.status.is_success() {
        let code = serde_json::from_slice::<ErrorAnswer>(&response.body)
            .ok()
            .map(|answer| answer.error)
            // RFC 6749 §5.2 names the characters; anything else is not repeated.
            .filter(|code| {
                code.len() <= 60
                    && code
                        .bytes()
                        .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
            });
        return Err(TokenError::Refused {
            status: response.status.as_u16(),
            code,
        });
    }
    let answer: TokenAnswer =
        serde_json::from_slice(&response.body).map_err(|_| TokenError::Unusable)?;
    let is_bearer = answer
        .token_type
        .as_deref()
        .is_none_or(|kind| kind.eq_ignore_ascii_case("bearer"));
    if !is_bearer
        || answer.access_token.is_empty()
        || !answer.access_token.bytes().all(|b| b.is_ascii_graphic())
    {
        return Err(TokenError::Unusable);
    }
    let seconds = match answer.expires_in {
        Some(serde_json::Value::Number(number)) => number.as_u64(),
        Some(serde_json::Value::String(text)) => text.trim().parse().ok(),
        _ => None,
    };
    let life = seconds
        .map_or(DEFAULT_LIFE, Duration::from_secs)
        .min(MAX_LIFE);
    Ok((
        answer.access_token.into(),
        life.saturating_sub(MARGIN.min(life / 2)),
    ))
}
