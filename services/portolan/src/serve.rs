//! Builds the roles out of the wiring, runs them until a signal, and stops them in order.

use std::{
    convert::Infallible, future::pending, net::SocketAddr, pin::pin, sync::Arc, time::Duration,
};

use anyhow::Result;
use axum::Router;
use portolan_net::{
    health::Health,
    layers::Front,
    listen::{self, Bound, Limits, Sharing},
    shortcut::Shortcut,
};
use portolan_telemetry::{LogConfig, Metrics, RequestLog, Traces, TracesConfig};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tower::Layer;

use crate::{
    attaching, console,
    lifecycle::{DrainTimes, Lifecycle, Signals},
    open_files,
    output::say,
    settings::{LogFormat, Role, Settings},
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
    let _logs = portolan_telemetry::start(&LogConfig {
        filter: settings.log_filter.clone(),
        format: match settings.log_format {
            LogFormat::Text => portolan_telemetry::LogFormat::Text,
            LogFormat::Json => portolan_telemetry::LogFormat::Json,
        },
    })?;
    open_files::raise();
    let metrics = Metrics::start()?;
    let listeners = match extras.listeners {
        Some(listeners) => listeners,
        None => Listeners::bind(settings.listen, settings.admin_listen)?,
    };
    let traces = traces(settings, role)?;
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
        Limits::default(),
        life.admin(),
    ));
    let demo_api = extras
        .demo
        .as_ref()
        .map(|demo| wiring::demo_api(demo.address));
    if let Some(demo) = extras.demo {
        life.tasks.spawn(listen::serve(
            demo.listener,
            portolan_demo_api::router().with_state(()),
            Limits::default(),
            life.beside(),
        ));
    }

    wiring.record(&life);
    let mut router = Router::new();
    if role.has_auth() {
        router = router
            .merge(
                wiring
                    .auth(settings, extras.shows_mail, demo_api, &life)
                    .await?,
            )
            .merge(console::router());
        if !role.has_mcp() {
            wiring.look_on(settings, &life);
            router = router.merge(attaching::beside_console(wiring.attaching(), &life)?);
        }
    }
    // After the keys were made, before anything is served.
    wiring.listen(&life).await?;
    let mut mcp = None;
    if role.has_mcp() {
        let service = wiring.mcp(settings, role, &life).await?;
        router = router
            .merge(portolan_mcp::router(service.state.clone()))
            .merge(attaching::beside_endpoints(
                wiring.attaching(),
                role,
                &service.node,
                &life,
            ));
        if let Some(redis) = service.redis {
            health.stands_on(redis);
        }
        mcp = Some(service.state);
    }
    let proxies = wiring::proxies(settings)?;
    let front = Front::new(
        wiring::hosts(settings, extras.shows_mail),
        proxies.clone(),
        Some(Arc::new(RequestLog::new())),
    )
    .paused_by(wiring.watch.pause());
    let limits = Limits {
        connections: settings.listen_max_connections,
        sharing: Sharing {
            per_address: settings.listen_max_connections_per_address,
            reserve: settings.listen_max_connections / 10,
            proxies: proxies.clone(),
        },
        ..Limits::default()
    };
    let router = router.layer(front.clone()).with_state(());
    look(&health).await;
    life.tasks
        .spawn(watch(health.clone(), life.stopped.clone()));
    // Who sees that it is ready may stop it at once.
    let stop = pin!(life.wait_for(Signals::listen()?));
    let opened = async {
        wiring.watch.is_right().await;
        let listener = listeners.public.listen()?;
        match &mcp {
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
    let times = DrainTimes {
        accept: Duration::from_secs(settings.drain_accept_secs),
        calls: Duration::from_secs(settings.drain_secs),
    };
    let drained = life
        .drain(
            times,
            // Without the writer of the call log, which runs while a call does.
            || life.calls.len().saturating_sub(1),
            async {
                if let Some(mcp) = &mcp {
                    mcp.drain().await;
                }
            },
        )
        .await;
    if let Some(traces) = traces {
        traces.stop().await;
    }
    if tokio::time::timeout(CLOSE, wiring.store.close())
        .await
        .is_err()
    {
        tracing::warn!("the connections to the database did not end in time");
    }
    tracing::info!(
        requests_cut = drained.cut,
        drain_seconds = drained.took.as_secs_f64(),
        "stopped"
    );
    Ok(())
}

/// Only calls are traced, and only nodes with MCP endpoints have them.
fn traces(settings: &Settings, role: Role) -> Result<Option<Traces>> {
    let Some(endpoint) = settings.otlp_endpoint.as_ref().filter(|_| role.has_mcp()) else {
        return Ok(None);
    };
    let config = TracesConfig {
        endpoint: endpoint.to_string(),
        ratio: settings.trace_sample_ratio,
        asked_per_second: settings.trace_asked_per_second,
    };
    Ok(Some(Traces::start(&config)?))
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
