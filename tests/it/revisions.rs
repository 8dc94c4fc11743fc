//! Every rule of the specification as Portolan reads it, and the tests that hold it: `docs/revisions.md` is made from the sources of the tests.
//!
//! A test counts for a rule if the rule's id is in its name (`t_24_…`), in the comment above it, or in its body. `tests/rules-open.txt` lists the rules that nothing
//! holds yet; it only shrinks. `make revisions` writes page and list anew.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
};

use anyhow::{Context, Result};
use portolan_tests::{
    sources::{self, tests_of},
    stack::repository,
};
use regex::Regex;

const PAGE: &str = "docs/revisions.md";
/// Names shown for one rule; the rest is counted.
const SHOWN: usize = 4;

struct Rule {
    id: String,
    section: String,
    revisions: String,
    level: String,
    text: String,
}

fn rules() -> Result<Vec<Rule>> {
    let table = fs::read_to_string(repository().join("tests/rules.tsv"))?;
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('\t').collect();
        let [id, section, revisions, level, text] = cells.as_slice() else {
            anyhow::bail!("{line:?} is no rule");
        };
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

/// `t_20_t_30_each_verb` → T-20, T-30. The tests of the protocol's own room also write `t20_t30_…`; elsewhere that means other documents.
fn ids_in_name(name: &str, is_protocol: bool) -> Vec<String> {
    let words: Vec<&str> = name.split('_').collect();
    let is_letters =
        |word: &str| (1..=2).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_lowercase());
    let is_number = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
    let id = |letters: &str, number: &str| {
        (is_letters(letters) && is_number(number))
            .then(|| format!("{}-{number}", letters.to_uppercase()))
    };
    let apart = words.windows(2).filter_map(|pair| id(pair[0], pair[1]));
    let together = words.iter().filter(|_| is_protocol).filter_map(|word| {
        let (letters, number) = word.split_at(word.find(|c: char| c.is_ascii_digit())?);
        id(letters, number)
    });
    apart.chain(together).collect()
}

/// Rule → where it is held.
fn held(rules: &[Rule]) -> Result<BTreeMap<String, BTreeSet<String>>> {
    let known: BTreeSet<&str> = rules.iter().map(|rule| rule.id.as_str()).collect();
    let in_text = Regex::new(r"\b([A-Z]{1,2})-(\d+)\b")?;
    let in_name = Regex::new(r"^[a-z]{1,2}_\d+_")?;
    // `J-12…J-16` in words, `j_12_to_j_16` in a name.
    let ranges = Regex::new(r"\b([A-Za-z]{1,2})[-_](\d+)(?:…|_to_)([A-Za-z]{1,2})[-_](\d+)")?;
    let mut held: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in sources::files(&["crates", "services", "tests"], sources::is_rust)? {
        let source = fs::read_to_string(&file)?;
        let place = file.strip_prefix(repository())?.with_extension("");
        let place = place
            .to_string_lossy()
            .replace("/src/", "/")
            .replace('/', "::");
        for test in tests_of(&source, |name| in_name.is_match(name)) {
            let mut ids: Vec<String> = in_text
                .captures_iter(&test.text)
                .map(|found| format!("{}-{}", &found[1], &found[2]))
                .collect();
            ids.extend(ids_in_name(
                &test.name,
                place.starts_with("crates::protocol"),
            ));
            for found in ranges.captures_iter(&test.text) {
                let (from, to): (u32, u32) = (found[2].parse()?, found[4].parse()?);
                if found[1].eq_ignore_ascii_case(&found[3]) {
                    ids.extend((from..=to).map(|n| format!("{}-{n}", found[1].to_uppercase())));
                }
            }
            for id in ids.into_iter().filter(|id| known.contains(id.as_str())) {
                held.entry(id)
                    .or_default()
                    .insert(format!("{place}::{}", test.name));
            }
        }
    }
    // What a decision explains that no test can hold stands in its table, and nowhere else.
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
            let id = format!("{}-{}", &found[1], &found[2]);
            if known.contains(id.as_str()) && name.starts_with(|c: char| c.is_ascii_digit()) {
                held.entry(id)
                    .or_default()
                    .insert(format!("ADR {}", &name[..4]));
            }
        }
    }
    Ok(held)
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

fn page(rules: &[Rule], held: &BTreeMap<String, BTreeSet<String>>) -> Result<String> {
    let covered = rules
        .iter()
        .filter(|rule| held.contains_key(&rule.id))
        .count();
    let mut page = format!(
        "# Rules and the tests that hold them\n\n\
         Made by `make revisions` from the sources of the tests; never edited. R1 = 2024-11-05, R2 = 2025-03-26, R3 = 2025-06-18, R4 = 2025-11-25,\n\
         R5 = 2026-07-28, D = the draft between R4 and R5. DEC marks what the specification leaves open and Portolan decides. {covered} of {} rules are held by a test or\n\
         explained by a decision ([adr/](adr/)); what is left is in `tests/rules-open.txt`.\n",
        rules.len()
    );
    let mut section = "";
    for rule in rules {
        if rule.section != section {
            section = &rule.section;
            write!(
                page,
                "\n## Section {section}\n\n| Rule | Revisions | Level | Says | Held by |\n|---|---|---|---|---|\n"
            )?;
        }
        let names = held.get(&rule.id);
        let mut shown: Vec<String> = names
            .into_iter()
            .flatten()
            .take(SHOWN)
            .map(|name| {
                if name.starts_with("ADR") {
                    name.clone()
                } else {
                    format!("`{name}`")
                }
            })
            .collect();
        if let Some(more) = names
            .map(|names| names.len().saturating_sub(SHOWN))
            .filter(|more| *more > 0)
        {
            shown.push(format!("{more} more"));
        }
        if shown.is_empty() {
            shown.push("not yet".to_owned());
        }
        writeln!(
            page,
            "| {} | {} | {} | {} | {} |",
            rule.id,
            rule.revisions,
            rule.level,
            rule.text,
            shown.join(", ")
        )?;
    }
    Ok(page)
}

#[test]
fn every_rule_is_held_by_a_test_or_listed_as_open_and_the_page_says_so() -> Result<()> {
    let rules = rules()?;
    let held = held(&rules)?;
    let open: BTreeSet<String> = fs::read_to_string(repository().join("tests/rules-open.txt"))?
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .map(str::to_owned)
        .collect();
    let page = page(&rules, &held)?;
    if std::env::var_os("REVISIONS_WRITE").is_some() {
        fs::write(repository().join(PAGE), &page)?;
        let left: Vec<&str> = rules
            .iter()
            .map(|rule| rule.id.as_str())
            .filter(|id| !held.contains_key(*id))
            .collect();
        let grown: Vec<&&str> = left.iter().filter(|id| !open.contains(**id)).collect();
        assert!(grown.is_empty(), "no test names {grown:?} any more");
        let text = format!(
            "# Rules of tests/rules.tsv that no test holds yet. The list only shrinks.\n{}\n",
            left.join("\n")
        );
        fs::write(repository().join("tests/rules-open.txt"), text)?;
        return Ok(());
    }
    let lost: Vec<&str> = rules
        .iter()
        .map(|rule| rule.id.as_str())
        .filter(|id| !held.contains_key(*id) && !open.contains(*id))
        .collect();
    assert!(
        lost.is_empty(),
        "no test names {lost:?} any more, and tests/rules-open.txt only shrinks"
    );
    // What came to be held since is told by the next `make revisions`, so that two changes at once do not hinder each other.
    let written = fs::read_to_string(repository().join(PAGE))?;
    for rule in &rules {
        let row = format!("\n| {} |", rule.id);
        assert!(
            written.contains(&row),
            "{PAGE} lacks {}: `make revisions`",
            rule.id
        );
    }
    Ok(())
}

#[test]
fn the_scan_finds_tests_by_name_comment_and_body_and_nothing_else() {
    let source = r#"
/// T-1 is only described here.
fn helper() {
    let _ = "T-2";
}

// T-3: above.
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
    assert_eq!(ids_in_name(&tests[0].name, false), ["T-4", "T-5"]);
    assert_eq!(ids_in_name("fa2_tl13_shapes", true), ["FA-2", "TL-13"]);
    assert!(ids_in_name("e3_the_document", false).is_empty());
}
