//! Third-party servers behind Portolan, with all their items published as one server.

use anyhow::{Context, Result};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    console::{Console, Published, text},
    upstream::Upstream,
};

/// Adds the upstream to a workspace as it is, and publishes its tools, prompts and resources as server `theirs`. `more` are further
/// members of the request that adds it.
pub async fn publish(
    console: &Console<'_>,
    workspace: &str,
    upstream: &Upstream,
    more: &Value,
) -> Result<Published> {
    publish_at(console, workspace, &upstream.url(), more).await
}

/// The same for a server at this address.
pub async fn publish_at(
    console: &Console<'_>,
    workspace: &str,
    url: &str,
    more: &Value,
) -> Result<Published> {
    // Changes of a fixture are published at once.
    let mut body = json!({"url": url, "name": "Theirs", "hold_changes": false});
    for (name, value) in more.as_object().into_iter().flatten() {
        body[name] = value.clone();
    }
    let added = console
        .post(&format!("/workspaces/{workspace}/upstreams"), body)
        .await?;
    let source_id = text(&added, "id")?;
    let tools = console.tool_ids(workspace, &source_id).await?;
    let published = console
        .publish(workspace, "theirs", &source_id, tools)
        .await?;
    for (what, id) in [("prompts", "prompt_id"), ("resources", "resource_id")] {
        let all = console
            .get(&format!("/workspaces/{workspace}/{what}"))
            .await?;
        let chosen: Vec<Value> = all["items"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|one| json!({id: one["id"]}))
            .collect();
        let path = format!(
            "/workspaces/{workspace}/servers/{}/{what}",
            published.server_id
        );
        console
            .expect(Method::PUT, &path, Some(json!({what: chosen})))
            .await?;
    }
    Ok(published)
}

/// Adds several upstreams and publishes all that they offer as one server `theirs`. Each comes with
/// a word, which distinguishes equal names (MCP-TL-7, MCP-RE-12): tools and prompts are published
/// as `word_…`, resources and templates, which are `test://…` at their servers, as `word://…`.
pub async fn compose(
    console: &Console<'_>,
    workspace: &str,
    parts: &[(&str, &Upstream)],
) -> Result<Published> {
    let (mut tools, mut source_id) = (Vec::new(), String::new());
    for (word, upstream) in parts {
        let prefix = format!("{word}_");
        let body =
            json!({"url": upstream.url(), "name": word, "prefix": prefix, "hold_changes": false});
        let added = console
            .post(&format!("/workspaces/{workspace}/upstreams"), body)
            .await?;
        source_id = text(&added, "id")?;
        tools.extend(console.tool_ids(workspace, &source_id).await?);
    }
    let published = console
        .publish(workspace, "theirs", &source_id, tools)
        .await?;
    let server = format!("/workspaces/{workspace}/servers/{}", published.server_id);
    let prompts = console
        .get(&format!("/workspaces/{workspace}/prompts"))
        .await?;
    let items = prompts["items"].as_array().context("items")?;
    let chosen: Vec<Value> = items
        .iter()
        .map(|one| json!({"prompt_id": one["id"]}))
        .collect();
    let chosen = json!({"prompts": chosen});
    console
        .expect(Method::PUT, &format!("{server}/prompts"), Some(chosen))
        .await?;
    let resources = console
        .get(&format!("/workspaces/{workspace}/resources"))
        .await?;
    let mut chosen = Vec::new();
    for one in resources["items"].as_array().context("items")? {
        let (word, own) = (text(one, "source_name")?, text(one, "uri")?);
        let path = own
            .strip_prefix("test://")
            .with_context(|| format!("{own} is of no fixture"))?;
        let uri = format!("{word}://{path}");
        chosen.push(json!({"resource_id": one["id"], "published_uri": uri}));
    }
    let chosen = json!({"resources": chosen});
    console
        .expect(Method::PUT, &format!("{server}/resources"), Some(chosen))
        .await?;
    Ok(published)
}
