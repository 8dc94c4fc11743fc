//! The connected accounts of a source: of the workspace, or of each person (MCP-X-86).

use portolan_connections::Account;
use portolan_model::id::{SourceId, TenantId, UserId};
use portolan_protocol::translate::UrlStep;
use url::Url;

/// The owner of the accounts that calls use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// The workspace's.
    Workspace,
    /// The caller's own.
    Person,
}

impl Sharing {
    /// Reads the stored word; an unknown one is the narrower sharing.
    pub(crate) fn from_word(word: &str) -> Self {
        if word == "workspace" {
            Self::Workspace
        } else {
            Self::Person
        }
    }
}

/// The source needs an account of a person, and the caller is not a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoPerson;

/// The accounts for a source.
#[derive(Debug)]
pub(crate) struct Accounts {
    pub(crate) tenant: TenantId,
    pub(crate) source: SourceId,
    pub(crate) sharing: Sharing,
    /// The address that their tokens are for, as stored.
    pub(crate) address: String,
    /// The name of the source in questions to a person.
    pub(crate) host: String,
}

impl Accounts {
    /// The accounts of the source at an address.
    pub(crate) fn new(tenant: TenantId, source: SourceId, sharing: Sharing, address: &str) -> Self {
        let url = Url::parse(address).ok();
        let host = url.as_ref().and_then(Url::host_str);
        Self {
            tenant,
            source,
            sharing,
            host: host.unwrap_or("this service").to_owned(),
            address: address.to_owned(),
        }
    }

    /// The account that calls of a person use.
    pub(crate) fn of(&self, person: Option<UserId>) -> Result<Account, NoPerson> {
        let owner = match self.sharing {
            Sharing::Workspace => None,
            Sharing::Person => Some(person.ok_or(NoPerson)?),
        };
        Ok(Account {
            owner,
            ..self.of_workspace()
        })
    }

    /// The workspace's own account, whatever account the calls use.
    pub(crate) const fn of_workspace(&self) -> Account {
        Account {
            tenant: self.tenant,
            source: self.source,
            owner: None,
        }
    }

    /// True if calls use accounts of persons, who can connect them on request.
    pub(crate) fn are_personal(&self) -> bool {
        self.sharing == Sharing::Person
    }

    pub(crate) fn step(&self, url: &str) -> UrlStep {
        UrlStep {
            message: format!("Connect your own account at {} to use this.", self.host),
            url: url.to_owned(),
            elicitation_id: None,
        }
    }
}
