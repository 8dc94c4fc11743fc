//! The rules of the repository that no compiler checks.

use std::{collections::BTreeSet, fs, path::Path, process::Command};

use anyhow::{Context, Result};
use portolan_tests::stack::repository;
use serde_json::Value;

fn metadata() -> Result<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--offline"])
        .current_dir(repository())
        .output()?;
    anyhow::ensure!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn deny() -> Result<toml::Table> {
    Ok(fs::read_to_string(repository().join("deny.toml"))?.parse()?)
}

fn texts(value: Option<&toml::Value>) -> BTreeSet<&str> {
    value
        .and_then(toml::Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(toml::Value::as_str)
        .collect()
}

#[test]
fn arrows_only_go_down_and_each_outside_thing_has_one_owner() -> Result<()> {
    let (metadata, deny) = (metadata()?, deny()?);
    let packages = metadata["packages"].as_array().context("packages")?;
    let name_of = |id: &Value| {
        packages
            .iter()
            .find(|package| package["id"] == *id)
            .and_then(|package| package["name"].as_str())
            .unwrap_or_default()
    };
    let mut found = Vec::new();
    for ban in deny["bans"]["deny"].as_array().context("bans.deny")? {
        let banned = ban["crate"].as_str().context("a name")?;
        let wrappers = texts(ban.get("wrappers"));
        for node in metadata["resolve"]["nodes"].as_array().context("nodes")? {
            let dependent = name_of(&node["id"]);
            let uses = node["deps"]
                .as_array()
                .context("deps")?
                .iter()
                .any(|dependency| name_of(&dependency["pkg"]) == banned);
            if uses && !wrappers.contains(dependent) {
                found.push(format!("{dependent} must not depend on {banned}"));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    Ok(())
}

#[test]
fn every_licence_is_one_that_we_may_ship() -> Result<()> {
    let (metadata, deny) = (metadata()?, deny()?);
    let allowed = texts(deny["licenses"].get("allow"));
    for package in metadata["packages"].as_array().context("packages")? {
        let licence = package["license"]
            .as_str()
            .with_context(|| format!("{} names no licence", package["name"]))?;
        // SPDX expressions of the field: all of the parts joined by AND, one of those joined by OR or by the old slash.
        let expression = licence.replace('/', " OR ");
        let holds = expression.split(" AND ").all(|part| {
            part.trim_matches(['(', ')', ' '])
                .split(" OR ")
                .any(|one| allowed.contains(one.trim_matches(['(', ')', ' '])))
        });
        assert!(holds, "{}: {licence}", package["name"]);
    }
    Ok(())
}

#[test]
fn everything_comes_from_the_registry_or_from_here() -> Result<()> {
    let metadata = metadata()?;
    for package in metadata["packages"].as_array().context("packages")? {
        let source = package["source"].as_str().unwrap_or("here");
        assert!(
            source == "here" || source == "registry+https://github.com/rust-lang/crates.io-index",
            "{}: {source}",
            package["name"]
        );
    }
    Ok(())
}

#[test]
fn each_dependency_stands_once_with_a_line_of_why() -> Result<()> {
    let manifest = fs::read_to_string(repository().join("Cargo.toml"))?;
    let section = manifest
        .split("[workspace.dependencies]")
        .nth(1)
        .and_then(|rest| rest.split("\n[").next())
        .context("the section")?;
    for line in section
        .lines()
        .filter(|line| line.contains('=') && !line.starts_with('#'))
    {
        assert!(
            line.starts_with("portolan") || line.contains(" # "),
            "say why: {line}"
        );
    }
    Ok(())
}

#[test]
fn names_and_sizes_keep_to_the_rules() -> Result<()> {
    let mut found = Vec::new();
    for root in ["crates", "services", "tests", "web/src"] {
        visit(&repository().join(root), &mut found)?;
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    Ok(())
}

fn visit(folder: &Path, found: &mut Vec<String>) -> Result<()> {
    for entry in fs::read_dir(folder)?.flatten() {
        let (path, name) = (
            entry.path(),
            entry.file_name().to_string_lossy().into_owned(),
        );
        if matches!(
            name.as_str(),
            "node_modules" | "dist" | "corpus" | "schema" | "target"
        ) || name.starts_with('.')
        {
            continue;
        }
        let stem = name.split('.').next().unwrap_or_default();
        if matches!(
            stem,
            "util" | "utils" | "common" | "helpers" | "helper" | "misc" | "shared" | "mod"
        ) {
            found.push(format!("{}: not a subject", path.display()));
        }
        if path.is_dir() {
            visit(&path, found)?;
        } else if matches!(
            path.extension().and_then(|extension| extension.to_str()),
            Some("rs" | "ts" | "tsx")
        ) && !name.contains(".gen.")
        {
            let lines = fs::read_to_string(&path)?.lines().count();
            if lines > 1000 {
                found.push(format!(
                    "{}: {lines} lines, ask for its second subject",
                    path.display()
                ));
            }
        }
    }
    Ok(())
}

const DEV: &[&str] = &["--data", "--listen", "--admin-listen", "--demo-listen"];

/// A test that takes an address or a folder that the binary has by default fails while `make run`
/// goes on beside it.
#[test]
fn no_test_uses_a_default_port_or_a_default_folder() -> Result<()> {
    let mut sources = Vec::new();
    for folder in ["tests", "services", "crates"] {
        rust_files(&repository().join(folder), &mut sources)?;
    }
    let mut found = Vec::new();
    for path in &sources {
        let text = fs::read_to_string(path)?;
        let is_test = path.components().any(|part| part.as_os_str() == "tests");
        if !is_test || path.ends_with("tests/it/house.rs") {
            continue;
        }
        let mut wants = |start: usize, names: &[&str]| {
            // The statement that starts the binary names all of them.
            let statement = text[start..].split_once(';').map_or("", |(first, _)| first);
            for name in names {
                if !statement.contains(name) {
                    found.push(format!("{}: {name} is not named", path.display()));
                }
            }
        };
        for (at, _) in text.match_indices("\"dev\"") {
            wants(at, DEV);
        }
        // The settings of nodes are made elsewhere in the file.
        let serves = text.contains("\"serve\"");
        let is_placed =
            text.contains("\"PORTOLAN_LISTEN\"") && text.contains("\"PORTOLAN_ADMIN_LISTEN\"");
        if serves && !is_placed {
            found.push(format!("{}: a node without addresses", path.display()));
        }
        for line in text
            .lines()
            .filter(|line| line.contains("TcpListener::bind("))
        {
            if ["8080", "8081", "8082", "9090"]
                .iter()
                .any(|port| line.contains(port))
            {
                found.push(format!("{}: {}", path.display(), line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    Ok(())
}

fn rust_files(folder: &Path, found: &mut Vec<std::path::PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() && !path.ends_with("node_modules") {
            rust_files(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    Ok(())
}

#[test]
fn the_commit_hook_refuses_subjects_of_another_form() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let judge = |message: &str| -> Result<bool> {
        let file = folder.path().join("message");
        fs::write(&file, message)?;
        let hook = repository().join("scripts/hooks/commit-msg");
        Ok(Command::new(hook).arg(file).output()?.status.success())
    };
    let longest = format!("net: {}", "A".repeat(67));
    for good in [
        "net: Refuse long heads",
        "# a comment\nservices/mcp: Refuse long heads\n\nProblem: …",
        "Merge branch 'main'",
        &longest,
    ] {
        assert!(judge(good)?, "{good:?}");
    }
    for bad in [
        "Refuse long heads",
        "net: refuse long heads",
        "net: Refuse long heads.",
        "net: Refuse long heads\nand more",
        &format!("{longest}A"),
        "",
    ] {
        assert!(!judge(bad)?, "{bad:?}");
    }
    Ok(())
}
