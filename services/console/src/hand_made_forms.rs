//! The form of a tool that a person describes.

use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

/// A tool that is described by hand.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = HandMadeTool)]
#[expect(
    dead_code,
    reason = "only its schema is used: the value is http_tools::HandMade"
)]
pub(crate) struct HandMadeForm {
    /// 1 to 64 letters, digits, `_` or `-`.
    name: String,
    /// Display name.
    #[schema(nullable = false)]
    title: Option<String>,
    /// Its function. The model chooses tools by this text.
    description: String,
    /// HTTP method.
    #[schema(example = "GET")]
    method: String,
    /// Path below the source's base URL, with parameters in braces.
    #[schema(example = "/pets/{id}")]
    path: String,
    #[serde(default)]
    parameters: Vec<HandMadeParameterForm>,
    #[schema(nullable = false)]
    body: Option<HandMadeBodyForm>,
    /// Enabled if absent. Not part of the stored definition.
    #[schema(nullable = false)]
    enabled: Option<bool>,
}

/// A parameter of a tool that is described by hand.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = HandMadeParameter)]
#[expect(
    dead_code,
    reason = "only its schema is used: the value is http_tools::HandMade"
)]
pub(crate) struct HandMadeParameterForm {
    /// Its name in the request.
    name: String,
    #[serde(rename = "in")]
    location: ParameterPlace,
    /// Always true for path parameters.
    #[serde(default)]
    required: bool,
    #[schema(nullable = false)]
    description: Option<String>,
    /// JSON Schema.
    #[schema(value_type = Object)]
    schema: Value,
}

/// The place of a parameter in a request.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ParameterPlace {
    /// In the path.
    Path,
    /// In the query.
    Query,
    /// A header.
    Header,
    /// A cookie.
    Cookie,
}

/// The body of a tool that is described by hand.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = HandMadeBody)]
#[expect(
    dead_code,
    reason = "only its schema is used: the value is http_tools::HandMade"
)]
pub(crate) struct HandMadeBodyForm {
    #[schema(example = "application/json")]
    content_type: String,
    /// JSON Schema.
    #[schema(value_type = Object)]
    schema: Value,
    #[serde(default)]
    required: bool,
}
