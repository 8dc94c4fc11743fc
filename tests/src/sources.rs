//! The sources of the repository, read as text: their tests, the text of each, and its name in
//! nextest.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::{LazyLock, Mutex, PoisonError},
};

use anyhow::{Context, Result};
use regex::Regex;

use crate::stack::repository;

/// A test as it stands in its file.
#[derive(Debug)]
pub struct Test {
    /// Its function.
    pub name: String,
    /// The modules inside of the file that it stands in, the outermost one first.
    pub modules: Vec<String>,
    /// The comment above it, its name and its body.
    pub text: String,
}

/// Files below these folders of the repository whose names are wanted, without installed and built
/// files.
pub fn files(folders: &[&str], is_wanted: impl Fn(&str) -> bool) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for folder in folders {
        gather(&repository().join(folder), &is_wanted, &mut found)?;
    }
    Ok(found)
}

fn gather(folder: &Path, is_wanted: &dyn Fn(&str) -> bool, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        if path.is_dir() {
            if !matches!(name, "node_modules" | "target" | "dist") {
                gather(&path, is_wanted, found)?;
            }
        } else if is_wanted(name) {
            found.push(path);
        }
    }
    Ok(())
}

/// Whether a file of this name may hold tests of Rust.
pub fn is_rust(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|end| end == "rs")
}

static FUNCTION: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(\s*)(?:pub(?:\([a-z]+\))? )?(?:async )?fn ([a-z0-9_]+)")
        .expect("it is a pattern")
});
static MODULE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(\s*)(?:pub(?:\([a-z]+\))? )?mod (\w+) \{$").expect("it is a pattern")
});

/// The functions that are tests: by attribute, or, where a list of cases runs them, by their name.
pub fn tests_of(source: &str, is_case: impl Fn(&str) -> bool) -> Vec<Test> {
    let lines: Vec<&str> = source.lines().collect();
    let mut tests = Vec::new();
    // Where the scan is: modules with what they are indented by.
    let mut inside: Vec<(&str, &str)> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        // A search of the pattern in each line costs seconds without optimisation.
        if line.contains("mod ")
            && let Some(found) = MODULE.captures(line)
        {
            let [indent, name] = [1, 2].map(|group| found.get(group).map_or("", |it| it.as_str()));
            inside.push((indent, name));
            continue;
        }
        if let Some((indent, _)) = inside.last()
            && line.strip_prefix(indent) == Some("}")
        {
            inside.pop();
        }
        if !line.contains("fn ") {
            continue;
        }
        let Some(found) = FUNCTION.captures(line) else {
            continue;
        };
        let above = lines[..at]
            .iter()
            .rposition(|line| {
                let line = line.trim_start();
                !line.starts_with("//") && !line.starts_with('#')
            })
            .map_or(0, |end| end + 1);
        let is_test = lines[above..at].iter().any(|line| {
            line.trim_start().starts_with("#[test")
                || line.trim_start().starts_with("#[tokio::test")
        });
        let indent = &found[1];
        // Inside `proptest! { … }` the attribute is there, too.
        if !is_test && !is_case(&found[2]) {
            continue;
        }
        let end = lines[at..]
            .iter()
            .position(|line| *line == format!("{indent}}}"))
            .map_or(lines.len(), |end| at + end);
        tests.push(Test {
            name: found[2].to_owned(),
            modules: inside.iter().map(|(_, name)| (*name).to_owned()).collect(),
            text: lines[above..end].join("\n"),
        });
    }
    tests
}

/// The name of a test in nextest, binary and path (`portolan-tests::it nodes::resume::c4_…`), and
/// the file that it stands in. Tests that a macro makes have no function of their own, and are not
/// found.
pub fn by_nextest() -> Result<BTreeMap<String, PathBuf>> {
    let mut names = BTreeMap::new();
    for file in files(&["crates", "services", "tests"], is_rust)? {
        let path = file.strip_prefix(repository())?.to_owned();
        let Some((binary, modules)) = binary_of(&path)? else {
            continue;
        };
        for test in tests_of(&fs::read_to_string(&file)?, |_| false) {
            let all = modules.iter().chain(&test.modules).chain([&test.name]);
            let parts: Vec<&str> = all.map(String::as_str).collect();
            names.insert(format!("{binary} {}", parts.join("::")), path.clone());
        }
    }
    Ok(names)
}

/// The binary that a file is compiled into, and its modules in there.
fn binary_of(path: &Path) -> Result<Option<(String, Vec<String>)>> {
    let root = repository();
    let package = path
        .ancestors()
        .skip(1)
        .find(|folder| root.join(folder).join("Cargo.toml").is_file())
        .context("a package")?;
    let name = name_of(package)?;
    let mut parts: Vec<String> = path
        .strip_prefix(package)?
        .with_extension("")
        .iter()
        .map(|part| part.to_string_lossy().into_owned())
        .collect();
    if parts
        .last()
        .is_some_and(|last| matches!(last.as_str(), "main" | "lib"))
    {
        parts.pop();
    }
    let is_library = root.join(package).join("src/lib.rs").is_file();
    let mut parts = parts.into_iter();
    let binary = match parts.next().as_deref() {
        Some("src") if is_library => name,
        Some("src") => format!("{name}::bin/{name}"),
        Some("examples" | "benches") | None => return Ok(None),
        Some("tests") => match parts.next() {
            Some(test) if parts.len() > 0 && !is_test_target(&root.join(package), &test) => {
                return including_module(package, path);
            }
            Some(test) => format!("{name}::{test}"),
            None => return Ok(None),
        },
        // A folder that the manifest names.
        Some(test) => format!("{name}::{test}"),
    };
    Ok(Some((binary, parts.collect())))
}

/// The name of the package of a folder. A manifest is read once: a thousand files have thirty.
fn name_of(package: &Path) -> Result<String> {
    static NAMES: LazyLock<Mutex<BTreeMap<PathBuf, String>>> = LazyLock::new(Mutex::default);
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(name) = names.get(package) {
        return Ok(name.clone());
    }
    let manifest = fs::read_to_string(repository().join(package).join("Cargo.toml"))?;
    let manifest: toml::Table = manifest.parse()?;
    let name = manifest["package"]["name"].as_str().context("a name")?;
    names.insert(package.to_owned(), name.to_owned());
    Ok(name.to_owned())
}

/// The same for a file outside `src` that a module of the package names with `#[path]`.
fn including_module(package: &Path, path: &Path) -> Result<Option<(String, Vec<String>)>> {
    let root = repository();
    let wanted = root.join(path).canonicalize()?;
    let module = Regex::new(r#"#\[path = "([^"]+)"\]\s*mod (\w+);"#)?;
    for file in files(&[&package.join("src").to_string_lossy()], is_rust)? {
        let folder = file.parent().context("a folder")?;
        for found in module.captures_iter(&fs::read_to_string(&file)?) {
            if folder.join(&found[1]).canonicalize().ok().as_ref() == Some(&wanted) {
                let Some((binary, mut modules)) = binary_of(file.strip_prefix(&root)?)? else {
                    return Ok(None);
                };
                modules.push(found[2].to_owned());
                return Ok(Some((binary, modules)));
            }
        }
    }
    Ok(None)
}

/// Whether `tests/NAME.rs` or `tests/NAME/main.rs` is a test of a package.
fn is_test_target(package: &Path, name: &str) -> bool {
    let tests = package.join("tests");
    tests.join(format!("{name}.rs")).is_file() || tests.join(name).join("main.rs").is_file()
}
