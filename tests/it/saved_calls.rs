//! `portolan test-calls`: saved calls of a server, checked from a terminal (PLAY-6, PLAY-7).

use anyhow::Result;
use portolan_tests::{
    console::text,
    fixture::FixtureApi,
    person::Person,
    stack::{Stack, portolan},
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A published server, an API key for it, and a folder for files of calls.
struct Scene {
    _stack: Stack,
    _fixture: FixtureApi,
    owner: Person,
    calls: String,
    url: String,
    key: String,
    folder: TempDir,
}

impl Scene {
    async fn new() -> Result<Self> {
        let fixture = FixtureApi::start()?;
        let stack = Stack::builder().allow_egress(fixture.address()).start()?;
        let owner = Person::sign_up(&stack, "ann").await?;
        let console = owner.console();
        let published = console.publish_fixture("harbour", &fixture).await?;
        let made = console
            .post("/workspaces/harbour/api-keys", json!({"name": "CI"}))
            .await?;
        let key = text(&made, "secret")?;
        let calls = format!(
            "/workspaces/harbour/servers/{}/saved-calls",
            published.server_id
        );
        Ok(Self {
            url: published.url,
            calls,
            key,
            owner,
            folder: TempDir::new()?,
            _stack: stack,
            _fixture: fixture,
        })
    }

    /// Runs the command over these calls: exit code and output.
    fn run(&self, calls: &Value, more: &[&str]) -> Result<(Option<i32>, String)> {
        let file = self.folder.path().join("calls.json");
        std::fs::write(&file, json!({"version": 1, "calls": calls}).to_string())?;
        let output = portolan()
            .args(["test-calls", &self.url, "--calls"])
            .arg(&file)
            .args(more)
            .env("PORTOLAN_API_KEY", &self.key)
            .output()?;
        let shown = [output.stdout, output.stderr].concat();
        Ok((
            output.status.code(),
            String::from_utf8_lossy(&shown).into_owned(),
        ))
    }
}

fn echo(expect: &Value) -> Value {
    json!({"name": "Echo", "method": "tools/call", "expect": expect,
        "params": {"name": "echo_message", "arguments": {"message": "hi"}}})
}

/// Rule: PLAY-7.
#[tokio::test]
async fn exit_codes_say_whether_saved_calls_hold() -> Result<()> {
    let scene = Scene::new().await?;
    let good = echo(
        &json!({"status": "ok", "schema": true, "max_ms": 30_000, "equals": [
            {"path": "$.structuredContent.message", "value": "hi"},
            {"path": "$['content'][0]['type']", "value": "text"},
        ]}),
    );
    let missing = json!({"name": "Missing", "method": "resources/read",
        "params": {"uri": "note:none"}, "expect": {"status": "error"}});
    let (code, shown) = scene.run(&json!([good, missing]), &[])?;
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("2 calls, 0 failed"), "{shown}");

    let bad = echo(&json!({"status": "ok", "equals": [
        {"path": "$.structuredContent.message", "value": "ho"},
    ]}));
    let (code, shown) = scene.run(&json!([good, bad]), &["--json"])?;
    assert_eq!(code, Some(2), "{shown}");
    let reports: Value = serde_json::from_str(&shown)?;
    assert_eq!(reports[0]["passed"], true, "{reports}");
    assert_eq!(reports[1]["findings"][1]["found"], "\"hi\"", "{reports}");

    let (code, shown) = scene.run(&json!([]), &[])?;
    assert_eq!(code, Some(1), "{shown}");
    let path = echo(&json!({"status": "ok", "equals": [{"path": "$..a", "value": 1}]}));
    let (code, shown) = scene.run(&json!([path]), &[])?;
    assert_eq!(code, Some(1), "{shown}");
    let stranger = Scene {
        key: "mcpk_none".to_owned(),
        ..scene
    };
    let (code, shown) = stranger.run(&json!([good]), &[])?;
    assert_eq!(code, Some(1), "{shown}");
    assert!(!shown.contains("mcpk_none"), "{shown}");
    Ok(())
}

/// Rule: PLAY-6.
#[tokio::test]
async fn a_saved_call_is_kept_checked_and_deleted() -> Result<()> {
    let scene = Scene::new().await?;
    let console = scene.owner.console();
    let body = echo(&json!({"status": "ok"}));
    let saved = console.post(&scene.calls, body.clone()).await?;
    let path = format!("{}/{}", scene.calls, text(&saved, "id")?);
    let again = Some(body.clone());
    let (status, _) = console.send(Method::POST, &scene.calls, again).await?;
    assert_eq!(status, StatusCode::CONFLICT, "a name is used once");

    let mut changed = body.clone();
    changed["expect"] = json!({"status": "error", "max_ms": 5});
    changed["params"]["_meta"] = json!({"progressToken": 1});
    console.expect(Method::PUT, &path, Some(changed)).await?;
    let listed = console.get(&scene.calls).await?;
    assert_eq!(listed["items"][0]["expect"]["max_ms"], 5, "{listed}");
    assert_eq!(listed["items"][0]["params"], body["params"], "{listed}");

    for (member, value) in [
        (
            "expect",
            json!({"status": "ok", "equals": [{"path": "$.*", "value": 1}]}),
        ),
        ("expect", json!({"status": "ok", "max_ms": 0})),
        ("params", json!({"arguments": {}})),
        ("params", json!({"name": "x".repeat(70_000)})),
        ("name", json!(" ")),
    ] {
        let mut bad = body.clone();
        bad[member] = value;
        let (status, _) = console.send(Method::PUT, &path, Some(bad)).await?;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{member}");
    }
    console.expect(Method::DELETE, &path, None).await?;
    assert_eq!(console.get(&scene.calls).await?["items"], json!([]));
    let audit = console.get("/workspaces/harbour/audit").await?;
    let text = audit.to_string();
    assert!(text.contains("saved_call.deleted"), "{text}");
    assert!(
        !text.contains("\"hi\""),
        "arguments are not in the audit log: {text}"
    );
    Ok(())
}
