//! An OpenAPI document and a base URL become an API that can be called.

use std::{
    fs, io,
    path::PathBuf,
    sync::Mutex,
    time::{Duration, Instant},
};

use http::HeaderMap;
use portolan_http_tools::{
    CallTarget, CompiledTool, Credential, CredentialSlot, Import, ImportOptions, InvalidCredential,
    MAX_DOCUMENT_BYTES, Problem, ReadError, Stop, TokenSource, ToolDraft,
    credential::CredentialHeader, read,
};
use portolan_model::{Clock, registry::SourceSettings};
use portolan_net::egress::{
    AllowedDestination, Authorities, Egress, EgressError, EgressPolicy, EgressRequest,
    EgressSetupError, Redirects,
};
use portolan_protocol::{
    CacheHint, Identity,
    initialize::Implementation,
    jsonrpc::Raw,
    tool::{Tool, ToolAnnotations},
};
use serde_json::json;
use url::Url;

use super::{Api, ApiTool, REVISION};

/// Time to fetch a document.
const FETCH_WITHIN: Duration = Duration::from_secs(30);
/// Time to read a document.
const READ_WITHIN: Duration = Duration::from_secs(30);

/// Where an OpenAPI document stands.
#[derive(Debug, Clone)]
pub enum DocumentPlace {
    /// A file of this machine.
    File(PathBuf),
    /// An address of this network.
    Url(Url),
}

/// An API as its operator names it.
#[derive(Debug, Clone)]
pub struct ApiSource {
    /// Its OpenAPI document.
    pub document: DocumentPlace,
    /// Where its paths begin. The servers that the document names are not called.
    pub base_url: Url,
    /// Headers of each request: the credential. Their values are masked in answers.
    pub headers: HeaderMap,
}

/// Why an API cannot be offered, for the person who runs the program.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// The file cannot be read.
    #[error("the OpenAPI document cannot be read: {0}")]
    File(#[from] io::Error),
    /// The address of the document does not answer.
    #[error("the OpenAPI document cannot be fetched: {0}")]
    Fetch(EgressError),
    /// It answers with another status than 200.
    #[error("the OpenAPI document cannot be fetched: its address answered with HTTP status {0}")]
    Status(u16),
    /// It is not an OpenAPI document that can be imported.
    #[error("the OpenAPI document cannot be used: {0}")]
    Document(String),
    /// It has no operation that can be a tool.
    #[error("the OpenAPI document has no operation that can be a tool")]
    NoTools,
    /// A header cannot be a credential.
    #[error("--header: {0}")]
    Header(#[from] InvalidCredential),
    /// The base URL cannot be called.
    #[error("--base-url: {0}")]
    BaseUrl(EgressError),
    /// The client could not be made.
    #[error("{0}")]
    Client(#[from] EgressSetupError),
}

impl Api {
    /// Reads the document and makes its tools.
    ///
    /// # Errors
    /// [`ApiError`].
    pub async fn load(source: ApiSource, authorities: &Authorities) -> Result<Self, ApiError> {
        let base_url = source.base_url;
        let egress = egress_to(&base_url, authorities)?;
        egress.check(&base_url).map_err(ApiError::BaseUrl)?;
        let credential = credential(&source.headers)?;
        let (document, document_url) = match source.document {
            DocumentPlace::File(path) => (fs::read(path)?, None),
            DocumentPlace::Url(url) => (fetched(&url, authorities).await?, Some(url)),
        };
        let import = tokio::task::spawn_blocking(move || imported(&document, document_url)).await;
        let import = import.map_err(io::Error::from)??;
        let mut tools: Vec<ApiTool> = import.tools().filter_map(tool).collect();
        if tools.is_empty() {
            return Err(ApiError::NoTools);
        }
        tools.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        for left_out in &import.operations {
            if let Err(reason) = &left_out.outcome {
                tracing::warn!(operation = left_out.key, "left out: {reason}");
            }
        }
        tracing::info!(
            api = import.title,
            version = import.version,
            tools = tools.len(),
            base_url = %base_url,
            "the OpenAPI document is read"
        );
        let name = Implementation::new(import.title.clone(), import.version.clone());
        let identity = Identity::new(&name);
        Ok(Self {
            discovery: discovery(&import, &identity),
            target: CallTarget::new(base_url, &SourceSettings::default()),
            egress,
            credential,
            tokens: TokenSource::new(Clock::system()),
            tools,
            identity,
            last_error: Mutex::default(),
        })
    }
}

/// A client that reaches the host of one address, private ones too. The guard refuses every other
/// private address.
fn egress_to(url: &Url, authorities: &Authorities) -> Result<Egress, EgressSetupError> {
    let port = url.port_or_known_default().unwrap_or_default();
    let host = url.host_str().unwrap_or_default();
    Egress::new(EgressPolicy {
        allow: vec![AllowedDestination::host(host, port)],
        authorities: authorities.clone(),
        ..EgressPolicy::default()
    })
}

async fn fetched(url: &Url, authorities: &Authorities) -> Result<Vec<u8>, ApiError> {
    let mut request = EgressRequest::get(url.clone());
    request.timeout = FETCH_WITHIN;
    request.max_response_bytes = MAX_DOCUMENT_BYTES;
    request.redirects = Redirects::SameOrigin;
    let answer = egress_to(url, authorities)?.send(request).await;
    let answer = answer.map_err(ApiError::Fetch)?;
    if answer.status != http::StatusCode::OK {
        return Err(ApiError::Status(answer.status.as_u16()));
    }
    Ok(answer.body.to_vec())
}

fn imported(document: &[u8], document_url: Option<Url>) -> Result<Import, ApiError> {
    let options = ImportOptions {
        document_url,
        ..ImportOptions::default()
    };
    let until = Instant::now() + READ_WITHIN;
    read(document, &options, until, &Stop::default()).map_err(|error| {
        let first = match &error {
            ReadError::Document(error) => error.problems.first(),
            _ => None,
        };
        ApiError::Document(first.map_or_else(|| error.to_string(), said))
    })
}

/// The problem with its place.
fn said(problem: &Problem) -> String {
    let Problem { message, .. } = problem;
    match (problem.line, problem.column, &problem.pointer) {
        (Some(line), Some(column), _) => format!("{message} (line {line}, column {column})"),
        (_, _, Some(pointer)) => format!("{message} (at {pointer})"),
        _ => message.clone(),
    }
}

fn credential(headers: &HeaderMap) -> Result<Option<CredentialSlot>, InvalidCredential> {
    if headers.is_empty() {
        return Ok(None);
    }
    let headers = headers.iter().map(|(name, value)| CredentialHeader {
        name: name.to_string(),
        value: String::from_utf8_lossy(value.as_bytes()).into_owned(),
    });
    let credential = Credential::Headers {
        headers: headers.collect(),
    };
    let credential = credential.checked()?;
    Ok(Some(CredentialSlot::new("attach".to_owned(), credential)))
}

fn tool(draft: &ToolDraft) -> Option<ApiTool> {
    let hints = draft.annotations;
    let mut shown = Tool::new(&draft.name, Raw::of(&draft.input_schema).ok()?);
    shown.title = Some(draft.title.clone());
    shown.description = Some(draft.description.clone());
    shown.output_schema = draft.output_schema.as_ref().map(Raw::of).transpose().ok()?;
    shown.annotations = Some(ToolAnnotations {
        title: None,
        read_only_hint: Some(hints.read_only_hint),
        destructive_hint: Some(hints.destructive_hint),
        idempotent_hint: Some(hints.idempotent_hint),
        open_world_hint: Some(hints.open_world_hint),
    });
    Some(ApiTool {
        name: draft.name.clone(),
        definition: shown.to_json(REVISION),
        compiled: CompiledTool::new(
            draft.input_schema.clone(),
            draft.output_schema.clone(),
            draft.plan.clone(),
        ),
    })
}

/// The result of `server/discover`: one revision, and tools alone.
fn discovery(import: &Import, identity: &Identity) -> Vec<u8> {
    let card: serde_json::Value = identity.json(REVISION).read("").unwrap_or_default();
    let hint = CacheHint::DISCOVER;
    let mut result = json!({
        "resultType": "complete",
        "supportedVersions": [REVISION.as_str()],
        "capabilities": {"tools": {}},
        "ttlMs": hint.ttl_ms,
        "cacheScope": "private",
        "_meta": {portolan_protocol::meta::SERVER_INFO: card},
    });
    if let Some(words) = &import.description {
        result["instructions"] = json!(words);
    }
    serde_json::to_vec(&result).unwrap_or_default()
}
