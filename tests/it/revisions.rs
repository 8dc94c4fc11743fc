//! Every rule of the specification as Portolan reads it, and the tests that hold it. The pages
//! `docs/revisions.md`, `docs/authorization-rules.md` and `docs/translation-rules.md` are made from the
//! sources of the tests.
//!
//! A test counts for a rule if the rule's id is in its name (`t_24_…` for MCP-T-24), in the comment above
//! it, or in its body, or if `tests/rules-held.txt` names the test for the rule. `tests/rules-open.txt`
//! lists the rules that no test holds yet; it only shrinks. `make revisions` writes pages and list anew.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::Path,
};

use anyhow::{Context, Result, ensure};
use portolan_tests::{
    sources::{self, tests_of},
    stack::repository,
};
use regex::Regex;

/// Names shown for one rule; the rest is counted.
const SHOWN: usize = 4;
const OPEN: &str = "tests/rules-open.txt";
const HELD: &str = "tests/rules-held.txt";
/// Every id in the tables begins with it. Names of tests leave it out.
const NAMESPACE: &str = "MCP-";

/// One table of rules and the page that is made of it.
struct Book {
    table: &'static str,
    page: &'static str,
    title: &'static str,
    /// Columns two and three of the page.
    columns: [&'static str; 2],
    intro: &'static str,
}

const BOOKS: [Book; 3] = [
    Book {
        table: "tests/rules.tsv",
        page: "docs/revisions.md",
        title: "Rules and the tests that hold them",
        columns: ["Revisions", "Level"],
        intro: "R1 = 2024-11-05, R2 = 2025-03-26, R3 = 2025-06-18, R4 = 2025-11-25,\n\
                R5 = 2026-07-28, D = the draft between R4 and R5. DEC marks what the specification leaves\n\
                open and Portolan decides.",
    },
    Book {
        table: "tests/rules-authorization.tsv",
        page: "docs/authorization-rules.md",
        title: "Rules of authorization and the tests that hold them",
        columns: ["Revisions", "Level"],
        intro: "The rules of MCP authorization for the endpoint (resource server), the authorization\n\
                server, and Portolan as a client of upstream authorization servers. Revisions as in\n\
                [revisions.md](revisions.md); *ext* marks an extension. *Public origin* is the one origin\n\
                and issuer of an installation.",
    },
    Book {
        table: "tests/rules-translation.tsv",
        page: "docs/translation-rules.md",
        title: "Rules of translation and the tests that hold them",
        columns: ["Client → upstream", "Level"],
        intro: "What happens when a client of one revision meets an upstream server of another. Revisions\n\
                as in [revisions.md](revisions.md); *legacy* is R1 to R4. V rules are what the client sees\n\
                where a translation is impossible; XT rules are cases of the whole bridge.",
    },
];

struct Rule {
    id: String,
    section: String,
    revisions: String,
    level: String,
    text: String,
}

fn rules(book: &Book) -> Result<Vec<Rule>> {
    let table = fs::read_to_string(repository().join(book.table))?;
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('\t').collect();
        let [id, section, revisions, level, text] = cells.as_slice() else {
            anyhow::bail!("{line:?} is no rule");
        };
        ensure!(
            id.starts_with(NAMESPACE),
            "{}: {id} has no namespace; write {NAMESPACE}{id}",
            book.table
        );
        Ok(Rule {
            id: (*id).to_owned(),
            section: (*section).to_owned(),
            revisions: (*revisions).to_owned(),
            level: (*level).to_owned(),
            text: (*text).to_owned(),
        })
    };
    table.lines().map(row).collect()
}

/// `t_20_t_30_each_verb` → MCP-T-20, MCP-T-30; `x_2a_case` → MCP-X-2A. The tests of the protocol's own
/// crate also write `t20_t30_…`; elsewhere that means other documents.
fn ids_in_name(name: &str, is_protocol: bool) -> Vec<String> {
    let words: Vec<&str> = name.split('_').collect();
    let is_letters =
        |word: &str| (1..=3).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_lowercase());
    let is_number = |word: &str| {
        let digits = word.strip_suffix(|c: char| c.is_ascii_lowercase());
        let digits = digits.filter(|left| !left.is_empty()).unwrap_or(word);
        !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
    };
    let id = |letters: &str, number: &str| {
        (is_letters(letters) && is_number(number))
            .then(|| format!("{NAMESPACE}{letters}-{number}").to_ascii_uppercase())
    };
    let apart = words.windows(2).filter_map(|pair| id(pair[0], pair[1]));
    let together = words.iter().filter(|_| is_protocol).filter_map(|word| {
        let (letters, number) = word.split_at(word.find(|c: char| c.is_ascii_digit())?);
        // `v2` is a version there, and never a rule of what clients see.
        id(letters, number).filter(|_| letters != "v")
    });
    apart.chain(together).collect()
}

/// `MCP-J-12…MCP-J-16` or `MCP-J-12 to MCP-J-16` in words, `j_12_to_j_16` in a name; also of letters,
/// `x_2a_to_x_2c`.
fn ids_in_ranges(text: &str, ranges: &Regex) -> Result<Vec<String>> {
    let mut ids = Vec::new();
    for found in ranges.captures_iter(text) {
        if !found[1].eq_ignore_ascii_case(&found[4]) {
            continue;
        }
        let letters = format!("{NAMESPACE}{}", found[1].to_uppercase());
        let (from, to): (u32, u32) = (found[2].parse()?, found[5].parse()?);
        let suffix = |at: usize| found[at].bytes().next().map(|b| b.to_ascii_uppercase());
        match (suffix(3), suffix(6)) {
            (None, None) => ids.extend((from..=to).map(|n| format!("{letters}-{n}"))),
            (Some(first), Some(last)) if from == to => {
                let letter = |b: u8| format!("{letters}-{from}{}", char::from(b));
                ids.extend((first..=last).map(letter));
            }
            _ => {}
        }
    }
    Ok(ids)
}

/// Rule → where it is held.
fn held(known: &BTreeSet<String>) -> Result<BTreeMap<String, BTreeSet<String>>> {
    let in_text = Regex::new(r"\bMCP-([A-Z]{1,3})-(\d+[A-Z]?)\b")?;
    let in_name = Regex::new(r"^[a-z]{1,3}_\d+[a-z]?_")?;
    let ranges = Regex::new(
        r"\b([A-Za-z]{1,3})[-_](\d+)([A-Za-z]?)(?:…|_to_| to )(?:MCP-)?([A-Za-z]{1,3})[-_](\d+)([A-Za-z]?)(?:\b|_)",
    )?;
    let assigned = assigned(known)?;
    let mut unseen: BTreeSet<&String> = assigned.values().flatten().collect();
    let mut held: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    // The tests of citations show ids, and hold none.
    let is_wanted = |name: &str| sources::is_rust(name) && name != "citations.rs";
    for file in sources::files(&["crates", "services", "tests"], is_wanted)? {
        let source = fs::read_to_string(&file)?;
        let place = file.strip_prefix(repository())?.with_extension("");
        let place = place
            .to_string_lossy()
            .replace("/src/", "/")
            .replace('/', "::");
        for test in tests_of(&source, |name| in_name.is_match(name)) {
            let mut ids: Vec<String> = in_text
                .captures_iter(&test.text)
                .map(|found| format!("{NAMESPACE}{}-{}", &found[1], &found[2]))
                .collect();
            ids.extend(ids_in_name(
                &test.name,
                place.starts_with("crates::protocol"),
            ));
            ids.extend(ids_in_ranges(&test.text, &ranges)?);
            let named = assigned
                .iter()
                .filter(|(_, tests)| tests.contains(&test.name));
            ids.extend(named.map(|(id, _)| id.clone()));
            unseen.remove(&test.name);
            for id in ids.into_iter().filter(|id| known.contains(id)) {
                held.entry(id)
                    .or_default()
                    .insert(format!("{place}::{}", test.name));
            }
        }
    }
    ensure!(
        unseen.is_empty(),
        "{HELD} names tests that are not there: {unseen:?}"
    );
    explained(known, &in_text, &mut held)?;
    Ok(held)
}

/// `ID | test, test` of `tests/rules-held.txt`: rules whose tests do not name them.
fn assigned(known: &BTreeSet<String>) -> Result<BTreeMap<String, BTreeSet<String>>> {
    let text = fs::read_to_string(repository().join(HELD))?;
    let rows = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut assigned = BTreeMap::new();
    for row in rows {
        let (id, tests) = row.split_once(" | ").context("ID | test, test")?;
        ensure!(known.contains(id), "{HELD}: {id} is no rule");
        let tests = tests.split(", ").map(str::to_owned).collect();
        ensure!(
            assigned.insert(id.to_owned(), tests).is_none(),
            "{HELD} lists {id} twice"
        );
    }
    Ok(assigned)
}

/// Adds the rules that no test can hold, which the table of a decision explains.
fn explained(
    known: &BTreeSet<String>,
    in_text: &Regex,
    held: &mut BTreeMap<String, BTreeSet<String>>,
) -> Result<()> {
    for entry in fs::read_dir(repository().join("docs/adr"))? {
        let path = entry?.path();
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .context("a name")?
            .to_owned();
        let text = fs::read_to_string(&path)?;
        let explained = without_a_test(&text);
        for found in explained.lines().flat_map(|row| in_text.captures_iter(row)) {
            let id = format!("{NAMESPACE}{}-{}", &found[1], &found[2]);
            if known.contains(id.as_str()) && name.starts_with(|c: char| c.is_ascii_digit()) {
                held.entry(id)
                    .or_default()
                    .insert(format!("ADR {}", &name[..4]));
            }
        }
    }
    Ok(())
}

/// The first cells of the table under "Rules without a test" of a decision.
fn without_a_test(text: &str) -> String {
    let section = text
        .split("\n## ")
        .find(|part| part.starts_with("Rules without a test"));
    let rows = section.into_iter().flat_map(str::lines);
    let cells = rows.filter_map(|row| row.strip_prefix('|')?.split('|').next());
    cells.collect::<Vec<_>>().join("\n")
}

fn page(book: &Book, rules: &[Rule], held: &BTreeMap<String, BTreeSet<String>>) -> Result<String> {
    let covered = rules
        .iter()
        .filter(|rule| held.contains_key(&rule.id))
        .count();
    let mut page = format!(
        "# {}\n\nMade by `make revisions` from the sources of the tests; never edited. {} {covered} of {} rules are\n\
         held by a test or explained by a decision ([adr/](adr/)); what is left is in `{OPEN}`.\n",
        book.title,
        book.intro,
        rules.len()
    );
    let [revisions, level] = book.columns;
    let mut section = "";
    for rule in rules {
        if rule.section != section {
            section = &rule.section;
            let number = section.bytes().all(|b| b.is_ascii_digit());
            let word = if number { "Section " } else { "" };
            write!(
                page,
                "\n## {word}{section}\n\n| Rule | {revisions} | {level} | Says | Held by |\n|---|---|---|---|---|\n"
            )?;
        }
        writeln!(
            page,
            "| {} | {} | {} | {} | {} |",
            rule.id,
            rule.revisions,
            rule.level,
            rule.text,
            holders(held.get(&rule.id))
        )?;
    }
    Ok(page)
}

fn holders(names: Option<&BTreeSet<String>>) -> String {
    let name = |name: &String| {
        if name.starts_with("ADR") {
            name.clone()
        } else {
            format!("`{name}`")
        }
    };
    let mut shown: Vec<String> = names.into_iter().flatten().take(SHOWN).map(name).collect();
    let more = names.map_or(0, |names| names.len().saturating_sub(SHOWN));
    if more > 0 {
        shown.push(format!("{more} more"));
    }
    if shown.is_empty() {
        shown.push("not yet".to_owned());
    }
    shown.join(", ")
}

/// Writes a file whole, so that a reader beside it never sees half of it.
fn write_whole(path: &Path, text: &str) -> Result<()> {
    let new = path.with_extension("new");
    fs::write(&new, text)?;
    Ok(fs::rename(new, path)?)
}

#[test]
fn every_rule_is_held_by_a_test_or_listed_as_open_and_the_page_says_so() -> Result<()> {
    let mut books = Vec::new();
    for book in &BOOKS {
        books.push((book, rules(book)?));
    }
    let all: Vec<&str> = books
        .iter()
        .flat_map(|(_, rules)| rules.iter().map(|rule| rule.id.as_str()))
        .collect();
    let known: BTreeSet<String> = all.iter().map(|id| (*id).to_owned()).collect();
    ensure!(known.len() == all.len(), "an id stands in two tables");
    let held = held(&known)?;
    let open: BTreeSet<String> = fs::read_to_string(repository().join(OPEN))?
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .map(str::to_owned)
        .collect();
    let left: Vec<&str> = all
        .iter()
        .copied()
        .filter(|id| !held.contains_key(*id))
        .collect();
    let grown: Vec<&&str> = left.iter().filter(|id| !open.contains(**id)).collect();
    assert!(
        grown.is_empty(),
        "no test names {grown:?} any more, and {OPEN} only shrinks"
    );
    if std::env::var_os("REVISIONS_WRITE").is_some() {
        for (book, rules) in &books {
            write_whole(&repository().join(book.page), &page(book, rules, &held)?)?;
        }
        let text = format!(
            "# Rules that no test holds yet. The list only shrinks.\n{}\n",
            left.join("\n")
        );
        return write_whole(&repository().join(OPEN), &text);
    }
    // The next `make revisions` writes rules that are held since, so that two changes at once do
    // not hinder each other.
    for (book, rules) in &books {
        let written = fs::read_to_string(repository().join(book.page))?;
        for rule in rules {
            let row = format!("\n| {} |", rule.id);
            assert!(
                written.contains(&row),
                "{} lacks {}: `make revisions`",
                book.page,
                rule.id
            );
        }
    }
    Ok(())
}

#[test]
fn the_scan_finds_tests_by_name_comment_and_body_and_nothing_else() {
    let source = r#"
/// MCP-T-1 is only described here.
fn helper() {
    let _ = "T-2";
}

// MCP-T-3: above.
#[tokio::test]
async fn t_4_t_5_by_name() {
    assert!(true, "T-6");
}

async fn o_6_a_case(ground: &Ground) {}
"#;
    let named = Regex::new(r"^[a-z]{1,2}_\d+_").expect("it is a pattern");
    let tests = tests_of(source, |name| named.is_match(name));
    let names: Vec<&str> = tests.iter().map(|test| test.name.as_str()).collect();
    assert_eq!(names, ["t_4_t_5_by_name", "o_6_a_case"]);
    assert!(tests[0].text.contains("T-3") && tests[0].text.contains("T-6"));
    assert!(!tests[0].text.contains("T-2"));
    assert_eq!(ids_in_name(&tests[0].name, false), ["MCP-T-4", "MCP-T-5"]);
    assert_eq!(
        ids_in_name("fa2_tl13_shapes", true),
        ["MCP-FA-2", "MCP-TL-13"]
    );
    assert!(ids_in_name("e3_the_document", false).is_empty());
}
