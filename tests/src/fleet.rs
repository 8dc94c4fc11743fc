//! The starting point of tests with several nodes: a workspace with a published server, and a client that may use it.

use std::{
    fs::{self, File},
    io::{BufWriter, Write},
    net::IpAddr,
    path::PathBuf,
    time::Duration,
};

use anyhow::{Context, Result};
use regex::Regex;
use serde_json::{Value, json};

use crate::{
    cluster::{Cluster, ClusterBuilder},
    console::Published,
    fixture::FixtureApi,
    history::Line,
    mcp::McpClient,
    oauth::{OAuthClient, Tokens},
    person::Person,
    process::eventually,
    stack::repository,
};

/// All running parts, and all people and clients.
#[derive(Debug)]
pub struct Fleet {
    /// The nodes and what they stand on.
    pub cluster: Cluster,
    /// The API behind the tools.
    pub fixture: FixtureApi,
    /// Owner of the workspace.
    pub owner: Person,
    /// Every operation of the fixture, as server `fixture` of workspace `harbour`.
    pub published: Published,
    /// A registered client.
    pub client: OAuthClient,
    /// Its tokens for the published server.
    pub tokens: Tokens,
    /// Speaks to the published server through the balancer.
    pub mcp: McpClient,
}

impl Fleet {
    /// With so many nodes and the defaults.
    pub async fn of(nodes: usize) -> Result<Self> {
        Self::with(Cluster::builder().nodes(nodes)).await
    }

    /// With settings.
    pub async fn with(builder: ClusterBuilder) -> Result<Self> {
        let fixture = FixtureApi::start()?;
        let cluster = builder.start(&fixture).await?;
        let owner = sign_up(&cluster, "ann").await?;
        let published = owner.console().publish_fixture("harbour", &fixture).await?;
        let client = OAuthClient::register(cluster.url(), "Harness").await?;
        let tokens = client.authorize(&owner, &published.url).await?;
        let mcp = McpClient::new(&published.url)?.with_token(&tokens.access)?;
        Ok(Self {
            cluster,
            fixture,
            owner,
            published,
            client,
            tokens,
            mcp,
        })
    }

    /// A session of `version`, opened through the balancer.
    pub async fn session(&self, version: &str) -> Result<McpClient> {
        Ok(self.mcp.initialize(version).await?.0)
    }

    /// Writes down what a person needs to find out why something went wrong: history and logs. Answers the folder.
    pub fn keep(&self, name: &str, lines: &[Line]) -> Result<PathBuf> {
        let place = repository().join("target/failed").join(name);
        fs::create_dir_all(&place)?;
        let mut file = BufWriter::new(File::create(place.join("history.jsonl"))?);
        for line in lines {
            serde_json::to_writer(&mut file, line)?;
            file.write_all(b"\n")?;
        }
        for node in self.cluster.nodes.iter().chain([&self.cluster.auth]) {
            fs::write(place.join(format!("{}.log", node.name)), node.output())?;
        }
        fs::write(place.join("balancer.log"), self.cluster.proxy.log())?;
        Ok(place)
    }

    /// `client`, but it asks only this node.
    pub fn on(&self, node: usize, client: &McpClient) -> Result<McpClient> {
        self.cluster.on(node, client)
    }
}

/// Clients that may register from one network within an hour.
const FROM_ONE_NETWORK: usize = 20;

/// Registers another client, from a network that few others use, and signs it in: `number`
/// distinguishes it from all others.
pub async fn let_in(
    cluster: &Cluster,
    owner: &Person,
    published: &Published,
    number: usize,
) -> Result<Tokens> {
    let network = u8::try_from(1 + number / FROM_ONE_NETWORK)?;
    let from = IpAddr::from([127, network, 0, 1]);
    let name = format!("Client {number}");
    let client = OAuthClient::register_from(cluster.url(), &name, Some(from)).await?;
    client.authorize(owner, &published.url).await
}

/// Signs up, with the code out of the log.
pub async fn sign_up(cluster: &Cluster, name: &str) -> Result<Person> {
    let person = Person::new(cluster.url(), name)?;
    let page = person.send_sign_up().await?;
    let code = Regex::new(r"\b(\d{8}) is your")?;
    let mut found = None;
    eventually(
        "the code is in the log",
        Duration::from_secs(10),
        async || {
            let output = cluster.auth.output();
            found = output
                .lines()
                .rfind(|line| line.contains(&person.email))
                .and_then(|line| Some(code.captures(line)?[1].to_owned()));
            found.is_some()
        },
    )
    .await?;
    person.type_code(&page, &found.context("a code")?).await?;
    Ok(person)
}

/// A `tools/call` that requests progress.
pub fn call(
    id: impl Into<Value>,
    tool: &str,
    arguments: Value,
    progress_token: Option<&str>,
) -> Value {
    let mut params = json!({"name": tool, "arguments": arguments});
    if let Some(token) = progress_token {
        params["_meta"] = json!({"progressToken": token});
    }
    json!({"jsonrpc": "2.0", "id": id.into(), "method": "tools/call", "params": params})
}
