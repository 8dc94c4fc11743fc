//! The console's JSON API, as the console uses it.

use anyhow::{Context, Result, bail};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{browser::Browser, fixture::FixtureApi};

/// The JSON API with one person's cookies.
#[derive(Debug, Clone, Copy)]
pub struct Console<'a> {
    browser: &'a Browser,
}

/// A published server and what it was made of.
#[derive(Debug, Clone)]
pub struct Published {
    /// Slug of the workspace.
    pub workspace: String,
    /// Id of the source.
    pub source_id: String,
    /// Id of the server.
    pub server_id: String,
    /// Address for MCP clients.
    pub url: String,
}

impl<'a> Console<'a> {
    /// With the cookies of `browser`.
    pub fn new(browser: &'a Browser) -> Self {
        Self { browser }
    }

    /// Any request. Answers status and JSON, `null` for an empty body.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Result<(StatusCode, Value)> {
        let mut request = self.browser.fetch(method, &format!("/api/v1{path}"))?;
        if let Some(body) = body {
            request = request.json(&body);
        } else {
            request = request.header("content-type", "application/json");
        }
        let response = request.send().await?;
        let status = response.status();
        let text = response.text().await?;
        let value = if text.is_empty() {
            Value::Null
        } else {
            serde_json::from_str(&text).with_context(|| format!("{path}: {status} {text}"))?
        };
        Ok((status, value))
    }

    /// A request that must succeed.
    pub async fn expect(&self, method: Method, path: &str, body: Option<Value>) -> Result<Value> {
        let (status, value) = self.send(method.clone(), path, body).await?;
        if !status.is_success() {
            bail!("{method} {path}: {status} {value}");
        }
        Ok(value)
    }

    /// GET that must succeed.
    pub async fn get(&self, path: &str) -> Result<Value> {
        self.expect(Method::GET, path, None).await
    }

    /// POST that must succeed.
    pub async fn post(&self, path: &str, body: Value) -> Result<Value> {
        self.expect(Method::POST, path, Some(body)).await
    }

    /// Makes a workspace.
    pub async fn create_workspace(&self, slug: &str) -> Result<Value> {
        self.post(
            "/workspaces",
            json!({"name": format!("Workspace {slug}"), "slug": slug}),
        )
        .await
    }

    /// From nothing to a published server with every tool of the fixture: workspace, import, credential, server, publish.
    pub async fn publish_fixture(
        &self,
        workspace: &str,
        fixture: &FixtureApi,
    ) -> Result<Published> {
        self.create_workspace(workspace).await?;
        let source = self
            .post(
                &format!("/workspaces/{workspace}/sources"),
                json!({"name": "Fixture", "kind": "openapi", "base_url": fixture.base_url(),
                       "input": {"kind": "text", "text": fixture.document().to_string()}}),
            )
            .await?;
        let source_id = text(&source, "id")?;
        self.expect(
            Method::PUT,
            &format!("/workspaces/{workspace}/sources/{source_id}/credential"),
            Some(json!({"kind": "bearer", "token": crate::fixture::TOKEN})),
        )
        .await?;
        let tool_ids = self.tool_ids(workspace, &source_id).await?;
        self.publish(workspace, "fixture", &source_id, tool_ids)
            .await
    }

    /// Every tool of a source, page by page.
    pub async fn tool_ids(&self, workspace: &str, source_id: &str) -> Result<Vec<Value>> {
        let mut ids = Vec::new();
        let mut query = String::new();
        loop {
            let page = self
                .get(&format!(
                    "/workspaces/{workspace}/sources/{source_id}/tools{query}"
                ))
                .await?;
            ids.extend(
                page["items"]
                    .as_array()
                    .context("items")?
                    .iter()
                    .map(|tool| tool["id"].clone()),
            );
            match page["next_cursor"].as_str() {
                Some(next) if !next.is_empty() => query = format!("?cursor={next}"),
                _ => return Ok(ids),
            }
        }
    }

    /// Makes a server of these tools and publishes it.
    pub async fn publish(
        &self,
        workspace: &str,
        slug: &str,
        source_id: &str,
        tool_ids: Vec<Value>,
    ) -> Result<Published> {
        let server = self
            .post(
                &format!("/workspaces/{workspace}/servers"),
                json!({"name": slug, "slug": slug, "tool_ids": tool_ids}),
            )
            .await?;
        let server_id = text(&server, "id")?;
        let server = self
            .post(
                &format!("/workspaces/{workspace}/servers/{server_id}/publish"),
                json!({}),
            )
            .await?;
        Ok(Published {
            workspace: workspace.to_owned(),
            source_id: source_id.to_owned(),
            server_id,
            url: text(&server, "url")?,
        })
    }
}

/// A member that must be a string.
pub fn text(value: &Value, name: &str) -> Result<String> {
    value[name]
        .as_str()
        .map(str::to_owned)
        .with_context(|| format!("no text `{name}` in {value}"))
}
