//! Configuration that the service receives at start. The binary reads it from file and environment;
//! this module does not.

use std::{
    fmt,
    fs::File,
    io::{self, BufReader},
    path::{Path, PathBuf},
    pin::Pin,
    sync::{Arc, OnceLock},
};

use portolan_config::ConfigError;
use portolan_keys::webauthn::RelyingParty;
use portolan_model::{id::TenantId, limits::PlatformLimits};
use portolan_net::txt::TxtRecords;
use serde::Serialize;
use url::Url;

use crate::{
    breached::BreachedPasswords,
    identity_providers::{LoginProviders, SignInWith},
    live_sessions::LiveSessions,
};

portolan_config::config! {
    /// Sign-in
    pub struct SignInConfig {
        /// File with stolen passwords that are refused: one password or one SHA-1 in hex a line, as
        /// such lists are published. Read at the start; takes 8 bytes of memory for each.
        breached_passwords_list: Option<PathBuf> = None;
        /// Service that knows stolen passwords, such as `https://api.pwnedpasswords.com/range/`: the
        /// first five digits of a new password's SHA-1 are appended, and nothing else leaves. If it
        /// does not answer within a second, its check is skipped. Private addresses have to stand
        /// in egress_allow.
        breached_passwords_url: Option<Url> = None;
        /// Providers of accounts with which people sign in, as TOML: one table `[[login_providers]]`
        /// each, with name, label, kind ("oidc", "entra" or "github"), issuer or base_url and
        /// api_url, client_id, client_secret or client_secret_file, scope, algorithms. In the
        /// configuration file the tables stand in the file itself. See "Sign-in with other
        /// accounts" in operating.md.
        login_providers: LoginProviders = LoginProviders::default();
    }
    check can_be_read;
}

impl SignInConfig {
    /// Reads the list of breached passwords, which are refused.
    pub fn breached(&self) -> Result<BreachedPasswords, ConfigError> {
        let ranges = self.breached_passwords_url.clone();
        match &self.breached_passwords_list {
            Some(path) => File::open(path)
                .and_then(|file| BreachedPasswords::read(BufReader::new(file), ranges))
                .map_err(|error| unreadable(path, &error)),
            None => Ok(BreachedPasswords::new("", ranges)),
        }
    }

    fn can_be_read(&self) -> Result<(), ConfigError> {
        if let Some(path) = &self.breached_passwords_list {
            File::open(path).map_err(|error| unreadable(path, &error))?;
        }
        if self
            .breached_passwords_url
            .as_ref()
            .is_some_and(|url| url.query().is_some())
        {
            let fault = "digits are appended to it, so that it has no query";
            return Err(ConfigError::new("breached_passwords_url", fault));
        }
        Ok(())
    }
}

fn unreadable(path: &Path, error: &io::Error) -> ConfigError {
    let fault = format!("{} cannot be read: {error}", path.display());
    ConfigError::new("breached_passwords_list", fault)
}

/// Facts that the handlers of this service know from the start of the process.
#[derive(Debug, Clone)]
pub struct AuthConfig {
    /// Requests from loopback addresses are not throttled by address. For development and tests,
    /// where every client is 127.0.0.1.
    pub loopback_is_unthrottled: bool,
    /// The demo API that runs beside `portolan dev`.
    pub demo_api: Option<DemoApi>,
    /// Limits that the console shows.
    pub limits: ConsoleLimits,
    /// Passwords that are refused because they are known from breaches.
    pub breached: BreachedPasswords,
    /// External identity providers for sign-in.
    pub sign_in_with: SignInWith,
    /// Resolver of the TXT records that prove a workspace's domain.
    pub domain_records: TxtRecords,
    /// Sessions of clients, which the nodes know.
    pub live_sessions: LiveSessions,
}

/// Limits as the console knows them.
#[derive(Debug, Clone, Default)]
pub struct ConsoleLimits {
    /// Limits of the platform for every workspace.
    pub platform: PlatformLimits,
    /// Current use.
    pub in_use: InUse,
    /// Where the calls count that the console makes.
    pub calls: Calls,
}

/// How many calls of a tenant run and how many of its streams are open; `None` where that is not known.
pub type AskInUse =
    Box<dyn Fn(TenantId) -> Pin<Box<dyn Future<Output = [Option<u64>; 2]> + Send>> + Send + Sync>;

/// Asks the nodes what is in use, if this process is one of them. Cheap to clone.
#[derive(Clone, Default)]
pub struct InUse(Arc<OnceLock<AskInUse>>);

impl InUse {
    /// Says whom to ask, once the nodes can be asked. The first word counts.
    pub fn set(&self, ask: AskInUse) {
        let _ = self.0.set(ask);
    }

    /// Calls and streams in use; `None` where the nodes cannot answer.
    pub async fn ask(&self, tenant: TenantId) -> [Option<u64>; 2] {
        match self.0.get() {
            Some(ask) => ask(tenant).await,
            None => [None; 2],
        }
    }
}

impl fmt::Debug for InUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InUse").finish_non_exhaustive()
    }
}

/// Counts a call of a tenant that may have so many a minute (none: as many as it likes); over the limit: seconds until the next one.
pub type CountCall = Box<
    dyn Fn(TenantId, Option<u32>) -> Pin<Box<dyn Future<Output = Option<u64>> + Send>>
        + Send
        + Sync,
>;

/// Counts the calls that the console makes among those of their tenant, if the nodes can be asked. Cheap to clone.
#[derive(Clone, Default)]
pub struct Calls(Arc<OnceLock<CountCall>>);

impl Calls {
    /// Says who counts, once that is known. The first word counts.
    pub fn set(&self, count: CountCall) {
        let _ = self.0.set(count);
    }

    /// Counts a call. Over the limit: seconds until the next one.
    pub async fn count(&self, tenant: TenantId, most: Option<u32>) -> Option<u64> {
        match self.0.get() {
            Some(count) => count(tenant, most).await,
            None => None,
        }
    }
}

impl fmt::Debug for Calls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Calls").finish_non_exhaustive()
    }
}

/// Where the demo API is, for the console to propose.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub struct DemoApi {
    /// Its OpenAPI document.
    pub openapi_url: String,
    /// Where its calls go.
    pub base_url: String,
    /// Its title.
    pub title: String,
    /// The key itself, for the header that its document names. It is public, and guards invented data.
    pub api_key: String,
    /// The same as an MCP server, which needs no credential.
    pub mcp_url: String,
}

/// Absolute URLs and cookie names. Everything absolute is built from configuration, never from
/// `Host` (AUTH-S10).
#[derive(Debug, Clone)]
pub struct Site {
    origin: String,
    secure: bool,
    /// What passkeys are bound to, if the host is a name.
    host: Option<String>,
}

impl Site {
    /// From the public URL. Cookies are `Secure` with the `__Host-` prefix (AUTH-S1), but not on
    /// `http` on a loopback address, where browsers would drop them.
    pub fn new(public_url: &Url) -> Self {
        let is_loopback = match public_url.host() {
            Some(url::Host::Domain(name)) => name == "localhost",
            Some(url::Host::Ipv4(address)) => address.is_loopback(),
            Some(url::Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        };
        Self {
            origin: public_url.origin().ascii_serialization(),
            secure: !(public_url.scheme() == "http" && is_loopback),
            host: match public_url.host() {
                Some(url::Host::Domain(name)) => Some(name.to_owned()),
                _ => None,
            },
        }
    }

    /// Scheme, host and port, without a slash at the end. It is the issuer too, byte for byte
    /// (AUTH-E1).
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The issuer: the same string as [`Site::origin`], under the name that OAuth code looks for.
    pub fn issuer(&self) -> &str {
        &self.origin
    }

    /// An absolute URL of ours. `path` begins with a slash.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.origin)
    }

    /// Who we are to authenticators (AUTH-L13): the host of the issuer, and its origin as the only
    /// one. `None` where the host is an address: browsers bind passkeys to names.
    pub fn passkeys(&self) -> Option<RelyingParty> {
        let host = self.host.as_deref()?;
        Some(RelyingParty::new(host, vec![self.origin.clone()]))
    }

    /// The host that passkeys are bound to; of no passkey where there can be none.
    pub fn passkey_host(&self) -> &str {
        self.host.as_deref().unwrap_or_default()
    }

    /// True unless this is plain `http` on loopback.
    pub fn is_secure(&self) -> bool {
        self.secure
    }

    /// `name` with the prefix that this origin can have: `__Host-sid`, or `sid` on plain loopback.
    pub fn cookie_name(&self, name: &str) -> String {
        if self.secure {
            format!("__Host-{name}")
        } else {
            name.to_owned()
        }
    }

    /// A `Set-Cookie` value: HttpOnly, SameSite=Lax, Path=/, no Domain (AUTH-S1). `max_age` in
    /// seconds; `None` ends with the browser, 0 removes the cookie.
    pub fn set_cookie(&self, name: &str, value: &str, max_age: Option<i64>) -> String {
        use std::fmt::Write as _;
        let mut cookie = format!(
            "{}={value}; Path=/; HttpOnly; SameSite=Lax",
            self.cookie_name(name)
        );
        if let Some(seconds) = max_age {
            let _ = write!(cookie, "; Max-Age={seconds}");
        }
        if self.secure {
            cookie.push_str("; Secure");
        }
        cookie
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s1_cookies_are_host_bound_except_on_plain_loopback() {
        let site = Site::new(&"https://portolan.example".parse().unwrap());
        assert_eq!(
            site.set_cookie("sid", "x", Some(5)),
            "__Host-sid=x; Path=/; HttpOnly; SameSite=Lax; Max-Age=5; Secure"
        );
        assert_eq!(site.issuer(), "https://portolan.example");
        let site = Site::new(&"http://127.0.0.1:8080/".parse().unwrap());
        assert_eq!(
            site.set_cookie("sid", "x", None),
            "sid=x; Path=/; HttpOnly; SameSite=Lax"
        );
        assert_eq!(site.url("/login"), "http://127.0.0.1:8080/login");
        assert!(
            Site::new(&"http://portolan.example".parse().unwrap()).is_secure(),
            "only loopback is let off"
        );
    }
}
