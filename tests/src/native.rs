//! Prompts and resources that a tenant writes: those that the conformance suite asks a server for, and one of each other kind.

use anyhow::{Context, Result};
use reqwest::Method;
use serde_json::{Value, json};

use crate::console::{Console, Published, text};

/// A red pixel.
pub const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

/// The items that were written.
#[derive(Debug)]
pub struct Native {
    /// Ids of prompts, in the order of [`prompts`].
    pub prompts: Vec<String>,
    /// Ids of resources, in the order of [`resources`].
    pub resources: Vec<String>,
}

/// Definitions of prompts, as the console's API takes them.
pub fn prompts() -> Vec<Value> {
    let said = |text: &str| json!({"role": "user", "content": {"type": "text", "text": text}});
    let argument = |name: &str, values: &[&str]| {
        let values: Vec<Value> = values.iter().map(|value| json!({"value": value})).collect();
        json!({"name": name, "description": "An argument", "required": true, "values": values})
    };
    vec![
        json!({"name": "test_simple_prompt", "description": "A prompt without arguments",
            "messages": [said("This is a simple prompt for testing.")]}),
        json!({"name": "test_prompt_with_arguments", "title": "With arguments", "description": "A prompt with two arguments",
            "arguments": [argument("arg1", &["test one", "test two", "other"]), argument("arg2", &[])],
            "messages": [said("Prompt with arguments: arg1='{{arg1}}', arg2='{{arg2}}'")]}),
        json!({"name": "test_prompt_with_embedded_resource", "description": "A prompt with a resource within", "arguments": [argument("resourceUri", &[])],
            "messages": [
                {"role": "user", "content": {"type": "resource", "uri": "{{resourceUri}}", "mime_type": "text/plain",
                    "text": "Embedded resource content for testing."}},
                said("Please process the embedded resource above.")]}),
        json!({"name": "test_prompt_with_image", "description": "A prompt with an image", "messages": [
            {"role": "user", "content": {"type": "image", "data": PNG, "mime_type": "image/png"}},
            said("Please analyze the image above.")]}),
    ]
}

/// Definitions of resources. The last one is what the API of `source` answers.
pub fn resources(source: &str) -> Vec<Value> {
    vec![
        json!({"uri": "test://static-text", "name": "static-text", "mime_type": "text/plain",
            "holds": {"kind": "text", "text": "This is the content of the static text resource."}}),
        json!({"uri": "test://static-binary", "name": "static-binary", "mime_type": "image/png",
            "holds": {"kind": "file", "data": PNG}}),
        json!({"uri": "test://template/{id}/data", "name": "template", "mime_type": "application/json",
            "variables": [{"name": "id", "values": [{"value": "123"}, {"value": "124"}]}],
            "holds": {"kind": "text", "text": r#"{"id":"{{id}}","templateTest":true,"data":"Data for ID: {{id}}"}"#}}),
        json!({"uri": "test://watched-resource", "name": "watched", "mime_type": "text/plain",
            "holds": {"kind": "text", "text": "Watched."}}),
        json!({"uri": "things://{id}", "name": "thing",
            "holds": {"kind": "http", "source_id": source, "path": "/things/{id}"}}),
    ]
}

/// Writes all of them and lets the server offer them.
pub async fn offer(console: &Console<'_>, published: &Published) -> Result<Native> {
    let Published {
        workspace,
        source_id,
        server_id,
        ..
    } = published;
    let (mut prompt_ids, mut resource_ids) = (Vec::new(), Vec::new());
    for prompt in prompts() {
        let made = console
            .post(&format!("/workspaces/{workspace}/prompts"), prompt)
            .await
            .context("a prompt")?;
        prompt_ids.push(text(&made, "id")?);
    }
    for resource in resources(source_id) {
        let made = console
            .post(&format!("/workspaces/{workspace}/resources"), resource)
            .await
            .context("a resource")?;
        resource_ids.push(text(&made, "id")?);
    }
    let chosen: Vec<Value> = prompt_ids
        .iter()
        .map(|id| json!({"prompt_id": id}))
        .collect();
    let server = format!("/workspaces/{workspace}/servers/{server_id}");
    console
        .expect(
            Method::PUT,
            &format!("{server}/prompts"),
            Some(json!({"prompts": chosen})),
        )
        .await?;
    let chosen: Vec<Value> = resource_ids
        .iter()
        .map(|id| json!({"resource_id": id}))
        .collect();
    console
        .expect(
            Method::PUT,
            &format!("{server}/resources"),
            Some(json!({"resources": chosen})),
        )
        .await?;
    Ok(Native {
        prompts: prompt_ids,
        resources: resource_ids,
    })
}
