//! Several nodes behind a balancer, as operators run them: one `auth`, some `mcp`, one Postgres, one Redis, HAProxy
//! or nginx in front.

mod node;

use std::{net::SocketAddr, time::Duration};

use anyhow::{Context, Result, ensure};
use url::Url;

pub use self::node::Node;

use crate::{
    fixture::FixtureApi,
    link::Link,
    mcp::McpClient,
    postgres::PostgresServer,
    process::eventually,
    proxy::{Balancer, Proxy},
    redis::RedisServer,
    sentinels::Sentinels,
    stack::free_port,
};

/// Longest time that a Redis may take to become a master after the command.
const START: Duration = Duration::from_secs(60);
/// So much later than a Redis changes its part, clients are led elsewhere.
const LATE: Duration = Duration::from_millis(700);

/// How to start a [`Cluster`].
#[derive(Debug, Clone)]
pub struct ClusterBuilder {
    nodes: usize,
    balancer: Balancer,
    is_linked: bool,
    is_watched: bool,
    environment: Vec<(String, String)>,
}

/// How a Redis loses its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Succession {
    /// It dies.
    Death,
    /// It goes on, and has to follow its replica. Where clients are led to is changed only then: for a moment they have one that takes no
    /// writes.
    Demotion,
}

/// A replica of Redis, and who decides that it takes the master's place.
#[derive(Debug)]
struct Guard {
    replica: RedisServer,
    sentinels: Sentinels,
}

/// The settings that every node has.
fn environment(
    origin: &str,
    postgres: &PostgresServer,
    redis: &RedisServer,
    fixture: &FixtureApi,
) -> Result<Vec<(String, String)>> {
    let mut environment = [
        ("PUBLIC_URL", origin.to_owned()),
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
    Ok(environment)
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

    /// With a replica of Redis and three sentinels. Where the [`Link`]s lead follows their word, as a service address does; so it has them too.
    #[must_use]
    pub fn watched(mut self) -> Self {
        self.is_watched = true;
        self.linked()
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
        let guard = if self.is_watched {
            let replica = redis.standby().await?;
            let sentinels = Sentinels::watch(redis.address()).await?;
            Some(Guard { replica, sentinels })
        } else {
            None
        };
        let public = free_port()?;
        let origin = format!("http://{public}");
        let mut environment = environment(&origin, &postgres, &redis, fixture)?;
        environment.extend(self.environment);
        let node = |name: String, role| Node::new(name, role, &environment, postgres.folder());
        let mut auth = node("auth".to_owned(), "auth")?;
        let mut nodes = (1..=self.nodes)
            .map(|number| node(format!("mcp-{number}"), "mcp"))
            .collect::<Result<Vec<_>>>()?;
        let mut links = Vec::new();
        for node in &mut nodes {
            let url = if self.is_linked {
                postgres.open_way(&node.name)?
            } else {
                postgres.mcp_url()
            };
            node.environment
                .push(("PORTOLAN_DATABASE_URL".to_owned(), url));
        }
        if self.is_linked {
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
            guard,
            heir: None,
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
    /// The state of sessions that the nodes share.
    pub redis: RedisServer,
    guard: Option<Guard>,
    /// Without sentinels: the Redis that takes over from `redis` next.
    heir: Option<RedisServer>,
    /// All other state that the nodes share.
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
            is_watched: false,
            environment: Vec::new(),
        }
    }

    /// The public origin, where the balancer listens.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Another node with the role `auth`, which the balancer does not know. A test sends requests
    /// to it under the public name.
    pub async fn another_auth(&self) -> Result<Node> {
        let environment = &self.auth.environment;
        let folder = self.postgres.folder();
        let mut node = Node::new("auth-2".to_owned(), "auth", environment, folder)?;
        node.start()?;
        node.ready().await?;
        Ok(node)
    }

    /// `client`, past the balancer: it sends its requests to this node alone, under the public
    /// name.
    pub fn on(&self, node: usize, client: &McpClient) -> Result<McpClient> {
        self.through(self.nodes[node].place.listen, client)
    }

    /// `client`, over the link in front of the balancer.
    pub fn in_front(&self, client: &McpClient) -> Result<McpClient> {
        let front = self.front.as_ref().context("the cluster is not linked")?;
        self.through(front.address(), client)
    }

    /// Waits until another Redis knows all that this one does. First of three steps; see [`Cluster::forget_from_now`].
    pub async fn heir_knows_all(&mut self) -> Result<()> {
        ensure!(!self.links.is_empty(), "the cluster is not linked");
        match &self.guard {
            Some(guard) => guard.replica.caught_up(&self.redis).await,
            None => {
                self.heir = Some(self.redis.standby().await?);
                Ok(())
            }
        }
    }

    /// From now on it receives no writes: later writes are lost when it takes over
    /// ([`Cluster::succeed`]).
    pub async fn forget_from_now(&mut self) -> Result<()> {
        match (&self.guard, &self.heir) {
            (Some(guard), _) => guard.replica.cut_off_from(&self.redis).await,
            (None, Some(heir)) => heir.promote().await,
            (None, None) => anyhow::bail!("there is no other Redis"),
        }
    }

    /// It takes over: by the vote of the sentinels, if there are any. Clients find it under the
    /// address that they know. Without sentinels, the old one dies in any case.
    pub async fn succeed(&mut self, how: Succession) -> Result<()> {
        let old = match self.guard.as_mut() {
            Some(guard) => {
                let heir = guard.replica.address();
                match how {
                    Succession::Death => {
                        self.redis.stop()?;
                        guard.sentinels.replace_the_dead(heir).await?;
                    }
                    Succession::Demotion => {
                        guard.sentinels.replace_the_living(heir).await?;
                        self.redis.follow(heir).await?;
                        tokio::time::sleep(LATE).await;
                    }
                }
                eventually("the heir takes writes", START, async || {
                    guard.replica.is_master().await
                })
                .await?;
                std::mem::swap(&mut self.redis, &mut guard.replica);
                None
            }
            None => {
                let heir = self.heir.take().context("there is no other Redis")?;
                Some(std::mem::replace(&mut self.redis, heir))
            }
        };
        if let Some(mut old) = old {
            old.stop()?;
        }
        for link in &self.links {
            link.lead_to(self.redis.address());
        }
        Ok(())
    }

    /// The one that lost its place becomes a replica, and the sentinels know of it: everything is as it was before.
    pub async fn restore_heir(&mut self) -> Result<()> {
        let Some(guard) = &mut self.guard else {
            return Ok(());
        };
        let master = self.redis.address();
        self.redis.reconnect().await?;
        if !guard.replica.is_running() {
            guard.replica.start_again_behind(master).await?;
        }
        guard.replica.caught_up(&self.redis).await?;
        guard.sentinels.agree_on(master).await
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
