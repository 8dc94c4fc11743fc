//! A server of somebody else behind Portolan, with all that it offers published as one server.

use anyhow::Result;
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
    let mut body = json!({"url": upstream.url(), "name": "Theirs"});
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
