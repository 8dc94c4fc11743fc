//! The backend of a tool: an HTTP API, or an upstream MCP server; and the credential of its source.
//!
//! Calls show the state of a credential. A call compares two numbers; what changed goes to the
//! writer of the log of calls, which batches.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use portolan_http_tools::{CallTarget, CompiledTool, CredentialSlot, Proof};
use portolan_model::{
    Timestamp,
    id::{SourceId, TenantId},
};
use portolan_storage::registry::credential_states::{CredentialState, Seen};

use crate::{
    catalog::{accounts::Accounts, upstream::UpstreamTool},
    nodes::context::NodeContext,
};

/// The backend of a tool.
#[derive(Debug)]
pub(crate) enum Backend {
    /// An HTTP API.
    Http(HttpTool),
    /// An upstream MCP server.
    Upstream(Box<UpstreamTool>),
}

/// A tool of an HTTP API.
#[derive(Debug)]
pub(crate) struct HttpTool {
    /// Schemas and plan.
    pub(crate) compiled: CompiledTool,
    /// The target of its calls.
    pub(crate) target: Arc<CallTarget>,
    /// The credential of its calls.
    pub(crate) access: Access,
}

impl HttpTool {
    /// True if the API needs a connected account.
    pub(crate) fn has_accounts(&self) -> bool {
        matches!(self.access, Access::Account(_))
    }

    /// True if its calls may ask their person to connect an account.
    pub(crate) fn asks(&self) -> bool {
        matches!(&self.access, Access::Account(accounts) if accounts.are_personal())
    }
}

/// A source's credential, and what this node last noted of it.
#[derive(Debug)]
pub(crate) struct KnownCredential {
    /// What requests sign in with.
    pub(crate) slot: CredentialSlot,
    tenant: TenantId,
    source: SourceId,
    version: i32,
    /// Minutes since 1970, then 16 bits: the status of a refusal, or [`WORKS`]. Nothing noted: 0.
    noted: AtomicU64,
}

/// No HTTP status.
const WORKS: u64 = 1;

impl KnownCredential {
    /// A credential without a noted state.
    pub(crate) fn new(
        (tenant, source): (TenantId, SourceId),
        version: i32,
        slot: CredentialSlot,
    ) -> Self {
        Self {
            slot,
            tenant,
            source,
            version,
            noted: AtomicU64::new(0),
        }
    }

    /// The state to write: it changed, or a minute began in which nothing was noted. Another
    /// node may have written the opposite meanwhile, so the same is noted again.
    fn news(&self, proof: Proof, now: Timestamp) -> Option<Seen> {
        let word = match proof {
            Proof::Works => WORKS,
            Proof::Refused(status) => status.into(),
        };
        let minute = u64::try_from(now.unix_timestamp() / 60).unwrap_or_default();
        let note = minute << 16 | word;
        if self.noted.load(Ordering::Relaxed) == note {
            return None;
        }
        self.noted.store(note, Ordering::Relaxed);
        Some(Seen {
            source: self.source,
            version: self.version,
            state: match proof {
                Proof::Works => CredentialState::Works,
                Proof::Refused(status) => CredentialState::Refused(status),
            },
            at: now,
        })
    }
}

impl Access {
    /// Notes what an answer showed of the credential. Never waits.
    pub(crate) fn note(&self, state: &NodeContext, proof: Option<Proof>) {
        if let (Self::With(known), Some(proof)) = (self, proof)
            && let Some(seen) = known.news(proof, state.clock.now())
        {
            state.call_log.note_credential(known.tenant, seen);
        }
    }
}

/// The credential that calls of a source use.
#[derive(Debug, Clone)]
pub(crate) enum Access {
    /// No credential: the API is open.
    Open,
    /// A fixed credential.
    With(Arc<KnownCredential>),
    /// Connected accounts instead of a fixed credential.
    Account(Arc<Accounts>),
    /// A credential that cannot be opened: no call is sent without it.
    Broken,
}

#[cfg(test)]
mod tests {
    use portolan_http_tools::Credential;
    use time::{Duration, OffsetDateTime};

    use super::*;

    #[test]
    fn a_state_is_noted_when_it_changes_and_else_once_a_minute() {
        let token = "secret".to_owned();
        let slot = CredentialSlot::new("one".to_owned(), Credential::Bearer { token });
        let whose = (TenantId::generate(), SourceId::generate());
        let known = KnownCredential::new(whose, 3, slot);
        let now = OffsetDateTime::UNIX_EPOCH + Duration::days(20_000);
        let noted = |proof, seconds| {
            let seen = known.news(proof, now + Duration::seconds(seconds));
            seen.map(|seen| (seen.state, seen.version))
        };
        assert_eq!(noted(Proof::Works, 0), Some((CredentialState::Works, 3)));
        for second in 1..60 {
            assert_eq!(noted(Proof::Works, second), None, "{second}");
        }
        assert_eq!(
            noted(Proof::Refused(401), 59),
            Some((CredentialState::Refused(401), 3))
        );
        assert_eq!(noted(Proof::Refused(401), 59), None);
        assert_eq!(
            noted(Proof::Refused(403), 59),
            Some((CredentialState::Refused(403), 3))
        );
        assert_eq!(noted(Proof::Works, 59), Some((CredentialState::Works, 3)));
        assert_eq!(noted(Proof::Works, 60), Some((CredentialState::Works, 3)));
    }
}
