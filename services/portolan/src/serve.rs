//! Builds the roles out of the rooms, runs them until a signal, and stops them in order.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use anyhow::Result;
use axum::Router;
use portolan_net::{
    health::Health,
    layers::{AllowedHosts, Front},
    listen::{self, Limits, Shutdown},
};
use portolan_telemetry::{LogConfig, Metrics, RequestLog};
use tokio::net::TcpListener;

use crate::{
    console,
    lifecycle::Lifecycle,
    rooms::{self, Rooms},
    say,
    settings::{LogFormat, Role, Settings},
};

/// The two listeners, bound before anything else starts.
#[derive(Debug)]
pub struct Listeners {
    /// For people and clients.
    pub public: TcpListener,
    /// For probes and Prometheus.
    pub admin: TcpListener,
}

impl Listeners {
    /// Binds both, or says which address is taken and what to do. Call inside a runtime.
    pub fn bind(public: SocketAddr, admin: SocketAddr) -> Result<Self> {
        Ok(Self {
            public: listen::bind(public, "PORTOLAN_LISTEN (--listen)")?,
            admin: listen::bind(admin, "PORTOLAN_ADMIN_LISTEN (--admin-listen)")?,
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
        let listener = listen::bind(address, "--demo-listen")?;
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
    let metrics = Metrics::start()?;
    let listeners = match extras.listeners {
        Some(listeners) => listeners,
        None => Listeners::bind(settings.listen, settings.admin_listen)?,
    };
    let rooms = Rooms::open(settings).await?;
    let life = Lifecycle::default();
    let health = Health::new(vec![("database", rooms.database_check())], {
        let metrics = metrics.clone();
        Arc::new(move || metrics.render())
    });
    let shutdown = Shutdown {
        stop: life.stopping.clone(),
        tasks: life.tasks.clone(),
        grace: Duration::from_secs(settings.drain_secs),
    };
    life.tasks.spawn(metrics.upkeep(life.stopping.clone()));
    // The second listener stays until the process ends: a draining node still tells that it drains.
    let admin_stop = Shutdown {
        stop: life.stopped.clone(),
        tasks: life.tasks.clone(),
        grace: Duration::from_secs(1),
    };
    life.tasks.spawn(listen::serve(
        listeners.admin,
        health.router(),
        Limits::default(),
        admin_stop,
    ));
    let demo_api = extras
        .demo
        .as_ref()
        .map(|demo| rooms::demo_api(demo.address));
    if let Some(demo) = extras.demo {
        life.tasks.spawn(listen::serve(
            demo.listener,
            portolan_demo_api::router(),
            Limits::default(),
            shutdown.clone(),
        ));
    }

    let mut router = Router::new();
    if role.has_auth() {
        router = router
            .merge(
                rooms
                    .auth(settings, extras.shows_mail, demo_api, &life)
                    .await?,
            )
            .merge(console::router());
    }
    if role.has_mcp() {
        router = router.merge(rooms.mcp(settings, &life).await?);
    }
    let front = Front::new(
        AllowedHosts::new([rooms::authority(settings)]),
        rooms::proxies(settings)?,
        Some(Arc::new(RequestLog::new())),
    );
    let public = life.tasks.spawn(listen::serve(
        listeners.public,
        router.layer(front),
        Limits::default(),
        shutdown,
    ));

    health.set_ready(true);
    tracing::info!(origin = settings.origin(), ?role, "ready");
    if extras.shows_mail {
        say(&format!("Portolan is ready at {}", settings.origin()));
    }
    life.wait_for_signal().await?;
    health.set_ready(false);
    let cut = public.await.unwrap_or(0);
    life.stopped.cancel();
    life.tasks.close();
    if tokio::time::timeout(
        Duration::from_secs(settings.drain_secs.max(5)),
        life.tasks.wait(),
    )
    .await
    .is_err()
    {
        tracing::warn!(tasks = life.tasks.len(), "some tasks did not end in time");
    }
    rooms.store.close().await;
    tracing::info!(connections_cut = cut, "stopped");
    Ok(())
}
