//! The document and the routes say the same.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{Request, StatusCode};
use http_body_util::BodyExt;
use portolan_demo_api::{API_KEY, API_KEY_HEADER, OPENAPI, document, router};
use serde_json::{Value, json};
use tower::ServiceExt;

const VERBS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

fn spec() -> Value {
    serde_json::from_str(OPENAPI).unwrap()
}

async fn send(
    router: &Router,
    method: &str,
    path: &str,
    body: Option<Value>,
) -> (StatusCode, String, Bytes) {
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header(API_KEY_HEADER, API_KEY);
    let body = match body {
        Some(json) => {
            request = request.header("content-type", "application/json");
            Body::from(json.to_string())
        }
        None => Body::empty(),
    };
    let answer = router
        .clone()
        .oneshot(request.body(body).unwrap())
        .await
        .unwrap();
    let kind = answer
        .headers()
        .get("content-type")
        .map_or("", |kind| kind.to_str().unwrap())
        .to_owned();
    let status = answer.status();
    (
        status,
        kind,
        answer.into_body().collect().await.unwrap().to_bytes(),
    )
}

async fn ask(router: &Router, path: &str) -> Value {
    let (status, _, body) = send(router, "GET", path, None).await;
    assert_eq!(status, 200, "{path}: {}", String::from_utf8_lossy(&body));
    serde_json::from_slice(&body).unwrap()
}

/// A call of each operation that should succeed (or fail as asked), with the status that the document promises first.
fn example_call(operation: &str) -> (&'static str, Option<Value>) {
    match operation {
        "listPorts" => (
            "/ports?country=NO&facilities=ferry&facilities=cruise&min_draught_m=5.5&limit=3",
            None,
        ),
        "getPort" => ("/ports/NOBGO", None),
        "getTides" => ("/ports/FRLEH/tides?date=2026-11-21&units=feet", None),
        "listBerths" => (
            "/ports/DEHAM/berths?free_on=2026-11-21&min_length_m=200&shore_power=true",
            None,
        ),
        "getChart" => ("/ports/USSEA/chart", None),
        "searchShips" => (
            "/ships?name=star&kind=bulk_carrier&length%5Bmin%5D=100&length%5Bmax%5D=300",
            None,
        ),
        "getShip" => ("/ships/9300001", None),
        "listBookings" => ("/bookings?port_id=NOBGO", None),
        "createBooking" => (
            "/bookings",
            Some(
                json!({ "berth_id": "NOBGO-JEK", "ship_imo": 9_300_013, "arrival": "2026-12-05", "departure": "2026-12-06" }),
            ),
        ),
        "getBooking" | "cancelBooking" => ("/bookings/BK-1001", None),
        "getNotices" => ("/notices", None),
        "waitForPilot" => ("/pilot?seconds=0", None),
        "signalFailure" => ("/failures?status=409", None),
        other => panic!("{other} has no example here"),
    }
}

#[tokio::test]
async fn every_documented_operation_answers_with_a_documented_status_and_content_type() {
    let spec = spec();
    let mut seen = BTreeSet::new();
    for (path, item) in spec["paths"].as_object().unwrap() {
        for verb in VERBS {
            let operation = &item[verb];
            let Some(id) = operation["operationId"].as_str() else {
                continue;
            };
            assert!(seen.insert(id.to_owned()), "{id} stands twice");
            assert!(
                operation["summary"].is_string() && operation["description"].is_string(),
                "{id}"
            );
            let router = router();
            let (ship, berth) = (9_300_025, "NOBGO-SKO");
            let booking = json!({ "berth_id": berth, "ship_imo": ship, "arrival": "2026-12-01", "departure": "2026-12-02", "services": ["pilot"] });
            assert_eq!(
                send(&router, "POST", "/bookings", Some(booking)).await.0,
                201
            );
            let (target, body) = example_call(id);
            let (status, kind, _) = send(&router, &verb.to_uppercase(), target, body).await;
            let documented = &operation["responses"][status.as_str()];
            assert!(documented.is_object(), "{id} answered {status}");
            assert!(
                status.is_success() || id == "signalFailure",
                "{id}: {status}"
            );
            if status.is_success() {
                match documented["content"].as_object() {
                    None => assert_eq!(kind, "", "{id}"),
                    Some(content) => {
                        assert!(content.keys().any(|k| kind.starts_with(k)), "{id}: {kind}");
                    }
                }
            }
            let (status, _, _) = send(&router, "PROPFIND", target, None).await;
            assert_eq!(status, 405, "{path}");
        }
    }
    assert_eq!(seen.len(), 14);
}

#[tokio::test]
async fn no_verb_answers_that_is_not_documented() {
    let spec = spec();
    for (path, item) in spec["paths"].as_object().unwrap() {
        let target = path
            .replace("{port_id}", "NOBGO")
            .replace("{imo}", "9300001")
            .replace("{booking_id}", "BK-1");
        for verb in VERBS {
            let (status, _, _) = send(&router(), &verb.to_uppercase(), &target, None).await;
            assert_eq!(
                status == 405,
                item[verb].is_null(),
                "{verb} {path}: {status}"
            );
        }
    }
}

#[tokio::test]
async fn every_operation_wants_the_key_and_the_document_says_which() {
    let spec = spec();
    assert_eq!(
        spec["components"]["securitySchemes"]["harbourKey"]["name"],
        API_KEY_HEADER
    );
    assert!(
        spec["info"]["description"]
            .as_str()
            .unwrap()
            .contains(API_KEY)
    );
    for path in spec["paths"].as_object().unwrap().keys() {
        for key in [None, Some("wrong")] {
            let mut request = Request::builder().uri(path.replace(['{', '}'], ""));
            if let Some(key) = key {
                request = request.header(API_KEY_HEADER, key);
            }
            let answer = router()
                .oneshot(request.body(Body::empty()).unwrap())
                .await
                .unwrap();
            assert_eq!(answer.status(), 401, "{path}");
            assert_eq!(answer.headers()["content-type"], "application/problem+json");
        }
    }
}

#[tokio::test]
async fn references_of_the_document_lead_somewhere() {
    fn walk(all: &Value, at: &Value) {
        match at {
            Value::Object(map) => {
                if let Some(reference) = map.get("$ref").and_then(Value::as_str) {
                    assert!(all.pointer(&reference[1..]).is_some(), "{reference}");
                }
                map.values().for_each(|value| walk(all, value));
            }
            Value::Array(items) => items.iter().for_each(|value| walk(all, value)),
            _ => {}
        }
    }
    walk(&spec(), &spec());
}

#[tokio::test]
async fn the_document_names_the_server_that_it_was_fetched_from() {
    let fetched = |host: &'static str| async move {
        let request = Request::builder()
            .uri("/openapi.json")
            .header("host", host)
            .body(Body::empty())
            .unwrap();
        let answer = router().oneshot(request).await.unwrap();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        serde_json::from_slice::<Value>(&body).unwrap()["servers"][0]["url"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(fetched("127.0.0.1:4711").await, "http://127.0.0.1:4711");
    assert_eq!(fetched("a\"b").await, "http://127.0.0.1:8090");
    assert!(document("https://demo.example").contains("https://demo.example"));
}

#[tokio::test]
async fn a_berth_is_booked_once_for_a_day_and_only_for_ships_that_fit() {
    let router = router();
    let wish = |berth: &str, ship: u32, from: &str, to: &str| json!({ "berth_id": berth, "ship_imo": ship, "arrival": from, "departure": to });
    let (status, _, body) = send(
        &router,
        "POST",
        "/bookings",
        Some(wish("NOBGO-SKO", 9_300_025, "2026-12-01", "2026-12-03")),
    )
    .await;
    assert_eq!(status, 201);
    let booking: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(
        (&booking["ship_name"], &booking["port_id"]),
        (&json!("Adriatic Pearl"), &json!("NOBGO"))
    );
    for (wish, expected) in [
        (
            wish("NOBGO-SKO", 9_300_013, "2026-12-03", "2026-12-04"),
            409,
        ),
        (
            wish("NOBGO-BRY", 9_300_025, "2026-12-10", "2026-12-11"),
            409,
        ),
        (
            wish("NOBGO-XXX", 9_300_025, "2026-12-10", "2026-12-11"),
            422,
        ),
        (wish("NOBGO-SKO", 1, "2026-12-10", "2026-12-11"), 422),
        (
            wish("NOBGO-SKO", 9_300_013, "2026-12-11", "2026-12-10"),
            422,
        ),
        (wish("NOBGO-SKO", 9_300_013, "tomorrow", "2026-12-10"), 422),
        (json!({ "berth_id": "NOBGO-SKO" }), 422),
        (json!([]), 422),
    ] {
        assert_eq!(
            send(&router, "POST", "/bookings", Some(wish.clone()))
                .await
                .0,
            expected,
            "{wish}"
        );
    }
    let free = ask(&router, "/ports/NOBGO/berths?free_on=2026-12-02").await;
    assert!(
        !free["items"]
            .as_array()
            .unwrap()
            .iter()
            .any(|berth| berth["id"] == "NOBGO-SKO")
    );
    let path = format!("/bookings/{}", booking["id"].as_str().unwrap());
    assert_eq!(send(&router, "DELETE", &path, None).await.0, 204);
    assert_eq!(send(&router, "DELETE", &path, None).await.0, 404);
    let free = ask(&router, "/ports/NOBGO/berths?free_on=2026-12-02").await;
    assert!(
        free["items"]
            .as_array()
            .unwrap()
            .iter()
            .any(|berth| berth["id"] == "NOBGO-SKO")
    );
}

#[tokio::test]
async fn filters_and_units_do_what_the_document_says() {
    let router = router();
    let ports = ask(&router, "/ports?facilities=oil&facilities=dry_dock").await;
    let names: Vec<_> = ports["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|port| port["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["Rotterdam", "Singapore"]);
    assert_eq!(
        send(&router, "GET", "/ports?facilities=airport", None)
            .await
            .0,
        400
    );
    assert_eq!(send(&router, "GET", "/ports?limit=0", None).await.0, 400);
    let ships = ask(&router, "/ships?length%5Bmin%5D=390").await;
    assert_eq!(ships["items"][0]["name"], "Lion City Bridge");
    let tides = ask(&router, "/ports/FRLEH/tides?date=2026-11-21").await;
    let extremes = tides["extremes"].as_array().unwrap();
    assert!((3..=4).contains(&extremes.len()), "{tides}");
    assert!(
        extremes
            .windows(2)
            .all(|pair| pair[0]["kind"] != pair[1]["kind"]
                && pair[0]["time"].as_str() < pair[1]["time"].as_str())
    );
    assert!(
        extremes
            .iter()
            .all(|e| (e["kind"] == "high") == (e["height"].as_f64().unwrap() > 3.0)),
        "{tides}"
    );
    assert_eq!(
        send(&router, "GET", "/ports/FRLEH/tides?date=2026-02-30", None)
            .await
            .0,
        400
    );
    assert_eq!(send(&router, "GET", "/pilot?seconds=11", None).await.0, 400);
}

#[tokio::test]
async fn charts_are_png_files_that_differ_from_port_to_port() {
    let (_, _, bergen) = send(&router(), "GET", "/ports/NOBGO/chart", None).await;
    let (_, _, dover) = send(&router(), "GET", "/ports/GBDVR/chart", None).await;
    assert!(bergen.starts_with(b"\x89PNG\r\n\x1a\n") && bergen.ends_with(b"IEND\xaeB`\x82"));
    assert_ne!(bergen, dover);
}
