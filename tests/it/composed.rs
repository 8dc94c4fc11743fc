//! Clients of the official SDKs before one server that is composed of five others, each written
//! with another SDK. Their lists, calls, reads and questions come from servers of both eras, side
//! by side. Each client goes through the whole OAuth flow, as in `clients`.
//!
//! Prefixes of the sources distinguish names that are the same at all five (MCP-TL-7). Published
//! forms distinguish URIs, in every place (MCP-RE-12, MCP-X-6B).

mod rust;

use std::{collections::BTreeSet, path::Path, thread};

use anyhow::{Result, anyhow};
use portolan_tests::{
    behind::compose,
    console::Published,
    person::Person,
    program,
    stack::Stack,
    upstream::{Fixture, Upstream},
};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::clients::every_check_holds;

/// The parts of the server, each under its prefix: `legacy_test_simple_text`,
/// `legacy://static-text`.
const PARTS: [(&str, Fixture); 5] = [
    ("legacy", Fixture::TypeScript1),
    ("modern", Fixture::TypeScript2),
    ("fast", Fixture::Python1),
    ("python", Fixture::Python2),
    ("rust", Fixture::Rmcp),
];
/// Entries of a page.
const PAGE: usize = 10;

/// All parts behind one published server. The values must live as long as the test.
async fn composed() -> Result<(Vec<Upstream>, Stack, Person, Published)> {
    let upstreams = start()?;
    let addresses: Vec<String> = upstreams
        .iter()
        .map(|upstream| upstream.address().to_string())
        .collect();
    let stack = Stack::builder()
        .setting("egress_allow", addresses.join(","))
        .setting("page_size", PAGE)
        .start()?;
    let person = Person::sign_up(&stack, "ann").await?;
    let console = person.console();
    console.create_workspace("harbour").await?;
    let words = PARTS.iter().map(|(word, _)| *word);
    let parts: Vec<(&str, &Upstream)> = words.zip(&upstreams).collect();
    let published = compose(&console, "harbour", &parts).await?;
    Ok((upstreams, stack, person, published))
}

/// At the same time: interpreters take theirs.
fn start() -> Result<Vec<Upstream>> {
    thread::scope(|scope| {
        let starting = PARTS.map(|(_, fixture)| scope.spawn(move || Upstream::start(fixture)));
        let mut started = Vec::new();
        for upstream in starting {
            started.push(upstream.join().map_err(|_| anyhow!("a start panicked"))??);
        }
        Ok(started)
    })
}

/// The lists of clients.
struct Expected {
    tools: Vec<String>,
    prompts: Vec<String>,
    resources: Vec<String>,
    templates: Vec<String>,
}

impl Expected {
    fn new() -> Self {
        let names = |word: &str, own: Vec<&str>| -> Vec<String> {
            own.iter().map(|name| format!("{word}_{name}")).collect()
        };
        let uris = |word: &str, own: Vec<&str>| -> Vec<String> {
            own.iter()
                .map(|uri| uri.replacen("test", word, 1))
                .collect()
        };
        Self {
            tools: ordered(|word, fixture| names(word, fixture.tools())),
            prompts: ordered(|word, fixture| names(word, fixture.prompts())),
            resources: ordered(|word, fixture| uris(word, fixture.resources())),
            templates: ordered(|word, fixture| uris(word, vec![fixture.template()])),
        }
    }

    /// For programs: the lists, the pages that they take, and what each part can do.
    fn as_json(&self) -> Value {
        let pages = |all: &[String]| all.len().div_ceil(PAGE);
        let part = |(word, fixture): (&str, Fixture)| {
            json!({
                "word": word,
                "failure": fixture.failure(),
                "whole": is_whole(fixture),
                "python": is_python(fixture),
            })
        };
        json!({
            "tools": self.tools,
            "prompts": self.prompts,
            "resources": self.resources,
            "templates": self.templates,
            "pages": {
                "tools/list": pages(&self.tools),
                "prompts/list": pages(&self.prompts),
                "resources/list": pages(&self.resources),
                "resources/templates/list": pages(&self.templates),
            },
            "parts": PARTS.map(part),
        })
    }
}

/// MCP-TL-3: what every part has, in byte order.
fn ordered(of: impl Fn(&str, Fixture) -> Vec<String>) -> Vec<String> {
    let mut all: Vec<String> = PARTS
        .iter()
        .flat_map(|(word, fixture)| of(word, *fixture))
        .collect();
    all.sort_unstable();
    all
}

/// Does it have all that the walks use? rmcp's has a part of it.
fn is_whole(fixture: Fixture) -> bool {
    fixture != Fixture::Rmcp
}

fn is_python(fixture: Fixture) -> bool {
    matches!(fixture, Fixture::Python1 | Fixture::Python2)
}

/// MCP-X-5: each part was called, in the era of the client if it knows that. The first of `eras` is
/// that of sessions.
fn each_was_called_in_its_own_era(upstreams: &[Upstream], eras: usize) {
    for ((word, fixture), upstream) in PARTS.iter().zip(upstreams) {
        let calls = upstream.seen_of("tools/call");
        let versions: BTreeSet<Option<&str>> = calls
            .iter()
            .map(|call| call.header("mcp-protocol-version"))
            .collect();
        let spoken = fixture.spoken();
        let expected: BTreeSet<Option<&str>> = spoken.into_iter().take(eras).collect();
        assert_eq!(versions, expected, "{word}");
    }
}

async fn walks(interpreter: &Path, file: &str, eras: usize) -> Result<()> {
    let (upstreams, _stack, person, published) = composed().await?;
    let mut command = Command::new(interpreter);
    command
        .arg(program::needs(file)?)
        .env("PORTOLAN_MCP_URL", &published.url)
        .env("PORTOLAN_EXPECTED", Expected::new().as_json().to_string());
    every_check_holds(command, &person).await?;
    each_was_called_in_its_own_era(&upstreams, eras);
    Ok(())
}

/// MCP-X-20, MCP-X-22, MCP-X-28: what servers of both eras ask reaches a client that only knows
/// requests of its session. MCP-X-76, MCP-PG-1, MCP-TL-3, MCP-CP-3, MCP-SM-1, MCP-RT-1 as well.
#[tokio::test]
async fn tl_7_re_12_typescript_sdk_1_walks_through_five_servers() -> Result<()> {
    program::needs("tests/clients/typescript/node_modules/@modelcontextprotocol/sdk")?;
    walks(
        "node".as_ref(),
        "tests/clients/typescript/v1_composed.mjs",
        1,
    )
    .await
}

/// MCP-PR-6, MCP-X-29: in 2026-07-28, too, where results ask, tools' and prompts'.
#[tokio::test]
async fn tl_7_re_12_typescript_sdk_2_walks_through_five_servers_in_both_eras() -> Result<()> {
    program::needs("tests/clients/typescript/node_modules/@modelcontextprotocol/client")?;
    walks(
        "node".as_ref(),
        "tests/clients/typescript/v2_composed.mjs",
        2,
    )
    .await
}

/// MCP-X-20, MCP-X-22, MCP-X-28, MCP-X-76.
#[tokio::test]
async fn tl_7_re_12_python_sdk_1_walks_through_five_servers() -> Result<()> {
    let python = program::needs(".portolan/tools/python-v1/bin/python")?;
    walks(&python, "tests/clients/python/v1_composed.py", 1).await
}

/// MCP-PR-6, MCP-X-29, MCP-X-76.
#[tokio::test]
async fn tl_7_re_12_python_sdk_2_walks_through_five_servers_in_both_eras() -> Result<()> {
    let python = program::needs(".portolan/tools/python-v2/bin/python")?;
    walks(&python, "tests/clients/python/v2_composed.py", 2).await
}
