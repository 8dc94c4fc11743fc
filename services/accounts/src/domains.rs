//! Domains that a workspace proves with a DNS record, for single sign-on (AUTH-F7). Each proof is
//! checked again in the background.

use portolan_model::{
    Timestamp,
    audit::{Actor, Event, Outcome},
    id::TenantId,
};
use portolan_site::state::AuthState;
use portolan_storage::{
    Reason, StorageError, SystemTx,
    accounts::tenant_domains::{self, Domain},
    platform::audit,
};

/// The prefix of the record's name.
const RECORD: &str = "_portolan";

/// Most domains that one round checks.
const ROUND: usize = 200;

/// Name and text of the DNS record that proves a tenant's domain.
pub fn record(domain: &str, token: &str) -> (String, String) {
    (
        format!("{RECORD}.{domain}"),
        format!("portolan-verify={token}"),
    )
}

/// The result of checking a domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Looked {
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
pub async fn look(
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
