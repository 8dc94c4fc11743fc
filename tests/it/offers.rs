//! Prompts and resources that a tenant writes in the console, as clients of every revision see them.

use anyhow::Result;
use portolan_tests::{
    mcp::{MODERN, McpClient},
    native::{self, PNG},
    scene::Scene,
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

const LEGACY: [&str; 3] = ["2025-03-26", "2025-06-18", "2025-11-25"];

/// A client of some revision.
struct Speaker {
    revision: &'static str,
    client: McpClient,
}

impl Speaker {
    async fn of(scene: &Scene, revision: &'static str) -> Result<Self> {
        let client = if revision == MODERN {
            scene.mcp.clone()
        } else {
            scene.mcp.initialize(revision).await?.0
        };
        Ok(Self { revision, client })
    }

    async fn ask(&self, method: &str, params: Value) -> Result<Value> {
        let answer = if self.revision == MODERN {
            self.client.modern(method, params).await?
        } else {
            self.client.request(method, params).await?
        };
        Ok(answer.json)
    }
}

#[tokio::test]
async fn pr_2_re_2_cp_2_what_a_tenant_wrote_is_listed_got_read_and_completed_in_every_revision()
-> Result<()> {
    let scene = Scene::new().await?;
    native::offer(&scene.owner.console(), &scene.published).await?;
    for revision in LEGACY.into_iter().chain([MODERN]) {
        let speaker = Speaker::of(&scene, revision).await?;
        let listed = speaker.ask("prompts/list", json!({})).await?;
        let prompts = listed["result"]["prompts"].as_array().map_or(0, Vec::len);
        assert_eq!(prompts, 4, "{revision}: {listed}");
        let listed = speaker.ask("resources/list", json!({})).await?;
        assert_eq!(
            listed["result"]["resources"][1]["uri"], "test://static-text",
            "{revision}: {listed}"
        );
        let listed = speaker.ask("resources/templates/list", json!({})).await?;
        assert_eq!(
            listed["result"]["resourceTemplates"][1]["uriTemplate"],
            "things://{id}"
        );

        let params = json!({"name": "test_prompt_with_arguments", "arguments": {"arg1": "{{arg2}}", "arg2": "b"}});
        let got = speaker.ask("prompts/get", params).await?;
        assert_eq!(
            got["result"]["messages"][0]["content"]["text"],
            "Prompt with arguments: arg1='{{arg2}}', arg2='b'",
            "MCP-PR-7 {revision}"
        );
        let got = speaker
            .ask("prompts/get", json!({"name": "test_prompt_with_image"}))
            .await?;
        assert_eq!(
            got["result"]["messages"][0]["content"]["data"], PNG,
            "{revision}: {got}"
        );
        let missing = speaker
            .ask("prompts/get", json!({"name": "test_prompt_with_arguments"}))
            .await?;
        assert_eq!(missing["error"]["code"], -32602, "MCP-PR-4");

        let read = speaker
            .ask("resources/read", json!({"uri": "test://static-binary"}))
            .await?;
        assert_eq!(
            read["result"]["contents"][0]["blob"], PNG,
            "{revision}: {read}"
        );
        let read = speaker
            .ask(
                "resources/read",
                json!({"uri": "test://template/a%22b/data"}),
            )
            .await?;
        let text = read["result"]["contents"][0]["text"]
            .as_str()
            .unwrap_or_default();
        assert_eq!(
            serde_json::from_str::<Value>(text)?["id"],
            "a\"b",
            "{revision}: {read}"
        );
        let read = speaker
            .ask("resources/read", json!({"uri": "things://7"}))
            .await?;
        let text = read["result"]["contents"][0]["text"]
            .as_str()
            .unwrap_or_default();
        assert_eq!(
            serde_json::from_str::<Value>(text)?["id"],
            7,
            "the API, with its credential: {read}"
        );
        for uri in ["test://none", "things://404"] {
            let none = speaker.ask("resources/read", json!({"uri": uri})).await?;
            let code = if revision == MODERN { -32602 } else { -32002 };
            assert_eq!(
                none["error"]["code"], code,
                "MCP-RE-4, MCP-RE-5 {revision} {uri}: {none}"
            );
            assert_eq!(none["error"]["data"]["uri"], uri);
        }

        let params = json!({"ref": {"type": "ref/prompt", "name": "test_prompt_with_arguments"},
            "argument": {"name": "arg1", "value": "TEST"}});
        let completed = speaker.ask("completion/complete", params).await?;
        assert_eq!(
            completed["result"]["completion"]["values"],
            json!(["test one", "test two"]),
            "MCP-CP-3"
        );
    }
    Ok(())
}

#[tokio::test]
async fn n_5_a_change_in_the_console_is_told_once_to_those_who_asked_for_it() -> Result<()> {
    let scene = Scene::new().await?;
    let console = scene.owner.console();
    let written = native::offer(&console, &scene.published).await?;
    let (session, _) = scene.mcp.initialize("2025-11-25").await?;
    let mut stream = session.listen().await?;
    let subscribed = session
        .request(
            "resources/subscribe",
            json!({"uri": "test://watched-resource"}),
        )
        .await?;
    assert_eq!(subscribed.json["result"], json!({}));

    let workspace = &scene.published.workspace;
    let resource = format!("/workspaces/{workspace}/resources/{}", written.resources[3]);
    let mut definition = native::resources(&scene.published.source_id).swap_remove(3);
    definition["holds"]["text"] = json!("Another text.");
    console
        .expect(Method::PUT, &resource, Some(definition))
        .await?;
    let told = stream
        .until(|event| event.message()["method"] == "notifications/resources/updated")
        .await?;
    let updated = told.last().map(|event| event.message()["params"].clone());
    assert_eq!(
        updated,
        Some(json!({"uri": "test://watched-resource"})),
        "MCP-RE-7"
    );
    let read = session
        .request("resources/read", json!({"uri": "test://watched-resource"}))
        .await?;
    assert_eq!(read.json["result"]["contents"][0]["text"], "Another text.");

    // A prompt that is deleted leaves its list, and comes back when that is undone.
    let prompt = format!("/workspaces/{workspace}/prompts/{}", written.prompts[0]);
    console.expect(Method::DELETE, &prompt, None).await?;
    stream
        .until(|event| event.message()["method"] == "notifications/prompts/list_changed")
        .await?;
    let gone = session
        .request("prompts/get", json!({"name": "test_simple_prompt"}))
        .await?;
    assert_eq!(gone.code(), -32602);
    console
        .post(&format!("{prompt}/restore"), json!({}))
        .await?;
    stream
        .until(|event| event.message()["method"] == "notifications/prompts/list_changed")
        .await?;
    let back = session
        .request("prompts/get", json!({"name": "test_simple_prompt"}))
        .await?;
    assert!(back.json["result"].is_object());
    let audit = console
        .get(&format!("/workspaces/{workspace}/audit"))
        .await?
        .to_string();
    for action in [
        "prompt.created",
        "prompt.deleted",
        "prompt.restored",
        "resource.changed",
        "server.resources_chosen",
    ] {
        assert!(audit.contains(action), "{action} is in the audit log");
    }
    Ok(())
}

#[tokio::test]
async fn a_definition_that_cannot_be_served_is_refused_with_its_field() -> Result<()> {
    let scene = Scene::new().await?;
    let console = scene.owner.console();
    native::offer(&console, &scene.published).await?;
    let said = |text: &str| json!([{"role": "user", "content": {"type": "text", "text": text}}]);
    for (path, body, status, field) in [
        (
            "prompts",
            json!({"name": "a b", "messages": said("x")}),
            422,
            "name",
        ),
        (
            "prompts",
            json!({"name": "a", "messages": []}),
            422,
            "messages",
        ),
        (
            "prompts",
            json!({"name": "a", "messages": said("{{x}}")}),
            422,
            "messages[0]",
        ),
        (
            "prompts",
            json!({"name": "test_simple_prompt", "messages": said("x")}),
            409,
            "name",
        ),
        (
            "resources",
            json!({"uri": "no uri", "name": "x", "holds": {"kind": "text", "text": ""}}),
            422,
            "uri",
        ),
        (
            "resources",
            json!({"uri": "x://{a}{b}", "name": "x", "holds": {"kind": "text", "text": ""}}),
            422,
            "uri",
        ),
        (
            "resources",
            json!({"uri": "test://static-text", "name": "x", "holds": {"kind": "text", "text": ""}}),
            409,
            "uri",
        ),
        (
            "resources",
            json!({"uri": "x://a", "name": "x", "holds": {"kind": "file"}}),
            422,
            "holds.data",
        ),
        (
            "resources",
            json!({"uri": "x://a", "name": "x",
            "holds": {"kind": "http", "source_id": scene.published.source_id, "path": "/things/{id}"}}),
            422,
            "holds.path",
        ),
    ] {
        let address = format!("/workspaces/harbour/{path}");
        let (answered, refusal) = console
            .send(Method::POST, &address, Some(body.clone()))
            .await?;
        assert_eq!(answered.as_u16(), status, "{body}: {refusal}");
        assert_eq!(refusal["error"]["field"], field, "{body}: {refusal}");
    }
    // Two prompts of a server under one name, as the tools.
    let server = format!("/workspaces/harbour/servers/{}", scene.published.server_id);
    let detail = console.get(&server).await?;
    let id = |at: usize| detail["prompts"][at]["prompt_id"].clone();
    let clash = json!({"prompts": [{"prompt_id": id(0), "published_name": "same"}, {"prompt_id": id(1), "published_name": "same"}]});
    let (status, refusal) = console
        .send(Method::PUT, &format!("{server}/prompts"), Some(clash))
        .await?;
    assert_eq!(status, StatusCode::CONFLICT);
    assert_eq!(refusal["error"]["details"]["names"], json!(["same"]));
    Ok(())
}
