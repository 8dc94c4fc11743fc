//! Sampling: messages for the client's model, and its result (MCP-SM-1…MCP-SM-6;
//! MCP-X-3A…MCP-X-3E).

use super::{Asked, Unaskable, meta};
use crate::json::Object;
use crate::jsonrpc::{Kind, Misfit, Raw};
use crate::revision::Revision;
use crate::shaped::{Loss, Losses, Shaped, block};

fn kind_of(block: &Raw) -> Option<String> {
    block.get("type")?.string()
}

/// The blocks of a message: one, or those of an array.
fn blocks(content: &Raw) -> Vec<Raw> {
    if content.kind() == Kind::Array {
        content.elements().collect()
    } else {
        vec![content.clone()]
    }
}

/// MCP-SM-3: true if the request has tools, or messages that speak of them.
pub(super) fn uses_tools(params: &Raw) -> bool {
    let mut messages = params
        .get("messages")
        .into_iter()
        .flat_map(|list| list.elements().collect::<Vec<_>>());
    params.get("tools").is_some()
        || params.get("toolChoice").is_some()
        || messages.any(|message| {
            let content = message.get("content");
            content
                .iter()
                .flat_map(blocks)
                .any(|block| matches!(kind_of(&block).as_deref(), Some("tool_use" | "tool_result")))
        })
}

/// Parameters of `sampling/createMessage` as the client's revision knows them.
pub(super) fn question(params: &Raw, asked: &Asked<'_>) -> Result<Shaped, Unaskable> {
    let messages = params
        .get("messages")
        .filter(|messages| messages.kind() == Kind::Array)
        .ok_or_else(|| Misfit::new("params.messages", "expected an array"))?;
    if params
        .get("maxTokens")
        .is_none_or(|most| most.kind() != Kind::Number)
    {
        return Err(Misfit::new("params.maxTokens", "expected a number").into());
    }
    answers_follow(&messages)?;
    let later = asked.to.facts().later_questions;
    let (mut out, mut losses) = (Vec::with_capacity(params.as_bytes().len()), Losses::NONE);
    let mut object = Object::begin(&mut out);
    let mut metadata = None;
    for (name, value) in params.members() {
        match name.as_str() {
            "messages" => {
                object.key("messages");
                let list = object.out();
                list.push(b'[');
                for (index, entry) in messages.elements().enumerate() {
                    if index > 0 {
                        list.push(b',');
                    }
                    message(&entry, index, asked.to, list, &mut losses)?;
                }
                list.push(b']');
            }
            // MCP-X-3E: R1–R3 have it without asking; later it goes with a capability.
            "includeContext"
                if later
                    && !asked.capabilities.sampling_context
                    && value.string().as_deref() != Some("none") =>
            {
                losses.add(Loss::IncludeContext);
            }
            "task" => losses.add(Loss::QuestionTask),
            "_meta" => metadata = Some(value),
            _ => object.raw(&name, value.as_bytes()),
        }
    }
    if let Some(value) = metadata {
        meta(&value, &mut object, &mut losses);
    }
    object.end();
    Ok(Shaped { json: out, losses })
}

/// MCP-SM-4: the message after a model's tool calls holds their results, and nothing else.
fn answers_follow(messages: &Raw) -> Result<(), Misfit> {
    let fault =
        |index: usize, what: &str| Err(Misfit::new(format!("params.messages[{index}]"), what));
    let ids = |blocks: &[Raw], kind: &str, member: &str| -> Vec<String> {
        let of_kind = blocks
            .iter()
            .filter(|block| kind_of(block).as_deref() == Some(kind));
        let mut ids: Vec<String> = of_kind
            .filter_map(|block| block.get(member)?.string())
            .collect();
        ids.sort_unstable();
        ids
    };
    let mut open: Vec<String> = Vec::new();
    for (index, message) in messages.elements().enumerate() {
        let content = message.get("content");
        let all: Vec<Raw> = content.iter().flat_map(blocks).collect();
        let results = ids(&all, "tool_result", "toolUseId");
        if !results.is_empty() && results.len() < all.len() {
            return fault(index, "a message with results of tools holds nothing else");
        }
        if results != open {
            return fault(
                index,
                "expected the results of the tools that were used before",
            );
        }
        open = ids(&all, "tool_use", "id");
    }
    if open.is_empty() {
        Ok(())
    } else {
        Err(Misfit::new(
            "params.messages",
            "expected the results of the tools that were used last",
        ))
    }
}

fn message(
    message: &Raw,
    index: usize,
    to: Revision,
    out: &mut Vec<u8>,
    losses: &mut Losses,
) -> Result<(), Unaskable> {
    let fault = |what: &str| Misfit::new(format!("params.messages[{index}]"), what);
    let role = message.get("role").and_then(|role| role.string());
    if !matches!(role.as_deref(), Some("user" | "assistant")) {
        return Err(fault("expected a role").into());
    }
    let content = message
        .get("content")
        .ok_or_else(|| fault("expected content"))?;
    let mut object = Object::begin(out);
    for (name, value) in message.members() {
        match name.as_str() {
            "content" => {
                object.key("content");
                self::content(&content, to, object.out(), losses)?;
            }
            "_meta" if !to.facts().later_questions => losses.add(Loss::Meta),
            _ => object.raw(&name, value.as_bytes()),
        }
    }
    object.end();
    Ok(())
}

/// MCP-X-3C: 2025-11-25 and later take one block or several, those before it one.
fn content(
    content: &Raw,
    to: Revision,
    out: &mut Vec<u8>,
    losses: &mut Losses,
) -> Result<(), Unaskable> {
    let all = blocks(content);
    for block in &all {
        if kind_of(block).is_none() {
            return Err(Misfit::new("params.messages", "expected blocks with a type").into());
        }
        if kind_of(block).as_deref() == Some("audio") && !to.facts().audio {
            return Err(Unaskable::Content("sound"));
        }
    }
    if to.facts().later_questions {
        out.extend_from_slice(content.as_bytes());
        return Ok(());
    }
    match all.as_slice() {
        [one] => one_block(one, to, out, losses),
        several => {
            let texts: Option<Vec<String>> = several
                .iter()
                .map(|block| match kind_of(block).as_deref() {
                    Some("text") => block.get("text")?.string(),
                    _ => None,
                })
                .collect();
            match texts {
                Some(texts) if !texts.is_empty() => {
                    losses.add(Loss::JoinedBlocks);
                    let mut object = Object::begin(out);
                    object.raw("type", br#""text""#);
                    object.value("text", &texts.join("\n"));
                    object.end();
                    Ok(())
                }
                _ => Err(Unaskable::Content("several blocks")),
            }
        }
    }
}

fn one_block(
    one: &Raw,
    to: Revision,
    out: &mut Vec<u8>,
    losses: &mut Losses,
) -> Result<(), Unaskable> {
    block::write(one, to, out, losses)
        .map_err(|_| Misfit::new("params.messages", "expected a block of content").into())
}

/// Translates the result of the client's model for the server that requested it (MCP-SM-6,
/// MCP-X-3C).
pub(super) fn answer(result: &Raw, to_asker: Revision) -> Result<Shaped, Misfit> {
    for name in ["role", "model"] {
        if result
            .get(name)
            .is_none_or(|value| value.kind() != Kind::String)
        {
            return Err(Misfit::new(format!("result.{name}"), "expected a string"));
        }
    }
    let said = result
        .get("content")
        .ok_or_else(|| Misfit::new("result.content", "required"))?;
    let (mut out, mut losses) = (Vec::with_capacity(result.as_bytes().len()), Losses::NONE);
    let mut object = Object::begin(&mut out);
    for (name, value) in result.members() {
        match name.as_str() {
            "content" => {
                object.key("content");
                content(&said, to_asker, object.out(), &mut losses).map_err(|why| match why {
                    Unaskable::Malformed(misfit) => misfit,
                    other => Misfit::new("result.content", other.to_string()),
                })?;
            }
            "resultType" => {}
            _ => object.raw(&name, value.as_bytes()),
        }
    }
    object.end();
    Ok(Shaped { json: out, losses })
}
