//! Bearer tokens: each is verified once and cached by its digest (AUTH-4.5, AUTH-5.2;
//! MCP-AR-1…MCP-AR-14).

use std::{
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use http::{HeaderMap, header};
use portolan_cluster::Revocations;
use portolan_keys::{Verifier, VerifyError, digest};
use portolan_model::{Digest, Timestamp, resource::Site};
use quick_cache::sync::Cache;

use crate::{
    caller::Caller,
    catalog::Entry,
    error::{McpError, challenge::Challenge},
    http::api_key::{self, ApiKeys, KeyRefused},
    target::Target,
};

/// The size at which the list of callers is first purged of dropped callers.
const LIVING: usize = 1024;

/// Longest `Authorization` header that is read, in bytes (AUTH-4.5.1).
const MAX_HEADER_BYTES: usize = 4096;

/// Verifies bearer tokens and caches their holders.
#[derive(Debug)]
pub(crate) struct Bearer {
    site: Site,
    verifier: Verifier,
    revocations: Revocations,
    api_keys: ApiKeys,
    verified: Cache<Digest, Arc<Caller>>,
    living: Mutex<Living>,
}

/// All callers that are cached, or have a request or stream open.
#[derive(Debug, Default)]
struct Living {
    callers: Vec<Weak<Caller>>,
    /// The length at which dropped callers are removed.
    room: usize,
}

impl Living {
    fn add(&mut self, caller: &Arc<Caller>) {
        if self.callers.len() >= self.room {
            self.callers.retain(|caller| caller.strong_count() > 0);
            self.room = (2 * self.callers.len()).max(LIVING);
        }
        self.callers.push(Arc::downgrade(caller));
    }
}

impl Bearer {
    pub(crate) fn new(
        site: Site,
        verifier: Verifier,
        revocations: Revocations,
        api_keys: ApiKeys,
        remembered: usize,
    ) -> Self {
        Self {
            site,
            verifier,
            revocations,
            api_keys,
            verified: Cache::new(remembered),
            living: Mutex::default(),
        }
    }

    /// Cancels calls and streams of tokens that are revoked by now (AUTH-4.3.7).
    ///
    /// Returns the number of those tokens.
    pub(crate) fn tell_revoked(&self) -> usize {
        let living: Vec<_> = {
            let living = self.living.lock().unwrap_or_else(PoisonError::into_inner);
            living.callers.iter().filter_map(Weak::upgrade).collect()
        };
        let revoked = living.iter().filter(|caller| {
            !caller.revoked.is_cancelled() && self.revocations.is_revoked(&caller.facts())
        });
        revoked.map(|caller| caller.revoked.cancel()).count()
    }

    /// The holder of a cached token that is still good. Only the token's digest is computed.
    ///
    /// For `None`, call [`Bearer::authenticate`].
    pub(crate) fn remembered(&self, headers: &HeaderMap, now: Timestamp) -> Option<Arc<Caller>> {
        let mut values = headers.get_all(header::AUTHORIZATION).iter();
        let token = token_of(values.next()?.as_bytes())?;
        if values.next().is_some() {
            return None;
        }
        let caller = self.verified.get(&digest(token.as_bytes()))?;
        let is_good = caller.is_fresh(now) && !self.revocations.is_revoked(&caller.facts());
        is_good.then_some(caller)
    }

    /// Steps 1–7 and 9 of AUTH-4.5: the checks that do not depend on whether the target exists.
    pub(crate) async fn authenticate(
        &self,
        headers: &HeaderMap,
        target: &Target<'_>,
        now: Timestamp,
    ) -> Result<Arc<Caller>, McpError> {
        let invalid = |description| {
            McpError::Unauthorized(Challenge::invalid(&self.site, target, description))
        };
        let mut values = headers.get_all(header::AUTHORIZATION).iter();
        let value = values.next();
        if values.next().is_some() {
            return Err(McpError::SeveralCredentials);
        }
        let token = value.and_then(|value| token_of(value.as_bytes()));
        let Some(token) = token else {
            return Err(McpError::Unauthorized(Challenge::bare(&self.site, target)));
        };
        if token.len() > MAX_HEADER_BYTES - "Bearer ".len() {
            return Err(invalid(VerifyError::Malformed.description()));
        }
        let caller = if api_key::is_key(token) {
            match self.opened_key(token, now).await {
                Ok(caller) => caller,
                Err(KeyRefused::Unknown) => {
                    return Err(invalid("the API key is unknown, expired or revoked"));
                }
                // Never 401: a client would discard a good key (AUTH-4.3).
                Err(KeyRefused::Unavailable(error)) => {
                    tracing::warn!(
                        error = &*error as &dyn std::error::Error,
                        "an API key cannot be looked up"
                    );
                    return Err(McpError::RegistryAway);
                }
            }
        } else {
            self.verified_token(token, now).map_err(|error| {
                tracing::debug!(reason = %error, "token refused");
                invalid(error.description())
            })?
        };
        if self.revocations.is_revoked(&caller.facts()) {
            return Err(invalid("the access token was revoked"));
        }
        Ok(caller)
    }

    async fn opened_key(&self, token: &str, now: Timestamp) -> Result<Arc<Caller>, KeyRefused> {
        let is_over = |caller: &Caller| self.revocations.is_revoked(&caller.facts());
        let caller = self.api_keys.open(token, is_over, now).await?;
        self.keep_in_touch(&caller);
        self.verified
            .insert(digest(token.as_bytes()), Arc::clone(&caller));
        Ok(caller)
    }

    fn verified_token(&self, token: &str, now: Timestamp) -> Result<Arc<Caller>, VerifyError> {
        let digest = digest(token.as_bytes());
        if let Some(caller) = self.verified.get(&digest) {
            if now.unix_timestamp() < caller.claims.exp {
                return Ok(caller);
            }
            // The cache ends with the token; only the verifier grants the clocks' leeway.
            self.verified.remove(&digest);
        }
        let claims = self.verifier.verify(token, now)?;
        let caller = Arc::new(Caller::new(&self.site, token, claims));
        self.keep_in_touch(&caller);
        if now.unix_timestamp() < caller.claims.exp {
            self.verified.insert(digest, Arc::clone(&caller));
        }
        Ok(caller)
    }

    /// Registers the caller. This precedes the revocation check, so that no revocation is missed.
    fn keep_in_touch(&self, caller: &Arc<Caller>) {
        self.living
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .add(caller);
    }

    /// Checks the address from which an API key is used (AUTH-C17).
    ///
    /// The refusal is 401, since another key may be allowed from there.
    pub(crate) fn check_address(
        &self,
        caller: &Caller,
        target: &Target<'_>,
        address: Option<IpAddr>,
    ) -> Result<(), McpError> {
        if caller.may_come_from(address) {
            return Ok(());
        }
        let text = "the API key may not be used from this network";
        Err(McpError::Unauthorized(Challenge::invalid(
            &self.site, target, text,
        )))
    }

    /// Step 8, once the target's tenant is known to be the token's, and step 11.
    pub(crate) fn authorize(
        &self,
        caller: &Caller,
        target: &Target<'_>,
        entry: &Entry,
    ) -> Result<(), McpError> {
        if !entry.admits(caller) {
            let text = "the access token is for another MCP server; reconnect to this one";
            return Err(McpError::Unauthorized(Challenge::invalid(
                &self.site, target, text,
            )));
        }
        if !caller.has_scope {
            return Err(McpError::Scope(Challenge::insufficient(&self.site, target)));
        }
        Ok(())
    }
}

/// Whether the request shows a bearer token, valid or not.
pub(crate) fn is_shown(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    values.any(|value| token_of(value.as_bytes()).is_some())
}

/// The token after `Bearer`, in any case (MCP-AR-10). Another scheme counts as no credentials.
fn token_of(value: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(value).ok()?.trim_matches([' ', '\t']);
    let (scheme, token) = text.split_once(' ')?;
    let token = token.trim_start();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
pub(crate) mod tests {
    use portolan_keys::AccessClaims;
    use portolan_keys::Epochs;
    use portolan_model::{Id, id::TenantId, id::UserId};

    use super::*;

    /// The holder of a verified token.
    pub(crate) fn caller(tenant: TenantId, user: UserId, client: &str) -> Caller {
        let claims = AccessClaims {
            iss: site().issuer().to_owned(),
            aud: "https://mcp.example.com/t/acme/github/mcp".to_owned(),
            sub: user.into(),
            client_id: client.to_owned(),
            tid: tenant,
            gid: Id::generate(),
            ep: Epochs {
                user: 0,
                tenant: 0,
                member: 0,
            },
            scope: "mcp offline_access".to_owned(),
            jti: Id::generate(),
            iat: 0,
            exp: 3_600,
            auth_time: None,
        };
        Caller::new(&site(), "e30.e30.e30", claims)
    }

    fn site() -> Site {
        Site::new("https://mcp.example.com").unwrap()
    }

    #[test]
    fn k5_only_a_bearer_header_is_a_credential() {
        assert_eq!(token_of(b"Bearer abc"), Some("abc"));
        assert_eq!(token_of(b"bEARER   abc "), Some("abc"), "MCP-AR-10");
        for other in [
            &b"Basic abc"[..],
            b"Bearer",
            b"Bearer ",
            b"",
            b"abc",
            b"\xff",
        ] {
            assert_eq!(token_of(other), None);
        }
    }

    #[test]
    fn ar_4_without_credentials_the_challenge_names_no_error() {
        let target = Target::parse("/t/acme/github/mcp/").unwrap();
        assert_eq!(
            Challenge::bare(&site(), &target).value(),
            "Bearer resource_metadata=\"https://mcp.example.com/.well-known/oauth-protected-resource/t/acme/github/mcp/\", scope=\"mcp\"",
            "AUTH-E3: the form that was asked"
        );
    }

    #[test]
    fn ar_4_a_bad_token_is_named_and_ar_6_a_missing_scope_is_listed() {
        let target = Target::parse("/t/acme/mcp").unwrap();
        let metadata = "https://mcp.example.com/.well-known/oauth-protected-resource/t/acme/mcp";
        assert_eq!(
            Challenge::invalid(&site(), &target, "the access token has expired").value(),
            format!(
                "Bearer error=\"invalid_token\", error_description=\"the access token has expired\", resource_metadata=\"{metadata}\", scope=\"mcp\""
            )
        );
        assert_eq!(
            Challenge::insufficient(&site(), &target).value(),
            format!(
                "Bearer error=\"insufficient_scope\", scope=\"mcp\", resource_metadata=\"{metadata}\""
            )
        );
    }
}
