//! Tokens of the management API that the token endpoint gives: to jobs of CI systems, and to
//! service accounts (API-18, API-24). A request names the workspace by `resource`.

use portolan_keys::{Secret, SecretToken, TokenForm};
use portolan_model::{
    Digest, Timestamp,
    api_scope::ApiScope,
    id::{AccessTokenId, TenantId},
    slug::Slug,
};
use portolan_site::{request_context::RequestContext, state::AuthState, throttle::TooEarly};
use portolan_storage::accounts::access_tokens::IssuedToken;
use time::Duration;

use crate::{
    error::{ErrorCode, OAuthError},
    parameters::Parameters,
    token::form::Tokens,
};

/// Path of the management API at the issuer.
const API: &str = "/api/v1";

/// The workspace and the scopes that a request names.
pub(crate) struct WantedToken {
    pub(crate) workspace: Slug,
    /// `None` for all scopes that are given.
    scopes: Option<Vec<ApiScope>>,
}

impl WantedToken {
    /// Reads `resource` and `scope`.
    pub(crate) fn read(state: &AuthState, form: &Parameters) -> Result<Self, OAuthError> {
        Ok(Self {
            workspace: workspace(state, form)?,
            scopes: form.first("scope").map(scopes).transpose()?,
        })
    }

    /// The scopes of the token: those that are given, or the wanted ones if each is among them.
    pub(crate) fn scopes_of(&self, given: &[ApiScope]) -> Result<Vec<ApiScope>, OAuthError> {
        let Some(wanted) = &self.scopes else {
            return Ok(given.to_vec());
        };
        let is_given = |scope: &ApiScope| given.iter().any(|one| one.includes(*scope));
        if wanted.is_empty() || !wanted.iter().all(is_given) {
            return Err(OAuthError::refused(
                ErrorCode::InvalidScope,
                "this scope is not given here",
            ));
        }
        let all = ApiScope::ALL.into_iter();
        Ok(all.filter(|scope| wanted.contains(scope)).collect())
    }
}

/// Returns true if the first `resource` is at the management API. Resources of MCP are not.
pub(crate) fn is_wanted(state: &AuthState, form: &Parameters) -> bool {
    let resource = form.all("resource").next();
    let path = resource.and_then(|text| text.strip_prefix(state.site.issuer()));
    path.and_then(|path| path.strip_prefix(API))
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The workspace that `resource` names, which is its address in the management API.
fn workspace(state: &AuthState, form: &Parameters) -> Result<Slug, OAuthError> {
    let refused = OAuthError::refused(
        ErrorCode::InvalidTarget,
        "resource must be the address of one workspace: /api/v1/workspaces/ and its slug at this issuer",
    );
    let mut all = form.all("resource");
    let (Some(text), None, None) = (all.next(), all.next(), form.first("audience")) else {
        return Err(refused);
    };
    text.strip_prefix(state.site.issuer())
        .and_then(|path| path.strip_prefix(API)?.strip_prefix("/workspaces/"))
        .map(|slug| slug.strip_suffix('/').unwrap_or(slug))
        .and_then(|slug| slug.parse().ok())
        .ok_or(refused)
}

fn scopes(text: &str) -> Result<Vec<ApiScope>, OAuthError> {
    text.split(' ')
        .filter(|word| !word.is_empty())
        .map(|word| {
            word.parse().map_err(|_| {
                OAuthError::refused(
                    ErrorCode::InvalidScope,
                    "scope names no scope of the management API",
                )
            })
        })
        .collect()
}

/// Takes a request from the budget of its address (API-22).
pub(crate) async fn take_request(
    state: &AuthState,
    context: &RequestContext,
) -> Result<(), OAuthError> {
    let budget = state
        .throttle
        .workspace_token_request(context.ip, state.now());
    budget.await.map_err(too_many)
}

fn too_many(early: TooEarly) -> OAuthError {
    OAuthError::TooMany {
        retry_after: early.seconds(),
    }
}

/// A token that is not stored yet.
pub(crate) struct NewToken {
    pub(crate) id: AccessTokenId,
    pub(crate) scopes: Vec<ApiScope>,
    secret: SecretToken,
    digest: Digest,
    life: Duration,
    expires_at: Timestamp,
}

impl NewToken {
    /// Generates a token, from the budget of its workspace (API-22).
    pub(crate) async fn generate(
        state: &AuthState,
        tenant: TenantId,
        scopes: Vec<ApiScope>,
        life: Duration,
    ) -> Result<Self, OAuthError> {
        let now = state.now();
        let budget = state.throttle.issued_token(tenant, now).await;
        budget.map_err(too_many)?;
        let secret = SecretToken::generate(TokenForm::WorkspaceToken)?;
        Ok(Self {
            id: AccessTokenId::generate(),
            scopes,
            digest: secret.digest(),
            secret,
            life,
            expires_at: now + life,
        })
    }

    /// The token as it is stored.
    pub(crate) fn stored(&self) -> IssuedToken<'_> {
        IssuedToken {
            id: self.id,
            digest: &self.digest,
            hint: self.secret.hint(),
            scopes: &self.scopes,
            expires_at: self.expires_at,
        }
    }

    /// The answer with the token. `issued_token_type` is that of a token exchange.
    pub(crate) fn answer(self, issued_token_type: Option<&'static str>) -> Tokens {
        let words: Vec<&str> = self.scopes.iter().map(|scope| scope.as_str()).collect();
        Tokens {
            access: Secret::new(self.secret.expose().to_owned()),
            issued_token_type,
            expires_in: self.life.whole_seconds(),
            scope: words.join(" "),
            refresh: None,
        }
    }
}
