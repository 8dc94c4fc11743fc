//! Changes as lines for people.

use serde_json::Value;

/// Most characters of a value in a line.
const LONGEST: usize = 100;

/// A plan: one line an object, one a field, and the counts.
pub(super) fn plan(plan: &Value) -> String {
    let claimed = plan["claimed"].as_u64().unwrap_or_default();
    let mut text = changes(&plan["changes"]);
    if text.is_empty() {
        text.push_str("No changes.");
    } else {
        text.push_str(&format!("{}.", counts(&plan["changes"])));
    }
    if claimed > 0 {
        text.push_str(&format!(
            " The file begins to own {claimed} objects that are there."
        ));
    }
    text
}

/// The result of an application.
pub(super) fn applied(applied: &Value) -> String {
    format!(
        "{}Applied: {}.",
        changes(&applied["changes"]),
        counts(&applied["changes"])
    )
}

fn changes(changes: &Value) -> String {
    let mut text = String::new();
    for change in changes.as_array().into_iter().flatten() {
        let mark = match change["op"].as_str() {
            Some("create") => '+',
            Some("delete") => '-',
            _ => '~',
        };
        let word = |name: &str| change[name].as_str().unwrap_or_default();
        text.push_str(&format!("{mark} {}s/{}\n", word("kind"), word("key")));
        if mark == '+' {
            continue;
        }
        for field in change["fields"].as_array().into_iter().flatten() {
            let path = field["path"].as_str().unwrap_or_default();
            let (before, after) = (value(&field["before"]), value(&field["after"]));
            text.push_str(&format!("    {path}: {before} → {after}\n"));
        }
    }
    text
}

/// A value in one line. JSON escapes control characters, which a terminal would obey.
fn value(value: &Value) -> String {
    if value.is_null() {
        return "(absent)".to_owned();
    }
    let text = value.to_string();
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn counts(changes: &Value) -> String {
    let count = |op: &str| {
        let all = changes.as_array().into_iter().flatten();
        all.filter(|change| change["op"] == op).count()
    };
    format!(
        "{} to create, {} to update, {} to delete",
        count("create"),
        count("update"),
        count("delete")
    )
}
