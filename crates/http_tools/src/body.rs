//! Bodies: JSON, `application/x-www-form-urlencoded`, `multipart/form-data` (RFC 7578), text
//! and bytes.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use serde_json::{Map, Value};

use crate::{
    arguments::ArgumentFaults,
    naming,
    parameter_style::{self, ReservedCharacters},
    plan::{BodyEncoding, BodyShape, PlanBody, PlanPart, Style},
    refs::escape_step,
};

/// A body with the value of its `Content-Type`.
#[derive(Debug)]
pub struct Encoded {
    /// With boundary, for multipart.
    pub content_type: String,
    /// The bytes.
    pub bytes: Bytes,
}

/// Builds the body, or nothing if it is optional and no argument of it was given.
pub fn build(
    plan: &PlanBody,
    arguments: &Map<String, Value>,
) -> Result<Option<Encoded>, ArgumentFaults> {
    match &plan.shape {
        BodyShape::Argument { argument } => match arguments.get(argument) {
            None if plan.required => Err(ArgumentFaults::one(
                format!("/{}", escape_step(argument)),
                "is required but missing",
            )),
            None => Ok(None),
            Some(value) => whole(plan, argument, value).map(Some),
        },
        BodyShape::Properties { properties } => {
            let given: Vec<Field<'_>> = properties
                .iter()
                .filter_map(|property| {
                    arguments.get(&property.argument).map(|value| Field {
                        argument: &property.argument,
                        name: &property.name,
                        value,
                    })
                })
                .collect();
            if given.is_empty() && !plan.required {
                return Ok(None);
            }
            fields(plan, &given).map(Some)
        }
    }
}

struct Field<'a> {
    argument: &'a str,
    name: &'a str,
    value: &'a Value,
}

fn whole(plan: &PlanBody, argument: &str, value: &Value) -> Result<Encoded, ArgumentFaults> {
    let fault = |message: &str| ArgumentFaults::one(format!("/{}", escape_step(argument)), message);
    let bytes = match plan.encoding {
        BodyEncoding::Json => {
            serde_json::to_vec(value).map_err(|_| fault("cannot be written as JSON"))?
        }
        BodyEncoding::Text => parameter_style::bare(value).into_owned().into_bytes(),
        BodyEncoding::Binary => {
            let text = value.as_str().ok_or_else(|| fault("must be base64 text"))?;
            decode(text).ok_or_else(|| fault("is not valid base64"))?
        }
        BodyEncoding::Form | BodyEncoding::Multipart => {
            let object = value
                .as_object()
                .ok_or_else(|| fault("must be an object of form fields"))?;
            let given: Vec<Field<'_>> = object
                .iter()
                .map(|(name, value)| Field {
                    argument: name,
                    name,
                    value,
                })
                .collect();
            return fields(plan, &given);
        }
    };
    Ok(Encoded {
        content_type: plan.media_type.clone(),
        bytes: bytes.into(),
    })
}

fn fields(plan: &PlanBody, given: &[Field<'_>]) -> Result<Encoded, ArgumentFaults> {
    match plan.encoding {
        BodyEncoding::Form => {
            let mut text = String::new();
            for field in given {
                form(
                    &mut text,
                    field.name,
                    field.value,
                    plan.parts.get(field.name),
                );
            }
            Ok(Encoded {
                content_type: plan.media_type.clone(),
                bytes: text.into(),
            })
        }
        BodyEncoding::Multipart => multipart(plan, given),
        _ => {
            // Written piece by piece: the values are borrowed from the arguments, no tree is built.
            let mut bytes = Vec::with_capacity(256);
            bytes.push(b'{');
            for (index, field) in given.iter().enumerate() {
                if index > 0 {
                    bytes.push(b',');
                }
                let written = serde_json::to_writer(&mut bytes, field.name).and_then(|()| {
                    bytes.push(b':');
                    serde_json::to_writer(&mut bytes, field.value)
                });
                if written.is_err() {
                    return Err(ArgumentFaults::one(
                        format!("/{}", escape_step(field.argument)),
                        "cannot be written as JSON",
                    ));
                }
            }
            bytes.push(b'}');
            Ok(Encoded {
                content_type: plan.media_type.clone(),
                bytes: bytes.into(),
            })
        }
    }
}

/// One field of a URL-encoded form. Objects without a declared style go as JSON, the default of
/// OpenAPI's `contentType`.
fn form(text: &mut String, name: &str, value: &Value, part: Option<&PlanPart>) {
    let style = part.and_then(|part| part.style);
    let explode = part.and_then(|part| part.explode).unwrap_or(true);
    match (value, style) {
        (Value::Object(_), None) => {
            parameter_style::push(
                text,
                &parameter_style::encode(name),
                &parameter_style::encode(&value.to_string()),
            );
        }
        _ => parameter_style::query(
            text,
            name,
            value,
            style.unwrap_or(Style::Form),
            explode,
            ReservedCharacters::Encoded,
        ),
    }
}

struct Piece {
    head: String,
    bytes: Vec<u8>,
}

fn multipart(plan: &PlanBody, given: &[Field<'_>]) -> Result<Encoded, ArgumentFaults> {
    let mut pieces = Vec::new();
    for field in given {
        let part = plan.parts.get(field.name);
        match field.value {
            // A list is several parts of one name (RFC 7578 §4.3), unless it is declared as JSON.
            Value::Array(items)
                if part.and_then(|part| part.media_type.as_deref()) != Some("application/json") =>
            {
                for item in items {
                    pieces.push(piece(field, item, part)?);
                }
            }
            value => pieces.push(piece(field, value, part)?),
        }
    }
    // The boundary must not occur in any part. It is derived from the content, which makes it
    // repeatable.
    let mut salt = 0_u32;
    let boundary = loop {
        let first = pieces
            .first()
            .map(|piece| piece.head.as_str())
            .unwrap_or_default();
        let candidate = format!(
            "portolan-{}{}{}",
            naming::stable_suffix(&format!("{first}{salt}")),
            naming::stable_suffix(&format!("{salt}{}", pieces.len())),
            naming::stable_suffix(&format!("b{salt}"))
        );
        if !pieces
            .iter()
            .any(|piece| contains(&piece.bytes, candidate.as_bytes()))
        {
            break candidate;
        }
        salt += 1;
    };
    let mut bytes = Vec::new();
    for piece in &pieces {
        bytes.extend_from_slice(format!("--{boundary}\r\n{}\r\n", piece.head).as_bytes());
        bytes.extend_from_slice(&piece.bytes);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    Ok(Encoded {
        content_type: format!("{}; boundary={boundary}", plan.media_type),
        bytes: bytes.into(),
    })
}

fn piece(
    field: &Field<'_>,
    value: &Value,
    part: Option<&PlanPart>,
) -> Result<Piece, ArgumentFaults> {
    let declared = part.and_then(|part| part.media_type.clone());
    let name = quoted(field.name);
    if part.is_some_and(|part| part.binary) {
        let bytes = value.as_str().and_then(decode).ok_or_else(|| {
            ArgumentFaults::one(
                format!("/{}", escape_step(field.argument)),
                "must be the file's bytes as base64",
            )
        })?;
        let kind = declared.unwrap_or_else(|| "application/octet-stream".to_owned());
        let head = format!(
            "Content-Disposition: form-data; name=\"{name}\"; filename=\"{name}\"\r\nContent-Type: {kind}\r\n"
        );
        return Ok(Piece { head, bytes });
    }
    let kind = declared.or_else(|| value.is_object().then(|| "application/json".to_owned()));
    let mut head = format!("Content-Disposition: form-data; name=\"{name}\"\r\n");
    let bytes = if kind.as_deref().is_some_and(|kind| kind.contains("json")) {
        value.to_string().into_bytes()
    } else {
        parameter_style::bare(value).into_owned().into_bytes()
    };
    if let Some(kind) = kind {
        head.push_str(&format!("Content-Type: {kind}\r\n"));
    }
    Ok(Piece { head, bytes })
}

/// A name inside quotes: what would end the quote or the line is percent-encoded, as browsers do
/// (WHATWG form-data).
fn quoted(name: &str) -> String {
    name.replace('"', "%22")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// Base64, standard or URL-safe, padded or not, also as a `data:` URL: models write all of them.
fn decode(text: &str) -> Option<Vec<u8>> {
    let text = text.trim();
    let text = match text.strip_prefix("data:") {
        Some(rest) => rest.split_once(";base64,")?.1,
        None => text,
    };
    let plain: String = text
        .chars()
        .filter(|c| !c.is_ascii_whitespace() && *c != '=')
        .map(|c| match c {
            '-' => '+',
            '_' => '/',
            c => c,
        })
        .collect();
    let padded = format!("{plain}{}", "=".repeat((4 - plain.len() % 4) % 4));
    STANDARD.decode(padded).ok()
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack
        .windows(needle.len())
        .any(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::plan::BodyProperty;

    fn plan(encoding: BodyEncoding, names: &[&str]) -> PlanBody {
        PlanBody {
            media_type: match encoding {
                BodyEncoding::Form => "application/x-www-form-urlencoded",
                BodyEncoding::Multipart => "multipart/form-data",
                _ => "application/json",
            }
            .to_owned(),
            encoding,
            required: true,
            shape: BodyShape::Properties {
                properties: names
                    .iter()
                    .map(|name| BodyProperty {
                        argument: naming::argument(name),
                        name: (*name).to_owned(),
                    })
                    .collect(),
            },
            parts: std::collections::BTreeMap::new(),
        }
    }

    fn text(plan: &PlanBody, arguments: &Value) -> (String, String) {
        let body = build(plan, arguments.as_object().unwrap())
            .unwrap()
            .unwrap();
        (
            body.content_type,
            String::from_utf8(body.bytes.to_vec()).unwrap(),
        )
    }

    #[test]
    fn flattened_properties_are_gathered_under_their_wire_names() {
        let plan = plan(BodyEncoding::Json, &["name", "filter[x]"]);
        let (_, body) = text(&plan, &json!({"filter_x": [1], "name": "a\"b", "other": 1}));
        assert_eq!(body, r#"{"name":"a\"b","filter[x]":[1]}"#);
    }

    #[test]
    fn an_optional_body_without_arguments_is_not_sent() {
        let mut plan = plan(BodyEncoding::Json, &["name"]);
        plan.required = false;
        assert!(build(&plan, &Map::new()).unwrap().is_none());
    }

    #[test]
    fn a_form_repeats_lists_and_honours_deep_objects() {
        let mut plan = plan(BodyEncoding::Form, &["tags", "meta", "raw"]);
        plan.parts.insert(
            "meta".to_owned(),
            PlanPart {
                style: Some(Style::DeepObject),
                explode: Some(true),
                ..PlanPart::default()
            },
        );
        let (_, body) = text(
            &plan,
            &json!({"tags": ["a b", "c"], "meta": {"k": "v"}, "raw": {"x": 1}}),
        );
        assert_eq!(
            body,
            "tags=a%20b&tags=c&meta%5Bk%5D=v&raw=%7B%22x%22%3A1%7D"
        );
    }

    #[test]
    fn multipart_carries_files_json_and_text() {
        let mut plan = plan(BodyEncoding::Multipart, &["note", "meta", "file"]);
        plan.parts.insert(
            "file".to_owned(),
            PlanPart {
                binary: true,
                media_type: Some("image/png".to_owned()),
                ..PlanPart::default()
            },
        );
        let (kind, body) = text(
            &plan,
            &json!({"note": "hi", "meta": {"a": 1}, "file": "aGVsbG8="}),
        );
        let boundary = kind.split("boundary=").nth(1).unwrap();
        assert_eq!(
            body,
            format!(
                "--{boundary}\r\nContent-Disposition: form-data; name=\"note\"\r\n\r\nhi\r\n\
                 --{boundary}\r\nContent-Disposition: form-data; name=\"meta\"\r\nContent-Type: application/json\r\n\r\n{{\"a\":1}}\r\n\
                 --{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"file\"\r\nContent-Type: image/png\r\n\r\nhello\r\n\
                 --{boundary}--\r\n"
            )
        );
    }

    #[test]
    fn a_file_that_is_not_base64_is_a_fault_with_its_path() {
        let mut plan = plan(BodyEncoding::Multipart, &["file"]);
        plan.parts.insert(
            "file".to_owned(),
            PlanPart {
                binary: true,
                ..PlanPart::default()
            },
        );
        let faults = build(&plan, json!({"file": "***"}).as_object().unwrap()).unwrap_err();
        assert_eq!(faults.faults[0].path, "/file");
    }

    #[test]
    fn models_may_write_base64_in_any_spelling() {
        for text in ["aGk_", "aGk/", " aG\nk_ ", "data:text/plain;base64,aGk/"] {
            assert_eq!(decode(text).unwrap(), b"hi?", "{text}");
        }
    }
}
