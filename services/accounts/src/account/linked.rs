//! A person's connected accounts at upstream servers and APIs, which tools use on the person's
//! behalf; and disconnecting them.

use askama::Template;
use axum::{
    Form,
    extract::{Query, State, rejection::FormRejection},
    response::{IntoResponse, Response},
};
use http::StatusCode;
use portolan_connections::Account;
use portolan_model::audit::Actor;
use portolan_site::{
    browser::Browser,
    pages::{self, fault::PageError, moment::Moment},
    request_context::RequestContext,
    session::MaybeSession,
    state::AuthState,
    target::AccountPage,
};
use portolan_storage::{
    Reason,
    registry::upstream_oauth::{self as stored, Linked},
};
use portolan_upstream_sync::connect::flow::{ConnectError, disconnect};
use serde::Deserialize;

use crate::account::guard::{Done, check_form, form_token, signed_in};

#[derive(Template)]
#[template(path = "account_linked.html")]
struct LinkedPage {
    form_token: String,
    accounts: Vec<ShownLink>,
    notice: Option<&'static str>,
}

struct ShownLink {
    tenant: String,
    source: String,
    name: String,
    host: String,
    workspace: String,
    scope: Option<String>,
    since: Moment,
    renewed: Option<Moment>,
    is_over: bool,
}

/// Shows the list.
pub(crate) async fn show(
    State(state): State<AuthState>,
    browser: Browser,
    MaybeSession(session): MaybeSession,
    Query(done): Query<Done>,
) -> Result<Response, PageError> {
    let session = signed_in(session, AccountPage::Linked)?;
    let mut tx = state.store.system(Reason::Upstreams).await?;
    let accounts = stored::linked(&mut tx, session.user).await?;
    let page = LinkedPage {
        form_token: form_token(&state, &browser, &session),
        accounts: accounts.into_iter().map(shown).collect(),
        notice: done.notice("Disconnected."),
    };
    Ok((browser, pages::html(StatusCode::OK, &page)?).into_response())
}

fn shown(account: Linked) -> ShownLink {
    let host = url::Url::parse(&account.issuer)
        .ok()
        .and_then(|url| url.host_str().map(str::to_owned));
    ShownLink {
        tenant: account.tenant.to_string(),
        source: account.source.to_string(),
        name: account.source_name,
        host: host.unwrap_or(account.issuer),
        workspace: account.tenant_name,
        scope: account.scope.filter(|scope| !scope.is_empty()),
        since: Moment::new(account.connected_at),
        renewed: account.refreshed_at.map(Moment::new),
        is_over: account.status != "ok",
    }
}

/// Fields that a button sends.
#[derive(Debug, Deserialize)]
pub(crate) struct LinkedForm {
    #[serde(default)]
    form_token: String,
    #[serde(default)]
    tenant: String,
    #[serde(default)]
    source: String,
}

/// Disconnects one. A person can only disconnect their own.
pub(crate) async fn submit(
    State(state): State<AuthState>,
    browser: Browser,
    MaybeSession(session): MaybeSession,
    context: RequestContext,
    form: Result<Form<LinkedForm>, FormRejection>,
) -> Result<Response, PageError> {
    let Form(form) = form?;
    let session = signed_in(session, AccountPage::Linked)?;
    check_form(&state, &browser, &session, &form.form_token)?;
    if let (Ok(tenant), Ok(source)) = (form.tenant.parse(), form.source.parse()) {
        let account = Account {
            tenant,
            source,
            owner: Some(session.user),
        };
        match disconnect(&state, account, Actor::User(session.user), &context).await {
            Ok(_) => {}
            Err(ConnectError::Storage(error)) => return Err(error.into()),
            Err(_) => return Err(PageError::Internal("disconnecting")),
        }
    }
    Ok((browser, pages::see_other("/account/linked?done=1")?).into_response())
}
