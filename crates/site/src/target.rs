//! Targets of a sign-in: a fixed set, written as one word in forms and links, never a URL that a
//! visitor supplies (AUTH-S8).

pub mod console_address;

use std::fmt;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use portolan_connections::looks_like_a_link;
use portolan_model::{
    id::{IdentityOfferId, InvitationId, RequestId, SourceId},
    slug::Slug,
};

use crate::target::console_address::ConsoleAddress;

/// A page of the person's account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccountPage {
    /// The overview.
    Overview,
    /// Change of password.
    Password,
    /// Change of address.
    Email,
    /// Signed-in browsers.
    Sessions,
    /// Second factor.
    TwoFactor,
    /// Apps that may act for the person.
    Apps,
    /// Accounts at other services.
    Linked,
    /// Ways to sign in.
    SignIn,
    /// Passkeys.
    Passkeys,
    /// Tokens of the management API.
    AccessTokens,
    /// Deletion of the account.
    Delete,
}

impl AccountPage {
    const ALL: [Self; 11] = [
        Self::AccessTokens,
        Self::Overview,
        Self::Delete,
        Self::Password,
        Self::Email,
        Self::Sessions,
        Self::TwoFactor,
        Self::Apps,
        Self::Linked,
        Self::SignIn,
        Self::Passkeys,
    ];

    /// Its path.
    pub const fn path(self) -> &'static str {
        match self {
            Self::Overview => "/account",
            Self::Password => "/account/password",
            Self::Email => "/account/email",
            Self::Sessions => "/account/sessions",
            Self::TwoFactor => "/account/two-factor",
            Self::Apps => "/account/apps",
            Self::Linked => "/account/linked",
            Self::SignIn => "/account/sign-in",
            Self::Passkeys => "/account/passkeys",
            Self::AccessTokens => "/account/access-tokens",
            Self::Delete => "/account/delete",
        }
    }
}

/// A page of the console that requires a recent sign-in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConsolePage {
    /// The first page.
    Overview,
    /// Members and invitations.
    Members,
    /// Service accounts and API keys.
    Keys,
    /// Settings of the workspace.
    Settings,
    /// Rules for sign-ins.
    Security,
    /// The workspace's own identity provider.
    SingleSignOn,
    /// AI clients.
    Clients,
    /// Limits.
    Limits,
    /// Servers.
    Servers,
    /// Webhooks.
    Webhooks,
}

impl ConsolePage {
    const ALL: [Self; 10] = [
        Self::SingleSignOn,
        Self::Overview,
        Self::Members,
        Self::Keys,
        Self::Settings,
        Self::Security,
        Self::Clients,
        Self::Limits,
        Self::Servers,
        Self::Webhooks,
    ];

    /// The last segment of its path. The first page has none.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Overview => "overview",
            Self::Members => "members",
            Self::Keys => "keys",
            Self::Settings => "settings",
            Self::Security => "security",
            Self::SingleSignOn => "single-sign-on",
            Self::Clients => "clients",
            Self::Limits => "limits",
            Self::Servers => "servers",
            Self::Webhooks => "webhooks",
        }
    }
}

/// A target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// The console.
    Console,
    /// An authorization request.
    Request(RequestId),
    /// An invitation. Its id authorizes nothing: the page opens only for an account with the
    /// invited address.
    Invitation(InvitationId),
    /// A page of the account.
    Account(AccountPage),
    /// A page of a workspace.
    Workspace(Slug, ConsolePage),
    /// A source of a workspace.
    Source(Slug, SourceId),
    /// The page that connects an account at an upstream server or API. The value is the sealed part
    /// of its link, which works for one person only.
    Connect(String),
    /// The page that connects an account at a provider to sign in with. It opens only in the
    /// browser that came from there.
    Identity(IdentityOfferId),
    /// The page of the console that was open when the console found no session.
    At(ConsoleAddress),
}

impl Target {
    /// Reads the text that `Display` of [`Target`] writes. The empty text is the console. `None`
    /// for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(Self::Console);
        }
        if let Ok(id) = text.parse() {
            return Some(Self::Request(id));
        }
        if let Ok(id) = text.parse() {
            return Some(Self::Invitation(id));
        }
        if let Ok(id) = text.parse() {
            return Some(Self::Identity(id));
        }
        if let Some(rest) = text.strip_prefix("w.") {
            let (page, slug) = rest.split_once('.')?;
            let page = ConsolePage::ALL
                .into_iter()
                .find(|one| one.word() == page)?;
            return Some(Self::Workspace(slug.parse().ok()?, page));
        }
        if let Some(rest) = text.strip_prefix("s.") {
            let (source, slug) = rest.split_once('.')?;
            return Some(Self::Source(slug.parse().ok()?, source.parse().ok()?));
        }
        if let Some(link) = text.strip_prefix("connect.") {
            return looks_like_a_link(link).then(|| Self::Connect(link.to_owned()));
        }
        if let Some(address) = text.strip_prefix("at.") {
            let bytes = URL_SAFE_NO_PAD.decode(address).ok()?;
            let address = std::str::from_utf8(&bytes).ok()?;
            return ConsoleAddress::read(address).map(Self::At);
        }
        AccountPage::ALL
            .into_iter()
            .map(Self::Account)
            .find(|one| one.to_string() == text)
    }

    /// Reads the address that the console reports. An address outside a workspace becomes the
    /// console itself.
    pub fn of_console(address: &str) -> Self {
        ConsoleAddress::read(address).map_or(Self::Console, Self::At)
    }

    /// The request, if it is one.
    pub const fn request(&self) -> Option<RequestId> {
        match self {
            Self::Request(id) => Some(*id),
            _ => None,
        }
    }

    /// The invitation, if it is one.
    pub const fn invitation(&self) -> Option<InvitationId> {
        match self {
            Self::Invitation(id) => Some(*id),
            _ => None,
        }
    }

    /// Reads the target of a stored verification. Nodes of the release before store requests and
    /// invitations only.
    pub fn stored(
        word: Option<&str>,
        request: Option<RequestId>,
        invitation: Option<InvitationId>,
    ) -> Self {
        if let Some(target) = word.and_then(Self::parse) {
            return target;
        }
        match (request, invitation) {
            (Some(id), _) => Self::Request(id),
            (None, Some(id)) => Self::Invitation(id),
            (None, None) => Self::Console,
        }
    }

    /// Path of `page` with this target as its parameter.
    pub fn on(&self, page: &str) -> String {
        match self {
            Self::Console => page.to_owned(),
            other => format!("{page}?request={other}"),
        }
    }

    /// The same path with one parameter more.
    pub fn on_with(&self, page: &str, more: &str) -> String {
        let path = self.on(page);
        let mark = if path.contains('?') { '&' } else { '?' };
        format!("{path}{mark}{more}")
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Console => Ok(()),
            Self::Request(id) => id.fmt(f),
            Self::Invitation(id) => id.fmt(f),
            Self::Account(AccountPage::Overview) => f.write_str("account"),
            Self::Account(page) => {
                write!(f, "account.{}", page.path().trim_start_matches("/account/"))
            }
            Self::Workspace(slug, page) => write!(f, "w.{}.{slug}", page.word()),
            Self::Source(slug, source) => write!(f, "s.{source}.{slug}"),
            Self::Connect(link) => write!(f, "connect.{link}"),
            Self::Identity(id) => id.fmt(f),
            Self::At(address) => {
                write!(f, "at.{}", URL_SAFE_NO_PAD.encode(address.as_str()))
            }
        }
    }
}

/// The path of the sign-in page for an authorization request.
pub fn login_path(request: RequestId) -> String {
    format!("/login?request={request}")
}

/// The same, where a signed-in person sees the form too: for another account, or for
/// `prompt=login`.
pub fn login_again_path(request: RequestId) -> String {
    format!("/login?request={request}&again=1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s8_every_place_reads_back_and_case_44_no_address_is_one() {
        let places = [
            Target::of_console("/w/acme/calls?tool=listPorts&outcome=error"),
            Target::Console,
            Target::Request(RequestId::generate()),
            Target::Invitation(InvitationId::generate()),
            Target::Account(AccountPage::Overview),
            Target::Account(AccountPage::TwoFactor),
            Target::Workspace("acme".parse().unwrap(), ConsolePage::Keys),
            Target::Workspace("acme".parse().unwrap(), ConsolePage::Limits),
            Target::Workspace("acme".parse().unwrap(), ConsolePage::Servers),
            Target::Source("acme".parse().unwrap(), SourceId::generate()),
            Target::Connect("AbC-_9".to_owned()),
            Target::Identity(IdentityOfferId::generate()),
            Target::Account(AccountPage::SignIn),
            Target::Account(AccountPage::Passkeys),
            Target::Workspace("acme".parse().unwrap(), ConsolePage::Overview),
            Target::Workspace("acme".parse().unwrap(), ConsolePage::Security),
        ];
        for place in places {
            assert_eq!(Target::parse(&place.to_string()), Some(place));
        }
        for foreign in [
            "at.",
            "at./w/acme",
            // `//evil.example` and `https://evil.example`.
            "at.Ly9ldmlsLmV4YW1wbGU",
            "at.aHR0cHM6Ly9ldmlsLmV4YW1wbGU",
            "//evil.example",
            "https:evil",
            "/account",
            "account.",
            "account.//evil.example",
            "w.keys.//evil",
            "s.//evil.acme",
            "s.src_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a.//evil",
            "connect.",
            "connect.//evil.example",
            "w.keys.",
            "w.else.acme",
            "ten_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a",
        ] {
            assert_eq!(Target::parse(foreign), None, "{foreign}");
        }
        assert_eq!(Target::of_console("//evil.example"), Target::Console);
    }
}
