//! The target of a grant: the workspaces that the person may choose, and each one's rule for the
//! client (AUTH-N3, AUTH-M7, AUTH-C16).

use portolan_model::{id::TenantId, registry::ServerStatus, resource::Resource};
use portolan_site::{pages::fault::PageError, session::BrowserSession, state::AuthState};
use portolan_storage::{
    SystemTx,
    accounts::workspace_hints::{self, Choice},
    oauth::{authorization_requests::AuthorizationRequest, clients::Client},
    registry::offered_servers::{self, OfferedTool},
};

use crate::admission::{self, Offered};

/// The one server that a client names.
#[derive(Debug)]
pub(crate) struct Named {
    /// Its segment of the URL.
    pub(crate) slug: String,
    /// The name that people see.
    pub(crate) name: String,
    /// The server refuses all calls until it is published again.
    pub(crate) is_paused: bool,
}

/// The target of the grant.
#[derive(Debug)]
pub(crate) enum GrantTarget {
    /// The resource names the workspace, or there is only one.
    Fixed {
        /// The workspace.
        offered: Offered,
        /// The one server; `None` means all of them.
        server: Option<Named>,
        /// The tools that the grant would allow to call.
        tools: Vec<OfferedTool>,
    },
    /// The resource names a server that this workspace does not have, or has not published yet
    /// (REVIEW-S-8).
    NoServer {
        /// The workspace.
        offered: Offered,
        /// The server name in the resource.
        slug: String,
    },
    /// The person picks.
    Pick(Vec<Offered>),
    /// The named workspace is unknown, or the person is no member. Both get the same answer
    /// (CASE-96).
    NoAccess,
    /// The person has no workspace yet.
    NoWorkspace,
}

impl GrantTarget {
    pub(crate) async fn find(
        state: &AuthState,
        tx: &mut SystemTx,
        request: &AuthorizationRequest,
        client: &Client,
        session: &BrowserSession,
    ) -> Result<Self, PageError> {
        let resource = requested(state, request)?;
        if let Some(slug) = resource.as_ref().and_then(Resource::tenant) {
            let choice = workspace_hints::choice_by_slug(tx, session.user, slug).await?;
            // CASE-107: a sign-in by another workspace's provider does not open this one.
            let Some(choice) = choice.filter(|choice| session.opens(choice.tenant)) else {
                return Ok(Self::NoAccess);
            };
            let mut offered = admission::offered(tx, client, session.user, vec![choice]).await?;
            let Some(offered) = offered.pop() else {
                return Ok(Self::NoAccess);
            };
            let slug = resource.as_ref().and_then(Resource::server);
            return Self::fixed(tx, offered, slug).await;
        }
        let mut choices = workspace_hints::choices(tx, session.user, client.id).await?;
        choices.retain(|choice| session.opens(choice.tenant));
        let has_none = choices.is_empty();
        // AUTH-C16: a client that one workspace registered cannot be used in another.
        if let Some(own) = client.tenant {
            choices.retain(|choice| choice.tenant == own);
        }
        let mut offered = admission::offered(tx, client, session.user, choices).await?;
        Ok(match offered.len() {
            0 if has_none => Self::NoWorkspace,
            0 => Self::NoAccess,
            1 => return Self::fixed(tx, offered.remove(0), None).await,
            _ => Self::Pick(offered),
        })
    }

    /// One workspace, and the server that the resource names there. A draft counts as absent,
    /// because its contents are not final.
    async fn fixed(
        tx: &mut SystemTx,
        offered: Offered,
        slug: Option<&str>,
    ) -> Result<Self, PageError> {
        let tenant = offered.choice.tenant;
        let server = match slug {
            None => None,
            Some(slug) => match offered_servers::find(tx, tenant, slug).await? {
                Some(server) if server.status != ServerStatus::Draft => Some(Named {
                    slug: slug.to_owned(),
                    name: server.name,
                    is_paused: server.status == ServerStatus::Paused,
                }),
                _ => {
                    let slug = slug.to_owned();
                    return Ok(Self::NoServer { offered, slug });
                }
            },
        };
        let tools = offered_servers::tools(tx, tenant, slug).await?;
        Ok(Self::Fixed {
            offered,
            server,
            tools,
        })
    }

    /// The workspace that the form names, if the page offered it.
    pub(crate) fn named(&self, workspace: &str) -> Option<&Offered> {
        let named = |offered: &&Offered| {
            workspace
                .parse::<TenantId>()
                .is_ok_and(|tenant| tenant == offered.choice.tenant)
        };
        match self {
            Self::Fixed { offered, .. } => Some(offered),
            Self::Pick(offered) => offered.iter().find(named),
            Self::NoServer { .. } | Self::NoAccess | Self::NoWorkspace => None,
        }
    }

    /// The workspace that the form names, if it may be chosen: the person's role allows calls
    /// there, and it admits the client.
    pub(crate) fn chosen(&self, workspace: &str) -> Option<&Choice> {
        self.named(workspace)
            .filter(|offered| offered.verdict.admission.is_admitted())
            .map(|offered| &offered.choice)
    }
}

/// The resource that a request names.
pub(crate) fn requested(
    state: &AuthState,
    request: &AuthorizationRequest,
) -> Result<Option<Resource>, PageError> {
    match &request.resource_asked {
        None => Ok(None),
        // The database has the canonical form; only a changed public URL makes it unreadable.
        Some(text) => state
            .oauth
            .resources
            .read_canonical(text)
            .map(Some)
            .ok_or(PageError::StartAgain),
    }
}
