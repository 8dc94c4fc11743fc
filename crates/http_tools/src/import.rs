//! A document as tools: what each operation became, or why it was left out.

use std::{
    collections::{BTreeMap, HashSet},
    ops::ControlFlow,
    time::Instant,
};

use serde_json::Value;
use url::Url;

use crate::{
    document::{Document, DocumentError, Problem},
    effort::{self, Bounds, GivenUp, Stop},
    naming,
    operation::{self, SchemaChecks, Site, ToolDraft},
    refs,
    security::{self, SecurityHint},
};

/// Operations of one document.
const MAX_OPERATIONS: usize = 3_000;
/// Operations that are listed, those that are left out included.
const MAX_LISTED: usize = 10_000;
/// Most problems that are reported.
const MAX_PROBLEMS: usize = 200;
/// Bytes of a path, a server's address and the value of one of its variables.
const MAX_ADDRESS: usize = 2_048;
/// Steps of an import, whatever its size: a second or two. Schemas may be shared by many
/// operations.
const STEPS: usize = 50_000_000;
/// Steps for each byte of the document.
const STEPS_A_BYTE: usize = 8;
const METHODS: [&str; 7] = ["get", "put", "post", "delete", "options", "head", "patch"];

/// Input of the importer besides the document.
#[derive(Debug, Clone, Default)]
pub struct ImportOptions {
    /// Where the document was fetched from: relative server URLs are resolved against it.
    pub document_url: Option<Url>,
    /// Names already given, by key: a re-import keeps them.
    pub names: BTreeMap<String, String>,
}

/// A base URL that the document offers.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ServerChoice {
    /// Absolute, variables replaced by their defaults; or as written if it cannot be made absolute.
    pub url: String,
    /// The document's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// One operation.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedOperation {
    /// `METHOD /path`.
    pub key: String,
    /// Upper-case method.
    pub method: String,
    /// Path as written.
    pub path: String,
    /// Name for people.
    pub title: String,
    /// Description.
    pub description: String,
    /// The document's tags.
    pub tags: Vec<String>,
    /// Marked as deprecated.
    pub deprecated: bool,
    /// The tool, or a sentence that says why there is none.
    pub outcome: Result<Box<ToolDraft>, String>,
}

/// A document, imported.
#[derive(Debug, Clone)]
pub struct Import {
    /// `info.title`.
    pub title: String,
    /// `info.version`.
    pub version: String,
    /// The OpenAPI version as written.
    pub spec_version: String,
    /// `info.description`, shortened.
    pub description: Option<String>,
    /// Base URLs to choose from.
    pub servers: Vec<ServerChoice>,
    /// The first of them that is absolute http(s).
    pub base_url: Option<String>,
    /// Which credentials the API seems to want.
    pub security: Vec<SecurityHint>,
    /// In the order of the document.
    pub operations: Vec<ImportedOperation>,
    /// Repairs, and ignored parts, outside single operations.
    pub problems: Vec<Problem>,
}

impl Import {
    /// The tools, in the order of the document.
    pub fn tools(&self) -> impl Iterator<Item = &ToolDraft> {
        self.operations
            .iter()
            .filter_map(|operation| operation.outcome.as_ref().ok().map(Box::as_ref))
    }
}

/// Why a document was not read.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ReadError {
    /// It cannot be used.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// The time was over.
    #[error("reading the document took too long")]
    TooLate,
    /// The caller is gone.
    #[error("nobody waits for the document any more")]
    Stopped,
}

/// Reads a document and imports it (REVIEW-S-1). The work is proportional to the bytes of the
/// document; a document that needs more is refused. It ends soon after `until`, or when `stop`
/// is set. It takes up to some seconds of CPU: call it on a blocking thread.
///
/// # Errors
/// [`ReadError`].
pub fn read(
    bytes: &[u8],
    options: &ImportOptions,
    until: Instant,
    stop: &Stop,
) -> Result<Import, ReadError> {
    let bounds = Bounds {
        steps: STEPS + bytes.len().saturating_mul(STEPS_A_BYTE),
        until,
        stop: Some(stop.clone()),
    };
    let work = || Document::parse(bytes).map(|document| import(&document, options));
    match effort::within(bounds, work) {
        Ok(read) => Ok(read?),
        Err(GivenUp::TooMuch) => Err(DocumentError::from(Problem::error(
            "The document asks for more work than its size allows: its operations share parts that are too large or refer to \
             each other too often. Split it by tag.",
        ))
        .into()),
        Err(GivenUp::TooLate) => Err(ReadError::TooLate),
        Err(GivenUp::Stopped) => Err(ReadError::Stopped),
    }
}

/// Imports every operation of a document. Pure; [`read`] bounds it.
pub fn import(document: &Document, options: &ImportOptions) -> Import {
    let root = &document.root;
    let text = |pointer: &str| {
        root.pointer(pointer)
            .and_then(Value::as_str)
            .map(str::trim)
            .filter(|t| !t.is_empty())
    };
    let security = security::hints(document);
    let Operations {
        mut found,
        mut problems,
        ..
    } = Operations::read(document, &security);
    give_names(&mut found, &options.names);
    if found.is_empty() {
        problems.push(Problem::warning(
            "The document has no operations, so there is nothing to make tools from.",
            "/paths",
        ));
    }
    let servers = servers(
        root.get("servers"),
        options.document_url.as_ref(),
        &mut problems,
    );
    if problems.len() > MAX_PROBLEMS {
        problems.truncate(MAX_PROBLEMS - 1);
        problems.push(Problem::warning(
            "There are more problems of this kind.",
            "",
        ));
    }
    let base_url = servers
        .iter()
        .map(|server| &server.url)
        .find(|url| is_absolute(url))
        .cloned();
    Import {
        title: operation::cut(text("/info/title").unwrap_or("Untitled API"), 200),
        version: version(root),
        spec_version: document.version_text.clone(),
        description: text("/info/description")
            .or_else(|| text("/info/summary"))
            .map(|text| operation::cut(text, 2_000)),
        servers,
        base_url,
        operations: found,
        problems,
        security,
    }
}

/// `info.version`; some documents write a number.
fn version(root: &Value) -> String {
    match root.pointer("/info/version") {
        Some(Value::String(version)) => operation::cut(version, 100),
        Some(other @ (Value::Number(_) | Value::Bool(_))) => other.to_string(),
        _ => String::new(),
    }
}

/// The operations of a document, and what is wrong with its paths.
struct Operations<'d> {
    document: &'d Document,
    hints: &'d [SecurityHint],
    found: Vec<ImportedOperation>,
    problems: Vec<Problem>,
    checks: SchemaChecks,
    keys: HashSet<String>,
}

impl<'d> Operations<'d> {
    fn read(document: &'d Document, hints: &'d [SecurityHint]) -> Self {
        let mut all = Self {
            document,
            hints,
            found: Vec::new(),
            problems: document.problems.clone(),
            checks: SchemaChecks::default(),
            keys: HashSet::new(),
        };
        let paths = document.root.get("paths").and_then(Value::as_object);
        for (path, written) in paths.into_iter().flatten() {
            effort::spend(8);
            effort::spend_text(path);
            if path.starts_with("x-") {
                continue;
            }
            if all.path(path, written).is_break() {
                break;
            }
        }
        all
    }

    /// Reads the operations of a path. Breaks when there are as many as are listed.
    fn path(&mut self, path: &str, written: &'d Value) -> ControlFlow<()> {
        let pointer = format!("/paths/{}", refs::escape_step(path));
        let item = refs::resolve(&self.document.root, written).map_err(|fault| fault.to_string());
        let item = item.and_then(|item| {
            let methods = item.as_object();
            let methods = methods.ok_or_else(|| "it is not an object".to_owned())?;
            Ok((item, methods))
        });
        let (item, methods) = match item {
            Ok(found) => found,
            Err(fault) => {
                self.problems.push(Problem::warning(
                    format!("The path `{path}` was left out: {fault}."),
                    pointer,
                ));
                return ControlFlow::Continue(());
            }
        };
        for (method, operation) in methods {
            effort::spend(2);
            effort::spend_text(method);
            let method = method.to_ascii_lowercase();
            if !METHODS.contains(&method.as_str()) || !operation.is_object() {
                continue;
            }
            if self.found.len() >= MAX_LISTED {
                self.problems.push(Problem::warning(
                    format!("Only the first {MAX_LISTED} operations were looked at; split the document by tag."),
                    pointer,
                ));
                return ControlFlow::Break(());
            }
            effort::spend(64);
            let site = Site {
                document: self.document,
                hints: self.hints,
                method: method.to_ascii_uppercase(),
                path: path_of(path),
                key: format!("{} {}", method.to_ascii_uppercase(), path.trim()),
                path_item: item,
                operation,
                pointer: format!("{pointer}/{method}"),
            };
            self.operation(site, path);
        }
        ControlFlow::Continue(())
    }

    /// Adds an operation, with its tool or the reason for the absence of one. `path` is as written.
    fn operation(&mut self, site: Site<'_>, path: &str) {
        let key = site.key.clone();
        if !self.keys.insert(key.clone()) {
            self.problems.push(Problem::warning(
                format!("`{key}` stands twice; the first was taken."),
                site.pointer,
            ));
            return;
        }
        let outcome = if self.found.len() >= MAX_OPERATIONS {
            Err(format!(
                "The document has more than {MAX_OPERATIONS} operations; split it by tag."
            ))
        } else if path.len() > MAX_ADDRESS {
            Err(format!("Its path has more than {MAX_ADDRESS} bytes."))
        } else if !path.starts_with('/') {
            Err("Its path does not start with `/`.".to_owned())
        } else if let Some(server) = own_server(site.operation, site.path_item) {
            Err(format!(
                "It names its own server ({}), so the source's credential must not go there; import it as a source of its own.",
                operation::cut(server, 200)
            ))
        } else {
            operation::draft(&site, &mut self.checks).map(Box::new)
        };
        self.found.push(ImportedOperation {
            key,
            title: site.title(),
            description: site.description(),
            tags: tags(site.operation),
            deprecated: site.is_deprecated(),
            method: site.method,
            path: site.path,
            outcome,
        });
    }
}

/// A fragment in a path tells two operations of one address apart in some documents. It stays in
/// the key and never reaches a server.
fn path_of(path: &str) -> String {
    path.split('#').next().unwrap_or_default().trim().to_owned()
}

fn tags(operation: &Value) -> Vec<String> {
    operation
        .get("tags")
        .and_then(Value::as_array)
        .map(|tags| {
            tags.iter()
                .take(100)
                .filter_map(Value::as_str)
                .take(10)
                .map(|tag| operation::cut(tag, 100))
                .collect()
        })
        .unwrap_or_default()
}

/// An absolute server of the operation or its path: the tool would leave the source's origin.
fn own_server<'d>(operation: &'d Value, item: &'d Value) -> Option<&'d str> {
    let servers = operation
        .get("servers")
        .or_else(|| item.get("servers"))?
        .as_array()?;
    let url = servers.first()?.get("url")?.as_str()?;
    (url.contains("://")).then_some(url)
}

fn give_names(operations: &mut [ImportedOperation], taken: &BTreeMap<String, String>) {
    let wanted: BTreeMap<String, String> = operations
        .iter()
        .filter_map(|operation| {
            operation
                .outcome
                .as_ref()
                .ok()
                .map(|tool| (tool.key.clone(), tool.name.clone()))
        })
        .collect();
    let mut names = naming::unique(&wanted, taken);
    for operation in operations {
        if let Ok(tool) = &mut operation.outcome
            && let Some(name) = names.remove(&tool.key)
        {
            tool.name = name;
        }
    }
}

fn is_absolute(url: &str) -> bool {
    Url::parse(url)
        .is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.host_str().is_some())
}

fn servers(
    list: Option<&Value>,
    document_url: Option<&Url>,
    problems: &mut Vec<Problem>,
) -> Vec<ServerChoice> {
    let mut out: Vec<ServerChoice> = Vec::new();
    let written = list
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    for (index, server) in written.iter().enumerate().take(50) {
        let Some(template) = server.get("url").and_then(Value::as_str) else {
            continue;
        };
        let mut url = template.trim().to_owned();
        if url.len() > MAX_ADDRESS {
            continue;
        }
        for (name, variable) in server
            .get("variables")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            effort::spend(16);
            let value = match variable.get("default") {
                Some(Value::String(text)) if text.len() <= MAX_ADDRESS => text.clone(),
                Some(other @ (Value::Number(_) | Value::Bool(_))) => other.to_string(),
                Some(_) => break,
                None => continue,
            };
            let placeholder = format!("{{{name}}}");
            // The values may hold placeholders again, as many as they like.
            let times = url.matches(&placeholder).count();
            if url.len() + times.saturating_mul(value.len()) > MAX_ADDRESS {
                break;
            }
            url = url.replace(&placeholder, &value);
        }
        if !is_absolute(&url)
            && let Some(resolved) = document_url.and_then(|base| base.join(&url).ok())
        {
            resolved.as_str().clone_into(&mut url);
        }
        if url.contains('{') {
            problems.push(Problem::warning(
                format!("The server `{template}` has a variable without a default; write the base URL yourself."),
                format!("/servers/{index}"),
            ));
        }
        let choice = ServerChoice {
            url: url.trim_end_matches('/').to_owned(),
            description: server
                .get("description")
                .and_then(Value::as_str)
                .map(|text| operation::cut(text, 200)),
        };
        if !choice.url.is_empty() && !out.iter().any(|present| present.url == choice.url) {
            out.push(choice);
        }
    }
    if out.is_empty()
        && let Some(base) = document_url.and_then(|base| base.join("/").ok())
    {
        // OpenAPI 3.1 §4.8.1: without `servers`, the document's own origin.
        out.push(ServerChoice {
            url: base.as_str().trim_end_matches('/').to_owned(),
            description: None,
        });
    }
    out
}
