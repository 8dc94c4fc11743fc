//! The effects of a fault after its end (TEST-C13): a load of so many calls a second through the
//! balancer, and one fault after the other. It measures the seconds until as many calls are
//! answered as before, and the resources of the nodes a minute after the last fault.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tokio::time::sleep;

use crate::{
    figure::{Bar, Figure, Table, number},
    paced::Paced,
    process,
    scene::{Nodes, Place},
};

/// Calls a second: far less than the nodes bear, so that what is missing is missing because of the fault.
const A_SECOND: u32 = 200;
/// Connections of clients, half of them in sessions.
const CLIENTS: usize = 16;
/// How long the rate before a fault is taken, and how long the fault lasts.
const BEFORE: Duration = Duration::from_secs(4);
const LASTS: Duration = Duration::from_secs(3);
/// After this time the rate counts as never restored.
const PATIENCE: Duration = Duration::from_secs(30);
/// For the rest of a fault to be gone.
const SETTLED: Duration = Duration::from_secs(60);
const SECOND: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy)]
enum Fault {
    KilledNode,
    HeldNode,
    StoppedRedis,
    EmptiedRedis,
    StoppedPostgres,
    RestartedBalancer,
}

impl Fault {
    const ALL: [Self; 6] = [
        Self::KilledNode,
        Self::HeldNode,
        Self::StoppedRedis,
        Self::EmptiedRedis,
        Self::StoppedPostgres,
        Self::RestartedBalancer,
    ];

    /// Does it, waits, and undoes it.
    async fn strike(self, nodes: &mut Nodes) -> Result<()> {
        let cluster = &mut nodes.cluster;
        let victim = Place::Sessions as usize;
        match self {
            Self::KilledNode => {
                cluster.nodes[victim].kill()?;
                sleep(LASTS).await;
                cluster.nodes[victim].start()?;
                cluster.nodes[victim].ready().await?;
            }
            Self::HeldNode => {
                cluster.nodes[victim].pause()?;
                sleep(LASTS).await;
                cluster.nodes[victim].go_on()?;
            }
            Self::StoppedRedis => {
                cluster.redis.stop()?;
                sleep(LASTS).await;
                cluster.redis.start_again().await?;
            }
            Self::EmptiedRedis => cluster.redis.empty().await?,
            Self::StoppedPostgres => {
                cluster.postgres.stop()?;
                sleep(LASTS).await;
                cluster.postgres.start_again().await?;
            }
            Self::RestartedBalancer => {
                // The same kind: another one keeps another number of connections.
                let same = cluster.proxy.balancer();
                cluster.proxy.stop()?;
                sleep(LASTS).await;
                cluster.proxy.start_again(same).await?;
            }
        }
        Ok(())
    }
}

/// Bytes, files and sockets of the two nodes that live through all of it.
fn held(nodes: &Nodes) -> Result<[(f64, usize); 2]> {
    let of = |place| {
        let id = nodes.process_id(place)?;
        anyhow::Ok((process::memory_now(id)?, process::open_files(id)?))
    };
    Ok([of(Place::Calls)?, of(Place::Streams)?])
}

/// One fault. Answers the seconds from its end until as many are answered as before.
async fn strike(nodes: &mut Nodes, load: &Paced, fault: Fault) -> Result<f64> {
    let begun = Instant::now();
    sleep(BEFORE + SECOND).await;
    let former = (0..BEFORE.as_secs())
        .map(|second| load.good_within_a_second_of(begun + Duration::from_secs(second)))
        .sum::<usize>();
    let former = number(former) / BEFORE.as_secs_f64();
    ensure!(
        former > 0.9 * f64::from(A_SECOND),
        "{former} calls a second before {fault:?}"
    );
    fault.strike(nodes).await?;
    let over = Instant::now();
    let mut from = over;
    let back = loop {
        sleep((from + SECOND).saturating_duration_since(Instant::now())).await;
        if number(load.good_within_a_second_of(from)) >= 0.9 * former {
            break from - over;
        }
        ensure!(
            over.elapsed() < PATIENCE,
            "{fault:?}: the rate does not come back"
        );
        from += SECOND / 4;
    };
    Ok(back.as_secs_f64())
}

/// Breaks one thing after the other under load.
pub(crate) async fn measure(nodes: &mut Nodes, table: &mut Table) -> Result<()> {
    let access = nodes.access.at(nodes.balancer()?);
    let sessions = access.sessions(CLIENTS / 2).await?;
    let in_sessions = sessions.iter().map(|session| access.call(session));
    let requests = in_sessions.chain(vec![access.stateless_call(); CLIENTS / 2]);
    let load = Paced::start(access.address, requests.collect(), A_SECOND, "NOBGO");
    let (mut longest, mut all) = (0.0_f64, Vec::new());
    // Twice: what a node builds up once, after its first outage as well, is no rest of the second one.
    let [before, after] = {
        let mut rounds = Vec::new();
        for _ in 0..2 {
            for fault in Fault::ALL {
                let back = strike(nodes, &load, fault).await?;
                all.push(format!("{fault:?} {back:.2}"));
                longest = longest.max(back);
            }
            sleep(SETTLED).await;
            rounds.push(held(nodes)?);
        }
        <[_; 2]>::try_from(rounds).map_err(|_| anyhow::anyhow!("two rounds"))?
    };
    table.add(Figure {
        what: format!("after a fault, until {A_SECOND} calls a second are answered again"),
        seen: longest,
        unit: "s",
        bar: Bar::AtMost(10.0),
        note: format!(
            "nine in ten of those before; the longest of {}",
            all.join(", ")
        ),
    });
    let pairs: Vec<_> = before.into_iter().zip(after).collect();
    let most = |of: fn(&(f64, usize)) -> f64| {
        let ratios = pairs.iter().map(|(before, after)| of(after) / of(before));
        ratios.reduce(f64::max).context("a node")
    };
    for (what, seen) in [
        ("memory", most(|held| held.0)?),
        ("files and sockets", most(|held| number(held.1))?),
    ] {
        table.add(Figure {
            what: format!("{what} of a node a minute after the last fault : after the round before"),
            seen,
            unit: "",
            bar: Bar::AtMost(1.1),
            note: "after a second round of all faults, under the same load, the higher of the two nodes that live through all of it"
                .to_owned(),
        });
    }
    Ok(())
}
