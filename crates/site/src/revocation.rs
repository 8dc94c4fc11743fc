//! Grants, API keys and personal tokens that end: notification of the nodes of this process, and
//! audit entries.

use portolan_cluster::revocations::Revocation;
use portolan_model::{
    Timestamp,
    audit::{Actor, Event, Outcome},
    id::{ApiKeyId, TenantId, UserId},
};
use portolan_storage::{
    StorageError, SystemTx,
    accounts::access_tokens::EndedToken,
    oauth::{connected_apps::Ended, grants::REVOCATION_MEMORY},
    platform::audit,
};
use serde_json::json;

use crate::{request_context::RequestContext, state::AuthState};

/// Notifies the nodes of this process at once; the others read the revocation from the feed.
pub fn notify_key_ended(state: &AuthState, id: ApiKeyId) {
    state.oauth.revocations.insert(
        Revocation::Client(id.to_string()),
        state.now() + REVOCATION_MEMORY,
    );
}

/// Notifies the nodes of this process at once of a transaction's revocations; the others read them
/// from the feed.
pub fn notify_nodes(state: &AuthState, ended: &Ended) {
    let until = state.now() + REVOCATION_MEMORY;
    for (id, _) in &ended.grants {
        state
            .oauth
            .revocations
            .insert(Revocation::Grant(*id), until);
    }
    for (id, _) in &ended.keys {
        notify_key_ended(state, *id);
    }
}

/// Writes the audit entries for the API keys and the personal tokens that a person's own change
/// ended.
pub async fn record_ended(
    tx: &mut SystemTx,
    context: &RequestContext,
    by: UserId,
    why: &str,
    keys: &Ended,
    tokens: &[EndedToken],
    now: Timestamp,
) -> Result<(), StorageError> {
    for event in keys_ended(keys, by, why) {
        audit::record(tx, &event, &context.origin(), now).await?;
    }
    for event in tokens_ended(tokens, by, why) {
        audit::record(tx, &event, &context.origin(), now).await?;
    }
    Ok(())
}

/// Audit entries for personal tokens that ended with the sessions of a person (API-9).
pub fn tokens_ended(ended: &[EndedToken], by: UserId, why: &str) -> Vec<Event> {
    let event = |token: &EndedToken| Event {
        tenant: None,
        actor: Actor::User(by),
        action: "access_token.revoked",
        target_kind: "access_token",
        target_id: token.id.to_string(),
        outcome: Outcome::Ok,
        detail: json!({ "name": token.name, "why": why }),
    };
    ended.iter().map(event).collect()
}

/// Audit entries for API keys that were revoked together with a person's apps, in the order in
/// which logs are written.
pub fn keys_ended(ended: &Ended, by: UserId, why: &str) -> Vec<Event> {
    let event = |(id, tenant): &(ApiKeyId, TenantId)| Event {
        tenant: Some(*tenant),
        actor: Actor::User(by),
        action: "api_key.revoked",
        target_kind: "api_key",
        target_id: id.to_string(),
        outcome: Outcome::Ok,
        detail: json!({ "why": why }),
    };
    ended.keys.iter().map(event).collect()
}
