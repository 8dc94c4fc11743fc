//! One block of content (MCP-TL-14, MCP-FA-3; MCP-X-61, MCP-X-62, MCP-V-7).

use super::{Loss, Losses, Violation};
use crate::content::decoded_len;
use crate::json::Object;
use crate::jsonrpc::{Kind, Raw};
use crate::revision::Revision;

fn text_of(value: &Raw, name: &str) -> Result<String, Violation> {
    let text = value.get(name).and_then(|text| text.string());
    text.ok_or(Violation::Block)
}

/// Appends `block` as `to` knows it.
pub(crate) fn write(
    block: &Raw,
    to: Revision,
    out: &mut Vec<u8>,
    losses: &mut Losses,
) -> Result<(), Violation> {
    let facts = to.facts();
    let sort = text_of(block, "type")?;
    match sort.as_str() {
        "text" => {
            text_of(block, "text")?;
        }
        "image" | "audio" => {
            let data = text_of(block, "data")?;
            let mime_type = text_of(block, "mimeType")?;
            if sort == "audio" && !facts.audio {
                losses.add(Loss::Audio);
                let bytes = decoded_len(&data);
                stand_in(
                    &format!(
                        "[audio, {mime_type}, {bytes} bytes: not supported by this protocol revision]"
                    ),
                    out,
                );
                return Ok(());
            }
        }
        "resource_link" => {
            let (name, uri) = (text_of(block, "name")?, text_of(block, "uri")?);
            if !facts.resource_links {
                losses.add(Loss::ResourceLink);
                stand_in(&format!("[resource link] {name} {uri}"), out);
                return Ok(());
            }
        }
        "resource" => {
            let resource = block.get("resource").ok_or(Violation::Block)?;
            if !is_contents(&resource) {
                return Err(Violation::Block);
            }
        }
        other => {
            losses.add(Loss::UnknownBlock);
            let shown: String = other.chars().filter(|c| !c.is_control()).take(64).collect();
            stand_in(
                &format!("[{shown}: not supported by this protocol revision]"),
                out,
            );
            return Ok(());
        }
    }
    let mut object = Object::begin(out);
    for (name, value) in block.members() {
        match name.as_str() {
            "_meta" => meta(&value, to, &mut object, losses),
            "annotations" => annotations(&value, to, &mut object, losses),
            "icons" if sort == "resource_link" => icons(&value, to, &mut object, losses),
            "resource" if sort == "resource" => {
                object.key("resource");
                contents(&value, to, object.out(), losses);
            }
            _ => object.raw(&name, value.as_bytes()),
        }
    }
    object.end();
    Ok(())
}

fn stand_in(text: &str, out: &mut Vec<u8>) {
    let mut object = Object::begin(out);
    object.raw("type", br#""text""#);
    object.value("text", text);
    object.end();
}

/// MCP-RE-2: a URI, and text or bytes.
pub(crate) fn is_contents(resource: &Raw) -> bool {
    let has = |name: &str| {
        resource
            .get(name)
            .is_some_and(|value| value.kind() == Kind::String)
    };
    has("uri") && (has("text") || has("blob"))
}

/// Appends what a resource holds, as `to` knows it.
pub(crate) fn contents(resource: &Raw, to: Revision, out: &mut Vec<u8>, losses: &mut Losses) {
    let mut object = Object::begin(out);
    for (name, value) in resource.members() {
        if name == "_meta" {
            meta(&value, to, &mut object, losses);
        } else {
            object.raw(&name, value.as_bytes());
        }
    }
    object.end();
}

/// `_meta` of anything but a result (MCP-FA-1, MCP-FA-3, MCP-FA-4).
pub(crate) fn meta(value: &Raw, to: Revision, object: &mut Object<'_>, losses: &mut Losses) {
    if value.kind() != Kind::Object {
        losses.add(Loss::Malformed);
    } else if to.facts().titles {
        object.raw("_meta", value.as_bytes());
    } else {
        losses.add(Loss::Meta);
    }
}

/// Hints about a block or a resource (MCP-FA-3).
pub(crate) fn annotations(value: &Raw, to: Revision, object: &mut Object<'_>, losses: &mut Losses) {
    if value.kind() != Kind::Object {
        losses.add(Loss::Malformed);
        return;
    }
    let dated = value.get("lastModified").is_some();
    if !dated || to.facts().titles {
        object.raw("annotations", value.as_bytes());
        return;
    }
    losses.add(Loss::LastModified);
    object.key("annotations");
    let mut hints = Object::begin(object.out());
    for (name, value) in value.members() {
        if name != "lastModified" {
            hints.raw(&name, value.as_bytes());
        }
    }
    hints.end();
}

/// Pictures (MCP-FA-1, MCP-FA-4), only with schemes that a client may load (MCP-IC-2).
pub(crate) fn icons(value: &Raw, to: Revision, object: &mut Object<'_>, losses: &mut Losses) {
    if !to.facts().icons {
        losses.add(Loss::Icons);
        return;
    }
    if value.kind() != Kind::Array {
        losses.add(Loss::Malformed);
        return;
    }
    let is_safe = |icon: &Raw| {
        let src = icon.get("src").and_then(|src| src.string());
        src.is_some_and(|src| {
            let scheme = src.split(':').next().unwrap_or_default();
            src.len() > scheme.len()
                && (scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("data"))
        })
    };
    let safe: Vec<Raw> = value.elements().filter(is_safe).collect();
    if safe.len() < value.elements().count() {
        losses.add(Loss::UnsafeIcons);
    }
    if safe.is_empty() {
        return;
    }
    object.key("icons");
    let list = object.out();
    list.push(b'[');
    for (index, icon) in safe.iter().enumerate() {
        if index > 0 {
            list.push(b',');
        }
        list.extend_from_slice(icon.as_bytes());
    }
    list.push(b']');
}
