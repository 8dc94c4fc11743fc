//! The rules of the house that no compiler checks.

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
