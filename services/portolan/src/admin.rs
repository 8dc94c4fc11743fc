//! `portolan admin`: reads and changes of an operator, next to the database and with its
//! configuration. Every change is in the audit log, in the transaction of the change: with the
//! operator's name on this machine and the reason that was given.
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
//! | [`desk`] | database, keys and operator that every command works with |
//! | [`table`] | what is printed |

pub mod audit;
pub mod clients;
pub mod connects;
pub mod desk;
pub mod keys;
pub mod sessions;
pub mod table;
pub mod tenants;
pub mod users;
pub mod vault;

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Context, Result};
use clap::Subcommand;
use portolan_config::Values;
use portolan_model::Clock;
use portolan_storage::{SchemaState, StorageConfig, Store};

use crate::{dev, doctor::LONGEST_SKEW_SECONDS, lifecycle, settings::Settings};

use self::desk::{Desk, NotConfirmed};

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
    /// Work on a running `portolan dev` instead of the configured installation; its folder, if it
    /// is another one, after `=`.
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
    Users(users::UsersCommand),
    /// Workspaces.
    #[command(subcommand)]
    Tenants(tenants::TenantsCommand),
    /// OAuth clients.
    #[command(subcommand)]
    Clients(clients::ClientsCommand),
    /// What people allowed clients to do.
    #[command(subcommand)]
    Grants(clients::GrantCommand),
    /// Tries of clients to connect: where each stopped, and why.
    Connects(connects::Arguments),
    /// Signed-in browsers.
    #[command(subcommand)]
    Sessions(sessions::SessionsCommand),
    /// Keys that sign access tokens.
    #[command(subcommand)]
    Keys(keys::KeysCommand),
    /// Secrets that are sealed under the master secret.
    #[command(subcommand)]
    Vault(vault::VaultCommand),
    /// The audit log.
    #[command(subcommand)]
    Audit(audit::AuditCommand),
}

/// The exit code of a command that was not confirmed.
const NOT_CONFIRMED: u8 = 4;

/// Runs one command.
pub fn run(
    arguments: &AdminArguments,
    mut values: Values,
    environment: impl Iterator<Item = (String, String)>,
) -> Result<ExitCode> {
    if let Some(folder) = &arguments.dev {
        dev::point_to(&mut values, folder)?;
    }
    let settings = Settings::read(&values)?;
    let (operator, keys) = (operator(environment), settings.keys.keys()?);
    let outcome = lifecycle::runtime()?.block_on(async {
        let store = Store::connect(&StorageConfig {
            max_connections: 2,
            acquire_timeout_ms: 10_000,
            ..settings.storage
        })
        .await
        .context("cannot connect to the database")?;
        if let SchemaState::Behind(missing) = portolan_storage::schema_state(&store).await? {
            anyhow::bail!("{missing} migrations are missing: run `portolan migrate`");
        }
        let clock = Clock::system();
        let skew = store.clock_skew_seconds(clock.now()).await?;
        // Rows that this command writes hold end times, which nodes compare with their own clocks.
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

/// Returns the operator's name from the environment; behind `sudo`, the user who called it.
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
