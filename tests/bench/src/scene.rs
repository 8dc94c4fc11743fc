//! The product as a tenant would have it: signed up, an API imported and published, clients with tokens. Alone, and as several nodes.

use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use futures_util::{StreamExt, TryStreamExt, stream};
use portolan_tests::{
    cluster::Cluster,
    console::Published,
    fixture::FixtureApi,
    fleet,
    mcp::{LEGACY, McpClient},
    oauth::OAuthClient,
    person::Person,
    sql::Sql,
    stack::Stack,
};
use serde_json::{Value, json};
use url::Url;

use crate::access::Access;

/// Clients and people that are let in at once.
pub(crate) const LET_IN_AT_ONCE: usize = 8;

/// A process has ended by then after SIGTERM: its clients get an error for unfinished calls.
const END: Duration = Duration::from_secs(40);

/// One process with everything in its memory.
pub(crate) struct Alone {
    stack: Stack,
    process_id: u32,
    /// Owner of the workspace.
    pub(crate) owner: Person,
    /// The owner's published server there.
    pub(crate) published: Published,
    /// A client that the owner has let in.
    pub(crate) client: OAuthClient,
    /// For the published API.
    pub(crate) access: Access,
    token: String,
}

impl Alone {
    /// Starts it and goes the whole way to a token, through the real pages.
    pub(crate) async fn new(api: SocketAddr) -> Result<Self> {
        Self::with(api, async |owner, api| {
            publish_harbour(owner, api, "bench").await
        })
        .await
    }

    /// The same before an MCP server.
    pub(crate) async fn before(server: SocketAddr) -> Result<Self> {
        Self::with(server, async |owner, server| {
            publish_server(owner, server, "bench").await
        })
        .await
    }

    async fn with(
        behind: SocketAddr,
        publish: impl AsyncFnOnce(&Person, SocketAddr) -> Result<Published>,
    ) -> Result<Self> {
        // Limits are counted as in earnest, and wide enough never to refuse.
        let mut stack = Stack::builder()
            .allow_egress(behind)
            .setting("calls_per_minute", 1_000_000)
            .setting("address_requests_per_minute", 1_000_000)
            .setting("tenant_running_calls", 100_000)
            .start()?;
        let owner = Person::sign_up(&stack, "ann").await?;
        let published = publish(&owner, behind).await?;
        let client = OAuthClient::register(stack.url(), "Bench").await?;
        let token = client.authorize(&owner, &published.url).await?.access;
        Ok(Self {
            access: Access::new(&published.url, &published.url, &token)?,
            process_id: stack.process().id(),
            stack,
            owner,
            published,
            client,
            token,
        })
    }

    /// Process id of the product.
    pub(crate) fn process_id(&self) -> u32 {
        self.process_id
    }

    /// Its origin.
    pub(crate) fn url(&self) -> &Url {
        self.stack.url()
    }

    /// The folder with the socket of its Postgres.
    pub(crate) fn postgres(&self) -> PathBuf {
        self.stack.data().join("postgres/socket")
    }

    /// Sends the process a signal by name.
    pub(crate) fn signal(&mut self, name: &str) -> Result<()> {
        self.stack.process().signal(name)
    }

    /// A statement of the owner of its tables, past the service.
    pub(crate) async fn owner_sql(&self) -> Result<Sql> {
        let mut sql = Sql::connect(&self.postgres(), "postgres", "portolan").await?;
        sql.ask("reset role").await?;
        Ok(sql)
    }

    /// A query of its tables, past the service.
    pub(crate) async fn sql(&self) -> Result<Sql> {
        Sql::connect(&self.postgres(), "portolan_dev", "portolan").await
    }

    /// So many more people, signed up through the real pages.
    pub(crate) async fn people(&self, count: usize) -> Result<Vec<Person>> {
        stream::iter(0..count)
            .map(|_| Person::sign_up(&self.stack, "carl"))
            .buffer_unordered(LET_IN_AT_ONCE)
            .try_collect()
            .await
    }

    /// The body of one `tools/list`, to be served by the bare server.
    pub(crate) async fn tools_list_answer(&self) -> Result<String> {
        let client = McpClient::new(&self.published.url)?.with_token(&self.token)?;
        let (session, _) = client.initialize(LEGACY).await?;
        let answer = session.request("tools/list", json!({})).await?;
        ensure!(
            answer.json["result"]["tools"].is_array(),
            "no list: {} {}",
            answer.status,
            answer.text
        );
        Ok(answer.text)
    }

    /// Writes a file beside the data of the run; it goes with it.
    pub(crate) fn keep(&self, name: &str, text: &str) -> Result<String> {
        let path = self.stack.data().join(name);
        std::fs::write(&path, text)?;
        path.to_str().map(str::to_owned).context("a path of text")
    }
}

/// The purpose of each node, so that no scene disturbs the figures of another.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place {
    /// Calls, and the streams that others resume.
    Calls,
    /// Idle sessions.
    Sessions,
    /// Open streams, and clients that come back.
    Streams,
}

/// Three nodes over one Redis.
pub(crate) struct Nodes {
    /// The running parts.
    pub(crate) cluster: Cluster,
    /// The API whose answers wait for us.
    pub(crate) fixture: FixtureApi,
    owner: Person,
    slow: Published,
    /// The tool of the slow API that comes and goes.
    changing: Value,
    /// For the API that is quick.
    pub(crate) access: Access,
    clients: AtomicUsize,
}

impl Nodes {
    /// Starts them and goes the whole way to a token.
    pub(crate) async fn new(api: SocketAddr, teller: SocketAddr) -> Result<Self> {
        let fixture = FixtureApi::start()?;
        let cluster = Cluster::builder()
            .nodes(3)
            .setting(
                "egress_allow",
                format!("{api},{teller},{}", fixture.address()),
            )
            .setting("calls_per_minute", 1_000_000)
            .setting("address_requests_per_minute", 1_000_000)
            .setting("tenant_running_calls", 100_000)
            .start(&fixture)
            .await?;
        let owner = fleet::sign_up(&cluster, "ann").await?;
        let quick = publish_harbour(&owner, api, "bench").await?;
        let slow = owner.console().publish_fixture("slow", &fixture).await?;
        let console = owner.console();
        let mut tools = console.tool_ids(&slow.workspace, &slow.source_id).await?;
        let changing = tools.pop().context("a tool")?;
        let client = OAuthClient::register(cluster.url(), "Bench").await?;
        let token = client.authorize(&owner, &quick.url).await?.access;
        let mut nodes = Self {
            access: Access::new(&quick.url, &quick.url, &token)?,
            cluster,
            fixture,
            owner,
            slow,
            changing,
            clients: AtomicUsize::new(0),
        };
        nodes.access = nodes.access.at(nodes.address(Place::Calls)?);
        Ok(nodes)
    }

    /// Ends all of them in order, so that a build which counts what it does writes its counts down (`make profile`).
    pub(crate) async fn end(mut self) -> Result<()> {
        for node in &self.cluster.nodes {
            node.drain()?;
        }
        for node in &mut self.cluster.nodes {
            ensure!(node.end(END).await?.success(), "a node did not end well");
        }
        Ok(())
    }

    /// Where a node listens.
    pub(crate) fn address(&self, place: Place) -> Result<SocketAddr> {
        let public = McpClient::new(&self.slow.url)?;
        let past_the_balancer = self.cluster.on(place as usize, &public)?;
        Ok(Access::new(&self.slow.url, &past_the_balancer.url, "")?.address)
    }

    /// Its process id.
    pub(crate) fn process_id(&self, place: Place) -> Result<u32> {
        self.cluster.nodes[place as usize].id()
    }

    /// So many clients, each with a token for the slow API, at this node.
    pub(crate) async fn clients(&self, count: usize, place: Place) -> Result<Vec<Access>> {
        self.clients_of(&self.slow, count, place).await
    }

    /// Clients of one published server. A person with one client may open 60 streams a minute.
    async fn clients_of(
        &self,
        published: &Published,
        count: usize,
        place: Place,
    ) -> Result<Vec<Access>> {
        let address = self.address(place)?;
        stream::iter(0..count)
            .map(|_| async move {
                let number = self.clients.fetch_add(1, Ordering::Relaxed);
                let tokens = fleet::let_in(&self.cluster, &self.owner, published, number).await?;
                Ok(Access::new(&published.url, &published.url, &tokens.access)?.at(address))
            })
            .buffer_unordered(LET_IN_AT_ONCE)
            .try_collect()
            .await
    }

    /// Where the balancer listens.
    pub(crate) fn balancer(&self) -> Result<SocketAddr> {
        let url = self.cluster.url();
        url.socket_addrs(|| None)?
            .first()
            .copied()
            .context("an address")
    }

    /// A workspace with the same API that has set itself so many calls a minute, on the node for calls.
    pub(crate) async fn limited(&self, api: SocketAddr, calls_a_minute: u32) -> Result<Access> {
        let published = publish_harbour(&self.owner, api, "noisy").await?;
        let limits = format!("/workspaces/{}/limits", published.workspace);
        let change = json!({ "tenant_calls": calls_a_minute });
        let console = self.owner.console();
        console.expect(Method::PATCH, &limits, Some(change)).await?;
        let client = OAuthClient::register(self.cluster.url(), "Noisy").await?;
        let token = client.authorize(&self.owner, &published.url).await?.access;
        let access = Access::new(&published.url, &published.url, &token)?;
        Ok(access.at(self.address(Place::Calls)?))
    }

    /// So many clients of a workspace before the MCP server with notifications, on the node for
    /// calls.
    pub(crate) async fn tellers(&self, server: SocketAddr, count: usize) -> Result<Vec<Access>> {
        let published = publish_server(&self.owner, server, "telling").await?;
        self.clients_of(&published, count, Place::Calls).await
    }

    /// Takes a tool out of the list of the slow API, or puts it back.
    pub(crate) async fn change_list(&self, enabled: bool) -> Result<()> {
        let path = format!("/workspaces/{}/tools/enabled", self.slow.workspace);
        let body = json!({ "ids": [self.changing], "enabled": enabled });
        let changed = self
            .owner
            .console()
            .expect(Method::POST, &path, Some(body))
            .await?;
        ensure!(changed["changed"] == 1, "nothing changed: {changed}");
        Ok(())
    }
}

/// An MCP server as server `theirs` of a workspace of its own.
async fn publish_server(owner: &Person, server: SocketAddr, workspace: &str) -> Result<Published> {
    let console = owner.console();
    console.create_workspace(workspace).await?;
    let body = json!({ "url": format!("http://{server}/mcp"), "name": "Theirs" });
    let source = console
        .post(&format!("/workspaces/{workspace}/upstreams"), body)
        .await?;
    let source_id = source["id"].as_str().context("a source id")?;
    let tools: Vec<Value> = console.tool_ids(workspace, source_id).await?;
    console.publish(workspace, "theirs", source_id, tools).await
}

/// The demo API as server `harbour` of a workspace of its own.
async fn publish_harbour(owner: &Person, api: SocketAddr, workspace: &str) -> Result<Published> {
    let console = owner.console();
    console.create_workspace(workspace).await?;
    let base_url = format!("http://{api}");
    let source = console
        .post(
            &format!("/workspaces/{workspace}/sources"),
            json!({ "name": "Harbour", "kind": "openapi", "base_url": base_url,
                    "input": { "kind": "text", "text": portolan_demo_api::document(&base_url) } }),
        )
        .await?;
    let source_id = source["id"].as_str().context("a source id")?;
    let credential = json!({ "kind": "api_key", "in": "header", "name": portolan_demo_api::API_KEY_HEADER,
                             "value": portolan_demo_api::API_KEY });
    let path = format!("/workspaces/{workspace}/sources/{source_id}/credential");
    console.expect(Method::PUT, &path, Some(credential)).await?;
    let tools: Vec<Value> = console.tool_ids(workspace, source_id).await?;
    console
        .publish(workspace, "harbour", source_id, tools)
        .await
}
