//! `portolan connect`: a stdio MCP server in front of a remote one (`docs/connect.md`).

use std::{collections::HashMap, path::PathBuf, process::ExitCode, time::Duration};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use http::{HeaderMap, HeaderValue, header};
use portolan_bridge::{
    BridgeEnd, Folders, Notes, Setup,
    account::{AccountFiles, SignIn},
    install::{self, InstallClient, InstallEntry},
};
use portolan_net::proxies::Proxies;
use url::Url;

use crate::{header_option::header_of, output::say};

/// The server was never reached, or does not speak MCP.
const NOT_REACHED: u8 = 5;
/// The server wants a sign-in or a key, and there is none that it accepts.
const NOT_SIGNED_IN: u8 = 6;

/// The variables of the environment.
pub(crate) type Environment = HashMap<String, String>;

/// Options of `connect`.
#[derive(Debug, Args)]
pub struct ConnectArguments {
    /// The address of the MCP server.
    url: Url,
    /// API key, sent as `Authorization: Bearer`. Better in the environment than on the command line.
    #[arg(
        long,
        env = "PORTOLAN_API_KEY",
        hide_env_values = true,
        value_name = "KEY"
    )]
    api_key: Option<String>,
    /// A header of every request, `Name: value`. `${NAME}` in the value is read from the
    /// environment. May stand several times.
    #[arg(long = "header", value_name = "HEADER")]
    headers: Vec<String>,
    /// Only write the address of the sign-in to standard error; open no browser.
    #[arg(long)]
    no_browser: bool,
    /// Seconds that a person has for the sign-in.
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    sign_in_timeout: u64,
    /// Port for the way back from the browser. Without it, a free one.
    #[arg(long, value_name = "PORT")]
    callback_port: Option<u16>,
    /// Scopes to request instead of those that the server names, separated by spaces.
    #[arg(long, value_name = "SCOPES")]
    scope: Option<String>,
    /// Client id that the authorization server gave you, where it registers no clients by itself.
    #[arg(long, value_name = "ID", conflicts_with = "client_metadata_url")]
    client_id: Option<String>,
    /// Address of a client metadata document, used as the client id.
    #[arg(long, value_name = "URL")]
    client_metadata_url: Option<Url>,
    /// Send keys and tokens over http:// to public hosts too.
    #[arg(long)]
    allow_http: bool,
    /// Write details to standard error.
    #[arg(long, short)]
    verbose: bool,
    /// Delete the tokens for this server, revoke them, and end.
    #[arg(long, conflicts_with = "install")]
    sign_out: bool,
    /// Write the configuration of this client, and end.
    #[arg(long, value_enum, value_name = "CLIENT")]
    install: Option<InstallFor>,
    /// Name of the server in the client's configuration. Without it, the name of the host.
    #[arg(long, requires = "install")]
    name: Option<String>,
    /// Show what `--install` would write, and write nothing.
    #[arg(long, requires = "install")]
    dry_run: bool,
    /// The client's configuration file, where it is not in its usual place.
    #[arg(long, requires = "install", value_name = "FILE")]
    client_config: Option<PathBuf>,
}

/// Clients whose configuration can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum InstallFor {
    /// Claude Desktop.
    ClaudeDesktop,
    /// Cursor.
    Cursor,
    /// Visual Studio Code.
    Vscode,
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
}

impl From<InstallFor> for InstallClient {
    fn from(client: InstallFor) -> Self {
        match client {
            InstallFor::ClaudeDesktop => Self::ClaudeDesktop,
            InstallFor::Cursor => Self::Cursor,
            InstallFor::Vscode => Self::VsCode,
            InstallFor::Codex => Self::Codex,
            InstallFor::Gemini => Self::Gemini,
        }
    }
}

/// Runs the command. Exit codes: 0 done, 1 failed, 5 the server was not reached, 6 not signed in.
pub(crate) fn run(arguments: &ConnectArguments, environment: &Environment) -> Result<ExitCode> {
    if !matches!(arguments.url.scheme(), "http" | "https") {
        bail!("the address of an MCP server begins with https:// or http://");
    }
    if let Some(client) = arguments.install {
        return write_configuration(arguments, environment, client.into());
    }
    let setup = setup(arguments, environment)?;
    if arguments.sign_out {
        let had = portolan_bridge::sign_out(setup).map_err(anyhow::Error::msg)?;
        say(if had {
            "You are signed out."
        } else {
            "You were not signed in."
        });
        return Ok(ExitCode::SUCCESS);
    }
    let ended = portolan_bridge::run(setup, std::io::stdin(), std::io::stdout())?;
    Ok(match ended {
        BridgeEnd::Done => ExitCode::SUCCESS,
        BridgeEnd::NotReached => ExitCode::from(NOT_REACHED),
        BridgeEnd::NotSignedIn => ExitCode::from(NOT_SIGNED_IN),
    })
}

fn setup(arguments: &ConnectArguments, environment: &Environment) -> Result<Setup> {
    let mut headers = HeaderMap::new();
    for text in &arguments.headers {
        let (name, value) = header_of(text, |name| environment.get(name).cloned())?;
        headers.append(name, value);
    }
    let key = arguments.api_key.as_deref().map(str::trim);
    if let Some(key) = key.filter(|key| !key.is_empty()) {
        let value = HeaderValue::try_from(format!("Bearer {key}"));
        let mut value = value
            .ok()
            .context("the API key has characters that no header carries")?;
        value.set_sensitive(true);
        headers.insert(header::AUTHORIZATION, value);
    }
    let client = arguments.client_id.clone().or_else(|| {
        let document = arguments.client_metadata_url.as_ref();
        document.map(Url::to_string)
    });
    // A key stands for a sign-in.
    let sign_in = if headers.contains_key(header::AUTHORIZATION) && !arguments.sign_out {
        None
    } else {
        let tokens = folders(environment)?.tokens();
        let place = AccountFiles::within(tokens, &arguments.url, &client.unwrap_or_default());
        Some(SignIn {
            place,
            client_id: arguments.client_id.clone(),
            client_metadata_url: arguments.client_metadata_url.clone(),
            scope: arguments.scope.clone(),
            callback_port: arguments.callback_port,
            browser: (!arguments.no_browser)
                .then(|| environment.get("BROWSER").cloned().unwrap_or_default()),
            within: Duration::from_secs(arguments.sign_in_timeout),
        })
    };
    Ok(Setup {
        url: arguments.url.clone(),
        headers,
        sign_in,
        allow_plain_http: arguments.allow_http,
        proxies: Proxies::read(|name| environment.get(name).cloned()),
        notes: if arguments.verbose {
            Notes::verbose()
        } else {
            Notes::default()
        },
    })
}

fn folders(environment: &Environment) -> Result<Folders> {
    let folders = Folders::read(|name| environment.get(name).cloned());
    folders.context("there is no home folder; set HOME")
}

fn write_configuration(
    arguments: &ConnectArguments,
    environment: &Environment,
    client: InstallClient,
) -> Result<ExitCode> {
    let program = std::env::current_exe().context("the path of this program is not known")?;
    let program = program
        .to_str()
        .context("the path of this program is not UTF-8")?;
    let mut words = vec!["connect".to_owned(), arguments.url.to_string()];
    for header in &arguments.headers {
        words.extend(["--header".to_owned(), header.clone()]);
    }
    let texts = [
        ("--scope", arguments.scope.clone()),
        ("--client-id", arguments.client_id.clone()),
        (
            "--client-metadata-url",
            arguments.client_metadata_url.as_ref().map(Url::to_string),
        ),
        (
            "--callback-port",
            arguments.callback_port.map(|port| port.to_string()),
        ),
    ];
    for (option, value) in texts {
        if let Some(value) = value {
            words.extend([option.to_owned(), value]);
        }
    }
    let flags = [
        ("--no-browser", arguments.no_browser),
        ("--allow-http", arguments.allow_http),
    ];
    words.extend(
        flags
            .into_iter()
            .filter(|(_, is_set)| *is_set)
            .map(|(flag, _)| flag.to_owned()),
    );
    let host = arguments.url.host_str().unwrap_or("server");
    let entry = InstallEntry {
        name: arguments
            .name
            .clone()
            .unwrap_or_else(|| install::name_of_host(host)),
        command: program.to_owned(),
        arguments: words,
        environment: arguments
            .api_key
            .iter()
            .map(|key| ("PORTOLAN_API_KEY".to_owned(), key.clone()))
            .collect(),
    };
    let file = match &arguments.client_config {
        Some(file) => file.clone(),
        None => client.file(&folders(environment)?),
    };
    let plan = install::plan(client, &file, &entry)?;
    say(&plan.description());
    if arguments.dry_run {
        say("Nothing was written (--dry-run).");
    } else if plan.changes() {
        for line in plan.write()? {
            say(&line);
        }
        say(client.next_step());
    }
    Ok(ExitCode::SUCCESS)
}
