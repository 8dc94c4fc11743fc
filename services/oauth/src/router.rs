//! Routes of the OAuth endpoints: for programs with CORS, then pages without.

use axum::{
    Router,
    extract::DefaultBodyLimit,
    http::StatusCode,
    response::IntoResponse,
    routing::{any, get, post},
};
use portolan_net::layers::{Cors, Entrance, PageKind, SecurityHeaders};
use portolan_site::{
    pages::{self, FormTarget},
    state::AuthState,
};

use crate::{
    authorize, clients::register, consent, discovery, error::OAuthError, introspect, jwks, revoke,
    token,
};

/// Largest form of the token and revocation endpoints, in bytes (AUTH-T8).
pub(crate) const MAX_FORM: usize = 64 * 1024;

/// Routes for programs, with CORS; then pages, without.
pub fn router(state: &AuthState) -> Router<AuthState> {
    let machine = |router: Router<AuthState>, limit| {
        router
            .layer(DefaultBodyLimit::max(limit))
            .layer(Entrance::new(|fault| OAuthError::from(fault).into_response()).layer())
            .layer(Cors::authorization_server().layer())
            .layer(SecurityHeaders::new(PageKind::Machine, state.site.is_secure()).layer())
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

pub(crate) struct Endpoints(Vec<(&'static str, axum::routing::MethodRouter<AuthState>)>);

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
pub(crate) async fn method_not_allowed() -> StatusCode {
    StatusCode::METHOD_NOT_ALLOWED
}
