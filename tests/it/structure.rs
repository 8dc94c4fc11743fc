//! The measures of the structure: import circles, operations of the store, names with many meanings,
//! and refused prose. `make structure` prints them.
//!
//! `tests/structure.tsv` has a ceiling and a goal for each measure. A figure above its ceiling fails; the
//! ceilings only fall: `PORTOLAN_TEST_UPDATE=1` writes the lower figures and never a higher one.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    fmt::Write as _,
    fs,
    path::Path,
};

use anyhow::{Context, Result, ensure};
use portolan_tests::{
    modules::{self, Graph},
    prose,
    stack::repository,
};
use regex::Regex;

const CEILINGS: &str = "tests/structure.tsv";
/// A type name may be defined in this many places.
const MEANINGS: usize = 3;
/// Figures that the message of a failure lists.
const SHOWN: usize = 30;

/// One figure, and where the things that it counts stand.
struct Figure {
    measure: &'static str,
    subject: String,
    /// Nothing where the figure is printed alone: it has no ceiling.
    goal: Option<usize>,
    value: usize,
    places: Vec<String>,
}

#[test]
fn figures_of_the_structure_stay_below_their_ceilings() -> Result<()> {
    let figures = figures()?;
    let ceilings = ceilings()?;
    let mut above = String::new();
    let mut lines = vec!["# measure\tsubject\tceiling\tgoal".to_owned()];
    for figure in &figures {
        let Figure {
            measure,
            subject,
            goal,
            value,
            ..
        } = figure;
        let Some(goal) = goal else {
            println!("{measure:<44} {subject:<22} {value:>7}");
            continue;
        };
        let ceiling = ceilings.get(&((*measure).to_owned(), subject.clone()));
        let highest = ceiling.map_or(*goal, |ceiling| *ceiling.max(goal));
        println!("{measure:<44} {subject:<22} {value:>7}  at most {highest}, goal {goal}");
        if *value > highest {
            writeln!(above, "{measure}, {subject}: {value}, at most {highest}")?;
            for place in figure.places.iter().take(SHOWN) {
                writeln!(above, "    {place}")?;
            }
        }
        let lowered = ceiling.map_or(*value, |ceiling| (*ceiling).min(*value));
        lines.push(format!(
            "{measure}\t{subject}\t{}\t{goal}",
            lowered.max(*goal)
        ));
    }
    if env::var_os("PORTOLAN_TEST_UPDATE").is_some() {
        fs::write(repository().join(CEILINGS), lines.join("\n") + "\n")?;
    }
    ensure!(
        above.is_empty(),
        "above the ceilings of {CEILINGS}:\n{above}"
    );
    Ok(())
}

/// The ceilings by measure and subject.
fn ceilings() -> Result<BTreeMap<(String, String), usize>> {
    let text = fs::read_to_string(repository().join(CEILINGS))?;
    text.lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .map(|line| {
            let mut columns = line.split('\t').map(str::to_owned);
            let mut next = || columns.next().with_context(|| line.to_owned());
            Ok(((next()?, next()?), next()?.parse()?))
        })
        .collect()
}

fn figures() -> Result<Vec<Figure>> {
    let mut found = Vec::new();
    let mut types: BTreeMap<String, usize> = BTreeMap::new();
    let mut lines = 0;
    for folder in crates()? {
        let graph = modules::graph(&repository().join(&folder))?;
        lines += graph.lines;
        for name in &graph.types {
            *types.entry(name.clone()).or_default() += 1;
        }
        found.extend(circles(&folder, &graph));
    }
    found.push(Figure {
        measure: "production lines of Rust",
        subject: "all".to_owned(),
        goal: None,
        value: lines,
        places: Vec::new(),
    });
    let many: Vec<String> = types
        .into_iter()
        .filter(|(_, count)| *count > MEANINGS)
        .map(|(name, count)| format!("{name}: {count}"))
        .collect();
    found.push(Figure {
        measure: "type names with more than three meanings",
        subject: "all".to_owned(),
        goal: Some(0),
        value: many.len(),
        places: many,
    });
    found.push(settings_in_code()?);
    found.push(operations()?);
    found.push(scripts()?);
    found.extend(refused_prose()?);
    Ok(found)
}

fn crates() -> Result<Vec<String>> {
    let mut folders = Vec::new();
    for top in ["crates", "services"] {
        for entry in fs::read_dir(repository().join(top))? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            let folder = format!("{top}/{name}");
            if repository().join(&folder).join("Cargo.toml").is_file() {
                folders.push(folder);
            }
        }
    }
    folders.sort();
    Ok(folders)
}

fn circles(folder: &str, graph: &Graph) -> Vec<Figure> {
    let circle = graph.circles().into_iter().next().unwrap_or_default();
    let (_, arrows) = graph.between_modules();
    let figure = |measure, goal, value, places| Figure {
        measure,
        subject: folder.to_owned(),
        goal,
        value,
        places,
    };
    vec![
        figure(
            "files in the largest import circle",
            Some(4),
            circle.len(),
            circle.iter().map(|&file| file.to_owned()).collect(),
        ),
        figure(
            "imports between modules that close a circle",
            Some(0),
            arrows.len(),
            arrows
                .iter()
                .map(|(from, to)| format!("{from} -> {to}"))
                .collect(),
        ),
        figure("production lines of Rust", None, graph.lines, Vec::new()),
    ]
}

/// Public fields of structs of settings or bounds with a default that is written as a value in
/// `impl Default`: operators cannot set them, and no constant gives the reason. `config!` declares
/// fields that they can set, and a field of a constant is no setting.
fn settings_in_code() -> Result<Figure> {
    let name = "(?:Config|Settings|Options|Policy|Limits|Bounds)";
    let structs = Regex::new(&format!(r"(?ms)^pub struct (\w*{name}) \{{\n(.*?)^\}}"))?;
    let defaults = Regex::new(&format!(
        r"(?ms)^impl Default for (\w*{name}) \{{\n(.*?)^\}}"
    ))?;
    let field = Regex::new(r"(?m)^    pub (\w+):")?;
    let value = Regex::new(r#"(?m)^ +(\w+): .*(?:\d|true|false|Duration::|")"#)?;
    let mut files = Vec::new();
    // Settings of a source stand in `model`: a tenant sets them, in a row.
    for folder in crates()?
        .iter()
        .filter(|folder| !folder.ends_with("/model"))
    {
        files_with("rs", &repository().join(folder).join("src"), &mut files)?;
    }
    let mut places = Vec::new();
    for path in files {
        let text = fs::read_to_string(&path)?;
        for found in structs.captures_iter(&text) {
            let Some(default) = defaults
                .captures_iter(&text)
                .find(|default| default[1] == found[1])
            else {
                continue;
            };
            let valued: BTreeSet<&str> = value
                .captures_iter(default.get(2).map_or("", |body| body.as_str()))
                .filter_map(|value| value.get(1).map(|name| name.as_str()))
                .collect();
            let fields = field.captures_iter(found.get(2).map_or("", |body| body.as_str()));
            places.extend(
                fields
                    .filter(|field| valued.contains(&field[1]))
                    .map(|field| format!("{path}: {}.{}", &found[1], &field[1])),
            );
        }
    }
    Ok(Figure {
        measure: "settings in code that nobody can set",
        subject: "all".to_owned(),
        goal: Some(0),
        value: places.len(),
        places,
    })
}

/// Methods of the trait `Store` of the cluster crate.
fn operations() -> Result<Figure> {
    let text = fs::read_to_string(repository().join("crates/cluster/src/store.rs"))?;
    let body = text
        .split_once("pub trait Store")
        .and_then(|(_, rest)| rest.split_once("\n}"))
        .map(|(body, _)| body)
        .context("the trait Store")?;
    let places: Vec<String> = Regex::new(r"(?m)^    (?:async )?fn (\w+)")?
        .captures_iter(body)
        .map(|name| name[1].to_owned())
        .collect();
    Ok(Figure {
        measure: "operations of the store",
        subject: "crates/cluster".to_owned(),
        goal: Some(12),
        value: places.len(),
        places,
    })
}

fn scripts() -> Result<Figure> {
    let mut places = Vec::new();
    files_with("lua", &repository().join("crates/cluster/src"), &mut places)?;
    Ok(Figure {
        measure: "Lua scripts",
        subject: "crates/cluster".to_owned(),
        goal: Some(10),
        value: places.len(),
        places,
    })
}

fn files_with(extension: &str, folder: &Path, found: &mut Vec<String>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            files_with(extension, &path, found)?;
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path.display().to_string());
        }
    }
    Ok(())
}

/// Refused words by folder (`tests/prose.tsv`).
fn refused_prose() -> Result<Vec<Figure>> {
    let refusals = prose::refusals(&repository())?;
    let mut folders: BTreeSet<String> = crates()?.into_iter().collect();
    folders.extend(
        [
            "tests",
            "web/src",
            "docs",
            "README.md",
            "SECURITY.md",
            "CONTRIBUTING.md",
        ]
        .map(str::to_owned),
    );
    let mut figures = Vec::new();
    for folder in folders {
        let places: Vec<String> = prose::findings(&repository(), Path::new(&folder), &refusals)?
            .into_iter()
            .map(|finding| {
                let advice = &refusals[finding.refusal].advice;
                format!(
                    "{}:{}: \"{}\": {advice}",
                    finding.file, finding.line, finding.words
                )
            })
            .collect();
        figures.push(Figure {
            measure: "refused words in prose",
            subject: folder,
            goal: Some(0),
            value: places.len(),
            places,
        });
    }
    Ok(figures)
}
