//! The official TypeScript SDK of each revision before every server, over HTTP and over `portolan
//! connect`. `tests/bridge/official.tsv` names the cells that it ran. Where a raw client is refused,
//! it is refused too; everywhere else the feature works for it.

use std::{collections::BTreeMap, fmt::Write as _, fs, process::Stdio, time::Duration};

use anyhow::{Context, Result, ensure};
use futures_util::future::join_all;
use portolan_tests::{
    connected::Home,
    program::needs,
    speaker::REVISIONS,
    stack::{binary, repository},
};
use serde_json::{Value, json};
use tokio::{process::Command, time::timeout};

use super::{
    Behind,
    features::FEATURES,
    page,
    table::{Table, Way},
};

const PROGRAM: &str = "tests/clients/eras/walk.mjs";
const FILE: &str = "tests/bridge/official.tsv";
/// Longest time of one client before all servers.
const LIMIT: Duration = Duration::from_secs(300);

/// (feature, revision of the client, revision of the server) → ways.
type Cells = BTreeMap<(String, String, String), Vec<&'static str>>;

/// The client of a revision before all servers: feature, server, outcome.
async fn walk(era: &str, way: &str, servers: &[Value]) -> Result<Vec<[String; 3]>> {
    needs(&format!("tests/clients/eras/node_modules/sdk-{era}"))?;
    let running = Command::new("node")
        .arg(needs(PROGRAM)?)
        .env("PORTOLAN_ERA", era)
        .env("PORTOLAN_WAY", way)
        .env("PORTOLAN_SERVERS", json!(servers).to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let ended = timeout(LIMIT, running.wait_with_output())
        .await
        .with_context(|| format!("the client of {era} goes on"))??;
    let output = String::from_utf8_lossy(&ended.stdout);
    let notes = String::from_utf8_lossy(&ended.stderr);
    ensure!(
        ended.status.success() && output.lines().last() == Some("done"),
        "{era}, {way}: {output}\n{notes}"
    );
    let lines = output.lines().filter(|line| *line != "done");
    lines
        .map(|line| {
            let cells: Vec<String> = line.split('\t').map(str::to_owned).collect();
            let cells = <[String; 3]>::try_from(cells);
            cells.map_err(|_| anyhow::anyhow!("{era}, {way}: {line:?}"))
        })
        .collect()
}

/// The outcome of an official client where a raw client has this one.
fn expected(outcome: &str) -> &str {
    if outcome.starts_with('x') {
        "refused"
    } else {
        "works"
    }
}

/// Every way, with the servers as its clients find them.
fn ways(behind: &Behind, home: &Home) -> [(&'static str, Way, Vec<Value>); 2] {
    let servers = |each: &dyn Fn(&str, &str) -> Value| -> Vec<Value> {
        let servers = behind.servers.iter().zip(&behind.upstreams);
        let servers = servers.map(|((mcp, key), upstream)| {
            let mut server = each(&mcp.url, key);
            server["revision"] = json!(upstream.revision());
            server
        });
        servers.collect()
    };
    let http = servers(
        &|url, key| json!({"url": url, "headers": {"Authorization": format!("Bearer {key}")}}),
    );
    let stdio = servers(&|url, key| {
        json!({"command": binary(), "args": ["connect", url],
            "env": {"PORTOLAN_API_KEY": key, "HOME": home.path()}})
    });
    [
        ("http", Way::Http, http),
        ("stdio", Way::ConnectToService, stdio),
    ]
}

/// MCP-X-12, MCP-X-14, MCP-X-20, MCP-X-22, MCP-X-28, MCP-X-41, MCP-X-42, MCP-X-76…MCP-X-79.
#[tokio::test]
async fn x_12_official_clients_of_every_era_see_the_table() -> Result<()> {
    let behind = Behind::start().await?;
    let home = Home::new()?;
    let (mut cells, mut broken) = (Cells::new(), Vec::new());
    for (name, way, servers) in ways(&behind, &home) {
        let table = Table::read(way)?;
        let walks = REVISIONS.map(|era| walk(era, name, &servers));
        for (era, walked) in REVISIONS.iter().zip(join_all(walks).await) {
            for [feature, server, outcome] in walked? {
                let raw = table.get(&feature, era, &server)?;
                if outcome != expected(raw) {
                    broken.push(format!("{name}: {feature}, {era} × {server}: {outcome}"));
                }
                let place = (feature, (*era).to_owned(), server);
                cells.entry(place).or_default().push(name);
            }
            let key = format!("cancelled official {era} {name}");
            let cancelled = behind.upstreams.iter().map(|upstream| upstream.until(&key));
            for missing in join_all(cancelled)
                .await
                .into_iter()
                .filter_map(Result::err)
            {
                broken.push(format!("{name}: cancel, {era}: {missing:#}"));
            }
        }
    }
    ensure!(broken.is_empty(), "{}", broken.join("\n"));
    let written = written(&cells)?;
    if std::env::var_os("PORTOLAN_TEST_UPDATE").is_some() {
        fs::write(repository().join(FILE), written)?;
        page::write().ok();
        return Ok(());
    }
    let known = fs::read_to_string(repository().join(FILE))?;
    ensure!(known == written, "{FILE} is out of date:\n{written}");
    Ok(())
}

fn written(cells: &Cells) -> Result<String> {
    let mut text = format!("# feature\tclient\t{}\n", REVISIONS.join("\t"));
    for feature in &FEATURES {
        for client in REVISIONS {
            let ways = REVISIONS.map(|server| {
                let place = (
                    feature.name.to_owned(),
                    client.to_owned(),
                    server.to_owned(),
                );
                let ways = cells.get(&place).map(|ways| ways.join(","));
                ways.unwrap_or_else(|| "-".to_owned())
            });
            if ways.iter().any(|ways| ways != "-") {
                writeln!(text, "{}\t{client}\t{}", feature.name, ways.join("\t"))?;
            }
        }
    }
    Ok(text)
}

/// The cells that official clients ran: feature, client, server.
pub(super) fn read() -> Result<Vec<(String, String, String)>> {
    let text = fs::read_to_string(repository().join(FILE))?;
    let mut cells = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let all: Vec<&str> = line.split('\t').collect();
        ensure!(all.len() == 7, "{FILE}: {line:?}");
        for (server, ways) in REVISIONS.iter().zip(&all[2..]) {
            if *ways != "-" {
                cells.push((all[0].to_owned(), all[1].to_owned(), (*server).to_owned()));
            }
        }
    }
    Ok(cells)
}
