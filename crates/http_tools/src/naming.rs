//! Names that the strictest client accepts: `[A-Za-z0-9_-]`, short, stable, unique
//! (CLIENT-36 to CLIENT-38, MCP-TL-6).

use std::collections::{BTreeMap, HashSet};

use crate::effort;

/// Longest tool name we mint. Cursor drops tools whose server and tool name exceed 60 characters
/// together, and the usual server name has about a dozen.
pub const MAX_TOOL_NAME: usize = 48;
/// Longest top-level argument name that every model API accepts.
pub const MAX_ARGUMENT_NAME: usize = 64;

/// A hash that never changes between releases (FNV-1a, 32 bits), as six base-36 digits: aliases
/// must survive updates.
pub fn stable_suffix(key: &str) -> String {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut hash: u32 = 0x811c_9dc5;
    for byte in key.bytes() {
        hash ^= u32::from(byte);
        hash = hash.wrapping_mul(0x0100_0193);
    }
    (0..6)
        .map(|_| {
            let digit = char::from(DIGITS[(hash % 36) as usize]);
            hash /= 36;
            digit
        })
        .collect()
}

/// Replaces every run of other characters by one underscore and trims the ends. May be empty.
fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '-' => out.push(c),
            '\'' | '’' => {}
            _ if !out.is_empty() && !out.ends_with('_') => out.push('_'),
            _ => {}
        }
    }
    out.trim_matches(|c| c == '_' || c == '-').to_owned()
}

/// The words of `METHOD /path`: `get_pets_by_id` for `GET /pets/{id}`.
fn from_path(method: &str, path: &str) -> String {
    let mut words = vec![method.to_ascii_lowercase()];
    for segment in path.split('/').filter(|segment| !segment.is_empty()) {
        match segment
            .strip_prefix('{')
            .and_then(|rest| rest.strip_suffix('}'))
        {
            Some(parameter) => words.extend(["by".to_owned(), clean(parameter)]),
            None => words.push(clean(segment)),
        }
    }
    words.retain(|word| !word.is_empty());
    if words.len() == 1 {
        words.push("root".to_owned());
    }
    words.join("_")
}

/// Cuts at a word's end if one is near, and appends the stable suffix of the key.
fn shorten(name: &str, key: &str, max: usize) -> String {
    let room = max - 7;
    let cut = &name[..room.min(name.len())];
    let cut = match cut.rfind('_') {
        Some(at) if at > room / 2 => &cut[..at],
        _ => cut,
    };
    format!(
        "{}_{}",
        cut.trim_end_matches(['_', '-']),
        stable_suffix(key)
    )
}

/// The name an operation would like to have: from its `operationId`, else from method and path.
pub fn wanted(operation_id: Option<&str>, method: &str, path: &str) -> String {
    let name = operation_id
        .map(clean)
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| from_path(method, path));
    if name.len() > MAX_TOOL_NAME {
        shorten(&name, &format!("{method} {path}"), MAX_TOOL_NAME)
    } else {
        name
    }
}

/// Gives each key a unique name. Names already given (`taken`, by key) are kept. Clashing names get
/// a suffix made from the key, so that neither the order of the document nor a new operation
/// renames an old one. Names that differ only in case clash, because some clients fold case.
pub fn unique(
    wanted: &BTreeMap<String, String>,
    taken: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let mut used: HashSet<String> = taken
        .values()
        .map(|name| name.to_ascii_lowercase())
        .collect();
    let mut names = BTreeMap::new();
    for (key, name) in wanted {
        if let Some(kept) = taken.get(key) {
            names.insert(key.clone(), kept.clone());
            continue;
        }
        let mut chosen = name.clone();
        if used.contains(&chosen.to_ascii_lowercase()) {
            let room = MAX_TOOL_NAME - 7;
            let stem = &name[..room.min(name.len())];
            chosen = format!(
                "{}_{}",
                stem.trim_end_matches(['_', '-']),
                stable_suffix(key)
            );
        }
        let mut salt = 0_u32;
        while used.contains(&chosen.to_ascii_lowercase()) {
            salt += 1;
            effort::spend(16);
            chosen = shorten(name, &format!("{key}#{salt}"), MAX_TOOL_NAME);
        }
        used.insert(chosen.to_ascii_lowercase());
        names.insert(key.clone(), chosen);
    }
    names
}

/// Whether a tool name chosen by a person is acceptable: 1–64 of `[A-Za-z0-9_-]`.
pub fn is_valid(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

/// A top-level argument name for a parameter or property: model APIs accept `[A-Za-z0-9_.-]{1,64}`
/// only.
pub fn argument(wire_name: &str) -> String {
    let ok = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    if (1..=MAX_ARGUMENT_NAME).contains(&wire_name.len()) && wire_name.chars().all(ok) {
        return wire_name.to_owned();
    }
    let mut out = String::with_capacity(wire_name.len());
    for c in wire_name.chars() {
        if ok(c) {
            out.push(c);
        } else if !out.is_empty() && !out.ends_with('_') {
            out.push('_');
        }
    }
    let out = out.trim_matches('_');
    if out.is_empty() {
        format!("argument_{}", stable_suffix(wire_name))
    } else if out.len() > MAX_ARGUMENT_NAME {
        shorten(out, wire_name, MAX_ARGUMENT_NAME)
    } else {
        out.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_comes_from_the_operation_id_else_from_method_and_path() {
        assert_eq!(
            wanted(Some("repos/list-for-user"), "GET", "/x"),
            "repos_list-for-user"
        );
        assert_eq!(
            wanted(Some("Pets.findByStatus"), "GET", "/x"),
            "Pets_findByStatus"
        );
        assert_eq!(
            wanted(None, "GET", "/pets/{petId}/toys"),
            "get_pets_by_petId_toys"
        );
        assert_eq!(wanted(Some("???"), "DELETE", "/"), "delete_root");
    }

    #[test]
    fn a_long_name_is_cut_with_a_stable_suffix_q_36() {
        let id = "read_all_items_of_a_collection_api_v1_collections__collection_id__items_get";
        let name = wanted(Some(id), "GET", "/api/v1/collections/{collection_id}/items");
        assert!(name.len() <= MAX_TOOL_NAME && is_valid(&name), "{name}");
        assert_eq!(
            name,
            wanted(Some(id), "GET", "/api/v1/collections/{collection_id}/items")
        );
        assert_ne!(
            name,
            wanted(Some(id), "GET", "/api/v2/collections/{collection_id}/items")
        );
    }

    #[test]
    fn tl_6_every_name_that_is_minted_here_is_one_that_every_client_takes() {
        for wanted_by in ["ü b/c", "a.b.c", "", "123", &"x".repeat(300)] {
            let name = wanted(Some(wanted_by), "GET", "/pets/{id}");
            assert!(is_valid(&name), "{wanted_by:?} → {name:?}");
        }
        for bad in ["", "a b", "a.b", "ü", &"x".repeat(65)] {
            assert!(!is_valid(bad), "{bad:?}");
        }
    }

    #[test]
    fn clashes_are_told_apart_and_given_names_are_kept() {
        let wanted = BTreeMap::from([
            ("GET /a".to_owned(), "list".to_owned()),
            ("GET /b".to_owned(), "List".to_owned()),
            ("GET /c".to_owned(), "other".to_owned()),
        ]);
        let taken = BTreeMap::from([("GET /c".to_owned(), "list".to_owned())]);
        let names = unique(&wanted, &taken);
        assert_eq!(names["GET /c"], "list");
        assert_eq!(
            names
                .values()
                .map(|n| n.to_ascii_lowercase())
                .collect::<HashSet<_>>()
                .len(),
            3
        );
    }

    #[test]
    fn argument_names_fit_every_model_api() {
        assert_eq!(argument("X-Request-Id"), "X-Request-Id");
        assert_eq!(argument("filter[name]"), "filter_name");
        assert_eq!(argument("$top"), "top");
        assert!(argument("名前").starts_with("argument_"));
        assert!(argument(&"x".repeat(200)).len() <= MAX_ARGUMENT_NAME);
    }
}
