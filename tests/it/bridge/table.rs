//! The outcomes of all pairs, as `tests/bridge/*.tsv` hold them.

use std::{collections::BTreeMap, fmt::Write as _, fs};

use anyhow::{Context, Result, ensure};
use portolan_tests::{speaker::REVISIONS, stack::repository};

use super::{features::FEATURES, page};

/// The way between client and server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// HTTP, the service, HTTP.
    Http,
    /// Standard input and output, `portolan connect`, the service, HTTP.
    ConnectToService,
    /// Standard input and output, `portolan connect`, HTTP.
    Connect,
}

impl Way {
    /// Is the client a program on standard input and output?
    pub(super) fn is_stdio(self) -> bool {
        self != Self::Http
    }

    fn file(self) -> &'static str {
        match self {
            Self::Http => "tests/bridge/http.tsv",
            Self::ConnectToService => "tests/bridge/connect-to-service.tsv",
            Self::Connect => "tests/bridge/connect.tsv",
        }
    }
}

/// (feature, revision of the client, revision of the server) → outcome: `=`; `~key,key` degraded;
/// `x key` impossible; `-` the server's revision lacks it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Table(pub(super) BTreeMap<(String, String, String), String>);

impl Table {
    pub(super) fn insert(&mut self, feature: &str, client: &str, server: &str, outcome: String) {
        let place = (feature.to_owned(), client.to_owned(), server.to_owned());
        self.0.insert(place, outcome);
    }

    pub(super) fn get(&self, feature: &str, client: &str, server: &str) -> Result<&str> {
        let place = (feature.to_owned(), client.to_owned(), server.to_owned());
        let outcome = self.0.get(&place);
        Ok(outcome.with_context(|| format!("no outcome of {place:?}"))?)
    }

    pub(super) fn read(way: Way) -> Result<Self> {
        let text = fs::read_to_string(repository().join(way.file()))?;
        let mut table = Self::default();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let cells: Vec<&str> = line.split('\t').collect();
            ensure!(cells.len() == 7, "{}: {line:?}", way.file());
            for (server, outcome) in REVISIONS.iter().zip(&cells[2..]) {
                table.insert(cells[0], cells[1], server, (*outcome).to_owned());
            }
        }
        Ok(table)
    }

    fn written(&self) -> Result<String> {
        let mut text = format!("# feature\tclient\t{}\n", REVISIONS.join("\t"));
        for feature in &FEATURES {
            for client in REVISIONS {
                write!(text, "{}\t{client}", feature.name)?;
                for server in REVISIONS {
                    write!(text, "\t{}", self.get(feature.name, client, server)?)?;
                }
                text.push('\n');
            }
        }
        Ok(text)
    }
}

/// Compares what was seen with the table, or writes it.
pub(super) fn hold(way: Way, seen: Vec<Table>) -> Result<()> {
    let seen = Table(seen.into_iter().flat_map(|table| table.0).collect());
    let path = repository().join(way.file());
    if std::env::var_os("PORTOLAN_TEST_UPDATE").is_some() {
        fs::write(path, seen.written()?)?;
        // The page is made of the tables of all ways: the last of them writes it.
        page::write().ok();
        return Ok(());
    }
    let expected = Table::read(way)?;
    let differ = |(place, outcome): &(&(String, String, String), &String)| {
        expected.0.get(*place) != Some(*outcome)
    };
    let changed: Vec<String> = seen
        .0
        .iter()
        .filter(differ)
        .map(|(place, outcome)| {
            format!(
                "{place:?}: {outcome:?}, expected {:?}",
                expected.0.get(place)
            )
        })
        .collect();
    ensure!(
        changed.is_empty(),
        "{}:\n{}",
        way.file(),
        changed.join("\n")
    );
    ensure!(seen == expected, "{} has more pairs", way.file());
    Ok(())
}
