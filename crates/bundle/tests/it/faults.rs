//! Faults of a text: each has its place, its path and the nearest known key.

use portolan_bundle::parse;

fn fault(text: &str) -> String {
    parse(text).map_or_else(|fault| fault.to_string(), |_| "no fault".to_owned())
}

const SERVER: &str = "format: portolan/v1\nname: acme\nservers:\n  - slug: sales\n";

/// Rule: CONF-2
#[test]
fn an_unknown_key_is_refused_with_place_and_nearest_key() {
    assert_eq!(
        fault(&format!("{SERVER}    instuctions: x\n")),
        "5:5 unknown key \"instuctions\", did you mean \"instructions\" (in servers[0])"
    );
    assert_eq!(
        fault(&format!(
            "{SERVER}    tools:\n      - {{source: crm, tol: a}}\n"
        )),
        "6:23 unknown key \"tol\", did you mean \"tool\" (in servers[0].tools[0])"
    );
    assert_eq!(
        fault("format: portolan/v1\nname: a\nsources:\n  - name: x\n    kind: openapy\n"),
        "5:11 unknown value \"openapy\", did you mean \"openapi\" (in sources[0].kind)"
    );
    let far = fault(&format!("{SERVER}    zzzzzzzz: 1\n"));
    assert!(far.contains("expected one of slug, name"), "{far}");
    assert_eq!(
        fault("format: portolan/v2\nname: a\n"),
        "1:9 unknown value \"portolan/v2\", did you mean \"portolan/v1\" (in format)"
    );
}

/// Rule: CONF-2
#[test]
fn a_wrong_type_and_a_missing_key_have_their_places() {
    let wrong = fault(&format!("{SERVER}    name: 12\n"));
    assert!(
        wrong.starts_with("5:11 ") && wrong.ends_with("(in servers[0].name)"),
        "{wrong}"
    );
    assert_eq!(
        fault("format: portolan/v1\nname: a\nservers:\n  - name: x\n"),
        "4:5 the key \"slug\" is missing (in servers[0])"
    );
    assert_eq!(fault("a: 1\na: 2\n"), "2:1 the key \"a\" stands twice");
}

/// Rule: CONF-3
#[test]
fn members_of_another_kind_and_keys_used_twice_are_refused() {
    let source = |more: &str| {
        fault(&format!(
            "format: portolan/v1\nname: a\nsources:\n  - name: x\n{more}"
        ))
    };
    assert_eq!(
        source("    kind: http\n    base_url: https://x.example\n    prefix: p\n"),
        "7:5 a source of kind http has no \"prefix\" (in sources[0].prefix)"
    );
    assert!(source("    kind: openapi\n").contains("either a \"location\" or a \"document\""));
    assert!(source("    kind: openapi\n    location: crm.yaml\n").contains("file:PATH"));
    assert!(source("    kind: mcp\n").contains("needs a \"location\""));
    let tool = "    kind: http\n    base_url: https://x.example\n    tools: {a: {name: b}}\n";
    assert!(source(tool).contains("needs a \"define\""));
    assert_eq!(
        fault(&format!("{SERVER}  - slug: sales\n")),
        "5:5 two of the servers have the slug \"sales\" (in servers[1].slug)"
    );
    let name = fault("format: portolan/v1\nname: \"a b\"\n");
    assert!(name.contains("letters, digits"), "{name}");
}

/// Rule: CONF-7
#[test]
fn a_pasted_secret_is_refused_and_not_repeated() {
    let text = "format: portolan/v1\nname: a\nsources:\n  - name: x\n    kind: mcp\n    \
                location: https://x.example\n    credential: {bearer: {secret: sk_live_1}}\n";
    let fault = fault(text);
    assert!(fault.starts_with("7:35 a secret is a reference"), "{fault}");
    assert!(!fault.contains("sk_live_1"), "{fault}");
}

/// Rule: CONF-2
#[test]
fn a_small_text_makes_no_large_tree() {
    let deep = format!("format: {}", "[".repeat(1_000));
    assert_ne!(fault(&deep), "no fault");
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..10 {
        let before = level - 1;
        let items = vec![format!("*a{before}"); 10].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{items}]\n"));
    }
    let said = fault(&bomb);
    assert!(said.contains("too many"), "{said}");
    assert!(fault("a: \u{0}b").contains("control characters"));
    assert!(fault(&" ".repeat(5 * 1024 * 1024 + 1)).contains("5 MiB"));
    assert!(fault("&a [*a]").contains("alias"));
}
