//! Content blocks, and what older revisions see of them (MCP-TL-14, MCP-FA-3; MCP-V-7 of the
//! translation rules).

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::initialize::Icon;
use crate::jsonrpc::Raw;
use crate::revision::Revision;

/// One block of content of a tool result or prompt message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ContentBlock {
    /// Text.
    Text(TextContent),
    /// A picture.
    Image(BinaryContent),
    /// A sound (R2+).
    Audio(BinaryContent),
    /// A reference to a resource (R3+).
    ResourceLink(Box<ResourceLink>),
    /// A resource itself.
    Resource(Box<EmbeddedResource>),
}

/// A block of text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TextContent {
    /// The text.
    pub text: String,
    /// Hints for the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Metadata (R3+).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<serde_json::Value>,
}

/// An image or a sound.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BinaryContent {
    /// Base64, standard alphabet with padding.
    pub data: String,
    /// Media type.
    pub mime_type: String,
    /// Hints for the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Metadata (R3+).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<serde_json::Value>,
}

/// A reference to a resource, which need not be in `resources/list` (MCP-TL-15).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceLink {
    /// URI of the resource.
    pub uri: String,
    /// Programmatic name.
    pub name: String,
    /// Display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Size in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Pictures (R4+).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub icons: Vec<Icon>,
    /// Hints for the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<serde_json::Value>,
}

/// A resource within a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EmbeddedResource {
    /// The resource.
    pub resource: ResourceContents,
    /// Hints for the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Metadata (R3+).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<serde_json::Value>,
}

/// Contents of a resource (MCP-RE-2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub enum ResourceContents {
    /// Text.
    Text {
        /// URI of the resource.
        uri: String,
        /// Media type.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
        /// The text.
        text: String,
        /// Metadata (R3+).
        #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
        meta: Option<serde_json::Value>,
    },
    /// Bytes.
    Blob {
        /// URI of the resource.
        uri: String,
        /// Media type.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
        /// Base64, standard alphabet with padding.
        blob: String,
        /// Metadata (R3+).
        #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
        meta: Option<serde_json::Value>,
    },
}

/// Hints about a block or resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Annotations {
    /// `user`, `assistant`, or both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audience: Option<Vec<Role>>,
    /// 0 (optional) to 1 (required).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<f64>,
    /// ISO 8601 (R3+).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
}

/// Author of a message, or audience of an annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The person.
    User,
    /// The model.
    Assistant,
}

impl ContentBlock {
    /// A plain text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent {
            text: text.into(),
            ..TextContent::default()
        })
    }

    /// An image of Base64 data.
    pub fn image(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self::Image(BinaryContent {
            data: data.into(),
            mime_type: mime_type.into(),
            ..BinaryContent::default()
        })
    }

    /// A sound of Base64 data.
    pub fn audio(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self::Audio(BinaryContent {
            data: data.into(),
            mime_type: mime_type.into(),
            ..BinaryContent::default()
        })
    }

    /// An embedded resource of Base64 data.
    pub fn blob(
        uri: impl Into<String>,
        mime_type: Option<String>,
        blob: impl Into<String>,
    ) -> Self {
        let resource = ResourceContents::Blob {
            uri: uri.into(),
            mime_type,
            blob: blob.into(),
            meta: None,
        };
        Self::Resource(Box::new(EmbeddedResource {
            resource,
            annotations: None,
            meta: None,
        }))
    }

    /// The block as `revision` knows it: what it cannot know becomes a line of text, fields of
    /// later revisions go.
    pub fn shaped(&self, revision: Revision) -> Cow<'_, Self> {
        let facts = revision.facts();
        match self {
            Self::Audio(audio) if !facts.audio => Cow::Owned(Self::text(format!(
                "[audio, {}, {} bytes: not supported by this protocol revision]",
                audio.mime_type,
                decoded_len(&audio.data)
            ))),
            Self::ResourceLink(link) if !facts.resource_links => Cow::Owned(Self::text(format!(
                "[resource link] {} {}",
                link.name, link.uri
            ))),
            _ if facts.icons => Cow::Borrowed(self),
            _ if facts.titles => match self {
                Self::ResourceLink(link) if !link.icons.is_empty() => {
                    Cow::Owned(Self::ResourceLink(Box::new(ResourceLink {
                        icons: Vec::new(),
                        ..(**link).clone()
                    })))
                }
                _ => Cow::Borrowed(self),
            },
            _ if self.has_meta_or_date() => Cow::Owned(self.without_meta_and_date()),
            _ => Cow::Borrowed(self),
        }
    }

    fn has_meta_or_date(&self) -> bool {
        let dated = |annotations: &Option<Annotations>| {
            annotations
                .as_ref()
                .is_some_and(|a| a.last_modified.is_some())
        };
        match self {
            Self::Text(block) => block.meta.is_some() || dated(&block.annotations),
            Self::Image(block) | Self::Audio(block) => {
                block.meta.is_some() || dated(&block.annotations)
            }
            Self::ResourceLink(_) => false,
            Self::Resource(block) => {
                block.meta.is_some() || dated(&block.annotations) || block.resource.meta().is_some()
            }
        }
    }

    fn without_meta_and_date(&self) -> Self {
        let mut block = self.clone();
        let undate = |annotations: &mut Option<Annotations>| {
            if let Some(annotations) = annotations {
                annotations.last_modified = None;
            }
        };
        match &mut block {
            Self::Text(block) => {
                block.meta = None;
                undate(&mut block.annotations);
            }
            Self::Image(block) | Self::Audio(block) => {
                block.meta = None;
                undate(&mut block.annotations);
            }
            Self::ResourceLink(_) => {}
            Self::Resource(block) => {
                block.meta = None;
                undate(&mut block.annotations);
                block.resource = block.resource.without_meta();
            }
        }
        block
    }

    /// Appends the block as `revision` knows it.
    pub fn write(&self, revision: Revision, out: &mut Vec<u8>) {
        // The most frequent block by far, written without the detour over serde's tag.
        if let Self::Text(TextContent {
            text,
            annotations: None,
            meta: None,
        }) = self
        {
            out.extend_from_slice(br#"{"type":"text","text":"#);
            crate::result::write_string(text, out);
            out.push(b'}');
            return;
        }
        match Raw::of(self.shaped(revision).as_ref()) {
            Ok(raw) => out.extend_from_slice(raw.as_bytes()),
            Err(_) => out.extend_from_slice(br#"{"type":"text","text":""}"#),
        }
    }
}

impl ResourceContents {
    fn meta(&self) -> Option<&serde_json::Value> {
        match self {
            Self::Text { meta, .. } | Self::Blob { meta, .. } => meta.as_ref(),
        }
    }

    fn without_meta(&self) -> Self {
        let mut contents = self.clone();
        match &mut contents {
            Self::Text { meta, .. } | Self::Blob { meta, .. } => *meta = None,
        }
        contents
    }

    /// The contents as `revision` knows them.
    pub fn shaped(&self, revision: Revision) -> Cow<'_, Self> {
        if revision.facts().titles || self.meta().is_none() {
            Cow::Borrowed(self)
        } else {
            Cow::Owned(self.without_meta())
        }
    }
}

/// How many bytes a Base64 text stands for.
pub(crate) fn decoded_len(text: &str) -> usize {
    let padding = text
        .bytes()
        .rev()
        .take_while(|byte| *byte == b'=')
        .count()
        .min(2);
    (text.len() / 4 * 3).saturating_sub(padding)
}
