//! Laws for all inputs: no panic on bytes, exact ids, exact header values, cuts that do not matter.

use std::borrow::Cow;

use bytes::Bytes;
use portolan_protocol::header::{Dialect, Headers, decode, encode};
use portolan_protocol::jsonrpc::{self, Body, Message, Params};
use portolan_protocol::negotiate;
use portolan_protocol::sse::{self, Decoder};
use portolan_protocol::{Raw, RequestId};
use proptest::prelude::*;
use serde_json::Value;

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>()
            .prop_filter("finite", |value| value.is_finite())
            .prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Texts that are nearly JSON-RPC.
fn nearly() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"jsonrpc\"",
        "\"2.0\"",
        "\"id\"",
        "\"method\"",
        "\"params\"",
        "\"_meta\"",
        "\"name\"",
        "\"io.modelcontextprotocol/protocolVersion\"",
        "\"2026-07-28\"",
        "\"2025-06-18\"",
        "1",
        "-1.5e3",
        "null",
        "true",
        "\"initialize\"",
        "\"tools/call\"",
        "\"\\u0061\"",
        "\"\\ud800\"",
        " ",
        "\n",
        "\"",
        "\\",
    ]);
    prop::collection::vec(pieces, 0..24).prop_map(|pieces| pieces.concat())
}

/// Parameters with members that the first parse knows, and others.
fn params() -> impl Strategy<Value = Value> {
    let names = prop::sample::select(vec![
        "name",
        "uri",
        "taskId",
        "arguments",
        "_meta",
        "task",
        "inputResponses",
        "requestState",
        "cursor",
        "n\"ame\\",
    ]);
    let name = prop_oneof![names.prop_map(str::to_owned), any::<String>()];
    prop::collection::vec((name, json()), 0..8)
        .prop_map(|members| Value::Object(members.into_iter().collect()))
}

proptest! {
    #[test]
    fn members_are_found_as_a_parser_finds_them(value in params(), pretty in any::<bool>()) {
        let text = if pretty { format!("{value:#}") } else { value.to_string() };
        let raw = Raw::parse(text).unwrap();
        let params = Params::from(raw.clone());
        let members = value.as_object().unwrap();
        let names = members.keys().map(String::as_str);
        for name in names.chain(["name", "uri", "_meta", "arguments", "requestState", "absent"]) {
            let expected = members.get(name).cloned();
            let parsed = |raw: Raw| raw.read::<Value>("").unwrap();
            prop_assert_eq!(params.get(name).map(parsed), expected.clone());
            prop_assert_eq!(raw.get(name).map(parsed), expected.clone());
            let [picked] = raw.pick([name]);
            prop_assert_eq!(picked.map(parsed), expected.clone());
            let text = params.text(name).map(Cow::into_owned);
            prop_assert_eq!(text.as_deref(), expected.as_ref().and_then(Value::as_str));
        }
    }

    #[test]
    fn no_bytes_make_the_parse_or_the_admission_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), header in any::<String>()) {
        let headers = Headers::collect([("mcp-session-id", header.as_bytes()), ("mcp-protocol-version", header.as_bytes())]);
        if let Ok(body) = Body::parse(Bytes::from(bytes)) {
            let _ = negotiate::admit(body, &headers);
        }
    }

    #[test]
    fn no_near_miss_makes_them_panic_and_every_refusal_is_json(text in nearly()) {
        let headers = Headers::collect([("mcp-protocol-version", b"2026-07-28".as_slice())]);
        for headers in [&headers, &Headers::default()] {
            if let Err(refusal) = Body::parse(text.clone().into()).and_then(|body| negotiate::admit(body, headers)) {
                let body: Value = serde_json::from_slice(&refusal.body()).unwrap();
                prop_assert_eq!(body["jsonrpc"].as_str(), Some("2.0"));
            }
        }
    }

    #[test]
    fn what_is_accepted_as_raw_is_exactly_what_serde_json_accepts(text in prop_oneof![nearly(), json().prop_map(|value| value.to_string())]) {
        let ours = Raw::parse(text.clone()).is_ok();
        let theirs = serde_json::from_str::<Value>(&text);
        // It has no number for that; whether the text is JSON, it does not say (REVIEW-F6).
        if !matches!(&theirs, Err(error) if error.to_string().starts_with("number out of range")) {
            prop_assert_eq!(ours, theirs.is_ok(), "{}", text);
        }
    }

    #[test]
    fn walking_a_value_finds_what_a_tree_finds(value in json()) {
        let raw = Raw::parse(serde_json::to_string_pretty(&value).unwrap()).unwrap();
        match &value {
            Value::Object(members) => {
                let seen: Vec<(String, Value)> = raw.members().map(|(key, value)| (key, value.read("x").unwrap())).collect();
                let expected: Vec<(String, Value)> = members.clone().into_iter().collect();
                prop_assert_eq!(seen, expected);
            }
            Value::Array(elements) => {
                let seen: Vec<Value> = raw.elements().map(|value| value.read("x").unwrap()).collect();
                prop_assert_eq!(&seen, elements);
            }
            _ => prop_assert_eq!(raw.members().count() + raw.elements().count(), 0),
        }
    }

    #[test]
    fn ids_round_trip_exactly_j5(number in "-?[1-9][0-9]{0,40}|0", text in any::<String>()) {
        for id in [number, serde_json::to_string(&text).unwrap()] {
            let body = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"ping\",\"id\":{id}}}");
            let Ok(Body::Single(Message::Request(request))) = Body::parse(body.into()) else { panic!("{id}") };
            let answer = jsonrpc::response(&request.id, b"{}");
            let raw = Raw::parse(answer).unwrap().get("id").unwrap();
            prop_assert_eq!(RequestId::from_raw(&raw), Some(request.id));
            prop_assert_eq!(raw.as_str().starts_with('"'), id.starts_with('"'));
            if !id.starts_with('"') {
                prop_assert_eq!(raw.as_str(), id.as_str());
            }
        }
    }

    #[test]
    fn header_values_round_trip_h7_h10(text in any::<String>(), inner in "[a-zA-Z0-9+/=]{0,12}") {
        for text in [text, format!("=?base64?{inner}?=")] {
            let encoded = encode(&text);
            prop_assert!(encoded.bytes().all(|byte| (0x20..0x7f).contains(&byte)));
            for dialect in [Dialect::Modern, Dialect::Draft] {
                prop_assert_eq!(decode(encoded.as_bytes(), dialect).unwrap(), text.as_str());
            }
        }
    }

    #[test]
    fn no_header_bytes_make_decoding_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let _ = decode(&bytes, Dialect::Modern);
        let _ = decode(&[b"=?base64?", bytes.as_slice(), b"?="].concat(), Dialect::Draft);
    }

    #[test]
    fn events_do_not_depend_on_where_the_stream_is_cut(
        pieces in prop::collection::vec(prop::sample::select(vec![
            &b"data: a"[..], b"data:", b"\n", b"\r", b"\r\n", b"\n\n", b"id: 1", b"event: e", b": c", b"retry: 5", b"\xef\xbb\xbf", b"\xc3", b"\xbc", b"x",
        ]), 0..40),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..10),
    ) {
        let stream = pieces.concat();
        let mut whole = Decoder::new(sse::MAX_EVENT_BYTES);
        let expected = whole.push(&stream).unwrap();
        let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        ends.push(stream.len());
        ends.sort_unstable();
        let mut decoder = Decoder::new(sse::MAX_EVENT_BYTES);
        let (mut seen, mut start) = (Vec::new(), 0);
        for end in ends {
            seen.extend(decoder.push(&stream[start..end]).unwrap());
            start = end;
        }
        prop_assert_eq!(seen, expected);
        prop_assert_eq!((decoder.last_id(), decoder.retry()), (whole.last_id(), whole.retry()));
    }

    #[test]
    fn every_message_survives_its_frame_t10(value in json(), id in prop::option::of("[!-~]{1,20}")) {
        let text = serde_json::to_string_pretty(&value).unwrap();
        let frame = sse::message(id.as_deref(), text.as_bytes());
        let mut decoder = Decoder::new(sse::MAX_EVENT_BYTES);
        let events = decoder.push(&frame).unwrap();
        prop_assert_eq!(events.len(), 1);
        prop_assert_eq!(serde_json::from_str::<Value>(&events[0].data).unwrap(), value);
        prop_assert_eq!(events[0].id.as_deref(), id.as_deref());
    }
}
