//! The workspace's own identity provider, its mail domains, and whether members must use the
//! provider (AUTH-F7). For admins. A change of access requires a recent sign-in.

use axum::{Json, extract::State};
use http::StatusCode;
use portolan_accounts::{
    domains::{self, Looked},
    login::federation::{login_attempt, tenant},
};
use portolan_cluster::revocations::Revocation;
use portolan_connections::seal_provider_secret;
use portolan_keys::{Secret, random};
use portolan_model::{
    email::EmailAddress,
    id::{IdentityProviderId, TenantDomainId, TenantDomainKind},
    member::{Action, Role},
};
use portolan_site::{
    access_policy::single_sign_on, console_error::ConsoleError, identity_providers, names,
    request_context::RequestContext, state::AuthState, target::ConsolePage,
};
use portolan_storage::{
    Reason, TenantTx,
    accounts::{
        single_sign_on::{self as stored, Provider},
        tenant_domains::{self, Domain},
    },
    oauth::grants::REVOCATION_MEMORY,
    platform::audit,
};
use portolan_upstream_sync::credentials::data_key;
use serde::{Deserialize, Serialize};
use serde_json::json;
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::{
    caller::Caller,
    input::{JsonBody, PathId},
    workspace::Workspace,
};

const PAGE: ConsolePage = ConsolePage::SingleSignOn;

/// Longest issuer, client id and secret, in bytes.
const LONGEST: usize = 2000;

/// Sign-in of members with the workspace's own provider.
#[derive(Debug, Serialize, ToSchema)]
pub struct SingleSignOn {
    /// The provider; null if there is none.
    #[schema(required)]
    provider: Option<ProviderView>,
    /// Domains of mail addresses, by name.
    domains: Vec<DomainView>,
    /// True if this person could require the provider now: they signed in with it, or are an owner
    /// with a passkey.
    may_enforce: bool,
}

/// A provider.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = IdentityProvider)]
pub struct ProviderView {
    name: String,
    issuer: String,
    client_id: String,
    /// True if a secret is stored. The API never returns it.
    has_secret: bool,
    /// The redirect URI to enter at the provider.
    callback_url: String,
    /// True if members must sign in this way.
    enforced: bool,
    /// True if an operator turned it off. It admits no sign-in until it is saved again.
    turned_off: bool,
}

/// A domain.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TenantDomain)]
pub struct DomainView {
    #[schema(value_type = String)]
    id: TenantDomainId,
    domain: String,
    /// Name of the TXT record that proves it.
    record_name: String,
    /// Text of the TXT record.
    record_text: String,
    /// Time of the proof; null if it is not proved.
    #[serde(with = "time::serde::rfc3339::option")]
    #[schema(required)]
    verified_at: Option<OffsetDateTime>,
    /// Time of the last check of the record.
    #[serde(with = "time::serde::rfc3339::option")]
    #[schema(required)]
    checked_at: Option<OffsetDateTime>,
    /// Time since when the record of a proved domain is missing. After three days the domain is not
    /// proved any more.
    #[serde(with = "time::serde::rfc3339::option")]
    #[schema(required)]
    missing_since: Option<OffsetDateTime>,
}

impl From<Domain> for DomainView {
    fn from(domain: Domain) -> Self {
        let (record_name, record_text) = domains::record(&domain.domain, &domain.token);
        Self {
            id: domain.id,
            domain: domain.domain,
            record_name,
            record_text,
            verified_at: domain.verified_at,
            checked_at: domain.checked_at,
            missing_since: domain.missing_since,
        }
    }
}

async fn seen(state: &AuthState, workspace: &Workspace) -> Result<SingleSignOn, ConsoleError> {
    let mut tx = state.store.tenant(workspace.id).await?;
    let provider = stored::of(&mut tx).await?;
    let domains = tenant_domains::list(&mut tx).await?;
    drop(tx);
    let may_enforce = match &provider {
        Some(provider) => may_enforce(state, workspace, provider.id).await?,
        None => false,
    };
    Ok(SingleSignOn {
        provider: provider.map(|provider| ProviderView {
            callback_url: login_attempt::redirect_uri(&state.site, &provider.id.to_string()),
            name: provider.name,
            issuer: provider.issuer,
            client_id: provider.client_id,
            has_secret: provider.secret.is_some(),
            enforced: provider.is_enforced,
            turned_off: provider.is_off,
        }),
        domains: domains.into_iter().map(DomainView::from).collect(),
        may_enforce,
    })
}

/// Returns true if the change would not lock this person out.
async fn may_enforce(
    state: &AuthState,
    workspace: &Workspace,
    provider: IdentityProviderId,
) -> Result<bool, ConsoleError> {
    let Caller::Browser(session) = &workspace.caller else {
        return Ok(false);
    };
    if workspace.role == Role::Owner && single_sign_on::has_passkey(session) {
        return Ok(true);
    }
    let mut tx = state.store.system(Reason::Workspaces).await?;
    Ok(stored::has_step(&mut tx, session.id, workspace.id, provider).await?)
}

/// The provider of the workspace and its domains. For admins.
#[utoipa::path(get, path = "/workspaces/{ws}/single-sign-on", tag = "workspaces", params(("ws" = String, Path, description = "Slug")),
    responses((status = 200, description = "What is set up.", body = SingleSignOn)))]
pub(crate) async fn show_single_sign_on(
    State(state): State<AuthState>,
    workspace: Workspace,
) -> Result<Json<SingleSignOn>, ConsoleError> {
    workspace.require(Action::Administer)?;
    Ok(Json(seen(&state, &workspace).await?))
}

/// A provider to save.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ProviderBody {
    /// Name on the button: "Continue with …".
    name: String,
    /// As the provider writes it, such as `https://login.example.com`.
    issuer: String,
    client_id: String,
    /// If absent, the stored secret stays as long as issuer and client do; otherwise there is none.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    client_secret: Option<Secret<String>>,
}

impl std::fmt::Debug for ProviderBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProviderBody").finish_non_exhaustive()
    }
}

/// Saves the provider, and turns one that was off on again. Its metadata and keys are fetched
/// first, so that a wrong address is not stored. Another issuer or client counts as another
/// provider: members connect again, and the requirement has to be set again.
#[utoipa::path(put, path = "/workspaces/{ws}/single-sign-on/provider", tag = "workspaces", params(("ws" = String, Path, description = "Slug")),
    request_body = ProviderBody, responses((status = 200, description = "Entered.", body = SingleSignOn)))]
pub(crate) async fn set_identity_provider(
    State(state): State<AuthState>,
    workspace: Workspace,
    context: RequestContext,
    JsonBody(body): JsonBody<ProviderBody>,
) -> Result<Json<SingleSignOn>, ConsoleError> {
    workspace.require(Action::Administer)?;
    let now = state.now();
    workspace.require_recent(now, PAGE)?;
    let name = names::clean(&body.name).ok_or_else(|| {
        ConsoleError::invalid("name_missing", "Enter what the button is to say.").field("name")
    })?;
    let (issuer, client_id) = (body.issuer.trim(), body.client_id.trim());
    if client_id.is_empty() || client_id.len() > LONGEST {
        let message = "Enter the client id that the provider gave you.";
        return Err(ConsoleError::invalid("client_id_missing", message).field("client_id"));
    }
    reachable(&state, &workspace, issuer).await?;
    let mut tx = state.store.tenant(workspace.id).await?;
    let before = stored::of(&mut tx).await?;
    let same = before
        .as_ref()
        .filter(|before| before.issuer == issuer && before.client_id == client_id);
    let id = same.map_or_else(IdentityProviderId::generate, |same| same.id);
    let version = before.as_ref().map_or(1, |before| before.version + 1);
    let kept = match (&body.client_secret, same) {
        (None, Some(same)) => kept_secret(&state, &workspace, same)?,
        _ => None,
    };
    let secret = body.client_secret.as_ref().or(kept.as_ref());
    let secret = match secret.filter(|secret| !secret.expose().is_empty()) {
        None => None,
        Some(secret) if secret.expose().len() > LONGEST => {
            let message = "This is too long for a client secret.";
            return Err(ConsoleError::invalid("secret_too_long", message).field("client_secret"));
        }
        Some(secret) => Some(seal(&state, &mut tx, &workspace, (id, version), secret).await?),
    };
    let provider = Provider {
        id,
        name,
        issuer: issuer.to_owned(),
        client_id: client_id.to_owned(),
        secret,
        version,
        is_enforced: same.is_some_and(|same| same.is_enforced),
        is_off: false,
    };
    if !stored::put(&mut tx, &provider, now).await? {
        let message = "Somebody changed the provider a moment ago. Look at it again.";
        return Err(ConsoleError::conflict("changed_meanwhile", message));
    }
    let detail = json!({ "issuer": issuer, "client_id": client_id });
    let event = workspace.event("sso.provider_set", "provider", id, detail);
    audit::record(&mut tx, &event, &context.origin(), now).await?;
    if before.as_ref().is_some_and(|before| before.is_enforced) && !provider.is_enforced {
        let detail = json!({ "enforced": false, "reason": "another provider" });
        let event = workspace.event("sso.enforcement", "tenant", workspace.id, detail);
        audit::record(&mut tx, &event, &context.origin(), now).await?;
    }
    tx.commit().await?;
    settle(&state, &workspace, &context).await?;
    Ok(Json(seen(&state, &workspace).await?))
}

fn kept_secret(
    state: &AuthState,
    workspace: &Workspace,
    provider: &Provider,
) -> Result<Option<Secret<String>>, ConsoleError> {
    tenant::provider(state, workspace.id, provider)
        .map(|provider| provider.client.secret)
        .map_err(|error| ConsoleError::internal("secret of a provider", error))
}

async fn seal(
    state: &AuthState,
    tx: &mut TenantTx,
    workspace: &Workspace,
    place: (IdentityProviderId, i32),
    secret: &Secret<String>,
) -> Result<(Vec<u8>, portolan_storage::registry::credentials::WrappedKey), ConsoleError> {
    let now = state.now();
    let key = data_key::<ConsoleError>(state, tx, workspace.id, now).await?;
    let sealed = seal_provider_secret(&state.keys, workspace.id, &key, place, secret.expose(), now)
        .map_err(|error| ConsoleError::internal("secret of a provider", error))?;
    Ok((sealed, key))
}

/// Refuses actions that need a provider which is on.
fn require_on(provider: &Provider) -> Result<(), ConsoleError> {
    if !provider.is_off {
        return Ok(());
    }
    let message = "An operator turned the provider off. Save it again: that turns it on.";
    Err(ConsoleError::conflict("provider_off", message))
}

/// Fetches from an issuer the data that every sign-in needs.
async fn reachable(
    state: &AuthState,
    workspace: &Workspace,
    issuer: &str,
) -> Result<(), ConsoleError> {
    if state
        .throttle
        .look(workspace.id, state.now())
        .await
        .is_err()
    {
        return Err(ConsoleError::new(
            StatusCode::TOO_MANY_REQUESTS,
            "too_many_looks",
            "The provider was asked often enough for now. Try again in a few minutes.",
        ));
    }
    if issuer.is_empty() || issuer.len() > LONGEST {
        let message = "Enter the issuer, such as `https://login.example.com`.";
        return Err(ConsoleError::invalid("issuer_missing", message).field("issuer"));
    }
    identity_providers::look_at(&state.egress, issuer)
        .await
        .map_err(|error| {
            let message = format!("This provider cannot be used: {error}.");
            ConsoleError::invalid("issuer_unusable", message).field("issuer")
        })
}

/// The result of a test.
#[derive(Debug, Serialize, ToSchema)]
pub struct ProviderTest {
    /// The path to try a sign-in, for a browser that is signed in here.
    sign_in_path: String,
}

/// Fetches the provider's metadata and keys, and returns the path to try a sign-in.
#[utoipa::path(post, path = "/workspaces/{ws}/single-sign-on/provider/test", tag = "workspaces",
    params(("ws" = String, Path, description = "Slug")), responses((status = 200, description = "It answers.", body = ProviderTest)))]
pub(crate) async fn test_identity_provider(
    State(state): State<AuthState>,
    workspace: Workspace,
) -> Result<Json<ProviderTest>, ConsoleError> {
    workspace.require(Action::Administer)?;
    let mut tx = state.store.tenant(workspace.id).await?;
    let provider = stored::of(&mut tx).await?;
    drop(tx);
    let provider = provider.ok_or_else(|| ConsoleError::not_found("this provider"))?;
    require_on(&provider)?;
    reachable(&state, &workspace, &provider.issuer).await?;
    let target = portolan_site::target::Target::Workspace(workspace.slug.clone(), PAGE);
    Ok(Json(ProviderTest {
        sign_in_path: single_sign_on::path(workspace.slug.as_str(), &target),
    }))
}

/// Removes the provider. Members who signed in with it are signed out, and use another sign-in
/// method.
#[utoipa::path(delete, path = "/workspaces/{ws}/single-sign-on/provider", tag = "workspaces",
    params(("ws" = String, Path, description = "Slug")), responses((status = 204, description = "Removed.")))]
pub(crate) async fn delete_identity_provider(
    State(state): State<AuthState>,
    workspace: Workspace,
    context: RequestContext,
) -> Result<StatusCode, ConsoleError> {
    workspace.require(Action::Administer)?;
    let now = state.now();
    workspace.require_recent(now, PAGE)?;
    let mut tx = state.store.tenant(workspace.id).await?;
    if !stored::remove(&mut tx).await? {
        return Err(ConsoleError::not_found("this provider"));
    }
    let event = workspace.event("sso.provider_removed", "tenant", workspace.id, json!({}));
    audit::record(&mut tx, &event, &context.origin(), now).await?;
    tx.commit().await?;
    settle(&state, &workspace, &context).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Ends the sessions and grants that the present provider does not allow (AUTH-R7). These are
/// sessions and grants proved by a former provider. Where the provider is required, they include
/// grants of people who signed in without it. It acts on the present state, so a later change
/// completes an interrupted one.
async fn settle(
    state: &AuthState,
    workspace: &Workspace,
    context: &RequestContext,
) -> Result<(), ConsoleError> {
    let now = state.now();
    let mut tx = state.store.system(Reason::Workspaces).await?;
    let sessions = stored::end_confined(&mut tx, workspace.id, now).await?;
    let ended = stored::end_others(&mut tx, workspace.id, now).await?;
    if sessions > 0 || !ended.is_empty() {
        let detail = json!({ "sessions": sessions, "apps_disconnected": ended.len() });
        let event = workspace.event("sso.ended", "tenant", workspace.id, detail);
        audit::record(&mut tx, &event, &context.origin(), now).await?;
    }
    tx.commit().await?;
    for grant in ended {
        let until = now + REVOCATION_MEMORY;
        state
            .oauth
            .revocations
            .insert(Revocation::Grant(grant), until);
    }
    Ok(())
}

/// Whether members must use the provider.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Enforcement {
    enforced: bool,
}

/// Requires the provider, or makes it one of several sign-in methods again. Apps that members
/// connected without it are disconnected at once (AUTH-R7). API keys and service accounts continue.
/// Owners with a passkey can still sign in without it.
#[utoipa::path(put, path = "/workspaces/{ws}/single-sign-on/enforcement", tag = "workspaces",
    params(("ws" = String, Path, description = "Slug")), request_body = Enforcement,
    responses((status = 200, description = "Changed.", body = SingleSignOn)))]
pub(crate) async fn enforce_single_sign_on(
    State(state): State<AuthState>,
    workspace: Workspace,
    context: RequestContext,
    JsonBody(body): JsonBody<Enforcement>,
) -> Result<Json<SingleSignOn>, ConsoleError> {
    workspace.require(Action::Administer)?;
    let now = state.now();
    workspace.require_recent(now, PAGE)?;
    let provider = {
        let mut tx = state.store.tenant(workspace.id).await?;
        stored::of(&mut tx).await?
    };
    let provider = provider.ok_or_else(|| ConsoleError::not_found("this provider"))?;
    if body.enforced {
        require_on(&provider)?;
        if !may_enforce(&state, &workspace, provider.id).await? {
            let target = portolan_site::target::Target::Workspace(workspace.slug.clone(), PAGE);
            let path = single_sign_on::path(workspace.slug.as_str(), &target);
            let message =
                "Sign in with the provider yourself first: otherwise this would lock you out.";
            return Err(ConsoleError::conflict("company_sign_in_first", message)
                .details(json!({ "path": path })));
        }
        let mut tx = state.store.system(Reason::Workspaces).await?;
        if !stored::has_break_glass(&mut tx, workspace.id, state.site.passkey_host()).await? {
            let message = "An owner needs a passkey first: it is the way in when the provider fails. Owners add one at Account › Passkeys.";
            return Err(ConsoleError::conflict("passkey_first", message));
        }
    }
    let mut tx = state.store.tenant(workspace.id).await?;
    if !stored::set_enforced(&mut tx, provider.id, body.enforced, now).await? {
        let message = "Somebody changed the provider a moment ago. Look at it again.";
        return Err(ConsoleError::conflict("changed_meanwhile", message));
    }
    if provider.is_enforced != body.enforced {
        let detail = json!({ "enforced": body.enforced });
        let event = workspace.event("sso.enforcement", "tenant", workspace.id, detail);
        audit::record(&mut tx, &event, &context.origin(), now).await?;
    }
    tx.commit().await?;
    settle(&state, &workspace, &context).await?;
    Ok(Json(seen(&state, &workspace).await?))
}

/// A new domain.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewDomain {
    /// The part of addresses behind the @.
    domain: String,
}

/// Adds a domain. It has an effect once its TXT record was found.
#[utoipa::path(post, path = "/workspaces/{ws}/single-sign-on/domains", tag = "workspaces", params(("ws" = String, Path, description = "Slug")),
    request_body = NewDomain, responses((status = 201, description = "Added.", body = SingleSignOn)))]
pub(crate) async fn add_domain(
    State(state): State<AuthState>,
    workspace: Workspace,
    context: RequestContext,
    JsonBody(body): JsonBody<NewDomain>,
) -> Result<(StatusCode, Json<SingleSignOn>), ConsoleError> {
    workspace.require(Action::Administer)?;
    let now = state.now();
    workspace.require_recent(now, PAGE)?;
    let wrong = |code, message: &'static str| ConsoleError::invalid(code, message).field("domain");
    // Read as part of an address, so that both have the same form.
    let text = body.domain.trim().trim_start_matches('@');
    let domain = EmailAddress::parse(&format!("somebody@{text}"))
        .ok()
        .and_then(|address| {
            let (_, domain) = address.normalised().rsplit_once('@')?;
            domain.contains('.').then(|| domain.to_owned())
        })
        .ok_or_else(|| wrong("domain_invalid", "Enter a domain such as example.com."))?;
    let token = random::digits(32)?;
    let mut tx = state.store.tenant(workspace.id).await?;
    let there = tenant_domains::list(&mut tx).await?.len();
    if i64::try_from(there).unwrap_or(i64::MAX) >= tenant_domains::MAX {
        return Err(wrong(
            "too_many_domains",
            "A workspace can have 50 domains.",
        ));
    }
    let id = match tenant_domains::add(&mut tx, &domain, &token, now).await {
        Ok(id) => id,
        Err(error) if error.is_conflict_on("tenant_domains_tenant_id_domain_key") => {
            let message = "This domain is on the list already.";
            return Err(ConsoleError::conflict("domain_there", message).field("domain"));
        }
        Err(error) => return Err(error.into()),
    };
    let event = workspace.event("domain.added", "domain", id, json!({ "domain": domain }));
    audit::record(&mut tx, &event, &context.origin(), now).await?;
    tx.commit().await?;
    Ok((StatusCode::CREATED, Json(seen(&state, &workspace).await?)))
}

/// Checks the TXT record of a domain.
#[utoipa::path(post, path = "/workspaces/{ws}/single-sign-on/domains/{id}/check", tag = "workspaces",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Domain")),
    responses((status = 200, description = "Found: the domain is proved.", body = SingleSignOn)))]
pub(crate) async fn check_domain(
    State(state): State<AuthState>,
    workspace: Workspace,
    PathId(id): PathId<TenantDomainKind>,
) -> Result<Json<SingleSignOn>, ConsoleError> {
    workspace.require(Action::Administer)?;
    let mut tx = state.store.tenant(workspace.id).await?;
    let domains = tenant_domains::list(&mut tx).await?;
    drop(tx);
    let domain = domains
        .into_iter()
        .find(|domain| domain.id == id)
        .ok_or_else(|| ConsoleError::not_found("this domain"))?;
    let (name, _) = domains::record(&domain.domain, &domain.token);
    match domains::look(&state, workspace.id, &domain).await? {
        Looked::Proved => Ok(Json(seen(&state, &workspace).await?)),
        Looked::Missing => Err(ConsoleError::conflict(
            "record_missing",
            format!(
                "There is no such TXT record at {name} yet. A new record can take an hour to be seen everywhere."
            ),
        )),
        Looked::Taken => Err(ConsoleError::conflict(
            "domain_taken",
            "Another workspace has proved this domain. It has to remove it first.",
        )),
        Looked::Unknown => Err(ConsoleError::new(
            StatusCode::BAD_GATEWAY,
            "no_answer",
            "No name server answered. Try again in a moment.",
        )),
    }
}

/// Removes a domain. Members stay; no new person joins by it.
#[utoipa::path(delete, path = "/workspaces/{ws}/single-sign-on/domains/{id}", tag = "workspaces",
    params(("ws" = String, Path, description = "Slug"), ("id" = String, Path, description = "Domain")),
    responses((status = 204, description = "Removed.")))]
pub(crate) async fn remove_domain(
    State(state): State<AuthState>,
    workspace: Workspace,
    PathId(id): PathId<TenantDomainKind>,
    context: RequestContext,
) -> Result<StatusCode, ConsoleError> {
    workspace.require(Action::Administer)?;
    let now = state.now();
    workspace.require_recent(now, PAGE)?;
    let mut tx = state.store.tenant(workspace.id).await?;
    let domain = tenant_domains::remove(&mut tx, id)
        .await?
        .ok_or_else(|| ConsoleError::not_found("this domain"))?;
    let event = workspace.event("domain.removed", "domain", id, json!({ "domain": domain }));
    audit::record(&mut tx, &event, &context.origin(), now).await?;
    tx.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}
