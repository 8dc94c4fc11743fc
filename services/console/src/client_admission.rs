//! The AI clients that may connect to a workspace (AUTH-M7, AUTH-C15, AUTH-R7): the rule, the known
//! clients, and pending requests for a client.

use std::collections::HashMap;

use axum::{Json, extract::State};
use http::StatusCode;
use portolan_model::{
    admission::{Admission, ClientDecision, ClientRule},
    client::ClientKind as StoredKind,
    id::{ClientId, ClientKind, TenantId, UserId},
    member::Action,
};
use portolan_oauth::{
    admission,
    clients::{
        metadata_document::{self, DocumentFault},
        verified::{self, Trust},
    },
};
use portolan_site::{
    console_error::ConsoleError, mail, request_context::RequestContext, revocation,
    state::AuthState, target::ConsolePage,
};
use portolan_storage::{
    Reason, SystemTx,
    oauth::{
        client_admission::{self, Asker},
        clients::{self, Client},
        connected_apps::Ended,
    },
    platform::audit,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use time::OffsetDateTime;
use url::Url;
use utoipa::ToSchema;

use crate::{
    input::{JsonBody, PathId},
    workspace::Workspace,
};

/// The clients that may connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AdmissionRule {
    /// Any client, after the person's consent.
    Any,
    /// Clients whose maker a host proves.
    Verified,
    /// Clients that an administrator allowed.
    List,
    /// The same, and people can request others.
    Approval,
}

impl From<AdmissionRule> for ClientRule {
    fn from(rule: AdmissionRule) -> Self {
        match rule {
            AdmissionRule::Any => Self::Any,
            AdmissionRule::Verified => Self::Verified,
            AdmissionRule::List => Self::List,
            AdmissionRule::Approval => Self::Approval,
        }
    }
}

impl From<ClientRule> for AdmissionRule {
    fn from(rule: ClientRule) -> Self {
        match rule {
            ClientRule::Any => Self::Any,
            ClientRule::Verified => Self::Verified,
            ClientRule::List => Self::List,
            ClientRule::Approval => Self::Approval,
        }
    }
}

/// A decision about a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AdmissionDecision {
    /// It may connect, regardless of the rule.
    Allowed,
    /// It may not connect, regardless of the rule.
    Blocked,
}

impl From<AdmissionDecision> for ClientDecision {
    fn from(decision: AdmissionDecision) -> Self {
        match decision {
            AdmissionDecision::Allowed => Self::Allowed,
            AdmissionDecision::Blocked => Self::Blocked,
        }
    }
}

impl From<ClientDecision> for AdmissionDecision {
    fn from(decision: ClientDecision) -> Self {
        match decision {
            ClientDecision::Allowed => Self::Allowed,
            ClientDecision::Blocked => Self::Blocked,
        }
    }
}

/// A person who requests a client.
#[derive(Debug, Serialize, ToSchema)]
pub struct ClientAsker {
    #[schema(value_type = String)]
    user_id: UserId,
    user_name: String,
    user_email: String,
    #[serde(with = "time::serde::rfc3339")]
    asked_at: OffsetDateTime,
}

/// A client that the workspace knows.
#[derive(Debug, Serialize, ToSchema)]
pub struct SeenClient {
    /// Internal id of the client.
    #[schema(value_type = String, example = "cli_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a")]
    id: ClientId,
    /// Its `client_id`: the address of its document, or an id that this service assigned.
    client_id: String,
    /// The client's own name, which is not verified.
    name: String,
    /// The host of its document; absent for a client that registered itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    host: Option<String>,
    /// Its maker, if a host proves it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    verified: Option<String>,
    /// True if its name imitates a known client and no host proves it.
    imitates: bool,
    /// The decision about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    decision: Option<AdmissionDecision>,
    /// True if it may connect now.
    admitted: bool,
    /// Number of people for whom it acts.
    people: i64,
    #[serde(
        with = "time::serde::rfc3339::option",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(nullable = false)]
    last_used_at: Option<OffsetDateTime>,
    /// The people who request it, in the order of their requests.
    askers: Vec<ClientAsker>,
}

/// The rule with all known clients.
#[derive(Debug, Serialize, ToSchema)]
pub struct ClientAdmission {
    /// The clients that may connect.
    rule: AdmissionRule,
    /// The known clients; requested ones first.
    clients: Vec<SeenClient>,
    /// The connections that each rule would end at once.
    effects: Vec<RuleEffect>,
}

/// The effect of a rule on present connections.
#[derive(Debug, Serialize, ToSchema)]
pub struct RuleEffect {
    rule: AdmissionRule,
    /// Connected clients that could not connect any more.
    clients: usize,
    /// Their connections.
    apps: i64,
}

/// Computes the effects over these clients and those that the workspace registered itself. The
/// latter are always admitted unless the workspace blocked them.
fn effects(
    seen: &[client_admission::Seen],
    clients: &HashMap<ClientId, Client>,
    tenant: TenantId,
) -> Vec<RuleEffect> {
    use AdmissionRule::{Any, Approval, List, Verified};
    let effect = |rule: AdmissionRule| {
        let cut: Vec<i64> = seen
            .iter()
            .filter(|one| one.apps > 0)
            .filter_map(|one| Some((one, clients.get(&one.client)?)))
            .filter(|(one, client)| {
                !admission::judge(client, tenant, rule.into(), one.decision).is_admitted()
            })
            .map(|(one, _)| one.apps)
            .collect();
        RuleEffect {
            rule,
            clients: cut.len(),
            apps: cut.iter().sum(),
        }
    };
    [Any, Verified, List, Approval].map(effect).into()
}

async fn seen(
    tx: &mut SystemTx,
    workspace: &Workspace,
    now: OffsetDateTime,
) -> Result<ClientAdmission, ConsoleError> {
    let rule = client_admission::rule(tx, workspace.id).await?;
    let seen = client_admission::seen(tx, workspace.id, now).await?;
    let ids: Vec<ClientId> = seen.iter().map(|one| one.client).collect();
    let clients: HashMap<ClientId, Client> = clients::many(tx, &ids)
        .await?
        .into_iter()
        .map(|client| (client.id, client))
        .collect();
    let mut askers: HashMap<ClientId, Vec<ClientAsker>> = HashMap::new();
    for asker in client_admission::askers(tx, workspace.id).await? {
        askers.entry(asker.client).or_default().push(ClientAsker {
            user_id: asker.user,
            user_name: asker.name,
            user_email: asker.email,
            asked_at: asker.asked_at,
        });
    }
    let effects = effects(&seen, &clients, workspace.id);
    let mut views: Vec<SeenClient> = seen
        .into_iter()
        .filter_map(|one| {
            let client = clients.get(&one.client)?;
            let trust = verified::trust(client);
            Some(SeenClient {
                id: client.id,
                client_id: client.client_id.clone(),
                name: client.name.clone(),
                host: host(client),
                verified: match trust {
                    Trust::Verified(maker) => Some(maker.to_owned()),
                    Trust::Unverified | Trust::Imitates => None,
                },
                imitates: trust == Trust::Imitates,
                decision: one.decision.map(Into::into),
                admitted: !client.is_blocked
                    && admission::judge(client, workspace.id, rule, one.decision).is_admitted(),
                people: one.people,
                last_used_at: one.last_used_at,
                askers: askers.remove(&client.id).unwrap_or_default(),
            })
        })
        .collect();
    views.sort_by_key(|view| view.askers.is_empty());
    Ok(ClientAdmission {
        rule: rule.into(),
        clients: views,
        effects,
    })
}

fn host(client: &Client) -> Option<String> {
    (client.kind == StoredKind::Cimd)
        .then(|| Url::parse(&client.client_id).ok())
        .flatten()
        .and_then(|url| url.host_str().map(str::to_owned))
}

/// The rule of a workspace, with the clients that it knows. For admins and owners.
#[utoipa::path(get, path = "/workspaces/{ws}/clients", tag = "clients", params(("ws" = String, Path, description = "Slug")),
    responses((status = 200, description = "Rule and clients.", body = ClientAdmission)))]
pub(crate) async fn show_client_admission(
    State(state): State<AuthState>,
    workspace: Workspace,
) -> Result<Json<ClientAdmission>, ConsoleError> {
    workspace.require(Action::Administer)?;
    let mut tx = state.store.system(Reason::Workspaces).await?;
    Ok(Json(seen(&mut tx, &workspace, state.now()).await?))
}

/// A new rule.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RuleBody {
    /// The clients that may connect.
    rule: AdmissionRule,
}

/// The effect of a change.
#[derive(Debug, Serialize, ToSchema)]
pub struct AdmissionChanged {
    /// Connections that ended, because their client may not connect any more.
    ended: usize,
}

/// Sets the rule. Connections of clients that may not connect any more are refused within a second.
#[utoipa::path(put, path = "/workspaces/{ws}/client-rule", tag = "clients", params(("ws" = String, Path, description = "Slug")),
    request_body = RuleBody, responses((status = 200, description = "Set.", body = AdmissionChanged)))]
pub(crate) async fn set_client_rule(
    State(state): State<AuthState>,
    workspace: Workspace,
    context: RequestContext,
    JsonBody(body): JsonBody<RuleBody>,
) -> Result<Json<AdmissionChanged>, ConsoleError> {
    workspace.require(Action::Administer)?;
    let rule = ClientRule::from(body.rule);
    let now = state.now();
    let mut tx = state.store.system(Reason::Workspaces).await?;
    client_admission::take_turn(&mut tx, workspace.id).await?;
    let before = client_admission::rule(&mut tx, workspace.id).await?;
    // A stricter rule needs no recent sign-in; a rule that admits more gives access.
    if rule.admits_more_than(before) {
        workspace.require_recent(now, ConsolePage::Clients)?;
    }
    client_admission::set_rule(&mut tx, workspace.id, rule).await?;
    let ended = admission::end_unadmitted(&state, &mut tx, workspace.id, rule).await?;
    let detail =
        json!({ "rule": { "from": before.as_str(), "to": rule.as_str() }, "ended": ended.apps() });
    let event = workspace.event("client_rule.changed", "tenant", workspace.id, detail);
    audit::record(&mut tx, &event, &context.origin(), now).await?;
    tx.commit().await?;
    revocation::notify_nodes(&state, &ended);
    Ok(Json(AdmissionChanged {
        ended: ended.apps(),
    }))
}

/// A client that the workspace does not know yet.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AllowBody {
    /// Its `client_id`: the address of its metadata document, or the id from its registration.
    client_id: String,
}

/// Allows a client before its first connection: by the address of its metadata document, or by the
/// id from its registration.
#[utoipa::path(post, path = "/workspaces/{ws}/clients", tag = "clients", params(("ws" = String, Path, description = "Slug")),
    request_body = AllowBody, responses((status = 204, description = "Allowed.")))]
pub(crate) async fn allow_client(
    State(state): State<AuthState>,
    workspace: Workspace,
    context: RequestContext,
    JsonBody(body): JsonBody<AllowBody>,
) -> Result<StatusCode, ConsoleError> {
    workspace.require(Action::Administer)?;
    workspace.require_recent(state.now(), ConsolePage::Clients)?;
    let client = by_wire_id(&state, &context, body.client_id.trim()).await?;
    decide(
        &state,
        &workspace,
        &context,
        &client,
        Some(ClientDecision::Allowed),
    )
    .await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn by_wire_id(
    state: &AuthState,
    context: &RequestContext,
    client_id: &str,
) -> Result<Client, ConsoleError> {
    let invalid =
        |message: String| Err(ConsoleError::invalid("client_unknown", message).field("client_id"));
    if client_id.starts_with("https://") || client_id.starts_with("http://") {
        return match metadata_document::resolve(state, client_id, context).await {
            Ok(client) => Ok(client),
            Err(DocumentFault::Storage(error)) => Err(error.into()),
            Err(fault) => invalid(format!("This client cannot be allowed: {fault}.")),
        };
    }
    let mut tx = state.store.system(Reason::Workspaces).await?;
    match clients::find(&mut tx, client_id).await? {
        // A client that another workspace registered gets the same answer as an unknown one.
        Some(client) if client.tenant.is_none() => Ok(client),
        _ => invalid(
            "No client is known by this id. Copy it from the page that the person sees.".to_owned(),
        ),
    }
}

/// A decision about a client.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DecisionBody {
    /// The decision. Null removes it, and the rule decides again.
    decision: Option<AdmissionDecision>,
}

/// Decides about a client. A client that may not connect any more is refused within a second, with
/// all its connections in this workspace. People who requested an allowed client get a mail.
#[utoipa::path(put, path = "/workspaces/{ws}/clients/{id}/decision", tag = "clients",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Client")),
    request_body = DecisionBody, responses((status = 200, description = "Decided.", body = AdmissionChanged)))]
pub(crate) async fn decide_client(
    State(state): State<AuthState>,
    workspace: Workspace,
    PathId(id): PathId<ClientKind>,
    context: RequestContext,
    JsonBody(body): JsonBody<DecisionBody>,
) -> Result<Json<AdmissionChanged>, ConsoleError> {
    workspace.require(Action::Administer)?;
    let decision = body.decision.map(Into::into);
    if decision != Some(ClientDecision::Blocked) {
        workspace.require_recent(state.now(), ConsolePage::Clients)?;
    }
    let client = seen_client(&state, &workspace, id).await?;
    let ended = decide(&state, &workspace, &context, &client, decision).await?;
    Ok(Json(AdmissionChanged { ended }))
}

/// Finds a client of the list. Other clients get the answer for an unknown one (CASE-106).
async fn seen_client(
    state: &AuthState,
    workspace: &Workspace,
    id: ClientId,
) -> Result<Client, ConsoleError> {
    let mut tx = state.store.system(Reason::Workspaces).await?;
    let is_seen = client_admission::is_seen(&mut tx, workspace.id, id, state.now()).await?;
    if !is_seen {
        return Err(ConsoleError::not_found("this client"));
    }
    Ok(clients::get(&mut tx, id).await?)
}

async fn decide(
    state: &AuthState,
    workspace: &Workspace,
    context: &RequestContext,
    client: &Client,
    decision: Option<ClientDecision>,
) -> Result<usize, ConsoleError> {
    let now = state.now();
    let mut tx = state.store.system(Reason::Workspaces).await?;
    client_admission::take_turn(&mut tx, workspace.id).await?;
    let rule = client_admission::rule(&mut tx, workspace.id).await?;
    let by = workspace.caller.user();
    let before =
        client_admission::decide(&mut tx, workspace.id, client.id, decision, by, now).await?;
    let is_admitted = admission::judge(client, workspace.id, rule, decision) == Admission::Admitted;
    let ended = if is_admitted {
        Ended::default()
    } else {
        admission::end_client(state, &mut tx, workspace.id, client.id).await?
    };
    let mut mails = Vec::new();
    if decision.is_some() {
        let askers: Vec<Asker> = client_admission::askers(&mut tx, workspace.id)
            .await?
            .into_iter()
            .filter(|asker| asker.client == client.id)
            .collect();
        client_admission::forget_askers(&mut tx, workspace.id, client.id).await?;
        if decision == Some(ClientDecision::Allowed) {
            for asker in askers {
                let letter =
                    mail::texts::client_allowed(&asker.name, &workspace.name, &client.name);
                mails.push(mail::queue(&mut tx, &asker.email, &letter, now).await?);
            }
        }
    }
    if before != decision {
        let action = match decision {
            Some(ClientDecision::Allowed) => "client.allowed",
            Some(ClientDecision::Blocked) => "client.blocked",
            None => "client.decision_withdrawn",
        };
        let detail =
            json!({ "client": client.name, "client_id": client.client_id, "ended": ended.apps() });
        let event = workspace.event(action, "client", client.id, detail);
        audit::record(&mut tx, &event, &context.origin(), now).await?;
    }
    tx.commit().await?;
    revocation::notify_nodes(state, &ended);
    for mail in mails {
        state.mailer.deliver(&mail);
    }
    Ok(ended.apps())
}

/// Rejects the requests for a client without a decision about it. People may request it again.
#[utoipa::path(delete, path = "/workspaces/{ws}/clients/{id}/askers", tag = "clients",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Client")),
    responses((status = 204, description = "Nobody asks any more.")))]
pub(crate) async fn dismiss_askers(
    State(state): State<AuthState>,
    workspace: Workspace,
    PathId(id): PathId<ClientKind>,
    context: RequestContext,
) -> Result<StatusCode, ConsoleError> {
    workspace.require(Action::Administer)?;
    let client = seen_client(&state, &workspace, id).await?;
    let mut tx = state.store.system(Reason::Workspaces).await?;
    let askers = client_admission::forget_askers(&mut tx, workspace.id, id).await?;
    if askers > 0 {
        let detail =
            json!({ "client": client.name, "client_id": client.client_id, "askers": askers });
        let event = workspace.event("client.request_dismissed", "client", id, detail);
        audit::record(&mut tx, &event, &context.origin(), state.now()).await?;
        tx.commit().await?;
    }
    Ok(StatusCode::NO_CONTENT)
}
