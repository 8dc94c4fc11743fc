//! JSON-RPC framing: MCP-J-1…MCP-J-11, MCP-J-19.

use portolan_protocol::jsonrpc::{self, Body, Message, Misfit};
use portolan_protocol::tool::CallParams;
use portolan_protocol::{Params, Raw, RequestId};
use serde_json::{Value, json};

use crate::tree;

/// Code and id of the refusal of `text`.
fn refused(text: impl Into<Vec<u8>>) -> (i32, Option<String>) {
    let refusal = Body::parse(text.into().into()).expect_err("it must be refused");
    assert_eq!(refusal.status, 400);
    let body = tree(&refusal.body());
    // MCP-J-7: never `"id": null`.
    assert!(body.get("id").is_none_or(|id| !id.is_null()));
    (refusal.code(), refusal.id.map(|id| id.to_json()))
}

fn parsed(text: &str) -> Message {
    match Body::parse(text.to_owned().into()) {
        Ok(Body::Single(message)) => message,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn j1_what_is_not_json_is_a_parse_error_without_id() {
    for text in [
        &b""[..],
        b"{",
        b"\xff",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xc3\"}",
        b"nul",
        b"{\"a\":NaN}",
        b"\xef\xbb\xbf{}",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\\ud800\"}",
        b"{'jsonrpc':'2.0'}",
        b"{}{}",
    ] {
        assert_eq!(
            refused(text),
            (-32700, None),
            "{}",
            String::from_utf8_lossy(text)
        );
    }
}

#[test]
fn j2_ids_are_strings_or_integers() {
    for bad in ["null", "1.5", "true", "[]", "{}", "1e3", "1.0"] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{bad},"method":"ping"}}"#);
        assert_eq!(refused(text), (-32600, None), "{bad}");
    }
}

#[test]
fn j5_ids_come_back_with_their_type_and_exact_value() {
    for id in [
        "1",
        "0",
        "-0",
        "-7",
        "\"1\"",
        "\"\"",
        "9007199254740993",
        "123456789012345678901234567890",
        "-99999999999999999999",
        "\"\u{1f980} \\\" \\n\"",
    ] {
        let Message::Request(request) =
            parsed(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#))
        else {
            panic!("{id}")
        };
        let answer = String::from_utf8(jsonrpc::response(&request.id, b"{}")).unwrap();
        assert_eq!(
            answer,
            format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)
        );
        let stored: RequestId =
            serde_json::from_str(&serde_json::to_string(&request.id).unwrap()).unwrap();
        assert_eq!(stored, request.id);
    }
    assert_ne!(RequestId::from(1), RequestId::from("1"));
}

#[test]
fn j6_a_response_has_exactly_one_of_result_and_error() {
    assert!(
        matches!(parsed(r#"{"jsonrpc":"2.0","id":1,"result":null}"#), Message::Response(r) if r.outcome.is_ok())
    );
    assert!(matches!(
        parsed(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no","data":[1]}}"#),
        Message::Response(response) if response.outcome.is_err()
    ));
    // An answer to something that the client could not read.
    assert!(matches!(
        parsed(r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"no"}}"#),
        Message::Response(response) if response.id.is_none()
    ));
    for bad in [
        r#"{"jsonrpc":"2.0","id":1}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"x"}}"#,
        r#"{"jsonrpc":"2.0","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":1.5,"message":"x"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":"1","message":"x"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":1}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":"x"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}"#,
    ] {
        assert_eq!(refused(bad).0, -32600, "{bad}");
    }
}

#[test]
fn j7_the_id_is_repeated_when_it_could_be_read() {
    assert_eq!(
        refused(r#"{"jsonrpc":"1.0","id":5,"method":"ping"}"#),
        (-32600, Some("5".into()))
    );
    assert_eq!(
        refused(r#"{"id":"x","method":"ping"}"#),
        (-32600, Some("\"x\"".into()))
    );
    assert_eq!(
        refused(r#"{"jsonrpc":"2.0","id":5,"method":7}"#),
        (-32600, Some("5".into()))
    );
    assert_eq!(refused("5"), (-32600, None));
    assert_eq!(refused("\"x\""), (-32600, None));
}

#[test]
fn j10_params_must_be_an_object_and_unknown_members_are_tolerated() {
    for bad in ["[]", "[1]", "1", "\"x\"", "null"] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":5,"method":"ping","params":{bad}}}"#);
        assert_eq!(refused(text), (-32600, Some("5".into())), "{bad}");
    }
    let Message::Request(request) = parsed(
        r#"{"extra":{"a":[1]},"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"t","x":{"y":1e2}}}"#,
    ) else {
        panic!("a request")
    };
    assert_eq!(
        request.params.raw().unwrap().as_str(),
        r#"{"name":"t","x":{"y":1e2}}"#
    );
}

#[test]
fn j11_duplicates_that_could_split_check_and_work_are_refused() {
    for (text, id) in [
        (
            r#"{"jsonrpc":"2.0","jsonrpc":"2.0","id":5,"method":"ping"}"#,
            Some("5"),
        ),
        (r#"{"jsonrpc":"2.0","id":5,"id":6,"method":"ping"}"#, None),
        (
            r#"{"jsonrpc":"2.0","id":5,"method":"ping","m\u0065thod":"tools/call"}"#,
            Some("5"),
        ),
        (
            r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{},"params":{}}"#,
            Some("5"),
        ),
        (
            r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"a","name":"b"}}"#,
            Some("5"),
        ),
        (
            r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"a","n\u0061me":"b"}}"#,
            Some("5"),
        ),
        (
            r#"{"jsonrpc":"2.0","id":5,"method":"resources/read","params":{"uri":"a","uri":"b"}}"#,
            Some("5"),
        ),
        (
            r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"_meta":{},"_meta":{}}}"#,
            Some("5"),
        ),
        (
            r#"{"jsonrpc":"2.0","id":5,"method":"x","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2025-11-25","io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#,
            Some("5"),
        ),
    ] {
        assert_eq!(refused(text), (-32600, id.map(str::to_owned)), "{text}");
    }
    // Duplicate names in unchecked values are left to the reader.
    parsed(r#"{"jsonrpc":"2.0","id":5,"method":"x","params":{"a":1,"a":2,"_meta":{"b":1,"b":2}}}"#);
}

#[test]
fn j19_depth_beyond_64_is_an_invalid_request_and_uses_no_stack() {
    let deep = |levels: usize| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{{"a":{}1{}}}}}"#,
            "[".repeat(levels),
            "]".repeat(levels)
        )
    };
    parsed(&deep(62));
    assert_eq!(refused(deep(63)).0, -32600);
    assert_eq!(refused(deep(2_000_000)).0, -32600);
    assert_eq!(refused("[".repeat(4_000_000)).0, -32600);
    assert_eq!(refused("{\"a\":".repeat(500_000)).0, -32600);
}

#[test]
fn a_million_members_are_read_in_one_pass() {
    let members: Vec<String> = (0..200_000).map(|n| format!("\"k{n}\":{n}")).collect();
    let text = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t","arguments":{{{}}}}}}}"#,
        members.join(",")
    );
    let Message::Request(request) = parsed(&text) else {
        panic!("a request")
    };
    let call = CallParams::read(&request.params).unwrap();
    assert_eq!(call.arguments.unwrap().members().count(), 200_000);
}

#[test]
fn tl4_tl18_call_parameters_keep_the_arguments_as_text_and_name_the_fault() {
    let read = |params: Value| CallParams::read(&Params::from(Raw::of(&params).unwrap()));
    let text = r#"{"name":"t","arguments":{ "big": 12345678901234567890, "x" : [1.50] }}"#;
    let call = CallParams::read(&Params::from(Raw::parse(text).unwrap())).unwrap();
    assert_eq!(
        call.arguments.unwrap().as_str(),
        r#"{ "big": 12345678901234567890, "x" : [1.50] }"#
    );
    assert_eq!(
        read(json!({ "name": "t" }))
            .unwrap()
            .arguments_or_empty()
            .as_str(),
        "{}"
    );
    let path = |params: Value| {
        read(params)
            .map_err(|Misfit { path, .. }| path)
            .unwrap_err()
    };
    assert_eq!(path(json!({})), "params.name");
    assert_eq!(path(json!({ "name": 1 })), "params.name");
    for arguments in [json!([]), json!("x"), json!(1), Value::Null] {
        assert_eq!(
            path(json!({ "name": "t", "arguments": arguments })),
            "params.arguments"
        );
    }
    // MCP-MR-12
    assert_eq!(
        path(json!({ "name": "t", "inputResponses": [] })),
        "params.inputResponses"
    );
    assert_eq!(
        path(json!({ "name": "t", "inputResponses": { "q": null } })),
        "params.inputResponses.q"
    );
    assert_eq!(
        path(json!({ "name": "t", "requestState": 1 })),
        "params.requestState"
    );
    // MCP-TK-1, MCP-TX-2: a task parameter without a declared capability is ignored, whatever its
    // value.
    assert!(
        read(json!({ "name": "t", "task": 1 }))
            .unwrap()
            .task
            .is_none()
    );
}

/// Rule: METER-10. The id of a call goes into `_meta` of a result, beside what stands there, and
/// after a member of the same name.
#[test]
fn a_text_is_added_to_the_meta_of_a_result() {
    for (before, after) in [
        (
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"_meta":{"k":"v"}}}"#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":"result","result":{"content":[{"_meta":1}]}}"#,
            r#"{"jsonrpc":"2.0","id":"result","result":{"content":[{"_meta":1}],"_meta":{"k":"v"}}}"#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":{"_meta":{},"a":"}"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"_meta":{"k":"v"},"a":"}"}}"#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":{"_meta":{"k":"forged"}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"_meta":{"k":"forged","k":"v"}}}"#,
        ),
    ] {
        let mut response = before.as_bytes().to_vec();
        jsonrpc::add_meta(&mut response, "k", "v");
        assert_eq!(String::from_utf8(response).unwrap(), after);
    }
    for same in [
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{"_meta":7}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":[]}"#,
    ] {
        let mut response = same.as_bytes().to_vec();
        jsonrpc::add_meta(&mut response, "k", "v");
        assert_eq!(String::from_utf8(response).unwrap(), same);
    }
}
