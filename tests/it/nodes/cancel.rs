//! A cancellation finds the call wherever it runs (STREAM-14).

use anyhow::Result;
use portolan_tests::{fleet::Fleet, mcp::LEGACY};
use reqwest::StatusCode;
use serde_json::json;

use super::{Order, echo};

#[tokio::test]
async fn c8_a_cancel_on_another_node_stops_the_call_and_its_outgoing_request() -> Result<()> {
    let fleet = Fleet::of(2).await?;
    let session = fleet.session(LEGACY).await?;
    let mut order = Order::start(&fleet, &fleet.on(0, &session)?, 21).await?;
    let mut beside = Order::start(&fleet, &fleet.on(0, &session)?, 22).await?;
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 21, "reason": "enough"}});
    let answer = fleet.on(1, &session)?.message(&cancel).await?;
    assert_eq!(answer.status, StatusCode::ACCEPTED);
    fleet.fixture.held.given_up("order-21", 1).await?;
    let rest = order.stream.rest().await?;
    assert!(
        rest.iter().all(|event| !event.is_response()),
        "no response after a cancel: {rest:?}"
    );
    // Only that one.
    assert_eq!(fleet.fixture.held.fate("order-22").given_up, 0);
    beside.release(&fleet);
    super::response(&beside.stream.rest().await?)?;
    Ok(())
}

#[tokio::test]
async fn s1_nobody_cancels_the_call_of_another_session() -> Result<()> {
    let fleet = Fleet::of(2).await?;
    let (session, other) = (fleet.session(LEGACY).await?, fleet.session(LEGACY).await?);
    let mut order = Order::start(&fleet, &fleet.on(0, &session)?, 31).await?;
    for request in [json!(31), json!("31"), json!(32)] {
        let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request}});
        let client = if request == 31 { &other } else { &session };
        let answer = fleet.on(1, client)?.message(&cancel).await?;
        assert_eq!(answer.status, StatusCode::ACCEPTED, "{request}");
    }
    echo(&fleet.on(0, &session)?, "and the call runs on").await?;
    order.release(&fleet);
    super::response(&order.stream.rest().await?)?;
    assert_eq!(fleet.fixture.held.fate("order-31").given_up, 0);
    Ok(())
}

#[tokio::test]
async fn a_client_that_only_goes_away_cancels_in_the_stateless_era_alone() -> Result<()> {
    let fleet = Fleet::of(1).await?;
    let session = fleet.session(LEGACY).await?;
    let order = Order::start(&fleet, &session, 41).await?;
    let id = order.first_id()?.to_owned();
    drop(order.stream);

    let params = json!({"name": "held_order", "arguments": {"key": "modern"}});
    let client = fleet.mcp.modern_client("tools/call", &params)?;
    let mut message = portolan_tests::mcp::modern_message("tools/call", params);
    message["params"]["_meta"]["progressToken"] = json!("p");
    let stream = client.start(&message).await?.stream()?;
    fleet.fixture.held.arrived("modern", 1).await?;
    drop(stream);
    fleet.fixture.held.given_up("modern", 1).await?;

    assert_eq!(
        fleet.fixture.held.fate("order-41").given_up,
        0,
        "STREAM-6.5"
    );
    fleet.fixture.held.release("order-41");
    let mut back = session.resume(&id).await?.stream()?;
    super::response(&back.rest().await?)?;
    Ok(())
}
