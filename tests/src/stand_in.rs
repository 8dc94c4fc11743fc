//! An API that exists only as its OpenAPI document: each operation answers with a value made from its response schema, and every
//! request is kept. Works on the document itself, not on what the importer made of it, so that the two can disagree.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use axum::{
    Json, Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, Method, StatusCode, Uri, header},
    response::{IntoResponse, Response},
};
use serde_json::{Map, Value, json};

/// A request that reached the stand-in.
#[derive(Debug, Clone)]
pub struct Received {
    /// `METHOD /path/{template}` of the document, if the request fits one.
    pub operation: Option<String>,
    /// As sent.
    pub path: String,
    /// As sent.
    pub query: String,
    /// As sent.
    pub headers: HeaderMap,
    /// As sent.
    pub body: Bytes,
}

/// The running API.
#[derive(Debug, Clone)]
pub struct StandIn {
    address: SocketAddr,
    received: Arc<Mutex<Vec<Received>>>,
}

#[derive(Debug, Clone)]
struct Api {
    document: Arc<Value>,
    received: Arc<Mutex<Vec<Received>>>,
}

impl StandIn {
    /// Starts on a free port of the loopback address.
    ///
    /// # Errors
    /// When no port can be bound.
    pub async fn start(document: Value) -> std::io::Result<Self> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let received = Arc::<Mutex<Vec<Received>>>::default();
        let api = Api {
            document: Arc::new(document),
            received: Arc::clone(&received),
        };
        let router = Router::new().fallback(answer).with_state(api);
        #[expect(clippy::disallowed_methods, reason = "it ends with the test's runtime")]
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(Self { address, received })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its base URL.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Takes the newest request out.
    #[must_use]
    pub fn take_last(&self) -> Option<Received> {
        self.received
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop()
    }
}

async fn answer(
    State(api): State<Api>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let found = find(&api.document, &method, uri.path());
    let received = Received {
        operation: found.as_ref().map(|(key, _)| key.clone()),
        path: uri.path().to_owned(),
        query: uri.query().unwrap_or_default().to_owned(),
        headers,
        body,
    };
    api.received
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(received);
    match found {
        Some((_, operation)) => respond(&api.document, operation),
        None => (
            StatusCode::NOT_FOUND,
            "no operation of the document has this method and path",
        )
            .into_response(),
    }
}

/// The operation of the document that a request means. Templates with more literal text go first (OpenAPI, "Paths Object").
fn find<'d>(document: &'d Value, method: &Method, path: &str) -> Option<(String, &'d Value)> {
    let paths = document.get("paths")?.as_object()?;
    let mut fits: Vec<(&String, &Value)> = paths
        .iter()
        .filter(|(template, _)| matches(template, path))
        .filter_map(|(template, item)| {
            Some((
                template,
                resolve(document, item).get(method.as_str().to_ascii_lowercase())?,
            ))
        })
        .collect();
    fits.sort_by_key(|(template, _)| std::cmp::Reverse(literal_length(template)));
    // Some documents distinguish operations of one path by a fragment, which never reaches a
    // server.
    fits.first().map(|(template, operation)| {
        (
            format!("{method} {}", without_fragment(template)),
            *operation,
        )
    })
}

fn without_fragment(template: &str) -> &str {
    template.split('#').next().unwrap_or_default()
}

/// Bytes outside of braces.
fn literal_length(template: &str) -> usize {
    let placeholders: usize = template
        .split('{')
        .skip(1)
        .filter_map(|rest| rest.find('}'))
        .sum();
    without_fragment(template)
        .len()
        .saturating_sub(placeholders)
}

fn matches(template: &str, path: &str) -> bool {
    let template = template.split(['?', '#']).next().unwrap_or_default();
    let (wanted, given): (Vec<&str>, Vec<&str>) =
        (template.split('/').collect(), path.split('/').collect());
    wanted.len() == given.len()
        && wanted
            .iter()
            .zip(given)
            .all(|(wanted, given)| segment_matches(wanted, given))
}

/// `{a}.json`, `{base}...{head}`: the literal pieces must occur in order.
fn segment_matches(template: &str, given: &str) -> bool {
    let Some((prefix, rest)) = template.split_once('{') else {
        return template == given;
    };
    let Some(mut given) = given.strip_prefix(prefix) else {
        return false;
    };
    let mut rest = rest;
    loop {
        let Some((_, after)) = rest.split_once('}') else {
            return false;
        };
        let literal = after.split('{').next().unwrap_or_default();
        if literal.is_empty() {
            return true;
        }
        let Some(at) = given.rfind(literal) else {
            return false;
        };
        given = &given[at + literal.len()..];
        match after.split_once('{') {
            Some((_, next)) => rest = next,
            None => return given.is_empty(),
        }
    }
}

fn resolve<'d>(document: &'d Value, value: &'d Value) -> &'d Value {
    let mut value = value;
    for _ in 0..20 {
        let Some(pointer) = value
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|target| target.strip_prefix('#'))
        else {
            break;
        };
        let Some(next) = document.pointer(pointer) else {
            break;
        };
        value = next;
    }
    value
}

fn respond(document: &Value, operation: &Value) -> Response {
    let empty = Map::new();
    let responses = operation
        .get("responses")
        .and_then(Value::as_object)
        .unwrap_or(&empty);
    let mut successes: Vec<(&String, &Value)> = responses
        .iter()
        .filter(|(status, _)| status.starts_with('2'))
        .map(|(status, r)| (status, resolve(document, r)))
        .collect();
    successes
        .sort_by_key(|(status, response)| (response.get("content").is_none(), (*status).clone()));
    let Some((status, response)) = successes.first() else {
        return StatusCode::NO_CONTENT.into_response();
    };
    let status = status
        .parse::<u16>()
        .ok()
        .and_then(|code| StatusCode::from_u16(code).ok())
        .unwrap_or(StatusCode::OK);
    let content = response
        .get("content")
        .and_then(Value::as_object)
        .unwrap_or(&empty);
    let json = content.iter().find(|(kind, _)| kind.contains("json"));
    match (json, content.iter().next()) {
        (Some((kind, media)), _) => {
            let value = media
                .get("schema")
                .map_or_else(|| json!({}), |schema| example(document, schema, 0));
            (
                [(header::CONTENT_TYPE, kind.clone())],
                Json(value).into_response().into_body(),
            )
                .into_response()
        }
        (None, Some((kind, _))) => (
            status,
            [(header::CONTENT_TYPE, kind.replace('*', "plain"))],
            "stand-in",
        )
            .into_response(),
        (None, None) => status.into_response(),
    }
}

/// A small value that a schema admits, as far as keywords without patterns go.
#[must_use]
pub fn example(document: &Value, schema: &Value, depth: usize) -> Value {
    let schema = resolve(document, schema);
    for key in ["const", "default"] {
        if let Some(value) = schema.get(key).filter(|value| !value.is_null()) {
            return value.clone();
        }
    }
    if let Some(first) = schema
        .get("enum")
        .and_then(Value::as_array)
        .and_then(|values| values.first())
    {
        return first.clone();
    }
    if let Some(parts) = schema.get("allOf").and_then(Value::as_array) {
        let mut whole = Map::new();
        let mut other = None;
        for part in parts {
            match example(document, part, depth) {
                Value::Object(fields) => whole.extend(fields),
                value => other = Some(value),
            }
        }
        if let Value::Object(own) = object(document, schema, depth) {
            whole.extend(own);
        }
        return other
            .filter(|_| whole.is_empty())
            .unwrap_or(Value::Object(whole));
    }
    for key in ["oneOf", "anyOf"] {
        if let Some(first) = schema
            .get(key)
            .and_then(Value::as_array)
            .and_then(|parts| parts.first())
        {
            let mut value = example(document, first, depth);
            if let (Value::Object(fields), Value::Object(own)) =
                (&mut value, object(document, schema, depth))
            {
                fields.extend(own);
            }
            return value;
        }
    }
    let kind = match schema.get("type") {
        Some(Value::String(kind)) => kind.as_str(),
        Some(Value::Array(kinds)) => kinds.first().and_then(Value::as_str).unwrap_or("null"),
        _ if schema.get("properties").is_some() => "object",
        _ if schema.get("items").is_some() => "array",
        _ => "object",
    };
    match kind {
        "string" => Value::String(text(schema)),
        "integer" | "number" => number(schema, kind == "integer"),
        "boolean" => Value::Bool(true),
        "array" => {
            let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0);
            let count = if depth < 3 { least.max(1) } else { least };
            let item = schema.get("items").unwrap_or(&Value::Null);
            let mut items: Vec<Value> = (0..count.min(10))
                .map(|_| example(document, item, depth + 1))
                .collect();
            if schema.get("uniqueItems") == Some(&Value::Bool(true)) {
                items.truncate(1);
            }
            Value::Array(items)
        }
        "null" => Value::Null,
        _ => object(document, schema, depth),
    }
}

fn object(document: &Value, schema: &Value, depth: usize) -> Value {
    let mut fields = Map::new();
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    for (name, property) in schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        let is_hidden = resolve(document, property).get("writeOnly") == Some(&Value::Bool(true));
        if !is_hidden && depth < 12 && required.contains(&name.as_str()) {
            fields.insert(name.clone(), example(document, property, depth + 1));
        }
    }
    Value::Object(fields)
}

fn text(schema: &Value) -> String {
    let base = match schema.get("format").and_then(Value::as_str) {
        Some("date-time") => "2026-01-02T03:04:05Z",
        Some("date") => "2026-01-02",
        Some("uri" | "url") => "https://example.com/",
        Some("email") => "ann@example.com",
        Some("uuid") => "01939d6c-1e7b-7c6e-8f3a-2b1c0d9e8f7a",
        _ if schema.get("contentEncoding").is_some() => "aGVsbG8=",
        _ => "text",
    };
    let least = schema
        .get("minLength")
        .and_then(Value::as_u64)
        .and_then(|n| usize::try_from(n).ok())
        .unwrap_or(0);
    let most = schema
        .get("maxLength")
        .and_then(Value::as_u64)
        .and_then(|n| usize::try_from(n).ok())
        .unwrap_or(usize::MAX);
    let mut out = base.to_owned();
    if let Some(pattern) = schema
        .get("pattern")
        .and_then(Value::as_str)
        .and_then(|pattern| regex::Regex::new(pattern).ok())
    {
        // Enough of a guess for the patterns that documents really use: versions, slugs, ids, digests, paths.
        // The last one is for addresses inside answers: a pattern without anchors is met by any text that has it somewhere.
        const GUESSES: [&str; 15] = [
            "text",
            "stable",
            "1.0.0",
            "v1.0",
            "1",
            "a-b",
            "/text",
            "5f92cbf10cf217478ba93561",
            "#ff0000",
            "ffffff",
            "https://example.com/",
            "0123456789abcdef0123456789abcdef01234567",
            "rdme_text",
            "text.json",
            "/projects/me/apikeys/5f92cbf10cf217478ba93561 /images/5f92cbf10cf217478ba93561 /branches/1.0 /versions/1.0/guides/a \
             /versions/1.0/categories/guides/a /versions/1.0/apis/a.json /versions/1.0/recipes/a /versions/1.0/custom_pages/a /changelogs/a",
        ];
        if let Some(guess) = GUESSES.iter().find(|guess| pattern.is_match(guess)) {
            (*guess).clone_into(&mut out);
        }
    }
    while out.len() < least.min(10_000) {
        out.push('x');
    }
    out.truncate(most);
    out
}

fn number(schema: &Value, whole: bool) -> Value {
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    let mut value = bound("minimum")
        .or_else(|| bound("exclusiveMinimum").map(|n| n + 1.0))
        .unwrap_or(1.0);
    if let Some(most) = bound("maximum").or_else(|| bound("exclusiveMaximum").map(|n| n - 1.0)) {
        value = value.min(most);
    }
    #[expect(clippy::cast_possible_truncation, reason = "examples are small")]
    if whole || value.fract() == 0.0 {
        Value::from(value as i64)
    } else {
        json!(value)
    }
}
