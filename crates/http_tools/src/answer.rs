//! An API's answer as a tool result: content blocks, `structuredContent`, and honest texts when it
//! went wrong.

mod written;

use std::borrow::Cow;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderMap, StatusCode, header};
use portolan_model::registry::CallOutcome;
use portolan_net::{
    egress::{EgressError, EgressResponse, Phase},
    secrets::Secrets,
};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::Value;

use crate::{
    arguments::{ArgumentFault, ArgumentFaults, CompiledTool},
    charset::decode,
    exchange::{Received, Sent},
    proof::Proof,
    tree::Tree,
};

/// How a call ended.
pub use portolan_model::registry::CallOutcome as Outcome;

/// Bytes of a refused answer that a model gets to read.
const MAX_EXCERPT: usize = 4 * 1024;
/// Nesting of a JSON answer that clients can be expected to read.
const MAX_JSON_DEPTH: usize = 120;

/// One content block (MCP-TL-14).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Text.
    Text(String),
    /// An image, base64.
    Image {
        /// Media type.
        mime: String,
        /// Base64.
        data: String,
    },
    /// Sound, base64. From 2025-03-26 on.
    Audio {
        /// Media type.
        mime: String,
        /// Base64.
        data: String,
    },
    /// Other bytes, as an embedded resource.
    Blob {
        /// Where it came from, without query.
        uri: String,
        /// Media type.
        mime: String,
        /// Base64.
        data: String,
    },
}

/// What `structuredContent` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Structured {
    /// Absent.
    #[default]
    None,
    /// The JSON object that the first block has as its text (MCP-TL-13).
    Text,
    /// An object without members.
    Empty,
}

/// The result of a call: a `CallToolResult` with `structuredContent` (2025-06-18 and later).
#[derive(Debug, Clone)]
pub struct ToolAnswer {
    /// Never empty.
    pub content: Vec<Content>,
    /// A JSON object, as the API wrote it.
    pub structured: Structured,
    /// The call failed, and the content says why (MCP-TL-19).
    pub is_error: bool,
    /// How it ended, for counting.
    pub outcome: CallOutcome,
    /// Faults of the arguments; not empty only with [`CallOutcome::InvalidArguments`].
    pub faults: Vec<ArgumentFault>,
    /// The API's status.
    pub status: Option<u16>,
    /// `WWW-Authenticate` of a 401 or 403, if there is one.
    pub challenge: Option<String>,
    /// Request that was sent, if any, and if [`crate::Caller::shows_exchange`] is set.
    pub sent: Option<Sent>,
    /// Response to it. Absent if no response arrived.
    pub received: Option<Received>,
    /// Evidence about the source's credential, if the request carried one.
    pub proof: Option<Proof>,
}

impl ToolAnswer {
    /// The first text of its content.
    pub fn first_text(&self) -> Option<String> {
        self.content.iter().find_map(|block| match block {
            Content::Text(text) => Some(text.clone()),
            _ => None,
        })
    }

    /// For revisions that do not know `structuredContent`; the text block carries the same JSON
    /// (MCP-TL-13).
    #[must_use]
    pub fn without_structured(mut self) -> Self {
        self.structured = Structured::None;
        self
    }

    /// Replaces sound by a text for 2024-11-05, which has no audio block (MCP-X-61, MCP-V-7).
    #[must_use]
    pub fn without_audio(mut self) -> Self {
        for block in &mut self.content {
            if let Content::Audio { mime, data } = block {
                let bytes = data.trim_end_matches('=').len() * 3 / 4;
                *block = Content::Text(format!(
                    "[audio, {mime}, {bytes} bytes: not supported by this protocol revision]"
                ));
            }
        }
        self
    }

    /// A call that failed, and why.
    pub fn error(outcome: CallOutcome, text: impl Into<String>) -> Self {
        Self {
            content: vec![Content::Text(text.into())],
            structured: Structured::None,
            is_error: true,
            outcome,
            faults: Vec::new(),
            status: None,
            challenge: None,
            sent: None,
            proof: None,
            received: None,
        }
    }

    /// A call whose arguments do not fit: nothing was sent.
    pub fn invalid(faults: ArgumentFaults) -> Self {
        let mut answer = Self::error(CallOutcome::InvalidArguments, faults.text());
        answer.faults = faults.faults;
        answer
    }

    fn ok(content: Content, structured: Structured) -> Self {
        Self {
            content: vec![content],
            structured,
            is_error: false,
            outcome: CallOutcome::Ok,
            faults: Vec::new(),
            status: None,
            challenge: None,
            sent: None,
            proof: None,
            received: None,
        }
    }
}

/// Shapes an answer that arrived, without the secrets that opened the API: it may echo its request
/// (REVIEW-S-5).
pub(crate) fn shape(
    tool: &CompiledTool,
    mut response: EgressResponse,
    secrets: &Secrets,
) -> ToolAnswer {
    if let Some(masked) = secrets.masked_body(&response.body) {
        response.body = masked;
    }
    let response = &response;
    let mut answer = if response.status.is_success() {
        success(tool, response)
    } else {
        ToolAnswer::error(CallOutcome::ToolError, refusal(response))
    };
    // Headers and addresses may hold them, too.
    for block in &mut answer.content {
        match block {
            Content::Text(text) if !response.status.is_success() => mask(text, secrets),
            Content::Blob { uri, .. } => mask(uri, secrets),
            Content::Text(_) | Content::Image { .. } | Content::Audio { .. } => {}
        }
    }
    answer.status = Some(response.status.as_u16());
    if matches!(
        response.status,
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN
    ) {
        answer.challenge = challenge(&response.headers);
    }
    answer
}

fn mask(text: &mut String, secrets: &Secrets) {
    if let Cow::Owned(masked) = secrets.masked(text) {
        *text = masked;
    }
}

/// All challenges of an answer as one list (RFC 9110 §11.6.1), as far as they are text.
fn challenge(headers: &HeaderMap) -> Option<String> {
    let values = headers.get_all(header::WWW_AUTHENTICATE).iter();
    let texts: Vec<&str> = values.filter_map(|value| value.to_str().ok()).collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}

/// The content coding of an answer (RFC 9110 §8.4), if it has one. None was asked for, and nothing
/// here unpacks one (TEST-B5).
fn coding(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::CONTENT_ENCODING)?;
    let name = String::from_utf8_lossy(value.as_bytes());
    let name: String = name.trim().chars().take(32).collect();
    (!name.is_empty() && !name.eq_ignore_ascii_case("identity")).then_some(name)
}

fn success(tool: &CompiledTool, response: &EgressResponse) -> ToolAnswer {
    let body = response.body.as_ref();
    if body.is_empty() {
        return empty(tool, response.status);
    }
    if let Some(coding) = coding(&response.headers) {
        return ToolAnswer::error(
            CallOutcome::ToolError,
            format!(
                "The API answered {}, but packed its answer ({coding}), although it was not asked to. The call itself succeeded; do not repeat it blindly.",
                line(response.status)
            ),
        );
    }
    let kind = media_type(&response.headers);
    let essence = kind.as_deref().unwrap_or_default();
    if is_json(essence) {
        return json_answer(tool, body).unwrap_or_else(|fault| {
            ToolAnswer::error(
                CallOutcome::ToolError,
                format!(
                    "The API answered {} and called it {essence}, but it is not usable JSON ({fault}). It begins:\n\n{}",
                    line(response.status),
                    excerpt(body, 512)
                ),
            )
        });
    }
    let is_untyped =
        essence.is_empty() || essence == "application/octet-stream" || essence == "text/plain";
    if is_untyped
        && (tool.output_schema().is_some() || essence.is_empty())
        && let Ok(answer) = json_answer(tool, body)
    {
        return answer;
    }
    if tool.output_schema().is_some() {
        return ToolAnswer::error(
            CallOutcome::ToolError,
            format!(
                "The API answered {} with {}, although its documentation promises a JSON object. It begins:\n\n{}",
                line(response.status),
                if essence.is_empty() {
                    "something untyped"
                } else {
                    essence
                },
                excerpt(body, 512)
            ),
        );
    }
    ToolAnswer::ok(content(response, essence), Structured::None)
}

/// A success without a body.
fn empty(tool: &CompiledTool, status: StatusCode) -> ToolAnswer {
    let text = format!("The API answered {} without content: done.", line(status));
    match tool.output_schema() {
        // The promise of an object cannot be kept, but the work was done: say so rather than fail.
        Some(_) if status != StatusCode::NO_CONTENT => ToolAnswer::error(
            CallOutcome::ToolError,
            format!(
                "The API answered {} without content, although its documentation promises an object. The call itself succeeded; do not repeat it blindly.",
                line(status)
            ),
        ),
        Some(_) => ToolAnswer::ok(Content::Text(text), Structured::None).with_empty_object(tool),
        None => ToolAnswer::ok(Content::Text(text), Structured::None),
    }
}

/// A body that is no JSON object, by its media type.
fn content(response: &EgressResponse, essence: &str) -> Content {
    let body = response.body.as_ref();
    if essence.starts_with("image/") && essence != "image/svg+xml" {
        Content::Image {
            mime: essence.to_owned(),
            data: STANDARD.encode(body),
        }
    } else if essence.starts_with("audio/") {
        Content::Audio {
            mime: essence.to_owned(),
            data: STANDARD.encode(body),
        }
    } else if is_text(essence) || (essence.is_empty() && std::str::from_utf8(body).is_ok()) {
        Content::Text(clean(&decode(&response.headers, body)))
    } else {
        let mut uri = response.final_url.clone();
        uri.set_query(None);
        uri.set_fragment(None);
        let mime = if essence.is_empty() {
            "application/octet-stream"
        } else {
            essence
        };
        Content::Blob {
            uri: uri.to_string(),
            mime: mime.to_owned(),
            data: STANDARD.encode(body),
        }
    }
}

impl ToolAnswer {
    /// 204 for a tool that promises an object: an empty one, if the schema allows it.
    fn with_empty_object(mut self, tool: &CompiledTool) -> Self {
        if tool.fits_output(&Tree::Object(Vec::new())) {
            self.structured = Structured::Empty;
        }
        self
    }
}

/// The answer as text, and if it is an object as structure. It is read once, for its syntax and for
/// the schema.
fn json_answer(tool: &CompiledTool, body: &[u8]) -> Result<ToolAnswer, String> {
    let text = utf8(body)?;
    let compacted = compact(text)?;
    let fits = if tool.output_schema().is_some() {
        let tree: Tree<'_> = parsed(text)?;
        tool.fits_output(&tree)
    } else {
        parsed::<IgnoredAny>(text)?;
        true
    };
    let json = compacted.unwrap_or_else(|| text.to_owned());
    if !fits {
        return Ok(unfit(tool, &json));
    }
    let structured = if json.starts_with('{') {
        Structured::Text
    } else {
        Structured::None
    };
    Ok(ToolAnswer::ok(Content::Text(json), structured))
}

/// For an answer that its schema does not allow: what is wrong with it.
fn unfit(tool: &CompiledTool, json: &str) -> ToolAnswer {
    let value: Value = serde_json::from_str(json).unwrap_or_default();
    let faults = tool.output_faults(&value);
    let list: String = faults
        .iter()
        .flat_map(|faults| &faults.faults)
        .map(|fault| {
            let path = if fault.path.is_empty() {
                "the answer"
            } else {
                &fault.path
            };
            format!("\n- {path} {}", fault.message)
        })
        .collect();
    ToolAnswer::error(
        CallOutcome::ToolError,
        format!(
            "The API answered, but not in the shape its documentation promises:{list}\n\nThe answer was:\n\n{}",
            excerpt(json.as_bytes(), MAX_EXCERPT)
        ),
    )
}

/// Text without a byte order mark and without white space around it.
fn utf8(body: &[u8]) -> Result<&str, String> {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    let text = std::str::from_utf8(body).map_err(|error| error.to_string())?;
    Ok(text.trim_matches([' ', '\n', '\r', '\t']))
}

fn parsed<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// JSON on one line, for showing.
fn shown_json(body: &[u8]) -> Result<String, String> {
    let text = utf8(body)?;
    let compacted = compact(text)?;
    parsed::<IgnoredAny>(text)?;
    Ok(compacted.unwrap_or_else(|| text.to_owned()))
}

/// Removes the white space between the tokens of JSON, without building a tree. `None` if there is
/// none, which is what machines write for machines. Of a text that is not JSON it makes something
/// that is not either, or is: parse the text itself.
fn compact(text: &str) -> Result<Option<String>, String> {
    let mut out = String::new();
    let mut depth = 0_usize;
    let mut start = 0;
    let mut bytes = text.bytes().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'"' => skip_string(&mut bytes),
            b'{' | b'[' => {
                depth += 1;
                if depth > MAX_JSON_DEPTH {
                    return Err("it is nested too deep".to_owned());
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b' ' | b'\n' | b'\r' | b'\t' => {
                if out.is_empty() {
                    out.reserve(text.len());
                }
                out.push_str(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if start == 0 {
        return Ok(None);
    }
    out.push_str(&text[start..]);
    Ok(Some(out))
}

/// Goes on behind the quote that ends a string.
fn skip_string(bytes: &mut impl Iterator<Item = (usize, u8)>) {
    while let Some((_, byte)) = bytes.next() {
        match byte {
            b'\\' => _ = bytes.next(),
            b'"' => return,
            _ => {}
        }
    }
}

fn refusal(response: &EgressResponse) -> String {
    let status = response.status;
    let mut text = format!("The API answered {}.", line(status));
    let after = response
        .headers
        .get(header::RETRY_AFTER)
        .and_then(|value| value.to_str().ok())
        .map(|text| {
            text.chars()
                .filter(|c| !c.is_control())
                .take(40)
                .collect::<String>()
        });
    match (status.as_u16(), after) {
        (401, _) => text.push_str(
            " The workspace's credential for this API is missing or was not accepted; a person can set it in the console.",
        ),
        (429 | 503, Some(after)) if after.bytes().all(|b| b.is_ascii_digit()) => {
            text.push_str(&format!(" Wait {after} seconds before trying again."));
        }
        (429 | 503, Some(after)) => text.push_str(&format!(" Try again after {after}.")),
        (429, None) => text.push_str(" Wait before trying again."),
        (300..=399, _) => {
            let target = response.headers.get(header::LOCATION).and_then(|value| value.to_str().ok()).unwrap_or("nowhere");
            text.push_str(&format!(
                " It redirects to {}, which this source's settings do not follow.",
                excerpt(target.split('?').next().unwrap_or_default().as_bytes(), 200)
            ));
        }
        _ => {}
    }
    if !response.body.is_empty() {
        let kind = media_type(&response.headers).unwrap_or_default();
        let shown = match shown_json(&response.body) {
            Ok(json) => excerpt(json.as_bytes(), MAX_EXCERPT),
            Err(_) if kind == "text/html" => excerpt(
                words_of_html(&decode(&response.headers, &response.body)).as_bytes(),
                1_024,
            ),
            Err(_) if is_text(&kind) || std::str::from_utf8(&response.body).is_ok() => excerpt(
                decode(&response.headers, &response.body).as_bytes(),
                MAX_EXCERPT,
            ),
            Err(_) => format!("[{} bytes of {kind}]", response.body.len()),
        };
        if !shown.trim().is_empty() {
            text.push_str("\n\n");
            text.push_str(&shown);
        }
    }
    text
}

/// `404 Not Found`.
fn line(status: StatusCode) -> String {
    match status.canonical_reason() {
        Some(reason) => format!("{} {reason}", status.as_u16()),
        None => status.as_u16().to_string(),
    }
}

/// Essence of the content type, lower case.
fn media_type(headers: &HeaderMap) -> Option<Cow<'_, str>> {
    let text = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    let essence = text.split(';').next().unwrap_or_default().trim();
    let sound = essence.len() < 128
        && essence.contains('/')
        && essence
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"!#$&-^_.+/".contains(&b));
    if !sound {
        return None;
    }
    let is_lower = !essence.bytes().any(|b| b.is_ascii_uppercase());
    Some(if is_lower {
        essence.into()
    } else {
        essence.to_ascii_lowercase().into()
    })
}

fn is_json(essence: &str) -> bool {
    matches!(essence, "application/json" | "text/json") || essence.ends_with("+json")
}

fn is_text(essence: &str) -> bool {
    essence.starts_with("text/")
        || essence.ends_with("+xml")
        || essence.ends_with("+yaml")
        || matches!(
            essence,
            "application/xml"
                | "application/yaml"
                | "application/x-yaml"
                | "application/javascript"
                | "application/x-ndjson"
                | "application/x-www-form-urlencoded"
                | "application/graphql"
                | "application/sql"
                | "application/toml"
        )
}

/// Without control characters: terminal sequences in an answer must not reach a terminal
/// (MCP-TL-23).
fn clean(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_control() || matches!(c, '\n' | '\t'))
        .collect()
}

fn excerpt(bytes: &[u8], max: usize) -> String {
    let text = clean(&String::from_utf8_lossy(&bytes[..bytes.len().min(max * 2)]));
    if text.len() <= max && bytes.len() <= max * 2 {
        return text;
    }
    let mut end = max.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}… [cut, {} bytes in all]", &text[..end], bytes.len())
}

/// The readable words of an error page: without scripts, styles and tags.
fn words_of_html(html: &str) -> String {
    let mut out = String::new();
    let mut rest = html;
    while let Some((text, after)) = rest.split_once('<') {
        out.push_str(text);
        let lower = after
            .get(..6)
            .map(str::to_ascii_lowercase)
            .unwrap_or_default();
        let skipped = if lower.starts_with("script") {
            after.split_once("</script").map(|(_, after)| after)
        } else if lower.starts_with("style") {
            after.split_once("</style").map(|(_, after)| after)
        } else {
            Some(after)
        };
        rest = skipped
            .and_then(|after| after.split_once('>'))
            .map_or("", |(_, after)| after);
        out.push(' ');
    }
    out.push_str(rest);
    out.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Says honestly why there is no answer, and what helps.
pub(crate) fn unreachable(error: &EgressError) -> ToolAnswer {
    let what = match error {
        EgressError::BlockedAddress { .. } | EgressError::BlockedUrl { .. } => {
            "Nothing was sent. A person has to correct the source's base URL in the console."
        }
        EgressError::Dns { .. } => {
            "Nothing was sent. The API's name does not resolve at the moment, or the source's base URL is wrong."
        }
        EgressError::Away { .. } => {
            "Nothing was sent. Somewhere `portolan attach` has to be started again; try again later."
        }
        EgressError::Connect { .. } | EgressError::Tls { .. } => {
            "Nothing was sent. The API seems to be down; try again later."
        }
        EgressError::Timeout {
            phase: Phase::Connect,
            ..
        } => "Nothing was sent. The API seems to be down; try again later.",
        EgressError::Timeout { .. } => {
            "The request was sent, so the API may have done the work: check before repeating it. Ask for less, or try again later."
        }
        EgressError::TooLarge { .. } => {
            "Ask for less: a smaller page, fewer fields or a narrower filter. A person can raise the limit in the source's settings."
        }
        EgressError::Redirect { .. } => {
            "A person should correct the source's base URL in the console."
        }
        EgressError::Protocol { .. } => {
            "The request may have reached the API: check before repeating it."
        }
    };
    ToolAnswer::error(
        CallOutcome::UpstreamError,
        format!("The API gave no usable answer: {error}. {what}"),
    )
}

#[cfg(test)]
mod tests;
