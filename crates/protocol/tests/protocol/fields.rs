//! Which member of what exists in which revision (`docs/revisions.md`, section 9, section 21,
//! section 24), and which code an error has (`docs/revisions.md`, section 25).

use portolan_protocol::capability::{ClientCapabilities, ServerCapabilities};
use portolan_protocol::method::Method;
use portolan_protocol::translate::Listed;
use portolan_protocol::{ErrorKind, Misfit, Raw, Revision, meta};
use serde_json::{Value, json};

use crate::translating::{listed, raw, shaped};
use crate::tree;

const R1: Revision = Revision::V2024_11_05;
const R2: Revision = Revision::V2025_03_26;
const R3: Revision = Revision::V2025_06_18;
const R4: Revision = Revision::V2025_11_25;
const R5: Revision = Revision::V2026_07_28;

#[test]
fn tl_8_tl_9_tl_24_ic_1_and_ic_3_members_of_definitions_come_with_their_revision() {
    let icons = json!([{"src": "https://a/b.png", "mimeType": "image/png", "sizes": ["48x48"], "theme": "dark"}]);
    let definition = |more: Value| {
        let mut all = json!({"name": "n", "title": "N", "icons": icons, "_meta": {"a.b/c": 1}});
        all.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        all
    };
    let hints = json!({"title": "t", "readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false});
    for (what, value) in [
        (
            Listed::Tool,
            definition(json!({"inputSchema": {"type": "object"}, "annotations": hints})),
        ),
        (Listed::Prompt, definition(json!({}))),
        (Listed::Resource, definition(json!({"uri": "x://a"}))),
        (
            Listed::Template,
            definition(json!({"uriTemplate": "x://{a}"})),
        ),
    ] {
        for to in Revision::ALL {
            let (seen, _) = listed(what, &value, R5, to);
            assert_eq!(seen["name"], "n", "MCP-IC-3: the identifier");
            assert_eq!(seen.get("title").is_some(), to >= R3, "{what:?} {to}");
            assert_eq!(seen.get("_meta").is_some(), to >= R3, "{what:?} {to}");
            let pictures = seen.get("icons");
            assert_eq!(pictures, (to >= R4).then_some(&icons), "{what:?} {to}");
            if what == Listed::Tool {
                let told = seen.get("annotations");
                assert_eq!(told, (to >= R2).then_some(&hints), "MCP-TL-8 {to}");
            }
        }
    }
}

#[test]
fn tl_15_and_fa_3_a_link_stands_for_itself_whatever_is_listed() {
    let link = json!({"type": "resource_link", "uri": "x://nowhere", "name": "n", "annotations": {"audience": ["user"]}});
    let value = json!({"content": [link]});
    for to in [R3, R4, R5] {
        let (seen, losses) = shaped(Method::ToolsCall, &value, R3, to).unwrap();
        assert_eq!(seen["content"][0], link, "{to}");
        assert!(losses.is_none());
    }
}

#[test]
fn re_12_and_x_6b_a_uri_is_rewritten_in_every_place_that_carries_one_and_nowhere_else() {
    let published = |own: &str| {
        own.strip_prefix("db://")
            .map(|rest| format!("crm://{rest}"))
    };
    let value = json!({
        "content": [
            {"type": "resource_link", "uri": "db://a", "name": "db://a"},
            {"type": "resource", "resource": {"uri": "db://b", "text": "db://b", "_meta": {"ui": {"csp": 1}}}},
            {"type": "text", "text": "db://c", "uri": "db://c"},
            {"type": "resource_link", "uri": "other://a", "name": "o"},
        ],
        "structuredContent": {"uri": "db://d", "n": 1.50},
        "_meta": {"ui": {"resourceUri": "db://ui"}, "ui/resourceUri": "db://ui", "x": {"uri": "db://e"}},
    });
    let renamed = portolan_protocol::translate::uris(&raw(&value), &published);
    let mut expected = value.clone();
    expected["content"][0]["uri"] = json!("crm://a");
    expected["content"][1]["resource"]["uri"] = json!("crm://b");
    expected["_meta"]["ui"]["resourceUri"] = json!("crm://ui");
    expected["_meta"]["ui/resourceUri"] = json!("crm://ui");
    assert_eq!(tree(renamed.as_bytes()), expected);

    let read =
        json!({"contents": [{"uri": "db://a", "text": "t"}, {"uri": "db://b", "blob": "AA"}]});
    let renamed = portolan_protocol::translate::uris(&raw(&read), &published);
    assert_eq!(
        tree(renamed.as_bytes())["contents"][1],
        json!({"uri": "crm://b", "blob": "AA"})
    );
    let prompt = json!({"messages": [{"role": "user", "content": {"type": "resource_link", "uri": "db://a", "name": "a"}}]});
    let renamed = portolan_protocol::translate::uris(&raw(&prompt), &published);
    assert_eq!(
        tree(renamed.as_bytes())["messages"][0]["content"]["uri"],
        "crm://a"
    );
    // A question for a model carries them too, in the results of tools that it used.
    let link = json!({"type": "resource_link", "uri": "db://a", "name": "a"});
    let used = json!({"type": "tool_result", "toolUseId": "1", "content": [link]});
    let sample =
        json!({"messages": [{"role": "user", "content": [used]}], "systemPrompt": "db://a"});
    let renamed = portolan_protocol::translate::uris(&raw(&sample), &published);
    let mut expected = sample.clone();
    expected["messages"][0]["content"][0]["content"][0]["uri"] = json!("crm://a");
    assert_eq!(tree(renamed.as_bytes()), expected);

    let data = raw(&json!({"uri": "db://a", "more": 1}));
    let renamed = portolan_protocol::translate::uri_of_error(&data, &published);
    assert_eq!(
        tree(renamed.as_bytes()),
        json!({"uri": "crm://a", "more": 1})
    );
    let definition = raw(&json!({"ui": {"resourceUri": "db://ui", "csp": {}}}));
    let renamed = portolan_protocol::translate::uris_of_meta(&definition, &published);
    assert_eq!(
        tree(renamed.as_bytes()),
        json!({"ui": {"resourceUri": "crm://ui", "csp": {}}})
    );
}

#[test]
fn ex_1_and_re_1_what_the_server_can_do_is_said_in_the_words_of_each_revision() {
    for revision in Revision::ALL {
        let mut out = Vec::new();
        ServerCapabilities::full().write(revision, &mut out);
        let told = tree(&out);
        assert_eq!(
            told["resources"],
            json!({"subscribe": true, "listChanged": true}),
            "MCP-RE-1 {revision}"
        );
        assert!(told["logging"].is_object(), "MCP-LG-1 {revision}");
        assert_eq!(told["tools"], json!({"listChanged": true}), "MCP-TL-1");
        assert_eq!(told["prompts"], json!({"listChanged": true}), "MCP-PR-1");
        assert_eq!(
            told.get("completions").is_some(),
            revision > R1,
            "MCP-SD-15 {revision}"
        );
        let extensions = told.get("extensions").and_then(Value::as_object);
        assert_eq!(extensions.is_some(), revision == R5, "MCP-TX-1");
        for (name, settings) in extensions.into_iter().flatten() {
            // The grammar of `_meta` keys, and a prefix always.
            assert!(meta::is_valid_key(name) && name.contains('/'), "{name}");
            assert!(settings.is_object());
        }
    }
    // A value that is no map of objects declares nothing.
    for odd in [json!([]), json!({"io.modelcontextprotocol/tasks": true})] {
        let read = ClientCapabilities::read(&raw(&json!({"extensions": odd})));
        let declared = read.extensions.get("io.modelcontextprotocol/tasks");
        assert!(declared.is_none(), "{odd}");
    }
}

#[test]
fn ca_3_and_ca_5_hints_of_an_upstream_are_believed_no_further_than_they_go() {
    for (ttl, expected) in [
        (json!(5000), 5000),
        (json!(-1), 0),
        (json!("x"), 0),
        (Value::Null, 0),
    ] {
        let value =
            json!({"resultType": "complete", "contents": [], "ttlMs": ttl, "cacheScope": "public"});
        let (seen, _) = shaped(Method::ResourcesRead, &value, R5, R5).unwrap();
        assert_eq!(seen["ttlMs"], expected, "MCP-CA-5");
        assert_eq!(
            seen["cacheScope"], "private",
            "MCP-CA-3: it was asked for with somebody's token"
        );
    }
    let (seen, _) = shaped(
        Method::ResourcesRead,
        &json!({"resultType": "complete", "contents": []}),
        R5,
        R5,
    )
    .unwrap();
    assert_eq!(
        (&seen["ttlMs"], &seen["cacheScope"]),
        (&json!(0), &json!("private"))
    );
}

#[test]
fn mr_1_only_three_methods_may_answer_with_a_question() {
    let asks = json!({"resultType": "input_required", "requestState": "s"});
    for method in [Method::Complete, Method::ToolsList, Method::TasksGet] {
        assert!(shaped(method, &asks, R5, R5).is_err(), "{method:?}");
    }
}

#[test]
fn js_10_references_within_a_schema_stay_as_they_are() {
    let schema = json!({"type": "object", "$defs": {"a": {"type": "string"}}, "definitions": {"b": {"$ref": "#/$defs/a"}},
        "properties": {"x": {"$ref": "#/$defs/a"}, "y": {"$ref": "#/definitions/b"}}, "allOf": [{"$ref": "#/$defs/a"}],
        "if": {"required": ["x"]}, "then": {"minProperties": 2}, "unevaluatedProperties": false});
    let tool = json!({"name": "t", "inputSchema": schema});
    for (from, to) in [(R4, R1), (R5, R3), (R4, R5), (R5, R5)] {
        let (seen, _) = listed(Listed::Tool, &tool, from, to);
        assert_eq!(
            seen["inputSchema"], schema,
            "MCP-JS-8, MCP-JS-9: {from} → {to}"
        );
    }
}

#[test]
fn js_11_a_schema_that_is_no_object_makes_no_tool() {
    use portolan_protocol::translate::definition;
    for schema in [
        json!(true),
        json!({}),
        Value::Null,
        json!({"type": "array"}),
        json!({"type": ["object", "null"]}),
    ] {
        let tool = raw(&json!({"name": "t", "inputSchema": schema}));
        assert!(definition(Listed::Tool, &tool, R5, R5).is_err(), "{schema}");
    }
}

#[test]
fn er_1_er_5_er_7_er_10_and_er_11_codes_and_what_goes_with_them() {
    let face = |kind: &ErrorKind, revision| kind.face(revision);
    let missing = ErrorKind::MissingCapability {
        required: Raw::of(&json!({"sampling": {}})).unwrap(),
    };
    let version = ErrorKind::UnsupportedVersion {
        requested: "2099-01-01".into(),
    };
    let nowhere = ErrorKind::ResourceNotFound {
        uri: "x://a".into(),
    };
    for revision in Revision::ALL {
        assert_eq!(face(&ErrorKind::Parse, revision), (-32700, 400), "MCP-ER-1");
        assert_eq!(
            face(&ErrorKind::Internal, revision),
            (-32603, 200),
            "MCP-ER-5, MCP-RE-6"
        );
        let code = if revision == R5 { -32602 } else { -32002 };
        assert_eq!(face(&nowhere, revision).0, code, "MCP-ER-7");
        let body = tree(&version.refuse(revision, None).body());
        assert_eq!(body["error"]["code"], -32022, "MCP-ER-11, MCP-T-46");
        assert_eq!(body["error"]["data"]["requested"], "2099-01-01");
        assert_eq!(body["error"]["data"]["supported"][0], "2026-07-28");
        let misfit = ErrorKind::InvalidParams(Misfit::new("params.x", "required"));
        assert_eq!(face(&misfit, revision).0, -32602, "MCP-ER-4");
    }
    assert_eq!(face(&missing, R5), (-32021, 400), "MCP-ER-10");
    let body = tree(&missing.refuse(R5, None).body());
    assert_eq!(
        body["error"]["data"]["requiredCapabilities"],
        json!({"sampling": {}})
    );
    for legacy in [R1, R2, R3, R4] {
        assert_ne!(face(&missing, legacy).0, -32021, "MCP-ER-10: R5 only");
    }
}

#[test]
fn er_8_the_code_for_a_step_in_the_browser_goes_to_2025_11_25_only() {
    use portolan_protocol::error::RpcError;
    use portolan_protocol::translate::{Failed, error};
    let steps = json!({"elicitations": [{"mode": "url", "message": "m", "url": "https://up/", "elicitationId": "e"}]});
    let asked = RpcError {
        code: -32042,
        message: "m".into(),
        data: Some(raw(&steps)),
    };
    let able = ClientCapabilities::from_bits(u8::MAX);
    for to in Revision::ALL {
        let failed = error(&asked, Method::ToolsCall, R4, to, &able);
        let passes = matches!(&failed, Failed::Error(error, _) if error.code == -32042);
        assert_eq!(passes, to == R4, "MCP-ER-8, MCP-EL-15: {to} {failed:?}");
    }
}

#[test]
fn sd_11_names_of_the_seeds_headings_are_no_methods() {
    for revision in Revision::ALL {
        for name in ["resource/list", "root/list", "resource/read", "tool/call"] {
            assert_eq!(Method::of_client(name, revision), None, "{name}");
        }
    }
}

#[test]
fn fa_7_the_context_of_a_completion_is_read_where_it_exists() {
    use portolan_protocol::completion::CompleteParams;
    let params = json!({"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": "v"}, "context": {"arguments": {"b": "c"}}});
    // Older clients may send it: it is tolerated (MCP-J-10), and only revisions from 2025-06-18 on
    // define it.
    let read = portolan_protocol::Params::from(raw(&params)).read::<CompleteParams>();
    assert!(read.is_ok());
    for revision in Revision::ALL {
        assert_eq!(
            revision.facts().completion_context,
            revision >= R3,
            "{revision}"
        );
    }
}
