//! The token endpoint: codes, refresh tokens and client credentials become access tokens; and the
//! giving back (RFC 7009).

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::HeaderValue;
use portolan_keys::client_key;
use portolan_net::egress::Egress;
use serde::Deserialize;
use serde_json::Value;
use url::form_urlencoded;

use super::{
    AuthMethod, ClientIdentity, OauthError,
    error::shown_code,
    fetch::{checked, post_form},
    metadata::AuthorizationServer,
    union,
};

/// Lifetime of a token without `expires_in`, where the next one can be had without a person.
const DEFAULT_LIFE: Duration = Duration::from_secs(3600);
/// The longest life that is believed.
const LONGEST_LIFE: Duration = Duration::from_secs(90 * 24 * 3600);
/// Longest token that is kept.
const LONGEST_TOKEN: usize = 16 * 1024;

/// Grant that is exchanged for tokens.
#[derive(Clone, Copy)]
pub enum Grant<'a> {
    /// A code, with the redirect address and the verifier of its request.
    Code {
        /// The code.
        code: &'a str,
        /// PKCE.
        verifier: &'a str,
        /// Byte for byte as in the request.
        redirect_uri: &'a str,
    },
    /// A refresh token.
    Refresh {
        /// The token.
        token: &'a str,
    },
    /// The client itself (RFC 6749 §4.4).
    ClientCredentials,
}

/// Tokens that the token endpoint returned.
#[derive(Clone)]
pub struct Tokens {
    /// Opens the server.
    pub access: String,
    /// Gets the next ones, if there is one. A new one takes the place of the old one.
    pub refresh: Option<String>,
    /// How long the access token holds.
    pub life: Duration,
    /// Granted scopes, if they differ from the requested ones.
    pub scope: Option<String>,
    /// ID token of an OpenID provider, unchecked.
    pub id_token: Option<String>,
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokens")
            .field("life", &self.life)
            .finish_non_exhaustive()
    }
}

#[derive(Deserialize)]
struct TokenAnswer {
    access_token: String,
    #[serde(default)]
    token_type: Option<String>,
    #[serde(default)]
    expires_in: Option<Value>,
    #[serde(default)]
    refresh_token: Option<String>,
    #[serde(default)]
    scope: Option<String>,
    #[serde(default)]
    id_token: Option<String>,
}

#[derive(Deserialize)]
struct TokenFault {
    error: String,
}

fn push(form: &mut String, name: &str, value: &str) {
    if !form.is_empty() {
        form.push('&');
    }
    form.push_str(name);
    form.push('=');
    form.extend(form_urlencoded::byte_serialize(value.as_bytes()));
}

/// Adds the client's authentication to a request (RFC 6749 §2.3.1).
fn sign(
    form: &mut String,
    client: &ClientIdentity,
    server: &AuthorizationServer,
    now: time::OffsetDateTime,
) -> Result<Option<HeaderValue>, OauthError> {
    let secret = client.secret.as_deref().unwrap_or_default();
    match client.method {
        AuthMethod::None => push(form, "client_id", &client.client_id),
        AuthMethod::ClientSecretPost => {
            push(form, "client_id", &client.client_id);
            push(form, "client_secret", secret);
        }
        AuthMethod::ClientSecretBasic => {
            let encode = |text: &str| -> String {
                form_urlencoded::byte_serialize(text.as_bytes()).collect()
            };
            let pair = format!("{}:{}", encode(&client.client_id), encode(secret));
            let mut value = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(pair)))
                .map_err(|_| OauthError::Unusable("client"))?;
            value.set_sensitive(true);
            return Ok(Some(value));
        }
        AuthMethod::PrivateKeyJwt => {
            // RFC 7523 §3: one whose name is not known is meant by its token endpoint.
            let audience = if server.is_nameless {
                &server.token_endpoint
            } else {
                &server.issuer
            };
            let signed = client_key::sign(secret, &client.client_id, audience, now)?;
            push(form, "client_id", &client.client_id);
            push(
                form,
                "client_assertion_type",
                "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
            );
            push(form, "client_assertion", signed.expose());
        }
    }
    Ok(None)
}

/// Exchanges a grant for tokens. `resource` names the server that they are for (MCP-AU-8). `now`
/// dates a client's assertion.
///
/// # Errors
/// [`OauthError`]; [`OauthError::is_final`] for a grant that is over.
pub async fn redeem(
    egress: &Egress,
    server: &AuthorizationServer,
    client: &ClientIdentity,
    grant: Grant<'_>,
    resource: Option<&str>,
    scope: Option<&str>,
    now: time::OffsetDateTime,
) -> Result<Tokens, OauthError> {
    let url = checked(egress, &server.token_endpoint)?;
    let mut form = String::new();
    match grant {
        Grant::Code {
            code,
            verifier,
            redirect_uri,
        } => {
            push(&mut form, "grant_type", "authorization_code");
            push(&mut form, "code", code);
            push(&mut form, "code_verifier", verifier);
            push(&mut form, "redirect_uri", redirect_uri);
        }
        Grant::Refresh { token } => {
            push(&mut form, "grant_type", "refresh_token");
            push(&mut form, "refresh_token", token);
        }
        Grant::ClientCredentials => push(&mut form, "grant_type", "client_credentials"),
    }
    if let Some(resource) = resource {
        push(&mut form, "resource", resource);
    }
    if let Some(scope) = scope.filter(|scope| !scope.is_empty()) {
        push(&mut form, "scope", scope);
    }
    let authorization = sign(&mut form, client, server, now)?;
    let answer = post_form(egress, url, form, authorization).await?;
    if !answer.status.is_success() {
        return Err(match serde_json::from_slice::<TokenFault>(&answer.body) {
            // An error of an unavailable server says nothing about the grant.
            Ok(fault) if answer.status.is_client_error() => OauthError::Refused {
                code: shown_code(&fault.error),
            },
            _ => OauthError::Status {
                what: "the token request",
                status: answer.status,
            },
        });
    }
    let read: TokenAnswer =
        serde_json::from_slice(&answer.body).map_err(|_| OauthError::Unusable("token answer"))?;
    let is_bearer = read
        .token_type
        .as_deref()
        .is_none_or(|kind| kind.eq_ignore_ascii_case("bearer"));
    if !is_bearer || !fits(&read.access_token) || !read.refresh_token.as_deref().is_none_or(fits) {
        return Err(OauthError::Unusable("token answer"));
    }
    // A refresh without a new refresh token keeps the previous one.
    let is_renewable = read.refresh_token.is_some() || !matches!(grant, Grant::Code { .. });
    Ok(Tokens {
        life: life(read.expires_in.as_ref(), is_renewable),
        access: read.access_token,
        refresh: read.refresh_token,
        scope: read.scope.map(|scope| union(&scope, "")),
        id_token: read.id_token,
    })
}

/// Returns how long a token is used. A token without `expires_in` that cannot be renewed is used
/// until the server refuses it.
fn life(expires_in: Option<&Value>, is_renewable: bool) -> Duration {
    let seconds = match expires_in {
        Some(Value::Number(number)) => number.as_u64(),
        Some(Value::String(text)) => text.trim().parse().ok(),
        _ => None,
    };
    let silent = if is_renewable {
        DEFAULT_LIFE
    } else {
        LONGEST_LIFE
    };
    seconds
        .map_or(silent, Duration::from_secs)
        .min(LONGEST_LIFE)
}

/// True if a header can carry the token.
fn fits(token: &str) -> bool {
    !token.is_empty()
        && token.len() <= LONGEST_TOKEN
        && token.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Gives a token back, where the server has a place for that.
///
/// # Errors
/// [`OauthError`]; the caller has forgotten the token all the same.
pub async fn revoke(
    egress: &Egress,
    server: &AuthorizationServer,
    client: &ClientIdentity,
    token: &str,
    hint: &str,
    now: time::OffsetDateTime,
) -> Result<(), OauthError> {
    let Some(endpoint) = server.revocation_endpoint.as_deref() else {
        return Ok(());
    };
    let url = checked(egress, endpoint)?;
    let mut form = String::new();
    push(&mut form, "token", token);
    push(&mut form, "token_type_hint", hint);
    let authorization = sign(&mut form, client, server, now)?;
    let answer = post_form(egress, url, form, authorization).await?;
    if answer.status.is_success() {
        Ok(())
    } else {
        Err(OauthError::Status {
            what: "the revocation",
            status: answer.status,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn au_13_a_token_that_tells_no_end_is_renewed_after_an_hour_or_used_until_it_is_refused() {
        assert_eq!(life(Some(&json!(60)), false), Duration::from_secs(60));
        assert_eq!(life(Some(&json!("60")), true), Duration::from_secs(60));
        assert_eq!(life(None, true), DEFAULT_LIFE);
        assert_eq!(
            life(None, false),
            LONGEST_LIFE,
            "a person is not asked every hour for what has no end"
        );
        assert_eq!(life(Some(&json!(u64::MAX)), true), LONGEST_LIFE);
        assert_eq!(life(Some(&json!(null)), true), DEFAULT_LIFE);
    }
}
