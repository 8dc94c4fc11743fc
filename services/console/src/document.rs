//! The parts of the API's document beside its routes: servers, tags, security, and the headers that
//! routes share (API-15).

use http::Method;
use portolan_model::api_scope::ApiScope;
use utoipa::openapi::{
    Components, HeaderBuilder, ObjectBuilder, OpenApi, RefOr, Required,
    extensions::Extensions,
    path::{Operation, ParameterBuilder, ParameterIn, PathItem},
    response::Response,
    schema::Type,
    security::{
        ClientCredentials, Flow, HttpAuthScheme, HttpBuilder, OAuth2, Scopes, SecurityRequirement,
        SecurityScheme,
    },
    server::Server,
    tag::TagBuilder,
};

use crate::{
    token_scopes::{TokenAccess, access},
    versions,
};

/// The nouns of the API, in the order of the reference.
const TAGS: &[(&str, &str)] = &[
    ("me", "The signed-in person."),
    ("tokens", "Tokens of this API."),
    ("workspaces", "Workspaces, members, settings and logs."),
    ("sources", "APIs and MCP servers that tools come from."),
    (
        "upstreams",
        "MCP servers of others, and sign-ins at sources.",
    ),
    ("tools", "Tools: what clients may call."),
    ("prompts", "Prompts that are written here."),
    ("resources", "Resources that are written here."),
    ("servers", "MCP servers that are published."),
    (
        "configuration",
        "The workspace as a file: export, plan and apply.",
    ),
    ("keys", "API keys and service accounts."),
    ("clients", "AI clients: which may connect."),
    ("calls", "Calls of tools: their log, and insights."),
    ("limits", "Limits of a workspace, and their use."),
    (
        "webhooks",
        "Endpoints that receive events, and their deliveries.",
    ),
    ("alerts", "Alerts, and the rules that raise them."),
];

/// Completes the document.
pub(crate) fn complete(document: &mut OpenApi) {
    let mut here = Server::new("/");
    here.description = Some("This installation.".to_owned());
    document.servers = Some(vec![here]);
    let used: Vec<String> = document
        .paths
        .paths
        .values_mut()
        .flat_map(operations)
        .flat_map(|(_, operation)| operation.tags.clone().unwrap_or_default())
        .collect();
    let tags = TAGS
        .iter()
        .filter(|(name, _)| used.iter().any(|tag| tag == name));
    let tags = tags.map(|(name, text)| {
        TagBuilder::new()
            .name(*name)
            .description(Some(*text))
            .build()
    });
    document.tags = Some(tags.collect());
    let components = document.components.get_or_insert_with(Components::new);
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .bearer_format("ptlp_… or ptlw_…")
        .description(Some(
            "A token of a person or of a workspace. The scopes stand beside each route.",
        ))
        .build();
    components.add_security_scheme("token", SecurityScheme::Http(bearer));
    components.add_security_scheme("service_account", SecurityScheme::OAuth2(service_account()));
    for (path, item) in &mut document.paths.paths {
        for (method, operation) in operations(item) {
            describe(&method, path, operation);
        }
    }
}

/// The flow by which a service account gets a token (API-24).
fn service_account() -> OAuth2 {
    let scopes = ApiScope::ALL.map(|scope| (scope.as_str(), scope.meaning()));
    let flow = ClientCredentials::new("/oauth/token", Scopes::from_iter(scopes));
    OAuth2::with_description(
        [Flow::ClientCredentials(flow)],
        "A service account with access to this API requests a token of its workspace. `resource` \
         is the address of the workspace: `https://portolan.example/api/v1/workspaces/acme`.",
    )
}

/// The operations of a path that the API has.
pub(crate) fn operations(item: &mut PathItem) -> Vec<(Method, &mut Operation)> {
    let all = [
        (Method::GET, &mut item.get),
        (Method::PUT, &mut item.put),
        (Method::POST, &mut item.post),
        (Method::PATCH, &mut item.patch),
        (Method::DELETE, &mut item.delete),
    ];
    all.into_iter()
        .filter_map(|(method, operation)| Some((method, operation.as_mut()?)))
        .collect()
}

fn describe(method: &Method, path: &str, operation: &mut Operation) {
    let session = || SecurityRequirement::new("session", Vec::<String>::new());
    let tokens = |scopes: &[&str]| {
        ["token", "service_account"].map(|scheme| SecurityRequirement::new(scheme, scopes.to_vec()))
    };
    let (security, scopes) = match access(method, path) {
        TokenAccess::Any => (Vec::from(tokens(&[])), Vec::new()),
        TokenAccess::BrowserOnly => (vec![session()], Vec::new()),
        TokenAccess::Scope(scope) => {
            let scopes = vec![scope.as_str()];
            let mut security = vec![session()];
            security.extend(tokens(&scopes));
            (security, scopes)
        }
    };
    let takes_tokens = !scopes.is_empty();
    operation.security = Some(security);
    if !scopes.is_empty() {
        let extensions = operation.extensions.get_or_insert_with(Extensions::default);
        extensions.merge(Extensions::from_iter([("x-scopes", scopes)]));
    }
    if *method == Method::POST && takes_tokens {
        let text = "With a token: the request is carried out once for each key, and its answer is repeated for 24 hours.";
        add_header(operation, "Idempotency-Key", text);
    }
    if versions::is_change(method, path) {
        let text = "The `ETag` of the object that is changed; 412 if the workspace changed since.";
        add_header(operation, "If-Match", text);
    }
    if *method == Method::GET
        && versions::is_object(path)
        && let Some(RefOr::T(answer)) = operation.responses.responses.get_mut("200")
    {
        add_tag(answer);
    }
}

fn add_header(operation: &mut Operation, name: &str, text: &str) {
    let parameter = ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some(text))
        .schema(Some(ObjectBuilder::new().schema_type(Type::String)))
        .build();
    let parameters = operation.parameters.get_or_insert_with(Vec::new);
    parameters.push(RefOr::T(parameter));
}

fn add_tag(answer: &mut Response) {
    let header = HeaderBuilder::new()
        .schema(Some(ObjectBuilder::new().schema_type(Type::String)))
        .description(Some(
            "The revision of the workspace's registry, for `If-Match`.",
        ))
        .build();
    answer.headers.insert("ETag".to_owned(), RefOr::T(header));
}
