//! Decides which AI clients may connect to a workspace (AUTH-M7, AUTH-C15, AUTH-C16). It combines
//! the rule and the decisions of [`portolan_storage`] with the proof of
//! [`crate::clients::verified`].
//!
//! It is used when a person allows a client, when a code or refresh token becomes an access token
//! (AUTH-K16), and when a change ends connections (AUTH-R7).

use std::collections::HashMap;

use portolan_model::{
    admission::{Admission, Belonging, ClientDecision, ClientRule},
    audit::{Actor, Event, Outcome},
    id::{ClientId, TenantId, UserId},
};
use portolan_site::{
    mail, request_context::RequestContext, session::BrowserSession, state::AuthState,
};
use portolan_storage::{
    StorageError, SystemTx,
    accounts::workspace_hints::Choice,
    oauth::{
        client_admission::{self, Facts},
        clients::Client,
        connected_apps::{self, Ended, Which},
    },
    platform::{audit, mails::Mail},
};
use serde_json::json;

use crate::clients::{
    first_party,
    verified::{self, Trust},
};

/// A workspace's verdict on a client, for one person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// Whether the client may connect.
    pub(crate) admission: Admission,
    /// True if the person already requested it.
    pub(crate) has_asked: bool,
    /// True if the person has too many pending requests for another.
    pub(crate) waits_for_enough: bool,
}

impl Verdict {
    /// Returns true if the person can request an administrator's approval of the client.
    pub(crate) fn can_be_asked_for(self) -> bool {
        self.admission == Admission::NeedsApproval && !self.has_asked && !self.waits_for_enough
    }
}

/// A workspace that the consent page offers, with its verdict.
#[derive(Debug, Clone)]
pub(crate) struct Offered {
    /// The workspace.
    pub(crate) choice: Choice,
    /// Its verdict on the client.
    pub(crate) verdict: Verdict,
}

/// Applies a tenant's rule to a client.
pub fn judge(
    client: &Client,
    tenant: TenantId,
    rule: ClientRule,
    decision: Option<ClientDecision>,
) -> Admission {
    let belonging = match client.tenant {
        // PLAY-2: the console is part of every workspace. A decision about it still counts.
        None if first_party::is(client) => Belonging::Own,
        None => Belonging::Everybody,
        Some(own) if own == tenant => Belonging::Own,
        Some(_) => Belonging::Foreign,
    };
    let is_verified = matches!(verified::trust(client), Trust::Verified(_));
    Admission::of(rule, decision, is_verified, belonging)
}

/// The verdicts of these workspaces, in the same order.
pub(crate) async fn offered(
    tx: &mut SystemTx,
    client: &Client,
    user: UserId,
    choices: Vec<Choice>,
) -> Result<Vec<Offered>, StorageError> {
    let tenants: Vec<TenantId> = choices.iter().map(|choice| choice.tenant).collect();
    let facts: HashMap<TenantId, Facts> = client_admission::facts(tx, &tenants, client.id, user)
        .await?
        .into_iter()
        .map(|facts| (facts.tenant, facts))
        .collect();
    Ok(choices
        .into_iter()
        .filter_map(|choice| {
            let facts = facts.get(&choice.tenant)?;
            let verdict = Verdict {
                admission: judge(client, choice.tenant, facts.rule, facts.decision),
                has_asked: facts.has_asked,
                waits_for_enough: facts.waits_for_enough,
            };
            Some(Offered { choice, verdict })
        })
        .collect())
}

/// Whether a tenant admits the client now.
pub(crate) async fn present(
    tx: &mut SystemTx,
    client: &Client,
    tenant: TenantId,
    user: UserId,
) -> Result<Admission, StorageError> {
    let facts = client_admission::facts(tx, &[tenant], client.id, user)
        .await?
        .pop();
    Ok(facts.map_or(Admission::Blocked, |facts| {
        judge(client, tenant, facts.rule, facts.decision)
    }))
}

/// Ends connections of clients that a tenant does not admit any more (AUTH-R7). The caller must
/// hold the tenant's lock.
pub async fn end_unadmitted(
    state: &AuthState,
    tx: &mut SystemTx,
    tenant: TenantId,
    rule: ClientRule,
) -> Result<Ended, StorageError> {
    let live = client_admission::live(tx, tenant, state.now()).await?;
    let ids: Vec<ClientId> = live.iter().map(|(client, _)| *client).collect();
    let decisions: HashMap<ClientId, Option<ClientDecision>> = live.into_iter().collect();
    let mut ended = Ended::default();
    for client in portolan_storage::oauth::clients::many(tx, &ids).await? {
        let decision = decisions.get(&client.id).copied().flatten();
        if judge(&client, tenant, rule, decision).is_admitted() {
            continue;
        }
        let some = end_client(state, tx, tenant, client.id).await?;
        ended.grants.extend(some.grants);
    }
    Ok(ended)
}

/// Ends the connections of one client in a tenant (AUTH-R7).
pub async fn end_client(
    state: &AuthState,
    tx: &mut SystemTx,
    tenant: TenantId,
    client: ClientId,
) -> Result<Ended, StorageError> {
    let which = Which {
        tenant: Some(tenant),
        client: Some(client),
        ..Which::default()
    };
    connected_apps::end(tx, which, "client_not_admitted", state.now()).await
}

/// Stores a person's request for a client and notifies the administrators. The mails are limited by
/// the workspace's budget in [`crate::OAuthParts`]. Returns the messages to deliver after
/// the commit.
pub(crate) async fn ask(
    state: &AuthState,
    tx: &mut SystemTx,
    context: &RequestContext,
    client: &Client,
    session: &BrowserSession,
    choice: &Choice,
) -> Result<Vec<Mail>, StorageError> {
    let now = state.now();
    if !client_admission::ask(tx, choice.tenant, client.id, session.user, now).await? {
        return Ok(Vec::new());
    }
    let event = Event {
        tenant: Some(choice.tenant),
        actor: Actor::User(session.user),
        action: "client.requested",
        target_kind: "client",
        target_id: client.id.to_string(),
        outcome: Outcome::Ok,
        detail: json!({"client": client.name, "client_id": client.client_id}),
    };
    audit::record(tx, &event, &context.origin(), now).await?;
    metrics::counter!("oauth_client_requests_total").increment(1);
    // The console lists all requests, so mails beyond the budget are not needed.
    if state
        .oauth
        .admission_mails
        .take(&choice.tenant.to_string(), now)
        .is_err()
    {
        return Ok(Vec::new());
    }
    let link = state.site.url(&format!("/w/{}/clients", choice.slug));
    let mut letters = Vec::new();
    for (name, address) in client_admission::administrators(tx, choice.tenant).await? {
        let letter = mail::texts::client_requested(
            &name,
            &choice.name,
            &session.email,
            &client.name,
            &client.client_id,
            &link,
        );
        letters.push(mail::queue(tx, &address, &letter, now).await?);
    }
    Ok(letters)
}

/// Why a client may not connect, as a text for the person: the reason and the remedy.
pub(crate) const fn words(verdict: Verdict) -> &'static str {
    match verdict.admission {
        Admission::Admitted => "",
        Admission::Blocked => "An administrator of this workspace blocked this app.",
        Admission::Foreign => "This app was registered for another workspace.",
        Admission::Unverified => {
            "This workspace admits verified apps only. Ask an administrator to allow this one."
        }
        Admission::Unlisted => {
            "This workspace admits apps on its list only. Ask an administrator to put this one on it."
        }
        Admission::NeedsApproval if verdict.has_asked => {
            "Waiting for approval by an administrator. You get an email when this app is allowed; then connect again."
        }
        Admission::NeedsApproval if verdict.waits_for_enough => {
            "Many of your requests are waiting for approval. You can request this app when some are decided."
        }
        Admission::NeedsApproval => {
            "An administrator of this workspace has to allow this app first."
        }
    }
}
