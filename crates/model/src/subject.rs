//! Whom an access token speaks for (AUTH-4.4, MCP-AX-5).

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

use crate::id::{InvalidId, ServiceAccountId, UserId};

/// The `sub` of a token: a person or a service account. The prefix in text keeps one from ever
/// being taken for the other (RFC 9068 §5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Subject {
    /// A person.
    User(UserId),
    /// A service account of a tenant.
    Service(ServiceAccountId),
}

impl Subject {
    /// The person, if it is one.
    pub const fn user(self) -> Option<UserId> {
        match self {
            Self::User(id) => Some(id),
            Self::Service(_) => None,
        }
    }

    /// The bare UUID, to bind something to it.
    pub const fn uuid(self) -> Uuid {
        match self {
            Self::User(id) => id.uuid(),
            Self::Service(id) => id.uuid(),
        }
    }
}

impl From<UserId> for Subject {
    fn from(id: UserId) -> Self {
        Self::User(id)
    }
}

impl From<ServiceAccountId> for Subject {
    fn from(id: ServiceAccountId) -> Self {
        Self::Service(id)
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(id) => id.fmt(f),
            Self::Service(id) => id.fmt(f),
        }
    }
}

impl FromStr for Subject {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        match text.parse() {
            Ok(id) => Ok(Self::User(id)),
            Err(refused) => text.parse().map(Self::Service).map_err(|_| refused),
        }
    }
}

impl Serialize for Subject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Subject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ax_5_a_service_account_is_never_a_person() {
        let (person, account) = (UserId::generate(), ServiceAccountId::generate());
        let as_person: Subject = person.to_string().parse().unwrap();
        let as_account: Subject = account.to_string().parse().unwrap();
        assert_eq!(as_person, Subject::User(person));
        assert_eq!(as_account, Subject::Service(account));
        assert_ne!(
            Subject::User(UserId::from_uuid(account.uuid())),
            as_account,
            "the same UUID under the other prefix is somebody else"
        );
        assert_eq!(as_account.user(), None);
        assert!(
            "gr_01902f3c5d7e7f8090a0b0c0d0e0f000"
                .parse::<Subject>()
                .is_err()
        );
        assert!("svc_".parse::<Subject>().is_err());
    }
}
