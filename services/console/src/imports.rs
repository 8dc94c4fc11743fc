//! OpenAPI documents: fetched or pasted, read, and shown before anything is stored.

use std::collections::BTreeMap;

use axum::{Json, extract::State};
use http::{HeaderValue, StatusCode, header};
use portolan_http_tools::{
    DocumentError, Import, ImportOptions, ImportedOperation, MAX_DOCUMENT_BYTES, Problem,
    ReadError, SecurityHint, Severity, read,
};
use portolan_model::{Digest, id::TenantId, member::Action};
use portolan_net::egress::{EgressError, EgressRequest};
use portolan_site::{console_error::ConsoleError, state::AuthState};
use serde::{Deserialize, Serialize};
use url::Url;
use utoipa::ToSchema;

use crate::{input::JsonBody, workspace::Workspace};

/// Most bytes of a request with a document: 10 MiB of text, and space for JSON's escapes.
pub(crate) const DOCUMENT_BODY_LIMIT: usize = 24 * 1024 * 1024;

const REDIRECTS: usize = 5;

const FETCH_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(20);

/// An OpenAPI document, as text or by its address.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum DocumentInput {
    /// JSON or YAML, up to 10 MiB.
    Text {
        /// The document.
        text: String,
    },
    /// Fetched by the server.
    Url {
        /// http(s) address of the document.
        url: String,
    },
}

/// The document to preview.
#[derive(Debug, Deserialize, ToSchema)]
pub struct PreviewRequest {
    /// The document.
    pub(crate) input: DocumentInput,
}

/// A document, read.
pub(crate) struct Loaded {
    pub text: Vec<u8>,
    pub url: Option<Url>,
    pub digest: Digest,
    pub import: Import,
}

/// Fetches the document if needed, reads and imports it. `names` are the present names of the
/// source's tools, by key.
pub(crate) async fn load(
    state: &AuthState,
    tenant: TenantId,
    input: DocumentInput,
    names: BTreeMap<String, String>,
) -> Result<Loaded, ConsoleError> {
    let (text, url) = match input {
        DocumentInput::Text { text } => (text.into_bytes(), None),
        DocumentInput::Url { url } => {
            let (text, url) = fetched(state, &url).await?;
            (text, Some(url))
        }
    };
    read_document(state, tenant, (text, url), names).await
}

/// Fetches a document: its text, and the address of the last redirect.
pub(crate) async fn fetched(
    state: &AuthState,
    address: &str,
) -> Result<(Vec<u8>, Url), ConsoleError> {
    let fetched = tokio::time::timeout(FETCH_TIMEOUT, fetch(state, address.trim())).await;
    fetched.unwrap_or_else(|_elapsed| {
        Err(unreachable(
            "The address took too long to answer. You can paste the document's text instead."
                .to_owned(),
        ))
    })
}

/// Reads and imports the text of a document, with the address that it has.
pub(crate) async fn read_document(
    state: &AuthState,
    tenant: TenantId,
    (text, url): (Vec<u8>, Option<Url>),
    names: BTreeMap<String, String>,
) -> Result<Loaded, ConsoleError> {
    let options = ImportOptions {
        document_url: url.clone(),
        names,
    };
    let work = move |until, stop: &_| {
        let read = read(&text, &options, until, stop);
        let digest = portolan_keys::digest(&text);
        (text, digest, read)
    };
    let (text, digest, read) = state.readers().read(tenant, work).await?;
    let import = read.map_err(|error| match error {
        ReadError::Document(error) => unusable(&error),
        // The client never sees this answer, because its request has ended.
        ReadError::TooLate | ReadError::Stopped => ConsoleError::invalid(
            "document_too_slow",
            "Reading the document took too long. Try again later, or split it by tag.",
        )
        .field("input"),
    })?;
    Ok(Loaded {
        text,
        url,
        digest,
        import,
    })
}

fn unusable(error: &DocumentError) -> ConsoleError {
    let first = error.problems.first();
    let message = first.map_or_else(
        || "The document cannot be used.".to_owned(),
        |problem| match (problem.line, problem.column) {
            (Some(line), Some(column)) => {
                format!("Line {line}, column {column}: {}", problem.message)
            }
            (Some(line), None) => format!("Line {line}: {}", problem.message),
            _ => problem.message.clone(),
        },
    );
    let problems: Vec<ProblemView> = error
        .problems
        .iter()
        .cloned()
        .map(ProblemView::from)
        .collect();
    ConsoleError::invalid("document_invalid", message)
        .field("input")
        .details(serde_json::json!({ "problems": problems }))
}

fn unreachable(message: String) -> ConsoleError {
    ConsoleError::new(StatusCode::BAD_GATEWAY, "document_unreachable", message).field("input.url")
}

/// Fetches a document. The request carries no credential, so the document must be public, and
/// redirects may lead to another origin. Each hop is checked like the first.
async fn fetch(state: &AuthState, text: &str) -> Result<(Vec<u8>, Url), ConsoleError> {
    let refused =
        |message: String| ConsoleError::invalid("document_url_refused", message).field("input.url");
    let mut url = Url::parse(text).map_err(|_| {
        refused("Give the complete address of the document, starting with https://.".to_owned())
    })?;
    for _ in 0..=REDIRECTS {
        let mut request = EgressRequest::get(url.clone());
        request.timeout = FETCH_TIMEOUT;
        request.max_response_bytes = MAX_DOCUMENT_BYTES;
        request.headers.insert(
            header::ACCEPT,
            HeaderValue::from_static("application/json, application/yaml, application/vnd.oai.openapi, text/yaml, */*;q=0.5"),
        );
        let response = match state.egress.send(request).await {
            Ok(response) => response,
            Err(EgressError::TooLarge { .. }) => {
                return Err(ConsoleError::new(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    "document_too_large",
                    "The document is larger than 10 MiB. Remove examples from it, or split it by tag.",
                )
                .field("input.url"));
            }
            Err(error) if error.is_refusal() => {
                return Err(refused(format!("The document was not fetched: {error}.")));
            }
            Err(error) => {
                return Err(unreachable(format!(
                    "The document could not be fetched: {error}. You can paste its text instead."
                )));
            }
        };
        if response.status.is_redirection() {
            let target = response
                .headers
                .get(header::LOCATION)
                .and_then(|value| value.to_str().ok());
            url = target
                .and_then(|target| response.final_url.join(target).ok())
                .ok_or_else(|| {
                    unreachable(
                        "The address redirects to nowhere. Give the document's final address."
                            .to_owned(),
                    )
                })?;
            continue;
        }
        if !response.status.is_success() {
            return Err(unreachable(format!(
                "The address answered {}. If the document is not public, paste its text instead.",
                response.status
            )));
        }
        return Ok((response.body.to_vec(), response.final_url));
    }
    Err(unreachable(
        "The address redirects too many times. Give the document's final address.".to_owned(),
    ))
}

/// A document before it is stored.
#[derive(Debug, Serialize, ToSchema)]
pub struct ImportPreview {
    title: String,
    version: String,
    /// OpenAPI version as written.
    spec_version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    description: Option<String>,
    servers: Vec<ServerChoiceView>,
    /// The server that the import would use.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    base_url: Option<String>,
    security: Vec<SecurityHintView>,
    operations: Vec<OperationPreview>,
    problems: Vec<ProblemView>,
    /// SHA-256 of the document, hexadecimal.
    digest: String,
}

/// A server that the document names.
#[derive(Debug, Serialize, ToSchema)]
pub struct ServerChoiceView {
    url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    description: Option<String>,
}

/// The result for an operation.
#[derive(Debug, Serialize, ToSchema)]
pub struct OperationPreview {
    /// METHOD and path.
    #[schema(example = "GET /pets/{id}")]
    key: String,
    method: String,
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    tool_name: Option<String>,
    title: String,
    description: String,
    tags: Vec<String>,
    deprecated: bool,
    status: OperationStatus,
    /// The reason why it is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    reason: Option<String>,
    warnings: Vec<String>,
    read_only: bool,
    destructive: bool,
}

/// Whether an operation becomes a tool.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OperationStatus {
    /// It becomes a tool.
    Tool,
    /// It is left out; `reason` states why.
    LeftOut,
}

/// A problem of a document, and its position.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Problem)]
pub struct ProblemView {
    severity: SeverityView,
    message: String,
    /// JSON pointer into the document.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pointer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    column: Option<usize>,
}

/// The severity of a problem.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Severity)]
pub enum SeverityView {
    /// The document cannot be used.
    Error,
    /// Repaired or ignored.
    Warning,
}

impl From<Problem> for ProblemView {
    fn from(problem: Problem) -> Self {
        Self {
            severity: match problem.severity {
                Severity::Error => SeverityView::Error,
                Severity::Warning => SeverityView::Warning,
            },
            message: problem.message,
            pointer: problem.pointer,
            line: problem.line,
            column: problem.column,
        }
    }
}

/// A credential that the API seems to require.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = SecurityHint)]
pub struct SecurityHintView {
    kind: SecurityKindName,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    name: Option<String>,
    /// `header`, `query` or `cookie`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    location: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    token_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    authorization_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    issuer: Option<String>,
    /// Scopes in the document.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    scopes: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    description: Option<String>,
}

/// Kinds of credentials that a document can require.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = SecurityKind)]
pub(crate) enum SecurityKindName {
    ApiKey,
    Bearer,
    Basic,
    OauthClientCredentials,
    OauthAuthorizationCode,
}

/// The stored hints in the form of the API. Unreadable hints of another release are left out.
pub(crate) fn hint_views(stored: &serde_json::Value) -> Vec<SecurityHintView> {
    let items = stored.as_array().map(Vec::as_slice).unwrap_or_default();
    items
        .iter()
        .filter_map(|hint| serde_json::from_value(hint.clone()).ok())
        .collect()
}

/// The hints in their stored form.
pub(crate) fn stored_hints(hints: &[SecurityHint]) -> Result<serde_json::Value, ConsoleError> {
    serde_json::to_value(hints).map_err(|error| ConsoleError::internal("security hints", error))
}

pub(crate) fn operation_view(operation: &ImportedOperation) -> OperationPreview {
    let tool = operation.outcome.as_ref().ok();
    OperationPreview {
        key: operation.key.clone(),
        method: operation.method.clone(),
        path: operation.path.clone(),
        tool_name: tool.map(|tool| tool.name.clone()),
        title: operation.title.clone(),
        description: operation.description.clone(),
        tags: operation.tags.clone(),
        deprecated: operation.deprecated,
        status: if tool.is_some() {
            OperationStatus::Tool
        } else {
            OperationStatus::LeftOut
        },
        reason: operation.outcome.as_ref().err().cloned(),
        warnings: tool.map(|tool| tool.warnings.clone()).unwrap_or_default(),
        read_only: tool.is_some_and(|tool| tool.annotations.read_only_hint),
        destructive: tool.is_some_and(|tool| tool.annotations.destructive_hint),
    }
}

/// A digest as text.
pub(crate) fn hex(digest: &Digest) -> String {
    digest
        .as_bytes()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn preview(loaded: Loaded) -> Result<ImportPreview, ConsoleError> {
    let import = loaded.import;
    Ok(ImportPreview {
        digest: hex(&loaded.digest),
        operations: import.operations.iter().map(operation_view).collect(),
        security: hint_views(&stored_hints(&import.security)?),
        servers: import
            .servers
            .into_iter()
            .map(|server| ServerChoiceView {
                url: server.url,
                description: server.description,
            })
            .collect(),
        problems: import.problems.into_iter().map(ProblemView::from).collect(),
        title: import.title,
        version: import.version,
        spec_version: import.spec_version,
        description: import.description,
        base_url: import.base_url,
    })
}

/// Reads a document and shows the result for each operation. Stores nothing.
#[utoipa::path(post, path = "/workspaces/{ws}/imports/preview", tag = "sources", params(("ws" = String, Path, description = "Slug")),
    request_body = PreviewRequest, responses((status = 200, description = "What it would become.", body = ImportPreview)))]
pub(crate) async fn preview_import(
    State(state): State<AuthState>,
    workspace: Workspace,
    JsonBody(request): JsonBody<PreviewRequest>,
) -> Result<Json<ImportPreview>, ConsoleError> {
    workspace.require(Action::EditRegistry)?;
    let loaded = load(&state, workspace.id, request.input, BTreeMap::new()).await?;
    Ok(Json(preview(loaded)?))
}
