//! An attacker who can write to Redis, and has no keys, can destroy data. Forged data is not
//! accepted, and no node crashes (TEST-S7). Events that were altered, swapped or moved in their log
//! are in `hostile.rs`; answers, in the unit tests of `services/mcp/src/payloads.rs`.

use std::time::Duration;

use anyhow::Result;
use portolan_tests::{
    fleet::Fleet,
    mcp::{LEGACY, Reply},
};
use reqwest::StatusCode;
use serde_json::json;
use tokio::time::timeout;

use super::{Order, echo, is_progress, response};

/// Rings for the one stream that there is, as if the next event had been written. `FORGED` is what stands in for it; `known` the sealed
/// payload of an earlier one.
const BELL: &str = "local function field(s) return #s .. ':' .. s end \
    local meta \
    for _, key in ipairs(redis.call('KEYS', 'pl1:*')) do \
        if string.find(key, '}:m:') then meta = key end \
    end \
    local tag, session, nonce = string.match(meta, '^(pl1:{[^}]*}):m:(%x+):(%x+)$') \
    local h = redis.call('HMGET', meta, 'at', 'ag', 'try', 'tail') \
    local first = redis.call('LINDEX', tag .. ':e:' .. session .. ':' .. nonce, 0) \
    local known = string.sub(first, #string.match(first, '^%d+|%a|') + 1) \
    local tail = string.format('%.0f', tonumber(h[4]) + 1) \
    return redis.call('PUBLISH', 'pl1:d:' .. h[1], 'E' .. field(session) .. field(nonce) .. field(h[2]) .. field(h[3]) .. field(tail) .. FORGED)";

#[tokio::test]
async fn s7_doorbells_that_were_forged_or_repeated_deliver_nothing() -> Result<()> {
    let fleet = Fleet::of(2).await?;
    let session = fleet.session(LEGACY).await?;
    let order = Order::start(&fleet, &fleet.on(0, &session)?, 1).await?;
    let id = order.first_id()?.to_owned();
    let elsewhere = fleet.on(1, &session)?;
    let mut resumed = elsewhere.resume(&id).await?.stream()?;
    let mut events = resumed.until(is_progress).await?;
    let forged = [
        // A notification and an answer without a seal.
        "field('O') .. field('N') .. field('{\"forged\":1}')",
        "field('O') .. field('F') .. field('{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"forged\":1}}')",
        "field('C') .. field('F') .. field('{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"forged\":1}}')",
        "field('O') .. field('N') .. field('')",
        // Something that was sealed, for another number.
        "field('O') .. field('N') .. field(known)",
        "field('C') .. field('F') .. field(known)",
        // Bytes that no node can read.
        "'99999:x'",
        "field('Z') .. field('N') .. field('x')",
    ];
    for some in forged.chunks(4) {
        for forged in some {
            let script = BELL.replace("FORGED", forged);
            let heard = fleet.cluster.redis.command(&["EVAL", &script, "0"]).await?;
            assert_eq!(heard, "1", "one node listens: {forged}");
        }
        // It goes on with what is in the log.
        events.extend(resumed.until(is_progress).await?);
    }
    order.release(&fleet);
    events.extend(resumed.rest().await?);
    for event in events.iter().filter(|event| !event.data.is_empty()) {
        let is_true = is_progress(event) || event.is_response();
        assert!(is_true && !event.data.contains("forged"), "{event:?}");
    }
    let answer = response(&events)?;
    assert_eq!(answer["id"], 1, "{answer}");
    assert_eq!(
        answer["result"]["structuredContent"]["key"], "order-1",
        "{answer}"
    );
    echo(&elsewhere, "as before").await
}

/// Longest wait for an answer about a broken record.
const MOMENT: Duration = Duration::from_millis(700);

#[tokio::test]
async fn s7_garbage_in_place_of_any_record_crashes_no_node_and_is_shown_to_nobody() -> Result<()> {
    let fleet = Fleet::of(2).await?;
    let session = fleet.session(LEGACY).await?;
    let mut order = Order::start(&fleet, &fleet.on(0, &session)?, 1).await?;
    for kind in ["e", "x", "f", "o", "m", "s"] {
        // Of the wrong type, and short enough to be half of a record.
        let script = format!(
            "local count = 0 \
             for _, key in ipairs(redis.call('KEYS', 'pl1:*')) do \
                 if string.find(key, '}}:{kind}:') then \
                     redis.call('SET', key, 'Agarbage') count = count + 1 \
                 end \
             end \
             return count"
        );
        let count = fleet.cluster.redis.command(&["EVAL", &script, "0"]).await?;
        assert_ne!(count, "0", "{kind}: there is something to spoil");
        for node in 0..2 {
            let own = fleet.on(node, &session)?;
            let answer = own.request("ping", json!({})).await?;
            assert!(
                matches!(
                    answer.status,
                    StatusCode::OK | StatusCode::NOT_FOUND | StatusCode::SERVICE_UNAVAILABLE
                ),
                "{kind}: {} {}",
                answer.status,
                answer.text
            );
            assert!(!answer.text.contains("garbage"), "{kind}: {}", answer.text);
            let resumed = timeout(MOMENT, own.resume(order.first_id()?)).await;
            if let Ok(Ok(Reply::Stream(mut stream))) = resumed {
                while let Ok(Ok(Some(event))) = timeout(MOMENT, stream.next()).await {
                    assert!(!event.data.contains("garbage"), "{kind}: {event:?}");
                }
            }
            // A new client is served.
            let fresh = fleet.on(node, &fleet.session(LEGACY).await?)?;
            echo(&fresh, &format!("beside {kind}")).await?;
        }
    }
    order.release(&fleet);
    if let Ok(Ok(rest)) = timeout(MOMENT, order.stream.rest()).await {
        assert!(rest.iter().all(|event| !event.data.contains("garbage")));
    }
    for node in &fleet.cluster.nodes {
        let output = node.output();
        assert!(!output.contains("panicked"), "{}: {output}", node.name);
    }
    Ok(())
}
