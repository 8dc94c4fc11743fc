//! One table of a TOML file is set, and the rest of its text stays.

use toml::{Table, Value};

use super::InstallEntry;

/// The table that holds the servers.
const SECTION: &str = "mcp_servers";

/// Sets the table of a server in `text`. Gives the new text, and whether the table is new.
///
/// # Errors
/// Why the text cannot be changed.
pub(super) fn set(text: &str, entry: &InstallEntry) -> Result<(String, bool), &'static str> {
    let mut wanted: Table = text.parse().map_err(|_| "it is no TOML")?;
    let block = block(entry);
    let own: Table = block.parse().map_err(|_| "the entry is no TOML")?;
    let own = own[SECTION][&entry.name].clone();
    let servers = wanted
        .entry(SECTION)
        .or_insert_with(|| Value::Table(Table::new()));
    let servers = servers
        .as_table_mut()
        .ok_or("its list of servers is no table")?;
    let known = servers.insert(entry.name.clone(), own.clone());
    if known.as_ref() == Some(&own) {
        return Ok((text.to_owned(), false));
    }
    let after = edit(text, &entry.name, &block);
    // The new text says what was meant, and nothing else changed.
    match after.parse::<Table>() {
        Ok(read) if read == wanted => Ok((after, known.is_none())),
        _ => Err("its text has an unusual form; add the server by hand"),
    }
}

/// The table of a server.
pub(super) fn block(entry: &InstallEntry) -> String {
    let text = |value: &str| Value::String(value.to_owned()).to_string();
    let arguments: Vec<String> = entry.arguments.iter().map(|one| text(one)).collect();
    let mut block = format!(
        "[{SECTION}.{}]\ncommand = {}\nargs = [{}]\n",
        entry.name,
        text(&entry.command),
        arguments.join(", ")
    );
    if !entry.environment.is_empty() {
        let pairs = entry.environment.iter();
        let pairs: Vec<String> = pairs
            .map(|(name, value)| format!("{} = {}", text(name), text(value)))
            .collect();
        block.push_str(&format!("env = {{ {} }}\n", pairs.join(", ")));
    }
    block
}

/// The name of the table that a line opens, without quotes.
fn opened(line: &str) -> Option<String> {
    let line = line.trim();
    let inner = line.strip_prefix('[')?;
    let inner = inner.trim_start_matches('[');
    let (name, _) = inner.split_once(']')?;
    Some(name.replace(['"', '\'', ' '], ""))
}

fn edit(text: &str, name: &str, block: &str) -> String {
    let own = format!("{SECTION}.{name}");
    let below = format!("{own}.");
    let (mut out, mut is_within, mut is_written) = (String::new(), false, false);
    // Comments and empty lines before the next table belong to that one.
    let mut pending = String::new();
    for line in text.split_inclusive('\n') {
        if let Some(table) = opened(line) {
            is_within = table == own || table.starts_with(&below);
            if is_within && !is_written {
                out.push_str(block);
                is_written = true;
            }
            if !is_within {
                out.push_str(&pending);
            }
            pending.clear();
        }
        if !is_within {
            out.push_str(line);
        } else if line.trim().is_empty() || line.trim_start().starts_with('#') {
            pending.push_str(line);
        } else {
            pending.clear();
        }
    }
    out.push_str(&pending);
    if !is_written {
        if !out.is_empty() && !out.ends_with('\n') {
            out.push('\n');
        }
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(block);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> InstallEntry {
        InstallEntry {
            name: "new".to_owned(),
            command: "C:\\p \"q\"".to_owned(),
            arguments: vec!["a".to_owned()],
            environment: vec![("K".to_owned(), "v".to_owned())],
        }
    }

    #[test]
    fn a_table_is_added_and_every_other_byte_stays() {
        let before = "# mine\nmodel = \"x\" # keep\n\n[mcp_servers.old]\ncommand = 'y'";
        let (after, is_new) = set(before, &entry()).unwrap();
        assert!(is_new && after.starts_with(before), "{after}");
        let read: Table = after.parse().unwrap();
        assert_eq!(
            read["mcp_servers"]["new"]["command"].as_str(),
            Some("C:\\p \"q\"")
        );
        assert_eq!(read["mcp_servers"]["new"]["env"]["K"].as_str(), Some("v"));
        assert_eq!(set(&after, &entry()).unwrap(), (after, false));
    }

    #[test]
    fn a_table_is_replaced_with_what_is_below_it() {
        let before = "[mcp_servers.\"new\"]\ncommand = 'y'\n[mcp_servers.new.env]\nA = '1'\n\n\
                      # next\n[mcp_servers.newer]\ncommand = 'z'\n";
        let (after, is_new) = set(before, &entry()).unwrap();
        assert!(!is_new);
        assert!(
            after.ends_with("\n# next\n[mcp_servers.newer]\ncommand = 'z'\n"),
            "{after}"
        );
        assert!(!after.contains("A = '1'"));
    }

    #[test]
    fn a_form_that_is_not_known_is_left_alone() {
        for text in [
            "= 1",
            "mcp_servers = 3",
            "mcp_servers = { new = { command = 'x' } }",
            "[mcp_servers]\nnew = { command = 'x' }\n",
            "a = '''\n[mcp_servers.new]\n'''\n",
        ] {
            assert!(set(text, &entry()).is_err(), "{text}");
        }
    }
}
