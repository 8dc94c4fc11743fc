//! Path, query, header and cookie parameters.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};

use super::{ArgumentNames, Site};
use crate::{
    effort,
    plan::{Location, ParameterEncoding, PlanParameter, Style},
    refs,
    schema::{SchemaError, SchemaWriter, keywords::is_worth_showing},
    security,
};

/// Parameters of one operation as written, those that are not for a model included.
const MAX_PARAMETERS: usize = 500;

/// Headers that belong to the connection or to the client, never to a model.
const OWN_HEADERS: [&str; 16] = [
    "accept",
    "accept-encoding",
    "authorization",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "cookie",
    "expect",
    "host",
    "keep-alive",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

pub(crate) struct Parameter {
    pub plan: PlanParameter,
    pub schema: Value,
    pub required: bool,
}

/// A parameter as the document has it.
struct Written<'d> {
    location: Location,
    name: String,
    parameter: &'d Value,
    /// Its place in the document.
    pointer: String,
}

/// All parameters: those of the path item first, overridden by those of the operation; then
/// undeclared placeholders.
pub(crate) fn collect(
    site: &Site<'_>,
    writer: &mut SchemaWriter<'_>,
    names: &mut ArgumentNames,
    warnings: &mut Vec<String>,
) -> Result<Vec<Parameter>, SchemaError> {
    let placeholders = placeholders(&site.path);
    if placeholders.len() > MAX_PARAMETERS {
        return Err(SchemaError::TooMany);
    }
    let mut found = written(site, warnings)?;
    // Path first: those names are the ones a person knows, so they keep the plain argument name.
    found.sort_by_key(|one| one.location);

    let mut parameters = Vec::with_capacity(found.len());
    for one in found {
        if is_left_out(&one, site, &placeholders, warnings) {
            continue;
        }
        let (schema, encoding) = encoding(&one, writer, warnings)?;
        let Written {
            location,
            name,
            parameter,
            ..
        } = one;
        let argument = names.give(&name, location);
        let required =
            location == Location::Path || parameter.get("required") == Some(&Value::Bool(true));
        parameters.push(Parameter {
            schema: described(schema, parameter),
            required,
            plan: PlanParameter {
                argument,
                name,
                location,
                encoding,
            },
        });
    }
    for placeholder in placeholders {
        let is_declared = parameters
            .iter()
            .any(|p| p.plan.location == Location::Path && p.plan.name == placeholder);
        if !is_declared {
            warnings.push(format!(
                "the path parameter `{placeholder}` is not declared; it is taken as text"
            ));
            parameters.push(undeclared(placeholder, names));
        }
    }
    Ok(parameters)
}

/// The parameters of path item and operation, one for each place and name.
fn written<'d>(
    site: &Site<'d>,
    warnings: &mut Vec<String>,
) -> Result<Vec<Written<'d>>, SchemaError> {
    let mut found: Vec<Written<'d>> = Vec::new();
    let mut places: HashMap<(Location, &str), usize> = HashMap::new();
    for (holder, base) in [
        (site.path_item, parent(&site.pointer)),
        (site.operation, site.pointer.as_str()),
    ] {
        let Some(list) = holder.get("parameters").and_then(Value::as_array) else {
            continue;
        };
        if list.len() > MAX_PARAMETERS {
            return Err(SchemaError::TooMany);
        }
        for (index, written) in list.iter().enumerate() {
            effort::spend(16);
            let pointer = format!("{base}/parameters/{index}");
            let parameter =
                refs::resolve(&site.document.root, written).map_err(|fault| SchemaError::Ref {
                    pointer: pointer.clone(),
                    fault,
                })?;
            let name = parameter
                .get("name")
                .and_then(Value::as_str)
                .unwrap_or_default();
            let location = parameter
                .get("in")
                .and_then(Value::as_str)
                .and_then(Location::parse);
            let (Some(location), false) = (location, name.is_empty()) else {
                warnings.push(format!(
                    "a parameter without a name or a known `in` was left out (at {pointer})"
                ));
                continue;
            };
            effort::spend_text(name);
            let one = Written {
                location,
                name: name.to_owned(),
                parameter,
                pointer,
            };
            let place = *places.entry((location, name)).or_insert(found.len());
            match found.get_mut(place) {
                Some(earlier) => *earlier = one,
                None => found.push(one),
            }
        }
    }
    Ok(found)
}

/// Returns true for a parameter that is not for a model.
fn is_left_out(
    one: &Written<'_>,
    site: &Site<'_>,
    placeholders: &[&str],
    warnings: &mut Vec<String>,
) -> bool {
    let (location, name) = (one.location, one.name.as_str());
    // Only a path parameter and an invalid header name get a warning. Headers of the credential
    // and the connection are expected to be left out.
    let reason = match location {
        Location::Path if !placeholders.contains(&name) => "is not in the path",
        Location::Header if OWN_HEADERS.contains(&name.to_ascii_lowercase().as_str()) => {
            return true;
        }
        Location::Header if http::HeaderName::try_from(name).is_err() => "is not a header name",
        _ if security::is_credential(site.hints, location, name) => {
            if location != Location::Path {
                return true;
            }
            "is supplied by the source's credential"
        }
        _ => return false,
    };
    warnings.push(format!(
        "the {} parameter `{name}` {reason} and was left out",
        location.as_str()
    ));
    true
}

/// A placeholder of the path that no parameter declares.
fn undeclared(placeholder: &str, names: &mut ArgumentNames) -> Parameter {
    Parameter {
        schema: json!({"type": "string"}),
        required: true,
        plan: PlanParameter {
            argument: names.give(placeholder, Location::Path),
            name: placeholder.to_owned(),
            location: Location::Path,
            encoding: ParameterEncoding::Style {
                style: Style::Simple,
                explode: false,
                allow_reserved: false,
            },
        },
    }
}

fn parent(pointer: &str) -> &str {
    pointer.rsplit_once('/').map_or("", |(parent, _)| parent)
}

/// The names between braces, in order, without doubles.
pub(crate) fn placeholders(path: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut seen = HashSet::new();
    let mut rest = path;
    while let Some((_, after)) = rest.split_once('{') {
        let Some((name, after)) = after.split_once('}') else {
            break;
        };
        if !name.is_empty() && seen.insert(name) {
            names.push(name);
        }
        rest = after;
    }
    names
}

fn encoding(
    one: &Written<'_>,
    writer: &mut SchemaWriter<'_>,
    warnings: &mut Vec<String>,
) -> Result<(Value, ParameterEncoding), SchemaError> {
    let Written {
        location,
        name,
        parameter,
        pointer,
    } = one;
    let location = *location;
    if let Some(content) = parameter.get("content").and_then(Value::as_object)
        && let Some((media_type, media)) = content.iter().next()
    {
        let schema = media.get("schema").unwrap_or(&Value::Bool(true));
        let place = format!("{pointer}/content/{}/schema", refs::escape_step(media_type));
        let schema = writer.convert(schema, &place)?;
        return Ok((schema, ParameterEncoding::Json));
    }
    let schema = match parameter.get("schema") {
        Some(schema) => writer.convert(schema, &format!("{pointer}/schema"))?,
        // Left over from Swagger 2.0: the type stands on the parameter itself.
        None if parameter.get("type").is_some() => {
            effort::spend_value(parameter);
            let mut bare = parameter.as_object().cloned().unwrap_or_default();
            for key in [
                "name",
                "in",
                "required",
                "description",
                "style",
                "explode",
                "deprecated",
            ] {
                bare.shift_remove(key);
            }
            writer.convert(&Value::Object(bare), pointer)?
        }
        None => json!({}),
    };
    let written = parameter.get("style").and_then(Value::as_str);
    let style = match written.map(Style::parse) {
        None => location.default_style(),
        Some(Some(style)) if style.fits(location) => style,
        Some(_) => {
            warnings.push(format!(
                "the style `{}` does not exist for {} parameters; `{name}` uses the default",
                written.unwrap_or_default(),
                location.as_str()
            ));
            location.default_style()
        }
    };
    let explode = match parameter.get("explode").and_then(Value::as_bool) {
        Some(explode) => explode,
        None => matches!(style, Style::Form | Style::DeepObject),
    };
    let allow_reserved =
        location == Location::Query && parameter.get("allowReserved") == Some(&Value::Bool(true));
    Ok((
        schema,
        ParameterEncoding::Style {
            style,
            explode,
            allow_reserved,
        },
    ))
}

/// The parameter's own description and example, which say more than its schema's.
fn described(schema: Value, parameter: &Value) -> Value {
    let mut object = match schema {
        Value::Object(object) => object,
        Value::Bool(false) => return Value::Bool(false),
        _ => Map::new(),
    };
    if let Some(text) = parameter
        .get("description")
        .and_then(Value::as_str)
        .filter(|text| !text.trim().is_empty())
    {
        object.insert(
            "description".to_owned(),
            Value::String(super::cut(text.trim(), 1_000)),
        );
    }
    if parameter.get("deprecated") == Some(&Value::Bool(true)) {
        object.insert("deprecated".to_owned(), Value::Bool(true));
    }
    if !object.contains_key("examples")
        && let Some(example) = parameter.get("example")
        && is_worth_showing(example)
    {
        object.insert("examples".to_owned(), json!([example]));
    }
    Value::Object(object)
}
