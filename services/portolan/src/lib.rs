//! The binary: reads configuration once, turns roles on, and turns them off in order.
//!
//! | Module | Subject |
//! |---|---|
//! | [`admin`] | what an operator looks at and changes |
//! | [`attach`] | offers a server of this machine to a workspace |
//! | [`connect`] | a stdio MCP server in front of a remote one |
//! | [`configuration`] | a workspace as a file: checked, planned, applied, exported |
//! | [`login`] | the sign-in of the commands |
//! | [`test_calls`] | runs saved calls of a server, and checks their answers |
//! | [`webhooks`] | events of a workspace at a receiver on this machine |
//! | [`workspace_api`] | the management API of a workspace, as these commands reach it |
//! | [`cli`] | verbs and their options |
//! | [`settings`] | configuration by file and environment |
//! | [`serve`] | builds the roles and runs them until a signal |
//! | [`lifecycle`] | signals, readiness, drain |
//! | [`console`] | the console's built files |
//! | [`dev`] | everything on a laptop: private Postgres, demo API |
//! | [`doctor`] | what is wrong, before users find it |

pub mod admin;
mod asked_nodes;
pub mod attach;
mod attaching;
pub mod cli;
mod clock_watch;
pub mod configuration;
pub mod connect;
pub mod console;
pub mod dev;
pub mod doctor;
mod header_option;
mod installation;
mod janitor;
pub mod lifecycle;
pub mod login;
mod node_store;
pub mod open_files;
mod output;
mod pipeline_token;
mod revocation_feed;
pub mod serve;
pub mod settings;
pub mod test_calls;
mod usage_folds;
pub mod webhooks;
mod wiring;
pub mod workspace_api;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use cli::{Cli, Command, Emitted};
use output::say;
use portolan_config::Config as _;
use portolan_storage::MigrationConfig;
use settings::Settings;

/// Runs the command line. Exit codes: 0 done, 1 failed (the reason is on standard error), 2 wrong
/// usage, 3 `doctor` or `admin audit verify` found something, 4 `admin` was not told `--yes`,
/// 5 `connect` did not reach the server, 6 `connect` is not signed in. `test-calls` ends with 2 if an
/// assertion does not hold, `plan` and `drift` if there are changes.
#[must_use]
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(cli) {
        Ok(code) => code,
        Err(error) => {
            // The one place that speaks before, or without, a log.
            eprintln!("portolan: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> Result<ExitCode> {
    let environment = || std::env::vars();
    let load = || settings::load(cli.config.as_deref(), environment());
    let read = || Settings::read(&load()?);
    match cli.command {
        Command::Dev(arguments) => dev::run(&arguments, load()?),
        Command::Serve { role } => {
            let settings = read()?;
            let runtime = lifecycle::runtime()?;
            let outcome = runtime.block_on(serve::run(&settings, role, serve::Extras::default()));
            lifecycle::end(runtime);
            outcome.map(|()| ExitCode::SUCCESS)
        }
        Command::Migrate => {
            let config = MigrationConfig::read(&load()?)?;
            let migrate = portolan_storage::migrate(config.owner_url.reveal());
            lifecycle::runtime()?.block_on(migrate)?;
            say("The schema is up to date.");
            Ok(ExitCode::SUCCESS)
        }
        Command::Check => {
            let settings = read()?;
            say(&format!(
                "The configuration is complete. The service will be {}.",
                settings.origin()
            ));
            if settings.cluster.redis_url.is_none() {
                say(
                    "redis_url is not set: sessions, streams and limits stay in the memory of a process, so only one may serve MCP endpoints.",
                );
            }
            Ok(ExitCode::SUCCESS)
        }
        Command::Doctor { role, json } => {
            let settings = read()?;
            let output = if json {
                doctor::Output::Json
            } else {
                doctor::Output::Lines
            };
            lifecycle::runtime()?.block_on(doctor::run(&settings, role, output))
        }
        Command::Admin(arguments) => admin::run(&arguments, load()?, environment()),
        Command::Attach(arguments) => attach::run(*arguments, &environment().collect()),
        Command::Connect(arguments) => connect::run(&arguments, &environment().collect()),
        Command::TestCalls(arguments) => test_calls::run(&arguments, &environment().collect()),
        Command::Validate(arguments) => configuration::validate(&arguments),
        Command::Plan(options) => configuration::plan(&options, &environment().collect()),
        Command::Apply(arguments) => configuration::apply(&arguments, &environment().collect()),
        Command::Export(arguments) => configuration::export(&arguments, &environment().collect()),
        Command::Drift(options) => configuration::drift(&options, &environment().collect()),
        Command::Webhooks(arguments) => webhooks::run(&arguments, &environment().collect()),
        Command::Login(arguments) => login::login(&arguments, &environment().collect()),
        Command::Logout(arguments) => login::logout(&arguments, &environment().collect()),
        Command::Emit { what } => {
            match what {
                Emitted::Openapi => say(&portolan_console::openapi().to_pretty_json()?),
                Emitted::Configuration => say(settings::reference().trim_end()),
                Emitted::ConfigurationSchema => {
                    let schema = portolan_config::schema(settings::GROUPS);
                    say(&serde_json::to_string_pretty(&schema)?);
                }
                Emitted::Events => say(portolan_webhooks::catalogue::page().trim_end()),
                Emitted::BundleSchema => {
                    say(&serde_json::to_string_pretty(
                        &portolan_bundle::json_schema(),
                    )?);
                }
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}
