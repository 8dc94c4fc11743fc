//! The measures of the structure: import circles, operations of the store, names with many meanings,
//! refused prose, and the other rows of ADR 51. `make structure` prints them.
//!
//! `tests/structure.tsv` has a ceiling and a goal for each measure. A figure above its ceiling fails; the
//! ceilings only fall: `PORTOLAN_TEST_UPDATE=1` writes the lower figures and never a higher one.
//! Measures that grow with features have a goal and no ceiling.

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

use crate::{citations, walks};

const CLUSTER: &str = "crates/cluster";
const ENDPOINT: &str = "services/mcp";
const CEILINGS: &str = "tests/structure.tsv";
/// A type name may be defined in this many places.
const MEANINGS: usize = 3;
/// Figures that the message of a failure lists.
const SHOWN: usize = 30;

/// Facts of a request. A struct with three of them carries one (ADR 40).
const FACTS: &[&str] = &[
    "method",
    "params",
    "id",
    "request",
    "revision",
    "caller",
    "server",
    "session",
    "client",
    "progress",
    "deadline",
    "trace",
    "tenant_slug",
];
/// Names of structs that bound a rate, where they do its arithmetic themselves.
const LIMITERS: &[&str] = &["Bucket", "Gcra", "Pace", "RateLimiter", "Rates", "Throttle"];

/// How a figure is judged.
#[derive(Clone, Copy)]
enum Goal {
    /// A ceiling of `tests/structure.tsv` holds it, down to this goal.
    Held(usize),
    /// It is printed beside this goal. Features may raise it.
    Stated(usize),
    /// It is printed alone.
    Unstated,
}

/// One figure, and where the things that it counts stand.
struct Figure {
    measure: &'static str,
    subject: String,
    goal: Goal,
    value: usize,
    places: Vec<String>,
}

impl Figure {
    /// A figure that counts places.
    fn of(
        measure: &'static str,
        subject: impl Into<String>,
        goal: Goal,
        places: Vec<String>,
    ) -> Self {
        Self {
            measure,
            subject: subject.into(),
            goal,
            value: places.len(),
            places,
        }
    }
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
        let line = format!("{measure:<44} {subject:<22} {value:>7}");
        let goal = match goal {
            Goal::Held(goal) => goal,
            Goal::Stated(goal) => {
                println!("{line}  goal {goal}");
                continue;
            }
            Goal::Unstated => {
                println!("{line}");
                continue;
            }
        };
        let ceiling = ceilings.get(&((*measure).to_owned(), subject.clone()));
        let highest = ceiling.map_or(*goal, |ceiling| *ceiling.max(goal));
        println!("{line}  at most {highest}, goal {goal}");
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
        goal: Goal::Stated(112_000),
        value: lines,
        places: Vec::new(),
    });
    let many: Vec<String> = types
        .into_iter()
        .filter(|(_, count)| *count > MEANINGS)
        .map(|(name, count)| format!("{name}: {count}"))
        .collect();
    found.push(Figure::of(
        "type names with more than three meanings",
        "all",
        Goal::Held(0),
        many,
    ));
    found.push(Figure::of(
        "citations that do not resolve",
        "all",
        Goal::Held(0),
        citations::unresolved()?,
    ));
    found.push(settings_in_code()?);
    found.push(operations()?);
    found.push(scripts()?);
    found.push(background_tasks()?);
    found.push(message_enums()?);
    found.push(limiters()?);
    found.push(carriers()?);
    found.extend(walk_a()?);
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
            Goal::Held(4),
            circle.len(),
            circle.iter().map(|&file| file.to_owned()).collect(),
        ),
        figure(
            "imports between modules that close a circle",
            Goal::Held(0),
            arrows.len(),
            arrows
                .iter()
                .map(|(from, to)| format!("{from} -> {to}"))
                .collect(),
        ),
        figure(
            "production lines of Rust",
            Goal::Unstated,
            graph.lines,
            Vec::new(),
        ),
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
    Ok(Figure::of(
        "settings in code that nobody can set",
        "all",
        Goal::Held(0),
        places,
    ))
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
    Ok(Figure::of(
        "operations of the store",
        CLUSTER,
        Goal::Held(12),
        places,
    ))
}

fn scripts() -> Result<Figure> {
    let mut places = Vec::new();
    files_with("lua", &repository().join("crates/cluster/src"), &mut places)?;
    Ok(Figure::of("Lua scripts", CLUSTER, Goal::Held(10), places))
}

/// Tasks that a node starts once and that run until it stops: the calls of `spawn` in `Node::start`.
fn background_tasks() -> Result<Figure> {
    let text = fs::read_to_string(repository().join("crates/cluster/src/node.rs"))?;
    let start = text
        .split_once("pub async fn start(")
        .and_then(|(_, rest)| rest.split_once("\n    }\n"))
        .map(|(body, _)| body)
        .context("Node::start")?;
    let places: Vec<String> = Regex::new(r"inner\.spawn\(([\w:]+)\(")?
        .captures_iter(start)
        .map(|task| task[1].to_owned())
        .collect();
    ensure!(!places.is_empty(), "a node has tasks");
    Ok(Figure::of(
        "background tasks of a node",
        CLUSTER,
        Goal::Held(6),
        places,
    ))
}

/// Production sources: paths in the repository, and texts without their module of tests.
fn sources(folders: &[String]) -> Result<Vec<(String, String)>> {
    let mut files = Vec::new();
    for folder in folders {
        files_with("rs", &repository().join(folder).join("src"), &mut files)?;
    }
    files.sort();
    let root = repository();
    files
        .into_iter()
        .map(|path| {
            let text = fs::read_to_string(&path)?;
            let production = text
                .split_once("#[cfg(test)]\nmod tests {")
                .map_or(text.as_str(), |(production, _)| production);
            let path = Path::new(&path).strip_prefix(&root)?.display().to_string();
            Ok((path, production.to_owned()))
        })
        .collect()
}

/// Enums that nodes send to each other. Each has a codec.
fn message_enums() -> Result<Figure> {
    let pattern = Regex::new(r"(?m)^pub(?:\(\w+\))? enum (\w*NodeMessage) \{")?;
    let mut places = Vec::new();
    for (path, text) in sources(&crates()?)? {
        places.extend(
            pattern
                .captures_iter(&text)
                .map(|found| format!("{path}: {}", &found[1])),
        );
    }
    Ok(Figure::of(
        "enums of messages between nodes",
        "all",
        Goal::Held(1),
        places,
    ))
}

/// Structs that bound a rate and keep its times themselves. Those that use `model::Gcra` do not.
fn limiters() -> Result<Figure> {
    let pattern = Regex::new(&format!(
        r"(?m)^pub(?:\(\w+\))? struct ({})\b",
        LIMITERS.join("|")
    ))?;
    let mut places = Vec::new();
    for (path, text) in sources(&crates()?)? {
        let is_arithmetic = path == "crates/model/src/gcra.rs"
            || (text.contains("Instant") && !text.contains("Gcra"));
        for found in pattern.captures_iter(&text).filter(|_| is_arithmetic) {
            places.push(format!("{path}: {}", &found[1]));
        }
    }
    Ok(Figure::of(
        "rate limiters written by hand",
        "all",
        Goal::Held(2),
        places,
    ))
}

/// Structs of the endpoint that carry a request: three of its [`FACTS`] are their fields.
fn carriers() -> Result<Figure> {
    let structs = Regex::new(r"(?ms)^(?:pub(?:\(\w+\))? )?struct (\w+)[^;{(]*\{\n(.*?)^\}")?;
    let field = Regex::new(r"(?m)^    (?:pub(?:\(\w+\))? )?(\w+):")?;
    let mut places = Vec::new();
    for (path, text) in sources(&[ENDPOINT.to_owned()])? {
        // `wire` is compiled for tests alone.
        if path.starts_with("services/mcp/src/wire") {
            continue;
        }
        for found in structs.captures_iter(&text) {
            let facts = field
                .captures_iter(found.get(2).map_or("", |body| body.as_str()))
                .filter(|field| FACTS.contains(&&field[1]))
                .count();
            if facts >= 3 {
                places.push(format!("{path}: {}", &found[1]));
            }
        }
    }
    Ok(Figure::of(
        "structs that carry a call",
        ENDPOINT,
        Goal::Held(3),
        places,
    ))
}

/// Files of the endpoint that a `tools/call` enters, as `docs/walks.md` lists them, and all of them.
fn walk_a() -> Result<Vec<Figure>> {
    let all = modules::graph(&repository().join(ENDPOINT))?.files;
    let entered = walks::files_of_walk_a()?;
    for file in &entered {
        ensure!(all.contains(file), "{file} is no file of {ENDPOINT}");
    }
    Ok(vec![
        Figure::of("files of a tools/call", ENDPOINT, Goal::Held(12), entered),
        Figure::of("files of the endpoint", ENDPOINT, Goal::Stated(45), all),
    ])
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
            goal: Goal::Held(0),
            value: places.len(),
            places,
        });
    }
    Ok(figures)
}
