//! Era selection and admission: MCP-E-2…MCP-E-14, MCP-L-2, MCP-L-3, MCP-L-9, MCP-L-14, MCP-L-16,
//! MCP-T-13, MCP-T-42, MCP-T-46…MCP-T-48, MCP-J-12…MCP-J-16.

use portolan_protocol::header::{Headers, Mirroring};
use portolan_protocol::initialize::{InitializeParams, negotiate as negotiate_version};
use portolan_protocol::jsonrpc::BatchContent;
use portolan_protocol::negotiate::{self, Admitted};
use portolan_protocol::{Body, ErrorKind, Method, Params, Raw, Revision};
use serde_json::{Value, json};

use crate::{face, modern, post, tree};

const V5: (&str, &str) = ("MCP-Protocol-Version", "2026-07-28");
const SESSION: (&str, &str) = ("Mcp-Session-Id", "abc");

fn initialize() -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } } })
}

fn list() -> Value {
    json!({ "jsonrpc": "2.0", "id": "a", "method": "tools/list" })
}

#[test]
fn e2_a_version_in_the_body_makes_a_request_modern_whatever_session_is_presented() {
    let headers = [
        V5,
        ("Mcp-Method", "tools/list"),
        SESSION,
        ("Last-Event-ID", "x"),
    ];
    // MCP-E-12: session id and event id are ignored.
    match post(&modern("tools/list", json!({})), &headers) {
        Ok(Admitted::Modern {
            revision,
            method,
            request,
            meta,
        }) => {
            assert_eq!(
                (revision, method),
                (Revision::V2026_07_28, Method::ToolsList)
            );
            assert_eq!(request.id.to_json(), "7");
            // MCP-E-8: no clientInfo is fine.
            assert!(meta.client_info.is_none());
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn e3_initialize_opens_a_legacy_session_and_a_modern_header_on_it_is_a_mismatch() {
    assert!(matches!(
        post(&initialize(), &[]),
        Ok(Admitted::Initialize { draft: false, .. })
    ));
    // MCP-T-48: a legacy or an unknown version in the header of initialize is ignored.
    for version in ["2025-03-26", "2024-11-05", "nonsense"] {
        assert!(matches!(
            post(&initialize(), &[("mcp-protocol-version", version)]),
            Ok(Admitted::Initialize { .. })
        ));
    }
    assert_eq!(
        face(post(&initialize(), &[V5])),
        (400, -32020, Some(json!(1)))
    );
}

#[test]
fn e4_a_modern_header_without_metadata_is_invalid_params_also_with_a_session() {
    assert_eq!(face(post(&list(), &[V5])), (400, -32602, Some(json!("a"))));
    assert_eq!(
        face(post(&list(), &[V5, SESSION])),
        (400, -32602, Some(json!("a")))
    );
}

#[test]
fn e5_a_legacy_request_without_session_is_refused_with_its_id() {
    let refusal = post(&list(), &[]).unwrap_err();
    assert_eq!(refusal.error.message, "Mcp-Session-Id header is required");
    assert_eq!(
        face(post(&list(), &[("MCP-Protocol-Version", "2025-06-18")])),
        (400, -32600, Some(json!("a")))
    );
    assert_eq!(
        face(post(&list(), &[("Mcp-Session-Id", "")])),
        (400, -32600, Some(json!("a")))
    );
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(face(post(&note, &[])), (400, -32600, None));
}

#[test]
fn e6_a_legacy_version_in_the_metadata_is_a_legacy_request() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut body = list();
        body["params"] = json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": version } });
        assert!(matches!(
            post(&body, &[SESSION]),
            Ok(Admitted::Session { .. })
        ));
        assert!(matches!(
            post(&body, &[SESSION, ("MCP-Protocol-Version", version)]),
            Ok(Admitted::Session { .. })
        ));
        assert_eq!(face(post(&body, &[])), (400, -32600, Some(json!("a"))));
        assert_eq!(
            face(post(&body, &[SESSION, V5])),
            (400, -32020, Some(json!("a")))
        );
        body["method"] = json!("initialize");
        assert!(matches!(post(&body, &[]), Ok(Admitted::Initialize { .. })));
    }
}

#[test]
fn e7_the_ladder_gives_its_codes_in_its_order_and_always_the_id_e9() {
    let id = Some(json!(7));
    let call = |change: &dyn Fn(&mut Value)| {
        let mut body = modern("tools/call", json!({ "name": "t" }));
        change(&mut body["params"]["_meta"]);
        body
    };
    let version = "io.modelcontextprotocol/protocolVersion";
    let good = [V5, ("Mcp-Method", "tools/call"), ("Mcp-Name", "t")];
    assert!(matches!(
        post(&call(&|_| ()), &good),
        Ok(Admitted::Modern {
            method: Method::ToolsCall,
            ..
        })
    ));
    // (1) before everything else.
    assert_eq!(
        face(post(&call(&|meta| meta[version] = json!(5)), &[])),
        (400, -32602, id.clone())
    );
    // (2) also when the version is unknown.
    assert_eq!(
        face(post(
            &call(&|meta| meta[version] = json!("2099-01-01")),
            &[V5]
        )),
        (400, -32020, id.clone())
    );
    assert_eq!(face(post(&call(&|_| ()), &[])), (400, -32020, id.clone()));
    let older = [("MCP-Protocol-Version", "2025-11-25"), good[1], good[2]];
    assert_eq!(
        face(post(&call(&|_| ()), &older)),
        (400, -32020, id.clone())
    );
    // (3) before (4).
    let unknown = ("MCP-Protocol-Version", "2099-01-01");
    assert_eq!(
        face(post(
            &call(&|meta| meta[version] = json!("2099-01-01")),
            &[unknown]
        )),
        (400, -32020, id.clone())
    );
    // (4) before (5).
    let body = call(&|meta| *meta = json!({ version: "2099-01-01" }));
    let refusal = post(&body, &[unknown, good[1], good[2]]).unwrap_err();
    let answer = tree(&refusal.body());
    assert_eq!(
        (refusal.status, answer["error"]["code"].as_i64()),
        (400, Some(-32022))
    );
    // MCP-L-16, MCP-L-18: exactly what is served, newest first.
    assert_eq!(
        answer["error"]["data"],
        json!({ "supported": ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"], "requested": "2099-01-01" })
    );
    assert_eq!(answer["id"], json!(7));
    // (5), MCP-L-14.
    for meta in [
        json!({ version: "2026-07-28" }),
        json!({ version: "2026-07-28", "io.modelcontextprotocol/clientCapabilities": [] }),
        json!({ version: "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": { "name": "c" } }),
        json!({ version: "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/logLevel": "loud" }),
    ] {
        assert_eq!(
            face(post(&call(&|place| *place = meta.clone()), &good)),
            (400, -32602, id.clone())
        );
    }
    // (6) after (5).
    let mut body = modern("tools/unknown", json!({}));
    let headers = [V5, ("Mcp-Method", "tools/unknown")];
    assert_eq!(face(post(&body, &headers)), (404, -32601, id.clone()));
    body["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!(1);
    assert_eq!(face(post(&body, &headers)), (400, -32602, id));
}

#[test]
fn e10_methods_of_the_legacy_era_are_unknown_to_modern_requests() {
    for method in [
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
        "tasks/list",
        "tasks/result",
        "sampling/createMessage",
        "notifications/progress",
    ] {
        let refusal = post(&modern(method, json!({})), &[V5, ("Mcp-Method", method)]).unwrap_err();
        let answer = tree(&refusal.body());
        assert_eq!(
            (refusal.status, answer["error"]["code"].as_i64()),
            (404, Some(-32601)),
            "{method}"
        );
        if method == "initialize" {
            assert_eq!(answer["error"]["data"]["supported"][0], "2026-07-28");
        }
    }
    assert!(matches!(
        post(
            &modern("server/discover", json!({})),
            &[V5, ("Mcp-Method", "server/discover")]
        ),
        Ok(Admitted::Modern {
            method: Method::Discover,
            ..
        })
    ));
}

#[test]
fn e13_a_response_without_a_session_is_refused_without_id() {
    let answer = json!({ "jsonrpc": "2.0", "id": 3, "result": {} });
    assert_eq!(face(post(&answer, &[])), (400, -32600, None));
    assert_eq!(face(post(&answer, &[V5])), (400, -32600, None));
    assert!(matches!(
        post(&answer, &[SESSION]),
        Ok(Admitted::Session { .. })
    ));
}

#[test]
fn e14_a_modern_notification_needs_no_mirrored_headers_but_they_must_match() {
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
    assert!(matches!(
        post(&note, &[V5]),
        Ok(Admitted::ModernNotification(_))
    ));
    let matching = [V5, ("Mcp-Method", "notifications/cancelled")];
    assert!(matches!(
        post(&note, &matching),
        Ok(Admitted::ModernNotification(_))
    ));
    assert_eq!(
        face(post(&note, &[V5, ("Mcp-Method", "tools/call")])),
        (400, -32020, None)
    );
    let mut keyed = modern("notifications/anything", json!({}));
    keyed.as_object_mut().unwrap().remove("id");
    assert!(matches!(
        post(&keyed, &[]),
        Ok(Admitted::ModernNotification(_))
    ));
    assert_eq!(
        face(post(&keyed, &[("MCP-Protocol-Version", "2025-11-25")])),
        (400, -32020, None)
    );
}

#[test]
fn l2_initialize_answers_the_same_legacy_version_or_the_latest_legacy_one() {
    for served in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        assert_eq!(negotiate_version(served).as_str(), served);
    }
    for other in ["2026-07-28", "2099-01-01", "", "1.0"] {
        assert_eq!(negotiate_version(other).as_str(), "2025-11-25", "{other}");
    }
}

#[test]
fn l3_structurally_wrong_initialize_is_400_invalid_params_with_the_versions() {
    let read = |params: Value| InitializeParams::read(&Params::from(Raw::of(&params).unwrap()));
    let good = json!({ "protocolVersion": "2025-06-18", "capabilities": { "elicitation": {}, "tools": {} },
        "clientInfo": { "name": "c", "version": "1", "icons": null, "futureField": 1 } });
    let params = read(good.clone()).unwrap();
    assert_eq!(params.revision, Revision::V2025_06_18);
    // MCP-EL-1: `{}` is form mode.
    assert!(
        params.capabilities.elicitation_form
            && !params.capabilities.elicitation_url
            && !params.capabilities.roots
    );
    for (member, value) in [
        ("protocolVersion", json!(1)),
        ("capabilities", json!([])),
        ("clientInfo", json!({ "version": "1" })),
        ("clientInfo", Value::Null),
    ] {
        let mut bad = good.clone();
        bad[member] = value;
        let refusal = read(bad).unwrap_err().refuse(Revision::LATEST_LEGACY, None);
        let body = tree(&refusal.body());
        assert_eq!(
            (refusal.status, body["error"]["code"].as_i64()),
            (400, Some(-32602)),
            "{member}"
        );
        assert!(
            body["error"]["message"]
                .as_str()
                .unwrap()
                .contains(&format!("params.{member}"))
        );
        assert_eq!(
            body["error"]["data"]["supported"].as_array().unwrap().len(),
            5
        );
    }
}

#[test]
fn l9_initialize_with_a_session_id_is_refused() {
    assert_eq!(
        face(post(&initialize(), &[SESSION])),
        (400, -32600, Some(json!(1)))
    );
}

#[test]
fn t13_a_repeated_header_is_refused_in_the_code_of_the_era() {
    for name in [
        "MCP-Protocol-Version",
        "Mcp-Session-Id",
        "Mcp-Method",
        "Mcp-Name",
        "Mcp-Param-X",
        "Last-Event-ID",
    ] {
        let twice = [(name, "2025-06-18"), (name, "2025-06-18"), SESSION];
        assert_eq!(
            face(post(&list(), &twice)),
            (400, -32600, Some(json!("a"))),
            "{name}"
        );
        let mut headers = vec![V5, ("Mcp-Method", "tools/list"), (name, "a"), (name, "a")];
        assert_eq!(
            face(post(&modern("tools/list", json!({})), &headers)),
            (400, -32020, Some(json!(7))),
            "{name}"
        );
        headers.truncate(2);
        assert!(post(&modern("tools/list", json!({})), &headers).is_ok());
    }
    assert_eq!(
        face(post(&list(), &[V5, ("MCP-Protocol-Version", "2025-06-18")])).1,
        -32020
    );
}

#[test]
fn t42_t43_get_and_delete_need_a_session_id_that_we_could_have_made() {
    let admit = |headers: &[(&'static str, &'static [u8])]| {
        negotiate::admit_bodyless(&Headers::collect(headers.to_vec()))
    };
    assert_eq!(admit(&[("mcp-session-id", b" abc ")]).unwrap(), "abc");
    let refusal = admit(&[]).unwrap_err();
    assert_eq!(
        (refusal.status, refusal.code(), refusal.id),
        (400, -32600, None)
    );
    let refusal = admit(&[("mcp-session-id", b"a b")]).unwrap_err();
    assert_eq!(
        (refusal.status, refusal.code(), refusal.id),
        (404, -32600, None)
    );
    let dead = ErrorKind::SessionNotFound.refuse(Revision::V2025_06_18, None);
    assert_eq!(
        (dead.status, tree(&dead.body())["error"]["message"].clone()),
        (404, json!("Session not found"))
    );
}

#[test]
fn t46_t47_the_version_header_within_a_session() {
    let check = |value: Option<&'static str>, revision| {
        let headers =
            Headers::collect(value.map(|value| ("MCP-Protocol-Version", value.as_bytes())));
        negotiate::check_session_version(&headers, revision, Some(&5.into())).map_err(|refusal| {
            assert_eq!(refusal.status, 400);
            assert_eq!(refusal.id, Some(5.into()));
            refusal.code()
        })
    };
    for revision in [Revision::V2025_06_18, Revision::V2025_11_25] {
        for fine in [
            None,
            Some("2025-03-26"),
            Some("2025-06-18"),
            Some("2025-11-25"),
            Some("2024-11-05"),
        ] {
            assert_eq!(check(fine, revision), Ok(()), "{fine:?}");
        }
        for bad in ["", "nonsense", "2026-07-28", "2025-06-18, 2025-06-18"] {
            assert_eq!(check(Some(bad), revision), Err(-32022), "{bad}");
        }
    }
    // The header is not of 2025-03-26.
    assert_eq!(check(Some("nonsense"), Revision::V2025_03_26), Ok(()));
}

#[test]
fn d1_d2_d3_mirrored_headers_in_legacy_sessions() {
    let open = |headers: &[(&str, &str)]| post(&initialize(), headers);
    assert!(matches!(
        open(&[("Mcp-Method", "initialize")]),
        Ok(Admitted::Initialize { draft: true, .. })
    ));
    assert_eq!(
        face(open(&[("Mcp-Method", "tools/call")])),
        (400, -32001, Some(json!(1)))
    );
    let check = |headers: &[(&'static str, &'static str)], mirroring| {
        let body =
            json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "t" } });
        let Ok(Body::Single(message)) = Body::parse(body.to_string().into()) else {
            panic!("sound")
        };
        let headers = Headers::collect(
            headers
                .iter()
                .map(|(name, value)| (*name, value.as_bytes())),
        );
        negotiate::check_session_headers(&message, &headers, Revision::V2025_06_18, mirroring)
            .map_err(|refusal| (refusal.status, refusal.code()))
    };
    let both = [("Mcp-Method", "tools/call"), ("Mcp-Name", "t")];
    let wrong = [("Mcp-Method", "tools/call"), ("Mcp-Name", "u")];
    for mirroring in [Mirroring::Optional, Mirroring::Draft] {
        assert_eq!(check(&both, mirroring), Ok(()));
        assert_eq!(check(&wrong, mirroring), Err((400, -32001)));
    }
    assert_eq!(check(&[], Mirroring::Optional), Ok(()));
    assert_eq!(check(&[], Mirroring::Draft), Err((400, -32001)));
    assert_eq!(check(&both[..1], Mirroring::Draft), Err((400, -32001)));
}

fn batch(elements: &Value, revision: Revision) -> Result<BatchContent, i32> {
    match post(elements, &[SESSION]) {
        Ok(Admitted::SessionBatch { batch, .. }) => negotiate::open_batch(&batch, revision)
            .map_err(|refusal| {
                assert_eq!((refusal.status, &refusal.id), (400, &None));
                refusal.code()
            }),
        other => panic!("{other:?}"),
    }
}

#[test]
fn j12_j14_batches_of_calls_or_of_responses_are_received_in_2025_03_26() {
    let calls = json!([list(), { "jsonrpc": "2.0", "method": "notifications/initialized" }]);
    assert!(
        matches!(batch(&calls, Revision::V2025_03_26), Ok(BatchContent::Calls(calls)) if calls.len() == 2)
    );
    let responses = json!([{ "jsonrpc": "2.0", "id": 1, "result": {} },
        { "jsonrpc": "2.0", "id": 2, "error": { "code": -1, "message": "no" } }]);
    assert!(
        matches!(batch(&responses, Revision::V2025_03_26), Ok(BatchContent::Responses(all)) if all.len() == 2)
    );
}

#[test]
fn j13_j15_one_bad_element_refuses_the_whole_batch() {
    let many: Vec<Value> = (0..101)
        .map(|id| json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }))
        .collect();
    let hundred: Value = many[..100].into();
    assert!(batch(&hundred, Revision::V2025_03_26).is_ok());
    for bad in [
        json!([]),
        json!([initialize()]),
        json!([list(), list()]),
        json!([list(), 1]),
        json!([list(), { "jsonrpc": "2.0", "id": null, "method": "ping" }]),
        json!([list(), { "jsonrpc": "2.0", "id": 1, "result": {} }]),
        json!([modern("tools/list", json!({}))]),
        json!([[list()]]),
        many.into(),
    ] {
        assert_eq!(
            batch(&bad, Revision::V2025_03_26).err(),
            Some(-32600),
            "{bad}"
        );
    }
}

#[test]
fn j16_other_revisions_refuse_arrays() {
    for revision in [Revision::V2025_06_18, Revision::V2025_11_25] {
        assert_eq!(batch(&json!([list()]), revision).err(), Some(-32600));
    }
    assert_eq!(
        face(post(&json!([list()]), &[V5, SESSION])),
        (400, -32600, None)
    );
    assert_eq!(
        face(post(&json!([modern("tools/list", json!({}))]), &[V5])),
        (400, -32600, None)
    );
    assert_eq!(face(post(&json!([list()]), &[])), (400, -32600, None));
}
