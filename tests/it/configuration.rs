//! Configuration as code from a terminal: `portolan validate`, `plan`, `apply`, `export` and
//! `drift` against a running service (CONF-10, CONF-11).

use std::sync::{Arc, Mutex};

use anyhow::{Context, Result};
use axum::{
    Json, Router,
    extract::RawQuery,
    http::{HeaderMap, header},
    routing::get,
};
use portolan_tests::{
    console::text,
    fixture::{FixtureApi, TOKEN},
    mcp::McpClient,
    oauth::OAuthClient,
    person::Person,
    stack::{Stack, portolan},
};
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;

/// A workspace without objects, a token for it, and a folder with a file and its document.
struct Scene {
    stack: Stack,
    fixture: FixtureApi,
    owner: Person,
    token: String,
    folder: TempDir,
}

impl Scene {
    async fn new() -> Result<Self> {
        let fixture = FixtureApi::start()?;
        let stack = Stack::builder().allow_egress(fixture.address()).start()?;
        let owner = Person::sign_up(&stack, "ann").await?;
        let console = owner.console();
        console.create_workspace("harbour").await?;
        let scopes = ["registry:read", "registry:write", "credentials:write"];
        let body = json!({"name": "CI", "role": "developer", "scopes": scopes, "days": 1});
        let made = console
            .post("/workspaces/harbour/access-tokens", body)
            .await?;
        let folder = TempDir::new()?;
        let document = fixture.document().to_string();
        std::fs::write(folder.path().join("api.json"), document)?;
        let scene = Self {
            token: text(&made, "secret")?,
            stack,
            fixture,
            owner,
            folder,
        };
        scene.write("prompts", "Hello")?;
        Ok(scene)
    }

    /// Writes the file. `section` is the key of the prompts.
    fn write(&self, section: &str, greeting: &str) -> Result<()> {
        let base = self.fixture.base_url();
        let text = format!(
            "format: portolan/v1\nname: acme-prod\nsources:\n  - name: crm\n    kind: openapi\n    \
             location: file:api.json\n    base_url: {base}\n    credential: {{bearer: {{secret: \
             env:CRM_KEY}}}}\n{section}:\n  - {{name: greet, messages: [{{role: user, content: \
             {{text: {greeting}}}}}]}}\nservers:\n  - {{slug: sales, from: [crm], prompts: \
             [{{prompt: greet}}]}}\n"
        );
        std::fs::write(self.folder.path().join("portolan.yaml"), text)?;
        Ok(())
    }

    /// Runs a verb in the folder: exit code and output.
    fn run(&self, arguments: &[&str], key: Option<&str>) -> Result<(Option<i32>, String)> {
        let mut command = portolan();
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env("PORTOLAN_URL", self.stack.url().as_str())
            .env("PORTOLAN_WORKSPACE", "harbour")
            .env("PORTOLAN_TOKEN", &self.token)
            .env_remove("CRM_KEY");
        if let Some(key) = key {
            command.env("CRM_KEY", key);
        }
        let output = command.output()?;
        let shown = [output.stdout, output.stderr].concat();
        let shown = String::from_utf8_lossy(&shown).into_owned();
        assert!(!shown.contains(&self.token), "the token is shown: {shown}");
        assert!(!shown.contains(TOKEN), "the secret is shown: {shown}");
        Ok((output.status.code(), shown))
    }
}

/// Rule: CONF-16
#[tokio::test]
async fn selected_objects_are_applied_and_exported_alone() -> Result<()> {
    let scene = Scene::new().await?;
    let (code, shown) = scene.run(&["plan", "--select", "prompts/gret"], None)?;
    assert_eq!(code, Some(1), "{shown}");
    assert!(shown.contains("did you mean \"prompts/greet\""), "{shown}");
    // Neither the document nor the secret of the source is read.
    std::fs::remove_file(scene.folder.path().join("api.json"))?;
    let greet = ["apply", "--auto-approve", "--select", "prompts/*"];
    let (code, shown) = scene.run(&greet, None)?;
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("Applied: 1 to create"), "{shown}");
    let (code, shown) = scene.run(&["drift", "--select", "prompts/greet"], None)?;
    assert_eq!((code, shown.trim()), (Some(0), "No changes."));
    let (code, shown) = scene.run(&["export", "--select", "prompts/greet"], None)?;
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.starts_with("prompts:\n  - name: greet\n"), "{shown}");
    let (code, shown) = scene.run(&["export", "--select", "servers/sales"], None)?;
    assert_eq!(code, Some(1), "{shown}");
    Ok(())
}

/// Rule: CONF-11
#[tokio::test]
async fn a_file_is_planned_applied_exported_and_drifts() -> Result<()> {
    let scene = Scene::new().await?;
    let console = scene.owner.console();
    let (code, shown) = scene.run(&["plan"], Some(TOKEN))?;
    assert_eq!(code, Some(2), "{shown}");
    assert!(shown.contains("+ servers/sales"), "{shown}");
    assert!(
        shown.contains("3 to create, 0 to update, 0 to delete"),
        "{shown}"
    );
    let (code, shown) = scene.run(&["apply"], Some(TOKEN))?;
    assert_eq!(code, Some(1), "no terminal approves: {shown}");
    let apply = ["apply", "--auto-approve", "--meta", "commit=1a2b3c"];
    let (code, shown) = scene.run(&apply, Some(TOKEN))?;
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("Applied: 3 to create"), "{shown}");

    let (code, shown) = scene.run(&["plan"], Some(TOKEN))?;
    assert_eq!((code, shown.trim()), (Some(0), "No changes."));
    let (code, shown) = scene.run(&["drift"], Some("another"))?;
    assert_eq!(code, Some(2), "another secret: {shown}");
    assert!(
        shown.contains("credential.secret: \"(stored)\" → \"(changed)\""),
        "{shown}"
    );

    let prompts = console.get("/workspaces/harbour/prompts").await?;
    let path = format!(
        "/workspaces/harbour/prompts/{}",
        text(&prompts["items"][0], "id")?
    );
    let other = json!({"name": "greet", "messages": [
        {"role": "user", "content": {"type": "text", "text": "Ahoy"}}]});
    console.expect(Method::PUT, &path, Some(other)).await?;
    let (code, shown) = scene.run(&["drift"], Some(TOKEN))?;
    assert_eq!(code, Some(2), "{shown}");
    assert!(
        shown.contains("messages[0].content.text: \"Ahoy\" → \"Hello\""),
        "{shown}"
    );
    let (code, shown) = scene.run(&["drift", "--json"], Some(TOKEN))?;
    assert_eq!(code, Some(2), "{shown}");
    let plan: Value = serde_json::from_str(&shown)?;
    assert_eq!(plan["changes"][0]["key"], "greet", "{plan}");

    let (code, exported) = scene.run(&["export"], None)?;
    assert_eq!(code, Some(0), "{exported}");
    assert!(exported.contains("secret: vault:crm"), "{exported}");
    std::fs::write(scene.folder.path().join("portolan.yaml"), &exported)?;
    let (code, shown) = scene.run(&["validate"], None)?;
    assert_eq!(code, Some(0), "{shown}");
    assert!(
        shown.contains("1 sources, 1 prompts, 0 resources, 1 servers, 0 webhooks"),
        "{shown}"
    );
    let (code, shown) = scene.run(&["plan"], None)?;
    assert_eq!((code, shown.trim()), (Some(0), "No changes."));

    let audit = console.get("/workspaces/harbour/audit").await?.to_string();
    assert!(
        audit.contains("configuration.applied") && audit.contains("1a2b3c"),
        "{audit}"
    );
    assert!(!audit.contains(TOKEN), "{audit}");
    let log = scene.stack.log();
    assert!(!log.contains(TOKEN) && !log.contains("panicked"), "{log}");
    Ok(())
}

/// Rule: CONF-10
#[tokio::test]
async fn an_applied_server_answers_clients_with_its_tools() -> Result<()> {
    let scene = Scene::new().await?;
    let (code, shown) = scene.run(&["apply", "--auto-approve"], Some(TOKEN))?;
    assert_eq!(code, Some(0), "{shown}");
    let servers = scene
        .owner
        .console()
        .get("/workspaces/harbour/servers")
        .await?;
    let url = text(&servers["items"][0], "url")?;
    let client = OAuthClient::register(scene.stack.url(), "Harness").await?;
    let tokens = client.authorize(&scene.owner, &url).await?;
    let mcp = McpClient::new(&url)?.with_token(&tokens.access)?;
    let params = json!({"name": "echo_message", "arguments": {"message": "hi"}});
    let answer = mcp.modern("tools/call", params).await?;
    let content = &answer.json["result"]["structuredContent"];
    assert_eq!(content["message"], "hi", "{}", answer.text);
    Ok(())
}

/// Rule: CONF-11
#[tokio::test]
async fn faults_name_the_file_the_line_and_the_secret() -> Result<()> {
    let scene = Scene::new().await?;
    let (code, shown) = scene.run(&["plan"], None)?;
    assert_eq!(code, Some(1), "{shown}");
    assert!(
        shown.contains("sources/crm.credential: CRM_KEY is not set"),
        "{shown}"
    );
    scene.write("promts", "Hello")?;
    for verb in ["validate", "plan", "apply", "drift"] {
        let (code, shown) = scene.run(&[verb], Some(TOKEN))?;
        assert_eq!(code, Some(1), "{verb}: {shown}");
        let said = "portolan.yaml:9:1 unknown key \"promts\", did you mean \"prompts\"";
        assert!(shown.contains(said), "{verb}: {shown}");
    }
    scene.write("prompts", "'{{who}}'")?;
    let (code, shown) = scene.run(&["validate"], None)?;
    assert_eq!(code, Some(1), "{shown}");
    assert!(
        shown.contains("portolan.yaml:10:") && shown.contains("not an argument"),
        "{shown}"
    );
    let listed = scene
        .owner
        .console()
        .get("/workspaces/harbour/sources")
        .await?;
    let items = listed["items"].as_array().context("items")?;
    assert!(items.is_empty(), "nothing was applied");
    Ok(())
}

/// Rule: CONF-10
#[tokio::test]
async fn an_mcp_server_of_a_file_is_looked_at_and_published() -> Result<()> {
    let scene = Scene::new().await?;
    let location = scene.fixture.asker_url();
    let file = scene.folder.path().join("portolan.yaml");
    let text = |tools: &str| {
        format!(
            "format: portolan/v1\nname: acme-prod\nsources:\n  - name: Asker\n    kind: mcp\n    \
             location: {location}\n    prefix: a_\n    hold_changes: false\n{tools}servers:\n  - \
             {{slug: asking, from: [Asker], status: paused}}\n"
        )
    };
    std::fs::write(&file, text("    tools: {gone: {enabled: false}}\n"))?;
    let (code, shown) = scene.run(&["plan"], None)?;
    assert_eq!(code, Some(1), "{shown}");
    assert!(
        shown.contains("portolan.yaml:9:13 sources/Asker: "),
        "{shown}"
    );
    assert!(shown.contains("no operation `gone`"), "{shown}");
    std::fs::write(&file, text(""))?;
    let (code, shown) = scene.run(&["apply", "--auto-approve"], None)?;
    assert_eq!(code, Some(0), "{shown}");
    let (code, exported) = scene.run(&["export"], None)?;
    assert_eq!(code, Some(0), "{exported}");
    for line in [
        "    prefix: a_",
        "    hold_changes: false",
        "      - source: Asker",
    ] {
        assert!(exported.contains(line), "{exported}");
    }
    std::fs::write(&file, &exported)?;
    let (code, shown) = scene.run(&["plan"], None)?;
    assert_eq!((code, shown.trim()), (Some(0), "No changes."));
    Ok(())
}

/// Rule: CONF-17
#[tokio::test]
async fn a_job_of_github_asks_for_its_id_token_for_the_service() -> Result<()> {
    let scene = Scene::new().await?;
    let asked = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&asked);
    // The endpoint of GitHub that gives a job its ID token.
    let answer = move |headers: HeaderMap, RawQuery(query): RawQuery| async move {
        let credential = headers[header::AUTHORIZATION].to_str().map(str::to_owned);
        kept.lock()
            .unwrap()
            .push((credential.unwrap(), query.unwrap()));
        Json(json!({"count": 1, "value": "the.job.token"}))
    };
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let router = Router::new().route("/token", get(answer));
    #[expect(clippy::disallowed_methods, reason = "it ends with the test's runtime")]
    tokio::spawn(async move { axum::serve(listener, router).await });
    let export = async |token: &str| -> Result<(Option<i32>, String)> {
        let mut command = tokio::process::Command::from(portolan());
        command
            .arg("export")
            .env("PORTOLAN_URL", scene.stack.url().as_str())
            .env("PORTOLAN_WORKSPACE", "harbour")
            .env("PORTOLAN_TOKEN", token)
            .env(
                "ACTIONS_ID_TOKEN_REQUEST_URL",
                format!("http://{address}/token?v=2"),
            )
            .env("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "of-the-runner");
        let output = command.output().await?;
        let shown = [output.stdout, output.stderr].concat();
        Ok((
            output.status.code(),
            String::from_utf8_lossy(&shown).into_owned(),
        ))
    };
    let (code, shown) = export(&scene.token).await?;
    assert_eq!(code, Some(0), "{shown}");
    assert_eq!(asked.lock().unwrap().len(), 0, "a token is given");

    // The workspace does not trust this job.
    let (code, shown) = export("").await?;
    assert_eq!(code, Some(1), "{shown}");
    assert!(shown.contains("harbour gave this job no token"), "{shown}");
    assert!(!shown.contains("the.job.token"), "{shown}");
    let origin = scene.stack.url().origin().ascii_serialization();
    let mut query = url::form_urlencoded::Serializer::new("v=2".to_owned());
    let query = query.append_pair("audience", &origin).finish();
    let expected = ("Bearer of-the-runner".to_owned(), query);
    assert_eq!(*asked.lock().unwrap(), [expected]);
    Ok(())
}
