//! The cost of idle sessions and open streams; and the wait of clients that resume on a node that
//! has them.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use futures_util::future::try_join_all;
use portolan_tests::fleet;
use serde_json::json;

use crate::{
    access::Access,
    bare,
    figure::{Bar, Figure, Table, each},
    load::{Connection, permille},
    process::{self, Server},
    scene::{Nodes, Place},
    streams::{self, Streams},
};

/// Open streams of one client: a person with one client may open 60 a minute.
const STREAMS_OF_A_CLIENT: usize = 50;
/// Clients that come back, each to two calls.
const COMING_BACK: usize = 25;
/// How often each of them comes back to each of its calls.
const TIMES: usize = 20;
/// Events that they have missed.
const MISSED: usize = 10;
/// After this time a call has sent as many progress notifications: after the first second, and
/// every two seconds from then on. Its API may take 30 s.
const UNTIL_MISSED: Duration = Duration::from_secs(20);
/// Text that identifies an event.
const PROGRESS: &str = "\"notifications/progress\"";
/// Text that identifies a notification of a changed list.
const NEWS: &str = "notifications/tools/list_changed";
/// Connections that request lists.
const ASKING: usize = 64;
/// How long idle open streams are measured.
const IDLE: Duration = Duration::from_secs(10);
/// Changes that are notified, one after the other.
const CHANGES: usize = 3;

/// Sessions of the first round, and of the second. A node remembers all of them for people
/// (PLAY-8).
const REMEMBERED: usize = 10_000;

/// Idle sessions of a node.
pub(crate) struct IdleSessions {
    count: usize,
    since: Instant,
    access: Access,
    /// Bytes that the second round added.
    remembered: f64,
}

impl IdleSessions {
    /// A session is idle after a minute, and a node may take a while to notice.
    const IDLE: Duration = Duration::from_secs(80);

    /// Opens two rounds that a node remembers, and the first round of those beyond, which take the
    /// place of others. A first round is what a node needs for so many sessions at a time.
    pub(crate) async fn open(nodes: &Nodes, count: usize) -> Result<Self> {
        let mut idle = Self {
            count,
            since: Instant::now(),
            access: nodes.access.at(nodes.address(Place::Sessions)?),
            remembered: 0.0,
        };
        idle.round(REMEMBERED).await?;
        let first = idle.settle(nodes).await?;
        idle.round(REMEMBERED).await?;
        idle.remembered = idle.settle(nodes).await? - first;
        idle.round(count).await?;
        Ok(idle)
    }

    async fn round(&mut self, count: usize) -> Result<()> {
        self.access.sessions(count).await?;
        self.since = Instant::now();
        Ok(())
    }

    async fn settle(&self, nodes: &Nodes) -> Result<f64> {
        tokio::time::sleep(Self::IDLE.saturating_sub(self.since.elapsed())).await;
        process::memory(nodes.process_id(Place::Sessions)?).await
    }

    /// Waits until those are idle, opens as many again, and waits until these are idle too.
    pub(crate) async fn measure(mut self, nodes: &Nodes, table: &mut Table) -> Result<()> {
        let before = self.settle(nodes).await?;
        self.round(self.count).await?;
        let after = self.settle(nodes).await?;
        table.add(Figure {
            what: "an idle session that a node remembers".to_owned(),
            seen: each(self.remembered, REMEMBERED).round(),
            unit: "B",
            bar: Bar::AtMost(MOST_REMEMBERED),
            note: format!(
                "{REMEMBERED} sessions after as many: {:+.0} KiB; the node remembers 25,600",
                self.remembered / 1024.0
            ),
        });
        let grown = each(after - before, self.count);
        table.add(Figure {
            what: "an idle session beyond these".to_owned(),
            // A page more or less is the allocator's.
            seen: grown.max(0.0).round(),
            unit: "B",
            bar: Bar::AtMost(IDLE_NOISE),
            note: format!(
                "{} sessions, used once, idle for a minute: {:+.0} KiB on {:.0} MiB; up to {IDLE_NOISE} B each is noise",
                self.count,
                (after - before) / 1024.0,
                before / 1024.0 / 1024.0
            ),
        });
        Ok(())
    }
}

/// Bytes of a session that a node remembers, with its owner, its client and its last moment.
const MOST_REMEMBERED: f64 = 512.0;
/// Bytes a session by which two measures of the same process may differ.
const IDLE_NOISE: f64 = 16.0;

/// Clients that broke off in the middle of calls.
struct Broken {
    /// GET requests with the id of the first event of each call.
    requests: Vec<(Access, Vec<u8>)>,
    since: Instant,
    name: &'static str,
}

impl Broken {
    /// Starts calls on one node, and loses their answers after the first event.
    async fn begin(nodes: &Nodes, name: &'static str) -> Result<Self> {
        let clients = nodes.clients(COMING_BACK, Place::Calls).await?;
        let elsewhere = nodes.address(Place::Streams)?;
        let begun = clients.into_iter().map(|access| async move {
            let sessions = access.sessions(2).await?;
            let calls = sessions.iter().map(|session| {
                let access = &access;
                async move {
                    let arguments = json!({ "key": name });
                    let message = fleet::call(1, "held_order", arguments, Some("told"));
                    let request = access.message(session, &message);
                    let id = streams::break_off(access.address, &request).await?;
                    anyhow::Ok((access.at(elsewhere), access.get(session, Some(&id))))
                }
            });
            try_join_all(calls).await
        });
        let requests = try_join_all(begun).await?.concat();
        Ok(Self {
            requests,
            since: Instant::now(),
            name,
        })
    }

    /// Comes back to another node, one after the other, again and again.
    async fn come_back(self, nodes: &Nodes) -> Result<Vec<Duration>> {
        tokio::time::sleep(UNTIL_MISSED.saturating_sub(self.since.elapsed())).await;
        let mut times = Vec::with_capacity(self.requests.len() * TIMES);
        for round in 0..=TIMES {
            for (access, request) in &self.requests {
                let took = streams::come_back(access.address, request, PROGRESS, MISSED).await?;
                // The first round is for the node to get to know the sessions, as it would have.
                if round > 0 {
                    times.push(took);
                }
            }
        }
        nodes.fixture.held.release(self.name);
        Ok(times)
    }
}

fn waited(what: &str, bar: f64, times: &mut [Duration], table: &mut Table) -> Result<()> {
    let millis = |time: Duration| 1e3 * time.as_secs_f64();
    let (p50, p99) = (permille(times, 500)?, permille(times, 990)?);
    let most = permille(times, 1000)?;
    table.add(Figure {
        what: what.to_owned(),
        seen: millis(p99),
        unit: "ms",
        bar: Bar::AtMost(bar),
        note: format!(
            "{} times, connecting included: p50 {:.2} ms, longest {:.2} ms",
            times.len(),
            millis(p50),
            millis(most)
        ),
    });
    Ok(())
}

/// Coming back to another node when nothing else happens.
pub(crate) async fn resume(nodes: &Nodes, table: &mut Table) -> Result<()> {
    let broken = Broken::begin(nodes, "light").await?;
    let mut times = broken.come_back(nodes).await?;
    let what = format!("resume on another node, {MISSED} missed events, p99");
    waited(&what, 10.0, &mut times, table)
}

/// Refuses a number of streams that takes more open files than are allowed.
fn may_open(count: usize) -> Result<()> {
    let needed = count + 2_000;
    let most = process::most_files()?;
    ensure!(
        most >= needed,
        "{count} streams take {needed} open files, and only {most} are allowed: ulimit -n {needed}"
    );
    Ok(())
}

/// Open streams: their memory here and in Redis, news for all of them, and coming back to a node that has them. Answers their clients,
/// and the KiB of a bare one.
pub(crate) async fn open_streams(
    nodes: &Nodes,
    count: usize,
    table: &mut Table,
) -> Result<(Vec<Access>, f64)> {
    may_open(count)?;
    let bare = bare_streams(count).await?;

    let clients = nodes
        .clients(count.div_ceil(STREAMS_OF_A_CLIENT) + 1, Place::Streams)
        .await?;
    let address = nodes.address(Place::Streams)?;
    let process = nodes.process_id(Place::Streams)?;
    // For its stream, and for its list of tools.
    let requests = |access: Access, count: usize| async move {
        let sessions = access.sessions(count).await?;
        let requests = sessions.iter().map(|session| {
            let (stream, list) = (access.get(session, None), access.list(session));
            (stream, list)
        });
        anyhow::Ok(requests.unzip::<_, _, Vec<_>, Vec<_>>())
    };
    // The very first streams cost more than a further one.
    let (first, others) = clients.split_first().context("a client")?;
    let (warm, _) = requests(first.clone(), STREAMS_OF_A_CLIENT).await?;
    Streams::open(address, warm, NEWS).await?.close().await;

    let redis = &nodes.cluster.redis;
    let before = process::memory(process).await?;
    let redis_before = redis.info("used_memory").await?;
    let (mut asked, mut lists) = (Vec::with_capacity(count), Vec::with_capacity(count));
    for access in others {
        let share = STREAMS_OF_A_CLIENT.min(count - asked.len());
        let (streams, of_tools) = requests(access.clone(), share).await?;
        asked.extend(streams);
        lists.extend(of_tools);
    }
    let begun = Instant::now();
    let mut open = Streams::open(address, asked, NEWS).await?;
    let took = begun.elapsed();
    let after = process::memory(process).await?;
    let ours = each(after - before, count) / 1024.0;
    table.add(Figure {
        what: format!("an open stream, {count} on one node : bare axum's"),
        seen: ours / bare,
        unit: "",
        bar: Bar::AtMost(1.0),
        note: format!(
            "{ours:.1} KiB with its session, bare {bare:.1} KiB; opened within {:.1} s",
            took.as_secs_f64()
        ),
    });
    let redis_after = redis.info("used_memory").await?;
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let in_redis = each(redis_after.saturating_sub(redis_before) as f64, count);
    table.add(Figure {
        what: "an open stream with its session, in Redis".to_owned(),
        seen: in_redis.round(),
        unit: "B",
        bar: Bar::AtMost(1024.0),
        note: String::new(),
    });
    let (before, began) = (process::cpu_seconds(process)?, Instant::now());
    tokio::time::sleep(IDLE).await;
    table.add(Figure {
        what: format!("a core, for {count} open streams that are idle"),
        seen: (process::cpu_seconds(process)? - before) / began.elapsed().as_secs_f64(),
        unit: "",
        bar: Bar::AtMost(0.1),
        note: format!("in {IDLE:?}"),
    });
    news(nodes, &mut open, count, table).await?;
    crowd(address, &lists, table).await?;

    let broken = Broken::begin(nodes, "beside").await?;
    let (before, began) = (process::cpu_seconds(process)?, Instant::now());
    let mut times = broken.come_back(nodes).await?;
    let share = (process::cpu_seconds(process)? - before) / began.elapsed().as_secs_f64();
    open.check()?;
    let what = format!("the same with {count} streams open there, p99");
    waited(&what, 50.0, &mut times, table)?;
    println!(
        "{:60} of a core: {share:.3}",
        "  the node with the streams, meanwhile"
    );
    open.close().await;
    Ok((clients, bare))
}

/// How long a change of the tools takes to every stream.
async fn news(nodes: &Nodes, open: &mut Streams, count: usize, table: &mut Table) -> Result<()> {
    let (mut longest, mut all) = (Duration::ZERO, Vec::new());
    for change in 0..CHANGES {
        let begun = Instant::now();
        nodes.change_list(change % 2 == 1).await?;
        let answered = begun.elapsed();
        let took = open.all_heard().await?.saturating_duration_since(begun);
        all.push(format!(
            "{:.2} s (the console answered after {:.2} s)",
            took.as_secs_f64(),
            answered.as_secs_f64()
        ));
        longest = longest.max(took);
    }
    table.add(Figure {
        what: format!("list_changed, from the request to the last of {count}"),
        seen: longest.as_secs_f64(),
        unit: "s",
        bar: Bar::AtMost(2.0),
        note: format!("the longest of {}", all.join(", ")),
    });
    Ok(())
}

/// After a notification, every client requests the list.
async fn crowd(address: SocketAddr, lists: &[Vec<u8>], table: &mut Table) -> Result<()> {
    let begun = Instant::now();
    let asking = (0..ASKING).map(|number| async move {
        let mut connection = Connection::open(address).await?;
        for list in lists.iter().skip(number).step_by(ASKING) {
            connection.call(list).await?.check("tools")?;
        }
        anyhow::Ok(())
    });
    try_join_all(asking).await?;
    table.add(Figure {
        what: format!("then {} times tools/list", lists.len()),
        seen: begun.elapsed().as_secs_f64(),
        unit: "s",
        bar: Bar::AtMost(20.0),
        note: format!("on {ASKING} connections, one for each session"),
    });
    Ok(())
}

/// The cost of a listen stream of one of these clients, on a node that has none.
pub(crate) async fn listen_streams(
    nodes: &Nodes,
    (clients, bare): &(Vec<Access>, f64),
    count: usize,
    table: &mut Table,
) -> Result<()> {
    let address = nodes.address(Place::Sessions)?;
    let clients: Vec<_> = clients.iter().map(|access| access.at(address)).collect();
    let process = nodes.process_id(Place::Sessions)?;
    let (first, clients) = clients.split_first().context("a client")?;
    let warm = vec![first.listen(); STREAMS_OF_A_CLIENT];
    Streams::open(address, warm, NEWS).await?.close().await;
    let before = process::memory(process).await?;
    let all = clients
        .iter()
        .flat_map(|access| vec![access.listen(); STREAMS_OF_A_CLIENT]);
    let open = Streams::open(address, all.take(count).collect(), NEWS).await?;
    let after = process::memory(process).await?;
    open.close().await;
    let ours = each(after - before, count) / 1024.0;
    table.add(Figure {
        what: format!("a listen stream, {count} on one node : bare axum's"),
        seen: ours / bare,
        unit: "",
        bar: Bar::AtMost(1.0),
        note: format!("{ours:.1} KiB, bare {bare:.1} KiB"),
    });
    Ok(())
}

/// KiB of one open stream of the bare server.
async fn bare_streams(count: usize) -> Result<f64> {
    let server = Server::start(&["events"])?;
    let requests = |count| vec![bare::events_request(server.address); count];
    Streams::open(server.address, requests(STREAMS_OF_A_CLIENT), NEWS)
        .await?
        .close()
        .await;
    let before = process::memory(server.id()).await?;
    let open = Streams::open(server.address, requests(count), NEWS).await?;
    let after = process::memory(server.id()).await?;
    open.close().await;
    Ok(each(after - before, count) / 1024.0)
}
