//! Callers that want the data of others, a store with foreign writes, and floods (TEST-B and
//! TEST-S; ten times as large in `make full`).

use std::{sync::Arc, time::Duration};

use anyhow::{Context, Result};
use futures_util::{StreamExt, TryStreamExt, stream};
use portolan_tests::{
    fleet::{Fleet, call, sign_up},
    mcp::{LEGACY, McpClient},
    oauth::OAuthClient,
    process::eventually,
    scale::sized,
    sse::Event,
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::{task::JoinSet, time::sleep};

use super::{Order, echo, feed::join, is_progress, price::sent, response};

/// Requests of a flood.
fn a_flood() -> usize {
    sized(10_000, 100_000)
}

/// Records of sessions, streams, requests and questions in Redis: names, and digests of contents.
async fn kept(fleet: &Fleet) -> Result<String> {
    let script = "local all = {} \
        for _, key in ipairs(redis.call('KEYS', 'pl1:*')) do \
            if string.find(key, '}:[smexfq]:') then \
                all[#all + 1] = key .. ' ' .. redis.sha1hex(redis.call('DUMP', key)) \
            end \
        end \
        table.sort(all) return table.concat(all, '\\n')";
    fleet.cluster.redis.command(&["EVAL", script, "0"]).await
}

/// A call that was streamed and is over.
async fn finished(fleet: &Fleet, session: &McpClient, id: i64) -> Result<Vec<Event>> {
    let mut order = Order::start(fleet, session, id).await?;
    order.release(fleet);
    let mut events = std::mem::take(&mut order.events);
    events.extend(order.stream.rest().await?);
    Ok(events)
}

fn first_id(events: &[Event]) -> Result<&str> {
    events
        .first()
        .and_then(|event| event.id.as_deref())
        .context("an id")
}

/// A client of a person, at a server.
async fn somebody(
    fleet: &Fleet,
    person: &portolan_tests::person::Person,
    url: &str,
) -> Result<McpClient> {
    let client = OAuthClient::register(fleet.cluster.url(), "Somebody").await?;
    let tokens = client.authorize(person, url).await?;
    McpClient::new(url)?.with_token(&tokens.access)
}

#[tokio::test]
async fn s1_s3_a_session_and_its_events_are_nothing_to_anybody_else_on_any_node() -> Result<()> {
    let fleet = Fleet::of(2).await?;
    let session = fleet.session(LEGACY).await?;
    let events = finished(&fleet, &fleet.on(0, &session)?, 1).await?;
    let stolen = first_id(&events)?.to_owned();
    let id = session.header("mcp-session-id").unwrap_or_default();

    let bob = sign_up(&fleet.cluster, "bob").await?;
    let foreign = bob
        .console()
        .publish_fixture("lagoon", &fleet.fixture)
        .await?;
    // A colleague with the very same client.
    let carol = sign_up(&fleet.cluster, "carol").await?;
    join(&fleet, &carol, "member").await?;
    let tokens = fleet.client.authorize(&carol, &fleet.published.url).await?;
    let colleague = McpClient::new(&fleet.published.url)?.with_token(&tokens.access)?;
    let thieves = [
        ("person", colleague),
        // The same person with another client, at another server of another tenant.
        (
            "client",
            somebody(&fleet, &fleet.owner, &fleet.published.url).await?,
        ),
        ("tenant", somebody(&fleet, &bob, &foreign.url).await?),
    ];
    for (who, own) in &thieves {
        let (their_session, _) = own.initialize(LEGACY).await?;
        let thief = own
            .clone()
            .with("mcp-session-id", id)?
            .with("mcp-protocol-version", LEGACY)?;
        let before = kept(&fleet).await?;
        anyhow::ensure!(before.contains("}:e:"), "there is something to lose");
        for node in 0..2 {
            let thief = fleet.on(node, &thief)?;
            let messages = [
                json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
                json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}),
                call(1, "echo_message", json!({"message": "mine"}), Some("t")),
                json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}),
                json!({"jsonrpc": "2.0", "id": "q", "result": {"action": "accept"}}),
            ];
            for message in messages {
                let answer = thief.message(&message).await?;
                assert_eq!(answer.status, StatusCode::NOT_FOUND, "{who}: {message}");
            }
            let stream = thief.open_stream().await?;
            assert_eq!(stream.status(), StatusCode::NOT_FOUND, "{who}: GET");
            let resumed = thief.resume(&stolen).await?.whole()?;
            assert!(
                resumed.status.is_client_error(),
                "{who}: {}",
                resumed.status
            );
            let deleted = thief.send(Method::DELETE).await?;
            assert_eq!(deleted.status, StatusCode::NOT_FOUND, "{who}: DELETE");
            // TEST-S3: the event id alone, in a session of their own.
            let theirs = fleet
                .on(node, &their_session)?
                .resume(&stolen)
                .await?
                .whole()?;
            assert_eq!(theirs.status, StatusCode::BAD_REQUEST, "{who}");
            assert!(!theirs.text.contains("order-1"), "{}", theirs.text);
        }
        assert_eq!(kept(&fleet).await?, before, "{who}: nothing has changed");
    }
    for node in 0..2 {
        let own = fleet.on(node, &session)?;
        echo(&own, "unharmed").await?;
        let mut again = own.resume(&stolen).await?.stream()?;
        assert_eq!(response(&again.rest().await?)?["id"], 1);
    }
    Ok(())
}

/// Does something to all lists of events, as one who can write to Redis but has no keys.
async fn rewrite(fleet: &Fleet, what: &str) -> Result<()> {
    let script = format!(
        "local lists = {{}} \
         for _, key in ipairs(redis.call('KEYS', 'pl1:*')) do \
             if string.find(key, '}}:e:') then lists[#lists + 1] = key end \
         end \
         table.sort(lists) \
         {what} return #lists"
    );
    let lists = fleet.cluster.redis.command(&["EVAL", &script, "0"]).await?;
    anyhow::ensure!(lists == "2", "{lists} lists of events");
    Ok(())
}

#[tokio::test]
async fn s7_events_that_were_altered_swapped_or_moved_in_redis_reach_nobody() -> Result<()> {
    // Two streams of one session, so that only the seal can distinguish them.
    for (what, script) in [
        (
            "altered",
            "for _, list in ipairs(lists) do for i = 0, redis.call('LLEN', list) - 1 do \
                local entry = redis.call('LINDEX', list, i) \
                redis.call('LSET', list, i, string.sub(entry, 1, -2) .. string.char((string.byte(entry, -1) + 1) % 256)) \
             end end",
        ),
        (
            "swapped",
            "redis.call('RENAME', lists[1], 'aside') redis.call('RENAME', lists[2], lists[1]) redis.call('RENAME', 'aside', lists[2])",
        ),
        // To another number of their own stream.
        (
            "moved",
            "local head = function(entry) return string.match(entry, '^%d+|%a|') end \
             for _, list in ipairs(lists) do \
                local one, two = redis.call('LINDEX', list, 0), redis.call('LINDEX', list, 1) \
                redis.call('LSET', list, 0, head(one) .. string.sub(two, #head(two) + 1)) \
                redis.call('LSET', list, 1, head(two) .. string.sub(one, #head(one) + 1)) \
             end",
        ),
    ] {
        let fleet = Fleet::of(2).await?;
        let session = fleet.session(LEGACY).await?;
        let one = finished(&fleet, &fleet.on(0, &session)?, 1).await?;
        let two = finished(&fleet, &fleet.on(0, &session)?, 2).await?;
        rewrite(&fleet, script).await?;
        let elsewhere = fleet.on(1, &session)?;
        for (number, events) in [(1, &one), (2, &two)] {
            let mut resumed = elsewhere.resume(first_id(events)?).await?.stream()?;
            let got = resumed.rest().await?;
            for event in got.iter().filter(|event| !event.data.is_empty()) {
                let message = event.message();
                let is_own = events[1..].contains(event);
                let is_honest = message["id"] == number && message["error"]["code"] == -32011;
                assert!(is_own || is_honest, "{what}, stream {number}: {event:?}");
            }
            let last = got
                .last()
                .with_context(|| format!("{what}: nothing was said"))?;
            assert_eq!(last.message()["error"]["code"], -32011, "{what}: {last:?}");
        }
        let failures = fleet.cluster.nodes[1]
            .metric("mcp_stream_seal_failures_total")
            .await?;
        assert!(failures >= 1.0, "{what}: {failures} failures were counted");
        echo(&elsewhere, "nobody fell over").await?;
    }
    Ok(())
}

/// Markers that Redis must not hold in the clear.
const MARKERS: usize = 200;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s6_none_of_two_hundred_secrets_stands_in_redis() -> Result<()> {
    let fleet = Arc::new(Fleet::of(1).await?);
    let mut orders = JoinSet::new();
    for session_number in 0..5 {
        let session = fleet.session(LEGACY).await?;
        for number in 0..MARKERS / 5 {
            let (fleet, session) = (fleet.clone(), session.clone());
            orders.spawn(async move {
                let key = format!("marker-{session_number}-{number}-of-mine");
                let id = i64::try_from(number)?;
                let message = call(id, "held_order", json!({"key": key}), Some(&key));
                let mut stream = session.start(&message).await?.stream()?;
                stream.until(is_progress).await?;
                fleet.fixture.held.release(&key);
                response(&stream.rest().await?)?;
                anyhow::Ok(key)
            });
        }
    }
    let mut markers = Vec::new();
    while let Some(marker) = orders.join_next().await {
        markers.push(marker??);
    }
    assert_eq!(markers.len(), MARKERS);
    fleet.cluster.redis.command(&["SAVE"]).await?;
    let (log, dump) = (
        fleet.cluster.redis.written()?,
        fleet.cluster.redis.dumped()?,
    );
    assert!(
        log.len() > 100_000 && dump.len() > 50_000,
        "it has kept something"
    );
    // All begin alike, so that a search for the beginning finds each.
    for (what, bytes) in [("the log", &log), ("the dump", &dump)] {
        let stands = bytes.windows(7).any(|window| window == b"marker-");
        assert!(!stands, "a marker stands in {what}");
        let search_works = bytes.windows(3).any(|window| window == b"pl1");
        assert!(search_works, "the search finds what is there");
    }
    Ok(())
}

/// Sends requests over a few connections.
async fn flood<F: Future<Output = Result<()>>>(requests: impl Iterator<Item = F>) -> Result<()> {
    let all = stream::iter(requests).buffer_unordered(16);
    all.try_collect::<Vec<()>>().await.map(|_| ())
}

/// Memory of the node, after a first flood has warmed it up, may grow by this much, bytes.
const GROWTH: u64 = 24 * 1024 * 1024;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b8_a_flood_of_forged_event_ids_asks_redis_nothing() -> Result<()> {
    let fleet = Fleet::of(1).await?;
    let (session, other) = (fleet.session(LEGACY).await?, fleet.session(LEGACY).await?);
    let events = finished(&fleet, &session, 1).await?;
    let foreign = first_id(&finished(&fleet, &other, 2).await?)?.to_owned();
    let good = first_id(&events)?.to_owned();
    let flipped = |at: usize| -> String {
        let flip = |(place, letter)| match (place == at, letter) {
            (true, 'A') => 'B',
            (true, _) => 'A',
            (false, letter) => letter,
        };
        good.char_indices().map(flip).collect()
    };
    let forged = |number: usize| match number % 5 {
        0 => flipped(number / 5 % (good.len() - 1)),
        1 => good[..number / 5 % good.len()].to_owned(),
        2 => foreign.clone(),
        3 => format!("{number:x}{}", &good[4..]),
        _ => "A".repeat(number % 2_000 + 200),
    };
    // Messages of the two calls may still be on their way for a moment.
    let is_quiet = async || {
        let idle = async || {
            sleep(Duration::from_secs(1)).await;
            Ok(())
        };
        let busy = sent(&fleet, idle).await;
        busy.is_ok_and(|busy| busy.sessions.is_empty() && busy.beside.is_empty())
    };
    eventually("Redis hears of nothing", Duration::from_secs(30), is_quiet).await?;
    let session = &session;
    let many = a_flood();
    let busy = sent(&fleet, async || {
        let known = (0..many).map(&forged).filter(|id| !id.is_empty());
        flood(known.map(|id| async move {
            let answer = session.resume(&id).await?.whole()?;
            let status = answer.status;
            anyhow::ensure!(status == StatusCode::BAD_REQUEST, "{id}: {status}");
            Ok(())
        }))
        .await
    })
    .await?;
    println!(
        "{many} forged ids in {:?}: {} leases",
        busy.took, busy.leases
    );
    assert!(
        busy.sessions.is_empty() && busy.beside.is_empty(),
        "{busy:#?}"
    );
    echo(session, "as before").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b12_b13_answers_and_cancellations_of_nothing_leave_nothing() -> Result<()> {
    let fleet = Fleet::of(1).await?;
    let (session, other) = (fleet.session(LEGACY).await?, fleet.session(LEGACY).await?);
    let answers = |number: usize| json!({"jsonrpc": "2.0", "id": format!("q{number}"), "result": {"action": "accept", "content": {"n": number}}});
    let cancels = |number: usize| json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1_000 + number}});
    let send = async |client: &McpClient, message: Value| {
        let answer = client.message(&message).await?;
        anyhow::ensure!(
            answer.status == StatusCode::ACCEPTED,
            "{} {}",
            answer.status,
            answer.text
        );
        Ok(())
    };
    let memory = async || fleet.cluster.redis.info("used_memory").await;
    flood((0..1_000).map(|number| send(&session, answers(number)))).await?;
    flood((0..1_000).map(|number| send(&session, cancels(number)))).await?;
    let (node_before, redis_before) = (fleet.cluster.nodes[0].memory()?, memory().await?);
    let many = a_flood();
    flood((0..many).map(|number| send(&session, answers(number)))).await?;
    flood((0..many).map(|number| send(&session, cancels(number)))).await?;
    // A request of another caller has the same number.
    let mut order = Order::start(&fleet, &session, 7).await?;
    send(
        &other,
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}),
    )
    .await?;
    let node = fleet.cluster.nodes[0].memory()?.saturating_sub(node_before);
    let redis = memory().await?.saturating_sub(redis_before);
    println!("{many} answers and {many} cancellations: {node} bytes of the node, {redis} of Redis");
    assert!(
        node < GROWTH && redis < 1024 * 1024,
        "{node} bytes of the node, {redis} of Redis"
    );
    // After the measurement: Redis keeps the buffer of a connection that carried it for some seconds.
    let long = json!({"jsonrpc": "2.0", "id": "q1", "result": {"text": "x".repeat(1024 * 1024)}});
    let status = session.message(&long).await?.status;
    assert!(
        status == StatusCode::ACCEPTED || status == StatusCode::PAYLOAD_TOO_LARGE,
        "{status}"
    );
    let longest = "local most = 0 \
        for _, key in ipairs(redis.call('KEYS', 'pl1:*')) do \
            if string.find(key, '}:f:') then most = math.max(most, redis.call('HLEN', key)) end \
        end return most";
    let most: usize = fleet
        .cluster
        .redis
        .command(&["EVAL", longest, "0"])
        .await?
        .parse()?;
    assert!(
        most <= 65,
        "{most} entries of running requests and tombstones"
    );
    order.release(&fleet);
    response(&order.stream.rest().await?)?;
    assert_eq!(fleet.fixture.held.fate("order-7").given_up, 0);
    Ok(())
}

/// Clients that open an answer and never read it.
const DEAF: usize = 40;
/// How long what answers needed for a moment may take to be given back: half of what deaf clients have.
const GIVEN_BACK: Duration = Duration::from_secs(30);
/// Bytes of each answer.
const LONG: usize = 400_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b11_who_never_reads_is_hung_up_on_and_finds_everything_later() -> Result<()> {
    let fleet = Fleet::of(1).await?;
    let quiet = fleet.cluster.nodes[0].memory()?;
    let open = async |number: usize| {
        let session = fleet.session(LEGACY).await?;
        let work = json!({"call": format!("deaf-{number}"), "millis": 1_500, "size": LONG});
        let mut stream = session
            .start(&call(1, "do_work", work, Some("t")))
            .await?
            .stream()?;
        let first = stream.until(|event| event.id.is_some()).await?;
        let id = first_id(&first)?.to_owned();
        anyhow::Ok((session, stream, id))
    };
    let opened = stream::iter(0..DEAF).map(open).buffer_unordered(20);
    let clients: Vec<_> = opened.try_collect().await?;
    for number in 0..DEAF {
        let all = &fleet.fixture.held;
        all.until(&format!("deaf-{number}"), |fate| fate.answered == 1)
            .await?;
    }
    // The clients stay connected for a minute and do not read; others are served meanwhile. Memory
    // that forty answers need for a moment, to be read and written, is given back within seconds;
    // held memory stays. So the bound has to hold at some moment well within that minute.
    let session = fleet.session(LEGACY).await?;
    for number in 0..50 {
        echo(&session, &format!("beside {number}")).await?;
    }
    let most = 4 * u64::try_from(LONG)?;
    let mut held = u64::MAX;
    let given_back = eventually("what is not held is given back", GIVEN_BACK, async || {
        let memory = fleet.cluster.nodes[0].memory().unwrap_or(u64::MAX);
        held = held.min(memory.saturating_sub(quiet) / u64::try_from(DEAF).unwrap_or(1));
        held < most
    })
    .await;
    given_back.with_context(|| format!("{held} bytes for each of {DEAF}, at most {most}"))?;
    println!("{DEAF} clients that do not read {LONG} bytes each: {held} bytes are held for each");
    for (session, stream, id) in clients {
        drop(stream);
        let mut back = session.resume(&id).await?.stream()?;
        let answer = response(&back.rest().await?)?;
        let padding = answer["result"]["structuredContent"]["padding"].as_str();
        assert_eq!(padding.map(str::len), Some(LONG));
    }
    Ok(())
}
