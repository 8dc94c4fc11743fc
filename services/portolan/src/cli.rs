//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

use crate::{
    admin::AdminArguments,
    attach::AttachArguments,
    configuration::{ApplyArguments, ExportArguments, PlanOptions, ValidateArguments},
    connect::ConnectArguments,
    dev::DevArguments,
    login::{LoginArguments, LogoutArguments},
    settings::Role,
    test_calls::TestCallsArguments,
    webhooks::WebhooksArguments,
};

/// A hosted MCP service: turn APIs into tools and publish them to AI clients.
#[derive(Debug, Parser)]
#[command(name = "portolan", version, about, propagate_version = true)]
pub struct Cli {
    /// Configuration file (TOML). The environment (PORTOLAN_*) wins over it.
    #[arg(long, global = true, env = "PORTOLAN_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Verbs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Runs everything on this machine with nothing installed: a private Postgres, the service, and
    /// a demo API.
    Dev(DevArguments),
    /// Runs the service against your own Postgres, and Redis if there are several nodes.
    Serve {
        /// Which parts this process runs.
        #[arg(long, value_enum, env = "PORTOLAN_ROLE", default_value = "all")]
        role: Role,
    },
    /// Brings the database schema up to date (needs database_owner_url).
    Migrate,
    /// Reads the configuration and says whether it is complete. Connects to nothing.
    Check,
    /// Checks the configuration, and what it names: database, schema, clock, Redis, listeners.
    Doctor {
        /// Which parts the process is to run: what its database role needs depends on it.
        #[arg(long, value_enum, env = "PORTOLAN_ROLE", default_value = "all")]
        role: Role,
        /// Print the findings as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Looks at and changes accounts, workspaces, clients, sessions and keys of the installation.
    /// Every change is in the audit log.
    Admin(AdminArguments),
    /// Offers a server of this machine or network to a workspace of Portolan, without an open port.
    Attach(Box<AttachArguments>),
    /// Connects a client that speaks stdio only to a remote MCP server: a stdio MCP server itself.
    Connect(Box<ConnectArguments>),
    /// Runs saved calls of an MCP server and checks their answers. Exit codes: 0 all hold, 1 the
    /// calls could not be made, 2 an assertion does not hold.
    TestCalls(Box<TestCallsArguments>),
    /// Checks a file of configuration without a workspace. Exit codes: 0 sound, 1 not.
    Validate(ValidateArguments),
    /// Shows what a file of configuration would change in a workspace. Exit codes: 0 nothing, 2
    /// something, 1 an error.
    Plan(Box<PlanOptions>),
    /// Makes a workspace what a file of configuration says, in one transaction. Exit codes: 0 done,
    /// 1 an error.
    Apply(Box<ApplyArguments>),
    /// Prints a workspace as a file of configuration.
    Export(Box<ExportArguments>),
    /// Shows how a workspace differs from a file of configuration. Exit codes: 0 not at all, 2 it
    /// does, 1 an error.
    Drift(Box<PlanOptions>),
    /// Brings the events of a workspace to this machine.
    Webhooks(WebhooksArguments),
    /// Signs you in for plan, apply, export and drift, in the browser.
    Login(LoginArguments),
    /// Revokes and deletes the token of `login`.
    Logout(LogoutArguments),
    /// Prints what other tools build on.
    Emit {
        /// What to print.
        #[arg(value_enum)]
        what: Emitted,
    },
}

/// What `emit` can print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Emitted {
    /// The OpenAPI document of the console's API.
    Openapi,
    /// The reference of all settings, in Markdown.
    Configuration,
    /// The JSON Schema of the configuration file.
    ConfigurationSchema,
    /// The catalogue of events, in Markdown.
    Events,
    /// The JSON Schema of files of configuration as code.
    BundleSchema,
}
