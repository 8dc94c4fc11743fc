//! Differences between two bundles.

use portolan_bundle::{
    canonical::canonical,
    changes::{Change, changes},
    parse,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::generated::bundle;

fn between(before: &str, after: &str) -> Value {
    let read = |text: &str| {
        let text = format!("format: portolan/v1\nname: a\n{text}");
        canonical(parse(&text).expect("a whole file").bundle)
    };
    let found: Vec<Change> = changes(&read(before), &read(after));
    json!(found)
}

/// Rule: CONF-5
#[test]
fn one_more_tool_changes_no_other_field() {
    let before = "servers: [{slug: sales, tools: [{source: crm, tool: b}]}]";
    let after = "servers: [{slug: sales, name: Sales, tools: [{source: crm, tool: a, as: x}, \
                 {source: crm, tool: b}]}]";
    assert_eq!(
        between(before, after),
        json!([{"op": "update", "kind": "server", "key": "sales", "fields": [
            {"path": "name", "after": "Sales"},
            {"path": "tools[crm/a].as", "after": "x"},
            {"path": "tools[crm/a].source", "after": "crm"},
            {"path": "tools[crm/a].tool", "after": "a"},
        ]}])
    );
}

/// Rule: CONF-5
#[test]
fn made_and_deleted_objects_are_named_by_their_keys() {
    let found = between("servers: [{slug: old}]", "servers: [{slug: new}]");
    assert_eq!(
        found,
        json!([
            {"op": "create", "kind": "server", "key": "new",
                "fields": [{"path": "slug", "after": "new"},
                    {"path": "status", "after": "published"}]},
            {"op": "delete", "kind": "server", "key": "old", "fields": []},
        ])
    );
    let long = "x".repeat(5_000);
    let found = between(
        "",
        &format!("servers: [{{slug: new, description: {long}}}]"),
    );
    assert!(found.to_string().len() < 2_000, "long texts are cut");
}

proptest! {
    /// Rule: CONF-5
    #[test]
    fn equal_bundles_have_no_changes(one in bundle(), other in bundle()) {
        let (one, other) = (canonical(one), canonical(other));
        prop_assert!(changes(&one, &one).is_empty());
        prop_assert_eq!(changes(&one, &other).is_empty(), {
            let mut same = other.clone();
            same.name.clone_from(&one.name);
            same == one
        });
    }
}
