//! Where each row of the test plan is held: `docs/test-plan.md` is made of `tests/test-plan.txt`, in which a test, a scene of `make bench`, a make
//! target, a fuzz target or a mutant may stand only if it is there. `PORTOLAN_TEST_UPDATE=1 cargo nextest run -p portolan-tests test_plan`
//! writes the page anew.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::PathBuf,
};

use anyhow::{Context, Result, bail, ensure};
use portolan_tests::{sources, stack::repository};
use regex::Regex;

const LIST: &str = "tests/test-plan.txt";
const PAGE: &str = "docs/test-plan.md";
/// The page, beside [`PAGE`], that defines the rows. An id in a first cell would define it once more.
const DEFINED: &str = "design/testing.md";

/// The rows that the plan has under one letter or word, and how many.
const NUMBERED: &[(&str, usize)] = &[
    ("TEST-C", 15),
    ("TEST-F", 14),
    ("TEST-L", 14),
    ("TEST-B", 14),
    ("TEST-SSRF-", 13),
    ("TEST-FUZZ-", 13),
    ("TEST-S", 14),
    ("TEST-MUTANT-", 27),
    ("TEST-GATE-", 5),
];
/// Its layers, and two rows that have no number.
const NAMED: &[&str] = &[
    "TEST-U",
    "TEST-T",
    "TEST-M",
    "TEST-D",
    "TEST-I",
    "TEST-N",
    "TEST-X",
    "TEST-L",
    "TEST-B",
    "TEST-F",
    "TEST-S",
    "TEST-P",
    "TEST-TIME",
    "TEST-CHECKER",
];

/// A holder of a row.
#[derive(Debug, PartialEq, Eq)]
enum Holder {
    Test(String),
    Scene(String),
    Make(String),
    Fuzz(String),
    Mutant(String),
    /// A file, and what has to stand in it.
    File(String, String),
}

#[derive(Debug, Default)]
struct Row {
    section: String,
    id: String,
    title: String,
    gate: String,
    holders: Vec<Holder>,
    /// The gate that is held, where it is another one.
    ours: String,
    /// The missing part.
    open: String,
}

impl Row {
    fn state(&self) -> &'static str {
        match (self.holders.is_empty(), self.open.is_empty()) {
            (false, true) => "held",
            (false, false) => "in part",
            (true, _) => "open",
        }
    }
}

fn read(list: &str) -> Result<Vec<Row>> {
    let (mut rows, mut section): (Vec<Row>, String) = (Vec::new(), String::new());
    for line in list.lines() {
        if line.is_empty() || line.starts_with("//") {
            continue;
        }
        if let Some(title) = line.strip_prefix("# ") {
            title.clone_into(&mut section);
            continue;
        }
        let Some(said) = line.strip_prefix("  ") else {
            let cells: Vec<&str> = line.split(" | ").collect();
            let [id, title, gate] = cells.as_slice() else {
                bail!("{line:?} is no row");
            };
            rows.push(Row {
                section: section.clone(),
                id: (*id).to_owned(),
                title: (*title).to_owned(),
                gate: (*gate).to_owned(),
                ..Row::default()
            });
            continue;
        };
        let row = rows.last_mut().context("a row before its holders")?;
        let (kind, what) = said.split_once(' ').context("KIND WHAT")?;
        let name = what.to_owned();
        match kind {
            "test" => row.holders.push(Holder::Test(name)),
            "scene" => row.holders.push(Holder::Scene(name)),
            "make" => row.holders.push(Holder::Make(name)),
            "fuzz" => row.holders.push(Holder::Fuzz(name)),
            "mutant" => row.holders.push(Holder::Mutant(name)),
            "file" => {
                let (path, text) = what.split_once(" says ").context("PATH says TEXT")?;
                let holder = Holder::File(path.to_owned(), text.to_owned());
                row.holders.push(holder);
            }
            "ours" => row.ours = name,
            "open" => row.open = name,
            _ => bail!("{line:?} is nothing that a row has"),
        }
    }
    Ok(rows)
}

/// Everything that may be named.
struct There {
    tests: BTreeMap<String, PathBuf>,
    scenes: BTreeSet<String>,
    targets: BTreeSet<String>,
    fuzz: BTreeSet<String>,
    /// Where each mutant stands.
    mutants: BTreeMap<String, &'static str>,
}

const SCRIPTS: &str = "crates/cluster/tests/it/mutants.rs";
const READERS: &str = "scripts/mutants.sh";

impl There {
    fn look() -> Result<Self> {
        let text =
            |path: &str| fs::read_to_string(repository().join(path)).context(path.to_owned());
        let all = |pattern: &str, text: &str| -> Result<BTreeSet<String>> {
            let pattern = Regex::new(pattern)?;
            let found = pattern.captures_iter(text);
            Ok(found.map(|found| found[1].to_owned()).collect())
        };
        let bench = text("tests/bench/src/main.rs")?;
        let (_, scenes) = bench.split_once("enum SceneName {").context("scenes")?;
        let (scenes, _) = scenes.split_once('}').context("the end of the scenes")?;
        let scenes = all(r"(?m)^\s*([A-Z][a-z]+),$", scenes)?;
        let fuzz = all(
            r#"(?m)^path = "targets/(\w+)\.rs"$"#,
            &text("fuzz/Cargo.toml")?,
        )?;
        let fuzz = fuzz.into_iter().filter(|target| {
            let fuzz = repository().join("fuzz");
            fuzz.join(format!("targets/{target}.rs")).is_file()
                && fuzz.join(format!("corpus/{target}")).is_dir()
        });
        let scripts = Regex::new(r#"(?m)^    "(\w+)": "([^"]+)",$"#)?;
        let mutants = text(SCRIPTS)?;
        let mutants = scripts
            .captures_iter(&mutants)
            .map(|found| (format!("{}: {}", &found[1], &found[2]), SCRIPTS));
        let readers = all(r#"(?m)^mutant "([^"]+)" "#, &text(READERS)?)?;
        let readers = readers.into_iter().map(|mutant| (mutant, READERS));
        Ok(Self {
            tests: sources::by_nextest()?,
            scenes: scenes.iter().map(|scene| scene.to_lowercase()).collect(),
            targets: all(r"(?m)^([a-z-]+):.*## ", &text("Makefile")?)?,
            fuzz: fuzz.collect(),
            mutants: mutants.chain(readers).collect(),
        })
    }

    fn has(&self, holder: &Holder) -> bool {
        match holder {
            Holder::Test(name) => self.tests.contains_key(name),
            Holder::Scene(name) => self.scenes.contains(name),
            Holder::Make(name) => self.targets.contains(name),
            Holder::Fuzz(name) => self.fuzz.contains(name),
            Holder::Mutant(name) => self.mutants.contains_key(name),
            Holder::File(path, text) => fs::read_to_string(repository().join(path))
                .is_ok_and(|written| written.contains(text.as_str())),
        }
    }

    /// How the page names it.
    fn link(&self, holder: &Holder) -> String {
        match holder {
            Holder::Test(name) => {
                let path = self.tests.get(name).map(|path| path.display().to_string());
                format!("[`{name}`](../{})", path.unwrap_or_default())
            }
            Holder::Scene(name) => format!("`make bench`, scene `{name}`"),
            Holder::Make(name) => format!("`make {name}`"),
            Holder::Fuzz(name) => format!("fuzz target [`{name}`](../fuzz/targets/{name}.rs)"),
            Holder::Mutant(name) => {
                let path = self.mutants.get(name).copied().unwrap_or_default();
                format!("[{path}](../{path})")
            }
            Holder::File(path, text) => format!("[{path}](../{path}): `{text}`"),
        }
    }
}

/// The faults of the list.
fn faults(rows: &[Row], there: &There) -> Vec<String> {
    let mut faults = Vec::new();
    let mut ids = BTreeSet::new();
    for row in rows {
        if !ids.insert(row.id.clone()) {
            faults.push(format!("{} stands twice", row.id));
        }
        if row.holders.is_empty() && row.open.is_empty() {
            faults.push(format!("{} is neither held nor open", row.id));
        }
        for holder in row.holders.iter().filter(|holder| !there.has(holder)) {
            faults.push(format!("{}: there is no {holder:?}", row.id));
        }
    }
    let numbered = NUMBERED
        .iter()
        .flat_map(|(word, count)| (1..=*count).map(move |number| format!("{word}{number}")));
    let named = NAMED.iter().map(|name| (*name).to_owned());
    let expected: BTreeSet<String> = numbered.chain(named).collect();
    for id in expected.difference(&ids) {
        faults.push(format!("{id} of the plan has no entry"));
    }
    // There may be more mutants than the plan requires.
    let strange = ids.difference(&expected);
    for id in strange.filter(|id| !id.starts_with("TEST-MUTANT-")) {
        faults.push(format!("{id} is no row of the plan"));
    }
    for mutant in there.mutants.keys() {
        let holder = Holder::Mutant(mutant.clone());
        if !rows.iter().any(|row| row.holders.contains(&holder)) {
            faults.push(format!("the mutant {mutant:?} has no entry"));
        }
    }
    faults
}

fn page(rows: &[Row], there: &There) -> Result<String> {
    let count = |state: &str| rows.iter().filter(|row| row.state() == state).count();
    let mut page = format!(
        "# The test plan, and where each row is held\n\n\
         Made of `{LIST}` by `tests/it/test_plan.rs`, which fails if a row has no entry or something that is named here is not there; never edited.\n\
         Tests are named as nextest names them. *Ours* is the gate that is held where it is not the plan's, and why; *open* is what is missing.\n\n\
         Of {} rows {} are held, {} in part, {} are open.\n",
        rows.len(),
        count("held"),
        count("in part"),
        count("open")
    );
    let mut section = "";
    for row in rows {
        if row.section != section {
            section = &row.section;
            write!(
                page,
                "\n## {section}\n\n| Row | What | The plan's gate | State | Held by | Ours, and open |\n|---|---|---|---|---|---|\n"
            )?;
        }
        let holders: Vec<String> = row.holders.iter().map(|it| there.link(it)).collect();
        let open = if row.open.is_empty() {
            String::new()
        } else {
            format!("**Open:** {}", row.open)
        };
        let both: Vec<&str> = [row.ours.as_str(), open.as_str()]
            .into_iter()
            .filter(|text| !text.is_empty())
            .collect();
        writeln!(
            page,
            "| [{}]({DEFINED}) | {} | {} | {} | {} | {} |",
            row.id,
            row.title,
            row.gate,
            row.state(),
            holders.join("<br>"),
            both.join("<br>")
        )?;
    }
    Ok(page)
}

fn rows() -> Result<Vec<Row>> {
    read(&fs::read_to_string(repository().join(LIST))?)
}

#[test]
fn every_row_of_the_plan_is_held_by_what_is_there_or_stands_as_open() -> Result<()> {
    let faults = faults(&rows()?, &There::look()?);
    ensure!(faults.is_empty(), "{LIST}: {faults:#?}");
    Ok(())
}

#[test]
fn the_page_of_the_test_plan_says_what_is_true() -> Result<()> {
    let page = page(&rows()?, &There::look()?)?;
    let path = repository().join(PAGE);
    if std::env::var_os("PORTOLAN_TEST_UPDATE").is_some() {
        fs::write(&path, &page)?;
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    ensure!(
        written == page,
        "{PAGE} is out of date: PORTOLAN_TEST_UPDATE=1 cargo nextest run -p portolan-tests test_plan"
    );
    Ok(())
}

#[test]
fn what_is_not_there_is_missed_and_a_row_without_an_entry_too() -> Result<()> {
    let there = There::look()?;
    let list = "# Some\n\
        TEST-C1 | a | 0\n  \
        test portolan-tests::it test_plan::what_is_not_there_is_missed_and_a_row_without_an_entry_too\n  \
        scene streams\n  make bench\n  fuzz events\n  mutant attach: the mark is ignored\n  \
        file Makefile says PHONY\n\
        TEST-C2 | b | 0\n  test portolan-tests::it test_plan::nobody_wrote_this\n\
        TEST-C3 | c | 0\n  scene nothing\n  make no-such\n  fuzz nothing\n  mutant nothing\n  file Makefile says no such words\n\
        TEST-C4 | d | 0\n\
        TEST-C4 | e | 0\n  open all of it\n\
        TEST-C99 | f | 0\n  open there is none\n";
    let rows = read(list)?;
    let found = faults(&rows, &there);
    let about = |id: &str| {
        let beginning = format!("{id}: there is no");
        found
            .iter()
            .filter(|fault| fault.starts_with(&beginning))
            .count()
    };
    assert_eq!(
        (about("TEST-C1"), about("TEST-C2"), about("TEST-C3")),
        (0, 1, 5),
        "{found:#?}"
    );
    for fault in [
        "TEST-C4 is neither held nor open",
        "TEST-C4 stands twice",
        "TEST-C99 is no row of the plan",
        "TEST-C5 of the plan has no entry",
        "TEST-MUTANT-27 of the plan has no entry",
        "the mutant \"attach: the generation is not raised\" has no entry",
    ] {
        assert!(found.iter().any(|one| one == fault), "{fault}: {found:#?}");
    }
    let states: Vec<&str> = rows.iter().map(Row::state).collect();
    assert_eq!(states, ["held", "held", "held", "open", "open", "open"]);
    let row =
        "| [TEST-C1](design/testing.md) | a | 0 | held | [`portolan-tests::it test_plan::what_is";
    assert!(page(&rows, &there)?.contains(row));
    assert!(read("  test before any row").is_err() && read("no row").is_err());
    Ok(())
}
