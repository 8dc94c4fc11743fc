//! What older revisions do not see: MCP-FA-1…MCP-FA-8, MCP-TL-10…MCP-TL-13, MCP-JS-9, MCP-J-17,
//! MCP-J-18, MCP-SB-1…MCP-SB-13, MCP-CP-4.

use portolan_protocol::capability::ClientCapabilities;
use portolan_protocol::completion::{CompleteParams, Reference};
use portolan_protocol::content::{ContentBlock, ResourceLink};
use portolan_protocol::subscription::{self, Filter, List};
use portolan_protocol::tool::{CallResult, Tool};
use portolan_protocol::{
    CacheHint, ErrorKind, Params, Raw, RequestId, Revision, SERVED, result, tool,
};
use serde_json::{Value, json};

use crate::{identity, tree};

const R2: Revision = Revision::V2025_03_26;
const R3: Revision = Revision::V2025_06_18;
const R4: Revision = Revision::V2025_11_25;
const R5: Revision = Revision::V2026_07_28;

fn names(value: &Value) -> Vec<&str> {
    value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

#[test]
fn fa1_js9_schemas_lose_only_what_the_revision_does_not_know() {
    let text = r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"n":{"const":1.10},"t":true},"oneOf":[{"required":["n"]}],"$defs":{"d":{"$schema":"x"}}}"#;
    let mut tool = Tool::new("t", Raw::parse(text).unwrap());
    tool.output_schema = Raw::parse(r#"{"type":"array"}"#).ok();
    for revision in [R2, R3, R4] {
        let emitted = String::from_utf8(tool.to_json(revision)).unwrap();
        let value = tree(emitted.as_bytes());
        assert_eq!(
            value["inputSchema"].get("$schema").is_some(),
            revision == R4
        );
        // MCP-TL-10: no root but an object below 2026-07-28.
        assert!(value.get("outputSchema").is_none());
        assert_eq!(value["inputSchema"]["properties"]["t"], json!({}));
        assert_eq!(value["inputSchema"]["$defs"]["d"]["$schema"], "x");
        assert!(emitted.contains("1.10"), "numbers keep their text");
    }
    // MCP-TL-11
    let modern = String::from_utf8(tool.to_json(R5)).unwrap();
    assert!(modern.contains(text) && modern.contains(r#""outputSchema":{"type":"array"}"#));
}

#[test]
fn fa2_tl13_structured_content_finds_its_place_or_becomes_text() {
    let result = |structured: &str, texts: &[&str]| CallResult {
        content: texts.iter().map(|text| ContentBlock::text(*text)).collect(),
        structured_content: Raw::parse(structured.to_owned()).ok(),
        ..CallResult::default()
    };
    let emit = |result: &CallResult, revision| tree(&result.to_json(revision, &identity()));
    let texts = |value: &Value| -> Vec<String> {
        value["content"]
            .as_array()
            .unwrap()
            .iter()
            .map(|block| block["text"].as_str().unwrap().to_owned())
            .collect()
    };
    let object = result(r#"{"a":1}"#, &[]);
    for revision in SERVED {
        let value = emit(&object, revision);
        assert_eq!(texts(&value), [r#"{"a":1}"#]);
        assert_eq!(value.get("structuredContent").is_some(), revision >= R3);
    }
    let told = result(r#"{"a":1}"#, &["told"]);
    assert_eq!(texts(&emit(&told, R5)), ["told"]);
    let list = result("[1, 2]", &["told"]);
    for revision in SERVED {
        let value = emit(&list, revision);
        assert_eq!(
            texts(&value),
            ["told", "[1, 2]"],
            "SEP-2106: a value that is no object is told in full"
        );
        assert_eq!(value.get("structuredContent").is_some(), revision == R5);
    }
    assert_eq!(texts(&emit(&result("[1, 2]", &["[1,2]"]), R5)), ["[1,2]"]);
    assert_eq!(
        emit(&CallResult::failure("no"), R4),
        json!({ "content": [{ "type": "text", "text": "no" }], "isError": true })
    );
}

#[test]
fn fa3_blocks_that_a_revision_does_not_know_become_a_line_of_text() {
    let link = ContentBlock::ResourceLink(Box::new(ResourceLink {
        uri: "x://y".into(),
        name: "y".into(),
        ..ResourceLink::default()
    }));
    let audio = ContentBlock::audio("AAAAAA==", "audio/wav");
    let emit = |block: &ContentBlock, revision| {
        let mut out = Vec::new();
        block.write(revision, &mut out);
        tree(&out)
    };
    assert_eq!(
        emit(&link, R2),
        json!({ "type": "text", "text": "[resource link] y x://y" })
    );
    assert_eq!(emit(&link, R3)["type"], "resource_link");
    assert_eq!(
        emit(&audio, Revision::V2024_11_05),
        json!({ "type": "text", "text": "[audio, audio/wav, 4 bytes: not supported by this protocol revision]" })
    );
    assert_eq!(emit(&audio, R2)["type"], "audio");
}

#[test]
fn fa8_j17_j18_only_modern_results_carry_their_type_freshness_and_server() {
    for revision in SERVED {
        let empty = tree(&result::empty(revision, &identity()));
        let page = tree(&tool::list_page(
            revision,
            &identity(),
            std::iter::empty(),
            None,
            CacheHint::LIST,
        ));
        if revision == R5 {
            assert_eq!(names(&empty), ["resultType", "_meta"]);
            assert_eq!(
                names(&page),
                ["resultType", "tools", "ttlMs", "cacheScope", "_meta"]
            );
            assert_eq!(
                (&page["ttlMs"], &page["cacheScope"]),
                (&json!(60_000), &json!("private"))
            );
            assert_eq!(
                page["_meta"]["io.modelcontextprotocol/serverInfo"]["name"],
                "portolan"
            );
        } else {
            assert_eq!(empty, json!({}));
            assert_eq!(page, json!({ "tools": [] }));
        }
    }
    // The result's own metadata stays, and cannot name another server.
    let result = CallResult {
        meta: Raw::of(&json!({ "a": 1, "io.modelcontextprotocol/serverInfo": { "name": "x", "version": "1" } })).ok(),
        ..CallResult::text("t")
    };
    let value = tree(&result.to_json(R5, &identity()));
    assert_eq!(value["_meta"]["a"], 1);
    assert_eq!(
        value["_meta"]["io.modelcontextprotocol/serverInfo"]["name"],
        "portolan"
    );
}

#[test]
fn fa5_ic_4_the_name_card_grows_with_the_revisions() {
    let card = |revision| tree(identity().json(revision).as_bytes());
    assert_eq!(names(&card(R2)), ["name", "version"]);
    assert_eq!(names(&card(R3)), ["name", "version", "title"]);
    assert_eq!(
        names(&card(R4)),
        [
            "name",
            "version",
            "title",
            "description",
            "websiteUrl",
            "icons"
        ]
    );
    assert_eq!(card(R4), card(R5));
}

fn listen(notifications: &Value, client: &Value) -> Result<Filter, i32> {
    let params = Params::from(Raw::of(&json!({ "notifications": notifications })).unwrap());
    let client = ClientCapabilities::read(&Raw::of(client).unwrap());
    Filter::read(&params, &client).map_err(|kind| kind.face(R5).0)
}

#[test]
fn sb1_sb7_sb13_listen_parameters() {
    let filter = listen(
        &json!({ "toolsListChanged": true, "resourceSubscriptions": ["x://a"], "later": 1 }),
        &json!({}),
    );
    let filter = filter.unwrap();
    assert!(
        filter.wants(List::Tools) && !filter.wants(List::Prompts) && !filter.wants(List::Resources)
    );
    assert_eq!(filter.uris, ["x://a"]);
    assert_eq!(listen(&json!({}), &json!({})), Ok(Filter::default()));
    for bad in [
        json!({ "toolsListChanged": 1 }),
        json!({ "resourceSubscriptions": "x" }),
        json!([]),
        Value::Null,
    ] {
        assert_eq!(listen(&bad, &json!({})), Err(-32602), "{bad}");
    }
    assert!(matches!(
        Filter::read(&Params::default(), &ClientCapabilities::default()),
        Err(ErrorKind::InvalidParams(misfit)) if misfit.path == "params.notifications"
    ));
    let tasks = json!({ "taskIds": ["t"] });
    assert_eq!(listen(&tasks, &json!({})), Err(-32021));
    let able = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    assert_eq!(
        listen(&tasks, &able).unwrap().task_ids,
        Some(vec!["t".to_owned()])
    );
}

#[test]
fn sb2_sb3_sb8_every_message_of_a_listen_stream_names_it_with_the_same_type() {
    for id in [RequestId::from(4), RequestId::from("4")] {
        let expected = serde_json::to_value(&id).unwrap();
        let filter = Filter {
            tools: true,
            task_ids: Some(vec!["t".into()]),
            ..Filter::default()
        };
        let first = tree(&subscription::acknowledged(&id, &filter));
        assert_eq!(
            first["params"]["notifications"],
            json!({ "toolsListChanged": true, "taskIds": ["t"] })
        );
        let last = tree(&subscription::completed(&id, R5, &identity()));
        assert_eq!(last["result"]["resultType"], "complete");
        assert_eq!(last["id"], expected);
        for meta in [
            &first["params"]["_meta"],
            &tree(&subscription::list_changed(List::Tools, Some(&id)))["params"]["_meta"],
            &tree(&subscription::resource_updated("x://a", Some(&id)))["params"]["_meta"],
            &last["result"]["_meta"],
        ] {
            assert_eq!(meta["io.modelcontextprotocol/subscriptionId"], expected);
        }
    }
    // MCP-SB-7: an empty filter is acknowledged with `{}`.
    let empty = tree(&subscription::acknowledged(&1.into(), &Filter::default()));
    assert_eq!(empty["params"]["notifications"], json!({}));
    assert_eq!(
        tree(&subscription::list_changed(List::Tools, None)).get("params"),
        None
    );
}

#[test]
fn cp2_cp4_completion_parameters() {
    let read = |params: Value| Params::from(Raw::of(&params).unwrap()).read::<CompleteParams>();
    let argument = json!({ "name": "a", "value": "v" });
    let params = read(
        json!({ "ref": { "type": "ref/prompt", "name": "p" }, "argument": argument,
        "context": { "arguments": { "b": "c" } } }),
    );
    let params = params.unwrap();
    assert_eq!(params.reference, Reference::Prompt { name: "p".into() });
    assert_eq!(params.context.unwrap().arguments["b"], "c");
    assert!(
        read(json!({ "ref": { "type": "ref/resource", "uri": "x://{a}" }, "argument": argument }))
            .is_ok()
    );
    assert!(read(json!({ "ref": { "type": "ref/other" }, "argument": argument })).is_err());
    let fault =
        read(json!({ "ref": { "type": "ref/prompt", "name": "p" }, "argument": { "name": "a" } }))
            .unwrap_err();
    assert_eq!(fault.path, "params.argument");
}
