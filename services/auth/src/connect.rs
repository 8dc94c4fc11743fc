//! Connecting accounts at other people's MCP servers and APIs: the way to their authorization server and back (`spec/authorization.md` §8).
//!
//! Two ways lead in: somebody who edits the registry connects the workspace's account from the console; a person connects their own from a
//! page of ours, whose link a client showed (X-86, EL-11). Both come back to one address per source, so that no two authorization servers
//! share one (AU-9: what `iss` does for those that send it).

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
    /// There is no such source, or it is not signed in to by OAuth.
    #[error("there is no such source that is signed in to")]
    Unknown,
    /// AU-7: the client that the tenant entered is one of another authorization server.
    #[error(
        "the client that was entered belongs to {known}, but the server now names {found}: enter the client that you have there"
    )]
    ClientOfAnother {
        /// Where it was used.
        known: String,
        /// Who is asked now.
        found: String,
    },
    /// Nobody named the authorization server of an API.
    #[error("name the authorization server of this API first")]
    NoServer,
    /// Client credentials need a client with a secret or a key.
    #[error("enter a client id with a secret or a key first")]
    NoClient,
    /// The authorization server.
    #[error("{0}")]
    Oauth(#[from] OauthError),
    /// The database.
    #[error("storage")]
    Storage(#[from] StorageError),
    /// A seal.
    #[error("a seal does not open")]
    Seal(#[from] SealError),
    /// No randomness.
    #[error("keys")]
    Keys(#[from] KeysError),
    /// A bug.
    #[error("internal: {0}")]
    Internal(&'static str),
}

/// Where answers for a source come. One for each source: an authorization server that sends no `iss` cannot pass for another (AU-9).
pub(crate) fn redirect_uri(site: &Site, source: SourceId) -> String {
    site.url(&format!("/connect/callback/{source}"))
}

/// The address of our client metadata document for a source, which is our client id where servers know such documents (AU-6). One for
/// each source, so that what a person allowed one workspace is not taken as allowed for another. Only `https` can be one (AC-11).
pub(crate) fn document_url(site: &Site, source: SourceId) -> Option<String> {
    let url = site.url(&format!("/connect/clients/{source}"));
    url.starts_with("https://").then_some(url)
}

/// Pages and addresses.
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
