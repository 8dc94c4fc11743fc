//! Random bundles.

use portolan_bundle::{
    Bundle, SecretReference,
    format::{
        Content, Credential, DeclaredArgument, DeclaredKind, DeclaredMessage, DeclaredPrompt,
        DeclaredResource, DeclaredRole, DeclaredServer, DeclaredTool, DeclaredWebhook, Definition,
        Format, HeaderSecret, Holds, Parameter, ParameterPlace, ServerTool, Source, Status,
        WebhookStatus,
    },
};
use proptest::{collection::vec, option, prelude::*};
use serde_json::json;

/// Any text that a member may have, without control characters.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ -~]{1,20}",
        "[a-zäß∂\u{2028}: #\n\t\"'|>{}\\-]{1,30}",
        Just("yes".to_owned()),
        Just("~".to_owned()),
        Just("1.5".to_owned()),
        Just("line one\nline two\n".to_owned()),
        Just("- a\n  b\n\nc: d".to_owned()),
    ]
    .prop_filter("a text", |text| !text.trim().is_empty())
}

fn tool() -> impl Strategy<Value = DeclaredTool> {
    (
        option::of("[a-z_]{1,12}"),
        option::of(text()),
        any::<bool>(),
    )
        .prop_map(|(name, description, enabled)| DeclaredTool {
            name,
            description,
            enabled: Some(enabled),
            ..DeclaredTool::default()
        })
}

fn defined() -> impl Strategy<Value = DeclaredTool> {
    (text(), any::<bool>(), -9_i64..9).prop_map(|(description, required, least)| DeclaredTool {
        define: Some(Definition {
            title: None,
            description,
            method: "POST".to_owned(),
            path: "/x".to_owned(),
            parameters: vec![Parameter {
                name: "n".to_owned(),
                place: ParameterPlace::Query,
                required,
                description: None,
                schema: Some(json!({"type": "integer", "minimum": least, "enum": [], "x": 1.5})),
            }],
            body: None,
        }),
        ..DeclaredTool::default()
    })
}

fn source(number: usize) -> impl Strategy<Value = Source> {
    let openapi = proptest::collection::btree_map(text(), tool(), 0..4);
    let http = proptest::collection::btree_map("[a-z]{1,8}", defined(), 0..3);
    (any::<bool>(), openapi, http, text(), option::of(text())).prop_map(
        move |(is_http, openapi, http, document, header)| Source {
            name: format!("source {number}"),
            kind: if is_http {
                DeclaredKind::Http
            } else {
                DeclaredKind::Openapi
            },
            location: None,
            document: (!is_http).then_some(document),
            base_url: Some("https://api.example/v1".to_owned()),
            prefix: None,
            hold_changes: None,
            settings: None,
            credential: header.map(|name| {
                Credential::Headers(vec![HeaderSecret {
                    name,
                    secret: SecretReference::vault(&format!("source {number}")),
                }])
            }),
            unlisted: None,
            tools: if is_http { http } else { openapi },
            prompts: std::collections::BTreeMap::default(),
            resources: std::collections::BTreeMap::default(),
        },
    )
}

fn prompt(number: usize) -> impl Strategy<Value = DeclaredPrompt> {
    (option::of(text()), vec(text(), 1..4), any::<bool>()).prop_map(
        move |(description, texts, enabled)| DeclaredPrompt {
            name: format!("p{number}"),
            title: None,
            description: description.clone(),
            enabled: Some(enabled),
            arguments: vec![DeclaredArgument {
                name: "a".to_owned(),
                title: None,
                description,
                required: enabled,
                values: Vec::new(),
            }],
            messages: texts
                .into_iter()
                .map(|text| DeclaredMessage {
                    role: DeclaredRole::User,
                    content: Content::Text(text),
                })
                .collect(),
        },
    )
}

fn resource(number: usize) -> impl Strategy<Value = DeclaredResource> {
    (text(), text()).prop_map(move |(name, holds)| DeclaredResource {
        uri: format!("notes://{number}"),
        name,
        title: None,
        description: None,
        mime_type: None,
        enabled: None,
        variables: Vec::new(),
        holds: Holds::Text(holds),
    })
}

fn server(number: usize) -> impl Strategy<Value = DeclaredServer> {
    (option::of(text()), vec((0..4_usize, text()), 0..4)).prop_map(move |(name, tools)| {
        DeclaredServer {
            slug: format!("server-{number}"),
            name,
            description: None,
            instructions: None,
            status: Some(Status::Paused),
            from: Vec::new(),
            tools: tools
                .into_iter()
                .map(|(source, tool)| ServerTool {
                    source: format!("source {source}"),
                    tool,
                    published_name: None,
                })
                .collect(),
            prompts: Vec::new(),
            resources: Vec::new(),
        }
    })
}

fn webhook(number: usize) -> impl Strategy<Value = DeclaredWebhook> {
    let events = vec(
        prop_oneof![
            Just("key.created"),
            Just("member.joined"),
            Just("alert.fired")
        ],
        1..4,
    );
    let header = option::of("[A-Za-z][A-Za-z-]{0,9}");
    (events, option::of(text()), header, any::<bool>()).prop_map(
        move |(events, description, header, is_paused)| {
            let url = format!("https://hooks.example/{number}?a=b&c");
            DeclaredWebhook {
                events: events.into_iter().map(str::to_owned).collect(),
                description,
                headers: header
                    .into_iter()
                    .map(|name| HeaderSecret {
                        name,
                        secret: SecretReference::vault(&url),
                    })
                    .collect(),
                status: is_paused.then_some(WebhookStatus::Paused),
                url,
            }
        },
    )
}

/// A bundle with a few objects of each kind.
pub(crate) fn bundle() -> impl Strategy<Value = Bundle> {
    let some = 0..3_usize;
    (some.clone(), some.clone(), some.clone(), some.clone(), some).prop_flat_map(
        |(sources, prompts, resources, servers, webhooks)| {
            (
                (0..sources).map(source).collect::<Vec<_>>(),
                (0..prompts).map(prompt).collect::<Vec<_>>(),
                (0..resources).map(resource).collect::<Vec<_>>(),
                (0..servers).map(server).collect::<Vec<_>>(),
                (0..webhooks).map(webhook).collect::<Vec<_>>(),
            )
                .prop_map(|(sources, prompts, resources, servers, webhooks)| Bundle {
                    format: Format::V1,
                    name: "random".to_owned(),
                    sources,
                    prompts,
                    resources,
                    servers,
                    webhooks,
                })
        },
    )
}
