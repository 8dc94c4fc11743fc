//! Arguments of prompts and variables of templates in the console's API.

use std::collections::{BTreeMap, HashSet};

use portolan_model::prompt::{Argument, Suggestion, is_argument_name};
use portolan_site::console_error::ConsoleError;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::input::plain_text;

/// Most arguments of a prompt.
const MOST_ARGUMENTS: usize = 32;

/// Most suggested values of an argument.
const MOST_VALUES: usize = 500;

/// Most characters of a suggested value.
const LONGEST_VALUE: usize = 256;

/// An argument of a prompt, or a variable of a template.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = PromptArgument)]
pub struct ArgumentForm {
    /// Its name in placeholders: 1 to 64 letters, digits, `_`, `-` or `.`.
    name: String,
    /// Display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    title: Option<String>,
    /// Its meaning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    description: Option<String>,
    /// Always true for variables of a template.
    #[serde(default)]
    required: bool,
    /// The values that completion offers, in this order.
    #[serde(default)]
    values: Vec<SuggestionForm>,
}

/// A value that completion offers.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SuggestedValue)]
pub struct SuggestionForm {
    value: String,
    /// Offered only while these other arguments have these values, or have none yet.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    when: BTreeMap<String, String>,
}

impl From<Argument> for ArgumentForm {
    fn from(argument: Argument) -> Self {
        let values = argument
            .values
            .into_iter()
            .map(|suggestion| SuggestionForm {
                value: suggestion.value,
                when: suggestion.when,
            });
        Self {
            name: argument.name,
            title: argument.title,
            description: argument.description,
            required: argument.required,
            values: values.collect(),
        }
    }
}

fn refused(index: usize, text: impl Into<String>) -> ConsoleError {
    ConsoleError::invalid("argument_invalid", text.into()).field(format!("arguments[{index}]"))
}

/// Checks a list of arguments.
pub(crate) fn checked(forms: Vec<ArgumentForm>) -> Result<Vec<Argument>, ConsoleError> {
    if forms.len() > MOST_ARGUMENTS {
        return Err(ConsoleError::invalid(
            "too_many",
            format!("There are up to {MOST_ARGUMENTS} arguments."),
        )
        .field("arguments"));
    }
    let names: Vec<String> = forms
        .iter()
        .map(|form| form.name.trim().to_owned())
        .collect();
    let mut seen = HashSet::new();
    let mut arguments = Vec::with_capacity(forms.len());
    for (index, form) in forms.into_iter().enumerate() {
        let name = &names[index];
        if !is_argument_name(name) {
            return Err(refused(
                index,
                format!("`{name}` is not a name: use 1 to 64 letters, digits, `_`, `-` or `.`."),
            ));
        }
        if !seen.insert(name) {
            return Err(refused(
                index,
                format!("Two arguments are called `{name}`."),
            ));
        }
        if form.values.len() > MOST_VALUES {
            return Err(refused(
                index,
                format!("`{name}` has up to {MOST_VALUES} suggested values."),
            ));
        }
        let mut values = Vec::with_capacity(form.values.len());
        for suggestion in form.values {
            let value = suggestion.value.trim().to_owned();
            let is_sound = |text: &str| {
                (1..=LONGEST_VALUE).contains(&text.chars().count())
                    && !text.chars().any(char::is_control)
            };
            if !is_sound(&value) || !suggestion.when.values().all(|value| is_sound(value)) {
                return Err(refused(
                    index,
                    format!(
                        "A suggested value of `{name}` has 1 to {LONGEST_VALUE} characters in one line."
                    ),
                ));
            }
            if let Some(other) = suggestion
                .when
                .keys()
                .find(|other| *other == name || !names.contains(*other))
            {
                return Err(refused(
                    index,
                    format!("`{value}` depends on `{other}`, which is not another argument."),
                ));
            }
            values.push(Suggestion {
                value,
                when: suggestion.when,
            });
        }
        arguments.push(Argument {
            name: name.clone(),
            title: text(form.title.as_deref(), 120)?,
            description: text(form.description.as_deref(), 1_000)?,
            required: form.required,
            values,
        });
    }
    Ok(arguments)
}

fn text(given: Option<&str>, most: usize) -> Result<Option<String>, ConsoleError> {
    let text = given.unwrap_or_default();
    Ok(plain_text("arguments", text, most)?.map(str::to_owned))
}
