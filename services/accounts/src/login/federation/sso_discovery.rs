//! "Sign in with SSO" (AUTH-F7): finds the provider by the domain of an address, or by a workspace
//! that requires its own provider.

use askama::Template;
use axum::{
    extract::{Path, Query, State},
    response::{IntoResponse, Response},
};
use http::StatusCode;
use portolan_model::{email::EmailAddress, id::IdentityProviderId};
use portolan_site::{
    browser::Browser,
    pages::{self, fault::PageError},
    request_context::RequestContext,
    session::MaybeAnySession,
    state::AuthState,
};
use portolan_storage::{
    Reason,
    accounts::{members, single_sign_on},
};
use serde::Deserialize;

use crate::login::{
    continuation::Continuation,
    federation::links::{ProviderLink, link},
    form::form_token,
};

#[derive(Template)]
#[template(path = "login_company.html")]
struct DiscoveryPage<'a> {
    request: String,
    email: &'a str,
    /// The workspace that requires the provider.
    workspace: Option<&'a str>,
    providers: Vec<ProviderLink>,
    fault: Option<&'static str>,
    login_path: String,
}

/// Parameters of the page.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct CompanyQuery {
    request: Option<String>,
    email: Option<String>,
}

/// Shows the form for an address, or the sign-in of that address's provider. It reads the domain
/// alone, so it does not reveal whether an account exists (AUTH-L5).
pub(crate) async fn show(
    State(state): State<AuthState>,
    browser: Browser,
    context: RequestContext,
    Query(query): Query<CompanyQuery>,
) -> Result<Response, PageError> {
    let continuation = Continuation::load(&state, &browser, query.request.as_deref()).await?;
    let email = query.email.as_deref().unwrap_or_default();
    let hint = continuation.login_hint().to_owned();
    if email.is_empty() {
        return page(&state, browser, &continuation, (&hint, None), None, None);
    }
    state.throttle.request(context.ip, state.now()).await?;
    let address = EmailAddress::parse(email).ok();
    let domain = address
        .as_ref()
        .and_then(|address| address.normalised().rsplit_once('@'));
    let found = match domain {
        Some((_, domain)) => {
            let mut tx = state.store.system(Reason::SignIn).await?;
            single_sign_on::for_domain(&mut tx, domain).await?
        }
        None => None,
    };
    let fault = found
        .is_none()
        .then_some("No SSO is set up for this address. Check it, or sign in another way.");
    page(
        &state,
        browser,
        &continuation,
        (email, None),
        found.map(|found| (found, false)),
        fault,
    )
}

/// The link to a workspace's provider, for its members. All others get the response for an unknown
/// workspace (AUTH-M2).
pub(crate) async fn show_workspace(
    State(state): State<AuthState>,
    browser: Browser,
    MaybeAnySession(session): MaybeAnySession,
    Path(workspace): Path<String>,
    Query(query): Query<CompanyQuery>,
) -> Result<Response, PageError> {
    let continuation = Continuation::load(&state, &browser, query.request.as_deref()).await?;
    let Some(session) = session else {
        return Err(PageError::Elsewhere(continuation.target.on("/login")));
    };
    let mut tx = state.store.system(Reason::SignIn).await?;
    let mine = members::workspace_of(&mut tx, session.user, &workspace)
        .await?
        .filter(|mine| session.opens(mine.tenant.id));
    let found = match &mine {
        Some(mine) => single_sign_on::for_tenant(&mut tx, mine.tenant.id).await?,
        None => None,
    };
    drop(tx);
    let name = mine
        .filter(|_| found.is_some())
        .map(|mine| mine.tenant.name);
    page(
        &state,
        browser,
        &continuation,
        ("", name.as_deref()),
        found.map(|found| (found, session.only_tenant.is_some())),
        None,
    )
}

fn page(
    state: &AuthState,
    browser: Browser,
    continuation: &Continuation,
    (email, workspace): (&str, Option<&str>),
    found: Option<((IdentityProviderId, String), bool)>,
    fault: Option<&'static str>,
) -> Result<Response, PageError> {
    let token = form_token(&state.keys, &browser);
    let status = match fault {
        Some(_) => StatusCode::NOT_FOUND,
        None => StatusCode::OK,
    };
    let providers = found.into_iter().map(|((id, name), confirm)| {
        let path = link(&format!("/login/with/{id}"), &continuation.target, &token);
        ProviderLink {
            name,
            path: if confirm {
                format!("{path}&confirm=1")
            } else {
                path
            },
        }
    });
    let page = DiscoveryPage {
        request: continuation.parameter(),
        email,
        workspace,
        providers: providers.collect(),
        fault,
        login_path: continuation.target.on("/login"),
    };
    Ok((browser, pages::html(status, &page)?).into_response())
}
