//! `make bench`: what a call costs in Portolan, against the least that it could cost.
//!
//! Every server is a process of its own and is charged by the kernel's count of its processor time, so that neither the load
//! generator nor the other servers disturb the figure. What is printed are ratios of calls per CPU-second, because absolute
//! times tell more about the machine than about us:
//!
//! - `tools/call` of a tool that calls a REST API (token, session, argument validation, credential, answer shaping), against a
//!   bare axum handler that reads a message and asks the same API once over a kept connection;
//! - `tools/list`, against a bare axum handler that reads a message and answers the very same bytes.
//!
//! The bare servers are compiled with the same profile and allocator as the product.

#![expect(
    clippy::print_stdout,
    reason = "the figures are the answer of this program"
)]

mod bare;
mod load;
mod process;
mod scene;

use std::net::SocketAddr;

use anyhow::Result;
use clap::{Parser, Subcommand};

use self::load::Load;
use self::process::Server;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Kept connections of the load generator.
const CONNECTIONS: usize = 32;

#[derive(Parser)]
#[command(about = "Ratios of Portolan to bare servers, in calls per CPU-second")]
struct Arguments {
    #[command(subcommand)]
    role: Option<Role>,
    /// Rounds of each comparison; the median is what counts.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Calls of one round.
    #[arg(long, default_value_t = 20_000)]
    calls: usize,
    /// Ends with an error if a ratio is below its bar.
    #[arg(long)]
    strict: bool,
}

/// What this program also is: the bare servers, started by itself.
#[derive(Subcommand)]
enum Role {
    /// The REST API behind everything.
    Api,
    /// One hop to the API.
    Proxy {
        /// Address of the API.
        api: SocketAddr,
    },
    /// A fixed answer from a file.
    Fixed {
        /// The file.
        body: std::path::PathBuf,
    },
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    match &arguments.role {
        // As many threads as the product takes.
        Some(role) => tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()?
            .block_on(bare::serve(role)),
        None => tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?
            .block_on(compare(&arguments)),
    }
}

async fn compare(arguments: &Arguments) -> Result<()> {
    let api = Server::start(&["api"])?;
    let proxy = Server::start(&["proxy", &api.address.to_string()])?;
    let scene = scene::Scene::new(api.address).await?;
    let list = scene.tools_list_answer().await?;
    let file = scene.keep("tools-list.json", &list)?;
    let fixed = Server::start(&["fixed", &file])?;

    let sessions = scene.sessions(CONNECTIONS).await?;
    let calls: Vec<Vec<u8>> = sessions
        .iter()
        .map(|session| scene.call_request(session))
        .collect();
    let lists: Vec<Vec<u8>> = sessions
        .iter()
        .map(|session| scene.list_request(session))
        .collect();

    println!(
        "calls per CPU-second, {CONNECTIONS} connections, {} rounds of {} calls",
        arguments.rounds, arguments.calls
    );
    let portolan = scene.address()?;
    let call = Comparison {
        name: "tools/call : bare one-hop proxy",
        bar: 0.45,
        ours: (
            scene.process_id(),
            Load::new(portolan, calls, Some("NOBGO")),
        ),
        bare: (
            proxy.id(),
            Load::new(
                proxy.address,
                vec![bare::request(proxy.address); CONNECTIONS],
                Some("NOBGO"),
            ),
        ),
        rounds: arguments.rounds,
        calls: arguments.calls,
    };
    let list = Comparison {
        name: "tools/list : bare fixed answer",
        bar: 0.6,
        ours: (
            scene.process_id(),
            Load::new(portolan, lists, Some("getPort")),
        ),
        bare: (
            fixed.id(),
            Load::new(
                fixed.address,
                vec![bare::request(fixed.address); CONNECTIONS],
                Some("getPort"),
            ),
        ),
        rounds: arguments.rounds,
        calls: arguments.calls * 2,
    };
    let held = [call.run().await?, list.run().await?];
    anyhow::ensure!(
        !arguments.strict || held.iter().all(|held| *held),
        "a ratio is below its bar"
    );
    Ok(())
}

/// Two servers under the same load, turn about.
struct Comparison {
    name: &'static str,
    bar: f64,
    ours: (u32, Load),
    bare: (u32, Load),
    rounds: usize,
    calls: usize,
}

impl Comparison {
    async fn run(mut self) -> Result<bool> {
        for (_, load) in [&mut self.ours, &mut self.bare] {
            load.run(self.calls / 4).await?;
        }
        let mut ratios = Vec::with_capacity(self.rounds);
        let mut beside = 0.0;
        let mut spent = 0.0;
        for _ in 0..self.rounds {
            let bare = charged(&mut self.bare, self.calls).await?;
            let children = process::cpu_seconds_of_children(self.ours.0)?;
            let ours = charged(&mut self.ours, self.calls).await?;
            beside += process::cpu_seconds_of_children(self.ours.0)? - children;
            spent += ours;
            ratios.push(bare / ours);
        }
        ratios.sort_by(f64::total_cmp);
        let median = ratios[ratios.len() / 2];
        let held = median >= self.bar;
        println!(
            "{:<32} {median:.2}   (lowest {:.2}, highest {:.2}; bar {:.2}: {}; its database took {:.2} of its time beside it)",
            self.name,
            ratios[0],
            ratios[ratios.len() - 1],
            self.bar,
            if held { "held" } else { "NOT HELD" },
            beside / spent,
        );
        Ok(held)
    }
}

/// Processor seconds that the server spent on the calls.
async fn charged((process, load): &mut (u32, Load), calls: usize) -> Result<f64> {
    let before = process::cpu_seconds(*process)?;
    load.run(calls).await?;
    Ok(process::cpu_seconds(*process)? - before)
}
