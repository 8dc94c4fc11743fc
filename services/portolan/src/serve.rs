//! Builds the roles out of the wiring, runs them until a signal, and stops them in order.

use std::{
    convert::Infallible, future::pending, net::SocketAddr, pin::pin, sync::Arc, time::Duration,
};

use anyhow::Result;
use axum::Router;
use portolan_mcp::McpState;
use portolan_net::{
    health::{Dependency, Health},
    layers::Front,
    listen::{self, Bound, ListenLimits},
    shortcut::Shortcut,
};
use portolan_telemetry::{Metrics, RequestLog, Traces};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tower::Layer;

use crate::{
    attaching, console,
    lifecycle::{Lifecycle, Signals},
    open_files,
    output::say,
    settings::{Role, Settings},
    wiring::{self, Wiring},
};

/// Interval between checks of database and Redis.
const LOOK: Duration = Duration::from_secs(2);
/// Closing the connections to the database takes no longer.
const CLOSE: Duration = Duration::from_millis(500);

/// The two listeners, bound before anything else starts.
#[derive(Debug)]
pub struct Listeners {
    /// For people and clients, who are refused until they can be served.
    pub public: Bound,
    /// For probes and Prometheus.
    pub admin: TcpListener,
}

impl Listeners {
    /// Binds both, or says which address is taken and what to do. Call inside a runtime.
    pub fn bind(public: SocketAddr, admin: SocketAddr) -> Result<Self> {
        Ok(Self {
            public: listen::bind(public, "PORTOLAN_LISTEN (--listen)")?,
            admin: listen::bind(admin, "PORTOLAN_ADMIN_LISTEN (--admin-listen)")?.listen()?,
        })
    }
}

/// The demo API of `portolan dev`.
#[derive(Debug)]
pub struct DemoApi {
    listener: TcpListener,
    address: SocketAddr,
}

impl DemoApi {
    /// Binds its address. Call inside a runtime.
    pub fn bind(address: SocketAddr) -> Result<Self> {
        let listener = listen::bind(address, "--demo-listen")?.listen()?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    fn serve(self, life: &Lifecycle) {
        life.tasks.spawn(listen::serve(
            self.listener,
            portolan_demo_api::router().with_state(()),
            ListenLimits::default(),
            life.beside(),
        ));
    }
}

/// What `portolan dev` adds to `portolan serve`.
#[derive(Debug, Default)]
pub struct Extras {
    /// Listeners that are bound already.
    pub listeners: Option<Listeners>,
    /// The demo API to run beside.
    pub demo: Option<DemoApi>,
    /// Is outgoing mail shown on a page?
    pub shows_mail: bool,
}

/// Runs the role until a signal, then drains.
pub async fn run(settings: &Settings, role: Role, extras: Extras) -> Result<()> {
    let _logs = portolan_telemetry::start(&settings.logs)?;
    open_files::raise();
    let metrics = Metrics::start()?;
    let listeners = match extras.listeners {
        Some(listeners) => listeners,
        None => Listeners::bind(settings.listen.listen, settings.listen.admin_listen)?,
    };
    // Only calls are traced, and only nodes with MCP endpoints have them.
    let traces = if role.has_mcp() {
        Traces::start(&settings.traces)?
    } else {
        None
    };
    let wiring = Wiring::open(settings, role).await?;
    let life = Lifecycle::default();
    let health = Health::new({
        let metrics = metrics.clone();
        Arc::new(move || metrics.render())
    });
    health.stands_on(wiring.watch.dependency());
    health.stands_on(wiring.database(role));
    life.tasks.spawn(metrics.upkeep(life.drained.clone()));
    life.tasks.spawn(listen::serve(
        listeners.admin,
        health.router().with_state(()),
        ListenLimits::default(),
        life.admin(),
    ));
    let demo_api = extras
        .demo
        .as_ref()
        .map(|demo| wiring::demo_api(demo.address));
    if let Some(demo) = extras.demo {
        demo.serve(&life);
    }

    wiring.record(&life);
    let shows_mail = extras.shows_mail;
    let routes = Routes::build(&wiring, settings, role, shows_mail, demo_api, &life).await?;
    let Routes { router, redis, mcp } = routes;
    if let Some(redis) = redis {
        health.stands_on(redis);
    }
    let front = front(&wiring, settings, shows_mail);
    let limits = settings.listen.limits();
    let router = router.layer(front.clone()).with_state(());
    look(&health).await;
    life.tasks
        .spawn(watch(health.clone(), life.stopped.clone()));
    // Who sees that it is ready may stop it at once.
    let stop = pin!(life.wait_for(Signals::listen()?));
    let opened = async {
        wiring.watch.is_right().await;
        let listener = listeners.public.listen()?;
        serve_public(listener, mcp.as_ref(), &front, router, limits, &life);
        health.set_ready(true);
        tracing::info!(origin = settings.origin(), ?role, "ready");
        if extras.shows_mail {
            say(&format!("Portolan is ready at {}", settings.origin()));
        }
        anyhow::Ok(pending::<Infallible>().await)
    };
    tokio::select! {
        biased;
        () = stop => {}
        // Fails only if another process took the address meanwhile.
        failed = opened => match failed? {},
    }
    health.set_ready(false);
    drain(&life, settings, mcp.as_ref(), traces, &wiring).await;
    Ok(())
}

/// Ends what runs, in order, and closes what it used.
async fn drain(
    life: &Lifecycle,
    settings: &Settings,
    mcp: Option<&McpState>,
    traces: Option<Traces>,
    wiring: &Wiring,
) {
    let drained = life
        .drain(
            settings.process.drain(),
            // Without the writer of the call log, which runs while a call does.
            || life.calls.len().saturating_sub(1),
            async {
                if let Some(mcp) = mcp {
                    mcp.drain().await;
                }
            },
        )
        .await;
    close(traces, wiring).await;
    tracing::info!(
        requests_cut = drained.cut,
        drain_seconds = drained.took.as_secs_f64(),
        "stopped"
    );
}

/// Routes of a role, with the parts that its readiness and stop need.
struct Routes {
    router: Router<()>,
    redis: Option<Dependency>,
    mcp: Option<McpState>,
}

impl Routes {
    async fn build(
        wiring: &Wiring,
        settings: &Settings,
        role: Role,
        shows_mail: bool,
        demo_api: Option<portolan_site::config::DemoApi>,
        life: &Lifecycle,
    ) -> Result<Self> {
        let mut router = Router::new();
        if role.has_auth() {
            router = router
                .merge(wiring.auth(settings, shows_mail, demo_api, life).await?)
                .merge(console::router());
            if !role.has_mcp() {
                wiring.look_on(settings, life);
                router = router.merge(attaching::beside_console(wiring.attaching(), life)?);
            }
        }
        // After the keys were made, before anything is served.
        wiring.listen(life).await?;
        let (mut mcp, mut redis) = (None, None);
        if role.has_mcp() {
            let service = wiring.mcp(settings, role, life).await?;
            router = router
                .merge(portolan_mcp::router(service.state.clone()))
                .merge(attaching::beside_endpoints(
                    wiring.attaching(),
                    role,
                    &service.node,
                    life,
                ));
            redis = service.redis;
            mcp = Some(service.state);
        }
        Ok(Self { router, redis, mcp })
    }
}

/// The layer in front of every route.
fn front(wiring: &Wiring, settings: &Settings, shows_mail: bool) -> Front {
    Front::new(
        wiring::hosts(&settings.process.public_url, shows_mail),
        settings.listen.proxies(),
        Some(Arc::new(RequestLog::new())),
    )
    .paused_by(wiring.watch.pause())
}

/// Serves people and clients. Requests of MCP endpoints do not pass through the router.
fn serve_public(
    listener: TcpListener,
    mcp: Option<&McpState>,
    front: &Front,
    router: Router,
    limits: ListenLimits,
    life: &Lifecycle,
) {
    match mcp {
        Some(mcp) => life.tasks.spawn(listen::serve(
            listener,
            Shortcut::new(
                portolan_mcp::is_endpoint,
                front.layer(portolan_mcp::endpoint(mcp.clone())),
                router,
            ),
            limits,
            life.public(),
        )),
        None => life
            .tasks
            .spawn(listen::serve(listener, router, limits, life.public())),
    };
}

/// Sends the last spans, and closes the connections to the database.
async fn close(traces: Option<Traces>, wiring: &Wiring) {
    if let Some(traces) = traces {
        traces.stop().await;
    }
    if tokio::time::timeout(CLOSE, wiring.store.close())
        .await
        .is_err()
    {
        tracing::warn!("the connections to the database did not end in time");
    }
}

/// Looks every now and then whether what we stand on is there.
async fn watch(health: Health, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(LOOK) => {}
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = look(&health) => {}
        }
    }
}

async fn look(health: &Health) {
    for (dependency, is_there) in health.look().await {
        metrics::gauge!("dependency_up", "dependency" => dependency).set(f64::from(is_there));
    }
}
