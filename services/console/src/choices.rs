//! Chosen items of a server: their names are checked, and the choice is stored.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    hash::Hash,
};

use portolan_http_tools::naming;
use portolan_model::{
    Timestamp,
    id::{Id, ServerId, ToolId},
};
use portolan_site::console_error::ConsoleError;
use portolan_storage::{
    StorageError, TenantTx,
    registry::{
        published_items::{self, PublishedItem},
        tools::{self, Filter},
    },
};
use portolan_upstream_sync::sync::LONGEST_NAME;
use serde::Deserialize;
use serde_json::json;
use utoipa::ToSchema;

/// Most tools, most prompts, and most resources of one server.
pub(crate) const MOST: usize = 1_000;

/// A tool of a server.
#[derive(Debug, Deserialize, ToSchema)]
pub struct ChosenTool {
    #[schema(value_type = String)]
    pub(crate) tool_id: ToolId,
    /// Its name for clients; the tool's own name if absent.
    #[schema(nullable = false)]
    pub(crate) published_name: Option<String>,
}

/// The words of one kind of item, in refusals and in the audit log.
pub(crate) struct ChoiceWords {
    /// The field of the request.
    pub(crate) items: &'static str,
    /// `name` or `URI`.
    address: &'static str,
    /// In the refusal of a clash: the address that is missing.
    another: &'static str,
    /// The code of an unknown item.
    unknown: &'static str,
    /// The code of an item that is chosen twice.
    twice: &'static str,
    /// The refusal of an item that is chosen twice.
    stands_twice: &'static str,
    /// The action in the audit log.
    pub(crate) chosen: &'static str,
}

pub(crate) const TOOLS: ChoiceWords = ChoiceWords {
    items: "tools",
    address: "name",
    another: "another name",
    unknown: "tool_unknown",
    twice: "tool_twice",
    stands_twice: "A tool stands twice in the list.",
    chosen: "server.tools_chosen",
};

pub(crate) const PROMPTS: ChoiceWords = ChoiceWords {
    items: "prompts",
    address: "name",
    another: "another one",
    unknown: "unknown",
    twice: "twice",
    stands_twice: "One of them stands twice in the list.",
    chosen: "server.prompts_chosen",
};

pub(crate) const RESOURCES: ChoiceWords = ChoiceWords {
    items: "resources",
    address: "URI",
    chosen: "server.resources_chosen",
    ..PROMPTS
};

impl ChoiceWords {
    pub(crate) fn invalid(
        &self,
        code: &'static str,
        text: impl Into<Cow<'static, str>>,
    ) -> ConsoleError {
        ConsoleError::invalid(code, text).field(self.items)
    }

    fn unknown(&self) -> ConsoleError {
        let items = self.items;
        let text = format!("One of the {items} does not exist any more. Load the page again.");
        self.invalid(self.unknown, text)
    }
}

/// The chosen items by their names. Two items with one name are refused with an error that lists
/// the names. Neither is renamed, because models and people know an item by its name.
pub(crate) fn named<Id: Eq + Hash + Copy>(
    chosen: Vec<(Id, Option<String>)>,
    own: &HashMap<Id, String>,
    words: &ChoiceWords,
) -> Result<Vec<(Id, String)>, ConsoleError> {
    let items = words.items;
    if chosen.len() > MOST {
        let text = format!("A server offers up to {MOST} {items}. Split it.");
        return Err(words.invalid("too_many", text));
    }
    let mut ids = HashSet::new();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut rows = Vec::with_capacity(chosen.len());
    for (id, name) in chosen {
        let own = own.get(&id).ok_or_else(|| words.unknown())?;
        if !ids.insert(id) {
            return Err(words.invalid(words.twice, words.stands_twice));
        }
        let name = given(name).unwrap_or_else(|| own.clone());
        *counts.entry(name.clone()).or_default() += 1;
        rows.push((id, name));
    }
    let clashes: BTreeSet<String> = counts
        .into_iter()
        .filter(|(_, count)| *count > 1)
        .map(|(name, _)| name)
        .collect();
    if clashes.is_empty() {
        return Ok(rows);
    }
    let shown: Vec<String> = clashes.iter().take(5).cloned().collect();
    let (address, another) = (words.address, words.another);
    let text = format!(
        "Two {items} would have the same {address}: {}. Give one of them {another} on this server.",
        shown.join(", ")
    );
    Err(ConsoleError::conflict("name_clash", text)
        .field(items)
        .details(json!({ "names": clashes })))
}

/// A published name of a request: trimmed, and none if it is empty.
fn given(name: Option<String>) -> Option<String> {
    name.map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
}

/// Stores the choice.
pub(crate) async fn put<K: PublishedItem>(
    tx: &mut TenantTx,
    id: ServerId,
    rows: &[(Id<K>, String)],
    words: &ChoiceWords,
    now: Timestamp,
) -> Result<(), ConsoleError> {
    published_items::choose(tx, id, rows, now)
        .await
        .map_err(|error| match error {
            StorageError::Refused { .. } => words.unknown().caused_by(error),
            error => error.into(),
        })
}

/// The rows of chosen tools, checked.
pub(crate) async fn tool_rows(
    tx: &mut TenantTx,
    chosen: Vec<ChosenTool>,
) -> Result<Vec<(ToolId, String)>, ConsoleError> {
    let chosen = chosen.into_iter();
    let chosen: Vec<_> = chosen
        .map(|one| (one.tool_id, given(one.published_name)))
        .collect();
    // Valid names of the request need no look at the tools: the foreign key refuses unknown ones.
    let valid = |name: &Option<String>| name.as_deref().is_some_and(naming::is_valid);
    let own: HashMap<ToolId, String> = if chosen.iter().all(|(_, name)| valid(name)) {
        let names = chosen.iter().cloned();
        names.filter_map(|(id, name)| Some((id, name?))).collect()
    } else {
        let all = tools::list(tx, &Filter::default(), i64::from(i32::MAX)).await?;
        let names = all.into_iter();
        names
            .map(|tool| (tool.id, tool.name().to_owned()))
            .collect()
    };
    let rows = named(chosen, &own, &TOOLS)?;
    for (id, name) in &rows {
        // MCP-TL-6: an upstream server's own name for its tool is valid in any form.
        let is_own = own.get(id) == Some(name);
        let length = name.chars().count();
        if is_own && length > LONGEST_NAME {
            let text = format!(
                "`{name}` has {length} characters, and a published name has up to {LONGEST_NAME}. \
                 Give it another name, or its upstream a shorter prefix."
            );
            return Err(TOOLS.invalid("name_too_long", text));
        }
        if !is_own && !naming::is_valid(name) {
            let text =
                format!("`{name}` is not a tool's name: use 1 to 64 letters, digits, `_` or `-`.");
            return Err(TOOLS.invalid("name_invalid", text));
        }
    }
    Ok(rows)
}

/// Checks and stores the tools of a new server.
pub(crate) async fn set_tools(
    tx: &mut TenantTx,
    id: ServerId,
    chosen: Vec<ChosenTool>,
    now: Timestamp,
) -> Result<(), ConsoleError> {
    let rows = tool_rows(tx, chosen).await?;
    put(tx, id, &rows, &TOOLS, now).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_of_one_name_are_refused_with_the_names() {
        let own = HashMap::from([(1, "a".to_owned()), (2, "b".to_owned())]);
        let rows = named(vec![(1, None), (2, Some(" c ".into()))], &own, &PROMPTS).unwrap();
        assert_eq!(rows, [(1, "a".to_owned()), (2, "c".to_owned())]);
        for chosen in [
            vec![(1, None), (2, Some("a".into()))],
            vec![(1, None), (1, None)],
            vec![(3, None)],
        ] {
            assert!(named(chosen, &own, &PROMPTS).is_err());
        }
    }
}
