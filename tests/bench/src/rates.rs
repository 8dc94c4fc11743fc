//! Rates and waits that the load table of the test plan names (`testing.md` L1, L2, L13, S12): at 64 connections, through the balancers, and
//! beside a workspace that wants far more than it may have. What is absolute here is what the plan promises for two cores.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use portolan_tests::proxy::Balancer;
use tokio::time::sleep;

use crate::{
    Arguments,
    figure::{Bar, Figure, Spread, Table, each, number},
    load::{Load, permille},
    paced::Paced,
    process::Spent,
    scene::{Nodes, Place},
    streams,
};

/// Kept connections of rates.
const CONNECTIONS: usize = 64;
/// Kept connections where two ways are compared.
const COMPARED: usize = 32;
/// Connections of the workspace that keeps to its limits.
const QUIET: usize = 4;
/// What the noisy one may have in a minute, and wants in a second: fifty times as much.
const MAY: u32 = 600;
const WANTS: u32 = 500;
/// After this it has used up a minute's worth.
const BURST: Duration = Duration::from_secs(3);
/// Streams that are opened over either way.
const OPENED: usize = 25;

fn millis(time: Duration) -> f64 {
    1e3 * time.as_secs_f64()
}

/// What the plan asks for at 64 connections.
struct Promise {
    what: &'static str,
    /// Microseconds of the node's processor time.
    micros: f64,
    a_second: f64,
    /// Milliseconds.
    p99: f64,
}

/// L1 and L2.
pub(crate) async fn at_many_connections(
    arguments: &Arguments,
    nodes: &Nodes,
    table: &mut Table,
) -> Result<()> {
    let access = &nodes.access;
    let sessions = access.sessions(CONNECTIONS).await?;
    let in_sessions = sessions.iter().map(|session| access.call(session));
    let all = [
        (
            Promise {
                what: "2026-07-28",
                micros: 80.0,
                a_second: 10_000.0,
                p99: 20.0,
            },
            vec![access.stateless_call(); CONNECTIONS],
        ),
        (
            Promise {
                what: "session in Redis",
                micros: 110.0,
                a_second: 6_000.0,
                p99: 30.0,
            },
            in_sessions.collect(),
        ),
    ];
    for (promise, requests) in all {
        let load = Load::new(access.address, requests, "NOBGO");
        promised(arguments, nodes, &promise, load, table).await?;
    }
    Ok(())
}

async fn promised(
    arguments: &Arguments,
    nodes: &Nodes,
    promise: &Promise,
    mut load: Load,
    table: &mut Table,
) -> Result<()> {
    let process = nodes.process_id(Place::Calls)?;
    load.run(arguments.calls).await?;
    let (mut rates, mut micros, mut times) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..arguments.rounds {
        let (before, begun) = (Spent::by(process)?, Instant::now());
        let made = load.run(arguments.calls).await?;
        rates.push(number(made.len()) / begun.elapsed().as_secs_f64());
        micros.push(1e6 * each(Spent::by(process)?.since(&before), made.len()));
        times.extend(made);
    }
    let (rate, micros) = (Spread::of(&mut rates), Spread::of(&mut micros));
    let what = format!("tools/call, {}, {CONNECTIONS} connections", promise.what);
    table.add(Figure {
        what: format!("{what}: of the node"),
        seen: micros.median,
        unit: "µs",
        bar: Bar::AtMost(promise.micros),
        note: format!(
            "{}; its API is asked, which the plan's tool is not",
            micros.text()
        ),
    });
    table.add(Figure {
        what: format!("{what}: a second"),
        seen: rate.median,
        unit: "",
        bar: Bar::AtLeast(promise.a_second),
        note: format!(
            "{}; with API, Redis and generator on the same cores",
            rate.text()
        ),
    });
    table.add(Figure {
        what: format!("{what}: p99"),
        seen: millis(permille(&mut times, 990)?),
        unit: "ms",
        bar: Bar::AtMost(promise.p99),
        note: format!(
            "of {} calls, p50 {:.2} ms",
            times.len(),
            millis(permille(&mut times, 500)?)
        ),
    });
    Ok(())
}

/// S12: what others notice of a workspace at fifty times its limit.
pub(crate) async fn beside_noise(
    arguments: &Arguments,
    nodes: &Nodes,
    api: SocketAddr,
    table: &mut Table,
) -> Result<()> {
    let noisy = nodes.limited(api, MAY).await?;
    let access = &nodes.access;
    let mut quiet = Load::new(
        access.address,
        vec![access.stateless_call(); QUIET],
        "NOBGO",
    );
    let calls = arguments.calls;
    quiet.run(calls).await?;
    let noise = || {
        let requests = vec![noisy.stateless_call(); COMPARED];
        Paced::start(noisy.address, requests, WANTS, "NOBGO")
    };
    // What may be asked for at once, to begin with.
    let first = noise();
    sleep(BURST).await;
    drop(first);
    let (mut ratios, mut admitted, mut refused) = (Vec::new(), 0, 0);
    let p99 = async |quiet: &mut Load| permille(&mut quiet.run(calls).await?, 990);
    for round in 0..arguments.rounds {
        let before = match round % 2 {
            0 => Some(p99(&mut quiet).await?),
            _ => None,
        };
        let noise = noise();
        let meanwhile = p99(&mut quiet).await?;
        let answers = noise.answers();
        drop(noise);
        admitted += answers.0;
        refused += answers.1;
        let alone = match before {
            Some(before) => before,
            None => p99(&mut quiet).await?,
        };
        ratios.push(meanwhile.as_secs_f64() / alone.as_secs_f64());
    }
    ensure!(
        refused > admitted,
        "{admitted} let in and {refused} refused is no noise"
    );
    let spread = Spread::of(&mut ratios);
    table.add(Figure {
        what: "p99 of others beside a workspace at 50 times its limit : alone".to_owned(),
        seen: spread.median,
        unit: "",
        bar: Bar::AtMost(1.5),
        note: format!(
            "{}; {admitted} let in, {refused} refused, no error of the others",
            spread.text()
        ),
    });
    Ok(())
}

/// L13: the same calls, and first events, through each balancer and past it.
pub(crate) async fn through_balancers(
    arguments: &Arguments,
    nodes: &mut Nodes,
    table: &mut Table,
) -> Result<()> {
    for balancer in [Balancer::HaProxy, Balancer::Nginx] {
        let proxy = &mut nodes.cluster.proxy;
        if proxy.balancer() != balancer {
            proxy.stop()?;
            proxy.start_again(balancer).await?;
        }
        through(arguments, nodes, balancer, table).await?;
    }
    Ok(())
}

async fn through(
    arguments: &Arguments,
    nodes: &Nodes,
    balancer: Balancer,
    table: &mut Table,
) -> Result<()> {
    let access = &nodes.access;
    let front = nodes.balancer()?;
    let sessions = access.sessions(COMPARED).await?;
    let requests: Vec<_> = sessions
        .iter()
        .map(|session| access.call(session))
        .collect();
    let mut direct = Load::new(access.address, requests.clone(), "NOBGO");
    let mut over = Load::new(front, requests, "NOBGO");
    for load in [&mut direct, &mut over] {
        load.run(arguments.calls).await?;
    }
    let mut ratios = Vec::new();
    for round in 0..arguments.rounds {
        let mut took = [Duration::ZERO; 2];
        for turn in [round % 2, (round + 1) % 2] {
            let load = [&mut direct, &mut over].into_iter().nth(turn);
            let begun = Instant::now();
            if let Some(load) = load {
                load.run(arguments.calls).await?;
            }
            took[turn] = begun.elapsed();
        }
        ratios.push(took[0].as_secs_f64() / took[1].as_secs_f64());
    }
    let spread = Spread::of(&mut ratios);
    table.add(Figure {
        what: format!("tools/call a second through {balancer:?} : direct"),
        seen: spread.median,
        unit: "",
        bar: Bar::AtLeast(0.7),
        note: format!("{}; the balancer works on the same cores", spread.text()),
    });

    let clients = nodes.clients(2, Place::Calls).await?;
    let mut waits = [Vec::new(), Vec::new()];
    for client in &clients {
        let sessions = client.sessions(OPENED).await?;
        for session in &sessions {
            for (address, waits) in [client.address, front].into_iter().zip(&mut waits) {
                let begun = Instant::now();
                streams::break_off(address, &client.get(session, None)).await?;
                waits.push(begun.elapsed());
            }
        }
    }
    let [direct, over] = &mut waits;
    let (direct, over) = (permille(direct, 500)?, permille(over, 500)?);
    table.add(Figure {
        what: format!("first event through {balancer:?}, behind the direct one"),
        seen: millis(over.saturating_sub(direct)),
        unit: "ms",
        bar: Bar::AtMost(20.0),
        note: format!(
            "{} streams, p50 {:.2} after {:.2} ms",
            2 * OPENED,
            millis(over),
            millis(direct)
        ),
    });
    Ok(())
}
