//! `portolan attach`: offers a server of this machine or network as an upstream of a workspace.

use std::{ffi::OsString, path::PathBuf, process::ExitCode};

use anyhow::{Context, Result, bail};
use clap::Args;
use portolan_attach::{AttachAddress, CommandLine, Options, Target};
use portolan_net::egress::Authorities;
use portolan_telemetry::{LogConfig, LogFormat};
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::lifecycle::{self, Signals};

/// Options of `portolan attach`.
#[derive(Debug, Args)]
pub struct AttachArguments {
    /// Address from the page of the attached server: https://HOST/t/WORKSPACE/mcp.
    #[arg(value_name = "SERVER-URL")]
    server: String,
    /// Key from the page of the attached server. Better in the environment: other users of this
    /// machine can read the arguments of a process.
    #[arg(
        long,
        env = "PORTOLAN_ATTACH_KEY",
        hide_env_values = true,
        value_name = "KEY"
    )]
    api_key: String,
    /// Address of an MCP server in this network that speaks HTTP, instead of a command.
    #[arg(long, value_name = "URL", conflicts_with = "command")]
    url: Option<Url>,
    /// Folder in which the command runs.
    #[arg(long, value_name = "FOLDER", requires = "command")]
    folder: Option<PathBuf>,
    /// File with certificate authorities (PEM) to trust besides those of the machine.
    #[arg(long, env = "PORTOLAN_ATTACH_CA_FILE", value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// Which log lines are written to standard error.
    #[arg(
        long,
        env = "PORTOLAN_ATTACH_LOG",
        default_value = "info",
        value_name = "FILTER"
    )]
    log: String,
    /// Write log lines as JSON.
    #[arg(long, env = "PORTOLAN_ATTACH_LOG_JSON")]
    log_json: bool,
    /// Command that speaks MCP on its standard input and output, after `--`.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Runs until a signal, or until the service refuses the key.
pub(crate) fn run(arguments: AttachArguments) -> Result<ExitCode> {
    let address = AttachAddress::parse(&arguments.server)?;
    let mut command = arguments.command.into_iter();
    let target = match (arguments.url, command.next()) {
        (Some(url), None) => {
            if !matches!(url.scheme(), "http" | "https") {
                bail!("--url: {url} is neither http:// nor https://");
            }
            Target::Url(url)
        }
        (None, Some(program)) => Target::Command(CommandLine {
            program,
            arguments: command.collect(),
            folder: arguments.folder,
        }),
        _ => bail!(
            "say what to offer: a command after `--`, or --url with the address of a server that \
             speaks HTTP"
        ),
    };
    let authorities = match arguments.ca_file {
        Some(file) => {
            let text = std::fs::read(&file)
                .with_context(|| format!("--ca-file: cannot read {}", file.display()))?;
            Authorities::from_pem(&text)
                .with_context(|| format!("--ca-file: {}", file.display()))?
        }
        None => Authorities::default(),
    };
    let options = Options {
        address,
        key: arguments.api_key.trim().to_owned(),
        target,
        authorities,
    };
    let runtime = lifecycle::runtime()?;
    let outcome = runtime.block_on(async {
        let _logs = portolan_telemetry::start(&LogConfig {
            filter: arguments.log,
            format: if arguments.log_json {
                LogFormat::Json
            } else {
                LogFormat::Text
            },
        })?;
        let mut signals = Signals::listen()?;
        let stop = CancellationToken::new();
        let stopping = stop.clone();
        let signalled = async {
            let signal = signals.next().await;
            tracing::info!(signal, "stopping");
            stopping.cancel();
            std::future::pending::<()>().await;
        };
        tokio::select! {
            outcome = portolan_attach::run(options, stop) => outcome?,
            () = signalled => {}
        }
        anyhow::Ok(())
    });
    lifecycle::end(runtime);
    outcome.map(|()| ExitCode::SUCCESS)
}
