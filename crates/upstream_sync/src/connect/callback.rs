//! The callback of another authorization server (MCP-AU-9, MCP-AU-10).

use axum::{
    extract::{Path, Query, State},
    response::{IntoResponse, Response},
};
use http::StatusCode;
use portolan_connections::Account;
use portolan_keys::{digest, seal::open_under_token};
use portolan_model::{audit::Actor, id::SourceId, member::Action};
use portolan_site::{
    access_policy,
    browser::Browser,
    pages::{self, Message, fault::PageError},
    request_context::RequestContext,
    returned::Returned,
    session::{BrowserSession, MaybeAnySession},
    state::AuthState,
};
use portolan_storage::{Reason, registry::upstream_oauth as stored};
use portolan_upstream::oauth::{
    AuthorizationAttempt, AuthorizationServer, Callback, Grant, redeem,
};

use crate::{
    connect::flow::{ConnectError, Fresh, Sealed, forget_client_if, keep},
    sync::{self, Why},
};

/// Handles the callback. Every fault is one page, which contains no text of the request.
pub(crate) async fn take(
    State(state): State<AuthState>,
    browser: Browser,
    MaybeAnySession(session): MaybeAnySession,
    context: RequestContext,
    Path(source): Path<String>,
    Query(returned): Query<Returned>,
) -> Result<Response, PageError> {
    let not_ours = |browser| {
        let page = Message {
            status: Some(400),
            title: "Not connected",
            text: "This sign-in was started in another browser, too long ago, or was already used. Start again from where you came.",
            link: None,
            request_id: None,
        };
        Ok((browser, pages::html(StatusCode::BAD_REQUEST, &page)?).into_response())
    };
    let (Some(session), Ok(source)) = (session, source.parse::<SourceId>()) else {
        return not_ours(browser);
    };
    let Some((token, callback)) = returned.read() else {
        return not_ours(browser);
    };
    let now = state.now();
    let name = digest(token.as_bytes());
    let mut tx = state.store.system(Reason::Upstreams).await?;
    let taken = stored::take_attempt(&mut tx, &name, source, session.user, session.id, now).await?;
    tx.commit().await?;
    let Some(attempt) = taken else {
        return not_ours(browser);
    };
    let account = Account {
        tenant: attempt.tenant,
        source,
        owner: attempt.owner,
    };
    let in_console = attempt.back == "console";
    let slug = workspace_path(&state, &session, account).await?;
    let link = match (&slug, in_console) {
        (Some(slug), true) => format!("/w/{slug}/sources/{source}?tab=credential"),
        _ => "/account/linked".to_owned(),
    };
    let outcome = match slug {
        // A person who may not connect the account any more gets an error.
        None => Err(ConnectError::Unknown),
        Some(_) => {
            let answer = (token.as_str(), &callback);
            redeemed(&state, &session, account, attempt, answer, &context).await
        }
    };
    if let Err(error) = outcome {
        tracing::info!(tenant.id = %account.tenant, source.id = %source, reason = %error, "an upstream account was not connected");
        if let ConnectError::Oauth(error) = &error {
            forget_client_if(&state, account.tenant, source, error).await?;
        }
        return not_connected(browser, &error, &link);
    }
    if in_console {
        // The server's lists can be read now. [`sync::sync`] records a failure.
        let origin = context.origin();
        let by = (Actor::User(session.user), &origin);
        let looked = sync::sync(&state, account.tenant, source, Why::Look, by).await;
        if let Err(error) = looked {
            tracing::debug!(tenant.id = %account.tenant, source.id = %source, reason = %error, "a connected server could not be looked at");
        }
        return Ok((browser, pages::see_other(&link)?).into_response());
    }
    let page = Message {
        status: None,
        title: "Connected",
        text: "Your account is connected. Go back to your app to continue, or call the tool again.",
        link: Some(("Your linked accounts", &link)),
        request_id: None,
    };
    Ok((browser, pages::html(StatusCode::OK, &page)?).into_response())
}

/// The page with the reason why the account was not connected.
fn not_connected(
    browser: Browser,
    error: &ConnectError,
    link: &str,
) -> Result<Response, PageError> {
    let text = match error {
        ConnectError::Oauth(error) => format!("{}.", capitalised(&error.to_string())),
        ConnectError::Storage(_) => {
            "A part of the service is not responding. Try again.".to_owned()
        }
        _ => "The sign-in could not be completed. Start again from where you came.".to_owned(),
    };
    let page = Message {
        status: None,
        title: "Not connected",
        text: &text,
        link: Some(("Go back", link)),
        request_id: None,
    };
    Ok((browser, pages::html(StatusCode::BAD_REQUEST, &page)?).into_response())
}

/// The slug of the account's workspace, if the person may still connect it. The workspace's account
/// needs a role that edits the registry; a person's own needs one that calls tools.
async fn workspace_path(
    state: &AuthState,
    session: &BrowserSession,
    account: Account,
) -> Result<Option<String>, PageError> {
    let mut tx = state.store.system(Reason::Workspaces).await?;
    let mine = portolan_storage::accounts::members::workspaces_of(&mut tx, session.user).await?;
    let action = match account.owner {
        None => Action::EditRegistry,
        Some(_) => Action::CallTools,
    };
    let found = mine
        .into_iter()
        .find(|workspace| workspace.tenant.id == account.tenant && workspace.role.may(action));
    let Some(workspace) = found else {
        return Ok(None);
    };
    let unmet = access_policy::unmet(&mut tx, account.tenant, workspace.role, session).await?;
    Ok(unmet.is_none().then(|| workspace.tenant.slug.to_string()))
}

async fn redeemed(
    state: &AuthState,
    session: &BrowserSession,
    account: Account,
    attempt: stored::ReturnedAttempt,
    (token, callback): (&str, &Callback),
    context: &RequestContext,
) -> Result<(), ConnectError> {
    let server: AuthorizationServer = serde_json::from_value(attempt.server.clone())
        .map_err(|_| ConnectError::Internal("attempt"))?;
    let code = AuthorizationAttempt::check(&server, callback)?;
    let place = account.source.uuid();
    let opened = open_under_token(token, &attempt.sealed, place.as_bytes())
        .map_err(portolan_connections::SealError::from)?;
    let sealed: Sealed =
        serde_json::from_slice(opened.expose()).map_err(|_| ConnectError::Internal("attempt"))?;
    let grant = Grant::Code {
        code: &code,
        verifier: &sealed.verifier,
        redirect_uri: &attempt.redirect_uri,
    };
    let resource = attempt.resource.as_deref();
    let (egress, now) = (&state.egress, state.now());
    let tokens = redeem(egress, &server, &sealed.client, grant, resource, None, now).await?;
    let fresh = Fresh {
        account,
        user: session.user,
        server: attempt.server,
        issuer: server.issuer,
        address: attempt.address,
        resource: attempt.resource,
        scope: attempt.scope,
        client: sealed.client,
        client_credentials: false,
        tokens,
    };
    keep(state, fresh, context).await
}

fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    match characters.next() {
        Some(first) => first.to_uppercase().chain(characters).collect(),
        None => String::new(),
    }
}
