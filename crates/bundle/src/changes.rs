//! The differences between two bundles in canonical form, object by object and field by field
//! (CONF-5).

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::format::Bundle;

/// Most characters of a value that is shown.
const LONGEST: usize = 500;

/// What becomes of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ConfigurationOperation)]
pub enum Operation {
    /// It is made.
    Create,
    /// It changes.
    Update,
    /// It goes to the trash; an endpoint of webhooks is deleted for good.
    Delete,
}

/// Kinds of objects.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[schema(as = ConfigurationObjectKind)]
pub enum ObjectKind {
    /// A source; its key is its name.
    Source,
    /// A prompt that is written here; its key is its name.
    Prompt,
    /// A resource that is written here; its key is its URI or template.
    Resource,
    /// A server; its key is its slug.
    Server,
    /// An endpoint of webhooks; its key is its URL.
    Webhook,
}

impl ObjectKind {
    /// Every kind, in the order of a file.
    pub const ALL: [Self; 5] = [
        Self::Source,
        Self::Prompt,
        Self::Resource,
        Self::Server,
        Self::Webhook,
    ];

    /// The member of a bundle that has the objects of this kind.
    pub const fn section(self) -> &'static str {
        match self {
            Self::Source => "sources",
            Self::Prompt => "prompts",
            Self::Resource => "resources",
            Self::Server => "servers",
            Self::Webhook => "webhooks",
        }
    }
}

/// The key of an object in a workspace.
pub type ObjectKey = (ObjectKind, String);

/// A change of one object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = ConfigurationChange)]
pub struct Change {
    /// What becomes of it.
    pub op: Operation,
    /// Its kind.
    pub kind: ObjectKind,
    /// Its key.
    pub key: String,
    /// Its fields that change. A deletion has none.
    pub fields: Vec<FieldChange>,
}

/// A change of one field.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = ConfigurationFieldChange)]
pub struct FieldChange {
    /// Its path in the object.
    pub path: String,
    /// The value before; absent if there was none. Long texts are cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub before: Option<Value>,
    /// The value after; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub after: Option<Value>,
}

/// The objects of a bundle, by kind and key, as JSON.
pub fn objects(bundle: &Bundle) -> BTreeMap<ObjectKey, Value> {
    let mut all = BTreeMap::new();
    for source in &bundle.sources {
        add(&mut all, ObjectKind::Source, &source.name, source);
    }
    for prompt in &bundle.prompts {
        add(&mut all, ObjectKind::Prompt, &prompt.name, prompt);
    }
    for resource in &bundle.resources {
        add(&mut all, ObjectKind::Resource, &resource.uri, resource);
    }
    for server in &bundle.servers {
        add(&mut all, ObjectKind::Server, &server.slug, server);
    }
    for webhook in &bundle.webhooks {
        add(&mut all, ObjectKind::Webhook, &webhook.url, webhook);
    }
    all
}

fn add(all: &mut BTreeMap<ObjectKey, Value>, kind: ObjectKind, key: &str, object: &impl Serialize) {
    let value = serde_json::to_value(object).unwrap_or_default();
    all.insert((kind, key.to_owned()), value);
}

/// The changes that lead from one bundle to the other, by kind and key.
pub fn changes(before: &Bundle, after: &Bundle) -> Vec<Change> {
    let (before, after) = (objects(before), objects(after));
    let keys: BTreeSet<&ObjectKey> = before.keys().chain(after.keys()).collect();
    keys.into_iter()
        .filter_map(|key| change(key, before.get(key), after.get(key)))
        .collect()
}

fn change(key: &ObjectKey, before: Option<&Value>, after: Option<&Value>) -> Option<Change> {
    let (op, fields) = match (before, after) {
        (None, Some(after)) => (Operation::Create, differences(&Value::Null, after)),
        (Some(_), None) => (Operation::Delete, Vec::new()),
        (Some(before), Some(after)) if before != after => {
            (Operation::Update, differences(before, after))
        }
        _ => return None,
    };
    Some(Change {
        op,
        kind: key.0,
        key: key.1.clone(),
        fields,
    })
}

fn differences(before: &Value, after: &Value) -> Vec<FieldChange> {
    let (before, after) = (fields(before), fields(after));
    let paths: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    paths
        .into_iter()
        .filter(|path| before.get(*path) != after.get(*path))
        .map(|path| FieldChange {
            path: path.clone(),
            before: before.get(path).map(shown),
            after: after.get(path).map(shown),
        })
        .collect()
}

/// The fields of an object by their paths. Items of a list that have keys of their own have these
/// in the path, so that one more item changes no other path.
fn fields(value: &Value) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    collect("", value, &mut found);
    found
}

fn collect(path: &str, value: &Value, found: &mut BTreeMap<String, Value>) {
    let below = |segment: &str| {
        if path.is_empty() {
            segment.to_owned()
        } else {
            format!("{path}.{segment}")
        }
    };
    match value {
        Value::Null if path.is_empty() => {}
        Value::Object(members) if !members.is_empty() => {
            for (name, member) in members {
                collect(&below(name), member, found);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            let keys = item_keys(items);
            for (at, item) in items.iter().enumerate() {
                let place = keys.as_ref().map_or_else(
                    || format!("{path}[{at}]"),
                    |keys| format!("{path}[{}]", keys[at]),
                );
                collect(&place, item, found);
            }
        }
        value => {
            found.insert(path.to_owned(), value.clone());
        }
    }
}

/// The keys of the items of a list, if each has one and no two are the same.
fn item_keys(items: &[Value]) -> Option<Vec<String>> {
    let keys: Option<Vec<String>> = items.iter().map(item_key).collect();
    let keys = keys?;
    let unique: BTreeSet<&String> = keys.iter().collect();
    (unique.len() == keys.len()).then_some(keys)
}

fn item_key(item: &Value) -> Option<String> {
    let members: &Map<String, Value> = item.as_object()?;
    let text = |name: &str| members.get(name).and_then(Value::as_str);
    let own = ["tool", "prompt", "uri", "name"]
        .into_iter()
        .find_map(text)?;
    Some(text("source").map_or_else(|| own.to_owned(), |source| format!("{source}/{own}")))
}

/// A value as it is shown: long texts are cut.
fn shown(value: &Value) -> Value {
    match value {
        Value::String(text) if text.chars().count() > LONGEST => {
            let begin: String = text.chars().take(LONGEST).collect();
            Value::String(format!("{begin}… ({} characters)", text.chars().count()))
        }
        value => value.clone(),
    }
}
