//! Configuration: a TOML file, the environment over it, and nothing unknown.
//!
//! Every setting has one flat name. In the file it is `name = value`, in the environment `PORTOLAN_NAME`; a list in the
//! environment is separated by commas. A secret can also be read from a file: `name_file`, `PORTOLAN_NAME_FILE`. An unknown name
//! in either place refuses to start: a typo in a security setting must not become a default.

use std::{collections::BTreeMap, fmt, fs, net::SocketAddr, path::Path, str::FromStr};

use anyhow::{Context, Result, bail};
use url::Url;

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

/// What one setting is called, its default, and what it means. The page `docs/configuration.md` is made from these.
#[derive(Debug, Clone, Copy)]
pub struct Described {
    /// Name in the file; `PORTOLAN_` + upper case in the environment.
    pub name: &'static str,
    /// Default as it would be written; empty if there is none.
    pub default: &'static str,
    /// Can it be read from a file by `<name>_file`?
    pub secret: bool,
    /// Meaning, in a sentence or two.
    pub meaning: &'static str,
}

/// Every setting there is.
pub const SETTINGS: &[Described] = &[
    Described {
        name: "public_url",
        default: "",
        secret: false,
        meaning: "Origin under which people and clients reach the service, such as https://mcp.example.com. It is the OAuth issuer, byte for byte. Plain http only for loopback addresses.",
    },
    Described {
        name: "listen",
        default: "127.0.0.1:8080",
        secret: false,
        meaning: "Address of the public listener.",
    },
    Described {
        name: "admin_listen",
        default: "127.0.0.1:9090",
        secret: false,
        meaning: "Address of the second listener: /healthz, /readyz, /metrics. Never publish it.",
    },
    Described {
        name: "database_url",
        default: "",
        secret: true,
        meaning: "Postgres (15 or newer) for the service: a login role that is a member of portolan_app and nothing else.",
    },
    Described {
        name: "database_owner_url",
        default: "",
        secret: true,
        meaning: "Postgres as the role that owns the tables. Only `portolan migrate` uses it.",
    },
    Described {
        name: "database_max_connections",
        default: "16",
        secret: false,
        meaning: "Most connections to Postgres held by one process, 2-500.",
    },
    Described {
        name: "master_secret",
        default: "",
        secret: true,
        meaning: "32 random bytes as 64 hex digits (openssl rand -hex 32). Every key of the service is derived from it or sealed under it: losing it loses stored credentials and signing keys.",
    },
    Described {
        name: "mail",
        default: "queue",
        secret: false,
        meaning: "Where mail goes. \"queue\" keeps it in the table mails, and nothing delivers it in this release; \"log\" writes address and sign-in code to the log: for trials only.",
    },
    Described {
        name: "log_filter",
        default: "info",
        secret: false,
        meaning: "What is logged, in the syntax of tracing's EnvFilter: info,portolan_mcp=debug.",
    },
    Described {
        name: "log_format",
        default: "text",
        secret: false,
        meaning: "\"text\" for people, \"json\" for machines.",
    },
    Described {
        name: "trusted_proxies",
        default: "",
        secret: false,
        meaning: "Networks of proxies whose word on the client's address is believed, such as 10.0.0.0/8.",
    },
    Described {
        name: "proxy_header",
        default: "x-forwarded-for",
        secret: false,
        meaning: "The one header that the trusted proxies write: \"x-forwarded-for\" or \"forwarded\".",
    },
    Described {
        name: "allowed_origins",
        default: "",
        secret: false,
        meaning: "Web origins besides the own one that may call MCP endpoints from a browser.",
    },
    Described {
        name: "egress_allow",
        default: "",
        secret: false,
        meaning: "host:port pairs in private or loopback networks that tools may call all the same. Everything else private is refused.",
    },
    Described {
        name: "egress_allow_plain_http",
        default: "false",
        secret: false,
        meaning: "Whether tools may call public APIs over http without TLS.",
    },
    Described {
        name: "page_size",
        default: "100",
        secret: false,
        meaning: "Tools per page of tools/list, 1-1000.",
    },
    Described {
        name: "calls_per_minute",
        default: "600",
        secret: false,
        meaning: "Tool calls a minute that one person may make through one client; a tenant may make ten times that.",
    },
    Described {
        name: "drain_secs",
        default: "20",
        secret: false,
        meaning: "Seconds that running requests get after SIGTERM, 0-300.",
    },
    Described {
        name: "password_cost",
        default: "standard",
        secret: false,
        meaning: "\"standard\", or \"test\" in debug builds: argon2id with little memory, for test suites.",
    },
];

/// A complete and checked configuration.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Origin without a slash at the end.
    pub public_url: Url,
    /// Public listener.
    pub listen: SocketAddr,
    /// Second listener.
    pub admin_listen: SocketAddr,
    /// Postgres for the service.
    pub database_url: SecretText,
    /// Connections.
    pub database_max_connections: u32,
    /// 32 bytes.
    pub master_secret: SecretText,
    /// Log filter.
    pub log_filter: String,
    /// Log form.
    pub log_format: LogFormat,
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
    /// Tools a page.
    pub page_size: usize,
    /// Limit of calls.
    pub calls_per_minute: u32,
    /// Seconds.
    pub drain_secs: u64,
    /// Is mail written to the log, sign-in codes included?
    pub logs_mail: bool,
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

    /// The text of a setting, if somebody set it.
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
        let logs_mail = match self.get("mail") {
            Some("log") => true,
            Some("queue") => false,
            _ => bail!("mail: use \"queue\" or \"log\""),
        };
        let cheap_passwords = match self.get("password_cost") {
            Some("test") if cfg!(debug_assertions) => true,
            Some("test") => bail!("password_cost: \"test\" is refused by a release build"),
            Some("standard") => false,
            _ => bail!("password_cost: use \"standard\""),
        };
        let master_secret: SecretText = self.parse("master_secret")?;
        if master_secret.reveal().len() != 64
            || !master_secret
                .reveal()
                .bytes()
                .all(|b| b.is_ascii_hexdigit())
        {
            bail!("master_secret: 64 hex digits are expected (openssl rand -hex 32)");
        }
        let narrow = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        Ok(Settings {
            public_url,
            listen: self.parse("listen")?,
            admin_listen: self.parse("admin_listen")?,
            database_url: self.parse("database_url")?,
            database_max_connections: narrow(self.within("database_max_connections", 2..=500)?),
            master_secret,
            log_filter: self.parse("log_filter")?,
            log_format: self.parse("log_format")?,
            trusted_proxies: self.list("trusted_proxies"),
            proxy_header: self.parse("proxy_header")?,
            allowed_origins: self.list("allowed_origins"),
            egress_allow: self.list("egress_allow"),
            egress_allow_plain_http: self.parse("egress_allow_plain_http")?,
            page_size: usize::try_from(self.within("page_size", 1..=1000)?)?,
            calls_per_minute: narrow(self.within("calls_per_minute", 1..=1_000_000)?),
            drain_secs: self.within("drain_secs", 0..=300)?,
            logs_mail,
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

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        Some(url::Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

/// The page that lists every setting, in Markdown.
pub fn reference() -> String {
    let mut page = String::from(
        "# Configuration\n\n\
         Made by `portolan emit configuration`; do not edit.\n\n\
         A setting is `name = value` in the TOML file named by `--config`, or `PORTOLAN_NAME` in the environment, which wins. Lists in \
         the environment are separated by commas. Settings marked *secret* can be read from a file: `name_file`, `PORTOLAN_NAME_FILE`. \
         An unknown name refuses to start.\n\n| Setting | Environment | Default | Meaning |\n|---|---|---|---|\n",
    );
    for setting in SETTINGS {
        let default = if setting.default.is_empty() {
            "–".to_owned()
        } else {
            format!("`{}`", setting.default)
        };
        let secret = if setting.secret { " *(secret)*" } else { "" };
        page.push_str(&format!(
            "| `{}`{secret} | `PORTOLAN_{}` | {default} | {} |\n",
            setting.name,
            setting.name.to_ascii_uppercase(),
            setting.meaning
        ));
    }
    page
}

#[cfg(test)]
mod tests {
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
            ("PORTOLAN_MASTER_SECRET", "short"),
            ("PORTOLAN_LOG_FORMAT", "xml"),
            ("PORTOLAN_DRAIN_SECS", "-1"),
        ] {
            let mut pairs = complete();
            pairs.retain(|(known, _)| *known != name);
            pairs.push((name, value));
            let error = Raw::load(None, environment(&pairs))
                .unwrap()
                .check()
                .unwrap_err();
            let setting = name.trim_start_matches("PORTOLAN_").to_ascii_lowercase();
            assert!(format!("{error:#}").contains(&setting), "{error:#}");
        }
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
