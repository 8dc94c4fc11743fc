//! Connecting accounts at upstream servers and APIs: the redirect to their authorization server,
//! and the callback (`docs/authorization-rules.md`, *Platform as OAuth client of upstreams*).
//!
//! An administrator connects the workspace's account from the console. A person connects their own
//! from a page whose link a client showed (MCP-X-86, MCP-EL-11). Both return to one address per
//! source, so that no two authorization servers share one (MCP-AU-9: what `iss` does for servers
//! that send it).

mod callback;
mod document;
mod flow;
mod page;

use axum::{Router, routing::get};
use portolan_connections::SealError;
use portolan_keys::KeysError;
use portolan_model::id::SourceId;
use portolan_storage::StorageError;
use portolan_upstream::oauth::OauthError;

pub(crate) use self::flow::{
    Asked, begin, by_client_credentials, disconnect, give_back_later, put_client,
};
use crate::{
    config::Site,
    pages::{self, FormTarget},
    state::AuthState,
};

/// Why an account is not connected.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    /// The source does not exist, or has no OAuth sign-in.
    #[error("there is no such source that is signed in to")]
    Unknown,
    /// MCP-AU-7: the client that the tenant entered belongs to another authorization server.
    #[error(
        "the client that was entered belongs to {known}, but the server now names {found}: enter the client that you have there"
    )]
    ClientOfAnother {
        /// The issuer of the client.
        known: String,
        /// The present issuer.
        found: String,
    },
    /// The API has no entered authorization server.
    #[error("name the authorization server of this API first")]
    NoServer,
    /// Client credentials need a client with a secret or a key.
    #[error("enter a client id with a secret or a key first")]
    NoClient,
    /// The authorization server failed or refused.
    #[error("{0}")]
    Oauth(#[from] OauthError),
    /// The database failed.
    #[error("storage")]
    Storage(#[from] StorageError),
    /// A sealed value could not be opened or made.
    #[error("a seal does not open")]
    Seal(#[from] SealError),
    /// There was no randomness.
    #[error("keys")]
    Keys(#[from] KeysError),
    /// A bug.
    #[error("internal: {0}")]
    Internal(&'static str),
}

/// The callback of a source. Each source has its own: an authorization server that sends no `iss`
/// cannot pass for another (MCP-AU-9).
pub(crate) fn redirect_uri(site: &Site, source: SourceId) -> String {
    site.url(&format!("/connect/callback/{source}"))
}

/// The address of the client metadata document for a source. It is the client id for servers that
/// support such documents (MCP-AU-6). Each source has its own, so that a person's consent for one
/// workspace does not count for another. Only an `https` address can be one (MCP-AC-11).
pub(crate) fn document_url(site: &Site, source: SourceId) -> Option<String> {
    let url = site.url(&format!("/connect/clients/{source}"));
    url.starts_with("https://").then_some(url)
}

/// Routes of the pages and callbacks.
pub(crate) fn router(state: &AuthState) -> Router<AuthState> {
    let router = Router::new()
        .route(
            "/connect/accounts/{link}",
            get(page::show).post(page::submit),
        )
        .route("/connect/callback/{source}", get(callback::take));
    pages::protect(router, &state.site, FormTarget::Client)
        .merge(Router::new().route("/connect/clients/{source}", get(document::show)))
}
