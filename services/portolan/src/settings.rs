//! Configuration: the settings of all crates, read from a file and the environment.
//!
//! Every setting has one flat name. In the file it is `name = value`, in the environment
//! `PORTOLAN_NAME`; a list in the environment is separated by commas. A secret can also be read
//! from a file: `name_file`, `PORTOLAN_NAME_FILE`. Each crate declares its own settings
//! ([`portolan_config::config!`]); this module names the crates.

mod process;
mod sources;

use anyhow::{Result, bail};
use portolan_accounts::mail::config::MailConfig;
use portolan_cluster::config::ClusterConfig;
use portolan_config::{Config, Group, Values};
use portolan_keys::KeysConfig;
use portolan_mcp::McpConfig;
use portolan_metering::MeteringConfig;
use portolan_net::{egress::EgressPolicy, listen::ListenConfig};
use portolan_site::{config::SignInConfig, oauth_parts::OAuthConfig};
use portolan_storage::{MigrationConfig, StorageConfig};
use portolan_telemetry::{LogConfig, TracesConfig};

pub use self::{
    process::{ProcessConfig, PublicUrl},
    sources::load,
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

/// Composes the settings of the crates, in the order of the reference page.
macro_rules! compose {
    ($($(#[$doc:meta])+ $field:ident: $config:ty,)+) => {
        /// A complete and checked configuration.
        #[derive(Debug, Clone)]
        pub struct Settings {
            $($(#[$doc])+ pub $field: $config,)+
        }

        /// Every setting there is, by subject.
        pub const GROUPS: &[Group] = &[$(Group::of::<$config>(),)+ Group::of::<MigrationConfig>()];

        impl Settings {
            /// Checks everything and says what is wrong with what.
            pub fn read(values: &Values) -> Result<Self> {
                let mut faults = Vec::new();
                $(let $field = <$config>::read(values).map_err(|fault| faults.push(fault.to_string()));)+
                match ($($field,)+) {
                    ($(Ok($field),)+) => Ok(Self { $($field,)+ }),
                    _ => bail!("{}", faults.join("\n")),
                }
            }
        }
    };
}

compose! {
    /// Origin and drain.
    process: ProcessConfig,
    /// Listeners and the proxies in front.
    listen: ListenConfig,
    /// Postgres.
    storage: StorageConfig,
    /// Redis.
    cluster: ClusterConfig,
    /// Master secret and passwords.
    keys: KeysConfig,
    /// Stolen passwords and providers of identities.
    sign_in: SignInConfig,
    /// Tokens and registrations.
    oauth: OAuthConfig,
    /// Where mail goes.
    mail: MailConfig,
    /// Filter and form of the logs.
    logs: LogConfig,
    /// The collector of traces.
    traces: TracesConfig,
    /// Outgoing calls.
    egress: EgressPolicy,
    /// MCP endpoints, and the limits of workspaces and nodes.
    mcp: McpConfig,
    /// Counts and the log of calls.
    metering: MeteringConfig,
}

impl Settings {
    /// The origin as text, no slash at the end: issuer and prefix of every absolute URL.
    pub fn origin(&self) -> String {
        self.process.public_url.origin()
    }
}

/// The page that lists every setting, in Markdown.
pub fn reference() -> String {
    format!(
        "# Configuration\n\n\
         Made by `portolan emit configuration`; do not edit.\n\n\
         A setting is `name = value` in the TOML file named by `--config`, or `PORTOLAN_NAME` in the \
         environment, which wins. Lists in the environment are separated by commas. Settings marked \
         *secret* can be read from a file: `name_file`, `PORTOLAN_NAME_FILE`. An unknown name refuses \
         to start. [configuration.schema.json](configuration.schema.json) describes the file for editors; \
         `portolan check` checks a configuration.\n{}",
        portolan_config::markdown(GROUPS)
    )
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> impl Iterator<Item = (String, String)> {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect::<Vec<_>>()
            .into_iter()
    }

    fn check(pairs: &[(&str, &str)]) -> Result<Settings> {
        Settings::read(&load(None, environment(pairs)).unwrap())
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
        let settings = check(&complete()).unwrap();
        assert_eq!(settings.origin(), "https://mcp.example.com");
        assert_eq!(settings.mcp.list_page_size, 100);
    }

    #[test]
    fn an_unknown_key_refuses_to_start_and_names_a_near_one() {
        let error = load(None, environment(&[("PORTOLAN_PAGE_SIZES", "3")])).unwrap_err();
        assert!(
            format!("{error:#}").contains("did you mean \"page_size\""),
            "{error:#}"
        );
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("portolan.toml");
        fs::write(&file, "trusted_proxys = []\n").unwrap();
        assert!(load(Some(&file), environment(&[])).is_err());
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
        let settings = Settings::read(&load(Some(&file), environment(&pairs)).unwrap()).unwrap();
        assert_eq!(settings.mcp.list_page_size, 9);
        assert_eq!(settings.storage.url.reveal(), "postgres://from-a-file");
        assert_eq!(settings.mcp.allowed_origins, ["https://a.example"]);
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
            let error = check(&pairs).unwrap_err();
            let setting = name.trim_start_matches("PORTOLAN_").to_ascii_lowercase();
            let said = format!("{error:#}");
            assert!(
                said.contains(&setting) && !said.contains("planted"),
                "{said}"
            );
        }
    }

    #[test]
    fn redis_is_optional_sealed_unless_told_and_its_address_may_come_from_a_file() {
        // Design page, points 6 and 7.
        let without = check(&complete()).unwrap();
        assert!(without.cluster.redis_url.is_none());
        assert!(without.cluster.redis_seal && !without.cluster.redis_allow_eviction);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("redis");
        fs::write(&file, "rediss://node:secret-word@cache:6380/3\n").unwrap();
        let mut pairs = complete();
        pairs.push(("PORTOLAN_REDIS_URL_FILE", file.to_str().unwrap()));
        pairs.push(("PORTOLAN_REDIS_SEAL", "false"));
        let with = check(&pairs).unwrap();
        assert!(with.cluster.redis().is_some());
        assert!(!with.cluster.redis_seal);
        let cluster = |addresses: &'static str| {
            let mut pairs = complete();
            pairs.push(("PORTOLAN_REDIS_URL", addresses));
            check(&pairs)
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
            let settings = check(&all).unwrap();
            {
                let times = settings.process.drain();
                (times.accept.as_secs(), times.calls.as_secs())
            }
        };
        assert_eq!(times(&[]), (5, 25));
        assert_eq!(times(&[("PORTOLAN_DRAIN_SECS", "2")]), (2, 2));
        assert_eq!(times(&[("PORTOLAN_DRAIN_ACCEPT_SECS", "0")]), (0, 25));
    }

    #[test]
    fn secrets_do_not_show_in_debug_output() {
        let settings = check(&complete()).unwrap();
        assert!(!format!("{settings:?}").contains("0123456789abcdef"));
    }

    #[test]
    fn every_fault_is_reported_with_what_is_allowed() {
        let mut pairs = complete();
        pairs.push(("PORTOLAN_TRUSTED_PROXIES", "10.0.0.0/8, proxy"));
        pairs.push(("PORTOLAN_EGRESS_ALLOW", "erp.internal"));
        pairs.push(("PORTOLAN_PROXY_HEADER", "via"));
        pairs.push(("PORTOLAN_PAGE_SIZE", "1001"));
        pairs.push(("PORTOLAN_LOG_FILTER", "info,=x="));
        let said = check(&pairs).unwrap_err().to_string();
        for expected in [
            "trusted_proxies: \"proxy\" is not a network; allowed is a network such as 10.0.0.0/8; several with commas between",
            "egress_allow: \"erp.internal\" is not host:port; allowed is host:port; several with commas between",
            "page_size: \"1001\" is out of range; allowed is a number from 1 to 1000",
            "log_filter: ",
        ] {
            assert!(said.contains(expected), "{expected}: {said}");
        }
    }

    #[test]
    fn the_schema_describes_the_file() {
        let schema = portolan_config::schema(GROUPS);
        let validator = jsonschema::validator_for(&schema).unwrap();
        let is_valid = |text: &str| {
            let table: toml::Table = text.parse().unwrap();
            validator.is_valid(&serde_json::to_value(table).unwrap())
        };
        assert!(is_valid(
            "page_size = 7\ntrace_sample_ratio = 0.5\nredis_seal = false\nlog_format = \"json\"\n\
             egress_allow = [\"a:1\"]\nmaster_secret_file = \"secret\"\n\
             [[login_providers]]\nname = \"github\"\n"
        ));
        for wrong in [
            "page_size = 0",
            "page_sizes = 7",
            "log_format = \"xml\"",
            "redis_seal = \"perhaps\"",
            "trace_sample_ratio = 2",
        ] {
            assert!(!is_valid(wrong), "{wrong}");
        }
        // Each default is a value that the schema allows.
        for (name, property) in schema["properties"].as_object().unwrap() {
            let Some(default) = property.get("default") else {
                continue;
            };
            let table = serde_json::json!({ name.as_str(): default });
            assert!(validator.is_valid(&table), "{name}");
        }
    }
}
