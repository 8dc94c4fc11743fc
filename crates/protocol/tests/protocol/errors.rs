//! Codes and statuses: MCP-ER-1…MCP-ER-15, MCP-RE-4, MCP-RE-5, MCP-T-66, MCP-T-67, MCP-L-19.

use portolan_protocol::{ErrorKind, Misfit, Raw, Revision, SERVED};
use serde_json::json;

use crate::tree;

const R4: Revision = Revision::V2025_11_25;
const R5: Revision = Revision::V2026_07_28;

fn every_kind() -> Vec<ErrorKind> {
    let misfit = Misfit::new("params.x", "required");
    vec![
        ErrorKind::Parse,
        ErrorKind::InvalidRequest("no".into()),
        ErrorKind::SessionRequired,
        ErrorKind::SessionNotFound,
        ErrorKind::MethodNotFound("x".into()),
        ErrorKind::NoHandshake,
        ErrorKind::InvalidParams(misfit.clone()),
        ErrorKind::InvalidInitialize {
            misfit: misfit.clone(),
            requested: None,
        },
        ErrorKind::InvalidMeta(misfit),
        ErrorKind::UnknownTool("x".into()),
        ErrorKind::UnknownPrompt("x".into()),
        ErrorKind::ResourceNotFound {
            uri: "x://a".into(),
        },
        ErrorKind::InvalidCursor,
        ErrorKind::HeaderMismatch("no".into()),
        ErrorKind::UnsupportedVersion {
            requested: "x".into(),
        },
        ErrorKind::MissingCapability {
            required: Raw::empty_object(),
        },
        ErrorKind::Internal,
        ErrorKind::RateLimited {
            reason: "tenant",
            retry_after_ms: 1_000,
        },
        ErrorKind::TooMany("streams"),
        ErrorKind::QuotaExceeded,
        ErrorKind::UpstreamUnreachable,
        ErrorKind::UpstreamTimeout,
        ErrorKind::UpstreamViolation,
        ErrorKind::UpstreamAuthorization,
        ErrorKind::Unavailable("redis"),
    ]
}

#[test]
fn er3_t66_t67_codes_and_statuses_by_era() {
    for (kind, legacy, modern) in [
        (
            ErrorKind::MethodNotFound("x".into()),
            (-32601, 200),
            (-32601, 404),
        ),
        (
            ErrorKind::InvalidParams(Misfit::new("params", "x")),
            (-32602, 200),
            (-32602, 200),
        ),
        (
            ErrorKind::UnknownTool("x".into()),
            (-32602, 200),
            (-32602, 200),
        ),
        (ErrorKind::InvalidCursor, (-32602, 200), (-32602, 200)),
        (
            ErrorKind::ResourceNotFound { uri: "x".into() },
            (-32002, 200),
            (-32602, 200),
        ),
        (
            ErrorKind::HeaderMismatch("x".into()),
            (-32001, 400),
            (-32020, 400),
        ),
        (
            ErrorKind::MissingCapability {
                required: Raw::empty_object(),
            },
            (-31006, 200),
            (-32021, 400),
        ),
        (ErrorKind::Internal, (-32603, 200), (-32603, 200)),
        (
            ErrorKind::RateLimited {
                reason: "tenant",
                retry_after_ms: 1_000,
            },
            (-32014, 429),
            (-31002, 429),
        ),
        (ErrorKind::TooMany("streams"), (-32013, 429), (-31002, 429)),
        (
            ErrorKind::Unavailable("redis"),
            (-32017, 503),
            (-32603, 503),
        ),
    ] {
        assert_eq!((kind.face(R4), kind.face(R5)), (legacy, modern), "{kind:?}");
    }
}

#[test]
fn e15_what_is_away_is_told_by_a_word_in_either_era() {
    for revision in [R4, R5] {
        for reason in ["redis", "registry", "overload"] {
            let refusal = ErrorKind::Unavailable(reason).refuse(revision, Some(7.into()));
            let body = tree(&refusal.body());
            assert_eq!(
                (&body["id"], &body["error"]["data"]),
                (&json!(7), &json!({ "reason": reason }))
            );
        }
    }
}

#[test]
fn er13_er14_modern_clients_get_no_code_of_the_reserved_ranges() {
    for kind in every_kind() {
        let code = kind.face(R5).0;
        assert!(!(-32019..=-32000).contains(&code), "{kind:?}");
        assert!(!(-32099..=-32023).contains(&code), "{kind:?}");
    }
}

#[test]
fn every_error_says_something_in_every_revision() {
    for revision in SERVED {
        for kind in every_kind() {
            let refusal = kind.refuse(revision, Some(1.into()));
            let body = tree(&refusal.body());
            assert_eq!(body["error"]["code"], kind.face(revision).0);
            assert!(!body["error"]["message"].as_str().unwrap().is_empty());
            assert!((400..=599).contains(&refusal.status) || refusal.status == 200);
        }
    }
}

#[test]
fn re4_re5_a_missing_resource_names_its_uri() {
    for revision in [R4, R5] {
        let body = tree(
            &ErrorKind::ResourceNotFound {
                uri: "x://\"a".into(),
            }
            .refuse(revision, None)
            .body(),
        );
        assert_eq!(body["error"]["data"], json!({ "uri": "x://\"a" }));
    }
}

#[test]
fn l19_the_missing_capability_is_an_object() {
    let required = Raw::of(&json!({ "elicitation": { "url": {} } })).unwrap();
    let body = tree(
        &ErrorKind::MissingCapability { required }
            .refuse(R5, None)
            .body(),
    );
    assert_eq!(
        body["error"]["data"],
        json!({ "requiredCapabilities": { "elicitation": { "url": {} } } })
    );
}

#[test]
fn tl16_long_names_are_cut_before_they_are_repeated() {
    let body = tree(
        &ErrorKind::UnknownTool("ü".repeat(10_000))
            .refuse(R5, None)
            .body(),
    );
    let message = body["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("Unknown tool: ü") && message.chars().count() < 160);
    let kind = ErrorKind::UnsupportedVersion {
        requested: "x".repeat(10_000),
    };
    assert!(kind.refuse(R5, None).body().len() < 500);
}
