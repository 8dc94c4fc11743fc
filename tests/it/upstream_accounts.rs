//! Servers that are signed in to: accounts of a workspace and of persons, with an authorization server made with oidc-provider in front of the
//! fixture (`docs/authorization-rules.md`, *Platform as OAuth client of upstreams*).

use std::time::Duration;

use anyhow::{Context, Result};
use futures_util::future::try_join_all;
use portolan_tests::{
    authority::Authority,
    browser::Page,
    cluster::Cluster,
    console::{Published, text},
    fixture::FixtureApi,
    fleet::sign_up,
    mcp::{LEGACY, McpClient, Reply, modern_message},
    oauth::{OAuthClient, Tokens},
    person::Person,
    process::eventually,
    races,
    stack::Stack,
    upstream::{Fixture, Upstream},
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use url::Url;

const SIMPLE: &str = "This is a simple text response for testing.";

struct Scene {
    upstream: Upstream,
    authority: Authority,
    stack: Stack,
    owner: Person,
    source: String,
}

impl Scene {
    async fn of(sharing: &str) -> Result<Self> {
        let upstream = Upstream::start(Fixture::TypeScript1)?;
        let authority = Authority::before(&upstream)?;
        let stack = Stack::builder().allow_egress(authority.address()).start()?;
        let owner = Person::sign_up(&stack, "ann").await?;
        owner.console().create_workspace("harbour").await?;
        let body = json!({"url": authority.url(), "name": "Theirs", "sign_in": sharing});
        let made = owner
            .console()
            .post("/workspaces/harbour/upstreams", body)
            .await?;
        Ok(Self {
            source: text(&made, "id")?,
            upstream,
            authority,
            stack,
            owner,
        })
    }

    fn path(&self, rest: &str) -> String {
        format!("/workspaces/harbour/sources/{}{rest}", self.source)
    }

    /// Where the console sends the browser to connect the workspace's account.
    async fn begin(&self) -> Result<Url> {
        let console = self.owner.console();
        let begun = console
            .expect(Method::POST, &self.path("/account"), None)
            .await?;
        Ok(text(&begun, "url")?.parse()?)
    }

    /// The workspace's account, from the button to the tools.
    async fn connect(&self) -> Result<Page> {
        let back = self.authority.consent(self.begin().await?.as_str()).await?;
        self.owner.browser.open(back.as_str()).await
    }

    async fn sign_in(&self) -> Result<Value> {
        self.owner.console().get(&self.path("/sign-in")).await
    }

    async fn publish(&self) -> Result<(Published, Tokens, McpClient)> {
        let console = self.owner.console();
        let tools = console.tool_ids("harbour", &self.source).await?;
        let published = console
            .publish("harbour", "theirs", &self.source, tools)
            .await?;
        let client = OAuthClient::register(self.stack.url(), "Harness").await?;
        let tokens = client.authorize(&self.owner, &published.url).await?;
        let mcp = McpClient::new(&published.url)?.with_token(&tokens.access)?;
        Ok((published, tokens, mcp))
    }

    /// The owner tries the tool in the console.
    async fn try_tool(&self) -> Result<Value> {
        let console = self.owner.console();
        let query = self.path("/tools?query=test_simple_text");
        let found = console.get(&query).await?;
        let tool = found["items"][0]["id"].as_str().context("the tool")?;
        let path = format!("/workspaces/harbour/tools/{tool}/try");
        console.post(&path, json!({})).await
    }

    fn tokens_upstream(&self) -> Vec<String> {
        let seen = self.upstream.seen_of("tools/call");
        seen.iter()
            .map(|seen| seen.header("authorization").unwrap_or_default().to_owned())
            .collect()
    }
}

async fn call(mcp: &McpClient) -> Result<Value> {
    let params = json!({"name": "test_simple_text", "arguments": {}});
    let answer = mcp.modern("tools/call", params).await?;
    assert_eq!(answer.status, StatusCode::OK, "MCP-X-88: {}", answer.text);
    Ok(answer.json)
}

fn said(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_default()
}

fn parameter(url: &Url, name: &str) -> Option<String> {
    let mut pairs = url.query_pairs();
    pairs
        .find(|(key, _)| key == name)
        .map(|(_, value)| value.into_owned())
}

fn with_parameter(url: &Url, name: &str, value: &str) -> Url {
    let pairs: Vec<(String, String)> = url
        .query_pairs()
        .map(|(key, own)| {
            let value = if key == name {
                value.to_owned()
            } else {
                own.into_owned()
            };
            (key.into_owned(), value)
        })
        .collect();
    let mut changed = url.clone();
    changed.query_pairs_mut().clear().extend_pairs(pairs);
    changed
}

#[tokio::test]
async fn au_2_to_au_13_a_workspace_connects_an_account_and_calls_use_its_tokens_and_never_the_callers()
-> Result<()> {
    let scene = Scene::of("workspace").await?;
    let console = scene.owner.console();
    let (status, refused) = console
        .send(
            Method::POST,
            "/workspaces/harbour/upstreams/preview",
            Some(json!({"url": scene.authority.url()})),
        )
        .await?;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(refused["error"]["code"], "upstream_wants_sign_in");

    let address = scene.begin().await?;
    assert_eq!(
        parameter(&address, "resource"),
        Some(scene.authority.url()),
        "MCP-AU-8"
    );
    assert_eq!(
        parameter(&address, "code_challenge_method").as_deref(),
        Some("S256")
    );
    assert_eq!(
        parameter(&address, "scope").as_deref(),
        Some("read offline_access"),
        "MCP-AU-11, MCP-AU-12"
    );
    assert_eq!(scene.authority.count("registrations").await?, 1, "MCP-AU-6");
    let back = scene.authority.consent(address.as_str()).await?;
    assert!(
        back.path().ends_with(&scene.source),
        "one address for each source (AU-9)"
    );

    // MCP-AU-10: another person, another browser of the same person, another state: nothing is used
    // up by them.
    let other = Person::sign_up(&scene.stack, "eve").await?;
    assert_eq!(
        other.browser.open(back.as_str()).await?.status,
        StatusCode::BAD_REQUEST
    );
    let stranger = Person::new(scene.stack.url(), "nobody")?;
    assert_eq!(
        stranger.browser.open(back.as_str()).await?.status,
        StatusCode::BAD_REQUEST
    );
    let altered = with_parameter(&back, "state", "A-state-that-nobody-made");
    assert_eq!(
        scene.owner.browser.open(altered.as_str()).await?.status,
        StatusCode::BAD_REQUEST
    );
    assert_eq!(
        scene.authority.count("codes").await?,
        0,
        "no code was redeemed"
    );
    let page = scene.owner.browser.open(back.as_str()).await?;
    assert!(
        page.url.path().contains("/w/harbour/sources/"),
        "{}: {}",
        page.url,
        page.text()
    );
    assert_eq!(scene.authority.count("codes").await?, 1);
    // Once.
    assert_eq!(
        scene.owner.browser.open(back.as_str()).await?.status,
        StatusCode::BAD_REQUEST
    );
    assert_eq!(scene.authority.count("codes").await?, 1);

    let view = scene.sign_in().await?;
    assert_eq!(view["connection"]["status"], "ok", "{view}");
    assert_eq!(view["connection"]["renewable"], true);
    assert_eq!(view["client"]["kind"], "registered");
    let (_, tokens, mcp) = scene.publish().await?;
    let answer = call(&mcp).await?;
    assert_eq!(said(&answer), SIMPLE, "{answer}");
    let used = scene.tokens_upstream().pop().context("a call")?;
    assert!(
        used.starts_with("Bearer ") && !used.contains(&tokens.access),
        "MCP-AU-1"
    );
    for seen in scene.upstream.seen() {
        assert!(
            !format!("{:?}", seen.headers).contains(&tokens.access),
            "MCP-AU-1"
        );
    }
    let secret = used.trim_start_matches("Bearer ").to_owned();
    assert!(!view.to_string().contains(&secret) && !scene.stack.log().contains(&secret));

    // MCP-X-86: a token that the server refuses is renewed, once for all waiting calls.
    scene.authority.set(json!({"refuse": true})).await?;
    let answers = try_join_all((0..20).map(|_| call(&mcp))).await?;
    for answer in &answers {
        assert_eq!(said(answer), SIMPLE, "{answer}");
    }
    assert_eq!(
        scene.authority.count("refreshes").await?,
        1,
        "MCP-AU-13: one at a time"
    );
    assert_eq!(scene.authority.count("refused_refreshes").await?, 0);
    assert_ne!(scene.tokens_upstream().pop(), Some(used));
    let listed = mcp.modern("tools/list", json!({})).await?.text;
    for token in scene.tokens_upstream() {
        let token = token.trim_start_matches("Bearer ");
        let told = answers.iter().chain([&answer]).map(Value::to_string);
        assert!(
            told.chain([listed.clone()])
                .all(|told| !told.contains(token)),
            "MCP-EL-12: what an account holds does not reach the client"
        );
    }

    // MCP-X-87: scopes that are missing are shown where they can be added, and asked for next time.
    scene.authority.set(json!({"scope": "write"})).await?;
    let answer = call(&mcp).await?;
    assert!(
        said(&answer).starts_with("Connect your account first: "),
        "{answer}"
    );
    // The granted scope is that of the last refresh; scopes that were requested beyond it are
    // added.
    assert_eq!(
        scene.sign_in().await?["connection"]["wanted_scope"],
        "read write"
    );
    let address = scene.begin().await?;
    assert_eq!(
        parameter(&address, "scope").as_deref(),
        Some("read write offline_access"),
        "MCP-AU-11"
    );
    let back = scene.authority.consent(address.as_str()).await?;
    scene.owner.browser.open(back.as_str()).await?;
    assert_eq!(said(&call(&mcp).await?), SIMPLE);
    assert_eq!(
        scene.authority.count("registrations").await?,
        1,
        "MCP-AU-7: one client for one issuer"
    );

    let path = scene.path("/account");
    console.expect(Method::DELETE, &path, None).await?;
    assert_eq!(scene.authority.count("revocations").await?, 1);
    assert_eq!(scene.sign_in().await?["connection"], Value::Null);
    let answer = call(&mcp).await?;
    assert!(
        said(&answer).starts_with("Connect your account first: "),
        "{answer}"
    );
    Ok(())
}

#[tokio::test]
async fn au_9_answers_of_another_issuer_and_refusals_connect_nothing() -> Result<()> {
    let scene = Scene::of("workspace").await?;
    let back = scene
        .authority
        .consent(scene.begin().await?.as_str())
        .await?;
    for iss in [
        "https://evil.example",
        &format!("{}/", scene.authority.issuer()),
    ] {
        let again = scene
            .authority
            .consent(scene.begin().await?.as_str())
            .await?;
        let altered = with_parameter(&again, "iss", iss);
        let page = scene.owner.browser.open(altered.as_str()).await?;
        assert_eq!(page.status, StatusCode::BAD_REQUEST);
        assert!(
            page.text().contains("another authorization server"),
            "{}",
            page.text()
        );
    }
    // Without `iss`, from a server that promises it.
    let mut without = back.clone();
    let pairs: Vec<(String, String)> = back
        .query_pairs()
        .filter(|(key, _)| key != "iss")
        .map(|(key, value)| (key.into_owned(), value.into_owned()))
        .collect();
    without.query_pairs_mut().clear().extend_pairs(pairs);
    let page = scene.owner.browser.open(without.as_str()).await?;
    assert_eq!(page.status, StatusCode::BAD_REQUEST, "{}", page.text());
    assert_eq!(
        scene.authority.count("codes").await?,
        0,
        "nothing was redeemed"
    );

    scene.authority.set(json!({"deny": true})).await?;
    let page = scene.connect().await?;
    assert!(page.text().contains("access_denied"), "{}", page.text());
    assert_eq!(scene.sign_in().await?["connection"], Value::Null);
    Ok(())
}

#[tokio::test]
async fn ax_1_a_client_that_was_entered_connects_by_itself() -> Result<()> {
    let scene = Scene::of("workspace").await?;
    let console = scene.owner.console();
    let secret = "entered-secret-of-32-characters-or-more";
    let form = json!({"sharing": "workspace", "method": "client_credentials", "scope": "read",
        "client": {"client_id": "entered", "client_secret": secret}});
    let path = scene.path("/sign-in");
    let view = console.expect(Method::PUT, &path, Some(form)).await?;
    assert_eq!(view["client"]["kind"], "entered");
    assert!(!view.to_string().contains(secret));
    let begun = console
        .expect(Method::POST, &scene.path("/account"), None)
        .await?;
    assert_eq!(begun["url"], Value::Null, "nobody has to go anywhere");
    assert_eq!(scene.authority.count("registrations").await?, 0);
    console.post(&scene.path("/sync"), json!({})).await?;
    let (_, _, mcp) = scene.publish().await?;
    assert_eq!(said(&call(&mcp).await?), SIMPLE);
    scene.authority.set(json!({"refuse": true})).await?;
    assert_eq!(
        said(&call(&mcp).await?),
        SIMPLE,
        "a new token instead of a refresh"
    );
    assert_eq!(scene.authority.count("by_client").await?, 2);
    // MCP-AU-7: what was entered for one authorization server is not used at another.
    assert_eq!(
        scene.sign_in().await?["client"]["issuer"],
        scene.authority.issuer()
    );
    Ok(())
}

#[tokio::test]
async fn au_7_a_registration_that_the_server_forgot_is_made_anew_by_who_connects_again()
-> Result<()> {
    let scene = Scene::of("workspace").await?;
    scene.connect().await?;
    let (_, _, mcp) = scene.publish().await?;
    assert_eq!(said(&call(&mcp).await?), SIMPLE);
    let rules = json!({"forget": true, "refuse": true});
    scene.authority.set(rules).await?;
    let answer = call(&mcp).await?;
    assert!(
        said(&answer).starts_with("Connect your account first: "),
        "{answer}"
    );
    let view = scene.sign_in().await?;
    assert_eq!(view["connection"]["status"], "needs_sign_in", "{view}");
    assert_eq!(view["connection"]["reason"], "client", "{view}");
    let page = scene.connect().await?;
    assert!(
        page.url.path().contains("/w/harbour/sources/"),
        "{}",
        page.text()
    );
    assert_eq!(scene.authority.count("registrations").await?, 2);
    assert_eq!(said(&call(&mcp).await?), SIMPLE);
    Ok(())
}

#[tokio::test]
async fn au_8_a_source_that_moves_takes_no_account_with_it() -> Result<()> {
    let scene = Scene::of("workspace").await?;
    scene.connect().await?;
    let (_, _, mcp) = scene.publish().await?;
    assert_eq!(said(&call(&mcp).await?), SIMPLE);
    let on_the_way = scene
        .authority
        .consent(scene.begin().await?.as_str())
        .await?;
    let console = scene.owner.console();
    for url in [
        format!("{}/elsewhere", scene.authority.url()),
        scene.authority.url(),
    ] {
        let body = json!({ "base_url": url });
        console
            .expect(Method::PATCH, &scene.path(""), Some(body))
            .await?;
        assert_eq!(scene.sign_in().await?["connection"], Value::Null);
    }
    let page = scene.owner.browser.open(on_the_way.as_str()).await?;
    assert_eq!(page.status, StatusCode::BAD_REQUEST, "{}", page.text());
    assert_eq!(scene.sign_in().await?["connection"], Value::Null);
    assert_eq!(scene.authority.count("codes").await?, 1);
    let tried = scene.try_tool().await?;
    assert!(
        tried.to_string().contains("no account is connected"),
        "{tried}"
    );
    scene.connect().await?;
    let tried = scene.try_tool().await?;
    assert_eq!(tried["content"][0]["text"], SIMPLE, "{tried}");
    Ok(())
}

/// Opens the page of a link, goes on, and comes back.
async fn link(scene: &Scene, who: &Person, url: &str) -> Result<Page> {
    let page = who.browser.open(url).await?;
    assert_eq!(page.status, StatusCode::OK, "{}", page.text());
    let page = who.browser.submit(page.form_with("form_token")?).await?;
    let away = page
        .leaves_to
        .context("the way to the authorization server")?;
    let back = scene.authority.consent(away.as_str()).await?;
    who.browser.open(back.as_str()).await
}

#[tokio::test]
async fn v_10_el_11_au_14_each_person_links_their_own_account_and_only_their_own() -> Result<()> {
    let scene = Scene::of("person").await?;
    scene.connect().await?;
    let (_, _, mcp) = scene.publish().await?;
    let answer = call(&mcp).await?;
    let text = said(&answer);
    let url = text
        .strip_prefix("Connect your account first: ")
        .context(text.to_owned())?;
    assert_eq!(answer["result"]["isError"], true);
    // Nor for a member who tries a tool in the console.
    let tried = scene.try_tool().await?;
    let text = tried["content"][0]["text"].as_str().unwrap_or_default();
    assert!(text.starts_with("Connect your account first: "), "{tried}");
    assert!(
        scene.tokens_upstream().is_empty(),
        "the workspace's account makes no calls"
    );

    // MCP-AB-41: another person, and an altered link.
    let eve = Person::sign_up(&scene.stack, "eve").await?;
    let page = eve.browser.open(url).await?;
    assert_eq!(page.status, StatusCode::FORBIDDEN);
    assert!(!page.text().contains("Theirs"), "{}", page.text());
    let mut altered = url.to_owned();
    altered.replace_range(url.len() - 4.., "AAAA");
    assert_eq!(
        scene.owner.browser.open(&altered).await?.status,
        StatusCode::NOT_FOUND
    );
    let nobody = Person::new(scene.stack.url(), "nobody")?;
    let page = nobody.browser.open(url).await?;
    assert!(
        page.form_with("password").is_ok(),
        "one signs in first: {}",
        page.text()
    );

    let page = link(&scene, &scene.owner, url).await?;
    assert!(page.text().contains("Connected"), "{}", page.text());
    assert_eq!(said(&call(&mcp).await?), SIMPLE);
    let tried = scene.try_tool().await?;
    assert_eq!(tried["content"][0]["text"], SIMPLE, "{tried}");
    let used = scene.tokens_upstream();
    assert_eq!(used.first(), used.last(), "the member's own account");
    assert_eq!(scene.sign_in().await?["linked_persons"], 1);
    let page = scene.owner.browser.open("/account/linked").await?;
    assert!(page.text().contains("Theirs"), "{}", page.text());
    assert!(
        !eve.browser
            .open("/account/linked")
            .await?
            .text()
            .contains("Theirs")
    );

    let revoked = scene.authority.count("revocations").await?;
    let form = page.form_with("source")?;
    let (name, value, _) = form.buttons[0].clone();
    scene
        .owner
        .browser
        .submit(form.press(&name, &value))
        .await?;
    assert_eq!(scene.authority.count("revocations").await?, revoked + 1);
    let answer = call(&mcp).await?;
    assert!(
        said(&answer).starts_with("Connect your account first: "),
        "{answer}"
    );
    assert_eq!(
        scene.sign_in().await?["connection"]["status"],
        "ok",
        "the workspace's stays"
    );
    Ok(())
}

#[tokio::test]
async fn x_86_a_client_that_opens_pages_is_asked_and_the_call_goes_on() -> Result<()> {
    let scene = Scene::of("person").await?;
    scene.connect().await?;
    let (_, _, mcp) = scene.publish().await?;

    // 2026-07-28: input_required, and the retry.
    let params = json!({"name": "test_simple_text", "arguments": {}});
    let mut message = modern_message("tools/call", params.clone());
    let able = json!({"elicitation": {"url": {}}});
    message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = able.clone();
    let client = mcp.modern_client("tools/call", &params)?;
    let asked = client.message(&message).await?;
    assert_eq!(
        asked.json["result"]["resultType"], "input_required",
        "{}",
        asked.text
    );
    let requests = asked.json["result"]["inputRequests"]
        .as_object()
        .context("requests")?;
    let (key, request) = requests.iter().next().context("one")?;
    assert_eq!(request["method"], "elicitation/create");
    assert_eq!(request["params"]["mode"], "url");
    let url = request["params"]["url"]
        .as_str()
        .context("a page")?
        .to_owned();
    link(&scene, &scene.owner, &url).await?;
    message["id"] = json!(2);
    message["params"]["inputResponses"] = json!({ key.as_str(): {"action": "accept"} });
    message["params"]["requestState"] = asked.json["result"]["requestState"].clone();
    let answer = client.message(&message).await?;
    assert_eq!(said(&answer.json), SIMPLE, "{}", answer.text);

    // 2025-11-25: a question on the stream of the call.
    let page = scene.owner.browser.open("/account/linked").await?;
    let form = page.form_with("source")?;
    let (name, value, _) = form.buttons[0].clone();
    scene
        .owner
        .browser
        .submit(form.press(&name, &value))
        .await?;
    let hello = json!({"protocolVersion": LEGACY, "capabilities": able, "clientInfo": {"name": "harness", "version": "1"}});
    let opened = mcp.request("initialize", hello).await?;
    let session = mcp
        .clone()
        .with("mcp-session-id", opened.header("mcp-session-id"))?
        .with("mcp-protocol-version", LEGACY)?;
    session
        .message(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        .await?;
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
    let Reply::Stream(mut stream) = session.start(&call).await? else {
        anyhow::bail!("the question comes on a stream");
    };
    let question = stream.message().await?;
    assert_eq!(question["method"], "elicitation/create", "{question}");
    assert!(question["params"]["elicitationId"].is_string(), "MCP-EL-3");
    let url = question["params"]["url"].as_str().context("a page")?;
    link(&scene, &scene.owner, url).await?;
    let accepted = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept"}});
    assert_eq!(
        session.message(&accepted).await?.status,
        StatusCode::ACCEPTED
    );
    let answer = stream.message().await?;
    assert_eq!(said(&answer), SIMPLE, "{answer}");
    Ok(())
}

#[tokio::test]
async fn x_12_a_session_that_never_spoke_to_a_server_asks_no_token_for_it_when_it_ends()
-> Result<()> {
    let scene = Scene::of("workspace").await?;
    scene.connect().await?;
    let (_, _, mcp) = scene.publish().await?;
    // From now on each new token has to be renewed at its next use.
    scene
        .authority
        .set(json!({"ttl": 8, "refuse": true}))
        .await?;
    assert_eq!(said(&call(&mcp).await?), SIMPLE);
    let (silent, _) = mcp.initialize(LEGACY).await?;
    let (spoke, _) = mcp.initialize(LEGACY).await?;
    let params = json!({"name": "test_simple_text", "arguments": {}});
    let answer = spoke.request("tools/call", params).await?;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    let renewed = scene.authority.count("refreshes").await?;
    assert!(renewed > 0, "tokens are short-lived here");
    let ended = || {
        let seen = scene.upstream.seen();
        seen.iter().filter(|one| one.verb == Method::DELETE).count()
    };
    let before = ended();
    for session in [&silent, &spoke] {
        assert_eq!(session.send(Method::DELETE).await?.status, StatusCode::OK);
    }
    eventually(
        "the session upstream is ended",
        Duration::from_secs(10),
        async || ended() > before,
    )
    .await?;
    let after = scene.authority.count("refreshes").await?;
    assert!(
        after <= renewed + 1,
        "one for the session that spoke to it, and none for the other: {renewed} → {after}"
    );
    Ok(())
}

#[tokio::test]
async fn case_167_two_nodes_renew_one_account_once_in_each_of_fifty_rounds() -> Result<()> {
    let upstream = Upstream::start(Fixture::TypeScript1)?;
    let authority = Authority::before(&upstream)?;
    let api = FixtureApi::start()?;
    let allowed = format!("{},{}", api.address(), authority.address());
    // No client has to wait.
    let builder = Cluster::builder()
        .nodes(2)
        .setting("egress_allow", allowed)
        .setting("calls_per_minute", 1_000_000);
    let cluster = builder.start(&api).await?;
    let owner = sign_up(&cluster, "ann").await?;
    let console = owner.console();
    console.create_workspace("harbour").await?;
    let body = json!({"url": authority.url(), "name": "Theirs", "sign_in": "workspace"});
    let source = text(
        &console.post("/workspaces/harbour/upstreams", body).await?,
        "id",
    )?;
    let path = format!("/workspaces/harbour/sources/{source}/account");
    let begun = console.expect(Method::POST, &path, None).await?;
    let back = authority.consent(&text(&begun, "url")?).await?;
    owner.browser.open(back.as_str()).await?;
    let tools = console.tool_ids("harbour", &source).await?;
    let published = console.publish("harbour", "theirs", &source, tools).await?;
    let client = OAuthClient::register(cluster.url(), "Harness").await?;
    let tokens = client.authorize(&owner, &published.url).await?;
    let mcp = McpClient::new(&published.url)?.with_token(&tokens.access)?;
    let nodes = [cluster.on(0, &mcp)?, cluster.on(1, &mcp)?];
    let mut round = 0;
    for _ in races::rounds("case_167_two_nodes_renew_one_account_once_in_each_of_fifty_rounds") {
        round += 1;
        authority.set(json!({"refuse": true})).await?;
        let calls = nodes
            .iter()
            .flat_map(|node| [call(node), call(node), call(node)]);
        for answer in try_join_all(calls).await? {
            assert_eq!(said(&answer), SIMPLE, "round {round}: {answer}");
        }
        let renewed = authority.count("refreshes").await?;
        // The first round refuses what no call has used yet: there is nothing to refuse.
        assert!(
            renewed == round || renewed == round - 1,
            "round {round}: {renewed}"
        );
    }
    assert!(authority.count("refreshes").await? >= round - 1);
    assert_eq!(
        authority.count("refused_refreshes").await?,
        0,
        "no rotated token was used twice"
    );
    Ok(())
}
