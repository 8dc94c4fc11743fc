//! Rates and waits that the load table of the test plan names (TEST-L1, TEST-L2, TEST-L13,
//! TEST-S12): at 64 connections, through the balancers, and beside a workspace far over its limit.
//! The absolute bars are those that the plan promises for two cores.

use std::{
    net::SocketAddr,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use futures_util::future::try_join_all;
use portolan_tests::proxy::Balancer;
use tokio::time::sleep;

use crate::{
    Arguments, access,
    figure::{Bar, Figure, Spread, Table, each, number},
    load::{Load, permille},
    paced::Paced,
    process::{self, Spent},
    scene::{Nodes, Place},
    streams,
};

/// Kept connections of rates.
const CONNECTIONS: usize = 64;
/// Kept connections where two ways are compared.
const COMPARED: usize = 32;
/// Connections of the workspace that keeps to its limits.
const QUIET: usize = 4;
/// The limit of the noisy one in a minute, and its calls in a second: fifty times as much.
const MAY: u32 = 600;
const WANTS: u32 = 500;
/// Bytes that each of its calls brings.
const EACH_BYTES: usize = 16 * 1024;
/// After this it has used up a minute's worth.
const BURST: Duration = Duration::from_secs(3);
/// Streams that are opened over either way.
const OPENED: usize = 25;

fn millis(time: Duration) -> f64 {
    1e3 * time.as_secs_f64()
}

/// The bars of the plan at 64 connections.
struct Promise {
    what: &'static str,
    /// Microseconds of the node's processor time.
    micros: f64,
    a_second: f64,
    /// Milliseconds.
    p99: f64,
}

/// TEST-L1 and TEST-L2.
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

/// TEST-S12: what others notice of a workspace at fifty times its limit.
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
    let mut large = access::port_call();
    large["padding"] = "x".repeat(EACH_BYTES).into();
    let large = noisy.stateless("getPort", large);
    let noise = || {
        let requests = vec![large.clone(); COMPARED];
        Paced::start(noisy.address, requests, WANTS, "NOBGO")
    };
    // The initial burst that is admitted at once.
    let first = noise();
    sleep(BURST).await;
    drop(first);
    let (mut alone, mut beside) = (Vec::new(), Vec::new());
    let (mut admitted, mut refused) = (0, 0);
    for _ in 0..arguments.rounds {
        alone.extend(quiet.run(calls).await?);
        let noise = noise();
        beside.extend(quiet.run(calls).await?);
        let answers = noise.answers();
        admitted += answers.0;
        refused += answers.1;
    }
    ensure!(
        refused > admitted,
        "{admitted} let in and {refused} refused is no noise"
    );
    let (p99, p99_alone) = (permille(&mut beside, 990)?, permille(&mut alone, 990)?);
    table.add(Figure {
        what: "p99 of others beside a workspace at 50 times its limit : alone".to_owned(),
        seen: p99.as_secs_f64() / p99_alone.as_secs_f64(),
        unit: "",
        bar: Bar::AtMost(1.5),
        note: format!(
            "{:.2} after {:.2} ms, of {} calls each; {admitted} of 16 KB let in, {refused} refused, no error of the others",
            millis(p99),
            millis(p99_alone),
            alone.len()
        ),
    });
    Ok(())
}

/// TEST-L13: the same calls, and first events, through each balancer and past it.
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

/// Seconds that so many calls take, on new connections, shared out among these addresses. nginx closes a connection after a thousand requests.
async fn over(addresses: &[SocketAddr], requests: &[Vec<u8>], calls: usize) -> Result<f64> {
    let begun = Instant::now();
    let loads = addresses.iter().enumerate().map(|(number, address)| {
        let share = requests.iter().skip(number).step_by(addresses.len());
        let share: Vec<_> = share.cloned().collect();
        let calls = calls * share.len() / requests.len();
        let mut load = Load::new(*address, share, "NOBGO");
        async move { load.run(calls).await.map(|times| times.len()) }
    });
    let made: usize = try_join_all(loads).await?.into_iter().sum();
    Ok(each(begun.elapsed().as_secs_f64(), made))
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
    let requests = sessions.iter().map(|session| access.call(session));
    let requests: Vec<_> = requests.collect();
    // The balancer has them take turns, and so do we.
    let mut addresses = Vec::new();
    for place in [Place::Calls, Place::Sessions, Place::Streams] {
        addresses.push(nodes.address(place)?);
    }
    let direct = async || over(&addresses, &requests, arguments.calls).await;
    let through = async || over(&[front], &requests, arguments.calls).await;
    direct().await?;
    through().await?;
    let balancer_id = nodes.cluster.proxy.id()?;
    let works = || {
        let children = process::cpu_seconds_of_children(balancer_id)?;
        anyhow::Ok(process::cpu_seconds(balancer_id)? + children)
    };
    let cores = number(thread::available_parallelism()?.get());
    let (mut by_the_clock, mut worked) = (Vec::new(), 0.0);
    let (mut alone, mut behind) = (0.0, 0.0);
    for round in 0..arguments.rounds {
        let turns = if round % 2 == 0 {
            [false, true]
        } else {
            [true, false]
        };
        let mut took = [0.0; 2];
        for is_behind in turns {
            let before = works()?;
            took[usize::from(is_behind)] = if is_behind {
                through().await?
            } else {
                direct().await?
            };
            worked += if is_behind { works()? - before } else { 0.0 };
        }
        by_the_clock.push(took[0] / took[1]);
        alone += took[0];
        behind += took[1];
    }
    // The balancer's share of the cores is subtracted: it would not take it with cores of its own.
    let worked = each(worked, arguments.calls) / cores;
    table.add(Figure {
        what: format!("tools/call a second through {balancer:?} : direct"),
        seen: alone / (behind - worked),
        unit: "",
        bar: Bar::AtLeast(0.7),
        note: format!(
            "of the cores that the balancer leaves, {:.2} of them; with it on the same two {:.2} ({})",
            1.0 - worked / behind,
            alone / behind,
            Spread::of(&mut by_the_clock).text()
        ),
    });
    first_event_through(nodes, front, balancer, table).await
}

/// The wait for the first event of a stream behind a balancer, beside the direct one.
async fn first_event_through(
    nodes: &Nodes,
    front: SocketAddr,
    balancer: Balancer,
    table: &mut Table,
) -> Result<()> {
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
