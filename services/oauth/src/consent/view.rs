//! The view model of the consent page (AUTH-N1 to AUTH-N3, AUTH-N11, AUTH-C6, AUTH-C7).

use std::fmt::Write as _;

use askama::Template;
use axum::response::Response;
use http::StatusCode;
use portolan_model::{
    client::ClientKind,
    member::Action,
    redirect::{self, Destination},
    scope,
};
use portolan_site::{
    pages::{self, fault::PageError},
    session::BrowserSession,
    state::AuthState,
};
use portolan_storage::{
    oauth::{authorization_requests::AuthorizationRequest, clients::Client},
    registry::offered_servers::OfferedTool,
};
use url::Url;

use crate::{
    admission::{self, Offered},
    clients::{
        first_party,
        verified::{self, Trust},
    },
    consent::{
        form_token,
        target::{GrantTarget, Named},
    },
};

/// One entry of the workspace picker.
#[derive(Debug)]
struct WorkspaceChoice {
    id: String,
    name: String,
    note: String,
    disabled: bool,
    checked: bool,
    /// True if the person can request an administrator's approval of the client here.
    can_ask: bool,
}

/// The view model of the page.
#[derive(Debug, Template)]
#[template(path = "consent.html")]
struct Consent<'a> {
    action: String,
    token: String,
    notice: Option<&'a str>,
    client_name: &'a str,
    /// The id by which an administrator finds the client.
    client_id: &'a str,
    initial: String,
    /// The maker that a host proves.
    verified: Option<&'static str>,
    /// True if the name imitates a known client and no host proves it.
    imitates: bool,
    /// The origin of the client's data: the host of its document, or "registered by itself".
    provenance: String,
    /// The destination of the redirect, in words.
    destination: String,
    loopback: bool,
    /// The scheme of an app, if the redirect opens one.
    scheme: Option<String>,
    email: &'a str,
    offline: bool,
    fixed: Option<WorkspaceChoice>,
    server: Option<&'a Named>,
    /// The tools that the grant would allow; `None` while the workspace is still to be chosen.
    tools: Option<Tools<'a>>,
    choices: Vec<WorkspaceChoice>,
    can_approve: bool,
}

/// Most tool names listed of each kind; the page shows only the number of the others.
const LISTED: usize = 50;

/// The tools as the page describes them.
#[derive(Debug)]
struct Tools<'a> {
    /// "14 tools", and "9 read only, 5 can make changes, 2 of them can delete or overwrite".
    count: String,
    summary: String,
    lists: Vec<ToolList<'a>>,
}

#[derive(Debug)]
struct ToolList<'a> {
    title: &'static str,
    names: Vec<&'a str>,
    more: usize,
}

impl<'a> Tools<'a> {
    fn of(tools: &'a [OfferedTool]) -> Self {
        let list = |title, wanted: &dyn Fn(&OfferedTool) -> bool| {
            let mut names: Vec<&str> = tools
                .iter()
                .filter(|tool| wanted(tool))
                .map(|tool| tool.name.as_str())
                .collect();
            let more = names.len().saturating_sub(LISTED);
            names.truncate(LISTED);
            ToolList { title, names, more }
        };
        let destructive = |tool: &OfferedTool| !tool.reads_only && tool.destructive;
        let changing = tools.iter().filter(|tool| !tool.reads_only).count();
        let destroying = tools.iter().filter(|tool| destructive(tool)).count();
        let mut summary = match (tools.len(), changing) {
            (0, _) => String::new(),
            (_, 0) => "all of them only read".to_owned(),
            (all, changing) if all == changing => "all of them can make changes".to_owned(),
            (_, changing) => format!("{changing} can make changes"),
        };
        if destroying > 0 && destroying == changing {
            summary.push_str(", including deleting or overwriting");
        } else if destroying > 0 {
            let _ = write!(summary, ", {destroying} of them can delete or overwrite");
        }
        let lists = [
            list("Can delete or overwrite", &destructive),
            list("Can make changes", &|tool| {
                !tool.reads_only && !tool.destructive
            }),
            list("Only read", &|tool| tool.reads_only),
        ];
        Self {
            count: match tools.len() {
                1 => "1 tool".to_owned(),
                several => format!("{several} tools"),
            },
            summary,
            lists: lists
                .into_iter()
                .filter(|list| !list.names.is_empty())
                .collect(),
        }
    }
}

/// The page for a person without a workspace for this request: the reason, and a link back to the
/// client.
#[derive(Debug, Template)]
#[template(path = "consent_no_workspace.html")]
struct NoWorkspace<'a> {
    action: String,
    token: String,
    client_name: &'a str,
    email: &'a str,
    /// True if the client named a workspace that this person cannot use; false if the person has
    /// none at all.
    named: bool,
    /// Workspace and server name, if the workspace is theirs but has no such server.
    missing: Option<(&'a str, &'a str)>,
    request: String,
}

/// Workspace and server name, if the target is a server that the workspace does not have.
fn missing(target: &GrantTarget) -> Option<(&str, &str)> {
    match target {
        GrantTarget::NoServer { offered, slug } => {
            Some((offered.choice.name.as_str(), slug.as_str()))
        }
        _ => None,
    }
}

/// The entries of the picker. The first that may be chosen is checked.
fn entries(offered: &[Offered]) -> Vec<WorkspaceChoice> {
    let first = offered.iter().position(may_choose);
    offered
        .iter()
        .enumerate()
        .map(|(at, offered)| entry(offered, Some(at) == first))
        .collect()
}

/// The first letter of a name, as a capital.
fn initial(name: &str) -> String {
    let first = name.chars().next();
    first
        .map(|c| c.to_uppercase().collect())
        .unwrap_or_default()
}

/// Renders the page that fits the target.
pub(crate) fn render(
    state: &AuthState,
    request: &AuthorizationRequest,
    client: &Client,
    session: &BrowserSession,
    target: &GrantTarget,
    notice: Option<&str>,
) -> Result<Response, PageError> {
    let action = crate::authorize::consent_path(request.id);
    let token = form_token(state, request, session);
    let (fixed, server, tools, choices) = match target {
        GrantTarget::NoServer { .. } | GrantTarget::NoAccess | GrantTarget::NoWorkspace => {
            let page = NoWorkspace {
                action,
                token,
                client_name: &client.name,
                email: &session.email,
                named: matches!(target, GrantTarget::NoAccess),
                missing: missing(target),
                request: request.id.to_string(),
            };
            return pages::html(StatusCode::OK, &page);
        }
        GrantTarget::Fixed {
            offered,
            server,
            tools,
        } => {
            let tools = Some(Tools::of(tools));
            let fixed = Some(entry(offered, true));
            (fixed, server.as_ref(), tools, Vec::new())
        }
        GrantTarget::Pick(offered) => (None, None, None, entries(offered)),
    };
    let can_approve = fixed
        .iter()
        .chain(&choices)
        .any(|entry: &WorkspaceChoice| !entry.disabled);
    let trust = verified::trust(client);
    let (destination, loopback, scheme) = if first_party::is(client) {
        ("this console".to_owned(), false, None)
    } else {
        destination(&request.redirect_uri)
    };
    let page = Consent {
        action,
        token,
        notice,
        client_name: &client.name,
        client_id: &client.client_id,
        initial: initial(&client.name),
        verified: match trust {
            Trust::Verified(maker) => Some(maker),
            Trust::Unverified | Trust::Imitates => None,
        },
        imitates: trust == Trust::Imitates,
        provenance: provenance(client),
        destination,
        loopback,
        scheme,
        email: &session.email,
        offline: request
            .scopes_asked
            .iter()
            .any(|asked| asked == scope::OFFLINE_ACCESS)
            || client.has_grant_type("refresh_token"),
        fixed,
        server,
        tools,
        choices,
        can_approve,
    };
    pages::html(StatusCode::OK, &page)
}

fn may_choose(offered: &Offered) -> bool {
    offered.choice.role.may(Action::CallTools) && offered.verdict.admission.is_admitted()
}

fn entry(offered: &Offered, checked: bool) -> WorkspaceChoice {
    let Offered { choice, verdict } = offered;
    let disabled = !may_choose(offered);
    let is_viewer = !choice.role.may(Action::CallTools);
    let note = if is_viewer {
        "Your role is viewer, which cannot call tools. Ask an admin.".to_owned()
    } else if disabled {
        admission::words(*verdict).to_owned()
    } else {
        format!("{} · you are {}", choice.slug, choice.role)
    };
    WorkspaceChoice {
        id: choice.tenant.to_string(),
        name: choice.name.clone(),
        note,
        disabled,
        checked: checked && !disabled,
        can_ask: !is_viewer && verdict.can_be_asked_for(),
    }
}

fn provenance(client: &Client) -> String {
    if first_party::is(client) {
        return "part of this console".to_owned();
    }
    match client.kind {
        ClientKind::Cimd => Url::parse(&client.client_id)
            .ok()
            .and_then(|url| url.host_str().map(|host| format!("described at {host}")))
            .unwrap_or_default(),
        ClientKind::Dynamic => "self-registered".to_owned(),
        ClientKind::Static | ClientKind::Service => "registered by an administrator".to_owned(),
    }
}

/// Returns the destination in words, whether it is this computer, and the scheme of an app.
fn destination(redirect_uri: &str) -> (String, bool, Option<String>) {
    match redirect::destination(redirect_uri) {
        Ok(Destination::Web { host }) => (host, false, None),
        Ok(Destination::Loopback) => ("an app on this computer".to_owned(), true, None),
        Ok(Destination::App { scheme }) => {
            let words = format!("the app that opens {scheme}: links");
            (words, false, Some(scheme))
        }
        // The URI matched a registered one; a rule that became stricter since then is no reason to
        // hide it.
        Err(_) => (redirect_uri.to_owned(), false, None),
    }
}
