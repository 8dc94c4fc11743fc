//! Capture policies, masking and bounds (CAPTURE-1, CAPTURE-3, CAPTURE-4).

use portolan_metering::{
    CapturePolicy, Captured,
    capture::{KEPT, TAKEN},
};
use portolan_model::{Timestamp, id::CallId, registry::CallOutcome};
use proptest::prelude::*;
use serde_json::{Value, json};
use uuid::Uuid;

const JWT: &str = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhbm4ifQ.c2lnbmF0dXJl-planted_jwt";
const KEY: &str = "-----BEGIN RSA PRIVATE KEY-----\nMIIEplanted+key/0123456789\nabc=\n-----END RSA PRIVATE KEY-----";

/// Secrets in sentences, and what may not be left of each.
const PLANTED: [(&str, &str); 16] = [
    ("Authorization: Bearer abc.DEF-planted1", "abc.DEF-planted1"),
    (
        "curl -H 'authorization: Basic cGxhbnRlZDpwYXNz'",
        "cGxhbnRlZDpwYXNz",
    ),
    ("use bearer planted2token", "planted2token"),
    (JWT, "planted_jwt"),
    (KEY, "MIIEplanted"),
    ("ghp_0123456789abcdefPLANTED0123456789ab", "PLANTED"),
    ("key sk-proj-0123456789planted", "0123456789planted"),
    ("AWS AKIA0123456789ABCDEF.", "AKIA0123456789ABCDEF"),
    ("xoxb-12345678-planted", "planted"),
    ("mcpk_0123456789abcdefghijklmnopqrstuv", "0123456789abcdef"),
    ("postgres://ann:planted-pass@db.example/x", "planted-pass"),
    (
        "https://api.example/?api_key=planted-key&x=1",
        "planted-key",
    ),
    ("password=planted-word; x", "planted-word"),
    ("write to ann.planted@example.com.", "ann.planted"),
    ("card 4111 1111 1111 1111 of Ann", "1111 1111"),
    ("card 5555-5555-5555-4444", "5555"),
];

fn captured(text: &str) -> Captured {
    Captured::of(text.as_bytes(), text.len())
}

/// Rule: CAPTURE-4.
#[test]
fn secrets_in_texts_are_masked() {
    for (text, secret) in PLANTED {
        let kept = captured(text);
        assert!(!kept.text.contains(secret), "{text}: {}", kept.text);
        assert!(kept.text.contains("••••"), "{text}: {}", kept.text);
        assert_eq!(kept.masked, 1, "{text}: {}", kept.text);
        assert!(!kept.is_cut, "{text}");
    }
}

/// Rule: CAPTURE-4. A string of JSON may hold JSON, and an escape any character.
#[test]
fn secrets_in_json_are_masked_at_every_depth() {
    for (text, secret) in PLANTED {
        let mut value = json!({"note": text, "list": [1, text]});
        for _ in 0..3 {
            value = json!({"content": [{"type": "text", "text": value.to_string()}]});
            let kept = captured(&value.to_string());
            assert!(!kept.text.contains(secret), "{text}: {}", kept.text);
            let read: Value = serde_json::from_str(&kept.text).unwrap();
            assert_eq!(read["content"][0]["type"], "text");
            assert_eq!(kept.masked, 2, "{}", kept.text);
        }
    }
    let escaped = r#"{"a":"\u0067hp_0123456789abcdefPLANTED0123456789ab"}"#;
    assert_eq!(captured(escaped).text, r#"{"a":"••••"}"#);
}

/// Rule: CAPTURE-4.
#[test]
fn members_with_secret_names_lose_their_values() {
    let value = json!({
        "password": "p1", "user": {"apiKey": 17, "name": "Ann"}, "access_token": "p2",
        "secrets": ["p3", {"deep": "p4", "flag": true}], "X-Authorization": "p5",
        "usage": {"total_tokens": 12, "tokenType": "Bearer"}, "4111111111111111": 4_111_111_111_111_111_u64,
        "headers": [{"name": "X-Api-Key", "value": "p6"}, {"name": "Accept", "value": "text/html"}],
    });
    let kept = captured(&value.to_string());
    let read: Value = serde_json::from_str(&kept.text).unwrap();
    let mask = "••••";
    assert_eq!(
        read,
        json!({
            "password": mask, "user": {"apiKey": mask, "name": "Ann"}, "access_token": mask,
            "secrets": [mask, {"deep": mask, "flag": true}], "X-Authorization": mask,
            "usage": {"total_tokens": 12, "tokenType": "Bearer"}, mask: mask,
            "headers": [{"name": "X-Api-Key", "value": mask}, {"name": "Accept", "value": "text/html"}],
        })
    );
    assert_eq!(kept.masked, 9, "{}", kept.text);
}

/// Rule: CAPTURE-4. Ordinary content stays as it came.
#[test]
fn ordinary_content_is_kept_as_it_came() {
    for text in [
        r#"{"port": "Rotterdam",  "depth":1.50, "at":"2026-11-26T12:00:00Z","id":"01939d6c-1e7b-7c6e-8f3a-2b1c0d9e8f7a"}"#,
        r#"[{"n":1764172800123},{"n":1e400},"ä\u00e4\n\"q\""]"#,
        "The bearer instruments of the token ring, version 1.2.3, call 1234 5678.",
        "{name} says: hello",
        "",
    ] {
        let kept = captured(text);
        assert_eq!((kept.text.as_str(), kept.masked), (text, 0));
    }
}

/// Rule: CAPTURE-3. Half of a secret is not kept.
#[test]
fn a_cut_keeps_a_bounded_part_and_no_half_of_a_secret() {
    let places = (KEPT - 300..KEPT + 40).step_by(61);
    for at in places.chain((TAKEN - 60..TAKEN).step_by(13)) {
        let filler = "word ".repeat(at / 5);
        for quoted in [false, true] {
            let text = format!(
                "{filler}Bearer planted0123456789planted and so on. {}",
                "word ".repeat(60)
            );
            let text = if quoted {
                json!({"text": json!({"inner": text}).to_string()}).to_string()
            } else {
                text
            };
            let taken = &text.as_bytes()[..text.len().min(TAKEN)];
            let kept = Captured::of(taken, text.len());
            assert!(kept.text.len() <= KEPT && kept.is_cut, "{at}");
            assert!(!kept.text.contains("planted"), "{at} {quoted}");
            assert_eq!(kept.bytes, text.len() as u64);
        }
    }
}

/// Rule: CAPTURE-4. Data of images and files is named, not kept.
#[test]
fn long_data_is_replaced_by_its_length() {
    let data = "QUJD".repeat(400);
    let kept = captured(&json!({"type": "image", "data": data}).to_string());
    assert_eq!(
        kept.text,
        r#"{"type":"image","data":"•••• (1600 characters of data)"}"#
    );
}

/// Rule: CAPTURE-1.
#[test]
fn a_policy_wants_the_calls_that_it_names() {
    let at = Timestamp::UNIX_EPOCH;
    let ids: Vec<Uuid> = (0..4_000).map(|_| CallId::at(at).uuid()).collect();
    let wanted = |policy: CapturePolicy, outcome| {
        ids.iter().filter(|id| policy.wants(**id, outcome)).count()
    };
    let failed = CallOutcome::ToolError;
    assert_eq!(wanted(CapturePolicy::Metadata, failed), 0);
    assert_eq!(wanted(CapturePolicy::Errors, CallOutcome::Ok), 0);
    assert_eq!(wanted(CapturePolicy::Errors, failed), ids.len());
    assert_eq!(wanted(CapturePolicy::All, CallOutcome::Ok), ids.len());
    let share = wanted(CapturePolicy::Sample(25), CallOutcome::Ok);
    assert!((800..1_200).contains(&share), "{share} of 4,000");
    for (word, percent, known) in [
        ("sample", None, false),
        ("sample", Some(0), false),
        ("sample", Some(100), false),
        ("sample", Some(1), true),
        ("all", Some(5), false),
        ("all", None, true),
        ("none", None, false),
    ] {
        let policy = CapturePolicy::of_word(word, percent);
        assert_eq!(policy.is_some(), known, "{word} {percent:?}");
        if let Some(policy) = policy {
            assert_eq!(
                (policy.as_str(), policy.percent().map(i16::from)),
                (word, percent)
            );
        }
    }
}

proptest! {
    /// Rule: CAPTURE-3. Any bytes are kept within the bound, and valid JSON stays JSON.
    #[test]
    fn any_bytes_are_masked_within_the_bound(bytes in proptest::collection::vec(any::<u8>(), 0..600), whole in 0_usize..900) {
        let whole = whole.max(bytes.len());
        let kept = Captured::of(&bytes, whole);
        prop_assert!(kept.text.len() <= KEPT);
        prop_assert_eq!(kept.is_cut, whole > bytes.len());
    }

    #[test]
    fn json_stays_json(texts in proptest::collection::vec("[a-z\"{}\\[\\]:,\\\\ @.0-9-]{0,40}", 0..6)) {
        let value = json!({"a": texts, "b": [null, true, -1.5e3]});
        let kept = captured(&value.to_string());
        prop_assert!(serde_json::from_str::<Value>(&kept.text).is_ok(), "{}", kept.text);
    }
}
