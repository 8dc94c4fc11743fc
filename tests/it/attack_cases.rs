//! Which test holds which of the negative and attack cases of the authorization server. The cases are
//! numbered in `tests/attack-cases.txt`; a test names its cases in its own name (`case_47_…`,
//! `cases_12_to_15_…`) or in a comment inside it (CASE-47, CASE-12 to CASE-15). `docs/attack-cases.md` is made of what is found: `PORTOLAN_TEST_UPDATE=1 cargo nextest run -p portolan-tests attack_cases`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
};

use anyhow::{Context, Result, ensure};
use portolan_tests::{sources, stack::repository};
use regex::Regex;

/// Cases that no test holds yet. Only ever gets shorter: a case that has a test must leave it, and one that loses its test
/// fails here.
const WITHOUT_A_TEST: &[u16] = &[];

/// Where tests are.
const FOLDERS: &[&str] = &["crates", "services", "tests/it", "web/tests"];

struct Case {
    number: u16,
    section: String,
    text: String,
}

fn cases() -> Result<Vec<Case>> {
    let text = fs::read_to_string(repository().join("tests/attack-cases.txt"))?;
    let mut section = String::new();
    let mut cases = Vec::new();
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("# ") {
            title.clone_into(&mut section);
            continue;
        }
        let (number, text) = line.split_once(' ').context("NUMBER TEXT")?;
        cases.push(Case {
            number: number.parse()?,
            section: section.clone(),
            text: text.to_owned(),
        });
    }
    ensure!(
        cases.iter().map(|case| case.number).eq(1..=167),
        "tests/attack-cases.txt lists 1 to 167 in order"
    );
    Ok(cases)
}

/// A mention of cases: `CASE-12 to CASE-15` in words, `case_47_`, `cases_12_to_15_` in a name.
const MENTION: &str =
    r"(?i)(?:\b|_)cases?[-_ ](\d{1,3}(?:(?:,? and |, |–|_and_|_to_| to )(?:case-)?\d{1,3})*)";

/// The numbers of a mention: `47`, `26, 27`, `28 and 29`, `12 to 15`, `109–117`, each with or
/// without its namespace.
fn numbers(text: &str, mention: &Regex) -> Vec<u16> {
    let mut all = Vec::new();
    for found in mention.captures_iter(text) {
        let list = found[1]
            .to_ascii_lowercase()
            .replace("case-", "")
            .replace('_', " ");
        let mut last = None;
        let mut is_range = false;
        for word in list.split([' ', ',']).filter(|word| !word.is_empty()) {
            for piece in word.split_inclusive(['–']) {
                let number = piece.trim_end_matches('–').parse::<u16>().ok();
                match (number, last, is_range) {
                    (Some(end), Some(start), true) => all.extend(start + 1..=end),
                    (Some(one), _, _) => all.push(one),
                    (None, _, _) => {}
                }
                is_range = piece == "to" || piece.ends_with('–');
                last = number.or(last);
            }
        }
    }
    all
}

/// Case numbers, and the tests that name them, as `path`, `name`.
fn found() -> Result<BTreeMap<u16, BTreeSet<(String, String)>>> {
    let root = repository();
    let mention = Regex::new(MENTION)?;
    let attribute = Regex::new(r"^\s*#\[(?:tokio::)?test\b")?;
    let function = Regex::new(r"^(\s*)(?:pub(?:\(crate\))? )?(?:async )?fn (\w+)")?;
    let web = Regex::new(r"^test\('([^']+)'")?;
    let is_wanted = |name: &str| {
        // Their tests show ids, and hold none.
        let is_about_ids = ["attack_cases.rs", "citations.rs"].contains(&name);
        (sources::is_rust(name) || name.contains(".test.")) && !is_about_ids
    };
    let mut held: BTreeMap<u16, BTreeSet<(String, String)>> = BTreeMap::new();
    for file in sources::files(FOLDERS, is_wanted)? {
        let path = file.strip_prefix(&root)?.to_string_lossy().into_owned();
        let mut is_next_a_test = false;
        let mut test: Option<String> = None;
        for line in fs::read_to_string(&file)?.lines() {
            if attribute.is_match(line) {
                is_next_a_test = true;
                test = None;
            } else if let Some(name) = function.captures(line) {
                // A function inside of a test belongs to it; one beside it ends it.
                if is_next_a_test || test.is_none() || name[1].len() <= 4 {
                    test = is_next_a_test.then(|| name[2].to_owned());
                }
                is_next_a_test = false;
            } else if let Some(name) = web.captures(line) {
                test = Some(name[1].to_owned());
            }
            let Some(name) = &test else { continue };
            if line.trim_start().starts_with("//!") {
                continue;
            }
            for number in numbers(line, &mention) {
                held.entry(number)
                    .or_default()
                    .insert((path.clone(), name.clone()));
            }
        }
    }
    Ok(held)
}

#[test]
fn every_attack_case_has_a_test_or_stands_on_the_list_of_those_without() -> Result<()> {
    let cases = cases()?;
    let held = found()?;
    let unknown: Vec<_> = held.iter().filter(|(number, _)| **number > 167).collect();
    ensure!(unknown.is_empty(), "there are no such cases: {unknown:?}");
    let without: Vec<u16> = cases
        .iter()
        .map(|case| case.number)
        .filter(|number| !held.contains_key(number))
        .collect();
    let lost: Vec<_> = without
        .iter()
        .filter(|number| !WITHOUT_A_TEST.contains(number))
        .collect();
    ensure!(
        lost.is_empty(),
        "cases that lost their test, or never had one: {lost:?}"
    );
    let won: Vec<_> = WITHOUT_A_TEST
        .iter()
        .filter(|number| !without.contains(number))
        .collect();
    ensure!(
        won.is_empty(),
        "these have a test now, take them off the list: {won:?}"
    );
    Ok(())
}

#[test]
fn the_page_of_attack_cases_says_what_is_true() -> Result<()> {
    let (cases, held) = (cases()?, found()?);
    let covered = cases
        .iter()
        .filter(|case| held.contains_key(&case.number))
        .count();
    let mut page = String::from(
        "# Attack cases of the authorization server\n\n\
         Made from the tests by `tests/it/attack_cases.rs`; do not edit. Numbers as in `tests/attack-cases.txt`, which says what the \
         letters mean: two authorization nodes, two MCP nodes, tenants acme and beta, Ann in both, Bob in beta; public client P, client \
         with a secret S, with a key K, with a metadata document M. \"page\" is an HTML 400 without `Location`, \"→X\" a redirect with \
         `error=X`.\n\n",
    );
    writeln!(
        page,
        "{covered} of {} cases have a test that names them.",
        cases.len()
    )?;
    let mut section = "";
    for case in &cases {
        if case.section != section {
            section = &case.section;
            write!(
                page,
                "\n## {section}\n\n| # | Case | Tests |\n|---|---|---|\n"
            )?;
        }
        let tests: Vec<String> = held
            .get(&case.number)
            .into_iter()
            .flatten()
            .map(|(path, name)| format!("[`{name}`](../{path})"))
            .collect();
        let tests = if tests.is_empty() {
            "**none yet**".to_owned()
        } else {
            tests.join("<br>")
        };
        writeln!(
            page,
            "| CASE-{} | {} | {tests} |",
            case.number,
            case.text.replace('|', "\\|")
        )?;
    }
    let path = repository().join("docs/attack-cases.md");
    if std::env::var_os("PORTOLAN_TEST_UPDATE").is_some() {
        fs::write(&path, &page)?;
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    ensure!(
        written == page,
        "docs/attack-cases.md is out of date: PORTOLAN_TEST_UPDATE=1 cargo nextest run -p portolan-tests attack_cases"
    );
    Ok(())
}

#[test]
fn numbers_are_read_from_names_and_sentences() -> Result<()> {
    let mention = Regex::new(MENTION)?;
    for (text, expected) in [
        ("fn case_47_one_wins()", vec![47]),
        ("fn cases_12_to_15_pkce()", vec![12, 13, 14, 15]),
        ("fn case_28_and_29_other_sites()", vec![28, 29]),
        (
            "// CASE-109 to CASE-111, CASE-115: each",
            vec![109, 110, 111, 115],
        ),
        ("// CASE-28 and CASE-29", vec![28, 29]),
        ("\"CASE-16\"", vec![16]),
        ("in any case", vec![]),
    ] {
        assert_eq!(numbers(text, &mention), expected, "{text}");
    }
    Ok(())
}
