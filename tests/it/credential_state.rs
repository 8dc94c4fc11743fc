//! Whether the API accepts the credential of a source: tested when it is entered, and seen at each call.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use portolan_tests::{
    console::{Console, text},
    fixture::TOKEN,
    person::Person,
    process::eventually,
    scene::Scene,
    stack::Stack,
    upstream::{Fixture, Upstream},
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(20);

/// The state in the source's own answer. It is the same in the list.
async fn state(console: &Console<'_>, source: &str) -> Result<Value> {
    let path = "/workspaces/harbour/sources";
    let own = console.get(&format!("{path}/{source}")).await?;
    let all = console.get(path).await?;
    let mut listed = all["items"].as_array().context("sources")?.iter();
    let listed = listed.find(|one| one["id"] == source).context("listed")?;
    ensure!(own["credential"] == listed["credential"], "{own} {listed}");
    Ok(own["credential"]["state"].clone())
}

async fn set(console: &Console<'_>, source: &str, credential: Value) -> Result<Value> {
    let path = format!("/workspaces/harbour/sources/{source}/credential");
    console.expect(Method::PUT, &path, Some(credential)).await
}

async fn test(console: &Console<'_>, source: &str) -> Result<Value> {
    let path = format!("/workspaces/harbour/sources/{source}/credential/test");
    console.post(&path, json!({})).await
}

fn demo_key(value: &str) -> Value {
    json!({"kind": "api_key", "in": "header", "name": "X-Api-Key", "value": value})
}

/// REVIEW-UX-FRICTION-4 and REVIEW-UX-FRICTION-5.
#[tokio::test]
async fn friction_5_a_wrong_key_is_refused_when_it_is_entered_and_the_right_one_works() -> Result<()>
{
    let stack = Stack::start()?;
    let ann = Person::sign_up(&stack, "ann").await?;
    let console = ann.console();
    console.create_workspace("harbour").await?;
    let demo = console.get("/me").await?["demo_api"].clone();
    let url = text(&demo, "openapi_url")?;
    let input = json!({"kind": "url", "url": url});
    let new = json!({"name": "Demo", "kind": "openapi", "input": input});
    let source = console.post("/workspaces/harbour/sources", new).await?;
    let source = text(&source, "id")?;
    let path = format!("/workspaces/harbour/sources/{source}/credential/test");
    let (status, refusal) = console.send(Method::POST, &path, Some(json!({}))).await?;
    ensure!(status == StatusCode::CONFLICT, "{status} {refusal}");

    let saved = set(&console, &source, demo_key("wrong")).await?;
    ensure!(saved["state"] == json!({"state": "never_tried"}), "{saved}");
    ensure!(state(&console, &source).await?["state"] == "never_tried");
    let overview = "/workspaces/harbour/overview";
    let refused = async || -> Result<Value> {
        Ok(console.get(overview).await?["refused_credentials"].clone())
    };
    ensure!(refused().await? == json!([]));

    let tested = test(&console, &source).await?;
    let shown = &tested["credential"]["state"];
    ensure!(
        shown["state"] == "refused" && shown["status"] == 401,
        "{tested}"
    );
    ensure!(shown["at"].is_string(), "{tested}");
    ensure!(tested["tool"]["name"].is_string(), "{tested}");
    ensure!(state(&console, &source).await? == *shown);
    let listed = refused().await?;
    ensure!(listed[0]["source_id"] == source.as_str(), "{listed}");
    ensure!(listed[0]["source_name"] == "Demo", "{listed}");
    ensure!(
        listed[0]["status"] == 401 && listed[0]["at"] == shown["at"],
        "{listed}"
    );

    // REVIEW-UX-FRICTION-4: the console knows the key.
    let key = text(&demo, "api_key")?;
    set(&console, &source, demo_key(&key)).await?;
    ensure!(
        state(&console, &source).await?["state"] == "never_tried",
        "another credential"
    );
    ensure!(refused().await? == json!([]), "another credential");
    let tested = test(&console, &source).await?;
    ensure!(
        tested["credential"]["state"]["state"] == "works",
        "{tested}"
    );
    ensure!(state(&console, &source).await? == tested["credential"]["state"]);

    // At another address of the same API the credential stays, and is not tried yet.
    let elsewhere = format!("{}/v2", text(&demo, "base_url")?);
    let path = format!("/workspaces/harbour/sources/{source}");
    let change = Some(json!({"base_url": elsewhere}));
    console.expect(Method::PATCH, &path, change).await?;
    ensure!(state(&console, &source).await?["state"] == "never_tried");
    Ok(())
}

/// A success proves nothing if the API requires no credential, and no operation is called that may
/// change something.
#[tokio::test]
async fn friction_5_a_test_that_shows_nothing_says_why() -> Result<()> {
    let stack = Stack::start()?;
    let ann = Person::sign_up(&stack, "ann").await?;
    let console = ann.console();
    console.create_workspace("harbour").await?;
    let demo = console.get("/me").await?["demo_api"].clone();
    let document = |paths: Value| {
        json!({"openapi": "3.1.0", "info": {"title": "Open", "version": "1"}, "paths": paths})
            .to_string()
    };
    let operation =
        |id: &str| json!({"operationId": id, "responses": {"200": {"description": "Done"}}});
    let mut one = operation("one_booking");
    one["parameters"] =
        json!([{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}]);
    let cases = [
        (
            json!({"/openapi.json": {"get": operation("document")}}),
            "without the credential, too",
        ),
        (
            json!({"/bookings": {"post": operation("book")}, "/bookings/{id}": {"get": one}}),
            "No GET tool",
        ),
        (json!({"/none": {"get": operation("none")}}), "404"),
    ];
    for (paths, why) in cases {
        let new = json!({"name": why, "kind": "openapi", "base_url": demo["base_url"],
                         "input": {"kind": "text", "text": document(paths)}});
        let source = console.post("/workspaces/harbour/sources", new).await?;
        let source = text(&source, "id")?;
        set(&console, &source, demo_key("harbour-demo-key")).await?;
        let tested = test(&console, &source).await?;
        let shown = &tested["credential"]["state"];
        ensure!(shown["state"] == "inconclusive", "{why}: {tested}");
        let reason = shown["reason"].as_str().context("a reason")?;
        ensure!(reason.contains(why), "{why}: {tested}");
        ensure!(tested.get("tool").is_none(), "{why}: {tested}");
    }
    Ok(())
}

#[tokio::test]
async fn friction_5_a_call_that_is_refused_or_succeeds_changes_the_state() -> Result<()> {
    let scene = Scene::new().await?;
    let console = scene.owner.console();
    let source = scene.published.source_id.as_str();
    let tested = test(&console, source).await?;
    ensure!(
        tested["credential"]["state"]["state"] == "works",
        "{tested}"
    );

    let call = async |name: &str| {
        let call = json!({"name": name, "arguments": {}});
        scene.mcp.modern("tools/call", call).await
    };
    let becomes = async |word: &'static str| {
        eventually(word, SOON, async || {
            state(&console, source)
                .await
                .is_ok_and(|shown| shown["state"] == word)
        })
        .await
    };
    // Through MCP.
    scene.fixture.revoke(true);
    let answer = call("search_things").await?;
    ensure!(answer.json["result"]["isError"] == true, "{}", answer.text);
    becomes("refused").await?;
    ensure!(state(&console, source).await?["status"] == 401);
    scene.fixture.revoke(false);
    call("search_things").await?;
    becomes("works").await?;
    // An error of the API that is no refusal changes no state.
    let before = state(&console, source).await?;
    call("broken_answer").await?;
    scene.fixture.revoke(true);

    // By Try it: at once.
    let tools = console
        .get("/workspaces/harbour/tools?query=search_things")
        .await?;
    let tool = text(&tools["items"][0], "id")?;
    let path = format!("/workspaces/harbour/tools/{tool}/try");
    ensure!(state(&console, source).await? == before);
    console.post(&path, json!({"arguments": {}})).await?;
    ensure!(state(&console, source).await?["state"] == "refused");
    scene.fixture.revoke(false);
    console.post(&path, json!({"arguments": {}})).await?;
    ensure!(state(&console, source).await?["state"] == "works");

    // The API is gone.
    drop(scene.fixture);
    eventually("the API is gone", SOON, async || {
        test(&console, source)
            .await
            .is_ok_and(|tested| tested["credential"]["state"]["state"] == "inconclusive")
    })
    .await
}

#[tokio::test]
async fn friction_5_an_mcp_server_that_refuses_the_credential_shows_it() -> Result<()> {
    let upstream = Upstream::start(Fixture::Rmcp)?;
    let stack = Stack::builder().allow_egress(upstream.address()).start()?;
    let ann = Person::sign_up(&stack, "ann").await?;
    let console = ann.console();
    console.create_workspace("harbour").await?;
    let new = json!({"name": "Far", "url": upstream.url(),
                     "credential": {"kind": "bearer", "token": TOKEN}});
    let source = console.post("/workspaces/harbour/upstreams", new).await?;
    ensure!(
        source["credential"]["state"]["state"] == "works",
        "{source}"
    );
    let source = text(&source, "id")?;
    upstream.refuse(Some(StatusCode::UNAUTHORIZED));
    let tested = test(&console, &source).await?;
    let shown = &tested["credential"]["state"];
    ensure!(
        shown["state"] == "refused" && shown["status"] == 401,
        "{tested}"
    );
    ensure!(state(&console, &source).await? == *shown);
    upstream.refuse(None);
    // A look sees it, too.
    let path = format!("/workspaces/harbour/sources/{source}/sync");
    console.post(&path, json!({})).await?;
    ensure!(state(&console, &source).await?["state"] == "works");
    Ok(())
}
