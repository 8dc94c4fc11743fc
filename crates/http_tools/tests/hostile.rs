//! Documents that are meant to keep the importer busy (REVIEW-S-1). Each is small enough here for a
//! build that is not optimised; with
//! `S1_BYTES=10000000 cargo test --release -p portolan-http-tools --test hostile -- --nocapture --test-threads 1` each is as large as a document may be, and must be done within five seconds.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{
    fmt::Write as _,
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

use portolan_http_tools::{
    CompiledTool, Import, ImportOptions, ReadError, RequestPlan, Stop, read,
};
use serde_json::{Value, json};

/// Longest time of one document: five seconds in a release build. This one may be a debug build on
/// a machine that has other work.
const SOON: Duration = Duration::from_secs(if cfg!(debug_assertions) { 60 } else { 5 });

/// About how many bytes a document has.
fn bytes() -> usize {
    #[expect(
        clippy::disallowed_methods,
        reason = "how large, for a test that is run by hand"
    )]
    let asked = std::env::var("S1_BYTES").ok();
    asked.map_or(1_000_000, |bytes| bytes.parse().unwrap())
}

fn import(what: &str, text: &str) -> Result<Import, String> {
    let begun = Instant::now();
    let until = begun + Duration::from_secs(300);
    let read = read(
        text.as_bytes(),
        &ImportOptions::default(),
        until,
        &Stop::default(),
    );
    let took = begun.elapsed();
    eprintln!("{what}: {} bytes, {took:?}", text.len());
    assert!(took < SOON, "{what} took {took:?}");
    read.map_err(|error| match error {
        ReadError::Document(error) => error.problems[0].message.clone(),
        other => other.to_string(),
    })
}

/// So many pieces as fill the bytes, joined by commas.
fn filled(piece: impl Fn(usize) -> String) -> String {
    let mut text = String::new();
    for number in 0.. {
        if text.len() >= bytes() {
            break;
        }
        if number > 0 {
            text.push(',');
        }
        text.push_str(&piece(number));
    }
    text
}

/// A document whose one operation takes this schema and whose components are those.
fn with_schema(schema: &str, components: &str) -> String {
    format!(
        r#"{{"openapi":"3.1.0","info":{{"title":"t","version":"1"}},"paths":{{"/x":{{"post":{{"operationId":"x",
        "requestBody":{{"content":{{"application/json":{{"schema":{schema}}}}}}},"responses":{{"200":{{"description":"d"}}}}}}}}}},
        "components":{{"schemas":{{{components}}}}}}}"#
    )
}

fn reason(import: &Import) -> &str {
    import.operations[0].outcome.as_ref().unwrap_err()
}

#[test]
fn s1_an_enum_of_many_values_is_refused_in_the_time_that_reading_it_takes() {
    let values = filled(|n| format!("\"value-{n}\""));
    let text = with_schema(&format!(r#"{{"enum":[{values}]}}"#), "");
    assert!(reason(&import("enum", &text).unwrap()).contains("10,000 values"));
    let text = with_schema(&format!(r#"{{"required":[{values}]}}"#), "");
    assert!(reason(&import("required", &text).unwrap()).contains("10,000 values"));
    // Few different ones are no fault.
    let values: Vec<String> = (0..9_000).map(|n| format!("\"v{}\"", n % 100)).collect();
    let schema = format!(
        r#"{{"type":"object","properties":{{"a":{{"enum":[{}]}}}}}}"#,
        values.join(",")
    );
    let imported = import("repeated", &with_schema(&schema, "")).unwrap();
    let tool = imported.operations[0].outcome.as_ref().unwrap();
    let kept = tool.input_schema["properties"]["a"]["enum"]
        .as_array()
        .unwrap();
    assert_eq!(kept.len(), 100);
}

#[test]
fn s1_what_is_nested_deep_is_refused_at_its_depth_in_json_and_in_yaml() {
    let half = bytes() / 2;
    let deep = format!("{}{}", "[".repeat(half), "]".repeat(half));
    let message = import("arrays", &format!(r#"{{"openapi":"3.0.3","x":{deep}}}"#)).unwrap_err();
    assert!(message.contains("levels deep"), "{message}");
    let objects = r#"{"a":"#.repeat(bytes() / 5);
    let message = import("objects", &format!(r#"{{"openapi":"3.0.3","x":{objects}"#)).unwrap_err();
    assert!(message.contains("levels deep"), "{message}");
    // The fault that YAML cures comes first.
    for begin in [
        "{\"openapi\":\"3.0.3\",\"y\":[1,],\"x\":",
        "openapi: 3.0.3\nx: ",
        "openapi: 3.0.3\ny: {\"a\": '[', b: ]]}\nz: |\n  it's \"\nx: ",
    ] {
        let end = if begin.starts_with('{') { "}" } else { "" };
        for level in ["[", "{a: ", "[\"]\",", "[a,a,a,a,a,a,a,a,", "[#]\n"] {
            let deep = level.repeat(bytes() / level.len());
            let read = import("YAML", &format!("{begin}{deep}{end}"));
            assert!(read.is_err(), "{begin}{level}");
        }
    }
    // The same in a second document, behind what cannot be a document, and in blocks.
    for begin in ["openapi: 3.0.3\npaths: {}\n---\n", "[a]: b\nc: "] {
        let deep = "[".repeat(bytes());
        assert!(import("YAML, behind", &format!("{begin}{deep}")).is_err());
    }
    let blocks = "- ".repeat(bytes() / 2);
    assert!(import("YAML, blocks", &format!("x:\n{blocks}a")).is_err());
}

#[test]
fn s1_yaml_of_many_brackets_anchors_and_directives_takes_no_longer() {
    for (item, count) in [
        (r#"["a"],"#, 4),
        ("[],", 4),
        ("[a: b],", 16),
        ("{a: [b, {c: d}]},\n", 20),
        ("don't,", 6),
    ] {
        // No more values than a document may have.
        let many = item.repeat((bytes() / item.len()).min(2_000_000 / count));
        let text = format!("openapi: 3.0.3\npaths: {{}}\nx: [{many}]");
        let read = import(&format!("YAML, {item:?}"), &text);
        assert!(read.is_ok(), "{item}: {read:?}");
        // The same without an end.
        assert!(import("YAML, cut off", &text[..text.len() - 1]).is_err());
    }
    let mut tags = String::new();
    for number in 0..bytes() / 16 {
        let _ = writeln!(tags, "%TAG !t{number}! x");
    }
    let tagged = format!("{tags}---\nopenapi: 3.0.3\npaths: {{}}");
    assert!(import("YAML, tags", &tagged).is_ok());
    let mut bomb = String::from("openapi: 3.0.0\npaths: {}\na: &a [x,x,x,x,x,x,x,x,x,x]\n");
    for (name, previous) in ('b'..='i').zip('a'..='h') {
        let items = vec![format!("*{previous}"); 10].join(",");
        let _ = writeln!(bomb, "{name}: &{name} [{items}]");
    }
    assert!(import("YAML, aliases", &bomb).is_err());
    let large = "y".repeat(bytes());
    let text = format!("openapi: 3.0.3\npaths: {{}}\nx: \"{large}\"");
    assert!(import("YAML, one text", &text).is_ok());
}

#[test]
fn s1_json_that_yaml_cures_is_read_and_what_it_does_not_cure_is_not_tried() {
    for cured in [
        "{\"openapi\": \"3.0.0\", \"paths\": {},}",
        "{\"openapi\": \"3.0.0\", # a comment\n \"paths\": {}}",
        "{openapi: \"3.0.0\", \"paths\": {}}",
        "{\"openapi\": \"3.0.0\", \"paths\": {}, \"x\": [1, 2,]}",
        "{\"openapi\": '3.0.0', \"paths\": {}}",
    ] {
        let read = import("cured", cured);
        assert!(read.is_ok_and(|read| read.problems.len() == 2), "{cured}");
    }
    let cut = format!(
        "{{\"openapi\": \"3.0.0\", \"x\": [{}",
        "100000,".repeat(bytes() / 7)
    );
    let message = import("cut off", &cut).unwrap_err();
    assert!(message.contains("EOF"), "{message}");
}

#[test]
fn s1_chains_of_references_and_many_properties_are_proportional() {
    let chain = filled(|n| format!(r##""a{n}":{{"$ref":"#/components/schemas/a{}"}}"##, n + 1));
    let text = with_schema(r##"{"$ref":"#/components/schemas/a0"}"##, &chain);
    assert!(reason(&import("chain", &text).unwrap()).contains("leads back"));
    let chain = filled(|n| {
        format!(
            r##""a{n}":{{"properties":{{"n":{{"$ref":"#/components/schemas/a{}"}}}}}}"##,
            n + 1
        )
    });
    let text = with_schema(r##"{"$ref":"#/components/schemas/a0"}"##, &chain);
    assert!(
        import("chain of objects", &text).unwrap().operations[0]
            .outcome
            .is_err()
    );
    let properties = filled(|n| format!(r#""p{n}":{{"type":"string"}}"#));
    let text = with_schema(
        &format!(r#"{{"type":"object","properties":{{{properties}}}}}"#),
        "",
    );
    assert!(
        import("properties", &text).unwrap().operations[0]
            .outcome
            .is_err()
    );
    let hidden = filled(|n| format!(r#""p{n}":{{"readOnly":true}}"#));
    let schema = format!(r#"{{"type":"object","properties":{{{hidden}}},"required":["p1"]}}"#);
    assert!(
        import("hidden properties", &with_schema(&schema, ""))
            .unwrap()
            .operations[0]
            .outcome
            .is_ok()
    );
    // Definitions that have one name in many places.
    let places: Vec<String> = (0..1_900)
        .map(|n| format!(r#""d{n}":{{"x":{{"properties":{{"a":{{}}}}}}}}"#))
        .collect();
    let uses: Vec<String> = (0..1_900)
        .map(|n| format!(r##""p{n}":{{"$ref":"#/components/schemas/d{n}/x"}}"##))
        .collect();
    let text = with_schema(
        &format!(r#"{{"properties":{{{}}}}}"#, uses.join(",")),
        &places.join(","),
    );
    let _ = import("one name", &text);
}

#[test]
fn s1_what_many_operations_share_is_bounded_by_the_size_of_the_document() {
    let paths = filled(|n| format!(r##""/p{n}":{{"$ref":"#/x/item"}}"##));
    let patterns: Vec<String> = (0..150)
        .map(|n| format!(r#""q{n}":{{"type":"string","pattern":"^(\\p{{L}}{{30}}){{20}}{n}$"}}"#))
        .collect();
    let large = "word ".repeat(bytes() / 50);
    let parameters: Vec<String> = (0..400)
        .map(|n| format!(r#"{{"name":"X-{n}","in":"header"}}"#))
        .collect();
    let bodies: Vec<String> = (0..1_500)
        .map(|n| format!(r#""p{n}":{{"type":"object","properties":{{"a":{{"type":"string"}}}}}}"#))
        .collect();
    let wide: Vec<String> = (0..12)
        .map(|_| r##"{"$ref":"#/x/next"}"##.to_owned())
        .collect();
    for (what, item) in [
        (
            "a description",
            format!(r#"{{"get":{{"description":"{large}","responses":{{}}}}}}"#),
        ),
        (
            "parameters",
            format!(
                r#"{{"get":{{"parameters":[{}],"responses":{{}}}}}}"#,
                parameters.join(",")
            ),
        ),
        (
            "a body",
            format!(
                r#"{{"post":{{"requestBody":{{"content":{{"application/json":{{"schema":{{"type":"object","properties":{{{}}}}}}}}}}},"responses":{{}}}}}}"#,
                bodies.join(",")
            ),
        ),
        (
            "patterns",
            format!(
                r#"{{"post":{{"requestBody":{{"content":{{"application/json":{{"schema":{{"type":"object","properties":{{{}}}}}}}}}}},"responses":{{}}}}}}"#,
                patterns.join(",")
            ),
        ),
        (
            "a large default",
            format!(
                r#"{{"get":{{"parameters":[{{"name":"a","in":"query","schema":{{"default":"{large}"}}}}],"responses":{{}}}}}}"#
            ),
        ),
        (
            "alternatives",
            format!(
                r#"{{"get":{{"responses":{{"200":{{"content":{{"application/json":{{"schema":{{"anyOf":[{0}]}}}}}}}}}}}}}},"next":{{}}"#,
                wide.join(",")
            ),
        ),
        (
            "methods",
            format!("{{{}}}", filled(|n| format!(r#""x-{n}":1"#))),
        ),
    ] {
        let text = format!(
            r#"{{"openapi":"3.1.0","paths":{{{paths}}},"x":{{"item":{item},"next":{{"anyOf":[{}]}}}}}}"#,
            wide.join(",").replace("next", "item2")
        );
        match import(what, &text) {
            Ok(imported) => assert!(imported.operations.len() <= 10_000),
            Err(message) => assert!(
                message.contains("more work")
                    || message.contains("not valid JSON")
                    || message.contains("can be imported"),
                "{what}: {message}"
            ),
        }
    }
}

#[test]
fn s1_many_parts_of_a_document_are_looked_at_up_to_a_number() {
    let schemes = filled(|n| format!(r#""s{n}":{{"type":"apiKey","in":"header","name":"X-{n}"}}"#));
    let text = format!(
        r#"{{"openapi":"3.1.0","paths":{{}},"components":{{"securitySchemes":{{{schemes}}}}}}}"#
    );
    assert_eq!(import("schemes", &text).unwrap().security.len(), 50);
    let wrong = filled(|n| format!(r#""/p{n}":1"#));
    let imported = import(
        "wrong paths",
        &format!(r#"{{"openapi":"3.1.0","paths":{{{wrong}}}}}"#),
    )
    .unwrap();
    assert_eq!(imported.problems.len(), 200);
    let placeholders = filled(|n| format!("{{p{n}}}"));
    let text = format!(
        r#"{{"openapi":"3.1.0","paths":{{"/{placeholders}":{{"get":{{"responses":{{}}}}}}}}}}"#
    );
    assert!(reason(&import("placeholders", &text).unwrap()).contains("2048 bytes"));
}

/// A server's address whose variables double each other.
#[test]
fn s1_variables_of_a_server_do_not_double_its_address_for_ever() {
    let variables: Vec<String> = (0..40)
        .map(|n| format!(r#""v{n}":{{"default":"{{v{0}}}{{v{0}}}"}}"#, n + 1))
        .collect();
    let text = format!(
        r#"{{"openapi":"3.1.0","paths":{{}},"servers":[{{"url":"https://{{v0}}.example","variables":{{{}}}}}]}}"#,
        variables.join(",")
    );
    let imported = import("variables", &text).unwrap();
    assert!(
        imported
            .servers
            .iter()
            .all(|server| server.url.len() <= 2_048)
    );
}

#[test]
fn s1_reading_ends_at_its_time_and_when_it_is_stopped() {
    let values = filled(|n| n.to_string());
    let text = format!(r#"{{"openapi":"3.1.0","paths":{{}},"x":[{values}]}}"#);
    let options = ImportOptions::default();
    let late = read(text.as_bytes(), &options, Instant::now(), &Stop::default());
    assert!(matches!(late, Err(ReadError::TooLate)), "{late:?}");
    let stop = Stop::default();
    drop(stop.when_dropped());
    let until = Instant::now() + SOON;
    let stopped = read(text.as_bytes(), &options, until, &stop);
    assert!(matches!(stopped, Err(ReadError::Stopped)), "{stopped:?}");
    assert!(read(text.as_bytes(), &options, until, &Stop::default()).is_ok());
}

/// How long work may go on after its stop. This may be a debug build on a machine that has other
/// work.
const AFTER_STOP: Duration =
    Duration::from_millis(if cfg!(debug_assertions) { 2_000 } else { 100 });

#[test]
fn s1_work_of_every_kind_ends_soon_after_its_stop() {
    let values = filled(|n| format!("\"v{n}\""));
    let chain = filled(|n| {
        let next = n + 1;
        format!(r##""a{n}":{{"properties":{{"n":{{"$ref":"#/components/schemas/a{next}"}}}}}}"##)
    });
    let bodies: Vec<String> = (0..1_500)
        .map(|n| format!(r#""p{n}":{{"type":"object","properties":{{"a":{{"type":"string"}}}}}}"#))
        .collect();
    let bodies = bodies.join(",");
    let item = format!(
        r#"{{"post":{{"requestBody":{{"content":{{"application/json":{{"schema":{{"properties":{{{bodies}}}}}}}}}}},"responses":{{}}}}}}"#
    );
    let paths = filled(|n| format!(r##""/p{n}":{{"$ref":"#/x/item"}}"##));
    let lists = "[a: b],".repeat((bytes() / 7).min(120_000));
    let words = "word ".repeat(bytes() / 5);
    for (what, text) in [
        (
            "an enum",
            with_schema(&format!(r#"{{"enum":[{values}]}}"#), ""),
        ),
        (
            "a chain",
            with_schema(r##"{"$ref":"#/components/schemas/a0"}"##, &chain),
        ),
        (
            "shared operations",
            format!(r#"{{"openapi":"3.1.0","paths":{{{paths}}},"x":{{"item":{item}}}}}"#),
        ),
        (
            "YAML, lists",
            format!("openapi: 3.0.3\npaths: {{}}\nx: [{lists}]"),
        ),
        (
            "YAML, one text",
            format!("openapi: 3.0.3\npaths: {{}}\nx: \"{words}\""),
        ),
    ] {
        let text: Arc<str> = text.into();
        let begun = Instant::now();
        let _ = run(&text, &Stop::default()).recv();
        let whole = begun.elapsed();
        let mut longest = Duration::ZERO;
        for tenths in [1, 3, 5, 7, 9] {
            // The machine may be busy in one try; the work itself would be slow in each.
            let shortest = (0..3).map(|_| {
                let stop = Stop::default();
                let outcome = run(&text, &stop);
                if outcome.recv_timeout(whole * tenths / 10).is_ok() {
                    return Duration::ZERO;
                }
                let stopped = Instant::now();
                stop.stop();
                let _ = outcome.recv();
                stopped.elapsed()
            });
            longest = longest.max(shortest.min().unwrap_or_default());
        }
        eprintln!("{what}: {whole:?} in all, {longest:?} after a stop");
        assert!(longest <= AFTER_STOP, "{what}: {longest:?}");
    }
}

/// Reads on a thread of its own; the channel ends with the work.
fn run(text: &Arc<str>, stop: &Stop) -> mpsc::Receiver<()> {
    let (text, stop) = (Arc::clone(text), stop.clone());
    let (ended, outcome) = mpsc::channel();
    thread::spawn(move || {
        let until = Instant::now() + Duration::from_secs(300);
        drop(read(
            text.as_bytes(),
            &ImportOptions::default(),
            until,
            &stop,
        ));
        let _ = ended.send(());
    });
    outcome
}

/// The same bounds for a tool call: the schema may be old, or belong to an untrusted server.
#[test]
fn s1_arguments_are_not_matched_with_patterns_for_longer_than_a_check_may_take() {
    let tool = |schema: Value| {
        let plan = RequestPlan {
            method: "GET".into(),
            path: "/".into(),
            parameters: vec![],
            body: None,
            accept: None,
        };
        CompiledTool::new(schema, None, plan)
    };
    let checked = |what: &str, schema: Value, value: &Value| {
        let begun = Instant::now();
        let checked = tool(schema).check_arguments(value);
        eprintln!("{what}: {:?}", begun.elapsed());
        assert!(begun.elapsed() < SOON, "{what}");
        checked.map_err(|faults| faults.text())
    };
    let text = "ab".repeat(2_000_000);
    let heavy = "^(a|b)*a(a|b){2000}c$";
    let said = checked(
        "a pattern",
        json!({"properties": {"a": {"pattern": heavy}}}),
        &json!({"a": text}),
    );
    assert!(said.unwrap_err().contains("too long"));
    let names = json!({"patternProperties": {heavy: true}});
    let said = checked("a name", names, &json!({text.clone(): 1}));
    assert!(said.unwrap_err().contains("too long"));
    let patterns: serde_json::Map<String, Value> = (0..1_500)
        .map(|n| {
            (
                format!("p{n}"),
                json!({"pattern": format!("^(\\p{{L}}{{9}}){{9}}{n}$")}),
            )
        })
        .collect();
    let said = checked("patterns", json!({"properties": patterns}), &json!({}));
    assert!(said.unwrap_err().contains("cannot be used"));
    // A pattern says nothing of what stands beside it, and a light one is matched with a long text.
    let schema = json!({"properties": {"a": {"pattern": "^[a-z]{1,500}$"}, "b": {"pattern": "^[ab]+$"}, "c": {"type": "string"}}});
    let fits = checked(
        "side by side",
        schema.clone(),
        &json!({"a": "abc", "b": text, "c": text}),
    );
    assert_eq!(fits, Ok(()));
    let said = checked("a fault", schema, &json!({"a": "ABC"}));
    assert!(
        said.unwrap_err()
            .contains("/a: must match the pattern ^[a-z]{1,500}$")
    );
}
