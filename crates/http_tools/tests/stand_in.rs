//! Every tool of a document that others wrote, called: the request fits the document, and the
//! answer that the document promises arrives. On the other side is an API made from the same
//! document, without help of the importer.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../../../tests/src/stand_in.rs"]
#[expect(unreachable_pub, reason = "it is a module of the harness too")]
mod stand_in;

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use portolan_http_tools::{
    CallTarget, Caller, CompiledTool, Content, Document, ImportOptions, Outcome, TokenSource,
    ToolDraft,
    execute::execute,
    import::import,
    plan::{BodyEncoding, BodyShape, Location, ParameterEncoding, Style},
};
use portolan_model::Clock;
use portolan_net::egress::{AllowedDestination, Egress, EgressPolicy, Redirects};
use serde_json::{Map, Value, json};
use stand_in::{Received, StandIn, example};

fn document(name: &str) -> Document {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/corpus")
        .join(name);
    Document::parse(&std::fs::read(path).unwrap()).unwrap()
}

/// Arguments as a client makes them up that has read the schema: what is required, and nothing
/// else.
fn arguments(tool: &ToolDraft) -> Value {
    let schema = &tool.input_schema;
    let mut out = Map::new();
    for name in schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
    {
        out.insert(
            name.to_owned(),
            example(schema, &schema["properties"][name], 1),
        );
    }
    Value::Object(out)
}

/// What reached the API is what the document says about the operation.
fn check_request(tool: &ToolDraft, arguments: &Value, received: &Received) {
    let operation = format!("{} {}", tool.plan.method, tool.plan.path);
    assert_eq!(
        received.operation.as_deref(),
        Some(operation.as_str()),
        "{}",
        received.path
    );
    for parameter in &tool.plan.parameters {
        let Some(value) = arguments.get(&parameter.argument) else {
            continue;
        };
        let simple = match &parameter.encoding {
            ParameterEncoding::Style { style, .. } => {
                matches!(style, Style::Simple | Style::Form)
                    && !value.is_object()
                    && !value.is_array()
            }
            ParameterEncoding::Json => false,
        };
        if !simple {
            continue;
        }
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        match parameter.location {
            Location::Path => {
                let encoded = portolan_http_tools::parameter_style::encode(&text);
                assert!(
                    received.path.contains(&*encoded),
                    "{}: {encoded} is not in {}",
                    tool.key,
                    received.path
                );
            }
            Location::Query => {
                let found = url::form_urlencoded::parse(received.query.as_bytes())
                    .any(|(n, v)| n == parameter.name.as_str() && v == text.as_str());
                assert!(
                    found,
                    "{}: {}={text} is not in {}",
                    tool.key, parameter.name, received.query
                );
            }
            Location::Header => assert_eq!(
                received.headers[parameter.name.as_str()].to_str().unwrap(),
                text,
                "{}",
                tool.key
            ),
            Location::Cookie => {}
        }
    }
    let Some(body) = &tool.plan.body else {
        assert!(received.body.is_empty(), "{}", tool.key);
        return;
    };
    if body.encoding != BodyEncoding::Json || received.body.is_empty() {
        return;
    }
    let sent: Value = serde_json::from_slice(&received.body).unwrap();
    match &body.shape {
        BodyShape::Argument { argument } => assert_eq!(sent, arguments[argument], "{}", tool.key),
        BodyShape::Properties { properties } => {
            for property in properties {
                assert_eq!(
                    sent.get(&property.name),
                    arguments.get(&property.argument),
                    "{}: {}",
                    tool.key,
                    property.name
                );
            }
        }
    }
}

async fn call_everything(name: &str) -> Value {
    let document = document(name);
    let imported = import(&document, &ImportOptions::default());
    let api = StandIn::start(document.root.clone()).await.unwrap();
    let allow = vec![AllowedDestination::address(
        api.address().ip(),
        api.address().port(),
    )];
    let egress = Egress::new(EgressPolicy {
        allow,
        ..EgressPolicy::default()
    })
    .unwrap();
    let target = CallTarget {
        base_url: api.url().parse().unwrap(),
        timeout: Duration::from_secs(20),
        max_response_bytes: 4 * 1024 * 1024,
        redirects: Redirects::None,
    };
    let tokens = TokenSource::new(Clock::system());
    let caller = Caller {
        egress: &egress,
        target: &target,
        credential: None,
        account: None,
        tokens: &tokens,
        trace: None,
        shows_exchange: true,
    };
    let mut outcomes: BTreeMap<&str, usize> = BTreeMap::new();
    let mut structured = 0;
    for tool in imported.tools() {
        let compiled = CompiledTool::new(
            tool.input_schema.clone(),
            tool.output_schema.clone(),
            tool.plan.clone(),
        );
        let arguments = arguments(tool);
        let answer = execute(&caller, &compiled, &arguments).await;
        *outcomes.entry(answer.outcome.as_str()).or_default() += 1;
        assert!(!answer.content.is_empty());
        if let Some(received) = api.take_last() {
            check_request(tool, &arguments, &received);
        } else {
            assert_eq!(
                answer.outcome,
                Outcome::InvalidArguments,
                "{}: {:?}",
                tool.key,
                answer.content
            );
        }
        if answer.outcome == Outcome::Ok
            && tool.output_schema.is_some()
            && answer.status != Some(204)
        {
            assert!(answer.structured().is_some(), "{}", tool.key);
            structured += 1;
        }
        if answer.outcome == Outcome::ToolError {
            let Content::Text(text) = &answer.content[0] else {
                panic!("an error is a text")
            };
            // The made-up value may miss a pattern; nothing else may differ.
            assert!(
                text.contains("must match the pattern"),
                "{}: {text}",
                tool.key
            );
        }
    }
    json!({ "outcomes": outcomes, "structured": structured })
}

macro_rules! documents {
    ($($test:ident = $file:literal;)*) => {$(
        #[tokio::test]
        async fn $test() {
            insta::assert_json_snapshot!(call_everything($file).await);
        }
    )*};
}

documents! {
    every_tool_of_github_enterprise_is_called = "github-enterprise-3.17.json";
    every_tool_of_star_trek_is_called = "star-trek-3.0.yaml";
    every_tool_of_readme_is_called = "readme-api-3.1.json";
    every_tool_of_the_petstore_is_called = "petstore-3.1.yaml";
    every_parameter_style_is_called = "parameters-style-3.0.json";
    every_schema_type_is_called = "schema-types-3.1.yaml";
}
