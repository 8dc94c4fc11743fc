//! Load by the official SDKs: programs of their own that call tools one after the other, and say what they saw.

use std::{
    collections::HashMap,
    fs::File,
    path::{Path, PathBuf},
    process::Stdio,
};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, ChildStdin, Command},
};

use crate::{
    held::Work,
    history::{Body, History, Outcome, What},
    program::needs,
};

/// Which SDK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sdk {
    /// TypeScript 1.x.
    TypeScript1,
    /// TypeScript 2.x, in both eras by turns.
    TypeScript2,
    /// Python 1.x.
    Python1,
    /// Python 2.x, in both eras by turns.
    Python2,
}

impl Sdk {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::TypeScript1,
        Self::TypeScript2,
        Self::Python1,
        Self::Python2,
    ];

    /// The prefix of the names of its calls. Those of the stateless era have an `m` behind it.
    pub fn name(self) -> &'static str {
        match self {
            Self::TypeScript1 => "ts1",
            Self::TypeScript2 => "ts2",
            Self::Python1 => "py1",
            Self::Python2 => "py2",
        }
    }

    /// Does it speak the stateless era, too?
    pub fn is_of_both_eras(self) -> bool {
        matches!(self, Self::TypeScript2 | Self::Python2)
    }

    fn command(self) -> Result<Command> {
        let script = |path| needs(&format!("tests/clients/{path}"));
        let mut command;
        match self {
            Self::TypeScript1 | Self::TypeScript2 => {
                needs("tests/clients/typescript/node_modules/@modelcontextprotocol")?;
                command = Command::new("node");
                command.arg(script("typescript/load.mjs")?);
                command.arg(if self == Self::TypeScript1 { "1" } else { "2" });
            }
            Self::Python1 | Self::Python2 => {
                let version = if self == Self::Python1 { "v1" } else { "v2" };
                command = Command::new(needs(&format!(
                    ".portolan/tools/python-{version}/bin/python"
                ))?);
                command.arg(script("python/load.py")?);
            }
        }
        Ok(command)
    }
}

/// A program that makes calls. It ends its calls and then itself when `stdin` is closed; killed when dropped.
#[derive(Debug)]
pub struct SdkLoad {
    sdk: Sdk,
    child: Child,
    history: History,
    errors: PathBuf,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Began {
        work: Work,
        session: Option<String>,
        safe: bool,
        deadline: u64,
    },
    Event {
        call: String,
        id: Option<String>,
        message: Value,
    },
    Resumed {
        call: String,
        status: u16,
    },
    Ended {
        call: String,
        #[serde(flatten)]
        end: End,
    },
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum End {
    Message(Value),
    Http(u16),
    Refused(String),
    GaveUp(String),
    Hung(()),
}

impl SdkLoad {
    /// Starts it with so many clients at `url`. It reads its access token from a file before each request, and writes what it has
    /// to say to people into `folder`.
    pub fn start(
        sdk: Sdk,
        url: &str,
        token: &Path,
        workers: usize,
        folder: &Path,
        history: &History,
    ) -> Result<(Self, ChildStdin)> {
        let errors = folder.join(format!("{}.log", sdk.name()));
        let mut child = sdk
            .command()?
            .env("PORTOLAN_MCP_URL", url)
            .env("PORTOLAN_TOKEN_FILE", token)
            .env("PORTOLAN_LOAD_NAME", sdk.name())
            .env("PORTOLAN_LOAD_WORKERS", workers.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(&errors)?)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {sdk:?}; `make test-tools` installs it"))?;
        let stdin = child.stdin.take().context("a pipe")?;
        let load = Self {
            sdk,
            child,
            history: history.clone(),
            errors,
        };
        Ok((load, stdin))
    }

    /// Records its output, to its end.
    pub async fn follow(mut self) -> Result<()> {
        let stdout = self.child.stdout.take().context("a pipe")?;
        let mut lines = BufReader::new(stdout).lines();
        let mut works: HashMap<String, Work> = HashMap::new();
        while let Some(line) = lines.next_line().await? {
            let line = serde_json::from_str(&line)
                .with_context(|| format!("{}: {line}", self.sdk.name()))?;
            if let Some(what) = translate(line, &mut works) {
                self.history.add(what);
            }
        }
        let status = self.child.wait().await?;
        ensure!(
            status.success(),
            "{} ended with {status}:\n{}",
            self.sdk.name(),
            std::fs::read_to_string(&self.errors).unwrap_or_default()
        );
        Ok(())
    }
}

/// `None` for what comes after a call's end: SDKs go on listening.
fn translate(line: Line, works: &mut HashMap<String, Work>) -> Option<What> {
    Some(match line {
        Line::Began {
            work,
            session,
            safe,
            deadline,
        } => {
            let call = work.call.clone();
            works.insert(call.clone(), work);
            What::Began {
                call,
                session,
                safe,
                deadline,
            }
        }
        Line::Event { call, id, message } => {
            let work = works.get(&call)?;
            let body = match message {
                Value::Null => Body::Priming,
                message => Body::of_message(&message, work),
            };
            What::Got { call, id, body }
        }
        Line::Resumed { call, status } => {
            works.get(&call)?;
            What::Resumed { call, status }
        }
        Line::Ended { call, end } => {
            let work = works.remove(&call)?;
            let outcome = match end {
                End::Message(message) => Outcome::of(&message, &work),
                End::Http(status) => Outcome::Http(status),
                End::Refused(text) => Outcome::Refused(text),
                End::GaveUp(text) => Outcome::GaveUp(text),
                End::Hung(_) => Outcome::Hung,
            };
            What::Ended { call, outcome }
        }
    })
}
