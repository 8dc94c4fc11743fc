//! Which AI clients may connect to a tenant (AUTH-M7, AUTH-C15, AUTH-C16).

use serde::{Deserialize, Serialize};

/// The rule of a tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientRule {
    /// Any client, after the person's consent.
    #[default]
    Any,
    /// Clients whose maker is proved by a host.
    Verified,
    /// Clients on the tenant's list.
    List,
    /// The same, and people ask for what is not on it.
    Approval,
}

impl ClientRule {
    /// Every rule.
    pub const ALL: [Self; 4] = [Self::Any, Self::Verified, Self::List, Self::Approval];

    /// The word in the database, the API and the audit log.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::Verified => "verified",
            Self::List => "list",
            Self::Approval => "approval",
        }
    }

    /// Whether some client may be admitted by this rule that is not by the other.
    pub const fn admits_more_than(self, other: Self) -> bool {
        const fn rank(rule: ClientRule) -> u8 {
            match rule {
                ClientRule::Any => 2,
                ClientRule::Verified => 1,
                ClientRule::List | ClientRule::Approval => 0,
            }
        }
        rank(self) > rank(other)
    }

    /// Reads the word.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|rule| rule.as_str() == text)
    }
}

/// What administrators decided about one client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientDecision {
    /// It may connect, whatever the rule says.
    Allowed,
    /// It may not, whatever the rule says.
    Blocked,
}

impl ClientDecision {
    /// The word in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Blocked => "blocked",
        }
    }

    /// Reads the word.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Allowed, Self::Blocked]
            .into_iter()
            .find(|decision| decision.as_str() == text)
    }
}

/// The owner of a client, as seen by a tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Belonging {
    /// It registered itself, or has a metadata document: it can ask everywhere.
    Everybody,
    /// The tenant's administrators registered it (AUTH-C16).
    Own,
    /// Those of another tenant did.
    Foreign,
}

/// Whether a client may connect to a tenant, and if not, why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Admission {
    /// It may.
    Admitted,
    /// An administrator blocked it.
    Blocked,
    /// It was registered for another tenant.
    Foreign,
    /// Nothing proves its maker, and the rule wants that.
    Unverified,
    /// It is not on the list.
    Unlisted,
    /// An administrator has to allow it, and can be asked.
    NeedsApproval,
}

impl Admission {
    /// Applies the rule. A decision counts more than the rule, and whose the client is counts more
    /// than a permission.
    pub const fn of(
        rule: ClientRule,
        decision: Option<ClientDecision>,
        is_verified: bool,
        belonging: Belonging,
    ) -> Self {
        match (belonging, decision, rule) {
            (Belonging::Foreign, _, _) => Self::Foreign,
            (_, Some(ClientDecision::Blocked), _) => Self::Blocked,
            (Belonging::Own, _, _)
            | (_, Some(ClientDecision::Allowed), _)
            | (_, None, ClientRule::Any) => Self::Admitted,
            (_, None, ClientRule::Verified) => {
                if is_verified {
                    Self::Admitted
                } else {
                    Self::Unverified
                }
            }
            (_, None, ClientRule::List) => Self::Unlisted,
            (_, None, ClientRule::Approval) => Self::NeedsApproval,
        }
    }

    /// It may connect.
    pub const fn is_admitted(self) -> bool {
        matches!(self, Self::Admitted)
    }

    /// The word in the audit log.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Admitted => "admitted",
            Self::Blocked => "blocked",
            Self::Foreign => "foreign",
            Self::Unverified => "unverified",
            Self::Unlisted => "unlisted",
            Self::NeedsApproval => "needs_approval",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m7_the_rule_decides_about_clients_of_which_nothing_was_decided() {
        let of = |rule, is_verified| Admission::of(rule, None, is_verified, Belonging::Everybody);
        for is_verified in [false, true] {
            assert_eq!(of(ClientRule::Any, is_verified), Admission::Admitted);
            assert_eq!(of(ClientRule::List, is_verified), Admission::Unlisted);
            assert_eq!(
                of(ClientRule::Approval, is_verified),
                Admission::NeedsApproval
            );
        }
        assert_eq!(of(ClientRule::Verified, true), Admission::Admitted);
        assert_eq!(of(ClientRule::Verified, false), Admission::Unverified);
    }

    #[test]
    fn m7_a_decision_counts_more_than_any_rule() {
        for rule in ClientRule::ALL {
            for is_verified in [false, true] {
                let of = |decision| {
                    Admission::of(rule, Some(decision), is_verified, Belonging::Everybody)
                };
                assert_eq!(of(ClientDecision::Allowed), Admission::Admitted);
                assert_eq!(of(ClientDecision::Blocked), Admission::Blocked);
            }
        }
    }

    #[test]
    fn c16_a_registered_client_is_admitted_at_home_unless_blocked_and_nowhere_else() {
        for rule in ClientRule::ALL {
            let own = |decision| Admission::of(rule, decision, false, Belonging::Own);
            assert_eq!(own(None), Admission::Admitted);
            assert_eq!(own(Some(ClientDecision::Blocked)), Admission::Blocked);
            for decision in [None, Some(ClientDecision::Allowed)] {
                let foreign = Admission::of(rule, decision, true, Belonging::Foreign);
                assert_eq!(foreign, Admission::Foreign);
            }
        }
    }

    #[test]
    fn words_read_back() {
        for rule in ClientRule::ALL {
            assert_eq!(ClientRule::parse(rule.as_str()), Some(rule));
        }
        assert_eq!(ClientRule::parse("everything"), None);
        assert_eq!(
            ClientDecision::parse("allowed"),
            Some(ClientDecision::Allowed)
        );
    }
}
