//! The modules of a crate and the imports between their files, read from the sources.
//!
//! Tests (`#[cfg(test)]`) are left out. A path that leads through a re-export counts for the file that
//! defines the item. Macros are read like other code, because paths in them are imports, too.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    str::FromStr,
};

use anyhow::{Context, Result, anyhow};
use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// How many re-exports one path may pass through.
const REEXPORTS: usize = 16;

/// The files of one crate and which file imports which.
#[derive(Debug, Default)]
pub struct Graph {
    /// Paths below the `src` folder of the crate, with `/`.
    pub files: Vec<String>,
    /// Importing file and imported file, as positions in `files`.
    pub imports: BTreeSet<(usize, usize)>,
    /// The module below the root that each file belongs to; the root file has `None`.
    pub first_level: Vec<Option<String>>,
    /// Names of the types and traits that the crate defines, with repetitions.
    pub types: Vec<String>,
    /// Production lines with their comments; blank lines and tests in braces are not counted.
    pub lines: usize,
}

impl Graph {
    /// Groups of files that import each other in a circle, the largest first.
    #[must_use]
    pub fn circles(&self) -> Vec<Vec<&str>> {
        let names = circles(self.files.len(), &self.imports);
        names
            .into_iter()
            .map(|circle| {
                circle
                    .into_iter()
                    .map(|at| self.files[at].as_str())
                    .collect()
            })
            .collect()
    }

    /// Imports between modules of the first level: all of them, and those that lie on a circle.
    #[must_use]
    pub fn between_modules(&self) -> (usize, Vec<(String, String)>) {
        let names: Vec<&str> = self
            .first_level
            .iter()
            .flatten()
            .map(String::as_str)
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        let position = |file: usize| {
            let name = self.first_level[file].as_deref()?;
            names.binary_search(&name).ok()
        };
        let arrows: BTreeSet<(usize, usize)> = self
            .imports
            .iter()
            .filter_map(|&(from, to)| Some((position(from)?, position(to)?)))
            .filter(|(from, to)| from != to)
            .collect();
        let mut on_circle = Vec::new();
        for circle in circles(names.len(), &arrows) {
            for &(from, to) in &arrows {
                if circle.contains(&from) && circle.contains(&to) {
                    on_circle.push((names[from].to_owned(), names[to].to_owned()));
                }
            }
        }
        (arrows.len(), on_circle)
    }
}

/// Strongly connected components of more than one node, the largest first (Tarjan).
fn circles(count: usize, arrows: &BTreeSet<(usize, usize)>) -> Vec<Vec<usize>> {
    struct Search<'a> {
        arrows: &'a BTreeSet<(usize, usize)>,
        order: Vec<Option<usize>>,
        low: Vec<usize>,
        on_stack: Vec<bool>,
        stack: Vec<usize>,
        next: usize,
        found: Vec<Vec<usize>>,
    }
    impl Search<'_> {
        fn visit(&mut self, node: usize) -> usize {
            self.order[node] = Some(self.next);
            self.low[node] = self.next;
            self.next += 1;
            self.stack.push(node);
            self.on_stack[node] = true;
            let targets: Vec<usize> = self
                .arrows
                .range((node, 0)..(node + 1, 0))
                .map(|&(_, to)| to)
                .collect();
            for to in targets {
                let low = match self.order[to] {
                    None => self.visit(to),
                    Some(order) if self.on_stack[to] => order,
                    Some(_) => continue,
                };
                self.low[node] = self.low[node].min(low);
            }
            if self.order[node] == Some(self.low[node]) {
                let start = self.stack.iter().rposition(|&at| at == node).unwrap_or(0);
                let circle = self.stack.split_off(start);
                for &at in &circle {
                    self.on_stack[at] = false;
                }
                if circle.len() > 1 {
                    self.found.push(circle);
                }
            }
            self.low[node]
        }
    }
    let mut search = Search {
        arrows,
        order: vec![None; count],
        low: vec![0; count],
        on_stack: vec![false; count],
        stack: Vec::new(),
        next: 0,
        found: Vec::new(),
    };
    for node in 0..count {
        if search.order[node].is_none() {
            search.visit(node);
        }
    }
    search
        .found
        .sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    search.found
}

/// A module, in a file of its own or in braces.
#[derive(Default)]
struct Module {
    file: usize,
    parent: Option<usize>,
    children: BTreeMap<String, usize>,
    /// Items that it defines.
    items: BTreeSet<String>,
    /// Names that it imports, and the paths behind them.
    names: BTreeMap<String, Vec<String>>,
    globs: Vec<Vec<String>>,
    /// Every path that stands in it.
    paths: BTreeSet<Vec<String>>,
}

#[derive(Default)]
struct Reader {
    files: Vec<String>,
    modules: Vec<Module>,
    types: Vec<String>,
    lines: usize,
}

/// Reads the modules of the crate in `folder`, which has `src/lib.rs` or `src/main.rs`.
///
/// # Errors
/// A file that a `mod` names is missing, or a file is not Rust.
pub fn graph(folder: &Path) -> Result<Graph> {
    let source = folder.join("src");
    let mut reader = Reader::default();
    for root in ["lib.rs", "main.rs"] {
        if source.join(root).is_file() {
            reader.file(&source, Path::new(root), None)?;
        }
    }
    let mut imports = BTreeSet::new();
    for (at, module) in reader.modules.iter().enumerate() {
        for path in module.paths.iter().chain(module.names.values()) {
            if let Some(target) = reader.resolve(at, path, 0) {
                imports.insert((module.file, reader.modules[target].file));
            }
        }
        for path in &module.globs {
            if let Some(target) = reader.resolve(at, path, 0) {
                imports.insert((module.file, reader.modules[target].file));
            }
        }
    }
    imports.retain(|(from, to)| from != to);
    let mut first_level = vec![None; reader.files.len()];
    for (at, module) in reader.modules.iter().enumerate() {
        first_level[module.file] = reader.first_level(at);
    }
    Ok(Graph {
        files: reader.files,
        imports,
        first_level,
        types: reader.types,
        lines: reader.lines,
    })
}

impl Reader {
    fn first_level(&self, module: usize) -> Option<String> {
        let parent = self.modules[module].parent?;
        if self.modules[parent].parent.is_some() {
            return self.first_level(parent);
        }
        self.modules[parent]
            .children
            .iter()
            .find(|(_, child)| **child == module)
            .map(|(name, _)| name.clone())
    }

    fn file(&mut self, source: &Path, file: &Path, parent: Option<usize>) -> Result<usize> {
        let text = fs::read_to_string(source.join(file))
            .with_context(|| source.join(file).display().to_string())?;
        let tokens = TokenStream::from_str(&text)
            .map_err(|error| anyhow!("{}: {error}", source.join(file).display()))?;
        self.files
            .push(file.display().to_string().replace('\\', "/"));
        let module = self.module(self.files.len() - 1, parent);
        self.lines += lines(&text);
        let folder = submodules(file);
        self.read(module, tokens, source, &folder, true)?;
        Ok(module)
    }

    fn module(&mut self, file: usize, parent: Option<usize>) -> usize {
        self.modules.push(Module {
            file,
            parent,
            ..Module::default()
        });
        self.modules.len() - 1
    }

    /// Reads tokens of a module. `at_level` is true for its items and false inside of bodies.
    fn read(
        &mut self,
        module: usize,
        tokens: TokenStream,
        source: &Path,
        folder: &Path,
        at_level: bool,
    ) -> Result<()> {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        let (mut is_test, mut path) = (false, None);
        while at < tokens.len() {
            if is_punct(tokens.get(at), '#') {
                let bang = usize::from(is_punct(tokens.get(at + 1), '!'));
                if let Some(TokenTree::Group(attribute)) = tokens.get(at + 1 + bang) {
                    let text = attribute.stream().to_string().replace(' ', "");
                    is_test |= bang == 0 && is_for_tests(&text);
                    if let Some(named) = text.strip_prefix("path=") {
                        path = Some(named.trim_matches('"').to_owned());
                    }
                    self.read(module, attribute.stream(), source, folder, false)?;
                    at += 2 + bang;
                    continue;
                }
            }
            if is_test {
                at = after_item(&tokens, at);
                (is_test, path) = (false, None);
                continue;
            }
            let word = ident(tokens.get(at));
            match (word.as_deref(), ident(tokens.get(at + 1))) {
                (Some("mod"), Some(name)) => {
                    let inner = folder.join(&name);
                    let child = match tokens.get(at + 2) {
                        Some(TokenTree::Group(body)) => {
                            let child = self.module(self.modules[module].file, Some(module));
                            self.modules[module].children.insert(name, child);
                            self.read(child, body.stream(), source, &inner, true)?;
                            child
                        }
                        _ => {
                            let file = path
                                .take()
                                .map(|named| folder.join(named))
                                .or_else(|| {
                                    [inner.with_extension("rs"), inner.join("mod.rs")]
                                        .into_iter()
                                        .find(|file| source.join(file).is_file())
                                })
                                .with_context(|| format!("{}: no file", inner.display()))?;
                            let child = self.file(source, &file, Some(module))?;
                            self.modules[module].children.insert(name, child);
                            child
                        }
                    };
                    debug_assert!(child > module);
                    at += 3;
                }
                (Some("use"), _) => {
                    let end = (at..tokens.len())
                        .find(|&end| is_punct(tokens.get(end), ';'))
                        .unwrap_or(tokens.len());
                    self.tree(module, &tokens[at + 1..end], &[]);
                    at = end + 1;
                }
                (Some(kind), Some(name)) if at_level && DEFINES.contains(&kind) => {
                    if TYPES.contains(&kind) {
                        self.types.push(name.clone());
                    }
                    self.modules[module].items.insert(name);
                    at += 2;
                }
                (Some(_), _) => at = self.path(module, &tokens, at),
                (None, _) => {
                    if let Some(TokenTree::Group(group)) = tokens.get(at) {
                        self.read(module, group.stream(), source, folder, false)?;
                    }
                    at += 1;
                }
            }
            path = None;
        }
        Ok(())
    }

    /// Keeps the path that begins at `at`, and returns where it ends.
    fn path(&mut self, module: usize, tokens: &[TokenTree], at: usize) -> usize {
        let continues =
            at > 0 && (is_punct(tokens.get(at - 1), ':') || is_punct(tokens.get(at - 1), '.'));
        let mut segments: Vec<String> = ident(tokens.get(at)).into_iter().collect();
        let mut end = at + 1;
        while is_punct(tokens.get(end), ':') && is_punct(tokens.get(end + 1), ':') {
            let Some(segment) = ident(tokens.get(end + 2)) else {
                break;
            };
            segments.push(segment);
            end += 3;
        }
        if segments.len() > 1 && !continues {
            self.modules[module].paths.insert(segments);
        }
        end
    }

    /// Keeps what a `use` imports: `a::{b, c as d, e::*}`.
    fn tree(&mut self, module: usize, tokens: &[TokenTree], before: &[String]) {
        let mut path = before.to_vec();
        let mut at = 0;
        while at < tokens.len() {
            match &tokens[at] {
                TokenTree::Ident(word) if *word == "as" => {
                    let name = ident(tokens.get(at + 1)).unwrap_or_default();
                    self.modules[module].names.insert(name, path);
                    return;
                }
                TokenTree::Ident(word) => path.push(word.to_string()),
                TokenTree::Group(group) => {
                    let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                    for branch in inner.split(|token| is_punct(Some(token), ',')) {
                        if !branch.is_empty() {
                            self.tree(module, branch, &path);
                        }
                    }
                    return;
                }
                TokenTree::Punct(star) if star.as_char() == '*' => {
                    self.modules[module].globs.push(path);
                    return;
                }
                _ => {}
            }
            at += 1;
        }
        if path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        if let Some(name) = path.last().cloned() {
            self.modules[module].names.insert(name, path);
        }
    }

    /// The module that defines what `path` names in `module`; nothing for other crates.
    fn resolve(&self, module: usize, path: &[String], depth: usize) -> Option<usize> {
        if depth > REEXPORTS {
            return None;
        }
        let (first, rest) = path.split_first()?;
        let here = &self.modules[module];
        match first.as_str() {
            "crate" => self.descend(self.root(module), rest, depth),
            "self" => self.descend(module, rest, depth),
            "super" => self.descend(here.parent?, rest, depth),
            name => {
                if let Some(&child) = here.children.get(name) {
                    return self.descend(child, rest, depth);
                }
                // An import names itself where it stands: `use a::a`.
                let behind = here.names.get(name).filter(|behind| behind[..] != *path)?;
                if behind.first() == Some(first) {
                    return None;
                }
                let whole: Vec<String> = behind.iter().chain(rest).cloned().collect();
                self.resolve(module, &whole, depth + 1)
            }
        }
    }

    fn root(&self, module: usize) -> usize {
        let mut at = module;
        while let Some(parent) = self.modules[at].parent {
            at = parent;
        }
        at
    }

    fn descend(&self, module: usize, path: &[String], depth: usize) -> Option<usize> {
        let Some((first, rest)) = path.split_first() else {
            return Some(module);
        };
        let here = &self.modules[module];
        if first == "super" {
            return self.descend(here.parent?, rest, depth);
        }
        if let Some(&child) = here.children.get(first) {
            return self.descend(child, rest, depth);
        }
        if here.items.contains(first) {
            return Some(module);
        }
        if let Some(behind) = here.names.get(first) {
            let whole: Vec<String> = behind.iter().chain(rest).cloned().collect();
            return self.resolve(module, &whole, depth + 1);
        }
        for glob in &here.globs {
            let target = self.resolve(module, glob, depth + 1);
            if let Some(target) = target.filter(|&target| {
                let there = &self.modules[target];
                there.items.contains(first) || there.children.contains_key(first)
            }) {
                return self.descend(target, path, depth + 1);
            }
        }
        Some(module)
    }
}

const DEFINES: [&str; 9] = [
    "fn",
    "struct",
    "enum",
    "trait",
    "type",
    "const",
    "static",
    "union",
    "macro_rules",
];
const TYPES: [&str; 4] = ["struct", "enum", "trait", "union"];

fn is_punct(token: Option<&TokenTree>, char: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == char)
}

fn ident(token: Option<&TokenTree>) -> Option<String> {
    match token {
        Some(TokenTree::Ident(word)) => Some(word.to_string()),
        _ => None,
    }
}

/// Whether an attribute, without its spaces, leaves its item to tests.
fn is_for_tests(attribute: &str) -> bool {
    attribute == "test"
        || attribute == "tokio::test"
        || (attribute.starts_with("cfg(")
            && ["(test)", "(test,", ",test)", ",test,"]
                .iter()
                .any(|part| attribute.contains(part))
            && !attribute.contains("not(test)"))
}

/// The position after the item that begins at `at`: behind its `;` or its braces.
fn after_item(tokens: &[TokenTree], at: usize) -> usize {
    for (offset, token) in tokens[at..].iter().enumerate() {
        let ends = match token {
            TokenTree::Punct(punct) => punct.as_char() == ';' || punct.as_char() == ',',
            TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
            _ => false,
        };
        if ends {
            return at + offset + 1;
        }
    }
    tokens.len()
}

/// The folder with the submodules of a file.
fn submodules(file: &Path) -> PathBuf {
    let folder = file.parent().unwrap_or(Path::new("")).to_path_buf();
    match file.file_stem().and_then(|stem| stem.to_str()) {
        Some("lib" | "main" | "mod") | None => folder,
        Some(stem) => folder.join(stem),
    }
}

/// Lines that are not blank, above a module of tests in braces.
fn lines(text: &str) -> usize {
    let production = text
        .split_once("#[cfg(test)]\nmod tests {")
        .map_or(text, |(production, _)| production);
    production
        .lines()
        .filter(|line| !line.trim().is_empty())
        .count()
}
