//! Laws of translation: it is total, what it writes fits the official schemas, and a round trip
//! loses only what was named.

use portolan_protocol::Revision;
use portolan_protocol::capability::ClientCapabilities;
use portolan_protocol::error::RpcError;
use portolan_protocol::method::Method;
use portolan_protocol::translate::{Listed, definition, error};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::schema::conforms;
use crate::translating::{listed, raw, shaped};
use crate::tree;

const R4: Revision = Revision::V2025_11_25;
const R5: Revision = Revision::V2026_07_28;

const RESULTS: [(Method, &str); 4] = [
    (Method::ToolsCall, "CallToolResult"),
    (Method::PromptsGet, "GetPromptResult"),
    (Method::ResourcesRead, "ReadResourceResult"),
    (Method::Complete, "CompleteResult"),
];
const LISTED: [(Listed, &str); 4] = [
    (Listed::Tool, "Tool"),
    (Listed::Prompt, "Prompt"),
    (Listed::Resource, "Resource"),
    (Listed::Template, "ResourceTemplate"),
];

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z\"\\\\ü]{0,6}".prop_map(Value::from),
    ]
}

fn json_value() -> impl Strategy<Value = Value> {
    leaf().prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec(("[a-z]{1,4}", inner), 0..3)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// An object of these members, each there or not.
fn object(members: Vec<(&'static str, BoxedStrategy<Value>)>) -> BoxedStrategy<Value> {
    let members: Vec<_> = members
        .into_iter()
        .map(|(name, value)| {
            prop::option::of(value).prop_map(move |value| value.map(|value| (name, value)))
        })
        .collect();
    members
        .prop_map(|members| {
            let members = members.into_iter().flatten();
            Value::Object(
                members
                    .map(|(name, value)| (name.to_owned(), value))
                    .collect(),
            )
        })
        .boxed()
}

fn with(base: Value, more: BoxedStrategy<Value>) -> BoxedStrategy<Value> {
    more.prop_map(move |more| {
        let mut value = base.clone();
        let members = value.as_object_mut().unwrap();
        members.extend(more.as_object().unwrap().clone());
        value
    })
    .boxed()
}

fn text() -> BoxedStrategy<Value> {
    "[ -~]{0,8}".prop_map(Value::from).boxed()
}

fn meta() -> BoxedStrategy<Value> {
    object(vec![("example.com/k", leaf().boxed())])
}

fn hints() -> BoxedStrategy<Value> {
    object(vec![
        ("audience", Just(json!(["user"])).boxed()),
        ("priority", Just(json!(0.5)).boxed()),
        ("lastModified", Just(json!("2026-01-01T00:00:00Z")).boxed()),
    ])
}

fn icons() -> BoxedStrategy<Value> {
    Just(json!([{"src": "https://a/b.png", "sizes": ["any"], "theme": "dark"}])).boxed()
}

fn contents() -> BoxedStrategy<Value> {
    let more = || {
        object(vec![
            ("mimeType", Just(json!("text/plain")).boxed()),
            ("_meta", meta()),
        ])
    };
    prop_oneof![
        with(json!({"uri": "x://t", "text": "t"}), more()),
        with(json!({"uri": "x://b", "blob": "AAAA"}), more()),
    ]
    .boxed()
}

fn block() -> BoxedStrategy<Value> {
    let more = || object(vec![("annotations", hints()), ("_meta", meta())]);
    prop_oneof![
        with(json!({"type": "text", "text": "t"}), more()),
        with(
            json!({"type": "image", "data": "AAAA", "mimeType": "image/png"}),
            more()
        ),
        with(
            json!({"type": "audio", "data": "AAA=", "mimeType": "audio/wav"}),
            more()
        ),
        with(
            json!({"type": "resource_link", "uri": "x://l", "name": "l"}),
            object(vec![
                ("annotations", hints()),
                ("_meta", meta()),
                ("icons", icons()),
                ("title", text())
            ])
        ),
        contents().prop_map(|resource| json!({"type": "resource", "resource": resource})),
    ]
    .boxed()
}

/// A sound result of 2026-07-28, without its envelope.
fn sound_result(method: Method) -> BoxedStrategy<Value> {
    match method {
        Method::ToolsCall => (
            prop::collection::vec(block(), 0..4),
            object(vec![
                ("structuredContent", json_value().boxed()),
                ("isError", any::<bool>().prop_map(Value::from).boxed()),
                ("_meta", meta()),
            ]),
        )
            .prop_map(|(content, mut more)| {
                more["content"] = content.into();
                more
            })
            .boxed(),
        Method::PromptsGet => prop::collection::vec(block(), 0..4)
            .prop_map(|blocks| {
                let message = |content| json!({"role": "user", "content": content});
                let messages: Vec<Value> = blocks.into_iter().map(message).collect();
                json!({"description": "d", "messages": messages})
            })
            .boxed(),
        Method::ResourcesRead => prop::collection::vec(contents(), 0..4)
            .prop_map(|contents| json!({"contents": contents, "ttlMs": 7, "cacheScope": "private"}))
            .boxed(),
        _ => prop::collection::vec("[a-z]{0,3}", 0..130)
            .prop_map(
                |values| json!({"completion": {"values": values, "total": 200, "hasMore": true}}),
            )
            .boxed(),
    }
}

/// A sound definition of 2026-07-28 or 2025-11-25.
fn sound_definition(listed: Listed) -> BoxedStrategy<Value> {
    let common = |mut more: Vec<(&'static str, BoxedStrategy<Value>)>| {
        more.extend([
            ("title", text()),
            ("description", text()),
            ("icons", icons()),
            ("_meta", meta()),
        ]);
        object(more)
    };
    let schema = || {
        prop_oneof![
            Just(json!({"type": "object", "$schema": "https://json-schema.org/draft/2020-12/schema", "properties": {"a": true, "b": false}})),
            Just(json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]})),
        ]
        .boxed()
    };
    match listed {
        Listed::Tool => (
            schema(),
            common(vec![
                (
                    "outputSchema",
                    prop_oneof![schema(), Just(json!({"type": "array"}))].boxed(),
                ),
                ("annotations", Just(json!({"readOnlyHint": true})).boxed()),
            ]),
        )
            .prop_map(|(schema, mut more)| {
                more["name"] = json!("t");
                more["inputSchema"] = schema;
                more
            })
            .boxed(),
        Listed::Prompt => with(
            json!({"name": "p"}),
            common(vec![(
                "arguments",
                Just(json!([{"name": "a", "title": "A", "required": true}])).boxed(),
            )]),
        ),
        Listed::Resource => with(
            json!({"name": "r", "uri": "x://r"}),
            common(vec![
                ("size", Just(json!(3)).boxed()),
                ("annotations", hints()),
            ]),
        ),
        Listed::Template => with(
            json!({"name": "r", "uriTemplate": "x://{r}"}),
            common(vec![("annotations", hints())]),
        ),
    }
}

fn revision() -> impl Strategy<Value = Revision> {
    prop::sample::select(Revision::ALL.to_vec())
}

/// Any JSON with the member names that the rules speak of.
fn anything() -> impl Strategy<Value = Value> {
    const NAMES: [&str; 30] = [
        "content",
        "type",
        "text",
        "data",
        "mimeType",
        "resource",
        "uri",
        "blob",
        "name",
        "structuredContent",
        "isError",
        "_meta",
        "resultType",
        "messages",
        "role",
        "contents",
        "completion",
        "values",
        "total",
        "icons",
        "annotations",
        "inputSchema",
        "outputSchema",
        "arguments",
        "execution",
        "properties",
        "x-mcp-header",
        "items",
        "uriTemplate",
        "title",
    ];
    let leaf = prop_oneof![
        leaf(),
        Just(Value::Null),
        prop::sample::select(vec!["text", "audio", "image", "resource", "user", "object"])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 48, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((prop::sample::select(NAMES.to_vec()), inner), 0..6).prop_map(
                |members| {
                    let named = |(name, value): (&str, Value)| (name.to_owned(), value);
                    Value::Object(members.into_iter().map(named).collect())
                }
            ),
        ]
    })
}

proptest! {
    #[test]
    fn translation_is_total(value in anything(), from in revision(), to in revision(), which in 0..4_usize) {
        // Law: each input gives a JSON value or a named violation, and never a panic.
        if let Ok((seen, _)) = shaped(RESULTS[which].0, &value, from, to) {
            prop_assert!(seen.is_object());
            prop_assert_eq!(seen.get("resultType").is_some(), to == R5);
        }
        if let Ok(shaped) = definition(LISTED[which].0, &raw(&value), from, to) {
            prop_assert!(tree(&shaped.json).is_object());
        }
        let wrong = RpcError { code: -32602, message: "m".to_owned(), data: Some(raw(&value)) };
        for code in [-32002, -32021, -32042, -32602, -32601, -32022, 7] {
            let wrong = RpcError { code, ..wrong.clone() };
            let _ = error(&wrong, RESULTS[which].0, from, to, &ClientCapabilities::default());
        }
    }

    #[test]
    fn every_result_fits_the_official_schema_of_its_reader(
        (which, value) in (0..4_usize).prop_flat_map(|which| (Just(which), sound_result(RESULTS[which].0))),
        from in revision(), to in revision(),
    ) {
        let (method, name) = RESULTS[which];
        let (seen, _) = shaped(method, &value, from, to).unwrap();
        conforms(to, name, &seen);
    }

    #[test]
    fn every_definition_fits_the_official_schema_of_its_reader(
        (which, value) in (0..4_usize).prop_flat_map(|which| (Just(which), sound_definition(LISTED[which].0))),
        from in revision(), to in revision(),
    ) {
        let (what, name) = LISTED[which];
        let (seen, _) = listed(what, &value, from, to);
        conforms(to, name, &seen);
    }

    #[test]
    fn a_round_trip_loses_only_what_was_named(
        (which, value) in (0..4_usize).prop_flat_map(|which| (Just(which), sound_result(RESULTS[which].0))),
        through in revision(),
    ) {
        let method = RESULTS[which].0;
        let (there, lost) = shaped(method, &value, R5, through).unwrap();
        let (back, lost_again) = shaped(method, &there, through, R5).unwrap();
        let (straight, lost_straight) = shaped(method, &value, R5, R5).unwrap();
        if lost.and(lost_again) == lost_straight {
            prop_assert_eq!(&back, &straight);
        }
        if back != straight {
            prop_assert!(!lost.and(lost_again).is_none(), "a silent loss: {} {}", straight, back);
        }
    }

    #[test]
    fn a_definition_that_lost_nothing_is_the_same_as_before(
        (which, value) in (0..4_usize).prop_flat_map(|which| (Just(which), sound_definition(LISTED[which].0))),
        through in revision(),
    ) {
        let what = LISTED[which].0;
        let (there, lost) = listed(what, &value, R4, through);
        if lost.is_none() {
            prop_assert_eq!(&there, &value);
        } else {
            prop_assert_ne!(&there, &value, "a loss that is none: {:?}", lost);
        }
    }
}
