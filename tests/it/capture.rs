//! Arguments and answers of calls: kept by policy, masked, sealed, and revealed with an entry in the
//! audit log (CAPTURE-1 to CAPTURE-8).

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use axum::{Router, routing::post};
use portolan_tests::{
    fixture::FixtureApi,
    mcp::{LEGACY, McpClient},
    oauth::OAuthClient,
    person::Person,
    process::eventually,
    scene::Scene,
    sql::Sql,
    stack::Stack,
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinSet};

const SOON: Duration = Duration::from_secs(20);

/// A node writes four times a second.
const WRITTEN: Duration = Duration::from_secs(2);

/// A word of an ordinary argument: kept, and sealed.
const MARKER: &str = "ordinary-word-of-an-argument-4711";

/// Messages for the echo, and what may be found nowhere.
fn planted() -> Vec<(String, &'static str)> {
    let pem =
        "-----BEGIN PRIVATE KEY-----\nMIIEplantedprivatekey0123456789\n-----END PRIVATE KEY-----";
    let sentences = [
        (
            "Authorization: Bearer planted-bearer-0123456789",
            "planted-bearer-0123456789",
        ),
        (
            "ghp_plantedgithub0123456789abcdefghij",
            "plantedgithub0123456789",
        ),
        (pem, "MIIEplantedprivatekey"),
        (
            "eyJhbGciOiJub25lIn0.eyJwbGFudGVkIjoxfQ.cGxhbnRlZC1qd3Q",
            "cGxhbnRlZC1qd3Q",
        ),
        ("the card 4111 1111 1111 1111", "4111 1111 1111 1111"),
        ("write to planted.person@mail.example", "planted.person"),
    ];
    let deep = json!({"client_secret": "planted-secret-0123"}).to_string();
    let objects = [
        (
            json!({"note": MARKER, "password": "planted-password-0123"}),
            "planted-password-0123",
        ),
        (json!({"note": MARKER, "body": deep}), "planted-secret-0123"),
    ];
    let sentences = sentences.map(|(text, secret)| (format!("{text} {MARKER}"), secret));
    let objects = objects.map(|(object, secret)| (object.to_string(), secret));
    sentences.into_iter().chain(objects).collect()
}

/// A receiver of webhooks that keeps what it gets.
async fn receiver(tasks: &mut JoinSet<()>) -> Result<(SocketAddr, Arc<Mutex<String>>)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let kept = Arc::<Mutex<String>>::default();
    let shared = Arc::clone(&kept);
    let router = Router::new().route(
        "/hook",
        post(move |body: String| async move {
            if let Ok(mut kept) = shared.lock() {
                kept.push_str(&body);
            }
            StatusCode::OK
        }),
    );
    tasks.spawn(async move {
        let _ended = axum::serve(listener, router).await;
    });
    Ok((address, kept))
}

/// A scene with the most detailed log, whose webhooks may be sent to this address.
async fn logged_scene(hook: SocketAddr) -> Result<Scene> {
    let fixture = FixtureApi::start()?;
    let allowed = format!("{},{hook}", fixture.address());
    let builder = Stack::builder().setting("log_filter", "trace");
    let stack = builder.setting("egress_allow", allowed).start()?;
    let owner = Person::sign_up(&stack, "ann").await?;
    let published = owner.console().publish_fixture("harbour", &fixture).await?;
    let client = OAuthClient::register(stack.url(), "Harness").await?;
    let tokens = client.authorize(&owner, &published.url).await?;
    let mcp = McpClient::new(&published.url)?.with_token(&tokens.access)?;
    Ok(Scene {
        fixture,
        stack,
        owner,
        published,
        client,
        tokens,
        mcp,
    })
}

async fn sql(stack: &Stack) -> Result<Sql> {
    let socket = stack.data().join("postgres/socket");
    let mut sql = Sql::connect(&socket, "postgres", "portolan").await?;
    sql.ask("reset role").await?;
    Ok(sql)
}

/// Every row of every table, as text.
async fn dump(stack: &Stack) -> Result<String> {
    let mut sql = sql(stack).await?;
    let tables = sql
        .ask("select format('%I.%I', nspname, relname) from pg_class c join pg_namespace n on n.oid = relnamespace
               where relkind = 'r' and nspname in ('public', 'partitions')")
        .await?;
    ensure!(tables.len() > 80, "{} tables", tables.len());
    let mut dump = String::new();
    for table in tables.into_iter().flatten() {
        for row in sql.ask(&format!("select t::text from {table} t")).await? {
            dump.push_str(&row.join(" "));
            dump.push('\n');
        }
    }
    Ok(dump)
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

async fn set(scene: &Scene, policy: Value) -> Result<Value> {
    let path = format!(
        "/workspaces/harbour/servers/{}/capture",
        scene.published.server_id
    );
    scene
        .owner
        .console()
        .expect(Method::PUT, &path, Some(policy))
        .await
}

/// Calls a tool once the node knows the policy; the id of the call.
async fn call(scene: &Scene, tool: &str, arguments: Value) -> Result<String> {
    let (session, _) = scene.mcp.initialize(LEGACY).await?;
    let params = json!({"name": tool, "arguments": arguments});
    let answer = session.request("tools/call", params).await?;
    let id = answer.json["result"]["_meta"]["io.github.portolan/callId"].as_str();
    Ok(id.with_context(|| answer.text.clone())?.to_owned())
}

async fn detail(scene: &Scene, id: &str) -> Result<Value> {
    scene
        .owner
        .console()
        .get(&format!("/workspaces/harbour/calls/{id}"))
        .await
}

/// A call whose content is kept. A node learns of a policy within a moment.
async fn kept(scene: &Scene, tool: &str, arguments: &Value) -> Result<String> {
    let mut id = String::new();
    eventually("a call is kept", SOON, async || {
        let Ok(made) = call(scene, tool, arguments.clone()).await else {
            return false;
        };
        id = made;
        let written = eventually("its content", WRITTEN, async || {
            let seen = detail(scene, &id).await;
            seen.is_ok_and(|seen| seen["content_until"].is_string())
        });
        written.await.is_ok()
    })
    .await?;
    Ok(id)
}

async fn reveal(scene: &Scene, id: &str) -> Result<Value> {
    scene
        .owner
        .console()
        .post(&format!("/workspaces/harbour/calls/{id}/reveal"), json!({}))
        .await
}

/// Rule: CAPTURE-4, CAPTURE-5, CAPTURE-8.
#[tokio::test]
async fn planted_secrets_stand_nowhere_and_content_behind_reveal() -> Result<()> {
    let mut tasks = JoinSet::new();
    let (address, hooks) = receiver(&mut tasks).await?;
    let scene = logged_scene(address).await?;
    let console = scene.owner.console();
    let types = console.get("/workspaces/harbour/event-types").await?;
    let types = types["items"].as_array().context("types")?;
    let types: Vec<&Value> = types.iter().map(|one| &one["name"]).collect();
    let hook = json!({"url": format!("http://{address}/hook"), "events": types});
    console.post("/workspaces/harbour/webhooks", hook).await?;
    set(&scene, json!({"policy": "all", "days": 3})).await?;

    let mut ids = Vec::new();
    for (message, _) in planted() {
        ids.push(kept(&scene, "echo_message", &json!({"message": message})).await?);
    }
    for (id, (message, secret)) in ids.iter().zip(planted()) {
        let content = reveal(&scene, id).await?;
        let text = content.to_string();
        ensure!(text.contains(MARKER), "{text}");
        ensure!(
            text.contains("••••") && !text.contains(secret),
            "{message}: {text}"
        );
        for part in ["arguments", "answer"] {
            ensure!(content[part]["masked"].as_u64() > Some(0), "{part}: {text}");
            let json: Value =
                serde_json::from_str(content[part]["text"].as_str().context("a text")?)?;
            ensure!(json.is_object());
        }
    }
    // Each reveal is one entry, which names the call and nothing of it.
    let audit = console.get("/workspaces/harbour/audit").await?.to_string();
    ensure!(
        audit.matches("call.revealed").count() == ids.len(),
        "{audit}"
    );
    ensure!(ids.iter().all(|id| audit.contains(id.as_str())));

    let mut exports = String::new();
    for format in ["csv", "jsonl"] {
        let path = format!("/api/v1/workspaces/harbour/calls/export?format={format}");
        let request = scene.owner.browser.fetch(Method::GET, &path)?;
        exports.push_str(&request.send().await?.error_for_status()?.text().await?);
    }
    ensure!(exports.contains("echo_message"));
    console
        .post("/workspaces/harbour/api-keys", json!({"name": "CI"}))
        .await?;
    eventually("a webhook arrives", SOON, async || {
        hooks.lock().is_ok_and(|kept| kept.contains("key.created"))
    })
    .await?;
    let hooks = hooks
        .lock()
        .map_err(|_| anyhow::anyhow!("poisoned"))?
        .clone();
    let places = [
        ("database", dump(&scene.stack).await?),
        ("log", scene.stack.log()),
        ("exports", exports),
        ("webhooks", hooks),
        ("audit log", audit),
    ];
    for (place, text) in &places {
        ensure!(!text.is_empty(), "{place}");
        for secret in planted()
            .into_iter()
            .map(|(_, secret)| secret)
            .chain([MARKER])
        {
            let found = text.contains(secret) || text.contains(&hex(secret));
            ensure!(!found, "{place} has {secret}");
        }
    }
    Ok(())
}

/// Rule: CAPTURE-1, CAPTURE-2.
#[tokio::test]
async fn a_policy_keeps_the_calls_that_it_names() -> Result<()> {
    let scene = Scene::new().await?;
    let mut sql = sql(&scene.stack).await?;
    let count = "select count(*) from call_log_contents";
    let hello = json!({"message": "hello"});
    let plain = call(&scene, "echo_message", hello.clone()).await?;
    eventually("the call is logged", SOON, async || {
        detail(&scene, &plain).await.is_ok()
    })
    .await?;
    ensure!(sql.ask(count).await? == [["0"]], "off by default");

    set(&scene, json!({"policy": "errors", "days": 1})).await?;
    let failed = kept(&scene, "broken_answer", &json!({})).await?;
    let content = reveal(&scene, &failed).await?;
    let text = content["answer"]["text"].as_str().context("a text")?;
    ensure!(text.contains("the harbour is closed"), "{content}");
    let before = sql.ask(count).await?;
    let fine = call(&scene, "echo_message", hello).await?;
    eventually("the call is logged", SOON, async || {
        detail(&scene, &fine).await.is_ok()
    })
    .await?;
    // A later failure is written after it.
    kept(&scene, "broken_answer", &json!({})).await?;
    ensure!(detail(&scene, &fine).await?["content_until"].is_null());
    ensure!(sql.ask(count).await? != before);

    // A person may have it gone at once.
    let path = format!(
        "/workspaces/harbour/servers/{}/capture/content",
        scene.published.server_id
    );
    let deleted = scene
        .owner
        .console()
        .expect(Method::DELETE, &path, None)
        .await?;
    ensure!(deleted["calls"].as_u64() > Some(0), "{deleted}");
    ensure!(sql.ask(count).await? == [["0"]]);
    ensure!(detail(&scene, &failed).await?["content_until"].is_null());
    Ok(())
}

/// Rule: CAPTURE-8. Another tenant gets the answer for a call that does not exist.
#[tokio::test]
async fn another_workspace_sees_nothing_of_a_content() -> Result<()> {
    let scene = Scene::new().await?;
    set(&scene, json!({"policy": "all", "days": 1})).await?;
    let id = kept(&scene, "echo_message", &json!({"message": MARKER})).await?;
    let bob = Person::sign_up(&scene.stack, "bob").await?;
    bob.console().create_workspace("lagoon").await?;
    let random = format!("call_{}", "0".repeat(32));
    let mut seen = Vec::new();
    for id in [&id, &random] {
        let path = format!("/workspaces/lagoon/calls/{id}/reveal");
        seen.push(
            bob.console()
                .send(Method::POST, &path, Some(json!({})))
                .await?,
        );
    }
    ensure!(
        seen[0] == seen[1] && seen[0].0 == StatusCode::NOT_FOUND,
        "{seen:?}"
    );
    Ok(())
}
