//! `make bench`: the cost of Portolan, against the least possible cost.
//!
//! Every server is a process of its own and is charged by the kernel's count of its processor time
//! and of its memory, so that neither the load generator (one thread) nor the other servers disturb
//! the figure. It prints ratios to bare servers that run in the same minute, because absolute times
//! depend on the machine, and the few absolute bars that are promised:
//!
//! - `calls`: `tools/call` of a tool that calls a REST API (token, session, argument validation, credential, answer shaping) against a
//!   bare axum handler that reads a message and asks the same API once over a kept connection; `tools/list` against a bare axum handler
//!   that reads a message and answers the very same bytes. One process, everything in its memory.
//! - `upstream`: `tools/call` through a third-party MCP server, against a bare axum handler that
//!   passes the message on to the same server over a kept connection and the answer back.
//! - `attach`: the same call over the connection of `portolan attach`, against the server by its
//!   address.
//! - `connect`: the start of `portolan connect` and its memory, beside `mcp-remote`.
//! - `metering`: what Postgres takes at 2,000 calls/s, whether counts are the calls at 10,000/s, and the
//!   meter's part of a call.
//! - `plans`: plans of a file of configuration with a thousand tools, and their application.
//! - `insights`: a workspace with a million and with ten million calls: its size on disk, the time of its
//!   pages and of the daily fold. Only by its name.
//! - `nodes`: the same call with its session in Redis, and in the era without sessions; with many connections, and with one.
//! - `rates`: calls a second and their p99 at 64 connections; beside a workspace at fifty times its
//!   limit; and through each balancer.
//! - `telling`: calls that are answered by events; events that another node delivers; and resuming
//!   for as many as a log keeps.
//! - `sessions`: memory of an idle session on a node.
//! - `resume`: the wait of a client that resumes on another node and has missed ten events.
//! - `streams`: memory of ten thousand open streams, against a bare axum handler that sends events;
//!   notifications to all of them; and resuming on the node that has them.
//! - `recovery`: how soon calls are answered again when a fault is over, and what the nodes hold a minute later.
//! - `soak`: the resources that an hour of use leaves behind. Only by its name.
//! - `grants`: a token by the secret of a service account against its signature; a refresh with rotation against a transaction of one
//!   `UPDATE`; and fifty refreshes at once with one token.
//! - `logins`: a login by password against argon2id alone, how many are compared at a time, and tool calls meanwhile.
//!
//! The bare servers are compiled with the same profile and allocator as the product. The servers
//! end with the run, in any case.

#![expect(
    clippy::print_stdout,
    reason = "the figures are the answer of this program"
)]

mod access;
mod attached;
mod bare;
mod calls;
mod connecting;
mod figure;
mod grants;
mod insights;
mod issuer;
mod load;
mod logins;
mod many;
mod metering;
mod paced;
mod plans;
mod process;
mod rates;
mod recovery;
mod refreshes;
mod scene;
mod soak;
mod streams;
mod telling;

use std::{net::SocketAddr, process::ExitCode};

use anyhow::{Context, Result};
use clap::{Parser, Subcommand, ValueEnum};
use tokio::signal::unix::{SignalKind, signal};

use self::{figure::Table, many::IdleSessions, process::Server, scene::Nodes};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
#[command(about = "What Portolan costs, as ratios to bare servers")]
struct Arguments {
    #[command(subcommand)]
    role: Option<Role>,
    /// Only these scenes.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<SceneName>,
    /// Rounds of each comparison of calls and of tokens, short and turn about; the median is what counts. Of logins, whose rounds are long, at
    /// most seven.
    #[arg(long, default_value_t = 25)]
    rounds: usize,
    /// Calls of one round.
    #[arg(long, default_value_t = 4_000)]
    calls: usize,
    /// Streams that are open at once.
    #[arg(long, default_value_t = 10_000)]
    streams: usize,
    /// Sessions that are left idle, twice: more than a node remembers for people.
    #[arg(long, default_value_t = 40_000)]
    sessions: usize,
    /// Minutes of the soak.
    #[arg(long, default_value_t = 60)]
    minutes: u32,
    /// Calls in the workspaces of the scene `insights`.
    #[arg(long, value_delimiter = ',', default_values_t = [1_000_000, 10_000_000])]
    history: Vec<u64>,
    /// The scene `insights` ends with the browser test of its page, on each workspace.
    #[arg(long)]
    look: bool,
    /// Ends with an error if a bar is not held.
    #[arg(long)]
    strict: bool,
}

/// A scene that can be measured by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SceneName {
    Calls,
    Upstream,
    Attach,
    Connect,
    Metering,
    Plans,
    Nodes,
    Rates,
    Telling,
    Sessions,
    Resume,
    Streams,
    Recovery,
    Grants,
    Logins,
    /// Ten million calls, and only where it is asked for.
    Insights,
    /// An hour, and only where it is asked for.
    Soak,
}

/// The bare servers, which this program starts as processes of its own.
#[derive(Subcommand)]
enum Role {
    /// The REST API behind everything.
    Api,
    /// One hop to the API.
    Proxy {
        /// Address of the API.
        api: SocketAddr,
    },
    /// An MCP server of the session era, with one tool.
    Mcp,
    /// One hop to that server, message by message.
    Reverse {
        /// Address of the server.
        server: SocketAddr,
    },
    /// An MCP server of the session era whose tool sends progress.
    Teller,
    /// A fixed answer from a file.
    Fixed {
        /// The file.
        body: std::path::PathBuf,
    },
    /// An event stream without events.
    Events,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    match &arguments.role {
        // As many threads as the product takes.
        Some(role) => tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()?
            .block_on(bare::serve(role))
            .map(|()| ExitCode::SUCCESS),
        None => tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?
            .block_on(until_stopped(&arguments)),
    }
}

/// Measures until a signal stops it: everything that was started is dropped then, and ends with
/// that.
async fn until_stopped(arguments: &Arguments) -> Result<ExitCode> {
    let mut interrupted = signal(SignalKind::interrupt())?;
    let mut terminated = signal(SignalKind::terminate())?;
    let mut hung_up = signal(SignalKind::hangup())?;
    tokio::select! {
        measured = measure(arguments) => {
            let is_good = measured? || !arguments.strict;
            return Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        _ = interrupted.recv() => {}
        _ = terminated.recv() => {}
        _ = hung_up.recv() => {}
    }
    println!("stopped before the end; the servers are ended too");
    Ok(ExitCode::from(130))
}

impl Arguments {
    fn wants(&self, scene: SceneName) -> bool {
        self.only.is_empty() || self.only.contains(&scene)
    }
}

/// The scenes of several nodes, which share them.
async fn measure_nodes(
    arguments: &Arguments,
    api: SocketAddr,
    proxy: &Server,
    table: &mut Table,
) -> Result<()> {
    let wants = |scene| arguments.wants(scene);
    let teller = Server::start(&["teller"])?;
    let mut nodes = Nodes::new(api, teller.address)
        .await
        .context("the nodes did not start")?;
    // Sessions become idle while other things are measured, on other nodes.
    let mut idle = None;
    if wants(SceneName::Sessions) {
        idle = Some(IdleSessions::open(&nodes, arguments.sessions).await?);
    }
    if wants(SceneName::Nodes) {
        calls::on_nodes(arguments, &nodes, proxy, table).await?;
    }
    if wants(SceneName::Rates) {
        rates::at_many_connections(arguments, &nodes, table).await?;
        rates::beside_noise(arguments, &nodes, api, table).await?;
        rates::through_balancers(arguments, &mut nodes, table).await?;
    }
    if wants(SceneName::Telling) {
        telling::measure(arguments, &nodes, teller.address, table).await?;
    }
    // Before open streams: all nodes reload what they change.
    if let Some(idle) = idle {
        idle.measure(&nodes, table).await?;
    }
    if wants(SceneName::Resume) {
        many::resume(&nodes, table).await?;
    }
    if wants(SceneName::Streams) {
        let beside = many::open_streams(&nodes, arguments.streams, table).await?;
        many::listen_streams(&nodes, &beside, arguments.streams, table).await?;
    }
    // Last: a node is killed, and Redis is emptied.
    if wants(SceneName::Recovery) {
        recovery::measure(&mut nodes, table).await?;
    }
    nodes.end().await
}

/// True if every bar was held.
async fn measure(arguments: &Arguments) -> Result<bool> {
    let wants = |scene| arguments.wants(scene);
    let api = Server::start(&["api"])?;
    let proxy = Server::start(&["proxy", &api.address.to_string()])?;
    let mut table = Table::new();
    if wants(SceneName::Calls) {
        calls::alone(arguments, api.address, &proxy, &mut table).await?;
    }
    if wants(SceneName::Upstream) {
        calls::through_upstream(arguments, &mut table).await?;
    }
    if wants(SceneName::Attach) {
        let measured = attached::measure(arguments, &mut table).await;
        measured.context("the scene `attach` ended early")?;
    }
    if wants(SceneName::Connect) {
        let measured = connecting::measure(&mut table).await;
        measured.context("the scene `connect` ended early")?;
    }
    if wants(SceneName::Metering) {
        let measured = metering::measure(arguments, api.address, &mut table).await;
        measured.context("the scene `metering` ended early")?;
    }
    if wants(SceneName::Plans) {
        let measured = plans::measure(api.address, &mut table).await;
        measured.context("the scene `plans` ended early")?;
    }
    if arguments.only.contains(&SceneName::Insights) {
        let measured = insights::measure(arguments, api.address, &mut table).await;
        measured.context("the scene `insights` ended early")?;
    }
    let needs_nodes = [
        SceneName::Nodes,
        SceneName::Rates,
        SceneName::Telling,
        SceneName::Sessions,
        SceneName::Resume,
        SceneName::Streams,
        SceneName::Recovery,
    ];
    if needs_nodes.into_iter().any(wants) {
        measure_nodes(arguments, api.address, &proxy, &mut table).await?;
    }
    if arguments.only.contains(&SceneName::Soak) {
        let nodes = Nodes::new(api.address, api.address).await?;
        let soaked = soak::soak(arguments, &nodes, &mut table).await;
        soaked.context("the scene `soak` ended early")?;
    }
    if wants(SceneName::Grants) {
        let measured = grants::measure(arguments, api.address, &mut table).await;
        measured.context("the scene `grants` ended early")?;
    }
    if wants(SceneName::Logins) {
        let measured = logins::measure(arguments, api.address, &mut table).await;
        measured.context("the scene `logins` ended early")?;
    }
    Ok(table.close())
}
