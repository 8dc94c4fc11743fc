//! Clients without a token, or from a page of another origin (TEST-B9; TEST-S10).

use std::time::Duration;

use anyhow::{Result, ensure};
use futures_util::{StreamExt, TryStreamExt, stream};
use portolan_tests::{
    cluster::Cluster,
    fleet::Fleet,
    mcp::{LEGACY, McpClient},
    raw,
};
use reqwest::StatusCode;
use serde_json::{Value, json};

use super::{echo, price::sent};

/// Requests of a flood.
const FLOOD: usize = 3_000;

fn initialize() -> Value {
    let client = json!({"name": "flood", "version": "1"});
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": client}})
}

/// Names of everything that Redis keeps of sessions, their streams, requests and questions.
async fn kept(fleet: &Fleet) -> Result<String> {
    let script = "local all = {} \
        for _, key in ipairs(redis.call('KEYS', 'pl1:*')) do \
            if string.find(key, '}:[smexfqkr]:') then all[#all + 1] = key end \
        end \
        table.sort(all) return table.concat(all, ' ')";
    fleet.cluster.redis.command(&["EVAL", script, "0"]).await
}

/// TEST-B9. Beyond the limit of its address a stranger gets 429; here there is no limit, so that
/// every answer is checked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b9_a_flood_of_initialize_without_a_good_token_stores_nothing() -> Result<()> {
    let builder = Cluster::builder()
        .nodes(1)
        .setting("address_requests_per_minute", 0);
    let fleet = Fleet::with(builder).await?;
    let session = fleet.on(0, &fleet.session(LEGACY).await?)?;
    let id = session.header("mcp-session-id").unwrap_or_default();
    let nobody = fleet.on(0, &McpClient::new(&fleet.published.url)?)?;
    let token = &fleet.tokens.access;
    let signature = token.len() - 20;
    let forged = format!("{}{}", &token[..signature], "A".repeat(20));
    let strangers = [
        (nobody.clone(), StatusCode::UNAUTHORIZED),
        (
            nobody.clone().with_token("nonsense")?,
            StatusCode::UNAUTHORIZED,
        ),
        (
            nobody.clone().with_token(&forged)?,
            StatusCode::UNAUTHORIZED,
        ),
        // With the session of another caller, which no token of theirs opens.
        (
            nobody.with_token(&forged)?.with("mcp-session-id", id)?,
            StatusCode::UNAUTHORIZED,
        ),
        // With a good token, and a session that was never made.
        (
            session
                .clone()
                .with("mcp-session-id", &"A".repeat(id.len()))?,
            StatusCode::NOT_FOUND,
        ),
    ];
    let before = kept(&fleet).await?;
    ensure!(!before.is_empty(), "the session is there");
    let (initialize, ping) = (
        initialize(),
        json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}),
    );
    let busy = sent(&fleet, async || {
        let requests = (0..FLOOD).map(|number| {
            let (client, expected) = &strangers[number % strangers.len()];
            let is_unknown = *expected == StatusCode::NOT_FOUND;
            let message = if is_unknown { &ping } else { &initialize };
            async move {
                let answer = client.message(message).await?;
                ensure!(
                    answer.status == *expected,
                    "{number}: {} {}",
                    answer.status,
                    answer.text
                );
                anyhow::Ok(())
            }
        });
        let all = stream::iter(requests).buffer_unordered(16);
        all.try_collect::<Vec<()>>().await.map(|_| ())
    })
    .await?;
    println!(
        "{FLOOD} strangers in {:?}: {} leases",
        busy.took, busy.leases
    );
    assert!(
        busy.sessions.is_empty() && busy.beside.is_empty(),
        "{busy:#?}"
    );
    // One bucket is asked for: that of the person whose token was good.
    assert!(
        busy.leases
            <= 100 * usize::try_from(busy.took.max(Duration::from_secs(1)).as_secs())? + 100,
        "{} leases in {:?}",
        busy.leases,
        busy.took
    );
    assert_eq!(kept(&fleet).await?, before, "something was stored");
    echo(&session, "as before").await
}

/// TEST-S10; DNS rebinding is a foreign name in `Host`, and the page's own origin.
#[tokio::test]
async fn s10_foreign_hosts_and_origins_are_refused_in_every_spelling() -> Result<()> {
    let fleet = Fleet::of(1).await?;
    let session = fleet.on(0, &fleet.session(LEGACY).await?)?;
    let own = raw::host(&session)?;
    let port = own.rsplit_once(':').map_or("80", |(_, port)| port);
    let request = raw::post(
        &session,
        &json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}),
    )?;
    let status = async |request: &str| -> Result<u16> {
        let answer = raw::ask(&session, request).await?;
        Ok(answer.map_or(0, |answer| answer.status.as_u16()))
    };
    let line = format!("host: {own}\r\n");
    ensure!(request.contains(&line) && status(&request).await? == 200);
    for host in [
        "evil.example".to_owned(),
        format!("evil.example:{port}"),
        format!("localhost:{port}"),
        format!("[::1]:{port}"),
        format!("{own}.evil.example"),
        format!("evil.example@{own}"),
        format!("{own}, evil.example"),
        "127.0.0.1".to_owned(),
        format!("127.0.0.1.:{port}"),
        format!("2130706433:{port}"),
        format!("0x7f000001:{port}"),
        format!("0{own}"),
        String::new(),
    ] {
        let foreign = request.replacen(&line, &format!("host: {host}\r\n"), 1);
        assert_eq!(status(&foreign).await?, 421, "Host: {host}");
    }
    let twice = request.replacen(&line, &format!("{line}host: evil.example\r\n"), 1);
    assert_eq!(status(&twice).await?, 400, "two hosts");
    assert_eq!(status(&request.replacen(&line, "", 1)).await?, 400, "none");
    let elsewhere = request.replacen("POST /", "POST http://evil.example/", 1);
    assert_eq!(status(&elsewhere).await?, 421, "an absolute target");
    for told in ["x-forwarded-host", "x-host", "forwarded"] {
        let told = request.replacen(&line, &format!("{line}{told}: host=evil.example\r\n"), 1);
        assert_eq!(status(&told).await?, 200, "nobody asks these");
    }
    let listening = format!("{}\r\n", raw::head(&session, "GET")?);
    for origin in [
        "null".to_owned(),
        "http://evil.example".to_owned(),
        format!("http://evil.example:{port}"),
        format!("https://{own}"),
        "http://127.0.0.1".to_owned(),
        "http://127.0.0.1:1".to_owned(),
        format!("http://{own}/"),
        format!("http://{own}.evil.example"),
        format!("HTTP://{own}"),
        "file://".to_owned(),
        "chrome-extension://abcdefghijklmnop".to_owned(),
        format!("http://{own} http://evil.example"),
        String::new(),
    ] {
        for request in [&request, &listening] {
            let from = request.replacen(&line, &format!("{line}origin: {origin}\r\n"), 1);
            assert_eq!(status(&from).await?, 403, "Origin: {origin}");
        }
    }
    let both = format!("{line}origin: http://{own}\r\norigin: http://evil.example\r\n");
    assert_eq!(status(&request.replacen(&line, &both, 1)).await?, 403);
    let ours = format!("{line}origin: http://{own}\r\n");
    assert_eq!(status(&request.replacen(&line, &ours, 1)).await?, 200);
    echo(&session, "as before").await
}
