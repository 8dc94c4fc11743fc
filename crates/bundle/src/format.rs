//! The types of the format `portolan/v1`. Their documentation is that of the JSON Schema.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::secret::SecretReference;

/// The version of the format.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum Format {
    /// The first version.
    #[default]
    #[serde(rename = "portolan/v1")]
    V1,
}

/// A workspace: sources of tools, prompts, resources, the servers that publish them, and endpoints
/// of webhooks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Bundle {
    /// The version of the format.
    pub format: Format,
    /// The owner of the objects in this file: 1 to 64 letters, digits, `_`, `-` or `.`.
    pub name: String,
    /// APIs and MCP servers that tools come from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<Source>,
    /// Prompts that are written here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prompts: Vec<DeclaredPrompt>,
    /// Resources that are written here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<DeclaredResource>,
    /// MCP servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<DeclaredServer>,
    /// Endpoints that events of the workspace are sent to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub webhooks: Vec<DeclaredWebhook>,
}

/// Kinds of sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = SourceKind)]
pub enum DeclaredKind {
    /// An API with an OpenAPI document.
    Openapi,
    /// An API whose tools are defined here.
    Http,
    /// An MCP server.
    Mcp,
}

/// A source of tools.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Its key: 1 to 80 characters, unique in the workspace. Another name is another source.
    pub name: String,
    /// The kind never changes.
    pub kind: DeclaredKind,
    /// `openapi`: `file:PATH`, relative to this file, or the address of the document. `mcp`: the
    /// address of the MCP endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// `openapi`: the text of the document, instead of a location.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<String>,
    /// `openapi` and `http`: prefix of every call. `openapi`: the document's first server if
    /// absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// `mcp`: stands before the names of its tools and prompts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// `mcp`: changes at the server wait until a person agrees; true if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_changes: Option<bool>,
    /// Bounds of calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<Settings>,
    /// What opens it. If absent, the workspace keeps what it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<Credential>,
    /// Whether tools that `tools` does not name are enabled; `enabled` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unlisted: Option<Unlisted>,
    /// Changes of its tools, by operation: `GET /pets/{id}` or the imported name for `openapi`, the
    /// server's own name for `mcp`. For `http` all tools, by name, with their definitions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, DeclaredTool>,
    /// `mcp`: switches of its prompts, by name with the prefix.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub prompts: BTreeMap<String, Switch>,
    /// `mcp`: switches of its resources, by URI or template.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub resources: BTreeMap<String, Switch>,
}

/// Whether tools that are not named are enabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unlisted {
    /// They are enabled.
    Enabled,
    /// They are disabled.
    Disabled,
}

/// Bounds of calls. An absent member has its default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SourceSettings)]
pub struct Settings {
    /// Milliseconds for the whole exchange, 100 to 120000; 30000 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u32>,
    /// Bytes of an answer that are read, 1 KiB to 8 MiB; 2 MiB if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_response_bytes: Option<u32>,
    /// Which redirects are followed; `same_origin` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follow_redirects: Option<Redirects>,
    /// Calls may go on as MCP tasks; false if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<bool>,
}

/// Which redirects of an API are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Redirects {
    /// None.
    None,
    /// To the same scheme, host and port.
    SameOrigin,
}

/// A switch of an item of an MCP server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Switch {
    /// Whether servers can publish it.
    pub enabled: bool,
}

/// A credential. Each secret is a reference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Credential {
    /// One key in a header, the query or a cookie.
    ApiKey(ApiKey),
    /// `Authorization: Bearer …`
    Bearer(Bearer),
    /// `Authorization: Basic …`
    Basic(Basic),
    /// Any headers.
    Headers(Vec<HeaderSecret>),
    /// OAuth 2.0 client credentials.
    OauthClientCredentials(ClientCredentials),
}

impl Credential {
    /// The references of its secrets.
    pub fn references(&self) -> Vec<&SecretReference> {
        match self {
            Self::ApiKey(key) => vec![&key.secret],
            Self::Bearer(bearer) => vec![&bearer.secret],
            Self::Basic(basic) => vec![&basic.secret],
            Self::Headers(headers) => headers.iter().map(|header| &header.secret).collect(),
            Self::OauthClientCredentials(client) => vec![&client.secret],
        }
    }
}

/// An API key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ApiKey {
    /// The place of the key in a request.
    #[serde(rename = "in")]
    pub place: KeyPlace,
    /// Name of the header, query parameter or cookie.
    pub name: String,
    /// `env:NAME`, `file:PATH` or `vault:SOURCE`.
    #[schema(value_type = String, pattern = "^(env|file|vault):.+$")]
    pub secret: SecretReference,
}

/// The place of an API key in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum KeyPlace {
    /// A header.
    Header,
    /// The query.
    Query,
    /// A cookie.
    Cookie,
}

/// A bearer token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Bearer {
    /// `env:NAME`, `file:PATH` or `vault:SOURCE`.
    #[schema(value_type = String, pattern = "^(env|file|vault):.+$")]
    pub secret: SecretReference,
}

/// A user name with a password.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Basic {
    /// User name.
    pub username: String,
    /// The password: `env:NAME`, `file:PATH` or `vault:SOURCE`.
    #[schema(value_type = String, pattern = "^(env|file|vault):.+$")]
    pub secret: SecretReference,
}

/// A header with a secret value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HeaderSecret {
    /// Name.
    pub name: String,
    /// `env:NAME`, `file:PATH`, or `vault:` with the name of the source or the URL of the endpoint.
    #[schema(value_type = String, pattern = "^(env|file|vault):.+$")]
    pub secret: SecretReference,
}

/// An OAuth client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientCredentials {
    /// Token endpoint.
    pub token_url: String,
    /// Client id.
    pub client_id: String,
    /// The client secret: `env:NAME`, `file:PATH` or `vault:SOURCE`.
    #[schema(value_type = String, pattern = "^(env|file|vault):.+$")]
    pub secret: SecretReference,
    /// Scopes, separated by spaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// How the client sends its secret; `basic` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<ClientAuth>,
}

/// How an OAuth client sends its secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClientAuth {
    /// HTTP Basic.
    Basic,
    /// In the form.
    Post,
}

/// A tool. An absent member has the imported value.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Tool)]
pub struct DeclaredTool {
    /// Its name for AI clients: 1 to 64 letters, digits, `_` or `-`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its function. The model chooses tools by this text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether servers can publish it; `unlisted` does not concern a tool that is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// `http`: the request that it makes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub define: Option<Definition>,
}

/// The request of a tool that is defined here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ToolDefinition)]
pub struct Definition {
    /// Display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its function. The model chooses tools by this text.
    pub description: String,
    /// HTTP method.
    pub method: String,
    /// Path below the source's base URL, with parameters in braces.
    pub path: String,
    /// Parameters outside the body.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<Parameter>,
    /// The body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Body>,
}

/// A parameter of a tool that is defined here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// Its name in the request.
    pub name: String,
    /// Its place in the request.
    #[serde(rename = "in")]
    pub place: ParameterPlace,
    /// Always true for parameters of the path.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
    /// Its meaning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// JSON Schema of its value; any value if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub schema: Option<Value>,
}

/// The place of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ParameterPlace {
    /// In the path.
    Path,
    /// In the query.
    Query,
    /// A header.
    Header,
    /// A cookie.
    Cookie,
}

/// The body of a tool that is defined here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Body {
    /// Media type; `application/json` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// JSON Schema of its value; any value if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub schema: Option<Value>,
    /// Whether it is always sent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
}

/// A prompt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Prompt)]
pub struct DeclaredPrompt {
    /// Its key: 1 to 64 letters, digits, `_` or `-`.
    pub name: String,
    /// Display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its purpose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether servers can publish it; true if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Values that a caller gives.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<DeclaredArgument>,
    /// At least one. Texts and URIs may have placeholders: `{{name}}`.
    pub messages: Vec<DeclaredMessage>,
}

/// An argument of a prompt, or a variable of a URI template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Argument)]
pub struct DeclaredArgument {
    /// Its name in placeholders.
    pub name: String,
    /// Display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its meaning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Always true for variables of a template.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
    /// The values that completion offers, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<Suggestion>,
}

/// A value that completion offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Suggestion {
    /// The value.
    pub value: String,
    /// Offered only while these other arguments have these values, or have none yet.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub when: BTreeMap<String, String>,
}

/// A message of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Message)]
pub struct DeclaredMessage {
    /// Its author.
    pub role: DeclaredRole,
    /// Its content.
    pub content: Content,
}

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Role)]
pub enum DeclaredRole {
    /// The person.
    User,
    /// The model.
    Assistant,
}

/// The content of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// A text.
    Text(String),
    /// A picture.
    Image(Media),
    /// A sound.
    Audio(Media),
    /// A resource within the message.
    Resource(Embedded),
    /// A reference to a resource.
    ResourceLink(DeclaredLink),
}

/// A picture or sound.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Media {
    /// Media type.
    pub mime_type: String,
    /// Base64.
    pub data: String,
}

/// A resource within a message. It has either `text` or `blob`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Embedded {
    /// Its URI.
    pub uri: String,
    /// Media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// A text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blob: Option<String>,
}

/// A reference to a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Link)]
pub struct DeclaredLink {
    /// Its URI.
    pub uri: String,
    /// Programmatic name.
    pub name: String,
    /// Display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
}

/// A resource, or a template of many.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Resource)]
pub struct DeclaredResource {
    /// Its key: a URI, or a URI template (RFC 6570, levels 1 and 2).
    pub uri: String,
    /// Programmatic name.
    pub name: String,
    /// Display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Whether servers can publish it; true if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Descriptions of the template's variables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<DeclaredArgument>,
    /// Its content.
    pub holds: Holds,
}

/// The content of a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ResourceHolds)]
pub enum Holds {
    /// A text; in a template with placeholders: `{{name}}`.
    Text(String),
    /// A file in Base64.
    File(String),
    /// The response of an HTTP source to a GET.
    Http(HttpRead),
}

/// A GET request that answers reads of a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HttpRead {
    /// Name of the source, whose credential the request uses.
    pub source: String,
    /// Path below the source's base URL, with variables of the template in braces.
    pub path: String,
}

/// The state of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ServerStatus)]
pub enum Status {
    /// Never published.
    Draft,
    /// Answers AI clients.
    Published,
    /// Answers like an unknown server.
    Paused,
}

/// An MCP server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Server)]
pub struct DeclaredServer {
    /// Its key and its segment of the URL.
    pub slug: String,
    /// Display name; the slug if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Description for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Instructions for models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// `published` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// Names of sources. The server publishes all their enabled tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub from: Vec<String>,
    /// Single tools, beside those of `from`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ServerTool>,
    /// Prompts that it publishes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prompts: Vec<ServerPrompt>,
    /// Resources that it publishes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<ServerResource>,
}

/// A tool that a server publishes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerTool {
    /// Name of its source.
    pub source: String,
    /// Its operation, as in `tools` of the source, or its name.
    pub tool: String,
    /// Its name on this server; its own if absent.
    #[serde(default, rename = "as", skip_serializing_if = "Option::is_none")]
    pub published_name: Option<String>,
}

/// A prompt that a server publishes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerPrompt {
    /// Name of the MCP server that has it; absent if it is written here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Its name.
    pub prompt: String,
    /// Its name on this server; its own if absent.
    #[serde(default, rename = "as", skip_serializing_if = "Option::is_none")]
    pub published_name: Option<String>,
}

/// A resource that a server publishes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerResource {
    /// Name of the MCP server that has it; absent if it is written here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Its URI or template.
    pub uri: String,
    /// Its URI on this server; its own if absent.
    #[serde(default, rename = "as", skip_serializing_if = "Option::is_none")]
    pub published_uri: Option<String>,
}

/// The state of an endpoint of webhooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WebhookStatus {
    /// It takes deliveries.
    Active,
    /// Deliveries wait.
    Paused,
}

/// An endpoint that events of the workspace are sent to, as signed messages of Standard Webhooks.
/// The service makes its signing secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Webhook)]
pub struct DeclaredWebhook {
    /// Its key: an `https` URL of a public address. Another URL is another endpoint, with another
    /// signing secret.
    pub url: String,
    /// Types of the events that it subscribes to: at least one.
    #[schema(min_items = 1)]
    pub events: Vec<String>,
    /// A note for people: up to 200 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Headers of its own: up to 10.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<HeaderSecret>,
    /// `active` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<WebhookStatus>,
}
