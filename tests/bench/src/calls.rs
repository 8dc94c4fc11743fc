//! The cost of a call, in memory and over Redis: ratios of calls per CPU-second against bare
//! servers, turn about in one run.

use std::{net::SocketAddr, time::Instant};

use anyhow::Result;

use crate::{
    Arguments, bare,
    figure::{Bar, Figure, Spread, Table},
    load::{Load, permille},
    process::{self, Server, Spent},
    scene::{Alone, Nodes, Place},
};

/// Kept connections of the load generator.
const CONNECTIONS: usize = 32;
/// Many connections.
const MANY: usize = 256;

/// A server, and the load that it gets.
type Loaded = (u32, Load);

/// With the session in the memory of the one process.
pub(crate) async fn alone(
    arguments: &Arguments,
    api: SocketAddr,
    proxy: &Server,
    table: &mut Table,
) -> Result<()> {
    let alone = Alone::new(api).await?;
    let list = alone.tools_list_answer().await?;
    let fixed = Server::start(&["fixed", &alone.keep("tools-list.json", &list)?])?;
    let access = &alone.access;
    let sessions = access.sessions(CONNECTIONS).await?;
    let process = alone.process_id();
    let ours = |requests, expected| (process, Load::new(access.address, requests, expected));
    let calls = sessions.iter().map(|session| access.call(session));
    let call = Comparison {
        what: "tools/call, session in memory : bare one-hop proxy",
        bar: 0.45,
        ours: ours(calls.collect(), "NOBGO"),
        bare: bare_load(proxy, CONNECTIONS, "NOBGO"),
        beside: Beside::Children(process),
        calls: arguments.calls,
    };
    call.run(arguments.rounds, table).await?;
    let lists = sessions.iter().map(|session| access.list(session));
    let list = Comparison {
        what: "tools/list, session in memory : bare fixed answer",
        bar: 0.6,
        ours: ours(lists.collect(), "getPort"),
        bare: bare_load(&fixed, CONNECTIONS, "getPort"),
        beside: Beside::Children(process),
        calls: arguments.calls * 2,
    };
    list.run(arguments.rounds, table).await
}

/// Through a third-party MCP server.
pub(crate) async fn through_upstream(arguments: &Arguments, table: &mut Table) -> Result<()> {
    let server = Server::start(&["mcp"])?;
    let reverse = Server::start(&["reverse", &server.address.to_string()])?;
    let alone = Alone::before(server.address).await?;
    let access = &alone.access;
    let sessions = access.sessions(CONNECTIONS).await?;
    let process = alone.process_id();
    let calls = sessions.iter().map(|session| access.call(session));
    let call = Comparison {
        what: "tools/call through an MCP server : bare reverse proxy to it",
        bar: 0.45,
        ours: (process, Load::new(access.address, calls.collect(), "NOBGO")),
        bare: bare_load(&reverse, CONNECTIONS, "NOBGO"),
        beside: Beside::Children(process),
        calls: arguments.calls,
    };
    call.run(arguments.rounds, table).await
}

/// With the session in Redis, and the era that has none.
pub(crate) async fn on_nodes(
    arguments: &Arguments,
    nodes: &Nodes,
    proxy: &Server,
    table: &mut Table,
) -> Result<()> {
    let access = &nodes.access;
    let sessions = access.sessions(MANY).await?;
    let process = nodes.process_id(Place::Calls)?;
    let ours = |requests| (process, Load::new(access.address, requests, "NOBGO"));
    let requests: Vec<Vec<u8>> = sessions
        .iter()
        .map(|session| access.call(session))
        .collect();
    let redis = nodes.cluster.redis.id()?;
    let call = Comparison {
        what: "tools/call, session in Redis : bare one-hop proxy",
        bar: 0.45,
        ours: ours(requests[..CONNECTIONS].to_vec()),
        bare: bare_load(proxy, CONNECTIONS, "NOBGO"),
        beside: Beside::Process(redis),
        calls: arguments.calls,
    };
    call.run(arguments.rounds, table).await?;
    let stateless = Comparison {
        what: "tools/call, 2026-07-28 : bare one-hop proxy",
        bar: 0.55,
        ours: ours(vec![access.stateless_call(); CONNECTIONS]),
        bare: bare_load(proxy, CONNECTIONS, "NOBGO"),
        beside: Beside::Process(redis),
        calls: arguments.calls,
    };
    stateless.run(arguments.rounds, table).await?;
    let few = ours(requests[..CONNECTIONS].to_vec());
    many(arguments, few, ours(requests.clone()), table).await?;
    let one = ours(requests[..1].to_vec());
    delay(arguments, one, bare_load(proxy, 1, "NOBGO"), table).await
}

fn bare_load(server: &Server, connections: usize, expected: &'static str) -> Loaded {
    let requests = vec![bare::request(server.address); connections];
    (server.id(), Load::new(server.address, requests, expected))
}

/// Processes beside a server that work for its calls.
enum Beside {
    /// Everything that this process started: the database.
    Children(u32),
    /// This one.
    Process(u32),
}

impl Beside {
    fn cpu_seconds(&self) -> Result<f64> {
        match self {
            Self::Children(of) => process::cpu_seconds_of_children(*of),
            Self::Process(id) => process::cpu_seconds(*id),
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Children(_) => "its database",
            Self::Process(_) => "Redis",
        }
    }
}

/// Two servers under the same load, turn about.
struct Comparison {
    what: &'static str,
    bar: f64,
    ours: Loaded,
    bare: Loaded,
    beside: Beside,
    calls: usize,
}

impl Comparison {
    async fn run(mut self, rounds: usize, table: &mut Table) -> Result<()> {
        for (_, load) in [&mut self.ours, &mut self.bare] {
            load.run(self.calls).await?;
        }
        let mut ratios = Vec::with_capacity(rounds);
        let mut spent = 0.0;
        let before = self.beside.cpu_seconds()?;
        for round in 0..rounds {
            // Turn about, so that neither always comes first on a machine that becomes faster or slower.
            let (ours, bare) = if round % 2 == 0 {
                let ours = charged(&mut self.ours, self.calls).await?;
                (ours, charged(&mut self.bare, self.calls).await?)
            } else {
                let bare = charged(&mut self.bare, self.calls).await?;
                (charged(&mut self.ours, self.calls).await?, bare)
            };
            spent += ours;
            ratios.push(bare / ours);
        }
        let beside = self.beside.cpu_seconds()? - before;
        let spread = Spread::of(&mut ratios);
        table.add(Figure {
            what: self.what.to_owned(),
            seen: spread.median,
            unit: "",
            bar: Bar::AtLeast(self.bar),
            note: format!(
                "{}; {} took {:.2} of its time beside it{}",
                spread.text(),
                self.beside.name(),
                beside / spent,
                streamed(&self.ours)
            ),
        });
        Ok(())
    }
}

/// The cost of many connections.
async fn many(
    arguments: &Arguments,
    mut few: Loaded,
    mut many: Loaded,
    table: &mut Table,
) -> Result<()> {
    for (_, load) in [&mut few, &mut many] {
        load.run(arguments.calls).await?;
    }
    let (mut ratios, mut rates) = (Vec::new(), Vec::new());
    for _ in 0..arguments.rounds {
        let begun = Instant::now();
        let with_few = charged(&mut few, arguments.calls).await?;
        let took = begun.elapsed();
        let begun = Instant::now();
        let with_many = charged(&mut many, arguments.calls).await?;
        rates.push(took.as_secs_f64() / begun.elapsed().as_secs_f64());
        ratios.push(with_few / with_many);
    }
    let (per_cpu, rate) = (Spread::of(&mut ratios), Spread::of(&mut rates));
    table.add(Figure {
        what: format!("tools/call at {MANY} connections : at {CONNECTIONS}"),
        seen: per_cpu.median.min(rate.median),
        unit: "",
        bar: Bar::AtLeast(0.6),
        note: format!(
            "the lower of calls per CPU-second {:.2} ({}) and calls per second {:.2} ({}){}",
            per_cpu.median,
            per_cpu.text(),
            rate.median,
            rate.text(),
            streamed(&many)
        ),
    });
    Ok(())
}

/// The added latency of a call without other load.
async fn delay(
    arguments: &Arguments,
    mut ours: Loaded,
    mut bare: Loaded,
    table: &mut Table,
) -> Result<()> {
    let share = arguments.calls / 10;
    for (_, load) in [&mut ours, &mut bare] {
        load.run(share).await?;
    }
    let (mut times, mut bare_times) = (Vec::new(), Vec::new());
    for _ in 0..arguments.rounds {
        times.extend(ours.1.run(share).await?);
        bare_times.extend(bare.1.run(share).await?);
    }
    let millis =
        |times: &mut [_], rank| Ok::<_, anyhow::Error>(1e3 * permille(times, rank)?.as_secs_f64());
    let (p50, p99) = (millis(&mut times, 500)?, millis(&mut times, 990)?);
    let (bare_p50, bare_p99) = (millis(&mut bare_times, 500)?, millis(&mut bare_times, 990)?);
    table.add(Figure {
        what: "added to a tools/call at one connection, p50".to_owned(),
        seen: p50 - bare_p50,
        unit: "ms",
        bar: Bar::AtMost(0.35),
        note: format!("p50 {p50:.3} after {bare_p50:.3}; p99 {p99:.3} after {bare_p99:.3}"),
    });
    Ok(())
}

/// How many answers of a load came as event streams, if any did.
fn streamed((_, load): &Loaded) -> String {
    match load.streamed() {
        0 => String::new(),
        streamed => format!("; {streamed} answers came as event streams"),
    }
}

/// Processor seconds that the server spent on the calls.
async fn charged((process, load): &mut Loaded, calls: usize) -> Result<f64> {
    let before = Spent::by(*process)?;
    load.run(calls).await?;
    Ok(Spent::by(*process)?.since(&before))
}
