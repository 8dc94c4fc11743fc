//! The JSON Schema agrees with the reader.

use portolan_bundle::{canonical::canonical, json_schema};
use proptest::prelude::*;
use serde_json::json;

use crate::generated::bundle;

/// Rule: CONF-2
#[test]
fn the_schema_refuses_unknown_keys_at_every_level() {
    let validator = jsonschema::validator_for(&json_schema()).unwrap();
    let mut good = json!({"format": "portolan/v1", "name": "a", "servers": [{"slug": "sales",
        "tools": [{"source": "crm", "tool": "x", "as": "y"}]}], "sources": [{"name": "crm",
        "kind": "http", "base_url": "https://a.example", "tools": {"x": {"define": {"path": "/",
        "description": "d", "method": "GET"}}}, "credential": {"bearer": {"secret": "env:A"}}}]});
    let faults: Vec<String> = validator
        .iter_errors(&good)
        .map(|error| format!("{error}"))
        .collect();
    assert!(faults.is_empty(), "{faults:?}");
    good["servers"][0]["tools"][0]["tol"] = json!(1);
    assert!(!validator.is_valid(&good));
    assert!(!validator.is_valid(&json!({"format": "portolan/v1", "name": "a", "x": 1})));
    assert!(!validator.is_valid(&json!({"name": "a"})));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Rule: CONF-2
    #[test]
    fn a_bundle_of_the_types_fits_the_schema(bundle in bundle()) {
        let validator = jsonschema::validator_for(&json_schema()).unwrap();
        let value = serde_json::to_value(canonical(bundle)).unwrap();
        let faults: Vec<String> =
            validator.iter_errors(&value).map(|error| format!("{error}")).collect();
        prop_assert!(faults.is_empty(), "{:?}", faults);
    }
}
