//! The OAuth part of the service: its routes, its state, and its background work.

use axum::{
    Router,
    extract::DefaultBodyLimit,
    http::StatusCode,
    response::IntoResponse,
    routing::{any, get, post},
};
use portolan_cluster::revocations::Revocations;
use portolan_keys::Verifier;
use portolan_model::{resource::Site as ResourceSite, token_family::LOST_ANSWER_WINDOW};
use portolan_net::layers::{Cors, Entrance, Page, SecurityHeaders};
use portolan_storage::{Reason, StorageError, oauth::refresh_tokens, platform::recorder::Recorder};
use serde::Deserialize;
use time::Duration;

use crate::{
    authorize,
    clients::{metadata_document::Fetches, register},
    consent, discovery,
    error::OAuthError,
    introspect, jwks,
    pages::{self, FormTarget},
    rate::{Budget, Rates},
    revoke,
    state::AuthState,
    token::{self, service::Services},
};

/// Settings of the OAuth endpoints.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OAuthConfig {
    /// Life of an access token, in seconds: 300–28800.
    pub access_token_secs: i64,
    /// Life of an authorization code, in seconds: 30–600.
    pub code_secs: i64,
    /// Life of a pending authorization request, in seconds: 600–86400. Sign-up and mail happen inside it.
    pub request_secs: i64,
    /// Whether clients may register themselves (RFC 7591).
    pub dynamic_registration: bool,
    /// New registrations from one network block in an hour.
    pub registrations_per_hour: i64,
    /// New registrations from one network block in a day.
    pub registrations_per_day: i64,
}

impl Default for OAuthConfig {
    fn default() -> Self {
        Self {
            access_token_secs: 3600,
            code_secs: 120,
            request_secs: 3600,
            dynamic_registration: true,
            registrations_per_hour: 20,
            registrations_per_day: 200,
        }
    }
}

/// A setting is out of range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{setting} must be between {least} and {most}")]
pub struct OutOfRange {
    /// Its name.
    pub setting: &'static str,
    /// Smallest value.
    pub least: i64,
    /// Largest value.
    pub most: i64,
}

impl OAuthConfig {
    /// Checks the settings at start. A wrong lifetime is a security fault, so it is refused and not
    /// rounded.
    pub fn check(&self) -> Result<(), OutOfRange> {
        for (setting, value, least, most) in [
            ("access_token_secs", self.access_token_secs, 300, 28_800),
            ("code_secs", self.code_secs, 30, 600),
            ("request_secs", self.request_secs, 600, 86_400),
            (
                "registrations_per_hour",
                self.registrations_per_hour,
                1,
                1_000_000,
            ),
            (
                "registrations_per_day",
                self.registrations_per_day,
                1,
                1_000_000,
            ),
        ] {
            if !(least..=most).contains(&value) {
                return Err(OutOfRange {
                    setting,
                    least,
                    most,
                });
            }
        }
        Ok(())
    }
}

/// State of the OAuth handlers, in addition to the common state.
#[derive(Debug)]
pub struct OAuthParts {
    /// Settings.
    pub config: OAuthConfig,
    /// The site as a set of resources; its text is the issuer.
    pub resources: ResourceSite,
    /// Verifies access tokens of this service (revocation). In a single process the MCP endpoint
    /// shares it.
    pub verifier: Verifier,
    /// Revocations that this process knows. In a single process the MCP endpoint shares them.
    pub revocations: Revocations,
    /// Receives the steps of connecting clients (AUTH-X2).
    pub recorder: Recorder,
    pub(crate) fetches: Fetches,
    pub(crate) refreshes: Rates,
    pub(crate) authorizations: Rates,
    pub(crate) warnings: Rates,
    pub(crate) key_fetches: Rates,
    pub(crate) assertions: Rates,
    pub(crate) services: Services,
    pub(crate) admission_mails: Rates,
}

impl OAuthParts {
    /// Puts the parts together. [`jwks::rotate`] sets the verifier's keys.
    pub fn new(
        config: OAuthConfig,
        resources: ResourceSite,
        verifier: Verifier,
        revocations: Revocations,
    ) -> Self {
        Self {
            config,
            resources,
            verifier,
            revocations,
            recorder: Recorder::off(),
            fetches: Fetches::default(),
            refreshes: Rates::new(Budget {
                burst: 60,
                per: Duration::MINUTE,
            }),
            // A block may be a whole office: the budget is far above what people click, and far
            // below a flood.
            authorizations: Rates::new(Budget {
                burst: 300,
                per: Duration::minutes(5),
            }),
            warnings: Rates::new(Budget {
                burst: 1,
                per: Duration::DAY,
            }),
            key_fetches: Rates::new(Budget {
                burst: 5,
                per: Duration::MINUTE,
            }),
            // Each assertion is a row for some minutes.
            assertions: Rates::new(Budget {
                burst: 300,
                per: Duration::MINUTE,
            }),
            services: Services::default(),
            // The budget of a workspace. Beyond it, administrators find requests in the console.
            admission_mails: Rates::new(Budget {
                burst: 20,
                per: Duration::DAY,
            }),
        }
    }
}

/// Largest form of the token and revocation endpoints, in bytes (AUTH-T8).
const MAX_FORM: usize = 64 * 1024;

/// Routes for programs, with CORS; then pages, without.
pub(crate) fn router(state: &AuthState) -> Router<AuthState> {
    let machine = |router: Router<AuthState>, limit| {
        router
            .layer(DefaultBodyLimit::max(limit))
            .layer(Entrance::new(|fault| OAuthError::from(fault).into_response()).layer())
            .layer(Cors::authorization_server().layer())
            .layer(SecurityHeaders::new(Page::Machine, state.site.is_secure()).layer())
    };
    let forms = Endpoints(vec![
        ("/oauth/token", post(token::token)),
        ("/token", post(token::token)),
        ("/oauth/revoke", post(revoke::revoke)),
        ("/oauth/introspect", post(introspect::introspect)),
    ]);
    let registration = Endpoints(vec![
        ("/oauth/register", post(register::register)),
        ("/register", post(register::register)),
    ]);
    let documents = Endpoints(vec![
        (
            "/.well-known/oauth-authorization-server",
            get(discovery::metadata),
        ),
        ("/oauth/jwks.json", get(jwks::jwks)),
    ]);
    let pages = Router::new().route(
        "/oauth/consent/{request}",
        get(consent::show)
            .post(consent::decide)
            .head(method_not_allowed),
    );
    let authorize = get(authorize::authorize).head(method_not_allowed);
    let pages = [
        "/oauth/authorize",
        "/oauth/authorize/",
        "/authorize",
        "/authorize/",
    ]
    .into_iter()
    .fold(pages, |router, path| router.route(path, authorize.clone()));

    Router::new()
        .merge(machine(forms.into(), MAX_FORM))
        .merge(machine(registration.into(), register::MAX_BODY))
        .merge(machine(documents.into(), 1024))
        .merge(
            Router::new()
                .route(
                    "/.well-known/openid-configuration",
                    any(discovery::no_openid),
                )
                .route("/.well-known/{*rest}", any(discovery::not_found))
                .layer(Cors::authorization_server().layer()),
        )
        .merge(pages::protect(pages, &state.site, FormTarget::Client))
}

struct Endpoints(Vec<(&'static str, axum::routing::MethodRouter<AuthState>)>);

impl From<Endpoints> for Router<AuthState> {
    fn from(endpoints: Endpoints) -> Self {
        endpoints
            .0
            .into_iter()
            .fold(Self::new(), |router, (path, methods)| {
                router
                    .route(path, methods.clone())
                    .route(&format!("{path}/"), methods)
            })
    }
}

/// axum would answer HEAD with the GET handler, and link previews would then make rows (AUTH-E5).
async fn method_not_allowed() -> StatusCode {
    StatusCode::METHOD_NOT_ALLOWED
}

/// Runs one round of periodic work: keys, and data that must not be readable for longer than a day.
/// A tracked task calls it each hour. [`jwks::rotate`] must have been called once before the
/// service is ready. [`portolan_storage::expiry`] deletes expired rows.
pub async fn maintain(state: &AuthState) {
    if let Err(error) = jwks::rotate(state).await {
        tracing::error!(error = %crate::error::chain(&error), "signing keys were not renewed");
    }
    if let Err(error) = forget_successors(state).await {
        tracing::warn!(error = %crate::error::chain(&error), "sealed successors were not removed");
    }
}

/// Deletes sealed successors older than a day (AUTH-K18): until then a superseded refresh token
/// leads to its successor.
async fn forget_successors(state: &AuthState) -> Result<(), StorageError> {
    const BATCH: i64 = 1000;
    let before = state.now() - LOST_ANSWER_WINDOW;
    loop {
        let mut tx = state.store.system(Reason::Janitor).await?;
        let done = refresh_tokens::forget_successors(&mut tx, before, BATCH).await?;
        tx.commit().await?;
        if done < BATCH.unsigned_abs() {
            return Ok(());
        }
    }
}
