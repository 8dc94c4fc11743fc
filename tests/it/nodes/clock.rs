//! A node whose clock is five minutes wrong (TEST-F13; AUTH-4.7): it serves no request until the
//! clock is right, and invalidates no token.

use std::{io::ErrorKind, time::Duration};

use anyhow::Result;
use portolan_tests::{fleet::Fleet, mcp::LEGACY, oauth::tokens, process::eventually};
use reqwest::StatusCode;
use tokio::net::TcpStream;

use super::{Order, echo, response};

#[tokio::test]
async fn f13_a_node_whose_clock_is_wrong_answers_503_and_never_401() -> Result<()> {
    let mut fleet = Fleet::of(2).await?;
    let session = fleet.session(LEGACY).await?;
    let order = Order::start(&fleet, &fleet.on(0, &session)?, 11).await?;
    let from = order.first_id()?.to_owned();
    for seconds in [300, -300] {
        // One that only begins takes no connection: not every balancer asks who is ready.
        let node = &mut fleet.cluster.nodes[1];
        node.kill()?;
        node.set_clock(seconds)?;
        node.start()?;
        node.refuses("clock").await?;
        let refused = TcpStream::connect(node.address()).await;
        let refused = refused.map_err(|error| error.kind());
        assert_eq!(refused.err(), Some(ErrorKind::ConnectionRefused));
        // An operator sets it right.
        node.set_clock(0)?;
        node.ready().await?;
        echo(&fleet.on(1, &session)?, "served here").await?;
        // It goes wrong while the node serves.
        let node = &mut fleet.cluster.nodes[1];
        node.set_clock(seconds)?;
        node.refuses("clock").await?;
        // A good token, a session that lives, and an event that another node can deliver.
        let wrong = fleet.on(1, &session)?;
        let called = wrong.request("tools/list", serde_json::json!({})).await?;
        assert_eq!(called.status, StatusCode::SERVICE_UNAVAILABLE, "{seconds}");
        assert!(!called.header("retry-after").is_empty());
        assert!(called.header("www-authenticate").is_empty(), "{seconds}");
        let resumed = wrong.resume(&from).await?.whole()?;
        assert_eq!(resumed.status, StatusCode::SERVICE_UNAVAILABLE, "{seconds}");
        // The others go on, and what it stands on is not what is wrong.
        echo(&fleet.on(0, &session)?, "served elsewhere").await?;
        let (_, said) = fleet.cluster.nodes[1].readiness().await?;
        assert!(said.contains("redis: ok"), "{said}");
        let node = &mut fleet.cluster.nodes[1];
        node.set_clock(0)?;
        node.ready().await?;
        echo(&fleet.on(1, &session)?, "served again").await?;
    }
    let mut back = fleet.on(1, &session)?.resume(&from).await?.stream()?;
    order.release(&fleet);
    response(&back.rest().await?)?;
    Ok(())
}

#[tokio::test]
async fn f13_an_issuer_whose_clock_is_wrong_signs_nothing() -> Result<()> {
    let mut fleet = Fleet::of(1).await?;
    let session = fleet.session(LEGACY).await?;
    let auth = &mut fleet.cluster.auth;
    auth.kill()?;
    auth.set_clock(300)?;
    auth.start()?;
    auth.refuses("clock").await?;
    let refused = fleet.client.refresh(&fleet.tokens.refresh).await?;
    let (status, body) = (refused.status(), refused.text().await?);
    // Its own words or those of the balancer, which has seen that it is not ready.
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{body}");
    assert!(!body.contains("invalid_"), "AUTH-T7: {body}");
    echo(&session, "tokens that are there are good").await?;
    fleet.cluster.auth.set_clock(0)?;
    fleet.cluster.auth.ready().await?;
    let mut fresh = None;
    eventually("a token is signed", Duration::from_secs(30), async || {
        if let Ok(answer) = fleet.client.refresh(&fleet.tokens.refresh).await {
            fresh = tokens(answer).await.ok();
        }
        fresh.is_some()
    })
    .await?;
    let token = fresh.map(|fresh| fresh.access).unwrap_or_default();
    echo(&session.with_token(&token)?, "with the new one").await
}
