//! The identity provider that members of a workspace must use (AUTH-F7). It is checked
//! wherever a person acts in the workspace.

use portolan_model::audit::{Actor, Event, Outcome};
use portolan_model::{Timestamp, id::TenantId, member::Role};
use portolan_storage::{
    Reason, StorageError, SystemTx,
    accounts::{
        single_sign_on as stored,
        tenant_domains::{self, Domain},
    },
    platform::audit,
};

use crate::{login::Target, session::BrowserSession, state::AuthState};

/// The prefix of the record's name.
const RECORD: &str = "_portolan";
/// Most domains that one round checks.
const ROUND: usize = 200;

/// Returns true if the workspace requires its provider, and this session did not use it. An owner
/// with a passkey is exempt, because the provider may be broken.
pub(crate) async fn unmet(
    tx: &mut SystemTx,
    tenant: TenantId,
    role: Role,
    session: &BrowserSession,
) -> Result<bool, StorageError> {
    let Some(required) = stored::required(tx, tenant).await? else {
        return Ok(false);
    };
    if role == Role::Owner && has_passkey(session) {
        return Ok(false);
    }
    Ok(!stored::has_step(tx, session.id, tenant, required).await?)
}

/// Returns true if the person signed in with a passkey.
pub(crate) fn has_passkey(session: &BrowserSession) -> bool {
    session
        .amr
        .iter()
        .any(|word| word == "hwk" || word == "swk")
}

/// The path to a workspace's provider, and back to `target`.
pub(crate) fn path(slug: &str, target: &Target) -> String {
    target.on(&format!("/login/company/{slug}"))
}

/// Name and text of the DNS record that proves a tenant's domain.
pub(crate) fn record(domain: &str, token: &str) -> (String, String) {
    (
        format!("{RECORD}.{domain}"),
        format!("portolan-verify={token}"),
    )
}

/// The result of checking a domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Looked {
    /// The record is there, and the domain is the tenant's.
    Proved,
    /// The record is missing.
    Missing,
    /// The record is there, but another tenant proved the domain first.
    Taken,
    /// No name server answered, so the result is unknown.
    Unknown,
}

/// Checks the record of a domain, and stores the result.
pub(crate) async fn look(
    state: &AuthState,
    tenant: TenantId,
    domain: &Domain,
) -> Result<Looked, StorageError> {
    let (name, _) = record(&domain.domain, &domain.token);
    let now = state.now();
    let texts = match state.config.domain_records.of(&name).await {
        Ok(texts) => texts,
        Err(error) => {
            tracing::info!(tenant.id = %tenant, domain = domain.domain, %error, "no answer on the record of a domain");
            let mut tx = state.store.system(Reason::SignIn).await?;
            if tenant_domains::unanswered(&mut tx, tenant, domain.id, now).await? {
                note(&mut tx, tenant, "domain.lost", domain, now).await?;
            }
            tx.commit().await?;
            return Ok(Looked::Unknown);
        }
    };
    let says = |token: &str| {
        let (_, text) = record(&domain.domain, token);
        texts.iter().any(|one| one.trim() == text)
    };
    let mut tx = state.store.system(Reason::SignIn).await?;
    if !says(&domain.token) {
        if tenant_domains::missed(&mut tx, tenant, domain.id, now).await? {
            note(&mut tx, tenant, "domain.lost", domain, now).await?;
            tracing::warn!(tenant.id = %tenant, domain = domain.domain, "the record of a domain has been missing for days: the domain is not the tenant's any more");
        }
        tx.commit().await?;
        return Ok(Looked::Missing);
    }
    // Both tenants use the same record name. The former holder loses the domain if its record is
    // gone.
    if let Some((other, id, token)) = tenant_domains::holder(&mut tx, &domain.domain).await?
        && other != tenant
    {
        if says(&token) {
            return Ok(Looked::Taken);
        }
        tenant_domains::lose(&mut tx, other, id, now).await?;
        let lost = Domain {
            id,
            ..domain.clone()
        };
        note(&mut tx, other, "domain.lost", &lost, now).await?;
    }
    match tenant_domains::found(&mut tx, tenant, domain.id, now).await {
        Ok(()) => {
            if domain.verified_at.is_none() {
                note(&mut tx, tenant, "domain.verified", domain, now).await?;
            }
            tx.commit().await?;
            Ok(Looked::Proved)
        }
        Err(error) if error.is_conflict_on("tenant_domains_verified") => Ok(Looked::Taken),
        Err(error) => Err(error),
    }
}

async fn note(
    tx: &mut SystemTx,
    tenant: TenantId,
    action: &'static str,
    domain: &Domain,
    now: Timestamp,
) -> Result<(), StorageError> {
    let event = Event {
        tenant: Some(tenant),
        actor: Actor::System,
        action,
        target_kind: "domain",
        target_id: domain.id.to_string(),
        outcome: Outcome::Ok,
        detail: serde_json::json!({ "domain": domain.domain }),
    };
    audit::record(tx, &event, &audit::Origin::default(), now).await
}

/// Checks again domains whose last proof is a week old, each on one node.
pub async fn look_again(state: &AuthState) -> Result<(), StorageError> {
    for _ in 0..ROUND {
        let mut tx = state.store.system(Reason::SignIn).await?;
        let due = tenant_domains::due(&mut tx, state.now()).await?;
        tx.commit().await?;
        let Some((tenant, domain)) = due else {
            return Ok(());
        };
        look(state, tenant, &domain).await?;
    }
    Ok(())
}
