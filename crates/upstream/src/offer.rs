//! Reads the tools, prompts and resources of a server into the form that a registry stores. Names
//! stay the server's own. Unusable definitions are left out, each with a sentence that explains
//! why.

use std::collections::HashSet;

use portolan_model::text;
use portolan_protocol::{
    capability::TASKS_EXTENSION,
    error::RpcError,
    header::{self, ParamHeader},
    jsonrpc::Raw,
    method::Method,
    revision::Tasks,
};
use serde_json::{Map, Value, json};

use crate::{
    drain::List,
    error::UpstreamError,
    outgoing::Request,
    probe::Probed,
    references::foreign_reference,
    server_facts::ServerFacts,
    written::{canonical, cleaned, without},
};

/// Longest name of a tool or prompt, in characters.
const LONGEST_NAME: usize = 128;
/// Longest URI, in bytes.
const LONGEST_URI: usize = 2048;
/// Longest title and description that are kept, in characters.
const LONGEST_TEXT: usize = 16_384;
/// Bytes of a schema (MCP-JS-7).
const LARGEST_SCHEMA: usize = 64 * 1024;

/// A tool of a server.
#[derive(Debug, Clone)]
pub struct OfferedTool {
    /// The server's name for it.
    pub name: String,
    /// For people.
    pub title: String,
    /// For models.
    pub description: String,
    /// JSON Schema of the arguments.
    pub input_schema: Value,
    /// JSON Schema of structured results.
    pub output_schema: Option<Value>,
    /// Hints.
    pub annotations: Value,
    /// `{"upstream": {"name": …}}`, with icons, metadata and task support if it has them, and as
    /// `requires` the features of clients to which alone it is listed
    /// ([`Need::feature`](portolan_protocol::ask::Need::feature)). Of a server of both eras also
    /// `era`, an [`OfferedIn`](crate::OfferedIn), where it is not the same in both.
    pub plan: Value,
    /// The definition as it came, but for what had to be taken out of it.
    pub written: Raw,
    /// Sentences about changes to the definition.
    pub warnings: Vec<String>,
    /// A header annotation was left out: a client that offers the tool to its own model has to drop
    /// the whole tool (MCP-H-17), one that offers it to other clients without the annotation has
    /// not (MCP-X-6C).
    pub has_faulty_headers: bool,
}

/// A prompt of a server.
#[derive(Debug, Clone)]
pub struct OfferedPrompt {
    /// The server's name for it.
    pub name: String,
    /// For people.
    pub title: String,
    /// Description.
    pub description: String,
    /// Name, description and whether it is required, of each argument.
    pub arguments: Value,
    /// Definition as received, without invisible characters.
    pub definition: Value,
    /// The same as text.
    pub written: Raw,
}

/// A resource of a server, or a template of many.
#[derive(Debug, Clone)]
pub struct OfferedResource {
    /// It is a template.
    pub is_template: bool,
    /// URI or template.
    pub uri: String,
    /// Programmatic name.
    pub name: String,
    /// For people.
    pub title: String,
    /// Description.
    pub description: String,
    /// Media type.
    pub mime_type: Option<String>,
    /// Definition as received, without invisible characters.
    pub definition: Value,
    /// The same as text.
    pub written: Raw,
}

/// Everything that a server offers.
#[derive(Debug, Clone)]
pub struct Offer {
    /// Name, version and other facts that the server declares.
    pub facts: ServerFacts,
    /// By name.
    pub tools: Vec<OfferedTool>,
    /// By name.
    pub prompts: Vec<OfferedPrompt>,
    /// By URI.
    pub resources: Vec<OfferedResource>,
    /// Sentences about definitions that cannot be used, and why.
    pub skipped: Vec<String>,
    /// The server did not answer what it lists in sessions (MCP-X-4): the previous knowledge of
    /// that still holds.
    pub sessions_unsaid: bool,
}

impl ServerFacts {
    /// The version string of the revision that is spoken.
    pub const fn version_string(&self) -> &'static str {
        self.revision.as_str()
    }

    /// The capabilities as a value.
    pub fn capabilities_value(&self) -> Value {
        serde_json::from_slice(self.capabilities.as_bytes()).unwrap_or_else(|_| json!({}))
    }
}

impl Probed {
    /// Fetches all lists that the server declares (MCP-X-18). A list that it then does not know is
    /// empty.
    ///
    /// # Errors
    /// [`UpstreamError`].
    pub async fn offer(&self) -> Result<Offer, UpstreamError> {
        self.offer_of(&[List::Tools, List::Prompts, List::Resources, List::Templates])
            .await
    }

    /// The same of some of the lists.
    pub(crate) async fn offer_of(&self, lists: &[List]) -> Result<Offer, UpstreamError> {
        let mut offer = Offer {
            facts: self.facts.clone(),
            tools: Vec::new(),
            prompts: Vec::new(),
            resources: Vec::new(),
            skipped: Vec::new(),
            sessions_unsaid: false,
        };
        let says_nothing = self.facts.capabilities.members().next().is_none();
        for &list in lists {
            let is_worth_asking = says_nothing && list == List::Tools;
            if !is_worth_asking && !self.facts.has(list.capability()) {
                continue;
            }
            let entries = match self.connection.list(list).await {
                Ok(entries) => entries,
                Err(UpstreamError::Refused(RpcError { code: -32601, .. })) => Vec::new(),
                Err(error) => return Err(error),
            };
            offer.take(list, &entries);
        }
        offer.say_which_may_be_tasks();
        offer.tools.sort_by(|a, b| a.name.cmp(&b.name));
        offer.prompts.sort_by(|a, b| a.name.cmp(&b.name));
        offer
            .resources
            .sort_by(|a, b| (a.is_template, &a.uri).cmp(&(b.is_template, &b.uri)));
        Ok(offer)
    }
}

impl Probed {
    /// Calls a tool once, for a person who tries it, and returns the server's result. Notifications
    /// that arrive meanwhile are dropped; requests of the server are refused.
    ///
    /// # Errors
    /// [`UpstreamError`].
    pub async fn call_tool(
        &self,
        name: &str,
        arguments: &Map<String, Value>,
        input_schema: &Value,
    ) -> Result<Value, UpstreamError> {
        let mirrored = header::annotations(input_schema).0;
        let params = json!({ "name": name, "arguments": arguments });
        let params = Raw::of(&params).unwrap_or_else(|_| Raw::empty_object());
        let request = Request {
            mirrored: &mirrored,
            ..Request::new(Method::ToolsCall.name(), params)
        };
        let result = self.connection.ask(&request).await?;
        serde_json::from_slice(result.as_bytes())
            .map_err(|_| UpstreamError::violation("its result is not JSON"))
    }
}

impl Offer {
    /// MCP-TK-1, MCP-X-50: `execution` of a tool counts only if its server accepts tasks. A server
    /// of 2026-07-28 declares nothing per tool, so any call may become a task.
    fn say_which_may_be_tasks(&mut self) {
        let capabilities = &self.facts.capabilities;
        let (takes, says) = match self.facts.revision.facts().tasks {
            Tasks::Absent => (false, false),
            Tasks::Core => {
                let call = capabilities
                    .get("tasks")
                    .and_then(|tasks| tasks.get("requests")?.get("tools")?.get("call"));
                (call.is_some(), true)
            }
            Tasks::Extension => {
                let extensions = capabilities.get("extensions");
                let tasks = extensions.and_then(|extensions| extensions.get(TASKS_EXTENSION));
                (tasks.is_some(), false)
            }
        };
        for tool in &mut self.tools {
            let Some(upstream) = tool.plan["upstream"].as_object_mut() else {
                continue;
            };
            if !takes {
                upstream.remove("execution");
            } else if !says {
                upstream.insert("execution".to_owned(), json!({"taskSupport": "optional"}));
            }
        }
    }

    fn take(&mut self, list: List, entries: &[Raw]) {
        let mut seen = HashSet::new();
        for entry in entries {
            let key = match list {
                List::Tools | List::Prompts => "name",
                List::Resources => "uri",
                List::Templates => "uriTemplate",
            };
            let name = entry.get(key).and_then(|name| name.string());
            let name = name.unwrap_or_default();
            let what = list.member().trim_end_matches('s');
            let longest = if key == "name" {
                LONGEST_NAME
            } else {
                LONGEST_URI
            };
            let is_hidden = |c: char| c.is_control() || text::is_hidden(c);
            let fault = if name.is_empty() {
                Some("has no name".to_owned())
            } else if name.chars().any(is_hidden) || name.len() > longest {
                Some(format!(
                    "has a name with control characters or of more than {longest} bytes"
                ))
            } else if !seen.insert(name.clone()) {
                Some("stands twice in the list".to_owned())
            } else {
                self.take_one(list, name.clone(), entry).err()
            };
            if let Some(fault) = fault {
                let shown: String = text::shown(&name).chars().take(80).collect();
                self.skipped.push(format!("The {what} `{shown}` {fault}."));
            }
        }
    }

    /// Takes an entry, or returns its fault. A fault excludes that entry alone (REVIEW-F6).
    fn take_one(&mut self, list: List, name: String, entry: &Raw) -> Result<(), String> {
        entry.soundness().map_err(|unsound| unsound.to_string())?;
        let cleaned = cleaned(entry);
        let is_cleaned = cleaned.is_some();
        let written = cleaned.unwrap_or_else(|| entry.clone());
        // Many clients read no list that has such a number.
        let definition: Map<String, Value> = serde_json::from_slice(written.as_bytes())
            .map_err(|_| "holds a number beyond the range of a double".to_owned())?;
        match list {
            List::Tools => {
                let mut tool = tool(name, definition, written)?;
                if is_cleaned {
                    let told = "Control characters were taken out of its texts.";
                    tool.warnings.push(told.to_owned());
                }
                self.tools.push(tool);
            }
            List::Prompts => self.prompts.push(prompt(name, definition, written)),
            List::Resources | List::Templates => {
                let is_template = list == List::Templates;
                self.resources
                    .push(resource(is_template, name, definition, written));
            }
        }
        Ok(())
    }

    /// Returns the bytes that the digest of the offer covers: everything that a registry stores of
    /// it.
    pub fn canonical(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for tool in &self.tools {
            // Facts about the tools from other parts of the server's answers, and the effects of
            // capabilities.
            out.extend_from_slice(tool.plan.to_string().as_bytes());
            canonical(&tool.written, &mut out);
        }
        out.push(b'|');
        for prompt in &self.prompts {
            canonical(&prompt.written, &mut out);
        }
        out.push(b'|');
        for resource in &self.resources {
            out.push(if resource.is_template { b't' } else { b'r' });
            canonical(&resource.written, &mut out);
        }
        out
    }
}

fn text(of: &Map<String, Value>, member: &str) -> String {
    let text = of.get(member).and_then(Value::as_str).unwrap_or_default();
    text.chars().take(LONGEST_TEXT).collect()
}

/// MCP-H-18: whether an argument that a header repeats looks like one that no log should have.
fn is_private(mirrored: &ParamHeader) -> bool {
    const WORDS: [&str; 17] = [
        "password",
        "passwd",
        "passphrase",
        "secret",
        "secrets",
        "token",
        "apikey",
        "credential",
        "credentials",
        "authorization",
        "email",
        "phone",
        "telephone",
        "birthday",
        "birthdate",
        "birth",
        "ssn",
    ];
    const PAIRS: [[&str; 2]; 4] = [
        ["api", "key"],
        ["private", "key"],
        ["access", "key"],
        ["e", "mail"],
    ];
    // `next_page_token` is where a list goes on, and `max_tokens` is a number.
    const PLACES: [&str; 5] = ["page", "next", "continuation", "sync", "cursor"];
    let names = mirrored.path.last().into_iter().chain([&mirrored.name]);
    names.map(|name| words(name)).any(|words| {
        let is_place = words.iter().any(|word| PLACES.contains(&word.as_str()));
        let is_word = |word: &String| {
            WORDS.contains(&word.as_str()) && !(is_place && word.as_str() == "token")
        };
        let is_pair = |pair: &[String]| PAIRS.iter().any(|known| pair == known);
        words.iter().any(is_word) || words.windows(2).any(is_pair)
    })
}

/// The words of a name, split at separators and at changes of case: `dateOfBirth`, `date-of-birth`
/// and `DateOfBIRTH` have the same three.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    let mut before: Option<char> = None;
    let letters: Vec<char> = name.chars().collect();
    for (at, letter) in letters.iter().enumerate() {
        let goes_on_small = letters.get(at + 1).is_some_and(char::is_ascii_lowercase);
        let begins = letter.is_ascii_uppercase()
            && before.is_some_and(|before| !before.is_ascii_uppercase() || goes_on_small);
        if (begins || !letter.is_ascii_alphanumeric()) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if letter.is_ascii_alphanumeric() {
            word.push(letter.to_ascii_lowercase());
        }
        before = Some(*letter);
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

fn tool(
    name: String,
    mut definition: Map<String, Value>,
    written: Raw,
) -> Result<OfferedTool, String> {
    let mut warnings = Vec::new();
    // JSON pointers of what is taken out.
    let mut gone = Vec::new();
    let mut input_schema = definition.remove("inputSchema").unwrap_or(Value::Null);
    if input_schema.get("type").and_then(Value::as_str) != Some("object") {
        return Err("has no input schema of type `object`".to_owned());
    }
    if input_schema.to_string().len() > LARGEST_SCHEMA {
        return Err("has an input schema of more than 64 KiB".to_owned());
    }
    if let Some(elsewhere) = foreign_reference(&input_schema) {
        return Err(format!("{elsewhere} in its input schema"));
    }
    let written_output = definition.remove("outputSchema");
    let had_output = written_output.is_some();
    let output_schema = sound_output(written_output, &mut warnings);
    if had_output && output_schema.is_none() {
        gone.push("/outputSchema".to_owned());
    }
    let (mirrored, faults) = header::annotations(&input_schema);
    warnings.extend(mirrored.iter().filter(|one| is_private(one)).map(|one| {
        format!(
            "The argument `{}` is repeated in a header, which proxies and logs see: it looks like a secret or a person's data.",
            one.path.join(".")
        )
    }));
    // MCP-H-17: a client would drop the whole tool because of it.
    let has_faulty_headers = !faults.is_empty();
    for fault in faults {
        let at = fault.pointer().to_owned();
        if let Some(Value::Object(place)) = input_schema.pointer_mut(&at) {
            place.remove("x-mcp-header");
        }
        gone.push(format!("/inputSchema{at}/x-mcp-header"));
        warnings.push(format!("A header annotation was left out: {fault}."));
    }
    let annotations = definition
        .remove("annotations")
        .filter(Value::is_object)
        .unwrap_or_else(|| json!({}));
    let mut upstream = Map::new();
    upstream.insert("name".to_owned(), Value::String(name.clone()));
    for member in ["icons", "_meta", "execution"] {
        if let Some(value) = definition.remove(member) {
            upstream.insert(member.to_owned(), value);
        }
    }
    let title = match text(&definition, "title") {
        title if title.is_empty() => annotations
            .get("title")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned(),
        title => title,
    };
    Ok(OfferedTool {
        title,
        description: text(&definition, "description"),
        name,
        input_schema,
        output_schema,
        annotations,
        plan: json!({ "upstream": upstream }),
        written: without(&written, &gone),
        warnings,
        has_faulty_headers,
    })
}

/// The output schema, if it can be used; else a warning says why it is left out.
fn sound_output(schema: Option<Value>, warnings: &mut Vec<String>) -> Option<Value> {
    schema.filter(Value::is_object).filter(|schema| {
        let fault = if schema.to_string().len() > LARGEST_SCHEMA {
            "it has more than 64 KiB".to_owned()
        } else if let Some(elsewhere) = foreign_reference(schema) {
            format!("it {elsewhere}")
        } else {
            return true;
        };
        warnings.push(format!("Its output schema is left out: {fault}."));
        false
    })
}

fn prompt(name: String, definition: Map<String, Value>, written: Raw) -> OfferedPrompt {
    let arguments = definition
        .get("arguments")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    let arguments: Vec<Value> = arguments
        .iter()
        .filter_map(Value::as_object)
        .filter(|argument| !text(argument, "name").is_empty())
        .map(|argument| {
            let mut kept = Map::new();
            for member in ["name", "title", "description"] {
                let value = text(argument, member);
                if !value.is_empty() {
                    kept.insert(member.to_owned(), Value::String(value));
                }
            }
            let required = argument.get("required").and_then(Value::as_bool);
            kept.insert("required".to_owned(), required.unwrap_or(false).into());
            Value::Object(kept)
        })
        .collect();
    OfferedPrompt {
        title: text(&definition, "title"),
        description: text(&definition, "description"),
        name,
        arguments: Value::Array(arguments),
        definition: Value::Object(definition),
        written,
    }
}

fn resource(
    is_template: bool,
    uri: String,
    definition: Map<String, Value>,
    written: Raw,
) -> OfferedResource {
    let name = match text(&definition, "name") {
        name if name.is_empty() => uri.chars().take(LONGEST_NAME).collect(),
        name => name.chars().take(LONGEST_NAME).collect(),
    };
    OfferedResource {
        is_template,
        name,
        title: text(&definition, "title"),
        description: text(&definition, "description"),
        mime_type: Some(text(&definition, "mimeType")).filter(|text| !text.is_empty()),
        uri,
        definition: Value::Object(definition),
        written,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h_17_a_bad_header_annotation_is_taken_out_and_told_and_the_tool_stays() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "number", "x-mcp-header": "A"}, "b": {"type": "string", "x-mcp-header": "B"}}});
        let definition = json!({"inputSchema": schema, "annotations": {"title": "From hints"}, "icons": [], "execution": {"taskSupport": "optional"}});
        let Value::Object(definition) = definition else {
            panic!("an object")
        };
        let written = Raw::of(&definition).unwrap();
        let read = tool("t".to_owned(), definition, written).unwrap();
        assert_eq!(
            read.input_schema["properties"]["a"],
            json!({"type": "number"})
        );
        assert_eq!(read.input_schema["properties"]["b"]["x-mcp-header"], "B");
        assert_eq!(
            (read.warnings.len(), read.title.as_str()),
            (1, "From hints")
        );
        let written = read.written.as_str();
        assert_eq!(written.matches("x-mcp-header").count(), 1, "{written}");
        assert_eq!(
            read.plan["upstream"]["execution"]["taskSupport"],
            "optional"
        );
    }

    #[test]
    fn h_18_an_argument_that_no_log_should_have_is_told_and_stays() {
        let schema = json!({"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "user": {"type": "object", "properties": {"api_key": {"type": "string", "x-mcp-header": "Key"}}},
            "who": {"type": "string", "x-mcp-header": "E-Mail"}}});
        let definition = json!({"inputSchema": schema});
        let Value::Object(definition) = definition else {
            panic!("an object")
        };
        let written = Raw::of(&definition).unwrap();
        let read = tool("t".to_owned(), definition, written).unwrap();
        assert_eq!(read.warnings.len(), 2, "{:?}", read.warnings);
        let mirrored = |name: &str| {
            let schema = json!({"type": "object", "properties": {name: {"type": "string", "x-mcp-header": "One"}}});
            header::annotations(&schema).0.iter().any(is_private)
        };
        for private in [
            "password",
            "accessToken",
            "APIKey",
            "api-key",
            "client_secret",
            "dateOfBirth",
            "eMail",
            "email_address",
            "phoneNumber",
            "DB.Credentials",
        ] {
            assert!(mirrored(private), "{private}");
        }
        for plain in [
            "tokenizer",
            "max_tokens",
            "next_page_token",
            "pageToken",
            "secretary",
            "birthplace",
            "keyboard",
            "monkey",
            "emailer",
            "apiVersion",
            "passwordless",
        ] {
            assert!(!mirrored(plain), "{plain}");
        }
        assert!(
            read.warnings[0].contains("`user.api_key`"),
            "{:?}",
            read.warnings
        );
        assert_eq!(
            read.input_schema["properties"]["who"]["x-mcp-header"],
            "E-Mail"
        );
    }

    fn nothing() -> Offer {
        Offer {
            facts: ServerFacts {
                revision: portolan_protocol::Revision::V2025_11_25,
                capabilities: Raw::empty_object(),
                info: Raw::empty_object(),
                instructions: None,
            },
            tools: vec![],
            prompts: vec![],
            resources: vec![],
            skipped: vec![],
            sessions_unsaid: false,
        }
    }

    #[test]
    fn tl_5_what_has_no_object_for_arguments_is_left_out_with_a_sentence() {
        let mut offer = nothing();
        let raw = |value: Value| Raw::parse(value.to_string()).unwrap();
        let entries = [
            raw(json!({"name": "a", "inputSchema": {"type": "object"}})),
            raw(json!({"name": "a", "inputSchema": {"type": "object"}})),
            raw(json!({"name": "b", "inputSchema": {"type": "array"}})),
            raw(json!({"name": "c"})),
            raw(json!({"name": ""})),
            raw(json!({"name": "x\u{0}y", "inputSchema": {"type": "object"}})),
            raw(json!({"name": "x\u{202e}y", "inputSchema": {"type": "object"}})),
        ];
        offer.take(List::Tools, &entries);
        assert_eq!(
            offer.tools.len(),
            1,
            "REVIEW-S-6: a name is kept or refused, not changed"
        );
        assert_eq!(offer.skipped.len(), 6, "{:?}", offer.skipped);
    }

    #[test]
    fn f6_an_odd_tool_costs_that_tool_and_is_named() {
        let deep = format!(
            "{}{{}}{}",
            r#"{"properties":{"a":"#.repeat(35),
            "}}".repeat(35)
        );
        let odd = [
            r#"{"type":"object","maximum":1e400}"#.to_owned(),
            r#"{"type":"object","title":"\ud800"}"#.to_owned(),
            format!(r#"{{"type":"object","not":{deep}}}"#),
        ];
        let list: Vec<String> = odd
            .iter()
            .chain([&r#"{"type":"object"}"#.to_owned()])
            .enumerate()
            .map(|(index, schema)| format!(r#"{{"name":"t{index}","inputSchema":{schema}}}"#))
            .collect();
        let list = Raw::parse_list(format!("[{}]", list.join(","))).unwrap();
        let mut offer = nothing();
        offer.take(List::Tools, &list.elements().collect::<Vec<_>>());
        let names: Vec<&str> = offer.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["t3"]);
        assert_eq!(
            offer.skipped,
            [
                "The tool `t0` holds a number beyond the range of a double.",
                "The tool `t1` holds half of a surrogate pair, which is no character.",
                "The tool `t2` is nested deeper than 64.",
            ]
        );
    }

    #[test]
    fn q8_s_6_a_definition_is_kept_as_it_came_but_for_what_nobody_sees() {
        let text = r#"{"x-own":{"b":1,"a":2},"name":"t","description":"a\u0000b",
            "inputSchema":{"type":"object","maximum":1000000000000000000000000000001,"z":1.50,"a":1}}"#;
        let mut offer = nothing();
        offer.take(List::Tools, &[Raw::parse(text).unwrap()]);
        let tool = offer.tools.first().unwrap();
        assert_eq!(tool.written.as_str(), text.replace("\\u0000", ""));
        assert_eq!(tool.description, "ab");
        assert_eq!(tool.warnings.len(), 1, "{:?}", tool.warnings);
    }

    #[test]
    fn js_6_q7_a_tool_whose_schema_lies_elsewhere_is_left_out() {
        let mut offer = nothing();
        let raw = |value: Value| Raw::parse(value.to_string()).unwrap();
        let elsewhere =
            json!({"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1/x"}}});
        let entries = [
            raw(json!({"name": "a", "inputSchema": elsewhere})),
            raw(json!({"name": "b", "inputSchema": {"type": "object"}, "outputSchema": elsewhere})),
        ];
        offer.take(List::Tools, &entries);
        assert_eq!(offer.skipped.len(), 1, "{:?}", offer.skipped);
        let [b] = &offer.tools[..] else {
            panic!("b alone")
        };
        assert!(b.output_schema.is_none() && !b.written.as_str().contains("outputSchema"));
        assert!(
            b.warnings[0].contains("http://127.0.0.1/x"),
            "{:?}",
            b.warnings
        );
    }
}
