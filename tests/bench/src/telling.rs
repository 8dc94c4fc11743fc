//! Calls with progress (TEST-L3, TEST-L8, TEST-L9), and the MCP server behind them, which sends as
//! many notifications of a size as a call requests. Each notification holds its time, so that a
//! client on another node knows its latency.

use std::{
    convert::Infallible,
    net::SocketAddr,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, Result, ensure};
use axum::{
    Router,
    body::Bytes,
    extract::Json,
    http::StatusCode,
    response::{
        IntoResponse, Response,
        sse::{Event, Sse},
    },
    routing::post,
};
use futures_util::{Stream, StreamExt, future::try_join_all, stream};
use portolan_tests::fleet;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{io::AsyncReadExt, net::TcpStream, time::sleep};

use crate::{
    Arguments,
    access::Access,
    figure::{Bar, Figure, Spread, Table, number},
    load::{Connection, find, permille},
    scene::{Nodes, Place},
    streams::{self, Begun},
};

/// The notifications that the tool sends.
#[derive(Debug, Clone, Copy, Deserialize, serde::Serialize)]
struct Telling {
    /// How often.
    count: u32,
    /// Milliseconds between two times.
    every_ms: u64,
    /// Bytes of each.
    bytes: usize,
    /// Milliseconds from the last one to the result.
    then_ms: u64,
}

/// The MCP server.
pub(crate) fn router() -> Router {
    Router::new().route("/mcp", post(answer))
}

async fn answer(body: Bytes) -> Response {
    let Ok(message) = serde_json::from_slice::<Value>(&body) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let id = &message["id"];
    if id.is_null() {
        return StatusCode::ACCEPTED.into_response();
    }
    let result = match message["method"].as_str() {
        Some("initialize") => json!({
            "protocolVersion": "2025-11-25", "capabilities": { "tools": {} }, "serverInfo": { "name": "teller", "version": "1" }
        }),
        Some("tools/list") => {
            let integer = json!({ "type": "integer" });
            let names = ["count", "every_ms", "bytes", "then_ms"];
            let properties: serde_json::Map<_, _> = names
                .iter()
                .map(|name| ((*name).to_owned(), integer.clone()))
                .collect();
            json!({ "tools": [{ "name": "tell", "inputSchema": { "type": "object", "properties": properties, "required": names } }] })
        }
        Some("tools/call") => {
            let params = &message["params"];
            return match serde_json::from_value(params["arguments"].clone()) {
                Ok(telling) => {
                    let token = params["_meta"]["progressToken"].clone();
                    Sse::new(events(telling, token, id.clone())).into_response()
                }
                Err(_) => StatusCode::BAD_REQUEST.into_response(),
            };
        }
        _ => {
            let error = json!({ "code": -32601, "message": "Method not found" });
            return Json(json!({ "jsonrpc": "2.0", "id": id, "error": error })).into_response();
        }
    };
    Json(json!({ "jsonrpc": "2.0", "id": id, "result": result })).into_response()
}

#[expect(
    clippy::disallowed_methods,
    reason = "two processes of one machine compare it, and nothing expires by it"
)]
fn nanos() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| u64::try_from(now.as_nanos()).unwrap_or(0))
}

/// Times are kept, so that who is late once is not late from then on.
fn events(
    telling: Telling,
    token: Value,
    id: Value,
) -> impl Stream<Item = Result<Event, Infallible>> {
    let begun = tokio::time::Instant::now();
    let every = Duration::from_millis(telling.every_ms);
    let told = stream::iter(1..=telling.count).then(move |turn| {
        let token = token.clone();
        async move {
            tokio::time::sleep_until(begun + every * turn).await;
            let text = format!("{} {}", nanos(), "x".repeat(telling.bytes));
            let params = json!({ "progressToken": token, "progress": turn, "total": telling.count, "message": text });
            json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params })
        }
    });
    let result = stream::once(async move {
        sleep(Duration::from_millis(telling.then_ms)).await;
        let content = json!([{ "type": "text", "text": DONE }]);
        json!({ "jsonrpc": "2.0", "id": id, "result": { "content": content } })
    });
    told.chain(result)
        .map(|message| Ok(Event::default().data(message.to_string())))
}

/// The last text of every call.
const DONE: &str = "all is told";
/// Text that identifies an event.
const PROGRESS: &str = "\"notifications/progress\"";
/// Text before the time of an event.
const MESSAGE: &str = "\"message\":\"";
/// Connections whose calls send three notifications.
const CONNECTIONS: usize = 32;
/// Milliseconds between two notifications of a call: a client receives ten of them a second
/// (MCP-PP-3).
const EVERY_MS: u64 = 110;
/// Clients whose calls send 1,000 notifications a second together, the calls of each, and how often
/// a call sends one. A call opens two streams.
const TELLERS: usize = 5;
const CALLS: usize = 22;
const COUNT: u32 = 91;
/// Clients whose calls are resumed, the calls of each, and how often each call is.
const RETURNING: usize = 5;
const RESUMED: usize = 2;
const TIMES: usize = 20;
/// The events that they have missed: nearly as much as a log keeps, which is 256 events and 1 MiB,
/// seals included.
const MISSED: u32 = 250;
const BYTES: usize = 3_800;

impl Telling {
    fn call(self, id: usize) -> Value {
        fleet::call(id, "tell", json!(self), Some("told"))
    }
}

fn millis(time: Duration) -> f64 {
    1e3 * time.as_secs_f64()
}

/// Each part has clients of its own: one may open 60 streams a minute.
pub(crate) async fn measure(
    arguments: &Arguments,
    nodes: &Nodes,
    teller: SocketAddr,
    table: &mut Table,
) -> Result<()> {
    let clients = nodes.tellers(teller, 1 + TELLERS + RETURNING).await?;
    let (often, rest) = clients.split_first().context("a client")?;
    let (far, back) = rest.split_at(TELLERS);
    answered_by_events(arguments, often, table).await?;
    delivered_elsewhere(far, nodes.address(Place::Streams)?, table).await?;
    resumed(back, nodes.address(Place::Streams)?, table).await
}

/// Opens so many sessions of each client.
async fn sessions_of(clients: &[Access], count: usize) -> Result<Vec<(&Access, String)>> {
    let opened = try_join_all(clients.iter().map(|client| client.sessions(count))).await?;
    let each = clients.iter().zip(opened);
    Ok(each
        .flat_map(|(client, sessions)| sessions.into_iter().map(move |session| (client, session)))
        .collect())
}

/// TEST-L3.
async fn answered_by_events(
    arguments: &Arguments,
    access: &Access,
    table: &mut Table,
) -> Result<()> {
    let sessions = access.sessions(CONNECTIONS).await?;
    let telling = Telling {
        count: 3,
        every_ms: 0,
        bytes: 16,
        then_ms: 0,
    };
    let mut callers = Vec::with_capacity(CONNECTIONS);
    for session in sessions {
        callers.push((Connection::open(access.address).await?, session));
    }
    let share = arguments.calls / 4 / CONNECTIONS;
    let (mut rates, mut times) = (Vec::new(), Vec::new());
    for round in 0..=arguments.rounds {
        let begun = Instant::now();
        let calling = callers.iter_mut().map(|(connection, session)| async move {
            let mut times = Vec::with_capacity(share);
            // No id is used twice in a session.
            for id in round * share..(round + 1) * share {
                let request = access.message(session, &telling.call(id));
                let begun = Instant::now();
                let answer = connection.call(&request).await?;
                times.push(begun.elapsed());
                ensure!(answer.is_stream(), "not answered by events");
                answer.check(DONE)?;
            }
            anyhow::Ok(times)
        });
        let made = try_join_all(calling).await?.concat();
        if round > 0 {
            rates.push(number(made.len()) / begun.elapsed().as_secs_f64());
            times.extend(made);
        }
    }
    let spread = Spread::of(&mut rates);
    let what = "tools/call with three notices, answered by events";
    table.add(Figure {
        what: format!("{what}, a second"),
        seen: spread.median,
        unit: "",
        bar: Bar::AtLeast(1_500.0),
        note: format!(
            "half of the rounds {:.0} to {:.0}; {CONNECTIONS} connections, session in Redis",
            spread.half.0, spread.half.1
        ),
    });
    table.add(Figure {
        what: format!("{what}, p99"),
        seen: millis(permille(&mut times, 990)?),
        unit: "ms",
        bar: Bar::AtMost(60.0),
        note: format!(
            "of {} calls, p50 {:.2} ms",
            times.len(),
            millis(permille(&mut times, 500)?)
        ),
    });
    Ok(())
}

/// Begins a call at one node, and comes back at another one.
async fn moved(
    access: &Access,
    session: &str,
    telling: Telling,
    elsewhere: SocketAddr,
) -> Result<(TcpStream, Vec<u8>)> {
    let request = access.message(session, &telling.call(1));
    let id = streams::break_off(access.address, &request).await?;
    let resume = access.get(session, Some(&id));
    match streams::begin(elsewhere, &resume).await? {
        Begun::Open(stream, bytes) => Ok((stream, bytes)),
        Begun::Later(_) => anyhow::bail!("too many streams"),
    }
}

/// TEST-L8.
async fn delivered_elsewhere(
    clients: &[Access],
    elsewhere: SocketAddr,
    table: &mut Table,
) -> Result<()> {
    let sessions = sessions_of(clients, CALLS).await?;
    let telling = Telling {
        count: COUNT,
        every_ms: EVERY_MS,
        bytes: 16,
        then_ms: 0,
    };
    let reading = sessions.iter().map(|(access, session)| async move {
        let (mut stream, mut bytes) = moved(access, session, telling, elsewhere).await?;
        let mut delays = Vec::new();
        loop {
            let now = nanos();
            let mut from = 0;
            while let Some(at) = find(&bytes[from..], MESSAGE.as_bytes()) {
                let digits = from + at + MESSAGE.len();
                let Some(end) = find(&bytes[digits..], b" ") else {
                    break;
                };
                let told: u64 = std::str::from_utf8(&bytes[digits..digits + end])?.parse()?;
                delays.push(Duration::from_nanos(now.saturating_sub(told)));
                from = digits + end;
            }
            if find(&bytes[from..], DONE.as_bytes()).is_some() {
                return anyhow::Ok(delays);
            }
            // A text may be cut in two.
            bytes.drain(..from.max(bytes.len().saturating_sub(64)));
            ensure!(
                stream.read_buf(&mut bytes).await? > 0,
                "the stream ended early"
            );
        }
    });
    let mut delays: Vec<Duration> = try_join_all(reading).await?.concat();
    let all = number(sessions.len()) * f64::from(telling.count);
    ensure!(
        number(delays.len()) > 0.9 * all,
        "{} events of {all}",
        delays.len()
    );
    let (p50, p99) = (permille(&mut delays, 500)?, permille(&mut delays, 990)?);
    let what = "an event, 1,000 a second, to a client of another node";
    for (rank, seen, bar) in [("p50", p50, 3.0), ("p99", p99, 25.0)] {
        table.add(Figure {
            what: format!("{what}, {rank}"),
            seen: millis(seen),
            unit: "ms",
            bar: Bar::AtMost(bar),
            note: format!(
                "{} events, from the server that tells to the client",
                delays.len()
            ),
        });
    }
    Ok(())
}

/// TEST-L9.
async fn resumed(clients: &[Access], elsewhere: SocketAddr, table: &mut Table) -> Result<()> {
    let sessions = sessions_of(clients, RESUMED).await?;
    let telling = Telling {
        count: MISSED,
        every_ms: EVERY_MS,
        bytes: BYTES,
        then_ms: 60_000,
    };
    let begun = sessions.iter().map(|(access, session)| async move {
        let request = access.message(session, &telling.call(1));
        let id = streams::break_off(access.address, &request).await?;
        anyhow::Ok(access.get(session, Some(&id)))
    });
    let requests = try_join_all(begun).await?;
    sleep(Duration::from_millis(telling.every_ms) * MISSED + Duration::from_secs(3)).await;
    let missed = usize::try_from(MISSED)?;
    let mut times = Vec::with_capacity(sessions.len() * TIMES);
    for round in 0..=TIMES {
        for request in &requests {
            let took = streams::come_back(elsewhere, request, PROGRESS, missed)
                .await
                .context("a resume")?;
            // The first round is for the node to get to know the sessions, as it would have.
            if round > 0 {
                times.push(took);
            }
        }
    }
    table.add(Figure {
        what: format!("resume on another node, {MISSED} missed events of 4 KB, p99"),
        seen: millis(permille(&mut times, 990)?),
        unit: "ms",
        bar: Bar::AtMost(50.0),
        note: format!(
            "{} times, connecting included: p50 {:.2} ms",
            times.len(),
            millis(permille(&mut times, 500)?)
        ),
    });
    Ok(())
}
