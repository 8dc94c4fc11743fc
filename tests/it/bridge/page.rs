//! `docs/bridge.md`, made of the tables of outcomes.

use std::{fmt::Write as _, fs};

use anyhow::{Context, Result, ensure};
use portolan_tests::{speaker::REVISIONS, stack::repository};

use super::{
    features::{FEATURES, Feature},
    official,
    table::{Table, Way},
};

const PAGE: &str = "docs/bridge.md";

const INTRO: &str = "\
# The bridge between revisions

Portolan connects clients and servers of different revisions of the protocol. This page shows, for
each feature, the outcome of each pair of revisions. It is made of the end-to-end tests
(`tests/it/bridge.rs`) and never edited:
`PORTOLAN_TEST_UPDATE=1 cargo nextest run -p portolan-tests bridge`.

A raw client of each revision calls a raw server of each revision through the built program. Client
and server use all features of their own revision and none of another. Clients of 2024-11-05 use
HTTP+SSE, and so do servers of 2024-11-05; all others use Streamable HTTP.

| Mark | Meaning |
|---|---|
| = | lossless: both sides see what their revision promises |
| ~ word | degraded: the word is explained below the table |
| ✗ word | impossible: the word says what the client sees |
| – | the server's revision does not have the feature |
| ● | the official TypeScript SDK of the client's revision ran it too, over HTTP and over standard \
input and output: the feature worked, or the refusal arrived where the mark is ✗ |

The SDK of a revision is the last one whose newest revision it is: 1.9 for 2024-11-05, 1.12 for
2025-03-26, 1.22 for 2025-06-18, 1.32 for 2025-11-25 and 2.4 for 2026-07-28
(`tests/clients/eras`). Raw clients alone ran cells without ●. An SDK loses progress that
it reads together with the answer; the tool of its cells waits until the client has seen the progress.

The rules in brackets stand in [translation rules](translation-rules.md), and the design in
[translation](design/translation.md).
";

/// Word → rules, and what the loss means.
const NOTES: &[(&str, &str, &str)] = &[
    (
        "instructions",
        "MCP-X-16, MCP-X-17",
        "The client gets the instructions that the tenant wrote for the published server, \
         and none of the server behind it.",
    ),
    (
        "discover",
        "MCP-X-1",
        "A client that discovers first gets -32601: a client of both eras opens a session \
         then. After any other request, discovery works.",
    ),
    (
        "definition",
        "MCP-X-60",
        "The client does not get members of the definition that came with later revisions. \
         No call depends on them.",
    ),
    (
        "any-value",
        "MCP-X-64",
        "Structured content of the server is no object, which the client's revision \
         requires. Its JSON stands in a text block; the schema of the output is left out.",
    ),
    (
        "audio",
        "MCP-X-61, MCP-V-7",
        "Audio becomes a text block with its type and its size.",
    ),
    (
        "link",
        "MCP-X-62, MCP-V-7",
        "A link to a resource becomes a text block with its name and its URI.",
    ),
    (
        "structured",
        "MCP-X-63",
        "The client does not get structured content. A text block has the same content.",
    ),
    (
        "message",
        "MCP-X-76",
        "The client gets numbers of progress without the message beside them.",
    ),
    (
        "default",
        "MCP-X-34",
        "The form has no default for texts, which the client's revision does not know. The \
         person enters the value.",
    ),
    (
        "server-refuses",
        "MCP-X-30, MCP-X-3A, MCP-X-3B",
        "The client's revision does not have the feature, and Portolan does not declare it \
         to the server. The server's own refusal is the result, with `isError`.",
    ),
    (
        "feature",
        "MCP-V-1",
        "The client's revision does not have the feature. The result is `isError` with the \
         text “This tool needs the client feature …, which this client does not offer.”",
    ),
    (
        "multi-select",
        "MCP-V-11",
        "The client cannot show a form with multiple choice. The result is `isError` and \
         says so.",
    ),
    (
        "browser",
        "MCP-X-33, MCP-V-6",
        "The client cannot open a URL. The result is a text with the message and the URL, \
         and the person calls the tool again afterwards.",
    ),
    (
        "completion-signal",
        "MCP-X-32",
        "The client gets no notification of the end of the step in the browser.",
    ),
    (
        "waits",
        "MCP-X-51, MCP-X-52",
        "The client gets no task: its revision has none, or `portolan connect` translates by \
         itself. Portolan waits for the task, within the time limit of the call, and answers the \
         call with its result.",
    ),
    (
        "lost",
        "MCP-X-7E, MCP-V-8",
        "The server's revision cannot continue a broken stream. The client gets an error, and \
         the tool is not called a second time.",
    ),
    (
        "no-resume",
        "MCP-X-79, MCP-O-6",
        "The client's revision cannot continue a broken stream. The server receives a \
         cancellation, and the client calls the tool again.",
    ),
];

/// The words of pairs that agree on a revision by themselves.
const AGREED: [&str; 2] = ["~older", "x newer"];

fn note(word: &str) -> Result<&'static (&'static str, &'static str, &'static str)> {
    let found = NOTES.iter().find(|(known, _, _)| *known == word);
    found.with_context(|| format!("{PAGE}: no note of {word:?}"))
}

/// The words of an outcome.
fn words(outcome: &str) -> impl Iterator<Item = &str> {
    let marks = ["=", "-", "~", "x "];
    let words = marks.iter().find_map(|mark| outcome.strip_prefix(mark));
    let words = words.unwrap_or(outcome).split(',');
    words.filter(|word| !word.is_empty())
}

/// A cell as a person reads it.
fn shown(outcome: &str) -> String {
    let words: Vec<&str> = words(outcome).collect();
    let mark = match outcome.chars().next() {
        Some('-') => "–",
        Some('x') => "✗",
        Some('~') => "~",
        _ => "=",
    };
    format!("{mark} {}", words.join(", ")).trim_end().to_owned()
}

fn head(page: &mut String) -> Result<()> {
    writeln!(page, "\n| Client ↓ server → | {} |", REVISIONS.join(" | "))?;
    writeln!(page, "|---|{}", "---|".repeat(REVISIONS.len()))?;
    Ok(())
}

/// The sum of a pair: the features that are not lossless.
fn summary(table: &Table, page: &mut String) -> Result<()> {
    page.push_str(
        "\n## All pairs\n\n\
         Each cell names the features that a pair does not have losslessly; ✗ stands before those\n\
         that are impossible. A server without a feature loses nothing. A feature with one outcome for all\n\
         pairs stands in its own table alone.\n",
    );
    let mut features = Vec::new();
    for feature in &FEATURES {
        let first = table.get(feature.name, REVISIONS[0], REVISIONS[0])?;
        let of_feature = table.0.iter().filter(|(place, _)| place.0 == feature.name);
        if of_feature.into_iter().any(|(_, outcome)| outcome != first) {
            features.push(feature);
        }
    }
    head(page)?;
    for client in REVISIONS {
        write!(page, "| **{client}** |")?;
        for server in REVISIONS {
            let mut lost = Vec::new();
            for feature in &features {
                let outcome = table.get(feature.name, client, server)?;
                if outcome.starts_with('x') {
                    lost.push(format!("✗ {}", linked(feature)));
                } else if outcome.starts_with('~') {
                    lost.push(linked(feature));
                }
            }
            let cell = if lost.is_empty() {
                "=".to_owned()
            } else {
                lost.join("; ")
            };
            write!(page, " {cell} |")?;
        }
        page.push('\n');
    }
    Ok(())
}

fn linked(feature: &Feature) -> String {
    let anchor = feature.title.to_lowercase().replace(' ', "-");
    format!("[{}](#{anchor})", feature.title.to_lowercase())
}

fn explained(page: &mut String, used: &[String]) -> Result<()> {
    let used = NOTES
        .iter()
        .filter(|(word, _, _)| used.iter().any(|one| one == word));
    for (place, (word, rules, text)) in used.enumerate() {
        let gap = if place == 0 { "\n" } else { "" };
        writeln!(page, "{gap}- **{word}**: {text} ({rules})")?;
    }
    Ok(())
}

fn each(table: &Table, page: &mut String) -> Result<()> {
    let official = official::read()?;
    let ran = |feature: &str, client: &str, server: &str| {
        let mut cells = official.iter();
        cells.any(|cell| {
            (cell.0.as_str(), cell.1.as_str(), cell.2.as_str()) == (feature, client, server)
        })
    };
    for feature in &FEATURES {
        write!(page, "\n## {}\n\n{}\n", feature.title, feature.about)?;
        head(page)?;
        let mut used = Vec::new();
        for client in REVISIONS {
            write!(page, "| **{client}** |")?;
            for server in REVISIONS {
                let outcome = table.get(feature.name, client, server)?;
                for word in words(outcome) {
                    used.push(note(word)?.0.to_owned());
                }
                let mark = if ran(feature.name, client, server) {
                    " ●"
                } else {
                    ""
                };
                write!(page, " {}{mark} |", shown(outcome))?;
            }
            page.push('\n');
        }
        explained(page, &used)?;
    }
    Ok(())
}

/// The outcomes that are different over another way.
fn differences(table: &Table, way: Way, page: &mut String) -> Result<()> {
    let (other, mut rows, mut used) = (Table::read(way)?, String::new(), Vec::new());
    for feature in FEATURES.iter().filter(|feature| feature.name != "resume") {
        for client in REVISIONS {
            for server in REVISIONS {
                let here = other.get(feature.name, client, server)?;
                let is_agreed = AGREED.contains(&here);
                if is_agreed || here == table.get(feature.name, client, server)? {
                    continue;
                }
                for word in words(here) {
                    used.push(note(word)?.0.to_owned());
                }
                writeln!(
                    rows,
                    "| {} | {client} | {server} | {} |",
                    feature.title,
                    shown(here)
                )?;
            }
        }
    }
    if rows.is_empty() {
        page.push_str("Every pair has the outcome of the tables above.\n");
        return Ok(());
    }
    page.push_str("The outcomes are those of the tables above, except:\n\n");
    write!(
        page,
        "| Feature | Client | Server | Outcome |\n|---|---|---|---|\n{rows}"
    )?;
    explained(page, &used)
}

fn page() -> Result<String> {
    let table = Table::read(Way::Http)?;
    let mut page = INTRO.to_owned();
    summary(&table, &mut page)?;
    each(&table, &mut page)?;
    page.push_str(
        "\n## Over standard input and output\n\n\
         `portolan connect` is the server of a client that only speaks on its standard input and\n\
         output. Its lines do not break, so there is no connection to lose.\n\n\
         ### In front of the service\n\n",
    );
    differences(&table, Way::ConnectToService, &mut page)?;
    page.push_str(
        "\n### In front of any other server\n\n\
         `portolan connect` translates between 2026-07-28 and the revisions with sessions, both\n\
         ways. Two revisions with sessions pass unchanged: client and server agree on a revision\n\
         by themselves. A client gets the server's older revision, which official clients\n\
         speak as well. A server that only speaks a newer revision than the client is the end of\n\
         the session, as it is without Portolan.\n\n",
    );
    differences(&table, Way::Connect, &mut page)?;
    Ok(page)
}

/// Writes the page.
pub(super) fn write() -> Result<()> {
    Ok(fs::write(repository().join(PAGE), page()?)?)
}

#[test]
fn the_page_of_the_bridge_is_made_of_the_tables() -> Result<()> {
    if std::env::var_os("PORTOLAN_TEST_UPDATE").is_some() {
        return write();
    }
    ensure!(
        fs::read_to_string(repository().join(PAGE))? == page()?,
        "{PAGE} is out of date: PORTOLAN_TEST_UPDATE=1 cargo nextest run -p portolan-tests bridge"
    );
    Ok(())
}

#[test]
fn every_note_is_of_an_outcome() -> Result<()> {
    let mut tables = String::new();
    for way in [Way::Http, Way::ConnectToService, Way::Connect] {
        let table = Table::read(way)?;
        for feature in &FEATURES {
            for client in REVISIONS {
                for server in REVISIONS {
                    let outcome = table.get(feature.name, client, server)?;
                    tables += &words(outcome).collect::<Vec<_>>().join(" ");
                    tables.push(' ');
                }
            }
        }
    }
    let used: Vec<&str> = tables.split(' ').collect();
    for (word, _, _) in NOTES {
        ensure!(
            used.contains(word),
            "no pair has {word:?} any more: remove its note"
        );
    }
    Ok(())
}
