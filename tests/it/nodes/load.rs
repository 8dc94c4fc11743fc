//! Rows of the load table that are counts, or need no machine of their own (TEST-L3 to TEST-L7,
//! TEST-L10, TEST-L13, TEST-L14). The others are scenes of `make bench` (docs/performance.md).
//! TEST-L7, TEST-L10 and TEST-L14 are as large as the table has them in `make full`.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures_util::{StreamExt, TryStreamExt, future::try_join_all, stream};
use portolan_tests::{
    behind,
    cluster::Cluster,
    fixture::FixtureApi,
    fleet::{Fleet, call, let_in, sign_up},
    mcp::{LEGACY, McpClient, modern_message},
    oauth::OAuthClient,
    process::eventually,
    proxy::Balancer,
    scale::sized,
    sse::{Event, SseStream},
    upstream::{Fixture, Upstream},
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::time::{sleep, sleep_until};

use super::{Order, echo, price::sent, response};

const SECOND: Duration = Duration::from_secs(1);

/// Marks of the keys of sessions, and of their streams, requests and questions.
const MARKS: [&str; 6] = ["}:s:", "}:m:", "}:e:", "}:x:", "}:f:", "}:q:"];

/// The commands for sessions and their data. A scan for records without an owner names the keys
/// that it would find.
fn of_sessions(lines: &[String]) -> Vec<&String> {
    let is_of_sessions = |line: &&String| MARKS.iter().any(|mark| line.contains(mark));
    let is_a_look = |line: &&String| line.contains("}:o:-");
    let found = lines.iter().filter(is_of_sessions);
    found.filter(|line| !is_a_look(line)).collect()
}

/// Opens a listen stream, and waits until it is acknowledged.
async fn listen(client: &McpClient, id: usize) -> Result<SseStream> {
    let params = json!({"notifications": {"toolsListChanged": true}});
    let mut message = modern_message("subscriptions/listen", params.clone());
    message["id"] = json!(id);
    let client = client.modern_client("subscriptions/listen", &params)?;
    let mut stream = client.start(&message).await?.stream()?;
    stream.message().await?;
    Ok(stream)
}

/// Listen streams of one person with one client: as many as there may be.
const LISTENING: usize = 50;
/// How long Redis is watched.
const WATCHED: Duration = Duration::from_secs(4);
/// Commands by which heartbeats, and scans for records without an owner, may vary in that time.
const JITTER: usize = 6;

/// The commands of the clients of Redis in a while without requests.
async fn at_rest(fleet: &Fleet) -> Result<Vec<String>> {
    let watch = fleet.cluster.redis.watch().await?;
    sleep(WATCHED).await;
    watch.stop(&fleet.cluster.redis).await
}

/// TEST-L5: nothing but the beat of the node and the places of its tenants.
#[tokio::test]
async fn l5_listen_streams_that_hear_nothing_cost_redis_nothing() -> Result<()> {
    let fleet = Fleet::of(1).await?;
    let client = fleet.on(0, &fleet.mcp)?;
    let one = listen(&client, 0).await?;
    let before = at_rest(&fleet).await?;
    let mut streams = vec![one];
    for id in 1..LISTENING {
        streams.push(listen(&client, id).await?);
    }
    let after = at_rest(&fleet).await?;
    println!(
        "commands in {WATCHED:?}: {} with one stream, {} with {LISTENING}",
        before.len(),
        after.len()
    );
    let of_sessions = of_sessions(&after);
    assert!(of_sessions.is_empty(), "{of_sessions:#?}");
    assert!(
        after.len() <= before.len() + JITTER,
        "{before:#?} and then {after:#?}"
    );
    // They were there all the time.
    let node = &fleet.cluster.nodes[0];
    eventually("all are open", Duration::from_secs(20), async || {
        node.metric("mcp_streams_open").await.ok() >= Some(49.5)
    })
    .await?;
    drop(streams);
    Ok(())
}

/// Streams of sessions of one client; it may open sixty a minute.
const IDLE: usize = 40;
/// Most connections that a process may have to Redis.
const CONNECTIONS: usize = 6;

/// Connections of others to Redis, and channels with a subscriber.
async fn links(fleet: &Fleet) -> Result<(usize, usize)> {
    let redis = &fleet.cluster.redis;
    let clients = redis.command(&["CLIENT", "LIST"]).await?;
    let others = clients
        .lines()
        .filter(|line| line.contains("id=") && !line.contains("cmd=client|list"));
    let count = "return #redis.call('PUBSUB', 'CHANNELS') + #redis.call('PUBSUB', 'SHARDCHANNELS')";
    let channels = redis.command(&["EVAL", count, "0"]).await?;
    Ok((others.count(), channels.parse()?))
}

/// TEST-L4, with fewer streams: what a node has to do with Redis does not depend on them.
#[tokio::test]
async fn l4_streams_of_sessions_need_no_connection_and_no_subscription_of_their_own() -> Result<()>
{
    let fleet = Fleet::of(1).await?;
    let open = async || {
        let session = fleet.on(0, &fleet.session(LEGACY).await?)?;
        let mut stream = session.listen().await?;
        stream.next().await?.context("a priming event")?;
        anyhow::Ok(stream)
    };
    let mut streams = vec![open().await?];
    let before = links(&fleet).await?;
    for _ in 1..IDLE {
        streams.push(open().await?);
    }
    let after = links(&fleet).await?;
    println!("connections and channels: {before:?} with one stream, {after:?} with {IDLE}");
    assert_eq!(after.1, before.1, "channels");
    // One more may have been made because one was busy.
    assert!(after.0 <= before.0 + 2, "{before:?}, then {after:?}");
    // The node, and the one with the role `auth`.
    assert!(after.0 <= 2 * CONNECTIONS, "{after:?}");
    drop(streams);
    Ok(())
}

/// TEST-L3: with three notices of progress and a result. The session is asked for; the request is registered when it is no quick one any
/// more, and again with its stream, which is made; the result ends it.
#[tokio::test]
async fn l3_a_streamed_call_costs_redis_five_commands_and_one_for_each_notice() -> Result<()> {
    let fleet = Fleet::of(1).await?;
    let session = fleet.on(0, &fleet.session(LEGACY).await?)?;
    echo(&session, "warm").await?;
    let watch = fleet.cluster.redis.watch().await?;
    // Told after 1, 3 and 5 s.
    let work = json!({"call": "streamed", "millis": 5_500});
    let message = call(2, "do_work", work, Some("t"));
    let text = session.message(&message).await?.text;
    let lines = watch.stop(&fleet.cluster.redis).await?;
    let notices = text.matches("notifications/progress").count();
    let mut commands = of_sessions(&lines);
    // On a slow machine the call before was registered, too, and is ended when its answer is there.
    commands.retain(|command| !command.contains(r#""i:1""#));
    println!(
        "{notices} notices and a result: {} commands",
        commands.len()
    );
    assert!(notices >= 3 && text.contains("structuredContent"), "{text}");
    assert!(commands.len() <= 5 + notices, "{commands:#?}");
    Ok(())
}

/// Streamed calls that are counted together: what one of them has too much on a slow machine is little of all.
const STREAMED: usize = 20;

/// The same for the tool of the conformance suite that sends three notifications and answers at
/// once, behind an MCP server.
#[tokio::test]
async fn l3_a_call_that_tells_three_times_at_once_costs_seven_commands() -> Result<()> {
    let upstream = Upstream::start(Fixture::Rmcp)?;
    let fixture = FixtureApi::start()?;
    let allowed = format!("{},{}", fixture.address(), upstream.address());
    let cluster = Cluster::builder().nodes(1).setting("egress_allow", allowed);
    let cluster = cluster.start(&fixture).await?;
    let owner = sign_up(&cluster, "ann").await?;
    let console = owner.console();
    console.create_workspace("tells").await?;
    let published = behind::publish(&console, "tells", &upstream, &json!({})).await?;
    let client = OAuthClient::register(cluster.url(), "Harness").await?;
    let token = client.authorize(&owner, &published.url).await?.access;
    let client = McpClient::new(&published.url)?.with_token(&token)?;
    let (session, _) = cluster.on(0, &client)?.initialize(LEGACY).await?;
    let tell = async |id: usize| {
        let message = call(id, "test_tool_with_progress", json!({}), Some("t"));
        let text = session.message(&message).await?.text;
        ensure!(
            text.matches("notifications/progress").count() == 3,
            "{text}"
        );
        anyhow::Ok(())
    };
    // The first one also finds out what the server can.
    tell(0).await?;
    let watch = cluster.redis.watch().await?;
    for id in 1..=STREAMED {
        tell(id).await?;
    }
    let lines = watch.stop(&cluster.redis).await?;
    let commands = of_sessions(&lines);
    println!(
        "{STREAMED} calls with three notices: {} commands",
        commands.len()
    );
    assert!(commands.len() <= 7 * STREAMED, "{commands:#?}");
    Ok(())
}

/// Streams of one client that are notified of a change.
const HEARING: usize = 40;
/// Changes of the list, one after the other.
const CHANGES: usize = 3;

/// TEST-L6, with fewer streams: the cost does not depend on their number.
#[tokio::test]
async fn l6_a_change_of_the_tools_costs_redis_nothing_for_each_stream() -> Result<()> {
    let fleet = Fleet::of(2).await?;
    let mut streams = Vec::new();
    for id in 0..HEARING {
        streams.push(listen(&fleet.on(id % 2, &fleet.mcp)?, id).await?);
    }
    for id in 0..HEARING / 4 {
        let session = fleet.session(LEGACY).await?;
        let mut stream = fleet.on(id % 2, &session)?.listen().await?;
        stream.next().await?.context("a priming event")?;
        streams.push(stream);
    }
    let (console, workspace) = (fleet.owner.console(), &fleet.published.workspace);
    let tools = console.tool_ids(workspace, &fleet.published.source_id);
    let tool = tools.await?.swap_remove(0);
    let path = format!("/workspaces/{workspace}/tools/enabled");
    let is_news = |event: &Event| event.message()["method"] == "notifications/tools/list_changed";
    let mut longest = Duration::ZERO;
    let read_before = reads_of_the_registry(&fleet).await?;
    let watch = fleet.cluster.redis.watch().await?;
    for change in 0..CHANGES {
        let body = json!({"ids": [tool], "enabled": change % 2 == 1});
        console.expect(Method::POST, &path, Some(body)).await?;
        let changed = Instant::now();
        for stream in &mut streams {
            stream.until(is_news).await?;
        }
        longest = longest.max(changed.elapsed());
    }
    let lines = watch.stop(&fleet.cluster.redis).await?;
    let commands = of_sessions(&lines);
    println!(
        "{CHANGES} changes, {} streams on 2 nodes: the last one heard after {longest:?} at most, {} commands",
        streams.len(),
        commands.len()
    );
    assert!(longest < Duration::from_secs(7), "{longest:?}");
    // The permits of running streams are renewed once in a while.
    assert!(commands.len() <= 10 * CHANGES, "{commands:#?}");
    // A change is read once for all streams; once more if it came during a read.
    for (before, after) in read_before.iter().zip(reads_of_the_registry(&fleet).await?) {
        println!("{} reads of the registry", after - before);
        assert!(
            after > *before && after - before <= 2 * CHANGES,
            "{before}, then {after}"
        );
    }
    Ok(())
}

/// How often each node has read what is published.
async fn reads_of_the_registry(fleet: &Fleet) -> Result<Vec<usize>> {
    let mut reads = Vec::new();
    for node in &fleet.cluster.nodes {
        let text = node.metrics().await?;
        let count = text
            .lines()
            .find_map(|line| line.strip_prefix("registry_reload_seconds_count "))
            .context("a count")?;
        reads.push(count.parse()?);
    }
    Ok(reads)
}

/// Calls a minute of one person with one client: one a second, and a minute's worth at once.
const A_MINUTE: u32 = 60;
/// How long it is exceeded.
fn overload() -> Duration {
    Duration::from_secs(sized(6, 60))
}
/// Clients at each node that ask as fast as they can.
const ASKING: usize = 3;

/// Calls that were let in, each by when it was sent and when it was answered, and how long it took to be refused.
#[derive(Debug, Default)]
struct Decided {
    admitted: Vec<(Duration, Duration)>,
    refused: Vec<Duration>,
}

async fn ask_too_much(client: &McpClient, began: Instant) -> Result<Decided> {
    let mut decided = Decided::default();
    let params = json!({"name": "echo_message", "arguments": {"message": "more"}});
    while began.elapsed() < overload() {
        let asked = Instant::now();
        let answer = client.modern("tools/call", params.clone()).await?;
        if answer.status == StatusCode::OK {
            let sent = asked.duration_since(began);
            decided.admitted.push((sent, began.elapsed()));
            continue;
        }
        ensure!(
            answer.status == StatusCode::TOO_MANY_REQUESTS
                && !answer.header("retry-after").is_empty(),
            "{} {}",
            answer.status,
            answer.text
        );
        decided.refused.push(asked.elapsed());
    }
    Ok(decided)
}

/// TEST-L10, with the bound of TEST-C11: in no window more than the burst, the rate for the window and the life of a lease, and one for
/// each node.
#[tokio::test]
async fn l10_three_nodes_hold_one_limit_under_ten_times_as_many_calls() -> Result<()> {
    let builder = Cluster::builder()
        .nodes(3)
        .setting("calls_per_minute", A_MINUTE)
        .setting("tenant_calls_per_minute", 60_000);
    let fleet = Fleet::with(builder).await?;
    for node in &fleet.cluster.nodes {
        eventually("three members", Duration::from_secs(10), async || {
            node.metric("members").await.ok() == Some(3.0)
        })
        .await?;
    }
    let clients = (0..3 * ASKING)
        .map(|number| fleet.on(number % 3, &fleet.mcp))
        .collect::<Result<Vec<_>>>()?;
    let mut all = Decided::default();
    let busy = sent(&fleet, async || {
        let began = Instant::now();
        let asking = clients.iter().map(|client| ask_too_much(client, began));
        for decided in try_join_all(asking).await? {
            all.admitted.extend(decided.admitted);
            all.refused.extend(decided.refused);
        }
        Ok(())
    })
    .await?;
    all.refused.sort_unstable();
    let (admitted, refused) = (all.admitted.len(), all.refused.len());
    let seconds = usize::try_from(busy.took.as_secs())? + 1;
    assert!(refused > 10 * seconds, "no overload: {refused} refused");
    let slow = all.refused[refused * 99 / 100];
    println!(
        "{admitted} let in and {refused} refused in {:?}, p99 of a refusal {slow:?}, {} leases",
        busy.took, busy.leases
    );
    let burst = usize::try_from(A_MINUTE)?;
    // When a call was let in is not seen from here, only that it was between these two.
    for (from, _) in &all.admitted {
        for (_, to) in all.admitted.iter().filter(|(_, to)| to > from) {
            let within = |(sent, answered): &&(Duration, Duration)| sent >= from && answered <= to;
            // One a second.
            let between = to.saturating_sub(*from);
            let window = between.as_secs_f64() + 1.0;
            #[expect(clippy::cast_precision_loss, reason = "small numbers")]
            let (got, bound) = (
                all.admitted.iter().filter(within).count() as f64,
                (burst + 3) as f64 + window,
            );
            assert!(got <= bound, "{got} in {between:?}: above {bound}");
        }
    }
    assert!(admitted > burst / 2, "only {admitted} of {burst} at once");
    assert!(
        busy.leases <= 100 * 3 * seconds,
        "{} leases in {:?}",
        busy.leases,
        busy.took
    );
    assert!(slow < Duration::from_millis(500), "p99 {slow:?}");
    Ok(())
}

/// Streams that each client has of sessions. A client may open sixty of them a minute, twice these; a node that dies takes with it what it has
/// leased ahead, a quarter of them if it knew of no other node yet (STREAM-16.1).
const OF_SESSIONS: usize = 20;
/// Clients that are let in at once.
const AT_ONCE: usize = 4;

/// Streams of sessions, each with its session at another node, and listen streams, each with the id of its request.
type Crowd = (Vec<(McpClient, SseStream)>, Vec<(usize, SseStream)>);

/// So many clients of the first node with their streams of sessions, and so many listen streams each.
async fn crowd(fleet: &Fleet, clients: usize, alone: usize) -> Result<Crowd> {
    let others = fleet.cluster.nodes.len() - 1;
    let one = async |number: usize| {
        let tokens = let_in(&fleet.cluster, &fleet.owner, &fleet.published, number).await?;
        let mcp = McpClient::new(&fleet.published.url)?.with_token(&tokens.access)?;
        let here = fleet.on(0, &mcp)?;
        let mut of_sessions = Vec::new();
        for _ in 0..OF_SESSIONS {
            let (session, _) = here.initialize(LEGACY).await?;
            let mut open = session.listen().await?;
            open.next().await?.context("a priming event")?;
            of_sessions.push((fleet.on(1 + number % others, &session)?, open));
        }
        let mut listening = Vec::new();
        for id in 0..alone {
            listening.push((id, listen(&here, id).await?));
        }
        anyhow::Ok((of_sessions, listening))
    };
    let each = stream::iter(0..clients).map(one).buffer_unordered(AT_ONCE);
    let mut all = Crowd::default();
    for (of_sessions, listening) in each.try_collect::<Vec<_>>().await? {
        all.0.extend(of_sessions);
        all.1.extend(listening);
    }
    Ok(all)
}

/// Reads an answer to its end, wherever that is.
async fn finish(mut stream: SseStream, elsewhere: &McpClient) -> Result<Value> {
    let mut last = None;
    loop {
        let events = stream.rest().await.context("it ends in order")?;
        if let Some(event) = events.iter().find(|event| event.is_response()) {
            return Ok(event.message());
        }
        last = stream.last_id().map(str::to_owned).or(last);
        let id = last.as_deref().context("an id to come back with")?;
        stream = elsewhere.resume(id).await?.stream()?;
    }
}

/// Waits for the end of a session's stream, and resumes after the server's `retry`. Returns that
/// moment.
async fn come_back(mut stream: SseStream, elsewhere: &McpClient) -> Result<Instant> {
    let rest = stream.rest().await.context("it ends in order")?;
    ensure!(rest.iter().all(|event| event.data.is_empty()), "{rest:?}");
    let wait = stream.retry().context("a time to come back at")?;
    let at = Instant::now() + wait;
    sleep_until(at.into()).await;
    let mut again = elsewhere.listen().await?;
    let first = again.next().await?.context("the first event")?;
    ensure!(first.id.is_some(), "{first:?}");
    Ok(at)
}

/// The result that ends a listen stream.
async fn said_goodbye(mut stream: SseStream, id: usize) -> Result<()> {
    let rest = stream.rest().await.context("it ends in order")?;
    let last = rest.iter().rfind(|event| event.is_response());
    let last = last.map(Event::message).context("a result")?;
    ensure!(last["id"] == id && last["result"].is_object(), "{last}");
    Ok(())
}

/// TEST-L14: 5,000 streams and 200 calls of ten seconds in `make full`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn l14_a_node_with_many_streams_is_drained_without_a_failed_call_or_a_rush() -> Result<()> {
    let (clients, alone) = sized((8, 15), (125, 20));
    let (running, millis) = sized((20, 3_000), (200, 10_000));
    let builder = Cluster::builder()
        .nodes(2)
        .setting("address_requests_per_minute", 0)
        .setting("drain_accept_secs", 2)
        .setting("drain_secs", 20);
    let mut fleet = Fleet::with(builder).await?;
    let (sessions, alone) = crowd(&fleet, clients, alone).await?;
    let streams = sessions.len() + alone.len();
    let mut calls = Vec::new();
    for number in 0..running {
        let session = fleet.session(LEGACY).await?;
        let work = json!({"call": format!("running-{number}"), "millis": millis});
        let message = call(number, "do_work", work, Some("t"));
        calls.push((
            number,
            fleet.on(0, &session)?,
            fleet.on(1, &session)?,
            message,
        ));
    }
    let calls = calls
        .iter()
        .map(|(number, here, elsewhere, message)| async move {
            let stream = here.start(message).await?.stream()?;
            let answer = finish(stream, elsewhere).await?;
            let done = &answer["result"]["structuredContent"]["call"];
            ensure!(
                answer["id"] == *number && *done == format!("running-{number}"),
                "{number}: {answer}"
            );
            anyhow::Ok(())
        });
    let back = sessions
        .into_iter()
        .map(|(elsewhere, open)| async move { come_back(open, &elsewhere).await });
    let goodbyes = alone.into_iter().map(|(id, open)| said_goodbye(open, id));
    let (held, node) = (fleet.fixture.held.clone(), &mut fleet.cluster.nodes[0]);
    let drained = async {
        for number in 0..running {
            held.arrived(&format!("running-{number}"), 1).await?;
        }
        let began = Instant::now();
        node.drain()?;
        let status = node.end(Duration::from_secs(40)).await?;
        ensure!(status.success(), "{status}");
        anyhow::Ok((began, began.elapsed()))
    };
    let (_, mut back, _, (began, took)) = tokio::try_join!(
        try_join_all(calls),
        try_join_all(back),
        try_join_all(goodbyes),
        drained
    )?;
    back.sort_unstable();
    let since: Vec<Duration> = back.iter().map(|at| *at - began).collect();
    let (first, last) = (since[0], since[since.len() - 1]);
    let mean = rate(since.len(), last.saturating_sub(first));
    let within_a_second = |from: &Duration| {
        let after = since.iter().filter(|at| *at >= from);
        after.filter(|at| at.saturating_sub(*from) < SECOND).count()
    };
    let rush = since.iter().map(within_a_second).max().unwrap_or(0);
    println!(
        "{streams} streams and {running} calls: the node ended after {took:?}; streams of sessions were back between {first:?} and {last:?}, \
         {mean:.1} a second, {rush} in the worst one",
    );
    assert!(took < Duration::from_secs(30), "{took:?}");
    assert!(rate(rush, SECOND) <= 2.0 * mean, "{rush} at once");
    echo(
        &fleet.on(1, &fleet.session(LEGACY).await?)?,
        "the other one",
    )
    .await
}

/// TEST-L7: a client that loses its node is served by another one at once. 10,000 streams and three
/// nodes in `make full`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn l7_the_streams_of_a_killed_node_are_back_on_another_one_in_time() -> Result<()> {
    let (nodes, clients) = sized((2, 8), (3, 500));
    let builder = Cluster::builder()
        .nodes(nodes)
        .setting("address_requests_per_minute", 0);
    let mut fleet = Fleet::with(builder).await?;
    let (sessions, _) = crowd(&fleet, clients, 0).await?;
    let count = sessions.len();
    let lost = sessions
        .into_iter()
        .map(|(elsewhere, mut open)| async move {
            // It breaks, and does not end.
            ensure!(open.rest().await.is_err(), "a killed node says goodbye");
            let began = Instant::now();
            let begun = elsewhere.request("ping", json!({})).await?;
            ensure!(begun.status == StatusCode::OK, "{}", begun.text);
            let asked = began.elapsed();
            let mut again = elsewhere.listen().await?;
            again.next().await?.context("the first event")?;
            anyhow::Ok((asked, Instant::now()))
        });
    let node = &mut fleet.cluster.nodes[0];
    let (killed, mut back) = tokio::try_join!(
        async {
            let killed = Instant::now();
            node.kill()?;
            anyhow::Ok(killed)
        },
        try_join_all(lost)
    )?;
    back.sort_unstable();
    let slow = back[count * 99 / 100].0;
    let last = back.iter().map(|(_, at)| *at - killed).max();
    let last = last.context("some came back")?;
    println!(
        "{count} streams: the last one is back after {last:?}; p99 of the first request {slow:?}"
    );
    assert!(last < Duration::from_secs(15), "{last:?}");
    assert!(slow < Duration::from_secs(3), "{slow:?}");
    Ok(())
}

/// An event reaches the client while the call still runs, and while nothing else is sent on the
/// stream.
async fn passes_events_on(balancer: Balancer) -> Result<()> {
    let fleet = Fleet::with(Cluster::builder().nodes(1).balancer(balancer)).await?;
    let session = fleet.session(LEGACY).await?;
    let mut quiet = session.listen().await?;
    quiet.next().await?.context("a priming event")?;
    // It sends progress while the API holds the call.
    let mut order = Order::start(&fleet, &session, 1).await?;
    let fate = fleet.fixture.held.fate(&order.key);
    ensure!((fate.arrived, fate.answered) == (1, 0), "{fate:?}");
    order.release(&fleet);
    response(&order.stream.rest().await?).map(|_| ())
}

/// TEST-L13: none is gathered with later ones.
#[tokio::test]
async fn l13_haproxy_passes_events_on_at_once() -> Result<()> {
    passes_events_on(Balancer::HaProxy).await
}

/// The same.
#[tokio::test]
async fn l13_nginx_passes_events_on_at_once() -> Result<()> {
    passes_events_on(Balancer::Nginx).await
}

fn rate(count: usize, time: Duration) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    let count = count as f64;
    count / time.as_secs_f64().max(0.001)
}
