//! APIs that are signed in to: tools of an HTTP source with accounts of a workspace and of persons, with an authorization server made with
//! oidc-provider and an API at another origin that knows its tokens (`docs/authorization-rules.md`,
//! *Platform as OAuth client of upstreams*, AUTH-3.5).

use anyhow::{Context, Result, ensure};
use futures_util::future::try_join_all;
use portolan_tests::{
    browser::Page,
    cluster::Cluster,
    console::{Published, text},
    fixture::FixtureApi,
    fleet::sign_up,
    guarded_api::{GuardedApi, SECRET},
    mcp::{Answer, LEGACY, McpClient, Reply, modern_message},
    oauth::OAuthClient,
    person::Person,
    stack::Stack,
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use url::Url;

/// The beginning of an answer that requests an account.
const CONNECT: &str = "Connect your account first: ";

/// Adds the API to the workspace `harbour`, signed in to. Answers the source, which the authorization server knows then.
async fn add(api: &GuardedApi, owner: &Person, sharing: &str) -> Result<String> {
    let console = owner.console();
    console.create_workspace("harbour").await?;
    let body = json!({"kind": "openapi", "name": "Notes", "input": {"kind": "text", "text": api.document().to_string()}});
    let made = console.post("/workspaces/harbour/sources", body).await?;
    let source = text(&made, "id")?;
    let path = format!("/workspaces/harbour/sources/{source}/sign-in");
    let form = Some(api.sign_in(sharing));
    let view = console.expect(Method::PUT, &path, form).await?;
    let back = text(&view, "redirect_uri")?;
    api.authority.set(json!({ "client": [back] })).await?;
    Ok(source)
}

async fn publish(owner: &Person, source: &str) -> Result<Published> {
    let console = owner.console();
    let tools = console.tool_ids("harbour", source).await?;
    console.publish("harbour", "notes", source, tools).await
}

/// A client of a person.
async fn client(issuer: &Url, who: &Person, published: &Published) -> Result<(McpClient, String)> {
    let client = OAuthClient::register(issuer, "Harness").await?;
    let tokens = client.authorize(who, &published.url).await?;
    let mcp = McpClient::new(&published.url)?.with_token(&tokens.access)?;
    Ok((mcp, tokens.access))
}

struct Scene {
    api: GuardedApi,
    stack: Stack,
    owner: Person,
    source: String,
    published: Published,
    mcp: McpClient,
    /// The caller's own token of this platform.
    own_token: String,
}

impl Scene {
    async fn of(sharing: &str) -> Result<Self> {
        let api = GuardedApi::start().await?;
        let builder = Stack::builder().setting("egress_allow", api.allowed());
        let stack = builder.start()?;
        let owner = Person::sign_up(&stack, "ann").await?;
        let source = add(&api, &owner, sharing).await?;
        let published = publish(&owner, &source).await?;
        let (mcp, own_token) = client(stack.url(), &owner, &published).await?;
        Ok(Self {
            api,
            stack,
            owner,
            source,
            published,
            mcp,
            own_token,
        })
    }

    fn path(&self, rest: &str) -> String {
        format!("/workspaces/harbour/sources/{}{rest}", self.source)
    }

    async fn sign_in(&self) -> Result<Value> {
        self.owner.console().get(&self.path("/sign-in")).await
    }

    /// The workspace's account, from the button to the page of the source.
    async fn connect(&self) -> Result<Page> {
        let console = self.owner.console();
        let begun = console
            .expect(Method::POST, &self.path("/account"), None)
            .await?;
        let back = self.api.authority.consent(&text(&begun, "url")?).await?;
        self.owner.browser.open(back.as_str()).await
    }

    /// Another person joins the workspace.
    async fn member(&self, name: &str) -> Result<Person> {
        let person = Person::sign_up(&self.stack, name).await?;
        let body = json!({"email": person.email, "role": "member"});
        let console = self.owner.console();
        let invitation = console
            .post("/workspaces/harbour/invitations", body)
            .await?;
        let page = format!("/invitations/{}", text(&invitation, "id")?);
        let form = person.browser.open(&page).await?.form_with("form_token")?;
        let page = person.browser.submit(form).await?;
        ensure!(page.status.is_success(), "{} {}", page.status, page.text());
        Ok(person)
    }

    /// A person tries `whoami` in the console.
    async fn try_tool(&self, who: &Person) -> Result<Value> {
        let found = who.console().get(&self.path("/tools?query=whoami")).await?;
        let tool = found["items"][0]["id"].as_str().context("the tool")?;
        let path = format!("/workspaces/harbour/tools/{tool}/try");
        who.console().post(&path, json!({})).await
    }
}

async fn call(mcp: &McpClient, name: &str, arguments: Value) -> Result<Value> {
    let params = json!({"name": name, "arguments": arguments});
    let answer = mcp.modern("tools/call", params).await?;
    assert_eq!(answer.status, StatusCode::OK, "MCP-AU-17: {}", answer.text);
    Ok(answer.json)
}

async fn whoami(mcp: &McpClient) -> Result<Value> {
    call(mcp, "whoami", json!({})).await
}

fn said(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_default()
}

/// The page that an answer asks to open.
fn page_of(answer: &Value) -> Result<String> {
    let url = said(answer).strip_prefix(CONNECT);
    Ok(url.with_context(|| answer.to_string())?.to_owned())
}

#[tokio::test]
async fn au_1_au_14_v_10_people_call_an_api_with_their_own_accounts_and_see_what_is_theirs()
-> Result<()> {
    let scene = Scene::of("person").await?;
    let source = scene.owner.console().get(&scene.path("")).await?;
    let hint = &source["security"][0];
    assert_eq!(hint["kind"], "oauth_authorization_code", "{source}");
    let issuer = scene.api.authority.issuer();
    assert_eq!(hint["authorization_url"], format!("{issuer}/auth"));
    assert_eq!(hint["scopes"], json!(["read", "write"]));

    let bob = scene.member("bob").await?;
    let (bobs, bobs_token) = client(scene.stack.url(), &bob, &scene.published).await?;
    let link = page_of(&whoami(&scene.mcp).await?)?;
    assert_eq!(
        scene.api.authority.count("calls").await?,
        0,
        "nothing was sent"
    );
    let tried = scene.try_tool(&scene.owner).await?;
    assert!(
        tried["content"][0]["text"]
            .as_str()
            .is_some_and(|text| text.starts_with(CONNECT)),
        "{tried}"
    );

    // MCP-EL-11: the link of one person works for no other.
    let foreign = bob.browser.open(&link).await?;
    assert_eq!(foreign.status, StatusCode::FORBIDDEN);
    assert!(!foreign.text().contains("Notes"), "{}", foreign.text());

    let page = scene.api.link(&scene.owner, &link, "ann-there").await?;
    assert!(page.text().contains("Connected"), "{}", page.text());
    let link = page_of(&whoami(&bobs).await?)?;
    scene.api.link(&bob, &link, "bob-there").await?;
    for (mcp, who, note) in [
        (&scene.mcp, "ann-there", "of Ann"),
        (&bobs, "bob-there", "of Bob"),
    ] {
        let added = call(mcp, "add_note", json!({ "text": note })).await?;
        assert_eq!(added["result"]["structuredContent"]["who"], who, "{added}");
        let seen = whoami(mcp).await?;
        assert_eq!(
            seen["result"]["structuredContent"],
            json!({"who": who, "notes": [note]})
        );
    }
    let tried = scene.try_tool(&bob).await?;
    assert_eq!(
        tried["structured_content"]["who"], "bob-there",
        "the account of who tries it: {tried}"
    );
    assert_eq!(scene.sign_in().await?["linked_persons"], 2);

    // MCP-AU-1, MCP-EL-12: none of our tokens there, none of theirs here.
    let used = scene.api.authorizations().await?;
    assert!(used.len() >= 5 && used.iter().all(|one| one.starts_with("Bearer ")));
    let log = scene.stack.log();
    for header in &used {
        for own in [&scene.own_token, &bobs_token] {
            assert!(!header.contains(own.as_str()), "MCP-AU-1");
        }
        let token = header.trim_start_matches("Bearer ");
        for told in [
            tried.to_string(),
            whoami(&scene.mcp).await?.to_string(),
            scene.sign_in().await?.to_string(),
            log.clone(),
        ] {
            assert!(!told.contains(token) && !told.contains(SECRET), "MCP-EL-12");
        }
    }

    // Each disconnects their own.
    let page = scene.owner.browser.open("/account/linked").await?;
    assert!(page.text().contains("Notes"), "{}", page.text());
    let form = page.form_with("source")?;
    let (name, value, _) = form.buttons[0].clone();
    scene
        .owner
        .browser
        .submit(form.press(&name, &value))
        .await?;
    assert_eq!(scene.api.authority.count("revocations").await?, 1);
    page_of(&whoami(&scene.mcp).await?)?;
    assert_eq!(
        whoami(&bobs).await?["result"]["structuredContent"]["who"],
        "bob-there"
    );
    Ok(())
}

/// A modern call of a client that opens pages.
fn asking(mcp: &McpClient) -> Result<(McpClient, Value)> {
    let params = json!({"name": "whoami", "arguments": {}});
    let mut message = modern_message("tools/call", params.clone());
    message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
        json!({"elicitation": {"url": {}}});
    Ok((mcp.modern_client("tools/call", &params)?, message))
}

/// A session of 2025-11-25 whose client opens pages.
async fn session(mcp: &McpClient) -> Result<McpClient> {
    let hello = json!({
        "protocolVersion": LEGACY, "capabilities": {"elicitation": {"url": {}}},
        "clientInfo": {"name": "harness", "version": "1"},
    });
    let opened: Answer = mcp.request("initialize", hello).await?;
    let session = mcp
        .clone()
        .with("mcp-session-id", opened.header("mcp-session-id"))?
        .with("mcp-protocol-version", LEGACY)?;
    session
        .message(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        .await?;
    Ok(session)
}

#[tokio::test]
async fn x_86_el_15_v_10_a_client_is_asked_as_its_revision_asks_and_the_call_goes_on() -> Result<()>
{
    let scene = Scene::of("person").await?;
    let disconnect = async || -> Result<()> {
        let page = scene.owner.browser.open("/account/linked").await?;
        let form = page.form_with("source")?;
        let (name, value, _) = form.buttons[0].clone();
        let form = form.press(&name, &value);
        scene.owner.browser.submit(form).await?;
        Ok(())
    };

    // 2026-07-28: input_required, and the retry.
    let (client, mut message) = asking(&scene.mcp)?;
    let asked = client.message(&message).await?;
    assert_eq!(
        asked.json["result"]["resultType"], "input_required",
        "{}",
        asked.text
    );
    let requests = asked.json["result"]["inputRequests"].as_object();
    let (key, request) = requests.and_then(|all| all.iter().next()).context("one")?;
    assert_eq!(request["method"], "elicitation/create");
    assert_eq!(request["params"]["mode"], "url");
    assert!(
        request["params"]["message"]
            .as_str()
            .is_some_and(|words| words.contains("127.0.0.1")),
        "it says where: {request}"
    );
    let url = request["params"]["url"].as_str().context("a page")?;
    scene.api.link(&scene.owner, url, "ann-there").await?;
    message["id"] = json!(2);
    message["params"]["inputResponses"] = json!({ key.as_str(): {"action": "accept"} });
    message["params"]["requestState"] = asked.json["result"]["requestState"].clone();
    let answer = client.message(&message).await?;
    assert_eq!(
        answer.json["result"]["structuredContent"]["who"], "ann-there",
        "{}",
        answer.text
    );

    // 2025-11-25: a question on the stream of the call.
    disconnect().await?;
    let session = session(&scene.mcp).await?;
    let params = json!({"name": "whoami", "arguments": {}});
    let request = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
    let Reply::Stream(mut stream) = session.start(&request).await? else {
        anyhow::bail!("the question comes on a stream");
    };
    let question = stream.message().await?;
    assert_eq!(question["method"], "elicitation/create", "{question}");
    assert!(question["params"]["elicitationId"].is_string(), "MCP-EL-3");
    let url = question["params"]["url"].as_str().context("a page")?;
    scene.api.link(&scene.owner, url, "ann-there").await?;
    let accepted = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept"}});
    assert_eq!(
        session.message(&accepted).await?.status,
        StatusCode::ACCEPTED
    );
    let answer = stream.message().await?;
    assert_eq!(
        answer["result"]["structuredContent"]["who"], "ann-there",
        "{answer}"
    );

    // MCP-EL-15: the same client where nothing can be asked before the answer.
    disconnect().await?;
    let plain = session.clone().with("accept", "application/json")?;
    let mut request = request;
    request["id"] = json!(8);
    let refused = plain.message(&request).await?;
    assert_eq!(refused.code(), -32042, "{}", refused.text);
    let step = &refused.json["error"]["data"]["elicitations"][0];
    assert_eq!(step["mode"], "url", "{step}");
    assert!(step["elicitationId"].is_string());

    // A client that declines is not asked again, and no call is made.
    let calls = scene.api.authority.count("calls").await?;
    request["id"] = json!(9);
    let Reply::Stream(mut stream) = session.start(&request).await? else {
        anyhow::bail!("the question comes on a stream");
    };
    let question = stream.message().await?;
    let declined = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}});
    session.message(&declined).await?;
    let answer = stream.message().await?;
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    assert!(said(&answer).contains("declined"), "{answer}");
    assert_eq!(scene.api.authority.count("calls").await?, calls);

    // MCP-V-10: clients of revisions without url-mode elicitation get a text with the link.
    for version in ["2025-06-18", "2025-03-26", "2024-11-05"] {
        let (session, _) = scene.mcp.initialize(version).await?;
        let answer = session.request("tools/call", params.clone()).await?;
        let url = page_of(&answer.json)?;
        assert!(url.contains("/connect/accounts/"), "{version}: {url}");
    }
    Ok(())
}

#[tokio::test]
async fn x_86_x_87_what_an_api_refuses_is_made_again_once_and_then_somebody_is_asked() -> Result<()>
{
    let scene = Scene::of("workspace").await?;
    let authority = &scene.api.authority;
    let answer = whoami(&scene.mcp).await?;
    assert!(
        page_of(&answer)?.contains("/w/harbour/sources/"),
        "{answer}"
    );
    let page = scene.connect().await?;
    assert!(
        page.url.path().contains("/w/harbour/sources/"),
        "{}: {}",
        page.url,
        page.text()
    );
    let view = scene.sign_in().await?;
    assert_eq!(view["connection"]["status"], "ok", "{view}");
    assert_eq!(view["connection"]["renewable"], true);
    assert_eq!(view["connection"]["scope"], "read");
    whoami(&scene.mcp).await?;

    // A refused call was not executed, so it is repeated, also if it changes something. The token
    // is renewed once for all waiting calls.
    authority.set(json!({"refuse": true})).await?;
    let all = (0..20).map(|n| call(&scene.mcp, "add_note", json!({"text": format!("{n}")})));
    for answer in try_join_all(all).await? {
        assert_eq!(
            answer["result"]["structuredContent"]["who"], "ann",
            "{answer}"
        );
    }
    assert_eq!(authority.count("notes").await?, 20, "each once");
    assert_eq!(authority.count("refreshes").await?, 1, "MCP-AU-13");
    assert_eq!(authority.count("refused_refreshes").await?, 0);

    // A 401 to one request says nothing about the account, which others use too.
    authority.set(json!({"challenge": ""})).await?;
    for _ in 0..3 {
        let answer = call(&scene.mcp, "refuses", json!({})).await?;
        assert!(said(&answer).contains("wrong answer"), "{answer}");
    }
    assert_eq!(scene.sign_in().await?["connection"]["status"], "ok");
    assert_eq!(
        authority.count("refreshes").await?,
        1,
        "nor makes it token requests"
    );
    assert_eq!(
        whoami(&scene.mcp).await?["result"]["structuredContent"]["who"],
        "ann"
    );

    // MCP-X-87: what is missing is shown where it can be added, and asked for the next time.
    authority.set(json!({"scope": "write"})).await?;
    page_of(&whoami(&scene.mcp).await?)?;
    assert_eq!(
        scene.sign_in().await?["connection"]["wanted_scope"],
        "read write"
    );
    scene.connect().await?;
    assert_eq!(
        whoami(&scene.mcp).await?["result"]["structuredContent"]["who"],
        "ann"
    );

    // A withdrawn account is over: only a person can connect it again.
    authority
        .set(json!({"revoke": "ann", "scope": "", "challenge": "Bearer error=\"invalid_token\""}))
        .await?;
    page_of(&whoami(&scene.mcp).await?)?;
    let view = scene.sign_in().await?;
    assert_eq!(view["connection"]["status"], "needs_sign_in", "{view}");
    assert_eq!(view["connection"]["reason"], "ended");
    let tried = scene.try_tool(&scene.owner).await?;
    assert!(tried.to_string().contains("Nothing was sent"), "{tried}");
    scene.connect().await?;
    assert_eq!(
        whoami(&scene.mcp).await?["result"]["structuredContent"]["who"],
        "ann"
    );

    let log = scene.stack.log();
    for secret in scene.api.authorizations().await? {
        let token = secret.trim_start_matches("Bearer ");
        assert!(!token.is_empty() && !log.contains(token), "CASE-165");
    }
    assert!(!log.contains(SECRET));
    Ok(())
}

#[tokio::test]
async fn au_8_a_token_goes_to_the_api_that_it_was_connected_for_and_nowhere_else() -> Result<()> {
    let scene = Scene::of("workspace").await?;
    let console = scene.owner.console();
    let authority = &scene.api.authority;
    scene.connect().await?;
    for redirects in ["none", "same_origin"] {
        let settings = json!({"settings": {"timeout_ms": 30000, "max_response_bytes": 1_048_576, "follow_redirects": redirects}});
        console
            .expect(Method::PATCH, &scene.path(""), Some(settings))
            .await?;
        let answer = call(&scene.mcp, "away", json!({})).await?;
        assert_eq!(answer["result"]["isError"], true, "{answer}");
    }
    assert_eq!(authority.count("strays").await?, 0, "not even asked");

    // A source that moves takes no account with it, to another path neither.
    let calls = authority.count("calls").await?;
    for base in [
        scene.api.elsewhere().to_owned(),
        format!("{}/v2", scene.api.base_url()),
        scene.api.base_url().to_owned(),
    ] {
        let body = json!({ "base_url": base });
        console
            .expect(Method::PATCH, &scene.path(""), Some(body))
            .await?;
        let view = scene.sign_in().await?;
        assert_eq!(view["connection"], Value::Null, "{view}");
        assert_eq!(view["client"], Value::Null, "MCP-AU-7");
        page_of(&whoami(&scene.mcp).await?)?;
    }
    assert_eq!(authority.count("strays").await?, 0);
    assert_eq!(authority.count("calls").await?, calls);

    // A person who had begun with the old address connects nothing.
    let form = Some(scene.api.sign_in("workspace"));
    console
        .expect(Method::PUT, &scene.path("/sign-in"), form)
        .await?;
    let begun = console
        .expect(Method::POST, &scene.path("/account"), None)
        .await?;
    let back = authority.consent(&text(&begun, "url")?).await?;
    let body = json!({ "base_url": scene.api.elsewhere() });
    console
        .expect(Method::PATCH, &scene.path(""), Some(body))
        .await?;
    let page = scene.owner.browser.open(back.as_str()).await?;
    assert_eq!(page.status, StatusCode::BAD_REQUEST, "{}", page.text());
    assert_eq!(scene.sign_in().await?["connection"], Value::Null);
    Ok(())
}

#[tokio::test]
async fn au_4_au_6_an_issuer_is_enough_and_a_client_needs_no_secret() -> Result<()> {
    let scene = Scene::of("workspace").await?;
    let console = scene.owner.console();
    let issuer = scene.api.authority.issuer();
    let form = json!({"sharing": "workspace", "scope": "read", "server": {"issuer": issuer}, "client": {"client_id": "open"}});
    let view = console
        .expect(Method::PUT, &scene.path("/sign-in"), Some(form))
        .await?;
    assert_eq!(view["server"]["issuer"], issuer);
    assert_eq!(view["server"]["token_endpoint"], format!("{issuer}/token"));
    assert_eq!(view["client"]["client_id"], "open");
    scene.connect().await?;
    assert_eq!(
        whoami(&scene.mcp).await?["result"]["structuredContent"]["who"],
        "ann"
    );
    // MCP-AU-9: a server that has a name is held to it.
    let begun = console
        .expect(Method::POST, &scene.path("/account"), None)
        .await?;
    let back = scene.api.authority.consent(&text(&begun, "url")?).await?;
    let pairs: Vec<(String, String)> = back.query_pairs().into_owned().collect();
    assert!(pairs.iter().any(|(name, _)| name == "iss"), "{back}");
    let mut altered = back.clone();
    let others = pairs.iter().filter(|(name, _)| name != "iss");
    altered
        .query_pairs_mut()
        .clear()
        .extend_pairs(others)
        .append_pair("iss", "https://evil.example");
    let page = scene.owner.browser.open(altered.as_str()).await?;
    assert_eq!(page.status, StatusCode::BAD_REQUEST);
    assert!(
        page.text().contains("another authorization server"),
        "{}",
        page.text()
    );
    Ok(())
}

#[tokio::test]
async fn case_106_another_workspace_sees_and_uses_nothing_of_an_account() -> Result<()> {
    let scene = Scene::of("person").await?;
    let link = page_of(&whoami(&scene.mcp).await?)?;
    scene.api.link(&scene.owner, &link, "ann-there").await?;
    let eve = Person::sign_up(&scene.stack, "eve").await?;
    eve.console().create_workspace("lagoon").await?;
    for workspace in ["harbour", "lagoon"] {
        for (method, rest) in [
            (Method::GET, "/sign-in"),
            (Method::PUT, "/sign-in"),
            (Method::DELETE, "/sign-in"),
            (Method::POST, "/account"),
            (Method::DELETE, "/account"),
        ] {
            let path = format!("/workspaces/{workspace}/sources/{}{rest}", scene.source);
            let body = (method == Method::PUT).then(|| scene.api.sign_in("workspace"));
            let (status, answer) = eve.console().send(method.clone(), &path, body).await?;
            // REVIEW-S-14: also what would have changed nothing.
            assert_eq!(status, StatusCode::NOT_FOUND, "{method} {path}: {answer}");
        }
    }
    let page = eve.browser.open(&link).await?;
    assert_eq!(page.status, StatusCode::FORBIDDEN, "{}", page.text());
    // The same API in her own workspace, opened by the same person there: another account, which she has to connect herself.
    let body = json!({"kind": "openapi", "name": "Notes", "input": {"kind": "text", "text": scene.api.document().to_string()}});
    let made = eve
        .console()
        .post("/workspaces/lagoon/sources", body)
        .await?;
    let source = text(&made, "id")?;
    let path = format!("/workspaces/lagoon/sources/{source}/sign-in");
    let form = Some(scene.api.sign_in("person"));
    eve.console().expect(Method::PUT, &path, form).await?;
    let tools = eve.console().tool_ids("lagoon", &source).await?;
    let published = eve
        .console()
        .publish("lagoon", "notes", &source, tools)
        .await?;
    let (hers, _) = client(scene.stack.url(), &eve, &published).await?;
    let asked = page_of(&whoami(&hers).await?)?;
    assert_ne!(asked, link);
    assert_eq!(
        whoami(&scene.mcp).await?["result"]["structuredContent"]["who"],
        "ann-there"
    );
    Ok(())
}

#[tokio::test]
async fn case_167_two_nodes_renew_an_account_of_an_api_once_in_each_round() -> Result<()> {
    let api = GuardedApi::start().await?;
    let fixture = FixtureApi::start()?;
    let allowed = format!("{},{}", fixture.address(), api.allowed());
    let builder = Cluster::builder().nodes(2).setting("egress_allow", allowed);
    let cluster = builder.start(&fixture).await?;
    let owner = sign_up(&cluster, "ann").await?;
    let source = add(&api, &owner, "workspace").await?;
    let path = format!("/workspaces/harbour/sources/{source}/account");
    let begun = owner.console().expect(Method::POST, &path, None).await?;
    let back = api.authority.consent(&text(&begun, "url")?).await?;
    owner.browser.open(back.as_str()).await?;
    let published = publish(&owner, &source).await?;
    let (mcp, _) = client(cluster.url(), &owner, &published).await?;
    let nodes = [cluster.on(0, &mcp)?, cluster.on(1, &mcp)?];
    for node in &nodes {
        whoami(node).await?;
    }
    for round in 1..=20 {
        api.authority.set(json!({"refuse": true})).await?;
        let calls = nodes
            .iter()
            .flat_map(|node| [whoami(node), whoami(node), whoami(node)]);
        for answer in try_join_all(calls).await? {
            assert_eq!(
                answer["result"]["structuredContent"]["who"], "ann",
                "round {round}: {answer}"
            );
        }
        assert_eq!(api.authority.count("refreshes").await?, round);
    }
    assert_eq!(
        api.authority.count("refused_refreshes").await?,
        0,
        "no rotated token was used twice"
    );
    Ok(())
}
