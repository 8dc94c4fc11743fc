//! Every route of the console's API against every person who may not use it. The list is the
//! emitted OpenAPI document itself, so that a new route is in the matrix from its first day.

use std::process::Command;

use anyhow::{Context, Result};
use portolan_tests::{
    person::Person,
    stack::{Stack, binary, repository},
};
use reqwest::{Method, StatusCode};
use serde_json::Value;

fn document() -> Result<Value> {
    let output = Command::new(binary()).args(["emit", "openapi"]).output()?;
    anyhow::ensure!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Routes that answer without a session, each with its reason.
const OPEN: &[(&str, &str)] = &[(
    "/api/v1/openapi.json",
    "describes the API, holds nothing of anybody",
)];

#[tokio::test]
async fn every_route_is_401_without_a_session_and_403_from_another_site() -> Result<()> {
    let stack = Stack::start()?;
    let ann = Person::sign_up(&stack, "ann").await?;
    let stranger = Person::new(stack.url(), "stranger")?;
    let document = document()?;
    let mut count = 0;
    for (path, item) in document["paths"].as_object().context("paths")? {
        for method in item
            .as_object()
            .context("methods")?
            .keys()
            .filter(|key| matches!(key.as_str(), "get" | "post" | "put" | "patch" | "delete"))
        {
            if OPEN.iter().any(|(open, _)| open == path) {
                continue;
            }
            let method: Method = method.to_uppercase().parse()?;
            let concrete = path
                .replace("{ws}", "nowhere")
                .replace("{id}", "src_00000000-0000-7000-8000-000000000000");
            let path = if concrete.starts_with("/api/v1") {
                concrete
            } else {
                format!("/api/v1{concrete}")
            };
            let response = stranger
                .browser
                .fetch(method.clone(), &path)?
                .header("content-type", "application/json")
                .body("{}")
                .send()
                .await?;
            assert_eq!(
                response.status(),
                StatusCode::UNAUTHORIZED,
                "{method} {path} without a session"
            );
            let body: Value = response
                .json()
                .await
                .with_context(|| format!("{method} {path}: errors are JSON"))?;
            assert!(
                body["error"]["code"].is_string() && body["error"]["message"].is_string(),
                "{method} {path}: {body}"
            );
            if method != Method::GET {
                let mut request = ann
                    .browser
                    .fetch(method.clone(), &path)?
                    .header("content-type", "application/json")
                    .body("{}")
                    .build()?;
                request
                    .headers_mut()
                    .insert("sec-fetch-site", "cross-site".parse()?);
                let response = reqwest::Client::builder().build()?.execute(request).await?;
                assert_eq!(
                    response.status(),
                    StatusCode::FORBIDDEN,
                    "{method} {path} from another site"
                );
            }
            count += 1;
        }
    }
    assert!(count >= 35, "only {count} operations in the document");
    Ok(())
}

#[test]
fn the_committed_documents_are_what_the_binary_emits() -> Result<()> {
    for (what, path) in [
        ("openapi", "web/openapi.json"),
        ("configuration", "docs/configuration.md"),
        ("configuration-schema", "docs/configuration.schema.json"),
        ("events", "docs/events.md"),
        ("bundle-schema", "docs/configuration-as-code.schema.json"),
    ] {
        let output = Command::new(binary()).args(["emit", what]).output()?;
        let committed = std::fs::read_to_string(repository().join(path))
            .with_context(|| format!("{path}: run `make emit`"))?;
        let emitted = String::from_utf8(output.stdout)?;
        assert!(
            committed.trim() == emitted.trim(),
            "{path} is out of date: run `make emit`"
        );
    }
    Ok(())
}
