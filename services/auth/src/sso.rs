//! Where members of a workspace have to come from (`auth.md` F7): looked at wherever a person acts in it.

use portolan_model::audit::{Actor, Event, Outcome};
use portolan_model::{Timestamp, id::TenantId, member::Role};
use portolan_storage::{
    Reason, StorageError, SystemTx, audit, single_sign_on as stored,
    tenant_domains::{self, Domain},
};

use crate::{login::Target, session::BrowserSession, state::AuthState};

/// What the name of a record begins with.
const RECORD: &str = "_portolan";
/// Domains that one round looks at.
const ROUND: usize = 200;

/// Whether the workspace wants its members to come by its provider, and this session did not. An owner with a passkey is let in all the same:
/// the provider may be what is broken.
pub(crate) async fn lacking(
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

/// Whether the person signed in with a passkey.
pub(crate) fn has_passkey(session: &BrowserSession) -> bool {
    session
        .amr
        .iter()
        .any(|word| word == "hwk" || word == "swk")
}

/// The way to the provider of a workspace, and back to `target`.
pub(crate) fn path(slug: &str, target: &Target) -> String {
    target.on(&format!("/login/company/{slug}"))
}

/// Name and text of the record that shows that a domain is a tenant's.
pub(crate) fn record(domain: &str, token: &str) -> (String, String) {
    (
        format!("{RECORD}.{domain}"),
        format!("portolan-verify={token}"),
    )
}

/// What a look at a domain came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Looked {
    /// The record is there, and the domain is the tenant's.
    Proved,
    /// It is not.
    Missing,
    /// It is, but another tenant was first.
    Taken,
    /// No name server answered: nothing is known.
    Unknown,
}

/// Looks for the record of a domain, and notes what was found.
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
    // The records of both stand under one name: who had it and does not say so any more has it no more.
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

/// Looks again at domains that were proved a week ago, each on one node.
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
