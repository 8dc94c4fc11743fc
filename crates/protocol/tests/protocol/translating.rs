//! Results, definitions and errors between revisions (`docs/translation-rules.md`, *Shapes of
//! results and definitions* and *Errors and authorization across legs*): rules by id, and laws that
//! hold for everything an upstream may send.

use portolan_protocol::capability::ClientCapabilities;
use portolan_protocol::error::RpcError;
use portolan_protocol::method::Method;
use portolan_protocol::translate::{
    Failed, Listed, Loss, Losses, Shape, Violation, definition, error, result,
};
use portolan_protocol::visible::Visible;
use portolan_protocol::{Raw, Revision};
use serde_json::{Value, json};

use crate::{identity, tree};

const R1: Revision = Revision::V2024_11_05;
const R2: Revision = Revision::V2025_03_26;
const R3: Revision = Revision::V2025_06_18;
const R4: Revision = Revision::V2025_11_25;
const R5: Revision = Revision::V2026_07_28;

pub(crate) fn raw(value: &Value) -> Raw {
    Raw::of(value).unwrap()
}

pub(crate) fn shaped(
    method: Method,
    value: &Value,
    from: Revision,
    to: Revision,
) -> Result<(Value, Losses), Violation> {
    let identity = identity();
    let shape = Shape {
        from,
        to,
        identity: &identity,
        uniform: false,
    };
    result(method, &raw(value), &shape).map(|shaped| (tree(&shaped.json), shaped.losses))
}

fn call(value: &Value, from: Revision, to: Revision) -> (Value, Losses) {
    shaped(Method::ToolsCall, value, from, to).unwrap()
}

pub(crate) fn listed(what: Listed, value: &Value, from: Revision, to: Revision) -> (Value, Losses) {
    let shaped = definition(what, &raw(value), from, to).unwrap();
    (tree(&shaped.json), shaped.losses)
}

#[test]
fn x_61_and_x_62_blocks_that_a_revision_does_not_have_become_the_text_of_v_7() {
    let value = json!({"content": [
        {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
        {"type": "resource_link", "uri": "x://a", "name": "a", "title": "A"},
        {"type": "hologram", "depth": 3},
    ]});
    let (seen, losses) = call(&value, R5, R1);
    assert_eq!(
        seen["content"],
        json!([
            {"type": "text", "text": "[audio, audio/wav, 3 bytes: not supported by this protocol revision]"},
            {"type": "text", "text": "[resource link] a x://a"},
            {"type": "text", "text": "[hologram: not supported by this protocol revision]"},
        ])
    );
    let lost: Vec<Loss> = losses.iter().collect();
    assert_eq!(lost, [Loss::Audio, Loss::ResourceLink, Loss::UnknownBlock]);
    assert_eq!(call(&value, R5, R3).0["content"][0]["type"], "audio");
}

#[test]
fn x_63_structured_output_stands_in_a_text_where_it_has_no_place_of_its_own() {
    let bare = json!({"content": [], "structuredContent": {"n": 1.50}});
    let (seen, losses) = call(&bare, R4, R2);
    assert_eq!(
        seen,
        json!({"content": [{"type": "text", "text": "{\"n\":1.5}"}]})
    );
    assert!(losses.has(Loss::Structured));
    let told =
        json!({"content": [{"type": "text", "text": "n is 1"}], "structuredContent": {"n": 1}});
    assert_eq!(
        call(&told, R4, R1).0["content"].as_array().unwrap().len(),
        1,
        "a text is there"
    );
}

#[test]
fn x_64_and_xt_13_structured_output_that_is_no_object_goes_to_2026_07_28_only() {
    let value = json!({"resultType": "complete", "content": [], "structuredContent": [1, 2]});
    for revision in [R3, R4] {
        let (seen, losses) = call(&value, R5, revision);
        assert_eq!(
            seen,
            json!({"content": [{"type": "text", "text": "[1,2]"}]})
        );
        assert!(losses.has(Loss::StructuredShape));
    }
    let (seen, losses) = call(&value, R5, R5);
    assert_eq!(seen["structuredContent"], json!([1, 2]));
    assert!(losses.is_none());
    let tool =
        json!({"name": "t", "inputSchema": {"type": "object"}, "outputSchema": {"type": "array"}});
    let (seen, losses) = listed(Listed::Tool, &tool, R5, R4);
    assert!(seen.get("outputSchema").is_none() && losses.has(Loss::OutputShape));
    assert_eq!(listed(Listed::Tool, &tool, R5, R5).0, tool);
}

#[test]
fn x_65_a_legacy_result_gets_the_envelope_and_never_the_upstreams_name_card() {
    let value = json!({"content": [], "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "up", "version": "9"}, "a.b/c": 1}});
    let (seen, _) = call(&value, R3, R5);
    assert_eq!(seen["resultType"], "complete");
    let meta = &seen["_meta"];
    assert_eq!(
        meta["io.modelcontextprotocol/serverInfo"]["name"],
        "portolan"
    );
    assert_eq!(meta["a.b/c"], 1, "MCP-X-6I");
    let (seen, _) = call(&value, R5, R4);
    assert_eq!(
        seen,
        json!({"content": [], "_meta": {"a.b/c": 1}}),
        "MCP-J-17: none in legacy results"
    );
    let (seen, _) = shaped(
        Method::ResourcesRead,
        &json!({"contents": [], "ttlMs": 5}),
        R4,
        R5,
    )
    .unwrap();
    assert_eq!(
        (seen["ttlMs"].clone(), seen["cacheScope"].clone()),
        (json!(0), json!("private")),
        "MCP-CA-6"
    );
}

#[test]
fn x_6h_public_stays_public_only_where_every_caller_gets_the_same() {
    let value =
        json!({"resultType": "complete", "contents": [], "ttlMs": 5000, "cacheScope": "public"});
    let identity = identity();
    for (uniform, scope) in [(true, "public"), (false, "private")] {
        let shape = Shape {
            from: R5,
            to: R5,
            identity: &identity,
            uniform,
        };
        let seen = result(Method::ResourcesRead, &raw(&value), &shape).unwrap();
        let seen = tree(&seen.json);
        assert_eq!(
            (seen["ttlMs"].clone(), seen["cacheScope"].clone()),
            (json!(5000), json!(scope))
        );
    }
    let (seen, losses) = shaped(Method::ResourcesRead, &value, R5, R4).unwrap();
    assert_eq!(seen, json!({"contents": []}), "MCP-FA-8");
    assert!(losses.has(Loss::Caching));
}

#[test]
fn x_6f_a_hundred_suggestions_and_the_word_that_there_are_more() {
    let values: Vec<String> = (0..150).map(|n| n.to_string()).collect();
    let value = json!({"completion": {"values": values, "total": 150, "hasMore": false}});
    let (seen, losses) = shaped(Method::Complete, &value, R4, R5).unwrap();
    let completion = &seen["completion"];
    assert_eq!(completion["values"].as_array().unwrap().len(), 100);
    assert_eq!(
        (completion["hasMore"].clone(), completion["total"].clone()),
        (json!(true), json!(150))
    );
    assert!(losses.has(Loss::CompletionValues));
}

#[test]
fn x_60_definitions_lose_what_came_later_and_say_what() {
    let tool = json!({
        "name": "t", "title": "T", "description": "d", "inputSchema": {"type": "object", "$schema": "x", "properties": {"a": true}},
        "outputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}, "execution": {"taskSupport": "optional"},
        "icons": [{"src": "https://a/b.png"}], "_meta": {"a.b/c": 1}, "x-vendor": [1.0],
    });
    let (seen, losses) = listed(Listed::Tool, &tool, R5, R1);
    assert_eq!(
        seen,
        json!({"name": "t", "description": "d", "inputSchema": {"type": "object", "properties": {"a": {}}}, "x-vendor": [1.0]}),
        "MCP-J-10"
    );
    let lost: Vec<Loss> = losses.iter().collect();
    let expected = [
        Loss::Title,
        Loss::Icons,
        Loss::Annotations,
        Loss::Execution,
        Loss::Meta,
        Loss::OutputSchema,
        Loss::SchemaDialect,
        Loss::BooleanSchema,
    ];
    assert_eq!(lost, expected);
    let (seen, losses) = listed(Listed::Tool, &tool, R4, R5);
    assert!(
        seen.get("execution").is_none() && losses.has(Loss::Execution),
        "MCP-FA-1"
    );
}

#[test]
fn x_6d_an_older_schema_that_speaks_draft_07_says_so_to_newer_clients() {
    for (schema, says) in [
        (json!({"type": "object", "definitions": {"d": {}}}), true),
        (
            json!({"type": "object", "properties": {"a": {"items": [{}]}}}),
            true,
        ),
        (
            json!({"type": "object", "properties": {"a": {"items": {}}}}),
            false,
        ),
        (
            json!({"type": "object", "properties": {"a": {"const": {"definitions": {}}}}}),
            false,
        ),
    ] {
        let tool = json!({"name": "t", "inputSchema": schema});
        let (seen, _) = listed(Listed::Tool, &tool, R3, R5);
        let dialect = seen["inputSchema"].get("$schema");
        assert_eq!(dialect.is_some(), says, "{schema}");
        assert_eq!(
            listed(Listed::Tool, &tool, R4, R5).0,
            tool,
            "MCP-JS-1: no dialect is 2020-12 there"
        );
        assert_eq!(listed(Listed::Tool, &tool, R3, R3).0, tool);
    }
}

#[test]
fn x_6c_a_header_that_cannot_be_mirrored_goes_and_the_others_stay() {
    let tool = json!({"name": "t", "inputSchema": {"type": "object", "properties": {
        "good": {"type": "string", "x-mcp-header": "Good"}, "bad": {"type": "number", "x-mcp-header": "Bad"}}}});
    let (seen, losses) = listed(Listed::Tool, &tool, R5, R5);
    let properties = &seen["inputSchema"]["properties"];
    assert_eq!(properties["good"]["x-mcp-header"], "Good");
    assert!(properties["bad"].get("x-mcp-header").is_none());
    assert!(losses.has(Loss::MirroredHeader));
}

#[test]
fn ic_2_pictures_of_other_schemes_are_not_served_again() {
    let prompt = json!({"name": "p", "icons": [{"src": "http://a/b.png"}, {"src": "data:image/png;base64,AA"}, {"src": "javascript:1"}]});
    let (seen, losses) = listed(Listed::Prompt, &prompt, R5, R5);
    assert_eq!(seen["icons"], json!([{"src": "data:image/png;base64,AA"}]));
    assert!(losses.has(Loss::UnsafeIcons));
}

#[test]
fn x_8_what_breaks_the_upstreams_own_protocol_is_a_named_violation() {
    for (method, value, violation) in [
        (Method::ToolsCall, json!([]), Violation::NotAnObject),
        (
            Method::ToolsCall,
            json!({"resultType": "maybe", "content": []}),
            Violation::ResultType,
        ),
        (
            Method::ToolsCall,
            json!({"content": "hello"}),
            Violation::Content,
        ),
        (Method::ToolsCall, json!({}), Violation::Content),
        (
            Method::ToolsCall,
            json!({"content": [{"type": "text"}]}),
            Violation::Block,
        ),
        (
            Method::PromptsGet,
            json!({"messages": [{"role": "god", "content": {}}]}),
            Violation::Messages,
        ),
        (
            Method::ResourcesRead,
            json!({"contents": [{"uri": "a"}]}),
            Violation::Contents,
        ),
        (
            Method::Complete,
            json!({"completion": {"values": [1]}}),
            Violation::Completion,
        ),
    ] {
        assert_eq!(shaped(method, &value, R5, R5), Err(violation), "{value}");
    }
    let absent = json!({"content": []});
    assert_eq!(
        call(&absent, R5, R5).0["resultType"],
        "complete",
        "absent means complete"
    );
}

fn error_of(code: i32, data: Option<Value>) -> RpcError {
    RpcError {
        code,
        message: "words".to_owned(),
        data: data.as_ref().map(raw),
    }
}

fn code(failed: &Failed) -> i32 {
    match failed {
        Failed::Error(error, _) | Failed::Degraded(error) => error.code,
        other => panic!("no error: {other:?}"),
    }
}

#[test]
fn x_66_x_67_and_xt_11_a_resource_that_is_not_there_has_the_number_of_its_era() {
    let none = ClientCapabilities::default();
    let legacy = error_of(-32002, Some(json!({"uri": "x://a"})));
    let modern = error_of(-32602, Some(json!({"uri": "x://a"})));
    let up = error(&legacy, Method::ResourcesRead, R4, R5, &none);
    assert_eq!(up, Failed::Error(modern.clone(), Losses::NONE));
    let down = error(&modern, Method::ResourcesRead, R5, R4, &none);
    assert_eq!(down, Failed::Error(legacy, Losses::NONE));
    let other = error_of(-32602, None);
    assert_eq!(
        code(&error(&other, Method::ResourcesRead, R5, R4, &none)),
        -32602
    );
    assert_eq!(
        code(&error(&modern, Method::PromptsGet, R5, R4, &none)),
        -32602
    );
}

#[test]
fn x_68_arguments_that_an_old_upstream_refuses_are_a_result_that_a_model_can_repair() {
    let none = ClientCapabilities::default();
    let bad = error_of(-32602, None);
    for to in [R4, R5] {
        assert_eq!(
            error(&bad, Method::ToolsCall, R3, to, &none),
            Failed::ToolFailure("words".to_owned())
        );
    }
    assert_eq!(
        code(&error(&bad, Method::ToolsCall, R3, R3, &none)),
        -32602,
        "MCP-X-69"
    );
    assert_eq!(code(&error(&bad, Method::ToolsCall, R4, R5, &none)), -32602);
}

#[test]
fn x_6a_and_x_83_numbers_that_2026_07_28_keeps_for_itself_move_into_the_data() {
    let none = ClientCapabilities::default();
    let odd = error_of(-32050, None);
    let Failed::Error(moved, losses) = error(&odd, Method::ToolsCall, R4, R5, &none) else {
        panic!("an error");
    };
    assert_eq!(moved.code, -32603);
    assert_eq!(
        tree(moved.data.unwrap().as_bytes()),
        json!({"upstreamCode": -32050, "upstreamMessage": "words"})
    );
    assert!(losses.has(Loss::ErrorCode));
    assert_eq!(code(&error(&odd, Method::ToolsCall, R4, R3, &none)), -32050);
    let unknown = error_of(-32601, None);
    assert_eq!(
        code(&error(&unknown, Method::PromptsGet, R4, R5, &none)),
        -32603
    );
    assert_eq!(
        code(&error(&unknown, Method::PromptsGet, R4, R4, &none)),
        -32601
    );
}

#[test]
fn x_80_to_x_82_what_the_modern_upstream_misses_is_told_in_the_clients_words_or_mended_by_us() {
    let none = ClientCapabilities::default();
    let needs = error_of(
        -32021,
        Some(json!({"requiredCapabilities": {"elicitation": {"form": {}}}})),
    );
    assert_eq!(
        error(&needs, Method::ToolsCall, R5, R5, &none),
        Failed::Missing(raw(&json!({"elicitation": {"form": {}}})))
    );
    let Failed::Visible(told) = error(&needs, Method::ToolsCall, R5, R1, &none) else {
        panic!("MCP-XT-4: MCP-V-1");
    };
    assert_eq!(
        told.text(),
        "This tool needs the client feature \"elicitation\", which this client does not offer."
    );
    assert_eq!(
        error(&error_of(-32022, None), Method::ToolsCall, R5, R5, &none),
        Failed::Renegotiate
    );
    assert_eq!(
        error(&error_of(-32020, None), Method::ToolsCall, R5, R5, &none),
        Failed::Headers
    );
}

#[test]
fn x_33_x_36_and_x_37_a_step_in_the_browser_by_what_the_client_can_do() {
    let step =
        json!({"mode": "url", "message": "Sign in.", "url": "https://up/x", "elicitationId": "e1"});
    let required = error_of(-32042, Some(json!({"elicitations": [step]})));
    let able = ClientCapabilities {
        elicitation_url: true,
        ..ClientCapabilities::default()
    };
    let none = ClientCapabilities::default();
    assert_eq!(
        code(&error(&required, Method::ToolsCall, R4, R4, &able)),
        -32042,
        "MCP-X-37"
    );
    let Failed::Steps(steps) = error(&required, Method::ToolsCall, R4, R5, &able) else {
        panic!("MCP-X-36");
    };
    assert_eq!(steps[0].url, "https://up/x");
    for (to, capabilities) in [(R3, &able), (R4, &none), (R5, &none)] {
        let Failed::Visible(told) = error(&required, Method::ToolsCall, R4, to, capabilities)
        else {
            panic!("MCP-X-33");
        };
        assert_eq!(
            told.text(),
            "This tool needs a step in the browser: Sign in. https://up/x Then call the tool again."
        );
    }
    let empty = error_of(-32042, Some(json!({"elicitations": []})));
    assert_eq!(
        error(&empty, Method::ToolsCall, R4, R4, &able),
        Failed::Visible(Visible::Invalid)
    );
}
