//! The request body: which media type is sent, and whether its properties stand beside the other
//! arguments.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Map, Value, json};

use super::{ArgumentNames, Site};
use crate::{
    effort, naming,
    plan::{BodyEncoding, BodyProperty, BodyShape, PlanBody, PlanPart, Style},
    refs,
    schema::{SchemaError, SchemaWriter},
};

pub(crate) struct Argument {
    pub name: String,
    pub schema: Value,
    pub required: bool,
}

pub(crate) struct BodyDraft {
    pub plan: PlanBody,
    pub arguments: Vec<Argument>,
}

/// The body of an operation's request, if there is one.
pub(crate) fn plan(
    site: &Site<'_>,
    writer: &mut SchemaWriter<'_>,
    names: &mut ArgumentNames,
    warnings: &mut Vec<String>,
) -> Result<Option<BodyDraft>, SchemaError> {
    let Some(written) = Written::read(site)? else {
        return Ok(None);
    };
    if written.encoding == BodyEncoding::Text && written.media_type.contains("xml") {
        warnings.push("the body is XML: the model writes it as text".to_owned());
    }
    if matches!(written.encoding, BodyEncoding::Text | BodyEncoding::Binary) {
        return Ok(Some(written.as_text(names)));
    }
    let object = writer.target(written.schema, &written.place)?;
    if let Some(flat) = flattened(object, writer, &written.place, written.is_form())?
        && flat
            .properties
            .iter()
            .all(|(name, _)| names.is_free(&naming::argument(name)))
        && distinct(
            flat.properties
                .iter()
                .map(|(name, _)| naming::argument(name)),
        )
    {
        return written.as_arguments(flat, writer, names).map(Some);
    }
    written.as_one_argument(object, writer, names).map(Some)
}

/// The body as the document has it, in the media type that is sent.
struct Written<'d> {
    media_type: &'d str,
    media: &'d Value,
    encoding: BodyEncoding,
    schema: &'d Value,
    /// The place of the schema in the document.
    place: String,
    description: Option<&'d str>,
    /// `required`, if the document has it.
    required: Option<bool>,
}

impl<'d> Written<'d> {
    fn read(site: &Site<'d>) -> Result<Option<Self>, SchemaError> {
        let Some(written) = site.operation.get("requestBody") else {
            return Ok(None);
        };
        let pointer = format!("{}/requestBody", site.pointer);
        let body =
            refs::resolve(&site.document.root, written).map_err(|fault| SchemaError::Ref {
                pointer: pointer.clone(),
                fault,
            })?;
        let content = body.get("content").and_then(Value::as_object);
        let chosen = content
            .filter(|content| !content.is_empty())
            .and_then(choose);
        Ok(chosen.map(|(media_type, media, encoding)| Self {
            media_type,
            media,
            encoding,
            schema: media.get("schema").unwrap_or(&Value::Bool(true)),
            place: format!("{pointer}/content/{}/schema", refs::escape_step(media_type)),
            description: body
                .get("description")
                .and_then(Value::as_str)
                .map(str::trim)
                .filter(|text| !text.is_empty()),
            required: body.get("required").and_then(Value::as_bool),
        }))
    }

    fn is_form(&self) -> bool {
        matches!(self.encoding, BodyEncoding::Form | BodyEncoding::Multipart)
    }

    /// The value of `Content-Type`: a range such as `*/*` is none.
    fn sent_type(&self) -> &'d str {
        if !self.media_type.contains('*') {
            return self.media_type;
        }
        match self.encoding {
            BodyEncoding::Json => "application/json",
            BodyEncoding::Text => "text/plain",
            _ => "application/octet-stream",
        }
    }

    /// The document's own encoding of a form's field.
    fn field(&self, name: &str) -> Option<&'d Value> {
        self.media.get("encoding")?.get(name)
    }

    /// A plan without arguments yet.
    fn plan(&self, required: bool) -> PlanBody {
        PlanBody {
            media_type: self.sent_type().to_owned(),
            encoding: self.encoding,
            required,
            shape: BodyShape::Properties {
                properties: Vec::new(),
            },
            parts: BTreeMap::new(),
        }
    }

    /// One argument of text, or of bytes in base64.
    fn as_text(&self, names: &mut ArgumentNames) -> BodyDraft {
        let mut schema = json!({"type": "string"});
        let text = self.description.unwrap_or("The request body.");
        if self.encoding == BodyEncoding::Binary {
            let sent_type = self.sent_type();
            schema["contentEncoding"] = json!("base64");
            schema["description"] = json!(format!(
                "{text} Its bytes ({sent_type}), encoded as base64."
            ));
        } else {
            schema["description"] = json!(text);
        }
        whole(self.plan(self.required.unwrap_or(true)), schema, names)
    }

    /// An argument for each property.
    fn as_arguments(
        &self,
        flat: Flat<'_>,
        writer: &mut SchemaWriter<'_>,
        names: &mut ArgumentNames,
    ) -> Result<BodyDraft, SchemaError> {
        // Documents often forget `required: true` on a body that cannot be empty; an explicit false
        // is believed.
        let mut plan = self.plan(self.required.unwrap_or(!flat.required.is_empty()));
        let mut arguments = Vec::with_capacity(flat.properties.len());
        let mut properties = Vec::with_capacity(flat.properties.len());
        for (name, schema) in flat.properties {
            let argument = naming::argument(&name);
            names.reserve(&argument);
            let place = format!("{}/properties/{}", self.place, refs::escape_step(&name));
            let mut converted = writer.convert(schema, &place)?;
            if self.is_form()
                && let Some(part) = part(
                    schema,
                    self.field(&name),
                    self.encoding,
                    writer,
                    &mut converted,
                )
            {
                plan.parts.insert(name.clone(), part);
            }
            let required = plan.required && flat.required.contains(name.as_str());
            arguments.push(Argument {
                name: argument.clone(),
                schema: converted,
                required,
            });
            properties.push(BodyProperty { argument, name });
        }
        plan.shape = BodyShape::Properties { properties };
        Ok(BodyDraft { plan, arguments })
    }

    /// One argument for the whole body. `object` is its schema, resolved.
    fn as_one_argument(
        &self,
        object: &Value,
        writer: &mut SchemaWriter<'_>,
        names: &mut ArgumentNames,
    ) -> Result<BodyDraft, SchemaError> {
        let requires = || object.get("required").is_some_and(Value::is_array);
        let mut plan = self.plan(self.required.unwrap_or_else(requires));
        let mut converted = writer.convert(self.schema, &self.place)?;
        if self.is_form() {
            let properties = object.get("properties").and_then(Value::as_object);
            for (name, schema) in properties.into_iter().flatten() {
                let (field, mut ignored) = (self.field(name), Value::Null);
                if let Some(part) = part(schema, field, self.encoding, writer, &mut ignored) {
                    plan.parts.insert(name.clone(), part);
                }
            }
            if object.get("type").is_none()
                && converted.get("$ref").is_none()
                && converted.is_object()
            {
                converted["type"] = json!("object");
            }
        }
        if let (Value::Object(object), Some(text)) = (&mut converted, self.description)
            && !object.contains_key("description")
        {
            object.insert(
                "description".to_owned(),
                Value::String(super::cut(text, 1_000)),
            );
        }
        Ok(whole(plan, converted, names))
    }
}

fn whole(mut plan: PlanBody, schema: Value, names: &mut ArgumentNames) -> BodyDraft {
    let name = names.body();
    plan.shape = BodyShape::Argument {
        argument: name.clone(),
    };
    let required = plan.required;
    BodyDraft {
        plan,
        arguments: vec![Argument {
            name,
            schema,
            required,
        }],
    }
}

/// The media type we send, by how well a model can fill it.
fn choose(content: &Map<String, Value>) -> Option<(&str, &Value, BodyEncoding)> {
    let kind = |media_type: &str| {
        let essence = media_type
            .split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .to_ascii_lowercase();
        match essence.as_str() {
            "application/json" => (0, BodyEncoding::Json),
            other if other.ends_with("+json") || other.ends_with("/json") => {
                (1, BodyEncoding::Json)
            }
            "*/*" | "application/*" => (2, BodyEncoding::Json),
            "application/x-www-form-urlencoded" => (3, BodyEncoding::Form),
            "multipart/form-data" => (4, BodyEncoding::Multipart),
            "text/plain" | "text/*" => (5, BodyEncoding::Text),
            other
                if other.starts_with("text/")
                    || other.contains("xml")
                    || other.contains("yaml")
                    || other.contains("ndjson") =>
            {
                (6, BodyEncoding::Text)
            }
            other if other.starts_with("multipart/") => (8, BodyEncoding::Multipart),
            _ => (7, BodyEncoding::Binary),
        }
    };
    effort::spend(content.len());
    content
        .iter()
        .map(|(media_type, media)| (kind(media_type), media_type.as_str(), media))
        .min_by_key(|((rank, _), ..)| *rank)
        .map(|((_, encoding), media_type, media)| (media_type, media, encoding))
}

/// Properties that stand beside the other arguments. More than a schema may have are refused when
/// it is converted (MCP-JS-7), and are not compared with each other before.
const MOST_FLAT: usize = 2_000;

struct Flat<'s> {
    properties: Vec<(String, &'s Value)>,
    /// Where each of them is.
    places: HashMap<&'s str, usize>,
    required: HashSet<&'s str>,
}

/// The properties of an object body that can stand at the top level without losing meaning, or
/// nothing.
fn flattened<'s>(
    object: &'s Value,
    writer: &SchemaWriter<'s>,
    pointer: &str,
    form: bool,
) -> Result<Option<Flat<'s>>, SchemaError> {
    let mut flat = Flat {
        properties: Vec::new(),
        places: HashMap::new(),
        required: HashSet::new(),
    };
    if !merge(object, writer, pointer, form, 0, &mut flat)? || flat.properties.is_empty() {
        return Ok(None);
    }
    let Flat {
        places, required, ..
    } = &mut flat;
    required.retain(|name| places.contains_key(name));
    Ok(Some(flat))
}

/// Keywords that flat arguments cannot express.
const LOSSY: [&str; 14] = [
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "patternProperties",
    "propertyNames",
    "dependentSchemas",
    "dependentRequired",
    "minProperties",
    "maxProperties",
    "unevaluatedProperties",
    "enum",
];

/// Adds one object schema, and through `allOf` those it is made of. False if something would be
/// lost.
fn merge<'s>(
    schema: &'s Value,
    writer: &SchemaWriter<'s>,
    pointer: &str,
    form: bool,
    depth: usize,
    flat: &mut Flat<'s>,
) -> Result<bool, SchemaError> {
    effort::spend(32);
    let Some(object) = schema.as_object() else {
        return Ok(false);
    };
    let is_object = match object.get("type") {
        None => object.contains_key("properties") || object.contains_key("allOf"),
        Some(Value::String(name)) => name == "object",
        Some(_) => false,
    };
    let nullable = object.get("nullable") == Some(&Value::Bool(true)) && !form;
    if depth > 8 || !is_object || nullable || LOSSY.iter().any(|key| object.contains_key(*key)) {
        return Ok(false);
    }
    // Free keys cannot stand beside the other arguments.
    if !matches!(
        object.get("additionalProperties"),
        None | Some(Value::Bool(false))
    ) {
        return Ok(false);
    }
    if let Some(Value::Array(parts)) = object.get("allOf") {
        for part in parts {
            let part = writer.target(part, pointer)?;
            if !merge(part, writer, pointer, form, depth + 1, flat)? {
                return Ok(false);
            }
        }
    }
    if let Some(Value::Object(properties)) = object.get("properties") {
        for (name, property) in properties {
            if writer.is_hidden(property) {
                continue;
            }
            let has_room = flat.properties.len() < MOST_FLAT;
            effort::spend(4);
            effort::spend_text(name);
            let present = flat.places.get(name.as_str());
            match present.and_then(|place| flat.properties.get_mut(*place)) {
                Some(present) => present.1 = property,
                None if !has_room => return Ok(false),
                None => {
                    flat.places.insert(name, flat.properties.len());
                    flat.properties.push((name.clone(), property));
                }
            }
        }
    }
    if let Some(Value::Array(required)) = object.get("required") {
        if required.len() > MOST_FLAT {
            return Ok(false);
        }
        effort::spend(required.len());
        flat.required
            .extend(required.iter().filter_map(Value::as_str));
    }
    Ok(true)
}

fn distinct(names: impl Iterator<Item = String>) -> bool {
    let mut seen = HashSet::new();
    names.into_iter().all(|name| seen.insert(name))
}

/// How a form field is encoded, if not in the default way. Files are given as base64, which the
/// schema tells.
fn part(
    schema: &Value,
    encoding: Option<&Value>,
    body: BodyEncoding,
    writer: &SchemaWriter<'_>,
    converted: &mut Value,
) -> Option<PlanPart> {
    let mut part = PlanPart::default();
    if let Some(encoding) = encoding {
        // Several types may be listed; the first is as good as any.
        part.media_type = encoding
            .get("contentType")
            .and_then(Value::as_str)
            .and_then(|types| types.split(',').next())
            .map(|kind| kind.trim().to_owned())
            .filter(|kind| {
                !kind.is_empty() && !kind.contains('*') && http::HeaderValue::try_from(kind).is_ok()
            });
        part.style = encoding
            .get("style")
            .and_then(Value::as_str)
            .and_then(Style::parse);
        part.explode = encoding.get("explode").and_then(Value::as_bool);
    }
    let target = writer.target(schema, "").unwrap_or(schema);
    let item = target
        .get("items")
        .map_or(target, |items| writer.target(items, "").unwrap_or(items));
    let is_file = |schema: &Value| {
        schema.get("format").and_then(Value::as_str) == Some("binary")
            || schema.get("type").and_then(Value::as_str) == Some("file")
            || (schema.get("contentMediaType").is_some() && schema.get("contentEncoding").is_none())
    };
    part.binary = body == BodyEncoding::Multipart && is_file(item);
    if part.binary
        && let Value::Object(object) = converted
    {
        let inner = match object.get_mut("items") {
            Some(Value::Object(items)) => items,
            _ => object,
        };
        inner.shift_remove("format");
        inner.shift_remove("maxLength");
        inner.insert("contentEncoding".to_owned(), json!("base64"));
        let text = inner
            .get("description")
            .and_then(Value::as_str)
            .unwrap_or("A file.");
        let text = format!("{} Encoded as base64.", text.trim_end());
        inner.insert("description".to_owned(), Value::String(text));
    }
    (part != PlanPart::default()).then_some(part)
}
