//! Two tenants on one service: nothing of one is visible to the other.

use anyhow::Result;
use portolan_tests::{mcp::McpClient, native, oauth::OAuthClient, person::Person, scene::Scene};
use reqwest::{Method, StatusCode};
use serde_json::json;

#[tokio::test]
async fn case_106_foreign_ids_are_404_on_every_console_route_like_random_ones() -> Result<()> {
    let scene = Scene::new().await?;
    let bob = Person::sign_up(&scene.stack, "bob").await?;
    bob.console().create_workspace("lagoon").await?;
    let tool_id = scene
        .owner
        .console()
        .tool_ids("harbour", &scene.published.source_id)
        .await?[0]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let written = native::offer(&scene.owner.console(), &scene.published).await?;
    let (source, server) = (&scene.published.source_id, &scene.published.server_id);
    let random = "00000000-0000-7000-8000-000000000000";
    let ids = |id: &str| {
        id.split_once('_')
            .map_or_else(|| id.to_owned(), |(prefix, _)| format!("{prefix}_{random}"))
    };

    let mut routes = vec![
        (Method::GET, String::new()),
        (Method::PATCH, String::new()),
        (Method::GET, "/members".to_owned()),
        (Method::GET, "/overview".to_owned()),
        (Method::GET, "/sources".to_owned()),
        (Method::GET, "/tools".to_owned()),
        (Method::GET, "/servers".to_owned()),
        (Method::PUT, "/default-server".to_owned()),
        (Method::GET, "/prompts".to_owned()),
        (Method::GET, "/resources".to_owned()),
        (Method::GET, "/access-tokens".to_owned()),
        (Method::DELETE, format!("/access-tokens/tok_{random}")),
        (Method::GET, "/trusted-pipelines".to_owned()),
        (Method::PUT, format!("/trusted-pipelines/pip_{random}")),
        (Method::DELETE, format!("/trusted-pipelines/pip_{random}")),
        (
            Method::PUT,
            format!("/service-accounts/svc_{random}/api-access"),
        ),
        (
            Method::DELETE,
            format!("/service-accounts/svc_{random}/api-access"),
        ),
        (Method::POST, "/mcp".to_owned()),
        (Method::GET, "/calls".to_owned()),
        (Method::GET, "/calls/export".to_owned()),
        (Method::GET, "/call-views".to_owned()),
        (
            Method::DELETE,
            format!("/call-views/viw_{}", "0".repeat(32)),
        ),
        (Method::GET, "/insights".to_owned()),
        (Method::GET, "/insights/errors".to_owned()),
        (Method::GET, "/insights/people".to_owned()),
        (Method::GET, "/calls/live".to_owned()),
        (Method::GET, format!("/calls/call_{}", "0".repeat(32))),
        (
            Method::POST,
            format!("/calls/call_{}/reveal", "0".repeat(32)),
        ),
        (Method::GET, "/search?q=a".to_owned()),
        (Method::POST, "/servers/check".to_owned()),
        (Method::GET, "/audit".to_owned()),
        (Method::GET, "/webhooks".to_owned()),
        (Method::GET, "/alerts".to_owned()),
        (Method::POST, "/alerts/read".to_owned()),
        (Method::GET, "/alert-rules".to_owned()),
        (Method::GET, "/event-types".to_owned()),
        (Method::GET, "/events/live".to_owned()),
        (Method::POST, "/imports/preview".to_owned()),
        (Method::GET, "/configuration".to_owned()),
        (Method::POST, "/configuration/plans".to_owned()),
        (
            Method::POST,
            format!("/configuration/plans/pln_{random}/apply"),
        ),
    ];
    for id in [source.clone(), ids(source)] {
        for (method, rest) in [
            (Method::GET, ""),
            (Method::PATCH, ""),
            (Method::DELETE, ""),
            (Method::POST, "/restore"),
            (Method::GET, "/tools"),
            (Method::POST, "/tools"),
            (Method::PUT, "/credential"),
            (Method::DELETE, "/credential"),
            (Method::POST, "/reimport/preview"),
            (Method::POST, "/reimport"),
        ] {
            routes.push((method, format!("/sources/{id}{rest}")));
        }
    }
    for id in [tool_id.clone(), ids(&tool_id)] {
        for (method, rest) in [
            (Method::GET, ""),
            (Method::PATCH, ""),
            (Method::DELETE, ""),
            (Method::POST, "/try"),
            (Method::PUT, "/definition"),
        ] {
            routes.push((method, format!("/tools/{id}{rest}")));
        }
    }
    for id in [server.clone(), ids(server)] {
        for (method, rest) in [
            (Method::GET, ""),
            (Method::PATCH, ""),
            (Method::DELETE, ""),
            (Method::POST, "/restore"),
            (Method::PUT, "/tools"),
            (Method::PUT, "/prompts"),
            (Method::PUT, "/resources"),
            (Method::POST, "/publish"),
            (Method::POST, "/pause"),
            (Method::GET, "/connection"),
            (Method::GET, "/calls"),
            (Method::GET, "/capture"),
            (Method::PUT, "/capture"),
            (Method::DELETE, "/capture/content"),
            (Method::GET, "/saved-calls"),
            (Method::POST, "/saved-calls"),
        ] {
            routes.push((method, format!("/servers/{id}{rest}")));
        }
        let call = format!("/servers/{id}/saved-calls/cal_{}", "0".repeat(32));
        routes.extend([(Method::PUT, call.clone()), (Method::DELETE, call)]);
    }
    for (noun, id) in [
        ("prompts", &written.prompts[0]),
        ("resources", &written.resources[0]),
    ] {
        for id in [id.clone(), ids(id)] {
            for (method, rest) in [
                (Method::GET, ""),
                (Method::PUT, ""),
                (Method::PATCH, ""),
                (Method::DELETE, ""),
                (Method::POST, "/restore"),
            ] {
                routes.push((method, format!("/{noun}/{id}{rest}")));
            }
        }
    }
    // A good body for each, so that nothing but the id can be refused.
    let input = json!({"kind": "text", "text": "{}"});
    let body = |method: &Method, rest: &str| match (
        method.as_str(),
        rest.rsplit('/').next().unwrap_or_default(),
    ) {
        ("PUT", "prompts") => json!({"prompts": []}),
        ("PUT", "resources") => json!({"resources": []}),
        ("PUT", _) if rest.starts_with("/prompts/") => native::prompts().swap_remove(0),
        ("PUT", _) if rest.starts_with("/resources/") => native::resources("x").swap_remove(0),
        ("PATCH", _) if rest.starts_with("/prompts/") || rest.starts_with("/resources/") => {
            json!({"enabled": false})
        }
        ("PUT", _) if rest.starts_with("/trusted-pipelines/") => {
            json!({"name": "x", "issuer": "https://ci.example", "subject": "x", "scopes": ["audit:read"]})
        }
        ("PUT", "api-access") => json!({"role": "viewer", "scopes": ["audit:read"]}),
        ("PUT", "credential") => json!({"kind": "bearer", "token": "x"}),
        ("PUT", "tools") => json!({"tools": []}),
        ("PUT", "capture") => json!({"policy": "all", "days": 7}),
        ("PUT", "default-server") => json!({"server_id": server}),
        ("PUT", "definition") => {
            json!({"name": "x", "description": "x", "method": "GET", "path": "/x"})
        }
        ("POST", "tools") => {
            json!({"name": "x", "description": "x", "method": "GET", "path": "/x"})
        }
        ("POST", "preview") => json!({"input": input}),
        ("POST", "reimport") => json!({"input": input, "digest": "x"}),
        ("POST" | "PUT", _) if rest.contains("/saved-calls") => {
            json!({"name": "x", "method": "tools/call", "params": {"name": "x"}, "expect": {"status": "ok"}})
        }
        ("POST", "try") => json!({"arguments": {}}),
        ("PATCH", _) if rest.is_empty() || !rest.starts_with("/tools") => {
            json!({"name": "Mine now"})
        }
        ("PATCH", _) => json!({"title": "Mine now"}),
        _ => json!({}),
    };
    for workspace in ["harbour", "lagoon", "nowhere"] {
        for (method, rest) in &routes {
            if workspace == "lagoon" && !rest.contains('_') {
                continue; // Bob's own workspace without a foreign id is simply his.
            }
            let path = format!("/workspaces/{workspace}{rest}");
            let (status, answer) = bob
                .console()
                .send(
                    method.clone(),
                    &path,
                    (*method != Method::GET).then(|| body(method, rest)),
                )
                .await?;
            assert_eq!(status, StatusCode::NOT_FOUND, "{method} {path}: {answer}");
        }
    }
    // And nothing has changed for the owner.
    let source = scene
        .owner
        .console()
        .get(&format!("/workspaces/harbour/sources/{source}"))
        .await?;
    assert_eq!(source["name"], "Fixture");
    Ok(())
}

#[tokio::test]
async fn case_95_to_97_a_token_opens_its_own_server_and_no_other() -> Result<()> {
    let scene = Scene::new().await?;
    let bob = Person::sign_up(&scene.stack, "bob").await?;
    let theirs = bob
        .console()
        .publish_fixture("lagoon", &scene.fixture)
        .await?;
    let client = OAuthClient::register(scene.stack.url(), "Harness").await?;
    let tokens = client.authorize(&bob, &theirs.url).await?;
    let bobs = McpClient::new(&theirs.url)?.with_token(&tokens.access)?;
    assert_eq!(
        bobs.modern("tools/list", json!({})).await?.status,
        StatusCode::OK
    );
    let answer = bobs
        .clone()
        .at(&scene.published.url)
        .modern("tools/list", json!({}))
        .await?;
    assert!(
        matches!(answer.status.as_u16(), 401 | 404),
        "{}",
        answer.status
    );
    // A session of one is unknown at the other.
    let (session, _) = scene.mcp.initialize("2025-11-25").await?;
    let stolen = session.with_token(&tokens.access)?;
    let answer = stolen.request("tools/list", json!({})).await?;
    assert!(
        matches!(answer.status.as_u16(), 401 | 404),
        "{}",
        answer.status
    );
    // A sibling server of the same workspace.
    let ids = scene
        .owner
        .console()
        .tool_ids("harbour", &scene.published.source_id)
        .await?;
    let sibling = scene
        .owner
        .console()
        .publish("harbour", "second", &scene.published.source_id, ids)
        .await?;
    let answer = scene
        .mcp
        .clone()
        .at(&sibling.url)
        .modern("tools/list", json!({}))
        .await?;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "97");
    Ok(())
}

#[tokio::test]
async fn case_96_consent_for_a_foreign_workspace_reads_like_one_for_an_unknown_one() -> Result<()> {
    let scene = Scene::new().await?;
    let bob = Person::sign_up(&scene.stack, "bob").await?;
    bob.console().create_workspace("lagoon").await?;
    let mut seen = Vec::new();
    for slug in ["harbour", "doesnotexist"] {
        let pkce = portolan_tests::oauth::Pkce::new()?;
        let resource = scene.stack.url().join(&format!("/t/{slug}/fixture/mcp"))?;
        let url = scene
            .client
            .authorize_url(&scene.client.parameters(Some(resource.as_str()), &pkce))?;
        let page = bob.open_consent(&url).await?;
        let allows = page.forms().iter().any(|form| {
            form.buttons
                .iter()
                .any(|(_, value, _)| matches!(value.as_str(), "allow" | "approve"))
        });
        assert!(!allows, "{slug}: there is nothing to allow");
        seen.push((page.status, page.text().replace(slug, "SLUG")));
    }
    assert_eq!(seen[0], seen[1]);
    Ok(())
}
