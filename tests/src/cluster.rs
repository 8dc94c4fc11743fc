//! Several nodes behind a balancer, as operators run them: one `auth`, some `mcp`, one Postgres, one Redis, HAProxy
//! or nginx in front.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Command, ExitStatus},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use reqwest::StatusCode;
use url::Url;

use crate::{
    fixture::FixtureApi,
    link::Link,
    mcp::McpClient,
    postgres::PostgresServer,
    process::{Daemon, eventually},
    proxy::{Balancer, Behind, Proxy},
    redis::RedisServer,
    stack::{free_port, portolan},
};

/// Longest time a node may take to become ready on a machine that builds at the same time.
const START: Duration = Duration::from_secs(60);

/// How to start a [`Cluster`].
#[derive(Debug, Clone)]
pub struct ClusterBuilder {
    nodes: usize,
    balancer: Balancer,
    is_linked: bool,
    environment: Vec<(String, String)>,
}

impl ClusterBuilder {
    /// How many `mcp` nodes.
    #[must_use]
    pub fn nodes(mut self, nodes: usize) -> Self {
        self.nodes = nodes;
        self
    }

    /// Which balancer stands in front at first.
    #[must_use]
    pub fn balancer(mut self, balancer: Balancer) -> Self {
        self.balancer = balancer;
        self
    }

    /// With a [`Link`] between each `mcp` node and Redis, a way of its own to Postgres, and a link in front of the balancer.
    #[must_use]
    pub fn linked(mut self) -> Self {
        self.is_linked = true;
        self
    }

    /// A setting of every node, as `PORTOLAN_<NAME>`.
    #[must_use]
    pub fn setting(mut self, name: &str, value: impl ToString) -> Self {
        self.environment.push((
            format!("PORTOLAN_{}", name.to_ascii_uppercase()),
            value.to_string(),
        ));
        self
    }

    /// Starts everything and waits until every node is ready. Tools may call `fixture`.
    pub async fn start(self, fixture: &FixtureApi) -> Result<Cluster> {
        let (postgres, redis) = tokio::try_join!(PostgresServer::start(), RedisServer::start())?;
        let public = free_port()?;
        let origin = format!("http://{public}");
        let mut environment = [
            ("PUBLIC_URL", origin.clone()),
            ("DATABASE_URL", postgres.url()),
            ("DATABASE_MAX_CONNECTIONS", "12".to_owned()),
            ("MASTER_SECRET", postgres.master_secret()?),
            ("REDIS_URL", redis.url()),
            ("EGRESS_ALLOW", fixture.address().to_string()),
            ("TRUSTED_PROXIES", "127.0.0.1".to_owned()),
            // Sign-in codes are read from the log.
            ("MAIL", "log".to_owned()),
            ("CALLS_PER_MINUTE", "60000".to_owned()),
        ]
        .map(|(name, value)| (format!("PORTOLAN_{name}"), value))
        .to_vec();
        if cfg!(debug_assertions) {
            environment.push(("PORTOLAN_PASSWORD_COST".to_owned(), "test".to_owned()));
        }
        environment.extend(self.environment);
        let node = |name: String, role| Node::new(name, role, &environment, postgres.folder());
        let mut auth = node("auth".to_owned(), "auth")?;
        let mut nodes = (1..=self.nodes)
            .map(|number| node(format!("mcp-{number}"), "mcp"))
            .collect::<Result<Vec<_>>>()?;
        let mut links = Vec::new();
        if self.is_linked {
            for node in &mut nodes {
                let url = postgres.open_way(&node.name)?;
                node.environment
                    .push(("PORTOLAN_DATABASE_URL".to_owned(), url));
            }
            for node in nodes.iter_mut().chain([&mut auth]) {
                let link = Link::start(redis.address())?;
                let url = format!("redis://{}/", link.address());
                node.environment
                    .push(("PORTOLAN_REDIS_URL".to_owned(), url));
                links.push(link);
            }
        }
        let front = if self.is_linked {
            Some(Link::start(public)?)
        } else {
            None
        };
        auth.start()?;
        for node in &mut nodes {
            node.start()?;
        }
        for node in nodes.iter_mut().chain([&mut auth]) {
            node.ready().await?;
        }
        let behind: Vec<_> = nodes.iter().map(|node| node.place).collect();
        let proxy = Proxy::start(
            self.balancer,
            public,
            auth.place,
            &behind,
            postgres.folder(),
        )
        .await?;
        Ok(Cluster {
            front,
            links,
            proxy,
            nodes,
            auth,
            redis,
            postgres,
            url: origin.parse()?,
        })
    }
}

/// A running service of several nodes. Everything is stopped and deleted when dropped.
#[derive(Debug)]
pub struct Cluster {
    /// Between clients that want it and the balancer, if the cluster is linked.
    pub front: Option<Link>,
    /// Between each node and Redis, if the cluster is linked; the last one is that of `auth`.
    pub links: Vec<Link>,
    /// In front.
    pub proxy: Proxy,
    /// The nodes with the role `mcp`.
    pub nodes: Vec<Node>,
    /// The node with the role `auth`.
    pub auth: Node,
    /// What the nodes share about sessions.
    pub redis: RedisServer,
    /// What the nodes share about everything else.
    pub postgres: PostgresServer,
    url: Url,
}

impl Cluster {
    /// With three `mcp` nodes and the defaults.
    pub fn builder() -> ClusterBuilder {
        ClusterBuilder {
            nodes: 3,
            balancer: Balancer::default(),
            is_linked: false,
            environment: Vec::new(),
        }
    }

    /// The public origin, where the balancer listens.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// `client`, past the balancer: it asks this node and nobody else, under the public name.
    pub fn on(&self, node: usize, client: &McpClient) -> Result<McpClient> {
        self.through(self.nodes[node].place.listen, client)
    }

    /// `client`, over the link in front of the balancer.
    pub fn in_front(&self, client: &McpClient) -> Result<McpClient> {
        let front = self.front.as_ref().context("the cluster is not linked")?;
        self.through(front.address(), client)
    }

    /// Another Redis takes the place of this one, which dies; what was written in the last moments, `lost`, the other one was
    /// never told. Clients find it under the address that they know.
    pub async fn fail_over(&mut self, lost: Duration) -> Result<()> {
        ensure!(!self.links.is_empty(), "the cluster is not linked");
        let standby = self.redis.standby().await?;
        standby.promote().await?;
        tokio::time::sleep(lost).await;
        self.redis.stop()?;
        for link in &self.links {
            link.lead_to(standby.address());
        }
        self.redis = standby;
        Ok(())
    }

    fn through(&self, address: SocketAddr, client: &McpClient) -> Result<McpClient> {
        let public = format!(
            "{}:{}",
            self.url.host_str().unwrap_or_default(),
            self.url.port().unwrap_or_default()
        );
        let mut url: Url = client.url.parse()?;
        url.set_port(Some(address.port()))
            .ok()
            .context("an address with a port")?;
        client.clone().at(url.as_str()).with("host", &public)
    }
}

/// One `portolan serve`. Its addresses stay when it is started again.
#[derive(Debug)]
pub struct Node {
    /// `auth`, `mcp-1` …
    pub name: String,
    role: &'static str,
    place: Behind,
    environment: Vec<(String, String)>,
    log: PathBuf,
    process: Option<Daemon>,
}

impl Node {
    fn new(
        name: String,
        role: &'static str,
        environment: &[(String, String)],
        folder: &Path,
    ) -> Result<Self> {
        let place = Behind {
            listen: free_port()?,
            admin: free_port()?,
        };
        let mut environment = environment.to_vec();
        environment.push(("PORTOLAN_LISTEN".to_owned(), place.listen.to_string()));
        environment.push(("PORTOLAN_ADMIN_LISTEN".to_owned(), place.admin.to_string()));
        Ok(Self {
            log: folder.join(format!("{name}.log")),
            name,
            role,
            place,
            environment,
            process: None,
        })
    }

    /// Starts it, at the addresses that it had. Does not wait.
    pub fn start(&mut self) -> Result<()> {
        ensure!(!self.is_running()?, "{} is running", self.name);
        let mut command = portolan();
        command
            .args(["serve", "--role", self.role])
            .envs(self.environment.iter().cloned());
        self.process = Some(Daemon::start(command, &self.log)?);
        Ok(())
    }

    /// The binary with this node's settings and another verb: what an operator types on its machine.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = portolan();
        command
            .args(arguments)
            .envs(self.environment.iter().cloned());
        command
    }

    /// Waits until it says that it is ready.
    pub async fn ready(&mut self) -> Result<()> {
        let http = reqwest::Client::builder()
            .timeout(Duration::from_secs(2))
            .build()?;
        let url = format!("http://{}/readyz", self.place.admin);
        let mut ended = None;
        eventually("the node is ready", START, async || {
            ended = self
                .process
                .as_mut()
                .and_then(|process| process.ended().ok().flatten());
            let answer = http.get(&url).send().await;
            ended.is_some() || answer.is_ok_and(|answer| answer.status() == StatusCode::OK)
        })
        .await
        .with_context(|| format!("{}:\n{}", self.name, self.last_words()))?;
        ensure!(
            ended.is_none(),
            "{} ended ({ended:?}):\n{}",
            self.name,
            self.last_words()
        );
        Ok(())
    }

    /// Is there a process, held or not?
    pub fn is_running(&mut self) -> Result<bool> {
        Ok(match &mut self.process {
            Some(process) => process.ended()?.is_none(),
            None => false,
        })
    }

    /// Kills it: no connection is closed in order, nothing is written any more.
    pub fn kill(&mut self) -> Result<()> {
        self.process()?.kill()
    }

    /// Its process id.
    pub fn id(&self) -> Result<u32> {
        Ok(self.running()?.id())
    }

    /// Holds it.
    pub fn pause(&self) -> Result<()> {
        self.running()?.signal("STOP")
    }

    /// Lets it go on.
    pub fn go_on(&self) -> Result<()> {
        self.running()?.signal("CONT")
    }

    /// Asks it to drain and to end. Does not wait.
    pub fn drain(&self) -> Result<()> {
        self.running()?.signal("TERM")
    }

    /// Waits until it has ended by itself.
    pub async fn end(&mut self, limit: Duration) -> Result<ExitStatus> {
        self.process()?.end(limit).await
    }

    /// All that it exports.
    pub async fn metrics(&self) -> Result<String> {
        let url = format!("http://{}/metrics", self.place.admin);
        Ok(reqwest::get(url).await?.text().await?)
    }

    /// A number that it exports, summed over all labels.
    pub async fn metric(&self, name: &str) -> Result<f64> {
        self.metrics()
            .await?
            .lines()
            .filter(|line| {
                line.strip_prefix(name)
                    .is_some_and(|rest| rest.starts_with(['{', ' ']))
            })
            .map(|line| {
                line.rsplit(' ')
                    .next()
                    .unwrap_or_default()
                    .parse::<f64>()
                    .with_context(|| line.to_owned())
            })
            .sum()
    }

    /// Bytes of memory that it holds.
    pub fn memory(&self) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.running()?.id()))?;
        let kibibytes: u64 = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .and_then(|rest| rest.trim().strip_suffix(" kB"))
            .context("VmRSS")?
            .parse()?;
        Ok(kibibytes * 1024)
    }

    /// Everything that it has written over all its starts.
    pub fn output(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// The end of it.
    pub fn last_words(&self) -> String {
        self.process
            .as_ref()
            .map(Daemon::last_words)
            .unwrap_or_default()
    }

    fn running(&self) -> Result<&Daemon> {
        self.process
            .as_ref()
            .with_context(|| format!("{} was never started", self.name))
    }

    fn process(&mut self) -> Result<&mut Daemon> {
        self.process
            .as_mut()
            .with_context(|| format!("{} was never started", self.name))
    }
}
