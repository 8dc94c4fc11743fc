//! `_meta`: MCP-J-20…MCP-J-24, MCP-PP-1, MCP-LG-2; the method matrix of `docs/design/protocol.md`;
//! MCP-CN-1.

use portolan_protocol::cancel::Cancelled;
use portolan_protocol::capability::ClientCapabilities;
use portolan_protocol::logging::{Level, SetLevelParams};
use portolan_protocol::meta::{RequestMeta, is_reserved_key, is_valid_key};
use portolan_protocol::progress::{self, Gate, Progress};
use portolan_protocol::{Method, Params, Raw, Revision};
use serde_json::{Value, json};

use crate::tree;

fn params(value: &Value) -> Params {
    Params::from(Raw::of(value).unwrap())
}

#[test]
fn j20_key_grammar() {
    for good in [
        "",
        "a",
        "a/b",
        "a.b/c",
        "com.example/k-1_x.y",
        "a-b.c/d",
        "com.example/",
        "9a",
    ] {
        assert!(is_valid_key(good), "{good}");
    }
    for bad in [
        "/a",
        "1a/b",
        "a-/b",
        "a..b/c",
        ".a/b",
        "a/b/c",
        "-a",
        "a-",
        "a b",
        "ü",
        "a/_b",
        "com.ex_ample/a",
    ] {
        assert!(!is_valid_key(bad), "{bad}");
    }
}

#[test]
fn j21_j22_reserved_prefixes() {
    let (old, new) = (Revision::V2025_06_18, Revision::V2025_11_25);
    for (key, in_old, in_new) in [
        ("modelcontextprotocol.io/x", true, false),
        ("mcp.dev/x", true, false),
        ("tools.mcp.com/x", true, true),
        ("io.modelcontextprotocol/x", false, true),
        ("dev.mcp/x", false, true),
        ("com.mcp.tools/x", true, true),
        ("com.example.mcp/x", false, false),
        ("com.example/mcp", false, false),
        ("mcp", false, false),
    ] {
        assert_eq!(
            (is_reserved_key(key, old), is_reserved_key(key, new)),
            (in_old, in_new),
            "{key}"
        );
    }
}

#[test]
fn j23_j24_malformed_trace_values_are_dropped() {
    let read = |traceparent: &str| {
        let meta = json!({ "_meta": { "traceparent": traceparent, "tracestate": "a=b", "baggage": "k=v", "other": [1] } });
        RequestMeta::legacy(&params(&meta)).unwrap()
    };
    let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let meta = read(good);
    assert_eq!(
        (meta.traceparent.as_deref(), meta.tracestate.as_deref()),
        (Some(good), Some("a=b"))
    );
    assert_eq!(meta.baggage.as_deref(), Some("k=v"));
    for bad in [
        "",
        "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x",
    ] {
        let meta = read(bad);
        assert!(
            meta.traceparent.is_none() && meta.tracestate.is_none(),
            "{bad}"
        );
    }
}

#[test]
fn pp1_progress_tokens_are_strings_or_integers() {
    for token in [json!("t"), json!(5)] {
        let meta =
            RequestMeta::legacy(&params(&json!({ "_meta": { "progressToken": token } }))).unwrap();
        assert_eq!(serde_json::to_value(meta.progress_token).unwrap(), token);
    }
    for token in [json!(1.5), json!({}), json!(null)] {
        let fault = RequestMeta::legacy(&params(&json!({ "_meta": { "progressToken": token } })))
            .unwrap_err();
        assert_eq!(fault.path, "params._meta.progressToken");
    }
    assert!(RequestMeta::legacy(&params(&json!({ "_meta": 1 }))).is_err());
}

#[test]
fn pp1_fa_6_progress_only_grows_and_its_message_is_for_those_who_know_it() {
    let mut gate = Gate::default();
    let passed: Vec<bool> = [0.0, 0.5, 0.5, 0.4, f64::NAN, f64::INFINITY, 0.6]
        .into_iter()
        .map(|value| gate.passes(value))
        .collect();
    assert_eq!(passed, [true, true, false, false, false, false, true]);
    let progress = Progress {
        progress: 1.0,
        total: None,
        message: Some("m".into()),
    };
    for (revision, known) in [
        (Revision::V2024_11_05, false),
        (Revision::V2025_03_26, true),
        (Revision::V2026_07_28, true),
    ] {
        let message = tree(&progress::notification(revision, &7.into(), &progress));
        assert_eq!(message["params"].get("message").is_some(), known);
        assert_eq!(message["params"]["progressToken"], 7);
    }
}

#[test]
fn lg2_lg3_levels_ascend_and_unknown_ones_are_misfits() {
    assert!(Level::ALL.is_sorted());
    assert_eq!(Level::SESSION_DEFAULT, Level::Warning);
    for level in Level::ALL {
        assert_eq!(
            params(&json!({ "level": level.as_str() }))
                .read::<SetLevelParams>()
                .unwrap()
                .level,
            level
        );
    }
    assert_eq!(
        params(&json!({ "level": "loud" }))
            .read::<SetLevelParams>()
            .unwrap_err()
            .path,
        "params.level"
    );
}

#[test]
fn cn1_a_cancellation_names_a_request_or_is_dropped() {
    let cancelled =
        Cancelled::read(&params(&json!({ "requestId": "a", "reason": "late" }))).unwrap();
    assert_eq!(
        (cancelled.request_id, cancelled.reason.as_deref()),
        ("a".into(), Some("late"))
    );
    for bad in [
        json!({}),
        json!({ "requestId": null }),
        json!({ "requestId": 1.5 }),
    ] {
        assert!(Cancelled::read(&params(&bad)).is_none());
    }
}

#[test]
fn l10_client_capabilities_are_read_leniently_and_survive_as_bits() {
    let read = |value: &Value| ClientCapabilities::read(&Raw::of(value).unwrap());
    let all = json!({ "roots": { "listChanged": true }, "sampling": { "tools": {}, "context": {} },
        "elicitation": { "form": {}, "url": {} }, "extensions": { "a.b/c": { "x": 1 }, "bad": 1 }, "tools": {} });
    let capabilities = read(&all);
    assert_eq!(capabilities.bits(), 0b11_1111);
    assert_eq!(
        capabilities.extensions.keys().collect::<Vec<_>>(),
        ["a.b/c"]
    );
    for bits in 0..64 {
        assert_eq!(ClientCapabilities::from_bits(bits).bits(), bits);
    }
    let wrong =
        read(&json!({ "roots": true, "sampling": [], "elicitation": null, "extensions": 1 }));
    assert_eq!(wrong, ClientCapabilities::default());
    let url_only = read(&json!({ "elicitation": { "url": {} } }));
    assert!(url_only.elicitation_url && !url_only.elicitation_form);
}

#[test]
fn the_method_matrix_of_section_0() {
    let served = |name: &str| -> String {
        Revision::ALL
            .iter()
            .map(|revision| {
                if Method::of_client(name, *revision).is_some() {
                    '●'
                } else {
                    '✗'
                }
            })
            .collect()
    };
    for (name, row) in [
        ("initialize", "●●●●✗"),
        ("server/discover", "✗✗✗✗●"),
        ("ping", "●●●●✗"),
        ("tools/list", "●●●●●"),
        ("tools/call", "●●●●●"),
        ("resources/list", "●●●●●"),
        ("resources/templates/list", "●●●●●"),
        ("resources/read", "●●●●●"),
        ("prompts/list", "●●●●●"),
        ("prompts/get", "●●●●●"),
        ("completion/complete", "●●●●●"),
        ("resources/subscribe", "●●●●✗"),
        ("resources/unsubscribe", "●●●●✗"),
        ("subscriptions/listen", "✗✗✗✗●"),
        ("logging/setLevel", "●●●●✗"),
        ("tasks/get", "✗✗✗●●"),
        ("tasks/cancel", "✗✗✗●●"),
        ("tasks/result", "✗✗✗●✗"),
        ("tasks/list", "✗✗✗●✗"),
        ("tasks/update", "✗✗✗✗●"),
        ("sampling/createMessage", "✗✗✗✗✗"),
        ("notifications/initialized", "✗✗✗✗✗"),
        ("resource/list", "✗✗✗✗✗"),
        ("", "✗✗✗✗✗"),
    ] {
        assert_eq!(served(name), row, "{name}");
    }
    // MCP-J-9: a request's name without an id, or news that only a server sends, is no notification
    // of a client.
    let notices = |name: &str| Method::notice_of_client(name, Revision::V2025_06_18);
    assert_eq!(notices("notifications/cancelled"), Some(Method::Cancelled));
    assert_eq!(notices("initialized"), Some(Method::Initialized));
    assert_eq!(
        (
            notices("tools/call"),
            notices("notifications/message"),
            notices("notifications/x")
        ),
        (None, None, None)
    );
    for method in Method::ALL {
        assert_eq!(Method::from_name(method.name()), Some(*method));
    }
    // MCP-L-5
    assert_eq!(Method::from_name("initialized"), Some(Method::Initialized));
}

#[test]
fn revisions_keep_their_names_and_numbers() {
    for revision in Revision::ALL {
        assert_eq!(revision.as_str().parse(), Ok(revision));
        assert_eq!(Revision::from_ordinal(revision.ordinal()), Some(revision));
    }
    assert!("2025-06-1".parse::<Revision>().is_err() && Revision::from_ordinal(0).is_none());
    // MCP-L-2: all of them are served.
    assert!(Revision::ALL.into_iter().all(Revision::is_served));
}
