//! URIs of an upstream that its clients know by others: rewritten alike in every place that carries
//! one (MCP-RE-12, MCP-X-6B).

use crate::json::Object;
use crate::jsonrpc::{Kind, Raw};

/// Kind of a value that may contain URIs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UriPlace {
    Result,
    Message,
    Block,
    /// Contents of a resource, or the part of an error that names a resource.
    Resource,
    Meta,
    /// `_meta.ui` of MCP Apps (MCP-EX-4).
    Ui,
}

impl UriPlace {
    fn inner(self, member: &str) -> Option<Self> {
        match (self, member) {
            // The result of a tool that a model used is a block that has blocks (MCP-SM-4).
            (Self::Result | Self::Message | Self::Block, "content") => Some(Self::Block),
            (Self::Result, "messages") => Some(Self::Message),
            (Self::Result, "contents") | (Self::Block, "resource") => Some(Self::Resource),
            (Self::Result | Self::Block | Self::Resource, "_meta") => Some(Self::Meta),
            (Self::Meta, "ui") => Some(Self::Ui),
            _ => None,
        }
    }

    fn is_uri(self, member: &str, is_link: bool) -> bool {
        match (self, member) {
            (Self::Resource, "uri")
            | (Self::Meta, "ui/resourceUri")
            | (Self::Ui, "resourceUri") => true,
            (Self::Block, "uri") => is_link,
            _ => false,
        }
    }
}

type Published<'p> = &'p dyn Fn(&str) -> Option<String>;

fn write(value: &Raw, place: UriPlace, published: Published<'_>, out: &mut Vec<u8>) {
    match value.kind() {
        Kind::Array => {
            out.push(b'[');
            for (index, entry) in value.elements().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write(&entry, place, published, out);
            }
            out.push(b']');
        }
        Kind::Object => {
            let kind = value.get("type").and_then(|kind| kind.string());
            let is_link = kind.as_deref() == Some("resource_link");
            let mut object = Object::begin(out);
            for (name, value) in value.members() {
                let renamed = place
                    .is_uri(&name, is_link)
                    .then(|| published(&value.string()?))
                    .flatten();
                if let Some(uri) = renamed {
                    object.value(&name, &uri);
                } else if let Some(inner) = place.inner(&name) {
                    object.key(&name);
                    write(&value, inner, published, object.out());
                } else {
                    object.raw(&name, value.as_bytes());
                }
            }
            object.end();
        }
        _ => out.extend_from_slice(value.as_bytes()),
    }
}

fn rewritten(value: &Raw, place: UriPlace, published: Published<'_>) -> Raw {
    let mut out = Vec::with_capacity(value.as_bytes().len() + 64);
    write(value, place, published, &mut out);
    Raw::trusted(out.into())
}

/// A result of `tools/call`, `prompts/get` or `resources/read`, under the URIs that clients know.
/// `published` gives that of an upstream's own, if it is another.
pub fn uris(result: &Raw, published: Published<'_>) -> Raw {
    rewritten(result, UriPlace::Result, published)
}

/// Replaces the URI in an error about a resource: in its `data`.
pub fn uri_of_error(data: &Raw, published: Published<'_>) -> Raw {
    rewritten(data, UriPlace::Resource, published)
}

/// The same of the `_meta` of a definition.
pub fn uris_of_meta(meta: &Raw, published: Published<'_>) -> Raw {
    rewritten(meta, UriPlace::Meta, published)
}
