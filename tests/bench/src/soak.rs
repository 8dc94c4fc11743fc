//! An hour of use (TEST-L12): clients come, call, listen, break off and go, at a pace that a node
//! bears easily. Resources that grow all the same are not given back.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use portolan_tests::fleet;
use serde_json::json;
use tokio::{
    task::JoinSet,
    time::{MissedTickBehavior, interval, sleep},
};

use crate::{
    Arguments,
    access::Access,
    figure::{Bar, Figure, Table, number},
    load::Connection,
    process,
    scene::{Nodes, Place},
    streams,
};

/// Visits begin so often.
const EACH: Duration = Duration::from_millis(100);
/// Clients that take turns: one may open 60 streams a minute.
const CLIENTS: usize = 25;
/// Where they go.
const PLACES: [Place; 3] = [Place::Calls, Place::Sessions, Place::Streams];
/// After this others come: a token lives for an hour.
const STAY: Duration = Duration::from_secs(1_800);
/// One visit in so many has a call that is answered by events.
const LONG_EACH: usize = 4;
/// The answer to every short call.
const WORD: &str = "still here";
/// Time between two measures of memory.
const LOOK: Duration = Duration::from_secs(60);
/// The first part is for what every node builds up once: caches, pools, the arenas of its allocator.
const WARM: f64 = 1.0 / 6.0;
/// Ended streams are forgotten by then: they are kept for a while for clients that resume.
const FORGOTTEN: Duration = Duration::from_secs(420);
const MIB: f64 = 1024.0 * 1024.0;

/// A call without a session; then in, three calls, one that is answered by events, a stream, and out.
async fn visit(access: Access, number: usize) -> Result<()> {
    let mut connection = Connection::open(access.address).await?;
    let say = json!({ "name": "echo_message", "arguments": { "message": WORD } });
    let asked = access.stateless("echo_message", say.clone());
    connection.call(&asked).await?.check(WORD)?;
    let session = access.sessions(1).await?.swap_remove(0);
    for id in 1..=3 {
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": say });
        let asked = access.message(&session, &message);
        connection.call(&asked).await?.check(WORD)?;
    }
    if number.is_multiple_of(LONG_EACH) {
        let work = json!({ "call": format!("soak-{number}"), "millis": 1_200 });
        let message = fleet::call(4, "do_work", work, Some("told"));
        let asked = access.message(&session, &message);
        connection.call(&asked).await?.check("structuredContent")?;
    }
    streams::break_off(access.address, &access.get(&session, None)).await?;
    connection.call(&access.delete(&session)).await?.check("")?;
    Ok(())
}

/// The measures of one node at one moment.
#[derive(Debug, Clone, Copy)]
struct Look {
    /// Minutes since the beginning.
    at: f64,
    memory: f64,
}

/// Growth in ten minutes, by the straight line that lies nearest to all looks.
fn growth(looks: &[Look]) -> f64 {
    let count = number(looks.len());
    let mean = |of: fn(&Look) -> f64| looks.iter().map(of).sum::<f64>() / count;
    let (at, memory) = (mean(|look| look.at), mean(|look| look.memory));
    let (mut along, mut across) = (0.0, 0.0);
    for look in looks {
        along += (look.at - at) * (look.memory - memory);
        across += (look.at - at).powi(2);
    }
    10.0 * along / across
}

/// Keys of Redis but the tombstones of sessions, which stay for as long as their ids would be good (ADR 7), and each client's list of its sessions,
/// which is kept for a day; channels.
async fn of_redis(nodes: &Nodes) -> Result<(usize, usize)> {
    let redis = &nodes.cluster.redis;
    let count = "local n = 0 for _, key in ipairs(redis.call('KEYS', '*')) do \
                 if not (string.match(key, '}:s$') or string.find(key, '}:s:', 1, true) and redis.call('GETRANGE', key, 0, 0) == 'E') then n = n + 1 end end return n";
    let keys = redis.command(&["EVAL", count, "0"]).await?.parse()?;
    let count = "return #redis.call('PUBSUB', 'CHANNELS') + #redis.call('PUBSUB', 'SHARDCHANNELS')";
    let channels = redis.command(&["EVAL", count, "0"]).await?.parse()?;
    Ok((keys, channels))
}

/// Clients with new tokens, shared out among the nodes.
async fn let_in(nodes: &Nodes) -> Result<Vec<Access>> {
    let all = nodes.clients(CLIENTS, Place::Calls).await?;
    let places = PLACES.into_iter().cycle();
    all.into_iter()
        .zip(places)
        .map(|(access, place)| Ok(access.at(nodes.address(place)?)))
        .collect()
}

/// MiB that the node grew in ten minutes which grew most, and its first and last memory, after the
/// minutes in which it was warming up.
fn most_grown(looks: &mut [Vec<Look>], warm: f64) -> Result<(f64, String)> {
    let mut worst: Option<(f64, String)> = None;
    for looks in looks {
        looks.retain(|look| look.at > warm);
        let (first, last) = looks.first().zip(looks.last()).context("two looks")?;
        let text = format!("{:.0} to {:.0} MiB", first.memory / MIB, last.memory / MIB);
        let grown = growth(looks) / MIB;
        if worst.as_ref().is_none_or(|(most, _)| grown > *most) {
            worst = Some((grown, text));
        }
    }
    worst.context("a node")
}

/// Uses the nodes for so long, and measures the remaining resources.
pub(crate) async fn soak(arguments: &Arguments, nodes: &Nodes, table: &mut Table) -> Result<()> {
    let mut clients = let_in(nodes).await?;
    let processes = PLACES.map(|place| nodes.process_id(place));
    let processes: Vec<u32> = processes.into_iter().collect::<Result<_>>()?;
    let files = || -> Result<Vec<usize>> {
        let all = processes.iter().map(|id| process::open_files(*id));
        all.collect()
    };
    let (files_before, redis_before) = (files()?, of_redis(nodes).await?);

    let mut looks: Vec<Vec<Look>> = vec![Vec::new(); processes.len()];
    let (begun, length) = (Instant::now(), LOOK * arguments.minutes);
    let (mut next_look, mut next_clients) = (LOOK, STAY);
    let (mut visits, mut begin) = (JoinSet::new(), interval(EACH));
    begin.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut made = 0;
    while begun.elapsed() < length {
        begin.tick().await;
        visits.spawn(visit(clients[made % CLIENTS].clone(), made));
        made += 1;
        while let Some(done) = visits.try_join_next() {
            done?.with_context(|| format!("a visit, after {:?}", begun.elapsed()))?;
        }
        if begun.elapsed() >= next_clients {
            next_clients += STAY;
            clients = let_in(nodes).await?;
        }
        if begun.elapsed() >= next_look {
            next_look += LOOK;
            let at = begun.elapsed().as_secs_f64() / 60.0;
            for (id, looks) in processes.iter().zip(&mut looks) {
                let memory = process::memory_now(*id)?;
                looks.push(Look { at, memory });
            }
        }
    }
    while let Some(done) = visits.join_next().await {
        done??;
    }
    sleep(FORGOTTEN).await;
    let (files_after, redis_after) = (files()?, of_redis(nodes).await?);

    let warm = WARM * f64::from(arguments.minutes);
    let (grown, text) = most_grown(&mut looks, warm)?;
    ensure!(grown.is_finite(), "too few looks");
    table.add(Figure {
        what: format!(
            "memory of a node in {} minutes, each ten",
            arguments.minutes
        ),
        seen: grown,
        unit: "MiB",
        bar: Bar::AtMost(1.0),
        note: format!(
            "{made} visits to three nodes, all good; the one that grew most went from {text}"
        ),
    });
    let more = |after: &[usize], before: &[usize]| {
        let all = after.iter().zip(before);
        all.map(|(after, before)| number(*after) / number(*before))
            .fold(0.0, f64::max)
    };
    table.add(Figure {
        what: "files and sockets of a node afterwards : before".to_owned(),
        seen: more(&files_after, &files_before),
        unit: "",
        bar: Bar::AtMost(1.1),
        note: format!("{files_before:?}, then {files_after:?}"),
    });
    table.add(Figure {
        what: "keys of Redis but tombstones and lists of clients, and its channels, afterwards : before".to_owned(),
        seen: more(
            &[redis_after.0, redis_after.1],
            &[redis_before.0, redis_before.1],
        ),
        unit: "",
        bar: Bar::AtMost(1.1),
        note: format!("{redis_before:?}, then {redis_after:?}"),
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_the_slope_of_what_was_seen() {
        let looks = |memory: fn(f64) -> f64| -> Vec<Look> {
            let at = (10..60).map(f64::from);
            at.map(|at| Look {
                at,
                memory: memory(at),
            })
            .collect()
        };
        let grown = growth(&looks(|at| 100.0 + 0.3 * at));
        assert!((grown - 3.0).abs() < 1e-9, "{grown}");
        assert!(growth(&looks(|_| 5.0)).abs() < 1e-9);
    }
}
