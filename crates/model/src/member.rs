//! Roles of members, and what each may do in the console (AUTH-M1).

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// A member's role in a tenant. The order is the order of power.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Sees everything but secrets, changes nothing.
    Viewer,
    /// Uses the servers through AI clients; sees the console.
    Member,
    /// Changes sources, tools, credentials and servers.
    Developer,
    /// Changes members and settings too.
    Admin,
    /// Everything; a tenant has at least one.
    Owner,
}

/// The action of a console request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Look at the registry, its calls and the members.
    Read,
    /// Call tools through the try page or an AI client.
    CallTools,
    /// Change sources, tools, credentials, servers.
    EditRegistry,
    /// Change members and settings; read the audit log.
    Administer,
}

impl Action {
    /// Every action.
    pub const ALL: [Self; 4] = [
        Self::Read,
        Self::CallTools,
        Self::EditRegistry,
        Self::Administer,
    ];

    /// The word in the API's document.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::CallTools => "call_tools",
            Self::EditRegistry => "edit_registry",
            Self::Administer => "administer",
        }
    }
}

impl Role {
    /// Every role, the weakest first.
    pub const ALL: [Self; 5] = [
        Self::Viewer,
        Self::Member,
        Self::Developer,
        Self::Admin,
        Self::Owner,
    ];

    /// One table for the whole product.
    pub const fn may(self, action: Action) -> bool {
        match action {
            Action::Read => true,
            Action::CallTools => !matches!(self, Self::Viewer),
            Action::EditRegistry => matches!(self, Self::Developer | Self::Admin | Self::Owner),
            Action::Administer => matches!(self, Self::Admin | Self::Owner),
        }
    }

    /// The word in the database, the API and the pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Member => "member",
            Self::Developer => "developer",
            Self::Admin => "admin",
            Self::Owner => "owner",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The word is no role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a role: use owner, admin, developer, member or viewer")]
pub struct InvalidRole;

impl FromStr for Role {
    type Err = InvalidRole;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|role| role.as_str() == text)
            .ok_or(InvalidRole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn power_grows_with_the_role() {
        for action in Action::ALL {
            let allowed = Role::ALL.map(|role| role.may(action));
            assert!(
                allowed.is_sorted(),
                "{action:?}: a stronger role may do what a weaker one may"
            );
        }
        assert!(!Role::Developer.may(Action::Administer));
    }
}
