//! Configuration: a TOML file, the environment over it, and nothing unknown.
//!
//! Every setting has one flat name. In the file it is `name = value`, in the environment
//! `PORTOLAN_NAME`; a list in the environment is separated by commas. A secret can also be read
//! from a file: `name_file`, `PORTOLAN_NAME_FILE`. An unknown name in either place refuses to
//! start: a typo in a security setting must not become a default.

mod described;
mod egress;
mod limits;
mod login;
mod mail;

use std::{
    collections::BTreeMap,
    fmt, fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    str::FromStr,
};

use anyhow::{Context, Result, bail};
use portolan_net::egress::Authorities;
use portolan_site::identity_providers::LoginProvider;
use url::Url;

pub use self::{
    described::{Described, SETTINGS, reference},
    limits::LimitSettings,
    mail::MailSettings,
};

/// Which parts of the service this process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Role {
    /// Everything.
    All,
    /// Authorization service and console.
    Auth,
    /// MCP endpoints.
    Mcp,
}

impl Role {
    /// Does it serve the authorization service and the console?
    pub const fn has_auth(self) -> bool {
        matches!(self, Self::All | Self::Auth)
    }
    /// Returns the transaction scopes that it needs.
    pub const fn needs(self) -> portolan_storage::Needs {
        if self.has_auth() {
            portolan_storage::Needs::AllScopes
        } else {
            portolan_storage::Needs::Nodes
        }
    }
    /// Does it serve MCP endpoints?
    pub const fn has_mcp(self) -> bool {
        matches!(self, Self::All | Self::Mcp)
    }
}

/// Form of the logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

impl FromStr for LogFormat {
    type Err = anyhow::Error;
    fn from_str(text: &str) -> Result<Self> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => bail!("use \"text\" or \"json\""),
        }
    }
}

/// A text that must not be printed.
#[derive(Clone)]
pub struct SecretText(String);

impl SecretText {
    /// Wraps a secret.
    pub fn new(text: String) -> Self {
        Self(text)
    }
    /// The secret itself, for the one place that needs it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}
impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}
impl FromStr for SecretText {
    type Err = std::convert::Infallible;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.to_owned()))
    }
}

/// A complete and checked configuration.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Origin without a slash at the end.
    pub public_url: Url,
    /// Public listener.
    pub listen: SocketAddr,
    /// Connections served at once on the public listener.
    pub listen_max_connections: usize,
    /// Connections of one address on the public listener; 0: no limit.
    pub listen_max_connections_per_address: usize,
    /// Second listener.
    pub admin_listen: SocketAddr,
    /// Postgres for the service.
    pub database_url: SecretText,
    /// Connections.
    pub database_max_connections: u32,
    /// Redis; `None`: what nodes share stays in the memory of this process.
    pub redis_url: Option<SecretText>,
    /// Are payloads sealed before they go to Redis?
    pub redis_seal: bool,
    /// May Redis throw keys away?
    pub redis_allow_eviction: bool,
    /// 32 bytes.
    pub master_secret: SecretText,
    /// Former ones, which still open what they sealed.
    pub master_secret_previous: Vec<SecretText>,
    /// Log filter.
    pub log_filter: String,
    /// Log form.
    pub log_format: LogFormat,
    /// The collector of traces; `None`: there are none.
    pub otlp_endpoint: Option<Url>,
    /// Share of calls that are traced, from 0 to 1.
    pub trace_sample_ratio: f64,
    /// Traces that clients may ask for, a second and node.
    pub trace_asked_per_second: u32,
    /// Networks.
    pub trusted_proxies: Vec<String>,
    /// `x-forwarded-for` or `forwarded`.
    pub proxy_header: String,
    /// Origins.
    pub allowed_origins: Vec<String>,
    /// host:port.
    pub egress_allow: Vec<String>,
    /// http to public addresses.
    pub egress_allow_plain_http: bool,
    /// Certificate authorities that are trusted beside those of the machine.
    pub egress_authorities: Authorities,
    /// Tools a page.
    pub page_size: usize,
    /// Limits of tenants, addresses and nodes.
    pub limits: LimitSettings,
    /// Longest time in seconds that a node accepts tokens while it receives no revocations and
    /// other nodes may receive them.
    pub revocation_max_staleness_secs: u64,
    /// Seconds from SIGTERM to the end of running calls.
    pub drain_secs: u64,
    /// Seconds from SIGTERM to the last new connection; no more than `drain_secs`.
    pub drain_accept_secs: u64,
    /// Where mail goes.
    pub mail: MailSettings,
    /// List of stolen passwords.
    pub breached_passwords_file: Option<PathBuf>,
    /// Service that is asked for ranges of such a list.
    pub breached_passwords_url: Option<Url>,
    /// External providers of identities.
    pub login_providers: Vec<LoginProvider>,
    /// Cheap argon2id for test suites.
    pub cheap_passwords: bool,
}

/// Settings as texts, by name, before they are checked. Later sources win.
#[derive(Debug, Default)]
pub struct Raw(BTreeMap<String, String>);

impl Raw {
    /// Reads the file, if one is named, and then the environment.
    pub fn load(
        file: Option<&Path>,
        environment: impl Iterator<Item = (String, String)>,
    ) -> Result<Self> {
        let mut raw = Self::default();
        if let Some(path) = file {
            raw.read_file(path)?;
        }
        raw.read_environment(environment)?;
        raw.read_secret_files()?;
        Ok(raw)
    }

    fn read_file(&mut self, path: &Path) -> Result<()> {
        let text = fs::read_to_string(path)
            .with_context(|| format!("cannot read the configuration file {}", path.display()))?;
        let table: toml::Table = text
            .parse()
            .with_context(|| format!("{} is not valid TOML", path.display()))?;
        for (name, value) in table {
            check_name(&name).with_context(|| format!("in {}", path.display()))?;
            let text = match value {
                toml::Value::String(text) => text,
                toml::Value::Integer(number) => number.to_string(),
                toml::Value::Boolean(yes) => yes.to_string(),
                // Tables: written as in the environment, to be read in one way.
                toml::Value::Array(_) if name == login::NAME => {
                    toml::Table::from_iter([(name.clone(), value)]).to_string()
                }
                toml::Value::Array(items) => items
                    .into_iter()
                    .map(|item| {
                        item.as_str()
                            .map(str::to_owned)
                            .with_context(|| format!("{name}: a list of strings is expected"))
                    })
                    .collect::<Result<Vec<_>>>()?
                    .join(","),
                _ => bail!(
                    "{name}: a string, a number, true, false or a list of strings is expected"
                ),
            };
            self.0.insert(name, text);
        }
        Ok(())
    }

    fn read_environment(
        &mut self,
        environment: impl Iterator<Item = (String, String)>,
    ) -> Result<()> {
        for (variable, value) in environment {
            let Some(name) = variable.strip_prefix("PORTOLAN_") else {
                continue;
            };
            // Named by the command line, or meant for the test suites.
            if matches!(name, "CONFIG" | "ROLE" | "POSTGRES_BIN")
                || name.starts_with("TEST_")
                || name.starts_with("DEV_")
            {
                continue;
            }
            let name = name.to_ascii_lowercase();
            check_name(&name).with_context(|| format!("environment variable {variable}"))?;
            // A secret given directly replaces one from a file, and the other way round.
            if let Some(base) = name.strip_suffix("_file") {
                self.0.remove(base);
            } else {
                self.0.remove(&format!("{name}_file"));
            }
            self.0.insert(name, value);
        }
        Ok(())
    }

    fn read_secret_files(&mut self) -> Result<()> {
        for setting in SETTINGS.iter().filter(|setting| setting.secret) {
            let Some(path) = self.0.remove(&format!("{}_file", setting.name)) else {
                continue;
            };
            if self.0.contains_key(setting.name) {
                bail!(
                    "{name} and {name}_file are both set: keep one",
                    name = setting.name
                );
            }
            let text = fs::read_to_string(&path)
                .with_context(|| format!("{}_file: cannot read {path}", setting.name))?;
            self.0.insert(
                setting.name.to_owned(),
                text.trim_end_matches(['\r', '\n']).to_owned(),
            );
        }
        Ok(())
    }

    /// Sets a value that neither file nor environment has set.
    pub fn set_default(&mut self, name: &str, value: impl Into<String>) {
        self.0
            .entry(name.to_owned())
            .or_insert_with(|| value.into());
    }

    /// Sets a value, whatever was there: for what the command line names.
    pub fn set(&mut self, name: &str, value: impl Into<String>) {
        self.0.insert(name.to_owned(), value.into());
    }

    /// Returns the text of a setting, if it is set.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0
            .get(name)
            .map(String::as_str)
            .filter(|text| !text.is_empty())
    }

    fn get(&self, name: &str) -> Option<&str> {
        let default = SETTINGS
            .iter()
            .find(|setting| setting.name == name)
            .map_or("", |setting| setting.default);
        self.text(name)
            .or(Some(default).filter(|text| !text.is_empty()))
    }

    fn parse<T>(&self, name: &str) -> Result<T>
    where
        T: FromStr,
        T::Err: Into<anyhow::Error>,
    {
        let text = self.get(name).with_context(|| {
            format!(
                "{name} is not set: put it in the configuration file or set PORTOLAN_{}",
                name.to_ascii_uppercase()
            )
        })?;
        text.parse().map_err(|error: T::Err| {
            error
                .into()
                .context(format!("{name}: this value cannot be used"))
        })
    }

    fn list(&self, name: &str) -> Vec<String> {
        self.get(name)
            .unwrap_or_default()
            .split(',')
            .map(str::trim)
            .filter(|item| !item.is_empty())
            .map(str::to_owned)
            .collect()
    }

    fn within(&self, name: &str, range: std::ops::RangeInclusive<u64>) -> Result<u64> {
        let value: u64 = self.parse(name)?;
        if !range.contains(&value) {
            bail!(
                "{name}: {value} is out of range, choose between {} and {}",
                range.start(),
                range.end()
            );
        }
        Ok(value)
    }

    fn share(&self, name: &str) -> Result<f64> {
        let value: f64 = self.parse(name)?;
        if !(0.0..=1.0).contains(&value) {
            bail!("{name}: {value} is out of range, choose between 0 and 1");
        }
        Ok(value)
    }

    /// Checks everything and says what is wrong with what.
    pub fn check(&self) -> Result<Settings> {
        let public_url: Url = self.parse("public_url")?;
        let loopback = is_loopback(&public_url);
        if public_url.path() != "/"
            || public_url.query().is_some()
            || public_url.fragment().is_some()
            || !public_url.username().is_empty()
        {
            bail!(
                "public_url: give the origin only, such as https://mcp.example.com, without a path"
            );
        }
        if !(public_url.scheme() == "https" || public_url.scheme() == "http" && loopback) {
            bail!("public_url: use https; plain http is only for 127.0.0.1, [::1] and localhost");
        }
        let mail = MailSettings::read(self, &public_url)?;
        let cheap_passwords = match self.get("password_cost") {
            Some("test") if cfg!(debug_assertions) => true,
            Some("test") => bail!("password_cost: \"test\" is refused by a release build"),
            Some("standard") => false,
            _ => bail!("password_cost: use \"standard\""),
        };
        let master_secret: SecretText = self.parse("master_secret")?;
        let master_secret_previous: Vec<SecretText> = self
            .list("master_secret_previous")
            .into_iter()
            .map(SecretText::new)
            .collect();
        for (name, secret) in std::iter::once(("master_secret", &master_secret)).chain(
            master_secret_previous
                .iter()
                .map(|secret| ("master_secret_previous", secret)),
        ) {
            if secret.reveal().len() != 64
                || !secret.reveal().bytes().all(|b| b.is_ascii_hexdigit())
            {
                bail!("{name}: 64 hex digits are expected (openssl rand -hex 32)");
            }
        }
        let redis_url = self.text("redis_url").map(redis_url).transpose()?;
        let drain_secs = self.within("drain_secs", 0..=300)?;
        let connections = usize::try_from(self.within("listen_max_connections", 1..=1_000_000)?)?;
        let of_an_address = match self.text("listen_max_connections_per_address") {
            Some(_) => {
                usize::try_from(self.within("listen_max_connections_per_address", 0..=1_000_000)?)?
            }
            None => share_of_an_address(connections),
        };
        let narrow = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        Ok(Settings {
            public_url,
            listen: self.parse("listen")?,
            listen_max_connections: connections,
            listen_max_connections_per_address: of_an_address,
            admin_listen: self.parse("admin_listen")?,
            database_url: self.parse("database_url")?,
            database_max_connections: narrow(self.within("database_max_connections", 4..=500)?),
            redis_url,
            redis_seal: self.parse("redis_seal")?,
            redis_allow_eviction: self.parse("redis_allow_eviction")?,
            master_secret,
            master_secret_previous,
            log_filter: self.parse("log_filter")?,
            log_format: self.parse("log_format")?,
            otlp_endpoint: self.text("otlp_endpoint").map(collector).transpose()?,
            trace_sample_ratio: self.share("trace_sample_ratio")?,
            trace_asked_per_second: u32::try_from(
                self.within("trace_asked_per_second", 0..=100_000)?,
            )?,
            trusted_proxies: self.list("trusted_proxies"),
            proxy_header: self.parse("proxy_header")?,
            allowed_origins: self.list("allowed_origins"),
            egress_allow: self.list("egress_allow"),
            egress_allow_plain_http: self.parse("egress_allow_plain_http")?,
            egress_authorities: egress::authorities(self)?,
            page_size: usize::try_from(self.within("page_size", 1..=1000)?)?,
            limits: LimitSettings::read(self)?,
            revocation_max_staleness_secs: self
                .within("revocation_max_staleness_secs", 15..=3600)?,
            drain_secs,
            drain_accept_secs: self.within("drain_accept_secs", 0..=60)?.min(drain_secs),
            mail,
            breached_passwords_file: self.text("breached_passwords_list").map(PathBuf::from),
            breached_passwords_url: self
                .text("breached_passwords_url")
                .map(ranges)
                .transpose()?,
            login_providers: login::providers(self)?,
            cheap_passwords,
        })
    }

    /// The owner's URL, for `portolan migrate`.
    pub fn database_owner_url(&self) -> Result<SecretText> {
        self.parse("database_owner_url")
    }
}

impl Settings {
    /// The origin as text, no slash at the end: issuer and prefix of every absolute URL.
    pub fn origin(&self) -> String {
        self.public_url.as_str().trim_end_matches('/').to_owned()
    }
}

/// A twentieth of a listener, but enough for an office behind one address, and never more than
/// half.
fn share_of_an_address(connections: usize) -> usize {
    let enough = 64.min(connections / 2);
    (connections / 20).max(enough).max(1)
}

fn check_name(name: &str) -> Result<()> {
    let known = SETTINGS.iter().any(|setting| {
        setting.name == name || (setting.secret && name.strip_suffix("_file") == Some(setting.name))
    });
    if known {
        return Ok(());
    }
    let near = SETTINGS
        .iter()
        .map(|setting| setting.name)
        .find(|known| known.contains(name) || name.contains(known));
    match near {
        Some(near) => bail!(
            "unknown setting {name:?}: did you mean {near:?}? (portolan emit configuration lists all)"
        ),
        None => bail!("unknown setting {name:?} (portolan emit configuration lists all)"),
    }
}

fn ranges(text: &str) -> Result<Url> {
    text.parse()
        .ok()
        .filter(|url: &Url| {
            matches!(url.scheme(), "http" | "https") && url.has_host() && url.query().is_none()
        })
        .context("breached_passwords_url: this is not an address such as https://api.pwnedpasswords.com/range/")
}

fn collector(text: &str) -> Result<Url> {
    let url: Url = text
        .parse()
        .ok()
        .filter(|url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host())
        .context("otlp_endpoint: this is not an address such as http://collector:4318")?;
    Ok(url)
}

/// The form of the address; the message never repeats it, because it may hold a password.
/// One address, or several of the masters of a cluster.
fn redis_url(text: &str) -> Result<SecretText> {
    for address in text.split(',') {
        check_redis_address(address.trim())?;
    }
    Ok(SecretText::new(text.to_owned()))
}

fn check_redis_address(text: &str) -> Result<()> {
    let url: Url = text
        .parse()
        .context("redis_url: this is not an address such as redis://user:password@host:6379/0")?;
    if !matches!(url.scheme(), "redis" | "rediss") || url.host_str().is_none_or(str::is_empty) {
        bail!(
            "redis_url: use redis://host:6379/0, or rediss:// for TLS; user and password stand before the host (user:password@)"
        );
    }
    let database = url.path().trim_matches('/');
    if !database.is_empty() && database.parse::<u16>().is_err() {
        bail!(
            "redis_url: what stands after the host is the number of a database, such as redis://host:6379/0"
        );
    }
    Ok(())
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        Some(url::Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use portolan_model::limits::LimitName;

    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> impl Iterator<Item = (String, String)> {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect::<Vec<_>>()
            .into_iter()
    }

    fn complete() -> Vec<(&'static str, &'static str)> {
        vec![
            ("PORTOLAN_PUBLIC_URL", "https://mcp.example.com"),
            ("PORTOLAN_DATABASE_URL", "postgres://app@db/portolan"),
            (
                "PORTOLAN_MASTER_SECRET",
                "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
            ),
        ]
    }

    #[test]
    fn a_complete_environment_is_a_configuration() {
        let settings = Raw::load(None, environment(&complete()))
            .unwrap()
            .check()
            .unwrap();
        assert_eq!(settings.origin(), "https://mcp.example.com");
        assert_eq!(settings.page_size, 100);
    }

    #[test]
    fn an_unknown_key_refuses_to_start_and_names_a_near_one() {
        let error = Raw::load(None, environment(&[("PORTOLAN_PAGE_SIZES", "3")])).unwrap_err();
        assert!(
            format!("{error:#}").contains("did you mean \"page_size\""),
            "{error:#}"
        );
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("portolan.toml");
        fs::write(&file, "trusted_proxys = []\n").unwrap();
        assert!(Raw::load(Some(&file), environment(&[])).is_err());
    }

    #[test]
    fn the_environment_wins_over_the_file_and_secrets_come_from_files() {
        let folder = tempfile::tempdir().unwrap();
        let (file, secret) = (
            folder.path().join("portolan.toml"),
            folder.path().join("secret"),
        );
        fs::write(&secret, "postgres://from-a-file\n").unwrap();
        fs::write(&file, format!("page_size = 7\nallowed_origins = [\"https://a.example\"]\ndatabase_url_file = {secret:?}\n")).unwrap();
        let mut pairs = complete();
        pairs.retain(|(name, _)| *name != "PORTOLAN_DATABASE_URL");
        pairs.push(("PORTOLAN_PAGE_SIZE", "9"));
        let settings = Raw::load(Some(&file), environment(&pairs))
            .unwrap()
            .check()
            .unwrap();
        assert_eq!(settings.page_size, 9);
        assert_eq!(settings.database_url.reveal(), "postgres://from-a-file");
        assert_eq!(settings.allowed_origins, ["https://a.example"]);
    }

    #[test]
    fn values_out_of_range_are_refused_by_name() {
        for (name, value) in [
            ("PORTOLAN_PUBLIC_URL", "http://mcp.example.com"),
            ("PORTOLAN_PUBLIC_URL", "https://mcp.example.com/path"),
            ("PORTOLAN_PAGE_SIZE", "0"),
            ("PORTOLAN_TENANT_RUNNING_CALLS", "0"),
            ("PORTOLAN_TENANT_LIMITS_HEADROOM", "0"),
            ("PORTOLAN_NODE_OPEN_STREAMS", "many"),
            ("PORTOLAN_MASTER_SECRET", "short"),
            ("PORTOLAN_LOG_FORMAT", "xml"),
            ("PORTOLAN_DRAIN_SECS", "-1"),
            ("PORTOLAN_DRAIN_ACCEPT_SECS", "61"),
            ("PORTOLAN_REVOCATION_MAX_STALENESS_SECS", "14"),
            ("PORTOLAN_LISTEN_MAX_CONNECTIONS", "0"),
            ("PORTOLAN_REDIS_URL", "planted-word"),
            ("PORTOLAN_REDIS_URL", "http://:planted-word@cache:6379"),
            ("PORTOLAN_REDIS_URL", "redis://:planted-word@cache/zero"),
            ("PORTOLAN_REDIS_SEAL", "perhaps"),
        ] {
            let mut pairs = complete();
            pairs.retain(|(known, _)| *known != name);
            pairs.push((name, value));
            let error = Raw::load(None, environment(&pairs))
                .unwrap()
                .check()
                .unwrap_err();
            let setting = name.trim_start_matches("PORTOLAN_").to_ascii_lowercase();
            let said = format!("{error:#}");
            assert!(
                said.contains(&setting) && !said.contains("planted"),
                "{said}"
            );
        }
    }

    #[test]
    fn s2_an_address_has_a_twentieth_of_the_listener_unless_told() {
        let share = |pairs: &[(&'static str, &'static str)]| {
            let all: Vec<_> = complete()
                .into_iter()
                .chain(pairs.iter().copied())
                .collect();
            let settings = Raw::load(None, environment(&all)).unwrap().check().unwrap();
            settings.listen_max_connections_per_address
        };
        assert_eq!(share(&[]), 2_000);
        for (connections, expected) in [("1", 1), ("10", 5), ("100", 50), ("1000", 64)] {
            let pairs = [("PORTOLAN_LISTEN_MAX_CONNECTIONS", connections)];
            assert_eq!(share(&pairs), expected, "{connections}");
        }
        let told = |value| share(&[("PORTOLAN_LISTEN_MAX_CONNECTIONS_PER_ADDRESS", value)]);
        assert_eq!((told("0"), told("7")), (0, 7));
    }

    #[test]
    fn redis_is_optional_sealed_unless_told_and_its_address_may_come_from_a_file() {
        // Design page, points 6 and 7.
        let without = Raw::load(None, environment(&complete()))
            .unwrap()
            .check()
            .unwrap();
        assert!(without.redis_url.is_none());
        assert!(without.redis_seal && !without.redis_allow_eviction);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("redis");
        fs::write(&file, "rediss://node:secret-word@cache:6380/3\n").unwrap();
        let mut pairs = complete();
        pairs.push(("PORTOLAN_REDIS_URL_FILE", file.to_str().unwrap()));
        pairs.push(("PORTOLAN_REDIS_SEAL", "false"));
        let with = Raw::load(None, environment(&pairs))
            .unwrap()
            .check()
            .unwrap();
        assert_eq!(
            with.redis_url.as_ref().unwrap().reveal(),
            "rediss://node:secret-word@cache:6380/3"
        );
        assert!(!with.redis_seal);
        let cluster = |addresses: &'static str| {
            let mut pairs = complete();
            pairs.push(("PORTOLAN_REDIS_URL", addresses));
            Raw::load(None, environment(&pairs)).unwrap().check()
        };
        assert!(cluster("redis://a:6379, redis://b:6379").is_ok());
        assert!(cluster("redis://a:6379,b:6379").is_err());
        assert!(!format!("{with:?}").contains("secret-word"));
    }

    #[test]
    fn new_connections_are_never_taken_longer_than_calls_may_run() {
        // STREAM-16.4.
        let times = |pairs: &[(&'static str, &'static str)]| {
            let all: Vec<_> = complete()
                .into_iter()
                .chain(pairs.iter().copied())
                .collect();
            let settings = Raw::load(None, environment(&all)).unwrap().check().unwrap();
            (settings.drain_accept_secs, settings.drain_secs)
        };
        assert_eq!(times(&[]), (5, 25));
        assert_eq!(times(&[("PORTOLAN_DRAIN_SECS", "2")]), (2, 2));
        assert_eq!(times(&[("PORTOLAN_DRAIN_ACCEPT_SECS", "0")]), (0, 25));
    }

    #[test]
    fn a_tenant_has_ten_times_what_a_client_has_unless_told() {
        let limits = |pairs: &[(&'static str, &'static str)]| {
            let all: Vec<_> = complete()
                .into_iter()
                .chain(pairs.iter().copied())
                .collect();
            let settings = Raw::load(None, environment(&all)).unwrap().check().unwrap();
            settings.limits
        };
        let name = LimitName::TenantCalls;
        assert_eq!(limits(&[]).default_of(name), 6_000);
        let fewer = limits(&[("PORTOLAN_CALLS_PER_MINUTE", "60")]);
        assert_eq!(fewer.default_of(name), 600);
        let told = limits(&[("PORTOLAN_TENANT_CALLS_PER_MINUTE", "61")]);
        assert_eq!(told.default_of(name), 61);
        assert_eq!(told.platform.maximum(name), 610);
        assert_eq!(told.default_of(LimitName::ToolCalls), 0, "no limit");
    }

    #[test]
    fn secrets_do_not_show_in_debug_output() {
        let settings = Raw::load(None, environment(&complete()))
            .unwrap()
            .check()
            .unwrap();
        assert!(!format!("{settings:?}").contains("0123456789abcdef"));
    }
}
