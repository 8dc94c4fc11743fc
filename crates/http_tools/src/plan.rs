//! How a tool's arguments become a request. Written by the importer, followed by every call, stored
//! as `jsonb`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The request of one operation, with a place for each argument.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestPlan {
    /// Upper-case HTTP method.
    pub method: String,
    /// Path template below the base URL, such as `/pets/{id}`; may carry a fixed query.
    pub path: String,
    /// Everything that is not the body.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<PlanParameter>,
    /// The body, if the operation takes one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<PlanBody>,
    /// Value of the `Accept` header: the media types of the documented answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accept: Option<String>,
}

/// Where a parameter travels (OpenAPI "in").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Location {
    /// In the path template.
    Path,
    /// After the question mark.
    Query,
    /// A request header.
    Header,
    /// In the `Cookie` header.
    Cookie,
}

impl Location {
    /// The word of OpenAPI.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Query => "query",
            Self::Header => "header",
            Self::Cookie => "cookie",
        }
    }

    /// Reads OpenAPI's `in`.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Path, Self::Query, Self::Header, Self::Cookie]
            .into_iter()
            .find(|location| location.as_str() == text)
    }

    /// The style that holds when the document names none (OpenAPI 3.1 §4.8.12.2).
    pub const fn default_style(self) -> Style {
        match self {
            Self::Path | Self::Header => Style::Simple,
            Self::Query | Self::Cookie => Style::Form,
        }
    }
}

/// One parameter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanParameter {
    /// Name of the tool's argument.
    pub argument: String,
    /// Name on the wire.
    pub name: String,
    /// Where it travels.
    #[serde(rename = "in")]
    pub location: Location,
    /// How its value becomes text.
    pub encoding: ParameterEncoding,
}

/// How a parameter's value becomes text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum ParameterEncoding {
    /// By one of the styles.
    Style {
        /// Which.
        style: Style,
        /// Whether arrays and objects spread over several pairs.
        explode: bool,
        /// Whether reserved characters stay as they are (query only).
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        allow_reserved: bool,
    },
    /// As JSON text: the parameter has `content` instead of `schema`.
    Json,
}

/// The styles of OpenAPI 3 (OpenAPI 3.1 §4.8.12.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Style {
    /// `blue,black`
    Simple,
    /// `.blue.black`
    Label,
    /// `;color=blue;color=black`
    Matrix,
    /// `color=blue&color=black`
    Form,
    /// `color=blue%20black`
    SpaceDelimited,
    /// `color=blue%7Cblack`
    PipeDelimited,
    /// `color[R]=100&color[G]=200`
    DeepObject,
}

impl Style {
    /// Reads OpenAPI's `style`.
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "simple" => Self::Simple,
            "label" => Self::Label,
            "matrix" => Self::Matrix,
            "form" => Self::Form,
            "spaceDelimited" => Self::SpaceDelimited,
            "pipeDelimited" => Self::PipeDelimited,
            "deepObject" => Self::DeepObject,
            _ => return None,
        })
    }

    /// Whether the style exists in this location.
    pub const fn fits(self, location: Location) -> bool {
        match location {
            Location::Path => matches!(self, Self::Simple | Self::Label | Self::Matrix),
            Location::Query => {
                matches!(
                    self,
                    Self::Form | Self::SpaceDelimited | Self::PipeDelimited | Self::DeepObject
                )
            }
            Location::Header => matches!(self, Self::Simple),
            Location::Cookie => matches!(self, Self::Form),
        }
    }
}

/// The body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanBody {
    /// Value of the `Content-Type` header (multipart gets its boundary added).
    pub media_type: String,
    /// How values become bytes.
    pub encoding: BodyEncoding,
    /// Whether a body is sent even if no argument of it is given.
    pub required: bool,
    /// Which arguments it is made of.
    pub shape: BodyShape,
    /// Fields of a form that are not encoded in the default way, by wire name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parts: BTreeMap<String, PlanPart>,
}

/// How a body's values become bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BodyEncoding {
    /// JSON text.
    Json,
    /// `application/x-www-form-urlencoded`.
    Form,
    /// `multipart/form-data` (RFC 7578).
    Multipart,
    /// The argument's text as it is.
    Text,
    /// The bytes whose base64 the argument is.
    Binary,
}

/// Which arguments a body is made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum BodyShape {
    /// One argument is the whole body.
    Argument {
        /// Its name.
        argument: String,
    },
    /// The body's properties stand beside the other arguments.
    Properties {
        /// Which, in the order of the document.
        properties: Vec<BodyProperty>,
    },
}

/// A property of a body that stands at the top level of the arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BodyProperty {
    /// Name of the tool's argument.
    pub argument: String,
    /// Name in the body.
    pub name: String,
}

/// How a field of a form is encoded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanPart {
    /// Content type of the part (multipart), if not the default of its value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// Style of the field (form), if not the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub style: Option<Style>,
    /// Whether arrays and objects spread over several pairs (form).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explode: Option<bool>,
    /// The argument is base64 of the part's bytes (multipart).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub binary: bool,
}
