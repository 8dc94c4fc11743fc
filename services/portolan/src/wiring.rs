//! Opens what both services share, and builds the router of each service.

use std::{
    num::NonZero,
    sync::{Arc, Mutex},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use axum::Router;
use portolan_accounts::mail::{config::Delivery, outbox};
use portolan_cluster::{
    Revocations,
    ledger::Ledger,
    node::{Node, NodeSettings},
    revocation_freshness::RevocationFreshness,
};
use portolan_keys::{Keys, PasswordHasher, SigningKeys, Verifier};
use portolan_mcp::{McpParts, McpState, PayloadForm, SessionDirectory, TenantLedger};
use portolan_model::{Clock, resource::Site};
use portolan_net::{
    egress::Egress,
    health::{Check, Dependency},
    layers::AllowedHosts,
    txt::TxtRecords,
};
use portolan_site::{
    config::{AuthConfig, Calls, ConsoleLimits, DemoApi, InUse},
    identity_providers::SignInWith,
    live_sessions::LiveSessions,
    mail::Mailer,
    oauth_parts::OAuthParts,
    state::{AuthParts, AuthState},
    throttle::{Throttle, tries::Tries},
};
use portolan_storage::{
    Needs, SchemaState, Store,
    platform::recorder::{RecordWriter, Recorder},
};

use portolan_webhooks::worker::WebhookWorker;
use tokio::sync::Notify;

use crate::{
    asked_nodes::AskedNodes,
    attaching,
    clock_watch::ClockWatch,
    janitor,
    lifecycle::Lifecycle,
    node_store::{self, NodeStore},
    revocation_feed::RevocationFeed,
    settings::{PublicUrl, Role, Settings},
    usage_folds,
};

/// Interval between rounds of key rotation and purging.
const MAINTENANCE: Duration = Duration::from_secs(3600);
/// Interval between checks of a wrong clock, while such a round waits for it.
const CLOCK: Duration = Duration::from_secs(5);

/// What both services share.
#[derive(Debug)]
pub(crate) struct Wiring {
    pub(crate) store: Store,
    clock: Clock,
    /// Whether that clock is right, as of the last look.
    pub(crate) watch: ClockWatch,
    keys: Keys,
    egress: Egress,
    site: Site,
    verifier: Verifier,
    revocations: Revocations,
    /// Set when the nodes can be asked.
    in_use: InUse,
    calls: Calls,
    /// Set when the nodes can be asked for sessions.
    live_sessions: LiveSessions,
    /// Where tries at signing in are counted.
    tries: Tries,
    /// Told by the feed.
    keys_were_read: Arc<Notify>,
    recorder: Recorder,
    /// Until it runs.
    record_writer: Mutex<Option<RecordWriter>>,
}

/// The MCP endpoints.
#[derive(Debug)]
pub(crate) struct McpService {
    /// To be served, and to be drained.
    pub(crate) state: McpState,
    pub(crate) redis: Option<Dependency>,
    /// The same node.
    pub(crate) node: Node,
}

impl Wiring {
    /// Connects, and refuses a database that cannot be used safely.
    pub(crate) async fn open(settings: &Settings, role: Role) -> Result<Self> {
        let keys = settings.keys.keys()?;
        let store = open_store(settings, role).await?;
        let (recorder, record_writer) = Recorder::new(store.clone());
        let clock = Clock::system();
        let watch = ClockWatch::new(store.clone(), clock.clone());
        // Check the clock before any work that depends on it. The result is logged, and reported by
        // the readiness probe.
        let _ = watch.look().await;
        Ok(Self {
            recorder,
            record_writer: Mutex::new(Some(record_writer)),
            store,
            clock,
            watch,
            keys,
            egress: Egress::new(settings.egress.clone())?,
            verifier: Verifier::new(settings.origin()),
            site: Site::new(&settings.origin())?,
            revocations: Revocations::default(),
            in_use: InUse::default(),
            calls: Calls::default(),
            live_sessions: LiveSessions::default(),
            tries: if settings.cluster.redis_url.is_some() {
                Tries::shared()
            } else {
                Tries::alone()
            },
            keys_were_read: Arc::default(),
        })
    }

    /// What nodes of both kinds need to take the connections of attached servers.
    pub(crate) fn attaching(&self) -> attaching::Parts {
        attaching::Parts {
            store: self.store.clone(),
            egress: self.egress.clone(),
            clock: self.clock.clone(),
        }
    }

    /// Begins to write down how clients connect.
    pub(crate) fn record(&self, life: &Lifecycle) {
        let writer = self
            .record_writer
            .lock()
            .ok()
            .and_then(|mut writer| writer.take());
        if let Some(writer) = writer {
            let drained = life.drained.clone();
            life.tasks
                .spawn(async move { writer.run(drained.cancelled()).await });
        }
    }

    /// Starts to receive keys and revocations. Call it before anything is served, so that
    /// revocations are known then.
    pub(crate) async fn listen(&self, life: &Lifecycle) -> Result<()> {
        let feed = RevocationFeed {
            store: self.store.clone(),
            clock: self.clock.clone(),
            verifier: self.verifier.clone(),
            revocations: self.revocations.clone(),
            keys_were_read: Arc::clone(&self.keys_were_read),
        };
        feed.start(life)
            .await
            .context("cannot read verification keys and revocations")
    }

    /// The authorization service and the console's API, ready to answer: signing keys are loaded.
    pub(crate) async fn auth(
        &self,
        settings: &Settings,
        shows_mail: bool,
        demo_api: Option<DemoApi>,
        life: &Lifecycle,
    ) -> Result<Router> {
        let mut oauth = OAuthParts::new(
            settings.oauth.clone(),
            self.site.clone(),
            self.verifier.clone(),
            self.revocations.clone(),
        );
        oauth.recorder = self.recorder.clone();
        let wake = Arc::new(Notify::new());
        let mailer = match settings.mail.delivery {
            _ if shows_mail => Mailer::Page,
            Delivery::Log => Mailer::Log,
            Delivery::Queue => Mailer::Queue,
            Delivery::Smtp => Mailer::Smtp(Arc::clone(&wake)),
        };
        let breached = settings.sign_in.breached()?;
        if !breached.is_empty() {
            tracing::info!(passwords = breached.len(), "list of stolen passwords read");
        }
        let state = AuthState::new(AuthParts {
            store: self.store.clone(),
            clock: self.clock.clone(),
            keys: self.keys.clone(),
            signing_keys: SigningKeys::default(),
            passwords: PasswordHasher::new(settings.keys.password_cost, cores())?,
            egress: self.egress.clone(),
            site: portolan_site::config::Site::new(settings.process.public_url.url()),
            throttle: Throttle::new(shows_mail, &self.tries),
            mailer,
            config: AuthConfig {
                loopback_is_unthrottled: shows_mail,
                demo_api,
                breached,
                sign_in_with: SignInWith::new(settings.sign_in.login_providers.0.clone()),
                domain_records: TxtRecords::default(),
                live_sessions: self.live_sessions.clone(),
                limits: ConsoleLimits {
                    platform: settings.mcp.platform_limits(),
                    in_use: self.in_use.clone(),
                    calls: self.calls.clone(),
                },
            },
            oauth,
            later: life.tasks.clone(),
        });
        if !shows_mail {
            deliver_mail(settings, &state, wake, life)?;
        }
        self.maintain(&state, life).await?;
        self.reload_keys(&state, life);
        life.tasks.spawn(portolan_upstream_sync::sync::keep_in_sync(
            state.clone(),
            life.stopping.clone(),
        ));
        life.tasks.spawn(usage_folds::run(
            self.store.clone(),
            self.clock.clone(),
            self.watch.clone(),
            settings.metering.clone(),
            life.stopping.clone(),
        ));
        life.tasks
            .spawn(WebhookWorker::new(state.clone()).run(life.stopping.clone()));
        life.tasks.spawn(janitor::run(
            self.store.clone(),
            self.clock.clone(),
            self.watch.clone(),
            life.stopping.clone(),
        ));
        Ok(portolan_auth::router(&state))
    }

    /// Loads the signing keys, and starts the rounds of rotation and purging.
    async fn maintain(&self, state: &AuthState, life: &Lifecycle) -> Result<()> {
        // By a wrong clock keys would be made, and done away with, at a wrong time: those that are
        // there serve.
        let mut is_due = self.watch.look().await.is_err();
        let prepared = if is_due {
            portolan_oauth::jwks::reload(state).await
        } else {
            portolan_oauth::jwks::rotate(state).await
        };
        prepared.context("cannot prepare the signing keys")?;
        let (rotating, watch, stop) = (state.clone(), self.watch.clone(), life.stopping.clone());
        life.tasks.spawn(async move {
            loop {
                let pause = if is_due { CLOCK } else { MAINTENANCE };
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = tokio::time::sleep(pause) => {}
                }
                is_due = watch.look().await.is_err();
                if is_due {
                    continue;
                }
                portolan_oauth::maintenance::maintain(&rotating).await;
                if let Err(error) = portolan_accounts::domains::look_again(&rotating).await {
                    tracing::warn!("domains of workspaces: {:#}", anyhow::Error::from(error));
                }
            }
        });
        Ok(())
    }

    /// Reloads the signing keys whenever the feed reads news of them.
    fn reload_keys(&self, state: &AuthState, life: &Lifecycle) {
        let (reading, stop, news) = (
            state.clone(),
            life.drained.clone(),
            Arc::clone(&self.keys_were_read),
        );
        life.tasks.spawn(async move {
            loop {
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = news.notified() => {}
                }
                if let Err(error) = portolan_oauth::jwks::reload(&reading).await {
                    // The keys that were read last keep signing, because their times are known.
                    tracing::warn!("signing keys: {:#}", anyhow::Error::from(error));
                }
            }
        });
    }

    /// The MCP endpoints, ready to answer: verification keys and revocations are loaded, and the
    /// other nodes know this one.
    pub(crate) async fn mcp(
        &self,
        settings: &Settings,
        role: Role,
        life: &Lifecycle,
    ) -> Result<McpService> {
        let NodeStore { store, is_redis } =
            node_store::open(settings, role, &self.clock, life).await?;
        let freshness = RevocationFreshness::new(self.revocations.clone(), Arc::clone(&store));
        life.tasks.spawn(freshness.enforce(
            Duration::from_secs(settings.cluster.revocation_max_staleness_secs),
            life.drained.clone(),
        ));
        let form = if is_redis && settings.cluster.redis_seal {
            PayloadForm::Sealed
        } else {
            PayloadForm::Plain
        };
        let payloads = portolan_mcp::payloads(self.keys.clone(), form);
        // Its tasks end when the drain is over and not at the signal: running calls need it.
        let node = Node::start(
            Arc::clone(&store),
            NodeSettings::new(&settings.cluster),
            payloads,
            &life.tasks,
            life.drained.clone(),
        )
        .await
        .context("cannot join the other nodes (redis_url)")?;
        let own = node.clone();
        let state = McpState::new(McpParts {
            site: self.site.clone(),
            store: self.store.clone(),
            keys: self.keys.clone(),
            verifier: self.verifier.clone(),
            revocations: self.revocations.clone(),
            egress: self.egress.clone(),
            node,
            clock: self.clock.clone(),
            recorder: self.recorder.clone(),
            tracker: life.calls.clone(),
            stopping: life.stopping.clone(),
            telling: life.telling.clone(),
            drained: life.drained.clone(),
            last: life.tasks.clone(),
            metering: settings.metering.clone(),
            config: settings.mcp.clone(),
        });
        state.start();
        count_calls(&self.calls, TenantLedger::new(Arc::clone(&store)));
        self.tries.set(Ledger::new(Arc::clone(&store)));
        let directory = self.session_directory(Arc::clone(&store));
        self.live_sessions.set(Box::new(directory));
        let asked = state.clone();
        self.in_use.set(Box::new(move |tenant| {
            let state = asked.clone();
            Box::pin(async move { state.in_use(tenant).await })
        }));
        Ok(McpService {
            state,
            node: own,
            redis: is_redis.then(|| Dependency {
                name: "redis",
                needed: false,
                check: node_store::check(store),
            }),
        })
    }

    /// Connects the console of a process without MCP endpoints to the store that nodes share, as
    /// soon as it is available. No start-up step waits for it. The nodes learn from the store that
    /// this process receives revocations.
    pub(crate) fn look_on(&self, settings: &Settings, life: &Lifecycle) {
        let (in_use, calls) = (self.in_use.clone(), self.calls.clone());
        let tries = self.tries.clone();
        let (live_sessions, keys) = (self.live_sessions.clone(), self.keys.clone());
        let clock = self.clock.clone();
        let looking = node_store::onlooker(settings, life);
        let (revocations, stop) = (self.revocations.clone(), life.drained.clone());
        life.tasks.spawn(async move {
            let Some(store) = looking.await else { return };
            let freshness = RevocationFreshness::new(revocations, Arc::clone(&store));
            tries.set(Ledger::new(Arc::clone(&store)));
            let directory = SessionDirectory::new(Arc::clone(&store), keys, clock);
            live_sessions.set(Box::new(AskedNodes(directory)));
            let ledger = TenantLedger::new(store);
            count_calls(&calls, ledger.clone());
            in_use.set(Box::new(move |tenant| {
                let ledger = ledger.clone();
                Box::pin(async move { ledger.in_use(tenant).await })
            }));
            freshness.report(stop).await;
        });
    }

    fn session_directory(&self, store: Arc<dyn portolan_cluster::store::Store>) -> AskedNodes {
        AskedNodes(SessionDirectory::new(
            store,
            self.keys.clone(),
            self.clock.clone(),
        ))
    }

    /// For the readiness probe. A node with MCP endpoints serves from memory what it knows
    /// (STREAM-17.4), and the console tells by itself what does not work; without them nothing
    /// works.
    pub(crate) fn database(&self, role: Role) -> Dependency {
        Dependency {
            name: "database",
            needed: !role.has_mcp(),
            check: self.database_check(),
        }
    }

    fn database_check(&self) -> Check {
        let store = self.store.clone();
        Arc::new(move || {
            let store = store.clone();
            Box::pin(async move {
                if store.is_healthy().await {
                    Ok(())
                } else {
                    Err("the database does not answer".to_owned())
                }
            })
        })
    }
}

/// Starts the delivery of mail, if there is a mail server.
fn deliver_mail(
    settings: &Settings,
    state: &AuthState,
    wake: Arc<Notify>,
    life: &Lifecycle,
) -> Result<()> {
    let own_host = settings.process.public_url.host();
    if let Some(smtp) = settings.mail.smtp(own_host)? {
        let stop = life.stopping.clone();
        life.tasks
            .spawn(outbox::run(state.clone(), smtp, wake, stop));
    } else if settings.mail.delivery == Delivery::Queue {
        tracing::warn!(
            "mail is only queued: nobody can sign up until it is delivered (setting mail)"
        );
    }
    Ok(())
}

/// The console's own calls count among those of their workspace.
fn count_calls(calls: &Calls, ledger: TenantLedger) {
    calls.set(Box::new(move |tenant, most| {
        let ledger = ledger.clone();
        Box::pin(async move { ledger.take_call(tenant, most).await })
    }));
}

async fn open_store(settings: &Settings, role: Role) -> Result<Store> {
    let store = Store::connect(&settings.storage)
        .await
        .context("cannot connect to the database (database_url)")?;
    match portolan_storage::schema_state(&store).await? {
        SchemaState::Current => {}
        SchemaState::Behind(missing) => {
            bail!("{missing} migrations are missing: run `portolan migrate` first")
        }
        SchemaState::Ahead(unknown) => {
            tracing::warn!(unknown, "the schema was migrated by a newer release")
        }
    }
    let faults = store.role_faults(role.needs()).await?;
    if !faults.is_empty() {
        bail!(
            "this database role would not keep tenants apart: {}",
            faults.join("; ")
        );
    }
    if role.needs() == Needs::Nodes && store.may_become_core().await? {
        tracing::warn!(
            "the login role of this process may read all tenants and people, which MCP endpoints need not: give it a login in portolan_mcp alone"
        );
    }
    Ok(store)
}

/// The names of this place: one. That of `portolan dev` has what a person types for this machine
/// too, and its pages are at the one that passkeys and cookies are bound to.
pub(crate) fn hosts(public_url: &PublicUrl, is_dev: bool) -> AllowedHosts {
    let hosts = AllowedHosts::new([public_url.authority()]);
    if !is_dev {
        return hosts;
    }
    let port = public_url
        .url()
        .port()
        .map_or_else(String::new, |port| format!(":{port}"));
    let own = public_url.authority();
    let others = ["localhost", "127.0.0.1", "[::1]"]
        .map(|name| format!("{name}{port}"))
        .into_iter()
        .filter(|other| *other != own);
    hosts.also(others, public_url.origin())
}

/// The demo API, as the console proposes it.
pub(crate) fn demo_api(address: std::net::SocketAddr) -> DemoApi {
    DemoApi {
        openapi_url: format!("http://{address}/openapi.json"),
        base_url: format!("http://{address}"),
        title: "Harbour".to_owned(),
        api_key: portolan_demo_api::API_KEY.to_owned(),
        mcp_url: format!("http://{address}/mcp"),
    }
}

pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}
