//! Mirrored headers: MCP-H-1…MCP-H-16, MCP-T-12.

use portolan_protocol::header::{
    AnnotationFault, Dialect, HeaderFault, Headers, ParamHeader, ParamType, annotations,
    check_params, decode, encode,
};
use portolan_protocol::negotiate::Admitted;
use portolan_protocol::{ErrorKind, Raw, Revision};
use serde_json::{Value, json};

use crate::{face, modern, post};

const V5: (&str, &str) = ("MCP-Protocol-Version", "2026-07-28");

fn call(name: &str, headers: &[(&str, &str)]) -> Result<Admitted, portolan_protocol::Refusal> {
    post(
        &modern("tools/call", json!({ "name": name })),
        &[&[V5], headers].concat(),
    )
}

#[test]
fn h1_h5_mcp_method_must_be_there_and_equal() {
    assert_eq!(
        face(call("t", &[("Mcp-Name", "t")])),
        (400, -32020, Some(json!(7)))
    );
    for wrong in [
        "tools/list",
        "TOOLS/CALL",
        "",
        "=?base64?dG9vbHMvY2FsbA==?=",
    ] {
        assert_eq!(
            face(call("t", &[("Mcp-Method", wrong), ("Mcp-Name", "t")])).1,
            -32020,
            "{wrong}"
        );
    }
    // MCP-T-12: header names have no case; MCP-H-6: white space around values is no part of them.
    assert!(
        call(
            "t",
            &[("MCP-METHOD", " tools/call\t"), ("mcp-name", "  t ")]
        )
        .is_ok()
    );
}

#[test]
fn h2_h3_mcp_name_repeats_name_uri_or_task_id() {
    for (method, params, value) in [
        ("tools/call", json!({ "name": "a" }), "a"),
        ("prompts/get", json!({ "name": "b" }), "b"),
        ("resources/read", json!({ "uri": "x://y" }), "x://y"),
        ("tasks/get", json!({ "taskId": "k" }), "k"),
        ("tasks/update", json!({ "taskId": "k" }), "k"),
        ("tasks/cancel", json!({ "taskId": "k" }), "k"),
    ] {
        let headers = [V5, ("Mcp-Method", method), ("Mcp-Name", value)];
        assert!(
            post(&modern(method, params.clone()), &headers).is_ok(),
            "{method}"
        );
        assert_eq!(
            face(post(&modern(method, params.clone()), &headers[..2])).1,
            -32020,
            "{method}"
        );
        let other = [V5, ("Mcp-Method", method), ("Mcp-Name", "other")];
        assert_eq!(
            face(post(&modern(method, params), &other)).1,
            -32020,
            "{method}"
        );
    }
    // Nothing in the body to repeat: the parameters are refused later, unless a name is claimed.
    let nameless = modern("tools/call", json!({}));
    assert!(post(&nameless, &[V5, ("Mcp-Method", "tools/call")]).is_ok());
    assert_eq!(
        face(post(
            &nameless,
            &[V5, ("Mcp-Method", "tools/call"), ("Mcp-Name", "t")]
        ))
        .1,
        -32020
    );
}

#[test]
fn h4_mcp_name_on_other_methods_is_ignored() {
    assert!(
        post(
            &modern("tools/list", json!({})),
            &[V5, ("Mcp-Method", "tools/list"), ("Mcp-Name", "x")]
        )
        .is_ok()
    );
}

#[test]
fn h6_h7_names_compare_after_decoding_and_with_case() {
    let method = ("Mcp-Method", "tools/call");
    assert!(
        call(
            "überfahrt",
            &[method, ("Mcp-Name", "=?base64?w7xiZXJmYWhydA==?=")]
        )
        .is_ok()
    );
    assert!(call("t", &[method, ("Mcp-Name", "=?base64?dA==?=")]).is_ok());
    assert_eq!(face(call("T", &[method, ("Mcp-Name", "t")])).1, -32020);
}

#[test]
fn h8_h9_h10_what_looks_encoded_must_decode_and_what_does_not_is_literal() {
    let modern = |value: &'static str| {
        decode(value.as_bytes(), Dialect::Modern).map(std::borrow::Cow::into_owned)
    };
    for bad in [
        "=?base64?dA?=",
        "=?base64?d===?=",
        "=?base64?_-8=?=",
        "=?base64?/w==?=",
        "=?base64?d A==?=",
    ] {
        assert_eq!(modern(bad), Err(HeaderFault::Encoding), "{bad}");
        // MCP-D-5: literal in the draft profile.
        assert_eq!(decode(bad.as_bytes(), Dialect::Draft).as_deref(), Ok(bad));
    }
    for literal in [
        "=?base64?dA==",
        "dA==?=",
        "=?BASE64?dA==?=",
        "=?base64?=",
        "dA==",
        "=?utf-8?dA==?=",
        "",
    ] {
        assert_eq!(modern(literal).as_deref(), Ok(literal));
    }
    assert_eq!(modern("=?base64??=").as_deref(), Ok(""));
    assert_eq!(encode("=?base64?x?="), "=?base64?PT9iYXNlNjQ/eD89?=");
}

#[test]
fn h11_bytes_that_no_header_may_hold_are_refused() {
    for bad in [&b"\xc3\xbc"[..], b"a\x7fb", b"a\x00b", b"a\x1fb"] {
        assert_eq!(decode(bad, Dialect::Modern), Err(HeaderFault::Characters));
    }
    assert_eq!(decode(b"a\tb", Dialect::Modern).as_deref(), Ok("a\tb"));
}

fn annotation(name: &str, path: &[&str], kind: ParamType) -> ParamHeader {
    ParamHeader {
        name: name.into(),
        path: path.iter().map(|&part| part.to_owned()).collect(),
        kind,
    }
}

fn params(arguments: &Value, headers: &[(&str, &str)]) -> Result<(), i32> {
    let annotations = [
        annotation("Region", &["region"], ParamType::String),
        annotation("Count", &["page", "count"], ParamType::Integer),
        annotation("Dry", &["dry"], ParamType::Boolean),
    ];
    let headers = Headers::collect(
        headers
            .iter()
            .map(|(name, value)| (*name, value.as_bytes())),
    );
    let arguments = Raw::of(arguments).unwrap();
    check_params(&annotations, Some(&arguments), &headers, Dialect::Modern)
        .map_err(|kind| kind.face(Revision::V2026_07_28).0)
}

#[test]
fn h12_h13_a_header_stands_exactly_where_the_argument_has_a_value() {
    assert_eq!(params(&json!({}), &[]), Ok(()));
    assert_eq!(
        params(&json!({ "region": null, "page": { "count": null } }), &[]),
        Ok(())
    );
    assert_eq!(
        params(&json!({ "region": "eu" }), &[("mcp-param-region", "eu")]),
        Ok(())
    );
    assert_eq!(params(&json!({ "region": "eu" }), &[]), Err(-32020));
    assert_eq!(
        params(&json!({ "region": "eu" }), &[("Mcp-Param-Region", "us")]),
        Err(-32020)
    );
    assert_eq!(
        params(&json!({ "region": "eu" }), &[("Mcp-Param-Region", "EU")]),
        Err(-32020)
    );
    assert_eq!(
        params(&json!({}), &[("Mcp-Param-Region", "eu")]),
        Err(-32020)
    );
    assert_eq!(
        params(&json!({ "region": null }), &[("Mcp-Param-Region", "")]),
        Err(-32020)
    );
    assert_eq!(
        params(
            &json!({ "page": { "count": 3 } }),
            &[("Mcp-Param-Count", "3")]
        ),
        Ok(())
    );
    assert_eq!(params(&json!({ "page": 3 }), &[]), Ok(()));
}

#[test]
fn h14_values_compare_by_their_type() {
    let count = |body: Value, header: &str| {
        params(
            &json!({ "page": { "count": body } }),
            &[("Mcp-Param-Count", header)],
        )
    };
    for (body, header) in [
        (json!(42), "42.0"),
        (json!(42.0), "42"),
        (json!(42), "4.2e1"),
        (json!(-1), "-1"),
        (json!(0), "-0"),
    ] {
        assert_eq!(count(body, header), Ok(()), "{header}");
    }
    for (body, header) in [
        (json!(42), "43"),
        (json!(42), "042"),
        (json!(42), "+42"),
        (json!(42), "0x2a"),
        (json!(42), ""),
        (json!(42), "NaN"),
        (json!(9_007_199_254_740_993_i64), "9007199254740993"),
        (json!(1.5), "1.5"),
    ] {
        assert_eq!(count(body, header), Err(-32020), "{header}");
    }
    assert_eq!(
        params(&json!({ "dry": true }), &[("Mcp-Param-Dry", "true")]),
        Ok(())
    );
    for wrong in ["True", "1", "false", ""] {
        assert_eq!(
            params(&json!({ "dry": true }), &[("Mcp-Param-Dry", wrong)]),
            Err(-32020),
            "{wrong}"
        );
    }
    assert_eq!(
        params(&json!({ "region": "" }), &[("Mcp-Param-Region", "")]),
        Ok(())
    );
    assert_eq!(
        params(
            &json!({ "region": "ü" }),
            &[("Mcp-Param-Region", "=?base64?w7w=?=")]
        ),
        Ok(())
    );
    // The schema speaks about arrays and objects, with a better message.
    assert_eq!(params(&json!({ "region": ["eu"] }), &[]), Ok(()));
}

#[test]
fn h15_headers_that_no_annotation_names_are_ignored() {
    assert_eq!(params(&json!({}), &[("Mcp-Param-Other", "\u{fc}")]), Ok(()));
}

#[test]
fn an_annotated_argument_that_stands_twice_cannot_pass_by_its_header() {
    let annotations = [annotation("Region", &["region"], ParamType::String)];
    let arguments = Raw::parse(r#"{"region":"eu","r\u0065gion":"us"}"#).unwrap();
    for header in ["eu", "us"] {
        let headers = Headers::collect([("mcp-param-region", header.as_bytes())]);
        let result = check_params(&annotations, Some(&arguments), &headers, Dialect::Modern);
        assert!(matches!(result, Err(ErrorKind::HeaderMismatch(_))));
    }
}

#[test]
fn h16_annotations_are_found_where_they_may_stand() {
    let schema = json!({ "type": "object", "properties": {
        "region": { "type": "string", "x-mcp-header": "Region" },
        "page": { "type": "object", "properties": { "count": { "type": "integer", "x-mcp-header": "Count" } } },
        // MCP-H-17: a legal name. A property *called* like the keyword is no annotation, nor is
        // data that looks like one.
        "dry": { "type": "boolean", "x-mcp-header": "Method", "default": { "x-mcp-header": "Data" } },
        "x-mcp-header": { "type": "string", "const": { "x-mcp-header": 1 } },
    } });
    let (found, faults) = annotations(&schema);
    assert_eq!(faults, []);
    assert_eq!(
        found,
        [
            annotation("Region", &["region"], ParamType::String),
            annotation("Count", &["page", "count"], ParamType::Integer),
            annotation("Method", &["dry"], ParamType::Boolean),
        ]
    );
}

#[test]
fn d_4_and_sd_19_the_draft_checks_what_is_served_and_a_number_is_served_without_a_header() {
    let schema = json!({ "type": "object", "properties": {
        "weight": { "type": "number", "x-mcp-header": "Weight" },
        "region": { "type": "string", "x-mcp-header": "Region" } } });
    let (found, faults) = annotations(&schema);
    assert_eq!(
        found,
        [annotation("Region", &["region"], ParamType::String)]
    );
    assert_eq!(faults.len(), 1, "H-16 holds for what is served");
    let check = |headers: &[(&str, &str)], arguments: Value| {
        let all = Headers::collect(
            headers
                .iter()
                .map(|(name, value)| (*name, value.as_bytes())),
        );
        let arguments = Raw::of(&arguments).unwrap();
        check_params(&found, Some(&arguments), &all, Dialect::Draft)
            .map_err(|kind| kind.face(Revision::V2025_06_18))
    };
    let arguments = json!({ "weight": 1.5, "region": "eu" });
    assert_eq!(
        check(
            &[("Mcp-Param-Region", "eu"), ("Mcp-Param-Weight", "2")],
            arguments.clone()
        ),
        Ok(()),
        "a header that nothing names is nothing"
    );
    assert_eq!(
        check(&[("Mcp-Param-Region", "us")], arguments.clone()),
        Err((-32001, 400)),
        "MCP-SD-18"
    );
    assert_eq!(check(&[], arguments), Err((-32001, 400)));
}

#[test]
fn h16_bad_annotations_are_faults_with_their_place() {
    let property = |schema: Value| json!({ "type": "object", "properties": { "a/b": schema } });
    let place = "/properties/a~1b".to_owned();
    for name in [
        json!(""),
        json!("a b"),
        json!("a:b"),
        json!("ü"),
        json!("a\nb"),
        json!(1),
        Value::Null,
    ] {
        let (found, faults) =
            annotations(&property(json!({ "type": "string", "x-mcp-header": name })));
        assert_eq!(
            (found.len(), faults),
            (0, vec![AnnotationFault::NotAToken(place.clone())]),
            "{name}"
        );
    }
    for kind in [
        json!("number"),
        json!("object"),
        json!("array"),
        json!(["string", "null"]),
        Value::Null,
    ] {
        let (_, faults) = annotations(&property(json!({ "type": kind, "x-mcp-header": "A" })));
        assert_eq!(
            faults,
            [AnnotationFault::WrongType(place.clone())],
            "{kind}"
        );
    }
    let (found, faults) = annotations(&json!({ "properties": {
        "a": { "type": "string", "x-mcp-header": "Same" }, "b": { "type": "string", "x-mcp-header": "sAME" } } }));
    assert_eq!(
        (found.len(), faults),
        (1, vec![AnnotationFault::Repeated("/properties/b".into())])
    );
    let inner = json!({ "properties": { "a": { "type": "string", "x-mcp-header": "A" } } });
    for (schema, pointer) in [
        (json!({ "x-mcp-header": "A" }), String::new()),
        (json!({ "items": inner }), "/items/properties/a".into()),
        (json!({ "oneOf": [inner] }), "/oneOf/0/properties/a".into()),
        (json!({ "anyOf": [inner] }), "/anyOf/0/properties/a".into()),
        (json!({ "allOf": [inner] }), "/allOf/0/properties/a".into()),
        (json!({ "not": inner }), "/not/properties/a".into()),
        (json!({ "if": inner }), "/if/properties/a".into()),
        (json!({ "then": inner }), "/then/properties/a".into()),
        (json!({ "else": inner }), "/else/properties/a".into()),
        (
            json!({ "$defs": { "D": inner } }),
            "/$defs/D/properties/a".into(),
        ),
        (
            json!({ "properties": { "l": { "type": "array", "items": inner } } }),
            "/properties/l/items/properties/a".into(),
        ),
    ] {
        let (found, faults) = annotations(&schema);
        assert_eq!(
            (found.len(), faults),
            (0, vec![AnnotationFault::Unreachable(pointer.clone())])
        );
    }
}
