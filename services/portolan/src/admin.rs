//! `portolan admin`: what an operator looks at and changes, next to the database and with its configuration. Every change is in the
//! audit log, in the transaction of the change: with the operator's name on this machine and the reason that was given.
//!
//! | Module | Subject |
//! |---|---|
//! | [`users`] | people: lock, unlock, sign out, remove a second factor |
//! | [`tenants`] | workspaces: suspend, resume, delete, restore |
//! | [`clients`] | OAuth clients: block, unblock; and what they were allowed |
//! | [`connects`] | tries of clients to connect |
//! | [`sessions`] | signed-in browsers |
//! | [`keys`] | signing keys: rotate, remove |
//! | [`vault`] | what is sealed under the master secret |
//! | [`audit`] | the audit log: verify its chains |
//! | [`table`] | what is printed |

pub mod audit;
pub mod clients;
pub mod connects;
pub mod keys;
pub mod sessions;
pub mod table;
pub mod tenants;
pub mod users;
pub mod vault;

use std::{
    fmt,
    io::{IsTerminal, Write},
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};

use anyhow::{Context, Result};
use clap::Subcommand;
use portolan_keys::Keys;
use portolan_model::{
    Clock, Timestamp,
    audit::{Actor, Event, Outcome},
    id::TenantId,
};
use portolan_storage::{
    Reason, SchemaState, StorageConfig, Store, SystemTx,
    audit::{self as log, Origin},
};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{dev, doctor::LONGEST_SKEW_SECONDS, lifecycle, rooms, say, settings::Raw};

use self::table::Table;

/// Options of every command, and the command.
#[derive(Debug, clap::Args)]
pub struct AdminArguments {
    /// Print JSON instead of tables.
    #[arg(long, global = true)]
    pub json: bool,
    /// Do not ask before something that cannot be taken back.
    #[arg(long, short, global = true)]
    pub yes: bool,
    /// Why, for the audit log.
    #[arg(long, global = true, value_name = "TEXT")]
    pub reason: Option<String>,
    /// Work on a running `portolan dev` instead of the configured installation; its folder, if it is another one, after `=`.
    #[arg(
        long,
        global = true,
        value_name = "FOLDER",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = ".portolan/dev"
    )]
    pub dev: Option<PathBuf>,
    /// About what.
    #[command(subcommand)]
    pub noun: Noun,
}

/// What commands are about.
#[derive(Debug, Subcommand)]
pub enum Noun {
    /// People.
    #[command(subcommand)]
    Users(users::Command),
    /// Workspaces.
    #[command(subcommand)]
    Tenants(tenants::Command),
    /// OAuth clients.
    #[command(subcommand)]
    Clients(clients::Command),
    /// What people allowed clients to do.
    #[command(subcommand)]
    Grants(clients::GrantCommand),
    /// Tries of clients to connect: where each stopped, and why.
    Connects(connects::Arguments),
    /// Signed-in browsers.
    #[command(subcommand)]
    Sessions(sessions::Command),
    /// Keys that sign access tokens.
    #[command(subcommand)]
    Keys(keys::Command),
    /// What is sealed under the master secret.
    #[command(subcommand)]
    Vault(vault::Command),
    /// The audit log.
    #[command(subcommand)]
    Audit(audit::Command),
}

/// The exit code of a command that was not confirmed.
const NOT_CONFIRMED: u8 = 4;

/// Something was not confirmed.
#[derive(Debug)]
struct NotConfirmed(String);

impl fmt::Display for NotConfirmed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} Say --yes to do it.", self.0)
    }
}

impl std::error::Error for NotConfirmed {}

/// Runs one command.
pub fn run(
    arguments: &AdminArguments,
    mut raw: Raw,
    environment: impl Iterator<Item = (String, String)>,
) -> Result<ExitCode> {
    if let Some(folder) = &arguments.dev {
        dev::point_to(&mut raw, folder)?;
    }
    let settings = raw.check()?;
    let desk_facts = (
        operator(environment),
        rooms::keys(&settings)?,
        settings.database_url.clone(),
    );
    let outcome = lifecycle::runtime()?.block_on(async {
        let (operator, keys, database_url) = desk_facts;
        let store = Store::connect(&StorageConfig {
            url: database_url.reveal().to_owned(),
            max_connections: 2,
            acquire_timeout: Duration::from_secs(10),
        })
        .await
        .context("cannot connect to the database")?;
        if let SchemaState::Behind(missing) = portolan_storage::schema_state(&store).await? {
            anyhow::bail!("{missing} migrations are missing: run `portolan migrate`");
        }
        let clock = Clock::system();
        let skew = store.clock_skew_seconds(clock.now()).await?;
        // What is written here says when it ends, and nodes believe it.
        if skew.abs() > LONGEST_SKEW_SECONDS {
            anyhow::bail!(
                "this machine's clock is {skew:.1} s from the database's: synchronise both machines"
            );
        }
        let desk = Desk {
            store,
            keys,
            clock,
            is_json: arguments.json,
            is_confirmed: arguments.yes,
            reason: arguments.reason.clone(),
            operator,
        };
        match &arguments.noun {
            Noun::Users(command) => users::run(&desk, command).await,
            Noun::Tenants(command) => tenants::run(&desk, command).await,
            Noun::Clients(command) => clients::run(&desk, command).await,
            Noun::Grants(command) => clients::run_grants(&desk, command).await,
            Noun::Connects(arguments) => connects::run(&desk, arguments).await,
            Noun::Sessions(command) => sessions::run(&desk, command).await,
            Noun::Keys(command) => keys::run(&desk, command).await,
            Noun::Vault(command) => vault::run(&desk, command).await,
            Noun::Audit(command) => audit::run(&desk, command).await,
        }
    });
    match outcome {
        Err(error) if error.is::<NotConfirmed>() => {
            eprintln!("portolan: {error}");
            Ok(ExitCode::from(NOT_CONFIRMED))
        }
        outcome => outcome,
    }
}

/// Who works here, as this machine knows them; behind `sudo` whoever called it.
fn operator(environment: impl Iterator<Item = (String, String)>) -> String {
    const NAMES: [&str; 3] = ["SUDO_USER", "USER", "LOGNAME"];
    let mut found = [None, None, None];
    for (name, value) in environment {
        if let Some(at) = NAMES.iter().position(|known| *known == name) {
            found[at] = Some(value);
        }
    }
    found
        .into_iter()
        .flatten()
        .find(|name| !name.is_empty())
        .unwrap_or_else(|| "unknown".to_owned())
}

/// What every command works with.
#[derive(Debug)]
pub struct Desk {
    store: Store,
    keys: Keys,
    clock: Clock,
    is_json: bool,
    is_confirmed: bool,
    reason: Option<String>,
    operator: String,
}

impl Desk {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    async fn begin(&self) -> Result<SystemTx> {
        Ok(self.store.system(Reason::Operator).await?)
    }

    /// Writes what was done into the audit log of `tenant`, or of the platform.
    async fn record(
        &self,
        tx: &mut SystemTx,
        tenant: Option<TenantId>,
        action: &'static str,
        target: (&'static str, String),
        mut detail: Value,
    ) -> Result<()> {
        detail["operator"] = json!(self.operator);
        if let Some(reason) = &self.reason {
            detail["reason"] = json!(reason);
        }
        let event = Event {
            tenant,
            actor: Actor::Operator,
            action,
            target_kind: target.0,
            target_id: target.1,
            outcome: Outcome::Ok,
            detail,
        };
        Ok(log::record(tx, &event, &Origin::default(), self.now()).await?)
    }

    /// Goes on if `--yes` was given, or somebody at the terminal says so.
    fn confirm(&self, what: &str) -> Result<()> {
        if self.is_confirmed {
            return Ok(());
        }
        if std::io::stdin().is_terminal() && std::io::stderr().is_terminal() {
            eprint!("{what} Go on? [y/N] ");
            std::io::stderr().flush()?;
            let mut line = String::new();
            std::io::stdin().read_line(&mut line)?;
            if matches!(line.trim(), "y" | "Y" | "yes") {
                return Ok(());
            }
        }
        Err(NotConfirmed(what.to_owned()).into())
    }

    /// Prints a list.
    fn show(&self, items: &[impl Serialize], table: Table) -> Result<()> {
        if self.is_json {
            say(&serde_json::to_string_pretty(items)?);
        } else {
            say(&table.to_string());
        }
        Ok(())
    }

    /// Prints what was done.
    fn done(&self, sentence: &str, facts: Value) -> Result<ExitCode> {
        if self.is_json {
            say(&serde_json::to_string_pretty(&facts)?);
        } else {
            say(sentence);
        }
        Ok(ExitCode::SUCCESS)
    }
}
