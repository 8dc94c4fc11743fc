//! Results (MCP-X-60…MCP-X-65, MCP-X-6F, MCP-X-6H; MCP-FA-2, MCP-FA-8, MCP-TL-13).

use crate::completion::MAX_VALUES;
use crate::json::{Object, write_string};
use crate::jsonrpc::{Kind, Raw};
use crate::meta;
use crate::method::Method;
use crate::result::{CacheHint, CacheScope, Identity, ResultObject};
use crate::revision::{Revision, StructuredOutput};
use crate::shaped::{Loss, Losses, Shaped, Violation, block};

/// Between which revisions, and in whose name.
#[derive(Clone, Copy, Debug)]
pub struct Shape<'a> {
    /// The revision of the upstream.
    pub from: Revision,
    /// The revision of the client.
    pub to: Revision,
    /// Our name card: an upstream's own is replaced (MCP-X-65).
    pub identity: &'a Identity,
    /// The result is the same for every caller: an upstream's `public` may stand (MCP-X-6H).
    pub uniform: bool,
}

/// Translates a complete result to the client's revision. A result that requests input, or a task,
/// is a violation here: check [`crate::input_required::InputRequired::is`] and [`crate::task`]
/// first.
pub fn result(method: Method, result: &Raw, shape: &Shape<'_>) -> Result<Shaped, Violation> {
    if result.kind() != Kind::Object {
        return Err(Violation::NotAnObject);
    }
    // MCP-X-8: an absent `resultType` means complete. In a legacy result the member has no meaning.
    if shape.from.facts().result_envelope
        && let Some(sort) = result.get("resultType")
        && sort.string().as_deref() != Some("complete")
    {
        return Err(Violation::ResultType);
    }
    let mut work = Work {
        out: Vec::with_capacity(result.as_bytes().len() + 192),
        losses: Losses::NONE,
        shape,
    };
    work.write(method, result)?;
    Ok(Shaped {
        json: work.out,
        losses: work.losses,
    })
}

struct Work<'a> {
    out: Vec<u8>,
    losses: Losses,
    shape: &'a Shape<'a>,
}

impl Work<'_> {
    fn write(&mut self, method: Method, result: &Raw) -> Result<(), Violation> {
        let (to, losses) = (self.shape.to, &mut self.losses);
        let mut writer = ResultObject::begin(&mut self.out, to);
        let object = &mut writer.object;
        match method {
            Method::ToolsCall => call(result, to, object, losses)?,
            Method::PromptsGet => prompt(result, to, object, losses)?,
            Method::ResourcesRead => read(result, to, object, losses)?,
            Method::Complete => completion(result, object, losses)?,
            _ => {}
        }
        for (name, value) in result.members() {
            match name.as_str() {
                "resultType" | "_meta" => {}
                "ttlMs" | "cacheScope" => {
                    if !to.facts().result_envelope {
                        losses.add(Loss::Caching);
                    }
                }
                _ if is_known(method, &name) => {}
                _ => object.raw(&name, value.as_bytes()),
            }
        }
        if method == Method::ResourcesRead {
            writer.cache(hint(result, self.shape));
        }
        let own = result.get("_meta").filter(|meta| {
            let fits = meta.kind() == Kind::Object;
            if !fits {
                losses.add(Loss::Malformed);
            }
            fits
        });
        // An upstream's name card is not ours, and legacy clients know none.
        let own = own.map(|own| without(&own, meta::SERVER_INFO));
        writer.end(self.shape.identity, own.as_ref());
        Ok(())
    }
}

fn without(object: &Raw, member: &str) -> Raw {
    let mut out = Vec::with_capacity(object.as_bytes().len());
    let mut kept = Object::begin(&mut out);
    for (name, value) in object.members() {
        if name != member {
            kept.raw(&name, value.as_bytes());
        }
    }
    kept.end();
    Raw::trusted(out.into())
}

/// Members that [`Work::write`] has written or dropped by name.
fn is_known(method: Method, name: &str) -> bool {
    match method {
        Method::ToolsCall => matches!(name, "content" | "structuredContent" | "isError"),
        Method::PromptsGet => matches!(name, "description" | "messages"),
        Method::ResourcesRead => name == "contents",
        Method::Complete => name == "completion",
        _ => false,
    }
}

fn call(
    result: &Raw,
    to: Revision,
    object: &mut Object<'_>,
    losses: &mut Losses,
) -> Result<(), Violation> {
    let structured = result.get("structuredContent");
    object.key("content");
    let content = match result.get("content") {
        Some(content) if content.kind() == Kind::Array => content,
        // Some servers give structured output alone.
        None if structured.is_some() => Raw::trusted(bytes::Bytes::from_static(b"[]")),
        _ => return Err(Violation::Content),
    };
    let list = object.out();
    list.push(b'[');
    let mut count = 0;
    for entry in content.elements() {
        if count > 0 {
            list.push(b',');
        }
        count += 1;
        block::write(&entry, to, list, losses)?;
    }
    let is_object = structured
        .as_ref()
        .is_some_and(|value| value.kind() == Kind::Object);
    if let Some(value) = &structured
        && lacks_text_for(&content, value, is_object)
    {
        if count > 0 {
            list.push(b',');
        }
        list.extend_from_slice(br#"{"type":"text","text":"#);
        write_string(value.as_str(), list);
        list.push(b'}');
    }
    list.push(b']');
    if let Some(value) = &structured {
        match to.facts().structured_output {
            StructuredOutput::Absent => losses.add(Loss::Structured),
            StructuredOutput::Object if !is_object => losses.add(Loss::StructuredShape),
            StructuredOutput::Object | StructuredOutput::Any => {
                object.raw("structuredContent", value.as_bytes());
            }
        }
    }
    match result.get("isError") {
        Some(flag) if flag.boolean().is_some() => object.raw("isError", flag.as_bytes()),
        Some(_) => losses.add(Loss::Malformed),
        None => {}
    }
    Ok(())
}

/// MCP-TL-13, MCP-X-63: an object needs some text beside it, any other value the text of exactly
/// this JSON (SEP-2106).
fn lacks_text_for(content: &Raw, value: &Raw, is_object: bool) -> bool {
    let mut texts = content.elements().filter_map(|block| {
        let sort = block.get("type")?.string()?;
        (sort == "text").then(|| block.get("text")?.string())?
    });
    if is_object {
        return texts.next().is_none();
    }
    let tree: Option<serde_json::Value> = value.read("structuredContent").ok();
    !texts.any(|text| text == value.as_str() || serde_json::from_str(&text).ok() == tree)
}

fn prompt(
    result: &Raw,
    to: Revision,
    object: &mut Object<'_>,
    losses: &mut Losses,
) -> Result<(), Violation> {
    match result.get("description") {
        Some(text) if text.kind() == Kind::String => object.raw("description", text.as_bytes()),
        Some(_) => losses.add(Loss::Malformed),
        None => {}
    }
    let messages = result
        .get("messages")
        .filter(|messages| messages.kind() == Kind::Array)
        .ok_or(Violation::Messages)?;
    object.key("messages");
    let list = object.out();
    list.push(b'[');
    for (index, message) in messages.elements().enumerate() {
        if index > 0 {
            list.push(b',');
        }
        let role = message.get("role").and_then(|role| role.string());
        let content = message.get("content").ok_or(Violation::Messages)?;
        if !matches!(role.as_deref(), Some("user" | "assistant")) {
            return Err(Violation::Messages);
        }
        let mut entry = Object::begin(list);
        for (name, value) in message.members() {
            if name != "content" {
                entry.raw(&name, value.as_bytes());
            }
        }
        entry.key("content");
        block::write(&content, to, entry.out(), losses)?;
        entry.end();
    }
    list.push(b']');
    Ok(())
}

fn read(
    result: &Raw,
    to: Revision,
    object: &mut Object<'_>,
    losses: &mut Losses,
) -> Result<(), Violation> {
    let contents = result
        .get("contents")
        .filter(|contents| contents.kind() == Kind::Array)
        .ok_or(Violation::Contents)?;
    object.key("contents");
    let list = object.out();
    list.push(b'[');
    for (index, entry) in contents.elements().enumerate() {
        if index > 0 {
            list.push(b',');
        }
        if !block::is_contents(&entry) {
            return Err(Violation::Contents);
        }
        block::contents(&entry, to, list, losses);
    }
    list.push(b']');
    Ok(())
}

/// MCP-CP-3, MCP-X-6F.
fn completion(result: &Raw, object: &mut Object<'_>, losses: &mut Losses) -> Result<(), Violation> {
    let completion = result
        .get("completion")
        .filter(|completion| completion.kind() == Kind::Object)
        .ok_or(Violation::Completion)?;
    let values: Vec<String> = completion
        .get("values")
        .and_then(|values| values.read("values").ok())
        .ok_or(Violation::Completion)?;
    let is_cut = values.len() > MAX_VALUES;
    object.key("completion");
    let mut inner = Object::begin(object.out());
    inner.value("values", &values[..values.len().min(MAX_VALUES)]);
    for (name, value) in completion.members() {
        match name.as_str() {
            "values" => {}
            "hasMore" if is_cut => {}
            "hasMore" if value.boolean().is_none() => losses.add(Loss::Malformed),
            // An integer in every revision.
            "total" if value.as_str().parse::<i64>().is_err() => losses.add(Loss::Malformed),
            _ => inner.raw(&name, value.as_bytes()),
        }
    }
    if is_cut {
        losses.add(Loss::CompletionValues);
        inner.raw("hasMore", b"true");
    }
    inner.end();
    Ok(())
}

/// MCP-CA-5, MCP-CA-6, MCP-X-6H: an upstream's own hints if it may have some, else none that lets
/// anything be kept.
fn hint(result: &Raw, shape: &Shape<'_>) -> CacheHint {
    if !shape.from.facts().result_envelope {
        return CacheHint::READ;
    }
    let ttl_ms = result
        .get("ttlMs")
        .and_then(|ttl| ttl.as_str().parse().ok())
        .unwrap_or(0);
    let is_public = result
        .get("cacheScope")
        .and_then(|scope| scope.string())
        .as_deref()
        == Some("public");
    CacheHint {
        ttl_ms,
        scope: if is_public && shape.uniform {
            CacheScope::Public
        } else {
            CacheScope::Private
        },
    }
}
