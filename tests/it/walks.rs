//! The page of walks and the guides name files and functions that exist.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use portolan_tests::stack::repository;
use regex::Regex;

const PAGE: &str = "docs/walks.md";
const GUIDES: &str = "docs/guides";
/// Short paths of a page stand below this folder, or beside a file that is named before.
const ENDPOINT: &str = "services/mcp/src";

fn page() -> Result<String> {
    prose(Path::new(PAGE))
}

/// A page without its blocks of code.
fn prose(page: &Path) -> Result<String> {
    let text = fs::read_to_string(repository().join(page))?;
    Ok(Regex::new(r"(?s)```.*?```")?
        .replace_all(&text, "")
        .into_owned())
}

/// The files of `services/mcp/src` that walk A enters, as the page lists them.
pub(crate) fn files_of_walk_a() -> Result<Vec<String>> {
    let page = page()?;
    let list = page
        .split_once("### Files of `services/mcp` on this walk")
        .and_then(|(_, rest)| rest.split_once("The files of the service structs"))
        .map(|(list, _)| list)
        .context("the list of files")?;
    Ok(Regex::new(r"`([\w/]+\.rs)`")?
        .captures_iter(list)
        .map(|file| file[1].to_owned())
        .collect())
}

/// The files that texts name.
#[derive(Default)]
struct Named {
    found: usize,
    missing: Vec<String>,
}

impl Named {
    /// Looks for the files and functions of one text.
    fn look(&mut self, text: &str) -> Result<()> {
        let root = repository();
        let named = Regex::new(
            r"`([\w./$-]+\.(?:rs|json|md|tsx?|lua|tsv|txt|sql))`(?:(?: on every node|,)\s+`(?:\w+::)?(\w+)`)?",
        )?;
        let mut folders = vec![root.clone(), root.join(ENDPOINT)];
        for found in named.captures_iter(text) {
            let path = Path::new(&found[1]);
            let Some(file) = folders
                .iter()
                .map(|folder| folder.join(path))
                .find(|file| file.is_file())
            else {
                self.missing.push(found[1].to_owned());
                continue;
            };
            self.found += 1;
            if let Some(name) = found
                .get(2)
                .filter(|_| path.extension() == Some("rs".as_ref()))
            {
                let text = fs::read_to_string(&file)?;
                let defined = format!(r"\b(?:fn|struct|enum|trait|const) {}\b", name.as_str());
                if !Regex::new(&defined)?.is_match(&text) {
                    self.missing
                        .push(format!("{}, {}", &found[1], name.as_str()));
                }
            }
            folders.extend(file.parent().map(PathBuf::from));
            folders.push(file.with_extension(""));
        }
        Ok(())
    }
}

#[test]
fn walks_paths_and_names_exist() -> Result<()> {
    let page = page()?;
    let step = Regex::new(r"(?m)^(?:\d+\. |#+ )")?;
    let starts: Vec<usize> = step.find_iter(&page).map(|start| start.start()).collect();
    let mut named = Named::default();
    for (at, &start) in starts.iter().enumerate() {
        named.look(&page[start..starts.get(at + 1).copied().unwrap_or(page.len())])?;
    }
    let Named { found, missing } = named;
    ensure!(missing.is_empty(), "{PAGE} names {}", missing.join("; "));
    ensure!(found > 50, "the page names files: {found}");
    Ok(())
}

#[test]
fn guides_paths_and_names_exist() -> Result<()> {
    let mut count = 0;
    for guide in fs::read_dir(repository().join(GUIDES))? {
        let guide = guide?.path();
        let mut named = Named::default();
        named.look(&prose(&guide)?)?;
        ensure!(
            named.missing.is_empty(),
            "{} names {}",
            guide.display(),
            named.missing.join("; ")
        );
        count += named.found;
    }
    ensure!(count > 80, "the guides name files: {count}");
    Ok(())
}
