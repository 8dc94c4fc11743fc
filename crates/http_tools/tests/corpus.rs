//! Documents that others wrote, imported whole: every operation a usable tool or a reason, nothing
//! in between.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{collections::BTreeMap, collections::HashSet, path::PathBuf};

use portolan_http_tools::{
    CompiledTool, Document, Import, ImportOptions, ToolDraft, import, naming,
};
use serde_json::{Value, json};

fn read(name: &str) -> Import {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/corpus")
        .join(name);
    let document = Document::parse(&std::fs::read(path).unwrap()).unwrap();
    import(&document, &ImportOptions::default())
}

fn references_resolve(schema: &Value, root: &Value) -> bool {
    match schema {
        Value::Object(object) => object
            .iter()
            .all(|(key, value)| match (key.as_str(), value) {
                ("$ref", Value::String(target)) => target
                    .strip_prefix('#')
                    .is_some_and(|p| root.pointer(p).is_some()),
                (_, value) => references_resolve(value, root),
            }),
        Value::Array(items) => items.iter().all(|item| references_resolve(item, root)),
        _ => true,
    }
}

/// Holds for one tool: its schemas compile, its arguments have good names, and its plan is read as
/// it was written.
fn is_usable(name: &str, tool: &ToolDraft) {
    assert_eq!(tool.input_schema["type"], "object", "{name}: {}", tool.key);
    assert!(tool.description.chars().count() <= 1024 && !tool.title.is_empty());
    for (argument, _) in tool.input_schema["properties"].as_object().unwrap() {
        assert_eq!(
            naming::argument(argument),
            *argument,
            "{name}: {}",
            tool.key
        );
    }
    for schema in std::iter::once(&tool.input_schema).chain(&tool.output_schema) {
        assert!(references_resolve(schema, schema), "{name}: {}", tool.key);
        assert!(
            schema.to_string().len() <= 64 * 1024,
            "{name}: {}",
            tool.key
        );
        assert_eq!(schema["type"], "object");
    }
    let compiled = CompiledTool::new(
        tool.input_schema.clone(),
        tool.output_schema.clone(),
        tool.plan.clone(),
    );
    // The verdict does not matter: that there is one means the schema compiled.
    let verdict = compiled
        .check_arguments(&json!({"portolan_unknown": 1}))
        .unwrap_err();
    assert!(
        !verdict.text().contains("cannot be used"),
        "{name}: {}: {}",
        tool.key,
        verdict.text()
    );
    let text = serde_json::to_string(&tool.plan).unwrap();
    assert_eq!(
        serde_json::from_str::<portolan_http_tools::RequestPlan>(&text).unwrap(),
        tool.plan
    );
}

/// Holds for every tool of every document: CLIENT-36 to CLIENT-38, MCP-TL-5, MCP-TL-6, MCP-TL-10,
/// MCP-JS-4, MCP-JS-6, MCP-JS-7, MCP-JS-10.
fn check(name: &str) -> Value {
    let imported = read(name);
    let mut names = HashSet::new();
    let mut left_out: BTreeMap<String, usize> = BTreeMap::new();
    let (mut outputs, mut flattened, mut bodies, mut warned) = (0, 0, 0, 0);
    for operation in &imported.operations {
        let tool = match &operation.outcome {
            Ok(tool) => tool,
            Err(reason) => {
                assert!(reason.ends_with('.'), "{name}: {}: {reason}", operation.key);
                *left_out
                    .entry(reason.chars().take(60).collect())
                    .or_default() += 1;
                continue;
            }
        };
        assert!(
            naming::is_valid(&tool.name) && tool.name.len() <= naming::MAX_TOOL_NAME,
            "{name}: {}",
            tool.name
        );
        assert!(
            names.insert(tool.name.to_ascii_lowercase()),
            "{name}: {} twice",
            tool.name
        );
        is_usable(name, tool);
        outputs += usize::from(tool.output_schema.is_some());
        warned += usize::from(!tool.warnings.is_empty());
        if let Some(body) = &tool.plan.body {
            bodies += 1;
            flattened += usize::from(matches!(
                body.shape,
                portolan_http_tools::plan::BodyShape::Properties { .. }
            ));
        }
    }
    json!({
        "title": imported.title,
        "spec_version": imported.spec_version,
        "base_url": imported.base_url,
        "security": imported.security.iter().map(|hint| json!({"kind": hint.kind, "name": hint.name})).collect::<Vec<_>>(),
        "operations": imported.operations.len(),
        "tools": imported.tools().count(),
        "left_out": left_out,
        "with_output_schema": outputs,
        "with_body": bodies,
        "with_flattened_body": flattened,
        "with_warnings": warned,
        "problems": imported.problems.len(),
        "first_names": imported.tools().take(5).map(|tool| tool.name.clone()).collect::<Vec<_>>(),
    })
}

macro_rules! documents {
    ($($test:ident = $file:literal;)*) => {$(
        #[test]
        fn $test() {
            insta::assert_json_snapshot!(check($file));
        }
    )*};
}

documents! {
    github_enterprise_is_imported_3_0_json = "github-enterprise-3.17.json";
    star_trek_is_imported_3_0_yaml = "star-trek-3.0.yaml";
    readme_is_imported_3_1_json = "readme-api-3.1.json";
    petstore_is_imported_3_1_yaml = "petstore-3.1.yaml";
    parameter_styles_are_imported_3_0_json = "parameters-style-3.0.json";
    schema_types_are_imported_3_1_yaml = "schema-types-3.1.yaml";
}

#[test]
fn an_import_is_repeatable_and_a_second_one_shows_no_difference() {
    use portolan_http_tools::{KnownTool, diff::diff};
    let first = read("readme-api-3.1.json");
    let known: Vec<KnownTool> = first
        .tools()
        .map(|tool| KnownTool {
            key: tool.key.clone(),
            name: tool.name.clone(),
            title: tool.title.clone(),
            description: tool.description.clone(),
            input_schema: tool.input_schema.clone(),
            output_schema: tool.output_schema.clone(),
            plan: tool.plan.clone(),
        })
        .collect();
    let again = diff(&known, &read("readme-api-3.1.json"));
    assert_eq!(
        (again.added.len(), again.removed.len(), again.changed.len()),
        (0, 0, 0)
    );
    assert_eq!(again.unchanged, known.len());
}
