//! Discovery, registration, authorization, tokens, revocation: what clients depend on
//! (AUTH-1.1–AUTH-1.5, AUTH-5.1 to AUTH-5.6).

use anyhow::{Context, Result};
use portolan_tests::{
    mcp::{LEGACY, McpClient},
    oauth::{OAuthClient, Pkce, REDIRECT_URI, query, registration, tokens},
    person::Person,
    scene::Scene,
    stack::Stack,
};
use reqwest::{StatusCode, header};
use serde_json::{Value, json};

async fn get(url: &str) -> Result<(StatusCode, header::HeaderMap, Value)> {
    let response = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .build()?
        .get(url)
        .header(header::ORIGIN, "https://inspector.example")
        .send()
        .await?;
    let (status, headers) = (response.status(), response.headers().clone());
    let text = response.text().await?;
    Ok((
        status,
        headers,
        serde_json::from_str(&text).unwrap_or(Value::Null),
    ))
}

async fn error(response: reqwest::Response) -> Result<(u16, String)> {
    let status = response.status().as_u16();
    assert_eq!(
        response.headers()[header::CACHE_CONTROL],
        "no-store",
        "AUTH-T9"
    );
    let body: Value = response.json().await?;
    Ok((
        status,
        body["error"].as_str().unwrap_or_default().to_owned(),
    ))
}

#[tokio::test]
async fn e1_to_e4_discovery_says_the_same_issuer_everywhere_and_404_elsewhere() -> Result<()> {
    let stack = Stack::start()?;
    let origin = stack.url().origin().ascii_serialization();
    let (status, headers, metadata) =
        get(&format!("{origin}/.well-known/oauth-authorization-server")).await?;
    assert_eq!(status, StatusCode::OK);
    assert!(
        headers[header::CONTENT_TYPE]
            .to_str()?
            .starts_with("application/json")
    );
    assert_eq!(
        headers[header::ACCESS_CONTROL_ALLOW_ORIGIN],
        "*",
        "AUTH-E10"
    );
    assert_eq!(metadata["issuer"], origin.as_str());
    assert!(
        metadata
            .as_object()
            .context("an object")?
            .values()
            .all(|value| !value.is_null()),
        "zod clients refuse null"
    );
    assert_eq!(
        metadata["code_challenge_methods_supported"],
        json!(["S256"])
    );
    assert_eq!(
        metadata["authorization_response_iss_parameter_supported"], true,
        "AUTH-A7"
    );
    assert_eq!(
        metadata["client_id_metadata_document_supported"], true,
        "AUTH-C1"
    );

    for (asked, resource) in [
        ("/t/harbour/fixture/mcp", "/t/harbour/fixture/mcp"),
        ("/t/harbour/fixture/mcp/", "/t/harbour/fixture/mcp/"),
    ] {
        let (status, _, document) = get(&format!(
            "{origin}/.well-known/oauth-protected-resource{asked}"
        ))
        .await?;
        assert_eq!(
            status,
            StatusCode::OK,
            "AUTH-E3: any well-formed slug has a document"
        );
        assert_eq!(
            document["resource"],
            format!("{origin}{resource}"),
            "AUTH-E3: the form that was asked"
        );
        assert_eq!(document["authorization_servers"], json!([origin]));
        assert_eq!(document["scopes_supported"], json!(["mcp"]));
    }
    for missing in [
        "openid-configuration",
        "oauth-authorization-server/t/harbour/mcp",
        "oauth-protected-resource",
        "anything",
    ] {
        let (status, headers, body) = get(&format!("{origin}/.well-known/{missing}")).await?;
        assert_eq!(status, StatusCode::NOT_FOUND, "AUTH-E2, AUTH-E4 {missing}");
        assert!(
            headers[header::CONTENT_TYPE]
                .to_str()?
                .starts_with("application/json"),
            "AUTH-E4 {missing}"
        );
        assert_eq!(body["error"], "not_found", "AUTH-E4 {missing}");
    }
    let (status, _, keys) = get(&format!("{origin}/oauth/jwks.json")).await?;
    assert_eq!(status, StatusCode::OK);
    assert!(
        keys["keys"]
            .as_array()
            .is_some_and(|keys| keys.iter().all(|key| key.get("d").is_none())),
        "no private part"
    );
    Ok(())
}

/// MCP-DP-4: served, though deprecated.
#[tokio::test]
async fn c8_to_c14_registration_defaults_deduplicates_and_refuses() -> Result<()> {
    let stack = Stack::start()?;
    let http = reqwest::Client::builder().build()?;
    let register = |body: Value| {
        http.post(format!("{}oauth/register", stack.url()))
            .json(&body)
            .send()
    };
    let first: Value = register(registration("Twice")).await?.json().await?;
    assert_eq!(first["token_endpoint_auth_method"], "none", "AUTH-C9");
    assert_eq!(
        first["redirect_uris"],
        json!([REDIRECT_URI]),
        "AUTH-C8: what was registered"
    );
    assert!(
        first
            .as_object()
            .context("an object")?
            .values()
            .all(|value| !value.is_null()),
        "AUTH-C8: no nulls"
    );
    let mut again = registration("Twice");
    again["redirect_uris"] = json!(["http://127.0.0.1:40001/callback"]);
    let again: Value = register(again).await?.json().await?;
    assert_eq!(
        first["client_id"], again["client_id"],
        "AUTH-C10: another loopback port is the same client"
    );
    let other: Value = register(registration("Other")).await?.json().await?;
    assert_ne!(first["client_id"], other["client_id"], "AUTH-C10");
    let bare: Value = register(json!({"redirect_uris": ["https://client.example/cb"]}))
        .await?
        .json()
        .await?;
    assert_eq!(
        bare["token_endpoint_auth_method"], "none",
        "AUTH-C9: absent is none"
    );
    for uris in [
        json!([]),
        json!(["https://a.example/#f"]),
        json!(["javascript:alert(1)"]),
        json!(["http://a.example/cb"]),
        json!(["https://*.example/cb"]),
    ] {
        let response = register(json!({"redirect_uris": uris, "client_name": "x"})).await?;
        assert_eq!(
            response.status(),
            StatusCode::BAD_REQUEST,
            "AUTH-C14 {uris}"
        );
        let body: Value = response.json().await?;
        assert_eq!(body["error"], "invalid_redirect_uri", "AUTH-C14 {uris}");
    }
    let response =
        register(json!({"redirect_uris": [REDIRECT_URI], "jwks_uri": "https://a.example/keys"}))
            .await?;
    let body: Value = response.json().await?;
    assert_eq!(body["error"], "invalid_client_metadata", "AUTH-C9");
    Ok(())
}

#[tokio::test]
async fn a2_until_the_redirect_is_trusted_faults_are_pages_never_redirects() -> Result<()> {
    let stack = Stack::start()?;
    let client = OAuthClient::register(stack.url(), "Harness").await?;
    let person = Person::new(stack.url(), "guest")?;
    let pkce = Pkce::new()?;
    let good = client.parameters(None, &pkce);
    for (name, value) in [
        ("client_id", "unknown"),
        ("redirect_uri", "https://attacker.example/cb"),
        ("redirect_uri", "http://127.0.0.1:41999/other"),
    ] {
        let mut parameters = good.clone();
        parameters.insert(name.to_owned(), value.to_owned());
        let page = person
            .browser
            .open(&client.authorize_url(&parameters)?)
            .await?;
        assert_eq!(
            page.status,
            StatusCode::BAD_REQUEST,
            "AUTH-A2 {name}={value}"
        );
        assert!(page.leaves_to.is_none(), "AUTH-A2: no redirect, ever");
    }
    // AUTH-A3: any port on loopback.
    let mut parameters = good.clone();
    parameters.insert(
        "redirect_uri".to_owned(),
        "http://127.0.0.1:5/callback".to_owned(),
    );
    assert!(
        person
            .browser
            .open(&client.authorize_url(&parameters)?)
            .await?
            .form_with("password")
            .is_ok()
    );
    // After the redirect is trusted, faults go back to the client, with state and iss (AUTH-A6,
    // AUTH-A7).
    for (name, value, expected) in [
        ("response_type", "token", "unsupported_response_type"),
        ("code_challenge", "", "invalid_request"),
        ("code_challenge_method", "plain", "invalid_request"),
        (
            "request_uri",
            "https://a.example",
            "request_uri_not_supported",
        ),
        (
            "resource",
            "https://elsewhere.example/mcp",
            "invalid_target",
        ),
        ("prompt", "none", "login_required"),
    ] {
        let mut parameters = good.clone();
        parameters.insert(name.to_owned(), value.to_owned());
        let page = person
            .browser
            .open(&client.authorize_url(&parameters)?)
            .await?;
        let back = page
            .leaves_to
            .with_context(|| format!("{name}={value} goes back; got {}", page.status))?;
        assert_eq!(
            query(&back, "error").as_deref(),
            Some(expected),
            "{name}={value}"
        );
        assert_eq!(
            query(&back, "state").as_deref(),
            Some("a state & more"),
            "AUTH-A6"
        );
        assert_eq!(
            query(&back, "iss"),
            Some(stack.url().origin().ascii_serialization()),
            "AUTH-A7"
        );
        assert_eq!(page.status, StatusCode::SEE_OTHER, "AUTH-A12");
    }
    Ok(())
}

#[tokio::test]
async fn a_consent_is_bound_to_the_browser_and_denial_goes_back() -> Result<()> {
    let scene = Scene::new().await?;
    let pkce = Pkce::new()?;
    let url = scene
        .client
        .authorize_url(&scene.client.parameters(Some(&scene.published.url), &pkce))?;
    let page = scene.owner.open_consent(&url).await?;
    assert!(
        page.text().contains("Harness"),
        "the page names the client: {}",
        page.text()
    );
    let consent_address = page.url.to_string();
    let back = scene.owner.decide(page, false).await?;
    assert_eq!(query(&back, "error").as_deref(), Some("access_denied"));
    // AUTH-A11: the address of the consent page is worth nothing in another browser.
    let other = Person::sign_up(&scene.stack, "bob").await?;
    let page = other.browser.open(&consent_address).await?;
    assert!(page.form_with("decision").is_err(), "{}", page.text());
    Ok(())
}

#[tokio::test]
async fn t3_to_t6_a_code_works_once_and_only_for_its_client() -> Result<()> {
    let scene = Scene::new().await?;
    let (code, pkce) = scene
        .client
        .code(&scene.owner, Some(&scene.published.url))
        .await?;
    // AUTH-T5: wrong attempts do not burn the code.
    assert_eq!(
        error(scene.client.redeem(&code, &Pkce::new()?.verifier).await?).await?,
        (400, "invalid_grant".to_owned())
    );
    let other = OAuthClient::register(scene.stack.url(), "Other client").await?;
    assert_eq!(
        error(other.redeem(&code, &pkce.verifier).await?).await?,
        (400, "invalid_grant".to_owned())
    );
    let first = tokens(scene.client.redeem(&code, &pkce.verifier).await?).await?;
    assert_eq!(first.answer["token_type"], "Bearer");
    assert_eq!(
        first.answer["scope"]
            .as_str()
            .map(|scope| scope.contains("mcp")),
        Some(true),
        "AUTH-A8"
    );
    let mcp = McpClient::new(&scene.published.url)?.with_token(&first.access)?;
    assert_eq!(
        mcp.modern("tools/list", json!({})).await?.status,
        StatusCode::OK
    );
    // AUTH-T6: a second use by the same client ends what came of the first.
    assert_eq!(
        error(scene.client.redeem(&code, &pkce.verifier).await?).await?,
        (400, "invalid_grant".to_owned())
    );
    assert_eq!(
        error(scene.client.refresh(&first.refresh).await?).await?,
        (400, "invalid_grant".to_owned())
    );
    Ok(())
}

#[tokio::test]
async fn t3_two_redemptions_at_once_have_one_winner() -> Result<()> {
    let scene = Scene::new().await?;
    for _ in 0..5 {
        let (code, pkce) = scene
            .client
            .code(&scene.owner, Some(&scene.published.url))
            .await?;
        let attempts = futures_util::future::join_all(
            (0..6).map(|_| scene.client.redeem(&code, &pkce.verifier)),
        )
        .await;
        let mut winners = 0;
        for attempt in attempts {
            winners += usize::from(attempt?.status() == StatusCode::OK);
        }
        assert!(winners <= 1, "{winners} winners");
    }
    Ok(())
}

#[tokio::test]
async fn k_fifty_refreshes_at_once_all_succeed_with_one_successor() -> Result<()> {
    let scene = Scene::new().await?;
    let attempts = futures_util::future::join_all(
        (0..50).map(|_| scene.client.refresh(&scene.tokens.refresh)),
    )
    .await;
    let mut successors = std::collections::BTreeSet::new();
    for attempt in attempts {
        successors.insert(tokens(attempt?).await?.refresh);
    }
    assert_eq!(
        successors.len(),
        1,
        "CLIENT-13: the same successor for everybody"
    );
    // A foreign client cannot use it, and does not end it.
    let other = OAuthClient::register(scene.stack.url(), "Other client").await?;
    let successor = successors.into_iter().next().context("one")?;
    assert_eq!(
        error(other.refresh(&successor).await?).await?,
        (400, "invalid_grant".to_owned())
    );
    assert!(
        tokens(scene.client.refresh(&successor).await?)
            .await
            .is_ok()
    );
    Ok(())
}

#[tokio::test]
async fn t8_to_t11_the_token_endpoint_names_the_fault() -> Result<()> {
    let scene = Scene::new().await?;
    let id = scene.client.client_id.clone();
    for (parameters, expected) in [
        (
            vec![("grant_type", "password"), ("client_id", &*id)],
            (400, "unsupported_grant_type"),
        ),
        (vec![("client_id", &*id)], (400, "invalid_request")),
        (
            vec![
                ("grant_type", "refresh_token"),
                ("client_id", "gone"),
                ("refresh_token", "x"),
            ],
            (401, "invalid_client"),
        ),
        (
            vec![
                ("grant_type", "refresh_token"),
                ("client_id", &*id),
                ("refresh_token", "x"),
            ],
            (400, "invalid_grant"),
        ),
        (
            vec![
                ("grant_type", "authorization_code"),
                ("client_id", &*id),
                ("client_id", &*id),
                ("code", "x"),
            ],
            (400, "invalid_request"),
        ),
    ] {
        let (status, code) = error(scene.client.token(&parameters).await?).await?;
        assert_eq!((status, code.as_str()), expected, "{parameters:?}");
    }
    Ok(())
}

/// MCP-SD-16: the older default addresses end in a slash, or not.
#[tokio::test]
async fn e9_clients_of_2025_03_26_find_the_root_aliases_and_need_no_resource() -> Result<()> {
    let scene = Scene::new().await?;
    let http = reqwest::Client::builder().build()?;
    let registered: Value = http
        .post(scene.stack.url().join("/register/")?)
        .json(&registration("Old client"))
        .send()
        .await?
        .json()
        .await?;
    let pkce = Pkce::new()?;
    let mut url = scene.stack.url().join("/authorize")?;
    url.query_pairs_mut()
        .append_pair("response_type", "code")
        .append_pair(
            "client_id",
            registered["client_id"].as_str().context("an id")?,
        )
        .append_pair("redirect_uri", REDIRECT_URI)
        .append_pair("code_challenge", &pkce.challenge)
        .append_pair("code_challenge_method", "S256");
    let back = scene.owner.agree(url.as_str()).await?;
    let code =
        query(&back, "code").context("a code without resource and scope: the picker decides")?;
    assert_eq!(
        query(&back, "state"),
        None,
        "AUTH-A6: no state was sent, none comes back"
    );
    let body = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs([
            ("grant_type", "authorization_code"),
            (
                "client_id",
                registered["client_id"].as_str().unwrap_or_default(),
            ),
            ("code", &code),
            ("code_verifier", &pkce.verifier),
        ])
        .finish();
    let response = http
        .post(scene.stack.url().join("/token/")?)
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(body)
        .send()
        .await?;
    let tokens = tokens(response).await?;
    // AUTH-5.4: the audience is the workspace, which each of its servers accepts.
    let mcp = McpClient::new(&scene.published.url)?.with_token(&tokens.access)?;
    assert!(mcp.initialize("2025-03-26").await.is_ok());
    Ok(())
}

#[tokio::test]
async fn revocation_ends_the_refresh_token_and_answers_200_to_nonsense() -> Result<()> {
    let scene = Scene::new().await?;
    let http = reqwest::Client::builder().build()?;
    let revoke = |token: &str| {
        let body = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs([("token", token), ("client_id", &scene.client.client_id)])
            .finish();
        http.post(format!("{}oauth/revoke", scene.stack.url()))
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(body)
            .send()
    };
    assert_eq!(revoke("nonsense").await?.status(), StatusCode::OK);
    assert_eq!(
        revoke(&scene.tokens.refresh).await?.status(),
        StatusCode::OK
    );
    assert_eq!(
        error(scene.client.refresh(&scene.tokens.refresh).await?).await?,
        (400, "invalid_grant".to_owned())
    );
    Ok(())
}

#[tokio::test]
async fn tokens_are_accepted_from_the_header_alone_and_only_whole() -> Result<()> {
    let scene = Scene::new().await?;
    let bare = McpClient::new(&scene.published.url)?;
    let in_query = bare.clone().at(&format!(
        "{}?access_token={}",
        scene.published.url, scene.tokens.access
    ));
    assert_eq!(
        in_query.request("ping", json!({})).await?.status,
        StatusCode::UNAUTHORIZED,
        "CASE-113"
    );
    let mut broken = scene.tokens.access.clone();
    let last = if broken.pop() == Some('A') { 'B' } else { 'A' };
    broken.insert(broken.len() - 20, last);
    let answer = bare
        .clone()
        .with_token(&broken)?
        .request("ping", json!({}))
        .await?;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "CASE-117");
    assert!(
        answer
            .header("www-authenticate")
            .contains("error=\"invalid_token\"")
    );
    let (session, _) = scene.mcp.initialize(LEGACY).await?;
    assert_eq!(
        session.request("ping", json!({})).await?.status,
        StatusCode::OK
    );
    // 164: a token does not authenticate at the console, nor a cookie at the endpoint.
    let response = reqwest::Client::builder()
        .build()?
        .get(scene.stack.url().join("/api/v1/me")?)
        .bearer_auth(&scene.tokens.access)
        .send()
        .await?;
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    Ok(())
}
