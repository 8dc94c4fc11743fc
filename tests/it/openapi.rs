//! Documents that others wrote, through the whole product: import, publish, list.

use anyhow::{Context, Result};
use portolan_tests::{
    mcp::McpClient,
    oauth::OAuthClient,
    person::Person,
    stack::{Stack, repository},
};
use serde_json::json;

#[tokio::test]
async fn documents_of_others_become_tools_that_every_client_can_list() -> Result<()> {
    let stack = Stack::start()?;
    let ann = Person::sign_up(&stack, "ann").await?;
    let console = ann.console();
    console.create_workspace("library").await?;
    let corpus = repository().join("crates/http_tools/tests/corpus");
    let mut documents: Vec<_> = std::fs::read_dir(&corpus)
        .with_context(|| corpus.display().to_string())?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            path.extension().is_some_and(|extension| {
                matches!(extension.to_str(), Some("json" | "yaml" | "yml"))
            })
        })
        .collect();
    documents.sort();
    assert!(
        documents.len() >= 5,
        "the corpus holds {} documents",
        documents.len()
    );
    let client = OAuthClient::register(stack.url(), "Harness").await?;
    let mut largest = 0;
    for (number, path) in documents.iter().enumerate() {
        let name = path
            .file_name()
            .context("a name")?
            .to_string_lossy()
            .into_owned();
        let text = std::fs::read_to_string(path)?;
        let source = console
            .post("/workspaces/library/sources", json!({"name": name, "kind": "openapi", "base_url": "https://api.example.com", "input": {"kind": "text", "text": text}}))
            .await
            .with_context(|| name.clone())?;
        let source_id = source["id"].as_str().context("an id")?.to_owned();
        let ids = console.tool_ids("library", &source_id).await?;
        assert!(!ids.is_empty(), "{name} became no tool");
        largest = largest.max(ids.len());
        let published = console
            .publish("library", &format!("doc-{number}"), &source_id, ids.clone())
            .await
            .with_context(|| name.clone())?;
        let tokens = client.authorize(&ann, &published.url).await?;
        let mcp = McpClient::new(&published.url)?.with_token(&tokens.access)?;
        let (mut listed, mut cursor) = (0, None::<String>);
        loop {
            let params = cursor
                .as_ref()
                .map_or_else(|| json!({}), |cursor| json!({"cursor": cursor}));
            let answer = mcp.modern("tools/list", params).await?;
            for tool in answer.json["result"]["tools"]
                .as_array()
                .with_context(|| format!("{name}: {}", answer.text))?
            {
                let tool_name = tool["name"].as_str().unwrap_or_default();
                assert!(
                    (1..=64).contains(&tool_name.len())
                        && tool_name
                            .bytes()
                            .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-'),
                    "{name}: {tool_name}"
                );
                assert_eq!(tool["inputSchema"]["type"], "object", "{name}: {tool_name}");
                listed += 1;
            }
            match answer.json["result"]["nextCursor"].as_str() {
                Some(next) => cursor = Some(next.to_owned()),
                None => break,
            }
        }
        assert_eq!(listed, ids.len(), "{name}: what is published is listed");
    }
    assert!(
        largest >= 200,
        "the largest document has {largest} tools: hundreds are promised"
    );
    Ok(())
}
