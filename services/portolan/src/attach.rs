//! `portolan attach`: offers a server of this machine or network as an upstream of a workspace.

use std::{ffi::OsString, net::SocketAddr, path::PathBuf, process::ExitCode};

use anyhow::{Context, Result, bail};
use clap::Args;
use http::HeaderMap;
use portolan_attach::{ApiSource, AttachAddress, CommandLine, DocumentPlace, Options, Target};
use portolan_net::{egress::Authorities, proxies::Proxies};
use portolan_telemetry::{LogConfig, LogFormat};
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::{
    connect::Environment,
    header_option::header_of,
    lifecycle::{self, Signals},
};

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
    /// OpenAPI document of an HTTP API in this network, a file or an address, instead of a command.
    #[arg(
        long,
        value_name = "FILE|URL",
        conflicts_with_all = ["command", "url"],
        requires = "base_url"
    )]
    openapi: Option<String>,
    /// Where the paths of the API begin, such as http://10.0.0.5:8080/v1. Nothing else is called.
    #[arg(long, value_name = "URL", requires = "openapi")]
    base_url: Option<Url>,
    /// A header of every request to the API, `Name: value`. `${NAME}` in the value is read from the
    /// environment. May stand several times.
    #[arg(long = "header", value_name = "HEADER", requires = "openapi")]
    headers: Vec<String>,
    /// Folder in which the command runs.
    #[arg(long, value_name = "FOLDER", requires = "command")]
    folder: Option<PathBuf>,
    /// File with certificate authorities (PEM) to trust besides those of the machine.
    #[arg(long, env = "PORTOLAN_ATTACH_CA_FILE", value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// Where Prometheus reads metrics, such as 127.0.0.1:9464. Without it, there are none.
    #[arg(long, env = "PORTOLAN_ATTACH_METRICS", value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,
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
pub(crate) fn run(arguments: AttachArguments, environment: &Environment) -> Result<ExitCode> {
    let address = AttachAddress::parse(&arguments.server)?;
    let mut command = arguments.command.into_iter();
    let api = arguments.openapi.zip(arguments.base_url);
    let target = match (arguments.url, api, command.next()) {
        (Some(url), None, None) => Target::Url(of_http("--url", url)?),
        (None, Some((document, base_url)), None) => {
            let mut headers = HeaderMap::new();
            for text in &arguments.headers {
                let (name, value) = header_of(text, |name| environment.get(name).cloned())?;
                headers.append(name, value);
            }
            Target::Api(ApiSource {
                document: place_of(document),
                base_url: of_http("--base-url", base_url)?,
                headers,
            })
        }
        (None, None, Some(program)) => Target::Command(CommandLine {
            program,
            arguments: command.collect(),
            folder: arguments.folder,
        }),
        _ => bail!(
            "say what to offer: a command after `--`, or --url with the address of a server that \
             speaks HTTP, or --openapi and --base-url with the document and the address of an API"
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
        proxies: Proxies::read(|name| environment.get(name).cloned()),
        metrics: arguments.metrics,
    };
    // One thread, as in `connect`: calls one after the other take no longer.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
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

fn of_http(option: &str, url: Url) -> Result<Url> {
    if !matches!(url.scheme(), "http" | "https") {
        bail!("{option}: {url} is neither http:// nor https://");
    }
    Ok(url)
}

/// An address begins with its scheme; everything else is a file.
fn place_of(document: String) -> DocumentPlace {
    let url = Url::parse(&document).ok();
    match url.filter(|url| matches!(url.scheme(), "http" | "https")) {
        Some(url) => DocumentPlace::Url(url),
        None => DocumentPlace::File(document.into()),
    }
}
