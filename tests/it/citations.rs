//! Citations lead somewhere. Rules, cases, findings and client quirks have ids with a namespace
//! (AUTH-K9, MCP-T-36, STREAM-17.1). Each id is defined once in `docs/`, and each cited id is defined.
//!
//! An id is defined where it begins a heading, the first cell of a table, or a bold list item of a page
//! that its namespace has ([`HOMES`]). A first cell may define several, separated by commas. Every other
//! place cites it.
//!
//! Released migrations cannot change, and corpora and snapshots are data: they are left out.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    process::Command,
};

use anyhow::{Context, Result, ensure};
use portolan_tests::stack::repository;
use regex::Regex;

/// Ids as they are written. Names of headers (`MCP-Protocol-Version`) and networks (TEST-NET-1) are none.
const ID: &str = concat!(
    r"HOOK-\d+|AUTH-(?:[A-Z]\d+|\d+(?:\.\d+)*)|STREAM-(?:\d+(?:\.\d+)*(?:-r\d+)?|[A-Z])",
    r"|MCP-[A-Z]{1,3}-\d+[A-Z]?|TEST-(?:(?:SSRF|FUZZ|MUTANT|GATE)-\d+|GATE|TIME|CHECKER|[A-Z]\d*)",
    r"|CLIENT-\d+|API-\d+|METER-\d+|CAPTURE-\d+|PLAY-\d+|CONF-\d+|OWN-\d+|CASE-\d+|REVIEW-(?:S-\d+|[A-Z]\d+|UX-[A-Z]+-\d+|UX-\d+[a-z]?)"
);

/// Namespaces, and the pages or folders that define their ids. Tables of other pages cite them.
const HOMES: &[(&str, &[&str])] = &[
    ("AUTH-", &["docs/design/"]),
    ("STREAM-", &["docs/design/"]),
    ("HOOK-", &["docs/design/"]),
    ("TEST-", &["docs/design/"]),
    ("CLIENT-", &["docs/design/"]),
    ("API-", &["docs/design/"]),
    ("METER-", &["docs/design/"]),
    ("CAPTURE-", &["docs/design/"]),
    ("PLAY-", &["docs/design/"]),
    ("CONF-", &["docs/design/"]),
    ("OWN-", &["docs/design/"]),
    (
        "MCP-",
        &[
            "docs/revisions.md",
            "docs/authorization-rules.md",
            "docs/translation-rules.md",
        ],
    ),
    ("CASE-", &["docs/attack-cases.md"]),
    ("REVIEW-", &["docs/reviews.md", "docs/wire-questions.md"]),
];

const ADVICE: &str = "write the id with its namespace: MCP- (docs/revisions.md, \
    docs/authorization-rules.md, docs/translation-rules.md), AUTH-, STREAM-, TEST-, CLIENT-, API-, \
    METER-, CAPTURE-, PLAY-, CONF-, OWN-, HOOK- (docs/design/), CASE- (docs/attack-cases.md), REVIEW- (docs/reviews.md, \
    docs/wire-questions.md)";

/// Endings of files that people write and read.
const TEXTS: &[&str] = &[
    "rs", "md", "ts", "tsx", "js", "mjs", "css", "html", "lua", "sh", "py", "toml", "yml", "yaml",
    "tsv", "txt", "conf",
];

struct Patterns {
    cited: Regex,
    /// A heading, a first cell or a bold list item that begins with ids.
    defining: Regex,
    decision: Regex,
    link: Regex,
    document: Regex,
    section: Regex,
    /// Words before a section sign that make it a section of a standard.
    standard: Regex,
    /// `T-36`, `S-5`.
    hyphened: Regex,
    /// `(K9)`, `(F5, F6)`.
    in_brackets: Regex,
    /// A comment that begins with `K9:` or `K9.`
    at_first: Regex,
    numbered: Regex,
    code: Regex,
    /// The beginnings of a line of a comment.
    comment: Regex,
}

impl Patterns {
    fn new() -> Result<Self> {
        Ok(Self {
            cited: Regex::new(&format!(r"\b(?:{ID})\b"))?,
            defining: Regex::new(&format!(
                r"^(?:#{{1,6}} |\| ?|\s*[-*] \*\*)((?:{ID})(?:, (?:{ID}))*)(?:[ :|*]|\.?$|\. )"
            ))?,
            decision: Regex::new(r"\bADR (\d{1,4})\b")?,
            link: Regex::new(r"\]\(([^)\s]+)\)")?,
            document: Regex::new(r"[\w./-]*\w\.md\b")?,
            section: Regex::new(r"§[\w.]*")?,
            standard: Regex::new(
                r"(?x)(?:RFC\ \d+|OpenID\ Connect|\bCore|\bDiscovery|OpenAPI\ [\d.]+|\bHTML
                |Trace\ Context|[Ll]evel\ \d|CTAP\ \d|draft-[\w-]+|OAuth\ 2\.1|NIST\ [\w-]+
                |FIPS\ [\w-]+|JSON\ Schema|§[\w.]+)[,;]?(?:\ and|\ to|–)?\ ?\(?$",
            )?,
            hyphened: Regex::new(r"(?:^|[^\w/.$&<>-])([A-Z]{1,3}-\d+[A-Z]?)(?:[^\w-]|$)")?,
            in_brackets: Regex::new(r"\(([A-Z]\d{1,2}(?:(?:, |–| to | and )[A-Z]\d{1,2})*)[);,:]")?,
            at_first: Regex::new(r"^([A-Z]\d{1,2})[:.](?: |$)")?,
            numbered: Regex::new(
                r"\b(?:[Cc]ases? \d{1,3}\b|[Bb]ugs? \d{1,2}\b|[Ff]rictions? \d{1,2}\b)",
            )?,
            code: Regex::new(r"`[^`]*`")?,
            comment: Regex::new(r"^\s*(?://[/!]?|--|#|\*|/\*\*?)(?:\s|$)")?,
        })
    }
}

/// Where each id is defined, as `path:line`, and what else can be cited.
#[derive(Default)]
struct Known {
    ids: BTreeMap<String, Vec<String>>,
    /// Every file, by its path in the repository.
    files: BTreeSet<String>,
}

impl Known {
    fn defines(&self, id: &str) -> bool {
        self.ids.contains_key(id)
    }

    /// Whether some namespace has an id of this name.
    fn has_bare(&self, id: &str) -> bool {
        ["MCP", "AUTH", "TEST", "REVIEW"]
            .iter()
            .any(|space| self.defines(&format!("{space}-{id}")))
    }

    fn has_decision(&self, number: &str) -> bool {
        let beginning = format!("docs/adr/{number:0>4}-");
        self.files.iter().any(|path| path.starts_with(&beginning))
    }

    /// Whether a document is there: from the top, from the folder of `path`, or under a part of its own path.
    fn has_document(&self, path: &str, name: &str) -> bool {
        let end = format!("/{}", name.trim_start_matches(['.', '/']));
        self.files.contains(name)
            || resolved(path, name).is_some_and(|at| self.files.contains(&at))
            || self.files.iter().any(|file| file.ends_with(&end))
    }
}

/// A path that a file names, seen from that file's folder. `None` outside of the repository.
fn resolved(path: &str, named: &str) -> Option<String> {
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in named.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Lines outside of code blocks, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    text.lines().enumerate().filter_map(move |(at, line)| {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
            return None;
        }
        (!is_code).then_some((at + 1, line))
    })
}

/// Ids that a page defines.
fn define(known: &mut Known, patterns: &Patterns, path: &str, text: &str) {
    for (at, line) in prose(text) {
        let Some(found) = patterns.defining.captures(line) else {
            continue;
        };
        let is_home = |id: &str| {
            let homes = HOMES.iter().find(|(space, _)| id.starts_with(space));
            homes.is_some_and(|(_, homes)| homes.iter().any(|home| path.starts_with(home)))
        };
        for id in found[1].split(", ").filter(|id| is_home(id)) {
            let places = known.ids.entry(id.to_owned()).or_default();
            places.push(format!("{path}:{at}"));
        }
    }
}

/// Lists the faults of a file's citations.
fn faults(known: &Known, patterns: &Patterns, path: &str, text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let is_page = has_ending(path, "md");
    let mut is_code = false;
    let mut before = String::new();
    for (at, line) in text.lines().enumerate() {
        let mut fault = |what: String| faults.push(format!("{path}:{}: {what}", at + 1));
        for found in patterns.cited.find_iter(line) {
            let id = found.as_str();
            if !known.defines(id) {
                fault(format!(
                    "{id} is not defined; define it in docs/, or cite another id"
                ));
            }
        }
        is_code ^= is_page && line.trim_start().starts_with("```");
        let begun = patterns.comment.find(line);
        let said = match (is_page, begun) {
            (true, _) => (!is_code).then_some(line),
            (false, Some(begun)) => Some(&line[begun.end()..]),
            // A comment behind code. Strings may hold one too, but not with a blank on both sides.
            (false, None) => line.split_once(" // ").map(|(_, said)| said),
        };
        let Some(said) = said else {
            before.clear();
            continue;
        };
        for found in patterns.decision.captures_iter(said) {
            if !known.has_decision(&found[1]) {
                fault(format!("docs/adr/ has no decision {}", &found[1]));
            }
        }
        documents(known, patterns, path, said, is_page, &mut fault);
        let whole = format!("{before} {}", said.trim());
        let begins = before.len() + 1;
        let words = patterns.code.replace_all(said.trim(), "``");
        for found in patterns.section.find_iter(&whole) {
            let lead = whole[..found.start()].trim_start();
            if found.start() >= begins && !patterns.standard.is_match(lead) {
                fault(format!(
                    "{} names no standard; cite an id (STREAM-17.1) or a standard (RFC 9112 §7.1)",
                    found.as_str()
                ));
            }
        }
        for id in bare(known, patterns, &words, is_page) {
            fault(format!("{id} has no namespace; {ADVICE}"));
        }
        said.trim().clone_into(&mut before);
    }
    faults
}

/// Documents that a line names, and links of pages.
fn documents(
    known: &Known,
    patterns: &Patterns,
    path: &str,
    said: &str,
    is_page: bool,
    fault: &mut impl FnMut(String),
) {
    for found in patterns.document.find_iter(said) {
        let name = found.as_str();
        let is_address = said[..found.start()].ends_with([':', '@']) || name.starts_with("//");
        if !is_address && !known.has_document(path, name) {
            fault(format!(
                "{name} is not in the repository; cite a page of docs/ or an id"
            ));
        }
    }
    let links = patterns.link.captures_iter(said).filter(|_| is_page);
    for link in links {
        let target = link[1].split('#').next().unwrap_or_default();
        if target.is_empty() || target.contains(':') || target.starts_with('/') {
            continue;
        }
        let there = resolved(path, target).is_some_and(|at| repository().join(at).exists());
        if !there {
            fault(format!("the link to {target} leads nowhere"));
        }
    }
}

/// Ids without a namespace, as far as they differ from other words.
fn bare(known: &Known, patterns: &Patterns, words: &str, is_page: bool) -> Vec<String> {
    let mut found: Vec<String> = patterns
        .hyphened
        .captures_iter(words)
        .map(|id| id[1].to_owned())
        .filter(|id| known.has_bare(id))
        .collect();
    // R1 to R5 are revisions of the protocol.
    let is_rule = |id: &str| known.has_bare(id) && !matches!(id, "R1" | "R2" | "R3" | "R4" | "R5");
    let short = patterns.in_brackets.captures_iter(words);
    let first = patterns.at_first.captures_iter(words);
    let short = short.chain(first.filter(|_| !is_page));
    let ids = short.flat_map(|list| {
        let ids = list[1].split([',', '–', ' ']);
        ids.map(str::to_owned).collect::<Vec<_>>()
    });
    found.extend(ids.filter(|id| is_rule(id)));
    found.extend(
        patterns
            .numbered
            .find_iter(words)
            .map(|it| it.as_str().to_owned()),
    );
    found
}

fn has_ending(path: &str, ending: &str) -> bool {
    Path::new(path).extension().is_some_and(|end| end == ending)
}

/// Whether citations of this file are read.
fn is_read(path: &str) -> bool {
    let is_data = ["fuzz/corpus/", "migrations/", ".sqlx/", "web/src/api/"]
        .iter()
        .any(|folder| path.starts_with(folder))
        || ["/snapshots/", "/corpus/", "/schema/"]
            .iter()
            .any(|folder| path.contains(folder));
    let name = path.rsplit('/').next().unwrap_or_default();
    let is_text = TEXTS.iter().any(|ending| has_ending(path, ending))
        || name == "Makefile"
        || name.starts_with("Dockerfile");
    // The first shows what is wrong, the second makes ids of parts, the third has numbers without a namespace.
    let is_about_ids = [
        "tests/it/citations.rs",
        "tests/it/test_plan.rs",
        "tests/attack-cases.txt",
    ]
    .contains(&path);
    is_text && !is_about_ids && (!is_data || path == "migrations/README.md")
}

/// Files of the repository: what is committed, and what is new and not ignored.
fn files() -> Result<Vec<String>> {
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(repository())
        .output()
        .context("git lists the files")?;
    ensure!(listed.status.success(), "git ls-files: {listed:?}");
    let listed = String::from_utf8(listed.stdout)?;
    let is_file = |path: &&str| {
        let there = fs::symlink_metadata(repository().join(path));
        there.is_ok_and(|there| there.is_file())
    };
    Ok(listed.lines().filter(is_file).map(str::to_owned).collect())
}

fn known(patterns: &Patterns, files: &[String]) -> Result<Known> {
    let mut known = Known {
        files: files.iter().cloned().collect(),
        ..Known::default()
    };
    let pages = files
        .iter()
        .filter(|path| path.starts_with("docs/") && has_ending(path, "md"));
    for path in pages {
        let text = fs::read_to_string(repository().join(path))?;
        define(&mut known, patterns, path, &text);
    }
    Ok(known)
}

#[test]
fn ids_are_defined_once() -> Result<()> {
    let known = known(&Patterns::new()?, &files()?)?;
    let twice: Vec<String> = known
        .ids
        .iter()
        .filter(|(_, places)| places.len() > 1)
        .map(|(id, places)| {
            format!(
                "{}: {id} is defined at {} too; define it once and cite it elsewhere",
                places[0],
                places[1..].join(", ")
            )
        })
        .collect();
    ensure!(twice.is_empty(), "{}", twice.join("\n"));
    ensure!(known.ids.len() > 500, "the rules have ids");
    Ok(())
}

/// Citations that lead nowhere, as `path:line: why`.
pub(crate) fn unresolved() -> Result<Vec<String>> {
    let patterns = Patterns::new()?;
    let files = files()?;
    let known = known(&patterns, &files)?;
    let mut all = Vec::new();
    for path in files.iter().filter(|path| is_read(path)) {
        let text = fs::read_to_string(repository().join(path))?;
        all.extend(faults(&known, &patterns, path, &text));
    }
    Ok(all)
}

#[test]
fn citations_lead_to_what_is_in_the_repository() -> Result<()> {
    let all = unresolved()?;
    ensure!(
        all.is_empty(),
        "{} citations lead nowhere:\n{}",
        all.len(),
        all.join("\n")
    );
    Ok(())
}

#[test]
fn what_leads_nowhere_is_found_and_nothing_else() -> Result<()> {
    let patterns = Patterns::new()?;
    let mut known = Known::default();
    let page = "# Rules\n\n## AUTH-4.3 Path\n\n| AUTH-K9 | a window |\n| MCP-T-35 | cited |\n\
        - **TEST-F7** Redis is full\n\n```\n| AUTH-K10 | only shown |\n```\nAUTH-K11 is cited.\n\
        ### STREAM-17.1. Redis is down\n";
    define(&mut known, &patterns, "docs/design/a.md", page);
    for (path, row) in [
        ("docs/revisions.md", "| MCP-T-36, MCP-T-37 | ids |"),
        ("docs/reviews.md", "| REVIEW-S-1 | one |"),
        ("docs/attack-cases.md", "| CASE-1 | one |"),
        ("docs/chaos.md", "| TEST-F8 | cited |"),
    ] {
        define(&mut known, &patterns, path, row);
    }
    let ids: Vec<&str> = known.ids.keys().map(String::as_str).collect();
    assert_eq!(
        ids,
        [
            "AUTH-4.3",
            "AUTH-K9",
            "CASE-1",
            "MCP-T-36",
            "MCP-T-37",
            "REVIEW-S-1",
            "STREAM-17.1",
            "TEST-F7"
        ]
    );
    known.files = ["docs/a.md", "docs/adr/0033-x.md", "src/b.rs"]
        .map(str::to_owned)
        .into();
    let count = |path: &str, text: &str| faults(&known, &patterns, path, text).len();
    for good in [
        "/// AUTH-K9, AUTH-4.3. See STREAM-17.1, ADR 33 and `docs/a.md`.",
        "// RFC 9112 §7.1, OpenID Connect Core §3.1 and §5; RFC 9110,\n// §8.4 is the same.",
        "let x = \"K9\"; // MCP-Protocol-Version, TEST-NET-1, SHA-256, R1",
        "let x = \"see https://a.example/T-36 (K9)\";",
        "/// `T-36` in code",
        "// https://a.example/other.md",
    ] {
        assert_eq!(count("src/b.rs", good), 0, "{good}");
    }
    for (bad, expected) in [
        ("/// AUTH-K10", 1),
        ("let x = \"MCP-T-99: no\";", 1),
        ("/// Why (§17.1).", 1),
        ("// T-36, and S-1", 2),
        ("/// K9: a window", 1),
        ("code(); // of (K9, F7)", 2),
        ("/// case 1", 1),
        ("// Bug 20", 1),
        ("/// ADR 34", 1),
        ("// `auth.md`", 1),
        ("    # testing.md T-37", 2),
    ] {
        assert_eq!(count("src/b.rs", bad), expected, "{bad}");
    }
    let page = "[a](a.md) [b](../docs/a.md#x) [c](https://a.example/) [d](nothing/at/all)";
    let found = faults(&known, &patterns, "docs/b.md", page);
    assert!(
        found
            .iter()
            .any(|it| it.starts_with("docs/b.md:1: the link to nothing")),
        "{found:?}"
    );
    Ok(())
}
