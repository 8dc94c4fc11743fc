//! REVIEW-S-6: no text that comes in, whatever its characters, is a fault of the server. Every
//! route of the console's document, the OAuth endpoints, the pages and the MCP endpoint get, in
//! every text parameter, what a database or a reader may stumble over.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use base64::{Engine, engine::general_purpose::STANDARD};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use portolan_tests::{
    fixture::FixtureApi,
    mcp::{LEGACY, McpClient},
    oauth::OAuthClient,
    person::Person,
    raw::RawHttp,
    stack::Stack,
};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde_json::{Map, Value, json};

/// The longest wait for the place of a stream.
const SOON: Duration = Duration::from_secs(10);

/// A text in its three writings.
struct Evil {
    name: &'static str,
    /// Inside of quotes.
    json: String,
    percent: String,
    /// Whether every entrance refuses it.
    is_refused: bool,
}

fn evils() -> Vec<Evil> {
    let marks = "\u{202e}\u{200f}\u{2066}abc\u{2069}";
    let long = "a".repeat(300 * 1024);
    vec![
        Evil {
            name: "NUL",
            json: r"a\u0000b".to_owned(),
            percent: "a%00b".to_owned(),
            is_refused: true,
        },
        Evil {
            name: "half of a surrogate pair",
            json: r"a\ud800b".to_owned(),
            // The bytes that UTF-8 would have for it.
            percent: "a%ED%A0%80b".to_owned(),
            is_refused: false,
        },
        Evil {
            name: "marks of direction",
            json: marks.to_owned(),
            percent: utf8_percent_encode(marks, NON_ALPHANUMERIC).to_string(),
            is_refused: false,
        },
        Evil {
            name: "300 KB",
            json: long.clone(),
            percent: long,
            is_refused: false,
        },
    ]
}

/// Collects what answers with a fault of the server, or takes what it must refuse.
#[derive(Default)]
struct Findings {
    asked: usize,
    /// Event streams that were opened and left.
    streams: usize,
    faults: Vec<String>,
}

/// Returns true for an event stream whose end is not known.
fn goes_on(answer: &Response) -> bool {
    let kind = answer.headers().get("content-type");
    kind.is_some_and(|kind| kind == "text/event-stream") && answer.content_length().is_none()
}

/// Sends it, once more if its connection ended. `None` if it ended by the refusal of a long body.
async fn sent(evil: &Evil, request: RequestBuilder) -> Result<Option<Response>> {
    let again = request.try_clone().context("a body in memory")?;
    match request.send().await {
        // The refusal of a long body may come, and the connection end, while it is being sent.
        Err(error) if evil.percent.len() > 64 * 1024 && error.is_request() => Ok(None),
        // That end may also be noticed by the next request on the connection.
        Err(error) if error.is_request() => Ok(Some(again.send().await?)),
        answer => Ok(Some(answer?)),
    }
}

impl Findings {
    /// Sends it. The answer's JSON, or null. An event stream that goes on is left after its head,
    /// whose status is what is asked for.
    async fn send(&mut self, what: &str, evil: &Evil, request: RequestBuilder) -> Result<Value> {
        let what = format!("{what}: {}", evil.name);
        self.asked += 1;
        let deadline = Instant::now() + SOON;
        loop {
            let again = request.try_clone().context("a body in memory")?;
            let answer = sent(evil, again).await.with_context(|| what.clone())?;
            let Some(answer) = answer else {
                return Ok(Value::Null);
            };
            let status = answer.status();
            if status.is_success() && goes_on(&answer) {
                self.streams += 1;
                return Ok(Value::Null);
            }
            let text = answer.text().await?;
            // A stream without a place has not read the text. The place of one that was left is
            // free a moment later.
            let is_without_place = text.contains("too_many_live_views");
            if is_without_place && Instant::now() < deadline {
                tokio::time::sleep(Duration::from_millis(20)).await;
                continue;
            }
            if is_without_place || status.is_server_error() {
                self.faults.push(format!("{what}: {status} {text:.200}"));
            }
            return Ok(serde_json::from_str(&text).unwrap_or(Value::Null));
        }
    }

    /// The same for the console's API, which names the fault.
    async fn api(&mut self, what: &str, evil: &Evil, request: RequestBuilder) -> Result<()> {
        let answer = self.send(what, evil, request).await?;
        // A path that leads nowhere may be refused before its body is read, and the session of a
        // person where a token is needed.
        let code = answer["error"]["code"].as_str().unwrap_or_default();
        let is_refusal = matches!(code, "control_characters" | "not_found" | "token_only");
        if evil.is_refused && !is_refusal {
            self.faults.push(format!("{what}: {}: {answer}", evil.name));
        }
        Ok(())
    }
}

const MARK: &str = "EVIL";

/// Bodies of a schema: for each text in it one, with what must be there and [`MARK`] in its place.
struct Bodies<'a> {
    document: &'a Value,
}

impl Bodies<'_> {
    fn resolved<'s>(&'s self, schema: &'s Value) -> &'s Value {
        match schema["$ref"]
            .as_str()
            .and_then(|name| name.strip_prefix('#'))
        {
            Some(pointer) => self
                .document
                .pointer(pointer)
                .map_or(schema, |schema| self.resolved(schema)),
            None => schema,
        }
    }

    fn variants<'s>(&self, schema: &'s Value) -> Vec<&'s Value> {
        ["oneOf", "anyOf"]
            .iter()
            .filter_map(|word| schema[*word].as_array())
            .flatten()
            .filter(|variant| variant["type"] != "null")
            .collect()
    }

    fn is(schema: &Value, word: &str) -> bool {
        schema["type"] == word
            || schema["type"]
                .as_array()
                .is_some_and(|words| words.contains(&json!(word)))
    }

    /// The smallest value that matches the schema.
    fn least(&self, schema: &Value, depth: usize) -> Value {
        let schema = self.resolved(schema);
        if let Some(first) = schema["enum"].get(0).or(schema.get("const")) {
            return first.clone();
        }
        if let Some(first) = self.variants(schema).first() {
            return self.least(first, depth);
        }
        if let Some(parts) = schema["allOf"].as_array() {
            let mut all = Map::new();
            for part in parts {
                if let Value::Object(members) = self.least(part, depth) {
                    all.extend(members);
                }
            }
            return Value::Object(all);
        }
        if Self::is(schema, "string") {
            return json!("text");
        }
        if Self::is(schema, "integer") || Self::is(schema, "number") {
            return json!(1);
        }
        if Self::is(schema, "boolean") {
            return json!(true);
        }
        if Self::is(schema, "array") {
            return json!([]);
        }
        let mut members = Map::new();
        for name in schema["required"].as_array().into_iter().flatten() {
            let name = name.as_str().unwrap_or_default();
            if depth < 6 {
                let value = self.least(&schema["properties"][name], depth + 1);
                members.insert(name.to_owned(), value);
            }
        }
        Value::Object(members)
    }

    /// One body for each text.
    fn each(&self, schema: &Value, depth: usize) -> Vec<(String, Value)> {
        let schema = self.resolved(schema);
        if depth > 6 || schema.get("const").is_some() {
            return Vec::new();
        }
        let parts = schema["allOf"].as_array();
        if let Some(parts) = parts {
            let whole = self.least(schema, depth);
            return parts
                .iter()
                .flat_map(|part| self.each(part, depth))
                .map(|(path, value)| (path, merged(&whole, value)))
                .collect();
        }
        let variants = self.variants(schema);
        if !variants.is_empty() {
            return variants
                .iter()
                .flat_map(|variant| self.each(variant, depth))
                .collect();
        }
        if Self::is(schema, "string") {
            return vec![(String::new(), json!(MARK))];
        }
        if Self::is(schema, "array") {
            return self
                .each(&schema["items"], depth + 1)
                .into_iter()
                .map(|(path, value)| (format!("[]{path}"), json!([value])))
                .collect();
        }
        let whole = self.least(schema, depth);
        let mut bodies = Vec::new();
        for (name, member) in schema["properties"].as_object().into_iter().flatten() {
            for (path, value) in self.each(member, depth + 1) {
                bodies.push((
                    format!(".{name}{path}"),
                    merged(&whole, json!({ name: value })),
                ));
            }
        }
        // Free members, and values of any kind.
        if schema["additionalProperties"].is_object() || schema.get("type").is_none() {
            bodies.push((".*".to_owned(), merged(&whole, json!({ MARK: MARK }))));
        }
        bodies
    }
}

fn merged(whole: &Value, part: Value) -> Value {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            let mut all = whole.clone();
            all.extend(part);
            Value::Object(all)
        }
        (_, part) => part,
    }
}

/// An unknown id of this kind.
fn unknown(noun: &str) -> String {
    let prefix = match noun {
        "members" => "usr",
        "clients" | "registered-clients" => "cli",
        "prompts" => "prm",
        "resources" => "rsc",
        "service-accounts" => "svc",
        "invitations" => "inv",
        "api-keys" => "key",
        "sessions" => return "0".repeat(32),
        _ => "src",
    };
    format!("{prefix}_{}", "0".repeat(32))
}

/// Every route of the document: parameters of the path and the query, members of the body.
async fn console(
    owner: &Person,
    known: &BTreeMap<&str, String>,
    findings: &mut Findings,
) -> Result<()> {
    let document: Value = owner
        .browser
        .fetch(Method::GET, "/api/v1/openapi.json")?
        .send()
        .await?
        .json()
        .await?;
    let bodies = Bodies {
        document: &document,
    };
    for (path, item) in document["paths"].as_object().context("paths")? {
        // The noun of a route's own id.
        let noun = path.split('/').nth(5).unwrap_or_default();
        let filled = |evil: Option<(&str, &str)>| -> String {
            let mut filled = path.clone();
            for (name, value) in known {
                filled = filled.replace(&format!("{{{noun}:{name}}}"), value);
            }
            let mut parts = Vec::new();
            for part in filled.split('/') {
                let name = part
                    .strip_prefix('{')
                    .and_then(|part| part.strip_suffix('}'));
                parts.push(match (name, evil) {
                    (Some(name), Some((which, value))) if which == name => value.to_owned(),
                    (Some("id"), _) => known.get(noun).cloned().unwrap_or_else(|| unknown(noun)),
                    (Some(name), _) => known.get(name).cloned().unwrap_or_default(),
                    (None, _) => part.to_owned(),
                });
            }
            parts.join("/")
        };
        let names: Vec<&str> = path
            .split('/')
            .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
            .collect();
        for (method, operation) in item.as_object().context("operations")? {
            let verb: Method = method.to_uppercase().parse()?;
            let shown = format!("{verb} {path}");
            let fetch = |target: &str| owner.browser.fetch(verb.clone(), target);
            for evil in evils() {
                for name in &names {
                    let target = filled(Some((name, &evil.percent)));
                    let request = fetch(&target)?.header("content-type", "application/json");
                    // A target that is too long for a head is refused before any route.
                    if evil.percent.len() > 16_000 {
                        let target = filled(Some((name, &evil.percent[..16_000])));
                        findings.api(&shown, &evil, fetch(&target)?).await?;
                    } else {
                        findings
                            .api(&format!("{shown} {{{name}}}"), &evil, request)
                            .await?;
                    }
                }
                let parameters = operation["parameters"].as_array();
                for parameter in parameters.into_iter().flatten() {
                    if parameter["in"] != "query" || evil.percent.len() > 16_000 {
                        continue;
                    }
                    let name = parameter["name"].as_str().context("name")?;
                    let target = format!("{}?{name}={}", filled(None), evil.percent);
                    let request = fetch(&target)?;
                    findings
                        .api(&format!("{shown} ?{name}"), &evil, request)
                        .await?;
                }
                let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
                if schema.is_null() {
                    continue;
                }
                for (place, body) in bodies.each(schema, 0) {
                    let body = body.to_string().replace(MARK, &evil.json);
                    let request = fetch(&filled(None))?
                        .header("content-type", "application/json")
                        .body(body);
                    findings
                        .api(&format!("{shown} {place}"), &evil, request)
                        .await?;
                }
            }
        }
    }
    Ok(())
}

const FIELDS: &[&str] = &[
    "grant_type",
    "client_id",
    "client_secret",
    "client_assertion",
    "client_assertion_type",
    "code",
    "code_verifier",
    "redirect_uri",
    "refresh_token",
    "resource",
    "scope",
    "subject_token",
    "subject_token_type",
    "token",
    "token_type_hint",
    "unheard_of",
];

/// The endpoints for machines.
async fn oauth(stack: &Stack, findings: &mut Findings) -> Result<()> {
    let client = OAuthClient::register(stack.url(), "Harness").await?;
    let http = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .build()?;
    for path in [
        "/oauth/token",
        "/token",
        "/oauth/revoke",
        "/oauth/introspect",
    ] {
        for grant in [
            "authorization_code",
            "refresh_token",
            "client_credentials",
            "urn:ietf:params:oauth:grant-type:token-exchange",
        ] {
            for field in FIELDS {
                for evil in evils() {
                    let mut fields = vec![
                        ("grant_type", grant),
                        ("client_id", client.client_id.as_str()),
                        ("code", "code"),
                        ("refresh_token", "token"),
                        ("token", "token"),
                    ];
                    fields.retain(|(name, _)| name != field);
                    let mut form = url::form_urlencoded::Serializer::new(String::new());
                    let form = form.extend_pairs(fields).finish();
                    let request = http
                        .post(stack.url().join(path)?)
                        .header("content-type", "application/x-www-form-urlencoded")
                        .body(format!("{form}&{field}={}", evil.percent));
                    let answer = findings
                        .send(&format!("{path} {grant} {field}"), &evil, request)
                        .await?;
                    if evil.is_refused && answer["error"] != "invalid_request" {
                        findings.faults.push(format!("{path} {field}: {answer}"));
                    }
                }
            }
        }
        let basic = STANDARD.encode("a%00b:c\0d");
        let request = http
            .post(stack.url().join(path)?)
            .header("authorization", format!("Basic {basic}"))
            .header("content-type", "application/x-www-form-urlencoded")
            .body("grant_type=client_credentials&token=t");
        findings
            .send(&format!("{path} Basic"), &evils()[0], request)
            .await?;
    }
    for path in ["/oauth/register", "/register"] {
        for member in [
            "client_name",
            "client_uri",
            "logo_uri",
            "software_id",
            "software_version",
            "scope",
            "policy_uri",
            "unheard_of",
            "redirect_uris",
            "contacts",
        ] {
            for evil in evils() {
                let mut body = json!({
                    "client_name": "Harness", "redirect_uris": ["http://127.0.0.1/cb"],
                    "token_endpoint_auth_method": "none",
                });
                body[member] = match member {
                    "redirect_uris" | "contacts" => json!([MARK]),
                    _ => json!(MARK),
                };
                let request = http
                    .post(stack.url().join(path)?)
                    .header("content-type", "application/json")
                    .body(body.to_string().replace(MARK, &evil.json));
                findings
                    .send(&format!("{path} {member}"), &evil, request)
                    .await?;
            }
        }
    }
    for path in ["/oauth/authorize", "/authorize"] {
        for name in [
            "client_id",
            "redirect_uri",
            "response_type",
            "scope",
            "state",
            "code_challenge",
            "code_challenge_method",
            "resource",
            "login_hint",
            "prompt",
            "nonce",
            "request",
            "unheard_of",
        ] {
            for evil in evils().iter().filter(|evil| evil.percent.len() < 16_000) {
                let mut parameters = client.parameters(None, &portolan_tests::oauth::Pkce::new()?);
                parameters.remove(name);
                let url = client.authorize_url(&parameters)?;
                let url = url.replace("/oauth/authorize", path);
                let request = http
                    .get(format!("{url}&{name}={}", evil.percent))
                    .header("accept", "text/html");
                findings
                    .send(&format!("{path} {name}"), evil, request)
                    .await?;
            }
        }
    }
    Ok(())
}

/// Every form of the pages, and every parameter that pages read.
async fn pages(person: &Person, paths: &[&str], findings: &mut Findings) -> Result<()> {
    for path in paths {
        for evil in evils() {
            if evil.percent.len() < 16_000 {
                let parameters = [
                    "request", "done", "token", "code", "next", "for", "page", "error",
                ];
                for name in parameters {
                    let target = format!("{path}?{name}={}", evil.percent);
                    let request = person.browser.fetch(Method::GET, &target)?;
                    findings
                        .send(&format!("GET {path} {name}"), &evil, request)
                        .await?;
                }
            }
            let page = person.browser.open(path).await?;
            for form in page.forms() {
                let names = form.fields.iter().chain(&form.inputs).map(|(name, _)| name);
                for name in names {
                    let mut body = url::form_urlencoded::Serializer::new(String::new());
                    for (other, value) in form.fields.iter().filter(|(other, _)| other != name) {
                        body.append_pair(other, value);
                    }
                    let body = format!("{}&{name}={}", body.finish(), evil.percent);
                    let request = person
                        .browser
                        .fetch(Method::POST, form.action.path())?
                        .header("content-type", "application/x-www-form-urlencoded")
                        .body(body);
                    let shown = format!("POST {} {name}", form.action.path());
                    findings.send(&shown, &evil, request).await?;
                }
            }
        }
    }
    Ok(())
}

/// Every name and text of the MCP endpoint.
async fn mcp(session: &McpClient, url: &str, findings: &mut Findings) -> Result<()> {
    for evil in evils() {
        for (method, params) in [
            ("tools/call", json!({"name": MARK, "arguments": {}})),
            (
                "tools/call",
                json!({"name": "echo", "arguments": {"text": MARK, MARK: MARK}}),
            ),
            (
                "prompts/get",
                json!({"name": MARK, "arguments": {MARK: MARK}}),
            ),
            ("resources/read", json!({"uri": MARK})),
            ("resources/subscribe", json!({"uri": MARK})),
            ("tools/list", json!({"cursor": MARK})),
            (MARK, json!({})),
            (
                "completion/complete",
                json!({"ref": {"type": "ref/prompt", "name": MARK}, "argument": {"name": MARK, "value": MARK}}),
            ),
            (
                "initialize",
                json!({"protocolVersion": MARK, "capabilities": {}, "clientInfo": {"name": MARK, "version": MARK}}),
            ),
        ] {
            let message = json!({"jsonrpc": "2.0", "id": MARK, "method": method, "params": params});
            let body = message.to_string().replace(MARK, &evil.json);
            let answer = session.post("application/json", body).await?;
            findings.asked += 1;
            if answer.status.is_server_error() {
                let what = format!("MCP {method} {}", evil.name);
                findings
                    .faults
                    .push(format!("{what}: {} {}", answer.status, answer.text));
            }
        }
        if evil.percent.len() < 16_000 {
            for path in [
                url.replace("/t/harbour/", &format!("/t/{}/", evil.percent)),
                url.replace("/fixture/mcp", &format!("/{}/mcp", evil.percent)),
            ] {
                let answer = session
                    .clone()
                    .at(&path)
                    .post("application/json", "{}")
                    .await?;
                findings.asked += 1;
                if answer.status.is_server_error() {
                    findings.faults.push(format!("{path}: {}", answer.status));
                }
                let metadata = path.replacen("/t/", "/.well-known/oauth-protected-resource/t/", 1);
                let request = reqwest::Client::builder().build()?.get(metadata);
                findings.send("metadata", &evil, request).await?;
            }
        }
    }
    Ok(())
}

#[tokio::test]
async fn s6_no_text_of_any_route_is_a_fault_of_the_server() -> Result<()> {
    let fixture = FixtureApi::start()?;
    let stack = Stack::builder().allow_egress(fixture.address()).start()?;
    let owner = Person::sign_up(&stack, "ann").await?;
    let published = owner.console().publish_fixture("harbour", &fixture).await?;
    let tools = owner
        .console()
        .tool_ids("harbour", &published.source_id)
        .await?;
    let tool = tools[0].as_str().context("a tool")?.to_owned();
    let known = BTreeMap::from([
        ("ws", "harbour".to_owned()),
        ("sources", published.source_id.clone()),
        ("servers", published.server_id.clone()),
        ("tools", tool),
    ]);
    let mut findings = Findings::default();
    let client = OAuthClient::register(stack.url(), "Harness").await?;
    let tokens = client.authorize(&owner, &published.url).await?;
    let endpoint = McpClient::new(&published.url)?.with_token(&tokens.access)?;
    let (session, _) = endpoint.initialize(LEGACY).await?;
    mcp(&session, &published.url, &mut findings).await?;
    console(&owner, &known, &mut findings).await?;
    let of_console = findings.asked;
    oauth(&stack, &mut findings).await?;
    let stranger = Person::new(stack.url(), "eve")?;
    let outside = [
        "/login",
        "/signup",
        "/verify",
        "/reset",
        "/reset/choose",
        "/invitations",
    ];
    pages(&stranger, &outside, &mut findings).await?;
    let person = Person::sign_up(&stack, "bob").await?;
    let inside = [
        "/account",
        "/account/password",
        "/account/email",
        "/account/sign-in",
        "/account/two-factor",
        "/account/passkeys",
        "/account/apps",
        "/account/linked",
        "/account/undo",
        "/account/confirm",
        "/workspaces/new",
        "/account/sessions",
    ];
    pages(&person, &inside, &mut findings).await?;
    for path in [
        "/invitations/%00",
        "/oauth/consent/%00",
        "/connect/accounts/%00",
        "/connect/callback/%00?code=%00&state=%00",
        "/connect/clients/%00",
        "/account/sign-in/add/%00",
        "/nowhere/%00",
        "/assets/%00",
        "/w/%00",
        "/t/%00",
        "/.well-known/%00",
    ] {
        let request = person.browser.fetch(Method::GET, path)?;
        findings.send(path, &evils()[0], request).await?;
    }
    // Control characters in a head never reach a route (RFC 9110 §5.5).
    let address = stack.url().socket_addrs(|| None)?[0];
    let mut connection = RawHttp::open(address).await?;
    let host = address.to_string();
    connection
        .say(format!(
            "GET /login HTTP/1.1\r\nhost: {host}\r\nuser-agent: a\0b\r\n\r\n"
        ))
        .await?;
    let answer = connection.answer().await?.context("an answer")?;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    println!(
        "{} texts, {of_console} of them to the console's API and the MCP endpoint; {} opened a stream",
        findings.asked, findings.streams
    );
    assert!(
        of_console > 1_000,
        "{of_console} is too few: the document was not walked"
    );
    assert!(findings.streams > 0, "no text reached a live view");
    assert!(findings.faults.is_empty(), "{}", findings.faults.join("\n"));
    Ok(())
}
