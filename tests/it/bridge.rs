//! Every revision of a client before every revision of a server, feature by feature, with raw
//! clients and servers of exactly these revisions. `tests/bridge/*.tsv` hold the outcome of each
//! pair; `docs/bridge.md` is made of them. `PORTOLAN_TEST_UPDATE=1 cargo nextest run -p
//! portolan-tests bridge` writes both anew.

mod features;
mod official;
mod others;
mod page;
mod table;

use anyhow::{Context, Result, ensure};
use futures_util::future::join_all;
use portolan_tests::{
    behind,
    connected::{Bridge, Home},
    console::text,
    mcp::McpClient,
    oauth::OAuthClient,
    person::Person,
    revision_upstream::RevisionUpstream,
    speaker::{REVISIONS, Speaker},
    stack::Stack,
};
use serde_json::{Value, json};

use self::{
    features::{FEATURES, Pair},
    table::{Table, Way},
};

/// Everything that a client of the revision can do.
fn able(revision: &str) -> Value {
    match revision {
        "2024-11-05" | "2025-03-26" => json!({"sampling": {}, "roots": {}}),
        "2025-06-18" => json!({"elicitation": {}, "sampling": {}, "roots": {}}),
        _ => json!({"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}},
            "roots": {}}),
    }
}

fn upstreams() -> Result<Vec<RevisionUpstream>> {
    let started = REVISIONS.map(RevisionUpstream::start);
    started.into_iter().collect()
}

/// The service with a server of each revision behind it.
struct Behind {
    upstreams: Vec<RevisionUpstream>,
    /// For each of them: the client of a signed-in person, and an API key.
    servers: Vec<(McpClient, String)>,
    _stack: Stack,
}

impl Behind {
    async fn start() -> Result<Self> {
        let upstreams = upstreams()?;
        let allowed = upstreams.iter().map(|one| one.address().to_string());
        let allowed: Vec<String> = allowed.collect();
        let stack = Stack::builder().setting("egress_allow", allowed.join(","));
        let stack = stack.start()?;
        let owner = Person::sign_up(&stack, "ann").await?;
        let console = owner.console();
        let client = OAuthClient::register(stack.url(), "Harness").await?;
        let mut servers = Vec::new();
        for upstream in &upstreams {
            let workspace = format!("w{}", upstream.revision());
            console.create_workspace(&workspace).await?;
            let published =
                behind::publish_at(&console, &workspace, &upstream.url(), &json!({})).await?;
            let tokens = client.authorize(&owner, &published.url).await?;
            let mcp = McpClient::new(&published.url)?.with_token(&tokens.access)?;
            let keys = format!("/workspaces/{workspace}/api-keys");
            let key = console.post(&keys, json!({"name": "Laptop"})).await?;
            servers.push((mcp, text(&key, "secret")?));
        }
        Ok(Self {
            upstreams,
            servers,
            _stack: stack,
        })
    }
}

/// The pairs of one server, one after another, so that none sees the changes of another. `start`
/// makes the client.
async fn pairs_of(
    way: Way,
    upstream: &RevisionUpstream,
    start: impl AsyncFn(&'static str) -> Result<Speaker>,
) -> Result<Table> {
    let (mut table, mut broken) = (Table::default(), Vec::new());
    let server = upstream.revision();
    for client in REVISIONS {
        let about = format!("a client of {client} before a server of {server}, {way:?}");
        let speaker = start(client).await.with_context(|| about.clone())?;
        let mut pair = Pair {
            client: speaker,
            upstream: upstream.clone(),
            way,
        };
        for feature in &FEATURES {
            match pair.outcome_of(feature.name).await {
                Ok(outcome) => table.insert(feature.name, client, server, outcome),
                Err(error) => broken.push(format!("{about}: {}: {error:#}", feature.name)),
            }
        }
    }
    ensure!(broken.is_empty(), "{}", broken.join("\n"));
    Ok(table)
}

/// All pairs over a way. An error names every pair that is broken.
fn hold(way: Way, tables: Vec<Result<Table>>) -> Result<()> {
    let (mut seen, mut broken) = (Vec::new(), Vec::new());
    for table in tables {
        match table {
            Ok(table) => seen.push(table),
            Err(error) => broken.push(format!("{error:#}")),
        }
    }
    ensure!(broken.is_empty(), "{}", broken.join("\n"));
    table::hold(way, seen)
}

/// MCP-X-14, MCP-X-20, MCP-X-22, MCP-X-28…MCP-X-30, MCP-X-32…MCP-X-35, MCP-X-3B, MCP-X-40…MCP-X-42,
/// MCP-X-44, MCP-X-50…MCP-X-53, MCP-X-60…MCP-X-64, MCP-X-66, MCP-X-67, MCP-X-76…MCP-X-79, MCP-V-1,
/// MCP-V-6, MCP-V-7, MCP-V-11: through the service, over HTTP and over `portolan connect`.
#[tokio::test]
async fn x_12_every_pair_through_the_service_has_the_outcome_of_the_table() -> Result<()> {
    let behind = Behind::start().await?;
    let home = Home::new()?;
    for way in [Way::Http, Way::ConnectToService] {
        let home = &home;
        let servers = behind.servers.iter().zip(&behind.upstreams);
        let all = servers.map(async |((mcp, key), upstream)| {
            let start = async |revision| {
                if way == Way::Http {
                    return Speaker::open_able(mcp, revision, able(revision)).await;
                }
                let mut command = home.command(&[&mcp.url]);
                command.env("PORTOLAN_API_KEY", key);
                Speaker::over(Bridge::start(command)?, revision, able(revision)).await
            };
            pairs_of(way, upstream, start).await
        });
        hold(way, join_all(all).await)?;
    }
    Ok(())
}

/// MCP-X-20, MCP-X-22, MCP-X-40, MCP-X-42, MCP-X-60…MCP-X-64, MCP-X-76…MCP-X-79: `portolan connect`
/// translates by itself, before servers that are not ours.
#[tokio::test]
async fn x_14_every_pair_through_connect_alone_has_the_outcome_of_the_table() -> Result<()> {
    let upstreams = upstreams()?;
    let home = Home::new()?;
    let all = upstreams.iter().map(async |upstream| {
        let start = async |revision| {
            let program = home.start(&[&upstream.url()])?;
            Speaker::over(program, revision, able(revision)).await
        };
        pairs_of(Way::Connect, upstream, start).await
    });
    hold(Way::Connect, join_all(all).await)
}
