//! The vocabulary of the audit log: actors, actions and targets (AUTH-3.4 `audit_events`).

use serde_json::Value;

use crate::id::{AccessTokenId, ServiceAccountId, TenantId, UserId};

/// Who acted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Actor {
    /// A signed-in person.
    User(UserId),
    /// A workspace token of the management API.
    Token(AccessTokenId),
    /// A service account of the workspace, at the token endpoint.
    ServiceAccount(ServiceAccountId),
    /// No person is known yet: sign-up, a failed sign-in, a client at the token endpoint.
    Anonymous,
    /// The platform itself.
    System,
    /// The operator of the installation, by `portolan admin`. Their name stands in `detail`.
    Operator,
}

/// One entry to be written. `detail` never holds a secret, an argument or a result.
#[derive(Debug, Clone)]
pub struct Event {
    /// The tenant whose log it belongs to; `None` for platform events.
    pub tenant: Option<TenantId>,
    /// Who.
    pub actor: Actor,
    /// What, as `noun.verb` in the past tense: `source.created`, `refresh.reuse`.
    pub action: &'static str,
    /// Kind of thing acted on: `source`, `server`, `grant`.
    pub target_kind: &'static str,
    /// Its id or name.
    pub target_id: String,
    /// `ok` or `refused`.
    pub outcome: Outcome,
    /// More, for people.
    pub detail: Value,
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Done.
    Ok,
    /// Refused by a rule.
    Refused,
}

impl Outcome {
    /// The word in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Refused => "refused",
        }
    }
}
