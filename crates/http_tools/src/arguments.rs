//! A tool ready to call, and the check of its arguments: each fault with its path, in words a model
//! can act on (MCP-TL-18).

use std::{
    fmt::Write as _,
    sync::{Arc, OnceLock},
};

use jsonschema::{
    Draft, PatternOptions, Retrieve, ValidationOptions, Validator,
    error::ValidationErrorKind,
    json::{Json, SerdeJson},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    effort::{self, Bounds, Counted, SeenNode, pattern::Pattern},
    plan::RequestPlan,
    prepared::PreparedPlan,
    survey,
    tree::{Tree, Trees},
};

/// Faults shown at once; a model repairs the first few anyway.
const MAX_FAULTS: usize = 12;
/// Bytes of one compiled pattern (MCP-JS-7).
const MAX_PATTERN_BYTES: usize = 512 * 1024;
/// Looks at a value until it is known whether it fits: some tenths of a second. The largest answers
/// that are read take about a third of them.
const MOST_LOOKS: usize = 10_000_000;
/// Most looks at values until all faults are known. Each fault is kept until then.
const MOST_LOOKS_FOR_FAULTS: usize = 50_000;

/// Steps of compiling a schema when a tool is called. The largest that an import takes needs a
/// fraction of them.
const MOST_STEPS_TO_COMPILE: usize = 40_000_000;

/// A compiled schema, which counts the looks at the values that it checks.
struct Checker<F: Json> {
    validator: Validator<Counted<F>>,
    /// Cost of a byte of a member's name.
    names: usize,
}

/// Takes values as they are.
type OfValues = Checker<SerdeJson>;

impl<F: Json> Checker<F> {
    fn compile(schema: &Value) -> Result<Self, String> {
        effort::within(Bounds::of_check(MOST_STEPS_TO_COMPILE), || {
            Ok(Self {
                validator: compile(schema)?,
                names: survey::weight_of_names(schema),
            })
        })
        .unwrap_or_else(|_| Err("it takes too long to read".to_owned()))
    }

    /// `None`: it takes too long to find out.
    fn is_valid(&self, node: F::Node<'_>) -> Option<bool> {
        effort::check(MOST_LOOKS, self.names, || {
            self.validator.is_valid(SeenNode(node))
        })
    }
}

/// Compiles a schema: 2020-12, linear-time patterns, nothing fetched (MCP-JS-5, MCP-JS-7). `format`
/// stays an annotation.
pub(crate) fn compile<F: Json>(schema: &Value) -> Result<Validator<F>, String> {
    if !survey::is_bounded(schema) {
        return Err("too many of its parts apply to one value, one of them contains itself without end, or it refers to something elsewhere".to_owned());
    }
    counting_options_for::<F>().build(schema).map_err(|error| {
        let mut text = error.to_string();
        if let Some((end, _)) = text.char_indices().nth(200) {
            text.truncate(end);
        }
        text
    })
}

/// How schemas are read, for instances in the form `F`.
pub(crate) fn options_for<'i, F: Json>() -> ValidationOptions<'i, Arc<dyn Retrieve>, F> {
    jsonschema::options_for::<F>()
        .with_draft(Draft::Draft202012)
        .with_pattern_options(PatternOptions::regex().size_limit(MAX_PATTERN_BYTES))
        .should_validate_formats(false)
        .offline()
}

/// The same, with patterns that count what they cost.
fn counting_options_for<'i, F: Json>() -> ValidationOptions<'i, Arc<dyn Retrieve>, F> {
    options_for::<F>().with_keyword("pattern", |_, value, _| {
        let pattern = Pattern::<F>::new(value, |schema| options_for::<F>().build(schema))?;
        Ok(Box::new(pattern))
    })
}

/// Whether a schema is of a dialect that is read here as it was meant (MCP-JS-1, MCP-JS-3):
/// 2020-12, which is also that of a schema without a word on it, or one of those that say the same
/// in the words they share with it.
fn is_known_dialect(schema: &Value) -> bool {
    let Some(named) = schema.get("$schema") else {
        return true;
    };
    let named = named.as_str().unwrap_or_default().trim_end_matches('#');
    [
        "https://json-schema.org/draft/2020-12/schema",
        "https://json-schema.org/draft/2019-09/schema",
        "http://json-schema.org/draft-07/schema",
        "https://json-schema.org/draft-07/schema",
    ]
    .contains(&named)
}

/// Whether the linear-time engine takes the pattern.
pub(crate) fn pattern_compiles(pattern: &str) -> bool {
    pattern.len() <= 2_000 && compile::<SerdeJson>(&json!({"pattern": pattern})).is_ok()
}

/// One fault of the arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArgumentFault {
    /// JSON pointer into the arguments; empty for the whole.
    pub path: String,
    /// Description of the fault and of the expected value.
    pub message: String,
}

/// Why arguments were refused. Nothing was sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the arguments do not fit the tool's input schema")]
pub struct ArgumentFaults {
    /// At least one.
    pub faults: Vec<ArgumentFault>,
    /// Whether there are more than shown.
    pub truncated: bool,
}

impl ArgumentFaults {
    pub(crate) fn one(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            faults: vec![ArgumentFault {
                path: path.into(),
                message: message.into(),
            }],
            truncated: false,
        }
    }

    /// The text for the model.
    pub fn text(&self) -> String {
        let begin = "Invalid arguments; the API was not called. Fix these and call the tool again:";
        format!("{begin}{}", self.lines())
    }

    /// The faults, each in a line that begins with a line break and a dash.
    pub fn lines(&self) -> String {
        let mut text = String::new();
        for fault in &self.faults {
            let path = if fault.path.is_empty() {
                "arguments"
            } else {
                &fault.path
            };
            let _ = write!(text, "\n- {path}: {}", fault.message);
        }
        if self.truncated {
            text.push_str("\n- … and more of the same kind");
        }
        text
    }
}

/// The schema of arguments of a tool that makes no request.
pub struct ArgumentSchema(OfValues);

impl std::fmt::Debug for ArgumentSchema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ArgumentSchema").finish_non_exhaustive()
    }
}

impl ArgumentSchema {
    /// Compiles the schema.
    ///
    /// # Errors
    /// The reason why the schema cannot be used, as a sentence without its end.
    pub fn compile(schema: &Value) -> Result<Self, String> {
        Checker::compile(schema).map(Self)
    }

    /// Checks arguments, as [`CompiledTool::check_arguments`] does.
    ///
    /// # Errors
    /// The faults of the arguments.
    pub fn check(&self, arguments: &Value) -> Result<(), ArgumentFaults> {
        check(&self.0, arguments)
    }
}

/// A tool that can be called. Cloning is cheap. Schemas are compiled at the first call, so that a
/// server with hundreds of tools loads at once.
#[derive(Clone)]
pub struct CompiledTool(Arc<Parts>);

struct Parts {
    input_schema: Value,
    output_schema: Option<Value>,
    plan: PreparedPlan,
    input: OnceLock<Result<OfValues, String>>,
    output: OnceLock<Option<Checker<Trees>>>,
}

impl std::fmt::Debug for CompiledTool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CompiledTool")
            .field("plan", self.0.plan.plan())
            .finish_non_exhaustive()
    }
}

impl CompiledTool {
    /// Takes what a [`crate::ToolDraft`] holds.
    pub fn new(input_schema: Value, output_schema: Option<Value>, plan: RequestPlan) -> Self {
        Self(Arc::new(Parts {
            input_schema,
            output_schema,
            plan: PreparedPlan::new(plan),
            input: OnceLock::new(),
            output: OnceLock::new(),
        }))
    }

    /// Schema of the arguments.
    pub fn input_schema(&self) -> &Value {
        &self.0.input_schema
    }

    /// Schema of `structuredContent`.
    pub fn output_schema(&self) -> Option<&Value> {
        self.0.output_schema.as_ref()
    }

    /// How arguments become a request.
    pub fn plan(&self) -> &RequestPlan {
        self.0.plan.plan()
    }

    /// The same, with the parts that are the same in every call.
    pub(crate) fn prepared(&self) -> &PreparedPlan {
        &self.0.plan
    }

    /// Checks arguments. A schema that does not compile refuses everything: permissive would be
    /// worse (MCP-JS-6).
    pub fn check_arguments(&self, arguments: &Value) -> Result<(), ArgumentFaults> {
        match self
            .0
            .input
            .get_or_init(|| Checker::compile(&self.0.input_schema))
        {
            Ok(validator) => check(validator, arguments),
            Err(reason) => Err(ArgumentFaults::one(
                "",
                format!("the tool's input schema cannot be used: {reason}"),
            )),
        }
    }

    /// Whether an answer fits the output schema (MCP-TL-12). Without one, or with one that does not
    /// compile, all is well; so it is where that would take too long to find out.
    pub(crate) fn fits_output(&self, output: &Tree<'_>) -> bool {
        let Some(schema) = &self.0.output_schema else {
            return true;
        };
        let checker = self.0.output.get_or_init(|| Checker::compile(schema).ok());
        let checker = checker.as_ref();
        checker.is_none_or(|checker| checker.is_valid(output).unwrap_or(true))
    }

    /// Returns the faults of an answer that does not match the output schema.
    pub(crate) fn output_faults(&self, output: &Value) -> Option<ArgumentFaults> {
        let checker = Checker::compile(self.0.output_schema.as_ref()?).ok()?;
        check(&checker, output).err()
    }
}

fn check(checker: &OfValues, instance: &Value) -> Result<(), ArgumentFaults> {
    // The common case costs no error values.
    match checker.is_valid(instance) {
        Some(true) => return Ok(()),
        Some(false) => {}
        None => {
            let message = "takes too long to be checked against the schema";
            return Err(ArgumentFaults::one("", message));
        }
    }
    let mut faults = Vec::new();
    let mut truncated = false;
    // If there are too many to find them all, that it does not fit is what is known.
    let errors = effort::check(MOST_LOOKS_FOR_FAULTS, checker.names, || {
        checker.validator.iter_errors(SeenNode(instance))
    });
    for error in errors.into_iter().flatten() {
        if faults.len() >= MAX_FAULTS {
            truncated = true;
            break;
        }
        describe(&error, &mut faults, 0);
    }
    faults.dedup();
    if faults.is_empty() {
        faults.push(ArgumentFault {
            path: String::new(),
            message: "does not fit the schema".to_owned(),
        });
    }
    Err(ArgumentFaults { faults, truncated })
}

fn describe(
    error: &jsonschema::ValidationError<'_>,
    faults: &mut Vec<ArgumentFault>,
    depth: usize,
) {
    let path = error.instance_path().as_str().to_owned();
    let below = |name: &str| format!("{path}/{}", crate::refs::escape_step(name));
    let mut push = |path: String, message: String| faults.push(ArgumentFault { path, message });
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            push(
                below(property.as_str().unwrap_or_default()),
                "is required but missing".to_owned(),
            );
        }
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            for name in unexpected.iter().take(MAX_FAULTS) {
                push(
                    below(name),
                    "is not known here; leave it out or check its spelling".to_owned(),
                );
            }
        }
        ValidationErrorKind::Type { .. } => {
            push(
                path,
                format!(
                    "is {}, but {}",
                    kind_of(error.instance()),
                    expected(&error.to_string())
                ),
            );
        }
        ValidationErrorKind::Enum { options } => {
            push(path, format!("must be one of {}", short(options, 400)));
        }
        ValidationErrorKind::Constant { expected_value } => {
            push(path, format!("must be {}", short(expected_value, 200)));
        }
        ValidationErrorKind::Pattern { pattern } => push(
            path,
            format!("must match the pattern {}", cut(pattern, 200)),
        ),
        ValidationErrorKind::MinLength { limit } => {
            push(path, format!("must have at least {limit} characters"));
        }
        ValidationErrorKind::MaxLength { limit } => {
            push(path, format!("must have at most {limit} characters"));
        }
        ValidationErrorKind::MinItems { limit } => {
            push(path, format!("must have at least {limit} items"));
        }
        ValidationErrorKind::MaxItems { limit } => {
            push(path, format!("must have at most {limit} items"));
        }
        ValidationErrorKind::Minimum { limit } => push(path, format!("must be {limit} or more")),
        ValidationErrorKind::Maximum { limit } => push(path, format!("must be {limit} or less")),
        ValidationErrorKind::ExclusiveMinimum { limit } => {
            push(path, format!("must be more than {limit}"));
        }
        ValidationErrorKind::ExclusiveMaximum { limit } => {
            push(path, format!("must be less than {limit}"));
        }
        ValidationErrorKind::UniqueItems => push(path, "must not contain an item twice".to_owned()),
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            alternatives(path, context, faults, depth);
        }
        ValidationErrorKind::OneOfMultipleValid { .. } => {
            push(path, "fits more than one of the alternatives of the schema, where exactly one is expected".to_owned());
        }
        ValidationErrorKind::FalseSchema => push(path, "must be left out".to_owned()),
        _ => push(path, cut(&error.masked_with("the value").to_string(), 300)),
    }
}

/// A value that fits none of some alternatives, with the faults in one of them.
fn alternatives(
    path: String,
    context: &[Vec<jsonschema::ValidationError<'_>>],
    faults: &mut Vec<ArgumentFault>,
    depth: usize,
) {
    // The alternative that got furthest is the one that was meant.
    let nearest = context
        .iter()
        .filter(|branch| !branch.is_empty())
        .max_by_key(|branch| {
            let deepest = branch
                .iter()
                .map(|error| error.instance_path().as_str().len())
                .max()
                .unwrap_or(0);
            (deepest, std::cmp::Reverse(branch.len()))
        });
    let message = format!(
        "fits none of the {} alternatives of the schema",
        context.len()
    );
    faults.push(ArgumentFault { path, message });
    if depth < 3
        && let Some(branch) = nearest
    {
        for error in branch.iter().take(3) {
            describe(error, faults, depth + 1);
        }
    }
}

/// The validator's words for expected types, without the value, which may be long or private.
fn expected(message: &str) -> String {
    message.rsplit_once(" is not of ").map_or_else(
        || "another type is expected".to_owned(),
        |(_, types)| format!("must be of {types}"),
    )
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn short(value: &Value, max: usize) -> String {
    cut(&value.to_string(), max)
}

fn cut(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Whether structured results are what a schema says. Compiled on first use.
pub struct OutputCheck {
    schema: Value,
    compiled: OnceLock<Option<OfValues>>,
}

impl std::fmt::Debug for OutputCheck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OutputCheck").finish_non_exhaustive()
    }
}

impl OutputCheck {
    /// A check of results against `schema`.
    pub const fn new(schema: Value) -> Self {
        Self {
            schema,
            compiled: OnceLock::new(),
        }
    }

    /// True if `result` fits; so does everything where the schema itself cannot be used (MCP-JS-3),
    /// or asks for too much work.
    pub fn fits(&self, result: &Value) -> bool {
        let compiled = self.compiled.get_or_init(|| {
            let is_known = is_known_dialect(&self.schema);
            is_known
                .then(|| Checker::compile(&self.schema).ok())
                .flatten()
        });
        let compiled = compiled.as_ref();
        compiled.is_none_or(|checker| checker.is_valid(result).unwrap_or(true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn js_2_js_3_and_x_6g_a_result_is_held_to_a_schema_that_can_be_read_and_to_no_other() {
        let number = json!({"n": 1});
        let check = |schema: Value| OutputCheck::new(schema).fits(&number);
        for dialect in [
            "https://json-schema.org/draft/2020-12/schema",
            "http://json-schema.org/draft-07/schema#",
        ] {
            let wants_text = json!({"$schema": dialect, "properties": {"n": {"type": "string"}}});
            assert!(!check(wants_text), "{dialect}");
        }
        // MCP-JS-2: the older word for definitions.
        let older = json!({"definitions": {"d": {"type": "string"}}, "properties": {"n": {"$ref": "#/definitions/d"}}});
        assert!(!check(older));
        // MCP-JS-3: only its own server can tell what this means.
        let other = json!({"$schema": "https://example.com/dialect", "properties": {"n": {"type": "string"}}});
        assert!(check(other));
    }

    #[test]
    fn js_4_js_5_and_js_6_a_schema_that_is_none_or_leads_elsewhere_is_refused() {
        for bad in [
            json!({"type": "anything"}),
            json!({"required": "a"}),
            json!({"properties": {"a": {"$ref": "https://example.com/schema.json"}}}),
            json!({"$ref": "#/$defs/nowhere"}),
        ] {
            assert!(compile::<SerdeJson>(&bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn js_8_every_word_of_2020_12_holds_for_arguments() {
        let schema = json!({"type": "object", "$defs": {"id": {"type": "integer"}},
            "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
            "properties": {"a": {"$ref": "#/$defs/id"}, "b": {"prefixItems": [{"const": 1}], "items": false}},
            "if": {"required": ["a"]}, "then": {"properties": {"a": {"minimum": 5}}},
            "unevaluatedProperties": false});
        let tool = tool(schema);
        for (arguments, fits) in [
            (json!({"a": 7}), true),
            (json!({"a": 3}), false),
            (json!({"a": "7"}), false),
            (json!({"a": 7, "b": [1]}), false),
            (json!({"b": [1]}), true),
            (json!({"b": [1, 2]}), false),
            (json!({"a": 7, "c": 1}), false),
        ] {
            assert_eq!(
                tool.check_arguments(&arguments).is_ok(),
                fits,
                "{arguments}"
            );
        }
    }

    fn tool(schema: Value) -> CompiledTool {
        let plan = RequestPlan {
            method: "GET".into(),
            path: "/".into(),
            parameters: vec![],
            body: None,
            accept: None,
        };
        CompiledTool::new(schema, None, plan)
    }

    #[test]
    fn each_fault_has_its_path_and_says_what_is_expected_tl_18() {
        let tool = tool(
            json!({"type": "object", "required": ["name"], "additionalProperties": false, "properties": {
            "name": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}},
            "kind": {"enum": ["cat", "dog"]}, "age": {"type": "integer", "minimum": 0}}}),
        );
        let faults = tool
            .check_arguments(&json!({"tags": ["a", 1], "kind": "cow", "age": -1, "nam": "x"}))
            .unwrap_err();
        let found: Vec<_> = faults
            .faults
            .iter()
            .map(|f| (f.path.as_str(), f.message.as_str()))
            .collect();
        assert!(
            found.contains(&("/name", "is required but missing")),
            "{found:?}"
        );
        assert!(
            found.contains(&("/tags/1", "is a number, but must be of type \"string\"")),
            "{found:?}"
        );
        assert!(
            found.contains(&("/kind", "must be one of [\"cat\",\"dog\"]")),
            "{found:?}"
        );
        assert!(found.contains(&("/age", "must be 0 or more")), "{found:?}");
        assert!(found.iter().any(|(path, _)| *path == "/nam"), "{found:?}");
        assert!(faults.text().contains("- /name: is required but missing"));
    }

    #[test]
    fn an_alternative_names_the_nearest_branch() {
        let tool = tool(
            json!({"type": "object", "properties": {"x": {"anyOf": [{"type": "null"},
            {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}}]}}}),
        );
        let text = tool
            .check_arguments(&json!({"x": {"id": "seven"}}))
            .unwrap_err()
            .text();
        assert!(
            text.contains("/x/id: is a string, but must be of type \"integer\""),
            "{text}"
        );
    }

    #[test]
    fn patterns_that_could_run_away_are_not_supported_js_7() {
        assert!(pattern_compiles("^[a-z]+$"));
        assert!(!pattern_compiles("^(?=.*x).+$"));
        assert!(!pattern_compiles(r"(a)\1"));
        assert!(!pattern_compiles("("));
    }

    #[test]
    fn a_remote_reference_is_never_fetched_js_5() {
        assert!(compile::<SerdeJson>(&json!({"$ref": "https://example.com/schema.json"})).is_err());
    }
}
