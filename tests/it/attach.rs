//! `portolan attach`: servers that nothing outside can reach, offered over connections that their
//! program opens (ADR 39, docs/attach.md).

use std::{fs, time::Duration};

use anyhow::{Context, Result, ensure};
use portolan_tests::{
    attached::{self, Added, Attach},
    console::Published,
    mcp::{LEGACY, McpClient},
    oauth::OAuthClient,
    person::Person,
    process::eventually,
    stack::{Stack, free_port, portolan, run_to_end},
    stand_in::StandIn,
    upstream::{Fixture, Upstream},
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{task::JoinSet, time::timeout};

/// A workspace with one attached server, which is away.
struct Scene {
    stack: Stack,
    owner: Person,
    added: Added,
    folder: TempDir,
}

impl Scene {
    async fn new() -> Result<Self> {
        let stack = Stack::builder().start()?;
        let owner = Person::sign_up(&stack, "ann").await?;
        let console = owner.console();
        console.create_workspace("harbour").await?;
        let added = attached::add(&console, "harbour", "office").await?;
        Ok(Self {
            stack,
            owner,
            added,
            folder: TempDir::new()?,
        })
    }

    fn count(&self) -> String {
        self.folder.path().join("count").display().to_string()
    }

    /// The calls that the stand-in has executed so far.
    fn executed(&self) -> Vec<String> {
        let lines = fs::read_to_string(self.count()).unwrap_or_default();
        lines.lines().map(|line| line.trim().to_owned()).collect()
    }

    fn stand_in(&self, more: &[(&str, &str)]) -> Result<Attach> {
        self.stand_in_at(&self.added.address, more)
    }

    fn stand_in_at(&self, address: &str, more: &[(&str, &str)]) -> Result<Attach> {
        let count = self.count();
        let mut environment = vec![("COUNT", count.as_str())];
        environment.extend(more);
        Attach::command(&self.added, address, &attached::stand_in(), &environment)
    }

    /// Publishes every tool, for a client of the owner.
    async fn publish(&self) -> Result<McpClient> {
        let published = self.published().await?;
        let client = OAuthClient::register(self.stack.url(), "Harness").await?;
        let tokens = client.authorize(&self.owner, &published.url).await?;
        McpClient::new(&published.url)?.with_token(&tokens.access)
    }

    async fn published(&self) -> Result<Published> {
        let console = self.owner.console();
        let Added {
            workspace,
            source_id,
            ..
        } = &self.added;
        let tools = console.tool_ids(workspace, source_id).await?;
        console.publish(workspace, "office", source_id, tools).await
    }
}

async fn call(client: &McpClient, tool: &str, arguments: Value) -> Result<Value> {
    let params = json!({"name": tool, "arguments": arguments});
    let answer = client.request("tools/call", params).await?;
    ensure!(
        answer.status == StatusCode::OK,
        "{tool}: {} {}",
        answer.status,
        answer.text
    );
    Ok(answer.json)
}

async fn modern(client: &McpClient, tool: &str, arguments: Value) -> Result<Value> {
    let params = json!({"name": tool, "arguments": arguments});
    let answer = client.modern("tools/call", params).await?;
    ensure!(answer.status == StatusCode::OK, "{tool}: {}", answer.text);
    Ok(answer.json)
}

fn words(message: &Value) -> &str {
    message["result"]["content"][0]["text"]
        .as_str()
        .or_else(|| message["error"]["message"].as_str())
        .unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_of_either_era_is_called_by_clients_of_both_and_is_away_when_it_ends()
-> Result<()> {
    for revision in ["2025-11-25", "2026-07-28"] {
        let scene = Scene::new().await?;
        let console = scene.owner.console();
        let state = scene.added.state(&console).await?;
        assert_eq!(state["name"], "office");
        assert_eq!(state["programs"], json!([]), "away");
        let mut attach = scene.stand_in(&[("REVISION", revision)])?;
        scene
            .added
            .attached(&console, 1)
            .await
            .with_context(|| attach.log())?;
        let state = scene.added.state(&console).await?;
        let program = &state["programs"][0];
        assert_eq!(program["connections"], 1, "{state}");
        assert!(
            program["version"]
                .as_str()
                .is_some_and(|v| v.starts_with("portolan-attach/")),
            "{state}"
        );
        let client = scene.publish().await?;
        let (session, _) = client.initialize(LEGACY).await?;
        let said = call(&session, "echo", json!({"text": "over the tunnel"})).await?;
        assert_eq!(words(&said), "over the tunnel", "{said}");
        let said = modern(&client, "echo", json!({"text": "without a session"})).await?;
        assert_eq!(words(&said), "without a session", "{said}");
        // The command is asked for nothing twice.
        assert_eq!(scene.executed().len(), 2, "{:?}", scene.executed());

        attach.process.signal("TERM")?;
        let status = attach.process.end(Duration::from_secs(20)).await?;
        assert!(status.success(), "{}", attach.log());
        scene.added.attached(&console, 0).await?;
        // A node expects a program back for a while.
        eventually("the error says that it is away", Duration::from_secs(40), async || {
            let said = modern(&client, "echo", json!({"text": "too late"})).await;
            said.is_ok_and(|said| {
                words(&said)
                    == "office is not attached: no `portolan attach` is connected for it at the moment. Nothing was sent."
            })
        })
        .await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_dies_in_a_call_ends_it_with_an_error_and_runs_it_once() -> Result<()> {
    for revision in ["2025-11-25", "2026-07-28"] {
        let scene = Scene::new().await?;
        let console = scene.owner.console();
        let attach = scene.stand_in(&[("REVISION", revision)])?;
        scene
            .added
            .attached(&console, 1)
            .await
            .with_context(|| attach.log())?;
        let client = scene.publish().await?;
        let (session, _) = client.initialize(LEGACY).await?;
        let said = call(&session, "crash", json!({"key": "one"})).await?;
        assert!(
            words(&said).contains("may or may not have taken effect"),
            "{said}\n{}",
            attach.log()
        );
        assert_eq!(scene.executed(), ["crash one"], "no second execution");
        // The command is started again, and the next call works.
        eventually(
            "the command works again",
            Duration::from_secs(20),
            async || {
                let said = call(&session, "echo", json!({"text": "again"})).await;
                said.is_ok_and(|said| words(&said) == "again")
            },
        )
        .await
        .with_context(|| attach.log())?;
    }
    Ok(())
}

/// A node finds a silent program by pings: 10 s, and 10 s for the answer. The program keeps the
/// answer of the call for the next connection.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_outlives_a_program_that_is_stopped_for_a_while_and_runs_once() -> Result<()> {
    let scene = Scene::new().await?;
    let console = scene.owner.console();
    let attach = scene.stand_in(&[])?;
    scene
        .added
        .attached(&console, 1)
        .await
        .with_context(|| attach.log())?;
    let client = scene.publish().await?;
    let (session, _) = client.initialize(LEGACY).await?;
    #[expect(clippy::disallowed_methods, reason = "it ends with the test's runtime")]
    let calling = tokio::spawn({
        let session = session.clone();
        async move { call(&session, "slow", json!({"key": "long", "ms": 4000})).await }
    });
    eventually("the call runs", Duration::from_secs(10), async || {
        scene.executed() == ["slow long"]
    })
    .await?;
    attach.process.signal("STOP")?;
    scene.added.attached(&console, 0).await?;
    attach.process.signal("CONT")?;
    let said = calling.await??;
    assert_eq!(words(&said), "slow long done", "{said}\n{}", attach.log());
    assert_eq!(scene.executed(), ["slow long"], "no second execution");
    Ok(())
}

/// A call of each session, all at once, each with a key of its own, and what became of them: an
/// error if a call does not end.
fn begin(sessions: &[McpClient], word: &str) -> JoinSet<(String, Result<Value>)> {
    let mut calls = JoinSet::new();
    for session in sessions {
        let key = format!("{word}-{}", calls.len());
        let session = session.clone();
        calls.spawn(async move {
            let params = json!({"name": "slow", "arguments": {"key": key, "ms": 1500}});
            let calling = session.request("tools/call", params);
            let ended = timeout(Duration::from_secs(30), calling).await;
            let said = ended.map_err(anyhow::Error::from).flatten();
            (key, said.map(|answer| answer.json))
        });
    }
    calls
}

#[tokio::test(flavor = "multi_thread")]
async fn two_programs_of_one_name_share_the_calls_and_sessions_stay_with_theirs() -> Result<()> {
    let scene = Scene::new().await?;
    let console = scene.owner.console();
    let first = scene.stand_in(&[])?;
    scene
        .added
        .attached(&console, 1)
        .await
        .with_context(|| first.log())?;
    let mut second = scene.stand_in(&[])?;
    scene
        .added
        .attached(&console, 2)
        .await
        .with_context(|| second.log())?;
    let client = scene.publish().await?;
    let mut sessions = Vec::new();
    let mut pids = Vec::new();
    for _ in 0..8 {
        let (session, _) = client.initialize(LEGACY).await?;
        let pid = words(&call(&session, "pid", json!({})).await?).to_owned();
        for _ in 0..3 {
            let again = call(&session, "pid", json!({})).await?;
            assert_eq!(words(&again), pid, "a session has one process");
        }
        pids.push(pid);
        sessions.push(session);
    }
    let of = |attach: &Attach| {
        let log = attach.log();
        pids.iter()
            .filter(|pid| log.contains(&format!("pid={pid}")))
            .count()
    };
    assert!(of(&first) > 0 && of(&second) > 0, "both are used: {pids:?}");
    // One is killed under load: each running call ends, and none is executed again.
    let running = begin(&sessions, "running");
    eventually("the calls run", Duration::from_secs(10), async || {
        scene
            .executed()
            .iter()
            .filter(|line| line.contains("running"))
            .count()
            == running.len()
    })
    .await
    .with_context(|| format!("{:?}", scene.executed()))?;
    second.process.kill()?;
    let during = begin(&sessions, "during");
    let (mut done, mut lost) = (0, 0);
    for (key, ended) in running
        .join_all()
        .await
        .into_iter()
        .chain(during.join_all().await)
    {
        let said = ended.with_context(|| key.clone())?;
        let executed = scene.executed();
        let times = executed
            .iter()
            .filter(|line| **line == format!("slow {key}"))
            .count();
        if words(&said) == format!("slow {key} done") {
            assert_eq!(times, 1, "{key}: {said}");
            done += 1;
        } else {
            assert!(times <= 1, "{key} was executed again: {said}");
            lost += 1;
        }
    }
    assert!(done > 0 && lost > 0, "{done} done, {lost} lost");
    // Sessions of the killed one get an error once, the others go on.
    scene.added.attached(&console, 1).await?;
    for session in &sessions {
        eventually(
            "each session works again",
            Duration::from_secs(30),
            async || {
                let said = call(session, "echo", json!({"text": "still"})).await;
                said.is_ok_and(|said| words(&said) == "still")
            },
        )
        .await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_key_another_workspace_and_a_replaced_key_are_refused() -> Result<()> {
    let scene = Scene::new().await?;
    let console = scene.owner.console();
    let other = Person::sign_up(&scene.stack, "eve").await?;
    other.console().create_workspace("island").await?;
    let theirs = attached::add(&other.console(), "island", "office").await?;
    let run = |address: &str, key: &str| {
        let mut attach = portolan();
        attach
            .args(["attach", address, "--", "cat"])
            .env("PORTOLAN_ATTACH_KEY", key);
        run_to_end(attach, Duration::from_secs(20))
    };
    let (rest, last) = scene.added.key.split_at(scene.added.key.len() - 1);
    let forged = format!("{rest}{}", if last == "A" { "B" } else { "A" });
    for (address, key) in [
        (scene.added.address.as_str(), "mcpa_nothing"),
        (scene.added.address.as_str(), forged.as_str()),
        // Their key does not open our workspace, nor ours theirs.
        (scene.added.address.as_str(), theirs.key.as_str()),
        (theirs.address.as_str(), scene.added.key.as_str()),
    ] {
        let (status, said) = run(address, key)?;
        assert_eq!(status.code(), Some(1), "{said}");
        assert!(
            said.contains("The key is not one of an attached server"),
            "{said}"
        );
        assert!(!said.contains("mcpa_"), "a key is not logged: {said}");
    }
    // An attached server of a workspace is not reached from another one, by its address.
    for url in [
        "https://office.attached.invalid/mcp",
        "https://office.attached.invalid./mcp",
        "https://OFFICE.attached.invalid:443/mcp",
    ] {
        let body = json!({"url": url, "name": "Theirs"});
        let (status, said) = other
            .console()
            .send(Method::POST, "/workspaces/island/upstreams", Some(body))
            .await?;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{said}");
        assert_eq!(said["error"]["code"], "url_invalid", "{said}");
    }
    // A replaced key ends connections that were opened with it.
    let attach = scene.stand_in(&[])?;
    scene
        .added
        .attached(&console, 1)
        .await
        .with_context(|| attach.log())?;
    let path = format!(
        "/workspaces/harbour/sources/{}/attachment/key",
        scene.added.source_id
    );
    let made = console.post(&path, json!({})).await?;
    scene.added.attached(&console, 0).await?;
    eventually("the program says so", Duration::from_secs(10), async || {
        attach
            .log()
            .contains("refused: The key is not one of an attached server")
    })
    .await?;
    let mut added = scene.added.clone();
    added.key = made["key"].as_str().context("a key")?.to_owned();
    let again = Attach::command(&added, &added.address, &attached::stand_in(), &[])?;
    added
        .attached(&console, 1)
        .await
        .with_context(|| again.log())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_does_not_start_is_shown_and_started_again() -> Result<()> {
    let scene = Scene::new().await?;
    let console = scene.owner.console();
    let broken = scene.folder.path().join("broken");
    fs::write(&broken, "")?;
    let broken_path = broken.display().to_string();
    let attach = scene.stand_in(&[("BROKEN", &broken_path)])?;
    eventually(
        "the console shows why",
        Duration::from_secs(20),
        async || {
            let state = scene.added.state(&console).await.unwrap_or_default();
            let error = state["programs"][0]["error"].as_str().unwrap_or_default();
            error.contains("exit status: 7")
        },
    )
    .await
    .with_context(|| attach.log())?;
    fs::remove_file(&broken)?;
    scene
        .added
        .attached(&console, 1)
        .await
        .with_context(|| attach.log())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_of_the_network_that_speaks_http_is_attached_by_its_address() -> Result<()> {
    for fixture in [Fixture::TypeScript1, Fixture::TypeScript2, Fixture::HttpSse] {
        let scene = Scene::new().await?;
        let console = scene.owner.console();
        let upstream = Upstream::start(fixture)?;
        let attach = Attach::url(&scene.added, &upstream.url())?;
        scene
            .added
            .attached(&console, 1)
            .await
            .with_context(|| attach.log())?;
        let client = scene.publish().await?;
        let (session, _) = client.initialize(LEGACY).await?;
        let said = call(&session, "test_simple_text", json!({})).await?;
        assert_eq!(
            words(&said),
            "This is a simple text response for testing.",
            "{said}"
        );
    }
    Ok(())
}

/// The document is a file of the private network; the API has a private address.
#[tokio::test(flavor = "multi_thread")]
async fn an_api_of_the_network_is_attached_by_its_document_and_base_url() -> Result<()> {
    const TOKEN: &str = "a-token-that-never-leaves-the-network";
    let scene = Scene::new().await?;
    let console = scene.owner.console();
    let item =
        json!({"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]});
    let document = json!({
        "openapi": "3.1.0",
        "info": {"title": "Ledger", "version": "7"},
        "servers": [{"url": "https://ledger.example.com"}],
        "paths": {"/items/{id}": {"get": {
            "operationId": "get_item",
            "parameters": [
                {"name": "id", "in": "path", "required": true, "schema": {"type": "string"}},
            ],
            "responses": {"200": {
                "description": "Done", "content": {"application/json": {"schema": item}},
            }},
        }}},
    });
    let file = scene.folder.path().join("openapi.json");
    fs::write(&file, document.to_string())?;
    let ledger = StandIn::start(document).await?;
    let metrics = free_port()?;
    let attach = Attach::api(&scene.added, &file, &ledger.url(), TOKEN, metrics)?;
    scene
        .added
        .attached(&console, 1)
        .await
        .with_context(|| attach.log())?;
    let client = scene.publish().await?;
    let (session, _) = client.initialize(LEGACY).await?;
    for said in [
        call(&session, "get_item", json!({"id": "7"})).await?,
        modern(&client, "get_item", json!({"id": "7"})).await?,
    ] {
        let received = ledger.take_last().context("a request")?;
        assert_eq!(received.path, "/items/7");
        assert_eq!(received.headers["authorization"], format!("Bearer {TOKEN}"));
        assert!(
            said["result"]["structuredContent"]["id"].is_string(),
            "{said}"
        );
    }
    let ready = reqwest::get(format!("http://{metrics}/readyz")).await?;
    assert_eq!(ready.status(), StatusCode::OK);
    let text = reqwest::get(format!("http://{metrics}/metrics"))
        .await?
        .text()
        .await?;
    for line in [
        "portolan_attach_nodes{state=\"connected\"} 1",
        "portolan_attach_nodes{state=\"missing\"} 0",
        "portolan_attach_requests_in_flight 0",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
    }
    assert!(
        !attach.log().contains(TOKEN),
        "the credential is not logged"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_of_others_work_with_their_own_features() -> Result<()> {
    // The reference server of the protocol.
    let scene = Scene::new().await?;
    let console = scene.owner.console();
    let everything = attached::package("mcp-server-everything")?;
    let attach = Attach::command(
        &scene.added,
        &scene.added.address,
        &[everything.as_os_str(), "stdio".as_ref()],
        &[],
    )?;
    scene
        .added
        .attached(&console, 1)
        .await
        .with_context(|| attach.log())?;
    let client = scene.publish().await?;
    let (session, _) = client.initialize(LEGACY).await?;
    let said = call(&session, "echo", json!({"message": "hello"})).await?;
    assert!(words(&said).contains("hello"), "{said}");

    // Files of a folder.
    let files = attached::add(&console, "harbour", "files").await?;
    let package = attached::package("mcp-server-filesystem")?;
    let folder = scene.folder.path().canonicalize()?;
    let attach = Attach::command(
        &files,
        &files.address,
        &[package.as_os_str(), folder.as_os_str()],
        &[],
    )?;
    files
        .attached(&console, 1)
        .await
        .with_context(|| attach.log())?;
    let client = publish(&scene, &files, "files").await?;
    let (session, _) = client.initialize(LEGACY).await?;
    let path = folder.join("note.txt").display().to_string();
    call(
        &session,
        "write_file",
        json!({"path": path, "content": "from afar"}),
    )
    .await?;
    assert_eq!(fs::read_to_string(folder.join("note.txt"))?, "from afar");

    // A knowledge graph.
    let memory = attached::add(&console, "harbour", "memory").await?;
    let package = attached::package("mcp-server-memory")?;
    let store = folder.join("graph.json").display().to_string();
    let attach = Attach::command(
        &memory,
        &memory.address,
        &[package.as_os_str()],
        &[("MEMORY_FILE_PATH", &store)],
    )?;
    memory
        .attached(&console, 1)
        .await
        .with_context(|| attach.log())?;
    let client = publish(&scene, &memory, "memory").await?;
    let entities =
        json!({"entities": [{"name": "Ann", "entityType": "person", "observations": ["sails"]}]});
    modern(&client, "create_entities", entities).await?;
    let said = modern(&client, "read_graph", json!({})).await?;
    assert!(words(&said).contains("sails"), "{said}");

    // The official Python SDK.
    let python = attached::add(&console, "harbour", "python").await?;
    let attach = Attach::command(&python, &python.address, &attached::python()?, &[])?;
    python
        .attached(&console, 1)
        .await
        .with_context(|| attach.log())?;
    let client = publish(&scene, &python, "python").await?;
    let said = modern(&client, "add", json!({"a": 40, "b": 2})).await?;
    assert_eq!(words(&said), "42", "{said}");

    // Two servers of Python packages: times of the world, and a repository.
    let time = attached::add(&console, "harbour", "time").await?;
    let package = attached::python_package("mcp-server-time")?;
    let attach = Attach::command(&time, &time.address, &[package.as_os_str()], &[])?;
    time.attached(&console, 1)
        .await
        .with_context(|| attach.log())?;
    let client = publish(&scene, &time, "time").await?;
    let noon = json!({"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"});
    let said = modern(&client, "convert_time", noon).await?;
    assert!(words(&said).contains("T21:00:00+09:00"), "{said}");

    let git = attached::add(&console, "harbour", "git").await?;
    let repository = folder.join("repository");
    let made = std::process::Command::new("git")
        .args(["init", "--quiet", "--initial-branch", "pier"])
        .arg(&repository)
        .status()?;
    ensure!(made.success(), "git init: {made}");
    let package = attached::python_package("mcp-server-git")?;
    let attach = Attach::command(&git, &git.address, &[package.as_os_str()], &[])?;
    git.attached(&console, 1)
        .await
        .with_context(|| attach.log())?;
    let client = publish(&scene, &git, "git").await?;
    let (session, _) = client.initialize(LEGACY).await?;
    let said = call(&session, "git_status", json!({"repo_path": repository})).await?;
    assert!(words(&said).contains("On branch pier"), "{said}");
    Ok(())
}

async fn publish(scene: &Scene, added: &Added, slug: &str) -> Result<McpClient> {
    let console = scene.owner.console();
    let tools = console.tool_ids(&added.workspace, &added.source_id).await?;
    let published = console
        .publish(&added.workspace, slug, &added.source_id, tools)
        .await?;
    let client = OAuthClient::register(scene.stack.url(), "Harness").await?;
    let tokens = client.authorize(&scene.owner, &published.url).await?;
    McpClient::new(&published.url)?.with_token(&tokens.access)
}
