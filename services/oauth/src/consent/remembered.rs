//! The console's own client goes on without the consent page where the person allowed the same
//! before (PLAY-3). Everything that the page would refuse, or ask first, is shown as ever.

use http::HeaderMap;
use portolan_model::member::Action;
use portolan_site::{pages::fault::PageError, session::BrowserSession, state::AuthState};
use portolan_storage::{
    SystemTx,
    oauth::{
        authorization_requests::AuthorizationRequest,
        clients::Client,
        grants::{self, Sought},
    },
};

use crate::{
    clients::first_party,
    consent::{lacking, target::GrantTarget},
};

/// True if an earlier grant of this person answers the request. The grant lives, and covers resource
/// and scopes; the request began on a page of the console and asks for no sign-in or page.
pub(super) async fn is_allowed(
    state: &AuthState,
    tx: &mut SystemTx,
    headers: &HeaderMap,
    request: &AuthorizationRequest,
    client: &Client,
    session: &BrowserSession,
) -> Result<bool, PageError> {
    let Some(resource) = request.resource_asked.as_deref() else {
        return Ok(false);
    };
    // Browsers set the header, and pages cannot: a link elsewhere never gets a code in silence.
    let is_from_console = headers
        .get("sec-fetch-site")
        .is_some_and(|site| site == "same-origin");
    if !is_from_console
        || !first_party::is(client)
        || request.prompt.is_some()
        // A sign-in in between sends the same header, though the link was elsewhere.
        || session.auth_time >= request.created_at
        || request.redirect_uri != first_party::redirect_uri(state)
    {
        return Ok(false);
    }
    let target = GrantTarget::find(state, tx, request, client, session).await?;
    let Some(choice) = target
        .chosen("")
        .filter(|choice| choice.role.may(Action::CallTools))
    else {
        return Ok(false);
    };
    if lacking(tx, request, session, choice).await?.is_some() {
        return Ok(false);
    }
    let sought = Sought {
        tenant: choice.tenant,
        user: session.user,
        client: client.id,
        resource,
        scopes: &request.scopes_asked,
    };
    Ok(grants::is_live(tx, &sought, state.now()).await?)
}
