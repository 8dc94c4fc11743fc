//! Resources and their templates (MCP-FA-4).

use serde::Deserialize;

use crate::content::{Annotations, ResourceContents};
use crate::initialize::Icon;
use crate::json::Object;
use crate::jsonrpc::{Kind, Raw};
use crate::result::{self, CacheHint, Identity, ResultObject};
use crate::revision::Revision;
use crate::shaped::{Losses, block};

/// URI of a resource, or URI template of a kind of resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// `uri`: a resource.
    Uri(String),
    /// `uriTemplate` (RFC 6570): a template.
    Template(String),
}

/// A resource or a template as it is published.
#[derive(Clone, Debug, PartialEq)]
pub struct Resource {
    /// Where.
    pub location: Location,
    /// Programmatic name.
    pub name: String,
    /// Display name (R3+).
    pub title: Option<String>,
    /// Description.
    pub description: Option<String>,
    /// Media type.
    pub mime_type: Option<String>,
    /// Size in bytes; resources only.
    pub size: Option<u64>,
    /// Hints.
    pub annotations: Option<Annotations>,
    /// Pictures (R4+).
    pub icons: Vec<Icon>,
    /// Metadata, an object (R3+).
    pub meta: Option<Raw>,
    /// Hints as they were written, an object: instead of `annotations` (MCP-J-10).
    pub written_annotations: Option<Raw>,
    /// Members that no revision knows, with their names (MCP-J-10).
    pub others: Vec<(String, Raw)>,
}

/// Members of a definition that some revision knows, of resources and of templates.
pub const KNOWN_MEMBERS: [&str; 10] = [
    "uri",
    "uriTemplate",
    "name",
    "title",
    "description",
    "mimeType",
    "size",
    "annotations",
    "icons",
    "_meta",
];

impl Resource {
    /// The resource as JSON, as `revision` knows it.
    pub fn to_json(&self, revision: Revision) -> Vec<u8> {
        let facts = revision.facts();
        let mut out = Vec::with_capacity(256);
        let mut object = Object::begin(&mut out);
        match &self.location {
            Location::Uri(uri) => object.value("uri", uri),
            Location::Template(template) => object.value("uriTemplate", template),
        }
        object.value("name", &self.name);
        if facts.titles {
            object.optional("title", self.title.as_ref());
        }
        object.optional("description", self.description.as_ref());
        object.optional("mimeType", self.mime_type.as_ref());
        // Templates never have a size.
        if matches!(self.location, Location::Uri(_)) {
            object.optional("size", self.size.as_ref());
        }
        if let Some(written) = &self.written_annotations {
            let mut lost = Losses::NONE;
            block::annotations(written, revision, &mut object, &mut lost);
        } else if let Some(annotations) = &self.annotations {
            let last_modified = annotations.last_modified.clone().filter(|_| facts.titles);
            object.value(
                "annotations",
                &Annotations {
                    last_modified,
                    ..annotations.clone()
                },
            );
        }
        if facts.icons && !self.icons.is_empty() {
            object.value("icons", &self.icons);
        }
        if facts.titles
            && let Some(meta) = self
                .meta
                .as_ref()
                .filter(|meta| meta.kind() == Kind::Object)
        {
            object.raw("_meta", meta.as_bytes());
        }
        for (name, value) in &self.others {
            object.raw(name, value.as_bytes());
        }
        object.end();
        out
    }
}

/// One page of `resources/list`; no items give the empty list.
pub fn list_page<'i>(
    revision: Revision,
    identity: &Identity,
    resources: impl IntoIterator<Item = &'i [u8]>,
    next_cursor: Option<&str>,
    hint: CacheHint,
) -> Vec<u8> {
    result::list_page(
        revision,
        identity,
        "resources",
        resources,
        next_cursor,
        hint,
    )
}

/// One page of `resources/templates/list`; no items give the empty list.
pub fn template_page<'i>(
    revision: Revision,
    identity: &Identity,
    templates: impl IntoIterator<Item = &'i [u8]>,
    next_cursor: Option<&str>,
    hint: CacheHint,
) -> Vec<u8> {
    result::list_page(
        revision,
        identity,
        "resourceTemplates",
        templates,
        next_cursor,
        hint,
    )
}

/// Parameters of `resources/read`, `resources/subscribe` and `resources/unsubscribe`. A resource
/// that does not exist, or that the caller may not see, is
/// [`crate::error::ErrorKind::ResourceNotFound`] (MCP-RE-4, MCP-RE-5, MCP-RE-10).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct UriParams {
    /// The resource.
    pub uri: String,
}

/// The result of `resources/read`, as `revision` knows it. Never with empty `contents` (MCP-RE-5):
/// that is "not found".
pub fn read_result(
    revision: Revision,
    identity: &Identity,
    contents: &[ResourceContents],
    hint: CacheHint,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    let mut result = ResultObject::begin(&mut out, revision);
    let shaped: Vec<_> = contents
        .iter()
        .map(|contents| contents.shaped(revision))
        .collect();
    result.object.value("contents", &shaped);
    result.cache(hint);
    result.end(identity, None);
    out
}
