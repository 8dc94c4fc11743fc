//! `portolan attach` as a program of a test, and an attached server with what it publishes.

use std::{
    ffi::OsStr,
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    console::{Console, text},
    process::{Daemon, eventually},
    program::needs,
    stack::{portolan, repository},
};

/// How long a program may take until its server is attached: `node` has to start.
const ATTACH_WITHIN: Duration = Duration::from_secs(40);

/// An attached server that was added in the console.
#[derive(Debug, Clone)]
pub struct Added {
    /// Its workspace.
    pub workspace: String,
    /// Its source.
    pub source_id: String,
    /// Its key.
    pub key: String,
    /// The first argument of `portolan attach`.
    pub address: String,
}

/// Adds an attached server.
pub async fn add(console: &Console<'_>, workspace: &str, name: &str) -> Result<Added> {
    let path = format!("/workspaces/{workspace}/attachments");
    let added = console.post(&path, json!({ "name": name })).await?;
    Ok(Added {
        workspace: workspace.to_owned(),
        source_id: text(&added["source"], "id")?,
        key: text(&added["key"], "key")?,
        address: text(&added["key"], "address")?,
    })
}

impl Added {
    /// Its state in the console.
    pub async fn state(&self, console: &Console<'_>) -> Result<Value> {
        let Self {
            workspace,
            source_id,
            ..
        } = self;
        let path = format!("/workspaces/{workspace}/sources/{source_id}/attachment");
        console.get(&path).await
    }

    /// Waits until so many programs offer it and are ready, and its tools were read.
    pub async fn attached(&self, console: &Console<'_>, programs: usize) -> Result<()> {
        let what = format!("{programs} programs are attached, and the tools are known");
        eventually(&what, ATTACH_WITHIN, async || {
            let Ok(state) = self.state(console).await else {
                return false;
            };
            let ready = state["programs"].as_array().map_or(0, |programs| {
                let ready = programs
                    .iter()
                    .filter(|program| program["is_ready"] == true);
                ready.count()
            });
            let tools = console.tool_ids(&self.workspace, &self.source_id).await;
            ready == programs && (programs == 0 || tools.is_ok_and(|tools| !tools.is_empty()))
        })
        .await
    }
}

/// A running `portolan attach`. Killed when dropped.
#[derive(Debug)]
pub struct Attach {
    /// The process.
    pub process: Daemon,
    folder: TempDir,
}

impl Attach {
    /// Offers a command.
    pub fn command<S: AsRef<OsStr>>(
        added: &Added,
        address: &str,
        command: &[S],
        environment: &[(&str, &str)],
    ) -> Result<Self> {
        Self::start(added, address, environment, |attach| {
            attach.arg("--").args(command);
        })
    }

    /// Offers a server with an address.
    pub fn url(added: &Added, url: &str) -> Result<Self> {
        Self::start(added, &added.address, &[], |attach| {
            attach.arg("--url").arg(url);
        })
    }

    /// Offers an HTTP API whose credential is a token of the environment, with metrics.
    pub fn api(
        added: &Added,
        document: &Path,
        base_url: &str,
        token: &str,
        metrics: SocketAddr,
    ) -> Result<Self> {
        let metrics = metrics.to_string();
        let environment = [("API_TOKEN", token), ("PORTOLAN_ATTACH_METRICS", &metrics)];
        Self::start(added, &added.address, &environment, |attach| {
            attach.arg("--openapi").arg(document);
            attach.args(["--base-url", base_url]);
            attach.args(["--header", "Authorization: Bearer ${API_TOKEN}"]);
        })
    }

    fn start(
        added: &Added,
        address: &str,
        environment: &[(&str, &str)],
        more: impl FnOnce(&mut Command),
    ) -> Result<Self> {
        let folder = TempDir::new()?;
        let mut attach = portolan();
        attach
            .arg("attach")
            .arg(address)
            .env("PORTOLAN_ATTACH_KEY", &added.key)
            .env("PORTOLAN_ATTACH_LOG", "debug,hyper=info,h2=info");
        for (name, value) in environment {
            attach.env(name, value);
        }
        more(&mut attach);
        let process = Daemon::start(attach, &folder.path().join("attach.log"))?;
        Ok(Self { process, folder })
    }

    /// Its log so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("attach.log")).unwrap_or_default()
    }

    /// A folder of its own.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

/// The server of the tests that behaves badly on purpose.
pub fn stand_in() -> Vec<String> {
    let script = repository().join("tests/attached/stand_in.mjs");
    vec!["node".to_owned(), script.display().to_string()]
}

/// A program of an npm package.
pub fn package(name: &str) -> Result<PathBuf> {
    needs(&format!("tests/attached/node_modules/.bin/{name}"))
}

/// The Python server.
pub fn python() -> Result<Vec<String>> {
    let interpreter = needs(".portolan/tools/python-v1/bin/python")?;
    let script = repository().join("tests/attached/python_server.py");
    let script = script.to_str().context("a path of characters")?.to_owned();
    Ok(vec![interpreter.display().to_string(), script])
}

/// A program of a Python package.
pub fn python_package(name: &str) -> Result<PathBuf> {
    needs(&format!(".portolan/tools/python-servers/bin/{name}"))
}
