//! The page where a person connects their own account (MCP-X-86). A client showed its link, and
//! only the person for whom the link was made can open it (MCP-EL-11, MCP-AU-14).

use askama::Template;
use axum::{
    Form,
    extract::{Path, State, rejection::FormRejection},
    response::{IntoResponse, Response},
};
use http::StatusCode;
use portolan_connections::{Account, read_link};
use portolan_model::member::Action;
use portolan_site::{
    access_policy,
    browser::Browser,
    forms,
    pages::{self, Message, fault::PageError},
    session::{BrowserSession, MaybeAnySession},
    state::AuthState,
    target::Target,
};
use portolan_storage::{
    Reason,
    accounts::members,
    registry::{sources, upstream_oauth as stored},
};
use serde::Deserialize;
use url::Url;

use crate::connect::flow::{ConnectError, ConnectRequest, begin};

#[derive(Template)]
#[template(path = "connect.html")]
struct ConnectPage {
    action: String,
    form_token: String,
    source: String,
    host: String,
    workspace: String,
    is_connected: bool,
    fault: Option<String>,
}

/// Fields of the form.
#[derive(Debug, Deserialize)]
pub(crate) struct ConnectForm {
    #[serde(default)]
    form_token: String,
}

/// A link that belongs to this person.
struct Meant {
    account: Account,
    session: BrowserSession,
    page: ConnectPage,
}

/// Shows the account to connect.
pub(crate) async fn show(
    State(state): State<AuthState>,
    browser: Browser,
    MaybeAnySession(session): MaybeAnySession,
    Path(link): Path<String>,
) -> Result<Response, PageError> {
    let answer = match meant(&state, &browser, session, &link).await? {
        Ok(meant) => pages::html(StatusCode::OK, &meant.page)?,
        Err(answer) => answer,
    };
    Ok((browser, answer).into_response())
}

/// Redirects to the source's authorization server.
pub(crate) async fn submit(
    State(state): State<AuthState>,
    browser: Browser,
    MaybeAnySession(session): MaybeAnySession,
    Path(link): Path<String>,
    form: Result<Form<ConnectForm>, FormRejection>,
) -> Result<Response, PageError> {
    let Form(form) = form?;
    let Meant {
        account,
        session,
        mut page,
    } = match meant(&state, &browser, session, &link).await? {
        Ok(meant) => meant,
        Err(answer) => return Ok((browser, answer).into_response()),
    };
    let bound = binding(&browser, &session, &link);
    if browser.is_new() || !forms::is_valid(&state.keys, &bound, &form.form_token) {
        return Err(PageError::ForeignForm);
    }
    let asked = ConnectRequest {
        account,
        user: session.user,
        session: session.id,
        back: "page",
    };
    match begin(&state, asked).await {
        Ok(begun) => Ok((browser, pages::see_other(begun.address.as_str())?).into_response()),
        Err(ConnectError::Storage(error)) => Err(error.into()),
        Err(error) => {
            tracing::info!(tenant.id = %account.tenant, source.id = %account.source, reason = %error, "no way to an upstream authorization server");
            page.fault = Some(format!("The account cannot be connected now: {error}."));
            Ok((browser, pages::html(StatusCode::BAD_GATEWAY, &page)?).into_response())
        }
    }
}

fn binding<'a>(browser: &'a Browser, session: &'a BrowserSession, link: &'a str) -> [&'a [u8]; 4] {
    [
        b"connect",
        browser.digest().as_bytes(),
        session.id.uuid_bytes(),
        link.as_bytes(),
    ]
}

/// The page with the reason why a link does not open.
fn refuse(status: StatusCode, title: &str, text: &str) -> Result<Response, PageError> {
    let page = Message {
        status: None,
        title,
        text,
        link: None,
        request_id: None,
    };
    pages::html(status, &page)
}

/// The contents of a link, or the page with the reason why it does not open. For another person the
/// page does not reveal the link's subject.
async fn meant(
    state: &AuthState,
    browser: &Browser,
    session: Option<BrowserSession>,
    link: &str,
) -> Result<Result<Meant, Response>, PageError> {
    let Some(account) = read_link(&state.keys, link, state.now()) else {
        let text =
            "It has expired or is incomplete. Call the tool again in your app to get a new one.";
        return Ok(Err(refuse(
            StatusCode::NOT_FOUND,
            "This link no longer works",
            text,
        )?));
    };
    let session = session
        .ok_or_else(|| PageError::Elsewhere(Target::Connect(link.to_owned()).on("/login")))?;
    if account.owner != Some(session.user) {
        let text =
            "It was created for another person. Open only links that your own app shows you.";
        return Ok(Err(refuse(
            StatusCode::FORBIDDEN,
            "This link is not for you",
            text,
        )?));
    }
    let gone = || {
        let text =
            "The tool behind it no longer needs your account, or you no longer have access to it.";
        refuse(StatusCode::NOT_FOUND, "This link no longer works", text)
    };
    let mut tx = state.store.system(Reason::Workspaces).await?;
    let mine = members::workspaces_of(&mut tx, session.user).await?;
    let here = mine
        .into_iter()
        .find(|workspace| workspace.tenant.id == account.tenant && session.opens(account.tenant))
        .filter(|workspace| workspace.role.may(Action::CallTools));
    let Some(workspace) = here else {
        return Ok(Err(gone()?));
    };
    let unmet = access_policy::unmet(&mut tx, account.tenant, workspace.role, &session).await?;
    drop(tx);
    if let Some(unmet) = unmet {
        let target = Target::Connect(link.to_owned());
        let path = unmet.path(workspace.tenant.slug.as_str(), &target);
        return Err(PageError::Elsewhere(path));
    }
    let mut tx = state.store.tenant(account.tenant).await?;
    let (Some(source), Some(sign_in)) = (
        sources::find(&mut tx, account.source).await?,
        stored::sign_in(&mut tx, account.source).await?,
    ) else {
        return Ok(Err(gone()?));
    };
    if sign_in.sharing != "person" {
        return Ok(Err(gone()?));
    }
    let connected = stored::connection(&mut tx, account.source, account.owner).await?;
    let host = Url::parse(&source.base_url)
        .ok()
        .and_then(|url| url.host_str().map(str::to_owned));
    let page = ConnectPage {
        action: format!("/connect/accounts/{link}"),
        form_token: forms::token(&state.keys, &binding(browser, &session, link)),
        source: source.name,
        host: host.unwrap_or_default(),
        workspace: workspace.tenant.name,
        is_connected: connected.is_some_and(|row| row.status == "ok" && row.wanted_scope.is_none()),
        fault: None,
    };
    Ok(Ok(Meant {
        account,
        session,
        page,
    }))
}
