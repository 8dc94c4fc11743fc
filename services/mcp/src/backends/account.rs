//! Sources with connected accounts (MCP-X-86, MCP-X-87, MCP-V-10): the account of a call, and the
//! question to its person.
//!
//! A source only gets tokens of its own authorization server, never the caller's token of this
//! platform (MCP-AU-1).

use std::time::Duration;

use portolan_connections::{Account, write_link};
use portolan_model::id::SourceId;
use portolan_protocol::{
    ask::{AskMethod, Need},
    error::RpcError,
    jsonrpc::Raw,
    revision::Revision,
    translate::UrlStep,
    visible::Visible,
};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::{
    backends::services::Backends,
    call::{Call, client_channel::ClientChannel},
    catalog::accounts::Accounts,
    hex::hex,
};

/// How long a call waits for a person who went to connect an account.
const PATIENCE: Duration = Duration::from_secs(120);

/// The poll interval for the connection.
const STEP: Duration = Duration::from_millis(500);

/// The page of the console for the credential of a source.
pub(crate) fn console_page(state: &Backends, tenant_slug: &str, source: SourceId) -> String {
    let issuer = state.site().issuer();
    format!("{issuer}/w/{tenant_slug}/sources/{source}?tab=credential")
}

/// A call that may need an account of its caller.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Linking<'a> {
    pub(crate) accounts: &'a Accounts,
    pub(crate) call: &'a Call,
    /// The channel to the client; `None` if the answer is one body.
    pub(crate) channel: Option<&'a ClientChannel>,
}

impl Linking<'_> {
    /// The page where the caller connects their own account (MCP-EL-11: it requires this very
    /// person).
    ///
    /// `None` if calls use the workspace's account.
    pub(crate) fn page(&self, state: &Backends) -> Option<(Account, String)> {
        let account = self.accounts.of(self.call.caller.person()).ok()?;
        let whose = (account.tenant, account.source, account.owner?);
        let link = write_link(&state.keys, whose, state.clock.now()).ok()?;
        let url = format!("{}/connect/accounts/{link}", state.site().issuer());
        Some((account, url))
    }

    /// MCP-X-86: asks the person to connect the account, and waits. False if the client cannot be
    /// asked.
    pub(crate) async fn ask(&self, state: &Backends) -> Result<bool, Visible> {
        let Some(channel) = self.channel.filter(|channel| channel.can(Need::Url)) else {
            return Ok(false);
        };
        let Some((account, url)) = self.page(state) else {
            return Ok(false);
        };
        let before = state.accounts.connected_at(account).await.ok().flatten();
        // In the form of 2026-07-28, which has no ids: one is generated for revisions that have
        // them.
        let params = self.accounts.step(&url).params();
        let answer = channel
            .request(Revision::V2026_07_28, AskMethod::Elicit, &params)
            .await?;
        let action = answer.get("action").and_then(|action| action.string());
        if action.as_deref() != Some("accept") {
            return Err(Visible::Declined);
        }
        // MCP-EL-13: the person agreed to open the page, and may need some time there.
        let patience = Instant::now() + PATIENCE;
        while Instant::now() < patience {
            match state.accounts.is_connected(account, before).await {
                Ok(true) => break,
                Ok(false) => sleep(STEP).await,
                Err(_) => return Err(Visible::Unreachable),
            }
        }
        state.accounts.forget(&account);
        Ok(true)
    }

    /// MCP-EL-15: the error for a client of 2025-11-25 that cannot be asked. It opens the page
    /// itself.
    pub(crate) fn error(&self, url: &str) -> Option<RpcError> {
        if self.call.revision != Revision::V2025_11_25
            || !self.call.client.capabilities.elicitation_url
        {
            return None;
        }
        let id = portolan_keys::random::bytes::<16>().ok()?;
        let step = UrlStep {
            elicitation_id: Some(hex(&id)),
            ..self.accounts.step(url)
        };
        let params: serde_json::Value = serde_json::from_slice(step.params().as_bytes()).ok()?;
        Some(RpcError {
            code: -32042,
            message: "This needs your own account at another service.".to_owned(),
            data: Raw::of(&json!({ "elicitations": [params] })).ok(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::accounts::{NoPerson, Sharing};
    use portolan_model::id::{TenantId, UserId};

    fn accounts(sharing: Sharing) -> Accounts {
        let (tenant, source) = (TenantId::generate(), SourceId::generate());
        Accounts::new(tenant, source, sharing, "https://up.example/mcp?key=secret")
    }

    #[test]
    fn el_3_el_9_el_10_and_el_16_a_person_is_sent_to_a_page_of_ours_and_never_asked_for_a_secret() {
        let page = "https://mcp.example.com/connect/accounts/sealed";
        let params = accounts(Sharing::Person).step(page).params();
        let params: serde_json::Value =
            serde_json::from_slice(params.as_bytes()).expect("an object");
        assert_eq!(params["mode"], "url", "MCP-EL-9: not by a form");
        assert_eq!(
            params["url"], page,
            "MCP-EL-16: of an account elsewhere, and our own page for it"
        );
        assert!(params.get("requestedSchema").is_none());
        let said = params.to_string();
        assert!(said.contains("up.example"), "it says where: {said}");
        assert!(!said.contains("secret"), "MCP-EL-10: {said}");
    }

    #[test]
    fn au_14_who_is_no_person_has_no_account_where_each_person_has_one() {
        let person = UserId::generate();
        let own = accounts(Sharing::Person);
        assert_eq!(own.of(None), Err(NoPerson));
        assert_eq!(own.of(Some(person)).map(|of| of.owner), Ok(Some(person)));
        let shared = accounts(Sharing::Workspace);
        for caller in [None, Some(person)] {
            assert_eq!(shared.of(caller).map(|of| of.owner), Ok(None));
        }
        assert_eq!(Sharing::from_word("something new"), Sharing::Person);
    }
}
