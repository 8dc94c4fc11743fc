//! Everything that is emitted, against the official schema files of its revision (`tests/schema/`,
//! unchanged copies).
//!
//! The definitions are closed before use (no member beyond those that the revision names), so that
//! a field of a later revision is a fault here, as MCP-FA-1…MCP-FA-8 want it. Known faults of the
//! generated files are MCP-JS-12: R1–R3 demand an `id` in errors and are draft-07 with
//! `definitions`, R4 and R5 are 2020-12 with `$defs`.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

use portolan_protocol::capability::ServerCapabilities;
use portolan_protocol::content::{
    Annotations, ContentBlock, EmbeddedResource, ResourceContents, ResourceLink, Role, TextContent,
};
use portolan_protocol::initialize::Icon;
use portolan_protocol::logging::Level;
use portolan_protocol::progress::Progress;
use portolan_protocol::prompt::{Prompt, PromptArgument, PromptMessage};
use portolan_protocol::resource::{Location, Resource};
use portolan_protocol::subscription::{Filter, List};
use portolan_protocol::tool::{CallResult, TaskSupport, Tool, ToolAnnotations};
use portolan_protocol::{
    CacheHint, Era, ErrorKind, Misfit, Raw, RequestId, Revision, cancel, completion, discover,
    initialize, jsonrpc, logging, progress, prompt, resource, result, subscription, tool,
};
use serde_json::{Value, json};

use crate::{identity, tree};

static FILES: LazyLock<Vec<(Revision, Value)>> = LazyLock::new(|| {
    [
        (
            Revision::V2024_11_05,
            include_str!("../schema/2024-11-05.json"),
        ),
        (
            Revision::V2025_03_26,
            include_str!("../schema/2025-03-26.json"),
        ),
        (
            Revision::V2025_06_18,
            include_str!("../schema/2025-06-18.json"),
        ),
        (
            Revision::V2025_11_25,
            include_str!("../schema/2025-11-25.json"),
        ),
        (
            Revision::V2026_07_28,
            include_str!("../schema/2026-07-28.json"),
        ),
    ]
    .map(|(revision, text)| (revision, closed(serde_json::from_str(text).unwrap())))
    .into()
});

fn key(file: &Value) -> &'static str {
    if file.get("$defs").is_some() {
        "$defs"
    } else {
        "definitions"
    }
}

fn closed(mut file: Value) -> Value {
    let key = key(&file);
    for (name, definition) in file[key].as_object_mut().unwrap() {
        let open = name.ends_with("MetaObject") || name == "Result" || name == "EmptyResult";
        if definition.get("properties").is_some() && !open {
            definition["additionalProperties"] = json!(false);
        }
    }

    file
}

type Validators = Mutex<HashMap<(Revision, String), Arc<jsonschema::Validator>>>;
static VALIDATORS: LazyLock<Validators> = LazyLock::new(Mutex::default);

fn validator(revision: Revision, definition: &str) -> Arc<jsonschema::Validator> {
    let mut known = VALIDATORS.lock().unwrap();
    let made = || Arc::new(compile(revision, definition));
    let entry = known.entry((revision, definition.to_owned()));
    Arc::clone(entry.or_insert_with(made))
}

fn compile(revision: Revision, definition: &str) -> jsonschema::Validator {
    let file = &FILES
        .iter()
        .find(|(known, _)| *known == revision)
        .unwrap()
        .1;
    let key = key(file);
    assert!(
        file[key].get(definition).is_some(),
        "{revision} has no {definition}"
    );
    let schema = json!({
        "$schema": file["$schema"],
        "$ref": format!("#/{key}/{definition}"),
        key: file[key],
    });
    jsonschema::validator_for(&schema).unwrap()
}

pub(crate) fn faults(revision: Revision, definition: &str, instance: &Value) -> Vec<String> {
    let validator = validator(revision, definition);
    let faults = validator.iter_errors(instance);
    faults
        .map(|error| format!("{} at {}", error, error.instance_path()))
        .collect()
}

pub(crate) fn conforms(revision: Revision, definition: &str, instance: &Value) {
    let faults = faults(revision, definition, instance);
    assert!(
        faults.is_empty(),
        "{revision} {definition}: {faults:#?}\n{instance:#}"
    );
}

/// A notification as its definition sees it: R1–R3 define only `method` and `params`.
fn notification(revision: Revision, definition: &str, text: &[u8]) {
    let mut message = tree(text);
    assert_eq!(message["jsonrpc"], "2.0");
    if revision <= Revision::V2025_06_18 {
        message.as_object_mut().unwrap().remove("jsonrpc");
    }
    conforms(revision, definition, &message);
}

#[test]
fn the_closed_files_refuse_what_a_revision_does_not_have() {
    for (revision, definition, instance) in [
        (
            Revision::V2024_11_05,
            "Tool",
            json!({ "name": "t", "inputSchema": { "type": "object" }, "annotations": {} }),
        ),
        (
            Revision::V2025_03_26,
            "Tool",
            json!({ "name": "t", "inputSchema": { "type": "object" }, "title": "T" }),
        ),
        (
            Revision::V2025_06_18,
            "Tool",
            json!({ "name": "t", "inputSchema": { "type": "object" }, "icons": [] }),
        ),
        (
            Revision::V2025_11_25,
            "Tool",
            json!({ "name": "t", "inputSchema": { "properties": {} } }),
        ),
        (
            Revision::V2025_11_25,
            "ListToolsResult",
            json!({ "tools": [], "ttlMs": 0 }),
        ),
        (
            Revision::V2026_07_28,
            "ListToolsResult",
            json!({ "tools": [] }),
        ),
        (
            Revision::V2025_03_26,
            "CallToolResult",
            json!({ "content": [{ "type": "resource_link", "uri": "x:", "name": "n" }] }),
        ),
    ] {
        assert!(
            !faults(revision, definition, &instance).is_empty(),
            "{revision} {definition} {instance}"
        );
    }
}

fn annotations() -> Annotations {
    Annotations {
        audience: Some(vec![Role::User, Role::Assistant]),
        priority: Some(0.5),
        last_modified: Some("2026-01-01T00:00:00Z".into()),
    }
}

fn meta() -> Value {
    json!({ "example.com/k": 1 })
}

fn icons() -> Vec<Icon> {
    vec![Icon {
        src: "data:image/png;base64,AAAA".into(),
        mime_type: Some("image/png".into()),
        sizes: vec!["any".into()],
        theme: Some("dark".into()),
    }]
}

/// Every kind of block, with every field.
fn blocks() -> Vec<ContentBlock> {
    let text = ResourceContents::Text {
        uri: "x://text".into(),
        mime_type: Some("text/plain".into()),
        text: "t".into(),
        meta: Some(meta()),
    };
    let mut image = ContentBlock::image("AAAA", "image/png");
    if let ContentBlock::Image(image) = &mut image {
        image.annotations = Some(annotations());
        image.meta = Some(meta());
    }
    vec![
        ContentBlock::text("plain"),
        ContentBlock::Text(TextContent {
            text: "t".into(),
            annotations: Some(annotations()),
            meta: Some(meta()),
        }),
        image,
        ContentBlock::audio("AAA=", "audio/wav"),
        ContentBlock::ResourceLink(Box::new(ResourceLink {
            uri: "x://link".into(),
            name: "link".into(),
            title: Some("Link".into()),
            description: Some("d".into()),
            mime_type: Some("text/plain".into()),
            size: Some(3),
            icons: icons(),
            annotations: Some(annotations()),
            meta: Some(meta()),
        })),
        ContentBlock::Resource(Box::new(EmbeddedResource {
            resource: text,
            annotations: Some(annotations()),
            meta: Some(meta()),
        })),
        ContentBlock::blob("x://blob", Some("application/zip".into()), "AAAA"),
    ]
}

/// A tool with everything that some revision knows.
fn tools() -> Vec<Tool> {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
        "properties": { "a": { "type": "string", "x-mcp-header": "A" }, "any": true, "none": false },
        "required": ["a"], "additionalProperties": false, "oneOf": [{}], "$defs": { "d": true },
    });
    let mut full = Tool::new("full", Raw::of(&schema).unwrap());
    full.title = Some("Full".into());
    full.description = Some("Has everything.".into());
    full.output_schema = Raw::of(&schema).ok();
    full.annotations = Some(ToolAnnotations {
        title: Some("Full".into()),
        read_only_hint: Some(true),
        destructive_hint: Some(false),
        idempotent_hint: Some(true),
        open_world_hint: Some(false),
    });
    full.icons = icons();
    full.task_support = Some(TaskSupport::Optional);
    full.meta = Raw::of(&json!({ "example.com/k": 1 })).ok();
    let mut array = Tool::new("array", Raw::of(&json!({ "type": "object" })).unwrap());
    array.output_schema = Raw::of(&json!({ "type": "array" })).ok();
    vec![full, array]
}

#[test]
fn initialize_and_discover_conform() {
    let mut capabilities = ServerCapabilities::full();
    capabilities.core_tasks = true;
    capabilities
        .extensions
        .insert("com.example/x".into(), Raw::empty_object());
    for revision in Revision::ALL {
        if revision.era() == Era::Legacy {
            let result = tree(&initialize::result(
                revision,
                &identity(),
                &capabilities,
                Some("Be kind."),
            ));
            assert_eq!(result["protocolVersion"], revision.as_str());
            conforms(revision, "InitializeResult", &result);
        } else {
            let result = tree(&discover::result(
                revision,
                &identity(),
                &capabilities,
                None,
                CacheHint::DISCOVER,
            ));
            // MCP-L-17, MCP-L-18, MCP-L-23
            assert_eq!(result["supportedVersions"][0], "2026-07-28");
            assert_eq!(result["supportedVersions"].as_array().unwrap().len(), 5);
            assert!(
                result.get("serverInfo").is_none() && result["capabilities"].get("tasks").is_none()
            );
            conforms(revision, "DiscoverResult", &result);
            let answer = tree(&jsonrpc::response(
                &"d".into(),
                result.to_string().as_bytes(),
            ));
            conforms(revision, "DiscoverResultResponse", &answer);
        }
    }
}

#[test]
fn tools_conform() {
    for revision in Revision::ALL {
        let items: Vec<Vec<u8>> = tools().iter().map(|tool| tool.to_json(revision)).collect();
        let items = items.iter().map(Vec::as_slice);
        let page = tree(&tool::list_page(
            revision,
            &identity(),
            items,
            Some("next"),
            CacheHint::LIST,
        ));
        assert_eq!(page["tools"].as_array().unwrap().len(), 2);
        conforms(revision, "ListToolsResult", &page);
    }
}

#[test]
fn call_results_conform() {
    for revision in Revision::ALL {
        for structured in [
            None,
            Some(json!({ "a": 1 })),
            Some(json!([1, 2])),
            Some(Value::Null),
        ] {
            for content in [blocks(), Vec::new()] {
                let result = CallResult {
                    content,
                    structured_content: structured.as_ref().map(|value| Raw::of(value).unwrap()),
                    is_error: structured.is_none(),
                    meta: Raw::of(&json!({ "example.com/k": 1 })).ok(),
                };
                conforms(
                    revision,
                    "CallToolResult",
                    &tree(&result.to_json(revision, &identity())),
                );
            }
        }
    }
}

#[test]
fn prompts_conform() {
    let prompt = Prompt {
        name: "p".into(),
        title: Some("P".into()),
        description: Some("d".into()),
        arguments: vec![PromptArgument {
            name: "a".into(),
            title: Some("A".into()),
            description: Some("d".into()),
            required: true,
            others: Vec::new(),
        }],
        icons: icons(),
        meta: Raw::of(&json!({ "example.com/k": 1 })).ok(),
        others: Vec::new(),
    };
    let messages: Vec<PromptMessage> = blocks()
        .into_iter()
        .map(|content| PromptMessage {
            role: Role::User,
            content,
        })
        .collect();
    for revision in Revision::ALL {
        let item = prompt.to_json(revision);
        let page = prompt::list_page(
            revision,
            &identity(),
            [item.as_slice()],
            None,
            CacheHint::LIST,
        );
        conforms(revision, "ListPromptsResult", &tree(&page));
        let empty = prompt::list_page(
            revision,
            &identity(),
            std::iter::empty(),
            None,
            CacheHint::LIST,
        );
        conforms(revision, "ListPromptsResult", &tree(&empty));
        let result = prompt::get_result(revision, &identity(), Some("d"), &messages);
        conforms(revision, "GetPromptResult", &tree(&result));
    }
}

#[test]
fn resources_conform() {
    let published = |location| Resource {
        location,
        name: "r".into(),
        title: Some("R".into()),
        description: Some("d".into()),
        mime_type: Some("text/plain".into()),
        size: Some(7),
        annotations: Some(annotations()),
        icons: icons(),
        meta: Raw::of(&json!({ "example.com/k": 1 })).ok(),
        written_annotations: None,
        others: Vec::new(),
    };
    let contents = [
        ResourceContents::Text {
            uri: "x://a".into(),
            mime_type: None,
            text: "t".into(),
            meta: Some(meta()),
        },
        ResourceContents::Blob {
            uri: "x://b".into(),
            mime_type: Some("a/b".into()),
            blob: "AAAA".into(),
            meta: None,
        },
    ];
    for revision in Revision::ALL {
        let item = published(Location::Uri("x://a".into())).to_json(revision);
        let page = resource::list_page(
            revision,
            &identity(),
            [item.as_slice()],
            None,
            CacheHint::LIST,
        );
        conforms(revision, "ListResourcesResult", &tree(&page));
        let item = published(Location::Template("x://{a}".into())).to_json(revision);
        let page = resource::template_page(
            revision,
            &identity(),
            [item.as_slice()],
            None,
            CacheHint::LIST,
        );
        conforms(revision, "ListResourceTemplatesResult", &tree(&page));
        let result = resource::read_result(revision, &identity(), &contents, CacheHint::READ);
        conforms(revision, "ReadResourceResult", &tree(&result));
    }
}

#[test]
fn empty_results_and_completions_conform() {
    let values: Vec<String> = (0..150).map(|n| n.to_string()).collect();
    for revision in Revision::ALL {
        conforms(
            revision,
            "EmptyResult",
            &tree(&result::empty(revision, &identity())),
        );
        let result = tree(&completion::result(
            revision,
            &identity(),
            &values,
            Some(150),
        ));
        // MCP-CP-3
        assert_eq!(
            result["completion"]["values"].as_array().unwrap().len(),
            100
        );
        assert_eq!(result["completion"]["hasMore"], true);
        conforms(revision, "CompleteResult", &result);
    }
}

#[test]
fn notifications_conform() {
    let progress = Progress {
        progress: 0.5,
        total: Some(2.0),
        message: Some("half".into()),
    };
    for revision in Revision::ALL {
        notification(
            revision,
            "ProgressNotification",
            &progress::notification(revision, &"t".into(), &progress),
        );
        let data = Raw::of(&json!({ "a": 1 })).unwrap();
        notification(
            revision,
            "LoggingMessageNotification",
            &logging::message(Level::Notice, Some("l"), &data),
        );
        notification(
            revision,
            "CancelledNotification",
            &cancel::notification(&5.into(), Some("late")),
        );
        let listen = (revision.era() == Era::Modern).then(|| RequestId::from(9));
        for (list, definition) in [
            (List::Tools, "ToolListChangedNotification"),
            (List::Prompts, "PromptListChangedNotification"),
            (List::Resources, "ResourceListChangedNotification"),
        ] {
            notification(
                revision,
                definition,
                &subscription::list_changed(list, listen.as_ref()),
            );
        }
        let updated = subscription::resource_updated("x://a", listen.as_ref());
        notification(revision, "ResourceUpdatedNotification", &updated);
    }
}

#[test]
fn listen_streams_conform() {
    let revision = Revision::V2026_07_28;
    let listen = RequestId::from("l");
    let filter = Filter {
        tools: true,
        uris: vec!["x://a".into()],
        ..Filter::default()
    };
    let first = subscription::acknowledged(&listen, &filter);
    notification(revision, "SubscriptionsAcknowledgedNotification", &first);
    let last = tree(&subscription::completed(&listen, revision, &identity()));
    conforms(revision, "SubscriptionsListenResultResponse", &last);
}

#[test]
fn errors_conform() {
    let misfit = Misfit::new("params.x", "required");
    let kinds = [
        ErrorKind::Parse,
        ErrorKind::InvalidRequest("no".into()),
        ErrorKind::MethodNotFound("x".into()),
        ErrorKind::InvalidParams(misfit.clone()),
        ErrorKind::ResourceNotFound {
            uri: "x://a".into(),
        },
        ErrorKind::UnsupportedVersion {
            requested: "x".into(),
        },
        ErrorKind::MissingCapability {
            required: Raw::of(&json!({ "sampling": {} })).unwrap(),
        },
        ErrorKind::HeaderMismatch("no".into()),
        ErrorKind::Internal,
        ErrorKind::RateLimited {
            reason: "tenant",
            retry_after_ms: 1_000,
        },
    ];
    for revision in Revision::ALL {
        let definition = if revision <= Revision::V2025_06_18 {
            "JSONRPCError"
        } else {
            "JSONRPCErrorResponse"
        };
        for kind in &kinds {
            conforms(
                revision,
                definition,
                &tree(&kind.refuse(revision, Some(1.into())).body()),
            );
            if revision >= Revision::V2025_11_25 {
                conforms(
                    revision,
                    definition,
                    &tree(&kind.refuse(revision, None).body()),
                );
            }
        }
    }
    let modern = Revision::V2026_07_28;
    for (kind, definition) in [
        (ErrorKind::Parse, "ParseError"),
        (
            ErrorKind::InvalidRequest("no".into()),
            "InvalidRequestError",
        ),
        (ErrorKind::MethodNotFound("x".into()), "MethodNotFoundError"),
        (ErrorKind::InvalidParams(misfit), "InvalidParamsError"),
        (ErrorKind::Internal, "InternalError"),
    ] {
        conforms(
            modern,
            definition,
            &tree(&kind.refuse(modern, None).body())["error"],
        );
    }
    for (kind, definition) in [
        (
            ErrorKind::HeaderMismatch("no".into()),
            "HeaderMismatchError",
        ),
        (
            ErrorKind::UnsupportedVersion {
                requested: "x".into(),
            },
            "UnsupportedProtocolVersionError",
        ),
        (
            ErrorKind::MissingCapability {
                required: Raw::of(&json!({ "elicitation": { "url": {} } })).unwrap(),
            },
            "MissingRequiredClientCapabilityError",
        ),
    ] {
        conforms(
            modern,
            definition,
            &tree(&kind.refuse(modern, Some("i".into())).body()),
        );
    }
}
