//! The start of `portolan connect` and its memory, beside `mcp-remote` before the same server, turn
//! about. Both are measured as a person sees them: the wait for the first answer, and the resident
//! memory.

use std::{fs, process::Stdio, time::Duration};

use anyhow::{Context, Result, ensure};
use portolan_tests::{
    connected::{Bridge, Home},
    program::needs,
};
use serde_json::json;
use tokio::{process::Command, time::Instant};

use crate::{
    figure::{Bar, Figure, Table},
    process::Server,
};

/// Starts of each program. The first one reads it from the disk, and is not measured.
const STARTS: usize = 12;
/// When the memory is read, after the first list.
const LATER: Duration = Duration::from_secs(1);
const REMOTE: &str = "tests/clients/remote/node_modules/.bin/mcp-remote";

/// One start.
struct Started {
    first_answer: Duration,
    /// Resident memory, and the part of it that is not pages of files; MiB.
    resident: f64,
    own: f64,
}

/// The two programs, and what is set beside each other.
pub(crate) async fn measure(table: &mut Table) -> Result<()> {
    let server = Server::start(&["mcp"])?;
    let url = format!("http://{}/mcp", server.address);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for start in 0..STARTS {
        let home = Home::new()?;
        let connect = start_of(home.command(&[&url])).await.context("connect")?;
        let remote = start_of(remote(&home, &url)?).await.context("mcp-remote")?;
        if start > 0 {
            ours.push(connect);
            theirs.push(remote);
        }
    }
    let millis = |started: &Started| started.first_answer.as_secs_f64() * 1000.0;
    let (first, other) = (median(&ours, millis), median(&theirs, millis));
    table.add(Figure {
        what: "connect, start to first answer : mcp-remote".to_owned(),
        seen: first / other,
        unit: "",
        bar: Bar::AtMost(0.3),
        note: format!("{first:.0} ms, mcp-remote {other:.0} ms"),
    });
    let (resident, other) = (
        median(&ours, |one| one.resident),
        median(&theirs, |one| one.resident),
    );
    let own = median(&ours, |one| one.own);
    let other_own = median(&theirs, |one| one.own);
    table.add(Figure {
        what: "connect, resident memory : mcp-remote".to_owned(),
        seen: resident / other,
        unit: "",
        bar: Bar::AtMost(0.2),
        note: format!(
            "{resident:.1} MiB ({own:.1} without pages of files), mcp-remote {other:.1} MiB \
             ({other_own:.1})"
        ),
    });
    Ok(())
}

fn remote(home: &Home, url: &str) -> Result<Command> {
    let mut command = Command::new("node");
    command
        .arg(needs(REMOTE)?)
        .arg(url)
        .env("HOME", home.path())
        .env("MCP_REMOTE_CONFIG_DIR", home.path().join("mcp-remote"))
        .env("BROWSER", "true")
        .env_remove("DISPLAY")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    Ok(command)
}

async fn start_of(command: Command) -> Result<Started> {
    let begun = Instant::now();
    let mut program = Bridge::start(command)?;
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "bench", "version": "1"}});
    let opened = program.request("initialize", hello).await?;
    let first_answer = begun.elapsed();
    ensure!(opened["result"].is_object(), "{opened}");
    program
        .notify("notifications/initialized", json!({}))
        .await?;
    let listed = program.request("tools/list", json!({})).await?;
    ensure!(listed["result"]["tools"].is_array(), "{listed}");
    tokio::time::sleep(LATER).await;
    let (resident, own) = memory(program.process()?)?;
    ensure!(program.close().await?.success(), "{}", program.notes());
    Ok(Started {
        first_answer,
        resident,
        own,
    })
}

/// Resident memory of a process and the anonymous part of it, MiB.
fn memory(process: u32) -> Result<(f64, f64)> {
    let text = fs::read_to_string(format!("/proc/{process}/status"))?;
    let of = |name: &str| -> Result<f64> {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let kibibytes = line.and_then(|rest| rest.trim().strip_suffix(" kB"));
        let kibibytes: f64 = kibibytes.with_context(|| name.to_owned())?.trim().parse()?;
        Ok(kibibytes / 1024.0)
    };
    Ok((of("VmRSS:")?, of("RssAnon:")?))
}

fn median(all: &[Started], of: impl Fn(&Started) -> f64) -> f64 {
    let mut values: Vec<f64> = all.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
