//! Bearer tokens: each is verified once and cached by its digest (AUTH-4.5, AUTH-5.2;
//! MCP-AR-1…MCP-AR-14).

use std::{
    net::IpAddr,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use http::{HeaderMap, HeaderValue, header};
use ipnet::IpNet;
use portolan_cluster::{Revocations, TokenFacts, node::LimitKey, store::Principal};
use portolan_keys::{AccessClaims, Verifier, VerifyError, digest};
use portolan_model::{
    Digest, Timestamp,
    resource::{Resource, Site},
    scope,
};
use quick_cache::sync::Cache;
use tokio_util::sync::CancellationToken;

use crate::{
    catalog::Entry,
    error::McpError,
    http::api_key::{self, ApiKeys, KeyRefused},
    target::Target,
};

/// How long a stream stays open after a revocation, so that a call can send its final error.
///
/// This is well within the second that a revocation may take (AUTH-R9).
const LAST_WORD: Duration = Duration::from_millis(400);
/// The size at which the list of callers is first purged of dropped callers.
const LIVING: usize = 1024;
/// Longest `Authorization` header that is read, in bytes (AUTH-4.5.1).
const MAX_HEADER_BYTES: usize = 4096;

/// The holder of a good token.
#[derive(Debug)]
pub(crate) struct Caller {
    /// The claims as verified.
    pub(crate) claims: AccessClaims,
    /// The resource in `aud`; `None` for a resource of an earlier shape, which gives no access.
    granted: Option<Resource>,
    /// Digest of tenant, person and client: the owner of sessions and limits.
    pub(crate) principal: Digest,
    /// The bucket of its requests.
    pub(crate) requests: LimitKey,
    /// The bucket of the streams that it opens.
    pub(crate) stream_opens: LimitKey,
    /// The bucket of its progress notifications about questions.
    pub(crate) progress: LimitKey,
    /// Cancelled when the token is revoked: its running calls stop, and its streams close.
    pub(crate) revoked: CancellationToken,
    key_id: String,
    has_scope: bool,
    /// Unix time in seconds until which it is not checked again.
    ///
    /// This is the end of a token, or a few minutes after the lookup of an API key.
    remembered_until: i64,
    /// The networks from which an API key may be used; `None` allows every address.
    networks: Option<Box<[IpNet]>>,
    /// The minute, since the epoch, in which this node last noted a use of the grant.
    noted: AtomicI64,
}

impl Caller {
    fn new(site: &Site, token: &str, claims: AccessClaims) -> Self {
        let mut principal = Vec::with_capacity(32 + claims.client_id.len());
        principal.extend_from_slice(claims.tid.uuid().as_bytes());
        principal.extend_from_slice(claims.sub.uuid().as_bytes());
        principal.extend_from_slice(claims.client_id.as_bytes());
        let principal = digest(&principal);
        let bucket = |kind: char| LimitKey {
            shard: claims.tid.uuid().simple().to_string(),
            bucket: format!(
                "{kind}{}",
                URL_SAFE_NO_PAD.encode(&principal.as_bytes()[..16])
            ),
        };
        Self {
            granted: site.read_canonical(&claims.aud),
            requests: bucket('p'),
            stream_opens: bucket('s'),
            progress: bucket('q'),
            principal,
            revoked: CancellationToken::new(),
            key_id: key_id(token).unwrap_or_default(),
            has_scope: claims.scope.split(' ').any(|one| one == scope::MCP),
            remembered_until: claims.exp,
            networks: None,
            noted: AtomicI64::new(i64::MIN),
            claims,
        }
    }

    /// The holder of an API key, which is looked up again after `remembered_until`.
    pub(crate) fn of_key(
        site: &Site,
        claims: AccessClaims,
        remembered_until: Timestamp,
        networks: Option<Box<[IpNet]>>,
    ) -> Self {
        let until = remembered_until.unix_timestamp().min(claims.exp);
        Self {
            remembered_until: until,
            networks,
            ..Self::new(site, "", claims)
        }
    }

    /// Whether the caller needs no new check at `now`.
    pub(crate) const fn is_fresh(&self, now: Timestamp) -> bool {
        now.unix_timestamp() < self.remembered_until
    }

    /// Whether requests may come from this address (AUTH-C17).
    pub(crate) fn may_come_from(&self, address: Option<IpAddr>) -> bool {
        match (&self.networks, address) {
            (None, _) => true,
            (Some(networks), Some(address)) => api_key::is_within(networks, address),
            (Some(_), None) => false,
        }
    }

    /// Whether this use is the first in its minute on this node, and is therefore noted.
    pub(crate) fn begins_a_minute(&self, now: Timestamp) -> bool {
        let minute = now.unix_timestamp() / 60;
        self.noted.load(Ordering::Relaxed) != minute
            && self.noted.swap(minute, Ordering::Relaxed) != minute
    }

    /// The facts that a revocation can name.
    pub(crate) fn facts(&self) -> TokenFacts<'_> {
        let claims = &self.claims;
        TokenFacts {
            token: claims.jti,
            grant: claims.gid,
            subject: claims.sub,
            tenant: claims.tid,
            client: &claims.client_id,
            key: &self.key_id,
            user_epoch: claims.ep.user,
            tenant_epoch: claims.ep.tenant,
            member_epoch: claims.ep.member,
        }
    }

    /// The owner of its sessions, in the form that the cluster compares.
    pub(crate) fn session_principal(&self) -> Principal {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&self.principal.as_bytes()[..16]);
        Principal(bytes)
    }

    /// Completes when everything open under the token must close.
    ///
    /// The token is revoked by then, and running calls have had a moment to send their final error.
    pub(crate) async fn over(self: Arc<Self>) {
        self.revoked.cancelled().await;
        tokio::time::sleep(LAST_WORD).await;
    }

    /// When the token expires.
    pub(crate) fn expires_at(&self) -> Timestamp {
        Timestamp::from_unix_timestamp(self.claims.exp).unwrap_or(Timestamp::UNIX_EPOCH)
    }

    /// AUTH-4.5.8: whether the token is for this resource or for a wider one.
    ///
    /// The caller has compared the tenant already.
    pub(crate) fn may_use(
        &self,
        target: &Resource,
        names_tenant: impl Fn(&str) -> bool,
        workspace_tokens: bool,
    ) -> bool {
        self.granted
            .as_ref()
            .is_some_and(|granted| target.admits(granted, names_tenant, workspace_tokens))
    }
}

/// The key id in the header of a token whose signature was verified.
fn key_id(token: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Header {
        kid: String,
    }
    let bytes = URL_SAFE_NO_PAD.decode(token.split('.').next()?).ok()?;
    serde_json::from_slice::<Header>(&bytes)
        .ok()
        .map(|header| header.kid)
}

/// The contents of a `WWW-Authenticate` header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Challenge {
    metadata: String,
    error: Option<(&'static str, &'static str)>,
}

impl Challenge {
    /// The challenge without credentials, and therefore without `error` (MCP-AR-4).
    ///
    /// It links to the metadata of the path as the client wrote it (AUTH-E3).
    pub(crate) fn bare(site: &Site, target: &Target<'_>) -> Self {
        Self {
            metadata: format!(
                "{}/.well-known/oauth-protected-resource{}",
                site.issuer(),
                target.described()
            ),
            error: None,
        }
    }

    /// The challenge for a token that is not valid here.
    pub(crate) fn invalid(site: &Site, target: &Target<'_>, description: &'static str) -> Self {
        Self {
            error: Some(("invalid_token", description)),
            ..Self::bare(site, target)
        }
    }

    /// The challenge for a token that lacks the scope. It names all required scopes (MCP-AR-6).
    pub(crate) fn insufficient(site: &Site, target: &Target<'_>) -> Self {
        Self {
            error: Some(("insufficient_scope", "")),
            ..Self::bare(site, target)
        }
    }

    /// The sentence in the body, for human readers.
    pub(crate) fn sentence(&self) -> &'static str {
        match self.error {
            None => "Authorization required",
            Some(("insufficient_scope", _)) => "The token lacks the scope mcp",
            Some((_, description)) => description,
        }
    }

    /// The header value. All parts are our own, or were checked to need no escape.
    pub(crate) fn value(&self) -> HeaderValue {
        let (metadata, scope) = (&self.metadata, scope::MCP);
        let text = match self.error {
            None => format!("Bearer resource_metadata=\"{metadata}\", scope=\"{scope}\""),
            Some((error, "")) => format!(
                "Bearer error=\"{error}\", scope=\"{scope}\", resource_metadata=\"{metadata}\""
            ),
            Some((error, description)) => format!(
                "Bearer error=\"{error}\", error_description=\"{description}\", resource_metadata=\"{metadata}\", scope=\"{scope}\""
            ),
        };
        HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("Bearer"))
    }
}

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
