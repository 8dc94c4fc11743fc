//! The form of a resource: as the API receives it, and as it is stored.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use portolan_http_tools::{
    HandMade,
    hand_made::HandMadeParameter,
    plan::{Location, RequestPlan},
};
use portolan_model::{
    id::SourceId,
    prompt::{Argument, placeholders},
    registry::ResourceShape,
    uri_template::{UriTemplate, is_uri},
};
use portolan_site::console_error::ConsoleError;
use portolan_storage::{
    TenantTx,
    registry::resources::{self, Definition, Holds},
};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::{
    arguments::{self, ArgumentForm},
    input::plain_text,
    prompts::is_mime_type,
    source_rows,
};

/// Most bytes of a text or file.
const MOST_BYTES: usize = 2 * 1024 * 1024;

/// Most bytes of all texts and files of one workspace.
const MOST_BYTES_IN_ALL: i64 = 128 * 1024 * 1024;

/// The content of a resource.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[schema(as = ResourceHolds)]
pub(crate) enum HoldsForm {
    /// A text; in a template with placeholders: `{{name}}`.
    Text {
        /// Up to 2 MiB.
        text: String,
    },
    /// A file, up to 2 MiB.
    File {
        /// Base64. If absent, the stored file stays.
        #[serde(default)]
        #[schema(nullable = false)]
        data: Option<String>,
    },
    /// The response of an HTTP source to a GET.
    Http {
        /// The source, whose credential the request uses.
        #[schema(value_type = String)]
        source_id: SourceId,
        /// Path below the source's base URL, with variables of the template in braces:
        /// `/pets/{id}?lang={lang}`.
        path: String,
    },
}

/// A new resource, or the new content of one.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ResourceDefinition)]
pub(crate) struct ResourceForm {
    /// A URI, or a URI template (RFC 6570, levels 1 and 2) with variables in braces.
    uri: String,
    name: String,
    /// Display name.
    #[schema(nullable = false)]
    title: Option<String>,
    #[schema(nullable = false)]
    description: Option<String>,
    #[schema(nullable = false)]
    mime_type: Option<String>,
    /// Descriptions of variables. Each variable is in the template.
    #[serde(default)]
    variables: Vec<ArgumentForm>,
    holds: HoldsForm,
    /// Enabled if absent.
    #[schema(nullable = false)]
    enabled: Option<bool>,
}

pub(crate) fn invalid(field: &'static str, text: impl Into<String>) -> ConsoleError {
    ConsoleError::invalid("resource_invalid", text.into()).field(field)
}

/// A checked form, ready to be stored.
pub(crate) struct Checked {
    shape: ResourceShape,
    pub(crate) uri: String,
    pub(crate) name: String,
    title: String,
    description: String,
    mime_type: Option<String>,
    variables: Vec<Argument>,
    holds: CheckedContent,
    pub(crate) enabled: Option<bool>,
}

enum CheckedContent {
    Text(String),
    File(Vec<u8>),
    SameFile,
    Http {
        source: SourceId,
        path: String,
        plan: Value,
    },
}

impl Checked {
    pub(crate) fn of(form: ResourceForm) -> Result<Self, ConsoleError> {
        let uri = form.uri.trim().to_owned();
        let (shape, names) = if uri.contains(['{', '}']) {
            let template =
                UriTemplate::parse(&uri).map_err(|error| invalid("uri", error.to_string()))?;
            let names: Vec<String> = template.variables().map(str::to_owned).collect();
            (ResourceShape::Template, names)
        } else if is_uri(&uri) {
            (ResourceShape::Resource, Vec::new())
        } else {
            return Err(invalid(
                "uri",
                "Give a URI with a scheme and without spaces, such as `notes://welcome`.",
            ));
        };
        let text = |field, text: Option<&str>, most| {
            let text = plain_text(field, text.unwrap_or_default(), most)?;
            Ok::<_, ConsoleError>(text.unwrap_or_default().to_owned())
        };
        let name = text("name", Some(&form.name), 120)?;
        if name.is_empty() {
            return Err(invalid("name", "Give the resource a name."));
        }
        let mime_type = text("mime_type", form.mime_type.as_deref(), 200)?;
        if !mime_type.is_empty() && !is_mime_type(&mime_type) {
            return Err(invalid(
                "mime_type",
                "Give a media type such as text/plain.",
            ));
        }
        let variables = variables(&names, arguments::checked(form.variables)?)?;
        Ok(Self {
            shape,
            title: text("title", form.title.as_deref(), 120)?,
            description: text("description", form.description.as_deref(), 4_000)?,
            mime_type: Some(mime_type).filter(|text| !text.is_empty()),
            holds: held(form.holds, shape, &names)?,
            uri,
            name,
            variables,
            enabled: form.enabled,
        })
    }

    pub(crate) fn definition<'a>(
        &'a self,
        annotations: &'a Value,
        enabled: bool,
    ) -> Definition<'a> {
        Definition {
            shape: self.shape,
            uri: &self.uri,
            name: &self.name,
            title: &self.title,
            description: &self.description,
            mime_type: self.mime_type.as_deref(),
            annotations,
            variables: &self.variables,
            holds: match &self.holds {
                CheckedContent::Text(text) => Holds::Text(text),
                CheckedContent::File(bytes) => Holds::File(bytes),
                CheckedContent::SameFile => Holds::SameFile,
                CheckedContent::Http { source, path, plan } => Holds::Http {
                    source: *source,
                    path,
                    plan,
                },
            },
            enabled,
        }
    }

    /// Checks the form against other tables: the source belongs to this workspace, and the
    /// workspace's total of bytes is within the limit.
    pub(crate) async fn check_surroundings(&self, tx: &mut TenantTx) -> Result<(), ConsoleError> {
        match &self.holds {
            CheckedContent::Http { source, .. } => {
                source_rows::found(tx, *source).await.map_err(|_| {
                    invalid(
                        "holds.source_id",
                        "This source does not exist any more. Choose another one.",
                    )
                })?;
            }
            CheckedContent::Text(_) | CheckedContent::File(_) => {
                if resources::bytes(tx).await? > MOST_BYTES_IN_ALL {
                    return Err(ConsoleError::conflict(
                        "too_many_bytes",
                        "The texts and files of this workspace have 128 MiB. Delete some first.",
                    ));
                }
            }
            CheckedContent::SameFile => {}
        }
        Ok(())
    }
}

/// Returns one argument for each variable of the template, in its order. All are required.
fn variables(names: &[String], mut said: Vec<Argument>) -> Result<Vec<Argument>, ConsoleError> {
    let of_template = |name: &String| {
        let at = said.iter().position(|one| one.name == *name);
        let said = at.map(|at| said.remove(at)).unwrap_or_default();
        Argument {
            name: name.clone(),
            required: true,
            ..said
        }
    };
    let variables = names.iter().map(of_template).collect();
    match said.first() {
        None => Ok(variables),
        Some(other) => Err(invalid(
            "variables",
            format!("`{}` is not a variable of the template.", other.name),
        )),
    }
}

fn held(
    form: HoldsForm,
    shape: ResourceShape,
    names: &[String],
) -> Result<CheckedContent, ConsoleError> {
    match form {
        HoldsForm::Text { text } => {
            if text.len() > MOST_BYTES {
                return Err(invalid("holds.text", "A text has up to 2 MiB."));
            }
            if shape == ResourceShape::Template
                && let Some(unknown) = placeholders(&text)
                    .into_iter()
                    .find(|name| !names.iter().any(|own| own == name))
            {
                return Err(invalid(
                    "holds.text",
                    format!("`{{{{{unknown}}}}}` is not a variable of the template."),
                ));
            }
            Ok(CheckedContent::Text(text))
        }
        HoldsForm::File { data: None } => Ok(CheckedContent::SameFile),
        HoldsForm::File { data: Some(data) } => match STANDARD.decode(data) {
            Ok(bytes) if bytes.is_empty() => Err(invalid(
                "holds.data",
                "The file is empty. Choose another one.",
            )),
            Ok(bytes) if bytes.len() > MOST_BYTES => Err(invalid(
                "holds.data",
                "A file has up to 2 MiB. Choose a smaller one.",
            )),
            Ok(bytes) => Ok(CheckedContent::File(bytes)),
            Err(error) => Err(invalid("holds.data", "Send the file as Base64.").caused_by(error)),
        },
        HoldsForm::Http { source_id, path } => {
            let path = path.trim().to_owned();
            let plan = request_plan(&path, names)?;
            let plan = serde_json::to_value(plan)
                .map_err(|error| ConsoleError::internal("request plan", error))?;
            Ok(CheckedContent::Http {
                source: source_id,
                path,
                plan,
            })
        }
    }
}

/// The GET request that answers a read, planned by the engine of hand-made tools. Variables in the
/// query are whole values.
fn request_plan(path: &str, names: &[String]) -> Result<RequestPlan, ConsoleError> {
    let refused = |text: String| invalid("holds.path", text);
    let (template, query) = path.split_once('?').unwrap_or((path, ""));
    let mut parameters = Vec::new();
    let mut parameter = |wire: &str, variable: &str, location| {
        if !names.iter().any(|own| own == variable) {
            return Err(refused(format!(
                "`{{{variable}}}` is not a variable of the template."
            )));
        }
        parameters.push((
            variable.to_owned(),
            HandMadeParameter {
                name: wire.to_owned(),
                location,
                required: true,
                description: None,
                schema: json!({"type": "string"}),
            },
        ));
        Ok(())
    };
    let mut rest = template;
    while let Some((_, after)) = rest.split_once('{') {
        let Some((name, after)) = after.split_once('}') else {
            return Err(refused("A `{` of the path has no `}`.".to_owned()));
        };
        parameter(name, name, Location::Path)?;
        rest = after;
    }
    let mut fixed = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        match value
            .strip_prefix('{')
            .and_then(|value| value.strip_suffix('}'))
        {
            Some(variable) => parameter(name, variable, Location::Query)?,
            None if pair.contains(['{', '}']) => {
                return Err(refused(
                    "In the query a variable is a whole value: `name={variable}`.".to_owned(),
                ));
            }
            None => fixed.push(pair),
        }
    }
    let path = if fixed.is_empty() {
        template.to_owned()
    } else {
        format!("{template}?{}", fixed.join("&"))
    };
    let (variables, parameters): (Vec<String>, Vec<HandMadeParameter>) =
        parameters.into_iter().unzip();
    let wire_names: Vec<String> = parameters.iter().map(|one| one.name.clone()).collect();
    let definition = HandMade {
        name: "read".to_owned(),
        title: None,
        description: "Reads a resource.".to_owned(),
        method: "GET".to_owned(),
        path,
        parameters,
        body: None,
    };
    let draft = definition
        .draft()
        .map_err(|error| invalid("holds.path", error.message))?;
    let mut plan = draft.plan;
    // The plan names its arguments by their place in the request; a template needs the names of its
    // variables.
    for planned in &mut plan.parameters {
        if let Some(at) = wire_names.iter().position(|name| *name == planned.name) {
            planned.argument.clone_from(&variables[at]);
        }
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn the_path_of_an_http_source_takes_the_variables_of_the_template() {
        let plan =
            request_plan("/pets/{id}?lang={tongue}&all=1", &names(&["id", "tongue"])).unwrap();
        assert_eq!(
            (plan.method.as_str(), plan.path.as_str()),
            ("GET", "/pets/{id}?all=1")
        );
        let told: Vec<_> = plan
            .parameters
            .iter()
            .map(|one| (one.argument.as_str(), one.name.as_str(), one.location))
            .collect();
        assert!(told.contains(&("id", "id", Location::Path)), "{told:?}");
        assert!(
            told.contains(&("tongue", "lang", Location::Query)),
            "{told:?}"
        );
        for bad in [
            "/pets/{other}",
            "/pets/{id",
            "pets",
            "/a/../b",
            "/pets?q=x{id}",
        ] {
            assert!(request_plan(bad, &names(&["id"])).is_err(), "{bad}");
        }
    }

    #[test]
    fn every_variable_of_a_template_is_there_and_no_other() {
        let said = Argument {
            name: "b".into(),
            description: Some("said".into()),
            ..Argument::default()
        };
        let all = variables(&names(&["a", "b"]), vec![said.clone()]).unwrap();
        assert_eq!(
            (
                all[0].name.as_str(),
                all[1].description.as_deref(),
                all[1].required
            ),
            ("a", Some("said"), true)
        );
        assert!(variables(&names(&["a"]), vec![said]).is_err());
    }
}
