//! Definitions of the tools, made of the API's document: arguments are the parameters of the route,
//! results have its schema, and the scope is the route's (OWN-3, OWN-4).

use std::sync::OnceLock;

use http::Method;
use portolan_http_tools::ArgumentSchema;
use portolan_model::api_scope::ApiScope;
use portolan_protocol::{
    Raw,
    tool::{Tool, ToolAnnotations},
};
use portolan_site::{console_error::ConsoleError, state::AuthState};
use serde_json::{Map, Value, json};
use utoipa::openapi::OpenApi;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::tools::OwnTool;
use crate::{
    calls, configuration, insights,
    token_scopes::{self, TokenAccess},
};

/// Where the document keeps schemas, and where a schema by itself does.
const COMPONENTS: &str = "#/components/schemas/";
const DEFINITIONS: &str = "#/$defs/";

/// A tool as it is listed and checked.
pub(super) struct OwnToolDefinition {
    pub(super) tool: OwnTool,
    /// The scope of its route.
    pub(super) scope: ApiScope,
    pub(super) arguments: ArgumentSchema,
    pub(super) written: Tool,
}

/// Every tool, by name.
pub(super) fn all() -> Result<&'static [OwnToolDefinition], ConsoleError> {
    static ALL: OnceLock<Result<Vec<OwnToolDefinition>, String>> = OnceLock::new();
    match ALL.get_or_init(made) {
        Ok(all) => Ok(all),
        Err(fault) => Err(ConsoleError::internal("definitions", fault.as_str())),
    }
}

fn made() -> Result<Vec<OwnToolDefinition>, String> {
    let document = serde_json::to_value(documented()).map_err(|fault| fault.to_string())?;
    OwnTool::ALL
        .into_iter()
        .map(|tool| definition(tool, &document))
        .collect()
}

/// The document of the routes behind the tools.
fn documented() -> OpenApi {
    OpenApiRouter::<AuthState>::new()
        .routes(routes!(calls::list_calls))
        .routes(routes!(calls::show_call))
        .routes(routes!(insights::show_insights))
        .routes(routes!(insights::groups::list_error_causes))
        .routes(routes!(configuration::export_configuration))
        .into_openapi()
}

fn definition(tool: OwnTool, document: &Value) -> Result<OwnToolDefinition, String> {
    let paths = document["paths"].as_object().into_iter().flatten();
    let (path, operation) = paths
        .map(|(path, item)| (path, &item["get"]))
        .find(|(_, operation)| operation["operationId"] == tool.operation())
        .ok_or_else(|| format!("{} is no operation", tool.operation()))?;
    let access = token_scopes::access(&Method::GET, &format!("/api/v1{path}"));
    let TokenAccess::Scope(scope) = access else {
        return Err(format!("{path} has no scope"));
    };
    let input = input_schema(operation, tool.without());
    let output = match tool.output_schema() {
        Some(schema) => schema,
        None => output_schema(operation, &document["components"]["schemas"])?,
    };
    let raw = |schema: &Value| Raw::of(schema).map_err(|fault| fault.to_string());
    let mut written = Tool::new(tool.name(), raw(&input)?);
    written.title = Some(tool.title().to_owned());
    written.description = Some(tool.description().to_owned());
    written.output_schema = Some(raw(&output)?);
    written.annotations = Some(ToolAnnotations {
        title: Some(tool.title().to_owned()),
        read_only_hint: Some(true),
        destructive_hint: Some(false),
        idempotent_hint: Some(true),
        open_world_hint: Some(false),
    });
    Ok(OwnToolDefinition {
        tool,
        scope,
        arguments: ArgumentSchema::compile(&input)?,
        written,
    })
}

/// The parameters of a route as the members of an object.
fn input_schema(operation: &Value, without: &[&str]) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        let name = parameter["name"].as_str().unwrap_or_default();
        if without.contains(&name) {
            continue;
        }
        let mut schema = parameter["schema"].clone();
        if let Some(text) = parameter["description"].as_str() {
            schema["description"] = text.replace('\n', " ").into();
        }
        if parameter["required"] == true {
            required.push(name);
        }
        properties.insert(name.to_owned(), schema);
    }
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// The schema of a route's answer, with all that it refers to.
fn output_schema(operation: &Value, components: &Value) -> Result<Value, String> {
    let answer = &operation["responses"]["200"]["content"]["application/json"]["schema"];
    let name = answer["$ref"].as_str();
    let name = name.and_then(|target| target.strip_prefix(COMPONENTS));
    let mut root = name
        .and_then(|name| components.get(name))
        .cloned()
        .ok_or_else(|| format!("{} has no schema of its answer", operation["operationId"]))?;
    let mut definitions = Map::new();
    let mut open = Vec::new();
    refer(&mut root, &mut open);
    while let Some(name) = open.pop() {
        if !definitions.contains_key(&name) {
            let mut schema = components[&name].clone();
            refer(&mut schema, &mut open);
            definitions.insert(name, schema);
        }
    }
    root["$defs"] = definitions.into();
    Ok(root)
}

/// Makes references to components references to definitions, and collects their names.
fn refer(schema: &mut Value, names: &mut Vec<String>) {
    match schema {
        Value::Object(members) => {
            let target = members.get("$ref").and_then(Value::as_str);
            let name = target.and_then(|target| target.strip_prefix(COMPONENTS));
            if let Some(name) = name.map(str::to_owned) {
                members.insert("$ref".to_owned(), format!("{DEFINITIONS}{name}").into());
                names.push(name);
            }
            for member in members.values_mut() {
                refer(member, names);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| refer(item, names)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(raw: &Raw) -> Value {
        serde_json::from_slice(raw.as_bytes()).unwrap()
    }

    /// Rules: OWN-3, OWN-4.
    #[test]
    fn each_tool_has_the_schemas_and_scope_of_its_route() {
        let all = made().unwrap();
        assert_eq!(all.len(), OwnTool::ALL.len());
        for definition in &all {
            let name = &definition.written.name;
            let input = raw(&definition.written.input_schema);
            assert!(input["properties"].get("ws").is_none(), "{name}");
            for (argument, schema) in input["properties"].as_object().unwrap() {
                assert!(schema["description"].is_string(), "{name} {argument}");
            }
            let output = raw(definition.written.output_schema.as_ref().unwrap());
            assert_eq!(output["type"], "object", "{name}");
            assert!(!output.to_string().contains(COMPONENTS), "{name}");
            ArgumentSchema::compile(&output).unwrap();
            assert!(
                [ApiScope::CallsRead, ApiScope::RegistryRead].contains(&definition.scope),
                "{name}"
            );
        }
        let names: Vec<&str> = all.iter().map(|one| one.written.name.as_str()).collect();
        assert!(names.is_sorted(), "{names:?}");
        let search = raw(&all[4].written.input_schema);
        assert_eq!(search["properties"].as_object().unwrap().len(), 12);
    }
}
