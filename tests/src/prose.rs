//! The prose of the repository: comments of the sources and the pages of `docs/`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use regex::Regex;

/// A pattern that the rules of prose refuse, and the advice for it.
#[derive(Debug)]
pub struct Refusal {
    /// Matches the words that have to go.
    pub pattern: Regex,
    /// The words to write in their place.
    pub advice: String,
}

/// A line of prose with refused words.
#[derive(Debug)]
pub struct Finding {
    /// Path below the repository.
    pub file: String,
    /// Counted from one.
    pub line: usize,
    /// The refused words.
    pub words: String,
    /// Position of the refusal in the list.
    pub refusal: usize,
}

/// Reads `tests/prose.tsv`: a pattern and an advice on each line.
///
/// # Errors
/// A line has no tab, or its pattern is not a regular expression.
pub fn refusals(repository: &Path) -> Result<Vec<Refusal>> {
    fs::read_to_string(repository.join("tests/prose.tsv"))?
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| {
            let (pattern, advice) = line.split_once('\t').context("a tab")?;
            Ok(Refusal {
                pattern: Regex::new(pattern)?,
                advice: advice.to_owned(),
            })
        })
        .collect()
}

/// Every refused word in the prose of the files below `folder`.
///
/// # Errors
/// A file cannot be read.
pub fn findings(repository: &Path, folder: &Path, refusals: &[Refusal]) -> Result<Vec<Finding>> {
    let mut files = Vec::new();
    text_files(&repository.join(folder), &mut files)?;
    files.sort();
    let mut found = Vec::new();
    for path in files {
        let text = fs::read_to_string(&path)?;
        let marks = marks(&path);
        let mut is_code = false;
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if marks.is_empty() && line.starts_with("```") {
                is_code = !is_code;
            }
            let Some(prose) = prose_of(line, marks).filter(|_| !is_code) else {
                continue;
            };
            let prose = without_code(prose);
            for (refusal, Refusal { pattern, .. }) in refusals.iter().enumerate() {
                found.extend(pattern.find_iter(&prose).map(|words| {
                    Finding {
                        file: path
                            .strip_prefix(repository)
                            .unwrap_or(&path)
                            .display()
                            .to_string(),
                        line: at + 1,
                        words: words
                            .as_str()
                            .trim_start_matches(['.', ';', ':', ' '])
                            .to_owned(),
                        refusal,
                    }
                }));
            }
        }
    }
    Ok(found)
}

/// The marks of comments in a file; empty if every line is prose.
fn marks(path: &Path) -> &'static [&'static str] {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("rs" | "ts" | "tsx" | "mjs") => &["///", "//!", "//", "/**", "*"],
        Some("lua" | "sql") => &["--"],
        Some("sh" | "toml" | "yml" | "yaml" | "py") => &["#"],
        _ => &[],
    }
}

fn prose_of<'a>(line: &'a str, marks: &[&str]) -> Option<&'a str> {
    if marks.is_empty() {
        return Some(line);
    }
    marks
        .iter()
        .find_map(|mark| line.strip_prefix(mark))
        .map(str::trim_start)
}

/// The line without the text between backticks: names of code are not prose.
fn without_code(line: &str) -> String {
    line.split('`')
        .enumerate()
        .map(|(at, part)| if at % 2 == 0 { part } else { "x" })
        .collect()
}

fn text_files(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    const SKIPPED: [&str; 8] = [
        "node_modules",
        "dist",
        "corpus",
        "schema",
        "target",
        "data",
        "snapshots",
        "images",
    ];
    const READ: [&str; 9] = ["rs", "md", "ts", "tsx", "mjs", "lua", "sh", "yml", "yaml"];
    if folder.is_file() {
        found.push(folder.to_path_buf());
        return Ok(());
    }
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            if !SKIPPED.contains(&&*name) && !name.starts_with('.') {
                text_files(&path, found)?;
            }
        } else if path
            .extension()
            .and_then(|extension| extension.to_str())
            .is_some_and(|extension| READ.contains(&extension))
            && !name.contains(".gen.")
        {
            found.push(path);
        }
    }
    Ok(())
}
