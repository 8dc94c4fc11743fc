//! The console's own client (PLAY-1, PLAY-2): the playground of a server, a public client in the
//! browser.
//!
//! Its row is made when its id first appears at the authorization endpoint. Its only redirect URI is a
//! page of the console, so a code can reach no other program.

use portolan_keys::digest;
use portolan_model::{
    client::{AuthMethod, ClientKind},
    id::ClientId,
};
use portolan_site::state::AuthState;
use portolan_storage::{
    Reason, StorageError,
    oauth::clients::{self, Client, NewClient},
};
use serde_json::json;

/// The client's id. Registered ids are random, so no other client can get it.
pub(crate) const CLIENT_ID: &str = "cli_portolan_playground";

/// The name that the consent page shows.
const NAME: &str = "Portolan Playground";

/// The page of the console that receives codes.
const CALLBACK: &str = "/playground/callback";

/// True if this is the console's own client.
pub(crate) fn is(client: &Client) -> bool {
    client.client_id == CLIENT_ID
}

/// The client's row, made or brought up to date if it has to be.
pub(crate) async fn resolve(state: &AuthState) -> Result<Client, StorageError> {
    let redirect_uris = [redirect_uri(state)];
    let mut tx = state.store.system(Reason::OAuth).await?;
    let known = clients::find(&mut tx, CLIENT_ID).await?;
    if let Some(client) = known.as_ref()
        && client.redirect_uris == redirect_uris
    {
        return Ok(client.clone());
    }
    let metadata = json!({
        "client_name": NAME, "redirect_uris": redirect_uris, "token_endpoint_auth_method": "none",
        "grant_types": ["authorization_code"], "response_types": ["code"],
    });
    let id = known
        .as_ref()
        .map_or_else(ClientId::generate, |client| client.id);
    let new = NewClient {
        id,
        client_id: CLIENT_ID,
        kind: ClientKind::Dynamic,
        tenant: None,
        name: NAME,
        metadata: &metadata,
        // A digest of the id: two processes that make the row at once make one.
        metadata_digest: digest(CLIENT_ID.as_bytes()),
        auth_method: AuthMethod::None,
        application_type: "web",
        grant_types: &["authorization_code".to_owned()],
        redirect_uris: &redirect_uris,
        secret: None,
        ip_block: None,
    };
    let client = match known {
        // The public URL of the installation has changed.
        Some(client) => clients::replace_metadata(&mut tx, client.id, &new).await?,
        None => clients::register(&mut tx, &new, state.now()).await?,
    };
    tx.commit().await?;
    Ok(client)
}

/// Where codes go: a page of this console.
pub(crate) fn redirect_uri(state: &AuthState) -> String {
    state.site.url(CALLBACK)
}
